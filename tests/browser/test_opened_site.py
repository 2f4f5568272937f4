"""The site opened as files in a real browser: its search, and that nothing wide is cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="needs mkdocs")
ROOT = Path(__file__).parents[2]
OWN_LOOK = {"sample-report.html", "404.html"}

# code and tables that must be scrolled sideways to be read, and what of the page is beside the
# window
CUT_OFF = """() => [...document.querySelectorAll(".md-content :is(pre > code, table)")]
  .map((e) => [e, e.closest(".md-typeset__scrollwrap") ?? e])
  .filter(([e, box]) => box.scrollWidth > box.clientWidth + 1)
  .map(([e, box]) => `${box.scrollWidth} in ${box.clientWidth}: ${e.innerText.slice(0, 60)}`)"""
SHADES = """() => [...document.querySelectorAll(".md-content :is(pre > code, .md-typeset__scrollwrap)")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => getComputedStyle(box))
  .map((style) => [style.overflowX, style.backgroundImage.includes("gradient"), style.backgroundAttachment])"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that TRUECAST_SITE names, as scripts/test has just built it, or a new one."""
    if built := os.environ.get("TRUECAST_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@contextmanager
def nothing_from_elsewhere() -> Iterator[list[str]]:
    """What pages ask for, none of it from elsewhere."""
    urls: list[str] = []
    yield urls
    assert urls
    own = ("file:", "data:", "blob:")
    assert [url for url in urls if not url.startswith(own)] == []


def window(browser: Any, width: int, asked: list[str]) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    return page


@pytest.mark.parametrize("start", ["index.html", "guides/groups.html"])
def test_the_search_works_in_files(browser: Any, site: Path, start: str) -> None:
    with nothing_from_elsewhere() as asked:
        search(window(browser, 1280, asked), site, start)


def search(page: Any, site: Path, start: str) -> None:
    page.goto((site / start).as_uri())
    page.click(".md-search__input")
    page.keyboard.type("horizon free")
    found = page.locator(".md-search-result__link").first
    found.wait_for()
    found.click()
    page.locator("mark", has_text="orizon").first.wait_for()
    assert Path(page.url.removeprefix("file://").partition("?")[0]).is_relative_to(site)
    page.close()


def pages(site: Path) -> list[Path]:
    found = sorted(
        path for path in site.rglob("*.html") if path.relative_to(site).as_posix() not in OWN_LOOK
    )
    assert len(found) > 40
    return found


def test_pages_fit_a_wide_window_and_on_a_phone_what_is_wider_shows_that_it_scrolls(
    browser: Any, site: Path
) -> None:
    """Each page is opened once, which takes most of the time; then the window becomes narrow."""
    cut_off, beside, shades = [], [], []
    with nothing_from_elsewhere() as asked:
        page = window(browser, 1280, asked)
        for path in pages(site):
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(path.as_uri())
            cut_off += [f"{path.name}: {found}" for found in page.evaluate(CUT_OFF)]
            page.set_viewport_size({"width": 375, "height": 900})
            if page.evaluate("document.documentElement.scrollWidth") > 375:
                beside.append(path.name)
            shades += [tuple(one) for one in page.evaluate(SHADES)]
        page.close()
    assert cut_off == []
    assert beside == []
    assert len(shades) > 20
    assert set(shades) == {("auto", True, "local, local, scroll, scroll, scroll")}
