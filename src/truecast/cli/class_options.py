"""The options of files with several classes: for every command that reads such files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

__all__ = ["class_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

_CLASSES = {
    "class_scores": click.option(
        "--scores", "class_scores", metavar="NAMES",
        help="Columns of probabilities of several classes, with commas between them.  "
        "[default: guessed]",
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


def class_options(command: Command) -> Command:
    """Give a command these options, as one argument, `classes`, for `truecast.files.guess`."""

    @wraps(command)
    def with_classes(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in _CLASSES}
        for name in ("class_scores", "classes"):
            given[name] = _comma_separated(given[name])
        if given["class_scores"] and (arguments.get("scores") or arguments.get("score")):
            raise click.UsageError("--score and --scores must not be given together")
        return command(classes=given | {"several": True}, **arguments)

    decorated: Any = with_classes
    for option in reversed(_CLASSES.values()):
        decorated = option(decorated)
    return cast("Command", decorated)


def _comma_separated(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))
