"""Witnesses of the distance to calibration: what is accepted, and what is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

import truecast as tc
from truecast.distance import Witness, calibration_distance, verify_witness
from truecast.distance.witness import grouped

Y, P = [0, 1, 1, 0, 1], [0.1, 0.6, 0.7, 0.7, 0.9]


def witness(zeros: list[int], ones: list[int]) -> Witness:
    return Witness(np.array(zeros), np.array(ones))


def test_cost_of_a_witness_by_hand() -> None:
    # 0.1 to 0; zero at 0.7, ones at 0.6 and 0.7 to 2/3; 0.9 to 1
    one = witness([1, 1, 0], [0, 2, 1])
    exact = 0.1 + (0.7 - 2 / 3) * 2 + (2 / 3 - 0.6) + 0.1
    assert verify_witness(Y, P, one, total=True) == pytest.approx(exact, abs=1e-14)
    assert verify_witness(Y, P, one) == pytest.approx(exact / 5, abs=1e-14)
    assert verify_witness(
        tc.Tally.from_predictions(Y, P), witness=one, total=True
    ) == verify_witness(Y, P, one, total=True)
    assert one.values.tolist() == [0.0, 2 / 3, 1.0]
    assert one.forecasts(Y, P).tolist() == [0.0, 2 / 3, 2 / 3, 2 / 3, 1.0]
    assert repr(one) == "Witness(3 groups of 5 rounds)"


def test_forecasts_come_in_the_order_of_the_rounds() -> None:
    one = witness([1, 1, 0], [0, 2, 1])
    order = [4, 2, 0, 3, 1]
    y, p = np.array(Y)[order], np.array(P)[order]
    assert one.forecasts(y, p).tolist() == one.forecasts(Y, P)[order].tolist()


def test_array_as_a_witness() -> None:
    q = [0.0, 2 / 3, 2 / 3, 2 / 3, 1.0]
    assert verify_witness(Y, P, q, total=True) == pytest.approx(
        0.1 + 0.2 / 3 + 0.2 / 3 + 0.1, abs=1e-14
    )
    assert verify_witness(Y, P, q) * 5 == pytest.approx(
        verify_witness(Y, P, q, total=True), abs=1e-14
    )


@pytest.mark.parametrize("r", [3, 5, 7, 11, 49])
def test_distance_is_rounded_up_even_from_next_to_nothing(r: int) -> None:
    y, p = [1] + [0] * (r - 1), [1 / r] * r  # as close as doubles come to 1/r
    exact = r * abs(Fraction(1 / r) - Fraction(1, r))
    found = calibration_distance(y, p, total=True)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    for one in (found.witness, p):
        assert (
            exact <= Fraction(verify_witness(y, p, one, total=True)) <= exact + r * Fraction(1e-15)
        )
        assert exact / r <= Fraction(verify_witness(y, p, one))


@pytest.mark.parametrize(
    ("zeros", "ones", "rule"),
    [
        ([1, 2], [1, 2], "must have the 2 zeros of the rounds"),
        ([1, 1], [1, 1], "must have the 3 ones of the rounds"),
        ([3, -1], [1, 2], "must be from 0"),
        ([1, 1], [4, -1], "must be from 0"),
        ([1, 0, 1], [1, 0, 2], "no group without rounds"),
        ([1, 1], [1, 1, 1], "entries"),
        ([1, 1, 0], [1, 2], "entries"),
        ([], [], "must have the 2 zeros of the rounds"),
    ],
)
def test_groups_that_are_not_of_these_rounds_are_refused(
    zeros: list[int], ones: list[int], rule: str
) -> None:
    with pytest.raises(tc.InputError, match=rule) as caught:
        verify_witness(Y, P, witness(zeros, ones))
    assert caught.value.argument == "witness"


@pytest.mark.parametrize("y", [[0, 1, 1], [0, 1, 1, 0, 1, 1]])
def test_forecasts_of_other_rounds_are_refused(y: list[int]) -> None:
    with pytest.raises(tc.InputError, match="of the rounds"):
        witness([1, 1, 0], [0, 2, 1]).forecasts(y, [0.5] * len(y))


@pytest.mark.parametrize(
    ("q", "rule", "position"),
    [
        ([0.0, 0.6, 0.6, 0.6, 1.0], "of the 3 rounds with this forecast, 2 are ones", 1),
        ([0.0, 2 / 3, 2 / 3, 2 / 3, 0.9], "of the 1 rounds with this forecast, 1 are ones", 4),
        ([0.0, 2 / 3, 2 / 3, np.nextafter(2 / 3, 1), 1.0], "must be calibrated", 1),
        ([0.0, np.nan, 2 / 3, 2 / 3, 1.0], "between 0 and 1", 1),
        ([0.0, 0.5, 0.5, 1.5, 1.0], "between 0 and 1", 3),
        ([0.0, 1.0], "an entry for each of the 5", None),
        (None, "must", 0),
        ("none", "must", None),
    ],
)
def test_arrays_that_are_not_calibrated_are_refused(
    q: object, rule: str, position: int | None
) -> None:
    with pytest.raises(tc.InputError, match=rule) as caught:
        verify_witness(Y, P, q)
    assert caught.value.argument == "witness"
    assert caught.value.position == position


def test_arrays_need_rounds_in_an_order() -> None:
    with pytest.raises(tc.InputError, match="beside a Tally"):
        verify_witness(tc.Tally.from_predictions(Y, P), witness=[0.6] * 5)


def test_witness_that_was_found_cannot_be_changed() -> None:
    found = calibration_distance(Y, P).witness
    for column in (found.zeros, found.ones):
        assert column.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 5
    with pytest.raises(FrozenInstanceError):
        found.zeros = found.ones


def test_rounds_cannot_be_split_among_groups() -> None:
    with pytest.raises(tc.InputError, match="whole numbers"):
        verify_witness(
            [0, 1], [0.25, 0.75], Witness(np.array([0.75, 0.25]), np.array([0.25, 0.75]))
        )


def test_groups_out_of_order_are_refused() -> None:
    with pytest.raises(tc.InputError, match="increasing order of value, got 0.0 at position 1"):
        verify_witness([0, 1], [0.3, 0.6], witness([0, 1], [1, 0]))


def test_lists_will_do_as_groups() -> None:
    assert verify_witness(
        [0, 1], [0.25, 0.75], Witness([1, 0], [0, 1]), total=True
    ) == pytest.approx(0.5)  # type: ignore[arg-type]


def test_groups_of_billions_of_rounds_stay_apart() -> None:
    k = 2**32
    d = calibration_distance(tc.Tally([0.25, 0.75], [3 * k, k], [k, 3 * k]), total=True)
    assert (d.upper, len(d.witness.zeros), d.exact) == (0.0, 2, True)


def test_steps_of_a_chain_are_put_in_order_and_together() -> None:
    one = grouped(np.array([1, 1, 0, 2, 3]), np.array([1, 0, 2, 2, 1]))
    assert (one.zeros.tolist(), one.ones.tolist()) == ([1, 3, 3, 0], [0, 1, 3, 2])
