"""The ladder that splits its own cells: its exact sums, their proof, and how it is saved.

A cell keeps what the forecasts made in it have deviated from their credited points. When that
reaches a threshold, the cell is split at its middle; the new point starts without bias, so whatever
was proved of the ladder stays true, and the grid becomes as fine as the outcomes make it worth
(docs/adaptive.md). No horizon is needed.

Points and biases are integers over 2**40.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from truecast import _check, _core
from truecast.certificate import Certificate, Parts, certify
from truecast.errors import StateError
from truecast.ladder import MAX_ROUNDS, fractions
from truecast.state import Entry, Saveable, require_ranges, typed

__all__ = ["DENOMINATOR", "SplitLadder"]

DENOMINATOR = _core.SPLIT_DENOMINATOR


class SplitLadder(_core.Walk, Saveable):
    """Points, biases and the deviation so far, all of them exact; what is proved of them."""

    #: what the points and biases are numerators over
    denominator = DENOMINATOR

    @property
    def deviation(self) -> Fraction:
        """D: the sum of the distances between each forecast and its credited point."""
        return Fraction(self._deviation, 2 * DENOMINATOR)

    @property
    def bias_sums(self) -> tuple[Fraction, Fraction]:
        """A and B: the distances from the credited points to two calibrated sequences. O(m)."""
        return fractions(self._sums(), DENOMINATOR)

    def a_priori(self, rounds: int) -> Fraction:
        """The bound on CalDist after `rounds` rounds, proved before the first."""
        return self._bound(_check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS))

    @abstractmethod
    def _bound(self, rounds: int) -> Fraction:
        """A theorem's bound, as a formula in the number of rounds."""

    @property
    def parts(self) -> Parts:
        """The exact sums that the certificate is made of. Costs O(cells)."""
        return Parts(
            self.rounds,
            self.deviation,
            self.bias_sums,
            self.squared_error,
            self.a_priori(self.rounds),
        )

    @property
    def certificate(self) -> Certificate:
        """What is proved about the forecasts so far. Costs O(cells)."""
        return certify(self.parts)


def claimed(bound: Fraction, rounds: int, split: Fraction) -> Fraction:
    """Return a bound of docs/adaptive.md as far as it is claimed.

    Beyond, cells may have become too small to split.
    """
    within = rounds <= split * DENOMINATOR and bound < split * (_core.MOST_CELLS - 1)
    return min(bound, Fraction(rounds)) if within else Fraction(rounds)


def checked(state: object, listed: Iterable[Any], threshold: int) -> dict[str, Any]:
    """Return a saved state of a ladder that splits, if its entries are those that are listed.

    Its cells are dyadic and have spent less than the threshold, over twice `DENOMINATOR`.
    """
    entries = [Entry(*each) for each in listed]
    good = typed(state, entries)
    points, biases, spent, rounds = (good[name] for name in ("points", "biases", "spent", "rounds"))
    _require_dyadic(points)
    if len(biases) != len(points) or len(spent) != len(points) - 1:
        raise StateError(
            f"the saved biases must be {len(points)} integers, and what the cells spent one less"
        )
    if biases[0] != 0 or biases[-1] != 0 or (rounds == 0 and any(biases)):
        raise StateError(
            "the saved biases of 0 and 1 must be 0, and all of them before the first round"
        )
    split_no_more = len(spent) == _core.MOST_CELLS
    for i, deviation in enumerate(spent):
        keeps = split_no_more or points[i + 1] - points[i] == 1
        if not 0 <= deviation < (1 << 62 if keeps else threshold):
            raise StateError(
                f"the saved spent of cell {i} must be below the threshold, got {deviation!s:.80}"
            )
    tighter = {
        "squared_error": (0, rounds),
        "deviation": (sum(spent), 2 * DENOMINATOR * rounds),
        "open_cell": (0, len(spent) - 1),
    }
    require_ranges(good, entries, tighter)
    return good


def _require_dyadic(points: list[int]) -> None:
    """Refuse points other than those that splits at the middle make of 0 and 1."""
    if points[:1] != [0] or points[-1:] != [DENOMINATOR] or len(points) > _core.MOST_CELLS + 1:
        raise StateError(
            f"the saved points must go from 0 to {DENOMINATOR}, "
            f"and be at most {_core.MOST_CELLS + 1}"
        )
    for low, high in pairwise(points):
        width = high - low
        if width <= 0 or width & (width - 1) or low % width:
            raise StateError(
                "the saved points must be ends of split cells, "
                f"got {low} and {high} next to each other"
            )
