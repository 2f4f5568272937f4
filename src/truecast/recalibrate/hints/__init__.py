"""Hints turn a model's score into a better probability, learned from outcomes as they come.

They prove nothing.
"""

from truecast.recalibrate.hints import single
from truecast.recalibrate.hints.base import Hint
from truecast.recalibrate.hints.experts import Experts
from truecast.recalibrate.hints.mix import Mix
from truecast.recalibrate.hints.single import *

__all__ = ["Experts", "Hint", "Mix"]
__all__ += single.__all__
