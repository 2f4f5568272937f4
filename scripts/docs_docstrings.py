"""Docstrings for the site: formulas become MathML, which browsers draw by themselves, and names become links."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n\1 +\S.*)*)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")
_NAME = re.compile(r"(?<![`\w])`((?:[a-z_]+\.)*(\w+))`(?![`\w])")


class Docstrings(griffe.Extension):
    """Rewrite every docstring once, when its object is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one; doctests are left alone, they follow a line that starts with >>>."""
        if obj.docstring and not isinstance(obj, griffe.Alias):
            head, mark, rest = obj.docstring.value.partition(">>>")
            obj.docstring.value = _rewrite(head) + mark + rest


def _rewrite(text: str) -> str:
    text = _BLOCK.sub(lambda m: f"\n{m[1]}{convert(' '.join(m[2].split()), display='block')}\n", text)
    text = _INLINE.sub(lambda m: convert(m[1]), text)
    text = _PAGE.sub(r'<a href="../\1.html">\1</a>', text)
    return _NAME.sub(_link, text)


def _link(match: re.Match[str]) -> str:
    """A public name in backticks, as a link to its entry."""
    target = _entries().get(match[1])
    return f"[`{match[1]}`][{target}]" if target else match[0]


@cache
def _entries() -> dict[str, str]:
    """Every public name as a docstring may say it, with the path of its entry."""
    paths = [
        entry
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for entry in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)
    ]
    names = {path.removeprefix("truecast."): path for path in paths}
    return names | {path: path for path in paths}
