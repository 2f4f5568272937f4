"""What the report is about: ranges, gaps and gains against their definitions, on the rounds
themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import truecast as tc
from rounds import columns, rounds
from truecast.measures.pooling import pooled
from truecast.report.findings import Finding, find


def found(y: object, p: object, **options: object) -> Finding:
    given = {
        "groups": None,
        "after": None,
        "level": 0.9,
        "resamples": 50,
        "random_state": 0,
    } | options
    return find("p", tc.Tally.from_predictions(y, p), **given)


@pytest.mark.slow("makes a report of many rounds")
@settings(max_examples=15)
@given(rounds(most=60))
def test_ranges_are_those_of_the_rounds(rows: list[tuple[int, float]]) -> None:
    y, p = columns(rows)
    finding = found(y, p, resamples=20)
    assert sum(part.rounds for part in finding.ranges) == len(y)
    for part in (*finding.ranges, *finding.found.halves, finding.found.whole):
        inside = (p >= part.low) & (p <= part.high)
        assert part.rounds == inside.sum()
        assert {part.low, part.high} <= set(p + 0.0)
        assert part.forecast == pytest.approx(p[inside].mean(), rel=1e-12)
        assert part.rate == pytest.approx(y[inside].mean(), rel=1e-12)
        assert part.noise == pytest.approx(
            np.sqrt((p[inside] * (1 - p[inside])).sum()) / inside.sum(), rel=1e-12
        )
    assert finding.found.whole.rounds == len(y)
    assert [part.high <= p.mean() for part in finding.found.halves] in (
        [True, False],
        [True],
        [False],
    )


def test_ranges_have_equal_numbers_of_rounds_where_forecasts_are_distinct() -> None:
    rng = np.random.default_rng(0)
    finding = found(rng.integers(0, 2, 1000), rng.random(1000) ** 5)
    assert [part.rounds for part in finding.ranges] == [100] * 10


def test_gap_and_gain_of_forecasts_that_are_too_high_by_a_tenth() -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice([0.2, 0.4, 0.6], 100_000)
    y, p = rng.random(100_000) < truth, truth + 0.1
    finding = found(y, p)
    assert finding.gap == pytest.approx(0.1, abs=0.005)
    assert finding.gain_of == "brier"
    # a squared gap of 0.1 goes
    assert finding.gain == pytest.approx(0.01 / np.mean((y - p) ** 2), rel=0.1)
    assert finding.figures == tc.measure(y, p)


def test_gain_is_less_what_chance_adds() -> None:
    rng = np.random.default_rng(2)
    p = rng.random(300)
    y = rng.random(300) < p
    raw = tc.reliability_curve(y, p).brier
    finding = found(y, p)
    assert raw.miscalibration / raw.score > 0.03  # what the curve fits of chance
    assert finding.gain < 0.03


@pytest.mark.slow("makes a report of many rounds")
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
    few = pooled(rare)
    assert 1000 < len(few.p) <= 2048
    assert few.total == rare.total
    assert len(pooled(rare, 256).p) <= 256
    assert pooled(few) is few
    many = tc.Tally.from_predictions(rng.integers(0, 2, 20_000), rng.random(20_000))
    assert len(pooled(many).p) == 2048


def test_what_is_impossible_and_what_is_certain() -> None:
    finding = found([1, 0, 0, 1], [0.0, 1.0, 0.0, 1.0])
    assert (finding.impossible, finding.certain) == (2, True)
    finding = found([0, 1, 1], [0.0, 1.0, 0.5])
    assert (finding.impossible, finding.certain) == (0, False)


@pytest.mark.slow("makes a report of many rounds")
def test_doubt_is_that_of_uncertainty_but_for_what_else_was_looked_at() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(400).round(2)
    y = rng.random(400) < p**2
    finding = found(y, p, resamples=60, level=0.8, random_state=3)
    alone = tc.uncertainty(
        tc.smooth_calibration_error, y, p, resamples=60, level=0.8, random_state=3
    )
    assert finding.smooth_error == replace(alone, p_value=finding.smooth_error.p_value)
    assert finding.smooth_error.p_value >= alone.p_value
    assert finding.found.resamples == 60
    assert found(y, p, resamples=None).found.resamples == 999
    assert found(rng.random(600) < 0.5, rng.random(600), resamples=None).found.resamples == 499


def test_real_weights_leave_chance_open() -> None:
    tally = tc.Tally([0.2, 0.7], [1.5, 2.5], [3.5, 0.5])
    finding = find("p", tally, groups=None, after=None, level=0.9, resamples=20, random_state=0)
    assert finding.smooth_error is None
    assert np.isnan(finding.found.whole.noise)
    brier = finding.figures.brier
    assert finding.gain == pytest.approx(brier.miscalibration / brier.score)
    assert finding.gap == pytest.approx((5 * 0.5 + 3 * abs(0.5 / 3 - 0.7)) / 8)


def test_after_has_figures_of_its_own() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(3000)
    y, p = rng.random(3000) < truth, np.sqrt(truth)
    before = found(y, p, after=tc.Tally.from_predictions(y, truth))
    after = before.after
    assert after is not None
    assert np.array_equal(before.diagram.edges, after.diagram.edges)
    assert after.figures == tc.measure(y, truth)
    assert after.p_value > 0.05
    assert after.marked == ()


@pytest.mark.slow("makes a report of many rounds")
def test_pictures_are_those_of_the_plots() -> None:
    rng = np.random.default_rng(8)
    p = rng.random(3000)
    y = rng.random(3000) < p**1.3
    finding = found(y, p, resamples=None)
    where, diagram = tc.plot.miscalibration(y, p), tc.plot.reliability_diagram(y, p)
    assert len(finding.marked) > 0
    assert where.stretches == finding.marked
    assert diagram.ranges == finding.ranges
    for name in ("p", "f", "gaps", "contributions"):  # the witness is one function
        assert np.array_equal(getattr(where, name), getattr(finding.miscalibration, name))
    assert (where.base, where.error) == (finding.miscalibration.base, finding.miscalibration.error)
    for name in ("p", "lower", "upper"):
        assert np.array_equal(getattr(diagram.band, name), getattr(finding.diagram.band, name))
