"""Which columns hold the probabilities of several classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from truecast._check_classes import MOST_CLASSES, without_prefix
from truecast.errors import FileError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["class_columns", "guessed_classes"]

_SEPARATORS = "_ .:/-"
_MOST_GUESSED = 50  # classes that are found by their names alone


def class_columns(
    name: str,
    columns: Sequence[str],
    scores: Sequence[str] | None,
    classes: Sequence[str] | None,
    spelled: Callable[..., str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of several classes and their labels, from what was given of either.

    Without classes, these are called like the columns, less a beginning that all share. Without
    columns, those are taken that are called like the classes, or all with the same beginning.
    """
    if scores is None:
        scores = _named_like(name, columns, classes or (), spelled)
    labels = tuple(classes or without_prefix(scores))
    option = spelled("classes")
    if len(labels) != len(scores):
        reason = (
            f"cannot have {len(labels)} classes ({option}) in {len(scores)} columns of scores "
            f"({spelled('scores')})"
        )
        raise FileError(name, reason)
    for given, how in ((labels, option), (tuple(scores), spelled("scores"))):
        twice = next((one for one in given if given.count(one) > 1), None)
        if twice is not None:
            raise FileError(name, f"must have each class once ({how}); got {twice!r} twice")
    if not 2 <= len(labels) <= MOST_CLASSES:
        raise FileError(name, f"must have from 2 to {MOST_CLASSES} classes ({option})")
    return tuple(scores), labels


def _named_like(
    name: str, columns: Sequence[str], classes: Sequence[str], spelled: Callable[..., str]
) -> tuple[str, ...]:
    for start in _beginnings(columns, classes):
        return tuple(_called(columns, start + label) for label in classes)
    missing = next((label for label in classes if not _ends(columns, label)), classes[0])
    reason = (
        f"has no column for each class ({spelled('classes')}), such as {missing!r} or "
        f"'p_{missing}': name them by {spelled('scores')}"
    )
    raise FileError(name, f"{reason}; it has {', '.join(columns[:20])}")


def guessed_classes(
    columns: Sequence[str], outcome: pl.Series, taken: set[str | None]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return columns that are called like the first outcomes, and labels; None if there are none.

    All columns with the same beginning count, such as ``p_``: some classes may come later.
    """
    values = [_text(value) for value in outcome.drop_nulls().unique(maintain_order=True)]
    values = [value for value in dict.fromkeys(values) if value]
    if not 2 <= len(values) <= _MOST_GUESSED or set(values) <= {"0", "1", "true", "false"}:
        return None
    others = [column for column in columns if column not in taken]
    for start in _beginnings(others, values):
        names = (
            [column for column in others if column.lower().startswith(start) and column != start]
            if start
            else [_called(others, value) for value in values]
        )
        return tuple(names), tuple(column[len(start) :] for column in names)
    return None


def _beginnings(columns: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Return what stands before every class in the name of some column: nothing, if it can be."""
    shared: set[str] | None = None
    for label in classes:
        starts = {column.lower().removesuffix(label.lower()) for column in _ends(columns, label)}
        starts = {start for start in starts if not start or start[-1] in _SEPARATORS}
        shared = starts if shared is None else shared & starts
    return sorted(shared or (), key=len)


def _ends(columns: Sequence[str], label: str) -> list[str]:
    return [column for column in columns if column.lower().endswith(label.lower())]


def _called(columns: Sequence[str], name: str) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _text(value: object) -> str:
    """Return an outcome as the name of a column would have it: whole numbers without a point."""
    text = str(value).strip().lower()
    return text.removesuffix(".0")
