"""One-Step-Ahead: the look-ahead rule that the paper's forecaster shadows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast._renamed import renamed
from truecast.forecasters.almost_one_step_ahead import AlmostOneStepAhead
from truecast.ladder import CellRule, Ladder

__all__ = ["OneStepAhead"]


class OneStepAhead:
    r"""The look-ahead reference: commits to two neighbours and answers *after* the outcome.

    Not a forecaster, because it sees the outcome before it answers. `AlmostOneStepAhead` follows it
    as closely as possible without looking ahead. Its total calibration error by value is at most m
    + 1 (the paper, theorem 2), in fact at most 3m/4 - 1 + 1/(4m), and its distance to calibration
    at most (m - 1)/2 (docs/theory.md, theorems 2 and 5).

    Parameters
    ----------
    horizon, grid, cell
        As for `AlmostOneStepAhead`.

    Examples
    --------
    >>> osa = OneStepAhead(grid=4)
    >>> osa.pair
    (0.5, 0.75)
    >>> osa.answer(1)
    0.75
    >>> osa.forecast_many([1, 1, 0]).tolist()
    [1.0, 1.0, 0.75]
    >>> osa.calibration_error <= osa.grid + 1
    True
    """

    def __init__(
        self, *, horizon: int | None = None, grid: int | None = None, cell: CellRule = "walk"
    ) -> None:
        rule = AlmostOneStepAhead(horizon=horizon, grid=grid, cell=cell)
        points = rule.points
        self._ladder = Ladder(
            points, rule.denominator, np.stack([2 * points[:-1], 2 * points[1:]]), rule.cell
        )

    @property
    def grid(self) -> int:
        """The number of cells, m."""
        return self._ladder.denominator

    @property
    def rounds(self) -> int:
        """Outcomes answered so far."""
        return self._ladder.rounds

    @property
    def pair(self) -> tuple[float, float]:
        """The next answer will be one of these two points."""
        cell = self._ladder.open_cell
        return cell / self.grid, (cell + 1) / self.grid

    def answer(self, outcome: object) -> float:
        """Return the point of the pair nearer to the outcome, 0 or 1."""
        return self._ladder._settle(outcome)

    def forecast_many(self, outcomes: ArrayLike) -> NDArray[np.float64]:
        """Answer every outcome in turn: the same as calling `answer` on each."""
        y = _check.outcomes(outcomes)
        said = np.empty(len(y))
        self._ladder._run(y, said)
        return said

    answer_many = renamed("answer_many", forecast_many)

    @property
    def a_priori(self) -> Fraction:
        """Proved before the first outcome: CalDist of the answers never exceeds (m - 1)/2."""
        return Fraction(self.grid - 1, 2)

    @property
    def calibration_error(self) -> Fraction:
        """The total calibration error by value (ECE) of the answers, exactly; >= CalDist."""
        return self._ladder.bias_sums[0]

    @property
    def distance_bound(self) -> Fraction:
        """min(A, B): a proved bound on CalDist of the answers so far, exactly."""
        return min(self._ladder.bias_sums)
