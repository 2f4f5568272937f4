"""Where forecasts turn from too low to too high, and whether that stands out from chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.tally import Tally

__all__ = ["Run", "Stretch", "outstanding_runs", "stretches_of"]

_OUTSTANDING = 3.0  # standard deviations


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring forecasts that are off in one direction on balance.

    Attributes
    ----------
    low, high : float
        The least and the greatest of them.
    rounds : int or float
        How many rounds were forecast so, or their weight.
    gap : float
        Their mean outcome less their mean forecast: above 0 where forecasts were too low, below where too high.
    chance : float
        The standard deviation that the gap of calibrated forecasts would have. For real weights as if each distinct
        forecast were one round.
    contribution : float
        Their part of the smooth calibration error; it can be negative.
    stands_out : bool
        Whether the gap is three times what it would be by chance, or more: sqrt(chance**2 + |gap| / (3 rounds)), which
        also holds where rounds are few and outcomes rare (Bernstein's inequality).
    """

    low: float
    high: float
    rounds: int | float
    gap: float
    chance: float
    contribution: float
    stands_out: bool


class Run(NamedTuple):
    """Forecasts from one index on: the sum of y - p over all rounds, its variance by chance, the most a round adds."""

    start: int
    surplus: float
    variance: float
    unit: float

    @classmethod
    def joined(cls, runs: list[Run]) -> Run:
        """Return several runs, one after the other, as one."""
        sums = sum(run.surplus for run in runs), sum(run.variance for run in runs)
        return cls(runs[0].start, *sums, max(run.unit for run in runs))

    @property
    def stands_out(self) -> bool:
        """Whether that is more than chance does, in the sense of `Stretch`."""
        squared = self.variance + self.unit * abs(self.surplus) / 3
        return self.surplus != 0 and self.surplus**2 >= _OUTSTANDING**2 * squared


def outstanding_runs(tally: Tally, surplus: NDArray[np.float64], cells: NDArray[np.int64]) -> list[Run]:
    """Return runs of cells that are off in one direction, joined until all stand out.

    Of those that do not, the one with the least surplus or shortfall goes first: so whatever is left between two turns
    of the sum over forecasts is as large as it can be. Neighbours that are left differ in sign: where a joined run has
    that of the run in the middle, it is smaller and varies more, so it does not stand out either.
    """
    units = tally.weights if tally.weighted else np.ones(len(tally.p))
    variance = np.add.reduceat(units * tally.weights * tally.p * (1 - tally.p), cells) / tally.total**2
    most = np.maximum.reduceat(units, cells) / tally.total
    columns = (column.tolist() for column in (cells, np.add.reduceat(surplus, cells), variance, most))
    every = [Run(*row) for row in zip(*columns, strict=True)]
    runs = [Run.joined(list(alike)) for _, alike in groupby(every, key=lambda run: run.surplus > 0)]
    while len(runs) > 1:
        modest = [(abs(run.surplus), k) for k, run in enumerate(runs) if not run.stands_out]
        if not modest:
            break
        _, least = min(modest)
        first = max(least - 1, 0)
        runs[first : least + 2] = [Run.joined(runs[first : least + 2])]
    return runs


def stretches_of(tally: Tally, runs: list[Run], parts: NDArray[np.float64]) -> tuple[Stretch, ...]:
    """Return the runs as stretches of forecasts; `parts` are the contributions of every forecast."""
    starts = np.array([run.start for run in runs])
    ends = np.append(starts[1:], len(tally.p)) - 1
    rounds, contributions = (np.add.reduceat(values, starts).tolist() for values in (tally.weights, parts))
    columns = zip(tally.p[starts].tolist(), tally.p[ends].tolist(), rounds, runs, contributions, strict=True)
    return tuple(
        Stretch(
            low,
            high,
            weight,
            run.surplus * tally.total / weight,
            math.sqrt(run.variance) * tally.total / weight,
            contribution,
            run.stands_out,
        )
        for low, high, weight, run, contribution in columns
    )
