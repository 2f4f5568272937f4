"""How long the page takes that measures a dropped CSV, beside the command on the same file.

python benchmarks/in_browser.py [rows]  # needs Chromium, playwright, and clang for WebAssembly

The page's own time is from the first byte read to the last figure, in its worker; to the report on
the screen counts the upload by the driver, too. Both draw 200 resamples; the command also looks for
where forecasts are off. Best of three.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
import docs_browser  # noqa: E402
from conftest import CHROMIUM  # noqa: E402


def written(path: Path, rows: int, digits: int) -> None:
    """A CSV of this many rows, with scores of this many digits."""
    rng = np.random.default_rng(1)
    p = rng.beta(1.2, 3, rows)
    y = rng.random(rows) < p**1.2
    lines = (f"2024-01-01,{a:.{digits}f},{b:d}\n" for a, b in zip(p, y, strict=True))
    path.write_text("day,score,outcome\n" + "".join(lines))


def in_page(address: str, path: Path) -> tuple[float, float]:
    """Seconds in the worker, and to the report."""
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(address)
        page.locator("[data-ready]").wait_for()
        start = time.perf_counter()
        page.set_input_files("[data-part=file]", path)
        page.locator("[data-done]").wait_for()
        shown = time.perf_counter() - start
        seconds: float = page.evaluate("document.querySelector('.tc-drop').truecast.seconds")
        browser.close()
    return seconds, shown


def by_command(path: Path) -> float:
    """Seconds of the command, its start included."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "truecast", "measure", str(path), "--resamples", "200"],
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - start


def main(rows: int) -> None:
    """Print a line for each kind of file."""
    print("| scores of | MB | page, its own | to the report | command | page / command |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not docs_browser.write_alone(folder):
            sys.exit(docs_browser.missing())
        address, path = (folder / "drop.html").as_uri(), folder / "rows.csv"
        for digits in (4, 17):
            written(path, rows, digits)
            pages = [in_page(address, path) for _ in range(3)]
            own, shown = (min(each) for each in zip(*pages, strict=True))
            command = min(by_command(path) for _ in range(3))
            print(
                f"| {digits} digits | {path.stat().st_size / 1e6:.0f} | {own:.2f} s | {shown:.2f} s | {command:.2f} s | {own / command:.2f} |"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
