"""Validation of forecasts of several classes: labels, outcomes and rows of probabilities."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast.errors import InputError

__all__ = [
    "MOST_CLASSES",
    "SLACK",
    "Label",
    "are_listed",
    "are_rows",
    "class_rounds",
    "columns_called",
    "readings",
    "refuse_twice",
    "without_prefix",
]

Label = str | int

MOST_CLASSES = 1 << 12  # so that the table of predicted against actual classes fits in memory
SLACK = 1e-6  # by which a row of probabilities may miss a sum of 1
_ROWS = "must have shape (rounds, classes), with at least two columns"
_OPENING = r"[_\s.:/(\[{-]"  # a separator or bracket, before the name of a class
_CLOSING = r"[_\s.:/)\]}%-]"  # or after it
_DIGITS = "0123456789"
_SEPARATOR = r"^(.*[_\s.:/-])[^_\s.:/-]*$"


def are_rows(y_prob: Any) -> bool:
    """Whether forecasts are of several classes: rows of probabilities, rather than one each."""
    if getattr(y_prob, "ndim", None) is None and hasattr(y_prob, "columns"):
        return True  # a frame of Polars
    if isinstance(y_prob, list | tuple):
        return bool(y_prob) and isinstance(y_prob[0], list | tuple | np.ndarray)
    return getattr(y_prob, "ndim", 1) == 2


def class_rounds(
    y_true: Any, y_prob: Any, labels: Any, normalize: bool
) -> tuple[tuple[Label, ...], NDArray[np.int64], NDArray[np.float64]]:
    """Return the labels, the number of each outcome's class, and rows that sum to 1.

    Columns of a frame are found by their names: those of the labels, with or without a common
    prefix such as ``p_``. Columns of an array go by their position.
    """
    _check.flag("normalize", normalize)
    _check._refuse_misaligned("y_prob", y_prob, "y_true", y_true)
    given = None if labels is None else labels_of(labels)
    names = getattr(y_prob, "column_names", getattr(y_prob, "columns", None))  # Arrow, or others
    if names is not None:
        given, chosen = _columns_of(list(names), given, y_true)
        y_prob = np.column_stack([np.asarray(y_prob[name]) for name in chosen])
    rows = _rows(y_prob)
    known = _labels_for(given, rows.shape[1])
    y = class_numbers(y_true, known, stated=given is not None)
    if len(y) != len(rows):
        raise InputError("y_prob", f"must have a row for each of the {len(y)} outcomes", rows.shape)
    return known, y, rows_that_sum(rows, normalize)


def labels_of(labels: Any) -> tuple[Label, ...]:
    """Return the names of classes: those given, or 0, 1, ... for their number."""
    rule = (
        f"must be from 2 to {MOST_CLASSES} different names or whole numbers, in the order of "
        "columns, or how many"
    )
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        return tuple(range(_check.whole_number("labels", labels, least=2, most=MOST_CLASSES)))
    if not are_listed(labels):
        raise InputError("labels", rule, labels)
    names = tuple(_label(value, place) for place, value in enumerate(labels))
    if not 2 <= len(names) <= MOST_CLASSES:
        raise InputError("labels", rule, names)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError("labels", "must name each class once", name, place)
    return names


def are_listed(names: Any) -> bool:
    """Whether these are several things in an order, which those of a set and of a dict need not be.

    Examples
    --------
    >>> are_listed(["home", "away"]), are_listed({"home", "away"}), are_listed("home")
    (True, False, False)
    """
    if isinstance(names, str | bytes | Set | Mapping) or getattr(names, "ndim", 1) != 1:
        return False
    return isinstance(names, Iterable)


def _label(value: Any, place: int) -> Label:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    raise InputError("labels", "must be names or whole numbers", value, place)


def _labels_for(given: tuple[Label, ...] | None, columns: int) -> tuple[Label, ...]:
    if given is None:
        return labels_of(columns)
    if len(given) != columns:
        rule = f"must have a name for each of the {columns} columns of y_prob, in their order"
        raise InputError("labels", rule, given)
    return given


def _columns_of(
    names: list[Any], given: tuple[Label, ...] | None, y_true: Any
) -> tuple[tuple[Label, ...], list[Any]]:
    """Return labels and the columns of a frame that belong to them, in the same order."""
    if given is not None:
        chosen, missing = columns_called(names, given)
        if missing is not None:
            rule = f"must have a column for each label; there is none for {missing!r}"
            raise InputError("y_prob", rule, names)
        refuse_twice("y_prob", names, chosen)
        return given, chosen
    refuse_twice("y_prob", names, names)
    ways = readings([str(name) for name in names])
    known = [dict(zip(keys, names, strict=True)) for keys in ways]
    y = np.asarray(y_true)
    seen = set(_written(np.unique(_plain(y))))
    for columns in known:
        labels = _like(y, columns)
        if labels is not None and seen <= set(columns) and len(columns) == len(names):
            return labels_of(labels), list(columns.values())
    if len(names) == 1:
        rule = "must have a column for each class: for outcomes 0 or 1, pass the one column itself"
        raise InputError("y_prob", rule, names)
    if not seen:
        raise InputError("labels", "must be given if y_prob is a frame without rows", None)
    remedy = "pass labels=, or .to_numpy() to go by position"
    strange = seen.difference(*known)
    if not strange:
        rule = f"must have columns that are all called as y_true calls the classes; {remedy}"
        raise InputError("y_prob", rule, names)
    first = next(at for at, text in enumerate(_written(_plain(y))) if text in strange)
    rule = f"must be named by the columns of y_prob ({', '.join(map(str, names))}); {remedy}"
    raise InputError("y_true", rule, y.ravel()[first : first + 1].tolist()[0], first)


def refuse_twice(argument: str, names: Sequence[Any], chosen: Sequence[Any]) -> None:
    """Refuse a frame if a column that was chosen is there more than once."""
    count = Counter(names)
    twice = next((name for name in chosen if count[name] > 1), None)
    if twice is not None:
        rule = f"must have one column for each class; there are {count[twice]} called {twice!r}"
        raise InputError(argument, rule, [*names])


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return outcomes as numbers or as text."""
    return values if values.dtype.kind in "biuf" else values.astype(str)


