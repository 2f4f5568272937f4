"""Several classes: definitions, agreement with peers, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecast as tc
from truecast.measures.families import holm
from truecast.reference import measures as reference

NAMES = ("home", "draw", "away")
ROWS = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]])
Y = [0, 1, 2, 2]
CLASS_MEASURES = [
    tc.class_decompositions,
    tc.classwise_calibration_errors,
    tc.classwise_uncertainty,
    tc.confidence_calibration_error,
    tc.top_label_calibration_errors,
    tc.top_label_decision_loss,
]


def stream(rounds=400, classes=4, seed=0, sharpness=1.5):
    """Rows, and classes that come by a sharper version of them."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(classes, 0.7), rounds)
    truth = rows**sharpness / (rows**sharpness).sum(axis=1, keepdims=True)
    y = (rng.random((rounds, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    return np.minimum(y, classes - 1), rows


def plain_tally(pairs):
    """Tally in fractions from pairs of forecast and outcome."""
    found = sorted({p for p, _ in pairs})
    return [
        (p, sum(q == p and not y for q, y in pairs), sum(q == p and y for q, y in pairs))
        for p in found
    ]


# Definitions


def test_small_worlds_by_definition():
    """All outcomes of three rounds, in fractions."""
    rows = [[Fraction(k, 4) for k in row] for row in ([2, 1, 1], [2, 2, 0], [1, 0, 3])]
    numbers = np.array(rows, float)
    for y in product(range(3), repeat=3):
        errors = tc.classwise_calibration_errors(list(y), numbers)
        for k in range(3):
            pairs = [(row[k], int(c == k)) for row, c in zip(rows, y, strict=True)]
            exact = reference.smooth_calibration_error(plain_tally(pairs)) / 3
            assert errors.each[k] == pytest.approx(float(exact), abs=1e-15)
        assert errors.sum == pytest.approx(errors.each.sum())
        tops = [max(range(3), key=lambda k, row=row: (row[k], -k)) for row in rows]
        pairs = [(row[t], int(c == t)) for row, t, c in zip(rows, tops, y, strict=True)]
        exact = reference.smooth_calibration_error(plain_tally(pairs)) / 3
        assert tc.confidence_calibration_error(list(y), numbers) == pytest.approx(float(exact))
        parts = tc.top_label_calibration_errors(list(y), numbers)
        total = Fraction(0)
        for k in range(3):
            some = [pair for pair, t in zip(pairs, tops, strict=True) if t == k]
            total += reference.smooth_calibration_error(plain_tally(some)) if some else 0
        assert parts.sum == pytest.approx(float(total / 3))
        brier = sum(
            (row[k] - (c == k)) ** 2 for row, c in zip(rows, y, strict=True) for k in range(3)
        )
        assert tc.brier_score(list(y), numbers) == pytest.approx(float(brier / 3))


def test_the_decomposition_of_the_log_score_by_definition():
    y, rows = stream()
    parts = tc.class_decompositions(y, rows)
    for k, log in enumerate(parts.log):
        came, p = y == k, rows[:, k]
        said = np.where(came, -np.log(p) - 1 + p, p)
        curve = tc.reliability_curve(came, p)(p)
        with np.errstate(divide="ignore"):
            recalibrated = np.where(came, -np.log(curve) - 1 + curve, curve)
        rate = came.mean()
        assert log.score == pytest.approx(said.mean())
        assert log.miscalibration == pytest.approx(said.mean() - recalibrated.mean())
        assert log.uncertainty == pytest.approx(-rate * np.log(rate))
        assert parts.brier[k] == tc.reliability_curve(came, p).brier
    for whole in (parts.brier_sum, parts.log_sum):
        built = whole.miscalibration - whole.discrimination + whole.uncertainty
        assert whole.score == pytest.approx(built)
    assert parts.log_sum.score == pytest.approx(tc.log_loss(y, rows))
    assert parts.brier_sum.score == pytest.approx(tc.brier_score(y, rows))


def test_reports_and_scores_are_one_computation():
    y, rows = stream()
    report = tc.measure(y, rows)
    assert (report.brier.score, report.log.score) == (tc.brier_score(y, rows), tc.log_loss(y, rows))
    assert report.parts == tc.class_decompositions(y, rows)
    assert report.confidence == tc.confidence_calibration_error(y, rows)
    assert report.top_label.sum == tc.top_label_calibration_errors(y, rows).sum


def test_decision_loss_by_definition():
    y, rows = stream(seed=3)
    top = rows.argmax(axis=1)
    best = sum(np.bincount(y[top == k]).max() for k in range(4) if (top == k).any())
    assert tc.top_label_decision_loss(y, rows, total=True) == best - (y == top).sum()


def test_classwise_errors_do_not_see_whole_vectors():
    """All three notions hold, and class 2 never comes where (1/2, 1/4, 1/4) was said."""
    rows = np.repeat([[2, 1, 1], [1, 2, 1], [1, 1, 2]], 4, axis=0) / 4
    report = tc.measure([0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0], rows)
    assert report.classwise.sum == report.top_label.sum == report.confidence == 0


# Peers


@pytest.mark.slow("imports scikit-learn")
def test_scores_agree_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    y, rows = stream()
    assert tc.log_loss(y, rows) == pytest.approx(metrics.log_loss(y, rows), abs=1e-12)
    halved = {"scale_by_half": False, "labels": range(4)}
    try:
        expected = metrics.brier_score_loss(y, rows, **halved)
    except TypeError:  # before scikit-learn 1.7 there is none for several classes
        pytest.skip("no Brier score of several classes in this scikit-learn")
    assert tc.brier_score(y, rows) == pytest.approx(expected, abs=1e-12)


def ece(confidence, right, n_bins=15):
    """The error as netcal and torchmetrics define it; no round is on the edge of a bin."""
    bins = np.digitize(confidence, np.linspace(0, 1, n_bins + 1)) - 1
    gaps = [
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    ]
    return float(np.sum(gaps))


def test_binned_errors_agree_with_the_definitions_of_peers():
    y, rows = stream(2000)
    binned = tc.binned_calibration_error
    top, confidence = rows.argmax(axis=1), rows.max(axis=1)
    expected = ece(confidence, top == y)
    assert tc.confidence_calibration_error(y, rows, error=binned) == pytest.approx(expected)
    classwise = tc.classwise_calibration_errors(y, rows, error=binned)
    each = [ece(rows[:, k], y == k) for k in range(4)]
    assert classwise.each == pytest.approx(each)
    assert classwise.mean == pytest.approx(np.mean(each))
    top_label = tc.top_label_calibration_errors(y, rows, error=partial(binned, n_bins=10))
    parts = [(top == k).mean() * ece(confidence[top == k], y[top == k] == k, 10) for k in range(4)]
    assert top_label.sum == pytest.approx(np.sum(parts))


# Two classes, one class, classes never seen


def test_two_classes_are_the_binary_measures():
    y, rows = stream(classes=2)
    p = rows[:, 1]
    report = tc.measure(y, rows)
    assert report.brier.score == pytest.approx(2 * tc.brier_score(y, p))
    assert report.log.score == pytest.approx(tc.log_loss(y, p))
    curve = tc.reliability_curve(y, p)
    for ours, theirs, times in ((report.brier, curve.brier, 2), (report.log, curve.log, 1)):
        for name in ("miscalibration", "discrimination", "uncertainty"):
            assert getattr(ours, name) == pytest.approx(times * getattr(theirs, name))
    assert report.classwise.each == pytest.approx([tc.smooth_calibration_error(y, p)] * 2)


def test_classes_never_seen_and_one_class_only():
    rows = [[1.0, 0.0, 0.0]] * 5
    report = tc.measure([0] * 5, rows)
    assert report.brier.score == report.log.score == report.classwise.sum == report.confidence == 0
    assert report.accuracy == 1
    assert np.isnan(report.top_label.each[1:]).all()
    assert report.top_label.sum == report.top_label.worst == 0
    assert report.rate == (1, 0, 0)
    sure = tc.classwise_uncertainty([0] * 5, rows, notion="top-label")
    assert np.isnan(sure.adjusted[1:]).all()
    assert sure.adjusted[0] == sure.least_p_value == 1
    assert tc.log_loss([1] * 5, rows) == np.inf
    assert tc.measure([1] * 5, rows).log.miscalibration == np.inf


# Labels and frames


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, tuple])
def test_labels_may_be_names(kind):
    named = kind([NAMES[k] for k in Y])
    tally = tc.ClassTally.from_predictions(named, ROWS, labels=NAMES)
    assert tally.labels == NAMES
    assert tally.classes == tc.ClassTally.from_predictions(Y, ROWS).classes


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("prefix", ["", "p_", "prob.model-"])
def test_columns_of_frames_are_found_by_their_names(frame, prefix):
    expected = tc.ClassTally.from_predictions([NAMES[k] for k in Y], ROWS, labels=NAMES)
    order = [2, 0, 1]
    columns = {prefix + NAMES[k]: ROWS[:, k] for k in order}
    named = [NAMES[k] for k in Y]
    found = tc.ClassTally.from_predictions(named, frame(columns), labels=NAMES)
    assert found == expected
    guessed = tc.ClassTally.from_predictions(named, frame(columns))
    assert set(guessed.labels) == set(NAMES)
    assert guessed["home"] == expected["home"]


@pytest.mark.parametrize("labels", [None, ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]])
def test_names_of_classes_may_have_a_common_beginning_of_their_own(labels):
    species = ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    frame = pl.DataFrame(ROWS, schema=[f"p_{name}" for name in species])
    found = tc.ClassTally.from_predictions([species[k] for k in Y], frame, labels=labels)
    assert found.labels == tuple(species)
    assert found.classes == tc.ClassTally.from_predictions(Y, ROWS).classes


