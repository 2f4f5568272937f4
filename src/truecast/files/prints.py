"""Fingerprints of the rows of a file, in bounded space.

They tell which rows of another file are the same, and where not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truecast.errors import StateError
from truecast.files.rounds import Rounds

__all__ = ["CHANCE", "Comparison", "Prints", "unpacked"]

CHANCE = 1e-3
"""How rarely two files of different rows may be as alike as files that are taken to share rows."""

_MOST_SUMS = 1 << 10  # places at which the sums are kept
_HEAD_ROWS = 1 << 12  # rows by which is judged how often rows are alike by chance
_DECIMALS = 12  # that a score has at most, as far as chance is concerned
_SHORTEST_STRETCH = 16  # rows that are looked for elsewhere than in their place
_BLOCK_ROWS = 1 << 14  # rows
_STAKES = 0.01, 0.1, 0.5, 0.9
_PRIOR_ROWS = 2  # rows that the digits of scores count for, beside those that were read
_LANES = 4  # outcomes, scores, groups, and which rows are other than the one before
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_WORD = 1 << 64
_INVERSE = pow(_BASE, -1, _WORD)

Words = NDArray[np.uint64]


class Prints:
    """What rows were read, one after the other.

    Each of the three columns (outcomes, scores, groups) is a polynomial modulo 2**64 whose
    coefficients are hashes of its values. Its sums up to at most 1,024 rows, evenly apart, are
    kept: as rows come, every second is dropped. The difference of two sums tells all rows between
    them, wherever they stand in another file. Beside them it is counted how many rows are other
    than the one before, since rows that stay the same tell nothing.

    Attributes
    ----------
    rows : int
        So far.
    step : int
        Rows from one of the kept sums to the next: a power of two.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.step = 1
        self._end = np.zeros((_LANES, 1), np.uint64)
        self._sums = np.zeros((_LANES, 1), np.uint64)  # after none, `step`, 2 `step` ... rows
        self._last: Words | None = None
        self._head: list[NDArray[Any]] = []
        self._chance = 1.0

    def add(self, part: Rounds) -> None:
        """Take note of more rows."""
        for some in _slices(part):
            self.sums_of(some)

    def sums_of(self, part: Rounds) -> Words:
        """Take note of more rows, not too many at once; return the sums after each of them."""
        hashes = _hashes(part)
        changes = self._changes(hashes)
        terms = np.vstack([hashes * _powers(_BASE, self.rows, len(part)), changes])
        sums = np.cumsum(terms, axis=1, dtype=np.uint64) + self._end
        if self.rows < _HEAD_ROWS:
            self._head.append(
                np.vstack([hashes, part.p[0].view(np.uint64)])[:, : _HEAD_ROWS - self.rows]
            )
        before = self.rows
        self.rows += len(part)
        self._thin()
        # of the new rows, those after which a sum is kept
        at = np.arange(before // self.step + 1, self.rows // self.step + 1) * self.step - before - 1
        self._sums = np.hstack([self._sums, sums[:, at]])
        if len(part):
            self._end = sums[:, -1:]
        return sums

    def _changes(self, hashes: Words) -> Words:
        """1 for each row that is other than the one before, else 0."""
        changes = _changed(hashes, self._last).astype(np.uint64)
        self._last = hashes[:, -1:] if hashes.shape[1] else self._last
        return changes

    def _thin(self) -> None:
        while self.rows // self.step > _MOST_SUMS:
            self._sums = self._sums[:, ::2]
            self.step *= 2

    def sums(self, step: int) -> Words:
        """Return the sums of columns and of changes at every `step` rows, a multiple of the own."""
        return self._sums[:, :: step // self.step]

    @property
    def end(self) -> Words:
        """The sums of all rows: outcomes, scores, groups; 0 if there are no groups."""
        return self._end[:3, 0]

    @property
    def chance(self) -> float:
        """How likely two rows that are not the same are alike, if the second changes at all.

        As often as among the first rows of this file; if these are few, also by how many digits
        their scores have: 0.5 comes again sooner than 0.518203.
        """
        return self._alike([0, 1, 2])[0] if self._head else self._chance

    def nats(self, lanes: list[int]) -> float:
        """How much it tells if other rows are all like these in some columns.

        Judged by the first rows.

        It is minus the logarithm of how likely that is if the rows are not the same.
        """
        chance, changed = self._alike(lanes)
        return -math.log(chance) * changed

    def _alike(self, lanes: list[int]) -> tuple[float, int]:
        """Return how likely a changing row is like another in some columns, and how many change."""
        head = np.hstack(self._head)
        changes = _changed(head[lanes])
        p = head[3].view(np.float64)
        rows = len(p)
        changed = int(changes.sum())
        # a word for each row, the same for rows that are alike in these columns
        kinds = np.bitwise_xor.reduce(head[lanes] * np.array([[1], [3], [5]], np.uint64)[lanes])
        _, which, times = np.unique(kinds, return_inverse=True, return_counts=True)
        alike = int((times[which] - 1)[changes].sum())
        digits = (
            next((d for d in range(_DECIMALS) if (np.round(p, d) == p).all()), _DECIMALS)
            if 1 in lanes
            else 0
        )
        return float(
            (alike + _PRIOR_ROWS * changed * 10.0**-digits) / (changed * (rows - 1 + _PRIOR_ROWS))
        ), changed

    def record(self) -> dict[str, Any]:
        """Return all that is needed to compare other rows with these, as plain data."""
        words = np.hstack([self._sums[:, 1:], self._end]).astype("<u8").tobytes()
        return {"step": self.step, "sums": base64.b64encode(words).decode(), "chance": self.chance}

    @classmethod
    def load(cls, saved: object, rows: int) -> Self:
        """Build what `record` gave, of this number of rows.

        Raises
        ------
        StateError
            If it gave no such thing.
        """
        if not isinstance(saved, dict) or set(saved) != {"step", "sums", "chance"}:
            raise StateError("the saved prints must have exactly the entries step, sums, chance")
        prints = cls()
        prints.rows = rows
        prints._thin()
        if type(saved["step"]) is not int or saved["step"] != prints.step:
            raise StateError(
                f"the saved step must be {prints.step} for {rows} rows, got {saved['step']!r:.80}"
            )
        if type(saved["chance"]) is not float or not 0 < saved["chance"] <= 1:
            raise StateError(
                f"the saved chance must be above 0 and at most 1, got {saved['chance']!r:.80}"
            )
        words = unpacked(saved["sums"], "sums", 8 * _LANES * (rows // prints.step + 1))
        sums = np.frombuffer(words, "<u8").astype(np.uint64).reshape(_LANES, -1)
        prints._sums = np.hstack([np.zeros((_LANES, 1), np.uint64), sums[:, :-1]])
        prints._end = sums[:, -1:]
        prints._chance = saved["chance"]
        return prints


def unpacked(text: object, name: str, size: int) -> bytes:
    """Return the bytes in a saved text, of that size, or raise StateError."""
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        found = b""
    if not isinstance(text, str) or len(found) != size:
        raise StateError(f"the saved {name} must be {size} bytes in base 64, got {text!r:.80}")
    return found


class Comparison:
    """The rows of a file, as they come, with those of a run before.

    Rows are the same if outcome, score and group are. Files are taken to share rows if files of
    different rows would be so alike about once in 1,000 times, or less often: by how many rows are
    the same in the same places, by how many they begin with, or by a stretch of rows that is found
    in another place. A row that is like the one before it counts for nothing, since rows may stay
    the same for long. By the same rule it is judged whether outcomes alone are, or scores.

    Attributes
    ----------
    now : Prints
        Of the rows so far.
    """

    def __init__(self, before: Prints) -> None:
        self.now = Prints()
        self._before = before
        self._elsewhere = _Elsewhere(before)
        self._opposite = np.zeros(1, np.uint64)  # the sum of outcomes if each were the other one

    def add(self, part: Rounds) -> None:
        """Take note of more rows; no more in all than there were before."""
        for some in _slices(part):
            powers = _powers(_BASE, self.now.rows, len(some))
            self._opposite = self._opposite + (_of_outcomes(np.abs(1 - some.y)) * powers).sum(
                dtype=np.uint64
            )
            self._elsewhere.add(self.now, some)

    @property
    def left(self) -> int:
        """Rows that there were before and are not compared yet."""
        return self._before.rows - self.now.rows

    @property
    def same(self) -> tuple[bool, bool, bool]:
        """Whether outcomes, scores and groups begin with all that was read before."""
        outcomes, scores, groups = ((self._before.end == self.now.end) & (not self.left)).tolist()
        return outcomes, scores, groups

    @property
    def grouped(self) -> tuple[bool, bool]:
        """Whether there were groups before, and are now."""
        return bool(self._before.end[2]), bool(self.now.end[2])

    @property
    def step(self) -> int:
        """How closely `first` is known."""
        return self._before.step

    @property
    def first(self) -> int:
        """Rows that the file begins with as before, at least; it may have `step` - 1 more."""
        return self._first_stretches() * self.step

    def _first_stretches(self) -> int:
        alike = self._alike()
        return len(alike) if alike.all() else int(np.argmin(alike))

    def _alike(self) -> NDArray[np.bool_]:
        """Whether each stretch of `step` rows is the same; groups count if both files have some."""
        before, now = self.grouped
        lanes = slice(None, 3 if before == now else 2)
        was, found = self._before.sums(self.step)[lanes], self.now.sums(self.step)[lanes]
        ends = min(was.shape[1], found.shape[1])
        alike: NDArray[np.bool_] = (np.diff(was[:, :ends]) == np.diff(found[:, :ends])).all(axis=0)
        return alike

    @property
    def shares(self) -> bool:
        """Whether more rows are the same than chance explains."""
        alike = self._alike()
        changes = np.diff(self._before.sums(self.step)[3, : len(alike) + 1]).astype(np.float64)
        nats = changes * -math.log(self._before.chance)
        return self._elsewhere.found or _beyond_chance(alike, self._first_stretches(), nats)

    @property
    def apart(self) -> bool:
        """Whether one column is the same and the others are not, which chance does not explain.

        All scores, or all outcomes, or all outcomes the opposite: it may be the same file, read in
        another way.
        """
        outcomes, scores, _ = self.same
        opposite = not self.left and bool(self._before.end[0] == self._opposite[0])
        lanes = [lane for lane, same in enumerate((outcomes or opposite, scores)) if same]
        return bool(lanes and self.now.rows) and self.now.nats(lanes) >= -math.log(CHANCE)


def _beyond_chance(alike: NDArray[np.bool_], first: int, nats: NDArray[np.float64]) -> bool:
    """Whether files of different rows are hardly ever so alike, anywhere or at their beginning.

    A stretch is alike by chance with probability exp(-nats). The logarithm of a bet on every
    stretch, at fair odds, is above that of 1,000 at most once in 1,000 times if all are alike by
    chance alone (Markov); so is that of the mean of several bets, which stake more or less.
    """
    odds = np.expm1(np.minimum(nats, 500.0))
    bets = [
        np.where(alike, np.log1p(stake * odds), math.log1p(-stake))[nats > 0].sum()
        for stake in _STAKES
    ]
    mean = np.logaddexp.reduce(bets) - math.log(len(bets))
    return bool(max(nats[:first].sum(), mean) >= -math.log(CHANCE))


class _Elsewhere:
    """Whether long stretches of the rows before are found anywhere: old rows may be gone."""

    def __init__(self, before: Prints) -> None:
        self.found = False
        self._rows = self._length(before)
        sums = before.sums(before.step)[:2]
        steps = self._rows // before.step
        stretches = sums[:, steps:] - sums[:, : max(sums.shape[1] - steps, 0)]
        # divided by the power that a stretch begins with, so that it is the same anywhere
        starts = _powers(pow(_INVERSE, before.step, _WORD), 0, stretches.shape[1])
        wanted, times = np.unique(_joined(stretches * starts), return_counts=True)
        self._wanted = wanted[times == 1]  # what came twice comes again
        self._last = np.zeros((2, 1), np.uint64)

    @staticmethod
    def _length(before: Prints) -> int:
        """Rows of a stretch that does not come twice by chance, whatever it is compared with."""
        bits = (
            -math.log2(before.chance) * int(before.sums(before.step)[3, -1]) / max(before.rows, 1)
        )
        rows = max(
            (2 * math.log2(before.rows + 1) - math.log2(CHANCE)) / max(bits, 1e-9),
            _SHORTEST_STRETCH,
        )
        return math.ceil(min(rows, before.rows + 1) / before.step) * before.step

    def add(self, now: Prints, part: Rounds) -> None:
        """Look through more rows, of which the prints are to take note, too."""
        start = now.rows + 1 - self._last.shape[1]
        sums = np.hstack([self._last, now.sums_of(part)[:2]])
        stretches = sums[:, self._rows :] - sums[:, : max(sums.shape[1] - self._rows, 0)]
        if len(self._wanted) and stretches.shape[1]:
            found = _joined(stretches * _powers(_INVERSE, start, stretches.shape[1]))
            self.found |= bool(np.isin(found, self._wanted).any())
        self._last = sums[:, -self._rows :]


def _slices(part: Rounds) -> Iterator[Rounds]:
    """Yield outcomes, scores and groups of some rows at a time, for the memory's sake."""
    for start in range(0, len(part), _BLOCK_ROWS):
        at = slice(start, start + _BLOCK_ROWS)
        yield Rounds(
            part.y[at],
            tuple(p[at] for p in part.p),
            None,
            None if part.group is None else part.group[at],
        )


def _joined(lanes: Words) -> Words:
    joined: Words = lanes[0] ^ (lanes[1] * np.uint64(3))
    return joined


def _powers(base: int, first: int, count: int) -> Words:
    """The powers of a number modulo 2**64, from the one of that exponent on."""
    powers = np.full(count, base, np.uint64)
    powers[:1] = pow(base, first, _WORD)
    return np.multiply.accumulate(powers)


def _hashes(part: Rounds) -> Words:
    """Hashes of outcomes, scores and groups, which are 0 if there are none."""
    scores = np.zeros(len(part), np.uint64)
    for p in part.p:  # of several classes, in their order
        scores = _mixed(scores + (p + 0.0).view(np.uint64))  # 0 and -0 are the same
    return np.vstack([_of_outcomes(part.y), scores, _of_groups(part.group, len(part))])


def _of_outcomes(y: NDArray[np.float64]) -> Words:
    """Hashes of outcomes or numbers of classes; 2 is that of none, so classes from 2 on move."""
    return _mixed(np.where(np.isnan(y), 2, np.where(y < 2, y, y + 1)).astype(np.uint64))


def _changed(hashes: Words, last: Words | None = None) -> NDArray[np.bool_]:
    """Which rows are other than the one before."""
    first = np.zeros((len(hashes), 1), np.uint64) if last is None else last
    changed: NDArray[np.bool_] = (np.diff(np.hstack([first, hashes])) != 0).any(axis=0)
    return changed


def _mixed(words: Words) -> Words:
    """Every bit of these to depend on all of theirs: the finalizer of splitmix64."""
    words = words + np.uint64(_BASE)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _of_groups(group: pl.Series | None, rows: int) -> Words:
    if group is None:
        return np.zeros(rows, np.uint64)
    names = group.drop_nulls().unique()
    hashes = pl.Series([_of_name(name) for name in names], dtype=pl.UInt64)
    nothing = pl.lit(1, pl.UInt64)
    frame = pl.DataFrame({"name": group}).select(
        pl.col("name")
        .replace_strict(names, hashes, default=None, return_dtype=pl.UInt64)
        .fill_null(nothing)
    )
    return frame["name"].to_numpy().astype(np.uint64)


def _of_name(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") | 2
