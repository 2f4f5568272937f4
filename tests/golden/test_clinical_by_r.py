"""Slope, intercept, calibration-in-the-large, O:E, ICI, E50, E90 and Emax as R computes them.

clinical.R made clinical.json, with R 4.2.2 and rms 6.5.0 of Debian 12.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import truecast as tc

HERE = Path(__file__).parent
R = json.loads((HERE / "clinical.json").read_text())


def flights() -> tuple[np.ndarray, np.ndarray]:
    with (HERE.parents[1] / "examples" / "scores.csv").open() as file:
        rows = [(int(row["outcome"]), float(row["score"])) for row in csv.DictReader(file)]
    y, p = np.array(rows).T
    return y, p


def ties() -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(200)
    p = (k % 10) / 20 + 0.25
    return ((k * 37) % 100 < 100 * (1.6 * (p - 0.5) + 0.45)).astype(int), p


DATA = {"flights": flights(), "ties": ties()}


def parts(found: tc.Interval) -> list[float]:
    return [found.estimate, found.lower, found.upper]


@pytest.mark.parametrize("name", DATA)
def test_estimates_and_intervals_are_those_of_glm(name: str) -> None:
    line, large = tc.calibration_slope(*DATA[name]), tc.calibration_in_the_large(*DATA[name])
    assert parts(line.slope) == pytest.approx(R[name]["slope"], rel=1e-10)
    assert parts(line.intercept) == pytest.approx(R[name]["intercept"], rel=1e-10)
    # glm takes the standard error a step before the last
    assert parts(large) == pytest.approx(R[name]["in_the_large"], rel=1e-9, abs=1e-10)
    assert (line.left_out, line.why) == (0, "")


@pytest.mark.parametrize("name", DATA)
def test_the_line_is_that_of_val_prob(name: str) -> None:
    line = tc.calibration_slope(*DATA[name])
    # lrm stops a little earlier than glm does with the strictest options
    assert line.slope.estimate == pytest.approx(R[name]["val_prob_slope"], rel=1e-7)
    assert line.intercept.estimate == pytest.approx(R[name]["val_prob_intercept"], rel=1e-7)


@pytest.mark.parametrize("name", DATA)
def test_the_ratio_and_its_interval_are_those_of_prop_test(name: str) -> None:
    ratio = tc.observed_expected_ratio(*DATA[name])
    assert parts(ratio) == pytest.approx(
        [R[name]["observed_expected"], *R[name]["wilson"]], rel=1e-12
    )


def indices(name: str) -> list[float]:
    quantiles = [tc.calibration_error_quantile(*DATA[name], q=q) for q in (0.5, 0.9, 1.0)]
    return [tc.integrated_calibration_index(*DATA[name]), *quantiles]


@pytest.mark.parametrize("name", DATA)
def test_index_and_quantiles_are_those_of_isoreg(name: str) -> None:
    assert indices(name) == pytest.approx(R[name]["isotonic"], rel=1e-12)


@pytest.mark.parametrize("name", DATA)
def test_a_smoother_with_a_span_gives_others_of_the_same_size(name: str) -> None:
    """Not equal to val.prob (lowess) or Austin and Steyerberg (loess).

    Their curves are smoother, may fall, and depend on a span; ours is isotonic.
    """
    mean, _, ninety, _ = indices(name)
    lowess, loess = R[name]["val_prob_lowess"], R[name]["austin_loess"]
    for theirs in (lowess[0], loess[0]):
        assert mean != theirs
        assert mean == pytest.approx(theirs, rel=0.07)
    for theirs in (lowess[1], loess[2]):
        assert ninety == pytest.approx(theirs, rel=0.1)


def test_the_docstring_names_these_figures() -> None:
    said = tc.integrated_calibration_index.__doc__ or ""
    figures = (
        R["flights"]["isotonic"][0],
        R["flights"]["austin_loess"][0],
        R["flights"]["val_prob_lowess"][0],
    )
    assert "{:.4f}, {:.4f} and {:.4f}".format(*figures) in said
