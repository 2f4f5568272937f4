"""What to do about it: advice that follows from the figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from truecast.measures.finder import SIGNIFICANT
from truecast.report.findings import Finding, judged_by
from truecast.report.markup import join, name
from truecast.report.numerals import count, p_value, percent, probability, roughly
from truecast.report.verdict import QUIET, gain, off_in_parts, place, turned, verdict

if TYPE_CHECKING:
    from truecast.report.context import Context

__all__ = ["DRIFT", "Advice", "advice", "away_from_certainty", "recalibrate_line"]

_DULL = 0.05  # of the uncertainty, that forecasts should at least explain
_AIM = 0.01  # the error that chance should not hide
_RARE_AIM = 0.1  # the same, relative to the rate of the rarer outcome
_ENOUGH = 100  # rounds to judge sharpness by
_LARGE = 30  # rounds of a group, on average, for it to be recalibrated by itself
_PACKED = (".gz", ".bz2", ".xz", ".zst")
DRIFT = "But models drift: measure again with new rounds."
_PYTHON = "p = tc.Recalibrator().forecast_many(scores, outcomes)"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do, and why; with a line to type, perhaps."""

    do: str
    why: str
    line: str | None = None


def advice(finding: Finding, context: Context) -> list[Advice]:
    """Return what to do, the most useful first."""
    first = (
        _calibration(finding, context) if finding.after is None else _after(finding, finding.after)
    )
    certainty = [away_from_certainty()] if finding.impossible else []
    return [first, *_groups(finding), *_sharpness(finding), *certainty]


def _calibration(finding: Finding, context: Context) -> Advice:
    kind = verdict(finding).kind
    if kind == "off" and turned(finding):
        why = (
            "Low forecasts came true more often than high ones: perhaps these are probabilities "
            "of the other outcome."
        )
        return Advice(
            "Try 1 \N{MINUS SIGN} score.",
            f"{why} Or recalibrate, which reverses them.",
            _line(finding, context),
        )
    if kind in QUIET and off_in_parts(finding):
        return _recalibrate_parts(finding, context)
    if kind == "off":
        kept = "It keeps what separates events from non-events"
        why = f"{kept}: {gain(finding)}, and one that follows drift may do better."
        return Advice("Recalibrate.", why, _line(finding, context))
    if kind == "weak":
        return Advice("Look again with more rounds.", _not_by_much(finding))
    if kind == "few":
        return Advice("Collect more rounds.", _how_many(finding))
    if kind == "weighted":
        return Advice(
            "Use counts as weights, if that is what they are.", "Then chance can be judged."
        )
    why = "There are enough rounds to be sure of the error, but it hardly matters."
    if kind == "none":
        why = f"Nothing here calls for recalibration. {DRIFT}"
    return Advice("Leave the forecasts as they are.", why)


def _recalibrate_parts(finding: Finding, context: Context) -> Advice:
    """Say what to do about forecasts that are right on average only."""
    parts = " and ".join(off_in_parts(finding))
    why = f"Errors cancel over all rounds, but {parts}."
    if any("group" in part for part in off_in_parts(finding)) and _worth_it(finding):
        return Advice("Recalibrate each group.", why, _line(finding, context))
    why = f"{why} A recalibrator follows what changes."
    return Advice("Recalibrate.", why, _line(finding, context))


def _not_by_much(finding: Finding) -> str:
    """Say what is marked, and how sure that is."""
    most = min(finding.marked, key=lambda part: part.p_value)
    ends = place(most)
    gap = f"The gap {'between ' + ' and '.join(ends) if len(ends) > 1 else 'at ' + ends[0]} is"
    larger = f"larger than chance usually makes (p-value {p_value(most.p_value)}), but not by much"
    return f"{gap if most.alone else 'Taken together, the gaps are'} {larger}."


def _line(finding: Finding, context: Context) -> str:
    """Return what recalibrates, ready to be typed: in a shell, or in Python if there is no file."""
    if context.source is None:
        return _PYTHON
    names = {"--outcome": context.outcome, "--score": finding.name if context.score_known else None}
    names["--by"] = context.group if _worth_it(finding) else None
    return recalibrate_line(context, names)


