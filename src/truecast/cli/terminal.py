"""What people see: messages, results, JSON and a bar while they wait."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from truecast.certificate import ArcCertificate, Certificate
    from truecast.recalibrate import ClassCertificate

__all__ = [
    "WIDTH",
    "echo",
    "echo_json",
    "finite",
    "fitted",
    "for_terminal",
    "plain",
    "progress",
    "say",
    "visible",
]

WIDTH = 80  # columns that everything fits
_BAR = "truecast.bar"  # in the context of the command: the bar that is on the terminal now


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
        echo(for_terminal(text), err=True)
    else:
        bar.console.print(
            for_terminal(visible(text)), markup=False, highlight=False, emoji=False, soft_wrap=True
        )


def for_terminal(text: str) -> str:
    """Return a message in lines that fit the terminal; without a terminal, as it is."""
    if sys.stderr is None or not sys.stderr.isatty():
        return text
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 0
    return fitted(visible(text), columns or WIDTH)


def fitted(text: str, width: int = WIDTH, indent: str = "", after: str = "") -> str:
    r"""Return a text in lines that fit, those after the first indented by `after`, or two more.

    No line ends where a space does not allow it.

    Examples
    --------
    >>> print(fitted("it came in 10\xa0% of the rounds", 14).replace("\xa0", " "))
    it came in
      10 % of the
      rounds
    """
    import textwrap

    wrap = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=after or f"{indent}  ",
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(wrap.fill(line) for line in text.split("\n"))


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
