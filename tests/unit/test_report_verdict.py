"""The verdict in words: at its boundaries, and for rounds that are few, many, off, or peculiar."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import truecast as tc
from rounds import columns, rounds
from truecast.report.findings import Finding, find
from truecast.report.verdict import direction, gain, interval, notes, size, skill, verdict
from truecast.report.words import where_sentences


def found(y: object, p: object, **options: object) -> Finding:
    given = {
        "groups": None,
        "after": None,
        "level": 0.9,
        "resamples": 199,
        "random_state": 0,
    } | options
    return find("p", tc.Tally.from_predictions(y, p), **given)


def sample(
    n: int, seed: int = 0, low: float = 0.05, high: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds with forecasts that are right, all of them distinct."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, high, n)
    return rng.random(n) < p, p


BASE = found(*sample(1000))


def kind(
    estimate: float = 0.02, chance: float = 0.001, p_value: float = 0.005, **others: object
) -> str:
    """The kind of verdict if these were the figures."""
    doubt = tc.Uncertainty(estimate, estimate / 2, 2 * estimate, 0.9, chance, p_value)
    figures = replace(
        BASE.figures,
        total=others.pop("total", 1000),
        mean_outcome=others.pop("mean_outcome", 0.5),
        mean_forecast=others.pop("mean_forecast", 0.5),
    )
    result = replace(BASE.found, smooth=doubt, p_value=p_value)
    given = {"gain": 0.05, "gap": 0.009, "impossible": 0} | others
    return verdict(replace(BASE, found=result, figures=figures, **given)).kind


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"p_value": 0.05}, "none"),
        ({"p_value": 0.049}, "weak"),
        ({"p_value": 0.01}, "weak"),
        ({"p_value": 0.0099}, "off"),
        # little rounds: what chance does hides what matters
        ({"p_value": 0.5, "chance": 0.0301}, "few"),
        ({"p_value": 0.5, "chance": 0.03}, "none"),
        ({"p_value": 0.5, "total": 19}, "few"),
        ({"p_value": 0.5, "total": 20}, "none"),
        ({"p_value": 0.5, "chance": 0.0026, "mean_forecast": 0.01}, "few"),
        ({"p_value": 0.5, "chance": 0.0024, "mean_forecast": 0.01}, "none"),
        ({"p_value": 0.5, "chance": 0.0026, "mean_forecast": 0.99}, "few"),
        # evidence is evidence
        ({"p_value": 0.001, "chance": 0.2, "estimate": 0.5, "total": 5}, "off"),
        # hardly off
        ({"estimate": 0.0059, "gain": 0.009}, "slight"),
        ({"estimate": 0.0061, "gain": 0.009}, "off"),
        ({"estimate": 0.0059, "gain": 0.01}, "off"),
        ({"estimate": 0.0059, "gain": 0.009, "gap": 0.0101}, "off"),
        ({"estimate": 0.0059, "gain": 0.009, "impossible": 1}, "off"),
        # for a rare outcome that is much
        ({"estimate": 0.0059, "gain": 0.0, "mean_outcome": 0.05}, "off"),
        ({"estimate": 0.0034, "gain": 0.0, "gap": 0.004, "mean_outcome": 0.05}, "slight"),
        ({"estimate": 0.0036, "gain": 0.0, "gap": 0.004, "mean_outcome": 0.95}, "off"),
    ],
)
def test_boundaries(figures: dict[str, float], expected: str) -> None:
    assert kind(**figures) == expected


def test_five_rounds_are_too_few_to_tell() -> None:
    finding = found([0, 1, 1, 0, 1], [0.2, 0.4, 0.9, 0.3, 0.8])
    said = verdict(finding)
    assert (said.kind, said.headline) == ("few", "Too few rounds to tell")
    assert "cannot be ruled out" in said.evidence
    assert "too few rounds to say how much it matters" in size(finding, "few")
    assert "recalibration" not in size(finding, "few") + skill(finding, "few")
    assert where_sentences(finding) == [
        "No range of forecasts is off by more than chance explains."
    ]


def test_calibrated_forecasts_are_never_said_to_be() -> None:
    finding = found(*sample(20_000))
    said = verdict(finding)
    assert (said.kind, said.headline) == ("none", "No evidence against calibration")
    assert finding.smooth_error is not None
    assert f"{finding.smooth_error.estimate:.4f}" in said.evidence
    assert f"{finding.smooth_error.if_calibrated:.4f}" in said.evidence
    assert (
        f"up to about {finding.smooth_error.upper:.4f} cannot be ruled out (90\xa0% interval)"
        in said.evidence
    )
    assert "chance explains the gaps" in size(finding, "none")


def test_a_million_rounds_can_be_off_by_very_little() -> None:
    rng = np.random.default_rng(1)
    p = rng.choice([0.2, 0.4, 0.6, 0.8], 1_000_000)
    finding = found(rng.random(len(p)) < p + 0.002, p)
    said = verdict(finding)
    assert (said.kind, said.headline) == ("slight", "Not calibrated, but off by very little")
    assert (
        "Of 199 simulated sets of calibrated forecasts, none was as far off, by this error "
        "or in any" in said.evidence
    )
    assert said.evidence.endswith("(p-value 0.005).")


@pytest.mark.slow("makes a report of many rounds")
@pytest.mark.parametrize(
    ("bend", "words"),
    [
        (lambda p: 0.5 + 0.6 * (p - 0.5), "forecasts are too extreme (overconfident)"),
        (
            lambda p: np.clip(0.5 + 1.4 * (p - 0.5), 0, 1),
            "forecasts are not extreme enough (underconfident)",
        ),
        (lambda p: np.minimum(p + 0.08, 1), "forecasts are too low"),
        (lambda p: np.maximum(p - 0.08, 0), "forecasts are too high"),
        (
            lambda p: p + 0.09 * np.sin(5 * np.pi * (p - 0.1)),
            "forecasts are too low in places and too high in others",
        ),
        (
            lambda p: p + 0.09 * np.sin(6 * np.pi * p),
            "forecasts are too low in places and too high in others",
        ),
        (lambda p: 1 - p, "forecasts run the wrong way"),
    ],
)
def test_direction(bend: object, words: str) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 20_000)
    finding = found(rng.random(len(p)) < bend(p), p)
    assert direction(finding) == words
    assert verdict(finding).headline == f"Not calibrated: {words}"
    assert verdict(finding).short == f"off: {words}"


@pytest.mark.slow("makes a report of many rounds")
@pytest.mark.parametrize(
    ("off", "words"),
    [
        ((0.75, 1.0), r"forecasts above 0\.7\d? are too low"),
        ((0.0, 0.25), r"forecasts below 0\.2\d? are too low"),
        ((0.5, 0.7), r"forecasts from 0\.(5|49|48|51|52) to 0\.(7|69|71|72) are too low"),
        ((0.5, 0.5), r"forecasts (of|around) 0\.5 are too low"),
        ((0.3, 0.9), r"forecasts are too low"),
    ],
)
def test_a_headline_names_the_place_unless_it_is_most_of_the_forecasts(
    off: tuple[float, float], words: str
) -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(0.1, 0.9, 30_000)
    p = np.where(np.arange(len(p)) % 10 == 0, 0.5, p)
    there = (p >= off[0]) & (p <= off[1])
    finding = found(rng.random(len(p)) < p + 0.1 * there, p)
    assert re.fullmatch(words, direction(finding))
    assert verdict(finding).headline == f"Not calibrated: {direction(finding)}"


def test_several_places_are_only_said_to_be_places() -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(0.1, 0.9, 30_000)
    there = ((p > 0.2) & (p < 0.3)) | ((p > 0.7) & (p < 0.8))
    assert (
        direction(found(rng.random(len(p)) < p - 0.12 * there, p))
        == "forecasts are too high in places"
    )


def test_both_gains_are_said_in_one_sentence() -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(0.05, 0.95, 2000)
    finding = found(rng.random(len(p)) < p**2, p)
    brier = finding.figures.brier
    raw, less = 100 * brier.miscalibration / brier.score, 100 * finding.gain
    assert raw - less > 0.1
    assert gain(finding).endswith(
        f"would lower the Brier score by about {less:.2g}\xa0% ({raw:.2g}\xa0% in hindsight, minus "
        "the part due to chance)"
    )


def test_an_interval_without_width_is_not_given() -> None:
    alike = found([1] * 50, [0.8] * 50)
    assert alike.smooth_error is not None
    assert alike.smooth_error.upper - alike.smooth_error.lower < 1e-12
    said = verdict(alike).evidence
    assert "(no interval: every outcome was the same)" in said
    assert "interval 0" not in said
    close = found([1] * 50, [0.95] * 50)
    assert verdict(close).kind in ("few", "none")
    assert "cannot be ruled out" not in verdict(close).evidence
    certain = found([0, 1] * 50, [0.0, 1.0] * 50)
    assert certain.smooth_error is not None
    assert (
        interval(certain, certain.smooth_error)
        == "no interval: drawing rounds again changes nothing"
    )


def test_what_the_smooth_error_hardly_sees_is_seen_in_stretches() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 20_000)
    finding = found(rng.random(len(p)) < p + 0.09 * np.sin(5 * np.pi * (p - 0.1)), p)
    alone = tc.uncertainty(tc.smooth_calibration_error, rng.random(len(p)) < p, p, resamples=99)
    assert alone.p_value > 0.01
    said = verdict(finding)
    assert said.kind == "off"
    assert len(where_sentences(finding)) == 4  # three, and that there are more
    assert len(finding.marked) == 4


@pytest.mark.slow("makes a report of many rounds")
def test_where_it_is_off_is_said_in_words() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0, 1, 50_000)
    truth = np.where(p > 0.6, p - 0.08, p)
    (said,) = where_sentences(found(rng.random(len(p)) < truth, p))
    words = (
        r"Forecasts between (0\.\d+) and 0\.99\d+ were too high by about (0\.\d+) on average "
        r"\(.* rounds\)\."
    )
    low, off = re.fullmatch(words, said).groups()
    assert float(low) == pytest.approx(0.6, abs=0.03)
    assert float(off) == pytest.approx(0.08, abs=0.008)


def test_the_size_in_practice_is_that_of_the_figures() -> None:
    rng = np.random.default_rng(4)
    truth = rng.choice([0.2, 0.4, 0.6], 100_000)
    finding = found(rng.random(len(truth)) < truth, truth + 0.1)
    said = size(finding, "off")
    points, percent = map(
        float, re.search(r"by ([\d.]+) percentage points .* about ([\d.]+)\xa0%", said).groups()
    )
    assert points == pytest.approx(10, abs=0.5)
    assert percent == pytest.approx(100 * finding.gain, rel=0.05)
    assert said.endswith("The mean forecast was 0.5, the mean outcome 0.4.")


@pytest.mark.parametrize(("swap", "who"), [(False, ""), (True, " for the rarer outcome")])
def test_rare_events_are_told_in_times(swap: bool, who: str) -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(1, 99, 200_000)
    y = rng.random(len(p)) < p / 2
    finding = found(1 - y, 1 - p) if swap else found(y, p)
    said = re.search(r": ([\d.]+) times too high(.*)\.$", size(finding, "off"))
    assert float(said[1]) == pytest.approx(p.mean() / y.mean(), abs=0.05)
    assert said[2] == who
    assert "would lower the log loss by" in size(finding, "off")


@pytest.mark.parametrize(
    ("ones", "words"), [(4, "0.02."), (8, "0.04: 4 times too low."), (0, "0.")]
)
def test_times_are_told_only_beyond_chance(ones: int, words: str) -> None:
    # of which two are expected
    finding = found([1] * ones + [0] * (200 - ones), [0.01] * 200)
    assert size(finding, "few").endswith(f"the mean outcome {words}")


def test_skill_stands_beside_the_verdict() -> None:
    finding = found([0, 0, 1, 1] * 50, [0.25, 0.25, 0.75, 0.75] * 50)
    said = skill(finding, "off")
    assert (
        "the Brier score is 0.0625, 75\xa0% better than the 0.2500 of always saying the average"
        in said
    )
    assert "increasing curve, it would be 100\xa0% better than that, in hindsight." in said
    assert "This is how well they separate events from non-events." in said
    assert f"The log loss is {-np.log(0.75):.4f}, against {np.log(2):.4f}." in said
    assert "100\xa0% worse than" in skill(found([0, 1] * 100, [1.0, 1.0] * 100), "off")


def test_peculiar_rounds_are_said_to_be() -> None:
    ones = found([1] * 100, [0.7] * 100)
    assert verdict(ones).kind == "off"
    assert [said.partition(":")[0] for said in notes(ones)] == [
        "Every outcome is 1",
        "There is only one forecast",
    ]
    assert "all outcomes are the same" in skill(ones, "off")
    decided = found([0, 1, 1, 1] * 50, [0.0, 1.0, 1.0, 0.0] * 50)
    assert verdict(decided).kind == "off"
    assert notes(decided)[0].startswith("All forecasts are 0 or 1")
    assert notes(decided)[1].startswith(
        "The log loss is infinite: in 50 rounds something with probability 0 happened"
    )
    right = found([0, 1] * 50, [0.0, 1.0] * 50)
    assert verdict(right).kind == "none"
    assert notes(BASE) == []


def test_real_weights_cannot_be_judged() -> None:
    tally = tc.Tally([0.2, 0.7], [1.5, 2.5], [3.5, 0.5])
    finding = find("p", tally, groups=None, after=None, level=0.9, resamples=20, random_state=0)
    assert verdict(finding).headline == "With real weights, chance cannot be judged"
    assert "beyond chance" not in size(finding, "weighted")


@pytest.mark.slow("tries many examples")
@settings(max_examples=15)
@given(rounds(most=40))
def test_words_make_sense_of_any_rounds(rows: list[tuple[int, float]]) -> None:
    finding = found(*columns(rows), resamples=20)
    said = verdict(finding)
    all_of_it = [
        said.headline,
        said.evidence,
        size(finding, said.kind),
        skill(finding, said.kind),
        *notes(finding),
    ]
    words = " ".join([*all_of_it, *where_sentences(finding)])
    assert not re.search(r"\bnan\b|\binf\b|None|e-\d|  |\d{7}\.|\.\.", words)
    assert not re.search(r"(is|are) (well )?calibrated", words)
