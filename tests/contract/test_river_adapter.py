"""The river adapter: river's own checks, and what we say beyond them."""

import copy
import itertools
import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import (
    base,
    checks,
    datasets,
    evaluate,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    stream,
    tree,
)

import truecast as tc
from truecast.adapters.river import Recalibrated

PHISHING = list(datasets.Phishing().take(300))


class Told(base.Classifier):
    """Says what a feature says; counts what it learns."""

    def __init__(self) -> None:
        self.learned: list[Any] = []
        self.weights: list[Any] = []

    def predict_proba_one(self, x: Any, shift: float = 0.0) -> Any:
        return (
            x["said"]
            if isinstance(x["said"], dict)
            else {False: 1 - x["said"], True: x["said"] + shift}
        )

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        if x.get("bad"):
            raise ValueError("bad row")
        self.learned.append((x["said"], y))
        self.weights.append(w)


def scaled() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def state(model: Recalibrated) -> Any:
    """What learning can change; which score was asked about last is none of it."""
    whole = model.recalibrator.state()
    return [whole["hint"], model.recalibrator.rounds, model.certificate, whole["tickets"]]


# river's checks, without exceptions

CHECKS = [
    pytest.param(params, number, id=f"{params['classifier']}-{number}-{check.__name__}")
    for params in Recalibrated._unit_test_params()
    for number, check in enumerate(checks.yield_checks(Recalibrated(**params)))
]


@pytest.mark.slow("runs all checks of river")
@pytest.mark.parametrize(("params", "number"), CHECKS)
def test_checks_of_river(params: dict[str, Any], number: int) -> None:
    model = Recalibrated(**params).clone()
    assert not model._unit_test_skips()
    check = next(itertools.islice(checks.yield_checks(model), number, None))
    random.seed(0)
    check(model)


# Learning


@pytest.mark.parametrize("make", [scaled, naive_bayes.GaussianNB, tree.HoeffdingTreeClassifier])
def test_rounds_are_those_of_a_recalibrator_on_scores_before_learning(
    make: Callable[[], Any],
) -> None:
    model, alone, plain = Recalibrated(make(), budget=2.0), make(), tc.Recalibrator(budget=2.0)
    for x, y in PHISHING:
        said = model.predict_proba_one(x)
        expected = plain.predict(
            alone.predict_proba_one(x).get(True, 0.0) if alone.predict_proba_one(x) else 0.5
        )
        assert said == {False: 1 - expected, True: expected}
        assert model.predict_one(x) == (expected > 0.5)
        plain.observe(y)
        alone.learn_one(x, y)
        model.learn_one(x, y)
    assert model.certificate == plain.certificate
    assert model.classifier.predict_proba_one(PHISHING[0][0]) == alone.predict_proba_one(
        PHISHING[0][0]
    )


@pytest.mark.slow("tries many examples")
@given(asked=st.lists(st.integers(0, 3), min_size=60, max_size=60))
@settings(max_examples=20)
def test_asking_changes_nothing(asked: list[int]) -> None:
    often, never = Recalibrated(scaled()), Recalibrated(scaled())
    for (x, y), times in zip(PHISHING, asked, strict=False):
        for other, _ in PHISHING[:times]:
            often.predict_proba_one(other)
            often.predict_one(other)
        often.learn_one(x, y)
        never.learn_one(x, y)
        assert state(often) == state(never)
    for x, _ in PHISHING[:20]:
        assert often.predict_proba_one(x) == never.predict_proba_one(x)


def test_the_certificate_holds_for_what_was_said() -> None:
    model = Recalibrated(scaled())
    said = []
    for x, y in PHISHING[:100]:
        said.append((y, model.predict_proba_one(x)[True]))
        model.learn_one(x, y)
    y, p = zip(*said, strict=True)
    assert 100 * tc.calibration_distance(y, p).upper <= model.certificate.bound
    assert model.certificate.brier == pytest.approx(tc.brier_score(y, p))


def test_it_repairs_scores_that_are_too_sure() -> None:
    rng = np.random.default_rng(0)
    model = Recalibrated(Told())
    ys, ps, raws, truths = [], [], [], []
    for z in rng.normal(size=4_000):
        truth, raw = 1 / (1 + math.exp(-z)), 1 / (1 + math.exp(-4 * z))
        y = bool(rng.random() < truth)
        ps.append(model.predict_proba_one({"said": raw})[True])
        model.learn_one({"said": raw}, y)
        ys.append(y), raws.append(raw), truths.append(truth)
    assert tc.smooth_calibration_error(ys, ps) < 0.05 * tc.smooth_calibration_error(ys, raws)
    assert tc.brier_score(ys, ps) < 1.02 * tc.brier_score(ys, truths)


