"""What a monitor knows of its groups or classes, to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truecast.monitor.finding import Finding, finite

if TYPE_CHECKING:
    from truecast.monitor.monitor import Monitor

__all__ = ["Evidence", "GroupEvidence", "Groups", "e_bh"]

# evidence, peak, alarms, refuted, rounds; what there is to say now, and what the last alarm said
Look = tuple[float, float, int, int, int, tuple[Any, ...], tuple[Any, ...] | None]


class Evidence:
    """The evidence against a part of the forecasts: a view of the monitor as it is."""

    __slots__ = ("_monitor",)

    _monitor: Monitor

    def _look(self) -> Look:
        raise NotImplementedError

    @property
    def evidence(self) -> float:
        """As `Monitor.evidence`, of this part; it may be compared with the same threshold."""
        return finite(self._look()[0])

    @property
    def peak(self) -> float:
        """The most evidence there was."""
        return finite(self._look()[1])

    @property
    def rounds(self) -> int:
        """Outcomes bet on so far."""
        return self._look()[4]

    @property
    def alarms(self) -> int:
        """Alarms of this part so far."""
        return self._look()[2]

    @property
    def alarm(self) -> Finding | None:
        """As `Monitor.alarm`, of this part."""
        last = self._look()[6]
        return None if last is None else self._monitor._found(last)

    @property
    def finding(self) -> Finding:
        """As `Monitor.finding`, of this part."""
        return self._monitor._found(self._look()[5])

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}(evidence={self.evidence:.3g}, rounds={self.rounds})"


class GroupEvidence(Evidence):
    """The evidence against one group's forecasts, or those of all others."""

    __slots__ = ("_name",)

    def __init__(self, monitor: Monitor, name: str | int | None) -> None:
        self._monitor, self._name = monitor, name

    def _look(self) -> Look:
        number = 1 if self._name is None else self._monitor._number_of(self._name)
        return self._monitor._look(number)


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


def e_bh(evidence: Mapping[str | int, float], fdr: float) -> list[str | int]:
    """Return the R names with most evidence, for the largest R such that each has 1/(fdr R)."""
    most_first = sorted(evidence, key=lambda name: -evidence[name])
    chosen = 0
    for many, name in enumerate(most_first, start=1):
        if evidence[name] * many * fdr >= 1.0:
            chosen = many
    return most_first[:chosen]
