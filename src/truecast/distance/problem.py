"""The shortest chain of groups as the kernel takes it: integers and prices, from either end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.distance.witness import Witness, grouped
from truecast.tally import Tally

__all__ = ["Bounds", "Found", "Problem", "Tube"]

_ENDINGS = ("", "time", "memory", "stopped")  # as the kernel counts them
_Column = NDArray[np.int64]


class Bounds(NamedTuple):
    """What the rest of a chain costs at least from a value on (docs/distance.md, theorem 8)."""

    values: NDArray[np.float64]
    lengths: NDArray[np.float64]


class Tube(NamedTuple):
    """The neighbourhood of a splitting of rounds, to look for good chains in."""

    values: NDArray[np.float64]  # of the splitting
    zeros: NDArray[np.float64]  # that it has placed before, between and after these
    reach: float  # how far from its values a step may be used
    low: NDArray[np.int64]  # the ones that may have been placed, for each number of zeros
    high: NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """What a search has found.

    `length` is at most `excess` above that of the shortest chain, if there is one within the
    budget less `loss`: what leaving out values costs at most. `ended` is why it gave up, or empty.
    `witness` is None if there is no such chain, or if memory was too short to trace it.
    """

    ended: str
    length: float
    loss: float
    excess: float
    witness: Witness | None
    bounds: Bounds
    peak: int
    kernel: _core.FoundChain


@dataclass(frozen=True)
class Problem:
    """Sorted forecasts of zeros and ones, a price for each, and prices of values.

    Forecasts and their prices are integers over 2^shift.
    """

    rounds: int
    shift: int
    worth: float
    nodes: NDArray[np.float64]
    prices: NDArray[np.float64]
    columns: tuple[_Column, _Column, _Column, _Column]  # zeros and their prices, ones and theirs
    mirror: bool = False

    @classmethod
    def of(cls, tally: Tally, nodes: NDArray[np.float64], prices: NDArray[np.float64]) -> Problem:
        """Return the problem of a tally with feasible prices."""
        rounds = int(tally.total)
        # sums of a forecast and a price of each round fit into 62 bits
        shift = min(50, 60 - rounds.bit_length())
        prices = _lipschitz(nodes, prices)
        x = np.rint(np.ldexp(tally.p, shift)).astype(np.int64)
        columns: list[_Column] = []
        worth = 0
        for count, price in zip((tally.zeros, tally.ones), prices, strict=True):
            # 2^-50 is four times the rounding of numbers below 1: two less is below the price,
            # whatever rounding does
            at_x = np.interp(np.ldexp(x, -shift), nodes, price)
            each = np.floor(np.ldexp(at_x, shift)).astype(np.int64) - 2
            worth += int((each.astype(object) * count).sum())
            columns += [np.repeat(x, count), np.repeat(each, count)]
        zeros, zero_prices, ones, one_prices = columns
        # rounding the forecasts moves the distance by at most half a unit each (docs/distance.md,
        # theorem 9); what the conversion rounds is less than the margins of the prices
        return cls(
            rounds,
            shift,
            math.ldexp(2 * worth - rounds, -shift - 1),
            nodes,
            prices,
            (zeros, zero_prices, ones, one_prices),
        )

    @property
    def slop(self) -> float:
        """More than all errors in a comparison that discards something."""
        return self.rounds * (math.ldexp(8.0, -self.shift) + 2.0**-46)

    @cached_property
    def _kernel(self) -> _core.ChainProblem:
        return _core.ChainProblem(
            *self.columns, self.shift, self.nodes, self.prices, mirrored=self.mirror
        )

    def mirrored(self) -> Problem:
        """Return the problem seen from the other end: p -> 1 - p, y -> 1 - y.

        See docs/distance.md, theorem 3.
        """
        zeros, zero_prices, ones, one_prices = (column[::-1] for column in self.columns)
        whole = 1 << self.shift
        columns = (whole - ones, one_prices.copy(), whole - zeros, zero_prices.copy())
        return replace(self, columns=columns, mirror=not self.mirror)

    def search(
        self,
        limits: _core.SearchLimits,
        *,
        cut: float,
        steepest: float | None = None,
        bridges: bool = False,
        budget: float | None = None,
        profile: bool = False,
        bounds: Bounds | None = None,
        tube: Tube | None = None,
        heavy: int = 64,
        other: Found | None = None,
    ) -> Found:
        """Find the shortest chain within budget.

        It leaves out values at a loss of at most `cut` + `steepest` a round, the latter for groups
        with zeros above and ones below (a quarter of `cut` unless given). With `bridges`, it makes
        up for the former, and lengths are nearly those of all chains. With `profile`, the bounds
        that it returns hold for a search from the other end; they are taken at values with one in
        `heavy` of the points between their parents. In a tube, it finds chains but proves nothing.
        `other` is what a search from the other end has found, with a profile, and a budget that
        exceeds this one by its loss.
        """
        found = self._kernel.search(
            limits,
            budget=2.0 * self.rounds if budget is None else budget,
            cut=cut,
            steepest=cut / 4 if steepest is None else steepest,
            bridges=bridges,
            profile=profile,
            slop=self.slop,
            heavy=heavy,
            bounds=bounds,
            tube=tube,
            other=None if other is None else other.kernel,
        )
        return Found(
            _ENDINGS[found.outcome],
            found.length,
            found.loss,
            found.excess,
            self._witness(found),
            # what was found up to a value bounds, from the other end, what comes after it
            Bounds(1 - found.values[::-1], np.maximum(found.lengths[::-1] - found.excess, 0.0)),
            found.peak,
            found,
        )

    def _witness(self, found: _core.FoundChain) -> Witness | None:
        if not len(found.zeros):
            return None
        if self.mirror:
            return grouped(found.ones[::-1], found.zeros[::-1])
        return grouped(found.zeros, found.ones)


def _lipschitz(nodes: NDArray[np.float64], prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the greatest prices below the given ones that change no faster than the places."""
    from_left = np.minimum.accumulate(prices - nodes, axis=1) + nodes
    from_right = np.minimum.accumulate((prices + nodes)[:, ::-1], axis=1)[:, ::-1] - nodes
    lowered: NDArray[np.float64] = np.ascontiguousarray(np.minimum(from_left, from_right))
    return lowered
