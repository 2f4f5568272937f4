"""Tallies of tables and files are those of the columns, bit for bit."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

from truecast.adapters import duckdb as of_duckdb  # noqa: E402
from truecast.adapters import polars as of_polars  # noqa: E402

BOTH = pytest.mark.parametrize("adapter", [of_duckdb, of_polars], ids=["duckdb", "polars"])
NAMES = {"outcome": "y", "score": "p"}
OR_SKIP = ": correct the row, or use read_rounds(..., skip_bad=True) to leave such rows out"


def rounds(seed: int = 0, size: int = 2000) -> Any:
    rng = np.random.default_rng(seed)
    p = rng.choice(
        [0.0, -0.0, 1.0, 0.5, np.nextafter(0.5, 1), 0.1 + 0.2, 0.3, 5e-324, *rng.random(20)], size
    )
    columns = {
        "y": rng.integers(0, 2, size),
        "p": p,
        "w": rng.integers(0, 5, size),
        "v": rng.random(size),
    }
    return pl.DataFrame(columns)


def expected(frame: Any, weight: str | None = None) -> tc.Tally:
    columns = frame.to_dict(as_series=False)
    weights = None if weight is None else np.array(columns[weight])
    return tc.Tally.from_predictions(columns["y"], columns["p"], sample_weight=weights)


def write(frame: Any, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif ".csv" in path.name.lower():
        text = frame.write_csv()
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    else:
        text = frame.write_ndjson()
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def text_file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def refused(adapter: Any, data: Any, **options: Any) -> tc.InputError:
    with pytest.raises(tc.InputError) as caught:
        adapter.tally(data, **{**NAMES, **options})
    assert isinstance(caught.value, tc.InputError)
    return caught.value


def refused_file(adapter: Any, path: Path, **options: Any) -> tuple[str | None, str]:
    """Where a file is refused, and why."""
    with pytest.raises(tc.FileError) as caught:
        adapter.tally(path, **{**NAMES, **options})
    assert caught.value.file == str(path)
    return caught.value.place, caught.value.reason


# Every kind of input


@BOTH
def test_frames_of_polars(adapter: Any) -> None:
    frame = rounds()
    assert adapter.tally(frame, **NAMES) == expected(frame)
    assert adapter.tally(frame.lazy(), **NAMES) == expected(frame)


def test_what_duckdb_can_scan() -> None:
    frame = rounds()
    kinds: list[Callable[[], Any]] = [
        frame.to_pandas,
        frame.to_arrow,
        lambda: frame.to_arrow().to_reader(),
    ]
    for make in kinds:
        assert of_duckdb.tally(make(), **NAMES) == expected(frame)
    arrays = {name: frame[name].to_numpy() for name in frame.columns}
    assert of_duckdb.tally(arrays, **NAMES) == expected(frame)


def test_relations_tables_and_views_of_duckdb() -> None:
    frame = rounds()
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute(
        'CREATE SCHEMA s; CREATE TABLE s."of ""rounds""" AS FROM frame; CREATE VIEW v AS FROM frame'
    )
    assert of_duckdb.tally(connection.table("v"), **NAMES) == expected(frame)
    assert of_duckdb.tally("v", **NAMES, connection=connection) == expected(frame)
    assert of_duckdb.tally('s."of ""rounds"""', **NAMES, connection=connection) == expected(frame)
    assert refused(of_duckdb, "v").value == "v"  # not in the default connection


@BOTH
@pytest.mark.parametrize(
    "ending",
    ["parquet", "csv", "csv.gz", "CSV", "ndjson", "jsonl", "jsonl.gz"],
    ids=lambda ending: ending,
)
@pytest.mark.parametrize("weight", [None, "w", "v"])
def test_files(adapter: Any, ending: str, weight: str | None, tmp_path: Path) -> None:
    frame = rounds()
    path = write(frame, tmp_path / f'it\'s [1] "x".{ending}')
    for data in (path, str(path)):
        tally, right = adapter.tally(data, **NAMES, weight=weight), expected(frame, weight)
        assert np.array_equal(tally.p, right.p)
        assert tally.weighted == right.weighted == (weight == "v")
        np.testing.assert_allclose(tally.ones, right.ones, rtol=1e-12 if weight == "v" else 0)
        np.testing.assert_allclose(tally.zeros, right.zeros, rtol=1e-12 if weight == "v" else 0)


