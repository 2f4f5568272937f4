"""All outcome strings: the exact worst of a deterministic forecaster."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.arena.game import can_play
from truecast.errors import InputError
from truecast.forecasters.base import LadderForecaster
from truecast.reference.distance import calibration_distance
from truecast.split_ladder import SplitLadder

__all__ = ["Worst", "exhaustive"]

MAX_ROUNDS = 30  # far beyond what memory allows, for most forecasters
_CLOSE = 1e-9  # far above the rounding of `distances`, which is some rounds * 2**-52
_AT_ONCE = 2048
_UNUSED = {"squared_error"}  # what ladders keep for their users, and never look at themselves


@dataclass(frozen=True)
class Worst:
    """What `exhaustive` returns.

    Attributes
    ----------
    rounds : int
        How many.
    distance : Fraction
        The largest distance to calibration, in total, over all outcome strings, exactly.
    outcomes : tuple of int
        A string that reaches it.
    certificate : Fraction or None
        The largest certificate over all strings, if the forecaster has one: for a ladder D + min(A,
        B), not rounded. Often on another string.
    states : int
        The number of pairs of state and tally that strings can reach.
    """

    rounds: int
    distance: Fraction
    outcomes: tuple[int, ...]
    certificate: Fraction | None
    states: int


class History(NamedTuple):
    """Outcomes, the state that they lead to, and the sorted forecasts of zeros and of ones."""

    state: Any
    zeros: tuple[float, ...]
    ones: tuple[float, ...]
    outcomes: tuple[int, ...]


def exhaustive(forecaster: Any, rounds: int) -> Worst:
    """Find the largest distance to calibration that outcomes can force on a forecaster.

    Two histories with the same state of the forecaster and the same tally have the same future. So
    it goes through these pairs round by round, not through the 2**T strings. It computes distances
    in floats first, and those within 1e-9 of the largest again in fractions. Forecasts of a ladder
    count as exact fractions, others as doubles.

    It says nothing about longer games.

    Parameters
    ----------
    forecaster
        Where every string starts, usually fresh; it does not change. It needs `predict`, `observe`,
        `to_json` and `from_json`, and must be deterministic.
    rounds
        T; 16 take seconds for ladders.

    Raises
    ------
    InputError
        If the forecaster is randomised or cannot be saved, or rounds break their rule.

    Examples
    --------
    >>> import truecast as tc
    >>> worst = exhaustive(tc.AlmostOneStepAhead(horizon=9), 9)
    >>> worst.distance, worst.outcomes
    (Fraction(10, 3), (0, 1, 1, 1, 1, 1, 1, 1, 1))

    Notes
    -----
    O(pairs) rounds of the forecaster, and O(T**4) for the distance of each of the last pairs.
    """
    f = copied(forecaster)
    rounds = _check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS)
    layer = [History(snapshot_of(f), (), (), ())]
    for _ in range(rounds):
        layer = _next_layer(f, layer)
    distance, outcomes = _farthest(f, layer)
    return Worst(rounds, distance, outcomes, _most_certified(f, layer), len(layer))


def copied(forecaster: Any) -> Any:
    """Return a copy in the same state; refuse a forecaster that draws or cannot be saved."""
    if hasattr(forecaster, "seed"):
        rule = "must not draw: what is the worst for one seed is not for another"
        raise InputError("forecaster", rule, forecaster)
    if not can_play(forecaster) or not all(
        hasattr(forecaster, name) for name in ("to_json", "from_json")
    ):
        rule = "must have predict(), observe(outcome), to_json and from_json, and need nothing else"
        raise InputError("forecaster", rule, forecaster)
    return forecaster.from_json(forecaster.to_json())


def snapshot_of(f: Any) -> Any:
    """All that the forecaster's future depends on."""
    return f.state() if hasattr(f, "load") else f.to_json()


def restored(f: Any, state: Any) -> Any:
    """Return the forecaster in that state; the same object if it can load one."""
    if not hasattr(f, "load"):
        return f.from_json(state)
    f.load(state)
    return f


def played(f: Any, y: int) -> float:
    """Play a round; return what the forecast is judged by."""
    p = f.predict()
    said: float = f.scored(y) if hasattr(f, "scored") else p
    f.observe(y)
    return said


def key(f: Any, state: Any) -> str:
    """Text that two states have in common only if their futures are the same."""
    if isinstance(f, LadderForecaster | SplitLadder):
        return repr([value for name, value in state.items() if name not in _UNUSED])
    return repr(state)


