"""The monitor for several classes: each class's probabilities are bet against, and the largest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.errors import InputError
from truecast.monitor.finding import Finding, found
from truecast.monitor.groups import Evidence, Look
from truecast.monitor.monitor import Monitor
from truecast.recalibrate.class_rows import Label, Labels

__all__ = ["ClassMonitor", "Classes"]

ORDERS = "issue", "resolution"
_REMEDY = "normalize=True divides each by its sum"


class ClassMonitor(Monitor):
    """Watch whether forecasts of several classes stay calibrated, class by class.

    ``Monitor(classes=...)`` builds it. If the rows are right, the chance of each class, given all
    that was known, is the probability that was said for it. So its bets are those of a `Monitor` on
    "this class, or another", for each class; and on "the class said to be likeliest, or another",
    the `confidence`. That one has half of each stake, the classes share the other half. The
    promises are for all of them together: with ``alpha`` the chance that any of those that are
    right *ever* raises an alarm is at most alpha; with ``mean_time`` there is on average at most
    one false alarm in that many rows (docs/monitor.md, theorem 8).

    `evidence` is that of the one which has most; `alarm` names it: ``alarm.label`` is the class, or
    None for the confidence. It does not see errors that leave every class's own probabilities
    calibrated: given the whole row, they may be off.

    Parameters
    ----------
    classes
        How many: labels are then 0, 1, ...; or their names, str or int.
    alpha, mean_time, max_unresolved
        As for `Monitor`.
    order
        "issue" or "resolution", as for `Monitor`.
    normalize
        Whether rows that do not sum to 1 are divided by their sum. Else those beyond 1e-6 are
        refused.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A row costs about 0.1 us for each class in a batch. Groups and events are not supported yet.
    `smooth_error` is that of the confidence.

    Examples
    --------
    >>> m = Monitor(classes=["home", "draw", "away"], alpha=0.01)
    >>> m.update([0.5, 0.3, 0.2], "draw")
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.dirichlet([2, 3, 4], 4_000)
    >>> y = (rng.random((4_000, 1)) > rows.cumsum(axis=1)).sum(axis=1)
    >>> names = np.array(m.labels)
    >>> m.update_many(rows, names[y])  # right: nothing to see
    >>> m.alarm is None
    True
    >>> y[rng.random(4_000) < 0.1] = 2  # one in ten becomes an away win
    >>> m.update_many(rows, names[y])
    >>> m.alarm.label, m.alarm.direction
    ('away', 'too low')
    """

    def __init__(
        self,
        *,
        classes: Any,
        alpha: float | None = None,
        mean_time: float | None = None,
        order: str = "issue",
        max_unresolved: int = 100_000,
        normalize: bool = False,
    ) -> None:
        self._labels = Labels(classes)
        self._normalize = _check.flag("normalize", normalize)
        super().__init__(
            alpha=alpha,
            mean_time=mean_time,
            order=_check.choice("order", order, ORDERS),
            max_unresolved=max_unresolved,
            classes=self._labels,
        )

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this anew."""
        of_both = "alpha", "mean_time", "order", "max_unresolved"
        return {
            "classes": self._labels.config,
            **{name: super(ClassMonitor, self).config[name] for name in of_both},
            "normalize": self._normalize,
        }

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes, in the order of the columns."""
        return self._labels.names

    @property
    def classes(self) -> Classes:
        """Every class by its label: its evidence, its alarm, what there is to say."""
        return Classes(self)

    @property
    def confidence(self) -> Evidence:
        """The same of the probability of whichever class is said to be likeliest."""
        return _ClassEvidence(self, None)

    def _parts(self) -> Iterator[tuple[dict[str, str], Evidence]]:
        """The parts that metrics show, with their labels."""
        yield {"part": "confidence"}, self.confidence
        for label, each in self.classes.items():
            yield {"class": str(label)}, each

    def _found(self, numbers: tuple[Any, ...]) -> Finding:
        chain = numbers[-1]
        return found(numbers, self.labels[chain - 1] if chain else None)

    def suspects(self, *, fdr: float = 0.1) -> list[str | int]:
        """Return classes such that on average at most this part of them is there for no reason.

        As `Monitor.suspects` for groups; the confidence is not among them.

        Parameters
        ----------
        fdr
            The part of the classes returned that may be false, on average.

        Raises
        ------
        InputError
            If the monitor has a `mean_time`: its evidence has no mean of 1.
        """
        return self._suspects(self.classes, fdr)

    def update(self, row: ArrayLike, label: Any, group: None = None) -> None:  # type: ignore[override]
        """Learn which class came of a row of probabilities, before the next one is said.

        Parameters
        ----------
        row
            A probability for each class; they sum to 1.
        label
            The class that came.
        group
            Not supported yet with classes: None.

        Raises
        ------
        InputError
            If the row or the label breaks its rule. Nothing changes.
        """
        _refuse_groups(group=group)
        self._update_row(self._row(row), self._labels.number(label, "label"))

    def update_many(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        groups: None = None,
        known_at: ArrayLike | None = None,
        events: None = None,
        out: NDArray[np.float64] | None = None,
    ) -> None:
        """Learn the outcomes of many rows, in order: `update` in a loop, bit for bit.

        Other threads run meanwhile. Interrupted, by Ctrl-C say, it has learned nothing.

        Parameters
        ----------
        rows
            A row for each round, a column for each class. Of a frame, the columns that are called
            as the classes.
        labels
            The class that came of each row.
        groups, events
            Not supported yet with classes: None.
        known_at
            After which row each outcome is known, as for `Monitor.update_many`.
        out
            Where to write the evidence after each row: float64, contiguous, as many.

        Raises
        ------
        InputError
            If a row, a label or an entry of `known_at` breaks its rule, or the lengths differ.
            Nothing changes.
        """
        _refuse_groups(groups=groups, events=events)
        _check._refuse_misaligned("rows", rows, "labels", labels)
        came = self._labels.numbers(labels, "labels")
        said = self._labels.rows(
            rows,
            scale="probability",
            normalize=self._normalize,
            argument="rows",
            remedy=_REMEDY,
        )
        if len(said) != len(came):
            rule = f"must have a row for each of the {len(came)} labels"
            raise InputError("rows", rule, f"shape {said.shape}")
        trace = np.empty(0) if out is None else _output(out, said, came)
        _check._refuse_misaligned("known_at", known_at, "rows", rows)
        late = np.empty(0, np.int64) if known_at is None else _check.known_at(known_at, len(came))
        self._run_rows(said, came, late, trace)

    def issue(self, row: ArrayLike, *, group: None = None, event: None = None) -> int:  # type: ignore[override]
        """Return a ticket for a row whose outcome will come later.

        Parameters
        ----------
        row
            A probability for each class.
        group, event
            Not supported yet with classes: None.

        Raises
        ------
        InputError
            If the row breaks its rule. Nothing changes.
        """
        _refuse_groups(group=group, event=event)
        return self._issue_row(self._row(row))

    def issue_many(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported yet with classes: use `issue` for each row."""
        _refuse_many("issue")

    def resolve_many(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported yet with classes: use `resolve` for each row."""
        _refuse_many("resolve")

    def resolve(self, ticket: object, label: Any) -> None:
        """Learn the class that came of an issued row.

        Raises
        ------
        InputError
            If it is not one of the classes, or the ticket was never issued. Nothing changes.
        TicketError
            If the ticket is resolved or given up already. Nothing changes.
        """
        self._resolve_row(ticket, self._labels.number(label, "label"))

    def _row(self, row: ArrayLike) -> NDArray[np.float64]:
        return self._labels.row(
            row, scale="probability", normalize=self._normalize, argument="row", remedy=_REMEDY
        )


class _ClassEvidence(Evidence):
    """The evidence against one class's probabilities, or, for None, against the largest ones."""

    __slots__ = ("_label",)

    _monitor: ClassMonitor

    def __init__(self, monitor: ClassMonitor, label: Label | None) -> None:
        self._monitor, self._label = monitor, label

    def _look(self) -> Look:
        chain = 0 if self._label is None else 1 + self._monitor._labels.number(self._label)
        return self._monitor._look(0, chain)


class Classes(Mapping[str | int, Evidence]):
    """The classes of a monitor by label, in the order of the columns."""

    __slots__ = ("_monitor",)

    def __init__(self, monitor: ClassMonitor) -> None:
        self._monitor = monitor

    def __getitem__(self, label: Label) -> Evidence:
        if label not in self._monitor.labels:
            raise KeyError(label)
        return _ClassEvidence(self._monitor, label)

    def __iter__(self) -> Iterator[Label]:
        return iter(self._monitor.labels)

    def __len__(self) -> int:
        return len(self._monitor.labels)

    def __repr__(self) -> str:
        return f"Classes({list(self)!r:.400})"


def _output(out: Any, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    trace = _check.output(out, np.empty(len(labels), np.uint8))
    for name, read in (("rows", rows), ("labels", labels)):
        if np.may_share_memory(trace, read):
            raise InputError("out", f"must not share memory with {name}", out)
    return trace


def _refuse_groups(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(name, "must be None: not supported yet with classes", value)


def _refuse_many(call: str) -> NoReturn:
    rule = f"must be None for {call}_many(): use {call}() for each row"
    raise InputError("classes", rule, "several classes")
