"""What the forecasters cost, as ratios taken in one run.

    python benchmarks/pages.py forecast  # into the docs; two minutes; --quick for a tenth
    python benchmarks/forecast.py  # to look at

Needs the package installed and a C++ compiler on the path (c++, or what CXX names).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import header, pair, seconds

import truecast as tc

Chain = Callable[[np.ndarray, int, np.ndarray | None], None]


def compiled_chain() -> Chain:
    source = Path(__file__).with_name("chain.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "chain.so"
        compiler = os.environ.get("CXX", "c++")
        subprocess.run(
            [compiler, "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)],
            check=True,
        )
        function = ctypes.CDLL(str(library)).chain
    function.restype = ctypes.c_int64

    def chain(y: np.ndarray, m: int, said: np.ndarray | None) -> None:
        biases = np.zeros(m + 1, np.int64)
        address = [
            None if array is None else array.ctypes.data_as(ctypes.c_void_p)
            for array in (y, biases, said)
        ]
        function(address[0], ctypes.c_size_t(len(y)), address[1], ctypes.c_int64(m), address[2])

    return chain


def streams_of(rounds: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "coin": np.unpackbits(np.frombuffer(rng.bytes(rounds // 8 + 1), np.uint8), count=rounds),
        "skewed": (rng.integers(0, 256, rounds, np.uint8) < 13).view(np.uint8),
        "periodic": np.resize(np.array([0, 1], np.uint8), rounds),
    }


CHAIN = """\
The chain is a loop with the same load, add, store and compare, for the uniform grid only, and nothing else. It is run
bare, against forecasts written to a given array (`out`), and writing to a new array, against forecasts returned in a
new array, which the system must clear page by page. ns a round, the least of five runs, and ratios.
"""


def batch(chain: Chain, sizes: list[int]) -> None:
    print("\n## Batch against the chain\n")
    print(CHAIN)
    print(
        "| rounds | outcomes | cells | chain | AOSA, out | ratio | bent, out | ratio | "
        "chain, new | AOSA, new | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    flat: dict[str, list[float]] = {}
    for rounds in sizes:
        out = np.zeros(rounds)
        for name, y in streams_of(rounds).items():
            for m in (10, 1_000, 100_000) if rounds == sizes[0] else (int(rounds**0.5),):

                def run(kind: Any, out: Any, y: np.ndarray = y, m: int = m) -> float:
                    fresh = [kind(grid=m + m % 2) for _ in range(5)]
                    return seconds(lambda: fresh.pop().forecast_many(y, out=out)) / len(y) * 1e9

                bare = seconds(lambda y=y, m=m: chain(y, m, None)) / rounds * 1e9
                aosa, bent = run(tc.AlmostOneStepAhead, out), run(tc.BentGrid, out)
                writing = seconds(lambda y=y, m=m: chain(y, m, np.empty(len(y)))) / rounds * 1e9
                new = run(tc.AlmostOneStepAhead, None)
                print(
                    f"| {rounds:,} | {name} | {m:,} | {bare:.2f} | {aosa:.2f} | "
                    f"**{aosa / bare:.2f}** | ",
                    end="",
                )
                print(
                    f"{bent:.2f} | **{bent / bare:.2f}** | {writing:.2f} | {new:.2f} | "
                    f"**{new / writing:.2f}** |"
                )
                sys.stdout.flush()
                if rounds == sizes[0]:
                    flat.setdefault(name, []).append(aosa)
    spread = ", ".join(f"{name} {max(times) / min(times):.2f}" for name, times in flat.items())
    print(f"\nslowest grid / fastest grid, 10 to 100,000 cells: {spread}")


def single(calls: int) -> None:
    outcomes = np.random.default_rng(0).integers(0, 2, calls).tolist()
    ratio, ours, empty = pair(lambda: tc.AlmostOneStepAhead(horizon=calls), outcomes)
    print("\n## predict + observe from Python\n")
    print(
        f"{ours:.0f} ns a pair, {empty:.0f} ns for a pair of empty methods: ratio **{ratio:.2f}**"
    )


def many_streams(streams: int, rounds: int) -> None:
    y = np.random.default_rng(2).integers(0, 2, (streams, rounds), np.uint8)
    f = tc.AlmostOneStepAhead(horizon=rounds)
    one = (
        seconds(lambda: tc.AlmostOneStepAhead(horizon=rounds).forecast_many(y.reshape(-1)), 6)
        / y.size
        * 1e9
    )
    print(f"\n## {streams:,} streams of {rounds:,} rounds\n")
    filled = seconds(lambda: np.empty(y.shape).fill(0.5), 6) / y.size * 1e9
    print(
        "New memory must be cleared by the system, page by page, by those who fill it. The least of six runs; of one of numpy's,"
    )
    print("with a tenth of the streams.\n")
    print("| way | ns a step | to one stream | to filling |\n|---|---|---|---|")
    print(f"| filling a new array of forecasts, 1 thread | {filled:.2f} | {filled / one:.2f} | 1 |")
    print(f"| one stream of as many rounds | {one:.2f} | 1 | {one / filled:.2f} |")
    for threads in (1, 2):
        many = (
            seconds(lambda threads=threads: tc.forecast_streams(f, y, threads=threads), 6)
            / y.size
            * 1e9
        )
        print(
            f"| forecast_streams, {threads} thread{'s'[: threads - 1]} | {many:.2f} | "
            f"**{many / one:.2f}** | {many / filled:.2f} |"
        )
    part = y[: max(1, streams // 10)]
    across = seconds(lambda: numpy_across_streams(part, f.grid), 1) / part.size * 1e9
    print(
        f"| numpy, vectorised across streams | {across:.2f} | {across / one:.2f} | "
        f"{across / filled:.2f} |"
    )


def numpy_across_streams(y: np.ndarray, m: int) -> np.ndarray:
    rows = np.arange(len(y))
    biases = np.zeros((len(y), m + 1), np.int64)
    cell = np.full(len(y), m // 2)
    said = np.empty(y.shape)
    for t in range(y.shape[1]):
        bit = y[:, t].astype(np.int64)
        said[:, t] = cell / m
        credited = cell + bit
        value = biases[rows, credited] + credited - m * bit
        biases[rows, credited] = value
        cell = credited - (value >= 1 - bit)
    return said


def plain_python(y: list[int], m: int) -> list[float]:
    biases, cell, said = [0] * (m + 1), m // 2, []
    for bit in y:
        said.append(cell / m)
        credited = cell + bit
        biases[credited] += credited - m * bit
        cell = credited if biases[credited] < 1 - bit else credited - 1
    return said


def numpy_search(y: np.ndarray, m: int) -> np.ndarray:
    """What one writes first: find an open cell by a vectorised search in every round."""
    points = np.arange(m + 1)
    biases, said = np.zeros(m + 1, np.int64), np.empty(len(y))
    for t, bit in enumerate(y.tolist()):
        cell = int(np.argmax((biases[:-1] <= 0) & (biases[1:] >= 0)))
        said[t] = cell / m
        biases[cell + bit] += points[cell + bit] - m * bit
    return said


def against_python(rounds: int) -> None:
    y = np.random.default_rng(3).integers(0, 2, rounds, np.uint8)
    m = int(rounds**0.5)
    few = y[: rounds // 10]
    ours = seconds(lambda: tc.AlmostOneStepAhead(grid=m).forecast_many(y)) / len(y) * 1e9
    plain = seconds(lambda: plain_python(y.tolist(), m), 2) / len(y) * 1e9
    search = seconds(lambda: numpy_search(few, m), 1) / len(few) * 1e9
    assert (
        plain_python(few.tolist(), m) == tc.AlmostOneStepAhead(grid=m).forecast_many(few).tolist()
    )
    assert (
        numpy_search(few, m) == tc.AlmostOneStepAhead(grid=m, cell="lowest").forecast_many(few)
    ).all()
    print(f"\n## Against plain Python and numpy, {m:,} cells\n")
    print("| way | ns a step | times forecast_many |\n|---|---|---|")
    print(f"| forecast_many | {ours:.2f} | 1 |")
    print(f"| plain Python loop, walk | {plain:.0f} | **{plain / ours:.0f}** |")
    print(f"| numpy search for an open cell | {search:.0f} | **{search / ours:.0f}** |")


HELD = """
import truecast as tc
from pathlib import Path
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
cells = 1 << 22
tc.AlmostOneStepAhead(grid=10)
before = resident()
f = tc.AlmostOneStepAhead(grid=cells)
print(round((resident() - before) / cells))
"""


def memory(rounds: int) -> None:
    f = tc.AlmostOneStepAhead(grid=1_000)
    y = np.zeros(rounds, np.uint8)
    tracemalloc.start()
    f.forecast_many(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print("\n## Memory\n")
    print(
        f"a batch of {rounds:,} rounds: {peak / (8 * rounds):.4f} times the 8 bytes a round "
        "that it returns"
    )
    held = subprocess.run(
        [sys.executable, "-c", HELD], capture_output=True, text=True, check=True
    ).stdout
    print(f"state and tables of a forecaster: {held.strip()} bytes a cell")


def imports() -> None:
    def start(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 1)

    bare, numpy, ours = [], [], []
    for _ in range(20):
        bare.append(start(""))
        numpy.append(start("import numpy"))
        ours.append(start("import truecast"))
    ratio = (min(ours) - min(bare)) / (min(numpy) - min(bare))
    print("\n## Import\n")
    print(f"import truecast / import numpy, interpreter start taken off: **{ratio:.2f}**")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    scale = 10 if parser.parse_args().quick else 1
    header("Benchmarks", "forecast.py", "numpy")
    batch(compiled_chain(), [10**7 // scale, 10**8 // scale])
    single(10**6 // scale)
    many_streams(10**5 // scale, 1_000)
    against_python(10**6 // scale)
    memory(10**8 // scale)
    imports()


if __name__ == "__main__":
    main()
