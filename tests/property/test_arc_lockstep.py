"""The forecaster on the arc: the compiled tree and its plain twin, driven together, bit for bit."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import truecast as tc
from everybody import everybody
from truecast.reference import arc as plain
from truecast.reference.distance import calibration_distance

BITS = st.lists(st.integers(0, 1), max_size=25)
RUNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 40)), max_size=4).map(
    lambda parts: [bit for bit, length in parts for _ in range(length)]
)
NOT_OUTCOMES = [2, -1, 0.5, math.nan, "1", None, [1], np.array([1])]
SAVES: dict[str, Callable[[Any], Any]] = {
    "json": lambda f: tc.Arc.from_json(f.to_json()),
    "bytes": lambda f: tc.Arc.from_bytes(f.to_bytes()),
    "state": lambda f: loaded(f.state()),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
}


def loaded(state: dict[str, Any]) -> tc.Arc:
    f = tc.Arc()
    f.load(state)
    return f


def counts_of(f: tc.Arc) -> dict[float, tuple[int, int]]:
    state = f.state()
    counts = zip(state["zeros"], state["ones"], strict=True)
    return dict(zip(state["forecasts"], counts, strict=True))


def twin_of(counts: dict[float, tuple[int, int]]) -> plain.Arc:
    twin = plain.Arc()
    twin.counts = dict(counts)
    twin.rounds = sum(map(sum, counts.values()))
    return twin


def assert_forecast(p: float) -> None:
    """Dyadic, with a denominator of at most 2**52, and strictly inside."""
    assert type(p) is float
    assert 0 < p < 1
    assert (p * 2.0**52).is_integer()


class Lockstep(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core, self.twin = tc.Arc(), plain.Arc()
        self.issued = False
        self.p: list[float] = []
        self.y: list[int] = []

    def learn(self, y: int) -> float:
        p = self.twin.predict()
        self.twin.observe(y)
        self.p.append(p)
        self.y.append(y)
        return p

    @rule()
    def predict(self) -> None:
        assert self.core.predict() == self.twin.predict()
        self.issued = True

    @rule(y=st.integers(0, 1), kind=st.sampled_from([int, bool, float, np.int8, np.bool_]))
    def observe(self, y: int, kind: type) -> None:
        if not self.issued:
            before = self.core.to_json()
            with pytest.raises(tc.OrderError):
                self.core.observe(kind(y))
            assert self.core.to_json() == before
        else:
            self.core.observe(kind(y))
            self.learn(y)
            self.issued = False

    @rule(outcomes=BITS | RUNS, kind=st.sampled_from(["list", "bool", "uint8", "int64", "float32"]))
    def batch(self, outcomes: list[int], kind: str) -> None:
        given = outcomes if kind == "list" else np.array(outcomes, kind)
        assert self.core.forecast_many(given).tolist() == [self.learn(y) for y in outcomes]
        self.issued = self.issued and not outcomes

    @rule(bad=st.sampled_from(NOT_OUTCOMES), good=BITS)
    def refuse(self, bad: object, good: list[int]) -> None:
        before = self.core.to_json()
        with pytest.raises(tc.InputError):
            self.core.observe(bad)
        with pytest.raises(tc.InputError):
            self.core.forecast_many([*good, bad])
        assert self.core.to_json() == before

    @rule(how=st.sampled_from(list(SAVES)), leave=st.lists(st.integers(0, 1), max_size=3))
    def save_and_load(self, how: str, leave: list[int]) -> None:
        """Continue with the copy; what is done to the other one does not touch it."""
        before, left = self.core.to_json(), self.core
        self.core = SAVES[how](left)
        left.forecast_many(leave)
        assert self.core.to_json() == before

    @rule()
    def distance(self) -> None:
        if len(self.y) <= 9:
            far = calibration_distance([Fraction(p) for p in self.p], self.y)
            assert far <= Fraction(self.core.certificate.bound)

    @invariant()
    def same_state(self) -> None:
        assert counts_of(self.core) == self.twin.counts
        assert self.core.rounds == self.twin.rounds == len(self.y)
        assert self.core.issued == self.issued
        assert self.core.tally == tc.Tally.from_predictions(self.y, self.p)

    @invariant()
    def same_certificate(self) -> None:
        certificate = self.core.certificate
        assert certificate.energy == pytest.approx(
            plain.energy(self.twin.counts), rel=1e-12, abs=1e-12
        )
        assert certificate.bound <= certificate.a_priori
        assert all(0 < p < 1 for p in self.p)


Lockstep.TestCase.settings = settings(max_examples=40, stateful_step_count=15)
TestLockstep = pytest.mark.slow("plays many games in lockstep")(Lockstep.TestCase)


def field(twin: plain.Arc, p: float) -> float:
    r = {q: ones - (zeros + ones) * q for q, (zeros, ones) in twin.counts.items()}
    return sum(r[q] * plain.kernel(p, q) for q in r) + plain.kernel(p, p) * (0.5 - p)


RULES: dict[str, Callable[[plain.Arc, float, int], int]] = {
    "with the field": lambda twin, p, t: int(field(twin, p) > 0),
    "against the field": lambda twin, p, t: int(field(twin, p) <= 0),
    "contradicting": lambda twin, p, t: int(p <= 0.5),
    "agreeing": lambda twin, p, t: int(p > 0.5),
    "alternating": lambda twin, p, t: t % 2,
    "long runs": lambda twin, p, t: t // 60 % 2,
    "zeros": lambda twin, p, t: 0,
    "ones": lambda twin, p, t: 1,
    "a late turn": lambda twin, p, t: int(t >= 150),
    "rare": lambda twin, p, t: int(t % 23 == 5),
    "early stop": lambda twin, p, t: (
        t % 2 if t < 40 else int(sum(o for _, o in twin.counts.values()) * 2 >= t)
    ),
}


@pytest.mark.slow("plays long games in lockstep")
@pytest.mark.parametrize("name", RULES)
def test_twins_agree_whoever_chooses(name: str) -> None:
    core, twin = tc.Arc(), plain.Arc()
    for t in range(200):
        p = core.predict()
        assert_forecast(p)
        assert p == twin.predict()
        y = RULES[name](twin, p, t)
        core.observe(y)
        twin.observe(y)
    assert counts_of(core) == twin.counts
    assert SAVES["json"](core).predict() == core.predict() == twin.predict()


@pytest.mark.slow("plays against every adversary")
def test_twins_agree_against_the_arena() -> None:
    played = 0
    for adversary in everybody():
        if not adversary.plays(tc.Arc()):
            continue
        game = tc.arena.play(plain.Arc(), adversary, 120, seed=played)
        assert game.p.tolist() == tc.Arc().forecast_many(game.y).tolist()
        played += 1
    assert played >= 15


@pytest.mark.slow("tries many examples")
@settings(max_examples=60)
@given(st.lists(st.integers(0, 1), min_size=300, max_size=300), st.data())
def test_a_state_in_the_middle_of_nowhere_is_searched_alike(
    bits: list[int], data: st.DataObject
) -> None:
    """Counts as no rounds lead to them, up to fields too steep for any double: the search ends the
    same."""
    places = (
        st.integers(1, 2**52 - 1)
        | st.integers(1, 63).map(lambda k: k << 46)
        | st.sampled_from([1, 2**52 - 1])
    )
    chosen = data.draw(st.lists(places, min_size=1, max_size=12, unique=True))
    sizes = st.integers(0, 4) | st.integers(0, 2**45)
    counts = {k / 2.0**52: (data.draw(sizes), data.draw(sizes)) for k in sorted(chosen)}
    counts = {p: n for p, n in counts.items() if sum(n)}
    core, twin = tc.Arc(), twin_of(counts)
    zeros, ones = (np.array([n[side] for n in counts.values()], np.int64) for side in (0, 1))
    core._restore({"forecasts": list(counts), "zeros": zeros, "ones": ones, "issued": False})
    for y in bits[: data.draw(st.integers(0, 6))]:
        p = core.predict()
        assert_forecast(p)
        assert p == twin.predict()
        core.observe(y)
        twin.observe(y)
    assert core.predict() == twin.predict()
    assert counts_of(core) == twin.counts


@pytest.mark.parametrize(("low", "many"), [(1 / 4, 2**51), (5 / 8, 2**49)])
def test_the_finest_cells_are_reached(
    low: float, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the field is too steep for any middle, the end of the last cell that lies towards 1/2
    is said."""
    steep = [{low: (0, 2**50), low + 1 / 8: (many - k, 0)} for k in range(30)]
    said = []
    for counts in steep:
        core, (of_low, of_high) = tc.Arc(), counts.values()
        zeros, ones = [0, of_high[0]], [of_low[1], 0]
        core._restore({"forecasts": [*counts], "zeros": zeros, "ones": ones, "issued": False})
        said.append(core.predict())
        assert_forecast(said[-1])
        assert low < said[-1] < low + 1 / 8
    assert said == [twin_of(counts).predict() for counts in steep]
    monkeypatch.setattr(plain, "_FINEST", 2 * plain._FINEST)
    assert said != [twin_of(counts).predict() for counts in steep]


