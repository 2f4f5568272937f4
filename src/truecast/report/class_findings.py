"""What is said of several classes: computed once, for the command and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truecast.measures.class_report import ClassReport, measure_classes
from truecast.measures.classes import ClassUncertainty, classwise_uncertainty
from truecast.measures.families import Chance, chance_of
from truecast.measures.finder import SIGNIFICANT, Stretch, stretches
from truecast.report.class_groups import ClassGroups, find_class_groups
from truecast.report.numerals import p_value, percent, rounds
from truecast.report.verdict import (
    before_and_after,
    groups_off,
    in_parts,
    in_words,
    proved_kind,
)

if TYPE_CHECKING:
    from truecast._check_classes import Label
    from truecast.class_tally import ClassTally
    from truecast.tally import Tally

__all__ = ["WAYS", "ClassFinding", "find_classes"]

_NAMED = 5  # classes in a sentence
WAYS = 3  # to look at the classes: in all rounds, where predicted, and the confidence
_RESAMPLES = 999


@dataclass(frozen=True, eq=False)
class ClassFinding:
    """All that is known of forecasts of several classes.

    Attributes
    ----------
    tally : ClassTally
    figures : ClassReport
    sure, sure_top : ClassUncertainty or None
        What chance does to each class, and to each predicted class; None where it was not asked for
        or cannot be told: for real weights.
    sure_confidence : Chance or None
        The same of the confidence. It is one test, however many classes there are, so it finds what
        is spread over many of them.
    groups : ClassGroups or None
        How each group does, if there are groups.
    after : ClassFinding or None
        The same of the recalibrated forecasts of the same rounds.
    """

    tally: ClassTally
    figures: ClassReport
    sure: ClassUncertainty | None
    sure_top: ClassUncertainty | None
    sure_confidence: Chance | None
    groups: ClassGroups | None = None
    after: ClassFinding | None = None

    @property
    def off(self) -> tuple[Label, ...]:
        """The classes that are off beyond chance, the surest first."""
        return () if self.sure is None else _off(self.sure)

    @property
    def kind(self) -> str:
        """The kind of verdict, as for two outcomes; "weighted" if chance was not looked at."""
        p = self.p_value
        return proved_kind(self.figures.total, math.nan if p is None else p)

    @property
    def off_top(self) -> tuple[Label, ...]:
        """The classes that are off beyond chance in the rounds in which they were predicted."""
        return () if self.sure_top is None else _off(self.sure_top)

    @property
    def p_value(self) -> float | None:
        """The smallest p-value, adjusted for all classes and all ways to look at them."""
        if self.sure is None or self.sure_top is None or self.sure_confidence is None:
            return None
        least = min(self.sure.least_p_value, self.sure_top.least_p_value)
        return min(1.0, WAYS * min(least, self.sure_confidence.p_value))

    @property
    def confidence_off(self) -> bool:
        """Whether the confidence is off beyond chance."""
        sure = self.sure_confidence
        return sure is not None and WAYS * sure.p_value < SIGNIFICANT

    @property
    def headline(self) -> str:
        """The verdict in a line; of recalibrated forecasts both, before and after."""
        if self.after is None:
            return self._verdict
        return before_and_after(self._verdict, self.after._verdict)

    @property
    def _verdict(self) -> str:
        if self.kind == "weighted":
            return "No verdict: chance was not simulated"
        _, headline = in_words(self.kind, self._how if self.kind == "off" else "")
        return in_parts(headline, self.kind, self.off_in_parts)

    @property
    def off_in_parts(self) -> list[str]:
        """In which groups forecasts are off, though they may be right on average."""
        return [] if self.groups is None else groups_off(self.groups)

    @property
    def _how(self) -> str:
        """Which classes are off, or how the confidence is."""
        if self.off:
            return f"{_listed(self.off)} off"
        if self.off_top:
            return f"{_listed(self.off_top)} off where predicted"
        too_sure = self.figures.mean_confidence > self.figures.accuracy
        how = "too sure" if too_sure else "not sure enough"
        return f"{how} of the class that is predicted"

    @property
    def sentences(self) -> list[str]:
        """What the verdict rests on, and what it does not say."""
        if self.sure is None:
            return []
        figures = self.figures
        places = {label: k for k, label in enumerate(figures.labels)}
        said = [self._about(label, places[label]) for label in self.off[:_NAMED]]
        only_top = [label for label in self.off_top if label not in self.off]
        said += [self._where_predicted(label, places[label]) for label in only_top[:_NAMED]]
        beyond = ", which chance does not explain" if self.confidence_off else ""
        accuracy = (
            f"The most probable class had {percent(figures.mean_confidence)} on average and came "
            f"in {percent(figures.accuracy)}{beyond}."
        )
        p = self.p_value
        tested = (
            ""
            if p is None
            else f" The smallest p-value, adjusted for all of these, is {p_value(p)}."
        )
        return [
            *said,
            accuracy,
            "Each class was tested over all rounds, and over those in which it was predicted; the "
            f"confidence was tested too.{tested}",
        ]

    def _where_predicted(self, label: Label, k: int) -> str:
        """What is off about a class in the rounds in which it was the most probable."""
        top = self.tally.tops[k]
        said = percent(float(top.p @ top.weights) / top.total)
        return (
            f"Where {label} was predicted, with {said} on average, it came in "
            f"{percent(top.rate)} of the rounds."
        )

    def _about(self, label: Label, k: int) -> str:
        """What is off about a class."""
        tally = self.tally.classes[k]
        impossible = tally.ones[tally.p == 0].sum().item()
        if impossible:
            return f"{label} came in {rounds(impossible)} in which its forecast was 0."
        found = stretches(tally, resamples=_RESAMPLES)
        worst = max(found.off, key=lambda part: part.rounds * abs(part.gap), default=found.whole)
        said, came = percent(worst.forecast), percent(worst.rate)
        if worst.rounds == tally.total:
            return f"{label} was forecast with {said} on average and came in {came} of the rounds."
        return (
            f"Where {label} was forecast with {_range(worst, tally)}, {said} on average, it came "
            f"in {came} of the rounds."
        )


def find_classes(
    tally: ClassTally,
    resamples: int | None = None,
    *,
    groups: Mapping[Any, ClassTally] | None = None,
    after: ClassTally | None = None,
    groups_after: Mapping[Any, ClassTally] | None = None,
) -> ClassFinding:
    """Compute everything; with 0 resamples, without chance."""
    sure = top = confidence = None
    if resamples != 0 and not tally.weighted:
        sure = classwise_uncertainty(tally, resamples=resamples)
        top = classwise_uncertainty(tally, notion="top-label", resamples=resamples)
        rng = np.random.default_rng(0)
        confidence = chance_of(tally.confidence, resamples or _RESAMPLES, sure.level, rng, WAYS)
    return ClassFinding(
        tally,
        measure_classes(tally),
        sure,
        top,
        confidence,
        find_class_groups(groups, resamples) if groups else None,
        None if after is None else find_classes(after, resamples, groups=groups_after),
    )


def _off(sure: ClassUncertainty) -> tuple[Label, ...]:
    """Return the classes with a small p-value: a third, for there are as many ways to look."""
    adjusted = sure.adjusted
    order = np.argsort(adjusted, kind="stable")
    return tuple(sure.labels[k] for k in order if WAYS * adjusted[k] < SIGNIFICANT)


def _listed(labels: tuple[Label, ...]) -> str:
    if len(labels) == 1:
        return f"{labels[0]} is"
    shown = [str(label) for label in labels[:_NAMED]]
    if len(labels) > _NAMED:
        return f"{len(labels):,} classes, {', '.join(shown)} first, are"
    return f"{', '.join(shown[:-1])} and {shown[-1]} are"


def _range(part: Stretch, tally: Tally) -> str:
    """Return from where to where a stretch goes, in words; ends that are those of all, without."""
    low, high = (percent(end) for end in (part.low, part.high))
    if part.low == tally.p[0]:
        return f"{high} or less"
    return f"{low} or more" if part.high == tally.p[-1] else f"{low} to {high}"
