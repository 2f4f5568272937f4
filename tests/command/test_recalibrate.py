"""`truecast recalibrate`: what it writes, and that it can be stopped at any moment."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from disk import READ, WRITE, Killed, killed_after, kills_that_change_nothing
from truecast import files
from truecast.cli import main
from truecast.files import recalibration, records

ROWS = 2000
SMOOTH = tc.smooth_calibration_error


def run(*arguments: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def rounds(rows: int, seed: int = 5) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 3, rows)
    return pl.DataFrame(
        {
            "when": [f'day {k}, "{k % 7}"' for k in range(rows)],
            "p": (truth**2 / (truth**2 + (1 - truth) ** 2)).round(6),
            "y": (rng.random(rows) < truth).astype(int),
            "place": rng.choice(["JFK", "LGA", "EWR"], rows),
        }
    )


FRAME = rounds(ROWS)


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small files are read in several parts, with checkpoints between them."""
    monkeypatch.setattr(records, "_BLOCK", 1 << 13)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 500)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


def expected(frame: pl.DataFrame, *, groups: bool = False) -> list[float]:
    by = frame["place"].to_list() if groups else None
    return (
        tc.Recalibrator()
        .forecast_many(frame["p"].to_numpy(), frame["y"].to_numpy(), groups=by)
        .tolist()
    )


@pytest.mark.parametrize("ending", WRITE)
@pytest.mark.parametrize("groups", [False, True])
def test_all_columns_and_one_more_bit_for_bit_as_in_python(ending: str, groups: bool) -> None:
    source, target = Path("scores" + ending), Path("out" + ending)
    WRITE[ending](FRAME, source)
    done = run("recalibrate", source, "-o", target, *(["--by", "place"] if groups else []))
    assert done.exit_code == 0, done.output
    written = READ[ending](target)
    assert written.columns == [*FRAME.columns, "recalibrated"]
    assert written.drop("recalibrated").rows() == FRAME.rows()
    assert written["recalibrated"].to_list() == expected(FRAME, groups=groups)
    assert sorted(path.name for path in Path().iterdir()) == sorted([source.name, target.name])


@pytest.mark.parametrize("quoted", [True, False])
def test_line_breaks_and_the_byte_order_mark_stay(quoted: bool) -> None:
    frame = FRAME if quoted else FRAME.drop("when")
    lines = frame.write_csv(line_terminator="\r\n").encode()
    Path("scores.csv").write_bytes(b"\xef\xbb\xbf" + lines)
    half = lines.index(b"\r\n", len(lines) // 2) + 2
    Path("half.csv").write_bytes(b"\xef\xbb\xbf" + lines[:half])
    assert run("recalibrate", "scores.csv", "-o", "out.csv").exit_code == 0
    written = Path("out.csv").read_bytes()
    assert written.startswith(b"\xef\xbb\xbf")
    assert written.count(b"\r\n") == written.count(b"\n") == ROWS + 1
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == expected(FRAME)
    for source in ("half.csv", "scores.csv"):
        Path("log.csv").write_bytes(Path(source).read_bytes())
        done = run("recalibrate", "log.csv", "-o", "grown.csv", "--state", "s.json")
        assert done.exit_code == 0, done.output
    assert Path("grown.csv").read_bytes() == written


PERCENT = FRAME.with_columns(pl.col("p") * 100)
COMMAS = FRAME.with_columns(pl.col("p").cast(pl.String).str.replace(".", ",", literal=True))


@pytest.mark.alike("makes two pages a case")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("frame", "options"), [(PERCENT, ["--percent"]), (COMMAS, ["--decimal", ","])]
)
def test_new_columns_are_read_with_the_options_of_the_file(
    ending: str, frame: pl.DataFrame, options: list[str]
) -> None:
    source, target = Path("scores" + ending), Path("out" + ending)
    state = ["--state", "s.json", "--report", "page.html"]
    for part in (frame[:1000], frame):
        WRITE[ending](part, source)
        done = run("recalibrate", source, "-o", target, *options, *state)
        assert done.exit_code == 0, done.output
    again = tc.read_rounds(
        str(target),
        score="recalibrated",
        outcome="y",
        percent="--percent" in options,
        decimal="," if "," in options else ".",
    )
    assert again.arrays()[1].tolist() == pytest.approx(expected(FRAME), rel=1e-12)


