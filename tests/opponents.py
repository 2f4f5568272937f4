"""Ways to choose outcomes, fixed in advance or against the forecasts, for the tests to try everything on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from truecast.forecasters.base import LadderForecaster

Opponent = Callable[[LadderForecaster], Iterator[int]]


def coin(rate: float = 0.5, seed: int = 0) -> Opponent:
    def play(_: LadderForecaster) -> Iterator[int]:
        rng = np.random.default_rng(seed)
        while True:
            yield int(rng.random() < rate)

    return play


def periodic(*pattern: int) -> Opponent:
    def play(_: LadderForecaster) -> Iterator[int]:
        while True:
            yield from pattern

    return play


def drift(period: int) -> Opponent:
    """A rate that sweeps slowly up and down."""

    def play(_: LadderForecaster) -> Iterator[int]:
        rng, t = np.random.default_rng(3), 0
        while True:
            yield int(rng.random() < 0.5 - 0.5 * np.cos(2 * np.pi * t / period))
            t += 1

    return play


def threshold(forecaster: LadderForecaster) -> Iterator[int]:
    """Contradict the forecast."""
    while True:
        yield int(forecaster.predict() <= 0.5)


def greedy(forecaster: LadderForecaster) -> Iterator[int]:
    """Take the outcome after which the certificate is larger."""

    def bound_after(y: int) -> Any:
        ahead = copy.copy(forecaster)
        ahead.predict()
        ahead.observe(y)
        return ahead.deviation + min(ahead.bias_sums)

    while True:
        yield int(bound_after(1) >= bound_after(0))


OPPONENTS: dict[str, Opponent] = {
    "coin": coin(),
    "rare": coin(0.05, seed=1),
    "alternating": periodic(0, 1),
    "period 5": periodic(0, 0, 1, 0, 1),
    "all ones": periodic(1),
    "all zeros": periodic(0),
    "drift": drift(997),
    "threshold": threshold,
    "greedy": greedy,
}


def play(forecaster: LadderForecaster, opponent: Opponent, rounds: int) -> tuple[list[float], list[int]]:
    """Let them play; return forecasts and outcomes."""
    forecasts, outcomes = [], []
    choices = opponent(forecaster)
    for _ in range(rounds):
        y = next(choices)
        forecasts.append(forecaster.predict())
        forecaster.observe(y)
        outcomes.append(y)
    return forecasts, outcomes
