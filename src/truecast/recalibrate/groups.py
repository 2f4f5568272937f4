"""What a recalibrator knows about its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from truecast import _core
from truecast.certificate import ArcCertificate
from truecast.ledger import certify

__all__ = ["GroupRecord", "Groups"]


class GroupRecord:
    """The forecasts of one group: a live view of the recalibrator."""

    __slots__ = "_desk", "_name"

    def __init__(self, desk: _core.Desk, name: str | int | None) -> None:
        self._desk, self._name = desk, name

    def _parts(self) -> tuple[Any, ...]:
        parts: tuple[Any, ...] = self._desk.alone(self._read)
        return parts

    def _read(self) -> tuple[Any, ...]:
        """By name, or None for all others: its number is another one after a state was loaded."""
        number = 1 if self._name is None else self._desk.number_of(self._name)
        parts: tuple[Any, ...] = self._desk.parts(number)
        return parts

    @property
    def certificate(self) -> ArcCertificate:
        """What is proved about the forecasts of this group so far. Costs O(knots)."""
        return certify(self._parts())

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        rounds: int = self._parts()[0]
        return rounds

    @property
    def unresolved(self) -> int:
        """Forecasts issued whose outcomes are awaited."""
        late: int = self._parts()[1]
        return late

    @property
    def given_up(self) -> int:
        """Forecasts whose outcomes are no longer awaited."""
        lost: int = self._parts()[2]
        return lost

    def __repr__(self) -> str:
        return (
            f"GroupRecord(rounds={self.rounds}, unresolved={self.unresolved}, "
            f"given_up={self.given_up})"
        )


class Groups(Mapping[str | int, GroupRecord]):
    """The groups of a recalibrator by name, in order of appearance."""

    __slots__ = ("_desk",)

    def __init__(self, desk: _core.Desk) -> None:
        self._desk = desk

    def __getitem__(self, group: str | int) -> GroupRecord:
        self._desk.number_of(group)  # KeyError, if there is no such group
        return GroupRecord(self._desk, group)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._desk.names)

    def __len__(self) -> int:
        return self._desk.groups

    def __repr__(self) -> str:
        return f"Groups({self._desk.names!r:.400})"