def test_the_order_of_the_past_does_not_matter() -> None:
    """Of all ways to continue from a long past, some lead to one tally in another order: trees that
    grew differently."""
    start = tc.Arc()
    start.forecast_many(np.tile([0, 1], 1_500))
    state, first, found = start.state(), {}, 0
    for y in itertools.product((0, 1), repeat=8):
        f = loaded(state)
        f.forecast_many(y)
        other = first.setdefault(repr(f.state()), f)
        if other is not f:
            future = [0, 0, 1, 1, 1, 0] * 5
            assert loaded(f.state()).tally == other.tally == f.tally
            assert (
                copy.copy(other).forecast_many(future).tolist() == f.forecast_many(future).tolist()
            )
            found += 1
    assert found >= 5


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1), min_size=5, max_size=80), st.randoms())
def test_the_forecast_is_of_the_tally_alone(y: list[int], random: Any) -> None:
    f = tc.Arc()
    f.forecast_many(y)
    said = list(counts_of(f).items())
    random.shuffle(said)
    assert twin_of(dict(said)).predict() == f.predict() == SAVES["state"](f).predict()


@pytest.mark.parametrize("how", SAVES)
def test_copies_go_on_alone(how: str) -> None:
    f = tc.Arc()
    f.forecast_many([1, 0, 1, 1, 0])
    f.predict()
    twin = SAVES[how](f)
    before = f.to_json()
    assert twin.issued
    twin.observe(1)
    assert f.to_json() == before
    f.observe(1)
    assert twin.forecast_many([0] * 20).tolist() == f.forecast_many([0] * 20).tolist()


