"""The monitor as users meet it: promises, late outcomes, groups, states, errors."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.errors import InputError, OrderError, StateError, TicketError


def stream(rounds: int, seed: int = 0, shift: float = 0.0, at: int = 0) -> tuple[Any, Any]:
    """Forecasts, and outcomes whose log-odds are shifted from a round on."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, rounds)
    odds = p / (1 - p) * np.exp(np.where(np.arange(rounds) >= at, shift, 0.0))
    return p, (rng.random(rounds) < odds / (1 + odds)).astype(np.uint8)


def test_finds_a_shift_and_says_where_and_since_when() -> None:
    p, y = stream(20_000, shift=-0.4, at=10_000)
    m = tc.Monitor(alpha=0.01)
    m.update_many(p[:10_000], y[:10_000])
    assert m.alarm is None
    assert m.evidence < 1
    assert str(m.finding) == "no evidence that forecasts are off"
    m.update_many(p[10_000:], y[10_000:])
    assert m.alarm is not None
    assert m.alarm.round < 12_000
    assert m.alarm.direction == "too high"
    assert m.finding.everywhere
    assert m.finding.earliest <= 10_000 <= m.finding.latest
    assert abs(m.finding.since - 10_000) < 300
    assert m.finding.points == pytest.approx(-6.6, abs=1.5)
    assert str(m.finding).startswith("forecasts are ")


def test_finds_a_dip_at_its_place() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, 30_000)
    q = np.where((p > 0.72) & (p < 0.87), p - 0.15, p)
    m = tc.Monitor()
    m.update_many(p, rng.random(30_000) < q)
    found = m.finding
    assert (found.low, found.high) == (0.71875, 0.875)
    assert found.direction == "too high"
    assert found.points == pytest.approx(-15, abs=2)
    assert "from 0.72 to 0.88" in str(found)


@pytest.mark.parametrize(("stretch", "says"), [(1.4, "too sure"), (0.7, "not sure enough")])
def test_finds_over_and_underconfidence(stretch: float, says: str) -> None:
    rng = np.random.default_rng(2)
    logit = rng.normal(0, 1.5, 20_000)
    y = rng.random(20_000) < 1 / (1 + np.exp(-logit))
    m = tc.Monitor()
    m.update_many(1 / (1 + np.exp(-stretch * logit)), y)
    assert m.alarm is not None
    assert m.finding.direction == says
    assert says in str(m.finding)


def test_mean_time_restarts_itself() -> None:
    p, y = stream(20_000, shift=0.5)
    m = tc.Monitor(mean_time=10_000)
    m.update_many(p, y)
    assert m.alarms > 10
    assert m.evidence < m.threshold == 10_000
    assert m.alarm is not None
    assert m.alarm.evidence >= 10_000


@pytest.mark.parametrize("null", ["fair", "rare", "tied", "sure", "adaptive", "coarse"])
def test_false_alarms_are_as_rare_as_promised(null: str) -> None:
    """A quick look; benchmarks/monitor.py has 1e5 streams of 1e4 rounds."""
    rng = np.random.default_rng(3)
    streams, length, alpha = 200, 100 if null == "adaptive" else 400, 0.05
    alarms = ever = 0
    for _ in range(streams):
        u = rng.random(length)
        if null == "adaptive":  # forecasts look at the outcomes so far
            p, y, even = np.empty(length), np.empty(length, int), True
            for t in range(length):
                p[t] = 0.3 if even else 0.8
                y[t] = u[t] < p[t]
                even ^= bool(y[t])
        else:
            p = {
                "fair": rng.uniform(0, 1, length),
                "rare": np.full(length, 1e-4),
                "tied": np.full(length, 0.5),
                "sure": rng.integers(0, 2, length).astype(float),
                "coarse": rng.integers(0, 11, length) / 10,
            }[null]
            y = (u < p).astype(int)
        level, on_call = tc.Monitor(alpha=alpha), tc.Monitor(mean_time=length * 10)
        level.update_many(p, y)
        on_call.update_many(p, y)
        ever += level.alarms
        alarms += on_call.alarms
    assert ever <= 20  # of 200 at 5 %: 10 at most on average, 20 less than once in 1,000 times
    assert alarms <= 40  # 20 at most on average


