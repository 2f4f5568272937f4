"""Hints for several classes, in plain Python: the compiled ones, but for the last bits.

Temperature, vector and matrix scaling of bent log probabilities x, learned online, and a mixture of
them by their Brier scores.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Protocol

__all__ = ["Matrix", "Mixture", "Offsets", "Temperature", "Vector", "bent", "features", "softmax"]

Row = list[float]


def bent(log_p: float) -> float:
    """A log probability, drawn together below -8."""
    return -8.0 - math.log1p(-8.0 - log_p) if log_p < -8.0 else log_p


def features(p: Sequence[float]) -> Row:
    """The x of a row of probabilities."""
    return [bent(math.log(max(each, 1e-300))) for each in p]


def softmax(z: Sequence[float]) -> Row:
    """Probabilities in proportion to exp(z)."""
    top = max(z)
    parts = [math.exp(each - top) for each in z]
    total = 0.0
    for part in parts:
        total += part
    return [part / total for part in parts]


def clip(value: float, most: float) -> float:
    """Between -most and most."""
    return max(-most, min(most, value))


class Member(Protocol):
    """What makes a row of probabilities of x."""

    def say(self, x: Row) -> Row:
        """What it says."""

    def learn(self, x: Row, q: Row, y: int, weight: float = 1.0) -> None:
        """Learn the outcome y, where q was said."""


class Temperature:
    """softmax(a x)."""

    def __init__(self) -> None:
        self.slope, self.curvature = 1.0, 2.0

    def say(self, x: Row) -> Row:
        """What it says."""
        return softmax([self.slope * each for each in x])

    def learn(self, x: Row, q: Row, y: int, weight: float = 1.0) -> None:
        """Take a Newton step on the log loss."""
        mean = bend = 0.0
        for a, b in zip(q, x, strict=True):
            mean += a * b
        for k, (a, b) in enumerate(zip(q, x, strict=True)):
            error = abs((1.0 if k == y else 0.0) - a)
            bend += (0.5 * a + 0.25 * error) * ((b - mean) * (b - mean))
        self.curvature += weight * bend
        self.slope = max(-4.0, min(16.0, self.slope + weight * (x[y] - mean) / self.curvature))


class Vector:
    """softmax(a x_k + (a_k - 1) x_k + b_k), for the slope a of the temperature."""

    keep, pull_slope, pull_offset = 0.999, 8.0, 2.0

    def __init__(self, classes: int, temperature: Temperature) -> None:
        self.temperature = temperature
        self.slopes, self.offsets = [1.0] * classes, [0.0] * classes
        self.a, self.b = [self.pull_offset] * classes, [0.0] * classes
        self.c = [self.pull_slope] * classes

    def say(self, x: Row) -> Row:
        """What it says."""
        more = self.temperature.slope - 1.0
        logits = zip(self.slopes, x, self.offsets, strict=True)
        return softmax([(more + slope) * each + offset for slope, each, offset in logits])

    def learn(self, x: Row, q: Row, y: int, weight: float = 1.0) -> None:
        """Take the Newton step of Platt in each class."""
        lost = weight * (1.0 - self.keep)
        kept = 1.0 - lost
        for k, z in enumerate(x):
            error = weight * ((1.0 if k == y else 0.0) - q[k])
            bend = abs(error) / 2.0
            a = self.a[k] = kept * self.a[k] + lost * self.pull_offset + bend
            b = self.b[k] = kept * self.b[k] + bend * z
            c = self.c[k] = kept * self.c[k] + lost * self.pull_slope + bend * z * z
            u = error - lost * self.pull_offset * self.offsets[k]
            v = error * z - lost * self.pull_slope * (self.slopes[k] - 1.0)
            determinant = a * c - b * b
            self.offsets[k] = clip(self.offsets[k] + (c * u - b * v) / determinant, 64.0)
            self.slopes[k] = clip(self.slopes[k] + (a * v - b * u) / determinant, 64.0)


class Matrix:
    """softmax((a - 1) x + W (x, 1)), for the slope a of the temperature.

    Recursive least squares a class.
    """

    pull = 5.0

    def __init__(self, classes: int, keep: float, temperature: Temperature) -> None:
        self.temperature = temperature
        self.keep, self.wide = keep, classes + 1
        self.rows = [[float(j == k) for j in range(self.wide)] for k in range(classes)]
        self.inverse = [self._start() for _ in range(classes)]

    def _start(self) -> list[Row]:
        n = self.wide
        return [[1.0 / self.pull if i == j else 0.0 for j in range(n)] for i in range(n)]

    def say(self, x: Row) -> Row:
        """What it says."""
        z = []
        more = self.temperature.slope - 1.0
        for k, row in enumerate(self.rows):
            sum_ = row[-1] + more * x[k]
            for j, each in enumerate(x):
                sum_ += row[j] * each
            z.append(sum_)
        return softmax(z)

    def learn(self, x: Row, q: Row, y: int, weight: float = 1.0) -> None:
        """Update the row and the inverse curvature of each class."""
        for k in range(len(x)):
            self._learn_row(k, [*x, 1.0], weight * ((1.0 if k == y else 0.0) - q[k]), weight)

    def _learn_row(self, k: int, z: Row, error: float, weight: float) -> None:
        n, r = self.wide, self.inverse[k]
        kept = 1.0 - weight * (1.0 - self.keep)
        trace = 0.0
        for i in range(n):
            trace += r[i][i]
        # what is forgotten must not wind up
        grown = 1.0 / kept if self.keep < 1.0 and trace <= kept * n / self.pull else 1.0
        s = [0.0] * n
        for i in range(n):
            for j in range(n):
                s[j] += r[i][j] * z[i]
        along = 0.0
        for i in range(n):
            along += s[i] * z[i]
        if not along > 0.0:
            self.inverse[k] = self._start()
            return
        bend = abs(error) / 2.0 + 1e-12
        d = 1.0 + grown * bend * along
        part = grown * grown * bend / d
        for i in range(n):
            by = part * s[i]
            r[i] = [grown * r[i][j] - by * s[j] for j in range(n)]
        rate = error * grown / d
        self.rows[k] = [
            clip(w + rate * each, 64.0) for w, each in zip(self.rows[k], s, strict=True)
        ]


class Mixture:
    """Members weighted by exp(-their Brier scores), with a fixed share.

    Of what they start with, the model has one share, temperature scaling six, vector scaling a
    half, a matrix a quarter, and the hints of each class two. Besides, the model has a part of what
    is said that falls with the number of outcomes.
    """

    share, unproved = 0.001, 20.0

    def __init__(self, matrices: int) -> None:
        shares = [1.0, 6.0, 0.5, *[0.25] * matrices, 2.0]
        self.weights = [each / sum(shares) for each in shares]
        self.rounds = 0.0

    def say(self, said: Sequence[Row]) -> Row:
        """The weighted mean of what the members say, normalised."""
        mixed = [0.0] * len(said[0])
        for w, q in zip(self.weights, said, strict=True):
            for k, each in enumerate(q):
                mixed[k] += w * each
        part = (self.unproved / (self.unproved + self.rounds)) ** 2
        mixed = [each + part * (p - each) for each, p in zip(mixed, said[0], strict=True)]
        total = 0.0
        for each in mixed:
            total += each
        return [min(each / total, 1.0) for each in mixed]

    def learn(self, said: Sequence[Row], y: int, pace: float = 1.0) -> None:
        """Weigh the members by what they said."""
        self.rounds += 1.0
        total = 0.0
        for i, q in enumerate(said):
            loss = 0.0
            for k, each in enumerate(q):
                miss = (1.0 if k == y else 0.0) - each
                loss += miss * miss
            self.weights[i] *= math.exp(-pace * loss)
            total += self.weights[i]
        part = self.share * pace
        scale, anew = (1.0 - part) / total, part / len(said)
        self.weights = [min(scale * w + anew, 1.0) for w in self.weights]


class Offsets:
    """What groups need besides the hint: factors for the odds of each class, learned from outcomes.

    Each of three members believes in another spread of them, and shrinks what it sees accordingly;
    a fourth, with half of the weight at first, leaves the hint alone. Outcomes come at once here.
    """

    spreads = (0.25, 0.6, 1.5)
    fresh, share, farthest = 0.02, 0.0001, 16.0

    def __init__(self, classes: int) -> None:
        self.classes = range(classes)
        self.start = [0.5, *[0.5 / len(self.spreads)] * len(self.spreads)]
        self.weights = self.start
        self.means: dict[Hashable, list[Row]] = {}  # of a group: by member, by class
        self.variances: dict[Hashable, list[Row]] = {}

    def meet(self, groups: Sequence[Hashable]) -> None:
        """Nothing is known of a new group but how far groups are spread."""
        for group in groups:
            self.means.setdefault(group, [[0.0] * len(self.classes) for _ in self.spreads])
            prior = [[spread * spread] * len(self.classes) for spread in self.spreads]
            self.variances.setdefault(group, prior)

    def rows(self, hint: Row, groups: Sequence[Hashable]) -> list[Row]:
        """What each member makes of the hint: half of the groups' sum on the log scale."""
        self.meet(groups)
        made = []
        for j in range(len(self.spreads)):
            sums = [math.fsum(self.means[g][j][k] for g in groups) for k in self.classes]
            bent = [math.exp(clip(each, self.farthest) / 2.0) for each in sums]
            parts = [p * by for p, by in zip(self.cut_off(hint), bent, strict=True)]
            likely = self.cut_off(parts)
            made.append([part / math.fsum(likely) for part in likely])
        return made

    def cut_off(self, parts: Row) -> Row:
        """Odds against the most probable class are those of two, at least; what is 0 stays."""
        lowest = math.exp(-self.farthest) * max(parts)
        return [max(part, lowest) if part > 0.0 else 0.0 for part in parts]

    def say(self, hint: Row, groups: Sequence[Hashable]) -> Row:
        """The weighted mean of the hint and of what the members make of it."""
        if not groups:
            return hint
        said = [hint, *self.rows(hint, groups)]
        together = zip(self.weights, said, strict=True)
        weighted = [[w * p for p in row] for w, row in together]
        return [math.fsum(column) for column in zip(*weighted, strict=True)]

    def learn(self, hint: Row, groups: Sequence[Hashable], y: int) -> None:
        """Move the offsets of each class as for two classes; then weigh the members."""
        if not groups or max(hint) >= 1.0:
            return
        said = self.rows(hint, groups)
        for j, row in enumerate(said):
            for k in self.classes:
                if hint[k] > 0.0:
                    self.step(j, k, groups, row[k], float(k == y))
        chances = [hint[y], *(row[y] for row in said)]
        weighed = [w * chance for w, chance in zip(self.weights, chances, strict=True)]
        total = math.fsum(weighed)
        if total > 1e-300:
            anew = zip(weighed, self.start, strict=True)
            self.weights = [(1 - self.share) * w / total + self.share * s for w, s in anew]

    def step(self, j: int, k: int, groups: Sequence[Hashable], p: float, y: float) -> None:
        """A group takes the part that its variance has in that of the sum."""
        bend = p * (1.0 - p)
        rate = 1.0 / (1.0 + bend * math.fsum(self.variances[g][j][k] for g in groups))
        for g in groups:
            v = self.variances[g][j][k]
            self.means[g][j][k] = clip(self.means[g][j][k] + v * rate * (y - p), self.farthest)
            least = self.fresh * self.spreads[j] ** 2
            self.variances[g][j][k] = max(v - v * rate * v * bend, least)
