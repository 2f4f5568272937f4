"""The scikit-learn adapter: scikit-learn's own checks, and what we say beyond them."""

import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import truecast as tc
from truecast.adapters.sklearn import RecalibratedClassifier

Array = NDArray[Any]


def rows(size: int = 240, seed: int = 0) -> tuple[Array, Array]:
    X, y = make_classification(size, 5, flip_y=0.2, random_state=seed)
    return X, y


def learner() -> SGDClassifier:
    return SGDClassifier(loss="log_loss", random_state=0)


class Told(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Says what its first column says, in any order of its classes; notes what it is given."""

    def __init__(self, reverse: bool = False, scale: float = 1.0) -> None:
        self.reverse = reverse
        self.scale = scale

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> "Told":
        self.classes_ = np.unique(y)[:: -1 if self.reverse else 1]
        self.seen_, self.weight_ = np.array(X), sample_weight
        SEEN.append((len(y), sample_weight))
        return self

    def partial_fit(
        self, X: Array, y: Array, classes: Array, sample_weight: Array | None = None
    ) -> "Told":
        if sample_weight is not None and len(sample_weight) != len(y):
            raise ValueError("one weight a row")
        return self.fit(X, classes, sample_weight)

    def predict_proba(self, X: Array) -> Array:
        p = np.array(X)[:, 0] * self.scale
        return np.column_stack([1 - p, p][:: -1 if self.reverse else 1])


SEEN: list[tuple[int, Any]] = []  # by all clones


# scikit-learn's checks, without exceptions: probabilities, decision function, with and without
# partial_fit


@pytest.mark.slow("runs all checks of scikit-learn")
@parametrize_with_checks(
    [
        RecalibratedClassifier(LogisticRegression(), cv=3),
        RecalibratedClassifier(learner(), cv=3),
        RecalibratedClassifier(LinearSVC(random_state=0), cv=3, hint={"kind": "Platt"}),
    ]
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


# fit


def test_rounds_of_fit_are_those_of_a_recalibrator_on_out_of_fold_scores() -> None:
    X, y = rows()
    model = RecalibratedClassifier(GaussianNB(), cv=4, random_state=3, budget=2.0).fit(X, y)
    scores = cross_val_predict(GaussianNB(), X, y, cv=4, method="predict_proba")[:, 1]
    order = np.random.RandomState(3).permutation(len(y))
    plain = tc.Recalibrator(budget=2.0)
    assert np.array_equal(model.forecasts_[order], plain.forecast_many(scores[order], y[order]))
    assert model.certificate_ == plain.certificate
    raw = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    assert np.array_equal(model.predict_proba(X)[:, 1], plain.predict_many(raw))


def test_rows_in_order_of_time_are_scored_by_the_rows_before() -> None:
    X, y = rows()
    cv = TimeSeriesSplit(4)
    model = RecalibratedClassifier(GaussianNB(), cv=cv, shuffle=False).fit(X, y)
    plain = tc.Recalibrator()
    for train, test in cv.split(X):
        scores = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert np.array_equal(model.forecasts_[test], plain.forecast_many(scores, y[test]))
    first = next(iter(cv.split(X)))[0]
    assert np.isnan(model.forecasts_[first]).all()
    assert model.certificate_.rounds == len(y) - len(first)


def test_scores_are_honest_around_a_classifier_that_learns_by_heart() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.random(400) < 0.5
    nearest = KNeighborsClassifier(1)
    assert nearest.fit(X, y).score(X, y) == 1
    model = RecalibratedClassifier(nearest).fit(X, y)
    assert abs(model.predict_proba(X) - 0.5).max() < 0.2
    assert model.certificate_.brier > 0.2


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_holds_for_the_forecasts_of_fit(seed: int) -> None:
    X, y = rows(80, seed)
    model = RecalibratedClassifier(GaussianNB(), random_state=seed).fit(X, y)
    assert len(y) * tc.calibration_distance(y, model.forecasts_).upper <= model.certificate_.bound
    assert model.certificate_.rounds == 80
    assert np.mean((model.forecasts_ - y) ** 2) == pytest.approx(model.certificate_.brier)


def test_rows_sorted_by_label_do_not_look_like_drift() -> None:
    X, y = rows(600)
    order = np.argsort(y, kind="stable")
    model = RecalibratedClassifier(GaussianNB()).fit(X[order], y[order])
    in_order = RecalibratedClassifier(GaussianNB(), shuffle=False).fit(X[order], y[order])
    unsorted = RecalibratedClassifier(GaussianNB()).fit(X, y)
    brier, drifted, usual = (
        tc.brier_score(y, one.predict_proba(X)[:, 1]) for one in (model, in_order, unsorted)
    )
    assert brier < 1.05 * usual
    assert drifted > 1.5 * usual  # why shuffling is the default


def test_fit_repairs_scores_that_are_too_sure() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=4_000)
    y = rng.random(4_000) < expit(z)
    X = expit(4 * z)[:, None]
    model = RecalibratedClassifier(Told()).fit(X[:2_000], y[:2_000])
    raw, p = X[2_000:, 0], model.predict_proba(X[2_000:])[:, 1]
    assert tc.smooth_calibration_error(y[2_000:], p) < 0.25 * tc.smooth_calibration_error(
        y[2_000:], raw
    )
    assert tc.brier_score(y[2_000:], p) < 1.02 * tc.brier_score(y[2_000:], expit(z)[2_000:])


def test_fit_starts_anew_and_is_repeatable() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X, y)
    once = model.predict_proba(X)
    model.partial_fit(X[:50], y[:50])
    assert not np.array_equal(model.predict_proba(X), once)
    assert np.array_equal(model.fit(X, y).predict_proba(X), once)
    assert model.certificate_.rounds == len(y)


# partial_fit


@pytest.mark.parametrize("batch", [1, 7, 80])
def test_partial_fit_scores_before_it_learns(batch: int) -> None:
    X, y = rows(160)
    model = RecalibratedClassifier(learner(), budget=2.0)
    alone, plain = learner(), tc.Recalibrator(budget=2.0)
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        if start:
            scores = alone.predict_proba(X[part])[:, 1]
            before = model.predict_proba(X[part])[:, 1]
            expected = plain.forecast_many(scores, y[part])
            # so with one row at a time, the certificate is about what was said
            assert before[0] == expected[0]
        alone.partial_fit(X[part], y[part], classes=[0, 1])
        model.partial_fit(X[part], y[part], classes=[0, 1])
        if start:
            assert np.array_equal(model.forecasts_, expected)
        else:
            assert np.isnan(model.forecasts_).all()
            assert len(model.forecasts_) == batch
    assert model.certificate_ == plain.certificate
    assert model.certificate_.rounds == len(y) - batch
    assert np.array_equal(model.estimator_.coef_, alone.coef_)


def test_partial_fit_goes_on_after_fit() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X[:100], y[:100])
    p = model.predict_proba(X[100:101])[0, 1]
    model.partial_fit(X[100:101], y[100:101])
    assert model.forecasts_.tolist() == [p]
    assert model.certificate_.rounds == 101


@given(cuts=st.lists(st.integers(1, 99), max_size=6, unique=True))
@settings(max_examples=20)
def test_a_frozen_classifier_plays_the_same_rounds_in_any_batches(cuts: list[int]) -> None:
    X, y = rows(100)
    frozen = FrozenEstimator(GaussianNB().fit(*rows(100, 1)))
    model = RecalibratedClassifier(frozen)
    said = []
    for part in np.split(np.arange(100), sorted(cuts)):
        said += model.partial_fit(X[part], y[part]).forecasts_.tolist()
    plain = tc.Recalibrator()
    assert said == plain.forecast_many(frozen.predict_proba(X)[:, 1], y).tolist()
    assert model.recalibrator_.to_json() == plain.to_json()


def test_a_frozen_classifier_is_never_changed() -> None:
    X, y = rows()
    fitted = learner().fit(X[:100], y[:100])
    before = fitted.coef_.copy()
    model = RecalibratedClassifier(FrozenEstimator(fitted), shuffle=False).fit(X[100:], y[100:])
    scores = fitted.predict_proba(X[100:])[:, 1]
    assert np.array_equal(model.forecasts_, tc.Recalibrator().forecast_many(scores, y[100:]))
    ones = X[y == 1]
    model.partial_fit(ones, np.ones(len(ones)))
    assert np.array_equal(fitted.coef_, before)
    # it knows both classes
    only_ones = RecalibratedClassifier(FrozenEstimator(fitted)).fit(ones, np.ones(len(ones)))
    assert only_ones.classes_.tolist() == [0, 1]


def test_partial_fit_is_there_if_the_classifier_has_it() -> None:
    assert hasattr(RecalibratedClassifier(learner()), "partial_fit")
    assert hasattr(RecalibratedClassifier(FrozenEstimator(LogisticRegression())), "partial_fit")
    assert not hasattr(RecalibratedClassifier(LogisticRegression()), "partial_fit")
    for estimator in (LogisticRegression(), make_pipeline(StandardScaler(), learner())):
        name = type(estimator).__name__
        with pytest.raises(
            AttributeError, match=rf"{name}, has no partial_fit; .*sklearn\.frozen\.FrozenEstimator"
        ):
            RecalibratedClassifier(estimator).partial_fit(*rows())


# Prediction


def test_prediction_changes_nothing() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X, y)
    state = pickle.dumps(model)
    p = model.predict_proba(X)
    model.predict(X[:3])
    assert pickle.dumps(model) == state
    np.testing.assert_allclose(model.predict_proba(X[::-1])[::-1], p, atol=1e-9)
    assert np.array_equal(model.predict(X), p[:, 1] > p[:, 0])
    assert (p.sum(axis=1) == 1).all()


def test_before_fit_there_is_nothing() -> None:
    model = RecalibratedClassifier(learner())
    for method in (model.predict, model.predict_proba):
        with pytest.raises(NotFittedError):
            method([[0.0]])
    assert not hasattr(model, "certificate_")


def test_without_probabilities_the_decision_function_is_used() -> None:
    X, y = rows()
    model = RecalibratedClassifier(LinearSVC(random_state=0), shuffle=False).fit(X, y)
    decisions = cross_val_predict(LinearSVC(random_state=0), X, y, method="decision_function")
    plain = tc.Recalibrator()
    np.testing.assert_allclose(
        model.forecasts_, plain.forecast_many(expit(decisions), y), atol=1e-9
    )
    huge = RecalibratedClassifier(LinearSVC(random_state=0)).fit(X, y).predict_proba(X * 1e6)
    assert ((huge >= 0) & (huge <= 1)).all()


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [2.0, 7.0]])
def test_labels_of_any_kind(labels: list[Any]) -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X, np.array(labels)[y])
    numbers = RecalibratedClassifier(learner()).fit(X, y)
    assert model.classes_.tolist() == labels
    assert np.array_equal(model.predict_proba(X), numbers.predict_proba(X))
    assert np.array_equal(model.predict(X), np.array(labels)[numbers.predict(X)])


def test_classes_in_another_order() -> None:
    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) >= 20
    one, other = (RecalibratedClassifier(Told(reverse)).fit(X, y) for reverse in (False, True))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.predict_proba(X)[-1, 1] > 0.5


def test_rounding_of_probabilities_is_forgiven_and_no_more() -> None:
    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2
    RecalibratedClassifier(Told(scale=1 + 1e-15)).fit(X, y)
    for scale in (1.001, np.nan):
        with pytest.raises(tc.InputError, match="scores must be between 0 and 1"):
            RecalibratedClassifier(Told(scale=scale)).fit(X, y)


# In scikit-learn's company


@pytest.mark.slow("fits many classifiers")
def test_in_pipelines_searches_and_scores() -> None:
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), RecalibratedClassifier(LogisticRegression(), cv=3))
    grid = {
        "recalibratedclassifier__estimator__C": [1e-6, 1.0],
        "recalibratedclassifier__budget": [2.0, 4.0],
    }
    search = GridSearchCV(pipeline, grid, scoring="neg_brier_score", cv=3).fit(X, y)
    assert search.best_params_["recalibratedclassifier__estimator__C"] == 1.0
    budget = search.best_estimator_[-1].recalibrator_.config["budget"]
    assert budget == search.best_params_["recalibratedclassifier__budget"]
    assert cross_val_score(pipeline, X, y, scoring="roc_auc", cv=3).min() > 0.7
    around = RecalibratedClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), cv=3
    ).fit(X, y)
    assert around.n_features_in_ == 5


def test_more_classes_are_those_of_a_recalibrator_for_classes() -> None:
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    model = RecalibratedClassifier(GaussianNB(), cv=4, random_state=3).fit(X, names)
    scores = cross_val_predict(GaussianNB(), X, names, cv=4, method="predict_proba")
    order = np.random.RandomState(3).permutation(len(y))
    plain = tc.Recalibrator(classes=3, normalize=True)
    assert np.array_equal(model.forecasts_[order], plain.forecast_many(scores[order], y[order]))
    assert model.recalibrator_.certificate == plain.certificate
    assert model.classes_.tolist() == ["a", "b", "c"]
    certificate = model.certificate_
    assert [*certificate.classes] == ["a", "b", "c"]
    assert certificate.worst in ("a", "b", "c")
    assert certificate.lower_distance == model.recalibrator_.certificate.lower_distance
    assert abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-14
    assert model.score(X, names) > 0.6
    tickets = model.issue(X[:3])
    model.resolve(tickets[1:], names[1:3]).give_up(tickets[:1])
    assert model.certificate_.rounds == 302
    assert model.certificate_.unresolved == 1


def test_more_classes_have_groups_and_events_too() -> None:
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    groups = ["east" if k % 3 else "west" for k in range(300)]
    model = RecalibratedClassifier(GaussianNB(), cv=4, random_state=3, max_groups=1)
    model.fit(X, y, groups=groups)
    proved, others = model.recalibrator_.groups, model.recalibrator_.others
    assert list(proved) in (["east"], ["west"])
    assert others.rounds + proved[next(iter(proved))].rounds == 300
    tickets = model.issue(X[:3], groups=groups[:3], events=["x", "x", None])
    model.resolve(tickets, y[:3])
    assert model.certificate_.rounds == 303
    one = model.recalibrator_.predict(model.estimator_.predict_proba(X[:1])[0], group=groups[0])
    assert np.array_equal(model.predict_proba(X[:1], groups=groups[:1])[0], one)


def test_classes_that_a_fold_never_saw() -> None:
    X, y = make_classification(90, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    order = np.argsort(y == 2, kind="stable")  # the third class comes last
    blocks = RecalibratedClassifier(GaussianNB(), cv=TimeSeriesSplit(2), shuffle=False)
    model = blocks.fit(X[order], y[order])
    assert np.isfinite(model.predict_proba(X)).all()
    online = RecalibratedClassifier(learner())
    for part in np.array_split(np.arange(90), 9):
        online.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert online.certificate_.rounds == 80
    assert online.forecasts_.shape == (10, 3)


def test_clones_have_the_options_and_nothing_else() -> None:
    X, y = rows()
    model = RecalibratedClassifier(
        learner(), hint=tc.hints.Platt(), budget=2.0, cv=4, shuffle=False
    ).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "recalibrator_")
    assert repr(copy) == repr(model)
    assert np.array_equal(copy.fit(X, y).predict_proba(X), model.predict_proba(X))
    assert model.hint.to_json() == tc.hints.Platt().to_json()  # a copy of it learned


def test_saved_models_go_on_from_there() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X[:100], y[:100])
    copy = pickle.loads(pickle.dumps(model))
    assert copy.certificate_ == model.certificate_
    for one in (model, copy):
        one.partial_fit(X[100:], y[100:])
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.certificate_ == model.certificate_


def test_jobs_change_nothing() -> None:
    X, y = rows()
    with joblib.parallel_config("threading"):
        one, two = (RecalibratedClassifier(GaussianNB(), n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert np.array_equal(one.forecasts_, two.forecasts_)


def test_frames_keep_their_names() -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = RecalibratedClassifier(learner()).fit(frame, pd.Series(y, index=range(1_000, 1_240)))
    assert model.feature_names_in_.tolist() == list("abcde")
    arrays = RecalibratedClassifier(learner()).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(frame), arrays.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(frame[list("edcba")])


def test_a_precomputed_kernel_is_split_on_both_sides() -> None:
    X, y = rows(60)
    kernel = RecalibratedClassifier(SVC(kernel="precomputed")).fit(X @ X.T, y)
    assert np.allclose(
        kernel.forecasts_, RecalibratedClassifier(SVC(kernel="linear")).fit(X, y).forecasts_
    )


@pytest.mark.parametrize("routing", [False, True])
def test_weights_go_to_the_classifier_with_their_rows(routing: bool) -> None:
    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2
    weight = np.arange(40.0)
    SEEN.clear()
    with sklearn.config_context(enable_metadata_routing=routing):
        told = Told().set_fit_request(sample_weight=True) if routing else Told()
        told = told.set_partial_fit_request(sample_weight=True) if routing else told
        model = RecalibratedClassifier(told, cv=KFold(4)).fit(X, y, sample_weight=weight)
        *folds, last = SEEN
        for (train, _), (size, seen) in zip(KFold(4).split(X), folds, strict=True):
            assert size == 30
            assert np.array_equal(seen, weight[train])
        assert np.array_equal(last[1], weight)
        model.partial_fit(X[:9], y[:9], sample_weight=weight[:9])
        assert np.array_equal(SEEN[-1][1], weight[:9])
    plain = RecalibratedClassifier(Told(), cv=KFold(4)).fit(X, y).partial_fit(X[:9], y[:9])
    assert plain.certificate_ == model.certificate_  # rounds have no weights


def test_groups_go_to_the_splitter_if_it_asks_for_them() -> None:
    X, y = rows()
    groups = np.arange(240) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        routed = RecalibratedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=groups)
        # this one does not
        usual = RecalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X, y, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    listed = RecalibratedClassifier(GaussianNB(), cv=splits).fit(X, y, groups=groups)
    assert np.array_equal(routed.forecasts_, listed.forecasts_)
    assert np.array_equal(
        usual.forecasts_,
        RecalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X, y, groups=groups).forecasts_,
    )
    assert not np.array_equal(usual.forecasts_, listed.forecasts_)


# Groups


def sides(size: int = 240) -> list[Any]:
    """Of no group, of one, and of two."""
    return [(None, "east", ("east", 7), (7,))[i % 4] for i in range(size)]


def test_groups_of_fit_are_those_of_the_rows_in_the_order_of_the_rounds() -> None:
    X, y = rows()
    groups = sides()
    model = RecalibratedClassifier(GaussianNB(), cv=4, random_state=3).fit(X, y, groups=groups)
    scores = cross_val_predict(GaussianNB(), X, y, cv=4, method="predict_proba")[:, 1]
    order = np.random.RandomState(3).permutation(len(y))
    plain = tc.Recalibrator()
    said = plain.forecast_many(scores[order], y[order], groups=[groups[row] for row in order])
    assert np.array_equal(model.forecasts_[order], said)
    assert model.recalibrator_.to_json() == plain.to_json()
    assert model.recalibrator_.groups["east"].rounds == 120
    raw = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    assert np.array_equal(
        model.predict_proba(X, groups=groups)[:, 1], plain.predict_many(raw, groups=groups)
    )
    assert np.array_equal(
        model.predict(X, groups=groups), plain.predict_many(raw, groups=groups) > 0.5
    )


@pytest.mark.parametrize("batch", [1, 50])
def test_groups_of_partial_fit(batch: int) -> None:
    X, y = rows(100)
    groups = sides(100)
    frozen = FrozenEstimator(GaussianNB().fit(*rows(100, 1)))
    model, plain = RecalibratedClassifier(frozen, max_groups=1), tc.Recalibrator(max_groups=1)
    expected = plain.forecast_many(frozen.predict_proba(X)[:, 1], y, groups=groups)
    said = []
    for start in range(0, 100, batch):
        part = slice(start, start + batch)
        said += model.partial_fit(X[part], y[part], groups=groups[part]).forecasts_.tolist()
    assert said == expected.tolist()
    assert model.recalibrator_.to_json() == plain.to_json()
    assert model.recalibrator_.others.rounds == 50


def test_groups_as_columns_of_a_table() -> None:
    X, y = rows()
    table = pd.DataFrame({"airport": ["JFK", "LGA"] * 120, "hour": np.repeat([6, 18], 120)})
    model = RecalibratedClassifier(GaussianNB()).fit(X, y, groups=table)
    assert {
        name: group.rounds for name, group in model.recalibrator_.groups.items()
    } == dict.fromkeys(["JFK", "LGA", 6, 18], 120)


@pytest.mark.parametrize("groups", [["a"] * 3, "a", [0.5] * 40, [("a", "a")] * 40])
def test_groups_that_are_refused(groups: Any) -> None:
    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2
    model = RecalibratedClassifier(Told()).fit(X, y)
    state = pickle.dumps(model)
    SEEN.clear()
    for call in (model.fit, model.partial_fit):
        assert refused(call, X, y, groups=groups).argument == "groups"
    for call in (model.predict_proba, model.issue):
        assert refused(call, X, groups=groups).argument == "groups"
    assert not SEEN  # nothing was learned
    assert pickle.dumps(model) == state


def test_groups_are_routed_to_where_they_are_asked_for() -> None:
    X, y = rows()
    groups = np.arange(240) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            RecalibratedClassifier(GaussianNB())
            .set_fit_request(groups=True)
            .set_predict_request(groups=True)
        )
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, groups=groups)
        assert len(pipeline[-1].recalibrator_.groups) == 3
        assert len(pipeline.predict(X, groups=groups)) == 240


# Tickets


def test_tickets_are_those_of_the_recalibrator() -> None:
    X, y = rows()
    groups, games = (
        sides(),
        [None if i % 5 == 0 else i // 7 if i % 2 else f"game {i // 7}" for i in range(240)],
    )
    frozen = FrozenEstimator(GaussianNB().fit(*rows(100, 1)))
    model, plain = RecalibratedClassifier(frozen), tc.Recalibrator()
    scores = frozen.predict_proba(X)[:, 1]
    tickets = model.issue(X, groups=groups, events=games)
    theirs = [
        plain.issue(p, group=g, event=e) for p, g, e in zip(scores, groups, games, strict=True)
    ]
    assert [(ticket, ticket.p) for ticket in tickets] == [(ticket, ticket.p) for ticket in theirs]
    assert model.certificate_.unresolved == 240
    order = np.random.default_rng(0).permutation(200)
    assert model.resolve(np.array(tickets)[order], y[order]) is model  # plain numbers will do
    for row in order.tolist():
        plain.resolve(theirs[row], y[row])
    model.give_up(tickets[200:220])
    for ticket in theirs[200:220]:
        plain.give_up(ticket)
    assert model.recalibrator_.to_json() == plain.to_json()
    assert (model.certificate_.rounds, model.certificate_.unresolved) == (200, 40)
    assert (
        len(y[:200]) * tc.calibration_distance(y[:200], [t.p for t in tickets[:200]]).upper
        <= model.certificate_.bound
    )


def test_tickets_resolve_by_labels_of_any_kind() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X, np.array(["no", "yes"])[y])
    before = model.predict_proba(X[:4])[0, 1]
    tickets = model.issue(X[:4])
    assert tickets[0].p == before
    model.resolve(tickets, ["no", "yes", "yes", "no"])
    assert model.certificate_.rounds == 244
    assert model.certificate_.brier == pytest.approx(
        (
            np.nansum((model.forecasts_ - y) ** 2)
            + sum((t.p - z) ** 2 for t, z in zip(tickets, [0, 1, 1, 0], strict=True))
        )
        / 244
    )


def test_tickets_need_a_fitted_classifier() -> None:
    X, _ = rows()
    for call in (
        RecalibratedClassifier(learner()).issue,
        RecalibratedClassifier(learner()).give_up,
    ):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        RecalibratedClassifier(learner()).resolve([0], [1])


def test_all_tickets_are_resolved_or_none() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner(), max_unresolved=5).fit(X, y)
    gone, *tickets = model.issue(X[:6])
    model.resolve(tickets[:1], [1])
    first, *rest = tickets
    state = pickle.dumps(model)
    for handed, labels, kind in [
        ([rest[0], gone], [0, 1], tc.TicketError),  # given up for the sixth
        ([rest[0], first], [0, 1], tc.TicketError),  # resolved
        ([rest[0], 17], [0, 1], tc.InputError),  # never issued
        ([rest[0], rest[0]], [0, 1], tc.InputError),
        ([rest[0], tc.Ticket(rest[1], 0.123)], [0, 1], tc.InputError),  # of another model
        ([rest[0], True], [0, 1], tc.InputError),
        ([rest[0], None], [0, 1], tc.InputError),
        (rest[:2], [0, 2], tc.InputError),
        (rest[:2], [0], tc.InputError),
        (rest[0], [0], tc.InputError),
    ]:
        with pytest.raises(kind) as caught:
            model.resolve(handed, labels)
        assert type(caught.value) is kind
        if labels == [0, 1]:
            with pytest.raises(kind):
                model.give_up(handed)
    for events in (["a"], "a", [0.5, "a"]):
        assert refused(model.issue, X[:2], events=events).argument == "events"
    assert pickle.dumps(model) == state


# Refusals


def refused(call: Any, *arguments: Any, **options: Any) -> tc.InputError:
    with pytest.raises(tc.InputError) as caught:
        call(*arguments, **options)
    return caught.value


def test_fewer_than_two_classes_are_refused() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner())
    assert refused(model.fit, X, np.zeros(240)).value == "1 class"
    for classes in ([0], []):
        assert refused(model.partial_fit, X, y, classes=classes).argument == "classes"
    assert "first call" in str(refused(model.partial_fit, X, y))
    assert not hasattr(model, "recalibrator_")


def test_a_label_that_is_none_of_the_classes_is_named() -> None:
    X, y = rows()
    model = RecalibratedClassifier(learner()).fit(X, np.array(["no", "yes"])[y])
    error = refused(model.partial_fit, X[:2], ["yes", "other"])
    assert str(error).endswith("['no', 'yes'], got 'other' at position 1")


def test_splits_that_are_refused() -> None:
    X, y = rows()
    error = refused(
        RecalibratedClassifier(learner(), cv=RepeatedKFold(n_repeats=2, random_state=0)).fit, X, y
    )
    assert (error.argument, error.value) == ("cv", 2)
    order = np.argsort(y, kind="stable")
    blocks = RecalibratedClassifier(learner(), cv=TimeSeriesSplit(3))
    assert "two classes" in refused(blocks.fit, X[order], y[order]).rule


def test_rows_that_were_learned_or_come_twice_are_not_tested() -> None:
    X, y = rows(60)
    every = np.arange(60)
    seen = refused(RecalibratedClassifier(learner(), cv=[(every[:41], every[40:])]).fit, X, y)
    assert (seen.argument, seen.value, seen.position) == ("cv", 40, 0)
    masks = refused(RecalibratedClassifier(learner(), cv=[(every < 41, every >= 40)]).fit, X, y)
    assert (masks.argument, masks.value, masks.position) == ("cv", 40, 0)
    twice = refused(RecalibratedClassifier(learner(), cv=[(every[:40], [50, 45, 50])]).fit, X, y)
    assert (twice.argument, twice.value, twice.position) == ("cv", 2, 50)


def test_options_that_are_refused() -> None:
    X, y = rows()
    assert refused(RecalibratedClassifier(learner(), budget=0.5).fit, X, y).argument == "budget"
    assert refused(RecalibratedClassifier(learner(), hint="platt").fit, X, y).argument == "hint"

    class Mute(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Array, y: Array) -> "Mute":
            return self

    assert refused(RecalibratedClassifier(Mute()).fit, X, y).argument == "estimator"


def test_a_refused_batch_changes_nothing() -> None:
    X, y = np.linspace(0, 1, 40)[:, None], np.arange(40) % 2
    model = RecalibratedClassifier(Told()).fit(X, y)
    state = pickle.dumps(model)
    error = refused(model.partial_fit, X[:3], [0, 1, 2])
    assert (error.argument, error.value, error.position) == ("y", 2, 2)
    assert refused(model.partial_fit, X[:2], y[:2], classes=[0, 2]).argument == "classes"
    assert refused(model.partial_fit, X[:2] + 2, y[:2]).argument == "scores"
    for X_bad, y_bad, options in [
        (X[:2], y[:3], {}),
        (X[:2], [0, np.nan], {}),
        (X[:2], y[:2], {"sample_weight": [1]}),
    ]:
        with pytest.raises(ValueError):
            model.partial_fit(X_bad, y_bad, **options)
    assert pickle.dumps(model) == state
