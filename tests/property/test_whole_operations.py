"""An operation happens or it does not: interrupts at any byte code, signals at any time, threads at
once.

TRUECAST_INTERRUPTS says how many interrupts of each kind to play; some thousands unless it does.
"""

from __future__ import annotations

import gc
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.ma  # else the first batch imports it, and an interrupt would leave half of it
import pytest

import truecast as tc
from truecast import hints
from truecast.forecasters.base import OutcomeForecaster

INTERRUPTS = int(os.environ.get("TRUECAST_INTERRUPTS", "6000"))
MOST_TICKETS, MOST_GROUPS = 12, 6
needs_timers = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no timers"
)


class Interrupt(BaseException):
    """What a signal handler raises."""


Operation = Callable[[tc.Recalibrator], Any]
Attempt = Callable[[str, Callable[[], Any]], bool]


class AtByteCode:
    """Interrupts a call at a byte code drawn at random, in whichever function it runs."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left = 0
        self._lengths: dict[str, list[int]] = {}  # of calls that ended, in byte codes

    def __call__(self, name: str, call: Callable[[], Any]) -> bool:
        """Return whether the call was interrupted."""
        lengths = self._lengths.setdefault(name, [20_000])
        rng, length = self._rng, self._rng.choice(lengths[-30:])
        at = rng.choice(
            (rng.randint(1, 20), rng.randint(1, length), max(1, length - rng.randrange(6)))
        )
        interrupted = self.at(at, call)
        if not interrupted:
            lengths.append(max(1, at - self._left))
        return interrupted

    def length(self, call: Callable[[], Any]) -> int:
        """Return how many byte codes the call has."""
        self.at(1 << 60, call)
        return (1 << 60) - self._left

    def at(self, byte_code: int, call: Callable[[], Any]) -> bool:
        """Return whether the call was interrupted at the byte code of this number."""
        self._left = byte_code
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            call()
        except Interrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                raise Interrupt
        return self._trace


def measured(frame: FrameType | None) -> bool:
    """Whether a tool that measures coverage is at work: an interrupt would leave its lock held for
    ever."""
    while frame is not None:
        if "coverage" in Path(frame.f_code.co_filename).parts:
            return True
        frame = frame.f_back
    return False


class AtAnyTime:
    """Interrupts a call by a timer's signal, whose handler raises."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._armed = False

    def handle(self, _: int, frame: FrameType | None) -> None:
        if self._armed and not measured(frame):
            self._armed = False
            raise Interrupt

    def __call__(self, name: str, call: Callable[[], Any]) -> bool:
        """Return whether the call was interrupted."""
        try:
            try:
                self._armed = True
                most = self._rng.choice((1e-5, 4e-5, 4e-4))
                signal.setitimer(signal.ITIMER_REAL, self._rng.uniform(1e-6, most))
                call()
            finally:
                self._armed = False
        except Interrupt:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False


@contextmanager
def handled(handler: Callable[..., None]) -> Iterator[None]:
    """Without callbacks of the garbage collector, such as a test tool's: what is raised in those is
    swallowed."""
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.callbacks[:] = callbacks


def drawn(rng: random.Random, r: tc.Recalibrator, state: dict[str, Any]) -> tuple[str, Operation]:
    """An operation to try: on the recalibrator and then on its twin."""
    score, y, event = (
        rng.random(),
        rng.randrange(2),
        rng.choice([None, None, "game", 5, f"new {rng.random()}"]),
    )
    group = rng.choice(
        [
            None,
            "a",
            "b",
            1,
            ("a", "c"),
            (3, "a", 2),
            f"new {rng.random()}",
            ("b", f"new {rng.random()}"),
        ]
    )
    name = rng.choice(
        ["issue", "issue", "resolve", "resolve", "give_up", "predict", "observe", "batch", "log"]
        * 4
        + ["load", "save"]
    )
    ticket = rng.choice(r.awaited) if r.awaited else None
    if name in ("resolve", "give_up") and ticket is None:
        name = "issue"
    scores, groups = [score, 1 - score, 0.5], [group, None, group]
    return name, {
        "issue": lambda r: r.issue(score, group=group, event=event),
        "resolve": lambda r: r.resolve(ticket, y),
        "give_up": lambda r: r.give_up(ticket),
        "predict": lambda r: r.predict(score, group=group),
        "observe": lambda r: r.observe(y),
        "batch": lambda r: r.forecast_many(scores, [y, 1 - y, y], groups=groups),
        "log": lambda r: r.forecast_many(
            scores, [y, y, 0], groups=groups, known_at=[0, 2, 9], events=[event, None, 7]
        ),
        "load": lambda r: r.load(state),
        "save": lambda r: (r.certificate, r.to_json()),
    }[name]


