"""Hints: what they refuse, what they learn, what a mix of them is worth."""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import truecast as tc
from company import wait_until_refused
from truecast import state, testing
from truecast._core import Bursts
from truecast.recalibrate.hints import BinMeans, Experts, Hint, Identity, Isotonic, Mix, Platt

# every hint of one model's scores, and some with options
MAKERS: dict[str, Any] = {
    **{
        name: getattr(tc.hints, name)
        for name in tc.hints.__all__
        if name not in ("Hint", "Experts")
    },
    "Platt 5": lambda: Platt(5),
    "BinMeans 5": lambda: BinMeans(5, prior=0.5),
    "Isotonic 5": lambda: Isotonic(5),
    "Mix of one": lambda: Mix([Platt(20)]),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def logit(p: Any) -> Any:
    return np.log(p / (1 - p))


def brier(p: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((p - y) ** 2))


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(np.log(np.where(y, p, 1 - p))))


def taught(make: Any) -> Hint:
    hint: Hint = make()
    hint.forecast_many(np.linspace(0, 1, 50), [0, 1, 1, 0, 1] * 10)
    return hint


# -- what is let in --------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    "score",
    [
        math.nan,
        1.2,
        -0.1,
        np.nextafter(1, 2),
        math.inf,
        "0.5",
        None,
        True,
        [0.5],
        np.nan,
        Fraction(1, 2),
        2,
    ],
)
def test_scores_that_are_no_probabilities_are_refused(make: Any, score: Any) -> None:
    hint = taught(make)
    before = hint.to_json()
    for call in (hint.predict, hint.issue, lambda x: hint.learn(x, 1)):
        with pytest.raises(tc.InputError, match=r"^score must be between 0 and 1, got "):
            call(score)
    assert hint.to_json() == before


@every
@pytest.mark.parametrize("outcome", [2, -1, 0.5, math.nan, "1", None])
def test_outcomes_other_than_0_and_1_are_refused(make: Any, outcome: Any) -> None:
    hint = taught(make)
    before = hint.to_json()
    with pytest.raises(tc.InputError, match=r"^outcome must be 0 or 1, got "):
        hint.learn(0.5, outcome)
    assert hint.to_json() == before


@every
def test_numbers_of_any_kind_are_scores(make: Any) -> None:
    hint = taught(make)
    for x in (0.25, np.float64(0.25), np.float32(0.25), np.float16(0.25)):
        assert hint.predict(x) == hint.predict(0.25)
    assert hint.predict(1) == hint.predict(np.int8(1)) == hint.predict(1.0)
    assert hint.predict(0) == hint.predict(-0.0) == hint.predict(0.0)
    assert math.copysign(1, make().predict(-0.0)) == 1


@every
@pytest.mark.parametrize(
    ("scores", "outcomes", "error"),
    [
        ([0.5, 0.2, math.nan], [0, 1, 1], "scores must be between 0 and 1, got nan at position 2"),
        ([0.5, 1.5, math.nan], [0, 1, 1], "scores must be between 0 and 1, got 1.5 at position 1"),
        ([0.5, "x", 0.1], [0, 1, 1], "scores must be "),
        ([0.5, 0.2], [0, 1, 1], "scores must have an entry for each of the 3 outcomes"),
        ([[0.5, 0.2]], [0, 1], "scores must have shape"),
        ([0.5, 0.2], [0, 2], "outcomes must be 0 or 1, got 2 at position 1"),
        (
            np.array([1, 1 + np.finfo(np.longdouble).eps], np.longdouble),
            [0, 1],
            "scores must be between 0 and 1",
        ),
        (
            pd.Series([0.1, 0.2], [1, 0]),
            pd.Series([0, 1]),
            "scores must have the index of outcomes",
        ),
    ],
)
def test_bad_arrays_are_refused_before_anything_is_learned(
    make: Any, scores: Any, outcomes: Any, error: str
) -> None:
    hint = taught(make)
    before = hint.to_json()
    with pytest.raises(tc.InputError) as caught:
        hint.forecast_many(scores, outcomes)
    assert str(caught.value).startswith(error)
    assert hint.to_json() == before


@every
def test_a_batch_is_the_loop(make: Any) -> None:
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.random(700), [0, 1, 5e-324, 1 - 2**-53, 1e-9], rng.beta(0.1, 0.1, 300)])
    y = rng.random(len(x)) < x
    loop, batch, in_parts, unasked = make(), make(), make(), make()
    said = []
    for score, outcome in zip(x.tolist(), y.tolist(), strict=True):
        said.append(loop.predict(score))
        loop.learn(score, outcome)
        unasked.learn(score, outcome)
    assert batch.forecast_many(x, y).tolist() == said
    parts = [in_parts.forecast_many(x[:1], y[:1]), in_parts.forecast_many(x[1:400], y[1:400])]
    assert np.concatenate([*parts, in_parts.forecast_many(x[400:], y[400:])]).tolist() == said
    assert loop.to_json() == batch.to_json() == in_parts.to_json() == unasked.to_json()
    assert batch.forecast_many([], []).tolist() == []


@every
def test_predicting_changes_nothing(make: Any) -> None:
    hint, asked = taught(make), taught(make)
    for x in (0.3, 0.9, 0.3):
        asked.predict(x)
        asked.issue(x)
    assert asked.to_json() == hint.to_json()
    hint.learn(0.7, 1)
    asked.learn(0.7, 1)
    assert asked.to_json() == hint.to_json()


