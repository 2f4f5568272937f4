"""The only validation of what users pass: the public edge calls it once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast.errors import InputError

_CHUNK = 1 << 20
_OUTCOME = "must be 0 or 1"


def whole_number(name: str, value: object, *, least: int, most: int) -> int:
    """Return `value` as an int between `least` and `most`."""
    rule = f"must be a whole number from {least} to {most}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InputError(name, rule, value)
    number = int(value)
    if not least <= number <= most:
        raise InputError(name, rule, value)
    return number


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """Return `value` if it is one of the `options`."""
    if not isinstance(value, str) or value not in options:
        raise InputError(name, "must be one of " + ", ".join(map(repr, options)), value)
    return value


def outcome(value: Any) -> int:
    """Return one outcome as 0 or 1: a bool, an integer or a float equal to 0 or 1, Python's or numpy's."""
    if _is_outcome(value):
        return int(value == 1)
    raise InputError("outcome", _OUTCOME, value)


def outcomes(values: ArrayLike, *, dimensions: int = 1) -> NDArray[np.uint8]:
    """Return outcomes as a contiguous array of bytes 0 and 1; an array of bytes or bools is not copied."""
    array = _numeric(values)
    if array.ndim != dimensions:
        shape = "(rounds,)" if dimensions == 1 else "(streams, rounds)"
        raise InputError("outcomes", f"must have shape {shape}", array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "biu" and flat.dtype.itemsize == 1:
        flat = flat.view(np.uint8)  # a negative byte becomes one above 127
        if flat.size and flat.max() > 1:
            _refuse_first(array, flat > 1)
        return flat.reshape(array.shape)
    bits = np.empty(flat.size, np.uint8)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        ones = part == 1
        if not np.logical_or(ones, part == 0).all():
            _refuse_first(array, (flat != 0) & (flat != 1))
        bits[start : start + _CHUNK] = ones
    return bits.reshape(array.shape)


def output(out: object, y: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return `out` if the forecasts of the outcomes `y` can be written to it."""
    rule = f"must be a writeable, contiguous float64 array of shape {y.shape}"
    if not isinstance(out, np.ndarray):
        raise InputError("out", rule, out)
    if out.dtype != np.float64 or out.shape != y.shape or not out.flags.c_contiguous or not out.flags.writeable:
        raise InputError("out", rule, f"{out.dtype} of shape {out.shape}")
    if np.may_share_memory(out, y):
        raise InputError("out", "must not share memory with outcomes", f"{out.dtype} of shape {out.shape}")
    return out


def _numeric(values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        _refuse_first(values, np.ma.getmaskarray(values).reshape(-1))
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError("outcomes", "must be an array of numbers, all rows of one length", values) from error
    if array.size == 0:
        return np.zeros(array.shape, np.uint8)
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind == "O":
        for position, value in enumerate(array.flat):
            if not _is_outcome(value):
                raise InputError("outcomes", _OUTCOME, value, position)
    raise InputError("outcomes", "must be an array of bool, integers or floats", array.dtype)


def _is_outcome(value: Any) -> bool:
    if isinstance(value, np.timedelta64):  # an integer to numpy
        return False
    return isinstance(value, (int, float, np.bool_, np.integer, np.floating)) and value in (0, 1)


def _refuse_first(array: NDArray[Any], bad: NDArray[np.bool_]) -> NoReturn:
    first = int(np.argmax(bad))
    value = array.reshape(-1)[first]
    value = value.item() if isinstance(value, np.generic) else value
    row_and_column = tuple(map(int, np.unravel_index(first, array.shape)))
    raise InputError("outcomes", _OUTCOME, value, position=first if array.ndim == 1 else row_and_column)
