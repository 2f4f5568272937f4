"""Take the pictures of the dashboard that the guides show, into docs/screens.

    python docs/make_screens.py     # needs playwright, pillow and Chromium

A real service is filled with real flights and simulated judges. Only its clock is wound: months
pass in a minute, and end now.
"""

from __future__ import annotations

import csv
import io
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import truecast as tc
from truecast.testing import serving

HERE = Path(__file__).parent
WIDTH = 1000
STEPS = 120  # batches of each stream
DAY = 86_400.0
COLOURS = 128


class Clock:
    """What the service takes for the time: `ago` seconds before now."""

    def __init__(self) -> None:
        self.ago = 0.0
        self._real = time.time_ns

    def __enter__(self) -> Clock:
        time.time_ns = lambda: self._real() - int(self.ago * 1e9)
        return self

    def __exit__(self, *error: object) -> None:
        time.time_ns = self._real


def play(
    client: tc.Client,
    clock: Clock,
    streams: dict[str, tuple[Sequence[Any], Sequence[Any], Sequence[str] | None]],
    days: float,
) -> None:
    """Send all streams side by side; the outcomes of a batch come after the next forecasts."""
    for step in range(STEPS + 1):
        clock.ago = days * DAY * (1.0 - step / STEPS)
        for name, (scores, outcomes, groups) in streams.items():
            edges = [len(scores) * k // STEPS for k in range(STEPS + 1)] + [len(scores)]
            now, before = slice(edges[step], edges[step + 1]), slice(edges[step - 1], edges[step])
            ids = [f"{name}-{k}" for k in range(len(scores))]
            if ids[now]:
                some = None if groups is None else groups[now]
                client.forecasts(name, scores[now], ids=ids[now], groups=some)
            if step:
                client.outcomes(name, ids[before], outcomes[before])


def flights() -> tuple[list[float], list[int], None]:
    """The flights that the pages are about."""
    with (HERE.parent / "examples" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [float(row["score"]) for row in rows], [int(row["outcome"]) for row in rows], None


def judge(seed: int, bias: float) -> tuple[list[float], list[int], list[str]]:
    """A simulated judge: few round numbers, and too sure by `bias`; see docs/guides/judges.md."""
    said = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99])
    rng = np.random.default_rng(seed)
    quality = rng.normal(0.5, 1.2, 4_000)
    outcomes = rng.random(4_000) < 1 / (1 + np.exp(-quality))
    felt = 1 / (1 + np.exp(-(1.3 * quality + rng.normal(0, 0.7, 4_000) + bias)))
    confidence = said[np.abs(felt[:, None] - said).argmin(1)]
    topics = rng.choice(["code", "law", "medicine"], 4_000)
    return confidence.tolist(), outcomes.astype(int).tolist(), topics.tolist()


def honest(seed: int, rounds: int) -> tuple[list[float], list[int], None]:
    """Forecasts that are right."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 3.0, rounds)
    return p.tolist(), (rng.random(rounds) < p).astype(int).tolist(), None


def games(seed: int, rounds: int) -> tuple[list[list[float]], list[str], None]:
    """Three classes; the model is too sure of the first."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2.5, 1.5, 1.5], rounds)
    labels = ["home", "draw", "away"]
    drawn = [labels[rng.choice(3, p=0.7 * row + 0.1)] for row in p]
    return p.tolist(), drawn, None


def fill(client: tc.Client, clock: Clock) -> None:
    """Make a few streams."""
    clock.ago = 90 * DAY
    client.create("late-flights", note="5,543 real flights of 2013")
    client.create("judge-7", note="a simulated LLM judge: confidence in, verdict later")
    client.create("churn", note="simulated")
    client.create("games", classes=["home", "draw", "away"], note="simulated")
    client.create("fraud-v2", note="simulated")
    play(
        client,
        clock,
        {
            "late-flights": flights(),
            "judge-7": judge(0, 1.2),
            "churn": honest(1, 3_000),
            "games": games(2, 1_500),
        },
        90,
    )
    clock.ago = 0.0
    client.forecasts("fraud-v2", [0.02, 0.4, 0.07])


def take(browser: Any, url: str, name: str, height: int, ready: str) -> None:
    """Keep the first screen of a page, light and dark."""
    for scheme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": WIDTH, "height": height}, color_scheme=scheme, locale="en-GB"
        )
        page.goto(url)
        page.locator(ready).first.wait_for()
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        path = HERE / "screens" / f"{name}-{scheme}.png"
        shot.quantize(COLOURS).save(path, optimize=True)
        page.close()


def main() -> None:
    """Fill a service, and look at it."""
    with Clock() as clock, serving() as url, tc.Client(url) as client, sync_playwright() as running:
        fill(client, clock)
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        take(browser, url, "dashboard-list", 620, "table.streams tbody tr")
        take(browser, f"{url}/streams/judge-7/page", "dashboard", 1190, ".point")
        browser.close()


if __name__ == "__main__":
    main()
