"""The distance of a game, measured."""

from __future__ import annotations

from typing import Any

from truecast.distance import Distance, calibration_distance

__all__ = ["distance"]


def distance(*judged: Any, **options: Any) -> Distance:
    """The distance to calibration; Ctrl-C raises instead of returning what was found."""
    found = calibration_distance(*judged, **options)
    if found.ended == "interrupted":
        raise KeyboardInterrupt
    return found
