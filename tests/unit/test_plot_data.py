"""What pictures show, before anything is drawn: against plain sums, and the laws they obey."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import columns, exact, rounds, tally_of
from truecast import plot
from truecast.errors import InputError
from truecast.measures.families import _share
from truecast.reference import measures as plain

ROWS = rounds()
RARE = rounds(st.floats(0, 0.25))
SURE = rounds(st.floats(0.75, 1))
BINS = st.integers(1, 60)
NEAR = {"rel": 1e-10, "abs": 1e-13}


def bin_of(p: float, edges: list[float]) -> int:
    """The rule of `Bins`, said once more."""
    inside = [k for k, (low, high) in enumerate(pairwise(edges)) if low <= p < high]
    return inside[0] if inside else len(edges) - 2


def model(seed: int = 3, size: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts that are too low below a half and too high above, by up to 0.15."""
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return rng.random(size) < p + 0.15 * np.sin(2 * np.pi * p), p


@pytest.mark.slow("tries many examples")
@settings(max_examples=150)
@given(ROWS | RARE | SURE, BINS)
def test_bins_hold_every_round_once(rows: list, bins: int) -> None:
    diagram = plot.reliability_diagram(*columns(rows), bins=bins, resamples=1)
    where = plot.miscalibration(*columns(rows), bins=bins, resamples=20)
    edges = diagram.edges.tolist()
    assert len(edges) == bins + 1
    assert all(low < high for low, high in pairwise(edges))
    assert edges[0] <= min(p for _, p in rows) <= max(p for _, p in rows) <= edges[-1]
    assert np.array_equal(where.edges, diagram.edges)
    zeros, ones, gaps = [0] * bins, [0] * bins, [Fraction(0)] * bins
    for y, p in rows:
        k = bin_of(p + 0.0, edges)
        ones[k] += y
        zeros[k] += 1 - y
        gaps[k] += (y - Fraction(p)) / len(rows)
    assert (diagram.zeros.tolist(), diagram.ones.tolist()) == (zeros, ones)
    assert (where.counts == diagram.zeros + diagram.ones).all()
    assert where.gaps == pytest.approx([float(gap) for gap in gaps], **NEAR)


@pytest.mark.slow("tries many examples")
@settings(max_examples=60)
@given(ROWS | RARE)
def test_contributions_add_up_to_the_error(rows: list) -> None:
    where = plot.miscalibration(*columns(rows), resamples=20)
    tally = tally_of(rows)
    error = float(plain.smooth_calibration_error(exact(tally)) / len(rows))
    assert where.error == pytest.approx(error, **NEAR)
    assert where.overall >= -1e-12
    assert where.contributions.sum() + where.overall == pytest.approx(error, **NEAR)
    assert where.brier == pytest.approx(np.mean([(y - p) ** 2 for y, p in rows]), **NEAR)
    assert where.total == len(rows)
    assert where.bias == pytest.approx(np.mean([y - p for y, p in rows]), **NEAR)
    assert where.overall == where.base * where.bias
    assert where.base == 0 or where.f.min() < where.base < where.f.max()
    assert where.base == 0 or where.base not in where.f
    assert where.stretches == tc.stretches(tally, resamples=20).off
    for level in {0.0, where.base}:  # forecasts are too low, on balance, where f is above any level
        assert (
            sum((y - p) for y, p in rows if np.interp(p, where.p, where.f) > level + 1e-12) >= -1e-9
        )
        assert (
            sum((y - p) for y, p in rows if np.interp(p, where.p, where.f) < level - 1e-12) <= 1e-9
        )


@pytest.mark.slow("measures 200,000 rounds")
def test_stretches_say_where_and_by_how_much() -> None:
    y, p = model(size=200_000)
    low, high = plot.miscalibration(y, p).stretches
    assert low.low < 0.06
    assert high.high > 0.94
    assert (low.high, high.low) == pytest.approx((0.5, 0.5), abs=0.06)
    assert (low.gap, high.gap) == pytest.approx((0.3 / math.pi, -0.3 / math.pi), abs=0.02)


