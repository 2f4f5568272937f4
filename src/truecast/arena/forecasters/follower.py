"""Forecasters that correct what another one says."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.arena.forecasters.base import Distribution, LiteratureForecaster
from truecast.arena.forecasters.running_mean import RunningMean
from truecast.errors import InputError, StateError
from truecast.forecasters.base import OutcomeForecaster
from truecast.state import Saveable

__all__ = ["Follower"]


class Follower(LiteratureForecaster):
    """Has another forecaster, its base, play along, and says something better than what that says.

    A subclass says what, and how it learns. The base is a copy; None takes `RunningMean`.
    """

    def __init__(self, base: object, **memory: list[int] | list[float]) -> None:
        super().__init__(**memory)
        self._base = _build(RunningMean() if base is None else base)

    @property
    def base(self) -> Any:
        """The forecaster that is followed, to look at and not to touch."""
        return self._base

    @property
    def seed(self) -> Any:
        """What the base draws from; there is no such attribute if it does not draw."""
        return self._base.seed

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this forecaster."""
        return {"base": {"kind": type(self._base).__name__, **self._base.config}}

    @abstractmethod
    def _answer(self, q: float) -> float:
        """What to say where the base says q."""

    @abstractmethod
    def _take(self, q: float, y: int) -> None:
        """Learn from a round in which the base said q."""

    def _forecast(self) -> float:
        return self._answer(self._base.predict())

    def _learn(self, p: float, y: int) -> None:
        self._take(self._base.predict(), y)
        self._base.observe(y)

    def _run(self, outcomes: NDArray[np.uint8], said: NDArray[np.float64]) -> None:
        self._follow(self._base.forecast_many(outcomes), outcomes, said)
        self._rounds += len(outcomes)
        self._said = self._said if not len(outcomes) else None

    def _follow(
        self, scores: NDArray[np.float64], outcomes: NDArray[np.uint8], said: NDArray[np.float64]
    ) -> None:
        for t, (q, y) in enumerate(zip(scores.tolist(), outcomes.tolist(), strict=True)):
            said[t] = self._answer(q)
            self._take(q, y)

    @property
    def distribution(self) -> Distribution:
        """What may be said in this round, and how likely: one forecast, unless the base draws."""
        drawn: Distribution = getattr(self._base, "distribution", ((self._base.predict(), 1.0),))
        return tuple((self._answer(q), weight) for q, weight in drawn)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return super().state() | {"base": self._base.state()}

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        base = self._base
        self._base = _build(self.config["base"])
        try:
            self._base.load(state.get("base") if isinstance(state, dict) else None)
            super().load(state)
        except StateError:
            self._base = base
            raise


def _build(base: object) -> Any:
    """Return a copy of the given forecaster, or build one from a follower's `config`."""
    kinds = _kinds()
    if isinstance(base, dict) and (kind := kinds.get(str(base.get("kind")))):
        try:
            return kind(**{name: value for name, value in base.items() if name != "kind"})
        except TypeError as error:
            raise InputError("base", f"must have the options of {kind.__name__}", base) from error
    if isinstance(base, Saveable) and kinds.get(type(base).__name__) is type(base):
        return type(base).from_bytes(base.to_bytes())
    rule = "must be a forecaster of truecast or truecast.arena that looks at outcomes alone"
    raise InputError("base", rule, base)


def _kinds() -> dict[str, type[Any]]:
    """The classes that a base can be of, by name, the first where there are two of one name."""
    kinds: dict[str, type[Any]] = {}
    classes = OutcomeForecaster.__subclasses__()
    for cls in classes:  # grows while it is read
        kinds.setdefault(cls.__name__, cls)
        classes += cls.__subclasses__()
    return kinds
