"""What miscalibration can cost people who decide by the forecasts, exactly."""

from __future__ import annotations

from typing import Any

from truecast import _core
from truecast.tally import Tally, tally_or_few

__all__ = ["calibration_decision_loss", "u_calibration_error"]


def u_calibration_error(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """The most that trusting the forecasts can lose against the best constant in hindsight.

    The maximum, over all proper losses with values in [0, 1], of the mean loss of the forecasts
    minus the mean loss of the best constant (Kleinberg, Paes Leme, Schneider and Teng, 2023, who
    take losses in [-1, 1]: twice this). Exact: it is twice the height at 1/2 of the concave
    envelope of the regret of threshold decisions (docs/measures.md, theorem 5).

    0 does not mean calibrated: forecasts that beat every constant can be miscalibrated and have 0
    here.

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
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    return _core.u_calibration_sum(rounds) / (1 if total else rounds.total)


def calibration_decision_loss(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """The most that a decision with payoffs in [0, 1] can gain by second-guessing the forecasts.

    CDL (Hu and Wu, 2024): the maximum, over all decisions with payoffs in [0, 1], of the mean
    payoff lost by trusting the forecasts instead of the mean outcome at each forecast (swap
    regret). At most twice, and at least the square of, the calibration error by value. Exact: twice
    the height at 1/2 of the concave envelope of the loss of threshold decisions (docs/measures.md,
    theorem 5).

    Like the error by value, it treats each distinct forecast separately. If all are distinct, it
    says how well outcomes could be known in hindsight, not how well calibrated the forecasts are.
    So first round forecasts to the precision you act on.

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
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    return _core.decision_sum(rounds) / (1 if total else rounds.total)
