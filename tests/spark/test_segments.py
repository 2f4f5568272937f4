"""Every segment of a Spark frame is measured as its rows are by themselves, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import truecast as tc

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from truecast.adapters import spark
from truecast.measures.finder import stretches_p_value

NAMES = {"outcome": "y", "score": "p"}
AT_NUMBER = 1


def alike(one: Any, other: Any) -> bool:
    """Whether two figures are the same, or both undefined."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def log(size: int = 3000, seed: int = 0) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    p = rng.random(size).round(2)
    names, numbers = rng.choice(["a", "b", "c d"], size).tolist(), rng.integers(0, 3, size).tolist()
    names = [
        None if number == 2 and name == "b" else name
        for name, number in zip(names, numbers, strict=True)
    ]
    y, w, v = (rng.random(size) < p**2).astype(int), rng.integers(0, 4, size), rng.random(size)
    return list(zip(names, numbers, y.tolist(), p.tolist(), w.tolist(), v.tolist(), strict=True))


SCHEMA = "name string, number int, y int, p double, w int, v double"


def measured(rows: list[tuple[Any, ...]], weight: int | None = None) -> dict[str, Any]:
    weights = None if weight is None else [row[weight] for row in rows]
    return tc.measure(
        [row[2] for row in rows], [row[3] for row in rows], sample_weight=weights
    ).to_dict()


@pytest.mark.parametrize("by", [["name"], ["number"], ["number", "name"]])
def test_segments_by_one_column_or_several(session: Any, by: list[str]) -> None:
    rows = log()
    tables = spark.measure(
        session.createDataFrame(rows, SCHEMA).repartition(4), **NAMES, by=by
    ).collect()
    at = [("name", "number").index(name) for name in by]
    segments = {tuple(row[i] for i in at) for row in rows}
    assert {tuple(table[name] for name in by) for table in tables} == segments
    assert len(tables) == len(segments)
    for table in tables:
        part = [
            row for row in rows if tuple(row[i] for i in at) == tuple(table[name] for name in by)
        ]
        found = table.asDict(recursive=True)
        tally = tc.Tally.from_predictions([row[2] for row in part], [row[3] for row in part])
        assert found.pop("p_value") == stretches_p_value(tally)
        assert found.pop("verdict") in ("off", "weak", "none")
        assert found.pop("left_out") == 0
        assert alike({name: found[name] for name in found if name not in by}, measured(part))


@pytest.mark.parametrize(("weight", "at", "close"), [("w", 4, 0), ("v", 5, 1e-9)])
def test_weighted_segments(session: Any, weight: str, at: int, close: float) -> None:
    rows = log()
    for table in spark.measure(
        session.createDataFrame(rows, SCHEMA), **NAMES, by="number", weight=weight
    ).collect():
        right = measured([row for row in rows if row[1] == table.number], at)
        assert type(table.total) is type(right["total"])
        assert table.brier.score == pytest.approx(right["brier"]["score"], rel=close, abs=0)
        assert table.totals.brier_total == pytest.approx(
            right["totals"]["brier_total"], rel=close, abs=0
        )
        assert (table.p_value is None, table.verdict == "weighted") == (
            weight == "v",
            weight == "v",
        )


def test_many_small_segments_of_all_sizes(session: Any) -> None:
    """Segments end within batches, between them, and span several."""
    sizes = [1, 2, 3, 50, 700] * 20
    rng = np.random.default_rng(5)
    rows = [
        (k, int(rng.integers(2)), float(rng.random()))
        for k, size in enumerate(sizes)
        for _ in range(size)
    ]
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        tables = spark.measure(
            session.createDataFrame(rows, "k int, y int, p double"), **NAMES, by="k"
        ).collect()
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert {table.k: table.total for table in tables} == dict(enumerate(sizes))
    for table in tables[::10]:
        part = [row for row in rows if row[0] == table.k]
        right = tc.measure([row[1] for row in part], [row[2] for row in part])
        assert (table.brier.score, table.smooth_ece) == (right.brier.score, right.smooth_ece)


def test_the_verdict_is_that_of_the_command_if_chance_is_simulated(session: Any) -> None:
    rng = np.random.default_rng(6)
    p = np.tile(rng.random(500).round(1), 2)
    y = (rng.random(1000) < np.where(np.arange(1000) < 500, p, p**3)).astype(int)
    rows = list(zip(["right"] * 500 + ["off"] * 500, y.tolist(), p.tolist(), strict=True))
    df = session.createDataFrame([*rows, ("few", 1, 0.5)], "s string, y int, p double")
    tables = {row.s: row for row in spark.measure(df, **NAMES, by="s", resamples=199).collect()}
    assert {name: table.verdict for name, table in tables.items()} == {
        "right": "none",
        "off": "off",
        "few": "few",
    }
    found = tc.stretches(
        [row[1] for row in rows[500:]], [row[2] for row in rows[500:]], resamples=199
    )
    assert tables["off"].p_value == found.p_value == 0.005


