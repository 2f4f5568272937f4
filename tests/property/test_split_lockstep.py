"""Ladders that split: the compiled core and the plain-Python reference, driven together through all a user can do."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import truecast as tc
from truecast.reference import PlainGuard, PlainSplitWalk, calibration_distance
from truecast.reference.split_ladder import Made

bits = st.lists(st.integers(0, 1), max_size=40)
runs = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 60)), max_size=6).map(
    lambda parts: [bit for bit, length in parts for _ in range(length)]
)

NOT_OUTCOMES = [2, -1, 0.5, float("nan"), "1", None, [1], np.array([1])]
NOT_HINTS = [float("nan"), float("inf"), 1.2, -0.1, np.nextafter(1, 2), "0.5", None, True, [0.5], 1j]
NASTY = [0.0, -0.0, 5e-324, 1e-300, 2.0**-41, 0.1, 0.1 + 0.2, 0.5, 0.83, np.nextafter(0.5, 0), np.nextafter(1, 0), 1.0]
SAVES = {
    "json": lambda f: type(f).from_json(f.to_json()),
    "bytes": lambda f: type(f).from_bytes(f.to_bytes()),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),  # noqa: S301
}
# a number as it is, or one of the points of the ladder, or one of its two neighbours in floating point
hints = (
    st.sampled_from([float(x) for x in NASTY]) | st.floats(0, 1) | st.tuples(st.integers(0, 200), st.integers(-1, 1))
)


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


class GuardLockstep(RuleBasedStateMachine):
    @initialize(
        slack=st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        grid=st.sampled_from([None, None, None, 1, 2, 3, 7, 8]),
        late=st.sampled_from([0, 0, 2]),
        nudge=st.booleans(),
    )
    def build(self, slack: float, grid: int | None, late: int, nudge: bool) -> None:
        self.core = tc.Guard(slack=slack, grid=grid, late=late, nudge=nudge)
        self.plain = PlainGuard(Fraction(slack), grid, late, nudge)
        self.p: list[float] = []
        self.y: list[int] = []
        self.tickets: list[tuple[tuple[int, int, float], Made]] = []

    def hint(self, drawn: float | tuple[int, int]) -> float:
        if isinstance(drawn, float):
            return drawn
        at, step = drawn
        point = float(self.plain.points[at % len(self.plain.points)])
        return min(max(math.nextafter(point, point + step), 0.0), 1.0)

    def keep(self, p: float, y: int) -> float:
        self.p.append(p)
        self.y.append(y)
        return p

    def round(self, hint: float, y: int) -> float:
        p = self.plain.predict(hint)
        self.plain.observe(y)
        return self.keep(p, y)

    @rule(drawn=hints, kind=st.sampled_from([float, np.float64]))
    def predict(self, drawn: Any, kind: type) -> None:
        hint = self.hint(drawn)
        assert self.core.predict(kind(hint)) == self.plain.predict(hint)

    @rule(y=st.integers(0, 1), kind=st.sampled_from([int, bool, float, np.int8, np.bool_]))
    def observe(self, y: int, kind: type) -> None:
        if self.plain.asked is None:
            assert_refused(self.core, tc.OrderError, self.core.observe, kind(y))
        else:
            self.keep(self.plain.asked.said, y)
            self.core.observe(kind(y))
            self.plain.observe(y)

    @rule(rounds=st.lists(st.tuples(hints, st.integers(0, 1)), max_size=12))
    def batch(self, rounds: list[tuple[Any, int]]) -> None:
        given = [(self.hint(drawn), y) for drawn, y in rounds]
        said = self.core.guard_many([hint for hint, _ in given], [y for _, y in given])
        assert said.tolist() == [self.round(hint, y) for hint, y in given]

    @rule(drawn=hints, outcomes=bits | runs)
    def batch_of_one_hint(self, drawn: Any, outcomes: list[int]) -> None:
        hint = self.hint(drawn)
        said = self.core.guard_many(np.full(len(outcomes), hint), np.array(outcomes, np.uint8))
        assert said.tolist() == [self.round(hint, y) for y in outcomes]

    @rule(drawn=hints, times=st.integers(1, 6))
    def issue(self, drawn: Any, times: int) -> None:
        hint = self.hint(drawn)
        for _ in range(times):
            placed, made = self.core._issue(hint), self.plain.issue(hint)
            low, high, said = placed
            assert (Fraction(low, self.core.denominator), Fraction(high, self.core.denominator), said) == made
            self.tickets.append((placed, made))

    def resolve_ticket(self, which: int, y: int) -> None:
        placed, made = self.tickets.pop(which % len(self.tickets))
        self.core._resolve(*placed, bool(y))
        self.plain.resolve(made, y)
        self.keep(made.said, y)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 30), y=st.integers(0, 1))
    def resolve(self, which: int, y: int) -> None:
        self.resolve_ticket(which, y)

    @precondition(lambda self: self.tickets)
    @rule(y=st.integers(0, 1))
    def resolve_all(self, y: int) -> None:
        """Alike, so that ends that have ceased to take an outcome are credited with it."""
        while self.tickets:
            self.resolve_ticket(0, y)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 30))
    def give_up(self, which: int) -> None:
        _, made = self.tickets.pop(which % len(self.tickets))
        self.core._give_up()
        self.plain.give_up(made)

    @rule(bad=st.sampled_from(NOT_OUTCOMES), good=bits)
    def refuse_outcomes(self, bad: object, good: list[int]) -> None:
        assert_refused(self.core, tc.InputError, self.core.observe, bad)
        assert_refused(self.core, tc.InputError, self.core.guard_many, np.full(len(good) + 1, 0.3), [*good, bad])

    @rule(bad=st.sampled_from(NOT_HINTS), good=st.lists(st.floats(0, 1), max_size=3))
    def refuse_hints(self, bad: Any, good: list[float]) -> None:
        assert_refused(self.core, tc.InputError, self.core.predict, bad)
        if bad is not True:  # which numpy makes a 1.0 of beside floats
            assert_refused(self.core, tc.InputError, self.core.guard_many, [*good, bad], [1] * (len(good) + 1))
        assert_refused(self.core, tc.InputError, self.core.guard_many, [*good, 0.5], [1] * len(good))

    @rule(how=st.sampled_from(list(SAVES)))
    def save_and_load(self, how: str) -> None:
        before = self.core.to_json()
        self.core = SAVES[how](self.core)
        assert self.core.to_json() == before

    @rule(missing=st.integers(0, 2**30))
    def distance(self, missing: int) -> None:
        """Whatever the missing outcomes, the forecasts are within the certificate."""
        unresolved = [made.said for made in (*self.plain.awaited, *self.plain.given_up)]
        completed = [missing >> k & 1 for k in range(len(unresolved))]
        assert_distance_below(self.core.certificate.bound, self.p + unresolved, self.y + completed)

    @invariant()
    def same_state(self) -> None:
        core, plain = self.core, self.plain
        assert_same_ladder(core, plain)
        assert core.issued == (plain.asked is not None)
        assert (core.unresolved, core.most_unresolved) == (len(plain.awaited), plain.most_awaited)
        assert core.given_up == len(plain.given_up)
        assert core.unknown == plain.unknown()
        certificate = core.certificate
        assert_certified(certificate, plain.certificate())
        assert certificate.unresolved == core.unresolved + core.given_up
        if plain.nudge:
            assert core.misses.tolist() == [miss for level in plain.nudge.misses for miss in level]
            assert core.variance == plain.nudge.variance

    @invariant()
    def open_cells(self) -> None:
        is_open = [self.plain.is_open(i) for i in self.plain.cells()]
        assert self.core.open_cells.tolist() == is_open
        assert any(is_open)

    @invariant()
    def biases_within_limits(self) -> None:
        """Lemmas 6 and 9 of docs/adaptive.md."""
        slack, late = self.plain.slack, self.plain.most_awaited
        assert self.plain.alpha[0] == self.plain.alpha[-1] == 0
        for g, a in zip(self.plain.points, self.plain.alpha, strict=True):
            if late:
                assert abs(a) <= slack + late + 1
            else:
                assert -slack - (1 - g) <= a <= slack + g


WalkLockstep.TestCase.settings = settings(max_examples=50, stateful_step_count=30)
GuardLockstep.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestWalkLockstep = WalkLockstep.TestCase
TestGuardLockstep = GuardLockstep.TestCase


@pytest.mark.parametrize("grid", [None, 3, 4])
@pytest.mark.parametrize("slack", [0.0, 1.0])
def test_bursts_of_late_outcomes(grid: int | None, slack: float) -> None:
    """Most of them come when neither end takes them any more, and some after their cell was split."""
    rng = np.random.default_rng(9)
    core, plain = tc.Guard(slack=slack, grid=grid), PlainGuard(Fraction(slack), grid)
    nobody = 0
    for _ in range(60):
        burst = []
        for hint in rng.choice([0.2, 0.375, 0.5, 0.7], rng.integers(1, 3)).tolist():
            burst += [(core._issue(hint), plain.issue(hint)) for _ in range(int(rng.integers(1, 6)))]
        y = int(rng.integers(2))
        for k in rng.permutation(len(burst)).tolist():
            placed, made = burst[k]
            nobody += not any(plain.takes(plain.points.index(g), y) for g in (made.low, made.high))
            core._resolve(*placed, bool(y))
            plain.resolve(made, y)
            assert over(core.biases, core.denominator) == plain.alpha
        for hint, outcome in zip(rng.random(3).tolist(), rng.integers(0, 2, 3).tolist(), strict=True):
            assert core.predict(hint) == plain.predict(hint)
            core.observe(outcome)
            plain.observe(outcome)
        assert_same_ladder(core, plain)
        assert core.open_cells.tolist() == [plain.is_open(i) for i in plain.cells()]
    assert nobody > 10
    assert core.unknown == 0