@pytest.mark.parametrize(
    "notes", [[], [0.5], [0.5] * 10, "0.5", 0.5, [math.nan] * 11, [1.5] * 11, {}]
)
def test_notes_that_were_not_given_are_refused(notes: Any) -> None:
    hint = taught(Mix)
    before = hint.to_json()
    with pytest.raises(tc.InputError, match=r"^notes must be "):
        hint.learn(0.5, 1, notes)
    assert hint.to_json() == before
    good = hint.issue(0.5)[1]
    assert len(good) == 11
    assert good[-1] * 2**53 == 50
    hint.learn(0.5, 1, tuple(good))
    assert hint.state()["lag"] == 0


def test_options_that_break_a_rule_are_refused() -> None:
    for make in (Platt, BinMeans, Isotonic):
        for memory in (1, 0, -3, 2.5, "9", True, 10**13):
            with pytest.raises(tc.InputError, match=r"^memory must be a whole number from 2 to "):
                make(memory=memory)
    for make in (BinMeans, Isotonic):
        for prior in (0, -1.0, math.nan, math.inf, "1", 1e6):
            with pytest.raises(tc.InputError, match=r"^prior must be a number above 0"):
                make(prior=prior)


@pytest.mark.parametrize(
    ("hints", "position"),
    [
        ([], None),
        ("Platt", None),
        (Platt(), None),
        ([Platt()] * 65, None),
        ([Platt(), "Platt"], 1),
        ([Platt(), Mix()], 1),
        ([{"kind": "Mix"}], 0),
        ([{"kind": "Nothing"}], 0),
        ([{"kind": ["Platt"]}], 0),
        ([{"kind": "Platt", "prior": 3.0}], 0),
        ([{"memory": 3}], 0),
    ],
)
def test_a_mix_of_anything_else_is_refused(hints: Any, position: int | None) -> None:
    with pytest.raises(tc.InputError, match=r"^hints must ") as caught:
        Mix(hints)
    assert caught.value.position == position


# -- what is saved ---------------------------------------------------------------------------------


@every
def test_what_is_saved_comes_back(make: Any) -> None:
    hint = taught(make)
    others = [
        type(hint).from_json(hint.to_json()),
        type(hint).from_bytes(hint.to_bytes()),
        pickle.loads(pickle.dumps(hint)),
        copy.copy(hint),
        copy.deepcopy(hint),
        eval(repr(hint), {type(hint).__name__: type(hint)}),
    ]
    others[-1].load(hint.state())
    before = hint.to_json()
    for other in others:
        assert other.to_json() == before
        assert type(other) is type(hint)
        assert other.config == hint.config
        other.learn(0.4, 1)
        assert hint.to_json() == before
        assert json.loads(before)["kind"] == type(hint).__name__


@every
def test_a_loaded_state_is_what_is_said_from(make: Any) -> None:
    new, hint = make(), taught(make)
    said, fresh = hint.predict(0.3), new.predict(0.3)
    start = new.state()
    new.load(hint.state())
    assert new.predict(0.3) == said
    hint.load(start)
    assert hint.predict(0.3) == fresh
    assert (said != fresh) == (make is not Identity)


def test_a_mix_copies_its_members_as_they_are() -> None:
    platt = taught(Platt)
    mix = Mix([platt, Identity()])
    assert mix.state()["members"] == [platt.state(), {}]
    assert mix.config == {"hints": [{"kind": "Platt", "memory": None}, {"kind": "Identity"}]}
    before = platt.to_json()
    mix.learn(0.5, 1)
    assert platt.to_json() == before
    assert mix.state()["members"][0] != platt.state()
    assert Mix(**mix.config).state()["members"] == [Platt().state(), {}]


def sealed(entries: dict[str, Any]) -> str:
    rest = {name: value for name, value in entries.items() if name != "crc32"}
    return json.dumps(rest | {"crc32": state._crc32(rest)})


@every
def test_states_that_are_none_are_refused(make: Any) -> None:
    hint = taught(make)
    before = hint.to_json()
    good = hint.state()
    for bad in (
        None,
        [],
        3,
        good | {"more": 1.0},
        *({n: good[n] for n in good if n != name} for name in good),
    ):
        with pytest.raises(tc.StateError):
            hint.load(bad)
    for name, value in good.items():
        wrong = [None, "1", 1, True, math.nan, math.inf, -math.inf, [math.nan], {}]
        if isinstance(value, list) and value:
            wrong += [
                value[1:],
                [*value, 0.5],
                [1, *value[1:]],
                [math.nan, *value[1:]],
                [*value[:-1], 1e308],
            ]
        for other in wrong:
            with pytest.raises(tc.StateError):
                hint.load(good | {name: other})
    assert hint.to_json() == before
    hint.load(good)


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (Platt, {"curvature": [3.0, 4.0, 8.0]}),  # not the curvature of anything convex
        (Platt, {"curvature": [0.5, 0.0, 8.0]}),  # less than before the first round
        (Platt, {"curvature": [2.0, 0.0, 3.0]}),
        (Platt, {"offset": 65.0}),
        (BinMeans, {"residuals": [1.0] + [0.0] * 128, "weights": [0.5] + [0.0] * 128}),
        (BinMeans, {"unit": 0.5}),
        (
            Isotonic,
            {"ones": [1.0] + [0.0] * 320, "weights": [0.5] + [0.0] * 320, "logits": [0.0] * 321},
        ),
        (
            Isotonic,
            {"logits": [-41.0] + [0.0] * 320, "weights": [1.0] + [0.0] * 320, "ones": [0.0] * 321},
        ),
        (Isotonic, {"rates": [0.5] + [0.4] * 320}),
        (Isotonic, {"rates": [0.5] + [0.4] * 128}),
        (Isotonic, {"due": 1e6}),
        (Isotonic, {"due": 50.0}),
        (Isotonic, {"rounds": 49.5}),
        (Mix, {"weights": [0.2] * 10}),
        (Mix, {"diagonal": [9.0] * 9}),
        (Mix, {"lag": 51.0}),
        (Mix, {"members": []}),
        (Mix, {"members": [{}] * 9}),
        (Mix, {"members": None}),
    ],
)
def test_numbers_that_no_outcomes_lead_to_are_refused(make: Any, change: dict[str, Any]) -> None:
    hint = taught(make)
    before = hint.to_json()
    with pytest.raises(tc.StateError):
        hint.load(hint.state() | change)
    with pytest.raises(tc.StateError):
        make.from_json(sealed(json.loads(before) | {"state": hint.state() | change}))
    assert hint.to_json() == before


