"""What the sections say: where forecasts are off, what recalibration did, what is proved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from truecast._names import counted
from truecast.measures.finder import SIGNIFICANT, Stretch
from truecast.report.findings import Finding, Judgement, judged_by
from truecast.report.markup import Markup, join, name
from truecast.report.numerals import apart, between, count, figure, percent, roughly, rounds

if TYPE_CHECKING:
    from truecast.certificate import ArcCertificate, Certificate
    from truecast.plot import GroupOverview
    from truecast.report.class_groups import ClassGroups
    from truecast.report.course import TimeCourse
    from truecast.report.evidence import EvidenceOverTime

__all__ = [
    "BEFORE",
    "LATER",
    "after_sentence",
    "at_their_worst",
    "certificate_sentences",
    "course_sentence",
    "evidence_sentences",
    "groups_sentence",
    "groups_too_small",
    "score_sentence",
    "tiny",
    "where_sentences",
]

_MOST = 3  # stretches that are told; the others are in the picture

_TINY = 5  # rounds of a group, on average, below which none can be judged

BEFORE = "This is about the forecasts before recalibration."
LATER = "If outcomes come later in practice than they did here, expect a smaller gain."


def where_sentences(finding: Judgement) -> list[str]:
    """Say which forecasts were too high or too low: exactly those marked in the pictures."""
    if finding.smooth_error is None:
        return ["With real weights, chance cannot be judged, so nothing is marked as off."]
    if not finding.marked:
        return ["No range of forecasts is off by more than chance explains."]
    span = finding.ranges[-1].high - finding.ranges[0].low
    largest = sorted(finding.marked, key=lambda part: -part.rounds * abs(part.gap))[:_MOST]
    sentences = [_stretch(part, span) for part in sorted(largest, key=lambda part: part.low)]
    more = len(finding.marked) - len(sentences)
    if not finding.marked[0].alone:
        sentences.insert(
            0, "No stretch of forecasts is off beyond chance by itself, but these are together:"
        )
    return [
        *sentences,
        *([f"{more:,} more, which add less, are marked in the picture."] if more else []),
    ]


def _stretch(part: Stretch, span: float) -> str:
    ends = between(part.low, part.high, span)
    which = f"Forecasts {'between ' + ' and '.join(ends) if len(ends) > 1 else 'of ' + ends[0]}"
    gap = f"too {'low' if part.gap > 0 else 'high'} by about {roughly(part.gap)}"
    return f"{which} were {gap} on average ({rounds(part.rounds)})."


def course_sentence(course: TimeCourse) -> str:
    """Say how far the worst block of time was off."""
    gap = np.abs(course.rate - course.forecast)
    k = int(np.argmax(gap / np.maximum(course.noise, 1e-300)))
    means = f"{roughly(course.forecast[k])} forecast, {roughly(course.rate[k])} came true"
    ends = course.span(k)
    return (
        f"Furthest off, compared with chance: {ends}, {means}  ({rounds(int(course.rounds[k]))})."
    )


def evidence_sentences(course: TimeCourse) -> list[str]:
    """Say what bets against the forecasts have found, and since when."""
    said = [_evidence(course, course.evidence, "the forecasts")]
    if course.evidence_after is not None:
        said.append(_evidence(course, course.evidence_after, "the recalibrated ones"))
    return [sentence for sentence in said if sentence]


def _evidence(course: TimeCourse, evidence: EvidenceOverTime | None, which: str) -> str:
    if evidence is None:
        return ""
    from truecast.report.evidence import ALPHA

    if evidence.alarm is None:
        return (
            f"No alarm: bets against {which} turned a stake of 1 into at most "
            f"{evidence.evidence.max():.3g}, below {evidence.threshold:.3g}."
        )
    found = evidence.alarm.in_words(f"about {course.when(evidence.since)}")
    return (
        f"Alarm on {course.when(evidence.came)}: bets against {which} turned a stake of 1 into "
        f"more than {evidence.threshold:.3g}. If forecasts are right, the chance that this ever "
        f"happens is at most {100 * ALPHA:.0f} %. As far as can be told, {found}."
    )


def groups_sentence(overview: GroupOverview | ClassGroups) -> Markup:
    """Say which groups stand out, after allowing for how many there are."""
    if np.isnan(overview.p_value).all():
        return join(
            "With real weights, chance cannot be judged: groups are sorted by their errors."
        )
    found = int((overview.adjusted < SIGNIFICANT).sum())
    among = counted(len(overview), "group")
    allowing = "after adjusting for their number (Holm)"
    if not found:
        return join(f"None of {among} stands out, {allowing}.")
    stand = "stands" if found == 1 else "stand"
    most = f"{found:,} of {among} {stand} out, {allowing}; most of all "
    return join((most, name(overview.names[0]), "."))


def tiny(overview: GroupOverview | ClassGroups) -> bool:
    """Whether groups are too small for a table to say anything, as those by names or times."""
    found = bool((overview.adjusted < SIGNIFICANT).any())
    return not found and float(overview.rounds.sum()) < _TINY * len(overview)


def groups_too_small(overview: GroupOverview | ClassGroups) -> str:
    """Say that there are many groups and hardly a round in each."""
    mean = float(overview.rounds.mean())
    each = "one round each" if mean == 1 else f"about {roughly(mean)} rounds each"
    many = counted(len(overview), "group")
    return (
        f"{many} of {each if len(overview) > 1 else each.removesuffix(' each')}: too small to "
        "judge."
    )


def after_sentence(before: Finding, after: Finding) -> str:
    """Say what recalibration did, by a proper score first."""
    (score, parts), (_, later) = judged_by(before), judged_by(after, before.gain_of)
    scored = score_sentence(score, parts.score, later.score)
    errors = apart(before.figures.smooth_calibration_error, after.figures.smooth_calibration_error)
    error = f"the smooth calibration error went from {' to '.join(errors)}"
    if after.smooth_error:
        chance = figure(after.smooth_error.if_calibrated)
        error += f"; calibrated forecasts would show {chance} by chance"
    return f"{scored}; {error}."


def score_sentence(score: str, was: float, now: float) -> str:
    """Say how a score has changed, without the full stop."""
    change = 1 - now / was if was else 0.0
    how_much = f" by {percent(abs(change))}" if math.isfinite(change) else ""
    fell = f"{'fell' if change > 0 else 'rose'}{how_much}" if change else "stayed the same"
    return f"The {score} {fell}, from {' to '.join(apart(was, now))}"


def certificate_sentences(certificate: Certificate | ArcCertificate) -> list[str]:
    """Say what is proved so far, how large it can be at worst, and what that does not tell."""
    late = certificate.unresolved
    promised = certificate.a_priori / max(certificate.promised_rounds, 1)
    return [
        f"The forecasts of the {rounds(certificate.rounds + late)} so far are within "
        f"{figure(certificate.per_round)} on average of perfectly calibrated ones"
        f"{at_their_worst(late)}: proved, not estimated, whatever caused the outcomes.",
        f"At worst this could be {figure(promised)} on average over "
        f"{rounds(certificate.promised_rounds)}, whatever the outcomes: that is proved, too.",
        "This covers these rounds together, not any single one, and not future ones. "
        "It does not say that the forecasts are sharp: "
        f"for that, read the Brier score, {figure(certificate.brier)}.",
    ]


def at_their_worst(late: int) -> str:
    """Say how rounds count whose outcomes have not come; nothing if there are none."""
    if not late:
        return ""
    return f", with the {count(late)} whose outcome is missing counted at their worst"