def test_other_columns_may_be_there_if_labels_are_given():
    named = [NAMES[k] for k in Y]
    columns = {f"p_{name}": ROWS[:, k] for k, name in enumerate(NAMES)}
    frame = pl.DataFrame({"round": [1, 2, 3, 4], **columns})
    found = tc.ClassTally.from_predictions(named, frame, labels=NAMES)
    assert found == tc.ClassTally.from_predictions(named, ROWS, labels=NAMES)


def test_numbers_as_labels():
    tally = tc.ClassTally.from_predictions([3, 7, 9, 9], ROWS, labels=[3, 7, 9])
    assert tally[9] == tc.ClassTally.from_predictions(Y, ROWS)[2]
    frame = pd.DataFrame(ROWS, columns=[3, 7, 9])
    assert tc.ClassTally.from_predictions([3.0, 7.0, 9.0, 9.0], frame) == tally
    assert tc.brier_score(np.array(Y, float), ROWS) == tc.brier_score(Y, ROWS)


def test_true_and_false_as_labels():
    y = np.array([True, False, True, True])
    rows = ROWS[:, :2] / ROWS[:, :2].sum(axis=1, keepdims=True)
    expected = tc.ClassTally.from_predictions(y.astype(int), rows)
    for names in ([False, True], ["p_False", "p_True"]):
        assert tc.ClassTally.from_predictions(y, pd.DataFrame(rows, columns=names)) == expected
    assert tc.ClassTally.from_predictions(y, rows, labels=[False, True]) == expected


