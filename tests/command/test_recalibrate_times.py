"""Times at the edges of what calendars and doubles hold."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from truecast.cli import main


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(file: str, *options: str, state: str = "state.json") -> Result:
    words = ["recalibrate", file, "--time", "t", "-o", f"out-{file}", "--state", state, *options]
    return CliRunner().invoke(main, words)


def log(name: str, *times: object) -> str:
    rows = (f"{time},{k % 2},0.{k + 1}371\n" for k, time in enumerate(times))
    Path(name).write_text("".join(["t,y,p\n", *rows]))
    return name


@pytest.mark.parametrize(
    "last", ["9999-12-31", "9999-12-31T23:59:59.999999", "2300-01-01", 1e300, 1700000000000000123]
)
def test_a_state_is_read_again_whatever_time_it_ends_with(last: object) -> None:
    first = (
        -1e300
        if isinstance(last, float)
        else 1700000000000000100
        if isinstance(last, int)
        else "0001-01-01"
    )
    assert run(log("a.csv", first, last)).exit_code == 0
    assert "2 rows recalibrated before; 0 new" in run("a.csv").stdout
    Path("b.csv").write_text(f"t,y,p\n{first},1,0.9\n")
    assert "must not be before" in run("b.csv").stderr


def test_nanoseconds_are_told_apart() -> None:
    done = run(log("n.csv", 1700000000000000100, 1700000000000000050))
    said = "t '1700000000000000050' is before '1700000000000000100' in line 2"
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert run("n.csv", "--sort").exit_code == 0
    assert [line[:19] for line in Path("out-n.csv").read_text().splitlines()[1:]] == [
        "1700000000000000050",
        "1700000000000000100",
    ]
    frame = pl.DataFrame(
        {"t": [1700000000000000100, 1700000000000000050], "y": [0, 1], "p": [0.1371, 0.2371]}
    )
    frame.write_parquet("n.parquet")
    assert "is before" in run("n.parquet", state="other.json").stderr
    assert "one kind" in run(log("m.csv", 1700000000000000100, 17), state="other.json").stderr


def test_rows_that_are_skipped_first_do_not_hide_old_ones() -> None:
    Path("a.jsonl").write_text('{"t":100,"y":1,"p":0.5123}\n{"t":101,"y":0,"p":0.2511}\n')
    Path("b.jsonl").write_text(
        '{"t":0,"y":7,"p":0.9771}\n{"t":1,"y":0,"p":0.9771}\n{"t":2,"y":1,"p":0.9972}\n'
    )
    assert run("a.jsonl").exit_code == 0
    state = Path("state.json").read_bytes()
    done = run("b.jsonl", "--skip-bad")
    assert (done.exit_code, "must not be before 101" in done.stderr) == (2, True)
    assert (Path("state.json").read_bytes(), Path("out-b.jsonl").exists()) == (state, False)


@pytest.mark.parametrize("days", [-800_000, 2**31 - 1])
def test_dates_that_no_calendar_has_are_refused_in_a_line(days: int) -> None:
    times = pl.Series("t", [date(2031, 2, 3).toordinal() - 719_163, days], pl.Int32).cast(pl.Date)
    pl.DataFrame({"t": times, "y": [0, 1], "p": [0.25, 0.75]}).write_parquet("d.parquet")
    done = run("d.parquet")
    assert (done.exit_code, "row 2: t (--time) must be a number, or a date" in done.stderr) == (
        2,
        True,
    ), done.stderr
    assert f"got '{days}'" in done.stderr


@pytest.mark.parametrize("time", ["0001-01-01T00:00+14:00", "9999-12-31T23:00-05:00"])
def test_times_that_leave_the_calendar_by_their_zone_are_refused(time: str) -> None:
    done = run(log("z.csv", time))
    assert (done.exit_code, "line 2: t (--time) must be a number, or a date" in done.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_units_of_time_are_one_time(unit: str) -> None:
    for name, day in (("a.parquet", 3), ("b.parquet", 4), ("c.parquet", 2)):
        times = pl.Series("t", [datetime(2031, 2, day, 5)], pl.Datetime("us")).cast(
            pl.Datetime(unit)
        )
        pl.DataFrame({"t": times, "y": [1], "p": [0.1 * day]}).write_parquet(name)
    assert run("a.parquet").exit_code == 0
    assert run("b.parquet").exit_code == 0
    assert "must not be before 2031-02-04T05:00:00" in run("c.parquet").stderr
    assert run(log("e.csv", "2031-02-04T05:00"), "--complete").exit_code == 0
