"""Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

import polars as pl

from truecast._threads import Aside
from truecast.errors import FileError
from truecast.files.source import Chunk

if TYPE_CHECKING:  # not needed to open a file
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Parquet"]

_ROWS = 1 << 18
_AHEAD = 64  # columns of batches that are read before they are asked for: at most 130 MB of numbers


class Parquet:
    """A file of typed columns."""

    kind = "parquet"
    records = None

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        with self._readable():
            self._frame = pl.scan_parquet(path, glob=False)
            self.schema = self._frame.collect_schema()
        self.columns = self.schema.names()
        self._done = 0
        self._started: dict[tuple[str, ...], Iterator[pl.DataFrame]] = {}

    def start(self, wanted: Sequence[str]) -> None:
        """Have another thread begin to read these columns, which `chunks` then continues."""
        batches = self._batches(wanted)
        self._started[tuple(wanted)] = Aside().ahead(batches, max(2, _AHEAD // len(wanted)))

    @cached_property
    def _rows(self) -> int:
        with self._readable():
            rows: int = self._frame.select(pl.len()).collect().item()
        return rows

    def fraction(self) -> float | None:
        """How much of it was read."""
        return self._done / self._rows if self._rows else None

    def chunks(
        self, wanted: Sequence[str], *, everything: bool = False, numbers: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read the rows, once; with `everything` the columns in their order and by their names."""
        at = [self.columns.index(name) for name in wanted]
        plain = [str(self.columns.index(name)) for name in numbers]

        def chunk(rows: tuple[int, pl.DataFrame]) -> Chunk:
            before, batch = rows
            whole = batch.drop(map(str, at)).rename(lambda name: name[1:]) if everything else None
            return Chunk(
                lambda: batch,
                partial(_place, before + 1),
                whole=whole,
                numbers={name: _numbers(batch[name]) for name in plain if _is_plain(batch[name])},
            )

        kept = [pl.all().name.prefix("=")] if everything else []
        started = None if everything else self._started.pop(tuple(wanted), None)
        with self._readable():
            yield from map(chunk, self._counted(started or self._batches(wanted, *kept)))

    def _batches(self, wanted: Sequence[str], *kept: pl.Expr) -> Iterator[pl.DataFrame]:
        with self._readable():
            yield from self._frame.select(*self._called(wanted), *kept).collect_batches(
                chunk_size=_ROWS, maintain_order=True
            )

    def _called(self, wanted: Sequence[str]) -> list[pl.Expr]:
        """Return columns by number: a name like ^.*$ would be taken for a pattern."""
        return [pl.nth(i).alias(str(i)) for i in map(self.columns.index, wanted)]

    def _counted(self, batches: Iterator[pl.DataFrame]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each batch with the number of rows before it."""
        for batch in batches:
            before = self._done
            self._done += len(batch)
            yield before, batch

    def sample(self, wanted: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of these columns."""
        with self._readable():
            return self._frame.select(self._called(wanted)).head(_ROWS).collect()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise FileError(
                self.name, f"is not a whole and sound Parquet file ({reason:.200})"
            ) from error


def _is_plain(column: pl.Series) -> bool:
    numeric = column.dtype.is_numeric() or column.dtype == pl.Boolean
    return numeric and not column.null_count()


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    return column.cast(pl.Float64).to_numpy()


def _place(first: int, row: int) -> str:
    return f"row {first + row}"
