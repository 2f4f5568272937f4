"""The shortest chain of groups as the kernel takes it: in integers, with prices, from either end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.distance.witness import Witness, grouped
from truecast.measures.prices import lipschitz
from truecast.tally import Tally

__all__ = ["NO_BOUNDS", "NO_TUBE", "Bounds", "Found", "Limits", "Problem", "Tube"]

_EMPTY, _NO_ROWS = np.empty(0), np.empty(0, np.int64)
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


class Limits(NamedTuple):
    """When a search has to give up; it stops when told to, and tells how far it has come."""

    memory: int
    seconds: float
    stop: NDArray[np.uint8]
    state: NDArray[np.float64]  # a value, and what chains cost at least up to there


NO_BOUNDS = Bounds(_EMPTY, _EMPTY)
NO_TUBE = Tube(_EMPTY, np.zeros(1), 0.0, _NO_ROWS, _NO_ROWS)


@dataclass(frozen=True)
class Found:
    """What a search has found.

    `length` is that of the shortest chain, `loss` what the search may have missed by leaving out
    values. `ended` is why it gave up, or empty.
    """

    ended: str
    length: float
    loss: float
    witness: Witness | None
    bounds: Bounds
    peak: int


@dataclass(frozen=True)
class Problem:
    """Sorted forecasts of zeros and ones in integers over 2^shift, a price for each, and prices of values."""

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
        shift = min(
            50, 60 - rounds.bit_length()
        )  # sums of a forecast and a price of each round fit into 62 bits
        prices = lipschitz(nodes, prices)
        x = np.rint(np.ldexp(tally.p, shift)).astype(np.int64)
        columns: list[_Column] = []
        worth = 0
        for count, price in zip((tally.zeros, tally.ones), prices, strict=True):
            # 2^-50 is four times the rounding of numbers below 1: two less is below the price,
            # whatever rounding does
            each = (
                np.floor(np.ldexp(np.interp(np.ldexp(x, -shift), nodes, price), shift)).astype(
                    np.int64
                )
                - 2
            )
            worth += int((each.astype(object) * count).sum())
            columns += [np.repeat(x, count), np.repeat(each, count)]
        # rounding the forecasts moves the distance by at most half a unit each (docs/distance.md,
        # theorem 9); what the conversion rounds is less than the margins of the prices
        return cls(
            rounds,
            shift,
            math.ldexp(2 * worth - rounds, -shift - 1),
            nodes,
            prices,
            (columns[0], columns[1], columns[2], columns[3]),
        )

    @property
    def slop(self) -> float:
        """More than all errors in a comparison that discards something."""
        return self.rounds * (math.ldexp(8.0, -self.shift) + 2.0**-46)

    def mirrored(self) -> Problem:
        """Return the problem seen from the other end: p -> 1 - p, y -> 1 - y (docs/distance.md, theorem 3)."""
        zeros, zero_prices, ones, one_prices = (column[::-1] for column in self.columns)
        whole = 1 << self.shift
        columns = (whole - ones, one_prices.copy(), whole - zeros, zero_prices.copy())
        return replace(self, columns=columns, mirror=not self.mirror)

    def search(
        self,
        limits: Limits,
        *,
        cut: float,
        budget: float | None = None,
        profile: bool = False,
        bounds: Bounds = NO_BOUNDS,
        tube: Tube = NO_TUBE,
        heavy: int = 64,
    ) -> Found:
        """Find the shortest chain within budget, leaving out values at a loss of at most 1.25 `cut` a round.

        With `profile`, the bounds that it returns hold for a search from the other end; they are
        taken at values with one in `heavy` of the points between their parents. In a tube, it finds
        chains but proves nothing.
        """
        found: dict[str, Any] = _core.search_chains(
            *self.columns,
            self.shift,
            self.nodes,
            self.prices[0],
            self.prices[1],
            mirrored=self.mirror,
            budget=2.0 * self.rounds if budget is None else budget,
            cut=cut,
            profile=profile,
            slop=self.slop,
            bound_values=bounds.values,
            bound_lengths=bounds.lengths,
            guide_values=tube.values,
            guide_zeros=tube.zeros,
            reach=tube.reach,
            tube_low=tube.low,
            tube_high=tube.high,
            memory=limits.memory,
            seconds=limits.seconds,
            stop=limits.stop,
            state=limits.state,
            heavy=heavy,
        )
        zeros, ones = found["zeros"], found["ones"]
        witness = (
            (grouped(ones[::-1], zeros[::-1]) if self.mirror else grouped(zeros, ones))
            if len(zeros)
            else None
        )
        lengths = np.maximum(found["lengths"][::-1] - found["loss"], 0.0)
        return Found(
            ("", "time", "memory", "stopped")[found["outcome"]],
            found["length"],
            found["loss"],
            witness,
            Bounds(1 - found["values"][::-1], lengths),
            found["peak"],
        )
