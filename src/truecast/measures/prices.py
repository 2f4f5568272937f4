"""Best prices: the linear programme of the lower distance, between two proven bounds.

See docs/measures.md, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast import _core
from truecast.tally import Tally

__all__ = ["PriceBounds", "best_prices", "bounds_by_prices"]

Array = NDArray[np.float64]

_CLOSE = 5e-8  # what best_prices asks for


class PriceBounds(NamedTuple):
    """Bounds of the lower distance, a mean per round, and their witnesses."""

    lower: float
    upper: float
    nodes: Array
    prices: Array
    values: Array
    atoms: Array


def best_prices(tally: Tally) -> tuple[Array, Array, Array, Array]:
    """Return nodes, prices, values and atoms.

    The prices are worth the most; the atoms are calibrated forecasts that cost the least.

    Nodes increase from 0.0 to 1.0. Prices, (2, nodes), are linear in between, 1-Lipschitz up to
    2**-50 between any two places, and keep (1 - v) A(v) + v B(v) <= 0 everywhere, rounding
    included. Values increase; atoms are masses per round, with ``sum((1 - values) * atoms)`` the
    share of zeros and ``sum(values * atoms)`` that of ones up to 2**-50. Their worth and their cost
    differ by 5e-8 of it or less, if rounding allows.
    """
    return bounds_by_prices(tally, _CLOSE)[2:]


def bounds_by_prices(rounds: Tally | _core.FewRounds, rtol: float) -> PriceBounds:
    """Return the best bounds found, within `rtol` of the upper one if nothing prevents it.

    All arrays are read-only.
    """
    return PriceBounds(*_core.price_bounds(rounds, float(rounds.total), rtol))
