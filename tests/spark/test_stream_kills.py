"""Killed inside micro-batches and restarted, a stream gives the answers of a plain replay."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import plain_stream
import pytest

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'truecast[spark]'")

WINDOWS: dict[str, Any] = {
    "late": timedelta(minutes=5),
    "give_up": timedelta(hours=2),
    "remember": timedelta(hours=1),
}
PATIENCE = 300  # seconds; a run that takes longer hangs


def run(folder: str) -> None:
    """Run the stream over all files; what the killed process does."""
    from truecast.adapters.spark import local_session
    from truecast.adapters.spark.stream import recalibrate_stream

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": provider,
    }
    spark = local_session(2, settings)
    schema = spark.read.parquet(f"{folder}/in").schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    answers = recalibrate_stream(events, groups="group", **WINDOWS)
    writer = answers.writeStream.format("parquet").option("path", f"{folder}/out")
    query = (
        writer.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def start(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        command = [sys.executable, __file__, str(folder)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def kill_in(batch: int, folder: Path) -> None:
    """Start the stream; kill it, the JVM included, inside this micro-batch."""
    process = start(folder)
    until = time.monotonic() + PATIENCE
    while not (folder / "checkpoint" / "offsets" / str(batch)).exists():
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / "checkpoint" / "commits" / str(batch)).exists()


def test_three_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    from pyarrow import parquet

    if shutil.which("java") is None:
        pytest.skip("needs Java 17: apt install default-jre-headless")
    told = plain_stream.story(6, batches=3, forecasts=40, keys=3)
    plain_stream.write(told, tmp_path / "in")
    for batch in range(3):
        kill_in(batch, tmp_path)
    assert start(tmp_path).wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-2000:]
    expected, _ = plain_stream.replay(told, **WINDOWS)
    expected = [(name, key, score, p) for name, key, _, score, p in expected]
    names = ["id", "key", "score", "recalibrated"]
    found = [
        row
        for file in committed(tmp_path / "out")
        for row in parquet.ParquetFile(file).read(names).to_pylist()
    ]
    assert sorted((tuple(row.values()) for row in found), key=str) == sorted(expected, key=str)


def committed(folder: Path) -> set[Path]:
    """The files that the sink has committed: its log says which."""
    logs = [log for log in (folder / "_spark_metadata").iterdir() if log.name.isdecimal()]
    lines = [line for log in logs for line in log.read_text().splitlines()]
    return {file for file in folder.glob("*.parquet") if any(file.name in line for line in lines)}


if __name__ == "__main__":
    run(sys.argv[1])
