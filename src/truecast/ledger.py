"""What a guard keeps of its forecasts, group by group: the certificate made of it, and how it is saved and read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.arc import LOWER_DISTANCE, SMOOTH_ERROR, root_of
from truecast.certificate import ArcCertificate
from truecast.columns import Columns, packed, unpacked
from truecast.errors import StateError
from truecast.splitting import splitting_gap

__all__ = ["START", "certify", "is_placed", "ledger_state", "numbers_of", "promised"]

START = 1000.0  # the budget before the first round is that of so many
_RESIDUAL = 2.0**-33  # a round: residuals are sums of forecasts rounded to 2**-32
_UP = 1.0 + 2.0**-50
_MOST_CLAIMED = 1 << 30  # rounds for which rounding is proved to be small enough
_MOST_KNOTS = 1 << 28
_HALF = 1 << 62
_MOST_LATE = 1 << 20  # forecasts that may await their outcomes
_FARTHEST = (
    math.pi / 2**13 * (1 + 2.0**-20) + 2.0**-25
)  # a forecast from its key: half the first spacing, and rounding

# A number for each group, and then for each of their knots.
_COUNTS = {
    "rounds": "<i8",
    "late": "<i8",
    "lost": "<i8",
    "energy": "<i8",
    "hidden": "<u8",
    "unknown": "<u8",
    "squared_error": "<f8",
    "knots": "<i8",
}
_OFFSETS = {"offset": "<f4"}
_OFFSET = 6  # numbers a group
_KNOTS = {"key": "<i8", "residual": "<i8"}
_WHOLE = "granted", "reserved", "excess", "most_late"


def certify(parts: tuple[Any, ...]) -> ArcCertificate:
    """Return the certificate of a group from the core's `parts`.

    docs/adaptive.md, theorems 7 to 9.
    """
    rounds, late, lost, squared_error, energy, gross, hidden, unknown, allowed = parts
    beyond = (hidden * 2.0**-40 + unknown * 2.0**-32 + rounds * _RESIDUAL) * _UP
    root, most = root_of(energy, gross), root_of(max(allowed, energy), gross)
    made = rounds + late + lost
    gap = splitting_gap(rounds)
    lower = (LOWER_DISTANCE * root + beyond) * _UP
    return ArcCertificate(
        rounds=rounds,
        energy=max(energy, 0.0),
        smooth_error=min((SMOOTH_ERROR * root + beyond) * _UP, float(made)),
        lower_distance=min(lower, float(made)),
        bound=min((lower + gap) * _UP, float(made)),
        a_priori=min(
            ((LOWER_DISTANCE * most + beyond) * _UP + gap) * _UP, float(made)
        ),  # never below the bound
        brier=squared_error / rounds if rounds else math.nan,
        unresolved=late + lost,
        unknown=unknown * 2.0**-32,
    )


def promised(rounds: int, budget: float) -> float:
    """The bound on the distance that is proved before the first of so many rounds, all outcomes coming at once.

    docs/adaptive.md, theorem 10.
    """
    if rounds > _MOST_CLAIMED:
        return float(rounds)
    prices = rounds + min(0.00054 * rounds, 150.0)
    rounding = 2.0**-38 * rounds * rounds + 2.0**-28 * math.sqrt(budget) * (rounds + START) ** 1.5
    lower = LOWER_DISTANCE * math.sqrt(budget * (START + prices) + rounding) + _most_hidden(rounds)
    return min((lower + splitting_gap(rounds)) * _UP, float(rounds))


def _most_hidden(rounds: int) -> float:
    """What crediting forecasts to knots can hide at most (docs/adaptive.md, theorem 7, and section 6)."""
    total, made, digits = 0.0, 0, 12
    while made < rounds:
        until = min(
            rounds, math.isqrt(8 ** (digits - 1)) + 1
        )  # forecasts before which 2**digits steps suffice
        total += (until - made) * math.pi / 2 ** (digits + 1)
        made, digits = until, digits + 1
    return total + rounds * (2.0**-26 + 2.0**-40 + _RESIDUAL)


def ledger_state(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return all numbers of a guard, as the core gave them, as plain data."""
    said = numbers["asked"]
    return {
        **{name: numbers[name] for name in _WHOLE},
        "aims": numbers["aims"],
        "asked": None if said is None else [*said[:3], list(said[3]), list(said[4])],
        "groups": packed(numbers, _COUNTS),
        "offsets": packed(numbers, _OFFSETS),
        "knots": packed(numbers, _KNOTS),
    }


