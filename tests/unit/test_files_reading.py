"""Reading files: corners that the property tests do not come by."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import truecast as tc
import truecast.files
import truecast.files.parquet
from truecast.errors import FileError
from truecast.files import Names, guess, open_table, rounds
from truecast.files.delimited import Delimited
from truecast.files.json_lines import JsonLines
from truecast.files.pooled import PooledTally
from truecast.files.quotes import Quotes
from truecast.files.records import Records
from truecast.files.tallies import GrowingTally


def delimited(text: str) -> Delimited:
    return Delimited("f", io.BytesIO(text.encode()).read, lambda: None)


def read(table: Delimited | JsonLines, *wanted: str) -> list[tuple[object, ...]]:
    return [row for chunk in table.chunks(wanted) for row in chunk.frame.iter_rows()]


def test_a_hundred_thousand_columns_are_read_without_the_engine() -> None:
    names = [f"c{at}" for at in range(100_000)]
    text = ",".join([*names, "y", "p"]) + "\n" + "7," * len(names) + "1,0.5\n"
    with patch("polars.read_csv", side_effect=AssertionError("slow")):
        table = delimited(text)
        assert read(table, "p", "c5", "y") == [("0.5", "7", "1")]


def test_a_row_may_be_long_and_a_field_longer_than_the_csv_module_allows() -> None:
    long = "x" * 1_000_000
    bad = "1,2,3\n"  # sends the block the slow way
    for text in (
        f"y,g\n1,{long}\n",
        f"y,g\n1,{long}\n{bad}",
        f'y,g\n1,"{long}"\n',
        f'y,g\n1,"{long}"\n{bad}',
    ):
        assert read(delimited(text), "y", "g") == [("1", long)]


def test_names_that_are_twice_in_a_long_line_of_json_do_not_take_long() -> None:
    text = '{"y": 1, "p": 0.5}\n{"y": 1, "p": 0.25, ' + '"z": 1,' * 200_000 + '"a": 0}\n'
    with patch("polars.read_ndjson", wraps=pl.read_ndjson) as engine:
        table = JsonLines("f", io.BytesIO(text.encode()).read, lambda: None)
        assert read(table, "y", "p") == [("1", "0.5"), ("1", "0.25")]
        assert engine.call_count == 1  # for the first line


@pytest.mark.parametrize(
    ("header", "columns", "separator"),
    [
        ('"a,b,c";y;p', ["a,b,c", "y", "p"], ";"),
        ("y|p", ["y", "p"], "|"),
        ("y\tp", ["y", "p"], "\t"),
        (' y , "p"', None, ","),
        ('"y","p ""x"""', ["y", 'p "x"'], ","),
        ('y,"p\nq"', ["y", "p\nq"], ","),
        (",y,p", ["", "y", "p"], ","),
    ],
)
def test_the_header_tells_the_separator(
    header: str, columns: list[str] | None, separator: str
) -> None:
    if columns is None:
        with pytest.raises(
            FileError, match="line 1: the header has a quote that neither begins nor ends a field"
        ):
            delimited(f"{header}\n")
        return
    table = delimited(f"{header}\n")
    assert table.columns == columns
    assert table.separator == separator


def test_columns_without_a_name_and_with_the_same_name_stay_apart() -> None:
    table = delimited(",y,x,x\n1,0,2,3\n")
    assert read(table, "y") == [("0",)]
    ((_, whole),) = [
        (chunk.frame, chunk.whole)
        for chunk in delimited(",y,x,x\n1,0,2,3\n").chunks(["y"], everything=True)
    ]
    assert isinstance(whole, pl.DataFrame)
    assert whole.rows() == [("1", "0", "2", "3")]


def test_a_missing_value_is_the_same_quoted_or_not() -> None:
    names = Names("y", ("p",), group="g")
    text = 'y,p,g\n,0.5,\n"",0.5,""\n1,0.5,a\n'
    for bad in ("", "1,2,3,4\n"):
        (part,) = rounds(delimited(text + bad), names, unknown=True, skip_bad=True)
        assert np.isnan(part.y).tolist() == [True, True, False]
        assert part.group is not None
        assert part.group.to_list() == [None, None, "a"]


