"""The benchmarks of the distance run, and what they print is in order."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FORECASTERS = ("AOSA, lower end (the paper)", "AOSA, middle", "BentGrid")
KINDS = ("coin", "periodic", "threshold", "greedy")


def run(script: str, *options: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(page: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of the table of each section."""
    found = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        head, _, *rows = [
            [cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines
        ]
        found[section.splitlines()[0]] = [dict(zip(head, row, strict=True)) for row in rows]
    return found


@pytest.mark.slow("runs a benchmark")
def test_distance_benchmark_has_a_row_for_every_family() -> None:
    pytest.importorskip("resource")  # not on Windows
    page = run("distance.py", "--rounds", "100")
    assert "Target: exact in 0.3 s." in page
    assert re.search(r"Met by \d+ of 13", page)
    [(title, rows)] = tables(page).items()
    assert title == "100 rounds"
    models = ["calibrated", "squared", "inverted", "independent", "constant"]
    of_forecasters = [f"{name}-{kind}" for name in ("aosa", "aosa-middle") for kind in KINDS]
    assert [row["family"] for row in rows] == models + of_forecasters
    for row in rows:
        assert 0 <= float(row["lower"]) <= float(row["upper"]) <= float(row["ECE"]) + 1e-3
        assert float(row["smCE"]) <= 2 * float(row["upper"]) + 1e-3
        assert 0 < float(row["before"]) <= float(row["peak MB"])
        assert row["target"] in {"met", "missed"}


@pytest.mark.slow("runs a benchmark")
def test_distance_benchmark_takes_sizes_families_and_seeds() -> None:
    pytest.importorskip("resource")  # not on Windows
    found = tables(
        run(
            "distance.py",
            "--rounds",
            "10,20",
            "--families",
            "constant,aosa-greedy",
            "--seeds",
            "0,3",
        )
    )
    assert list(found) == ["10 rounds", "20 rounds"]
    for rows in found.values():
        assert [row["family"] for row in rows] == [
            "constant (seed 0)",
            "constant (seed 3)",
            "aosa-greedy",
        ]


@pytest.mark.slow("runs a benchmark")
def test_theorem_holds_in_every_row_that_is_printed() -> None:
    found = tables(run("theorem.py", "--rounds", "100,200"))
    assert list(found) == ["100 rounds", "200 rounds"]
    for title, rows in found.items():
        cases = [(row["forecaster"], row["outcomes"]) for row in rows]
        assert cases == [(name, kind) for name in FORECASTERS for kind in (*KINDS, "all ones")]
        for row in rows:
            order = ("CalDist, at least", "at most", "certificate", "proved bound", "2 sqrt(T) + 1")
            numbers = [float(row[name]) for name in order]
            assert all(a <= b + 1e-6 for a, b in pairwise(numbers)), row
            assert row["relative gap"] == "exact"
            assert float(row["CalDist / sqrt(T)"]) == pytest.approx(
                numbers[1] / int(title.split()[0]) ** 0.5, abs=1e-3
            )
