"""Is it calibrated, and how sure are we: the verdict in words. Never "it is": at best "no evidence against it"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from truecast.measures.uncertainty import Uncertainty
from truecast.report.findings import RARE, Finding, Range
from truecast.report.numerals import figure, p_value, percent, points, probability, roughly, rounds

__all__ = ["SIGNIFICANT", "Verdict", "direction", "evidence", "gain", "notes", "size", "skill", "turned", "verdict"]

SIGNIFICANT, _SURE = 0.05, 0.01  # p-values
_FEWEST = 20  # rounds
_BLUR, _NEGLIGIBLE, _GAIN = 0.03, 0.005, 0.01  # errors, and a share of the Brier score
_RARE_BLUR, _RARE_NEGLIGIBLE = 0.25, 0.05  # the same errors, relative to how often the rarer outcome comes


_MIXED = "forecasts are too low in places and too high in others"
_BLIND = "It hardly sees forecasts that are too high here and too low close by"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said in one line, and why.

    `kind` is "few", "none", "weak", "slight", "off" or "weighted"; `short` goes into a table.
    """

    kind: str
    short: str
    headline: str
    evidence: str


def verdict(finding: Finding) -> Verdict:
    """Judge by p-values, by what chance does, and by how much it matters."""
    doubt = finding.doubt
    if doubt is None:
        short, headline = "chance unknown", "With real weights, chance cannot be judged"
        reason = "real weights do not tell how many rounds there were"
        error = figure(finding.figures.smooth_calibration_error)
        return Verdict("weighted", short, headline, f"The smooth calibration error is {error}; {reason}.")
    kind = _kind(finding, doubt)
    short, headline = {
        "few": ("too few rounds to tell", "Too few rounds to tell"),
        "none": ("no evidence against", "No evidence against calibration"),
        "weak": ("weak evidence against", "Weak evidence against calibration"),
        "slight": ("off, but hardly", "Not calibrated, but off by very little"),
        "off": (f"off: {direction(finding)}", f"Not calibrated: {direction(finding)}"),
    }[kind]
    return Verdict(kind, short, headline, _evidence(finding, doubt, kind))


def _kind(finding: Finding, doubt: Uncertainty) -> str:
    figures = finding.figures
    if evidence(finding, doubt) >= SIGNIFICANT:
        rarer = min(figures.mean_forecast, 1 - figures.mean_forecast)
        blurred = doubt.if_calibrated > min(_BLUR, _RARE_BLUR * rarer)
        return "few" if blurred or figures.total < _FEWEST else "none"
    if evidence(finding, doubt) >= _SURE:
        return "weak"
    rarer = min(figures.mean_outcome, 1 - figures.mean_outcome)
    limit, excess = min(_NEGLIGIBLE, _RARE_NEGLIGIBLE * rarer), doubt.estimate - doubt.if_calibrated
    small = excess < limit and finding.gap < 2 * limit and finding.gain < _GAIN
    return "slight" if small and not finding.impossible else "off"


def evidence(finding: Finding, doubt: Uncertainty) -> float:
    """Return the p-value: of the smooth calibration error, or of stretches, doubled, where the former sees nothing."""
    if doubt.p_value < _SURE:
        return doubt.p_value
    return min(doubt.p_value, 2 * finding.stretches_p_value)


def _evidence(finding: Finding, doubt: Uncertainty, kind: str) -> str:
    estimate = f"The smooth calibration error is {figure(doubt.estimate)}"
    chance = f"calibrated forecasts would show about {figure(doubt.if_calibrated)} by chance"
    if kind in ("few", "none"):
        as_large = f"and as much or more in {percent(doubt.p_value)} of all cases"
        blur = ", so that much of what matters would be hidden by it" if kind == "few" else ""
        most = f"{figure(max(doubt.upper, doubt.estimate))} cannot be ruled out ({percent(doubt.level)} interval)"
        return f"{estimate}; {chance}, {as_large}{blur}. An error up to about {most}."
    interval = f"({percent(doubt.level)} interval {figure(doubt.lower)} to {figure(doubt.upper)})"
    said = f"{estimate} {interval}; {chance}, and {_as_far(doubt.p_value, finding.resamples)}."
    if evidence(finding, doubt) == doubt.p_value:
        return said
    most = f"p-value {p_value(finding.stretches_p_value)}, at the most"
    return f"{said} {_BLIND}; some ranges of forecasts are further off than chance explains ({most}): see below."


def _as_far(value: float, resamples: int) -> str:
    others = round(value * (resamples + 1)) - 1
    among = f"{others or 'none'} of {resamples:,} simulated sets of calibrated forecasts"
    return f"{among} {'was' if others <= 1 else 'were'} as far off (p-value {p_value(value)})"


