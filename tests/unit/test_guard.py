from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import truecast as tc


def play(g: tc.Guard, hint: float, y: int) -> float:
    said = g.predict(hint)
    g.observe(y)
    return said


def numbers(g: tc.Guard) -> dict[str, Any]:
    return g._saved()


def test_first_rounds_by_hand() -> None:
    """In the middle of the arc K is 4: a miss of 1/2 adds 1, the second on the same side 3."""
    g = tc.Guard()
    assert [play(g, 0.5, 1) for _ in range(2)] == [0.5, 0.5]
    assert g.certificate.energy == pytest.approx(4.0, rel=1e-3)
    assert play(g, 0.5, 0) == 0.5
    assert g.certificate.energy == pytest.approx(1.0, rel=1e-3)
    assert numbers(g)["knots"]["key"].tolist() == [1 << 39]
    assert numbers(g)["knots"]["residual"].tolist() == [1 << 31]
    assert numbers(g)["granted"] / 2**20 == pytest.approx(3.0, rel=1e-3)
    assert play(g, 0.5, 0) == 0.5
    assert g.certificate.energy == 0.0
    assert len(numbers(g)["knots"]["key"]) == 0  # what cancels is not saved
    assert g.knots == 1


def test_a_hint_is_followed_until_the_budget_is_used_up_and_then_moved_towards_the_outcomes() -> (
    None
):
    g = tc.Guard(budget=1.05)
    said = g.forecast_many(np.full(2000, 0.3), np.ones(2000, int))
    followed = int((said == 0.3).sum())
    assert 10 < followed < 60
    assert (said[:followed] == 0.3).all()
    assert (said[-500:] > 0.9).all()  # it all but knows
    assert 0.3 < g.predict(0.6) <= 1.0


def test_calibrated_hints_come_out_unchanged() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    g = tc.Guard()
    assert g.forecast_many(p, rng.random(20_000) < p).tolist() == p.tolist()


def test_a_larger_budget_follows_hints_for_longer() -> None:
    followed = []
    for budget in (1.05, 4, 100):
        said = tc.Guard(budget=budget).forecast_many(np.full(1000, 0.33), np.ones(1000, int))
        followed.append(int((said == 0.33).sum()))
    assert followed == sorted(set(followed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 1.04}, "budget must be a number from 1.05 to 1000, got 1.04"),
        ({"budget": 1000.5}, "budget must be a number from 1.05 to 1000"),
        ({"budget": float("nan")}, "budget must be a number from"),
        ({"budget": True}, "budget must be a number from"),
        ({"budget": "1"}, "budget must be a number from"),
        ({"budget": None}, "budget must be a number from"),
        ({"nudge": 1}, "nudge must be True or False, got 1"),
        ({"nudge": None}, "nudge must be True or False"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.InputError, match=message):
        tc.Guard(**options)


