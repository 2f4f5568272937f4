"""The documents speak of things that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rooms
import truecast as tc

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


PAGES = (
    *("theory", "measures", "distance", "adaptive", "classes", "arc", "minimax"),
    *("monitor", "sperner"),
)


@pytest.mark.parametrize("page", PAGES)
def test_every_theorem_names_tests_and_they_exist(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    defined = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined |= set(
            re.findall(r"^(?:def |)(test_\w+|Test\w+)\b", path.read_text(), re.MULTILINE)
        )
    named = set(re.findall(r"`(test_\w+|Test\w+)`", text))
    assert named
    assert named <= defined, named - defined
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        if "**Theorem" in section or "**Lemma" in section:
            assert "*Checked by*" in section


def test_links_and_named_files_exist() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            assert target.startswith("https://") or (document.parent / target).exists(), (
                document.name,
                target,
            )


def test_theorems_cited_in_the_code_exist() -> None:
    named = set()
    for page in PAGES:
        text = (ROOT / "docs" / f"{page}.md").read_text()
        found = re.findall(r"\*\*(Lemma|Theorem) (\d+)", text)
        found += [("section", number) for number in re.findall(r"^## (\d)\. ", text, re.MULTILINE)]
        named |= {(page, kind.lower(), number) for kind, number in found}
    cited = set()
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.hpp")]:
        for page, kind, numbers in re.findall(
            r"(?:docs/(\w+)\.md,\s+)?\b(theorem|lemma|section)s? (\d+(?: (?:and|to) \d+)?)\b",
            path.read_text(),
            re.IGNORECASE,
        ):
            cited |= {
                (page or "theory", kind.lower(), number)
                for number in re.split(" and | to ", numbers)
            }
    assert {page for page, _, _ in cited} == {*PAGES}
    assert cited <= named, cited - named


def test_the_rooms_are_drawn_as_the_import_contract_has_them() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert rooms.drawing() in page, "python scripts/rooms.py"


def test_the_readme_says_what_its_example_returns() -> None:
    """Its block of Python shows no results but this one, in a comment."""
    text = (ROOT / "README.md").read_text()
    example = re.search(
        r"^tc\.smooth_calibration_error\((.*)\)  # .*: ([\d.]+)$", text, re.MULTILINE
    )
    assert example
    outcomes, forecasts = ast.literal_eval(example[1])
    assert f"{tc.smooth_calibration_error(outcomes, forecasts):.2f}" == example[2]


def test_versions_agree() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert version[1] == tc.__version__
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version[1]}\n" in (ROOT / "CHANGELOG.md").read_text()
