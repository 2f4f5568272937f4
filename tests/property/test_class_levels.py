"""The last resort of the guard for classes (docs/classes.md, theorem 2): whatever the fields, there
is a row that fits, or nearly."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast._core import find_level
from truecast.reference import class_guard
from truecast.reference.class_guard import ClassGuard, Row
from truecast.reference.class_levels import WHOLE, Levels
from truecast.reference.guard import (
    END,
    EVERYONE,
    UNIT,
    Field,
    angle_of,
    forecast_at,
    shape_at,
    spacing,
)

PART = 2.0**-20
HALF = math.pi / 2**13  # half the spacing of keys, at first
MOST = 14.7 * HALF  # that a row can spill for each of its groups


def without_moves(classes: int, budget: float) -> tc.ClassRecalibrator:
    """The guard alone: what it may not say, it says at a level."""
    made = tc.Recalibrator(classes=classes, hint=tc.hints.Identity(), nudge=False, budget=budget)
    made._desk.limit_moves(0, 0)
    return made


@pytest.fixture
def no_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_guard, "COARSE", 0)
    monkeypatch.setattr(class_guard, "FINE", 0)


def curves(kind: str, classes: int, cells: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(0, 1, (classes, cells + 1))
    if kind == "walk":
        noise = noise.cumsum(axis=1) / math.sqrt(cells)
    if kind == "ties":
        noise = noise.round()
    return noise + rng.choice([0, 2, 8]) * np.linspace(0.5, -0.5, cells + 1)


# What is found.


@settings(deadline=None)
@given(
    kind=st.sampled_from(["noise", "walk", "ties"]),
    classes=st.integers(2, 7),
    digits=st.integers(0, 6),
    seed=st.integers(0, 10**6),
)
def test_the_compiled_level_is_the_plain_one(
    kind: str, classes: int, digits: int, seed: int
) -> None:
    tilts = curves(kind, classes, 1 << digits, np.random.default_rng(seed))
    assert find_level(tilts) == Levels(tilts.tolist()).find()


@pytest.mark.parametrize(("classes", "digits"), [(2, 14), (3, 12), (6, 10), (12, 8)])
def test_cells_can_sum_to_one(classes: int, digits: int) -> None:
    """Theorem 2 (b): from one cell below the lower ends to the upper ends."""
    rng = np.random.default_rng(classes)
    places = np.array([forecast_at(i << (40 - digits)) for i in range((1 << digits) + 1)])
    last = 1 << digits
    for kind, _ in itertools.product(["noise", "walk", "ties"], range(3)):
        tilts = curves(kind, classes, last, rng)
        who, crossings = find_level(tilts)
        x = np.array(crossings)
        padded = np.hstack([np.full((classes, 1), np.inf), tilts, np.full((classes, 1), -np.inf)])
        ends = np.stack([padded[range(classes), x], padded[range(classes), x + 1]])
        ends[:, who] = tilts[who, x[who]]
        assert (ends.min(axis=0) <= tilts[who, x[who]]).all()
        assert (ends.max(axis=0) >= tilts[who, x[who]]).all()
        low = np.where(x > last, last, np.maximum(x - 2, 0))
        assert places[low].sum() <= 1 + 1e-15
        assert places[np.minimum(x, last)].sum() >= 1


@cache
def flat(classes: int, cells: int) -> Levels:
    return Levels([[0.0] * (cells + 1)] * classes)


@pytest.mark.slow("draws 40 crossings in each of 300 examples")
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_way_counts_if_it_sums_to_one_or_nearly(data: st.DataObject) -> None:
    """Lemma 1: all that does not count is above 1, and what counts is above it by less than one
    cell of each class."""
    classes = data.draw(st.sampled_from([2, 3, 5, 12, 40]))
    cells = data.draw(st.sampled_from([8, 64, 1 << 11]))
    levels = flat(classes, cells)
    xs = [data.draw(st.integers(0, cells + 1)) for _ in range(data.draw(st.integers(1, 3)))]
    # the others: what is left of 1, shared out, and the last takes all of it, or a little more
    left = WHOLE - sum(map(levels.place, xs))
    while len(xs) < classes:
        halves = data.draw(st.integers(0, 3)) if len(xs) < classes - 1 else 2
        part = max(left, 0) // (classes - len(xs)) * halves // 2
        key = angle_of(min(part / WHOLE, 1.0)) / math.pi * cells
        xs.append(min(round(key) + data.draw(st.integers(0, 2)), cells + 1))
        left -= levels.place(xs[-1])
    above = sum(map(levels.place, xs)) - WHOLE
    if not levels.counts(xs):
        assert above > 0
    else:
        inner = [x for x in xs if 2 <= x <= cells]
        assert above <= sum(levels.place(x) - levels.place(x - 1) for x in inner)


# What it costs.


def beyond(row: Row) -> float:
    """What w has beyond 1.0372 prices."""
    return float(row.w - 1.0372 * row.price)


@pytest.mark.slow("the plain guard adds up all knots in every look")
@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize("kind", ["zigzag", "noise", "few", "far"])
def test_any_fields_have_a_row_that_fits(kind: str) -> None:
    """Theorem 2 (b), without room: no more than 1.0372 prices and 14.7 half spacings a group."""
    for classes, groups in [(2, ()), (3, ("g",)), (6, ())]:
        rng = np.random.default_rng([classes, len(groups)])
        for _ in range(2):
            guard = ClassGuard(classes, budget=1.05)
            for name, k in itertools.product((EVERYONE, *groups), range(classes)):
                count = 3 if kind == "few" else 60
                keys = np.sort(rng.choice(4096, count, replace=False)) + rng.integers(0, 2)
                if kind == "far":
                    keys = np.concatenate([keys[:30] // 100, 4096 - keys[:30] // 100])
                sizes = rng.exponential(rng.choice([3.0, 100.0, 3e4]), len(keys))
                signs = np.where(np.arange(len(keys)) % 2, 1, -1)
                if kind != "zigzag":
                    signs = rng.choice([-1, 1], len(keys))
                residuals = {
                    int(key) << 28: round(size * sign * UNIT)
                    for key, size, sign in zip(keys, sizes, signs, strict=True)
                }
                guard.fields[name, k] = Field(residuals, counted=1e12)
            hint = rng.dirichlet(np.full(classes, 0.3)).tolist()
            row = guard.place_row(hint, groups)
            m = 1 + len(groups)
            assert row.moves == 0
            assert sum(share.p for share in row.shares) == pytest.approx(1, abs=1e-15 * classes)
            assert beyond(row) <= m * MOST + 2 * PART
            for share in row.shares:
                off = abs(angle_of(share.p) - share.key * math.pi / END)
                assert off <= HALF + 2**-26


@pytest.mark.slow("plays 48 games of 60 rounds, most of them at levels")
@pytest.mark.parametrize("hint", ["sharp", "few", "sure", "even", "rare"])
def test_without_moves_no_opponent_exceeds_the_budget(hint: str) -> None:
    """Theorem 2 (a) where every row that does not fit is found by counting."""
    for classes, budget, opponent in itertools.product(
        [3, 6], [1.05, 4.0], ["worst", "least", "group"]
    ):
        rng = np.random.default_rng([classes, len(opponent)])
        guard = without_moves(classes, budget)
        rows = {
            "sharp": rng.dirichlet(np.full(classes, 0.3), 60),
            "few": rng.dirichlet(np.full(classes, 0.5), 4)[rng.integers(0, 4, 60)],
            "sure": np.eye(classes)[rng.integers(0, classes, 60)],
            "even": np.full((60, classes), 1 / classes),
            "rare": rng.dirichlet(np.full(classes, 0.01), 60),
        }[hint]
        levelled = 0
        for row in rows:
            groups = ("g",) if opponent == "group" and rng.random() < 0.7 else ()
            said = guard.predict(row / row.sum(), group=groups)
            last = guard._desk.last
            assert last["energy"] * PART <= last["allowance"]
            assert last["spill"] * PART <= (1 + len(groups)) * MOST + PART
            assert last["moves"] == 0
            assert abs(said.sum() - 1) <= 8 * classes * 2.0**-53
            assert (said >= 0).all()
            for p, key in zip(said, last["keys"], strict=True):
                assert abs(angle_of(p) - key * math.pi / END) <= HALF + 2**-26
            levelled += np.abs(said - row / row.sum()).max() > 1e-9
            y = said.argmin() if opponent == "least" else np.argmax(last["tilts"])
            guard.observe(int(y))
        assert levelled > 10 or budget == 4.0
        proved = guard.certificate
        assert proved.lower_distance <= proved.a_priori


@pytest.mark.slow("the plain guard adds up all knots in every look")
@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_rows_at_levels_are_those_of_the_plain_guard(classes: int) -> None:
    rng = np.random.default_rng(classes)
    compiled, guard = without_moves(classes, 1.05), ClassGuard(classes, budget=1.05)
    hints = rng.dirichlet(np.full(classes, 0.4), 45)
    levelled = 0
    for hint in hints:
        groups = tuple(np.flatnonzero(rng.random(2) < 0.3).tolist())
        said = compiled.predict(hint / hint.sum(), group=groups)
        row = guard.place_row((hint / hint.sum()).tolist(), groups)
        last = compiled._desk.last
        assert said == pytest.approx([share.p for share in row.shares], abs=1e-9)
        assert last["keys"] == pytest.approx([share.key for share in row.shares], abs=64)
        assert last["worst"] == pytest.approx(row.w / PART, abs=4)
        assert last["spill"] == pytest.approx(row.spill / PART, abs=4)
        levelled += np.abs(said - hint).max() > 1e-6
        y = int(np.argmax(last["tilts"]))
        guard.commit_row(row)
        guard.settle_row(row, y)
        compiled.observe(y)
    assert levelled > 8


def test_what_is_said_beside_a_key_tilts_little() -> None:
    """K(k, k) (p (1 - p))^1/2 is at most 3.66, and so a spill at most 14.7 half spacings."""
    keys = range(0, END + 1, END >> 14)
    steep = [np.prod(shape_at(k)) * math.sqrt(forecast_at(k) * (1 - forecast_at(k))) for k in keys]
    assert 3.657 < max(steep) < 3.6595
    assert 4 * (3.66 + 56.18 / 4 * HALF) <= 14.7
    assert 14.7 * 1.734 <= 25.5
    assert 14.7 * HALF <= 0.0057


def test_rounded_forecasts_near_one_tilt_little() -> None:
    """Section 5: by less than 0.0128 prices and 0.01 half spacings, at any angle from 1."""
    for t, angle in itertools.product(2.0 ** np.arange(0, 30.5, 0.5), 2.0 ** np.arange(-40, 0.5)):
        half = math.pi * spacing(math.ceil(t)) / END / 2
        own = np.prod(shape_at(END - round(angle / math.pi * END)))
        apart = min(2.0**-52 / math.sin(angle), 2.0**-25)
        for said in np.linspace(max(angle - half, 0), min(angle + half, math.pi / 2), 5):
            left = math.sin(said / 2) ** 2
            more = 2 * left * (3.01 * t + 1.5) * own * apart
            assert more <= 0.0128 * left * (1 - left) * own + 0.01 * half


FULL = """
import resource
import numpy as np
import truecast as tc

guard = tc.Recalibrator(
    classes=400, hint=tc.hints.Identity(), nudge=False, budget=1.05, max_unresolved=1
)
guard._desk.limit_moves(0, 0)
even, sure = np.full(400, 1 / 400), np.eye(400)[0]
while np.abs(guard.predict(even) - even).max() < 1e-9:
    guard.observe(0)


def without_memory(call):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), limits[1]))
    try:
        call()
    except MemoryError:
        return
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    raise AssertionError("there was memory enough")


guard.observe(0)
ticket = guard.issue(sure, event=1)
before = guard.to_json()
without_memory(lambda: guard.issue(even, group="new", event=2))
assert guard.to_json() == before
guard.resolve(ticket, 0)
guard.predict(sure)
without_memory(lambda: guard.predict(even, group="new"))
assert not guard.groups
try:
    guard.observe(1)
except tc.OrderError:
    print("whole")
"""


@pytest.mark.slow("searches for a level of 400 classes")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_a_row_for_which_there_is_no_memory_changes_nothing() -> None:
    """Else `observe` would count a row that was never said, and a ticket or an event be lost."""
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)
    assert done.stdout == "whole\n", done.stderr
