"""Delimited text by the kernel, by its plain twin and by the engine: the same numbers and bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truecast import _core
from truecast.files import guess, open_table, rounds
from truecast.files.delimited import Delimited
from truecast.files.output import open_output
from truecast.files.rounds import Rounds
from truecast.files.source import Lines
from truecast.files.unfinished import part_path
from truecast.reference import delimited as plain

PRECISE = "8446744073709551615.25e-3"  # in other libraries the engine reads what has many digits


def kernel(
    block: bytes, separator: str, fields: int, columns: list[int]
) -> list[list[float]] | None:
    numbers = np.full((len(columns), block.count(b"\n") + 1), np.nan)
    rows = _core.read_numbers(block, separator, fields, np.array(columns, np.int64), numbers)
    return None if rows < 0 else numbers[:, :rows].tolist()


def precise() -> bool:
    return kernel(PRECISE.encode(), ",", 1, [0]) is not None


floats = st.floats(0, allow_infinity=False).filter(lambda x: x == 0 or x >= 2.0**-1022)
digits = st.text("0123456789", min_size=1, max_size=25)
cells = st.one_of(
    floats.map(repr),
    digits,
    st.tuples(digits, digits).map(".".join),
    st.tuples(digits, st.integers(-30, 30)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.sampled_from(["0", "1", "0.5", "0.123456789012345", "1E+2", "0.1e-5"]),
)
odd = st.one_of(cells, st.text("0159.eE+-, ;\rxé\t", max_size=6))


@st.composite
def blocks(draw: st.DrawFn, cell: st.SearchStrategy[str]) -> tuple[bytes, int]:
    fields = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cell, min_size=fields, max_size=fields), max_size=6))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(",".join(row) for row in rows) + draw(st.sampled_from(["", end]))
    return text.encode(), fields


@given(blocks(cells), st.data())
def test_plain_numbers_are_those_of_python(block: tuple[bytes, int], data: st.DataObject) -> None:
    text, fields = block
    columns = sorted(data.draw(st.sets(st.integers(0, fields - 1), min_size=1)))
    if precise():
        assert kernel(text, ",", fields, columns) == plain.read_numbers(text, ",", fields, columns)


@given(blocks(odd))
@example((b"1,\n2,3\n", 2))
@example((b"1,2,3\n4\n", 2))  # one too many makes up for one too few
@example((b"1\r\n\r\n2\r\n", 1))
@example((b"1e400\n", 1))
@example((b"1.\n", 1))
@example((b".5\n", 1))
@example((b"-0\n", 1))
def test_what_is_not_plain_is_left_to_others(block: tuple[bytes, int]) -> None:
    text, fields = block
    found = kernel(text, ",", fields, [fields - 1])
    assert found is None or found == plain.read_numbers(text, ",", fields, [fields - 1])
    if precise():
        assert found == plain.read_numbers(text, ",", fields, [fields - 1])


def test_numbers_have_room_or_are_refused() -> None:
    numbers = np.empty((1, 1))
    assert _core.read_numbers(b"1\n2\n", ",", 1, np.array([0]), numbers) == -1
    with pytest.raises(ValueError, match="each column"):
        _core.read_numbers(b"1\n", ",", 1, np.array([0, 0]), numbers)


@given(blocks(odd), blocks(odd))
def test_lines_are_joined(one: tuple[bytes, int], other: tuple[bytes, int]) -> None:
    block, more = one[0], other[0]
    room = np.empty(len(block) + len(more) + 2, np.uint8)
    size = _core.join_lines(block, more, ";", room)
    expected = plain.join_lines(block, more, ";")
    assert (None if size < 0 else room[:size].tobytes()) == expected
    with pytest.raises(ValueError, match="room"):
        _core.join_lines(block, more, ";", room[1:])


names = st.text("aé 0.;'#-", max_size=4)


@given(st.lists(st.tuples(names, st.floats(0, 1), names), min_size=1, max_size=5))
@settings(max_examples=50)
def test_lines_with_a_new_column_are_what_the_engine_writes(
    rows: list[tuple[str, float, str]],
) -> None:
    block = "".join(f"{a},{p!r},{b}\n" for a, p, b in rows).encode()
    new = pl.Series("new", [p / 3 for _, p, _ in rows])
    frame = pl.read_csv(block, has_header=False, infer_schema=False, quote_char=None)
    whole, alone = io.BytesIO(), io.BytesIO()
    frame.with_columns(new).write_csv(whole, include_header=False)
    new.to_frame().write_csv(alone, include_header=False)
    assert plain.join_lines(block, alone.getvalue(), ",") == whole.getvalue()


CONTENTS = {
    "plain": "a,p,y\n" + "x,0.25,1\nü,1e-3,0\n,0.1234567890123456789,1\n" * 50,
    "crlf": "a,p,y\r\n" + "x,0.25,1\r\nü,0.5,0\r\n" * 50,
    "words": "a,p,y\n" + "x,0.25,true\ny, 0.5 ,false\n" * 50,
    "quotes": 'a,p,y\n"x,1",0.25,1\n5" pipe,0.5,0\n',
    "blank lines": "a,p,y\nx,0.25,1\n\ny,0.5,0\n\n",
    "no line break": "a,p,y\nx,0.25,1\ny,0.5,0",
    "unquoted quote": 'a,p,y\n5" pipe,0.5,0\nx,.5,1\n',
}


CONTENTS_IN_BYTES = {name: text.encode() for name, text in CONTENTS.items()}
CONTENTS_IN_BYTES["byte order mark"] = b"a,p,y\n\xef\xbb\xbfq,0.5,1\n"
CONTENTS_IN_BYTES["Latin-1"] = b"a,p,y\n" + b"x,0.25,1\n" * 20 + b"\xfc,0.5,0\n"


@pytest.mark.alike("hypothesis for 18 layouts")
@pytest.mark.parametrize("content", CONTENTS_IN_BYTES.values(), ids=CONTENTS_IN_BYTES)
@pytest.mark.parametrize("percent", [False, True])
def test_rounds_are_the_same_by_either_reader(
    content: bytes, percent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truecast.files.records._BLOCK", 64)
    path = tmp_path / "rows.csv"
    path.write_bytes(content)

    def read() -> Iterator[Rounds]:
        with open_table(str(path)) as table:
            found = guess(table.name, table.columns, group="a", percent=percent)
            yield from rounds(table, found, whole=True, skip_bad=1)

    def written(parts: list[Rounds]) -> bytes:
        with open_table(str(path)) as table:
            output = open_output(tmp_path / "out.csv", table, ["new"])
            for part in parts:
                output.write(part, part.p[0][:, None] / 3)
            output.finish()
            text = part_path(tmp_path / "out.csv").read_bytes()
            output.discard()
        return text

    def joined(parts: list[Rounds]) -> tuple[object, ...]:
        frames = [part.whole[:] for part in parts if isinstance(part.whole, Lines | pl.DataFrame)]
        places = [part.place(row) for part in parts for row in range(len(part))]
        y, p = ([x.hex() for part in parts for x in of(part)] for of in (_outcomes, _scores))
        groups = [name for part in parts if part.group is not None for name in part.group]
        return y, p, places, pl.concat(frames).rows(), groups

    ours = [*read()]
    monkeypatch.setattr(Delimited, "_plain", lambda *_: None)
    theirs = [*read()]
    assert joined(ours) == joined(theirs)
    assert written(ours) == written(theirs)


def test_a_value_is_written_for_every_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"p,y\n0.5,1\n0.5,0\n")
    with open_table(str(path)) as table:
        (part,) = rounds(table, guess(table.name, table.columns), whole=True)
        output = open_output(tmp_path / "out.csv", table, ["new"])
        with pytest.raises(RuntimeError, match="as many values as lines"):
            output.write(part, np.array([[0.5]]))
        output.discard()


def _outcomes(part: Rounds) -> list[float]:
    return [float(y) for y in part.y]


def _scores(part: Rounds) -> list[float]:
    return [float(p) for p in part.p[0]]
