"""Three classes, calibrated jointly: by Sperner's lemma, and a schedule of outcomes a vertex.

docs/sperner.md has the theorem and its proof.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from truecast import _check
from truecast.certificate import round_up
from truecast.errors import InputError, OrderError, StateError
from truecast.state import Saveable

__all__ = ["Sperner"]

Vertex = tuple[int, int, int]  # whole numbers that sum to m: the forecast m times

_MOST_GRID = 1 << 11  # (m + 1)(m + 2)/2 vertices are kept


class _Step(NamedTuple):
    """A step of the walk: the door between a vertex labelled 0 and one labelled 1, and the next.

    Outside of the triangle, `zero` is None: there the walk goes along the side without class 2.
    """

    zero: Vertex | None
    one: Vertex
    next: Vertex


class Sperner(Saveable):
    """Forecasts three classes so that whole vectors stay calibrated, against any outcomes.

    The triangle of all forecasts is divided into m^2 cells. Each vertex has a schedule of outcomes
    of its own, which keeps the number of each within 3/4 of what the vertex stands for (Tijdeman,
    1980); its label is its next outcome. By Sperner's lemma some cell has all three labels: its
    middle is the forecast, and the outcome is credited to the vertex that is labelled with it.

    The distance to calibration of whole vectors, the sum over rounds and classes of how far
    forecasts would have to move, is at most 4T/(3m) + (3/4)(m + 1)(m + 2) after T rounds: about
    2.08 T^(2/3) with the best m (docs/sperner.md, theorem 2). All counts are integers.

    Deterministic, and so foreseeable. For K classes the same idea gives T^(1 - 1/K), which is why
    nothing of the kind is offered for many: see `Recalibrator` for calibration class by class.

    Parameters
    ----------
    horizon
        The number of rounds to choose m for; more are allowed.
    grid
        The number m of parts of a side, instead.

    Examples
    --------
    >>> from truecast.arena import Sperner
    >>> forecaster = Sperner(grid=2)
    >>> for outcome in (0, 2, 2, 1):
    ...     said = forecaster.predict()
    ...     forecaster.observe(outcome)
    >>> [round(p, 3) for p in said], forecaster.rounds
    ([0.167, 0.167, 0.667], 4)

    Notes
    -----
    A walk through doors, edges with labels 0 and 1, leads to the cell. One label changes in a
    round, so the walk starts again where it first looked at that vertex. How long the rest is, is
    not bounded by less than the number of cells; on the streams of docs/sperner.md it is a few
    steps.
    """

    def __init__(self, *, horizon: int | None = None, grid: int | None = None) -> None:
        if horizon is None and grid is None:
            raise InputError("horizon", "or grid must be given", None)
        if horizon is not None:
            horizon = _check.whole_number("horizon", horizon, least=1, most=_check.MOST_ROUNDS)
        if grid is None:
            grid = min(_MOST_GRID, _best_grid(horizon or 1))
        self._horizon = horizon
        self._grid = _check.whole_number("grid", grid, least=1, most=_MOST_GRID)
        self._seats: dict[Vertex, list[int]] = {}
        self._rounds = 0
        self._issued = False
        self._restart()

    @property
    def grid(self) -> int:
        """The number m of parts of a side."""
        return self._grid

    @property
    def rounds(self) -> int:
        """Outcomes observed."""
        return self._rounds

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this forecaster anew."""
        return {"horizon": self._horizon, "grid": self._grid}

    @property
    def cell(self) -> tuple[Vertex, Vertex, Vertex]:
        """The vertices around the forecast, in the order of their labels 0, 1, 2."""
        return self._cell

    @property
    def exact(self) -> tuple[Fraction, Fraction, Fraction]:
        """The forecast as fractions: thirds of an m-th."""
        a, b, c = (Fraction(sum(part), 3 * self._grid) for part in zip(*self._cell, strict=True))
        return a, b, c

    def predict(self) -> tuple[float, float, float]:
        """Return the probabilities of the three classes; asked again, the same."""
        self._issued = True
        a, b, c = map(float, self.exact)
        return a, b, c

    def observe(self, outcome: int, /) -> None:
        """Take in the class, 0, 1 or 2, of what `predict` forecast.

        Raises
        ------
        InputError
            If it is none of these. Nothing changes.
        OrderError
            If nothing was forecast.
        """
        which = _check.whole_number("outcome", outcome, least=0, most=2)
        if not self._issued:
            raise OrderError(
                "observe() needs a forecast: call predict() first, once for every outcome"
            )
        vertex = self._cell[which]
        self._seats.setdefault(vertex, [0, 0, 0])[which] += 1
        self._rounds += 1
        self._issued = False
        if self.label(vertex) != which:  # the corners always have the same
            self._forget(self._first[vertex])
            self._walk(self._path.pop())

    def a_priori(self, rounds: int) -> float:
        """The bound on the joint distance, in total, proved before the first of `rounds` rounds."""
        rounds = _check.whole_number("rounds", rounds, least=0, most=_check.MOST_ROUNDS)
        return round_up(_bound(rounds, self._grid))

    @property
    def exact_bound(self) -> Fraction:
        """The bound on the joint distance, in total, proved for the rounds so far.

        The way from the middle of cells to their vertices, and what outcomes at each vertex differ
        from it.
        """
        m = self._grid
        biases = sum(
            abs(m * seats - sum(counts) * part)
            for vertex, counts in self._seats.items()
            for seats, part in zip(counts, vertex, strict=True)
        )
        return Fraction(4 * self._rounds, 3 * m) + Fraction(biases, m)

    @property
    def bound(self) -> float:
        """`exact_bound`, rounded up."""
        return round_up(self.exact_bound)

    # Labels

    def label(self, vertex: Vertex) -> int:
        """Return the next outcome in a vertex's schedule: of those due, the one due soonest.

        Of j with g_j/m of the seats, the next seat may come as soon as the vertex has had
        (seats + 1/4) m/g_j rounds, this one included, and must before (seats + 3/4) m/g_j are over.
        """
        m = self._grid
        seats = self._seats.get(vertex, (0, 0, 0))
        now = sum(seats) + 1
        soonest, least = -1, 0
        for j, part in enumerate(vertex):
            if 4 * (now * part - m * seats[j]) >= m:
                due = (4 * seats[j] + 3) * m // (4 * part)
                if soonest < 0 or due < least:
                    soonest, least = j, due
        return soonest

    # The walk

    def _restart(self) -> None:
        """Walk from the beginning: outside, at the corner of class 1."""
        m = self._grid
        self._path: list[_Step] = []
        self._first: dict[Vertex, int] = {}  # where the walk first asked for a vertex's label
        self._walk(_Step(None, (0, m, 0), (1, m - 1, 0)))

    def _forget(self, start: int) -> None:
        """Forget what the walk saw after its step `start`, and at it."""
        for at in range(start, len(self._path)):
            vertex = self._path[at].next
            if self._first.get(vertex, -1) >= start:
                del self._first[vertex]
        del self._path[start + 1 :]

    def _walk(self, step: _Step) -> None:
        """Go through doors until a vertex is labelled 2."""
        while True:
            self._first.setdefault(step.next, len(self._path))
            self._path.append(step)
            label = self.label(step.next)
            if label == 2 and step.zero is not None:
                self._cell = step.zero, step.one, step.next
                return
            step = self._through(step, label)

    def _through(self, step: _Step, label: int) -> _Step:
        """Return the step after this one: the other door of the cell."""
        zero, one, third = step
        if zero is None:  # along the side, to the first vertex labelled 0: there is a door
            if label == 1:
                return _Step(None, third, _beyond(one, third))
            inner = (min(third[0], one[0]), min(third[1], one[1]), 1)
            return _Step(third, one, inner)
        if label == 0:
            left, zero = zero, third
        else:
            left, one = one, third
        across = (
            zero[0] + one[0] - left[0],
            zero[1] + one[1] - left[1],
            zero[2] + one[2] - left[2],
        )
        if across[2] >= 0:
            return _Step(zero, one, across)
        return _Step(None, one, _beyond(zero, one))

    # State

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        seats = [[*vertex, *counts] for vertex, counts in sorted(self._seats.items())]
        return {"rounds": self._rounds, "issued": self._issued, "seats": seats}

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        if not isinstance(state, dict) or set(state) != {"rounds", "issued", "seats"}:
            raise StateError("the saved state must have exactly the entries rounds, issued, seats")
        if type(state["rounds"]) is not int or type(state["issued"]) is not bool:
            raise StateError("the saved rounds must be a whole number, and issued true or false")
        seats = _seats(state["seats"], self._grid)
        if sum(map(sum, seats.values())) != state["rounds"]:
            raise StateError(f"the saved seats must sum to the {state['rounds']} rounds")
        self._seats = seats
        self._rounds, self._issued = state["rounds"], state["issued"]
        self._restart()