@BOTH
def test_json_arrays_are_refused_with_what_to_do(adapter: Any, tmp_path: Path) -> None:
    path = text_file(tmp_path / "a.json", '[{"y": true, "p": 1}, {"y": false, "p": 0.25}]')
    place, reason = refused_file(adapter, path)
    assert (place, "put each object on its own line" in reason) == ("line 1", True)
    right = tc.Tally.from_predictions([1, 0], [1, 0.25])
    assert of_duckdb.tally(f"FROM read_json('{path}')", **NAMES) == right


def test_queries_of_duckdb() -> None:
    frame = rounds()
    connection = duckdb.connect()
    connection.register("frame", frame)
    for query in (
        "SELECT y, p FROM frame",
        "\n  from frame",
        "WITH t AS (FROM frame) SELECT * FROM t",
    ):
        assert of_duckdb.tally(query, **NAMES, connection=connection) == expected(frame)
    connection.execute("CREATE TABLE selected AS FROM frame")
    assert of_duckdb.tally("selected", **NAMES, connection=connection) == expected(frame)
    assert "must be readable (Catalog Error" in str(refused(of_duckdb, "SELECT * FROM nowhere"))


@BOTH
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_files_of_a_pattern_are_merged(adapter: Any, ending: str, tmp_path: Path) -> None:
    parts = [rounds(seed) for seed in range(3)]
    for number, part in enumerate(parts):
        write(part, tmp_path / f"part-{number}.{ending}")
    tally = adapter.tally(tmp_path / f"part-*.{ending}", **NAMES)
    assert tally == tc.Tally.merge(map(expected, parts)) == expected(pl.concat(parts))


# Values


@BOTH
def test_negative_zero_is_zero(adapter: Any) -> None:
    tally = adapter.tally(pl.DataFrame({"y": [0, 1, 1], "p": [-0.0, 0.0, -0.0]}), **NAMES)
    assert tally == tc.Tally([0.0], [1], [2])
    assert not np.signbit(tally.p).any()


@BOTH
def test_float32_is_widened(adapter: Any) -> None:
    frame = rounds().with_columns(pl.col("p", "v").cast(pl.Float32))
    p = frame["p"].to_numpy()
    assert p.dtype == np.float32
    assert adapter.tally(frame, **NAMES) == tc.Tally.from_predictions(frame["y"], p)


@BOTH
@pytest.mark.parametrize(
    "kind", ["Boolean", "Int8", "UInt8", "Int32", "UInt64", "Float32", "Float64"]
)
def test_outcomes_of_any_type(adapter: Any, kind: str) -> None:
    frame = rounds()
    assert adapter.tally(
        frame.with_columns(pl.col("y").cast(getattr(pl, kind))), **NAMES
    ) == expected(frame)


@BOTH
@pytest.mark.parametrize("kind", ["Int8", "UInt8", "Int16", "Int32", "UInt64"])
def test_integer_weights_are_counts(adapter: Any, kind: str) -> None:
    frame = rounds()
    assert adapter.tally(
        frame.with_columns(w=pl.col("w").cast(getattr(pl, kind))), **NAMES, weight="w"
    ) == expected(frame, "w")


@BOTH
def test_sums_of_counts_are_exact(adapter: Any) -> None:
    large = 2**51 - 1
    frame = pl.DataFrame({"y": [1, 1, 1, 0], "p": [0.5] * 4, "w": [large, large, large, large + 1]})
    assert adapter.tally(frame, **NAMES, weight="w") == tc.Tally([0.5], [large + 1], [3 * large])
    small = pl.DataFrame(
        {"y": [1] * 3, "p": [0.5] * 3, "w": [2**31 - 1] * 3}, schema_overrides={"w": pl.Int32}
    )
    assert adapter.tally(small, **NAMES, weight="w") == tc.Tally([0.5], [0], [3 * (2**31 - 1)])


