"""Laws of the distance to calibration, up to the rounding that its bounds state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import FORECASTS, columns, rounds, tally_of
from truecast.distance import Distance, calibration_distance, verify_witness

few = settings(max_examples=40)
Rows = list[tuple[int, float]]


def distance(*arguments: object, **options: object) -> Distance:
    found = calibration_distance(*arguments, total=True, **options)
    assert 0 <= found.lower <= found.upper
    return found


def same(one: Distance, other: Distance) -> bool:
    """Whether the bounds of both may be of one number."""
    return max(one.lower, other.lower) <= min(one.upper, other.upper)


@few
@given(st.lists(st.tuples(st.integers(0, 1), FORECASTS, FORECASTS), min_size=1, max_size=24))
def test_it_changes_no_faster_than_the_forecasts(rows: list[tuple[int, float, float]]) -> None:
    y, p, q = (np.array(column) for column in zip(*rows, strict=True))
    apart = np.abs(p - q).sum() * (1 + 1e-15)
    one, other = distance(y, p), distance(y, q)
    assert one.lower - other.upper <= apart
    assert other.lower - one.upper <= apart


@few
@given(rounds(most=40), st.integers(0, 2**40 - 1))
def test_parts_are_no_nearer_than_the_whole(rows: Rows, sides: int) -> None:
    parts = [[row for k, row in enumerate(rows) if sides >> k & 1 == side] for side in (0, 1)]
    assert distance(*columns(rows)).lower <= sum(
        distance(*columns(part)).upper for part in parts if part
    )


@few
@given(rounds(st.integers(0, 64).map(lambda k: k / 64) | st.sampled_from([2.0**-50, 1 - 2.0**-50])))
def test_it_is_the_same_from_the_other_end(rows: Rows) -> None:
    y, p = columns(rows)
    assert same(distance(y, p), distance(1 - y, 1 - p))


@few
@given(rounds())
def test_it_is_between_the_lower_distance_and_the_error_by_value(rows: Rows) -> None:
    tally = tally_of(rows)
    found = distance(tally)
    assert found.exact
    assert tc.lower_calibration_distance(tally, total=True).lower <= found.upper
    error = tc.calibration_error_by_value(tally, total=True)
    assert found.lower <= error * (1 + 1e-14)
    assert found.upper <= error * (1 + 1e-14) + len(rows) * 1e-14


@few
@given(rounds(), st.randoms(use_true_random=False))
def test_order_does_not_matter_nor_whether_rounds_are_tallied(rows: Rows, random: object) -> None:
    found = distance(*columns(rows))
    random.shuffle(rows)
    for other in (distance(*columns(rows)), distance(tally_of(rows))):
        assert (other.lower, other.upper) == (found.lower, found.upper)
        assert other.witness.zeros.tolist() == found.witness.zeros.tolist()
        assert other.witness.ones.tolist() == found.witness.ones.tolist()


@few
@given(
    st.lists(st.tuples(st.integers(0, 1), FORECASTS, st.integers(0, 4)), min_size=1, max_size=10)
)
def test_a_weight_is_a_number_of_rounds(rows: list[tuple[int, float, int]]) -> None:
    y, p, weights = (np.array(column) for column in zip(*rows, strict=True))
    assume(weights.any())
    found = distance(y, p, sample_weight=weights)
    repeated = distance(np.repeat(y, weights), np.repeat(p, weights))
    assert found.rounds == weights.sum()
    assert (found.lower, found.upper) == (repeated.lower, repeated.upper)


@few
@given(rounds(most=40))
def test_total_and_mean_are_of_the_same_bounds(rows: Rows) -> None:
    y, p = columns(rows)
    total, mean = distance(y, p), calibration_distance(y, p)
    assert total.totals == mean.totals == (total.lower, total.upper)
    assert total.means == mean.means == (mean.lower, mean.upper)
    assert Fraction(mean.lower) * len(y) <= Fraction(total.lower)
    assert Fraction(mean.upper) * len(y) >= Fraction(total.upper)
    assert mean.upper - mean.lower <= (total.upper - total.lower) / len(y) + 1e-15
    assert verify_witness(y, p, mean.witness) == mean.upper


@pytest.mark.slow("tries many examples")
@few
@given(rounds(most=40))
def test_forecasts_of_the_witness_are_calibrated_and_as_far(rows: Rows) -> None:
    y, p = columns(rows)
    found = distance(y, p)
    q = found.witness.forecasts(y, p)
    for value in np.unique(q):
        group = y[q == value]
        assert value == group.sum() / len(group)
    assert found.lower <= np.abs(p - q).sum() + len(y) * 1e-15
    assert np.abs(p - q).sum() <= found.upper
    assert abs(verify_witness(y, p, q, total=True) - found.upper) <= len(y) * 1e-14


@few
@given(
    rounds(least=2, most=60),
    st.sampled_from(["rtol", "time_limit", "memory_limit"]),
    st.floats(1e-9, 0.9),
)
def test_bounds_hold_however_early_the_search_ends(rows: Rows, name: str, size: float) -> None:
    y, p = columns(rows)
    limit = size * (1e5 if name == "memory_limit" else 0.001 if name == "time_limit" else 1)
    found, early = distance(y, p), distance(y, p, **{name: limit})
    assert early.lower <= found.upper
    assert found.lower <= early.upper
    assert early.ended in (
        "exact",
        {"rtol": "rtol", "time_limit": "time", "memory_limit": "memory"}[name],
    )
    assert early.exact == (early.ended == "exact")
    if name == "rtol":
        assert early.upper - early.lower <= max(size * early.upper, 1e-12 * len(y))
    assert verify_witness(y, p, early.witness, total=True) == early.upper
