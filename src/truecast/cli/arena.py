"""`truecast arena`: forecasters against adversaries, in a table and a picture."""

from __future__ import annotations

import errno
import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truecast.errors import InputError

if TYPE_CHECKING:
    from truecast.arena.results import Results

Player = TypeVar("Player")

_PICTURE = Path("arena.svg")
_FORMATS = (".svg", ".png", ".pdf")
_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


def _numbers(context: click.Context, option: click.Parameter, text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace("_", "").split(",")]
    except ValueError:
        raise click.BadParameter(f"whole numbers with commas between them, such as 100,1000; got {text!r}") from None


@click.command(short_help="Let forecasters play against adversaries; print and plot the distances.")
@click.option(
    "--rounds",
    callback=_numbers,
    default="100,1000,10000",
    show_default=True,
    metavar="T,T,...",
    help="Lengths of the games.",
)
@click.option("--seeds", type=int, default=10, show_default=True, help="Games for each pair in which coins are tossed.")
@click.option("--forecaster", "forecasters", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("--adversary", "adversaries", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("--resume", type=_FILE, help="Keep finished games in this file, and play those that are not in it.")
@click.option("--plot", type=_FILE, help=f"Picture to write, {', '.join(_FORMATS)}.  [default: {_PICTURE}]")
@click.option("--no-plot", is_flag=True, help="Write no picture.")
@click.option("--csv", type=_FILE, help="Write a line for every game to this file, with more measures.")
@click.option("--markdown", is_flag=True, help="Print the tables in Markdown.")
@click.option("--workers", type=int, help="Processes to play in.  [default: as many as there are processors]")
@click.option("--list", "only_list", is_flag=True, help="Print the names of the players and their options, and stop.")
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
    """Let every forecaster play against every adversary, and measure how far from calibrated it was.

    Prints the distance to calibration (CalDist, in total, to 1 percent) of each forecaster's worst game against the
    number of rounds, beside what was proved before the first round, and then its mean against each adversary. Draws
    the same to --plot, which needs matplotlib.

    \b
    Examples:
      truecast arena --rounds 100,1000,10000 --resume games.jsonl
      truecast arena --forecaster aosa --forecaster bent-grid --adversary early-stop --no-plot
    """  # noqa: D301 (click wants the character itself, to leave the lines of a paragraph alone)
    picture = None if only_list else _picture(plot, no_plot)
    _refuse_folders(picture, csv, resume)
    _refuse_twice({"--plot": picture, "--csv": csv, "--resume": resume})
    with _errors(), _resumable(resume):
        from truecast.arena import ADVERSARIES, FORECASTERS, tournament

        chosen = _chosen("--forecaster", FORECASTERS, forecasters)
        opponents = _chosen("--adversary", ADVERSARIES, adversaries)
        if only_list:
            _list(chosen, opponents)
            return
        with _progress() as progress:
            results = tournament(chosen, opponents, rounds, seeds, path=resume, workers=workers, progress=progress)
        _print(results, markdown)
        if csv is not None:
            results.to_csv(csv)
            click.echo(f"games written to {csv}", err=True)
        if picture is not None:
            _draw(results, picture)
            click.echo(f"picture written to {picture}", err=True)


def _chosen(option: str, players: Mapping[str, Player], names: tuple[str, ...]) -> Mapping[str, Player]:
    """Return the players of these names, in the order of the roster; all if there are none."""
    for name in names:
        if name not in players:
            raise click.UsageError(f"{option} must be one of {', '.join(players)}; got {name!r}")
    return {name: player for name, player in players.items() if name in names} if names else players


def _list(forecasters: Mapping[str, Callable[[int, int], object]], adversaries: Mapping[str, Any]) -> None:
    click.echo("forecasters, here for 10,000 rounds:")
    for name, make in forecasters.items():
        click.echo(f"  {name:20} {make(10_000, 0)!r}")
    click.echo("adversaries, and what they see of the present forecast:")
    for name, adversary in adversaries.items():
        click.echo(f"  {name:20} {adversary.sees:12} {adversary!r}")


def _picture(plot: Path | None, no_plot: bool) -> Path | None:
    """Return where to draw, if anywhere; what cannot be drawn is refused before hours are played."""
    if no_plot:
        if plot is not None:
            raise click.UsageError("--plot and --no-plot contradict each other")
        return None
    if plot is not None and plot.suffix.lower() not in _FORMATS:
        raise click.UsageError(f"--plot must end in {', '.join(_FORMATS)}; got {str(plot)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        if plot is not None:
            raise click.UsageError("--plot needs matplotlib: pip install 'truecast[plot]'")
        click.echo("no picture: that needs matplotlib (pip install 'truecast[plot]')", err=True)
        return None
    return plot or _PICTURE


def _refuse_folders(*files: Path | None) -> None:
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"there is no folder {str(file.parent)!r}")


def _refuse_twice(files: Mapping[str, Path | None]) -> None:
    """Refuse a file that one option would write over another's."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        other = option if file is None else seen.setdefault(file.resolve(), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} must not be the same file; got {str(file)!r}")


@contextmanager
def _errors() -> Iterator[None]:
    """Say in a line what is wrong, in the words of the command."""
    try:
        yield
    except InputError as error:
        option = {"horizons": "--rounds", "path": "--resume"}.get(error.argument, f"--{error.argument}")
        raise click.UsageError(option + str(error).removeprefix(error.argument)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone: click ends quietly
        raise click.ClickException(str(error)) from error


@contextmanager
def _resumable(file: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        kept = "to be able to go on from where you stop, use --resume FILE"
        if file is not None:
            kept = f"the games that were over are in {shlex.quote(str(file))}; the same command goes on from there"
        click.echo(f"stopped; {kept}", err=True)
        raise click.exceptions.Exit(130) from None


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows progress on a terminal."""
    options: dict[str, Any] = {"file": sys.stderr, "hidden": not sys.stderr.isatty(), "show_pos": True}
    with click.progressbar(length=1, label="games", **options) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show


def _print(results: Results, markdown: bool) -> None:
    click.echo(results.markdown() if markdown else str(results))
    for rounds in results.horizons:
        table = results.against(rounds)
        title = f"Means over seeds against each adversary, T={rounds:,}"
        click.echo(f"\n{title}\n\n{table.markdown() if markdown else table.text()}")


def _draw(results: Results, file: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "truecast"}):  # names in the file are the same in every run
        metadata = {"Date": None} if file.suffix.lower() == ".svg" else None
        results.draw().savefig(file, metadata=metadata, dpi=150)
