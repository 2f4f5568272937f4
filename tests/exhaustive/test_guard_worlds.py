"""The guard on the arc in all small worlds: hints, outcomes, groups, and every order of late
outcomes.

docs/adaptive.md, section 3, has the theorems. The plain guard plays, in fractions, so nothing is
rounded: what is claimed must hold exactly. Bounds on distances are compared with exact measures of
what was said.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

import truecast as tc
from truecast.reference import calibration_distance
from truecast.reference.arc import kernel
from truecast.reference.guard import EVERYONE, ArcGuard, Placed, forecast_at, spacing

HINTS = (0.0, 0.3, 0.5, 1.0)
TINY = 1e-9  # for measures that are floats
Said = tuple[Placed, int]


def clone(guard: ArcGuard) -> ArcGuard:
    new = copy.copy(guard)
    new.fields = {
        name: replace(one, residuals=dict(one.residuals)) for name, one in guard.fields.items()
    }
    new.waiting, new.given_up = guard.waiting[:], guard.given_up[:]
    return new


def play(
    guard: ArcGuard, hint: float, y: int, groups: tuple[Hashable, ...] = ()
) -> tuple[ArcGuard, Placed]:
    after = clone(guard)
    after.predict(hint, groups)
    placed = after.asked
    assert placed is not None
    after.observe(y)
    return after, placed


def budget_left(guard: ArcGuard) -> Fraction:
    return Fraction(guard.allowance()) - Fraction(guard.potential())


def assert_rule_was_kept(before: ArcGuard, after: ArcGuard, placed: Placed) -> None:
    """Theorem 6 for one round, exactly."""
    assert placed.w <= before.budget * placed.price + before.share * before.room()
    growth = sum(one.energy for one in after.fields.values()) - sum(
        one.energy for one in before.fields.values()
    )
    assert growth <= placed.w
    assert budget_left(after) >= (1 - before.share) * budget_left(before) >= 0


def assert_distances_are_within(
    guard: ArcGuard, said: list[Said], name: Hashable = EVERYONE
) -> None:
    own = [(placed.p, y) for placed, y in said if name in placed.fields]
    p, y = [p for p, _ in own], [y for _, y in own]
    assert (
        tc.lower_calibration_distance(y, p, total=True).lower <= guard.lower_distance(name) + TINY
    )
    assert tc.smooth_calibration_error(y, p, total=True) <= guard.smooth_error(name) + TINY
    exact = calibration_distance([Fraction(x) for x in p], y)
    assert exact <= guard.lower_distance(name) + tc.splitting_gap(len(own)) + TINY


def worlds(
    guard: ArcGuard, hints: tuple[float, ...], rounds: int
) -> Iterator[tuple[ArcGuard, list[Said]]]:
    """All games that continue from here; each step is checked."""
    waiting: list[tuple[ArcGuard, list[Said]]] = [(guard, [])]
    while waiting:
        before, said = waiting.pop()
        if said:
            yield before, said
        for hint, y in product(hints, (0, 1)) if len(said) < rounds else ():
            after, placed = play(before, hint, y)
            assert_rule_was_kept(before, after, placed)
            waiting.append((after, [*said, (placed, y)]))


@pytest.mark.slow("plays all games of a small world")
@pytest.mark.parametrize(
    ("hints", "rounds", "options"),
    [
        (HINTS, 3, {"budget": 4.0, "start": 0.0}),
        (HINTS, 3, {"budget": 1.05, "start": 0.0, "share": 1.0}),
        ((0.3, 0.9), 4, {"budget": 1.5, "start": 0.5, "share": 0.3}),
        ((0.5,), 7, {"budget": 1.05, "start": 0.0}),
        ((0.02,), 7, {"budget": 4.0, "start": 0.0}),
        ((0.02,), 7, {"budget": 2.0, "start": 1.0, "share": 1.0}),
    ],
)
def test_all_hints_and_outcomes_keep_the_budget(
    hints: tuple[float, ...], rounds: int, options: dict[str, float]
) -> None:
    moved = nearly = 0
    for guard, said in worlds(ArcGuard(exact=True, **options), hints, rounds):
        assert budget_left(guard) >= 0
        assert guard.energies()[EVERYONE] == guard.fields[EVERYONE].energy <= guard.allowance()
        assert_distances_are_within(guard, said)
        moved += said[-1][0].p not in hints
        nearly += budget_left(guard) < guard.allowance() / 4
    assert moved  # or the rule would not have been tried
    assert nearly or options["budget"] > 2


def test_the_worse_outcome_adds_what_was_allowed_for() -> None:
    """So w is no larger than it must be."""
    for guard, _ in worlds(ArcGuard(exact=True, budget=1.5, start=0.25), (0.1, 0.7), 3):
        for hint in (0.2, 0.6):
            energies = []
            for y in (0, 1):
                after, placed = play(guard, hint, y)
                energies.append(after.fields[EVERYONE].energy - guard.fields[EVERYONE].energy)
            assert max(energies) == placed.w


def with_look_ahead(
    guard: ArcGuard, hints: tuple[float, ...], depth: int
) -> tuple[float, ArcGuard]:
    """The least that an opponent can leave of the budget, who chooses hints and outcomes."""
    if not depth:
        return float(guard.allowance() - guard.potential()), guard
    after = [play(guard, hint, y)[0] for hint, y in product(hints, (0, 1))]
    return min(
        ((with_look_ahead(one, hints, depth - 1)[0], one) for one in after),
        key=lambda game: game[0],
    )


@pytest.mark.alike("looks ahead over all outcomes")
@pytest.mark.parametrize(
    ("hints", "depth", "rounds", "options"),
    [
        ((0.5,), 4, 30, {"budget": 1.5, "start": 1.0}),
        ((0.2, 0.8), 2, 30, {"budget": 2.0, "start": 0.0, "share": 1.0}),
        ((0.0, 0.01, 0.5, 1.0), 1, 60, {"budget": 4.0, "start": 2.0}),
        ((0.03, 0.04), 1, 60, {"budget": 1.05, "start": 0.0, "share": 1.0}),
    ],
)
def test_opponents_with_look_ahead_never_pass_the_budget(
    hints: tuple[float, ...], depth: int, rounds: int, options: dict[str, float]
) -> None:
    guard = ArcGuard(**options)
    for _ in range(rounds):
        _, guard = with_look_ahead(guard, hints, depth)
        left = guard.allowance() - guard.potential()
        assert left >= -TINY
    assert left < 0.7 * guard.allowance()  # they do press hard


def overlapping(log: list[tuple[str, Placed, int]]) -> Fraction:
    """2 |r s| K in the fields that they share, summed over pairs of which one was resolved while
    the other waited.

    `log` has what happened, in order: issue, resolve and give_up, with the number of the forecast
    as the outcome's last digits: forecast number * 2 + y.
    """
    issued, resolved = {}, {}
    for moment, (what, placed, code) in enumerate(log):
        number, y = divmod(code, 2)
        if what == "issue":
            issued[number] = moment
        elif what == "resolve":
            resolved[number] = (moment, placed, y)
    total = Fraction(0)
    for (i, (end_i, a, y)), (j, (end_j, b, z)) in combinations(resolved.items(), 2):
        if max(issued[i], issued[j]) < min(end_i, end_j):
            shared = len({*a.fields} & {*b.fields})
            size = abs((y - Fraction(a.p)) * (z - Fraction(b.p)))
            both = sorted((a.key, b.key))
            total += 2 * shared * size * exact_kernel(both[0], both[1])
    return total


def exact_kernel(low: int, high: int) -> Fraction:
    plain = ArcGuard(exact=True)
    found = Fraction(plain.shape(low)[0]) * Fraction(plain.shape(high)[1])
    assert math.isclose(found, kernel(forecast_at(low), forecast_at(high)))
    return found


LATE_HINTS = (0.3, 0.5, 0.3, 0.9)
LATE_GROUPS: tuple[tuple[str, ...], ...] = (("a",), (), ("a", "b"), ("b",))


@pytest.mark.slow("plays all games of a small world")
@pytest.mark.parametrize(
    ("forecasts", "options"),
    [(4, {"budget": 4.0, "start": 0.0}), (3, {"budget": 1.05, "start": 0.0, "share": 1.0})],
)
def test_all_orders_of_issue_resolve_and_give_up(forecasts: int, options: dict[str, float]) -> None:
    """Energies and what is reserved <= B, and the excess in it is at most what overlapping pairs
    can make."""
    games = passed = 0
    waiting: list[tuple[ArcGuard, list[tuple[str, Placed, int]], dict[int, Placed]]]
    waiting = [(ArcGuard(exact=True, **options), [], {})]
    while waiting:
        guard, log, awaited = waiting.pop()
        games += 1
        assert guard.potential() <= guard.allowance()
        assert sum(guard.energies().values()) <= guard.potential()
        assert 0 <= guard.excess <= overlapping(log)
        passed += guard.potential() > guard.allowance() - guard.excess
        number = sum(what == "issue" for what, _, _ in log)
        if number < forecasts:
            new = clone(guard)
            placed = new.issue(LATE_HINTS[number], LATE_GROUPS[number])
            assert new.prices == guard.prices + placed.price * (1 + len(awaited))
            assert placed.w <= guard.budget * placed.price + guard.share * guard.room()
            waiting.append(
                (new, [*log, ("issue", placed, 2 * number)], {**awaited, number: placed})
            )
        for i, placed in awaited.items():
            rest = {j: other for j, other in awaited.items() if j != i}
            for y in (0, 1):
                new = clone(guard)
                new.resolve(placed, y)
                waiting.append((new, [*log, ("resolve", placed, 2 * i + y)], rest))
            new = clone(guard)
            new.give_up(placed)
            waiting.append((new, [*log, ("give_up", placed, 2 * i)], rest))
    assert games > 500
    assert passed or options["budget"] > 2  # so the excess is needed


@pytest.mark.slow("plays all games of a small world")
def test_forecasts_that_are_asked_for_and_dropped_leave_the_budget_whole() -> None:
    """All orders of five verbs; a forecast that was asked for may count in the end or not, while
    others are issued."""
    verbs = ("ask", "ask elsewhere", "observe", "issue", "resolve")
    waiting = [(ArcGuard(exact=True, budget=4.0, start=0.0, share=1.0), 0)]
    busy = 0
    while waiting:
        guard, length = waiting.pop()
        left = budget_left(guard)
        assert left >= 0
        if guard.asked is not None:
            assert left + guard.budget * guard.asked.price - guard.asked.w >= 0
            busy += bool(guard.waiting)
        for verb, y in product(verbs, (0, 1)) if length < 6 else ():
            new = clone(guard)
            if verb.startswith("ask") and not y:
                new.predict(0.5 if verb == "ask" else 0.05)
            elif verb == "issue" and not y:
                new.issue(0.3)
            elif verb == "observe" and new.asked:
                new.observe(y)
            elif verb == "resolve" and new.waiting:
                new.resolve(new.waiting[0], y)
            else:
                continue
            waiting.append((new, length + 1))
    assert busy > 1000


def test_late_outcomes_are_within_the_certificate() -> None:
    """Whatever the missing outcomes."""
    for outcomes in product((0, 1), repeat=5):
        guard = ArcGuard(exact=True, budget=1.5, start=0.0)
        tickets = [guard.issue(hint) for hint in (0.3, 0.5, 0.3)]
        guard.resolve(tickets[1], outcomes[1])
        tickets.append(guard.issue(0.2))
        guard.resolve(tickets[0], outcomes[0])
        guard.give_up(tickets[3])
        assert guard.unknown() == pytest.approx(sum(max(t.p, 1 - t.p) for t in tickets[2:]))
        p = [ticket.p for ticket in tickets]
        assert (
            tc.lower_calibration_distance(outcomes[:4], p, total=True).lower
            <= guard.lower_distance() + TINY
        )
        guard.resolve(tickets[2], outcomes[2])
        assert guard.reserved() == 0


@pytest.mark.slow("plays all games of a small world")
def test_all_members_of_overlapping_groups_share_one_budget() -> None:
    """Every group's energy is below the budget of all, and its certificate above its distances."""
    sets: tuple[tuple[str, ...], ...] = ((), ("a",), ("b",), ("a", "b"))
    waiting: list[tuple[ArcGuard, list[Said]]] = [(ArcGuard(exact=True, budget=1.5, start=0.0), [])]
    while waiting:
        before, said = waiting.pop()
        for groups, y in product(sets, (0, 1)) if len(said) < 3 else ():
            after, placed = play(before, (0.3, 0.5, 0.2)[len(said)], y, groups)
            assert placed.fields == (EVERYONE, *groups)
            assert_rule_was_kept(before, after, placed)
            told = [*said, (placed, y)]
            for name, energy in after.energies().items():
                assert 0 <= energy == after.fields[name].energy <= after.allowance()
                assert after.fields[name].rounds == sum(name in one.fields for one, _ in told)
                assert_distances_are_within(after, told, name)
            waiting.append((after, told))


