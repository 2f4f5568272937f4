"""What a recalibrator knows about its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from truecast import _check, _core
from truecast._names import counted
from truecast.errors import InputError, StateError
from truecast.ledger import certify

if TYPE_CHECKING:
    from truecast.certificate import ArcCertificate
    from truecast.recalibrate.class_certificate import ClassCertificate
    from truecast.recalibrate.class_rows import Label

Record = TypeVar("Record")

_MOST_COMPARED = 10_000  # names among which a message looks for similar ones


class _Record:
    """Of one group by name, or None for all others: a live view of the recalibrator."""

    __slots__ = "_desk", "_name"

    _desk: _core.DeskBase

    def __init__(self, desk: _core.DeskBase, name: str | int | None) -> None:
        self._desk, self._name = desk, name

    @property
    def _number(self) -> int:
        """It is another one after a state was loaded."""
        return 1 if self._name is None else self._desk.number_of(self._name)

    def _counts(self) -> tuple[int, int, int]:
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._counts()[0]

    @property
    def unresolved(self) -> int:
        """Forecasts issued whose outcomes are awaited."""
        return self._counts()[1]

    @property
    def given_up(self) -> int:
        """Forecasts whose outcomes are no longer awaited."""
        return self._counts()[2]

    def __repr__(self) -> str:
        rounds, late, lost = self._counts()
        return f"{type(self).__name__}(rounds={rounds}, unresolved={late}, given_up={lost})"


class GroupRecord(_Record):
    """The forecasts of one group: a live view of the recalibrator."""

    __slots__ = ()

    _desk: _core.Desk

    def _parts(self) -> tuple[Any, ...]:
        return self._desk.alone(lambda: self._desk.parts(self._number))

    def _counts(self) -> tuple[int, int, int]:
        rounds, late, lost, *_ = self._parts()
        return rounds, late, lost

    @property
    def certificate(self) -> ArcCertificate:
        """What is proved about the forecasts of this group so far. Costs O(knots)."""
        return certify(self._parts())


class ClassGroupRecord(_Record):
    """The forecasts of one group, of several classes: a live view of the recalibrator."""

    __slots__ = ("_labels",)

    _desk: _core.ClassDesk

    def __init__(
        self, desk: _core.ClassDesk, name: str | int | None, labels: tuple[Label, ...]
    ) -> None:
        super().__init__(desk, name)
        self._labels = labels

    def _counts(self) -> tuple[int, int, int]:
        rounds, late, lost, *_ = self._desk.alone(lambda: self._desk.parts(self._number, 0, False))
        return rounds, late, lost

    @property
    def certificate(self) -> ClassCertificate:
        """What is proved about the forecasts of this group so far. Costs O(knots)."""
        from truecast.recalibrate.class_certificate import certify_classes

        parts = self._desk.alone(lambda: class_parts(self._desk, self._number, len(self._labels)))
        return certify_classes(self._labels, *parts)


def class_parts(desk: _core.ClassDesk, group: int, classes: int) -> tuple[list[Any], list[Any]]:
    """What the certificate of a group is made of: each class, and each as the top label."""
    each, top = ([desk.parts(group, k, kind) for k in range(classes)] for kind in (False, True))
    return each, top


class Groups(Mapping[str | int, Record]):
    """The groups of a recalibrator by name, in order of appearance."""

    __slots__ = "_desk", "_record"

    _desk: _core.DeskBase

    def __init__(self, desk: _core.DeskBase, record: Callable[[Any, str | int], Record]) -> None:
        self._desk, self._record = desk, record

    def __getitem__(self, group: str | int) -> Record:
        self._desk.number_of(group)  # KeyError, if there is no such group
        return self._record(self._desk, group)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._desk.names)

    def __len__(self) -> int:
        return self._desk.groups

    def __repr__(self) -> str:
        return f"Groups({self._desk.names!r:.400})"


def require_known(groups: Groups[Any], wanted: _check.Group) -> None:
    """Refuse a group that is not there, and say which may be meant."""
    names = wanted if isinstance(wanted, tuple) else (wanted,)
    for name in names:
        if name is not None and name not in groups:
            rule = f"must be one of its {counted(len(groups), 'group')}{_perhaps(name, groups)}"
            raise InputError("group", f"{rule}, or None for rounds of no group", name)


def _perhaps(name: str | int, groups: Groups[Any]) -> str:
    """Return the groups called much like this, in any case."""
    if len(groups) > _MOST_COMPARED:
        return ""
    import difflib

    keys = {str(group).casefold(): group for group in groups}
    close = difflib.get_close_matches(str(name).casefold(), keys)
    return f" (perhaps {' or '.join(repr(keys[key]) for key in close)})" if close else ""


def saved_names(names: object, most: int) -> list[_check.Group]:
    """The saved names of groups, or StateError."""
    if not isinstance(names, list) or len(names) > most:
        raise StateError(f"the saved groups must be a list of at most {most}")
    try:
        groups = [_check.group(name) for name in names]
    except InputError as error:
        raise StateError(f"the saved groups must be distinct names: {error}") from error
    if any(type(group) not in (str, int) for group in groups) or len(set(groups)) != len(groups):
        raise StateError("the saved groups must be distinct names")
    return groups