def test_integers_of_128_bits() -> None:
    frame = rounds()
    wide = frame.with_columns(pl.col("y", "w").cast(pl.Int128))
    assert of_polars.tally(wide, **NAMES, weight="w") == expected(frame, "w")
    connection = duckdb.connect()
    connection.register("frame", frame)
    relation = connection.view("frame").project("y::HUGEINT AS y, p, w::UHUGEINT AS w")
    assert of_duckdb.tally(relation, **NAMES, weight="w") == expected(frame, "w")


@BOTH
def test_bool_weights_are_counts(adapter: Any) -> None:
    frame = pl.DataFrame({"y": [1, 1, 0], "p": [0.5, 0.5, 0.25], "w": [True, True, False]})
    assert adapter.tally(frame, **NAMES, weight="w") == tc.Tally([0.5], [0], [2])


@BOTH
def test_float_weights_make_a_weighted_tally(adapter: Any) -> None:
    frame = rounds().with_columns(v=pl.col("w") / 8)  # sums without rounding
    tally = adapter.tally(frame, **NAMES, weight="v")
    assert tally.weighted
    assert tally == expected(frame, "v")
    nothing = adapter.tally(pl.DataFrame({"y": [1], "p": [0.5], "v": [0.0]}), **NAMES, weight="v")
    assert not nothing.total


@BOTH
def test_decimals_are_read_as_doubles(adapter: Any) -> None:
    frame = pl.DataFrame({"y": [1, 0], "p": [Decimal("0.1"), Decimal("0.3")]})
    assert adapter.tally(frame, **NAMES) == tc.Tally.from_predictions([1, 0], [0.1, 0.3])


@BOTH
def test_a_column_may_serve_twice(adapter: Any) -> None:
    tally = adapter.tally(pl.DataFrame({"p": [0, 1, 1]}), outcome="p", score="p", weight="p")
    assert tally == tc.Tally([1.0], [0], [2])


@BOTH
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_names_of_columns_are_quoted(adapter: Any, ending: str, tmp_path: Path) -> None:
    names = {"outcome": 'my "p"', "score": "y", "weight": "p; DROP TABLE rounds --'"}
    frame = rounds().select(
        pl.col("y").alias(names["outcome"]),
        pl.col("p").alias(names["score"]),
        pl.col("w").alias(names["weight"]),
    )
    right = expected(rounds(), "w")
    assert adapter.tally(frame, **names) == right
    assert adapter.tally(write(frame, tmp_path / f"a.{ending}"), **names) == right


@BOTH
def test_no_rounds(adapter: Any, tmp_path: Path) -> None:
    empty = rounds().head(0)
    assert adapter.tally(empty, **NAMES) == tc.Tally()
    assert adapter.tally(empty, **NAMES, weight="v") == tc.Tally()
    assert adapter.tally(pl.DataFrame({"y": [], "p": []}), **NAMES) == tc.Tally()
    assert adapter.tally(write(empty, tmp_path / "a.parquet"), **NAMES) == tc.Tally()
    assert adapter.tally(write(empty, tmp_path / "a.csv"), **NAMES) == tc.Tally()


# Text, whose types are guessed from the first rows


@BOTH
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_numbers_after_many_integers_keep_their_decimals(
    adapter: Any, ending: str, tmp_path: Path
) -> None:
    many = 30_000
    frame = pl.DataFrame(
        {"y": [1.0] * (many + 1), "p": [0.0] * many + [0.4], "w": [1.0] * many + [1.5]}
    )
    path = write(frame.head(many).cast(pl.Int64), tmp_path / f"a.{ending}")
    last = "1,0.4,1.5\n" if ending == "csv" else '{"y": 1, "p": 0.4, "w": 1.5}\n'
    path.write_text(path.read_text() + last)
    assert adapter.tally(path, **NAMES) == expected(frame)
    assert adapter.tally(path, **NAMES, weight="w") == expected(frame, "w")


