"""The distance to calibration: exact where feasible, otherwise between proven bounds."""

from __future__ import annotations

import itertools
import math
import operator
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check
from truecast._core import SearchLimits
from truecast._names import counted
from truecast.distance.problem import Found, Problem, Tube
from truecast.distance.rounding import rounded
from truecast.distance.witness import Witness, cost, grouped
from truecast.errors import InputError
from truecast.measures.corp import isotonic_blocks
from truecast.measures.lower_distance import lower_calibration_distance
from truecast.measures.prices import best_prices
from truecast.splitting import finest_cells
from truecast.tally import Tally, as_tally

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Distance", "calibration_distance"]

# how closely, how far, and how wide around a path to look, in turn
_TUBES = ((0.1, 0.5, 12), (0.1, 0.5, 24), (0.01, 1.0, 24))
_FINER = 4.0  # cells of the tree, in T^(2/3), that have no better bound but are often nearer
_MOST_ROUNDS = 1 << 26  # doubles tell all values of groups apart
_BYTES = 128  # that a round takes in a search, whatever it finds
_NEAR = 4.0  # times what is asked for: a search that could lose so little is made the last
_FAR = 16.0  # times what is asked for: searches that may lose more bridge what they leave out
_CLOSER = 1 / 16  # what a search may lose, of what the one before may; or, if that is near:
_CLOSELY = 1 / 4
_GLANCE = 0.05  # seconds between looks at how far searches have come
_HEARTBEAT = 5.0  # seconds between reports of progress

Tell = Callable[[float, float, float], None]


@dataclass(frozen=True, eq=False)
class Distance:
    """What `calibration_distance` returns.

    Attributes
    ----------
    lower, upper : float
        Proven bounds of the distance to calibration, including rounding. Means per round, or totals
        with total=True.
    means, totals : tuple of float
        The same bounds per round and in total.
    exact : bool
        Whether the bounds differ only by rounding: by at most 1e-9 of the distance, or 1e-12 a
        round.
    witness : Witness
        Perfectly calibrated forecasts at the distance `upper`.
    rounds : int
        How many there are.
    ended : str
        Why the search ended: "exact", "rtol", "time", "memory" (also if there are 2^26 rounds or
        more, or if forecasts as near as the lower bound could not be traced), "interrupted", or
        "rounding" if the bounds cannot get closer, which may happen with millions of rounds.
    """

    lower: float
    upper: float
    exact: bool
    witness: Witness
    rounds: int
    ended: str
    totals: tuple[float, float]

    @property
    def means(self) -> tuple[float, float]:
        """Bounds on the distance per round."""
        return _per_round(self.totals, self.rounds)

    def __str__(self) -> str:
        def between(bounds: tuple[float, float]) -> str:
            return f"{bounds[1]:.9g}" if self.exact else f"from {bounds[0]:.6g} to {bounds[1]:.6g}"

        known = ", exact" if self.exact else f" ({self.ended})"
        groups = counted(len(self.witness.zeros), "group")
        nearest = f"nearest{'' if self.exact else ' found'}: {groups}"
        return (
            f"distance to calibration {between(self.means)} a round{known}; "
            f"{between(self.totals)} over {counted(self.rounds, 'round')}; {nearest}"
        )


