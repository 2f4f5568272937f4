"""Forecasts whose outcomes come later: a bounded number of them, each resolved at most once."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from truecast import _check
from truecast.errors import InputError, StateError, TicketError
from truecast.forecasters import Guard
from truecast.split_ladder import WHOLE

__all__ = ["Ticket", "Tickets"]


class Ticket(int):
    """The number of a forecast whose outcome is awaited, with the forecast itself.

    An int, so that it can be stored anywhere; ``resolve`` takes the plain number as well.

    Attributes
    ----------
    p : float
        The forecast.
    """

    p: float

    def __new__(cls, number: int, p: float) -> Self:
        """Return the number with its forecast."""
        ticket = super().__new__(cls, number)
        ticket.p = p
        return ticket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self), self.p)

    def __repr__(self) -> str:
        return f"Ticket({int(self)}, p={self.p!r})"


class Awaited(NamedTuple):
    """What a forecast is remembered by until its outcome comes."""

    guard: int  # the number of its guard
    score: float
    low: int  # the ends of its cell, as the guard gave them
    high: int
    p: float
    notes: list[float]  # the hint's


class Tickets:
    """The forecasts that await their outcomes, oldest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.issued = 0
        self.awaited: OrderedDict[int, Awaited] = OrderedDict()  # a dict is slow to find its first entry

    def add(self, forecast: Awaited) -> Ticket:
        """Remember a forecast; there must be room for it."""
        ticket = Ticket(self.issued, forecast.p)
        self.awaited[self.issued] = forecast
        self.issued += 1
        return ticket

    def oldest_if_full(self) -> int | None:
        """The ticket to give up before another is added, if there is no room."""
        return next(iter(self.awaited)) if len(self.awaited) >= self.most else None

    def find(self, ticket: object) -> int:
        """Return the number of a ticket that awaits its outcome, or refuse."""
        number = _check.whole_number("ticket", ticket, least=0, most=1 << 62)
        if number in self.awaited:
            if isinstance(ticket, Ticket) and ticket.p != self.awaited[number].p:
                raise InputError("ticket", "must be one of this recalibrator, not of another", ticket)
            return number
        if number >= self.issued:
            raise InputError("ticket", f"must be one that was issued, below {self.issued}", number)
        raise TicketError(
            "ticket", "must be one whose outcome is awaited: this was resolved or given up before", number
        )

    def state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {"issued": self.issued, "awaited": [[number, *self.awaited[number]] for number in self.awaited]}

    def load(self, state: Any, guards: Sequence[Guard], notes: int) -> None:
        """Take over what `state` gave, or raise StateError; what is awaited must be what the guards await."""
        if not isinstance(state, dict) or set(state) != {"issued", "awaited"}:
            raise StateError("the saved tickets must have exactly the entries issued, awaited")
        issued, rows = state["issued"], state["awaited"]
        if type(issued) is not int or not 0 <= issued <= 1 << 62:
            raise StateError(f"the saved number of tickets must be from 0, got {issued!r:.80}")
        if not isinstance(rows, list) or len(rows) > self.most:
            raise StateError(f"the saved tickets must be a list of at most {self.most}")
        points = [set(guard.points.tolist()) for guard in guards]
        awaited: OrderedDict[int, Awaited] = OrderedDict()
        last = -1
        for row in rows:
            last, forecast = _read(row, last, issued, points, notes)
            awaited[last] = forecast
        found = Counter(forecast.guard for forecast in awaited.values())
        if any(guard.unresolved != found[number] for number, guard in enumerate(guards)):
            raise StateError("the saved tickets must be as many as the guards await")
        _check_unknown(awaited, guards)
        self.issued, self.awaited = issued, awaited


def _read(row: Any, last: int, issued: int, points: Sequence[set[int]], notes: int) -> tuple[int, Awaited]:
    """One saved ticket, later than `last`, and what it is for."""
    kinds = [int, int, float, int, int, float, list]
    if not isinstance(row, list) or [type(entry) for entry in row] != kinds:
        raise StateError(f"a saved ticket must be its number, guard, score, cell, forecast and notes, got {row!r:.80}")
    forecast = Awaited(*row[1:])
    if not last < row[0] < issued or not 0 <= forecast.guard < len(points) or not 0 <= forecast.score <= 1:
        raise StateError(f"the saved tickets must be in order, each with a guard and a score, got {row!r:.80}")
    low, high = forecast.low, forecast.high
    if not {low, high} <= points[forecast.guard] or not low <= forecast.p * WHOLE <= high or low == high:
        raise StateError(f"a saved ticket must lie between two points of its guard, got {row!r:.80}")
    kept = forecast.notes
    if len(kept) != notes or not all(type(note) is float and 0 <= note <= 1 for note in kept):
        raise StateError(f"the notes of a saved ticket must be {notes} floats from 0 to 1, got {kept!r:.80}")
    return row[0], forecast


def _check_unknown(awaited: dict[int, Awaited], guards: Sequence[Guard]) -> None:
    """Refuse guards that count these tickets at less or more than they are worth, the rest being given up."""
    lost = [guard._unknown for guard in guards]
    for forecast in awaited.values():
        scaled = int(forecast.p * (2 * WHOLE))  # rounded down; the product is exact
        up = scaled + (scaled < forecast.p * (2 * WHOLE))
        lost[forecast.guard] -= max(up, 2 * WHOLE - scaled)
    for unknown, guard in zip(lost, guards, strict=True):
        if not WHOLE * guard.given_up <= unknown <= 2 * WHOLE * guard.given_up:
            raise StateError("the saved unknown of a guard must be that of its tickets and of what it has given up")
