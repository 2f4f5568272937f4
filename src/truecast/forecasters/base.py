"""What forecasters share: batches, and on a fixed ladder configuration and state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.certificate import Certificate, Parts, certify
from truecast.errors import InputError, StateError
from truecast.ladder import MAX_ROUNDS, CellRule, Ladder
from truecast.state import Saveable

__all__ = ["LadderForecaster", "OutcomeForecaster"]

MAX_HORIZON = 1 << 47


class OutcomeForecaster:
    """A forecaster that sees past outcomes and nothing else."""

    if TYPE_CHECKING:

        def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None: ...

    def forecast_many(
        self, outcomes: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Play a round for every outcome: forecast it, then learn it.

        The same as ``[(f.predict(), f.observe(y))[0] for y in outcomes]``, bit for bit, including
        the state, and about twenty times faster where the compiled core plays the rounds (not in
        the arena). If the core is interrupted, for example by Ctrl-C, nothing was learned; only
        `out` may hold forecasts.

        Parameters
        ----------
        outcomes
            The outcomes, 0 or 1, in order: a one-dimensional array of bool, integers or floats.
        out
            Where to write the forecasts, if not to a new array: float64, contiguous, one for each
            outcome.

        Returns
        -------
        forecasts
            One a round, each made before its outcome was used.

        Raises
        ------
        InputError
            If an outcome is not 0 or 1, or `out` does not fit. Nothing changes.
        """
        y = _check.outcomes(outcomes)
        said = np.empty(len(y)) if out is None else _check.output(out, y)
        self._run(y, said)
        return said


class LadderForecaster(Ladder, OutcomeForecaster, Saveable):
    """A forecaster whose state is a ladder with fixed points.

    `predict` and `observe` come from the compiled core. A subclass defines the points, the forecast
    in each cell, and the proved bound.
    """

    _horizon: int | None
    _cell: CellRule

    @property
    def horizon(self) -> int | None:
        """The number of rounds it was built for; past it, the certificate stays valid."""
        return self._horizon

    @property
    def grid(self) -> int:
        """The number of cells, m."""
        return self.cells

    @property
    def cell(self) -> CellRule:
        """The rule that chooses among open cells; `open_cell` is the current one."""
        return self._cell

    def a_priori(self, rounds: int) -> Fraction:
        """The bound on CalDist after `rounds` rounds, proved before the first."""
        return self._bound(_check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS))

    @abstractmethod
    def _bound(self, rounds: int) -> Fraction:
        """A theorem's bound, as a formula in the number of rounds."""

    @property
    def certificate(self) -> Certificate:
        """What is proved about the forecasts so far. Costs O(grid)."""
        a_priori = self.a_priori(max(self.rounds, self.horizon or 0))
        parts = Parts(self.rounds, self.deviation, self.bias_sums, self.squared_error, a_priori)
        return certify(parts, self.horizon)

    @classmethod
    def _rebuild(cls, config: dict[str, Any], saved: object) -> Self:
        biases = saved.get("biases") if isinstance(saved, dict) else None
        # before a grid of any size is built
        if isinstance(biases, list) and len(biases) - 1 != config.get("grid"):
            raise StateError(f"the saved biases must be one more than the grid, got {len(biases)}")
        return super()._rebuild(config, saved)


def check_horizon(horizon: object, *, most: int = MAX_HORIZON) -> int | None:
    """Return the horizon as an int, or None."""
    return None if horizon is None else _check.whole_number("horizon", horizon, least=1, most=most)


def chosen_grid(
    horizon: int | None, grid: int | None, best: Callable[[int], int], *, least: int = 1, most: int
) -> int:
    """Return the grid if given, else the best for the horizon; refuse to guess without either."""
    if grid is not None:
        return _check.whole_number("grid", grid, least=least, most=most)
    if horizon is None:
        raise InputError(
            "horizon", "or grid must be given: the grid is fixed before the first round", None
        )
    return min(best(horizon), most)
