"""Hints turn a model's score into a better probability, learned from outcomes as they come.

They prove nothing.
"""

from truecast.recalibrate.hints.base import Hint
from truecast.recalibrate.hints.bin_means import BinMeans
from truecast.recalibrate.hints.experts import Experts
from truecast.recalibrate.hints.identity import Identity
from truecast.recalibrate.hints.isotonic import Isotonic
from truecast.recalibrate.hints.mix import Mix
from truecast.recalibrate.hints.platt import Platt

__all__ = ["BinMeans", "Experts", "Hint", "Identity", "Isotonic", "Mix", "Platt"]