def _next_layer(f: Any, layer: list[History]) -> list[History]:
    found: dict[Any, History] = {}
    for before in layer:
        for y in (0, 1):
            f = restored(f, before.state)
            said = played(f, y)
            sides = [list(before.zeros), list(before.ones)]
            insort(sides[y], said)
            after = History(snapshot_of(f), tuple(sides[0]), tuple(sides[1]), (*before.outcomes, y))
            found.setdefault((key(f, after.state), *after[1:3]), after)
    return list(found.values())


def _farthest(f: Any, layer: list[History]) -> tuple[Fraction, tuple[int, ...]]:
    """Return the largest distance and the first outcomes that reach it."""
    tallies: dict[Any, tuple[int, ...]] = {}
    for history in layer:
        tallies.setdefault((history.zeros, history.ones), history.outcomes)
    near = distances(list(tallies))
    close = [
        tally for tally, d in zip(tallies, near.tolist(), strict=True) if d >= near.max() - _CLOSE
    ]
    exact = {}
    for zeros, ones in close:
        p = [_fraction(f, said) for said in (*zeros, *ones)]
        exact[zeros, ones] = calibration_distance(p, [0] * len(zeros) + [1] * len(ones))
    most = max(exact.values())
    return most, min(tallies[tally] for tally, d in exact.items() if d == most)


def _fraction(f: Any, said: float) -> Fraction:
    whole = getattr(f, "denominator", None)
    return Fraction(said) if whole is None else Fraction(round(2 * whole * said), 2 * whole)


def certified(f: Any) -> Fraction | None:
    """The forecaster's own bound on the distance so far, if any; not rounded for a ladder."""
    if isinstance(f, LadderForecaster | SplitLadder):
        return Fraction(f.deviation + min(f.bias_sums))
    return Fraction(f.certificate.bound) if hasattr(f, "certificate") else None


def _most_certified(f: Any, layer: list[History]) -> Fraction | None:
    found = (certified(restored(f, history.state)) for history in layer)
    return max((each for each in found if each is not None), default=None)


def distances(tallies: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> NDArray[np.float64]:
    """CalDist, in total and in floats, of pairs of the sorted forecasts of zeros and ones."""
    found = np.empty(len(tallies))
    by_size: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for at, (zeros, ones) in enumerate(tallies):
        by_size[len(zeros), len(ones)].append(at)
    for sizes, where in by_size.items():
        for start in range(0, len(where), _AT_ONCE):
            part = where[start : start + _AT_ONCE]
            sides = [
                np.array([tallies[at][side] for at in part]).reshape(len(part), sizes[side]).T
                for side in (0, 1)
            ]
            found[part] = _shortest(*sides)
    return found


def _shortest(zeros: NDArray[np.float64], ones: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of many tallies of one size: columns of sorted forecasts.

    The path of `truecast.reference.calibration_distance`, made longer by a group of every size in
    turn, in increasing order of their values, at all lattice points at once. Invariant: no path
    with groups of the values so far is shorter than `length`.
    """
    length = np.full((len(zeros) + 1, len(ones) + 1, zeros.shape[1]), np.inf)
    length[0, 0] = 0.0
    for i, j in _groups(len(zeros), len(ones)):
        of_zeros, of_ones = (_costs(side, n, j / (i + j)) for side, n in ((zeros, i), (ones, j)))
        shorter = length[: len(of_zeros), : len(of_ones)] + of_zeros[:, np.newaxis] + of_ones
        np.minimum(length[i:, j:], shorter, out=length[i:, j:])
    shortest: NDArray[np.float64] = length[-1, -1]
    return shortest


@cache
def _groups(zeros: int, ones: int) -> list[tuple[int, int]]:
    """The numbers of zeros and ones that a group can have, in increasing order of its value."""
    groups = [(i, j) for i in range(zeros + 1) for j in range(ones + 1) if i + j]
    return sorted(groups, key=lambda group: Fraction(group[1], sum(group)))


def _costs(side: NDArray[np.float64], n: int, value: float) -> NDArray[np.float64]:
    """What each n in a row cost at a value."""
    sums = np.zeros((len(side) + 1, side.shape[1]))
    np.cumsum(abs(side - value), axis=0, out=sums[1:])
    return sums[n:] - sums[: len(sums) - n]
