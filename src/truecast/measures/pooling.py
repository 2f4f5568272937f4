"""Few cells for many forecasts, and marks between which stretches of them lie.

Both depend on the forecasts, not on the outcomes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.measures.binned import reliability_bins
from truecast.tally import Tally, distinct

__all__ = ["Cells", "Marks", "cells_of", "marks_of", "pooled"]

_CELLS = 1 << 11  # forecasts that are told apart
_RANGES = 10
_MARKS = 40  # that share rounds, and as many that share variance, evenly
_EVERY = 128  # forecasts that are marks, all of them


class Cells(NamedTuple):
    """The pooled tally, and the least and greatest forecast in each of its cells."""

    tally: Tally
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Marks(NamedTuple):
    """Between which cells stretches begin and end; which of them bound the ranges and halves."""

    at: NDArray[np.int64]
    ranges: NDArray[np.int64]
    halves: NDArray[np.int64]


def cells_of(tally: Tally) -> Cells:
    """Return the tally, pooled."""
    starts = _starts(tally.p, _CELLS)
    ends = np.append(starts[1:], len(tally.p)) - 1
    return Cells(pooled(tally), tally.p[starts], tally.p[ends])


def pooled(tally: Tally, cells: int = _CELLS) -> Tally:
    """Return the tally with few forecasts, in cells as fine as that allows.

    Rare events are told apart, too.

    Rounds in a cell all get their mean forecast, as in `Tally.coarsened`, whose cells are not that
    fine.
    """
    starts = _starts(tally.p, cells)
    return tally if len(starts) == len(tally.p) else tally._pooled(starts)


def marks_of(tally: Tally) -> Marks:
    """Return marks by the forecasts, not the outcomes: then it is known what chance does."""
    n, p, weights = len(tally.p), tally.p, tally.weights
    edges = reliability_bins(tally, n_bins=_RANGES, strategy="quantile").edges[:-1]
    ranges = distinct(np.concatenate(([0], np.searchsorted(p, edges), [n])))
    halves = distinct(
        np.array([0, np.searchsorted(p, float(p @ weights) / tally.total, "right"), n])
    )
    even = (
        np.arange(n + 1)
        if n <= _EVERY
        else np.concatenate((_even(weights), _even(weights * p * (1 - p))))
    )
    return Marks(distinct(np.concatenate((ranges, halves, even))), ranges, halves)


def _even(weights: NDArray[Any]) -> NDArray[np.int64]:
    """Return marks between which there is about as much each.

    And those around single forecasts that have that much.
    """
    sums = np.append(0.0, np.cumsum(weights, dtype=np.float64))
    step = sums[-1] / _MARKS
    if not step:
        return np.array([0, len(weights)])
    heavy = np.flatnonzero(weights >= step)
    places = np.searchsorted(sums, step * np.arange(1, _MARKS))
    return distinct(np.concatenate((places, heavy, heavy + 1))).clip(0, len(weights))


def _starts(p: NDArray[np.float64], cells: int) -> NDArray[np.int64]:
    """Return the first forecast of each cell: of as many cells as are allowed, by halving them."""
    if len(p) <= cells:
        return np.arange(len(p))
    power = cells.bit_length() - 1
    found = _first(p, np.arange(1 << power), power)
    while power < 60 and len(halves := _halved(p, found, power)) <= cells:
        power += 1
        found = halves
    return found


def _halved(p: NDArray[np.float64], starts: NDArray[np.int64], power: int) -> NDArray[np.int64]:
    """Return the first forecasts of the halves of cells of width 2**-power.

    Where a double cannot tell the halves of a cell apart, it has one forecast, and stays whole.
    """
    cell = np.minimum(np.ldexp(p[starts], power).astype(np.int64), (1 << power) - 1)
    return distinct(np.concatenate((starts, _first(p, 2 * cell + 1, power + 1))))


def _first(p: NDArray[np.float64], cells: NDArray[np.int64], power: int) -> NDArray[np.int64]:
    """Return the first forecasts that are not below these cells, each once."""
    found = distinct(np.searchsorted(p, np.ldexp(cells.astype(np.float64), -power)))
    return found[found < len(p)]
