"""How a recalibrator for classes is saved; the core keeps its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.columns import Columns, packed, unpacked
from truecast.errors import StateError
from truecast.ledger import AIM, is_placed, ledger_state, numbers_of
from truecast.recalibrate.groups import saved_names
from truecast.recalibrate.hints import Hint
from truecast.recalibrate.hints.base import checked_numbers
from truecast.recalibrate.tickets import (
    check_events,
    check_members,
    check_reserve,
    checked_count,
    load_bursts,
)
from truecast.state import Entry, kinds_of, require_entries

__all__ = ["ENTRIES", "class_state", "load_class_state"]

#: what the table of saved tickets has
ENTRIES = [Entry(*each) for each in _core.CLASS_TICKETS]
_KINDS = kinds_of(ENTRIES)
_FIRST_KINDS = dict(list(_KINDS.items())[:5])  # before there were groups and events
_NUDGE = [Entry(*each) for each in _core.NUDGE]
_MOST = 1 << 28  # numbers in a column


def class_state(desk: _core.ClassDesk) -> dict[str, Any]:
    """Everything that rounds change, as plain data."""
    guard = desk.saved_guard()
    return {
        "hint": desk.saved_hint(),
        "groups": desk.names,
        "guard": ledger_state(guard["classes"]),
        "tops": ledger_state(guard["tops"]),
        "nudges": guard["nudges"],
        "tickets": {"issued": desk.issued, "awaited": packed(desk.table(), _KINDS)},
        "bursts": desk.bursts(),
        "asked": packed(desk.saved_asked(), _KINDS),
    }


def load_class_state(
    desk: _core.ClassDesk, state: object, *, hint: Hint, scale: str, most_groups: int, most: int
) -> None:
    """Furnish a new desk with what `class_state` gave, or raise StateError."""
    if isinstance(state, dict):
        state = {"groups": []} | state  # the first states had none
    names = "hint", "groups", "guard", "tops", "nudges", "tickets", "bursts", "asked"
    saved = require_entries("state", state, names)
    _load_hint(desk, saved["hint"], desk.classes, hint)
    guard = _load_guard(desk, saved, saved_names(saved["groups"], most_groups))
    _load_tickets(desk, saved["tickets"], guard, scale, most)
    load_bursts(desk, saved["bursts"])
    asked = _columns("asked", saved["asked"], desk, desk.classes, scale, 1)
    if (guard["asked"] is not None) != (len(asked["number"]) == 1):
        raise StateError("the saved asked must be a forecast if the guard awaits its outcome")
    if (asked["number"] < 0).any() or asked["event"].any():
        raise StateError("the saved asked must not be below 0, and of no event")
    _restore("asked", lambda: desk.ask(asked))


def _load_hint(desk: _core.ClassDesk, saved: Any, classes: int, hint: Hint) -> None:
    each = saved.get("each") if isinstance(saved, dict) else None
    if not isinstance(saved, dict) or not isinstance(each, list) or len(each) != classes:
        raise StateError(f"the saved hint must have a state for each of {classes} classes")
    own = {name: saved[name] for name in saved if name != "each"}
    numbers = checked_numbers(own, [Entry(*entry) for entry in desk.hint_entries()])
    if not desk.load_hint(numbers | {"each": [hint._checked(state) for state in each]}):
        raise StateError("the saved hint must fit together: no outcomes lead to this state")


def _load_guard(desk: _core.ClassDesk, saved: dict[str, Any], names: list[Any]) -> dict[str, Any]:
    classes = desk.classes
    most = classes * (len(names) + 2)
    guard = numbers_of(saved["guard"], most=most, nested=False)
    tops = numbers_of(saved["tops"], most=most, nested=False)
    nudges = saved["nudges"]
    if not isinstance(nudges, list) or len(nudges) != classes:
        raise StateError(f"the saved nudges must be one for each of {classes} classes")
    numbers = {
        "classes": guard,
        "tops": tops,
        "nudges": [checked_numbers(nudge, _NUDGE) for nudge in nudges],
    }
    _check_rounds(guard["groups"], tops["groups"], classes)
    fits = _restore("guard", lambda: desk.load_guard(names, numbers))
    if not fits:
        raise StateError("the saved nudges must fit together")
    return guard


def _restore(name: str, load: Callable[[], Any]) -> Any:
    """What the core takes, or StateError."""
    try:
        return load()
    except ValueError as error:
        raise StateError(f"the saved {name} must fit together: {error}") from error


def _check_rounds(groups: Columns, tops: Columns, classes: int) -> None:
    """Every round is one of each class, of one top label, and of everyone."""
    for name in ("rounds", "late", "lost"):
        counts, top = groups[name], tops[name]
        if len(counts) % classes or len(top) != len(counts):
            raise StateError(f"the saved {name} must be one for each of {classes} classes")
        counts, top = counts.reshape(-1, classes), top.reshape(-1, classes)
        if (counts != counts[:, :1]).any() or (counts > counts[0]).any():
            raise StateError(f"the saved {name} must be the same for each of {classes} classes")
        if (top.sum(axis=1) != counts[:, 0]).any():
            raise StateError(f"the saved {name} of top labels must be those of all rounds")


def _load_tickets(
    desk: _core.ClassDesk, state: Any, guard: dict[str, Any], scale: str, most: int
) -> None:
    saved = require_entries("tickets", state, ("issued", "awaited"))
    issued = checked_count(saved["issued"])
    each = desk.classes + desk.notes
    columns = _columns("tickets", saved["awaited"], desk, each, scale, most)
    numbers = columns["number"]
    if (np.diff(numbers, prepend=-1) <= 0).any() or (numbers >= issued).any():
        raise StateError(f"the saved tickets must be in order, below {issued}")
    late = guard["groups"]["late"][:: desk.classes]
    of = np.concatenate([np.zeros(len(numbers), np.int64), columns["group"]])
    if (np.bincount(of, minlength=len(late)) != late).any():
        raise StateError("the saved tickets must be as many as the guard awaits")
    check_reserve(columns, guard["reserved"])
    check_events(columns)
    _restore("tickets", lambda: desk.restore(issued, columns))


def _columns(
    name: str, saved: Any, desk: _core.ClassDesk, each: int, scale: str, most: int
) -> Columns:
    """A table of forecasts, if each is a row of probabilities near their keys."""
    classes = desk.classes
    columns = _unpacked(name, saved)
    count = len(columns["number"])
    lengths = {"worst": 1, "key": classes, "forecast": classes, "kept": each}
    lengths |= {"event": 1, "members": 1}
    if count > most or any(len(columns[key]) != count * by for key, by in lengths.items()):
        raise StateError(f"the saved {name} must have an entry in each column, at most {most}")
    said, kept = columns["forecast"], columns["kept"].reshape(count, each)
    sums = np.abs(said.reshape(count, classes).sum(axis=1) - 1)
    if not is_placed(said, columns["key"]).all() or (sums > 1e-9).any():
        raise StateError(f"the saved {name} must be forecasts that sum to 1, near their keys")
    if ((columns["worst"] < 0) | (columns["worst"] > 1 << 62)).any():
        raise StateError(f"the saved {name} must have a reserve from 0")
    _check_kept(name, kept, classes, scale)
    check_members(columns, desk.groups + 2)
    _check_aims(name, columns, classes)
    return columns


def _unpacked(name: str, saved: Any) -> Columns:
    """The columns; of the first states, without those of groups and events."""
    lengths = saved.get("lengths") if isinstance(saved, dict) else None
    if not isinstance(lengths, list) or len(lengths) != len(_FIRST_KINDS):
        return unpacked(name, saved, _KINDS, _MOST)
    columns = unpacked(name, saved, _FIRST_KINDS, _MOST)
    missing = _KINDS.keys() - _FIRST_KINDS.keys()
    columns |= {key: np.zeros(0, np.dtype(_KINDS[key])) for key in missing}
    none = np.zeros(len(columns["number"]), np.int64)
    return columns | {"event": none, "members": none}


def _check_aims(name: str, columns: Columns, classes: int) -> None:
    """Of forecasts with groups: a hint, and what offsets made of it, if they are nudged."""
    aims = columns["aim"].reshape(-1)
    grouped = int((columns["members"] > 0).sum())
    if len(aims) not in (0, AIM * classes * grouped):
        raise StateError(f"the saved {name} with groups must have a hint and what it became")
    rows = aims.reshape(-1, classes)
    if not ((rows >= 0) & (rows <= 1)).all() or (np.abs(rows.sum(axis=1) - 1) > 1e-9).any():
        raise StateError(f"the saved {name} with groups must be made from rows that sum to 1")


def _check_kept(name: str, kept: NDArray[np.float64], classes: int, scale: str) -> None:
    """Scores, what members said, and after how many rounds."""
    scores, notes, rounds = kept[:, :classes], kept[:, classes:-1], kept[:, -1:]
    if kept.shape[1] == classes:
        notes = rounds = kept[:, :0]
    probable = (scores >= 0) & (scores <= 1)
    good = np.isfinite(scores) if scale == "logit" else probable
    counted = (rounds >= 0) & (rounds <= 2.0**53)
    if not (good.all() and ((notes >= 0) & (notes <= 1)).all() and counted.all()):
        raise StateError(f"the saved {name} must have scores, and notes from 0 to 1")
