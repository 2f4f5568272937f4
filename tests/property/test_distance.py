"""What the theory page says of CalDist itself, on the reference that the other tests rely on."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast.reference import calibration_distance

values = st.fractions(0, 1, max_denominator=7) | st.sampled_from(
    [Fraction(0), Fraction(1, 2), Fraction(1)]
)
rounds = st.lists(st.tuples(values, values, st.integers(0, 1), st.booleans()), max_size=16)


@pytest.mark.slow("tries many examples")
@given(rounds)
def test_distance_is_lipschitz_subadditive_symmetric_and_below_ece(
    rows: list[tuple[Fraction, Fraction, int, bool]],
) -> None:
    p, other, y = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    distance = calibration_distance(p, y)

    apart = sum((abs(a - b) for a, b in zip(p, other, strict=True)), Fraction(0))
    assert abs(distance - calibration_distance(other, y)) <= apart

    parts = [[row for row in rows if row[3] is side] for side in (False, True)]
    by_part = [
        calibration_distance([row[0] for row in part], [row[2] for row in part]) for part in parts
    ]
    assert distance <= sum(by_part)

    by_value: dict[Fraction, Fraction] = defaultdict(Fraction)
    for v, bit in zip(p, y, strict=True):
        by_value[v] += v - bit
    assert abs(sum(by_value.values())) <= distance <= sum(map(abs, by_value.values()))

    assert distance == calibration_distance([1 - v for v in p], [1 - bit for bit in y])
