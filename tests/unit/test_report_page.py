"""The page itself: it shows what was measured, is well formed, small, reproducible, and takes
nobody's orders."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import columns, rounds
from truecast.plot.style import PALETTE
from truecast.report import HtmlReport, RunningCourse, html_report
from truecast.report.glossary import entries

RNG = np.random.default_rng(0)
TRUTH = RNG.beta(2, 3, 4000)
Y = (RNG.random(4000) < TRUTH).astype(int)
P = (TRUTH**2 / (TRUTH**2 + (1 - TRUTH) ** 2)).round(3)
GROUPS = RNG.choice(["north", "south", "east"], 4000)
VOID = {"meta", "link", "br"}


class Tree(HTMLParser):
    """Elements with their text and the path to them; complains about tags that do not match."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.texts: list[list[str]] = []
        self.feed(document)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        if tag in VOID:
            self.elements.append((tag, dict(attrs), ""))
            return
        self.open.append((tag, dict(attrs)))
        self.texts.append([])

    def handle_endtag(self, tag: str) -> None:
        opened, attributes = self.open.pop()
        assert opened == tag
        text = "".join(self.texts.pop())
        self.elements.append((tag, attributes, text))
        if self.texts:
            self.texts[-1].append(text)

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]

    def rows(self, caption: str) -> list[list[str]]:
        """The cells of the table with this caption."""
        found: list[list[str]] = []
        cells: list[str] = []
        for name, _, text in self.elements:
            if name in ("td", "th"):
                cells.append(text)
            elif name == "tr":
                found.append(cells)
                cells = []
            elif name == "caption":
                here = text.startswith(caption)
                found, cells = [], []
            elif name == "table" and here:
                return found
        raise AssertionError(caption)


@cache
def full() -> HtmlReport:
    """A page with everything on it."""
    recalibrator = tc.Recalibrator()
    after = recalibrator.forecast_many(P, Y)
    return html_report(
        *(Y, P),
        groups=GROUPS,
        after=after,
        certificate=recalibrator.certificate,
        source="data/late.csv",
        outcome="late",
        score="p",
        group="side",
        skipped=7,
        date="2031-02-03",
        resamples=199,
    )


@cache
def tree() -> Tree:
    return Tree(full().html)


def test_sections_are_there_in_order() -> None:
    headings = [text for _, text in tree().all("h2")]
    assert headings == [
        "Is it calibrated, and how sure are we?",
        "What was measured",
        "Where was it off?",
        "Groups",
        "Before and after recalibration",
        "What is proved",
        "What to do",
        "All figures",
    ]
    assert [text for _, text in tree().all("h1")] == ["Before and after recalibration: late.csv"]
    assert tree().all("title")[0][1] == "Before and after recalibration: late.csv · data/late.csv"
    first = next(
        text for text in (text for _, text in tree().all("p")) if text.startswith("Before: ")
    )
    assert first.startswith(
        "Before: not calibrated: forecasts are too extreme (overconfident). After: "
    )


def test_what_the_figures_take_for_granted_is_said_where_they_are() -> None:
    said = [text for _, text in tree().all("p")]
    assert any(text.startswith("This assumes independent rounds") for text in said)
    assert any(text.startswith("If outcomes come later in practice") for text in said)
    plain = Tree(tc.html_report(Y, P, sample_weight=np.linspace(0.5, 1.5, len(Y))).html).all("p")
    assert not any(text.startswith(("This assumes", "If outcomes")) for _, text in plain)


def test_facts_are_those_of_the_rounds() -> None:
    facts = dict(zip((text for _, text in tree().all("dt")), _first_values(tree()), strict=True))
    report = tc.measure(Y, P)
    assert facts["rounds"] == "4,000"
    assert facts["rows skipped"] == "7 (they break a rule)"
    assert facts["outcome"] == "late"
    assert facts["forecast"] == "p"
    assert facts["distinct forecasts"].startswith(f"{len(np.unique(P)):,} before, ")
    assert facts["mean outcome"] == f"{Y.mean():.4f}"
    plain = Tree(tc.html_report(Y, P, resamples=20).html)
    tiles = dict(zip((text for _, text in plain.all("dt")), _first_values(plain), strict=True))
    assert tiles["distinct forecasts"] == f"{len(np.unique(P)):,}"
    assert tiles["mean forecast"] == f"{P.mean():.4f}"
    assert tiles["Brier score"] == f"{np.mean((Y - P) ** 2):.4f}"
    assert tiles["smooth calibration error"] == f"{report.smooth_calibration_error:.4f}"
    assert "data/late.csv · 4,000 rounds · 2031-02-03" in [text for _, text in tree().all("p")]


