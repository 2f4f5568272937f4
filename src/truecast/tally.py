"""The tally: all that measures of calibration need to know about the rounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from truecast import _check, _core, state
from truecast._names import counted, rounds_or_weight
from truecast._threads import threads
from truecast.errors import InputError, StateError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["RunningTally", "Tally"]

_FEW_ROUNDS = 1 << 10  # below this, a table of forecasts costs more than sorting
_SHARE = 1 << 15  # rounds for which a thread is worth starting
_STRETCH = 1 << 15  # entries of columns
_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)

_set = object.__setattr__  # for a tally, which does not let others


class Tally:
    """How many zeros and ones there were at each distinct forecast.

    Two sets of rounds with the same tally have the same measures, in any order. A tally is a value:
    it never changes, compares by content, and can be added.

    Forecasts are the same only if they are equal as doubles (-0.0 is 0.0). Integer weights are
    counts, as if the round came that often. All sums of counts are exact, so merging parts gives
    the tally of the whole, bit for bit. Real weights make a weighted tally: its sums are exact and
    then rounded once to doubles, so the order of rounds does not matter.

    Parameters
    ----------
    p
        Distinct forecasts, increasing.
    zeros, ones
        How many outcomes 0 and 1 each had: integers, or floats for a weighted tally.

    Attributes
    ----------
    p : array of float64
    zeros, ones : arrays of int64, or float64 in a weighted tally
        All three are read-only.
    total : int or float
        The number of rounds, or the sum of the weights.
    weighted : bool

    Examples
    --------
    >>> import truecast as tc
    >>> t = tc.Tally.from_predictions([1, 0, 1], [0.9, 0.2, 0.9])
    >>> t
    Tally of 3 rounds at 2 forecasts
    >>> (t + t).ones
    array([0, 4])

    Notes
    -----
    24 bytes for each distinct forecast. Forecasts with a few decimals have few distinct values,
    however many rounds there are; `truecast.adapters.duckdb` and `truecast.adapters.polars` make
    the tally of files that do not fit in memory.
    """

    __slots__ = ("_few", "ones", "p", "total", "weighted", "zeros")

    p: NDArray[np.float64]
    zeros: NDArray[Any]
    ones: NDArray[Any]
    total: int | float
    weighted: bool
    _few: _core.FewRounds | None  # the same as kernels take it, if there were few rounds

    def __init__(self, p: ArrayLike = (), zeros: ArrayLike = (), ones: ArrayLike = ()) -> None:
        forecasts = _check.increasing_forecasts(p)
        of_zero = _check.counts("zeros", zeros, len(forecasts))
        of_one = _check.counts("ones", ones, len(forecasts))
        if of_zero.dtype != of_one.dtype:
            of_zero, of_one = of_zero.astype(np.float64), of_one.astype(np.float64)
        seen = (of_zero > 0) | (of_one > 0)
        # copies, so the caller keeps no way in; and no -0.0 among weights
        self._set(forecasts[seen], of_zero[seen] + 0, of_one[seen] + 0)

    def _set(
        self,
        p: NDArray[np.float64],
        zeros: NDArray[Any],
        ones: NDArray[Any],
        rounds: int | None = None,
    ) -> None:
        weighted = zeros.dtype == np.float64
        total = _total(zeros, ones) if rounds is None else rounds
        if not total <= (np.finfo(np.float64).max if weighted else _check.MOST_ROUNDS):
            raise InputError(
                "the number of rounds", f"must be at most {_check.MOST_ROUNDS} in total", total
            )
        for column in (p, zeros, ones):
            column.setflags(write=False)
        self._hold(p, zeros, ones, total, weighted)

    def _hold(
        self,
        p: NDArray[np.float64],
        zeros: NDArray[Any],
        ones: NDArray[Any],
        total: int | float,
        weighted: bool,
    ) -> None:
        _set(self, "_few", None)
        _set(self, "p", p)
        _set(self, "zeros", zeros)
        _set(self, "ones", ones)
        _set(self, "total", total)
        _set(self, "weighted", weighted)

    @classmethod
    def _of(
        cls,
        p: NDArray[np.float64],
        zeros: NDArray[Any],
        ones: NDArray[Any],
        rounds: int | None = None,
    ) -> Tally:
        """Return a tally of arrays that are known to be valid and not shared."""
        tally = cls.__new__(cls)
        tally._set(p, zeros, ones, rounds)
        return tally

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> Tally:
        """Return the tally of rounds.

        Parameters
        ----------
        y_true
            Outcomes, 0 or 1: an array, list, or a column of pandas, Polars or Arrow.
        y_prob
            The forecast of each, between 0 and 1.
        sample_weight
            A weight for each round: integers count as repeated rounds, floats make a weighted
            tally.

        Raises
        ------
        InputError
            If a value is missing, not a number or out of range (no tolerance, no clipping), lengths
            differ, or pandas columns have different indexes.

        Notes
        -----
        O(n log n); costs about as much as sorting `y_prob`.
        """
        if sample_weight is None:
            few = _core.few_rounds(y_true, y_prob)
            if few is not None:
                return cls._of_few(few)
        y, p = _check.predictions(y_true, y_prob)
        if sample_weight is not None:
            weights = _check.sample_weight(sample_weight, y_true, y_prob, len(y))
            return cls._of(*_weighted(y, p, weights), rounds=_sum_of_whole(weights))
        return cls._of(*_counted(y, p), rounds=len(y))

    @classmethod
    def _of_few(cls, few: _core.FewRounds) -> Tally:
        """Return a tally whose columns are made when one is asked for: they cost the most."""
        tally = cls.__new__(cls)
        _set(tally, "_few", few)
        _set(tally, "total", few.total)
        _set(tally, "weighted", False)
        return tally

    if not TYPE_CHECKING:  # a type checker knows the columns, and that there are no others

        def __getattr__(self, name: str) -> Any:
            if name not in _COLUMNS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            data, n = self._few._columns(), len(self._few)
            counts = np.frombuffer(data, _INT)
            _set(self, "p", np.frombuffer(data, _FLOAT, n))
            _set(self, "zeros", counts[n : 2 * n])
            _set(self, "ones", counts[2 * n :])
            return object.__getattribute__(self, name)

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> Tally:
        """Return this tally with more rounds; this one does not change.

        For many small updates see `RunningTally`.
        """
        return self + Tally.from_predictions(y_true, y_prob, sample_weight=sample_weight)

    @classmethod
    def merge(cls, tallies: Iterable[Tally]) -> Tally:
        """Return the sum of tallies, such as those of shards."""
        if not isinstance(tallies, Iterable):
            raise InputError("tallies", "must be several of type Tally", tallies)
        level = [*tallies]
        for tally in level:
            if not isinstance(tally, Tally):
                raise InputError("tallies", "must be of type Tally", tally)
        while len(level) > 1:  # by pairs: every forecast takes part in log2(k) sums
            level = [
                level[i] + level[i + 1] if i + 1 < len(level) else level[i]
                for i in range(0, len(level), 2)
            ]
        return level[0] if level else cls()

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if not self.total or not other.total:
            return self if self.total else other
        kind = np.float64 if self.weighted or other.weighted else np.int64
        room = len(self.p) + len(other.p)
        p, zeros, ones = np.empty(room), np.empty(room, kind), np.empty(room, kind)
        parts = [
            part.astype(kind, copy=False)
            for part in (self.zeros, self.ones, other.zeros, other.ones)
        ]
        distinct = _core.merge_tallies(
            self.p, parts[0], parts[1], other.p, parts[2], parts[3], p, zeros, ones, shares(room)
        )
        _shrunk(distinct, (p, zeros, ones))
        return Tally._of(p, zeros, ones)

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.weighted == other.weighted and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("p", "zeros", "ones")
        )

    def __hash__(self) -> int:
        return hash((self.p.tobytes(), self.zeros.tobytes(), self.ones.tobytes()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Tally does not change: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Tally does not change: cannot delete {name}")

    def __repr__(self) -> str:
        return f"Tally of {rounds_or_weight(self.total)} at {counted(len(self.p), 'forecast')}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tally, (self.p, self.zeros, self.ones)

    @property
    def weights(self) -> NDArray[Any]:
        """How many rounds, or what weight, each forecast has."""
        both: NDArray[Any] = self.zeros + self.ones
        return both

    @property
    def rate(self) -> float:
        """The mean outcome; nan if there are no rounds."""
        return float(self.ones.sum() / self.total) if self.total else float("nan")

    def mirrored(self) -> Tally:
        """Return the tally of 1 - p and 1 - y; merges forecasts that rounding makes equal."""
        p, zeros, ones = (1.0 - self.p)[::-1], self.ones[::-1], self.zeros[::-1]
        starts = (
            np.flatnonzero(np.append(True, np.diff(p) > 0)) if len(p) else np.empty(0, np.int64)
        )
        if not len(p):
            return self
        return Tally._of(p[starts], np.add.reduceat(zeros, starts), np.add.reduceat(ones, starts))

    def coarsened(self, cells: int) -> Tally:
        """Return a tally of at most `cells` forecasts, each moved by less than 1 / `cells`.

        Rounds in a cell [k / cells, (k + 1) / cells) all get their mean forecast, so that each cell
        keeps the sum of y - p. A tally with no more than `cells` forecasts is returned unchanged.
        """
        cells = _check.whole_number("cells", cells, least=1, most=1 << 30)
        return self if len(self.p) <= cells else self._in_cells(cells)

    def _in_cells(self, cells: int) -> Tally:
        """Return the same with every cell pooled, however few forecasts there are.

        Parts of whole cells then add.
        """
        starts, before = [np.empty(0, np.int64)], -1
        for part in stretches(len(self.p)):
            cell = np.minimum((self.p[part] * cells).astype(np.int64), cells - 1)
            starts.append(part.start + np.flatnonzero(np.diff(cell, prepend=before)))
            before = cell[-1]
        return self._pooled(np.concatenate(starts))

    def _pooled(self, starts: NDArray[np.int64]) -> Tally:
        """Return the tally with forecasts from each of `starts` to the next at their mean."""
        zeros = np.add.reduceat(self.zeros, starts)
        ones = np.add.reduceat(self.ones, starts)
        products = np.empty(len(self.p))
        for part in stretches(len(self.p)):
            np.multiply(self.p[part], self.zeros[part] + self.ones[part], out=products[part])
        mean = np.add.reduceat(products, starts) / (zeros + ones)
        last = np.append(starts[1:], len(self.p)) - 1
        # rounding must not leave the cell
        return Tally._of(np.clip(mean, self.p[starts], self.p[last]), zeros, ones)

    def to_json(self) -> str:
        """Return the tally as versioned JSON."""
        import base64

        columns = {
            name: base64.b64encode(_little(getattr(self, name)).tobytes()).decode()
            for name in _COLUMNS
        }
        return state.to_json("Tally", {"weighted": self.weighted}, columns)

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """Return the tally that `to_json` saved."""
        import base64

        config, columns = state.from_json(text, "Tally")
        kinds = (
            {"p": "<f8", "zeros": "<f8", "ones": "<f8"}
            if config.get("weighted") is True
            else _COLUMNS
        )
        try:
            if not isinstance(columns, dict) or set(columns) != set(_COLUMNS):
                raise StateError(f"a saved tally has the columns {sorted(_COLUMNS)}")
            arrays = {
                name: np.frombuffer(base64.b64decode(columns[name], validate=True), kind)
                for name, kind in kinds.items()
            }
            return cls(
                **{
                    name: array.astype(array.dtype.newbyteorder("="))
                    for name, array in arrays.items()
                }
            )
        except (TypeError, ValueError) as error:
            raise StateError(f"this is not a saved tally: {error}") from error

    def to_bytes(self) -> bytes:
        """Return the tally as compact bytes, to store or to send: never pickle."""
        return state.to_bytes(self.to_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Return the tally that `to_bytes` saved."""
        return cls.from_json(state.from_bytes(data))


