"""Sums over the forecasts of a tally in bins of equal width: what several pictures are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.tally import Tally

__all__ = ["even_edges", "frozen", "in_bins"]

_RARE = 0.25  # where all forecasts are below, or above 1 - this, the picture goes no further
_ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0)


def even_edges(bins: int, *tallies: Tally) -> NDArray[np.float64]:
    """Return edges of `bins` bins of equal width over [0, 1].

    Or over one end of it if all forecasts are close to that.
    """
    bins = _check.whole_number("bins", bins, least=1, most=10_000)
    low, high = min(tally.p[0] for tally in tallies), max(tally.p[-1] for tally in tallies)
    if 0 < high <= _RARE:
        return frozen(max(_round_above(high), high) * (np.arange(bins + 1) / bins))
    if 1 - _RARE <= low < 1:
        return frozen(
            1 - (1 - min(1 - _round_above(1 - low), low)) * (np.arange(bins, -1, -1) / bins)
        )
    return frozen(np.arange(bins + 1) / bins)


def in_bins(
    values: Callable[[slice], NDArray[Any]], p: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[Any]:
    """Return sums of values, of which there is one for each of the increasing `p`, in bins.

    By the rule of `Bins`; none is left out. They are asked for bin by bin.
    """
    ends = (*np.searchsorted(p, edges[1:-1]).tolist(), len(p))
    sums = np.zeros(len(ends) + 1, values(slice(0)).dtype)
    for k, (first, last) in enumerate(pairwise((0, *ends))):
        # added one by one, bin by bin: what is added stays in the cache
        sums[k + 1] = np.cumsum(np.append(sums[k], values(slice(first, last))))[-1]
    return frozen(np.diff(sums))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, which nobody can write to any more."""
    array.setflags(write=False)
    return array


def _round_above(number: float) -> float:
    """Return a short decimal number that is not below by more than rounding."""
    number = max(number * (1 - 1e-12), 1e-9)  # narrower bins would have no width
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in _ROUND if step * power >= number)
