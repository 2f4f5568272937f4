"""`truecast arena`: forecasters against adversaries, in a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truecast.cli.options import Once, file_type
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors, interruptible
from truecast.cli.terminal import WIDTH, echo, fitted, progress, say
from truecast.errors import shown, writing

if TYPE_CHECKING:
    from truecast.arena.results import Results

Player = TypeVar("Player")

_PICTURE = Path("arena.svg")
_FORMATS = (".svg", ".png", ".pdf")


def _numbers(context: click.Context, option: click.Parameter, text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace("_", "").split(",")]
    except ValueError:
        raise click.BadParameter(
            f"whole numbers with commas between them, such as 100,1000; got {text!r}"
        ) from None


@click.command(cls=Once)
@click.option(
    "--rounds",
    callback=_numbers,
    default="100,1000,10000",
    show_default=True,
    metavar="T,T,...",
    help="Lengths of the games.",
)
@click.option(
    "--seeds",
    type=int,
    default=10,
    show_default=True,
    help="Games for each pair that uses randomness.",
)
@click.option(
    "--forecaster",
    "forecasters",
    multiple=True,
    metavar="NAME",
    help="Only this one; may be repeated.",
)
@click.option(
    "--adversary",
    "adversaries",
    multiple=True,
    metavar="NAME",
    help="Only this one; may be repeated.",
)
@click.option(
    "--resume",
    type=file_type,
    help="Keep finished games in this file; play only those that are not in it.",
)
@click.option(
    "--plot",
    type=file_type,
    help=f"Picture to write, {', '.join(_FORMATS)}.  [default: {_PICTURE}]",
)
@click.option("--no-plot", is_flag=True, help="Write no picture.")
@click.option(
    "--csv", type=file_type, help="Write a line for every game to this file, with more measures."
)
@click.option("--markdown", is_flag=True, help="Print the tables in Markdown.")
@click.option("--workers", type=int, help="Processes to use.  [default: the number of processors]")
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the players and their options, and exit.",
)
def arena(
    rounds: list[int],
    seeds: int,
    forecasters: tuple[str, ...],
    adversaries: tuple[str, ...],
    resume: Path | None,
    plot: Path | None,
    no_plot: bool,
    csv: Path | None,
    markdown: bool,
    workers: int | None,
    only_list: bool,
) -> None:
    """Let every forecaster play against every adversary, and measure its distance to calibration.

    Prints the distance to calibration (CalDist, in total, to 1 percent) of each forecaster's worst
    game for each number of rounds, beside the bound proved before the first round. Then prints its
    mean against each adversary. --plot draws the same, and needs matplotlib.

    \b
    Examples:
      truecast arena --rounds 100,1000,10000 --resume games.jsonl
      truecast arena --forecaster aosa --adversary early-stop --no-plot
    """  # noqa: D301 (click wants the character itself)
    picture = None if only_list else _picture(plot, no_plot)
    with (
        errors({"horizons": "--rounds", "path": "--resume"}),
        interruptible(f"stopped; {_kept(resume)}"),
    ):
        check_outputs({"--plot": picture, "--csv": csv, "--resume": resume})
        from truecast.arena import ADVERSARIES, FORECASTERS, tournament

        chosen = _chosen("--forecaster", FORECASTERS, forecasters)
        opponents = _chosen("--adversary", ADVERSARIES, adversaries)
        if only_list:
            _list(chosen, opponents)
            return
        with progress("playing") as show:
            played = partial(
                tournament, chosen, opponents, rounds, seeds, path=resume, workers=workers
            )
            results = played(
                progress=lambda done, games: show(done / games, f"{done:,} of {games:,} games")
            )
        _print(results, markdown)
        if csv is not None:
            with writing(csv, "--csv"):
                results.to_csv(csv)
            say(f"games written to {shown(str(csv))}")
        if picture is not None:
            with writing(picture, "--plot"):
                _draw(results, picture)
            say(f"picture written to {shown(str(picture))}")


def _chosen(
    option: str, players: Mapping[str, Player], names: tuple[str, ...]
) -> Mapping[str, Player]:
    """Return the players of these names, in the order of the roster; all if there are none."""
    for name in names:
        if name not in players:
            raise click.UsageError(f"{option} must be one of {', '.join(players)}; got {name!r}")
    return {name: player for name, player in players.items() if name in names} if names else players


def _list(
    forecasters: Mapping[str, Callable[[int, int], object]], adversaries: Mapping[str, Any]
) -> None:
    echo("forecasters, here for 10,000 rounds:")
    for name, make in forecasters.items():
        echo(_entry(name, repr(make(10_000, 0))))
    echo("adversaries, and what they see of the current forecast:")
    for name, adversary in adversaries.items():
        echo(_entry(name, f"{adversary.sees:12} {adversary!r}"))


def _entry(name: str, about: str) -> str:
    """Return a name and what there is to say, in lines that fit."""
    return fitted(f"{name:20} {about}", indent="  ", after=" " * 23)


def _picture(plot: Path | None, no_plot: bool) -> Path | None:
    """Return where to draw, if anywhere; refuse what cannot be drawn before games are played."""
    if no_plot:
        if plot is not None:
            raise click.UsageError("--plot and --no-plot contradict each other")
        return None
    if plot is not None and plot.suffix.lower() not in _FORMATS:
        raise click.UsageError(f"--plot must end in {', '.join(_FORMATS)}; got {str(plot)!r}")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        if plot is not None:
            raise click.UsageError("--plot needs matplotlib: pip install 'truecast[plot]'")
        say("no picture: that needs matplotlib (pip install 'truecast[plot]')")
        return None
    return plot or _PICTURE


def _kept(file: Path | None) -> str:
    """Return what is left when the games are stopped."""
    if file is None:
        return "to be able to continue later, use --resume FILE"
    import shlex

    name = shlex.quote(str(file))
    return f"finished games are in {name}; the same command continues from there"


def _print(results: Results, markdown: bool) -> None:
    echo(results.markdown() if markdown else results.text(WIDTH))
    for rounds in results.horizons:
        table = results.against(rounds)
        title = f"Means over seeds against each adversary, T={rounds:,}"
        echo(f"\n{title}\n\n{table.markdown() if markdown else table.text(WIDTH)}")


def _draw(results: Results, file: Path) -> None:
    import matplotlib as mpl

    # names in the file are the same in every run
    with mpl.rc_context({"svg.hashsalt": "truecast"}):
        metadata = {"Date": None} if file.suffix.lower() == ".svg" else None
        results.draw().savefig(file, metadata=metadata, dpi=150)