def calibration_distance(
    y_true: Any | Tally,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    rtol: float = 0.0,
    time_limit: float = 60.0,
    memory_limit: float = 4e9,
    progress: bool | Tell = False,
    total: bool = False,
) -> Distance:
    """Compute how far forecasts are from the nearest perfectly calibrated ones.

    CalDist(p, y) = min sum_t |p_t - q_t| over all q such that among the rounds with q_t = v the
    share of ones is v, for every v; divided by the number of rounds, unless `total`. The bounds of
    the forecasters are about this quantity.

    Small does not mean useful: always saying 0.5 is calibrated on coins. Read a proper score, such
    as `brier_score`, beside it. And it is about these rounds: for a model that is perfectly
    calibrated in the long run, it is about 0.01 on 1,000 rounds.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `Tally.from_predictions`; or a Tally alone. Weights must be whole numbers, which count
        as repeated rounds: with others the problem is NP-hard.
    rtol
        Stop when the bounds are this close, relative to the upper one. 0 asks for the exact
        distance.
    time_limit
        Seconds. After that, or at Ctrl-C, the search stops, and both bounds are valid. The first
        steps always finish: a linear programme, and whole rounds near its solution (a few seconds
        for a million distinct forecasts). So even with a tiny limit the bounds are close: see the
        notes. A second Ctrl-C stops these too; a Ctrl-C before there are any bounds raises.
    memory_limit
        Bytes that the search may use. If it would need more, the bounds stay wider.
    progress
        True writes bounds to standard error as they get closer. A function is called with the lower
        and upper bounds, per round or in total as requested, and the seconds so far.
    total
        Totals over all rounds rather than means.

    Returns
    -------
    Distance
        Bounds, whether they are exact, and the nearest calibrated forecasts found.

    Examples
    --------
    >>> d = calibration_distance([1, 0, 1, 1], [0.6, 0.6, 0.7, 0.9], total=True)
    >>> d.exact, round(d.upper, 9)
    (True, 0.266666667)
    >>> d.witness.forecasts([1, 0, 1, 1], [0.6, 0.6, 0.7, 0.9])
    array([0.66666667, 0.66666667, 0.66666667, 1.        ])

    Notes
    -----
    Unless `rtol` asks for less, the total bounds at the end are within 1.96 T^(1/3) of each other
    for T rounds, plus the gap of the linear programme, usually less than 1e-6 of the distance
    (docs/distance.md, theorem 12; `splitting_gap` is a little tighter).

    It searches for a shortest path over the numbers of zeros and ones placed so far, in order of
    value, within bounds from the dual linear programme (docs/distance.md, theorems 1 to 8). 1,000
    rounds usually take about a tenth of a second and 10,000 take seconds. But if many calibrated
    forecasts are equally near, as can happen when forecasts are nearly calibrated, it may take far
    longer to prove that none is nearer (docs/benchmarks.md).
    """
    if isinstance(rtol, (bool, np.bool_, str)) or not rtol == 0:  # noqa: SIM201 - NaN is neither
        rtol = _tolerance(rtol)
    if time_limit != math.inf:
        time_limit = _check.between("time_limit", time_limit, 0, math.inf)
    memory_limit = _check.between("memory_limit", memory_limit, 0, math.inf)
    if not (callable(progress) or isinstance(progress, bool)):
        raise InputError("progress", "must be True, False or a function", progress)
    tally = _counted(as_tally(y_true, y_prob, sample_weight))
    if tally.weighted:
        rule = (
            "must be whole numbers, which count as repeated rounds: "
            "with others the problem is NP-hard"
        )
        raise InputError("sample_weight" if sample_weight is not None else "y_true", rule, tally)
    tell = progress if callable(progress) else _written if progress else _silent
    bracket = _Bracket(tally, rtol, time_limit, memory_limit, tell, total)
    try:
        bracket.run()
    except KeyboardInterrupt:
        bracket.ended = "interrupted"
    return bracket.result()


def _counted(tally: Tally) -> Tally:
    """Return a tally of counts if its weights are whole numbers."""
    weights = tally.zeros, tally.ones
    whole = all((each == np.floor(each)).all() for each in weights)
    if not tally.weighted or not whole or tally.total > _check.MOST_ROUNDS:
        return tally
    return Tally(tally.p, *(each.astype(np.int64) for each in weights))


def _per_round(totals: tuple[float, float], rounds: int) -> tuple[float, float]:
    lower, upper = totals
    mean = math.nextafter(upper / rounds, math.inf) if upper else 0.0
    return min(mean, max(0.0, math.nextafter(lower / rounds, -math.inf))), mean


def _written(lower: float, upper: float, seconds: float) -> None:
    sys.stderr.write(f"{seconds:7.1f} s  distance to calibration from {lower:.9g} to {upper:.9g}\n")
    sys.stderr.flush()


