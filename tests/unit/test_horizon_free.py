from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import _core

N = _core.SPLIT_DENOMINATOR


def over(numerators: np.ndarray, denominator: int) -> list[float]:
    return [a / denominator for a in numerators.tolist()]


def test_first_rounds_by_hand() -> None:
    f = tc.HorizonFree()
    steps = [
        # said, outcome; then points, their biases, the open cell, the deviation
        (0.5, 1, [0, 0.5, 1], [0, 0, 0], 1, 0.5),
        (1.0, 0, [0, 0.5, 0.75, 1], [0, 0.5, 0, 0], 0, 1.0),
        (0.0, 1, [0, 0.25, 0.5, 0.75, 1], [0, 0, 0, 0, 0], 1, 1.5),
        (0.25, 1, [0, 0.25, 0.375, 0.5, 0.75, 1], [0, 0, 0, -0.5, 0, 0], 3, 1.75),
        (0.75, 0, [0, 0.25, 0.375, 0.5, 0.625, 0.75, 1], [0] * 7, 3, 2.0),
    ]
    for said, y, points, biases, cell, deviation in steps:
        assert f.predict() == said
        f.observe(y)
        assert over(f.points, N) == points
        assert over(f.biases, N) == biases
        assert (f.open_cell, f.deviation) == (cell, deviation)
    assert f.certificate.bound == 2.0


def test_the_middle_never_says_0_or_1() -> None:
    f = tc.HorizonFree(at="middle")
    said = f.forecast_many([1] * 500 + [0] * 2_000)
    assert (said > 0).all()
    assert (said < 1).all()
    assert said[499] > 0.95
    assert said[-1] < 0.05


def test_a_cell_splits_when_its_deviation_reaches_the_threshold_and_not_before() -> None:
    f = tc.HorizonFree(at="middle", split=1.0)
    f.forecast_many([1])
    assert f.cells == 1
    assert over(f.spent, 2 * N) == [0.5]
    f.forecast_many([0])
    assert f.cells == 2
    assert over(f.spent, 2 * N) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "lower"}, "at must be one of 'outer', 'middle', got 'lower'"),
        ({"at": None}, "at must be one of"),
        ({"split": 0.3}, "split must be one of 1, 0.5, 0.25"),
        ({"split": 0}, "split must be one of"),
        ({"split": True}, "split must be one of"),
        ({"split": "0.5"}, "split must be one of"),
        ({"split": float("nan")}, "split must be one of"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.InputError, match=message):
        tc.HorizonFree(**options)


def test_batches_write_where_they_are_told() -> None:
    y = np.random.default_rng(1).integers(0, 2, 1_000)
    loop, batch = tc.HorizonFree(), tc.HorizonFree()
    said = []
    for outcome in y.tolist():
        said.append(loop.predict())
        loop.observe(outcome)
    out = np.empty(1_000)
    assert batch.forecast_many(y, out=out) is out
    assert out.tolist() == said
    assert batch.to_json() == loop.to_json()
    before = batch.to_json()
    for bad in (np.empty(999), np.empty(1_000, np.float32), np.empty(2_000)[::2], [0.0] * 1_000):
        with pytest.raises(tc.InputError, match="^out must be"):
            batch.forecast_many(y, out=bad)
    assert batch.to_json() == before


def credited(said: np.ndarray, y: np.ndarray) -> tuple[dict[int, list[int]], int]:
    """What each point was credited, [zeros, ones], and the deviation over 2 N, from what was said
    and happened.

    The middle of a dyadic cell tells the cell: over 2 N its lowest bit is half of the width.
    """
    counts: dict[int, list[int]] = {}
    deviation = 0
    values, which = np.unique(said, return_inverse=True)
    for middle, times in zip(
        (values * (2 * N)).astype(np.int64).tolist(),
        np.bincount(2 * which + y).reshape(-1, 2).tolist(),
        strict=True,
    ):
        half = middle & -middle
        for outcome, count in enumerate(times):
            point = (middle + half if outcome else middle - half) // 2
            counts.setdefault(point, [0, 0])[outcome] += count
            deviation += half * count
    return counts, deviation


@pytest.mark.slow("plays ten million rounds")
def test_ten_million_rounds_without_drift() -> None:
    rng = np.random.default_rng(7)
    rounds = 10_000_000
    rate = 0.5 + 0.4 * np.sin(np.arange(rounds) * (6 * math.pi / rounds))
    y = (rng.random(rounds) < rate).astype(np.uint8)
    f = tc.HorizonFree(at="middle")
    said = f.forecast_many(y)
    counts, deviation = credited(said, y)
    points = f.points.tolist()
    assert f.rounds == rounds
    assert f.deviation == Fraction(deviation, 2 * N)
    assert set(counts) <= set(points)
    expected = [0 if g not in counts else g * sum(counts[g]) - N * counts[g][1] for g in points]
    assert f.biases.tolist() == expected
    assert f.squared_error == pytest.approx(float(((said - y) ** 2).sum()), rel=1e-9)
    # every split has cost a threshold of deviation, so the state is as small as the certificate
    assert (f.cells - 1) * Fraction(1, 4) <= f.deviation
    assert len(f.to_json()) < 100 * f.cells
    certificate = f.certificate
    assert certificate.bound <= certificate.a_priori < certificate.paper


@pytest.mark.slow("fills a ladder")
def test_a_full_ladder_splits_no_more_and_is_saved() -> None:
    f = tc.HorizonFree(split=2.0**-10)
    m = _core.MOST_CELLS
    points = [N // m * i for i in range(m + 1)]
    f.load(
        f.state()
        | {
            "points": points,
            "biases": [0] * (m + 1),
            "spent": [0] * m,
            "rounds": 1,
            "open_cell": m // 2,
        }
    )
    f.forecast_many([0, 1] * 5_000)
    assert f.cells == m
    assert int(f.spent.max()) > 2 * N * 2**-10
    other = tc.HorizonFree(split=2.0**-10)
    other.load(f.state())
    assert other.state() == f.state()


def test_cells_are_not_split_below_one_part_in_n() -> None:
    f = tc.HorizonFree()
    points = [0, 1, *(2**k for k in range(1, 41))]
    state = {
        "points": points,
        "biases": [0] * 42,
        "spent": [2 * N // 4 - 1] + [0] * 40,
        "rounds": 1,
        "open_cell": 0,
    }
    f.load(f.state() | state | {"deviation": 2 * N // 4 - 1})
    f.forecast_many([1, 0])
    assert f.points.tolist() == points
    assert f.spent.tolist()[0] > 2 * N // 4
    assert tc.HorizonFree.from_json(f.to_json()).to_json() == f.to_json()
