"""Where forecasts are off: by definition, by chance, and never one thing in words and another in a
picture."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import truecast as tc
from rounds import columns, rounds
from truecast.measures import finder
from truecast.measures.finder import Stretch, Stretches, stretches, stretches_p_value
from truecast.measures.pooling import _starts, cells_of, marks_of
from truecast.measures.uncertainty import quantiles, resampled_at_once
from truecast.report import html_report
from truecast.report.advice import advice
from truecast.report.context import Context
from truecast.report.findings import Finding, find
from truecast.report.tables import ranges_table
from truecast.report.verdict import direction, headline, turned, verdict
from truecast.report.words import where_sentences

CONTEXT = Context("title", None, None, False, None, 0, None, None)
SIZES = {"two": 400, "few": 30, "tiny": 6, "rare": 4000, "ties": 1500, "many": 2500, "certain": 200}


def forecasts(kind: str, rng: np.random.Generator) -> np.ndarray:
    n = SIZES[kind]
    return {
        "two": rng.choice([0.3, 0.6], n),
        "few": rng.random(n).round(1),
        "tiny": rng.random(n),
        "rare": rng.beta(0.5, 50, n),
        "ties": rng.beta(2, 3, n).round(2),
        "many": rng.random(n),
        "certain": rng.integers(0, 2, n).astype(float),
    }[kind]


TRUTHS = {
    "calibrated": lambda p: p,
    "wavy": lambda p: p + 0.08 * np.sin(6 * np.pi * p),
    "a little wavy": lambda p: p + 0.03 * np.sin(6 * np.pi * p),
    "apart": lambda p: np.where(p < 0.5, p + 0.1, p - 0.1),
    "extreme": lambda p: 0.5 + 0.7 * (p - 0.5),
    "high": lambda p: 0.8 * p,
    "low": lambda p: 1.4 * p + 0.01,
    "turned": lambda p: 1 - p,
}


def found(y: object, p: object, resamples: int = 199, **options: object) -> Finding:
    given = {
        "groups": None,
        "after": None,
        "level": 0.9,
        "resamples": resamples,
        "random_state": 0,
    } | options
    return find("p", tc.Tally.from_predictions(y, p), **given)


def world(kind: str, truth: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = forecasts(kind, rng)
    return rng.random(len(p)) < np.clip(TRUTHS[truth](p), 0, 1), p


@pytest.mark.slow("makes many reports")
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("truth", TRUTHS)
def test_words_stars_marks_and_advice_never_disagree(kind: str, truth: str) -> None:
    for seed in range(2):
        check_agreement(found(*world(kind, truth, seed)))


def check_agreement(finding: Finding) -> None:
    """All that is said or drawn of a score must follow from one p-value."""
    judged, sure = verdict(finding), finding.p_value < 0.05
    against = judged.kind in ("weak", "slight", "off")
    assert against == sure
    # something is marked if and only if something is said to be off
    assert bool(finding.marked) == sure
    assert all(part.p_value < 0.05 for part in finding.marked)
    assert min(part.p_value for part in (*finding.ranges, finding.found.whole)) >= finding.p_value
    # the table: a star only if the verdict says so
    starred = ranges_table(finding.ranges).count("flag")
    assert (
        starred
        == sum(part.off for part in finding.ranges)
        == sum(part.off for part in finding.diagram.ranges)
    )
    assert sure or not starred
    # the pictures
    assert finding.miscalibration.stretches == finding.marked
    # words
    said = where_sentences(finding)
    assert (said == ["No range of forecasts is off by more than chance explains."]) == (not sure)
    for part in finding.marked if len(finding.marked) <= 3 else ():
        way = "low" if part.gap > 0 else "high"
        assert any(
            f"too {way} by about" in words and f"{part.rounds:,} round" in words for words in said
        )
    # the headline goes by what is marked
    signs = {part.gap > 0 for part in finding.marked}
    if sure and not turned(finding):
        one_way = re.search(r"are too (low|high)(?: in places)?$", direction(finding))
        assert ({one_way[1] == "low"} if one_way else {True, False}) == signs
    # advice
    done = [step.do for step in advice(finding, CONTEXT)]
    calm = done[0] in ("Leave the forecasts as they are.", "Collect more rounds.")
    assert calm == (not sure or judged.kind == "slight")
    assert ("Recalibrate." in done or "Try 1 \N{MINUS SIGN} score." in done) == (
        judged.kind == "off"
    )
    # one p-value, one figure
    for number in re.findall(r"p-value ([<\d. ]+)\)", judged.evidence):
        assert number == said_p_value(finding.p_value)


def said_p_value(value: float) -> str:
    from truecast.report.numerals import p_value

    return p_value(value)


@pytest.mark.slow("simulates many data sets")
def test_two_forecasts_that_chi_squared_rejects_are_found() -> None:
    """400 rounds at two forecasts: the verdict once said "no evidence" beside a starred row."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(40):
        p = rng.choice([0.3, 0.6], 400)
        y = rng.random(400) < np.where(p < 0.5, p + 0.09, p - 0.09)
        counts = [(y[p == v].sum(), (p == v).sum(), v) for v in (0.3, 0.6)]
        squares = sum((ones - n * v) ** 2 / (n * v * (1 - v)) for ones, n, v in counts)
        if math.exp(-squares / 2) >= 0.001:  # chi-squared with two degrees of freedom
            continue
        seen += 1
        finding = found(y, p, 999)
        assert verdict(finding).kind in ("weak", "off")
        assert finding.marked
    assert seen >= 15


