"""All measures at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property, partial
from typing import Any, overload

from truecast._names import counted, rounds_or_weight
from truecast._threads import both
from truecast.class_tally import ClassTally, as_class_tally, of_classes
from truecast.measures.binned import Bins, binned_calibration_error, reliability_bins
from truecast.measures.by_value import calibration_error_by_value
from truecast.measures.class_report import ClassReport, measure_classes
from truecast.measures.clinical import (
    CalibrationSlope,
    Interval,
    calibration_in_the_large,
    calibration_slope,
    curve_errors,
    observed_expected_ratio,
)
from truecast.measures.corp import Decomposition, ReliabilityCurve, reliability_curve
from truecast.measures.decision import calibration_decision_loss, u_calibration_error
from truecast.measures.energy import ArcEnergy, arc_energy
from truecast.measures.kernel import laplace_calibration_error
from truecast.measures.lower_distance import lower_calibration_distance
from truecast.measures.smooth import smooth_calibration_error
from truecast.measures.smooth_ece import smooth_ece
from truecast.measures.two_bins import averaged_two_bin_error
from truecast.tally import Tally, as_tally

__all__ = ["FIGURES", "Report", "measure", "some_figures"]


@dataclass(frozen=True, slots=True)
class Report:
    """What `measure` returns. Figures are means per round, unless their names say otherwise.

    Attributes
    ----------
    total : int or float
        Rounds, or their weight.
    forecasts : int
        Distinct forecasts.
    mean_outcome, mean_forecast : float
    brier, log : Decomposition
        The two proper scores with miscalibration, discrimination and uncertainty.
    lower_distance : tuple of float
        Proven bounds of the lower distance to calibration, within 5 % of each other if that is
        fast.
    smooth_calibration_error, smooth_ece, laplace_calibration_error : float
        Without bins.
    arc_energy : ArcEnergy
        The energy on the arc, its mean if the forecasts were right, and the bounds it proves.
    calibration_error_by_value, binned_calibration_error, debiased_calibration_error,
    quantile_calibration_error : float
        By distinct forecast; in 15 bins of equal width, as it is and debiased (nan for real
        weights); in 15 bins of equal counts.
    largest_bin_gap : float
        The largest gap of the 15 bins of equal width.
    calibration_decision_loss, u_calibration_error : float
        What miscalibration can cost, for payoffs and losses in [0, 1].
    averaged_two_bin_error : float
        ATB, the truthful error: a square.
    calibration_slope : CalibrationSlope
        The best line on the logit scale, with 95 % intervals.
    calibration_in_the_large, observed_expected_ratio : Interval
        The shift of log-odds, and the ratio O:E, that make the means agree; with 95 % intervals.
    integrated_calibration_index, e50, e90, emax : float
        ICI: the mean distance between forecasts and reliability curve; its quantiles.
    """

    total: int | float
    forecasts: int
    mean_outcome: float
    mean_forecast: float
    brier: Decomposition
    log: Decomposition
    lower_distance: tuple[float, float]
    smooth_calibration_error: float
    smooth_ece: float
    laplace_calibration_error: float
    arc_energy: ArcEnergy
    calibration_error_by_value: float
    binned_calibration_error: float
    debiased_calibration_error: float
    quantile_calibration_error: float
    largest_bin_gap: float
    calibration_decision_loss: float
    u_calibration_error: float
    averaged_two_bin_error: float
    calibration_slope: CalibrationSlope
    calibration_in_the_large: Interval
    observed_expected_ratio: Interval
    integrated_calibration_index: float
    e50: float
    e90: float
    emax: float

    @property
    def totals(self) -> dict[str, float]:
        """The figures that are sums over rounds, as totals: the scale of the paper."""
        figures = {"brier_total": self.brier.score, "log_total": self.log.score}
        figures["arc_energy_total"] = self.arc_energy.energy
        low, high = self.lower_distance
        figures |= {"lower_distance_total_at_least": low, "lower_distance_total_at_most": high}
        figures |= {name + "_total": getattr(self, name) for name in _SUMS}
        return {name: figure * self.total for name, figure in figures.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything, totals included, as plain data.

        Infinite or undefined values are the floats inf and nan.
        """
        return asdict(self) | {"lower_distance": list(self.lower_distance), "totals": self.totals}

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """The figures by topic, and then by readable name."""
        low, high = self.lower_distance
        return {
            "proper scores (lower is better)": {
                "Brier score": self.brier.score,
                "log loss": self.log.score,
            },
            "distance to calibration": {
                "lower distance, at least": low,
                "lower distance, at most": high,
                "  by arc energy, at most": self.arc_energy.lower_distance,
                "smooth calibration error": self.smooth_calibration_error,
            },
            "other calibration errors": {
                "SmoothECE": self.smooth_ece,
                "Laplace kernel": self.laplace_calibration_error,
                "by value": self.calibration_error_by_value,
                "15 bins of equal width": self.binned_calibration_error,
                "  debiased": self.debiased_calibration_error,
                "  largest gap": self.largest_bin_gap,
                "15 bins of equal counts": self.quantile_calibration_error,
                "averaged two-bin (ATB)": self.averaged_two_bin_error,
            },
            "what miscalibration can cost": {
                "calibration decision loss": self.calibration_decision_loss,
                "U-calibration error": self.u_calibration_error,
            },
            "as clinical papers report it": {
                "calibration slope": self.calibration_slope.slope.estimate,
                **_ends("slope", self.calibration_slope.slope),
                "calibration intercept": self.calibration_slope.intercept.estimate,
                "calibration-in-the-large": self.calibration_in_the_large.estimate,
                **_ends("shift", self.calibration_in_the_large),
                "O:E ratio": self.observed_expected_ratio.estimate,
                **_ends("O:E", self.observed_expected_ratio),
                "ICI": self.integrated_calibration_index,
                "  E50": self.e50,
                "  E90": self.e90,
                "  Emax": self.emax,
            },
        }

    def __str__(self) -> str:
        lines = [
            f"{rounds_or_weight(self.total)} at {counted(self.forecasts, 'distinct forecast')}",
            f"mean outcome {self.mean_outcome:.6f}, mean forecast {self.mean_forecast:.6f}",
        ]
        for about, figures in self.figures.items():
            lines += [about, *(f"  {name:<28}{figure:.6f}" for name, figure in figures.items())]
        lines.append("score = miscalibration - discrimination + uncertainty")
        for name, part in (("Brier", self.brier), ("log", self.log)):
            parts = (
                f"{part.miscalibration:.6f} - {part.discrimination:.6f} + {part.uncertainty:.6f}"
            )
            lines.append(f"  {name:<28}{part.score:.6f} = {parts}")
        return "\n".join(lines)