def test_a_member_with_numbers_that_do_not_fit_is_refused() -> None:
    hint = taught(Mix)
    bad = hint.state()
    bad["members"][1]["curvature"] = [3.0, 4.0, 8.0]
    before = hint.to_json()
    with pytest.raises(tc.StateError, match="do not fit together"):
        hint.load(bad)
    assert hint.to_json() == before


def test_another_kind_of_hint_is_not_read() -> None:
    with pytest.raises(tc.StateError, match="saved by Platt, not by BinMeans"):
        BinMeans.from_json(Platt().to_json())
    entries = json.loads(Mix().to_json())
    for config in (
        {"hints": [{"kind": "Nothing"}]},
        {"hints": 3},
        {"members": []},
        {"hints": [entries["config"]]},
    ):
        with pytest.raises(tc.StateError, match="cannot be built"):
            Mix.from_json(sealed(entries | {"config": config}))


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.slow("waits for threads")
def test_a_batch_lets_other_threads_run_and_keeps_them_out() -> None:
    hint = Mix([Platt()])
    before = hint.state()
    rounds = 3_000_000
    worker = threading.Thread(
        target=hint.forecast_many, args=(np.full(rounds, 0.4), np.zeros(rounds, np.uint8))
    )
    worker.start()
    wait_until_refused(worker, lambda: hint.predict(0.4))
    for call in (
        lambda: hint.predict(0.4),
        lambda: hint.issue(0.4),
        lambda: hint.learn(0.4, 1),
        lambda: hint.learn(0.4, 1, [0.5] * 3),
        lambda: hint.forecast_many([0.4], [1]),
        lambda: hint.load(before),
        hint.state,
    ):
        with pytest.raises(tc.OrderError, match="in another thread"):
            call()
    worker.join()
    alone = Mix([Platt()])
    alone.forecast_many(np.full(rounds, 0.4), np.zeros(rounds, np.uint8))
    assert hint.to_json() == alone.to_json()


@pytest.mark.slow("waits for threads")
def test_a_member_that_is_in_a_batch_is_not_copied() -> None:
    member = Platt()
    rounds = 10_000_000
    worker = threading.Thread(
        target=member.forecast_many, args=(np.full(rounds, 0.4), np.zeros(rounds, np.uint8))
    )
    worker.start()
    wait_until_refused(worker, lambda: Mix([member]))
    worker.join()


# -- what is learned -------------------------------------------------------------------------------


def test_every_hint_begins_as_the_score() -> None:
    x = np.concatenate([[0, 1, 0.5, 1e-6], np.random.default_rng(0).random(100)])
    for make, tolerance in (
        (Identity, 0),
        (BinMeans, 0),
        (Platt, 2e-7),
        (Isotonic, 0.004),
        (Mix, 0.001),
    ):
        hint = make()
        assert np.abs([hint.predict(score) - score for score in x]).max() <= tolerance


def test_platt_finds_what_logistic_regression_finds() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(-1, 1.5, 50_000)
    y = rng.random(len(z)) < sigmoid(0.6 * z - 0.8)
    hint = Platt()
    hint.forecast_many(sigmoid(z), y)
    batch = LogisticRegression(C=np.inf).fit(z[:, None], y)
    found = hint.state()
    assert found["slope"] == pytest.approx(batch.coef_[0, 0], abs=0.005)
    assert found["offset"] == pytest.approx(batch.intercept_[0], abs=0.01)


def test_platt_forgets_as_fast_as_it_is_told() -> None:
    """After a turn-around at half time, the shorter the memory the fewer rounds until the slope is
    turned too."""
    rng = np.random.default_rng(2)
    z = rng.normal(0, 2, 20_000)
    y = rng.random(len(z)) < sigmoid(np.where(np.arange(len(z)) < 10_000, z, -z))
    turned = []
    for memory in (50, 500, 5_000):
        hint = Platt(memory)
        hint.forecast_many(sigmoid(z[:10_000]), y[:10_000])
        assert hint.state()["slope"] > 0.5
        t = 10_000
        while hint.state()["slope"] > 0:
            hint.learn(float(sigmoid(z[t])), bool(y[t]))
            t += 1
        turned.append(t - 10_000)
    assert turned[0] < 100 < turned[1] < 1_000 < turned[2] < 10_000
    hint = Platt()
    hint.forecast_many(sigmoid(z), y)
    assert abs(hint.state()["slope"]) < 0.2  # remembers both halves


