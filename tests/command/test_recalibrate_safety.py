"""`truecast recalibrate` where something is in its way: other runs, other options, what others have
left or changed."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from truecast.cli import main
from truecast.files import output, recalibrated, recalibration, records, unfinished

RNG = np.random.default_rng(2)
FRAME = pl.DataFrame(
    {
        "p": RNG.random(3000).round(4),
        "y": RNG.integers(0, 2, 3000),
        "place": RNG.choice(["Rome", "Oslo"], 3000),
    }
)


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def write(frame: pl.DataFrame, path: str) -> None:
    frame.write_parquet(path) if path.endswith(".parquet") else frame.write_csv(path)


def read(path: str) -> pl.DataFrame:
    return pl.read_parquet(path) if path.endswith(".parquet") else pl.read_csv(path)


def expected(frame: pl.DataFrame) -> list[float]:
    return tc.Recalibrator().forecast_many(frame["p"].to_numpy(), frame["y"].to_numpy()).tolist()


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 13)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 400)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)
    for ending in (".csv", ".parquet"):
        write(FRAME, "scores" + ending)


@contextlib.contextmanager
def stopped_after(parts: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the run be stopped when it has written this many parts, and leave all as it is then."""
    left = [parts]

    def progress(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recalibrated.RunningErrors, "add", progress)
        yield


def command(ending: str, *options: str) -> list[str]:
    return ["recalibrate", "scores" + ending, "-o", "out" + ending, "--state", "s.json", *options]


ENDINGS = pytest.mark.parametrize("ending", [".csv", ".parquet"])


@ENDINGS
def test_a_folder_is_no_output_and_what_is_in_it_stays(ending: str) -> None:
    """Tables of Parquet are often folders that are called so."""
    Path("data" + ending).mkdir()
    Path("data" + ending, "precious").write_text("data")
    for options in ([], ["--state", "s.json"]):
        done = run("recalibrate", "scores" + ending, "-o", "data" + ending, *options)
        assert done.exit_code == 2
        assert (
            f"data{ending} exists and is not a file that can be replaced: choose another output"
            in done.stderr
        )
        assert [path.name for path in Path("data" + ending).iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["report", "mine.csv", "-o", "mine.csv"],
            "FILE and -o must not be the same file; got 'mine.csv'",
        ),
        (
            ["distance", "mine.csv", "--witness", "mine.csv"],
            "FILE and --witness must not be the same file",
        ),
        (["forecast", "mine.csv", "-o", "mine.csv"], "FILE and -o must not be the same file"),
        (
            ["recalibrate", "out.csv.part", "-o", "out.csv"],
            "got 'out.csv', with 'out.csv.part' while it is written",
        ),
        (
            ["recalibrate", "out.csv.lock", "-o", "out.csv"],
            "got 'out.csv', with 'out.csv.lock' while it is written",
        ),
        (
            ["recalibrate", "s.part.part", "-o", "o.csv", "--state", "s"],
            "got 's', with 's.part.part' while it is written",
        ),
    ],
)
def test_what_is_read_is_never_written_over(arguments: list[str], message: str) -> None:
    for name in ("mine.csv", "out.csv.part", "out.csv.lock", "s.part.part"):
        shutil.copy("scores.csv", name)
    done = run(*arguments)
    assert (done.exit_code, message in done.stderr) == (2, True)
    assert {Path(arguments[1]).read_bytes()} == {Path("scores.csv").read_bytes()}


