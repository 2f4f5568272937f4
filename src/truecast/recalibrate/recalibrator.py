"""The recalibrator: a hint from the model's scores, a guard over it, late outcomes and groups."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from truecast import _check, _core
from truecast import state as saving
from truecast._renamed import renamed
from truecast.errors import InputError, StateError
from truecast.forecasters.guard import BUDGETS
from truecast.ledger import certify, ledger_state, numbers_of, promised
from truecast.recalibrate.groups import GroupRecord, Groups, require_known, saved_names
from truecast.recalibrate.hints import Hint, Mix
from truecast.recalibrate.hints.base import from_config, is_compiled
from truecast.recalibrate.open import Calls, HintLike, OpenHint
from truecast.recalibrate.tickets import (
    MAX_GROUPS,
    MAX_UNRESOLVED,
    Issuing,
    Ticket,
    Tickets,
    is_score,
    load_bursts,
    load_tickets,
    tickets_state,
)
from truecast.state import require_entries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from truecast.certificate import ArcCertificate
    from truecast.recalibrate.table import ScoreTable

__all__ = ["Recalibrator"]

OPEN = "yours"  # the kind of all hints that are not ours

Group = _check.Group


class Recalibrator(Issuing[Ticket]):
    r"""Sits in front of a model: probabilities go in, calibrated ones come out, with a proof.

    A *hint* learns from the outcomes what scores mean. A *nudge* corrects the errors of nearby
    forecasts. The *guard* follows the result while the energy of the forecasts is within its
    budget. So the forecasts are about as sharp as the best of several ways of recalibrating, and
    their distance to calibration is bounded for any model, drift and outcomes: `certificate` says
    how far they can be off so far (docs/adaptive.md).

    It does not make a poor model good: a score without information becomes the base rate. If
    outcomes come at once and resemble the ones before them, part of the gain in Brier score comes
    from that resemblance, not from calibration.

    Parameters
    ----------
    classes
        None for outcomes of 0 and 1. A number or names of several classes gives a
        `ClassRecalibrator` instead: rows of probabilities go in, rows that sum to 1 come out.
    hint
        How to turn scores into probabilities; a copy is taken. None uses a `Mix` of several, so you
        need not choose; `Identity()` trusts the model. Or your own object with
        ``predict(score) -> p`` and ``learn(score, outcome)``. In a batch it is called row by row,
        which is slower. To be saved, it needs ``state()``, which returns plain data, and
        ``load(state)``. For late outcomes it may have ``issue(score) -> (p, notes)``: notes is a
        list of floats, always of the same length, that ``learn(score, outcome, notes)`` gets back.
        `truecast.testing.check_hint` checks all this.
    scale
        "probability", or "logit" if scores are log-odds: any finite numbers. Use log-odds for
        models whose probabilities round to 0 or 1 as floats, such as naive Bayes.
    budget
        How much energy a round may add, 1.05 or more. The proved bounds grow with its square root;
        see `Guard`.
    nudge
        Whether to correct hints for the errors of nearby forecasts. Without it, a calibrated hint
        comes out unchanged, but lasting errors of a hint are corrected only when the guard steps
        in.
    max_groups
        How many groups get their own certificate; all others share one, `others`.
    max_unresolved
        How many forecasts may await their outcomes. Issuing one more gives up the oldest: the
        certificate counts it at its worst for ever, and its outcome is refused if it still comes.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs O(log m) for each of its groups, plus the cost of the hint; m, the number of
    knots, is at most about 4 T^(2/3) for T rounds. The state is O(m) for everyone, O(rounds) at
    most for a group, and O(1) for each unresolved forecast.

    A call happens completely or not at all, whatever interrupts it: Ctrl-C, a signal handler that
    raises, an error. If `issue` happened but its ticket was lost, it is the last of `awaited`.
    Threads may share an object: calls run one after the other. While a batch runs, other calls
    raise OrderError, "in use by another thread". But `predict` and `observe` belong together: if
    several threads forecast, use `issue` and `resolve`.

    Your own hint is Python code that runs during a call. If it raises, nothing else has changed:
    the outcome is still awaited, and a batch is undone completely, using a copy of the hint made
    first. But if an interrupt comes just after the hint has learned the outcome of a single call,
    only the hint has learned it. While the hint runs, calls from other threads are refused.

    Examples
    --------
    >>> r = Recalibrator()
    >>> round(r.predict(0.83), 2)
    0.83
    >>> r.observe(1)
    >>> ticket = r.issue(0.6, group=("JFK", "evening"))  # its outcome comes later
    >>> round(ticket.p, 1)
    0.6
    >>> r.resolve(ticket, 0)
    >>> r.groups["JFK"].certificate.rounds, r.certificate.rounds
    (1, 2)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(10_000) < 0.3
    >>> p = r.forecast_many(np.full(10_000, 0.9), y)  # a model that is always sure, and wrong
    >>> bool(abs(p[-5_000:].mean() - 0.3) < 0.01), r.certificate.per_round < 0.02
    (True, True)
    >>> Recalibrator.from_json(r.to_json()).predict(0.9) == r.predict(0.9)
    True
    """

    _desk: _core.Desk
    _oldest = 2
    _builds = ("ClassRecalibrator",)

    def __new__(cls, *, classes: Any = None, **options: Any) -> Any:
        """Return one for outcomes of 0 and 1, or a `ClassRecalibrator` if there are `classes`."""
        if classes is None:
            return super().__new__(cls)
        from truecast.recalibrate.class_recalibrator import ClassRecalibrator

        return ClassRecalibrator(classes=classes, **options)

    def __init__(
        self,
        *,
        classes: None = None,
        hint: Hint | HintLike | dict[str, Any] | None = None,
        scale: str = "probability",
        budget: float = 4.0,
        nudge: bool = True,
        max_groups: int = 1_000,
        max_unresolved: int = 100_000,
    ) -> None:
        self._max_groups = _check.whole_number("max_groups", max_groups, least=0, most=MAX_GROUPS)
        self._max_unresolved = _check.whole_number(
            "max_unresolved", max_unresolved, least=1, most=MAX_UNRESOLVED
        )
        self._scale = _check.choice("scale", scale, ("probability", "logit"))
        self._budget = _check.within("budget", budget, *BUDGETS)
        self._nudge = _check.flag("nudge", nudge)
        self._desk = self._new_desk(_built(hint, logit=self._logit))

    def _new_desk(self, hint: Hint | OpenHint) -> _core.Desk:
        return _core.Desk(
            hint, self._budget, self._nudge, Ticket, self._max_groups, self._max_unresolved
        )

    @property
    def _hint(self) -> Hint | OpenHint:
        hint: Hint | OpenHint = self._desk.hint
        return hint

    def _rows(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """One row a round, as the desk takes them."""
        return scores.reshape(len(scores), self._hint._models)

    @property
    def _anew(self) -> Any:
        """What a hint to load a state into is built of."""
        return self._hint if isinstance(self._hint, OpenHint) else self.config["hint"]

    @property
    def _logit(self) -> bool:
        return self._scale == "logit"

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this."""
        hint = self._hint
        return {
            "hint": {
                "kind": OPEN if isinstance(hint, OpenHint) else type(hint).__name__,
                **hint.config,
            },
            "scale": self._scale,
            "budget": self._budget,
            "nudge": self._nudge,
            "max_groups": self._max_groups,
            "max_unresolved": self._max_unresolved,
        }

    @property
    def groups(self) -> Groups[GroupRecord]:
        """Every group seen so far, by name, to read their certificates."""
        return Groups(self._desk, GroupRecord)

    @property
    def others(self) -> GroupRecord:
        """What all groups beyond `max_groups` share."""
        return GroupRecord(self._desk, None)

    def a_priori(self, rounds: int) -> float:
        """The bound on CalDist after this many rounds that is proved before the first.

        Whatever the model and the outcomes; without groups, and if outcomes come at once
        (docs/adaptive.md, theorem 10). The certificate has what is proved of the forecasts made,
        which is usually far less.

        Examples
        --------
        >>> import truecast as tc
        >>> round(tc.Recalibrator().a_priori(1_000_000))
        1392
        """
        rounds = _check.whole_number("rounds", rounds, least=0, most=_check.MOST_ROUNDS)
        return promised(rounds, self._budget)

    @property
    def certificate(self) -> ArcCertificate:
        """What is proved about all forecasts so far. Costs O(knots) for any number of groups."""
        return certify(self._desk.alone(lambda: self._desk.parts(0)))

    def predict(self, score: float | Sequence[float], *, group: Group = None) -> float:
        """Return the forecast for a model's `score`; `observe` its outcome next.

        You may call it again: `observe` refers to the last call. Nothing is learned.

        Parameters
        ----------
        score
            The model's probability, or log-odds if `scale` says so; a sequence of them if the hint
            takes several.
        group
            The name or number of the group of this round, or a tuple of several: each group is
            calibrated. Every round also counts for everyone.

        Raises
        ------
        InputError
            If the score is not in [0, 1] (or not finite, for log-odds), or the group is not a str,
            int, tuple of these or None. Nothing changes.
        """
        return self._desk.predict(score, group)

    def observe(self, outcome: Any) -> None:
        """Learn the outcome, 0 or 1, of the last `predict`.

        Raises
        ------
        InputError
            If the outcome is neither 0 nor 1; OrderError if there was no `predict`. Nothing
            changes.
        """
        self._desk.observe(outcome)

    def issue(
        self, score: float | Sequence[float], *, group: Group = None, event: str | int | None = None
    ) -> Ticket:
        """Return a forecast whose outcome will come later, in any order with others.

        Parameters
        ----------
        score, group
            As for `predict`.
        event
            The name or number of the event, if you make several forecasts of it. Their outcomes
            then count as one observation to learn from: 170 forecasts during a game are about one
            game. The certificate counts each.

        Returns
        -------
        ticket
            An int to `resolve` it with; ``ticket.p`` is the forecast.

        Raises
        ------
        InputError
            As for `predict`. Nothing changes.
        """
        ticket: Ticket = self._desk.issue(score, group, event)
        return ticket

    def resolve(self, ticket: int, outcome: Any) -> None:
        """Learn the outcome, 0 or 1, of an issued forecast.

        Raises
        ------
        InputError
            If the outcome is neither 0 nor 1, or the ticket was never issued. Nothing changes.
        TicketError
            If the ticket is already resolved or given up. Nothing changes, so an outcome delivered
            twice counts once.
        """
        self._desk.resolve(ticket, outcome)

    def issue_many(self, scores: ArrayLike, *, groups: Any = None, events: Any = None) -> Tickets:
        """Issue a forecast for every score: `issue` in a loop, bit for bit, but faster.

        Parameters
        ----------
        scores
            What the model said, in order.
        groups, events
            The group and the event of each, as for `forecast_many`; None if there are none.

        Returns
        -------
        Tickets
            `numbers` to resolve them with, and the forecasts, `p`.

        Raises
        ------
        InputError
            As for `forecast_many`. Nothing changes; nor does it if this is interrupted.

        Examples
        --------
        >>> r = Recalibrator()
        >>> tickets = r.issue_many([0.2, 0.7, 0.9])
        >>> r.resolve_many(tickets.numbers[:2], [0, 1])
        >>> r.rounds, r.unresolved
        (2, 1)
        """
        x = _check.scores("scores", scores, scale=self._scale, models=self._hint._models)
        names = None if groups is None else _check.groups(groups, len(x), scores)
        about = np.empty(0, np.int64) if events is None else _check.events(events, len(x), scores)
        said = np.empty(len(x))
        nothing = np.empty(0, np.int64), np.empty(0, np.uint8)
        order = np.zeros(len(x), np.uint8)
        first = self._desk.steps(self._rows(x), names, about, *nothing, order, said)
        return Tickets(np.arange(first, first + len(x)), said)

    def resolve_many(self, tickets: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn the outcomes of issued forecasts: `resolve` in a loop, bit for bit, but faster.

        Parameters
        ----------
        tickets
            Numbers of tickets, each once.
        outcomes
            0 or 1, as many.

        Raises
        ------
        InputError
            If an outcome is neither 0 nor 1, or a ticket was never issued.
        TicketError
            If a ticket is already resolved or given up. Nothing changes then: none is resolved.
        """
        numbers, y = _check.tickets(tickets, outcomes)
        rows = np.empty((0, self._hint._models))
        order, said = np.ones(len(y), np.uint8), np.empty(len(y))
        self._desk.steps(rows, None, np.empty(0, np.int64), numbers, y, order, said)

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
        """Play a round for every score: make a forecast, then learn its outcome.

        The same as `predict` and `observe` in a loop, bit for bit, including the state, but several
        times faster. Other threads can run meanwhile, and a long batch uses a second one itself,
        unless `TRUECAST_THREADS` is 1. If interrupted, for example by Ctrl-C, it stops within a
        tenth of a second and has learned nothing: everything is as before the call, except that
        `out` may already hold forecasts.

        Parameters
        ----------
        scores
            What the model said, in order: one number a round, in [0, 1] or log-odds; or a row of
            numbers, if the hint takes several.
        outcomes
            What happened: 0 or 1, one for each score.
        groups
            The group of each round: a name, a tuple of several, or None. Or a table with a column
            for each kind of group. None if there are no groups.
        known_at
            The row after which each outcome is known, counted from 0: its own row or a later one.
            None if each is known before the next round. This replays a log as it happened: bit for
            bit, `issue` for each row, and `resolve` for row t after row ``known_at[t]``, in the
            order of rows. Outcomes known only after the last row stay `awaited`. As always, the
            oldest are given up if more than `max_unresolved` are awaited; their outcomes are
            ignored.
        events
            The event of each round, or None, as for `issue`; only with `known_at`.
        out
            Where to write the forecasts, if not to a new array: float64, contiguous, one for each
            outcome.

        Returns
        -------
        forecasts
            One a round, each made before its outcome was used.

        Raises
        ------
        InputError
            If a score, an outcome, a group, an event or an entry of `known_at` breaks its rule, or
            the lengths differ. Nothing changes.

        Examples
        --------
        >>> r = Recalibrator()
        >>> p = r.forecast_many([0.6, 0.7, 0.8, 0.9], [0, 1, 1, 1], known_at=[2, 1, 5, 3])
        >>> r.rounds, r.awaited == [2]  # the outcome of row 2 was not known when the log ended
        (3, True)
        """
        x, y = _core.scored(
            "scores", scores, outcomes, scale=self._scale, models=self._hint._models
        )
        said = np.empty(len(y)) if out is None else _check.output(out, y, x)
        names = None if groups is None else _check.groups(groups, len(y), scores)
        late = _check.late(known_at, events, len(y), scores)
        if late is None:
            self._desk.run(self._rows(x), names, y, said, self._aside(len(y)))
        else:
            self._desk.replay(self._rows(x), names, y, *late, said)
        return said

    recalibrate_many = renamed("recalibrate_many", forecast_many)

    def predict_many(self, scores: ArrayLike, *, groups: Any = None) -> NDArray[np.float64]:
        """Return the forecast for each score as if it came next; nothing changes.

        Other threads can run meanwhile and use this object: all answers are as of the time of the
        call.

        Parameters
        ----------
        scores
            The model's probabilities, or log-odds.
        groups
            The group of each score, if there are groups.

        Raises
        ------
        InputError
            As for `forecast_many`.
        """
        x = _check.scores("scores", scores, scale=self._scale, models=self._hint._models)
        names = None if groups is None else _check.groups(groups, len(x), scores)
        return self._placed(x, names)

    def _placed(
        self, scores: NDArray[np.float64], names: Any, *, pieces: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        said = np.empty(len(scores))
        told = np.empty(0, np.int64) if pieces is None else pieces
        self._desk.place(self._rows(scores), names, said, told)
        return said

    def to_table(self, *, group: Group = None, tolerance: float = 1e-6) -> ScoreTable:
        """Return the map from scores to probabilities as it is now, as a table of knots.

        To serve it where truecast is not: as JSON (`ScoreTable.to_json`) in any language, or by
        `truecast.adapters.onnx`. Nothing is changed, and the table follows nothing that is learned
        later.

        Parameters
        ----------
        group
            For rounds of this group, or of several; None for rounds that are of no group.
        tolerance
            How far the table may be from `predict_many`, from 1e-9 to 0.1. The map has thousands of
            small jumps (docs/guides/export.md): a larger tolerance passes over them and makes a
            table that is many times smaller.

        Returns
        -------
        ScoreTable
            Its `error` is the largest difference found.

        Raises
        ------
        InputError
            If the hint takes several scores, an option breaks its rule, there are no rounds of the
            group, or the map is too jagged for the tolerance.
        StateError
            If the hint is your own and cannot be saved: the table is made of a copy.

        Notes
        -----
        Takes one to three seconds, and asks the hint about a million times.
        """
        from truecast.recalibrate.table import table_of

        if self._hint._models != 1:
            raise InputError("hint", "must take one score to be a table", self._hint._models)
        tolerance = _check.within("tolerance", tolerance, 1e-9, 0.1)
        name = _check.group(group)
        if len(self.groups) < self._max_groups:  # else it may be one of the others
            require_known(self.groups, name)
        still = copy.copy(self)  # others may learn meanwhile

        def predict(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            names = None if name is None else [name] * len(scores)
            pieces = np.empty(len(scores), int)
            return still._placed(scores, names, pieces=pieces), pieces

        return table_of(predict, self._scale, name, still.rounds, tolerance)

    @classmethod
    def from_json(cls, text: str, *, hint: HintLike | None = None) -> Self:
        """Build what `to_json` saved: a `ClassRecalibrator` if there are classes.

        Parameters
        ----------
        text
            What `to_json` gave. Reading it runs no code.
        hint
            If it was saved with your own hint, a new one of the same class: a copy of it loads the
            saved state.

        Raises
        ------
        StateError
            If the text is corrupted, was not saved by this class, or needs a hint that is not
            given; VersionError if a newer truecast wrote it.
        """
        config, saved = cls._read(text)
        return cls._rebuild(_with_hint(config, hint), saved)

    @classmethod
    def from_bytes(cls, data: bytes, *, hint: HintLike | None = None) -> Self:
        """Build what `to_bytes` saved; takes a hint and raises as `from_json` does."""
        return cls.from_json(saving.from_bytes(data), hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        hint = self._hint
        if isinstance(hint, Hint):
            return super().__reduce__()
        return _revived, (type(self), self.to_bytes(), hint.calls.own)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return self._desk.alone(self._whole_state)

    def _whole_state(self) -> dict[str, Any]:
        desk = self._desk
        return {
            "hint": desk.hint.state(),
            "groups": desk.names,
            "guard": ledger_state(desk.saved()),
            "tickets": tickets_state(desk),
            "bursts": desk.bursts(),
            "asked": desk.asked.tolist(),
        }

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        names = "hint", "groups", "guard", "tickets", "bursts", "asked"
        state = require_entries("state", state, names)
        hint = self._desk.alone(lambda: _built(self._anew, logit=self._logit))
        hint.load(state["hint"])
        groups = saved_names(state["groups"], self._max_groups)
        numbers = numbers_of(state["guard"], most=len(groups) + 2)
        if len(numbers["groups"]["rounds"]) != len(groups) + 2:
            raise StateError(
                "there must be a saved record of each group, of everyone and of all others"
            )
        asked = _saved_asked(state["asked"], numbers["asked"], hint._models, self._scale)
        desk = self._new_desk(hint)
        try:
            desk.seat(groups, numbers)
        except ValueError as error:
            raise StateError(f"the saved guard must fit together: {error}") from error
        load_tickets(desk, state["tickets"], numbers, most=self._max_unresolved, scale=self._scale)
        load_bursts(desk, state["bursts"])
        if len(asked):
            desk.ask(asked)
        self._desk.take(desk)


def _with_hint(config: dict[str, Any], hint: Any) -> dict[str, Any]:
    """The saved configuration, with the hint of your own that it was saved with."""
    saved = config.get("hint")
    name = saved.get("name") if isinstance(saved, dict) and saved.get("kind") == OPEN else None
    if name is None and hint is not None:
        raise StateError("this was saved with a hint of truecast, which is read without hint=")
    if name is not None and hint is None:
        raise StateError(
            f"this was saved with your own hint, {name!s:.80}: pass a new one as hint= to load it"
        )
    if name is not None and (is_compiled(hint) or type(hint).__name__ != name):
        raise StateError(f"this was saved with the hint {name!s:.80}, got {type(hint).__name__}")
    return config if name is None else config | {"hint": hint}


def _revived(cls: type[Recalibrator], data: bytes, hint: Any) -> Recalibrator:
    return cls.from_bytes(data, hint=hint)


def _built(hint: Any, *, logit: bool) -> Hint | OpenHint:
    """A hint of our own, for scores on this scale."""
    if isinstance(hint, OpenHint):
        return OpenHint(hint.calls.copy())
    made = _ours(hint)
    if made is None:
        return OpenHint(Calls(hint, logit=logit))
    made._logit = logit
    return made


_DEFAULT = Mix()  # never learns: to copy it takes far less time than to build one


def _ours(hint: Any) -> Hint | None:
    """One of truecast: new, a copy of the given one, or as `config` describes it; else None."""
    if hint is None:
        return copy.copy(_DEFAULT)
    made = from_config(hint, "hint")
    if made is hint:
        return copy.copy(hint) if is_compiled(hint) else None
    return cast("Hint", made)


def _saved_asked(scores: object, asked: object, models: int, scale: str) -> NDArray[np.float64]:
    """The scores that `observe` is about, if the guard awaits an outcome."""
    count = 0 if asked is None else models
    if not isinstance(scores, list) or len(scores) != count:
        raise StateError(
            f"the saved asked must be {count} scores, as the guard awaits an outcome, "
            f"got {scores!r:.80}"
        )
    if not all(type(score) is float and is_score(score, scale) for score in scores):
        raise StateError(f"the saved asked must be scores that were forecast, got {scores!r:.80}")
    return np.array(scores, np.float64)
