"""A monitor's saved state, checked before the core takes it over."""

from __future__ import annotations

import math
from typing import Any

from truecast import _check, _core
from truecast.errors import InputError, StateError
from truecast.state import Entry, require_entries, require_ranges, typed

__all__ = ["checked"]

_ENTRIES = {name: [Entry(*each) for each in entries] for name, entries in _core.WATCH.items()}
_MOST_ROUNDS = 1 << 53


def checked(state: object) -> tuple[list[str | int], dict[str, Any]]:
    """Return the names of groups and all numbers, if they are of their types and in range."""
    saved = require_entries("state", state, ("book", "chains", "late", "groups"))
    names = _saved_names(saved["groups"])
    _check_numbers(saved["book"], "book")
    _check_chains(saved["chains"])
    _check_late(saved["late"])
    return names, {name: saved[name] for name in ("book", "chains", "late")}


def _check_chains(chains: object) -> None:
    if not isinstance(chains, list):
        raise StateError("the saved chains must be a list")
    for each in chains:
        chain = require_entries("chain", each, ("rounds", "accounts"))
        if type(chain["rounds"]) is not int or not isinstance(chain["accounts"], list):
            raise StateError("a saved chain must have rounds and a list of accounts")
        for account in chain["accounts"]:
            _check_numbers(account, "accounts")


def _check_late(saved: object) -> None:
    late = require_entries("late", saved, ("passed_over", "given_up", "lags", "table"))
    for name in ("passed_over", "given_up"):
        if type(late[name]) is not int or not 0 <= late[name] <= _MOST_ROUNDS:
            raise StateError(f"the saved {name} must be a number from 0")
    lags = late["lags"]
    if not isinstance(lags, list) or not all(
        type(each) is float and 0 <= each < math.inf for each in lags
    ):
        raise StateError("the saved lags must be numbers from 0")
    _check_columns(late["table"])


def _saved_names(names: object) -> list[str | int]:
    if not isinstance(names, list):
        raise StateError("the saved groups must be a list")
    try:
        checked = [_check.group(name) for name in names]
    except InputError as error:
        raise StateError(f"the saved groups must be distinct names: {error}") from error
    kept = [name for name in checked if isinstance(name, str | int)]
    if len(kept) != len(names) or len(set(kept)) != len(names):
        raise StateError("the saved groups must be distinct names")
    return kept


def _check_numbers(numbers: object, kind: str) -> None:
    require_ranges(typed(numbers, _ENTRIES[kind]), _ENTRIES[kind], {})


def _check_columns(table: object) -> None:
    """Refuse columns that have anything but numbers of their type in their range."""
    columns = require_entries("tickets", table, (entry.name for entry in _ENTRIES["tickets"]))
    for name, kind, _, least, most, _ in _ENTRIES["tickets"]:
        number = float if kind == "<f8" else int
        column = columns[name]
        if not isinstance(column, list) or any(
            type(value) is not number or not least <= value <= most for value in column
        ):
            raise StateError(f"the saved {name} of tickets must be a list of {number.__name__}")
