"""One session of Spark for all tests of a process; skipped, and said, without Java or pyspark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

# Java compiles quickly rather than well: the tests then take 40 % less processor time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'truecast[spark]'")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17: apt install default-jre-headless")
    from truecast.adapters.spark import local_session

    started = local_session(2, {"spark.sql.shuffle.partitions": "3"})
    yield started
    started.stop()
