"""Long batches: hints some blocks ahead of the guard, by a second thread if there may be one."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.recalibrate import tickets

ROUNDS = 9_000  # several blocks, the last one not full


def rounds(count: int = ROUNDS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    scores = rng.random(count)
    return scores, (rng.random(count) < scores**1.5).astype(int)


def played(groups: Any = None, **options: Any) -> tuple[Any, str]:
    r = tc.Recalibrator(**options)
    said = r.forecast_many(*rounds(), groups=groups)
    return said, r.to_json()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hint": tc.hints.Identity(), "nudge": False, "budget": 1.05},
        {"groups": [str(k % 7) for k in range(ROUNDS)]},
        {"groups": [("a", str(k % 7)) for k in range(ROUNDS)]},
    ],
    ids=["default", "guard", "group", "groups"],
)
def test_threads_change_no_bit(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "_TWO_THREADS", 0)
    monkeypatch.setattr(tickets, "threads", lambda: 1)
    alone = played(**options)
    monkeypatch.setattr(tickets, "threads", lambda: 2)
    both = played(**options)
    assert alone[0].tobytes() == both[0].tobytes()
    assert alone[1] == both[1]


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_threads_change_no_bit_of_classes(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.full(classes, 0.5), 90_000 // classes)
    y = [int(rng.choice(classes, p=row)) for row in rows]
    monkeypatch.setattr(tickets, "_TWO_THREADS", 0)
    found = []
    for count in (1, 2):
        monkeypatch.setattr(tickets, "threads", lambda count=count: count)
        r = tc.Recalibrator(classes=classes)
        found.append((r.forecast_many(rows, y).tobytes(), r.to_json()))
    assert found[0] == found[1]


def test_a_batch_is_the_same_as_its_rounds() -> None:
    scores, y = rounds(5_000)
    r, one_by_one = tc.Recalibrator(), tc.Recalibrator()
    said = r.forecast_many(scores, y)
    for score, outcome, p in zip(scores.tolist(), y.tolist(), said.tolist(), strict=True):
        assert one_by_one.predict(score) == p
        one_by_one.observe(outcome)
    assert r.to_json() == one_by_one.to_json()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on Windows")
@pytest.mark.parametrize("classes", [None, 3])
def test_an_interrupt_leaves_everything_as_before(
    classes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert threading.current_thread() is threading.main_thread()
    monkeypatch.setattr(tickets, "threads", lambda: 2)

    def some(count: int) -> tuple[Any, Any]:
        scores, y = rounds(count)
        if classes is None:
            return scores, y
        return np.column_stack([scores / 2, scores / 2, 1 - scores]), y

    r: Any = tc.Recalibrator() if classes is None else tc.Recalibrator(classes=classes)
    r.forecast_many(*some(ROUNDS))
    before = r.to_json()
    many = some(1_000_000)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            r.forecast_many(*many)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    assert r.to_json() == before
    r.forecast_many(*some(ROUNDS))