def _ends(name: str, found: Interval) -> dict[str, float]:
    level = f"{found.level:.0%}"
    return {f"  {name}, {level} from": found.lower, f"  {name}, {level} to": found.upper}


_FEW = 1 << 16  # forecasts
_CLOSE = (1e-4, 0.05)  # how close the bounds of the lower distance get, for few forecasts or more
_TWO_THREADS = 1 << 12  # forecasts from which a second thread is worth starting
# What two threads compute at once, in turn: no more than one column or two beside each other, so
# that everything together takes about as much memory as the tally.
_IN_TURN = (
    (
        ("smooth_calibration_error",),
        (
            "total",
            "forecasts",
            "mean_outcome",
            "mean_forecast",
            "smooth_ece",
            "laplace_calibration_error",
            "arc_energy",
            "calibration_error_by_value",
            "binned_calibration_error",
            "debiased_calibration_error",
            "largest_bin_gap",
            "u_calibration_error",
            "averaged_two_bin_error",
        ),
    ),
    (
        (
            "brier",
            "log",
            "integrated_calibration_index",
            "e50",
            "e90",
            "emax",
            "quantile_calibration_error",
            "observed_expected_ratio",
        ),
        ("calibration_in_the_large",),
    ),
    (
        ("lower_distance",),
        ("calibration_slope", "calibration_decision_loss"),
    ),
)
_SUMS = (
    "smooth_calibration_error",
    "calibration_error_by_value",
    "binned_calibration_error",
    "quantile_calibration_error",
    "calibration_decision_loss",
    "u_calibration_error",
)


