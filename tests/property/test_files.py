"""Files in parts are what they are as a whole, however they are cut, packed and read: by the engine
or row by row."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.errors import FileError
from truecast.files import Names, open_table, rounds, tallies
from truecast.files.delimited import Delimited
from truecast.files.json_lines import JsonLines
from truecast.files.parquet import Parquet
from truecast.files.quotes import Quotes
from truecast.files.records import Records
from truecast.files.source import Chunk, OpenTable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCKS = st.sampled_from([1, 2, 3, 5, 8, 13, 40, 1 << 22])
SEPARATORS = st.sampled_from(",;\t|")
COLUMNS = ["y", "p", "group"]
PACKED = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with patch("truecast.files.records._BLOCK", size):
        yield


def pieces(separator: str) -> st.SearchStrategy[str]:
    """Letters of a text that is all quotes, separators and ends of lines; or fields and rows that
    are nearly right."""
    letters = ["a", "1", separator, '"', "\n", "\r\n", " ", "é", "\r"]
    fields = ["1", '"x"', f'"x{separator}y"', '"x\n"', '""""', '5"', '"a"b', '""', "", " "]
    rows = [
        separator.join(row)
        for row in (
            ["1", "0.5"],
            ["x", '"y\r\n"'],
            ["1"],
            ["1", "2", "3"],
            ['"', '"'],
            ['"q""', "z"],
        )
    ]
    return st.one_of(
        st.lists(st.sampled_from(letters), max_size=30).map("".join),
        st.lists(
            st.lists(st.sampled_from(fields), min_size=1, max_size=4).map(separator.join),
            max_size=8,
        ).map("\n".join),
        st.lists(st.sampled_from(rows), max_size=8).map("\n".join),
        st.lists(st.sampled_from(rows[:2]), max_size=8).map("\r\n".join),
    )


@st.composite
def delimited(draw: st.DrawFn) -> tuple[str, str, int]:
    """A separator, a text whose first row names columns, and how many they are."""
    separator, columns = draw(SEPARATORS), draw(st.integers(1, 3))
    header = separator.join(COLUMNS[:columns]) + draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    text = (
        header
        + draw(pieces(separator))
        + draw(st.sampled_from(["", "\n", "\r\n", "\n\n", "\n \n"]))
    )
    return separator if columns > 1 else ",", text, columns


def by_csv_module(
    text: str, separator: str
) -> tuple[list[tuple[int, list[str] | None]], int | None]:
    """The rows with their lines, None for those that the module refuses; and the line of a quote
    that is not closed."""
    hidden = re.sub("\r(?!\n)", "\0", text)  # which the module would take for the end of a line
    lines = re.sub(r"(\n[\0\r ]*)+\Z", "", hidden).removesuffix("\0").split("\n")
    rows: list[tuple[int, list[str] | None]] = []
    at = 0
    while at < len(lines):
        rest = [f"{line}\n" for line in lines[at:]]
        lenient = csv.reader([*rest, "after\n"], delimiter=separator)
        next(lenient)
        if lenient.line_num > len(rest):
            return rows, at + 1
        strict = csv.reader(rest[: lenient.line_num], delimiter=separator, strict=True)
        try:
            rows.append((at + 1, [field.replace("\0", "\r") for field in next(strict)]))
        except csv.Error:
            rows.append((at + 1, None))
        at += lenient.line_num
    return rows, None


def read(
    chunks: Iterator[Chunk],
) -> tuple[list[tuple[str, list[str | None]]], int, tuple[int, str, str] | None]:
    """The good rows with their places; how many are bad, and after how many good ones the first,
    where and why."""
    good: list[tuple[str, list[str | None]]] = []
    bad, first = 0, None
    for chunk in chunks:
        if chunk.bad.rows and not bad:
            before, *why = chunk.bad.first
            first = (len(good) + before, *why)
        bad += chunk.bad.rows
        good += [(chunk.place(at), list(row)) for at, row in enumerate(chunk.frame.iter_rows())]
        assert chunk.whole is None or len(chunk.whole) == len(chunk.frame)
    return good, bad, first


def delimited_table(text: str | bytes) -> Delimited:
    return Delimited(
        "f", io.BytesIO(text.encode() if isinstance(text, str) else text).read, lambda: None
    )