def _written(values: NDArray[Any]) -> Iterator[str]:
    """Yield how outcomes are written: whole floats as integers are."""
    for value in values.ravel().tolist():
        whole = isinstance(value, float) and value.is_integer()
        yield str(int(value) if whole else value)


def _like(y: NDArray[Any], columns: Iterable[str]) -> list[Any] | None:
    """Return the names of columns as outcomes are written: as numbers if those are numbers.

    None if that cannot be, as of a name among numbers.
    """
    if y.dtype.kind == "b":
        values = {"False": 0, "True": 1}
        return [values[name] for name in columns] if values.keys() >= {*columns} else None
    if y.dtype.kind not in "iuf":
        return [*columns] if y.size else None
    try:
        numbers = [float(name) for name in columns]
    except ValueError:
        return None
    return [int(number) for number in numbers] if all(map(float.is_integer, numbers)) else None


def columns_called(names: Sequence[Any], labels: Sequence[Label]) -> tuple[list[Any], Label | None]:
    """Return the columns that are called like labels, and the first label that has none.

    Either all are called like their labels, or all have the same beginning or end beside it. Others
    may be among them.

    Examples
    --------
    >>> columns_called(["p_away", "p_home", "round"], ["home", "away"])
    (['p_home', 'p_away'], None)
    >>> columns_called(["p_away", "p_home"], ["home", "draw", "away"])
    ([], 'draw')
    """
    columns = {str(name): name for name in names}
    missing = [*labels]
    for some in _likely(columns, labels):
        for way in readings(some):
            known = dict(zip(way, some, strict=True))
            without = [label for label in labels if str(label) not in known]
            if not without:
                return [columns[known[str(label)]] for label in labels], None
            missing = min(missing, without, key=len)
    return [], missing[0]


def _likely(columns: Iterable[str], labels: Sequence[Label]) -> Iterator[list[str]]:
    """Yield all columns; then, if they are asked for, those that have a label in their names."""
    yield [*columns]
    yield [one for one in columns if any(str(label) in one for label in labels)]


def without_prefix(names: Sequence[str]) -> list[str]:
    """Return names without the beginning that all of them share, up to a separator.

    Examples
    --------
    >>> without_prefix(["p_home", "p_draw", "p_away"])
    ['home', 'draw', 'away']
    """
    shared = re.match(_SEPARATOR, _shared_beginning(names))
    return [name[len(shared[1]) :] if shared else name for name in names]


def _shared_beginning(names: Sequence[str]) -> str:
    first, last = min(names, default=""), max(names, default="")
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[:same]


def readings(names: Sequence[str]) -> list[list[str]]:
    """Return what columns may call their classes: their names, less what all of them share.

    The fewer letters are taken away, the earlier: nothing, then up to each separator or bracket,
    then all that is shared, but no part of a number.

    Examples
    --------
    >>> readings(["P(a)", "P(b)"])
    [['P(a)', 'P(b)'], ['P(a', 'P(b'], ['a)', 'b)'], ['a', 'b']]
    >>> readings(["p_New York", "p_New Jersey"])[1:]
    [['New York', 'New Jersey'], ['York', 'Jersey']]
    """
    if len(names) < 2:
        return [list(names)]
    begin = _shared_beginning(names)
    end = _shared_beginning([name[len(begin) :][::-1] for name in names])[::-1]
    if any(_splits_number(name, len(begin)) for name in names):
        begin = begin.rstrip(_DIGITS)
    if any(_splits_number(name, len(name) - len(end)) for name in names):
        end = end.lstrip(_DIGITS)
    opened = [begin[: at.end()] for at in re.finditer(_OPENING, begin)]
    closed = [end[at.start() :] for at in re.finditer(_CLOSING, end)]
    ways = [
        [name[len(before) : len(name) - len(after)] for name in names]
        for before in dict.fromkeys(["", *opened, begin])
        for after in dict.fromkeys(["", *closed[::-1], end])
    ]
    different = (way for place, way in enumerate(ways) if way not in ways[:place])
    return [way for way in different if all(way) or way == list(names)]