def test_a_group_that_is_everyone_doubles_everything() -> None:
    """The same rounds twice: energies, prices and budget double, so half the start leaves the
    forecasts as they are."""
    once, twice = ArcGuard(exact=True, start=0.5), ArcGuard(exact=True, start=1.0)
    for hint, y in zip((0.3, 0.3, 0.5, 0.3, 0.9, 0.9, 0.3), (1, 1, 0, 1, 0, 0, 1), strict=True):
        assert once.predict(hint) == twice.predict(hint, ("all",))
        once.observe(y)
        twice.observe(y)
    assert (
        twice.fields["all"].energy == twice.fields[EVERYONE].energy == once.fields[EVERYONE].energy
    )
    assert budget_left(twice) == 2 * budget_left(once)


class Plain(ArcGuard):
    """The plain guard as the product is asked."""

    @property
    def certificate(self) -> SimpleNamespace:
        energy = max(float(self.energies()[EVERYONE]), 0.0)
        return SimpleNamespace(
            energy=energy, lower_distance=self.lower_distance(), smooth_error=self.smooth_error()
        )


PLAYERS: dict[str, Callable[[float], Any]] = {
    "plain": lambda budget: Plain(budget=budget),
    "compiled": lambda budget: tc.Guard(budget=budget),
}


