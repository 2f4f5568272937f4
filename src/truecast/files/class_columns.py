"""Which columns hold the probabilities of several classes.

Columns may be called like the classes, or all with the same beginning or end: ``p_home`` and
``p_draw``, ``home_prob`` and ``draw_prob``, ``P(home)`` and ``P(draw)``. Such columns are a family.
Without a separator, as in ``p0`` and ``p1``, they are one only if they sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecast._check_classes import MOST_CLASSES, readings, without_prefix
from truecast.errors import FileError
from truecast.files.cells import class_keys

if TYPE_CHECKING:
    import polars as pl

__all__ = ["are_classes", "class_columns", "guessed_classes", "labels_in", "outcomes_in"]

_EDGES = {"", *"_ .:/-()[]{}%"}  # of a word in the name of a column
_MOST_GUESSED = 50  # outcomes by which columns are found; or columns that may sum to 1
_MOST_NAMED = 6  # columns, and families, in a message
_ABOUT = 0.02  # by which the first rows may miss a sum of 1


def class_columns(
    name: str,
    columns: Sequence[str],
    scores: Sequence[str] | None,
    classes: Sequence[str] | None,
    spelled: Callable[..., str],
    outcomes: Sequence[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of several classes and their labels, from what was given of either.

    Without classes, these are called like the columns, less what all share at their beginning and
    end: such that the first `outcomes` are among them, if there is a way. Without columns, those
    are taken that are called like the classes, or all with the same beginning.
    """
    if scores is None:
        scores = _named_like(name, columns, classes or (), spelled)
    labels = tuple(classes or _labels_of(scores, outcomes))
    option = spelled("classes")
    if len(labels) != len(scores):
        reason = (
            f"must have as many classes ({option}) as columns of scores ({spelled('scores')}), "
            f"got {len(labels)} and {len(scores)}"
        )
        raise FileError(name, reason)
    if not 2 <= len(labels) <= MOST_CLASSES:
        how = spelled("scores") if classes is None else option
        one = f"; for outcomes 0 or 1, use {spelled('score')}" * (len(labels) < 2)
        raise FileError(name, f"must have from 2 to {MOST_CLASSES} classes ({how}){one}")
    _refuse_twice(name, scores, scores, spelled("scores"))
    _refuse_twice(name, labels, class_keys(labels), option)
    return tuple(scores), labels


def _refuse_twice(name: str, given: Sequence[str], keys: Sequence[str], how: str) -> None:
    """Refuse two that have one key: their outcomes could not be told apart."""
    first: dict[str, str] = {}
    for one, key in zip(given, keys, strict=True):
        if key not in first:
            first[key] = one
            continue
        before = first[key]
        if _key(before) != _key(one):
            reason = (
                f"cannot tell the class {before!r} from {one!r} ({how}): as outcomes they are one "
                f"number. Write them as words in the file, such as 'v{one}'"
            )
            raise FileError(name, reason)
        more = " (in any case)" if before != one else ""
        raise FileError(name, f"must have each class once ({how}); got {before!r} twice{more}")


def _labels_of(scores: Sequence[str], outcomes: Sequence[str]) -> Sequence[str]:
    """Return what columns call their classes: most of the outcomes, read in one way of all."""
    ways = [without_prefix(scores), *readings(scores)]
    return max(ways, key=lambda labels: len({_key(one) for one in labels} & {*outcomes}))


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
    values = labels_in(sample([outcome])[str(columns.index(outcome))])[:_MOST_GUESSED]
    if not values or set(values) <= {"true", "false"}:
        return None
    others = [each for each in columns if each not in taken and columns.count(each) == 1]
    numbers = _Numbers(columns, sample)
    families = [*filter(None, map(numbers.settled, _families(others, values)))]
    if set(values) <= {"0", "1"}:  # of outcomes 0 or 1, unless there are columns for more
        found = [one for one in families if len(one.columns) > 2 and numbers.sum_up(one.columns)]
        found = [one for one in found if one.called == len(values)]
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
    scores = numbers.completed(family)
    labels = [family.label(column) for column in scores]
    return class_columns(name, columns, scores, labels, spelled)


def are_classes(
    score: str,
    columns: Sequence[str],
    taken: set[str | None],
    sample: Callable[[Sequence[str]], pl.DataFrame],
) -> tuple[str, ...]:
    """Return the columns that sum to 1 together with a score, if it is one of three or more."""
    others = [each for each in columns if each not in taken and columns.count(each) == 1]
    if len(others) > _MOST_GUESSED:
        return ()
    numbers = _Numbers(columns, sample)
    found = zip(others, numbers.of(others), strict=True)
    likely = tuple(each for each, values in found if _are_shares(values))
    return likely if score in likely and len(likely) > 2 and numbers.sum_up(likely) else ()


def outcomes_in(outcome: pl.Series) -> dict[str, str]:
    """Return the distinct outcomes of a sample, as names of columns would have them.

    To each belongs how it is written where it first occurs.
    """
    found: dict[str, str] = {}
    for value in outcome.drop_nulls().unique(maintain_order=True):
        found.setdefault(_text(value), str(value).strip())
    return {key: written for key, written in found.items() if key not in ("", "nan")}


def labels_in(outcome: pl.Series) -> list[str]:
    """Return the distinct outcomes of a sample, as names of columns would have them."""
    return [*outcomes_in(outcome)]


