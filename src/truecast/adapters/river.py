"""A river wrapper: any classifier in a stream, recalibrated round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from river import base, linear_model, naive_bayes, preprocessing

from truecast import _check
from truecast.certificate import ArcCertificate
from truecast.errors import InputError
from truecast.recalibrate import ClassCertificate, ClassTicket, Recalibrator, Ticket
from truecast.recalibrate.hints import Hint

__all__ = ["Recalibrated"]

Row = dict[Any, Any]

_ROUNDING = 1e-9  # beyond 0 or 1, a classifier's sums of probabilities may be off by this much


class Recalibrated(base.Wrapper[base.Classifier], base.Classifier):
    """A classifier whose probabilities go through a `Recalibrator`.

    In `learn_one` the classifier scores the row before it learns it, so the recalibrator sees only
    honest scores, and `certificate` bounds the distance to calibration of the forecasts in all
    rounds so far, whatever the data. The forecast of a round is what `predict_proba_one` says just
    before `learn_one`. If labels come late, these may differ: river's `progressive_val_score` with
    a `delay` works, but the certificate is then about the forecast at the time of the label. For a
    proof about the forecasts actually made, use `issue_one` and `resolve_one`.

    Parameters
    ----------
    classifier
        Its labels must be False and True, or 0 and 1, unless there are `classes`. A pipeline is
        fine.
    hint
        How to turn scores into probabilities; see `Recalibrator`.
    group
        The group of a row, to calibrate each group. The name of a feature uses its value, a str or
        an int, such as "JFK" for ``group="airport"``. A tuple of names puts a row into a group for
        each feature, named like "airport=JFK". Or a function of the row that returns what
        `Recalibrator.predict` takes. None means no group.
    budget
        How much energy a round may add; see `Guard`.
    max_groups
        How many groups get their own certificate; see `Recalibrator`.
    max_unresolved
        How many issued forecasts may await their labels; see `Recalibrator`.
    classes
        The labels, str or int, if there are others: all that can occur, as a certificate is about
        them from the first round on.

    Attributes
    ----------
    recalibrator : Recalibrator or ClassRecalibrator
        What the probabilities go through; ``recalibrator.groups`` has the certificates of the
        groups.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Keyword arguments go to the classifier's method of the same name; in `learn_one` and
    `resolve_one` also a weight `w`, which only the classifier uses: rounds have no weights.

    Within a pipeline this sees the features from the step before. To group by a feature that the
    pipeline drops, wrap the whole pipeline.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> from truecast.adapters.river import Recalibrated
    >>> plain = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> loss = evaluate.progressive_val_score(datasets.Phishing(), plain, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.33
    >>> model = preprocessing.StandardScaler() | Recalibrated(linear_model.LogisticRegression())
    >>> loss = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.28
    >>> certificate = model["Recalibrated"].certificate
    >>> certificate.rounds, certificate.bound < 2 * 1250**0.5
    (1250, True)

    A certificate for each group as well; the classifier need not know the feature:

    >>> from river import compose
    >>> scaled = compose.Discard("airport") | preprocessing.StandardScaler()
    >>> numbers = scaled | linear_model.LogisticRegression()
    >>> model = Recalibrated(numbers, group="airport")
    >>> model.learn_one({"airport": "JFK", "wind": 12.0}, True)
    >>> model.recalibrator.groups["JFK"].certificate.rounds
    1
    """

    def __init__(
        self,
        classifier: base.Classifier,
        hint: Hint | dict[str, Any] | None = None,
        group: str | tuple[str, ...] | Callable[[Row], Any] | None = None,
        budget: float = 4.0,
        max_groups: int = 1_000,
        max_unresolved: int = 100_000,
        classes: tuple[str | int, ...] | None = None,
    ) -> None:
        _refuse_regressor(classifier)
        self.classifier = classifier
        self.classes = classes
        self.hint = hint
        self.group = _check_features(group)
        self.budget = budget
        self.max_groups = max_groups
        self.max_unresolved = max_unresolved
        self.recalibrator = self._new_recalibrator()

    def _new_recalibrator(self) -> Any:
        names = "hint", "budget", "max_groups", "max_unresolved"
        options = {name: getattr(self, name) for name in names}
        if self.classes is not None:
            options |= {"classes": self.classes, "normalize": True}
        return Recalibrator(**options)

    @property
    def certificate(self) -> ArcCertificate | ClassCertificate:
        """What is proved about all forecasts so far, including those that await their labels."""
        certificate: ArcCertificate | ClassCertificate = self.recalibrator.certificate
        return certificate

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[base.typing.ClfTarget, float]:
        """Return the probabilities of all labels if the row came next. Nothing is learned."""
        p = self.recalibrator.predict(self._score(x, **kwargs), group=self._group(x))
        if self.classes is None:
            return {False: 1.0 - p, True: p}
        return dict(zip(self.recalibrator.classes, p.tolist(), strict=True))

    def learn_one(self, x: Row, y: base.typing.ClfTarget, **kwargs: Any) -> None:
        """Score the row with the current classifier, play the round, then let the classifier learn.

        Raises
        ------
        InputError
            If the label is neither False nor True, 0 nor 1, or not one of the `classes`; if the
            classifier's score is not in [0, 1], or the row has no such group. Nothing is learned.
        """
        outcome = self._outcome(y)
        self.recalibrator.predict(self._score(x), group=self._group(x))
        self.classifier.learn_one(x, y, **kwargs)
        self.recalibrator.observe(outcome)

    def issue_one(
        self, x: Row, *, event: str | int | None = None, **kwargs: Any
    ) -> Ticket | ClassTicket:
        """Return a forecast whose label will come later: ``ticket.p`` is the probability of True.

        Or a tuple of the probabilities of all `classes`.

        If the model is a pipeline, wrap the whole pipeline to reach this method:
        ``Recalibrated(StandardScaler() | LogisticRegression())``.

        Parameters
        ----------
        x
            The row.
        event
            The event, if you make several forecasts of it; see `Recalibrator.issue`.
        **kwargs
            For the classifier's `predict_proba_one`.

        Raises
        ------
        InputError
            If the classifier's score is not in [0, 1], or the group or the event breaks its rule.
        """
        score, group = self._score(x, **kwargs), self._group(x)
        ticket: Ticket | ClassTicket = self.recalibrator.issue(score, group=group, event=event)
        return ticket

    def resolve_one(self, ticket: int, x: Row, y: base.typing.ClfTarget, **kwargs: Any) -> None:
        """Learn the label of an issued forecast, in any order.

        The recalibrator learns its round first, then the classifier its row.

        Parameters
        ----------
        ticket
            What `issue_one` gave, or its number.
        x
            The row again, for the classifier to learn; rows are not kept here.
        y
            Its label.
        **kwargs
            For the classifier's `learn_one`.

        Raises
        ------
        InputError
            If the label is neither False nor True, 0 nor 1, or the ticket was never issued. Nothing
            is learned.
        TicketError
            If the ticket is already resolved or given up. Nothing is learned.
        """
        self.recalibrator.resolve(ticket, self._outcome(y))
        self.classifier.learn_one(x, y, **kwargs)

    def give_up_one(self, ticket: int) -> None:
        """Stop waiting for the label of an issued forecast.

        The certificate counts it at its worst from now on.

        Raises
        ------
        InputError
            If the ticket was never issued; TicketError if it no longer awaits a label.
        """
        self.recalibrator.give_up(ticket)

    def _outcome(self, y: base.typing.ClfTarget) -> Any:
        """The label, if the recalibrator can learn it."""
        if self.classes is not None:
            return self.recalibrator.check_outcome(y)
        try:
            return _check.outcome(y)
        except InputError as error:
            rule = f"{error.rule}; for several classes pass classes=(...), all that can occur"
            raise InputError(error.argument, rule, y) from None

    def _group(self, x: Row) -> Any:
        """The group or groups of a row, as the recalibrator takes them."""
        if self.group is None or callable(self.group):
            return None if self.group is None else self.group(x)
        if isinstance(self.group, str):
            return _feature(x, self.group)
        values = ((name, _feature(x, name)) for name in self.group)
        return tuple(f"{name}={value}" for name, value in values if value is not None)

    def _score(self, x: Row, **kwargs: Any) -> Any:
        """The classifier's probability of True, or of all classes.

        A half, or all the same, if it has not seen any label yet.
        """
        said = self.classifier.predict_proba_one(x, **kwargs)
        if self.classes is not None:
            row = [max(float(said.get(label, 0.0)), 0.0) for label in self.classes]
            return row if sum(row) > 0 else [1.0] * len(row)
        score = float(said.get(True, 0.0)) if said else 0.5
        rounded = min(max(score, 0.0), 1.0)
        return rounded if abs(rounded - score) <= _ROUNDING else score

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return self.classes is not None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"classifier": naive_bayes.GaussianNB()}  # type: ignore[no-untyped-call]
        # the labels of all of river's streams
        segments = "brickface", "cement", "foliage", "grass", "path", "sky", "window"
        yield {
            "classifier": naive_bayes.GaussianNB(),  # type: ignore[no-untyped-call]
            "classes": (0, 1, *segments),
        }


def _refuse_regressor(model: object) -> None:
    if isinstance(model, base.Regressor):
        rule = "must be a classifier, such as linear_model.LogisticRegression()"
        raise InputError("classifier", f"{rule}: a regressor gives no probabilities", model)


def _check_features(group: Any) -> Any:
    """Refuse a group that is neither one or several features nor a function."""
    names = group if isinstance(group, tuple | list) else (group,)
    named = (
        bool(names)
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    )
    if group is None or callable(group) or named:
        return group
    rule = "must be the name of a feature, a tuple of distinct ones, a function of the row, or None"
    raise InputError("group", rule, group)


def _feature(x: Row, name: str) -> Any:
    if name not in x:
        rule = "must be a feature of every row; if it can be missing, pass a function of the row"
        raise InputError("group", rule, name)
    return x[name]
