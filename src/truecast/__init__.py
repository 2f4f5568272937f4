"""Probability forecasts that stay calibrated, with a proof that travels with them."""

from typing import TYPE_CHECKING, Any

from truecast.certificate import Certificate
from truecast.distance import Distance, Witness, calibration_distance, verify_witness
from truecast.errors import InputError, OrderError, StateError, TruecastError, VersionError
from truecast.forecasters import (
    AlmostOneStepAhead,
    BentGrid,
    Guard,
    HorizonFree,
    OneStepAhead,
    Streams,
    forecast_streams,
)
from truecast.measures import (
    Band,
    Bins,
    Decomposition,
    LowerDistance,
    ReliabilityCurve,
    Report,
    SmoothWitness,
    Uncertainty,
    binned_calibration_error,
    brier_score,
    calibration_decision_loss,
    calibration_error_by_value,
    laplace_calibration_error,
    log_loss,
    lower_calibration_distance,
    measure,
    reliability_band,
    reliability_bins,
    reliability_curve,
    smooth_calibration_error,
    smooth_calibration_witness,
    smooth_ece,
    u_calibration_error,
    uncertainty,
)
from truecast.recalibrate import Recalibrator, Ticket, hints
from truecast.tally import RunningTally, Tally

if TYPE_CHECKING:
    from truecast import arena

__all__ = [
    "AlmostOneStepAhead",
    "Band",
    "BentGrid",
    "Bins",
    "Certificate",
    "Decomposition",
    "Distance",
    "Guard",
    "HorizonFree",
    "InputError",
    "LowerDistance",
    "OneStepAhead",
    "OrderError",
    "Recalibrator",
    "ReliabilityCurve",
    "Report",
    "RunningTally",
    "SmoothWitness",
    "StateError",
    "Streams",
    "Tally",
    "Ticket",
    "TruecastError",
    "Uncertainty",
    "VersionError",
    "Witness",
    "arena",
    "binned_calibration_error",
    "brier_score",
    "calibration_decision_loss",
    "calibration_distance",
    "calibration_error_by_value",
    "forecast_streams",
    "hints",
    "laplace_calibration_error",
    "log_loss",
    "lower_calibration_distance",
    "measure",
    "reliability_band",
    "reliability_bins",
    "reliability_curve",
    "smooth_calibration_error",
    "smooth_calibration_witness",
    "smooth_ece",
    "u_calibration_error",
    "uncertainty",
    "verify_witness",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the arena when it is first asked for: who does not play should not wait for it."""
    if name == "arena":
        import importlib

        return importlib.import_module("truecast.arena")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
