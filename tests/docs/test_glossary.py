"""The glossary has every figure of the report, in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

import truecast as tc
from truecast.report.glossary import Entry, entries

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()


@pytest.mark.parametrize(
    "entry", entries(tc.measure([1, 0, 1], [0.9, 0.2, 0.6])), ids=lambda entry: entry.label
)
def test_the_page_says_what_the_report_says(entry: Entry) -> None:
    if entry.value is None:
        assert f"### {entry.label}\n" in PAGE
    else:
        assert f"{entry.label} | {entry.meaning} |\n" in PAGE
