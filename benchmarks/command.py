"""What the command costs, beside its limits: starting, measuring, recalibrating, the report.

    python benchmarks/pages.py command  # into the docs; three minutes, 2 GB of disk
    python benchmarks/command.py  # to look at

Needs the package with its cli extra.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from timing import header, seconds

import truecast as tc

MILLION = 1_000_000
GROUPED = """
import time
start = time.perf_counter()
import polars as pl
pl.{scan}({path!r}).group_by("p").agg(pl.len(), pl.col("y").sum()).collect()
print(time.perf_counter() - start)
"""
# modules are compiled once, as they are where packages were installed
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
# from a small process: one is said to have used what the one has that it was made from
TIMED = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen([sys.executable, "-m", "truecast", *sys.argv[1:]], stdout=-3, stderr=-3)
_, status, used = os.wait4(process.pid, 0)
process.returncode = status
print(time.perf_counter() - start, used.ru_maxrss)
sys.exit(bool(status))
"""


def command(*words: str) -> tuple[float, float]:
    """Run the command; return seconds, its start included, and the most memory in use, in MB."""
    run = subprocess.run(
        [sys.executable, "-c", TIMED, *words], stdout=-1, check=True, text=True, env=COMPILED
    )
    taken, most = map(float, run.stdout.split())
    return taken, most / (2**20 if sys.platform == "darwin" else 2**10)


def least(*words: str, repeat: int = 3) -> tuple[float, float]:
    """The least of some runs."""
    runs = [command(*words) for _ in range(repeat)]
    return min(taken for taken, _ in runs), min(most for _, most in runs)


def python(code: str, repeat: int = 3) -> float:
    """Run Python; return the seconds that it prints, the least of some runs."""
    runs = [
        subprocess.run([sys.executable, "-c", code], stdout=-1, check=True, env=COMPILED)
        for _ in range(repeat)
    ]
    return min(float(run.stdout) for run in runs)


def made(folder: Path, name: str, rows: int, decimals: int | None) -> pl.DataFrame:
    """Make a file of rounds, and return them."""
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    p = p if decimals is None else p.round(decimals)
    columns = {"id": np.arange(rows), "p": p, "y": (rng.random(rows) < p**1.2).astype(np.int8)}
    frame = pl.DataFrame(columns).with_columns(
        place=pl.Series(rng.choice(["JFK", "LGA", "EWR"], rows))
    )
    path = folder / name
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return frame


STARTS = {
    "bare Python": ["-c", "pass"],
    "`import click`": ["-c", "import click"],
    "`truecast --help`": ["-m", "truecast", "--help"],
    "`import numpy`": ["-c", "import numpy"],
    "`import truecast`": ["-c", "import truecast"],
    "`from truecast import Recalibrator, measure`": [
        "-c",
        "from truecast import Recalibrator, measure",
    ],
}


def starting() -> None:
    """Take turns, so that all have the same machine."""
    print("\n## Starting\n")
    print("The least of 20 runs each, in turn. *Over NumPy*: without the start of bare Python.\n")
    taken = {name: [] for name in STARTS}
    for _ in range(20):
        for name, words in STARTS.items():
            run = partial(subprocess.run, [sys.executable, *words], stdout=-3, env=COMPILED)
            taken[name].append(seconds(partial(run, check=True), 1))
    least_of = {name: min(runs) for name, runs in taken.items()}
    bare, numpy = least_of["bare Python"], least_of["`import numpy`"]
    print("| | ms | times bare Python | over NumPy |\n|---|---|---|---|")
    for name, value in least_of.items():
        over = (value - bare) / (numpy - bare)
        print(f"| {name} | {1e3 * value:.0f} | {value / bare:.1f} | {over:.2f} |", flush=True)


