from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.certificate import Parts, certify, round_up


@given(st.fractions(min_value=0, max_value=10**9))
def test_round_up_is_the_least_float_not_below(exact: Fraction) -> None:
    up = round_up(exact)
    assert Fraction(up) >= exact
    assert Fraction(math.nextafter(up, -math.inf)) < exact


def test_fields_add_up() -> None:
    f = tc.AlmostOneStepAhead(grid=4, horizon=20)
    said = f.forecast_many([1, 1, 0, 1, 0, 0, 1])
    c = f.certificate
    assert c.rounds == 7
    assert c.horizon == 20
    assert c.promised_rounds == 20
    assert c.deviation == 1.0  # four ones, a quarter each
    assert c.bound == pytest.approx(c.deviation + min(c.bias, c.pooled), abs=1e-12)
    assert c.per_round == c.bound / 7
    assert c.a_priori == 20 / 4 + 3 / 2
    assert c.paper == 2 * math.sqrt(20) + 1
    assert c.brier == pytest.approx(
        sum((p - y) ** 2 for p, y in zip(said, [1, 1, 0, 1, 0, 0, 1], strict=True)) / 7
    )


def test_before_the_first_outcome_and_without_a_horizon() -> None:
    c = tc.AlmostOneStepAhead(grid=4).certificate
    assert (c.rounds, c.bound, c.per_round, c.horizon, c.promised_rounds) == (0, 0.0, 0.0, None, 0)
    assert c.a_priori == 1.5
    assert math.isnan(c.brier)


def test_pooling_can_beat_the_biases() -> None:
    """A state in which sending points to their own means costs more than pooling one round of
    each."""
    f = tc.AlmostOneStepAhead(grid=6)
    f.forecast_many([0, 0, 0, 1])
    assert f.bias_sums == (Fraction(3, 2), Fraction(1, 2))
    assert f.certificate.bound == f.certificate.deviation + 0.5


def test_it_is_frozen_and_reads_well() -> None:
    f = tc.BentGrid(horizon=10_000)
    f.forecast_many([0, 1] * 600)
    c = f.certificate
    with pytest.raises(AttributeError):
        c.bound = 0.0
    lines = str(c).splitlines()
    assert lines[0] == "after 1,200 rounds"
    assert "proved" in lines[1]
    assert "for 10,000 rounds" in lines[4]
    assert lines[5].split()[-1] == "201.0000"
    assert "Brier score" in lines[6]


def test_unresolved_forecasts_are_counted_and_told() -> None:
    r = tc.Recalibrator(hint=tc.hints.Identity(), nudge=False)
    r.forecast_many([0.5, 0.25] * 10, [1, 0] * 10)
    before = r.certificate
    r.issue(0.25)
    c = r.certificate
    assert (c.rounds, c.unresolved, c.unknown) == (20, 1, 0.75)
    assert c.promised_rounds == 21
    assert c.per_round == c.bound / 21
    assert c.energy == before.energy
    for name in ("smooth_error", "lower_distance", "bound"):
        assert getattr(c, name) == pytest.approx(getattr(before, name) + 0.75, rel=1e-12)
    assert c.bound <= c.a_priori <= 21
    lines = str(c).splitlines()
    assert lines[0] == "after 20 rounds and 1 without an outcome"
    assert lines[4].split()[-1] == "0.7500"
    r.resolve(0, 0)
    assert "without" not in str(r.certificate)
    assert r.certificate.unknown == 0


@given(*[st.fractions(0, 10)] * 3)
def test_each_sum_of_a_ladder_is_rounded_up_once(
    deviation: Fraction, bias: Fraction, pooled: Fraction
) -> None:
    c = certify(Parts(3, deviation, (bias, pooled), 0.5, Fraction(99)), horizon=7)
    assert (c.deviation, c.bias, c.pooled) == (
        round_up(deviation),
        round_up(bias),
        round_up(pooled),
    )
    assert c.bound == round_up(deviation + min(bias, pooled))
    assert (c.rounds, c.unresolved, c.horizon, c.a_priori) == (3, 0, 7, 99)
    assert c.brier == pytest.approx(0.5 / 3)
