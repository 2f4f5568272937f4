"""The game of forecaster and adversary, solved: its value for a few rounds, and how to play it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import comb, lcm
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.arena._core import bound_game, solve_game
from truecast.errors import InputError

if TYPE_CHECKING:  # forecasters import this module
    from truecast.arena.forecasters.base import Distribution

__all__ = ["GameValue", "Solution", "farey", "minimax_value", "solve"]

MOST_ROUNDS = 12
MOST_POINTS = 1024
MOST_STATES = 250_000_000  # of 8 bytes each
_ROUNDING = 1e-12  # far more than the doubles of so few rounds can be off


@dataclass(frozen=True)
class GameValue:
    """What the game costs the forecaster: at least `lower`, and at most `upper`.

    Attributes
    ----------
    rounds : int
        Of the game.
    lower, upper : float
        Proved bounds on the expected CalDist, a total, at the end of the game if both play their
        best.
    deterministic : bool
        Whether the adversary sees each forecast, so that randomness does not help.
    """

    rounds: int
    lower: float
    upper: float
    deterministic: bool


@dataclass(frozen=True, eq=False)
class Solution:
    """The game with forecasts from a few points: what each state is worth, and how to play on.

    A state is what was said and what came, in any order: item 2 i + y stands for point i and
    outcome y.

    Attributes
    ----------
    rounds : int
        Of the game.
    points : tuple of Fraction
        What may be said.
    deterministic : bool
        Whether the adversary sees each forecast.
    """

    rounds: int
    points: tuple[Fraction, ...]
    deterministic: bool
    _values: NDArray[np.float64] = field(repr=False)

    def value(self, items: Iterable[int] = ()) -> float:
        """The CalDist to expect at the end, from this state on."""
        return float(self._values[self._place(items)])

    def mixture(self, items: Iterable[int] = ()) -> Distribution:
        """What to say next, and how likely: one point, or two."""
        so_far = list(items)
        zero, one = (
            np.array([self.value([*so_far, 2 * i + y]) for i in range(len(self.points))])
            for y in (0, 1)
        )
        i = int(np.argmin(np.maximum(zero, one)))
        best: Distribution = ((float(self.points[i]), 1.0),)
        if self.deterministic:
            return best
        rising, falling = np.flatnonzero(zero < one), np.flatnonzero(zero > one)
        if len(rising) == 0 or len(falling) == 0:
            return best
        up, down = (one - zero)[rising, None], (zero - one)[None, falling]
        mixed = (zero[rising, None] * down + zero[None, falling] * up) / (up + down)
        a, b = (int(k) for k in np.unravel_index(np.argmin(mixed), mixed.shape))
        if max(zero[i], one[i]) <= mixed[a, b]:
            return best
        weight = float(down[0, b] / (up[a, 0] + down[0, b]))
        return (float(self.points[rising[a]]), weight), (float(self.points[falling[b]]), 1 - weight)

    def _place(self, items: Iterable[int]) -> int:
        found = sorted(items)
        kinds = 2 * len(self.points)
        t = len(found)
        before = comb(kinds + t - 1, t - 1) if t else 0
        return before + sum(comb(item + j, j + 1) for j, item in enumerate(found))


def farey(order: int) -> tuple[Fraction, ...]:
    """Return the fractions from 0 to 1 with denominators up to `order`, in order."""
    return tuple(sorted({Fraction(a, b) for b in range(1, order + 1) for a in range(b + 1)}))


def solve(rounds: int, points: tuple[Fraction, ...], *, deterministic: bool = False) -> Solution:
    """Solve the game with forecasts from these points.

    Backwards over all states, of which there are C(2 n + rounds, rounds) for n points; each takes
    O(n).

    Parameters
    ----------
    rounds
        Of the game.
    points
        What may be said: increasing fractions from 0 to 1.
    deterministic
        Whether the adversary sees each forecast.

    Examples
    --------
    >>> solve(4, farey(4)).value()
    0.734375
    >>> solve(2, farey(2)).mixture()
    ((0.5, 1.0),)
    """
    rounds = _check.whole_number("rounds", rounds, least=1, most=MOST_ROUNDS)
    numerators, denominator = _over_one_denominator(rounds, points)
    values = np.empty(_few("points", comb(2 * len(points) + rounds, rounds)))
    solve_game(numerators, denominator, rounds, deterministic, values)
    values.setflags(write=False)
    return Solution(rounds, points, deterministic, values)


def minimax_value(
    rounds: int,
    *,
    deterministic: bool = False,
    points: Sequence[Fraction] | None = None,
    ends: Sequence[Fraction] | None = None,
) -> GameValue:
    """Bounds on the value of the calibration game of Qiao and Zheng (2024).

    In each round the forecaster picks a distribution of forecasts, and the adversary, who knows it,
    picks an outcome. Then a forecast is drawn, and both see both. In the end the forecaster pays
    CalDist, in total. The value is the least expected payment that the forecaster can guarantee.

    The upper bound is the value with forecasts from the `points` only. The lower bound is the value
    against an adversary who sees only the cell between the `ends` of each forecast
    (docs/minimax.md, theorems 2 and 3). Both are exact up to rounding, which is accounted for. For
    up to 4 rounds the value is known: 1/2, 1/2, 2/3, 47/64 (docs/minimax.md, theorem 4). The values
    for a few rounds say nothing about many.

    Parameters
    ----------
    rounds
        Of the game.
    deterministic
        Whether the adversary sees each forecast before he picks the outcome.
    points
        What the forecaster may say: increasing fractions from 0 to 1. More points, a lower upper
        bound, more time.
    ends
        Some of the points, with 0 and 1 among them: what the adversary sees. More ends, mostly, a
        higher lower bound. They are of use only if the points have all fractions with denominators
        up to `rounds` among them; otherwise the lower bound is the upper one less what rounding to
        the points can cost.

    Returns
    -------
    value
        With its `lower` and `upper` bound.

    Raises
    ------
    InputError
        If the rounds are not from 1 to 12, the points or ends break their rules, or there are too
        many states; without points, at most 7 are allowed: 5 take some seconds, 7 some minutes and
        1.5 GB.

    Examples
    --------
    >>> value = minimax_value(3)
    >>> round(value.lower, 6), round(value.upper, 6)
    (0.666667, 0.666667)
    """
    rounds = _check.whole_number("rounds", rounds, least=1, most=MOST_ROUNDS)
    deterministic = _check.flag("deterministic", deterministic)
    said = _usual(rounds, deterministic) if points is None else _points("points", points)
    seen = farey(5) if points is None and rounds == 7 else said
    if ends is not None:
        seen = _points("ends", ends)
    if not set(seen) <= set(said):
        raise InputError("ends", "must be some of the points", seen)
    solution = solve(rounds, said, deterministic=deterministic)
    upper = solution.value()
    complete = set(farey(rounds)) <= set(said)
    widest = max(float(b - a) for a, b in pairwise(said))
    lower = upper - (rounds - (complete and not deterministic)) * widest / 2
    if complete:
        lower = max(lower, short_sighted(solution, seen)[0])
    return GameValue(rounds, max(lower - _ROUNDING, 0.0), upper + _ROUNDING, deterministic)


def short_sighted(
    solution: Solution, ends: Sequence[Fraction]
) -> tuple[float, NDArray[np.float64]]:
    """Return what an adversary gets who sees only cells between `ends`, and his chances of a one.

    The chances stand in order of rounds, of the multiset of (cell, outcome) before, and, if the
    game is deterministic, of the present cell. They are good, not always the best; the bound is
    that of the best answer to them.
    """
    points = solution.points
    rounds = solution.rounds
    numerators, denominator = _over_one_denominator(rounds, points)
    at = [points.index(end) for end in ends]
    cells = [range(a, b + 1) for a, b in pairwise(at)]
    first = np.cumsum([0, *map(len, cells)]).astype(np.int64)
    said = np.array([point for cell in cells for point in cell], np.int64)
    _few("ends", comb(2 * len(said) + rounds - 2, rounds - 1))
    seen, values = solution.deterministic, solution._values
    sights = comb(2 * len(cells) + rounds - 1, rounds - 1) * (len(cells) if seen else 1)
    chances = np.empty(_few("ends", sights))
    return bound_game(numerators, denominator, rounds, seen, values, first, said, chances), chances


def _usual(rounds: int, deterministic: bool) -> tuple[Fraction, ...]:
    """Points for which the bounds are close, of those that take at most minutes."""
    if rounds > 7:
        raise InputError("points", "must be given for more than 7 rounds", None)
    uniform = {1: 2, 2: 2, 3: 6, 4: 24}.get(rounds, 12 if deterministic and rounds < 7 else 1)
    even = (Fraction(k, uniform) for k in range(uniform + 1))
    return tuple(sorted({*farey(7 if uniform == 1 else rounds), *even}))


def _points(name: str, given: Sequence[Fraction]) -> tuple[Fraction, ...]:
    rule = "must be increasing fractions from 0 to 1, both among them"
    try:
        found = tuple(map(Fraction, given))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise InputError(name, rule, given) from error
    if len(found) < 2 or found[0] != 0 or found[-1] != 1 or any(a >= b for a, b in pairwise(found)):
        raise InputError(name, rule, given)
    if len(found) > MOST_POINTS:
        raise InputError(name, f"must be at most {MOST_POINTS:,}", len(found))
    return found


def _over_one_denominator(
    rounds: int, points: tuple[Fraction, ...]
) -> tuple[NDArray[np.int64], int]:
    denominator = lcm(*range(1, rounds + 1), *(point.denominator for point in points))
    if denominator > 2**40:
        raise InputError("points", "must have a common denominator of at most 2**40", points)
    return np.array([int(point * denominator) for point in points], np.int64), denominator


def _few(name: str, states: int) -> int:
    if states > MOST_STATES:
        raise InputError(
            name, f"must be so few that there are at most {MOST_STATES:,} states", states
        )
    return states
