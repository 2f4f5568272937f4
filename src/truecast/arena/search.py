"""Best response: a search for outcomes that make a deterministic forecaster miscalibrated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from itertools import product
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check
from truecast.arena.adversaries.leave_biased import LeaveBiased
from truecast.arena.exhaustive import (
    certified,
    copied,
    distances,
    key,
    played,
    restored,
    snapshot_of,
)
from truecast.arena.game import play
from truecast.arena.yardstick import distance
from truecast.distance import Distance
from truecast.errors import InputError

__all__ = ["Response", "best_response"]

MAX_ROUNDS = 1 << 20
_FEW = 40  # up to as many rounds, many distances are found at once
_MANY = 2_000  # up to as many rounds, one distance takes about 20 ms
_PARENTS = 16  # strings that a generation is bred from
_CHILDREN = 128  # strings of a generation
_HEAT = 0.15  # by how much of the best a worse string may pass for better, at first

Tell = Callable[[float, int, float], None]
Outcomes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Response:
    """What `best_response` returns.

    Attributes
    ----------
    outcomes : tuple of int
        The worst outcomes found; `truecast.arena.Given` plays them again.
    distance : Distance
        The distance to calibration on them: proven bounds, per round and in total, with their
        witness.
    bound : float or None
        The bound proved for all outcomes before the first, if any.
    tried : int
        The number of outcome strings whose distance was computed.
    """

    outcomes: tuple[int, ...]
    distance: Distance
    bound: float | None
    tried: int

    @property
    def ratio(self) -> float | None:
        """How much of the bound is reached, at least: 1 would show that the bound is tight."""
        return None if not self.bound else self.distance.totals[0] / self.bound


def best_response(
    forecaster: Any,
    rounds: int,
    *,
    width: int = 64,
    tries: int = 2_000,
    seed: int = 0,
    time_limit: float = 60.0,
    starts: Iterable[ArrayLike] = (),
    progress: Tell | None = None,
) -> Response:
    """Search for outcomes that make a deterministic forecaster as miscalibrated as possible.

    If there are no more strings than tries, it tries all of them. Otherwise it first tries
    constants, and against ladders `LeaveBiased`. Then comes a beam search: round by round, it keeps
    the histories with the largest sum of y - p and the largest certificate (or, without one, error
    by value). Last, it changes the best outcomes at random places, and keeps improvements. The
    distance of the result is proven; there may be worse outcomes. For short games, `exhaustive`
    finds the exact worst.

    Parameters
    ----------
    forecaster
        Where every string starts, usually fresh; it does not change. It needs `predict`, `observe`,
        `to_json` and `from_json`, and must be deterministic.
    rounds
        T.
    width
        How many histories the beam keeps.
    tries
        About how many strings to compute distances for.
    seed
        For the changes. The same seed finds the same, unless the time limit ends the search.
    time_limit
        Seconds for the search; the final distance may take a little longer.
    starts
        More outcomes to start from, such as those found before.
    progress
        Called with the largest distance so far, the strings tried and the seconds, whenever one
        grows.

    Raises
    ------
    InputError
        If the forecaster is randomised or cannot be saved, or an option breaks its rule.

    Examples
    --------
    >>> import truecast as tc
    >>> found = best_response(tc.AlmostOneStepAhead(horizon=400), 400, width=2, tries=10)
    >>> 0.9 < found.ratio < 1
    True
    >>> again = tc.arena.Given(found.outcomes)
    >>> game = tc.arena.play(tc.AlmostOneStepAhead(horizon=400), again, 400)
    >>> game.distance().upper == found.distance.upper
    True

    Notes
    -----
    The beam costs 2 * width * T rounds, with saving and loading. A distance takes milliseconds;
    beyond 2,000 rounds outcomes are compared by their sum of y - p instead, a lower bound of
    CalDist.
    """
    fresh = copied(forecaster)
    rounds = _check.whole_number("rounds", rounds, least=1, most=MAX_ROUNDS)
    width = _check.whole_number("width", width, least=2, most=1 << 20)
    tries = _check.whole_number("tries", tries, least=1, most=1 << 40)
    seed = _check.whole_number("seed", seed, least=0, most=2**63)
    time_limit = _check.between("time_limit", time_limit, 0.0, float("inf"))
    if not isinstance(starts, Iterable):
        raise InputError("starts", "must be outcomes, one string after the other", starts)
    given = [_given(start, rounds) for start in starts]
    if not (progress is None or callable(progress)):
        raise InputError("progress", "must be a function or None", progress)
    trials = _Trials(copied(fresh), rounds, tries, time_limit, progress)
    trials.consider(given)
    if 2**rounds <= tries:
        trials.consider(np.array(y, np.uint8) for y in product((0, 1), repeat=rounds))
        return trials.result(_proved(fresh, rounds))
    trials.consider(trials.promising(_constructed(fresh, rounds)))
    beam = _beam(copied(fresh), rounds, width, trials.start + time_limit / 3)
    trials.consider(trials.promising(beam))
    trials.evolve(np.random.default_rng([seed, 2]))
    return trials.result(_proved(fresh, rounds))


def _given(start: ArrayLike, rounds: int) -> Outcomes:
    y = _check.outcomes(start, name="starts")
    if len(y) != rounds:
        raise InputError("starts", f"must have {rounds} outcomes each", y.shape)
    return y


def _proved(f: Any, rounds: int) -> float | None:
    """Return the proved bound on CalDist; one on the error by value is one on CalDist, too."""
    measure = getattr(f, "bounds", "distance")
    if not hasattr(f, "a_priori") or measure not in ("distance", "by value"):
        return None
    bound = float(f.a_priori(rounds))
    return bound if bound < float("inf") else None


class _Trials:
    """The strings tried so far and how far they lead; the best of them."""

    def __init__(self, f: Any, rounds: int, tries: int, seconds: float, tell: Tell | None) -> None:
        self.f = f
        self.rounds = rounds
        self.tries = tries
        self.tell = tell
        self.fresh = snapshot_of(f)
        self.start = time.monotonic()
        self.deadline = self.start + seconds
        self.found: dict[bytes, float] = {}
        self.best = -1.0

    def over(self) -> bool:
        return bool(self.found) and (
            len(self.found) >= self.tries or time.monotonic() >= self.deadline
        )

    def said(self, y: Outcomes) -> NDArray[np.float64]:
        """What the forecasts are judged by."""
        f = restored(self.f, self.fresh)
        return np.array([played(f, bit) for bit in y.tolist()], np.float64)

    def promising(self, strings: Iterable[Outcomes]) -> list[Outcomes]:
        """Return those with the largest sum of y - p, if looking at all takes long."""
        if self.rounds <= _FEW:
            return list(strings)
        errors: dict[bytes, float] = {}
        for y in strings:
            errors[y.tobytes()] = self.error(y)
            if time.monotonic() >= self.deadline:
                break
        return [
            np.frombuffer(name, np.uint8)
            for name in nlargest(_PARENTS, errors, key=errors.__getitem__)
        ]

    def error(self, y: Outcomes) -> float:
        """The sum of y - p, without its sign: CalDist is never below (docs/theory.md, lemma 1)."""
        return abs(float(np.sum(y - self.said(y))))

    def consider(self, strings: Iterable[Outcomes]) -> None:
        """Look how far these outcomes lead."""
        new = {y.tobytes(): y for y in strings if y.tobytes() not in self.found}
        if self.rounds <= _FEW:
            found = distances([self.tally(y) for y in new.values()])
            self.take(dict(zip(new, found.tolist(), strict=True)))
            return
        for name, y in new.items():
            if self.over():
                return
            self.take({name: self.distance_of(y)})

    def tally(self, y: Outcomes) -> tuple[tuple[float, ...], tuple[float, ...]]:
        p = self.said(y)
        return tuple(np.sort(p[y == 0]).tolist()), tuple(np.sort(p[y == 1]).tolist())

    def distance_of(self, y: Outcomes) -> float:
        """The distance, rounded to be the same in every run; a lower bound for long games."""
        if self.rounds > _MANY:
            return self.error(y)
        left = max(self.deadline - time.monotonic(), 1.0)
        return round(distance(y, self.said(y), time_limit=left).totals[1], 6)

    def take(self, found: dict[bytes, float]) -> None:
        self.found |= found
        best = max(found.values(), default=-1.0)
        if best > self.best:
            self.best = best
            if self.tell is not None:
                self.tell(best, len(self.found), time.monotonic() - self.start)

    def evolve(self, rng: np.random.Generator) -> None:
        """Change outcomes here and there; continue from the best, at first not too strictly."""
        while not self.over():
            names = list(self.found)
            values = np.array(list(self.found.values()))
            heat = _HEAT * self.best * (1 - len(names) / self.tries)
            parents = np.argsort(values + heat * rng.random(len(values)), kind="stable")[-_PARENTS:]
            chosen = rng.choice(parents, _CHILDREN).tolist()
            self.consider([_changed(np.frombuffer(names[k], np.uint8), rng) for k in chosen])

    def result(self, bound: float | None) -> Response:
        y = np.frombuffer(max(self.found, key=self.found.__getitem__), np.uint8)
        left = max(self.deadline - time.monotonic(), 10.0)
        return Response(
            tuple(y.tolist()), distance(y, self.said(y), time_limit=left), bound, len(self.found)
        )


def _changed(y: Outcomes, rng: np.random.Generator) -> Outcomes:
    """Return outcomes with one to three changes.

    A change flips an outcome or a stretch, or moves, repeats or levels a stretch.
    """
    y = y.copy()
    for _ in range(rng.integers(1, 4)):
        low, high = np.sort(rng.integers(0, len(y) + 1, 2)).tolist()
        move = int(rng.integers(0, 6))
        if move <= 1:
            y[min(low, len(y) - 1)] ^= 1
        elif move == 2:
            y[low:high] = np.roll(y[low:high], int(rng.choice((-1, 1))))
        elif move == 3:
            y[low:] = rng.integers(0, 2)
        elif move == 4:
            y[low:high] ^= 1
        else:
            y[low:high] = np.resize(
                y[max(low - int(rng.integers(1, 9)), 0) : max(low, 1)], high - low
            )
    return y


def _constructed(f: Any, rounds: int) -> Iterator[Outcomes]:
    """Yield constants and, for a ladder, `LeaveBiased` with options that use up the rounds."""
    yield np.zeros(rounds, np.uint8)
    yield np.ones(rounds, np.uint8)
    if not LeaveBiased().plays(f):
        return
    stays: list[int] = [0]
    fines: list[float | None] = [None]
    if hasattr(f, "spent"):
        fines = [0.1 * 2 ** (k / 8) / rounds**0.5 for k in range(-2, 13)]
    else:
        shares = 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 19  # twentieths
        stays = sorted({rounds * share // (20 * max(f.cells // 2, 1)) for share in shares})
    for stay, fine, look, towards in product(stays, fines, (0, 2, 4, 8, 12, 16), (0, 1)):
        adversary = LeaveBiased(stay, look, fine, cast("Literal[0, 1]", towards))
        yield play(copied(f), adversary, rounds).y.astype(np.uint8)


class _Branch(NamedTuple):
    state: Any
    outcomes: tuple[Any, ...]  # those before, as another such pair or (), and the last
    errors: dict[float, float]  # the sum of y - p at each forecast
    certificate: float  # or, of a forecaster that keeps none, the calibration error by value

    @property
    def error(self) -> float:
        return abs(sum(self.errors.values()))


def _beam(f: Any, rounds: int, width: int, deadline: float) -> Iterator[Outcomes]:
    """Yield the histories left in the end, filled up with constants if the time is over."""
    layer = [_Branch(snapshot_of(f), (), {}, 0.0)]
    for _ in range(rounds):
        if time.monotonic() > deadline:
            break
        found = {key(f, after.state): after for before in layer for after in _branches(f, before)}
        half = nlargest(width // 2, found, key=lambda name: found[name].error)
        rest = nlargest(width, found, key=lambda name: found[name].certificate)
        layer = [found[name] for name in list(dict.fromkeys([*half, *rest]))[:width]]
    for branch, bit in product(layer, (0, 1)):
        y = []
        outcomes = branch.outcomes
        while outcomes:
            outcomes, last = outcomes
            y.append(last)
        yield np.array(y[::-1] + [bit] * (rounds - len(y)), np.uint8)


def _branches(f: Any, before: _Branch) -> Iterator[_Branch]:
    for y in (0, 1):
        f = restored(f, before.state)
        said = played(f, y)
        errors = before.errors | {said: before.errors.get(said, 0.0) + y - said}
        bound = certified(f)
        certificate = sum(map(abs, errors.values())) if bound is None else float(bound)
        yield _Branch(snapshot_of(f), (before.outcomes, y), errors, certificate)
