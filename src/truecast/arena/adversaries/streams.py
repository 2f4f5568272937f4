"""Outcomes that are fixed before the game, whatever is forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.arena.adversaries.base import Stream
from truecast.errors import InputError

__all__ = ["Blocks", "Coins", "Constant", "Drift", "Given", "Periodic"]

_MOST = 2**53


class Constant(Stream):
    """The same outcome for ever. Sees nothing."""

    def __init__(self, bit: int = 1) -> None:
        self._bit = _check.outcome(bit, name="bit")

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of this many rounds."""
        return np.full(rounds, self._bit, np.uint8)


class Periodic(Stream):
    """A pattern, over and over. Sees nothing."""

    def __init__(self, pattern: Sequence[int] = (0, 1)) -> None:
        bits = _check.outcomes(pattern, name="pattern")
        if not len(bits):
            raise InputError("pattern", "must have an outcome or more", pattern)
        self._pattern = tuple(bits.tolist())

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of this many rounds."""
        return np.resize(np.array(self._pattern, np.uint8), rounds)


class Coins(Stream):
    """Independent outcomes of one rate. Sees nothing."""

    random = True

    def __init__(self, rate: float = 0.5) -> None:
        self._rate = _check.probability("rate", rate)

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of this many rounds."""
        return (rng.random(rounds) < self._rate).astype(np.uint8)


class Drift(Stream):
    """Independent outcomes of a rate that rises and falls in each period. Sees nothing."""

    random = True

    def __init__(self, period: int | None = None) -> None:
        self._period = (
            None if period is None else _check.whole_number("period", period, least=1, most=_MOST)
        )

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of this many rounds; without a period, three of them make a game."""
        period = self._period or max(rounds / 3, 1)
        rate: NDArray[np.float64] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(rounds) / period)
        return (rng.random(rounds) < rate).astype(np.uint8)


class Blocks(Stream):
    """Zeros, then the same number of ones, and so on. Sees nothing."""

    def __init__(self, length: int | None = None) -> None:
        self._length = (
            None if length is None else _check.whole_number("length", length, least=1, most=_MOST)
        )

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the outcomes of n rounds; without a length, it is the root of n."""
        length = self._length or max(round(rounds**0.5), 1)
        return (np.arange(rounds) // length % 2).astype(np.uint8)


class Given(Stream):
    """These outcomes and no more, such as the worst that a search has found. Sees nothing."""

    def __init__(self, outcomes: ArrayLike) -> None:
        self._outcomes = tuple(_check.outcomes(outcomes).tolist())

    def stream(self, rounds: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return the first of the outcomes."""
        if rounds > len(self._outcomes):
            raise InputError(
                "rounds", f"must be at most the {len(self._outcomes)} outcomes given", rounds
            )
        return np.array(self._outcomes[:rounds], np.uint8)