@pytest.mark.slow("tries many examples")
@settings(max_examples=400)
@given(delimited(), BLOCKS, st.sets(st.integers(0, 2), min_size=1), st.booleans())
# too short makes up for too long
@example((",", "y,p,group\n1,2,3\n1,2,3,4\n1,2\n1,2,3\n", 3), 1 << 22, {0}, False)
@example((",", 'y,p\n5" pipe,1\n6,2\n', 2), 1 << 22, {0, 1}, True)
@example((",", 'y,p\n"a\n\n', 2), 2, {0, 1}, True)
@example((",", "y,p\n1,2\n\n", 2), 1 << 22, {0}, True)
def test_delimited_text_is_read_as_by_the_csv_module(
    file: tuple[str, str, int], size: int, wanted: set[int], everything: bool
) -> None:
    separator, text, columns = file
    at = sorted(which for which in wanted if which < columns) or [0]
    ((_, header), *rows), opened = by_csv_module(text, separator)
    good: list[tuple[str, list[str | None]]] = []
    bad = []
    for line, found in rows:
        fields = [""] if found == [] and columns == 1 else found
        if fields is None:
            bad.append(
                (
                    len(good),
                    f"line {line}",
                    "after a quote that ends a field there must be a separator",
                )
            )
        elif len(fields) != columns:
            so_many = f"{columns} field{'' if columns == 1 else 's'} like the header"
            bad.append(
                (
                    len(good),
                    f"line {line}",
                    f"a row must have {so_many}, got {len(fields) or 'none'}",
                )
            )
        else:
            kept = fields if everything else [fields[which] for which in at]
            good.append((f"line {line}", [field or None for field in kept]))
    with blocks_of(size):
        table = delimited_table(text)
        assert table.columns == header == COLUMNS[:columns]
        assert table.separator == separator
        chunks = table.chunks([COLUMNS[which] for which in at], everything=everything)
        if opened is None:
            assert read(chunks) == (good, len(bad), bad[0] if bad else None)
        else:
            with pytest.raises(
                FileError, match=f"^f, line {opened}: a quoted field begins here and does not end$"
            ):
                read(chunks)


def row_ends(text: str, separator: str | None) -> set[int]:
    """Where rows end, letter by letter; None if nothing is quoted."""
    ends, begins, quoted = {0}, True, False
    at = 0
    while at < len(text):
        letter = text[at]
        if quoted:
            if text[at : at + 2] == '""':
                at += 1
            elif letter == '"':
                quoted = False
        elif letter == '"' and begins and separator is not None:
            quoted = True
        elif letter == "\n":
            ends.add(at + 1)
        begins = not quoted and letter in (separator, "\n")
        at += 1
    return ends


@pytest.mark.slow("tries many examples")
@given(
    SEPARATORS.flatmap(lambda mark: st.tuples(st.just(mark), pieces(mark))), BLOCKS, st.booleans()
)
def test_blocks_are_the_text_cut_between_rows(
    file: tuple[str, str], size: int, quoted: bool
) -> None:
    separator, body = file
    text = f"\n first\n{body}"
    rest = text[8:]
    data = rest.encode()
    ends = {len(rest[:end].encode()) for end in row_ends(rest, separator if quoted else None)}
    with blocks_of(size):
        records = Records(
            "f", io.BytesIO(text.encode()).read, quotes=Quotes(separator) if quoted else None
        )
        assert records.first() == (2, b"first")
        found: list[tuple[int, bytes]] = []
        refused = None
        try:
            found.extend(records)
        except FileError as error:
            refused = error.place
    at = 0
    for line, block in found:
        assert line == 3 + data.count(b"\n", 0, at)
        assert data.startswith(block, at)
        assert at in ends
        at += len(block)
    if refused is None:
        assert not data[at:].strip(b"\r\n ")
        assert len(data) in ends or not data.endswith(b"\n")
    else:
        assert refused == f"line {3 + data.count(b'%c' % 10, 0, max(ends))}"


def json_values() -> st.SearchStrategy[str]:
    odd = [
        "NaN",
        "1e400",
        "01",
        "{}",
        '{"y": 1}',
        "[1]",
        r'"\ud800"',
        r'"\ud83d\ude00"',
        r'"\u0079"',
        r'"\"y\":"',
        "",
        "1_0",
    ]
    plain = [
        "1",
        "0",
        "0.5",
        "1.0",
        "-0.0",
        "1e-3",
        "1e22",
        "null",
        "true",
        '"a"',
        '"y"',
        '""',
        '"é"',
        "12345678901234567890",
    ]
    return st.sampled_from(plain) | st.sampled_from(plain + odd)


