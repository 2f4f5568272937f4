"""The ladder: the state of the forecasters with a fixed grid (docs/theory.md, section 2).

Points 0 = g_0 < g_1 < ... < g_m = 1, each with a bias; a *cell* is a pair of neighbours, *open*
when the bias of its left end is <= 0 and that of its right end >= 0. A forecast is made inside an
open cell. When the outcome y comes, the end of the cell that lies towards y is *credited*: its bias
grows by (point - y).

Points and biases are integers over one denominator, so that no number of rounds makes them drift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from truecast import _core
from truecast.errors import StateError
from truecast.state import Entry, require_ranges, typed

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

__all__ = ["CELL_RULES", "CellRule", "Ladder"]

MAX_ROUNDS = 1 << 62

CellRule = Literal["walk", "lowest", "highest"]

#: rule -> the bias at which the walk leaves a left end (outcome 0) and a right end (outcome 1)
#: behind, over the denominator. Where a bias returns to exactly 0 two cells are open: "lowest"
#: takes the lower, "highest" the higher and "walk" stays. Theorem 2 of docs/theory.md: these walks
#: find the lowest and the highest open cell.
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
        # from the outermost cells there is nowhere further out to go
        limits[0, 0] = 1
        limits[1, -1] = 0
        start = {"walk": cells // 2, "lowest": 0, "highest": cells - 1}[rule]
        super().__init__(points, denominator, np.ascontiguousarray(says), limits, start)
        pays = abs(says - 2 * np.stack([points[:-1], points[1:]]))
        self._pays = int(pays.min()), int(pays.max())

    @property
    def deviation(self) -> Fraction:
        """D: the sum of the distances between each forecast and its credited point."""
        from fractions import Fraction

        return Fraction(self._deviation, 2 * self.denominator)

    @property
    def bias_sums(self) -> tuple[Fraction, Fraction]:
        """A and B: the distances from the credited points to two calibrated sequences. O(m)."""
        return fractions(self._sums(), self.denominator)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return self._saved()

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        entries = [Entry(*each) for each in self._entries()]
        good = typed(state, entries)
        rounds = good["rounds"]
        least, most = self._pays
        require_ranges(
            good,
            entries,
            {"deviation": (least * rounds, most * rounds), "squared_error": (0, rounds)},
        )
        self._require_biases(good["biases"], good["open_cell"], rounds)
        self._restore(good)

    def _require_biases(self, biases: list[int], open_cell: int, rounds: int) -> None:
        """Refuse biases that break the invariant of the ladder."""
        if rounds == 0 and any(biases):
            raise StateError("the saved biases must be 0 before the first round")
        for j, (point, bias) in enumerate(zip(self.points.tolist(), biases, strict=True)):
            least = 0 if j > open_cell or j == 0 else point - self.denominator
            most = 0 if j <= open_cell or j == self.cells else point
            if not least <= bias <= most:
                refuse_bias(j, bias, least, most)


def fractions(sums: tuple[int, int, int, int], denominator: int) -> tuple[Fraction, Fraction]:
    """Return A and B of the integers that the core gives for them."""
    bias, pooled, rest, count = sums
    from fractions import Fraction

    return Fraction(bias, denominator), Fraction(pooled * count + rest, count * denominator)


def refuse_bias(point: int, bias: int, least: int, most: int) -> NoReturn:
    """Refuse a saved bias, which is outside of this range."""
    raise StateError(
        f"the saved bias of point {point} must be from {least} to {most}, got {bias!s:.80}"
    )
