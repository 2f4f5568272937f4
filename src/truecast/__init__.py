"""Probability forecasts that stay calibrated, with a proof that travels with them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truecast import arena, plot
    from truecast import certificate as certificate
    from truecast import distance as distance
    from truecast import errors as errors
    from truecast import forecasters as forecasters
    from truecast import measures as measures
    from truecast import recalibrate as recalibrate
    from truecast import report as report
    from truecast import tally as tally
    from truecast.certificate import ArcCertificate, Certificate
    from truecast.distance import (
        Distance,
        Witness,
        calibration_distance,
        splitting_gap,
        verify_witness,
    )
    from truecast.errors import (
        FileError,
        InputError,
        OrderError,
        StateError,
        TicketError,
        TruecastError,
        VersionError,
    )
    from truecast.forecasters import (
        AlmostOneStepAhead,
        Arc,
        ArcStreams,
        BentGrid,
        Guard,
        HorizonFree,
        OneStepAhead,
        Streams,
        forecast_streams,
    )
    from truecast.measures import (
        ArcEnergy,
        Band,
        Bins,
        Decomposition,
        LowerDistance,
        ReliabilityCurve,
        Report,
        SmoothWitness,
        Stretch,
        Stretches,
        Uncertainty,
        arc_energy,
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
        stretches,
        u_calibration_error,
    )
    from truecast.measures.smooth_ece import smooth_ece
    from truecast.measures.uncertainty import uncertainty
    from truecast.reading import RoundArrays, RoundsFile, read_rounds
    from truecast.recalibrate import Recalibrator, Ticket, hints
    from truecast.report import HtmlReport, html_report
    from truecast.tally import RunningTally, Tally

__all__ = [
    "AlmostOneStepAhead",
    "Arc",
    "ArcCertificate",
    "ArcEnergy",
    "ArcStreams",
    "Band",
    "BentGrid",
    "Bins",
    "Certificate",
    "Decomposition",
    "Distance",
    "FileError",
    "Guard",
    "HorizonFree",
    "HtmlReport",
    "InputError",
    "LowerDistance",
    "OneStepAhead",
    "OrderError",
    "Recalibrator",
    "ReliabilityCurve",
    "Report",
    "RoundArrays",
    "RoundsFile",
    "RunningTally",
    "SmoothWitness",
    "StateError",
    "Streams",
    "Stretch",
    "Stretches",
    "Tally",
    "Ticket",
    "TicketError",
    "TruecastError",
    "Uncertainty",
    "VersionError",
    "Witness",
    "arc_energy",
    "arena",
    "binned_calibration_error",
    "brier_score",
    "calibration_decision_loss",
    "calibration_distance",
    "calibration_error_by_value",
    "forecast_streams",
    "hints",
    "html_report",
    "laplace_calibration_error",
    "log_loss",
    "lower_calibration_distance",
    "measure",
    "plot",
    "read_rounds",
    "reliability_band",
    "reliability_bins",
    "reliability_curve",
    "smooth_calibration_error",
    "smooth_calibration_witness",
    "smooth_ece",
    "splitting_gap",
    "stretches",
    "u_calibration_error",
    "uncertainty",
    "verify_witness",
]
__version__ = "0.1.0"

_ROOMS = (
    "errors",
    "certificate",
    "tally",
    "measures",
    "distance",
    "forecasters",
    "recalibrate",
    "report",
    "reading",
)


if not TYPE_CHECKING:  # to a type checker, a module with a __getattr__ has every name there is

    def __getattr__(name: str) -> object:
        """Import what is asked for when it is first asked for: the command's help need not wait for numpy."""
        from importlib import import_module

        if name in (*_ROOMS, "arena", "plot"):
            return import_module(f"truecast.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        rooms = (import_module(f"truecast.{room}") for room in _ROOMS)
        value = globals()[name] = next(
            getattr(room, name) for room in rooms if name in room.__all__
        )
        return value


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *_ROOMS, *__all__})