def test_one_outcome_does_not_move_platt_far() -> None:
    for x in (0.0, 1e-12, 1e-4, 0.5, 1 - 1e-9, 1.0):
        for y in (0, 1):
            hint = Platt()
            before = logit(hint.predict(x))
            hint.learn(x, y)
            assert abs(logit(hint.predict(x)) - before) <= 2.0


def test_bin_means_are_means_shrunk_by_the_prior() -> None:
    hint = BinMeans(prior=10.0)
    y = [1, 0, 1, 1, 1, 0, 1, 1]
    for outcome in y:
        hint.learn(0.5, outcome)  # a score at a knot
    assert hint.predict(0.5) == pytest.approx(
        0.5 + sum(outcome - 0.5 for outcome in y) / (len(y) + 10.0), abs=1e-15
    )
    assert hint.predict(0.9) == 0.9
    fading = BinMeans(4, prior=0.5)
    for outcome in y:
        fading.learn(0.5, outcome)
    weights = 0.75 ** np.arange(len(y))[::-1]
    assert fading.predict(0.5) == pytest.approx(
        0.5 + weights @ (np.array(y) - 0.5) / (weights.sum() + 0.5), abs=1e-14
    )


@pytest.mark.parametrize("make", [BinMeans, Isotonic, Mix])
def test_any_smooth_monotone_distortion_is_learned(make: Any) -> None:
    rng = np.random.default_rng(3)
    q = rng.random(40_000)
    y = rng.random(len(q)) < q
    hint = make()
    hint.forecast_many(q**3, y)  # no straight line on the logit scale
    probes = np.linspace(0.1, 0.9, 17)
    assert np.abs([hint.predict(p**3) - p for p in probes]).max() < 0.05
    platt = Platt()
    platt.forecast_many(q**3, y)
    assert np.abs([platt.predict(p**3) - p for p in probes]).max() > 0.03


@pytest.mark.parametrize(("make", "near"), [(BinMeans, 0.003), (Isotonic, 0.03)])
@pytest.mark.parametrize("score", [0.9, 0.31, 0.002, 1.0, 0.0])
def test_a_score_said_again_and_again_gets_its_rate(make: Any, near: float, score: float) -> None:
    hint = make()
    hint.forecast_many(np.full(4_000, score), [1, 0, 0, 1, 0] * 800)
    assert hint.predict(score) == pytest.approx(0.4, abs=near)


def test_isotonic_makes_one_hint_of_scores_turned_around() -> None:
    rng = np.random.default_rng(4)
    x = rng.random(20_000)
    hint = Isotonic()
    hint.forecast_many(x, rng.random(len(x)) < 1 - x)
    said = [hint.predict(p) for p in (0.1, 0.4, 0.6, 0.9)]
    assert said == sorted(said)
    assert said[-1] - said[0] < 0.05
    assert said[1] == pytest.approx(0.5, abs=0.01)


def test_isotonic_is_refitted_after_a_sixteenth_more_rounds_and_256_at_most() -> None:
    hint = Isotonic()
    rates, changes = hint.state()["rates"], []
    for t in range(1, 9_001):
        hint.learn(0.5, t % 3 == 0)
        if t < 40 or t % 16 == 0:  # reading the state is slow
            if hint.state()["rates"] != rates:
                changes.append(t)
            rates = hint.state()["rates"]
    assert changes[:16] == list(range(1, 17))
    assert hint.state()["due"] - 256 <= 9_000 < hint.state()["due"]


# -- what the mix is worth -------------------------------------------------------------------------


def streams(rounds: int = 20_000) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    z = rng.normal(-0.5, 1.2, rounds)
    t = np.arange(rounds) / rounds
    truth = {
        "calibrated": z,
        "too bold": 0.5 * z,
        "bent": logit(sigmoid(z) ** 2),
        "slow drift": z + 2 * np.sin(2 * np.pi * 2 * t),
        "flip": np.where(t < 0.5, z, -z),
        "unrelated": np.full(rounds, -2.0),
    }
    return {name: (sigmoid(z), rng.random(rounds) < sigmoid(true)) for name, true in truth.items()}


@pytest.mark.parametrize("name", streams(10))
def test_the_mix_is_nearly_as_good_as_its_best_member_or_better(name: str) -> None:
    x, y = streams()[name]
    members = [
        *(Platt(memory) for memory in (None, 1000, 200, 30, 5)),
        BinMeans(),
        BinMeans(1000),
        Isotonic(),
    ]
    best = min(brier(member.forecast_many(x, y), y) for member in [Identity(), *members])
    mix = brier(Mix().forecast_many(x, y), y)
    assert mix <= 1.005 * best
    if name == "flip":
        assert mix < best


def test_a_mix_has_what_none_of_its_members_has() -> None:
    """Two members off to either side: no weighted mean of them is as sharp as their stack."""
    rng = np.random.default_rng(6)
    z = rng.normal(0, 2, 20_000)
    x, y = sigmoid(z / 3), rng.random(len(z)) < sigmoid(z)
    mix = Mix([Identity(), Identity()])
    assert brier(mix.forecast_many(x, y), y) < 0.95 * brier(x, y)


