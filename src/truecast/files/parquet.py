"""Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import polars as pl

from truecast.errors import FileError
from truecast.files.source import Chunk

__all__ = ["Parquet"]

_ROWS = 1 << 18


class Parquet:
    """A file of typed columns."""

    kind = "parquet"
    records = None

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        with self._readable():
            self._frame = pl.scan_parquet(path, glob=False)
            self.schema = self._frame.collect_schema()
            self._rows = self._frame.select(pl.len()).collect().item()
        self.columns = self.schema.names()
        self._done = 0

    def fraction(self) -> float | None:
        """How much of it was read."""
        return self._done / self._rows if self._rows else None

    def chunks(
        self, wanted: Sequence[str], *, everything: bool = False, numbers: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read the rows, once; with `everything` the columns in their order and by their names."""
        at = [self.columns.index(name) for name in wanted]
        # by number: a name like ^.*$ would be taken for a pattern
        columns = [pl.nth(i).alias(str(i)) for i in at]
        kept = [pl.all().name.prefix("=")] if everything else []
        with self._readable():
            batches = self._frame.select(*columns, *kept).collect_batches(
                chunk_size=_ROWS, maintain_order=True
            )
            for batch in batches:
                whole = (
                    batch.drop(map(str, at)).rename(lambda name: name[1:]) if everything else None
                )
                yield Chunk(partial(_itself, batch), partial(_place, self._done + 1), whole=whole)
                self._done += len(batch)

    def sample(self, wanted: Sequence[str]) -> pl.DataFrame:
        """Return the first rows of these columns."""
        columns = [pl.nth(i).alias(str(i)) for i in map(self.columns.index, wanted)]
        with self._readable():
            return self._frame.select(columns).head(_ROWS).collect()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise FileError(
                self.name, f"is not a whole and sound Parquet file ({reason:.200})"
            ) from error


def _itself(batch: pl.DataFrame) -> pl.DataFrame:
    return batch


def _place(first: int, row: int) -> str:
    return f"row {first + row}"