def play(attempt: Attempt, rng: random.Random, interrupts: int) -> Counter[str]:
    """Try operations until enough were interrupted; a twin plays those that happened,
    uninterrupted.

    After each the state is that from before, or that of the twin after it; a retry is applied once
    or refused.
    """

    def build() -> tc.Recalibrator:
        hint = hints.Mix([hints.Identity(), hints.Platt(20)])
        return tc.Recalibrator(hint=hint, max_groups=MOST_GROUPS, max_unresolved=MOST_TICKETS)

    seen: Counter[str] = Counter()
    r, twin = build(), build()
    before = earlier = r.state()
    while seen["interrupts"] < interrupts:
        name, operation = drawn(rng, r, earlier)
        try:
            interrupted = attempt(name, partial(operation, r))
        except tc.OrderError:  # observe without predict
            assert name == "observe"
            assert r.state() == before
            continue
        after = r.state()
        happened = not interrupted or after != before
        if happened:
            operation(twin)
        assert after == twin.state(), (name, seen)
        if interrupted:
            seen["interrupts"] += 1
            seen[f"{name}, {'after' if happened else 'before'}"] += 1
            if name in ("resolve", "give_up"):
                retry(operation, r, twin, refused=happened)
                after = r.state()
        before = after
        earlier = before if rng.random() < 0.1 else earlier
        if seen["interrupts"] % 200 == 0 or rng.random() < 0.002:
            r = tc.Recalibrator.from_json(r.to_json())
            assert r.state() == before
            assert math.isfinite(r.certificate.bound)
            if len(r.groups) == MOST_GROUPS:
                r, twin = build(), build()  # so that groups are new again
                before = r.state()
    return seen


def retry(
    operation: Operation, r: tc.Recalibrator, twin: tc.Recalibrator, *, refused: bool
) -> None:
    if refused:
        with pytest.raises(tc.TicketError):
            operation(r)
    else:
        operation(r)
        operation(twin)
    assert r.state() == twin.state()


@pytest.mark.slow("interrupts at many byte codes")
def test_interrupts_at_any_byte_code_leave_before_or_after() -> None:
    rng = random.Random(1)  # noqa: S311
    seen = play(AtByteCode(rng), rng, INTERRUPTS)
    for name in (
        "issue",
        "resolve",
        "give_up",
        "predict",
        "observe",
        "batch",
        "log",
        "load",
        "save",
    ):
        assert seen[f"{name}, before"] > 0
        assert seen[f"{name}, after"] > 0 or name in ("load", "save")


