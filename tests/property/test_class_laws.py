"""Laws of the measures of several classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc


@st.composite
def worlds(draw):
    """Rows of sixteenths, so that ties are common, and an outcome for each."""
    classes = draw(st.integers(2, 4))
    cuts = st.lists(st.integers(0, 16), min_size=classes - 1, max_size=classes - 1)
    rows = [np.diff([0, *sorted(draw(cuts)), 16]) / 16 for _ in range(draw(st.integers(1, 12)))]
    y = draw(st.lists(st.integers(0, classes - 1), min_size=len(rows), max_size=len(rows)))
    return np.array(y), np.array(rows)


@pytest.mark.slow("draws forty worlds")
@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_classes_does_not_matter_but_for_ties(world, random):
    y, rows = world
    order = random.sample(range(rows.shape[1]), rows.shape[1])
    place = np.argsort(order)
    one, other = tc.measure(y, rows), tc.measure(place[y], rows[:, order])
    assert other.classwise.each == pytest.approx(one.classwise.each[order])
    assert other.brier.score == pytest.approx(one.brier.score)
    assert other.log.score == pytest.approx(one.log.score)
    top = np.sort(rows, axis=1)
    if (top[:, -1] > top[:, -2]).all():
        assert other.confidence == pytest.approx(one.confidence)
        assert other.top_label.sum == pytest.approx(one.top_label.sum)
        assert other.top_label_decision_loss == one.top_label_decision_loss


@pytest.mark.slow("draws forty worlds")
@given(worlds(), st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_tallies_of_parts_add_to_that_of_the_whole(world, cut):
    y, rows = world
    whole = tc.ClassTally.from_predictions(y, rows)
    parts = [
        tc.ClassTally.from_predictions(y[some], rows[some])
        for some in (slice(cut), slice(cut, None))
    ]
    assert tc.ClassTally.merge(parts) == sum(parts) == whole
    assert tc.ClassTally.from_json(whole.to_json()) == whole
    assert whole.confidence.total == whole.total == len(y)


@pytest.mark.slow("draws forty worlds")
@given(worlds())
@settings(max_examples=40, deadline=None)
def test_each_notion_against_the_others(world):
    y, rows = world
    report = tc.measure(y, rows)
    assert report.confidence <= report.top_label.sum + 1e-12
    assert abs(report.mean_confidence - report.accuracy) <= report.confidence + 1e-12
    assert report.top_label_decision_loss <= 1 - report.accuracy + 1e-12
    for whole in (report.brier, report.log):
        assert min(whole.miscalibration, whole.discrimination, whole.uncertainty) >= 0
    weights = np.arange(1, len(y) + 1)
    repeated = tc.ClassTally.from_predictions(np.repeat(y, weights), np.repeat(rows, weights, 0))
    assert tc.ClassTally.from_predictions(y, rows, sample_weight=weights) == repeated
