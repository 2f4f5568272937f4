"""Every figure of `measure`, with what it means and what it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truecast.measures.corp import Decomposition
    from truecast.measures.report import Report

__all__ = ["Entry", "entries"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table; without a value, a heading. `depth` makes it part of the one before."""

    label: str
    value: float | None = None
    meaning: str = ""
    depth: int = 0


def entries(report: Report) -> list[Entry]:
    """Return the rows of the table of all figures."""
    return [
        Entry("Proper scores (lower is better)"),
        Entry(
            "Brier score",
            report.brier.score,
            "Mean squared error: calibration and sharpness in one. " + _DEPENDS,
        ),
        *_parts(report.brier),
        Entry(
            "Log loss",
            report.log.score,
            "Mean surprise at what happened, in nats. One certain mistake is infinite.",
        ),
        *_parts(report.log),
        *_distances(report),
        *_errors(report),
        Entry("What miscalibration can cost"),
        Entry("Calibration decision loss", report.calibration_decision_loss, _DECISION),
        Entry("U-calibration error", report.u_calibration_error, _U),
        *_clinical(report),
    ]


_DEPENDS = "What is low depends on how predictable the outcomes are."
_DECISION = (
    "The most that a decision with payoffs in [0, 1] can gain by second-guessing every forecast. "
    "Like “by value”, for forecasts that repeat."
)
_U = (
    "The most that anyone who trusts the forecasts can lose against the best constant. 0 does "
    "not mean calibrated."
)


def _parts(score: Decomposition) -> list[Entry]:
    curve = (
        "How much the best fixed, increasing curve would gain in hindsight. Part of it is chance."
    )
    apart = (
        "How much the forecasts, recalibrated by that curve, beat the average: how well they "
        "separate events from non-events."
    )
    whole = (
        "The score of always saying the average. Score = miscalibration - discrimination + this."
    )
    return [
        Entry("miscalibration", score.miscalibration, curve, depth=1),
        Entry("discrimination", score.discrimination, apart, depth=1),
        Entry("uncertainty", score.uncertainty, whole, depth=1),
    ]


def _distances(report: Report) -> list[Entry]:
    low, high = report.lower_distance
    moved = (
        "How far forecasts must move on average to be calibrated, if rounds may be split: a "
        "proven bound from below."
    )
    above = (
        "The proven bound from above. Both ignore sharpness, and chance alone makes both positive."
    )
    smooth = (
        "The figure of the verdict, within a factor of two of the lower distance; no bins. It "
        "ignores sharpness."
    )
    return [
        Entry("Distance to calibration"),
        Entry("Lower distance, at least", low, moved),
        Entry("Lower distance, at most", high, above),
        Entry("Smooth calibration error", report.smooth_calibration_error, smooth),
    ]


def _errors(report: Report) -> list[Entry]:
    kernel = (
        "Gaps of pairs of forecasts; nearer pairs count more. Depends on the width of the kernel."
    )
    arc = (
        "Gaps of all pairs of forecasts, with a kernel that bounds the lower distance. "
        "Grows with the number of rounds if forecasts are off; not a test."
    )
    fair = "Its mean if the forecasts are right, at most 1. A few times this can be chance."
    value = (
        "Gaps at each distinct forecast. Says nothing about calibration if forecasts rarely repeat."
    )
    equal = "The same in bins with equal numbers of rounds, as far as ties allow."
    return [
        Entry("Other calibration errors (they ignore sharpness too)"),
        Entry(
            "SmoothECE",
            report.smooth_ece,
            "Gaps after smoothing, at its own bandwidth. For comparing forecasts.",
        ),
        Entry("Laplace kernel", report.laplace_calibration_error, kernel),
        Entry("Arc energy, a round", report.arc_energy.energy, arc),
        Entry("expected if calibrated", report.arc_energy.expected, fair, depth=1),
        Entry("By value", report.calibration_error_by_value, value),
        Entry(
            "15 bins of equal width",
            report.binned_calibration_error,
            "The usual ECE. Errors within a bin cancel.",
        ),
        Entry(
            "debiased", report.debiased_calibration_error, "Minus about what chance adds.", depth=1
        ),
        Entry(
            "largest gap",
            report.largest_bin_gap,
            "The largest gap of any bin, however few rounds it has.",
            depth=1,
        ),
        Entry("15 bins of equal counts", report.quantile_calibration_error, equal),
        Entry("Averaged two-bin (ATB)", report.averaged_two_bin_error, _TWO_BIN),
    ]


_TWO_BIN = (
    "Squared gaps below and above a random threshold. Truthful for forecasts that do not look at "
    "outcomes: on average, none have less than the right ones. A square; falls with the number of "
    "rounds."
)


def _clinical(report: Report) -> list[Entry]:
    slope = (
        "Of the best line on the logit scale. Below 1: forecasts too extreme; above 1: too timid. "
        "Sees lines only."
    )
    intercept = "Of that line: the log-odds where the forecast is one half. 0 if calibrated."
    large = "The shift of all log-odds that makes the means agree. Above 0: forecasts too low."
    ratio = "Ones observed, over ones expected. Errors in opposite directions cancel."
    index = "Mean distance between forecasts and the best increasing curve. Part of it is chance."
    return [
        Entry("As clinical papers report it"),
        Entry("Calibration slope", report.calibration_slope.slope.estimate, slope),
        Entry("Calibration intercept", report.calibration_slope.intercept.estimate, intercept),
        Entry("Calibration-in-the-large", report.calibration_in_the_large.estimate, large),
        Entry("O:E ratio", report.observed_expected_ratio.estimate, ratio),
        Entry("ICI", report.integrated_calibration_index, index),
        Entry("E50", report.e50, "The median of these distances.", depth=1),
        Entry("E90", report.e90, "Nine in ten rounds are no farther from the curve.", depth=1),
        Entry("Emax", report.emax, "The largest, mostly at the ends of the range.", depth=1),
    ]