def json_line() -> st.SearchStrategy[str]:
    key = st.sampled_from(['"y"', '"p"', '"group"', '"other"', r'"\u0079"', "'y'"])
    mark = st.sampled_from([":", " : "])
    entry = st.tuples(key, mark, json_values()).map("".join)
    whole = st.tuples(
        *(st.tuples(st.just(f'"{name}"'), mark, json_values()).map("".join) for name in COLUMNS)
    ).map(list)
    lines = (whole | st.lists(entry, max_size=4)).map(lambda entries: "{" + ",".join(entries) + "}")
    return (
        lines
        | whole.map(lambda entries: "{" + ",".join(entries) + "}")
        | st.sampled_from(["", " ", "[1]", "5", "{", "{} {}"])
    )


def by_json_module(line: str, wanted: list[str]) -> list[object] | None:
    """The values of a line; None if it is bad."""
    try:
        pairs = json.loads(line, object_pairs_hook=lambda pairs: ("object", pairs))
        values = [[value for name, value in pairs[1] if name == column] for column in wanted]
        json.dumps([value for each in values for value in each], ensure_ascii=False).encode()
    except (ValueError, TypeError, IndexError):
        return None
    if not isinstance(pairs, tuple) or any(len(each) > 1 for each in values):
        return None
    return [_comparable(each[0] if each else None) for each in values]


