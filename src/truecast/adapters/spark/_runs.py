"""Batches of sorted rows, cut where a key ends, so that every key is seen whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["starts_of", "whole_runs"]


def whole_runs(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield tables of whole runs of rows with the same values in these columns.

    Rows of a key follow each other. A table holds all keys that end in a batch, or one that spans
    several.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        last = _last_change(held[-1] if held else None, batch, names)
        if last is None:
            held.append(batch)
            continue
        yield pa.Table.from_batches([*held, batch.slice(0, last)])
        held = [batch.slice(last)]
    if held:
        yield pa.Table.from_batches(held)


def _last_change(
    before: pa.RecordBatch | None, batch: pa.RecordBatch, names: Sequence[str]
) -> int | None:
    """Return where the last key of a batch begins, if a key ends before it."""
    rows = [batch] if before is None else [before.slice(before.num_rows - 1), batch]
    starts = starts_of(pa.Table.from_batches(rows), names)
    return None if len(starts) == 1 else int(starts[-1]) - len(rows) + 1


def starts_of(table: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the first row of each run."""
    changed = np.zeros(table.num_rows, bool)
    changed[:1] = True
    for name in names:
        changed[1:] |= _differs(table.column(name).combine_chunks())
    return np.flatnonzero(changed)


def _differs(values: pa.Array) -> NDArray[np.bool_]:
    """Return whether each value but the first differs from the one before it; null is a value."""
    before, after = values.slice(0, max(len(values) - 1, 0)), values.slice(1)
    either = pc.xor(before.is_null(), after.is_null())
    differs: NDArray[np.bool_] = pc.coalesce(pc.not_equal(before, after), either).to_numpy(
        zero_copy_only=False
    )
    return differs
