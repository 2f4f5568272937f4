"""Rounds of a file as a recalibrator takes them: of outcomes 0 or 1, or of several classes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast.files.columns import Names
from truecast.files.rounds import Rounds
from truecast.recalibrate import ClassRecalibrator, Recalibrator

__all__ = ["outcomes_of", "runs", "scores_of"]


def scores_of(part: Rounds, names: Names) -> NDArray[np.float64]:
    """Return the scores: one for each round, or a row for each if there are several classes."""
    return np.column_stack(part.p) if names.labels else part.p[0]


def outcomes_of(
    y: NDArray[np.float64], recalibrator: Recalibrator | ClassRecalibrator
) -> NDArray[Any]:
    """Return known outcomes: as they are, or as labels if there are several classes."""
    if isinstance(recalibrator, Recalibrator):
        return y
    return np.array(recalibrator.classes, dtype=object)[y.astype(np.int64)]


def runs(kinds: NDArray[Any]) -> Iterator[slice]:
    """Yield the stretches of rows of one kind, in order."""
    starts = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(kinds)]
    return (slice(*ends) for ends in pairwise(starts) if len(kinds))
