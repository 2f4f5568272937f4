"""The forecasters' options, bounds and grids."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.forecasters.bent_grid import _climb, _left_half
from truecast.ladder import Ladder
from truecast.reference import bent_points

KINDS = [tc.AlmostOneStepAhead, tc.BentGrid]


def at_most(exact: Fraction, root_of: Fraction, plus: Fraction) -> bool:
    """Whether exact <= sqrt(root_of) + plus, without rounding."""
    return exact <= plus or (exact - plus) ** 2 <= root_of


@given(horizon=st.integers(1, 1 << 30))
def test_paper_grid_and_bound_for_any_horizon(horizon: int) -> None:
    f = tc.AlmostOneStepAhead(horizon=horizon)
    assert (f.grid - 1) ** 2 < horizon <= f.grid**2
    assert at_most(f.a_priori(horizon), Fraction(9 * horizon, 4), Fraction(0))  # 1.5 sqrt(T)
    # the paper's 2 sqrt(T) + 1
    assert at_most(f.a_priori(horizon), Fraction(4 * horizon), Fraction(1))


@pytest.mark.parametrize("horizons", [range(1, 400), range(9_990, 10_010), [10**6 + 1]])
def test_a_priori_bounds_at_every_horizon(horizons: Any) -> None:
    for horizon in horizons:
        for end in ("lower", "upper"):
            f = tc.AlmostOneStepAhead(horizon=horizon, at=end)
            assert f.a_priori(horizon) == Fraction(horizon, f.grid) + Fraction(f.grid - 1, 2)
            assert at_most(f.a_priori(horizon), Fraction(4 * horizon), Fraction(1))
        middle = tc.AlmostOneStepAhead(horizon=horizon, at="middle")
        assert abs(middle.grid - math.sqrt(horizon)) <= 0.5 + 1e-9
        assert middle.a_priori(horizon) ** 2 < horizon
        bent = tc.BentGrid(horizon=horizon)
        assert (
            float(bent.a_priori(horizon)) <= math.sqrt(horizon / 2) + math.log(horizon) / 4 + 1.75
        )
        if horizon >= 51:
            assert bent.a_priori(horizon) < middle.a_priori(horizon)


@pytest.mark.alike("tries all grids")
@pytest.mark.parametrize("end", ["lower", "upper", "middle"])
def test_best_grid_has_the_least_bound(end: Any) -> None:
    for horizon in [*range(1, 200), 5_000]:
        best = tc.AlmostOneStepAhead.best_grid(horizon, end)
        grids = range(1, 2 * math.isqrt(horizon) + 4)
        bounds = {m: tc.AlmostOneStepAhead(grid=m, at=end).a_priori(horizon) for m in grids}
        assert bounds[best] == min(bounds.values())


def test_best_bent_grid_has_the_least_bound() -> None:
    for horizon in (1, 2, 10, 100, 1_000, 10_000):
        best = tc.BentGrid.best_grid(horizon)
        bounds = {m: tc.BentGrid(grid=m).a_priori(horizon) for m in range(2, 100, 2)}
        assert bounds[best] == min(bounds.values())


@pytest.mark.parametrize(
    "bend",
    [
        *(*range(40), 100, 1_000, 12_000),
        pytest.param((1 << 17) - 1, marks=pytest.mark.slow("131,072 fractions")),
    ],
)
def test_bent_grid_in_integers_has_what_the_proof_needs(bend: int) -> None:
    """Lemma 6: gaps never grow towards the middle, g_j (g_j - g_{j-1}) <= kappa, and 1/2 - g_J <=
    kappa."""
    n = 1 << 30
    left, k = _left_half(bend)
    gaps = np.diff([*left, n // 2])
    assert len(gaps) == bend + 1
    assert gaps.min() >= 1
    assert (np.diff(gaps) <= 0).all()
    assert all(g * (g - before) <= k for before, g in pairwise(left))
    assert n * (n // 2 - left[-1]) <= k
    assert n * (n // 2 - _climb(bend, k - 1)[-1]) > k - 1
    h = 0.0
    for _ in range(bend):
        h = (h + math.sqrt(h * h + 4)) / 2
    real = (math.sqrt(h * h + 2) - h) ** 2 / 4
    assert -1e-15 < k / n**2 - real < 3 / n
    assert max(bend, 2 * bend - 1 - math.log(max(bend, 1))) - 1e-6 <= h * h <= 2 * bend


@pytest.mark.parametrize("bend", [*range(9), 40])
def test_bent_grid_is_the_references(bend: int) -> None:
    f = tc.BentGrid(grid=2 * bend + 2)
    points, kappa = bent_points(bend)
    assert [Fraction(g, f.denominator) for g in f.points.tolist()] == points
    assert f.kappa == kappa


@pytest.mark.slow("goes through 200,000 horizons")
def test_bent_bound_holds_for_all_horizons_to_200000() -> None:
    """The least kappa_J T + J + 5/4, over all J and in real numbers, is at most sqrt(T/2) + ln(T)/4
    + 1.16."""
    h, kappas = 0.0, []
    for _ in range(200):
        kappas.append((math.sqrt(h * h + 2) - h) ** 2 / 4)
        h = (h + math.sqrt(h * h + 4)) / 2
    rounds = np.arange(1, 200_001)[:, np.newaxis]
    bound = (np.array(kappas) * rounds + np.arange(200) + 1.25).min(axis=1)
    rounds = rounds[:, 0]
    assert (bound <= np.sqrt(rounds / 2) + np.log(rounds) / 4 + 1.16).all()


@pytest.mark.parametrize("kind", [*KINDS, tc.OneStepAhead])
@pytest.mark.parametrize(
    "options",
    [
        {"horizon": 0}, {"horizon": -4}, {"horizon": 2.0}, {"horizon": "9"}, {"horizon": True},
        {"horizon": math.nan},
        {"grid": 0}, {"grid": -1}, {"grid": 1.5}, {"grid": "3"}, {"grid": 1 << 40},
        {"horizon": 1 << 60},
        {"grid": 4, "cell": "nearest"}, {"grid": 4, "cell": None}, {"grid": 4, "horizon": 0},
    ],
    ids=str,
)  # fmt: skip
def test_bad_options_are_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(tc.InputError, match=r"^(horizon|grid|cell) must be "):
        kind(**options)


@pytest.mark.parametrize("kind", [*KINDS, tc.OneStepAhead])
def test_horizon_or_grid_is_needed_and_options_are_by_keyword(kind: Any) -> None:
    with pytest.raises(tc.InputError, match="^horizon or grid must be given"):
        kind()
    with pytest.raises(TypeError):
        kind(10)
    with pytest.raises(TypeError):
        kind(horizon=10, gird=3)


def test_other_bad_options() -> None:
    with pytest.raises(tc.InputError, match="^grid must be .*, got something of type int"):
        tc.AlmostOneStepAhead(grid=10**5000)
    with pytest.raises(
        tc.InputError, match="^at must be one of 'lower', 'upper', 'middle', got 'mid'"
    ):
        tc.AlmostOneStepAhead(grid=3, at="mid")
    with pytest.raises(tc.InputError, match="^grid must be even"):
        tc.BentGrid(grid=7)
    with pytest.raises(tc.InputError, match="^horizon must be a whole number"):
        tc.AlmostOneStepAhead.best_grid(0)
    with pytest.raises(tc.InputError, match="^at must be one of"):
        tc.AlmostOneStepAhead.best_grid(5, "x")
    with pytest.raises(tc.InputError, match="^horizon must be a whole number"):
        tc.BentGrid.best_grid(-1)


def test_cold_start_is_at_the_middle_or_the_edge() -> None:
    assert tc.AlmostOneStepAhead(horizon=10_000).predict() == 0.5
    assert tc.AlmostOneStepAhead(grid=5, at="middle").predict() == 0.5
    assert tc.AlmostOneStepAhead(grid=5, cell="lowest").predict() == 0.0
    assert tc.AlmostOneStepAhead(grid=5, cell="highest", at="upper").predict() == 1.0
    assert tc.BentGrid(grid=2).predict() == 1.0


def test_lowest_cell_is_sharper_on_rare_events_and_highest_on_common_ones() -> None:
    rare = np.random.default_rng(11).random((50, 2_000)) < 0.01
    for kind in KINDS:
        brier = {
            (rule, name): tc.forecast_streams(kind(horizon=2_000, cell=rule), y).brier.mean()
            for rule in ("walk", "lowest", "highest")
            for name, y in (("rare", rare), ("common", ~rare))
        }
        assert brier["lowest", "rare"] < brier["walk", "rare"] < brier["highest", "rare"]
        assert brier["highest", "common"] < brier["walk", "common"] < brier["lowest", "common"]


def test_smallest_grids() -> None:
    one = tc.AlmostOneStepAhead(horizon=1)
    assert one.grid == 1
    assert one.forecast_many([1, 0, 1]).tolist() == [0.0, 0.0, 0.0]
    assert one.certificate.bound == 2.0
    assert tc.BentGrid(horizon=1).grid == 2
    assert tc.BentGrid(grid=2).kappa == Fraction(1, 2)


def test_repr_builds_the_forecaster_anew() -> None:
    for f in (
        tc.AlmostOneStepAhead(horizon=50, at="middle"),
        tc.AlmostOneStepAhead(grid=9),
        tc.BentGrid(horizon=99),
    ):
        again = eval(
            repr(f), {"AlmostOneStepAhead": tc.AlmostOneStepAhead, "BentGrid": tc.BentGrid}
        )
        assert again.to_json() == f.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_can_be_written_to_a_given_array(kind: Any) -> None:
    y = np.random.default_rng(4).integers(0, 2, 30)
    out = np.empty(30)
    f, g = kind(grid=8), kind(grid=8)
    assert f.forecast_many(y, out=out) is out
    assert out.tolist() == g.forecast_many(y).tolist()
    before = f.to_json()
    frozen = np.empty(30)
    frozen.flags.writeable = False
    for bad in (
        np.empty(29),
        np.empty(30, np.float32),
        np.empty(60)[::2],
        np.empty((30, 1)),
        frozen,
        [0.0] * 30,
        3,
    ):
        with pytest.raises(
            tc.InputError, match="^out must be a writeable, contiguous float64 array of shape "
        ):
            f.forecast_many(y, out=bad)
        assert f.to_json() == before


def test_memory_that_changes_under_a_batch_is_no_danger() -> None:
    """Whatever another thread writes there, only the last bit of each byte counts."""
    f = tc.AlmostOneStepAhead(grid=10)
    y = np.zeros(5_000_000, np.uint8)
    checked = f._run  # what runs after the check, without it
    y[:] = np.random.default_rng(0).integers(0, 256, len(y))
    checked(y, np.empty(len(y)))
    g = tc.AlmostOneStepAhead(grid=10)
    g.forecast_many(y & 1)
    assert f.to_json() == g.to_json()


def test_out_must_not_share_memory_with_outcomes() -> None:
    buffer = np.zeros(800, np.uint8)
    with pytest.raises(tc.InputError, match="^out must not share memory with outcomes"):
        tc.AlmostOneStepAhead(grid=10).forecast_many(buffer[:100], out=buffer.view(np.float64))


@pytest.mark.filterwarnings("ignore:nanobind")
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_init_is_refused_and_changes_nothing(kind: Any) -> None:
    f = kind(grid=4)
    f.forecast_many([1, 0] * 50)
    before, certificate = f.to_json(), f.certificate
    with pytest.raises(TypeError):
        f.__init__(grid=2_000, cell="lowest", horizon=77)
    assert f.to_json() == before
    assert f.certificate == certificate


def test_the_core_refuses_shapes_that_do_not_fit() -> None:
    f = tc.AlmostOneStepAhead(grid=3)
    points = np.arange(4)
    good = np.zeros((2, 3), np.int64)
    misfits = (
        (points, good[:, :2], "walk"),
        (points[1:], good[:, :2], "walk"),
        (points[:1], good, "walk"),
    )
    for points_, says, rule in misfits:
        with pytest.raises((ValueError, IndexError)):
            Ladder(points_, 3, says, rule)
    with pytest.raises(ValueError, match="each outcome"):
        f._run(np.zeros(3, np.uint8), np.empty(2))
    for biases, cell in (
        (np.zeros(3, np.int64), 0),
        (np.ones(4, np.int64), 0),
        (np.zeros(4, np.int64), 3),
    ):
        with pytest.raises(ValueError, match="fit|no such cell"):
            f._restore(f._saved() | {"biases": biases.tolist(), "open_cell": cell})


def test_bounds_of_impossible_numbers_of_rounds_are_refused() -> None:
    for rounds in (-1, 1.5, None):
        with pytest.raises(tc.InputError, match="^rounds must be a whole number from 0"):
            tc.BentGrid(grid=4).a_priori(rounds)


def test_largest_horizons_have_their_bounds() -> None:
    assert tc.AlmostOneStepAhead.best_grid(1 << 47) <= 1 << 24
    assert tc.BentGrid.best_grid(1 << 36) < 1 << 18
    with pytest.raises(tc.InputError, match=f"^horizon must be a whole number from 1 to {1 << 36}"):
        tc.BentGrid(horizon=(1 << 36) + 1)


@pytest.mark.slow("waits for threads")
def test_a_batch_in_another_thread_refuses_company() -> None:
    f = tc.AlmostOneStepAhead(grid=10)
    y = np.tile(np.array([0, 1], np.uint8), 30_000_000)
    worker = threading.Thread(target=f.forecast_many, args=(y,))
    refused = False
    worker.start()
    while worker.is_alive():
        try:
            f.predict()
        except tc.OrderError as error:
            assert "another thread" in str(error)  # noqa: PT017
            refused = True
    assert refused
    assert f.rounds == len(y)


@pytest.mark.slow("plays a billion rounds")
def test_biases_are_exact_after_a_billion_rounds() -> None:
    """Count what was credited to each point from the forecasts and outcomes alone; the biases must
    agree."""
    m, chunk = 1_000, 1 << 22
    f = tc.AlmostOneStepAhead(grid=m)
    rng = np.random.default_rng(9)
    counts = np.zeros(2 * m, np.int64)
    rounds = 0
    while rounds < 10**9:
        length = min(chunk, 10**9 - rounds)
        y = np.unpackbits(np.frombuffer(rng.bytes(length // 8 + 1), np.uint8), count=length)
        if rng.random() < 0.1:
            y[: chunk // 8] &= y[-(chunk // 8) :]  # a stretch of other weather
        cells = (f.forecast_many(y) * m + 0.5).astype(np.int32)
        counts += np.bincount(2 * cells + y, minlength=2 * m)
        rounds += length
    zeros, ones = counts[::2], counts[1::2]
    credited_zeros, credited_ones = np.append(zeros, 0), np.append(0, ones)
    points = np.arange(m + 1)
    assert f.rounds == rounds == counts.sum()
    assert (
        f.biases.tolist()
        == (points * (credited_zeros + credited_ones) - m * credited_ones).tolist()
    )
    assert f.deviation == Fraction(int(ones.sum()), m)
    assert f.deviation + min(f.bias_sums) <= f.a_priori(rounds)


def test_deviation_carries_beyond_64_bits() -> None:
    f = tc.BentGrid(grid=2)
    state = f.state()
    start = (1 << 64) - 5
    state.update(rounds=1 << 40, deviation=start)
    f.load(state)
    f.forecast_many([0, 0, 1, 1])
    g = tc.BentGrid(grid=2)
    g.forecast_many([0, 0, 1, 1])
    assert f.deviation - g.deviation == Fraction(start, 2 * f.denominator)
    assert f._deviation >> 64 == 1
    assert tc.BentGrid.from_bytes(f.to_bytes()).deviation == f.deviation
