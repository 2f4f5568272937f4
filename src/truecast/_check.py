"""The only validation of what users pass: the public edge calls it once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from truecast.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_CHUNK = 1 << 20
_OUTCOME = "must be 0 or 1"
_PROBABILITY = "must be between 0 and 1"
_FOR_CLASSES = {  # what to do about rows of probabilities, by argument
    "score": ": for several classes, use truecast.Recalibrator(classes=...)",
    "scores": ": for several classes, use truecast.Recalibrator(classes=...)",
    "p": ": for several classes, use truecast.Monitor(classes=...)",
}
_LOG_ODDS = "must be log-odds: a finite number"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# the first and the last, in microseconds since 1970
MOMENTS = tuple(
    (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    for moment in (datetime.min, datetime.max)
)
MOST_GROUPS = 100  # of one round
FEWEST_RESAMPLES = 20  # for an interval or a verdict
MOST_ROUNDS = 2**53  # so that every count is exact as a double too
_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)
_USUAL = frozenset(map(np.dtype, ("?", "u1", "i8", "f8")))  # those that need no conversion
_PAIR = "[\ud800-\udbff][\udc00-\udfff]"
WEIGHTS = 1e-100, 1e100  # so that products of weights are neither infinite nor 0


def whole_number(name: str, value: object, *, least: int, most: int) -> int:
    """Return `value` as an int between `least` and `most`."""
    if type(value) is int and least <= value <= most:
        return value  # the common case, at once
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


def text(name: str, value: object) -> str:
    """Return `value` if it is a str."""
    if not isinstance(value, str):
        raise InputError(name, "must be a str", value)
    return value


def outcome(value: Any, *, name: str = "outcome") -> int:
    """Return one outcome as 0 or 1.

    It may be a bool, an integer or a float equal to 0 or 1, Python's or numpy's.
    """
    if _is_outcome(value):
        return int(value == 1)
    raise InputError(name, _OUTCOME, value)


def outcomes(
    values: ArrayLike, *, name: str = "outcomes", dimensions: int = 1
) -> NDArray[np.uint8]:
    """Return outcomes as a contiguous array of bytes 0 and 1; bytes and bools are not copied."""
    array = _numeric(name, values, _OUTCOME)
    if array.ndim != dimensions:
        shape = (
            "(streams, rounds)"
            if dimensions == 2
            else "(rounds,)" + _one_column(name, array, values, _OUTCOME)
        )
        raise InputError(name, f"must have shape {shape}", array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "biu" and flat.dtype.itemsize == 1:
        flat = flat.view(np.uint8)  # a negative byte becomes one above 127
        if flat.size and flat.max() > 1:
            _refuse_first(name, _OUTCOME, array, flat > 1)
        return flat.reshape(array.shape)
    bits = np.empty(flat.size, np.uint8)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        ones = part == 1
        if not np.logical_or(ones, part == 0).all():
            _refuse_first(name, _OUTCOME, array, (flat != 0) & (flat != 1))
        bits[start : start + _CHUNK] = ones
    return bits.reshape(array.shape)


def probability(name: str, value: Any) -> float:
    """Return `value` as a float between 0 and 1: a number of Python or numpy, not a bool."""
    if isinstance(value, (bool, np.bool_)) or not _is_number(value) or not 0 <= value <= 1:
        several = isinstance(value, list | tuple | np.ndarray) and len(np.atleast_1d(value)) > 1
        raise InputError(name, _PROBABILITY + _FOR_CLASSES.get(name, "") * several, value)
    number = float(value)
    if not 0 <= number <= 1:  # a subclass can say anything
        raise InputError(name, _PROBABILITY, number)
    return number


def probabilities(
    name: str, values: Any, y: NDArray[np.uint8] | None = None, outcomes: Any = None
) -> NDArray[np.float64]:
    """Return probabilities as contiguous float64, one for each outcome.

    The outcomes are `y` when checked, if there are any.
    """
    _refuse_misaligned(name, values, "outcomes", outcomes)
    p = _column(name, values, _PROBABILITY)
    if y is not None and len(p) != len(y):
        raise InputError(name, f"must have an entry for each of the {len(y)} outcomes", p.shape)
    for start in range(0, len(p), _CHUNK):  # so that an interrupt need not wait for all
        part = p[start : start + _CHUNK]
        if not ((part >= 0) & (part <= 1)).all():
            _refuse_first(name, _PROBABILITY, p, ~((p >= 0) & (p <= 1)))
    return p.astype(np.float64, copy=False)


def log_odds(name: str, value: Any) -> float:
    """Return `value` as a finite float: a number of Python or numpy, not a bool."""
    if isinstance(value, (bool, np.bool_)) or not _is_number(value):
        raise InputError(name, _LOG_ODDS, value)
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise InputError(name, _LOG_ODDS, value)
    return number


def scores(
    name: str,
    values: Any,
    y: NDArray[np.uint8] | None = None,
    outcomes: Any = None,
    *,
    scale: str = "probability",
    models: int = 1,
) -> NDArray[np.float64]:
    """Return scores as contiguous float64: probabilities or log-odds.

    With several models, there is a row for each round.
    """
    if models > 1:
        return _scores_of_models(name, values, y, outcomes, scale, models)
    if scale == "probability":
        return probabilities(name, values, y, outcomes)
    _refuse_misaligned(name, values, "outcomes", outcomes)
    column = _column(name, values, _LOG_ODDS)
    if y is not None and len(column) != len(y):
        raise InputError(
            name, f"must have an entry for each of the {len(y)} outcomes", column.shape
        )
    z = column.astype(np.float64, copy=False)
    bad = ~np.isfinite(z)
    if bad.any():
        _refuse_first(name, _LOG_ODDS, column, bad)
    return z


def _scores_of_models(
    name: str, values: Any, y: NDArray[np.uint8] | None, outcomes: Any, scale: str, models: int
) -> NDArray[np.float64]:
    """Return an array of shape (rounds, models)."""
    _refuse_misaligned(name, values, "outcomes", outcomes)
    rule = _PROBABILITY if scale == "probability" else _LOG_ODDS
    table = _numeric(name, values, rule)
    if table.shape == (0,):
        table = table.reshape(0, models)
    if table.ndim != 2 or table.shape[1] != models:
        raise InputError(
            name, f"must have shape (rounds, {models}), a column for each model", table.shape
        )
    if y is not None and len(table) != len(y):
        raise InputError(name, f"must have a row for each of the {len(y)} outcomes", table.shape)
    good = (
        (table >= 0) & (table <= 1)
        if scale == "probability"
        else np.isfinite(table.astype(np.float64))
    )
    if not good.all():
        _refuse_first(name, rule, table, ~good)
    return np.require(table.astype(np.float64, copy=False), requirements=["C", "A"])


def scored(
    name: str, values: Any, bits: Any, *, scale: str = "probability", models: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return scores and as many outcomes; if they seem to be the wrong way round, say so."""
    try:
        y = outcomes(bits)
    except InputError as error:
        if models == 1 and getattr(values, "ndim", 1) == 2:
            scores(name, values, scale=scale)  # of several classes: refused, with what to do
        if (
            error.rule == _OUTCOME
            and _holds(outcomes, values)
            and _holds(probabilities, name, bits)
        ):
            rule = f"{_OUTCOME} ({name} are all 0 and 1: the order is {name}, outcomes)"
            raise InputError(error.argument, rule, error.value, error.position) from None
        raise
    return scores(name, values, y, bits, scale=scale, models=models), y


