"""A session on this machine; and what is said where there is no Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import truecast as tc

pytest.importorskip("pyspark")
from truecast.adapters import spark


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_without_java_it_says_what_to_install(
    home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", home) if home else monkeypatch.delenv(
        "JAVA_HOME", raising=False
    )
    with pytest.raises(
        tc.errors.TruecastError,
        match="Spark needs Java 17 or newer.*default-jre-headless.*JAVA_HOME",
    ):
        spark.local_session()


def test_cores_are_counted() -> None:
    with pytest.raises(tc.InputError, match="cores must be"):
        spark.local_session(0)


def test_it_listens_on_this_machine_alone_and_without_a_page(session: Any) -> None:
    assert session.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert session.conf.get("spark.ui.enabled") == "false"
    assert session.sparkContext.uiWebUrl is None
    assert spark.local_session() is session
