"""What goes in and out of a service, row by row."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "LONGEST_ID",
    "Forecast",
    "ForecastRow",
    "OutcomeAnswer",
    "OutcomeRow",
    "Status",
]

LONGEST_ID = 200  # characters

Status = Literal["learned", "duplicate", "contradiction", "unknown", "given_up"]


class ForecastRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score to be answered.

    Attributes
    ----------
    score : float or list of float
        What the model says; a list if the stream has classes.
    id : str or None
        By which its outcome will come; the service makes one if there is none.
    groups : str, list of str, or None
        The groups that the round belongs to.
    event : str or None
        The event that it is about, if there are several forecasts of one.
    time : str or None
        A time of the caller's. It is kept in the journal; nothing else is done with it.
    """

    score: float | list[float]
    id: str | None = None
    groups: str | list[str] | None = None
    event: str | None = None
    time: str | None = None


class Forecast(msgspec.Struct, frozen=True):
    """The answer: use `p` in place of the score.

    Attributes
    ----------
    id : str
    p : float or list of float
    again : bool
        Whether this id was answered before; then this is the same answer, and nothing has changed.
    """

    id: str
    p: float | list[float]
    again: bool = False


class OutcomeRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happened: 0 or 1, or the name or number of the class."""

    id: str
    outcome: int | str


class OutcomeAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an outcome.

    Attributes
    ----------
    id : str
    status : str
        "learned"; "duplicate": it was learned before; "contradiction": another one was; "unknown":
        there is no forecast with this id; "given_up": it came too late. Only the first changes
        anything.
    p : float, list of float, or None
        What was forecast.
    """

    id: str
    status: Status
    p: float | list[float] | None = None
