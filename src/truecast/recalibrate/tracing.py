"""Few points through which straight lines follow a function of one number, jumps included."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.errors import InputError

__all__ = ["interpolated", "trace"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Function = Callable[[Vector], tuple[Vector, Integers]]

_MOST = 1 << 20  # points at which the function is known
_ROUNDS = 40  # of adding points and checking
_WITHIN = (0.5, 0.19, 0.83)  # places between two points, unevenly
_PROBES = (0.5, 0.118, 0.309, 0.764, 0.927)  # others, to check
_CHECKS = 1 << 17  # more of them, evenly
_SCALE = 2.0**600  # of distances, so that slopes between neighbouring doubles are finite
_AHEAD = 64  # points to look beyond the last that a line can end at


class Points(NamedTuple):
    """Points in increasing order, the values there, and the pieces of the function they are on."""

    x: Vector
    y: Vector
    piece: Integers


def trace(function: Function, start: Vector, tolerance: float) -> tuple[Vector, Vector, float]:
    """Return points and values, and how far lines between them are from the function at most.

    The function gives values and, for each, the number of the piece of it that this is on. It may
    jump from piece to piece, and it may also jump elsewhere.

    First, points are added until neighbours are on one piece, or are neighbouring doubles, and the
    function lies within an eighth of the tolerance of the line between them, wherever it is asked.
    So both sides of a jump are points. Then as few of the points are kept as half of the tolerance
    allows. Then everything is checked elsewhere, several times between any two points kept; what
    fails is added, and all is done again. The distance returned is the largest at any point asked
    in the last check, or known before. Between such points nothing is proved.
    """
    known = _asked(function, np.unique(start))
    for turn in range(_ROUNDS):
        known = _refined(function, known, tolerance / 8)
        kept = _corridor(known, tolerance / 2)
        x, y = known.x[kept], known.y[kept]
        tests = _asked(function, _tests(x, turn))
        errors = np.abs(interpolated(x, y, tests.x) - tests.y)
        if errors.max() <= tolerance:
            rest = np.abs(interpolated(x, y, known.x) - known.y)
            return x, y, float(max(errors.max(), rest.max()))
        known = _merged(known, _some(tests, errors > tolerance / 8))
    raise _too_fine(tolerance)


def interpolated(x: Vector, y: Vector, at: Vector) -> Vector:
    """Return the values on the lines between points, and constant ones beyond the outermost."""
    within = np.clip(at, x[0], x[-1])
    left = np.clip(np.searchsorted(x, within, "right") - 1, 0, len(x) - 2)
    share = (within - x[left]) / (x[left + 1] - x[left])
    return np.asarray(y[left] + share * (y[left + 1] - y[left]))


def _asked(function: Function, x: Vector) -> Points:
    return Points(x, *function(x))


def _some(points: Points, which: NDArray[np.bool_]) -> Points:
    return Points(points.x[which], points.y[which], points.piece[which])


def _merged(points: Points, more: Points) -> Points:
    x, at = np.unique(np.concatenate((points.x, more.x)), return_index=True)
    y, piece = np.concatenate((points.y, more.y)), np.concatenate((points.piece, more.piece))
    return Points(x, y[at], piece[at])


def _refined(function: Function, known: Points, close: float) -> Points:
    """Return more points: neighbours are on one piece, and close to the line between them."""
    left = np.arange(len(known.x) - 1)
    for _ in range(_ROUNDS + 64):
        left = left[_rank(known.x[left + 1]) - _rank(known.x[left]) > 1]  # there is room between
        bad = left[_is_bent(function, known, left, close)]
        if not len(bad):
            return known
        new = _between(function, known, bad)
        known = _merged(known, new)
        if len(known.x) > _MOST:
            break
        # only what has changed is looked at again: the gaps beside new points
        at = np.searchsorted(known.x, new.x)
        left = np.unique(np.concatenate((at - 1, at)))
        left = left[(left >= 0) & (left < len(known.x) - 1)]
    raise _too_fine(8 * close)


def _is_bent(function: Function, known: Points, left: Integers, close: float) -> NDArray[np.bool_]:
    """Return in which gaps the function changes pieces, or leaves the line between the ends."""
    x, y, piece = known
    bent = np.asarray(piece[left] != piece[left + 1])
    straight = np.flatnonzero(~bent)
    a, gaps = x[left[straight]], x[left[straight] + 1] - x[left[straight]]
    for share in _WITHIN:
        at = a + share * gaps
        bent[straight] |= np.abs(interpolated(x, y, at) - function(at)[0]) > close
    return bent


def _between(function: Function, known: Points, left: Integers) -> Points:
    """Return three points in each gap: the middle, and two neighbouring doubles.

    The doubles are where the piece of the left end is left; or on one piece, where the function is
    steepest: around a jump, if there is one. Both by halving.
    """
    x, y, piece = known
    first, last = _rank(x[left]), _rank(x[left + 1])
    before, after = y[left], y[left + 1]
    one = piece[left] == piece[left + 1]
    while (last - first > 1).any():
        middle = first + (last - first) // 2  # `first` itself, where neighbours are found already
        values, on = function(_double(middle))
        steeper = np.abs(after - values) > np.abs(values - before)
        right = np.where(one, steeper, on == piece[left]) | (middle == first)
        first, before = np.where(right, middle, first), np.where(right, values, before)
        last, after = np.where(right, last, middle), np.where(right, after, values)
    a, b = x[left], x[left + 1]
    new = np.concatenate((a + (b - a) / 2, _double(first), _double(last)))
    return _asked(function, new)


def _rank(x: Vector) -> Integers:
    """Return integers in the order of doubles: neighbours differ by 1."""
    bits = (x + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _double(rank: Integers) -> Vector:
    bits = np.where(rank < 0, np.int64(-(2**63)) - rank, rank)
    return np.asarray(bits.view(np.float64) + 0.0)


def _tests(x: Vector, turn: int) -> Vector:
    """Return points between those given, others in every turn."""
    gaps = np.diff(x)
    shares = [(share + 0.381966 * turn) % 1 for share in _PROBES]
    between = np.concatenate([x[:-1] + share * gaps for share in shares])
    even = np.linspace(x[0], x[-1], _CHECKS + 2 * turn)
    return np.concatenate((between, even)).clip(x[0], x[-1])


def _corridor(known: Points, close: float) -> Integers:
    """Return which points to keep: lines between them come close to all others."""
    kept, x, y = [0], known.x.tolist(), known.y.tolist()
    while kept[-1] < len(x) - 1:
        kept.append(_farthest(x, y, kept[-1], close))
    return np.array(kept)


def _farthest(x: list[float], y: list[float], here: int, close: float) -> int:
    """Return how far a line from a point can go.

    The slopes that pass all points so far within `close` are a corridor, which narrows.
    """
    low, high, end = -np.inf, np.inf, here + 1
    for at in range(here + 1, len(x)):
        run, rise = (x[at] - x[here]) * _SCALE, y[at] - y[here]
        if low <= rise / run <= high:
            end = at
        low, high = max(low, (rise - close) / run), min(high, (rise + close) / run)
        if low > high or at > end + _AHEAD:
            break
    return end


def _too_fine(tolerance: float) -> InputError:
    rule = f"must be larger: {_MOST:,} points do not follow the map as closely"
    return InputError("tolerance", rule, tolerance)
