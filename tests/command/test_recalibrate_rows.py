"""`truecast recalibrate --state`; no row is learned from twice, and none is cut short."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from truecast.cli import main
from truecast.errors import FileError
from truecast.files import recalibration, records, source
from truecast.files.prints import Comparison, Prints
from truecast.files.rounds import Rounds

RNG = np.random.default_rng(11)
FRAME = pl.DataFrame(
    {
        "y": RNG.integers(0, 2, 3000),
        "p": RNG.random(3000).round(4),
        "place": RNG.choice(["A", "B"], 3000),
    }
)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def command(ending: str = ".csv", *options: str) -> list[str]:
    return ["recalibrate", "log" + ending, "-o", "out" + ending, "--state", "s.json", *options]


def learned() -> int:
    return tc.Recalibrator.from_json(Path("s.json").read_text()).rounds


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in ("y,p", *rows))


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 12)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 400)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


# --- a last line that is half written


@pytest.mark.alike("runs the command 60 times")
@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize(
    ("ending", "before", "after"),
    [
        (".csv", b"y,p\n1,0.5\n0,0.25", b"y,p\n1,0.5\n0,0.2512\n1,0.7\n"),
        (".csv", b"y,p\r\n1,0.5\r\n0,0.2", b"y,p\r\n1,0.5\r\n0,0.2512\r\n1,0.7\r\n"),
        (
            ".csv",
            b'y,p,note\n1,0.5,a\n0,0.2512,"he',
            b'y,p,note\n1,0.5,a\n0,0.2512,"he said"\n1,0.7,b\n',
        ),
        (
            ".jsonl",
            b'{"y":1,"p":0.5}\n{"y":0,"p":0.2',
            b'{"y":1,"p":0.5}\n{"y":0,"p":0.2512}\n{"y":1,"p":0.7}\n',
        ),
        (
            ".jsonl",
            b'{"y":1,"p":0.5}\n{"y":0}',
            b'{"y":1,"p":0.5}\n{"y":0,"p":0.2512}\n{"y":1,"p":0.7}\n',
        ),
    ],
)
def test_a_half_written_line_waits_for_the_next_run(
    ending: str, packed: str, before: bytes, after: bytes
) -> None:
    ending += packed
    Path("log" + ending).write_bytes(PACK[packed](before))
    done = run(*command(ending))
    line = 2 if ending.startswith(".jsonl") else 3
    said = f"log{ending}, line {line}: no line break yet, left out (--complete takes it)\n"
    assert (done.exit_code, done.stderr.endswith(said), learned()) == (0, True, 1)
    assert json.loads(run(*command(ending, "--json")).stdout)["held"] == f"line {line}"
    Path("log" + ending).write_bytes(PACK[packed](after))
    done = run(*command(ending))
    assert (done.exit_code, learned()) == (0, 3)
    assert "1 row recalibrated before; 2 new\n" in done.stdout
    r = tc.Recalibrator()
    assert saved_hint() == (r.forecast_many([0.5, 0.2512, 0.7], [1, 0, 1]), r.to_json())[1]


def saved_hint() -> str:
    return tc.Recalibrator.from_json(Path("s.json").read_text()).to_json()


def test_complete_takes_the_last_line_and_so_does_a_run_without_a_state() -> None:
    Path("log.csv").write_text("y,p\n1,0.5\n0,0.25")
    assert run("recalibrate", "log.csv", "-o", "plain.csv").exit_code == 0
    assert len(pl.read_csv("plain.csv")) == 2
    done = run(*command(".csv", "--complete"))
    assert (done.exit_code, learned(), "left out" in done.stderr) == (0, 2, False)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_file_of_nothing_but_a_half_written_row_is_refused(ending: str) -> None:
    Path("log" + ending).write_text("y,p\n1,0.5" if ending == ".csv" else '{"y":1,"p":0.5}')
    done = run(*command(ending))
    said = (
        f"has no row yet but line {2 if ending == '.csv' else 1}, which has no line break: if "
        "it is complete, use"
    )
    assert (done.exit_code, said in done.stderr, Path("s.json").exists()) == (2, True, False)
    assert run(*command(ending, "--complete")).exit_code == 0


def test_an_open_quote_over_several_lines_is_no_half_written_line() -> None:
    Path("log.csv").write_text('y,p,note\n1,0.5,"a\n0,0.25,b\n1,0.7,c\n')
    done = run(*command())
    assert (
        done.exit_code,
        "line 2: a quoted field begins here and does not end" in done.stderr,
    ) == (2, True)


# --- rows of the last run, changed


@pytest.mark.slow("starts the command many times")
def test_the_first_row_that_differs_is_named_with_what_it_was() -> None:
    rows = FRAME.rows()
    for at, change in (
        (0, {"p": 0.5}),
        (1, {"y": 1 - rows[1][0]}),
        (1500, {"place": "C"}),
        (2999, {"p": 0.123}),
    ):
        for path in Path().iterdir():
            path.unlink()
        FRAME.write_csv("log.csv")
        assert run(*command(".csv", "--by", "place")).exit_code == 0
        before = {
            path.name: path.read_bytes() for path in Path().iterdir() if path.name != "log.csv"
        }
        row = dict(zip(FRAME.columns, rows[at], strict=True)) | change
        pl.concat(
            [FRAME[:at], pl.DataFrame([row], schema=FRAME.schema), FRAME[at + 1 :], FRAME[:5]]
        ).write_csv("log.csv")
        done = run(*command(".csv", "--by", "place"))
        assert done.exit_code == 2
        new = f"y {row['y']}, p {row['p']}, place '{row['place']}'"
        old = f"y {rows[at][0]}, p {rows[at][1]}, place '{rows[at][2]}'"
        said = (
            f"Error: log.csv, line {at + 2}: here is {new} where the last run read {old}; no "
            "row is learned twice"
        )
        assert done.stderr.splitlines()[-1].startswith(said)
        assert "--again" in done.stderr
        assert {
            path.name: path.read_bytes() for path in Path().iterdir() if path.name != "log.csv"
        } == before


def test_without_its_output_the_row_or_the_stretch_is_named() -> None:
    for rows, at, said in (
        (900, 700, "line 702: the row here is not what the last run read"),
        (3000, 700, "differs from what the last run read, first between line 702 and line 705"),
        (3000, 2999, "differs from what the last run read, first between line 2998 and line 3001"),
    ):
        FRAME[:rows].write_csv("log.csv")
        assert run(*command(".csv", "--again")).exit_code == 0
        Path("out.csv").unlink()
        FRAME[:rows].with_columns(
            p=pl.when(pl.int_range(rows) == at).then(0.5).otherwise("p")
        ).write_csv("log.csv")
        done = run(*command())
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_that_became_shorter_is_refused(rows: int, ending: str) -> None:
    for many in (5, rows):
        frame = FRAME[:many].select("y", "p")
        frame.write_csv("log.csv") if ending == ".csv" else frame.write_parquet("log.parquet")
        done = run(*command(ending))
    said = (
        f"log{ending} has only {rows} of the 5 rows that the last run read; no row is learned twice"
    )
    assert (done.exit_code, said in done.stderr, learned()) == (2, True, 5)
    Path("out" + ending).unlink()
    assert said in run(*command(ending)).stderr


def test_a_tiny_log_whose_row_was_corrected_is_refused() -> None:
    Path("log.csv").write_text(lines("1,0.5", "0,0.25", "1,0.7"))
    assert run(*command()).exit_code == 0
    for corrected in (
        ("1,0.5", "0,0.2512", "1,0.7"),
        ("0,0.5", "0,0.25", "1,0.7"),
        ("1,0.5", "0,0.25", "1,0.75", "1,1"),
    ):
        Path("log.csv").write_text(lines(*corrected))
        done = run(*command())
        assert (done.exit_code, "where the last run read" in done.stderr, learned()) == (2, True, 3)


@pytest.mark.parametrize("dropped", [1, 40, 2000])
def test_a_log_that_has_lost_its_oldest_rows_is_refused(dropped: int) -> None:
    FRAME.write_csv("log.csv")
    assert run(*command()).exit_code == 0
    FRAME[dropped:].write_csv("log.csv")
    done = run(*command())
    assert (done.exit_code, "line 2: here is" in done.stderr, learned()) == (2, True, 3000)


def test_again_takes_all_rows_for_new() -> None:
    FRAME.write_csv("log.csv")
    assert run(*command()).exit_code == 0
    for rows in (2000, 3000):
        FRAME[:rows].write_csv("log.csv")
        assert run(*command(".csv", "--again")).exit_code == 0
    assert learned() == 8000
    assert len(pl.read_csv("out.csv")) == 3000


def pairs(options: list[str]) -> dict[str, str]:
    return dict(zip_longest(options[::2], options[1::2], fillvalue=""))


@pytest.mark.alike("runs the command 28 times")
@pytest.mark.parametrize("more", [0, 200])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--positive", "0"], "--outcome and --positive must be as before"),
        (["--outcome", "z"], "--outcome and --positive must be as before"),
        (["--percent"], "--score and --percent must be as before"),
        (["--score", "q"], "--score and --percent must be as before"),
        (
            ["--score", "q", "--positive", "0"],
            "--outcome and --positive, --score and --percent must be as before",
        ),
        (["--by", "other"], "--by must be as before"),
        (["--by", "other", "--score", "q"], "--score and --percent, --by must be as before"),
    ],
)
def test_the_same_file_read_in_another_way_is_refused(
    options: list[str], said: str, more: int
) -> None:
    rows = 900  # several blocks
    rng = np.random.default_rng(2)
    frame = FRAME[: rows + more].with_columns(
        q=pl.Series(rng.random(rows + more).round(4)),
        z=pl.Series(rng.integers(0, 2, rows + more)),
        other=pl.Series(rng.choice(["A", "B"], rows + more)),
    )
    frame[:rows].write_csv("log.csv")
    first = ["--outcome", "y", "--score", "p", *(["--by", "place"] if "--by" in options else [])]
    assert run(*command(".csv", *first)).exit_code == 0
    frame.write_csv("log.csv")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    words = [word for pair in (pairs(first) | pairs(options)).items() for word in pair if word]
    done = run(*command(".csv", *words))
    assert (
        done.exit_code,
        f"in another way: {said}; if all rows are new, use --again" in done.stderr,
    ) == (2, True)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
    assert run(*command(".csv", *words, "--again")).exit_code == 0


@pytest.mark.parametrize(
    ("before", "now"),
    [
        # no outcome tells anything
        (lines(*["0,0.1", "0,0.2"] * 500), lines(*["0,0.35", "0,0.42"] * 500)),
        # nor does one change
        (lines(*["0,0.1"] * 500, *["1,0.8"] * 500), lines(*["0,0.3"] * 500, *["1,0.4"] * 500)),
        (lines("1,0.41", "0,0.27", "1,0.83"), lines("1,0.92", "0,0.35", "1,0.64")),  # nor do few
        # nor does a score that is always the same
        (lines(*["0,0.1", "1,0.1"] * 5), lines(*["1,0.1", "1,0.1"] * 5)),
    ],
)
def test_what_chance_explains_is_not_taken_for_another_way_to_read(before: str, now: str) -> None:
    Path("log.csv").write_text(before)
    assert run(*command()).exit_code == 0
    Path("log.csv").write_text(now)
    done = run(*command())
    assert (done.exit_code, learned()) == (0, before.count("\n") + now.count("\n") - 2), done.stderr


@pytest.mark.parametrize("option", ["--again", "--complete"])
def test_what_is_about_a_state_needs_one(option: str) -> None:
    Path("log.csv").write_text(lines("1,0.5"))
    done = run("recalibrate", "log.csv", "-o", "out.csv", option)
    assert (done.exit_code, f"{option} needs --state" in done.stderr) == (2, True)


# --- days that are alike are other days


def days(kind: str, rows: int, rng: np.random.Generator) -> pl.DataFrame:
    if kind == "fine":
        p = rng.random(rows).round(6)
    elif kind == "coarse":
        p = rng.integers(0, 11, rows) / 10
    elif kind == "base rate":
        p = np.full(rows, 0.02)
    else:  # half of the day is quiet
        p = np.where(np.arange(rows) < rows // 2, 0.0, rng.random(rows).round(2))
    return pl.DataFrame({"y": (rng.random(rows) < p).astype(int), "p": p})


@pytest.mark.slow("compares thousands of files")
@pytest.mark.parametrize("kind", ["fine", "coarse", "base rate"])
def test_other_days_are_seldom_taken_for_the_same(kind: str) -> None:
    """Less than once in 1,000 times, in files of all sizes: the chance that is promised, without
    any that was tuned."""
    rng, refused, games = np.random.default_rng(7), 0, 0
    for rows in (1, 2, 3, 5, 10, 100, 1000):
        for _ in range(400 if rows < 1000 else 50):
            before, now = (prints_of(days(kind, rows, rng)) for _ in range(2))
            refused += compared(before[0], now[1])
            games += 1
    assert refused <= games / 100


def prints_of(frame: pl.DataFrame) -> tuple[Prints, Rounds]:
    part = Rounds(frame["y"].cast(pl.Float64).to_numpy(), (frame["p"].to_numpy(),))
    prints = Prints()
    prints.add(part)
    return Prints.load(prints.record(), len(part)), part


def compared(before: Prints, part: Rounds) -> bool:
    comparison = Comparison(before)
    comparison.add(part.first(before.rows))
    return (comparison.shares or comparison.apart) and not all(comparison.same)


def test_quiet_halves_of_days_do_not_make_them_the_same_elsewhere() -> None:
    rng = np.random.default_rng(3)
    frame = days("quiet", 2000, rng)
    comparison = Comparison(prints_of(frame)[0])
    comparison.add(prints_of(pl.concat([frame[:500], days("fine", 1500, rng)]))[1].after(300))
    assert not comparison._elsewhere.found


@pytest.mark.parametrize("rows", [3, 10, 1023, 1024, 1025, 5000, 70_000])
def test_prints_do_not_depend_on_the_parts_and_find_a_changed_row(rows: int) -> None:
    rng = np.random.default_rng(rows)
    frame = days("fine", rows, rng)
    before, part = prints_of(frame)
    for cut in (1, rows // 2, rows - 1):
        again = Prints()
        again.add(part.first(cut))
        again.add(part.after(cut))
        assert again.record() == {**before.record(), "chance": again.chance}
    for at in {0, rows // 3, rows - 1}:
        p = part.p[0].copy()
        p[at] = 0.987654321
        comparison = Comparison(before)
        comparison.add(Rounds(part.y, (p,)))
        assert comparison.same == (True, False, True)
        assert comparison.shares
        assert comparison.first <= at < comparison.first + comparison.step


# --- a file that shrinks while it is read


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_file_that_shrinks_while_it_is_read_is_an_error(
    packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FRAME.write_csv().encode()
    Path("log.csv" + packed).write_bytes(PACK[packed](text))
    path = Path("log.csv" + packed)
    half = path.stat().st_size // 2
    read = source._Reader.readinto

    def shrinking(self: source._Reader, buffer: memoryview) -> int:
        count = read(self, buffer[:2000])
        if path.stat().st_size > half:
            with path.open("rb+") as file:
                file.truncate(half)
        return count

    monkeypatch.setattr(source._Reader, "readinto", shrinking)
    monkeypatch.setattr("io.DEFAULT_BUFFER_SIZE", 1)
    done = run(*command(".csv" + packed))
    said = (
        f"Error: log.csv{packed} became shorter while it was read: read it when nobody writes to it"
    )
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, said)
    assert not Path("s.json").exists()
    assert not Path("out.csv" + packed).exists()


def test_a_file_that_grows_while_it_is_read_and_one_read_from_its_middle_are_no_error() -> None:
    Path("log.csv").write_text(lines("1,0.5", "0,0.25"))
    with Path("log.csv").open("rb") as raw:
        raw.seek(4)
        reader = source._Reader(raw, "log.csv", None)
        with Path("log.csv").open("a") as more:
            more.write("1,0.7\n")
        assert io.BufferedReader(reader).read() == b"1,0.5\n0,0.25\n1,0.7\n"
    with Path("log.csv").open("rb") as raw:
        reader = source._Reader(raw, "log.csv", None)
        Path("log.csv").write_text("y,p\n")
        with pytest.raises(FileError, match="became shorter"):
            io.BufferedReader(reader).read()


# --- the order of time


TIMES = {
    "numbers": ["1", "2.5", "2.5", "10", "1e3"],
    "dates": ["2025-01-31", "2025-02-01", "2025-02-01", "2025-02-01T00:00:01", "2025-10-01 12:00"],
    "zones": [
        "2025-02-01T01:00+02:00",
        "2025-02-01T00:30Z",
        "2025-02-01T00:30:00.5Z",
        "2025-02-01T00:31Z",
        "2026-01-01T00:00Z",
    ],
}


def timed(times: list[str], rows: slice = slice(None)) -> str:
    found = [f"{k % 2},0.{k + 1},{time}" for k, time in enumerate(times)][rows]
    return "y,p,when\n" + "".join(f"{row}\n" for row in found)


@pytest.mark.parametrize("kind", TIMES)
def test_rows_out_of_order_are_refused_or_sorted(kind: str) -> None:
    times = TIMES[kind]
    Path("log.csv").write_text(timed(times))
    assert run("recalibrate", "log.csv", "-o", "sound.csv", "--time", "when").exit_code == 0
    rows = timed(times).splitlines(keepends=True)
    Path("log.csv").write_text("".join([rows[0], rows[5], *rows[1:5]]))
    done = run("recalibrate", "log.csv", "-o", "out.csv", "--time", "when")
    said = (
        f"log.csv, line 3: when {times[0]!r} is before {times[4]!r} in line 2: sort the file, "
        "or use --sort"
    )
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not Path("out.csv").exists()
    assert run("recalibrate", "log.csv", "-o", "out.csv", "--time", "when", "--sort").exit_code == 0
    # rows of one time stay in order
    assert Path("out.csv").read_bytes() == Path("sound.csv").read_bytes()


@pytest.mark.parametrize("kind", TIMES)
def test_rows_earlier_than_the_last_learned_are_refused(kind: str) -> None:
    times = TIMES[kind]
    Path("log.csv").write_text(timed(times, slice(1, 4)))
    assert run(*command(".csv", "--time", "when")).exit_code == 0
    Path("log.csv").write_text(timed(times, slice(0, 1)))
    done = run(*command(".csv", "--time", "when"))
    assert (done.exit_code, "line 2: when (--time) must not be before" in done.stderr) == (2, True)
    Path("log.csv").write_text(timed(times, slice(4, 5)))
    assert run(*command(".csv", "--time", "when")).exit_code == 0
    assert learned() == 4


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["1,0.5,", "0,0.5,3"],
            "line 2: when (--time) must be a number, or a date and time such as",
        ),
        (
            ["1,0.5,3", "0,0.5,soon"],
            "line 3: when (--time) must be a number, or a date and time such as",
        ),
        (
            ["1,0.5,3", "0,0.5,nan"],
            "line 3: when (--time) must be a number, or a date and time such as",
        ),
        (
            ["1,0.5,2025-01-01", "0,0.5,2025-01-01T00:00Z"],
            "must be of one kind, times without a time zone as before",
        ),
        (["1,0.5,3", "0,0.5,2025-01-01"], "must be of one kind, numbers as before"),
    ],
)
def test_times_must_be_times_of_one_kind(rows: list[str], message: str) -> None:
    Path("log.csv").write_text("y,p,when\n" + "".join(f"{row}\n" for row in rows))
    done = run("recalibrate", "log.csv", "-o", "out.csv", "--time", "when")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


@pytest.mark.alike("runs the command 12 times")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("state", [False, True])
def test_what_is_sorted_is_what_a_sorted_file_gives(ending: str, state: bool) -> None:
    write = {".csv": "write_csv", ".jsonl": "write_ndjson", ".parquet": "write_parquet"}[ending]
    frame = FRAME.with_columns(
        when=pl.datetime(2025, 1, 1) + pl.duration(seconds=pl.Series(RNG.integers(0, 900, 3000)))
    )
    options = ["--by", "place", "--time", "when", *(["--state", "s.json"] if state else [])]
    getattr(frame, write)("log" + ending)
    assert (
        run("recalibrate", "log" + ending, "-o", "out" + ending, "--sort", *options).exit_code == 0
    )
    getattr(frame.sort("when", maintain_order=True), write)("sorted" + ending)
    assert (
        run("recalibrate", "sorted" + ending, "-o", "sound" + ending, "--by", "place").exit_code
        == 0
    )
    assert Path("out" + ending).read_bytes() == Path("sound" + ending).read_bytes()


def test_sort_needs_a_time_and_a_column_must_be_there() -> None:
    Path("log.csv").write_text(lines("1,0.5"))
    done = run("recalibrate", "log.csv", "-o", "out.csv", "--sort")
    assert (done.exit_code, "--sort needs the column to sort by: --time NAME" in done.stderr) == (
        2,
        True,
    )
    for option in ("--time", "--id"):
        done = run("recalibrate", "log.csv", "-o", "out.csv", option, "when")
        said = f"Error: log.csv has no column 'when' ({option}); it has y, p\n"
        assert (done.exit_code, done.stderr.endswith(said)) == (2, True)
    Path("log.csv").write_text("y,p,when,when\n1,0.5,1,1\n")
    for option in ("--time", "--id"):
        done = run("recalibrate", "log.csv", "-o", "out.csv", option, "when")
        said = f"Error: log.csv has 2 columns 'when' ({option}): rename all but one of them\n"
        assert (done.exit_code, done.stderr.endswith(said)) == (2, True)
