"""Best prices: the linear programme of the lower distance, between two proven bounds.

See docs/measures.md, section 4.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.measures.corp import isotonic_blocks
from truecast.tally import Tally, distinct, stretches

__all__ = ["PriceBounds", "best_prices", "bounds_by_prices", "lipschitz"]

Array = NDArray[np.float64]

_CLOSE = 5e-8  # what best_prices asks for
_ITERATIONS = 500
_ROUNDS = 8
_GRID = 1 << 8  # nodes to start with, besides the forecasts
_MOST_NODES = 1 << 21  # of more forecasts, every second, third, ... is one
_FEW_NODES = 1 << 16  # the same, if the bounds may be as wide as this:
_WIDE = 1e-3
_PARTS = 64  # of a cell between two nodes, at most, in one round
_APART = 2.0**-40  # nodes that are closer are one
_EPSILON = 2.0**-52
_MANY = 1 << 6  # values, of which sums are faster by their leading bits
_SLACK = 2.0**-48  # more than both bounds can be off by rounding


class PriceBounds(NamedTuple):
    """Bounds of the lower distance, a mean per round, and their witnesses."""

    lower: float
    upper: float
    nodes: Array
    prices: Array
    values: Array
    atoms: Array


def best_prices(tally: Tally) -> tuple[Array, Array, Array, Array]:
    """Return nodes, prices, values and atoms.

    The prices are worth the most; the atoms are calibrated forecasts that cost the least.

    Nodes increase from 0.0 to 1.0. Prices, (2, nodes), are linear in between, 1-Lipschitz up to
    2**-50 between any two places, and keep (1 - v) A(v) + v B(v) <= 0 everywhere, rounding
    included. Values increase; atoms are masses per round, with ``sum((1 - values) * atoms)`` the
    share of zeros and ``sum(values * atoms)`` that of ones up to 2**-50. Their worth and their cost
    differ by 5e-8 of it or less, if rounding allows.
    """
    return bounds_by_prices(tally, _CLOSE)[2:]


def bounds_by_prices(tally: Tally, rtol: float) -> PriceBounds:
    """Return the best bounds found, within `rtol` of the upper one if nothing prevents it."""
    nodes, more = (
        np.array([0.0, 1.0]),
        _first_nodes(tally, _FEW_NODES if rtol >= _WIDE else _MOST_NODES),
    )
    # what needs no solver
    worth, cost = (0.0, nodes, np.zeros((2, 2))), _cost(*_rates(tally), tally)
    gap = math.inf
    stalled = 0
    for _ in range(_ROUNDS):
        nodes = _apart(np.concatenate((nodes, more)))
        prices, atoms = np.empty((2, len(nodes))), np.empty(len(nodes))
        masses = np.zeros_like(prices)
        _core.spread_counts(tally.p, tally.zeros, tally.ones, nodes, masses)
        masses /= tally.total
        _core.solve_prices(nodes, masses, rtol / 4, _ITERATIONS, prices, atoms)
        cost = min(cost, _cost(nodes, atoms, tally), key=lambda found: found[0])
        places, prices, more = _repaired(
            nodes, prices, tally.p, max(rtol / 8 * cost[0], 4 * _EPSILON)
        )
        worth = max(worth, _worth(places, prices, tally), key=lambda found: found[0])
        gap, previous = cost[0] - worth[0], gap
        stalled = stalled + 1 if gap > 0.7 * previous else 0
        if gap <= rtol * cost[0] or stalled == 2 or not len(more):
            break
    return PriceBounds(worth[0], cost[0], *worth[1:], *cost[1:])


def _worth(nodes: Array, prices: Array, tally: Tally) -> tuple[float, Array, Array]:
    """Return the lower bound, with what it is the worth of."""
    worth = 0.0
    for counts, side in zip((tally.zeros, tally.ones), prices, strict=True):
        parts: list[float] = []
        for some in stretches(len(tally.p)):
            parts += _parts(counts[some] / tally.total * np.interp(tally.p[some], nodes, side))
        worth += math.fsum(parts)
    return max(0.0, worth - _SLACK), nodes, prices


def _parts(values: Array) -> list[float]:
    """Return fewer numbers with the same sum, without rounding.

    Of many values, the leading bits are added first (Rump, Ogita and Oishi, 2008, ExtractVector):
    they are multiples of scale 2**-53, and any sum of them is at most scale / 2, so all are exact.
    """
    sums = []
    while len(values := values[values != 0]) > _MANY:
        _, exponent = math.frexp(float(np.abs(values).max()))
        scale = math.ldexp(1.0, exponent + len(values).bit_length() + 1)
        leading = (values + scale) - scale
        sums.append(float(leading.sum()))
        values = values - leading
    return [*sums, *values.tolist()]


def _cost(nodes: Array, masses: Array, tally: Tally) -> tuple[float, Array, Array]:
    """Return the upper bound, with values and masses per round that take all zeros and ones.

    Nodes from 0 to 1. Masses are scaled down until they need no more than there is; what is left
    over is foretold with certainty, which is calibrated.
    """
    of_zero, of_one = math.fsum((1 - nodes) * masses), math.fsum(nodes * masses)
    shrink = min(
        1.0, (1 - tally.rate) / of_zero if of_zero else 1.0, tally.rate / of_one if of_one else 1.0
    )
    masses = masses * shrink
    masses[0] += max(0.0, (1 - tally.rate) - of_zero * shrink)
    masses[-1] += max(0.0, tally.rate - of_one * shrink)
    values, masses = nodes[masses > 0], masses[masses > 0]
    to = (1 - values) * masses, values * masses
    cost = _core.transport_cost(tally.p, tally.zeros, values, to[0], tally.total)
    cost += _core.transport_cost(tally.p, tally.ones, values, to[1], tally.total)
    return cost + _SLACK, values, masses


def _rates(tally: Tally) -> tuple[Array, Array]:
    """Return what moving every forecast to its own rate leads to."""
    rates = [np.array([0.0, 1.0])]
    for some in stretches(len(tally.p)):
        zeros, ones = tally.zeros[some], tally.ones[some]
        both = (zeros > 0) & (ones > 0)  # only these have another rate than 0 or 1
        rates.append(ones[both] / (zeros[both] + ones[both]))
    nodes = distinct(np.concatenate(rates))
    masses = np.zeros(len(nodes))
    for some in stretches(len(tally.p)):
        weights = tally.zeros[some] + tally.ones[some]
        where = np.searchsorted(nodes, tally.ones[some] / weights)
        np.add.at(masses, where, weights / tally.total)
    return nodes, masses


def _first_nodes(tally: Tally, most: int) -> Array:
    _, zeros, ones = isotonic_blocks(tally.zeros, tally.ones)
    rates = ones / (zeros + ones)  # where calibrated forecasts are likely to be
    forecasts = tally.p[:: 1 + len(tally.p) // most]
    return np.concatenate(
        (np.linspace(0, 1, _GRID + 1), rates[:: 1 + len(rates) // _GRID], forecasts)
    )


def _apart(places: Array) -> Array:
    """Return them sorted, with 0 and 1, and without those that are too close to another.

    Everything is 1-Lipschitz: a forecast that is no node, but as close to one as `_APART`, costs no
    more than that.
    """
    places = distinct(places[(places > _APART) & (places < 1 - _APART)])
    # the first of each stretch of that length, and of two such neighbours that are closer than half
    # of it
    places = places[np.diff(np.floor(places / _APART), prepend=-1) > 0]
    places = places[np.diff(places, prepend=-1) >= _APART / 2]
    return np.concatenate(([0.0], places, [1.0]))


def lipschitz(nodes: Array, prices: Array) -> Array:
    """Return the greatest prices below the given ones that change no faster than the places."""
    from_left = np.minimum.accumulate(prices - nodes, axis=1) + nodes
    from_right = np.minimum.accumulate((prices + nodes)[:, ::-1], axis=1)[:, ::-1] - nodes
    lowered: Array = np.ascontiguousarray(np.minimum(from_left, from_right))
    return lowered


def _repaired(nodes: Array, prices: Array, p: Array, harmless: float) -> tuple[Array, Array, Array]:
    """Return places, prices that keep all rules everywhere, and nodes to add.

    Nodes are added where keeping the rules cost too much.

    At the nodes, prices become the greatest 1-Lipschitz functions below the given ones. Between two
    nodes (1 - v) A + v B is a parabola, that may be above 0. Where it is by more than `harmless`,
    and no forecast is inside, prices fall from both ends, as fast as they may, towards a kink. Then
    all prices are lowered by the greatest value left: taking d off A and off B takes d off it.
    """
    prices = np.maximum(prices, -1.0)  # still feasible: theorem 3 (b)
    prices = lipschitz(nodes, prices)
    cells = np.flatnonzero(_excess(nodes, prices) > harmless)
    cells = cells[
        np.searchsorted(p, nodes[cells], side="right") == np.searchsorted(p, nodes[cells + 1])
    ]
    left, right = nodes[cells], nodes[cells + 1]
    kinks = np.concatenate([(left + right + side[cells] - side[cells + 1]) / 2 for side in prices])
    cells = np.tile(cells, 2)
    inside = (kinks > nodes[cells]) & (kinks < nodes[cells + 1])
    kinks, order = np.unique(kinks[inside], return_index=True)
    cells = cells[inside][order]
    lowest = np.maximum(
        prices[:, cells] - (kinks - nodes[cells]), prices[:, cells + 1] - (nodes[cells + 1] - kinks)
    )
    places, prices = (
        np.insert(nodes, cells + 1, kinks),
        np.insert(prices, cells + 1, lowest, axis=1),
    )
    excess = _excess(places, prices)
    return (
        places,
        prices - (max(0.0, float(excess.max())) + 8 * _EPSILON),
        _between(places, excess, harmless),
    )


def _between(places: Array, excess: Array, harmless: float) -> Array:
    """Return new nodes that divide the cells with the worst excess.

    The excess goes with the square of a cell's width.

    The cells beside them are divided as finely: the best prices may be many, and move there.
    """
    broken = np.flatnonzero(excess > harmless)
    broken = broken[np.argsort(-excess[broken], kind="stable")[: _PARTS + len(excess) // _PARTS]]
    gaps, widths = np.diff(places), np.full(len(excess) + 2, math.inf)
    widths[broken + 1] = gaps[broken] / np.clip(np.sqrt(excess[broken] / harmless), 2, _PARTS)
    width = np.minimum(np.minimum(widths[:-2], widths[2:]), widths[1:-1])
    parts = np.ceil(np.clip(gaps / width, 1, _PARTS)).astype(np.int64)
    cells = np.repeat(np.arange(len(parts)), parts - 1)
    first = np.cumsum(parts - 1) - parts
    new: Array = places[cells] + gaps[cells] * (
        (np.arange(len(cells)) - first[cells]) / parts[cells]
    )
    return new


def _excess(places: Array, prices: Array) -> Array:
    """Return the greatest value of (1 - v) A + v B in each cell."""
    a, b = prices[:, :-1]
    left = places[:-1]
    gaps = np.diff(places)
    slope_a, slope_b = np.diff(prices, axis=1) / gaps
    # at left + x: q0 + q1 x + q2 x^2
    q0, q1, q2 = (
        (1 - left) * a + left * b,
        (1 - left) * slope_a + left * slope_b + b - a,
        slope_b - slope_a,
    )
    x = np.clip(np.divide(-q1, 2 * q2, out=np.zeros_like(q1), where=q2 < 0), 0, gaps)
    ends = (1 - places) * prices[0] + places * prices[1]
    greatest: Array = np.maximum(q0 + q1 * x + q2 * x * x, np.maximum(ends[:-1], ends[1:]))
    return greatest
