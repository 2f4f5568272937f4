"""`truecast arena`, as a user types it."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from truecast.arena.roster import ADVERSARIES, FORECASTERS
from truecast.arena.rows import COLUMNS
from truecast.arena.tournament import tournament
from truecast.cli import main

QUICK = ("--forecaster", "aosa", "--forecaster", "foster",
         "--adversary", "coins", "--adversary", "threshold",
         "--seeds", "2", "--workers", "1")  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["arena", *arguments])


def expected(*horizons: int) -> object:
    players = {name: FORECASTERS[name] for name in ("aosa", "foster")}
    opponents = {name: ADVERSARIES[name] for name in ("coins", "threshold")}
    return tournament(players, opponents, horizons, 2, workers=1)


@pytest.mark.slow("draws pictures")
def test_prints_and_plots() -> None:
    result = run("--rounds", "20,50", *QUICK)
    assert result.exit_code == 0, result.output
    results = expected(20, 50)
    assert result.stdout.startswith(results.text(80))  # type: ignore[attr-defined]
    assert result.stdout.count("against each adversary") == 2
    assert results.against(20).text(80) in result.stdout  # type: ignore[attr-defined]
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stderr == "picture written to arena.svg\n"
    picture = Path("arena.svg").read_text()
    assert picture.startswith("<?xml")
    run("--rounds", "20,50", *QUICK)
    assert Path("arena.svg").read_text() == picture  # the same names and no date in it
    assert run("--rounds", "20", *QUICK, "--plot", "there.png").exit_code == 0
    assert Path("there.png").read_bytes().startswith(b"\x89PNG")


def test_markdown_and_csv_and_no_plot() -> None:
    result = run("--rounds", "20", *QUICK, "--markdown", "--csv", "games.csv", "--no-plot")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(expected(20).markdown())  # type: ignore[attr-defined]
    assert "| forecaster | coins | threshold |" in result.stdout
    assert result.stderr == "games written to games.csv\n"
    with open("games.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 3 + 4  # one game says all of aosa and the threshold, who toss no coins
    assert os.listdir() == ["games.csv"]


def test_it_goes_on_from_a_file() -> None:
    first = run("--rounds", "20", *QUICK, "--no-plot", "--resume", "games.jsonl")
    kept = Path("games.jsonl").read_bytes()
    assert kept.count(b"\n") == 8
    again = run("--rounds", "20", *QUICK, "--no-plot", "--resume", "games.jsonl")
    assert again.stdout == first.stdout
    assert Path("games.jsonl").read_bytes() == kept


def test_list_names_everybody() -> None:
    result = run("--list")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines() if re.match("  [a-z]", line)]
    assert listed == [*FORECASTERS, *ADVERSARIES]
    assert "AlmostOneStepAhead(horizon=10000, grid=100" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--rounds", "ten"],
            "whole numbers with commas between them, such as 100,1000; got 'ten'",
        ),
        (["--rounds", ""], "whole numbers with commas"),
        (["--rounds", "0"], "--rounds must be a whole number from 1"),
        (["--rounds", "5,5"], "--rounds must be one number or more, none of them twice"),
        (["--seeds", "0"], "--seeds must be a whole number from 1"),
        (["--workers", "0"], "--workers must be a whole number from 1"),
        (
            ["--forecaster", "nobody"],
            f"--forecaster must be one of {', '.join(FORECASTERS)}; got 'nobody'",
        ),
        (
            ["--adversary", "aosa"],
            f"--adversary must be one of {', '.join(ADVERSARIES)}; got 'aosa'",
        ),
        (["--plot", "arena.gif"], "--plot must end in .svg, .png, .pdf; got 'arena.gif'"),
        (["--plot", "a.svg", "--no-plot"], "contradict"),
        (["--plot", "nowhere/a.svg"], "there is no folder 'nowhere'"),
        (["--csv", "nowhere/a.csv"], "there is no folder 'nowhere'"),
        (["--resume", "nowhere/a.jsonl"], "there is no folder 'nowhere'"),
        (
            ["--resume", "a", "--csv", "./a"],
            "--csv and --resume must not be the same file; got 'a'",
        ),
        (
            ["--plot", "a.svg", "--csv", "a.svg"],
            "--plot and --csv must not be the same file; got 'a.svg'",
        ),
        (
            ["--resume", "precious"],
            "--resume must be a file of a tournament, or not exist yet, got 'precious'",
        ),
    ],
)
def test_errors_say_what_is_wrong_before_anything_is_played(
    options: list[str], message: str
) -> None:
    Path("precious").write_text("gold")
    result = run(*options)
    assert result.exit_code == 2
    assert message in re.sub(r"\s+", " ", result.stderr)
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert os.listdir() == ["precious"]
    assert Path("precious").read_text() == "gold"


def test_a_full_disk_is_a_plain_error() -> None:
    if Path("/dev/full").exists():
        result = run("--rounds", "5", *QUICK, "--no-plot", "--csv", "/dev/full")
        assert result.exit_code == 1
        assert "No space left" in result.stderr
        assert isinstance(result.exception, SystemExit)


@pytest.mark.slow("starts the command")
def test_a_reader_that_leaves_early_is_no_error_to_report() -> None:
    Path("start.py").write_text(START)
    command = [sys.executable, "start.py", "arena", "--rounds", "5", *QUICK, "--no-plot"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""


def test_without_matplotlib_there_is_a_table_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("--rounds", "5", *QUICK)
    assert result.exit_code == 0
    assert "pip install 'truecast[plot]'" in result.stderr
    assert result.stdout.startswith("CalDist")
    asked = run("--rounds", "5", *QUICK, "--plot", "a.svg")
    assert asked.exit_code == 2
    assert "--plot needs matplotlib: pip install 'truecast[plot]'" in asked.stderr
    assert asked.stdout == ""


def test_help_says_all_and_does_not_wait_for_the_arena() -> None:
    text = run("--help").stdout
    for word in ("--rounds", "--seeds", "--forecaster", "--adversary", "--resume", "--plot",
                 "--no-plot", "--csv", "--markdown", "--workers", "--list", "arena.svg",
                 "Examples:"):  # fmt: skip
        assert word in text
    assert "\\b" not in text
    code = (
        "import sys; from truecast.cli import main; main(['--help'], standalone_mode=False); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "arena " in done.stdout
    loaded = done.stdout.splitlines()[-1].split()
    assert not [
        name
        for name in loaded
        if name.startswith(("truecast.arena", "matplotlib", "multiprocessing"))
    ]


START = """
import signal
from truecast.cli import main
if __name__ == "__main__":
    # the tests may run where Ctrl-C is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
