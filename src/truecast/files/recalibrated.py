"""What a run of the recalibrator has done, and how good the scores were before and after."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecast.files.tallies import GrowingTally
from truecast.measures import smooth_calibration_error
from truecast.recalibrate import Recalibrator

if TYPE_CHECKING:
    from truecast.files.known import ForecastsById

__all__ = ["RecalibrationResult", "RunningErrors"]

# distinct forecasts that are kept apart; beyond that, those within 2**-18 are pooled
_FORECASTS = 1 << 18


@dataclass(frozen=True)
class RecalibrationResult:
    """What a run has done.

    Attributes
    ----------
    recalibrator : Recalibrator
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
        within 2**-18 are pooled for the smooth calibration error.
    held : str or None
        Where the last line stands that was left out since it has no line break.
    forgotten : str or None
        The output of a run that was stopped before it was complete and is forgotten.
    known : ForecastsById or None
        All rows that are known by their ids, if they have such.
    """

    recalibrator: Recalibrator
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


class RunningErrors:
    """How good scores were, and the forecasts that were made of them, as rounds come.

    Attributes
    ----------
    rounds : int
        So far.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._squares = np.zeros(2)
        self._tallies = GrowingTally(), GrowingTally()

    def add(
        self, y: NDArray[np.float64], scores: NDArray[np.float64], forecasts: NDArray[np.float64]
    ) -> None:
        """Take note of some rounds."""
        if not len(y):
            return
        self.rounds += len(y)
        self._squares += [((p - y) ** 2).sum() for p in (scores, forecasts)]
        for tally, p in zip(self._tallies, (scores, forecasts), strict=True):
            tally.add(y, p, most=_FORECASTS)

    def compute(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return Brier scores and smooth calibration errors, before and after; nan of none."""
        if not self.rounds:
            return (math.nan, math.nan), (math.nan, math.nan)
        before, after = (self._squares / self.rounds).tolist()
        of_scores, of_forecasts = (
            smooth_calibration_error(tally.compute()) for tally in self._tallies
        )
        return (before, after), (of_scores, of_forecasts)