def test_prints_the_certificate_of_what_it_wrote_and_both_scores() -> None:
    FRAME.write_csv("scores.csv")
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--outcome", "y", "--score", "p")
    r = tc.Recalibrator()
    y, p = FRAME["y"].to_numpy(), FRAME["p"].to_numpy()
    said = r.forecast_many(p, y)
    brier, smooth = (
        [f"{of(y, each):.6f}" for each in (p, said)] for of in (tc.brier_score, SMOOTH)
    )
    assert done.stdout == (
        f"{r.certificate}\n"
        f"of {ROWS:,} outcomes of this run           before       after\n"
        f"  Brier score                         {brier[0]}    {brier[1]}\n"
        f"  smooth calibration error            {smooth[0]}    {smooth[1]}\n"
        "written to out.csv\n"
    )
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""
    found = json.loads(run("recalibrate", "scores.csv", "-o", "out.csv", "--json").stdout)
    assert found["rows"] == ROWS
    assert found["certificate"]["bound"] == r.certificate.bound
    assert found["certificate"]["per_round"] == r.certificate.per_round
    assert found["brier"] == pytest.approx(
        {"score": tc.brier_score(y, p), "recalibrated": tc.brier_score(y, said)}
    )
    assert found["smooth_calibration_error"] == {
        "score": SMOOTH(y, p),
        "recalibrated": SMOOTH(y, said),
    }


def test_standard_input_to_standard_output() -> None:
    done = run("recalibrate", "-", "-o", "-", text=FRAME.write_csv())
    assert done.exit_code == 0
    assert pl.read_csv(done.stdout.encode())["recalibrated"].to_list() == expected(FRAME)
    assert "distance to calibration" in done.stderr
    done = run("recalibrate", "-", "-o", "-", "--json", text=FRAME.head(5).write_csv())
    assert json.loads(done.stderr[done.stderr.index("{") :])["rows"] == 5


def test_the_new_column_has_the_name_that_is_asked_for() -> None:
    FRAME.write_csv("scores.csv")
    assert run("recalibrate", "scores.csv", "-o", "out.csv", "--column", "better").exit_code == 0
    assert pl.read_csv("out.csv").columns[-1] == "better"
    done = run("recalibrate", "scores.csv", "-o", "out2.csv", "--column", "place")
    assert (done.exit_code, Path("out2.csv").exists()) == (2, False)
    assert "has a column 'place' already: choose another name with --column" in done.stderr


def test_json_that_has_the_new_entry_in_a_later_line_is_refused() -> None:
    lines = [
        '{"p": 0.5, "y": 1}',
        '{"p": 0.5, "y": 1, "note": "recalibrated"}',
        '{"p": 0.5, "y": 0, "recalibrated": 1}',
    ]
    Path("scores.jsonl").write_text("\n".join(lines[:2]))
    assert run("recalibrate", "scores.jsonl", "-o", "out.jsonl").exit_code == 0
    Path("scores.jsonl").write_text("\n".join(lines))
    done = run("recalibrate", "scores.jsonl", "-o", "other.jsonl")
    assert done.exit_code == 2
    assert "scores.jsonl has a column 'recalibrated' already" in done.stderr
    assert not list(Path().glob("other*"))


def test_groups_beyond_the_most_share_a_guard() -> None:
    FRAME.write_csv("scores.csv")
    options = ["--by", "place", "--max-groups", "1", "--state", "s.json"]
    assert run("recalibrate", "scores.csv", "-o", "out.csv", *options).exit_code == 0
    r = tc.Recalibrator.from_json(Path("s.json").read_text())
    assert list(r.groups) == [FRAME["place"][0]]
    assert r.others.rounds == (FRAME["place"] != FRAME["place"][0]).sum()
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--max-groups", "-1")
    assert (done.exit_code, "--max-groups must be a whole number from 0" in done.stderr) == (
        2,
        True,
    )


