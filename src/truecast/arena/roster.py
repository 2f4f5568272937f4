"""Who plays, by name, if a tournament is not told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from truecast.arena import adversaries, forecasters
from truecast.arena.adversaries import Adversary
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
        "foster-vohra": partial(_drawing, forecasters.FosterVohra),
        "foster": partial(_drawing, forecasters.Foster),
        "gupta-ramdas": partial(_planned, forecasters.GuptaRamdas),
        "kakade-foster": partial(_planned, forecasters.KakadeFoster),
        "defensive": partial(_planned, forecasters.Defensive),
        "exponential-average": partial(_planned, forecasters.ExponentialAverage),
        "calibeating": partial(_plain, forecasters.Calibeating),
        "online-platt": partial(_plain, forecasters.OnlinePlatt),
        "running-mean": partial(_plain, forecasters.RunningMean),
        "climatology": partial(_plain, forecasters.Climatology),
    }
)

#: those called mean go by the mean over what may be drawn, and do not see what is
ADVERSARIES: Mapping[str, Adversary] = MappingProxyType(
    {
        "constant": adversaries.Constant(),
        "periodic": adversaries.Periodic(),
        "coins": adversaries.Coins(),
        "coins-0.1": adversaries.Coins(rate=0.1),
        "drift": adversaries.Drift(),
        "blocks": adversaries.Blocks(),
        "early-stop": adversaries.EarlyStop(),
        "sign-preservation": adversaries.SignPreservation(),
        "threshold": adversaries.Threshold(),
        "threshold-mean": adversaries.Threshold(sees="distribution"),
        "greedy-bias": adversaries.GreedyBias(),
        "greedy-bias-mean": adversaries.GreedyBias(sees="distribution"),
        "greedy-certificate": adversaries.GreedyCertificate(),
        "leave-biased": adversaries.LeaveBiased(),
    }
)
