from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import _core

N = _core.WHOLE


def play(g: tc.Guard, hint: float, y: int) -> float:
    said = g.predict(hint)
    g.observe(y)
    return said


def biases(g: tc.Guard) -> list[float]:
    return [a / N for a in g.biases.tolist()]


def test_first_rounds_by_hand() -> None:
    g = tc.Guard(slack=0, grid=2)
    steps = [
        # hint, said, outcome; then the bias of 1/2 and which cells are open
        (0.3, 0.3, 1, -0.5, [0, 1]),  # only 1/2 could take it: 0 takes no ones
        (0.3, 0.5, 1, -0.5, [0, 1]),  # the lower cell is closed; 1 takes it
        (0.6, 0.6, 0, 0.0, [1, 1]),
        (0.5, 0.5, 1, 0.0, [1, 1]),  # D + A grows alike at 1/2 and 1: the end towards the outcome is credited
        (0.9, 0.9, 0, 0.5, [1, 0]),
        (0.9, 0.5, 0, 0.5, [1, 0]),
    ]
    for hint, said, y, bias, open_cells in steps:
        assert play(g, hint, y) == said
        assert biases(g) == [0, bias, 0]
        assert g.open_cells.tolist() == open_cells
    parts = [0.2, 0.5, 0.1, 0.5, 0.4, 0.5]
    assert 0 <= g.certificate.deviation - sum(parts) < 6 / N


