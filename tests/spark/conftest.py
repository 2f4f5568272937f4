"""One session of Spark for all tests of a process; skipped, and said, without Java or pyspark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs pyspark: pip install 'truecast[spark]'")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17: apt install default-jre-headless")
    from truecast.adapters.spark import local_session

    started = local_session(2, {"spark.sql.shuffle.partitions": "3"})
    yield started
    started.stop()