def delayed(hint: Hint, x: np.ndarray, y: np.ndarray, delay: int, *, noted: bool) -> float:
    issued = []
    for t in range(len(x)):
        issued.append(hint.issue(float(x[t])))
        if t >= delay:
            notes = issued[t - delay][1] if noted else None
            hint.learn(float(x[t - delay]), bool(y[t - delay]), notes)
    return brier(np.array([p for p, _ in issued]), y)


def test_notes_keep_a_mix_honest_where_outcomes_come_late() -> None:
    """Outcomes come in runs: a short memory is good for the next round and bad for the one 25
    later."""
    rng = np.random.default_rng(7)
    y = np.repeat(rng.random(600) < 0.3, 10)
    x = np.full(len(y), 0.3)
    without, noted = (delayed(Mix(), x, y, 25, noted=noted) for noted in (False, True))
    assert noted < 1.04 * brier(x, y) < 1.2 * brier(x, y) < without
    assert (
        delayed(Mix(), x, y, 0, noted=True)
        == delayed(Mix(), x, y, 0, noted=False)
        < 0.5 * brier(x, y)
    )


def test_a_mix_does_not_take_what_outstanding_outcomes_share_for_evidence() -> None:
    """Good and bad days of 200 rounds, outcomes a day late: what was right yesterday is chance."""
    rng = np.random.default_rng(13)
    z = rng.normal(-1, 1, 20_000)
    x, y = sigmoid(z), rng.random(len(z)) < sigmoid(z + np.repeat(rng.normal(0, 1.5, 100), 200))
    hint = Mix()
    late = delayed(hint, x, y, 200, noted=True)
    assert hint.state()["lag"] == pytest.approx(200)
    # 1.03 if weights went on as fast as ever
    assert late < 1.015 * delayed(Platt(), x, y, 200, noted=True)


@pytest.mark.parametrize("make", [Platt, BinMeans, Isotonic, Mix])
def test_outcomes_in_any_order_are_learned_from(make: Any) -> None:
    rng = np.random.default_rng(9)
    x = rng.random(3_000)
    y = rng.random(len(x)) < 0.6 * x
    hint = make()
    for t in rng.permutation(len(x)):
        hint.learn(float(x[t]), bool(y[t]))
    assert hint.predict(0.8) == pytest.approx(0.48, abs=0.1)


@every
@pytest.mark.parametrize("outcomes", ["ones", "zeros", "against", "with", "coin"])
def test_extreme_scores_and_outcomes_leave_every_hint_sane(make: Any, outcomes: str) -> None:
    rng = np.random.default_rng(10)
    x = rng.choice([0.0, 1.0, 5e-324, 1 - 2**-53, 2.0**-53, 0.5, 1e-7, 1 - 1e-7], 30_000)
    y = {
        "ones": np.ones(len(x)),
        "zeros": np.zeros(len(x)),
        "against": x < 0.5,
        "with": x > 0.5,
        "coin": rng.random(len(x)) < 0.5,
    }[outcomes]
    hint = make()
    said = hint.forecast_many(x, y)
    assert ((said >= 0) & (said <= 1)).all()
    assert type(hint).from_json(hint.to_json()).to_json() == hint.to_json()
    if isinstance(hint, Mix):
        assert ((said > 0) & (said < 1)).all()
    if make is Mix:
        loss = -np.log(np.where(y, said, 1 - said)).sum()
        assert loss < {"coin": 0.75, "with": 0.01}.get(outcomes, 0.05) * len(x)


@pytest.mark.parametrize("rate", [1e-2, 1e-3, 1e-4])
def test_rare_events_do_not_keep_poor_members_alive(rate: float) -> None:
    """Scores ten times too high: a constant share kept a sixth of all weight on them."""
    rng = np.random.default_rng(7)
    rounds = round(60 / rate)
    x, y = np.full(rounds, 10 * rate), rng.random(rounds) < rate
    mix = Mix()
    said = mix.forecast_many(x, y)
    best = min(log_loss(hint.forecast_many(x, y), y) for hint in (Platt(), BinMeans(), Isotonic()))
    assert log_loss(said, y) < 1.01 * best
    assert mix.state()["weights"][0] < 0.01


# -- scores that are nearly 0 or 1 -----------------------------------------------------------------


def saturated(times: float, rounds: int = 6_000) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds as of naive Bayes, which counts the same evidence many times over, and outcomes."""
    rng = np.random.default_rng(9)
    z = rng.normal(-0.2, 1.3, rounds)
    return times * z, rng.random(rounds) < sigmoid(z)


def refitted(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Isotonic regression of all outcomes so far, fitted again after every 64."""
    said = np.full(len(y), 0.5)
    for start in range(64, len(y), 64):
        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
            z[:start], y[:start]
        )
        said[start : start + 64] = fitted.predict(z[start : start + 64])
    return said


@pytest.mark.parametrize("times", [25, 60, 300])
def test_saturated_scores_are_told_apart(times: float) -> None:
    z, y = saturated(times)
    assert np.mean(np.abs(z) > 16) > 0.6
    best = brier(refitted(z, y), y)
    r = tc.Recalibrator(scale="logit")
    assert brier(r.forecast_many(z, y), y) < 1.03 * best
    low = np.where(z > 0, -z, z)  # probabilities are fine near 0, not near 1
    best = brier(refitted(low, y), y)
    assert (
        brier(tc.Recalibrator().forecast_many(np.exp(low) / (1 + np.exp(low)), y), y) < 1.03 * best
    )