@pytest.mark.slow("writes and plays a long file")
@pytest.mark.parametrize("ending", WRITE)
def test_groups_of_several_columns_overlap(ending: str) -> None:
    hours = [None if k % 5 == 0 else k % 3 for k in range(ROWS)]
    places = [None if k % 7 == 0 else place for k, place in enumerate(FRAME["place"])]
    frame = FRAME.with_columns(pl.Series("hour", hours), pl.Series("place", places))
    source, target = Path("scores" + ending), Path("out" + ending)
    WRITE[ending](frame[:1500], source)
    options = ["--by", "place", "--by", "hour", "--state", "s.json"]
    assert run("recalibrate", source, "-o", target, *options).exit_code == 0
    WRITE[ending](frame, source)
    done = run("recalibrate", source, "-o", target, *options, "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert "1,500 rows recalibrated before; 500 new" in done.stdout
    cells = zip(places, hours, strict=True)
    groups = [
        tuple(
            f"{name}={cell}"
            for name, cell in (("place", place), ("hour", hour))
            if cell is not None
        )
        for place, hour in cells
    ]
    r = tc.Recalibrator()
    said = r.forecast_many(frame["p"].to_numpy(), frame["y"].to_numpy(), groups=groups)
    assert READ[ending](target)["recalibrated"].to_list() == said.tolist()
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).to_json() == r.to_json()
    assert {"place=JFK", "hour=2"} < set(r.groups)
    other = run("recalibrate", source, "-o", target, *options[:2], *options[4:])
    assert (other.exit_code, "--by must be as before" in other.stderr) == (2, True)


def test_columns_of_groups_that_are_refused() -> None:
    FRAME.write_csv("scores.csv")
    for options, said in [
        (["--by", "place", "--by", "place"], "--by must name each column once, got 'place' twice"),
        (["--by", "place", "--by", "hour"], "has no column 'hour' (--by)"),
        (["--event", "place"], "--event needs --id"),
    ]:
        done = run("recalibrate", "scores.csv", "-o", "out.csv", *options)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not Path("out.csv").exists()


@pytest.mark.slow("writes and plays a long file")
def test_rows_without_an_outcome_are_forecast_and_not_learned_from() -> None:
    y = [
        None if 1000 <= k < 1010 or k == 1500 else bit for k, bit in enumerate(FRAME["y"].to_list())
    ]
    frame = FRAME.with_columns(pl.Series("y", y))
    frame.write_csv("scores.csv")
    done = run("recalibrate", "scores.csv", "-o", "out.csv")
    assert done.exit_code == 2
    assert "scores.csv, line 1002: y must be an outcome, 0 or 1, got nothing" in done.stderr
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--unknown", "--report", "report.html")
    assert "11 rows without an outcome: forecast, not learned from" in done.stdout
    r, said = tc.Recalibrator(), []
    for score, bit in zip(frame["p"].to_list(), y, strict=True):
        if bit is None:
            said.append(float(r.predict_many([score])[0]))
        else:
            said.append(r.predict(score))
            r.observe(bit)
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == said
    assert f"{ROWS - 11:,}" in Path("report.html").read_text()


@pytest.mark.slow("makes a report")
def test_the_report_is_about_before_and_after() -> None:
    FRAME.write_csv("scores.csv")
    options = ["--by", "place", "--report", "report.html", "--state", "s.json"]
    done = run("recalibrate", "scores.csv", "-o", "out.csv", *options)
    assert "report written to report.html" in done.stderr
    page = Path("report.html").read_text()
    again = run("recalibrate", "scores.csv", "-o", "out.csv", *options)
    assert again.stdout.startswith(f"{ROWS:,} rows recalibrated before; 0 new\n")
    # of all rows of the output, whenever they were written
    assert Path("report.html").read_text() == page
    for word in ("JFK", "recalibrated", "proved"):
        assert word in page
    assert len(page) < 300_000


