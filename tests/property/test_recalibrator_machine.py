"""The recalibrator and a plain one, driven together: groups, tickets, events, outcomes in any
order, and refusals."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import truecast as tc
from rounds import FORECASTS
from truecast.recalibrate.hints import BinMeans, Hint, Identity, Mix, Platt
from truecast.reference import calibration_distance
from truecast.reference.guard import EVERYONE, ArcGuard, Placed
from truecast.reference.hints import (
    PlainBinMeans,
    PlainBursts,
    PlainHint,
    PlainIdentity,
    PlainMix,
    PlainPlatt,
)

Group = str | int | tuple[str | int, ...] | None

GROUPS: list[Group] = [None, "a", "b", "", 0, 1, "1", (), ("a", "b"), ("b", 0, "a"), ("1", 1)]
EVENTS: list[Any] = [None, None, "game", 7, "7"]
NOT_GROUPS = [True, 1.0, ("a", None), b"a", ["a", "a"], float("nan"), ("a", ("b",))]
NOT_TICKETS = [-1, 10**30, 0.0, float("nan"), "0", None, True, [0]]
NOT_OUTCOMES = [2, -1, 0.5, float("nan"), "1", None, [1], np.array([1])]
NOT_SCORES = [
    float("nan"),
    float("inf"),
    1.2,
    -0.1,
    np.nextafter(1, 2),
    "0.5",
    None,
    True,
    [0.5],
    1j,
]
SAVES = {
    "json": lambda f: type(f).from_json(f.to_json()),
    "bytes": lambda f: type(f).from_bytes(f.to_bytes()),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
}
OTHERS = object()
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


def assert_refused(f: Any, error: type[Exception], call: Any, *arguments: Any) -> None:
    """With nothing changed."""
    before = f.to_json()
    with pytest.raises(error):
        call(*arguments)
    assert f.to_json() == before


def assert_distance_below(bound: float, p: list[float], y: list[int]) -> None:
    if 0 < len(y) <= 10:
        assert calibration_distance([Fraction(x) for x in p], y) <= Fraction(bound)
    elif 10 < len(y) <= 60:
        assert tc.calibration_distance(y, p, total=True).lower <= bound * (1 + 1e-12)


class Plain:
    """A hint, a guard with a number of groups and the others, and forecasts by their tickets."""

    def __init__(
        self, hint: PlainHint, max_groups: int, max_unresolved: int, budget: float
    ) -> None:
        self.hint, self.guard, self.bursts = hint, ArcGuard(budget=budget), PlainBursts()
        self.max_groups, self.max_unresolved = max_groups, max_unresolved
        self.names: list[str | int] = []
        self.awaited: dict[int, tuple[Placed, float, list[float], Any]] = {}
        self.made: dict[Any, int] = {}  # forecasts of each event that some ticket is of
        self.issued = 0
        self.asked: float | None = None

    def members(self, group: Group, *, seat: bool = True) -> list[Any]:
        """In the order in which groups came; those that find no seat are others."""
        names, found = list(self.names), set()
        for name in group if isinstance(group, tuple) else () if group is None else (group,):
            if (type(name), name) not in [(type(n), n) for n in names] and len(
                names
            ) < self.max_groups:
                names.append(name)
            found.add(name if name in names else OTHERS)
        if seat:
            self.names = names
        return [each for each in (OTHERS, *names) if each in found]

    def would_say(self, score: float, group: Group) -> float:
        return self.guard.place(self.hint.predict(score), self.members(group, seat=False)).p

    def predict(self, score: float, group: Group) -> float:
        self.asked = score
        return self.guard.predict(self.hint.predict(score), self.members(group))

    def observe(self, y: int) -> None:
        self.guard.observe(y)
        self.hint.learn(self.asked, y)
        self.asked = None

    def issue(self, score: float, group: Group, event: Any) -> tuple[int, float]:
        hint, notes = self.hint.issue(score)
        names = self.members(group)
        if len(self.awaited) == self.max_unresolved:
            self.give_up(min(self.awaited))
        placed = self.guard.issue(hint, names)
        self.bursts.issued()
        self.awaited[self.issued] = placed, score, self.hint.shorten(notes), event
        if event is not None:
            self.made[event] = self.made.get(event, 0) + 1
        self.issued += 1
        return self.issued - 1, placed.p

    def resolve(self, ticket: int, y: int) -> None:
        placed, score, notes, event = self.awaited.pop(ticket)
        weight = self.bursts.weight(
            y - placed.p, self.made.get(event, 0) if event is not None else 0
        )
        self.guard.resolve(placed, y)
        self.hint.learn(score, y, notes, weight)
        self.close(event)

    def give_up(self, ticket: int) -> None:
        placed, _, _, event = self.awaited.pop(ticket)
        self.guard.give_up(placed)
        self.bursts.given_up()
        self.close(event)

    def close(self, event: Any) -> None:
        if event is not None and all(each[3] != event for each in self.awaited.values()):
            del self.made[event]

    def open_ends(self) -> list[Placed]:
        return [*self.guard.waiting, *self.guard.given_up]


class RecalibratorLockstep(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from(list(HINTS)),
        budget=st.sampled_from([1.05, 4.0]),
        max_groups=st.sampled_from([0, 1, 3, 100]),
        max_unresolved=st.sampled_from([1, 2, 5, 100]),
    )
    def build(self, kind: str, budget: float, max_groups: int, max_unresolved: int) -> None:
        hint, plain = HINTS[kind]()
        limits = {"max_groups": max_groups, "max_unresolved": max_unresolved}
        self.core = tc.Recalibrator(hint=hint, budget=budget, nudge=False, **limits)
        self.plain = Plain(plain, **limits, budget=budget)
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
            self.keep(self.plain.guard.asked.p, y)
            self.core.observe(kind(y))
            self.plain.observe(y)

    @rule(score=FORECASTS, group=groups, event=st.sampled_from(EVENTS), times=st.integers(1, 4))
    def issue(self, score: float, group: Group, event: Any, times: int) -> None:
        for _ in range(times):
            ticket = self.core.issue(score, group=group, event=event)
            assert (ticket, ticket.p) == self.plain.issue(score, group, event)

    @precondition(lambda self: self.plain.awaited)
    @rule(which=st.integers(0, 99), y=st.integers(0, 1), kind=st.sampled_from([int, np.int64]))
    def resolve(self, which: int, y: int, kind: type) -> None:
        ticket = sorted(self.plain.awaited)[which % len(self.plain.awaited)]
        self.keep(self.plain.awaited[ticket][0].p, y)
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
        found = self.core.forecast_many(
            [row[0] for row in rows], [row[2] for row in rows], groups=names
        )
        assert found.tolist() == said

    @rule(rows=st.lists(rounds, max_size=12), grouped=st.booleans())
    def predict_many(self, rows: list[tuple[float, Group, int]], grouped: bool) -> None:
        before = self.core.to_json()
        names = [group for _, group, _ in rows] if grouped else None
        found = self.core.predict_many([row[0] for row in rows], groups=names)
        assert found.tolist() == [
            self.plain.would_say(row[0], row[1] if grouped else None) for row in rows
        ]
        assert self.core.to_json() == before

    @rule(bad=st.sampled_from(NOT_SCORES), group=groups)
    def refuse_scores(self, bad: Any, group: Group) -> None:
        assert_refused(self.core, tc.InputError, lambda: self.core.predict(bad, group=group))
        assert_refused(self.core, tc.InputError, lambda: self.core.issue(bad, group=group))
        if bad is not True:  # which numpy makes a 1.0 of beside floats
            assert_refused(self.core, tc.InputError, self.core.predict_many, [0.5, bad])
            assert_refused(
                self.core,
                tc.InputError,
                lambda: self.core.forecast_many([0.5, bad], [0, 1], groups=[group, "new"]),
            )

    @rule(bad=st.sampled_from(NOT_GROUPS))
    def refuse_groups(self, bad: Any) -> None:
        assert_refused(self.core, tc.InputError, lambda: self.core.predict(0.5, group=bad))
        assert_refused(self.core, tc.InputError, lambda: self.core.issue(0.5, group=bad))
        for names in (["new", bad], ["new"], "ab", 7):
            assert_refused(
                self.core,
                tc.InputError,
                lambda names=names: self.core.forecast_many([0.5, 1.0], [0, 1], groups=names),
            )
            assert_refused(
                self.core,
                tc.InputError,
                lambda names=names: self.core.predict_many([0.5, 1.0], groups=names),
            )

    @rule(bad=st.sampled_from(NOT_OUTCOMES), which=st.integers(0, 99))
    def refuse_outcomes(self, bad: Any, which: int) -> None:
        assert_refused(self.core, tc.InputError, self.core.observe, bad)
        assert_refused(
            self.core,
            tc.InputError,
            lambda: self.core.forecast_many([0.5, 0.5], [0, bad], groups=["new", "newer"]),
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
        """Of everyone, whatever the missing outcomes."""
        unresolved = [placed.p for placed in self.plain.open_ends()]
        completed = [missing >> k & 1 for k in range(len(unresolved))]
        assert_distance_below(self.core.certificate.bound, self.p + unresolved, self.y + completed)

    @invariant()
    def same_groups(self) -> None:
        core, plain = self.core, self.plain
        allowed = core._desk.parts(0)[-1]
        assert [(type(name), name) for name in core.groups] == [
            (type(name), name) for name in plain.names
        ]
        views = {EVERYONE: core, OTHERS: core.others, **core.groups}
        for name, view in views.items():
            certificate = view.certificate
            field = plain.guard.fields.get(name)
            assert certificate.rounds == view.rounds == (field.rounds if field else 0)
            assert certificate.unresolved == sum(
                name in placed.fields for placed in plain.open_ends()
            )
            assert view.unresolved == sum(name in placed.fields for placed in plain.guard.waiting)
            assert 0 <= certificate.unknown - plain.guard.unknown(name) <= 1e-6
            assert certificate.energy == pytest.approx(
                float(field.energy) if field else 0.0, rel=1e-6, abs=1e-6
            )
            assert certificate.energy <= allowed  # theorem 10 (c)
        assert all(
            core.groups[name].given_up == sum(name in p.fields for p in plain.guard.given_up)
            for name in core.groups
        )

    @invariant()
    def same_weights(self) -> None:
        assert self.core._desk.bursts() == {
            name: float(value) for name, value in vars(self.plain.bursts).items()
        }
        assert sorted(self.core._desk.table()["made"].tolist()) == sorted(self.plain.made.values())

    @invariant()
    def same_hint(self) -> None:
        assert self.core._hint.predict(0.3) == self.plain.hint.predict(0.3)

    @invariant()
    def everything_is_counted_once(self) -> None:
        core = self.core
        assert core.rounds == len(self.y)
        assert core.unresolved == len(self.plain.awaited) <= self.plain.max_unresolved
        assert [int(ticket) for ticket in core.awaited] == sorted(self.plain.awaited)
        assert len(core.groups) <= self.plain.max_groups
        assert core.rounds + core.certificate.unresolved == self.plain.guard.made


RecalibratorLockstep.TestCase.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None
)
TestRecalibratorLockstep = pytest.mark.slow("plays many games in lockstep")(
    RecalibratorLockstep.TestCase
)


@settings(max_examples=40)
@given(rows=st.lists(rounds, min_size=1, max_size=20), data=st.data())
def test_outcomes_in_any_order_leave_the_same_counts(
    rows: list[tuple[float, Group, int]], data: st.DataObject
) -> None:
    """What was said and what is certified do not depend on the order, to the last bit."""
    resolved = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    other_order = data.draw(st.permutations(resolved))
    ends = []
    for order in (resolved, other_order):
        r = tc.Recalibrator(hint=Identity(), max_groups=3)
        tickets = [r.issue(score, group=group) for score, group, _ in rows]
        for k in order:
            r.resolve(tickets[k], rows[k][2])
        certificates = [group.certificate for group in (r, r.others, *r.groups.values())]
        numbers = [
            (c.rounds, c.unresolved, c.unknown, c.energy, c.smooth_error, c.lower_distance)
            for c in certificates
        ]
        ends.append(([t.p for t in tickets], list(r.groups), numbers, r.state()["guard"]["knots"]))
        y = [row[2] for row in rows]
        assert_distance_below(r.certificate.bound, [t.p for t in tickets], y)
    assert ends[0] == ends[1]


@settings(max_examples=40)
@given(
    rows=st.lists(rounds, max_size=60),
    hint=st.sampled_from([None, "identity", "mix"]),
    grouped=st.booleans(),
)
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
    assert batch.forecast_many(scores, outcomes, groups=names).tolist() == said
    assert batch.to_json() == loop.to_json()
    middle = len(rows) // 2
    for part in (slice(middle), slice(middle, None)):
        halves.forecast_many(scores[part], outcomes[part], groups=names[part] if names else None)
    assert halves.to_json() == loop.to_json()


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(FORECASTS, groups, st.integers(0, 1), st.integers(0, 7), st.sampled_from(EVENTS)),
        max_size=40,
    ),
    most=st.sampled_from([1, 3, 100]),
    grouped=st.booleans(),
    named=st.booleans(),
)
def test_a_log_is_replayed_as_it_happened(
    rows: list[tuple[float, Group, int, int, Any]], most: int, grouped: bool, named: bool
) -> None:
    """`known_at` is the loop of issue and resolve, bit for bit, state included."""

    def build() -> tc.Recalibrator:
        r = tc.Recalibrator(hint=HINTS["mix"]()[0], max_groups=3, max_unresolved=most)
        r.issue(0.3, group="a")
        r.predict(0.7, group="late")
        return r

    loop, batch = build(), build()
    known_at = [t + row[3] for t, row in enumerate(rows)]
    tickets: list[tc.Ticket] = []
    for t, (score, group, _, _, event) in enumerate(rows):
        tickets.append(
            loop.issue(score, group=group if grouped else None, event=event if named else None)
        )
        for s in [s for s in range(t + 1) if known_at[s] == t]:
            try:
                loop.resolve(tickets[s], rows[s][2])
            except tc.TicketError:
                assert most < 100
    said = batch.forecast_many(
        [row[0] for row in rows],
        [row[2] for row in rows],
        groups=[row[1] for row in rows] if grouped else None,
        known_at=known_at,
        events=[row[4] for row in rows] if named else None,
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
    back = pickle.loads(pickle.dumps(ticket))
    assert (back, back.p, type(back)) == (ticket, ticket.p, tc.Ticket)
    r.resolve(json.loads(json.dumps(ticket)), 1)
    r.resolve(int(first), 0)
    assert (r.rounds, r.unresolved) == (2, 0)
