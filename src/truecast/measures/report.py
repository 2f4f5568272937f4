"""What all measures at once are returned in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from truecast._names import counted, rounds_or_weight

if TYPE_CHECKING:
    from truecast.measures import ArcEnergy, CalibrationSlope, Decomposition, Interval

__all__ = ["Report"]

_SUMS = (
    "smooth_calibration_error",
    "calibration_error_by_value",
    "binned_calibration_error",
    "quantile_calibration_error",
    "calibration_decision_loss",
    "u_calibration_error",
)


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