def test_no_rounds_are_an_empty_tally():
    """Names in an empty column are objects to numpy, as pandas has them."""
    whole = tc.ClassTally.from_predictions([NAMES[k] for k in Y], ROWS, labels=NAMES)
    for y in ([], np.array([], object), pd.Series([], dtype=str), pl.Series([], dtype=pl.String)):
        none = tc.ClassTally.from_predictions(y, np.empty((0, 3)), labels=NAMES)
        assert none + whole == whole


# What is refused


@pytest.mark.parametrize(
    ("y", "rows", "options", "message"),
    [
        (Y, ROWS * 0.9, {}, r"rows that sum to 1 within 1e-6; normalize=True .* position 0"),
        (
            [0] * 4,
            [[0.5, 0.5], [0.5, 0.5], [0.5, 0.500002], [1, 0]],
            {},
            "sum, got 1.000002 at pos.* 2",
        ),
        (Y, ROWS * [1, 1, -1], {}, r"y_prob must be between 0 and 1, got -0.25 .*\(0, 2\)"),
        (Y, ROWS * np.nan, {}, "y_prob must be between 0 and 1, got nan"),
        ([0, 1, 3, 2], ROWS, {}, "number of its column in y_prob, 0 to 2; .* got 3 at position 2"),
        ([0, 1, -1, 2], ROWS, {}, "got -1 at position 2"),
        (["home", "draw", "away", "away"], ROWS, {}, "for names pass labels=.* got 'home'"),
        (["home", "x", "away", "away"], ROWS, {"labels": NAMES}, "one of the labels.*got 'x'"),
        (["home", None, "away", "away"], ROWS, {"labels": NAMES}, "got None at position 1"),
        (Y, ROWS, {"labels": ["a", "b"]}, "a name for each of the 3 columns"),
        (Y, ROWS, {"labels": ["a", "b", "b"]}, "must name each class once, got 'b' at position 2"),
        (Y, ROWS, {"labels": "abc"}, "labels must be from 2 to 4096 different names"),
        (["a"] * 4, ROWS, {"labels": {"a", "b", "c"}}, "labels must be .* in the order of columns"),
        (Y, ROWS[:3], {}, "must have a row for each of the 4 outcomes"),
        (Y, ROWS[:, :1], {}, r"at least two columns: of one column, pass \[:, 0\]"),
        (Y, pl.DataFrame(ROWS[:, :1], schema=["p"]), {}, "y_prob .* pass the one column itself"),
        ([[0], [1]], ROWS, {}, r"y_true must have shape \(rounds,\)"),
        (Y, pd.DataFrame(ROWS, columns=list("abc")), {"labels": list("abd")}, "none for 'd'"),
        (
            Y,
            pd.DataFrame(ROWS, columns=["p_a", "p_b", "p_c"]),
            {"labels": list("abd")},
            "none for 'd'",
        ),
        (["z"] * 4, pl.DataFrame(ROWS, schema=list("abc")), {}, "named by the columns.*got 'z'"),
        (Y, tc.TopK([[0]] * 4, [[1.0]] * 4), {}, "labels must be given beside a TopK"),
        (Y, tc.TopK([[5]] * 4, [[1.0]] * 4), {"labels": 5}, r"indices from 0 to 4, got 5"),
        (Y, tc.TopK([[1, 1]] * 4, [[0.5, 0.5]] * 4), {"labels": 5}, "list a class once in a row"),
        (Y, tc.TopK([[0, 1]] * 4, [[0.5, 0.4]] * 4), {"labels": 5}, "got 0.9 at position 0"),
        (Y, tc.TopK([[0, 1], [1]] * 2, [[0.5, 0.5]] * 4), {"labels": 5}, "rows of one length"),
        (Y, tc.TopK([[0.5]] * 4, [[1.0]] * 4), {"labels": 5}, "indices, integers, and values"),
        (Y, np.zeros((4, 3)), {"normalize": True}, "rows with a positive entry"),
        (Y, np.full((4, 3), 1e308), {"normalize": True}, "a finite sum, got inf at position 0"),
        (
            Y,
            np.full((4, 3), np.inf),
            {"normalize": True},
            "must be finite and not negative, got inf",
        ),
        (np.ma.array(Y, mask=[0, 0, 1, 0]), ROWS, {}, "y_true .* masked .* position 2"),
        # columns of frames
        (
            ["a", "z", "b", "c"],
            pl.DataFrame(ROWS, schema=list("abc")),
            {},
            r"named by the columns of y_prob \(a, b, c\).* got 'z' at position 1",
        ),
        ([1.0, 2, np.nan, 3], pd.DataFrame(ROWS, columns=[1, 2, 3]), {}, "got nan at position 2"),
        ([0, 1, 1, 0], pl.DataFrame(ROWS, schema=["0", "1", "other"]), {}, "y_prob .* all called"),
        (
            [0.5, 1.5, 1.5, 1.5],
            pd.DataFrame(ROWS, columns=[0.5, 1.5, 2.5]),
            {},
            "y_prob .* all called",
        ),
        (Y, pd.DataFrame(ROWS, columns=[0, 1, 1]), {}, "y_prob .* there are 2 called 1"),
        (
            ["a", "b", "a", "b"],
            pd.DataFrame(ROWS, columns=["a", "b", "a"]),
            {"labels": ["a", "b"]},
            "y_prob .* there are 2 called 'a'",
        ),
        ([], pl.DataFrame({"a": [], "b": []}), {}, "labels must be given if y_prob is a frame"),
        ([], np.zeros((0, 3)), {}, "at least one round"),
    ],
)
def test_bad_input_is_refused_with_its_place(y, rows, options, message):
    with pytest.raises(tc.InputError, match=message):
        tc.measure(y, rows, **options)


