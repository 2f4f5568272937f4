"""The examples run, and what they show is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "rounds"), [("sklearn_classifier", ["569"]), ("river_pipeline", ["1,250", "1,250"])])
def test_recalibrated_is_better_and_certified(name: str, rounds: list[str]) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert not done.stderr
    figures = re.findall(r"^  (\w[\w ]*?) +Brier (\S+) +smCE (\S+)$", done.stdout, re.MULTILINE)
    assert [kind for kind, _, _ in figures[1::2]] == ["recalibrated"] * 2
    for (_, brier, error), (_, our_brier, our_error) in zip(figures[::2], figures[1::2], strict=True):
        assert float(our_brier) < 0.95 * float(brier)
        assert float(our_error) < float(error)
    assert re.findall(r"^after (\S+) rounds$", done.stdout, re.MULTILINE) == rounds
    assert len(re.findall(r"^  distance to calibration   <= ", done.stdout, re.MULTILINE)) == len(rounds)


@pytest.mark.parametrize("framework", ["sklearn", "river"])
def test_a_framework_is_needed_by_its_adapter_alone(framework: str) -> None:
    code = f"import sys; sys.modules[{framework!r}] = None; import truecast, truecast.adapters"
    subprocess.run([sys.executable, "-c", code], check=True)
    missing = subprocess.run(
        [sys.executable, "-c", f"{code}; import truecast.adapters.{framework}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert missing.returncode
    assert re.search(rf"ModuleNotFoundError: .*\b{framework}\b", missing.stderr)


def test_the_package_imports_no_framework() -> None:
    code = "import sys, truecast; sys.exit(bool({'sklearn', 'river', 'truecast.adapters'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], check=True)
