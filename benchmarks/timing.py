"""What the benchmarks share."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from statistics import median_low
from typing import Any


def seconds(work: Callable[[], Any], repeat: int = 5) -> float:
    """Return the least of some runs: the machine is shared, and noise only ever adds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class Empty:
    """Two methods that do nothing: what calling costs."""

    def predict(self) -> None:
        pass

    def observe(self, outcome: int) -> None:
        pass


def pair(
    make: Callable[[], Any], outcomes: list[int], repeat: int = 5
) -> tuple[float, float, float]:
    """Return what a predict and an observe cost, to two empty methods; then both in ns."""

    def loop(forecaster: Any) -> None:
        for y in outcomes:
            forecaster.predict()
            forecaster.observe(y)

    def bare() -> None:
        for _ in outcomes:
            pass

    each = 1e9 / len(outcomes)
    nothing = seconds(bare) * each
    pairs = []
    for _ in range(repeat):  # side by side, so that a slow spell slows both
        empty = seconds(lambda: loop(Empty()), 3) * each - nothing
        ours = seconds(lambda: loop(make()), 3) * each - nothing
        pairs.append((ours / empty, ours, empty))
    return median_low(pairs)


def header(title: str, script: str, *packages: str) -> None:
    """Print what was run, and on what."""
    print(f"# {title}\n")
    print(f"Made by `python benchmarks/{shlex.join([script, *sys.argv[1:]])}`, all in one run.")
    machine = [
        platform.machine(),
        f"{os.cpu_count()} cores",
        platform.system(),
        f"Python {platform.python_version()}",
    ]
    print(
        ", ".join([*machine, *(f"{name} {version(name)}" for name in (*packages, "truecast"))])
        + "."
    )


def picture(name: str, says: str) -> None:
    """Print how a page shows a picture of docs/make_pictures.py: the one for light pages, or for dark ones."""
    print(f"""
<picture>
<source media="(prefers-color-scheme: dark)" srcset="pictures/{name}-dark.svg">
<img alt="{says}" src="pictures/{name}-light.svg">
</picture>""")


def descendants(root: int) -> dict[int, int]:
    """The processes below a process, each with its parent (Linux)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: dict[int, int] = {}
    new = [root]
    while new:
        born = {child: pid for pid in new for child in children.get(pid, [])}
        found |= born
        new = list(born)
    return found


def cpu_seconds() -> float:
    """What this process and all that it has started took of the processors (Linux)."""
    ticks = 0
    for pid in [os.getpid(), *descendants(os.getpid())]:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