def test_a_refuted_zero_is_certain() -> None:
    for p, y in ((0.0, 1), (1.0, 0)):
        m = tc.Monitor()
        m.update(0.5, 1)
        m.update(p, y)
        assert m.evidence == m.peak == math.inf
        assert m.alarm is not None
        assert str(m.alarm) == "a forecast of exactly 0 or 1 was wrong"
        again = tc.Monitor.from_json(m.to_json())
        assert again.evidence == math.inf
        json.loads(m.to_json(), parse_constant=lambda name: pytest.fail(name))
        m = tc.Monitor(mean_time=1000)
        m.update(p, y)
        assert (m.alarms, m.evidence) == (1, 0)
    m = tc.Monitor()
    m.update_many([0.0, 1.0, 0.0], [0, 1, 0])
    assert m.evidence < 1.1


def late(monitor: tc.Monitor, p: Any, y: Any, lag: Any, events: Any = None) -> None:
    """Issue a forecast a round, and resolve each `lag` rounds later."""
    due: dict[int, list[tuple[int, int]]] = {}
    for t in range(len(p)):
        for ticket, outcome in due.pop(t, []):
            monitor.resolve(ticket, outcome)
        event = None if events is None else int(events[t])
        ticket = monitor.issue(float(p[t]), event=event)
        due.setdefault(t + int(lag[t]), []).append((ticket, int(y[t])))
    for t in sorted(due):
        for ticket, outcome in due[t]:
            monitor.resolve(ticket, outcome)


def alarms_of(options: dict[str, Any], make: Any, seeds: int = 10) -> int:
    count = 0
    for seed in range(seeds):
        m = tc.Monitor(alpha=0.05, **options)
        late(m, *make(np.random.default_rng(seed)))
        count += m.alarms
    return count


def ones_first(rng: np.random.Generator) -> tuple[Any, ...]:
    """Right forecasts; ones are known at once, zeros 300 rounds later."""
    p = rng.uniform(0.2, 0.8, 1_000)
    y = rng.random(1_000) < p
    return p, y, np.where(y, 1, 300)


def asked_often(rng: np.random.Generator) -> tuple[Any, ...]:
    """Right forecasts; each event is forecast ten times before it is known."""
    p = np.repeat(rng.uniform(0.2, 0.8, 150), 10)
    y = np.repeat(rng.random(150) < p[::10], 10)
    return p, y, 10 - np.arange(1_500) % 10


def test_ones_before_zeros_fool_the_order_of_resolution_alone() -> None:
    assert alarms_of({"order": "resolution"}, ones_first) == 10
    assert alarms_of({"order": "issue"}, ones_first) <= 3
    assert alarms_of({"order": "chains", "chains": 10}, ones_first) <= 3


def test_lags_that_depend_on_outcomes_are_warned_of() -> None:
    m = tc.Monitor(order="resolution")
    late(m, *ones_first(np.random.default_rng(0)))
    assert m.caution is not None
    assert "use order='issue'" in m.caution
    with pytest.warns(UserWarning, match="right forecasts raise alarms"):
        assert m.alarm is not None
    again = tc.Monitor.from_json(m.to_json())
    assert again.caution == m.caution
    m = tc.Monitor(order="issue")
    late(m, *ones_first(np.random.default_rng(0)))
    assert m.caution is None
    m = tc.Monitor(order="resolution")
    rng = np.random.default_rng(1)
    p, y, _ = ones_first(rng)
    late(m, p, y, rng.integers(1, 300, len(p)))
    assert m.caution is None


def test_one_event_asked_often_is_one_factor() -> None:
    def named(rng: np.random.Generator) -> tuple[Any, ...]:
        return *asked_often(rng), np.arange(1_500) // 10

    assert alarms_of({"order": "issue"}, asked_often) >= 9
    assert alarms_of({"order": "resolution"}, asked_often) >= 9
    assert alarms_of({"order": "issue"}, named) <= 3
    assert alarms_of({"order": "resolution"}, named) <= 3
    assert alarms_of({"order": "chains", "chains": 10}, asked_often) <= 3
    m = tc.Monitor()
    late(m, *named(np.random.default_rng(0)))
    assert (m.rounds, m.passed_over, m.forecasts) == (150, 1_350, 1_500)


