"""The two proper scores of several classes, taken apart class by class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from truecast import _core
from truecast._check_classes import Label
from truecast.class_tally import ClassTally, as_class_tally
from truecast.measures.corp import Decomposition, decomposed, isotonic_blocks
from truecast.measures.scores import surprise
from truecast.tally import Tally

__all__ = ["ClassDecompositions", "class_decompositions"]


@dataclass(frozen=True, slots=True)
class ClassDecompositions:
    """What `class_decompositions` returns: the parts of each class, which add up.

    Attributes
    ----------
    labels : tuple of str or int
    brier, log : tuple of Decomposition
        One for each class.
    """

    labels: tuple[Label, ...]
    brier: tuple[Decomposition, ...]
    log: tuple[Decomposition, ...]

    @property
    def brier_sum(self) -> Decomposition:
        """Of the Brier score, summed over classes."""
        return _added(self.brier)

    @property
    def log_sum(self) -> Decomposition:
        """Of the log score."""
        return _added(self.log)


class ClassParts(NamedTuple):
    """The two scores of one class, taken apart, and what they are made of.

    `squares` and `surprise` are what the class adds to the sums of both scores over all rounds.
    """

    brier: Decomposition
    log: Decomposition
    squares: float
    surprise: float
    mean_forecast: float


def class_decompositions(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
) -> ClassDecompositions:
    r"""Take both proper scores apart: by class, and into miscalibration and discrimination.

    For each class by isotonic regression, as `reliability_curve` does for two. The Brier score is
    the sum over classes of squared errors. The log score is a sum over classes, too:

    .. math:: -\log p_{y} = \sum_k \big( y_k \log(y_k / p_k) - y_k + p_k \big),

    since both the outcomes and the forecasts of a round sum to 1. Every summand is a proper score
    of its class, so the same regression is the best for both (docs/measures.md, theorem 10).

    The summed miscalibration is what recalibrating every class by its own curve would take off.
    Those forecasts need not sum to 1, and it does not see what only whole vectors would show.
    Chance alone makes it positive.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize
        As in `ClassTally.from_predictions`; or a ClassTally alone.

    Examples
    --------
    >>> rows = [[0.5, 0.25, 0.25]] * 4
    >>> parts = class_decompositions([0, 0, 0, 1], rows)
    >>> parts.brier_sum
    Decomposition(score=0.5, miscalibration=0.125, discrimination=0.0, uncertainty=0.375)

    Notes
    -----
    If rows miss a sum of 1 by up to 1e-6, which is allowed, the scores of classes miss the log
    score by as much on average.
    """
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    return decompositions_of(tally.labels, map(class_parts, tally.classes))


def decompositions_of(
    labels: tuple[Label, ...], parts: Iterable[ClassParts]
) -> ClassDecompositions:
    """Return the parts of all classes."""
    every = [*parts]
    return ClassDecompositions(
        labels, tuple(part.brier for part in every), tuple(part.log for part in every)
    )


def class_parts(tally: Tally) -> ClassParts:
    """Take both scores of one class apart: (y - p)^2, and y log(y / p) - y + p.

    The mean of the latter at rates is their entropy alone.
    """
    _, zeros, ones = isotonic_blocks(tally.zeros, tally.ones)
    total, rate = tally.total, tally.rate
    mean_forecast = float(tally.p @ tally.weights) / total
    squares = _core.brier_sum(tally.p, tally.zeros, tally.ones)
    unlikely = surprise(tally.p, tally.ones)
    rates = ones / (zeros + ones)
    brier_of_rates, _, brier_of_all, _ = _core.scores_of_blocks(rates, zeros, ones)
    brier = (squares / total, brier_of_rates, brier_of_all)
    log = (
        unlikely / total + mean_forecast - rate,
        surprise(rates, ones) / total,
        surprise(np.array([rate]), ones.sum(keepdims=True)) / total,
    )
    return ClassParts(decomposed(*brier), decomposed(*log), squares, unlikely, mean_forecast)


def _added(parts: Iterable[Decomposition]) -> Decomposition:
    columns = zip(
        *((p.score, p.miscalibration, p.discrimination, p.uncertainty) for p in parts), strict=True
    )
    return Decomposition(*(float(sum(column)) for column in columns))
