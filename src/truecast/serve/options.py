"""What a stream is made with."""

from __future__ import annotations

import re
from typing import Any, Self

import msgspec

from truecast import Monitor, Recalibrator, _check
from truecast.errors import InputError

__all__ = ["NAME", "Alarm", "Json", "StreamOptions", "checked_name"]

#: names of streams: they stand in addresses, file names and labels of metrics
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MEAN_TIME = 100_000.0
GIVE_UP_AFTER = 30 * 86_400.0
LONGEST_NOTE = 2_000


class Json(msgspec.Struct, frozen=True):
    """What can be written as JSON, and read again."""

    def to_json(self) -> bytes:
        """Return what `from_json` reads."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Build what `to_json` gave."""
        return msgspec.json.decode(text, type=cls)


class Alarm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The promise of the monitors: one of the two; see `truecast.Monitor`.

    Attributes
    ----------
    mean_time : float or None
        At most one false alarm in that many forecasts, on average.
    alpha : float or None
        The chance that there is ever a false alarm.
    """

    mean_time: float | None = None
    alpha: float | None = None


class StreamOptions(Json, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a stream; they are fixed when it is created.

    Attributes
    ----------
    classes : int, list of str, or None
        None for outcomes of 0 and 1; a number or names of several classes.
    scale : str
        What scores are: "probability" or "logit".
    budget : float
        See `truecast.Recalibrator`.
    max_groups, max_unresolved : int
        How many groups have figures of their own; how many forecasts may await their outcomes,
        before the oldest is given up.
    give_up_after : float or None
        Seconds after which an outcome is awaited no longer: 30 days if nothing is said; None for
        ever. Late outcomes are bet on in the order of forecasts, so one that never comes holds back
        the evidence of all that come after it, until its forecast is given up.
    alarm : Alarm
        What the monitors promise: at most one false alarm in 100,000 forecasts if nothing is said.
    order : str
        In which order late outcomes are bet on; see `truecast.Monitor`.
    note : str
        A line for people.
    """

    classes: int | list[str] | None = None
    scale: str = "probability"
    budget: float = 4.0
    max_groups: int = 100
    max_unresolved: int = 100_000
    give_up_after: float | None = GIVE_UP_AFTER
    alarm: Alarm = Alarm(mean_time=MEAN_TIME)
    order: str = "issue"
    note: str = ""

    def recalibrator(self) -> Any:
        """Return a new recalibrator, or raise InputError."""
        return Recalibrator(
            classes=self.classes,  # type: ignore[arg-type]
            scale=self.scale,
            budget=self.budget,
            max_groups=self.max_groups,
            max_unresolved=self.max_unresolved,
        )

    def monitor(self) -> Monitor:
        """Return a new monitor, or raise InputError."""
        options: dict[str, Any] = {
            "alpha": self.alarm.alpha,
            "mean_time": self.alarm.mean_time,
            "order": self.order,
            "max_unresolved": self.max_unresolved,
        }
        if self.classes is not None:
            return Monitor(classes=self.classes, **options)
        return Monitor(max_groups=self.max_groups, **options)

    @property
    def labels(self) -> list[str] | list[int] | None:
        """The classes' names, or None for outcomes of 0 and 1."""
        if isinstance(self.classes, int):
            return list(range(self.classes))
        return self.classes

    def check(self) -> None:
        """Raise InputError if an option breaks its rule."""
        self.recalibrator()
        self.monitor()
        if self.give_up_after is not None:
            _check.within("give_up_after", self.give_up_after, 0.001, 1e10)
        if len(self.note) > LONGEST_NOTE:
            rule = f"must be at most {LONGEST_NOTE} characters"
            raise InputError("note", rule, len(self.note))


def checked_name(name: str) -> str:
    """Return the name of a stream, or raise InputError."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        rule = "must be 1 to 100 letters, digits, '.', '_' or '-', and begin with a letter or digit"
        raise InputError("name", rule, name)
    return name
