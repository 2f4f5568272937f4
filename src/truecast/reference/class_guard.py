"""The guard for several classes, in plain Python: rows that sum to 1, one budget for all fields.

The page to read beside docs/classes.md, and the oracle that the compiled guard is driven against.
Fields, prices and the account are those of `ArcGuard`, with a field for each class, of everyone and
of each group.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from truecast.reference.class_levels import Levels
from truecast.reference.guard import (
    END,
    EVERYONE,
    PARTS,
    ArcGuard,
    Field,
    Number,
    forecast_at,
    key_near,
    spacing,
)

__all__ = ["ClassGuard", "Row", "Share"]

COARSE, FINE = 8, 64  # moves between two classes, for each class
HALVINGS = 46


class Share(NamedTuple):
    """What is said of one class, the knot it counts for, and there the tilt and the price.

    Both are of all its fields: everyone's and those of its groups.
    """

    p: float
    key: int
    tilt: Number
    price: Number


class Row(NamedTuple):
    """A forecast of all classes, and what all energies together may grow by."""

    shares: tuple[Share, ...]
    w: Number
    spill: Number  # what of this the budget did not allow for
    moves: int
    names: tuple[Hashable, ...]  # everyone, and its groups

    @property
    def price(self) -> Number:
        """Of all classes."""
        return sum(share.price for share in self.shares)


class ClassGuard(ArcGuard):
    """Says the row if the energies may grow by what it can add, else one near it."""

    def __init__(self, classes: int, *, budget: float = 4.0, start: float = 1000.0) -> None:
        super().__init__(budget=budget, start=start * classes)
        self.classes = range(classes)
        self.fields = {(EVERYONE, k): Field() for k in self.classes}
        self.rows: list[Row] = []  # whose outcomes are awaited

    def forecast(self, hint: Sequence[float], outcome: int, groups: Iterable[Hashable] = ()) -> Row:
        """Play one round."""
        row = self.place_row(hint, groups)
        self.commit_row(row)
        self.settle_row(row, outcome)
        return row

    def issue_row(self, hint: Sequence[float], groups: Iterable[Hashable] = ()) -> Row:
        """Forecast something whose outcome comes later."""
        row = self.place_row(hint, groups)
        self.commit_row(row)
        return row

    # The rule.

    def place_row(self, hint: Sequence[float], groups: Iterable[Hashable] = ()) -> Row:
        """Where the hint leads; nothing changes."""
        names = (EVERYONE, *dict.fromkeys(groups))
        step = spacing(self.made)
        left = self.room()
        more = self.share / (1 + len(self.rows) / 10) * left
        shares = [self.share_at(names, k, p, step) for k, p in enumerate(hint)]
        moves = 0
        if not self.row_fits(shares, more):
            found, moves = self.ascend(names, shares, step, COARSE * len(shares), more)
            if not found:
                shares[:] = [self.share_at(names, k, s.p, 1) for k, s in enumerate(shares)]
                found, further = self.ascend(names, shares, 1, FINE * len(shares), more + 1 / PARTS)
                moves += further
            if not found and not self.row_fits(shares, left):
                shares = self.level(names, step // 4)
        over = self.row_worst(shares) - self.budget * sum(s.price for s in shares) - left
        spill = self.round_up(over) if over > 0 else 0.0
        return Row(tuple(shares), self.round_up(self.row_worst(shares)), spill, moves, names)

    def share_at(self, names: tuple[Hashable, ...], k: int, p: float, step: int) -> Share:
        """What a class adds to the account if p is said of it."""
        return self.share_for(names, k, p, key_near(p, step))

    def share_for(self, names: tuple[Hashable, ...], k: int, p: float, key: int) -> Share:
        """The same, for a key that need not be the nearest."""
        field = sum(self.phi((name, k), key) for name in names)
        tilt = field + len(names) * self.own(key) * (0.5 - p)
        return Share(p, key, tilt, len(names) * p * (1 - p) * self.own(key))

    def row_worst(self, shares: Sequence[Share]) -> Number:
        """What the worst outcome adds: all prices and 2 (max tilt - mean tilt)."""
        mean = sum(share.p * share.tilt for share in shares)
        return sum(s.price for s in shares) + 2 * (max(s.tilt for s in shares) - mean)

    def row_fits(self, shares: Sequence[Share], more: Number) -> bool:
        """Whether the energies can grow by no more than the budget does, and `more`."""
        allowed = self.budget * sum(share.price for share in shares) + more
        return bool(self.row_worst(shares) <= allowed)

    def ascend(
        self, names: tuple[Hashable, ...], shares: list[Share], step: int, most: int, more: Number
    ) -> tuple[bool, int]:
        """Move mass between two classes until the row fits: whether it does, after how many."""
        for done in range(most):
            high = max(self.classes, key=lambda k: shares[k].tilt)
            lacks = [share.p * (shares[high].tilt - share.tilt) for share in shares]
            low = max(self.classes, key=lambda k: lacks[k])
            if not lacks[low] > 0:
                return True, done
            if self.move(names, shares, high, low, step, more):
                return True, done + 1
        return False, most

    def move(
        self,
        names: tuple[Hashable, ...],
        shares: list[Share],
        high: int,
        low: int,
        step: int,
        more: Number,
    ) -> bool:
        """From `low` to `high`, until their tilts agree or the row fits: whether it does."""
        both = min(shares[high].p + shares[low].p, 1.0)  # rounding
        near = step * (math.pi / (1 << 40)) / 2
        start = to = math.atan2(math.sqrt(shares[high].p), math.sqrt(shares[low].p))

        def look(angle: float) -> tuple[bool, bool]:
            sine, cosine = math.sin(angle), math.cos(angle)
            less = both * (sine * sine if cosine > sine else cosine * cosine)
            p = (less, both - less) if cosine > sine else (both - less, less)
            shares[high], shares[low] = (
                self.share_at(names, k, x, step) for k, x in zip((high, low), p, strict=True)
            )
            return self.row_fits(shares, more), shares[high].tilt > shares[low].tilt

        fits, rises, width = False, True, near
        while rises and not fits:
            if to >= math.pi / 2:
                return False
            start, to = to, min(to + width, math.pi / 2)
            fits, rises = look(to)
            width *= 2
        good = fits
        for _ in range(HALVINGS):
            middle = (start + to) / 2
            if (good and to - start < 1.5 * near) or not start < middle < to:
                break
            fits, rises = look(middle)
            good = good or fits
            start, to = (start, middle) if fits or not rises else (middle, to)
        return look(to)[0]

    # The last resort.

    def level(self, names: tuple[Hashable, ...], cell: int) -> list[Share]:
        """Where all tilts pass one height, in cells of the arc that can sum to 1."""
        keys = range(0, END + 1, cell)
        tilts = [self.tilts(names, k, keys) for k in self.classes]
        who, crossings = Levels(tilts).find()
        height, last = tilts[who][crossings[who]], len(keys) - 1
        low = [forecast_at(keys[last if x > last else max(x - 2, 0)]) for x in crossings]
        high = [forecast_at(keys[min(x, last)]) for x in crossings]
        least, most = sum(low), sum(high)
        part = min(max((1 - least) / (most - least), 0.0), 1.0)
        shares = []
        for k, x in enumerate(crossings):
            p = low[k] + part * (high[k] - low[k])
            key = keys[min(x, last)]
            if k != who and 0 < x <= last:
                key = self.passes(names, k, (key - cell, key), height, above=p > 0.5)
            shares.append(self.share_for(names, k, p, key))
        return shares

    def tilts(self, names: tuple[Hashable, ...], k: int, keys: range) -> list[float]:
        """Of a class, wherever it says the forecast of a key: sums of rise below, of fall above."""
        knots = sorted(
            (q, r) for name in names for q, r in self.residuals((name, k)).items() if r != 0
        )
        above = [0.0, *accumulate(float(r * self.shape(q)[1]) for q, r in reversed(knots))]
        below, passed, found = 0.0, 0, []
        for key in keys:
            while passed < len(knots) and knots[passed][0] <= key:
                below += float(knots[passed][1] * self.shape(knots[passed][0])[0])
                passed += 1
            up, down = (float(x) for x in self.shape(key))
            own = len(names) * up * down * (0.5 - forecast_at(key))
            found.append(down * below + up * above[len(knots) - passed] + own)
        return found

    def passes(
        self,
        names: tuple[Hashable, ...],
        k: int,
        ends: tuple[int, int],
        height: float,
        *,
        above: bool,
    ) -> int:
        """Of two neighbouring keys with the height between them, the one above it or below."""
        tilt = cache(lambda key: self.share_for(names, k, forecast_at(key), key).tilt)
        start, end = ends
        falls = tilt(start) >= tilt(end)
        while end - start > 1:
            middle = (start + end) // 2
            start, end = (middle, end) if (tilt(middle) > height) == falls else (start, middle)
        return start if falls == above else end

    # The account.

    def reserved(self) -> Number:
        """What the rows that wait may still add."""
        return sum(row.w for row in self.rows)

    def commit_row(self, row: Row) -> None:
        """Count a row and reserve what it may add."""
        self.made += 1
        self.most_late = max(self.most_late, len(self.rows))
        self.prices += self.round_down(row.price * (1 + len(self.rows)))
        self.excess += row.spill
        self.rows.append(row)

    def settle_row(self, row: Row, outcome: int) -> None:
        """Add the residuals to the fields of all classes, of everyone and of each group."""
        self.rows.remove(row)
        before = self.potential()
        for k, share in enumerate(row.shares):
            for name in row.names:
                self.enter((name, k), share.p, share.key, int(k == outcome))
        self.excess += max(self.potential() - before - row.w, 0.0)
