"""The unit and the Dockerfile name what there is; systemd reads the unit, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from truecast.cli import main

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy" / "truecast.service").read_text()
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
OPTIONS = {word for option in main.commands["serve"].params for word in option.opts}


def test_options_are_those_of_the_command() -> None:
    start = re.search(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    assert start
    words = start[1].split()
    for instruction in ("ENTRYPOINT", "CMD"):
        found = re.search(rf"^{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)
        assert found
        words += json.loads(found[1])
    used = {word for word in words if word.startswith("--")}
    assert {"--data", "--token-file", "--log", "--host"} == used <= OPTIONS


def test_the_image_is_made_of_what_is_there() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
    extras = re.search(r'"\.\[(.*)\]"', DOCKERFILE)
    assert extras
    for extra in extras[1].split(","):
        assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_reads_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    unit = tmp_path / "truecast.service"
    unit.write_text(UNIT.replace("/opt/truecast/bin/truecast", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],  # noqa: S607
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0  # an exposure of at most 2.0 of 10
