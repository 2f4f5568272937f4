"""`truecast recalibrate` with forged states and disks that would not: one line, and nothing else is
touched."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.cli import main
from truecast.files import output, recalibration, records, unfinished
from truecast.files.prints import Prints

RNG = np.random.default_rng(9)
FRAME = pl.DataFrame(
    {
        "id": [f"k{k}" for k in range(300)],
        "y": RNG.integers(0, 2, 300),
        "p": RNG.random(300).round(3),
    }
).with_columns(y=pl.when(pl.int_range(300) % 7 > 0).then("y"), q=1 - pl.col("p"))
KINDS = {
    "in order": ["--unknown"],
    "by id": ["--id", "id"],
    "by id, of classes": ["--id", "id", "--outcome", "y", "--scores", "q,p", "--classes", "0,1"],
    "in time": ["--unknown", "--time", "when"],
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def command(*options: str, out: str = "here/out.csv") -> list[str]:
    return ["recalibrate", "here/log.csv", "-o", out, "--state", "here/s.json", *options]


@pytest.fixture(autouse=True)
def _here_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 1 << 10)
    monkeypatch.setattr(recalibration, "_CHUNKS", 2)
    monkeypatch.chdir(tmp_path)
    fresh()


def fresh() -> None:
    for folder in ("here", "precious.csv.part", "other"):
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
    Path("precious.csv.part", "000000000.piece").write_text("precious")
    Path("precious.csv.part", "whole").write_text("precious")
    Path("precious.csv").write_text("precious")
    FRAME.with_columns(when=pl.int_range(300)).write_csv("here/log.csv")


def everything(*skip: str) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and str(path) not in skip
    }


def signed(saved: dict[str, Any]) -> str:
    """A state with the checksum that it needs: a forger can count."""
    saved = {name: value for name, value in saved.items() if name != "crc32"}
    text = json.dumps(saved, sort_keys=True, separators=(",", ":"))
    return json.dumps(saved | {"crc32": zlib.crc32(text.encode())})


def good(kind: str) -> dict[str, Any]:
    """Leave what a good run leaves, and return its state."""
    for name, written in after_a_good_run(kind, Path.cwd()).items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(written)
    found: dict[str, Any] = json.loads(Path("here/s.json").read_text())
    return found


@cache  # not for each example anew
def after_a_good_run(kind: str, folder: Path) -> dict[str, bytes]:
    assert run(*command(*KINDS[kind])).exit_code == 0
    return everything()


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in nested data."""
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        so_far,
        *(found for name, each in list(entries)[:40] for found in paths(each, (*so_far, name))),
    ]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**62, 2**63, 2**80, -(2**70), 10**4000]),
    st.floats(),
    st.sampled_from(["", "A" * 40, "\ud800", "/", "..", "\0", "number", "zoned", "local"]),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
)


def changed(data: st.DataObject, run: Any) -> Any:
    """The record of a run with one to three things other than they were."""
    record = json.loads(json.dumps(run))
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(paths(record)[1:]))
        owner = record
        for step in way:
            owner = owner[step]
        old = owner[last]
        kinds = [VALUES]
        if isinstance(old, str) and old:
            kinds.append(
                st.integers(0, len(old) - 1).map(lambda at, old=old: old[:at] + "B" + old[at + 1 :])
            )
            kinds.append(st.integers(0, len(old)).map(lambda at, old=old: old[:at]))
        if type(old) is int and abs(old) < 1 << 60:
            kinds.append(st.sampled_from([old + 1, old - 1, -old, old * 2, float(old)]))
        if isinstance(old, list):
            kinds.append(st.just(old * 2))
        owner[last] = data.draw(st.one_of(kinds))
        if isinstance(owner, dict) and data.draw(st.integers(0, 9)) == 0:
            del owner[last]
            break
    return record


@pytest.mark.slow("tries many examples")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [False, True])
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_forged_record_of_a_run_is_refused_or_harmless(
    kind: str, part: bool, data: st.DataObject
) -> None:
    fresh()
    saved = good(kind)
    record = changed(data, saved["run"])
    Path("here/s.json.part" if part else "here/s.json").write_text(signed(saved | {"run": record}))
    ours = "here/out.csv", "here/s.json", "here/s.json.part", "here/out.csv.part"
    before = everything(*ours)
    done = run(*command(*KINDS[kind]))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 2)
    if done.exit_code:
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        assert done.stderr.endswith(line + "\n")
        assert "here/" in line
    assert everything(*ours) == before


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("where", ["precious.csv", "other/out.csv", "here/log.csv"])
def test_a_record_cannot_name_what_is_removed_or_replaced(where: str, complete: bool) -> None:
    """The command line alone tells what may be touched."""
    saved = good("in order")
    piece = unfinished.mark(Path("precious.csv.part", "000000000.piece"))
    written = (
        [1, piece[1]] if not complete else list(unfinished.mark(Path("precious.csv.part", "whole")))
    )
    record = saved["run"] | {
        "output": str(Path(where).resolve()),
        "written": written,
        "complete": complete,
    }
    Path("here/s.json.part").write_text(signed(saved | {"run": record}))
    before = everything("here/s.json.part")
    done = run(*command("--unknown"))
    assert everything("here/s.json.part") == before
    if complete:
        assert done.exit_code == 2
        assert "s.json.part is of a run to" in done.stderr
        assert "run that command again first; or remove this, to forget it" in done.stderr
    else:
        assert (done.exit_code, "is forgotten; its .part" in done.stderr) == (0, True)


