"""What to do about forecasts of several classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truecast._check_classes import without_prefix
from truecast._names import as_one_line, of_one_line
from truecast.report.advice import DRIFT, Advice, away_from_certainty, recalibrate_line
from truecast.report.numerals import roughly

if TYPE_CHECKING:
    from truecast.report.class_findings import ClassFinding
    from truecast.report.context import Context

__all__ = ["class_advice"]

_NAMED = 5  # groups in a sentence
_PYTHON = "p = tc.Recalibrator(classes=names).forecast_many(scores, outcomes)"


def class_advice(finding: ClassFinding, context: Context) -> list[Advice]:
    """Return what to do, the most useful first."""
    after = finding.after
    first = _calibration(finding, context) if after is None else _after(finding, after)
    classes = (finding if after is None else after).tally.classes
    certain = any(one.ones[one.p == 0].any() or one.zeros[one.p == 1].any() for one in classes)
    return [first, *([away_from_certainty()] if certain else [])]


def _calibration(finding: ClassFinding, context: Context) -> Advice:
    if finding.sure is None:
        do = "Simulate chance." if not finding.tally.weighted else "Use counts as weights."
        return Advice(do, "Otherwise nobody can tell how much of the errors is chance.")
    if finding.kind == "off":
        why = "Each class then follows what happens, and rows still sum to 1."
        return Advice("Recalibrate.", why, _line(finding, context))
    if finding.kind == "weak":
        labels = finding.off or finding.off_top or ("the confidence",)
        which = ", ".join(map(str, labels))
        why = f"Errors are larger than chance usually makes ({which}), but not by much."
        return Advice("Look again with more rounds.", why)
    if finding.groups is not None and finding.groups.off:
        off = ", ".join(str(group) for group in finding.groups.off[:_NAMED])
        why = f"Errors cancel over all rounds, but not in each group: {off}."
        return Advice("Recalibrate each group.", why, _line(finding, context))
    largest = roughly(float(finding.sure.chance_high.max()))
    why = f"Errors of a class up to about {largest} would look like chance here."
    if finding.kind == "few":
        return Advice("Collect more rounds.", why)
    return Advice("Leave the forecasts as they are.", f"{why} {DRIFT}")


def _after(before: ClassFinding, after: ClassFinding) -> Advice:
    """By the Brier score first: it counts calibration and sharpness."""
    was, now = before.figures, after.figures
    calmer = now.classwise.sum < was.classwise.sum
    if now.brier.score < was.brier.score:
        more = ", not only their calibration" if calmer else ""
        return Advice("Use the recalibrated forecasts.", f"Their Brier score is better{more}.")
    if calmer and (before.off or before.off_top or before.confidence_off):
        return Advice(
            "Use the recalibrated forecasts if you need calibration.",
            "The errors of the classes are smaller, the Brier score is not.",
        )
    why = "Recalibration has improved neither the Brier score nor the errors of the classes."
    if calmer:
        why = "No class was off beyond chance, and the Brier score has not improved."
    return Advice("Keep the forecasts as they were.", why)


def _line(finding: ClassFinding, context: Context) -> str:
    """Return what recalibrates, ready to be typed."""
    if context.source is None:
        return _PYTHON
    labels = [str(label) for label in finding.figures.labels]
    scores = context.score
    like_columns = scores is None or _are_like(scores, labels)
    names = {
        "--outcome": context.outcome,
        "--scores": scores,
        "--classes": None if like_columns else as_one_line(labels),
        "--by": None if finding.groups is None else context.group,
    }
    return recalibrate_line(context, names)


def _are_like(scores: str, labels: list[str]) -> bool:
    """Whether the columns are called like the classes, less a beginning."""
    try:
        return without_prefix(of_one_line(scores)) == labels
    except ValueError:  # this is no line of CSV
        return False
