"""Two neighbouring points; the one nearer to the outcome counts (Gupta and Ramdas 2022)."""

from __future__ import annotations

import math
from typing import Any

from truecast import _check
from truecast.arena.forecasters.base import LiteratureForecaster, Planned
from truecast.arena.forecasters.intervals import MAX_HORIZON, Intervals, neighbours

__all__ = ["GuptaRamdas"]


class GuptaRamdas(Planned, LiteratureForecaster):
    """Names two neighbouring points, or one, without drawing.

    It is judged by the one nearer to the outcome. Excess and deficit of the intervals [i/m, (i +
    1)/m] are those of `Foster`. An interval at rest is said alone, by its middle. Otherwise two
    neighbours, the lower in excess and the upper in deficit, are said by their middles, and the
    round is the upper's if the outcome is 1, the lower's if it is 0: either way the one that is off
    comes back. That is the power of two choices (Gupta and Ramdas 2022, Faster online calibration
    without randomization).

    Whatever the outcomes, also those of an opponent, the total calibration error by value of the
    *scored* points is at most T/(2m) + 3m/4 - 1/2. (The paper's first theorem, as later work has
    it: T/(2m) + m.) An interval in excess is given no ones, so an excess grows only while it is not
    positive, by 1 - r with r the upper end, and never exceeds 1 - r; a deficit never exceeds the
    lower end, l; and the error in an interval is at most 1/(2m) for each of its rounds and the
    excess or the deficit. The sum of max(1 - r, l) is at most 3m/4 - 1/2. With the m that
    `horizon=T` chooses the bound is about sqrt(1.5 T).

    It is a bound on the scored points, of which there are two to choose from when the outcome is
    known, and not on what `predict` says, their middle. The middle is at most 1/(2m) from the
    scored point, so its *distance* to calibration is at most T/(2m) more than the bound; its error
    by value may be anything.

    `OneStepAhead` has the same two choices, but is stricter: its points are ends of the intervals,
    each with its bias, and an interval is said whose lower end has a bias of at most 0 and whose
    upper end one of at least 0.

    Parameters
    ----------
    horizon
        The expected number of rounds, T: chooses the grid with the least bound. More rounds are
        allowed.
    grid
        The number of intervals, m, if you want to choose it.

    Notes
    -----
    Of several intervals at rest and pairs that would do, a bisection takes what it meets first, be
    it a pair; the paper wants an interval at rest if there is one. The proof above holds for both.
    A round costs O(log m).

    Examples
    --------
    >>> f = GuptaRamdas(grid=5)
    >>> f.interval
    (0.5, 0.5)
    >>> f.forecast_many([1, 0, 1]).tolist()
    [0.5, 0.7, 0.6]
    >>> f.interval, f.scored(0), f.scored(1)
    ((0.5, 0.7), 0.5, 0.7)
    """

    bounds = "by value"

    def __init__(self, *, horizon: int | None = None, grid: int | None = None) -> None:
        self._plan(horizon, grid, _best, MAX_HORIZON)
        self._intervals = Intervals(self._grid)
        super().__init__(excess=self._intervals.excess, deficit=self._intervals.deficit)

    @property
    def interval(self) -> tuple[float, float]:
        """The two points of this round; the same twice if one interval is said alone."""
        return self.scored(0), self.scored(1)

    def scored(self, outcome: int) -> float:
        """Which of the two points the round counts for: the upper if y is 1, else the lower."""
        return self._intervals.middle(self._credited(self.predict(), _check.outcome(outcome)))

    def _bound(self, rounds: int) -> float:
        return min(_bound(rounds, self.grid), rounds)

    def _forecast(self) -> float:
        low, high = neighbours(self._intervals.imbalance, self.grid)
        return (low + high + 1) / (2 * self.grid)

    def _credited(self, p: float, y: int) -> int:
        """The interval that the round counts for.

        2mp is 2i + 1 for interval i alone, and 2i + 2 for i and i + 1.
        """
        return (round(2 * self.grid * p) - 1 + y) // 2

    def _learn(self, p: float, y: int) -> None:
        self._intervals.book(self._credited(p, y), y)

    def _refuse(self, state: dict[str, Any]) -> None:
        self._intervals.refuse(state)


def _bound(rounds: int, m: int) -> float:
    return (2 * rounds + 3 * m * m - 2 * m - m % 2) / (4 * m)


def _best(rounds: int) -> int:
    near = math.isqrt(2 * rounds // 3)
    return min(range(max(near - 1, 1), near + 4), key=lambda m: _bound(rounds, m))