@pytest.mark.slow("simulates many data sets")
def test_chance_makes_no_stretch_and_waves_make_many() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    by_chance = [plot.miscalibration(rng.random(20_000) < p, p, resamples=59) for _ in range(20)]
    assert sum(bool(where.stretches) for where in by_chance) <= 3
    # 1 in 1,000
    rare = [
        plot.miscalibration(rng.random(20_000) < p / 500, p / 500, resamples=59) for _ in range(20)
    ]
    assert sum(bool(where.stretches) for where in rare) <= 3
    waves = plot.miscalibration(rng.random(20_000) < np.clip(p + 0.1 * np.sin(14 * p), 0, 1), p)
    signs = [stretch.gap > 0 for stretch in waves.stretches]
    assert signs[:4] == [True, False, True, False]
    assert waves.stretches[0].high == pytest.approx(math.pi / 14, abs=0.05)
    for stretch in waves.stretches[:4]:
        inside = (p >= stretch.low) & (p <= stretch.high)
        assert stretch.gap == pytest.approx(0.1 * np.sin(14 * p[inside]).mean(), abs=0.03)
    assert where_all_is_low().stretches[0].gap == pytest.approx(0.1, abs=0.01)


def test_real_weights_have_no_stretches() -> None:
    y, p = [1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75]
    assert plot.miscalibration(y, p, sample_weight=[20.0, 20.0, 20.0, 20.0]).stretches == ()
    # rounds, as many
    assert len(plot.miscalibration(y, p, sample_weight=[20, 20, 20, 20]).stretches) == 2


def where_all_is_low() -> plot.Miscalibration:
    rng = np.random.default_rng(0)
    p = 0.8 * rng.random(50_000)
    where = plot.miscalibration(rng.random(50_000) < p + 0.1, p)
    assert len(where.stretches) == 1
    assert (where.base, where.overall) == (0, 0)
    assert where.f.min() > 0
    return where


@pytest.mark.slow("resamples many times")
@pytest.mark.parametrize("size", [512, 513, 20_000])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_thinned_witness_is_still_one(size: int, scale: float) -> None:
    y, p = model(size=size)
    p = 0.4 + p * scale / 2
    where = plot.miscalibration(y, p)
    witness = tc.smooth_calibration_witness(y, p)
    assert len(where.p) <= 512
    assert (where.p[0], where.p[-1]) == (p.min(), p.max())
    assert (abs(np.diff(where.f)) <= np.diff(where.p) * (1 + 1e-9) + 1e-15).all()
    assert abs(np.interp(p, where.p, where.f) - witness(p)).max() <= 2 * np.ptp(p) / 511
    if size == 512:
        assert np.array_equal(where.f, witness.f)


@pytest.mark.slow("tries many examples")
@settings(max_examples=60)
@given(ROWS, st.data())
def test_tallies_and_weights_say_the_same_as_rows(rows: list, data: st.DataObject) -> None:
    y, p = columns(rows)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y))))
    long = np.repeat(y, times), np.repeat(p, times)
    tally = tc.Tally.from_predictions(*long)
    for function in (plot.reliability_diagram, plot.miscalibration):
        whole = function(*long, resamples=20)
        assert_same(whole, function(tally, resamples=20))
        assert_same(whole, function(y, p, sample_weight=times, resamples=20))
    names = ["even" if k % 2 else "odd" for k in range(len(y))]
    parts = {
        name: tally_of([row for row, its in zip(rows, names, strict=True) if its == name])
        for name in set(names)
    }
    ordered = {name: parts[name] for name in dict.fromkeys(names)}
    assert_same(
        plot.group_overview(y, p, names, resamples=20), plot.group_overview(ordered, resamples=20)
    )
    other = (p + y) / 2
    pair = plot.before_after(*(tc.Tally.from_predictions(y, q) for q in (p, other)), resamples=5)
    assert_same(plot.before_after(y, p, other, resamples=5), pair)


