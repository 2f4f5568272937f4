"""The journal of a service: how fast it replays, how soon a service is back, what many streams take.

Needs the package with its serve extra.

    python benchmarks/pages.py journal               # into the docs; ten million rounds, four minutes
    python benchmarks/journal.py --rounds 300000     # to look at
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import header

from truecast import Monitor, Recalibrator
from truecast.serve.journal import replay
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import MOST_OPEN, open_service, store_of

STREAMS = 10_000


def scores_and_outcomes(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.random(rounds)
    return scores, rng.random(rounds) < scores**1.5


async def write(url: str, rounds: int, size: int) -> None:
    """Play rounds in requests of this size, each forecast before its outcome."""
    scores, y = scores_and_outcomes(rounds)
    async with open_service(url) as service:
        await service.create("x")

        async def part(first: int) -> None:
            rows = [ForecastRow(score) for score in scores[first : first + size].tolist()]
            answers = await service.forecasts("x", rows)
            came = zip(answers, y[first : first + size].tolist(), strict=True)
            await service.outcomes("x", [OutcomeRow(answer.id, int(one)) for answer, one in came])

        at_once = 64 if size == 1 else 4
        for first in range(0, rounds, size * at_once):
            starts = range(first, min(first + size * at_once, rounds), size)
            await asyncio.gather(*map(part, starts))


def replay_rate(url: str) -> float:
    store = store_of(url)
    store.read_only()
    start = time.perf_counter()
    (found,) = replay(store)
    seconds = time.perf_counter() - start
    store.close()
    if found.problem is not None:
        raise RuntimeError(found.problem)
    return found.rounds / seconds


def bare_rate(rounds: int) -> float:
    """The same rounds without a journal: a recalibrator and two monitors, in one call each."""
    scores, y = scores_and_outcomes(rounds)
    start = time.perf_counter()
    said = Recalibrator().forecast_many(scores, y)
    for p in (scores, said):
        Monitor(mean_time=100_000).update_many(p, y)
    return rounds / (time.perf_counter() - start)


async def restart(url: str) -> tuple[float, int]:
    """Seconds until the first forecast after a start."""
    start = time.perf_counter()
    async with open_service(url) as service:
        await service.forecasts("x", [ForecastRow(0.5)])
        seconds = time.perf_counter() - start
        return seconds, (await service.overview("x")).rounds


def resident() -> float:
    """Megabytes of memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not say how much memory is used")


async def many_streams(url: str) -> tuple[float, float, float, float]:
    before = resident()
    async with open_service(url) as service:

        async def use(k: int) -> None:
            await service.create(f"s{k}")
            answers = await service.forecasts(f"s{k}", [ForecastRow(0.3)] * 3)
            await service.outcomes(f"s{k}", [OutcomeRow(each.id, 1) for each in answers])

        start = time.perf_counter()
        for first in range(0, STREAMS, 200):
            await asyncio.gather(*map(use, range(first, first + 200)))
        seconds, after = time.perf_counter() - start, resident()
    start = time.perf_counter()
    async with open_service(url) as service:
        found = len(service.streams())
        again = time.perf_counter() - start
    if found != STREAMS:
        raise RuntimeError(f"{found} streams")
    return before, after, seconds, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000_000)
    options = parser.parse_args()
    rounds = options.rounds
    header("The journal", "journal.py")
    print("\nOn SQLite, in one process with what writes and reads; each once.\n")
    print("| what | measured | target |\n|---|---|---|")

    def row(what: str, measured: str, target: str = "") -> None:
        print(f"| {what} | {measured} | {target} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        before, after, seconds, again = asyncio.run(many_streams(f"sqlite:///{folder}/many.db"))
        row(
            f"MB with {STREAMS:,} streams, {MOST_OPEN:,} of them in memory",
            f"**{after:,.0f}** ({before:,.0f} before)",
            "500",
        )
        row("seconds to make and use them", f"{seconds:.1f}")
        row("seconds to open them again", f"{again:.2f}")
        few = min(rounds, 200_000)
        bare = bare_rate(few)
        row("rounds a second without a journal: a recalibrator and two monitors", f"{bare:,.0f}")
        for size, count in ((1, few), (1_000, rounds)):
            url = f"sqlite:///{folder}/{size}.db"
            asyncio.run(write(url, count, size))
            rate = replay_rate(url)
            row(
                f"rounds a second, replaying {count:,} in requests of {size:,}",
                f"**{rate:,.0f}**, {rate / bare:.2f} of those without a journal",
                "300,000",
            )
        taken, known = asyncio.run(restart(url))
        row(
            f"seconds from a start with {known:,} rounds behind it to the first forecast",
            f"**{taken:.2f}**",
            "1",
        )


if __name__ == "__main__":
    main()
