"""The verdict in words: is it calibrated, and how sure are we.

Never "it is": at best "no evidence against it".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from truecast._names import counted
from truecast.measures.finder import SIGNIFICANT, Stretch
from truecast.report.findings import RARE, Judgement, judged_by
from truecast.report.numerals import (
    apart,
    figure,
    p_value,
    percent,
    points,
    probability,
    roughly,
    rounds,
)

if TYPE_CHECKING:
    from truecast.measures.uncertainty import Uncertainty
    from truecast.plot import GroupOverview
    from truecast.report.class_groups import ClassGroups

__all__ = [
    "QUIET",
    "Verdict",
    "before_and_after",
    "colour",
    "direction",
    "gain",
    "groups_off",
    "headline",
    "in_parts",
    "in_words",
    "interval",
    "notes",
    "place",
    "proved_kind",
    "size",
    "skill",
    "turned",
    "verdict",
]

_SURE = 0.01  # p-value
_FEWEST = 20  # rounds
_BLUR = 0.03  # if chance makes a larger error, nothing can be told
_NEGLIGIBLE = 0.005  # an error that hardly matters
_GAIN = 0.01  # a share of the Brier score
# the same errors, relative to how often the rarer outcome comes
_RARE_BLUR = 0.25
_RARE_NEGLIGIBLE = 0.05
_NO_WIDTH = 1e-12  # of an interval: nothing but rounding
QUIET = ("few", "none", "slight")  # verdicts that ask for nothing
_MIXED = "forecasts are too low in places and too high in others"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said in one line, and why.

    `kind` is "few", "none", "weak", "slight", "off" or "weighted"; `short` goes into a table.
    """

    kind: str
    short: str
    headline: str
    evidence: str


def verdict(finding: Judgement) -> Verdict:
    """Judge by p-values, by what chance does, and by how much it matters."""
    smooth_error = finding.smooth_error
    if smooth_error is None:
        short = "chance unknown"
        headline = "With real weights, chance cannot be judged"
        reason = "real weights do not tell how many rounds there were"
        error = figure(finding.figures.smooth_calibration_error)
        evidence = f"The smooth calibration error is {error}; {reason}."
        return Verdict("weighted", short, headline, evidence)
    kind = _kind(finding, smooth_error)
    short, headline = in_words(kind, direction(finding) if kind == "off" else "")
    return Verdict(kind, short, headline, _evidence(finding, smooth_error, kind))


def in_words(kind: str, how: str) -> tuple[str, str]:
    """Return a verdict for a table, and as a headline; `how` says in which way forecasts are off.

    Of several classes, too.
    """
    return {
        "few": ("too few rounds to tell", "Too few rounds to tell"),
        "none": ("no evidence against", "No evidence against calibration"),
        "weak": ("weak evidence against", "Weak evidence against calibration"),
        "slight": ("off, but hardly", "Not calibrated, but off by very little"),
        "off": (f"off: {how}", f"Not calibrated: {how}"),
    }[kind]


def headline(finding: Judgement) -> str:
    """Return the verdict in one line; of recalibrated forecasts both, before and after."""
    if finding.after is not None:
        return before_and_after(_headline(finding), _headline(finding.after))
    return _headline(finding)


def _headline(finding: Judgement) -> str:
    found = verdict(finding)
    return in_parts(found.headline, found.kind, off_in_parts(finding))


def in_parts(headline: str, kind: str, parts: Sequence[str]) -> str:
    """Return a verdict with the parts that are off, if it is about the whole only."""
    if kind not in QUIET or not parts:
        return headline
    return f"{headline} on the whole, but {' and '.join(parts)}"


def colour(kind: str, parts: Sequence[str]) -> str:
    """Return the kind that a verdict is shown as: what is off in parts is never green."""
    return "weak" if kind in QUIET and parts else kind


def groups_off(groups: GroupOverview | ClassGroups) -> list[str]:
    """Say how many groups are off, if any is."""
    off = int((groups.adjusted < SIGNIFICANT).sum())
    among = counted(len(groups), "group")
    return [f"{off:,} of {among} {'is' if off == 1 else 'are'} off"] if off else []


def off_in_parts(finding: Judgement) -> list[str]:
    """Say in which parts forecasts are off, though they may be right on average."""
    parts = [] if finding.groups is None else groups_off(finding.groups)
    watched = None if finding.course is None else finding.course.evidence
    if finding.course is not None and watched is not None and watched.alarm is not None:
        parts.append(f"there was an alarm on {finding.course.when(watched.came)}")
    return parts


def before_and_after(*headlines: str) -> str:
    """Return two verdicts as one line."""
    before, after = (text[0].lower() + text[1:] for text in headlines)
    return f"Before: {before}. After: {after}"


