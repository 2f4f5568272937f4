"""Forecasters, one algorithm a file, all over the ladder."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

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

if not TYPE_CHECKING:
    lazily(
        __name__,
        "arc",
        "guard",
        "bent_grid",
        "almost_one_step_ahead",
        "one_step_ahead",
        "horizon_free",
        "streams",
    )
else:  # for type checkers and for the reference
    from truecast.forecasters.almost_one_step_ahead import AlmostOneStepAhead
    from truecast.forecasters.arc import Arc
    from truecast.forecasters.bent_grid import BentGrid
    from truecast.forecasters.guard import Guard
    from truecast.forecasters.horizon_free import HorizonFree
    from truecast.forecasters.one_step_ahead import OneStepAhead
    from truecast.forecasters.streams import ArcStreams, Streams, forecast_streams