def _beyond(first: Vertex, second: Vertex) -> Vertex:
    """Return the vertex as far beyond the second as the first is before it."""
    return 2 * second[0] - first[0], 2 * second[1] - first[1], 2 * second[2] - first[2]


def _best_grid(rounds: int) -> int:
    """Return the m with the least bound."""
    about = round((8 * rounds / 9) ** (1 / 3))
    return min(range(max(1, about - 2), about + 3), key=lambda m: _bound(rounds, m))


def _bound(rounds: int, m: int) -> Fraction:
    return Fraction(4 * rounds, 3 * m) + Fraction(3 * (m + 1) * (m + 2), 4)


def _seats(saved: object, m: int) -> dict[Vertex, list[int]]:
    """Return saved seats, or raise StateError if no schedule leads to them."""
    if not isinstance(saved, list):
        raise StateError("the saved seats must be a list")
    seats: dict[Vertex, list[int]] = {}
    for row in saved:
        if not isinstance(row, list) or len(row) != 6 or any(type(n) is not int for n in row):
            raise StateError(f"the saved seats must have six whole numbers each, got {row!r:.60}")
        (a, b, c), counts = row[:3], row[3:]
        fair = all(
            4 * abs(m * have - sum(counts) * part) <= 3 * m
            for have, part in zip(counts, (a, b, c), strict=True)
        )
        if min(row) < 0 or a + b + c != m or (a, b, c) in seats or not fair or not any(counts):
            raise StateError(f"no rounds lead to the saved seats {row!r:.60}")
        seats[a, b, c] = counts
    return seats
