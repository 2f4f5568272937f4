"""Let old entries go: export them first, then forget them, a few at a time.

Entries go from the front of the journal, so that the chain of checksums holds for the rest. Before
that, every stream is saved: its state no longer needs them. An id goes with the entry of its
outcome, or with that of its forecast if it was given up; if it is given up only later, it goes the
next time that entries go. If an id comes again after that, it is a new forecast.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from truecast._atomic import make_folder, sync
from truecast.errors import InputError, UnavailableError
from truecast.serve.events import Body, Forecasts, Head, Kind, Outcomes, decode
from truecast.serve.requests import Request, Work
from truecast.serve.store import FOREVER, Batch, Known, Store

if TYPE_CHECKING:
    from truecast.serve.service import Service

__all__ = ["Retired", "retain"]

_SLICE = 5_000  # rows that are forgotten in one go
_log = logging.getLogger("truecast.serve")


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
    """Save all streams that have entries to go, and find the last entry that may go.

    What is needed to load a stream that cannot be saved stays.
    """

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
            oldest = shelf.store.oldest(row.number)
            if oldest is None or oldest > last or shelf.holds(row):
                continue
            try:
                shelf.open(row.name)
            except UnavailableError as error:
                last = oldest - 1
                _log.warning("entries from %d on are kept: %s", oldest, error)
                continue
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
        shelf.recent.index(work.head.seq)  # first: what is not in the table is in entries alone
        base, rows = shelf.store.base(), 0
        leaving: dict[int, list[_Row]] = {}
        for entry in shelf.store.entries(base.seq, until=self.until):
            base = Head(entry.seq, entry.at, entry.chain)
            if entry.stream in shelf.by_number and entry.body is not None:
                own = _rows(decode(entry))
                rows += len(own)
                if own:
                    leaving.setdefault(entry.stream, []).extend(own)
            if rows >= _SLICE:
                break
        _forget(work, base, leaving)
        return base.seq


@dataclass(slots=True)
class Drop(Request):
    """Remove ids of a stream whose entries have gone, if they are awaited no longer."""

    reads: ClassVar[bool] = True
    number: int
    rows: list[_Row]
    name: str = ""

    def do(self, work: Work) -> None:
        """See `Request`."""
        shelf = work.shelf
        if self.number in shelf.by_number:
            shelf.recent.index(work.head.seq)
            _forget(work, shelf.store.base(), {self.number: self.rows})


def _forget(work: Work, base: Head, leaving: dict[int, list[_Row]]) -> None:
    """Remove entries up to `base`, and ids that nothing needs after these rows."""
    shelf = work.shelf
    known = shelf.store.lookup(
        {stream: [row.name for row in own] for stream, own in leaving.items()}
    )
    forgotten: dict[int, list[str]] = {}
    for stream, own in leaving.items():
        awaits = shelf.open(shelf.by_number[stream].name).record.awaits
        forgotten[stream] = [
            row.name for row in own if row.is_last_of(known.get((stream, row.name)), awaits)
        ]
    shelf.store.forget(base, forgotten)
    shelf.recent.clear()
    for stream, names in forgotten.items():
        for name in names:
            work.known.pop((stream, name), None)  # it was looked up before


class _Row(NamedTuple):
    """A row of an entry that goes."""

    name: str
    ticket: int
    is_outcome: bool

    def is_last_of(self, known: Known | None, awaits: Callable[[int], bool]) -> bool:
        """Whether nothing after this row needs the id; it may be another forecast's by now."""
        if known is None or known.ticket != self.ticket:
            return False
        return self.is_outcome or (known.outcome is None and not awaits(self.ticket))


def _rows(body: Body) -> list[_Row]:
    if isinstance(body, Forecasts):
        return [_Row(name, ticket, False) for ticket, name in enumerate(body.ids, body.first)]
    if isinstance(body, Outcomes):
        tickets = np.frombuffer(body.tickets, "<i8").tolist()
        return [_Row(*each, True) for each in zip(body.ids, tickets, strict=True)]
    return []


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
    if max_bytes is not None and not 0 <= max_bytes <= FOREVER:
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
    for number, rows in await asyncio.to_thread(_unresolved, reader):
        for start in range(0, len(rows), _SLICE):
            await service._ask(Drop(number, rows[start : start + _SLICE]))
    return Retired(last - first, file)


def _unresolved(reader: Store) -> list[tuple[int, list[_Row]]]:
    """Return ids without an outcome whose entries have gone, by the number of their stream.

    They had to stay while they were awaited; some may have been given up since.
    """
    with _reading(reader):
        base, found = reader.base().seq, []
        for stream in reader.streams():
            made = (
                decode(entry)
                for entry in reader.entries(base, stream=stream.number)
                if entry.kind == Kind.FORECASTS and entry.body is not None
            )
            first = next((body.first for body in made if isinstance(body, Forecasts)), FOREVER)
            ids = reader.unresolved_ids(stream.number, first)
            found.append((stream.number, [_Row(*row, False) for row in ids]))
    return found


def _export(reader: Store, first: int, last: int, file: Path) -> None:
    from truecast.serve.export import export

    make_folder(file.parent)
    with _reading(reader):
        names = {row.number: row.name for row in reader.streams()}
        export(reader.entries(first, until=last), names, file)
        sync(file.parent)  # its name too: the entries go next


@contextmanager
def _reading(reader: Store) -> Iterator[None]:
    reader.read_only()
    try:
        yield
    finally:
        reader.close()