def _kind(finding: Judgement, smooth_error: Uncertainty) -> str:
    figures = finding.figures
    if finding.p_value >= SIGNIFICANT:
        rarer = min(figures.mean_forecast, 1 - figures.mean_forecast)
        blurred = smooth_error.if_calibrated > min(_BLUR, _RARE_BLUR * rarer)
        return "few" if blurred or figures.total < _FEWEST else "none"
    if finding.p_value >= _SURE:
        return "weak"
    rarer = min(figures.mean_outcome, 1 - figures.mean_outcome)
    limit = min(_NEGLIGIBLE, _RARE_NEGLIGIBLE * rarer)
    excess = smooth_error.estimate - smooth_error.if_calibrated
    small = excess < limit and finding.gap < 2 * limit and finding.gain < _GAIN
    return "slight" if small and not finding.impossible else "off"


def proved_kind(rounds: float, p_value: float) -> str:
    """Return the kind of verdict by a p-value alone: for millions of scores, and for classes.

    It cannot tell "slight" from "off", nor that an error that matters could hide, unless there are
    hardly any rounds.
    """
    if math.isnan(p_value):
        return "weighted"
    if p_value >= SIGNIFICANT:
        return "few" if rounds < _FEWEST else "none"
    return "weak" if p_value >= _SURE else "off"


def _evidence(finding: Judgement, smooth_error: Uncertainty, kind: str) -> str:
    estimate = f"The smooth calibration error is {figure(smooth_error.estimate)}"
    chance = (
        f"; calibrated forecasts would show about {figure(smooth_error.if_calibrated)} by chance"
    )
    how_often = f"{_as_far(finding)}."
    if kind not in ("few", "none"):
        return f"{estimate} ({interval(finding, smooth_error)}){chance}. {how_often}"
    blur = ": chance could hide an error that matters" if kind == "few" else ""
    if _no_width(finding, smooth_error):
        return f"{estimate}{chance}{blur}. {how_often}"
    most = max(smooth_error.upper, smooth_error.estimate)
    ruled = (
        f" An error up to about {figure(most)} cannot be ruled out ({percent(smooth_error.level)} "
        "interval)."
    )
    return f"{estimate}{chance}{blur}. {how_often}{ruled}"


def interval(finding: Judgement, smooth_error: Uncertainty) -> str:
    """Return the interval of the smooth calibration error; or why there is none."""
    if _no_width(finding, smooth_error):
        if finding.figures.mean_outcome in (0.0, 1.0):
            return "no interval: every outcome was the same"
        return "no interval: drawing rounds again changes nothing"
    ends = apart(smooth_error.lower, smooth_error.upper)
    return f"{percent(smooth_error.level)} interval {' to '.join(ends)}"


def _no_width(finding: Judgement, smooth_error: Uncertainty) -> bool:
    """Whether rounds drawn again say nothing about chance, since they are all the same."""
    figures = finding.figures
    alike = figures.mean_outcome in (0.0, 1.0) and figures.forecasts == 1
    return alike or smooth_error.upper - smooth_error.lower < _NO_WIDTH


def _as_far(finding: Judgement) -> str:
    times = finding.found.resamples
    others = round(finding.p_value * (times + 1)) - 1
    many = f"{others:,} were" if others > 1 else f"{others or 'none'} was"
    how = "by this error or in any stretch of forecasts"
    among = f"Of {times:,} simulated sets of calibrated forecasts, {many} as far off, {how}"
    return f"{among} (p-value {p_value(finding.p_value)})"


def direction(finding: Judgement) -> str:
    """Say in which way forecasts are off, by what is marked and nothing else."""
    if turned(finding):
        return "forecasts run the wrong way"
    signs = [sign for sign, _ in groupby(part.gap > 0 for part in finding.marked)]
    if signs == [True, False]:
        return "forecasts are too extreme (overconfident)"
    if signs == [False, True]:
        return "forecasts are not extreme enough (underconfident)"
    if len(signs) == 1:
        return _one_way(finding, f"too {'low' if signs[0] else 'high'}")
    return _MIXED


def _one_way(finding: Judgement, way: str) -> str:
    """Say where forecasts are off, unless it is most of them."""
    if 2 * sum(part.rounds for part in finding.marked) >= finding.figures.total:
        return f"forecasts are {way}"
    if len(finding.marked) > 1:
        return f"forecasts are {way} in places"
    (part,) = finding.marked
    ends = place(part)
    if len(ends) == 1:
        return f"forecasts {'of' if part.low == part.high else 'around'} {ends[0]} are {way}"
    if part.high == finding.ranges[-1].high:
        return f"forecasts above {ends[0]} are {way}"
    if part.low == finding.ranges[0].low:
        return f"forecasts below {ends[1]} are {way}"
    return f"forecasts from {ends[0]} to {ends[1]} are {way}"


def place(part: Stretch) -> tuple[str, ...]:
    """Return the ends of a stretch in few digits; or one, if they are the same."""
    return tuple(dict.fromkeys(probability(end, 2) for end in (part.low, part.high)))


