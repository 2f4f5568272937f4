"""Levels in small worlds completely: all orders of a few tilts, ties among them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from truecast._core import find_level
from truecast.reference.class_levels import Levels
from truecast.reference.guard import END, forecast_at

World = list[tuple[int, ...]]


def worlds(classes: int, samples: int, values: int) -> Iterator[World]:
    for tilts in itertools.product(range(values), repeat=classes * samples):
        yield [tilts[k * samples : (k + 1) * samples] for k in range(classes)]


def check_choice(tilts: World, who: int, crossings: list[int]) -> None:
    """All curves pass the height there, and the cells can sum to 1."""
    last = len(tilts[0]) - 1
    places = [forecast_at(i * (END // last)) for i in range(last + 1)]
    height = tilts[who][crossings[who]]
    assert 1 <= crossings[who] <= last
    for k, x in enumerate(crossings):
        curve = [np.inf, *tilts[k], -np.inf]
        assert min(curve[x : x + 2]) <= height <= max(curve[x : x + 2]) or k == who
    least = sum(places[last if x > last else max(x - 2, 0)] for x in crossings)
    assert least <= 1 + 1e-15
    assert sum(places[min(x, last)] for x in crossings) >= 1 - 1e-15


@pytest.mark.parametrize(("classes", "samples"), [(2, 5), (3, 3), (4, 2)])
def test_all_patterns_of_above_and_below(classes: int, samples: int) -> None:
    """Crossings are odd in number, the programme is the count, and it has both ends."""
    for tilts in worlds(classes, samples, 2):
        levels = Levels(tilts)
        heights = range(classes * samples + 1)
        for height in heights:
            crossings = levels.crossings(height)
            assert all(len(each) % 2 == 1 for each in crossings)
            count = sum(map(levels.counts, itertools.product(*crossings)))
            assert levels.is_odd(crossings) == (count % 2 == 1)
            if height in {0, heights[-1]}:
                assert count == (height == 0)


@pytest.mark.slow("finds a level in 100,000 worlds, twice")
@pytest.mark.parametrize(
    ("classes", "samples", "values"), [(2, 5, 3), (3, 3, 3), (5, 3, 2), (4, 2, 3)]
)
def test_a_level_always_exists(classes: int, samples: int, values: int) -> None:
    for tilts in worlds(classes, samples, values):
        who, crossings = Levels(tilts).find()
        assert find_level(np.array(tilts, float)) == (who, crossings)
        check_choice(tilts, who, crossings)
