"""The recalibrator for several classes: rows of probabilities in, rows that sum to 1 out."""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.errors import InputError
from truecast.forecasters.guard import BUDGETS
from truecast.recalibrate.class_certificate import (
    ClassCertificate,
    certify_classes,
    promised_of_classes,
)
from truecast.recalibrate.class_rows import Label, Labels
from truecast.recalibrate.class_state import class_state, load_class_state
from truecast.recalibrate.groups import ClassGroupRecord, Groups, class_parts
from truecast.recalibrate.hints import Hint, Mix
from truecast.recalibrate.hints.base import from_config, is_compiled
from truecast.recalibrate.tickets import MAX_GROUPS, MAX_UNRESOLVED, AnyTicket, Issuing

__all__ = ["ClassRecalibrator", "ClassTicket"]

MAX_FIELDS = 1 << 28  # a group has one for each class

Group = _check.Group


class ClassTicket(AnyTicket[tuple[float, ...]]):
    """The number of a forecast whose outcome is awaited, with the forecast itself.

    An int, so that it can be stored anywhere; ``resolve`` takes the plain number as well.

    Attributes
    ----------
    p : tuple of float
        The forecast, a probability for each class.
    """


class ClassRecalibrator(Issuing[ClassTicket]):
    r"""Put in front of a model of several classes: its rows go in, rows that sum to 1 come out.

    ``Recalibrator(classes=...)`` builds it. Each row becomes a *hint*: a mixture of what the model
    says, of temperature, vector and matrix scaling learned online, and of a recalibration of each
    class by itself, weighted by how well they did. A *nudge* corrects each class for the errors of
    its nearby forecasts. The *guard* follows the result while the energies of all classes together
    are within their budget. So whatever the model, the drift and the outcomes, the sum of the
    classes' distances to calibration is bounded (docs/classes.md).

    It does not calibrate given the whole vector: see `ClassCertificate`. It does not make a poor
    model good.

    Parameters
    ----------
    classes
        How many: labels are then 0, 1, ...; or their names, str or int. A class that never happens
        does no harm. They are fixed: an outcome of another label is refused.
    hint
        None for the mixture, which needs no choice; of two classes it is `Mix()`, as it is for
        `Recalibrator` without `classes`. Or one of `truecast.hints`, which is then used for each
        class by itself, and normalised: `Identity()` trusts the model. Hints of your own are not
        supported yet.
    scale
        What scores are: "probability", or "logit" for any finite numbers, whose softmax are the
        probabilities. Use log-odds for models whose probabilities round to 0 or 1, such as naive
        Bayes.
    normalize
        Whether rows of probabilities that do not sum to 1 are divided by their sum. Otherwise those
        beyond 1e-6 are refused.
    budget
        How much energy a round may add, 1.05 or more. The proved bounds grow with its square root.
    nudge
        Whether to correct hints for the errors of nearby forecasts.
    max_groups
        How many groups get certificates of their own; all others share one, `others`.
    max_unresolved
        How many forecasts may await their outcomes. When one more is issued, the oldest is given
        up.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs about as much as one of `Recalibrator` for each class; with up to 16 classes it
    contains O(K**3) for matrix scaling, which is little for few classes. More than 16 do without.
    Rows that come out sum to 1 up to rounding: within 2**-53 for each class, and 2**-52 for each
    move that the guard makes between two of them.

    A call happens as a whole or not at all, whatever interrupts it, and threads may share an
    object, as with `Recalibrator`.

    A group has a field for each class, and is calibrated class by class. What a group needs is
    learned, too: a factor for the odds of each class, and how much groups differ. A round of g
    groups costs about g + 1 times as much in the guard, and the same in the hints.

    Examples
    --------
    >>> import truecast as tc
    >>> r = tc.Recalibrator(classes=["home", "draw", "away"])
    >>> p = r.predict([0.5, 0.3, 0.2])
    >>> p.round(2).tolist()
    [0.5, 0.3, 0.2]
    >>> r.observe("draw")
    >>> ticket = r.issue([0.6, 0.3, 0.1])  # its outcome comes later
    >>> r.resolve(ticket, "home")
    >>> r.certificate.rounds, round(r.certificate.brier, 3)
    (2, 0.522)
    >>> ticket = r.issue([0.6, 0.3, 0.1], group=("Leeds", "cup"), event="final")
    >>> r.resolve(ticket, "away")
    >>> r.groups["Leeds"].certificate.rounds, r.certificate.rounds
    (1, 3)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(3, 10_000, p=[0.2, 0.3, 0.5])
    >>> r = tc.Recalibrator(classes=3)
    >>> p = r.forecast_many(np.full((10_000, 3), [0.9, 0.05, 0.05]), y)  # sure, and wrong
    >>> bool(abs(p[-5_000:].mean(axis=0) - [0.2, 0.3, 0.5]).max() < 0.02)
    True
    >>> bool(abs(p.sum(axis=1) - 1).max() < 1e-14)
    True
    """

    _desk: _core.ClassDesk

    def __init__(
        self,
        *,
        classes: int | list[Label] | tuple[Label, ...],
        hint: Hint | dict[str, Any] | None = None,
        scale: str = "probability",
        normalize: bool = False,
        budget: float = 4.0,
        nudge: bool = True,
        max_groups: int = 1_000,
        max_unresolved: int = 100_000,
    ) -> None:
        self._labels = Labels(classes)
        self._hint = _for_each(hint)
        self._scale = _check.choice("scale", scale, ("probability", "logit"))
        self._normalize = _check.flag("normalize", normalize)
        self._budget = _check.within("budget", budget, *BUDGETS)
        self._nudge = _check.flag("nudge", nudge)
        most = min(MAX_GROUPS, MAX_FIELDS // len(self._labels) - 2)
        self._max_groups = _check.whole_number("max_groups", max_groups, least=0, most=most)
        self._max_unresolved = _check.whole_number(
            "max_unresolved", max_unresolved, least=1, most=MAX_UNRESOLVED
        )
        self._desk = self._new_desk()

    def _new_desk(self) -> _core.ClassDesk:
        classes = len(self._labels)
        return _core.ClassDesk(
            self._hint or Mix(),
            classes,
            self._hint is None and classes > 2,  # two are the recalibrator for two
            self._budget,
            self._nudge,
            self._scale == "logit",
            ClassTicket,
            self._max_groups,
            self._max_unresolved,
        )

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this anew."""
        hint = self._hint
        return {
            "classes": self._labels.config,
            "hint": None if hint is None else {"kind": type(hint).__name__, **hint.config},
            "scale": self._scale,
            "normalize": self._normalize,
            "budget": self._budget,
            "nudge": self._nudge,
            "max_groups": self._max_groups,
            "max_unresolved": self._max_unresolved,
        }

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, in the order of the columns."""
        return self._labels.names

    def a_priori(self, rounds: int) -> float:
        """The bound on the sum of the classes' distances that is proved before the first round.

        After this many rounds, whatever the model and the outcomes; without groups, and if outcomes
        come at once (docs/classes.md, theorem 3). The certificate has what is proved of the
        forecasts made, which is usually far less.

        Examples
        --------
        >>> import truecast as tc
        >>> r = tc.Recalibrator(classes=["home", "draw", "away"])
        >>> round(r.a_priori(1_000_000))  # 1393 for each, on average
        4178
        """
        rounds = _check.whole_number("rounds", rounds, least=0, most=_check.MOST_ROUNDS)
        return promised_of_classes(len(self._labels), rounds, self._budget)

    @property
    def certificate(self) -> ClassCertificate:
        """What is proved about all forecasts so far. Costs O(knots)."""
        parts = self._desk.alone(lambda: class_parts(self._desk, 0, len(self._labels)))
        return certify_classes(self.classes, *parts)

    @property
    def groups(self) -> Groups[ClassGroupRecord]:
        """Every group seen so far, by name, to read their certificates."""
        return Groups(self._desk, lambda desk, name: ClassGroupRecord(desk, name, self.classes))

    @property
    def others(self) -> ClassGroupRecord:
        """What all groups beyond `max_groups` share."""
        return ClassGroupRecord(self._desk, None, self.classes)

    def predict(self, scores: ArrayLike, *, group: Group = None) -> NDArray[np.float64]:
        """Return the probabilities to say where the model says `scores`; `observe` comes next.

        Asked again, it answers for the new scores; the outcome is about the last ones. Nothing is
        learned.

        Parameters
        ----------
        scores
            The model's probabilities, one of each class; or logits if `scale` says so. A dict, or
            a row of a pandas frame, goes by the names of the classes, as columns of a frame do;
            anything else by position.
        group
            The name or number of the group of this round, or a tuple of several: each group is
            calibrated. Every round also counts for everyone.

        Raises
        ------
        InputError
            If the scores break their rule, or the group is not a str, int, tuple of these or None.
            Nothing changes.
        """
        said = np.empty(len(self._labels))
        self._desk.predict(self._row(scores), group, said)
        return said

    def observe(self, outcome: Any) -> None:
        """Learn the class that happened, which the last `predict` was about.

        Raises
        ------
        InputError
            If it is not one of the classes; OrderError if there was no `predict`. Nothing changes.
        """
        self._desk.observe(self._labels.number(outcome))

    def check_outcome(self, outcome: Any) -> Label:
        """Return the outcome if `observe` would take it, as it stands in `classes`.

        Raises
        ------
        InputError
            If it is not one of the classes.
        """
        return self.classes[self._labels.number(outcome)]

    def issue(
        self, scores: ArrayLike, *, group: Group = None, event: str | int | None = None
    ) -> ClassTicket:
        """Return a forecast whose outcome will come later, in any order with others.

        Parameters
        ----------
        scores, group
            As for `predict`.
        event
            The name or number of the event, if you make several forecasts of it. Their outcomes
            then count as one observation to learn from. The certificate counts each.

        Returns
        -------
        ticket
            An int to `resolve` it with; ``ticket.p`` is the forecast.

        Raises
        ------
        InputError
            As for `predict`. Nothing changes.
        """
        ticket: ClassTicket = self._desk.issue(self._row(scores), group, event)
        return ticket

    def resolve(self, ticket: int, outcome: Any) -> None:
        """Learn the class that happened, of an issued forecast.

        Raises
        ------
        InputError
            If it is not one of the classes, or the ticket was never issued. Nothing changes.
        TicketError
            If the ticket is resolved or given up already. Nothing changes.
        """
        self._desk.resolve(ticket, self._labels.number(outcome))

    def forecast_many(
        self,
        scores: ArrayLike,
        outcomes: ArrayLike,
        *,
        groups: Any = None,
        known_at: ArrayLike | None = None,
        events: Any = None,
        out: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Play a round for every row: say probabilities, then learn its outcome.

        The same as `predict` and `observe` in a loop, bit for bit, state included. Other threads
        run meanwhile, and a long batch uses a second one itself, unless `TRUECAST_THREADS` is 1.
        Interrupted, it has learned nothing.

        Parameters
        ----------
        scores
            What the model said, in order: a row for each round, a column for each class. Of a
            frame, the columns that are called as the classes.
        outcomes
            What happened: a label for each row.
        groups
            The group of each round: a name, a tuple of several, or None. Or a table with a column
            for each kind of group. None if there are no groups.
        known_at
            After which row each outcome is known, if not before the next one; as for
            `Recalibrator.forecast_many`.
        events
            The event of each round, or None, as for `issue`; only with `known_at`.
        out
            Where to write the forecasts, if not to a new array: float64, contiguous, of the shape
            of the scores.

        Returns
        -------
        forecasts
            One row a round, each made before its outcome was used.

        Raises
        ------
        InputError
            If a row, an outcome, a group, an event or an entry of `known_at` breaks its rule, or
            the lengths differ. Nothing changes.
        """
        _check._refuse_misaligned("scores", scores, "outcomes", outcomes)
        y = self._labels.numbers(outcomes)
        x = self._rows(scores)
        if len(x) != len(y):
            rule = f"must have a row for each of the {len(y)} outcomes"
            raise InputError("scores", rule, f"shape {x.shape}")
        said = np.empty(x.shape) if out is None else _output(out, x, y)
        names = None if groups is None else _check.groups(groups, len(y), scores)
        late = _check.late(known_at, events, len(y), scores)
        if late is None:
            self._desk.run(x, names, y, said, self._aside(x.size))
        else:
            self._desk.replay(x, names, y, *late, said)
        return said

    def predict_many(self, scores: ArrayLike, *, groups: Any = None) -> NDArray[np.float64]:
        """Return what `predict` would say to each row if it came next; nothing is changed.

        Parameters
        ----------
        scores
            As for `forecast_many`.
        groups
            The group of each row, if there are groups.

        Raises
        ------
        InputError
            As for `forecast_many`.
        """
        x = self._rows(scores)
        names = None if groups is None else _check.groups(groups, len(x), scores)
        said = np.empty(x.shape)
        self._desk.place(x, names, said)
        return said

    def to_table(self, **options: Any) -> NoReturn:
        """Refuse: a table maps one score to one probability, and a row has several.

        Raises
        ------
        InputError
            Always. It says what to do instead.
        """
        rule = (
            "must be None to make a table, which maps one score to one probability: save the "
            "recalibrator with to_json() and call predict_many(), or make a table of a "
            "Recalibrator() for the one class that you serve"
        )
        raise InputError("classes", rule, self._labels.config)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return self._desk.alone(lambda: class_state(self._desk))

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        desk = self._new_desk()
        load_class_state(
            desk,
            state,
            hint=self._hint or Mix(),
            scale=self._scale,
            most_groups=self._max_groups,
            most=self._max_unresolved,
        )
        self._desk.take(desk)

    def _row(self, scores: Any) -> NDArray[np.float64]:
        return self._labels.row(scores, scale=self._scale, normalize=self._normalize)

    def _rows(self, scores: Any) -> NDArray[np.float64]:
        return self._labels.rows(scores, scale=self._scale, normalize=self._normalize)


def _for_each(hint: Any) -> Hint | None:
    """A hint to be used for each class by itself, or None for the mixture."""
    if hint is None:
        return None
    made = from_config(hint, "hint")
    if not isinstance(made, Hint) or not is_compiled(made) or made._models != 1:
        rule = "must be None, or one of truecast.hints for a single score: classes take no other"
        raise InputError("hint", rule, hint)
    return copy.copy(made)


def _output(out: Any, x: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    rule = f"must be a writeable, contiguous float64 array of shape {x.shape}, aligned"
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != x.shape:
        raise InputError("out", rule, out)
    if not out.flags.carray:
        raise InputError("out", rule, out)
    if out.ctypes.data != x.ctypes.data and np.may_share_memory(out, x):
        raise InputError("out", "must not overlap what is read after it is written", out)
    if np.may_share_memory(out, y):
        raise InputError("out", "must not share memory with outcomes", out)
    return out
