"""Docstrings for the site: formulas become MathML, names become links.

The compiled core's docstrings are taken from its source, so that the site can be built without a
compiler.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

from docs_entries import PAGES, entries

ROOT = Path(__file__).parents[1]
KERNELS = "truecast._core.kernels."
_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n\1 +\S.*)*)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")
_POWER = re.compile(r"(?<=[\w)])\*\*(\([^()]*\)|\d*/?\w+)")
_NAME = re.compile(r"(?<![`\w])`((?:truecast\.)?([\w.]+))`(?![`\w])")
_PARAMETERS = re.compile(r"^Parameters\n-+\n.*?(?=^\w+\n---|\Z)", re.MULTILINE | re.DOTALL)
_SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*\n?)+)", re.MULTILINE)
_STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Docstrings(griffe.Extension):
    """Rewrite every docstring once, when its object is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Give the core's objects their docstrings, and rewrite all of them."""
        if obj.path.startswith(KERNELS) and not obj.docstring:
            text = _core_docstrings().get(obj.path.removeprefix(KERNELS))
            obj.docstring = griffe.Docstring(text, parent=obj) if text else None
        if obj.docstring:
            text = _PARAMETERS.sub(
                lambda section: _SHARED.sub(_apart, section[0]), obj.docstring.value
            )
            obj.docstring.value = "\n\n".join(_rewrite(part) for part in text.split("\n\n"))


def _apart(match: re.Match[str]) -> str:
    """Give each parameter its own copy of a shared description; else all get the first's type."""
    return "\n".join(f"{name}\n{match[2].rstrip()}" for name in match[1].split(", ")) + "\n"


def _rewrite(paragraph: str) -> str:
    if paragraph.lstrip().startswith((">>>", "Examples\n")):
        return paragraph
    if paragraph.lstrip().startswith("==="):
        paragraph = _table(paragraph)
    paragraph = _BLOCK.sub(
        lambda m: f"\n{m[1]}{convert(' '.join(m[2].split()), display='block')}\n", paragraph
    )
    # bare, it could begin a block
    paragraph = _INLINE.sub(lambda m: f"<span>{convert(m[1])}</span>", paragraph)
    paragraph = _PAGE.sub(r'<a href="../\1.html">\1</a>', paragraph)
    parts = re.split(r"(`+[^`]+`+)", _NAME.sub(_link, paragraph))
    return "".join(part if "`" in part else _POWER.sub(_raised, part) for part in parts)


def _table(paragraph: str) -> str:
    """A simple table of reStructuredText as one of Markdown; its head may be empty."""
    lines = paragraph.strip("\n").splitlines()
    columns = [range(*found.span()) for found in re.finditer("=+", lines[0])]
    ends = [*(column.start for column in columns[1:]), None]
    rows = [
        [line[column.start : end].strip() for column, end in zip(columns, ends, strict=True)]
        for line in lines
    ]
    rulers = [number for number, line in enumerate(lines) if line.lstrip().startswith("===")]
    head = rows[1] if len(rulers) == 3 else [""] * len(columns)
    body = rows[rulers[-2] + 1 : rulers[-1]]
    indent = " " * columns[0].start
    return "\n".join(
        f"{indent}| {' | '.join(row)} |" for row in (head, ["---"] * len(columns), *body)
    )


def _raised(match: re.Match[str]) -> str:
    return f"<sup>{match[1].removeprefix('(').removesuffix(')')}</sup>"


def _link(match: re.Match[str]) -> str:
    """A public name in backticks, or a member of one, as a link to its entry."""
    head, dot, member = match[2].rpartition(".")
    entries = _entries()
    if match[2] in entries:
        return f"[`{match[1]}`][{entries[match[2]]}]"
    if head not in entries:
        return match[0]
    # fields have no entry of their own
    place = f"{dot}{member}" if f"{head}.{member}" in _methods() else ""
    return f"[`{match[1]}`][{entries[head]}{place}]"


@cache
def _entries() -> dict[str, str]:
    """Every public name as a docstring may say it, with the path of its entry."""
    paths = [path for page in PAGES for path in entries(page.read_text())]
    short = {
        path.rpartition(".")[2]: path
        for path in reversed(paths)
        if path.rpartition(".")[2][0].isupper()
    }
    # a function in a module of its own name has an entry by its full path, a.b.b
    return short | {
        re.sub(r"\.(\w+)\.\1$", r".\1", path.removeprefix("truecast.")): path for path in paths
    }


@cache
def _methods() -> set[str]:
    """Class.method of every class with methods or properties of its own."""
    trees = (ast.parse(source.read_text()) for source in (ROOT / "src" / "truecast").rglob("*.py"))
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {
        f"{it.name}.{part.name}"
        for it in classes
        for part in it.body
        if isinstance(part, ast.FunctionDef)
    }


@cache
def _core_docstrings() -> dict[str, str]:
    """Class.member -> docstring: the last strings of each .def(...) in the core's source."""
    found = {}
    for source in sorted((ROOT / "src" / "truecast" / "_core").glob("*.cpp")):
        for body in re.split(r"\bnb::class_<", source.read_text())[1:]:
            name, *definitions = re.split(r"\n\s+\.def\w*\(\s*", body)
            owner = _STRINGS.search(name)
            for definition in definitions:
                text = re.search(r'((?:"(?:[^"\\]|\\.)*"\s*)+)\)(?:;|\s*$)', definition)
                member = _STRINGS.match(definition)
                if owner and member and text:
                    found[f"{owner[1]}.{member[1]}"] = "".join(_STRINGS.findall(text[1]))
    return found