def test_a_folder_in_the_way_is_removed_only_if_it_is_ours() -> None:
    Path("here/out.csv.part").mkdir()
    Path("here/out.csv.part", "thesis.txt").write_text("precious")
    for options in (["--unknown"], ["--id", "id"]):
        done = run(*command(*options))
        said = "out.csv.part is in the way, and contains 'thesis.txt': move it away"
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert Path("here/out.csv.part", "thesis.txt").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="no such links")
@pytest.mark.parametrize("kind", ["in order", "by id"])
@pytest.mark.parametrize("target", ["precious.csv", "precious.csv.part", "other/nothing"])
@pytest.mark.parametrize(
    "name", ["out.csv.part", "out.csv.lock", "s.json.part", "s.json.part.part", "s.json.lock"]
)
def test_a_link_in_the_way_is_not_followed(name: str, target: str, kind: str) -> None:
    Path("here", name).symlink_to(Path(target).resolve())
    before = everything()
    done = run(*command(*KINDS[kind]))
    option = "-o" if name.startswith("out") else "--state"
    said = f"here/{name} is a link, which is not followed here ({option}): remove it"
    assert (done.exit_code, done.stderr.splitlines()[-1].endswith(said)) == (2, True)
    assert everything() == before
    assert not Path("other/nothing").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no such links")
@pytest.mark.parametrize("words", [["forecast", "-o"], ["distance", "--witness"]])
def test_no_other_command_writes_through_a_link(words: list[str]) -> None:
    Path("here/new.csv.part").symlink_to(Path("precious.csv").resolve())
    Path("here/few.csv").write_text("y,p\n" + "1,0.75\n0,0.25\n" * 20)
    before = everything()
    done = run(words[0], "here/few.csv", "--outcome", "y", words[1], "here/new.csv")
    assert done.exit_code == 0
    assert Path("here/new.csv").read_text().count("\n") > 1
    Path("here/new.csv").unlink()
    assert everything() == before


def forged(out: str, written: list[int], columns: list[str], *, complete: bool) -> str:
    """The record of a run that was stopped, by somebody who knows what is at the end of a link."""
    saved = good("in order")
    unfinished.remove_part(Path("here/out.csv"))
    for name in ("out.csv", "s.json"):
        Path("here", name).unlink()
    record = saved["run"] | {
        "output": str(Path(out).resolve()),
        "written": written,
        "columns": columns,
    }
    empty = {
        "rows": 0,
        "skipped": 0,
        "unknown": 0,
        "base": None,
        "prints": Prints().record(),
        "complete": complete,
    }
    return signed(json.loads(tc.Recalibrator().to_json()) | {"run": record | empty})


@pytest.mark.skipif(sys.platform == "win32", reason="no such links")
@pytest.mark.parametrize(
    "how", ["emptied", "put in place", "whole", "pieces", "a piece that is a link"]
)
def test_a_forged_record_leads_nowhere_through_links(how: str) -> None:
    crc = zlib.crc32(b"precious")
    parquet = how not in ("emptied", "put in place")
    out = f"here/out.{'parquet' if parquet else 'csv'}"
    complete = how in ("put in place", "whole")
    written = {"emptied": [0, 0], "pieces": [1, crc], "a piece that is a link": [1, crc]}.get(
        how, [8, crc]
    )
    columns = ["id (String)", "y (Int64)", "p (Float64)", "recalibrated"]
    if not parquet:
        columns = ["id", "y", "p", "when", "recalibrated"]
    text = forged(out, written, columns, complete=complete)
    pl.read_csv("here/log.csv").drop("when").write_parquet("here/log.parquet")
    Path("here/s.json.part").write_text(text)
    if how == "a piece that is a link":
        Path(f"{out}.part").mkdir()
        Path(f"{out}.part", "000000000.piece").write_text("precious")
        Path(f"{out}.part", "whole").symlink_to(Path("precious.csv").resolve())
    else:
        Path(f"{out}.part").symlink_to(
            Path("precious.csv.part" if parquet else "precious.csv").resolve()
        )
    before = everything()
    done = run(
        "recalibrate",
        f"here/log{Path(out).suffix}",
        "-o",
        out,
        "--state",
        "here/s.json",
        "--unknown",
    )
    assert (done.exit_code, f"{out}.part is " in done.stderr) == (2, True), done.output
    assert everything() == before


