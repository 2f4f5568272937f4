"""The command, as a user types it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from truecast.cli import main


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=text)


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", ["aosa", "bent-grid", "horizon-free", "arc"])
def test_forecasts_and_certificate_of_a_csv(tmp_path: Path, name: str) -> None:
    y = np.random.default_rng(2).integers(0, 2, 500)
    source, target = tmp_path / "outcomes.csv", tmp_path / "forecasts.csv"
    source.write_text("day,outcome\n" + "".join(f"{day},{bit}\n" for day, bit in enumerate(y)))
    result = run("forecast", str(source), "-o", str(target), "--forecaster", name)
    assert result.exit_code == 0, result.output
    f = {
        "aosa": tc.AlmostOneStepAhead(horizon=500),
        "bent-grid": tc.BentGrid(horizon=500),
        "horizon-free": tc.HorizonFree(),
        "arc": tc.Arc(),
    }[name]
    p = f.forecast_many(y)
    rows = read(target)
    assert rows[0] == ["outcome", "forecast"]
    assert [int(bit) for bit, _ in rows[1:]] == y.tolist()
    assert [float(value) for _, value in rows[1:]] == p.tolist()
    rate = y.mean()
    hindsight = f"    of always saying {rate:.4f}, in hindsight: {rate * (1 - rate):.6f}"
    assert result.stdout == f"{f}\n{f.certificate}\n{hindsight}\nforecasts written to {target}\n"
    assert f"{f.certificate.bound:,.4f}" in result.stdout
    assert f"2 sqrt(T) + 1     {2 * 500**0.5 + 1:,.4f}" in result.stdout


def test_the_old_name_of_a_forecaster_works_and_says_the_new_one() -> None:
    names = "bent", "bent-grid"
    old, new = (run("forecast", "-", "--forecaster", name, text="0\n1\n") for name in names)
    assert old.exit_code == new.exit_code == 0
    assert old.stdout == new.stdout
    assert old.stderr == f"--forecaster bent is now --forecaster bent-grid\n{new.stderr}"
    assert "bent-grid" in tc.arena.FORECASTERS  # its name there


def test_standard_input_to_standard_output_keeps_the_certificate_apart() -> None:
    result = run("forecast", "-", text="0\n1\n1\n")
    assert result.exit_code == 0
    assert result.stdout == "outcome,forecast\n0,0.5\n1,0.0\n1,0.0\n"
    assert "distance to calibration" in result.stderr


@pytest.mark.parametrize(
    "text",
    ["0\n1\n1\n", "\n\n0\n1\n1\n\n\n", "0\r\n1\r\n1\r\n", "y\n0\n1\n1",
    "late\nFalse\nTrue\ntrue\n", " 0 \n1.0\n1\n",
     "a,y,b\n5,0,x\n6,1,x\n7,1,x\n", 'a,outcome\n"x, y",0\n"two\nlines",1\n,1\n',
     "\ufeffy\n0\n1\n1\n"],
)  # fmt: skip
def test_layouts_that_are_understood(tmp_path: Path, text: str) -> None:
    source = tmp_path / "outcomes.txt"
    source.write_bytes(text.encode())
    result = run("forecast", str(source), "--grid", "2")
    assert result.exit_code == 0, result.output
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["outcome", "0", "1", "1"]


def test_the_outcome_column_can_be_named() -> None:
    result = run("forecast", "-", "--outcome", "late", "--grid", "2", text="late,y\n1,0\n1,0\n")
    assert result.stdout.splitlines()[1:] == ["1,0.5", "1,0.5"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("y\n0\n2\n", [], "line 3: y must be an outcome, 0 or 1, got '2'"),
        ("2\n0\n", [], "line 1: outcome must be an outcome, 0 or 1, got '2'"),
        ("nan\n0\n", [], "line 1: outcome must be an outcome, 0 or 1, got 'nan'"),
        ("0 1 1 0\n", [], "line 1: outcome must be an outcome, 0 or 1, got '0 1 1 0'"),
        ("y\n0\n\n1\n", [], "line 3: y must be an outcome, 0 or 1, got nothing"),
        ("a,y\n1,0\n1\n", [], "line 3: a row must have 2 fields like the header, got 1"),
        (
            "place,late\nParis, 1,0\n",
            ["--outcome", "late"],
            "line 2: a row must have 2 fields like the header, got 3",
        ),
        (
            "y,y\n1,0\n",
            ["--outcome", "y"],
            "standard input has 2 columns 'y' (--outcome): rename all but one of them",
        ),
        (
            "y\n" + "x" * 500,
            [],
            "line 2: y must be an outcome, 0 or 1, got '" + "x" * 79 + ": correct",
        ),
        ("a,y\n1,0\n1,\n", [], "line 3: y must be an outcome, 0 or 1, got nothing"),
        ('a,y\n"x\nz",0\nq,7\n', [], "line 4: y must be an outcome, 0 or 1, got '7'"),
        (
            "a,b\n1,0\n",
            [],
            "has no column whose name suggests the outcome: name it with --outcome; it has a, b",
        ),
        (
            "y,label\n1,0\n",
            [],
            "has several columns that may be the outcome (y, label): name one with --outcome",
        ),
        (
            "a,b\n1,0\n",
            ["--outcome", "c"],
            "standard input has no column 'c' (--outcome); it has a, b",
        ),
        ("0,1\n1,0\n", [], "line 1: has 2 columns and no header"),
        ("", [], "standard input is empty"),
        ("\n", [], "standard input is empty"),
        ("y\n", [], "standard input has a header but no rows"),
        ("0\n", ["--grid", "0"], "--grid must be a whole number from 1 to 16777216, got 0"),
        ("0\n", ["--horizon", "-3"], "--horizon must be a whole number from 1"),
        ("0\n", ["--forecaster", "bent-grid", "--grid", "3"], "grid must be even"),
        ("0\n", ["--forecaster", "bent-grid", "--at", "middle"], "--at is not for bent-grid"),
        (
            "0\n",
            ["--forecaster", "horizon-free", "--cell", "walk"],
            "--cell is not for horizon-free",
        ),
        ("0\n", ["--forecaster", "arc", "--horizon", "9"], "--horizon is not for arc"),
        ("0\n", ["--forecaster", "arc", "--grid", "9"], "--grid is not for arc"),
        ("0\n", ["--forecaster", "arc", "--at", "middle"], "--at is not for arc"),
        ("0\n", ["--forecaster", "arc", "--cell", "walk"], "--cell is not for arc"),
        ("0\n", ["--cell", "best"], "'best' is not one of 'walk', 'lowest', 'highest'"),
    ],
)
def test_errors_say_what_is_wrong_and_where(text: str, options: list[str], message: str) -> None:
    result = run("forecast", "-", *options, text=text)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_missing_file_is_a_plain_error() -> None:
    result = run("forecast", "there-is-no-such-file.csv")
    assert result.exit_code == 2
    assert result.stderr == "Error: there-is-no-such-file.csv does not exist: no such file\n"


def test_files_that_are_no_text_are_a_plain_error(tmp_path: Path) -> None:
    for content in (b"PAR1\x00\xff\xfe", b"0\n\x00\n"):
        source = tmp_path / "outcomes.parquet"
        source.write_bytes(content)
        result = run("forecast", str(source))
        assert result.exit_code == 2
        assert isinstance(result.exception, SystemExit)
        assert "Parquet" in result.stderr or "must be an outcome, 0 or 1" in result.stderr


def test_an_output_that_cannot_be_written_is_a_plain_error(tmp_path: Path) -> None:
    result = run(
        "forecast", "-", "-o", str(tmp_path / "no such folder" / "forecasts.csv"), text="0\n1\n"
    )
    assert result.exit_code == 2
    assert "cannot be written (-o): there is no folder" in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_full_disk_is_a_plain_error() -> None:
    full = Path("/dev/full")
    if full.exists():
        result = run("forecast", "-", "-o", str(full), text="0\n" * 100_000)
        assert result.exit_code == 1
        assert "No space left" in result.stderr


def test_output_to_standard_output_by_name_and_never_over_the_input(tmp_path: Path) -> None:
    assert run("forecast", "-", "-o", "-", text="1\n").stdout == "outcome,forecast\n1,0.0\n"
    source = tmp_path / "outcomes.csv"
    source.write_text("y\n1\n")
    result = run("forecast", str(source), "-o", str(source))
    assert result.exit_code == 2
    assert "FILE and -o must not be the same file" in result.stderr
    assert source.read_text() == "y\n1\n"


def test_a_refused_file_leaves_the_output_alone(tmp_path: Path) -> None:
    target = tmp_path / "forecasts.csv"
    target.write_text("precious")
    assert run("forecast", "-", "-o", str(target), text="0\n5\n").exit_code == 2
    assert target.read_text() == "precious"


def test_options_reach_the_forecaster() -> None:
    options = ["--grid", "7", "--at", "upper", "--cell", "highest", "--horizon", "20"]
    result = run("forecast", "-", *options, text="1\n0\n")
    assert result.stderr.startswith(
        "AlmostOneStepAhead(horizon=20, grid=7, at='upper', cell='highest')\n"
    )


def test_help_and_version() -> None:
    assert run("--version").stdout == f"truecast, version {tc.__version__}\n"
    assert "forecast" in run("--help").stdout
    text = run("forecast", "-h").stdout
    for word in (
        "--outcome",
        "--forecaster",
        "--horizon",
        "--grid",
        "--at",
        "--cell",
        "--output",
        "Examples:",
    ):
        assert word in text
    assert "\n    truecast forecast outcomes.csv -o forecasts.csv\n" in text
    assert "\\b" not in text


@pytest.mark.slow("starts the command")
def test_a_reader_that_leaves_early_is_no_error_to_report() -> None:
    command = [Path(sys.executable).with_name("truecast"), "forecast", "-"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write("0\n1\n" * 1_000_000)
        process.stdin.close()
        assert process.stdout.readline() == "outcome,forecast\n"
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.slow("starts the command")
def test_the_command_is_installed() -> None:
    command = Path(sys.executable).with_name("truecast")
    done = subprocess.run(
        [command, "forecast", "-"], input="1\n0\n", capture_output=True, text=True, check=True
    )
    assert done.stdout == "outcome,forecast\n1,0.5\n0,0.5\n"


def test_json_and_skipped_rows_of_a_forecast(tmp_path: Path) -> None:
    done = run(
        "forecast",
        "-",
        "-o",
        str(tmp_path / "out.csv"),
        "--json",
        "--skip-bad",
        text="y\n0\n7\n1\n",
    )
    found = json.loads(done.stdout)
    f = tc.AlmostOneStepAhead(horizon=2)
    f.forecast_many([0, 1])
    assert (found["rows"], found["skipped"], found["rate"]) == (2, 1, 0.5)
    assert found["certificate"]["bound"] == f.certificate.bound
    assert found["forecaster"] == repr(f)
    assert done.stderr == "1 bad row skipped\n"
    done = run(
        "forecast",
        "-",
        "-o",
        str(tmp_path / "out.csv"),
        "--json",
        "--forecaster",
        "arc",
        text="y\n0\n1\n",
    )
    arc = tc.Arc()
    arc.forecast_many([0, 1])
    found, names = (
        json.loads(done.stdout),
        ("rounds", "energy", "smooth_error", "lower_distance", "bound", "a_priori"),
    )
    assert found["forecaster"] == "Arc()"
    assert [found["certificate"][name] for name in names] == [
        getattr(arc.certificate, name) for name in names
    ]
    done = run("forecast", "-", "--skip-bad", text="y\n7\n")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: standard input has no good row: all 1 were skipped\n",
    )
