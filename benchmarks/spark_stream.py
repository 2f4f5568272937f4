"""Streams on Spark: events a second, our share of the work, the size of the state, and 50 kills.

    python benchmarks/spark_stream.py speed --keys 8 --events 1000000
    python benchmarks/spark_stream.py size --keys 100000 --rounds 10
    python benchmarks/spark_stream.py kills --kills 50

Everything runs on this machine, in `--folder` (a temporary one if left out). Needs Java 17 and
pip install 'truecast[spark]'.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from timing import cpu_seconds, descendants

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    "spark.task.maxFailures": "1000",
    "spark.executor.maxNumFailures": "1000",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
WINDOWS = {
    "late": timedelta(minutes=1),
    "give_up": timedelta(minutes=30),
    "remember": timedelta(minutes=1),
}
CHANGED = 1_767_225_600


def write_events(folder: Path, *, files: int, rounds: int, keys: int, seed: int = 0) -> int:
    """Write files of forecasts, outcomes in the same or the next; return the number of events."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    waiting: list[pa.Table] = []
    events = 0
    for number in range(files):
        forecasts, outcomes = rounds_of(rng, number, rounds, keys)
        soon = np.sort(rng.choice(rounds, rounds // 2, replace=False))
        rows = pa.concat_tables([forecasts, outcomes.take(soon), *waiting])
        waiting = [outcomes.take(np.setdiff1d(np.arange(rounds), soon))]
        rows = rows.take(rng.permutation(len(rows)))
        file = folder / f"{number:05}.parquet"
        parquet.write_table(rows, file)
        os.utime(file, (CHANGED + number, CHANGED + number))
        events += len(rows)
    return events


def rounds_of(
    rng: np.random.Generator, number: int, rounds: int, keys: int
) -> tuple[pa.Table, pa.Table]:
    """Forecasts of one minute of events, and their outcomes."""
    score = rng.random(rounds)
    happened = (rng.random(rounds) < score**2).astype(np.int32)
    start = CHANGED * 1_000_000 + number * 60_000_000
    at = start + np.sort(rng.integers(0, 60_000_000, rounds))
    common = {
        "id": pa.array([f"{number}-{row}" for row in range(rounds)]),
        "key": pa.array([f"key {key}" for key in rng.integers(0, keys, rounds)]),
    }
    nothing = pa.nulls(rounds, pa.float64()), pa.nulls(rounds, pa.int32())
    moment = pa.timestamp("us", tz="UTC")
    forecasts = pa.table(
        common | {"time": pa.array(at, moment), "score": score, "outcome": nothing[1]}
    )
    later = pa.array(at + 20_000_000, moment)
    return forecasts, pa.table(
        common | {"time": later, "score": nothing[0], "outcome": pa.array(happened)}
    )


def session(master: str = "local[2]") -> Any:
    """A session on this machine."""
    from truecast.adapters.spark import local_session

    return local_session(2, SETTINGS | {"spark.master": master})


def play(spark: Any, folder: Path, files: int = 1) -> list[dict[str, Any]]:
    """Run the stream over all files, to Parquet; return what Spark reports of each micro-batch."""
    from truecast.adapters.spark.stream import recalibrate_stream

    schema = spark.read.parquet(str(folder / "in")).schema
    source = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", files)
        .parquet(str(folder / "in"))
    )
    writer = (
        recalibrate_stream(source, **WINDOWS)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
    )
    query = (
        writer.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def speed(folder: Path, *, keys: int, events: int, files: int) -> None:
    """Print a row: events a second after a first micro-batch, and how much of the work is ours.

    Seconds depend on what else the machine does. So the share is one of processor time: that of our
    code alone, without Spark, and that of all processes of Spark.
    """
    write_events(folder / "all", files=files, rounds=events // files // 2, keys=keys)
    first, *rest = sorted((folder / "all").iterdir())
    (folder / "in").mkdir()
    first.rename(folder / "in" / first.name)
    spark = session()
    play(spark, folder)
    for file in rest:
        file.rename(folder / "in" / file.name)
    before = cpu_seconds()
    batches = [batch for batch in play(spark, folder) if batch["numInputRows"]]
    used = cpu_seconds() - before
    spark.stop()
    pace = sorted(
        1000 * batch["numInputRows"] / batch["durationMs"]["triggerExecution"] for batch in batches
    )
    rows = sum(batch["numInputRows"] for batch in batches)
    ours = alone(folder / "in")
    print(
        f"| {keys:,} | {rows:,} | {pace[0]:,.0f} | {median(pace):,.0f} | {pace[-1]:,.0f} "
        f"| {rows / used:,.0f} | {ours / used:.0%} |",
        flush=True,
    )


SPEEDS = (
    "| keys | events | events/s, slowest micro-batch | median | fastest | events to a CPU second "
    "| our share of the CPU |\n|---|---|---|---|---|---|---|"
)


class Memory:
    """State variables of a stateful processor, in memory."""

    def __init__(self) -> None:
        self.bucket = self.watermark = 0
        self.values: dict[tuple[Any, ...], Any] = {}

    def getMapState(self, *_: str) -> Memory:  # noqa: N802
        return self

    getValueState = getMapState  # noqa: N815

    def get(self) -> Any:
        return self.values.get((self.bucket,))

    def update(self, value: Any) -> None:
        self.values[(self.bucket,)] = value

    def getValue(self, key: tuple[str]) -> Any:  # noqa: N802
        return self.values.get((self.bucket, *key))

    def updateValue(self, key: tuple[str], value: Any) -> None:  # noqa: N802
        self.values[(self.bucket, *key)] = value

    def registerTimer(self, _: int) -> None:  # noqa: N802
        pass

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.watermark


def alone(folder: Path) -> float:
    """Seconds of processor time of our own code on these files but the first, without Spark."""
    from truecast.adapters.spark import stream_rows
    from truecast.adapters.spark.stream import _config, _windows
    from truecast.adapters.spark.stream_processor import Processor

    memory = Memory()
    processor = Processor(_config({}), _windows(WINDOWS["give_up"], WINDOWS["remember"]))
    processor.init(memory)  # type: ignore[arg-type]
    spent = 0.0
    for number, file in enumerate(sorted(folder.iterdir())):
        rows = prepared(parquet.read_table(file))
        start = time.process_time()
        buckets: dict[int, list[argparse.Namespace]] = {}
        for packed in stream_rows.Packing(fail=True)(rows):
            for row in packed.to_pylist():
                buckets.setdefault(row["bucket"], []).append(argparse.Namespace(rows=row["rows"]))
        for memory.bucket, blobs in buckets.items():
            answers = processor.handleInputRows((memory.bucket,), iter(blobs), memory)  # type: ignore[arg-type]
            out = pa.RecordBatch.from_arrays(
                [pa.array([answer.rows for answer in answers])], names=["rows"]
            )
            sum(batch.num_rows for batch in stream_rows.unpack([out]))
        spent += time.process_time() - start if number else 0.0
        newest = max(pc.max(batch["time"]).as_py() for batch in rows)
        memory.watermark = (newest - WINDOWS["late"] // timedelta(microseconds=1)) // 1000
    return spent


def prepared(rows: pa.Table) -> list[pa.RecordBatch]:
    """Rows as Spark hands them over, 10,000 at a time."""
    buckets = [zlib.crc32(key.encode()) % 256 for key in rows["key"].to_pylist()]
    rows = rows.set_column(2, "time", rows["time"].cast(pa.int64()))
    rows = rows.set_column(4, "outcome", rows["outcome"].cast(pa.float64()))
    rows = rows.append_column("groups", pa.nulls(len(rows), pa.string()))
    reason = pa.struct([(name, pa.string()) for name in ("file", "column", "rule", "value")])
    rows = rows.append_column("bad", pa.nulls(len(rows), reason))
    batches: list[pa.RecordBatch] = rows.append_column(
        "bucket", pa.array(buckets, pa.int32())
    ).to_batches(10_000)
    return batches


def state_sizes() -> None:
    """Print the size of a key's state, without ids, and the processor time to save and load."""
    from truecast.adapters.spark._state import NEVER, Events, KeyState, Windows
    from truecast.recalibrate import Recalibrator

    print("| rounds | bytes | save, ms | load, ms |\n|---|---|---|---|")
    for rounds in (1, 10, 100, 400, 1_000, 5_000, 20_000):
        rng = np.random.default_rng(rounds)
        score = rng.random(rounds)
        state = KeyState(Recalibrator(), Windows(0, 0))
        ids, happened = list(map(str, range(rounds))), (rng.random(rounds) < score**2).astype(int)
        state.play(Events(ids, [1] * rounds, score.tolist(), happened.tolist(), [None] * rounds), 0)
        state.expire(NEVER)
        data = state.to_bytes()
        save = timed(state.to_bytes)
        load = timed(
            lambda data=data: KeyState.from_bytes(data, Recalibrator().config, Windows(0, 0))
        )
        print(f"| {rounds:,} | {len(data):,} | {save:.2f} | {load:.2f} |")


def timed(call: Any) -> float:
    """The least milliseconds of processor time of several calls."""
    times = []
    for _ in range(7):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def size(folder: Path, *, keys: int, rounds: int) -> None:
    """Print how large the state is: of one key, and what Spark keeps of many."""
    state_sizes()
    write_events(folder / "in", files=2, rounds=keys * rounds // 2, keys=keys)
    spark = session()
    last = play(spark, folder)[-1]["stateOperators"][0]
    stored = spark.read.format("statestore").option("path", str(folder / "checkpoint"))
    rows = stored.option("stateVarName", "keys").option("flattenCollectionTypes", "true").load()
    count, saved = rows.selectExpr("count(*)", "sum(length(user_map_value.saved))").first()
    files = last["customMetrics"].get("rocksdbSstFileSize", 0)
    print(
        f"\n{count:,} keys of about {rounds} rounds: {saved / 1e6:,.1f} MB, "
        f"{saved / count:,.0f} bytes a key; RocksDB's files {files / 1e6:,.1f} MB"
    )
    spark.stop()


def kills(folder: Path, *, kills: int, rounds: int, seed: int) -> None:
    """Kill drivers, executors and workers inside micro-batches; compare with an undisturbed run."""
    rng = random.Random(seed)
    quiet, rough = folder / "quiet", folder / "rough"
    events = write_events(quiet / "in", files=kills + 5, rounds=rounds, keys=20)
    write_events(rough / "in", files=kills + 5, rounds=rounds, keys=20)
    if start(quiet, "local[2]").wait():
        raise SystemExit(f"the undisturbed run failed: see {quiet / 'log'}")
    plan = ["driver"] * (kills // 5) + ["executor", "worker"] * kills
    plan = rng.sample(plan[:kills], kills)
    starts, done = 0, 0
    while True:
        run, starts = start(rough, "local-cluster[1,2,1024]"), starts + 1
        done = disturb(run, rough, plan, done, rng)
        if run.wait() == 0:
            break
    same, rows = compare(quiet / "out", rough / "out")
    killed = ", ".join(
        f"{plan[:done].count(kind)} {kind}" for kind in ("driver", "executor", "worker")
    )
    print(
        f"{events:,} events, {done} kills ({killed}), {starts} starts: {rows:,} rows, "
        f"the same: {same}"
    )
    if not same or done < kills:
        raise SystemExit(1)


def start(folder: Path, master: str) -> subprocess.Popen[bytes]:
    """Run the stream in a process of its own."""
    with (folder / "log").open("ab") as log:
        command = [sys.executable, __file__, "run", "--folder", str(folder), "--master", master]
        return subprocess.Popen(command, stdout=log, stderr=log)


def disturb(
    run: subprocess.Popen[bytes], folder: Path, plan: list[str], done: int, rng: random.Random
) -> int:
    """Kill one process in each micro-batch, up to the next driver; return how many are done."""
    hit = newest(folder / "checkpoint" / "commits")
    while run.poll() is None and done < len(plan):
        begun = newest(folder / "checkpoint" / "offsets")
        victims = processes(run.pid)[plan[done]]
        if begun <= hit or not victims:
            time.sleep(0.05)
            continue
        time.sleep(rng.uniform(0, 2))
        kill(run.pid, plan[done], rng.choice(victims))
        hit, done = begun, done + 1
        print(f"kill {done}: {plan[done - 1]} in micro-batch {begun}", flush=True)
        if plan[done - 1] == "driver":
            break
    return done


def newest(folder: Path) -> int:
    """The number of the last micro-batch in a folder of the checkpoint, -1 if there is none."""
    return max(
        (int(file.name) for file in folder.glob("[0-9]*") if file.name.isdecimal()), default=-1
    )


def kill(root: int, kind: str, victim: int) -> None:
    """Kill a process by its id; for the driver all that belongs to it, as if the machine failed."""
    for pid in [root, *descendants(root)] if kind == "driver" else [victim]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def processes(root: int) -> dict[str, list[int]]:
    """The processes of a run: its driver's JVM, the executors' and their Python workers.

    The process that forks the workers is left alone: they would live on as nobody's children, and
    not be found again.
    """
    found: dict[str, list[int]] = {"driver": [], "executor": [], "forking": [], "worker": []}
    for pid, parent in descendants(root).items():
        command = command_of(pid)
        if "CoarseGrainedExecutorBackend" in command:
            found["executor"].append(pid)
        elif "SparkSubmit" in command:
            found["driver"].append(pid)
        elif "pyspark.daemon" in command:
            found["worker" if "pyspark.daemon" in command_of(parent) else "forking"].append(pid)
    return found


def command_of(pid: int) -> str:
    """The command line of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def compare(quiet: Path, rough: Path) -> tuple[bool, int]:
    """Whether two outputs are equal, each row as often; and how many rows there are."""
    one, other = (sorted(rows_of(folder)) for folder in (quiet, rough))
    return one == other, len(one)


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of the files that the sink has committed."""
    names: dict[str, None] = {}
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            names[json.loads(line)["path"].removeprefix("file://")] = None
    tables = [parquet.ParquetFile(name).read() for name in names]
    return [
        tuple(row.values()) for table in tables for row in table.drop_columns("reason").to_pylist()
    ]


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "size", "kills", "run"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="truecast-stream-"))
    if given.what == "speed":
        print(SPEEDS)
        speed(folder, keys=given.keys, events=given.events, files=given.files)
    elif given.what == "size":
        size(folder, keys=given.keys, rounds=given.rounds)
    elif given.what == "kills":
        kills(folder, kills=given.kills, rounds=given.rounds, seed=given.seed)
    else:
        play(session(given.master), folder)


if __name__ == "__main__":
    main()
