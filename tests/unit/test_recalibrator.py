from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import hints


def test_the_last_predict_is_the_one_that_is_judged() -> None:
    r, other = tc.Recalibrator(), tc.Recalibrator()
    for score in (0.9, 0.1, 0.6):
        said = r.predict(score)
    assert said == other.predict(0.6)
    r.observe(1)
    other.observe(1)
    assert r.to_json() == other.to_json()
    with pytest.raises(tc.OrderError, match="predict"):
        r.observe(1)


def test_other_outcomes_may_come_between_a_predict_and_its_own() -> None:
    r = tc.Recalibrator(hint=hints.Identity(), nudge=False)
    ticket = r.issue(0.8)
    said = r.predict(0.6)
    r.resolve(ticket, 1)
    r.forecast_many([], [])
    r.observe(0)
    errors = (said - 0) ** 2 + (ticket.p - 1) ** 2
    assert r.rounds == 2
    assert r.certificate.brier == pytest.approx(errors / 2)


def test_a_batch_replaces_what_was_asked() -> None:
    r = tc.Recalibrator()
    r.predict(0.6)
    r.forecast_many([0.5], [1])
    with pytest.raises(tc.OrderError, match="predict"):
        r.observe(1)


def rounds_of(r: tc.Recalibrator) -> dict[Any, int]:
    return {name: group.rounds for name, group in r.groups.items()}


def test_groups_have_certificates_of_their_own_up_to_a_number() -> None:
    r = tc.Recalibrator(hint=hints.Identity(), max_groups=2)
    for group in ("a", "b", "c", 7, None, "a", ("b", "c", 7), ()):
        r.predict(0.3, group=group)
        r.observe(0)
    assert rounds_of(r) == {"a": 2, "b": 2}
    assert r.others.rounds == 3  # a round of two groups beyond the number is one of the others
    assert r.certificate.rounds == r.rounds == 8
    assert r.groups["a"].certificate.rounds == 2


def test_no_group_but_the_others_if_none_is_allowed() -> None:
    r = tc.Recalibrator(max_groups=0)
    r.forecast_many([0.3, 0.4, 0.5], [0, 1, 1], groups=["a", ("b", "c"), None])
    assert dict(r.groups) == {}
    assert r.others.rounds == 2


def test_numbers_and_names_of_groups_are_told_apart() -> None:
    r = tc.Recalibrator()
    r.forecast_many([0.5] * 4, [0, 1, 0, 1], groups=[1, "1", None, np.int64(1)])
    assert rounds_of(r) == {1: 2, "1": 1}
    again = tc.Recalibrator.from_json(r.to_json())
    assert list(again.groups) == [1, "1"]
    r.forecast_many([0.5] * 2, [0, 1], groups=np.array(["1", "2"]))
    assert list(r.groups) == [1, "1", "2"]
    assert all(type(name) in (int, str) for name in r.groups)


def test_what_is_no_group_is_a_key_error() -> None:
    r = tc.Recalibrator()
    r.predict(0.5, group=("a", 1))
    for name in ("b", 2, None, ("a", 1), "A"):
        with pytest.raises(KeyError):
            r.groups[name]
        assert name not in r.groups
    assert r.groups["a"].rounds == 0
    assert repr(r.groups) == "Groups(['a', 1])"


def test_a_group_is_found_by_what_equals_its_name() -> None:
    r = tc.Recalibrator()
    r.predict(0.5, group=(7, "seven"))
    r.observe(1)
    assert r.groups[np.int64(7)].rounds == r.groups[np.str_("seven")].rounds == 1
    assert [7.5 in r.groups, [7] in r.groups, b"seven" in r.groups] == [False] * 3


class Fails:
    """A hint that raises when it learns of a score of 1."""

    def predict(self, score: float) -> float:
        return score

    def learn(self, score: float, outcome: int) -> None:
        if score == 1:
            raise RuntimeError("enough")

    def state(self) -> list[float]:
        return []

    def load(self, state: list[float]) -> None:
        assert state == []


