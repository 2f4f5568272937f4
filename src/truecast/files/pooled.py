"""A tally of cells, for more distinct forecasts than are kept apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.tally import Tally

__all__ = ["PooledTally"]


class PooledTally:
    """Rounds counted in cells of equal width; those of a cell all get their mean forecast.

    As `Tally.coarsened`, but a round is counted where it falls: nothing is sorted or merged.

    Parameters
    ----------
    most
        There are no more cells than this, and more than half as many: a power of two, so that the
        edges of cells are exact.

    Attributes
    ----------
    cells : int
    """

    def __init__(self, most: int) -> None:
        self.cells = 1 << (most.bit_length() - 1)
        self._counts = np.zeros(2 * self.cells)  # of 0 and of 1, cell by cell
        self._sums = np.zeros(self.cells)  # of forecasts
        self._whole = True

    def add(
        self, y: NDArray[Any], p: NDArray[np.float64], weight: NDArray[Any] | None = None
    ) -> None:
        """Add rounds, which cost least if there are about as many as cells."""
        cell = np.minimum((p * self.cells).astype(np.int64), self.cells - 1)
        self._sums += np.bincount(cell, p if weight is None else p * weight, self.cells)
        cell *= 2
        cell += y
        self._counts += np.bincount(cell, weight, 2 * self.cells)
        self._whole &= weight is None or weight.dtype.kind != "f"

    def merge(self, tally: Tally) -> None:
        """Add the rounds of a tally."""
        for outcome, weight in enumerate((tally.zeros, tally.ones)):
            self.add(np.full(len(tally.p), outcome, bool), tally.p, weight)

    def limit(self, most: int) -> None:
        """Have no more cells than this from now on."""
        if most >= self.cells:
            return
        coarser = PooledTally(most)
        coarser._counts += self._counts.reshape(coarser.cells, -1, 2).sum(axis=1).ravel()
        coarser._sums += self._sums.reshape(coarser.cells, -1).sum(axis=1)
        vars(self).update(vars(coarser), _whole=self._whole)

    def compute(self) -> Tally:
        """Return the tally so far."""
        zeros, ones = self._counts.reshape(-1, 2).T
        total = zeros + ones
        cell = np.flatnonzero(total)
        kind = np.int64 if self._whole else np.float64
        # rounding must not leave the cell; the last one ends with 1 itself
        last = np.nextafter((cell + 1) / self.cells, 0.0)
        last[cell == self.cells - 1] = 1.0
        mean = np.clip(self._sums[cell] / total[cell], cell / self.cells, last)
        return Tally(mean, zeros[cell].astype(kind), ones[cell].astype(kind))
