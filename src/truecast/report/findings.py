"""What the report is about: everything computed, nothing said or drawn yet."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from truecast._threads import each, threads
from truecast.measures.binned import reliability_bins
from truecast.measures.corp import Decomposition, reliability_curve
from truecast.measures.figures import Shared, parts_besides
from truecast.measures.finder import Stretch, Stretches, stretches_of
from truecast.measures.pooling import pooled
from truecast.measures.report import Report
from truecast.measures.smooth import (
    SmoothWitness,
    smooth_calibration_error,
    smooth_calibration_witness,
)
from truecast.measures.uncertainty import Uncertainty, resampled_tallies

if TYPE_CHECKING:
    from truecast.plot import GroupOverview, Miscalibration, ReliabilityDiagram
    from truecast.report.course import TimeCourse
    from truecast.tally import Tally

__all__ = ["RARE", "Finding", "Judgement", "find", "judge", "judged_by"]

Smooth = TypeVar("Smooth", float, SmoothWitness)

RARE = 0.05  # an outcome that comes at most this often is called rare
_RANGES = 10
_COARSE_CELLS = 1 << 8  # to simulate what chance adds to the miscalibration of a score
_MOST_RESAMPLES = 100  # for that


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """All that is known of one score, in figures.

    Attributes
    ----------
    name, label : str
        Of the score, in full and as it is shown.
    figures : Report
    found : Stretches
        Where it is off, and how sure that is: what verdict, words, tables, pictures and advice all
        go by.
    gap : float
        How far rate and mean forecast of a range are apart on average, less what chance adds.
    gain : float
        What share of the score the best fixed, increasing curve would take off, less what chance
        adds.
    gain_of : str
        Of which score: "log" where one of the outcomes is rare and the log loss is finite, else
        "brier".
    impossible : int or float
        Rounds in which something happened that had been given probability 0.
    certain : bool
        Whether all forecasts are 0 or 1.
    groups : GroupOverview or None
    course : TimeCourse or None
        Mean forecasts and outcomes over time.
    after : Judgement or None
        The same of the recalibrated forecasts of the same rounds.
    """

    name: str
    label: str
    figures: Report
    found: Stretches
    gap: float
    gain: float
    gain_of: str
    impossible: int | float
    certain: bool
    groups: GroupOverview | None = None
    course: TimeCourse | None = None
    after: Judgement | None = None

    @property
    def p_value(self) -> float:
        """How often calibrated forecasts would be as far off anywhere; nan for real weights."""
        return self.found.p_value

    @property
    def marked(self) -> tuple[Stretch, ...]:
        """Where forecasts are off beyond chance, in order."""
        return self.found.off

    @property
    def smooth_error(self) -> Uncertainty | None:
        """The smooth calibration error with its interval; None for real weights."""
        return self.found.smooth

    @property
    def ranges(self) -> tuple[Stretch, ...]:
        """About ten, with equal numbers of rounds as far as ties allow."""
        return self.found.ranges

    @property
    def outdone(self) -> bool:
        """Whether recalibration beat every fixed, increasing curve, by the score of the gain."""
        if self.after is None:
            return False
        (_, parts), (_, now) = (judged_by(side, self.gain_of) for side in (self, self.after))
        return now.score < parts.score - parts.miscalibration


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(Judgement):
    """The same, with its pictures."""

    diagram: ReliabilityDiagram
    miscalibration: Miscalibration
    after: Finding | None = None


def judged_by(finding: Judgement, which: str | None = None) -> tuple[str, Decomposition]:
    """Return a proper score with its name: that of the gain, or the given one."""
    if (which or finding.gain_of) == "brier":
        return "Brier score", finding.figures.brier
    return "log loss", finding.figures.log


def find(
    name: str,
    tally: Tally,
    *,
    groups: GroupOverview | None,
    after: Tally | None,
    groups_after: GroupOverview | None = None,
    level: float,
    resamples: int | None,
    random_state: int,
    bins: int = 50,
    course: TimeCourse | None = None,
    label: str | None = None,
) -> Finding:
    """Compute everything that the page says about one score."""
    # a command that draws nothing need not wait for these
    from truecast.plot.miscalibration import miscalibration_of
    from truecast.plot.reliability import diagram_of
    from truecast.plot.spread import even_edges

    edges = even_edges(bins, tally, *([] if after is None else [after]))
    options: dict[str, Any] = {"level": level, "resamples": resamples, "random_state": random_state}
    shown = name if label is None else label

    def drawn(tally: Tally, **more: Any) -> Finding:
        of = Shared(tally)
        witness, found, known = _computed(of, options, smooth_calibration_witness)
        brier = known["figures"].brier.score
        diagram, where = _at_once(
            lambda: diagram_of(tally, edges, found=found, curve=of.curve, **options),
            lambda: miscalibration_of(tally, witness, found, len(edges) - 1, brier),
        )
        pictures = {"diagram": diagram, "miscalibration": where}
        return Finding(name=name, label=shown, found=found, **known, **pictures, **more)

    later = None if after is None else drawn(after, groups=groups_after)
    return drawn(tally, groups=groups, course=course, after=later)


def judge(name: str, tally: Tally, resamples: int | None, random_state: int) -> Judgement:
    """Compute everything that the command says about one score."""
    options = {"level": 0.9, "resamples": resamples, "random_state": random_state}
    _, found, known = _computed(Shared(tally), options, smooth_calibration_error)
    return Judgement(name=name, label=name, found=found, **known)


def _computed(
    of: Shared, options: dict[str, Any], smooth: Callable[[Tally], Smooth]
) -> tuple[Smooth, Stretches, dict[str, Any]]:
    """Return the smooth error or its witness, where forecasts are off, and what else is said."""

    def where() -> tuple[Smooth, float, Stretches]:
        found = smooth(of.tally)
        error = found if isinstance(found, float) else found.error
        return found, error, stretches_of(of.tally, error=error, **options)

    (found, error, off), besides, *parts = _at_once(
        where, lambda: _besides(of, options), *parts_besides(of, "smooth_calibration_error")
    )
    figures = Report(**ChainMap(*parts), smooth_calibration_error=error)
    return found, off, {"figures": figures, **besides}


def _at_once(*parts: Callable[[], Any]) -> list[Any]:
    """Return what these return; two threads, for the memory's sake, take one after the other."""
    return each(lambda part: part(), parts, most=min(2, threads()))


