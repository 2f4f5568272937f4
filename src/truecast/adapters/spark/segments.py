"""Every measure of every segment of a Spark frame, as a frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from truecast.measures.figures import FIGURES, some_figures
from truecast.measures.finder import stretches_p_value
from truecast.report.findings import find
from truecast.report.verdict import proved_kind, verdict
from truecast.tally import Tally

__all__ = ["measure"]

_JUDGED = ("p_value", "verdict")


def measure(
    df: DataFrame,
    *,
    outcome: str,
    score: str,
    by: str | Sequence[str],
    weight: str | None = None,
    only: str | Sequence[str] | None = None,
    resamples: int | None = 0,
    on_bad: str = "fail",
) -> DataFrame:
    """Return every measure of every segment: a frame with a row for each, for millions of them.

    The figures equal `truecast.measure` for the rows of the segment, bit for bit.

    Parameters
    ----------
    df
        A frame, classic or by Spark Connect.
    outcome, score, weight
        The columns, as for `tally`.
    by
        The column that defines the segments, or a list of several: strings, bool, integers,
        decimals, dates, timestamps or binary. Null is its own segment.
    only
        The columns to compute, such as ``["brier", "smooth_calibration_error", "p_value"]``,
        instead of all. A segment with all of them takes about 2 ms; SmoothECE, the lower distance
        and the p-value take most of that.
    resamples
        How often chance is simulated for a segment. 0: not at all, the p-value is proved instead.
        None: as often as in the command and the report, which takes a quarter of a second a
        segment.
    on_bad
        As for `tally`: "fail" checks all rows first; "count" skips bad rows and counts them for
        each segment, in `left_out`.

    Returns
    -------
    frame
        Lazy. The columns `by`; `left_out`, bad rows of the segment; `p_value`, how often calibrated
        forecasts would be as far off, conservative if chance was not simulated, and null for real
        weights; `verdict`, the kind of the report's verdict: "none" (no evidence against
        calibration), "few" (too few rounds to tell), "weak", "slight" (simulated only), "off" or
        "weighted"; and the fields of `Report.to_dict`, nested in the same way: ``brier.score``,
        ``totals.brier_total``. A segment of bad rows only has only nulls.

    Raises
    ------
    InputError
        If a column is missing or has the wrong type, or a row is bad.
    FileError
        If a row is bad and Spark knows its file.

    Examples
    --------
    >>> from truecast.adapters import spark
    >>> session = spark.local_session()
    >>> rows = [("a", 1, 0.9), ("b", 0, 0.2), ("a", 1, 0.9)]
    >>> df = session.createDataFrame(rows, "model string, y int, p double")
    >>> tables = spark.measure(df, outcome="y", score="p", by="model")
    >>> figures = ["model", "total", "round(brier.score, 6) AS brier", "verdict"]
    >>> tables.selectExpr(*figures).orderBy("model").show()
    +-----+-----+-----+-------+
    |model|total|brier|verdict|
    +-----+-----+-----+-------+
    |    a|    2| 0.01|    few|
    |    b|    1| 0.04|    few|
    +-----+-----+-----+-------+
    <BLANKLINE>

    Notes
    -----
    Among a million segments, thousands have a p-value below 0.05 by chance: multiply p-values by
    the number of segments first. Proved p-values can be small enough for that.

    Three narrow columns are shuffled once, by segment; Spark counts the distinct scores of each,
    and Python sees these counts, a segment at a time. If segments are few and rows many, count
    first, and pass the counts as weights: ``df.groupBy("model", "y", "p").count()`` and
    ``weight="count"``.
    """
    frame, on_bad = checked_frame(df), _rows.checked_on_bad(on_bad)
    names = names_of("by", by)
    wanted = None if only is None else _check_only(only)
    if resamples:
        resamples = _check.resamples(resamples)
    rules = checked_rules(frame, outcome, score, weight)
    keys = [StructField(name, check(frame, "by", name, KEYS)) for name in names]
    groups = counted(frame, rules, names, outcome=outcome, score=score, weight=weight)
    kind = _type(wanted, real=groups.schema["ones"].dataType == DoubleType())
    figures = cast(StructType, from_arrow_type(kind))
    _refuse_taken(names, figures)
    if on_bad == "fail":
        _rows.refuse_bad(frame, rules)
    places = groups.columns[: len(names)]
    together = groups.sortWithinPartitions(*map(column, places))
    return together.mapInArrow(
        _Measuring(places, kind, wanted, resamples), StructType([*keys, *figures.fields])
    )


def _check_only(only: str | Sequence[str]) -> list[str]:
    names = names_of("only", only)
    for name in names:
        _check.choice("only", name, (*_JUDGED, *FIGURES))
    return names


def _refuse_taken(names: Sequence[str], figures: StructType) -> None:
    taken = [name.lower() for name in figures.names]
    for name in names:
        if name.lower() in taken:
            raise InputError(
                "by", "must not be the name of a measure, which gets a column, too: rename it", name
            )


def _type(only: Sequence[str] | None, *, real: bool) -> pa.StructType:
    """Return what every segment gets: as an example has it."""
    example = _measured(Tally([0.5], [0.5], [0.5]) if real else Tally([0.5], [1], [1]), only, 0)
    found = {"left_out": 0} | example | ({"p_value": 1.0} if "p_value" in example else {})
    return pa.array(
        [found if only is None else {name: found[name] for name in ("left_out", *only)}]
    ).type


def _measured(tally: Tally, only: Sequence[str] | None, resamples: int | None) -> dict[str, Any]:
    """Return the figures of a segment, all or at least some, and what they say."""
    if not tally.total:
        return {}
    judged = _judged(tally, resamples) if only is None or not set(_JUDGED).isdisjoint(only) else {}
    if only is None:
        return judged | of(tally).to_dict()
    return judged | some_figures(tally, [name for name in only if name in FIGURES])


def _judged(tally: Tally, resamples: int | None) -> dict[str, Any]:
    if resamples == 0:
        p_value = math.nan if tally.weighted else stretches_p_value(tally)
        kind = proved_kind(tally.total, p_value)
    else:
        found = find(
            "", tally, groups=None, after=None, level=0.9, resamples=resamples, random_state=0
        )
        p_value, kind = found.p_value, verdict(found).kind
    return {"p_value": None if math.isnan(p_value) else p_value, "verdict": kind}


@dataclass(frozen=True)
class _Measuring:
    """Measures the segments of a partition, which come as sorted counts."""

    keys: Sequence[str]
    kind: pa.StructType
    only: Sequence[str] | None
    resamples: int | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_runs(batches, self.keys):
            starts = starts_of(table, self.keys)
            keys = table.select(self.keys).take(starts).columns
            figures = pa.array(self._rows(table, starts), self.kind).flatten()
            names = [*self.keys, *(field.name for field in self.kind)]
            yield pa.RecordBatch.from_arrays(
                [*(key.combine_chunks() for key in keys), *figures], names
            )

    def _rows(self, table: pa.Table, starts: NDArray[np.int64]) -> list[dict[str, Any]]:
        p, zeros, ones = columns_of(table)
        bad = np.isnan(p)
        left_out = np.add.reduceat(np.where(bad, table.column("rows").to_numpy(), 0), starts)
        rows = []
        for start, end, out in zip(starts, [*starts[1:], len(p)], left_out.tolist(), strict=True):
            at = np.flatnonzero(~bad[start:end]) + start
            tally = of_counts(p[at], zeros[at], ones[at])
            rows.append({"left_out": out} | _measured(tally, self.only, self.resamples))
        return rows
