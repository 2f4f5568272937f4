"""Ladders that split: the compiled core and the plain-Python reference, driven together through all
a user can do."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import truecast as tc
from truecast.reference import PlainSplitWalk, calibration_distance

bits = st.lists(st.integers(0, 1), max_size=40)
runs = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 60)), max_size=6).map(
    lambda parts: [bit for bit, length in parts for _ in range(length)]
)

NOT_OUTCOMES = [2, -1, 0.5, float("nan"), "1", None, [1], np.array([1])]
SAVES = {
    "json": lambda f: type(f).from_json(f.to_json()),
    "bytes": lambda f: type(f).from_bytes(f.to_bytes()),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
}


def over(numerators: Any, denominator: int) -> list[Fraction]:
    return [Fraction(a, denominator) for a in numerators.tolist()]


def assert_same_ladder(core: Any, plain: Any) -> None:
    n = core.denominator
    assert over(core.points, n) == plain.points
    assert over(core.biases, n) == plain.alpha
    assert over(core.spent, 2 * n) == plain.spent
    assert core.cells == len(plain.spent)
    assert core.rounds == plain.rounds
    assert core.deviation == plain.deviation
    assert core.bias_sums == plain.bias_sums()
    assert core.squared_error == plain.squared_error


def assert_certified(certificate: tc.Certificate, exact: Fraction) -> None:
    assert exact <= Fraction(certificate.bound) <= exact * (1 + Fraction(1, 1 << 52))
    assert certificate.bound <= certificate.a_priori


def assert_refused(f: Any, error: type[Exception], call: Any, *arguments: Any) -> None:
    """With nothing changed."""
    before = f.to_json()
    with pytest.raises(error):
        call(*arguments)
    assert f.to_json() == before


def assert_distance_below(bound: float, p: list[float], y: list[int]) -> None:
    if len(y) <= 10:
        assert calibration_distance([Fraction(x) for x in p], y) <= Fraction(bound)
    elif len(y) <= 60:
        assert tc.calibration_distance(y, p, total=True).lower <= bound * (1 + 1e-12)


class WalkLockstep(RuleBasedStateMachine):
    @initialize(at=st.sampled_from(["outer", "middle"]), halvings=st.integers(0, 10))
    def build(self, at: str, halvings: int) -> None:
        self.core = tc.HorizonFree(at=at, split=0.5**halvings)
        self.plain = PlainSplitWalk(at, Fraction(1, 2**halvings))
        self.issued = False
        self.p: list[float] = []
        self.y: list[int] = []

    @rule()
    def predict(self) -> None:
        assert self.core.predict() == self.plain.predict()
        self.issued = True

    def learn(self, y: int) -> float:
        self.p.append(float(self.plain.predict()))
        self.y.append(y)
        self.plain.observe(y)
        return self.p[-1]

    @rule(y=st.integers(0, 1), kind=st.sampled_from([int, bool, float, np.int8, np.bool_]))
    def observe(self, y: int, kind: type) -> None:
        if not self.issued:
            assert_refused(self.core, tc.OrderError, self.core.observe, kind(y))
        else:
            self.core.observe(kind(y))
            self.learn(y)
            self.issued = False

    @rule(outcomes=bits | runs, kind=st.sampled_from(["list", "bool", "uint8", "int64", "float32"]))
    def batch(self, outcomes: list[int], kind: str) -> None:
        given = outcomes if kind == "list" else np.array(outcomes, kind)
        assert self.core.forecast_many(given).tolist() == [self.learn(y) for y in outcomes]
        self.issued = self.issued and not outcomes

    @rule(bad=st.sampled_from(NOT_OUTCOMES), good=bits)
    def refuse(self, bad: object, good: list[int]) -> None:
        assert_refused(self.core, tc.InputError, self.core.observe, bad)
        assert_refused(self.core, tc.InputError, self.core.forecast_many, [*good, bad])

    @rule(how=st.sampled_from(list(SAVES)))
    def save_and_load(self, how: str) -> None:
        before = self.core.to_json()
        self.core = SAVES[how](self.core)
        assert self.core.to_json() == before

    @rule()
    def distance(self) -> None:
        assert_distance_below(self.core.certificate.bound, self.p, self.y)

    @invariant()
    def same_state(self) -> None:
        assert_same_ladder(self.core, self.plain)
        assert_certified(self.core.certificate, self.plain.certificate())
        assert self.core.issued == self.issued
        cell, alpha = self.core.open_cell, self.plain.alpha
        assert cell == self.plain.cell
        for g, a in zip(self.plain.points[: cell + 1], alpha, strict=False):
            assert g - 1 <= a <= 0
        for g, a in zip(self.plain.points[cell + 1 :], alpha[cell + 1 :], strict=True):
            assert 0 <= a <= g


WalkLockstep.TestCase.settings = settings(max_examples=50, stateful_step_count=30)
TestWalkLockstep = pytest.mark.slow("plays many games in lockstep")(WalkLockstep.TestCase)
