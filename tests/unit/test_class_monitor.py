"""The monitor for several classes: promises, what it finds, late outcomes, states, errors."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.errors import InputError, StateError, TicketError

LABELS = ["home", "draw", "away"]


def drawn(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The number of the class that comes of each row."""
    return (rng.random((len(rows), 1)) > rows.cumsum(axis=1)).sum(axis=1).clip(0, rows.shape[1] - 1)


def parts(m: Any) -> list[Any]:
    return [m.confidence, *m.classes.values()]


def adaptive(past: tuple[int, ...]) -> list[float]:
    """Right rows that look at past outcomes; at times a class is rare, or two are tied."""
    counts = np.array([1 + past.count(k) for k in range(3)], float)
    rows = counts / counts.sum(), [0.5, 0.5 - 1e-4, 1e-4], [0.25, 0.25, 0.5]
    return list(rows[len(past) % 3])


@pytest.mark.parametrize("options", [{"alpha": 0.3}, {"alpha": 0.2}, {"mean_time": 10}])
def test_promises_hold_on_all_strings(options: dict[str, float]) -> None:
    """Theorem 8, summed over all outcomes of six rows: means, and chances of alarms."""
    length = 6
    mean, ever, alarms = [], [], []
    for y in itertools.product(range(3), repeat=length):
        weight = 1.0
        m = tc.Monitor(classes=3, **options)
        for t in range(length):
            row = adaptive(y[:t])
            weight *= row[y[t]]
            m.update(row, y[t])
        mean.append(weight * math.fsum(part.evidence for part in parts(m)))
        ever.append(weight * (m.alarms > 0))
        alarms.append(weight * m.alarms)
    if "alpha" in options:
        assert math.fsum(mean) == pytest.approx(1, abs=1e-9)
        assert 0 < math.fsum(ever) <= options["alpha"]
    else:
        assert 0 < math.fsum(alarms) <= length / options["mean_time"]
        spent = math.fsum(mean) + options["mean_time"] * math.fsum(alarms)
        assert spent <= length * (1 + 1e-9)


def test_a_class_is_a_monitor_of_its_own() -> None:
    """Each class has what a `Monitor` of "this class, or another" makes of its part of stakes."""
    rng = np.random.default_rng(1)
    rows = rng.dirichlet([1, 2, 3], 500)
    y = drawn(rows, rng)
    m = tc.Monitor(classes=3, alpha=1e-12)
    m.update_many(rows, y)
    likeliest = rows.argmax(axis=1)
    own = [(rows.max(axis=1), likeliest == y, 0.5)]
    own += [(rows[:, k], y == k, 0.5 / 3) for k in range(3)]
    for part, (p, came, stake) in zip(parts(m), own, strict=True):
        alone = tc.Monitor(alpha=1e-12)
        alone.update_many(p, came)
        assert part.evidence == pytest.approx(stake * alone.evidence, rel=1e-12)
        assert part.rounds == m.rounds == 500
    assert m.evidence == max(part.evidence for part in parts(m))
    assert m.smooth_error() == alone_smooth(rows.max(axis=1), likeliest == y)


def alone_smooth(p: np.ndarray, y: np.ndarray) -> Any:
    m = tc.Monitor()
    m.update_many(p, y)
    return m.smooth_error()


def test_says_which_class_is_off() -> None:
    rng = np.random.default_rng(2)
    rows = rng.dirichlet([4, 6, 5], 12_000)
    y = drawn(rows, rng)
    late = np.arange(12_000) >= 6_000
    y[late & (y == 1) & (rng.random(12_000) < 0.3)] = 0
    m = tc.Monitor(classes=LABELS, alpha=0.05)
    m.update_many(rows, np.array(LABELS)[y])
    alarmed = [label for label, each in m.classes.items() if each.alarm]
    assert alarmed == ["home", "draw"]
    assert m.alarm.label in alarmed
    assert m.alarm.round > 6_000
    assert set(m.suspects()) == {"home", "draw"}
    assert (m.classes["home"].finding.label, m.confidence.finding.label) == ("home", None)
    assert m.classes["draw"].finding.direction == "too high"
    assert str(m.classes["draw"].finding).startswith("forecasts of draw are ")
    assert m.classes["draw"].finding.earliest <= 6_000 <= m.classes["draw"].finding.latest
    assert m.classes["away"].evidence < 1
    assert repr(m.classes) == "Classes(['home', 'draw', 'away'])"
    assert "nobody" not in m.classes