def test_bad_rows_are_refused_or_counted_by_segment(session: Any) -> None:
    rows = [("a", 1, 0.5), ("a", 3, 0.5), ("b", 1, None), ("c", 0, 0.25), (None, 0, 2.0)]
    df = session.createDataFrame(rows, "s string, y int, p double")
    with pytest.raises(tc.InputError, match=r"must be between 0 and 1 \(one of 3 bad rows"):
        spark.measure(df, **NAMES, by="s")
    tables = spark.measure(df, **NAMES, by="s", on_bad="count").collect()
    found = {table.s: (table.left_out, table.total, table.verdict) for table in tables}
    assert found == {
        "a": (1, 1, "few"),
        "b": (1, None, None),
        "c": (0, 1, "few"),
        None: (1, None, None),
    }


def test_only_what_is_asked_for_is_computed(session: Any) -> None:
    rows = [(row[AT_NUMBER], row[2], row[3]) for row in log(300)]
    df = session.createDataFrame(rows, "rows int, y int, p double")  # whatever the names of columns
    tables = spark.measure(df, **NAMES, by="rows", only=["brier", "lower_distance", "smooth_ece"])
    assert tables.columns == ["rows", "left_out", "brier", "lower_distance", "smooth_ece"]
    for table in tables.collect():
        right = tc.measure(
            *zip(*(row[1:] for row in rows if row[0] == table.rows), strict=True)
        ).to_dict()
        found = table.asDict(recursive=True)
        assert all(found[name] == right[name] for name in ("brier", "lower_distance", "smooth_ece"))
    judged = spark.measure(df, **NAMES, by="rows", only="verdict")
    assert {row.verdict for row in judged.collect()} <= {"none", "weak", "off"}
    with pytest.raises(tc.InputError, match="^only must be"):
        spark.measure(df, **NAMES, by="rows", only=["ece"])


def test_segments_may_be_the_scores(session: Any) -> None:
    df = session.createDataFrame([(1, 1), (0, 1), (0, 0)], "y int, p int")
    tables = spark.measure(df, **NAMES, by=["p", "y"]).collect()
    assert sorted((table.p, table.y, table.total, table.mean_forecast) for table in tables) == [
        (0, 0, 1, 0.0),
        (1, 0, 1, 1.0),
        (1, 1, 1, 1.0),
    ]


def test_no_rows_no_segments(session: Any) -> None:
    tables = spark.measure(session.createDataFrame([], SCHEMA), **NAMES, by=["name", "number"])
    assert tables.count() == 0
    assert tables.columns[:5] == ["name", "number", "left_out", "p_value", "verdict"]
    assert tables.columns[5:] == list(tc.measure([1], [0.5]).to_dict())


def test_rows_are_shuffled_once(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    df = session.createDataFrame(log(10), SCHEMA)
    spark.measure(df, **NAMES, by=["name", "number"], on_bad="count").explain()
    assert capsys.readouterr().out.count("Exchange") == 1


@pytest.mark.parametrize(
    "kind", ["boolean", "date", "timestamp", "timestamp_ntz", "decimal(5, 2)", "binary", "bigint"]
)
def test_segments_of_every_type(session: Any, kind: str) -> None:
    values = {"boolean": ("true", "false"), "bigint": ("1", "2"), "decimal(5, 2)": ("1.5", "2.5")}
    first, second = values.get(kind, ("2025-01-01", "2026-01-01"))
    rows = [(first, 1), (second, 0), (first, 0), (None, 0)]
    df = session.createDataFrame(rows, "s string, y int").withColumns(
        {"s": F.col("s").cast(kind), "p": F.lit(0.5)}
    )
    tables = spark.measure(df, **NAMES, by="s")
    assert tables.schema["s"].dataType == df.schema["s"].dataType
    assert sorted(table.total for table in tables.collect()) == [1, 1, 2]


def test_what_cannot_be_a_segment_is_refused(session: Any) -> None:
    df = session.createDataFrame([(1.0, 1, 0.5, 1)], "s double, y int, p double, total int")
    for by, said in {
        "s": "s must be a column of strings, bool, integers, decimals, dates, timestamps or binary,"
        " got 'double'",
        "t": "by must be a column of the data, which has 's', 'y', 'p', 'total', got 't'",
        "total": "by must not be the name of a measure, which gets a column, too: rename it,"
        " got 'total'",
        ("y", "y"): "by must name each column once, got ('y', 'y')",
        (): "by must be the name of a column, or a list of names, got ()",
    }.items():
        with pytest.raises(tc.InputError) as caught:
            spark.measure(df, **NAMES, by=by)
        assert str(caught.value) == said
    with pytest.raises(tc.InputError, match="resamples must be"):
        spark.measure(df, **NAMES, by="y", resamples=3)
