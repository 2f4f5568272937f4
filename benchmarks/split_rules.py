"""Rules for splitting cells: what their certificates come to.

    python benchmarks/split_rules.py     # about two minutes; prints the tables of docs/adaptive.md
    python benchmarks/split_rules.py --worst 26  # the largest certificate of 26 rounds; two minutes

Rules that `HorizonFree` has are played by it, others by a plain ladder here, over fewer rounds.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from timing import header

import truecast as tc

# from the rounds before, the forecast and who made it to the outcome
Outcome = Callable[[int, float, Any], int]
Due = Callable[["Ladder", int, float], bool]  # whether to split cell i, which has cost so much


LOWEST, RETURNS = 0.2, 40  # where the descent ends, and how often it goes back up to a point


def given(y: np.ndarray) -> Outcome:
    bits = np.asarray(y, np.uint8).tobytes()
    return lambda t, _p, _f: bits[t]


def streams(rounds: int) -> dict[str, Outcome]:
    """Outcomes that nobody steers, and some that see the forecast."""
    rng, t = np.random.default_rng(1), np.arange(rounds)
    u = rng.random(rounds)

    def sweep(t: int, p: float, _: Any) -> int:
        """Leads the forecast from 0 up to 1 and down again."""
        return int(p < 1 - abs(1 - 2 * t / rounds))

    tries: Counter[float] = Counter()

    def descent(t: int, p: float, f: Any) -> int:
        """Ten sweeps up to 1 to make cells; then down, leaving each bias large on the way."""
        if t < 0.97 * rounds:
            return int(t > 0.969 * rounds or p < 1 - abs(1 - 20 * t / rounds % 2))
        if p < LOWEST:
            return 1
        above, bias = f.above()
        tries[above] += 1
        return int(above < 1 and bias < 0.8 * above and tries[above] < RETURNS)

    return {
        "coin": given(u < 0.5),
        "0101": given(t % 2),
        "0011": given(t // 2 % 2),
        "Bernoulli .1": given(u < 0.1),
        "drift": given(u < 0.5 + 0.4 * np.sin(6 * np.pi * t / rounds)),
        "rising": given(u < t / rounds),
        "threshold": lambda _t, p, _f: int(p <= 0.5),
        "sweep": sweep,
        "descent": descent,
        "ones": lambda _t, _p, _f: 1,
    }


@dataclass
class Ladder:
    """The walk of docs/adaptive.md, section 1, at the outer end, with any splitting rule."""

    due: Due
    turns: bool = False  # to the other half of a cell that is split, away from the outcome

    def __post_init__(self) -> None:
        self.points, self.biases, self.spent, self.visits = (
            [0.0, 0.5, 1.0],
            [0.0] * 3,
            [0.0] * 2,
            [0] * 2,
        )
        self.cell, self.deviation, self.bias, self.moved = 0, 0.0, 0.0, False

    def predict(self) -> float:
        low, high = self.points[self.cell], self.points[self.cell + 1]
        return low if high <= 0.5 else high

    def observe(self, y: int) -> None:
        i, j = self.cell, self.cell + y
        cost = abs(self.predict() - self.points[j])
        self.deviation += cost
        self.spent[i] += cost
        self.visits[i] += 1
        self.bias -= abs(self.biases[j])
        self.biases[j] += self.points[j] - y
        self.bias += abs(self.biases[j])
        self.moved = self.biases[j] < 0 if y else self.biases[j] > 0
        if self.moved:
            self.cell += 1 if y else -1
        if self.due(self, i, self.spent[i]):
            self.points.insert(i + 1, (self.points[i] + self.points[i + 1]) / 2)
            self.biases.insert(i + 1, 0.0)
            self.spent[i : i + 1], self.visits[i : i + 1] = [0.0, 0.0], [0, 0]
            self.cell += 1 - y if self.turns and not self.moved else y

    def above(self) -> tuple[float, float]:
        """The upper end of the cell, and its bias."""
        return self.points[self.cell + 1], self.biases[self.cell + 1]

    def width(self, i: int) -> float:
        return self.points[i + 1] - self.points[i]

    def certified(self) -> float:
        """D + min(A, B)."""
        biased = [(g, a) for g, a in zip(self.points, self.biases, strict=True) if a]
        v = sum(a < 0 for _, a in biased) / max(len(biased), 1)
        pooled = sum(abs((1 - g if a < 0 else g) - abs(a)) + abs(v - g) for g, a in biased)
        return self.deviation + min(self.bias, pooled)


class HorizonFree(tc.HorizonFree):
    """The product's, for those who look at its ladder."""

    def above(self) -> tuple[float, float]:
        """The upper end of the cell, and its bias."""
        j = self.open_cell + 1
        return self.points[j] / self.denominator, self.biases[j] / self.denominator


def centre(ladder: Ladder, i: int) -> float:
    """The distance of the middle of cell i from 0 or 1, times two."""
    middle = ladder.points[i] + ladder.width(i) / 2
    return 2 * min(middle, 1 - middle)


