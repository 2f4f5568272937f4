"""What the benchmarks share."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def seconds(work: Callable[[], Any], repeat: int = 5) -> float:
    """Return the least of some runs: the machine is shared, and noise only ever adds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def header(title: str, script: str, *packages: str) -> None:
    """Print what was run, and on what."""
    print(f"# {title}\n")
    print(f"Made by `python benchmarks/{script}`, all in one run.")
    machine = [platform.machine(), f"{os.cpu_count()} cores", platform.system(), f"Python {platform.python_version()}"]
    print(", ".join([*machine, *(f"{name} {version(name)}" for name in (*packages, "truecast"))]) + ".")


def picture(name: str, says: str) -> None:
    """Print how a page shows a picture of docs/make_pictures.py: the one for light pages, or for dark ones."""
    print(f"""
<picture>
<source media="(prefers-color-scheme: dark)" srcset="pictures/{name}-dark.svg">
<img alt="{says}" src="pictures/{name}-light.svg">
</picture>""")