@pytest.mark.parametrize("option", ["slack", "grid", "late"])
def test_the_options_of_the_guard_before_are_gone(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        tc.Guard(**{option: 1})


def test_batches_write_where_they_are_told() -> None:
    rng = np.random.default_rng(3)
    hints, y = rng.random(500), rng.integers(0, 2, 500)
    loop, batch = tc.Guard(nudge=True), tc.Guard(nudge=True)
    said = [
        play(loop, hint, outcome) for hint, outcome in zip(hints.tolist(), y.tolist(), strict=True)
    ]
    out = np.empty(500)
    assert batch.forecast_many(hints, y, out=out) is out
    assert out.tolist() == said
    assert batch.to_json() == loop.to_json()
    before = batch.to_json()
    for bad in (np.empty(499), np.empty(500, np.float32), [0.0] * 500):
        with pytest.raises(tc.InputError, match="^out must be"):
            batch.forecast_many(hints, y, out=bad)
    with pytest.raises(tc.InputError, match="hints must be between 0 and 1, got nan at position 2"):
        batch.forecast_many([0.1, 0.2, float("nan")], [0, 1, 0])
    with pytest.raises(tc.InputError, match="hints must have an entry for each of the 2 outcomes"):
        batch.forecast_many([0.1, 0.2, 0.3], [0, 1])
    assert batch.to_json() == before


@pytest.mark.slow("plays 120,000 rounds, twice")
@pytest.mark.parametrize("nudge", [False, True])
@pytest.mark.parametrize("budget", [1.05, 4.0])
def test_batches_of_any_length_are_the_loop_bit_for_bit(budget: float, nudge: bool) -> None:
    """Also where hints are moved, and where knots become finer on the way."""
    rng = np.random.default_rng(4)
    y = rng.random(120_000) < 0.8
    hints = np.where(np.arange(120_000) % 3 == 0, 0.3, rng.random(120_000))
    one, many = tc.Guard(budget=budget, nudge=nudge), tc.Guard(budget=budget, nudge=nudge)
    said = one.forecast_many(hints, y)
    assert (said != hints).mean() > 0.2
    parts = [
        many.forecast_many(h, b)
        for h, b in zip(np.array_split(hints, 7), np.array_split(y, 7), strict=True)
    ]
    assert np.concatenate(parts).tolist() == said.tolist()
    assert many.to_json() == one.to_json()
    other = tc.Guard.from_json(one.to_json())
    for hint, outcome in zip(hints[:200].tolist(), y[:200].tolist(), strict=True):
        assert play(one, hint, outcome) == play(other, hint, outcome)
    assert one.to_json() == other.to_json()


def test_copies_and_pickles_go_on_from_here() -> None:
    g = tc.Guard(nudge=True)
    g.forecast_many([0.2, 0.7, 0.9] * 50, [1, 0, 1] * 50)
    g.predict(0.4)
    for other in (
        copy.copy(g),
        copy.deepcopy(g),
        pickle.loads(pickle.dumps(g)),
        tc.Guard.from_bytes(g.to_bytes()),
    ):
        assert other.to_json() == g.to_json()
        assert other.issued
        other.observe(1)
        assert other.rounds == 151
    assert g.rounds == 150


def test_the_last_predict_is_the_one_that_is_judged() -> None:
    g, other = tc.Guard(), tc.Guard()
    for hint in (0.9, 0.1, 0.6):
        g.predict(hint)
    other.predict(0.6)
    for each in (g, other):
        each.observe(1)
        with pytest.raises(tc.OrderError, match="predict"):
            each.observe(1)
    assert g.to_json() == other.to_json()


@pytest.mark.slow("plays a million rounds")
def test_a_million_rounds_without_drift() -> None:
    rng = np.random.default_rng(11)
    rounds = 1_000_000
    hints = rng.integers(0, 1 << 12, rounds) / (1 << 12)
    y = (rng.random(rounds) < 0.2 + 0.5 * hints).astype(np.uint8)
    g = tc.Guard()
    said = g.forecast_many(hints, y)
    # residuals are whole numbers: their sum is that of all rounds, each rounded to 2^-32
    total = int((y.astype(np.int64) << 32).sum()) - int(
        np.floor(said * 2.0**32 + 0.5).astype(np.int64).sum()
    )
    assert int(numbers(g)["knots"]["residual"].sum()) == total
    assert g.knots <= 4 * rounds ** (2 / 3) + 4097
    assert g.certificate.brier * rounds == pytest.approx(float(((said - y) ** 2).sum()), rel=1e-9)
    assert g.certificate.bound <= g.certificate.a_priori <= g.a_priori(rounds)
    assert abs(float(said.sum() - y.sum())) <= g.certificate.bound
    again = tc.Guard.from_bytes(g.to_bytes())
    assert again.certificate == g.certificate


def test_the_certificate_does_not_depend_on_what_cancelled() -> None:
    """Knots whose residual came to 0 are dropped when saved: nothing else changes, bit for bit."""
    rng = np.random.default_rng(5)
    p, times = np.repeat(np.arange(65) / 64, 64), np.tile(np.arange(64), 65)
    g = tc.Guard()
    assert (
        g.forecast_many(p, np.floor((times + 1) * p) - np.floor(times * p)).tolist() == p.tolist()
    )
    assert len(numbers(g)["knots"]["key"]) == 0
    g.forecast_many(rng.random(300), rng.integers(0, 2, 300))
    again = tc.Guard.from_json(g.to_json())
    assert again.knots < g.knots
    assert again.certificate.energy == pytest.approx(g.certificate.energy, rel=1e-12)
    h, y = rng.random(2000), rng.integers(0, 2, 2000)
    assert again.forecast_many(h, y).tolist() == g.forecast_many(h, y).tolist()
    assert again.to_json() == g.to_json()


def test_a_nudge_takes_out_what_a_hint_is_off_by() -> None:
    rng = np.random.default_rng(2)
    y = rng.random(20_000) < 0.4
    plain, nudged = tc.Guard(budget=1000), tc.Guard(budget=1000, nudge=True)
    off = [
        abs(float((g.forecast_many(np.full(20_000, 0.43), y) - y).mean())) for g in (plain, nudged)
    ]
    assert off[1] < off[0]
    assert nudged.config == {"budget": 1000.0, "nudge": True}


@pytest.mark.parametrize("nudge", [False, True])
def test_every_hint_leads_to_a_probability(nudge: bool) -> None:
    """Also where the field is as steep as it gets, at both ends."""
    for side in (0, 1):
        g = tc.Guard(nudge=nudge, budget=1.05)
        g.forecast_many(np.full(5000, float(side)), np.full(5000, 1 - side))
        g.forecast_many(np.full(5000, float(1 - side)), np.full(5000, side))
        for hint in (0.0, 5e-324, 1e-300, 1e-17, 0.3, 0.5, 1 - 2.0**-53, 1.0):
            assert 0.0 <= g.predict(hint) <= 1.0
            g.observe(side)
        assert math.isfinite(g.certificate.bound)


def test_minus_zero_is_said_as_zero() -> None:
    for nudge in (False, True):
        guard = tc.Guard(nudge=nudge)
        assert math.copysign(1.0, guard.predict(-0.0)) == 1.0
        assert np.copysign(1.0, guard.forecast_many([-0.0], [0]))[0] == 1.0


def test_nothing_is_claimed_of_the_budget_beyond_2_to_the_30_rounds() -> None:
    g = tc.Guard()
    g.forecast_many([0.5] * 100, [0, 1] * 50)
    for rounds, claimed in ((1 << 30, True), ((1 << 30) + 1, False)):
        groups = numbers(g)["groups"] | {"rounds": np.array([rounds])}
        g._load(numbers(g) | {"groups": groups})
        assert (g.certificate.a_priori < rounds) == claimed
        assert g.certificate.bound < rounds
