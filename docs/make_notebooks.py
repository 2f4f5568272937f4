"""Run the notebooks of the docs anew, and keep what they print and draw.

    python docs/make_notebooks.py                  # all
    python docs/make_notebooks.py which-model      # some

`tests/docs/test_notebooks.py` runs them, too, and compares. The site shows them as pages.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def run(name: str) -> Any:
    """Return a notebook with what its cells print and draw now, and nothing that always differs."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=300, coalesce_streams=True, resources=resources).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("text/plain", None)
    return notebook


if __name__ == "__main__":
    for one in sys.argv[1:] or NAMES:
        nbformat.write(run(one), FOLDER / f"{one}.ipynb")
