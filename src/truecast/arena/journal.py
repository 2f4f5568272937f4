"""A file of finished games: one line each, so that a tournament can go on where it was stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from truecast.arena.rows import Row
from truecast.errors import InputError

__all__ = ["Journal", "Key"]

Key = tuple[str, str, str, str, int, int | None]  # names and options of both players, rounds, seed
_FORMAT = 1


class Journal:
    """Finished games, by who played them, kept in a file.

    The first line says what the games were played for. A line is written at once and whole, or, if
    the power or the process goes, in part: a last line without an end is dropped when the file is
    next read.
    """

    def __init__(self, path: Path, head: bytes, played: dict[Key, Row], kept: int) -> None:
        self.played = played
        # to append: two tournaments at a time then write one line after the other, and at worst
        # play a game twice
        self._file = open(path, "ab")  # noqa: SIM115 - closed by close
        self._file.truncate(kept)
        if not kept:
            self._write(head)

    @classmethod
    def open(cls, path: str | Path, settings: dict[str, Any]) -> Self:
        """Open a file or begin one; never touch one of another kind or other settings."""
        path = _path(path)
        head = _line({"truecast": "tournament", "format": _FORMAT, **settings})
        try:
            found = path.read_bytes() if path.exists() else b""
            if head.startswith(found):
                return cls(path, head, {}, 0)
            if not found.startswith(head):
                raise InputError("path", _refusal(found, settings), str(path))
            *lines, part = found.split(b"\n")
            played = dict(_game(line, at, path) for at, line in enumerate(lines[1:], 2))
            return cls(path, head, played, len(found) - len(part))
        except OSError as error:
            rule = f"must be a file to read and write, which it is not: {error.strerror}"
            raise InputError("path", rule, str(path)) from error

    def add(self, key: Key, row: Row) -> None:
        """Write down a game."""
        self._write(_line({"options": key[2:4], **asdict(row)}))
        self.played[key] = row

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()


def _path(given: str | Path) -> Path:
    """Return a path to a file, there or not yet; refuse what has no end, such as a device."""
    try:
        path = Path(given)
    except TypeError as error:
        raise InputError("path", "must be a path", given) from error
    if path.exists() and not path.is_file():
        raise InputError("path", "must be a file to read and write, which it is not", str(path))
    return path


def _line(entries: dict[str, Any]) -> bytes:
    return json.dumps(entries, allow_nan=False).encode() + b"\n"


def _refusal(found: bytes, settings: dict[str, Any]) -> str:
    """Say why a file is not to be used."""
    try:
        head = json.loads(found.split(b"\n", 1)[0])
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("truecast") != "tournament":
        return "must be a file of a tournament, or not exist yet"
    if head.get("format") != _FORMAT:
        return (
            f"must be of format {_FORMAT}, which this truecast reads; "
            f"its is {head.get('format')!r:.20}"
        )
    asked = ", ".join(f"{name} {value}" for name, value in settings.items())
    made = ", ".join(f"{name} {head.get(name)!s:.40}" for name in settings)
    return f"must be of a tournament with {asked}; it was made with {made}"


def _game(line: bytes, at: int, path: Path) -> tuple[Key, Row]:
    try:
        entries = json.loads(line)
        forecaster, adversary = map(str, entries.pop("options"))
        row = Row(**entries)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        rule = f"must have a game in every line but the first, and line {at} has none"
        raise InputError("path", rule, str(path)) from error
    return (row.forecaster, row.adversary, forecaster, adversary, row.rounds, row.seed), row