def _first_values(found: Tree) -> list[str]:
    """The value beside each term, not the line below it."""
    return [text for attributes, text in found.all("dd") if attributes.get("class") != "more"]


def test_every_figure_of_measure_is_in_the_table() -> None:
    report = tc.measure(Y, P)
    rows = {row[0].strip(): row[1] for row in tree().rows("Every figure") if len(row) == 3}
    assert rows["Brier score"] == f"{report.brier.score:.4f}"
    assert rows["Log loss"] == f"{report.log.score:.4f}"
    assert rows["Lower distance, at least"] == f"{report.lower_distance[0]:.4f}"
    assert rows["Lower distance, at most"] == f"{report.lower_distance[1]:.4f}"
    assert rows["SmoothECE"] == f"{report.smooth_ece:.4f}"
    assert rows["Laplace kernel"] == f"{report.laplace_calibration_error:.4f}"
    assert rows["Arc energy, a round"] == f"{report.arc_energy.energy:.4f}"
    assert rows["expected if calibrated"] == f"{report.arc_energy.expected:.4f}"
    assert rows["By value"] == f"{report.calibration_error_by_value:.4f}"
    assert rows["15 bins of equal width"] == f"{report.binned_calibration_error:.4f}"
    assert rows["debiased"] == f"{report.debiased_calibration_error:.4f}"
    assert rows["largest gap"] == f"{report.largest_bin_gap:.4f}"
    assert rows["15 bins of equal counts"] == f"{report.quantile_calibration_error:.4f}"
    assert rows["Averaged two-bin (ATB)"] == f"{report.averaged_two_bin_error:.4f}"
    assert rows["ICI"] == f"{report.integrated_calibration_index:.4f}"
    assert rows["Calibration decision loss"] == f"{report.calibration_decision_loss:.4f}"
    assert float(rows["U-calibration error"]) == pytest.approx(report.u_calibration_error, abs=1e-4)
    parts = [row[1] for row in tree().rows("Every figure") if row[0].strip() == "discrimination"]
    assert parts == [f"{report.brier.discrimination:.4f}", f"{report.log.discrimination:.4f}"]
    # each says what it means
    assert all(len(row[2]) > 25 for row in tree().rows("Every figure") if len(row) == 3)


def test_every_figure_stands_in_its_own_row() -> None:
    report = tc.measure(Y, P)
    names = [name for name in report.to_dict() if isinstance(getattr(report, name), float)]
    marked = replace(
        report,
        **{name: k / 1000 for k, name in enumerate(names)},
        lower_distance=(0.701, 0.702),
        brier=tc.Decomposition(0.711, 0.712, 0.713, 0.714),
        log=tc.Decomposition(0.721, 0.722, 0.723, 0.724),
        arc_energy=replace(report.arc_energy, energy=0.731, expected=0.732),
        calibration_slope=tc.CalibrationSlope(
            *(tc.Interval(at, 0, 1, 1) for at in (0.741, 0.742)), 0
        ),
        calibration_in_the_large=tc.Interval(0.743, 0, 1, 1),
        observed_expected_ratio=tc.Interval(0.744, 0, 1, 1),
    )
    shown = [entry.value for entry in entries(marked) if entry.value is not None]
    assert shown[:8] == [0.711, 0.712, 0.713, 0.714, 0.721, 0.722, 0.723, 0.724]
    assert shown[8:10] == [0.701, 0.702]
    left = [name for name in names if not name.startswith("mean_")]
    others = {731, 732, 741, 742, 743, 744, *map(names.index, left)}
    assert {round(1000 * value) for value in shown[10:]} == others
    labels = {entry.value: entry.label for entry in entries(marked)}
    assert labels[names.index("smooth_calibration_error") / 1000] == "Smooth calibration error"
    assert labels[names.index("quantile_calibration_error") / 1000] == "15 bins of equal counts"
    assert labels[names.index("largest_bin_gap") / 1000] == "largest gap"


