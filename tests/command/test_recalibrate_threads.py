"""`truecast recalibrate` with a thread that reads and writes: the same files, however it ends."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from truecast import _threads
from truecast.cli import main
from truecast.files import playing, recalibration, records

ROWS = 3000
ENDINGS = pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
COMMAND = "recalibrate", "--state", "s.json", "--time", "t", "--outcome", "y", "--score", "p"


def run(ending: str, *options: str) -> Result:
    return CliRunner().invoke(
        main, [*COMMAND, "scores" + ending, "-o", "out" + ending, *options], catch_exceptions=False
    )


def write(frame: pl.DataFrame, ending: str) -> None:
    kind = {".csv": "csv", ".jsonl": "ndjson", ".parquet": "parquet"}[ending]
    getattr(frame, f"write_{kind}")("scores" + ending)


def files() -> dict[str, bytes]:
    """All files here but those that were read, and what is in them."""
    found = (path for path in Path().rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if path.stem != "scores"}


@pytest.fixture
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    p = rng.random(ROWS).round(4)
    return pl.DataFrame({"t": np.arange(ROWS), "p": p, "y": (rng.random(ROWS) < p).astype(int)})


@pytest.fixture(autouse=True)
def _in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUECAST_THREADS", raising=False)
    monkeypatch.setattr(_threads, "_quota", lambda: 1 << 20)
    monkeypatch.setattr(records, "_BLOCK", 1 << 12)
    monkeypatch.setattr("truecast.files.parquet._ROWS", 400)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def by_one_and_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object]], list[object]]:
    """Do something with one thread and with two, each in a new folder of the same name."""

    def both(do: Callable[[], object]) -> list[object]:
        found = []
        for threads in (1, 2):
            folder = tmp_path / "here"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            monkeypatch.chdir(folder)
            monkeypatch.setattr(_threads, "_processors", lambda threads=threads: threads)
            found.append(do())
        return found

    return both


@ENDINGS
def test_the_same_output_and_state(ending: str, frame: pl.DataFrame, by_one_and_two) -> None:
    def do() -> object:
        write(frame, ending)
        done = run(ending)
        assert done.exit_code == 0
        return files(), done.output

    one, two = by_one_and_two(do)
    assert one == two


@ENDINGS
def test_stopped_it_leaves_the_same_and_is_continued(
    ending: str, frame: pl.DataFrame, by_one_and_two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint is of the rows before it, not of those that were read meanwhile."""
    play = playing.InOrder.play

    def stopped(rows: playing.InOrder, part: object) -> object:
        if rows.chunks == 5:
            raise KeyboardInterrupt
        return play(rows, part)

    def do() -> object:
        write(frame, ending)
        with monkeypatch.context() as patch:
            patch.setattr(playing.InOrder, "play", stopped)
            assert run(ending).exit_code == 130
        checkpoint = json.loads(Path("s.json.part").read_text())
        done = run(ending)
        assert done.exit_code == 0
        return checkpoint, files(), done.output

    one, two = by_one_and_two(do)
    assert one == two


@ENDINGS
def test_a_bad_row_far_down_leaves_nothing(
    ending: str, frame: pl.DataFrame, by_one_and_two
) -> None:
    def do() -> object:
        bad = pl.when(pl.col("t") == ROWS - 2).then(1.5).otherwise("p")
        write(frame.with_columns(p=bad), ending)
        done = run(ending)
        assert done.exit_code == 2
        assert "1.5" in done.stderr
        assert files() == {}
        return done.stderr

    one, two = by_one_and_two(do)
    assert one == two


def test_rows_of_a_pipe_are_written_when_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = 1 << 16  # bytes that are taken from a pipe at once
    monkeypatch.setattr(_threads, "_processors", lambda: 2)
    monkeypatch.setattr(records, "_BLOCK", block)
    os.mkfifo("scores.csv")
    written = []

    def feed() -> None:
        with Path("scores.csv").open("wb") as pipe:
            pipe.write(b"t,y,p\n" + b"1,1,0.5\n" * (block * 3 // 16))
            pipe.flush()
            part = Path("out.csv.part")
            until = time.monotonic() + 10
            while not written and time.monotonic() < until:
                time.sleep(0.01)
                written.extend([1] * (part.exists() and part.stat().st_size > block))

    feeding = threading.Thread(target=feed)
    feeding.start()
    assert run(".csv").exit_code == 0
    feeding.join()
    assert written
