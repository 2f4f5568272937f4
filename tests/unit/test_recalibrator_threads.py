"""Long batches: hints a block ahead of the guard, by a second thread if there may be one."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.recalibrate import recalibrator

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
    monkeypatch.setattr(recalibrator, "_SEVERAL_THREADS", 0)
    monkeypatch.setattr(recalibrator, "threads", lambda: 1)
    alone = played(**options)
    monkeypatch.setattr(recalibrator, "threads", lambda: 2)
    both = played(**options)
    assert alone[0].tobytes() == both[0].tobytes()
    assert alone[1] == both[1]


def test_a_batch_is_the_same_as_its_rounds() -> None:
    scores, y = rounds(5_000)
    r, one_by_one = tc.Recalibrator(), tc.Recalibrator()
    said = r.forecast_many(scores, y)
    for score, outcome, p in zip(scores.tolist(), y.tolist(), said.tolist(), strict=True):
        assert one_by_one.predict(score) == p
        one_by_one.observe(outcome)
    assert r.to_json() == one_by_one.to_json()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on Windows")
def test_an_interrupt_leaves_everything_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threading.current_thread() is threading.main_thread()
    monkeypatch.setattr(recalibrator, "threads", lambda: 2)
    r = tc.Recalibrator()
    r.forecast_many(*rounds())
    before = r.to_json()
    scores, y = rounds(1_000_000)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            r.forecast_many(scores, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    assert r.to_json() == before
    r.forecast_many(*rounds())
