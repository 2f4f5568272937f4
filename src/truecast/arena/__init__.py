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
    SignPreservation,
    Threshold,
)
from truecast.arena.forecasters import (
    ArcDefensive,
    Calibeating,
    Climatology,
    Defensive,
    Foster,
    FosterVohra,
    GuptaRamdas,
    KakadeFoster,
    OnlinePlatt,
    RunningMean,
)
from truecast.arena.game import play
from truecast.arena.results import Results
from truecast.arena.roster import ADVERSARIES, FORECASTERS
from truecast.arena.tournament import tournament
from truecast.arena.transcript import Transcript

__all__ = [
    "ADVERSARIES",
    "FORECASTERS",
    "Adversary",
    "ArcDefensive",
    "Blocks",
    "Calibeating",
    "Climatology",
    "Coins",
    "Constant",
    "Defensive",
    "Drift",
    "EarlyStop",
    "Foster",
    "FosterVohra",
    "Given",
    "GreedyBias",
    "GreedyCertificate",
    "GuptaRamdas",
    "KakadeFoster",
    "OnlinePlatt",
    "Periodic",
    "Results",
    "RunningMean",
    "SignPreservation",
    "Threshold",
    "Transcript",
    "play",
    "tournament",
]
