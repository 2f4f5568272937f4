"""A Spark frame through the recalibrator: each key in the order of time, keys in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DoubleType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
)

from truecast.adapters.spark import _rows
from truecast.adapters.spark._columns import (
    GROUPS,
    KEYS,
    NUMBERS,
    TIMES,
    check,
    check_free,
    checked_frame,
    column,
    names_of,
)
from truecast.adapters.spark._runs import starts_of, whole_runs
from truecast.certificate import ArcCertificate
from truecast.errors import InputError
from truecast.recalibrate import Recalibrator

__all__ = ["Recalibration", "recalibrate"]

_NEVER = 1 << 62  # a row that does not come: an outcome known after it stays awaited


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What `recalibrate` returns: lazy frames.

    `forecasts` and `certificates` come from one computation, and each of them runs it again. To use
    both, call `persist` first.

    Attributes
    ----------
    bad : DataFrame
        The bad rows, with a column `bad` that says why: the column, its rule, the value and the
        file.
    """

    bad: DataFrame
    _both: DataFrame
    _keys: tuple[str, ...]

    @property
    def forecasts(self) -> DataFrame:
        """The input rows with a column `recalibrated`, null in bad rows."""
        return self._both.select("row.*", "recalibrated")

    @property
    def certificates(self) -> DataFrame:
        """What is proved about each key.

        The columns of the key; `scope`, "all" rounds of the key, or one "group" of them, or the
        "others" beyond `max_groups`; `group`, its name; `left_out`, bad rows of the key; and the
        fields of `ArcCertificate`, with `per_round`.
        """
        keys = (column("row")[name].alias(name) for name in self._keys)
        return self._both.filter("certificates is not null").select(*keys, F.inline("certificates"))

    def persist(self) -> Recalibration:
        """Keep the result on the executors, in memory and on disk, for both frames."""
        self._both.persist()
        return self

    def unpersist(self) -> None:
        """Free what `persist` has kept."""
        self._both.unpersist()


def recalibrate(
    df: DataFrame,
    *,
    outcome: str,
    score: str | Sequence[str],
    key: str | Sequence[str],
    order_by: str | Sequence[str],
    known_at: str | None = None,
    groups: str | Sequence[str] = (),
    on_bad: str = "fail",
    **options: Any,
) -> Recalibration:
    """Recalibrate a log: a `Recalibrator` for each key, in the order of time, keys in parallel.

    The forecasts equal `Recalibrator.forecast_many` on the sorted rows of the key, bit for bit,
    however the frame is partitioned: what you would have seen live.

    Parameters
    ----------
    df
        A frame, classic or by Spark Connect.
    outcome
        The column of outcomes, 0 or 1. Null: not yet known; the forecast is made and awaits its
        outcome.
    score
        The column of scores, in [0, 1], or log-odds with ``scale="logit"``. A list of several, if
        the hint takes several.
    key
        The column, or columns, whose values each get their own recalibrator: a model, a customer.
    order_by
        The column of times, or several columns to sort by: numbers, dates or timestamps. Rows of a
        key that are equal in all of them are simultaneous: all are forecast before any of their
        outcomes is learned. Among themselves they are sorted by score, groups, all other columns in
        the order of the frame, and last the outcome.
    known_at
        The column of times at which outcomes are known, if later than the row; of the same type as
        the first of `order_by`. An outcome is learned before the first later row. Outcomes known
        after the last row of the key stay awaited.
    groups
        The column, or columns, of groups to calibrate: strings or integers; null is no group. With
        several columns, a group is named by column and value, as in "airport=JFK".
    on_bad
        What to do about rows that break a rule: a null in key, order or score, a value out of
        range, an outcome known before its row or without a time. "fail" checks all rows first.
        "count" skips bad rows: they stay in `forecasts`, with null, and certificates count them.
    options
        Options of `Recalibrator`: `hint`, `scale`, `budget`, `nudge`, `max_groups`,
        `max_unresolved`.

    Returns
    -------
    recalibration
        With `forecasts` and `certificates`, two lazy frames.

    Raises
    ------
    InputError
        If a column is missing or has the wrong type, an option breaks its rule, or a row is bad.
    FileError
        If a row is bad and Spark knows its file.

    Examples
    --------
    >>> import random
    >>> from truecast.adapters import spark
    >>> session, rng = spark.local_session(), random.Random(0)
    >>> rows = [("a", t, 0.9, int(rng.random() < 0.3)) for t in range(1000)]
    >>> df = session.createDataFrame(rows, "model string, time int, p double, y int")
    >>> better = spark.recalibrate(df, outcome="y", score="p", key="model", order_by="time")
    >>> last = better.forecasts.orderBy("time").tail(1)[0]
    >>> last.p, round(last.recalibrated, 1)
    (0.9, 0.3)
    >>> better.certificates.select("model", "rounds").collect()
    [Row(model='a', rounds=1000)]

    Notes
    -----
    One shuffle by key and a sort. All rows of a key are on one executor and must fit in its memory:
    about 100 bytes a row, plus the other columns. Split larger keys by a second column in `key`.
    Executors need truecast.
    """
    frame = checked_frame(df)
    task = _Task(
        keys=names_of("key", key),
        times=names_of("order_by", order_by),
        scores=names_of("score", score),
        groups=names_of("groups", groups) if groups else [],
        outcome=outcome,
        known_at=known_at,
        options=options,
    )
    rules = task.rules(frame)
    if _rows.checked_on_bad(on_bad) == "fail":
        _rows.refuse_bad(frame, rules)
    return Recalibration(
        _rows.listed(frame, rules), task.recalibrated(frame, rules), tuple(task.keys)
    )


