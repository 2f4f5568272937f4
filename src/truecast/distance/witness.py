"""The nearest calibrated forecasts, and a check that anyone can run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast._names import counted
from truecast.errors import InputError
from truecast.tally import Tally, as_tally

__all__ = ["Witness", "verify_witness"]


@dataclass(frozen=True, eq=False)
class Witness:
    """Perfectly calibrated forecasts, as groups of rounds.

    The groups are in increasing order of value. Each takes the next zeros and the next ones, both
    in increasing order of their forecasts, and forecasts the share of ones among them. So it is
    calibrated for any counts.

    Attributes
    ----------
    zeros, ones : arrays of int64
        The numbers of zeros and ones in each group.
    """

    zeros: NDArray[np.int64]
    ones: NDArray[np.int64]

    @property
    def values(self) -> NDArray[np.float64]:
        """The forecast of each group: ones / (zeros + ones), rounded to a double."""
        return self.ones / (self.zeros + self.ones)

    def forecasts(self, y_true: Any, y_prob: Any) -> NDArray[np.float64]:
        """Return the calibrated forecast of every round, in the given order."""
        tally = as_tally(y_true, y_prob)
        groups = _checked(self, int(tally.zeros.sum()), int(tally.ones.sum()))
        y, p = _check.predictions(y_true, y_prob)
        q = np.empty(len(p))
        for outcome, counts in ((0, groups.zeros), (1, groups.ones)):
            rounds = np.flatnonzero(y == outcome)
            q[rounds[np.argsort(p[rounds], kind="stable")]] = np.repeat(groups.values, counts)
        return q

    def moves(self, tally: Tally) -> list[tuple[float, int, float, int]]:
        """Return which forecasts become which.

        Each entry is a forecast, an outcome, the calibrated forecast, and how many rounds.

        Examples
        --------
        >>> import truecast as tc
        >>> tally = tc.Tally.from_predictions([1, 0, 1, 1], [0.6, 0.6, 0.7, 0.9])
        >>> tc.calibration_distance(tally).witness.moves(tally)
        [(0.6, 0, 0.6666666666666666, 1), (0.6, 1, 0.6666666666666666, 1), ...(0.9, 1, 1.0, 1)]
        """
        groups = _checked(self, int(tally.zeros.sum()), int(tally.ones.sum()))
        found = []
        for y, have, take in ((0, tally.zeros, groups.zeros), (1, tally.ones, groups.ones)):
            here, there = np.cumsum(have), np.cumsum(take)
            ends = np.union1d(here[have > 0], there[take > 0])
            p = tally.p[np.searchsorted(here, ends)]
            q = groups.values[np.searchsorted(there, ends)]
            counts = np.diff(ends, prepend=0)
            found += [
                (a, y, b, n)
                for a, b, n in zip(p.tolist(), q.tolist(), counts.tolist(), strict=True)
            ]
        return sorted(found)

    def __repr__(self) -> str:
        rounds = counted(int(self.zeros.sum() + self.ones.sum()), "round")
        return f"Witness({counted(len(self.zeros), 'group')} of {rounds})"


def grouped(zeros: NDArray[np.int64], ones: NDArray[np.int64]) -> Witness:
    """Return the witness of a chain of steps: in order of value, one group for each value.

    Order costs nothing: see docs/distance.md, theorem 1. With fewer than 2^26 rounds, doubles tell
    all values apart.
    """
    order = np.argsort(ones / (zeros + ones), kind="stable")
    zeros = zeros[order]
    ones = ones[order]
    common = np.gcd(zeros, ones)
    new = np.ones(len(zeros), bool)
    new[1:] = np.diff(zeros // common).astype(bool) | np.diff(ones // common).astype(bool)
    starts = np.flatnonzero(new)
    sums = [np.add.reduceat(side, starts) if len(side) else side for side in (zeros, ones)]
    for side in sums:
        side.setflags(write=False)
    return Witness(*sums)


def verify_witness(
    y_true: Any | Tally,
    y_prob: Any = None,
    witness: Witness | Any = None,
    *,
    total: bool = False,
) -> float:
    """Check that a witness is perfectly calibrated, and return how far it is from the forecasts.

    This proves, by sorting and O(T) additions and without trusting the search, that the distance to
    calibration is at most the result. It does not say whether something calibrated is nearer.

    Parameters
    ----------
    y_true, y_prob
        Outcomes and forecasts; or a Tally as ``y_true`` alone.
    witness
        A `Witness`; or an array of one calibrated forecast a round. In an array, rounds with equal
        forecasts are a group, and the forecast must be the group's share of ones, correctly rounded
        to a double.
    total
        A total over all rounds rather than a mean.

    Returns
    -------
    float
        The distance, rounded up: above the exact one by less than 3e-15 a round.

    Raises
    ------
    InputError
        If the witness is not calibrated, or belongs to other rounds.

    Examples
    --------
    >>> verify_witness([0, 1, 1], [0.6, 0.6, 0.6], [2 / 3, 2 / 3, 2 / 3], total=True)
    0.2...
    """
    tally = as_tally(y_true, y_prob)
    if isinstance(witness, Witness):
        distance = cost(tally, _checked(witness, int(tally.zeros.sum()), int(tally.ones.sum())))
    else:
        distance = _distance_of(y_true, y_prob, witness)
    if total or not distance:
        return distance
    return math.nextafter(distance / tally.total, math.inf)


def _checked(witness: Witness, zeros: int, ones: int) -> Witness:
    columns = []
    for name, counts, rounds in (("zeros", witness.zeros, zeros), ("ones", witness.ones, ones)):
        column = _check.counts("witness", counts, len(witness.zeros))
        if column.dtype != np.int64:
            raise InputError("witness", "must have whole numbers of rounds in its groups", counts)
        if int(column.sum()) != rounds:
            raise InputError(
                "witness",
                f"must have the {rounds} {name} of the rounds",
                int(column.sum()),
            )
        columns.append(column)
    checked = Witness(*columns)
    empty = np.flatnonzero(checked.zeros + checked.ones == 0)
    if len(empty):
        raise InputError("witness", "must have no group without rounds", 0, int(empty[0]))
    falls = np.flatnonzero(np.diff(checked.values) < 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise InputError(
            "witness",
            "must have its groups in increasing order of value",
            float(checked.values[at]),
            at,
        )
    return checked


def _distance_of(y_true: Any, y_prob: Any, forecasts: Any) -> float:
    if isinstance(y_true, Tally):
        raise InputError(
            "witness",
            "must be a Witness beside a Tally: an array needs rounds in an order",
            forecasts,
        )
    try:
        groups = Tally.from_predictions(y_true, forecasts)
    except InputError as error:
        raise InputError("witness", error.rule, error.value, error.position) from None
    _, q = _check.predictions(y_true, forecasts)
    # a quotient is correctly rounded
    wrong = np.flatnonzero(groups.ones / groups.weights != groups.p)
    if len(wrong):
        value, ones, size = (
            float(column[wrong[0]]) for column in (groups.p, groups.ones, groups.weights)
        )
        rule = (
            f"must be calibrated: of the {size:.0f} rounds with this forecast, {ones:.0f} are ones"
        )
        raise InputError("witness", rule, value, int(np.flatnonzero(q == value)[0]))
    return _rounded_up(
        math.fsum(np.abs(_check.predictions(y_true, y_prob)[1] - q)),
        Witness(groups.zeros, groups.ones),
    )


def cost(tally: Tally, witness: Witness) -> float:
    """Return the total distance from the forecasts of a tally to the witness, rounded up.

    Each class is moved in sorted order. Values are quotients, rounded by at most 2^-54 each; of
    what is summed, none of it negative, every term is off by less than 2^-51 of itself.
    """
    classes = ((tally.zeros, witness.zeros), (tally.ones, witness.ones))
    distance = sum(
        _core.transport_cost(tally.p, n.astype(float), witness.values, to.astype(float))
        for n, to in classes
    )
    return _rounded_up(distance, witness)


def _rounded_up(distance: float, witness: Witness) -> float:
    sizes = witness.zeros + witness.ones
    if not distance and all(
        map(_same, witness.values.tolist(), witness.ones.tolist(), sizes.tolist())
    ):
        return 0.0  # calibrated as they are, and not just nearly, as 1/3 would be
    return distance * (1 + 2.0**-49) + int(sizes.sum()) * 2.0**-52


def _same(value: float, ones: int, size: int) -> bool:
    numerator, denominator = value.as_integer_ratio()
    return numerator * size == ones * denominator