def assert_same(one: object, other: object) -> None:
    """Compare two results, whatever they hold."""
    if hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        for name in one.__dataclass_fields__:
            assert_same(getattr(one, name), getattr(other, name))
    else:
        assert np.array_equal(one, other, equal_nan=isinstance(one, np.ndarray))


def test_a_diagram_holds_the_curve_its_scores_and_the_band() -> None:
    y, p = model(size=500)
    diagram = plot.reliability_diagram(y, p, level=0.8, resamples=50, random_state=4)
    assert_same(diagram.curve, tc.reliability_curve(y, p))
    assert_same(diagram.band, tc.reliability_band(y, p, level=0.8, resamples=50, random_state=4))
    assert (diagram.brier, diagram.log) == (diagram.curve.brier, diagram.curve.log)
    assert diagram.total == 500
    assert plot.reliability_diagram(y, p, sample_weight=np.full(500, 0.5)).band is None


def test_a_band_of_many_forecasts_is_pooled_as_finely_as_the_picture_shows() -> None:
    y, p = model(size=50_000)
    band, rare = (plot.reliability_diagram(y, q, resamples=5).band for q in (p, p / 100))
    assert 1000 < len(band.p) <= 1024
    assert 100 < len(rare.p) <= 1024


@pytest.mark.parametrize(
    ("p", "low", "high"),
    [
        ([0.0, 0.25], 0, 0.25),
        ([0.01, 0.0171], 0, 0.02),
        ([0.0, 0.26], 0, 1),
        ([0.75, 0.9], 0.75, 1),
        ([0.97, 0.99], 0.97, 1),
        ([0.9701, 0.99], 0.97, 1),
        ([0.74, 1.0], 0, 1),
        ([0.0, 0.0], 0, 1),
        ([1.0, 1.0], 0, 1),
        ([5e-324, 0], 0, 1e-9),
        ([0.3, 0.4], 0, 1),
    ],
)
def test_edges_end_where_rare_forecasts_do(p: list[float], low: float, high: float) -> None:
    edges = plot.reliability_diagram([0, 1], p, resamples=1).edges
    assert (edges[0], edges[-1]) == pytest.approx((low, high), rel=1e-12)
    assert np.diff(edges) == pytest.approx((high - low) / 50, rel=1e-6)


def test_before_and_after_share_their_edges() -> None:
    y, p = model(size=300)
    pair = plot.before_after(y, p / 10, p, bins=7)
    assert pair.before.edges.tolist() == pair.after.edges.tolist() == (np.arange(8) / 7).tolist()
    assert pair.error_before == tc.smooth_calibration_error(y, p / 10)
    assert pair.error_after == tc.smooth_calibration_error(y, p)
    assert pair.after.brier.score == tc.brier_score(y, p)
    weighted = plot.before_after(y, p, p, sample_weight=np.full(300, 0.5))
    assert weighted.before.total == 150.0


def overview() -> plot.GroupOverview:
    y, p = model(size=6000)
    groups = np.array(["whole", "high", "low"])[
        np.where(np.arange(6000) < 3000, 0, np.where(p > 0.5, 1, 2))
    ]
    return plot.group_overview(y, p, groups)


def test_groups_have_their_own_figures() -> None:
    y, p = model(size=6000)
    found = overview()
    assert len(found) == 3
    for k, name in enumerate(found.names):
        mine = np.array(
            [
                {"whole": i < 3000, "high": i >= 3000 and p[i] > 0.5}.get(
                    name, i >= 3000 and p[i] <= 0.5
                )
                for i in range(6000)
            ]
        )
        assert found.rounds[k] == mine.sum()
        assert found.mean_outcome[k] == pytest.approx(y[mine].mean())
        assert found.mean_forecast[k] == pytest.approx(p[mine].mean())
        assert found.error[k] == tc.smooth_calibration_error(y[mine], p[mine])
        assert found.brier[k] == tc.brier_score(y[mine], p[mine])
        chance = tc.uncertainty(tc.smooth_calibration_error, y[mine], p[mine], resamples=300)
        assert found.chance[k] == pytest.approx(chance.if_calibrated, rel=0.2)
        assert found.chance[k] < found.chance_high[k] < found.error[k]
        assert found.p_value[k] < 1e-3
    assert list(found.p_value) == sorted(found.p_value)