def recalibrate_line(context: Context, names: Mapping[str, str | None]) -> str:
    """Return the command that recalibrates a file, with those options that have a value."""
    source = context.source or "-"
    options = [
        part for option, column in names.items() if column is not None for part in (option, column)
    ]
    ending = "".join(PurePath(source).suffixes[-2 if source.endswith(_PACKED) else -1 :])
    words = [source, *options, *context.options, "-o", f"recalibrated{ending}"]
    return shlex.join(["truecast", "recalibrate", *words])


def _worth_it(finding: Finding) -> bool:
    """Whether groups are large enough to learn from; by a column of names or times they are not."""
    return finding.groups is not None and finding.figures.total >= _LARGE * len(finding.groups)


def _how_many(finding: Finding) -> str:
    figures = finding.figures
    chance = finding.smooth_error.if_calibrated if finding.smooth_error else 0.0
    aim = min(_AIM, _RARE_AIM * min(figures.mean_forecast, 1 - figures.mean_forecast))
    if not chance > aim > 0:
        return "So few rounds say little."
    enough = int(figures.total * (chance / aim) ** 2)
    unit = 10 ** (len(str(enough)) - 1)
    some = count(-(-enough // unit) * unit)
    return (
        f"With about {some} such rounds, chance alone would make an error of about {roughly(aim)}."
    )


def _after(finding: Finding, later: Finding) -> Advice:
    (score, before), (_, after) = judged_by(finding), judged_by(later, finding.gain_of)
    calmer = later.figures.smooth_calibration_error < finding.figures.smooth_calibration_error
    if verdict(finding).kind == "few":
        total = finding.figures.total
        why = (
            f"{count(total)} {'is' if total == 1 else 'are'} too few to tell whether "
            "recalibration helps."
        )
        return Advice("Collect more rounds.", why)
    if after.score < before.score:
        why = f"Their {score} is better{', not only their calibration' if calmer else ''}."
        return Advice("Use the recalibrated forecasts.", why)
    if calmer and not finding.marked:
        why = (
            "There was no evidence against their calibration, and recalibration did not improve "
            f"the {score}."
        )
        return Advice("Keep the forecasts as they were.", why)
    if calmer:
        why = f"Their smooth calibration error is lower, their {score} is not."
        if after.discrimination < before.discrimination:
            why += " They separate events from non-events less well: discrimination fell."
        return Advice("Use the recalibrated forecasts if you need calibration.", why)
    return Advice(
        "Keep the forecasts as they were.",
        f"Recalibration has improved neither {score} nor calibration.",
    )


def _groups(finding: Finding) -> list[Advice]:
    overview = (finding.after or finding).groups
    if overview is None or not (overview.adjusted < SIGNIFICANT).any():
        return []
    forecast = float(overview.mean_forecast[0])
    rate = float(overview.mean_outcome[0])
    which = "mean forecast" if finding.after is None else "mean recalibrated forecast"
    means = f"Its {which} is {probability(forecast)}, its mean outcome {probability(rate)}"
    if finding.after is None and _worth_it(finding):
        means += "; each group can be recalibrated separately (--by, or group= in Python)"
    return [Advice(join(("Look at ", name(overview.names[0]), ".")), f"{means}.")]


def _sharpness(finding: Finding) -> list[Advice]:
    (score, parts), steps = judged_by(finding), []
    if not parts.uncertainty or finding.figures.total < _ENOUGH:
        return []
    # with other verdicts it may be chance
    judged = verdict(finding).kind in ("off", "weighted")
    worse = parts.score > parts.uncertainty and judged
    if worse and finding.after is None:
        why = f"By the {score}, the forecasts are worse than always saying the average."
        steps.append(Advice("Do not use these as probabilities before they are recalibrated.", why))
    told = parts.discrimination / parts.uncertainty
    if told < _DULL and not turned(finding) and not finding.outdone:
        curve = (
            "Even the best fixed, increasing curve would be "
            f"{f'only {percent(told)}' if told else 'no'} better"
        )
        why = f"{curve} than always saying the average, by the {score}."
        do = (
            "Improve the model: it hardly separates events from non-events, and calibration cannot "
            "change that."
        )
        steps.append(Advice(do, why))
    return steps


def away_from_certainty() -> Advice:
    """Return what to do about forecasts of 0 or 1 that were wrong."""
    why = (
        "By the log loss, and in many decisions, one certain mistake costs more than any number "
        "of good forecasts gains."
    )
    return Advice("Keep forecasts away from 0 and 1.", why)