def disagreement(strings: Iterator[list[int]]) -> bool:
    for y in strings:
        twin, said = plain.Arc(), []
        for bit in y:
            said.append(twin.predict())
            twin.observe(bit)
        if said != tc.Arc().forecast_many(y).tolist():
            return True
    return False


def strings() -> Iterator[list[int]]:
    rng = np.random.default_rng(0)
    for rate in (0.5, 0.5, 0.1, 0.9):
        yield (rng.random(150) < rate).astype(int).tolist()


BROKEN: dict[str, tuple[Any, str, Any]] = {
    "tolerance 3 % less": (
        plain.Arc,
        "_cost",
        staticmethod(lambda f, p, cost=plain.Arc._cost: 1.03 * cost(f, p)),
    ),
    "tolerance 3 % more": (
        plain.Arc,
        "_cost",
        staticmethod(lambda f, p, cost=plain.Arc._cost: 0.97 * cost(f, p)),
    ),
    "other sign": (plain.Arc, "_cost", staticmethod(lambda f, p: 2 * f * (-p if f > 0 else 1 - p))),
    "other scale": (plain, "_SCALE", plain._SCALE * 1.001),
    "no own residual": (plain.Arc, "_residual", lambda self, p: 0.0),
}


@pytest.mark.slow("plays many games in lockstep")
def test_a_rule_that_is_not_broken_is_not_noticed() -> None:
    assert not disagreement(strings())


@pytest.mark.slow("plays many games in lockstep")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[name])
    assert disagreement(strings())


def exact_kernel(p: float, q: float) -> Fraction:
    """The kernel of the twin's factors, multiplied without rounding."""
    return Fraction(plain.rise(min(p, q))) * Fraction(plain.fall(max(p, q)))


def exact_energy(r: dict[float, Fraction]) -> Fraction:
    return sum((r[p] * r[q] * exact_kernel(p, q) for p in r for q in r), Fraction(0))


def check_energy(y: list[int]) -> None:
    """Every round adds p(1 - p) K(p, p) + 2 (y - p) S(p), to the last bit; that is at most what the
    rule allows."""
    f, r, before = tc.Arc(), {}, Fraction(0)
    for t, bit in enumerate(y):
        p = f.predict()
        own, exact = exact_kernel(p, p), Fraction(p)
        price = exact * (1 - exact) * own
        felt = sum((r[q] * exact_kernel(p, q) for q in r), Fraction(0)) + own * (1 - 2 * exact) / 2
        r[p] = r.get(p, Fraction(0)) + bit - exact
        after = exact_energy(r)
        assert after - before == price + 2 * (bit - exact) * felt
        assert 0 < price <= 1
        assert after - before <= price + price / 64 + min(
            Fraction(14, t + 1), 1 - price
        ) + Fraction(1, 2**40)
        f.observe(bit)
        assert after <= Fraction(61, 60) * (t + 1)
        assert Fraction(f.certificate.lower_distance) ** 2 >= Fraction("0.53552") ** 2 * after
        assert f.certificate.energy == pytest.approx(float(after), rel=1e-12)
        before = after


@pytest.mark.slow("plays all short games")
def test_what_a_round_adds_to_the_energy_in_all_short_games() -> None:
    for y in itertools.product((0, 1), repeat=8):
        check_energy(list(y))


@pytest.mark.slow("plays long games in fractions")
@settings(max_examples=15)
@given(st.lists(st.integers(0, 1), min_size=20, max_size=36) | RUNS.map(lambda y: y[:40]))
def test_what_a_round_adds_to_the_energy_in_longer_games(y: list[int]) -> None:
    check_energy(y)
