from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc


@given(
    seed=st.integers(0, 1 << 32),
    streams=st.integers(0, 9),
    rounds=st.integers(0, 50),
    before=st.integers(0, 30),
    threads=st.sampled_from([None, 1, 2, 3, 16]),
    kind=st.sampled_from(["lower", "upper", "middle", "bent"]),
)
def test_streams_are_separate_forecasters(
    seed: int, streams: int, rounds: int, before: int, threads: int | None, kind: Any
) -> None:
    rng = np.random.default_rng(seed)
    start = tc.BentGrid(grid=8) if kind == "bent" else tc.AlmostOneStepAhead(grid=7, at=kind)
    start.forecast_many(rng.integers(0, 2, before))
    unchanged = start.to_json()
    outcomes = rng.random((streams, rounds)) < rng.random((streams, 1))
    result = tc.forecast_streams(start, outcomes, threads=threads)
    assert len(result) == streams
    assert result.forecasts.shape == (streams, rounds)
    for k in range(streams):
        alone = copy.copy(start)
        assert result.forecasts[k].tolist() == alone.forecast_many(outcomes[k]).tolist()
        assert result.forecaster(k).to_json() == alone.to_json()
        certificate = alone.certificate
        for name in ("deviation", "bias", "pooled", "bound"):
            exact = getattr(certificate, name)
            assert exact <= getattr(result, name)[k] <= exact * (1 + 1e-14) + 1e-300
        exact_bound = alone.deviation + min(alone.bias_sums)
        assert exact_bound <= Fraction(float(result.bound[k]))
        assert result.brier[k] == certificate.brier or before + rounds == 0
    assert start.to_json() == unchanged


@pytest.mark.parametrize(
    ("start", "rounds"),
    [
        (tc.AlmostOneStepAhead(grid=3), 140_000),  # a point is credited more often than 2^16 times
        (tc.BentGrid(grid=8), 140_000),
        (tc.AlmostOneStepAhead(grid=1 << 16), 9),  # more points than are packed
    ],
)
def test_long_streams_and_large_grids(start: tc.AlmostOneStepAhead, rounds: int) -> None:
    outcomes = np.random.default_rng(1).random((5, rounds)) < 0.5
    result = tc.forecast_streams(start, outcomes, threads=1)
    for k, row in enumerate(outcomes):
        alone = copy.copy(start)
        assert np.array_equal(result.forecasts[k], alone.forecast_many(row))
        assert result.forecaster(k).to_json() == alone.to_json()


@given(
    seed=st.integers(0, 1 << 32),
    streams=st.integers(0, 5),
    rounds=st.integers(0, 40),
    before=st.integers(0, 30),
    asked=st.booleans(),
    threads=st.sampled_from([None, 1, 3]),
)
def test_streams_on_the_arc_are_separate_forecasters(
    seed: int, streams: int, rounds: int, before: int, asked: bool, threads: int | None
) -> None:
    rng = np.random.default_rng(seed)
    start = tc.Arc()
    start.forecast_many(rng.integers(0, 2, before))
    if asked:
        start.predict()
    unchanged = start.to_json()
    outcomes = rng.random((streams, rounds)) < rng.random((streams, 1))
    result = tc.forecast_streams(start, outcomes, threads=threads)
    assert len(result) == streams
    assert result.forecasts.shape == (streams, rounds)
    start.observe(1) if asked else start.forecast_many([1])  # what it does later changes nothing
    for k in range(streams):
        alone = tc.Arc.from_json(unchanged)
        assert result.forecasts[k].tolist() == alone.forecast_many(outcomes[k]).tolist()
        assert result.forecaster(k).to_json() == alone.to_json()
        for name in ("bound", "lower_distance", "smooth_error"):
            assert getattr(result, name)[k] == getattr(alone.certificate, name)
        assert result.brier[k] == alone.certificate.brier or before + rounds == 0


def test_bad_input_is_refused() -> None:
    f = tc.AlmostOneStepAhead(grid=3)
    with pytest.raises(
        tc.InputError, match=r"outcomes must have shape \(streams, rounds\), got \(2,\)"
    ):
        tc.forecast_streams(f, [0, 1])
    with pytest.raises(tc.InputError, match=r"got 2 at position \(1, 0\)"):
        tc.forecast_streams(f, [[0, 1], [2, 1]])
    with pytest.raises(tc.InputError, match="^forecaster must be"):
        tc.forecast_streams(tc.OneStepAhead(grid=3), [[0]])
    for threads in (0, -1, 1.5, "2"):
        with pytest.raises(tc.InputError, match="^threads must be"):
            tc.forecast_streams(f, [[0]], threads=threads)
    with pytest.raises(tc.InputError, match="^stream must be a whole number from 0 to 0"):
        tc.forecast_streams(f, [[0]]).forecaster(1)