def test_keywords_go_to_the_classifier() -> None:
    model = Recalibrated(Told(), hint=tc.hints.Identity())
    assert model.predict_proba_one({"said": 0.25}, shift=0.5)[True] == 0.75
    assert model.issue_one({"said": 0.25}, shift=0.5).p == 0.75
    model.learn_one({"said": 0.25}, True, w=3.0)
    model.resolve_one(0, {"said": 0.25}, False, w=2.0)
    assert model.classifier.weights == [3.0, 2.0]


def test_scores_that_a_classifier_may_give() -> None:
    model = Recalibrated(Told(), hint=tc.hints.Identity())
    for said, p in [({}, 0.5), ({True: 1.0}, 1.0), ({False: 1.0}, 0.0), ({0: 0.75, 1: 0.25}, 0.25)]:
        assert model.predict_proba_one({"said": said}) == {False: 1 - p, True: p}
    for said, p in [
        ({np.True_: np.float32(0.25)}, 0.25),
        ({True: 1 + 1e-12}, 1.0),
        ({True: -1e-12}, 0.0),
    ]:
        assert model.predict_proba_one({"said": said})[True] == p


def test_binary_also_around_a_classifier_for_more_classes() -> None:
    classifier = tree.HoeffdingTreeClassifier()
    assert classifier._multiclass
    assert not Recalibrated(classifier)._multiclass
    assert set(Recalibrated(classifier).predict_proba_one({"a": 1})) == {False, True}


def test_classes_are_those_of_a_recalibrator_for_classes() -> None:
    stream = list(datasets.ImageSegments().take(300))
    labels = tuple(sorted({y for _, y in stream}))
    model = Recalibrated(naive_bayes.GaussianNB(), classes=labels)
    alone, plain = naive_bayes.GaussianNB(), tc.Recalibrator(classes=labels, normalize=True)
    for x, y in stream:
        said = alone.predict_proba_one(x)
        row = [said.get(label, 0.0) for label in labels] if said else [1.0] * len(labels)
        assert model.predict_proba_one(x) == dict(zip(labels, plain.predict(row), strict=True))
        plain.observe(y)
        model.learn_one(x, y)
        alone.learn_one(x, y)
    assert model.certificate == plain.certificate
    ticket = model.issue_one(stream[0][0])
    model.resolve_one(ticket, *stream[0])
    assert model.certificate.rounds == 301
    with pytest.raises(tc.InputError, match="fixed at the start"):
        model.learn_one(stream[0][0], "sea")
    assert model.certificate.rounds == 301


def test_other_labels_need_classes() -> None:
    model = Recalibrated(naive_bayes.GaussianNB())
    with pytest.raises(tc.InputError, match=r"for several classes pass classes=\(...\)"):
        model.learn_one({"x": 1.0}, "a")
    ticket = model.issue_one({"x": 1.0})
    with pytest.raises(tc.InputError, match=r"for several classes pass classes=\(...\)"):
        model.resolve_one(ticket, {"x": 1.0}, "a")


def test_classes_have_groups_and_events_too() -> None:
    stream = list(datasets.ImageSegments().take(60))
    labels = tuple(sorted({y for _, y in stream}))
    model = Recalibrated(naive_bayes.GaussianNB(), classes=labels, group=lambda x: len(x) % 2)
    for x, y in stream:
        model.learn_one(x, y)
    ticket = model.issue_one(stream[0][0], event="once")
    model.resolve_one(ticket, *stream[0])
    assert sum(each.certificate.rounds for each in model.recalibrator.groups.values()) == 61


# In river's company


def test_in_a_pipeline_progressively_validated() -> None:
    model = preprocessing.StandardScaler() | Recalibrated(linear_model.LogisticRegression())
    found = evaluate.progressive_val_score(
        datasets.Phishing(), model, metrics.LogLoss() + metrics.Accuracy()
    )
    plain = evaluate.progressive_val_score(
        datasets.Phishing(), scaled(), metrics.LogLoss() + metrics.Accuracy()
    )
    assert found[0].get() < 0.9 * plain[0].get()
    assert model["Recalibrated"].certificate.rounds == 1250
    around = Recalibrated(scaled())
    again = evaluate.progressive_val_score(
        datasets.Phishing(), around, metrics.LogLoss() + metrics.Accuracy()
    )
    # scaled before or after the row is learned
    assert again[0].get() == pytest.approx(found[0].get(), abs=0.01)