@BOTH
def test_late_outcomes_are_not_rounded(adapter: Any, tmp_path: Path) -> None:
    integers = text_file(tmp_path / "a.csv", "y,p\n" + "1,0.5\n" * 30_000 + "0.7,0.5\n")
    fault = "line 30002", f"y must be an outcome, 0 or 1, got '0.7'{OR_SKIP}"
    assert refused_file(adapter, integers) == fault
    assert (
        refused_file(
            adapter, text_file(tmp_path / "b.csv", "y,p\n" + "true,0.5\n" * 30_000 + "0.7,0.5\n")
        )
        == fault
    )
    lines = text_file(
        tmp_path / "a.jsonl", '{"y": true, "p": 0.5}\n' * 30_000 + '{"y": 0.7, "p": 0.5}\n'
    )
    assert refused_file(adapter, lines) == ("line 30001", fault[1])


@BOTH
def test_parquet_files_of_two_types(adapter: Any, tmp_path: Path) -> None:
    parts = [pl.DataFrame({"y": [1, 0], "p": [0, 1]}), pl.DataFrame({"y": [1, 0], "p": [0.4, 1.0]})]
    for number, part in enumerate(parts):
        part.write_parquet(tmp_path / f"{number}.parquet")
    assert adapter.tally(tmp_path / "*.parquet", **NAMES) == tc.Tally.merge(map(expected, parts))


@BOTH
def test_text_that_turns_out_not_to_be_a_number(adapter: Any, tmp_path: Path) -> None:
    place, reason = refused_file(
        adapter, text_file(tmp_path / "a.csv", "y,p\n" + "1,0.5\n" * 30_000 + "1,rain\n")
    )
    said = f"p must be a probability from 0 to 1, got 'rain'{OR_SKIP}"
    assert (place, reason) == ("line 30002", said)


# Refusals


@BOTH
@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("y", 2, "must be 0 or 1"),
        ("y", -1, "must be 0 or 1"),
        ("y", 0.5, "must be 0 or 1"),
        ("y", float("nan"), "must be 0 or 1"),
        ("p", 1.0000000000000002, "must be between 0 and 1"),
        ("p", -5e-324, "must be between 0 and 1"),
        ("p", float("nan"), "must be between 0 and 1"),
        ("p", float("inf"), "must be between 0 and 1"),
        ("v", -0.5, "must be finite and not negative"),
        ("v", float("nan"), "must be finite and not negative"),
        ("v", float("inf"), "must be finite and not negative"),
        ("v", float("-inf"), "must be finite and not negative"),
        ("w", -3, "must be finite and not negative"),
    ],
)
@pytest.mark.parametrize("tied", [True, False])
def test_values_that_are_refused(
    adapter: Any, column: str, value: float, rule: str, tied: bool
) -> None:
    frame = pl.DataFrame(
        {
            "y": [0, 1, 1],
            "p": [0.1, 0.2, 0.2 if tied else 0.3],
            "w": [0, 1, 2],
            "v": [0.5, 0.2, 0.1],
        }
    )
    values = [*frame[column].to_list()[:-1], value]
    frame = frame.with_columns(pl.Series(column, values, strict=False))
    error = refused(adapter, frame, weight="w" if column == "w" else "v")
    assert (error.argument, error.rule) == (column, rule)
    assert isinstance(error.value, float)
    assert np.array_equal(error.value, float(value), equal_nan=True)


@BOTH
@pytest.mark.parametrize("column", ["y", "p", "w", "v"])
def test_missing_values_are_refused(adapter: Any, column: str) -> None:
    frame = pl.DataFrame(
        {"y": [0, 1, 1, 1], "p": [0.1, 0.2, 0.2, 0.2], "w": [1, 2, 3, 4], "v": [0.1, 0.2, 0.3, 0.4]}
    )
    for missing in ([1], [1, 3], [0, 1, 2, 3]):
        holes = frame[column].scatter(missing, None)
        error = refused(
            adapter, frame.with_columns(holes), weight=column if column in "wv" else None
        )
        assert str(error) == f"{column} must not be missing ({len(missing)} of 4 are), got None"


def test_missing_in_pandas_is_refused() -> None:
    pd = pytest.importorskip("pandas")
    assert "1 of 2" in str(
        refused(of_duckdb, pd.DataFrame({"y": [0, 1], "p": [0.5, float("nan")]}))
    )


