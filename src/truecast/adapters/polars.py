"""Tallies of Polars frames and of files, of any size."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truecast.adapters import _grouped
from truecast.errors import InputError
from truecast.tally import Tally

__all__ = ["tally"]


def tally(
    data: pl.DataFrame | pl.LazyFrame | str | Path,
    *,
    outcome: str,
    score: str,
    weight: str | None = None,
) -> Tally:
    """Return the tally of two columns, without ever holding the rounds in memory.

    The result equals `Tally.from_predictions` of the same columns; only the sums of real weights
    may be rounded differently, even from run to run.

    Parameters
    ----------
    data
        A frame, or the path of files (`*` and `?` match names): CSV, JSON lines or Parquet, plain
        or compressed.
    outcome
        The column of outcomes, 0 or 1: bool, integers or floats.
    score
        The column of forecasts, between 0 and 1.
    weight
        The column of weights: integers count as repeated rounds, floats make a weighted tally.

    Raises
    ------
    InputError
        If a column is missing or not numeric (strings are not converted), or a value is missing,
        not a number or out of range.
    FileError
        The same for a file, with its name and the line or row.

    Examples
    --------
    >>> import polars as pl
    >>> from truecast.adapters.polars import tally
    >>> frame = pl.DataFrame({"rain": [True, False, True], "forecast": [0.9, 0.2, 0.9]})
    >>> tally(frame, outcome="rain", score="forecast")
    Tally of 3 rounds at 2 forecasts

    Notes
    -----
    One pass with the streaming engine; memory grows with the number of distinct forecasts only.

    A file gives the same tally as the command and `truecast.read_rounds`: the engine counts files
    that end in .parquet or .pq, everything else goes through that reader. For percentages, decimal
    commas, words as outcomes or to skip bad rows, call `truecast.read_rounds` yourself.
    """
    columns = _grouped.Columns(outcome, score, weight)
    if isinstance(data, (str, Path)):
        return _grouped.of_files(data, columns, lambda: _counted(data, columns, whole=True))
    return _counted(data, columns)


def _counted(data: object, columns: _grouped.Columns, *, whole: bool = False) -> Tally:
    """Return the tally of what Polars can scan.

    In a file `whole` weights are counts, whatever their type.
    """
    with _grouped.refusing(data, pl.exceptions.PolarsError, OSError):
        frame = _scanned(data)
        types = frame.collect_schema()
        columns.check(types.names())
        for name in columns.given.values():
            if not (types[name].is_numeric() or types[name] == pl.Boolean):
                if frame.head(1).collect().is_empty():
                    return Tally()
                _grouped.refuse_type(name, types[name])
        weight = columns.weight
        counts = weight is not None and (
            whole or not (types[weight].is_float() or types[weight].is_decimal())
        )
        groups = _grouping(frame, columns, counts).collect(engine="streaming")
    return _grouped.tally(columns, {column.name: _masked(column) for column in groups})


def _scanned(data: object) -> pl.LazyFrame:
    if isinstance(data, (pl.DataFrame, pl.LazyFrame)):
        return data.lazy()
    if not isinstance(data, (str, Path)):
        raise InputError("data", "must be a Polars frame, or the path of files", data)
    path = str(data)
    return pl.scan_parquet(glob.escape(path) if Path(path).exists() else path)


def _grouping(frame: pl.LazyFrame, columns: _grouped.Columns, counts: bool) -> pl.LazyFrame:
    doubles = frame.select(
        *(pl.col(name).cast(pl.Float64).alias(letter) for letter, name in columns.letters.items()),
        pl.lit(1, pl.Int64).alias("rows"),  # pl.len() would count in 32 bits
    )
    w = pl.col("w")
    of_weights = [
        w.null_count().alias("missing"),
        w.filter(w != 0).min().alias("low"),
        w.max().alias("high"),
        w.sum().alias("total"),
        ((w == w.floor()).all() if counts else pl.lit(False)).alias("whole"),
    ]
    sums = [pl.col("rows").sum(), *(of_weights if columns.weight is not None else [])]
    return doubles.group_by("y", "p").agg(sums)


def _masked(column: pl.Series) -> np.ma.MaskedArray[Any, np.dtype[Any]]:
    return np.ma.masked_array(column.to_numpy(), mask=column.is_null().to_numpy())