def _besides(of: Shared, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a judgement that are figures, but not in the report."""
    tally = of.tally
    rare = min(tally.rate, 1 - tally.rate) < RARE and math.isfinite(of.curve.log.score)
    gain_of = "log" if rare else "brier"
    times = min(options["resamples"] or _MOST_RESAMPLES, _MOST_RESAMPLES)
    return {
        "gap": _mean_gap(tally),
        "gain": _gain(of, gain_of, times, options["random_state"]),
        "gain_of": gain_of,
        "impossible": _at(0, 0.0, tally.p, tally.ones) + _at(-1, 1.0, tally.p, tally.zeros),
        "certain": {*tally.p[:3].tolist()} <= {0.0, 1.0},
    }


def _mean_gap(tally: Tally) -> float:
    bins = reliability_bins(tally, n_bins=_RANGES, strategy="quantile")
    return bins.error("l1", debias=not tally.weighted)


def _gain(of: Shared, score: str, resamples: int, random_state: int) -> float:
    """Return which share of a score is miscalibration, less what the curve would fit of chance."""
    share = _share(getattr(of.curve, score))
    if of.tally.weighted or not share:
        return share
    coarse = pooled(of.tally, _COARSE_CELLS)
    others = resampled_tallies(coarse, "consistency", resamples, random_state)
    chance = np.mean([_share(getattr(reliability_curve(some), score)) for some in others])
    return max(0.0, share - float(chance))


def _share(parts: Decomposition) -> float:
    return parts.miscalibration / (parts.score or 1.0)


def _at(end: int, value: float, p: NDArray[np.float64], counts: NDArray[Any]) -> Any:
    """Return the counts of a forecast that can only be at this end."""
    return counts[end].item() * bool(p[end] == value)
