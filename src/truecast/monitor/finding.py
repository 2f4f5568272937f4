"""What an alarm says: since when, where, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from truecast import _core

__all__ = ["Finding", "found"]

# As in _core/monitor.hpp: the bets in order, by what they bet on.
_OFFSETS = ("too high", "too high", "too low", "too low")
_SLOPES = ("too sure", "not sure enough")
_PLACES: int = _core.PLACES
_MEANT = {  # which forecasts are off, and to which side
    "too sure": ": below 0.5 too low, above too high",
    "not sure enough": ": below 0.5 too high, above too low",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Since when forecasts are off, where, and by how much, as far as can be told.

    These are estimates: by the bet that has won most, and averaged over the moments at which the
    change may have come. What is proved is the alarm, not what is said about its cause.

    Attributes
    ----------
    round : int
        The number of the forecast, from 0, that this was said after.
    evidence : float
        The evidence then. inf if a forecast of exactly 0 or 1 was wrong.
    since : int
        The number of the forecast from which on they are off.
    earliest, latest : int
        An interval for `since`: two standard deviations, taking one of the bets to be the truth. It
        is measured, not proved.
    direction : str
        "too high", "too low", "too sure", "not sure enough" or "surprised": sure of something, and
        wrong, too often.
    low, high : float
        The range of forecasts that this is about.
    forecast, outcome : float
        Means since then in that range; nan if there were none.
    rounds : float
        How many forecasts that is.
    label : str, int or None
        Of several classes, the one whose probabilities these are; None for those of whichever
        class was said to be likeliest, or if there are no classes.
    """

    round: int
    evidence: float
    since: int
    earliest: int
    latest: int
    direction: str
    low: float
    high: float
    forecast: float
    outcome: float
    rounds: float
    label: str | int | None = None

    @property
    def points(self) -> float:
        """Outcomes less forecasts, in percentage points: below 0 if forecasts are too high."""
        return 100.0 * (self.outcome - self.forecast)

    @property
    def everywhere(self) -> bool:
        """Whether this is about all forecasts."""
        return (self.low, self.high) == (0.0, 1.0)

    def in_words(self, when: str | None = None) -> str:
        """Say it in a sentence; `when` is what to say instead of the number of a forecast."""
        which = "forecasts" if self.label is None else f"forecasts of {self.label}"
        if not self.everywhere:
            which += f" from {self.low:.2g} to {self.high:.2g}"
        began = f"forecast {self.since:,}" if when is None else when
        if math.isinf(self.evidence):
            return "a forecast of exactly 0 or 1 was wrong"
        if math.isnan(self.points):
            return f"{which} are {self.direction} since {began}"
        if self.direction in ("too high", "too low"):
            points = abs(self.points)
            unit = "point" if _short(points) == "1" else "points"
            side = "too high" if self.points < 0 else "too low"
            return f"{which} are {_short(points)} {unit} {side} since {began}"
        means = f"said {_short(100 * self.forecast)} %, came {_short(100 * self.outcome)} %"
        meant = _MEANT.get(self.direction, "")
        return f"{which} are {self.direction} since {began}{meant} (on average {means})"

    def __str__(self) -> str:
        return self.in_words() if self.evidence > 1 else "no evidence that forecasts are off"


def _short(x: float) -> str:
    return f"{x:.0f}" if x >= 10 else f"{x:.2g}"


def found(numbers: tuple[Any, ...], label: str | int | None = None) -> Finding:
    """Return what the core found, by names."""
    clock, evidence, since, earliest, latest, bet, _, miss, count, said, _ = numbers
    direction, low, high = _bet(bet)
    forecast = said / count if count > 0 else math.nan
    return Finding(
        round=clock,
        evidence=finite(evidence),
        since=round(since),
        earliest=math.floor(earliest),
        latest=math.ceil(latest),
        direction=direction,
        low=low,
        high=high,
        forecast=forecast,
        outcome=forecast + miss / count if count > 0 else math.nan,
        rounds=count,
        label=label,
    )


def finite(evidence: float) -> float:
    """Return the evidence; what is for certain is infinite."""
    return math.inf if evidence >= _core.FOR_CERTAIN else evidence


def _bet(number: int) -> tuple[str, float, float]:
    """What a bet is about: a direction, and a range of forecasts."""
    if number < len(_OFFSETS):
        return _OFFSETS[number], 0.0, 1.0
    number -= len(_OFFSETS)
    if number < len(_SLOPES):
        return _SLOPES[number], 0.0, 1.0
    number -= len(_SLOPES)
    if number < 2 * _PLACES:
        side, place = divmod(number, _PLACES)
        direction = ("too high", "too low")[side]
        return direction, _edge(place / _PLACES), _edge((place + 1) / _PLACES)
    return "surprised", 0.0, 1.0


def _edge(u: float) -> float:
    """The forecast at a part of the line, as places are cut."""
    return 2.0 * u * u if u <= 0.5 else 1.0 - 2.0 * (1.0 - u) ** 2