def _silent(lower: float, upper: float, seconds: float) -> None:
    pass


def _tolerance(rtol: float) -> float:
    try:
        return _check.between("rtol", rtol, 0, 1)
    except InputError as error:
        raise InputError(
            "rtol", "must be 0, for the exact distance, or a number above 0 and below 1", rtol
        ) from error


class _Bracket:
    """Bounds that get closer, and the witness of the upper one. All in totals."""

    def __init__(
        self, tally: Tally, rtol: float, seconds: float, memory: float, tell: Tell, total: bool
    ) -> None:
        self.tally = tally
        self.rounds = int(tally.total)
        self.rtol = rtol
        self.memory = int(min(memory, 2.0**60))
        self.tell = tell
        self.total = total
        self.start = time.monotonic()
        self.deadline = self.start + seconds
        self.ended = ""
        self.worth = 0.0
        # bounds that are as near as this, relatively, count as equal: doubles tell no more
        self.rounding = min(1e-9, max(1e-12, 1e-13 * self.rounds))
        bias = math.fsum((tally.weights * tally.p - tally.ones).tolist())
        self.lower = max(0.0, abs(bias) - self.rounds * 2.0**-50)  # docs/theory.md, lemma 1
        # two witnesses without a search: each forecast at its own rate, and the isotonic regression
        self.upper, self.witness = min(
            ((cost(tally, witness), witness) for witness in (_by_value(tally), _isotonic(tally))),
            key=lambda pair: pair[0],
        )

    def run(self) -> None:
        # if all outcomes are the same, to move every forecast there is best: nothing to search
        if self.done() or not (self.tally.zeros.any() and self.tally.ones.any()):
            return
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and for this alone

        with ThreadPoolExecutor(2) as pool:
            if self.rounds >= _MOST_ROUNDS or self.rounds * _BYTES > self.memory:
                self.split(pool)
                return
            [(nodes, prices, values, atoms)] = self.wait([pool.submit(best_prices, self.tally)], [])
            [problem] = self.wait([pool.submit(Problem.of, self.tally, nodes, prices)], [])
            self.worth = problem.worth
            self.bounded(0.0)
            self.round_down(pool, values, atoms * self.rounds)
            self.approach(pool, problem, values, atoms * self.rounds)
            self.certify(pool, problem)

    def split(self, pool: ThreadPoolExecutor) -> None:
        """Take what needs no search: bounds from the best splitting and whole rounds near it."""
        [splitting] = self.wait(
            [pool.submit(lower_calibration_distance, self.tally, total=True)], []
        )
        self.worth = splitting.lower
        self.bounded(0.0)
        self.round_down(pool, splitting.values, splitting.masses)
        self.ended = self.ended or "memory"

    def round_down(
        self, pool: ThreadPoolExecutor, values: NDArray[np.float64], sizes: NDArray[np.float64]
    ) -> None:
        """Make whole rounds of the best splitting, near it (docs/distance.md, theorem 12)."""
        zeros, ones = int(self.tally.zeros.sum()), int(self.tally.ones.sum())
        tasks = [
            pool.submit(rounded, values, sizes, zeros, ones, finest)
            for finest in (finest_cells(self.rounds), _FINER * self.rounds ** (2 / 3))
        ]
        for witness in self.wait(tasks, []):
            self.better(witness)

    def approach(
        self,
        pool: ThreadPoolExecutor,
        problem: Problem,
        values: NDArray[np.float64],
        sizes: NDArray[np.float64],
    ) -> None:
        """Find chains around the best splitting of rounds, then around the best chain so far."""
        rows = np.arange(int(self.tally.zeros.sum()) + 1.0)
        for closely, far, width in itertools.chain(_TUBES, itertools.repeat(_TUBES[-1])):
            if self.done() or self.ended:
                return
            # groups have about T^(1/3) rounds, and their values are T^(-2/3) apart
            cut = closely * self.rounds ** (-2 / 3)
            reach = far * self.rounds ** (-1 / 3)
            zeros, ones = (np.cumsum(np.append(0.0, part * sizes)) for part in (1 - values, values))
            edges = [
                (np.interp(rows + side * width, zeros, ones) + side * width).astype(np.int64)
                for side in (-1, 1)
            ]
            before = self.upper
            limits = self.limits(1)
            # only chains that stay this near: far fewer than all, and the best is mostly among them
            tube = Tube(values, zeros, reach, *edges)
            task = pool.submit(problem.search, limits, cut=cut, tube=tube)
            self.take(self.wait([task], [limits]))
            gained_little = before - self.upper < 0.05 * (self.upper - self.lower)
            if (closely, far, width) == _TUBES[-1] and gained_little:
                return
            values = self.witness.values
            sizes = (self.witness.zeros + self.witness.ones).astype(float)

    def certify(self, pool: ThreadPoolExecutor, problem: Problem) -> None:
        """Search everything within budget from both ends, ever more closely.

        What one end finds bounds the other's next search, node by node (docs/distance.md, theorem
        8), within the budget that those bounds hold for. So the first search, which knows nothing,
        is a coarse one. Later ones bridge what they leave out, and are often exact. Where it is not
        far to what is asked for, more searches without bridges, each a little closer, take less
        time. If memory is too short to trace a chain, the next search goes just beyond its length,
        which takes less; if that is not enough for a search with bridges, this is the end.
        """
        loss = (self.upper - self.lower) / 4
        others: list[Found | None] = [None, None]
        holds = 0.0
        known = math.inf  # the length of a chain that could not be traced
        stuck = False
        ends = [problem, problem.mirrored()]
        while not (self.done() or self.ended):
            asked = self.rtol * self.upper
            enough = max(self.rounding * self.upper, asked)
            last = loss <= max(enough, _NEAR * asked)
            loss = enough / 2 if last else loss
            # it is enough to show that no chain is much shorter than the best so far; the rest is
            # for the next search, which must have a smaller budget by the loss of this one
            closer = _CLOSELY if loss * _CLOSELY <= _FAR * asked else _CLOSER
            rest = 1.03 * closer / (1 - _CLOSELY)
            budget = min(self.upper - self.worth - enough, known) + loss * (1 + rest)
            if budget > holds:
                others = [None, None]
            bridges = others[0] is not None and loss > _FAR * asked
            steepest = (min(loss / 5, enough / 10) if bridges else loss / 5) / self.rounds
            limits = [self.limits(2), self.limits(2)]
            tasks = [
                pool.submit(
                    end.search,
                    limit,
                    budget=budget,
                    cut=loss / (1.25 * self.rounds),
                    steepest=steepest,
                    bridges=bridges,
                    profile=not last,
                    bounds=None if other is None else other.bounds,
                    other=other,
                )
                for end, limit, other in zip(ends, limits, others, strict=True)
            ]
            excess = steepest * self.rounds if bridges else loss
            length = partial(_so_far, tasks, limits, budget - loss, excess)
            found = self.wait(tasks, limits, length)
            self.take(found)
            # what crosses bridges may be shorter than a chain, by the loss
            untraced = [one.length + loss * bridges for one in found if _untraced(one)]
            known = min([known, *untraced])
            # with bridges, the lower bound is that length: only its chain is left to be found
            before = stuck
            stuck = bridges and bool(untraced) and all(one.witness is None for one in found)
            if (last or (stuck and before)) and not self.done():
                self.ended = self.ended or ("memory" if untraced else "rounding")
            others = [found[1], found[0]]
            holds = budget - max(one.loss for one in found)
            loss *= closer

    def limits(self, searches: int) -> SearchLimits:
        # snapshots, its own and those from the other end, take an eighth each
        memory = self.memory * 4 // 5 // searches - self.rounds * _BYTES
        seconds = max(0.0, self.deadline - time.monotonic())
        return SearchLimits(memory, seconds)

    def wait(
        self,
        tasks: list[Future[Any]],
        limits: list[SearchLimits],
        length: Callable[[], float] | None = None,
    ) -> list[Any]:
        """Wait for searches; stop them if they have found enough on the way, lag, or at Ctrl-C.

        `length` says what chains cost at least, as far as the searches have come.
        """
        from concurrent.futures import wait

        start = said = first = time.monotonic()
        try:
            while wait(tasks, _GLANCE).not_done:
                now = time.monotonic()
                if length is not None:
                    self.bounded(length())
                if length is None or not any(map(_over, tasks)):
                    first = now
                # one end is often far easier: when it is over, the other has half as long again
                lags = now - start > 1.5 * (first - start) + 10 * _GLANCE
                if self.done() or lags:
                    self.stop(limits)
                if now > said + _HEARTBEAT:
                    said = now
                    self.say()
            if length is not None:
                self.bounded(length())
        except KeyboardInterrupt:
            self.stop(limits)
            self.ended = "interrupted"
        except BaseException:  # raised by the caller's progress function
            self.stop(limits)
            raise
        return [task.result() for task in tasks]

    def stop(self, limits: list[SearchLimits]) -> None:
        for limit in limits:
            limit.stop()

    def take(self, found: list[Found]) -> None:
        """Take the chains that were found; if all searches gave up, note why."""
        for one in found:
            if one.witness is not None:
                self.better(one.witness)
        why = [one.ended for one in found if one.ended != "stopped"]
        self.ended = self.ended or (why[0] if why and all(why) else "")

    def better(self, witness: Witness) -> None:
        """Take calibrated forecasts if they are nearer than all before."""
        upper = cost(self.tally, witness)
        if upper < self.upper:
            self.upper, self.witness = upper, witness
            self.say()

    def bounded(self, length: float) -> None:
        """Take it that no chain is shorter."""
        if self.worth + length > self.lower:
            self.lower = self.worth + length
            self.say()

    def done(self) -> bool:
        gap = self.upper - self.lower
        if gap < -1e-12 * self.rounds:
            raise RuntimeError(
                f"a lower bound, {self.lower}, above the upper one, {self.upper}: "
                "please report this"
            )
        if gap <= max(self.rounding * self.upper, 1e-12 * self.rounds):
            self.ended = "exact"
        elif gap <= self.rtol * self.upper:
            self.ended = "rtol"
        return self.ended in ("exact", "rtol")

    def totals(self) -> tuple[float, float]:
        return min(self.lower, self.upper), self.upper

    def say(self) -> None:
        bounds = self.totals() if self.total else _per_round(self.totals(), self.rounds)
        self.tell(*bounds, time.monotonic() - self.start)

    def result(self) -> Distance:
        exact = self.done() and self.ended == "exact"
        lower, upper = self.totals() if self.total else _per_round(self.totals(), self.rounds)
        return Distance(lower, upper, exact, self.witness, self.rounds, self.ended, self.totals())


