"""Almost-One-Step-Ahead, the paper's forecaster.

Arunachaleswaran, Collina, Roth and Shi, 2024, algorithm 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.forecasters.base import MAX_HORIZON, LadderForecaster, check_horizon, chosen_grid
from truecast.ladder import CELL_RULES, CellRule

__all__ = ["AlmostOneStepAhead"]

Place = Literal["lower", "upper", "middle"]
PLACES = ("lower", "upper", "middle")
MAX_GRID = 1 << 24


class AlmostOneStepAhead(LadderForecaster):
    r"""The paper's forecaster: deterministic, a few lines, calibrated against any outcomes.

    Each round it takes an open cell [i/m, (i+1)/m] of its grid and forecasts one of its ends. When
    the outcome is known, it credits the end that would have been the better choice. Whatever the
    outcomes, its distance to calibration after T rounds is at most

    ==================  =======================  ===========================================
    at                  for every T and m        with the grid that `horizon=T` chooses
    ==================  =======================  ===========================================
    "lower", "upper"    T/m + (m - 1)/2          below 1.5 sqrt(T); the paper: 2 sqrt(T) + 1
    "middle"            T/(2m) + (m - 1)/2       below sqrt(T)
    ==================  =======================  ===========================================

    (docs/theory.md, theorem 5). `BentGrid` does better when the horizon is known.

    It sees only past outcomes, so it is no sharper than they allow: see `Certificate`.

    Parameters
    ----------
    horizon
        The expected number of rounds, T. Without `grid`, it chooses the paper's grid: sqrt(T)
        cells, rounded up for the ends of a cell and to the nearest for the middle. You can play
        more rounds.
    grid
        The number of cells, m, if you choose it yourself; see `best_grid`.
    at
        Where in the cell to forecast: at its "lower" end or its "upper" end (the paper leaves the
        choice open), or in the "middle", which halves the deviation.
    cell
        Which open cell to take if there are several; the theorem allows any.

        "walk", the default, starts at the middle of the grid and moves only to a neighbouring cell,
        when its cell closes. So the forecast follows the outcomes smoothly. "lowest" and "highest"
        take the lowest and the highest open cell. They start at the edge of the grid and also move
        to neighbours only (see the theory page), but go back towards their edge as soon as a bias
        returns to exactly zero. "lowest" is sharper on rare events, where the walk must first come
        down from the middle; "highest" on outcomes that are nearly always 1.

    Raises
    ------
    InputError
        If an option breaks its rule, or neither horizon nor grid is given.

    Notes
    -----
    A round costs O(1), the state O(m). One object serves one thread at a time.

    Examples
    --------
    >>> f = AlmostOneStepAhead(horizon=100)
    >>> f.predict()
    0.5
    >>> f.observe(1)
    >>> forecasts = f.forecast_many([0, 1, 1, 1, 0, 1])
    >>> f.certificate.bound <= f.certificate.a_priori <= 2 * 100**0.5 + 1
    True
    >>> AlmostOneStepAhead.from_json(f.to_json()).predict() == f.predict()
    True
    """

    _options = ("_horizon", "grid", "_at", "_cell")

    def __init__(
        self,
        *,
        horizon: int | None = None,
        grid: int | None = None,
        at: Place = "lower",
        cell: CellRule = "walk",
    ) -> None:
        rounds = check_horizon(horizon)
        _check.choice("at", at, PLACES)
        _check.choice("cell", cell, tuple(CELL_RULES))
        m = chosen_grid(rounds, grid, lambda horizon: _paper_grid(horizon, at), most=MAX_GRID)
        points = np.arange(m + 1, dtype=np.int64)
        super().__init__(points, m, _said(points, at), cell)
        self._horizon, self._at, self._cell = rounds, at, cell

    @property
    def at(self) -> Place:
        """Where in the cell the forecast lies."""
        return self._at

    @staticmethod
    def best_grid(horizon: int, at: Place = "lower") -> int:
        """Return the grid with the least proved bound after `horizon` rounds.

        About sqrt(2T) for the ends of a cell (bound about sqrt(2T)) and sqrt(T) for its middle
        (bound below sqrt(T)).

        Examples
        --------
        >>> AlmostOneStepAhead.best_grid(10_000), AlmostOneStepAhead.best_grid(10_000, "middle")
        (141, 100)
        """
        rounds = _check.whole_number("horizon", horizon, least=1, most=MAX_HORIZON)
        _check.choice("at", at, PLACES)
        below = max(1, math.isqrt(rounds if at == "middle" else 2 * rounds))
        return min((below, below + 1), key=lambda m: _bound(rounds, m, at))

    def _bound(self, rounds: int) -> Fraction:
        """Theorem 5: T/m + (m - 1)/2 for an end of the cell, T/(2m) + (m - 1)/2 for its middle."""
        return _bound(rounds, self.grid, self.at)


def _paper_grid(horizon: int, at: Place) -> int:
    if at == "middle":
        return AlmostOneStepAhead.best_grid(horizon, at)
    return math.isqrt(horizon - 1) + 1


def _bound(rounds: int, grid: int, at: Place) -> Fraction:
    cells_off = Fraction(1, 2) if at == "middle" else Fraction(1)
    return cells_off * rounds / grid + Fraction(grid - 1, 2)


def _said(points: NDArray[np.int64], at: Place) -> NDArray[np.int64]:
    lower, upper = points[:-1], points[1:]
    said = {"lower": 2 * lower, "upper": 2 * upper, "middle": lower + upper}[at]
    return np.stack([said, said])
