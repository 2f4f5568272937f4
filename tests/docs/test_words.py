"""The check for hard phrases finds each of them, also across lines, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import words

HARD = {
    "it takes some 120 ns": "some 120",
    "it is some 0.01 off": "some 0.01",
    "against whoever plays": "whoever",
    "what is\n    # to be done": "is to be",
    "the outcome is told": "is told",
    "of so\nmany rounds": "so many",
    "the file is to be read": "is to be",
    "so we go on\nwith the rest": "go on with",
    "three at the most": "at the most",
    "it takes rounds to be alike": "takes rounds to be",
}
PLAIN = (
    "for some 0 <= x",
    "how well cases are told apart",
    "somewhere 12",
    "not so much",
    "the year goes on without it",
)


@pytest.mark.parametrize(("text", "phrase"), HARD.items())
def test_a_hard_phrase_is_found_with_its_place(text: str, phrase: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"A line before.\n{text}.\n")
    (line,) = words.found(page)
    assert line.startswith(f"{page}:2: {phrase!r}: ")
    assert words.main([str(page)]) == 1


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_pass(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert words.main([str(page)]) == 0
