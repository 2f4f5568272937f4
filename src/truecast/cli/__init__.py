"""The `truecast` command: parse, call, print.

One file for each subcommand. Slow imports wait until they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click

import truecast as tc
from truecast.cli.refusals import readable

__all__ = ["main"]

# in the order in which people need them; each is in a file of its own name
_COMMANDS = {
    "measure": "Measure how calibrated, and how good, the scores in a file are.",
    "report": "Write a page about the scores in a file, to read and to share.",
    "recalibrate": "Recalibrate the scores in a file, row by row, with a certificate.",
    "watch": "Follow a file, and say when forecasts are off.",
    "serve": "Answer over HTTP, with a journal.",
    "journal": "Check, export or replay what a service has written.",
    "distance": "Compute how far scores are from calibrated ones, between proven bounds.",
    "forecast": "Forecast outcomes from earlier ones, with a certificate.",
    "arena": "Let forecasters play against adversaries; print and plot the distances.",
}


class _Later(Mapping[str, click.Command]):
    """The commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in _COMMANDS:
            raise KeyError(name)
        found: click.Command = getattr(import_module(f"truecast.cli.{name}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(click.Group):
    """Lists commands in order, without importing them; errors are made readable."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with readable():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with readable():
            return super().invoke(ctx)


@click.group(
    cls=_Commands, commands=_Later(), context_settings={"help_option_names": ["-h", "--help"]}
)
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
