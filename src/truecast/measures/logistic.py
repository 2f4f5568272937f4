"""Logistic regression on one variable, for a tally: a shift, or a line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecast import _core

__all__ = ["best_line", "best_shift"]

_STEPS = 200
_MANY, _STRETCH = 1 << 14, 64
_CLOSE = 1e-8  # a step this short leaves an error of about its square

Vector = NDArray[np.float64]


def best_shift(z: Vector, zeros: NDArray[Any], ones: NDArray[Any]) -> tuple[float, float]:
    """Return the a that fits sigmoid(a + z) best to the outcomes, and its variance.

    There are both zeros and ones. Newton's method, within an interval that always holds the root:
    at its ends, every a + z is below, or above, the log-odds of the mean outcome.
    """
    rate = float(np.log(ones.sum() / zeros.sum()))
    low, high = rate - float(z.max()), rate - float(z.min())
    few = _pooled(z, zeros, ones)
    a = min(max(0.0 if few is None else best_shift(*few)[0], low), high)
    for _ in range(_STEPS):
        _, slope, _, curvature, _, _ = _core.logistic_sums(z, zeros, ones, a, 1.0)
        low, high = (a, high) if slope < 0 else (low, a)
        new = a - slope / curvature if curvature > 0 else np.inf
        if not low <= new <= high:
            new = (low + high) / 2
        step, a = new - a, new
        if abs(step) <= _CLOSE * max(1.0, abs(a)):
            break
    return a, 1 / _core.logistic_sums(z, zeros, ones, a, 1.0)[3]


def best_line(
    z: Vector, zeros: NDArray[Any], ones: NDArray[Any]
) -> tuple[tuple[float, float], Vector]:
    """Return a and b that fit sigmoid(a + b z) best to the outcomes, and their variances.

    No threshold separates zeros from ones, so that there are such numbers. Newton's method, with z
    centred and scaled, in place; a step that makes the fit worse is halved.
    """
    centre, scale = _core.logistic_moments(z, zeros, ones)
    x = z
    x -= centre
    x /= scale
    mean = float(np.log(ones.sum() / zeros.sum()))
    few = _pooled(x, zeros, ones)
    found = np.array((mean, 0.0) if few is None else best_line(*few)[0])
    loss, gradient, information = _fit(x, zeros, ones, found)
    if not loss <= _flat_loss(zeros, ones):  # the stretches can be told apart better than the rest
        found = np.array([mean, 0.0])
        loss, gradient, information = _fit(x, zeros, ones, found)
    for _ in range(_STEPS):
        step = np.linalg.solve(information, -gradient)
        shortest = _CLOSE * max(1.0, float(np.abs(found).max()))
        while (fit := _fit(x, zeros, ones, found + step))[0] > loss and _size(step) > shortest:
            step = step / 2
        found = found + step
        loss, gradient, information = fit
        if _size(step) <= shortest:
            break
    back = np.array([[1.0, -centre / scale], [0.0, 1 / scale]])
    a, b = (back @ found).tolist()
    return (a, b), np.diagonal(back @ np.linalg.inv(information) @ back.T)


def _pooled(
    z: Vector, zeros: NDArray[Any], ones: NDArray[Any]
) -> tuple[Vector, NDArray[Any], NDArray[Any]] | None:
    """Return the same with stretches of many neighbours at their mean; None if there are few.

    What fits them is where to begin: the steps that are left are few.
    """
    if len(z) < _MANY:
        return None
    starts = np.arange(0, len(z), _STRETCH)
    counts = np.diff(starts, append=len(z))
    return (
        np.add.reduceat(z, starts) / counts,
        np.add.reduceat(zeros, starts),
        np.add.reduceat(ones, starts),
    )


def _flat_loss(zeros: NDArray[Any], ones: NDArray[Any]) -> float:
    """Return the log loss of the mean outcome."""
    no, yes = float(zeros.sum()), float(ones.sum())
    return float(no * np.log1p(yes / no) + yes * np.log1p(no / yes)) * (1 + 1e-9)


def _size(step: NDArray[Any]) -> float:
    return float(np.abs(step).max())


def _fit(
    x: Vector, zeros: NDArray[Any], ones: NDArray[Any], line: Vector
) -> tuple[float, Vector, Vector]:
    """Return the log loss of a line, its gradient and its second derivatives."""
    loss, by_a, by_b, aa, ab, bb = _core.logistic_sums(x, zeros, ones, *line.tolist())
    return loss, np.array([by_a, by_b]), np.array([[aa, ab], [ab, bb]])