@ENDINGS
def test_another_name_of_the_column_begins_anew_or_is_refused(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    assert Path("s.json.part").exists()
    assert run(*command(ending, "--column", "better")).exit_code == 0
    assert read("out" + ending)["better"].to_list() == expected(FRAME)
    before = Path("out" + ending).read_bytes(), Path("s.json").read_bytes()
    for rows in (3000, 3001):
        write(FRAME[[*range(3000), 0][:rows]], "scores" + ending)
        done = run(*command(ending, "--column", "best"))
        assert (
            done.exit_code,
            "has a column 'better' where 'best' would be" in done.stderr,
        ) == (2, True)
        assert (Path("out" + ending).read_bytes(), Path("s.json").read_bytes()) == before
    assert {path.suffix for path in Path().iterdir()} == {".csv", ".json", ".parquet"}


@ENDINGS
def test_other_columns_in_the_file_begin_anew_or_are_refused(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = FRAME.with_columns(more=pl.lit(7))
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    write(wider, "scores" + ending)
    assert run(*command(ending)).exit_code == 0
    written = read("out" + ending)
    assert written["recalibrated"].to_list() == expected(FRAME)
    assert written.drop("recalibrated").equals(read("scores" + ending))
    before = Path("out" + ending).read_bytes(), Path("s.json").read_bytes()
    write(pl.concat([FRAME, FRAME[:9]]), "scores" + ending)
    done = run(*command(ending))
    assert (done.exit_code, "has a column 'more" in done.stderr) == (2, True)
    assert (Path("out" + ending).read_bytes(), Path("s.json").read_bytes()) == before


@pytest.mark.alike("runs the command on twelve changed outputs")
@ENDINGS
@pytest.mark.parametrize("how", ["gone", "other", "longer"])
@pytest.mark.parametrize("rows", [1000, 3000])
def test_an_output_that_is_not_as_it_was_left_is_neither_added_to_nor_said_to_be_written(
    ending: str, how: str, rows: int
) -> None:
    write(FRAME[:1000], "scores" + ending)
    assert run(*command(ending)).exit_code == 0
    left = Path("out" + ending).read_bytes()
    changed = {"gone": None, "other": left[:-9] + b"?" + left[-8:], "longer": left + b"?"}[how]
    Path("out" + ending).unlink() if changed is None else Path("out" + ending).write_bytes(changed)
    write(FRAME[:rows], "scores" + ending)
    done = run(*command(ending))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has changed since the last run: choose another output" in done.stderr
    assert (Path("out" + ending).read_bytes() if changed else None) == changed
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == 1000


@ENDINGS
@pytest.mark.parametrize("other", ["shorter", "longer"])
def test_a_part_that_another_run_has_left_is_not_gone_on_with(
    ending: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    mine = Path("s.json.part").read_bytes()
    with stopped_after(1 if other == "shorter" else 7, monkeypatch), monkeypatch.context() as patch:
        patch.setattr(output.Output, "discard", lambda out: out.close())  # as if killed
        write(FRAME.with_columns(p=1 - FRAME["p"]), "others" + ending)
        assert run("recalibrate", "others" + ending, "-o", "out" + ending).exit_code == 130
    assert Path("s.json.part").read_bytes() == mine
    assert Path(f"out{ending}.part").exists()
    assert run(*command(ending)).exit_code == 0
    assert read("out" + ending)["recalibrated"].to_list() == expected(FRAME)


@ENDINGS
def test_a_run_that_was_complete_does_not_put_another_ones_part_in_place(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr("truecast.files.checkpoint.put_in_place", _interrupt)
        run(*command(ending))
    assert json.loads(Path("s.json.part").read_text())["run"]["complete"]
    unfinished.remove_part(Path("out" + ending))
    part = Path(f"out{ending}.part")
    if ending == ".csv":
        part.write_text("half of something else")
    else:
        part.mkdir()
        write(FRAME[:5], "five.parquet")
        Path("five.parquet").rename(part / "000000000.piece")
    done = run(*command(ending))
    assert done.exit_code == 2
    assert "has changed since the last run" in done.stderr
    assert not Path("out" + ending).exists()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_killed_while_the_pieces_are_removed_the_whole_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder of pieces is emptied one by one when the file is in its place: what is left of it
    is not the file."""

    def some(part: Path) -> None:
        for piece in sorted(part.glob("*.piece"))[:3]:
            piece.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "_remove_folder", some)
        assert run(*command(".parquet")).exit_code == 130
    assert len(list(Path("out.parquet.part").glob("*.piece"))) > 3
    assert run(*command(".parquet")).exit_code == 0
    assert read("out.parquet")["recalibrated"].to_list() == expected(FRAME)
    assert not Path("out.parquet.part").exists()


def test_parquet_is_neither_packed_nor_written_to_standard_output() -> None:
    done = run("recalibrate", "scores.parquet", "-o", "out.parquet.gz")
    said = "out.parquet.gz must end in .parquet, .pq, because scores.parquet is of that kind"
    assert (done.exit_code, said in done.stderr) == (2, True)
    done = run("recalibrate", "scores.parquet", "-o", "-")
    said = "standard output cannot be Parquet: write to a file by -o"
    assert (done.exit_code, done.stdout, said in done.stderr) == (2, "", True)


@pytest.mark.slow("makes reports")
def test_the_page_has_a_certificate_only_if_that_is_about_its_rows_and_says_what_was_skipped() -> (
    None
):
    Path("scores.csv").write_text(FRAME[:500].write_csv() + "9,9,9\n")
    assert run(*command(".csv", "--skip-bad", "--report", "first.html")).exit_code == 0
    write(FRAME[500:900], "scores.csv")
    # the certificate is about 900 rounds
    assert run(*command(".csv", "--report", "second.html")).exit_code == 0
    first, second = (
        re.sub("<[^>]*>", " ", Path(f"{day}.html").read_text()) for day in ("first", "second")
    )
    assert re.search(r"rows skipped\s+1\b", first)
    assert "rows skipped" not in second
    assert "proved" in first
    assert "proved" not in second


def test_json_lines_may_end_in_blanks_as_elsewhere() -> None:
    Path("scores.jsonl").write_bytes(
        b'{"p": 0.5, "y": 1}\r\n{"y": 0, "p": 0.25} \r\n{"p": 0.75, "y": 1}'
    )
    assert run(*command(".jsonl", "--complete")).exit_code == 0
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    said = tc.Recalibrator().forecast_many([0.5, 0.25, 0.75], [1, 0, 1]).tolist()
    assert [line["recalibrated"] for line in lines] == said
    assert [line["p"] for line in lines] == [0.5, 0.25, 0.75]


@pytest.mark.parametrize("first", [[], ["--by", "place"]])
def test_the_same_rows_in_groups_and_without_are_not_learned_twice(first: list[str]) -> None:
    assert run(*command(".csv", *first)).exit_code == 0
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    done = run(*command(".csv", *([] if first else ["--by", "place"])))
    assert done.exit_code == 2
    assert (
        "scores.csv begins with rows that the state has learned in another way: --by "
        "must be as it was" in done.stderr
    )
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
    write(FRAME[1:], "scores.csv")
    assert run(*command(".csv", "--again", *([] if first else ["--by", "place"]))).exit_code == 0


def test_rows_whose_outcomes_have_come_are_not_learned_from_with_all_others_again() -> None:
    """A log is given with the last rows not known yet, and again when they are."""
    text = FRAME[:500].write_csv()
    Path("scores.csv").write_text(text + "0.25,,Oslo\n")
    assert run(*command(".csv", "--unknown")).exit_code == 0
    state = Path("s.json").read_bytes()
    Path("scores.csv").write_text(text + "0.25,1,Oslo\n0.5,0,Rome\n")
    done = run(*command(".csv", "--unknown"))
    assert (done.exit_code, "of which some had no outcome: pass only new rows" in done.stderr) == (
        2,
        True,
    )
    assert Path("s.json").read_bytes() == state
    Path("scores.csv").write_text("p,y,place\n0.25,1,Oslo\n0.5,0,Rome\n")
    assert run(*command(".csv", "--unknown")).exit_code == 0
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == 502


@pytest.mark.parametrize("other", ["0.5,1\n0.5,1\n", "0.5,0\n0.6,1\n"])
def test_a_day_of_the_same_scores_or_outcomes_is_another_day(other: str) -> None:
    for day in ("0.5,0\n0.5,1\n", other):
        Path("scores.csv").write_text(f"p,y\n{day}")
        assert run(*command(".csv")).exit_code == 0
        assert len(read("out.csv")) == 2
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == 4


@ENDINGS
@pytest.mark.parametrize("there", [False, True])
def test_a_stopped_run_from_another_state_is_begun_anew(
    ending: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state was replaced meanwhile, by a service say: its rounds count."""
    if there:
        Path("s.json").write_text(tc.Recalibrator().to_json())
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    r = tc.Recalibrator()
    r.forecast_many([0.5, 0.6, 0.7], [1, 1, 0])
    Path("s.json").write_text(r.to_json())
    assert run(*command(ending)).exit_code == 0
    said = r.forecast_many(FRAME["p"].to_numpy(), FRAME["y"].to_numpy()).tolist()
    assert read("out" + ending)["recalibrated"].to_list() == said


@ENDINGS
def test_a_stopped_run_to_another_output_is_forgotten(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {path.name for path in Path().iterdir()}
    other = ["recalibrate", "scores" + ending, "-o", "other" + ending, "--state", "s.json"]
    for arguments in (command(ending), other):
        with stopped_after(5 if arguments is not other else 0, monkeypatch):
            assert run(*arguments).exit_code == 130
    assert {path.name for path in Path().iterdir()} == names | {
        f"out{ending}.part",
        f"other{ending}.part",
    }
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    done = run(*other)
    assert done.exit_code == 0
    said = (
        f"an interrupted run to '{Path('out' + ending).resolve()}' is forgotten; its .part "
        "can be removed\n"
    )
    assert said in done.stderr
    assert read("other" + ending)["recalibrated"].to_list() == expected(FRAME)
    assert {path.name for path in Path().iterdir()} == names | {
        "other" + ending,
        "s.json",
        f"out{ending}.part",
    }


def test_standard_input_is_new_even_if_it_looks_the_same() -> None:
    for times in (1, 2):
        done = run(
            "recalibrate", "-", "-o", "out.csv", "--state", "s.json", text=FRAME[:50].write_csv()
        )
        assert done.exit_code == 0, done.output
        assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == 50 * times
        assert len(read("out.csv")) == 50


def test_packed_it_is_the_same_bytes_with_a_state_grown_stopped_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run("recalibrate", "scores.csv", "-o", "plain.csv.gz").exit_code == 0
    assert run("recalibrate", "scores.csv", "-o", "out.csv.gz", "--state", "s.json").exit_code == 0
    assert Path("out.csv.gz").read_bytes() == Path("plain.csv.gz").read_bytes()
    found = []
    for stops in ([], [1, 3]):
        arguments = [
            "recalibrate",
            "log.csv",
            "-o",
            "grown.csv.gz",
            "--state",
            f"{len(stops)}.json",
        ]
        write(FRAME[:700], "log.csv")
        assert run(*arguments).exit_code == 0
        write(FRAME, "log.csv")
        for parts in stops:
            with stopped_after(parts, monkeypatch):
                assert run(*arguments).exit_code == 130
        assert run(*arguments).exit_code == 0
        found.append(Path("grown.csv.gz").read_bytes())
    assert found[0] == found[1]
    assert read("grown.csv.gz")["recalibrated"].to_list() == expected(FRAME)


def test_rows_without_an_outcome_are_forecast_in_their_group() -> None:
    rows = [(0.3, y, place) for y, place in [(1, "A"), (0, "B")] * 200] + [
        (0.3, None, "A"),
        (0.3, None, "B"),
    ]
    pl.DataFrame(rows, schema=["p", "y", "place"], orient="row").write_csv("scores.csv")
    assert run(*command(".csv", "--unknown", "--by", "place")).exit_code == 0
    r = tc.Recalibrator()
    r.forecast_many([0.3] * 400, [1, 0] * 200, groups=["A", "B"] * 200)
    said = r.predict_many([0.3, 0.3], groups=["A", "B"]).tolist()
    assert read("out.csv")["recalibrated"].to_list()[-2:] == said
    assert said[0] > said[1]


@ENDINGS
def test_what_was_written_after_the_checkpoint_is_not_kept(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows after it may have gone meanwhile."""
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    rows = json.loads(Path("s.json.part").read_text())["run"]["rows"]
    write(FRAME[:rows], "scores" + ending)
    assert run(*command(ending)).exit_code == 0
    assert read("out" + ending)["recalibrated"].to_list() == expected(FRAME[:rows])


@ENDINGS
def test_a_log_that_has_grown_is_gone_on_with_whatever_is_beside_its_output(ending: str) -> None:
    write(FRAME[:1000], "scores" + ending)
    assert run(*command(ending)).exit_code == 0
    part = Path(f"out{ending}.part")
    if ending == ".csv":
        part.write_text("p,y,place,recalibrated\n" + "left by a run that was killed " * 10_000)
    else:
        part.mkdir()
        (part / "000000007.piece").write_text("left by a run that was killed")
    write(FRAME, "scores" + ending)
    assert run(*command(ending)).exit_code == 0
    assert read("out" + ending)["recalibrated"].to_list() == expected(FRAME)
    assert not part.exists()


def test_what_is_replaced_stays_if_the_new_one_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("w.csv").write_text("mine")
    monkeypatch.setattr(tc.Witness, "moves", lambda *_: iter([(0.5, 1, 1.0, 1), None]))
    with pytest.raises(TypeError):
        CliRunner().invoke(
            main,
            ["distance", "scores.csv", "--rtol", "0.9", "--witness", "w.csv"],
            catch_exceptions=False,
        )
    assert Path("w.csv").read_text() == "mine"
    assert not Path("w.csv.part").exists()


def test_bad_rows_are_counted_in_the_run_that_met_them() -> None:
    """Also if they are in a block of which the first rows had been read before."""
    text = FRAME[:100].write_csv()
    for more, skipped in (
        ("2,0,\n", 1),
        ("0.5,1,Oslo\n0.5,3,Oslo\n0.4,0,Rome\n7,1,Rome\n", 2),
        ("", 0),
        ("9,9,9\n", 1),
    ):
        text += more
        Path("scores.csv").write_text(text)
        done = run(*command(".csv", "--skip-bad", "--json"))
        assert json.loads(done.stdout)["skipped"] == skipped


@pytest.mark.slow("starts the command twice at once")
@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
@pytest.mark.parametrize("options", [["-o", "out.csv"], ["-o", "other.csv", "--state", "s.json"]])
def test_two_runs_at_once_do_not_touch_each_others_files(options: list[str]) -> None:
    pl.concat([FRAME] * 400).write_csv("big.csv")
    first = [
        sys.executable,
        "-m",
        "truecast",
        "recalibrate",
        "big.csv",
        "-o",
        "out.csv",
        "--state",
        "s.json",
    ]
    process = subprocess.Popen(first, stdout=-1, stderr=-1)
    while not (Path("out.csv.part").exists() and Path("s.json.lock").exists()):
        time.sleep(0.01)
    done = run("recalibrate", "scores.csv", *options)
    process.send_signal(signal.SIGSTOP)
    names = {path.name for path in Path().iterdir()}
    process.send_signal(signal.SIGCONT)
    assert (done.exit_code, "is being written by another run" in done.stderr) == (2, True)
    assert "out.csv.part" in names
    assert process.wait(60) == 0
    process.communicate()
    assert len(pl.read_csv("out.csv")) == 400 * 3000
    assert not list(Path().glob("*.lock"))
    assert (
        run(
            "recalibrate", "scores.csv", *options, *(["--again"] if "--state" in options else [])
        ).exit_code
        == 0
    )


def test_a_lock_that_a_killed_run_has_left_is_none() -> None:
    Path("out.csv.lock").touch()
    assert run(*command(".csv")).exit_code == 0
    assert not Path("out.csv.lock").exists()


@pytest.mark.parametrize("options", [[], ["--state", "s"]])
@pytest.mark.parametrize(
    "name", ["out.csv.part", "out.csv.lock", "s.lock", "s.part", "s.part.part"]
)
def test_a_file_of_that_name_that_is_not_ours_is_neither_removed_nor_written_over(
    name: str, options: list[str]
) -> None:
    Path(name).write_text("important\n")
    done = run("recalibrate", "scores.csv", "-o", "out.csv", *options)
    assert Path(name).read_text() == "important\n"
    if name.startswith("out") or options:
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        assert (done.exit_code, name in line) == (2, True)
        said = (
            f"remove it, or choose another name ({'-o' if name.startswith('out') else '--state'})"
        )
        assert name == "s.part" or line.endswith(
            f"already exists and was not made by a run like this: {said}"
        )
        assert {path.name for path in Path().iterdir()} == {"scores.csv", "scores.parquet", name}
    else:
        assert done.exit_code == 0


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.csv.gz"])
def test_a_file_in_the_way_is_known_not_to_be_ours_in_every_format(name: str) -> None:
    FRAME.write_ndjson("scores.jsonl")
    source = "scores." + name.split(".")[1]
    Path(f"{name}.part").write_text('{"p": 0.5, "y": 1}\n')
    done = run("recalibrate", source, "-o", name)
    assert (done.exit_code, f"{name}.part already exists" in done.stderr) == (2, True)
    assert Path(f"{name}.part").read_text() == '{"p": 0.5, "y": 1}\n'


@pytest.mark.alike("kills eight runs")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl", "out.csv.gz"])
@pytest.mark.parametrize("options", [[], ["--state", "s.json"]])
def test_what_a_killed_run_has_left_is_cleared_by_the_next(
    name: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAME.write_ndjson("scores.jsonl")
    arguments = ["recalibrate", "scores." + name.split(".")[1], "-o", name, *options]
    with stopped_after(5, monkeypatch), monkeypatch.context() as patch:
        patch.setattr(output.Output, "discard", lambda out: out.close())  # as if killed
        assert run(*arguments).exit_code == 130
    assert Path(f"{name}.part").exists()
    if options:
        Path("s.json.part.part").write_bytes(Path("s.json.part").read_bytes()[:99])
        Path("s.json.part").unlink()
    assert run(*arguments).exit_code == 0
    assert run("recalibrate", arguments[1], "-o", f"other{Path(name).suffixes[0]}").exit_code == 0
    assert not [path for path in Path().iterdir() if path.suffix in (".part", ".lock")]


@ENDINGS
def test_a_part_of_other_columns_and_another_state_is_still_known_by_its_own(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped_after(5, monkeypatch):
        assert run(*command(ending)).exit_code == 130
    Path("s.json").write_text(tc.Recalibrator().to_json())
    assert run(*command(ending, "--column", "better")).exit_code == 0
    assert read("out" + ending)["better"].to_list() == expected(FRAME)


@pytest.mark.slow("starts the command")
@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
@pytest.mark.parametrize(
    "name", ["s.json", "s.json.part", "s.json.part.part", "s.json.lock", "out.csv.part"]
)
def test_a_pipe_in_the_way_is_refused_and_not_waited_for(name: str) -> None:
    os.mkfifo(name)
    words = [sys.executable, "-m", "truecast", *command(".csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    option = "-o" if name.startswith("out") else "--state"
    said = f"{name} exists and is not a file that can be replaced: choose another ({option})"
    assert (done.returncode, done.stderr.splitlines()[-1].endswith(said)) == (2, True), done.stderr
    assert not Path("out.csv").exists()
    assert Path(name).is_fifo()


@ENDINGS
def test_a_full_disk_leaves_nothing_behind(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    names = {path.name for path in Path().iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    close = output._TextOutput.close
    monkeypatch.setattr(output._TextOutput, "close", lambda out: full(close(out)))
    done = run("recalibrate", "scores" + ending, "-o", "out" + ending)
    said = f"Error: out{ending} cannot be written (-o): No space left on device"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert {path.name for path in Path().iterdir()} == names


@pytest.mark.parametrize("how", ["write_parquet", "sink_parquet"])
def test_what_the_engine_cannot_write_is_an_error_of_the_machine(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("underlying IO error: No space left on device")

    monkeypatch.setattr(pl.DataFrame if how == "write_parquet" else pl.LazyFrame, how, full)
    names = {path.name for path in Path().iterdir()}
    done = run("recalibrate", "scores.parquet", "-o", "out.parquet")
    said = "Error: out.parquet cannot be written (-o): underlying IO error: No space left on device"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert {path.name for path in Path().iterdir()} == names


@pytest.mark.slow("starts the command")
@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
@pytest.mark.parametrize(
    "arguments", [["recalibrate", "big.csv", "-o", "-"], ["forecast", "big.csv"]]
)
def test_a_reader_who_has_left_is_no_error_to_speak_of(arguments: list[str]) -> None:
    pl.concat([FRAME] * 50).write_csv("big.csv")
    line = " ".join(
        ["exec", sys.executable, "-m", "truecast", *arguments, "--outcome", "y", "| head -1"]
    )
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
    assert "rror" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        (["forecast", "scores.csv", "--outcome", "y", "-o", "pipe"], "outcome,forecast\n"),
        (
            ["distance", "scores.csv", "--rtol", "0.9", "--witness", "pipe"],
            "forecast,outcome,nearest,rounds\n",
        ),
        (["report", "scores.csv", "-o", "pipe"], "<!doctype html>\n"),
    ],
)
def test_a_pipe_or_a_device_is_written_to_and_never_replaced(
    arguments: list[str], begin: str
) -> None:
    os.mkfifo("pipe")
    reader = subprocess.Popen(["/bin/cat", "pipe"], stdout=subprocess.PIPE, text=True)
    try:
        assert run(*arguments).exit_code == 0
        assert Path("pipe").is_fifo()
        assert reader.communicate(timeout=10)[0].startswith(begin)
    finally:
        reader.kill()
        reader.communicate()


def test_a_page_goes_where_a_link_points_to() -> None:
    Path("page.html").symlink_to("real.html")
    assert run("report", "scores.csv", "-o", "page.html").exit_code == 0
    assert Path("page.html").is_symlink()
    assert Path("real.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow("starts the command")
@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
def test_without_anywhere_to_say_something_it_still_works() -> None:
    for rest in (
        ["recalibrate", "scores.csv", "-o", "out.csv"],
        ["measure", "scores.csv", "--resamples", "0"],
    ):
        line = " ".join([sys.executable, "-m", "truecast", *rest, "2>&-"])
        assert (
            subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False).returncode
            == 0
        )
    assert read("out.csv")["recalibrated"].to_list() == expected(FRAME)


def test_links_stay_links_to_what_is_written() -> None:
    Path("elsewhere").mkdir()
    Path("out.csv").symlink_to(Path("elsewhere", "real.csv"))
    for rows in (1000, 3000):
        write(FRAME[:rows], "scores.csv")
        assert run(*command(".csv")).exit_code == 0
        assert Path("out.csv").is_symlink()
        assert read("elsewhere/real.csv")["recalibrated"].to_list() == expected(FRAME[:rows])
    assert [path.name for path in Path("elsewhere").iterdir()] == ["real.csv"]