@pytest.mark.slow("plays all strings of outcomes")
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize(("hint", "budget"), [(0.0, 4.0), (0.01, 1.05), (1.0, 2.0)])
def test_all_strings_are_within_the_certificate(player: str, hint: float, budget: float) -> None:
    """By what anyone can see: energies within the budget, distances within the certificate."""
    moved = 0
    for outcomes in product((0, 1), repeat=8):
        guard, said = PLAYERS[player](budget), []
        for y in outcomes:
            said.append(guard.predict(hint))
            guard.observe(y)
        certificate = guard.certificate
        lower = tc.lower_calibration_distance(outcomes, said, total=True).lower
        assert lower <= certificate.lower_distance + TINY
        assert (
            tc.smooth_calibration_error(outcomes, said, total=True)
            <= certificate.smooth_error + TINY
        )
        assert certificate.energy <= budget * (1000 + 1.00054 * len(outcomes))
        moved += said[-1] != hint
    assert 0 < moved < 2**8


def test_hints_are_said_while_there_is_room() -> None:
    guard = ArcGuard()
    for hint, y in product((0.0, 0.01, 0.123, 0.5, 0.9, 1.0), (0, 1, 1)):
        assert guard.predict(hint) == hint
        assert guard.asked is not None
        assert guard.asked.key % spacing(1) == 0
        guard.observe(y)
    assert 0 < guard.fields[EVERYONE].hidden < guard.made * math.pi / 2**13