class RunningTally:
    """A tally that grows: many small updates, whose cost hardly grows with its size.

    Examples
    --------
    >>> import truecast as tc
    >>> running = tc.RunningTally()
    >>> for y, p in [(1, 0.9), (0, 0.2), (1, 0.9)]:
    ...     running.update([y], [p])
    >>> running.compute()
    Tally of 3 rounds at 2 forecasts

    Notes
    -----
    Parts are merged when the older is not much larger than the newer, so a forecast takes part in
    O(log n) merges. `compute` merges them all, which is linear in the number of distinct forecasts.
    """

    def __init__(self) -> None:
        self._parts: list[Tally] = []

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> None:
        """Add rounds."""
        self.merge(Tally.from_predictions(y_true, y_prob, sample_weight=sample_weight))

    def merge(self, other: Tally | RunningTally) -> None:
        """Add the rounds of another tally."""
        if not isinstance(other, Tally | RunningTally):
            raise InputError("other", "must be a Tally or a RunningTally", other)
        part = other.compute() if isinstance(other, RunningTally) else other
        while self._parts and len(self._parts[-1].p) <= 2 * len(part.p):
            part = self._parts.pop() + part
        if part.total:
            self._parts.append(part)

    @property
    def forecasts(self) -> int:
        """An upper bound on distinct forecasts: those that parts share count for each part."""
        return sum(len(part.p) for part in self._parts)

    def compute(self) -> Tally:
        """Return the tally so far."""
        self._parts = [Tally.merge(self._parts[::-1])]
        return self._parts[0]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return each value once, increasing: as `np.unique`, which imports masked arrays first."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


