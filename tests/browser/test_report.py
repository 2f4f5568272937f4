"""The report in a real browser: what is seen, hovered, printed; and that nothing is asked of the
network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.report import html_report

SIZES = {"phone": (375, 740), "wide": (1280, 900)}
FIGURES = "svg.chart"
DIAGRAM, WHERE = "#after svg.chart", "#where svg.chart"

# the ratio of WCAG 2, of what text there is to what is behind it
CONTRAST = """() => {
  const linear = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest("script, style, title")) continue;
    const style = getComputedStyle(e), ink = e.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(rgb(ink).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 80)];
  }
  return worst;
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 3, 3000)
    y = rng.random(3000) < truth
    p = truth**2 / (truth**2 + (1 - truth) ** 2)
    recalibrator = tc.Recalibrator()
    after = recalibrator.forecast_many(p, y)
    names = [
        "<script>window.bad = 1</script>",
        "a" * 200,
        "\u202e\u05e9\u05dc\u05d5\u05dd",
        "\"'><img src='http://x.invalid/' onerror='bad = 1'>",
    ]
    hostile = {
        "title": names[0] + "t" * 200,
        "source": names[3],
        "outcome": "o" * 200,
        "group": names[1],
        "groups": rng.choice(names, 3000),
    }
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "full": html_report(
            y, p, after=after, certificate=recalibrator.certificate, resamples=199, **hostile
        ),
        "several": html_report(
            y, {"old": p, "new": after, "z" * 200: truth}, groups=hostile["groups"], resamples=50
        ),
        "tiny": html_report([1], [1.0]),
    }
    return {name: page.save(folder / f"{name}.html") for name, page in pages.items()}


@pytest.fixture
def visit(browser: Any, files: dict[str, Path]) -> Iterator[Any]:
    """Open a page; in the end, nothing may have been asked for but the page, and nothing complained
    about."""
    asked: list[str] = []
    said: list[str] = []
    opened: list[Any] = []

    def go(name: str, size: str = "wide", **options: object) -> Any:
        context = browser.new_context(
            viewport=dict(zip(("width", "height"), SIZES[size], strict=True)), **options
        )
        opened.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(files[name].as_uri())
        return page

    yield go
    for context in opened:
        context.close()
    assert set(asked) <= {path.as_uri() for path in files.values()}
    assert len(asked) == len(opened)
    assert said == []


def test_everything_is_there(visit: Any) -> None:
    page = visit("full")
    assert page.locator("h2").count() == 8
    assert page.locator(FIGURES).count() == 3
    for k in range(3):
        box = page.locator(FIGURES).nth(k).bounding_box()
        assert box["width"] > 300
        assert box["height"] > 300
    assert page.locator("table").count() == 4
    first = page.locator("#verdict .verdict p").first.inner_text()
    assert first.startswith("Before: not calibrated: forecasts are too extreme")
    assert not page.locator("#figures table").is_visible()
    page.locator("summary").click()
    assert page.locator("#figures table").is_visible()
    assert page.evaluate("typeof window.bad") == "undefined"


def test_values_under_the_pointer(visit: Any) -> None:
    page = visit("full")
    tip = page.locator("#tip")
    assert not tip.is_visible()
    hit = page.locator(DIAGRAM).first.locator(".hit").nth(30)
    hit.hover()
    assert tip.is_visible()
    said = tip.inner_text()
    assert said.startswith("forecasts 0.6 to 0.62\n")
    assert "came true" in said
    assert "by chance" in said
    box, place = hit.bounding_box(), tip.bounding_box()
    assert place["y"] + place["height"] <= box["y"] or place["y"] >= box["y"]
    assert 0 <= place["x"] <= 1280 - place["width"]
    page.locator("h1").hover()
    assert not tip.is_visible()


def test_a_point_tells_its_range(visit: Any) -> None:
    page = visit("full")
    point = page.locator(DIAGRAM).first.locator(".point.hit").nth(9)
    point.hover()
    said = page.locator("#tip").inner_text()
    assert "forecast on average" in said
    assert "too high beyond chance by itself (p-value" in said


