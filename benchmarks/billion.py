"""What the tally of a large Parquet file costs, by adapter and command: seconds and memory.

    python benchmarks/pages.py billion  # into the docs; two minutes, 1.4 GB of disk
    python benchmarks/billion.py  # to look at; --rows

Needs the package with its cli, duckdb and polars extras.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
from timing import header

from command import command

ROWS = """
COPY (SELECT (hash(i) % 1001)::DOUBLE / 1000 AS p, (hash(i + 7) % 1000 < hash(i) % 1001)::TINYINT AS y
      FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)
"""
TALLY = """
import resource, sys, time
from truecast.adapters.{adapter} import tally
start = time.perf_counter()
counted = tally({path!r}, outcome="y", score="p")
taken = time.perf_counter() - start
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(f"| {adapter} | {{taken:.1f}} | {{most:.0f}} | {{counted}} |")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**9)
    rows = parser.parse_args().rows
    header("Benchmarks: a large file", "billion.py", "duckdb", "polars")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        duckdb.execute(ROWS.format(rows=rows, path=path))
        print(
            f"\nParquet, {rows:,} rows, {Path(path).stat().st_size / 2**20:,.0f} MB, 1,001 "
            "distinct forecasts; one run each.\n"
        )
        print("| adapter | seconds | MB in use at most | result |\n|---|---|---|---|", flush=True)
        for adapter in ("duckdb", "polars"):
            subprocess.run(
                [sys.executable, "-c", TALLY.format(adapter=adapter, path=path)], check=True
            )
        taken, most = command("measure", path, "--outcome", "y", "--score", "p")
        print(f"| the command, every measure | {taken:.1f} | {most:.0f} | printed |")


if __name__ == "__main__":
    main()
