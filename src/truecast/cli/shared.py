"""What the subcommands have in common: arguments, errors, progress, tables."""

from __future__ import annotations

import errno
import gc
import math
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from truecast.cli.class_options import class_options
from truecast.errors import FileError, InputError, TruecastError, shown, writing

if TYPE_CHECKING:
    from truecast.certificate import ArcCertificate, Certificate
    from truecast.files import Names, OpenTable
    from truecast.recalibrate import ClassCertificate

__all__ = [
    "WIDTH",
    "Once",
    "OnceGroup",
    "Refusal",
    "Reopened",
    "arguments",
    "check_outputs",
    "echo",
    "echo_json",
    "errors",
    "file_type",
    "finite",
    "fitted",
    "interruptible",
    "opened",
    "plain",
    "progress",
    "readable",
    "say",
]

Command = TypeVar("Command", bound=Callable[..., Any])

WIDTH = 80  # columns that everything fits
_SHOWN = 20  # columns that are named where they were guessed
_PIPE_CLOSED = 128 + 13  # as a shell has it of a command that SIGPIPE ends

file_type = click.Path(dir_okay=False, path_type=Path)

_BAR = (
    "truecast.bar"  # the bar that is on the terminal at the moment, in the context of the command
)

_CELLS = {
    "positive": click.option(
        "--positive", metavar="VALUE", help="Outcome that counts as 1, such as yes.",
    ),
    "percent": click.option(
        "--percent", is_flag=True, help="Probabilities are percentages, 0 to 100.",
    ),
    "decimal": click.option(
        "--decimal", type=click.Choice([".", ","]), default=".", show_default=True,
        help="Decimal mark in text.",
    ),
}  # fmt: skip


def _cells(*names: str) -> Callable[[Command], Command]:
    """Give a command these options on how to read cells, as one argument: a dict."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_cells(**arguments: Any) -> Any:
            return command(cells={name: arguments.pop(name) for name in names}, **arguments)

        decorated: Any = with_cells
        for name in reversed(names):
            decorated = _CELLS[name](decorated)
        return cast("Command", decorated)

    return decorate


class _Resamples(click.types.IntParamType):
    """None, or enough to tell anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Refuse what is too few or too many."""
        from truecast._check import FEWEST_RESAMPLES

        number: int = super().convert(value, param, ctx)
        if number and not FEWEST_RESAMPLES <= number <= 1_000_000:
            rule = f"neither 0 (no verdict) nor from {FEWEST_RESAMPLES} to 1,000,000"
            self.fail(f"{number} is {rule}", param, ctx)
        return number


_OPTIONS: dict[str, Callable[[Command], Command]] = {
    "file": click.argument("file", metavar="FILE"),
    "outcome": click.option(
        "--outcome", metavar="NAME", help="Column of outcomes, 0 or 1.  [default: guessed]",
    ),
    "score": click.option(
        "--score", metavar="NAME", help="Column of probabilities.  [default: guessed]",
    ),
    "scores": click.option(
        "--score", "scores", multiple=True, metavar="NAME",
        help="Column of probabilities; may be repeated.  [default: guessed]",
    ),
    "classes": class_options,
    "weight": click.option(
        "--weight", metavar="NAME",
        help="Column of weights: whole numbers count as repeated rows.",
    ),
    "by": click.option(
        "--by", metavar="NAME", help="Column of groups; each is measured separately.",
    ),
    "resamples": click.option(
        "--resamples", type=_Resamples(), metavar="N",
        help="How often to simulate chance: 20 or more; 0 for no verdict.  "
        "[default: 999; 499 for more than 512 distinct scores]",
    ),
    "json": click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, for programs.",
    ),
    "skip_bad": click.option(
        "--skip-bad", count=True,
        help="Skip rows that break a rule; give it twice to skip more than half.",
    ),
    "cells": _cells("positive", "percent", "decimal"),
    "outcome_cells": _cells("positive", "decimal"),
}  # fmt: skip


def arguments(*names: str) -> Callable[[Command], Command]:
    """Give a command these arguments, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return decorate


class Once(click.Command):
    """A command that refuses an option that is given twice; click would take the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what is given too often, then parse."""
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in dict.fromkeys(given):
            if isinstance(option, click.Option) and not (
                option.multiple or option.count or option.is_flag
            ):
                name = max(option.opts, key=len)
                times = given.count(option)
                if times > 1:
                    last = values[option.name or ""]
                    raise click.UsageError(
                        f"{name} must be given once, got it {times} times, last as {last!r}", ctx
                    )
        return super().parse_args(ctx, args)


