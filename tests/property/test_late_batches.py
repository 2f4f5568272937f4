"""issue_many and resolve_many: as one by one, bit for bit, and whole or not at all."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import _core
from truecast.recalibrate.hints import Platt
from truecast.reference.record import Record

scores = st.floats(0, 1).map(lambda x: round(x, 3))
groups = st.sampled_from([None, "a", "b", ("a", "b"), "c"])
events = st.sampled_from([None, None, "e", "f"])
rounds = st.lists(st.tuples(scores, groups, events), min_size=1, max_size=12)
# A batch is some forecasts, or the outcomes of some that are awaited, in any order.
batches = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), rounds),
        st.tuples(st.just("resolve"), st.lists(st.tuples(st.integers(0, 99), st.booleans()))),
    ),
    max_size=8,
)


def _made(kind):
    if kind == "monitor":
        return tc.Monitor(mean_time=50, max_groups=2, max_unresolved=9)
    if kind == "chains":
        return tc.Monitor(order="chains", chains=3, max_groups=2, max_unresolved=9)
    hint = {"own": _Own(), "platt": Platt()}.get(kind)
    return tc.Recalibrator(hint=hint, max_groups=2, max_unresolved=9)


class _Own:
    """A hint of one's own."""

    def __init__(self):
        self.bias = 0.5

    def predict(self, score):
        return (score + self.bias) / 2

    def learn(self, score, outcome):
        self.bias += 0.1 * (outcome - self.bias)

    def state(self):
        return self.bias

    def load(self, state):
        self.bias = state


def _drawn(awaited, chosen):
    """Tickets among those that are awaited, each once, and their outcomes."""
    left, drawn = list(awaited), []
    for place, outcome in chosen:
        if left:
            drawn.append((int(left.pop(place % len(left))), int(outcome)))
    return [ticket for ticket, _ in drawn], [outcome for _, outcome in drawn]


@pytest.mark.alike("plays each kind")
@pytest.mark.parametrize("kind", ["mix", "platt", "own", "monitor", "chains"])
@settings(max_examples=25, deadline=None)
@given(batches=batches)
def test_batches_are_as_one_by_one(kind, batches):
    many, single = _made(kind), _made(kind)
    for what, rows in batches:
        if what == "issue":
            columns = [list(column) for column in zip(*rows, strict=True)]
            got = many.issue_many(columns[0], groups=columns[1], events=columns[2])
            numbers = got if isinstance(many, tc.Monitor) else got.numbers
            one_by_one = [single.issue(s, group=g, event=e) for s, g, e in rows]
            assert numbers.tolist() == one_by_one
            if isinstance(many, tc.Recalibrator):
                assert got.p.tolist() == [ticket.p for ticket in one_by_one]
        else:
            tickets, outcomes = _drawn(many.awaited, rows)
            many.resolve_many(tickets, outcomes)
            for ticket, outcome in zip(tickets, outcomes, strict=True):
                single.resolve(ticket, outcome)
        assert many.awaited == single.awaited
    assert many.state() == single.state()


@pytest.mark.alike("plays each kind")
@pytest.mark.parametrize("kind", ["mix", "own", "monitor", "chains"])
@settings(max_examples=15, deadline=None)
@given(batches=batches, row=st.integers(0, 5), bad=st.sampled_from(["twice", "unknown", "over"]))
def test_a_batch_that_fails_changes_nothing(kind, batches, row, bad):
    many = _made(kind)
    for what, rows in batches:
        if what == "issue":
            columns = [list(column) for column in zip(*rows, strict=True)]
            many.issue_many(columns[0], groups=columns[1], events=columns[2])
        else:
            many.resolve_many(*_drawn(many.awaited, rows))
    many.issue_many([0.2, 0.9], groups=["new", "a"], events=["n", "e"])
    before = many.state()
    tickets = [int(ticket) for ticket in many.awaited][:5]
    if bad == "twice":
        tickets.insert(min(row + 1, len(tickets)), tickets[0])
        expected = tc.TicketError
    else:
        tickets.insert(row, 10**6 if bad == "unknown" else 10**18)
        expected = tc.InputError
    with pytest.raises(expected) as caught:
        many.resolve_many(tickets, [1] * len(tickets))
    assert caught.value.position is not None
    assert many.state() == before


