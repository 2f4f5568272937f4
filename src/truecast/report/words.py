"""What the sections say: where forecasts are off, which groups are, what recalibration did, what is proved."""

from __future__ import annotations

import numpy as np

from truecast.certificate import Certificate
from truecast.measures.report import Report
from truecast.plot import GroupOverview
from truecast.report.findings import After, Finding, Range
from truecast.report.markup import Markup, join, name
from truecast.report.numerals import count, figure, percent, place, probability, roughly, rounds
from truecast.report.verdict import SIGNIFICANT, evidence

__all__ = ["after_sentence", "certificate_sentences", "groups_sentence", "where_sentences"]


def where_sentences(finding: Finding) -> list[str]:
    """Say which forecasts were too high or too low, as far as chance does not explain it."""
    if finding.doubt is not None and evidence(finding, finding.doubt) >= SIGNIFICANT:
        return ["No range of forecasts stands out beyond what chance does."]
    span = finding.ranges[-1].high - finding.ranges[0].low
    said = [_stretch(part, span) for part in finding.off]
    return said or ["The error is spread over many forecasts; no range of them explains it."]


def _stretch(part: Range, span: float) -> str:
    between = f"between {place(part.low, span)} and {place(part.high, span)}"
    said = f"Forecasts {between if part.low < part.high else 'of ' + probability(part.low)}"
    off = f"too {'low' if part.gap > 0 else 'high'} by about {roughly(part.gap)}"
    return f"{said} were {off} on average ({rounds(part.rounds)})."


def groups_sentence(overview: GroupOverview) -> Markup:
    """Say which groups stand out, after allowing for how many there are."""
    if np.isnan(overview.p_value).all():
        return join("With real weights chance cannot be judged: groups are in the order of their errors.")
    found = int((overview.adjusted < SIGNIFICANT).sum())
    among = f"{len(overview):,} group{'s'[: len(overview) != 1]}"
    allowing = "after allowing for how many were looked at (Holm's adjustment)"
    if not found:
        return join(f"None of {among} stands out, {allowing}.")
    stand = "stands" if found == 1 else "stand"
    return join((f"{found:,} of {among} {stand} out, {allowing}; most of all ", name(overview.names[0]), "."))


def after_sentence(before: Report, after: After) -> str:
    """Say what recalibration did, by a proper score first."""
    change = 1 - after.brier.score / before.brier.score if before.brier.score else 0.0
    fell = f"{'fell' if change > 0 else 'rose'} by {percent(abs(change))}" if change else "stayed the same"
    brier = f"The Brier score {fell}, from {figure(before.brier.score)} to {figure(after.brier.score)}"
    error = f"the smooth calibration error went from {figure(before.smooth_calibration_error)} to {figure(after.error)}"
    chance = f"; calibrated forecasts would show {figure(after.doubt.if_calibrated)} by chance" if after.doubt else ""
    return f"{brier}; {error}{chance}."


def certificate_sentences(certificate: Certificate) -> list[str]:
    """Say what is proved, and what that does not tell."""
    late = certificate.unresolved
    worst = f", with the {count(late)} whose outcome is missing counted at their worst" if late else ""
    return [
        f"The forecasts of the {rounds(certificate.rounds + late)} so far are within "
        f"{figure(certificate.per_round)} on average of perfectly calibrated ones{worst}: proved, not estimated, "
        "whatever made the outcomes come as they did.",
        "It is about these rounds together, not about any one of them, nor about those to come. And it does not say "
        f"that they are sharp: for that, read the Brier score, {figure(certificate.brier)}.",
    ]
