"""The arena: forecasters and adversaries of the literature, measured by one yardstick.

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
    LeaveBiased,
    Periodic,
    SignPreservation,
    Threshold,
)
from truecast.arena.exhaustive import Worst, exhaustive
from truecast.arena.forecasters import (
    Calibeating,
    Climatology,
    Defensive,
    ExponentialAverage,
    Foster,
    FosterVohra,
    GuptaRamdas,
    KakadeFoster,
    Minimax,
    OnlinePlatt,
    RunningMean,
)
from truecast.arena.game import play
from truecast.arena.minimax import GameValue, minimax_value
from truecast.arena.results import Results
from truecast.arena.roster import ADVERSARIES, FORECASTERS
from truecast.arena.search import Response, best_response
from truecast.arena.sperner import Sperner
from truecast.arena.tournament import tournament
from truecast.arena.transcript import Transcript

__all__ = [
    "ADVERSARIES",
    "FORECASTERS",
    "Adversary",
    "Blocks",
    "Calibeating",
    "Climatology",
    "Coins",
    "Constant",
    "Defensive",
    "Drift",
    "EarlyStop",
    "ExponentialAverage",
    "Foster",
    "FosterVohra",
    "GameValue",
    "Given",
    "GreedyBias",
    "GreedyCertificate",
    "GuptaRamdas",
    "KakadeFoster",
    "LeaveBiased",
    "Minimax",
    "OnlinePlatt",
    "Periodic",
    "Response",
    "Results",
    "RunningMean",
    "SignPreservation",
    "Sperner",
    "Threshold",
    "Transcript",
    "Worst",
    "best_response",
    "exhaustive",
    "minimax_value",
    "play",
    "tournament",
]
