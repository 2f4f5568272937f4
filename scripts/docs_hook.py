"""What the site has beside docs/: changes, a sample report, notebooks, linked files, scripts.

Pages link to each other and to files as they lie in the repository, so that the links work where
the code is read, too. In the site a linked file outside docs/ becomes a page under source/ that
shows it, or a copy if it is no text to read. A notebook becomes a page, too, with what it printed
and drew when it was last run.
"""

from __future__ import annotations

import base64
import csv
import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import docs_browser
from docs_entries import expanded

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
SHOWN = {
    ".py": "python",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".toml": "toml",
    ".csv": "text",
    ".txt": "text",
    ".json": "json",
}
LONGEST = 60_000  # characters of a file that is shown in full

_PICTURE = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\n'
    r'<img alt="([^"]+)" src="([^"]+)">\n</picture>'
)
_HEAD = re.compile(r"(?<=<th>)[\w ]+(?=</th>)")
_NOTEBOOK = re.compile(r"(\]\([\w./-]+)\.ipynb([)#])")
_LINES_ABOUT = re.compile(rf"^.*\]\((?:{'|'.join(docs_browser.PAGES)})\).*\n", re.MULTILINE)
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)(\)|#)")


_in_browser: dict[str, str] = {}  # what the pages that compute load; none if they are left out


def on_config(config: Any) -> None:
    """Make what pages in the browser need; without a compiler for it, leave them out."""
    _in_browser.clear()
    _in_browser.update(docs_browser.made())
    if not _in_browser:
        logging.getLogger("mkdocs.hooks").info(docs_browser.missing())
        config.nav = _without(config.nav, docs_browser.PAGES)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages from the root, and every file outside docs/ that a page links to."""
    for name, text in _in_browser.items():
        files.append(File.generated(config, name, content=text))
    for page in () if _in_browser else docs_browser.PAGES:
        files.remove(files.src_uris[page])
    for path, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    files.append(File.generated(config, "sample-report.html", content=_sample_report()))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        for name, content in _notebook(notebook).items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    for page in list(files.documentation_pages()):
        for _, target, _ in _LINK.findall(page.content_string):
            name = _outside(page.src_uri, target)
            if name and files.get_file_from_path(_source(name)) is None and (ROOT / name).is_file():
                files.append(File.generated(config, _source(name), content=_show(name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """List entries, link to files outside docs/, and show pictures as the page's switch says.

    Where the code is read, <picture> follows the system's setting; the site has a switch for light
    and dark.
    """
    here = posixpath.dirname(page.file.src_uri)
    markdown = _NOTEBOOK.sub(r"\1.md\2", expanded(markdown))
    if not _in_browser:
        markdown = _LINES_ABOUT.sub("", markdown)

    def moved(match: re.Match[str]) -> str:
        name = _outside(page.file.src_uri, match[2])
        return (
            f"{match[1]}{posixpath.relpath(_source(name), here or '.')}{match[3]}"
            if name
            else match[0]
        )

    return _PICTURE.sub(r"![\2](\3#only-light)\n![\2](\1#only-dark)", _LINK.sub(moved, markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Let long names at the head of a table's column break where they have an underscore."""
    return _HEAD.sub(lambda cell: cell[0].replace("_", "_<wbr>"), html)


def _without(nav: Any, pages: tuple[str, ...]) -> Any:
    """The navigation without some pages."""
    if isinstance(nav, list):
        return [_without(entry, pages) for entry in nav if not _leads_to(entry, pages)]
    return {name: _without(of, pages) for name, of in nav.items()} if isinstance(nav, dict) else nav


def _leads_to(entry: Any, pages: tuple[str, ...]) -> bool:
    return isinstance(entry, dict) and any(of in pages for of in entry.values() if type(of) is str)


def _sample_report() -> str:
    """The flights before and after, each outcome known five flights later, as docs/report.md says.

    By the package at hand; docs/make_report_picture.py takes pictures of it.
    """
    import truecast as tc

    with (ROOT / "examples" / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    late, scores = [int(row["outcome"]) for row in rows], [float(row["score"]) for row in rows]
    recalibrator = tc.Recalibrator()
    known_at = range(5, len(rows) + 5)
    airports = [row["airport"] for row in rows]
    after = recalibrator.forecast_many(scores, late, groups=airports, known_at=known_at)
    return tc.html_report(
        late,
        scores,
        after=after,
        certificate=recalibrator.certificate,
        groups=airports,
        times=[row["date"] for row in rows],
        title="Late flights",
        source="examples/scores.csv",
        score="score",
        group="airport",
    ).html


def _notebook(path: Path) -> dict[str, str | bytes]:
    """A notebook as a page, and its pictures, by name."""
    files: dict[str, str | bytes] = {}
    page = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        page.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            if "text" in output:
                page.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            elif drawn := output["data"].get("image/png"):
                name = f"{path.stem}-{len(files) + 1}.png"
                files[name] = base64.b64decode("".join(drawn))
                page.append(f"![{cell['metadata']['alt']}]({name}){{.notebook}}")
    page.append(f'<a href="{path.name}" download>The notebook</a>, to run it yourself.')
    return {f"{path.stem}.md": "\n\n".join(page) + "\n", **files}


def _outside(page: str, target: str) -> str | None:
    """The path in the repository of a link's target, if that is a file outside docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith(("docs/", "../")) else path


def _source(name: str) -> str:
    return PAGES.get(name) or (
        f"source/{name}.md" if Path(name).suffix in SHOWN else f"source/{name}"
    )


def _show(name: str) -> str | bytes:
    path = ROOT / name
    if path.suffix not in SHOWN:
        return path.read_bytes()
    text = path.read_text()
    cut = "" if len(text) <= LONGEST else f"\nThe first {LONGEST:,} of {len(text):,} characters.\n"
    return f"# `{name}`\n{cut}\n``````{SHOWN[path.suffix]}\n{text[:LONGEST]}\n``````\n"
