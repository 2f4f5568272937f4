"""A Spark session on this machine, for trying things out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from truecast import _check
from truecast.errors import TruecastError

__all__ = ["ROCKSDB", "local_session"]

_NO_JAVA = (
    "Spark needs Java 17 or newer, and none was found: install it"
    " (apt install default-jre-headless on Debian and Ubuntu), or set JAVA_HOME to where it is"
)


ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def local_session(cores: int = 2, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a Spark session on this machine, for tests and for trying things out.

    It listens only on 127.0.0.1, has no web page, runs its workers with this Python, and keeps the
    state of streams in RocksDB, as `recalibrate_stream` needs. An existing session is returned
    unchanged.

    Parameters
    ----------
    cores
        How many cores it may use.
    settings
        More settings of Spark, such as ``{"spark.driver.memory": "4g"}``.

    Raises
    ------
    TruecastError
        If there is no Java, or Spark does not start.

    Notes
    -----
    Takes 5 to 10 s. ``session.stop()`` ends it.
    """
    cores = _check.whole_number("cores", cores, least=1, most=1024)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not _has_java():
        raise TruecastError(_NO_JAVA)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("truecast")
    chosen = {**_SETTINGS, "spark.sql.shuffle.partitions": str(2 * cores), **(settings or {})}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise TruecastError(f"Spark did not start: {error}") from error


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None) is not None