def test_batches_refuse_what_single_calls_refuse():
    r, m = tc.Recalibrator(), tc.Monitor()
    for it in (r, m):
        before = it.state()
        for scores in ([0.5, 1.5], [0.5, np.nan], ["a"]):
            with pytest.raises(tc.InputError):
                it.issue_many(scores)
        with pytest.raises(tc.InputError):
            it.issue_many([0.5], groups=["a", "b"])
        with pytest.raises(tc.InputError):
            it.resolve_many([0], [2])
        with pytest.raises(tc.InputError):
            it.resolve_many([0.5], [1])
        with pytest.raises(tc.InputError):
            it.resolve_many([0, 1], [1])
        with pytest.raises(tc.InputError):
            it.resolve_many([-1], [1])
        it.resolve_many([], [])
        it.issue_many([])
        assert it.state() == before


@settings(max_examples=25, deadline=None)
@given(
    classes=st.sampled_from([1, 3]),
    turns=st.lists(st.tuples(st.booleans(), st.integers(0, 10**6), st.integers(0, 2)), max_size=60),
    seed=st.integers(0, 9),
)
def test_the_record_is_that_of_the_reference(classes, turns, seed):
    rng = np.random.default_rng(seed)
    plain, core, batch = Record(classes, 16, 7), *(_core.Record(classes, 16, 7) for _ in "ab")
    steps, rows, counts, members = [], [], [], []
    tickets, outcomes, times = [], [], []
    for issues, place, outcome in turns:
        if issues or not plain.open:
            before, after = rng.dirichlet(np.ones(max(classes, 2)), 2).round(2)[:, :classes]
            of = [place % 3] if place % 2 else []
            plain.issue(place, before.tolist(), after.tolist(), of)
            _steps(core, [place], before[None], after[None], [len(of)], of, [], [], [0])
            steps.append(0)
            rows.append((before, after))
            times.append(place)
            counts.append(len(of))
            members += of
        else:
            ticket = list(plain.open)[place % len(plain.open)]
            y = outcome % 2 if classes == 1 else outcome
            plain.resolve(ticket, y)
            core.resolve(ticket, y)
            steps.append(1)
            tickets.append(ticket)
            outcomes.append(y)
    table = np.array(rows).reshape(-1, 2, classes)
    args = (times, table[:, 0], table[:, 1], counts, members, tickets, outcomes, steps)
    _steps(batch, *args)
    for other in (core, batch, _reloaded(batch, classes)):
        assert _numbers(other, classes) == _plain(plain)


def _steps(record, at, before, after, counts, members, tickets, outcomes, order):
    record.steps(
        np.array(at, np.int64),
        np.ascontiguousarray(before),
        np.ascontiguousarray(after),
        np.array(counts, np.int64),
        np.array(members, np.uint32),
        np.array(tickets, np.int64),
        np.array(outcomes, np.int32),
        np.array(order, np.uint8),
    )


def _reloaded(record, classes):
    again = _core.Record(classes, 16, 7)
    again.load_sums(*record.sums())
    for k in range(classes):
        again.load_side(k, copy.deepcopy(record.side(k)))
    again.load_open(**record.saved_open())
    return again


def _numbers(record, classes):
    issued, given_up, noise, everyone, of = record.sums()
    halves = []
    for k in range(classes):
        side = record.side(k)
        halves.append((side["ones"], side["rolling"]))
        for half in (side["before"], side["after"]):
            lists = [half[name].tolist() for name in ("zeros", "ones", "said")]
            halves.append((half["brier"], half["log"], half["refuted"], *lists))
    waiting = {name: column.tolist() for name, column in record.saved_open().items()}
    sums = {place: each for place, each in enumerate(of) if each[0]}
    return issued, given_up, noise, everyone, sums, halves, waiting


def _plain(record):
    halves = []
    for side in record.sides:
        halves.append((side.ones, side.rolling))
        for half in (side.before, side.after):
            lists = [half.zeros, half.ones, half.said]
            halves.append((half.brier, half.log, half.refuted, *lists))
    waiting = {
        "ticket": list(record.open),
        "at": [each.at for each in record.open.values()],
        "numbers": [
            x for each in record.open.values() for x in each.before + each.after + each.average
        ],
        "counts": [len(each.groups) for each in record.open.values()],
        "group": [g for each in record.open.values() for g in each.groups],
    }
    sums = {
        place: (each.rounds, each.right, each.before, each.after)
        for place, each in record.groups.items()
    }
    everyone = record.all.rounds, record.all.right, record.all.before, record.all.after
    return (
        record.issued,
        record.given_up,
        record.noise,
        everyone,
        dict(sorted(sums.items())),
        halves,
        waiting,
    )
