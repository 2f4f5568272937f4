"""What people see: on a terminal, within 80 columns, and nothing raw from a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from truecast.cli import main

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="needs a terminal that a test can read"
)

RNG = np.random.default_rng(5)
P = RNG.random(400).round(2)
FRAME = pl.DataFrame(
    {"y": (RNG.random(400) < P).astype(int), "p": P, "g": RNG.choice(["a", "b"], 400)}
)
LONG = "a_very_long_word_" * 9
EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.\u2066x\x9b31m\r\x08\x7f\u200b\u2028"
ARENA = [
    "--rounds",
    "20,50",
    "--seeds",
    "1",
    "--forecaster",
    "aosa",
    "--adversary",
    "coins",
    "--workers",
    "1",
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("scores.csv")


class Screen:
    """A terminal of 80 columns, as far as progress bars need one: what stands on it after some
    bytes."""

    _SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(.)", re.DOTALL)

    def __init__(self, columns: int = 80) -> None:
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0

    def feed(self, text: str) -> None:
        for number, letter, sign in self._SEQUENCE.findall(text):
            if sign:
                self._put(sign)
            elif letter == "A":
                self.row = max(0, self.row - int(number or 1))
            elif letter == "K":
                line = self.lines[self.row]
                self.lines[self.row] = "" if number == "2" else line[: self.column]
            else:
                assert letter in "mhl", letter  # colours, and whether the cursor is seen

    def _put(self, sign: str) -> None:
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self.row, self.column = self.row + 1, 0
        else:
            assert sign.isprintable(), sign
            if self.column == self.columns:
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + sign + line[self.column + 1 :]
            self.column += 1
        self.lines += [""] * (self.row + 1 - len(self.lines))


def on_terminal(*words: str, stdout: bool = True) -> tuple[int, str]:
    """Run the command on a terminal; return its exit code and all bytes that came."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "truecast", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.DEVNULL,
        stderr=theirs,
        env=environment | {"TERM": "xterm-256color", "PYTHONWARNINGS": "ignore"},
    )
    os.close(theirs)
    got = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # how a terminal says that nobody is left
            part = b""
        if not part:
            break
        got += part
    os.close(ours)
    return process.wait(), got.decode()


def seen(*words: str) -> list[str]:
    """The lines on the screen after a command."""
    code, text = on_terminal(*words)
    assert code == 0, text
    screen = Screen()
    screen.feed(text)
    return [line.rstrip() for line in screen.lines]


def test_the_model_of_a_terminal() -> None:
    screen = Screen(5)
    screen.feed("bar\r\n\x1b[1A\x1b[2Ksaid\r\nabcdefg\r\x1b[Kx\x1b[?25h")
    assert screen.lines == ["said", "abcde", "x"]


