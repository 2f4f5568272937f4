"""What an adversary is, and what it may know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from truecast.arena.game import Round

__all__ = ["Adversary", "LadderAdversary", "Sees", "Stream"]

Sees = Literal["nothing", "distribution", "forecast"]


class Adversary(ABC):
    """Chooses the outcomes of a game.

    It knows the earlier rounds, and as much of the current one as it `sees`. A subclass declares
    what it `sees` and yields the outcomes one by one. It can look at the `Round` it is given, which
    is updated before each. It keeps nothing between games.
    """

    #: of the present forecast: "nothing", its "distribution" (what proofs of randomised
    #: forecasters allow), or the "forecast" itself and the forecaster that makes it
    sees: Sees = "nothing"
    #: whether it tosses coins; if neither player does, one game is enough
    random: bool = False

    def plays(self, forecaster: object) -> bool:
        """Whether it can play against this forecaster."""
        return True

    @abstractmethod
    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this adversary."""
        return {name.removeprefix("_"): value for name, value in vars(self).items()}

    def __repr__(self) -> str:
        options = ", ".join(
            f"{name}={value!r}" for name, value in self.config.items() if value is not None
        )
        return f"{type(self).__name__}({options})"


class Stream(Adversary):
    """An adversary whose outcomes are fixed before the game."""

    @abstractmethod
    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of this many rounds."""

    def outcomes(self, game: Round) -> Iterator[int]:
        """Yield an outcome for every round."""
        yield from self.stream(game.rounds, game.rng).tolist()


class LadderAdversary(Adversary):
    """An adversary that sees the forecaster's ladder, and plays against ladders only."""

    sees: Sees = "forecast"

    def plays(self, forecaster: object) -> bool:
        """Whether the forecaster is on a ladder."""
        return all(
            hasattr(forecaster, name) for name in ("points", "biases", "open_cell", "denominator")
        )
