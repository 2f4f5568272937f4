"""The certificate over time, beside the distance that it bounds and the bound proved before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.certificate import round_up
from truecast.distance import calibration_distance
from truecast.errors import InputError
from truecast.forecasters import Guard
from truecast.forecasters.base import OutcomeForecaster
from truecast.plot.spread import frozen
from truecast.plot.style import (
    COLORS,
    GREY,
    LEGEND,
    clear,
    ink,
    label,
    new_figure,
    quiet,
    room,
    tidy,
)
from truecast.recalibrate import Recalibrator

__all__ = ["CertificateCourse", "certificate_course"]

_LABELS = "the paper, 2 sqrt(T) + 1", "proved before the first round", "distance to calibration"
_SHORT_LABELS = "2 sqrt(T) + 1", "proved before", "distance"


@dataclass(frozen=True, eq=False)
class CertificateCourse:
    """What `certificate_course` returns. All but the Brier score are sums over rounds.

    Attributes
    ----------
    name : str
        Of the forecaster.
    rounds : array
        The numbers of rounds at which it was recorded.
    certificate : array
        Its bound on the distance to calibration at that time.
    a_priori : array
        The bound for that many rounds, proved before the first.
    measured : array
        The numbers of rounds at which the distance was computed.
    lower, upper : arrays
        Proven bounds on the distance to calibration at these.
    brier : float
        The Brier score of all forecasts: the certificate says nothing about their sharpness.
    """

    name: str
    rounds: NDArray[np.int64] = field(repr=False)
    certificate: NDArray[np.float64] = field(repr=False)
    a_priori: NDArray[np.float64] = field(repr=False)
    measured: NDArray[np.int64] = field(repr=False)
    lower: NDArray[np.float64] = field(repr=False)
    upper: NDArray[np.float64] = field(repr=False)
    brier: float

    @property
    def paper(self) -> NDArray[np.float64]:
        """2 sqrt(T) + 1, the paper's theorem."""
        return 2.0 * np.sqrt(self.rounds) + 1.0

    def draw(self, axes: Any = None) -> Any:
        """Draw on matplotlib axes, or on new ones; return the figure.

        Both scales are logarithmic. Dots are the computed distances. If the bounds differ, or the
        certificate is smaller, a bar reaches from the lower bound to the smallest upper bound.
        Nothing is drawn between the dots, because nothing is known there.
        """
        axes = new_figure(5.2, 4.0).add_subplot() if axes is None else axes
        wide = room(axes)[0] > 220
        paper, before, distance = _LABELS if wide else _SHORT_LABELS
        axes.plot(self.rounds, self.paper, color=ink(axes), ls=":", lw=1.4, label=paper)
        axes.plot(self.rounds, self.a_priori, color=GREY, lw=3, label=before)
        axes.plot(self.rounds, self.certificate, color=COLORS[0], lw=1.8, label="certificate")
        least = 0.5 * min(
            [0.5, *self.certificate[self.certificate > 0], *self.upper[self.upper > 0]]
        )
        self._draw_distances(axes, least, distance)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(least, 1.5 * max(self.paper[-1], self.a_priori[-1]))
        axes.minorticks_off()
        quiet(axes)
        label(axes, "T, rounds", "in total", self._titles())
        clear(axes, axes.legend(loc="lower right", labelspacing=0.3, **LEGEND))
        tidy(axes)
        return axes.figure

    @property
    def at_most(self) -> NDArray[np.float64]:
        """The least upper bound of the distance where computed: `upper`, or the certificate."""
        return np.minimum(self.upper, self.certificate[np.searchsorted(self.rounds, self.measured)])

    def _draw_distances(self, axes: Any, least: float, name: str) -> None:
        at, low, high = self.measured, self.lower, self.at_most
        seen = high > least
        axes.plot(at[seen], high[seen], ls="", marker="o", ms=4.5, color=COLORS[2], label=name)
        axes.vlines(
            at[seen], np.clip(low, least, high)[seen], high[seen], color=COLORS[2], alpha=0.5, lw=3
        )

    def _titles(self) -> list[str]:
        score = f"Brier score {self.brier:.4f}"
        kind = self.name.partition("(")[0]
        return [
            f"{self.name}, {score}",
            f"{self.name}\n{score}",
            f"{kind}, {score}",
            f"{kind}\n{score}",
        ]