def _over(task: Future[Found]) -> bool:
    return task.done() and not task.result().ended


def _untraced(found: Found) -> bool:
    return found.witness is None and found.length < math.inf


def _by_value(tally: Tally) -> Witness:
    """Return the witness of the calibration error by value: each forecast moves to its rate."""
    return grouped(tally.zeros, tally.ones)


def _isotonic(tally: Tally) -> Witness:
    """Return the witness of isotonic regression: neighbours are pooled until rates increase."""
    return grouped(*isotonic_blocks(tally.zeros, tally.ones)[1:])


def _so_far(
    tasks: list[Future[Found]], limits: list[SearchLimits], holds: float, excess: float
) -> float:
    """Return what chains cost at least, if searches from both ends have come this far.

    Chains up to `holds` are not overlooked, and lengths exceed theirs by at most `excess`. What is
    known of the parts before and after may be added while the parts do not overlap
    (docs/distance.md, theorem 8).
    """
    (before, *first), (after, *second) = (limit.progress for limit in limits)
    apart = before <= 1 - after
    sums = map(operator.add, first, reversed(second)) if apart else (first[-1], second[-1])
    over = [found for found in (task.result() for task in tasks if task.done()) if not found.ended]
    known = [max(sums) - excess, *(found.length - found.excess for found in over)]
    return min(holds, max(known))
