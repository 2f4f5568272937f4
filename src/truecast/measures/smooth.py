"""The smooth calibration error, exactly, and the function that witnesses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _core
from truecast.measures.packed import Packed, packed
from truecast.tally import Tally, tally_or_few

__all__ = ["SmoothWitness", "smooth_calibration_error", "smooth_calibration_witness"]


def smooth_calibration_error(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None, total: bool = False
) -> float:
    r"""The largest mean product of y - p with a smooth function of p, exactly.

    After Kakade and Foster (2004).

    .. math:: \mathrm{smCE} = \max_f \frac1T \sum_t (y_t - p_t) f(p_t),
        \qquad f: [0,1] \to [-1,1], \quad |f(u) - f(v)| \le |u - v|

    No bins, no bandwidth, continuous in p (it moves by at most twice the mean change of p), and
    between half and twice the lower distance to calibration (docs/measures.md, theorem 3).

    Chance alone makes it positive, of the order of 1/sqrt(T): see `uncertainty`. It ignores
    sharpness.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    total
        The sum over all rounds rather than the mean.

    Examples
    --------
    >>> smooth_calibration_error([1, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.25

    Notes
    -----
    O(n log n) in the worst case, by a flow on a path (docs/measures.md, theorem 1).
    `smooth_calibration_witness` returns an f that attains the maximum.
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    times = rounds.total if total else 1
    if isinstance(rounds, Tally):
        return _error(rounds, np.empty(0)) * times
    return _core.smooth_error(rounds) * times


@dataclass(frozen=True, eq=False)
class SmoothWitness(Packed):
    """A function that attains the smooth calibration error.

    Where it is positive, forecasts are too low on balance; where it is negative, too high.

    Attributes
    ----------
    error : float
        The smooth calibration error, per round.
    p : array
        Distinct forecasts, increasing.
    f : array
        The function at each: in [-1, 1], changing no faster than p.
    """

    error: float
    p: NDArray[np.float64]
    f: NDArray[np.float64]

    def __call__(self, p: ArrayLike) -> NDArray[np.float64]:
        """Return the function at any forecasts: linear between, constant beyond the outermost."""
        return np.asarray(np.interp(np.asarray(p, np.float64), self.p, self.f))

    @staticmethod
    def _unpacked(error: float, data: bytes) -> tuple[Any, ...]:
        """Return the fields: the two columns are one after the other."""
        columns = np.frombuffer(data)
        n = len(columns) // 2
        return error, columns[:n], columns[n:]


def smooth_calibration_witness(
    y_true: Any | Tally, y_prob: Any = None, *, sample_weight: Any = None
) -> SmoothWitness:
    """Return the function f of `smooth_calibration_error`: it shows where the miscalibration is.

    There may be several; this one stays near 0 where its value does not matter. Anyone can check
    that it is 1-Lipschitz and that the mean of (y - p) f(p) is the error.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.

    Examples
    --------
    >>> witness = smooth_calibration_witness([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75])
    >>> witness.f  # more ones than forecast at 0.25, fewer at 0.75
    array([0.5, 0. ])
    >>> witness.error
    0.1875
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    if isinstance(rounds, Tally):
        f = np.empty(len(rounds.p))
        error = _error(rounds, f)
        f.setflags(write=False)
        return SmoothWitness(error, rounds.p, f)
    return packed(SmoothWitness, *_core.smooth_witness(rounds))


def _error(tally: Tally, witness: NDArray[np.float64]) -> float:
    return _core.smooth_error(tally.p, tally.zeros, tally.ones, float(tally.total), witness)