def _comparable(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return float("nan" if math.isnan(value) else value)
    return "nested" if isinstance(value, tuple | list) else value


def _as_read(text: str | None, like: object) -> object:
    if text is None or (isinstance(like, str) and like != "nested"):
        return text
    return "nested" if text[0] in "[{" else float(text)


@pytest.mark.slow("tries many examples")
@settings(max_examples=300)
@given(st.lists(json_line(), max_size=7), BLOCKS,
       st.sets(st.sampled_from(COLUMNS), min_size=1).map(sorted),
       st.sampled_from(["\n", "\r\n"]))  # fmt: skip
@example(['{"y":1,"y":null,"p":1,"group":1}', '{"p":1,"group":1}'], 1 << 22, ["y"], "\n")
@example(['{"y":1,"p":1,"group":1.0}', '{"y":1,"p":1,"group":1}', "{"], 1 << 22, COLUMNS, "\n")
def test_json_lines_are_read_as_by_the_json_module(
    lines: list[str], size: int, wanted: list[str], end: str
) -> None:
    text = end.join(['{"y": 1, "p": 0.5, "group": "a"}', *lines])
    expected = [by_json_module(line, wanted) for line in text.rstrip("\r\n ").split("\n")]
    with blocks_of(size):
        table = JsonLines("f", io.BytesIO(text.encode()).read, lambda: None)
        good, bad, first = read(table.chunks(wanted))
    kept = [(f"line {at}", values) for at, values in enumerate(expected, 1) if values is not None]
    assert [place for place, _ in good] == [place for place, _ in kept]
    for (_, got), (_, values) in zip(good, kept, strict=True):
        assert repr([_as_read(text, like) for text, like in zip(got, values, strict=True)]) == repr(
            values
        )
    assert bad == expected.count(None)
    assert first is None or first[1] == f"line {expected.index(None) + 1}"


@given(
    st.lists(
        st.sampled_from(
            ["1", "1.0", "0.1", "1e22", "-0.0", "1e-7", "12345678901234567890", '"1"', "true"]
        )
    )
)
def test_numbers_as_names_of_groups_are_the_same_on_both_paths(groups: list[str]) -> None:
    text = "".join(f'{{"y": 1, "p": 0.5, "group": {group}}}\n' for group in ["1", *groups])
    one = read(JsonLines("f", io.BytesIO(text.encode()).read, lambda: None).chunks(["group"]))
    two = read(
        JsonLines("f", io.BytesIO(f"{text}{{\n".encode()).read, lambda: None).chunks(["group"])
    )
    assert one[0] == two[0]
    assert (one[1], two[1]) == (0, 1)


NUMBERS = [
    "0", "1", "1.0", " 0.5 ", "1e-3", "nan", "inf", "", "½", "1_0", "0x1", "-0.0", "1.0000000001",
    "1e999999", "-1",
    "0e999999", "1e-999999", "+1", ".5", "1.", "0,5", "true", " FALSE", "\u00a01", "0.1", "5e-324",
    "--1", "1e",
]  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf", re.IGNORECASE | re.ASCII)


def _number(text: str, *, words: bool = False) -> float:
    word = {"true": 1.0, "false": 0.0}.get(text.strip().lower(), math.nan) if words else math.nan
    return float(text) if _NUMBER.fullmatch(text.strip()) else word


def _is_weight(number: float) -> bool:
    return number == 0 or 1e-100 <= number <= 1e100


def _first_fault(y: str, p: str, weight: str) -> str | None:
    rules = (
        ("y", y, _number(y, words=True) in (0, 1), "an outcome, 0 or 1"),
        ("p", p, 0 <= _number(p) <= 1, "a probability from 0 to 1"),
        (
            "weight (--weight)",
            weight,
            _is_weight(_number(weight)),
            "a weight, 0 or from 1e-100 to 1e+100",
        ),
    )
    broken = ((name, text, rule) for name, text, fine, rule in rules if not fine)
    return next(
        (
            f"{name} must be {rule}, got {repr(text) if text else 'nothing'}"
            for name, text, rule in broken
        ),
        None,
    )


@pytest.mark.slow("tries many examples")
@given(
    st.lists(st.tuples(*[st.sampled_from(["0", "1"]) | st.sampled_from(NUMBERS)] * 3), min_size=1),
    BLOCKS,
    st.integers(0, 2),
)
@example([("1", text, "1") for text in NUMBERS], 1 << 22, 2)
@example([(text, "1", "1") for text in NUMBERS], 1 << 22, 0)
def test_rounds_are_the_rows_that_keep_the_rules(
    rows: list[tuple[str, str, str]], size: int, skip: int
) -> None:
    text = "y;p;weight\n" + "".join(f"{';'.join(row)}\n" for row in rows)
    faults = [_first_fault(*row) for row in rows]
    good = [row for row, fault in zip(rows, faults, strict=True) if fault is None]
    bad = [(f"line {line}", fault) for line, fault in enumerate(faults, 2) if fault]
    found = []
    refused = None
    with blocks_of(size):
        try:
            found.extend(rounds(delimited_table(text), Names("y", ("p",), "weight"), skip_bad=skip))
        except FileError as error:
            refused = error.place, error.reason
    if bad and not skip:
        assert refused is not None
        assert refused[0] == bad[0][0]
        assert refused[1].startswith(bad[0][1])
        return
    if skip == 1 and len(bad) > len(good) > 0:
        assert refused is not None
        assert refused[1].startswith(
            f"has {len(bad)} bad rows of {len(rows)}, more than half ({': '.join(bad[0])}"
        )
    else:
        assert refused == (
            None if good else (None, f"has no good row: all {len(bad)} were skipped")
        )
    assert np.concatenate([part.y for part in found]).tolist() == [
        _number(y, words=True) for y, _, _ in good
    ]
    assert np.concatenate([part.p[0] for part in found]).tolist() == [
        _number(p) for _, p, _ in good
    ]
    assert [weight for part in found for weight in part.weight.tolist()] == [
        _number(weight) for *_, weight in good
    ]
    assert sum(part.skipped for part in found) == len(rows) - len(good)


ROUND = st.tuples(
    st.sampled_from([0, 1]), st.integers(0, 20).map(lambda k: k / 20) | st.floats(0, 1),
    st.sampled_from([0, 1, 2, 3, 0.5, 2.75]),
    st.sampled_from(["a", "b", "a,b", '"', "two\nlines", ""]),
)  # fmt: skip


def _csv(rows: list[tuple[object, ...]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([["y", "p", "weight", "group"], *rows])
    return text.getvalue().encode()


@pytest.mark.slow("tries many examples")
@example([(1, 0.5, 0.5, "a"), (1, 0.5, 2, "b")], 1 << 22, "weight", "group")
@example([(1, 0.5, 2, "b"), (1, 0.5, 0.5, "a")], 1, "weight", "group")
@given(
    st.lists(ROUND, min_size=1),
    BLOCKS,
    st.sampled_from([None, "weight"]),
    st.sampled_from([None, "group"]),
)
def test_tallies_of_parts_are_those_of_the_whole(
    rows: list[tuple[int, float, float, str]], size: int, weight: str | None, group: str | None
) -> None:
    assume(any(row[2] for row in rows))
    names = Names("y", ("p",), weight, group)
    with blocks_of(size):
        found = tallies("f", names, rounds(delimited_table(_csv(rows)), names))

    whole = all(isinstance(row[2], int) for row in rows)

    def tally(some: list[tuple[int, float, float, str]]) -> tc.Tally:
        y, p, w, _ = zip(*some, strict=True)
        weights = np.array(w, np.int64 if whole else np.float64)
        return tc.Tally.from_predictions(y, p, sample_weight=weights if weight else None)

    assert found.scores["p"] == tally(rows)
    if group:
        names_of_groups = dict.fromkeys(row[3] or None for row in rows)
        expected = {
            name: tally([row for row in rows if (row[3] or None) == name])
            for name in names_of_groups
        }
        assert found.groups["p"].keys() == expected.keys()
        for name, of_group in expected.items():  # an empty tally is not weighted
            assert (
                found.groups["p"][name] == of_group
                or found.groups["p"][name].total == of_group.total == 0
            )
    else:
        assert not found.groups
    assert (found.rows, found.skipped, found.pooled) == (len(rows), 0, False)


@pytest.mark.slow("tries many examples")
@given(st.lists(ROUND, min_size=1, max_size=40), st.integers(2, 8))
def test_pooled_tallies_keep_what_the_scores_are_made_of(
    rows: list[tuple[int, float, float, str]], most: int
) -> None:
    names = Names("y", ("p",))
    with (
        blocks_of(8),
        patch("truecast.files.tallies.MOST_FORECASTS", most),
        patch("truecast.files.tallies._LEAST_FORECASTS", most),
    ):
        found = tallies("f", names, rounds(delimited_table(_csv(rows)), names))
    y, p = [row[0] for row in rows], [row[1] for row in rows]
    tally, whole = found.scores["p"], tc.Tally.from_predictions(y, p)
    assert found.pooled == (len(whole.p) > most)
    assert tally.zeros.sum() == y.count(0)
    assert tally.ones.sum() == y.count(1)
    assert float((tally.p * (tally.zeros + tally.ones)).sum()) == pytest.approx(sum(p), abs=1e-9)
    if not found.pooled:
        assert tally == whole


def opened(content: bytes) -> tuple[OpenTable, list[tuple[str, list[str | None]]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f")
        path.write_bytes(content)
        with open_table(str(path)) as table:
            return table, read(table.chunks(table.columns))[0]


@pytest.mark.slow("tries many examples")
@settings(max_examples=40)
@given(st.lists(ROUND, min_size=1, max_size=5), st.sampled_from(list(PACKED)), SEPARATORS,
       st.booleans(), st.sampled_from(["\n", "\r\n"]), BLOCKS)  # fmt: skip
def test_compressions_separators_and_marks_of_byte_order_change_nothing(
    rows: list[tuple[int, float, float, str]],
    ending: str,
    separator: str,
    bom: bool,
    end: str,
    size: int,
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, delimiter=separator).writerows(
        [["y", "p", "weight", "group"], *rows]
    )
    content = text.getvalue().encode("utf-8-sig" if bom else "utf-8")
    half = len(content) // 2
    # one after the other, as `cat` makes it
    packed = PACKED[ending](content[:half]) + PACKED[ending](content[half:])
    with blocks_of(size):
        table, found = opened(packed)
    assert (table.columns, table.kind) == (["y", "p", "weight", "group"], "csv")
    assert [values for _, values in found] == [
        [str(value) or None for value in row] for row in rows
    ]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]), st.floats(0, 1) | st.none(), st.sampled_from(["a", None])
        )
    ),
    st.integers(1, 4),
    st.sampled_from(["", ".gz"]),
)
def test_parquet_is_read_as_it_was_written(
    rows: list[tuple[object, ...]], size: int, ending: str
) -> None:
    schema = {"y": pl.Int8, "p": pl.Float64, "^.*$": pl.String}
    buffer = io.BytesIO()
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(buffer, row_group_size=size)
    with patch("truecast.files.parquet._ROWS", size):
        table, found = opened(PACKED[ending](buffer.getvalue()))
    assert isinstance(table, Parquet)
    assert table.columns == list(schema)
    assert found == [(f"row {at}", list(row)) for at, row in enumerate(rows, 1)]
