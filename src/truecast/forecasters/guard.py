"""The guard: follow a hint as far as the proof allows (docs/adaptive.md, section 3)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.certificate import Parts
from truecast.errors import StateError
from truecast.split_ladder import WHOLE, SplitLadder, core_state, entries, number

__all__ = ["Guard"]

MOST_SLACK = 1000.0
MOST_LATE = 1 << 20


class Guard(_core.Guarded, SplitLadder):
    def __init__(self, *, slack: float = 1.0, grid: int | None = None) -> None:
        self._slack = _check.within("slack", slack, 0.0, MOST_SLACK)
        self._grid = None if grid is None else _check.whole_number("grid", grid, least=1, most=_core.MOST_CELLS)
        cells = self._grid or 1
        points = np.array([WHOLE * i // cells for i in range(cells + 1)], np.int64)
        self._fixed = points if grid is not None else None
        self._allowed = math.floor(self._slack * WHOLE)
        share = 0 if grid is not None else 2 * WHOLE // 4  # of a bias at most, for which a cell is split
        self._threshold = (self._allowed + WHOLE) * share // WHOLE
        super().__init__(points, self._allowed, self._threshold, share)

    @property
    def slack(self) -> float:
        """How far beyond 0 the biases may go before a cell closes."""
        return self._slack

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this forecaster anew."""
        return {"slack": self._slack, "grid": self._grid}

    def guard_many(
        self, hints: ArrayLike, outcomes: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        y = _check.outcomes(outcomes)
        h = _check.probabilities("hints", hints, y, outcomes)
        said = np.empty(len(y)) if out is None else _check.output(out, y)
        self._run(h, y, said)
        return said

    def _bound(self, rounds: int) -> Fraction:
        return Fraction(rounds)

    @property
    def unknown(self) -> Fraction:
        """What the forecasts without outcome add to the certificate: the sum of max(p, 1 - p) over them."""
        return Fraction(self._unknown, 2 * WHOLE)

    @property
    def parts(self) -> Parts:
        """The exact sums that the certificate is made of. Costs O(cells)."""
        unresolved = self.unresolved + self.given_up
        a_priori = self.a_priori(self.rounds + unresolved)
        sums = self.deviation, self.bias_sums, self.squared_error, a_priori
        return Parts(self.rounds, *sums, unresolved, self.unknown)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        low, high, said = self._asked
        return super().state() | {
            "issued": self.issued,
            "asked_cell": [low, high] if self.issued else [],
            "asked": said if self.issued else 0.0,
            "unresolved": self.unresolved,
            "most_unresolved": self.most_unresolved,
            "given_up": self.given_up,
            "unknown": self._unknown,
        }

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        good = entries(
            state,
            {
                "issued": bool,
                "asked_cell": list,
                "asked": float,
                "unresolved": int,
                "most_unresolved": int,
                "given_up": int,
                "unknown": int,
            },
        )
        number(good, "most_unresolved", 0, MOST_LATE)
        number(good, "unresolved", 0, good["most_unresolved"])
        number(good, "given_up", 0, 1 << 62)
        without = good["unresolved"] + good["given_up"]
        number(good, "unknown", WHOLE * without, 2 * WHOLE * without)
        late = good["most_unresolved"]
        core = core_state(good, self._fixed, self._threshold + WHOLE // 2 * late)
        for j, (point, bias) in enumerate(zip(good["points"], good["biases"], strict=True)):
            least, most = -self._allowed - (late + 1) * (WHOLE - point), self._allowed + (late + 1) * point
            if not least <= bias <= most:
                raise StateError(f"the saved bias of point {j} must be from {least} to {most}, got {bias}")
        asked = _asked(good)
        high, low = divmod(good["unknown"], 1 << 64)
        self._restore(
            **core,
            asked=asked,
            issued=good["issued"],
            late=good["unresolved"],
            most_late=late,
            lost=good["given_up"],
            unknown_high=high,
            unknown_low=low,
        )


def _asked(state: dict[str, Any]) -> tuple[int, int, float]:
    """The forecast that awaits its outcome, if there is one: the ends of its cell, and what was said."""
    if not state["issued"]:
        return 0, 0, 0.0
    if len(state["asked_cell"]) != 2 or not set(state["asked_cell"]) <= set(state["points"]):
        raise StateError("the saved asked_cell must be two of the points")
    low, high = state["asked_cell"]
    if not low < high or not low <= state["asked"] * WHOLE <= high:
        raise StateError(f"the saved asked must lie in its cell, got {state['asked']!r}")
    return low, high, state["asked"]
