"""Entries of the reference that need not be listed.

On a page, ``::: truecast.* of truecast.measures`` stands for the entries of all that this module
lists in ``__all__`` and no page has by name; ``::: truecast.adapters.*.*`` stands for the modules
of this package, each under its own heading. Both pass on the options below them. A page names an
entry to say where it comes.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
_OPTIONS = r"\n((?: +.*\n?)*)"
_NAMES = re.compile(r"^::: (\S+)\.\* of (\S+)" + _OPTIONS, re.MULTILINE)
_MODULES = re.compile(r"^::: (\S+)\.\*\.\*" + _OPTIONS, re.MULTILINE)
_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def expanded(page: str) -> str:
    """Return the text of a page with all its entries."""
    page = _MODULES.sub(lambda found: _modules(found[1], found[2]), page)
    return _NAMES.sub(lambda found: _entries(found[1], found[2], found[3]), page)


def entries(page: str) -> list[str]:
    """Return the paths of all entries of a page, in order."""
    return _ENTRY.findall(expanded(page))


def _modules(package: str, options: str) -> str:
    sources = (_source(package).parent).glob("[!_]*")
    modules = sorted(f"{package}.{source.stem}" for source in sources)
    sections = (
        f"## `{module}`\n\n{_about(module)}\n\n{_entries(module, module, options)}"
        for module in modules
    )
    return "\n".join(sections)


def _entries(prefix: str, module: str, options: str) -> str:
    paths = (_path(prefix, name) for name in _public(module))
    return "\n".join(f"::: {path}\n{options}" for path in paths if path not in _by_name())


def _path(prefix: str, name: str) -> str:
    """Where a name is found: a function in a module of its own name hides behind that module."""
    hidden = (_source(prefix).parent / f"{name}.py").exists()
    return f"{prefix}.{name}.{name}" if hidden else f"{prefix}.{name}"


@cache
def _by_name() -> set[str]:
    return {path for page in PAGES for path in _ENTRY.findall(page.read_text())}


@cache
def _public(module: str) -> list[str]:
    """What a module lists in `__all__`, and what it adds there: ``__all__ += part.__all__``."""
    names: list[str] = []
    for node in ast.parse(_source(module).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names += ast.literal_eval(node.value)
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "__all__":
            part = ast.unparse(node.value).removesuffix(".__all__")
            names += _public(f"{module}.{part}")
    if not names:
        raise LookupError(f"{module} has no __all__")
    return sorted(names, key=lambda name: (not name.isupper(), name))  # constants come first


def _about(module: str) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(_source(module).read_text())) or "").partition("\n")[0]


def _source(module: str) -> Path:
    path = ROOT / "src" / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