class OnceGroup(Once, click.Group):
    """The same for a command that has others below it."""


def visible(text: str) -> str:
    r"""Return a text that cannot steer a terminal.

    Control characters, and those that turn the direction of text, become their escapes.

    Whatever is printed passes through here, names from files included.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    text = text.replace("\xa0", " ")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        sign if sign == "\n" or sign.isprintable() else repr(sign)[1:-1] for sign in text
    )


def echo(text: str, *, err: bool = False) -> None:
    """Print to standard output or standard error: nothing raw, nothing that they cannot encode."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    click.echo(visible(text).encode(encoding, "backslashreplace").decode(encoding), err=err)


def say(text: str) -> None:
    """Say something that is not the result: to standard error, above the bar if there is one."""
    context = click.get_current_context(silent=True)
    bar = None if context is None else context.meta.get(_BAR)
    if bar is None:
        echo(_for_terminal(text), err=True)
    else:
        bar.console.print(
            _for_terminal(visible(text)), markup=False, highlight=False, emoji=False, soft_wrap=True
        )


def _for_terminal(text: str) -> str:
    """Return a message in lines that fit the terminal; without a terminal, as it is."""
    if sys.stderr is None or not sys.stderr.isatty():
        return text
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    return fitted(visible(text), columns or WIDTH)


def fitted(text: str, width: int = WIDTH, indent: str = "", after: str = "") -> str:
    """Return a text in lines that fit, those after the first indented by `after`, or two more."""
    import textwrap

    wrap = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=after or f"{indent}  ",
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(wrap.fill(line) for line in text.replace("\xa0", " ").split("\n"))


@contextmanager
def readable() -> Iterator[None]:
    """Let an error be shown as everything else is, click's own as well."""
    try:
        yield
    except click.ClickException as error:
        if type(error).show not in (click.ClickException.show, click.UsageError.show):
            raise  # help, where nothing was asked for
        text = _for_terminal(visible(f"Error: {error.format_message()}")).removeprefix("Error: ")
        if isinstance(error, click.UsageError):
            raise click.UsageError(text, error.ctx) from error
        raise (Refusal if error.exit_code == Refusal.exit_code else click.ClickException)(
            text
        ) from error
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        _leave_closed_pipe()
        raise click.exceptions.Exit(_PIPE_CLOSED) from None


def _leave_closed_pipe() -> None:
    """Send what is still to be written nowhere: Python would complain about it at its end."""
    with suppress(OSError, ValueError):  # of tests, outputs are no files
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class Refusal(click.ClickException):
    """What the user can mend: a line, and exit code 2."""

    exit_code = 2


@contextmanager
def errors(options: dict[str, str] | None = None) -> Iterator[None]:
    """Say in a line what is wrong, arguments by the names that the command has for them."""
    try:
        with interruptible("stopped"):
            yield
    except InputError as error:
        option = (options or {}).get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise Refusal(option + str(error).removeprefix(error.argument)) from error
    except TruecastError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone: `readable` ends quietly
        raise click.ClickException(str(error)) from error


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """At Ctrl-C, say this and end with exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(message)
        raise click.exceptions.Exit(130) from None


@contextmanager
def opened(
    file: str, *, quiet: bool = False, follow: Callable[[], bool] | None = None, **columns: Any
) -> Iterator[tuple[OpenTable, Names]]:
    """Open a file, and say which columns are taken where that was guessed.

    Parameters
    ----------
    file
        Its path, or - for standard input.
    quiet
        Say nothing.
    follow
        As for `truecast.files.open_table`.
    columns
        As for `truecast.files.guess`.
    """
    try:
        with _uncollected():
            from truecast.files import guess, open_table
            from truecast.files.columns import brief
    except ImportError as error:
        raise Refusal("reading files needs Polars: pip install 'truecast[cli]'") from error
    with open_table(file, follow=follow) as table:
        names = guess(table.name, table.columns, sample=table.sample, **columns)
        scores = columns.get("class_scores") or columns.get("scores", ())
        if (
            not quiet
            and len(table.columns) > 1
            and (columns.get("outcome") is None or scores == ())
        ):
            shown = [brief(repr(score)) for score in names.scores[:_SHOWN]]
            more = len(names.scores) - len(shown)
            taken = (
                f", classes in {', '.join(shown)}" + (f" and {more:,} more" if more else "")
                if names.labels
                else "".join(f", score {score}" for score in shown)
            )
            say(f"{table.name}: outcome {brief(repr(names.outcome))}{taken}")
        yield table, names


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles away from a large import, now and at the end of the process.

    It would go through all that is imported a dozen times, and find nothing to collect.
    """
    if "polars" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Reopened:
    """A file that may be opened several times; what was guessed is said once."""

    names: Names

    def __init__(self, file: str, **columns: Any) -> None:
        self._file = file
        self._columns = columns
        self._quiet = False

    @contextmanager
    def open(self) -> Iterator[tuple[OpenTable, Names]]:
        """Open it at its beginning."""
        with opened(self._file, quiet=self._quiet, **self._columns) as (table, self.names):
            self._quiet = True
            yield table, self.names