def test_new_groups_of_rows_that_are_only_asked_about_leave_room_for_each_other() -> None:
    r = tc.Recalibrator(hint=hints.Identity(), max_groups=1, budget=1.05)
    rows = ["a", "b", ("b", "c"), None, ("c", "a")]
    together = r.predict_many([0.0] * len(rows), groups=rows).tolist()
    assert together == [r.predict_many([0.0], groups=[row])[0] for row in rows]
    assert together[0] == together[1] != together[2] == together[4]
    assert len(r.groups) == 0


def test_new_groups_of_a_batch_that_fails_are_forgotten() -> None:
    """Also where names have the same hash: 2**61 - 1 has that of 0."""
    alike = [k * (2**61 - 1) for k in range(-4, 5) if abs(k) < 4]
    assert len({hash(name) for name in alike}) == 1
    names = [*alike, *(f"g{k}" for k in range(3000))]
    r = tc.Recalibrator(hint=Fails(), max_groups=len(names))
    known: list[Any] = []
    for new in (names[:5], names[5:40], names[40:]):
        before = r.to_json()
        with pytest.raises(tc.InputError, match="enough"):
            r.forecast_many([0.5] * len(new) + [1.0], [1] * len(new) + [0], groups=[*new, None])
        assert r.to_json() == before
        assert list(r.groups) == known
        assert not any(name in r.groups for name in new)
        r.forecast_many([0.5] * len(new), [1] * len(new), groups=new)
        known += new
        assert list(r.groups) == known
        assert all(r.groups[name].rounds == 1 for name in known)


GROUPED = [("a", "b"), ("b",), (), ("c", "a"), ("b", "a"), ("a",), ("a", "b", "c")] * 9