@overload
def as_tally(y_true: Tally, y_prob: None = None, sample_weight: None = None) -> Tally: ...
@overload
def as_tally(y_true: Any, y_prob: Any, sample_weight: Any = None) -> Tally: ...
def as_tally(y_true: Any, y_prob: Any = None, sample_weight: Any = None) -> Tally:
    """Return the tally of a measure's arguments: a tally, or outcomes and forecasts.

    It must have at least one round.
    """
    if isinstance(y_true, Tally):
        if y_prob is not None or sample_weight is not None:
            raise InputError("y_prob", "and sample_weight must be left out beside a Tally", y_prob)
        tally = y_true
    elif y_prob is None:
        rule = "is needed unless the first argument is a Tally; of a ClassTally, pass one class: "
        raise InputError("y_prob", rule + "tally[label]", y_true)
    else:
        tally = Tally.from_predictions(y_true, y_prob, sample_weight=sample_weight)
    if not tally.total:
        raise InputError("y_true", "must have at least one round, of positive weight", tally)
    return tally


def tally_or_few(y_true: Any, y_prob: Any, sample_weight: Any) -> Tally | _core.FewRounds:
    """Return a measure's arguments as its kernel takes them: a tally, or that of a few rounds.

    Either has at least one round. The second gives what the first gives, bit for bit, and never
    becomes a tally of Python's, which would take longer than most measures.
    """
    if sample_weight is None:
        few = _core.few_rounds(y_true, y_prob)
        if few is not None:
            return few
    tally = as_tally(y_true, y_prob, sample_weight)
    return tally if tally._few is None else tally._few


