"""Adversaries: who chooses the outcomes, and what they see when they do."""

from truecast.arena.adversaries.base import Adversary
from truecast.arena.adversaries.base import Stream as Stream  # for one of your own
from truecast.arena.adversaries.early_stop import EarlyStop
from truecast.arena.adversaries.greedy import GreedyBias, GreedyCertificate
from truecast.arena.adversaries.leave_biased import LeaveBiased
from truecast.arena.adversaries.sign_preservation import SignPreservation
from truecast.arena.adversaries.streams import Blocks, Coins, Constant, Drift, Given, Periodic
from truecast.arena.adversaries.threshold import Threshold

__all__ = [
    "Adversary",
    "Blocks",
    "Coins",
    "Constant",
    "Drift",
    "EarlyStop",
    "Given",
    "GreedyBias",
    "GreedyCertificate",
    "LeaveBiased",
    "Periodic",
    "SignPreservation",
    "Threshold",
]
