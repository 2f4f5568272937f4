"""Theorems 1 and 2 of docs/arc.md: prices below a sine, and what the energy bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from rounds import columns, rounds
from truecast.arc import LOWER_DISTANCE, SMOOTH_ERROR, energy_of
from truecast.reference import arc as reference

ANGLES = st.floats(0, math.pi)
RESIDUALS = st.lists(st.tuples(ANGLES, st.floats(-9, 9)), min_size=1, max_size=8)
WAVES = st.lists(st.floats(-1, 1), min_size=1, max_size=6)  # of a cosine series
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def angle(p: np.ndarray) -> np.ndarray:
    return np.arccos(1 - 2 * p)


def shape(b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f and two derivatives, written down again: the code has f alone."""
    top = np.polynomial.Polynomial([25, -81, 105, -45]) * (121 / 123)
    u = 0.75 + b
    n, n1, n2 = (top.deriv(k)(b) for k in range(3))
    return n / u**2, n1 / u**2 - 2 * n / u**3, n2 / u**2 - 4 * n1 / u**3 + 6 * n / u**4


def factors(theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rise, fall, their slopes along the arc, rho and V."""
    a, b = np.sin(theta / 2), np.cos(theta / 2)
    rise, rise1, rise2 = shape(b)
    fall, fall1, fall2 = shape(a)
    up, up2 = -a * rise1, a * a * rise2 - b * rise1
    down, down2 = b * fall1, b * b * fall2 - a * fall1
    omega = up * fall - rise * down
    v = (up * down2 - up2 * down) / omega**2 / 2
    return rise, fall, up / 2, down / 2, 2 / omega, v


def pieces(corners: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of integrals over the arc of what is smooth between corners."""
    ends = np.unique([0.0, *corners, math.pi])
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    return (middle + half * NODES).ravel(), (half * WEIGHTS).ravel()


def wave(terms: list[float], theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A function on the arc, and its slope."""
    k = np.arange(len(terms))
    at = np.multiply.outer(theta, k) + k  # shifted, so that slopes do not vanish at the ends
    return np.cos(at) @ terms, -np.sin(at) @ (k * terms)


def kernel(theta: float, s: float) -> float:
    return reference.kernel(math.sin(theta / 2) ** 2, math.sin(s / 2) ** 2)


def field(residuals: list[tuple[float, float]], theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Phi, by the code's kernel, and its slope."""
    up, down = factors(theta)[2:4]
    value, slope = np.zeros(theta.size), np.zeros(theta.size)
    for s, r in residuals:
        value += [r * kernel(at, s) for at in theta.tolist()]
        rise_s, fall_s = factors(np.array(s))[:2]
        slope += r * np.where(theta < s, up * fall_s, rise_s * down)
    return value, slope


# Theorem 1


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_prices_are_topped_by_a_sine(seed: int, rounds: int) -> None:
    """The sup of the proof lies between the prices, at prices that prove lower distances."""
    rng = np.random.default_rng(seed)
    p = rng.choice([rng.random(rounds), rng.integers(0, 9, rounds) / 8, rng.beta(0.3, 0.3, rounds)])
    found = tc.lower_calibration_distance(rng.integers(0, 2, rounds), p)
    v = np.linspace(0, 1, 400)
    a = np.interp(v, found.nodes, found.zero_prices)
    b = np.interp(v, found.nodes, found.one_prices)
    low = np.arcsin(np.clip(b[:-1] / (1 - v[:-1]), -1, 1))
    phi = (low[:, np.newaxis] - abs(np.subtract.outer(angle(v[:-1]), angle(v)))).max(axis=0)
    f = np.sin(np.maximum(phi, -np.pi / 2))
    assert (a <= -v * f + 1e-9).all()
    assert (b <= (1 - v) * f + 1e-9).all()


@given(ANGLES, ANGLES, st.floats(-1, 1))
def test_one_price_limits_the_other_on_either_side(here: float, there: float, least: float) -> None:
    """(1): with f >= least at v, the prices keep f at u as high as the arc says, on either side.

    In fractions, of p and of 1 - p apart: near the ends of the arc there are digits to lose.
    """
    lows = [Fraction(-1)]
    for part in (math.sin, math.cos):
        u, v = (Fraction(part(end / 2)) ** 2 for end in (here, there))
        if u > 0:
            lows.append((v * Fraction(least) - abs(u - v)) / u)
    lowest = min(max(lows), Fraction(1))
    assert lowest >= math.sin(max(math.asin(least) - abs(here - there), -math.pi / 2)) - 1e-12


# Theorem 2


@settings(max_examples=50)
@given(ANGLES | st.sampled_from([0.0, math.pi, math.pi / 2]), WAVES)
def test_kernel_reproduces(s: float, terms: list[float]) -> None:
    """The integral of rho f' K_s' + V f K_s is f(s), at the ends of the arc, too."""
    theta, weights = pieces([s])
    f, f1 = wave(terms, theta)
    k, k1 = field([(s, 1.0)], theta)
    rho, v = factors(theta)[4:]
    value = weights @ (rho * f1 * k1 + v * f * k)
    assert value == pytest.approx(wave(terms, np.array([s]))[0][0], abs=1e-9)


@settings(max_examples=50)
@given(RESIDUALS, WAVES)
def test_energy_is_the_norm_of_the_field_and_bounds_every_sum(
    residuals: list[tuple[float, float]], terms: list[float]
) -> None:
    """With equality if f is the field. Residuals are real numbers, their places any."""
    energy = math.fsum(r * q * kernel(s, t) for s, r in residuals for t, q in residuals)
    gross = math.fsum(abs(r * q) * kernel(s, t) for s, r in residuals for t, q in residuals)
    theta, weights = pieces([s for s, _ in residuals])
    rho, v = factors(theta)[4:]
    phi, phi1 = field(residuals, theta)
    norm = weights @ (rho * phi1**2 + v * phi**2)
    assert norm == pytest.approx(energy, abs=1e-9 * gross)
    f, f1 = wave(terms, theta)
    norm = weights @ (rho * f1**2 + v * f**2)
    at, r = np.array(residuals).T
    slack = 1e-9 * (1 + abs(r).sum() * np.abs(terms).sum())
    assert r @ wave(terms, at)[0] <= math.sqrt(norm * (energy + 1e-9 * gross)) + slack


@pytest.mark.slow("tries many examples")
@settings(max_examples=150)
@given(rounds(most=40))
def test_energy_bounds_both_errors_of_any_forecasts(rows: list[tuple[int, float]]) -> None:
    y, p = columns(rows)
    bounds = energy_of(tc.Tally.from_predictions(y, p))
    assert tc.lower_calibration_distance(y, p, total=True).lower <= bounds.lower_distance
    assert tc.smooth_calibration_error(y, p, total=True) <= bounds.smooth_error


@pytest.mark.slow("goes through a small world completely")
def test_energy_bounds_both_errors_in_a_small_world_completely() -> None:
    """All sets of up to four rounds with forecasts 0, 1/4, 1/2, 3/4 and 1."""
    kinds = [(y, p) for p in (0.0, 0.25, 0.5, 0.75, 1.0) for y in (0, 1)]
    closest = 0.0
    for size in range(1, 5):
        for rows in combinations_with_replacement(kinds, size):
            y, p = columns(list(rows))
            bounds = energy_of(tc.Tally.from_predictions(y, p))
            lower = tc.lower_calibration_distance(y, p, total=True).lower
            smooth = tc.smooth_calibration_error(y, p, total=True)
            assert lower <= bounds.lower_distance
            assert smooth <= bounds.smooth_error
            closest = max(closest, lower / bounds.lower_distance if lower else 0.0)
    assert closest > 0.96


def tally_of_residuals(r: np.ndarray, theta: np.ndarray) -> tc.Tally:
    """The fewest rounds with these residuals: ones where they are positive, zeros elsewhere."""
    p = np.sin(theta / 2) ** 2
    scale = 1e9
    ones = np.rint(scale * np.maximum(r, 0) / (1 - p)).astype(np.int64)
    zeros = np.rint(scale * np.maximum(-r, 0) / p).astype(np.int64)
    return tc.Tally(p, zeros, ones)


def test_lower_distance_is_nearly_sharp() -> None:
    """All ones, with residuals spread as V is: the field is 1, and L / sqrt(E) is .5345."""
    cells = 200
    theta = (np.arange(cells) + 0.5) * math.pi / cells
    tally = tally_of_residuals(factors(theta)[5] * math.pi / cells, theta)
    bounds = energy_of(tally)
    lower = tc.lower_calibration_distance(tally, total=True).lower
    assert 0.5344 < lower / math.sqrt(bounds.energy) < LOWER_DISTANCE
    assert lower < bounds.lower_distance < 1.003 * lower


@pytest.mark.slow("measures a saw of many teeth")
def test_smooth_error_is_sharp() -> None:
    """The field is a saw of slope 1 below 1. With many teeth the bound is met."""
    teeth, between = 60, 8
    p = np.linspace(0, 1, 2 * teeth + 1)
    knots = angle(p)
    saw = 1 - np.arange(2 * teeth + 1) % 2 / (2 * teeth)
    theta = np.concatenate([np.linspace(s, t, between)[:-1] for s, t in pairwise(knots)])[1:]
    f = np.interp(np.sin(theta / 2) ** 2, p, saw)
    gram = np.array([[kernel(s, t) for t in theta] for s in theta])
    tally = tally_of_residuals(np.linalg.solve(gram, f), theta)
    bounds = energy_of(tally)
    smooth = tc.smooth_calibration_error(tally, total=True)
    assert 0.99 * SMOOTH_ERROR < smooth / math.sqrt(bounds.energy) < SMOOTH_ERROR
    assert smooth <= bounds.smooth_error