def test_zeros_that_never_come() -> None:
    rng = np.random.default_rng(5)
    worst, at_random = tc.Monitor(alpha=0.05), tc.Monitor(alpha=0.05)
    for _ in range(1_000):
        p = float(rng.uniform(0.2, 0.8))
        for m in (worst, at_random):
            ticket = m.issue(p)
            if rng.random() < p:
                m.resolve(ticket, 1)
            else:
                m.give_up(ticket, at_random=m is at_random)
    assert worst.alarm is None
    assert at_random.alarm is not None
    assert worst.given_up > 400


def test_the_order_of_issue_waits() -> None:
    m, plain = tc.Monitor(), tc.Monitor()
    tickets = [m.issue(p) for p in (0.2, 0.9, 0.5)]
    m.resolve(tickets[2], 1)
    m.resolve(tickets[1], 0)
    assert (m.rounds, m.unresolved, m.awaited) == (0, 1, [0])
    m.update(0.7, 1)  # behind the one that is awaited
    assert m.rounds == 0
    again = tc.Monitor.from_json(m.to_json())
    for each in (m, again):
        each.resolve(0, 1)
    plain.update_many([0.2, 0.9, 0.5, 0.7], [1, 0, 1, 1])
    assert m.state() == again.state()
    assert m.state()["chains"] == plain.state()["chains"]
    assert m.state()["book"] == plain.state()["book"]


def test_no_more_are_awaited_than_allowed() -> None:
    m = tc.Monitor(max_unresolved=2)
    for _ in range(3):
        m.issue(0.5)
    assert (m.awaited, m.given_up, m.rounds) == ([1, 2], 1, 1)
    with pytest.raises(TicketError, match="awaits no outcome"):
        m.resolve(0, 1)


def test_chains_bet_on_one_forecast_each() -> None:
    m = tc.Monitor(order="chains", chains=2)
    tickets = [m.issue(0.5, group="a") for _ in range(3)]
    assert m.passed_over == 1
    for ticket in tickets:
        m.resolve(ticket, 1)
    assert m.rounds == m.groups["a"].rounds == 2
    assert (m.smooth_error().lower, m.smooth_error().upper) == (0, 1)
    again = tc.Monitor.from_json(m.to_json())
    assert again.state() == m.state()
    assert again.evidence == m.evidence


def test_tickets_are_resolved_once() -> None:
    m = tc.Monitor()
    ticket = m.issue(0.4)
    m.resolve(ticket, 0)
    before = m.state()
    for bad, error in (
        (ticket, TicketError),
        (99, InputError),
        ("0", InputError),
        (-1, InputError),
    ):
        with pytest.raises(error):
            m.resolve(bad, 1)
    other = m.issue(0.3)
    with pytest.raises(InputError):
        m.resolve(other, math.nan)
    m.resolve(other, 0)
    assert m.rounds == before["book"]["rounds"] + 1


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, "x", None, math.inf])
def test_bad_forecasts_change_nothing(bad: Any) -> None:
    m = tc.Monitor()
    m.update(0.5, 1)
    before = m.to_json()
    for call in (
        lambda: m.update(bad, 1),
        lambda: m.update(0.5, bad),
        lambda: m.issue(bad),
        lambda: m.update_many([0.5, bad], [1, 0]),
        lambda: m.update_many([0.5, 0.5], [1, bad]),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError):
        m.update(0.5, 1, 3.5)
    assert m.to_json() == before


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.0},
        {"alpha": 0.7},
        {"mean_time": 3},
        {"alpha": 0.1, "mean_time": 100},
        {"order": "alphabetical"},
        {"chains": 0},
        {"max_groups": -1},
        {"max_unresolved": 0},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        tc.Monitor(**options)