@pytest.mark.slow("simulates many data sets")
def test_few_groups_are_accused_by_chance() -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(2, 2, 60_000)
    found = plot.group_overview(
        rng.random(60_000) < p, p, rng.integers(0, 300, 60_000), tested=300, resamples=50
    )
    assert 3 <= (found.p_value < 0.05).sum() <= 30  # 15 in 300
    assert abs((found.error > found.chance_high).mean() - 0.1) < 0.06
    assert found.adjusted.min() > 0.01


def test_p_values_are_shares_of_draws_and_never_too_small() -> None:
    """Of the first draws, or if they tell too little, by when the second exceeds what was seen."""
    assert _share(np.array([False] * 99), 99) == 0.01
    assert _share(np.array([True] * 9 + [False] * 90), 99) == 0.1
    assert _share(np.array([True] + [False] * 198), 99) == 0.01
    assert _share(np.array([True] + [False] * 198 + [True] * 5), 99) == 0.01
    rng = np.random.default_rng(0)
    seen = rng.random(20_000)
    draws = rng.random((20_000, 400)) >= seen[:, None]
    values = np.array(
        [_share(exceeds if exceeds[:50].sum() < 2 else exceeds[:50], 50) for exceeds in draws]
    )
    for level in (0.005, 0.01, 0.02, 0.04, 0.05, 0.2, 0.5):
        assert (values <= level).mean() <= level + 3 * math.sqrt(level / 20_000), level


@pytest.mark.slow("simulates many data sets")
@pytest.mark.parametrize(("rounds", "groups"), [(3, 200), (20, 100), (100, 40)])
def test_small_groups_of_rare_outcomes_are_not_accused_either(rounds: int, groups: int) -> None:
    """Any of them in at most one family of twenty, if all are calibrated."""
    accused = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.3, 3, rounds * groups)
        names = np.repeat(np.arange(groups), rounds)
        found = plot.group_overview(
            rng.random(len(p)) < p, p, names, tested=20, resamples=50, random_state=seed
        )
        accused += bool((found.adjusted < 0.05).any())
    assert accused <= 3  # four or more: one in fifty times


def test_adjusted_p_values_are_holms() -> None:
    found = overview()
    by_hand = [max(min(1.0, found.p_value[i] * (3 - i)) for i in range(k + 1)) for k in range(3)]
    assert found.adjusted == pytest.approx(by_hand, rel=1e-12)
    p = np.full(8, 0.5)
    tied = plot.group_overview([0, 1] * 4, p, ["a", "a", "b", "b", "c", "c", "d", "d"])
    assert (tied.adjusted <= 1).all()


def test_only_the_most_striking_groups_are_tested_and_they_come_first() -> None:
    rng = np.random.default_rng(9)
    p = rng.random(8000)
    names = np.arange(8000) % 40
    y = rng.random(8000) < np.where(names == 17, p**3, p)
    found = plot.group_overview(y, p, names, tested=5)
    assert found.names[0] == 17
    assert np.isfinite(found.p_value).tolist() == [True] * 5 + [False] * 35
    assert np.isfinite(found.adjusted).tolist() == [True] * 5 + [False] * 35
    assert found.adjusted[0] == pytest.approx(40 * found.p_value[0])
    assert sorted(found.names) == list(range(40))


def test_chance_that_knows_one_value_only() -> None:
    sure = {
        "right": tc.Tally([0.0, 1.0], [5, 0], [0, 5]),
        "wrong": tc.Tally([0.0, 1.0], [0, 5], [5, 0]),
    }
    found = plot.group_overview(sure | {"single": tc.Tally([0.5], [1], [0])})
    assert dict(zip(found.names, found.p_value, strict=True)) == {
        "wrong": 0.0,
        "right": 1.0,
        "single": 1.0,
    }


