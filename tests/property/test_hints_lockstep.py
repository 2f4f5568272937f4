"""The compiled hints and the plain-Python ones, driven together; they agree to the last bit."""

from __future__ import annotations

import math
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rounds import FORECASTS
from truecast._core import Bursts
from truecast.recalibrate import hints
from truecast.recalibrate.hints import BinMeans, Experts, Hint, Identity, Isotonic, Mix, Platt
from truecast.reference import hints as plain_hints
from truecast.reference.hints import (
    PlainBinMeans,
    PlainBursts,
    PlainHint,
    PlainIdentity,
    PlainIsotonic,
    PlainMix,
    PlainPlatt,
    logit,
    rough,
)

memories = st.none() | st.integers(2, 6) | st.integers(7, 10_000)
priors = st.sampled_from([0.01, 1.0, 10.0, 300.0])
OPTIONS = {"memory": memories, "prior": priors}


def with_options(kind: type) -> st.SearchStrategy[tuple]:
    """A hint, its plain twin, and options that both take."""
    twin = getattr(plain_hints, f"Plain{kind.__name__}")
    options = st.tuples(*(OPTIONS[name] for name in signature(kind).parameters))
    return st.tuples(st.just(kind), st.just(twin), options)


SINGLES = [getattr(hints, name) for name in hints.__all__ if name not in ("Hint", "Mix", "Experts")]
singles = st.one_of(*map(with_options, SINGLES))
KNOTS = st.integers(-66, 66).map(lambda k: 1 / (1 + math.exp(-k / 4))) | st.integers(-66, 66).map(
    lambda k: 1 / (1 + math.exp(-(k + 0.5) / 4))
)
SCORES = (
    FORECASTS
    | KNOTS
    | st.sampled_from(
        [5e-324, 1e-300, 1e-30, 1e-9, 1e-7, 1 - 1e-7, 1 - 1e-12, 1 - 2**-53, 0.02, 0.98]
    )
)
ROWS = st.lists(st.tuples(SCORES, st.integers(0, 1)), max_size=30)
RUNS = st.lists(st.tuples(SCORES, st.integers(0, 1), st.integers(1, 150)), max_size=3).map(
    lambda parts: [(x, y) for x, y, length in parts for _ in range(length)]
)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.5, 1 / 170, 1e-9, 5e-324]) | st.floats(
    0, 1, exclude_min=True
)
PROBES = (0.0, 1e-200, 1e-3, 0.3, 0.5, 0.97, 1.0)


def built(cls: type, plain: type, options: tuple) -> tuple[Hint, PlainHint]:
    names = ("memory", "prior")[: len(options)]
    return cls(**dict(zip(names, options, strict=True))), plain(*options)


class Lockstep(RuleBasedStateMachine):
    @initialize(members=st.lists(singles, min_size=1, max_size=4), mixed=st.booleans(), before=ROWS)
    def build(self, members: list[tuple], mixed: bool, before: list[tuple[float, int]]) -> None:
        pairs = [built(*member) for member in members]
        self.core, self.plain = pairs[0]
        self.waiting: list[tuple[float, list[float]]] = []
        self.batch(before)
        if mixed:  # of members one of which has learned already
            self.core = Mix([core for core, _ in pairs])
            self.plain = PlainMix([plain for _, plain in pairs])

    @rule(x=SCORES)
    def predict(self, x: float) -> None:
        assert self.core.predict(x) == self.plain.predict(x)

    @rule(
        x=SCORES,
        y=st.integers(0, 1),
        kind=st.sampled_from([float, np.float64, np.float32]),
        weight=WEIGHTS,
    )
    def learn(self, x: float, y: int, kind: type, weight: float) -> None:
        self.core.learn(kind(x), bool(y), weight=weight)
        self.plain.learn(float(kind(x)), y, None, weight)

    @rule(x=SCORES)
    def issue(self, x: float) -> None:
        said = self.core.issue(x)
        assert said == self.plain.issue(x)
        self.waiting.append((x, said[1]))

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99), y=st.integers(0, 1), weight=WEIGHTS)
    def learn_late(self, which: int, y: int, weight: float) -> None:
        x, notes = self.waiting.pop(which % len(self.waiting))
        self.core.learn(x, y, notes, weight)
        self.plain.learn(x, y, notes, weight)

    @rule(rows=ROWS | RUNS)
    def batch(self, rows: list[tuple[float, int]]) -> None:
        said = []
        for x, y in rows:
            said.append(self.plain.predict(x))
            self.plain.learn(x, y)
        scores, outcomes = (
            np.array([x for x, _ in rows], float),
            np.array([y for _, y in rows], np.uint8),
        )
        assert self.core.forecast_many(scores, outcomes).tolist() == said

    @rule(way=st.sampled_from(["json", "bytes", "load", "used"]))
    def save_and_load(self, way: str) -> None:
        before = self.core
        if way == "json":
            self.core = type(before).from_json(before.to_json())
        elif way == "bytes":
            self.core = type(before).from_bytes(before.to_bytes())
        else:
            self.core = type(before)(**before.config)
            if way == "used":
                self.core.forecast_many([0.2, 0.9] * 10, [1, 0] * 10)
            self.core.load(before.state())
        assert self.core.to_json() == before.to_json()

    @invariant()
    def they_say_the_same(self) -> None:
        for x in PROBES:
            p = self.core.predict(x)
            assert 0.0 <= p <= 1.0
            assert p == self.plain.predict(x)


Lockstep.TestCase.settings = settings(max_examples=60, stateful_step_count=12)
TestLockstep = pytest.mark.slow("plays many games in lockstep")(Lockstep.TestCase)