def _holds(check: Callable[..., Any], *values: Any) -> bool:
    try:
        check(*values)
    except InputError:
        return False
    return True


def score_of_models(name: str, values: Any, models: int, logit: bool) -> list[float]:
    """Return the scores of one round, one of each model: a sequence of as many numbers."""
    sequence = values.tolist() if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if not isinstance(sequence, list | tuple) or len(sequence) != models:
        raise InputError(name, f"must be a sequence of {models} numbers, one of each model", values)
    check = log_odds if logit else probability
    numbers = []
    for position, value in enumerate(sequence):
        try:
            numbers.append(check(name, value))
        except InputError as error:
            raise InputError(name, error.rule, value, position) from None
    return numbers


def weight(value: Any) -> float:
    """Return how much of an observation an outcome is: a number above 0 and at most 1."""
    if (
        isinstance(value, (bool, np.bool_))
        or not _is_number(value)
        or not 0 < value <= 1
        or not 0 < float(value) <= 1
    ):
        raise InputError("weight", "must be a number above 0 and at most 1", value)
    return float(value)


def notes(values: Any, count: int) -> list[float]:
    """Return the numbers that a hint gave to be kept with a forecast."""
    if not isinstance(values, list | tuple) or len(values) != count:
        raise InputError("notes", f"must be the {count} numbers that issue() gave", values)
    return [probability("notes", value) for value in values]


