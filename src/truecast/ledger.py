"""What a guard keeps of its forecasts, by group: the certificate, and how it is saved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from truecast import _core
from truecast.columns import Columns, packed, unpacked
from truecast.errors import StateError
from truecast.state import Entry, kinds_of, require_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from truecast.certificate import ArcCertificate

START = 1000.0  # the budget before the first round is that of 1,000
_RESIDUAL = 2.0**-33  # a round: residuals are sums of forecasts rounded to 2**-32
_UP = 1.0 + 2.0**-50
MOST_CLAIMED = 1 << 30  # rounds for which rounding is proved to be small enough
_MOST_KNOTS = 1 << 28
_HALF = 1 << 62
_MOST_LATE = 1 << 20  # forecasts that may await their outcomes
# a forecast from its key: half the first spacing, and rounding
_FARTHEST = math.pi / 2**13 * (1 + 2.0**-20) + 2.0**-25

#: what a saved guard has, by table
ENTRIES = {table: [Entry(*each) for each in listed] for table, listed in _core.GUARD.items()}
_KINDS = {table: kinds_of(ENTRIES[table]) for table in ("groups", "offsets", "knots")}
_OFFSETS = 6  # numbers a group
AIM = 4  # numbers that a forecast was made from


def certify(parts: tuple[Any, ...]) -> ArcCertificate:
    """Return the certificate of a group from the core's `parts`.

    docs/adaptive.md, theorems 7 to 9.
    """
    from truecast.arc import LOWER_DISTANCE, SMOOTH_ERROR, root_of
    from truecast.certificate import ArcCertificate
    from truecast.splitting import splitting_gap

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
        # never below the bound
        a_priori=min(((LOWER_DISTANCE * most + beyond) * _UP + gap) * _UP, float(made)),
        brier=squared_error / rounds if rounds else math.nan,
        unresolved=late + lost,
        unknown=unknown * 2.0**-32,
    )


def promised(rounds: int, budget: float) -> float:
    """The bound on the distance after `rounds` rounds, proved before the first.

    For outcomes that come at once.

    docs/adaptive.md, theorem 10.
    """
    from truecast.arc import LOWER_DISTANCE
    from truecast.splitting import splitting_gap

    if rounds > MOST_CLAIMED:
        return float(rounds)
    rounding = 2.0**-38 * rounds * rounds + 2.0**-28 * math.sqrt(budget) * (rounds + START) ** 1.5
    lower = LOWER_DISTANCE * math.sqrt(budget * (START + most_prices(rounds)) + rounding)
    return min((lower + most_hidden(rounds) + splitting_gap(rounds)) * _UP, float(rounds))


def most_prices(rounds: int) -> float:
    """The most that the prices of all forecasts can sum to (docs/adaptive.md, theorem 7)."""
    return rounds + min(0.00054 * rounds, 150.0)


def most_hidden(rounds: int) -> float:
    """The most that crediting to knots can hide (docs/adaptive.md, theorem 7, section 6)."""
    total, made, digits = 0.0, 0, 12
    while made < rounds:
        # forecasts before which 2**digits steps suffice
        until = min(rounds, math.isqrt(8 ** (digits - 1)) + 1)
        total += (until - made) * math.pi / 2 ** (digits + 1)
        made, digits = until, digits + 1
    return total + rounds * (2.0**-26 + 2.0**-40 + _RESIDUAL)


def ledger_state(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return all numbers of a guard, as the core gave them, as plain data."""
    return numbers | {table: packed(numbers[table], kinds) for table, kinds in _KINDS.items()}


def numbers_of(state: object, *, most: int, nested: bool = True) -> dict[str, Any]:
    """Return what `ledger_state` saved, of at most `most` groups, or raise StateError.

    `nested`: the first group is everyone, so that no other has more rounds.
    """
    names = sorted(kinds_of(ENTRIES["guard"]).keys() | _KINDS.keys() | {"aims", "asked"})
    saved = require_entries("guard", state, names)
    for name, _, _, least, _, _ in ENTRIES["guard"]:
        if type(saved[name]) is not int or not least <= saved[name] <= _HALF:
            raise StateError(
                f"the saved {name} must be an integer from {least} to 2**62, "
                f"got {saved[name]!r:.80}"
            )
    aims = saved["aims"]
    if not isinstance(aims, list) or not all(
        type(number) is float and math.isfinite(number) for number in aims
    ):
        raise StateError(f"the saved aims must be a list of finite floats, got {aims!r:.80}")
    lengths = {"groups": most, "offsets": _OFFSETS * most, "knots": _MOST_KNOTS}
    tables = {
        table: unpacked(table, saved[table], kinds, lengths[table])
        for table, kinds in _KINDS.items()
    }
    groups = tables["groups"]
    if len(tables["offsets"]["offset"]) != _OFFSETS * len(groups["rounds"]):
        raise StateError(f"the saved offsets must be {_OFFSETS} for each group")
    _check_groups(groups, nested)
    _check_knots(groups, tables["knots"])
    made = sum(int(groups[name].max()) for name in ("rounds", "late", "lost"))
    most_late = min(made, _MOST_LATE)
    if saved["most_late"] > most_late:
        raise StateError(
            f"the saved most_late must be at most {most_late}, got {saved['most_late']}"
        )
    _check_asked(saved["asked"], len(groups["rounds"]))
    return saved | tables


def is_placed(said: NDArray[np.float64], key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether these can be forecasts from 0 to 1, each near the key that it is credited to."""
    good = (said >= 0) & (said <= 1) & (key >= 0) & (key <= _core.ARC_END)
    p = np.where(good, said, 0.5)
    angle = 2 * np.arctan2(np.sqrt(p), np.sqrt(1 - p))
    found: NDArray[np.bool_] = good & (np.abs(angle - key * (math.pi / _core.ARC_END)) <= _FARTHEST)
    return found


def _check_asked(asked: object, groups: int) -> None:
    """Refuse what cannot be the forecast that awaits its outcome."""
    if asked is None:
        return
    types = [float, int, int, list, list]
    if not isinstance(asked, list) or [type(entry) for entry in asked] != types:
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
    if len(aim) != AIM or not all(type(number) is float and 0 <= number <= 1 for number in aim):
        raise StateError(f"the saved asked must be made from a hint, got {aim!r:.80}")


def _check_groups(groups: Columns, nested: bool) -> None:
    rounds, late, lost = groups["rounds"], groups["late"], groups["lost"]
    count = len(rounds)
    if not count or any(len(column) != count for column in groups.values()):
        raise StateError("the saved groups must have a number in each column")
    without = late.astype(np.float64) + lost
    unknown = groups["unknown"].astype(np.float64) / 2.0**32
    rules: list[tuple[str, NDArray[np.bool_]]] = [
        (name, (groups[name] >= least) & (groups[name] <= most))
        for name, _, _, least, most, _ in ENTRIES["groups"]
        if name != "energy"  # the core compares it with that of the knots
    ]
    rules += [
        ("knots", groups["knots"] <= rounds),
        ("squared_error", groups["squared_error"] <= rounds),
        ("hidden", groups["hidden"].astype(np.float64) <= rounds * (_FARTHEST * 2.0**40)),
        ("unknown", (unknown >= without / 2 * (1 - 1e-12)) & (unknown <= without * (1 + 1e-12))),
    ]
    # Every round is one of everyone's.
    rules += [
        (name, groups[name] <= groups[name][0])
        for name in ("rounds", "late", "lost", "hidden", "unknown")
        if nested
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
        raise StateError("the saved number of knots must match the groups")
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
