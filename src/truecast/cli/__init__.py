"""The `truecast` command: parse, call, print. One file a subcommand."""

from __future__ import annotations

import click

import truecast as tc
from truecast.cli.arena import arena
from truecast.cli.forecast import forecast

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tc.__version__, prog_name="truecast")
def main() -> None:
    """Keep probability forecasts true."""


main.add_command(forecast)
main.add_command(arena)
