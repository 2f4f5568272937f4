"""Proper scores: read one beside every calibration figure."""

from __future__ import annotations

from typing import Any

from truecast import _core
from truecast.tally import Tally, as_tally

__all__ = ["brier_score", "log_loss"]


def brier_score(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """Mean squared error of the forecasts, a proper score: lower is better, honesty pays.

    It mixes calibration and sharpness; `reliability_curve` separates them. What is low depends on
    how predictable the outcomes are, so compare only forecasts of the same outcomes.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds, rather than the mean.

    Examples
    --------
    >>> brier_score([1, 0], [0.75, 0.5])
    0.15625
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    return _core.brier_sum(tally.p, tally.zeros, tally.ones) / (1 if total else tally.total)


def log_loss(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    """Mean of -log of the probability given to what happened, a proper score, in nats.

    Infinite if something with probability 0 happened: nothing is clipped.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds, rather than the mean.

    Examples
    --------
    >>> round(log_loss([1, 0], [0.5, 0.5]), 6)
    0.693147
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    return _core.log_sum(tally.p, tally.zeros, tally.ones) / (1 if total else tally.total)
