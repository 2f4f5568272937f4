"""The state of a key survives saving and loading; a damaged or foreign one is refused."""

from __future__ import annotations

import json
import random
import struct
import zlib
from datetime import timedelta
from typing import Any

import plain_stream
import pytest

import truecast as tc

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'truecast[spark]'")

from truecast.adapters.spark import _state
from truecast.adapters.spark._state import NEVER, Events, KeyState, Windows, due_of

SECOND = 1_000_000
WINDOWS = Windows(100 * SECOND, 50 * SECOND)
CONFIG = tc.Recalibrator().config


def new(**options: Any) -> KeyState:
    return KeyState(tc.Recalibrator(**options), WINDOWS)


def again(state: KeyState) -> KeyState:
    return KeyState.from_bytes(state.to_bytes(), state.recalibrator.config, WINDOWS)


def events(*rows: tuple[str, int, float | None, int | None]) -> Events:
    ids, seconds, scores, outcomes = zip(*rows, strict=True)
    return Events(
        ids, [second * SECOND for second in seconds], scores, outcomes, [None] * len(rows)
    )


def of_rows(rows: list[plain_stream.Row]) -> Events:
    """Rows of a story, in order."""
    ordered = sorted(rows, key=plain_stream.in_order)
    times = [(row["time"] - plain_stream.START) // timedelta(microseconds=1) for row in ordered]
    groups = [None if row["group"] is None else json.dumps([row["group"]]) for row in ordered]
    names = ([row[name] for row in ordered] for name in ("id", "score", "outcome"))
    ids, scores, outcomes = names
    return Events(ids, times, scores, outcomes, groups)


@pytest.mark.parametrize("journal", [0, 20, 100_000])
def test_saved_after_each_batch_it_goes_on_as_if_never_saved(
    journal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_state, "_JOURNAL", journal)
    live, saved = new(), new()
    for number, rows in enumerate(plain_stream.story(5, batches=8, forecasts=60, keys=1)):
        now = number * 3600 * SECOND // 2
        for state in (live, saved):
            state.expire(now)
        assert live.play(of_rows(rows), now) == saved.play(of_rows(rows), now)
        saved = again(saved)
        assert saved.recalibrator.state() == live.recalibrator.state()
        assert (saved.counts, saved.due, saved.awaited, saved.held) == (
            live.counts,
            live.due,
            live.awaited,
            live.held,
        )
        assert due_of(saved.to_bytes()) == live.due
    assert live.counts.given_up
    assert live.counts.duplicates


def test_a_duplicate_is_answered_once_and_the_first_outcome_stands() -> None:
    state = new()
    rows, said = state.play(
        events(("a", 0, 0.7, None), ("a", 1, 0.9, None), ("a", 2, None, 1), ("a", 3, None, 0)), 0
    )
    assert rows == [0]
    assert said == [tc.Recalibrator().issue(0.7).p]
    state.play(events(("a", 4, None, 1)), 0)
    counts = state.counts
    assert (counts.forecasts, counts.outcomes, counts.duplicates, counts.contradictions) == (
        1,
        1,
        2,
        1,
    )
    assert state.recalibrator.certificate.brier == pytest.approx((1 - said[0]) ** 2)


def test_an_outcome_that_comes_first_is_held_and_learned_after_the_forecast() -> None:
    state = new()
    assert state.play(events(("a", 5, None, 1)), 0) == ([], [])
    assert (state.held, state.recalibrator.rounds) == (1, 0)
    rows, said = again(state).play(events(("a", 9, 0.3, None)), 0)
    assert said == [tc.Recalibrator().issue(0.3).p]
    state.play(events(("a", 9, 0.3, None)), 0)
    assert (rows, state.held, state.recalibrator.rounds) == ([0], 0, 1)


def test_what_does_not_come_in_time_is_given_up_and_then_unknown() -> None:
    state = new()
    state.play(events(("a", 0, 0.7, None), ("b", 0, None, 1), ("c", 0, 0.2, 0)), 0)
    assert state.due == 50 * SECOND  # when c is forgotten
    state.expire(99 * SECOND)
    assert (state.awaited, state.held, state.due) == (1, 1, 100 * SECOND)
    state.expire(100 * SECOND)
    assert (state.awaited, state.held, state.due) == (0, 0, NEVER)
    assert (state.counts.given_up, state.counts.unmatched) == (1, 1)
    assert state.recalibrator.certificate.unresolved == 1
    rows, said = state.play(events(("a", 0, None, 1), ("a", 0, 0.7, None)), 100 * SECOND)
    assert (rows, said, state.counts.late) == ([1], [None], 2)


def test_what_the_recalibrator_gave_up_itself_is_late_when_it_comes() -> None:
    state = new(max_unresolved=1)
    state.play(
        events(("a", 0, 0.7, None), ("b", 0, 0.7, None), ("a", 1, None, 1), ("b", 1, None, 1)), 0
    )
    assert (state.counts.outcomes, state.counts.late, state.recalibrator.rounds) == (1, 1, 1)
    assert again(state).recalibrator.state() == state.recalibrator.state()
    other = new(max_unresolved=1)
    other.play(events(("a", 0, 0.7, None), ("b", 0, 0.7, None)), 0)
    other.expire(NEVER)
    assert (other.counts.given_up, other.recalibrator.certificate.unresolved) == (2, 2)
    assert again(other).recalibrator.state() == other.recalibrator.state()


def test_few_rounds_take_few_bytes() -> None:
    rng = random.Random(0)  # noqa: S311
    state = new()
    for number in range(100):
        state.play(events((f"event {number}", number, rng.random(), rng.randrange(2))), 0)
    assert len(state.to_bytes()) < 2000
    assert len(state.recalibrator.to_bytes()) > 5000


def damaged() -> list[tuple[bytes, type[Exception], str]]:
    state = new()
    state.play(events(("a", 0, 0.7, 1), ("b", 0, 0.6, 0)), 0)
    data = state.to_bytes()
    size = _state._HEAD.size
    body = bytearray(zlib.decompress(data[size:]))
    struct.pack_into("<I", body, 7 * 8, 1)  # the checksum of what was said
    other = data[:size] + zlib.compress(bytes(body))
    newer = data[:4] + bytes([_state.VERSION + 1]) + data[5:]
    return [
        (b"nothing", tc.StateError, "does not begin with TCSK"),
        (data[:-3], tc.StateError, "the state of a key is corrupted"),
        (
            data[:size] + zlib.compress(bytes(body) + b"x"),
            tc.StateError,
            "it ends too early or too late",
        ),
        (
            newer,
            tc.VersionError,
            "was written in version 2, this truecast reads up to 1: upgrade truecast",
        ),
        (
            other,
            tc.VersionError,
            "forecasts differently: continue with that truecast, or start with a new",
        ),
    ]


@pytest.mark.parametrize(("data", "error", "message"), damaged())
def test_what_is_damaged_or_of_another_truecast_is_refused(
    data: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        KeyState.from_bytes(data, CONFIG, WINDOWS)
