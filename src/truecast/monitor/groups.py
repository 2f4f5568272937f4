"""What a monitor knows of its groups, to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truecast.monitor.finding import Finding, finite, found

if TYPE_CHECKING:
    from truecast.monitor.monitor import Monitor

__all__ = ["GroupEvidence", "Groups"]


class GroupEvidence:
    """The evidence against one group's forecasts, or everyone's: a view of the monitor as it is."""

    __slots__ = "_monitor", "_name"

    def __init__(self, monitor: Monitor, name: str | int | None) -> None:
        self._monitor, self._name = monitor, name

    def _look(self) -> tuple[Any, ...]:
        number = 1 if self._name is None else self._monitor._number_of(self._name)
        return self._monitor._look(number)

    @property
    def evidence(self) -> float:
        """As `Monitor.evidence`, of this group; it may be compared with the same threshold."""
        return finite(self._look()[0])

    @property
    def rounds(self) -> int:
        """Outcomes bet on so far."""
        rounds: int = self._look()[4]
        return rounds

    @property
    def alarms(self) -> int:
        """Alarms of this group so far."""
        alarms: int = self._look()[2]
        return alarms

    @property
    def alarm(self) -> Finding | None:
        """As `Monitor.alarm`, of this group."""
        last = self._look()[6]
        return None if last is None else found(last)

    @property
    def finding(self) -> Finding:
        """As `Monitor.finding`, of this group."""
        return found(self._look()[5])

    def __repr__(self) -> str:
        return f"GroupEvidence(evidence={self.evidence:.3g}, rounds={self.rounds})"


class Groups(Mapping[str | int, GroupEvidence]):
    """The groups of a monitor by name, in the order in which they came."""

    __slots__ = ("_monitor",)

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def __getitem__(self, group: str | int) -> GroupEvidence:
        self._monitor._number_of(group)  # KeyError, if there is no such group
        return GroupEvidence(self._monitor, group)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._monitor._names())

    def __len__(self) -> int:
        return len(self._monitor._names())

    def __repr__(self) -> str:
        return f"Groups({self._monitor._names()!r:.400})"
