"""Files of rounds, of any size, read and written in parts.

CSV, JSON lines and Parquet, plain or compressed.
"""

from typing import TYPE_CHECKING

from truecast._atomic import replaced
from truecast._lazy import lazily

__all__ = [
    "ClassTallies",
    "Names",
    "NoRowsError",
    "OpenTable",
    "Recalibration",
    "RecalibrationResult",
    "Rounds",
    "Tallies",
    "as_argument",
    "class_tallies",
    "guess",
    "open_table",
    "replaced",
    "rounds",
    "tallies",
]

_RENAMED = {"Recalibrated": "RecalibrationResult", "Table": "OpenTable"}

if not TYPE_CHECKING:  # to a type checker, a module with a __getattr__ has every name there is

    def __getattr__(name: str) -> object:
        """Return what a name of version 0.1 is called now."""
        if name not in _RENAMED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import sys
        import warnings

        now = _RENAMED[name]
        warnings.warn(f"truecast.files.{name} is now {now}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[__name__], now)

    lazily(
        __name__, "source", "columns", "cells", "rounds", "tallies", "recalibrated", "recalibration"
    )
else:  # for type checkers and for the reference
    from truecast.files.cells import as_argument
    from truecast.files.columns import Names, guess
    from truecast.files.recalibrated import RecalibrationResult
    from truecast.files.recalibration import Recalibration
    from truecast.files.rounds import NoRowsError, Rounds, rounds
    from truecast.files.source import OpenTable, open_table
    from truecast.files.tallies import ClassTallies, Tallies, class_tallies, tallies
