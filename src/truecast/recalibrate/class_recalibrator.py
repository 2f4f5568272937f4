"""The recalibrator for several classes: rows of probabilities in, rows that sum to 1 out."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.errors import InputError
from truecast.forecasters.guard import BUDGETS
from truecast.recalibrate.class_certificate import ClassCertificate, certify_classes
from truecast.recalibrate.class_rows import Label, Labels
from truecast.recalibrate.class_state import class_state, load_class_state
from truecast.recalibrate.hints import Hint, Mix
from truecast.recalibrate.hints.base import from_config, is_compiled
from truecast.state import Saveable

__all__ = ["ClassRecalibrator", "ClassTicket"]

MAX_UNRESOLVED = 1 << 20


class ClassTicket(int):
    """The number of a forecast whose outcome is awaited, with the forecast itself.

    An int, so that it can be stored anywhere; ``resolve`` takes the plain number as well.

    Attributes
    ----------
    p : tuple of float
        The forecast, a probability for each class.
    """

    p: tuple[float, ...]

    def __new__(cls, number: int, p: tuple[float, ...]) -> Self:
        """Return the number with its forecast."""
        ticket = super().__new__(cls, number)
        ticket.p = p
        return ticket

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self), self.p)

    def __repr__(self) -> str:
        return f"ClassTicket({int(self)}, p={self.p!r})"


class ClassRecalibrator(Saveable):
    r"""Put in front of a model of several classes: its rows go in, rows that sum to 1 come out.

    ``Recalibrator(classes=...)`` builds it. Each row becomes a *hint*: a mixture of what the model
    says, of temperature, vector and matrix scaling learned online, and of a recalibration of each
    class by itself, weighted by how they did. Each class is *nudged* against what its forecasts
    around there have missed. And the *guard* follows the hint as long as the energies of all
    classes together are within their budget. So whatever the model, the drift and the outcomes, the
    sum of the classes' distances to calibration is bounded (docs/classes.md).

    It does not calibrate given the whole vector: see `ClassCertificate`. It does not make a poor
    model good.

    Parameters
    ----------
    classes
        How many: labels are then 0, 1, ...; or their names, str or int. A class that never happens
        does no harm. They are fixed: an outcome of another label is refused.
    hint
        None for the mixture, which needs no choice. Or one of `truecast.hints`, which is then used
        for each class by itself, and normalised: `Identity()` trusts the model. Hints of your own
        are not supported yet.
    scale
        What scores are: "probability", or "logit" for any finite numbers, whose softmax are the
        probabilities. Take these from a naive Bayes classifier, whose probabilities saturate.
    normalize
        Whether rows of probabilities that do not sum to 1 are divided by their sum. Otherwise those
        beyond 1e-6 are refused.
    budget
        How much energy a round may bring, 1.05 or more: the proved bounds grow with its root.
    nudge
        Whether hints are nudged against what the forecasts have missed.
    max_unresolved
        How many forecasts may await their outcomes. When one more is issued, the oldest is given
        up.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs about as much as one of `Recalibrator` for each class; with up to 32 classes it
    contains O(K**3) for matrix scaling, which is little for few classes. More than 32 do without.
    Rows that come out sum to 1 up to rounding: within 2**-53 for each class, and 2**-52 for each
    move that the guard makes between two of them.

    A call happens as a whole or not at all, whatever interrupts it, and threads may share an
    object, as with `Recalibrator`. Groups and events are not supported yet.

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
    (2, 0.577)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(3, 10_000, p=[0.2, 0.3, 0.5])
    >>> r = tc.Recalibrator(classes=3)
    >>> p = r.forecast_many(np.full((10_000, 3), [0.9, 0.05, 0.05]), y)  # sure, and wrong
    >>> bool(abs(p[-5_000:].mean(axis=0) - [0.2, 0.3, 0.5]).max() < 0.02)
    True
    >>> bool(abs(p.sum(axis=1) - 1).max() < 1e-14)
    True
    """

    def __init__(
        self,
        *,
        classes: int | list[Label] | tuple[Label, ...],
        hint: Hint | dict[str, Any] | None = None,
        scale: str = "probability",
        normalize: bool = False,
        budget: float = 4.0,
        nudge: bool = True,
        max_unresolved: int = 100_000,
    ) -> None:
        self._labels = Labels(classes)
        self._hint = _for_each(hint)
        self._scale = _check.choice("scale", scale, ("probability", "logit"))
        self._normalize = _check.flag("normalize", normalize)
        self._budget = _check.within("budget", budget, *BUDGETS)
        self._nudge = _check.flag("nudge", nudge)
        self._max_unresolved = _check.whole_number(
            "max_unresolved", max_unresolved, least=1, most=MAX_UNRESOLVED
        )
        self._desk = self._new_desk()

    def _new_desk(self) -> _core.ClassDesk:
        each = Mix() if self._hint is None else self._hint
        logit = self._scale == "logit"
        return _core.ClassDesk(
            each,
            len(self._labels),
            self._hint is None,
            self._budget,
            self._nudge,
            logit,
            ClassTicket,
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
            "max_unresolved": self._max_unresolved,
        }

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels, in the order of the columns."""
        return self._labels.names

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._desk.rounds

    @property
    def unresolved(self) -> int:
        """Forecasts issued whose outcomes are awaited."""
        return self._desk.unresolved

    @property
    def awaited(self) -> list[ClassTicket]:
        """The tickets whose outcomes are awaited, oldest first. O(`unresolved`)."""
        return self._desk.awaited

    @property
    def certificate(self) -> ClassCertificate:
        """What is proved about all forecasts so far. Costs O(knots)."""
        return certify_classes(self.classes, *self._desk.alone(self._parts))

    def _parts(self) -> tuple[list[Any], list[Any]]:
        numbers = range(len(self._labels))
        each, top = ([self._desk.parts(k, kind) for k in numbers] for kind in (False, True))
        return each, top

    def predict(self, scores: ArrayLike, *, group: None = None) -> NDArray[np.float64]:
        """Return the probabilities to say where the model says `scores`; `observe` comes next.

        Asked again, it answers for the new scores; the outcome is about the last ones. Nothing is
        learned.

        Parameters
        ----------
        scores
            The model's probabilities, one of each class; or logits if `scale` says so.
        group
            Not supported yet with classes: None.

        Raises
        ------
        InputError
            If the scores break their rule. Nothing changes.
        """
        _refuse_groups(group)
        said = np.empty(len(self._labels))
        self._desk.predict(self._row(scores), said)
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

    def issue(self, scores: ArrayLike, *, group: None = None, event: None = None) -> ClassTicket:
        """Return a forecast whose outcome will come later, in any order with others.

        Parameters
        ----------
        scores
            As for `predict`.
        group, event
            Not supported yet with classes: None.

        Returns
        -------
        ticket
            An int to `resolve` it with; ``ticket.p`` is the forecast.
        """
        _refuse_groups(group, event)
        ticket: ClassTicket = self._desk.issue(self._row(scores))
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

    def give_up(self, ticket: int) -> None:
        """Stop waiting for an outcome; the certificate counts the forecast at its worst.

        Raises
        ------
        InputError
            If the ticket was never issued.
        TicketError
            If the ticket awaits no outcome any more.
        """
        self._desk.give_up(ticket)

    def forecast_many(
        self,
        scores: ArrayLike,
        outcomes: ArrayLike,
        *,
        groups: None = None,
        known_at: ArrayLike | None = None,
        events: None = None,
        out: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Play a round for every row: say probabilities, then learn its outcome.

        The same as `predict` and `observe` in a loop, bit for bit, state included. Other threads
        run meanwhile. Interrupted, it has learned nothing.

        Parameters
        ----------
        scores
            What the model said, in order: a row for each round, a column for each class. Of a
            frame, the columns that are called as the classes.
        outcomes
            What happened: a label for each row.
        groups, events
            Not supported yet with classes: None.
        known_at
            After which row each outcome is known, if not before the next one; as for
            `Recalibrator.forecast_many`.
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
            If a row, an outcome or an entry of `known_at` breaks its rule, or the lengths differ.
            Nothing changes.
        """
        _refuse_groups(groups, events)
        y = self._labels.numbers(outcomes)
        x = self._rows(scores)
        if len(x) != len(y):
            rule = f"must have a row for each of the {len(y)} outcomes"
            raise InputError("scores", rule, f"shape {x.shape}")
        said = np.empty(x.shape) if out is None else _output(out, x)
        if known_at is None:
            self._desk.run(x, y, said)
        else:
            self._desk.replay(x, y, _check.known_at(known_at, len(y)), said)
        return said

    def predict_many(self, scores: ArrayLike, *, groups: None = None) -> NDArray[np.float64]:
        """Return what `predict` would say to each row if it came next; nothing is changed.

        Raises
        ------
        InputError
            As for `forecast_many`.
        """
        _refuse_groups(groups)
        x = self._rows(scores)
        said = np.empty(x.shape)
        self._desk.place(x, said)
        return said

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        state: dict[str, Any] = self._desk.alone(lambda: class_state(self._desk))
        return state

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        desk = self._new_desk()
        load_class_state(
            desk, state, len(self._labels), self._hint or Mix(), self._scale, self._max_unresolved
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


def _refuse_groups(*given: object) -> None:
    if any(each is not None for each in given):
        _refuse_them(next(each for each in given if each is not None))


def _refuse_them(given: object) -> NoReturn:
    rule = "must be None: groups and events with classes are not supported yet"
    raise InputError("groups", rule, given)


def _output(out: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    rule = f"must be a writeable, contiguous float64 array of shape {x.shape}, aligned"
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != x.shape:
        raise InputError("out", rule, out)
    if not out.flags.carray:
        raise InputError("out", rule, out)
    if out.ctypes.data != x.ctypes.data and np.may_share_memory(out, x):
        raise InputError("out", "must not overlap what is read after it is written", out)
    return out