def test_tomorrow_goes_on_where_today_has_ended() -> None:
    FRAME[:1500].write_csv("monday.csv")
    FRAME[1500:].write_csv("tuesday.csv")
    for day in ("monday", "tuesday"):
        assert (
            run("recalibrate", f"{day}.csv", "-o", f"{day}-out.csv", "--state", "s.json").exit_code
            == 0
        )
    said = pl.concat([pl.read_csv("monday-out.csv"), pl.read_csv("tuesday-out.csv")])
    assert said["recalibrated"].to_list() == expected(FRAME)
    r = tc.Recalibrator.from_json(Path("s.json").read_text())  # and live
    assert r.rounds == ROWS


@pytest.mark.alike("recalibrates many times by each kind of file")
@pytest.mark.parametrize("ending", WRITE)
def test_a_file_that_has_grown_goes_on_too_and_no_row_counts_twice(ending: str) -> None:
    source, target = Path("log" + ending), Path("out" + ending)
    for rows in (700, 700, 1234, ROWS):
        WRITE[ending](FRAME[:rows], source)
        done = run("recalibrate", source, "-o", target, "--state", "s.json")
        assert done.exit_code == 0, done.output
        assert READ[ending](target)["recalibrated"].to_list() == expected(FRAME[:rows])
    WRITE[ending](FRAME, source)
    done = run("recalibrate", source, "-o", "other" + ending, "--state", "s.json")
    assert done.stdout.startswith(f"{ROWS:,} rows recalibrated before; 0 new\n")
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == ROWS


def test_an_output_that_somebody_has_changed_is_not_added_to() -> None:
    FRAME[:700].write_csv("log.csv")
    run("recalibrate", "log.csv", "-o", "out.csv", "--state", "s.json")
    state = Path("s.json").read_bytes()
    Path("out.csv").write_text("mine now")
    FRAME.write_csv("log.csv")
    done = run("recalibrate", "log.csv", "-o", "out.csv", "--state", "s.json")
    assert done.exit_code == 2
    assert done.stderr.endswith("out.csv has changed since the last run: choose another output\n")
    assert (Path("out.csv").read_text(), Path("s.json").read_bytes()) == ("mine now", state)


def test_a_state_saved_in_python_is_gone_on_from() -> None:
    r = tc.Recalibrator()
    r.forecast_many(FRAME["p"][:1000].to_numpy(), FRAME["y"][:1000].to_numpy())
    Path("s.json").write_text(r.to_json())
    FRAME[1000:].write_csv("rest.csv")
    assert run("recalibrate", "rest.csv", "-o", "out.csv", "--state", "s.json").exit_code == 0
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == expected(FRAME)[1000:]


def test_a_file_that_is_no_state_is_named() -> None:
    FRAME.write_csv("scores.csv")
    Path("s.json").write_text("no state")
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    said = "Error: s.json is not a saved recalibrator: it is not JSON; use a new --state"
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"format": "truecast", "version": 1}'])
def test_a_state_that_is_none_is_refused_and_stays(content: bytes) -> None:
    FRAME.write_csv("scores.csv")
    Path("s.json").write_bytes(content)
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("Error: s.json is not a saved recalibrator")
    assert done.stderr.count("saved") <= 2
    assert "is not a saved forecaster" not in done.stderr
    assert Path("s.json").read_bytes() == content
    assert not Path("out.csv").exists()