def _splits_number(name: str, at: int) -> bool:
    """Whether there are digits at both sides of a place."""
    return name[:at][-1:].isdecimal() and name[at:][:1].isdecimal()


def class_numbers(y_true: Any, labels: Sequence[Label], *, stated: bool) -> NDArray[np.int64]:
    """Return the place among the labels of each outcome."""
    _check._refuse_masked("y_true", "must have no masked entries", y_true)
    _check._refuse_unordered("y_true", y_true)
    values = np.asarray(y_true)
    if values.ndim != 1:
        raise InputError(
            "y_true", "must have shape (rounds,), a class for each round", values.shape
        )
    if values.dtype.kind in "iubf" and list(labels) == list(range(len(labels))):
        numbers = values.astype(np.int64) if values.dtype.kind != "f" else _whole(values)
        bad = (numbers < 0) | (numbers >= len(labels)) | (numbers != values)
    else:
        numbers = _places(values, labels)
        bad = numbers < 0
    if bad.any():
        _refuse_label(values, int(np.argmax(bad)), labels, stated)
    return numbers


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.where(np.abs(values) < 2**53, values, -1).astype(np.int64)


def _places(values: NDArray[Any], labels: Sequence[Label]) -> NDArray[np.int64]:
    """Return the place of each value; -1 where it is none of the labels."""
    place = {label: at for at, label in enumerate(labels)}
    if values.dtype.kind == "O":
        found = [place.get(value, -1) if _hashable(value) else -1 for value in values]
        return np.array(found, np.int64)
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([place.get(value, -1) for value in distinct.tolist()], np.int64)[which]


def _hashable(value: Any) -> bool:
    return isinstance(value, str | int | float | np.generic)


def _refuse_label(
    values: NDArray[Any], place: int, labels: Sequence[Label], stated: bool
) -> NoReturn:
    shown = ", ".join(map(repr, labels[:8])) + ", ..." * (len(labels) > 8)
    rule = f"must be one of the labels {shown}"
    if not stated:
        rule = (
            f"must be the number of its column in y_prob, 0 to {len(labels) - 1}; "
            "for names pass labels= in the order of the columns, such as model.classes_"
        )
    value = values[place]
    raise InputError("y_true", rule, value.item() if hasattr(value, "item") else value, place)


def _rows(y_prob: Any) -> NDArray[np.float64]:
    rows = _check._numeric("y_prob", y_prob, _check._PROBABILITY)
    if rows.ndim != 2 or rows.shape[1] < 2:
        only = ": of one column, pass [:, 0] and outcomes 0 or 1" * (rows.ndim == 2)
        raise InputError("y_prob", _ROWS + only, rows.shape)
    if rows.shape[1] > MOST_CLASSES:
        raise InputError("y_prob", f"must have at most {MOST_CLASSES} columns", rows.shape)
    return rows


def rows_that_sum(rows: NDArray[Any], normalize: bool) -> NDArray[np.float64]:
    """Return rows of probabilities that sum to 1, or divided by their sums if that is allowed.

    With `normalize` entries may be any that are not negative, as long as a row has a positive one.
    """
    table = np.ascontiguousarray(rows, np.float64)
    if not len(table):
        return table
    low, high = float(table.min()), float(table.max())
    if not (low >= 0 and high <= (np.finfo(np.float64).max if normalize else 1)):
        good = (table >= 0) & (table <= (np.finfo(np.float64).max if normalize else 1))
        rule = "must be finite and not negative" if normalize else _check._PROBABILITY
        place = np.unravel_index(int(np.argmin(good)), table.shape)
        raise InputError("y_prob", rule, float(table[place]), tuple(map(int, place)))
    with np.errstate(over="ignore"):
        sums = table @ np.ones(table.shape[1])
    if not normalize:
        _refuse_sums(sums, np.abs(sums - 1) <= SLACK, "must have rows that sum to 1 within 1e-6")
        return table
    good = (sums > 0) & np.isfinite(sums)
    _refuse_sums(sums, good, "must have rows with a positive entry and a finite sum")
    return np.minimum(table / sums[:, None], 1.0)


def _refuse_sums(sums: NDArray[np.float64], good: NDArray[np.bool_], rule: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        allow = "; normalize=True divides each row by its sum" * rule.endswith("6")
        raise InputError("y_prob", rule + allow, float(f"{sums[row]:.9g}"), row)
