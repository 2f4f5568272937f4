"""The search for bad outcomes, and the adversary that climbs ladders."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import truecast as tc
from players import Dice
from truecast.arena.adversaries.leave_biased import LeaveBiased
from truecast.arena.exhaustive import exhaustive
from truecast.arena.forecasters.running_mean import RunningMean
from truecast.arena.search import best_response

MAKES: dict[str, Callable[[int], Any]] = {
    "lower": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds),
    "middle, lowest": lambda rounds: tc.AlmostOneStepAhead(
        horizon=rounds, at="middle", cell="lowest"
    ),
    "bent": lambda rounds: tc.BentGrid(horizon=rounds),
    "horizon-free": lambda rounds: tc.HorizonFree(),
    "horizon-free, middle": lambda rounds: tc.HorizonFree(at="middle"),
    "arc": lambda rounds: tc.Arc(),
    "mean": lambda rounds: RunningMean(),
}


@pytest.mark.slow("searches through many games")
@pytest.mark.parametrize("name", MAKES)
def test_search_finds_the_very_worst_of_short_games(name: str) -> None:
    for rounds, tries in ((8, 300), (12, 700)):  # all strings, and a sixth of them
        f = MAKES[name](rounds)
        worst, found = exhaustive(f, rounds), best_response(f, rounds, tries=tries)
        assert found.tried <= tries + 500  # a beam or a generation more
        assert found.distance.exact
        assert found.distance.totals[0] <= worst.distance + 1e-12
        assert found.distance.totals[1] >= worst.distance


@pytest.mark.slow("searches through many games")
def test_what_is_found_can_be_played_again() -> None:
    f = tc.BentGrid(horizon=100)
    before = f.to_json()
    found = best_response(f, 100, width=8, tries=60)
    assert f.to_json() == before
    game = tc.arena.play(f, tc.arena.Given(found.outcomes), 100)
    assert game.distance().upper == found.distance.upper
    assert found.bound == float(f.a_priori(100))
    assert found.ratio == found.distance.totals[0] / found.bound


@pytest.mark.slow("searches through many games")
def test_same_seed_same_outcomes_and_progress_only_grows() -> None:
    told: list[tuple[float, int, float]] = []
    f = tc.HorizonFree(at="middle")
    first, again = (
        best_response(f, 24, width=8, tries=400, seed=3, progress=lambda *said: told.append(said))
        for _ in range(2)
    )
    assert first.outcomes == again.outcomes
    assert first.tried == again.tried
    half = told[: len(told) // 2]
    assert [each[:2] for each in half] == [each[:2] for each in told[len(told) // 2 :]]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(half))
    assert half[-1][0] == pytest.approx(first.distance.totals[1], abs=1e-9)


@pytest.mark.slow("searches through many games")
def test_changes_improve_on_beam_and_constructions() -> None:
    f = tc.HorizonFree(at="middle")
    few, many = (
        best_response(f, 20, width=8, tries=tries).distance.totals[1] for tries in (1, 1_000)
    )
    assert many > few + 0.05


@pytest.mark.slow("searches through many games")
def test_starts_are_taken_up() -> None:
    start = exhaustive(RunningMean(), 13).outcomes
    found = best_response(RunningMean(), 13, width=2, tries=1, starts=[start])
    assert found.outcomes == start
    with pytest.raises(tc.InputError, match="starts must have 13 outcomes"):
        best_response(RunningMean(), 13, starts=[[0, 1]])


@pytest.mark.alike("searches until the limit")
@pytest.mark.parametrize("rounds", [30, 300, 3_000])
def test_time_limit_ends_the_search(rounds: int) -> None:
    start = time.monotonic()
    found = best_response(tc.HorizonFree(), rounds, tries=10**9, time_limit=0.3)
    assert time.monotonic() - start < 15  # with the distance of what was found, on a busy machine
    assert len(found.outcomes) == rounds
    assert found.distance.lower > 0


@pytest.mark.slow("searches through many games")
@pytest.mark.parametrize(("name", "share"), [("lower", 0.92), ("bent", 0.91), ("middle", 0.88)])
def test_search_comes_near_the_bounds_of_long_games(name: str, share: float) -> None:
    """docs/theory.md: these bounds are sharp for these forecasters but for terms that grow
    slower."""
    f = tc.AlmostOneStepAhead(horizon=400, at="middle") if name == "middle" else MAKES[name](400)
    found = best_response(f, 400, width=2, tries=20)
    assert found.distance.exact
    assert share <= found.ratio <= 1


def test_refusals() -> None:
    f = RunningMean()
    with pytest.raises(tc.InputError, match="must not draw"):
        best_response(Dice(0), 3)
    for other in (None, RunningMean, tc.Guard(), tc.Recalibrator()):
        with pytest.raises(tc.InputError, match=r"^forecaster must have predict\(\)"):
            best_response(other, 3)
    bad: list[dict[str, Any]] = [
        {"width": 1},
        {"tries": 0},
        {"seed": -1},
        {"time_limit": 0},
        {"progress": 3},
    ]
    bad += [{"starts": starts} for starts in (None, [[0, 1]], [[0, 1, 2]], ["011"], [0, 1, 1])]
    for options in bad:
        with pytest.raises(tc.InputError, match=f"^{next(iter(options))} must "):
            best_response(f, 3, **options)
    with pytest.raises(tc.InputError, match="rounds"):
        best_response(f, 0)
    assert best_response(f, 3).bound is None
    assert best_response(f, 3).ratio is None


def test_ctrl_c_during_a_distance_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from truecast.arena import yardstick

    def interrupted(*data: Any, **options: Any) -> Any:
        return dataclasses.replace(tc.calibration_distance(*data, **options), ended="interrupted")

    monkeypatch.setattr(yardstick, "calibration_distance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        best_response(RunningMean(), 50, width=2, tries=2)
    with pytest.raises(KeyboardInterrupt):
        tc.arena.play(RunningMean(), tc.arena.Coins(), 50).course()


@pytest.mark.parametrize(
    "make", [lambda: tc.AlmostOneStepAhead(horizon=900), lambda: tc.BentGrid(horizon=900)]
)
@pytest.mark.parametrize("towards", [0, 1])
def test_every_point_is_left_with_a_bias_of_one_sign(make: Callable[[], Any], towards: int) -> None:
    f = make()
    game = tc.arena.play(f, LeaveBiased(stay=3, look=8, towards=towards), 900)
    signs = np.sign(f.biases[1:-1])
    assert set(signs.tolist()) == {-1 if towards else 1}
    assert game.y[-1] == towards
    # a look at what comes saves up to a whole round a point: most biases are nearly as large as
    # they may be
    room = np.where(signs < 0, f.denominator - f.points[1:-1], f.points[1:-1])
    assert np.mean(abs(f.biases[1:-1]) / room) > 0.85


def test_longer_looks_leave_more_bias() -> None:
    left = []
    for look in (0, 2, 8, 32):
        f = tc.AlmostOneStepAhead(grid=50)
        tc.arena.play(f, LeaveBiased(look=look), 2_500)
        left.append(f.bias_sums[0])
    assert left == sorted(left)
    assert left[0] < left[1] < left[2]


def test_cells_become_as_fine_as_asked() -> None:
    f = tc.HorizonFree()
    fine = 0.004
    tc.arena.play(f, LeaveBiased(look=0, fine=fine), 20_000)
    points = f.points / f.denominator
    half = int(np.searchsorted(points, 0.5))
    g, widths = points[1 : half + 1], np.diff(points)[:half]
    assert (widths * g * (1.25 - g) <= fine).all()
    assert (f.biases[1:half] < 0).all()
    assert half > 20


def test_one_direction_mirrors_the_other() -> None:
    def game(at: str, cell: str, towards: int) -> list[int]:
        f = tc.AlmostOneStepAhead(grid=9, at=at, cell=cell)
        return tc.arena.play(f, LeaveBiased(stay=4, look=5, towards=towards), 200).y.tolist()

    assert game("lower", "lowest", 1) == [1 - y for y in game("upper", "highest", 0)]


def test_leave_biased_plays_against_ladders_only() -> None:
    with pytest.raises(tc.InputError, match="can play against"):
        tc.arena.play(RunningMean(), LeaveBiased(), 3)
    for options in ({"stay": -1}, {"look": -1}, {"fine": 0.0}, {"towards": 2}):
        with pytest.raises(tc.InputError):
            LeaveBiased(**options)


def test_leave_biased_stays_within_every_bound() -> None:
    for make in (*MAKES.values(), lambda rounds: tc.AlmostOneStepAhead(horizon=rounds, at="upper")):
        f = make(400)
        if not LeaveBiased().plays(f):
            assert isinstance(f, tc.Arc | RunningMean)
            continue
        for stay, fine, towards in ((0, 0.01, 1), (20, None, 0), (5, 0.003, 0)):
            f = make(400)
            game = tc.arena.play(f, LeaveBiased(stay, 4, fine, towards), 400)
            assert game.distance().totals[0] <= game.certificate.bound * (1 + 1e-12)
            assert game.certificate.bound <= game.certificate.a_priori <= 2 * math.sqrt(400) + 1