def test_a_record_of_nothing_written_vouches_for_no_file() -> None:
    text = forged("here/out.csv", [0, 0], ["id", "y", "p", "when", "recalibrated"], complete=False)
    Path("here/s.json.part").write_text(text)
    Path("here/out.csv.part").write_text("precious")
    done = run(*command("--unknown"))
    assert (done.exit_code, "out.csv.part already exists" in done.stderr) == (2, True)
    assert Path("here/out.csv.part").read_text() == "precious"


def test_a_part_without_a_record_of_a_run_is_not_taken_for_one() -> None:
    Path("here/s.json.part").write_text(tc.Recalibrator().to_json())
    done = run(*command("--unknown"))
    said = "s.json.part already exists and is not from an interrupted run: move it away"
    assert (done.exit_code, said in done.stderr) == (2, True)


def test_a_state_that_is_a_link_stays_one() -> None:
    Path("here/s.json").symlink_to(Path("other/real.json").resolve())
    assert run(*command("--unknown")).exit_code == 0
    assert Path("here/s.json").is_symlink()
    assert (
        tc.Recalibrator.from_json(Path("other/real.json").read_text()).rounds == FRAME["y"].count()
    )


# --- the machine would not


@pytest.mark.skipif(sys.platform == "win32", reason="no such links")
@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("-o", ["-o", "loop.csv"]),
        ("--state", ["-o", "out.csv", "--state", "loop.csv"]),
        ("--report", ["-o", "out.csv", "--report", "loop.csv"]),
    ],
)
def test_a_link_that_leads_to_itself_is_named_with_its_option(
    option: str, arguments: list[str]
) -> None:
    Path("loop.csv").symlink_to("loop.csv")
    done = run("recalibrate", "here/log.csv", "--unknown", *arguments)
    said = f"Error: loop.csv cannot be written ({option}): Too many levels of symbolic links"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert not Path("out.csv").exists()


Refuse = Callable[[str, pytest.MonkeyPatch], None]


def refusing(name: str, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the system refuse to make this, or anything beside it in the making."""
    real = os.open

    def opened(path: str, flags: int, *arguments: Any, **options: Any) -> int:
        if Path(path).name.startswith(name) and flags & os.O_CREAT:
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize(("name", "option"), [("out.csv", "-o"), ("s.json", "--state")])
@pytest.mark.parametrize("kind", ["in order", "by id"])
def test_a_folder_that_may_not_be_written_to_is_named_with_the_option(
    name: str, option: str, number: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(name, monkeypatch, number)
    done = run(*command(*KINDS[kind]))
    said = f"Error: here/{name} cannot be written ({option}): {os.strerror(number)}"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert [path.name for path in Path("here").iterdir()] == ["log.csv"]


@pytest.mark.parametrize("kind", ["in order", "by id"])
@pytest.mark.parametrize("target", ["out", "state"])
def test_a_disk_that_fills_up_is_told_and_the_next_run_is_as_if_nothing_had_been(
    kind: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(*command(*KINDS[kind], out="here/sound.csv")).exit_code == 0
    Path("here/s.json").unlink()
    written = [0]

    def full(real: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **options: Any) -> Any:
            written[0] += 1
            if written[0] > (3 if target == "out" else 0):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **options)

        return write

    owner, name = (output._TextOutput, "write") if target == "out" else (Path, "write_text")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, full(getattr(owner, name)))
        done = run(*command(*KINDS[kind]))
    file, option = ("out.csv", "-o") if target == "out" else ("s.json", "--state")
    said = f"Error: here/{file} cannot be written ({option}): No space left on device"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert not Path("here/out.csv").exists()
    assert run(*command(*KINDS[kind])).exit_code == 0
    assert Path("here/out.csv").read_bytes() == Path("here/sound.csv").read_bytes()
    assert {path.name for path in Path("here").iterdir()} == {
        "log.csv",
        "out.csv",
        "s.json",
        "sound.csv",
    }


@pytest.mark.slow("makes a report")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_device_that_is_full_is_named() -> None:
    done = run(
        "recalibrate", "here/log.csv", "--unknown", "-o", "here/out.csv", "--report", "/dev/full"
    )
    said = "Error: /dev/full cannot be written (--report): No space left on device"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (
            1,
            "or continue with truecast 0.1. Use a new --state, and FILE with all rows so far",
        ),
        (99, "upgrade truecast to read it"),
    ],
)
@pytest.mark.parametrize("name", ["s.json", "s.json.part"])
def test_a_state_of_another_version_says_what_to_do(version: int, remedy: str, name: str) -> None:
    FRAME.write_csv("scores.csv")
    content = signed(json.loads(tc.Recalibrator().to_json()) | {"version": version})
    Path(name).write_text(content)
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--state", "s.json")
    assert done.exit_code == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"Error: {name} cannot be continued: ")
    assert said.endswith(remedy)
    assert Path(name).read_text() == content
    assert not Path("out.csv").exists()
