"""A game: a forecaster against an adversary, round by round."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.arena.adversaries.base import Adversary, Sees, Stream
from truecast.arena.forecasters.base import Distribution
from truecast.arena.transcript import Transcript, written
from truecast.errors import InputError
from truecast.forecasters import Guard
from truecast.forecasters.base import OutcomeForecaster
from truecast.recalibrate import Recalibrator

__all__ = ["Player", "Round", "can_play", "play"]

MAX_ROUNDS = 10**9
_CHOICE = "must choose 0 or 1 in every round"


class Player(Protocol):
    """What a game needs from a forecaster.

    ``distribution``, ``scored`` and ``certificate`` are used if it has them.
    """

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
        The forecasts and the outcomes of earlier rounds.
    """

    def __init__(
        self, forecaster: Player, rounds: int, rng: np.random.Generator, sees: Sees
    ) -> None:
        self.rounds = rounds
        self.rng = rng
        self.said: list[float] = []
        self.outcomes: list[int] = []
        self._forecaster = forecaster
        self._sees = sees

    @property
    def distribution(self) -> Distribution:
        """The possible forecasts, with probabilities; or the forecast, if the adversary sees it."""
        if self._sees == "forecast":
            return ((self._forecaster.predict(), 1.0),)
        self._need("distribution")
        drawn: Distribution | None = getattr(self._forecaster, "distribution", None)
        return ((self._forecaster.predict(), 1.0),) if drawn is None else drawn

    @property
    def forecast(self) -> float:
        """The forecast of this round."""
        self._need("forecast")
        return self._forecaster.predict()

    @property
    def forecaster(self) -> Any:
        """Who says it, to look at and not to touch."""
        self._need("forecast")
        return self._forecaster

    def _need(self, what: Sees) -> None:
        if self._sees != what:
            raise InputError(
                "sees", f"must be {what!r} for an adversary that looks at it", self._sees
            )


def play(forecaster: Player, adversary: Adversary, rounds: int, *, seed: int = 0) -> Transcript:
    """Let a forecaster play against an adversary.

    The forecaster continues from its current state, and the game changes it. The adversary starts
    new.

    Parameters
    ----------
    forecaster
        Any forecaster: of truecast, of `truecast.arena`, or your own with `predict` and `observe`.
    adversary
        Who chooses the outcomes.
    rounds
        How many.
    seed
        For the adversary's randomness. A randomised forecaster has its own seed.

    Returns
    -------
    transcript
        Forecasts and outcomes, and ways to measure and draw them.

    Raises
    ------
    InputError
        If rounds or seed break their rules, the forecaster needs hints or scores, or the adversary
        cannot play against it. Also if a forecast is not a probability, or an outcome is not 0 or
        1; then the rounds played so far stay played.

    Examples
    --------
    >>> import truecast as tc
    >>> game = play(tc.AlmostOneStepAhead(horizon=400), tc.arena.Threshold(), rounds=400)
    >>> game.distance().totals[0] <= game.certificate.bound <= 2 * 400**0.5 + 1
    True
    """
    rounds = _check.whole_number("rounds", rounds, least=0, most=MAX_ROUNDS)
    seed = _check.whole_number("seed", seed, least=0, most=2**63)
    if not isinstance(adversary, Adversary):
        raise InputError("adversary", "must be an Adversary of truecast.arena", adversary)
    if not can_play(forecaster):
        rule = "must have predict() and observe(outcome), and need nothing else"
        raise InputError("forecaster", rule, forecaster)
    if not adversary.plays(forecaster):
        raise InputError(
            "forecaster", f"must be one that {adversary!r} can play against", forecaster
        )
    game = Round(forecaster, rounds, np.random.default_rng([seed, 1]), adversary.sees)
    scored = getattr(forecaster, "scored", None)
    single = not hasattr(forecaster, "interval")
    if isinstance(adversary, Stream) and isinstance(forecaster, OutcomeForecaster) and single:
        y = _all(adversary.stream(rounds, game.rng), rounds)
        return written(forecaster, adversary, seed, forecaster.forecast_many(y), y)
    choices = adversary.outcomes(game)
    for t in range(rounds):
        p_t = forecaster.predict()
        y_t = _next(choices, t)
        game.said.append(_probability(p_t if scored is None else scored(y_t), t))
        forecaster.observe(y_t)
        game.outcomes.append(y_t)
    p, y = np.array(game.said, np.float64), np.array(game.outcomes, np.uint8)
    return written(forecaster, adversary, seed, p, y)


def can_play(forecaster: object) -> bool:
    """Whether it forecasts from past outcomes alone, as far as one can tell; a class does not."""
    named = all(callable(getattr(forecaster, name, None)) for name in ("predict", "observe"))
    return named and not isinstance(forecaster, type | Guard | Recalibrator)


def _all(chosen: NDArray[np.uint8], rounds: int) -> NDArray[np.uint8]:
    # a copy: the adversary may keep its own
    y = np.array(_check.outcomes(chosen, name="adversary"))
    if len(y) != rounds:
        raise InputError("adversary", _CHOICE, y.shape)
    return y


def _next(choices: Iterator[int], t: int) -> int:
    y = next(choices, None)
    try:
        return _check.outcome(y)
    except InputError:
        raise InputError("adversary", _CHOICE, y, t) from None


def _probability(said: Any, t: int) -> float:
    try:
        p = float(said)
    except (TypeError, ValueError):
        p = math.nan
    if not 0 <= p <= 1:
        raise InputError("forecaster", "must say a number from 0 to 1 in every round", said, t)
    return p
