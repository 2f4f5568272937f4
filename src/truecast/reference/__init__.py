"""The same algorithms in plain Python, to be read beside the paper: slow, obvious, exact.

Nothing here uses the compiled core, and nothing at run time uses this: it is the oracle that the
tests drive in lockstep with the core, and the page to read first.
"""

from truecast.reference import measures
from truecast.reference.distance import brute_force_distance, calibration_distance
from truecast.reference.guard import ArcGuard
from truecast.reference.ladder import PlainLadder, bent_points, uniform_points
from truecast.reference.monitor import PlainMonitor
from truecast.reference.sperner import PlainSperner
from truecast.reference.split_ladder import PlainSplitWalk

__all__ = [
    "ArcGuard",
    "PlainLadder",
    "PlainMonitor",
    "PlainSperner",
    "PlainSplitWalk",
    "bent_points",
    "brute_force_distance",
    "calibration_distance",
    "measures",
    "uniform_points",
]