def test_ranges_are_those_of_the_rounds() -> None:
    rows = tree().rows("Ranges of forecasts")[1:]
    assert sum(int(row[5].replace(",", "")) for row in rows) == 4000
    found = tc.stretches(Y, P, resamples=199).ranges
    assert len(rows) == len(found)
    for (between, gap, p_value, forecast, came, count), part in zip(rows, found, strict=True):
        low, high = map(float, between.replace("\u2009", "").split("\N{EN DASH}"))
        inside = (low <= P) & (high >= P)
        assert inside.sum() == int(count)
        assert float(forecast) == pytest.approx(P[inside].mean(), abs=1e-4)
        assert float(came) == pytest.approx(Y[inside].mean(), abs=1e-4)
        assert float(gap.replace("\N{MINUS SIGN}", "-").rstrip("\u2009*")) == pytest.approx(
            (Y - P)[inside].mean(), abs=1e-4
        )
        assert float(p_value) == pytest.approx(part.p_value, rel=0.051)
        assert gap.endswith("*") == (part.p_value < 0.05)


def test_groups_are_those_of_the_rounds() -> None:
    page = html_report(Y, P, groups=GROUPS, group="side", resamples=20)
    rows = {row[0]: row[1:] for row in Tree(page.html).rows("Groups")}
    overview = tc.plot.group_overview(Y, P, GROUPS)
    assert list(rows)[1:] == list(overview.names)
    for k, side in enumerate(overview.names):
        inside = side == GROUPS
        adjusted, error, _, chance, count, forecast, came, brier = rows[side]
        assert error == f"{tc.smooth_calibration_error(Y[inside], P[inside]):.4f}"
        assert chance == f"{overview.chance_high[k]:.4f}"
        assert adjusted.endswith("*") == (overview.adjusted[k] < 0.05)
        assert count == f"{inside.sum():,}"
        assert (forecast, came) == (f"{P[inside].mean():.4f}", f"{Y[inside].mean():.4f}")
        assert brier == f"{np.mean((Y - P)[inside] ** 2):.4f}"
    assert next(iter(rows)) == "side"


def test_groups_are_compared_before_and_after() -> None:
    after = tc.Recalibrator().forecast_many(P, Y)
    head, *rows = tree().rows("Groups before and after recalibration")
    was, now = (tc.plot.group_overview(Y, p, GROUPS) for p in (P, after))
    assert [head[0], *(row[0] for row in rows)] == ["side", *now.names]
    dots = [a["class"] for a, _ in tree().all("circle") if a["r"] == "4"]
    assert dots == ["dot", "dot after"] * 3
    for k, (side, p_was, p_now, *rest) in enumerate(rows):
        before, inside = was.names.index(side), side == GROUPS
        assert p_was.endswith("*") == (was.adjusted[before] < 0.05)
        assert p_now.endswith("*") == (now.adjusted[k] < 0.05)
        sides = P[inside], after[inside]
        errors = [f"{tc.smooth_calibration_error(Y[inside], p):.4f}" for p in sides]
        briers = [f"{tc.brier_score(Y[inside], p):.4f}" for p in sides]
        chance = f"{now.chance_high[k]:.4f}"
        assert rest == [*errors, "", chance, *briers, f"{inside.sum():,}"]
    said = [text for _, text in tree().all("p") if "adjusting for their number" in text]
    assert [text.partition(":")[0] for text in said] == ["Before", "After"]


