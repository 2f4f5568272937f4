"""The tallies of a file, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast._threads import Aside, each
from truecast.errors import FileError
from truecast.files.columns import Names
from truecast.files.pooled import PooledTally
from truecast.files.rounds import Rounds
from truecast.tally import RunningTally, Tally, shares

if TYPE_CHECKING:
    from truecast.class_tally import ClassTally

__all__ = [
    "MOST_FORECASTS",
    "ClassTallies",
    "GrowingTally",
    "Tallies",
    "class_tallies",
    "members",
    "tallies",
]

MOST_FORECASTS = 1 << 24  # distinct ones that are kept apart: about 400 MB
_LEAST_FORECASTS = 1 << 12  # that every group may have
_MOST_GROUPS = 100_000
_ROWS = 1 << 21  # counted at a time, at first or with weights
_LEAST_ROWS, _MOST_ROWS = 1 << 16, 1 << 23  # else, if there are few or many forecasts
_TIMES = 8  # as many rows as there are forecasts
_SAMPLE = 1 << 12  # rows that show whether there are few forecasts

Group = str | None


@dataclass(frozen=True, eq=False)
class Tallies:
    """What there is in a file.

    Attributes
    ----------
    name : str
        Of the file.
    names : Names
        Of its columns.
    scores : mapping
        The tally of each score.
    groups : mapping
        For each score, the tallies of the groups; empty if there are none.
    rows, skipped : int
        Rounds that were counted, and bad rows that were not.
    pooled : bool
        Whether there were too many distinct forecasts, and those within 2**-24 of each other were
        pooled (within at most 2**-12, in groups).
    """

    name: str
    names: Names
    scores: Mapping[str, Tally]
    groups: Mapping[str, Mapping[Group, Tally]]
    rows: int
    skipped: int
    pooled: bool


def tallies(
    name: str,
    names: Names,
    parts: Iterable[Rounds],
    progress: Callable[[int], None] = lambda rows: None,
) -> Tallies:
    """Count the rounds of a file called so.

    Raises
    ------
    FileError
        As `rounds` does; if no row is left, or there are more than 100,000 groups.
    """
    all_rounds = [GrowingTally() for _ in names.scores]
    groups: list[dict[Group, GrowingTally]] = [{} for _ in names.scores]
    rows = skipped = 0

    def add(part: Rounds) -> None:
        for which, p in enumerate(part.p):
            all_rounds[which].add(part.y, p, part.weight)
            if part.group is not None:
                _add_groups(groups[which], part, p)
                if len(groups[which]) > _MOST_GROUPS:
                    raise FileError(
                        name, f"has more than {_MOST_GROUPS:,} groups in column {names.group!r}"
                    )

    with Aside() as aside:  # counts a part while the next is read and checked
        for part in parts:
            rows = rows + len(part)
            skipped = skipped + part.skipped
            aside.do(partial(add, part))
            progress(rows)
        aside.wait()
    if not rows:
        raise FileError(name, f"has no good row: all {skipped:,} were skipped")
    of_scores = {
        score: whole.compute() for score, whole in zip(names.scores, all_rounds, strict=True)
    }
    if not all(tally.total for tally in of_scores.values()):
        raise FileError(name, f"has no row of positive weight in column {names.weight!r}")
    of_groups = {
        score: {
            group: _weighted_like(growing.compute(), of_scores[score])
            for group, growing in some.items()
        }
        for score, some in zip(names.scores, groups, strict=True)
        if some
    }
    pooled = any(
        growing.pooled
        for growing in [*all_rounds, *(each for some in groups for each in some.values())]
    )
    return Tallies(name, names, of_scores, of_groups, rows, skipped, pooled)


@dataclass(frozen=True, eq=False)
class ClassTallies:
    """What there is in a file of several classes.

    Attributes
    ----------
    name, names, rows, skipped, pooled
        As in `Tallies`.
    tally : ClassTally
    groups : mapping
        The tallies of the groups; empty if there are none.
    """

    name: str
    names: Names
    tally: ClassTally
    groups: Mapping[Group, ClassTally]
    rows: int
    skipped: int
    pooled: bool


def class_tallies(
    name: str,
    names: Names,
    parts: Iterable[Rounds],
    progress: Callable[[int], None] = lambda rows: None,
) -> ClassTallies:
    """Count the rounds of a file of several classes, in bounded memory.

    Raises
    ------
    FileError
        As `rounds` does; if no row is left, or there are more than 100,000 classes in groups.
    """
    size = len(names.labels)
    all_rounds = _GrowingClassTally(size)
    groups: dict[Group, _GrowingClassTally] = {}
    rows = skipped = 0
    for part in parts:
        rows += len(part)
        skipped += part.skipped
        counted = _ClassRounds(part.y.astype(np.int64), _predicted(part.p), part.p, part.weight)
        all_rounds.add(counted, MOST_FORECASTS)
        if part.group is not None:
            for group, at in members(part.group):
                most = MOST_FORECASTS // (len(groups) + 1)
                some = groups.setdefault(group, _GrowingClassTally(size))
                some.add(counted.at(at), most)
            if size * len(groups) > _MOST_GROUPS:
                reason = f"has more than {_MOST_GROUPS // size:,} groups of {size} classes"
                raise FileError(name, f"{reason} in column {names.group!r}")
        progress(rows)
    if not rows:
        raise FileError(name, f"has no good row: all {skipped:,} were skipped")
    tally = all_rounds.compute(names.labels)
    if not tally.total:
        raise FileError(name, f"has no row of positive weight in column {names.weight!r}")
    of_groups = {
        group: some.compute(names.labels, weighted=tally.weighted) for group, some in groups.items()
    }
    pooled = any(each.pooled for each in (all_rounds, *groups.values()))
    return ClassTallies(name, names, tally, of_groups, rows, skipped, pooled)


class _ClassRounds(NamedTuple):
    """Rounds of several classes: which came, which was predicted, forecasts class by class."""

    y: NDArray[np.int64]
    top: NDArray[np.int64]
    p: tuple[NDArray[np.float64], ...]
    weight: NDArray[Any] | None

    def at(self, places: NDArray[np.int64]) -> _ClassRounds:
        return _ClassRounds(
            self.y[places],
            self.top[places],
            tuple(p[places] for p in self.p),
            None if self.weight is None else self.weight[places],
        )


class _GrowingClassTally:
    """A tally of several classes that grows by parts, to a bounded number of forecasts."""

    def __init__(self, size: int) -> None:
        self._classes = [GrowingTally() for _ in range(size)]
        self._tops = [GrowingTally() for _ in range(size)]
        self._confusion = np.zeros(size * size)

    def add(self, part: _ClassRounds, most: int) -> None:
        """Add some rounds; of all classes together, keep about `most` forecasts apart."""
        size = len(self._classes)
        each = max(_LEAST_FORECASTS, most // (2 * size))
        y, top = part.y, part.top
        for k, p in enumerate(part.p):
            self._classes[k].add(y == k, p, part.weight, most=each)
            at = np.flatnonzero(top == k)
            weight = None if part.weight is None else part.weight[at]
            self._tops[k].add(y[at] == k, p[at], weight, most=each)
        self._confusion += np.bincount(top * size + y, part.weight, size * size)

    def compute(self, labels: tuple[str, ...], *, weighted: bool = False) -> ClassTally:
        """Return the tally of all that was added; weighted if it is, or if asked for."""
        from truecast.class_tally import ClassTally

        size = len(labels)
        found = [each.compute() for each in (*self._classes, *self._tops)]
        real = weighted or found[0].weighted
        if real:
            found = [_weighted(tally) for tally in found]
        table = self._confusion if real else self._confusion.astype(np.int64)
        return ClassTally(labels, found[:size], found[size:], table.reshape(size, size))

    @property
    def pooled(self) -> bool:
        return any(each.pooled for each in (*self._classes, *self._tops))


def _predicted(scores: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return the first of the most probable classes of each row."""
    best = scores[0].copy()
    top = np.zeros(len(best), np.int64)
    for k, p in enumerate(scores[1:], 1):
        better = p > best
        top[better] = k
        best[better] = p[better]
    return top