def test_isotonic_takes_states_from_before_it_had_knots_for_them() -> None:
    rng = np.random.default_rng(10)
    x, y = 0.02 + 0.96 * rng.random(500), rng.integers(0, 2, 500)
    hint = Isotonic()
    hint.forecast_many(x, y)
    old = {
        name: row[96:225] if isinstance(row, list) else row for name, row in hint.state().items()
    }
    resumed = Isotonic()
    resumed.load(old)
    assert [resumed.predict(p) for p in (0.1, 0.5, 0.9)] == [
        hint.predict(p) for p in (0.1, 0.5, 0.9)
    ]
    resumed.forecast_many(x, y)
    hint.forecast_many(x, y)
    assert resumed.to_json() == hint.to_json()
    for name in ("rates", "weights"):
        with pytest.raises(tc.StateError, match="must be 321 numbers"):
            Isotonic().load(hint.state() | {name: old[name][1:]})


# -- outcomes that are part of an observation ------------------------------------------------------


@every
@pytest.mark.parametrize("weight", [0, -0.5, 1.0001, math.nan, math.inf, "1", None, True, [1.0]])
def test_weights_that_are_no_parts_are_refused(make: Any, weight: Any) -> None:
    hint = taught(make)
    before = hint.to_json()
    with pytest.raises(
        tc.InputError, match=r"^weight must be a number above 0 and at most 1, got "
    ):
        hint.learn(0.5, 1, weight=weight)
    assert hint.to_json() == before


@every
def test_an_outcome_counts_in_full_unless_said_otherwise(make: Any) -> None:
    plain, weighed = taught(make), taught(make)
    for x in (0.2, 0.7):
        plain.learn(x, 1)
        weighed.learn(x, 1, weight=1)
    assert plain.to_json() == weighed.to_json()


@pytest.mark.parametrize(
    "make",
    [
        Platt,
        lambda: Platt(40),
        BinMeans,
        lambda: BinMeans(40, prior=2.0),
        Isotonic,
        lambda: Isotonic(40),
        Mix,
    ],
)
def test_parts_of_an_observation_count_together_as_one(make: Any) -> None:
    """Every round in 50 parts is nearly every round once; in 50 whole ones it is not. Memories fade
    alike."""
    rng = np.random.default_rng(20)
    x = sigmoid(rng.normal(0, 1.5, 120))
    y = rng.random(len(x)) < x**2
    once, parts, many = make(), make(), make()
    for score, outcome in zip(x.tolist(), y.tolist(), strict=True):
        once.learn(score, outcome)
        for _ in range(50):
            parts.learn(score, outcome, weight=0.02)
            many.learn(score, outcome)
    probes = np.linspace(0.05, 0.95, 19)
    said, near, far = (np.array([hint.predict(p) for p in probes]) for hint in (once, parts, many))
    # a mix judges its members by what they say after some of the parts
    assert np.abs(near - said).max() < 0.05
    assert np.abs(far - said).max() > 3 * np.abs(near - said).max()


