"""The distance to calibration: what is refused, what is said on the way, and how a search ends."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import truecast as tc
from truecast._core import SearchLimits
from truecast.distance import Distance, calibration_distance, search, verify_witness
from truecast.distance.problem import Problem
from truecast.measures.prices import best_prices

Y, P = [1, 0, 1, 1], [0.6, 0.6, 0.7, 0.9]


def many(
    rounds: int, power: float = 1.0, grid: int = 0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, grid + 1, rounds) / grid if grid else rng.random(rounds)
    return (rng.random(rounds) < p**power).astype(np.int64), p


@pytest.mark.parametrize(
    ("y", "p", "distance"),
    [
        (Y, P, 4 / 15),
        ([0, 1], [0.9, 0.1], 0.8),
        ([0, 1], [1.0, 0.0], 1.0),
        ([0, 1], [0.1, 0.9], 0.2),
        ([1], [0.25], 0.75),
        ([0, 0, 0], [0.5, 0.25, 0.0], 0.75),
        ([0, 1, 0, 1], [0.5] * 4, 0.0),
        ([0, 1, 1], [0.5] * 3, 0.5),
        ([0, 1], [0.0, 1.0], 0.0),
        ([0, 0, 1, 1] * 250, [0.3] * 1000, 200.0),
    ],
)
def test_distance_by_hand(y: list[int], p: list[float], distance: float) -> None:
    found = calibration_distance(y, p, total=True)
    assert found.exact
    assert found.rounds == len(y)
    assert found.lower <= found.upper
    assert (found.lower, found.upper) == pytest.approx((distance, distance), abs=1e-11)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("rtol", bad)
            for bad in (-0.1, 1, 1.0, 2, math.nan, math.inf, True, False, "0", None, [0.1])
        ),
        *(
            (name, bad)
            for name in ("time_limit", "memory_limit")
            for bad in (0, -1, -0.5, math.nan, -math.inf, True, "1", None, [1])
        ),
        *(("progress", bad) for bad in (1, 0, None, "yes", math.nan)),
    ],
)
def test_bad_options_are_refused(name: str, value: object) -> None:
    with pytest.raises(tc.InputError, match=name) as caught:
        calibration_distance(Y, P, **{name: value})
    assert caught.value.argument == name


@pytest.mark.parametrize(
    "options", [{"rtol": 0}, {"rtol": np.float64(0)}, {"rtol": np.float32(0.5)}, {"time_limit": 1}]
)
@pytest.mark.parametrize("limit", [1e6, 10**7, 1e19, 1e300, np.int64(10**7)])
def test_good_options_are_accepted(options: dict[str, float], limit: float) -> None:
    assert (
        calibration_distance(
            [0, 1, 1, 0], [0.1, 0.3, 0.2, 0.7], memory_limit=limit, **options
        ).upper
        < 0.3
    )


def test_bad_rounds_are_refused() -> None:
    for y, p, name in (
        ([0, 1], [0.1, math.nan], "y_prob"),
        ([0, 2], [0.1, 0.2], "y_true"),
        ([0], [0.1, 0.2], "y_prob"),
    ):
        with pytest.raises(tc.InputError, match=name):
            calibration_distance(y, p)
    with pytest.raises(tc.InputError):
        calibration_distance([], [])
    with pytest.raises(tc.InputError, match="NP-hard") as caught:
        calibration_distance(Y, P, sample_weight=[0.5, 1.0, 1.5, 2.0])
    assert caught.value.argument == "sample_weight"
    with pytest.raises(tc.InputError, match="NP-hard"):
        calibration_distance(tc.Tally([0.5], [0.5], [1.5]))


def test_result_cannot_be_changed() -> None:
    found = calibration_distance(Y, P)
    with pytest.raises(FrozenInstanceError):
        found.lower = 0.5
    assert isinstance(found, Distance)
    assert [type(x) for x in (found.lower, found.upper, *found.totals, *found.means)] == [float] * 6
    assert (type(found.exact), type(found.rounds), type(found.ended)) == (bool, int, str)


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("power", [1.0, 3.0])
def test_progress_only_gets_closer(total: bool, power: float) -> None:
    said: list[tuple[float, float, float]] = []
    y, p = many(600, power)
    found = calibration_distance(y, p, progress=lambda *bounds: said.append(bounds), total=total)
    lower, upper, seconds = (np.array(column) for column in zip(*said, strict=True))
    for rising in (lower, -upper, seconds):
        assert (np.diff(rising) >= 0).all()
    assert len(said) > (power == 1)
    assert (lower <= upper).all()
    assert (lower[-1], upper[-1]) == (found.lower, found.upper)


def test_nothing_is_printed_unless_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    y, p = many(200)
    calibration_distance(y, p)
    assert capfd.readouterr() == ("", "")
    calibration_distance(y, p, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "distance to calibration" in err


@pytest.mark.parametrize(("power", "grid"), [(1.0, 0), (0.5, 0), (3.0, 20), (1.0, 100)])
def test_bounds_hold_when_a_search_is_stopped(power: float, grid: int) -> None:
    y, p = many(700, power, grid, seed=grid)
    found = calibration_distance(y, p, total=True)
    assert found.exact
    for ended, limits in (
        ("time", {"time_limit": 1e-9}),
        ("time", {"time_limit": 0.01}),
        ("memory", {"memory_limit": 1}),
        *(("memory", {"memory_limit": 128 * 700 * k}) for k in (1, 1.01, 1.5, 2, 2.01, 2.2, 2.5)),
        ("memory", {"memory_limit": 1e5}),
        ("memory", {"memory_limit": 3e5}),
        ("rtol", {"rtol": 0.5}),
        ("rtol", {"rtol": 0.01}),
    ):
        early = calibration_distance(y, p, total=True, **limits)
        assert early.lower <= found.upper
        assert found.lower <= early.upper
        assert early.ended in (ended, "exact")
        assert early.exact == (early.ended == "exact")
        assert verify_witness(y, p, early.witness, total=True) == early.upper
        if ended == "rtol":
            assert early.upper - early.lower <= limits["rtol"] * early.upper


def test_stopped_searches_say_why() -> None:
    y, p = many(700)
    assert calibration_distance(y, p, time_limit=1e-9).ended == "time"
    assert calibration_distance(y, p, memory_limit=1).ended == "memory"
    assert calibration_distance(y, p, rtol=0.9).ended == "rtol"


@pytest.mark.parametrize(
    ("ended", "memory", "seconds", "stop"),
    [("", 10**8, 100.0, 0), ("time", 10**8, 0.0, 0), ("stopped", 10**8, 100.0, 1)]
    + [("memory", memory, 100.0, 0) for memory in (-(10**6), 0, 1, 100, 5000)],
)
def test_kernel_stops_when_told(ended: str, memory: int, seconds: float, stop: int) -> None:
    y, p = many(300)
    problem = Problem.of(tc.Tally.from_predictions(y, p), np.array([0.0, 1.0]), np.zeros((2, 2)))
    for end in (problem, problem.mirrored()):
        limits = SearchLimits(memory, seconds)
        if stop:
            limits.stop()
        found = end.search(limits, cut=1e-4)
        assert found.ended == ended
        assert found.peak <= max(memory, 0)
        assert (found.witness is None) == bool(ended)


def of_bias(seed: int) -> tuple[Problem, dict[str, float]]:
    """A problem with the prices of its bias, and a budget just above what its best chain takes."""
    y, p = many(4000, seed=seed)
    nodes = np.array([0.0, 1.0])
    prices = np.array([nodes, nodes - 1]) * np.sign(p.sum() - y.sum())
    problem = Problem.of(tc.Tally.from_predictions(y, p), nodes, prices)
    distance = calibration_distance(y, p, total=True).upper
    return problem, {"budget": 1.01 * (distance - problem.worth) + 1e-9, "cut": 2.5e-7}


@pytest.mark.slow("searches among thousands of rounds")
@pytest.mark.parametrize(
    ("seed", "memory"),
    [
        (2, 2_000_000),  # ten million bytes without a bound on the bias of what is left
        (0, 4_000_000),  # forty million if steps of value 1 begin before the last zero
    ],
)
def test_searches_drop_what_is_too_biased(seed: int, memory: int) -> None:
    problem, options = of_bias(seed)
    found = problem.search(SearchLimits(10**9, 100.0), **options)
    assert found.peak < memory
    assert found.length == pytest.approx(options["budget"] / 1.01, abs=2e-3)


@pytest.mark.slow("searches among thousands of rounds")
def test_search_short_of_memory_still_finds_the_length() -> None:
    problem, options = of_bias(1)
    ample = problem.search(SearchLimits(10**9, 100.0), **options)
    short = problem.search(SearchLimits(int(0.7 * ample.peak), 100.0), **options)
    assert ample.witness is not None
    assert (short.ended, short.length, short.witness) == ("", ample.length, None)
    assert short.peak <= 0.7 * ample.peak


def test_bounds_get_closer_the_longer_the_search() -> None:
    y, p = many(1000)
    by_value = tc.calibration_error_by_value(y, p)
    stopped, loose, found = (
        calibration_distance(y, p, **o) for o in ({"memory_limit": 1}, {"rtol": 0.02}, {})
    )
    assert found.lower <= stopped.upper <= by_value * (1 + 1e-12)
    assert loose.upper - loose.lower <= 0.02 * loose.upper
    assert loose.upper < stopped.upper
    assert found.upper - found.lower <= 1e-9 * found.upper


INTERRUPTED = """
import signal, sys, threading, time, os
import numpy as np
from truecast.distance import calibration_distance, verify_witness
rng = np.random.default_rng(0)
p = rng.random(100_000)
y = rng.random(100_000) < p
# what runs in the background may ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
d = calibration_distance(y, p, time_limit=100)
assert d.ended == "interrupted" and not d.exact, d
assert 0 <= d.lower < d.upper < 0.5, d
assert verify_witness(y, p, d.witness) == d.upper
time.sleep(0.1)
sys.stdout.write("bounds")
"""


@pytest.mark.slow("searches until it is interrupted")
@pytest.mark.skipif(sys.platform == "win32", reason="no process can send itself a Ctrl-C there")
def test_interrupted_search_returns_its_bounds() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bounds", "")


def test_result_prints_what_is_known() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = rng.random(2000) < 1 - p
    exact, wide = calibration_distance(y[:50], p[:50]), calibration_distance(y, p, rtol=0.5)
    start = "distance to calibration"
    assert re.fullmatch(
        start + r" \S+ a round, exact; \S+ over 50 rounds; nearest: \d+ groups", str(exact)
    )
    between = r"from \S+ to \S+"
    rest = rf" {between} a round \(rtol\); {between} over 2,000 rounds; nearest found: \d+ groups"
    assert re.fullmatch(start + rest, str(wide))


def test_one_round_is_one() -> None:
    assert "over 1 round; nearest: 1 group" in str(found := calibration_distance([1], [0.25]))
    assert repr(found.witness) == "Witness(1 group of 1 round)"


def test_whole_floats_count_as_repeated_rounds() -> None:
    y, p, weight = [1, 0, 1, 0], [0.3, 0.3, 0.6, 0.9], [2, 1, 0, 3]
    found, expected = (
        calibration_distance(y, p, sample_weight=np.array(weight, kind)) for kind in (float, int)
    )
    assert str(found) == str(expected)
    assert found.totals == expected.totals
    with pytest.raises(tc.InputError, match="^sample_weight must be whole numbers, which count"):
        calibration_distance(y, p, sample_weight=[2, 1, 0.5, 3])


def test_bounds_that_cross_are_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_dear(tally: tc.Tally) -> tuple[np.ndarray, ...]:
        nodes, prices, values, atoms = best_prices(tally)
        return nodes, prices + 0.5, values, atoms

    monkeypatch.setattr(search, "best_prices", too_dear)
    rng = np.random.default_rng(4)
    p = rng.random(200)
    with pytest.raises(RuntimeError, match="report"):
        calibration_distance(rng.random(200) < p, p)
