"""The forecaster on the arc: no horizon, no grid, and the smallest proved bound without them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truecast import _check, _core
from truecast.arc import LOWER_DISTANCE, ArcEnergy, energy_of
from truecast.certificate import ArcCertificate
from truecast.errors import StateError
from truecast.forecasters.base import OutcomeForecaster
from truecast.splitting import splitting_gap
from truecast.state import Entry, Saveable, kinds_of, plain, require_entries
from truecast.tally import Tally

__all__ = ["Arc"]

_MOST_CLAIMED = 1 << 30  # rounds for which the rounding of the field is proved to be small enough
_MOST_SAVED = _check.MOST_ROUNDS // 2  # so that rounds can be played on
_UP = 1.0 + 2.0**-50
_FINEST = 2.0**52  # denominators of forecasts


class Arc(_core.ArcTree, OutcomeForecaster, Saveable):
    r"""Forecast binary outcomes with a lower distance to calibration of at most 0.54 sqrt(T).

    For every T up to 2**29, whatever the outcomes.

    It counts the outcomes of each distinct forecast. A kernel K weighs the residuals
    :math:`r = n_1 - (n_0 + n_1) p`. The next forecast p is one at which neither outcome can add
    much to the energy :math:`E = \sum r K r'`:

    .. math:: E_t - E_{t-1} = p(1-p) K(p,p) + 2 (y - p) S(p), \qquad
        S(p) = \sum_q r_q K(p, q) + \tfrac12 K(p,p)(1 - 2p)

    The first term is at most 1. To make the second small, `Arc` halves [0, 1] towards the root of S
    and stops at the first midpoint where a round adds little more than the first term, and never
    more than 65/64 (docs/arc.md, section 3). So E is at most 65/64 T for any outcomes, even an
    opponent's.

    ============================  ==================================================
    smooth calibration error      at most 0.589 sqrt(T)
    lower distance                at most 0.54 sqrt(T)
    distance to calibration       at most 0.54 sqrt(T) + 1.96 T^(1/3)
    ============================  ==================================================

    All three are totals, hold after every round up to 2**29, and are proved before the first
    (docs/arc.md, theorem 3). `certificate` has the same for the forecasts so far. It is smaller if
    events are rare: 4.05 sqrt(sum p(1 - p)) and a little more.

    The forecasts need not be sharp: `Arc` sees only past outcomes. If you have a model's
    probabilities, `Recalibrator` makes better use of them. If you know the number of rounds, and
    there are fewer than 2.3 million, `BentGrid` has the smaller bound on the distance.

    Examples
    --------
    >>> import truecast as tc
    >>> f = tc.Arc()
    >>> for y in [1, 1, 0, 1]:
    ...     p = f.predict()
    ...     f.observe(y)
    >>> f.forecast_many([1, 0, 0, 0, 0]).round(3)
    array([0.691, 0.762, 0.561, 0.258, 0.168])
    >>> f.certificate.lower_distance < 0.54 * 9**0.5
    True

    Notes
    -----
    Forecasts are dyadic fractions, never 0 or 1. The state is a tally: distinct forecasts and their
    counts, 64 bytes each in memory. After a million rounds there are 25,000 of them on coins,
    100,000 on a drifting rate. A round takes at most 52 steps down a tree; 0.4 us in a batch. The
    order of past rounds does not matter: the same tally gives the same forecast.
    """

    def __init__(self) -> None:
        super().__init__()

    @property
    def tally(self) -> Tally:
        """Forecasts so far, with their outcomes. O(knots)."""
        said = self._saved()
        return Tally(said["forecasts"], said["zeros"], said["ones"])

    @property
    def energy(self) -> ArcEnergy:
        """The energy of the forecasts so far, computed from the tally. O(knots)."""
        return energy_of(self.tally)

    def a_priori(self, rounds: int) -> float:
        """The bound on CalDist after this many rounds that is proved before the first.

        0.54 sqrt(T) for the lower distance, plus `splitting_gap`, which the distance may add.
        Beyond 2**30 rounds only the trivial T is claimed; the certificate stays valid.
        """
        rounds = _check.whole_number("rounds", rounds, least=0, most=_check.MOST_ROUNDS)
        if rounds > _MOST_CLAIMED:
            return float(rounds)
        lower = LOWER_DISTANCE * math.sqrt(_most_energy(rounds)) * _UP
        return min(float(rounds), (lower + splitting_gap(rounds)) * _UP)

    @property
    def certificate(self) -> ArcCertificate:
        """What is proved about the forecasts so far. O(knots)."""
        tally = self.tally
        energy = energy_of(tally)
        return ArcCertificate(
            rounds=self.rounds,
            energy=energy.energy,
            smooth_error=energy.smooth_error,
            lower_distance=energy.lower_distance,
            bound=min(
                float(self.rounds), (energy.lower_distance + splitting_gap(self.rounds)) * _UP
            ),
            a_priori=self.a_priori(self.rounds),
            brier=_brier(tally),
        )

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        return plain(self._saved())

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        kinds = kinds_of(Entry(*each) for each in self._entries())
        good = require_entries("state", state, kinds)
        count = len(good["forecasts"]) if isinstance(good["forecasts"], list) else 0
        for name in ("forecasts", "zeros", "ones"):
            _require_list(name, good[name], float if kinds[name] == "<f8" else int)
            if len(good[name]) != count:
                rule = f"must be one for each of {count} forecasts, got {len(good[name])}"
                raise StateError(f"the saved {name} {rule}")
        if type(good["issued"]) is not bool:
            raise StateError(f"the saved issued must be true or false, got {good['issued']!r:.80}")
        _require_possible(good["forecasts"], good["zeros"], good["ones"])
        self._restore(good)


def _most_energy(rounds: int) -> float:
    """Return what E is at most after this many rounds, rounding included (docs/arc.md, (5))."""
    return rounds * (65 / 64 + rounds * 2.0**-39)


def _require_list(name: str, values: object, kind: type) -> None:
    if type(values) is not list or any(type(value) is not kind for value in values):
        raise StateError(f"the saved {name} must be a list of {kind.__name__}, got {values!r:.80}")


def _require_possible(forecasts: list[float], zeros: list[int], ones: list[int]) -> None:
    """Refuse counts that no rounds of this forecaster can have led to."""
    for i, (p, of_zero, of_one) in enumerate(zip(forecasts, zeros, ones, strict=True)):
        if not (0.0 < p < 1.0 and (p * _FINEST).is_integer()):
            raise StateError(
                f"the saved forecast {i} must be a multiple of 2**-52 inside (0, 1), got {p!r}"
            )
        if i and not forecasts[i - 1] < p:
            raise StateError(
                f"the saved forecasts must increase, got {forecasts[i - 1]!r} before {p!r}"
            )
        if min(of_zero, of_one) < 0 or not 0 < of_zero + of_one <= _MOST_SAVED:
            found = f"{of_zero!r:.40} and {of_one!r:.40}"
            raise StateError(
                f"the saved counts of forecast {i} must be 0 or more, "
                f"and from 1 to {_MOST_SAVED} together, got {found}"
            )
    if sum(zeros) + sum(ones) > _MOST_SAVED:
        raise StateError(f"the saved counts must be at most {_MOST_SAVED} in total")
    tally = Tally(np.array(forecasts, float), np.array(zeros, np.int64), np.array(ones, np.int64))
    limit = LOWER_DISTANCE * math.sqrt(_most_energy(int(tally.total)) + 1.0)
    if tally.total <= _MOST_CLAIMED and energy_of(tally).lower_distance > limit:
        raise StateError(
            "the saved counts have more energy than any rounds of this forecaster can have led to"
        )


def _brier(tally: Tally) -> float:
    if not tally.total:
        return math.nan
    return float(_core.brier_sum(tally.p, tally.zeros, tally.ones) / tally.total)
