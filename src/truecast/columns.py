"""Columns of numbers as text in a saved state.

They are read back no longer than they say they are.

Of each column the first bytes of all numbers, then the second ones, and so on, compressed. The
lower bytes of floats are as good as random: they are not compressed, which takes long and gains
little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from truecast.errors import StateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Columns", "packed", "unpacked"]

Columns: TypeAlias = "dict[str, NDArray[Any]]"

_RANDOM = {"<f8": 6, "<f4": 2, "<u2": 1}  # how many of a number's bytes, the lower ones
_ENTRIES = {"lengths", "table", "digits"}


def packed(columns: Mapping[str, NDArray[Any]], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return columns of these kinds, such as "<i8", as plain data."""
    import base64
    import zlib

    table, digits = [], []
    for name, kind in kinds.items():
        planes = _planes(columns[name], kind)
        cut = _RANDOM.get(kind, 0) * len(columns[name])
        digits.append(planes[:cut])
        table.append(planes[cut:])
    return {
        "lengths": [len(columns[name]) for name in kinds],
        "table": base64.b64encode(zlib.compress(b"".join(table), 1)).decode(),
        "digits": base64.b64encode(b"".join(digits)).decode(),
    }


def unpacked(what: str, saved: object, kinds: Mapping[str, str], most: int) -> Columns:
    """Return the columns that `packed` wrote, each of at most `most` numbers.

    Raises StateError otherwise; `what` they are is for its message.
    """
    import zlib

    if not isinstance(saved, dict) or set(saved) != _ENTRIES:
        raise StateError(
            f"the saved {what} must have exactly the entries {', '.join(sorted(_ENTRIES))}"
        )
    lengths = saved["lengths"]
    if (
        not isinstance(lengths, list)
        or len(lengths) != len(kinds)
        or any(type(n) is not int for n in lengths)
    ):
        raise StateError(
            f"the saved lengths of the {what} must be {len(kinds)} integers, got {lengths!r:.80}"
        )
    if not all(0 <= length <= most for length in lengths):
        raise StateError(f"the saved {what} must be at most {most}, got {max(lengths)}")
    layout = {
        name: (kind, count) for (name, kind), count in zip(kinds.items(), lengths, strict=True)
    }
    cuts = {name: _RANDOM.get(kind, 0) * count for name, (kind, count) in layout.items()}
    sizes = {
        name: np.dtype(kind).itemsize * count - cuts[name] for name, (kind, count) in layout.items()
    }
    reader = zlib.decompressobj()
    try:
        table = reader.decompress(_decoded(what, saved["table"]), sum(sizes.values()) + 1)
    except zlib.error as error:
        raise StateError(f"the saved table of {what} is corrupted: {error}") from error
    digits = _decoded(what, saved["digits"])
    whole = reader.eof and not reader.unused_data
    if not whole or len(table) != sum(sizes.values()) or len(digits) != sum(cuts.values()):
        raise StateError(f"the saved table of {what} is corrupted: it has another length")
    columns = {}
    at = 0
    of = 0
    for name, (kind, count) in layout.items():
        lower, upper = digits[of : of + cuts[name]], table[at : at + sizes[name]]
        columns[name] = _column(lower + upper, kind, count)
        at = at + sizes[name]
        of = of + cuts[name]
    return columns


def _planes(column: NDArray[Any], kind: str) -> bytes:
    cells = np.ascontiguousarray(column.astype(kind))
    return cells.view(np.uint8).reshape(len(cells), cells.itemsize).T.tobytes()


def _column(data: bytes, kind: str, count: int) -> NDArray[Any]:
    width = np.dtype(kind).itemsize
    column = (
        np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(width, count).T)
        .view(kind)
        .reshape(count)
    )
    return column.astype(np.dtype(kind).newbyteorder("="), copy=False)


def _decoded(what: str, text: object) -> bytes:
    import base64

    if not isinstance(text, str):
        raise StateError(f"the saved table of {what} must be a str")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise StateError(f"the saved table of {what} is corrupted: {error}") from error
