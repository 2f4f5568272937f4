"""The guard: follow a hint as far as the proof allows (docs/adaptive.md, sections 3 and 4)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core
from truecast.certificate import Parts
from truecast.errors import InputError, StateError
from truecast.split_ladder import WHOLE, SplitLadder, claimed, core_state, entries, number

__all__ = ["Guard"]

MOST_SLACK = 1000.0
MOST_LATE = 1 << 20
HATS = 10  # of the nudge


class Guard(_core.Guarded, SplitLadder):
    r"""Follow any model's probabilities, the hints, and keep the proof of calibration.

    Each round it takes the hint if the hint's cell is open, and otherwise goes to the next open cell on the side where
    the outcomes have been, and says the hint clipped into that cell. So a hint that is calibrated is hardly moved; one
    that is not is moved as far as it takes. Whatever the hints and the outcomes, the distance to calibration after T
    rounds is at most

    ============================  =====================================================================
    `Guard(slack=K)`              about 2.13 sqrt(Psi T) + log2(T)/2, Psi = 29/12, 19/3, 21/2 for K = 0, 1, 2
    `Guard(slack=K, grid=m)`      T/m + (m - 1)(K + 1/2)
    ============================  =====================================================================

    (docs/adaptive.md, theorem 8); the live `certificate` is far below that where the hints are good.

    It does not make the hints sharper: its Brier score is about theirs if they are calibrated, and can be better or
    worse if they are not.

    Parameters
    ----------
    slack
        K, how far the biases may go before a cell closes. The bound grows with it; with 0 few cells are open, and much
        of the hints' sharpness is lost. 1 costs hints that are right about a thousandth of their Brier score after
        50,000 rounds, and less after more; we saw half a percent on a stream of 1,460. 2 follows them more closely, at
        a larger bound (docs/adaptive.md, section 6).
    grid
        The number of equal cells, if they are to be fixed. None starts from one cell and splits: no horizon is needed.
    late
        0 copes with late outcomes, too, and usually best; but if they are held back on purpose, or L of them come
        alike, little is proved before T is some hundred times L**2. If an opponent may hold back up to this many
        outcomes at a time, give their number: slack and cells are made wider then, which lowers the proved bound from
        about L sqrt(T) to sqrt(L T), and in good times costs sharpness and a larger certificate. It also helps where
        hints drift and do not learn while hundreds of outcomes are outstanding: the guard alone can swing then.
    nudge
        Whether to shift each hint a little against what the forecasts around it have missed so far. That takes out what
        a hint is off by for long, and costs little; but then a hint is not followed to the letter.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A round costs O(log m) for m cells, which are about sqrt(T) for T rounds; the state is O(m). Points are integers
    over 2**40. One object serves one thread at a time. For outcomes that come late, and groups, use `Recalibrator`.

    Examples
    --------
    >>> g = Guard()
    >>> g.predict(0.83)  # while nothing speaks against the hint, it is followed
    0.83
    >>> g.observe(1)
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(20_000) < 0.6
    >>> p = g.guard_many(np.full(20_000, 0.9), y)  # the hint says 90 %, the truth is 60 %
    >>> bool(abs(p[-10_000:].mean() - y[-10_000:].mean()) < 0.01), g.certificate.per_round < 0.01
    (True, True)
    """

    def __init__(self, *, slack: float = 1.0, grid: int | None = None, late: int = 0, nudge: bool = False) -> None:
        self._slack = _check.within("slack", slack, 0.0, MOST_SLACK)
        self._grid = None if grid is None else _check.whole_number("grid", grid, least=1, most=_core.MOST_CELLS)
        self._late = _check.whole_number("late", late, least=0, most=MOST_LATE)
        self._nudge = _check.flag("nudge", nudge)
        cells = 1 if self._grid is None else self._grid
        points = np.array([WHOLE * i // cells for i in range(cells + 1)], np.int64)
        self._fixed = None if self._grid is None else points
        self._allowed = math.floor(self._slack * WHOLE) * (4 + self._late) // 4
        if self._allowed > WHOLE << 20:
            raise InputError("late", "must be such that slack * (1 + late / 4) is at most 2**20", late)
        # a cell is split when it has deviated by a quarter of what a bias can become if so many outcomes are late
        self._threshold = 0 if self._fixed is not None else (self._allowed + WHOLE + self._late * WHOLE) // 2
        super().__init__(points, self._allowed, self._threshold, self._nudge)

    @property
    def slack(self) -> float:
        """How far beyond 0 the biases may go before a cell closes."""
        return self._slack

    @property
    def grid(self) -> int | None:
        """The number of cells if they are fixed; `cells` is the present one."""
        return self._grid

    @property
    def late(self) -> int:
        """How many outcomes it is built to be held back."""
        return self._late

    @property
    def nudge(self) -> bool:
        """Whether hints are shifted against what the forecasts around them have missed."""
        return self._nudge

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that build this forecaster anew."""
        return {"slack": self._slack, "grid": self._grid, "late": self._late, "nudge": self._nudge}

    def guard_many(
        self, hints: ArrayLike, outcomes: ArrayLike, *, out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Play a round for every hint: say a probability, then learn the outcome.

        The same as ``[(g.predict(h), g.observe(y))[0] for h, y in zip(hints, outcomes)]``, bit for bit, state included,
        and several times faster. Interrupted, by Ctrl-C say, it has learned nothing; only `out` may hold forecasts.

        Parameters
        ----------
        hints
            What to follow, in order: one number in [0, 1] a round.
        outcomes
            What happened: 0 or 1, as many.
        out
            Where to write the forecasts, if not to a new array: float64, contiguous, one for each outcome.

        Returns
        -------
        forecasts
            One a round, each made before its outcome was used.

        Raises
        ------
        InputError
            If a hint is not in [0, 1], an outcome not 0 or 1, or the lengths differ; nothing is changed then.
        """
        h, y = _check.scored("hints", hints, outcomes)
        said = np.empty(len(y)) if out is None else _check.output(out, y, h)
        self._run(h, y, said)
        return said

    def _bound(self, rounds: int) -> Fraction:
        """docs/adaptive.md, theorems 8 and 10, for at most as many outcomes outstanding as there ever were."""
        slack, outstanding = Fraction(self._allowed, WHOLE), 1 + max(self.most_unresolved, self._late)
        at_a_point = slack + (Fraction(1, 2) if outstanding == 1 else outstanding)
        rounding = Fraction(2 * rounds, WHOLE)  # of points and deviations
        if self._grid is not None:
            return Fraction(rounds, self._grid) + (self._grid - 1) * at_a_point + rounding + Fraction(self._grid, WHOLE)
        split = Fraction(self._threshold, 2 * WHOLE)
        psi = _psi(slack, outstanding, split)
        few = range(rounds.bit_length() // 2 + 2)  # as psi > 1, the least is at 2**j < 2 sqrt(rounds)
        bound = min(Fraction(rounds, 2**j) + psi * 2**j + _levels(slack, outstanding, split, j) for j in few)
        return claimed(bound + rounding, rounds, split)

    @property
    def unknown(self) -> Fraction:
        """What the forecasts without outcome add to the certificate: the sum of max(p, 1 - p) over them."""
        return Fraction(self._unknown, 2 * WHOLE)

    @property
    def parts(self) -> Parts:
        """The exact sums that the certificate is made of. Costs O(cells)."""
        sums = self.deviation, self.bias_sums, self.squared_error, self.a_priori(self.rounds) + self.unknown
        return Parts(self.rounds, *sums, self.unresolved + self.given_up, self.unknown)

    def state(self) -> dict[str, Any]:
        """Everything a round can change, as plain data."""
        low, high, said = self._asked
        return super().state() | {
            "issued": self.issued,
            "asked_cell": [low, high] if self.issued else [],
            "asked": said if self.issued else 0.0,
            "unresolved": self.unresolved,
            "most_unresolved": self.most_unresolved,
            "given_up": self.given_up,
            "unknown": self._unknown,
            "misses": self.misses.tolist(),
            "variance": self.variance,
            "lag": self.lag,
        }

    def load(self, state: object) -> None:
        """Take over a state that `state` gave, or raise StateError with nothing changed."""
        good = entries(
            state,
            {
                "issued": bool,
                "asked_cell": list,
                "asked": float,
                "unresolved": int,
                "most_unresolved": int,
                "given_up": int,
                "unknown": int,
                "misses": list,
                "variance": float,
                "lag": float,
            },
        )
        number(good, "most_unresolved", 0, MOST_LATE)
        number(good, "unresolved", 0, good["most_unresolved"])
        number(good, "given_up", 0, 1 << 62)
        without = good["unresolved"] + good["given_up"]
        number(good, "unknown", WHOLE * without, 2 * WHOLE * without)
        late = good["most_unresolved"]
        core = core_state(good, self._fixed, self._threshold)
        most = self._allowed + (1 + late) * WHOLE  # docs/adaptive.md, lemmas 6 and 9
        for j, (point, bias) in enumerate(zip(good["points"], good["biases"], strict=True)):
            low, high = (-most, most) if late else (point - WHOLE - self._allowed, point + self._allowed)
            if not low <= bias <= high:
                raise StateError(f"the saved bias of point {j} must be from {low} to {high}, got {bias}")
        high, low = divmod(good["unknown"], 1 << 64)
        self._restore(
            **core,
            asked=_asked(good),
            issued=good["issued"],
            late=good["unresolved"],
            most_late=late,
            lost=good["given_up"],
            unknown_high=high,
            unknown_low=low,
            misses=_misses(good, self._nudge),
            variance=good["variance"],
            lag=good["lag"],
        )


@lru_cache(maxsize=1024)
def _psi(slack: Fraction, outstanding: int, split: Fraction) -> Fraction:
    """Psi of docs/adaptive.md, theorems 8 and 10."""
    tops = [slack, slack + 1] if outstanding == 1 else [slack + outstanding] * 2
    terms = (2**i * max(top - (2**i - 1) * split, Fraction(0)) / 2 for top in tops for i in range(1, 65))
    return sum(tops, Fraction(0)) + Fraction(2, 3) * split + sum(terms, Fraction(0))


def _levels(slack: Fraction, outstanding: int, split: Fraction, j: int) -> Fraction:
    """What the levels of the tree add one by one: j, and more if outcomes come late."""
    if outstanding == 1:
        return Fraction(j)
    stale = 1 + (slack + outstanding) / split
    return j + (outstanding - 1) * stale * (j + (math.ceil(stale) - 1).bit_length())


def _asked(state: dict[str, Any]) -> tuple[int, int, float]:
    """The forecast that awaits its outcome, if there is one: the ends of its cell, and what was said."""
    if not state["issued"]:
        return 0, 0, 0.0
    if len(state["asked_cell"]) != 2 or not set(state["asked_cell"]) <= set(state["points"]):
        raise StateError("the saved asked_cell must be two of the points")
    low, high = state["asked_cell"]
    if not low < high or not low <= state["asked"] * WHOLE <= high:
        raise StateError(f"the saved asked must lie in its cell, got {state['asked']!r}")
    return low, high, state["asked"]


def _misses(state: dict[str, Any], nudge: bool) -> NDArray[np.float64]:
    """The saved sums of the nudge, which are 0 if there is none."""
    misses, rounds = state["misses"], state["rounds"]
    most = rounds if nudge else 0
    if len(misses) != HATS or not all(-most <= miss <= most for miss in misses):
        raise StateError(f"the saved misses must be {HATS} floats from {-most} to {most}, got {misses!r:.80}")
    number(state, "variance", 0.0, most / 4)
    number(state, "lag", 0.0, state["most_unresolved"] if nudge else 0)
    return np.array(misses, np.float64)
