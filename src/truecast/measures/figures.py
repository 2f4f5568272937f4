"""All measures at once."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

from truecast import measures
from truecast._threads import each, threads
from truecast.tally import Tally, as_tally

if TYPE_CHECKING:
    from truecast.class_tally import ClassTally
    from truecast.measures import Bins, ClassReport, ReliabilityCurve, Report

__all__ = ["FIGURES", "Shared", "measure", "parts_besides", "some_figures"]

_FEW = 1 << 16  # forecasts
_CLOSE = (1e-4, 0.05)  # how close the bounds of the lower distance get, for few forecasts or more
_TWO_THREADS = 1 << 12  # forecasts from which a second thread is worth starting
_Part = Callable[[], dict[str, Any]]

# Parts that two threads take in this order. The first needs three columns beside the tally; the
# second, which begins with all figures that are not named, needs none; of the others, which come
# after the first, each needs one at most. So all together take as much memory as the tally.
_PARTS = (
    ("smooth_calibration_error",),
    ("brier", "log"),
    ("lower_distance",),
    ("calibration_slope", "calibration_in_the_large"),
    ("calibration_decision_loss", "quantile_calibration_error"),
    ("integrated_calibration_index", "e50", "e90", "emax"),
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
    from truecast.class_tally import as_class_tally, of_classes

    if of_classes(y_true, y_prob, labels):
        from truecast.measures.class_report import measure_classes

        return measure_classes(
            as_class_tally(
                y_true, y_prob, labels=labels, sample_weight=sample_weight, normalize=normalize
            )
        )
    tally = as_tally(y_true, y_prob, sample_weight)
    if len(tally.p) < _TWO_THREADS:
        return measures.Report(**_figures(Shared(tally), _FIGURES))
    return measures.Report(**ChainMap(*_shared_by_two(*parts_besides(Shared(tally)))))


def _shared_by_two(first: _Part, second: _Part, *others: _Part) -> list[dict[str, Any]]:
    """Return what two threads make of the parts, in order; others wait for the first."""
    from threading import Event  # slow to import, and for this alone

    over = Event()

    def begin() -> dict[str, Any]:
        try:
            return first()
        finally:
            over.set()

    def after(part: _Part) -> dict[str, Any]:
        over.wait()
        return part()

    parts: list[_Part] = [begin, second, *(partial(after, part) for part in others)]
    return each(lambda part: part(), parts, most=min(2, threads()))


def parts_besides(of: Shared, *known: str) -> list[_Part]:
    """Return what computes the fields of a tally's report but those that are known, in parts."""
    named = {name for part in _PARTS for name in part}
    light = [name for name in _FIGURES if name not in named]
    parts = [_PARTS[0], (*light, *_PARTS[1]), *_PARTS[2:]]
    wanted = ([name for name in part if name not in known] for part in parts)
    return [partial(_figures, of, part) for part in wanted if part]


def some_figures(tally: Tally, names: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a tally's report, as in `Report.to_dict`; compute no others."""
    return {name: _plain(figure) for name, figure in _figures(Shared(tally), names).items()}


def _plain(figure: Any) -> Any:
    from dataclasses import asdict, is_dataclass

    if is_dataclass(figure) and not isinstance(figure, type):
        return asdict(figure)
    return list(figure) if isinstance(figure, tuple) else figure


def _figures(of: Shared, names: Iterable[str]) -> dict[str, Any]:
    return {name: _FIGURES[name](of) for name in names}


class Shared:
    """A tally, and what several figures share; two threads at once may compute it twice."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @cached_property
    def curve(self) -> ReliabilityCurve:
        """The reliability curve, with both scores taken apart."""
        return measures.reliability_curve(self.tally)

    @cached_property
    def bins(self) -> Bins:
        """Those of equal width."""
        return measures.reliability_bins(self.tally)

    @cached_property
    def errors(self) -> list[float]:
        """The mean distance from the curve, then quantiles of it."""
        from truecast.measures.clinical import curve_errors

        return curve_errors(self.tally, self.curve, 0.5, 0.9, 1.0)

    def lower_distance(self) -> tuple[float, float]:
        """Bounds of the lower distance, as close as is fast."""
        found = measures.lower_calibration_distance(
            self.tally, rtol=_CLOSE[len(self.tally.p) > _FEW]
        )
        return found.lower, found.upper


_FIGURES: dict[str, Callable[[Shared], Any]] = {
    "total": lambda of: of.tally.total,
    "forecasts": lambda of: len(of.tally.p),
    "mean_outcome": lambda of: of.tally.rate,
    "mean_forecast": lambda of: float(measures.reliability_bins(of.tally, n_bins=1).forecast[0]),
    "brier": lambda of: of.curve.brier,
    "log": lambda of: of.curve.log,
    "lower_distance": lambda of: of.lower_distance(),
    "smooth_calibration_error": lambda of: measures.smooth_calibration_error(of.tally),
    "smooth_ece": lambda of: measures.smooth_ece(of.tally),
    "laplace_calibration_error": lambda of: measures.laplace_calibration_error(of.tally),
    "arc_energy": lambda of: measures.arc_energy(of.tally),
    "calibration_error_by_value": lambda of: measures.calibration_error_by_value(of.tally),
    "binned_calibration_error": lambda of: of.bins.error("l1"),
    "debiased_calibration_error": lambda of: (
        math.nan if of.tally.weighted else of.bins.error("l1", debias=True)
    ),
    "quantile_calibration_error": lambda of: measures.binned_calibration_error(
        of.tally, strategy="quantile"
    ),
    "largest_bin_gap": lambda of: of.bins.error("max"),
    "calibration_decision_loss": lambda of: measures.calibration_decision_loss(of.tally),
    "u_calibration_error": lambda of: measures.u_calibration_error(of.tally),
    "averaged_two_bin_error": lambda of: measures.averaged_two_bin_error(of.tally),
    "calibration_slope": lambda of: measures.calibration_slope(of.tally),
    "calibration_in_the_large": lambda of: measures.calibration_in_the_large(of.tally),
    "observed_expected_ratio": lambda of: measures.observed_expected_ratio(of.tally),
    "integrated_calibration_index": lambda of: of.errors[0],
    "e50": lambda of: of.errors[1],
    "e90": lambda of: of.errors[2],
    "emax": lambda of: of.errors[3],
}
FIGURES = tuple(_FIGURES)