@settings(max_examples=25)
@given(
    rows=st.lists(st.tuples(SCORES, st.integers(0, 1)), max_size=60), scale=st.sampled_from([1, 12])
)
def test_the_default_mix_is_the_plain_one(rows: list[tuple[float, int]], scale: int) -> None:
    plain = PlainMix(
        [
            PlainIdentity(),
            *(PlainPlatt(memory) for memory in (None, 1000, 200, 30, 5)),
            PlainBinMeans(),
            PlainBinMeans(1000, 5.0),
            PlainIsotonic(None, 0.1),
        ]
    )
    mix = Mix()
    for x, y in rows * scale:
        assert mix.predict(x) == plain.predict(x)
        mix.learn(x, y)
        plain.learn(x, y)


@given(SCORES)
def test_a_forecast_that_is_kept_with_a_ticket_is_nearly_what_was_said(p: float) -> None:
    assert abs(logit(rough(p)) - logit(p)) <= 1 / 4000 + 1e-6
    assert (rough(p) in (0, 1)) == (p in (0, 1))
    assert rough(rough(p)) == rough(p)


@given(memory=memories, prior=priors, rows=ROWS | RUNS, x=st.lists(SCORES, min_size=2, max_size=9))
def test_isotonic_hints_keep_the_order_of_scores(
    memory: int | None, prior: float, rows: list, x: list[float]
) -> None:
    hint = Isotonic(memory, prior=prior)
    for score, y in rows:
        hint.learn(score, y)
    said = [hint.predict(score) for score in sorted(x)]
    assert all(low <= high * (1 + 1e-15) for low, high in pairwise(said))


@given(members=st.lists(singles, min_size=1, max_size=4), rows=ROWS | RUNS)
def test_no_member_is_better_than_the_mix_by_more_than_its_bound(
    members: list[tuple], rows: list
) -> None:
    """Fixed share: log loss <= any member's + ln(1 / start) - sum of ln(1 - share), whatever
    happens."""
    mix = Mix([built(*member)[0] for member in members])
    n = len(members)
    losses, own, drift = [0.0] * (n + 1), 0.0, 0.0
    for x, y in rows:
        p, (*said, _) = mix.issue(x)
        chance = p if y else 1 - p
        own -= math.log(chance)
        for i, q in enumerate(said):
            given = q if y else 1 - q
            losses[i] += -math.log(given) if given else math.inf
        mix.learn(x, y)
        drift -= math.log1p(-0.0003 * min(max(50 * (1 - chance), 1e-4), 1))
    others = [math.log(20 / 3), *[math.log(4 * (n - 1))] * (n - 1)] if n > 1 else [math.log(2.5)]
    starts = [math.log(5 / 3), *others]
    for loss, start in zip(losses, starts, strict=True):
        assert own <= loss + start + drift + 1e-9
        assert own <= (loss + start + 4e-8 * len(rows)) * 1.016 + 1e-9


@pytest.mark.parametrize(("score", "after"), [(0.5, 8.2), (1e-3, 17.4), (0.0, 17.4)])
def test_a_change_costs_no_more_than_is_said(score: float, after: float) -> None:
    """Two scores that never fail make sure members; then all turns, and any member is caught up
    with."""
    members = [Identity(), Platt(), Platt(5), BinMeans(50)]
    mix = Mix(members)
    mix.forecast_many(
        np.full(20_000, score), np.arange(20_000) % 2 if score == 0.5 else np.zeros(20_000, int)
    )
    losses, own = [0.0] * 5, 0.0
    for _ in range(300):
        p, (*said, _) = mix.issue(0.2)
        own -= math.log(p)
        losses = [loss - math.log(max(q, 1e-300)) for loss, q in zip(losses, said, strict=True)]
        mix.learn(0.2, 1)
        assert own <= min(losses) + math.log(10) + after + 300 * 0.0004


@settings(max_examples=25)
@given(
    members=st.lists(singles, min_size=1, max_size=3),
    models=st.integers(1, 3),
    rows=st.lists(
        st.tuples(st.tuples(SCORES, SCORES, SCORES), st.integers(0, 1), WEIGHTS), max_size=40
    ),
)
def test_experts_are_the_plain_ones(members: list[tuple], models: int, rows: list[tuple]) -> None:
    core = Experts(models, [built(*member)[0] for member in members])
    plain = PlainMix([built(*member)[1] for _ in range(models) for member in members], models)
    for all_scores, y, weight in rows:
        scores: object = list(all_scores[:models]) if models > 1 else all_scores[0]
        assert core.issue(scores) == plain.issue(scores)
        core.learn(scores, y, weight=weight)
        plain.learn(scores, y, None, weight)


STEPS = st.one_of(
    st.just("issued"),
    st.just("given_up"),
    st.tuples(st.floats(-1, 1), st.sampled_from([0, 0, 0, 1, 7, 10**6])),
    st.tuples(st.floats(-1, 1), st.integers(2, 200)),  # a burst of one residual
)


@given(steps=st.lists(STEPS, max_size=40))
def test_weights_of_bursts_are_the_plain_ones(steps: list) -> None:
    core, plain = Bursts(), PlainBursts()
    for step in steps:
        if isinstance(step, str):
            getattr(core, step)()
            getattr(plain, step)()
        else:
            residual, number = step
            for _ in range(number if number in range(2, 201) else 1):
                mates = 0 if number in range(2, 201) else number
                weight = core.weight(residual, mates)
                assert weight == plain.weight(residual, mates)
                assert 0 < weight <= 1
        assert core.effect == plain.effect >= 1
        assert core._settle()
        assert core._saved() == {name: getattr(plain, name) for name in core._saved()}
