"""The exact worst of short games, against all outcome strings gone through one by one."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from players import Dice
from truecast.arena.exhaustive import distances, exhaustive
from truecast.arena.forecasters.running_mean import RunningMean
from truecast.ladder import CELL_RULES
from truecast.reference import calibration_distance


class Alternating:
    """Half the last outcome and a third, kept in nothing but JSON: a forecaster as a user might
    write it."""

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def predict(self) -> float:
        return self.last / 2 + 0.25

    def observe(self, outcome: Any, /) -> None:
        self.last = int(outcome)

    def to_json(self) -> str:
        return json.dumps(self.last)

    @classmethod
    def from_json(cls, text: str, /) -> Self:
        return cls(json.loads(text))


class Interval(RunningMean):
    """Says 0.2 to 0.8 for ever, and is judged by the end nearer to the outcome."""

    def _forecast(self) -> float:
        return 0.5

    def scored(self, outcome: int) -> float:
        return (0.2, 0.8)[outcome]


class Impressed(RunningMean):
    """Says 1/2 twice, and then for ever what the first outcome has taught it: another future with
    the same tally."""

    def _forecast(self) -> float:
        return 0.5 if self._rounds < 2 or not self._memory["ones"][0] else 0.9

    def _learn(self, p: float, y: int) -> None:
        if self._rounds == 0:
            self._memory["ones"][0] = y


def by_brute_force(f: Any, rounds: int) -> tuple[Fraction, tuple[int, ...], Fraction | None]:
    """The largest distance, the first string that reaches it, and the largest certificate."""
    most, outcomes, certified = Fraction(-1), (), None
    whole = getattr(f, "denominator", None)
    for y in product((0, 1), repeat=rounds):
        copy, said = type(f).from_json(f.to_json()), []
        for bit in y:
            p = copy.predict()
            p = copy.scored(bit) if hasattr(copy, "scored") else p
            said.append(Fraction(p) if whole is None else Fraction(p).limit_denominator(2 * whole))
            copy.observe(bit)
        d = calibration_distance(said, y)
        if d > most:
            most, outcomes = d, y
        if whole is not None:
            certified = max(certified or 0, copy.deviation + min(copy.bias_sums))
        elif hasattr(copy, "certificate"):
            certified = max(certified or 0, Fraction(copy.certificate.bound))
    return most, outcomes, certified


SMALL = [
    tc.AlmostOneStepAhead(grid=3),
    tc.AlmostOneStepAhead(grid=3, at="upper", cell="lowest"),
    tc.AlmostOneStepAhead(grid=2, at="middle", cell="highest"),
    tc.BentGrid(grid=4),
    tc.HorizonFree(),
    tc.HorizonFree(at="middle"),
    tc.Arc(),
    RunningMean(),
    Interval(),
    Impressed(),
    Alternating(),
]


@pytest.mark.parametrize("forecaster", SMALL, ids=lambda f: repr(f).split(" at ")[0])
def test_worst_is_that_of_all_strings(forecaster: Any) -> None:
    before = forecaster.to_json()
    for rounds in range(7):
        found = exhaustive(forecaster, rounds)
        assert (found.distance, found.outcomes, found.certificate) == by_brute_force(
            forecaster, rounds
        )
        assert found.rounds == rounds
        assert found.states <= 2**rounds
    assert forecaster.to_json() == before


def test_worst_from_where_a_forecaster_is() -> None:
    f = tc.AlmostOneStepAhead(grid=4)
    f.forecast_many([1, 1, 0])
    assert exhaustive(f, 5).distance == by_brute_force(f, 5)[0]
    assert exhaustive(f, 5).distance != by_brute_force(tc.AlmostOneStepAhead(grid=4), 5)[0]


FEW_VALUES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.5 + 2**-30, 0.75, 1.0]) | st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(FEW_VALUES, st.integers(0, 1)), max_size=7), min_size=1, max_size=6)
)
def test_distances_of_many_tallies_are_those_of_the_reference(
    games: list[list[tuple[float, int]]],
) -> None:
    tallies = [
        tuple(tuple(sorted(p for p, y in game if y == bit)) for bit in (0, 1)) for game in games
    ]
    exact = [
        calibration_distance([Fraction(p) for p, _ in game], [y for _, y in game]) for game in games
    ]
    np.testing.assert_allclose(distances(tallies), [float(d) for d in exact], rtol=0, atol=1e-12)


@pytest.mark.alike("plays all games")
@pytest.mark.parametrize(
    ("at", "cell"), [("lower", "lowest"), ("middle", "lowest"), ("upper", "highest")]
)
def test_bounds_are_reached_from_the_edge(at: str, cell: str) -> None:
    """docs/theory.md, theorem 5: all ones are the worst for a walk from the first cell, and reach
    the bound."""
    for rounds in range(2, 13):
        f = tc.AlmostOneStepAhead(horizon=rounds, at=at, cell=cell)
        assert exhaustive(f, rounds).distance == f.a_priori(rounds)


@pytest.mark.parametrize("at", ["lower", "upper", "middle"])
def test_mirrored_forecasters_have_the_same_worst(at: str) -> None:
    mirrored = {"lower": "upper", "upper": "lower", "middle": "middle"}[at]
    low = exhaustive(tc.AlmostOneStepAhead(grid=4, at=at, cell="lowest"), 10)
    high = exhaustive(tc.AlmostOneStepAhead(grid=4, at=mirrored, cell="highest"), 10)
    assert (low.distance, low.certificate, low.states) == (
        high.distance,
        high.certificate,
        high.states,
    )


@pytest.mark.slow("plays all games of a small world")
def test_worst_is_within_the_bounds() -> None:
    for rounds in (5, 9, 13):
        for f in (
            tc.AlmostOneStepAhead(horizon=rounds),
            tc.BentGrid(horizon=rounds),
            tc.HorizonFree(),
            tc.Arc(),
        ):
            worst = exhaustive(f, rounds)
            assert 0 < worst.distance <= worst.certificate <= f.a_priori(rounds)


@pytest.mark.alike("plays all games")
@pytest.mark.parametrize("at", ["lower", "upper", "middle"])
def test_the_page_of_worst_cases_tells_the_truth(at: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks-opponents.md").read_text(
        encoding="utf-8"
    )
    table = page.split(f'#### AlmostOneStepAhead(horizon=T, at="{at}"), by cell')[1].split("##")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][
        1:
    ]
    assert [int(cells[0]) for cells in rows] == list(range(1, 17))
    for cells in rows[:10]:
        makes = [
            tc.AlmostOneStepAhead(horizon=int(cells[0]), at=at, cell=cell) for cell in CELL_RULES
        ]
        found = [exhaustive(f, int(cells[0])) for f in makes]
        bound = makes[0].a_priori(int(cells[0]))
        far = [
            f"**{each.distance}**" if each.distance == bound else str(each.distance)
            for each in found
        ]
        assert cells[1:9] == [
            str(makes[0].grid),
            *far,
            *(str(each.certificate) for each in found),
            str(bound),
        ]


def test_refusals() -> None:
    with pytest.raises(tc.InputError, match="must not draw"):
        exhaustive(Dice(0), 3)
    with pytest.raises(
        tc.InputError, match=r"must have predict\(\), observe\(outcome\), to_json and from_json"
    ):
        exhaustive(object(), 3)
    with pytest.raises(tc.InputError, match="rounds"):
        exhaustive(RunningMean(), 31)
    with pytest.raises(tc.InputError, match="rounds"):
        exhaustive(RunningMean(), -1)
