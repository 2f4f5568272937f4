"""Pictures of forecasts: each a frozen object that is computed first and drawn, with matplotlib, on request."""

from truecast.plot.before_after import BeforeAfter, before_after
from truecast.plot.group_overview import GroupOverview, group_overview
from truecast.plot.miscalibration import Miscalibration, Stretch, miscalibration
from truecast.plot.reliability import ReliabilityDiagram, reliability_diagram

__all__ = [
    "BeforeAfter",
    "GroupOverview",
    "Miscalibration",
    "ReliabilityDiagram",
    "Stretch",
    "before_after",
    "group_overview",
    "miscalibration",
    "reliability_diagram",
]
