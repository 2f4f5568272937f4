"""``python -m truecast``: the command."""

from truecast.cli import main

main(prog_name="truecast")
