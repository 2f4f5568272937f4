"""Binned calibration error, and the bins it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.errors import InputError
from truecast.tally import Tally, as_tally

__all__ = ["Bins", "binned_calibration_error", "reliability_bins"]

STRATEGIES = ("uniform", "quantile")
NORMS = ("l1", "l2", "max")
_NUMBERED = {norm: number for number, norm in enumerate(NORMS)}  # as in the core
MOST_BINS = 1 << 24
_INT = np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class Bins:
    """What `reliability_bins` returns: one entry for each bin.

    Bin k holds the forecasts with ``edges[k] <= p < edges[k + 1]``; the last bin also includes its
    upper edge. truecast uses this rule everywhere.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        From 0 to 1.
    zeros, ones : arrays
        Counts of zeros and ones in each bin; integers unless there are real weights.
    forecast : array
        Mean forecast in each bin; nan in an empty one.
    rate : array
        Mean outcome in each bin; nan in an empty one.
    """

    edges: NDArray[np.float64]
    zeros: NDArray[Any]
    ones: NDArray[Any]
    forecast: NDArray[np.float64]
    rate: NDArray[np.float64]

    def __len__(self) -> int:
        """The number of bins."""
        return len(self.zeros)

    @property
    def counts(self) -> NDArray[Any]:
        """Rounds, or weight, in each bin."""
        both: NDArray[Any] = self.zeros + self.ones
        return both

    @property
    def gap(self) -> NDArray[np.float64]:
        """Mean outcome minus mean forecast in each bin; nan in an empty one."""
        return self.rate - self.forecast

    def intervals(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper ends of Wilson's intervals for each bin's rate.

        Each covers the mean probability of its bin in about `level` of all cases, if outcomes are
        independent; they do not all cover at once. In an empty bin: 0 and 1. Not for real weights.
        """
        _refuse_weights(self.zeros, "intervals")
        return wilson(self.zeros, self.ones, _check.between("level", level, 0, 1))

    def error(self, norm: str = "l1", *, debias: bool = False) -> float:
        """Return the binned calibration error: see `binned_calibration_error`."""
        _check.choice("norm", norm, NORMS)
        columns = self.forecast, self.zeros, self.ones, self.rate
        if not debias:
            return _core.binned_error(*columns, _NUMBERED[norm])
        _refuse_weights(self.zeros, "a debiased error")
        if norm == "max":
            raise InputError(
                "debias", "must be False for norm 'max': no debiased estimate is known", debias
            )
        return _core.debiased_error(*columns, _NUMBERED[norm])