def _weighted_like(tally: Tally, whole: Tally) -> Tally:
    """Return the tally of a group, weighted if that of all is, even if its weights are whole."""
    return _weighted(tally) if whole.weighted else tally


def _weighted(tally: Tally) -> Tally:
    if tally.weighted:
        return tally
    return Tally(tally.p, tally.zeros.astype(np.float64), tally.ones.astype(np.float64))


class GrowingTally:
    """A tally that grows by parts of any size, to a bounded number of forecasts."""

    def __init__(self) -> None:
        self._tally = RunningTally()
        self._pooled: PooledTally | None = None  # instead, if there are too many forecasts
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._rows = 0

    @property
    def pooled(self) -> bool:
        """Whether there were too many distinct forecasts, and near ones share a cell."""
        return self._pooled is not None

    def add(
        self,
        y: NDArray[Any],
        p: NDArray[np.float64],
        weight: NDArray[Any] | None = None,
        most: int | None = None,
    ) -> None:
        """Add outcomes, 0 or 1, and forecasts, with their weights if there are any."""
        most = most or MOST_FORECASTS
        of_one = y != 0  # a byte each while they wait
        self._waiting.append((of_one, p) if weight is None else (of_one, p, weight))
        self._rows += len(p)
        if self._rows >= min(self._enough(), most):
            self._count(most)

    def _enough(self) -> int:
        """How many rows to count at a time: tallies of many forecasts, or cells, take long to add.

        Real weights are rounded when parts are added: which parts there are must not depend on the
        forecasts.
        """
        if self._pooled is not None:
            return self._pooled.cells // 4
        _, p, *weight = self._waiting[0]
        forecasts = self._tally.forecasts
        if weight or (not forecasts and _many_distinct(p)):
            return _ROWS
        return min(max(_TIMES * forecasts, _LEAST_ROWS), _MOST_ROWS)

    def _count(self, most: int) -> None:
        if not self._waiting:
            return
        if self._pooled is not None:
            self._pooled.limit(most)
            self._pooled.add(*self._columns())
            return
        y, p, *weight = self._columns()
        counted = Tally.from_predictions(y, p, sample_weight=weight[0] if weight else None)
        del y, p, weight  # the rows themselves are gone before tallies are merged
        self._tally.merge(counted)
        if self._tally.forecasts > most and len((tally := self._tally.compute()).p) > most:
            self._tally = RunningTally()
            self._pooled = PooledTally(most)
            self._pooled.merge(tally)

    def _columns(self) -> tuple[NDArray[Any], ...]:
        """Return the columns of the rows that wait, which then do no more."""
        columns = self._waiting[0]
        if len(self._waiting) > 1:
            parts = zip(*self._waiting, strict=True)
            columns = tuple(each(np.concatenate, parts, most=shares(self._rows)))
        self._waiting = []
        self._rows = 0
        return columns

    def compute(self) -> Tally:
        """Return the tally of all that was added."""
        self._count(MOST_FORECASTS)
        return self._tally.compute() if self._pooled is None else self._pooled.compute()


def _many_distinct(p: NDArray[np.float64]) -> bool:
    return len({*p[:_SAMPLE].tolist()}) > _SAMPLE // 2


def _add_groups(groups: dict[Group, GrowingTally], part: Rounds, p: NDArray[np.float64]) -> None:
    for group, at in members(part.group):
        weight = None if part.weight is None else part.weight[at]
        most = max(_LEAST_FORECASTS, MOST_FORECASTS // (len(groups) + 1))
        groups.setdefault(group, GrowingTally()).add(part.y[at], p[at], weight, most=most)


def members(group: pl.Series | None) -> Iterator[tuple[Group, NDArray[np.int64]]]:
    """Yield each group with the positions of its rounds."""
    frame = (
        pl.DataFrame({"group": group})
        .with_row_index("at")
        .group_by("group", maintain_order=True)
        .agg("at")
    )
    for name, at in zip(frame["group"], frame["at"], strict=True):
        yield name, at.to_numpy().astype(np.int64)
