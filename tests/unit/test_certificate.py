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
    assert c.brier == pytest.approx(sum((p - y) ** 2 for p, y in zip(said, [1, 1, 0, 1, 0, 0, 1], strict=True)) / 7)


def test_before_the_first_outcome_and_without_a_horizon() -> None:
    c = tc.AlmostOneStepAhead(grid=4).certificate
    assert (c.rounds, c.bound, c.per_round, c.horizon, c.promised_rounds) == (0, 0.0, 0.0, None, 0)
    assert c.a_priori == 1.5
    assert math.isnan(c.brier)


def test_pooling_can_beat_the_biases() -> None:
    """A state in which sending points to their own means costs more than pooling one round of each."""
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
    r.recalibrate_many([0.5, 0.25], [1, 0])
    r.issue(0.25)
    c = r.certificate
    assert (c.rounds, c.unresolved, c.unknown) == (2, 1, 0.75)
    assert c.promised_rounds == 3
    assert c.per_round == c.bound / 3
    assert c.bound == c.deviation + min(c.bias, c.pooled) + 0.75
    lines = str(c).splitlines()
    assert lines[0] == "after 2 rounds and 1 without an outcome"
    assert lines[4].split()[-1] == "0.7500"
    assert float(lines[2].split()[-1]) + float(lines[3].split()[-1]) + 0.75 == pytest.approx(c.bound, abs=2e-4)
    r.resolve(0, 0)
    assert "without" not in str(r.certificate)


@given(st.lists(st.tuples(*[st.fractions(0, 10)] * 4), min_size=1, max_size=5))
def test_the_certificate_of_several_ladders_is_their_sum_rounded_up_once(rows: list[tuple[Fraction, ...]]) -> None:
    parts = [Parts(3, d, (a, b), 0.5, Fraction(99), 2, unknown) for d, a, b, unknown in rows]
    c = certify(parts)
    assert c.bound == round_up(sum((d + min(a, b) + unknown for d, a, b, unknown in rows), Fraction(0)))
    assert c.bias == round_up(sum((row[1] for row in rows), Fraction(0)))
    assert c.pooled == round_up(sum((row[2] for row in rows), Fraction(0)))
    assert (c.rounds, c.unresolved) == (3 * len(rows), 2 * len(rows))
    assert c.a_priori == 99 * len(rows)
    assert c.brier == pytest.approx(0.5 / 3)
