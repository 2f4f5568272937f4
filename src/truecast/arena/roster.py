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
    Periodic,
    Threshold,
)
from truecast.arena.forecasters.calibeating import Calibeating
from truecast.arena.forecasters.climatology import Climatology
from truecast.arena.forecasters.defensive import Defensive
from truecast.arena.forecasters.kakade_foster import KakadeFoster
from truecast.arena.forecasters.online_platt import OnlinePlatt
from truecast.arena.forecasters.running_mean import RunningMean
from truecast.arena.schedule import Make
from truecast.forecasters import AlmostOneStepAhead, BentGrid, HorizonFree

__all__ = ["ADVERSARIES", "FORECASTERS"]


def _plain(kind: Any, rounds: int, seed: int) -> Any:
    return kind()


def _planned(kind: Any, rounds: int, seed: int, **options: Any) -> Any:
    return kind(horizon=rounds, **options)


#: how to build each forecaster for a number of rounds and a seed
FORECASTERS: Mapping[str, Make] = MappingProxyType(
    {
        "aosa": partial(_planned, AlmostOneStepAhead),
        "aosa-middle": partial(_planned, AlmostOneStepAhead, at="middle"),
        "bent-grid": partial(_planned, BentGrid),
        "horizon-free": partial(_plain, HorizonFree),
        "kakade-foster": partial(_planned, KakadeFoster),
        "defensive": partial(_planned, Defensive),
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
        "threshold": Threshold(),
        "threshold-mean": Threshold(sees="distribution"),
        "greedy-bias": GreedyBias(),
        "greedy-bias-mean": GreedyBias(sees="distribution"),
        "greedy-certificate": GreedyCertificate(),
    }
)