@dataclass(frozen=True)
class _Task:
    """What to do, and with which columns; goes to the executors."""

    keys: list[str]
    times: list[str]
    scores: list[str]
    groups: list[str]
    outcome: str
    known_at: str | None
    options: Mapping[str, Any]

    def rules(self, frame: DataFrame) -> list[_rows.Rule]:
        """Check columns and options; return what every row must keep."""
        Recalibrator(**self.options).predict_many(
            self._scores_of(np.full((1, len(self.scores)), 0.5))
        )
        self._check(frame)
        logit = self.options.get("scale") == "logit"
        given = [_rows.never_null(name) for name in self.keys]
        times = [_rows.a_time(name) for name in self.times]
        scores = [_rows.a_score(name, logit=logit) for name in self.scores]
        late = (
            []
            if self.known_at is None
            else [_rows.not_early(self.known_at, self.times[0], self.outcome)]
        )
        return [*given, *times, _rows.an_outcome(self.outcome, unknown=True), *scores, *late]

    def _check(self, frame: DataFrame) -> None:
        names_of("df", [name.lower() for name in frame.columns])
        check_free(frame, "recalibrated", "bad")
        for argument, names, kinds in (
            ("key", self.keys, KEYS),
            ("order_by", self.times, TIMES),
            ("score", self.scores, NUMBERS),
            ("groups", self.groups, GROUPS),
            ("outcome", [self.outcome], NUMBERS),
            ("known_at", [] if self.known_at is None else [self.known_at], TIMES),
        ):
            for name in names:
                check(frame, argument, name, kinds)
        if self.known_at is not None:
            wanted, got = (
                frame.schema[name].dataType.simpleString()
                for name in (self.times[0], self.known_at)
            )
            if got != wanted:
                raise InputError(
                    self.known_at, f"must be of the type of {self.times[0]!r}, {wanted}", got
                )
        for name in self.keys:
            if name.lower() in [field.name for field in _CERTIFICATE]:
                raise InputError(
                    "key", "must not be the name of a field of the certificate: rename it", name
                )

    def recalibrated(self, frame: DataFrame, rules: Sequence[_rows.Rule]) -> DataFrame:
        """Return each row with its forecast, and the certificates of a key beside its last row."""
        order = [*self.keys, *self.times, *self._ties(frame.schema)]
        together = frame.repartition(*map(column, self.keys)).sortWithinPartitions(
            *map(column, order)
        )
        # what Python needs comes beside a row only after rows were shuffled and sorted
        rows = together.select(
            F.struct(*map(column, frame.columns)).alias("row"),
            *self._aliases("key", self.keys),
            *self._aliases("time", self.times),
            *self._aliases("group", self.groups),
            *self._aliases("score", self.scores, "double"),
            column(self.outcome).cast("double").alias("y"),
            *([] if self.known_at is None else [column(self.known_at).alias("known")]),
            _rows.broken(_rows.all_kept(rules)).alias("bad"),
        )
        kinds = [
            StructField("recalibrated", DoubleType()),
            StructField("certificates", from_arrow_type(_CERTIFICATES)),
        ]
        return rows.mapInArrow(self, StructType([rows.schema["row"], *kinds]))

    def _aliases(self, what: str, names: Sequence[str], kind: str | None = None) -> list[Column]:
        columns = [column(name) if kind is None else column(name).cast(kind) for name in names]
        return [each.alias(place) for each, place in zip(columns, self._places(what), strict=True)]

    def _ties(self, schema: StructType) -> list[str]:
        """Return what orders simultaneous rows: the same on every run, and by the outcome last."""
        others = [field.name for field in schema.fields if _orderable(field.dataType)]
        last = [self.outcome] if self.known_at is None else [self.known_at, self.outcome]
        first = [*self.scores, *self.groups]
        return [*first, *(name for name in others if name not in (*first, *last)), *last]

    def _places(self, what: str) -> list[str]:
        many = {"key": self.keys, "time": self.times, "group": self.groups, "score": self.scores}[
            what
        ]
        return [f"{what} {at}" for at in range(len(many))]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recalibrate the keys of a partition, whose rows are sorted."""
        for table in whole_runs(batches, self._places("key")):
            starts = starts_of(table, self._places("key"))
            ends = np.append(starts[1:], table.num_rows)
            log, forecasts = self._log(table, starts), np.full(table.num_rows, np.nan)
            found = [
                self._play(log, start, forecasts[start:end])
                for start, end in zip(starts, ends, strict=True)
            ]
            said = pa.array(forecasts, mask=np.isnan(forecasts))
            columns = [
                table.column("row"),
                said,
                _beside(ends - 1, pa.array(found, _CERTIFICATES), table.num_rows),
            ]
            yield from pa.Table.from_arrays(
                columns, ["row", "recalibrated", "certificates"]
            ).to_batches()

    def _log(self, table: pa.Table, starts: NDArray[np.int64]) -> _Log:
        """Return what recalibrators need of the rows, as arrays."""
        y = _numbers(table, "y")
        changes = np.zeros(table.num_rows, bool)
        changes[starts_of(table, self._places("time"))] = True
        changes[starts] = True
        return _Log(
            good=~_numbers(table, "bad").astype(bool),
            y=np.nan_to_num(y),
            unknown=np.isnan(y),
            scores=self._scores_of(
                np.column_stack([_numbers(table, name) for name in self._places("score")])
            ),
            changes=changes,
            times=_numbers(table, "time 0"),
            known=None if self.known_at is None else _numbers(table, "known"),
            groups=self._groups_of(table),
        )

    def _play(self, log: _Log, start: int, forecasts: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Write the forecasts of a key where its rows are good; return its certificates."""
        rows = log.of(start, start + len(forecasts))
        recalibrator = Recalibrator(**self.options)
        said = recalibrator.forecast_many(
            rows.scores, rows.y, groups=rows.groups, known_at=rows.known_after()
        )
        forecasts[log.good[start : start + len(forecasts)]] = said
        return _certificates(recalibrator, len(forecasts) - len(said))

    def _scores_of(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number a row, or a row of several."""
        return np.ascontiguousarray(table[:, 0]) if len(self.scores) == 1 else table

    def _groups_of(self, table: pa.Table) -> NDArray[np.object_] | None:
        """Return the group of each row, or a tuple of several."""
        if not self.groups:
            return None
        columns = [table.column(name).to_pylist() for name in self._places("group")]
        groups = np.empty(table.num_rows, object)
        groups[:] = columns[0] if len(columns) == 1 else [*map(self._named, *columns)]
        return groups

    def _named(self, *values: str | int | None) -> tuple[str, ...]:
        named = zip(self.groups, values, strict=True)
        return tuple(f"{name}={value}" for name, value in named if value is not None)


class _Log(NamedTuple):
    """Rows in the order of time: those of several keys, or the good ones of one."""

    good: NDArray[np.bool_]
    y: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    scores: NDArray[np.float64]
    changes: NDArray[np.bool_]  # whether a row is later than the one before it
    times: NDArray[Any]
    known: NDArray[Any] | None
    groups: NDArray[np.object_] | None

    def of(self, start: int, end: int) -> _Log:
        """Return the good ones of these rows."""
        part = self._each(slice(start, end))
        if part.good.all():
            return part
        changes = np.diff(np.cumsum(part.changes)[part.good], prepend=0) > 0
        kept = part._each(part.good)
        return kept._replace(changes=changes)

    def _each(self, rows: slice | NDArray[np.bool_]) -> _Log:
        return _Log._make(None if column is None else column[rows] for column in self)

    def known_after(self) -> NDArray[np.int64] | None:
        """Return after which row each outcome is known; None if that is its own row throughout."""
        late = self.known is not None or self.unknown.any() or not self.changes.all()
        if not late or not len(self.y):
            return None
        known = self._by_ties() if self.known is None else self._by_times(self.known)
        known[self.unknown] = _NEVER
        return known

    def _by_ties(self) -> NDArray[np.int64]:
        starts = np.flatnonzero(self.changes)
        ends = np.append(starts[1:], len(self.y))
        return np.repeat(ends - 1, ends - starts)

    def _by_times(self, known: NDArray[Any]) -> NDArray[np.int64]:
        after = np.searchsorted(self.times, known, side="right") - 1
        return np.where(known > self.times[-1], _NEVER, np.maximum(after, 0))


def _beside(at: NDArray[np.int64], entries: pa.Array, rows: int) -> pa.Array:
    """Return a column with these entries in these rows, null elsewhere."""
    which = np.full(rows, -1)
    which[at] = np.arange(len(at))
    return entries.take(pa.array(which, mask=which < 0))


def _numbers(rows: pa.Table, name: str) -> NDArray[Any]:
    """Return a column as numbers in the same order; for null nan, and in times anything."""
    values = rows.column(name).combine_chunks()
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    if values.null_count and not pa.types.is_floating(values.type):
        values = values.fill_null(0)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _certificates(recalibrator: Recalibrator, left_out: int) -> list[dict[str, Any]]:
    """Return what is proved of all rounds, then of each group, then of all groups beyond those."""
    found = [_as_row("all", None, recalibrator.certificate, left_out)]
    found += [
        _as_row("group", str(name), group.certificate)
        for name, group in recalibrator.groups.items()
    ]
    rest = recalibrator.others.certificate
    return [*found, _as_row("others", None, rest)] if rest.rounds + rest.unresolved else found


def _as_row(
    scope: str, group: str | None, certificate: ArcCertificate, left_out: int | None = None
) -> dict[str, Any]:
    figures = asdict(certificate) | {"per_round": certificate.per_round}
    del figures["horizon"]  # there is none
    return {"scope": scope, "group": group, "left_out": left_out} | figures


_CERTIFICATE = pa.array([_as_row("all", "", Recalibrator().certificate, 0)]).type
_CERTIFICATES = pa.list_(_CERTIFICATE)


def _orderable(kind: DataType) -> bool:
    """Whether Spark can sort by such a column."""
    if isinstance(kind, ArrayType):
        return _orderable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_orderable(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType | VariantType | UserDefinedType | CalendarIntervalType)