@pytest.mark.slow("simulates many data sets")
@pytest.mark.parametrize("kind", ["two", "few", "tiny", "rare", "ties"])
def test_calibrated_forecasts_are_hardly_ever_marked(kind: str) -> None:
    """In fewer than one of twenty worlds: with three standard errors, 16 of 120.
    benchmarks/finder.py does more."""
    marked = sum(
        bool(stretches(*world(kind, "calibrated", seed), resamples=59).off) for seed in range(120)
    )
    assert marked <= 0.05 * 120 + 3 * math.sqrt(0.05 * 0.95 * 120)


def test_p_values_are_ranks_among_sets_of_which_none_is_special() -> None:
    """By definition, from the simulated sets themselves: so validity needs no more than that they
    are alike."""
    y, p = world("ties", "high", 3)
    tally = tc.Tally.from_predictions(y, p)
    cells, marks = cells_of(tally), marks_of(tally)
    chance = resampled_at_once(cells.tally, "consistency", 49, np.random.default_rng(0))
    simulated = finder._simulated(cells.tally, marks.at, chance)
    result = stretches(tally, resamples=49, random_state=0)
    units = [np.quantile(values, 0.95) for values in simulated]
    farthest = np.maximum(simulated.errors / units[0], simulated.deviations / units[1])
    assert len(farthest) == 50
    assert result.p_value == (farthest >= farthest[0]).sum() / 50
    assert result.smooth.p_value == (farthest >= simulated.errors[0] / units[0]).sum() / 50


def striking_stretches(tally: tc.Tally) -> dict[tuple[int, int], float]:
    """Every stretch between any two forecasts, by the definition."""
    p, w = tally.p, tally.weights
    found = {}
    for first in range(len(p)):
        for last in range(first + 1, len(p) + 1):
            surplus = abs(float((tally.ones - w * p)[first:last].sum()))
            variance = float((w * p * (1 - p))[first:last].sum())
            found[first, last] = surplus**2 / (variance + surplus / 3) if surplus else 0.0
    return found


@settings(max_examples=30)
@given(rounds(most=30))
def test_the_most_striking_stretch_is_that_of_all(rows: list[tuple[int, float]]) -> None:
    tally = tc.Tally.from_predictions(*columns(rows))
    every = striking_stretches(tally)
    marks = marks_of(tally)
    most = finder._most(finder._sums(tally, marks.at, tally.ones[None]))
    assert most[0] == pytest.approx(max(every.values()), rel=1e-6, abs=1e-9)
    number = (len(tally.p) + 1) * len(tally.p) // 2
    expected = min(1.0, 2 * number * math.exp(-max(every.values()) / 2))
    assert stretches_p_value(tally) == pytest.approx(expected, rel=1e-5)


