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


def test_all_goes_on_where_a_part_fails_or_lacks_a_program(
    pages: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    part, speed = pages["Part"], pages["SPEED"]
    scripts = {
        "good": "print('# T\\n\\nnew')",
        "bad": "print('# T\\n\\nhalf')\nraise SystemExit(3)",
        "odd": "print('# T\\n\\nno headline in it')",
        "last": "print('# T\\n\\nnew, too')",
    }
    for name, code in scripts.items():
        (tmp_path / f"{name}.py").write_text(code)

    def headline() -> str:
        assert "no headline" not in page.read_text()
        return "in short"

    made = {name: part(speed, name, f"{name}.py", headline, "a second") for name in scripts}
    made["lacking"] = part(speed, "lacking", "good.py", headline, "a second", ("no-such-program",))
    made["untimed"] = part(pages["REAL"], "untimed", "good.py", headline, "a second")
    page = tmp_path / speed
    page.write_text("".join(f"## {name}\n\nold\n\n" for name in made if name != "untimed"))
    main = pages["main"]
    for name, value in {
        "HERE": tmp_path,
        "DOCS": tmp_path,
        "PARTS": made,
        "HEADS": {speed: "# Head\n"},
    }.items():
        monkeypatch.setitem(main.__globals__, name, value)
    monkeypatch.setattr("sys.argv", ["pages.py", "--all"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    text = page.read_text()
    assert text.startswith("# Head\n")
    found = {title: said.strip() for title, said in pages["parts"](text)}
    assert found == {
        "good": "new",
        "bad": "old",
        "odd": "old",
        "last": "new, too",
        "lacking": "old",
    }
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(said) == ["good", "bad", "odd", "last", "lacking"]
    assert said["good"].endswith("minutes")
    assert said["bad"].startswith("FAILED")
    assert said["odd"].startswith("FAILED")
    assert said["lacking"] == "skipped: there is no no-such-program"
