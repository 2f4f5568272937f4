"""Hints in plain Python floats: from a score to a better probability, learned in any order.

The same arithmetic as the compiled hints, operation by operation, so that both say the same to the
last bit wherever `math` and the compiler use one C library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = [
    "PlainBinMeans",
    "PlainBursts",
    "PlainHint",
    "PlainIdentity",
    "PlainIsotonic",
    "PlainMix",
    "PlainPlatt",
]

FARTHEST = 16.0  # logits are clipped there
PER_UNIT = 4  # knots in a unit of the logit scale
KNOTS = 2 * 16 * PER_UNIT + 1
BEYOND = 40.0  # bent logits are clipped there
WIDE = 2 * 40 * PER_UNIT + 1
MOST = 1e100  # the unit at which fading weights are scaled back

Notes = list[float] | None  # of a forecast whose outcome comes late


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z))."""
    return 1.0 / (1.0 + math.exp(-z))


def clip(value: float, least: float, most: float) -> float:
    """The nearest number from `least` to `most`."""
    return min(max(value, least), most)


def logit(p: float) -> float:
    """The inverse of `sigmoid`, clipped."""
    if p < 1e-9:
        return -FARTHEST
    if p >= 1.0:
        return FARTHEST
    return clip(math.log(p / (1.0 - p)), -FARTHEST, FARTHEST)


def rough(p: float) -> float:
    """A forecast as it is kept with a ticket: its logit in steps of 1 / 2000; 0 and 1 stay."""
    return sigmoid(math.floor(logit(p) * 2000.0 + 0.5) / 2000.0) if 0.0 < p < 1.0 else p


def knot(score: float) -> tuple[int, float]:
    """The knot to the left of a score, and how far it is to the next: 0 there, 1 at the next."""
    at = (logit(score) + FARTHEST) * PER_UNIT
    left = min(int(at), KNOTS - 2)
    return left, at - left


def bent(score: float) -> float:
    """The logit of a score, drawn together beyond 16 as a logarithm does."""
    if score <= 0.0 or score >= 1.0:
        return BEYOND if score >= 1.0 else -BEYOND
    z = math.log(score / (1.0 - score))
    if abs(z) <= FARTHEST:
        return z
    return math.copysign(min(FARTHEST + 4.0 * math.log(abs(z) / FARTHEST), BEYOND), z)


def nearest(score: float) -> int:
    """The knot nearest to a score, of those of bent logits."""
    return int((bent(score) + BEYOND) * PER_UNIT + 0.5)


def keeping(memory: int | None) -> float:
    """What a round counts when it is one round older."""
    return 1.0 if memory is None else 1.0 - 1.0 / memory


