"""The forecaster on the arc in all games of up to 14 rounds: every bound, against exact
measures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import truecast as tc
from truecast.arena.exhaustive import distances, exhaustive
from truecast.certificate import ArcCertificate

ROUNDS = 14
TINY = 1e-11  # for the distances, which are floats here

Sides = tuple[tuple[float, ...], tuple[float, ...]]


def games(f: tc.Arc, sides: Sides, left: int) -> Iterator[tuple[Sides, ArcCertificate]]:
    """Yield the forecasts of zeros and of ones, and the certificate, of all games that continue
    from here."""
    if f.rounds:
        yield sides, f.certificate
    if not left:
        return
    state, p = f.state(), f.predict()
    for y in (0, 1):
        if not f.rounds and y:
            return  # the mirror image: see below
        after = list(sides)
        after[y] = tuple(sorted((*sides[y], p)))
        next_ = tc.Arc()
        next_.load(state)
        assert next_.predict() == p
        next_.observe(y)
        yield from games(next_, (after[0], after[1]), left - 1)


@pytest.fixture(scope="module")
def worlds() -> list[tuple[Sides, ArcCertificate]]:
    """All games of 1 to 14 rounds that begin with a zero."""
    found = list(games(tc.Arc(), ((), ()), ROUNDS))
    assert len(found) == 2**ROUNDS - 1
    return found


def rows(sides: Sides) -> tuple[list[int], list[float]]:
    return [0] * len(sides[0]) + [1] * len(sides[1]), [*sides[0], *sides[1]]


def test_mirrored_games_have_mirrored_forecasts() -> None:
    """So half of the games tell of the other half; forecasts are dyadic, and 1 - p is exact."""
    for y in itertools.product((0, 1), repeat=11):
        p, mirrored = tc.Arc().forecast_many(y), tc.Arc().forecast_many(1 - np.array(y))
        assert (p == 1 - mirrored).all()
    rng = np.random.default_rng(4)
    for rounds in (ROUNDS,) * 500:
        y = rng.integers(0, 2, rounds)
        assert (tc.Arc().forecast_many(y) == 1 - tc.Arc().forecast_many(1 - y)).all()


@pytest.mark.slow("plays all games of a small world")
def test_distances_are_within_the_certificate(worlds: list[tuple[Sides, ArcCertificate]]) -> None:
    far = distances([sides for sides, _ in worlds])
    for (sides, certificate), distance in zip(worlds, far.tolist(), strict=True):
        rounds = certificate.rounds
        assert rounds == len(sides[0]) + len(sides[1])
        # so that the lower distance is, all the more
        assert distance <= certificate.lower_distance + TINY
        assert certificate.lower_distance <= certificate.bound <= certificate.a_priori
        assert certificate.lower_distance <= 0.54 * rounds**0.5
        assert certificate.smooth_error <= 0.589 * rounds**0.5
        assert certificate.energy <= 65 / 64 * rounds


@pytest.mark.slow("plays all games of a small world")
def test_smooth_errors_are_within_the_certificate(
    worlds: list[tuple[Sides, ArcCertificate]],
) -> None:
    for sides, certificate in worlds:
        assert (
            tc.smooth_calibration_error(*rows(sides), total=True) <= certificate.smooth_error + TINY
        )


@pytest.mark.slow("plays all games of twelve rounds")
def test_the_worst_distance_of_twelve_rounds() -> None:
    """In fractions, of all 4,096 games: a forecaster that is a little worse would be noticed."""
    worst = exhaustive(tc.Arc(), 12)
    assert Fraction(17, 10) < worst.distance <= Fraction(7, 4)
    assert worst.distance <= worst.certificate <= tc.Arc().a_priori(12)
