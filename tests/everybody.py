"""Adversaries for tests of guarantees: every kind the arena has, several options of many."""

from __future__ import annotations

from inspect import Parameter, isabstract, signature

from truecast.arena import adversaries
from truecast.arena.adversaries import (
    Adversary,
    Blocks,
    Coins,
    Constant,
    Drift,
    EarlyStop,
    GreedyBias,
    Periodic,
    Threshold,
)


def _plain(kind: object) -> bool:
    """Whether it is a kind of adversary that can be built without arguments."""
    if not isinstance(kind, type) or not issubclass(kind, Adversary) or isabstract(kind):
        return False
    return all(
        option.default is not Parameter.empty for option in signature(kind).parameters.values()
    )


def everybody() -> list[Adversary]:
    kinds = [getattr(adversaries, name) for name in adversaries.__all__]
    return [
        *(kind() for kind in kinds if _plain(kind)),
        Constant(0),
        Periodic((0, 0, 1)),
        Coins(0.05),
        Coins(0.9),
        Drift(40),
        Blocks(3),
        EarlyStop(1.5),
        Threshold("distribution"),
        GreedyBias("distribution"),
    ]
