"""How many threads may run, and work shared by them; kernels let other threads run."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from truecast import _check

__all__ = ["ahead", "both", "each", "in_order", "threads"]

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container on Linux: "200000 100000" is two cores

First = TypeVar("First")
Second = TypeVar("Second")


def threads() -> int:
    """Return how many threads to use.

    As many as there are cores that this process may use, by its affinity and by the quota of its
    container; no more than the environment variable TRUECAST_THREADS says.
    """
    most = min(_processors(), _quota())
    limit = os.environ.get("TRUECAST_THREADS")
    if not limit:
        return most
    number = int(limit) if limit.isdecimal() else limit
    return min(most, _check.whole_number("TRUECAST_THREADS", number, least=1, most=1024))


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Return what two functions return; the second runs in a thread of its own if it may."""
    if threads() == 1:
        return first(), second()
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(second)
        return first(), waiting.result()


def each(
    work: Callable[[First], Second], items: Iterable[First], most: int | None = None
) -> list[Second]:
    """Return what the work makes of each item, by `most` threads, or as many as may run."""
    number = threads() if most is None else most
    if number == 1:
        return [*map(work, items)]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

    with ThreadPoolExecutor(number) as pool:
        return [*pool.map(work, items)]


def ahead(items: Iterator[First]) -> Iterator[First]:
    """Yield the items in order; the next is made by another thread while one is in use."""
    if threads() == 1:
        yield from items
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

    end = object()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = other.submit(next, items, end)
            yield item  # type: ignore[misc]


def in_order(work: Callable[[First], Second], items: Iterator[First]) -> Iterator[Second]:
    """Yield what the work makes of each item, in order; other threads are some items ahead.

    The items themselves are made in this thread. What is raised comes after all that was before it.
    """
    most = threads()
    if most == 1:
        yield from map(work, items)
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # slow to import, and for this alone

    waiting: deque[Future[Second]] = deque()
    with ThreadPoolExecutor(most) as others:
        raised = None
        while raised is None or waiting:
            if raised is None and len(waiting) < 2 * most:
                try:
                    waiting.append(others.submit(work, next(items)))
                except Exception as error:  # StopIteration, too
                    raised = error
            else:
                yield waiting.popleft().result()
    if not isinstance(raised, StopIteration):
        raise raised


def _processors() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return (len(usable(0)) if usable else os.cpu_count()) or 1


@cache
def _quota() -> int:
    """Return how many cores the container may use, rounded up; very many without a limit."""
    try:
        quota, period = _QUOTA.read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):  # not in a container, or "max"
        return 1 << 20
