"""A game: a forecaster against an adversary, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from truecast import _check
from truecast.arena.adversaries.base import Adversary, Sees, Stream
from truecast.arena.forecasters.base import Distribution
from truecast.arena.transcript import Transcript, written
from truecast.errors import InputError

__all__ = ["Player", "Round", "play"]

MAX_ROUNDS = 10**9


class Player(Protocol):
    """What a game needs of a forecaster; ``distribution``, ``scored``, ``certificate`` are used where it has them."""

    def predict(self) -> float: ...  # noqa: D102

    def observe(self, outcome: Any, /) -> None: ...  # noqa: D102


class Round:
    """What an adversary knows when it chooses an outcome.

    Attributes
    ----------
    rounds : int
        How many rounds the game has.
    rng : numpy.random.Generator
        The coins it may toss.
    said, outcomes : list
        The forecasts and the outcomes of the rounds before.
    """

    def __init__(self, forecaster: Player, rounds: int, rng: np.random.Generator, sees: Sees) -> None:
        self.rounds = rounds
        self.rng = rng
        self.said: list[float] = []
        self.outcomes: list[int] = []
        self._forecaster, self._sees = forecaster, sees

    @property
    def distribution(self) -> Distribution:
        """What may be said in this round, and how likely; what is said, if the adversary sees that."""
        if self._sees == "forecast":
            return ((self._forecaster.predict(), 1.0),)
        self._need("distribution")
        drawn: Distribution | None = getattr(self._forecaster, "distribution", None)
        return ((self._forecaster.predict(), 1.0),) if drawn is None else drawn

    @property
    def forecast(self) -> float:
        """What is said in this round."""
        self._need("forecast")
        return self._forecaster.predict()

    @property
    def forecaster(self) -> Any:
        """Who says it, to look at and not to touch."""
        self._need("forecast")
        return self._forecaster

    def _need(self, what: Sees) -> None:
        if self._sees != what:
            raise InputError("sees", f"must be {what!r} for an adversary that looks at it", self._sees)


def play(forecaster: Player, adversary: Adversary, rounds: int, *, seed: int = 0) -> Transcript:
    """Let a forecaster play against an adversary.

    The forecaster goes on from where it is and is changed by the game. The adversary starts afresh.

    Parameters
    ----------
    forecaster
        Any forecaster: of truecast, of `truecast.arena`, or your own with `predict` and `observe`.
    adversary
        Who chooses the outcomes.
    rounds
        How many.
    seed
        Of the adversary's coins. A forecaster that draws has a seed of its own.

    Returns
    -------
    transcript
        Forecasts and outcomes, and ways to measure and draw them.

    Raises
    ------
    InputError
        If rounds or seed break their rules, the adversary cannot play against this forecaster, or it chooses
        something else than 0 or 1; what was played until then stays played.

    Examples
    --------
    >>> import truecast as tc
    >>> game = play(tc.AlmostOneStepAhead(horizon=400), tc.arena.Threshold(), rounds=400)
    >>> game.distance().lower <= game.certificate.bound <= 2 * 400**0.5 + 1
    True
    """
    rounds = _check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS)
    seed = _check.whole_number("seed", seed, least=0, most=2**63)
    if not isinstance(adversary, Adversary):
        raise InputError("adversary", "must be an Adversary of truecast.arena", adversary)
    if not adversary.plays(forecaster):
        raise InputError("forecaster", f"must be one that {adversary!r} can play against", forecaster)
    game = Round(forecaster, rounds, np.random.default_rng([seed, 1]), adversary.sees)
    scored = getattr(forecaster, "scored", None)
    many = getattr(forecaster, "forecast_many", None)
    if isinstance(adversary, Stream) and many is not None and getattr(forecaster, "interval", None) is None:
        y = adversary.stream(rounds, game.rng)
        return written(forecaster, adversary, seed, many(y), y)
    choices = adversary.outcomes(game)
    for t in range(rounds):
        p = forecaster.predict()
        y_t = _next(choices, t)
        game.said.append(p if scored is None else scored(y_t))
        forecaster.observe(y_t)
        game.outcomes.append(y_t)
    return written(forecaster, adversary, seed, np.array(game.said, np.float64), np.array(game.outcomes, np.uint8))


def _next(choices: Iterator[int], t: int) -> int:
    y = next(choices, None)
    if y not in (0, 1):
        raise InputError("adversary", "must choose 0 or 1 in every round", y, t)
    return int(y)