@pytest.mark.parametrize("function", CLASS_MEASURES, ids=lambda function: function.__name__)
def test_measures_of_classes_take_a_tally_alone_or_both(function):
    tally = tc.ClassTally.from_predictions(Y, ROWS)
    function(tally)
    for arguments in (([0, 1],), (tally, ROWS), (tc.Tally([0.5], [1], [1]),)):
        with pytest.raises(tc.InputError, match="y_prob"):
            function(*arguments)
    with pytest.raises(tc.InputError, match="at least one round, of positive weight"):
        function(Y, ROWS, sample_weight=[0] * 4)
    with pytest.raises(tc.InputError, match=r"sample_weight must be left out .* got \[1, 1\]"):
        function(tally, sample_weight=[1, 1])


def test_rows_may_be_normalized():
    assert tc.measure(Y, ROWS * 3, normalize=True).brier == tc.measure(Y, ROWS).brier


def test_real_weights_have_no_p_values():
    with pytest.raises(tc.InputError, match="real weights cannot be resampled"):
        tc.classwise_uncertainty(Y, ROWS, sample_weight=[0.5] * 4)


@pytest.mark.parametrize("weights", ["none", "counts", "real"])
def test_the_order_of_rows_changes_no_bit(weights):
    y, rows = stream(300)
    rng = np.random.default_rng(0)
    weight = {"none": None, "counts": rng.integers(0, 9, 300), "real": rng.random(300)}[weights]
    order = rng.permutation(300)
    moved = None if weight is None else weight[order]
    one, other = (
        tc.ClassTally.from_predictions(y, rows, sample_weight=weight),
        tc.ClassTally.from_predictions(y[order], rows[order], sample_weight=moved),
    )
    assert one == other
    assert repr(tc.measure(one).to_dict()) == repr(tc.measure(other).to_dict())