def test_progressive_validation_with_late_labels() -> None:
    model = Recalibrated(scaled())
    evaluate.progressive_val_score(
        datasets.Phishing().take(300), model, metrics.LogLoss(), delay=10
    )
    assert model.certificate.rounds == 300
    assert model.certificate.unresolved == 0


def test_clones_start_anew_and_copies_go_on() -> None:
    model = Recalibrated(scaled(), hint=tc.hints.Platt(), budget=2.0, max_unresolved=7)
    for x, y in PHISHING[:100]:
        model.learn_one(x, y)
    fresh = model.clone()
    assert fresh.certificate.rounds == 0
    assert fresh.recalibrator.config == model.recalibrator.config
    assert model.clone({"budget": 3.0}).recalibrator.config["budget"] == 3.0
    assert model.hint.to_json() == tc.hints.Platt().to_json()  # a copy of it learned
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.clone(include_attributes=True),
    ]
    # river's clone: our attributes, a new classifier
    assert copies.pop().certificate == model.certificate
    for x, y in PHISHING[100:150]:
        said = model.predict_proba_one(x)
        for other in copies:
            assert other.predict_proba_one(x) == said
            other.learn_one(x, y)
        model.learn_one(x, y)
    assert [other.certificate for other in copies] == [model.certificate] * 2


# Late labels


@given(delays=st.lists(st.integers(0, 30), min_size=60, max_size=60))
@settings(max_examples=20)
def test_late_labels_in_any_order(delays: list[int]) -> None:
    model, alone, plain = Recalibrated(scaled()), scaled(), tc.Recalibrator()
    rows = PHISHING[:60]
    pending: dict[int, tuple[int, int]] = {}
    delay = dict(enumerate(delays))
    numbered = [({**x, "id": i}, y) for i, (x, y) in enumerate(rows)]
    said = {}
    for i, x, y in stream.simulate_qa(numbered, moment=None, delay=lambda x, _: delay[x["id"]]):
        x = {name: value for name, value in x.items() if name != "id"}
        if y is None:
            score = alone.predict_proba_one(x)[True]
            before = model.predict_proba_one(x)[True]
            pending[i] = model.issue_one(x), plain.issue(score)
            said[i] = pending[i][0].p
            assert said[i] == pending[i][1].p == before
            continue
        ours, theirs = pending.pop(i)
        model.resolve_one(int(ours), x, y)
        plain.resolve(theirs, y)
        alone.learn_one(x, y)
        assert model.certificate == plain.certificate
        assert model.certificate.unresolved == len(pending)
    assert model.certificate.rounds == 60
    y = [y for _, y in rows]
    assert (
        60 * tc.calibration_distance(y, [said[i] for i in range(60)]).upper
        <= model.certificate.bound
    )


def test_a_label_is_learned_once() -> None:
    model = Recalibrated(Told(), max_unresolved=2)
    x = {"said": 0.3}
    first, second, third = (model.issue_one(x) for _ in range(3))
    for ticket, kind in ((first, tc.TicketError), (17, tc.InputError), (None, tc.InputError)):
        with pytest.raises(kind) as refused:  # given up for the third, never issued, no ticket
            model.resolve_one(ticket, x, True)  # type: ignore[arg-type]
        assert type(refused.value) is kind
    model.resolve_one(third, x, True)
    for ticket, y, kind in ((third, True, tc.TicketError), (second, 2, tc.InputError)):
        with pytest.raises(kind) as refused:
            model.resolve_one(ticket, x, y)
        assert type(refused.value) is kind
    assert model.classifier.learned == [(0.3, True)]
    assert (model.certificate.rounds, model.certificate.unresolved) == (1, 2)


# Groups and events


def flights() -> list[tuple[dict[str, Any], bool]]:
    rng = np.random.default_rng(0)
    airports = rng.choice(["JFK", "LGA", None], 120).tolist()  # type: ignore[arg-type]
    scores, hours = rng.random(120).tolist(), rng.integers(0, 3, 120).tolist()
    rows = [
        {"said": p, "airport": a, "hour": h}
        for p, a, h in zip(scores, airports, hours, strict=True)
    ]
    return [(row, bool(rng.random() < row["said"] ** 2)) for row in rows]


