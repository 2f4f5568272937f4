"""Measures of calibration, one family a file: each takes outcomes and forecasts, or their tally."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = [
    "ArcEnergy",
    "Band",
    "Bins",
    "CalibrationSlope",
    "ClassDecompositions",
    "ClassErrors",
    "ClassReport",
    "ClassUncertainty",
    "Decomposition",
    "Interval",
    "LowerDistance",
    "ReliabilityCurve",
    "Report",
    "SmoothWitness",
    "Stretch",
    "Stretches",
    "Uncertainty",
    "arc_energy",
    "averaged_two_bin_error",
    "binned_calibration_error",
    "brier_score",
    "calibration_decision_loss",
    "calibration_error_by_value",
    "calibration_error_quantile",
    "calibration_in_the_large",
    "calibration_slope",
    "class_decompositions",
    "classwise_calibration_errors",
    "classwise_uncertainty",
    "confidence_calibration_error",
    "integrated_calibration_index",
    "laplace_calibration_error",
    "log_loss",
    "lower_calibration_distance",
    "measure",
    "observed_expected_ratio",
    "reliability_band",
    "reliability_bins",
    "reliability_curve",
    "smooth_calibration_error",
    "smooth_calibration_witness",
    "smooth_ece",
    "stretches",
    "top_label_calibration_errors",
    "top_label_decision_loss",
    "u_calibration_error",
    "uncertainty",
]

if not TYPE_CHECKING:
    lazily(
        __name__,
        "figures",
        "report",
        "scores",
        "smooth_ece",
        "by_value",
        "decision",
        "kernel",
        "two_bins",
        "energy",
        "smooth",
        "binned",
        "corp",
        "lower_distance",
        "clinical",
        "uncertainty",
        "finder",
        "class_scores",
        "classes",
        "class_report",
    )
else:  # for type checkers and for the reference
    from truecast.measures.binned import Bins, binned_calibration_error, reliability_bins
    from truecast.measures.by_value import calibration_error_by_value
    from truecast.measures.class_report import ClassReport
    from truecast.measures.class_scores import ClassDecompositions, class_decompositions
    from truecast.measures.classes import (
        ClassErrors,
        ClassUncertainty,
        classwise_calibration_errors,
        classwise_uncertainty,
        confidence_calibration_error,
        top_label_calibration_errors,
        top_label_decision_loss,
    )
    from truecast.measures.clinical import (
        CalibrationSlope,
        Interval,
        calibration_error_quantile,
        calibration_in_the_large,
        calibration_slope,
        integrated_calibration_index,
        observed_expected_ratio,
    )
    from truecast.measures.corp import Decomposition, ReliabilityCurve, reliability_curve
    from truecast.measures.decision import calibration_decision_loss, u_calibration_error
    from truecast.measures.energy import ArcEnergy, arc_energy
    from truecast.measures.figures import measure
    from truecast.measures.finder import Stretch, Stretches, stretches
    from truecast.measures.kernel import laplace_calibration_error
    from truecast.measures.lower_distance import LowerDistance, lower_calibration_distance
    from truecast.measures.report import Report
    from truecast.measures.scores import brier_score, log_loss
    from truecast.measures.smooth import (
        SmoothWitness,
        smooth_calibration_error,
        smooth_calibration_witness,
    )
    from truecast.measures.smooth_ece import smooth_ece
    from truecast.measures.two_bins import averaged_two_bin_error
    from truecast.measures.uncertainty import Band, Uncertainty, reliability_band, uncertainty
