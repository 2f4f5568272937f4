"""A Spark frame gives what a recalibrator for each key gives for its sorted rows, bit for bit."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from truecast.adapters import spark
from truecast.adapters.spark.batch import _Log

NAMES = {"outcome": "y", "score": "p", "key": "model", "order_by": "time"}
SCHEMA = "model int, time int, p double, y int, known int, airport string, hour int, id int"
MODEL, TIME, P, Y, KNOWN, AIRPORT, HOUR, ID = range(8)
LATE = 1 << 62


def log(
    seed: int = 0, keys: int = 12, size: int = 1500, ties: bool = False
) -> list[tuple[Any, ...]]:
    """Rows of keys of all sizes, in no order; some without an outcome."""
    rng = np.random.default_rng(seed)
    model = np.minimum(rng.geometric(0.2, size), keys)
    time = rng.integers(0, size // 20, size) if ties else rng.permutation(size)
    p, y = rng.random(size), rng.integers(0, 2, size)
    known = time + rng.integers(0, size // 10, size)
    unknown = rng.random(size) < 0.1
    airport, hour = rng.choice(["JFK", "EWR", ""], size), rng.integers(0, 3, size)
    columns = (model, time, p, y, known, airport, hour, rng.permutation(size))
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [
        (*row[:Y], None if open_ else row[Y], row[KNOWN], row[AIRPORT] or None, *row[HOUR:])
        for row, open_ in zip(rows, unknown.tolist(), strict=True)
    ]


def of_keys(
    rows: list[tuple[Any, ...]], order: Any = lambda row: row[TIME]
) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in sorted(rows, key=order):
        found.setdefault(row[MODEL], []).append(row)
    return found


def played(
    rows: list[tuple[Any, ...]], known: list[int], groups: Any = None, **options: Any
) -> tuple[Any, Any]:
    """What a recalibrator says to the rows of a key, and the recalibrator."""
    recalibrator = tc.Recalibrator(**options)
    late = [LATE if row[Y] is None else after for row, after in zip(rows, known, strict=True)]
    said = recalibrator.forecast_many(
        [row[P] for row in rows],
        [row[Y] or 0 for row in rows],
        known_at=np.array(late, np.int64),
        groups=groups,
    )
    return said, recalibrator


def said_by(better: Any) -> dict[int, dict[int, float]]:
    """The forecast of each row by its id, for each key."""
    found: dict[int, dict[int, float]] = {}
    for row in better.forecasts.select("model", "id", "recalibrated").collect():
        found.setdefault(row.model, {})[row.id] = row.recalibrated
    return found


def known_by_time(rows: list[tuple[Any, ...]]) -> list[int]:
    """After which row each outcome is known, found the slow way."""
    last = rows[-1][TIME]
    return [
        LATE if row[KNOWN] > last else max(i for i, r in enumerate(rows) if r[TIME] <= row[KNOWN])
        for row in rows
    ]


def same(certificate: Any, right: Any) -> None:
    for name in (
        "rounds",
        "energy",
        "smooth_error",
        "lower_distance",
        "bound",
        "a_priori",
        "unresolved",
        "unknown",
    ):
        assert getattr(certificate, name) == getattr(right, name), name
    assert certificate.per_round == right.per_round


def test_each_key_in_its_order_with_a_certificate(session: Any) -> None:
    rows = [row for row in log() if row[Y] is not None]
    df = session.createDataFrame(rows, SCHEMA).repartition(5)
    better = spark.recalibrate(df, **NAMES).persist()
    found, certificates = said_by(better), {row.model: row for row in better.certificates.collect()}
    assert better.forecasts.columns == [*df.columns, "recalibrated"]
    assert sorted(map(tuple, better.forecasts.drop("recalibrated").collect()), key=str) == sorted(
        rows, key=str
    )
    better.unpersist()
    for model, part in of_keys(rows).items():
        recalibrator = tc.Recalibrator()
        said = recalibrator.forecast_many([row[P] for row in part], [row[Y] for row in part])
        assert [found[model][row[ID]] for row in part] == said.tolist()
        same(certificates.pop(model), recalibrator.certificate)
    assert not certificates


def test_late_and_unknown_outcomes_groups_and_options(session: Any) -> None:
    rows = log(1)
    options: dict[str, Any] = {
        "hint": tc.hints.Isotonic(),
        "budget": 3.0,
        "max_unresolved": 50,
        "max_groups": 4,
    }
    df = session.createDataFrame(rows, SCHEMA).repartition(3)
    better = spark.recalibrate(
        df, **NAMES, known_at="known", groups=["airport", "hour"], **options
    ).persist()
    found, certificates = said_by(better), better.certificates.collect()
    for model, part in of_keys(rows).items():
        groups = [
            (*([f"airport={row[AIRPORT]}"] if row[AIRPORT] else []), f"hour={row[HOUR]}")
            for row in part
        ]
        said, right = played(part, known_by_time(part), groups, **options)
        assert [found[model][row[ID]] for row in part] == said.tolist()
        own = {(row.scope, row.group): row for row in certificates if row.model == model}
        same(own.pop(("all", None)), right.certificate)
        for name in right.groups:
            same(own.pop(("group", name)), right.groups[name].certificate)
        if own:
            same(own.pop(("others", None)), right.others.certificate)
        assert not own
    better.unpersist()


def test_simultaneous_rows_do_not_know_each_others_outcomes(session: Any) -> None:
    rows = log(2, ties=True)
    df = session.createDataFrame(rows, SCHEMA)
    found = said_by(spark.recalibrate(df, **NAMES))
    again = said_by(spark.recalibrate(df.repartition(7), **NAMES))
    assert found == again
    # scores are distinct: what comes behind them decides nothing
    order = [TIME, P, MODEL, AIRPORT, HOUR, ID]
    for model, part in of_keys(
        rows, lambda row: [str(row[at]) if at == AIRPORT else row[at] for at in order]
    ).items():
        known = [max(i for i, r in enumerate(part) if r[TIME] == row[TIME]) for row in part]
        said, _ = played(part, known)
        assert [found[model][row[ID]] for row in part] == said.tolist()


def test_ties_end_with_the_outcome_and_begin_with_nothing_that_knows_it(session: Any) -> None:
    """Rows that differ in an id are ordered by it, whatever their outcomes."""
    rows = [("a", 0, 0.5, 1 - i % 2, i) for i in range(40)]
    df = session.createDataFrame(
        rows, "model string, time int, p double, y int, id int"
    ).repartition(4)
    flipped = df.withColumn("y", 1 - F.col("y"))
    one, other = (spark.recalibrate(each, **NAMES).forecasts.collect() for each in (df, flipped))
    said = {row.id: row.recalibrated for row in one}
    # no forecast of the moment saw any outcome of it
    assert said == {row.id: row.recalibrated for row in other}


def test_several_columns_order_rows_one_after_the_other(session: Any) -> None:
    rows = log(3, ties=True)
    df = session.createDataFrame(rows, SCHEMA).repartition(4)
    found = said_by(spark.recalibrate(df, **NAMES | {"order_by": ["time", "id"]}))
    for model, part in of_keys(rows, lambda row: (row[TIME], row[ID])).items():
        said, _ = played(part, list(range(len(part))))
        assert [found[model][row[ID]] for row in part] == said.tolist()


def test_several_keys_and_keys_beyond_a_batch(session: Any) -> None:
    rows = log(4, keys=2)
    df = session.createDataFrame(rows, SCHEMA)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
    try:
        better = spark.recalibrate(df, **NAMES | {"key": ["model", "hour"]}).persist()
        found = {row.id: row.recalibrated for row in better.forecasts.collect()}
        keys = {(row.model, row.hour): row.rounds for row in better.certificates.collect()}
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    for model, hour in {(row[MODEL], row[HOUR]) for row in rows}:
        part = sorted(
            (row for row in rows if (row[MODEL], row[HOUR]) == (model, hour)),
            key=lambda row: row[TIME],
        )
        said, right = played(part, list(range(len(part))))
        assert [found[row[ID]] for row in part] == said.tolist()
        assert keys[model, hour] == right.rounds


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date", "double", "bigint"])
def test_times_of_every_type(session: Any, kind: str) -> None:
    days = [dt.date(1969, 12, 30) + dt.timedelta(days=i) for i in range(5)]
    values = [
        float(i) - 2 if kind == "double" else i - 2 if kind == "bigint" else str(days[i])
        for i in range(5)
    ]
    ends = values[2], values[2], values[4], values[3], None
    rows = list(zip(values, ends, [0.1, 0.9, 0.3, 0.7, 0.2], [1, 0, 1, 1, None], strict=True))[::-1]
    raw = {"double": "double", "bigint": "bigint"}.get(kind, "string")
    df = session.createDataFrame(rows, f"time {raw}, known {raw}, p double, y int").withColumn(
        "model", F.lit("a")
    )
    df = df.withColumns({name: F.col(name).cast(kind) for name in ("time", "known")})
    better = spark.recalibrate(df, **NAMES, known_at="known").forecasts.orderBy("time").collect()
    right = tc.Recalibrator().forecast_many(
        [0.1, 0.9, 0.3, 0.7, 0.2], [1, 0, 1, 1, 0], known_at=[2, 2, 4, 3, LATE]
    )
    assert [row.recalibrated for row in better] == right.tolist()


def test_several_scores_and_log_odds(session: Any) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(200, 2)) * 5, rng.integers(0, 2, 200)
    rows = [("a", t, *x[t].tolist(), int(y[t])) for t in range(200)]
    df = session.createDataFrame(rows, "model string, time int, p double, q double, y int")
    options: dict[str, Any] = {"hint": tc.hints.Experts(2), "scale": "logit"}
    better = (
        spark.recalibrate(df, **NAMES | {"score": ["p", "q"]}, **options)
        .forecasts.orderBy("time")
        .collect()
    )
    right = tc.Recalibrator(**options).forecast_many(x, y)
    assert [row.recalibrated for row in better] == right.tolist()
    with pytest.raises(tc.InputError, match="scores must"):
        spark.recalibrate(df, **NAMES, **options)


def test_bad_rows_are_refused_or_keep_their_place(session: Any) -> None:
    good = [("a", t, 0.5, t % 2, t) for t in range(6)]
    bad = [
        (None, 0, 0.5, 1, 0),
        ("a", None, 0.5, 1, 0),
        ("a", 3, None, 1, 3),
        ("a", 3, 1.5, 1, 3),
        ("a", 3, 0.5, 2, 3),
        ("a", 3, 0.5, 1, 2),
        ("a", 3, 0.5, 1, None),
        ("b", 3, 0.5, 3, 4),
    ]
    df = session.createDataFrame(
        [*good, *bad], "model string, time int, p double, y int, known int"
    )
    with pytest.raises(tc.InputError, match="one of 8 bad rows"):
        spark.recalibrate(df, **NAMES, known_at="known")
    better = spark.recalibrate(df, **NAMES, known_at="known", on_bad="count")
    forecasts = better.forecasts.collect()
    kept = sorted((row.time, row.recalibrated) for row in forecasts if row.recalibrated is not None)
    said = tc.Recalibrator().forecast_many([0.5] * 6, [0, 1] * 3, known_at=range(6))
    assert [forecast for _, forecast in kept] == said.tolist()
    assert len(forecasts) == 14
    assert {row.model: (row.left_out, row.rounds) for row in better.certificates.collect()} == {
        None: (1, 0),
        "a": (6, 6),
        "b": (1, 0),
    }
    reasons = {(row.bad.column, row.bad.rule) for row in better.bad.collect()}
    assert reasons == {
        ("model", "must not be null"),
        ("time", "must be a time"),
        ("p", "must be between 0 and 1"),
        ("y", "must be 0 or 1, or null while it is unknown"),
        ("known", "must be given where y is, and not before time"),
    }


def test_a_bad_row_of_a_file_is_named_with_its_file(session: Any, tmp_path: Path) -> None:
    df = session.createDataFrame([("a", 1, 0.5, 7)], "model string, time int, p double, y int")
    df.write.parquet(str(tmp_path / "log"))
    with pytest.raises(
        tc.FileError,
        match=r"parquet, a row: y must be 0 or 1, or null while it is unknown, got '7'",
    ):
        spark.recalibrate(session.read.parquet(str(tmp_path / "log")), **NAMES)


def test_no_rows_and_one(session: Any) -> None:
    df = session.createDataFrame([("a", 1, 0.5, 1)], "model string, time int, p double, y int")
    assert [row.recalibrated for row in spark.recalibrate(df, **NAMES).forecasts.collect()] == [0.5]
    assert spark.recalibrate(df.limit(0), **NAMES).forecasts.count() == 0
    assert spark.recalibrate(df.limit(0), **NAMES).certificates.count() == 0


def test_columns_that_python_does_not_order_pass_through(session: Any) -> None:
    others = "map('x', array(1, NULL)) AS m", "struct(1 AS i) AS s"
    df = session.range(1).selectExpr("'a' AS model", "1 AS time", "0.5D AS p", "1 AS y", *others)
    (row,) = spark.recalibrate(df, **NAMES).forecasts.collect()
    assert (row.m, row.s.i, row.recalibrated) == ({"x": [1, None]}, 1, 0.5)


def test_what_is_wrong_with_columns_and_options_is_said_before_anything_runs(session: Any) -> None:
    schema = "model string, time int, p double, y int, known long, word string, `group` string"
    df = session.createDataFrame([], schema)
    for options, said in [
        ({"key": "p"}, "p must be a column of strings, bool, integers, decimals, dates"),
        ({"key": "group"}, "key must not be the name of a field of the certificate"),
        (
            {"order_by": "word"},
            "word must be a column of integers, floats, dates or timestamps, got 'string'",
        ),
        ({"known_at": "known"}, "known must be of the type of 'time', int, got 'bigint'"),
        ({"groups": "p"}, "p must be a column of strings or integers, got 'double'"),
        ({"outcome": "word"}, "word must be a column of bool"),
        ({"on_bad": "skip"}, "on_bad must be"),
        ({"budget": 0.5}, "budget must be"),
    ]:
        with pytest.raises(tc.InputError, match=f"^{said}"):
            spark.recalibrate(df, **NAMES | options)
    with pytest.raises(tc.InputError, match="df must name each column once"):
        spark.recalibrate(df.select("*", F.lit(1).alias("Word")), **NAMES)
    with pytest.raises(tc.InputError, match="must not have a column 'recalibrated'"):
        spark.recalibrate(df.withColumn("Recalibrated", F.lit(1)), **NAMES)


def test_rows_left_out_do_not_join_the_times_around_them() -> None:
    changes = np.array([True, True, False, True, False])
    good = np.array([True, False, True, False, True])
    zero = np.zeros(5)
    kept = _Log(good, zero, zero.astype(bool), zero, changes, zero, None, None).of(0, 5)
    assert kept.changes.tolist() == [True, True, True]
    same_time = _Log(
        good,
        zero,
        zero.astype(bool),
        zero,
        np.array([True, False, False, False, True]),
        zero,
        None,
        None,
    )
    assert same_time.of(0, 5).changes.tolist() == [True, False, True]
