"""Files of rounds, of any size: CSV, JSON lines and Parquet, plain or packed, read and written in parts."""

from truecast._atomic import replaced
from truecast.files.cells import as_argument
from truecast.files.columns import Names, guess
from truecast.files.recalibrated import Recalibrated
from truecast.files.recalibration import Recalibration
from truecast.files.rounds import NoRowsError, Rounds, rounds
from truecast.files.source import Table, open_table
from truecast.files.tallies import Tallies, tallies

__all__ = [
    "Names",
    "NoRowsError",
    "Recalibrated",
    "Recalibration",
    "Rounds",
    "Table",
    "Tallies",
    "as_argument",
    "guess",
    "open_table",
    "replaced",
    "rounds",
    "tallies",
]
