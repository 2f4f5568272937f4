"""Let old entries go: export them first, then forget them, a few at a time.

Entries go from the front of the journal, so that the chain of checksums holds for the rest. Before
that, every stream is saved: its state no longer needs them. The ids of forecasts that have an
outcome go with them; an id that comes again later is then a new forecast.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from truecast.errors import InputError
from truecast.serve.events import Forecasts, Head, Outcomes, decode
from truecast.serve.requests import Request, Work
from truecast.serve.store import Batch, Known, Store

if TYPE_CHECKING:
    from truecast.serve.service import Service

__all__ = ["Retired", "retain"]

_SLICE = 5_000  # rows that are forgotten in one go
_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Retired:
    """What has left the journal.

    Attributes
    ----------
    entries : int
    file : Path or None
        Where they were exported to.
    """

    entries: int
    file: Path | None


@dataclass(slots=True)
class Find(Request):
    """Save all streams, and find the last entry that may go."""

    reads: ClassVar[bool] = True
    before: int | None
    most: int | None
    name: str = ""

    def do(self, work: Work) -> tuple[int, int]:
        """See `Request`."""
        shelf = work.shelf
        first, last = shelf.store.base().seq, shelf.store.cut(self.before, self.most)
        if last <= first:
            return first, first
        for row in shelf.store.streams():
            if row.brief or row.behind:
                shelf.open(row.name)
                saved = Batch(snapshots=[shelf.snapshot(row.name, whole=True)])
                shelf.store.commit(saved)
                shelf.saved(saved)
                shelf.drop(set(shelf.too_many()))
        return first, last


@dataclass(slots=True)
class Forget(Request):
    """Remove the first entries of the journal, up to one."""

    reads: ClassVar[bool] = True
    until: int
    name: str = ""

    def do(self, work: Work) -> int:
        """See `Request`; returns the last entry that has gone."""
        shelf = work.shelf
        base, rows = shelf.store.base(), 0
        forgotten: dict[int, list[str]] = {}
        names = {listed.number: name for name, listed in shelf.listed.items()}
        for entry in shelf.store.entries(base.seq, until=self.until):
            base = Head(entry.seq, entry.at, entry.chain)
            if entry.stream in names and entry.body is not None:
                body = decode(entry)
                if isinstance(body, Forecasts | Outcomes):
                    ids = forgotten.setdefault(entry.stream, [])
                    ids.extend(body.ids)
                    rows += len(body.ids)
            if rows >= _SLICE:
                break
        known = shelf.store.lookup(forgotten)
        for stream, ids in forgotten.items():
            awaits = shelf.open(names[stream]).record.awaits
            forgotten[stream] = [
                name for name in ids if not _is_open(known.get((stream, name)), awaits)
            ]
        shelf.store.forget(base, forgotten)
        return base.seq


def _is_open(known: Known | None, awaits: Callable[[int], bool]) -> bool:
    return known is not None and known.outcome is None and awaits(known.ticket)


async def retain(
    service: Service,
    reader: Store,
    *,
    max_age: float | None = None,
    max_bytes: int | None = None,
    export_to: Path | None = None,
) -> Retired:
    """See `Service.retain`; `reader` is the same database, for another thread."""
    if max_age is not None and not 0 <= max_age <= 1e10:
        raise InputError("max_age", "must be a number of seconds, from 0", max_age)
    if max_bytes is not None and not 0 <= max_bytes <= _FOREVER:
        raise InputError("max_bytes", "must be a number of bytes, from 0", max_bytes)
    now = time.time_ns() // 1_000_000
    before = None if max_age is None else now - int(1_000 * max_age)
    first, last = await service._ask(Find(before, max_bytes))
    if last <= first:
        return Retired(0, None)
    file = None
    if export_to is not None:
        file = export_to / f"journal-{first + 1:012d}-{last:012d}.parquet"
        await asyncio.to_thread(_export, reader, first, last, file)
    gone = first
    while gone < last:
        gone = await service._ask(Forget(last))
    return Retired(last - first, file)


def _export(reader: Store, first: int, last: int, file: Path) -> None:
    from truecast.serve.export import export

    file.parent.mkdir(parents=True, exist_ok=True)
    reader.read_only()
    try:
        names = {row.number: row.name for row in reader.streams()}
        export(reader.entries(first, until=last), names, file)
    finally:
        reader.close()