@BOTH
def test_missing_in_text_is_refused(adapter: Any, tmp_path: Path) -> None:
    fault = (
        "p must be a probability from 0 to 1, got nothing: use read_rounds(..., skip_bad=True) to "
        "leave such rows out"
    )
    assert refused_file(adapter, text_file(tmp_path / "a.csv", "y,p\n1,0.5\n1,\n")) == (
        "line 3",
        fault,
    )
    lines = text_file(tmp_path / "a.jsonl", '{"y":1,"p":0.5}\n{"y":1}\n')
    assert refused_file(adapter, lines) == ("line 2", fault)


@BOTH
def test_sums_beyond_exact_doubles_are_refused(adapter: Any) -> None:
    for weights, kind in (
        ([2**53 + 1, 0], pl.Int64),
        ([2**52, 2**52], pl.Int64),
        ([2**64 - 1] * 2, pl.UInt64),
    ):
        frame = pl.DataFrame({"y": [1, 0], "p": [0.5, 0.5], "w": pl.Series(weights, dtype=kind)})
        assert f"must sum to less than {2**53}" in str(refused(adapter, frame, weight="w"))
    refused(adapter, pl.DataFrame({"y": [1, 1], "p": [0.5, 0.5], "v": [1e308, 1e308]}), weight="v")


@BOTH
def test_missing_columns_are_refused(adapter: Any) -> None:
    for argument in ("outcome", "score", "weight"):
        for name in ("P", "", 'y" FROM range(3) --', 7):
            error = refused(adapter, rounds(), **{argument: name})
            assert (error.argument, error.value) == (argument, name)
            assert "'y', 'p', 'w', 'v'" in error.rule


@BOTH
@pytest.mark.parametrize("column", ["y", "p", "w"])
def test_columns_of_other_types_are_refused(adapter: Any, column: str, tmp_path: Path) -> None:
    for kind in (pl.String, pl.Date):
        frame = rounds(size=3).with_columns(pl.Series(column, [1, 1, 1]).cast(kind))
        error = refused(adapter, frame, weight="w")
        assert (error.argument, error.rule) == (
            column,
            "must be a column of bool, integers or floats",
        )
    texts = rounds(size=3).with_columns(pl.Series(column, ["0.5"] * 3))
    _, reason = refused_file(adapter, write(texts, tmp_path / "a.parquet"), weight="w")
    assert reason == f"has no numbers in column {column!r}: it is of type String"


@BOTH
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_missing_and_broken_files_are_refused(adapter: Any, ending: str, tmp_path: Path) -> None:
    for name in (f"nothing.{ending}", f"*.{ending}"):
        assert refused_file(adapter, tmp_path / name) == (None, "does not exist: no such file")
    assert refused_file(adapter, text_file(tmp_path / f"a.{ending}", '{"y": '))[0] == "line 1"


@BOTH
@pytest.mark.parametrize("data", [3, None, b"a.csv"])
def test_other_data_is_refused(adapter: Any, data: Any) -> None:
    assert refused(adapter, data).argument == "data"


@pytest.mark.parametrize("data", ["a.xlsx", "", "a'; DROP TABLE t; --"])
def test_other_strings_are_tables_for_duckdb_and_files_for_polars(data: str) -> None:
    error = refused(of_duckdb, data)
    assert (error.argument, "must be a table or view of the connection" in error.rule) == (
        "data",
        True,
    )
    with pytest.raises(tc.FileError):
        of_polars.tally(data, **NAMES)


@BOTH
def test_paths_may_have_any_ending(adapter: Any, tmp_path: Path) -> None:
    frame = rounds()
    path = write(frame, tmp_path / "a.csv").rename(tmp_path / "rounds")
    assert adapter.tally(path, **NAMES) == expected(frame)
    assert refused_file(adapter, tmp_path / "a.xlsx") == (None, "does not exist: no such file")


def test_nothing_imports_the_frameworks() -> None:
    code = (
        "import sys, truecast; sys.exit(bool({'polars', 'duckdb', 'truecast.adapters'} & "
        "{*sys.modules}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_our_own_connections_of_duckdb_keep_standard_output_clean() -> None:
    setting = (
        of_duckdb._connection().sql("SELECT current_setting('enable_progress_bar')").fetchall()
    )
    assert setting == [(False,)]
