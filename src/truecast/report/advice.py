"""What to do about it: advice that follows from the figures."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath

from truecast.measures.finder import SIGNIFICANT
from truecast.report.context import Context
from truecast.report.findings import Finding
from truecast.report.markup import join, name
from truecast.report.numerals import count, percent, probability, roughly
from truecast.report.verdict import gain, turned, verdict

__all__ = ["Advice", "advice"]

_DULL = 0.05  # of the uncertainty, that forecasts should at least explain
_AIM, _RARE_AIM = 0.01, 0.1  # the error that chance should not hide, as such and relative to the rarer outcome
_ENOUGH = 100  # rounds to judge sharpness by
_LARGE = 30  # rounds of a group, on average, for it to be recalibrated by itself
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_PYTHON = "p = tc.Recalibrator().recalibrate_many(scores, outcomes)"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do, and why; with a line to type, perhaps."""

    do: str
    why: str
    line: str | None = None


def advice(finding: Finding, context: Context) -> list[Advice]:
    """Return what to do, the most useful first."""
    first = _calibration(finding, context) if finding.after is None else _after(finding, finding.after)
    return [first, *_groups(finding), *_sharpness(finding), *_certainty(finding)]


def _calibration(finding: Finding, context: Context) -> Advice:
    kind = verdict(finding).kind
    if kind == "off" and turned(finding):
        why = "Low forecasts came true more often than high ones. Perhaps these are probabilities of the other outcome."
        return Advice("Look for a mix-up first.", why)
    if kind == "off":
        why = f"It keeps what tells rounds apart: {gain(finding)}, and one that goes with the times may do better."
        return Advice("Recalibrate.", why, _line(finding, context))
    if kind == "weak":
        return Advice("Look again with more rounds.", "What is there could still be chance.")
    if kind == "few":
        return Advice("Collect more rounds.", _how_many(finding))
    if kind == "weighted":
        return Advice("Use counts as weights, if that is what they are.", "Then chance can be judged.")
    why = "With so many rounds the error is certain, but it hardly matters."
    if kind == "none":
        why = "Nothing here calls for recalibration. Models drift, though: measure again with new rounds."
    return Advice("Leave the forecasts as they are.", why)


def _line(finding: Finding, context: Context) -> str:
    """Return what recalibrates, ready to be typed: in a shell, or in Python if there is no file."""
    if context.source is None:
        return _PYTHON
    names = {"--outcome": context.outcome, "--score": finding.name if context.score_known else None}
    names["--by"] = context.group if _worth_it(finding) else None
    options = [part for option, column in names.items() if column is not None for part in (option, column)]
    ending = "".join(PurePath(context.source).suffixes[-2 if context.source.endswith(_PACKED) else -1 :])
    return shlex.join(["truecast", "recalibrate", context.source, *options, "-o", f"recalibrated{ending}"])


def _worth_it(finding: Finding) -> bool:
    """Whether groups are large enough to learn from: of a column of names, or of times, they are not."""
    return finding.groups is not None and finding.figures.total >= _LARGE * len(finding.groups)


def _how_many(finding: Finding) -> str:
    figures, chance = finding.figures, finding.doubt.if_calibrated if finding.doubt else 0.0
    aim = min(_AIM, _RARE_AIM * min(figures.mean_forecast, 1 - figures.mean_forecast))
    if not chance > aim > 0:
        return "So few say little either way."
    enough = int(figures.total * (chance / aim) ** 2)
    unit = 10 ** (len(str(enough)) - 1)
    some = count(-(-enough // unit) * unit)
    return f"Some {some} rounds like these would bring down to {roughly(aim)} what chance does."


def _after(finding: Finding, later: Finding) -> Advice:
    before, after = finding.figures, later.figures
    calmer = after.smooth_calibration_error < before.smooth_calibration_error
    if after.brier.score < before.brier.score:
        why = f"Their Brier score is better{', not only their calibration' if calmer else ''}."
        return Advice("Use the recalibrated forecasts.", why)
    if calmer and not finding.off:
        why = "Nothing spoke against their calibration, and recalibrated they have no better Brier score."
        return Advice("Keep the forecasts as they were.", why)
    if calmer:
        why = "They are better calibrated, but part of what told rounds apart was lost: their Brier score is no better."
        return Advice("Use the recalibrated forecasts if calibration is what you need.", why)
    return Advice("Keep the forecasts as they were.", "Recalibration has improved neither Brier score nor calibration.")


def _groups(finding: Finding) -> list[Advice]:
    overview = finding.groups
    if overview is None or finding.after is not None or not (overview.adjusted < SIGNIFICANT).any():
        return []
    said, came = float(overview.mean_forecast[0]), float(overview.mean_outcome[0])
    off = f"Its mean forecast is {probability(said)}, its mean outcome {probability(came)}"
    alone = "; each group can be recalibrated by itself (--by, or group= in Python)" if _worth_it(finding) else ""
    return [Advice(join(("Look at ", name(overview.names[0]), ".")), f"{off}{alone}.")]


def _sharpness(finding: Finding) -> list[Advice]:
    brier, steps = finding.figures.brier, []
    if not brier.uncertainty or finding.figures.total < _ENOUGH:
        return []
    if brier.score > brier.uncertainty and verdict(finding).kind in ("off", "weighted"):  # else it may be chance
        why = "As they are, the forecasts are worse than the mean outcome said throughout."
        steps.append(Advice("Do not use these as probabilities before they are recalibrated.", why))
    told = brier.discrimination / brier.uncertainty
    if told < _DULL and not turned(finding) and not finding.outdone:
        curve = f"Even the best fixed, increasing curve would be {f'only {percent(told)}' if told else 'no'} better"
        why = f"{curve} than the mean outcome said throughout."
        steps.append(
            Advice("Improve the model: it hardly tells rounds apart, and calibration does not help that.", why)
        )
    return steps


def _certainty(finding: Finding) -> list[Advice]:
    if not finding.impossible:
        return []
    why = (
        "One certain mistake costs more than any number of good forecasts gain, by the log loss and in many decisions."
    )
    return [Advice("Keep forecasts away from 0 and 1.", why)]
