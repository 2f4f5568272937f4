"""The bounds against exact CalDist on longer streams, and against the certificate on long ones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.arena import Adversary, Coins, Constant, Drift, GreedyCertificate, Periodic, Threshold
from truecast.forecasters.base import LadderForecaster
from truecast.ladder import CELL_RULES
from truecast.reference import PlainLadder, calibration_distance

OPPONENTS: dict[str, Adversary] = {
    "coin": Coins(),
    "rare": Coins(0.05),
    "alternating": Periodic((0, 1)),
    "period 5": Periodic((0, 0, 1, 0, 1)),
    "all ones": Constant(1),
    "all zeros": Constant(0),
    "drift": Drift(997),
    "threshold": Threshold(),
    "greedy": GreedyCertificate(),
}
END_OPTIONS = [
    {"at": end, "cell": rule} for end in ("lower", "upper", "middle") for rule in CELL_RULES
]


def forecasters(horizon: int) -> list[LadderForecaster]:
    return [tc.AlmostOneStepAhead(horizon=horizon, **options) for options in END_OPTIONS] + [
        tc.BentGrid(horizon=horizon, cell=rule) for rule in CELL_RULES
    ]


def play(f: LadderForecaster, opponent: str, rounds: int) -> tuple[list[float], list[int]]:
    game = tc.arena.play(f, OPPONENTS[opponent], rounds)
    return game.p.tolist(), game.y.tolist()


def check_chain(f: LadderForecaster, p: list[float], y: list[int]) -> None:
    """CalDist <= certificate <= a-priori bound, exactly; CalDist is that of the floats that were
    said."""
    certificate = f.deviation + min(f.bias_sums)
    rounding = Fraction(len(y), 1 << 54)
    assert calibration_distance([Fraction(x) for x in p], y) <= certificate + rounding
    assert certificate <= f.a_priori(len(y))


@pytest.mark.slow("searches for exact distances")
@pytest.mark.parametrize("opponent", OPPONENTS)
def test_exact_distance_within_certificate_against_opponents(opponent: str) -> None:
    for rounds in (29, 60):
        for f in forecasters(rounds):
            p, y = play(f, opponent, rounds)
            check_chain(f, p, y)


@settings(max_examples=60)
@given(
    y=st.lists(st.integers(0, 1), min_size=1, max_size=40),
    grid=st.integers(1, 9),
    which=st.integers(0, len(END_OPTIONS)),
)
def test_exact_distance_within_certificate_on_any_outcomes(
    y: list[int], grid: int, which: int
) -> None:
    bent = which == len(END_OPTIONS)
    f = (
        tc.BentGrid(grid=2 * grid)
        if bent
        else tc.AlmostOneStepAhead(grid=grid, **END_OPTIONS[which])
    )
    check_chain(f, f.forecast_many(y).tolist(), y)


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_certificate_within_a_priori_bound_on_long_streams(opponent: str) -> None:
    rounds = 3_000
    for f in forecasters(rounds):
        play(f, opponent, rounds)
        certificate = f.certificate
        assert f.deviation + min(f.bias_sums) <= f.a_priori(rounds)
        assert certificate.bound <= certificate.a_priori < 2 * math.sqrt(rounds) + 1


@pytest.mark.slow("searches for exact distances")
def test_more_rounds_than_the_horizon_stay_certified() -> None:
    for f in forecasters(16):
        p, y = play(f, "greedy", 50)
        check_chain(f, p, y)
        assert f.certificate.a_priori >= float(f.a_priori(50))


@pytest.mark.parametrize("rounds", [6, 13, 40])
def test_all_ones_from_the_lowest_cell_attain_the_uniform_bounds(rounds: int) -> None:
    """Theorem 5 cannot be improved: the only calibrated forecast of all ones is 1."""
    for end in ("lower", "middle"):
        for m in range(1, 7):
            f = tc.AlmostOneStepAhead(grid=m, at=end, cell="lowest")
            p = f.forecast_many([1] * rounds)
            exact = [Fraction(round(2 * m * x), 2 * m) for x in p]
            assert calibration_distance(exact, [1] * rounds) == f.a_priori(rounds)


@pytest.mark.slow("tries many examples")
@given(
    inner=st.sets(st.fractions(0, 1, max_denominator=30), max_size=8),
    y=st.lists(st.integers(0, 1), max_size=60),
    rule=st.sampled_from(list(CELL_RULES)),
    place=st.sampled_from(["lower", "upper", "middle", "outer"]),
)
def test_lemma_4_on_any_grid(inner: set[Fraction], y: list[int], rule: str, place: str) -> None:
    """The biases cost at most the largest sum of weights, on grids of any shape; and CalDist obeys
    the certificate."""
    points = sorted({Fraction(0), Fraction(1), *inner})
    ladder = PlainLadder(points, place, rule)
    said = []
    for bit in y:
        said.append(ladder.predict())
        ladder.observe(bit)
    biased = [(g, a) for g, a in zip(points, ladder.alpha, strict=True) if a]
    v = Fraction(sum(a < 0 for _, a in biased), max(len(biased), 1))
    assert min(ladder.bias(), ladder.pooled()) <= sum(v * (1 - v) + abs(g - v) for g, _ in biased)
    if len(y) <= 20:
        assert calibration_distance(said, y) <= ladder.certificate()


@pytest.mark.slow("searches for exact distances")
@pytest.mark.parametrize("opponent", ["coin", "greedy"])
def test_exact_distance_within_certificate_after_120_rounds(opponent: str) -> None:
    for f in (tc.AlmostOneStepAhead(horizon=120, at="middle"), tc.BentGrid(horizon=120)):
        check_chain(f, *play(f, opponent, 120))


def test_contradicting_every_forecast_makes_ece_half_the_rounds() -> None:
    """Section 7 of the theory page: no deterministic forecaster escapes, so ECE by value is not
    what is promised."""
    for f in forecasters(300):
        p, y = play(f, "threshold", 300)
        by_value: dict[float, Fraction] = defaultdict(Fraction)
        for said, bit in zip(p, y, strict=True):
            by_value[said] += Fraction(said) - bit
        assert sum(map(abs, by_value.values())) >= 150
        assert f.certificate.bound < 2 * math.sqrt(300) + 1


def climb(f: LadderForecaster, tries: int) -> Iterator[int]:
    """Down to cell 0, then up to the top, leaving each point with a bias as low as some tries about
    it give."""
    while f.open_cell > 0:
        yield 0
    for j in range(1, f.grid):
        enough = -0.95 * (f.denominator - int(f.points[j]))
        for _ in range(tries):
            if f.open_cell == j and f.biases[j] <= enough:
                break
            yield int(f.open_cell < j)
        while f.open_cell < j:
            yield 1


@pytest.mark.parametrize("kind", ["middle", "bent"])
def test_an_opponent_comes_close_to_the_bound(kind: str) -> None:
    """The constants 1 and 0.7071 are sharp for these forecasters: section 5 of the theory page."""
    rounds = 400_000
    f: LadderForecaster = (
        tc.BentGrid(horizon=rounds)
        if kind == "bent"
        else tc.AlmostOneStepAhead(horizon=rounds, at="middle")
    )
    # sum of outcomes less forecasts; calibrated forecasts have none, so CalDist is at least this
    surplus = 0.0

    def go(y: int) -> None:
        nonlocal surplus
        surplus += y - f.predict()
        f.observe(y)

    if kind == "bent":  # pay kappa a round, about a point below the middle
        for _ in range(rounds - 40 * f.grid):
            go(int(f.open_cell < f.grid // 4))
    for y in climb(f, tries=40):
        go(y)
    ones = np.ones(rounds - f.rounds, np.uint8)
    surplus += float((ones - f.forecast_many(ones)).sum())
    assert f.rounds == rounds
    certificate = f.certificate
    assert 0.93 * certificate.a_priori < surplus <= certificate.bound <= certificate.a_priori
