"""Which columns hold the probabilities of several classes.

Columns may be called like the classes, or all with the same beginning or end: ``p_home`` and
``p_draw``, ``home_prob`` and ``draw_prob``. Such columns are a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecast._check_classes import MOST_CLASSES, without_prefix
from truecast.errors import FileError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["class_columns", "guessed_classes", "labels_in"]

_EDGES = {"", *"_ .:/-"}  # of a word in the name of a column
_MOST_GUESSED = 50  # classes that are found by their names alone
_MOST_NAMED = 6  # columns, and families, in a message
_ABOUT = 0.02  # by which the first rows may miss a sum of 1


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
        keys = [_key(one) for one in given] if given is labels else [*given]
        twice = next((one for one, key in zip(given, keys, strict=True) if keys.count(key) > 1), "")
        if twice:
            more = " (in any case)" if given.count(twice) == 1 else ""
            raise FileError(name, f"must have each class once ({how}); got {twice!r} twice{more}")
    if not 2 <= len(labels) <= MOST_CLASSES:
        raise FileError(name, f"must have from 2 to {MOST_CLASSES} classes ({option})")
    return tuple(scores), labels


def _named_like(
    name: str, columns: Sequence[str], classes: Sequence[str], spelled: Callable[..., str]
) -> tuple[str, ...]:
    for before, after in _beginnings(columns, classes):
        return tuple(_called(columns, before + label + after) for label in classes)
    there = [column.lower() for column in columns]
    missing = next(
        (label for label in classes if not any(label.lower() in each for each in there)),
        classes[0],
    )
    reason = (
        f"has no column for each class ({spelled('classes')}), such as {missing!r} or "
        f"'p_{missing}': name them by {spelled('scores')}"
    )
    raise FileError(name, f"{reason}; it has {', '.join(columns[:20])}")


def guessed_classes(
    name: str,
    columns: Sequence[str],
    outcome: str,
    taken: set[str | None],
    sample: Callable[[Sequence[str]], pl.DataFrame],
    spelled: Callable[..., str],
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return columns that are called like the first outcomes, and labels; None if there are none.

    A class may come later, or an outcome may be none of the classes: it is enough that two are
    called so, or one, if all columns of the family sum to 1.

    Raises
    ------
    FileError
        If several families may be meant.
    """
    values = labels_in(sample([outcome])[str(columns.index(outcome))])
    if not values or len(values) > _MOST_GUESSED or set(values) <= {"true", "false"}:
        return None
    others = [each for each in columns if each not in taken and columns.count(each) == 1]
    families = _families(others, values)
    if not families:
        return None
    numbers = _Numbers(columns, sample)
    if set(values) <= {"0", "1"}:  # of outcomes 0 or 1, unless there are columns for more
        found = [one for one in families if len(one.columns) > 2 and numbers.sum_up(one.columns)]
    else:
        whole = [one for one in families if one.called == len(values) > 1]
        found = whole or [one for one in families if one.called > 1 or numbers.sum_up(one.columns)]
    if len(found) > 1:
        found = [one for one in found if numbers.sum_up(one.columns)] or found
    if len(found) > 1:
        listed = "; ".join(", ".join(one.columns[:_MOST_NAMED]) for one in found[:_MOST_NAMED])
        reason = f"has several columns for each class ({listed}): name those to take"
        raise FileError(name, f"{reason} with {spelled('scores')}")
    if not found:
        return None
    (family,) = found
    scores = family.columns if family.bare is None else numbers.completed(family)
    labels = [family.label(column) for column in scores]
    return class_columns(name, columns, scores, labels, spelled)


def labels_in(outcome: pl.Series) -> list[str]:
    """Return the distinct outcomes of a sample, as names of columns would have them."""
    keys = dict.fromkeys(_text(value) for value in outcome.drop_nulls().unique(maintain_order=True))
    return [key for key in keys if key not in ("", "nan")]


