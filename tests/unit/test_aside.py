"""Work in one other thread: in order, whole when the context ends, with its errors raised here."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from truecast import _threads
from truecast._threads import Aside


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUECAST_THREADS", raising=False)
    monkeypatch.setattr(_threads, "_quota", lambda: 1 << 20)
    monkeypatch.setattr(_threads, "_processors", lambda: 4)


@pytest.mark.parametrize("wanted", [True, False])
def test_items_come_in_order_and_work_is_done_in_order(wanted: bool) -> None:
    done: list[int] = []
    with Aside(wanted=wanted) as aside:
        for k in aside.ahead(iter(range(100))):
            aside.do(lambda k=k: done.append(k))
        aside.wait()
        assert done == [*range(100)]


@pytest.mark.parametrize("wanted", [True, False])
def test_who_does_it_and_how_far_ahead(wanted: bool) -> None:
    made: list[tuple[int, int, bool]] = []

    def numbers() -> Iterator[int]:
        for k in range(5):
            made.append((k, _threads.threads(), threading.current_thread() is here))
            yield k

    here = threading.current_thread()
    with Aside(wanted=wanted) as aside:
        for k in aside.ahead(numbers()):
            assert k <= len(made) - 1 <= k + wanted
    # no other threads are started from there
    assert made == [(k, 1 if wanted else 4, not wanted) for k in range(5)]
    assert _threads.threads() == 4


def test_one_thread_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUECAST_THREADS", "1")
    found = []
    with Aside() as aside:
        aside.do(lambda: found.append(threading.current_thread()))
        assert found == [threading.current_thread()]


@pytest.mark.parametrize("wanted", [True, False])
def test_what_work_raises_is_raised_before_more_is_done(wanted: bool) -> None:
    done: list[int] = []
    with pytest.raises(ZeroDivisionError), Aside(wanted=wanted) as aside:  # noqa: PT012
        aside.do(lambda: done.append(1 // 0))
        aside.do(lambda: done.append(1))
    assert done == []


def test_what_making_an_item_raises_comes_in_its_turn() -> None:
    def numbers() -> Iterator[float]:
        for k in (2, 1, 0):
            yield 1 / k

    with Aside() as aside:
        found = aside.ahead(numbers())
        assert [next(found), next(found)] == [0.5, 1]
        with pytest.raises(ZeroDivisionError):
            next(found)


def test_work_is_done_when_the_context_ends_whatever_ends_it() -> None:
    begun, go, done = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go.wait()
        done.append(1)

    with pytest.raises(KeyboardInterrupt), Aside() as aside:  # noqa: PT012
        aside.do(work)
        begun.wait()
        threading.Timer(0.01, go.set).start()
        raise KeyboardInterrupt
    assert done == [1]
