"""The site's pages: every public name has an entry, and every page is in the navigation."""

from __future__ import annotations

import importlib
import pkgutil
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import truecast
from docs_entries import PAGES, entries
from truecast import adapters

ROOT = Path(__file__).parents[2]
ADAPTERS = [
    f"truecast.adapters.{module.name}"
    for module in pkgutil.iter_modules(adapters.__path__)
    if not module.name.startswith("_")
]
MODULES = [
    "truecast",
    "truecast.hints",
    "truecast.arena",
    "truecast.plot",
    "truecast.testing",
    *ADAPTERS,
]
# a function in a module of its own name has an entry by its full path: a.b.b
ENTRIES = [
    re.sub(r"\.(\w+)\.\1$", r".\1", path) for page in PAGES for path in entries(page.read_text())
]


def module_of(name: str) -> object:
    return truecast.hints if name == "truecast.hints" else importlib.import_module(name)


def described() -> set[str]:
    """Entries, and the modules whose names are all described."""
    return {*ENTRIES, *MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_an_entry(name: str) -> None:
    public = {f"{name}.{member}" for member in module_of(name).__all__}  # type: ignore[attr-defined]
    assert public
    assert public <= described(), public - described()


def test_every_entry_is_public_and_there_once() -> None:
    assert len(ENTRIES) == len({*ENTRIES})
    for entry in ENTRIES:
        if entry in MODULES:
            continue
        module, _, member = entry.rpartition(".")
        assert member in module_of(module).__all__, entry  # type: ignore[attr-defined]


def navigation() -> list[str]:
    _, _, nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    return re.findall(r"([\w/.-]+\.md)$", nav, re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    pages |= {f"notebooks/{path.stem}.md" for path in (docs / "notebooks").glob("*.ipynb")}
    pages |= {"changelog.md", "contributing.md"}
    assert sorted(navigation()) == sorted(pages)


def claims() -> list[tuple[str, str, Any]]:
    return runpy.run_path(str(ROOT / "benchmarks" / "comparison.py"))["CLAIMS"]


def test_the_comparison_says_what_its_command_checks() -> None:
    rows = re.findall(
        r"^\| ([\w-]+) \| \d[\w.]* \| (.*) \|$",
        (ROOT / "docs" / "comparison.md").read_text(),
        re.MULTILINE,
    )
    assert rows == [(package, said) for package, said, _ in claims()]


@pytest.mark.slow("imports other packages")
@pytest.mark.filterwarnings("ignore")  # what peers warn of is not ours to mend
@pytest.mark.parametrize(
    ("package", "said", "check"),
    [pytest.param(*row, id=f"{row[0]}-{n}") for n, row in enumerate(claims())],
)
def test_what_is_said_of_a_peer_that_is_installed_is_so(
    package: str, said: str, check: Any
) -> None:
    try:
        holds = check()
    except ModuleNotFoundError as missing:
        pytest.skip(f"{package}: {missing}")
    assert holds, said