Name = str | int
Group = Name | tuple[Name, ...] | None


def group(value: Any, position: int | None = None) -> Group:
    """Return the name or number of a group, a tuple of several, or None."""
    if value is None or (type(value) is str and value.isascii()):
        return value
    if isinstance(value, tuple | list):
        names = tuple(_name(name, position) for name in value)
        if len(set(names)) != len(names) or len(names) > MOST_GROUPS:
            argument = "group" if position is None else "groups"
            raise InputError(
                argument, f"must name each group once, and at most {MOST_GROUPS}", value, position
            )
        return names
    return _name(value, position)


def _name(value: Any, position: int | None, argument: str = "group") -> Name:
    """Return the name or number of one group."""
    named = argument if position is None else f"{argument}s"
    if isinstance(value, str):
        name = str.__str__(value)  # that of an enumeration would be the name of its member
        if not re.search(_PAIR, name):
            return name
        rule = (
            "must have no pair of surrogates, which is saved as one letter: encode it as UTF-16 "
            "and decode it"
        )
        raise InputError(named, rule, ascii(name), position)
    if (type(value) is int or isinstance(value, np.integer)) and -(2**63) <= value < 2**63:
        return int(value)
    several = ", or a tuple of these" if argument == "group" else ""
    raise InputError(
        named, f"must be a str or an int of 64 bits{several}, or None", value, position
    )


def label(value: Any, position: int | None = None) -> Name | None:
    """Return the name or number of the one group that a round belongs to, or None."""
    return None if value is None else _name(value, position)


def labels(values: Any, rounds: int, scores: Any = None) -> list[Name | None]:
    """Return the one group of each round."""
    return [
        label(value, position)
        for position, value in enumerate(_entries("groups", values, rounds, scores))
    ]


_PART = 1 << 16  # entries that are looked at in one go: signals come in between


def groups(values: Any, rounds: int, scores: Any = None) -> list[Group]:
    """Return the group or groups of each round, which are those of the `scores`."""
    entries = _entries("groups", values, rounds, scores)
    parts = range(0, len(entries), _PART)
    if all(_are_plain_names(entries[start : start + _PART]) for start in parts):
        return entries
    return [group(value, position) for position, value in enumerate(entries)]


