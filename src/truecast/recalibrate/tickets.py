"""Tickets of forecasts whose outcomes come later, and how they are saved; the core keeps them."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.errors import StateError
from truecast.forecasters import Guard
from truecast.split_ladder import WHOLE

__all__ = ["Ticket", "is_score", "load_tickets", "tickets_state"]


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


Columns = dict[str, NDArray[Any]]

# Of a saved table, one after the other, and then the notes: of each the first bytes of all numbers, then the second
# ones, and so on. The lower bytes of floats are as good as random: they are not compressed, which takes long and gains
# little. Notes that the saved hint would give again are left out.
_COLUMNS = {
    "number": "<i8",
    "guard": "<i8",
    "low": "<i8",  # the ends of the cell, as the guard gave them
    "high": "<i8",
    "score": "<f8",
    "forecast": "<f8",
    "same": "<u1",  # whether the hint would give these notes now, if it is one of truecast; or there are none
}
_NOTES = "<f8"
_RANDOM = {"<f8": 6}  # how many of a number's bytes, the lower ones


def tickets_state(desk: _core.Desk) -> dict[str, Any]:
    """Everything about the tickets, as plain data."""
    table = desk.table()
    packed, digits = [], []
    for column, kind in zip(table, [*_COLUMNS.values(), _NOTES], strict=True):
        planes, cut = _bytes(column, kind), _RANDOM.get(kind, 0) * len(column)
        digits.append(planes[:cut])
        packed.append(planes[cut:])
    return {
        "issued": desk.issued,
        "awaited": len(table[0]),
        "notes": len(table[-1]),
        "table": base64.b64encode(zlib.compress(b"".join(packed), 1)).decode(),
        "digits": base64.b64encode(b"".join(digits)).decode(),
    }


def load_tickets(desk: _core.Desk, state: Any, *, most: int, scale: str) -> None:
    """Take over what `tickets_state` gave, or raise StateError; what is awaited must be what the guards await.

    `awaited` was a list of rows once: such states are read as well.
    """
    each, ours = desk.hint._notes, desk.hint._calls is None
    if isinstance(state, dict) and set(state) == {"issued", "awaited"}:
        issued, columns, notes = state["issued"], *_of_rows(state["awaited"], most, each)
    elif isinstance(state, dict) and set(state) == {"issued", "awaited", "notes", "table", "digits"}:
        issued, columns, notes = state["issued"], *_of_table(state, most, each)
    else:
        raise StateError("the saved tickets must have exactly the entries issued, awaited, notes, table, digits")
    if type(issued) is not int or not 0 <= issued <= 1 << 62:
        raise StateError(f"the saved number of tickets must be from 0, got {issued!r:.80}")
    guards = desk.guards
    _check_columns(columns, issued, guards, scale)
    if ours and not _within(notes, 0, 1).all():
        raise StateError(f"the notes of a saved ticket must be {each} floats from 0 to 1")
    if not ours and not (np.isfinite(notes).all() and (each == 0 or not columns["same"].any())):
        raise StateError(f"the notes of a saved ticket must be {each} finite floats")
    _check_counts(columns, guards)
    desk.restore(issued, **columns, notes=notes)


def _bytes(column: NDArray[Any], kind: str) -> bytes:
    cells = np.ascontiguousarray(column.astype(kind))
    return cells.view(np.uint8).reshape(len(cells), cells.itemsize).T.tobytes()


def _column(data: bytes, kind: str, count: int) -> NDArray[Any]:
    width = np.dtype(kind).itemsize
    column = np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(width, count).T).view(kind).reshape(count)
    return column.astype(np.dtype(kind).newbyteorder("="), copy=False)


def _of_table(state: dict[str, Any], most: int, each: int) -> tuple[Columns, NDArray[np.float64]]:
    """The columns that `tickets_state` wrote, of the lengths that it says: no more is unpacked."""
    count, notes = state["awaited"], state["notes"]
    if type(count) is not int or not 0 <= count <= most:
        raise StateError(f"the saved tickets must be at most {most}, got {count!r:.80}")
    if type(notes) is not int or not 0 <= notes <= count * each:
        raise StateError(f"the notes of a saved ticket must be {each} floats, got {notes!r:.80} in all")
    kinds = {**dict.fromkeys(_COLUMNS, count), "notes": notes}
    columns = _unpacked(state, {name: (_COLUMNS.get(name, _NOTES), length) for name, length in kinds.items()})
    found = columns.pop("notes")
    if columns["same"].max(initial=0) > 1 or int((columns["same"] == 0).sum()) * each != notes:
        raise StateError(f"the notes of a saved ticket must be {each} floats, or be marked as those of now")
    return columns, found


def _unpacked(state: dict[str, Any], layout: dict[str, tuple[str, int]]) -> Columns:
    """The columns of these kinds and lengths."""
    cuts = {name: _RANDOM.get(kind, 0) * count for name, (kind, count) in layout.items()}
    sizes = {name: np.dtype(kind).itemsize * count - cuts[name] for name, (kind, count) in layout.items()}
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(_decoded(state["table"]), sum(sizes.values()) + 1)
    except zlib.error as error:
        raise StateError(f"the saved table of tickets is corrupted: {error}") from error
    digits = _decoded(state["digits"])
    whole = reader.eof and not reader.unused_data
    if not whole or len(data) != sum(sizes.values()) or len(digits) != sum(cuts.values()):
        raise StateError("the saved table of tickets is corrupted: it has another length")
    columns, at, of = {}, 0, 0
    for name, (kind, count) in layout.items():
        lower, upper = digits[of : of + cuts[name]], data[at : at + sizes[name]]
        columns[name] = _column(lower + upper, kind, count)
        at, of = at + sizes[name], of + cuts[name]
    return columns


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise StateError("the saved table of tickets must be a str")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise StateError(f"the saved table of tickets is corrupted: {error}") from error


def _of_rows(rows: object, most: int, each: int) -> tuple[Columns, NDArray[np.float64]]:
    """The columns of tickets that were saved one by one."""
    if not isinstance(rows, list) or len(rows) > most:
        raise StateError(f"the saved tickets must be a list of at most {most}")
    kinds = [int, int, float, int, int, float, list]
    for row in rows:
        if not isinstance(row, list) or [type(entry) for entry in row] != kinds:
            what = "its number, guard, score, cell, forecast and notes"
            raise StateError(f"a saved ticket must be {what}, got {row!r:.80}")
        if not all(0 <= row[k] <= 1 << 62 for k in (0, 1, 3, 4)):
            raise StateError(f"the saved tickets must be in order, each with a guard and a score, got {row!r:.80}")
        if len(row[6]) != each or not all(type(note) is float for note in row[6]):
            raise StateError(f"the notes of a saved ticket must be {each} floats from 0 to 1, got {row[6]!r:.80}")
    places = {"number": 0, "guard": 1, "low": 3, "high": 4, "score": 2, "forecast": 5}
    columns = {name: np.array([row[k] for row in rows], _COLUMNS[name]) for name, k in places.items()}
    columns["same"] = np.zeros(len(rows), np.uint8)
    return columns, np.array([note for row in rows for note in row[6]], np.float64)


def is_score(score: float, scale: str) -> bool:
    """Whether a saved number can be a score."""
    return math.isfinite(score) if scale == "logit" else 0 <= score <= 1


def _within(values: NDArray[Any], least: float, most: float) -> NDArray[np.bool_]:
    return (values >= least) & (values <= most)  # neither holds for what is not a number


def _check_columns(columns: Columns, issued: int, guards: Sequence[Guard], scale: str) -> None:
    """Refuse tickets that are not in order, or lie in no cell."""
    numbers, guard, score = columns["number"], columns["guard"], columns["score"]
    order = np.diff(numbers, prepend=-1) > 0
    good = order & _within(numbers, 0, issued - 1) & _within(guard, 0, len(guards) - 1)
    good &= np.isfinite(score) if scale == "logit" else _within(score, 0, 1)
    if not good.all():
        row = int(good.argmin())
        rule = f"each with a guard and a score, got {numbers[row]}, {guard[row]} and {score[row]}"
        raise StateError(f"the saved tickets must be in order, {rule}")
    low, high, said = columns["low"], columns["high"], columns["forecast"] * WHOLE
    good = (low < high) & (low <= said) & (said <= high)
    for owner, rows in zip(guards, _rows_of(guards, columns), strict=True):
        if len(rows):
            points = owner.points
            good[rows] &= np.isin(low[rows], points) & np.isin(high[rows], points)
    if not good.all():
        row = int(good.argmin())
        raise StateError(f"a saved ticket must lie between two points of its guard, got {numbers[row]}")


def _rows_of(guards: Sequence[Guard], columns: Columns) -> list[NDArray[np.int64]]:
    """The rows of each guard's tickets. One sort for all of them."""
    order = np.argsort(columns["guard"], kind="stable")
    ends = np.searchsorted(columns["guard"][order], np.arange(1, len(guards)))
    return np.split(order, ends)


def _check_counts(columns: Columns, guards: Sequence[Guard]) -> None:
    """Refuse guards that await other tickets, or count them at less or more than they are worth."""
    scaled = columns["forecast"] * (2 * WHOLE)  # exact
    under, over = np.floor(scaled).astype(np.int64), np.ceil(scaled).astype(np.int64)
    worth = np.maximum(over, 2 * WHOLE - under)
    for guard, rows in zip(guards, _rows_of(guards, columns), strict=True):
        mine = worth[rows]
        if guard.unresolved != len(mine):
            raise StateError("the saved tickets must be as many as the guards await")
        lost = guard._unknown - int(mine.sum())  # of what is given up
        if not WHOLE * guard.given_up <= lost <= 2 * WHOLE * guard.given_up:
            raise StateError("the saved unknown of a guard must be that of its tickets and of what it has given up")
