"""The arena: forecasters and adversaries of the literature, side by side, measured by the same yardstick.

For experiments. Nothing else in truecast needs it, and it is imported when first asked for.
"""

from truecast.arena.adversaries import (
    Adversary,
    Blocks,
    Coins,
    Constant,
    Drift,
    EarlyStop,
    Given,
    GreedyBias,
    GreedyCertificate,
    Periodic,
    Threshold,
)
from truecast.arena.forecasters import Climatology, RunningMean
from truecast.arena.game import play
from truecast.arena.transcript import Transcript

__all__ = [
    "Adversary",
    "Blocks",
    "Climatology",
    "Coins",
    "Constant",
    "Drift",
    "EarlyStop",
    "Given",
    "GreedyBias",
    "GreedyCertificate",
    "Periodic",
    "RunningMean",
    "Threshold",
    "Transcript",
    "play",
]
