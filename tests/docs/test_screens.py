"""Screens of the dashboard, which docs/make_screens.py takes: small, and each shown on a page."""

from __future__ import annotations

import re
import struct
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCREENS = sorted((ROOT / "docs" / "screens").iterdir())
SHOWN = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" '
    r'srcset="(?:\.\./)?screens/([\w-]+)-dark\.png">\n'
    r'<img alt="([^"]+)" src="(?:\.\./)?screens/([\w-]+)-light\.png">\n</picture>'
)


def test_each_is_shown_light_and_dark_and_described() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    found = SHOWN.findall(pages)
    assert found
    assert all(dark == light and len(words) > 40 for dark, words, light in found)
    shown = {f"{name}-{scheme}.png" for name, _, _ in found for scheme in ("light", "dark")}
    assert shown == {path.name for path in SCREENS}


def test_they_are_small() -> None:
    for path in SCREENS:
        content = path.read_bytes()
        width, height = struct.unpack(">II", content[16:24])
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert width == 1000, path.name
        assert height <= 1200, path.name
        assert len(content) < 60_000, path.name
