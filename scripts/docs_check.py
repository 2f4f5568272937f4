"""Read the built site: links and anchors lead somewhere, and nothing is fetched elsewhere.

python scripts/docs_check.py site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# attributes whose address a browser loads by itself
FETCHED = {"src", "srcset", "poster", "data", "action"}
_CSS_FETCH = re.compile(
    r"url\(\s*['\"]?((?:https?:)?//[^)'\"\s]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)"
)


class Page(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loads: list[str] = [a or b for a, b in _CSS_FETCH.findall(text)]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag defines, links to and loads."""
        for name, value in attrs:
            if name in {"id", "name"} and value and tag != "meta":
                self.anchors.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif (
                name in FETCHED or (name == "href" and tag in {"link", "base", "use", "image"})
            ) and value:
                self.loads.append(value)


def main(site: Path) -> list[str]:
    """Return what is wrong, a line each."""
    site = site.resolve()
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for target in page.loads:
            if urlsplit(target).netloc or urlsplit(target).scheme in {"http", "https"}:
                wrong.append(f"{path.name}: loads {target}")
            elif not target.startswith(("data:", "#")) and not _file(site, path, target).exists():
                wrong.append(f"{path.name}: loads {target}, which is missing")
        wrong += [
            f"{path.name}: {reason}"
            for link in page.links
            if (reason := _dead(site, path, link, pages))
        ]
    for path in site.rglob("*.css"):
        wrong += [f"{path.name}: loads {a or b}" for a, b in _CSS_FETCH.findall(path.read_text())]
    return wrong if pages else [f"no pages in {site}"]


def _dead(site: Path, path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = _file(site, path, link)
    if not target.exists():
        return f"links to {link}, which is missing"
    if target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f"links to {link}, which has no such anchor"
    return None


def _file(site: Path, page: Path, link: str) -> Path:
    """The file a link leads to; /... starts at the site, as on the page for missing ones."""
    path = unquote(urlsplit(link).path)
    if path.startswith("/"):
        return site / path[1:]
    return (page.parent / path).resolve() if path else page


if __name__ == "__main__":
    problems = main(Path(sys.argv[1]))
    sys.exit("\n".join(problems) if problems else 0)
