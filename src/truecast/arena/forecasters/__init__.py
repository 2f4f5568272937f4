"""Forecasters of the literature, one a file, each with its reference and, where it has one, its guarantee as code."""

from truecast.arena.forecasters.climatology import Climatology
from truecast.arena.forecasters.running_mean import RunningMean

__all__ = ["Climatology", "RunningMean"]
