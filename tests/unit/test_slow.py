"""The marker of slow tests: it has a reason, the fast lane leaves it out, and what lacks it is
named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow("starts pytest")


def run(folder: Path, test: str, *arguments: str) -> str:
    """Run pytest on a test, with this repository's settings, and return what it prints."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_it.py").write_text(f"import time\nimport pytest\n{test}\n")
    options = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", *arguments]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("marker", ["slow", "slow()", "slow(3)", "slow('a', 'b')", "alike"])
def test_a_slow_test_says_why(tmp_path: Path, marker: str) -> None:
    said = run(tmp_path, f"@pytest.mark.{marker}\ndef test_it(): pass", "--collect-only")
    name = marker.partition("(")[0]
    assert f'test_it: write @pytest.mark.{name}("why it is slow")' in said


def test_the_fast_lane_leaves_slow_tests_and_folders_out(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "test_spark.py").write_text("import nowhere")
    slow = "@pytest.mark.slow('waits')\ndef test_slow(): pass\n"
    said = run(tmp_path, f"{slow}def test_fast(): pass", "-m", "not slow")
    assert "1 passed, 1 deselected" in said


def test_the_fast_lane_runs_the_first_of_cases_that_are_alike(tmp_path: Path) -> None:
    cases = "@pytest.mark.alike('waits')\n@pytest.mark.parametrize('case', [1, 2, 3])\n"
    test = f"{cases}def test_it(case): pass"
    assert "1 passed, 2 deselected" in run(tmp_path, test, "-m", "not slow")
    assert "2 passed, 1 deselected" in run(tmp_path, test, "-m", "slow")


def test_slow_tests_without_the_marker_are_named(tmp_path: Path) -> None:
    waits = "def test_{}(): time.sleep(2.1)\n"
    said = run(tmp_path, waits.format("a") + "@pytest.mark.slow('waits')\n" + waits.format("b"))
    assert "slow tests without @pytest.mark.slow(reason)" in said
    assert "test_a" in said
    assert "test_b" not in said
