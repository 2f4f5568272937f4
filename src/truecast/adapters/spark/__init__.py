"""Truecast on Spark: tallies, measures by segment, batches and streams recalibrated key by key."""

from truecast.adapters.spark.batch import Recalibration, recalibrate
from truecast.adapters.spark.segments import measure
from truecast.adapters.spark.session import local_session
from truecast.adapters.spark.stream import recalibrate_stream, stream_states
from truecast.adapters.spark.tallies import bad_rows, tally

__all__ = [
    "Recalibration",
    "bad_rows",
    "local_session",
    "measure",
    "recalibrate",
    "recalibrate_stream",
    "stream_states",
    "tally",
]
