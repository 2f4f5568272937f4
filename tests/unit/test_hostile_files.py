"""Hostile files through the commands: one line that says what and where, exit code 2, nothing left
behind."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from truecast.cli import main

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMMANDS = {
    "measure": ["--resamples", "0"],
    "distance": ["--witness", "old.csv"],
    "report": ["-o", "old.html"],
    "recalibrate": ["-o", "old{ending}"],
    "forecast": ["-o", "old.csv"],
}
OLD = ["old.csv", "old.jsonl", "old.parquet", "old.html"]


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


CSV = "y,p\n" + "".join(f"{at % 2},{at % 100 / 100}\n" for at in range(500))
TABLE = parquet(y=[0, 1] * 50, p=[0.25, 0.5] * 50)
NO_OUTCOME = "has no column whose name suggests the outcome: name it with --outcome; it has"
PROBABILITY = "p must be a probability from 0 to 1, got"
OUTCOME = "y must be an outcome, 0 or 1, got"
SKIPPED = "use --skip-bad to leave such rows out"
IF_MISSING = "if the value is missing, "
MISSING = IF_MISSING + SKIPPED
UNSOUND = "is not a whole and sound Parquet file (parquet: File out of specification:"
SHORT = "A Parquet file must contain a header and footer with at least 12 bytes)"
FOOTER = "The footer size must be smaller or equal to the file's size)"
BYTE = (
    "is not UTF-8: there is a byte 0xe9; in Excel, save the file as 'CSV UTF-8', or convert it by "
    "iconv -f cp1252 -t utf-8"
)
ZERO = (
    "f.csv, line 1: is not UTF-8 text: there is a zero byte; if it is UTF-16, convert it by "
    "iconv -f utf-16 -t utf-8"
)

# what is wrong; the file; what is in it; what is said about it
ARRAY = (
    "must be a JSON object, is an array: put each object on its own line, for example with jq -c "
    "'.[]'"
)
FILES: list[tuple[str, str, bytes, str]] = [
    ("empty", "f.csv", b"", "f.csv is empty"),
    ("packed nothing", "f.csv", gzip.compress(b""), "f.csv is empty"),
    ("blank lines", "f.csv", b"\n\r\n  \n", "f.csv is empty"),
    ("header only", "f.csv", b"y,p\n", "f.csv has a header but no rows"),
    ("header without an end", "f.csv", b"y,p", "f.csv has a header but no rows"),
    ("header and blank lines", "f.csv", b"y,p\n\n\n", "f.csv has a header but no rows"),
    (
        "no header",
        "f.csv",
        b"1,0.5\n0,0.5\n",
        "f.csv, line 1: has 2 columns and no header: give it one",
    ),
    (
        "no outcome, and one column of zeros and ones",
        "f.csv",
        b"a,weekend,c\n1,0,3\n1,1,0.5\n",
        "f.csv has no column whose name suggests the outcome: name it with --outcome, perhaps "
        "weekend; it has a, weekend, c",
    ),
    ("no outcome", "f.csv", b"a,b,c\n1,2,3\n", f"f.csv {NO_OUTCOME} a, b, c"),
    ("line end in a name", "f.csv", b'"a\nb",c\n1,2\n', f"f.csv {NO_OUTCOME} 'a\\nb', c"),
    ("escape in a name", "f.csv", b"\x1b[31mred,c\n1,2\n", f"f.csv {NO_OUTCOME} '\\x1b[31mred', c"),
    (
        "many columns",
        "f.csv",
        ",".join(f"c{at}" for at in range(50)).encode(),
        f"f.csv {NO_OUTCOME} {', '.join(f'c{at}' for at in range(20))} and 30 more",
    ),
    (
        "two outcomes",
        "f.csv",
        b"y,y,p\n1,1,0.5\n",
        "f.csv has 2 columns 'y': rename all but one of them",
    ),
    (
        "long name",
        "f.csv",
        b"x" * 5000 + b",y\n1,1\n",
        "f.csv is not a table: the name of a column has 5,000 letters",
    ),
    ("NA", "f.csv", b"y,p\n1,0.5\nNA,0.5\n", f"f.csv, line 3: {OUTCOME} 'NA': {IF_MISSING}"),
    (
        "yes, no and NA",
        "f.csv",
        b"y,p\nno,0.5\nNA,0.5\nyes,0.5\n",
        f"f.csv, line 2: {OUTCOME} 'no': if 'yes' counts as 1, use --positive yes",
    ),
    (
        "-1 and 1",
        "f.csv",
        b"y,p\n1,0.5\n-1,0.5\n",
        f"f.csv, line 3: {OUTCOME} '-1': if 1 counts as 1, use --positive 1",
    ),
    (
        "1 and 2",
        "f.parquet",
        parquet(y=[1, 2], p=[0.5, 0.5]),
        f"f.parquet, row 2: {OUTCOME} 2: if 2 counts as 1, use --positive 2",
    ),
    ("outcome is text", "f.csv", b"y,p\n1,0.5\nyes,0.5\n", f"f.csv, line 3: {OUTCOME} 'yes'"),
    ("mixed types", "f.csv", b"y,p\n1,0.5\ntrue,0.5\n2,0.5\n", f"f.csv, line 4: {OUTCOME} '2'"),
    ("no value", "f.csv", b"y,p\n1,0.5\n,0.5\n", f"f.csv, line 3: {OUTCOME} nothing"),
    (
        "row too short",
        "f.csv",
        b"y,p\n1,0.5\n1\n",
        "f.csv, line 3: a row must have 2 fields like the header, got 1",
    ),
    (
        "row too long",
        "f.csv",
        b"y,p\n1,0.5,7\n",
        "f.csv, line 2: a row must have 2 fields like the header, got 3",
    ),
    (
        "blank line",
        "f.csv",
        b"y,p\n1,0\n\n1,0\n",
        "f.csv, line 3: a row must have 2 fields like the header, got none",
    ),
    (
        "after lines in quotes",
        "f.csv",
        b'y,p,g\n1,0.5,"a\nb\n"\n7,0.5,c\n',
        f"f.csv, line 5: {OUTCOME} '7'",
    ),
    (
        "quote not closed",
        "f.csv",
        b'y,p,g\n1,0.5,a\n1,0.5,"a\n1,0.5,c\n',
        "f.csv, line 3: a quoted field begins here and does not end",
    ),
    (
        "text after a quote",
        "f.csv",
        b'y,p,g\n1,0.5,a\n1,0.5,"a"b\n',
        "f.csv, line 3: after a quote that ends a field there must be a separator",
    ),
    (
        "quote in the header",
        "f.csv",
        b'y,p,5" pipe\n1,0.5,a\n',
        "f.csv, line 1: the header has a quote that neither begins nor ends a field",
    ),
    (
        "Latin-1",
        "f.csv",
        "y,p,g\n1,0.5,a\n1,0.5,café\n".encode("latin-1"),
        f"f.csv, line 3: {BYTE}",
    ),
    ("Latin-1 header", "f.csv", "y,p,café\n1,0.5,a\n".encode("latin-1"), f"f.csv, line 1: {BYTE}"),
    (
        "UTF-16",
        "f.csv",
        CSV.encode("utf-16"),
        "f.csv is in UTF-16; only UTF-8 can be read: in Excel, save it as 'CSV UTF-8', or convert "
        "it by iconv -f utf-16 -t utf-8",
    ),
    ("UTF-16 without its mark", "f.csv", CSV.encode("utf-16-le"), ZERO),
    ("UTF-16 the other way", "f.csv", CSV.encode("utf-16-be"), ZERO),
    ("binary", "f.csv", bytes(range(256)), ZERO),
    ("zero bytes", "f.csv", b"y,p\n1,0.5\n\0,0.5\n", f"f.csv, line 3: {OUTCOME} '\\x00'"),
    (
        "carriage returns",
        "f.csv",
        b"y,p\r1,0.5\r",
        "f.csv, line 1: has lines that end by CR alone: convert them first",
    ),
    (
        "zip",
        "f.csv",
        b"PK\x03\x04\x14",
        "f.csv is a ZIP archive or a spreadsheet: unpack it, or save it as CSV",
    ),
    (
        "spreadsheet",
        "f.csv",
        b"\xd0\xcf\x11\xe0\xa1",
        "f.csv is an old spreadsheet: save it as CSV",
    ),
    ("database", "f.csv", b"SQLite format 3\0", "f.csv is a database: export the table as CSV"),
    ("JSON array", "f.jsonl", b'[{"y": 1}]\n', f"f.jsonl, line 1: {ARRAY}"),
    (
        "JSON scalar",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n5\n',
        "f.jsonl, line 2: must be a JSON object, got '5'",
    ),
    (
        "JSON null",
        "f.jsonl",
        b'{"y": 1, "p": 0}\nnull\n',
        "f.jsonl, line 2: must be a JSON object, got 'null'",
    ),
    (
        "JSON over lines",
        "f.jsonl",
        b'{\n"y": 1}\n',
        "f.jsonl, line 1: must be a JSON object, is not JSON, from column 2",
    ),
    (
        "JSON cut",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n{"y": 1, "p',
        "f.jsonl, line 2: must be a JSON object, is not JSON, from column 10",
    ),
    (
        "JSON blank line",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n\n{"y": 1, "p": 0}\n',
        "f.jsonl, line 2: must be a JSON object, got none",
    ),
    (
        "JSON nested",
        "f.jsonl",
        b'{"y": {"z": 1}, "p": 0.5}\n',
        f"f.jsonl, line 1: {OUTCOME} '{{\"z\": 1}}'",
    ),
    (
        "JSON entry twice",
        "f.jsonl",
        b'{"y": 1, "p": 0, "y": 0}\n',
        "f.jsonl, line 1: must have one entry 'y', got several",
    ),
    (
        "JSON NaN",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n{"y": NaN, "p": 0.5}\n',
        f"f.jsonl, line 2: {OUTCOME} 'nan': {IF_MISSING}",
    ),
    (
        "JSON entry missing",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n{"p": 0.5}\n',
        f"f.jsonl, line 2: {OUTCOME} nothing",
    ),
    ("JSON nothing", "f.jsonl", b"{}\n", "f.jsonl has no columns"),
    (
        "JSON too deep",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n{"y": ' + b"[" * 100_000,
        "f.jsonl, line 2: must be a JSON object, got one with too many digits or too deep",
    ),
    (
        "JSON half a letter",
        "f.jsonl",
        b'{"y": 1, "p": 0}\n{"y": "\\ud800", "p": 0}\n',
        "f.jsonl, line 2: the text of 'y' must be Unicode, got half of a surrogate pair",
    ),
    (
        "JSON in Latin-1",
        "f.jsonl",
        '{"y": 1, "é": 0}\n'.encode("latin-1"),
        "f.jsonl, line 1: is not UTF-8: there is a byte 0xe9; convert the file, as by iconv -f "
        "cp1252 -t utf-8",
    ),
    (
        "Parquet text",
        "f.parquet",
        parquet(y=["1"], p=[0.5]),
        "f.parquet has no numbers in column 'y': it is of type String",
    ),
    (
        "Parquet dates",
        "f.parquet",
        parquet(y=[datetime.date(2020, 1, 1)], p=[0.5]),
        "f.parquet has no numbers in column 'y': it is of type Date",
    ),
    (
        "Parquet lists",
        "f.parquet",
        parquet(y=[[1]], p=[0.5]),
        "f.parquet has no numbers in column 'y': it is of type List(Int64)",
    ),
    (
        "Parquet nothing",
        "f.parquet",
        parquet(y=[None], p=[0.5]),
        "f.parquet has no numbers in column 'y': it is of type Null",
    ),
    (
        "Parquet null",
        "f.parquet",
        parquet(y=[1, None], p=[0.5, 0.5]),
        f"f.parquet, row 2: {OUTCOME} nothing",
    ),
    (
        "Parquet large",
        "f.parquet",
        parquet(y=pl.Series([2**64 - 1], dtype=pl.UInt64), p=[0.5]),
        f"f.parquet, row 1: {OUTCOME} {2**64 - 1}",
    ),
    (
        "Parquet without rows",
        "f.parquet",
        parquet(y=pl.Series([], dtype=pl.Int8), p=[]),
        "f.parquet has a header but no rows",
    ),
    ("Parquet without columns", "f.parquet", parquet(), "f.parquet has no columns"),
    (
        "Parquet cut at its end",
        "f.parquet",
        TABLE[:-3],
        f"f.parquet {UNSOUND} The file must end with PAR1 or PARE)",
    ),
    (
        "Parquet cut in half",
        "f.parquet",
        TABLE[: len(TABLE) // 2],
        f"f.parquet {UNSOUND} The file must end with PAR1 or PARE)",
    ),
    ("Parquet's first bytes", "f.parquet", b"PAR1", f"f.parquet {UNSOUND} {SHORT}"),
    (
        "Parquet garbage",
        "f.parquet",
        b"PAR1" + b"garbage" * 9 + b"PAR1",
        f"f.parquet {UNSOUND} {FOOTER}",
    ),
]

PERCENT = ": if these are percentages, use --percent"
COMMA = ": if that is a decimal comma, use --decimal ,"

# of the scores alone: a forecast of the outcomes has nothing against these
SCORES: list[tuple[str, str, bytes, str]] = [
    ("one column", "f.csv", b"y\n1\n", "f.csv has one column, 'y', and so none for the score"),
    (
        "no score",
        "f.csv",
        b"y,b,c\n1,2,3\n",
        "f.csv has no column whose name suggests the score: name it with --score; it has b, c",
    ),
    (
        "two scores of a name",
        "f.csv",
        b"y,p,p\n1,0.5,0.5\n",
        "f.csv has 2 columns 'p': rename all but one of them",
    ),
    ("NaN", "f.csv", b"y,p\n1,0.5\n1,nan\n", f"f.csv, line 3: {PROBABILITY} 'nan': {MISSING}"),
    ("NA", "f.csv", b"y,p\n1,0.5\n1,NA\n", f"f.csv, line 3: {PROBABILITY} 'NA': {MISSING}"),
    (
        "log-odds",
        "f.csv",
        b"y,p\n1,0.5\n1,-1.5\n",
        f"f.csv, line 3: {PROBABILITY} '-1.5': if these are log-odds, write 1 / (1 + exp(-score)) "
        "instead",
    ),
    ("text", "f.csv", b"y,p\n1,0.5\n1,high\n", f"f.csv, line 3: {PROBABILITY} 'high'"),
    (
        "more than 1",
        "f.csv",
        b"y,p\n1,0.5\n1,1.0000000001\n",
        f"f.csv, line 3: {PROBABILITY} '1.0000000001'",
    ),
    ("negative", "f.csv", b"y,p\n1,-0.25\n", f"f.csv, line 2: {PROBABILITY} '-0.25'"),
    (
        "percent",
        "f.csv",
        b"y,p\n1,50%\n",
        f"f.csv, line 2: {PROBABILITY} '50%'{PERCENT}",
    ),
    (
        "decimal comma",
        "f.csv",
        b"y;p\n1;0,5\n",
        f"f.csv, line 2: {PROBABILITY} '0,5'{COMMA}",
    ),
    ("nothing", "f.csv", b"y,p\n1,\n", f"f.csv, line 2: {PROBABILITY} nothing: {SKIPPED}"),
    ("long", "f.csv", b"y,p\n1," + b"9" * 500 + b"\n", f"f.csv, line 2: {PROBABILITY} '{'9' * 79}"),
    ("JSON list", "f.jsonl", b'{"y": 1, "p": [0.5]}\n', f"f.jsonl, line 1: {PROBABILITY} '[0.5]'"),
    (
        "Parquet NaN",
        "f.parquet",
        parquet(y=[1, 1], p=[0.5, float("nan")]),
        f"f.parquet, row 2: {PROBABILITY} nan: {MISSING}",
    ),
]


def run(command: str, file: str, *options: str, content: bytes | None = None) -> Result:
    arguments = [option.format(ending=Path(file).suffix) for option in COMMANDS[command]]
    return CliRunner().invoke(main, [command, file, *arguments, *options], input=content)


OR_SKIP = ": correct the row, or use --skip-bad to leave such rows out"


def check_refused(result: Result, file: str, message: str | None = None) -> str:
    """See that there is one line of error, this one if it is given, after what was guessed; return
    it."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    if lines[0].startswith(f"{file}: outcome "):
        del lines[0]
    (line,) = lines
    assert line.startswith("Error: ")
    line = line.removesuffix(OR_SKIP)  # which is said where nothing else is known to help
    assert message is None or line == f"Error: {message}"
    return line


