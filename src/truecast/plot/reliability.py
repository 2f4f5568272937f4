"""The reliability diagram: curve, band, histogram of the forecasts, and what the scores are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.measures.corp import Decomposition, ReliabilityCurve, reliability_curve
from truecast.measures.uncertainty import Band, reliability_band
from truecast.plot.spread import even_edges, in_bins
from truecast.tally import Tally, as_tally

__all__ = ["ReliabilityDiagram", "reliability_diagram"]

_CELLS, _MOST_CELLS = 1 << 10, 1 << 14  # of what is shown, to be resampled; and of [0, 1]


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """What `reliability_diagram` returns.

    Attributes
    ----------
    curve : ReliabilityCurve
        The CORP curve: mean outcomes, increasing with the forecast, in blocks of forecasts.
    band : Band or None
        Where the curve of calibrated forecasts would be by chance, forecast by forecast; None for real weights.
    edges : array
        Of the histogram: from 0 to 1; only to a round number beyond the last forecast if all are below 1/4, and only
        from one before the first if all are above 3/4.
    zeros, ones : arrays
        Rounds in each bin by outcome, or their weight.
    total : int or float
        All rounds, or their weight.
    brier, log : Decomposition
        score = miscalibration - discrimination + uncertainty.
    """

    curve: ReliabilityCurve = field(repr=False)
    band: Band | None = field(repr=False)
    edges: NDArray[np.float64] = field(repr=False)
    zeros: NDArray[Any] = field(repr=False)
    ones: NDArray[Any] = field(repr=False)
    total: int | float
    brier: Decomposition
    log: Decomposition


def reliability_diagram(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.9,
    resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
    bins: int = 50,
) -> ReliabilityDiagram:
    """Return what a reliability diagram shows: mean outcomes against forecasts, and what chance would do to them.

    The curve shows only what increases with the forecast, and the band holds for each forecast by itself: a calibrated
    model leaves it at some of them. Neither tells how sharp the forecasts are: that is the discrimination, in `brier`.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    level, resamples, random_state
        As in `reliability_band`, for the consistency band.
    bins
        Of the histogram of forecasts, all of one width. The curve has none.

    Examples
    --------
    >>> diagram = reliability_diagram([0, 0, 1, 1] * 50, [0.2, 0.4, 0.6, 0.8] * 50, bins=5)
    >>> diagram.zeros, diagram.ones
    (array([ 0, 50, 50,  0,  0]), array([ 0,  0,  0, 50, 50]))
    >>> round(diagram.brier.miscalibration, 6), diagram.band.upper.round(2)
    (0.1, array([0.28, 0.5 , 0.7 , 0.88]))

    Notes
    -----
    O(n) after the tally. For the band forecasts are pooled in 1,024 cells, which is finer than a picture: it costs some
    40 ms, and all the rest of a million distinct forecasts 30 ms.
    """
    tally = as_tally(y_true, y_prob, sample_weight)
    return diagram_of(tally, even_edges(bins, tally), level, resamples, random_state)


def diagram_of(
    tally: Tally,
    edges: NDArray[np.float64],
    level: float,
    resamples: int,
    random_state: int | np.random.Generator | None,
) -> ReliabilityDiagram:
    """Return the diagram of a tally whose forecasts are all between the edges."""
    level = _check.between("level", level, 0, 1)
    band = None
    if not tally.weighted:
        cells = round(_CELLS / (edges[-1] - edges[0]))
        pooled = tally.coarsened(min(cells, _MOST_CELLS))
        band = reliability_band(pooled, level=level, resamples=resamples, random_state=random_state)
    curve = reliability_curve(tally)
    zeros, ones = (in_bins(side, tally.p, edges) for side in (tally.zeros, tally.ones))
    return ReliabilityDiagram(curve, band, edges, zeros, ones, tally.total, curve.brier, curve.log)
