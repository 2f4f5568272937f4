"""What all hints share: the thin shell around a compiled hint."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from truecast import _check, _core
from truecast._renamed import renamed
from truecast.errors import InputError, StateError
from truecast.state import Entry, Saveable, kinds_of, require_entries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Hint"]

MAX_MEMORY = 10**12
MAX_PRIOR = 1e6
MAX_MODELS = 32


class Hint(_core.Hint, Saveable):
    """Turns a model's score into a better probability, learned from (score, outcome) pairs.

    `predict`, `issue` and `learn` come from the compiled core. `predict(score)` returns a number in
    [0, 1] and changes nothing; `learn(score, outcome)` learns one outcome. If other rounds are
    forecast before an outcome comes, call ``p, notes = hint.issue(score)`` and pass the notes to
    ``hint.learn(score, outcome, notes)``: a mix then judges its members by what they said at the
    time.

    Outcomes of many forecasts of one event together are one observation. Each then has a weight
    above 0 and at most 1: ``hint.learn(score, outcome, weight=0.1)`` counts as a tenth of an
    outcome, and older outcomes fade a tenth as much.

    A hint is only as good as the past resembles the future. It proves nothing, so a guard follows
    it only as far as the proof allows.

    A round costs O(1), the state a fixed number of floats.
    """

    _kinds: ClassVar[dict[str, type[Hint]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # others have methods that the core knows nothing of
        if cls.__module__.startswith(f"{__package__}."):
            Hint._kinds.setdefault(cls.__name__, cls)

    def __init__(
        self,
        kind: str,
        *,
        memory: int | None = None,
        prior: float = 1.0,
        members: Sequence[Hint] = (),
        models: int = 1,
    ) -> None:
        super().__init__(
            kind, 1.0 if memory is None else 1.0 - 1.0 / memory, prior, list(members), models
        )

    def __copy__(self) -> Self:
        if not is_compiled(self):
            rebuild, arguments = self.__reduce__()
            return cast("Self", rebuild(*arguments))
        # in the core: a state that just left it need not be checked, as a file's must
        made = type(self).__new__(type(self))
        _core.Hint.__init__(made, self)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)

    def forecast_many(self, scores: ArrayLike, outcomes: ArrayLike) -> NDArray[np.float64]:
        """Return a probability for every score, learning each outcome before the next score.

        The same as ``[(h.predict(x), h.learn(x, y))[0] for x, y in zip(scores, outcomes)]``, bit
        for bit, including the state; other threads can run meanwhile. A subclass with its own
        methods is called row by row, in Python.

        Parameters
        ----------
        scores
            What the model said, in order: one number in [0, 1] a round, or a row of them if there
            are several models.
        outcomes
            What happened: 0 or 1, one for each score.

        Returns
        -------
        hints
            One a round, each made before its outcome was learned.

        Raises
        ------
        InputError
            If a score is not in [0, 1], an outcome is not 0 or 1, or the lengths differ. Nothing
            changes.
        """
        x, y = _core.scored("scores", scores, outcomes, models=self._models)
        said = np.empty(len(y))
        if is_compiled(self):
            self._follow(x.reshape(-1), y, said)
            return said
        for t, (score, outcome) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
            said[t] = self.predict(score)
            self.learn(score, outcome)
        return said

    follow_many = renamed("follow_many", forecast_many)

    def state(self) -> dict[str, Any]:
        """Everything that learning can change, as plain data."""
        return self._saved()

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        if not self._restore(self._checked(state)):
            raise StateError(
                "the saved numbers do not fit together: no outcomes lead to this state"
            )

    _members = 0  # how many hints it is made of

    def _checked(self, state: object) -> dict[str, Any]:
        """The numbers of a saved state, those of members by themselves; or StateError."""
        own, *members = (
            checked_numbers(part, [Entry(*each) for each in listed])
            for part, listed in zip(self._parts(state), self._entries(), strict=True)
        )
        return own | {"members": members}

    def _parts(self, state: object) -> list[Any]:
        """The entries of this hint itself, then those of its members, not checked yet."""
        if not self._members:
            return [state]
        own = dict(state) if isinstance(state, dict) else {}
        members = own.pop("members", None)
        if not isinstance(members, list) or len(members) != self._members:
            raise StateError(f"the saved state must have {self._members} members")
        return [own, *members]


def checked_numbers(saved: object, entries: list[Entry]) -> dict[str, Any]:
    """The saved numbers of a hint, if they are the right number of floats, all in range."""
    found = require_entries("state", saved, sorted(kinds_of(entries)))
    return {entry.name: _numbers(found[entry.name], entry) for entry in entries}


def _numbers(saved: Any, entry: Entry) -> Any:
    name, _, length, least, most, _ = entry
    values = [saved] if length is None else _widened(name, saved, length)
    if not isinstance(values, list) or (length is not None and len(values) != length):
        raise StateError(f"the saved {name} must be {length} numbers")
    for number in values:
        if type(number) is not float or not least <= number <= most:
            raise StateError(
                f"the saved {name} must be floats from {least:g} to {most:g}, got {number!r:.80}"
            )
    return saved if length is None else values


def _widened(name: str, values: Any, length: int) -> Any:
    """The rows of an `Isotonic` as saved before it had knots beyond a logit of 16.

    Nothing was seen there.
    """
    if length != 321 or not isinstance(values, list) or len(values) != 129:
        return values
    ends = (values[0], values[-1]) if name in ("rates", "centres") else (0.0, 0.0)
    return [ends[0]] * 96 + values + [ends[1]] * 96


def is_compiled(hint: object) -> bool:
    """Whether the core does everything this hint does: not if its class is defined elsewhere."""
    return type(hint) in Hint._kinds.values()


def check_memory(memory: object) -> int | None:
    """Return the memory in rounds as an int, or None for all rounds."""
    return (
        None if memory is None else _check.whole_number("memory", memory, least=2, most=MAX_MEMORY)
    )


def check_prior(prior: object) -> float:
    """Return the strength of the prior, in rounds."""
    return _check.between("prior", prior, 0.0, MAX_PRIOR)


def from_config(description: Any, argument: str, position: int | None = None) -> Any:
    """Return a new hint if this is a `config` of one; return anything else unchanged."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if not isinstance(kind, str) or kind not in Hint._kinds:
        return description
    options = {name: value for name, value in description.items() if name != "kind"}
    try:
        return Hint._kinds[kind](**options)
    except TypeError as error:
        rule = f"must have the options of {kind}"
        raise InputError(argument, rule, description, position) from error


def build(description: object, position: int) -> Hint:
    """Return a member of a mix: the given one, or a new one as a mix's `config` describes it."""
    hint = from_config(description, "hints", position)
    if isinstance(hint, Hint) and not is_compiled(hint):
        rule = "must be hints of truecast: a mix would not use the methods of a subclass"
        raise InputError("hints", rule, hint, position)
    if not isinstance(hint, Hint) or hint._members:
        raise InputError("hints", "must be hints, none of them a mix", hint, position)
    return hint
