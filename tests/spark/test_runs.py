"""Sorted rows in batches of any size are seen key by key; no Spark is needed for that."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from truecast.adapters.spark._runs import starts_of, whole_runs  # noqa: E402

KEYS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 0, 1])), max_size=30
)
SCHEMA = pa.schema([("k", pa.string()), ("j", pa.int64()), ("n", pa.int64())])


def batch(rows: list[tuple[Any, ...]]) -> Any:
    return pa.RecordBatch.from_pylist([dict(zip("kjn", row, strict=True)) for row in rows], SCHEMA)


@given(KEYS, st.lists(st.integers(0, 30), max_size=8))
def test_every_key_is_in_one_table_as_a_whole(keys: list[tuple[Any, Any]], cuts: list[int]) -> None:
    rows = [(*key, n) for n, key in enumerate(sorted(keys, key=str))]
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = [batch(rows[a:b]) for a, b in pairwise(ends)]
    runs = []
    for table in whole_runs(iter(batches), ["k", "j"]):
        starts = starts_of(table, ["k", "j"]).tolist()
        for a, b in zip(starts, [*starts[1:], table.num_rows], strict=True):
            runs.append(table.slice(a, b - a).column("n").to_pylist())
    assert runs == [[row[2] for row in run] for _, run in groupby(rows, key=lambda row: row[:2])]


def test_a_key_that_spans_batches_is_handed_over_once() -> None:
    rows = [("a", 0, n) for n in range(5)]
    (table,) = whole_runs(iter([batch(rows[:2]), batch([]), batch(rows[2:])]), ["k"])
    assert table.num_rows == 5
    assert not list(whole_runs(iter([batch([])]), ["k"]))
