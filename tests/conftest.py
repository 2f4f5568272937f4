"""For all tests: no deadlines, what is slow, and the browser that pages are opened in."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No test asserts a time: machines are shared.
settings.register_profile("truecast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("truecast")
# scripts/test --fast draws fewer examples where a test does not say how many; the full run all.
settings.register_profile("fast", parent=settings.get_profile("truecast"), max_examples=30)

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Java compiles quickly rather than well: Spark then takes 40 % less processor time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

# Whole folders that the fast lane (scripts/test --fast) leaves out; single tests carry the marker.
SLOW_FOLDERS = {"browser": "starts a browser", "spark": "starts Spark"}
# Far above the half second of the fast lane: machines are noisy.
MUCH_TOO_SLOW = 2.0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    fast = config.option.markexpr == "not slow"
    return True if fast and collection_path.name in SLOW_FOLDERS else None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any) -> Iterator[Any]:
    """Refuse the marker without a reason."""
    made = yield
    for item in made if isinstance(made, list) else [made] if made else []:
        for marker in chain(item.iter_markers("slow"), item.iter_markers("alike")):
            if len(marker.args) != 1 or not isinstance(marker.args[0], str):
                rule = f'write @pytest.mark.{marker.name}("why it is slow")'
                raise collector.CollectError(f"{item.name}: {rule}")
    return made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its folder, and all but the first of cases that are alike."""
    seen: set[str] = set()
    for item in items:
        if reason := SLOW_FOLDERS.get(item.path.parent.name):
            item.add_marker(pytest.mark.slow(reason))
        if alike := item.get_closest_marker("alike"):
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker(pytest.mark.slow(*alike.args))
            seen.add(test)


# While tests are collected, nothing is garbage: looking for it takes a sixth of the time. Later
# there is little, and it can wait: to look as often as usual takes 6 % of a state machine's time.
def pytest_sessionstart() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name tests that should be marked; a warning only, as any test is slow on a busy machine."""
    seconds: dict[str, float] = defaultdict(float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and "slow" not in report.keywords:
            seconds[report.nodeid] += report.duration
    slow = {name: took for name, took in seconds.items() if took > MUCH_TOO_SLOW}
    if slow:
        terminalreporter.section("slow tests without @pytest.mark.slow(reason)", yellow=True)
        for name, took in sorted(slow.items(), key=lambda entry: -entry[1]):
            terminalreporter.write_line(f"{took:6.1f} s  {name}")


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