@pytest.mark.slow("makes two reports")
def test_groups_that_stay_off_are_in_headline_colour_and_advice() -> None:
    y = np.tile([0, 1, 1, 1, 0, 0, 0, 1], 200)
    side = np.tile(["up"] * 4 + ["down"] * 4, 200)
    page = html_report(y, np.full(1600, 0.4), after=np.full(1600, 0.5), groups=side, resamples=99)
    tallies = [
        {name: tc.Tally.from_predictions(y[side == name], [p] * 800) for name in ("up", "down")}
        for p in (0.4, 0.5)
    ]
    whole = [tc.Tally.from_predictions(y, [p] * 1600) for p in (0.4, 0.5)]
    groups = {"groups": tallies[0], "groups_after": tallies[1]}
    same = html_report(whole[0], after=whole[1], **groups, resamples=99)
    assert same.html == page.html
    assert page.verdicts["forecast"].endswith("on the whole, but 2 of 2 groups are off")
    found = Tree(page.html)
    assert any(a.get("class") == "verdict weak" for a, _ in found.all("div"))
    (step,) = [text for _, text in found.all("li") if text.startswith("Look at ")]
    assert "Its mean recalibrated forecast is 0.5" in step


def test_before_and_after_stand_side_by_side() -> None:
    after = tc.Recalibrator().forecast_many(P, Y)
    rows = {row[0].strip(): row[1:] for row in tree().rows("The same rounds")}
    assert rows["Brier score"] == [f"{tc.brier_score(Y, p):.4f}" for p in (P, after)]
    assert rows["Log loss"] == [f"{tc.log_loss(Y, p):.4f}" for p in (P, after)]
    error = tc.smooth_calibration_error(Y, after)
    assert float(rows["Smooth calibration error"][1]) == pytest.approx(error, abs=1e-4)
    assert [text for _, text in tree().all("strong")][:2] == ["Before", "After"]