def advice(command: str, message: str) -> str:
    """What a command says to do about an outcome that is not there."""
    if not message.endswith(("got nothing", IF_MISSING)):
        return ""
    before = "" if message.endswith(IF_MISSING) else ": "
    keep = "--unknown to keep such rows, or " if command == "recalibrate" else ""
    return f"{before}use {keep}--skip-bad to leave such rows out"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with outputs of earlier runs, to be in; at the end they must be as they were, and
    alone."""
    monkeypatch.chdir(tmp_path)
    for name in OLD:
        tmp_path.joinpath(name).write_text("old")
    return tmp_path


def check_untouched(folder: Path, *others: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted([*OLD, *others])
    assert all(folder.joinpath(name).read_text() == "old" for name in OLD)


@pytest.mark.parametrize(
    ("file", "content", "message"), [each[1:] for each in FILES], ids=[each[0] for each in FILES]
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(
    folder: Path, file: str, content: bytes, message: str
) -> None:
    Path(file).write_bytes(content)
    for command in COMMANDS:
        check_refused(run(command, file), file, message + advice(command, message))
    recalibrated = run("recalibrate", file, "--state", "state.json", "--complete")
    check_refused(recalibrated, file, message + advice("recalibrate", message))
    check_untouched(folder, file)


@pytest.mark.parametrize(
    ("file", "content", "message"), [each[1:] for each in SCORES], ids=[each[0] for each in SCORES]
)
def test_what_is_wrong_with_scores_is_said_in_a_line(
    folder: Path, file: str, content: bytes, message: str
) -> None:
    Path(file).write_bytes(content)
    for command in ["measure", "distance", "report", "recalibrate"]:
        check_refused(run(command, file), file, message)
    check_untouched(folder, file)
    assert run("forecast", file, "--outcome", "y").exit_code == 0


def test_weights_and_groups_that_are_none(folder: Path) -> None:
    Path("f.csv").write_text("y,p,w\n1,0.5,1\n0,0.5,-1\n")
    message = "f.csv, line 3: w (--weight) must be a weight, 0 or from 1e-100 to 1e+100, got '-1'"
    for command in ["measure", "distance", "report"]:
        check_refused(run(command, "f.csv", "--weight", "w"), "f.csv", message)
    Path("f.csv").write_text("y,p,w\n1,0.5,0\n0,0.5,0\n")
    for command in ["measure", "distance", "report"]:
        result = run(command, "f.csv", "--weight", "w")
        check_refused(result, "f.csv", "f.csv has no row of positive weight in column 'w'")
    Path("f.parquet").write_bytes(parquet(y=[1], p=[0.5], g=[[1]], b=[b"\xff"]))
    for column, kind in [("g", "List(Int64)"), ("b", "Binary")]:
        message = f"f.parquet has no names of groups in column '{column}': it is of type {kind}"
        for command in ["measure", "report", "recalibrate"]:
            check_refused(run(command, "f.parquet", "--by", column), "f.parquet", message)
    check_untouched(folder, "f.csv", "f.parquet")


def test_standard_input_is_called_so() -> None:
    check_refused(
        run("measure", "-", content=b"y,p\n1,2\n"),
        "standard input",
        f"standard input, line 2: {PROBABILITY} '2'",
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file(folder: Path, command: str) -> None:
    Path("inner").mkdir()
    check_refused(run(command, "inner"), "inner", "inner is a folder, not a file")
    check_refused(
        run(command, "nowhere.csv"), "nowhere.csv", "nowhere.csv does not exist: no such file"
    )
    check_refused(run(command, "old.csv/f"), "old.csv/f", "old.csv/f does not exist: no such file")
    check_untouched(folder, "inner")


@pytest.mark.parametrize("name", ["a\nb.csv", " a.csv", "\x1b[31m.csv", "\udce9.csv"])
def test_odd_names_of_files_stay_in_the_line(folder: Path, name: str) -> None:
    check_refused(run("measure", name), repr(name), f"{name!r} does not exist: no such file")
    try:
        Path(name).write_text("y,p\n1,2\n")
    except OSError:
        pytest.skip("there are no such names here")
    check_refused(run("measure", name), repr(name), f"{name!r}, line 2: {PROBABILITY} '2'")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_a_file_that_may_not_be_read(folder: Path) -> None:
    Path("f.csv").write_text(CSV)
    Path("f.csv").chmod(0)
    for command in COMMANDS:
        check_refused(run(command, "f.csv"), "f.csv", "f.csv may not be read: permission denied")
    check_untouched(folder, "f.csv")


def test_a_file_that_may_not_be_read_even_for_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str = "r", **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("truecast.files.source.Path.open", refuse)
    result = run("measure", "f.csv")
    monkeypatch.undo()
    check_refused(result, "f.csv", "f.csv may not be read: permission denied")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd.compress,
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_that_are_cut_or_damaged(folder: Path, kind: str) -> None:
    data, file = PACKERS[kind](CSV.encode()), f"f.csv.{kind}"
    for end in [6, 8, 12, len(data) // 3, len(data) // 2, len(data) - 9, len(data) - 1]:
        Path(file).write_bytes(data[:end])
        check_refused(
            run("measure", file), file, f"{file} is cut short: its compressed data ends too early"
        )
    damaged = [
        data[:6] + b"garbage " * 50,
        data + b"garbage",
        data[: len(data) // 2] + b"\xff" * 50 + data[len(data) // 2 :],
    ]
    for content in damaged:
        Path(file).write_bytes(content)
        for command in ["measure", "recalibrate"]:
            line = check_refused(run(command, file), file)
            assert line.startswith(f"Error: {file} is damaged: it cannot be unpacked (")
    check_untouched(folder, file)


@pytest.mark.parametrize("kind", PACKERS)
def test_a_second_packed_stream_with_a_wrong_first_byte_is_not_left_out(
    folder: Path, kind: str
) -> None:
    second = PACKERS[kind](b"1,0.5\n" * 50)
    Path("f.csv").write_bytes(PACKERS[kind](CSV.encode()) + bytes([second[0] ^ 1]) + second[1:])
    assert check_refused(run("measure", "f.csv"), "f.csv").startswith(
        "Error: f.csv is damaged: it cannot be unpacked ("
    )
    Path("f.csv").write_bytes(PACKERS[kind](CSV.encode()) + second)
    assert json.loads(run("measure", "f.csv", "--json").stdout)["rows"] == 550


def test_damage_after_rows_were_written_leaves_nothing(folder: Path) -> None:
    """The checksum at the end of a gzip is wrong: by then all rows are in the output that is being
    made."""
    data = bytearray(gzip.compress(CSV.encode()))
    data[-8] ^= 1
    Path("f.csv").write_bytes(data)
    check_refused(run("recalibrate", "f.csv"), "f.csv")
    check_refused(run("recalibrate", "f.csv", "--state", "state.json"), "f.csv")
    check_untouched(folder, "f.csv")


@pytest.mark.parametrize(
    "end",
    [5, 12, 40, len(TABLE) // 2, len(TABLE) - 9, len(TABLE) - 8, len(TABLE) - 4, len(TABLE) - 1],
)
def test_parquet_that_is_cut(folder: Path, end: int) -> None:
    Path("f.parquet").write_bytes(TABLE[:end])
    for content in (None, gzip.compress(TABLE[:end])):
        if content is not None:
            Path("f.parquet").write_bytes(content)
        line = check_refused(run("measure", "f.parquet"), "f.parquet")
        assert line.startswith("Error: f.parquet is not a whole and sound Parquet file (")
    check_untouched(folder, "f.parquet")


BAD_ROWS = {
    "f.csv": """y,p,g
