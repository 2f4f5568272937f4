"""The tally of a Spark frame is that of its columns, bit for bit."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc

pytest.importorskip("pyspark")
from pyspark.sql import Row
from pyspark.sql import functions as F

from truecast.adapters import spark
from truecast.adapters.spark import tallies

NAMES = {"outcome": "y", "score": "p"}
ROUNDS = "y int, p double, w int, v double"


def rounds(seed: int = 0, size: int = 2000) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    p = rng.choice(
        [0.0, -0.0, 1.0, 0.5, np.nextafter(0.5, 1), 0.1 + 0.2, 0.3, 5e-324, *rng.random(20)], size
    )
    return {
        "y": rng.integers(0, 2, size),
        "p": p,
        "w": rng.integers(0, 5, size),
        "v": rng.random(size),
    }


def frame(session: Any, columns: dict[str, Any], schema: str = ROUNDS, partitions: int = 3) -> Any:
    rows = list(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
    return session.createDataFrame(rows, schema).repartition(partitions)


def refused(df: Any, **options: Any) -> str:
    with pytest.raises(tc.InputError) as caught:
        spark.tally(df, **{**NAMES, **options})
    return str(caught.value)


@pytest.mark.parametrize("partitions", [1, 5])
def test_few_scores(session: Any, partitions: int) -> None:
    columns = rounds()
    df = frame(session, columns, partitions=partitions)
    assert spark.tally(df, **NAMES) == tc.Tally.from_predictions(columns["y"], columns["p"])


def test_all_scores_distinct(session: Any) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(30_000)
    columns = {"y": (rng.random(30_000) < p).astype(int), "p": p}
    assert spark.tally(
        frame(session, columns, "y int, p double"), **NAMES
    ) == tc.Tally.from_predictions(**_as(columns))


def _as(columns: dict[str, Any]) -> dict[str, Any]:
    return {"y_true": columns["y"], "y_prob": columns["p"]}


def test_weights_that_count_and_weights_that_do_not(session: Any) -> None:
    columns = rounds(2)
    df = frame(session, columns)
    right = tc.Tally.from_predictions(columns["y"], columns["p"], sample_weight=columns["w"])
    assert spark.tally(df, **NAMES, weight="w") == right
    real = spark.tally(df, **NAMES, weight="v")
    right = tc.Tally.from_predictions(columns["y"], columns["p"], sample_weight=columns["v"])
    assert real.weighted
    assert np.array_equal(real.p, right.p)
    np.testing.assert_allclose(real.ones, right.ones, rtol=1e-12)
    np.testing.assert_allclose(real.zeros, right.zeros, rtol=1e-12)


def test_sums_of_weights_beyond_64_bits_are_refused(session: Any) -> None:
    df = session.createDataFrame([(1, 0.5, 2**62)] * 4, "y int, p double, w long")
    assert "must sum to less than 2**63" in refused(df, weight="w")


@pytest.mark.parametrize(
    "kinds", [("boolean", "tinyint"), ("bigint", "float"), ("double", "decimal(3, 1)")]
)
def test_every_type_of_number(session: Any, kinds: tuple[str, str]) -> None:
    df = session.createDataFrame([(1, 1), (0, 1), (0, 0)], "y int, p int")
    df = df.withColumns(
        {name: F.col(name).cast(kind) for name, kind in zip("yp", kinds, strict=True)}
    )
    assert spark.tally(df, **NAMES) == tc.Tally.from_predictions([1, 0, 0], [1, 1, 0])


def test_decimals_are_the_nearest_doubles_and_floats_are_what_they_are(session: Any) -> None:
    df = session.createDataFrame(
        [(1, Decimal("0.1")), (0, Decimal("0.3"))], "y int, p decimal(10, 5)"
    )
    assert spark.tally(df, **NAMES).p.tolist() == [0.1, 0.3]
    df = session.createDataFrame([(1, 0.1)], "y int, p float")
    assert spark.tally(df, **NAMES).p.tolist() == [float(np.float32(0.1))]


def test_names_with_dots_blanks_and_ticks(session: Any) -> None:
    df = session.createDataFrame([(1, 0.5)], "`a.b` int, `p ``x` double")
    assert spark.tally(df, outcome="a.b", score="p `x") == tc.Tally.from_predictions([1], [0.5])


def test_no_rows_one_row_and_empty_partitions(session: Any) -> None:
    df = session.createDataFrame([(1, 0.5)], "y int, p double")
    assert spark.tally(df, **NAMES) == tc.Tally.from_predictions([1], [0.5])
    assert spark.tally(df.repartition(7), **NAMES) == tc.Tally.from_predictions([1], [0.5])
    assert spark.tally(df.limit(0), **NAMES) == tc.Tally()


BAD = {
    (2, 0.5, 1.0): ("y", "must be 0 or 1", "2"),
    (None, 0.5, 1.0): ("y", "must be 0 or 1", None),
    (1, 1.5, 1.0): ("p", "must be between 0 and 1", "1.5"),
    (1, -1e-9, 1.0): ("p", "must be between 0 and 1", "-1.0E-9"),
    (1, math.nan, 1.0): ("p", "must be between 0 and 1", "NaN"),
    (1, None, 1.0): ("p", "must be between 0 and 1", None),
    (1, 0.5, -1.0): ("w", "must be 0, or from 1e-100 to 1e+100", "-1.0"),
    (1, 0.5, 1e-101): ("w", "must be 0, or from 1e-100 to 1e+100", "1.0E-101"),
    (1, 0.5, math.inf): ("w", "must be 0, or from 1e-100 to 1e+100", "Infinity"),
    (1, 0.5, math.nan): ("w", "must be 0, or from 1e-100 to 1e+100", "NaN"),
    (1, 0.5, None): ("w", "must be 0, or from 1e-100 to 1e+100", None),
}


def test_every_rule_is_kept(session: Any) -> None:
    df = session.createDataFrame(
        [*BAD, (1, 0.5, 1.5), (0, 0.25, 2.0), (0, 0.25, 0.0)], "y int, p double, w double"
    )
    listed = (
        spark.bad_rows(df, **NAMES, weight="w")
        .select("bad.column", "bad.rule", "bad.value")
        .collect()
    )
    assert sorted(map(str, listed)) == sorted(
        str(Row(column=c, rule=r, value=v)) for c, r, v in BAD.values()
    )
    with pytest.warns(UserWarning, match="11 bad rows were left out"):
        kept = spark.tally(df, **NAMES, weight="w", on_bad="count")
    assert kept == tc.Tally.from_predictions([1, 0], [0.5, 0.25], sample_weight=[1.5, 2.0])


def test_a_bad_row_is_refused_or_left_out(session: Any) -> None:
    df = session.createDataFrame([(1, 0.5), (2, 0.5), (0, 0.25)], "y int, p double")
    assert refused(df) == "y must be 0 or 1, got '2'"
    with pytest.warns(UserWarning, match="1 bad row was left out"):
        assert spark.tally(df, **NAMES, on_bad="count") == tc.Tally.from_predictions(
            [1, 0], [0.5, 0.25]
        )


def test_bad_rows_are_counted_and_listed(session: Any) -> None:
    df = session.createDataFrame([(1, 0.5), (2, 7.0), (1, None)], "y int, p double")
    assert "(one of 2 bad rows; on_bad='count' leaves them out)" in refused(df)
    found = [(row.y, row.p, row.bad.asDict()) for row in spark.bad_rows(df, **NAMES).collect()]
    assert sorted(found, key=str) == [
        (1, None, {"file": None, "column": "p", "rule": "must be between 0 and 1", "value": None}),
        (2, 7.0, {"file": None, "column": "y", "rule": "must be 0 or 1", "value": "2"}),
    ]
    with pytest.warns(UserWarning, match="2 bad rows were left out"):
        assert spark.tally(df, **NAMES, on_bad="count") == tc.Tally.from_predictions([1], [0.5])


def test_a_bad_row_of_a_file_is_named_with_its_file(session: Any, tmp_path: Path) -> None:
    for name, text in {"good.csv": "y,p\n1,0.5\n", "off.csv": "y,p\n1,0.5\n1,50\n"}.items():
        (tmp_path / name).write_text(text)
    df = session.read.csv(str(tmp_path), header=True, schema="y int, p double")
    with pytest.raises(tc.FileError) as caught:
        spark.tally(df, **NAMES)
    assert caught.value.file.endswith("/off.csv")
    assert (caught.value.place, caught.value.reason) == (
        "a row",
        "p must be between 0 and 1, got '50.0'",
    )


def test_rows_of_several_files_are_refused_without_one(session: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,y\n1,1\n2,2\n")
    (tmp_path / "b.csv").write_text("id,p\n1,0.5\n2,0.5\n")
    y, p = (
        session.read.csv(str(tmp_path / name), header=True, inferSchema=True)
        for name in ("a.csv", "b.csv")
    )
    assert refused(y.join(p, "id")) == "y must be 0 or 1, got '2'"


def test_what_is_no_column_of_numbers_is_refused(session: Any) -> None:
    df = session.createDataFrame([("1", 0.5)], "y string, p double")
    assert refused(df) == "y must be a column of bool, integers, floats or decimals, got 'string'"
    assert (
        refused(df, outcome="z")
        == "outcome must be a column of the data, which has 'y', 'p', got 'z'"
    )
    assert refused(df, outcome="p", weight="z").startswith("weight must be a column of the data")
    assert (
        refused(df.select("p", "p"), outcome="p")
        == "outcome must be the name of one column, got 'p'"
    )
    assert refused([(1, 0.5)]).startswith("df must be a DataFrame of Spark")
    assert refused(df, on_bad="skip").startswith("on_bad must be")


@pytest.mark.parametrize("weight", [None, "w", "v"])
def test_too_many_scores_are_pooled_as_coarsened_pools_them(
    session: Any, weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    p = np.append(rng.random(3000), [0.0, 1.0])
    columns = {
        "y": rng.integers(0, 2, len(p)),
        "p": p,
        "w": rng.integers(1, 5, len(p)),
        "v": rng.random(len(p)) + 0.1,
    }
    df = frame(session, columns)
    whole = spark.tally(df, **NAMES, weight=weight)
    monkeypatch.setattr(tallies, "MOST_FORECASTS", 100)
    with pytest.warns(UserWarning, match="near ones were pooled"):
        pooled = spark.tally(df, **NAMES, weight=weight)
    assert pooled == whole.coarsened(100)


def test_counts_made_by_spark_serve_as_weights(session: Any) -> None:
    columns = rounds(4)
    counted = frame(session, columns).groupBy("y", "p").count()
    assert spark.tally(counted, **NAMES, weight="count") == tc.Tally.from_predictions(
        columns["y"], columns["p"]
    )


def test_frames_that_stream_are_refused(session: Any) -> None:
    stream = session.readStream.format("rate").load().selectExpr("value AS y", "0.5D AS p")
    message = "df must not stream: see recalibrate_stream"
    assert message in refused(stream)
    with pytest.raises(tc.InputError, match=message):
        spark.measure(stream, **NAMES, by="y")
    with pytest.raises(tc.InputError, match=message):
        spark.recalibrate(stream, **NAMES, key="y", order_by="y")
