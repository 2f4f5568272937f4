"""Calibration of several classes: class by class, given the predicted class, of the confidence.

Each is a weaker notion than calibration of the whole vector, which cannot be measured: a net of the
simplex has a number of cells that grows exponentially in the number of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._check_classes import Label
from truecast.class_tally import ClassTally, as_class_tally
from truecast.errors import InputError
from truecast.measures.families import chance_of, holm
from truecast.measures.smooth import smooth_calibration_error
from truecast.tally import Tally

__all__ = [
    "NOTIONS",
    "ClassErrors",
    "ClassUncertainty",
    "classwise_calibration_errors",
    "classwise_uncertainty",
    "confidence_calibration_error",
    "top_label_calibration_errors",
    "top_label_decision_loss",
]

NOTIONS = {
    "classwise": "among rounds in which class k was forecast with p, it came in a share p",
    "top-label": "among rounds in which class k was predicted, with p, it came in a share p",
    "confidence": "among rounds whose predicted class had p, it came in a share p",
}

Error = Callable[[Tally], float]

_RESAMPLES, _LEAST_RESAMPLES = 999, 20  # of a class
_ALL_RESAMPLES = 50_000  # of all classes


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """An error of each class; what `classwise_calibration_errors` and others return.

    Attributes
    ----------
    notion : str
        "classwise" or "top-label".
    labels : tuple of str or int
    each : array
        The error of each class, per round of its tally; nan for a class never predicted, where only
        those rounds count.
    share : array
        Which share of all rounds these are: 1 for "classwise", how often the class was predicted
        for "top-label".
    """

    notion: str
    labels: tuple[Label, ...]
    each: NDArray[np.float64]
    share: NDArray[np.float64]

    @property
    def sum(self) -> float:
        """The errors of all classes, added, per round."""
        seen = self.share > 0
        return float(self.share[seen] @ self.each[seen])

    @property
    def mean(self) -> float:
        """The mean over classes: the sum by the number of classes. Small where classes are many."""
        return self.sum / len(self.labels)

    @property
    def worst(self) -> float:
        """The largest error of a class."""
        return float(np.nanmax(self.each))

    @property
    def worst_label(self) -> Label:
        """The class that has it."""
        return self.labels[int(np.nanargmax(self.each))]

    @property
    def meaning(self) -> str:
        """What an error of 0 means. It does not mean that whole vectors are calibrated."""
        return NOTIONS[self.notion]

    def __str__(self) -> str:
        return (
            f"{self.notion} error: sum {self.sum:.6f}, worst {self.worst:.6f} "
            f"({self.worst_label!r}); 0 means: {self.meaning}"
        )


def classwise_calibration_errors(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    error: Error = smooth_calibration_error,
) -> ClassErrors:
    """Return the calibration error of each class by itself: its forecast, and whether it came.

    The smooth calibration error, or another: `binned_calibration_error` makes it the classwise ECE,
    whose mean over classes is usually reported (Kull and others, 2019). For two classes both errors
    are that of the one against the other, so their sum is twice that.

    All zero does not mean that rows are calibrated as vectors, nor that the predicted class comes
    as often as said. Chance alone makes it positive: see `classwise_uncertainty`.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize
        As in `ClassTally.from_predictions`; or a ClassTally alone.
    error
        A function of a Tally; options by ``functools.partial``.

    Examples
    --------
    >>> rows = [[0.5, 0.25, 0.25]] * 4
    >>> errors = classwise_calibration_errors([0, 0, 0, 1], rows)
    >>> errors.each, errors.sum, errors.worst_label
    (array([0.25, 0.  , 0.25]), 0.5, 0)
    """
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    each = np.array([error(one) for one in tally.classes])
    return ClassErrors("classwise", tally.labels, each, np.ones(len(each)))


def top_label_calibration_errors(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    error: Error = smooth_calibration_error,
) -> ClassErrors:
    """Return the calibration error of the predicted class, for each class that was predicted.

    The predicted class is the most probable one, the first of equals. Among the rounds with the
    same predicted class, its forecast is compared with whether it came (Gupta and Ramdas, 2022):
    with `binned_calibration_error` the sum is their top-label ECE. At least as large as the
    `confidence_calibration_error`, in which too much for one class and too little for another
    cancel.

    It says nothing about classes that are not predicted.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize, error
        As in `classwise_calibration_errors`.

    Examples
    --------
    >>> rows = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> errors = top_label_calibration_errors([0, 0, 1, 0], rows)
    >>> errors.each, errors.sum
    (array([0.25, 0.25]), 0.25)
    >>> confidence_calibration_error([0, 0, 1, 0], rows)
    0.0
    """
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    each = np.array([error(top) if top.total else np.nan for top in tally.tops])
    share = np.array([top.total for top in tally.tops]) / tally.total
    return ClassErrors("top-label", tally.labels, each, share)


def confidence_calibration_error(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    error: Error = smooth_calibration_error,
) -> float:
    """Return the calibration error of the greatest probability of each round.

    The weakest of the three notions, and the one that most papers on neural networks mean: with
    `binned_calibration_error` it is the ECE of Guo and others (2017), as netcal and torchmetrics
    define it for several classes, but for rounds on the edges of bins.

    Classes that are predicted too boldly and too timidly cancel:
    `top_label_calibration_errors` tells them apart.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize, error
        As in `classwise_calibration_errors`.

    Examples
    --------
    >>> confidence_calibration_error([0, 1, 2, 0], [[0.5, 0.25, 0.25]] * 4)
    0.0
    """
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    return error(tally.confidence)


def top_label_decision_loss(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    total: bool = False,
) -> float:
    """Return how much more often one would have been right by saying another class throughout.

    For each predicted class: how often the class came that came most often, less how often the
    predicted one did. The swap regret of deciding for the most probable class, exactly. 0 if no
    class should have been replaced by another one in all rounds in which it was predicted.

    0 for forecasts that are calibrated as vectors; but it does not see probabilities, only which
    one is the greatest.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize
        As in `classwise_calibration_errors`.
    total
        The sum over rounds rather than the mean.

    Examples
    --------
    >>> top_label_decision_loss([1, 1, 1, 0], [[0.5, 0.25, 0.25]] * 4)
    0.5
    """
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    table = tally.confusion
    lost = (table.max(axis=1) - np.diagonal(table)).sum()
    return float(lost) / (1 if total else tally.total)


@dataclass(frozen=True, eq=False)
class ClassUncertainty:
    """What `classwise_uncertainty` returns: for each class, what chance alone would do.

    Attributes
    ----------
    notion : str
        "classwise" or "top-label".
    labels : tuple of str or int
    error : array
        The smooth calibration error of each class; nan for a class never predicted.
    chance, chance_high : arrays
        What it would be on average if the class were calibrated, and what it would then not exceed
        in `level` of all cases.
    p_value : array
        At most how often it would then be as large, or larger. For one class by itself.
    level : float
    """

    notion: str
    labels: tuple[Label, ...]
    error: NDArray[np.float64]
    chance: NDArray[np.float64]
    chance_high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    level: float

    @property
    def adjusted(self) -> NDArray[np.float64]:
        """The p-values adjusted for the number of classes (Holm, 1979).

        If all classes are calibrated and rounds are independent, the chance that any is below 0.05
        is at most 0.05. Classes depend on each other, since rows sum to 1: that is allowed for.
        """
        tested = ~np.isnan(self.p_value)
        adjusted = np.full(len(self.p_value), np.nan)
        adjusted[tested] = holm(self.p_value[tested])
        return adjusted

    @property
    def least_p_value(self) -> float:
        """The least of the adjusted p-values: how sure it is that some class is off."""
        adjusted = self.adjusted
        return float(np.nanmin(adjusted)) if not np.isnan(adjusted).all() else float("nan")


def classwise_uncertainty(
    y_true: Any | ClassTally,
    y_prob: Any = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = False,
    notion: str = "classwise",
    level: float = 0.9,
    resamples: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> ClassUncertainty:
    """Return how sure it is that each class is off, with p-values that allow for all of them.

    Each class is tested by itself, outcomes drawn from its own forecasts; `adjusted` then allows
    for the number of classes. It assumes independent rounds. A class without evidence need not be
    calibrated: it may be rare.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, normalize
        As in `ClassTally.from_predictions`; or a ClassTally alone. Weights must be integers.
    notion
        "classwise": all rounds for every class; "top-label": those in which it was predicted.
    level
        Of `chance_high`.
    resamples
        How often chance is simulated for a class, at first. None: 999 times, fewer for more than 50
        classes, 20 at the least; more for a class that stands out.
    random_state
        A seed, a generator, or None.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.tile([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], (500, 1))
    >>> sure = classwise_uncertainty([0, 2, 1, 1, 0, 2, 0, 1, 0, 2] * 100, rows)
    >>> sure.adjusted < 0.05
    array([ True, False,  True])
    """
    _check.choice("notion", notion, ("classwise", "top-label"))
    if resamples is not None:
        resamples = _check.resamples(resamples)
    level = _check.between("level", level, 0, 1)
    rng = _check.generator("random_state", random_state)
    tally = as_class_tally(
        y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
    )
    if tally.weighted:
        rule = "must be integers (counts): real weights cannot be resampled"
        raise InputError("sample_weight", rule, "real weights")
    tallies = tally.classes if notion == "classwise" else tally.tops
    family = sum(1 for one in tallies if one.total)
    times = resamples or max(_LEAST_RESAMPLES, min(_RESAMPLES, _ALL_RESAMPLES // family))
    columns = np.full((4, len(tallies)), np.nan)
    for k, one in enumerate(tallies):
        if one.total:
            columns[0, k] = smooth_calibration_error(one)
            columns[1:, k] = chance_of(one, times, level, rng, family)
    columns.setflags(write=False)
    error, chance, high, p_value = columns
    return ClassUncertainty(notion, tally.labels, error, chance, high, p_value, level)
