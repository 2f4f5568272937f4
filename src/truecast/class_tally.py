"""The tally of forecasts of several classes: one tally a class, and one a predicted class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core, state
from truecast import _check_classes as check
from truecast._check_classes import Label
from truecast._names import rounds_or_weight
from truecast._threads import both
from truecast.errors import InputError, StateError
from truecast.tally import Tally

__all__ = ["ClassTally", "TopK"]

_TWO_THREADS = 1 << 18  # entries from which a second thread is worth starting


class TopK(NamedTuple):
    """Rows of probabilities with few entries each: those of the classes named, 0 for all others.

    For many classes, where whole rows would not fit in memory. What is not listed was forecast with
    probability 0: a row must list enough to sum to 1. Where only the first few of a long tail are
    known, either list the tail as one class of its own, or divide by the sums (`normalize=True`),
    which changes the forecasts.

    Attributes
    ----------
    indices : array of integers, of shape (rounds, k)
        Numbers of classes, each at most once in a row.
    values : array of shape (rounds, k)
        Their probabilities.

    Examples
    --------
    >>> import truecast as tc
    >>> rows = tc.TopK([[0, 7], [7, 3]], [[0.75, 0.25], [0.5, 0.5]])
    >>> tc.brier_score([0, 3], rows, labels=1000)
    0.3125
    """

    indices: ArrayLike
    values: ArrayLike


class ClassTally:
    """What measures of calibration need to know of forecasts of K classes.

    For every class, the tally of its probability against whether it came; for every class, the
    tally of its probability in the rounds in which it was the most probable one; and how often each
    class came when each was predicted. Tallies of parts add to the tally of the whole.

    It does not keep rows together: whether the whole vector is calibrated cannot be told from it.
    Nor from the rows, unless there are very many: a net of the simplex has a number of cells that
    grows exponentially in K (docs/measures.md, theorem 10).

    Attributes
    ----------
    labels : tuple of str or int
        The classes, in the order of columns.
    classes : tuple of Tally
        Class by class: forecast of the class, and whether it came.
    tops : tuple of Tally
        For each class, the rounds in which it was predicted: its forecast, and whether it came.
        Where several classes have the greatest probability, the first of them is predicted.
    confusion : array of shape (K, K)
        Rounds, or their weight, by predicted class (row) and actual class (column). Read-only.

    Examples
    --------
    >>> import truecast as tc
    >>> rows = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]
    >>> tally = tc.ClassTally.from_predictions(
    ...     ["home", "draw", "away"], rows, labels=["home", "draw", "away"]
    ... )
    >>> tally
    ClassTally of 3 rounds of 3 classes
    >>> tally["home"].ones, tally.confusion[0]
    (array([0, 1]), array([1, 0, 1]))
    """

    def __init__(
        self,
        labels: Iterable[Label],
        classes: Iterable[Tally],
        tops: Iterable[Tally],
        confusion: ArrayLike,
    ) -> None:
        self.labels = check.labels_of(tuple(labels))
        self.classes = tuple(classes)
        self.tops = tuple(tops)
        table = np.array(confusion)
        if table.shape != (len(self.labels),) * 2 or not (
            len(self.classes) == len(self.tops) == len(self.labels)
        ):
            raise InputError(
                "confusion", "must have a row and a column for each label", table.shape
            )
        self.confusion = table.astype(np.float64 if table.dtype.kind == "f" else np.int64)
        self.confusion.setflags(write=False)
        totals = {one.total for one in self.classes}
        totals |= {sum(top.total for top in self.tops), self.confusion.sum().item()}
        if not self.weighted and len(totals) > 1:
            rule = "must have as many rounds for each class as there are predicted ones"
            raise InputError("classes", rule, sorted(totals))

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        normalize: bool = False,
    ) -> ClassTally:
        """Return the tally of rounds.

        Parameters
        ----------
        y_true
            The class of each round: a label, or its number if there are no `labels`.
        y_prob
            Probabilities of shape (rounds, classes), or a `TopK`. Columns of a pandas or Polars
            frame are found by their names, which are the labels, with or without a common prefix
            such as ``p_``; columns of an array go by their position.
        labels
            The names of the classes in the order of the columns, such as ``model.classes_``; or how
            many classes there are.
        sample_weight
            A weight for each round, as in `Tally.from_predictions`.
        normalize
            Divide each row by its sum. Otherwise rows must sum to 1 within 1e-6; they are then
            taken as they are.

        Raises
        ------
        InputError
            If an outcome is none of the labels, a column is missing, a value is no probability, or
            a row does not sum to 1: with its position.

        Notes
        -----
        O(n K log n): about K times the cost of a `Tally`. With a `TopK` O(n k log n), whatever K.
        """
        parts: _Whole | _Few
        if isinstance(y_prob, TopK):
            known, y, parts = _of_few(y_true, y_prob, labels, normalize)
        else:
            known, y, rows = check.class_rounds(y_true, y_prob, labels, normalize)
            parts = _Whole(y, rows)
        weight = None
        if sample_weight is not None:
            weight = _check.sample_weight(sample_weight, y_true, None, len(y))
        pairs = _each(parts, len(known), weight)
        confusion = _confusion(parts.top, y, weight, len(known))
        return cls(known, (one for one, _ in pairs), (top for _, top in pairs), confusion)

    def __getitem__(self, label: Label) -> Tally:
        """Return the tally of one class: every measure of two classes takes it."""
        if label not in self.labels:
            raise InputError("label", f"must be one of {', '.join(map(repr, self.labels))}", label)
        return self.classes[self.labels.index(label)]

    @property
    def total(self) -> int | float:
        """The number of rounds, or the sum of the weights."""
        return self.classes[0].total

    @property
    def weighted(self) -> bool:
        """Whether there are real weights."""
        return self.classes[0].weighted

    @cached_property
    def confidence(self) -> Tally:
        """The tally of the greatest probability of each round, and whether that class came."""
        return Tally.merge(top for top in self.tops if top.total)

    def __add__(self, other: object) -> ClassTally:
        if not isinstance(other, ClassTally):
            return NotImplemented
        if other.labels != self.labels:
            raise InputError("labels", f"must be {self.labels} in both tallies", other.labels)
        return ClassTally(
            self.labels,
            (mine + theirs for mine, theirs in zip(self.classes, other.classes, strict=True)),
            (mine + theirs for mine, theirs in zip(self.tops, other.tops, strict=True)),
            self.confusion + other.confusion,
        )

    def __radd__(self, other: object) -> ClassTally:
        return self if other == 0 else NotImplemented  # so that sum() works

    @classmethod
    def merge(cls, tallies: Iterable[ClassTally]) -> ClassTally:
        """Return the sum of tallies of the same classes, such as those of shards."""
        level = [*tallies]
        if not level:
            raise InputError("tallies", "must be at least one ClassTally", level)
        while len(level) > 1:  # by pairs, as Tally.merge does
            level = [sum(level[at : at + 2]) for at in range(0, len(level), 2)]  # type: ignore[misc]
        return level[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassTally):
            return NotImplemented
        mine, theirs = (
            (one.labels, one.classes, one.tops, one.confusion.tolist()) for one in (self, other)
        )
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClassTally of {rounds_or_weight(self.total)} of {len(self.labels)} classes"

    def to_json(self) -> str:
        """Return the tally as versioned JSON."""
        import base64

        table = self.confusion.astype(self.confusion.dtype.newbyteorder("<"))
        content = {
            "classes": [tally.to_json() for tally in self.classes],
            "tops": [tally.to_json() for tally in self.tops],
            "confusion": base64.b64encode(table.tobytes()).decode(),
        }
        config = {"labels": list(self.labels), "weighted": self.confusion.dtype == np.float64}
        return state.to_json("ClassTally", config, content)

    @classmethod
    def from_json(cls, text: str) -> ClassTally:
        """Return the tally that `to_json` saved."""
        import base64

        config, content = state.from_json(text, "ClassTally")
        try:
            if not isinstance(content, dict):
                raise StateError("a saved tally of classes has columns")
            labels, kind = config["labels"], "<f8" if config["weighted"] else "<i8"
            table = np.frombuffer(base64.b64decode(content["confusion"], validate=True), kind)
            return cls(
                labels,
                map(Tally.from_json, content["classes"]),
                map(Tally.from_json, content["tops"]),
                table.reshape(len(labels), -1),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"this is not a saved tally of classes: {error}") from error


class _Entries(NamedTuple):
    """What there is of one class: forecasts, whether it came, whether it was predicted, and rows.

    In rounds that are not among them it was forecast with probability 0.
    """

    p: NDArray[np.float64]
    came: NDArray[np.bool_]
    top: NDArray[np.bool_]
    rows: NDArray[np.int64] | slice


class _Whole:
    """Rows with an entry for every class."""

    def __init__(self, y: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
        self.y = y
        self.rows = rows
        self.size = rows.size
        self.top = rows.argmax(axis=1) if len(rows) else np.empty(0, np.int64)

    def entries(self, k: int) -> _Entries:
        p = np.ascontiguousarray(self.rows[:, k])
        return _Entries(p, self.y == k, self.top == k, slice(None))


class _Few:
    """Rows with few entries, sorted by class."""

    def __init__(
        self,
        y: NDArray[np.int64],
        which: NDArray[np.int64],
        rows: NDArray[np.float64],
        classes: int,
    ) -> None:
        # the first of equals is that of the least class, as in whole rows
        best = rows == rows.max(axis=1, keepdims=True)
        self.y = y
        self.size = rows.size
        self.top = np.where(best, which, classes).min(axis=1)
        narrow = which.astype(np.uint16).ravel()  # of which numpy sorts by counting
        self._order = np.argsort(narrow, kind="stable")
        self._starts = np.append(0, np.cumsum(np.bincount(narrow, minlength=classes)))
        self.came = np.bincount(y, minlength=classes)
        self._p = rows.ravel()[self._order]
        self._width = rows.shape[1]

    def entries(self, k: int) -> _Entries:
        some = slice(self._starts[k], self._starts[k + 1])
        rows = self._order[some] // self._width
        return _Entries(self._p[some], self.y[rows] == k, self.top[rows] == k, rows)


def _of_few(
    y_true: Any, y_prob: TopK, labels: Any, normalize: bool
) -> tuple[tuple[Label, ...], NDArray[np.int64], _Few]:
    if labels is None:
        raise InputError("labels", "must be given beside a TopK: names, or how many", labels)
    known = check.labels_of(labels)
    y = check.class_numbers(y_true, known, stated=True)
    which = _check._numeric("y_prob", y_prob.indices, "must have indices that are integers")
    values = _check._numeric("y_prob", y_prob.values, "must have values that are probabilities")
    if which.ndim != 2 or which.shape != values.shape or which.dtype.kind not in "iu":
        rule = "must have indices, integers, and values of one shape (rounds, k)"
        raise InputError("y_prob", rule, (which.shape, values.shape))
    if len(which) != len(y) or not which.shape[1]:
        raise InputError(
            "y_prob", f"must have a row for each of the {len(y)} outcomes", which.shape
        )
    bad = (which < 0) | (which >= len(known))
    if bad.any():
        place = tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
        rule = f"must have indices from 0 to {len(known) - 1}"
        raise InputError("y_prob", rule, int(which[place]), place)
    twice = (np.diff(np.sort(which, axis=1), axis=1) == 0).any(axis=1)
    if twice.any():
        row = int(np.argmax(twice))
        raise InputError("y_prob", "must list a class once in a row", which[row].tolist(), row)
    rows = check.rows_that_sum(values, _check.flag("normalize", normalize))
    return known, y, _Few(y, which.astype(np.int64), rows, len(known))


def _each(
    parts: _Whole | _Few, classes: int, weight: NDArray[Any] | None
) -> list[tuple[Tally, Tally]]:
    """Return the two tallies of every class."""

    def some(numbers: Iterable[int]) -> Iterator[tuple[Tally, Tally]]:
        for k in numbers:
            entries = parts.entries(k)
            yield _counted(entries) if weight is None else _weighed(entries, weight)

    def rest(k: int, pair: tuple[Tally, Tally]) -> tuple[Tally, Tally]:
        """Add the rounds in which the class was not listed."""
        missing = _unlisted(parts, k, weight) if isinstance(parts, _Few) else Tally()
        return pair[0] + missing, pair[1]

    if parts.size < _TWO_THREADS:
        return [rest(k, pair) for k, pair in enumerate(some(range(classes)))]
    half = classes // 2  # sorting lets other threads run
    lower, upper = both(lambda: [*some(range(half))], lambda: [*some(range(half, classes))])
    return [rest(k, pair) for k, pair in enumerate([*lower, *upper])]


def _counted(entries: _Entries) -> tuple[Tally, Tally]:
    """Return the tallies of a class: of all its rounds, and of those in which it was predicted.

    Both by one sort: every round is one integer, the 62 bits of its forecast above two flags.
    """
    keys = (entries.p + 0.0).view(np.uint64) << np.uint64(2)
    keys |= entries.came
    keys |= entries.top.astype(np.uint64) << np.uint64(1)
    keys.sort()
    top = keys[(keys & np.uint64(2)) != 0]
    return _unpacked(keys), _unpacked(top)


def _unpacked(keys: NDArray[np.uint64]) -> Tally:
    """Return the tally of sorted keys."""
    packed = keys >> np.uint64(1) & ~np.uint64(1) | keys & np.uint64(1)
    zeros, ones = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    distinct = _core.unpack_rounds(packed, zeros, ones)
    for column in (packed, zeros, ones):
        column.resize(distinct, refcheck=False)  # nothing else looks at them any more
    return Tally._of(packed.view(np.float64), zeros, ones, len(keys))


def _weighed(entries: _Entries, weight: NDArray[Any]) -> tuple[Tally, Tally]:
    mine = weight[entries.rows]
    top = entries.top
    whole = Tally.from_predictions(entries.came, entries.p, sample_weight=mine)
    return whole, Tally.from_predictions(entries.came[top], entries.p[top], sample_weight=mine[top])


def _unlisted(parts: _Few, k: int, weight: NDArray[Any] | None) -> Tally:
    """Return the tally, at probability 0, of the rounds in which a class was not listed."""
    listed = parts.entries(k)
    if weight is None:
        came = int(parts.came[k]) - int(listed.came.sum())
        others = len(parts.y) - len(listed.p) - came
        return Tally([0.0], [others], [came])
    left = np.ones(len(parts.y), np.bool_)
    left[listed.rows] = False
    return Tally.from_predictions(
        parts.y[left] == k, np.zeros(int(left.sum())), sample_weight=weight[left]
    )


def _confusion(
    top: NDArray[np.int64], y: NDArray[np.int64], weight: NDArray[Any] | None, classes: int
) -> NDArray[Any]:
    pairs = top * classes + y
    if weight is None or weight.dtype == np.int64:
        table = np.bincount(pairs, weight, classes * classes).astype(np.int64)
    else:  # exact sums, rounded once, so that the order of rounds does not matter
        order = np.argsort(pairs, kind="stable")
        starts = np.searchsorted(pairs[order], np.arange(classes * classes + 1)).tolist()
        sorted_weights = weight[order].tolist()
        table = np.array([fsum(sorted_weights[a:b]) for a, b in pairwise(starts)])
    return table.reshape(classes, classes)


def as_class_tally(
    y_true: Any,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
) -> ClassTally:
    """Return the tally of what a measure was given; it must have at least one round."""
    if isinstance(y_true, ClassTally):
        given = {"y_prob": y_prob, "labels": labels, "sample_weight": sample_weight}
        for name, value in given.items():
            if value is not None:
                raise InputError(name, "must be left out beside a ClassTally", value)
        tally = y_true
    elif y_prob is None or isinstance(y_true, Tally):
        rule = "of shape (rounds, classes) is needed unless the first argument is a ClassTally"
        raise InputError("y_prob", rule, y_true)
    else:
        tally = ClassTally.from_predictions(
            y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
        )
    if not tally.total:
        raise InputError("y_true", "must have at least one round, of positive weight", tally)
    return tally


def of_classes(y_true: Any, y_prob: Any, labels: Any = None) -> bool:
    """Whether a measure was given forecasts of several classes."""
    rows = isinstance(y_true, ClassTally) or isinstance(y_prob, TopK)
    return rows or labels is not None or check.are_rows(y_prob)
