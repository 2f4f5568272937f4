"""How long requests wait for the service itself: in processor time, so that a busy machine does not matter.

    python benchmarks/waits.py     # half a minute

Clients and service are in one process, below HTTP; a wait is the processor time of all threads between a question and
its answer. The disk is not in it. Once alone, and once while the page of a stream with 30 classes is open, to which
outcomes come.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from time import process_time

from timing import header

from truecast.serve.http.run import SWITCH, spare_the_living
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import Service, open_service

CLIENTS, PAIRS, STREAMS = 16, 1_000, 4
CLASSES = 30
LOOK = 0.25  # seconds of processor time between two looks


async def feed(service: Service, rounds: int, rng: random.Random) -> None:
    """Rounds of the stream with classes."""
    rows = [[rng.random() for _ in range(CLASSES)] for _ in range(rounds)]
    scores = [[each / sum(row) for each in row] for row in rows]
    said = await service.forecasts("classes", [ForecastRow(row) for row in scores])
    await service.outcomes("classes", [OutcomeRow(row.id, rng.randrange(CLASSES)) for row in said])


async def client(service: Service, number: int, waits: list[float]) -> None:
    """A forecast, then its outcome, again and again."""
    name, rng = f"s{number % STREAMS}", random.Random(number)
    for k in range(PAIRS):
        asked = process_time()
        (said,) = await service.forecasts(name, [ForecastRow(rng.random(), f"{number}-{k}")])
        answered = process_time()
        await service.outcomes(name, [OutcomeRow(said.id, int(rng.random() < said.p))])
        waits += (answered - asked, process_time() - answered)


async def look(service: Service, looks: list[int]) -> None:
    """Read the page of the stream with classes now and then."""
    rng = random.Random(0)
    while True:
        looks.append((await service.overview("classes")).seq)
        await feed(service, 2, rng)
        due = process_time() + LOOK
        while process_time() < due:
            await asyncio.sleep(0.01)


async def measured(looked_at: bool) -> tuple[list[float], float, int]:
    """Waits, sorted; processor time in all; how often somebody looked."""
    waits: list[float] = []
    looks: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_service(f"sqlite:///{folder}/journal.db") as service:
            for number in range(STREAMS):
                await service.create(f"s{number}")
            await service.create("classes", StreamOptions(classes=CLASSES))
            await feed(service, 1_000, random.Random(1))
            looking = asyncio.create_task(look(service, looks)) if looked_at else None
            began = process_time()
            await asyncio.gather(*(client(service, number, waits) for number in range(CLIENTS)))
            took = process_time() - began
            if looking is not None:
                looking.cancel()
                await asyncio.wait({looking})
    return sorted(waits), took, len(looks)


def main() -> None:
    header("Waits in processor time", "waits.py", "msgspec")
    sys.setswitchinterval(SWITCH)  # as in the service's own process
    spare_the_living()
    print(
        f"\n{CLIENTS} clients send {PAIRS:,} pairs each over {STREAMS} streams, on SQLite, below HTTP.\n"
    )
    print("| | µs a request | ms of a wait: p50 | p99 | p99.9 | longest | looks |\n|" + "---|" * 7)
    for title, looked_at in (("alone", False), ("a page is open", True)):
        waits, took, looks = asyncio.run(measured(looked_at))
        shares = (
            f"{1e3 * waits[int(share * (len(waits) - 1))]:.2f}" for share in (0.5, 0.99, 0.999, 1.0)
        )
        print(
            f"| {title} | {1e6 * took / len(waits):.0f} | {' | '.join(shares)} | {looks} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
