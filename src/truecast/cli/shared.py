"""What the subcommands have in common: arguments, errors, progress, tables."""

from __future__ import annotations

import errno
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truecast.errors import FileError, InputError, TruecastError

if TYPE_CHECKING:
    from truecast.certificate import Certificate
    from truecast.files import Names, Table

__all__ = [
    "Refusal",
    "Reopened",
    "arguments",
    "counted",
    "echo_json",
    "errors",
    "file_type",
    "opened",
    "plain",
    "progress",
    "refuse_folder",
    "refuse_twice",
    "say",
]

Command = TypeVar("Command", bound=Callable[..., Any])

file_type = click.Path(dir_okay=False, path_type=Path)

_OPTIONS: dict[str, Callable[[Command], Command]] = {
    "file": click.argument("file", metavar="FILE"),
    "outcome": click.option("--outcome", metavar="NAME", help="Column of outcomes, 0 or 1.  [default: guessed]"),
    "score": click.option("--score", metavar="NAME", help="Column of probabilities.  [default: guessed]"),
    "scores": click.option(
        "--score", "scores", multiple=True, metavar="NAME",
        help="Column of probabilities; may be repeated.  [default: guessed]",
    ),
    "weight": click.option("--weight", metavar="NAME", help="Column of weights: whole numbers count as repeated rows."),
    "by": click.option("--by", metavar="NAME", help="Column of groups, to be measured each."),
    "resamples": click.option(
        "--resamples", type=click.IntRange(0, 1_000_000), default=200, show_default=True, metavar="N",
        help="How often to simulate what chance would do; 0 not to.",
    ),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs to read."),
    "skip_bad": click.option("--skip-bad", is_flag=True, help="Leave out rows that break a rule, and say how many."),
}  # fmt: skip


def arguments(*names: str) -> Callable[[Command], Command]:
    """Give a command these arguments, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return decorate


def say(text: str) -> None:
    """Say something that is not the result: to standard error."""
    click.echo(text, err=True)


def counted(number: int, noun: str) -> str:
    """Return so many of something: "1 row", "2 rows"."""
    return f"{number:,} {noun}{'s'[: number != 1]}"


class Refusal(click.ClickException):
    """What the user can mend: a line, and exit code 2."""

    exit_code = 2


@contextmanager
def errors(options: dict[str, str] | None = None) -> Iterator[None]:
    """Say in a line what is wrong, arguments by the names that the command has for them."""
    try:
        yield
    except InputError as error:
        option = (options or {}).get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise Refusal(option + str(error).removeprefix(error.argument)) from error
    except TruecastError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone: click ends quietly
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        say("stopped")
        raise click.exceptions.Exit(130) from None


@contextmanager
def opened(file: str, *, quiet: bool = False, **columns: Any) -> Iterator[tuple[Table, Names]]:
    """Open a file, and say which columns are taken where that was guessed.

    Parameters
    ----------
    file
        Its path, or - for standard input.
    quiet
        Say nothing.
    columns
        As for `truecast.files.guess`.
    """
    try:
        from truecast.files import guess, open_table
    except ImportError as error:
        raise Refusal("reading files needs Polars: pip install 'truecast[cli]'") from error
    with open_table(file) as table:
        names = guess(table.name, table.columns, **columns)
        scores = columns.get("scores", ())
        if not quiet and len(table.columns) > 1 and (columns.get("outcome") is None or scores == ()):
            said = "".join(f", score {score!r}" for score in names.scores)
            say(f"{table.name}: outcome {names.outcome!r}{said}")
        yield table, names


class Reopened:
    """A file that may be opened several times; what was guessed is said once."""

    names: Names

    def __init__(self, file: str, **columns: Any) -> None:
        self._file, self._columns, self._quiet = file, columns, False

    @contextmanager
    def open(self) -> Iterator[tuple[Table, Names]]:
        """Open it at its beginning."""
        with opened(self._file, quiet=self._quiet, **self._columns) as (table, self.names):
            self._quiet = True
            yield table, self.names


@contextmanager
def progress(label: str) -> Iterator[Callable[[float | None, str], None]]:
    """Give a function that shows, on a terminal, which fraction of the work is done, if known, and a note."""
    bar = _bar(label) if sys.stderr is not None and sys.stderr.isatty() else None
    if bar is None:
        yield lambda fraction, note: None
        return
    with bar:
        task = bar.add_task(label, total=None, note="")

        def show(fraction: float | None, note: str) -> None:
            bar.update(task, total=None if fraction is None else 1.0, completed=fraction or 0.0, note=note)

        yield show


def _bar(label: str) -> Any:
    """A bar of rich, which draws at most ten times a second and is gone at the end; None if there is no rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        return None
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}")
    console = Console(stderr=True)
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)


def echo_json(data: object, *, err: bool = False) -> None:
    """Print data as JSON; what is infinite or undefined, which JSON has no word for, as null."""
    import json

    click.echo(json.dumps(_finite(data), indent=2, allow_nan=False), err=err)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def plain(certificate: Certificate) -> dict[str, Any]:
    """Return all that a certificate says, as plain data."""
    from dataclasses import asdict

    return asdict(certificate) | {"per_round": certificate.per_round, "paper": certificate.paper}


def refuse_twice(files: Mapping[str, Path | None]) -> None:
    """Refuse a file that would be written over another, or over FILE; be it by what is beside it in the making."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        target = None if file is None else file.resolve()
        for ending in ("",) if option == "FILE" else ("", ".part", ".lock"):
            place = None if target is None else target.with_name(target.name + ending)
            other = option if place is None else seen.setdefault(place, option)
            if other != option:
                what = f", with {place.name!r} while it is written" if ending and place else ""
                raise click.UsageError(f"{other} and {option} must not be the same file; got {str(file)!r}{what}")


def refuse_folder(option: str, file: Path | None) -> None:
    """Refuse a file that cannot be written, before the work is done."""
    if file is not None and not file.absolute().parent.is_dir():
        raise FileError(str(file), f"cannot be written ({option}): there is no folder {str(file.parent)!r}")
    try:
        if file is not None:
            file.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a link that leads to itself
        raise click.ClickException(f"{file} cannot be written ({option}): {error.strerror}") from error
