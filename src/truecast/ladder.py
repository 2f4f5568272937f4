"""The ladder: the one state that every forecaster here is a small file over (docs/theory.md, section 2).

Points 0 = g_0 < g_1 < ... < g_m = 1, each with a bias; a *cell* is a pair of neighbours, *open*
when the bias of its left end is <= 0 and that of its right end >= 0. A forecast is made inside an
open cell. When the outcome y comes, the end of the cell that lies towards y is *credited*: its bias
grows by (point - y).

Points and biases are integers over one denominator, so that no number of rounds makes them drift.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.errors import StateError

__all__ = ["CELL_RULES", "CellRule", "Ladder"]

MAX_ROUNDS = 1 << 62

CellRule = Literal["walk", "lowest", "highest"]

#: rule -> the bias at which the walk leaves a left end (outcome 0) and a right end (outcome 1) behind, over the
#: denominator. Where a bias returns to exactly 0 two cells are open: "lowest" takes the lower, "highest" the higher
#: and "walk" stays. Theorem 2 of docs/theory.md: these walks find the lowest and the highest open cell.
CELL_RULES: dict[str, tuple[int, int]] = {"walk": (1, 0), "lowest": (0, 0), "highest": (1, 1)}


class Ladder(_core.Ladder):
    """Points, biases, the open cell, and the deviation so far; all of them exact.

    Parameters
    ----------
    points
        Numerators of the points, increasing from 0 to `denominator`.
    denominator
        What they are numerators over.
    says
        Shape (2, m): what is said in cell i when the outcome is y, over twice the denominator. A
        forecaster says the same for both outcomes; One-Step-Ahead does not.
    rule
        Which open cell to forecast in.
    """

    def __init__(
        self, points: NDArray[np.int64], denominator: int, says: NDArray[np.int64], rule: CellRule
    ) -> None:
        cells = len(points) - 1
        limits = np.repeat(np.array(CELL_RULES[rule], np.int64)[:, np.newaxis], cells, axis=1)
        limits[0, 0], limits[1, -1] = (
            1,
            0,
        )  # from the outermost cells there is nowhere further out to go
        start = {"walk": cells // 2, "lowest": 0, "highest": cells - 1}[rule]
        super().__init__(points, denominator, np.ascontiguousarray(says), limits, start)
        pays = abs(says - 2 * np.stack([points[:-1], points[1:]]))
        self._pays = int(pays.min()), int(pays.max())

    @property
    def deviation(self) -> Fraction:
        """D: the sum of the distances between each forecast and its credited point."""
        high, low = self._deviation_words
        return Fraction((high << 64) + low, 2 * self.denominator)

    @property
    def bias_sums(self) -> tuple[Fraction, Fraction]:
        """A and B: the distances from the credited points to two calibrated sequences. O(m)."""
        return fractions(self._sums(), self.denominator)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        high, low = self._deviation_words
        return {
            "rounds": self.rounds,
            "open_cell": self.open_cell,
            "issued": self.issued,
            "deviation": (high << 64) + low,
            "squared_error": self.squared_error,
            "biases": self.biases.tolist(),
        }

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        good = _checked(state, self.points, self.denominator, self._pays)
        high, low = divmod(good["deviation"], 1 << 64)
        biases = np.array(good["biases"], np.int64)
        self._restore(
            biases,
            good["open_cell"],
            good["rounds"],
            high,
            low,
            good["squared_error"],
            good["issued"],
        )


def fractions(sums: tuple[int, int, int, int], denominator: int) -> tuple[Fraction, Fraction]:
    """Return A and B of the integers that the core gives for them."""
    bias, pooled, rest, count = sums
    return Fraction(bias, denominator), Fraction(pooled * count + rest, count * denominator)


def _checked(
    state: object, points: NDArray[np.int64], denominator: int, pays: tuple[int, int]
) -> dict[str, Any]:
    """Return the state if it is one that the ladder with these points can be in, by its invariant."""
    kinds = {
        "rounds": int,
        "open_cell": int,
        "issued": bool,
        "deviation": int,
        "squared_error": float,
        "biases": list,
    }
    if not isinstance(state, dict) or set(state) != set(kinds):
        raise StateError(f"the saved state must have exactly the entries {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(state[name]) is not kind:
            raise StateError(
                f"the saved {name} must be of type {kind.__name__}, got {state[name]!r:.80}"
            )
    if any(type(bias) is not int for bias in state["biases"]) or len(state["biases"]) != len(
        points
    ):
        raise StateError(f"the saved biases must be {len(points)} integers")
    cells, rounds = len(points) - 1, state["rounds"]
    if not 0 <= state["open_cell"] < cells:
        raise StateError(
            f"the saved open_cell must be from 0 to {cells - 1}, got {state['open_cell']}"
        )
    ranges = {
        "rounds": (0, MAX_ROUNDS),
        "deviation": (pays[0] * rounds, pays[1] * rounds),
        "squared_error": (0, rounds),
    }
    for name, (least, most) in ranges.items():
        if not least <= state[name] <= most:
            raise StateError(
                f"the saved {name} must be from {least} to {most}, got {state[name]!r}"
            )
    if rounds == 0 and any(state["biases"]):
        raise StateError("the saved biases must be 0 before the first round")
    for j, (point, bias) in enumerate(zip(points.tolist(), state["biases"], strict=True)):
        least = 0 if j > state["open_cell"] or j == 0 else point - denominator
        most = 0 if j <= state["open_cell"] or j == cells else point
        if not least <= bias <= most:
            raise StateError(
                f"the saved bias of point {j} must be from {least} to {most}, got {bias}"
            )
    return cast("dict[str, Any]", state)