def measure(folder: Path, rows: int) -> None:
    print(f"\n## Measure: {rows:,} rows\n")
    print(
        "All in processes of their own, imports included. *Polars* counts rounds and ones at each "
        "score (`group_by`),"
    )
    print(
        "lazily, on all cores: the least that anyone must do. The command adds every measure, 499 "
        "resamples and the verdict.\nThe least of three runs.\n"
    )
    print("| file | distinct scores | Polars, s | `truecast measure`, s | ratio | MB at most |")
    print("|---|---|---|---|---|---|")
    for scan, ending in (("scan_csv", "csv"), ("scan_parquet", "parquet")):
        for decimals, name in ((3, "1,001"), (None, "all")):
            path = str(folder / f"rows-{decimals}.{ending}")
            made(folder, Path(path).name, rows, decimals)
            grouped = python(GROUPED.format(scan=scan, path=path))
            ours, most = least("measure", path, "--outcome", "y", "--score", "p")
            kind = {"csv": "CSV", "parquet": "Parquet"}[ending]
            print(
                f"| {kind} | {name} | {grouped:.2f} | {ours:.2f} | {ours / grouped:.2f} "
                f"| {most:,.0f} |",
                flush=True,
            )
            Path(path).unlink()


OPTIONS = {
    "": [],
    " --by place": ["--by", "place"],
    " --state": ["--state", "out.csv.state"],
    " --state --id id": ["--state", "out.csv.state", "--id", "id"],
}


def recalibrate(folder: Path, rows: int, *names: str) -> None:
    print(
        f"\n## Recalibrate: {rows:,} rows, from CSV to CSV\n\nThe command once; the others the least of three runs.\n"
    )
    frame = made(folder, "rows.csv", rows, None)
    source, target = str(folder / "rows.csv"), str(folder / "out.csv")
    y, p = frame["y"].to_numpy(), frame["p"].to_numpy()
    alone = seconds(lambda: tc.Recalibrator().forecast_many(p, y), 3)
    copied = seconds(lambda: pl.read_csv(source).write_csv(target), 3)
    print("| | s | rows a second | MB at most |\n|---|---|---|---|")
    print(f"| Polars reads and writes it | {copied:.2f} | {rows / copied:,.0f} | |")
    print(f"| `forecast_many` of arrays | {alone:.2f} | {rows / alone:,.0f} | |")
    for name in names:
        words = [str(folder / word) if word.endswith(".state") else word for word in OPTIONS[name]]
        (folder / "out.csv.state").unlink(missing_ok=True)
        taken, most = command("recalibrate", source, "-o", target, *words)
        print(
            f"| `truecast recalibrate{name}` | {taken:.2f} | {rows / taken:,.0f} | {most:,.0f} |",
            flush=True,
        )


def report(folder: Path, rows: int) -> None:
    print(f"\n## Report: {rows:,} rows of CSV\n\nThe least of three runs.\n")
    page = folder / "page.html"
    print("| | distinct scores | s | KB | MB at most |\n|---|---|---|---|---|")
    for decimals, distinct in ((3, "1,001"), (None, "all")):
        made(folder, "page.csv", rows, decimals)
        for name, words in (("", []), (" --by place", ["--by", "place"])):
            taken, most = least("report", str(folder / "page.csv"), "-o", str(page), *words)
            size = page.stat().st_size / 1000
            print(
                f"| `truecast report{name}` | {distinct} | {taken:.2f} | {size:.0f} "
                f"| {most:,.0f} |",
                flush=True,
            )


def main() -> None:
    header("Benchmarks: the command", "command.py", "polars", "click", "numpy")
    parts: list[Callable[[Path], None]] = [
        lambda folder: starting(),
        lambda folder: measure(folder, 10 * MILLION),
        lambda folder: recalibrate(folder, 10 * MILLION, ""),
        lambda folder: recalibrate(folder, 3 * MILLION, *OPTIONS),
        lambda folder: report(folder, MILLION),
        lambda folder: report(folder, 10 * MILLION),
    ]
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder))


if __name__ == "__main__":
    main()