@pytest.mark.slow("starts the command in a terminal")
@pytest.mark.parametrize(
    "words",
    [
        ["measure", "scores.csv"],
        ["report", "scores.csv"],
        ["distance", "scores.csv", "--rtol", "0.1"],
        ["forecast", "scores.csv", "--outcome", "y", "-o", "f.csv"],
        ["recalibrate", "scores.csv", "-o", "new.csv"],
        ["recalibrate", "scores.csv", "-o", "new.csv", "--state", "s.json", "--report", "r.html"],
        ["recalibrate", "scores.csv", "-o", "-"],
        ["arena", *ARENA, "--no-plot"],
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_nothing_of_the_bar_is_left_among_what_is_said(words: list[str]) -> None:
    done = CliRunner().invoke(main, words)
    plain = done.output.splitlines()
    for path in ("s.json", "new.csv"):
        Path(path).unlink(missing_ok=True)
    assert sorted(filter(None, seen(*words))) == sorted(filter(None, plain))
    assert done.exit_code == 0


@pytest.mark.slow("starts the command in a terminal")
def test_what_is_said_while_the_bar_is_shown_has_a_line_of_its_own() -> None:
    lines = seen("recalibrate", "scores.csv", "-o", "new.csv")
    assert lines[0] == "scores.csv: outcome 'y', score 'p'"
    assert lines[1] == "after 400 rounds"


@pytest.mark.slow("starts the command in a terminal")
def test_the_bar_is_shown() -> None:
    assert "counting" in on_terminal("measure", "scores.csv")[1]
    assert "recalibrating" in on_terminal("recalibrate", "scores.csv", "-o", "-", stdout=False)[1]
    assert "recalibrating" not in on_terminal("recalibrate", "scores.csv", "-o", "-")[1]


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def named(column: str) -> None:
    """Files whose columns and groups are called so, and more scores than fit beside each other."""
    frame = FRAME.rename({"p": column, "g": f"{column}g"}).with_columns(
        pl.Series(f"{column}g", [f"{column}{at % 3}" for at in range(400)])
    )
    more = {f"{column}{at}": FRAME["p"] ** (1 + at) for at in range(7)}
    frame.with_columns(**more).write_parquet("names.parquet")


def columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def all_commands(name: str) -> list[list[str]]:
    """Every command with names like this, and errors that have them."""
    file, both = "names.parquet", ["--outcome", "y", "--score", name]
    several = [word for at in range(7) for word in ("--score", f"{name}{at}")]
    return [
        ["measure", file, *both, "--by", f"{name}g"],
        ["measure", file, *both, *several],
        ["measure", file, *both, "--resamples", "0"],
        ["measure", file, *both, "--json", "--by", f"{name}g"],
        ["measure", file],
        ["measure", file, "--outcome", name, "--score", f"{name}1"],
        ["measure", file, "--outcome", "y", "--score", f"{name}g"],
        ["measure", file, "--outcome", name, "--score", name],
        ["measure", file, "--outcome", "y", "--score", "p" + name],
        ["measure", file, "--by", name, "--by", name],
        ["measure", file, *both, "--weight", f"{name}g"],
        ["measure", file, f"--{name}"],
        ["measure", name[:90]],
        [name],
        ["report", file, *both, "--by", f"{name}g", "--title", name],
        ["report", file, *both, "-o", f"{name[:60]}.html"],
        ["report", file, *both, "-o", f"{name[:60]}/x.html"],
        ["report", file, *both, "-o", name * 20],
        ["distance", file, *both, "--rtol", "0.5"],
        ["distance", file, *both, "--rtol", "0.5", "--witness", f"{name[:60]}.csv"],
        ["distance", file, *both, "--rtol", "-1"],
        ["distance", file, *both, "--weight", f"{name}1"],
        ["forecast", file, "--outcome", "y", "-o", f"{name[:60]}.csv"],
        ["forecast", file, "--outcome", name],
        ["forecast", file, "--outcome", "y", "--at", name],
        ["recalibrate", file, *both, "-o", f"{name[:60]}.parquet"],
        [
            "recalibrate",
            file,
            *both,
            "--by",
            f"{name}g",
            "-o",
            "n.parquet",
            "--report",
            f"{name[:60]}.html",
        ],
        ["recalibrate", file, *both, "-o", "n.parquet", "--column", name],
        ["arena", *ARENA, "--plot", f"{name[:60]}.svg", "--csv", f"{name[:60]}.csv"],
        ["arena", *ARENA, "--resume", f"{name[:60]}.jsonl", "--no-plot"],
        ["arena", "--list"],
        ["arena", "--forecaster", name],
        ["arena", "--rounds", name],
        ["arena", "--plot", name],
    ]


@pytest.mark.slow("runs every command")
def test_results_fit_eighty_columns_whatever_things_are_called() -> None:
    for name in (LONG, "\u6587" * 40):
        named(name)
        for words in all_commands(name):
            if "--json" in words or words[0] == "recalibrate":
                continue
            done = run(*words)
            assert done.exception is None or isinstance(done.exception, SystemExit), words
            for line in done.stdout.splitlines():
                assert columns(line) <= 80 or " written to " in line, (words, line)


@pytest.mark.slow("runs every command")
def test_messages_fit_a_terminal_of_eighty_columns_and_are_a_line_elsewhere() -> None:
    named(LONG)
    every = all_commands(LONG)
    for words in (every[0], every[4], every[8], every[11], every[16], every[20]):  # a second each
        code, text = on_terminal(*words)
        assert "Traceback" not in text
        plain = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text).replace("\r\n", "\n")
        for line in re.split("[\r\n]", plain):
            assert len(line) <= 80, (words, line)
        if code:
            assert run(*words).stderr.splitlines()[-1].startswith("Error: ")


def test_the_guess_said_of_long_names() -> None:
    frame = FRAME.rename({"p": f"{LONG}prob"})
    frame.write_csv("long.csv")
    done = run("measure", "long.csv")
    assert done.exit_code == 0
    assert len(done.stderr) < 120


@pytest.mark.slow("runs every command")
def test_names_cannot_steer_the_terminal() -> None:
    named(EVIL)
    raw = set(EVIL) - set("[2J]0;ownedgnp.x31m")
    for words in all_commands(EVIL):
        done = run(*words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (
            words,
            done.exception,
        )
        assert not raw & set(done.output), (words, done.output)
        assert "Traceback" not in done.output
    data = json.loads(
        run("measure", "names.parquet", "--outcome", "y", "--score", EVIL, "--json").stdout
    )
    assert list(data["scores"]) == [EVIL]


def test_names_of_files_cannot_either() -> None:
    name = EVIL.replace("/", "").encode().decode() + ".csv"
    FRAME.write_csv(name)
    for command in (
        ["measure"],
        ["report"],
        ["distance", "--rtol", "0.5"],
        ["forecast", "--outcome", "y"],
    ):
        done = run(command[0], name, *command[1:])
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output
        assert "\u202e" not in done.output
    title = re.search("<title>(.*?)</title>", Path("report.html").read_text())
    assert title is not None
    assert "\x1b" not in title[1]


@pytest.mark.slow("starts the command")
def test_letters_that_the_terminal_does_not_have() -> None:
    FRAME.rename({"p": "\u6587_prob"}).write_csv("scores.csv")
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    words = [sys.executable, "-m", "truecast", "measure", "scores.csv"]
    done = subprocess.run(words, capture_output=True, env=environment, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert b"\\u6587_prob" in done.stdout
