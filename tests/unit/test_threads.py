"""Threads: as many as are allowed, and the same results with any number."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import truecast as tc
from truecast import FileError, InputError, _threads


def test_threads_are_as_many_as_the_environment_allows(monkeypatch):
    monkeypatch.setattr(_threads, "_processors", lambda: 8)
    monkeypatch.setattr(_threads, "_quota", lambda: 1 << 20)
    monkeypatch.delenv("TRUECAST_THREADS", raising=False)
    assert _threads.threads() == 8
    monkeypatch.setenv("TRUECAST_THREADS", "3")
    assert _threads.threads() == 3
    monkeypatch.setenv("TRUECAST_THREADS", "many")
    with pytest.raises(InputError, match="TRUECAST_THREADS.*whole number"):
        _threads.threads()
    monkeypatch.setenv("TRUECAST_THREADS", "100")
    monkeypatch.setattr(_threads, "_quota", lambda: 2)
    assert _threads.threads() == 2


@pytest.mark.parametrize(
    ("text", "cores"), [("200000 100000", 2), ("150000 100000", 2), ("max 100000", 1 << 20)]
)
def test_the_quota_of_a_container(tmp_path, monkeypatch, text, cores):
    file = tmp_path / "cpu.max"
    file.write_text(text)
    monkeypatch.setattr(_threads, "_QUOTA", file)
    assert _threads._quota.__wrapped__() == cores


def test_work_is_shared_or_not_with_the_same_result(monkeypatch):
    for allowed in (1, 2):
        monkeypatch.setattr(_threads, "threads", lambda allowed=allowed: allowed)
        assert _threads.both(lambda: 1, lambda: 2) == (1, 2)
        assert _threads.each(abs, [-1, 2, -3]) == [1, 2, 3]


def test_what_is_made_ahead_comes_in_order_and_ends(monkeypatch):
    made = []

    def numbers():
        for k in range(5):
            made.append(k)
            yield k

    for allowed in (1, 2):
        monkeypatch.setattr(_threads, "threads", lambda allowed=allowed: allowed)
        assert [*_threads.ahead(numbers())] == [0, 1, 2, 3, 4]
        made.clear()
        some = _threads.ahead(numbers())
        assert next(some) == 0
        some.close()
        assert len(made) <= 2


def test_resamples_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    found = []
    for allowed in (1, 2):
        monkeypatch.setattr(_threads, "threads", lambda allowed=allowed: allowed)
        found.append(tc.uncertainty(tc.brier_score, y, p, resamples=130, random_state=1))
    assert found[0] == found[1]


@pytest.mark.parametrize("most", ["1", ""])
def test_work_in_order_stays_in_order_and_raises_in_order(most, monkeypatch):
    monkeypatch.setenv("TRUECAST_THREADS", most)
    monkeypatch.setattr(_threads, "_processors", lambda: 3)

    def items():
        yield from range(20)
        raise FileError("f.csv", "ends here")

    def all_before(work, given, expected):
        found = _threads.in_order(work, given)
        assert [next(found) for _ in expected] == expected
        return found

    ends = all_before(lambda k: k * k, items(), [k * k for k in range(20)])
    with pytest.raises(FileError, match="ends here"):
        next(ends)
    fails = all_before(lambda k: 1 / (k - 3), iter(range(20)), [-1 / 3, -1 / 2, -1])
    with pytest.raises(ZeroDivisionError):
        next(fails)
    assert [*_threads.in_order(str, iter(()))] == []


def test_one_thread_gives_the_bits_of_several(monkeypatch):
    """With enough forecasts for tallies and measures to use all threads."""
    rng = np.random.default_rng(0)
    p = rng.random(1 << 18)
    y, weights = rng.random(len(p)) < p, rng.random(len(p))
    found = []
    for allowed in ("1", "3"):
        monkeypatch.setattr(_threads, "_processors", lambda: 3)
        monkeypatch.setattr(_threads, "_quota", lambda: 3)
        monkeypatch.setenv("TRUECAST_THREADS", allowed)
        tally = tc.Tally.from_predictions(y, p)
        measures = tc.laplace_calibration_error(tally), tc.arc_energy(tally)
        found.append((tally, tc.Tally.from_predictions(y, p, sample_weight=weights), measures))
    assert found[0] == found[1]


@pytest.mark.parametrize("threaded", ["ahead", "in_order"])
def test_work_that_is_left_in_the_middle_is_not_waited_for(threaded, monkeypatch):
    """A generator may be collected where waiting for a thread would be for ever."""
    monkeypatch.setattr(_threads, "_processors", lambda: 2)
    monkeypatch.setattr(_threads, "_quota", lambda: 2)
    monkeypatch.delenv("TRUECAST_THREADS", raising=False)
    go_on, done = threading.Event(), threading.Event()

    def work(number):
        if number > 0:
            go_on.wait(10)
            done.set()
        return number

    numbers = iter(range(3))
    found = (
        _threads.ahead(map(work, numbers))
        if threaded == "ahead"
        else _threads.in_order(work, numbers)
    )
    assert next(found) == 0
    found.close()
    assert not done.is_set()
    go_on.set()
    assert done.wait(10)