def stretches(size: int) -> Iterator[slice]:
    """Yield slices of columns of that size, one after the other.

    What is computed stretch by stretch takes little memory, and stays in the cache.
    """
    return (slice(start, start + _STRETCH) for start in range(0, size, _STRETCH))


_COLUMNS = {"p": "<f8", "zeros": "<i8", "ones": "<i8"}


def _total(zeros: NDArray[Any], ones: NDArray[Any]) -> int | float:
    """Return the sum: exact for integers, unless it is so large that they could overflow."""
    roughly = float(zeros.sum(dtype=np.float64) + ones.sum(dtype=np.float64))
    if zeros.dtype == np.float64 or roughly > 2 * _check.MOST_ROUNDS:
        return roughly
    return int(zeros.sum()) + int(ones.sum())


def _little(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(column.dtype.newbyteorder("<"), copy=False)


def _counted(
    y: NDArray[Any], p: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
    if len(p) >= _FEW_ROUNDS:
        forecasts, counts = np.empty(_core.FEW), np.empty((2, _core.FEW), np.int64)
        distinct = _core.count_few(p, y, forecasts, counts)
        if distinct >= 0:
            order = np.argsort(forecasts[:distinct])
            return forecasts[order], counts[0][order], counts[1][order]

    memory = np.empty(3 * len(p))
    distinct = _core.count_rounds(p, y, shares(len(p)), memory)
    if distinct < 0:
        _check.refuse_predictions(y, p)
    return _columns(distinct, memory, np.int64)


def shares(rounds: int) -> int:
    """Return how many threads are worth starting for this many rounds or forecasts."""
    return min(threads(), rounds // _SHARE) if rounds >= 2 * _SHARE else 1


def _columns(
    distinct: int, memory: NDArray[np.float64], kind: Any
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
    """Return the three columns at the beginning of the memory, which they share.

    One piece of memory is faster than three: the system has less to clear.
    """
    _shrunk(3 * distinct, (memory,))
    memory.setflags(write=False)
    counts = memory[distinct:].view(kind)
    return memory[:distinct], counts[:distinct], counts[distinct:]


def _shrunk(size: int, columns: Sequence[NDArray[Any]]) -> None:
    """Keep the first entries, where they are; the memory of the others is given back."""
    for column in columns:
        if column.size == size:
            continue
        column.resize(size, refcheck=False)  # nothing else looks at these columns any more


def _weighted(
    y: NDArray[Any], p: NDArray[np.float64], weights: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
    """Return the columns of a tally: exact sums, rounded once, so the order does not matter."""
    kind = weights.dtype
    if len(p) >= _FEW_ROUNDS:
        few = np.empty(_core.FEW), np.empty(_core.FEW, kind), np.empty(_core.FEW, kind)
        distinct = _core.weigh_few(p, y, weights, *few)
        if distinct >= 0:
            order = np.argsort(few[0][:distinct])
            return few[0][order], few[1][order], few[2][order]
    memory, room = np.empty(3 * len(p)), np.empty(2 * len(p))
    distinct = _core.weigh_rounds(p, y, weights, shares(len(p)), memory, room)
    if distinct < 0:
        _check.refuse_predictions(y, p)
    return _columns(distinct, memory, kind)


def _sum_of_whole(weights: NDArray[Any]) -> int | None:
    """Return the sum of weights that are integers; of others, the tally's own sum is taken."""
    if weights.dtype != np.int64:
        return None
    if (roughly := weights.sum(dtype=np.float64)) > _check.MOST_ROUNDS:
        raise InputError("sample_weight", f"must sum to at most {_check.MOST_ROUNDS}", roughly)
    return int(weights.sum())
