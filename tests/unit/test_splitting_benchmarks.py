"""The table of intervals that need no search is printed, and its numbers are in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DISTANCE = Path(__file__).parents[2] / "benchmarks" / "distance.py"


def test_intervals_at_once_are_narrow_and_timed_beside_the_lower_distance() -> None:
    command = [sys.executable, str(DISTANCE), "--at-once", "300", "--seeds", "3,4"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page.count("\n## ") == 1
    assert "## 300 rounds, without a search" in page
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if "(seed " in line]
    models = ("calibrated", "squared", "inverted", "independent")
    assert [line[0] for line in lines] == [
        f"{model} (seed {seed})" for model in models for seed in (3, 4)
    ]
    for lower, upper, width, ratio, alone, both, more in (map(float, line[1:]) for line in lines):
        assert 0 <= lower <= upper
        assert width == pytest.approx(upper - lower, abs=2e-3)
        assert ratio == pytest.approx(width / 300 ** (1 / 3), abs=1e-3)
        assert ratio <= 1.96
        assert more == pytest.approx(both - alone, abs=0.02)
