"""For tests of pages that compute in the browser: the pages by themselves, opened as files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="session")
def docs_browser() -> Iterator[Any]:
    """The script that makes them."""
    sys.path.insert(0, str(SCRIPTS))
    import docs_browser

    yield docs_browser
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="session")
def computing_pages(docs_browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both pages alone: of the site that TRUECAST_SITE names, or else compiled anew."""
    folder = tmp_path_factory.mktemp("pages")
    built = os.environ.get("TRUECAST_SITE")
    if not docs_browser.write_alone(folder, Path(built) if built else None):
        pytest.skip(docs_browser.missing())
    return folder


@pytest.fixture
def open_page(browser: Any, computing_pages: Path) -> Iterator[Callable[..., Any]]:
    """Open one; afterwards, nothing was asked for from elsewhere and nothing went wrong."""
    asked: list[str] = []
    errors: list[str] = []
    contexts = []

    def opened(name: str, **how: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | how)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((computing_pages / f"{name}.html").as_uri())
        page.locator("[data-ready]").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:"))] == []
    assert errors == []
