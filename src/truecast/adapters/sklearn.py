"""A scikit-learn meta-estimator: any classifier, recalibrated round by round."""
# ruff: noqa: N803, N806  the names of scikit-learn's arguments
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MethodType
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import (
    Bunch,
    Tags,
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    get_tags,
    indexable,
)
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d

from truecast import _check
from truecast.certificate import ArcCertificate
from truecast.errors import InputError
from truecast.recalibrate import ClassCertificate, ClassTicket, Recalibrator, Ticket
from truecast.recalibrate.hints import Hint

__all__ = ["RecalibratedClassifier"]

_ROUNDING = 1e-9  # beyond 0 or 1, a classifier's sums of probabilities may be off by this much


class _IfItLearnsOn:
    """A method that exists only if the classifier can keep learning, or need not.

    Otherwise an AttributeError says why it is missing.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(
        self, model: RecalibratedClassifier | None, owner: Any = None
    ) -> Callable[..., Any]:
        if model is None:
            return self._method
        classifier = model.estimator
        if not isinstance(classifier, FrozenEstimator) and not hasattr(classifier, "partial_fit"):
            raise AttributeError(
                f"{type(model).__name__} has no partial_fit here, as the estimator, "
                f"{type(classifier).__name__}, has no partial_fit; to use a fitted one as it is "
                "and recalibrate on, put it in a sklearn.frozen.FrozenEstimator"
            )
        return MethodType(self._method, model)


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier whose scores go through a `Recalibrator`, of two classes or more.

    Use `fit` for a complete table and `partial_fit` for rows that keep coming, also after `fit`.
    Either way the recalibrator sees only scores of rows that the classifier had not learned from: a
    classifier is overconfident on its own training rows.

    `certificate_` bounds the distance to calibration of the forecasts in those rounds, whatever the
    data. It promises nothing about `predict_proba` for other rows: these are calibrated as far as
    they resemble the earlier rows. To extend the proof, play more rounds: with `partial_fit`, or
    with `issue` and `resolve` if labels come later.

    Parameters
    ----------
    estimator
        The classifier. Its `predict_proba` is used or, if it has none, the logistic function of its
        `decision_function`, or the softmax if there are more than two classes. In a
        `FrozenEstimator` it is used unchanged, as fitted on other rows.
    hint
        How to turn scores into probabilities; see `Recalibrator`.
    budget
        How much energy a round may add; see `Guard`.
    max_groups
        How many groups get their own certificate; see `Recalibrator`.
    max_unresolved
        How many issued forecasts may await their labels; see `Recalibrator`.
    cv
        For `fit`: how to split the rows so that each is scored by a classifier that has not seen
        it. A number of folds, a splitter or an iterable of (train, test), as in scikit-learn. Rows
        that are in no test part, such as the first ones with `TimeSeriesSplit`, play no round; none
        may be in two.
    shuffle
        For `fit`: whether to play the rounds in random order. Otherwise, rows sorted by label look
        like drift, and the recalibrator follows it. Use False for rows in time order, best with
        `TimeSeriesSplit`.
    random_state
        The seed of that order; None draws it from NumPy's global state.
    n_jobs
        How many splits to fit at the same time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels. If there are two, an outcome of 1 is the second.
    estimator_
        The classifier, fitted on all rows.
    recalibrator_ : Recalibrator or ClassRecalibrator
        What its scores go through; ``recalibrator_.groups`` has the certificates of the groups. The
        second if there are more than two classes, which it numbers as `classes_` does.
    forecasts_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Forecasts for the second class, or for each if there are more than two, in the rounds of the
        last `fit` or `partial_fit`, each made before its outcome was used; nan for rows without a
        round. You can measure them: they are as honest as the splits.
    certificate_ : ArcCertificate or ClassCertificate
        What is proved about the forecasts in all rounds so far, and those issued. It holds for the
        rows together, whatever the order and the splits. Its Brier score says something about
        future rows only if they are like these. It calls several classes as `classes_` does.
    n_features_in_, feature_names_in_
        As the classifier has them.

    Notes
    -----
    There is no `decision_function`, because this class replaces scores that are not probabilities.
    Rounds have no weights: `sample_weight` and other parameters go to the classifier alone, through
    scikit-learn's metadata routing if that is enabled.

    `groups` are the groups to calibrate: for each row a name, a tuple of several, or None; or a
    table with a column for each kind of group, as in `Recalibrator.forecast_many`. The classifier
    does not get them. A splitter gets them if metadata routing is enabled and it asks for groups,
    as `GroupKFold` does. To split by other groups, pass the splits: ``cv=list(GroupKFold().split(X,
    y, patients))``.

    A round costs microseconds; `fit` fits the classifier on each split and once on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truecast.adapters.sklearn import RecalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X[:400], y[:400])
    >>> p = model.predict_proba(X[400:])[:, 1]
    >>> raw = model.estimator_.predict_proba(X[400:])[:, 1]
    >>> bool(((p - y[400:]) ** 2).mean() < ((raw - y[400:]) ** 2).mean())
    True
    >>> model.certificate_.rounds, model.certificate_.bound < 2 * 400**0.5
    (400, True)
    >>> model = model.partial_fit(X[400:], y[400:])  # these are scored first, then learned
    >>> model.certificate_.rounds
    569

    Labels that come later, and a fitted classifier that is used as it is:

    >>> from sklearn.frozen import FrozenEstimator
    >>> model = RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X[:400], y[:400])))
    >>> tickets = model.issue(X[400:403], groups=["east", "west", "east"])
    >>> [0 <= ticket.p <= 1 for ticket in tickets]
    [True, True, True]
    >>> model = model.resolve(tickets[1:], y[401:403])
    >>> proved, east = model.certificate_, model.recalibrator_.groups["east"]
    >>> proved.rounds, proved.unresolved, east.rounds
    (2, 1, 1)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        hint: Hint | dict[str, Any] | None = None,
        budget: float = 4.0,
        max_groups: int = 1_000,
        max_unresolved: int = 100_000,
        cv: Any = 5,
        shuffle: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.hint = hint
        self.budget = budget
        self.max_groups = max_groups
        self.max_unresolved = max_unresolved
        self.cv = cv
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def certificate_(self) -> ArcCertificate | ClassCertificate:
        """What is proved about the forecasts in all rounds so far."""
        certificate: ArcCertificate | ClassCertificate = self.recalibrator_.certificate
        if isinstance(certificate, ArcCertificate):
            return certificate
        labels = self.classes_.tolist()
        return replace(
            certificate,
            classes={labels[number]: each for number, each in certificate.classes.items()},
            top={labels[number]: each for number, each in certificate.top.items()},
        )

    def fit(self, X: Any, y: ArrayLike, *, groups: Any = None, **params: Any) -> Self:
        """Fit the classifier on all rows; start a new recalibrator on scores of unseen rows.

        The scores are out of fold. This assumes that rows are alike, so that a classifier fitted on
        most of them scores like the one fitted on all. For rows in time order use
        ``cv=TimeSeriesSplit()`` and ``shuffle=False``: then every block is scored by a classifier
        fitted on the rows before it, and the rounds are played in order.

        Parameters
        ----------
        X
            The rows, as the classifier takes them.
        y
            Their labels, two different ones or more.
        groups
            The group or groups of each row, to calibrate each group.
        **params
            For the classifier's `fit`, such as `sample_weight`; arrays with an entry for each row
            are split with the rows.

        Raises
        ------
        InputError
            If there is only one class, `groups`, `cv` or an option of the recalibrator breaks its
            rule, or the classifier gives no scores.
        """
        X, y = indexable(X, y)
        labels = _labels(y)
        classes = _classes(self._frozen_classes(labels))
        outcomes = _outcomes(labels, classes)
        names = None if groups is None else _check.groups(groups, len(labels))
        routed = self._routed("fit", params, groups)
        recalibrator = self._new_recalibrator(len(classes))
        rows, scores = self._honest_scores(X, labels, classes, routed)
        estimator = clone(self.estimator).fit(X, labels, **routed.estimator.fit)
        forecasts = np.full((len(labels), *scores.shape[1:]), np.nan)
        played = None if names is None else [names[row] for row in rows.tolist()]
        forecasts[rows] = recalibrator.forecast_many(scores, outcomes[rows], groups=played)
        self.classes_, self.estimator_ = classes, estimator
        self.recalibrator_, self.forecasts_ = recalibrator, forecasts
        self._take_features()
        return self

    @_IfItLearnsOn
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Score the rows with the current classifier, play a round for each, then let it learn.

        The rounds are played in the order of the rows, each outcome before the next row. So with
        one row at a time, the certificate is about exactly what `predict_proba` said before. With
        several rows it is about `forecasts_`, which from the second row on have learned a little
        more. If there was no `fit` before, the rows of the first call have no scores and play no
        rounds, unless the classifier is frozen.

        This method exists if the classifier has a `partial_fit`, or is in a `FrozenEstimator`. A
        `Pipeline` has none.

        Parameters
        ----------
        X
            Rows, as the classifier takes them.
        y
            Their labels.
        classes
            The labels that can occur: needed in the first call, unless the classifier is
            frozen.
        groups
            The group or groups of each row, to calibrate each group.
        **params
            For the classifier's `partial_fit`, such as `sample_weight`.

        Raises
        ------
        InputError
            If a label is not one of the classes, the classes are missing, too few, or not those of
            the first call, or `groups` break their rule. Nothing is learned.
        """
        check_consistent_length(X, y)
        labels = _labels(y)
        first = not hasattr(self, "recalibrator_")
        known = self._first_classes(classes) if first else self._same_classes(classes)
        outcomes = _outcomes(labels, known)
        names = None if groups is None else _check.groups(groups, len(labels))
        frozen = isinstance(self.estimator, FrozenEstimator)
        routed = self._routed("partial_fit", params)
        estimator = clone(self.estimator) if first else self.estimator_
        recalibrator = self._new_recalibrator(len(known)) if first else self.recalibrator_
        scores = None if first and not frozen else _scores(estimator, X, known)
        if not frozen:
            estimator.partial_fit(X, labels, classes=known, **routed.estimator.partial_fit)
        if scores is None:
            shape = (len(labels),) if len(known) == 2 else (len(labels), len(known))
            self.forecasts_ = np.full(shape, np.nan)
        else:
            self.forecasts_ = recalibrator.forecast_many(scores, outcomes, groups=names)
        self.classes_, self.estimator_, self.recalibrator_ = known, estimator, recalibrator
        self._take_features()
        return self

    def predict_proba(self, X: Any, *, groups: Any = None) -> NDArray[np.float64]:
        """Return the probabilities of all classes if each row came next. Nothing is learned.

        Parameters
        ----------
        X
            Rows, as the classifier takes them.
        groups
            The group or groups of each row, if there are groups.
        """
        check_is_fitted(self)
        p = self.recalibrator_.predict_many(
            _scores(self.estimator_, X, self.classes_), groups=groups
        )
        said: NDArray[np.float64] = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        return said

    def predict(self, X: Any, *, groups: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row, the first one if several are.

        `groups` as for `predict_proba`.
        """
        best = self.predict_proba(X, groups=groups).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def issue(
        self, X: Any, *, groups: Any = None, events: Any = None
    ) -> list[Ticket] | list[ClassTicket]:
        """Return a forecast for each row whose label will come later, in any order with others.

        The certificate is about these forecasts, as they were made. A frozen classifier can start
        with this, without any label.

        Parameters
        ----------
        X
            Rows, as the classifier takes them.
        groups
            The group or groups of each row, to calibrate each group.
        events
            The name or number of the event of each row, or None, if several rows share an event;
            see `Recalibrator.issue`.

        Returns
        -------
        tickets
            One for each row, an int: ``ticket.p`` is the probability of the second class, or of all
            classes, as a tuple, if there are more than two. The model does not keep the rows.

        Raises
        ------
        InputError
            If a score, a group or an event breaks its rule. Nothing is issued.
        """
        if not hasattr(self, "recalibrator_") and isinstance(self.estimator, FrozenEstimator):
            self.classes_, self.estimator_ = self._first_classes(None), clone(self.estimator)
            self.recalibrator_ = self._new_recalibrator(len(self.classes_))
            self._take_features()
        check_is_fitted(self)
        scores = _scores(self.estimator_, X, self.classes_)
        rows = len(scores)
        members = [None] * rows if groups is None else _check.groups(groups, rows)
        if events is not None:
            _check.events(events, rows)
        about = [None] * rows if events is None else list(events)
        issue = self.recalibrator_.issue
        together = zip(scores.tolist(), members, about, strict=True)
        return [issue(score, group=group, event=event) for score, group, event in together]

    def resolve(self, tickets: Iterable[int], y: ArrayLike) -> Self:
        """Learn the labels of issued forecasts, in the order given: all, or none if one is refused.

        The recalibrator learns them; the classifier does not, because its rows are not kept. If it
        should learn them, call ``estimator_.partial_fit``: this object's own `partial_fit` would
        count their rounds twice.

        Parameters
        ----------
        tickets
            What `issue` gave, or the numbers.
        y
            The label of each.

        Raises
        ------
        InputError
            If a label is not one of the classes, a ticket was never issued or comes twice, or the
            lengths differ.
        TicketError
            If a ticket is already resolved or given up.
        """
        numbers = self._awaited(tickets)
        outcomes = _outcomes(_labels(y), self.classes_)
        if len(numbers) != len(outcomes):
            raise InputError(
                "y", f"must have a label for each of the {len(numbers)} tickets", (len(outcomes),)
            )
        for number, outcome in zip(numbers, outcomes.tolist(), strict=True):
            self.recalibrator_.resolve(number, outcome)
        return self

    def give_up(self, tickets: Iterable[int]) -> Self:
        """Stop waiting for the labels of these tickets.

        The certificate counts them at their worst from now on.

        Raises
        ------
        InputError
            If a ticket was never issued or comes twice. Nothing changes.
        TicketError
            If a ticket no longer awaits a label. Nothing changes.
        """
        for number in self._awaited(tickets):
            self.recalibrator_.give_up(number)
        return self

    def _awaited(self, tickets: Iterable[int]) -> list[int]:
        """The numbers of tickets that all await their labels, each once."""
        check_is_fitted(self)
        if not isinstance(tickets, Iterable) or isinstance(tickets, str | bytes):
            raise InputError("tickets", "must be a sequence of what issue() gave", tickets)
        awaited = {int(ticket): ticket for ticket in self.recalibrator_.awaited}
        numbers: dict[int, None] = {}
        for position, ticket in enumerate(tickets):
            number = _ticket_number(ticket, position)
            if number in numbers:
                raise InputError("tickets", "must name each forecast once", ticket, position)
            if number not in awaited:
                self.recalibrator_.give_up(number)  # raises, and says why
            if isinstance(ticket, Ticket | ClassTicket) and ticket.p != awaited[number].p:
                raise InputError(
                    "tickets", "must be of this model, not of another", ticket, position
                )
            numbers[number] = None
        return list(numbers)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which methods of the classifier and the splitter get what is passed to ours."""
        to_estimator = (
            MethodMapping()
            .add(caller="fit", callee="fit")
            .add(caller="partial_fit", callee="partial_fit")
        )
        to_splitter = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_estimator).add(
            splitter=self.cv, method_mapping=to_splitter
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _new_recalibrator(self, classes: int) -> Any:
        names = "hint", "budget", "max_groups", "max_unresolved"
        options = {name: getattr(self, name) for name in names}
        if classes > 2:
            options |= {"classes": classes, "normalize": True}
        return Recalibrator(**options)

    def _routed(self, method: str, params: dict[str, Any], groups: Any = None) -> Any:
        if sklearn.get_config()["enable_metadata_routing"]:
            return process_routing(self, method, groups=groups, **params)
        return Bunch(estimator=Bunch(**{method: params}), splitter=Bunch(split={}))

    def _honest_scores(
        self, X: Any, labels: NDArray[Any], classes: NDArray[Any], routed: Any
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Rows in the order of their rounds, with scores of a classifier that has not seen them."""
        if isinstance(self.estimator, FrozenEstimator):
            order = np.arange(len(labels))
            scores = _scores(self.estimator, X, classes)
        else:
            splits = list(
                check_cv(self.cv, labels, classifier=True).split(X, labels, **routed.splitter.split)
            )
            order = _check_splits(splits, labels)
            parts = Parallel(n_jobs=self.n_jobs)(
                delayed(_held_out_scores)(
                    self.estimator, X, labels, train, test, classes, routed.estimator.fit
                )
                for train, test in splits
            )
            scores = np.full((len(labels), *parts[0].shape[1:]), np.nan)
            for (_, test), part in zip(splits, parts, strict=True):
                scores[test] = part
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(order)
        return order, scores[order]

    def _frozen_classes(self, otherwise: NDArray[Any]) -> NDArray[Any]:
        """The labels of a classifier that is fitted already."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        return np.asarray(self.estimator.classes_) if frozen else otherwise

    def _first_classes(self, classes: ArrayLike | None) -> NDArray[Any]:
        if classes is None and not isinstance(self.estimator, FrozenEstimator):
            raise InputError("classes", "must be passed on the first call to partial_fit", classes)
        return _classes(self._frozen_classes(np.asarray(classes)), "classes")

    def _same_classes(self, classes: ArrayLike | None) -> NDArray[Any]:
        known: NDArray[Any] = self.classes_
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise InputError(
                "classes", f"must be those of the first call, {known.tolist()}", classes
            )
        return known

    def _take_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))


