"""The forecaster without a horizon: its ladder splits its own cells (docs/adaptive.md, section 1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.errors import StateError
from truecast.split_ladder import WHOLE, SplitLadder, core_state, entries, number

__all__ = ["HorizonFree"]

Place = Literal["outer", "middle"]
SPLITS = tuple(2.0**-k for k in range(11))


class HorizonFree(_core.Walk, SplitLadder):
    def __init__(self, *, at: Place = "outer", split: float = 0.25) -> None:
        _check.choice("at", at, ("outer", "middle"))
        self._at, self._split = at, _check.option("split", split, SPLITS)
        super().__init__(np.array([0, WHOLE], np.int64), int(2 * WHOLE * self._split), at == "middle")

    @property
    def at(self) -> Place:
        """Where in the cell the forecast lies."""
        return self._at

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this forecaster anew."""
        return {"at": self._at, "split": self._split}

    def _bound(self, rounds: int) -> Fraction:
        return Fraction(rounds)

    def forecast_many(self, outcomes: ArrayLike, *, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        y = _check.outcomes(outcomes)
        said = np.empty(len(y)) if out is None else _check.output(out, y)
        self._run(y, said)
        return said

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return super().state() | {"open_cell": self.open_cell, "issued": self.issued}

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        good = entries(state, {"open_cell": int, "issued": bool})
        core = core_state(good, None, int(2 * WHOLE * self._split))
        cell, biases, points = good["open_cell"], good["biases"], good["points"]
        number(good, "open_cell", 0, len(points) - 2)
        for j, (point, bias) in enumerate(zip(points, biases, strict=True)):
            least, most = (point - WHOLE, 0) if j <= cell else (0, point)
            if not least <= bias <= most:
                raise StateError(f"the saved bias of point {j} must be from {least} to {most}, got {bias}")
        self._restore(**core, cell=cell, issued=good["issued"])
