"""What miscalibration costs those who decide by the forecasts, whatever they have to decide: exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.tally import Tally, as_tally

__all__ = ["calibration_decision_loss", "u_calibration_error"]


def u_calibration_error(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """The most that anyone who trusts the forecasts can lose against the best constant forecast in hindsight.

    The maximum, over all proper losses with values in [0, 1], of the mean loss of the forecasts less that of the best
    constant (Kleinberg, Paes Leme, Schneider and Teng, 2023, who take losses in [-1, 1]: twice this). Exact: it is
    twice the height at 1/2 of the concave envelope of the regret of threshold decisions (docs/measures.md, theorem 5).

    Forecasts that are better than any constant can be miscalibrated and still have 0 here.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds rather than the mean.

    Examples
    --------
    >>> u_calibration_error([0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0])
    1.0
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    rate, p = tally.rate, tally.p
    # regret of the loss with its only kink at c: total (rate - c)^+ less the sum of (y - c) over forecasts above c;
    # at a forecast itself, the worse of counting it as above and not
    ones_from, weight_from = _from_here(tally.ones), _from_here(tally.weights)
    best = tally.total * np.maximum(rate - p, 0.0)
    counting = best - (ones_from[:-1] - p * weight_from[:-1])
    not_counting = best - (ones_from[1:] - p * weight_from[1:])
    places = np.concatenate(([0.0], p, [1.0]))
    regret = np.concatenate(([0.0], np.maximum(counting, not_counting), [0.0]))
    return 2 * _envelope_at_half(places, regret) / (1 if total else tally.total)


def calibration_decision_loss(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """The most that any decision maker with payoffs in [0, 1] gains by second-guessing the forecasts.

    CDL (Hu and Wu, 2024): the maximum, over all decisions with payoffs in [0, 1], of the mean payoff lost by trusting
    the forecasts instead of the mean outcome at each forecast (swap regret). At most twice, and at least the square
    of, the calibration error by value. Exact: twice the height at 1/2 of the concave envelope of the loss of threshold
    decisions (docs/measures.md, theorem 5).

    Like the error by value it looks at each distinct forecast alone: if all are distinct, it says how well outcomes
    could be known in hindsight, not how well calibrated the forecasts are. Round forecasts first, to what you act on.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds rather than the mean.

    Examples
    --------
    >>> round(calibration_decision_loss([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5]), 6)
    0.5
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    rate = tally.ones / tally.weights
    places, index = np.unique(np.concatenate((tally.p, rate)), return_inverse=True)
    said, mean = index[: len(rate)], index[len(rate) :]
    # between a forecast and its rate, a threshold c costs weight |rate - c|: sums of lines over stretches of places
    sign = np.where(rate >= tally.p, 1.0, -1.0)
    first, last = np.minimum(said, mean), np.maximum(said, mean)
    constant = _over_stretches(first, last, sign * tally.ones, len(places))
    slope = _over_stretches(first, last, -sign * tally.weights, len(places))
    loss = np.maximum(constant + slope * places, 0.0)
    return (
        2
        * _envelope_at_half(np.append(places, [0.0, 1.0]), np.append(loss, [0.0, 0.0]))
        / (1 if total else tally.total)
    )


def _from_here(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sums of this and all later entries, and a last 0."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0).astype(np.float64)


def _over_stretches(
    first: NDArray[np.int64], last: NDArray[np.int64], values: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Return at each place the sum of the values whose stretch, ends included, covers it."""
    change = np.bincount(first, values, size + 1) - np.bincount(last + 1, values, size + 1)
    return np.cumsum(change[:size])


def _envelope_at_half(x: NDArray[np.float64], height: NDArray[np.float64]) -> float:
    """Return the height at 1/2 of the least concave function above points (x, height), which reach from 0 to 1.

    The bridge over 1/2: from any two points on either side, to the highest point above their line, and on.
    """
    left, right = int(np.argmin(x)), int(np.argmax(x))
    while True:
        slope = (height[right] - height[left]) / (x[right] - x[left])
        at_half = height[left] + slope * (0.5 - x[left])
        above = height - slope * (x - 0.5)
        top = int(np.argmax(above))
        if x[top] == 0.5 and above[top] >= at_half:
            return float(height[top])
        if above[top] <= at_half * (1 + 1e-14) or top in (left, right):
            return float(at_half)
        left, right = (top, right) if x[top] < 0.5 else (left, top)