def ends(ladder: Ladder, i: int) -> float:
    return abs(ladder.biases[i]) + abs(ladder.biases[i + 1])


def mean_bias(ladder: Ladder) -> float:
    return ladder.bias / (len(ladder.points) - 2)


RULES: dict[str, Due] = {
    "c = 1/4": lambda f, i, d: d >= 1 / 4,
    "c grows with depth, (1 + level)^½/8": lambda f, i, d: (
        d >= math.sqrt(1 - math.log2(f.width(i))) / 8
    ),
    "c falls with depth, (1 + level)^-½": lambda f, i, d: (
        d >= 1 / math.sqrt(1 - math.log2(f.width(i)))
    ),
    "c smaller at the ends, ¼√(2μ)": lambda f, i, d: d >= math.sqrt(centre(f, i)) / 4,
    "c larger at the ends, ¼/√(2μ)": lambda f, i, d: d >= 1 / math.sqrt(centre(f, i)) / 4,
    "c = 1/4 plus half the biases at the ends": lambda f, i, d: d >= 1 / 4 + ends(f, i) / 2,
    "c = 1/4 less a quarter of these": lambda f, i, d: d >= max(0.01, 1 / 4 - ends(f, i) / 4),
    "c = mean bias, at least 1/32": lambda f, i, d: d >= max(1 / 32, mean_bias(f)),
    "c = 1/4, where the walk moves on": lambda f, i, d: d >= 1 / 4 and f.moved,
    "c = 1/4, where the walk stays": lambda f, i, d: d >= 1 / 4 and not f.moved,
    "½/w rounds, whatever they cost": lambda f, i, d: f.visits[i] >= 0.5 / f.width(i),
}


def play(forecaster: Any, outcome: Outcome, rounds: int) -> None:
    for t in range(rounds):
        forecaster.observe(outcome(t, forecaster.predict(), forecaster))


def row(name: str, figures: Iterator[float]) -> None:
    print(f"| {name} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |", flush=True)


def head(first: str, *columns: str) -> None:
    print(f"| {first} | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")


def products(rounds: int, plans: list[tuple[str, float]]) -> None:
    print(f"\n`HorizonFree`, T = {rounds:,}: certificate / √T\n")
    head("rule", *streams(1))
    for at, split in plans:
        figures = []
        for outcome in streams(rounds).values():
            f = HorizonFree(at=at, split=split)
            play(f, outcome, rounds)
            figures.append(f.certificate.bound / math.sqrt(rounds))
        row(f"{at}, c = {split:g}", iter(figures))


def others(rounds: int) -> None:
    print(f"\nOther rules, outer end, T = {rounds:,}: certificate / √T\n")
    head("rule", *streams(1))
    ladders = [(name, due, False) for name, due in RULES.items()]
    for name, due, turns in [
        *ladders,
        ("c = 1/4, on in the half away from the outcome", RULES["c = 1/4"], True),
    ]:
        figures = []
        for outcome in streams(rounds).values():
            ladder = Ladder(due, turns)
            play(ladder, outcome, rounds)
            figures.append(ladder.certified() / math.sqrt(rounds))
        row(name, iter(figures))


def worst(rounds: int) -> None:
    """Go through all states that outcomes can lead to; by symmetry the first outcome is a one."""
    f = tc.HorizonFree()
    f.predict()
    f.observe(1)
    states = [f.state()]
    for t in range(2, rounds + 1):
        found: dict[tuple[int, ...], dict[str, Any]] = {}
        for saved, y in product(states, (0, 1)):
            f.load(saved)
            f.predict()
            f.observe(y)
            state = f.state()
            key = (*state["points"], *state["biases"], *state["spent"], state["open_cell"])
            if key not in found or found[key]["deviation"] < state["deviation"]:
                found[key] = state
        states = list(found.values())
        most = Fraction(0)
        for saved in states:
            f.load(saved)
            most = max(most, f.deviation + min(f.bias_sums))
        print(
            f"T = {t}: {most}, {float(most) / math.sqrt(t):.3f} √T, {len(states):,} states",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=1_000_000, help="of the tables of HorizonFree"
    )
    parser.add_argument(
        "--worst", type=int, metavar="ROUNDS", help="nothing but the worst of so few rounds"
    )
    given = parser.parse_args()
    if given.worst:
        worst(given.worst)
        return
    rounds = given.rounds
    header("Rules for splitting cells", "split_rules.py", "numpy")
    plans = [(at, c) for at in ("outer", "middle") for c in (1.0, 0.5, 0.25, 0.125, 0.0625)]
    products(rounds, plans)
    for fewer in (rounds // 10, rounds // 100):
        products(fewer, [("outer", 0.5), ("outer", 0.25), ("outer", 0.125)])
    others(rounds // 10)


if __name__ == "__main__":
    main()
