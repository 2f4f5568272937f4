"""Tickets of forecasts whose outcomes come later, and how they are saved; the core keeps them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from truecast import _core
from truecast._threads import threads
from truecast.columns import Columns, packed, unpacked
from truecast.errors import StateError
from truecast.ledger import AIM, is_placed
from truecast.state import Entry, Saveable, kinds_of, require_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Ticket", "Tickets"]


MAX_GROUPS = 1 << 20
MAX_UNRESOLVED = 1 << 20

P = TypeVar("P")
T = TypeVar("T")


class AnyTicket(int, Generic[P]):
    """The number of a forecast p, which is a number or one of each class."""

    p: P

    def __new__(cls, number: int, p: P) -> Self:
        """Return the number with its forecast."""
        ticket = super().__new__(cls, number)
        ticket.p = p
        return ticket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self), self.p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)}, p={self.p!r})"


class Ticket(AnyTicket[float]):
    """The number of a forecast whose outcome is awaited, with the forecast itself.

    An int, so you can store it anywhere; ``resolve`` takes the plain number too.

    Attributes
    ----------
    p : float
        The forecast.
    """


class Tickets(NamedTuple):
    """Tickets of forecasts that were issued together.

    Attributes
    ----------
    numbers : array of int64
        To resolve them with.
    p : array of float64
        The forecasts.
    """

    numbers: NDArray[np.int64]
    p: NDArray[np.float64]


_TWO_THREADS = 1 << 14  # hints from which on a second thread is worth starting


class Issuing(Saveable, Generic[T]):
    """What all recalibrators share: a desk of the core, where forecasts await their outcomes."""

    _desk: _core.Desk | _core.ClassDesk

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._desk.rounds

    @property
    def unresolved(self) -> int:
        """Forecasts issued whose outcomes are awaited."""
        return self._desk.unresolved

    @property
    def awaited(self) -> list[T]:
        """The tickets whose outcomes are awaited, oldest first. O(`unresolved`)."""
        return self._desk.awaited

    @staticmethod
    def _aside(hints: int) -> bool:
        """Whether the hints of a batch, this many, are made by a thread of their own."""
        return hints >= _TWO_THREADS and threads() > 1

    def give_up(self, ticket: int) -> None:
        """Stop waiting for an outcome; the certificate counts the forecast at its worst.

        Raises
        ------
        InputError
            If the ticket was never issued.
        TicketError
            If the ticket no longer awaits an outcome.
        """
        self._desk.give_up(ticket)


#: what the table of saved tickets has
ENTRIES = [Entry(*each) for each in _core.TICKETS]
_KINDS = kinds_of(ENTRIES)
_ONE_EACH = "key", "worst", "event", "members", "forecast", "same"
_IN_FULL = 0xFFFF  # the note is among those that are saved as whole floats
_MOST = 1 << 28  # numbers in a column


def tickets_state(desk: _core.Desk) -> dict[str, Any]:
    """Everything about the tickets, as plain data."""
    return {"issued": desk.issued, "awaited": packed(desk.table(), _KINDS)}


def load_tickets(
    desk: _core.Desk, state: Any, numbers: dict[str, Any], *, most: int, scale: str
) -> None:
    """Take over what `tickets_state` gave, or raise StateError.

    `numbers` are those of the guard, which awaits just these tickets.
    """
    if not isinstance(state, dict) or set(state) != {"issued", "awaited"}:
        raise StateError("the saved tickets must have exactly the entries issued and awaited")
    issued = checked_count(state["issued"])
    columns = unpacked("tickets", state["awaited"], _KINDS, _MOST)
    _check_lengths(columns, desk.hint, most)
    owner = check_members(columns, len(numbers["groups"]["late"]))
    _check_columns(columns, issued, scale)
    _check_notes(columns, desk.hint)
    check_events(columns)
    _check_counts(columns, owner, numbers)
    desk.restore(issued, columns)


def load_bursts(desk: _core.DeskBase, numbers: object) -> None:
    """Take over what is known of outcomes that come together, or raise StateError."""
    saved = require_entries("bursts", numbers, desk.bursts())
    floats = all(type(number) is float and math.isfinite(number) for number in saved.values())
    if not floats or not desk.set_bursts(saved):
        raise StateError(f"the saved bursts must be floats that fit together, got {numbers!r:.200}")


def checked_count(issued: object) -> int:
    """Return how many tickets there were, or raise StateError."""
    if type(issued) is not int or not 0 <= issued <= 1 << 62:
        raise StateError(f"the saved number of tickets must be from 0, got {issued!r:.80}")
    return issued


def is_score(score: float, scale: str) -> bool:
    """Whether a saved number can be a score."""
    return math.isfinite(score) if scale == "logit" else 0 <= score <= 1


def _within(values: NDArray[Any], least: float, most: float) -> NDArray[np.bool_]:
    return (values >= least) & (values <= most)  # neither holds for what is not a number


def _check_lengths(columns: Columns, hint: Any, most: int) -> None:
    count = len(columns["number"])
    if count > most:
        raise StateError(f"the saved tickets must be at most {most}, got {count}")
    if (
        any(len(columns[name]) != count for name in _ONE_EACH)
        or len(columns["score"]) != count * hint._models
    ):
        raise StateError("the saved tickets must have an entry in each column")


def _check_columns(columns: Columns, issued: int, scale: str) -> None:
    """Refuse tickets that are not in order, or cannot have been forecast."""
    numbers, scores = columns["number"], columns["score"]
    order = (np.diff(numbers, prepend=-1) > 0) & _within(numbers, 0, issued - 1)
    if not order.all():
        raise StateError(
            f"the saved tickets must be in order, below {issued}, "
            f"got {numbers[int(order.argmin())]}"
        )
    good = np.isfinite(scores) if scale == "logit" else _within(scores, 0, 1)
    if not good.all():
        raise StateError(
            f"the saved tickets must have a score each, got {scores[int(good.argmin())]}"
        )
    aims = columns["aim"]
    if len(aims) != AIM * int((columns["members"] > 0).sum()):
        raise StateError(
            "the saved tickets of groups must have a hint and what their offsets said of it"
        )
    placed = is_placed(columns["forecast"], columns["key"]) & _within(columns["worst"], 0, 1 << 62)
    if not placed.all():
        raise StateError(
            f"a saved ticket must have a forecast and its key, got {numbers[int(placed.argmin())]}"
        )


def _check_notes(columns: Columns, hint: Any) -> None:
    notes, whole, same = columns["notes"], columns["whole"], columns["same"]
    each, ours = hint._notes, hint._calls is None
    if int((notes == _IN_FULL).sum()) != len(whole):
        raise StateError("a saved ticket must have the number of notes that it says")
    if (
        same.max(initial=0) > 1
        or int((same == 0).sum()) * each != len(notes)
        or (each == 0 and not same.all())
    ):
        raise StateError(
            f"the notes of a saved ticket must be {each} floats, or be marked as those of now"
        )
    floats = whole.view(np.float64)
    if ours and not _within(floats, 0, 1).all():
        raise StateError(f"the notes of a saved ticket must be {each} floats from 0 to 1")
    if not ours and not (np.isfinite(floats).all() and (each == 0 or not same.any())):
        raise StateError(f"the notes of a saved ticket must be {each} finite floats")


def check_events(columns: Columns) -> None:
    """Refuse events that are not those of the tickets."""
    of = columns["event"]
    events, open_now = np.unique(of[of != 0], return_counts=True)
    about, made = columns["about"], columns["made"]
    if (
        len(made) != len(about)
        or not np.array_equal(events, about)
        or (made < open_now).any()
        or (of < 0).any()
    ):
        raise StateError(
            "the saved events must be those of the tickets, with at least as many forecasts each"
        )


def check_members(columns: Columns, groups: int) -> NDArray[np.intp]:
    """Return the row of each ticket that a group is of, or raise StateError."""
    members = columns["members"]
    if not _within(members, 0, _MOST).all() or int(members.sum()) != len(columns["group"]):
        raise StateError("the saved tickets must have the number of groups that they say")
    owner = np.repeat(np.arange(len(members)), members)
    known = _within(columns["group"], 1, groups - 1)
    known[1:] &= (np.diff(columns["group"]) > 0) | (np.diff(owner) > 0)
    if not known.all():
        raise StateError(
            "the saved tickets must be of groups that are known, each once and in order"
        )
    return owner


def _check_counts(columns: Columns, owner: NDArray[np.intp], numbers: dict[str, Any]) -> None:
    """Refuse a guard that awaits other tickets, or counts them at another worth."""
    awaited = numbers["groups"]
    groups = len(awaited["late"])
    scaled = columns["forecast"] * 2.0**32  # exact
    worth = np.maximum(np.ceil(scaled), 2.0**32 - np.floor(scaled))
    everyone = np.zeros(len(worth), np.int64)
    member = np.concatenate([everyone, columns["group"]])
    value = np.concatenate([worth, worth[owner]])
    if (np.bincount(member, minlength=groups) != awaited["late"]).any():
        raise StateError("the number of saved tickets must be what the guard awaits")
    # of what is given up
    lost = awaited["unknown"].astype(np.float64) - np.bincount(member, value, groups)
    loose = 2.0**-40 * awaited["unknown"]
    if (
        (lost < awaited["lost"] * 2.0**31 - loose) | (lost > awaited["lost"] * 2.0**32 + loose)
    ).any():
        raise StateError(
            "the saved unknown of a guard must be that of its tickets and of what it has given up"
        )
    check_reserve(columns, numbers["reserved"])


def check_reserve(columns: Columns, reserved: int) -> None:
    """Refuse a guard that reserves another sum than its tickets need."""
    worst = columns["worst"]
    if worst.astype(np.float64).sum() > 2.0**62 or int(worst.sum()) != reserved:
        raise StateError("the saved reserve of the guard must be that of its tickets")
