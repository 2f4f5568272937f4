"""Forecasters, one algorithm a file, all over the ladder."""

from truecast.forecasters.almost_one_step_ahead import AlmostOneStepAhead
from truecast.forecasters.arc import Arc
from truecast.forecasters.bent_grid import BentGrid
from truecast.forecasters.guard import Guard
from truecast.forecasters.horizon_free import HorizonFree
from truecast.forecasters.one_step_ahead import OneStepAhead
from truecast.forecasters.streams import ArcStreams, Streams, forecast_streams

__all__ = [
    "AlmostOneStepAhead",
    "Arc",
    "ArcStreams",
    "BentGrid",
    "Guard",
    "HorizonFree",
    "OneStepAhead",
    "Streams",
    "forecast_streams",
]
