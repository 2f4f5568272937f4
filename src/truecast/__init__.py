"""Probability forecasts that stay calibrated, with a proof that travels with them."""

from truecast.certificate import Certificate
from truecast.errors import InputError, OrderError, StateError, TruecastError, VersionError
from truecast.forecasters import AlmostOneStepAhead, BentGrid, OneStepAhead, Streams, forecast_streams

__all__ = [
    "AlmostOneStepAhead",
    "BentGrid",
    "Certificate",
    "InputError",
    "OneStepAhead",
    "OrderError",
    "StateError",
    "Streams",
    "TruecastError",
    "VersionError",
    "forecast_streams",
]
__version__ = "0.1.0"
