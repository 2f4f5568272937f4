"""Sums and quantiles of many values, by another way than of few: the same, bit for bit."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast import _core
from truecast.measures.prices import bounds_by_prices
from truecast.tally import Tally

smooth_ece = import_module("truecast.measures.smooth_ece")  # by its name there is the function


@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_the_worth_of_prices_is_summed_to_the_last_digits(size: int) -> None:
    rng = np.random.default_rng(size)
    p = rng.random(size)
    tally = Tally.from_predictions(rng.random(size) < p**2, p)
    found = bounds_by_prices(tally, 1e-2)
    terms = [
        counts / tally.total * np.interp(tally.p, found.nodes, side)
        for counts, side in zip((tally.zeros, tally.ones), found.prices, strict=True)
    ]
    assert found.lower == pytest.approx(math.fsum(np.concatenate(terms)) - 2.0**-48, abs=2e-16)


@given(
    values=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5]), min_size=1, max_size=30),
    shares=st.lists(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.7, 0.9, 1.0]), max_size=4),
)
def test_quantiles_of_equal_weights_are_those_of_any(values: list[float], shares: list[float]):
    p = np.arange(1, len(values) + 1) / (len(values) + 1)
    ones = np.ones(len(values), np.int64)
    rates = p + np.array(values)  # of blocks of one forecast each, that far from it
    once = _core.curve_errors(p, 0 * ones, ones, p, rates, np.array(shares))[1:]
    weighted = _core.curve_errors(p, ones, ones, p, rates, np.array(shares))[1:]
    assert once == weighted
    far = np.abs(p - rates).tolist()
    assert once == [
        next(e for e in sorted(far) if sum(v <= e for v in far) >= q * len(far)) for q in shares
    ]
