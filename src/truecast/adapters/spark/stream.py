"""Structured streams: a recalibrator for each key, each event once; and what is proved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from truecast import _check
from truecast.adapters.spark import _rows, stream_rows
from truecast.adapters.spark._columns import GROUPS, NUMBERS, check, checked_frame, column, names_of
from truecast.adapters.spark._state import Counts, KeyState, Windows
from truecast.adapters.spark.session import ROCKSDB
from truecast.adapters.spark.stream_processor import KEYS, STREAM, Processor
from truecast.errors import InputError
from truecast.recalibrate import Recalibrator

__all__ = ["recalibrate_stream", "stream_states"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_MOMENTS = ((TimestampType,), "timestamps")
_NAMES = GROUPS  # what ids and keys can be
_PACKED = "bucket int, rows binary"
_ANSWERS = "id string, key string, time timestamp, score double, recalibrated double, reason string"
_PROVED = {"rounds": pa.int64(), "unresolved": pa.int64()} | dict.fromkeys(
    ("bound", "per_round", "smooth_error", "brier"), pa.float64()
)
_KEPT = dict.fromkeys((*Counts.__dataclass_fields__, "awaited", "held"), pa.int64())
_STATES = pa.schema(
    [("key", pa.string()), *_PROVED.items(), *_KEPT.items(), ("recalibrator", pa.binary())]
)
_STATES_DDL = ", ".join(
    f"{field.name} {'long' if pa.types.is_int64(field.type) else str(field.type)}"
    for field in _STATES
)


def recalibrate_stream(
    df: DataFrame,
    *,
    outcomes: DataFrame | None = None,
    id: str = "id",  # noqa: A002
    key: str = "key",
    score: str = "score",
    outcome: str = "outcome",
    time: str = "time",
    groups: str | Sequence[str] = (),
    late: timedelta = timedelta(minutes=10),
    give_up: timedelta = timedelta(days=7),
    remember: timedelta = timedelta(hours=1),
    on_bad: str = "fail",
    **options: Any,
) -> DataFrame:
    """Recalibrate a stream of events: a `Recalibrator` for each key, each event once.

    A row with a score is a forecast, a row with an outcome is an outcome, and a row may be both.
    They may come late, out of order and more than once. In each micro-batch the events of a key are
    played by time; at equal times outcomes come before forecasts, then by id, outcome, score and
    groups. So the result depends only on the events of each micro-batch, not on their order. An
    outcome that comes before its forecast waits for it.

    Parameters
    ----------
    df
        A streaming frame of forecasts, or of forecasts and outcomes. For one that does not stream
        see `recalibrate`.
    outcomes
        A second frame, if outcomes come separately: with the columns `id`, `key`, `outcome` and
        `time`.
    id
        The column of ids, strings or integers: the same for a forecast and its outcome. Unique
        within a key.
    key
        The column whose values each get their own recalibrator, strings or integers. Outcomes need
        it too, since it locates the state: if your outcomes have only an id, make the key a
        function of the id, or join it first.
    score
        The column of scores, in [0, 1], or log-odds with ``scale="logit"``.
    outcome
        The column of outcomes, 0 or 1; null in rows that are only forecasts.
    time
        The column of event times, timestamps.
    groups
        The column, or columns, of groups to calibrate: strings or integers; null is no group. With
        several columns, a group is named by column and value, as in "airport=JFK".
    late
        How much later than others events may come: the delay of the watermark.
    give_up
        How long after its time a forecast waits for its outcome, and an outcome for its forecast,
        measured by the watermark. Then the forecast is given up: the certificate counts it at its
        worst.
    remember
        How long after its time an id is remembered once its outcome has come, so that it is
        answered only once; at most `give_up`. An older forecast with an unknown id is not answered:
        its `reason` says so.
    on_bad
        What to do about rows that break a rule: a null in id, key or time, neither score nor
        outcome, a value out of range. "fail" ends the query and names the row. "mark" outputs them
        with a `reason`; they change nothing.
    options
        Options of `Recalibrator`: `hint`, `scale`, `budget`, `nudge`, `max_groups`,
        `max_unresolved`.

    Returns
    -------
    answers
        One row a forecast, to write in append mode: id, key, time and score unchanged,
        `recalibrated`, and `reason`, set only if `recalibrated` is null. Duplicates give no row.

    Raises
    ------
    InputError
        If a column is missing or has the wrong type, or an option breaks its rule. While the query
        runs: if a row is bad; StateError if its checkpoint was made with other options,
        VersionError if by a truecast that forecasts differently.

    Notes
    -----
    Exactly-once needs three things: a source that can be read again (files, Kafka), the checkpoint,
    and a sink that writes a micro-batch once (files, Delta). The state must be in RocksDB: set
    ``spark.sql.streaming.stateStore.providerClass``.

    Events of a micro-batch wait in memory, those of one of 256 buckets of keys at a time. A key
    takes 100 bytes, and about 8 a round up to 1,000 rounds; then 10 to 30 kB. Each remembered id
    takes 3 to 15 bytes plus its characters; ids are written again in each micro-batch that has
    events of the key.

    Works with Spark Connect. truecast must be installed on every machine.
    """
    _check_store(checked_frame(df, streams=True))
    windows = _windows(give_up, remember)
    config = _config(options)
    fail = _check.choice("on_bad", on_bad, ("fail", "mark")) == "fail"
    names = _Names(id, key, time, score, outcome)
    names.check()
    several = [] if groups == () else names_of("groups", groups)
    events = _events(df, names, several, outcomes, logit=config["scale"] == "logit")
    delay = f"{_microseconds('late', late)} microseconds"
    packed = (
        events.withWatermark("at", delay)
        .withColumn("time", F.unix_micros("at"))
        .drop("at")
        .withColumn("bucket", F.pmod(F.xxhash64("key"), F.lit(stream_rows.BUCKETS)).cast("int"))
        .mapInArrow(stream_rows.Packing(fail), _PACKED)  # type: ignore[arg-type]
    )
    answers = (
        packed.groupBy("bucket")
        .transformWithState(Processor(config, windows), "rows binary", "append", "eventTime")
        .mapInArrow(stream_rows.unpack, _ANSWERS)
    )
    return _as_they_came(answers, df, names)


class _Names(NamedTuple):
    """The names of the columns; None for one that a frame does not have."""

    id: str
    key: str
    time: str
    score: str | None
    outcome: str | None

    def rules(self, *, logit: bool) -> list[_rows.Rule]:
        """What every row must keep."""
        rules = [_rows.never_null(name) for name in (self.id, self.key, self.time)]
        both = self.score is not None and self.outcome is not None
        if self.score is not None:
            rules.append(_rows.a_score(self.score, logit=logit, unknown=both))
        if self.outcome is not None:
            rules.append(_rows.an_outcome(self.outcome, unknown=both))
        if self.score is not None and self.outcome is not None:
            rules.append(_rows.not_empty(self.score, self.outcome))
        return rules

    def check(self) -> None:
        """Refuse a column that has two tasks, or the name of one that is added."""
        taken = ["recalibrated", "reason"]
        for argument, name in self._asdict().items():
            if not isinstance(name, str) or name in taken:
                raise InputError(
                    argument,
                    "must be a separate column, and not called recalibrated or reason",
                    name,
                )
            taken.append(name)


def _check_store(df: DataFrame) -> None:
    """Refuse a session whose state is not in RocksDB, the only store that can hold it."""
    provider = df.sparkSession.conf.get(_PROVIDER)
    if "RocksDB" not in str(provider):
        raise InputError(_PROVIDER, f"must be {ROCKSDB}: set it in the session", provider)


def _microseconds(argument: str, value: object) -> int:
    if not isinstance(value, timedelta) or value < timedelta():
        raise InputError(argument, "must be a timedelta, not negative", value)
    return value // timedelta(microseconds=1)


def _windows(give_up: object, remember: object) -> Windows:
    windows = Windows(_microseconds("give_up", give_up), _microseconds("remember", remember))
    if windows.remember > windows.give_up:
        raise InputError("remember", f"must be at most give_up, which is {give_up}", remember)
    return windows


def _config(options: dict[str, Any]) -> dict[str, Any]:
    """The options of the recalibrators as plain data, which a stream can save."""
    try:
        prototype = Recalibrator(**options)
    except TypeError as error:
        raise InputError("options", "must be those of Recalibrator", sorted(options)) from error
    try:
        prototype.predict(0.5)
        Recalibrator.from_bytes(prototype.to_bytes())
    except ValueError as error:
        rule = "must be one of truecast, of a single score: the state of a stream is saved"
        raise InputError("hint", rule, options["hint"]) from error
    config: dict[str, Any] = json.loads(json.dumps(prototype.config))
    return config


def _events(
    df: DataFrame, names: _Names, groups: list[str], outcomes: DataFrame | None, *, logit: bool
) -> DataFrame:
    """Forecasts and outcomes with the same columns."""
    both = outcomes is None or names.outcome in df.columns
    forecasts = names if both else names._replace(outcome=None)
    events = _half(df, forecasts, groups, logit=logit)
    if outcomes is None:
        return events
    others = checked_frame(outcomes, "outcomes", streams=True)
    return events.unionByName(_half(others, names._replace(score=None), [], logit=logit))


def _half(df: DataFrame, names: _Names, groups: list[str], *, logit: bool) -> DataFrame:
    """One frame of events; `bad` says what is wrong with a row."""
    check(df, "id", names.id, _NAMES)
    check(df, "key", names.key, _NAMES)
    check(df, "time", names.time, _MOMENTS)
    for group in groups:
        check(df, "groups", group, GROUPS)
    return df.select(
        column(names.id).cast("string").alias("id"),
        column(names.key).cast("string").alias("key"),
        column(names.time).alias("at"),
        _number(df, "score", names.score),
        _number(df, "outcome", names.outcome),
        _listed(groups).alias("groups"),
        _rows.why_bad(df, names.rules(logit=logit)).alias("bad"),
    )


def _number(df: DataFrame, argument: str, name: str | None) -> Column:
    if name is None:
        return F.lit(None).cast("double").alias(argument)
    check(df, argument, name, NUMBERS)
    return column(name).cast("double").alias(argument)


def _listed(groups: list[str]) -> Column:
    """The groups of a row as a JSON list, or null."""
    if not groups:
        return F.lit(None).cast("string")
    called = [column(name) for name in groups]
    if len(groups) > 1:
        called = [F.concat(F.lit(f"{name}="), column(name).cast("string")) for name in groups]
    listed = F.array_compact(F.array(*called))
    return F.when(F.size(listed) > 0, F.to_json(listed))


def _as_they_came(answers: DataFrame, df: DataFrame, names: _Names) -> DataFrame:
    """Give columns the names that they had, and ids and keys their types."""
    types = {field.name: field.dataType for field in df.schema.fields}
    return answers.select(
        F.col("id").cast(types[names.id]).alias(names.id),
        F.col("key").cast(types[names.key]).alias(names.key),
        F.col("time").alias(names.time),
        F.col("score").alias(str(names.score)),
        "recalibrated",
        "reason",
    )


def stream_states(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Return what a stream has learned and proved so far, a row a key: for a dashboard.

    Reads the state of the last finished micro-batch from the checkpoint, even while the stream
    runs, and changes nothing.

    Parameters
    ----------
    spark
        A session.
    checkpoint
        The `checkpointLocation` of the query, whose only stateful operator is that of
        `recalibrate_stream`.

    Returns
    -------
    states
        `key` (as a string); of the certificate `rounds`, `unresolved`, `bound`, `per_round`,
        `smooth_error` and `brier`; the counts `forecasts`, `outcomes`, `duplicates`,
        `contradictions`, `late`, `given_up` and `unmatched`; now `awaited` and `held`; and
        `recalibrator`, for ``Recalibrator.from_bytes``, which has the certificates of groups.
    """
    _check.text("checkpoint", checkpoint)
    reader = spark.read.format("statestore").option("path", checkpoint)
    about = reader.option("stateVarName", STREAM).load().select("value.config").first()
    config = None if about is None else json.loads(about[0])
    saved = reader.option("stateVarName", KEYS).option("flattenCollectionTypes", "true").load()
    columns = saved.select(
        F.col("user_map_key.key").alias("key"), F.col("user_map_value.saved").alias("saved")
    )
    return columns.mapInArrow(_Reading(config), _STATES_DDL)  # type: ignore[arg-type]


class _Reading(NamedTuple):
    """Read saved states: what `mapInArrow` calls."""

    config: dict[str, Any] | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [self._row(row["key"], row["saved"]) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=_STATES)

    def _row(self, key: str, saved: bytes) -> dict[str, Any]:
        state = KeyState.from_bytes(saved, self.config or {}, Windows(0, 0))
        certificate = state.recalibrator.certificate
        return {
            "key": key,
            **{name: getattr(certificate, name) for name in _PROVED},
            **asdict(state.counts),
            "awaited": state.awaited,
            "held": state.held,
            "recalibrator": state.recalibrator.to_bytes(),
        }