def test_groups_have_their_own_evidence() -> None:
    p, y = stream(20_000, seed=7)
    rng = np.random.default_rng(8)
    names = [f"g{k}" for k in rng.integers(0, 20, len(p))]
    bad = np.array([name == "g3" for name in names])
    y = np.where(bad, rng.random(len(p)) < np.clip(p + 0.2, 0, 1), y)
    m = tc.Monitor(alpha=0.05, max_groups=19)
    m.update_many(p, y, groups=[(name, "all") for name in names])
    assert len(m.groups) == 19
    assert m.others.rounds > 0
    assert m.groups["all"].rounds == m.rounds == len(p)
    alarmed = [name for name, group in m.groups.items() if group.alarm]
    assert "g3" in alarmed
    assert set(alarmed) <= {"g3", "all"}
    assert "g3" in m.suspects()
    assert set(m.suspects(fdr=0.05)) <= {"g3", "all"}
    assert m.groups["g3"].finding.direction == "too low"
    assert repr(m.groups["g3"]).startswith("GroupEvidence(")
    assert "g3" in repr(m.groups)
    assert tc.Monitor.from_json(m.to_json()).state() == m.state()
    with pytest.raises(KeyError):
        m.groups["nobody"]
    with pytest.raises(InputError):
        tc.Monitor(mean_time=100).suspects()


def test_groups_share_one_promise() -> None:
    """The evidence of everyone and all groups sums to 1 on average: here after the first round."""
    m = tc.Monitor()
    m.update(0.5, 1, ("a", "b"))
    sums = [m.evidence, *(group.evidence for group in m.groups.values())]
    n = tc.Monitor()
    n.update(0.5, 0, ("a", "b"))
    others = [n.evidence, *(group.evidence for group in n.groups.values())]
    assert (sum(sums) + sum(others)) / 2 == pytest.approx(1, abs=1e-12)


def test_combined_evidence() -> None:
    a, b = tc.Monitor(), tc.Monitor()
    a.update_many([0.1] * 30, [1] * 30)
    assert tc.combined_evidence([a, b]) == (a.evidence + b.evidence) / 2
    with pytest.raises(InputError):
        tc.combined_evidence([])
    with pytest.raises(InputError):
        tc.combined_evidence([tc.Monitor(mean_time=100)])


def test_much_evidence_stays_finite() -> None:
    m = tc.Monitor(alpha=1e-12)
    m.update_many(np.full(20_000, 0.1), np.ones(20_000))
    assert 1e100 < m.evidence < 1e201
    assert m.peak >= m.evidence
    assert m.finding.since < 5
    assert tc.Monitor.from_json(m.to_json()).evidence == m.evidence


def test_smooth_error_holds_at_all_times() -> None:
    """A coin of 0.4 that is called 0.5: the smooth error of the truth is 0.1 at every look."""
    missed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        m = tc.Monitor()
        for _ in range(40):
            m.update_many(np.full(200, 0.5), rng.random(200) < 0.4)
            found = m.smooth_error(confidence=0.9)
            missed += not found.lower <= 0.1 <= found.upper
    assert missed == 0
    assert tc.Monitor().smooth_error().upper == 1
    m = tc.Monitor()
    p, y = stream(5_000, seed=9, shift=0.3)
    m.update_many(p, y)
    assert m.smooth_error().value == pytest.approx(tc.smooth_calibration_error(y, p), abs=0.002)


