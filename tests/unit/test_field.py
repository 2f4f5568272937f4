"""The field of sparse knots, deep and crowded: what the compiled guard reads off it is what plain
sums say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import ledger
from truecast.columns import packed
from truecast.reference.guard import END, EVERYONE, PARTS, UNIT, ArcGuard

CORNERS = [0, 1, 2, 3, END - 2, END - 1, END, END // 2 - 1, END // 2, END // 2 + 1, END // 3]
KEYS = st.sampled_from(CORNERS) | st.integers(0, END) | st.integers(0, 4095).map(lambda k: k << 28)
RESIDUALS = st.integers(-3 * UNIT, 3 * UNIT).filter(bool)
KNOTS = st.dictionaries(KEYS, RESIDUALS, max_size=60)
MANY_KNOTS = st.dictionaries(KEYS, RESIDUALS, min_size=20, max_size=60)


def guard_of(knots: dict[int, int], granted: int, *, nudge: bool = False) -> tc.Guard:
    """A guard that has just these residuals; it has had rounds enough for them."""
    rounds = 4 * len(knots) + 1
    energy = float(plain_of(knots, granted).fields[EVERYONE].counted)
    numbers: dict[str, Any] = {
        **{name: np.zeros(1, kind) for name, kind in ledger._KINDS["groups"].items()},
        "rounds": np.array([rounds]),
        "energy": np.array([int(energy * PARTS)]),
        "knots": np.array([len(knots)]),
        "key": np.array(sorted(knots), np.int64),
        "residual": np.array([knots[key] for key in sorted(knots)], np.int64),
    }
    guard = tc.Guard(nudge=nudge)
    tables = {table: packed(numbers, ledger._KINDS[table]) for table in ("groups", "knots")}
    guard.load(guard.state() | tables | {"granted": granted})
    return guard


def plain_of(knots: dict[int, int], granted: int) -> ArcGuard:
    plain = ArcGuard()
    plain.made = 4 * len(knots) + 1
    plain.prices = granted / PARTS
    field = plain.fields[EVERYONE]
    field.residuals = dict(knots)
    field.energy = plain.energies()[EVERYONE]
    field.counted = plain.round_up(field.energy)
    return plain


@settings(max_examples=80, deadline=None)
@given(
    knots=KNOTS,
    hint=st.floats(0, 1),
    granted=st.sampled_from([0, PARTS, 1000 * PARTS, 10**6 * PARTS]),
)
def test_what_is_said_and_what_it_can_add_are_those_of_plain_sums(
    knots: dict[int, int], hint: float, granted: int
) -> None:
    guard, plain = guard_of(knots, granted), plain_of(knots, granted)
    energy = guard._parts()[4]
    gross = guard._parts()[5]
    assert energy == pytest.approx(
        float(plain.energies()[EVERYONE]), rel=1e-9, abs=1e-12 * (1 + gross)
    )
    for at in (hint, 0.0, 1.0, 0.5):
        placed = plain.place(at)
        guard.predict(at)
        said, key, worst, *_ = guard._saved()["asked"]
        if key != placed.key:  # only where both would do, and rounding decided
            limit = plain.share * plain.room()
            for p, k in ((said, key), (placed.p, placed.key)):
                apart = (
                    plain.worst(p, k, (EVERYONE,))
                    - plain.budget * plain.price(p, k, (EVERYONE,))
                    - limit
                )
                assert apart <= 1e-6 * (1 + gross)
            continue
        assert said == placed.p
        assert worst / PARTS == pytest.approx(
            float(placed.w), rel=1e-9, abs=2 / PARTS + 1e-11 * (1 + gross)
        )


@settings(max_examples=60, deadline=None)
@given(knots=KNOTS, data=st.data())
def test_a_field_that_grew_is_that_which_was_loaded(
    knots: dict[int, int], data: st.DataObject
) -> None:
    """Bit for bit, whatever the order in which knots came, and with those that came to 0."""
    guard = guard_of(knots, 10**6 * PARTS)
    rows = data.draw(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), max_size=30))
    guard.forecast_many([row[0] for row in rows], [row[1] for row in rows])
    again = tc.Guard.from_json(guard.to_json())
    for at in (*[row[0] for row in rows[:5]], 0.0, 0.4, 1.0):
        assert again.predict(at) == guard.predict(at)
        assert again._saved()["asked"] == guard._saved()["asked"]
    more = np.linspace(0, 1, 40)
    assert (
        again.forecast_many(more, np.arange(40) % 2).tolist()
        == guard.forecast_many(more, np.arange(40) % 2).tolist()
    )
    assert again.to_json() == guard.to_json()


def test_a_field_as_deep_as_it_gets() -> None:
    """Keys that part at every digit: from the root to the last there are as many knots as
    digits."""
    knots = {0: UNIT, END: -UNIT} | {1 << digit: (-1) ** digit * UNIT for digit in range(40)}
    knots |= {(1 << digit) + 1: UNIT // 2 for digit in range(1, 40)}
    guard, plain = guard_of(knots, 10**6 * PARTS), plain_of(knots, 10**6 * PARTS)
    for hint in (0.0, 1e-20, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 1.0):
        guard.predict(hint)
        _, key, worst, *_ = guard._saved()["asked"]
        placed = plain.place(hint)
        assert key == placed.key
        assert worst / PARTS == pytest.approx(float(placed.w), rel=1e-9, abs=2 / PARTS)
    assert guard.knots == len(knots)


def shape(key: int) -> tuple[float, float]:
    """Rise and fall at a key, in floats."""

    def of(q: float) -> float:
        x = 1.0 - math.sqrt(q)
        gap = 1.75 - x
        return 121.0 / 123.0 * (4.0 + x * (6.0 + x * (45.0 * x - 30.0))) / (gap * gap)

    s = math.sin(min(key, END - key) * (math.pi / (2.0 * END)))
    p = s * s if 2 * key <= END else 1.0 - s * s
    return of(1.0 - p), of(p)


def added(knots: dict[int, int], bit: int) -> tuple[float, float]:
    """Sums of residual * rise and residual * fall, digit by digit, rounded as in the tree."""
    if len(knots) <= 1:
        terms = [(r / UNIT * shape(key)[0], r / UNIT * shape(key)[1]) for key, r in knots.items()]
        return terms[0] if terms else (0.0, 0.0)
    low, high = (added(half, bit - 1) for half in halves(knots, bit))
    return low[0] + high[0], low[1] + high[1]


def halves(knots: dict[int, int], bit: int) -> list[dict[int, int]]:
    return [{key: r for key, r in knots.items() if key >> bit & 1 == digit} for digit in (0, 1)]


def field_at(knots: dict[int, int], key: int) -> float:
    up_to = beyond = 0.0
    cell = knots
    for bit in range(40, -1, -1):
        low, high = halves(cell, bit)
        if key >> bit & 1:
            up_to += added(low, bit - 1)[0]
            cell = high
        else:
            beyond += added(high, bit - 1)[1]
            cell = low
    rise, fall = shape(key)
    return fall * (up_to + added(cell, 0)[0]) + rise * beyond


def nudged(knots: dict[int, int], hint: float, energy: float) -> float:
    """A hint as the nudge of a guard with these residuals shifts it (`nudge.hpp`)."""
    strength = 0.25 * max(0.0, min(energy / 1000.0, 2.0)) / math.sqrt(1000.0)

    def field(p: float) -> float:
        angle = 2.0 * math.atan2(math.sqrt(p), math.sqrt(1.0 - p))
        step = END >> 12
        return field_at(knots, math.floor(angle * (END / math.pi) / step + 0.5) * step)

    def shifted(wanted: float) -> float:
        odds = hint * math.exp(max(-2.0, min(wanted, 2.0)))
        return odds / (1.0 - hint + odds)

    here = field(hint)
    first = shifted(strength * here)
    if abs(strength * here) < 0.125:
        return first
    return shifted(strength * 0.5 * (here + field(first)))


@settings(max_examples=40, deadline=None)
@given(knots=MANY_KNOTS, hint=st.floats(0.001, 0.999))
def test_sums_are_rounded_as_those_of_a_tree_of_digits(knots: dict[int, int], hint: float) -> None:
    """Bit for bit: the nudge shows every bit of the field where it is read."""
    granted = 10**6 * PARTS
    guard = guard_of(knots, granted, nudge=True)
    energy = guard._saved()["groups"]["energy"][0] / PARTS
    assert guard.predict(hint) == nudged(knots, hint, energy)
