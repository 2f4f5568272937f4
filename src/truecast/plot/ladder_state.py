"""The state of a ladder: the bias of every point, the open cell, and what the invariant allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from truecast._names import counted
from truecast.certificate import round_up
from truecast.errors import InputError
from truecast.forecasters import OneStepAhead
from truecast.ladder import Ladder
from truecast.plot.spread import frozen
from truecast.plot.style import COLORS, GREY, LEGEND, ink, label, new_figure, quiet, room, tidy
from truecast.split_ladder import SplitLadder

__all__ = ["LadderState", "ladder_state"]


@dataclass(frozen=True, eq=False)
class LadderState:
    """What `ladder_state` returns: an entry for each point of the ladder.

    Attributes
    ----------
    name : str
        Of the forecaster.
    rounds : int
        Outcomes so far.
    points : array
        From 0 to 1.
    biases : array
        The sum of (point - outcome) over the rounds credited to each.
    low, high : arrays
        The range that the invariant allows for each bias.
    open_cells : array of bool
        For each pair of neighbours, whether this is the open cell; exactly one is.
    bias : float
        The sum of the absolute biases, A.
    pooled : float
        B, which can be smaller.
    deviation : float
        D, how far the forecasts were from their credited points. Their distance to calibration is
        at most D + min(A, B).
    """

    name: str
    rounds: int
    points: NDArray[np.float64] = field(repr=False)
    biases: NDArray[np.float64] = field(repr=False)
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    open_cells: NDArray[np.bool_] = field(repr=False)
    bias: float
    pooled: float
    deviation: float

    def draw(self, axes: Any = None) -> Any:
        """Draw on matplotlib axes, or on those of a new figure; return the figure.

        Lines are the biases; what the invariant allows is shaded grey, the open cell green.
        """
        axes = new_figure(5.6, 3.6).add_subplot() if axes is None else axes
        # biases are not above 0 to its left, and not below from it on
        right = int(self.open_cells.argmax()) + 1
        cell = axes.axvspan(
            *self.points[right - 1 : right + 1], color=COLORS[1], alpha=0.35, lw=0.8, zorder=1
        )
        for part in (slice(right), slice(right, None)):
            sides = self.low[part], self.high[part]
            allowed = axes.fill_between(
                self.points[part], *sides, color=GREY, alpha=0.3, lw=0, zorder=2
            )
        thick = min(3.0, max(0.4, 0.5 * room(axes)[0] / len(self.points)))
        for side, color, marker in (
            (self.biases > 0, COLORS[2], "^"),
            (self.biases < 0, COLORS[0], "v"),
        ):
            axes.vlines(self.points[side], 0, self.biases[side], color=color, lw=thick, zorder=3)
            if thick > 2:
                ends = {"ls": "", "marker": marker, "ms": 5, "color": color, "zorder": 4}
                axes.plot(self.points[side], self.biases[side], **ends)
        axes.axhline(0, color=ink(axes), lw=0.8, zorder=3)
        axes.set_xlim(0, 1)
        low, high = min(self.low.min(), -0.5), max(self.high.max(), 0.5)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        quiet(axes)
        if room(axes)[0] > 220:
            names = ["the invariant allows", "open"]
            axes.legend([allowed, cell], names, loc="upper left", **LEGEND)
        label(axes, "point of the ladder", "bias", self._titles())
        tidy(axes)
        return axes.figure

    def _titles(self) -> list[str]:
        rounds = counted(self.rounds, "round")
        sums = f"biases {self.bias:.4g} (pooled {self.pooled:.4g}), deviation {self.deviation:.4g}"
        kind = self.name.partition("(")[0]
        return [
            f"{self.name}, {rounds}\n{sums}",
            f"{kind}, {rounds}\n{sums}",
            f"{kind}, {rounds}\nbiases {self.bias:.4g}, deviation {self.deviation:.4g}",
        ]


def ladder_state(forecaster: Any) -> LadderState:
    """Return a forecaster's ladder: points, biases, open cell, and what its invariant allows.

    The biases belong to the credited points, not to the forecasts, which lie in the cells between.
    Small biases do not make forecasts sharp.

    Parameters
    ----------
    forecaster
        `AlmostOneStepAhead`, `BentGrid`, `OneStepAhead` or `HorizonFree`.

    Examples
    --------
    >>> from truecast import AlmostOneStepAhead
    >>> f = AlmostOneStepAhead(grid=4)
    >>> p = f.forecast_many([1, 0, 1])
    >>> state = ladder_state(f)
    >>> state.points, state.biases
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.  , 0.  , 0.  , 0.25, 0.  ]))
    >>> state.open_cells
    array([False, False,  True, False])

    Notes
    -----
    O(m) for a ladder of m cells. Biases and points are kept as exact integers; here they are
    rounded to floats.
    """
    ladder: Any = forecaster._ladder if isinstance(forecaster, OneStepAhead) else forecaster
    if not isinstance(ladder, Ladder | SplitLadder):
        rule = "must be a forecaster of truecast with a ladder, such as HorizonFree"
        raise InputError("forecaster", rule, forecaster)
    ladder = cast("Any", ladder)  # its fields are those of the core
    points, biases = ladder.points / ladder.denominator, ladder.biases / ladder.denominator
    opened = np.equal(np.arange(len(points) - 1), ladder.open_cell)
    left = np.arange(len(points)) <= ladder.open_cell
    low, high = np.where(left, points - 1, 0.0), np.where(left, 0.0, points)
    for side in (low, high):
        side[[0, -1]] = 0.0  # 0 is never credited with a one, nor 1 with a zero
    own = not isinstance(forecaster, OneStepAhead)
    return LadderState(
        name=repr(forecaster) if own else f"OneStepAhead(grid={forecaster.grid})",
        rounds=ladder.rounds,
        points=frozen(points),
        biases=frozen(biases),
        low=frozen(low),
        high=frozen(high),
        open_cells=frozen(opened),
        bias=round_up(ladder.bias_sums[0]),
        pooled=round_up(ladder.bias_sums[1]),
        deviation=round_up(ladder.deviation),
    )
