"""The notebooks run, and print what they are kept with; the site shows them as pages."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def printed(cells: list[dict[str, Any]]) -> list[str]:
    outputs = (output for cell in cells for output in cell.get("outputs", []))
    return ["".join(output["text"]) for output in outputs if output["output_type"] == "stream"]


def drawn(cells: list[dict[str, Any]]) -> list[int]:
    """How many pictures each cell draws."""
    return [
        sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
        for cell in cells
    ]


@pytest.mark.slow("runs a notebook in a kernel of its own")
@pytest.mark.filterwarnings("default")  # of the kernel and its client
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_and_draws_what_it_is_kept_with(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)
    run = runpy.run_path(str(ROOT / "docs" / "make_notebooks.py"))["run"]
    kept, now = json.loads(path.read_text())["cells"], run(path.stem).cells
    assert printed(now) == printed(kept)
    assert drawn(now) == drawn(kept)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_page_with_its_results(path: Path) -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "docs_hook.py"))["_notebook"](path)
    page = made.pop(f"{path.stem}.md")
    cells = json.loads(path.read_text())["cells"]
    assert page.startswith("# ")
    assert all(text.rstrip() in page for text in printed(cells))
    assert len(made) == sum(drawn(cells)) > 0
    for name, picture in made.items():
        assert picture.startswith(b"\x89PNG")
        assert f"]({name}){{.notebook}}" in page
    assert "![]" not in page  # every picture is described


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["a-model-drifts", "an-llm-judge", "which-model"]
