"""What a run of the recalibrator has done, and how good the scores were before and after."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.files.tallies import GrowingTally, members
from truecast.measures import smooth_calibration_error
from truecast.recalibrate import ClassRecalibrator, Recalibrator

if TYPE_CHECKING:
    from truecast.files.columns import Names
    from truecast.files.known import ForecastsById

__all__ = ["GroupErrors", "RecalibrationResult", "RunningErrors"]

# distinct forecasts that are kept apart; beyond that, those within 2**-18 are pooled
_FORECASTS = 1 << 18
_LEAST_FORECASTS = 1 << 10  # of each class or group


class GroupErrors(NamedTuple):
    """How good the scores of one group were, before and after, where outcomes were learned now."""

    learned: int
    brier: tuple[float, float]
    smooth: tuple[float, float]


@dataclass(frozen=True)
class RecalibrationResult:
    """What a run has done.

    Attributes
    ----------
    recalibrator : Recalibrator or ClassRecalibrator
        As it is after the last row.
    rows : int
        That were forecast now.
    earlier : int
        Rows of the file that had been forecast before.
    skipped, unknown : int
        Bad rows that were left out, and rows without an outcome so far.
    learned : int
        Outcomes that were learned now.
    lost : int
        Outcomes that came now and were not awaited any more.
    brier, smooth : tuple of float
        Brier score and smooth calibration error, of the scores and of what was made of them, where
        outcomes were learned now; nan if there are none. Beyond 2**18 distinct forecasts, those
        within 2**-18 are pooled for the smooth calibration error. Of several classes, both are
        sums over the classes, which share these 2**18.
    held : str or None
        Where the last line stands that was left out since it has no line break.
    forgotten : str or None
        The output of a run that was stopped before it was complete and is forgotten.
    known : ForecastsById or None
        All rows that are known by their ids, if they have such.
    groups : mapping of str to GroupErrors
        The same of each group of which outcomes were learned now, the largest first; those that the
        recalibrator does not tell apart are left out. They share 2**18 forecasts, too.
    """

    recalibrator: Recalibrator | ClassRecalibrator
    rows: int
    earlier: int
    skipped: int
    unknown: int
    learned: int
    lost: int
    brier: tuple[float, float]
    smooth: tuple[float, float]
    held: str | None = None
    forgotten: str | None = None
    known: ForecastsById | None = None
    groups: Mapping[str, GroupErrors] = field(default_factory=dict)


class RunningErrors:
    """How good scores were, and the forecasts that were made of them, as rounds come.

    Of several `classes`, outcomes are their numbers, scores and forecasts are rows, and errors are
    summed over the classes.

    Attributes
    ----------
    rounds : int
        So far.
    groups : dict
        The same of each group.
    """

    def __init__(self, classes: int | None = None) -> None:
        self.rounds = 0
        self.groups: dict[str, RunningErrors] = {}
        self._classes = classes
        self._squares = np.zeros(2)
        size = classes or 1
        self._most = max(_LEAST_FORECASTS, _FORECASTS // size)
        self._tallies = tuple([GrowingTally() for _ in range(size)] for _ in range(2))

    def add(
        self, y: NDArray[np.float64], scores: NDArray[np.float64], forecasts: NDArray[np.float64]
    ) -> None:
        """Take note of some rounds."""
        if not len(y):
            return
        self.rounds += len(y)
        for which, rows in enumerate((scores, forecasts)):
            for k, tally in enumerate(self._tallies[which]):
                came, p = (y, rows) if self._classes is None else (_came(y, k), rows[:, k])
                self._squares[which] += ((p - came) ** 2).sum()
                tally.add(came, p, most=self._most)

    def add_groups(
        self,
        group: pl.Series,
        names: Names,
        there: Container[Any],
        *columns: NDArray[np.float64],
    ) -> None:
        """Take note of some rounds group by group, from `Rounds.group`, for groups that are there.

        The columns are as in `add`.
        """
        for text, at in members(group):
            (found,) = names.members(pl.Series([text], dtype=pl.String)) or [None]
            for name in found if isinstance(found, tuple) else (found,):
                if name is not None and name in there:
                    some = self.groups.setdefault(name, RunningErrors(self._classes))
                    some._most = max(_LEAST_FORECASTS, self._most // len(self.groups))
                    some.add(*(column[at] for column in columns))

    def by_group(self) -> dict[str, GroupErrors]:
        """Return the errors of each group, the largest first."""
        largest = sorted(self.groups.items(), key=lambda item: -item[1].rounds)
        return {name: GroupErrors(some.rounds, *some.compute()) for name, some in largest}

    def compute(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return Brier scores and smooth calibration errors, before and after; nan of none."""
        if not self.rounds:
            return (math.nan, math.nan), (math.nan, math.nan)
        before, after = (self._squares / self.rounds).tolist()
        of_scores, of_forecasts = (
            math.fsum(smooth_calibration_error(tally.compute()) for tally in tallies)
            for tallies in self._tallies
        )
        return (before, after), (of_scores, of_forecasts)


def _came(y: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """1 where class k came, else 0."""
    return np.asarray(y == k, np.float64)
