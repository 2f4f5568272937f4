"""What the forecasters of the literature share: order of calls, saving, seeded draws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import OrderError, StateError
from truecast.forecasters.base import (
    MAX_HORIZON,
    OutcomeForecaster,
    check_horizon,
    chosen_grid,
)
from truecast.state import Saveable

__all__ = ["Distribution", "LiteratureForecaster", "Measure", "Planned", "RandomForecaster"]

Distribution = tuple[tuple[float, float], ...]  # forecasts and their probabilities
Measure = Literal["distance", "lower distance", "by value", "smooth"]
_MOST_GRID = 1 << 20
_DRAWS = 1 << 10  # made at a time
_MOST_SEED = 2**63


class LiteratureForecaster(OutcomeForecaster, Saveable, ABC):
    """A deterministic forecaster in plain Python; a subclass says how it forecasts and learns.

    All it remembers between rounds are the lists and arrays in `_memory`, changed in place.
    """

    #: the measure that `a_priori` bounds, in total; None if nothing is proved
    bounds: ClassVar[Measure | None] = None

    def __init__(self, **memory: list[int] | list[float] | NDArray[np.float64]) -> None:
        self._memory: dict[str, Any] = memory
        self._rounds = 0
        self._said: float | None = None

    @property
    def rounds(self) -> int:
        """Outcomes observed."""
        return self._rounds

    def a_priori(self, rounds: int) -> float:
        """The bound on the measure `bounds`, in total, proved before the first of `rounds` rounds.

        For a randomised forecaster it bounds the expectation, against opponents who do not see the
        draws.
        """
        return self._bound(_check.whole_number("rounds", rounds, least=0, most=2**53))

    def _bound(self, rounds: int) -> float:
        return math.inf

    @abstractmethod
    def _forecast(self) -> float:
        """What to say in this round; changes nothing."""

    @abstractmethod
    def _learn(self, p: float, y: int) -> None:
        """Take in the outcome of the round in which p was said."""

    def predict(self) -> float:
        """Return the forecast of the next outcome; a repeated call returns the same."""
        if self._said is None:
            self._said = self._forecast()
        return self._said

    def observe(self, outcome: object, /) -> None:
        """Learn the outcome, 0 or 1, of the last `predict`.

        Raises
        ------
        InputError
            If the outcome is neither 0 nor 1. Nothing changes.
        OrderError
            If nothing was forecast.
        """
        y = _check.outcome(outcome)
        if self._said is None:
            raise OrderError(
                "observe() needs a forecast: call predict() first, once for every outcome"
            )
        self._learn(self._said, y)
        self._rounds += 1
        self._said = None

    @property
    def distribution(self) -> Distribution:
        """The possible forecasts of this round, with probabilities: one, unless it draws."""
        return ((self.predict(), 1.0),)

    def scored(self, outcome: int) -> float:
        """What this round's forecast is judged by: itself, except for forecasters of intervals."""
        return self.predict()

    def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None:
        for t, y in enumerate(outcomes.tolist()):
            said[t] = p = self.predict()
            self._learn(p, y)
            self._rounds += 1
            self._said = None

    def _refuse(self, state: dict[str, Any]) -> None:
        """Raise StateError if no rounds lead to these entries; for subclasses that can tell."""

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        kept = {name: np.asarray(values).tolist() for name, values in self._memory.items()}
        return {"rounds": self._rounds, "issued": self._said is not None, **kept}

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        present = self.state()
        if not isinstance(state, dict) or set(state) != set(present):
            raise StateError(f"the saved state must have exactly the entries {', '.join(present)}")
        for name, values in present.items():
            if not _alike(state[name], values):
                raise StateError(
                    f"the saved {name} must be like {values!r:.60}, got {state[name]!r:.60}"
                )
        if not 0 <= state["rounds"] <= 2**53:
            raise StateError(f"the saved rounds must be from 0 to 2**53, got {state['rounds']}")
        self._refuse(state)
        for name, values in self._memory.items():
            values[:] = state[name]
        self._rounds = state["rounds"]
        self._said = None
        if state["issued"]:
            self.predict()


def _alike(found: object, present: object) -> bool:
    """Whether a saved value is of the kind and length of the present one, and finite."""
    if type(found) is not type(present):
        return False
    if isinstance(found, list) and isinstance(present, list):
        return len(found) == len(present) and all(map(_alike, found, present))
    return not isinstance(found, float) or math.isfinite(found)


class Planned:
    """A forecaster on a grid that is given, or chosen for a number of rounds."""

    _options: ClassVar[tuple[str, ...]] = ("_horizon", "_grid")
    _horizon: int | None
    _grid: int

    def _plan(
        self,
        horizon: int | None,
        grid: int | None,
        best: Callable[[int], int],
        most: int = MAX_HORIZON,
    ) -> None:
        """Check both; without a grid, take the best for the horizon, which is `most` at most."""
        self._horizon = check_horizon(horizon, most=most)
        self._grid = chosen_grid(self._horizon, grid, best, most=_MOST_GRID)

    @property
    def horizon(self) -> int | None:
        """The number of rounds this was built for; more are allowed."""
        return self._horizon

    @property
    def grid(self) -> int:
        """The number of cells, m."""
        return self._grid


class RandomForecaster(LiteratureForecaster):
    """A forecaster that draws: a subclass says from which distribution.

    The draw of a round depends on the seed and the number of the round alone, so that asking twice,
    saving and playing in batches change nothing.
    """

    def __init__(self, seed: int, **memory: list[int] | list[float] | NDArray[np.float64]) -> None:
        super().__init__(**memory)
        self._seed = _check.whole_number("seed", seed, least=0, most=_MOST_SEED)
        self._drawn: tuple[int, list[float]] = (-1, [])
        self._mixed: tuple[int, Distribution] = (-1, ())

    @property
    def seed(self) -> int:
        """What the draws are made from."""
        return self._seed

    @abstractmethod
    def _mixture(self) -> Distribution:
        """The distribution to draw this round's forecast from; changes nothing."""

    @property
    def distribution(self) -> Distribution:
        """What may be said in this round, and how likely."""
        if self._mixed[0] != self._rounds:
            self._mixed = self._rounds, self._mixture()
        return self._mixed[1]

    def _forecast(self) -> float:
        mixture = self.distribution
        u = self._draw()
        for p, weight in mixture[:-1]:
            if u < weight:
                return p
            u -= weight
        return mixture[-1][0]

    def _draw(self) -> float:
        block, at = divmod(self._rounds, _DRAWS)
        if self._drawn[0] != block:
            self._drawn = (
                block,
                np.random.default_rng([self._seed, 0, block]).random(_DRAWS).tolist(),
            )
        return self._drawn[1][at]

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        self._mixed = -1, ()
        super().load(state)