def test_weighted_groups_are_ordered_by_their_errors() -> None:
    y, p = [1, 1, 0, 1], [0.5, 0.5, 0.5, 0.9]
    found = plot.group_overview(y, p, ["a", "a", "b", "c"], sample_weight=[0.5, 1.5, 1.0, 0.25])
    assert found.names == ("a", "b", "c")
    assert np.isnan(found.p_value).all()
    assert found.rounds.tolist() == [2.0, 1.0, 0.25]
    assert plot.group_overview(y, p, ["a", "a", "b", "c"], sample_weight=[1, 1, 0, 0]).names == (
        "a",
    )
    assert plot.group_overview(
        [1, 1], [0.8, 0.5], ["heavy", "far"], sample_weight=[99.5, 0.5]
    ).names == (
        "far",
        "heavy",
    )


def test_groups_of_every_kind_of_name() -> None:
    found = plot.group_overview([0, 1, 1, 0], [0.5] * 4, ["x", None, 3, "x"])
    assert set(found.names) == {"x", None, 3}


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: plot.reliability_diagram([0, 1], [0.1, 0.2], bins=0), "bins"),
        (
            lambda: plot.reliability_diagram(
                [0, 1], [0.1, 0.2], sample_weight=[0.5, 0.5], level=1.0
            ),
            "level",
        ),
        (lambda: plot.reliability_diagram([0, 1], [0.1, 0.2], resamples=0), "resamples"),
        (lambda: plot.reliability_diagram([], []), "y_true"),
        (lambda: plot.miscalibration([0, 1]), "y_prob"),
        (lambda: plot.miscalibration([0, 2], [0.5, 0.5]), "y_true"),
        (lambda: plot.miscalibration([0, 1], [0.1, 0.2], bins=2.5), "bins"),
        (lambda: plot.before_after([0, 1], [0.1, 0.2]), "after"),
        (lambda: plot.before_after(tally_of([(0, 0.1)]), [0.1]), "after"),
        (lambda: plot.before_after(tally_of([(0, 0.1)]), tally_of([(0, 0.1)]), [0.2]), "after"),
        (lambda: plot.before_after([0, 1], [0.1, 0.2], [0.1, 1.2]), "y_prob"),
        (lambda: plot.group_overview([0, 1], [0.1, 0.2]), "groups"),
        (lambda: plot.group_overview([0, 1], [0.1, 0.2], ["a"]), "groups"),
        (lambda: plot.group_overview([0, 1], [0.1, 0.2], ["a", 0.5]), "groups"),
        (lambda: plot.group_overview({"a": tally_of([(0, 0.1)])}, [0.1]), "y_prob"),
        (lambda: plot.group_overview({"a": [0, 1]}), "y_true"),
        (lambda: plot.group_overview({}), "y_true"),
        (lambda: plot.group_overview([], [], []), "y_true"),
        (lambda: plot.group_overview([0], [0.1], ["a"], resamples=19), "resamples"),
    ],
)
def test_nonsense_is_refused_by_name(call: object, argument: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument


def test_results_cannot_be_changed() -> None:
    y, p = model(size=100)
    diagram, where = plot.reliability_diagram(y, p, resamples=2), plot.miscalibration(y, p)
    for array in (
        diagram.edges,
        diagram.zeros,
        diagram.ones,
        where.p,
        where.f,
        where.gaps,
        where.contributions,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        where.error = 0.0


@pytest.mark.slow("starts Python")
def test_computing_needs_no_matplotlib() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from truecast import plot\n"
        "y, p = [0, 1] * 20, [0.25, 0.75] * 20\n"
        "plot.reliability_diagram(y, p), plot.miscalibration(y, p), plot.before_after(y, p, p)\n"
        "plot.group_overview(y, p, ['a', 'b'] * 20)\n"
        "try: plot.miscalibration(y, p).draw()\n"
        "except ImportError as error: assert 'truecast[plot]' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
