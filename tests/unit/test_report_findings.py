"""What the report is about: ranges, gaps and gains against their definitions, on the rounds themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import truecast as tc
from rounds import columns, rounds
from truecast.measures.bernstein import stretches, stretches_p_value
from truecast.report import findings
from truecast.report.findings import Finding, find


def found(y: object, p: object, **options: object) -> Finding:
    given = {"groups": None, "after": None, "level": 0.9, "resamples": 50, "random_state": 0} | options
    return find("p", tc.Tally.from_predictions(y, p), **given)


@settings(max_examples=15)
@given(rounds(most=60))
def test_ranges_are_those_of_the_rounds(rows: list[tuple[int, float]]) -> None:
    y, p = columns(rows)
    finding = found(y, p, resamples=20)
    assert sum(part.rounds for part in finding.ranges) == len(y)
    for part in (*finding.ranges, *finding.halves, finding.whole):
        inside = (p >= part.low) & (p <= part.high)
        assert part.rounds == inside.sum()
        assert {part.low, part.high} <= set(p + 0.0)
        assert part.forecast == pytest.approx(p[inside].mean(), rel=1e-12)
        assert part.rate == pytest.approx(y[inside].mean(), rel=1e-12)
        assert part.noise == pytest.approx(np.sqrt((p[inside] * (1 - p[inside])).sum()) / inside.sum(), rel=1e-12)
    assert finding.whole.rounds == len(y)
    assert [part.high <= y.mean() for part in finding.halves] in ([True, False], [True], [False])


def test_ranges_have_equal_numbers_of_rounds_where_forecasts_are_distinct() -> None:
    rng = np.random.default_rng(0)
    finding = found(rng.integers(0, 2, 1000), rng.random(1000) ** 5)
    assert [part.rounds for part in finding.ranges] == [100] * 10


def test_a_gap_is_beyond_chance_from_two_deviations() -> None:
    part = findings.Range(0.5, 0.5, 100, 0.5, 0.6, 0.05)
    assert not part.beyond_chance
    assert findings.Range(0.5, 0.5, 100, 0.5, 0.601, 0.05).beyond_chance
    assert findings.Range(0.5, 0.5, 100, 0.5, 0.399, 0.05).beyond_chance
    assert not findings.Range(0.5, 0.5, 1.5, 0.5, 0.9, float("nan")).beyond_chance


@pytest.mark.parametrize("most", [0.002, 0.02, 1.0])
def test_few_tables_of_calibrated_forecasts_have_a_gap_beyond_chance(most: float) -> None:
    rng, marked = np.random.default_rng(3), []
    for _ in range(300):
        p = rng.random(2000) * most
        parts = findings._ranges(tc.Tally.from_predictions(rng.random(2000) < p, p), np.arange(10) / 10 * most)
        marked.append(any(abs(part.gap) > part.by_chance(10) for part in parts))
    assert np.mean(marked) <= 0.09  # 0.05 and three deviations
    off = [findings.Range(0.0, 1.0, 200, 0.5, rate, 0.035).by_chance(10) < abs(rate - 0.5) for rate in (0.58, 0.65)]
    assert off == [False, True]


def test_gap_and_gain_of_forecasts_that_are_too_high_by_a_tenth() -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice([0.2, 0.4, 0.6], 100_000)
    y, p = rng.random(100_000) < truth, truth + 0.1
    finding = found(y, p)
    assert finding.gap == pytest.approx(0.1, abs=0.005)
    assert finding.gain_of == "brier"
    assert finding.gain == pytest.approx(0.01 / np.mean((y - p) ** 2), rel=0.1)  # a squared gap of 0.1 goes
    assert finding.figures == tc.measure(y, p)


def test_gain_is_less_what_chance_adds() -> None:
    rng = np.random.default_rng(2)
    p = rng.random(300)
    y = rng.random(300) < p
    raw = tc.reliability_curve(y, p).brier
    finding = found(y, p)
    assert raw.miscalibration / raw.score > 0.03  # what the curve fits of chance
    assert finding.gain < 0.03


def test_gain_is_of_the_log_loss_where_events_are_rare() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(1, 200, 50_000)
    y = rng.random(50_000) < np.minimum(3 * p, 1)
    finding = found(y, p)
    log = tc.reliability_curve(y, p).log
    assert finding.gain_of == "log"
    assert 0.5 * log.miscalibration / log.score < finding.gain < log.miscalibration / log.score
    impossible = found(np.append(y, 1), np.append(p, 0.0))
    assert (impossible.gain_of, impossible.impossible) == ("brier", 1)


def test_pooling_is_fine_where_the_forecasts_are() -> None:
    rng = np.random.default_rng(4)
    rare = tc.Tally.from_predictions(rng.integers(0, 2, 20_000), rng.random(20_000) * 1e-3)
    pooled = findings._pooled(rare)
    assert 1000 < len(pooled.p) <= 2048
    assert pooled.total == rare.total
    assert len(findings._pooled(rare, 256).p) <= 256
    assert findings._pooled(pooled) is pooled
    many = tc.Tally.from_predictions(rng.integers(0, 2, 20_000), rng.random(20_000))
    assert len(findings._pooled(many).p) == 2048


def test_what_is_impossible_and_what_is_certain() -> None:
    finding = found([1, 0, 0, 1], [0.0, 1.0, 0.0, 1.0])
    assert (finding.impossible, finding.certain) == (2, True)
    finding = found([0, 1, 1], [0.0, 1.0, 0.5])
    assert (finding.impossible, finding.certain) == (0, False)


def test_doubt_is_that_of_uncertainty() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(400).round(2)
    y = rng.random(400) < p**2
    finding = found(y, p, resamples=60, level=0.8, random_state=3)
    assert finding.doubt == tc.uncertainty(tc.smooth_calibration_error, y, p, resamples=60, level=0.8, random_state=3)
    assert finding.resamples == 60
    assert found(y, p, resamples=None).resamples == 999
    assert found(rng.random(600) < 0.5, rng.random(600), resamples=None).resamples == 199


def test_real_weights_leave_chance_open() -> None:
    tally = tc.Tally([0.2, 0.7], [1.5, 2.5], [3.5, 0.5])
    finding = find("p", tally, groups=None, after=None, level=0.9, resamples=20, random_state=0)
    assert finding.doubt is None
    assert np.isnan(finding.whole.noise)
    brier = finding.figures.brier
    assert finding.gain == pytest.approx(brier.miscalibration / brier.score)
    assert finding.gap == pytest.approx((5 * 0.5 + 3 * abs(0.5 / 3 - 0.7)) / 8)


def test_after_has_figures_of_its_own() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(3000)
    y, p = rng.random(3000) < truth, np.sqrt(truth)
    after = found(y, p, after=tc.Tally.from_predictions(y, truth)).after
    assert after is not None
    assert after.brier == tc.reliability_curve(y, truth).brier
    assert after.error == tc.smooth_calibration_error(y, truth)
    assert after.doubt is not None
    assert after.doubt.p_value > 0.05
    assert np.array_equal(after.pictures.before.edges, after.pictures.after.edges)


def offs(truth: object, n: int = 50_000, seed: int = 0) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return [(part.low, part.high, part.gap) for part in found(rng.random(n) < truth(p), p, resamples=20).off]


def test_stretches_are_where_forecasts_are_off() -> None:
    (middle,) = offs(lambda p: np.where((p > 0.3) & (p < 0.5), p + 0.1, p))
    assert middle == pytest.approx((0.3, 0.5, 0.1), abs=0.02)
    low, high = offs(lambda p: np.where(p < 0.2, p + 0.1, np.where(p > 0.7, p - 0.2, p)))
    assert low == pytest.approx((0.0, 0.2, 0.1), abs=0.02)
    assert high == pytest.approx((0.7, 1.0, -0.2), abs=0.02)
    twice = offs(lambda p: np.where(p < 0.3, 0.4 * p, np.where(p > 0.7, p - 0.1, p)))
    assert [part[2] < 0 for part in twice] == [True, True]  # not joined over what is right
    extreme = offs(lambda p: 0.5 + 0.6 * (p - 0.5))
    assert [part[2] > 0 for part in extreme] == [True, False]
    assert len(offs(lambda p: p + 0.1 * np.sin(12 * np.pi * p), n=200_000)) == 3
    assert offs(lambda p: np.where(p > 0.5, p + 0.01, p - 0.01), n=1000) == []


@pytest.mark.parametrize("bend", [1, 6])  # forecasts of all kinds, or mostly small ones
def test_calibrated_forecasts_have_hardly_any_stretches(bend: int) -> None:
    rng = np.random.default_rng(7)
    found_any = 0
    for _ in range(100):
        p = rng.random(2000) ** bend
        tally = tc.Tally.from_predictions(rng.random(2000) < p, p)
        found_any += bool(stretches(tally))
        assert stretches_p_value(tally) > 0.01  # it is on the large side
    assert found_any <= 2


def test_the_p_value_of_stretches_is_bernsteins_over_all_of_them() -> None:
    tally = tc.Tally([0.25, 0.5], [0, 0], [300, 500])
    # three stretches: 0.25, 0.5 and both; the last is the most striking, with 475 more ones than forecast
    most = 475 / np.sqrt(300 * 0.1875 + 500 * 0.25 + 475 / 3)
    assert stretches(tally) == [(0, 2)]
    assert stretches_p_value(tally) == pytest.approx(6 * np.exp(-(most**2) / 2))
    assert stretches_p_value(tc.Tally([0.5], [1], [1])) == 1.0