def games(count: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts during games, right at every moment, and outcomes: a random walk that ends at 0 or
    1."""
    rng = np.random.default_rng(21)
    steps = rng.normal(0, 1, (count, each + 1)).cumsum(axis=1)
    lead = steps / np.sqrt(np.arange(each + 1, 0, -1.0))
    p = np.array([[0.5 * math.erfc(-z / math.sqrt(2)) for z in row] for row in lead])
    y = np.repeat(rng.random(count) < p[:, -1], each)
    return np.clip(p[:, :-1], 1e-6, 1 - 1e-6).ravel(), y


def together(hint: Hint, x: np.ndarray, y: np.ndarray, each: int, weigh: Any) -> np.ndarray:
    """Forecasts of a hint that learns after every `each` rounds what came of all of them."""
    said = []
    for start in range(0, len(x), each):
        rows = range(start, min(start + each, len(x)))
        issued = []
        for t in rows:
            issued.append(hint.issue(float(x[t])))
            weigh.issued()
        for t, (p, notes) in zip(rows, issued, strict=True):
            hint.learn(float(x[t]), bool(y[t]), notes, weight=weigh.weight(float(y[t] - p)))
        said += [p for p, _ in issued]
    return np.array(said)


class Weigh:
    def __init__(self, mates: int | None) -> None:
        self.bursts, self.mates = Bursts(), mates

    def issued(self) -> None:
        self.bursts.issued()

    def weight(self, residual: float) -> float:
        return 1.0 if self.mates is None else self.bursts.weight(residual, self.mates)


def test_games_that_resolve_at_their_end_are_observations_each() -> None:
    x, y = games(150, 100)
    losses = [
        brier(together(Mix(), x, y, 100, Weigh(mates)), y) / brier(x, y) for mates in (None, 0, 100)
    ]
    assert losses[0] > 1.08
    assert losses[1] < 1.02
    assert losses[2] < 1.01


def test_independent_outcomes_of_a_batch_count_nearly_in_full() -> None:
    rng = np.random.default_rng(22)
    z = rng.normal(-0.5, 1.2, 20_000)
    y = rng.random(len(z)) < sigmoid(0.5 * z - 0.7)
    at_once, weigh = brier(together(Mix(), sigmoid(z), y, 200, Weigh(None)), y), Weigh(0)
    assert brier(together(Mix(), sigmoid(z), y, 200, weigh), y) < 1.005 * at_once
    assert weigh.bursts.effect < 1.5


# -- how much of an observation --------------------------------------------------------------------


def burst(bursts: Bursts, residuals: Any, mates: int = 0) -> list[float]:
    for _ in residuals:
        bursts.issued()
    return [bursts.weight(float(r), mates) for r in residuals]


def test_outcomes_one_by_one_count_in_full() -> None:
    bursts = Bursts()
    for _ in range(250):
        bursts.issued()
    for k in range(1_000):
        assert bursts.weight((-1) ** k * 0.5, 0) == 1.0
        bursts.issued()
    assert bursts.effect == 1.0


def test_outcomes_that_are_one_event_count_as_one() -> None:
    rng = np.random.default_rng(23)
    bursts = Bursts()
    totals = [sum(burst(bursts, np.full(170, rng.choice([-0.5, 0.5])))) for _ in range(100)]
    assert 1.9 < totals[0] < 2.1  # the first of all is taken for one that comes alone
    assert np.mean(totals[1:]) < 1.5
    assert max(totals) < 5
    assert bursts.effect == pytest.approx(170, rel=0.3)


def test_independent_outcomes_count_in_full_after_some_bursts() -> None:
    rng = np.random.default_rng(24)
    bursts = Bursts()
    totals = [sum(burst(bursts, rng.choice([-0.5, 0.5], 1_000))) for _ in range(60)]
    assert totals[0] < 10
    assert np.mean(totals[5:]) > 500
    assert bursts.effect < 1.5


def test_between_one_and_all_the_effect_is_that_of_sampling_theory() -> None:
    """Half of the variance of residuals is common to a burst: rho = 1/2, effect 99/2."""
    rng = np.random.default_rng(25)
    bursts = Bursts()
    for _ in range(300):
        burst(bursts, 0.1 * (rng.normal(size=100) + rng.normal()))
    assert bursts.effect == pytest.approx(49.5, rel=0.25)


def test_a_bias_that_stays_is_no_correlation() -> None:
    """Residuals with a mean of 0.2, burst after burst, are something to learn."""
    rng = np.random.default_rng(26)
    bursts = Bursts()
    for _ in range(40):
        burst(bursts, 0.2 + rng.choice([-0.5, 0.5], 500))
    assert bursts.effect < 3


def test_a_first_batch_after_a_year_of_single_outcomes_is_not_trusted() -> None:
    bursts = Bursts()
    for k in range(5_000):
        burst(bursts, [(-1) ** k * 0.4])
    weights = burst(bursts, np.full(300, 0.4))
    assert weights[0] == 1.0
    assert sum(weights) < 2 + math.log(300)


def test_events_with_a_name_are_one_observation_each() -> None:
    bursts = Bursts()
    assert burst(bursts, [0.1, -0.2, 0.7, 0.4], mates=4) == [0.25] * 4
    assert bursts.effect == 4.0
    assert burst(bursts, [0.5]) == [1.0]  # names say nothing about outcomes without


# -- several models --------------------------------------------------------------------------------


def experts_after(rounds: int) -> Experts:
    hint = Experts(2)
    rng = np.random.default_rng(30)
    hint.forecast_many(rng.random((rounds, 2)), rng.integers(0, 2, rounds))
    return hint


def test_a_useless_model_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(31)
    z = rng.normal(-0.3, 1.3, 4_000)
    y = rng.random(len(z)) < sigmoid(z)
    useless = sigmoid(rng.normal(0, 1.5, len(z)))
    for scores in (np.column_stack([sigmoid(z), useless]), np.column_stack([useless, sigmoid(z)])):
        assert log_loss(Experts(2).forecast_many(scores, y), y) < 1.01 * log_loss(sigmoid(z), y)


@pytest.mark.parametrize("models", [2, 5])
def test_models_that_know_different_things_beat_each_of_them(models: int) -> None:
    rng = np.random.default_rng(32)
    z = rng.normal(0, 1, (20_000, models))
    y = rng.random(len(z)) < sigmoid(z.sum(axis=1) - 0.3)
    said = log_loss(Experts(models).forecast_many(sigmoid(z), y), y)
    assert said < 0.9 * min(log_loss(sigmoid(z[:, k]), y) for k in range(models))
    # has seen the outcomes
    together = LogisticRegression(C=np.inf).fit(z, y).predict_proba(z)[:, 1]
    assert said < 1.01 * log_loss(together, y)


def test_one_model_of_experts_is_a_mix() -> None:
    rng = np.random.default_rng(33)
    x, y = rng.random(500), rng.integers(0, 2, 500)
    members = [Identity(), Platt(30), Isotonic()]
    experts, mix = Experts(1, members), Mix(members)
    assert experts.forecast_many(x, y).tolist() == mix.forecast_many(x, y).tolist()
    assert experts.state() == mix.state()
    assert experts.predict(0.3) == mix.predict(0.3)


def test_experts_take_scores_one_by_one_as_in_a_batch() -> None:
    rng = np.random.default_rng(34)
    x, y = rng.random((400, 3)), rng.integers(0, 2, 400)
    x[5] = 0.0, 1.0, 0.5
    loop, batch = Experts(3), Experts(3)
    said = []
    kinds: list[Any] = [list, tuple, np.asarray]
    for t in range(len(y)):
        row = kinds[t % 3](x[t].tolist())
        said.append(loop.predict(row))
        loop.predict([0.5, *x[t, 1:].tolist()])  # all entries count, not the first alone
        loop.learn(row, y[t], loop.issue(row)[1])
    assert batch.forecast_many(x, y).tolist() == said
    assert batch.to_json() == loop.to_json()
    assert batch.forecast_many([], []).tolist() == []


@pytest.mark.parametrize(
    ("score", "rule", "position"),
    [
        (0.5, "must be a sequence of 2 numbers, one of each model", None),
        ([0.5], "must be a sequence of 2 numbers, one of each model", None),
        ([0.5, 0.5, 0.5], "must be a sequence of 2 numbers, one of each model", None),
        ("ab", "must be a sequence of 2 numbers, one of each model", None),
        ({0.5, 0.2}, "must be a sequence of 2 numbers, one of each model", None),
        (np.full((2, 1), 0.5), "must be a sequence of 2 numbers, one of each model", None),
        (None, "must be a sequence of 2 numbers, one of each model", None),
        ([0.5, 1.5], "must be between 0 and 1", 1),
        ([math.nan, 1.5], "must be between 0 and 1", 0),
        ([0.5, True], "must be between 0 and 1", 1),
        ([0.5, "0.5"], "must be between 0 and 1", 1),
    ],
)
def test_scores_of_other_shapes_are_refused(score: Any, rule: str, position: int | None) -> None:
    hint = experts_after(50)
    before = hint.to_json()
    for call in (hint.predict, hint.issue, lambda x: hint.learn(x, 1)):
        with pytest.raises(tc.InputError) as caught:
            call(score)
        assert (caught.value.argument, caught.value.rule, caught.value.position) == (
            "score",
            rule,
            position,
        )
    assert hint.to_json() == before


@pytest.mark.parametrize(
    ("scores", "rule", "position"),
    [
        ([0.5, 0.5], "must have shape (rounds, 2), a column for each model", None),
        ([[0.5, 0.5, 0.5]] * 2, "must have shape (rounds, 2), a column for each model", None),
        ([[0.5, 0.5]] * 3, "must have a row for each of the 2 outcomes", None),
        ([[0.5, 0.5], [0.5, 1.5]], "must be between 0 and 1", (1, 1)),
        ([[0.5, math.nan], [0.5, 1.5]], "must be between 0 and 1", (0, 1)),
    ],
)
def test_arrays_of_other_shapes_are_refused(scores: Any, rule: str, position: Any) -> None:
    hint = experts_after(50)
    before = hint.to_json()
    with pytest.raises(tc.InputError) as caught:
        hint.forecast_many(scores, [0, 1])
    assert (caught.value.argument, caught.value.rule, caught.value.position) == (
        "scores",
        rule,
        position,
    )
    assert hint.to_json() == before


def test_experts_take_log_odds() -> None:
    rng = np.random.default_rng(35)
    z, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    odds, chances = Experts(2), Experts(2)
    odds._logit = True
    for row, outcome in zip(z.tolist(), y.tolist(), strict=True):
        assert odds.predict(row) == pytest.approx(
            chances.predict(sigmoid(np.array(row))), abs=1e-12
        )
        odds.learn(row, outcome)
        chances.learn(sigmoid(np.array(row)), outcome)
    assert odds.predict([1e9, -1e9]) == odds.predict([8e8, -8e8])
    with pytest.raises(tc.InputError) as caught:
        odds.predict([0.5, math.inf])
    assert caught.value.position == 1


def test_copies_of_subclasses_and_of_hints_of_log_odds_are_like_them() -> None:
    class Own(Platt):
        def predict(self, score: Any) -> float:
            return 0.25

    assert type(copy.copy(Own(memory=7))) is Own
    assert copy.copy(Own(memory=7)).config == {"memory": 7}
    odds = Platt()
    odds._logit = True
    odds.learn(3.0, 0)
    assert copy.copy(odds).predict(2.0) == copy.deepcopy(odds).predict(2.0) == odds.predict(2.0)


def test_experts_are_saved_with_all_their_members() -> None:
    hint = experts_after(60)
    others = [
        Experts.from_json(hint.to_json()),
        Experts.from_bytes(hint.to_bytes()),
        copy.deepcopy(hint),
        eval(repr(hint), {"Experts": Experts}),
    ]
    others[-1].load(hint.state())
    for other in others:
        assert other.to_json() == hint.to_json()
        assert other.predict([0.3, 0.8]) == hint.predict([0.3, 0.8]) != hint.predict([0.8, 0.3])
    assert len(hint.state()["members"]) == 8
    assert Experts(32).config["models"] == Experts(**Experts(32).config).models == 32
    with pytest.raises(tc.StateError):
        Experts(3).load(hint.state())


@pytest.mark.parametrize("models", [0, 33, 2.0, "2", True, None])
def test_other_numbers_of_models_are_refused(models: Any) -> None:
    with pytest.raises(tc.InputError, match=r"^models must be a whole number from 1 to 32"):
        Experts(models)


def test_hints_of_experts_keep_the_rules_of_a_mix() -> None:
    for hints, position in (
        ([], None),
        ([Platt(), Mix()], 1),
        ([Platt(), Experts(2)], 1),
        ([Platt()] * 65, None),
    ):
        with pytest.raises(tc.InputError, match=r"^hints must ") as caught:
            Experts(2, hints)
        assert caught.value.position == position
    with pytest.raises(
        tc.InputError, match=r"^hints must be at most 8 for each of 16 models, got 9"
    ):
        Experts(16, [Platt()] * 9)
    with pytest.raises(tc.InputError, match=r"^hints must be hints, none of them a mix"):
        Mix([Experts(2)])


def test_experts_keep_the_contract_of_hints() -> None:
    testing.check_hint(lambda: Experts(3))
