"""Delimited text without quotes: the numbers in its columns, and lines with more at their ends."""

from __future__ import annotations

import math
import re

__all__ = ["join_lines", "read_numbers"]

_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LEAST = 2.0**-1022  # below it, libraries differ in what they take for a number


def read_numbers(
    block: bytes, separator: str, fields: int, columns: list[int]
) -> list[list[float]] | None:
    """Return the numbers in each of some columns, or None if it is not that plain.

    Every line must have as many fields, and every cell of these columns must be digits, with or
    without decimals and an exponent.
    """
    found: list[list[float]] = [[] for _ in columns]
    for line in _lines(block):
        cells = line.decode("latin-1").split(separator)
        if len(cells) != fields:
            return None
        for column, numbers in zip(columns, found, strict=True):
            if not _PLAIN.fullmatch(cells[column]):
                return None
            numbers.append(float(cells[column]))
    every = [number for numbers in found for number in numbers]
    return found if all(map(_is_usual, every)) else None


def join_lines(block: bytes, more: bytes, separator: str) -> bytes | None:
    """Return each line of a text with the line of `more` at its end, or None if some are left."""
    lines, ends = _lines(block), _lines(more)
    if len(lines) != len(ends):
        return None
    between = separator.encode()
    return b"".join(line + between + end + b"\n" for line, end in zip(lines, ends, strict=True))


def _lines(text: bytes) -> list[bytes]:
    """Return the lines without their ends, which are LF or CR and LF."""
    *whole, last = text.split(b"\n")
    return [line.removesuffix(b"\r") for line in whole] + [last] * bool(last)


def _is_usual(number: float) -> bool:
    return number == 0 or _LEAST <= number < math.inf
