"""Who plays, by name, if a tournament is not told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from truecast.arena.adversaries import (
    Adversary,
    Blocks,
    Coins,
    Constant,
    Drift,
    EarlyStop,
    GreedyBias,
    GreedyCertificate,
    LeaveBiased,
    Periodic,
    SignPreservation,
    Threshold,
)
from truecast.arena.forecasters import (
    Calibeating,
    Climatology,
    Defensive,
    ExponentialAverage,
    Foster,
    FosterVohra,
    GuptaRamdas,
    KakadeFoster,
    OnlinePlatt,
    RunningMean,
)
from truecast.arena.schedule import Make
from truecast.forecasters import AlmostOneStepAhead, Arc, BentGrid, HorizonFree

__all__ = ["ADVERSARIES", "FORECASTERS"]


def _plain(kind: Any, rounds: int, seed: int) -> Any:
    return kind()


def _planned(kind: Any, rounds: int, seed: int, **options: Any) -> Any:
    return kind(horizon=rounds, **options)


def _drawing(kind: Any, rounds: int, seed: int) -> Any:
    return kind(horizon=rounds, seed=seed)


#: how to build each forecaster for a number of rounds and a seed
FORECASTERS: Mapping[str, Make] = MappingProxyType(
    {
        "aosa": partial(_planned, AlmostOneStepAhead),
        "aosa-middle": partial(_planned, AlmostOneStepAhead, at="middle"),
        "bent-grid": partial(_planned, BentGrid),
        "horizon-free": partial(_plain, HorizonFree),
        "arc": partial(_plain, Arc),
        "foster-vohra": partial(_drawing, FosterVohra),
        "foster": partial(_drawing, Foster),
        "gupta-ramdas": partial(_planned, GuptaRamdas),
        "kakade-foster": partial(_planned, KakadeFoster),
        "defensive": partial(_planned, Defensive),
        "exponential-average": partial(_planned, ExponentialAverage),
        "calibeating": partial(_plain, Calibeating),
        "online-platt": partial(_plain, OnlinePlatt),
        "running-mean": partial(_plain, RunningMean),
        "climatology": partial(_plain, Climatology),
    }
)

#: those called mean go by the mean over what may be drawn, and do not see what is
ADVERSARIES: Mapping[str, Adversary] = MappingProxyType(
    {
        "constant": Constant(),
        "periodic": Periodic(),
        "coins": Coins(),
        "coins-0.1": Coins(rate=0.1),
        "drift": Drift(),
        "blocks": Blocks(),
        "early-stop": EarlyStop(),
        "sign-preservation": SignPreservation(),
        "threshold": Threshold(),
        "threshold-mean": Threshold(sees="distribution"),
        "greedy-bias": GreedyBias(),
        "greedy-bias-mean": GreedyBias(sees="distribution"),
        "greedy-certificate": GreedyCertificate(),
        "leave-biased": LeaveBiased(),
    }
)
