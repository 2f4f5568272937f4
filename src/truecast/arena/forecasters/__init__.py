"""Forecasters of the literature, one a file, each with its reference and its guarantee, if any."""

from truecast.arena.forecasters.calibeating import Calibeating
from truecast.arena.forecasters.climatology import Climatology
from truecast.arena.forecasters.defensive import Defensive
from truecast.arena.forecasters.exponential_average import ExponentialAverage
from truecast.arena.forecasters.foster import Foster
from truecast.arena.forecasters.foster_vohra import FosterVohra
from truecast.arena.forecasters.gupta_ramdas import GuptaRamdas
from truecast.arena.forecasters.kakade_foster import KakadeFoster
from truecast.arena.forecasters.minimax import Minimax
from truecast.arena.forecasters.online_platt import OnlinePlatt
from truecast.arena.forecasters.running_mean import RunningMean

__all__ = [
    "Calibeating",
    "Climatology",
    "Defensive",
    "ExponentialAverage",
    "Foster",
    "FosterVohra",
    "GuptaRamdas",
    "KakadeFoster",
    "Minimax",
    "OnlinePlatt",
    "RunningMean",
]
