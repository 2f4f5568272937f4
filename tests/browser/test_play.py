"""Play against the forecaster: what the page says is what the package says; what both pages need."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import truecast as tc
from truecast.arc import SMOOTH_ERROR

ROOT = Path(__file__).parents[2]
MOST_BYTES = 100_000
Outcomes = Callable[[Any, random.Random, int], int]

# How outcomes are chosen: from the forecast, a generator and the number of the round.
OPPONENTS: dict[str, Outcomes] = {
    "coin": lambda p, rng, t: int(rng.random() < 0.5),
    "rare": lambda p, rng, t: int(rng.random() < 0.03),
    "contrary": lambda p, rng, t: int(p < 0.5),
    "streaks": lambda p, rng, t: int(math.log2(t + 1)) % 2,
    "as said": lambda p, rng, t: int(rng.random() < p),
}


def test_all_of_it_is_small(computing_pages: Path) -> None:
    files = [path for path in computing_pages.rglob("*.*") if path.suffix in (".js", ".css")]
    assert len(files) == 4
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_without_a_compiler_pages_and_links_to_them_are_left_out(
    docs_browser: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("mkdocs", reason="needs mkdocs")
    from mkdocs.config import load_config

    import docs_hook

    config = load_config(str(ROOT / "mkdocs.yml"))
    assert "play.md" in str(config.nav)
    monkeypatch.setattr(docs_browser, "compiled", lambda: None)
    with caplog.at_level("INFO"):
        docs_hook.on_config(config)
    assert "apt install" in caplog.text
    assert not re.search(r"\b(play|drop)\.md", str(config.nav))
    assert "start.md" in str(config.nav)
    home = (ROOT / "docs" / "index.md").read_text()
    left = docs_hook._LINES_ABOUT.sub("", home)
    assert len(home.split("\n")) == len(left.split("\n")) + 2
    assert "play.md" not in left
    assert "drop.md" not in left


PLAY = """([player, outcomes]) => {
  const { truecast } = document.querySelector(".tc-play");
  truecast.restart(player);
  for (const y of outcomes) truecast.game.play(y);
  return truecast.game.rounds.map((r) => [r.p, r.error, r.certificate, r.promise, r.brier]);
}"""


def played(forecaster: Any, opponent: Outcomes, seed: int, rounds: int) -> list[tuple[float, int]]:
    rng = random.Random(seed)  # noqa: S311
    said = []
    for t in range(rounds):
        p = forecaster.predict()
        y = opponent(p, rng, t)
        forecaster.observe(y)
        said.append((p, y))
    return said


@pytest.mark.parametrize("player", ["arc", "paper"])
def test_a_game_is_that_of_the_package_to_the_last_bit(open_page: Any, player: str) -> None:
    page = open_page("play")
    build = {"arc": tc.Arc, "paper": lambda: tc.AlmostOneStepAhead(horizon=400)}[player]
    for (name, opponent), seed in itertools.product(OPPONENTS.items(), range(3)):
        rounds = played(build(), opponent, seed, 250)
        outcomes = [y for _, y in rounds]
        found = page.evaluate(PLAY, [player, outcomes])
        twin: Any = build()
        for t, ((p, y), now) in enumerate(zip(rounds, found, strict=True), 1):
            twin.predict()
            twin.observe(y)
            certificate = twin.certificate
            if player == "arc":
                proved = certificate.smooth_error
                promise = SMOOTH_ERROR * math.sqrt(t * (65 / 64 + t * 2.0**-39)) * (1 + 2.0**-50)
            else:
                proved = 2 * certificate.bound
                promise = pytest.approx(2 * float(twin.a_priori(t)), rel=1e-15)
            assert [now[0], now[2]] == [p, proved], (name, seed, t)
            assert now[3] == promise
            if t % 25 == 0:
                tally = tc.Tally.from_predictions(outcomes[:t], [p for p, _ in rounds[:t]])
                assert now[1] == tc.smooth_calibration_error(tally, total=True)
                assert now[4] == tc.brier_score(tally, total=True)
            assert now[1] <= now[2] * (1 + 1e-12) or player == "paper"
            assert now[1] <= now[3]


def test_the_mean_can_be_beaten_by_keys_and_the_same_does_not_beat_arc(open_page: Any) -> None:
    page = open_page("play")
    page.click("button[data-player=mean]")
    for key in "1" * 20 + "0" * 10:
        page.keyboard.press(key)
    message = page.locator("[data-part=message]")
    assert "You beat it" in message.inner_text()
    page.click("[data-part=replay]")
    assert page.locator("[data-rounds='30'][data-player=arc]").count() == 1
    assert "of the way to the line" in message.inner_text()
    assert "You beat it" not in message.inner_text()


def test_the_forecast_is_shown_before_the_outcome_is_chosen(open_page: Any) -> None:
    page = open_page("play", viewport={"width": 390, "height": 844}, has_touch=True)
    twin = tc.Arc()
    for t, y in enumerate([1, 1, 0, 1, 0, 0, 0], 1):
        assert page.inner_text("[data-part=round]") == f"Round {t}"
        assert page.inner_text("[data-part=forecast]") == f"{100 * twin.predict():.1f} %"
        twin.observe(y)
        page.locator(f"[data-part=press{y}]").tap()
    assert page.inner_text("[data-part=count]") == "7"
    assert page.inner_text("[data-part=certificate]") == f"{twin.certificate.smooth_error:.2f}"
    assert page.inner_text("[data-part=brier]") == f"{twin.certificate.brier:.3f}"
    assert page.locator(".tc-race svg path.proof").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("opponent", ["coin", "contrary", "alternate", "streaks", "drift"])
def test_an_opponent_steps_and_runs_and_nobody_crosses_the_line(
    open_page: Any, opponent: str
) -> None:
    page = open_page("play")
    page.select_option("[data-part=opponent]", opponent)
    page.click("[data-part=step]")
    assert page.locator("[data-rounds='1']").count() == 1
    page.click("[data-part=run]")
    page.wait_for_function("document.querySelector('.tc-play').dataset.rounds > 100")
    page.click("[data-part=run]")
    rounds = page.evaluate("document.querySelector('.tc-play').truecast.game.rounds")
    assert all(one["error"] <= one["certificate"] <= one["promise"] for one in rounds[1:])
    at_rest = page.get_attribute(".tc-play", "data-rounds")
    page.wait_for_timeout(100)
    assert page.get_attribute(".tc-play", "data-rounds") == at_rest
    page.click("[data-part=restart]")
    assert page.locator("[data-rounds='0']").count() == 1
