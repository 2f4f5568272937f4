"""What to do: each piece of advice where it is due, and nowhere else."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.plot import group_overview
from truecast.report.advice import advice
from truecast.report.context import Context
from truecast.report.course import course_of
from truecast.report.findings import Finding, find
from truecast.report.verdict import headline, size, skill, verdict
from truecast.report.words import after_sentence, certificate_sentences, groups_sentence

WRONG_WAY = "Try 1 \N{MINUS SIGN} score."
CONTEXT = Context("title", None, None, False, None, 0, None, None)
RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, 5000).round(2)
Y = RNG.random(5000) < P
OFF = RNG.random(5000) < P**2


def found(y: object, p: object, **options: object) -> Finding:
    given = {
        "groups": None,
        "after": None,
        "level": 0.9,
        "resamples": 199,
        "random_state": 0,
    } | options
    return find("p", tc.Tally.from_predictions(y, p), **given)


@cache
def off() -> Finding:
    return found(OFF, P)


@cache
def fine() -> Finding:
    return found(Y, P)


def told(finding: Finding, context: Context = CONTEXT) -> list[str]:
    return [step.do for step in advice(finding, context)]


def test_recalibrate_if_it_is_off() -> None:
    (step,) = advice(off(), CONTEXT)
    assert step.do == "Recalibrate."
    assert step.line == "p = tc.Recalibrator().forecast_many(scores, outcomes)"
    assert re.search(
        r"the best fixed, increasing curve would lower the Brier score by about [\d.]+\xa0%",
        step.why,
    )


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        ("a b.csv", ".csv"),
        ("x.jsonl.gz", ".jsonl.gz"),
        ("2024.06.parquet", ".parquet"),
        ("-", ""),
        ("$(rm x).csv.zst", ".csv.zst"),
    ],
)
def test_the_command_can_be_typed_as_it_is(source: str, ending: str) -> None:
    context = replace(CONTEXT, source=source, outcome="it's y", score_known=True, group="g")
    (step,) = advice(off(), context)
    assert shlex.split(step.line or "") == [
        *(
            "truecast",
            "recalibrate",
            source,
            "--outcome",
            "it's y",
            "--score",
            "p",
            "-o",
            "recalibrated" + ending,
        )
    ]
    (step,) = advice(off(), replace(CONTEXT, source=source))
    assert "--outcome" not in (step.line or "")
    assert "--score" not in (step.line or "")


def test_leave_alone_what_shows_nothing() -> None:
    (step,) = advice(fine(), CONTEXT)
    assert (step.do, step.line) == ("Leave the forecasts as they are.", None)
    assert "measure again" in step.why


def test_how_many_rounds_would_be_enough() -> None:
    few = found(Y[:40], P[:40])
    (step,) = advice(few, CONTEXT)
    assert step.do == "Collect more rounds."
    words = r"With about ([\d,]+) such rounds, chance alone would make an error of about ([\d.]+)\."
    number, aim = re.fullmatch(words, step.why).groups()
    enough = int(number.replace(",", ""))
    assert float(aim) == 0.01
    chance = tc.uncertainty(
        tc.smooth_calibration_error, Y[:enough], P[:enough], resamples=100
    ).if_calibrated
    assert chance == pytest.approx(0.01, rel=0.35)


def test_look_at_the_group_that_stands_out() -> None:
    labels = np.where(np.arange(5000) % 2, "fine", "off")
    y = np.where(labels == "off", OFF, Y)
    finding = found(y, P, groups=group_overview(y, P, labels))
    assert finding.groups is not None
    assert told(finding)[:2] == ["Recalibrate.", 'Look at <bdi class="name">off</bdi>.']
    assert groups_sentence(finding.groups).startswith("1 of 2 groups stands out, after adjusting")
    assert "--by g" in (advice(finding, replace(CONTEXT, source="x.csv", group="g"))[0].line or "")
    calm = group_overview(Y, P, labels)
    assert groups_sentence(calm).startswith("None of 2 groups stands out")
    assert told(replace(fine(), groups=calm)) == ["Leave the forecasts as they are."]
    weighted = group_overview(Y, P, labels, sample_weight=RNG.random(5000))
    assert groups_sentence(weighted).startswith("With real weights, chance cannot be judged")


def test_a_dull_model_needs_more_than_calibration() -> None:
    dull = found(Y, np.full(5000, Y.mean()))
    assert told(dull)[1].startswith("Improve the model")
    assert len(told(found(Y[:50], np.full(50, 0.5)))) == 1  # too few to say


def test_forecasts_worse_than_the_mean_outcome_are_no_probabilities() -> None:
    words = "Do not use these as probabilities before they are recalibrated."
    assert words in told(found(Y, 1 - P))
    assert words not in told(fine())
    # in hindsight 0.525 is better, as some rate always is
    coins = found([0] * 95 + [1] * 105, [0.5] * 200)
    assert coins.figures.brier.score > coins.figures.brier.uncertainty
    assert words not in told(coins)


@pytest.mark.slow("makes a report of many rounds")
def test_forecasts_of_the_other_outcome_are_a_mix_up() -> None:
    turned = advice(found(Y, 1 - P), CONTEXT)[0]
    assert turned.do == WRONG_WAY
    assert turned.why.endswith("Or recalibrate, which reverses them.")
    assert turned.line is not None
    again = tc.Recalibrator().forecast_many(1 - P, Y)
    assert tc.brier_score(Y, again) < tc.brier_score(Y, np.full(5000, Y.mean()))  # it does
    assert not any("Improve the model" in words for words in told(found(Y, 1 - P)))
    assert WRONG_WAY not in told(off())
    noise = np.random.default_rng(6).uniform(0.05, 0.95, 5000)
    assert told(found(Y, noise))[0] == "Recalibrate."  # nothing known is not the wrong way
    assert (
        verdict(found(Y, noise)).headline
        == "Not calibrated: forecasts are too extreme (overconfident)"
    )


def test_certain_mistakes_are_pointed_at() -> None:
    assert told(found([*Y, True], [*P, 0.0]))[-1] == "Keep forecasts away from 0 and 1."
    assert told(found([*Y, True], [*P, 0.01]))[-1] != "Keep forecasts away from 0 and 1."


@pytest.mark.slow("makes a report of many rounds")
def test_after_recalibration_the_brier_score_decides() -> None:
    good = found(OFF, P, after=tc.Tally.from_predictions(OFF, P**2))
    assert told(good) == ["Use the recalibrated forecasts."]
    assert good.after is not None
    before, after = tc.brier_score(OFF, P), tc.brier_score(OFF, P**2)
    fell = (
        f"The Brier score fell by {100 * (1 - after / before):.0f}\xa0%, from {before:.4f} to "
        f"{after:.4f}"
    )
    assert after_sentence(good, good.after).startswith(fell)
    dull = found(OFF, P, after=tc.Tally.from_predictions(OFF, np.full(5000, OFF.mean())))
    assert told(dull)[0] == "Use the recalibrated forecasts if you need calibration."
    assert dull.after is not None
    (step, *_) = advice(dull, CONTEXT)
    lost = " They separate events from non-events less well: discrimination fell."
    assert step.why == f"Their smooth calibration error is lower, their Brier score is not.{lost}"
    (step, *_) = advice(replace(dull, after=_sharper(dull.after)), CONTEXT)
    assert step.why == "Their smooth calibration error is lower, their Brier score is not."
    assert after_sentence(dull, dull.after).startswith("The Brier score rose by")
    assert told(replace(dull, found=fine().found))[0] == "Keep the forecasts as they were."
    (step, *_) = advice(replace(good, after=_worse(good.after)), CONTEXT)
    assert step.why == "Their Brier score is better."
    bad = found(Y, P, after=tc.Tally.from_predictions(Y, P**2))
    assert told(bad)[0] == "Keep the forecasts as they were."
    same = found(Y, P, after=tc.Tally.from_predictions(Y, P))
    assert same.after is not None
    assert after_sentence(same, same.after).startswith("The Brier score stayed the same")


def _sharper(after: Finding) -> Finding:
    brier = replace(after.figures.brier, discrimination=0.2)
    return replace(after, figures=replace(after.figures, brier=brier))


def test_a_few_rounds_do_not_tell_whether_recalibration_helps() -> None:
    for later in (P[:30], Y[:30] * 0.8 + 0.1):
        (step, *_) = advice(
            found(Y[:30], P[:30], after=tc.Tally.from_predictions(Y[:30], later)), CONTEXT
        )
        assert step.do == "Collect more rounds."
        assert step.why == "30 are too few to tell whether recalibration helps."


def test_weak_evidence_is_called_what_it_is() -> None:
    """Marked beyond chance, and not by much: at a forecast, in a stretch, or all together."""
    ends = replace(off().marked[0], low=0.6, high=0.6, p_value=0.02, alone=True)
    weak = replace(off().found, p_value=0.02)
    said = "larger than chance usually makes (p-value 0.02), but not by much."
    for part, gap in (
        (ends, "The gap at 0.6 is"),
        (replace(ends, high=0.7), "The gap between 0.6 and 0.7 is"),
        (replace(ends, alone=False), "Taken together, the gaps are"),
    ):
        (step, *_) = advice(replace(off(), found=replace(weak, off=(part,))), CONTEXT)
        assert (step.do, step.why) == ("Look again with more rounds.", f"{gap} {said}")


def test_recalibrated_forecasts_need_not_be_recalibrated_first() -> None:
    words = "Do not use these as probabilities before they are recalibrated."
    assert words in told(found(Y, 1 - P))
    assert words not in told(found(Y, 1 - P, after=tc.Tally.from_predictions(Y, P)))


@pytest.mark.slow("makes a report of many rounds")
def test_rare_events_are_judged_by_the_log_loss_throughout() -> None:
    rng = np.random.default_rng(9)
    p = rng.beta(1, 99, 20_000)
    y = rng.random(len(p)) < np.minimum(3 * p, 1)
    rare = found(y, p, after=tc.Tally.from_predictions(y, np.minimum(3 * p, 1)))
    assert rare.gain_of == "log"
    assert advice(rare, CONTEXT)[0].why.startswith("Their log loss is better")
    assert rare.after is not None
    fell = 1 - tc.log_loss(y, np.minimum(3 * p, 1)) / tc.log_loss(y, p)
    assert after_sentence(rare, rare.after).startswith(
        f"The log loss fell by {100 * fell:.1f}\xa0%, from "
    )
    base = -(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log(1 - y.mean()))
    better = 1 - tc.log_loss(y, p) / base
    said = skill(replace(rare, after=None), "off")
    assert said.startswith(
        f"the log loss is {tc.log_loss(y, p):.5f}, {100 * better:.2f}\xa0% better than "
    )
    assert f"The Brier score is {tc.brier_score(y, p):.5f}, against " in said
    dull = found(y, np.full(len(y), y.mean()))
    assert advice(dull, CONTEXT)[1].why.endswith("than always saying the average, by the log loss.")
    certain = found(y, p, after=tc.Tally.from_predictions(y, np.zeros(len(y))))
    assert certain.after is not None
    assert after_sentence(certain, certain.after).startswith("The log loss rose, from ")
    assert not certain.outdone


def _worse(after: Finding) -> Finding:
    return replace(after, figures=replace(after.figures, smooth_calibration_error=1.0))


@pytest.mark.slow("makes a report of many rounds")
def test_a_curve_is_not_called_best_beside_what_beats_it() -> None:
    """Forecasts that run the wrong way: no increasing curve helps, and turning them around does."""
    turned = found(Y, 1 - P, after=tc.Tally.from_predictions(Y, P))
    assert turned.outdone
    said = skill(turned, "off") + size(turned, "off") + " ".join(told(turned))
    assert "curve" not in said
    assert "curve" in skill(found(Y, 1 - P), "off")
    fixed = found(OFF, P, after=tc.Tally.from_predictions(OFF, np.full(5000, OFF.mean())))
    assert "the best fixed, increasing curve" in size(fixed, "off")


@pytest.mark.parametrize("size_of_groups", [1, 20, 50])
def test_groups_of_a_round_or_so_are_not_to_be_recalibrated(size_of_groups: int) -> None:
    rows = 2000
    labels = [f"{k // size_of_groups}" for k in range(rows)]
    finding = found(
        OFF[:rows], P[:rows], groups=group_overview(OFF[:rows], P[:rows], labels, tested=5)
    )
    (step, *_) = advice(finding, replace(CONTEXT, source="x.csv", group="id"))
    assert ("--by id" in (step.line or "")) == (size_of_groups == 50)


def test_the_certificate_says_what_is_proved_and_what_not() -> None:
    r = tc.Recalibrator()
    r.forecast_many(P, OFF)
    certificate = r.certificate
    proved, promised, beside = certificate_sentences(certificate)
    assert proved.startswith("The forecasts of the 5,000 rounds so far are within ")
    assert (
        f"{certificate.per_round:.4f} on average of perfectly calibrated ones: proved, not "
        "estimated, " in proved
    )
    assert promised.startswith(
        f"At worst this could be {certificate.a_priori / 5000:.4f} on average over 5,000 "
    )
    assert "not any single one, and not future ones" in beside
    assert beside.endswith(f"read the Brier score, {certificate.brier:.4f}.")
    r.issue(0.5)
    proved, promised, _ = certificate_sentences(r.certificate)
    assert "5,001 rounds" in proved
    assert "5,001 rounds" in promised
    assert "with the 1 whose outcome is missing counted at their worst" in proved


@pytest.mark.parametrize("forecaster", [tc.BentGrid(horizon=20_000), tc.HorizonFree(), tc.Arc()])
def test_the_certificate_of_any_forecaster_is_told(forecaster: Any) -> None:
    forecaster.forecast_many(OFF)
    certificate = forecaster.certificate
    proved, promised, _ = certificate_sentences(certificate)
    assert f"within {certificate.per_round:.4f} on average" in proved
    over = 20_000 if certificate.horizon else 5_000
    assert f"{certificate.a_priori / over:.4f} on average over {over:,} rounds" in promised


def test_what_is_right_only_on_average_is_to_be_recalibrated() -> None:
    p = RNG.uniform(0.3, 0.7, 3_000)
    group = np.arange(3_000) % 2
    shift = np.where(group, 0.2, -0.2)
    y = RNG.random(3_000) < p + shift
    tallies = {k: tc.Tally.from_predictions(y[group == k], p[group == k]) for k in (0, 1)}
    finding = found(y, p, groups=group_overview(tallies))
    context = replace(CONTEXT, source="a.csv", group="g", options=("--positive", "it is"))
    first, *_ = advice(finding, context)
    assert verdict(finding).kind == "none"
    whole = "No evidence against calibration on the whole, but "
    assert headline(finding) == f"{whole}2 of 2 groups are off"
    assert first.do == "Recalibrate each group."
    page = tc.html_report(y, p, groups=group, resamples=199).html
    assert 'class="verdict weak"' in page
    assert 'class="verdict none"' not in page
    assert shlex.split(first.line or "")[3:] == [
        *("--by", "g", "--positive", "it is", "-o", "recalibrated.csv")
    ]

    halves = np.sort(shift)
    y = RNG.random(3_000) < p + halves
    days = np.datetime64("2024-01-01") + np.arange(3_000) // 30
    finding = found(y, p, course=course_of(days, y, p))
    first, *_ = advice(finding, CONTEXT)
    assert verdict(finding).kind == "none"
    assert headline(finding).startswith(f"{whole}there was an alarm on 2024-01-")
    assert first.do == "Recalibrate."