def _are_plain_names(values: list[Any]) -> bool:
    """Whether `group` would return all of these as they are; to ask it of each takes long."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return all(map(str.isascii, values))
    return kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63


def event(value: Any, position: int | None = None) -> int:
    """Return a number for the name of an event: a hash of 63 bits, never 0."""
    name = _name(value, position, "event")
    letters = (
        b"#" + name.encode("utf-8", "surrogatepass") if isinstance(name, str) else b"%d" % name
    )
    import hashlib  # slow to import, and for this alone

    return int.from_bytes(hashlib.blake2b(letters, digest_size=8).digest()) >> 1 | 1


def events(values: Any, rounds: int, scores: Any = None) -> NDArray[np.int64]:
    """Return the number of the event of each round; 0 where there is none."""
    seen: dict[Any, int] = {}
    numbers = np.zeros(rounds, np.int64)
    for position, value in enumerate(_entries("events", values, rounds, scores)):
        if value is None:
            continue
        if type(value) not in (str, int) or value not in seen:
            seen[value] = event(value, position)
        numbers[position] = seen[value]
    return numbers


def late(
    known: Any, about: Any, rounds: int, scores: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return `known_at` and `events` of a log, which may be none; None if outcomes come at once."""
    if known is not None:
        _refuse_misaligned("known_at", known, "scores", scores)
        none = np.empty(0, np.int64)
        return known_at(known, rounds), none if about is None else events(about, rounds, scores)
    if about is not None:
        rule = "must come with known_at: outcomes known at once are each an event"
        raise InputError("events", rule, about)
    return None


def _entries(name: str, values: Any, rounds: int, scores: Any) -> list[Any]:
    """Return what each round has of a sequence."""
    unsized = not hasattr(values, "__len__") or getattr(values, "shape", None) == ()
    if unsized or isinstance(values, str | bytes | Set | Mapping):
        raise InputError(name, f"must be a sequence with the {name[:-1]} of each round", values)
    _refuse_misaligned(name, values, "scores", scores)
    if len(values) != rounds:
        raise InputError(
            name, f"must have an entry for each of the {rounds} rounds", (len(values),)
        )
    # a frame, a column for each of several
    if not hasattr(values, "tolist") and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not hasattr(values, "tolist"):
        return list(values)
    rows = getattr(values, "iloc", values)
    entries = []
    for start in range(0, rounds, _CHUNK):  # so that an interrupt need not wait for all
        entries += rows[start : start + _CHUNK].tolist()
    return entries


def known_at(values: Any, rounds: int) -> NDArray[np.int64]:
    """Return after which round the outcome of each is known: its own, or a later one."""
    rule = "must be round numbers, each that of its own round or a later one"
    column = _column("known_at", values, rule)
    if len(column) != rounds:
        raise InputError(
            "known_at", f"must have an entry for each of the {rounds} outcomes", column.shape
        )
    if column.dtype.kind not in "iu" and len(column):
        raise InputError("known_at", rule, f"an array of {column.dtype}")
    late = np.empty(rounds, np.int64)
    for start in range(0, rounds, _CHUNK):  # so that an interrupt need not wait for all
        part = column[start : start + _CHUNK]
        late[start : start + _CHUNK] = np.minimum(
            part, part.dtype.type(min(1 << 62, np.iinfo(part.dtype).max))
        )
        if (late[start : start + _CHUNK] < np.arange(start, start + len(part))).any():
            _refuse_first(
                "known_at", rule, column, late[: start + len(part)] < np.arange(start + len(part))
            )
    return late


