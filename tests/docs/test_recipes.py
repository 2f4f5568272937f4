"""The recipes of docs/guides/recipes.md, where the framework that they are for is installed."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import blocks, run_python

import truecast as tc

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "recipes.md"
RECIPES = {
    host: block
    for block in blocks(PAGE.read_text())
    for host in ("torchmetrics", "mlflow", "evidently")
    if f"where {host} is installed" in (block.reason or "")
}


def done(host: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a recipe leaves, in a folder of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a framework warns of is not ours to mend
        pytest.importorskip(
            host, reason=f"{host} is large: run by hand, see docs/guides/recipes.md"
        )
        shutil.copytree(ROOT / "examples", folder / "examples")
        monkeypatch.chdir(folder)
        names: dict[str, Any] = {"__name__": "__main__"}
        run_python(RECIPES[host], names, PAGE.name)
    return names


def flights() -> tuple[np.ndarray, np.ndarray]:
    y, p = np.loadtxt(ROOT / "examples" / "scores.csv", delimiter=",", skiprows=1, usecols=(3, 2)).T
    return y, p


def test_there_is_a_recipe_for_each() -> None:
    assert sorted(RECIPES) == ["evidently", "mlflow", "torchmetrics"]


@pytest.mark.slow("imports torch")
def test_torchmetrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = done("torchmetrics", tmp_path, monkeypatch)
    state = names["metrics"]["brier"]
    p = names["dim_zero_cat"](state.preds).double().numpy()
    y = names["dim_zero_cat"](state.target).numpy()
    assert len(p) == 5_000
    assert names["found"]["brier"].item() == pytest.approx(tc.brier_score(y, p), rel=1e-6)
    smooth = tc.smooth_calibration_error(y, p)
    assert names["found"]["smooth_error"].item() == pytest.approx(smooth, rel=1e-6)


@pytest.mark.slow("imports mlflow")
def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'runs'}")
    names = done("mlflow", tmp_path, monkeypatch)
    assert names["found"]["brier"] == tc.brier_score(*flights())
    assert len(names["found"]) == 5


@pytest.mark.slow("imports evidently")
def test_evidently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = done("evidently", tmp_path, monkeypatch)
    y, p = (column[3000:] for column in flights())
    assert names["found"] == pytest.approx(
        [tc.brier_score(y, p), tc.smooth_calibration_error(y, p)], rel=1e-12
    )
