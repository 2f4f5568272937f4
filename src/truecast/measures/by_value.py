"""The calibration error by value."""

from __future__ import annotations

from typing import Any

from truecast import _core
from truecast.tally import Tally, tally_or_few

__all__ = ["calibration_error_by_value"]


def calibration_error_by_value(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    r"""ECE without bins, over the distinct forecasts v.

    .. math:: \frac1T \sum_v \Big|\sum_{t: p_t = v} (p_t - y_t)\Big|

    This is the ECE of the paper, which takes its total. It is an upper bound on the distance to
    calibration, but not continuous: if all forecasts are distinct it is the mean of \|p - y\|,
    however well calibrated they are, and a tiny change of the forecasts can turn that into 0. Use
    it for forecasts that take few values.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds, as in the paper, rather than the mean.

    Examples
    --------
    >>> calibration_error_by_value([1, 0, 1, 1], [0.5, 0.5, 1.0, 1.0])
    0.0
    >>> calibration_error_by_value([1, 0, 1, 1], [0.5, 0.5, 0.75, 0.75], total=True)
    0.5
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    return _core.residual_sum(rounds) / (1 if total else rounds.total)
