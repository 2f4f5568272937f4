"""The `truecast` command: parse, call, print.

One file for each subcommand. Slow imports wait until they are needed.
"""

from __future__ import annotations

from typing import Any

import click

import truecast as tc
from truecast.cli.arena import arena
from truecast.cli.distance import distance
from truecast.cli.forecast import forecast
from truecast.cli.journal import journal
from truecast.cli.measure import measure
from truecast.cli.recalibrate import recalibrate
from truecast.cli.report import report
from truecast.cli.serve import serve
from truecast.cli.shared import readable
from truecast.cli.watch import watch

__all__ = ["main"]


class _Commands(click.Group):
    """Commands in the order in which people need them; errors are made readable."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with readable():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with readable():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tc.__version__, prog_name="truecast")
def main() -> None:
    """Keep probability forecasts true: measure how calibrated they are, and recalibrate them, with
    a proof.

    You need a file with a column of outcomes, 0 or 1, and a column of probabilities: CSV, JSON
    lines or Parquet, plain or compressed, of any size.

    \b
    Start with:
      truecast measure scores.csv                     is it calibrated, and good?
      truecast report scores.csv -o report.html       the same, with pictures
      truecast recalibrate scores.csv -o better.csv   repair it, with a proof
      truecast watch scores.csv                       an alarm when it changes
      truecast serve                                  answer over HTTP

    \b
    Exit codes:
      0    all is well
      1    the machine failed: disk full, folder not writable
      2    an option or the file is wrong; a line says what
      3    an alarm of `truecast watch`
      130  stopped by Ctrl-C
      141  the reader of the output has gone, as in `| head`
    """  # noqa: D205, D301 (click wants the character itself)


for command in (measure, report, recalibrate, watch, serve, journal, distance, forecast, arena):
    main.add_command(command)
