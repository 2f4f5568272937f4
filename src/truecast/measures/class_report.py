"""All measures of several classes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from truecast._check_classes import Label
from truecast._names import rounds_or_weight
from truecast._threads import each
from truecast.class_tally import ClassTally
from truecast.measures.binned import binned_calibration_error
from truecast.measures.class_scores import (
    ClassDecompositions,
    ClassParts,
    class_parts,
    decompositions_of,
)
from truecast.measures.classes import (
    NOTIONS,
    ClassErrors,
    top_label_decision_loss,
)
from truecast.measures.corp import Decomposition
from truecast.measures.smooth import smooth_calibration_error
from truecast.tally import Tally

__all__ = ["NOT_PROMISED", "ClassReport", "measure_classes"]

NOT_PROMISED = (
    "none of these says that whole vectors are calibrated: to tell that, rounds would have to grow "
    "exponentially with the number of classes"
)
_TWO_THREADS = 1 << 14  # forecasts from which a second thread is worth starting
_SHOWN = 20  # classes in text


@dataclass(frozen=True, eq=False)
class ClassReport:
    """What `measure` returns for several classes: every figure a mean per round.

    Attributes
    ----------
    total : int or float
        Rounds, or their weight.
    labels : tuple of str or int
        The classes.
    rate, mean_forecast : tuple of float
        How often each class came, and its mean forecast.
    accuracy, mean_confidence : float
        How often the predicted class came, and its mean forecast. The predicted class is the most
        probable one, the first of equals.
    brier, log : Decomposition
        The two proper scores. The Brier score is the sum over classes: from 0 to 2, and twice that
        of two classes as one probability.
    parts : ClassDecompositions
        The same class by class.
    classwise, top_label : ClassErrors
        Smooth calibration errors: of each class, and of each predicted class.
    confidence : float
        Smooth calibration error of the greatest probability.
    classwise_binned, top_label_binned : ClassErrors
        The same in 15 bins of equal width, to compare with others.
    confidence_binned : float
    top_label_decision_loss : float
        How much more often one would have been right by saying another class instead.
    """

    total: int | float
    labels: tuple[Label, ...]
    rate: tuple[float, ...]
    mean_forecast: tuple[float, ...]
    accuracy: float
    mean_confidence: float
    brier: Decomposition
    log: Decomposition
    parts: ClassDecompositions
    classwise: ClassErrors
    top_label: ClassErrors
    confidence: float
    classwise_binned: ClassErrors
    top_label_binned: ClassErrors
    confidence_binned: float
    top_label_decision_loss: float

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """The figures by what they are about, and then by the names that people read."""
        return {
            "proper scores (lower is better)": {
                "Brier score, sum of classes": self.brier.score,
                "log loss": self.log.score,
            },
            "smooth calibration error": {
                "classwise, sum": self.classwise.sum,
                "  worst class": self.classwise.worst,
                "top-label, sum": self.top_label.sum,
                "  worst predicted class": self.top_label.worst,
                "confidence": self.confidence,
            },
            "15 bins of equal width (ECE)": {
                "classwise, mean of classes": self.classwise_binned.mean,
                "  worst class": self.classwise_binned.worst,
                "top-label, sum": self.top_label_binned.sum,
                "confidence": self.confidence_binned,
            },
            "deciding for the most probable class": {
                "wrong": 1 - self.accuracy,
                "  lost against another class": self.top_label_decision_loss,
                "mean confidence": self.mean_confidence,
            },
        }

    def by_class(self) -> list[dict[str, Any]]:
        """Return a row of figures for each class, as plain data."""
        return [
            {
                "class": label,
                "rate": self.rate[k],
                "mean_forecast": self.mean_forecast[k],
                "predicted": float(self.top_label.share[k]),
                "brier": asdict(self.parts.brier[k]),
                "log": asdict(self.parts.log[k]),
                "smooth_calibration_error": float(self.classwise.each[k]),
                "binned_calibration_error": float(self.classwise_binned.each[k]),
                "top_label_smooth_calibration_error": float(self.top_label.each[k]),
                "top_label_binned_calibration_error": float(self.top_label_binned.each[k]),
            }
            for k, label in enumerate(self.labels)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data; what is infinite or undefined is the float inf or nan."""
        names = ("classwise", "top_label", "classwise_binned", "top_label_binned")
        sums = {
            name: {
                "sum": (errors := getattr(self, name)).sum,
                "mean": errors.mean,
                "worst": errors.worst,
                "worst_class": errors.worst_label,
            }
            for name in names
        }
        plain = ("accuracy", "mean_confidence", "confidence", "confidence_binned")
        return {
            "total": self.total,
            "labels": list(self.labels),
            "brier": asdict(self.brier),
            "log": asdict(self.log),
            **{name: getattr(self, name) for name in plain},
            **sums,
            "top_label_decision_loss": self.top_label_decision_loss,
            "classes": self.by_class(),
            "notions": NOTIONS | {"not promised": NOT_PROMISED},
        }

    def __str__(self) -> str:
        lines = [f"{rounds_or_weight(self.total)} of {len(self.labels)} classes"]
        for about, figures in self.figures.items():
            lines += [about, *(f"  {name:<30}{figure:.6f}" for name, figure in figures.items())]
        lines.append("class: rate, mean forecast, smooth calibration error")
        for row in self.by_class()[:_SHOWN]:
            figures_of = (row["rate"], row["mean_forecast"], row["smooth_calibration_error"])
            lines.append(f"  {row['class']!s:<30}" + "  ".join(f"{x:.6f}" for x in figures_of))
        lines += [f"{name} error 0: {meaning}" for name, meaning in NOTIONS.items()]
        return "\n".join([*lines, NOT_PROMISED])