def test_blank_lines_in_a_file_of_one_column_are_missing_outcomes_on_both_paths() -> None:
    for after in ("", '5"\n', '"a"b\n'):
        (part,) = rounds(delimited(f"y\n1\n\n0\n{after}"), Names("y"), unknown=True, skip_bad=True)
        assert part.y.tolist()[::2] == [1, 0]
        assert np.isnan(part.y[1])
        assert part.skipped == bool(after)


def test_the_first_bad_row_is_the_one_that_is_told() -> None:
    names = Names("y", ("p",))
    for text, line in [
        ("1,2\n1\n", 2),
        ("1\n1,2\n", 2),
        ("1,0.5\n1,2\n1\n", 3),
        ("1,0.5\n1\n1,2\n", 3),
    ]:
        with pytest.raises(FileError, match=f"line {line}: "):
            list(rounds(delimited(f"y,p\n{text}"), names))


def test_zeros_between_packed_streams_are_padding(tmp_path: Path) -> None:
    parts = [lzma.compress(b"y,p\n1,0.5\n"), bytes(8), lzma.compress(b"0,0.5\n"), bytes(200_000)]
    path = tmp_path / "f.csv.xz"
    path.write_bytes(b"".join(parts))
    with open_table(str(path)) as table:
        assert [row for chunk in table.chunks(["y"]) for row in chunk.frame.iter_rows()] == [
            ("1",),
            ("0",),
        ]


def test_line_ends_within_quotes_are_gone_over_at_once() -> None:
    """Else the first would take hours, as each of a million times all quotes before were
    counted."""
    text = b'"y\n' + b"\n" * 4_000_000
    assert Records("f", io.BytesIO(text).read, quotes=Quotes(",")).first() == (1, b'"y')
    text = b'"y\n\n""\n"\n1\n'
    assert Records("f", io.BytesIO(text).read, quotes=Quotes(",")).first() == (1, b'"y\n\n""\n"')
    text = b"y,p\n" + b'"a\n\n' * 200_000
    records = Records("f", io.BytesIO(text).read, quotes=Quotes(","))
    assert records.first() == (1, b"y,p")
    assert b"".join(block for _, block in records) == text[4:].rstrip(b"\n") + b"\n"


def test_lines_are_numbered_over_millions_of_bad_rows_in_little_memory() -> None:
    table = delimited("y,p\n1,0.5\n" + "1\n" * 100_000 + "1,0.25\n")
    chunks = list(table.chunks(["p"]))
    assert sum(chunk.bad.rows for chunk in chunks) == 100_000
    assert chunks[-1].place(len(chunks[-1].frame) - 1) == "line 100003"


def test_a_column_is_guessed_by_its_name_whatever_its_case() -> None:
    assert guess("f", ["id", "Y_True", "Score"]) == Names("Y_True", ("Score",))
    assert guess("f", ["id", "what"], outcome="id") == Names("id", ("what",))
    with pytest.raises(FileError, match=r"f has 2 columns 'p' \(--score\): rename all but one"):
        guess("f", ["y", "p", "p"], scores=["p"])
    with pytest.raises(FileError, match=r"f has no column 'w' \(--weight\); it has y, p, '', ' z'"):
        guess("f", ["y", "p", "", " z"], weight="w")


@pytest.mark.parametrize(
    ("old", "new"), [("Recalibrated", "RecalibrationResult"), ("Table", "OpenTable")]
)
def test_a_name_of_before_still_works_and_warns(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"truecast.files.{old} is now {new}"):
        assert getattr(truecast.files, old) is getattr(truecast.files, new)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        truecast.files.Nothing  # noqa: B018