def test_bernsteins_p_value_is_on_the_safe_side() -> None:
    tally = tc.Tally([0.25, 0.5], [0, 0], [300, 500])
    # both forecasts: 475 more ones than forecast
    most = 475 / np.sqrt(300 * 0.1875 + 500 * 0.25 + 475 / 3)
    assert stretches_p_value(tally) == pytest.approx(6 * np.exp(-(most**2) / 2))
    assert stretches_p_value(tc.Tally([0.5], [1], [1])) == 1.0


@settings(max_examples=25)
@given(rounds(most=60))
def test_stretches_are_those_of_the_rounds(rows: list[tuple[int, float]]) -> None:
    y, p = columns(rows)
    result = stretches(y, p, resamples=39)
    for part in (*result.off, *result.ranges, *result.halves, result.whole):
        inside = (p >= part.low) & (p <= part.high)
        assert part.rounds == inside.sum()
        assert part.forecast == pytest.approx(p[inside].mean(), rel=1e-12)
        assert part.rate == pytest.approx(y[inside].mean(), rel=1e-12)
        low, high = part.interval()
        assert low <= part.rate <= high
    assert all(one.high < other.low for one, other in pairwise(result.off))
    assert (
        sum(part.rounds for part in result.ranges)
        == sum(part.rounds for part in result.halves)
        == len(y)
    )


def offs(truth: object, n: int = 50_000, seed: int = 0) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return [
        (part.low, part.high, part.gap)
        for part in stretches(rng.random(n) < truth(p), p, resamples=99).off
    ]


@pytest.mark.slow("resamples many times")
def test_stretches_are_where_forecasts_are_off() -> None:
    (middle,) = offs(lambda p: np.where((p > 0.3) & (p < 0.5), p + 0.1, p))
    assert middle == pytest.approx((0.3, 0.5, 0.1), abs=0.03)
    low, high = offs(lambda p: np.where(p < 0.2, p + 0.1, np.where(p > 0.7, p - 0.2, p)))
    assert low == pytest.approx((0.0, 0.2, 0.1), abs=0.03)
    assert high == pytest.approx((0.7, 1.0, -0.2), abs=0.03)
    twice = offs(lambda p: np.where(p < 0.3, 0.4 * p, np.where(p > 0.7, p - 0.1, p)))
    assert [part[2] < 0 for part in twice] == [True, True]  # not joined over what is right
    extreme = offs(lambda p: 0.5 + 0.6 * (p - 0.5))
    assert [part[2] > 0 for part in extreme] == [True, False]
    waves = offs(lambda p: p + 0.1 * np.sin(12 * np.pi * p), n=200_000)
    assert [part[2] > 0 for part in waves] == [True, False] * 6
    assert offs(lambda p: np.where(p > 0.5, p + 0.01, p - 0.01), n=1000) == []


def test_a_forecast_with_many_rounds_is_told_from_its_neighbours() -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate((rng.random(20_000), np.full(1000, 0.5)))
    truth = np.where(p == 0.5, 0.62, p)
    (part,) = stretches(rng.random(len(p)) < truth, p, resamples=99).off
    assert part.low == 0.5  # a mark of its own, among 2,048 cells of other forecasts
    assert part.high < 0.52


@pytest.mark.slow("simulates many data sets")
def test_what_is_off_only_together_is_marked_together() -> None:
    """Where the smooth error is beyond chance and no stretch is, its witness says where."""
    seen = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.3, 0.7, 300)
        result = stretches(rng.random(300) < p - 0.05, p, resamples=99)
        if not result.off or result.off[0].alone:
            continue
        seen += 1
        assert {part.p_value for part in result.off} == {result.smooth.p_value} == {result.p_value}
        assert not any(part.off for part in (*result.ranges, result.whole))
    finding = found(*world("many", "extreme", 0))
    together = tuple(replace(part, alone=False) for part in finding.marked)
    finding = replace(finding, found=replace(finding.found, off=together))
    assert where_sentences(finding)[0].startswith(
        "No stretch of forecasts is off beyond chance by itself"
    )
    assert seen >= 1


