"""The ladder that splits its own cells: its exact sums, what is proved of them, and how it is saved.

A cell keeps what the forecasts made in it have deviated from their credited points. When that
reaches a threshold, the cell is split at its middle; the new point starts without bias, so whatever
was proved of the ladder stays true, and the grid becomes as fine as the outcomes make it worth
(docs/adaptive.md). No horizon is needed.

Points and biases are integers over 2**40.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from truecast import _check, _core
from truecast.certificate import Certificate, Parts, certify
from truecast.errors import StateError
from truecast.ladder import MAX_ROUNDS, fractions
from truecast.state import Saveable

__all__ = ["WHOLE", "SplitLadder"]

WHOLE = _core.WHOLE

if TYPE_CHECKING:
    _Core = _core.SplitLadder
else:  # a class can have but one base in the core
    _Core = type("_Core", (), {})


class SplitLadder(_Core, Saveable):
    """Points, biases and the deviation so far, all of them exact; what is proved of them.

    To be inherited beside a class of the core that splits its cells.
    """

    #: what the points and biases are numerators over
    denominator = WHOLE

    @property
    def deviation(self) -> Fraction:
        """D: the sum of the distances between each forecast and its credited point."""
        return Fraction(self._deviation, 2 * WHOLE)

    @property
    def bias_sums(self) -> tuple[Fraction, Fraction]:
        """A and B: the distances from the credited points to two calibrated sequences. O(m)."""
        return fractions(self._sums(), WHOLE)

    def a_priori(self, rounds: int) -> Fraction:
        """The bound on CalDist after so many rounds that is proved before the first, for the options at hand."""
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

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return {
            "rounds": self.rounds,
            "deviation": self._deviation,
            "squared_error": self.squared_error,
            "points": self.points.tolist(),
            "biases": self.biases.tolist(),
            "spent": self.spent.tolist(),
        }


def claimed(bound: Fraction, rounds: int, split: Fraction) -> Fraction:
    """Return a bound of docs/adaptive.md as far as it is claimed: beyond, cells may have become too small to split."""
    within = rounds <= split * WHOLE and bound < split * (_core.MOST_CELLS - 1)
    return min(bound, Fraction(rounds)) if within else Fraction(rounds)


def entries(state: object, kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the saved state if it has just these entries, of these types."""
    kinds = {
        "rounds": int,
        "deviation": int,
        "squared_error": float,
        "points": list,
        "biases": list,
        "spent": list,
    } | kinds
    if not isinstance(state, dict) or set(state) != set(kinds):
        raise StateError(f"the saved state must have exactly the entries {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(state[name]) is not kind:
            raise StateError(
                f"the saved {name} must be of type {kind.__name__}, got {state[name]!r:.80}"
            )
        if kind is list and any(type(number) is not int for number in state[name]):
            raise StateError(f"the saved {name} must be a list of int")
    return state


def number(state: dict[str, Any], name: str, least: float, most: float) -> None:
    """Refuse a saved number outside of a range."""
    if not least <= state[name] <= most:
        raise StateError(
            f"the saved {name} must be from {least} to {most}, got {state[name]!r:.80}"
        )


def core_state(state: dict[str, Any], threshold: int) -> dict[str, Any]:
    """Return what the core restores of the checked `entries` that all ladders which split have.

    Their cells are dyadic and have spent less than the threshold, over twice `WHOLE`.
    """
    points, biases, spent = state["points"], state["biases"], state["spent"]
    number(state, "rounds", 0, MAX_ROUNDS)
    number(state, "squared_error", 0, state["rounds"])
    _require_dyadic(points)
    if len(biases) != len(points) or len(spent) != len(points) - 1:
        raise StateError(
            f"the saved biases must be {len(points)} integers, and what the cells spent one less"
        )
    if biases[0] != 0 or biases[-1] != 0 or (state["rounds"] == 0 and any(biases)):
        raise StateError(
            "the saved biases of 0 and 1 must be 0, and all of them before the first round"
        )
    most = 1 << 62
    for j, bias in enumerate(biases):
        if (
            abs(bias) >= most
        ):  # so that it fits a machine word; what points can have, the ladders know
            raise StateError(
                f"the saved bias of point {j} must be from {-most} to {most}, got {bias!s:.80}"
            )
    split_no_more = len(spent) == _core.MOST_CELLS
    for i, deviation in enumerate(spent):
        if (
            not 0
            <= deviation
            < (most if split_no_more or points[i + 1] - points[i] == 1 else threshold)
        ):
            raise StateError(
                f"the saved spent of cell {i} must be below the threshold, got {deviation!s:.80}"
            )
    number(state, "deviation", sum(spent), 2 * WHOLE * state["rounds"])
    high, low = divmod(state["deviation"], 1 << 64)
    return {
        "points": np.array(points, np.int64),
        "biases": np.array(biases, np.int64),
        "spent": np.array(spent, np.uint64),
        "rounds": state["rounds"],
        "high": high,
        "low": low,
        "squared_error": state["squared_error"],
    }


def _require_dyadic(points: list[int]) -> None:
    """Refuse points other than those that splits at the middle make of 0 and 1."""
    if points[:1] != [0] or points[-1:] != [WHOLE] or len(points) > _core.MOST_CELLS + 1:
        raise StateError(
            f"the saved points must go from 0 to {WHOLE}, and be at most {_core.MOST_CELLS + 1}"
        )
    for low, high in pairwise(points):
        width = high - low
        if width <= 0 or width & (width - 1) or low % width:
            raise StateError(
                f"the saved points must be ends of split cells, got {low} and {high} next to each other"
            )