def direction(finding: Finding) -> str:
    """Say in which way forecasts are off, as far as both halves of them tell, and all of their stretches."""
    if turned(finding):
        return "forecasts run the wrong way"
    if sum(one.gap * other.gap < 0 for one, other in pairwise(finding.off)) > 1:
        return _MIXED
    signs = [int(math.copysign(1, half.gap)) if half.beyond_chance else 0 for half in finding.halves]
    if signs == [1, -1]:
        return "forecasts are too extreme (overconfident)"
    if signs == [-1, 1]:
        return "forecasts are not extreme enough (underconfident)"
    if any(signs):
        return "forecasts are too low" if 1 in signs else "forecasts are too high"
    return _MIXED


def turned(finding: Finding) -> bool:
    """Return whether low forecasts came true more often than high ones, by three times what chance does."""
    if finding.doubt is None or len(finding.halves) < 2:
        return False
    low, high = finding.halves
    rate = finding.figures.mean_outcome
    return low.rate - high.rate > 3 * math.sqrt(rate * (1 - rate) * (1 / low.rounds + 1 / high.rounds))


def size(finding: Finding, kind: str) -> str:
    """Say what the error amounts to in practice, as far as that can be told."""
    means = (finding.figures.mean_forecast, finding.figures.mean_outcome)
    whole = "The mean forecast was {}, the mean outcome {}".format(*map(probability, means)) + _times(finding.whole)
    if kind in ("few", "none"):
        enough = "too few rounds to say what it amounts to" if kind == "few" else "chance is enough to explain the gaps"
        return f"In practice: {enough}. {whole}."
    beyond = ", chance included" if kind == "weighted" else " beyond what chance adds"
    parts = f"taken in {len(finding.ranges)} ranges, " if len(finding.ranges) > 1 else ""
    mean = f"{points(finding.gap)} percentage points on average{beyond}"
    gap = f"{parts}forecasts and what came of them are apart by {mean}"
    if not finding.gap:
        gap = "in ranges of forecasts, chance is enough to explain the gaps"
    return f"In practice: {gap}, and recalibration {gain(finding)}. {whole}."


def gain(finding: Finding) -> str:
    """Say what recalibration could do for a proper score."""
    score = "Brier score" if finding.gain_of == "brier" else "log loss"
    return f"could take some {percent(finding.gain)} off the {score}" if finding.gain else f"hardly helps the {score}"


def _times(whole: Range) -> str:
    """Say how many times too high or low, where events are rare: there, points mislead."""
    rare = whole.rate <= 0.5
    said, came = (whole.forecast, whole.rate) if rare else (1 - whole.forecast, 1 - whole.rate)
    if not whole.beyond_chance or not 0 < came < RARE or not said or not max(said / came, came / said) >= 1.05:
        return ""
    times = f"{roughly(max(said / came, came / said))} times too {'high' if said > came else 'low'}"
    return f": {times}{'' if rare else ' for the rarer outcome'}"


def skill(finding: Finding, kind: str) -> str:
    """Say how good the forecasts are, which calibration does not tell."""
    brier, log = finding.figures.brier, finding.figures.log
    said = f"the Brier score is {figure(brier.score)}"
    if not brier.uncertainty:
        return f"{said}; but all outcomes are the same, so there is nothing to tell apart, and no skill to speak of."
    better = 1 - brier.score / brier.uncertainty
    how = f"{percent(abs(better))} {'better' if better >= 0 else 'worse'}"
    than = f"{how} than the {figure(brier.uncertainty)} of the mean outcome said throughout"
    most = f"{percent(brier.discrimination / brier.uncertainty)} better"
    hindsight = (
        f" With the best recalibration it would be {most}, in hindsight: so well do forecasts tell rounds apart."
    )
    logs = f"The log loss is {figure(log.score)}, against {figure(log.uncertainty)}."
    return f"{said}, {than}.{hindsight if kind != 'few' else ''} {logs}"


def notes(finding: Finding) -> list[str]:
    """Say what is peculiar about these rounds."""
    figures, said = finding.figures, []
    if figures.mean_outcome in (0.0, 1.0):
        always = f"Every outcome is {figures.mean_outcome:.0f}"
        said.append(f"{always}: how well forecasts tell rounds apart cannot be seen.")
    if figures.forecasts == 1:
        said.append("There is only one forecast: it can be calibrated, but it does not tell rounds apart.")
    if finding.certain and figures.forecasts > 1:
        said.append("All forecasts are 0 or 1: these are decisions rather than probabilities.")
    if finding.impossible:
        happened = "something happened that had been given probability 0"
        said.append(f"The log loss is infinite: in {rounds(finding.impossible)} {happened}.")
    return said