class PlainHint:
    """What every hint can do."""

    def predict(self, score: float) -> float:
        """A better probability than the score."""
        raise NotImplementedError

    def issue(self, score: float) -> tuple[float, list[float]]:
        """What `predict` says, and notes to keep until its outcome comes."""
        return self.predict(score), []

    def shorten(self, notes: list[float]) -> list[float]:
        """Notes as they are kept with a ticket: forecasts are rough."""
        return notes

    def learn(self, score: float, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """Take in an outcome, with the notes of its forecast if it comes late."""
        raise NotImplementedError


class PlainIdentity(PlainHint):
    """Says the score."""

    def predict(self, score: float) -> float:
        """The score."""
        return score

    def learn(self, score: float, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """Nothing to learn."""


class PlainPlatt(PlainHint):
    """By one Newton step a round: faded log losses + (2 offset^2 + 8 (slope - 1)^2) / 2, least."""

    def __init__(self, memory: int | None = None) -> None:
        self.keep = keeping(memory)
        self.offset, self.slope = 0.0, 1.0
        self.a, self.b, self.c = 2.0, 0.0, 8.0  # second derivatives of the objective

    def predict(self, score: float) -> float:
        """A straight line on the logit scale."""
        return sigmoid(clip(self.offset + self.slope * logit(score), -FARTHEST, FARTHEST))

    def learn(self, score: float, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """One step; the curvature of the new loss is |y - p| / 2, whose mean is p (1 - p)."""
        z = logit(score)
        error = weight * (y - self.predict(score))
        lost = weight * (1.0 - self.keep)
        bend, keep = abs(error) / 2.0, 1.0 - lost
        self.a = keep * self.a + lost * 2.0 + bend
        self.b = keep * self.b + bend * z
        self.c = keep * self.c + lost * 8.0 + bend * z * z
        u = error - lost * 2.0 * self.offset
        v = error * z - lost * 8.0 * (self.slope - 1.0)
        determinant = self.a * self.c - self.b * self.b
        self.offset = clip(self.offset + (self.c * u - self.b * v) / determinant, -64.0, 64.0)
        self.slope = clip(self.slope + (self.a * v - self.b * u) / determinant, -16.0, 16.0)


class PlainBinMeans(PlainHint):
    """The score plus the mean residual near it."""

    def __init__(self, memory: int | None = None, prior: float = 10.0) -> None:
        self.keep, self.prior, self.unit = keeping(memory), prior, 1.0
        self.weights = [0.0] * KNOTS
        self.residuals = [0.0] * KNOTS

    def predict(self, score: float) -> float:
        """Straight between the shrunk means of the two knots."""
        k, part = knot(score)
        lower, upper = (
            self.residuals[i] / (self.weights[i] + self.prior * self.unit) for i in (k, k + 1)
        )
        return clip(score + (1.0 - part) * lower + part * upper, 0.0, 1.0)

    def learn(self, score: float, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """The newest round counts most: `unit` grows where all others should shrink."""
        self.unit /= 1.0 - weight * (1.0 - self.keep)
        k, part = knot(score)
        newest = self.unit * weight
        right = newest * part
        for i, share in ((k, newest - right), (k + 1, right)):
            self.weights[i] += share
            self.residuals[i] += share * (y - score)
        if self.unit > MOST:
            self.weights = [weight / self.unit for weight in self.weights]
            self.residuals = [residual / self.unit for residual in self.residuals]
            self.unit = 1.0


class PlainIsotonic(PlainHint):
    """Rates at the knots, pooled where they would decrease; straight between pools' centres."""

    def __init__(self, memory: int | None = None, prior: float = 1.0) -> None:
        self.keep, self.prior, self.unit = keeping(memory), prior, 1.0
        self.rounds, self.due = 0, 1
        self.bins = [(0.0, 0.0, 0.0)] * WIDE  # weight, ones, logits
        self.pools = self.refit()

    def predict(self, score: float) -> float:
        """Straight between the centres of the pools to either side; level outside."""
        z, k = bent(score), nearest(score)
        own = max(i for i, (start, _, _) in enumerate(self.pools) if start <= k)
        after = own + (self.pools[own][1] <= z)
        if after in (0, len(self.pools)):
            return self.pools[own][2]
        (_, start, low), (_, end, high) = self.pools[after - 1], self.pools[after]
        return clip(low + (high - low) * ((z - start) / (end - start)), low, high)

    def learn(self, score: float, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """Count the round at the nearer knot; fit anew when that is due."""
        self.unit /= 1.0 - weight * (1.0 - self.keep)
        k = nearest(score)
        newest = self.unit * weight
        seen, ones, logits = self.bins[k]
        self.bins[k] = seen + newest, ones + newest * y, logits + newest * bent(score)
        if self.unit > MOST:
            self.bins = [(w / self.unit, o / self.unit, z / self.unit) for w, o, z in self.bins]
            self.unit = 1.0
        self.rounds += 1
        if self.rounds >= self.due:
            self.pools = self.refit()
            self.due = self.rounds + min(max(self.rounds // 16, 1), 256)

    def refit(self) -> list[tuple[int, float, float]]:
        """First knot, centre and rate of each pool.

        As if knots had seen `prior` more rounds with their probability.
        """
        own_weight = self.prior * self.unit
        pools: list[tuple[int, float, float, float]] = []
        for k, (weight, ones, logits) in enumerate(self.bins):
            z = k / PER_UNIT - BEYOND
            own = clip(z, -FARTHEST, FARTHEST)
            faith = own_weight if z == own else own_weight / 10.0
            pool = k, weight + faith, ones + faith * sigmoid(own), logits + faith * z
            while pools and pools[-1][2] / pools[-1][1] >= pool[2] / pool[1]:
                start, *last = pools.pop()
                pool = start, last[0] + pool[1], last[1] + pool[2], last[2] + pool[3]
            pools.append(pool)
        return [
            (start, clip(logits / weight, -BEYOND, BEYOND), clip(ones / weight, 0.0, 1.0))
            for start, weight, ones, logits in pools
        ]


class PlainStack:
    """Logistic regression on the logits of forecasts, by Newton steps.

    Its curvature is L D L', 10 times the unit at first.
    """

    def __init__(self, n: int) -> None:
        self.weights = [1.0 / n] * n
        self.diagonal = [10.0] * n
        self.lower = [[0.0] * i for i in range(n)]

    def say(self, p: Sequence[float]) -> float:
        """The weighted sum of logits, as a probability."""
        z = 0.0
        for weight, q in zip(self.weights, p, strict=True):
            z += weight * logit(q)
        return sigmoid(clip(z, -FARTHEST, FARTHEST))

    def learn(self, p: Sequence[float], y: int, weight: float) -> None:
        """One step, bend = |error| / 2.

        weights += error C^-1 z / (1 + bend z . C^-1 z), C += bend z z'.
        """
        error = weight * (y - self.say(p))
        bend = abs(error) / 2.0
        z = [logit(q) for q in p]
        n = len(z)
        s = 1.0  # 1 + bend z . C^-1 z in the end
        step: list[float] = []
        grown: list[tuple[int, int, float]] = []  # what each entry of L grows by
        for j in range(n):
            over = bend / s
            step.append(z[j] * (1.0 / self.diagonal[j]))
            s += bend * (z[j] * step[j])
            self.diagonal[j] += over * (z[j] * z[j])
            share = z[j] * over * (1.0 / self.diagonal[j])
            for i in range(j + 1, n):
                z[i] -= z[j] * self.lower[i][j]
                grown.append((i, j, share * z[i]))
        for i in reversed(range(n)):
            for j in range(i):
                step[j] -= self.lower[i][j] * step[i]
        for i, j, more in grown:
            self.lower[i][j] += more
        rate = error / s
        self.weights = [
            clip(w + rate * v, -64.0, 64.0) for w, v in zip(self.weights, step, strict=True)
        ]


class PlainMix(PlainHint):
    """Members and their stack, weighted by how likely they made the outcomes; fixed share.

    With several models a score is a sequence, and as many members see each entry of it.
    """

    FIRST, SECOND, SHARE, STEEP, LEAST = 0.6, 0.15, 0.0003, 50.0, 0.0001

    def __init__(self, members: Sequence[PlainHint], models: int = 1) -> None:
        self.members = list(members)
        self.models = models
        n, each = len(self.members), len(self.members) // models
        self.sees = [i // each for i in range(n)]
        self.stack = PlainStack(n)
        likely = self.SECOND if each > 1 else 0.0
        other = (1.0 - self.FIRST - likely) / (n + 1 - (2 if each > 1 else 1) * models)
        of_a_model = [self.FIRST / models, likely / models, *[other] * (each - 2)][:each]
        self.start = [*of_a_model * models, other]
        self.weights = list(self.start)
        self.rounds = 0.0
        self.lag = 0.0

    def predict(self, score: Any) -> float:
        """The weighted mean."""
        return self.issue(score)[0]

    def issue(self, score: Any) -> tuple[float, list[float]]:
        """The weighted mean; what it is the mean of, and the rounds so far over 2**53."""
        scores = [score] if self.models == 1 else score
        said = [
            member.predict(scores[k]) for member, k in zip(self.members, self.sees, strict=True)
        ]
        said.append(self.stack.say(said))
        p = 0.0
        for weight, q in zip(self.weights, said, strict=True):
            p += weight * q
        return min(p, 1.0), [*said, self.rounds / 2.0**53]

    def shorten(self, notes: list[float]) -> list[float]:
        """All but the rounds are forecasts."""
        return [*map(rough, notes[:-1]), notes[-1]]

    def learn(self, score: Any, y: int, notes: Notes = None, weight: float = 1.0) -> None:
        """Judge the members by what they said (now, if there are no notes), then let them learn."""
        *said, before = self.issue(score)[1] if notes is None else notes
        late = max(self.rounds - before * 2.0**53, 0.0)
        self.lag += weight * (late - self.lag) / 64.0
        pace = weight / (1.0 + self.lag / 25.0)
        self.stack.learn(said[:-1], y, pace)
        self.reweigh(said, y, pace)
        self.rounds += weight
        scores = [score] if self.models == 1 else score
        for member, k in zip(self.members, self.sees, strict=True):
            member.learn(scores[k], y, None, weight)

    def reweigh(self, said: Sequence[float], y: int, pace: float) -> None:
        """Each weight times chance ** pace; then a share anew, small if it was expected."""
        p = total = 0.0
        after: list[float] = []
        for weight, q in zip(self.weights, said, strict=True):
            p += weight * q
            after.append(weight * math.pow(q if y else 1.0 - q, pace))
            total += after[-1]
        surprise = 1.0 - p if y else p
        share = self.SHARE * pace * clip(self.STEEP * surprise, self.LEAST, 1.0)
        if total > 0.0:
            kept = (1.0 - share) / total
            self.weights = [kept * w + share * s for w, s in zip(after, self.start, strict=True)]


class PlainBursts:
    """The weights of outcomes that come together: 1 / max(1, (n - 1) rho) in bursts of about n.

    The correlation rho is estimated from how much the mean residuals of consecutive bursts differ.
    """

    FADE, RECENT, LEAST_DOUBT = 1.0 / 32.0, 1.0 - 1.0 / 1024.0, 1e-12

    def __init__(self) -> None:
        self.pairs = self.most_pairs = 0.0
        self.outcomes = self.bursts = 0
        self.larger_outcomes = self.larger_bursts = 0.0
        self.before_size, self.before_mean = 0, 0.0
        self.doubt = 1.0
        self.size, self.sum, self.squares = 0, 0.0, 0.0
        self.waiting = 0
        self.heard = self.weighed = 0.0

    @property
    def effect(self) -> float:
        """How many outcomes make an observation, lately."""
        return max(self.heard / self.weighed, 1.0) if self.weighed else 1.0

    def issued(self) -> None:
        """A forecast ends the burst, if there is one."""
        if self.size:
            self.close()
        self.waiting += 1

    def given_up(self) -> None:
        """One outcome less is awaited."""
        self.waiting = max(self.waiting - 1, 0)

    def weight(self, residual: float, mates: int) -> float:
        """1 / mates if the event has a name, else by what is common to bursts."""
        weight = 1.0 / mates if mates else self.among_others(residual)
        self.given_up()
        self.heard = self.RECENT * self.heard + 1.0
        self.weighed = self.RECENT * self.weighed + weight
        return weight

    def among_others(self, residual: float) -> float:
        """The correlation is that of all bursts so far, this one included.

        And what may be hidden by chance.
        """
        self.size += 1
        self.sum += residual
        self.squares += residual * residual
        found, most = self.compared()
        most += self.most_pairs
        seen = max((self.pairs + found) / most, 0.0) if most > 0.0 else 0.0
        return 1.0 / max((self.expected() - 1.0) * min(seen + self.doubt, 1.0), 1.0)

    def compared(self) -> tuple[float, float]:
        """How far the mean is off that of the burst before, beyond chance.

        And the same if all of a burst is one thing.
        """
        if self.size < 2:
            return 0.0, 0.0
        first = self.before_size == 0
        spread = 1.0 / self.size if first else 1.0 / self.size + 1.0 / self.before_size
        alike = self.size if first else 2.0 / spread
        off = self.sum / self.size - self.before_mean
        return self.size * (off * off) / spread - self.squares, (alike - 1.0) * self.squares

    def expected(self) -> float:
        """How large the present burst will be."""
        if self.size == 1:
            return self.outcomes / self.bursts if self.bursts else 1.0
        if self.larger_bursts:
            return max(self.size, self.larger_outcomes / self.larger_bursts)
        return self.size if self.bursts else self.size + max(self.waiting - 1, 0)

    def close(self) -> None:
        """Add the burst to those before, which fade."""
        self.outcomes += self.size
        self.bursts += 1
        if self.size > 1:
            self.larger_outcomes += self.size - self.FADE * self.larger_outcomes
            self.larger_bursts += 1.0 - self.FADE * self.larger_bursts
            found, most = self.compared()
            self.pairs += found - self.FADE * self.pairs
            self.most_pairs += most - self.FADE * self.most_pairs
            if self.before_size:
                self.doubt = max(self.doubt / math.sqrt(self.size), self.LEAST_DOUBT)
            self.before_size, self.before_mean = self.size, clip(self.sum / self.size, -1.0, 1.0)
        self.size, self.sum, self.squares = 0, 0.0, 0.0