def grouped_rows(seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.random(len(GROUPED)), rng.random(len(GROUPED)) < 0.3


@pytest.mark.parametrize("late", [False, True])
def test_a_batch_of_several_groups_a_round_is_the_loop(late: bool) -> None:
    x, y = grouped_rows()
    known = np.arange(len(x)) + np.arange(len(x)) % 4
    ways: list[Any] = [
        GROUPED,
        [list(names) for names in GROUPED],
        np.array([*GROUPED, None], object)[:-1],
    ]
    ends = set()
    for names in ways:
        r = tc.Recalibrator()
        r.forecast_many(x, y, groups=names, known_at=known if late else None)
        ends.add(r.to_json())
    loop = tc.Recalibrator()
    tickets = []
    for t, names in enumerate(GROUPED):
        if late:
            tickets.append(loop.issue(x[t], group=names))
            for s in np.flatnonzero(known[: t + 1] == t):
                loop.resolve(tickets[s], y[s])
        else:
            loop.predict(x[t], group=names)
            loop.observe(y[t])
    assert ends == {loop.to_json()}


def test_tables_of_groups_have_a_column_for_each() -> None:
    pandas = pytest.importorskip("pandas")
    x, y = np.full(4, 0.3), [0, 1, 1, 0]
    pairs = [("JFK", "am"), ("LAX", "pm"), ("JFK", "pm"), ("SFO", "am")]
    frame = pandas.DataFrame(pairs, columns=["airport", "time"])
    ends = set()
    for names in (pairs, np.array(pairs), np.array(pairs, object), frame, frame.to_numpy()):
        r = tc.Recalibrator()
        said = r.forecast_many(x, y, groups=names)
        ends.add(
            (r.to_json(), tuple(said.tolist()), tuple(r.predict_many(x, groups=names).tolist()))
        )
    assert len(ends) == 1
    assert rounds_of(r) == {"JFK": 2, "am": 2, "LAX": 1, "pm": 2, "SFO": 1}
    numbered = tc.Recalibrator()
    numbered.forecast_many(x, y, groups=np.array([[1, 2], [3, 4], [1, 4], [5, 2]]))
    assert rounds_of(numbered) == {1: 2, 2: 2, 3: 1, 4: 2, 5: 1}
    with pytest.raises(tc.InputError, match="index"):
        r.forecast_many(pandas.Series(x), y, groups=frame[::-1])


def test_the_order_of_a_rounds_groups_does_not_matter() -> None:
    x, y = grouped_rows(2)
    turned = tc.Recalibrator(budget=1.05)
    straight = tc.Recalibrator(budget=1.05)
    for r in (straight, turned):
        r.predict(0.5, group=("a", "b", "c"))  # so that they have the same numbers
    for _ in range(20):
        said = straight.forecast_many(x, y, groups=GROUPED)
        assert (
            turned.forecast_many(x, y, groups=[names[::-1] for names in GROUPED]).tolist()
            == said.tolist()
        )
    assert turned.issue(0.3, group=("b", "a")).p == straight.issue(0.3, group=("a", "b")).p
    assert turned.to_json() == straight.to_json()


@pytest.mark.parametrize("names", [("a", "a"), ["a", "b", "a"], (1, np.int64(1))])
def test_a_group_named_twice_is_refused(names: Any) -> None:
    r = tc.Recalibrator()
    before = r.to_json()
    for call in (lambda: r.predict(0.5, group=names), lambda: r.issue(0.5, group=names)):
        with pytest.raises(tc.InputError, match="^group must name each group once"):
            call()
    for many in (
        lambda g: r.forecast_many([0.5, 0.6], [0, 1], groups=g),
        lambda g: r.predict_many([0.5] * 2, groups=g),
    ):
        with pytest.raises(
            tc.InputError, match="^groups must name each group once.* at position 1"
        ):
            many(["a", names])
    assert r.to_json() == before


@pytest.mark.parametrize(
    "names", [("a", None), ("a", 0.5), (("a",),), ("a", True), {"a"}, 1 << 63, b"a", 0.5, np.nan]
)
def test_what_cannot_name_groups_is_refused(names: Any) -> None:
    r = tc.Recalibrator()
    before = r.to_json()
    for call in (
        lambda: r.predict(0.5, group=names),
        lambda: r.issue(0.5, group=names),
        lambda: r.forecast_many([0.5], [1], groups=[names]),
        lambda: r.predict_many([0.5], groups=[names]),
    ):
        with pytest.raises(tc.InputError, match="^groups? must be"):
            call()
    assert r.to_json() == before


def test_a_view_of_a_group_goes_by_its_name_also_after_another_state_was_loaded() -> None:
    r, other = tc.Recalibrator(), tc.Recalibrator()
    r.forecast_many([0.5] * 3, [1, 0, 1], groups=["y", "x", "gone"])
    other.forecast_many([0.5] * 5, [1] * 5, groups=["x", "x", "x", "y", "y"])
    views = {name: r.groups[name] for name in ("x", "y", "gone")}
    r.load(other.state())
    assert (views["x"].rounds, views["y"].rounds) == (3, 2)
    assert views["y"].certificate == r.groups["y"].certificate
    with pytest.raises(KeyError, match="gone"):
        views["gone"].certificate  # noqa: B018


# Events: their forecasts are one observation together.


EVENTS: list[Any] = ["game", 1, "1", None, "game", 1, "other", "1#", "1"] * 6


def test_a_batch_with_events_is_the_loop() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random(len(EVENTS)), rng.random(len(EVENTS)) < 0.5
    known = np.minimum(np.arange(len(x)) // 9 * 9 + 11, len(x) + 5)
    loop, batch = tc.Recalibrator(max_unresolved=13), tc.Recalibrator(max_unresolved=13)
    for r in (loop, batch):
        r.issue(0.4, event="game")
        r.issue(0.4, event=7)
    tickets = []
    for t, event in enumerate(EVENTS):
        tickets.append(loop.issue(x[t], group=t % 2, event=event))
        for s in np.flatnonzero(known[: t + 1] == t):
            try:
                loop.resolve(tickets[s], y[s])
            except tc.TicketError:
                continue
    said = batch.forecast_many(x, y, groups=np.arange(len(x)) % 2, known_at=known, events=EVENTS)
    assert said.tolist() == [ticket.p for ticket in tickets]
    assert batch.to_json() == loop.to_json()
    plain = tc.Recalibrator(max_unresolved=13)
    plain.forecast_many(x, y, groups=np.arange(len(x)) % 2, known_at=known)
    assert plain._hint.state() != batch._hint.state()


def test_events_are_told_apart_by_their_names_and_numbers() -> None:
    r = tc.Recalibrator()
    names = [1, "1", "1#", "#1", "#", "", -1, "-1", 0, "0", np.int64(2), "2", "é"]
    for name in names:
        r.issue(0.5, event=name)
    events, made = (r._desk.table()[name] for name in ("about", "made"))
    assert (len(set(events.tolist())), made.tolist()) == (len(names), [1] * len(names))
    assert 0 not in events
    r.issue(0.5, event=np.int64(1))
    r.issue(0.5, event=2)
    assert sorted(r._desk.table()["made"].tolist()) == [1] * (len(names) - 2) + [2, 2]
    for ticket in r.awaited:
        r.resolve(ticket, 1)
    assert r._desk.table()["about"].tolist() == []


def test_forecasts_of_an_event_weigh_together_as_much_as_one() -> None:
    """The certificate counts each of them all the same."""
    many, one = (tc.Recalibrator(hint=hints.Platt(), nudge=False) for _ in range(2))
    for ticket in [many.issue(0.7, event="game") for _ in range(4)]:
        many.resolve(ticket, 1)
    one.resolve(one.issue(0.7), 1)
    assert (many.certificate.rounds, one.certificate.rounds) == (4, 1)
    assert many._hint.predict(0.7) == pytest.approx(one._hint.predict(0.7), rel=0.05)
    assert many._hint.predict(0.7) > 0.7


@pytest.mark.parametrize("event", [True, 0.5, (1,), ["a"], b"a", 1 << 63, float("nan")])
def test_what_cannot_name_an_event_is_refused(event: Any) -> None:
    r = tc.Recalibrator()
    before = r.to_json()
    with pytest.raises(tc.InputError, match="^event must be a str or an int"):
        r.issue(0.5, group="new", event=event)
    with pytest.raises(tc.InputError, match="^events must be a str or an int.* at position 1"):
        r.forecast_many(
            [0.5, 0.5], [0, 1], groups=["new", "newer"], known_at=[0, 1], events=["a", event]
        )
    assert r.to_json() == before


def test_events_come_with_known_at() -> None:
    r = tc.Recalibrator()
    with pytest.raises(tc.InputError, match="^events must come with known_at"):
        r.forecast_many([0.5], [1], events=["a"])
    with pytest.raises(tc.InputError, match="^events must have an entry for each of the 2 rounds"):
        r.forecast_many([0.5, 0.5], [1, 1], known_at=[0, 1], events=["a"])
    assert r.rounds == 0


def test_the_oldest_is_given_up_when_there_is_no_room() -> None:
    r = tc.Recalibrator(hint=hints.Identity(), max_unresolved=2)
    first, second, third = (
        r.issue(score, group=group) for score, group in ((0.75, "a"), (0.5, "b"), (0.5, "a"))
    )
    assert r.unresolved == 2
    assert r.groups["a"].given_up == 1
    with pytest.raises(
        tc.TicketError,
        match="ticket must be one whose outcome is awaited: .* given up before, got 0",
    ):
        r.resolve(first, 1)
    r.resolve(third, 1)
    r.resolve(second, 0)
    certificate = r.certificate
    assert (r.rounds, r.unresolved, certificate.unresolved) == (2, 0, 1)
    assert certificate.unknown == pytest.approx(max(first.p, 1 - first.p))


@pytest.mark.parametrize(
    ("ticket", "message"),
    [
        (
            3,
            "ticket must be one of the 3 issued so far: a state saved before a ticket was issued "
            "does not know it, got 3",
        ),
        (
            0,
            "ticket must be one whose outcome is awaited: this was resolved or given up "
            "before, got 0",
        ),
        (-1, "ticket must be a whole number from 0"),
        (1.0, "ticket must be a whole number from 0"),
        (True, "ticket must be a whole number from 0"),
        ("1", "ticket must be a whole number from 0"),
        (None, "ticket must be a whole number from 0"),
    ],
)
def test_tickets_that_await_nothing_are_refused(ticket: Any, message: str) -> None:
    r = tc.Recalibrator()
    for score in (0.2, 0.5, 0.8):
        r.issue(score)
    r.resolve(0, 1)
    before = r.to_json()
    for call in (lambda: r.resolve(ticket, 1), lambda: r.give_up(ticket)):
        with pytest.raises(tc.InputError, match=message) as refused:
            call()
        assert (type(refused.value) is tc.TicketError) == (ticket == 0 and type(ticket) is int)
    assert r.to_json() == before


def test_a_ticket_is_an_int_with_its_forecast() -> None:
    r = tc.Recalibrator()
    r.issue(0.1)
    ticket = r.issue(0.7)
    assert (ticket, ticket.p) == (1, ticket.p)
    assert repr(ticket) == f"Ticket(1, p={ticket.p!r})"
    assert json.dumps([ticket]) == "[1]"
    for other in (copy.copy(ticket), copy.deepcopy(ticket), pickle.loads(pickle.dumps(ticket))):
        assert (other, other.p, type(other)) == (1, ticket.p, tc.Ticket)
    assert {ticket: "found"}[1] == "found"


def test_a_ticket_of_another_is_refused() -> None:
    r, other = tc.Recalibrator(), tc.Recalibrator()
    ticket, foreign = r.issue(0.3), other.issue(0.9)
    before = r.to_json()
    for use in (lambda: r.resolve(foreign, 1), lambda: r.give_up(foreign)):
        with pytest.raises(tc.InputError, match="must be one of this recalibrator"):
            use()
    assert r.to_json() == before
    r.resolve(ticket, 1)


def test_tickets_outlive_the_process() -> None:
    r = tc.Recalibrator()
    tickets = [r.issue(k / 10, group=k % 3) for k in range(11)]
    moved = tc.Recalibrator.from_bytes(r.to_bytes())
    for k, ticket in enumerate(tickets):
        for each in (r, moved):
            each.resolve(int(ticket), k % 2)
    assert moved.to_json() == r.to_json()
    assert moved.issue(0.5) == 11


def test_a_mix_judges_its_members_by_what_they_said_then() -> None:
    """Platt with a short memory learns the 20 ones before the outcome of the first forecast
    comes."""

    def mix() -> hints.Mix:
        return hints.Mix([hints.Identity(), hints.Platt(5)])

    late, wise = tc.Recalibrator(hint=mix(), nudge=False), mix()
    ticket = late.issue(0.5)  # which is kept as it is: most forecasts are rounded
    _, notes = wise.issue(0.5)
    late.forecast_many([0.5] * 20, [1] * 20)
    wise.forecast_many([0.5] * 20, [1] * 20)
    late.resolve(ticket, 1)
    wise.learn(0.5, 1, notes)
    assert late._hint.state() == wise.state()
    forgetful = mix()
    forgetful.forecast_many([0.5] * 21, [1] * 21)
    assert forgetful.state() != wise.state()


def test_a_hint_is_copied() -> None:
    hint = hints.Platt()
    r = tc.Recalibrator(hint=hint)
    before = hint.to_json()
    r.forecast_many([0.9] * 10, [0] * 10)
    assert hint.to_json() == before
    hint.learn(0.5, 1)
    assert tc.Recalibrator(hint=hint)._hint.to_json() == hint.to_json()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hint": "Platt"}, "hint must be one of truecast.hints, or an object with predict"),
        ({"hint": {"kind": "Oracle"}}, "hint must be one of truecast.hints"),
        ({"hint": {"kind": "Platt", "girth": 1}}, "hint must have the options of Platt"),
        ({"budget": 0}, "budget must be a number from 1"),
        ({"budget": "4"}, "budget must be a number from 1"),
        ({"nudge": "yes"}, "nudge must be True or False"),
        ({"max_groups": -1}, "max_groups must be a whole number from 0"),
        ({"max_groups": 1 << 21}, "max_groups must be a whole number from 0"),
        ({"max_unresolved": 0}, "max_unresolved must be a whole number from 1"),
        ({"max_unresolved": 1.0}, "max_unresolved must be a whole number from 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.InputError, match=message):
        tc.Recalibrator(**options)


def test_batches_are_refused_whole() -> None:
    r = tc.Recalibrator()
    r.forecast_many([0.5], [1], groups=["a"])
    before = r.to_json()
    bad = [
        (
            ([0.5, 1.5], [0, 1]),
            {"groups": ["b", "c"]},
            "scores must be between 0 and 1, got 1.5 at position 1",
        ),
        (
            ([0.5, 0.5], [0, 2]),
            {"groups": ["b", "c"]},
            "outcomes must be 0 or 1, got 2 at position 1",
        ),
        (
            ([0.5, 0.5], [0, 1]),
            {"groups": ["b", 0.5]},
            "groups must be a str or an int of 64 bits, or a tuple .* got 0.5",
        ),
        (
            ([0.5, 0.5], [0, 1]),
            {"groups": ["b"]},
            "groups must have an entry for each of the 2 rounds",
        ),
        (([0.5, 0.5], [0, 1]), {"groups": "bc"}, "groups must be a sequence"),
        (([0.5], [0, 1]), {}, "scores must have an entry for each of the 2 outcomes"),
        (([0.5, 0.5], [0, 1]), {"out": np.empty(3)}, "out must be"),
        (
            ([0.5, 0.5], [0, 1]),
            {"known_at": [1, 0]},
            "known_at must be round numbers, .* got 0 at position 1",
        ),
        (
            ([0.5, 0.5], [0, 1]),
            {"known_at": [-1, 1]},
            "known_at must be round numbers, .* got -1 at position 0",
        ),
        (
            ([0.5, 0.5], [0, 1]),
            {"known_at": [1]},
            "known_at must have an entry for each of the 2 outcomes",
        ),
        (([0.5, 0.5], [0, 1]), {"known_at": [0.0, 1.0]}, "known_at must be round numbers"),
        (
            ([0.5, 0.5], [0, 1]),
            {"known_at": [True, True]},
            "known_at must be round numbers",
        ),
    ]
    for arguments, options, message in bad:
        with pytest.raises(tc.InputError, match=message):
            r.forecast_many(*arguments, **options)
    assert r.to_json() == before


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_rounds_that_are_not_known_in_a_log_stay_awaited(kind: Any) -> None:
    r = tc.Recalibrator()
    r.forecast_many(
        [0.2, 0.4, 0.6],
        [0, 1, 1],
        known_at=np.array([0, 3, min(np.iinfo(kind).max, 2**64 - 1)], kind),
    )
    assert (r.rounds, r.awaited) == (1, [1, 2])
    r.resolve(2, 1)
    assert r.forecast_many([], [], known_at=[]).tolist() == []


def test_forecasts_are_written_where_they_are_told() -> None:
    out = np.full(3, -1.0)
    r = tc.Recalibrator()
    assert r.forecast_many([0.1, 0.2, 0.3], [0, 1, 0], out=out) is out
    assert (out >= 0).all()


def test_forecasts_may_replace_the_scores_but_not_scores_to_come() -> None:
    rng = np.random.default_rng(6)
    buffer, y = rng.random(101), rng.random(100) < 0.4
    scores = buffer[:100].copy()
    for make in (tc.Recalibrator, tc.Guard):
        said = make().forecast_many(scores, y)
        place = scores.copy()
        assert make().forecast_many(place, y, out=place).tolist() == said.tolist()
        with pytest.raises(tc.InputError, match="overlap"):
            make().forecast_many(buffer[:100], y, out=buffer[1:])
    assert buffer[:100].tolist() == scores.tolist()


def test_groups_of_other_rows_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    scores, groups = pandas.Series([0.5, 0.6]), pandas.Series(["a", "b"])
    r = tc.Recalibrator()
    with pytest.raises(tc.InputError, match="groups must have the index"):
        r.forecast_many(scores, [0, 1], groups=groups[::-1])
    with pytest.raises(tc.InputError, match="groups must have the index"):
        r.predict_many(scores, groups=groups[::-1])
    assert not r.groups


def test_predict_many_tells_what_predict_would_say_and_changes_nothing() -> None:
    r = tc.Recalibrator(max_groups=2)
    rng = np.random.default_rng(4)
    scores = rng.random(300)
    r.forecast_many(scores, rng.random(300) < scores**2, groups=rng.integers(0, 4, 300))
    r.predict(0.5)
    before = r.to_json()
    names = [0, 1, 2, "new", None, (0, 1), (1, 0, "new", 3), (), (3, 2), 0] * 2
    said = r.predict_many(scores[:20], groups=names)
    assert r.to_json() == before
    assert said.tolist() == [
        copy.copy(r).predict(x, group=name) for x, name in zip(scores, names, strict=False)
    ]
    assert r.predict_many([]).tolist() == []


def test_groups_in_predict_many_do_not_take_seats_from_each_other() -> None:
    """Each round is said as if it came next: a new group finds the seat that one above it would
    have taken."""
    r = tc.Recalibrator(hint=tc.hints.Identity(), nudge=False, budget=1.05, max_groups=1)
    names = ["x", ("a", "b"), ("b", "c", "x"), "a", None]
    said = r.predict_many([0.0] * 5, groups=names)
    alone = [tc.Recalibrator.from_json(r.to_json()).predict(0.0, group=name) for name in names]
    assert said.tolist() == alone
    assert len(set(alone)) == 3  # two fields leave less room than one, and three less than two
    assert not r.groups


def test_better_than_a_model_that_is_off() -> None:
    rng = np.random.default_rng(8)
    truth = rng.random(20_000)
    y = rng.random(20_000) < truth
    scores = truth**3
    r = tc.Recalibrator()
    said = r.forecast_many(scores, y)
    assert tc.brier_score(y, said) < 1.01 * tc.brier_score(y, truth) < tc.brier_score(y, scores)
    assert tc.smooth_calibration_error(y, said) < 0.1 * tc.smooth_calibration_error(y, scores)
    assert tc.calibration_distance(y, said, rtol=0.5, total=True).lower <= r.certificate.bound


@pytest.mark.slow("waits for threads")
def test_nothing_else_while_a_batch_runs() -> None:
    """Another thread is refused until the batch has ended; nothing is lost or counted twice,
    whenever one begins."""
    r = tc.Recalibrator()
    batches, rounds, done = 0, 1_000, threading.Event()
    switching = sys.getswitchinterval()

    def run() -> None:
        nonlocal batches
        # on a busy machine calls hit batches only
        while batches < 300 or (observed == 0 and batches < 30_000):
            r.forecast_many(np.full(rounds, 0.3), np.arange(rounds) % 3 == 0)
            batches += 1
        done.set()

    thread = threading.Thread(target=run)
    tickets: list[tc.Ticket] = []
    resolved = observed = refused = 0
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while not done.is_set():
            try:
                tickets.append(r.issue(0.4))
                r.resolve(tickets[-1], 1)
                resolved += 1
                r.predict(0.6)
                r.observe(1)
                observed += 1
            except tc.OrderError:
                refused += 1
        thread.join()
    finally:
        sys.setswitchinterval(switching)
    assert refused > 0
    assert resolved > 0
    assert r.rounds == batches * rounds + resolved + observed
    assert r.unresolved == len(tickets) - resolved


@pytest.mark.parametrize("said", [None, "x", object(), 0.25])
def test_a_ticket_that_says_something_else_is_refused(said: Any) -> None:
    r = tc.Recalibrator()
    ticket = r.issue(0.5)
    ticket.p = said
    with pytest.raises(
        tc.InputError, match="^ticket must be one of this recalibrator, not of another"
    ):
        r.resolve(ticket, 1)
    with pytest.raises(tc.InputError, match="^ticket must be one of this recalibrator"):
        r.give_up(ticket)
    assert r.awaited == [ticket]
    r.resolve(int(ticket), 1)
    assert r.rounds == 1


def test_a_group_that_would_be_saved_under_another_name_is_refused() -> None:
    r = tc.Recalibrator()
    pair, letter = "\ud83d\ude00", "\U0001f600"
    with pytest.raises(tc.InputError, match=r"^group must have no pair of surrogates"):
        r.predict(0.3, group=pair)
    with pytest.raises(
        tc.InputError, match="^groups must have no pair of surrogates.* at position 1"
    ):
        r.forecast_many([0.3, 0.4], [0, 1], groups=["a", pair])
    assert not r.groups
    for group in (letter, "\ud800", "é"):
        r.predict(0.3, group=group)
        r.observe(1)
    assert list(tc.Recalibrator.from_json(r.to_json()).groups) == [letter, "\ud800", "é"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_a_batch_of_rows_of_several_models_is_the_loop(late: bool, scale: str) -> None:
    rng = np.random.default_rng(9)
    x = rng.random((120, 2)) if scale == "probability" else rng.normal(scale=3, size=(120, 2))
    y, known = rng.random(120) < 0.4, np.arange(120) + np.arange(120) % 5
    names = [("a", "b"), "b", None] * 40
    loop, batch = (
        tc.Recalibrator(hint=hints.Experts(2), scale=scale, max_unresolved=3) for _ in range(2)
    )
    tickets, said = [], []
    for t in range(120):
        row = [x[t], x[t].tolist(), tuple(x[t].tolist())][t % 3]
        if late:
            tickets.append(loop.issue(row, group=names[t], event=t // 6))
            said.append(tickets[-1].p)
            for s in np.flatnonzero(known[: t + 1] == t):
                if tickets[s] in loop.awaited:
                    loop.resolve(tickets[s], y[s])
        else:
            said.append(loop.predict(row, group=names[t]))
            loop.observe(y[t])
    options: dict[str, Any] = {"known_at": known, "events": np.arange(120) // 6} if late else {}
    assert batch.forecast_many(x, y, groups=names, **options).tolist() == said
    assert batch.to_json() == loop.to_json()
    assert batch.predict_many(x[:9], groups=names[:9]).tolist() == [
        copy.copy(loop).predict(x[k], group=names[k]) for k in range(9)
    ]


@pytest.mark.parametrize(
    "score", [0.5, [0.5], [0.5, 0.5, 0.5], [0.5, 1.5], [0.5, None], [[0.5, 0.5]], "ab"]
)
def test_scores_that_are_not_one_of_each_model_are_refused(score: Any) -> None:
    r = tc.Recalibrator(hint=hints.Experts(2))
    r.forecast_many([[0.2, 0.3]], [1], groups=["a"])
    before = r.to_json()
    for call in (lambda: r.predict(score, group="new"), lambda: r.issue(score, group="new")):
        with pytest.raises(tc.InputError, match="^score"):
            call()
    for many in (lambda x: r.forecast_many(x, [1], groups=["new"]), r.predict_many):
        with pytest.raises(tc.InputError, match="^scores"):
            many(score if isinstance(score, str) else [score])
    assert r.to_json() == before
