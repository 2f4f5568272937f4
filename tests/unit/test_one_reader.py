"""One file is the same rounds, or the same refusal, for the command, for Python and for the
adapters."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import truecast as tc
from truecast.cli import main
from truecast.files import guess, open_table, rounds, tallies
from truecast.files.cells import as_option

duckdb = pytest.importorskip("duckdb")

from truecast.adapters import duckdb as of_duckdb  # noqa: E402
from truecast.adapters import polars as of_polars  # noqa: E402

RIGHT = tc.Tally.from_predictions([1, 0], [0.5, 0.25])
OUTCOME = "y must be an outcome, 0 or 1, got"
PROBABILITY = "p must be a probability from 0 to 1, got"

# What a file is called, what is in it, and where and why it is refused: None if it is RIGHT
TEXTS: dict[str, tuple[str, tuple[str | None, str] | None]] = {
    "commas": ("y,p\n1,0.5\n0,0.25\n", None),
    "semicolons": ("y;p\n1;0.5\n0;0.25\n", None),
    "tabs": ("y\tp\n1\t0.5\n0\t0.25\n", None),
    "bars": ("y|p\n1|0.5\n0|0.25\n", None),
    "blanks after commas": ("y, p\n1, 0.5\n0, 0.25\n", None),
    "blanks around": ("y,p\n 1 , 0.5 \n0,0.25\n", None),
    "blank lines at the end": ("y,p\n1,0.5\n0,0.25\n\n\n", None),
    "blank lines before": ("\n\ny,p\n1,0.5\n0,0.25\n", None),
    "a blank line within": (
        "y,p\n1,0.5\n\n0,0.25\n",
        ("line 3", "a row must have 2 fields like the header, got none"),
    ),
    "true": ("y,p\ntrue,0.5\nfalse,0.25\n", None),
    "TRUE": ("y,p\nTRUE,0.5\nFALSE,0.25\n", None),
    "True": ("y,p\nTrue,0.5\nFalse,0.25\n", None),
    "true and 0": ("y,p\ntrue,0.5\n0,0.25\n", None),
    "quoted numbers": ('y,p\n"1","0.5"\n"0","0.25"\n', None),
    "quoted names": ('"y","p"\n1,0.5\n0,0.25\n', None),
    "a quoted line end": ('z,y,p\n"a\nb",1,0.5\nc,0,0.25\n', None),
    "no line end at the end": ("y,p\n1,0.5\n0,0.25", None),
    "a short row": (
        "y,p,z\n1,0.5,3\n0,0.25\n",
        ("line 3", "a row must have 3 fields like the header, got 2"),
    ),
    "a long row": (
        "y,p\n1,0.5\n0,0.25,3\n",
        ("line 3", "a row must have 2 fields like the header, got 3"),
    ),
    "CRLF": ("y,p\r\n1,0.5\r\n0,0.25\r\n", None),
    "a byte order mark": ("\ufeffy,p\n1,0.5\n0,0.25\n", None),
    "a comment": ("# of May\ny,p\n1,0.5\n0,0.25\n", (None, "has no column 'y'")),
    "leading zeros": ("y,p\n01,00.5\n00,0.25\n", None),
    "exponents": ("y,p\n1,5e-1\n0,2.5E-1\n", None),
    "no digit before the point": ("y,p\n1,.5\n0,.25\n", None),
    "outcomes with decimals": ("y,p\n1.0,0.5\n0.0,0.25\n", None),
    "an empty outcome": ("y,p\n1,0.5\n,0.25\n", ("line 3", f"{OUTCOME} nothing")),
    "an empty score": ("y,p\n1,0.5\n0,\n", ("line 3", f"{PROBABILITY} nothing")),
    "nan": ("y,p\n1,nan\n0,0.25\n", ("line 2", f"{PROBABILITY} 'nan'")),
    "inf": ("y,p\n1,0.5\n0,inf\n", ("line 3", f"{PROBABILITY} 'inf'")),
    "null": ("y,p\nnull,0.5\n0,0.25\n", ("line 2", f"{OUTCOME} 'null'")),
    "NA": ("y,p\n1,0.5\n0,NA\n", ("line 3", f"{PROBABILITY} 'NA'")),
    "a third outcome": ("y,p\n1,0.5\n2,0.25\n", ("line 3", f"{OUTCOME} '2'")),
    "decimal commas": ("y;p\n1;0,5\n0;0,25\n", ("line 2", f"{PROBABILITY} '0,5'")),
    "percentages": ("y,p\n1,50%\n0,25%\n", ("line 2", f"{PROBABILITY} '50%'")),
    "words": ("y,p\nyes,0.5\nno,0.25\n", ("line 2", f"{OUTCOME} 'yes'")),
    "digits grouped": ("y,p\n1,0_5\n0,0.25\n", ("line 2", f"{PROBABILITY} '0_5'")),
    "names of other scripts": ("y,p,größe,名\n1,0.5,a,b\n0,0.25,c,d\n", None),
    "names that differ by case": ("y,p,P,Y\n1,0.5,7,7\n0,0.25,7,7\n", None),
    "a name twice": ("y,p,p\n1,0.5,0.1\n0,0.25,0.1\n", (None, "has 2 columns 'p'")),
    "another name twice": ("y,p,z,z\n1,0.5,1,2\n0,0.25,1,2\n", None),
    "no header": ("1,0.5\n0,0.25\n", ("line 1", "has 2 columns and no header: give it one")),
    "nothing": ("", (None, "is empty")),
    "late decimals": ("y,p\n1,0.5\n0,0.25\n" + "1,0\n" * 3000 + "1,0.125\n", None),
    "JSON": ('{"y":1,"p":0.5}\n{"y":0,"p":0.25}\n', None),
    "JSON of bools": ('{"y":true,"p":0.5}\n{"y":false,"p":0.25}\n', None),
    "JSON of text": ('{"y":"1","p":"0.5"}\n{"y":"0","p":"0.25"}\n', None),
    "JSON in another order": ('{"y":1,"p":0.5}\n{"p":0.25,"y":0}\n', None),
    "JSON null": ('{"y":null,"p":0.5}\n{"y":0,"p":0.25}\n', ("line 1", f"{OUTCOME} nothing")),
    "JSON without an entry": ('{"y":1,"p":0.5}\n{"y":0}\n', ("line 2", f"{PROBABILITY} nothing")),
    "JSON array": (
        '[{"y":1,"p":0.5},{"y":0,"p":0.25}]',
        ("line 1", "must be a JSON object, is an array"),
    ),
}
FRAMES: dict[str, tuple[dict[str, Any], tuple[str | None, str] | None]] = {
    "integers and doubles": ({"y": [1, 0], "p": [0.5, 0.25]}, None),
    "bools and floats": ({"y": [True, False], "p": pl.Series([0.5, 0.25], dtype=pl.Float32)}, None),
    "doubles": ({"y": [1.0, 0.0], "p": [0.5, 0.25]}, None),
    "a null outcome": ({"y": [1, None], "p": [0.5, 0.25]}, ("row 2", f"{OUTCOME} nothing")),
    "a null score": ({"y": [1, 0], "p": [0.5, None]}, ("row 2", f"{PROBABILITY} nothing")),
    "nan": ({"y": [1, 0], "p": [0.5, float("nan")]}, ("row 2", f"{PROBABILITY} nan")),
    "out of range": ({"y": [1, 0], "p": [0.5, 1.5]}, ("row 2", f"{PROBABILITY} 1.5")),
    "a third outcome": ({"y": [1, 2], "p": [0.5, 0.25]}, ("row 2", f"{OUTCOME} 2")),
    "text": (
        {"y": [1, 0], "p": ["0.5", "0.25"]},
        (None, "has no numbers in column 'p': it is of type String"),
    ),
    "words": (
        {"y": ["yes", "no"], "p": [0.5, 0.25]},
        (None, "has no numbers in column 'y': it is of type String"),
    ),
    "no such column": ({"y": [1, 0], "q": [0.5, 0.25]}, (None, "has no column 'p'")),
}
LATE = tc.Tally.from_predictions([1, 0] + [1] * 3001, [0.5, 0.25] + [0.0] * 3000 + [0.125])


def by_command(path: Path, weight: str | None) -> tc.Tally:
    """What the command counts, as `truecast.cli.measure.tallied` does."""
    with open_table(str(path)) as table:
        names = guess(table.name, table.columns, outcome="y", scores=["p"], weight=weight)
        return tallies(table.name, names, rounds(table, names)).scores["p"]


WAYS: dict[str, Callable[[Path, str | None], tc.Tally]] = {
    "command": by_command,
    "read_rounds": lambda path, weight: tc.read_rounds(
        path, outcome="y", score="p", weight=weight
    ).tally(),
    "arrays": lambda path, weight: of_arrays(
        tc.read_rounds(path, outcome="y", score="p", weight=weight)
    ),
    "duckdb": lambda path, weight: of_duckdb.tally(path, outcome="y", score="p", weight=weight),
    "duckdb by name": lambda path, weight: of_duckdb.tally(
        str(path), outcome="y", score="p", weight=weight
    ),
    "polars": lambda path, weight: of_polars.tally(path, outcome="y", score="p", weight=weight),
}


def of_arrays(file: tc.RoundsFile) -> tc.Tally:
    y, p, weight, _ = file.arrays()
    return tc.Tally.from_predictions(y, p, sample_weight=weight)


def check(
    way: str, path: Path, fault: tuple[str | None, str] | None, right: tc.Tally, weight: str | None
) -> None:
    if fault is None:
        assert WAYS[way](path, weight) == right
        return
    place, reason = fault
    with pytest.raises(tc.FileError) as caught:
        WAYS[way](path, weight)
    assert (caught.value.file, caught.value.place) == (str(path), place)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_the_same_to_all(name: str, way: str, tmp_path: Path) -> None:
    text, fault = TEXTS[name]
    path = tmp_path / ("f.jsonl" if name.startswith("JSON") else "f.csv")
    path.write_bytes(text.encode())
    check(way, path, fault, LATE if name == "late decimals" else RIGHT, None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FRAMES)
def test_parquet_is_the_same_to_all(name: str, way: str, tmp_path: Path) -> None:
    columns, fault = FRAMES[name]
    path = tmp_path / "f.parquet"
    pl.DataFrame(columns).write_parquet(path)
    check(way, path, fault, RIGHT, None)


WEIGHT = "must be a weight, 0 or from 1e-100 to 1e+100, got"
WEIGHTS: dict[str, tuple[list[float], tuple[str, str] | None]] = {
    "whole": ([2, 3], None),
    "whole doubles": ([2.0, 3.0], None),
    "real": ([0.5, 2.0], None),
    "some none": ([0.0, 3.0], None),
    "large": ([1e100, 1.0], None),
    "1e200": ([1.0, 1e200], ("2", WEIGHT)),
    "1e-200": ([1.0, 1e-200], ("2", WEIGHT)),
    "negative": ([1.0, -1.0], ("2", WEIGHT)),
    "infinite": ([1.0, float("inf")], ("2", WEIGHT)),
    "beyond exact sums": (
        [2**53 - 1, 2],
        ("2", "must sum to less than 9,007,199,254,740,992: divide the weights"),
    ),
}


@pytest.mark.alike("reads 180 files")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_the_same_to_all(name: str, ending: str, way: str, tmp_path: Path) -> None:
    weights, broken = WEIGHTS[name]
    if ending == ".jsonl" and name == "infinite":
        return  # JSON has no such number
    frame = pl.DataFrame({"y": [1, 0], "p": [0.5, 0.25], "w": weights})
    path = tmp_path / f"f{ending}"
    {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[
        ending
    ](path)
    if broken is None:
        counts = np.array(weights, np.int64 if name.startswith(("whole", "some")) else np.float64)
        check(
            way,
            path,
            None,
            tc.Tally.from_predictions([1, 0], [0.5, 0.25], sample_weight=counts),
            "w",
        )
        return
    row, rule = broken
    place = {".csv": f"line {int(row) + 1}", ".jsonl": f"line {row}", ".parquet": f"row {row}"}[
        ending
    ]
    option = "--weight" if way == "command" else "weight="
    check(way, path, (place, f"w ({option}) {rule}"), RIGHT, "w")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_without_rows_is_no_rounds_for_python_and_nothing_to_measure(
    ending: str, tmp_path: Path
) -> None:
    frame = pl.DataFrame(
        {"y": [], "p": [], "g": [], "w": []}, schema_overrides={"y": pl.Int64, "p": pl.Float64}
    )
    path = tmp_path / f"f{ending}"
    {".csv": frame.write_csv, ".parquet": frame.write_parquet}[ending](path)
    for way in ("read_rounds", "arrays", "duckdb", "polars"):
        assert WAYS[way](path, None) == tc.Tally()
    with pytest.raises(tc.FileError, match="has a header but no rows"):
        by_command(path, None)
    found = tc.read_rounds(path, weight="w", group="g").arrays()
    assert [len(column) for column in found if column is not None] == [0, 0, 0, 0]


# read_rounds


def test_columns_are_guessed_and_told_and_the_file_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("label,score,w,g\n1,0.5,1,a\n0,0.25,0.5,\n")
    file = tc.read_rounds(path, weight="w", group="g")
    assert (file.outcome, file.score, file.weight, file.group) == ("label", "score", "w", "g")
    for _ in range(2):
        y, p, weight, group = file.arrays()
        assert (y.tolist(), p.tolist()) == ([1, 0], [0.5, 0.25])
        assert weight is not None
        assert group is not None
        assert (weight.tolist(), group.tolist()) == ([1, 0.5], ["a", None])
    assert file.tally() == tc.Tally.from_predictions([1, 0], [0.5, 0.25], sample_weight=[1, 0.5])


def test_blocks_are_the_arrays_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("y,p,g\n" + "".join(f"{k % 2},{k / 1000},{k % 7}\n" for k in range(1000)))
    file: Any = tc.read_rounds(path, outcome="y", score="p", group="g")
    with patch("truecast.files.records._BLOCK", 500):
        blocks = list(file.blocks())
        assert len(blocks) > 10
        whole = file.arrays()
    assert np.concatenate([block.y for block in blocks]).tolist() == whole.y.tolist()
    assert np.concatenate([block.p for block in blocks]).tolist() == whole.p.tolist()
    assert [name for block in blocks for name in block.group] == whole.group.tolist()
    path.write_text(path.read_text() + "7,0.5,x\n")
    with pytest.raises(
        tc.FileError, match=re.escape("line 1002: y must be an outcome, 0 or 1, got '7'")
    ):
        list(file.blocks())


def test_rows_without_an_outcome_are_kept_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("y,p\n1,0.5\n,0.25\n")
    advice = (
        "use read_rounds(..., unknown=True) to keep such rows, or read_rounds(..., "
        "skip_bad=True) to leave such rows"
    )
    with pytest.raises(tc.FileError, match=re.escape(advice)):
        tc.read_rounds(path).arrays()
    kept = tc.read_rounds(path, unknown=True)
    assert np.isnan(kept.arrays().y).tolist() == [False, True]
    assert kept.tally() == tc.Tally.from_predictions([1], [0.5])
    assert tc.read_rounds(path, skip_bad=True).arrays().p.tolist() == [0.5]


def test_arguments_are_named_as_python_names_them(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("rain,p,q\nyes,0.5,1\n")
    for arguments, message in [
        ({}, "no column whose name suggests the outcome: name it with outcome="),
        ({"outcome": "rain", "group": "z"}, "has no column 'z' (group=)"),
        (
            {"outcome": "rain", "score": "p"},
            "if 'yes' counts as 1, use read_rounds(..., positive='yes')",
        ),
    ]:
        with pytest.raises(tc.FileError, match=re.escape(message)):
            tc.read_rounds(path, **arguments).tally()  # type: ignore[arg-type]
    for argument, value in [("decimal", ";"), ("positive", " "), ("positive", "nan")]:
        with pytest.raises(tc.InputError, match=f"{argument} must be"):
            tc.read_rounds(path, outcome="rain", **{argument: value})  # type: ignore[arg-type]


def test_without_polars_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['polars'] = None; import truecast as tc\n"
        "try: tc.read_rounds('f.csv')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "reading files needs Polars: pip install 'truecast[cli]'\n"


def test_duckdb_counts_parquet_without_polars(tmp_path: Path) -> None:
    for name, y in (("good", [1, 0]), ("bad", [1, 2])):
        pl.DataFrame({"y": y, "p": [0.5, 0.25]}).write_parquet(tmp_path / f"{name}.parquet")
    code = (
        "import sys; sys.modules['polars'] = None\nfrom truecast.adapters.duckdb import tally\n"
        "print(tally('good.parquet', outcome='y', score='p'))\n"
        "try: tally('bad.parquet', outcome='y', score='p')\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "Tally of 2 rounds at 2 forecasts\ny must be 0 or 1, got 2.0\n"


# The options of the command


def run(*words: object, text: str | bytes | None = None) -> Any:
    return CliRunner().invoke(main, [*map(str, words)], input=text)


FILES = {
    "plain.csv": ("y,p\n1,0.5\n0,0.25\n1,0.125\n", []),
    "words.csv": ("y,p\nyes,0.5\nNo ,0.25\nYES,0.125\n", ["--positive", "yes"]),
    "words.jsonl": (
        '{"y":"won","p":0.5}\n{"y":"lost","p":0.25}\n{"y":"won","p":0.125}\n',
        ["--positive", "Won"],
    ),
    "numbers.csv": ("y,p\n2,0.5\n1,0.25\n2.0,0.125\n", ["--positive", "2"]),
    "percent.csv": ("y,p\n1,50%\n0,25 %\n1,12.5%\n", ["--percent"]),
    "percent.jsonl": ('{"y":1,"p":50}\n{"y":0,"p":25}\n{"y":1,"p":12.5}\n', ["--percent"]),
    "commas.csv": ("y;p\n1;0,5\n0;0,25\n1;,125\n", ["--decimal", ","]),
    "quoted.csv": ('y,p\n1,"0,5"\n0,"0,25"\n1,"0,125"\n', ["--decimal", ","]),
    "commas.jsonl": (
        '{"y":1,"p":"0,5"}\n{"y":0,"p":0.25}\n{"y":1,"p":0.125}\n',
        ["--decimal", ","],
    ),
    "all.csv": (
        "y;p\nja;50%\nnein;25,0%\nja;12,5%\n",
        ["--positive", "ja", "--percent", "--decimal", ","],
    ),
}


def written(folder: Path, name: str) -> tuple[Path, list[str]]:
    text, options = FILES[name]
    path = folder / name
    path.write_text(text)
    return path, options


@pytest.mark.slow("runs every command that measures")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("words", [["measure", "--json"], ["distance", "--json"]])
def test_options_on_cells_are_taken_by_every_command_that_measures(
    name: str, words: list[str], tmp_path: Path
) -> None:
    path, options = written(tmp_path, name)
    plain, _ = written(tmp_path, "plain.csv")
    done = run(*words, path, *options)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == run(*words, plain).stdout


def as_arguments(options: list[str]) -> dict[str, Any]:
    rest = [option for option in options if option != "--percent"]
    named = dict(zip(rest[::2], rest[1::2], strict=True))
    return {name.removeprefix("--"): value for name, value in named.items()} | {
        "percent": "--percent" in options
    }


@pytest.mark.parametrize("name", FILES)
def test_python_has_the_same_options(name: str, tmp_path: Path) -> None:
    path, options = written(tmp_path, name)
    right = tc.Tally.from_predictions([1, 0, 1], [0.5, 0.25, 0.125])
    assert tc.read_rounds(path, **as_arguments(options)).tally() == right


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused_by_a_line_that_names_the_option(name: str, tmp_path: Path) -> None:
    path, options = written(tmp_path, name)
    given: list[str] = []
    for _ in range(4):
        done = run("measure", path, *given)
        if not options or done.exit_code == 0:
            break
        if name == "numbers.csv":
            return  # 1 and 2 are not words
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        given += line.partition(" use ")[2].split()
    assert done.exit_code == 0, done.stderr
    assert {word.lower() for word in given} == {word.lower() for word in options}


def test_a_third_value_is_refused_with_its_line_and_a_missing_one_is_missing() -> None:
    text = "y,p\nyes,0.5\nno,0.5\nmaybe,0.5\n"
    done = run("measure", "-", "--positive", "yes", text=text)
    said = "line 4: y must be 'yes' (--positive) or 'no', the other value so far, got 'maybe'"
    assert (done.exit_code, said in done.stderr) == (2, True)
    done = run("measure", "-", "--positive", "Yes", "--skip-bad", "--json", text=text)
    assert '"skipped": 1' in done.stdout
    done = run("measure", "-", "--positive", "yes", text="y,p\nyes,0.5\n,0.5\n")
    assert (
        "line 3: y must be 'yes' (--positive) or another value, got nothing: use --skip-bad"
        in done.stderr
    )
    for blank in ("' '", "nan"):
        done = run(
            "measure",
            "-",
            "--positive",
            "yes",
            text=f"y,p\nyes,0.5\n{blank.strip(chr(39))},0.5\nno,0.5\n",
        )
        assert (
            "line 3: y must be 'yes' (--positive) or 'no', the other value so far, got"
            in done.stderr
        )


def test_which_value_is_the_other_is_known_over_blocks(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("y,p\n" + "no,0.5\n" * 50 + "maybe,0.5\n" + "yes,0.5\n" * 50)
    with (
        patch("truecast.files.records._BLOCK", 20),
        pytest.raises(tc.FileError, match=r"line 52: y must be 'yes' .* or 'no', .*, got 'maybe'"),
    ):
        tc.read_rounds(path, positive="yes").tally()


def test_numbers_with_points_are_refused_beside_decimal_commas() -> None:
    """1.234 may be a thousand."""
    done = run("measure", "-", "--decimal", ",", text="y;p\n1;0.5\n")
    assert "got '0.5': by --decimal , decimals come after a comma" in done.stderr


def test_percentages_without_a_sign_are_recognised() -> None:
    done = run("measure", "-", text="y,p\n1,50\n0,0.5\n0,12\n")
    assert (
        "line 2: p must be a probability from 0 to 1, got '50': if these are percentages, "
        "use --percent" in done.stderr
    )
    done = run("measure", "-", "--percent", text="y,p\n1,50\n0,101\n")
    assert (
        "line 3: p must be a percentage from 0 to 100, got '101': correct the row, or"
        in done.stderr
    )
    done = run("measure", "-", text="y,p\n1,50\n0,0.5\n0,700\n")
    assert "got '50': correct the row" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "y,p\n1,30%\n0,0.4\n",
            "line 3: p must have a % sign in all rows or in none (--percent), "
            "got '0.4' here and one in line 2: write all of them alike",
        ),
        ("y,p\n1,0.4\n0,\n0,30 %\n", "line 4: p must have a % sign in all rows or in none "),
        ("y,p\n" + "1,40\n" * 50 + "0,30%\n", "got '30%' here and none in line 2"),
        ('{"y":1,"p":40}\n{"y":1,"p":"30%"}\n', "got '30%' here and none in line 1"),
    ],
)
def test_a_sign_in_some_cells_only_is_refused(text: str, said: str) -> None:
    with patch("truecast.files.records._BLOCK", 20):
        done = run("measure", "-", "--percent", "--skip-bad", text=text)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "positive"),
    [
        ("WAHR FALSCH", "WAHR"),
        ("FALSCH WAHR", "WAHR"),
        ("FALSCH", "wahr"),
        ("no sí", "sí"),
        ("No maybe", "maybe"),
        ("não sim", "sim"),
        ("nie tak", "tak"),
        ("faux vrai", "vrai"),
    ],
)
def test_the_likely_outcome_is_suggested(words: str, positive: str) -> None:
    text = "y,p\n" + "".join(f"{word},0.5\n" for word in words.split())
    done = run("measure", "-", text=text)
    assert done.stderr.endswith(
        f": if {positive!r} counts as 1, use {as_option('positive', positive)}\n"
    )


def test_either_outcome_is_suggested_if_nobody_knows() -> None:
    done = run("measure", "-", text="y,p\nsurvived,0.5\ndied,0.5\n")
    said = ": use --positive survived or --positive died, whichever counts as 1\n"
    assert done.stderr.endswith(said)


def test_the_note_for_excel_is_left_out() -> None:
    done = run("measure", "-", "--decimal", ",", "--json", text="sep=;\ny;p\n1;0,5\n0;0,2\n")
    assert done.exit_code == 0, done.output
    done = run("measure", "-", text="sep=;\ny;p\n1;2\n")
    assert "line 3: p must be a probability" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "p,y\n.1,1\n#DIV/0!,1\n",
            "got '#DIV/0!': correct the row, or use --skip-bad to leave such",
        ),
        ("p,y\n.1,1\n.2,Total 5\n", "got 'Total 5': correct the row, or use --skip-bad"),
        ("p,y\n.1,1\n.1,1,3\n", "header, got 3: correct the row, or use --skip-bad to leave"),
        ("p,p,y\n.1,.1,1\n", "has 2 columns 'p': rename all but one of them"),
        (b"p,y,\xe9\n.1,1,1\n", "in Excel, save the file as 'CSV UTF-8', or convert it by iconv"),
        ("p,y\n.1,1\n".encode("utf-16"), "convert it by iconv -f utf-16 -t utf-8"),
    ],
)
def test_what_to_do_is_said(text: str | bytes, said: str) -> None:
    done = run("measure", "-", text=text)
    assert done.exit_code == 2
    assert said in done.stderr


def test_parquet_with_words_and_text_is_read_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    words = pl.Series(["yes", "no", "yes"])
    for y in (words, words.cast(pl.Categorical)):
        pl.DataFrame({"y": y, "p": [50.0, 25.0, 12.5]}).write_parquet(path)
        done = run("measure", path)
        assert "has no numbers in column 'y'" in done.stderr
        assert done.stderr.endswith(": if 'yes' counts as 1, use --positive yes\n")
        done = run("measure", path, "--positive", "yes")
        assert done.stderr.endswith(
            "row 1: p must be a probability from 0 to 1, got 50.0: if these are "
            "percentages, use --percent\n"
        )
        right = tc.Tally.from_predictions([1, 0, 1], [0.5, 0.25, 0.125])
        assert tc.read_rounds(path, positive="yes", percent=True).tally() == right
    pl.DataFrame({"y": [1, 0], "p": ["50 %", "25%"]}).write_parquet(path)
    assert tc.read_rounds(path, percent=True).tally() == RIGHT


@pytest.mark.parametrize("word", ["a\x1b[31m", "a\u202eb", "x" * 31])
def test_no_word_is_named_that_would_do_harm_to_a_terminal(word: str) -> None:
    done = run("measure", "-", text=f"y,p\n{word},0.5\n")
    assert done.exit_code == 2
    assert word not in done.stderr.partition(" got ")[2].replace(repr(word), "")
    assert "--positive" not in done.stderr


def test_forecast_takes_words() -> None:
    done = run("forecast", "-", "--positive", "yes", text="rain\nyes\nno\nyes\n")
    plain = run("forecast", "-", text="rain\n1\n0\n1\n")
    assert (done.exit_code, done.stdout) == (0, plain.stdout)


# Bad rows and missing outcomes


BAD = "y,p\n1,0.5\n1,2\n0\n0,0.25\n1,x\n7,0.5\n1,3\n"


@pytest.mark.alike("runs commands 16 times")
@pytest.mark.parametrize(
    "words", [["measure"], ["distance"], ["report", "-o", "r.html"], ["recalibrate", "-o", "o.csv"]]
)
@pytest.mark.parametrize("block", [1, 1 << 22])
def test_most_rows_are_not_skipped_unless_asked_for_twice(
    words: list[str], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("truecast.files.records._BLOCK", block)
    Path("f.csv").write_text(BAD)
    refused = run(*words, "f.csv", "--skip-bad")
    reasons = (
        "line 3: p must be a probability from 0 to 1, got '2'; "
        "line 4: a row must have 2 fields like the header, got 1; "
        "line 6: p must be a probability from 0 to 1, got 'x'"
    )
    said = (
        f"f.csv has 5 bad rows of 7, more than half ({reasons}): to skip them nevertheless, use "
        "--skip-bad --skip-bad"
    )
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith(f"Error: {said}\n")
    assert [path.name for path in Path().iterdir()] == ["f.csv"]
    done = run(*words, "f.csv", "--skip-bad", "--skip-bad")
    assert done.exit_code == 0, done.stderr
    assert "5 bad rows skipped" in done.output
    Path("f.csv").write_text("y,p\n1,0.5\n1,2\n")
    assert run(*words, "f.csv", "--skip-bad").exit_code == 0  # half of them


def test_most_rows_are_not_skipped_in_python_either(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(BAD)
    for skip in (True, 1):
        with pytest.raises(tc.FileError, match=re.escape("use read_rounds(..., skip_bad=2)")):
            tc.read_rounds(path, skip_bad=skip).tally()
    assert tc.read_rounds(path, skip_bad=2).tally() == RIGHT


def test_a_state_is_not_touched_by_a_file_that_is_mostly_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("y,p\n1,0.5\n0,0.25\n")
    assert run("recalibrate", "a.csv", "-o", "a-out.csv", "--state", "s.json").exit_code == 0
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    Path("b.csv").write_text(BAD)
    assert (
        run("recalibrate", "b.csv", "-o", "b-out.csv", "--state", "s.json", "--skip-bad").exit_code
        == 2
    )
    Path("b.csv").unlink()
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("command", ["measure", "distance", "report", "forecast", "recalibrate"])
def test_a_missing_outcome_names_what_would_take_it(command: str, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "out.csv"] if command in ("report", "recalibrate") else []
    columns = ["--outcome", "y"] if command == "forecast" else []
    done = run(command, "-", *out, *columns, text="y,p\n1,0.5\n,0.5\n")
    unknown = "--unknown to keep such rows, or " if command == "recalibrate" else ""
    said = (
        f"line 3: y must be an outcome, 0 or 1, got nothing: use {unknown}--skip-bad to leave "
        "such rows out\n"
    )
    assert (done.exit_code, done.stderr.endswith(said)) == (2, True)


# Recalibrated files keep what is in them


@pytest.mark.slow("runs the command several times")
@pytest.mark.parametrize("name", FILES)
def test_recalibrate_keeps_cells_as_they_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, options = written(tmp_path, name)
    plain, _ = written(tmp_path, "plain.csv")
    out = Path(f"out{path.suffix}")
    done = run("recalibrate", path, "-o", out, "--report", "r.html", *options)
    assert done.exit_code == 0, done.stderr
    assert run("recalibrate", plain, "-o", "plain-out.csv").exit_code == 0
    recalibrated = [
        line.rpartition(",")[2] for line in Path("plain-out.csv").read_text().splitlines()
    ]
    lines = zip(path.read_text().splitlines(), out.read_text().splitlines(), strict=True)
    mark = ";" if ";" in path.read_text() else ","
    for at, (before, after) in enumerate(lines):
        if path.suffix == ".csv":
            assert after == f"{before}{mark}{_in_notation(recalibrated[at], options, mark)}"
        else:
            assert after.startswith(before.removesuffix("}"))
            number = _in_notation(recalibrated[at + 1], options)
            assert f'"recalibrated":{number}' in after.replace(" ", "")
    assert "ecalibrat" in Path("r.html").read_text()


@pytest.mark.parametrize("word", ["NA", "n/a", " null ", "nan", "None", ""])
def test_a_missing_outcome_is_never_the_other_word(word: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"y,p\nyes,0.5\n{word},0.4\nno,0.25\n")
    got = repr(word) if word else "nothing"
    with pytest.raises(
        tc.FileError, match=re.escape("line 3: y must be 'yes' (positive=) or")
    ) as e:
        tc.read_rounds(path, positive="yes").tally()
    assert f"got {got}" in str(e.value)
    assert "skip_bad=True" in str(e.value)
    assert tc.read_rounds(path, positive="yes", skip_bad=True).tally() == RIGHT


@pytest.mark.parametrize("options", [["--positive", "yes"], []])
@pytest.mark.parametrize("word", ["NA", "null", "nan", ""])
def test_rows_whose_outcome_is_missing_are_forecast(
    word: str, options: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "f.csv"
    yes, no = ("yes", "no") if options else ("1", "0")
    path.write_text(f"y,p\n{word},0.4\n{yes},0.5\n{no},0.25\n")
    command = ["recalibrate", str(path), "-o", "-", "--unknown", "--skip-bad", *options]
    done = CliRunner().invoke(main, command)
    assert done.stdout.splitlines()[1].startswith(f"{word},0.4,0.4")
    assert "1 row without an outcome: forecast, not learned from" in done.stderr
    refused = CliRunner().invoke(main, ["recalibrate", str(path), "-o", "-", *options])
    assert "use --unknown to keep such rows, or --skip-bad" in refused.stderr


def _in_notation(cell: str, options: list[str], mark: str = "") -> str:
    """A new cell as the options say that the file has its numbers; the name of the column stays."""
    if not cell[0].isdigit():
        return cell
    number = repr(100 * float(cell)) if "--percent" in options else cell
    if mark and "," in options:
        number = number.replace(".", ",")
    return f'"{number}"' if mark and mark in number else number
