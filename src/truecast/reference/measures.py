"""Measures of calibration by their definitions, in fractions: the oracle of the tests.

A tally here is a list of (p, zeros, ones) with distinct p in increasing order, p a Fraction.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp, log1p, pi, sqrt

__all__ = [
    "averaged_two_bin_error",
    "calibration_decision_loss",
    "calibration_error_by_value",
    "isotonic_rates",
    "laplace_sum",
    "logistic_sums",
    "smooth_calibration_error",
    "smoothed_residuals",
    "u_calibration_error",
]

Tally = Sequence[tuple[Fraction, int, int]]


def calibration_error_by_value(tally: Tally) -> Fraction:
    """Total: over distinct forecasts, how far ones and expected ones are apart."""
    return sum((abs(ones - (zeros + ones) * p) for p, zeros, ones in tally), Fraction(0))


def smooth_calibration_error(tally: Tally) -> Fraction:
    """Total: the value function of the flow, by breakpoints (docs/measures.md, theorem 1)."""
    # place u, slope-mass; in order of u
    breakpoints: list[list[Fraction]] = [[Fraction(0), Fraction(2)]]
    constant, carried = Fraction(0), Fraction(0)
    for (p, zeros, ones), (following, _, _) in pairwise(tally):
        carried += ones - (zeros + ones) * p
        gap = following - p
        insort(breakpoints, [-carried, 2 * gap])
        constant += gap * -carried
        for end in (0, -1):
            rest = gap
            while rest > 0:
                part = min(rest, breakpoints[end][1])
                constant -= part * breakpoints[0][0] if end == 0 else 0
                breakpoints[end][1] -= part
                rest -= part
                if breakpoints[end][1] == 0:
                    breakpoints.pop(end)
    p, zeros, ones = tally[-1]
    u = -(carried + ones - (zeros + ones) * p)
    return -u + constant + sum((mass * (u - x) for x, mass in breakpoints if x < u), Fraction(0))


def isotonic_rates(tally: Tally) -> list[Fraction]:
    """The isotonic regression at each forecast.

    Over starts up to it, the greatest of the least means from there.
    """

    def mean(start: int, end: int) -> Fraction:
        zeros = sum(tally[i][1] for i in range(start, end))
        ones = sum(tally[i][2] for i in range(start, end))
        return Fraction(ones, zeros + ones)

    size = len(tally)
    return [
        max(min(mean(start, end) for end in range(i + 1, size + 1)) for start in range(i + 1))
        for i in range(size)
    ]


def laplace_sum(tally: Tally, scale: float) -> float:
    """Over all pairs of rounds, the product of their residuals times exp(-distance / scale)."""
    residuals = [(p, ones - (zeros + ones) * p) for p, zeros, ones in tally]
    return sum(
        float(r * s) * exp(-float(abs(p - q)) / scale) for p, r in residuals for q, s in residuals
    )


def smoothed_residuals(tally: Tally, sigma: float, cells: int) -> float:
    """The integral of the absolute residuals, per round, smoothed by a Gaussian and reflected.

    On a lattice: each residual is shared by the two nodes around it.
    """
    masses = [0.0] * (cells + 1)
    for p, zeros, ones in tally:
        node = min(int(p * cells), cells - 1)
        share, residual = p * cells - node, ones - (zeros + ones) * p
        masses[node] += float(residual * (1 - share))
        masses[node + 1] += float(residual * share)

    def density(j: int, i: int) -> float:
        """At node j of what was at node i, and of its mirror images that are near enough."""
        far = int(5 * sigma) + 1
        images = [2 * k + side * i / cells for k in range(-far, far + 1) for side in (1, -1)]
        away = [(j / cells - image) / sigma for image in images]
        return sum(exp(-(z**2) / 2) for z in away) / (sigma * sqrt(2 * pi) * cells)

    total = sum(zeros + ones for _, zeros, ones in tally)
    held = [(i, mass / total) for i, mass in enumerate(masses) if mass]
    heat = [abs(sum(mass * density(j, i) for i, mass in held)) for j in range(cells + 1)]
    return sum(heat) - (heat[0] + heat[-1]) / 2


def u_calibration_error(tally: Tally) -> Fraction:
    """Total, for losses in [0, 1]: the dearest mixture of one or two thresholds.

    docs/measures.md, theorem 5.
    """
    total = sum(zeros + ones for _, zeros, ones in tally)
    all_ones = sum(ones for _, _, ones in tally)

    def regret(c: Fraction) -> Fraction:
        above = sum((ones - (zeros + ones) * c for p, zeros, ones in tally if p > c), Fraction(0))
        here = sum((ones - (zeros + ones) * c for p, zeros, ones in tally if p == c), Fraction(0))
        return max(all_ones - total * c, Fraction(0)) - above - min(here, Fraction(0))

    return _dearest(regret, {Fraction(0), Fraction(1), *(p for p, _, _ in tally)})


def calibration_decision_loss(tally: Tally) -> Fraction:
    """Total, for payoffs in [0, 1]: the dearest mixture of one or two thresholds.

    docs/measures.md, theorem 5.
    """
    rates = [Fraction(ones, zeros + ones) for _, zeros, ones in tally]

    def loss(c: Fraction) -> Fraction:
        crossed = zip(tally, rates, strict=True)
        return sum(
            (
                (z + o) * abs(rate - c)
                for (p, z, o), rate in crossed
                if min(p, rate) <= c <= max(p, rate)
            ),
            Fraction(0),
        )

    return _dearest(loss, {Fraction(0), Fraction(1), *rates, *(p for p, _, _ in tally)})


def _dearest(cost: Callable[[Fraction], Fraction], places: set[Fraction]) -> Fraction:
    """The most that kinks of masses n at places c cost; all pairs are tried.

    With sum n c <= 1 and sum n (1 - c) <= 1.
    """
    half, height = Fraction(1, 2), {c: cost(c) for c in places}
    best: Fraction = height.get(half, Fraction(0))
    for left in places:
        for right in places:
            if left < half < right:
                share = (half - left) / (right - left)
                best = max(best, height[left] * (1 - share) + height[right] * share)
    return 2 * best


def averaged_two_bin_error(tally: Tally) -> Fraction:
    """Over a random threshold, the sum of the squared mean residuals below it and from it on.

    By its definition: thresholds between the same two forecasts, or ends, have the same two bins.
    """
    rounds = sum(zeros + ones for _, zeros, ones in tally)
    places = sorted({Fraction(0), *(p for p, _, _ in tally), Fraction(1)})
    error = Fraction(0)
    for low, high in pairwise(places):
        bins = [Fraction(0), Fraction(0)]
        for p, zeros, ones in tally:
            bins[p >= high] += ones - (zeros + ones) * p
        error += (high - low) * sum(each * each for each in bins) / rounds**2
    return error


def logistic_sums(
    z: Sequence[float], zeros: Sequence[float], ones: Sequence[float], a: float, b: float
) -> list[float]:
    """Log loss of log-odds a + b z, its two first and its three second derivatives."""
    sums = [0.0] * 6
    for x, no, yes in zip(z, zeros, ones, strict=True):
        at = a + b * x
        p = 1 / (1 + exp(-at)) if at >= 0 else exp(at) / (1 + exp(at))
        loss = log1p(exp(-abs(at))) * (no + yes) + no * max(at, 0.0) + yes * max(-at, 0.0)
        miss = (no + yes) * p - yes
        bend = (no + yes) * p * (1 - p)
        for k, term in enumerate((loss, miss, miss * x, bend, bend * x, bend * x * x)):
            sums[k] += term
    return sums