class _Errors(NamedTuple):
    """Both errors of a tally; nan if it has no rounds."""

    smooth: float
    binned: float


def measure_classes(tally: ClassTally) -> ClassReport:
    """Return the report of a tally with at least one round."""
    labels, total, size = tally.labels, tally.total, len(tally.labels)
    confidence = tally.confidence
    of_confidence, *errors = _of_each(_errors, [confidence, *tally.classes, *tally.tops])
    each = {
        "classwise": (errors[:size], np.ones(size)),
        "top-label": (errors[size:], np.array([top.total for top in tally.tops]) / total),
    }

    def of(notion: str, which: str) -> ClassErrors:
        some, share = each[notion]
        return ClassErrors(notion, labels, np.array([getattr(one, which) for one in some]), share)

    each_part: list[ClassParts] = _of_each(class_parts, tally.classes)
    parts = decompositions_of(labels, each_part)
    # the same sums as in `brier_score` and `log_loss`
    brier = float(sum(part.squares for part in each_part)) / total
    log = float(sum(part.surprise for part in each_part)) / total
    return ClassReport(
        total=total,
        labels=labels,
        rate=tuple(one.rate for one in tally.classes),
        mean_forecast=tuple(part.mean_forecast for part in each_part),
        accuracy=float(np.trace(tally.confusion) / total),
        mean_confidence=float(confidence.p @ confidence.weights) / total,
        brier=replace(parts.brier_sum, score=brier),
        log=replace(parts.log_sum, score=log),
        parts=parts,
        classwise=of("classwise", "smooth"),
        top_label=of("top-label", "smooth"),
        confidence=of_confidence.smooth,
        classwise_binned=of("classwise", "binned"),
        top_label_binned=of("top-label", "binned"),
        confidence_binned=of_confidence.binned,
        top_label_decision_loss=top_label_decision_loss(tally),
    )


def _errors(tally: Tally) -> _Errors:
    if not tally.total:
        return _Errors(math.nan, math.nan)
    return _Errors(smooth_calibration_error(tally), binned_calibration_error(tally))


def _of_each(work: Callable[[Tally], Any], tallies: Sequence[Tally]) -> list[Any]:
    """Return what the work makes of each tally; by several threads if there is much to do."""
    if sum(len(one.p) for one in tallies) < _TWO_THREADS:
        return [*map(work, tallies)]
    return each(work, tallies)