def tickets(values: Any, came: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return numbers of tickets, and an outcome for each."""
    y = outcomes(came)
    rule = "must be numbers of tickets, from 0"
    column = _column("tickets", values, rule)
    if len(column) != len(y):
        raise InputError(
            "tickets", f"must have an entry for each of the {len(y)} outcomes", column.shape
        )
    if column.dtype.kind not in "iu" and len(column):
        raise InputError("tickets", rule, f"an array of {column.dtype}")
    bad = column < 0 if column.dtype.kind == "i" else column > np.iinfo(np.int64).max
    if len(column) and bad.any():
        _refuse_first("tickets", rule, column, bad)
    return np.ascontiguousarray(column, np.int64), y


def output(
    out: object, y: NDArray[np.uint8], x: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return `out` if forecasts of the outcomes `y` can be written to it.

    Hints or scores `x` are read meanwhile, so it must not share their memory.
    """
    rule = f"must be a writeable, contiguous float64 array of shape {y.shape}, aligned"
    if not isinstance(out, np.ndarray):
        raise InputError("out", rule, out)
    found = f"{out.dtype} of shape {out.shape}"
    if out.dtype != np.float64 or out.shape != y.shape or not out.flags.carray:
        raise InputError("out", rule, found)
    if np.may_share_memory(out, y):
        raise InputError("out", "must not share memory with outcomes", found)
    # in place is fine
    if x is not None and out.ctypes.data != x.ctypes.data and np.may_share_memory(out, x):
        raise InputError("out", "must not overlap what is read after it is written", found)
    return out


def predictions(y_true: Any, y_prob: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return outcomes and forecasts: one-dimensional, contiguous, of one length.

    Outcomes are bytes, int64 or float64.

    Their values are checked by the kernel that reads them first; if it finds a round that is not
    valid, `refuse_predictions` says which.
    """
    if type(y_prob) is not np.ndarray:
        _refuse_misaligned("y_prob", y_prob, "y_true", y_true)
    if getattr(y_prob, "ndim", 1) > 1:  # said first, because outcomes may be labels then
        _column("y_prob", y_prob, _PROBABILITY)
    y = _column("y_true", y_true, _OUTCOME)
    p = _column("y_prob", y_prob, _PROBABILITY)
    if len(y) != len(p):
        raise InputError("y_prob", f"must have an entry for each of the {len(y)} outcomes", p.shape)
    if p.dtype is _FLOAT and (y.dtype is _INT or y.dtype is _FLOAT):
        return y, p  # the common case, at once
    # before rounding hides it
    if max(y.itemsize, p.itemsize) > 8 and any(map(np.any, _invalid(y, p))):
        refuse_predictions(y, p)
    p = p if p.dtype == np.float64 else p.astype(np.float64)
    if y.dtype.char in "?B":
        return y.view(np.uint8), p
    kind = np.float64 if y.dtype.kind == "f" or y.dtype == np.uint64 else np.int64
    return y if y.dtype == kind else y.astype(kind), p


def _invalid(y: NDArray[Any], p: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return (y != 0) & (y != 1), ~((p >= 0) & (p <= 1))


def refuse_predictions(y: NDArray[Any], p: NDArray[Any]) -> NoReturn:
    """Raise the error of the first round that is not valid."""
    y = y.view(np.uint8) if y.dtype.char == "?" else y  # a byte may be neither False nor True
    not_outcome, not_probability = _invalid(y, p)
    if not_outcome.any():
        swapped = not not_probability.any() and bool(np.isin(p, (0, 1)).all())
        hint = " (y_prob is all 0 and 1: the order is y_true, y_prob)" if swapped else ""
        _refuse_first("y_true", _OUTCOME + hint, y, not_outcome)
    if not_probability.any():
        _refuse_first("y_prob", _PROBABILITY, p, not_probability)
    raise InputError("y_true", "must not change while it is read, and neither must y_prob", y)


def sample_weight(weights: Any, y_true: Any, y_prob: Any, rounds: int) -> NDArray[Any]:
    """Return the weights of `rounds` rounds: int64 if they are integers, else float64.

    None is negative or extreme.
    """
    _refuse_misaligned("sample_weight", weights, "y_true", y_true)
    _refuse_misaligned("sample_weight", weights, "y_prob", y_prob)
    return counts("sample_weight", weights, rounds)


def resamples(value: object, most: int = 10**6) -> int:
    """Return how often chance is simulated: often enough for an interval."""
    return whole_number("resamples", value, least=FEWEST_RESAMPLES, most=most)


def counts(name: str, values: Any, size: int) -> NDArray[Any]:
    """Return `size` counts or weights, not negative or extreme: int64 if whole, else float64."""
    low, high = WEIGHTS
    rule = f"must be 0, or from {low:g} to {high:g}"
    array = _column(name, values, rule)
    if len(array) != size:
        raise InputError(name, f"must have {size} entries", array.shape)
    if array.dtype.kind == "f":
        array = array.astype(np.promote_types(array.dtype, np.float64), copy=False)
        # all positive, which is quick to see
        if not len(array) or (low <= array.min() and array.max() <= high):
            return array.astype(np.float64, copy=False)
        bad = ~((array >= low) & (array <= high)) & (array != 0)
    else:
        rule = f"must be from 0 to {MOST_ROUNDS}"
        if not len(array) or (array.min() >= 0 and array.max() <= MOST_ROUNDS):
            return array.astype(np.int64, copy=False)
        bad = (array < 0) | (array > MOST_ROUNDS)
    if bad.any():
        _refuse_first(name, rule, array, bad)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)


def increasing_forecasts(values: Any) -> NDArray[np.float64]:
    """Return distinct forecasts in increasing order, -0.0 as 0.0."""
    p = _column("p", values, _PROBABILITY).astype(np.float64) + 0.0
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        _refuse_first("p", _PROBABILITY, p, bad)
    if (np.diff(p) <= 0).any():
        _refuse_first(
            "p", "must increase from entry to entry", p, np.append(False, np.diff(p) <= 0)
        )
    return p


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(name, "must be True or False", value)
    return bool(value)


def within(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float from `low` to `high`."""
    if type(value) is float and low <= value <= high:
        return value  # the common case, at once
    if isinstance(value, (bool, np.bool_)) or not _is_number(value) or not low <= value <= high:
        raise InputError(name, f"must be a number from {low:g} to {high:g}", value)
    return float(value)


def option(name: str, value: Any, options: Sequence[float]) -> float:
    """Return `value` if it is one of these numbers."""
    if isinstance(value, (bool, np.bool_)) or not _is_number(value) or value not in options:
        raise InputError(
            name, "must be one of " + ", ".join(f"{number:g}" for number in options), value
        )
    return float(value)


def between(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float strictly between `low` and `high`."""
    if type(value) is float and low < value < high:
        return value  # the common case, at once
    rule = f"must be a number above {low:g}" + (
        f" and below {high:g}" if high < np.inf else ", finite"
    )
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise InputError(name, rule, value)
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not low < number < high:
        raise InputError(name, rule, value)
    return number


def generator(name: str, value: object) -> np.random.Generator:
    """Return a random generator: the given one, a new one for a seed, or for None any."""
    if isinstance(value, np.random.Generator):
        return value
    if value is None:
        return np.random.default_rng()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < 0:
        raise InputError(
            name, "must be a whole number from 0, a numpy.random.Generator or None", value
        )
    return np.random.default_rng(int(value))


def moment(text: str | None) -> tuple[str, float]:
    """Return the kind of a time that is written down, and the time.

    It is a "number", or microseconds since 1970: of a "local" date and time without a time zone, or
    of a "zoned" one. The kind is "" if it is no time.

    Examples
    --------
    >>> moment("17.5"), moment("1970-01-02"), moment("1970-01-01T01:00+01:00"), moment("soon")
    (('number', 17.5), ('local', 86400000000), ('zoned', 0), ('', nan))
    """
    nothing = "", math.nan
    if text is None:
        return nothing
    try:
        number = float(text)
    except ValueError:
        return _of_iso(text.strip()) or nothing
    return ("number", number) if math.isfinite(number) else nothing


def _of_iso(text: str) -> tuple[str, float] | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = when.tzinfo is not None
    since = ((when if zoned else when.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    return ("zoned" if zoned else "local", since) if MOMENTS[0] <= since <= MOMENTS[1] else None


def _column(name: str, values: Any, rule: str) -> NDArray[Any]:
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype in _USUAL:
        flags = values.flags  # the common case, at once
        if flags.c_contiguous and flags.aligned and values.size:
            return values
    array = _numeric(name, values, rule)
    if array.ndim != 1:
        raise InputError(
            name, "must have shape (rounds,)" + _one_column(name, array, values, rule), array.shape
        )
    return np.require(array, requirements=["C", "A"])


def _one_column(name: str, array: NDArray[Any], values: Any, rule: str) -> str:
    """How to get one column out of several, if that can be told."""
    if array.ndim != 2:
        return ""
    if array.shape[1] == 1:
        return (
            ": pass its only column, [:, 0]"
            if not hasattr(values, "iloc")
            else ": pass its only column, .iloc[:, 0]"
        )
    if rule is not _PROBABILITY:
        return ""
    place = ".iloc[:, 1]" if hasattr(values, "iloc") else "[:, 1]"
    if array.shape[1] == 2:
        return f": from predict_proba, pass {place}, the probability of a 1"
    one = (
        f": for several classes, pass one at a time, such as {place}, with y == 1 as outcomes, or "
        "use truecast.measure or classwise_calibration_errors(..., error=...)"
    )
    return _FOR_CLASSES.get(name, one)


def _refuse_unordered(name: str, values: Any) -> None:
    """Refuse what numpy cannot take as an array, and say what to pass instead."""
    if getattr(values, "requires_grad", False) is True:
        raise InputError(
            name, "must not need a gradient: pass .detach().cpu().numpy()", type(values)
        )
    if isinstance(values, Iterator):
        raise InputError(
            name,
            "must be an array or a list, which can be read twice: pass list(...) of it",
            values,
        )
    if isinstance(values, Set | Mapping):
        raise InputError(
            name, "must be an array or a list, with an entry for each round in order", values
        )


def _refuse_masked(name: str, rule: str, values: Any) -> None:
    """Refuse an array of which entries are masked: what is behind the mask is not meant."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        _refuse_first(name, rule, values, np.ma.getmaskarray(values).reshape(-1))


def _refuse_misaligned(name: str, values: Any, other_name: str, other: Any) -> None:
    """Refuse two labelled columns (pandas) whose labels differ: they may be of different rows."""
    if hasattr(values, "iloc") and hasattr(other, "iloc") and not values.index.equals(other.index):
        rule = f"must have the index of {other_name} (pass .to_numpy() to go by position)"
        raise InputError(name, rule, values.index)


def _numeric(name: str, values: Any, rule: str) -> NDArray[Any]:
    _refuse_masked(name, rule, values)
    _refuse_unordered(name, values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        rule = "must be an array of numbers, all rows of one length"
        rule = (
            "must be an array: pass .detach().cpu().numpy()" if hasattr(values, "detach") else rule
        )
        raise InputError(name, rule, values) from error
    if array.size == 0:
        return np.zeros(array.shape, np.uint8)
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind == "O":
        for position, value in enumerate(array.flat):
            if not _is_number(value) or (rule is _OUTCOME and value not in (0, 1)):
                raise InputError(name, _of_labels(rule, value), value, position)
    if array.dtype.kind in "US" and rule is _OUTCOME and not _reads_as_number(array.flat[0]):
        label = array.flat[0].item()
        raise InputError(name, _of_labels(rule, label), label, 0)
    rule = "must be an array of bool, integers or floats" + " (convert it first)" * (
        array.dtype.kind in "OUS"
    )
    raise InputError(name, rule, array.dtype)


def _of_labels(rule: str, value: Any) -> str:
    """The rule, and what to do with labels that are words."""
    if rule is _OUTCOME and isinstance(value, str | bytes) and not _reads_as_number(value):
        return (
            f"{rule} (for labels, pass a comparison with the one that counts as 1, such as y == "
            f"{value!r:.40})"
        )
    return rule


def _reads_as_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_outcome(value: Any) -> bool:
    return _is_number(value) and value in (0, 1)


def _is_number(value: Any) -> bool:
    if isinstance(value, np.timedelta64):  # an integer to numpy
        return False
    return isinstance(value, (int, float, np.bool_, np.integer, np.floating))


def _refuse_first(name: str, rule: str, array: NDArray[Any], bad: NDArray[np.bool_]) -> NoReturn:
    first = int(np.argmax(bad))
    value = array.reshape(-1)[first]
    value = value.item() if isinstance(value, np.generic) else value
    row_and_column = tuple(map(int, np.unravel_index(first, array.shape)))
    raise InputError(name, rule, value, position=first if array.ndim == 1 else row_and_column)