@dataclass(frozen=True)
class _Family:
    """Columns that are called alike but for a class: what is before and after, in small letters.

    `called` is the number of outcomes that columns are called like; `perhaps` are all columns that
    might be of the family, if no separator tells.
    """

    before: str
    after: str
    columns: tuple[str, ...]
    called: int
    perhaps: tuple[str, ...] | None = None

    @property
    def glued(self) -> bool:
        """Whether no separator is between a class and what is before or after."""
        return not _are_edges(self.before, self.after)

    def label(self, column: str) -> str:
        return column[len(self.before) : len(column) - len(self.after)]


def _families(columns: Sequence[str], values: Sequence[str]) -> list[_Family]:
    """Return all families in which a column is called like an outcome, in the order of columns."""
    around: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        for value in values:
            for pair in _around(column.lower(), value):
                around.setdefault(pair, []).append(column)
    numbered = all(value.isdecimal() for value in values)
    families = []
    for (before, after), called in around.items():
        if len(called) == 1 and not _are_edges(before, after):
            continue
        members = tuple(column for column in columns if _alike(column.lower(), before, after))
        family = _Family(before, after, members, len(called))
        if family.glued:
            likely = tuple(one for one in members if not numbered or family.label(one).isdecimal())
            family = replace(family, columns=tuple(called), perhaps=likely)
        elif not (before or after):
            family = replace(family, columns=tuple(called), perhaps=tuple(columns))
        families.append(family)
    return [one for one in families if len(one.columns) > 1 or one.perhaps]


def _around(column: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before and after a class in the name of a column.

    A number must be a whole one there.
    """
    at = column.find(value)
    while at >= 0:
        before, after = column[:at], column[at + len(value) :]
        if not (_same_number(before, value) or _same_number(value, after)):
            yield before, after
        at = column.find(value, at + 1)


def _same_number(before: str, after: str) -> bool:
    return before[-1:].isdecimal() and after[:1].isdecimal()


def _are_edges(before: str, after: str) -> bool:
    """Whether what stands between them is a word."""
    return before[-1:] in _EDGES and after[:1] in _EDGES


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
        self._found: dict[str, NDArray[np.float64]] = {}

    def sum_up(self, columns: Sequence[str]) -> bool:
        """Whether rows sum to about 1, or to 100 %."""
        total = sum(self.of(columns), start=0.0)
        sums = np.asarray(total)
        sums = sums[~np.isnan(sums)]
        return bool(len(sums)) and any(
            bool((np.abs(sums / whole - 1) < _ABOUT).all()) for whole in (1, 100)
        )

    def settled(self, family: _Family) -> _Family | None:
        """Return a family, if what has no separators is one: its columns must sum to 1."""
        if not family.glued:
            return family
        columns = self.completed(family)
        if not self.sum_up(columns):
            return None
        return replace(family, columns=columns, perhaps=None)

    def completed(self, family: _Family) -> tuple[str, ...]:
        """Return a family with the columns of classes that have not come, if those are clear.

        These are all columns of numbers, if they sum to 1 and the others do not.
        """
        perhaps = family.perhaps
        if perhaps is None or (len(family.columns) > 1 and self.sum_up(family.columns)):
            return family.columns
        found = zip(perhaps, self.of(perhaps), strict=True)
        numeric = tuple(one for one, values in found if not np.isnan(values).all())
        return numeric if self.sum_up(numeric) else family.columns

    def of(self, columns: Sequence[str]) -> list[NDArray[np.float64]]:
        """Return the numbers in each, nan elsewhere."""
        new = [one for one in columns if one not in self._found]
        if new:
            frame = self._sample(new)
            self._found |= {one: _numbers(frame[str(self._columns.index(one))]) for one in new}
        return [self._found[one] for one in columns]


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    """Return what looks like numbers, with or without a sign of percent; nan elsewhere."""
    import polars as pl

    if column.dtype.is_numeric():
        return column.cast(pl.Float64).to_numpy()
    if column.dtype != pl.String:  # dates or lists, say
        return np.full(len(column), np.nan)
    text = column.str.strip_chars().str.strip_suffix("%").str.replace(",", ".", literal=True)
    return text.str.strip_chars().cast(pl.Float64, strict=False).to_numpy()


def _are_shares(values: NDArray[np.float64]) -> bool:
    """Whether all numbers may be probabilities, or percentages, and not all are 0 or 1."""
    values = values[~np.isnan(values)]
    inside = bool(((values >= 0) & (values <= 100)).all())
    return inside and not np.isin(values, (0, 1)).all()


def _beginnings(columns: Sequence[str], classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return what stands around every class in the name of some column: nothing, if it can be."""
    shared = [
        {pair for column in columns for pair in _around(column.lower(), label.lower())}
        for label in classes
    ]
    everywhere = set.intersection(*shared) if shared else ()
    return sorted(everywhere, key=lambda pair: (not _are_edges(*pair), len("".join(pair)), pair))


def _called(columns: Sequence[str], name: str) -> str:
    return next(column for column in columns if column.lower() == name.lower())


def _key(label: str) -> str:
    return label.strip().lower()


def _text(value: object) -> str:
    """Return an outcome as the name of a column would have it: whole numbers without a point."""
    text = str(value).strip().lower()
    return text.removesuffix(".0")