def test_real_weights_are_not_judged() -> None:
    result = stretches([1, 0, 1, 1] * 50, [0.1, 0.9, 0.2, 0.3] * 50, sample_weight=[0.5] * 200)
    assert (result.off, result.smooth, result.resamples) == ((), None, 0)
    assert math.isnan(result.p_value)
    assert not any(part.off for part in result.ranges)
    assert all(math.isnan(end) for end in result.whole.interval())


@pytest.mark.slow("resamples many times")
def test_the_same_seed_finds_the_same() -> None:
    y, p = world("many", "extreme", 0)
    assert shown(stretches(y, p, resamples=50)) == shown(
        stretches(y, p, resamples=50, random_state=0)
    )
    assert shown(stretches(y, p)) == shown(stretches(tc.Tally.from_predictions(y, p)))


def shown(result: Stretches) -> tuple[float, tuple[Stretch, ...], tuple[Stretch, ...]]:
    return result.p_value, result.off, result.ranges


@pytest.mark.parametrize(
    "options", [{"level": 0}, {"resamples": 19}, {"resamples": 2.5}, {"random_state": "x"}]
)
def test_options_are_checked(options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises(tc.InputError, match=name):
        stretches([0, 1], [0.5, 0.5], **options)


def test_the_page_says_one_p_value() -> None:
    y, p = world("ties", "calibrated", 5)
    finding = found(y, p, 999)
    page = html_report(y, p, resamples=999).html
    said = set(re.findall(r"p-value ([\d.]+\d|&lt; [\d.]+)", page))
    assert said == {said_p_value(finding.p_value)}
    assert "of all cases" not in verdict(finding).evidence


def test_the_headline_has_both_sides_of_a_recalibration() -> None:
    y, p = world("many", "extreme", 1)
    after = tc.Tally.from_predictions(y, TRUTHS["extreme"](p))
    assert headline(found(y, p, after=after)) == (
        "Before: not calibrated: forecasts are too extreme (overconfident). After: no "
        "evidence against calibration"
    )


def plain_starts(p, cells):
    """The first forecast of each cell, from the cell of every forecast."""

    def cell(power):
        return np.minimum((p * 2.0**power).astype(np.int64), (1 << power) - 1)

    power = cells.bit_length() - 1
    while power < 60 and np.count_nonzero(np.diff(cell(power + 1))) < cells:
        power += 1
    return np.flatnonzero(np.diff(cell(power), prepend=-1))


@pytest.mark.parametrize("cells", [4, 16, 256])
@pytest.mark.parametrize("kind", ["even", "rare", "sure", "clustered", "neighbours", "rounded"])
def test_cells_are_those_that_every_forecast_falls_into(kind, cells):
    for seed in range(10):
        u = np.random.default_rng(seed).random(2000)
        p = {
            "even": u,
            "rare": u**30,
            "sure": np.append(1 - u**30, (0.0, 1.0)),
            "clustered": 0.5 + u * 1e-13,
            "neighbours": (0.25, 0.5, 1.0)[seed % 3] - np.arange(2000) * 2.0**-54,
            "rounded": np.append(u.round(2), u.round(3)),
        }[kind]
        p = np.unique(p)
        assert _starts(p, cells).tolist() == plain_starts(p, cells).tolist()


@pytest.mark.parametrize("size", [1, 2, 20, 499, 1000])
def test_quantiles_are_those_of_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (rng.random(size), rng.integers(0, 5, size).astype(np.float64)):
        shares = [0.0, 0.05, 0.5, 0.95, 1.0, *rng.random(5)]
        assert quantiles(values, *shares) == np.quantile(values, shares).tolist()
