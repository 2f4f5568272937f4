"""The JavaScript and the SQL of docs/guides/export.md say what the table says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import blocks

import truecast as tc

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "export.md"
CODE = {block.language: block.text for block in blocks(PAGE.read_text())}
RNG = np.random.default_rng(1)


@pytest.fixture(scope="module")
def table() -> tc.ScoreTable:
    recalibrator = tc.Recalibrator()
    scores = RNG.random(500)
    recalibrator.forecast_many(scores, RNG.random(500) < 0.2 + 0.5 * scores)
    return recalibrator.to_table(tolerance=1e-5)


@pytest.fixture(scope="module")
def scores(table: tc.ScoreTable) -> np.ndarray:
    return np.concatenate((RNG.random(2_000), 10.0 ** -(300 * RNG.random(500)), table.scores))


@pytest.mark.slow("starts a browser")
def test_javascript(browser: Any, table: tc.ScoreTable, scores: np.ndarray) -> None:
    page = browser.new_page()
    call = f"([text, scores]) => {{ {CODE['js']}; return scores.map(probability); }}"
    said = page.evaluate(call, [table.to_json(), scores.tolist()])
    page.close()
    assert np.array(said) == pytest.approx(table(scores), rel=0, abs=1e-15)


@pytest.mark.slow("makes a table of thousands of knots")
def test_sql(
    table: tc.ScoreTable, scores: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    Path("map.json").write_text(table.to_json())
    with duckdb.connect() as database:
        database.execute("CREATE TABLE model (score DOUBLE)")
        database.executemany("INSERT INTO model VALUES (?)", [[score] for score in scores.tolist()])
        said = np.array(database.execute(CODE["sql"]).fetchall())
    assert sorted(said[:, 0].tolist()) == sorted(scores.tolist())
    assert said[:, 1] == pytest.approx(table(said[:, 0]), rel=0, abs=1e-15)
