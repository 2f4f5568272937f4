"""The constants of the arc, proved: docs/arc.md, theorem 2 and section 6, by interval arithmetic.

    python benchmarks/arc_constants.py     # a second

Needs NumPy alone. Every number is kept between two floats. IEEE 754 rounds + - * / and sqrt to
nearest, so one step of `nextafter` outwards encloses the exact result. The arc is tau in
[0, pi/2]; x = tan(tau/2) in [0, 1] makes a = sin(tau), b = cos(tau) and
d(tau) = 2 dx / (1 + x^2) rational. [0, 1] is cut into cells with exact ends.

On each cell a quantity g has three enclosures: of its value at the centre m, of its range and of
its slope. Then, with h for the width of the cells,

    g(x) is in g(m) + slope * [-h/2, h/2]   and
    |integral of g - h g(m)| <= (greatest slope - least slope) * h^2 / 8.

Both errors fall with the square of h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

CELLS = 2**13
SCALE = (121.0, 123.0)  # numerator and denominator
CUBIC = (4.0, 6.0, -30.0, 45.0)  # of x = 1 - b, over (POLE - x)^2
POLE = 1.75
ROUNDS = 2.0**30  # section 6 is about at most these
ETA = 252.0 * 2.0**-53 * ROUNDS  # there: the error of a field, in the worst of these rounds


class Interval:
    """Arrays of lower and upper ends."""

    def __init__(self, low, high=None) -> None:
        self.low = np.asarray(low, dtype=float)
        self.high = self.low if high is None else np.asarray(high, dtype=float)

    def __add__(self, other):
        other = interval(other)
        return outwards(self.low + other.low, self.high + other.high)

    def __neg__(self):
        return Interval(-self.high, -self.low)

    def __sub__(self, other):
        return self + -interval(other)

    def __mul__(self, other):
        other = interval(other)
        corners = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        return outwards(np.minimum.reduce(corners), np.maximum.reduce(corners))

    def __truediv__(self, other):
        other = interval(other)
        if not (other.low > 0.0).all():
            raise ZeroDivisionError("a divisor that is not proved positive")
        return self * outwards(1.0 / other.high, 1.0 / other.low)

    def __and__(self, other):
        return Interval(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def sqrt(self):
        return outwards(np.sqrt(self.low), np.sqrt(self.high))

    __radd__, __rmul__ = __add__, __mul__


def interval(value) -> Interval:
    return value if isinstance(value, Interval) else Interval(value)


def outwards(low, high) -> Interval:
    """Take in the rounding of one operation."""
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


class OnCells:
    """A smooth quantity: its value at each centre, its range and its slope over each cell."""

    def __init__(self, at, over, slope, h: float) -> None:
        step = Interval(-h / 2, h / 2)
        self.at, self.slope, self.h = at, slope, h
        self.over = over & (at + slope * step)

    @classmethod
    def identity(cls, cells: int) -> OnCells:
        """Return x itself. The number of cells is a power of two, so ends and centres are exact."""
        ends = np.arange(cells + 1) / cells
        one = Interval(np.ones(cells))
        low, high = ends[:-1], ends[1:]
        return cls(Interval((low + high) / 2), Interval(low, high), one, 1.0 / cells)

    def __add__(self, other):
        if not isinstance(other, OnCells):
            return OnCells(self.at + other, self.over + other, self.slope, self.h)
        return OnCells(self.at + other.at, self.over + other.over, self.slope + other.slope, self.h)

    def __mul__(self, other):
        if not isinstance(other, OnCells):
            return OnCells(self.at * other, self.over * other, self.slope * other, self.h)
        slope = self.slope * other.over + self.over * other.slope
        return OnCells(self.at * other.at, self.over * other.over, slope, self.h)

    def inverse(self):
        one = Interval(1.0)
        slope = -(self.slope / (self.over * self.over))
        return OnCells(one / self.at, one / self.over, slope, self.h)

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * other.inverse()

    def integrals(self) -> Interval:
        """One of each cell."""
        spread = (self.slope - self.slope).high * (self.h**2 / 8)  # exact: h is a power of 2
        return self.at * self.h + outwards(-spread, spread)

    __radd__, __rmul__ = __add__, __mul__


def shape(b: OnCells) -> tuple[OnCells, OnCells, OnCells]:
    """f(b) = SCALE * CUBIC(1 - b) / (POLE - 1 + b)^2 with two derivatives.

    With u = POLE - 1 + b, the cubic at 1 - b = POLE - u is expanded in u.
    Its coefficients are exact floats.
    """
    c0, c1, c2, c3 = CUBIC
    n0 = c0 + POLE * (c1 + POLE * (c2 + POLE * c3))
    n1 = -(c1 + POLE * (2.0 * c2 + POLE * 3.0 * c3))
    n2, n3 = c2 + 3.0 * POLE * c3, -c3
    scale = Interval(SCALE[0]) / SCALE[1]
    u = b + (POLE - 1.0)
    w = u.inverse()
    value = u * n3 + w * (w * n0 + n1) + n2
    first = n3 - w * w * (w * (2.0 * n0) + n1)
    second = w * w * w * (w * (6.0 * n0) + 2.0 * n1)
    return value * scale, first * scale, second * scale


@dataclass(frozen=True)
class Arc:
    """What docs/arc.md speaks of, on cells. A dot is d/d(tau)."""

    dtau: OnCells  # d(tau)/dx
    a: OnCells
    b: OnCells
    slopes: tuple[OnCells, OnCells]  # f'(b), f'(a)
    rise: OnCells
    fall: OnCells
    omega: OnCells  # rise. fall - rise fall.
    bend: OnCells  # rise. fall.. - rise.. fall.

    @classmethod
    def on(cls, cells: int) -> Arc:
        x = OnCells.identity(cells)
        over = (x * x + 1.0).inverse()
        a, b = 2.0 * x * over, 2.0 * over - 1.0
        rise, rise1, rise2 = shape(b)
        fall, fall1, fall2 = shape(a)
        up, up2 = -(a * rise1), a * a * rise2 - b * rise1
        down, down2 = b * fall1, b * b * fall2 - a * fall1
        omega, bend = up * fall - rise * down, up * down2 - up2 * down
        return cls(2.0 * over, a, b, (rise1, fall1), rise, fall, omega, bend)


@dataclass(frozen=True)
class Proved:
    """Pairs of proved lower and upper bounds, and what is proved to be of one sign."""

    lower_distance: tuple[float, float]  # C
    smooth_error: tuple[float, float]  # Cs
    price: tuple[float, float]  # the greatest p(1-p) K(p,p)
    ends: tuple[float, float]  # K(0,0), which is the greatest K(p,p) if `greatest_at_ends`
    conductance: tuple[float, float]  # the greatest 1/rho
    inner_conductance: tuple[float, float]  # the same for p between 0.1 and 0.9
    spare: tuple[float, float]  # section 6: the least that is left of what a round may add
    positive: bool  # omega and bend, so rho and V
    monotone: bool  # f' < 0
    greatest_at_ends: bool


def total(integrals: Interval) -> tuple[float, float]:
    """Sum; math.fsum rounds once."""
    low, high = math.fsum(integrals.low.tolist()), math.fsum(integrals.high.tolist())
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def root(square: tuple[float, float]) -> tuple[float, float]:
    low, high = (math.sqrt(end) for end in square)
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def integrals_of_greater(g: OnCells, other: OnCells) -> Interval:
    """Those of max(g, other). Where neither is proved greater, the range bounds it above."""
    one, two, difference = g.integrals(), other.integrals(), (g - other).over
    coarse = np.nextafter(np.maximum(g.over.high, other.over.high) * g.h, np.inf)
    sure = [difference.low >= 0.0, difference.high <= 0.0]
    return Interval(np.maximum(one.low, two.low), np.select(sure, [one.high, two.high], coarse))


def greatest(g: OnCells) -> tuple[float, float]:
    return float(g.at.low.max()), float(g.over.high.max())


def kernel_at_ends() -> Interval:
    """K(0, 0) = f(1) f(0)."""
    scale = Interval(SCALE[0]) / SCALE[1]
    at_one = scale * CUBIC[0] / (POLE * POLE)
    at_zero = scale * math.fsum(CUBIC) / ((POLE - 1.0) * (POLE - 1.0))
    return at_one * at_zero


def is_greatest_at_ends(kernel: OnCells, ends: Interval) -> bool:
    """Whether K(p, p) falls up to x = 1/4, is below K(0, 0) up to 5/8, and rises from there on."""
    quarter, five_eighths = kernel.at.low.size // 4, kernel.at.low.size // 8 * 5
    falls = kernel.slope.high[:quarter].max() < 0.0
    below = kernel.over.high[quarter:five_eighths].max() < ends.low
    rises = kernel.slope.low[five_eighths:].min() > 0.0
    return bool(falls and below and rises)


def spare(price: Interval, kernel: Interval, p: Interval, ends: Interval) -> Interval:
    """Section 6: 2^-39 T + (1 - price)/64 - 2 max(p, 1-p) (ETA sqrt(K(p,p) K(0,0)) + 1e-12)."""
    q = Interval(1.0) - p
    larger = Interval(np.maximum(p.low, q.low), np.maximum(p.high, q.high))
    error = larger * 2.0 * ((kernel * ends).sqrt() * ETA + 1e-12)
    return (Interval(1.0) - price) * (1.0 / 64.0) + ROUNDS * 2.0**-39 - error


def inner(p: OnCells, g: OnCells) -> tuple[float, float]:
    """Bounds of the greatest value of g where p is between 0.1 and 0.9."""
    sure, perhaps = (
        (p.over.low >= 0.1) & (p.over.high <= 0.9),
        (p.over.high >= 0.1) & (p.over.low <= 0.9),
    )
    return float(g.at.low[sure].max()), float(g.over.high[perhaps].max())


def prove(cells: int = CELLS) -> Proved:
    """Enclose everything. The number of cells is a power of two."""
    arc, ends = Arc.on(cells), kernel_at_ends()
    flow = 4.0 * arc.dtau / arc.omega  # rho d(theta), over dx
    pull = arc.dtau * arc.bend / (arc.omega * arc.omega)  # V d(theta), over dx
    p, ab = arc.a * arc.a, arc.a * arc.b
    kernel = arc.rise * arc.fall
    price = ab * ab * kernel
    return Proved(
        lower_distance=root(total(integrals_of_greater(flow, pull))),
        smooth_error=root(total((pull + flow * ab * ab).integrals())),
        price=greatest(price),
        ends=(float(ends.low), float(ends.high)),
        conductance=greatest(0.5 * arc.omega),
        inner_conductance=inner(p, 0.5 * arc.omega),
        spare=(
            float(spare(price.over, kernel.over, p.over, ends).low.min()),
            float(spare(price.at, kernel.at, p.at, ends).high.min()),
        ),
        positive=bool(min(arc.omega.over.low.min(), arc.bend.over.low.min()) > 0.0),
        monotone=bool(max(slope.over.high.max() for slope in arc.slopes) < 0.0),
        greatest_at_ends=is_greatest_at_ends(kernel, ends),
    )


def main() -> None:
    proved = prove()
    for name, value in vars(proved).items():
        print(name, *(f"{end:.12g}" for end in value) if isinstance(value, tuple) else (value,))


if __name__ == "__main__":
    main()
