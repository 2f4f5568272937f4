"""The same by Spark Connect, in a process of its own: a process has sessions of one kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="needs pip install 'pyspark[connect]'")

SCRIPT = """
import shutil
import tempfile
from datetime import UTC, datetime, timedelta

import numpy as np
import truecast as tc
from pyspark.sql import SparkSession
from truecast.adapters import spark
from truecast.adapters.spark.session import ROCKSDB

session = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
rng = np.random.default_rng(0)
p = rng.random(300).round(2)
y = rng.integers(0, 2, 300)
rows = [("ab"[t % 2], t, float(p[t]), int(y[t])) for t in range(300)]
schema = "model string, time int, p double, y int"
df = session.createDataFrame(rows, schema)
names = {"outcome": "y", "score": "p"}

assert spark.tally(df, **names) == tc.Tally.from_predictions(y, p)
for table in spark.measure(df, **names, by="model", only="brier").collect():
    part = slice("ab".index(table.model), None, 2)
    assert table.brier.score == tc.brier_score(y[part], p[part])
better = spark.recalibrate(df, **names, key="model", order_by="time").persist()
for row in better.certificates.collect():
    assert row.rounds == 150
said = [row.recalibrated for row in better.forecasts.orderBy("time").collect()]
for part in (slice(0, None, 2), slice(1, None, 2)):
    assert said[part] == tc.Recalibrator().forecast_many(p[part], y[part]).tolist()
joined = df.join(session.createDataFrame([("a", 2.5)], "model string, q double"), "model")
try:
    spark.recalibrate(joined, outcome="y", score="q", key="model", order_by="time")
except tc.InputError as error:
    print(error)

folder = tempfile.mkdtemp()
rows = [
    (t, "k", datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=t), float(p[t]), int(y[t]))
    for t in range(300)
]
schema = "id long, key string, time timestamp, score double, outcome int"
session.createDataFrame(rows, schema).write.parquet(folder + "/in")
session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
events = session.readStream.schema(schema).parquet(folder + "/in")
writer = spark.recalibrate_stream(events).writeStream.format("parquet")
writer = writer.option("path", folder + "/out").option("checkpointLocation", folder + "/checkpoint")
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
assert query.exception() is None, query.exception()
said = [row.recalibrated for row in session.read.parquet(folder + "/out").orderBy("id").collect()]
assert said == tc.Recalibrator().forecast_many(p, y, known_at=range(300)).tolist()
(state,) = spark.stream_states(session, folder + "/checkpoint").collect()
assert (state.key, state.rounds) == ("k", 300)
session.stop()
shutil.rmtree(folder)
"""


def test_spark_connect() -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java 17: apt install default-jre-headless")
    settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings["PYSPARK_SUBMIT_ARGS"] = (
        "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1].startswith("q must be between 0 and 1 (one of 150 bad rows")
