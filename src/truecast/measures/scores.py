"""Proper scores: read one beside every calibration figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast._threads import threads
from truecast.class_tally import ClassTally, as_class_tally, of_classes
from truecast.tally import Tally, as_tally

__all__ = ["brier_score", "class_brier", "class_log", "log_loss", "over_rounds", "surprise"]

_SEVERAL_THREADS = 1 << 17  # rounds from which another thread is worth starting
_Sums = TypeVar("_Sums")


def brier_score(
    y_true: Any | Tally | ClassTally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    normalize: bool = False,
    total: bool = False,
) -> float:
    """Mean squared error of the forecasts, a proper score: lower is better, honesty pays.

    It mixes calibration and sharpness; `reliability_curve` separates them. What is low depends on
    how predictable the outcomes are, so compare only forecasts of the same outcomes.

    Of several classes it is the sum over classes of squared errors, from 0 to 2 (Brier's own
    convention): for two columns twice what one of them gives.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    labels, normalize
        For several classes, with `y_prob` of shape (rounds, classes): as in
        `ClassTally.from_predictions`.
    total
        The sum over all rounds, rather than the mean.

    Examples
    --------
    >>> brier_score([1, 0], [0.75, 0.5])
    0.15625
    >>> brier_score(["sun", "rain"], [[0.75, 0.25], [0.5, 0.5]], labels=["sun", "rain"])
    0.3125
    """
    if labels is None and sample_weight is None:
        score = _core.brier_few(y_true, y_prob)
        if score is not None:
            return score if total else score / len(y_prob)
    if of_classes(y_true, y_prob, labels):
        several = as_class_tally(
            y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
        )
        return class_brier(several) / (1 if total else several.total)
    return _score(_core.brier_rounds, _core.brier_sum, y_true, y_prob, sample_weight, total)


def log_loss(
    y_true: Any | Tally | ClassTally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    normalize: bool = False,
    total: bool = False,
) -> float:
    """Mean of -log of the probability given to what happened, a proper score, in nats.

    Infinite if something with probability 0 happened: nothing is clipped.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    labels, normalize
        For several classes, with `y_prob` of shape (rounds, classes): as in
        `ClassTally.from_predictions`.
    total
        The sum over all rounds, rather than the mean.

    Examples
    --------
    >>> round(log_loss([1, 0], [0.5, 0.5]), 6)
    0.693147
    """
    if labels is None and sample_weight is None:
        score = _core.log_few(y_true, y_prob)
        if score is not None:
            return score if total else score / len(y_prob)
    if of_classes(y_true, y_prob, labels):
        several = as_class_tally(
            y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
        )
        return class_log(several) / (1 if total else several.total)
    return _score(_core.log_rounds, _core.log_sum, y_true, y_prob, sample_weight, total)


def _score(
    of_rounds: Callable[..., float | Literal[False] | None],
    of_tally: Callable[..., float],
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    total: bool,
) -> float:
    """Return a score: straight from the rounds in one pass, or from their tally, which is equal."""
    if y_prob is not None and sample_weight is None and not isinstance(y_true, Tally):
        score, rounds = over_rounds(of_rounds, y_true, y_prob)
        if score is not None:
            return score if total else score / rounds
    tally = as_tally(y_true, y_prob, sample_weight)
    return of_tally(tally.p, tally.zeros, tally.ones) / (1 if total else tally.total)


def over_rounds(
    of_rounds: Callable[..., _Sums | Literal[False] | None], y_true: Any, y_prob: Any
) -> tuple[_Sums | None, int]:
    """Return sums straight from the rounds in one pass, None if only their tally tells them.

    Then how many rounds there are.
    """
    y, p = _check.predictions(y_true, y_prob)
    several = threads() if len(p) >= _SEVERAL_THREADS else 1
    sums = of_rounds(y, p, several) if len(p) else None
    if sums is False:
        _check.refuse_predictions(y, p)
    return sums, len(p)


def class_brier(tally: ClassTally) -> float:
    """The sum over rounds and classes of the squared error."""
    return float(sum(_core.brier_sum(one.p, one.zeros, one.ones) for one in tally.classes))


def class_log(tally: ClassTally) -> float:
    """The sum over rounds of -log of the probability given to the class that came."""
    return float(sum(surprise(one.p, one.ones) for one in tally.classes))


def surprise(p: NDArray[np.float64], ones: NDArray[Any]) -> float:
    """The sum of -log p over the rounds in which the class came; infinite if p was 0."""
    came = ones > 0
    with np.errstate(divide="ignore"):
        return float(-np.log(p[came]) @ ones[came]) + 0.0
