"""Three classes jointly (docs/sperner.md): small worlds completely, and longer ones in lockstep."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import truecast as tc
from truecast.arena import Sperner
from truecast.reference.sperner import PlainSperner, chairman, joint_distance, triangles

THREE_QUARTERS = Fraction(3, 4)


# The schedule (theorem 1)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_every_schedule_keeps_its_shares(classes):
    """All weights with small denominators: within 1 - 1/(2K - 2) for more than a period."""
    limit = 1 - Fraction(1, 2 * classes - 2)
    worst = Fraction(0)
    for m in range(1, 8 if classes < 4 else 5):
        for cut in product(range(m + 1), repeat=classes - 1):
            parts = [b - a for a, b in zip((0, *sorted(cut)), (*sorted(cut), m), strict=True)]
            weights = [Fraction(part, m) for part in parts]
            seats = [0] * classes
            for n in range(1, 2 * m + 2):
                j = chairman(weights, seats)
                assert weights[j] > 0
                seats[j] += 1
                bias = max(abs(s - n * w) for s, w in zip(seats, weights, strict=True))
                assert bias <= limit
                worst = max(worst, bias)
            assert seats[0] - (2 * m + 1) * weights[0] <= limit
    assert worst == limit or classes != 2


def test_three_quarters_are_nearly_reached():
    """Nearly: no bound below 7/10 would hold."""
    m, reached = 20, Fraction(0)
    for vertex in {vertex for cell in triangles(m) for vertex in cell if min(vertex) > 0}:
        weights, seats = [Fraction(part, m) for part in vertex], [0, 0, 0]
        for n in range(1, m + 1):
            seats[chairman(weights, seats)] += 1
            biases = (abs(s - n * w) for s, w in zip(seats, weights, strict=True))
            reached = max(reached, *biases)
    assert Fraction(7, 10) < reached <= THREE_QUARTERS


# The walk (Sperner's lemma)


def labels_of(m):
    """Yield every labelling of the vertices that Sperner allows."""
    vertices = sorted({vertex for cell in triangles(m) for vertex in cell})
    choices = [[j for j in range(3) if vertex[j]] for vertex in vertices]
    for labels in product(*choices):
        yield dict(zip(vertices, labels, strict=True))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_walk_finds_a_cell_under_every_labelling(m):
    for labels in labels_of(m):
        full = [cell for cell in triangles(m) if {labels[v] for v in cell} == {0, 1, 2}]
        assert len(full) % 2 == 1

        class Given(Sperner):
            def label(self, vertex, labels=labels):
                return labels[vertex]

        cell = Given(grid=m).cell
        assert [labels[vertex] for vertex in cell] == [0, 1, 2]
        assert set(cell) in [set(one) for one in full]


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_walk_goes_on_as_it_would_go_from_the_beginning(m):
    """In lockstep with the reference, against coins and against the least likely class."""
    coins = np.random.default_rng(m).integers(0, 3, 60).tolist()
    forecaster, plain = Sperner(grid=m), PlainSperner(m)
    for t in range(60):
        p = forecaster.predict()
        assert sum(forecaster.exact) == 1
        assert forecaster.cell in plain.full_cells()
        fresh = Sperner(grid=m)
        fresh.load(forecaster.state() | {"issued": False})
        assert fresh.cell == forecaster.cell
        assert fresh._path == forecaster._path
        y = coins[t] if t % 2 else min(range(3), key=p.__getitem__)
        plain.credit(forecaster.cell[y], y)
        forecaster.observe(y)
        biases = [bias for vertex in plain.seats for bias in plain.bias(vertex)]
        assert max(map(abs, biases)) <= THREE_QUARTERS
        ways = Fraction(4 * (t + 1), 3 * m)
        assert forecaster.exact_bound == ways + sum(map(abs, biases))
        assert forecaster.exact_bound <= forecaster.bound <= forecaster.a_priori(t + 1)


# The theorem (theorem 2)


@pytest.mark.slow("plays all games of five rounds")
@pytest.mark.parametrize(("m", "rounds"), [(1, 5), (2, 5), (3, 4)])
def test_no_outcomes_pass_the_bound(m, rounds):
    for outcomes in product(range(3), repeat=rounds):
        forecaster, said = Sperner(grid=m), []
        for y in outcomes:
            forecaster.predict()
            said.append(forecaster.exact)
            forecaster.observe(y)
        assert joint_distance(said, outcomes) <= forecaster.exact_bound


def test_the_bound_is_two_thirds_of_a_power():
    for power in range(3, 9):
        rounds = 10**power
        bound = Sperner(horizon=rounds).a_priori(rounds)
        assert bound <= 2.0801 * rounds ** (2 / 3) + 2.25 * 0.9615 * rounds ** (1 / 3) + 4


# What users may do wrong, and saving


def test_order_input_and_state():
    forecaster = Sperner(horizon=1000)
    with pytest.raises(tc.OrderError, match="predict"):
        forecaster.observe(0)
    forecaster.predict()
    for outcome in (3, -1, 0.5, True, "home"):
        with pytest.raises(tc.InputError, match="outcome must be a whole number from 0 to 2"):
            forecaster.observe(outcome)
    with pytest.raises(tc.InputError, match="horizon or grid must be given"):
        Sperner()
    forecaster.observe(1)
    copy = Sperner.from_bytes(forecaster.to_bytes())
    for y in (0, 1, 2, 2):
        assert copy.predict() == forecaster.predict()
        copy.observe(y)
        forecaster.observe(y)
    assert copy.state() == forecaster.state()


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 2},
        {"rounds": True},
        {"issued": 1},
        {"seats": [[2, 0, 0, 0, 1, 0]]},
        {"seats": [[2, 1, 0, 1, 0, 0]]},
        {"seats": [[2, 0, 0, 1, 0]]},
        {"seats": {}},
        {"more": 1},
    ],
)
def test_states_that_no_rounds_lead_to_are_refused(change):
    forecaster = Sperner(grid=2)
    forecaster.predict()
    forecaster.observe(0)
    before = forecaster.state()
    with pytest.raises(tc.StateError):
        forecaster.load(before | change)
    assert forecaster.state() == before
