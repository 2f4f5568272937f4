"""Every forecaster keeps the contract, and every check of the contract catches a forecaster that
breaks it."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import pytest

import truecast as tc
from truecast import testing
from truecast.forecasters.base import OutcomeForecaster
from truecast.ladder import CELL_RULES


def plain(kind: type) -> Callable[[], Any]:
    """How to build one without options, but for the horizon where there is one."""
    return partial(kind, horizon=1_000) if "horizon" in signature(kind).parameters else kind


PUBLIC = [getattr(tc.forecasters, name) for name in tc.forecasters.__all__]
KINDS = [it for it in PUBLIC if isinstance(it, type) and issubclass(it, OutcomeForecaster)]
OURS: dict[str, Callable[[], Any]] = {
    **{kind.__name__: plain(kind) for kind in KINDS},
    "bent grid, 2 cells": lambda: tc.BentGrid(grid=2),
    "horizon 1": lambda: tc.AlmostOneStepAhead(horizon=1),
    "grid 1": lambda: tc.AlmostOneStepAhead(grid=1),
}
for end in ("outer", "middle"):
    for split in (1.0, 0.25, 2.0**-10):
        OURS[f"no horizon, {end}, split at {split}"] = lambda end=end, split=split: tc.HorizonFree(
            at=end, split=split
        )
for end in ("lower", "upper", "middle"):
    for rule in CELL_RULES:
        OURS[f"{end} {rule}"] = lambda end=end, rule=rule: tc.AlmostOneStepAhead(
            grid=30, at=end, cell=rule
        )


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize("name", OURS)
def test_our_forecasters_keep_the_contract(name: str) -> None:
    testing.check_forecaster(OURS[name])


class Following:
    """A guard, or a recalibrator, with a hint of its own: what a user sees of it keeps the
    contract, too."""

    def __init__(self, followed: Any) -> None:
        self.followed = followed

    def hint(self) -> float:
        return (7 * self.followed.rounds % 11) / 10

    def predict(self) -> float:
        return self.followed.predict(self.hint())

    def observe(self, outcome: Any) -> None:
        self.followed.observe(outcome)

    def forecast_many(self, outcomes: Any) -> np.ndarray:
        start = self.followed.rounds
        hints = [
            7 * t % 11 / 10
            for t in range(start, start + len(outcomes) if np.ndim(outcomes) else start)
        ]
        return self.followed.forecast_many(hints, outcomes)

    def to_json(self) -> str:
        return self.followed.to_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        kind = tc.Guard if json.loads(text)["kind"] == "Guard" else tc.Recalibrator
        return cls(kind.from_json(text))


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize(
    "make",
    [tc.Guard, lambda: tc.Guard(budget=1.5), lambda: tc.Guard(nudge=True), tc.Recalibrator],
    ids=["guard", "strict guard", "nudged guard", "recalibrator"],
)
def test_what_follows_hints_keeps_the_contract(make: Callable[[], Any]) -> None:
    testing.check_forecaster(lambda: Following(make()))


class Mean:
    """A user's forecaster: the mean of the outcomes so far, with one 0 and one 1 added."""

    def __init__(self) -> None:
        self.n, self.ones, self.asked = 0, 0, False

    def predict(self) -> float:
        self.asked = True
        return (self.ones + 1) / (self.n + 2)

    def observe(self, outcome: Any) -> None:
        y = self.checked(outcome)
        if not self.asked:
            raise RuntimeError("predict first")
        self.learn(y)

    def checked(self, outcome: Any) -> int:
        if not isinstance(outcome, (int, float, np.number, np.bool_)) or outcome not in (0, 1):
            raise ValueError(f"outcome must be 0 or 1, got {outcome!r}")
        return int(outcome)

    def learn(self, y: int) -> None:
        self.n, self.ones, self.asked = self.n + 1, self.ones + y, False

    def forecast_many(self, outcomes: Any) -> np.ndarray:
        if np.ndim(outcomes) != 1:
            raise ValueError("outcomes must have one dimension")
        said = []
        for y in [self.checked(y) for y in outcomes]:
            said.append(self.predict())
            self.observe(y)
        return np.array(said)

    def to_json(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        loaded = cls()
        vars(loaded).update(json.loads(text))
        return loaded


def test_a_users_forecaster_keeps_the_contract() -> None:
    testing.check_forecaster(Mean)


class Window(Mean):
    """Keeps the last ten thousand outcomes: bounded, though it takes some rounds to fill."""

    def __init__(self) -> None:
        super().__init__()
        self.window: list[int] = []

    def learn(self, y: int) -> None:
        super().learn(y)
        self.window.append(y)
        del self.window[:-10_000]


def test_a_window_that_fills_is_bounded() -> None:
    testing.check_forecaster(Window, checks=[testing.check_memory])


@pytest.mark.slow("plays tens of thousands of rounds one by one")
def test_what_others_allocate_once_is_not_held_against_a_forecaster() -> None:
    others: list[bytes] = []

    class Meanwhile(Mean):
        def learn(self, y: int) -> None:
            super().learn(y)
            if not others and self.n > 10_000:
                others.append(bytes(20_000))

    testing.check_memory(Meanwhile)
    assert others


def test_tracing_that_was_on_stays_on() -> None:
    tracemalloc.start()
    try:
        testing.check_memory(Mean)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


class NoBatch(Mean):
    forecast_many = None


class NotReproducible(Mean):
    def predict(self) -> float:
        self.asked = True
        return float(np.random.default_rng().random())


class NotEmpty(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        return super().forecast_many(outcomes) if len(outcomes) else np.array([0.5])


class AboveOne(Mean):
    def predict(self) -> float:
        return super().predict() * 1.02


class Nan(Mean):
    def predict(self) -> float:
        return math.nan if self.ones > 40 else super().predict()


class NotFloat(Mean):
    def predict(self) -> Any:
        return str(super().predict())


class WearsOut(Mean):
    def predict(self) -> float:
        self.n += self.asked
        return super().predict()


class ForgetsToAsk(Mean):
    def observe(self, outcome: Any) -> None:
        self.learn(self.checked(outcome))


class AnswersTwice(Mean):
    """The flag is cleared by batches and saved states only."""

    def learn(self, y: int) -> None:
        self.n, self.ones = self.n + 1, self.ones + y

    def forecast_many(self, outcomes: Any) -> np.ndarray:
        said = super().forecast_many(outcomes)
        self.asked = self.asked and not len(outcomes)
        return said


class RemembersThroughABatch(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        asked = self.asked
        said = super().forecast_many(outcomes)
        self.asked = asked
        return said


class CountsRefusals(Mean):
    def observe(self, outcome: Any) -> None:
        if not self.asked:
            self.n += 1
        super().observe(outcome)


class TakesTwos(Mean):
    def checked(self, outcome: Any) -> int:
        return 1 if outcome == 2 else super().checked(outcome)


class TakesStrings(Mean):
    def checked(self, outcome: Any) -> int:
        return super().checked(int(outcome) if outcome == "1" else outcome)


class WrongError(Mean):
    def checked(self, outcome: Any) -> int:
        try:
            return super().checked(outcome)
        except ValueError as error:
            raise KeyError(outcome) from error


class HalfABatch(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        said = []
        for y in outcomes:
            said.append(self.predict())
            self.observe(y)
        return np.array(said)


class TakesTables(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        return super().forecast_many(np.ravel(outcomes))


class ChangedByBadOutcome(Mean):
    def observe(self, outcome: Any) -> None:
        if isinstance(outcome, float) and math.isnan(outcome):
            self.ones += 1
        super().observe(outcome)


class NoBools(Mean):
    def checked(self, outcome: Any) -> int:
        return super().checked(outcome) if not isinstance(outcome, (bool, np.bool_)) else 0


class BatchLooksAhead(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        super().forecast_many(outcomes)
        return np.full(len(outcomes), np.mean(outcomes) if len(outcomes) else 0.5)


class BatchForgets(Mean):
    def forecast_many(self, outcomes: Any) -> np.ndarray:
        n = self.n
        said = super().forecast_many(outcomes)
        self.n = n + min(len(outcomes), 1)
        return said


class Same(Mean):
    """Loading gives back the forecaster that was saved, not another one."""

    saved: ClassVar[dict[str, Same]] = {}

    def to_json(self) -> str:
        text = super().to_json()
        self.saved[text] = self
        return text

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.saved[text]


class LosesItsState(Mean):
    @classmethod
    def from_json(cls, text: str) -> Self:
        loaded = super().from_json(text)
        loaded.ones = 0
        return loaded


class ForgetsThatItWasAsked(Mean):
    @classmethod
    def from_json(cls, text: str) -> Self:
        loaded = super().from_json(text)
        loaded.asked = False
        return loaded


class KeepsHistory(Mean):
    def __init__(self) -> None:
        super().__init__()
        self.history: list[int] = []

    def learn(self, y: int) -> None:
        super().learn(y)
        self.history.append(y)


class HiddenHistory(KeepsHistory):
    def to_json(self) -> str:
        return json.dumps({name: value for name, value in vars(self).items() if name != "history"})


BROKEN = [
    (testing.check_methods, NoBatch),
    (testing.check_cold_start, NotReproducible),
    (testing.check_cold_start, NotEmpty),
    (testing.check_probabilities, AboveOne),
    (testing.check_probabilities, Nan),
    (testing.check_probabilities, NotFloat),
    (testing.check_predict_repeatable, WearsOut),
    (testing.check_order, ForgetsToAsk),
    (testing.check_order, AnswersTwice),
    (testing.check_order, RemembersThroughABatch),
    (testing.check_order, CountsRefusals),
    (testing.check_bad_outcomes, TakesTwos),
    (testing.check_bad_outcomes, TakesStrings),
    (testing.check_bad_outcomes, WrongError),
    (testing.check_bad_outcomes, HalfABatch),
    (testing.check_bad_outcomes, TakesTables),
    (testing.check_bad_outcomes, ChangedByBadOutcome),
    (testing.check_outcome_types, NoBools),
    (testing.check_batch, BatchLooksAhead),
    (testing.check_batch, BatchForgets),
    (testing.check_save_and_load, Same),
    (testing.check_save_and_load, LosesItsState),
    (testing.check_save_and_load, ForgetsThatItWasAsked),
    (testing.check_memory, KeepsHistory),
    (testing.check_memory, HiddenHistory),
]


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize(("check", "broken"), BROKEN)
def test_check_catches_a_broken_forecaster(check: Callable[..., None], broken: type[Mean]) -> None:
    testing.check_forecaster(Mean, checks=[check])
    with pytest.raises(testing.ContractError, match=f"^{check.__name__}: "):
        testing.check_forecaster(broken, checks=[check])
    with pytest.raises(testing.ContractError):
        testing.check_forecaster(broken)


def test_every_check_has_a_broken_forecaster() -> None:
    assert {check for check, _ in BROKEN} == set(testing.CHECKS)
    in_module = {value for name, value in vars(testing).items() if name.startswith("check_")}
    assert in_module == {
        *testing.CHECKS,
        testing.check_forecaster,
        *testing.HINT_CHECKS,
        testing.check_hint,
    }
