"""How many threads may run, and work shared by them; kernels let other threads run."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Aside", "ahead", "both", "each", "in_order", "threads"]

_QUOTA = "/sys/fs/cgroup/cpu.max"  # of a container on Linux: "200000 100000" is two cores

_MOST_AHEAD = 4  # threads that make the next items, for the memory's sake

_alone = ContextVar("alone", default=False)  # in a thread that must not start others

First = TypeVar("First")
Second = TypeVar("Second")


def threads() -> int:
    """Return how many threads to use.

    As many as there are cores that this process may use, by its affinity and by the quota of its
    container; no more than the environment variable TRUECAST_THREADS says. Work that is done
    aside gets no more than its own.
    """
    if _alone.get():
        return 1
    most = min(_processors(), _quota())
    limit = os.environ.get("TRUECAST_THREADS")
    if not limit:
        return most
    from truecast import _check  # needs NumPy, which the command starts some work before

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


# The next two are generators, which may be left in the middle and collected anywhere, even where a
# thread is being started: they must not wait for threads then, which `with` would do. The threads
# of a pool that nobody holds any more end by themselves.


def ahead(items: Iterator[First]) -> Iterator[First]:
    """Yield the items in order; the next is made by another thread while one is in use."""
    aside = Aside()
    yield from aside.ahead(items)
    aside.end()


def in_order(work: Callable[[First], Second], items: Iterator[First]) -> Iterator[Second]:
    """Yield what the work makes of each item, in order; other threads are some items ahead.

    The items themselves are made in this thread. What is raised comes after all that was before it.
    """
    most = min(threads(), _MOST_AHEAD)
    if most == 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

    waiting: deque[Future[Second]] = deque()
    others = ThreadPoolExecutor(most)
    raised = None
    while raised is None or waiting:
        if raised is None and len(waiting) < 2 * most:
            try:
                waiting.append(others.submit(work, next(items)))
            except Exception as error:  # StopIteration, too
                raised = error
        else:
            yield waiting.popleft().result()
    others.shutdown()
    if not isinstance(raised, StopIteration):
        raise raised


class Aside:
    """One other thread for work that need not be done yet, or is done early.

    It does one thing after another, in the order in which they were given, and has done them all
    when the context ends, however it ends. Without it, everything is done at once, in this thread.

    Parameters
    ----------
    wanted
        Whether there may be such a thread. There should not if work may have to wait for others,
        such as a pipe: all other work would wait, too.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._given: Future[None] | None = None
        if wanted and threads() > 1:
            from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

            self._pool = ThreadPoolExecutor(1, initializer=_be_alone)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Wait until all work is done."""
        if self._pool is not None:
            self._pool.shutdown()

    def ahead(self, items: Iterator[First], most: int = 1) -> Iterator[First]:
        """Return the items in order; the next ones, `most` at most, are made from now on."""
        if self._pool is None:
            return items
        made = deque(self._pool.submit(_some, items) for _ in range(most))
        return self._made(items, made)

    def _made(self, items: Iterator[First], made: deque[Future[list[First]]]) -> Iterator[First]:
        while some := made.popleft().result():
            if self._pool is not None:
                made.append(self._pool.submit(_some, items))
            yield from some

    def do(self, work: Callable[[], None]) -> None:
        """Have some work done; raise what the work before has raised."""
        self.wait()
        if self._pool is None:
            work()
        else:
            self._given = self._pool.submit(work)

    def wait(self) -> None:
        """Wait until all work is done that was given; raise what it has raised."""
        if self._given is not None:
            self._given.result()


def _be_alone() -> None:
    _alone.set(True)


def _some(items: Iterator[First]) -> list[First]:
    """Return the next item, or nothing at their end."""
    return [*islice(items, 1)]


def _processors() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return (len(usable(0)) if usable else os.cpu_count()) or 1


@cache
def _quota() -> int:
    """Return how many cores the container may use, rounded up; very many without a limit."""
    try:
        with open(_QUOTA) as file:
            quota, period = file.read().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):  # not in a container, or "max"
        return 1 << 20