@pytest.mark.slow("interrupts at every byte code")
@pytest.mark.parametrize(
    "name",
    ["issue", "oldest", "new group", "resolve", "give_up", "predict", "batch", "log", "load"],
)
def test_every_byte_code_leaves_before_or_after(name: str) -> None:
    """Completely, for one call of each kind; of the many byte codes of `load`, some and the last
    ones."""
    r = tc.Recalibrator(hint=hints.Platt(), max_unresolved=3)
    start = r.state()
    for k in range(3):
        r.issue(0.3 + k / 10, group="a")
    operation = {
        "issue": lambda r: r.issue(0.7, group="a"),
        "oldest": lambda r: r.issue(0.7, group="a"),
        "new group": lambda r: r.issue(0.7, group="b"),
        "resolve": lambda r: r.resolve(1, 1),
        "give_up": lambda r: r.give_up(1),
        "predict": lambda r: r.predict(0.7, group="b"),
        "batch": lambda r: r.forecast_many([0.2, 0.8], [0, 1], groups=["b", ("a", "c")]),
        "log": lambda r: r.forecast_many(
            [0.2, 0.8], [0, 1], groups=["b", "a"], known_at=[1, 9], events=["x", 1]
        ),
        "load": lambda r: r.load(start),
    }[name]
    if name == "issue":
        r.give_up(0)
    saved = r.to_json()
    attempt = AtByteCode(random.Random(0))  # noqa: S311
    # what is done the first time only, as imports are, is done
    operation(tc.Recalibrator.from_json(saved))
    done = tc.Recalibrator.from_json(saved)
    length = attempt.length(partial(operation, done))
    ends = []
    for byte_code in {
        *range(1, length + 1, 1 + length // 1000),
        *range(max(1, length - 9), length + 1),
    }:
        r = tc.Recalibrator.from_json(saved)
        assert attempt.at(byte_code, partial(operation, r))
        ends.append((byte_code, r.to_json()))
    happened = [end != saved for _, end in sorted(ends)]
    assert {end for _, end in ends} == {saved, done.to_json()}
    assert happened == sorted(happened)  # once it happened, it has happened


@pytest.mark.slow("interrupts at many moments")
@needs_timers
def test_signals_at_any_time_leave_before_or_after() -> None:
    rng = random.Random(2)  # noqa: S311
    attempt = AtAnyTime(rng)
    with handled(attempt.handle):
        seen = play(attempt, rng, INTERRUPTS)
    assert sum(seen[f"{name}, before"] for name in ("issue", "resolve", "batch")) > 0


def test_a_ticket_lost_to_an_interrupt_is_the_last_awaited() -> None:
    r, rng = tc.Recalibrator(), random.Random(3)  # noqa: S311
    attempt, lost = AtByteCode(rng), 0
    while lost < 20:
        unresolved = r.unresolved
        kept: list[tc.Ticket] = []
        attempt("issue", lambda kept=kept: kept.append(r.issue(0.3)))
        if r.unresolved > unresolved and not kept:
            lost += 1
            r.give_up(r.awaited[-1])
            assert r.unresolved == unresolved


# -- batches ---------------------------------------------------------------------------------------

ROUNDS, MANY = 4_000_000, 1_500_000
BATCHES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any, Any], Any]]] = {
    "Recalibrator": (tc.Recalibrator, lambda r, x, y: r.forecast_many(x, y)),
    "groups": (
        tc.Recalibrator,
        lambda r, x, y: r.forecast_many(x[:MANY], y[:MANY], groups=np.arange(len(y[:MANY])) % 7),
    ),
    "known_at": (
        lambda: tc.Recalibrator(max_unresolved=3),
        lambda r, x, y: r.forecast_many(x, y, known_at=np.arange(len(y)) + np.arange(len(y)) % 5),
    ),
    "overlapping groups and events": (
        lambda: tc.Recalibrator(max_unresolved=40, max_groups=5),
        lambda r, x, y: r.forecast_many(
            x[:MANY],
            y[:MANY],
            groups=np.column_stack(
                [np.arange(len(y[:MANY])) % 4, 10 + np.arange(len(y[:MANY])) % 3]
            ),
            known_at=np.arange(len(y[:MANY])) + 30,
            events=np.arange(len(y[:MANY])) // 7,
        ),
    ),
    "predict_many": (tc.Recalibrator, lambda r, x, _: r.predict_many(x)),
    "Guard": (lambda: tc.Guard(nudge=True), lambda g, x, y: g.forecast_many(x, y)),
    "HorizonFree": (
        tc.HorizonFree,
        lambda f, _, y: f.forecast_many(np.tile(y, 1 if len(y) < ROUNDS else 25)),
    ),
    "AlmostOneStepAhead": (
        lambda: tc.AlmostOneStepAhead(horizon=10**6),
        lambda f, _, y: f.forecast_many(np.tile(y, 1 if len(y) < ROUNDS else 25)),
    ),
}


