"""The arguments that several subcommands take, each described once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from truecast._names import of_one_line

__all__ = ["Once", "OnceGroup", "arguments", "file_type"]

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]

file_type = click.Path(dir_okay=False, path_type=Path)

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

_CLASSES = {
    "class_scores": click.option(
        "--scores", "class_scores", metavar="NAMES",
        help="Columns of probabilities of several classes, with commas between them; a name with "
        "a comma in quotes: '\"a,b\",c'.  [default: guessed]",
    ),
    "classes": click.option(
        "--classes", metavar="NAMES",
        help="What the outcome calls these classes, in the same order, with commas.  "
        "[default: like the columns, less a common beginning such as p_]",
    ),
    "normalize": click.option(
        "--normalize", is_flag=True,
        help="Divide the probabilities of several classes by their sum.",
    ),
}  # fmt: skip


def _as_one(
    argument: str,
    options: dict[str, Option],
    made: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda given, others: given,
) -> Callable[[Command], Command]:
    """Give a command these options as one argument: a dict, made of their values.

    `made` also gets the command's other arguments.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in options}
            return command(**{argument: made(given, arguments)}, **arguments)

        decorated: Any = with_options
        for option in reversed(options.values()):
            decorated = option(decorated)
        return cast("Command", decorated)

    return decorate


def _for_guess(given: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the options of several classes as `truecast.files.guess` takes them."""
    names = {name: _comma_separated(given[name]) for name in ("class_scores", "classes")}
    if names["class_scores"] and (others.get("scores") or others.get("score")):
        raise click.UsageError("--score and --scores must not be given together")
    return given | names | {"several": True}


def _comma_separated(text: str | None) -> tuple[str, ...] | None:
    """Return the names in a line of CSV: one with a comma stands in quotes."""
    try:
        return None if text is None else of_one_line(text)
    except ValueError as error:
        raise click.UsageError(
            f"names with commas between them must be one line of CSV, got {text!r}: {error}"
        ) from None


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
    "classes": _as_one("classes", _CLASSES, _for_guess),
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
    "cells": _as_one("cells", _CELLS),
    "outcome_cells": _as_one("cells", {name: _CELLS[name] for name in ("positive", "decimal")}),
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