def test_tallies_that_no_rounds_lead_to_are_refused():
    tally = tc.ClassTally.from_predictions(Y, ROWS)
    forged = tally.classes[0], tally.classes[1] + tally.classes[1], tally.classes[2]
    with pytest.raises(tc.InputError, match="as many rounds for each class"):
        tc.ClassTally(tally.labels, forged, tally.tops, tally.confusion)
    with pytest.raises(tc.InputError, match="a row and a column for each label"):
        tc.ClassTally(tally.labels, tally.classes, tally.tops, [[1]])
    for text in ("{}", tally.classes[0].to_json(), tally.to_json().replace("confusion", "x")):
        with pytest.raises(tc.StateError):
            tc.ClassTally.from_json(text)
    with pytest.raises(tc.InputError, match="must be one of"):
        tally["home"]
    with pytest.raises(tc.InputError, match="in both tallies"):
        tally + tc.ClassTally.from_predictions(Y, ROWS, labels=[2, 1, 0])


# Few entries a row


@pytest.mark.parametrize("weight", [None, [1, 2, 3, 4], [0.5, 1.0, 2.0, 0.25]])
def test_few_entries_are_whole_rows_with_zeros(weight):
    rows = tc.TopK([[0, 1, 2], [1, 0, 2], [0, 2, 1], [4, 1, 2]], ROWS[:, [1, 0, 2]])
    whole = np.zeros((4, 5))
    for at, (which, values) in enumerate(zip(*rows, strict=True)):
        whole[at, which] = values
    y = [0, 3, 2, 4]
    assert tc.ClassTally.from_predictions(
        y, rows, labels=5, sample_weight=weight
    ) == tc.ClassTally.from_predictions(y, whole, sample_weight=weight)


# Uncertainty


def test_p_values_find_the_classes_that_are_off():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(4), 4000)
    truth = rows.copy()
    moved = np.minimum(0.1, truth[:, 0])
    truth[:, 0] -= moved
    truth[:, 1] += moved
    y = np.minimum((rng.random((4000, 1)) > np.cumsum(truth, axis=1)).sum(axis=1), 3)
    sure = tc.classwise_uncertainty(y, rows)
    assert (sure.adjusted[:2] < 0.001).all()
    assert (sure.adjusted[2:] > 0.05).all()
    assert (sure.adjusted >= sure.p_value).all()
    assert sure.least_p_value == sure.adjusted.min()
    assert sure.error == pytest.approx(tc.classwise_calibration_errors(y, rows).each)


@pytest.mark.slow("draws outcomes of 100 calibrated streams")
def test_calibrated_classes_are_seldom_called_off():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(100):
        rows = rng.dirichlet(np.ones(5), 100)
        y = np.minimum((rng.random((100, 1)) > np.cumsum(rows, axis=1)).sum(axis=1), 4)
        found += tc.classwise_uncertainty(y, rows, resamples=40).least_p_value < 0.1
    assert found <= 20  # ten are allowed on average; 21 have a chance of .0008


def test_holm_by_definition():
    values = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(values) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_reports_say_which_notion_each_figure_is():
    report = tc.measure(Y, ROWS)
    text = str(report)
    assert "whole vectors" in text
    assert all(f"{notion} error 0:" in text for notion in ("classwise", "top-label", "confidence"))
    assert "predicted" in report.top_label.meaning
    assert "worst" in str(report.classwise)
    plain = report.to_dict()
    assert [row["class"] for row in plain["classes"]] == [0, 1, 2]
    assert set(plain["notions"]) == {"classwise", "top-label", "confidence", "not promised"}