def test_metrics_are_what_prometheus_reads() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    m = tc.Monitor()
    m.update_many([0.3, 0.6, 0.0], [1, 0, 1], groups=["a", 'b"\\\n', "a"])
    text = m.metrics(model="churn")
    found = {
        (sample.name, sample.labels.get("group")): sample
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["truecast_rounds_total", None].value == 3
    assert found["truecast_evidence", None].value == math.inf
    assert found["truecast_rounds_total", 'b"\\\n'].value == 1
    assert all(sample.labels["model"] == "churn" for sample in found.values())
    for bad in ({"prefix": "9"}, {"group": "x"}, {"a": 3}):
        with pytest.raises(InputError):
            m.metrics(**bad)  # type: ignore[arg-type]


def forged(state: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    changed = json.loads(json.dumps(state))
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("book", "rounds"), 7),
        (("book", "rounds"), -1),
        (("book", "rounds"), 1.0),
        (("book", "residual"), [0.0]),
        (("chains",), []),
        (("chains",), 3),
        (("chains", 0, "rounds"), 99),
        (("chains", 0, "rounds"), "x"),
        (("chains", 0, "accounts"), []),
        (("chains", 0, "accounts", 0, "mass"), [-1.0] * 30),
        (("chains", 0, "accounts", 0, "mass"), [math.nan] * 30),
        (("chains", 0, "accounts", 0, "bet"), 77),
        (("late", "given_up"), -1),
        (("late", "lags"), [0.0]),
        (("late", "lags"), [-1.0] * 6),
        (("late", "table", "p"), [2.0]),
        (("late", "table", "p"), []),
        (("late", "table", "group"), [5]),
        (("late", "table", "number"), [10]),
        (("late", "table", "open"), [0]),
        (("late", "table", "chain"), [1]),
        (("groups",), ["a", "a"]),
        (("groups",), [1.5]),
        (("groups",), "a"),
    ],
)
def test_forged_states_are_refused(path: tuple[Any, ...], value: Any) -> None:
    m = tc.Monitor()
    m.update_many([0.3, 0.6], [1, 0], groups=["a", None])
    m.issue(0.25)
    before = m.to_json()
    with pytest.raises(StateError):
        m.load(forged(m.state(), *path, value=value))
    assert m.to_json() == before


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_an_interrupted_batch_has_learned_nothing() -> None:
    m = tc.Monitor()
    m.issue(0.5, group="here")
    p, y = stream(400_000)
    p, y = np.tile(p, 5), np.tile(y, 5)
    before = m.to_json()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            m.update_many(p, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert m.to_json() == before


def test_others_are_refused_while_a_batch_runs() -> None:
    m = tc.Monitor()
    p, y = stream(300_000)
    thread = threading.Thread(target=m.update_many, args=(p, y))
    thread.start()
    refused = 0
    while thread.is_alive():
        try:
            m.update(0.5, 1)
        except OrderError:
            refused += 1
            time.sleep(0.001)
    thread.join()
    assert refused
    assert m.rounds >= 300_000


@pytest.mark.parametrize(
    "options", [{}, {"order": "resolution", "mean_time": 50}, {"order": "chains", "chains": 3}]
)
def test_known_at_replays_a_log(options: dict[str, Any]) -> None:
    """`issue` for each row, and `resolve` after the row named, bit for bit."""
    p, y = stream(300, seed=4)
    rng = np.random.default_rng(5)
    known = np.arange(300) + rng.integers(0, 12, 300)
    events: list[Any] = [[None, "a", "b", 7][k] for k in rng.integers(0, 4, 300)]
    groups: list[Any] = [[None, "x", ("x", "y")][k] for k in rng.integers(0, 3, 300)]
    batch, loop = (tc.Monitor(max_unresolved=8, **options) for _ in range(2))
    trace = np.empty(300)
    batch.update_many(p, y, groups=groups, known_at=known, events=events, out=trace)
    for t in range(300):
        loop.issue(float(p[t]), group=groups[t], event=events[t])
        for s in np.flatnonzero(known[: t + 1] == t).tolist():
            if s in loop.awaited:
                loop.resolve(s, int(y[s]))
    assert batch.state() == loop.state()
    assert batch.given_up > 0
    assert batch.awaited
    assert trace[-1] == batch.evidence
    at_once, plain = tc.Monitor(**options), tc.Monitor(**options)
    at_once.update_many(p, y, known_at=np.arange(300))
    plain.update_many(p, y)
    assert at_once.evidence == plain.evidence
    before = batch.to_json()
    for bad in ({"known_at": [0, 0]}, {"known_at": [0]}, {"events": ["a", "b"]}):
        with pytest.raises(InputError):
            batch.update_many([0.5, 0.5], [1, 0], **bad)
    assert batch.to_json() == before


def test_combined_evidence_is_for_outcomes_at_once() -> None:
    late, on_time = tc.Monitor(), tc.Monitor()
    on_time.resolve(on_time.issue(0.5), 1)  # before the next forecast: at once
    assert tc.combined_evidence([on_time]) == on_time.evidence
    tickets = [late.issue(0.5) for _ in range(2)]
    for _ in range(2):
        with pytest.warns(UserWarning, match="do not wait for each other"):
            tc.combined_evidence([late, on_time])
        for ticket in tickets:
            late.resolve(ticket, 1)
        tickets = []
    with pytest.raises(InputError, match="must not be in chains"):
        tc.combined_evidence([tc.Monitor(order="chains")])
