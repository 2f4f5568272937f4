"""Outputs that cannot be written: a line that names the file and the option, and nothing left
behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from truecast.cli import main

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")

ARENA = [
    "arena",
    "--rounds",
    "20",
    "--seeds",
    "1",
    "--forecaster",
    "aosa",
    "--adversary",
    "coins",
    "--workers",
    "1",
]
OUTPUTS = [
    (["report", "scores.csv"], "-o", "out.html"),
    (["distance", "scores.csv"], "--witness", "out.csv"),
    (["forecast", "scores.csv", "--outcome", "y"], "-o", "out.csv"),
    (["recalibrate", "scores.csv", "-o", "new.csv"], "--report", "out.html"),
    ([*ARENA, "--no-plot"], "--csv", "out.csv"),
    (ARENA, "--plot", "out.svg"),
]
RESUMED = ([*ARENA, "--no-plot"], "--resume", "out.jsonl")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("y,p\n" + "1,0.75\n0,0.25\n" * 20)


def refused(words: list[str], option: str, name: str) -> str:
    done = CliRunner().invoke(main, [*words, option, name])
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (1, 2)
    assert "Traceback" not in done.output
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "option", "name"), [*OUTPUTS, RESUMED], ids=lambda value: str(value)[:20]
)
def test_links_that_go_in_circles(words: list[str], option: str, name: str) -> None:
    os.symlink(name, name)
    said = refused(words, option, name)
    assert said == f"Error: {name} cannot be written ({option}): Too many levels of symbolic links"
    assert sorted(os.listdir()) == sorted(["scores.csv", name])


@pytest.mark.parametrize(("words", "option", "name"), OUTPUTS, ids=lambda value: str(value)[:20])
def test_a_disk_that_is_full(words: list[str], option: str, name: str) -> None:
    os.symlink("/dev/full", name)
    assert refused(words, option, name).startswith(
        f"Error: {name} cannot be written ({option}): No space left on"
    )
    assert set(os.listdir()) <= {"scores.csv", name, "new.csv"}


@pytest.mark.parametrize(
    ("words", "option", "name"), [*OUTPUTS, RESUMED], ids=lambda value: str(value)[:20]
)
def test_a_folder_that_must_not_be_written(
    words: list[str], option: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("closed").mkdir()
    real = os.access
    # for root
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "closed" and real(path, mode)
    )
    said = refused(words, option, f"closed/{name}")
    assert said == f"Error: closed/{name} cannot be written ({option}): Permission denied"
    assert sorted(os.listdir()) == ["closed", "scores.csv"]
    assert os.listdir("closed") == []


@pytest.mark.parametrize(
    ("words", "option", "name"), [*OUTPUTS, RESUMED], ids=lambda value: str(value)[:20]
)
def test_a_folder_is_no_file(words: list[str], option: str, name: str) -> None:
    Path(name).mkdir()
    assert name in refused(words, option, name)
    assert sorted(os.listdir()) == sorted(["scores.csv", name])


@pytest.mark.parametrize(
    ("words", "option", "name"), [*OUTPUTS, RESUMED], ids=lambda value: str(value)[:20]
)
def test_a_name_that_is_too_long(words: list[str], option: str, name: str) -> None:
    long = "x" * 300 + name
    assert (
        refused(words, option, long)
        == f"Error: {long} cannot be written ({option}): File name too long"
    )


def test_an_input_that_is_a_link_in_circles() -> None:
    os.symlink("loop.csv", "loop.csv")
    for command in ("measure", "report", "distance", "forecast"):
        done = CliRunner().invoke(main, [command, "loop.csv"])
        assert isinstance(done.exception, SystemExit)
        assert "loop.csv" in done.stderr


@pytest.mark.slow("starts the command")
def test_standard_output_that_is_full() -> None:
    with open("/dev/full", "wb") as full:
        words = [sys.executable, "-m", "truecast", "measure", "scores.csv"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("No space left on device\n")
    assert "Traceback" not in done.stderr