def _ticket_number(ticket: Any, position: int) -> int:
    try:
        return _check.whole_number("tickets", ticket, least=0, most=1 << 62)
    except InputError as error:
        raise InputError(error.argument, error.rule, ticket, position) from None


def _labels(y: ArrayLike) -> NDArray[Any]:
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _classes(labels: NDArray[Any], argument: str = "y") -> NDArray[Any]:
    """The labels, in order."""
    classes = np.unique(labels)
    if len(classes) >= 2:
        return classes
    found = "1 class" if len(classes) == 1 else "no class"
    raise InputError(argument, "must have two classes or more", found)


def _outcomes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The number of each row's class."""
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        first = int(unknown.argmax())
        rule = f"must be one of the classes {classes.tolist()}"
        raise InputError("y", rule, labels[first : first + 1].tolist()[0], first)
    return np.searchsorted(classes, labels).astype(np.int64)


def _check_splits(splits: list[tuple[Any, Any]], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The rows that are tested, in order.

    Refused if one is tested twice or learned too, or if a split teaches nothing.
    """
    rows, tested = np.arange(len(labels)), np.zeros(len(labels), np.intp)
    for number, (train, test) in enumerate(splits):
        np.add.at(tested, rows[test], 1)
        if len(np.unique(labels[train])) < 2:
            raise InputError(
                "cv", "must leave two classes or more in every training part", "1 class", number
            )
        learned = np.intersect1d(rows[train], rows[test])
        if len(learned):
            raise InputError(
                "cv", "must not test a row of the training part", int(learned[0]), number
            )
    if (tested > 1).any():
        raise InputError("cv", "must test no row twice", int(tested.max()), int(tested.argmax()))
    return np.flatnonzero(tested)


def _held_out_scores(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    train: Any,
    test: Any,
    classes: NDArray[Any],
    params: Mapping[str, Any],
) -> NDArray[np.float64]:
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    fitted = clone(estimator).fit(X_train, y_train, **_check_method_params(X, params, train))
    return _scores(fitted, X_test, classes)


def _scores(estimator: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """What the classifier says, as numbers in [0, 1]: of the second class, or of all."""
    if hasattr(estimator, "predict_proba"):
        scores = _in_order(estimator, estimator.predict_proba(X), classes)
    elif hasattr(estimator, "decision_function"):
        decided = np.asarray(estimator.decision_function(X), np.float64)
        scores = _in_order(estimator, _logistic(decided), classes)
    else:
        raise InputError("estimator", "must have predict_proba or decision_function", estimator)
    rounded = np.clip(scores, 0.0, 1.0)
    scores = np.where(abs(rounded - scores) <= _ROUNDING, rounded, scores)
    return scores if scores.ndim == 2 else _check.probabilities("scores", scores)


def _logistic(decided: NDArray[np.float64]) -> NDArray[np.float64]:
    """A column for each class: the logistic function, or the softmax of more than two."""
    if decided.ndim == 1:
        p = 0.5 + 0.5 * np.tanh(0.5 * decided)
        return np.column_stack([1 - p, p])
    parts = np.exp(decided - decided.max(axis=1, keepdims=True))
    softmax: NDArray[np.float64] = parts / parts.sum(axis=1, keepdims=True)
    return softmax


def _in_order(estimator: Any, said: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """The columns of these classes; those that the classifier never saw are impossible to it."""
    table = np.asarray(said, np.float64)
    known = np.asarray(estimator.classes_)
    if len(classes) == 2:
        column: NDArray[np.float64] = table[:, int(np.flatnonzero(known == classes[1])[0])]
        return column
    ordered = np.zeros((len(table), len(classes)))
    ordered[:, np.searchsorted(classes, known)] = table
    return ordered
