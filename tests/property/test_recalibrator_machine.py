"""The recalibrator and a plain one, driven together: groups, tickets, outcomes in any order, and what is refused."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from test_split_lockstep import (
    NOT_HINTS,
    NOT_OUTCOMES,
    SAVES,
    assert_certified,
    assert_distance_below,
    assert_refused,
    assert_same_ladder,
)

import truecast as tc
from rounds import FORECASTS
from truecast.recalibrate.hints import BinMeans, Hint, Identity, Mix, Platt
from truecast.reference import PlainGuard
from truecast.reference.hints import PlainBinMeans, PlainHint, PlainIdentity, PlainMix, PlainPlatt
from truecast.reference.split_ladder import Made

Group = str | int | None

GROUPS: list[Group] = [None, "a", "b", "", 0, 1, "1"]
NOT_GROUPS = [True, 1.0, ("a",), b"a", ["a"], float("nan")]
NOT_TICKETS = [-1, 10**30, 0.0, float("nan"), "0", None, True, [0]]
groups = st.sampled_from(GROUPS)
rounds = st.tuples(FORECASTS, groups, st.integers(0, 1))
HINTS: dict[str, Any] = {
    "identity": lambda: (Identity(), PlainIdentity()),
    "platt": lambda: (Platt(30), PlainPlatt(30)),
    "mix": lambda: (
        Mix([Identity(), Platt(5), BinMeans()]),
        PlainMix([PlainIdentity(), PlainPlatt(5), PlainBinMeans()]),
    ),
}


class Plain:
    """A hint, a guard for each of so many groups and one for all others, and forecasts by their tickets."""

    def __init__(self, hint: PlainHint, max_groups: int, max_unresolved: int, **options: Any) -> None:
        self.hint, self.options = hint, options
        self.max_groups, self.max_unresolved = max_groups, max_unresolved
        self.others = self.new_guard()
        self.guards: dict[Group, PlainGuard] = {}
        self.awaited: dict[int, tuple[PlainGuard, float, Made, list[float]]] = {}
        self.issued = 0
        self.asked: tuple[PlainGuard, float] | None = None

    def new_guard(self) -> PlainGuard:
        return PlainGuard(**self.options)

    def guard(self, group: Group) -> PlainGuard:
        if group not in self.guards and len(self.guards) >= self.max_groups:
            return self.others
        return self.guards.setdefault(group, self.new_guard())

    def would_say(self, score: float, group: Group) -> float:
        full = len(self.guards) >= self.max_groups
        guard = self.guards.get(group, self.others if full else self.new_guard())
        return guard.place(self.hint.predict(score)).said

    def predict(self, score: float, group: Group) -> float:
        self.asked = self.guard(group), score
        return self.asked[0].predict(self.hint.predict(score))

    def observe(self, y: int) -> None:
        guard, score = self.asked
        guard.observe(y)
        self.hint.learn(score, y)
        self.asked = None

    def issue(self, score: float, group: Group) -> tuple[int, float]:
        hint, notes = self.hint.issue(score)
        guard = self.guard(group)
        if len(self.awaited) == self.max_unresolved:
            self.give_up(min(self.awaited))
        made = guard.issue(hint)
        self.awaited[self.issued] = guard, score, made, notes
        self.issued += 1
        return self.issued - 1, made.said

    def resolve(self, ticket: int, y: int) -> None:
        guard, score, made, notes = self.awaited.pop(ticket)
        guard.resolve(made, y)
        self.hint.learn(score, y, notes)

    def give_up(self, ticket: int) -> None:
        guard, _, made, _ = self.awaited.pop(ticket)
        guard.give_up(made)

    def all_guards(self) -> list[PlainGuard]:
        return [self.others, *self.guards.values()]


class RecalibratorLockstep(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from(list(HINTS)),
        slack=st.sampled_from([0.0, 1.0, 2.5]),
        late=st.sampled_from([0, 0, 3]),
        nudge=st.booleans(),
        max_groups=st.sampled_from([0, 1, 3, 100]),
        max_unresolved=st.sampled_from([1, 2, 5, 100]),
    )
    def build(self, kind: str, slack: float, late: int, nudge: bool, max_groups: int, max_unresolved: int) -> None:
        hint, plain = HINTS[kind]()
        limits = {"max_groups": max_groups, "max_unresolved": max_unresolved}
        self.core = tc.Recalibrator(hint=hint, slack=slack, late=late, nudge=nudge, **limits)
        self.plain = Plain(plain, **limits, slack=Fraction(slack), late=late, nudge=nudge)
        self.p: list[float] = []
        self.y: list[int] = []

    def keep(self, p: float, y: int) -> float:
        self.p.append(p)
        self.y.append(y)
        return p

    @rule(score=FORECASTS, group=groups)
    def predict(self, score: float, group: Group) -> None:
        assert self.core.predict(score, group=group) == self.plain.predict(score, group)

    @rule(y=st.integers(0, 1), kind=st.sampled_from([int, bool, float, np.int8, np.bool_]))
    def observe(self, y: int, kind: type) -> None:
        if self.plain.asked is None:
            assert_refused(self.core, tc.OrderError, self.core.observe, kind(y))
        else:
            self.keep(self.plain.asked[0].asked.said, y)
            self.core.observe(kind(y))
            self.plain.observe(y)

    @rule(score=FORECASTS, group=groups, times=st.integers(1, 4))
    def issue(self, score: float, group: Group, times: int) -> None:
        for _ in range(times):
            ticket = self.core.issue(score, group=group)
            assert (ticket, ticket.p) == self.plain.issue(score, group)

    @precondition(lambda self: self.plain.awaited)
    @rule(which=st.integers(0, 99), y=st.integers(0, 1), kind=st.sampled_from([int, np.int64]))
    def resolve(self, which: int, y: int, kind: type) -> None:
        ticket = sorted(self.plain.awaited)[which % len(self.plain.awaited)]
        self.keep(self.plain.awaited[ticket][2].said, y)
        self.core.resolve(kind(ticket), y)
        self.plain.resolve(ticket, y)
        assert_refused(self.core, tc.InputError, self.core.resolve, ticket, y)
        assert_refused(self.core, tc.InputError, self.core.give_up, ticket)

    @precondition(lambda self: self.plain.awaited)
    @rule(which=st.integers(0, 99))
    def give_up(self, which: int) -> None:
        ticket = sorted(self.plain.awaited)[which % len(self.plain.awaited)]
        self.core.give_up(ticket)
        self.plain.give_up(ticket)
        assert_refused(self.core, tc.InputError, self.core.resolve, ticket, 1)
        assert_refused(self.core, tc.InputError, self.core.give_up, ticket)

    @rule(rows=st.lists(rounds, max_size=12), grouped=st.booleans())
    def batch(self, rows: list[tuple[float, Group, int]], grouped: bool) -> None:
        said = []
        for score, group, y in rows:
            said.append(self.keep(self.plain.predict(score, group if grouped else None), y))
            self.plain.observe(y)
        names = [group for _, group, _ in rows] if grouped else None
        found = self.core.recalibrate_many([row[0] for row in rows], [row[2] for row in rows], groups=names)
        assert found.tolist() == said

    @rule(rows=st.lists(rounds, max_size=12), grouped=st.booleans())
    def predict_many(self, rows: list[tuple[float, Group, int]], grouped: bool) -> None:
        before = self.core.to_json()
        names = [group for _, group, _ in rows] if grouped else None
        found = self.core.predict_many([row[0] for row in rows], groups=names)
        assert found.tolist() == [self.plain.would_say(row[0], row[1] if grouped else None) for row in rows]
        assert self.core.to_json() == before

    @rule(bad=st.sampled_from(NOT_HINTS), group=groups)
    def refuse_scores(self, bad: Any, group: Group) -> None:
        assert_refused(self.core, tc.InputError, lambda: self.core.predict(bad, group=group))
        assert_refused(self.core, tc.InputError, lambda: self.core.issue(bad, group=group))
        if bad is not True:  # which numpy makes a 1.0 of beside floats
            assert_refused(self.core, tc.InputError, self.core.predict_many, [0.5, bad])
            assert_refused(
                self.core, tc.InputError, lambda: self.core.recalibrate_many([0.5, bad], [0, 1], groups=[group, "new"])
            )

    @rule(bad=st.sampled_from(NOT_GROUPS))
    def refuse_groups(self, bad: Any) -> None:
        assert_refused(self.core, tc.InputError, lambda: self.core.predict(0.5, group=bad))
        assert_refused(self.core, tc.InputError, lambda: self.core.issue(0.5, group=bad))
        for names in (["new", bad], ["new"], "ab", 7):
            assert_refused(
                self.core,
                tc.InputError,
                lambda names=names: self.core.recalibrate_many([0.5, 1.0], [0, 1], groups=names),
            )
            assert_refused(
                self.core, tc.InputError, lambda names=names: self.core.predict_many([0.5, 1.0], groups=names)
            )

    @rule(bad=st.sampled_from(NOT_OUTCOMES), which=st.integers(0, 99))
    def refuse_outcomes(self, bad: Any, which: int) -> None:
        assert_refused(self.core, tc.InputError, self.core.observe, bad)
        assert_refused(
            self.core, tc.InputError, lambda: self.core.recalibrate_many([0.5, 0.5], [0, bad], groups=["new", "newer"])
        )
        if self.plain.awaited:
            ticket = sorted(self.plain.awaited)[which % len(self.plain.awaited)]
            assert_refused(self.core, tc.InputError, self.core.resolve, ticket, bad)

    @rule(bad=st.sampled_from(NOT_TICKETS), beyond=st.integers(0, 3))
    def refuse_tickets(self, bad: Any, beyond: int) -> None:
        for ticket in (bad, self.plain.issued + beyond):
            assert_refused(self.core, tc.InputError, self.core.resolve, ticket, 1)
            assert_refused(self.core, tc.InputError, self.core.give_up, ticket)

    @rule(how=st.sampled_from(list(SAVES)))
    def save_and_load(self, how: str) -> None:
        before = self.core.to_json()
        self.core = SAVES[how](self.core)
        assert self.core.to_json() == before

    @rule(missing=st.integers(0, 2**30))
    def distance(self, missing: int) -> None:
        """Of all groups together, whatever the missing outcomes."""
        unresolved = [made.said for guard in self.plain.all_guards() for made in (*guard.awaited, *guard.given_up)]
        completed = [missing >> k & 1 for k in range(len(unresolved))]
        assert_distance_below(self.core.certificate.bound, self.p + unresolved, self.y + completed)

    @invariant()
    def same_guards(self) -> None:
        assert list(self.core.groups) == list(self.plain.guards)
        guards = [self.core.others, *self.core.groups.values()]
        for guard, plain in zip(guards, self.plain.all_guards(), strict=True):
            assert_same_ladder(guard, plain)
            assert (guard.unresolved, guard.most_unresolved) == (len(plain.awaited), plain.most_awaited)
            assert (guard.given_up, guard.unknown) == (len(plain.given_up), plain.unknown())

    @invariant()
    def same_hint(self) -> None:
        assert self.core._hint.predict(0.3) == self.plain.hint.predict(0.3)

    @invariant()
    def everything_is_counted_once(self) -> None:
        """Outcomes learned, forecasts awaited and given up; the whole is the sum of the groups."""
        core = self.core
        guards = [core.others, *core.groups.values()]
        given_up = sum(guard.given_up for guard in guards)
        assert core.rounds == len(self.y) == sum(guard.rounds for guard in guards)
        assert core.unresolved == len(self.plain.awaited) == sum(guard.unresolved for guard in guards)
        assert core.unresolved <= self.plain.max_unresolved
        assert len(core.groups) <= self.plain.max_groups
        certificate = core.certificate
        assert (certificate.rounds, certificate.unresolved) == (core.rounds, core.unresolved + given_up)
        assert_certified(certificate, sum((plain.certificate() for plain in self.plain.all_guards()), Fraction(0)))


RecalibratorLockstep.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestRecalibratorLockstep = RecalibratorLockstep.TestCase


@settings(max_examples=40)
@given(rows=st.lists(rounds, min_size=1, max_size=20), data=st.data())
def test_outcomes_in_any_order_leave_the_same_counts(rows: list[tuple[float, Group, int]], data: st.DataObject) -> None:
    """The credited ends may differ with the order; what was said, and how often what happened, does not."""
    resolved = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    other_order = data.draw(st.permutations(resolved))
    ends = []
    for order in (resolved, other_order):
        r = tc.Recalibrator(hint=Identity(), max_groups=3)
        tickets = [r.issue(score, group=group) for score, group, _ in rows]
        for k in order:
            r.resolve(tickets[k], rows[k][2])
        counts = [(g.rounds, g.unresolved, g.given_up, g.unknown) for g in (r.others, *r.groups.values())]
        ends.append(([t.p for t in tickets], list(r.groups), counts, r.certificate.unknown))
        y = [row[2] for row in rows]
        assert_distance_below(r.certificate.bound, [t.p for t in tickets], y)
    assert ends[0] == ends[1]


@settings(max_examples=40)
@given(rows=st.lists(rounds, max_size=60), hint=st.sampled_from([None, "identity", "mix"]), grouped=st.booleans())
def test_batches_are_the_loop_bit_for_bit(
    rows: list[tuple[float, Group, int]], hint: str | None, grouped: bool
) -> None:
    def build() -> tc.Recalibrator:
        chosen: Hint | None = None if hint is None else HINTS[hint]()[0]
        r = tc.Recalibrator(hint=chosen, max_groups=4)
        r.issue(0.3, group="a")
        r.predict(0.7, group="late")
        return r

    loop, batch, halves = build(), build(), build()
    said = []
    for score, group, y in rows:
        said.append(loop.predict(score, group=group) if grouped else loop.predict(score))
        loop.observe(y)
    names = [row[1] for row in rows] if grouped else None
    scores, outcomes = np.array([row[0] for row in rows]), np.array([row[2] for row in rows], bool)
    assert batch.recalibrate_many(scores, outcomes, groups=names).tolist() == said
    assert batch.to_json() == loop.to_json()
    middle = len(rows) // 2
    for part in (slice(middle), slice(middle, None)):
        halves.recalibrate_many(scores[part], outcomes[part], groups=names[part] if names else None)
    assert halves.to_json() == loop.to_json()


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(FORECASTS, groups, st.integers(0, 1), st.integers(0, 7)), max_size=40),
    most=st.sampled_from([1, 3, 100]),
    grouped=st.booleans(),
)
def test_a_log_is_replayed_as_it_happened(rows: list[tuple[float, Group, int, int]], most: int, grouped: bool) -> None:
    """`known_at` is the loop of issue and resolve, bit for bit, state included."""

    def build() -> tc.Recalibrator:
        r = tc.Recalibrator(hint=HINTS["mix"]()[0], max_groups=3, max_unresolved=most)
        r.issue(0.3, group="a")
        r.predict(0.7, group="late")
        return r

    loop, batch = build(), build()
    known_at = [t + row[3] for t, row in enumerate(rows)]
    tickets: list[tc.Ticket] = []
    for t, (score, group, _, _) in enumerate(rows):
        tickets.append(loop.issue(score, group=group) if grouped else loop.issue(score))
        for s in [s for s in range(t + 1) if known_at[s] == t]:
            try:
                loop.resolve(tickets[s], rows[s][2])
            except tc.TicketError:
                assert most < 100
    said = batch.recalibrate_many(
        [row[0] for row in rows],
        [row[2] for row in rows],
        groups=[row[1] for row in rows] if grouped else None,
        known_at=known_at,
    )
    assert said.tolist() == [ticket.p for ticket in tickets]
    assert batch.to_json() == loop.to_json()
    assert batch.awaited == loop.awaited


@given(score=FORECASTS)
def test_a_ticket_travels(score: float) -> None:
    r = tc.Recalibrator()
    first = r.issue(0.5)
    ticket = r.issue(score)
    assert (ticket, type(ticket)) == (1, tc.Ticket)
    back = pickle.loads(pickle.dumps(ticket))  # noqa: S301
    assert (back, back.p, type(back)) == (ticket, ticket.p, tc.Ticket)
    r.resolve(json.loads(json.dumps(ticket)), 1)
    r.resolve(int(first), 0)
    assert (r.rounds, r.unresolved) == (2, 0)
