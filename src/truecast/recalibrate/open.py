"""Your own hints: any Python object that predicts and learns, as the recalibrator uses it."""

from __future__ import annotations

import copy
import math
from typing import Any, NoReturn, Protocol, Self

from truecast import _check, _core
from truecast.errors import InputError, StateError
from truecast.recalibrate.hints import Hint
from truecast.recalibrate.hints.base import MAX_MODELS, is_compiled

__all__ = ["Calls", "HintLike", "OpenHint", "takes_notes"]

NEEDED = "must be one of truecast.hints, or an object with predict(score) and learn(score, outcome)"


class HintLike(Protocol):
    """What a recalibrator needs from a hint; for the optional rest see `Recalibrator`.

    If `learn` has an argument `weight` (or takes any keyword), it gets one above 0 and at most 1:
    the part of an observation that the outcome is, if many resolve together. Otherwise every
    outcome counts in full. If the object has an attribute `models` above 1, a score is a list of
    that many numbers.
    """

    def predict(self, score: Any, /) -> float:
        """Return the probability for a score."""

    def learn(self, score: Any, outcome: Any, /) -> None:
        """Learn the outcome of a score."""


class Calls:
    """A copy of your object, behind the checks that a compiled hint does not need.

    Scores are checked already. Errors of the object become the house's, with the row if they happen
    in a batch.
    """

    def __init__(self, own: HintLike, *, logit: bool) -> None:
        if isinstance(own, type) or not all(
            callable(getattr(own, name, None)) for name in ("predict", "learn")
        ):
            raise InputError("hint", NEEDED, own)
        self.own: Any = _copied(own)
        self.name = type(own).__name__
        self.logit = logit
        self.models = _models(own)
        self.weighs = _takes_weight(own)
        self.notes = 0  # how many it gives
        if isinstance(own, Hint):  # a subclass asks the core
            self.own._logit = logit
        if takes_notes(own):
            self.notes = len(
                self._issued(0.5 if self.models == 1 else [0.5] * self.models, None)[1]
            )

    def copy(self) -> Self:
        """A copy that continues independently."""
        made = copy.copy(self)
        made.own = _copied(self.own)
        return made

    def predict(self, score: float | list[float], position: int | None) -> float:
        """What it says, if that is a probability."""
        try:
            said = self.own.predict(score)
        except Exception as error:
            self._refuse("predict", error, position)
        return self._probability(said, position)

    def issue(self, score: float | list[float], position: int | None) -> tuple[float, list[float]]:
        """What it says, and its notes: none unless it has a method issue()."""
        if not self.notes:
            return self.predict(score, position), []
        said, notes = self._issued(score, position)
        if len(notes) != self.notes:
            rule = f"must always give {self.notes} notes from {self.name}.issue()"
            raise InputError("hint", rule, notes, position)
        return said, notes

    def learn(
        self,
        score: float | list[float],
        outcome: int,
        notes: list[float],
        weight: float,
        position: int | None,
    ) -> None:
        """Have it learn, with its notes if there are any, and the weight if it takes one."""
        try:
            self.own.learn(
                score,
                outcome,
                *([notes] if notes else []),
                **({"weight": weight} if self.weighs else {}),
            )
        except Exception as error:
            self._refuse("learn", error, position)

    def state(self) -> Any:
        """What its state() gives, if that is plain data."""
        if not callable(getattr(self.own, "state", None)) or not callable(
            getattr(self.own, "load", None)
        ):
            raise StateError(
                f"the hint {self.name} cannot be saved: "
                "it needs state() -> plain data, and load(state)"
            )
        import json

        try:
            found = self.own.state()
            plain = json.loads(json.dumps(found, allow_nan=False))
        except Exception as error:
            raise StateError(f"the hint {self.name} cannot be saved: {error!r:.200}") from error
        if plain != found:
            raise StateError(
                f"the state of the hint {self.name} must be plain data: "
                "what JSON gives back unchanged"
            )
        return plain

    def load(self, state: Any) -> None:
        """Have it load what its state() gave. If it fails, throw it away."""
        try:
            self.own.load(copy.deepcopy(state))
        except Exception as error:
            raise StateError(
                f"the hint {self.name} cannot load its saved state: {error!r:.200}"
            ) from error

    def _issued(
        self, score: float | list[float], position: int | None
    ) -> tuple[float, list[float]]:
        try:
            said, notes = self.own.issue(score)
        except Exception as error:
            self._refuse("issue", error, position)
        if not isinstance(notes, list) or not all(
            type(note) is float and math.isfinite(note) for note in notes
        ):
            rule = f"must give notes that are a list of finite floats from {self.name}.issue()"
            raise InputError("hint", rule, notes, position)
        return self._probability(said, position), notes

    def _probability(self, said: Any, position: int | None) -> float:
        try:
            return _check.probability("hint", said)
        except InputError as error:
            rule = f"must say a number between 0 and 1, not as {self.name}"
            raise InputError("hint", rule, said, position) from error

    def _refuse(self, method: str, error: Exception, position: int | None) -> NoReturn:
        rule = f"must not raise as {self.name}.{method}() does"
        raise InputError("hint", rule, f"{type(error).__name__}: {error}", position) from error


class OpenHint(_core.Hint):
    """A hint of your own as the desk takes it.

    When the core undoes a batch, it replaces what it calls by a copy.
    """

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls)
        self._logit = calls.logit

    @property
    def calls(self) -> Calls:
        """What the core asks."""
        calls: Calls = self._calls
        return calls

    @property
    def config(self) -> dict[str, Any]:
        """What is saved of it besides its state: its name, so that another is not taken for it."""
        return {"name": self.calls.name}

    def state(self) -> Any:
        """What the object's state() gives."""
        return self.calls.state()

    def load(self, state: Any) -> None:
        """Have the object load its state."""
        self.calls.load(state)


def takes_notes(own: Any) -> bool:
    """Whether it has an issue() of its own.

    That of the core answers by the core's predict(), not by a subclass's.
    """
    return callable(getattr(own, "issue", None)) and (
        is_compiled(own) or getattr(type(own), "issue", None) is not _core.Hint.issue
    )


def _models(own: Any) -> int:
    """How many scores a round of it has: what `models` says, or one."""
    return _check.whole_number("models", getattr(own, "models", 1), least=1, most=MAX_MODELS)


def _takes_weight(own: Any) -> bool:
    """Whether its learn() takes a weight; one whose arguments cannot be seen does not."""
    import inspect

    try:
        arguments = inspect.signature(own.learn).parameters.values()
    except (TypeError, ValueError):
        return isinstance(own, Hint)
    return any(a.name == "weight" or a.kind is a.VAR_KEYWORD for a in arguments)


def _copied(own: Any) -> Any:
    try:
        made = copy.deepcopy(own)
    except Exception as error:
        raise InputError(
            "hint", "must be an object that copy.deepcopy can copy", f"{own!r:.80}: {error}"
        ) from error
    # is copied through its saved state, which knows nothing of a subclass's attributes
    if isinstance(own, Hint):
        made.__dict__.update(copy.deepcopy(own.__dict__))
        made._logit = own._logit
    return made