def test_elements_have_names_for_those_who_cannot_see_them() -> None:
    found = tree()
    assert all(
        attributes["role"] == "img" and attributes["aria-label"]
        for attributes, _ in found.all("svg")
    )
    assert len([1 for attributes, _ in found.all("svg") if attributes.get("class") == "chart"]) == 3
    assert len(found.all("caption")) == len(found.all("table")) == 4
    assert all(
        attributes.get("scope") in ("col", "row", "colgroup") for attributes, _ in found.all("th")
    )
    assert [attributes["lang"] for attributes, _ in found.all("html")] == ["en"]
    ids = [attributes["id"] for _, attributes, _ in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_values_can_be_hovered_without_a_script() -> None:
    plain = Tree(html_report(Y, P, resamples=20).html)
    tips = [text for attributes, text in plain.all("path") if attributes["class"] == "hit"]
    assert len(tips) >= 2 * 45
    words = r"forecasts ([\d.]+) to ([\d.]+)\n([\d,]+) rounds?, ([\d.]+)\xa0% came true\n"
    low, high, count, came = re.match(words, tips[5]).groups()
    inside = (float(low) <= P) & (float(high) > P)
    assert inside.sum() == int(count.replace(",", ""))
    assert 100 * Y[inside].mean() == pytest.approx(float(came), abs=0.5)


def test_parts_of_the_smooth_error_add_up() -> None:
    tips = [text for attributes, text in tree().all("path") if attributes["class"] == "hit"]
    parts = [re.search(r"adds (-?[\d.]+) to the smooth calibration error", tip) for tip in tips]
    adds = [float(part[1]) for part in parts if part]
    assert sum(adds) == pytest.approx(tc.smooth_calibration_error(Y, P), abs=5e-4)


def test_ranges_are_points_as_large_as_they_are_with_intervals() -> None:
    """Forecasts that run the wrong way: no increasing curve shows it, and the points do."""
    y = RNG.random(3000) < 0.5
    p = np.where(y, 0.25, 0.75) + RNG.uniform(-0.2, 0.2, 3000)
    found, ranges = (
        Tree(html_report(y, p, resamples=199).html),
        tc.stretches(y, p, resamples=199).ranges,
    )
    points = points_of(found)
    heights = [height for height, _ in points]
    assert len(points) == len(ranges)
    assert heights[0] == min(heights)  # low forecasts come true most often: at the top
    assert heights[-1] == max(heights)
    assert [kind.split()[2:] for _, kind in points] == [
        ["low" if part.gap >= 0 else "high", *(["off"] * part.off)] for part in ranges
    ]
    spans = [a for a, _ in found.all("line") if (a["class"] or "").startswith("span")]
    assert len(spans) == len(ranges)
    for span, height in zip(spans, heights, strict=True):
        assert float(span["y2"]) - 0.1 <= height <= float(span["y1"]) + 0.1
    marks = [a for a, _ in found.all("path") if (a["class"] or "").startswith("mark")]
    assert len(marks) == len(tc.stretches(y, p, resamples=199).off)


def points_of(found: Tree) -> list[tuple[float, str]]:
    """How far down each point stands, and what kind it is: a circle, or a diamond if it is off by
    itself."""
    told = []
    for name, a, _ in found.elements:
        kind = a.get("class") or ""
        if kind.startswith("hit point"):
            assert (name == "path") == kind.endswith(" off")
            told.append(
                (
                    float(
                        a["cy"] if name == "circle" else (a["d"] or "").split()[1].partition("L")[0]
                    ),
                    kind,
                )
            )
    return told


def test_points_are_coloured_by_direction_and_shaped_by_chance() -> None:
    """One colour, one meaning: in both pictures, and in what is said below them."""
    page = html_report(Y, P, resamples=199)
    found, ranges = Tree(page.html), tc.stretches(Y, P, resamples=199).ranges
    kinds = {kind for _, kind in points_of(found)}
    assert {"hit point low off", "hit point high off"} <= kinds
    assert {part.off for part in ranges} == {True, False}
    (key, _) = [text for _, text in found.all("figcaption")]
    assert "too low, too high, off beyond chance by itself; larger points have more rounds." in key
    assert "A stretch can be beyond chance even if no single range in it is." in [
        text for _, text in found.all("p")
    ]
    calm = html_report(RNG.random(4000) < TRUTH, TRUTH, resamples=199).html
    assert "beyond chance by itself;" not in calm.split("figcaption")[1]
    assert "A stretch can be" not in calm
    # point and shade agree
    assert "A stretch can be" not in html_report([1] * 50, [0.8] * 50, resamples=199).html


def test_before_is_drawn_once() -> None:
    drawn = [a["aria-label"] or "" for a, _ in tree().all("svg") if a.get("class") == "chart"]
    assert [label.partition(":")[0] for label in drawn if "Reliability diagram" in label] == [
        "Before",
        "After",
    ]
    assert any(
        "Share that came true in ranges of forecasts: too low, too high" in text
        for _, text in tree().all("p")
    )


def test_what_is_of_before_is_said_to_be() -> None:
    after = tc.Recalibrator().forecast_many(P, Y)
    facts = dict(zip((text for _, text in tree().all("dt")), _first_values(tree()), strict=True))
    assert facts["mean forecast"] == f"{P.mean():.4f} before, {after.mean():.4f} after"
    page = html_report(Y, P, after=after, times=np.arange(4000), resamples=20)
    (course,) = [text for a, text in Tree(page.html).all("section") if a["id"] == "course"]
    assert course.startswith("Over timeThis is about the forecasts before recalibration.")
    assert "in blocks of about 167 rounds. " in course


@pytest.mark.slow("makes a report of many groups")
def test_tiny_groups_are_not_listed() -> None:
    labels = np.arange(4000)
    page = html_report(TRUTH > 0.5, np.clip(TRUTH, 0.3, 0.7), groups=labels, resamples=20)
    (groups,) = [text for a, text in Tree(page.html).all("section") if a["id"] == "groups"]
    assert groups == "Groups4,000 groups of one round each: too small to judge."
    page = html_report(Y, np.clip(P, 0.3, 0.7), groups=labels // 2, resamples=20)
    assert "2,000 groups of about 2 rounds each: too small to judge." in page.html
    page = html_report(Y, P, groups=labels // 5, resamples=20)
    assert "too small to judge" not in page.html


def test_the_base_of_the_weights_is_the_grey_line_as_in_the_plot() -> None:
    where = tc.plot.miscalibration(Y, P, resamples=199)
    assert where.base != 0
    found = Tree(html_report(Y, P, resamples=199).html)
    (drawn,) = [a["points"] for a, _ in found.all("polyline") if a["class"] == "weightline"]
    places = np.array(
        [[float(number) for number in pair.split(",")] for pair in (drawn or "").split()]
    )
    ruled = float([a for a, _ in found.all("line") if a["class"] == "axis"][-1]["y1"])
    x = 46 + (where.p - where.edges[0]) / (where.edges[-1] - where.edges[0]) * 346
    line = np.interp(places[:, 0], x, where.draw().axes[0].lines[0].get_ydata())
    far = abs(line) > 0.05 * abs(line).max()
    assert ((places[:, 1] < ruled) == (line > 0))[far].all()
    ends = [(a["y"], text) for a, text in found.all("text") if a.get("text-anchor") == "end"]
    below = takewhile(lambda end: float(end[0]) > 290, reversed(ends))  # beside the weights
    pairs = [(float(y) - 4, float(text.replace("\N{MINUS SIGN}", "-"))) for y, text in below]
    heights, marks = np.array(pairs).T
    slope, at_0 = np.polyfit(heights, marks, 1)
    assert at_0 + slope * ruled == pytest.approx(where.base, abs=0.01)
    assert at_0 + slope * places[0, 1] == pytest.approx(where.f[0], abs=0.01)


def test_the_weights_are_those_of_the_plot() -> None:
    found, where = (
        Tree(html_report(Y, P, resamples=199).html),
        tc.plot.miscalibration(Y, P, resamples=199),
    )
    (drawn,) = [a["points"] for a, _ in found.all("polyline") if a["class"] == "weightline"]
    places = np.array(
        [[float(number) for number in pair.split(",")] for pair in (drawn or "").split()]
    )
    x = 46 + (where.p - where.edges[0]) / (where.edges[-1] - where.edges[0]) * 346
    line = where.draw().axes[0].lines[0]
    assert np.array_equal(line.get_xdata(), where.p)
    swing = np.interp(places[:, 0], x, line.get_ydata())
    slope, _ = np.polyfit(places[:, 1], swing, 1)
    assert slope < 0  # up is down in a page
    assert np.corrcoef(places[:, 1], swing)[0, 1] < -0.9999


@pytest.mark.parametrize("dated", [True, False])
def test_a_course_over_time(dated: bool) -> None:
    """Means over blocks of as many rounds each, from texts in any order; the same from parts of
    them."""
    days = np.arange(4000) // 20
    order = np.random.default_rng(0).permutation(4000)
    texts = (
        np.array([str(np.datetime64("2031-01-01") + int(day)) for day in days])
        if dated
        else days * 7.5
    )
    page = html_report(Y[order], P[order], times=texts[order], resamples=20)
    found = Tree(page.html)
    assert "Over time" in [text for _, text in found.all("h2")]
    words = r"to ([\d.,-]+)\n([\d,]+) rounds\n([\d.]+) came true, ([\d.]+) forecast"
    tips = [match for attributes, text in found.all("path") if (match := re.search(words, text))]
    assert len(tips) == 24
    assert sum(int(tip[2].replace(",", "")) for tip in tips) == 4000
    size = int(tips[0][2])
    assert float(tips[0][3]) == pytest.approx(Y[:size].mean(), rel=0.006)
    assert float(tips[0][4]) == pytest.approx(P[:size].mean(), rel=0.006)
    assert ("2031-01-01" in page.html) == dated
    parts = RunningCourse()
    for some in np.array_split(order, 7):
        parts.add(texts[some], Y[some], P[some])
    tally = tc.Tally.from_predictions(Y, P)
    assert html_report(tally, times=parts, resamples=20).html == page.html


def test_a_course_is_kept_in_little_memory() -> None:
    parts, rng = RunningCourse(), np.random.default_rng(1)
    for _ in range(30):
        times = rng.integers(0, 10**9, 1000)
        parts.add(times, rng.integers(0, 2, 1000), rng.random(1000))
    assert len(parts._sums) <= 4096
    course = parts.course()
    assert course.rounds.sum() == 30_000
    assert (np.diff(course.start) > 0).all()
    assert course.rounds.max() < 1.1 * course.rounds.min()
    assert RunningCourse().course() is None
    far = RunningCourse()
    far.add([1.0, 2.0], [0, 1], [0.5, 0.5])
    far.add([1e300, -1e300], [0, 1], [0.5, 0.5])
    assert sum(row[0] for row in far._sums.values()) == 4


def test_a_band_beyond_the_picture_is_cut_off() -> None:
    page = html_report([0] * 30, np.linspace(0.05, 0.2, 30), resamples=50)
    assert (tc.reliability_band([0] * 30, np.linspace(0.05, 0.2, 30)).upper > 0.25).any()
    assert all(-0.1 <= value <= 520 for value in coordinates(page.html))


def test_nothing_is_loaded_and_only_our_script_may_run() -> None:
    document = full().html
    found = tree()
    policy = next(
        a["content"]
        for a, _ in found.all("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    for element in ("style", "script"):
        ((attributes, text),) = found.all(element)
        assert not attributes
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none'")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bsrc=| style=|\bon[a-z]+=\"", document)
    assert all(a["href"] == "data:," for a, _ in found.all("link"))


def test_the_same_input_gives_the_same_bytes() -> None:
    options = {"groups": GROUPS, "resamples": 20, "title": "x"}
    first = html_report(Y, P, **options).html
    order = np.random.default_rng(1).permutation(4000)
    assert html_report(Y, P, **options).html == first
    shuffled = html_report(tc.Tally.from_predictions(Y[order], P[order]), resamples=20)
    assert shuffled.html == html_report(Y, P, resamples=20).html
    assert html_report(Y, P, random_state=1, **options).html != first
    assert re.search(r"20\d\d-\d\d", first) is None  # no date of its own


@pytest.mark.slow("makes a report of many rounds")
@pytest.mark.parametrize(
    ("scores", "groups", "hidden", "most"),
    [(1, 10_000, "9,960", 100_000), (8, 300, "290", 300_000)],
)
def test_pages_stay_small(scores: int, groups: int, hidden: str, most: int) -> None:
    y, p = RNG.integers(0, 2, 3000), RNG.random((scores, 3000))
    parts = {f"<group {k}> " + "x" * 200: tc.Tally([k / groups], [1], [1]) for k in range(groups)}
    tallies = {
        f"score {k} " + "y" * 200: tc.Tally.from_predictions(y, row) for k, row in enumerate(p)
    }
    page = html_report(tallies, groups=dict.fromkeys(tallies, parts), resamples=20)
    assert len(page.html.encode()) < most
    assert f"{hidden} more groups, with less evidence, are not shown." in page.html


NAMES = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</title></style></script>",
    "שלום עולם",
    "😀" * 50,
    "a" * 200,
    "\u202eevil\x00\ud800",
    "&amp;",
]


@cache
def elements_of_a_plain_page() -> set[str]:
    page = html_report(
        {"s": tc.Tally.from_predictions(Y, P)},
        resamples=20,
        groups={"g": tc.Tally([0.5], [1], [9])},
    )
    return {element for element, _, _ in Tree(page.html).elements}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_and_never_obeyed(name: str) -> None:
    page = html_report(
        {name: tc.Tally.from_predictions(Y, P)},
        groups={name: tc.Tally([0.5], [1], [9])},
        resamples=20,
        title=name,
        source=name,
        outcome=name,
        group=name,
        date=name,
    )
    found, shown = Tree(page.html), re.sub("[\x00-\x1f\u202e\ud800]", "\ufffd", name)
    shown = shown if len(shown) <= 80 else shown[:40] + "…" + shown[-39:]
    extra = {"bdi", "dt", "dd", "div", "pre", "code"}  # facts that have a name now
    assert {element for element, _, _ in found.elements} <= elements_of_a_plain_page() | extra
    assert len(found.all("script")) == len(found.all("style")) == 1
    tips = [a for _, a, _ in found.elements if (a.get("class") or "").startswith("hit")]
    assert len(found.all("title")) - len(tips) == 1
    assert found.all("h1") == [({}, shown)]
    assert [text for attributes, text in found.all("bdi")].count(shown) >= 6
    page.html.encode()


def test_long_names_stay_different() -> None:
    """They are cut in the middle, and numbered where that is all they differ in."""
    ends = [f"{'x' * 90} {k}" for k in range(2)]
    middles = [f"{'x' * 90}{k}{'x' * 90}" for k in range(2)]
    tally, group = tc.Tally.from_predictions(Y, P), tc.Tally([0.5], [10], [9])
    long = [*ends, *middles]
    groups = dict.fromkeys(long, dict.fromkeys([*long, None], group))
    page = html_report(
        dict.fromkeys(long, tally), groups=groups, resamples=20, source=f"{'d/' * 90}{'x' * 99}.csv"
    )
    found = Tree(page.html)
    for caption in ("Skill", "Groups"):
        names = [row[0] for row in found.rows(caption)[1:]]
        assert len(set(names)) == len(names) == len(long) + (caption == "Groups")
        assert max(map(len, names)) == 80
    headings = [text for _, text in found.all("h2")]
    assert len(set(headings)) == len(headings) == 5
    assert found.all("h1")[0][1].endswith("x.csv")
    assert found.all("title")[0][1].endswith("x.csv")


@pytest.mark.slow("makes a report of several scores")
def test_several_scores_are_compared_and_have_sections() -> None:
    scores = {
        "sure": P,
        "right": TRUTH,
        "dull": np.full(4000, Y.mean()),
        **{f"more {k}": P for k in range(4)},
    }
    page = html_report(Y, scores, resamples=20, source="x.csv")
    found = Tree(page.html)
    assert list(page.verdicts) == list(scores)
    rows = {row[0]: row[1:] for row in found.rows("Skill")}
    for name, p in scores.items():
        _, _, brier, skill, log, error, _ = rows[name]
        assert brier == f"{tc.brier_score(Y, p):.4f}"
        assert float(skill.removesuffix("\xa0%")) == pytest.approx(
            100 * (1 - tc.brier_score(Y, p) / Y.var()), abs=0.6
        )
        assert log == f"{tc.log_loss(Y, p):.4f}"
        assert float(error) == pytest.approx(tc.smooth_calibration_error(Y, p), abs=1e-4)
    assert [text for _, text in found.all("h2")] == [
        "Scores side by side",
        *(f"Score {name}" for name in list(scores)[:6]),
    ]
    assert "right has the best Brier score" in page.html.replace("</bdi>", "").replace(
        '<bdi class="name">', ""
    )
    links = {attributes["href"] for attributes, _ in found.all("a")}
    assert links == {f"#score-{k}" for k in range(6)}
    assert {f"score-{k}" for k in range(6)} <= {
        attributes.get("id") for _, attributes, _ in found.elements
    }
    ids = [attributes["id"] for _, attributes, _ in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    other = html_report(
        {"a": tc.Tally([0.5], [1], [1]), "b": tc.Tally([0.5], [2], [1])}, resamples=20
    )
    assert "not measured on the same rounds" in other.html


def coordinates(document: str) -> list[float]:
    drawn = re.findall(r'\b(?:x1?|x2|cx|cy|y1?|y2|points|d)="([^"]*)"', document)
    return [
        float(text) for part in drawn for text in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", part)
    ]


@pytest.mark.slow("tries many examples")
@settings(max_examples=12)
@given(
    rounds(most=40)
    | st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1e-3)), min_size=1, max_size=30)
)
def test_pictures_of_any_rounds_stay_in_their_frames(rows: list[tuple[int, float]]) -> None:
    page = html_report(*columns(rows), resamples=20)
    assert "nan" not in re.sub(
        "<script>.*</script>|<style>.*</style>", "", page.html, flags=re.DOTALL
    ).replace("nance", "")
    assert all(-0.1 <= value <= 520 for value in coordinates(page.html))
    Tree(page.html)


def test_colours_of_pictures_are_those_of_plots() -> None:
    """What means the same has the same colour: each is written down once."""
    style = next(text for _, text in tree().all("style"))
    used = set(re.findall(r"var\(--([\w-]+)\)", style))
    said = re.findall(r"--([\w-]+): (#\w+)", style)
    assert {*PALETTE} < used
    for name, pair in PALETTE.items():
        assert [value for each, value in said if each == name] == [
            *pair,
            pair[0],
        ]  # light, dark, paper
    assert used - {"shadow"} == {name for name, _ in said}
