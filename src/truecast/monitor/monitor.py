"""The monitor: bets against the forecasts, one number of evidence, an alarm with a promise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.errors import InputError, StateError
from truecast.monitor.finding import Finding, finite, found
from truecast.monitor.groups import Evidence, GroupEvidence, Groups, e_bh
from truecast.monitor.metrics import exposition
from truecast.monitor.saved import checked
from truecast.monitor.smooth import SmoothInterval, smooth_interval
from truecast.state import Saveable, plain

__all__ = ["Monitor"]

ORDERS = "issue", "resolution", "chains"
MAX_CHAINS = 10_000
MAX_GROUPS = 1 << 20
MAX_UNRESOLVED = 1 << 20
MEAN_TIMES = 10, 1 << 50
ALPHAS = 1e-12, 0.5
FEWEST_LAGS = 30  # outcomes of each kind
BEYOND_CHANCE = 6.0  # standard deviations

_NONE = np.empty(0, np.int64)


class Monitor(_core.Watch, Saveable):
    r"""Watch whether forecasts stay calibrated, and say so when they do not.

    It bets against the forecasts: that they are too high or too low, too sure or not sure enough,
    off at some place, or off as they were lately; from the first round on, or from any later one.
    If every outcome is 1 with the probability that was forecast for it, given all that was known
    then, no such bet gains on average. So large gains are evidence, however often you look. There
    are two promises, of which you choose one (docs/monitor.md, theorems 1 and 2):

    - ``alpha``: if the forecasts are right, the chance that there is **ever** an alarm is at most
      alpha, over an unlimited run. The alarm is at evidence 1/alpha, and stays. For audits.
    - ``mean_time``: if the forecasts are right, there is on average at most one alarm in that many
      rounds, over any stretch. After an alarm it starts anew. For people on call.

    It does not say that forecasts are good: the average rate, said always, is calibrated. An alarm
    says that the forecasts are off, not that they are off by much, nor why; `finding` has
    estimates. No alarm is no proof of calibration: `smooth_error` says what can be ruled out.

    Parameters
    ----------
    alpha
        The chance of any false alarm, ever: 0.01 if nothing is given.
    mean_time
        Instead: N, for at most one false alarm in N rounds on average.
    order
        In which order late outcomes are bet on. "issue": in the order of the forecasts; an outcome
        waits until those of all forecasts before it are there, or given up. "resolution": as they
        come. "chains": see below. Each is right only in some cases; see Notes.
    chains
        For the order "chains": how many forecasts may be bet on at a time. The others are
        `passed_over`.
    max_groups
        How many groups get evidence of their own; all others share one more, `others`.
    max_unresolved
        How many forecasts may await their outcomes. When one more is issued, the oldest is given
        up: it is counted as the outcome that speaks less against it.
    classes
        For forecasts of several classes: how many, or their names. This builds a `ClassMonitor`,
        which takes rows of probabilities.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    **Late outcomes.** "issue" is right if outcomes that are awaited at the same time are
    independent given what was known when they were forecast; forecasts of one event are not: name
    it, `event`, and only the first of them is bet on. "resolution" also needs outcomes that come
    sooner or later independently of what they are, and that forecasts made meanwhile do not tell of
    them: where ones are known at once and zeros late, it raises false alarms, always. "chains"
    needs nothing: a forecast is bet on only by a chain whose last outcome was known before, and the
    chains' evidence is not multiplied. It is slow to find a change, by about the number of chains
    (docs/monitor.md, section 5).

    **0 and 1.** A forecast of exactly 0 or 1 that is wrong is refuted for certain: there is an
    alarm, whatever the rest. Do not round probabilities to 0 or 1.

    A round costs O(1) for each group that it is of, about 0.1 us in a batch. Calls happen as a
    whole or not at all; see `Recalibrator`.

    Examples
    --------
    >>> m = Monitor(alpha=0.01)
    >>> m.update(0.83, 1)
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.1, 0.9, 4_000)
    >>> m.update_many(p, rng.random(4_000) < p)  # right: nothing to see
    >>> m.alarm is None, m.evidence < 10
    (True, True)
    >>> m.update_many(p, rng.random(4_000) < p - 0.08)  # they are 8 points too high from here on
    >>> print(m.alarm.direction, m.alarm.since // 1000)
    too high 4
    >>> Monitor.from_json(m.to_json()).evidence == m.evidence
    True
    """

    _builds = ("ClassMonitor",)

    def __new__(cls, *, classes: Any = None, **options: Any) -> Any:
        """Return one for outcomes of 0 and 1, or a `ClassMonitor` if there are `classes`."""
        if classes is None or cls is not Monitor:
            return super().__new__(cls)
        from truecast.monitor.class_monitor import ClassMonitor

        return super().__new__(ClassMonitor)

    def __init__(
        self,
        *,
        alpha: float | None = None,
        mean_time: float | None = None,
        order: str = "issue",
        chains: int = 100,
        max_groups: int = 1_000,
        max_unresolved: int = 100_000,
        classes: Any = None,
    ) -> None:
        if alpha is not None and mean_time is not None:
            raise InputError(
                "mean_time", "must be given without alpha: choose one promise", mean_time
            )
        self._alpha = self._mean_time = None
        if mean_time is not None:
            self._mean_time = _check.within("mean_time", mean_time, *MEAN_TIMES)
        else:
            self._alpha = _check.within("alpha", 0.01 if alpha is None else alpha, *ALPHAS)
        self._order = _check.choice("order", order, ORDERS)
        self._chains = _check.whole_number("chains", chains, least=1, most=MAX_CHAINS)
        self._max_groups = _check.whole_number("max_groups", max_groups, least=0, most=MAX_GROUPS)
        self._max_unresolved = _check.whole_number(
            "max_unresolved", max_unresolved, least=1, most=MAX_UNRESOLVED
        )
        super().__init__(
            self._mean_time is None,
            self.threshold,
            ORDERS.index(order),
            self._chains if order == "chains" else 1,
            self._max_groups,
            self._max_unresolved,
            0 if classes is None else len(classes),
        )

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this anew."""
        return {
            "alpha": self._alpha,
            "mean_time": self._mean_time,
            "order": self._order,
            "chains": self._chains,
            "max_groups": self._max_groups,
            "max_unresolved": self._max_unresolved,
        }

    @property
    def threshold(self) -> float:
        """Evidence of this much is an alarm: 1/alpha rounded up, or `mean_time`."""
        if self._mean_time is not None:
            return self._mean_time
        alpha = self._alpha or ALPHAS[0]
        return math.nextafter(1.0 / alpha, math.inf)

    @property
    def evidence(self) -> float:
        """How much the bets have made of 1, or, with `mean_time`, of 1 a round since the restart.

        Under right forecasts its mean is at most 1 after any number of rounds (at most that number,
        with `mean_time`). It falls as well as rises; `peak` is the most there was. inf if a
        forecast of exactly 0 or 1 was wrong.
        """
        return finite(self._look(0)[0])

    @property
    def peak(self) -> float:
        """The most evidence there was. With `alpha`, 1/peak is a p-value that is valid now."""
        return finite(self._look(0)[1])

    @property
    def alarms(self) -> int:
        """Alarms so far, not counting those of groups; at most 1 with `alpha`."""
        return self._look(0)[2]

    @property
    def alarm(self) -> Finding | None:
        """The alarm: the first with `alpha`, the last with `mean_time`; None if there was none.

        Those of groups are in `groups`. If there is a `caution`, it is given as a warning.
        """
        last = self._look(0)[6]
        if last is None:
            return None
        if (caution := self.caution) is not None:
            warnings.warn(caution, UserWarning, stacklevel=2)
        return self._found(last)

    def _found(self, numbers: tuple[Any, ...]) -> Finding:
        return found(numbers)

    @property
    def caution(self) -> str | None:
        """Why alarms may be false although the forecasts are right; None if nothing shows it.

        In the order "resolution", outcomes must come sooner or later independently of what they
        are. If ones and zeros are late by lags that differ beyond chance, they do not. (Lags that
        do not differ prove nothing.)
        """
        if self._order != "resolution":
            return None
        zeros, ones = self._lags[:3], self._lags[3:]
        if min(zeros[0], ones[0]) < FEWEST_LAGS:
            return None
        late = [total / count for count, total, _ in (zeros, ones)]
        spread = [
            max(squares / count - (total / count) ** 2, 1.0 / count) / count
            for count, total, squares in (zeros, ones)
        ]
        if abs(late[1] - late[0]) < BEYOND_CHANCE * math.sqrt(sum(spread)):
            return None
        return (
            f"ones come {late[1]:.3g} forecasts later and zeros {late[0]:.3g}: bet on in the order "
            "in which they come, right forecasts raise alarms; use order='issue'"
        )

    @property
    def _late(self) -> bool:
        """Whether any outcome came after another forecast, or is awaited, or was given up."""
        zeros, of_zeros, _, ones, of_ones, _ = self._lags
        return bool(self.unresolved or self.given_up or of_zeros + of_ones > zeros + ones)

    @property
    def finding(self) -> Finding:
        """What there is to say now, alarm or not: since when, where, by how much."""
        return self._found(self._look(0)[5])

    @property
    def groups(self) -> Groups:
        """Every group seen so far, by name: its evidence, its alarm, what there is to say."""
        return Groups(self)

    @property
    def others(self) -> GroupEvidence:
        """What all groups beyond `max_groups` share."""
        return GroupEvidence(self, None)

    def _parts(self) -> Iterator[tuple[dict[str, str], Evidence]]:
        """The parts that metrics show, with their labels."""
        for name, group in self.groups.items():
            yield {"group": str(name)}, group

    def suspects(self, *, fdr: float = 0.1) -> list[str | int]:
        """Return groups such that on average at most this part of them is there for no reason.

        The e-BH procedure (docs/monitor.md, theorem 4). Groups may overlap. It holds for one look,
        at a time you choose by the outcomes bet on so far. Where outcomes are late, for all looks
        together, and in chains, it is at most 1 + ln m times this part, with m groups. `alarm` of a
        group holds for all looks together.

        Parameters
        ----------
        fdr
            The part of the groups returned that may be false, on average.

        Raises
        ------
        InputError
            If the monitor has a `mean_time`: its evidence has no mean of 1.
        """
        return self._suspects(self.groups, fdr)

    def _suspects(self, parts: Mapping[str | int, Evidence], fdr: float) -> list[str | int]:
        fdr = _check.within("fdr", fdr, 1e-9, 1.0)
        if self._mean_time is not None:
            raise InputError("fdr", "is for monitors with alpha: use alarm of each", fdr)
        return e_bh({name: part.evidence for name, part in parts.items()}, fdr)

    def update_many(
        self,
        p: ArrayLike,
        y: ArrayLike,
        *,
        groups: Any = None,
        known_at: ArrayLike | None = None,
        events: Any = None,
        out: NDArray[np.float64] | None = None,
    ) -> None:
        """Learn the outcomes of many forecasts, in order: `update` in a loop, bit for bit.

        Other threads run meanwhile. Interrupted, by Ctrl-C say, it has learned nothing.

        Parameters
        ----------
        p, y
            Forecasts in [0, 1], and outcomes, 0 or 1, as many.
        groups
            The group of each, as many: a name, a tuple of several, or None.
        known_at
            The row after which each outcome is known, counted from 0: its own row or a later one.
            This replays a log as it happened, bit for bit: `issue` for each row, and `resolve` for
            row t after row ``known_at[t]``, in the order of rows. Outcomes known only after the
            last row stay `awaited`; those of forecasts that were given up are ignored.
        events
            The event of each, or None, as for `issue`; only with `known_at`.
        out
            Where to write the evidence after each round: float64, contiguous, as many. What is
            certain is written as 1e300.

        Raises
        ------
        InputError
            If a forecast, an outcome, a group, an event or an entry of `known_at` breaks its rule,
            or the lengths differ. Nothing changes.

        Examples
        --------
        >>> m = Monitor()
        >>> m.update_many([0.6, 0.7, 0.8, 0.9], [0, 1, 1, 1], known_at=[2, 1, 5, 3])
        >>> m.rounds, m.awaited  # row 3 waits for row 2, which was not known when the log ended
        (2, [2])
        """
        said, came = _core.scored("p", p, y)
        names = None if groups is None else _check.groups(groups, len(came), p)
        late = _check.late(known_at, events, len(came), p) or (_NONE, _NONE)
        trace = np.empty(0) if out is None else _check.output(out, came, said)
        self._run(said, came, names, *late, trace)

    def issue(self, p: float, *, group: _check.Group = None, event: str | int | None = None) -> int:
        """Return a ticket for a forecast whose outcome will come later.

        Parameters
        ----------
        p
            The forecast.
        group
            The name or number of its group, or a tuple of several.
        event
            The name or number of the event that it is about, if several forecasts are about the
            same. While one of them awaits its outcome, no other is bet on.

        Raises
        ------
        InputError
            If the forecast, the group or the event breaks its rule. Nothing changes.
        """
        return self._issue(p, group, event)

    def issue_many(
        self, p: ArrayLike, *, groups: Any = None, events: Any = None
    ) -> NDArray[np.int64]:
        """Return tickets for many forecasts: `issue` in a loop, bit for bit, but faster.

        Parameters
        ----------
        p
            The forecasts, in order.
        groups, events
            The group and the event of each, or None.

        Raises
        ------
        InputError
            If a forecast, a group or an event breaks its rule, or the lengths differ. Nothing
            changes; nor does it if this is interrupted.
        """
        said = _check.scores("p", p)
        names = None if groups is None else _check.groups(groups, len(said), p)
        about = _NONE if events is None else _check.events(events, len(said), p)
        order = np.zeros(len(said), np.uint8)
        first = self._steps(said, names, about, _NONE, np.empty(0, np.uint8), order)
        return np.arange(first, first + len(said))

    def resolve_many(self, tickets: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn the outcomes of issued forecasts: `resolve` in a loop, bit for bit, but faster.

        Raises
        ------
        InputError
            If an outcome is neither 0 nor 1, or a ticket was never issued; TicketError if one
            awaits no outcome any more. Nothing changes then: none is resolved.
        """
        numbers, y = _check.tickets(tickets, outcomes)
        order = np.ones(len(y), np.uint8)
        self._steps(np.empty(0), None, _NONE, numbers, y, order)

    def give_up(self, ticket: int, *, at_random: bool = False) -> None:
        """Stop waiting for an outcome.

        The forecast is counted as the outcome that speaks less against it, bet by bet: then the
        promises hold whatever the reason, in chains. In the order of issue, it must not depend on
        outcomes of later forecasts: bets that learn from outcomes need that. In the order of
        resolution, when you give up must not depend on what the outcome is (docs/monitor.md,
        section 5). It costs evidence; if many never come, there may be none.

        Parameters
        ----------
        ticket
            What `issue` gave.
        at_random
            Leave it out instead. That is right only if outcomes are lost independently of what they
            are.

        Raises
        ------
        InputError
            If the ticket was never issued; TicketError if it awaits no outcome any more.
        """
        self._give_up(ticket, _check.flag("at_random", at_random))

    def smooth_error(self, *, confidence: float = 0.95) -> SmoothInterval:
        """Return an interval for the smooth calibration error that holds at all times at once.

        It may begin at 0 beside an alarm: see `SmoothInterval`.

        Parameters
        ----------
        confidence
            The chance that it holds after every round so far and to come, at least.

        Examples
        --------
        >>> m = Monitor()
        >>> y = np.random.default_rng(1).random(100_000) < 0.4
        >>> m.update_many(np.full(100_000, 0.5), y)
        >>> found = m.smooth_error()
        >>> bool(0.05 < found.lower < 0.1 < found.upper)
        True
        """
        alpha = 1.0 - _check.within("confidence", confidence, 0.5, 1.0 - 1e-12)
        if self._order == "chains":  # their residuals are no martingale together
            return SmoothInterval(math.nan, 0.0, 1.0, confidence)
        residual, width, known = self._smooth()
        return smooth_interval(residual, width, known, self.rounds, alpha)

    def metrics(self, *, prefix: str = "truecast", **labels: str) -> str:
        """Return the numbers in the Prometheus text format.

        Parameters
        ----------
        prefix
            What the names of the metrics begin with.
        labels
            Labels of all of them, such as ``model="churn"``.
        """
        return exposition(self, prefix, labels)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        saved = self._saved()
        late = saved["late"]
        return {
            "book": plain(saved["book"]),
            "chains": [
                chain | {"accounts": [plain(account) for account in chain["accounts"]]}
                for chain in saved["chains"]
            ],
            "late": late | {"table": plain(late["table"])},
            "groups": saved["groups"],
        }

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        names, numbers = checked(state)
        try:
            self._load(names, numbers)
        except (ValueError, OverflowError, RuntimeError) as error:
            raise StateError(f"the saved monitor must fit together: {error}") from error
