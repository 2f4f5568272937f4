"""A confidence sequence for the smooth calibration error (docs/monitor.md, section 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.arc import SMOOTH_ERROR

__all__ = ["SmoothInterval", "radius", "smooth_interval"]

_CELLS = 512
_OUTER = 1.0 / 2048.0  # the outermost points are kept away from 0 and 1 by this
_MOVED = 0.5 / _CELLS + _OUTER  # a forecast lies no farther from its point
_UP = 1.0 + 2.0**-40  # for rounding; what the sums may add beyond, the slack in _MOVED covers


@dataclass(frozen=True, slots=True)
class SmoothInterval:
    """Where the smooth calibration error of the true probabilities lies, at all times at once.

    It may begin at 0 although a monitor has much evidence. Evidence answers "can all forecasts be
    right?", and finds an error of size e after about 1/e**2 rounds. This interval answers "how
    large is the error?", whatever its shape, and reaches about 6/sqrt(rounds) to either side. A
    lower end of 0 says that this bound rules out no small error, not that there is none
    (docs/monitor.md, section 7).

    Attributes
    ----------
    value : float
        The smooth calibration error of the outcomes, up to 0.0015: chance makes it positive.
    lower, upper : float
        What the smooth error would be with the true probabilities of the outcomes in place of the
        outcomes lies between these, after every round, with this confidence.
    confidence : float
        The chance that it does so after all rounds at once, at least.
    """

    value: float
    lower: float
    upper: float
    confidence: float


def smooth_interval(
    residual: NDArray[np.float64], width: float, known: int, rounds: int, alpha: float
) -> SmoothInterval:
    """Return the interval from residuals by forecast, the sum of K(p, p), and counts of rounds."""
    if not rounds:
        return SmoothInterval(0.0, 0.0, 1.0, 1.0 - alpha)
    total = float(rounds)
    value = _smooth_error(residual, total)
    chance = SMOOTH_ERROR * radius(width, alpha)
    margin = (chance + (rounds - known)) / total * _UP + _MOVED
    return SmoothInterval(value, max(0.0, value - margin), min(1.0, value + margin), 1.0 - alpha)


def radius(width: float, alpha: float) -> float:
    """Return how far chance takes the residuals, at most, with this risk for all times at once.

    The least over j = 0, 1, ... of x_j, where a x_j / 2 + ln(2 / alpha_j) / a has its minimum at
    about width = 2^j, and alpha_j = alpha / ((j + 1)(j + 2)).
    """
    if width <= 0:
        return 0.0
    least = math.inf
    for j in range(max(1, math.ceil(math.log2(width)) + 2)):
        log = math.log(2.0 * (j + 1) * (j + 2) / alpha)
        tilt = math.sqrt(2.0 * log / 2.0**j)
        least = min(least, tilt * width / 2.0 + log / tilt)
    return least


def _smooth_error(residual: NDArray[np.float64], total: float) -> float:
    """The smooth error of residuals at the points of the grid, per round."""
    p = np.clip(np.arange(_CELLS + 1) / _CELLS, _OUTER, 1.0 - _OUTER)
    ones = np.where(residual > 0, residual / (1.0 - p), 0.0)
    zeros = np.where(residual < 0, -residual / p, 0.0)
    return min(1.0, _core.smooth_error(p, zeros, ones, total, np.empty(0)))