def wilson(
    zeros: NDArray[Any], ones: NDArray[Any], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both ends of Wilson's intervals for rates, from counts of zeros and ones.

    Without any rounds they are 0 and 1.
    """
    from statistics import NormalDist  # slow to import, and for this alone

    z = NormalDist().inv_cdf((1 + level) / 2)
    counts = zeros + ones
    n = np.maximum(counts, 1).astype(np.float64)
    rate = np.where(counts > 0, ones / n, 0.5)
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = np.where(ones > 0, np.maximum(middle - half, 0), 0)
    high = np.where(zeros > 0, np.minimum(middle + half, 1), 1)
    return low, high


def reliability_bins(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    n_bins: int = 15,
    strategy: str = "uniform",
) -> Bins:
    """Group forecasts into bins, with counts and means.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    n_bins
        How many bins.
    strategy
        "uniform": bins of equal width, edges k / `n_bins`. "quantile": bins of equal counts, as far
        as ties allow: bin k begins at the least forecast with at least k / `n_bins` of all rounds
        below it. Equal forecasts are never split, so there may be fewer bins; none is empty.

    Examples
    --------
    >>> bins = reliability_bins([0, 1, 1, 0], [0.1, 0.6, 0.9, 1.0], n_bins=2)
    >>> bins.counts, bins.rate.round(2)
    (array([1, 3]), array([0.  , 0.67]))

    Notes
    -----
    Uniform bins of arrays need one pass and no sorting. Forecasts are summed as integers, multiples
    of 2**-62, so the order of rounds does not matter.
    """
    n_bins = _check.whole_number("n_bins", n_bins, least=1, most=MOST_BINS)
    _check.choice("strategy", strategy, STRATEGIES)
    uniform = _uniform(n_bins)
    if _one_pass(y_true, y_prob, sample_weight, strategy):
        few = _core.bin_few(y_true, y_prob, n_bins)
        if few is not None:
            return _bins_in(few, uniform)
        y, p = _check.predictions(y_true, y_prob)
        counts, means = np.empty((2, n_bins), np.int64), np.empty((2, n_bins))
        if not _core.bin_rounds(p, y, uniform, counts, means):
            _check.refuse_predictions(y, p)
        if len(y):
            counts.setflags(write=False)
            means.setflags(write=False)
            return Bins(uniform, *counts, *means)
    tally = as_tally(y_true, y_prob, sample_weight)
    edges = uniform
    if strategy == "quantile":
        edges = _core.quantile_edges(tally.p, tally.zeros, tally.ones, float(tally.total), n_bins)
    if tally.weighted:
        return _weighted_bins(tally, edges)
    memory = np.empty(4 * (len(edges) - 1))
    _core.bin_tally(tally.p, tally.zeros, tally.ones, edges, memory)
    memory.setflags(write=False)
    return _bins_in(memory, edges)


def binned_calibration_error(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    debias: bool = False,
    total: bool = False,
) -> float:
    """The usual "ECE": how far apart mean outcome and mean forecast are in bins.

    It depends on the bins. Errors inside a bin cancel, so it can be 0 for badly calibrated
    forecasts. With many bins, chance alone makes it large. `smooth_calibration_error` needs no
    bins.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    n_bins, strategy
        As in `reliability_bins`.
    norm
        "l1": the mean over rounds of their bin's gap; "l2": root of the mean of its square; "max":
        the largest gap.
    debias
        Subtract what chance adds (after Kumar, Liang and Ma, 2019): for "l2" the estimated variance
        of each bin's rate (0 for a bin of one round), for "l1" the mean of a normal approximation,
        in closed form instead of their simulation. Never below 0; not for "max" or real weights.
    total
        The sum over rounds rather than the mean; for "l1" only.

    Examples
    --------
    >>> binned_calibration_error([0, 1, 1, 0], [0.25, 0.25, 0.75, 1.0], n_bins=2)
    0.3125
    """
    if total and norm != "l1":
        raise InputError("total", "must be False unless norm is 'l1'", total)
    number = _NUMBERED[_check.choice("norm", norm, NORMS)]
    n_bins = _check.whole_number("n_bins", n_bins, least=1, most=MOST_BINS)
    if not (total or debias) and _one_pass(y_true, y_prob, sample_weight, strategy):
        few = _core.binned_error_of_few(y_true, y_prob, n_bins, number)
        if few is not None:
            return few
        y, p = _check.predictions(y_true, y_prob)
        if len(p):
            error = _core.binned_error_of_rounds(y, p, _uniform(n_bins), number)
            return error if error == error else _check.refuse_predictions(y, p)
    bins = reliability_bins(
        y_true, y_prob, sample_weight=sample_weight, n_bins=n_bins, strategy=strategy
    )
    return bins.error(norm, debias=debias) * (float(bins.counts.sum()) if total else 1.0)


def _one_pass(y_true: Any, y_prob: Any, sample_weight: Any, strategy: str) -> bool:
    """Whether bins of these rounds need no tally."""
    plain = sample_weight is None and y_prob is not None and not isinstance(y_true, Tally)
    return plain and strategy == "uniform"


@lru_cache(maxsize=64)
def _few_edges(n_bins: int) -> NDArray[np.float64]:
    edges = np.arange(n_bins + 1) / n_bins
    edges.setflags(write=False)
    return edges


def _uniform(n_bins: int) -> NDArray[np.float64]:
    """Return the edges of bins of equal width; kept if they are few."""
    return (_few_edges if n_bins <= 1000 else _few_edges.__wrapped__)(n_bins)


def _bins_in(data: bytes | NDArray[np.float64], edges: NDArray[np.float64]) -> Bins:
    """Return bins whose four columns are one after the other in the data, which they share."""
    n = len(edges) - 1
    counts, means = np.frombuffer(data, _INT), np.frombuffer(data)
    return _core.made(
        Bins, edges, counts[:n], counts[n : 2 * n], means[2 * n : 3 * n], means[3 * n :]
    )


def _weighted_bins(tally: Tally, edges: NDArray[np.float64]) -> Bins:
    inner = np.searchsorted(tally.p, edges[1:-1])
    starts = np.concatenate(([0], inner, [len(tally.p)])).astype(np.int64)
    zeros, ones = _sums(tally.zeros, starts), _sums(tally.ones, starts)
    counts, sums = zeros + ones, _sums(tally.p * tally.weights, starts)
    with np.errstate(invalid="ignore"):
        bins = Bins(edges, zeros, ones, forecast=sums / counts, rate=ones / counts)
    for column in (bins.zeros, bins.ones, bins.forecast, bins.rate):
        column.setflags(write=False)
    return bins


def _sums(values: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[Any]:
    """Return the sums of stretches, of which some may be empty."""
    sums = np.zeros(len(starts) - 1, values.dtype)
    seen = np.diff(starts) > 0
    sums[seen] = np.add.reduceat(values, starts[:-1][seen])
    return sums


def _refuse_weights(zeros: NDArray[Any], what: str) -> None:
    if zeros.dtype == np.float64:
        raise InputError(
            "sample_weight",
            f"must be integers (counts) for {what}: "
            "real weights do not tell how many rounds there were",
            "real weights",
        )
