"""For all tests: no deadlines; and the browser that pages are opened in."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No test asserts a time: machines are shared.
settings.register_profile("truecast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("truecast")

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHROMIUM = os.environ.get("CHROMIUM") or next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
        if (path := shutil.which(name))
    ),
    None,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as running:
        if CHROMIUM is None and not Path(running.chromium.executable_path).exists():
            pytest.skip(
                "needs a browser: chromium, CHROMIUM=path, or `playwright install chromium`"
            )
        launched = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield launched
        launched.close()