@pytest.mark.parametrize("distinct", [3, 40, 1_000, None])
def test_a_tally_is_the_same_however_its_parts_were_counted(distinct: int | None) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    p = p if distinct is None else np.floor(p * distinct) / distinct
    y = (rng.random(len(p)) < p).astype(float)
    for weight in (None, rng.integers(0, 3, len(p)), rng.random(len(p))):
        whole = tc.Tally.from_predictions(y, p, sample_weight=weight)
        with (
            patch("truecast.files.tallies._ROWS", 4_000),
            patch("truecast.files.tallies._LEAST_ROWS", 600),
        ):
            growing = GrowingTally()
            for at in np.split(np.arange(len(p)), [700, 701, 5_000, 9_000, 9_500, 20_000]):
                growing.add(y[at], p[at], None if weight is None else weight[at])
        found = growing.compute()
        assert found.p.tolist() == whole.p.tolist()
        same = np.array_equal if not found.weighted else np.allclose
        assert same(found.zeros, whole.zeros)
        assert same(found.ones, whole.ones)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_too_many_forecasts_are_pooled_as_a_coarsened_tally_pools_them(weights: str | None) -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(5_000), rng.random(300) ** 9, [0.0, 1.0, np.nextafter(0.25, 0)]])
    y = rng.random(len(p)) < p
    weight = {
        None: None,
        "whole": rng.integers(0, 3, len(p)),
        "real": rng.random(len(p)),
    }[weights]
    growing = GrowingTally()
    for at in np.split(np.arange(len(p)), [100, 101, 900, 2_000, 2_001, 4_000]):
        # ever fewer, as where groups are found
        most = max(64, 300 - len(at))
        growing.add(y[at], p[at], None if weight is None else weight[at], most=most)
    found = growing.compute()
    whole = tc.Tally.from_predictions(y, p, sample_weight=weight).coarsened(64)
    assert growing.pooled
    assert found.p == pytest.approx(whole.p, abs=1e-12)
    assert found.weighted == whole.weighted
    same = np.array_equal if not found.weighted else np.allclose
    assert same(found.zeros, whole.zeros)
    assert same(found.ones, whole.ones)


def test_a_pooled_forecast_stays_in_its_cell() -> None:
    below, last = np.nextafter(0.5, 0), np.nextafter(1.0, 0)
    p = np.array([below, below, below, 0.5, last, 1.0])
    pooled = PooledTally(3)  # two cells
    pooled.add(np.zeros(6, bool), p)
    for _ in range(1_000):
        pooled.add(np.ones(3, bool), p[:3])
    found = pooled.compute()
    assert found.p[0] == below
    assert 0.5 <= found.p[1] <= 1
    assert (found.zeros.tolist(), found.ones.tolist()) == ([3, 3], [3_000, 0])


def test_many_rounds_at_few_forecasts_are_not_copied() -> None:
    rows = 1 << 17
    growing = GrowingTally()
    with patch("truecast.files.tallies._ROWS", rows):
        growing.add(np.zeros(rows), np.full(rows, 0.5))
    with patch("numpy.concatenate", side_effect=AssertionError("copied")):
        growing.add(np.zeros(rows), np.full(rows, 0.25))
        assert not growing._waiting
        assert growing.compute().total == 2 * rows
    weighted = GrowingTally()
    with patch("truecast.files.tallies._ROWS", rows):
        weighted.add(np.zeros(rows), np.full(rows, 0.5), np.full(rows, 0.1))
    weighted.add(np.zeros(rows), np.full(rows, 0.25), np.full(rows, 0.1))
    assert weighted._waiting  # its parts must not depend on the forecasts


@pytest.mark.parametrize("threads", ["1", "2"])
def test_parquet_that_is_read_before_it_is_asked_for_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("TRUECAST_THREADS", threads)
    path = tmp_path / "f.parquet"
    y = np.arange(1000) % 2
    pl.DataFrame({"p": np.linspace(0, 1, 1000), "y": y, "z": y}).write_parquet(path)
    with patch.object(truecast.files.parquet, "_ROWS", 10):  # more batches than are read ahead
        for started in ([], ["y", "p"], ["p"]):
            for everything in (False, True):
                with open_table(str(path)) as table:
                    if started:
                        table.start(started)
                    found = [*table.chunks(["y", "p"], everything=everything)]
                assert len(found) == 100
                frame = pl.concat([chunk.frame for chunk in found])
                assert frame.columns[:2] == ["1", "0"]
                assert frame["1"].to_list() == y.tolist()
                assert [chunk.place(0) for chunk in found[:2]] == ["row 1", "row 11"]


def test_parquet_that_breaks_off_is_refused_however_it_was_begun(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    y = np.random.default_rng(0).random(200_000)
    pl.DataFrame({"p": y, "y": y}).write_parquet(path, compression="uncompressed")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * (len(whole) // 2) + whole[4 + len(whole) // 2 :])
    for start in (True, False):
        with open_table(str(path)) as table:
            if start:
                table.start(["y", "p"])
            with pytest.raises(FileError, match="not a whole and sound Parquet file"):
                [*table.chunks(["y", "p"])]