@dataclass(frozen=True)
class _Family:
    """Columns that are called alike but for a class: what is before and after, in small letters.

    `called` is the number of outcomes that columns are called like; `bare` are all columns that
    might be of the family, if there is nothing before and after to tell.
    """

    before: str
    after: str
    columns: tuple[str, ...]
    called: int
    bare: tuple[str, ...] | None = None

    def label(self, column: str) -> str:
        return column[len(self.before) : len(column) - len(self.after)]


def _families(columns: Sequence[str], values: Sequence[str]) -> list[_Family]:
    """Return all families in which a column is called like an outcome, in the order of columns."""
    around: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        for value in values:
            for pair in _around(column.lower(), value):
                around.setdefault(pair, []).append(column)
    families = []
    for (before, after), called in around.items():
        members = tuple(called)
        if before or after:
            members = tuple(column for column in columns if _alike(column.lower(), before, after))
        bare = None if before or after else tuple(columns)
        families.append(_Family(before, after, members, len(called), bare))
    return [one for one in families if len(one.columns) > 1 or one.bare]


def _around(column: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and after a class in the name of a column, if it is a word there."""
    at = column.find(value)
    while at >= 0:
        before, after = column[:at], column[at + len(value) :]
        if before[-1:] in _EDGES and after[:1] in _EDGES:
            yield before, after
        at = column.find(value, at + 1)


def _alike(column: str, before: str, after: str) -> bool:
    inside = len(column) > len(before) + len(after)
    return inside and column.startswith(before) and column.endswith(after)


class _Numbers:
    """The first rows of some columns, as numbers."""

    def __init__(
        self, columns: Sequence[str], sample: Callable[[Sequence[str]], pl.DataFrame]
    ) -> None:
        self._columns = columns
        self._sample = sample

    def sum_up(self, columns: Sequence[str]) -> bool:
        """Whether rows sum to about 1, or to 100 %."""
        frame = self._sample(columns)
        total = sum((_numbers(frame[str(self._columns.index(one))]) for one in columns), start=0.0)
        sums = np.asarray(total)
        sums = sums[~np.isnan(sums)]
        return bool(len(sums)) and any(
            bool((np.abs(sums / whole - 1) < _ABOUT).all()) for whole in (1, 100)
        )

    def completed(self, family: _Family) -> tuple[str, ...]:
        """Return a bare family with the columns of classes that have not come, if those are clear.

        These are all columns of numbers, if they sum to 1 and the others do not.
        """
        if len(family.columns) > 1 and self.sum_up(family.columns):
            return family.columns
        frame = self._sample(family.bare or ())
        numeric = tuple(
            one
            for one in family.bare or ()
            if not np.isnan(_numbers(frame[str(self._columns.index(one))])).all()
        )
        return numeric if self.sum_up(numeric) else family.columns


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    """Return what looks like numbers, with or without a sign of percent; nan elsewhere."""
    import polars as pl

    try:
        text = column.cast(pl.String)
    except pl.exceptions.PolarsError:  # lists, say
        return np.full(len(column), np.nan)
    text = text.str.strip_chars().str.strip_suffix("%").str.replace(",", ".", literal=True)
    return text.str.strip_chars().cast(pl.Float64, strict=False).to_numpy()


def _beginnings(columns: Sequence[str], classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return what stands around every class in the name of some column: nothing, if it can be."""
    shared = [
        {pair for column in columns for pair in _around(column.lower(), label.lower())}
        for label in classes
    ]
    return sorted(
        set.intersection(*shared) if shared else (), key=lambda pair: (len(pair[0] + pair[1]), pair)
    )


def _called(columns: Sequence[str], name: str) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _key(label: str) -> str:
    return label.strip().lower()


def _text(value: object) -> str:
    """Return an outcome as the name of a column would have it: whole numbers without a point."""
    text = str(value).strip().lower()
    return text.removesuffix(".0")