def test_overconfidence_shows_in_the_confidence() -> None:
    """Of many classes each is off a little: the largest probabilities tell it together."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.5, (4_000, 20))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    said = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)
    m = tc.Monitor(classes=20)
    m.update_many(said, drawn(truth, rng))
    assert m.alarm is not None
    assert m.alarm.label is None
    assert m.confidence.evidence > max(each.evidence for each in m.classes.values())


@pytest.mark.parametrize("order", ["issue", "resolution"])
def test_batch_is_the_loop_late_or_not(order: str) -> None:
    rng = np.random.default_rng(4)
    rows = rng.dirichlet([1, 1, 1], 120)
    y = drawn(rows, rng)
    known = np.arange(120) + rng.integers(0, 9, 120)
    for known_at in (None, known):
        batch, loop = (tc.Monitor(classes=3, order=order, max_unresolved=6) for _ in range(2))
        trace = np.empty(120)
        batch.update_many(rows, y, known_at=known_at, out=trace)
        for t in range(120):
            if known_at is None:
                loop.update(rows[t], int(y[t]))
                continue
            loop.issue(rows[t])
            for s in np.flatnonzero(known_at[: t + 1] == t):
                if int(s) in loop.awaited:
                    loop.resolve(int(s), int(y[s]))
        assert batch.state() == loop.state()
        assert trace[-1] == batch.evidence
        assert (batch.given_up > 0) == (known_at is not None)


def test_saved_and_loaded_with_open_tickets() -> None:
    m = tc.Monitor(classes=LABELS, mean_time=1_000)
    m.update_many([[0.2, 0.3, 0.5]] * 30, ["home"] * 30)
    first, second = m.issue([0.1, 0.2, 0.7]), m.issue([0.3, 0.3, 0.4])
    m.resolve(second, "draw")
    again = tc.ClassMonitor.from_json(m.to_json())
    assert again.labels == tuple(LABELS)
    for each in (m, again):
        each.resolve(first, "away")
    assert m.state() == again.state()
    assert m.rounds == 32
    with pytest.raises(TicketError):
        m.resolve(first, "away")
    assert tc.Monitor.from_json(m.to_json()).state() == m.state()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("late", "table", "row"), [0.5]),
        (("late", "table", "row"), [2.0, 0.0, 0.0]),
        (("late", "table", "label"), [7]),
        (("late", "table", "label"), []),
        (("book", "rounds"), 5),
        (("chains",), []),
    ],
)
def test_forged_states_are_refused(path: tuple[str, ...], value: Any) -> None:
    m = tc.Monitor(classes=3)
    m.update([0.2, 0.3, 0.5], 1)
    m.issue([0.5, 0.25, 0.25])
    state = json.loads(json.dumps(m.state()))
    at = state
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    before = m.to_json()
    with pytest.raises(StateError):
        m.load(state)
    assert m.to_json() == before


def test_bad_input_changes_nothing() -> None:
    m = tc.Monitor(classes=LABELS)
    m.update([0.2, 0.3, 0.5], "home")
    before = m.to_json()
    for call in (
        lambda: m.update([0.2, 0.3, 0.6], "home"),
        lambda: m.update([0.2, 0.8], "home"),
        lambda: m.update([0.2, 0.3, math.nan], "home"),
        lambda: m.update([0.2, 0.3, 0.5], "nobody"),
        lambda: m.update([0.2, 0.3, 0.5], "home", "group"),
        lambda: m.issue([0.2, 0.3, 0.5], event="game"),
        lambda: m.issue(0.3),
        lambda: m.update_many([[0.2, 0.3, 0.5]], ["home", "away"]),
        lambda: m.update_many([[0.2, 0.3, 0.5]] * 2, ["home", "away"], known_at=[0, 0]),
        lambda: m.update_many([[0.2, 0.3, 0.5], [2, -1, 0]], ["home", "away"]),
        lambda: m.resolve(0, "home"),
    ):
        with pytest.raises(InputError):
            call()
    assert m.to_json() == before
    for bad in ({"classes": 1}, {"classes": 3, "order": "chains"}, {"classes": ["a", "a"]}):
        with pytest.raises(InputError):
            tc.Monitor(**bad)
    for call in (
        lambda: tc.Monitor.update(m, 0.5, 1),
        lambda: tc.Monitor.issue(m, 0.5),
        lambda: tc.Monitor.update_many(m, [0.5], [1]),
    ):
        with pytest.raises(ValueError, match="forecasts of classes are rows"):
            call()
    assert m.to_json() == before
    far = tc.Monitor(classes=2, normalize=True)
    far.update([2, 6], 1)
    assert far.rounds == 1


def test_errors_name_the_arguments_of_a_monitor() -> None:
    """Those of a recalibrator have other names, and it has a scale."""
    m = tc.Monitor(classes=LABELS)
    wrong, right = [0.2, 0.3, 0.6], [0.2, 0.3, 0.5]
    for call, match in (
        (lambda: m.update(wrong, "home"), "^row must have rows .* normalize=True .* sum, got 1.1$"),
        (lambda: m.issue([0.2, 0.8]), "^row must be 3 numbers"),
        (lambda: m.update_many([wrong], ["home"]), "^rows must have rows that sum to 1"),
        (lambda: m.update_many([right], ["nobody"]), "^labels must be one of the classes"),
        (lambda: m.update_many([right], ["home"], groups=["a"]), "^groups must be None"),
        (lambda: m.update_many([right], ["home"], events=["a"]), "^events must be None"),
        (lambda: m.issue(right, group="a"), "^group must be None"),
    ):
        with pytest.raises(InputError, match=match):
            call()


def test_metrics_name_the_class() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    m = tc.Monitor(classes=LABELS)
    m.update([0.2, 0.8, 0.0], "away")
    found = {
        (sample.name, sample.labels.get("class"), sample.labels.get("part")): sample.value
        for family in parser.text_string_to_metric_families(m.metrics(model="football"))
        for sample in family.samples
    }
    assert found["truecast_evidence", "away", None] == math.inf
    assert found["truecast_refuted_total", "home", None] == 0
    assert found["truecast_evidence", None, "confidence"] < 1
    assert found["truecast_rounds_total", None, None] == 1
    with pytest.raises(InputError, match="other than group, class, part"):
        m.metrics(**{"class": "x"})
