"""A tally is what counting gives, however the rounds came."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from rounds import FORECASTS, columns, rounds, tally_of
from truecast import _core

ANY = rounds(least=0, most=40)


@given(ANY, st.randoms(use_true_random=False))
def test_tally_is_what_counting_gives_in_any_order(
    rows: list[tuple[int, float]], random: object
) -> None:
    tally = tally_of(rows)
    counted = Counter((p + 0.0, y) for y, p in rows)
    assert tally.p.tolist() == sorted({p for p, _ in counted})
    assert not np.signbit(tally.p).any()
    assert tally.zeros.tolist() == [counted[p, 0] for p in tally.p.tolist()]
    assert tally.ones.tolist() == [counted[p, 1] for p in tally.p.tolist()]
    assert tally.total == len(rows)
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert tally_of(rows) == tally


@pytest.mark.slow("tries many examples")
@given(ANY, ANY, ANY)
def test_merging_shards_is_one_pass(a: list, b: list, c: list) -> None:
    whole = tally_of(a + b + c)
    x, y, z = tally_of(a), tally_of(b), tally_of(c)
    assert (x + y) + z == x + (y + z) == whole == sum([z, x, y]) == tc.Tally.merge([y, z, x])
    assert x.update(*columns(b)) == x + y
    assert hash(x + y) == hash(y + x)
    running = tc.RunningTally()
    for row in a + b:
        running.update(*columns([row]))
    other = tc.RunningTally()
    other.update(*columns(c))
    running.merge(other)
    assert running.compute() == whole == running.compute()


@given(ANY)
def test_saved_tallies_come_back(rows: list) -> None:
    for tally in (
        tally_of(rows),
        tc.Tally.from_predictions(*columns(rows), sample_weight=np.full(len(rows), 0.5)),
    ):
        for copy in (
            tc.Tally.from_json(tally.to_json()),
            tc.Tally.from_bytes(tally.to_bytes()),
            pickle.loads(pickle.dumps(tally)),
        ):
            assert copy == tally
            assert not copy.p.flags.writeable


@given(st.lists(st.tuples(st.integers(0, 1), FORECASTS, st.integers(0, 3)), max_size=30))
def test_integer_weights_are_repeated_rounds(rows: list[tuple[int, float, int]]) -> None:
    y, p, w = ([row[k] for row in rows] for k in range(3))
    repeated = [(bit, forecast) for bit, forecast, times in rows for _ in range(times)]
    assert tc.Tally.from_predictions(y, p, sample_weight=np.array(w, np.int32)) == tally_of(
        repeated
    )
    weighted = tc.Tally.from_predictions(y, p, sample_weight=np.array(w) * 0.5)
    assert weighted.weighted == bool(rows)
    assert weighted.p.tolist() == tally_of(repeated).p.tolist()
    assert (weighted.ones * 2).tolist() == tally_of(repeated).ones.tolist()


@given(rounds(most=60), st.integers(1, 8))
def test_coarsening_moves_no_forecast_far_and_keeps_the_residuals(rows: list, cells: int) -> None:
    fine = tally_of(rows)
    coarse = fine.coarsened(cells)
    if len(fine.p) <= cells:
        assert coarse is fine
        return
    assert len(coarse.p) <= cells
    assert (np.diff(coarse.p) > 0).all()
    assert coarse.total == fine.total
    assert coarse.ones.sum() == fine.ones.sum()
    assert np.isclose(coarse.p @ coarse.weights, fine.p @ fine.weights, rtol=1e-12, atol=1e-15)
    nearest = np.abs(fine.p[:, None] - coarse.p[None, :]).min(axis=1)
    assert (nearest < 1 / cells).all()


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 5000, 300_000])
@pytest.mark.parametrize("kind", ["distinct", "gridded", "tied", "late", "sorted"])
def test_every_way_of_counting_agrees_with_numpy(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    if kind == "gridded":
        p = np.round(p, 3)
    elif kind == "tied":  # at too many places to count without sorting
        p = np.round(p, 4)
    elif kind == "late":  # few distinct forecasts, until the very end
        p[: n * 9 // 10] = 0.25
    elif kind == "sorted":
        p.sort()
    y = rng.integers(0, 2, n)
    values, index = np.unique(p, return_inverse=True)
    for outcomes in (y, y.astype(np.uint8), y.astype(bool), y.astype(float)):
        tally = tc.Tally.from_predictions(outcomes, p)
        assert np.array_equal(tally.p, values)
        assert np.array_equal(tally.ones, np.bincount(index, y).astype(int))
        assert np.array_equal(tally.zeros, np.bincount(index, 1 - y).astype(int))


def _clumped(kind: str, n: int) -> np.ndarray:
    """Return forecasts that lie so close, or so far apart, that leading bits tell little."""
    rng = np.random.default_rng(n)
    u = rng.random(n)
    return {
        "uniform": u,
        "near one": 1 - 2.0 ** (-60 * u),
        "near nothing": 2.0 ** (-1070 * u) * (u > 0.1),
        "neighbours": 0.3 + 2.0**-53 * rng.integers(0, 3 * n, n) * (u > 0.5) + 0.2 * (u > 0.9),
        "clumps": np.round(u, 1) * 0.9 + 2.0**-40 * rng.random(n),
        "one far off": np.where(np.arange(n) == n // 2, 5e-324, 0.9 + u / 1e9),
        "two": np.where(u > 0.5, 0.7, np.nextafter(0.7, 1)),
    }[kind]


@pytest.mark.parametrize("n", [1, 24, 25, 200, 2047, 2048, 40_000])
@pytest.mark.parametrize(
    "kind",
    ["uniform", "near one", "near nothing", "neighbours", "clumps", "one far off", "two"],
)
def test_threads_sort_rounds_alike_wherever_they_lie(n: int, kind: str) -> None:
    p, rng = _clumped(kind, n), np.random.default_rng(n + 1)
    y, weights = rng.integers(0, 2, n), rng.integers(0, 3, n)
    values, index = np.unique(p, return_inverse=True)
    ones, weighed = np.bincount(index, y), np.bincount(index, weights)
    for threads in (1, 2, 7):
        memory = np.empty(3 * n)
        assert _core.count_rounds(p, y, threads, memory) == len(values)
        found = memory[: 3 * len(values)].reshape(3, -1)
        assert np.array_equal(found[0], values)
        assert np.array_equal(found[2].view(np.int64), ones)
        assert np.array_equal(found[1:].view(np.int64).sum(axis=0), np.bincount(index))
        for kind_of in (np.int64, np.float64):  # forecasts without weight are left out
            room = np.empty(2 * n)
            distinct = _core.weigh_rounds(p, y, weights.astype(kind_of), threads, memory, room)
            found = memory[: 3 * distinct].reshape(3, -1)
            assert np.array_equal(found[0], values[weighed > 0])
            sums = found[1:].view(kind_of)
            assert np.array_equal(sums.sum(axis=0), weighed[weighed > 0])
            assert np.array_equal(sums[1], np.bincount(index, weights * y)[weighed > 0])


EXTREME = st.one_of(
    st.floats(1e-100, 1e100), st.sampled_from([0.0, 1e-100, 1e100, 0.1, 1.0, 1e16, 2.0**-53])
)


@pytest.mark.slow("tries many examples")
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.25, 1.0]), EXTREME), max_size=40),
    st.booleans(),
)
def test_sums_of_weights_are_exact_but_for_one_rounding(
    rows: list[tuple[int, float, float]], many: bool
) -> None:
    """Whether forecasts are few, and summed in a table, or many, and sorted."""
    crowd = [(0, (i + 0.5) / 5000, 1.0) for i in range(5000 if many else 0)]
    y, p, w = (np.array([row[k] for row in crowd + rows], float) for k in range(3))
    tally = tc.Tally.from_predictions(y, p, sample_weight=w)
    assert tally.total == 0 or len(tally.p) >= 5000 * many
    for place in {p for _, p, weight in rows if weight}:
        at = tally.p.tolist().index(place)
        for bit, sums in enumerate((tally.zeros, tally.ones)):
            assert sums[at] == math.fsum(weight for y, p, weight in rows if (y, p) == (bit, place))


@pytest.mark.parametrize("many", [0, 5000])
def test_a_weight_of_minus_zero_is_zero(many: int) -> None:
    """Whether forecasts are few, and summed in a table, or many, and sorted."""
    y = np.array([0, 1] * 2 + [0] * many)
    p = np.concatenate([[0.25, 0.25, 0.75, 0.75], (np.arange(many) + 0.5) / max(many, 1)])
    weights = np.array([-0.0, 1.0, 1.0, -0.0] + [1.0] * many)
    tally = tc.Tally.from_predictions(y, p, sample_weight=weights)
    at = np.searchsorted(tally.p, [0.25, 0.75])
    assert tally.zeros[at].tobytes() == np.array([0.0, 1.0]).tobytes()
    assert tally.ones[at].tobytes() == np.array([1.0, 0.0]).tobytes()


@pytest.mark.parametrize("n", [300, 5000, 300_000])
@pytest.mark.parametrize("places", [2, 4, 17])
@pytest.mark.parametrize("kind", [float, int])
def test_weighted_tallies_are_what_numpy_sums_in_any_order(n: int, places: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    p, y = np.round(rng.random(n), places), rng.integers(0, 2, n)
    # told apart by their last bits alone
    p[: n // 3] = np.nextafter(0.5, rng.integers(0, 2, n // 3))
    weights = rng.integers(0, 4, n) if kind is int else rng.random(n) * rng.integers(0, 2, n)
    tally = tc.Tally.from_predictions(y, p, sample_weight=weights)
    values, index = np.unique(p[weights > 0], return_inverse=True)
    assert np.array_equal(tally.p, values)
    for bit, sums in enumerate((tally.zeros, tally.ones)):
        expected = np.bincount(index, (weights * (y == bit))[weights > 0])
        np.testing.assert_allclose(sums, expected, rtol=1e-12)
    order = rng.permutation(n)
    assert tc.Tally.from_predictions(y[order], p[order], sample_weight=weights[order]) == tally
    p[n // 2] = 2.0
    with pytest.raises(
        tc.InputError, match=f"^y_prob must be between 0 and 1, got 2.0 at position {n // 2}$"
    ):
        tc.Tally.from_predictions(y, p, sample_weight=weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tie_costs_no_memory(weighted: bool) -> None:
    """Columns are cut where they are: neither copied, which doubles the peak, nor kept whole."""
    n = 1 << 19
    y, p = np.zeros(n), (np.arange(n) + 0.5) / n
    weights = {"sample_weight": np.full(n, 0.5)} if weighted else {}

    def peak() -> tuple[int, int]:
        tracemalloc.start()
        tally = tc.Tally.from_predictions(y, p, **weights)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return kept - 24 * len(tally.p), most

    _, distinct = peak()
    p[1] = p[0]
    spare, tied = peak()
    assert tied < distinct + n
    p[1::2] = p[::2]
    assert max(spare, peak()[0]) < n


@pytest.mark.parametrize("n", [10, 5000])
def test_a_bad_round_is_found_whatever_the_way_of_counting(n: int) -> None:
    rng = np.random.default_rng(0)
    for place in (0, n // 2, n - 1):
        p, y = rng.random(n), rng.integers(0, 2, n)
        p[place] = np.nextafter(1, 2)
        with pytest.raises(
            tc.InputError, match=f"^y_prob must be between 0 and 1, got .* at position {place}$"
        ):
            tc.Tally.from_predictions(y, p)
        p[place], y[place] = 0.5, 2
        with pytest.raises(
            tc.InputError, match=f"^y_true must be 0 or 1, got 2 at position {place}$"
        ):
            tc.Tally.from_predictions(y, p)
