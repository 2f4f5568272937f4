"""What Spark costs with truecast in it, beside what Spark costs alone: on this machine, two cores.

    python benchmarks/pages.py spark  # into the docs; six minutes
    python benchmarks/spark.py  # to look at; --scale 0.01 is quick

Needs the package with its spark extra, and Java 17.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import spark_stream
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from timing import cpu_seconds, header

from truecast.adapters import spark

PAIRS = 3  # runs of either kind, in turn
SPEEDS = "| work | rows | seconds | rows/s | rows to a CPU second |\n|---|---|---|---|---|"


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def computed(frame: DataFrame) -> None:
    """Compute every row, and throw it away."""
    frame.write.format("noop").mode("overwrite").save()


def against(name: str, rows: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Print the median of ratios, each of two runs one after the other."""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(PAIRS)]
    ratio, taken, alone = median((a / b, a, b) for a, b in pairs)
    print(f"| {name} | {rows:,} | {taken:.1f} | {alone:.1f} | {ratio:.2f} |", flush=True)


def speed(name: str, rows: int, work: Callable[[], Any]) -> None:
    """Print the time on the clock, and the processor time of all of Spark."""
    before = cpu_seconds()
    taken = seconds(work)
    spent = cpu_seconds() - before
    pace = f"{rows / taken:,.0f} | {rows / spent:,.0f}"
    print(f"| {name} | {rows:,} | {taken:.1f} | {pace} |", flush=True)


def few(session: SparkSession, rows: int) -> DataFrame:
    """Return rows with 1,001 scores."""
    score = F.pmod(F.col("id") * 7919, F.lit(1001)) / 1000
    return session.range(rows).select(score.alias("p"), F.col("id").bitwiseAND(1).alias("y"))


def distinct(session: SparkSession, rows: int) -> DataFrame:
    """Return rows of which hardly two have the same score."""
    return session.range(rows).select(F.rand(1).alias("p"), F.col("id").bitwiseAND(1).alias("y"))


def keyed(session: SparkSession, rows: int, keys: int, digits: int = 17) -> DataFrame:
    """Return rows of keys, in turn."""
    score = F.round(F.rand(2), digits)
    keyed = session.range(rows).select(
        (F.col("id") % keys).alias("key"), F.col("id").alias("time"), score.alias("p")
    )
    return keyed.withColumn("y", (F.rand(3) < F.col("p")).cast("int"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    session = spark.local_session(2, {"spark.driver.memory": "6g"})
    header("Benchmarks: Spark", "spark.py", "pyspark", "pyarrow")
    tallies(session, scale)
    batches(session, scale)
    segments(session, scale)
    session.stop()
    streams(scale)


def tallies(session: SparkSession, scale: float) -> None:
    print(
        "\n## Tallies\n\n"
        "Beside Spark's own `groupBy(score).count()`: the median of three pairs of runs.\n"
    )
    print("| scores | rows | seconds | Spark's count | ratio |\n|---|---|---|---|---|", flush=True)
    for name, make, size in (("1,001", few, 10**8), ("all distinct", distinct, 10**7)):
        rows = int(size * scale)
        spark.tally(make(session, 1_000), outcome="y", score="p")
        computed(make(session, 1_000).groupBy("p").count())  # both are compiled by now
        frame = make(session, rows)
        count = frame.groupBy("p").count()
        against(
            name,
            rows,
            lambda f=frame: spark.tally(f, outcome="y", score="p"),
            lambda c=count: computed(c),
        )


def batches(session: SparkSession, scale: float) -> None:
    rows, keys = int(10**7 * scale), max(int(10**4 * scale), 1)
    frame = keyed(session, rows, keys)
    names = {"outcome": "y", "score": "p", "key": "key", "order_by": "time"}
    sort = frame.repartition("key").sortWithinPartitions("key", "time")
    # workers are started by now
    computed(spark.recalibrate(keyed(session, 1000, 10), **names).forecasts)
    print(f"\n## A batch recalibrated\n\n{keys:,} keys; one run each.\n\n{SPEEDS}", flush=True)
    speed("shuffled and sorted by Spark alone", rows, lambda: computed(sort))
    counted = spark.recalibrate(frame, **names, on_bad="count").forecasts
    speed("and recalibrated", rows, lambda: computed(counted))
    speed("and checked before", rows, lambda: computed(spark.recalibrate(frame, **names).forecasts))


def segments(session: SparkSession, scale: float) -> None:
    print(f"\n## Measures by segment\n\nTen rows each; one run.\n\n{SPEEDS}", flush=True)
    names = {"outcome": "y", "score": "p", "by": "key", "on_bad": "count"}
    some = ["total", "brier", "smooth_calibration_error"]
    for number, only in ((10**6, some), (2 * 10**4, None)):
        count = max(int(number * scale), 1)
        frame = keyed(session, 10 * count, count, 2)
        what = "three measures" if only else "every measure, p-value, verdict"
        tables = spark.measure(frame, **names, only=only)
        speed(f"{count:,} segments, {what}", 10 * count, lambda t=tables: computed(t))


def streams(scale: float) -> None:
    print(
        "\n## Streams\n\nHalf of the events are forecasts, half outcomes; two cores. Of each stream one run, without its first of five micro-batches.\n"
    )
    print(spark_stream.SPEEDS, flush=True)
    with TemporaryDirectory() as folder:
        for keys in (8, max(int(10**4 * scale), 8)):
            events = int(2 * 10**6 * scale)
            spark_stream.speed(Path(folder) / str(keys), keys=keys, events=events, files=5)
        print("\n### How large the state of a key is\n")
        keys = max(int(2 * 10**4 * scale), 1)
        spark_stream.size(Path(folder) / "size", keys=keys, rounds=10)


if __name__ == "__main__":
    main()
