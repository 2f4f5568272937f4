"""The page over time: where a file has a column of times, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from truecast.cli import main

RNG = np.random.default_rng(0)


def rows(column: str, times: list[str]) -> str:
    p = RNG.random(len(times)).round(2)
    y = (RNG.random(len(times)) < p).astype(int)
    lines = [f"{time},{a},{b}" for time, a, b in zip(times, y, p, strict=True)]
    return "\n".join([f"{column},y,p", *lines]) + "\n"


DAYS = [str(np.datetime64("2031-02-03") + k // 5) for k in range(300)]


@pytest.mark.alike("makes seven pages")
@pytest.mark.parametrize(
    ("column", "times", "there"),
    [
        ("date", DAYS, True),
        ("Timestamp", [f"{day}T04:05:06Z" for day in DAYS], True),
        ("ts", [str(1_900_000_000 + k) for k in range(300)], True),
        ("name", DAYS, False),
        ("date", ["soon"] * 300, False),
        ("date", ["", *DAYS[1:]], False),
        ("date", [DAYS[0]] * 300, False),  # all of one time
    ],
)
def test_a_column_of_times_is_known_by_its_name_and_by_what_is_in_it(
    tmp_path: Path, column: str, times: list[str], there: bool
) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    file.write_text(rows(column, times))
    done = CliRunner().invoke(main, ["report", str(file), "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert ('id="course"' in page.read_text()) == there


NO_TIME = "must be a number, or a date and time such as 2025-03-31T12:30, got '3.2.2031'"


def test_times_that_cannot_be_read_are_said_to_be_so_and_refused_if_they_were_asked_for(
    tmp_path: Path,
) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    file.write_text(rows("date", ["3.2.2031"] * 300))
    command = ["report", str(file), "-o", str(page)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0
    said = f"line 2: date (--time) {NO_TIME}: the page shows no course over time\n"
    assert said in done.stderr
    done = CliRunner().invoke(main, [*command, "--time", "date"])
    assert (done.exit_code, f"date (--time) {NO_TIME}\n" in done.stderr) == (2, True)


def test_a_column_of_times_may_be_named(tmp_path: Path) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    file.write_text(rows("landed", DAYS))
    command = ["report", str(file), "-o", str(page)]
    for options, there in (([], False), (["--time", "landed"], True)):
        assert CliRunner().invoke(main, [*command, *options]).exit_code == 0
        assert ('id="course"' in page.read_text()) == there
    done = CliRunner().invoke(main, [*command, "--time", "left"])
    assert (done.exit_code, "has no column 'left' (--time)" in done.stderr) == (2, True)


def test_a_time_needs_one_score_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(rows("date", DAYS))
    weighted = [str(file), "--score", "p", "--weight", "p"]
    for words in (["-"], weighted):
        command = ["report", *words, "-o", str(tmp_path / "page.html"), "--time", "date"]
        done = CliRunner().invoke(main, command, input=file.read_text())
        assert (done.exit_code, "--time is for one score in a file" in done.stderr) == (2, True)


def test_a_recalibrated_file_has_a_course_of_both(tmp_path: Path) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    file.write_text(rows("date", DAYS))
    options = ["-o", str(tmp_path / "out.csv"), "--report", str(page)]
    done = CliRunner().invoke(main, ["recalibrate", str(file), *options])
    assert done.exit_code == 0, done.output
    said = page.read_text()
    assert "recalibrated</title>" in said  # in what a block tells
    assert "Before and after recalibration: out.csv" in said


def blocks(page: str) -> list[tuple[float, float]]:
    """What the blocks of the course tell: mean forecast, and mean recalibrated forecast."""
    return [
        (float(a), float(b))
        for a, b in re.findall(r"came true, ([\d.]+) forecast[^<]*?([\d.]+) recalibrated<", page)
    ]


def test_percentages_are_so_before_and_after(tmp_path: Path) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    header, *lines = rows("date", DAYS).splitlines()
    cells = [line.split(",") for line in lines]
    file.write_text(
        "\n".join([header, *(f"{time},{y},{float(p) * 100:g}" for time, y, p in cells)]) + "\n"
    )
    options = ["-o", str(tmp_path / "out.csv"), "--report", str(page), "--percent"]
    done = CliRunner().invoke(main, ["recalibrate", str(file), *options])
    assert done.exit_code == 0, done.output
    found = blocks(page.read_text())
    assert len(found) > 1
    assert all(0.2 < before < 0.8 and 0.2 < after < 0.8 for before, after in found)


def test_the_course_is_by_the_column_that_was_named(tmp_path: Path) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    file.write_text(rows("arrived", DAYS))
    options = ["-o", str(tmp_path / "out.csv"), "--report", str(page)]
    for more in ([], ["--time", "arrived"]):
        done = CliRunner().invoke(main, ["recalibrate", str(file), *options, *more])
        assert done.exit_code == 0, done.output
        assert ('id="course"' in page.read_text()) == bool(more)


@pytest.mark.parametrize("filled_in", [True, False])
def test_with_ids_a_course_is_of_the_rounds_of_the_page(tmp_path: Path, filled_in: bool) -> None:
    """Where an outcome comes in a row of its own, without a score, the rows of the file are not the
    rounds."""
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    header, *lines = rows("date", DAYS).splitlines()
    cells = [line.split(",") for line in lines]
    told = [f"{time},{y},{p},{k}" for k, (time, y, p) in enumerate(cells)]
    if not filled_in:
        told = [f"{time},,{p},{k}" for k, (time, _, p) in enumerate(cells)]
        told += [f"{time},{y},,{k}" for k, (time, y, _) in enumerate(cells)]
    file.write_text("\n".join([f"{header},id", *told]) + "\n")
    options = ["-o", str(tmp_path / "out.csv"), "--report", str(page), "--id", "id"]
    done = CliRunner().invoke(main, ["recalibrate", str(file), *options])
    assert done.exit_code == 0, done.output
    assert ('id="course"' in page.read_text()) == filled_in
