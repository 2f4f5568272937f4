"""The pages of benchmarks are put together by benchmarks/pages.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PRINTED = """# Benchmarks: a thing

Made by `python benchmarks/arc.py`.

## Section

```python
# a comment
```

### Below
"""


@pytest.fixture
def pages() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "pages.py"))


def test_headlines_are_those_of_the_parts(pages: dict[str, Any]) -> None:
    for page in pages["HEADS"]:
        text = (ROOT / "docs" / page).read_text()
        assert text.startswith(pages["head"](page))
        titles = [title for title, _ in pages["parts"](text)]
        assert titles == [it.title for it in pages["PARTS"].values() if it.page == page]


def test_every_part_has_a_script_and_says_what_made_it(pages: dict[str, Any]) -> None:
    for name, it in pages["PARTS"].items():
        script = it.script.split()[0]
        assert (ROOT / "benchmarks" / script).is_file()
        assert f"\nMade by `python benchmarks/{script}" in pages["part"](name)


def test_a_part_is_lowered_by_a_level_but_for_its_code(pages: dict[str, Any]) -> None:
    text = pages["lowered"](PRINTED)
    assert "# Benchmarks" not in text
    assert "\n### Section\n" in text
    assert "\n# a comment\n" in text
    assert text.endswith("\n#### Below\n")


def test_a_part_takes_the_place_of_the_old_one(pages: dict[str, Any], tmp_path: Path) -> None:
    put = pages["put"]
    put.__globals__["DOCS"] = tmp_path
    for name, text in {"measure": "m", "arc": "old", "forecast": "f"}.items():
        put(name, text)
    put("arc", "new")
    found = [
        (title, text.strip())
        for title, text in pages["parts"]((tmp_path / "benchmarks.md").read_text())
    ]
    assert found == [("Forecasters", "f"), ("The arc", "new"), ("Measures", "m")]
