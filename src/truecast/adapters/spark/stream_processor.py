"""The stateful processor: a bucket of keys a call, a state a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from truecast.adapters.spark import stream_rows
from truecast.adapters.spark._state import NEVER, Events, KeyState, Windows, due_of
from truecast.errors import StateError
from truecast.recalibrate import Recalibrator
from truecast.recalibrate.hints.base import from_config

__all__ = ["KEYS", "STREAM", "Processor"]

KEYS, STREAM = "keys", "stream"  # names of the state variables
_LATE = "came after its id may have been forgotten"
_MILLI = 1000  # microseconds


class Processor(StatefulProcessor):
    """Plays the events of a bucket of keys, key by key.

    Parameters
    ----------
    config
        The options of the recalibrators.
    windows
        How long to wait.
    """

    def __init__(self, config: dict[str, Any], windows: Windows) -> None:
        self._config = config
        # a hint to copy for each new key: to build one from its description takes far longer
        self._options = config | {"hint": from_config(config["hint"], "hint")}
        self._windows = windows

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._handle = handle
        self._keys = handle.getMapState(KEYS, "key string", "saved binary")
        self._stream = handle.getValueState(STREAM, "config string, timer long")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Play the events of a bucket; give one row, of all answers."""
        timer = self._timer()
        table = stream_rows.events_of(row.rows for row in rows)
        now = timerValues.getCurrentWatermarkInMs() * _MILLI
        marked = table.filter(pc.is_valid(table["reason"]))
        good = stream_rows.sorted_by_key(table.filter(pc.is_null(table["reason"])))
        chosen, said, due = self._play(good, now)
        reasons = pa.array([None if p is not None else _LATE for p in said], pa.string())
        answered = [
            stream_rows.answers(
                good.take(pa.array(chosen, pa.int64())), pa.array(said, pa.float64()), reasons
            )
        ]
        if marked.num_rows:
            nothing = pa.nulls(marked.num_rows, pa.float64())
            answered.append(stream_rows.answers(marked, nothing, marked["reason"]))
        self._wake(timer, due, now)
        return iter([Row(rows=blob) for blob in answered])

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Give up and forget what is due in a bucket, also of keys that had no events."""
        now = timerValues.getCurrentWatermarkInMs() * _MILLI
        dues = {name: due_of(bytes(saved)) for (name,), (saved,) in self._keys.iterator()}
        for name in [name for name, due in dues.items() if due <= now]:
            dues[name] = self._save(name, self._load(name, now))
        self._wake(0, min(dues.values(), default=NEVER), now)
        return iter([])

    def close(self) -> None:
        """Nothing is open."""

    def _timer(self) -> int:
        """When the timer of this bucket rings, 0 for none; refuse a stream of other options."""
        saved = self._stream.get()
        if saved is None:
            return 0
        config, timer = saved
        if json.loads(config) != self._config:
            raise StateError(
                f"this stream was started with the options {config}, "
                f"got {json.dumps(self._config)}: restart it with those, or with a new checkpoint"
            )
        return int(timer)

    def _wake(self, timer: int, due: int, now: int) -> None:
        """Set the timer of this bucket if none is set and something will be due.

        It rings at most four times a window.
        """
        if timer * _MILLI > now:
            return
        soonest = now + min(self._windows) // 4
        timer = 0 if due == NEVER else max(due, soonest) // _MILLI + 1
        if timer:
            self._handle.registerTimer(timer)
        self._stream.update((json.dumps(self._config), timer))

    def _load(self, name: str, now: int) -> KeyState:
        """The state of a key; what is due by now is given up and forgotten."""
        saved = self._keys.getValue((name,))
        if saved is None:
            return KeyState(Recalibrator(**self._options), self._windows)
        state = KeyState.from_bytes(bytes(saved[0]), self._options, self._windows)
        state.expire(now)
        return state

    def _save(self, name: str, state: KeyState) -> int:
        """Keep the state of a key; return when its first id is due."""
        data = state.to_bytes()
        self._keys.updateValue((name,), (data,))
        return due_of(data)

    def _play(self, rows: pa.Table, now: int) -> tuple[list[int], list[float | None], int]:
        """Play sorted rows; return which are answered, by what, and when the first id is due."""
        ids, times, scores, groups = (
            rows[name].to_pylist() for name in ("id", "time", "score", "groups")
        )
        outcomes = pc.cast(rows["outcome"], pa.int8()).to_pylist()
        chosen: list[int] = []
        said: list[float | None] = []
        due = NEVER
        for name, start, end in _runs(rows["key"]):
            state = self._load(name, now)
            part = slice(start, end)
            answered, p = state.play(
                Events(ids[part], times[part], scores[part], outcomes[part], groups[part]), now
            )
            due = min(due, self._save(name, state))
            chosen += [start + row for row in answered]
            said += p
        return chosen, said, due


def _runs(keys: pa.ChunkedArray) -> Iterator[tuple[str, int, int]]:
    """Each key of a sorted column, and where its rows start and end."""
    codes = keys.combine_chunks().dictionary_encode()
    cuts = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1, append=-1)).tolist()
    names = codes.dictionary.to_pylist()
    return zip(names, cuts, cuts[1:], strict=False)