def turned(finding: Judgement) -> bool:
    """Return whether low forecasts came true more often than high ones, by three times chance.

    If they do, they are off, too: never where nothing is marked.
    """
    if not finding.marked or len(finding.found.halves) < 2:
        return False
    low, high = finding.found.halves
    rate = finding.figures.mean_outcome
    return low.rate - high.rate > 3 * math.sqrt(
        rate * (1 - rate) * (1 / low.rounds + 1 / high.rounds)
    )


def size(finding: Judgement, kind: str) -> str:
    """Say what the error amounts to in practice, as far as that can be told."""
    means = (finding.figures.mean_forecast, finding.figures.mean_outcome)
    times = _times(finding.found.whole)
    whole = "The mean forecast was {}, the mean outcome {}".format(*map(probability, means)) + times
    if kind == "few":
        return f"In practice: too few rounds to say how much it matters. {whole}."
    if kind == "none":
        return f"In practice: chance explains the gaps. {whole}."
    beyond = ", chance included" if kind == "weighted" else " beyond chance"
    parts = f"over {len(finding.ranges)} ranges, " if len(finding.ranges) > 1 else ""
    mean = f"{points(finding.gap)} percentage points on average{beyond}"
    gap = f"{parts}forecasts and outcomes differ by {mean}"
    if not finding.gap:
        gap = f"{parts}gaps are no larger on average than by chance"
    more = "" if finding.outdone else f"; {gain(finding)}"
    return f"In practice: {gap}{more}. {whole}."


def gain(finding: Judgement) -> str:
    """Say what recalibration could do for a proper score, as far as a fixed curve can tell."""
    (score, parts), curve = judged_by(finding), "the best fixed, increasing curve"
    if not finding.gain:
        return f"{curve} would hardly help the {score}"
    raw = percent(parts.miscalibration / (parts.score or 1.0))
    said = percent(finding.gain)
    chance = f" ({raw} in hindsight, minus the part due to chance)" if raw != said else ""
    return f"{curve} would lower the {score} by about {said}{chance}"


def _times(whole: Stretch) -> str:
    """Say how many times too high or low, where events are rare: there, points mislead."""
    rare = whole.rate <= 0.5
    said, came = (whole.forecast, whole.rate) if rare else (1 - whole.forecast, 1 - whole.rate)
    if (
        not whole.off
        or not 0 < came < RARE
        or not said
        or not max(said / came, came / said) >= 1.05
    ):
        return ""
    times = f"{roughly(max(said / came, came / said))} times too {'high' if said > came else 'low'}"
    return f": {times}{'' if rare else ' for the rarer outcome'}"


def skill(finding: Judgement, kind: str) -> str:
    """Say how good the forecasts are, which calibration does not tell."""
    name, parts = judged_by(finding)
    other, beside = judged_by(finding, "log" if finding.gain_of == "brier" else "brier")
    score, constant = apart(parts.score, parts.uncertainty)
    if not parts.uncertainty:
        alike = "but all outcomes are the same, so skill cannot be measured"
        return f"the {name} is {score}; {alike}."
    better = round(1 - parts.score / parts.uncertainty, 12)  # nothing but rounding is left out
    how = "no better"
    if score != constant:
        how = f"{percent(abs(better))} {'better' if better >= 0 else 'worse'}"
    said = f"the {name} is {score}, {how} than the {constant} of always saying the average."
    if kind != "few" and not finding.outdone:
        said += f" {_hindsight(parts.discrimination / parts.uncertainty)}"
    against = ", against ".join(apart(beside.score, beside.uncertainty))
    return f"{said} The {other} is {against}."


def _hindsight(told: float) -> str:
    if not told:
        return (
            "No fixed, increasing curve would make it better than that: high forecasts do not "
            "come true more often."
        )
    best = f"With the best fixed, increasing curve, it would be {percent(told)} better than that"
    return f"{best}, in hindsight. This is how well they separate events from non-events."


def notes(finding: Judgement) -> list[str]:
    """Say what is peculiar about these rounds."""
    figures = finding.figures
    sentences = []
    if figures.mean_outcome in (0.0, 1.0):
        always = f"Every outcome is {figures.mean_outcome:.0f}"
        sentences.append(
            f"{always}: how well forecasts separate events from non-events cannot be seen."
        )
    if figures.forecasts == 1:
        sentences.append(
            "There is only one forecast: it can be calibrated, but it does not separate events "
            "from non-events."
        )
    if finding.certain and figures.forecasts > 1:
        sentences.append("All forecasts are 0 or 1: these are decisions rather than probabilities.")
    if finding.impossible:
        happened = "something with probability 0 happened"
        sentences.append(f"The log loss is infinite: in {rounds(finding.impossible)} {happened}.")
    return sentences
