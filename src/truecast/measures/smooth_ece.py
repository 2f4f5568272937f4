"""SmoothECE: the calibration error after smoothing, at its own bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, _core
from truecast.tally import Tally, tally_or_few

__all__ = ["smooth_ece"]

_NODES = 64  # lattice points to a bandwidth
_ROUGH = 8  # to begin with
_MOST = 20  # at most 2**20 lattice points
_FEW = 1 << 10  # forecasts, whose residuals are quicker to smooth wave by wave
_DAMPED = 13  # times the frequency a bandwidth: exp(-(pi 13)**2 / 2) is 0 in floats


def smooth_ece(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    bandwidth: float | None = None,
) -> float:
    r"""SmoothECE (Błasiok and Nakkiran, 2023): the integral of the smoothed residuals r.

    .. math:: \int_0^1 |r_\sigma(t)|\,dt

    The residuals y - p, placed at p, are smoothed by a Gaussian of standard deviation sigma
    reflected at 0 and 1. The bandwidth is the sigma that equals the result: there is exactly one,
    because the integral does not rise as sigma grows.

    Use it to compare forecasts: up to constants it lies between the lower distance to calibration
    and its square root (their theorem). It says less than `smooth_calibration_error`, which is
    exact, but is widely used.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone.
    bandwidth
        Use this sigma instead of the fixed point.

    Examples
    --------
    >>> round(smooth_ece([0, 0, 1, 1], [0.1, 0.1, 0.9, 0.9]), 3)
    0.1

    Notes
    -----
    Computed on a lattice of 64 points per bandwidth (at most 2**20 in all) by Fourier transform,
    with an error of at most about 1e-4 of the calibration error by value, if sigma is above 1e-4.
    Linear after the tally. Of fewer than 1,024 forecasts it is the same sum on the same lattice,
    wave by wave, which is quicker as smoothing leaves few waves.
    """
    rounds = tally_or_few(y_true, y_prob, sample_weight)
    if bandwidth is None and (not isinstance(rounds, Tally) or len(rounds.p) < _FEW):
        found = _core.smooth_ece(rounds, float(rounds.total))
        if found >= 0:
            return found
    tally = rounds if isinstance(rounds, Tally) else Tally._of_few(rounds)
    if bandwidth is not None:
        sigma = min(_check.between("bandwidth", bandwidth, 0, math.inf), 100.0)  # flat long before
        return _smoothed(tally, _lattice(sigma))(sigma)
    return by_transforms(tally)


def by_transforms(tally: Tally) -> float:
    """Return it whatever the number of forecasts: at a rough bandwidth first, then at its own."""
    rough = _fixed_point(_smoothed(tally, _ROUGH), precision=1e-5)
    return _fixed_point(_smoothed(tally, max(_ROUGH, _lattice(rough))), near=rough)


def _lattice(sigma: float) -> int:
    """Return the power of two for the number of lattice points."""
    return min(max(4, math.ceil(math.log2(max(_NODES / max(sigma, 1e-300), 1.0)))), _MOST)


def _smoothed(tally: Tally, power: int) -> Callable[[float], float]:
    """Return the integral of the absolute smoothed residuals as a function of the bandwidth."""
    size = 1 << power
    masses = np.zeros(size + 1)
    _core.spread_residuals(tally.p, tally.zeros, tally.ones, np.arange(size + 1) / size, masses)
    masses /= tally.total
    masses[[0, -1]] *= 2  # a mass on the mirror is its own image
    spectrum = np.fft.rfft(np.concatenate((masses, masses[-2:0:-1])))
    square = (np.pi * np.arange(len(spectrum))) ** 2 / 2

    def integral(sigma: float) -> float:
        # waves beyond these are multiplied by 0, to the last bit
        waves = min(len(square), math.ceil(_DAMPED / max(sigma, 1e-9)))
        damped = spectrum[:waves] * np.exp(-(sigma**2) * square[:waves])
        heat: NDArray[np.float64] = np.abs(np.fft.irfft(damped, 2 * size)[: size + 1])
        return float(heat.sum() - (heat[0] + heat[-1]) / 2)

    return integral


def _fixed_point(
    integral: Callable[[float], float], *, near: float | None = None, precision: float = 1e-13
) -> float:
    """Solve integral(sigma) = sigma, where the left side falls.

    By the parabola through both ends of an interval and the last place, or in its middle where that
    leads outside, or nowhere. The interval is around `near`, widened until it holds the solution,
    or else all of [0, 1].
    """
    margin = 1.0 if near is None else 1e-3 * near + 1e-12
    while True:
        low, high = (
            (0.0, 1.0) if near is None else (max(near - margin, 0.0), min(near + margin, 1.0))
        )
        excess, lack = integral(low) - low, integral(high) - high
        if excess > 0.0 > lack:
            break
        if low == 0.0 and excess <= 0.0:
            return low
        if high == 1.0 and lack >= 0.0:
            return high
        margin *= 16.0
    sigma = (low * lack - high * excess) / (lack - excess)
    for k in range(100):
        value = integral(sigma) - sigma
        if abs(value) <= precision or high - low <= precision:
            break
        following = (
            low * (value / (value - excess)) * (lack / (lack - excess))
            + sigma * (excess / (excess - value)) * (lack / (lack - value))
            + high * (excess / (excess - lack)) * (value / (value - lack))
        )
        if value > 0:
            low, excess = sigma, value
        else:
            high, lack = sigma, value
        sigma = following if k < 20 and low < following < high else (low + high) / 2
    return sigma
