"""Every measure of every segment of a Spark frame, as a frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DoubleType, StructField, StructType

from truecast import _check
from truecast.adapters.spark import _rows
from truecast.adapters.spark._columns import KEYS, check, checked_frame, column, names_of
from truecast.adapters.spark._runs import starts_of, whole_runs
from truecast.adapters.spark.tallies import checked_rules, columns_of, counted, of_counts
from truecast.errors import InputError
from truecast.measures import measure as of
from truecast.measures.finder import stretches_p_value
from truecast.report.findings import find
from truecast.report.verdict import proved_kind, verdict
from truecast.tally import Tally

__all__ = ["measure"]


def measure(
    df: DataFrame,
    *,
    outcome: str,
    score: str,
    by: str | Sequence[str],
    weight: str | None = None,
    resamples: int | None = 0,
    on_bad: str = "fail",
) -> DataFrame:
    """Return every measure of every segment: a frame with a row for each, for millions of them.

    The figures are those of `truecast.measure` for the rows of the segment, bit for bit.

    Parameters
    ----------
    df
        A frame, classic or by Spark Connect.
    outcome, score, weight
        The columns, as for `tally`.
    by
        The column that tells segments apart, or a list of several: strings, bool, integers, decimals, dates, timestamps
        or binary. Null is a segment of its own.
    resamples
        How often chance is simulated for a segment. 0: not at all, the p-value is proved instead. None: as often as the
        command and the report do; that takes a quarter of a second a segment.
    on_bad
        As for `tally`: "fail" looks at all rows once before anything else; "count" leaves bad rows out and counts them
        for each segment, in `left_out`.

    Returns
    -------
    frame
        Lazy. The columns `by`; `left_out`, bad rows of the segment; `p_value`, how often calibrated forecasts would be
        as far off, on the large side if chance was not simulated, and null for real weights; `verdict`, the kind of
        the report's verdict: "none" (no evidence against calibration), "few" (too few rounds to tell), "weak",
        "slight" (simulated only), "off" or "weighted"; and what `Report.to_dict` names, nested as there:
        ``brier.score``, ``totals.brier_total``. A segment with nothing but bad rows has only nulls.

    Raises
    ------
    InputError
        If a column is not there or not of the right type, or a row is bad.
    FileError
        If a row is bad and Spark knows its file.

    Examples
    --------
    >>> from truecast.adapters import spark
    >>> session = spark.local_session()
    >>> df = session.createDataFrame([("a", 1, 0.9), ("b", 0, 0.2), ("a", 1, 0.9)], "model string, y int, p double")
    >>> tables = spark.measure(df, outcome="y", score="p", by="model")
    >>> tables.select("model", "total", "mean_outcome", "brier.score", "verdict").orderBy("model").show()
    +-----+-----+------------+--------------------+-------+
    |model|total|mean_outcome|               score|verdict|
    +-----+-----+------------+--------------------+-------+
    |    a|    2|         1.0|0.009999999999999995|    few|
    |    b|    1|         0.0|0.040000000000000008|    few|
    +-----+-----+------------+--------------------+-------+
    <BLANKLINE>

    Notes
    -----
    Among a million segments, thousands have a p-value below 0.05 by chance: multiply p-values by the number of
    segments first. Proved ones can be as small as they need to be for that.

    Three narrow columns are shuffled once, by segment; Spark counts the distinct scores of each, and Python sees these
    counts, a segment at a time. If segments are few and rows many, count first, and pass the counts as weights:
    ``df.groupBy("model", "y", "p").count()`` and ``weight="count"``.
    """
    frame, on_bad = checked_frame(df), _rows.checked_on_bad(on_bad)
    names = names_of("by", by)
    if resamples:
        resamples = _check.whole_number("resamples", resamples, least=20, most=10**6)
    rules = checked_rules(frame, outcome, score, weight)
    keys = [StructField(name, check(frame, "by", name, KEYS)) for name in names]
    groups = counted(frame, rules, names, outcome=outcome, score=score, weight=weight)
    kind = _type(real=groups.schema["ones"].dataType == DoubleType())
    figures = cast(StructType, from_arrow_type(kind))
    _refuse_taken(names, figures)
    if on_bad == "fail":
        _rows.refuse_bad(frame, rules)
    together = groups.sortWithinPartitions(*map(column, names))
    return together.mapInArrow(_Measuring(names, kind, resamples), StructType([*keys, *figures.fields]))


def _refuse_taken(names: Sequence[str], figures: StructType) -> None:
    taken = [name.lower() for name in figures.names]
    for name in names:
        if name.lower() in taken:
            raise InputError("by", "must not be the name of a measure, which gets a column, too: rename it", name)


def _type(*, real: bool) -> pa.StructType:
    """Return what every segment gets: as an example has it."""
    example = Tally([0.5], [0.5], [0.5]) if real else Tally([0.5], [1], [1])
    return pa.array([_measured(example, 0, 0) | {"p_value": 1.0}]).type


def _measured(tally: Tally, left_out: int, resamples: int | None) -> dict[str, Any]:
    """Return the figures of a segment, and what they say."""
    if not tally.total:
        return {"left_out": left_out}
    if resamples == 0:
        figures = of(tally)
        p_value = math.nan if tally.weighted else stretches_p_value(tally)
        kind = proved_kind(figures, p_value)
    else:
        found = find("", tally, groups=None, after=None, level=0.9, resamples=resamples, random_state=0)
        figures, p_value, kind = found.figures, found.p_value, verdict(found).kind
    sure = None if math.isnan(p_value) else p_value
    return {"left_out": left_out, "p_value": sure, "verdict": kind} | figures.to_dict()


class _Measuring:
    """Measures the segments of a partition, which come as sorted counts."""

    def __init__(self, names: Sequence[str], figures: pa.StructType, resamples: int | None) -> None:
        self._names, self._figures, self._resamples = names, figures, resamples

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_runs(batches, self._names):
            starts = starts_of(table, self._names)
            keys = table.select(self._names).take(starts).columns
            rows = pa.array(self._rows(table, starts), self._figures).flatten()
            columns = [key.combine_chunks() for key in keys] + rows
            yield pa.RecordBatch.from_arrays(columns, [*self._names, *(field.name for field in self._figures)])

    def _rows(self, table: pa.Table, starts: NDArray[np.int64]) -> list[dict[str, Any]]:
        p, zeros, ones = columns_of(table)
        rows = table.column("rows").to_numpy()
        bad = np.isnan(p)
        good = [np.flatnonzero(~part) + start for part, start in zip(np.split(bad, starts[1:]), starts, strict=True)]
        left_out = np.add.reduceat(np.where(bad, rows, 0), starts).tolist()
        return [
            _measured(of_counts(p[at], zeros[at], ones[at]), out, self._resamples)
            for at, out in zip(good, left_out, strict=True)
        ]
