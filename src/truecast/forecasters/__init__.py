"""Forecasters, one algorithm a file, all over the ladder."""

from truecast.forecasters.almost_one_step_ahead import AlmostOneStepAhead
from truecast.forecasters.bent_grid import BentGrid
from truecast.forecasters.one_step_ahead import OneStepAhead
from truecast.forecasters.streams import Streams, forecast_streams

__all__ = ["AlmostOneStepAhead", "BentGrid", "OneStepAhead", "Streams", "forecast_streams"]