"""


@pytest.mark.slow("starts the command and waits for it")
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_ends_it_in_a_line_that_says_how_to_go_on() -> None:
    Path("start.py").write_text(START)
    command = [
        sys.executable,
        "start.py",
        "arena",
        "--rounds",
        "3000",
        *QUICK[:8],
        "--seeds",
        "200",
        "--no-plot",
    ]
    options = ["--workers", "2", "--resume", "some games.jsonl"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([*command, *options], env=environment, stdout=-1, stderr=-1,
                               text=True, start_new_session=True)  # fmt: skip
    games = Path("some games.jsonl")
    while process.poll() is None and not (games.exists() and games.read_bytes().count(b"\n") > 3):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    kept = "finished games are in 'some games.jsonl'; the same command continues from there"
    assert errors == f"stopped; {kept}\n"
    assert games.read_bytes().count(b"\n") > 3


def test_ctrl_c_without_a_file_says_how_to_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*players: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("truecast.arena.tournament", interrupted)
    result = run(*QUICK)
    assert result.exit_code == 130
    assert result.stderr == "stopped; to be able to continue later, use --resume FILE\n"
    assert os.listdir() == []


@pytest.mark.slow("starts the command in a terminal")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal that a test can read")
def test_progress_is_shown_on_a_terminal() -> None:
    import pty

    Path("start.py").write_text(START)
    ours, theirs = pty.openpty()
    command = [sys.executable, "start.py", "arena", "--rounds", "5", *QUICK, "--no-plot"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=theirs, check=True
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "7 of 7 games" in shown
    assert b"7/7" not in done.stdout
