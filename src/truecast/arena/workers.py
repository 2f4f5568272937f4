"""Work in several processes: results as they come, and no process left behind, however it ends."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import wait
from typing import Any, TypeVar

__all__ = ["in_processes"]

Task = TypeVar("Task")
Done = TypeVar("Done")

_LOST = (
    "a process has died, or could not start. In a script, call this under "
    "`if __name__ == '__main__':`; what is played "
    "must be defined in a file that can be imported, not in a notebook. Or pass workers=1"
)


def in_processes(
    work: Callable[[Task], Done], tasks: Iterable[Task], workers: int
) -> Iterator[Done]:
    """Yield what `work` makes of each task, whichever is ready first.

    Processes start afresh ("spawn"): a copy of this one could hang, as numpy and the distance have
    threads. They do not hear Ctrl-C, and are stopped at once when it comes here, when one of them
    fails, or when this iterator is closed.
    """
    left = iter(tasks)
    with ExitStack() as stack:
        busy = {pipe for pipe in _start(stack, work, workers) if _hand(pipe, left)}
        while busy:
            for pipe in wait(busy):
                result = _result(pipe)
                if not _hand(pipe, left):
                    busy.discard(pipe)
                yield result


def _start(stack: ExitStack, work: Callable[[Task], Done], workers: int) -> list[Any]:
    context = multiprocessing.get_context("spawn")
    pipes = []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(work, theirs), daemon=True)
        with _no_interrupts():
            process.start()
            stack.callback(_stop, process, ours)
        theirs.close()
        pipes.append(ours)
    return pipes


def _hand(pipe: Any, left: Iterator[Any]) -> bool:
    """Give the next task to the process at the other end, if there is one."""
    for task in left:
        try:
            pipe.send_bytes(pickle.dumps(task))
        except OSError:
            raise RuntimeError(_LOST) from None
        return True
    return False


def _result(pipe: Any) -> Any:
    try:
        failed, result = pipe.recv()
    except (EOFError, OSError):
        raise RuntimeError(_LOST) from None
    if failed:
        raise result
    return result


def _stop(process: Any, pipe: Any) -> None:
    process.terminate()
    process.join()
    process.close()
    pipe.close()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, also in processes that are started meanwhile, until they say otherwise."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(work: Callable[[Any], Any], pipe: Any) -> None:
    """Do what comes through the pipe, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv_bytes()
            try:
                answer = False, work(_unpacked(task))
            except Exception as error:  # to be raised where it can be caught
                answer = True, _sent_home(error)
            pipe.send(answer)


def _unpacked(task: bytes) -> Any:
    try:
        return pickle.loads(task)  # noqa: S301 - our own
    except Exception as error:
        raise RuntimeError(_LOST) from error


def _sent_home(error: Exception) -> Exception:
    """Return an error that can travel, with a note of where it comes from."""
    where = traceback.format_exc()
    try:
        error = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In another process:\n{where}")
    return error