@pytest.mark.alike("runs the command 15 times")
@pytest.mark.parametrize("ending", WRITE)
@pytest.mark.parametrize("with_state", [False, True])
def test_a_bad_row_leaves_everything_as_it_was(ending: str, with_state: bool) -> None:
    source, target = Path("scores" + ending), Path("out" + ending)
    WRITE[ending](
        FRAME.with_columns(p=pl.when(pl.int_range(ROWS) == 1456).then(1.5).otherwise("p")), source
    )
    target.write_text("precious")
    options = ["--state", "s.json"] if with_state else []
    if with_state:
        rounds(100, seed=8).write_csv("before.csv")
        run("recalibrate", "before.csv", "-o", "before-out.csv", *options)
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    done = run("recalibrate", source, "-o", target, *options)
    place = (
        "row 1457" if ending == ".parquet" else "line 1457" if ending == ".jsonl" else "line 1458"
    )
    assert done.exit_code == 2
    assert f"{source}, {place}: p must be a probability from 0 to 1, got" in done.stderr
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
    done = run("recalibrate", source, "-o", target, "--skip-bad", *options)
    assert (done.exit_code, "1 bad row skipped" in done.stdout) == (0, True)
    assert len(READ[ending](target)) == ROWS - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-o", "out.jsonl"],
            "out.jsonl must end in .csv, .tsv, .txt, because scores.csv is of that kind",
        ),
        (["-o", "-", "--state", "s.json"], "--state and --report need a file to write to: -o OUT"),
        (["-o", "-", "--report", "r.html"], "--state and --report need a file to write to: -o OUT"),
        (["-o", "scores.csv"], "FILE and -o must not be the same file; got 'scores.csv'"),
        (
            ["-o", "out.csv", "--state", "out.csv"],
            "-o and --state must not be the same file; got 'out.csv'",
        ),
        (["-o", "no/out.csv"], "no/out.csv cannot be written (-o): there is no folder 'no'"),
        (
            ["-o", "out.csv", "--report", "no/r.html"],
            "no/r.html cannot be written (--report): there is no folder 'no'",
        ),
        ([], "Missing option '-o' / '--output'"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(options: list[str], message: str) -> None:
    FRAME[:10].write_csv("scores.csv")
    done = run("recalibrate", "scores.csv", *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert [path.name for path in Path().iterdir()] == ["scores.csv"]


def saved(state: Path) -> str:
    return tc.Recalibrator.from_json(state.read_text()).to_json()


@pytest.mark.slow("is killed before every step")
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_killed_before_any_step_and_started_again_it_writes_the_same(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place where a process can die, in a small world: each write, rename, sync and
    removal."""
    frame = FRAME[:1000]
    source, target, state = Path("scores" + ending), Path("out" + ending), Path("s.json")
    WRITE[ending](frame, source)
    command = ["recalibrate", str(source), "-o", str(target), "--state", "s.json", "--by", "place"]
    assert run(*command).exit_code == 0
    start = {target: None, state: None}
    assert kills_that_change_nothing(command, start, lambda: saved(state), monkeypatch) > 15


@pytest.mark.slow("starts the command and kills it, many times")
@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_killed_for_real_again_and_again(tmp_path: Path) -> None:
    frame = pl.concat([FRAME] * 100)
    frame.write_csv("scores.csv")
    command = [sys.executable, "-m", "truecast", "recalibrate", "scores.csv", "--by", "place"]
    subprocess.run([*command, "-o", "plain.csv"], check=True, capture_output=True)
    rng, kills = np.random.default_rng(3), 0
    while True:
        process = subprocess.Popen(
            [*command, "-o", "out.csv", "--state", "s.json"], stdout=-1, stderr=-1
        )
        try:
            process.communicate(timeout=rng.uniform(0.5, 1.5) + kills / 2)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        break
    assert process.returncode == 0
    assert kills
    assert Path("out.csv").read_bytes() == Path("plain.csv").read_bytes()


def test_stopped_by_the_user_it_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.write_csv("scores.csv")
    many, calls = tc.Recalibrator.forecast_many, [0]

    def stopped(self: tc.Recalibrator, *arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt
        return many(self, *arguments, **options)

    monkeypatch.setattr(tc.Recalibrator, "forecast_many", stopped)
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    assert done.exit_code == 130
    assert done.stderr.endswith("stopped; the same command continues from there\n")
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    assert "rows recalibrated before" in done.stdout
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == expected(FRAME)
    calls[0] = 0
    done = run("recalibrate", "scores.csv", "-o", "again.csv")
    assert done.stderr.endswith("stopped; nothing was written\n")
    assert not list(Path().glob("again*"))


def test_a_stopped_run_of_another_file_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint is of other rows: it is dropped, and nothing of them is learned."""
    FRAME.write_csv("scores.csv")
    command = ["recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json"]
    with killed_after(20, monkeypatch), contextlib.suppress(Killed):
        CliRunner().invoke(main, command, catch_exceptions=False)
    assert Path("s.json.part").exists()
    other = rounds(ROWS, seed=6)
    other.write_csv("scores.csv")
    assert run(*command).exit_code == 0
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == expected(other)
    assert tc.Recalibrator.from_json(Path("s.json").read_text()).rounds == ROWS


def test_standard_input_that_differs_from_the_stopped_run_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["recalibrate", "-", "-o", "out.csv", "--state", "s.json"]
    with killed_after(20, monkeypatch), contextlib.suppress(Killed):
        CliRunner().invoke(main, command, input=FRAME.write_csv(), catch_exceptions=False)
    done = run(*command, text=rounds(ROWS, seed=6).write_csv())
    assert done.exit_code == 2
    assert (
        "does not begin with the rows of the run that was stopped; to forget that, remove "
        "s.json.part" in done.stderr
    )
    assert run(*command, text=FRAME.write_csv()).exit_code == 0
    assert pl.read_csv("out.csv")["recalibrated"].to_list() == expected(FRAME)


def test_another_run_that_changed_the_state_meanwhile_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FRAME.write_csv("scores.csv")
    sync = files.output._TextOutput.sync

    def meddle(self: Any) -> int:
        Path("s.json").write_text(tc.Recalibrator().to_json())
        return sync(self)

    monkeypatch.setattr(files.output._TextOutput, "sync", meddle)
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    assert done.exit_code == 2
    assert "s.json was changed by another run during this one" in done.stderr
    assert Path("s.json").read_text() == tc.Recalibrator().to_json()
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("known", [[], ["--id", "number"]])
def test_groups_are_told_before_and_after_with_their_certificates(known: list[str]) -> None:
    rng = np.random.default_rng(5)
    rows = 600
    place = rng.choice(["A", "B", None], rows, p=[0.3, 0.6, 0.1])
    frame = pl.DataFrame(
        {
            "number": range(rows),
            "y": rng.integers(0, 2, rows),
            "p": rng.random(rows).round(3),
            "place": place,
            "half": ["early"] * 300 + ["late"] * 300,
        }
    )
    frame.write_csv("log.csv")
    command = ["recalibrate", "log.csv", "--by", "place", "-o", "out.csv", *known]
    found = json.loads(run(*command, "--json").stdout)["groups"]
    out = pl.read_csv("out.csv")
    assert [one["group"] for one in found] == ["B", "A"]
    for one in found:
        some = out.filter(pl.col("place") == one["group"])
        for kind, measure in (
            ("brier", tc.brier_score),
            ("smooth_calibration_error", tc.smooth_calibration_error),
        ):
            expected = [measure(some["y"], some[column]) for column in ("p", "recalibrated")]
            assert list(one[kind].values()) == pytest.approx(expected)
        assert one["learned"] == one["certificate"]["rounds"] == len(some)
    text = run(*command, "--report", "page.html").stdout
    page = Path("page.html").read_text()
    assert "Groups before and after recalibration" in page
    for one in found:
        assert f'<bdi class="name">{one["group"]}</bdi>' in page
        assert f"<td>{one['smooth_calibration_error']['recalibrated']:.4f}</td>" in page
    proved = found[0]["certificate"]["per_round"]
    assert re.search(rf"^B +{found[0]['learned']} .* {proved:.4f}$", text, re.MULTILINE)
    both = json.loads(run(*command, "--by", "half", "--json").stdout)["groups"]
    names = ["place=B", "half=early", "half=late", "place=A"]
    assert [one["group"] for one in both] == names
    limited = json.loads(run(*command, "--max-groups", "1", "--json").stdout)["groups"]
    assert len(limited) == 1