@pytest.mark.slow("interrupts long batches")
@needs_timers
@pytest.mark.parametrize("name", BATCHES)
def test_an_interrupted_batch_has_learned_nothing(name: str) -> None:
    build, batch = BATCHES[name]
    rng = np.random.default_rng(4)
    x = rng.random(ROUNDS)
    y = (rng.random(ROUNDS) < x).astype(np.uint8)

    def begun() -> Any:
        f = build()
        batch(f, x[:50], y[:50])
        f.predict(*([] if isinstance(f, OutcomeForecaster) else [0.4]))
        if name in ("known_at", "overlapping groups and events"):
            f.issue(0.3, group="given up later", event="given up")
        return f

    f = begun()
    before = f.to_json()
    interrupts = 0

    def stop(*_: object) -> None:
        nonlocal interrupts
        interrupts += 1
        raise KeyboardInterrupt

    def play(seconds: float) -> None:
        # on a busy machine it may go off before the batch
        signal.setitimer(signal.ITIMER_REAL, seconds)
        batch(f, x, y)

    with handled(stop):
        for seconds in (0.01, 0.06, 0.06 if isinstance(f, OutcomeForecaster) else 0.45):
            with pytest.raises(KeyboardInterrupt):
                play(seconds)
    assert interrupts == 3
    assert f.to_json() == before
    other = begun()
    for each in (f, other):
        batch(each, x[:5000], y[:5000])  # more than a block
    assert f.to_json() == other.to_json()


LONG = 20_000_000
PREPARED: dict[str, Callable[[], dict[str, Any]]] = {
    "known_at": lambda: {"known_at": np.arange(LONG) + 3},
    "groups": lambda: {"groups": np.arange(LONG) % 7},
}


@pytest.mark.slow("prepares twenty million rounds")
@needs_timers
@pytest.mark.parametrize("name", PREPARED)
def test_a_long_batch_stops_soon_while_it_is_prepared(name: str) -> None:
    """What is checked and sorted before the first round does not keep an interrupt waiting; in
    processor time."""
    x, y, options = np.full(LONG, 0.5), np.zeros(LONG, np.uint8), PREPARED[name]()
    r, due, waits = tc.Recalibrator(hint=hints.Identity()), 0.0, []

    def stop(*_: object) -> None:
        waits.append(time.process_time() - due)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, stop)
    try:
        for seconds in (0.02, 0.04, 0.06, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3):
            due = time.process_time() + seconds
            signal.setitimer(signal.ITIMER_PROF, seconds)
            with pytest.raises(KeyboardInterrupt):
                r.forecast_many(x, y, **options)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert max(waits) < 0.1
    assert r.rounds == 0


@pytest.mark.slow("waits for signals")
@needs_timers
def test_signals_that_do_not_raise_leave_a_batch_alone() -> None:
    rng = np.random.default_rng(5)
    x = rng.random(300_000)
    y = rng.random(300_000) < x
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1
        with pytest.raises(tc.OrderError, match="in use by another thread"):
            r.issue(0.5)

    r, quiet = tc.Recalibrator(), tc.Recalibrator()
    with handled(count):
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        said = r.forecast_many(x, y)
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert calls > 0
    assert said.tolist() == quiet.forecast_many(x, y).tolist()
    assert r.to_json() == quiet.to_json()


class Failing:
    """A hint that breaks at the score 0.123, when it is asked or when it learns."""

    def __init__(self, where: str = "") -> None:
        self.where, self.learned = where, 0.0

    def predict(self, score: float) -> float:
        if score == 0.123 and self.where == "predict":
            raise ZeroDivisionError("asked")
        return score

    def learn(self, score: float, outcome: int) -> None:
        if score == 0.123 and self.where == "learn":
            raise ZeroDivisionError("learning")
        self.learned += outcome

    def state(self) -> list[Any]:
        return [self.where, self.learned]

    def load(self, state: list[Any]) -> None:
        self.where, self.learned = state