def numbers_of(state: object, *, most: int) -> dict[str, Any]:
    """Return the numbers that `ledger_state` saved, of at most so many groups, or raise StateError."""
    names = {*_WHOLE, "aims", "asked", "groups", "offsets", "knots"}
    if not isinstance(state, dict) or set(state) != names:
        raise StateError(
            f"the saved guard must have exactly the entries {', '.join(sorted(names))}"
        )
    for name in _WHOLE:
        if type(state[name]) is not int or not 0 <= state[name] <= _HALF:
            raise StateError(
                f"the saved {name} must be an integer from 0 to 2**62, got {state[name]!r:.80}"
            )
    aims = state["aims"]
    if not isinstance(aims, list) or not all(
        type(number) is float and math.isfinite(number) for number in aims
    ):
        raise StateError(f"the saved aims must be a list of finite floats, got {aims!r:.80}")
    groups = unpacked("groups", state["groups"], _COUNTS, most)
    offsets = unpacked("offsets", state["offsets"], _OFFSETS, _OFFSET * most)
    if len(offsets["offset"]) != _OFFSET * len(groups["rounds"]):
        raise StateError(f"the saved offsets must be {_OFFSET} for each group")
    knots = unpacked("knots", state["knots"], _KNOTS, _MOST_KNOTS)
    _check_groups(groups)
    _check_knots(groups, knots)
    made = sum(int(groups[name][0]) for name in ("rounds", "late", "lost"))
    most_late = min(made, _MOST_LATE)
    if state["most_late"] > most_late:
        raise StateError(
            f"the saved most_late must be at most {most_late}, got {state['most_late']}"
        )
    asked = _asked(state["asked"], len(groups["rounds"]))
    return {
        **groups,
        **offsets,
        **knots,
        **{name: state[name] for name in _WHOLE},
        "aims": aims,
        "asked": asked,
    }


def is_placed(said: NDArray[np.float64], key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether these can be forecasts from 0 to 1, each beside a key of the arc that it is credited to."""
    good = (said >= 0) & (said <= 1) & (key >= 0) & (key <= _core.ARC_END)
    p = np.where(good, said, 0.5)
    angle = 2 * np.arctan2(np.sqrt(p), np.sqrt(1 - p))
    found: NDArray[np.bool_] = good & (np.abs(angle - key * (math.pi / _core.ARC_END)) <= _FARTHEST)
    return found


def _asked(asked: object, groups: int) -> tuple[float, int, int, list[int], list[float]] | None:
    """The forecast that awaits its outcome, if there is one."""
    if asked is None:
        return None
    if not isinstance(asked, list) or [type(entry) for entry in asked] != [
        float,
        int,
        int,
        list,
        list,
    ]:
        what = "a forecast, its key, what it can add, its groups and what it was made from"
        raise StateError(f"the saved asked must be {what}, got {asked!r:.80}")
    said, key, worst, members, aim = asked
    within = 0 <= key <= _core.ARC_END and 0 <= worst < _HALF
    if not within or not is_placed(np.array([said]), np.array([key])).all():
        raise StateError(
            f"the saved asked must be a forecast from 0 to 1 and its key, got {asked!r:.80}"
        )
    known = all(type(member) is int and 0 <= member < groups for member in members)
    if not known or members[:1] != [0] or members != sorted(set(members)):
        raise StateError(f"the saved asked must be of everyone and of groups, got {members!r:.80}")
    if len(aim) != 4 or not all(type(number) is float and 0 <= number <= 1 for number in aim):
        raise StateError(f"the saved asked must be made from a hint, got {aim!r:.80}")
    return said, key, worst, members, aim


def _check_groups(groups: Columns) -> None:
    rounds, late, lost = groups["rounds"], groups["late"], groups["lost"]
    count = len(rounds)
    if not count or any(len(column) != count for column in groups.values()):
        raise StateError("the saved groups must have a number in each column")
    without = late.astype(np.float64) + lost
    unknown = groups["unknown"].astype(np.float64) / 2.0**32
    rules: list[tuple[str, NDArray[np.bool_]]] = [
        ("rounds", (rounds >= 0) & (rounds <= _check.MOST_ROUNDS // 2)),
        ("late", (late >= 0) & (late <= _HALF)),
        ("lost", (lost >= 0) & (lost <= _HALF)),
        ("knots", (groups["knots"] >= 0) & (groups["knots"] <= np.minimum(rounds, _MOST_KNOTS))),
        ("squared_error", (groups["squared_error"] >= 0) & (groups["squared_error"] <= rounds)),
        ("hidden", groups["hidden"].astype(np.float64) <= rounds * (_FARTHEST * 2.0**40)),
        ("unknown", (unknown >= without / 2 * (1 - 1e-12)) & (unknown <= without * (1 + 1e-12))),
    ]
    # Sums that are added to from here on must not pass 64 bits.
    rules += [(name, groups[name] <= np.uint64(2 * _HALF)) for name in ("hidden", "unknown")]
    # Every round is one of everyone's.
    rules += [
        (name, groups[name] <= groups[name][0])
        for name in ("rounds", "late", "lost", "hidden", "unknown")
    ]
    for name, good in rules:
        if not good.all():
            group = int(good.argmin())
            raise StateError(
                f"the saved {name} of group {group} must fit its rounds, got {groups[name][group]}"
            )


def _check_knots(groups: Columns, knots: Columns) -> None:
    key, residual, counts = knots["key"], knots["residual"], groups["knots"]
    if len(key) != len(residual) or int(counts.sum()) != len(key):
        raise StateError("the saved knots must be as many as the groups say")
    owner = np.repeat(np.arange(len(counts)), counts)
    good = (key >= 0) & (key <= _core.ARC_END)
    good[1:] &= (np.diff(key) > 0) | (np.diff(owner) > 0)
    size = np.abs(residual.astype(np.float64))
    most = groups["rounds"] * 2.0**32  # of all knots of a group together
    good &= (size <= most[owner]) & (size <= _HALF)
    good &= (np.bincount(owner, size, len(counts)) <= most * (1 + 2.0**-20))[owner]
    if not good.all():
        row = int(good.argmin())
        raise StateError(
            f"the saved knots must increase, with residuals that fit the rounds, got {key[row]}"
        )