@pytest.mark.parametrize("name", ["full", "several"])
def test_what_matters_in_a_table_is_on_the_screen_of_a_phone(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    """The verdict of each score, gaps with their asterisks, adjusted p-values: without scrolling
    sideways."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(files[name].as_uri())
    ends = page.evaluate(
        """() => [...document.querySelectorAll("td.words, td .flag")].filter((e) => e.getClientRects().length)
          .filter((e) => !e.closest("details")).map((e) => e.getBoundingClientRect().right)"""
    )
    context.close()
    assert len(ends) > 2
    assert max(ends) <= 390


@pytest.mark.parametrize("name", ["full", "several"])
def test_the_ranges_fit_on_a_phone(browser: Any, files: dict[str, Path], name: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(files[name].as_uri())
    ends = page.evaluate(
        """() => [...document.querySelectorAll("table.ranges th, table.ranges td")]
          .map((e) => e.getBoundingClientRect().right)"""
    )
    context.close()
    assert len(ends) > 60
    assert max(ends) <= 390 - 16 + 0.5


@pytest.mark.parametrize("name", ["full", "several", "tiny"])
def test_no_printed_page_need_be_half_empty(visit: Any, name: str) -> None:
    """What must not be cut is at most 45 % of a page high; so at most that much of one stays
    empty."""
    page = visit(name)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 1001})  # A4 without its margins
    tall = page.evaluate(
        """() => [...document.querySelectorAll("figure, .verdict, dl.tiles, tr, pre, li")]
          .filter((e) => e.getClientRects().length).map((e) => e.getBoundingClientRect().height)"""
    )
    assert max(tall) <= 0.45 * 1001


def test_values_by_the_arrow_keys(visit: Any) -> None:
    page = visit("full")
    page.locator(WHERE).focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("#tip").inner_text()
    assert first.startswith("forecasts 0 to 0.02\n")
    assert second.startswith("forecasts 0.02 to 0.04\n")
    assert "smooth calibration error" in second
    page.keyboard.press("ArrowLeft")
    assert page.locator("#tip").inner_text() == first
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


def test_values_by_a_finger(visit: Any) -> None:
    page = visit("full", "phone", has_touch=True)
    page.locator(DIAGRAM).first.locator(".hit").nth(48).tap()
    place = page.locator("#tip").bounding_box()
    assert place is not None
    assert place["x"] + place["width"] <= 375
    page.locator("h1").tap()
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["full", "several", "tiny"])
def test_the_page_does_not_scroll_sideways(visit: Any, name: str, size: str) -> None:
    page = visit(name, size)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    outside = """() => [...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll, #tip, svg")
      && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(outside) == []
    text = """() => [...document.querySelectorAll("svg.chart text")].map((e) => [e.getBoundingClientRect(),
      e.closest("svg").getBoundingClientRect(), e.textContent]).filter(([t, s]) => t.left < s.left - 4
      || t.right > s.right + 4 || t.bottom > s.bottom + 1).map((found) => found[2])"""
    assert page.evaluate(text) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_their_ground(visit: Any, scheme: str) -> None:
    page = visit("full", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 150) == (scheme == "dark")
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where


def test_it_prints_light_and_whole(visit: Any, tmp_path: Path) -> None:
    page = visit("full", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 680, "height": 900})  # A4 without its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert (
        page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
    )
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 9
    assert page.evaluate("document.querySelector('details').open") is False  # as it was


def test_it_can_be_read_without_a_script(visit: Any) -> None:
    page = visit("full", java_script_enabled=False)
    assert page.locator("#verdict .verdict p").first.is_visible()
    assert page.locator(FIGURES).first.locator(".hit title").count() > 30
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize("size", SIZES)
def test_small_pictures_are_in_line_under_titles_of_any_length(
    browser: Any, tmp_path: Path, size: str
) -> None:
    rng = np.random.default_rng(1)
    names = ["no", "a name of forty letters, or a few of them", "yes", "abc " * 15, "d", "e"]
    rows = rng.dirichlet(np.ones(6), 500)
    y = [names[rng.choice(6, p=row)] for row in rows]
    file = html_report(y, rows, labels=names, resamples=20).save(tmp_path / "page.html")
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(file.as_uri())
    seen = page.evaluate("""() => [...document.querySelectorAll(".multiples figure")].map((f) =>
        [f, f.querySelector("svg")].map((e) => Math.round(e.getBoundingClientRect().top)))""")
    page.close()
    assert len(seen) == 6
    lines = {top for top, _ in seen}
    assert len(lines) < 6
    assert len({tuple(place) for place in seen}) == len(lines)  # a line of figures, one of pictures
