"""When forecasts were made, to say when something began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["MOST_DATES", "Dates"]

MOST_DATES = 2048


class Dates:
    """When forecasts were made, by their number: at most 2,048 of them, evenly apart."""

    def __init__(self, points: list[list[Any]] | None = None, step: int = 1) -> None:
        self._points = points or []
        self._step = step

    def add(self, first: int, times: Sequence[Any]) -> None:
        """Take note of the times of some forecasts, the first of which has this number."""
        number = first + -first % self._step
        while number < first + len(times):
            self._points.append([number, times[number - first]])
            if len(self._points) > MOST_DATES:
                self._points = self._points[::2]
                self._step *= 2
            number += self._step - number % self._step

    def at(self, number: float) -> Any:
        """Return when about a forecast was made; None if nobody knows."""
        before = [time for at, time in self._points if at <= number]
        return before[-1] if before else None

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"points": self._points, "step": self._step}
