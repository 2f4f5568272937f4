"""A rate that was known beforehand."""

from __future__ import annotations

from truecast import _check
from truecast.arena.forecasters.base import LiteratureForecaster

__all__ = ["Climatology"]


class Climatology(LiteratureForecaster):
    """Says the same rate in every round: knows the climate and nothing else.

    Calibrated if the rate is right, badly miscalibrated if it is wrong. It never learns.

    Parameters
    ----------
    rate
        What it says.

    Examples
    --------
    >>> Climatology(rate=0.3).forecast_many([1, 0]).tolist()
    [0.3, 0.3]
    """

    _options = ("_rate",)

    def __init__(self, *, rate: float = 0.5) -> None:
        super().__init__()
        self._rate = _check.probability("rate", rate)

    def _forecast(self) -> float:
        return self._rate

    def _learn(self, p: float, y: int) -> None:
        pass