def test_a_hint_on_a_point_may_use_either_cell() -> None:
    g = tc.Guard(slack=0, grid=4)
    play(g, 0.625, 1)
    play(g, 0.625, 1)  # the cell above 1/2 takes no more ones
    assert biases(g) == [0, 0, -0.5, -0.25, 0]
    assert g.open_cells.tolist() == [1, 1, 0, 1]
    assert g.predict(0.5) == 0.5
    assert g._asked[:2] == (N // 4, N // 2)
    assert g.predict(float(np.nextafter(0.5, 1))) == 0.75  # inside the closed cell it may not


def test_slack_follows_hints_for_longer() -> None:
    followed = []
    for slack in (0.0, 1.0, 4.0):
        g = tc.Guard(slack=slack, grid=10)
        said = g.guard_many(np.full(100, 0.33), np.ones(100, int))
        followed.append(int((said == 0.33).sum()))
    assert followed == sorted(set(followed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": -0.5}, "slack must be a number from 0 to 1000, got -0.5"),
        ({"slack": 1000.5}, "slack must be a number from 0 to 1000"),
        ({"slack": float("nan")}, "slack must be a number from"),
        ({"slack": True}, "slack must be a number from"),
        ({"slack": "1"}, "slack must be a number from"),
        ({"grid": 0}, "grid must be a whole number from 1 to"),
        ({"grid": _core.MOST_CELLS + 1}, "grid must be a whole number from 1 to"),
        ({"grid": 2.0}, "grid must be a whole number from"),
        ({"late": -1}, "late must be a whole number from 0 to"),
        ({"late": 0.5}, "late must be a whole number from"),
        ({"late": 1 << 20, "slack": 1000}, "late must be such that"),
        ({"nudge": 1}, "nudge must be True or False, got 1"),
        ({"nudge": None}, "nudge must be True or False"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.InputError, match=message):
        tc.Guard(**options)


def test_extreme_options_work() -> None:
    for options in ({"slack": 1000}, {"slack": 3, "late": 1 << 20}, {"grid": _core.MOST_CELLS}, {"grid": 1}):
        g = tc.Guard(**options)
        assert play(g, 0.3, 1) == 0.3
        assert g.certificate.bound <= 1


def test_batches_write_where_they_are_told() -> None:
    rng = np.random.default_rng(3)
    hints, y = rng.random(500), rng.integers(0, 2, 500)
    loop, batch = tc.Guard(nudge=True), tc.Guard(nudge=True)
    said = [play(loop, hint, outcome) for hint, outcome in zip(hints.tolist(), y.tolist(), strict=True)]
    out = np.empty(500)
    assert batch.guard_many(hints, y, out=out) is out
    assert out.tolist() == said
    assert batch.to_json() == loop.to_json()
    before = batch.to_json()
    for bad in (np.empty(499), np.empty(500, np.float32), [0.0] * 500):
        with pytest.raises(tc.InputError, match="^out must be"):
            batch.guard_many(hints, y, out=bad)
    with pytest.raises(tc.InputError, match="hints must be between 0 and 1, got nan at position 2"):
        batch.guard_many([0.1, 0.2, float("nan")], [0, 1, 0])
    with pytest.raises(tc.InputError, match="hints must have an entry for each of the 2 outcomes"):
        batch.guard_many([0.1, 0.2, 0.3], [0, 1])
    assert batch.to_json() == before


def expected_cell(g: tc.Guard, hint: float) -> int:
    """Where the definition leads, from the biases."""
    points, bias, slack = g.points, g.biases, int(g.slack * N)
    ones, zeros = bias >= -slack, bias <= slack
    ones[0] = zeros[-1] = False
    takes = {1: ones[:-1] | ones[1:], 0: zeros[:-1] | zeros[1:]}
    is_open = takes[0] & takes[1]
    assert (g.open_cells == is_open).all()
    holding = [i for i in np.flatnonzero((points[:-1] <= hint * N) & (hint * N <= points[1:])).tolist() if is_open[i]]
    if holding:
        return holding[-1]
    i = int(np.flatnonzero((points[:-1] <= hint * N) & (hint * N <= points[1:]))[-1])
    others = np.flatnonzero(is_open)
    return int(others[others < i][-1] if takes[1][i] else others[others > i][0])


@pytest.mark.parametrize("m", [63, 64, 65, 4_096, 5_000, 1 << 18])
@pytest.mark.parametrize("closed", ["to ones", "to zeros", "on both sides", "nearly all"])
def test_the_open_cell_is_found_when_nearly_all_are_closed(m: int, closed: str) -> None:
    """A region of any size can close; the next open cell lies beyond it."""
    g = tc.Guard(slack=1, grid=m)
    state = np.zeros(m + 1, np.int64)
    inside = np.arange(1, m)
    few = N // m // 2  # so small that the limits of the bias are kept at every point
    if closed == "to ones":
        state[inside] = -N - few
    elif closed == "to zeros":
        state[inside] = N + few
    elif closed == "on both sides":
        state[inside] = np.where(inside < m // 3, -N - few, N + few)
    else:
        rng = np.random.default_rng(m)
        state[inside] = np.where(inside < m // 2, -N - few, N + few)
        state[rng.integers(1, m, 3)] = 0
    g.load(g.state() | {"biases": state.tolist(), "rounds": 3 * m})
    rng = np.random.default_rng(5)
    for hint in [0.0, 1.0, 0.5, *rng.random(6).tolist()]:
        i = expected_cell(g, hint)
        low, high = g.points[i : i + 2].tolist()
        said = g.predict(hint)
        assert g._asked == (low, high, said)
        assert said == min(max(hint, low / N), high / N)
        g.observe(int(rng.integers(2)))


@pytest.mark.parametrize("m", [60, 126, 4_090, 262_140])
def test_open_cells_are_kept_through_splits(m: int) -> None:
    """Also where the number of cells outgrows a word of 64, or 64 of these, or 64 of those."""
    rng = np.random.default_rng(m)
    g = tc.Guard(slack=1)
    width = N >> (m.bit_length() - 1)
    points = np.append(np.arange(0, N, width), N)
    points = np.sort(np.append(points, points[: m + 1 - len(points)] + width // 2))
    state = np.where(rng.random(m + 1) < 0.8, rng.choice([-N, N], m + 1), 0) + rng.integers(-1, 2, m + 1)
    state[[0, -1]] = 0
    spent = [N - 1] * m  # so that a cell is split as soon as it has to pay
    saved = {"points": points.tolist(), "biases": state.tolist(), "spent": spent, "rounds": m, "deviation": sum(spent)}
    g.load(g.state() | saved)
    assert g.cells == m
    for hint in rng.random(40).tolist():
        i = expected_cell(g, hint)
        g.predict(hint)
        assert g._asked[0] == g.points[i]
        g.observe(int(rng.integers(2)))
    assert g.cells > m + 10
    expected_cell(g, 0.5)


def test_ten_million_rounds_without_drift() -> None:
    rng = np.random.default_rng(11)
    rounds = 10_000_000
    hints = rng.integers(0, 1 << 12, rounds) / (1 << 12)
    y = (rng.random(rounds) < 0.2 + 0.5 * hints).astype(np.uint8)
    g = tc.Guard()
    said = g.guard_many(hints, y)
    # hints and points are multiples of 1 / N, so what is said is, too, and its sum can be taken exactly
    numerators = (said * N).astype(np.int64)
    assert (numerators / N == said).all()
    total = sum(int(part.sum()) for part in np.array_split(numerators, 10)) - N * int(y.sum())
    # the biases are the same sum over the credited points, which are D away in all
    assert abs(Fraction(total - int(g.biases.sum()), N)) <= g.deviation
    assert (g.cells - 1) * Fraction(1, 2) <= g.deviation
    assert len(g.to_json()) < 100 * g.cells + 1_000
    assert g.squared_error == pytest.approx(float(((said - y) ** 2).sum()), rel=1e-9)
    assert g.certificate.bound <= g.certificate.a_priori
    assert abs(float(total) / N) / rounds <= g.certificate.per_round


def test_sums_beyond_64_bits_are_exact_and_saved() -> None:
    """On one cell every round is credited to its outcome, so its deviation is known."""
    rounds = 10_000_000
    g = tc.Guard(grid=1)
    said = g.guard_many(np.full(rounds, 0.125), np.ones(rounds, np.uint8))
    assert (said == 0.125).all()
    assert g.deviation == rounds * Fraction(7, 8)
    assert g._deviation > 2**64
    assert g.biases.tolist() == [0, 0]
    assert g.spent.tolist() == [2**62 - 1]  # counted no further: it decides nothing on a fixed grid
    assert tc.Guard.from_json(g.to_json()).to_json() == g.to_json()


def test_late_outcomes_can_lift_a_bias_above_its_own_step() -> None:
    """1/4 is kept level with 1/2, which is filled time and again; the state is a lawful one (lemma 9)."""
    g = tc.Guard(slack=0, grid=4)
    late = [g._issue(0.25) for _ in range(2)]
    play(g, 0.25, 0)
    play(g, 0.25, 0)
    for made in late:
        g._resolve(*made, False)
    assert biases(g) == [0, 0.75, 0.5, 0, 0]
    play(g, 0.5, 1)
    late = [g._issue(0.25) for _ in range(2)]
    play(g, 0.25, 0)
    for made in late:
        g._resolve(*made, False)
    assert biases(g) == [0, 1, 1, 0, 0]  # more than 3 steps of 1/4, though no more than 2 outcomes were late
    assert tc.Guard.from_json(g.to_json()).to_json() == g.to_json()


@pytest.mark.parametrize("side", [0, 1])
def test_a_nudge_learned_while_many_outcomes_were_late_stays_finite(side: int) -> None:
    """Its sums are large then, and no outcome comes any more that would bring them down."""
    g = tc.Guard(nudge=True)
    late = [g._issue(float(side)) for _ in range(60_000)]
    for made in late[:30_000]:
        g._resolve(*made, not side)
    for _ in late[30_000:]:
        g._give_up()
    g.guard_many(np.full(2_000, float(not side)), np.full(2_000, not side))  # nothing is late any more, elsewhere
    for hint in (0.0, 5e-324, 1e-300, 0.3, 0.5, 1 - 2.0**-53, 1.0):
        assert 0.0 <= g.predict(hint) <= 1.0
    assert 0.0 < g.predict(0.5) < 1.0


def test_a_nudge_takes_out_what_a_hint_is_off_by() -> None:
    rng = np.random.default_rng(2)
    y = rng.random(20_000) < 0.4
    plain, nudged = tc.Guard(slack=2), tc.Guard(slack=2, nudge=True)
    off = [abs(float((g.guard_many(np.full(20_000, 0.45), y) - y).mean())) for g in (plain, nudged)]
    assert off[1] < off[0]
    assert nudged.config == {"slack": 2.0, "grid": None, "late": 0, "nudge": True}


def test_what_is_given_up_is_counted_at_its_worst_for_ever() -> None:
    g = tc.Guard()
    made = [g._issue(hint) for hint in (0.25, 0.875)]
    assert g.unknown == Fraction(3, 4) + Fraction(7, 8)
    g._give_up()
    g._resolve(*made[0], False)
    assert g.unknown == Fraction(7, 8)
    assert (g.unresolved, g.most_unresolved, g.given_up, g.rounds) == (0, 2, 1, 1)
    certificate = g.certificate
    assert (certificate.rounds, certificate.unresolved, certificate.unknown) == (1, 1, 0.875)
    assert certificate.bound == certificate.deviation + 0.875
    assert certificate.per_round == certificate.bound / 2


def test_minus_zero_is_said_as_zero() -> None:
    for nudge in (False, True):
        guard = tc.Guard(nudge=nudge)
        assert math.copysign(1.0, guard.predict(-0.0)) == 1.0
        assert np.copysign(1.0, guard.guard_many([-0.0], [0]))[0] == 1.0
