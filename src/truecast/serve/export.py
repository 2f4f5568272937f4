"""Write entries as a table: Parquet or CSV, a row for each forecast, outcome and lost ticket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truecast._atomic import replaced
from truecast.errors import InputError
from truecast.serve.events import Created, Entry, Forecasts, GivenUp, Outcomes, decode

if TYPE_CHECKING:
    import polars as pl

__all__ = ["export", "tables"]

_ROWS = 100_000  # of a piece

COLUMNS = (
    "seq",
    "at",
    "stream",
    "kind",
    "ticket",
    "id",
    "score",
    "p",
    "groups",
    "event",
    "time",
    "outcome",
)


def export(entries: Iterator[Entry], names: dict[int, str], path: Path) -> int:
    """Write entries to a file, as a whole; return how many rows it has.

    Parameters
    ----------
    entries
        In order.
    names
        Of streams, by number.
    path
        Ends with .parquet or .csv.

    Raises
    ------
    InputError
        If it ends with something else.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    if path.suffix not in (".parquet", ".csv"):
        raise InputError("output", "must end with .parquet or .csv", str(path))
    rows = 0

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for table in tables(entries, names):
            rows += len(table)
            yield table

    frame = register_io_source(source, schema=_schema())
    with replaced(path) as part:
        if path.suffix == ".parquet":
            frame.sink_parquet(part)
        else:
            numbers = pl.col("score", "p").list.eval(pl.element().cast(pl.String))
            frame.with_columns(numbers.list.join(" "), pl.col("groups").list.join(" ")).sink_csv(
                part
            )
    return rows


def _schema() -> dict[str, Any]:
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, pl.String)
    kinds |= dict.fromkeys(("seq", "ticket", "outcome"), pl.Int64)
    kinds |= dict.fromkeys(("score", "p"), pl.List(pl.Float64))
    return kinds | {"at": pl.Datetime("ms", "UTC"), "groups": pl.List(pl.String)}


def tables(entries: Iterator[Entry], names: dict[int, str]) -> Iterator[pl.DataFrame]:
    """Yield entries as frames of many rows each."""
    import polars as pl

    rows: list[tuple[Any, ...]] = []
    for entry in entries:
        if entry.body is None:
            continue
        name = names.get(entry.stream, str(entry.stream))
        rows += _rows(entry, name)
        if len(rows) >= _ROWS:
            yield pl.DataFrame(rows, schema=_schema(), orient="row")
            rows = []
    yield pl.DataFrame(rows, schema=_schema(), orient="row")


def _rows(entry: Entry, name: str) -> Iterator[tuple[Any, ...]]:
    body = decode(entry)
    head = entry.seq, entry.at, name
    nothing = [None] * 7
    if isinstance(body, Forecasts):
        yield from _forecasts(head, body)
    elif isinstance(body, Outcomes):
        outcomes = np.frombuffer(body.outcomes, "<i4").tolist()
        tickets = np.frombuffer(body.tickets, "<i8").tolist()
        for ticket, each, outcome in zip(tickets, body.ids, outcomes, strict=True):
            yield (*head, "outcome", ticket, each, *nothing[:5], outcome)
    elif isinstance(body, GivenUp):
        for ticket in np.frombuffer(body.tickets, "<i8").tolist():
            yield (*head, "given up", ticket, *nothing)
    else:
        kind = "created" if isinstance(body, Created) else "deleted"
        yield (*head, kind, None, *nothing)


def _forecasts(head: tuple[int, int, str], body: Forecasts) -> Iterator[tuple[Any, ...]]:
    count = len(body.ids)
    scores = np.frombuffer(body.scores, "<f8").reshape(count, -1).tolist()
    said = np.frombuffer(body.said, "<f8").reshape(count, -1).tolist()
    groups, events, times = body.groups, body.events, body.times
    for k, name in enumerate(body.ids):
        of = None if groups is None else groups[k]
        yield (
            *head,
            "forecast",
            body.first + k,
            name,
            scores[k],
            said[k],
            [of] if isinstance(of, str) else of,
            None if events is None else events[k],
            None if times is None else times[k],
            None,
        )