@overload
def measure(y_true: Tally) -> Report: ...
@overload
def measure(y_true: ClassTally) -> ClassReport: ...
@overload
def measure(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    normalize: bool = False,
) -> Any: ...
def measure(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    normalize: bool = False,
) -> Any:
    """Compute every measure at once.

    No single figure here says whether forecasts are good. Calibration errors ignore sharpness
    (always saying the mean outcome is calibrated), and chance makes all of them larger when there
    are few rounds (see `uncertainty`).

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally or ClassTally alone.
    labels, normalize
        For several classes, with `y_prob` of shape (rounds, classes): as in
        `ClassTally.from_predictions`.

    Returns
    -------
    Report or ClassReport
        The latter for several classes. It says which notion of calibration each figure is.

    Examples
    --------
    >>> import truecast as tc
    >>> report = tc.measure([0, 1, 1, 0], [0.25, 0.25, 0.75, 1.0])
    >>> report.brier.score, report.smooth_calibration_error
    (0.421875, 0.171875)
    >>> report.totals["brier_total"]
    1.6875

    >>> classes = tc.measure(["b", "a"], [[0.5, 0.5], [0.75, 0.25]], labels=["a", "b"])
    >>> classes.accuracy, classes.classwise.sum, classes.confidence
    (0.5, 0.3125, 0.15625)
    """
    if of_classes(y_true, y_prob, labels):
        return measure_classes(
            as_class_tally(
                y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
            )
        )
    tally = as_tally(y_true, y_prob, sample_weight)
    if len(tally.p) < _TWO_THREADS:
        return Report(**_figures(tally, _FIGURES))
    figures: dict[str, Any] = {}
    for here, aside in _IN_TURN:
        for found in both(partial(_figures, tally, here), partial(_figures, tally, aside)):
            figures |= found
    return Report(**figures)


def figures_besides(tally: Tally, known: Collection[str]) -> dict[str, Any]:
    """Return the fields of a tally's report but those that are known, in this thread."""
    return _figures(tally, (name for name in _FIGURES if name not in known))


def some_figures(tally: Tally, names: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a tally's report, as in `Report.to_dict`; compute no others."""
    return {name: _plain(figure) for name, figure in _figures(tally, names).items()}


def _plain(figure: Any) -> Any:
    if is_dataclass(figure) and not isinstance(figure, type):
        return asdict(figure)
    return list(figure) if isinstance(figure, tuple) else figure


def _figures(tally: Tally, names: Iterable[str]) -> dict[str, Any]:
    shared = _Shared(tally)
    return {name: _FIGURES[name](shared) for name in names}


class _Shared:
    """A tally, and what several figures share."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @cached_property
    def curve(self) -> ReliabilityCurve:
        return reliability_curve(self.tally)

    @cached_property
    def bins(self) -> Bins:
        return reliability_bins(self.tally)

    @cached_property
    def errors(self) -> list[float]:
        return curve_errors(self.tally, self.curve, 0.5, 0.9, 1.0)

    def lower_distance(self) -> tuple[float, float]:
        found = lower_calibration_distance(self.tally, rtol=_CLOSE[len(self.tally.p) > _FEW])
        return found.lower, found.upper


_FIGURES: dict[str, Callable[[_Shared], Any]] = {
    "total": lambda of: of.tally.total,
    "forecasts": lambda of: len(of.tally.p),
    "mean_outcome": lambda of: of.tally.rate,
    "mean_forecast": lambda of: float(reliability_bins(of.tally, n_bins=1).forecast[0]),
    "brier": lambda of: of.curve.brier,
    "log": lambda of: of.curve.log,
    "lower_distance": lambda of: of.lower_distance(),
    "smooth_calibration_error": lambda of: smooth_calibration_error(of.tally),
    "smooth_ece": lambda of: smooth_ece(of.tally),
    "laplace_calibration_error": lambda of: laplace_calibration_error(of.tally),
    "arc_energy": lambda of: arc_energy(of.tally),
    "calibration_error_by_value": lambda of: calibration_error_by_value(of.tally),
    "binned_calibration_error": lambda of: of.bins.error("l1"),
    "debiased_calibration_error": lambda of: (
        math.nan if of.tally.weighted else of.bins.error("l1", debias=True)
    ),
    "quantile_calibration_error": lambda of: binned_calibration_error(
        of.tally, strategy="quantile"
    ),
    "largest_bin_gap": lambda of: of.bins.error("max"),
    "calibration_decision_loss": lambda of: calibration_decision_loss(of.tally),
    "u_calibration_error": lambda of: u_calibration_error(of.tally),
    "averaged_two_bin_error": lambda of: averaged_two_bin_error(of.tally),
    "calibration_slope": lambda of: calibration_slope(of.tally),
    "calibration_in_the_large": lambda of: calibration_in_the_large(of.tally),
    "observed_expected_ratio": lambda of: observed_expected_ratio(of.tally),
    "integrated_calibration_index": lambda of: of.errors[0],
    "e50": lambda of: of.errors[1],
    "e90": lambda of: of.errors[2],
    "emax": lambda of: of.errors[3],
}
FIGURES = tuple(_FIGURES)
