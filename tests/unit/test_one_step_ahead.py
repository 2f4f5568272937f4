from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from truecast.ladder import CELL_RULES
from truecast.reference import PlainLadder, calibration_distance, uniform_points

outcomes = st.lists(st.integers(0, 1), max_size=40)


@given(y=outcomes, m=st.integers(1, 9), rule=st.sampled_from(list(CELL_RULES)))
def test_answers_are_the_references_and_nearly_calibrated(y: list[int], m: int, rule: str) -> None:
    """Theorem 2: ECE <= 3m/4 - 1 + 1/(4m) <= m + 1; theorem 5: CalDist <= (m - 1)/2."""
    osa, batch, plain = (
        tc.OneStepAhead(grid=m, cell=rule),
        tc.OneStepAhead(grid=m, cell=rule),
        PlainLadder(uniform_points(m), cell=rule),
    )
    answers, exact = [], []
    for bit in y:
        pair = osa.pair
        answers.append(osa.answer(bit))
        exact.append(plain.observe(bit))
        assert answers[-1] == pair[bit] == float(exact[-1])
    assert batch.forecast_many(y).tolist() == answers
    assert osa.rounds == batch.rounds == len(y)

    by_value: dict[Fraction, Fraction] = defaultdict(Fraction)
    for p, bit in zip(exact, y, strict=True):
        by_value[p] += p - bit
    error = sum(map(abs, by_value.values()), Fraction(0))
    assert osa.calibration_error == batch.calibration_error == error
    assert error <= Fraction(3 * m, 4) - 1 + Fraction(1, 4 * m) <= m + 1
    assert (
        calibration_distance(exact, y) <= osa.distance_bound <= osa.a_priori == Fraction(m - 1, 2)
    )


def test_options_are_those_of_the_forecaster() -> None:
    assert tc.OneStepAhead(horizon=10_000).grid == 100
    assert tc.OneStepAhead(grid=4, cell="highest").pair == (0.75, 1.0)
    for bad in (2, None, "1", np.array([1])):
        with pytest.raises(tc.InputError):
            tc.OneStepAhead(grid=4).answer(bad)
    with pytest.raises(tc.InputError):
        tc.OneStepAhead(grid=4).forecast_many([0, 2])
