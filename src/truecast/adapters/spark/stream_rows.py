"""Rows of a stream on their way to the state and back: checked, packed by bucket, unpacked.

PySpark hands rows to a stateful processor one by one, and each key costs several calls. So rows
travel packed: one blob of rows a bucket of keys (an Arrow batch), one call a bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truecast.errors import FileError, InputError

__all__ = ["BUCKETS", "Packing", "answers", "events_of", "sorted_by_key", "unpack"]

BUCKETS = 256  # part of the format: a key whose bucket changed would lose its state
_ROWS = 1 << 18  # that are packed together

#: what arrives: `outcome` and `score` as numbers, `time` in microseconds, `groups` as a JSON list
EVENTS = pa.schema(
    [
        ("id", pa.string()),
        ("key", pa.string()),
        ("time", pa.int64()),
        ("score", pa.float64()),
        ("outcome", pa.float64()),
        ("groups", pa.string()),
        ("reason", pa.string()),
    ]
)
#: what is put out
ANSWERS = pa.schema(
    [
        ("id", pa.string()),
        ("key", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("score", pa.float64()),
        ("recalibrated", pa.float64()),
        ("reason", pa.string()),
    ]
)
_PACKED = pa.schema([("bucket", pa.int32()), ("rows", pa.binary())])


class Packing(NamedTuple):
    """Pack rows by bucket, bad ones with the reason: what `mapInArrow` calls.

    Parameters
    ----------
    fail
        Whether a bad row fails the query; else it is marked with a reason.
    """

    fail: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give a row a bucket: its number, and its rows."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= _ROWS:
                yield self._packed(waiting)
                waiting = []
        if waiting:
            yield self._packed(waiting)

    def _packed(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.Table.from_batches(batches)
        rows = rows.append_column("reason", self._reasons(rows))
        bucket = rows["bucket"].to_numpy()
        order = np.argsort(bucket, kind="stable")
        ordered = whole(rows.select(EVENTS.names).take(pa.array(order)).cast(EVENTS))
        cuts = np.flatnonzero(np.diff(bucket[order], prepend=-1, append=-1))
        blobs = [
            ordered.slice(start, end - start).serialize().to_pybytes()
            for start, end in pairwise(cuts)
        ]
        return pa.RecordBatch.from_arrays(
            [pa.array(bucket[order][cuts[:-1]], pa.int32()), pa.array(blobs, pa.binary())],
            schema=_PACKED,
        )

    def _reasons(self, rows: pa.Table) -> pa.Array:
        """What is wrong with each row; null if it is good."""
        bad = _array(rows["bad"])
        if bad.null_count == len(bad):
            return pa.nulls(len(bad), pa.string())
        if self.fail:
            _refuse(rows.slice(pc.index(bad.is_valid(), True).as_py(), 1).to_pylist()[0])
        _, name, rule, value = bad.flatten()
        said = pc.binary_join_element_wise(name, rule, " ")
        return pc.binary_join_element_wise(said, pc.fill_null(value, "null"), ", got ")


def _refuse(row: dict[str, Any]) -> NoReturn:
    bad = row["bad"]
    which = f"the row with id {row['id']!r:.80} and key {row['key']!r:.80}"
    advice = "on_bad='mark' would pass over it"
    if bad["file"] is None:
        raise InputError(bad["column"], f"{bad['rule']} (in {which}; {advice})", bad["value"])
    reason = f"{bad['column']} {bad['rule']}, got {bad['value']!r} ({advice})"
    raise FileError(bad["file"], reason, which)


def _array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def whole(rows: pa.Table) -> pa.RecordBatch:
    """The rows as one batch."""
    return pa.RecordBatch.from_arrays(
        [_array(column) for column in rows.combine_chunks().columns], schema=rows.schema
    )


def events_of(blobs: Iterable[bytes]) -> pa.Table:
    """The rows of a bucket, which came in several blobs."""
    batches = [pa.ipc.read_record_batch(pa.py_buffer(bytes(blob)), EVENTS) for blob in blobs]
    return pa.Table.from_batches(batches, EVENTS)


def sorted_by_key(rows: pa.Table) -> pa.Table:
    """The rows of each key together, in the order in which they are played.

    By time; at the same time outcomes before forecasts, then by id, then by value, so that the
    order in which rows arrive does not matter.
    """
    kind = pc.cast(pc.is_valid(rows["score"]), pa.int8())
    names = ["key", "time", "kind", "id", "outcome", "score", "groups"]
    order = pc.sort_indices(
        rows.append_column("kind", kind), sort_keys=[(name, "ascending") for name in names]
    )
    return rows.take(order)


def answers(rows: pa.Table, recalibrated: pa.Array, reasons: pa.Array) -> bytes:
    """Pack what is put out for these rows."""
    columns = [
        rows["id"],
        rows["key"],
        pc.cast(rows["time"], ANSWERS.field("time").type),
        rows["score"],
    ]
    table = pa.Table.from_arrays([*columns, recalibrated, reasons], schema=ANSWERS)
    packed: bytes = whole(table).serialize().to_pybytes()
    return packed


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the rows that `answers` packed: what `mapInArrow` calls."""
    for batch in batches:
        for blob in batch.column(0):
            yield pa.ipc.read_record_batch(blob.as_buffer(), ANSWERS)