@contextmanager
def progress(label: str, *, rows: bool = False) -> Iterator[Callable[[float | None, str], None]]:
    """Give a function that shows on a terminal how much is done, and a note.

    With `rows` there is no bar if standard output, where they are written meanwhile, is a terminal,
    too.
    """
    watched = sys.stderr is not None and sys.stderr.isatty() and not (rows and sys.stdout.isatty())
    bar = _bar() if watched else None
    if bar is None:
        yield lambda fraction, note: None
        return
    with bar, _live(bar):
        task = bar.add_task(label, total=None, note="")

        def show(fraction: float | None, note: str) -> None:
            bar.update(
                task, total=None if fraction is None else 1.0, completed=fraction or 0.0, note=note
            )

        yield show


@contextmanager
def _live(bar: Any) -> Iterator[None]:
    """Let what is said meanwhile be said above the bar."""
    context = click.get_current_context(silent=True)
    if context is None:
        yield
        return
    context.meta[_BAR] = bar
    try:
        yield
    finally:
        del context.meta[_BAR]


def _bar() -> Any:
    """Return a progress bar of rich, which goes away at the end; None if there is no rich."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}")
    console = Console(stderr=True)
    return Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    )


def echo_json(data: object, *, err: bool = False) -> None:
    """Print data as JSON; what is infinite or undefined, which JSON has no word for, as null."""
    import json

    click.echo(json.dumps(finite(data), indent=2, allow_nan=False), err=err)


def finite(data: Any) -> Any:
    """Return data with null for what is infinite or undefined."""
    if isinstance(data, dict):
        return {str(name): finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def plain(certificate: Certificate | ArcCertificate | ClassCertificate) -> dict[str, Any]:
    """Return all that a certificate says, as plain data."""
    from dataclasses import asdict

    more = {name: getattr(certificate, name, None) for name in ("per_round", "paper", "worst")}
    return asdict(certificate) | {name: value for name, value in more.items() if value is not None}


# endings of the files that are there while one is written
_BESIDE = {"FILE": ("",), "--state": ("", ".part", ".lock", ".part.part")}


def check_outputs(outputs: Mapping[str, Path | None], file: str = "-") -> None:
    """Refuse outputs, by their options, that cannot be written, before the work is done.

    Nor must one be written over another, or over FILE.
    """
    for option, path in outputs.items():
        _refuse_unwritable(option, path)
    _refuse_same({"FILE": None if file == "-" else Path(file), **outputs})


def _refuse_same(files: Mapping[str, Path | None]) -> None:
    """Refuse a file that would be written over another, itself or what is made beside it."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        target = None if file is None else Path(os.path.realpath(file))
        for ending in _BESIDE.get(option, ("", ".part", ".lock")):
            place = None if target is None else target.with_name(target.name + ending)
            other = option if place is None else seen.setdefault(place, option)
            if other != option:
                what = f", with {place.name!r} while it is written" if ending and place else ""
                raise click.UsageError(
                    f"{other} and {option} must not be the same file; got {str(file)!r}{what}"
                )


def _refuse_unwritable(option: str, file: Path | None) -> None:
    if file is None:
        return
    with writing(file, option):
        folder = file.absolute().parent
        if not folder.is_dir():
            raise FileError(
                shown(str(file)),
                f"cannot be written ({option}): there is no folder {str(file.parent)!r}",
            )
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(file.stat().st_mode):  # links that go in circles are an error here
                reason = (
                    "exists and is not a file that can be replaced: choose another output "
                    f"({option})"
                )
                raise FileError(shown(str(file)), reason)
        if not os.access(file if file.exists() and not file.is_file() else folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
