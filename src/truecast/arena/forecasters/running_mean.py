"""The share of ones so far."""

from __future__ import annotations

from typing import Any

from truecast.arena.forecasters.base import LiteratureForecaster
from truecast.errors import StateError

__all__ = ["RunningMean"]


class RunningMean(LiteratureForecaster):
    """Says the share of ones among the outcomes so far, with half a one and half a zero added.

    What Krichevsky and Trofimov (1981) bet by: the log loss exceeds that of the best constant
    forecast by at most ln(T)/2 + ln 2. Nothing is proved about its calibration, and there is
    nothing to prove: outcomes that begin with ones and end with zeros leave it far off for ever.

    A round costs O(1).

    Examples
    --------
    >>> RunningMean().forecast_many([1, 1, 0]).round(3).tolist()
    [0.5, 0.75, 0.833]
    """

    def __init__(self) -> None:
        super().__init__(ones=[0])

    def _forecast(self) -> float:
        return float((self._memory["ones"][0] + 0.5) / (self._rounds + 1))

    def _learn(self, p: float, y: int) -> None:
        self._memory["ones"][0] += y

    def _refuse(self, state: dict[str, Any]) -> None:
        if not 0 <= state["ones"][0] <= state["rounds"]:
            raise StateError(
                f"the saved ones must be from 0 to the {state['rounds']} rounds, "
                f"got {state['ones'][0]}"
            )
