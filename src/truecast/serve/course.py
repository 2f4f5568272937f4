"""How a stream went, against time: a few hundred marks, ever wider apart as time goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from truecast.serve.stream import LiveStream

__all__ = ["Course", "Later", "Mark", "mark_of"]

MOST = 256
FIRST_STEP = 4  # rounds


class Mark(NamedTuple):
    """Sums from the first round up to a moment."""

    at: int
    issued: int
    rounds: int
    right: float  # ones, or how often the most probable class came
    before: float  # sums of forecasts
    after: float
    noise: float  # the sum of p (1 - p)
    per_round: float  # the certificate
    evidence_before: float
    evidence_after: float
    unresolved: int


class Later(NamedTuple):
    """A mark that is still to be made."""

    rounds: int
    place: int  # at which of the moments that were foreseen


class Course:
    """Marks every `step` rounds; when there are too many, every other one goes.

    A mark is made at the end of an entry, so that replaying entries makes the same.
    """

    def __init__(self) -> None:
        self.step = FIRST_STEP
        self.marks: list[Any] = []  # of Mark; in a course that is foreseen also of Later
        self.due = FIRST_STEP  # the number of rounds from which on there is a mark to make

    def note(self, at: int, stream: LiveStream) -> None:
        """Make a mark, if one is due."""
        if stream.record.rounds >= self.due:
            self._add(mark_of(at, stream))

    def _add(self, mark: Any) -> None:
        self.marks.append(mark)
        if len(self.marks) > MOST:
            self.step *= 2
            self.marks = self.marks[1::2]
        self._plan()

    def foreseen(self, rounds: NDArray[np.int64]) -> Course:
        """Return the course after moments with this many rounds each; they grow.

        It has a `Later` for each mark that must still be made; those that would be made and go
        again are not worth their certificates.
        """
        course = Course()
        course.step, course.marks, course.due = self.step, [*self.marks], self.due
        place = int(np.searchsorted(rounds, course.due))
        while place < len(rounds):
            course._add(Later(int(rounds[place]), place))
            place = max(place + 1, int(np.searchsorted(rounds, course.due)))
        return course

    def _plan(self) -> None:
        last = self.marks[-1].rounds if self.marks else 0
        self.due = (last // self.step + 1) * self.step

    def time_of(self, number: int) -> int | None:
        """Return about when a forecast was made: the first mark after it."""
        return next((mark.at for mark in self.marks if mark.issued > number), None)

    def state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {"step": self.step, "marks": [list(mark) for mark in self.marks]}

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self.step = int(state["step"])
        self.marks = [Mark(*mark) for mark in state["marks"]]
        self._plan()


def mark_of(at: int, stream: LiveStream) -> Mark:
    """Return where a stream is now."""
    issued, _, noise, (rounds, right, before, after), _ = stream.record.sums()
    evidence = [monitor.evidence for monitor in stream.monitors]
    return Mark(
        at,
        issued,
        rounds,
        right,
        before,
        after,
        noise,
        per_round(stream),
        evidence[0],
        evidence[1],
        stream.record.unresolved,
    )


def per_round(stream: LiveStream) -> float:
    """Return the certificate's bound for a round: of the worst class, if there are classes."""
    certificate = stream.certificate
    if stream.binary:
        return float(certificate.per_round)
    return max(float(each.per_round) for each in certificate.classes.values())
