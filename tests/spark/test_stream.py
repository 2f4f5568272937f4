"""A stream on a real Spark gives what a plain replay gives, bit for bit; bad rows are named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import plain_stream
import pytest

import truecast as tc

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'truecast[spark]'")

from pyspark.errors import StreamingQueryException

from truecast.adapters.spark._state import Counts
from truecast.adapters.spark.stream import recalibrate_stream, stream_states

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
WINDOWS: dict[str, Any] = {
    "late": timedelta(minutes=5),
    "give_up": timedelta(hours=2),
    "remember": timedelta(minutes=70),
}


@pytest.fixture
def spark(session: Any) -> Iterator[Any]:
    before = session.conf.get(PROVIDER)
    session.conf.set(PROVIDER, ROCKSDB)
    yield session
    session.conf.set(PROVIDER, before)


def read(spark: Any, folder: Path) -> Any:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(answers: Any, folder: Path) -> None:
    """Write all there is, to a folder of Parquet."""
    writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()


def written(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(folder / "out")).collect()
    return [(r.id, r.key, r.time.astimezone(UTC), r.score, r.recalibrated, r.reason) for r in rows]


def rows_of(answers: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    late = "came after its id may have been forgotten"
    return sorted(((*answer, late if answer[-1] is None else None) for answer in answers), key=str)


def test_answers_states_and_counts_are_those_of_a_plain_replay(spark: Any, tmp_path: Path) -> None:
    told = plain_stream.story(1, batches=4, forecasts=200, keys=6)
    plain_stream.write(told, tmp_path / "in")
    expected, keys = plain_stream.replay(told, **WINDOWS, budget=3.0)
    run(
        recalibrate_stream(read(spark, tmp_path / "in"), groups="group", budget=3.0, **WINDOWS),
        tmp_path,
    )
    assert sorted(written(spark, tmp_path), key=str) == rows_of(expected)
    states = {row.key: row for row in stream_states(spark, str(tmp_path / "checkpoint")).collect()}
    assert states.keys() == keys.keys()
    seen = set()
    for key, plain in keys.items():
        state = states[key]
        counts = plain.counts | {"given_up": state.given_up, "unmatched": state.unmatched}
        assert {name: state[name] for name in counts} == counts
        assert (state.rounds, state.bound) == (
            plain.r.certificate.rounds,
            plain.r.certificate.bound,
        )
        other = tc.Recalibrator.from_bytes(bytes(state.recalibrator))
        assert [other.predict(x / 10, group="a") for x in range(11)] == [
            plain.r.predict(x / 10, group="a") for x in range(11)
        ]
        seen |= {name for name, count in plain.counts.items() if count}
    assert seen == set(Counts.__dataclass_fields__)


def test_forecasts_and_outcomes_in_two_streams_are_the_same_as_in_one(
    spark: Any, tmp_path: Path
) -> None:
    (rows,) = plain_stream.story(2, batches=1, forecasts=60, keys=2)
    rows = [row | {"group": None} for row in rows if row["score"] is None or row["outcome"] is None]
    plain_stream.write([[row for row in rows if row["score"] is not None]], tmp_path / "forecasts")
    plain_stream.write([[row for row in rows if row["score"] is None]], tmp_path / "outcomes")
    forecasts = read(spark, tmp_path / "forecasts").select("id", "key", "time", "score")
    outcomes = read(spark, tmp_path / "outcomes").select("id", "key", "time", "outcome")
    run(recalibrate_stream(forecasts, outcomes=outcomes, **WINDOWS), tmp_path)
    expected, _ = plain_stream.replay([rows], **WINDOWS)
    assert sorted(written(spark, tmp_path), key=str) == rows_of(expected)


def test_idle_keys_are_given_up_and_outcomes_without_forecast_forgotten(
    spark: Any, tmp_path: Path
) -> None:
    row = {
        "id": "a",
        "key": "idle",
        "time": plain_stream.START,
        "score": 0.7,
        "outcome": None,
        "group": None,
    }
    stray = row | {"id": "b", "score": None, "outcome": 1}
    later = [
        row | {"id": f"c{n}", "key": "busy", "time": row["time"] + timedelta(hours=n)}
        for n in (1, 3, 5)
    ]
    told = [[row, stray], *([event] for event in later)]
    plain_stream.write(told, tmp_path / "in")
    run(recalibrate_stream(read(spark, tmp_path / "in"), **WINDOWS), tmp_path)
    states = {row.key: row for row in stream_states(spark, str(tmp_path / "checkpoint")).collect()}
    idle, busy = states["idle"], states["busy"]
    assert (idle.forecasts, idle.given_up, idle.unmatched, idle.awaited, idle.held) == (
        1,
        1,
        1,
        0,
        0,
    )
    assert (busy.forecasts, busy.unresolved) == (3, 3)
    assert idle.unresolved == 1  # the certificate counts it at its worst


BAD = {
    "score must be between 0 and 1, got 1.5": {"score": 1.5},
    "score must be between 0 and 1, got NaN": {"score": float("nan")},
    "score must not be null where outcome is, got null": {"score": None, "outcome": None},
    "outcome must be 0 or 1, or null while it is unknown, got 2": {"outcome": 2},
    "id must not be null, got null": {"id": None},
    "key must not be null, got null": {"key": None},
    "time must not be null, got null": {"time": None},
}


def test_bad_rows_are_marked_and_change_nothing(spark: Any, tmp_path: Path) -> None:
    good = {
        "id": "good",
        "key": "k",
        "time": plain_stream.START,
        "score": 0.7,
        "outcome": 1,
        "group": None,
    }
    bad = [good | {"id": f"bad {n}"} | change for n, change in enumerate(BAD.values())]
    plain_stream.write([[good, *bad]], tmp_path / "in")
    run(recalibrate_stream(read(spark, tmp_path / "in"), on_bad="mark"), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    reasons = {row.reason for row in found if row.recalibrated is None}
    assert reasons == set(BAD)
    assert [row.id for row in found if row.reason is None] == ["good"]
    (state,) = stream_states(spark, str(tmp_path / "checkpoint")).collect()
    assert (state.key, state.forecasts, state.rounds) == ("k", 1, 1)


def test_a_bad_row_fails_the_query_in_words(spark: Any, tmp_path: Path) -> None:
    row = {
        "id": "e7",
        "key": "k",
        "time": plain_stream.START,
        "score": 1.5,
        "outcome": None,
        "group": None,
    }
    plain_stream.write([[row]], tmp_path / "in")
    message = (
        "00000.parquet, the row with id 'e7' and key 'k': score must be between 0 and 1, got '1.5'"
    )
    with pytest.raises(StreamingQueryException, match=message):
        run(recalibrate_stream(read(spark, tmp_path / "in")), tmp_path)


def test_a_checkpoint_of_other_options_is_refused_in_words(spark: Any, tmp_path: Path) -> None:
    told = plain_stream.story(3, batches=2, forecasts=5, keys=1)
    plain_stream.write(told[:1], tmp_path / "in")
    run(recalibrate_stream(read(spark, tmp_path / "in"), budget=3.0), tmp_path)
    plain_stream.write(told, tmp_path / "in")
    with pytest.raises(
        StreamingQueryException, match="StateError: this stream was started with the options"
    ):
        run(recalibrate_stream(read(spark, tmp_path / "in"), budget=5.0), tmp_path)


class Own:
    def predict(self, score: float) -> float:
        return score

    def learn(self, score: float, outcome: int) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "name"}, "id must be a column of the data, which has 'id', 'key'"),
        ({"time": "group"}, "group must be a column of timestamps, got 'string'"),
        (
            {"score": "time"},
            "score must be a separate column, and not called recalibrated or reason, got 'time'",
        ),
        ({"late": 5}, "late must be a timedelta, not negative, got 5"),
        ({"remember": timedelta(days=8)}, "remember must be at most give_up, which is 7 days"),
        ({"on_bad": "count"}, "on_bad must be one of 'fail', 'mark'"),
        ({"budget": 0}, "budget must be"),
        ({"color": 1}, r"options must be those of Recalibrator, got \['color'\]"),
        ({"hint": Own()}, "hint must be one of truecast, of a single score"),
    ],
)
def test_what_cannot_be_is_refused_before_the_query_starts(
    spark: Any, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    plain_stream.write(plain_stream.story(4, batches=1, forecasts=1, keys=1), tmp_path)
    with pytest.raises(tc.InputError, match=message):
        recalibrate_stream(read(spark, tmp_path), **options)


def test_frames_that_do_not_stream_and_other_stores_are_refused(spark: Any, tmp_path: Path) -> None:
    plain_stream.write(plain_stream.story(4, batches=1, forecasts=1, keys=1), tmp_path)
    with pytest.raises(tc.InputError, match="df must stream: see recalibrate for a frame"):
        recalibrate_stream(spark.read.parquet(str(tmp_path)))
    spark.conf.set(
        PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    )
    with pytest.raises(
        tc.InputError, match="providerClass must be .*RocksDB.*: set it in the session"
    ):
        recalibrate_stream(read(spark, tmp_path))
