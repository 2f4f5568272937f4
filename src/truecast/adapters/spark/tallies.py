"""The tally of a Spark frame: counted by Spark on the executors, one tally on the driver."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from truecast.adapters.spark import _rows
from truecast.adapters.spark._columns import (
    INTEGERS,
    NUMBERS,
    check,
    check_free,
    checked_frame,
    column,
)
from truecast.errors import InputError
from truecast.tally import Tally

__all__ = ["bad_rows", "checked_rules", "columns_of", "counted", "of_counts", "tally"]

# distinct ones that are kept apart, as the command does: 400 MB on the driver
MOST_FORECASTS = 1 << 24


def tally(
    df: DataFrame, *, outcome: str, score: str, weight: str | None = None, on_bad: str = "fail"
) -> Tally:
    """Return the tally of two columns, bit for bit as `Tally.from_predictions`.

    Spark counts the rows of each distinct score on the executors; the driver gets the counts. Only
    the sums of real weights may be rounded differently, even from run to run.

    Parameters
    ----------
    df
        A frame, classic or by Spark Connect.
    outcome
        The column of outcomes, 0 or 1: bool, integers, floats or decimals.
    score
        The column of forecasts, between 0 and 1.
    weight
        The column of weights: 0, or from 1e-100 to 1e100. Integers count as repeated rows, others
        make a weighted tally.
    on_bad
        What to do about rows in which an outcome, a score or a weight is null, not a number or out
        of range: "fail", or "count", which skips them and warns with their number. `bad_rows` lists
        them.

    Returns
    -------
    tally
        If there are more than 16,777,216 distinct scores, those within 2**-24 of each other are
        pooled, as `Tally.coarsened` does, and a warning says so.

    Raises
    ------
    InputError
        If a column is missing or not numeric (strings are not converted), or a row is bad.
    FileError
        If a row is bad and Spark knows its file.

    Examples
    --------
    >>> from truecast.adapters import spark
    >>> session = spark.local_session()
    >>> df = session.createDataFrame([(1, 0.9), (0, 0.2), (1, 0.9)], "rain int, forecast double")
    >>> spark.tally(df, outcome="rain", score="forecast")
    Tally of 3 rounds at 2 forecasts

    Notes
    -----
    One pass over two columns. It costs about as much as counting the rows of each score in Spark;
    if all forecasts are distinct, at most three times that (python benchmarks/spark.py). The driver
    holds 24 bytes for each distinct score.
    """
    frame, on_bad = checked_frame(df), _rows.checked_on_bad(on_bad)
    rules = checked_rules(frame, outcome, score, weight)
    table = _collected(counted(frame, rules, [], outcome=outcome, score=score, weight=weight))
    good = table.filter(table.column("p").is_valid())
    left_out = pc.sum(table.filter(table.column("p").is_null()).column("rows")).as_py() or 0
    if left_out and on_bad == "fail":
        _rows.refuse_first(frame, rules)
    if left_out:
        rows = "bad row was" if left_out == 1 else "bad rows were"
        warnings.warn(f"{left_out:,} {rows} left out: bad_rows lists them", stacklevel=2)
    return of_counts(*columns_of(good))


def bad_rows(df: DataFrame, *, outcome: str, score: str, weight: str | None = None) -> DataFrame:
    """Return the rows that `tally` and `measure` refuse or leave out; a column `bad` says why.

    Parameters
    ----------
    df, outcome, score, weight
        As for `tally`.

    Returns
    -------
    rows
        The columns of `df` and `bad`, a struct of `column`, `rule`, `value` and `file` (null if
        Spark does not know it). Lazy.

    Raises
    ------
    InputError
        As `tally` does for its columns.
    """
    frame = checked_frame(df)
    check_free(frame, "bad")
    return _rows.listed(frame, checked_rules(frame, outcome, score, weight))


def checked_rules(
    frame: DataFrame, outcome: str, score: str, weight: str | None
) -> list[_rows.Rule]:
    """Check the columns; return what every row must keep."""
    for argument, name in {"outcome": outcome, "score": score, "weight": weight}.items():
        if name is not None or argument != "weight":
            check(frame, argument, name, NUMBERS)
    rules = [_rows.an_outcome(outcome), _rows.a_score(score)]
    return rules if weight is None else [*rules, _rows.a_weight(weight)]


def counted(
    frame: DataFrame,
    rules: Sequence[_rows.Rule],
    by: Sequence[str],
    *,
    outcome: str,
    score: str,
    weight: str | None,
) -> DataFrame:
    """Return `zeros`, `ones` and `rows` of each distinct score `p`; all bad rows are one null.

    By columns, which come first and are called `key 0`, `key 1` and so on.
    """
    good = _rows.all_kept(rules)
    keys = [f"key {at}" for at in range(len(by))]
    named = [column(name).alias(key) for name, key in zip(by, keys, strict=True)]
    y, p = (column(name).cast("double") for name in (outcome, score))
    narrow = frame.select(
        *named, (y == 1.0).alias("one"), F.when(good, p).alias("p"), *_weights(frame, weight, good)
    )
    spread = narrow.repartition(*map(column, keys)) if by else narrow
    sums = spread.groupBy(*map(column, keys), "p").agg(*_sums(weight), F.count("*").alias("rows"))
    return sums if weight is not None else sums.withColumn("zeros", F.col("rows") - F.col("ones"))


def _weights(frame: DataFrame, weight: str | None, good: Column) -> list[Column]:
    if weight is None:
        return []
    kind = "long" if isinstance(frame.schema[weight].dataType, INTEGERS[0]) else "double"
    return [F.when(good, column(weight)).otherwise(0).cast(kind).alias("w")]


def _sums(weight: str | None) -> list[Column]:
    """Return the number of ones; or the weight of both sides, null if beyond 64 bits."""
    one, w = F.col("one"), F.col("w")
    if weight is None:
        return [F.count_if(one).alias("ones")]
    sides = {"zeros": F.when(one, 0).otherwise(w), "ones": F.when(one, w).otherwise(0)}
    return [F.try_sum(side).alias(name) for name, side in sides.items()]


def _collected(groups: DataFrame) -> pa.Table:
    """Return all groups; the executors pool near scores first if there are too many."""
    columns = groups.select("p", "zeros", "ones", "rows")
    table = columns.limit(MOST_FORECASTS + 2).toArrow()
    if table.num_rows - table.column("p").null_count <= MOST_FORECASTS:
        return table
    pooled = "too many distinct scores: near ones were pooled; ignore the error by value"
    warnings.warn(pooled, stacklevel=3)
    return _pooled(columns, MOST_FORECASTS).toArrow()


def columns_of(table: pa.Table) -> tuple[NDArray[Any], ...]:
    """Return scores, nan where they are null, and their counts."""
    if table.column("zeros").null_count or table.column("ones").null_count:
        raise InputError("weight", "must sum to less than 2**63", "more")
    return tuple(table.column(name).to_numpy() for name in ("p", "zeros", "ones"))


def of_counts(p: NDArray[Any], zeros: NDArray[Any], ones: NDArray[Any]) -> Tally:
    """Return the tally of distinct scores with their counts, in any order."""
    order = np.argsort(p)
    return Tally(p[order], zeros[order], ones[order])


def _pooled(groups: DataFrame, cells: int) -> DataFrame:
    """Return the groups with near scores pooled, a cell by one executor; bad rows stay a group."""
    cell = F.least(F.floor(F.col("p") * cells), F.lit(cells - 1))

    def pool(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            table = pa.Table.from_batches(rows)
            valid = table.column("p").is_valid()
            yield from table.filter(pc.invert(valid)).to_batches()
            yield _as_batch(of_counts(*columns_of(table.filter(valid)))._in_cells(cells))

    return groups.repartition(cell).mapInArrow(pool, groups.schema)


def _as_batch(tally: Tally) -> pa.RecordBatch:
    uncounted = np.zeros(len(tally.p), np.int64)
    columns = [pa.array(column) for column in (tally.p, tally.zeros, tally.ones, uncounted)]
    return pa.RecordBatch.from_arrays(columns, ["p", "zeros", "ones", "rows"])