def certificate_course(
    forecaster: Any,
    outcomes: ArrayLike,
    *,
    scores: Any = None,
    points: int = 40,
    distances: int = 10,
    rtol: float = 0.01,
    time_limit: float = 10.0,
) -> CertificateCourse:
    """Return how a forecaster's certificate grows, and the distance to calibration beneath it.

    The certificate is proved without a search for the nearest calibrated forecasts, so the distance
    is below it, often far below. It is about these outcomes; the bound proved before holds for all.

    Parameters
    ----------
    forecaster
        A forecaster, guard or recalibrator of truecast. A new one with the same options is played;
        this one does not change.
    outcomes
        What happened, 0 or 1, in order.
    scores
        The scores for a `Recalibrator`, or the hints for a `Guard`; none for other forecasters.
    points
        How often the certificate is recorded, at roughly exponential steps from round 1.
    distances
        How often the distance is computed, at some of these points, including the last.
    rtol, time_limit
        As in `calibration_distance`; the time, in seconds, is for all distances together.

    Examples
    --------
    >>> import numpy as np
    >>> from truecast import HorizonFree
    >>> y = np.random.default_rng(0).integers(0, 2, 2000)
    >>> course = certificate_course(HorizonFree(), y, points=20, distances=4)
    >>> course.measured
    array([   1,   16,  181, 2000])
    >>> measured = np.isin(course.rounds, course.measured)
    >>> bool((course.lower <= course.certificate[measured] + 1e-9).all())
    True

    Notes
    -----
    The forecasts cost as much as a batch; the distances take the rest, up to the time limit.
    """
    y = _check.outcomes(outcomes)
    points = _check.whole_number("points", points, least=2, most=10_000)
    distances = _check.whole_number("distances", distances, least=1, most=10_000)
    time_limit = _check.between("time_limit", time_limit, 0, math.inf)
    if not len(y):
        raise InputError("outcomes", "must be at least one", outcomes)
    player, play = _player(forecaster, y, outcomes, scores)
    rounds = np.unique(np.geomspace(1, len(y), points).round().astype(np.int64))
    forecasts = np.empty(len(y))
    bounds = []
    before = []
    for start, stop in zip([0, *rounds[:-1].tolist()], rounds.tolist(), strict=True):
        forecasts[start:stop] = play(start, stop)
        bounds.append(player.certificate.bound)
        before.append(_promised(player, stop))
    measured = rounds[
        np.unique(np.linspace(len(rounds) - 1, 0, distances).round().astype(np.int64))
    ]
    found = [
        _distance(y[:t], forecasts[:t], rtol, time_limit / distances) for t in measured.tolist()
    ]
    lower, upper = np.array(found).reshape(-1, 2).T
    return CertificateCourse(
        name=repr(forecaster),
        rounds=frozen(rounds),
        certificate=frozen(np.array(bounds)),
        a_priori=frozen(np.array(before)),
        measured=frozen(measured),
        lower=frozen(lower),
        upper=frozen(upper),
        brier=player.certificate.brier,
    )


def _player(
    forecaster: Any, y: NDArray[np.uint8], outcomes: Any, scores: Any
) -> tuple[Any, Callable[[int, int], NDArray[np.float64]]]:
    """Return a new forecaster with the same options, and how it plays a part of the rounds."""
    follows = isinstance(forecaster, Recalibrator | Guard)
    if not follows and not (
        isinstance(forecaster, OutcomeForecaster) and hasattr(forecaster, "certificate")
    ):
        raise InputError("forecaster", "must be one of truecast, with a certificate", forecaster)
    if follows == (scores is None):
        rule = (
            "are for a Recalibrator or a Guard, which need them; this is a "
            f"{type(forecaster).__name__}"
        )
        raise InputError("scores", rule, scores)
    player: Any = type(forecaster)(**forecaster.config)
    if not follows:
        return player, lambda start, stop: player.forecast_many(y[start:stop])
    x = _check.probabilities("scores", scores, y, outcomes)
    return player, lambda start, stop: player.forecast_many(x[start:stop], y[start:stop])


def _promised(player: Any, rounds: int) -> float:
    """What was proved for that many rounds before the first one."""
    return round_up(Fraction(player.a_priori(rounds)))


def _distance(
    y: NDArray[np.uint8], p: NDArray[np.float64], rtol: float, time_limit: float
) -> tuple[float, float]:
    found = calibration_distance(y, p, rtol=rtol, time_limit=time_limit, total=True)
    if found.ended == "interrupted":  # Ctrl-C is meant for all of this, not for one of the searches
        raise KeyboardInterrupt
    return found.totals
