"""Files of all kinds, and a process that is killed just before anything that it does to the
disk."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from truecast import files
from truecast.cli import main
from truecast.files import recalibration

__all__ = ["READ", "WRITE", "Killed", "killed_after", "kills", "kills_that_change_nothing"]

Write = Callable[[pl.DataFrame, Path], object]
WRITE: dict[str, Write] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t", check_extension=False),
    ".jsonl": lambda frame, path: frame.write_ndjson(path, check_extension=False),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
}
READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": pl.read_csv,
    ".tsv": lambda path: pl.read_csv(path, separator="\t"),
    ".jsonl": pl.read_ndjson,
    ".parquet": pl.read_parquet,
    ".csv.gz": pl.read_csv,
}


class Killed(BaseException):
    """As a power cut: no code of ours is to mend anything after it."""


def _died(out: Any) -> None:
    """Close the file as a system does whose process has died."""
    if hasattr(out, "_raw"):
        out._raw.close()


@contextlib.contextmanager
def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the process be killed just before the so-manyth thing that it does to the disk."""
    left = [steps]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for owner, names in (
            (Path, ("replace", "unlink", "write_text", "mkdir")),
            (os, ("fsync", "unlink", "rmdir")),
            (shutil, ("copyfile",)),
            (files.output._TextOutput, ("write", "close")),
            (files.output._ParquetOutput, ("write",)),
        ):
            for name in names:
                patch.setattr(owner, name, counted(getattr(owner, name)))
        patch.setattr(recalibration.Recalibration, "_give_up", lambda run, out, *rest: _died(out))
        yield left


def kills(
    command: list[str], start: dict[Path, bytes | None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    """Kill a command before the first thing that it does to the disk, before the second, and so on.

    Each time it finds these files, or none where None is. Yields how much it had done, until it is
    not killed.
    """
    for steps in range(1000):
        for path, content in start.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        with killed_after(steps, monkeypatch) as left:
            with contextlib.suppress(Killed):
                CliRunner().invoke(main, command, catch_exceptions=False)
            if left[0] >= 0:
                return
        yield steps


def kills_that_change_nothing(
    command: list[str],
    start: dict[Path, bytes | None],
    learned: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """How often it was killed; started again, it always left the files that are there now.

    The first of the files is the output; of the others, `learned` says what matters.
    """
    target = next(iter(start))
    names = sorted(Path().iterdir())
    whole, after = target.read_bytes(), learned()
    steps = -1
    for steps in kills(command, start, monkeypatch):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, (steps, done.output)
        assert target.read_bytes() == whole, steps
        assert learned() == after, steps
        assert sorted(Path().iterdir()) == names, steps
    return steps + 1
