"""Forecasters that follow another: what calibeating guarantees, and what both keep of their
base."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from everybody import everybody
from truecast import testing
from truecast.arena.forecasters.base import Distribution, RandomForecaster
from truecast.arena.forecasters.calibeating import Calibeating
from truecast.arena.forecasters.climatology import Climatology
from truecast.arena.forecasters.defensive import Defensive
from truecast.arena.forecasters.kakade_foster import KakadeFoster
from truecast.arena.forecasters.online_platt import OnlinePlatt
from truecast.arena.forecasters.running_mean import RunningMean
from truecast.arena.game import play

BOTH = (Calibeating, OnlinePlatt)
OUTCOMES = st.lists(st.integers(0, 1), max_size=80)
COINS = np.random.default_rng(1).integers(0, 2, 300)
BASES: dict[str, Callable[[], Any]] = {
    "running mean": RunningMean,
    "climatology": lambda: Climatology(rate=0.3),
    "Kakade and Foster": lambda: KakadeFoster(grid=9),
    "ladder": lambda: tc.AlmostOneStepAhead(grid=20),
    "no horizon": tc.HorizonFree,
}


class Drawn(RandomForecaster):
    """Says 0.2 or 0.7."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)

    @property
    def config(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def _mixture(self) -> Distribution:
        return (0.2, 0.25), (0.7, 0.75)

    def _learn(self, p: float, y: int) -> None:
        pass


def bins_of(q: np.ndarray, bins: int) -> np.ndarray:
    return np.searchsorted(np.arange(1, bins) / bins, q, side="right")


def refinement(q: np.ndarray, y: np.ndarray, bins: int) -> float:
    """What is left of the sum of squares if every bin is relabelled to the mean of its outcomes."""
    b = bins_of(q, bins)
    return sum(len(part) * part.var() for part in (y[b == k] for k in range(bins)) if len(part))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("bins", [1, 4, 50])
def test_brier_score_is_within_the_bound_against_all_adversaries(base: str, bins: int) -> None:
    tried = 0
    for adversary in everybody():
        f = Calibeating(BASES[base](), bins=bins)
        if not adversary.plays(f):
            continue
        game = play(f, adversary, 150, seed=tried)
        judged, brier = Calibeating(BASES[base](), bins=bins), 0.0
        for p, y in zip(game.p.tolist(), game.y.tolist(), strict=True):
            assert judged.predict() == p
            judged.observe(y)
            brier += (y - p) ** 2
            assert brier <= judged.brier_bound + 1e-9, adversary
        tried += 1
    assert tried >= 15


@given(y=OUTCOMES, bins=st.integers(1, 12))
def test_bound_is_the_refinement_of_the_base_and_a_logarithm_for_each_bin(
    y: list[int], bins: int
) -> None:
    f = Calibeating(RunningMean(), bins=bins)
    p = f.forecast_many(y)
    q, outcomes = RunningMean().forecast_many(y), np.array(y, float)
    counts = np.unique(bins_of(q, bins), return_counts=True)[1]
    expected = refinement(q, outcomes, bins) + sum(1 + math.log(n) for n in counts)
    assert f.brier_bound == pytest.approx(expected, abs=1e-9)
    assert np.sum((outcomes - p) ** 2) <= expected + 1e-9


def test_bound_is_nearly_reached() -> None:
    """By a first forecast that is all wrong; and contradiction keeps taking a quarter of 1/k in
    every bin."""
    f = Calibeating(Climatology(rate=1.0))
    p = f.forecast_many([0])
    assert p.tolist() == [1.0]
    assert f.brier_bound == 1.0  # reached
    worst = play(Calibeating(), tc.arena.Threshold(), 2000)
    refined = refinement(RunningMean().forecast_many(worst.y), worst.y.astype(float), 10)
    assert np.sum((worst.y - worst.p) ** 2) - refined > 1.5


def test_calibeating_says_the_mean_of_the_bin() -> None:
    f = Calibeating(Drawn(), bins=5)
    p = f.forecast_many(COINS)
    q = Drawn().forecast_many(COINS)
    for t in range(len(q)):
        same = COINS[:t][q[:t] == q[t]]
        assert p[t] == (same.mean() if len(same) else q[t])


@pytest.mark.parametrize(
    ("rate", "bins", "place"), [(0.29, 100, 29), (0.3, 10, 3), (1.0, 10, 9), (0.0, 10, 0)]
)
def test_bins_hold_their_lower_edge(rate: float, bins: int, place: int) -> None:
    """0.29 * 100 is below 29 in doubles."""
    f = Calibeating(Climatology(rate=rate), bins=bins)
    f.forecast_many([1])
    assert f.state()["ones"].index(1) == place


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("memory", [None, 20])
def test_online_platt_is_the_hint_over_the_base(base: str, memory: int | None) -> None:
    q = BASES[base]().forecast_many(COINS)
    hint = tc.hints.Platt(memory)
    expected = [
        (hint.predict(x), hint.learn(x, y))[0]
        for x, y in zip(q.tolist(), COINS.tolist(), strict=True)
    ]
    f = OnlinePlatt(BASES[base](), memory=memory)
    assert [(f.predict(), f.observe(y))[0] for y in COINS.tolist()] == expected
    assert OnlinePlatt(BASES[base](), memory=memory).forecast_many(COINS).tolist() == expected


def test_early_stop_breaks_online_platt() -> None:
    """The sum of p - y, which the smooth error is never below, goes far beyond what others prove of
    theirs."""
    games = [play(OnlinePlatt(), tc.arena.EarlyStop(), 8000, seed=seed) for seed in range(8)]
    off = np.mean([abs(np.sum(game.p - game.y)) for game in games])
    assert off > 2 * Defensive(horizon=8000).a_priori(8000) > 100


@pytest.mark.slow("plays thousands of rounds one by one")
@pytest.mark.parametrize("kind", BOTH)
def test_contract(kind: Any) -> None:
    testing.check_forecaster(kind)
    for base in ("ladder", "no horizon", "Kakade and Foster"):
        checks = [
            testing.check_batch,
            testing.check_save_and_load,
            testing.check_order,
            testing.check_predict_repeatable,
        ]
        testing.check_forecaster(lambda base=base: kind(BASES[base]()), checks=checks)
    testing.check_forecaster(
        lambda: kind(kind(Drawn(3))), checks=[testing.check_batch, testing.check_save_and_load]
    )


@pytest.mark.parametrize("kind", BOTH)
def test_base_is_copied_with_its_past(kind: Any) -> None:
    base = tc.AlmostOneStepAhead(grid=10)
    base.forecast_many(COINS[:50])
    before = base.to_json()
    f = kind(base)
    assert (f.rounds, f.base.rounds) == (0, 50)
    f.forecast_many(COINS[50:])
    assert base.to_json() == before
    straight = tc.AlmostOneStepAhead(grid=10)
    straight.forecast_many(COINS)
    assert f.base.state() == straight.state()
    for copied in (kind.from_json(f.to_json()), copy.copy(f), kind.from_bytes(f.to_bytes())):
        assert copied.to_json() == f.to_json()
    assert kind(**f.config).config == f.config == kind(base).config


@pytest.mark.parametrize("kind", BOTH)
def test_options(kind: Any) -> None:
    assert kind().config["base"] == {"kind": "RunningMean"}
    assert kind({"kind": "Climatology", "rate": 0.2}).base.predict() == 0.2
    assert repr(kind({"kind": "Climatology"})).startswith(
        kind.__name__ + "(base={'kind': 'Climatology', 'rate': 0.5}"
    )
    option = {"bins": 7} if kind is Calibeating else {"memory": 7}
    assert kind(**option).config == {"base": {"kind": "RunningMean"}} | option
    imposter = type("Climatology", (Climatology,), {})
    wrong = [
        tc.Guard(),
        tc.hints.Platt(),
        0.5,
        "RunningMean",
        RunningMean,
        {},
        {"kind": "Guard"},
        {"kind": "Saveable"},
        {"kind": "LiteratureForecaster"},
        {"kind": ["RunningMean"]},
        {"kind": "RunningMean", "rate": 1},
        {"kind": "Climatology", "rate": 2},
        imposter(),
    ]
    for base in wrong:
        with pytest.raises(tc.InputError):
            kind(base)
    for options in (
        ({"bins": 0}, {"bins": 2.5}, {"bins": 2**21}) if kind is Calibeating else ({"memory": 1},)
    ):
        with pytest.raises(tc.InputError):
            kind(**options)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("issued", [False, True])
def test_corrupted_states_are_refused_and_change_nothing(kind: Any, issued: bool) -> None:
    f = kind(bins=3) if kind is Calibeating else kind()
    f.forecast_many(COINS)
    if issued:
        f.predict()
    good, before = f.state(), f.to_json()
    wrong: list[Any] = [
        None,
        [],
        {},
        good["base"],
        good | {"base": None},
        good | {"base": {}},
        good | {"more": 1},
    ]
    wrong += [{name: value for name, value in good.items() if name != left} for left in good]
    wrong += [good | {"rounds": -1}, good | {"base": good["base"] | {"rounds": -1}}]
    if kind is Calibeating:
        wrong += [
            good | {"zeros": [1, 2]},
            good | {"ones": [1, 2, -1]},
            good | {"ones": [1, 2, 2**60]},
        ]
        wrong += [good | {"ones": [1, 2, 0.5]}]
    else:
        wrong += [good | {"hint": {}}, good | {"hint": None}]
    for state in wrong:
        with pytest.raises(tc.StateError):
            f.load(state)
        assert f.to_json() == before
    for config in (
        {"base": {"kind": "Nobody"}},
        {"base": {"kind": kind.__name__, "base": {"kind": "Nobody"}}},
    ):
        saved = json.loads(before) | {"config": config}
        with pytest.raises(tc.StateError):
            kind.from_json(json.dumps(saved))


@pytest.mark.parametrize("kind", BOTH)
def test_distribution_is_that_of_the_base_seen_through_the_follower(kind: Any) -> None:
    """An adversary that may see the distribution alone learns nothing of the draw."""
    f = kind(Drawn())
    f.forecast_many(COINS)
    seen = f.distribution
    assert [weight for _, weight in seen] == [0.25, 0.75]
    assert f.predict() in dict(seen)
    assert len(dict(seen)) == 2
    assert f.distribution == seen
    ladder = kind(tc.HorizonFree())
    assert ladder.distribution == ((ladder.predict(), 1.0),)


def test_an_empty_batch_keeps_the_forecast_that_was_asked_for() -> None:
    for f in (Calibeating(), OnlinePlatt()):
        f.predict()
        f.forecast_many([])
        f.observe(1)
        assert (f.rounds, f.base.rounds) == (1, 1)
