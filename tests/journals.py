"""Journals of a service for tests: a run that writes one, and whether it is whole."""

import asyncio
import random

from truecast.serve.journal import verify
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import store_of


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def play(service, name, turns, first=0):
    """Forecasts of one and of many rows, outcomes late and out of order, some given up."""
    rng, late = random.Random(name), []  # noqa: S311  # chance, not secrets
    for turn in range(first, first + turns):
        size = rng.choice([1, 1, 9, 30])
        rows = [
            ForecastRow(
                rng.random(),
                f"{name}-{turn}-{k}",
                groups=rng.choice([None, "a", ["a", "b"]]),
                event=rng.choice([None, None, "e"]),
                time="2026-01-01",
            )
            for k in range(size)
        ]
        late += [answer.id for answer in await service.forecasts(name, rows)]
        rng.shuffle(late)
        known, late = late[: len(late) * 2 // 3], late[len(late) * 2 // 3 :]
        outcomes = [OutcomeRow(each, rng.randrange(2)) for each in known]
        if outcomes:
            await service.outcomes(name, outcomes)
        if turn % 7 == 3 and late:
            await service.give_up(name, ids=[late.pop()])


def verified(url):
    store = store_of(url)
    store.read_only()
    try:
        return verify(store)
    finally:
        store.close()


# A power cut leaves what was synced; of what was written since, any sectors, or garbage. Bytes of a
# sector that were not written stay as they were: SQLite takes disks to be so ("powersafe
# overwrite").

SECTOR = 512


def torn(before, after, rng):
    """The bytes of a file of which a write was interrupted by a power cut."""
    end = rng.randint(min(len(before), len(after)), len(after))
    torn = bytearray(before[:end].ljust(end, b"\0"))
    for at in range(0, end, SECTOR):
        part = slice(at, min(at + SECTOR, end))
        old, new = bytes(torn[part]), after[part]
        if old == new:
            continue
        begin = next(k for k in range(len(new)) if old[k : k + 1] != new[k : k + 1])
        garbage = old[:begin] + rng.randbytes(len(new) - begin)
        torn[part] = rng.choice([new, new, old, garbage])
    return bytes(torn)