1,0.5,a
0,2,b
1,0.5

1,0.5,"a"b
2,0.5,c
1,nan,d
1,0.5,5" pipe
0,0.25,"x

y"
1,,e
""",
    "f.jsonl": """{"y": 1, "p": 0.5}
{"y": 2, "p": 0.5}
[]
{"y": 1}

{"y": 1, "y": 0, "p": 0.5}
{"y": 1, "p": NaN}
{"y": true, "p": "0.5"}
{"p": 0.25, "y": 0, "z": 1}
{"y": 1, "p":
""",
}


@pytest.mark.alike("runs commands 42 times")
@pytest.mark.parametrize("block", [1, 30, 1 << 22])
@pytest.mark.parametrize("file", BAD_ROWS)
def test_bad_rows_that_are_skipped_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, block: int
) -> None:
    monkeypatch.setattr("truecast.files.records._BLOCK", block)
    Path(file).write_text(BAD_ROWS[file])
    for command in ["measure", "distance", "report"]:
        check_refused(run(command, file, "--skip-bad"), file)
        result = run(command, file, "--skip-bad", "--skip-bad")
        assert result.exit_code == 0, result.output
        assert f"{file}: 7 bad rows skipped, 3 kept\n" in result.stderr
    result = run("recalibrate", file, "--skip-bad", "--skip-bad", "--json")
    figures = json.loads(result.stdout[: result.stdout.rindex("}") + 1])
    assert (figures["rows"], figures["skipped"]) == (3, 7)


def test_nothing_but_bad_rows(folder: Path) -> None:
    Path("f.csv").write_text("y,p\n1,2\n1\n7,0.5\n")
    for command in ["measure", "distance", "report", "recalibrate"]:
        line = check_refused(
            run(command, "f.csv", "--skip-bad"),
            "f.csv",
            "f.csv has no good row: all 3 were skipped",
        )
        assert "3" in line
    check_untouched(folder, "f.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes here")
@pytest.mark.parametrize(
    "content", [CSV.encode(), gzip.compress(CSV.encode()), TABLE, b"y,p\n1,2\n"]
)
def test_a_pipe_is_read_as_a_file(folder: Path, content: bytes) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content))
    writer.start()
    result = run("measure", "pipe", "--json")
    writer.join()
    Path("f").write_bytes(content)
    expected = run("measure", "f", "--json")
    assert (result.exit_code, result.stdout) == (expected.exit_code, expected.stdout)
    assert result.stderr.replace("pipe", "f") == expected.stderr


def test_a_file_that_is_deleted_meanwhile_is_read_to_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("f.csv").write_text(CSV)
    expected = run("measure", "f.csv", "--json").stdout
    monkeypatch.setattr("truecast.files.records._BLOCK", 100)
    monkeypatch.setattr("truecast.files.guess", _deleting)
    assert run("measure", "f.csv", "--json").stdout == expected
    check_untouched(folder)


def _deleting(*arguments: object, **options: object) -> object:
    from truecast.files.columns import guess

    Path("f.csv").unlink()
    return guess(*arguments, **options)  # type: ignore[arg-type]


_MEASURED = """
import resource, sys
from truecast.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, file=sys.stderr)
"""
_MEBIBYTE = 1 << 20


def _bomb(*parts: tuple[bytes, int]) -> bytes:
    """A small file that unpacks to a large one: each part many times."""
    return b"".join(gzip.compress(part) * times for part, times in parts)


LONG = "the row is longer than 16 MiB: is this a text?"
BOMBS = {
    "row": ([(b"y,p\n1,0.5\n", 1), (b"x" * _MEBIBYTE, 1200)], f"f.csv, line 3: {LONG}"),
    "header": ([(b"x" * _MEBIBYTE, 1200)], f"f.csv, line 1: {LONG}"),
    "quoted": (
        [(b'y,p\n1,"', 1), (b"\n" * _MEBIBYTE, 1200)],
        "f.csv, line 2: a quoted field begins here and does not end",
    ),
    "blank": (
        [(b"y,p\n1,0.5\n", 1), (b"\n" * _MEBIBYTE, 1200)],
        "f.csv, line 3: there are blank lines for more than 16 MiB",
    ),
    "JSON": (
        [(b'{"y": 1, "p": 0.5}\n{"y": ', 1), (b"[" * _MEBIBYTE, 1200)],
        f"f.jsonl, line 2: {LONG}",
    ),
}


@pytest.mark.slow("reads a gigabyte")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes")
@pytest.mark.parametrize(("parts", "message"), BOMBS.values(), ids=BOMBS)
def test_a_gigabyte_in_one_line_is_refused_in_little_memory(
    folder: Path, parts: list[tuple[bytes, int]], message: str
) -> None:
    file = message.partition(",")[0]
    Path(file).write_bytes(_bomb(*parts))
    assert Path(file).stat().st_size < 3 * _MEBIBYTE
    # from a shell: a process is said to have used what the one has that it was made from, and this
    # one may be large
    shell = ["sh", "-c", '"$@"; exit $?', "sh"]
    command = [
        *shell,
        sys.executable,
        "-c",
        _MEASURED,
        "recalibrate",
        file,
        "-o",
        f"old{Path(file).suffix}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    *_, line, mebibytes = done.stderr.splitlines()
    assert (done.returncode, done.stdout, line) == (2, "", f"Error: {message}")
    assert int(mebibytes) < 400
    check_untouched(folder, file)