@pytest.mark.parametrize(
    ("group", "named"),
    [
        ("airport", lambda x: x["airport"]),
        ("hour", lambda x: x["hour"]),
        (
            ("airport", "hour"),
            lambda x: (
                (f"airport={x['airport']}", f"hour={x['hour']}")
                if x["airport"]
                else (f"hour={x['hour']}",)
            ),
        ),
        (
            lambda x: (x["airport"] or "none", x["hour"]),
            lambda x: (x["airport"] or "none", x["hour"]),
        ),
    ],
)
def test_groups_of_rows(group: Any, named: Callable[[Any], Any]) -> None:
    model, plain = Recalibrated(Told(), group=group, max_groups=4), tc.Recalibrator(max_groups=4)
    late = []
    for number, (x, y) in enumerate(flights()):
        said = model.predict_proba_one(x)[True]
        assert said == plain.predict(x["said"], group=named(x))
        if number % 3:
            model.learn_one(x, y)
            plain.observe(y)
        else:
            late.append(
                (
                    model.issue_one(x, event=number // 9),
                    plain.issue(x["said"], group=named(x), event=number // 9),
                )
            )
            assert late[-1][0].p == late[-1][1].p == said
        if number % 5 == 4:
            ours, theirs = late.pop()
            model.resolve_one(ours, x, y)
            plain.resolve(theirs, y)
    model.give_up_one(late[0][0])
    plain.give_up(late[0][1])
    assert model.recalibrator.to_json() == plain.to_json()
    assert len(model.recalibrator.groups) > 1


def test_groups_of_features_with_equal_values_are_kept_apart() -> None:
    model = Recalibrated(Told(), group=("hour", "day"))
    model.learn_one({"said": 0.5, "hour": 5, "day": 5}, True)
    assert list(model.recalibrator.groups) == ["hour=5", "day=5"]


@pytest.mark.parametrize("group", ["airport", ("hour", "airport"), lambda x: 0.5, lambda x: [[]]])
def test_groups_that_are_refused(group: Any) -> None:
    model = Recalibrated(Told(), group=group)
    before = state(model)
    x = {"said": 0.5, "hour": 3}
    for call in (model.predict_proba_one, model.issue_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(tc.InputError) as caught:
            call(x)
        assert caught.value.argument == "group"
    assert state(model) == before
    assert not model.classifier.learned


# Refusals


@pytest.mark.parametrize("y", [2, -1, 0.5, math.nan, None, "yes", "True"])
def test_other_labels_are_refused(y: Any) -> None:
    model = Recalibrated(Told())
    model.learn_one({"said": 0.3}, True)
    before = state(model)
    with pytest.raises(tc.InputError, match="outcome must be 0 or 1"):
        model.learn_one({"said": 0.3}, y)
    assert state(model) == before
    assert len(model.classifier.learned) == 1


@pytest.mark.parametrize("score", [math.nan, 1.001, -0.001, math.inf])
def test_other_scores_are_refused(score: float) -> None:
    model = Recalibrated(Told())
    before = state(model)
    for call in (model.predict_proba_one, model.issue_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(tc.InputError, match="must be between 0 and 1"):
            call({"said": score})
    assert state(model) == before
    assert not model.classifier.learned


def test_a_row_that_the_classifier_refuses_is_no_round() -> None:
    model = Recalibrated(Told())
    with pytest.raises(ValueError, match="bad row"):
        model.learn_one({"said": 0.3, "bad": True}, True)
    assert model.certificate.rounds == 0


def test_options_that_are_refused() -> None:
    for options in (
        {"budget": 0.5},
        {"group": 3},
        {"group": ("a", "a")},
        {"group": ()},
        {"max_groups": -1},
        {"hint": "platt"},
        {"max_unresolved": 0},
    ):
        with pytest.raises(tc.InputError) as caught:
            Recalibrated(Told(), **options)  # type: ignore[arg-type]
        assert caught.value.argument in options


def test_a_regressor_is_refused() -> None:
    rule = r"^classifier must be a classifier, such as linear_model.LogisticRegression\(\): a regr"
    for model in (
        linear_model.LinearRegression(),
        preprocessing.StandardScaler() | linear_model.LinearRegression(),
    ):
        with pytest.raises(tc.InputError, match=rule):
            Recalibrated(model)
