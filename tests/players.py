"""Forecasters to play with: light to import, as processes that play start with that."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any

import truecast as tc
from truecast.arena.forecasters.base import RandomForecaster


class Dice(RandomForecaster):
    """Says 0 or 1, whichever it draws."""

    bounds = "by value"

    @property
    def config(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def _mixture(self) -> tuple[tuple[float, float], ...]:
        return (0.0, 0.5), (1.0, 0.5)

    def _learn(self, p: float, y: int) -> None:
        pass

    def _bound(self, rounds: int) -> float:
        return float(rounds)


class Own:
    """A user's forecaster, with no more than a game needs, and a repr that has its address."""

    def predict(self) -> float:
        return 0.25

    def observe(self, outcome: int) -> None:
        pass


def aosa(rounds: int, seed: int, grid: int | None = None) -> Any:
    return tc.AlmostOneStepAhead(horizon=rounds, grid=grid)


def dice(rounds: int, seed: int) -> Any:
    return Dice(seed)


def own(rounds: int, seed: int) -> Any:
    return Own()


def broken(rounds: int, seed: int) -> Any:
    if rounds > 5:
        raise ZeroDivisionError("no such thing")
    return Own()


def deadly(rounds: int, seed: int) -> Any:
    if multiprocessing.parent_process() is not None:  # so in one that plays
        os._exit(3)
    return Own()


class DeafFromTheStart:
    """Becomes, where it is unpacked, whether Ctrl-C is ignored there."""

    def __reduce__(self) -> Any:
        return _deaf, ()


def deaf(from_the_start: bool, task: int) -> tuple[bool, bool]:
    return from_the_start, _deaf()


def _deaf() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN
