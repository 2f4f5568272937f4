"""What a run of the recalibrator has done, and how good the scores were before and after."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecast.files.known import Known, Learned
from truecast.files.tallies import GrowingTally
from truecast.measures import smooth_calibration_error
from truecast.recalibrate import Recalibrator

__all__ = ["Measured", "RecalibrationResult"]

_FORECASTS = (
    1 << 18
)  # distinct ones that are kept apart; beyond that, those within 2**-18 are pooled


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
    known : Known or None
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
    known: Known | None = None


class Measured:
    """How good scores were, and what was made of them."""

    def __init__(self) -> None:
        self.rows = 0
        self._squares = np.zeros(2)
        self._tallies = GrowingTally(), GrowingTally()

    def add(self, learned: Learned) -> None:
        """Take note of some rounds."""
        self._squares += _squared_errors(learned)
        self.rows += len(learned.y)
        if len(learned.y):
            for tally, p in zip(self._tallies, (learned.score, learned.said), strict=True):
                tally.add(learned.y, p, most=_FORECASTS)

    def errors(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the Brier scores and the smooth calibration errors."""
        if not self.rows:
            return (math.nan, math.nan), (math.nan, math.nan)
        before, after = (self._squares / self.rows).tolist()
        of_scores, of_forecasts = (
            smooth_calibration_error(tally.compute()) for tally in self._tallies
        )
        return (before, after), (of_scores, of_forecasts)


def _squared_errors(learned: Learned) -> NDArray[np.float64]:
    return np.array([((p - learned.y) ** 2).sum() for p in (learned.score, learned.said)])