@pytest.mark.parametrize("where", ["predict", "learn"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("rows", [12, 2_000])
def test_a_batch_that_fails_leaves_everything_as_it_was(where: str, late: bool, rows: int) -> None:
    """Bit for bit: a small batch on a large state is undone by what it added, a large one by
    copies."""

    def build() -> tc.Recalibrator:
        rng = np.random.default_rng(6)
        r = tc.Recalibrator(hint=Failing(where), max_groups=6, max_unresolved=7)
        r.forecast_many(
            rng.random(3_000), rng.random(3_000) < 0.4, groups=[("a", "b"), "a", None] * 1_000
        )
        for k in range(7):
            r.issue(
                rng.random(),
                group=["a", ("b", "c"), ("late", "a"), None][k % 4],
                event=["x", None, 3][k % 3],
            )
        r.predict(0.4, group=("a", "c"))
        return r

    r, rng = build(), np.random.default_rng(7)
    # so that 12 rows are undone by what was added
    assert r._desk.saved()["groups"]["knots"].sum() > 8 * 3 * 12
    before, names = r.to_json(), list(r.groups)
    x, y = rng.random(rows), rng.random(rows) < 0.5
    groups = [("a", "new"), ("newer", "b"), None, "beyond"] * (rows // 4)
    options: dict[str, Any] = {
        "known_at": np.arange(rows)
        + np.arange(rows) % 5,  # some of the tickets before are given up
        "events": ["x", 3, "y", None] * (rows // 4),
    }
    broken = x.copy()
    broken[(rows - 2) // 5 * 5] = 0.123  # known at once
    for _ in range(2):
        with pytest.raises(tc.InputError, match="hint must not raise"):
            r.forecast_many(broken, y, groups=groups, **(options if late else {}))
        assert r.to_json() == before
        assert list(r.groups) == names
        assert "new" not in r.groups
        assert len(r.awaited) == 7
    other = build()
    for each in (r, other):  # and it goes on as if nothing had been
        each.observe(1)
        for ticket in each.awaited[:4]:
            each.resolve(ticket, 1)
        each.forecast_many(x, y, groups=groups, **(options if late else {}))
    assert r.to_json() == other.to_json()


@pytest.mark.parametrize("call", ["predict", "issue"])
def test_a_hint_that_fails_leaves_no_group_and_no_event_behind(call: str) -> None:
    r = tc.Recalibrator(hint=Failing("predict"), max_unresolved=1)
    r.issue(0.4, group="a", event="game")
    before = r.to_json()
    options = {"group": ("a", "new")} | ({"event": "other"} if call == "issue" else {})
    with pytest.raises(tc.InputError, match="hint must not raise"):
        getattr(r, call)(0.123, **options)
    assert r.to_json() == before
    assert (list(r.groups), r.awaited) == (["a"], [0])


def test_an_outcome_that_the_hint_cannot_learn_is_still_awaited() -> None:
    r = tc.Recalibrator(hint=Failing("learn"))
    ticket = r.issue(0.123, group="a", event="game")
    r.predict(0.123)
    before = r.to_json()
    for call in (lambda: r.resolve(ticket, 1), lambda: r.observe(1)):
        with pytest.raises(tc.InputError, match="hint must not raise"):
            call()
        assert r.to_json() == before
    r.give_up(ticket)
    assert r.unresolved == 0


@pytest.mark.slow("plays a long log")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does it")
def test_a_log_that_gives_up_its_own_tickets_keeps_none_of_them(tmp_path: Path) -> None:
    """Memory does not grow with how many were given up."""
    code = f"""
import resource, numpy as np, truecast as tc
r, n = tc.Recalibrator(hint=tc.hints.Identity(), max_unresolved=3), 600_000
x, y, known = np.full(n, 0.5), np.zeros(n, np.uint8), np.full(n, 1 << 40)
r.forecast_many(x[:9], y[:9], known_at=known[:9])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
r.forecast_many(x, y, known_at=known)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
open({str(tmp_path / "grown")!r}, "w").write(str(after - before))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    # kilobytes: 100 bytes a row, where a ticket has 230
    assert int((tmp_path / "grown").read_text()) < 60_000


# -- threads ---------------------------------------------------------------------------------------


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_together(works: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def test_eight_threads_on_one_object() -> None:
    """No ticket twice, no outcome lost or counted twice, no group twice; whatever is saved
    meanwhile can be loaded."""
    r = tc.Recalibrator(max_groups=50)
    rounds, twice = 1_500, Counter[str]()
    tickets: list[list[tc.Ticket]] = [[] for _ in range(7)]
    done = threading.Event()

    def work(k: int) -> None:
        rng = random.Random(k)  # noqa: S311
        for t in range(rounds):
            mine = tickets[k]
            # each group is new to all threads at about one time
            mine.append(r.issue(rng.random(), group=t // 40))
            r.resolve(mine[-1], rng.randrange(2))
            try:
                r.resolve(mine[rng.randrange(len(mine))], 1)
            except tc.TicketError:
                twice["refused"] += 1
        if not done.is_set() and sum(map(len, tickets)) == 7 * rounds:
            done.set()

    saves = 0

    def save() -> None:
        nonlocal saves
        while not done.is_set():
            again = tc.Recalibrator.from_json(r.to_json())
            certificate = r.certificate
            assert again.rounds <= certificate.rounds
            assert certificate.rounds + certificate.unresolved >= again.rounds + again.unresolved
            saves += 1

    run_together([*(lambda k=k: work(k) for k in range(7)), save])
    numbers = [int(ticket) for mine in tickets for ticket in mine]
    assert sorted(numbers) == list(range(7 * rounds))
    assert (r.rounds, r.unresolved) == (7 * rounds, 0)
    assert twice["refused"] > 0
    assert saves > 0
    assert list(r.groups) == list(range(len(r.groups)))
    assert all(0 <= ticket.p <= 1 for mine in tickets for ticket in mine)
    assert tc.Recalibrator.from_json(r.to_json()).to_json() == r.to_json()


def test_one_outcome_delivered_by_eight_threads_is_counted_once() -> None:
    r = tc.Recalibrator()
    tickets = [r.issue(k / 400) for k in range(400)]
    taken: list[int] = []

    def work() -> None:
        for ticket in tickets:
            try:
                r.resolve(ticket, 1)
                taken.append(ticket)
            except tc.TicketError:
                pass

    run_together([work] * 8)
    assert sorted(taken) == tickets
    assert (r.rounds, r.unresolved) == (400, 0)


@pytest.mark.slow("waits for threads")
def test_predict_many_lets_other_calls_go_on() -> None:
    """All its answers are of one state, whatever is learned meanwhile, and nobody is refused."""
    r = tc.Recalibrator()
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(r.predict_many(np.tile([0.2, 0.9], 500_000)))
    )
    learned = 0
    with switching_often():
        thread.start()
        while thread.is_alive():
            r.resolve(r.issue(0.9), 0)
            learned += 1
        thread.join()
    assert learned > 50  # one, if the call kept the interpreter to itself
    assert r.rounds == learned
    assert len(set(found[0].tolist())) == 2


def test_a_state_loaded_while_a_score_is_checked_frees_nothing_in_use() -> None:
    r = tc.Recalibrator(hint=tc.hints.Identity(), nudge=False)
    state = r.state()

    class Loading(float):
        def __ge__(self, other: object) -> bool:
            r.load(state)
            return float(self) >= float(other)  # type: ignore[arg-type]

        def __float__(self) -> float:
            r.load(state)
            return 0.25

    for _ in range(50):
        assert r.predict(Loading(0.25)) == 0.25
        assert r.issue(Loading(0.25)).p == 0.25


FORKED = """
import os, threading, time, truecast as tc
r, stop = tc.Recalibrator(), threading.Event()
r.forecast_many([0.1] * 2000, [1] * 2000)
def save():
    while not stop.is_set():
        r.to_json()
thread = threading.Thread(target=save)
thread.start()
time.sleep(0.05)
children = []
for _ in range(8):
    if (child := os.fork()) == 0:
        r.predict(0.5)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
stop.set()
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_wait_for_a_thread_it_does_not_have() -> None:
    found = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.strip() == str([0] * 8)


def of_classes(name: str, start: dict[str, Any]) -> Callable[[tc.ClassRecalibrator], Any]:
    """An operation on a recalibrator of three classes."""
    row, rows = [0.2, 0.3, 0.5], [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]
    calls: dict[str, Callable[[tc.ClassRecalibrator], Any]] = {
        "issue": lambda r: r.issue(row, group=("b", "c"), event="y"),
        "oldest": lambda r: r.issue(row),
        "resolve": lambda r: r.resolve(1, 2),
        "give_up": lambda r: r.give_up(1),
        "predict": lambda r: r.predict(row, group="c"),
        "observe": lambda r: r.observe(0),
        "batch": lambda r: r.forecast_many(rows, [0, 1], groups=["b", "c"]),
        "log": lambda r: r.forecast_many(
            rows, [0, 1], known_at=[1, 9], groups=["b", "c"], events=["x", "y"]
        ),
        "load": lambda r: r.load(start),
    }
    return calls[name]


def with_classes(name: str) -> str:
    """A saved recalibrator that the operation can be tried on."""
    r = tc.Recalibrator(classes=3, hint=hints.Platt(), max_unresolved=3)
    for k in range(3):
        r.issue([0.3, 0.1 * k, 0.7 - 0.1 * k], group=["a", None, ("a", "b")][k], event="x")
    if name == "issue":
        r.give_up(0)
    if name == "observe":
        r.predict([0.5, 0.2, 0.3], group=("a", "b"))
    return r.to_json()


@pytest.mark.slow("interrupts at every byte code")
@pytest.mark.parametrize(
    "name",
    ["issue", "oldest", "resolve", "give_up", "predict", "observe", "batch", "log", "load"],
)
def test_every_byte_code_of_classes_leaves_before_or_after(name: str) -> None:
    build, saved = tc.ClassRecalibrator.from_json, with_classes(name)
    operation = of_classes(
        name, tc.Recalibrator(classes=3, hint=hints.Platt(), max_unresolved=3).state()
    )
    attempt = AtByteCode(random.Random(0))  # noqa: S311
    operation(build(saved))  # what is done the first time only, as imports are, is done
    done = build(saved)
    length = attempt.length(partial(operation, done))
    ends = []
    for byte_code in {
        *range(1, length + 1, 1 + length // 100),
        *range(max(1, length - 9), length + 1),
    }:
        r = build(saved)
        assert attempt.at(byte_code, partial(operation, r))
        ends.append((byte_code, r.to_json()))
    happened = [end != saved for _, end in sorted(ends)]
    assert {end for _, end in ends} == {saved, done.to_json()}
    assert happened == sorted(happened)  # once it happened, it has happened


@pytest.mark.slow("interrupts batches of 40,000 rounds")
@needs_timers
def test_interrupted_batches_of_classes_have_learned_nothing() -> None:
    rng = np.random.default_rng(0)
    rows, y = rng.dirichlet([0.5, 0.5, 0.5], 40_000), rng.integers(0, 3, 40_000)
    known = np.arange(40_000) + rng.integers(0, 50, 40_000)
    r = tc.Recalibrator(classes=3, max_unresolved=40)
    groups = [("a", "b", None)[k] for k in rng.integers(0, 3, 40_000)]
    events = [f"event {k}" for k in rng.integers(0, 99, 40_000)]
    r.forecast_many(rows[:500], y[:500], groups=groups[:500])
    tickets = [r.issue(row, group=("b", "c"), event=k % 7) for k, row in enumerate(rows[:30])]
    before = r.to_json()

    def interrupt(*_: object) -> None:
        raise Interrupt

    new = [*groups[:-1], "d"]
    for at, about in ((None, None), (known, events)):
        with handled(interrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(Interrupt):
                r.forecast_many(rows, y, known_at=at, groups=new, events=about)
        assert r.to_json() == before
        assert r.awaited == tickets
