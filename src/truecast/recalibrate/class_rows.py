"""What a recalibrator for classes is given: labels, and rows with a score for each of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._check_classes import are_listed, columns_called, readings, refuse_twice
from truecast.errors import InputError

__all__ = ["Label", "Labels"]

Label = str | int

MAX_CLASSES = 4096
TOLERANCE = 1e-6  # of the sum of a row

_SUM = "must have rows that sum to 1 (within 1e-6)"
REMEDY = "normalize=True divides each by its sum, scale='logit' takes any finite numbers"


class Labels:
    """The classes, in the order of the columns; fixed for good."""

    def __init__(self, classes: Any) -> None:
        self.names = _names(classes)
        self.plain = self.names == tuple(range(len(self.names)))
        self._numbers: dict[Hashable, int] = {name: k for k, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def config(self) -> int | list[Label]:
        """What builds this anew."""
        return len(self) if self.plain else list(self.names)

    def number(self, label: Any, argument: str = "outcome", position: int | None = None) -> int:
        """The column of a label, or InputError."""
        try:
            return self._numbers[label]
        except (KeyError, TypeError):
            rule = f"must be one of the classes, which are fixed at the start: {self._listed}"
            raise InputError(argument, rule, label, position) from None

    def numbers(self, labels: Any, argument: str = "outcomes") -> NDArray[np.int64]:
        """The columns of many labels, or InputError."""
        _check._refuse_masked(argument, "must have no masked entries", labels)
        _check._refuse_unordered(argument, labels)
        column = labels if isinstance(labels, np.ndarray) else np.asarray(labels)
        if column.ndim != 1:
            raise InputError(argument, "must be one label a row", f"shape {column.shape}")
        if self.plain and column.dtype.kind in "iu":
            bad = (column < 0) | (column >= len(self))
            if bad.any():
                at = int(bad.argmax())
                self.number(column[at].item(), argument, at)
            return np.ascontiguousarray(column, np.int64)
        entries = column.tolist() if isinstance(labels, np.ndarray) else list(labels)
        found = (self.number(label, argument, at) for at, label in enumerate(entries))
        return np.fromiter(found, np.int64, len(column))

    def row(
        self,
        scores: Any,
        *,
        scale: str,
        normalize: bool,
        argument: str = "scores",
        remedy: str = REMEDY,
    ) -> NDArray[np.float64]:
        """The scores of one round, one of each class; by their names, if they have names."""
        scores = self._named(scores, argument)
        row = _floats(scores, argument)
        if row is None or row.shape != (len(self),):
            rule = f"must be {len(self)} numbers, one of each class"
            raise InputError(argument, rule, scores)
        place = _Place(argument, remedy, one=True)
        return _checked(row.reshape(1, -1), scale, normalize, place).reshape(-1)

    def _named(self, scores: Any, argument: str) -> Any:
        """Of a dict, or of a row of a pandas frame, the scores of the classes; others as they are.

        An array, a list and a series without names go by position.
        """
        if not hasattr(scores, "keys"):
            return scores
        chosen = self._chosen([*scores.keys()], argument, "score", "a list")
        return scores if chosen is None else [scores[name] for name in chosen]

    def rows(
        self,
        scores: Any,
        *,
        scale: str,
        normalize: bool,
        argument: str = "scores",
        remedy: str = REMEDY,
    ) -> NDArray[np.float64]:
        """A row of scores for each round; a frame may have its columns in any order."""
        table = self._table(self._columns(scores, argument), argument)
        return _checked(table, scale, normalize, _Place(argument, remedy, one=False))

    def _columns(self, scores: Any, argument: str) -> Any:
        """Of a frame, the columns of the classes, by their names; others go by position.

        A column is called like its class, or all have the same beginning or end beside it.
        """
        found = getattr(
            scores, "column_names", getattr(scores, "columns", None)
        )  # Arrow, or others
        if found is None:
            return scores
        chosen = self._chosen(list(found), argument, "column", ".to_numpy()")
        if chosen is None:
            return scores
        return np.column_stack([np.asarray(scores[name]) for name in chosen])

    def _chosen(
        self, names: Sequence[Any], argument: str, of: str, unnamed: str
    ) -> list[Any] | None:
        """Of the names of scores, those of the classes; None if they are only numbered."""
        chosen, missing = columns_called(names, self.names)
        if missing is None:
            refuse_twice(argument, names, chosen)
            return chosen
        if _are_numbered(names):
            return None
        rule = (
            f"must have a {of} for each class: {missing!r} is missing. Name {of}s like the "
            f"classes, such as {missing!r} or 'p_{missing}', or pass {unnamed} to go by position"
        )
        raise InputError(argument, rule, names)

    def _table(self, scores: Any, argument: str) -> NDArray[np.float64]:
        rule = f"must be numbers of shape (rounds, {len(self)}), a column for each class"
        table = _floats(scores, argument)
        if table is None:
            raise InputError(argument, rule, scores)
        if table.shape == (0,):
            table = table.reshape(0, len(self))
        if table.ndim != 2 or table.shape[1] != len(self):
            raise InputError(argument, rule, f"shape {table.shape}")
        return np.require(table, requirements=["C", "A"])

    @property
    def _listed(self) -> str:
        shown = ", ".join(repr(name) for name in self.names[:8])
        return shown if len(self) <= 8 else f"{shown} and {len(self) - 8} more"


def _are_numbered(names: Sequence[Any]) -> bool:
    """Whether columns have no names but their numbers, in order: 0, 1, or column_0, column_1."""
    numbers = readings([str(name) for name in names])[-1]
    return any(
        numbers == [str(number) for number in range(first, first + len(names))] for first in (0, 1)
    )


class _Place(NamedTuple):
    """Where scores come from: the argument, what to do about wrong sums, and if it is one row."""

    argument: str
    remedy: str
    one: bool


def _floats(scores: Any, argument: str) -> NDArray[np.float64] | None:
    """Scores as an array; None if they are no numbers."""
    _check._refuse_masked(argument, "must have no masked entries", scores)
    try:
        found = np.asarray(scores)
        return None if found.dtype.kind in "cmM" else np.asarray(found, np.float64)
    except (TypeError, ValueError):
        return None


def _checked(
    table: NDArray[np.float64], scale: str, normalize: bool, place: _Place
) -> NDArray[np.float64]:
    if scale == "logit":
        _refuse(~np.isfinite(table), "must be finite numbers", table, place)
        return table
    good = (table >= 0) & (np.isfinite(table) if normalize else table <= 1)
    rule = "must be numbers from 0 on" if normalize else "must be numbers between 0 and 1"
    _refuse(~good, rule, table, place)
    if normalize:
        return _normalized(table, place)
    sums = table.sum(axis=1)
    bad = np.abs(sums - 1) > TOLERANCE
    if bad.any():
        _refuse_sum(sums, bad, f"{_SUM}: {place.remedy}", place)
    return table


def _normalized(table: NDArray[np.float64], place: _Place) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        sums = table.sum(axis=1)
    bad = ~(sums > 0) | ~np.isfinite(sums)
    if bad.any():
        _refuse_sum(sums, bad, "must have rows with a positive sum that is finite", place)
    return np.ascontiguousarray(table / sums[:, None])


def _refuse_sum(
    sums: NDArray[np.float64], bad: NDArray[np.bool_], rule: str, place: _Place
) -> NoReturn:
    at = int(bad.argmax())
    raise InputError(place.argument, rule, float(sums[at]), None if place.one else at)


def _refuse(bad: NDArray[np.bool_], rule: str, table: NDArray[np.float64], place: _Place) -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        at = column if place.one else (row, column)
        raise InputError(place.argument, rule, float(table[row, column]), at)


def _names(classes: Any) -> tuple[Label, ...]:
    """The labels: as many whole numbers from 0, or the given names."""
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        return tuple(range(_check.whole_number("classes", classes, least=2, most=MAX_CLASSES)))
    rule = f"must be a number, or a list of 2 to {MAX_CLASSES} distinct names (str or int)"
    if not are_listed(classes):
        raise InputError("classes", rule, classes)
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in classes)
    if any(type(name) not in (str, int) for name in names):
        raise InputError("classes", rule, classes)
    if not 2 <= len(names) <= MAX_CLASSES:
        raise InputError("classes", rule, classes)
    seen: set[Label] = set()
    for place, name in enumerate(names):
        if name in seen:
            raise InputError("classes", "must name each class once", name, place)
        seen.add(name)
    return names
