"""The guard on the arc, in plain Python: follow a hint while the energy is within its budget.

The page to read beside docs/adaptive.md, section 3, and the oracle that the compiled guard is
driven against. A step costs as many operations as there are knots. What rounds add, prices and what
is reserved are whole numbers of parts, 2^-20, rounded against us. With `exact=True` all sums are
fractions, of the kernel as floats have it, and nothing is rounded: the theorem holds for any kernel
that is positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from truecast.reference.arc import fall, rise

__all__ = [
    "END",
    "EVERYONE",
    "ArcGuard",
    "Field",
    "Placed",
    "angle_of",
    "forecast_at",
    "key_near",
    "spacing",
]

Number = Any  # a float, or a Fraction to be exact

EVERYONE = None  # the name of the field that all rounds belong to
END = 1 << 40  # the key of the forecast 1; that of 0 is 0
UNIT = 1 << 32  # residuals are integers over this
PARTS = 1 << 20  # and energies over this
COARSEST = 12  # at first the arc has 2**12 spacings

LOWER, SMOOTH = 0.53552, 0.58334  # docs/arc.md, theorem 2


@cache
def forecast_at(key: int) -> float:
    """Return sin^2(theta / 2), theta = pi key / 2^40.

    From both ends, so that it does not fall as the key grows.
    """
    if key > END // 2:
        return 1.0 - forecast_at(END - key)
    s = math.sin(key * (math.pi / (2.0 * END)))
    return s * s


def angle_of(p: float) -> float:
    """The angle theta of a forecast, from 0 to pi."""
    return 2.0 * math.atan2(math.sqrt(p), math.sqrt(1.0 - p))


def key_near(p: float, step: int) -> int:
    """The key nearest to a forecast among the multiples of `step`."""
    at = angle_of(p) * (END / math.pi) / step
    return min(math.floor(at + 0.5) * step, END)


def spacing(made: int) -> int:
    """The distance of the keys that hints go to after t forecasts.

    2^(40 - d), 2^d >= max(2^12, 2 t^(2/3)).
    """
    d = COARSEST
    while 8 ** (d - 1) < made * made:
        d += 1
    return END >> d


@cache
def shape_at(key: int) -> tuple[float, float]:
    """Return rise and fall at a key."""
    p = forecast_at(key)
    return rise(p), fall(p)


@cache
def exact_shape_at(key: int) -> tuple[Fraction, Fraction]:
    """Return the same as fractions."""
    up, down = shape_at(key)
    return Fraction(up), Fraction(down)


class Placed(NamedTuple):
    """A forecast: what is said, the knot it counts for, and what its fields may grow by in all."""

    p: float
    key: int
    w: Number
    price: Number
    fields: tuple[Hashable, ...]


@dataclass
class Field:
    """Residuals by key, their energy, and what the certificate needs besides."""

    residuals: dict[int, int | Fraction] = field(default_factory=dict)  # over UNIT if integers
    energy: Number = 0
    counted: Number = 0  # the energy as the account has it: what each round added, rounded up
    hidden: float = 0.0  # sum of |y - p| times the angle between what was said and its knot
    rounds: int = 0


class ArcGuard:
    """Says the hint if the energy may grow by what it can add, else a forecast near it."""

    def __init__(
        self, *, budget: float = 4.0, start: float = 1000.0, share: float = 0.1, exact: bool = False
    ) -> None:
        self.exact = exact
        self.number: Callable[[float], Number] = cache(Fraction) if exact else float
        # rise and fall at a key, as the numbers that are reckoned with
        self.shape: Callable[[int], tuple[Number, Number]] = exact_shape_at if exact else shape_at
        self.budget: Number = self.number(budget)  # C
        self.start: Number = self.number(start)  # t0
        self.share: Number = self.number(share)  # kappa
        self.fields: dict[Hashable, Field] = {EVERYONE: Field()}
        self.made = 0
        self.prices: Number = 0  # sum of price * (1 + late) over all that were made
        self.most_late: int = 0  # the most that waited when one was made
        self.excess: Number = 0
        self.asked: Placed | None = None
        self.waiting: list[Placed] = []
        self.given_up: list[Placed] = []

    # The verbs.

    def predict(self, hint: float, groups: Iterable[Hashable] = ()) -> float:
        """Only the last forecast asked for is kept for `observe`, and only `observe` counts it."""
        self.asked = self.place(hint, groups)
        return self.asked.p

    def observe(self, y: int) -> None:
        """Learn the outcome of the last forecast asked for."""
        assert self.asked is not None, "predict first"  # noqa: S101
        self.commit(self.asked)
        self.settle(self.asked, y)
        self.asked = None

    def issue(self, hint: float, groups: Iterable[Hashable] = ()) -> Placed:
        """Forecast something whose outcome comes later; `observe` is still about what was asked."""
        placed = self.place(hint, groups, beside=self.asked)
        self.commit(placed)
        return placed

    def resolve(self, placed: Placed, y: int) -> None:
        """Learn the outcome of an issued forecast."""
        self.settle(placed, y)

    def give_up(self, placed: Placed) -> None:
        """Await its outcome no longer."""
        self.waiting.remove(placed)
        self.given_up.append(placed)

    # The rule.

    def place(
        self, hint: float, groups: Iterable[Hashable] = (), beside: Placed | None = None
    ) -> Placed:
        """Where the hint leads, beside a forecast that may still count or not; nothing changes."""
        names = (EVERYONE, *dict.fromkeys(groups))
        share = self.share / (1 + self.number(len(self.waiting) / 10))
        step, more = spacing(self.made), share * self.room(beside)
        key = key_near(hint, step)
        p = hint
        if not self.fits(p, key, names, more):
            key = self.search(key, step, names, more, up=self.slope(p, key, names) > 0)
            p = forecast_at(key)
        w = self.round_up(self.worst(p, key, names))
        return Placed(p, key, w, self.price(p, key, names), names)

    def search(
        self, start: int, step: int, names: tuple[Hashable, ...], more: Number, *, up: bool
    ) -> int:
        """Halve the way to the end of the arc, down to the spacing.

        On to single keys if nothing has been allowed.
        """
        low, high, found = start, END if up else 0, None
        while (gap := abs(high - low)) > step or (found is None and gap > 1):
            unit = step if gap > step else 1
            way = max(unit, gap // 2 // unit * unit)
            middle = low + way if up else low - way
            p = forecast_at(middle)
            if self.fits(p, middle, names, more):
                found = high = middle
            elif (self.slope(p, middle, names) > 0) == up:
                low = middle
            else:
                high = middle
        if found is not None:
            return found
        return min((high, low), key=lambda key: self.worst(forecast_at(key), key, names))

    def fits(self, p: float, key: int, names: tuple[Hashable, ...], more: Number) -> bool:
        """Whether the energy can grow by no more than the budget does, and `more`."""
        return bool(self.worst(p, key, names) <= self.budget * self.price(p, key, names) + more)

    def price(self, p: float, key: int, names: tuple[Hashable, ...]) -> Number:
        """What a round adds on average if p is right: m p (1 - p) K(k, k)."""
        x = self.number(p)
        return len(names) * x * (1 - x) * self.own(key)

    def slope(self, p: float, key: int, names: tuple[Hashable, ...]) -> Number:
        """Return S(p, k): the fields at the key, and m K(k, k) (1/2 - p)."""
        fields = sum(self.phi(name, key) for name in names)
        return fields + len(names) * self.own(key) * (self.number(0.5) - self.number(p))

    def worst(self, p: float, key: int, names: tuple[Hashable, ...]) -> Number:
        """Return w: what a round can add to the energies, with the worse of the outcomes."""
        s, x = self.slope(p, key, names), self.number(p)
        return self.price(p, key, names) + 2 * s * (1 - x if s > 0 else -x)

    # The fields.

    def own(self, key: int) -> Number:
        """Return K(k, k)."""
        up, down = self.shape(key)
        return up * down

    def phi(self, name: Hashable, key: int) -> Number:
        """The field at a key."""
        residuals, shape = self.residuals(name), self.shape
        up, down = shape(key)
        below = sum(r * shape(q)[0] for q, r in residuals.items() if q <= key)
        above = sum(r * shape(q)[1] for q, r in residuals.items() if q > key)
        return down * below + up * above

    def residuals(self, name: Hashable) -> dict[int, Number]:
        """Sums of y - p by key."""
        known = self.fields.get(name, Field()).residuals
        return {**known} if self.exact else {q: r / UNIT for q, r in known.items()}

    def energies(self) -> dict[Hashable, Number]:
        """The energy of each field, added up anew: r K r over all pairs of knots."""
        found: dict[Hashable, Number] = {}
        for name in self.fields:
            residuals = self.residuals(name)
            found[name] = sum(r * self.phi(name, q) for q, r in residuals.items())
        return found

    # The account.

    def allowance(self) -> Number:
        """Return B: C times t0 and all prices, plus the excess.

        Each price counts as often as forecasts waited, itself among them.
        """
        return self.budget * (self.start * (1 + self.most_late) + self.prices) + self.excess

    def reserved(self) -> Number:
        """What the forecasts that wait may still add, as far as was known when they were made."""
        return sum(placed.w for placed in self.waiting)

    def potential(self) -> Number:
        """All energies, and what is reserved."""
        return sum(each.counted for each in self.fields.values()) + self.reserved()

    def room(self, beside: Placed | None = None) -> Number:
        """What is left of the allowance, also if the forecast beside comes to count."""
        left = self.allowance() - self.potential()
        if beside is not None:
            left += min(self.budget * beside.price - beside.w, self.number(0.0))
        return max(left, self.number(0.0))

    def round_up(self, energy: Number) -> Number:
        """To parts."""
        return energy if self.exact else math.ceil(energy * PARTS) / PARTS

    def round_down(self, energy: Number) -> Number:
        """To parts."""
        return energy if self.exact else math.floor(energy * PARTS) / PARTS

    def commit(self, placed: Placed) -> None:
        """Count a forecast and reserve what it may add; the budget grows with those that wait."""
        self.made += 1
        self.most_late = max(self.most_late, len(self.waiting))
        self.prices += self.round_down(placed.price * (1 + len(self.waiting)))
        self.waiting.append(placed)

    def settle(self, placed: Placed, y: int) -> None:
        """Add the residual to all its fields; growth beyond w is excess, made by late outcomes."""
        self.waiting.remove(placed)
        before = self.potential()
        for name in placed.fields:
            self.enter(name, placed.p, placed.key, y)
        self.excess += max(self.potential() - before - placed.w, self.number(0.0))

    def enter(self, name: Hashable, p: float, key: int, y: int) -> None:
        """Add a round to one field."""
        residual = y - Fraction(p) if self.exact else (y * UNIT) - math.floor(p * UNIT + 0.5)
        r = residual if isinstance(residual, Fraction) else residual / UNIT
        more = r * r * self.own(key) + 2 * r * self.phi(name, key)
        into = self.fields.setdefault(name, Field())
        into.residuals[key] = into.residuals.get(key, 0) + residual
        into.energy += more
        into.counted += self.round_up(more)
        into.hidden += abs(y - p) * abs(angle_of(p) - angle_of(forecast_at(key)))
        into.rounds += 1

    # The certificate.

    def unknown(self, name: Hashable = EVERYONE) -> float:
        """The sum of max(p, 1 - p) over the forecasts without an outcome."""
        open_ends = (*self.waiting, *self.given_up)
        return math.fsum(
            max(placed.p, 1.0 - placed.p) for placed in open_ends if name in placed.fields
        )

    def lower_distance(self, name: Hashable = EVERYONE) -> float:
        """What the lower distance of a group's forecasts is at most, up to rounding."""
        return LOWER * self._root(name) + self.fields[name].hidden + self.unknown(name)

    def smooth_error(self, name: Hashable = EVERYONE) -> float:
        """The same of the smooth calibration error."""
        return SMOOTH * self._root(name) + self.fields[name].hidden + self.unknown(name)

    def _root(self, name: Hashable) -> float:
        return math.sqrt(max(float(self.fields[name].energy), 0.0))
