"""The compiled monitor beside the plain one, and beside its own definition on small worlds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.reference import PlainMonitor

forecasts = st.one_of(
    st.floats(0.0001, 0.9999),
    st.sampled_from([1e-9, 0.03125, 0.125, 0.28125, 0.5, 0.71875, 0.96875, 1 - 1e-9]),
)
rounds = st.lists(st.tuples(forecasts, st.integers(0, 1)), max_size=40)


def pair(*, level: bool) -> tuple[tc.Monitor, PlainMonitor]:
    options = {"alpha": 1e-12} if level else {"mean_time": 2.0**50}
    return tc.Monitor(**options), PlainMonitor(level=level)


@settings(max_examples=60, deadline=None)
@given(rounds, st.booleans())
def test_compiled_and_plain_agree(played: list[tuple[float, int]], level: bool) -> None:
    compiled, plain = pair(level=level)
    for p, y in played:
        compiled.update(p, y)
        plain.update(p, y)
    if compiled.alarms:
        return  # restarted, or scaled: the plain one does neither
    assert compiled.evidence == pytest.approx(plain.evidence, rel=1e-9)
    assert compiled.evidence <= plain.evidence * (1 + 1e-14)  # rounded down
    if played:
        assert abs(compiled.finding.since - plain.everyone.since) <= 0.5 + 1e-6


names = st.sampled_from([(), ("a",), ("b", "a"), ("c",)])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), forecasts, names),
        st.tuples(st.just("close"), st.integers(0, 30), st.sampled_from([0, 1, None])),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.booleans())
def test_compiled_and_plain_agree_on_groups_and_late_outcomes(
    taken: list[tuple[str, Any, Any]], level: bool
) -> None:
    """In the order of issue; None is an outcome that never comes."""
    compiled, plain = pair(level=level)
    for what, first, second in taken:
        if what == "issue":
            assert compiled.issue(first, group=second or None) == plain.issue(first, second)
        elif awaited := compiled.awaited:
            ticket = awaited[first % len(awaited)]
            if second is None:
                compiled.give_up(ticket)
            else:
                compiled.resolve(ticket, second)
            plain.resolve(ticket, second)
    assert compiled.rounds == plain.rounds
    everyone = [(compiled, plain.evidence, plain.everyone)]
    groups = [(compiled.groups[name], each.total, each) for name, each in plain.groups.items()]
    for ours, evidence, account in everyone + groups:
        if ours.alarms:
            continue  # restarted, or scaled: the plain one does neither
        assert ours.evidence == pytest.approx(evidence, rel=1e-9)
        if account.stakes:
            assert abs(ours.finding.since - account.since) <= 0.5 + 1e-6


@settings(max_examples=30, deadline=None)
@given(rounds, st.booleans(), st.sampled_from([None, "a", ("a", "b")]))
def test_batch_is_the_loop(played: list[tuple[float, int]], level: bool, group: object) -> None:
    one, many = (pair(level=level)[0] for _ in range(2))
    for p, y in played:
        one.update(p, y, group)
    p, y = (np.array([r[k] for r in played], dtype) for k, dtype in ((0, float), (1, np.uint8)))
    trace = np.empty(len(played))
    many.update_many(p, y, groups=[group] * len(played), out=trace)
    assert one.state() == many.state()
    if played and math.isfinite(one.evidence):
        assert trace[-1] == one.evidence


def adaptive(past: tuple[int, ...]) -> float:
    """A forecast that looks at past outcomes, and is tied, rare or all but sure at times."""
    known = (1 + sum(past)) / (2 + len(past))
    return (known, 0.5, 1e-4, 0.999, 1 - known)[len(past) % 5]


@pytest.mark.parametrize("options", [{"alpha": 0.25}, {"mean_time": 12}, {"alpha": 0.05}])
def test_promises_hold_on_all_strings(options: dict[str, float]) -> None:
    """The mean of the evidence, and the chance of an alarm, summed over all strings of outcomes."""
    length = 11
    mean, alarm, alarms = [], [], []
    for y in itertools.product((0, 1), repeat=length):
        weight = 1.0
        m = tc.Monitor(**options)
        for t in range(length):
            p = adaptive(y[:t])
            weight *= p if y[t] else 1 - p
            m.update(p, y[t])
        mean.append(weight * m.evidence)
        alarm.append(weight * (m.alarms > 0))
        alarms.append(weight * m.alarms)
    if "alpha" in options:
        assert math.fsum(mean) == pytest.approx(1, abs=1e-9)
        assert 0 < math.fsum(alarm) <= options["alpha"]
    else:
        assert 0 < math.fsum(alarms) <= length / options["mean_time"]
        spent = math.fsum(mean) + options["mean_time"] * math.fsum(alarms)
        assert spent <= length * (1 + 1e-9)


@pytest.mark.slow("tries many examples")
@settings(max_examples=50, deadline=None)
@given(rounds, forecasts, st.sampled_from([None, "a", ("a", "b"), ("b", "c")]))
def test_no_bet_gains_on_average(played: list[tuple[float, int]], p: float, group: object) -> None:
    """From any state, in any group: mean evidence after a round is that before, and the stake."""
    m = tc.Monitor(alpha=1e-12)
    for k, (q, y) in enumerate(played):
        m.update(q, y, [None, "a", ("a", "b"), "c"][k % 4])
    if m.alarms or any(each.alarms for each in m.groups.values()):
        return

    def after(y: int) -> float:
        copy = tc.Monitor.from_json(m.to_json())
        copy.update(p, y, group)
        return copy.evidence + math.fsum(each.evidence for each in copy.groups.values())

    before = m.evidence + math.fsum(each.evidence for each in m.groups.values())
    mean = p * after(1) + (1 - p) * after(0)
    assert mean == pytest.approx(before, rel=1e-9)
    assert before >= 0


sure = st.sampled_from([0.0, 5e-324, 1e-300, 2.0**-61, 2.0**-60, 1 - 2.0**-53, 1.0])


@pytest.mark.slow("tries many examples")
@settings(max_examples=100, deadline=None)
@given(rounds, st.one_of(forecasts, sure), st.booleans())
def test_what_is_compared_is_a_supermartingale_in_fractions(
    played: list[tuple[float, int]], p: float, level: bool
) -> None:
    m = pair(level=level)[0]
    for q, y in played:
        m.update(q, y)
    if m.alarms:
        return

    def after(y: int) -> Fraction:
        copy = tc.Monitor.from_json(m.to_json())
        copy.update(p, y)
        return Fraction(copy.evidence) if math.isfinite(copy.evidence) else Fraction(0)

    chance = Fraction(p)
    mean = sum(c * after(y) for y, c in ((0, 1 - chance), (1, chance)) if c)
    assert mean <= Fraction(m.evidence) + (0 if level else 1)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0.01, 0.99),
    st.floats(0.01, 3),
)
def test_a_step_in_space_costs_no_more_than_proved(
    s: list[float], d: list[float], chance: float, tilt: float
) -> None:
    """Lemma 2, for steps to two points: d with this chance, and one that makes the mean 0."""
    start, up = np.array(s), np.array(d)
    down = -chance / (1 - chance) * up
    most = max(np.linalg.norm(up), np.linalg.norm(down))
    mean = chance * np.cosh(tilt * np.linalg.norm(start + up)) + (1 - chance) * np.cosh(
        tilt * np.linalg.norm(start + down)
    )
    limit = tilt**2 * most**2 / 2 + np.log(np.cosh(tilt * np.linalg.norm(start)))
    assert np.log(mean) <= limit + 1e-9


def test_a_lost_outcome_is_counted_at_its_least() -> None:
    """Whatever the outcome was, it would have made no less evidence: bet by bet, so in sum."""
    for p in (1e-6, 0.2, 0.5, 0.9):
        m = tc.Monitor()
        m.update_many([0.3, 0.6, 0.1] * 20, [1, 0, 0] * 20)
        evidence = []
        for y in (0, 1):
            copy = tc.Monitor.from_json(m.to_json())
            copy.update(p, y)
            evidence.append(copy.evidence)
        ticket = m.issue(p)
        m.give_up(ticket)
        assert m.evidence <= min(evidence)
        assert m.given_up == 1
