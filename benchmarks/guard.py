"""What the guard costs where the hints are right: budgets, and the share of one round.

    python benchmarks/guard.py     # a few seconds
    python benchmarks/guard.py --share  # two minutes: the plain guard at other shares
    python benchmarks/guard.py --runs  # two minutes: outcomes in runs, and in another order

The hints are the very probabilities of the outcomes, so the guard can only make them worse: on
average by the sum of (p - h)^2 in the Brier score, in total. Means over some seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable
from itertools import product

import numpy as np
from timing import header

import truecast as tc
from truecast.reference.guard import ArcGuard, Placed, shape_at

ROUNDS = 20_000
STREAMS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "a fair coin, hint 1/2": lambda rng: np.full(ROUNDS, 0.5),
    "hints from beta(2, 3)": lambda rng: rng.beta(2, 3, ROUNDS),
}


class Quick(ArcGuard):
    """The plain guard of one field, with its knots in arrays."""

    def __init__(self, budget: float, share: float) -> None:
        super().__init__(budget=budget, share=share)
        self.place_of: dict[int, int] = {}
        self.knots = np.zeros(64, np.int64)
        self.near, self.far = np.zeros(64), np.zeros(64)  # residual times rise, and times fall

    def phi(self, name: Hashable, key: int) -> float:
        """Return the field at a key."""
        n = len(self.place_of)
        up, down = shape_at(key)
        below = self.knots[:n] <= key
        return down * float(self.near[:n] @ below) + up * float(self.far[:n] @ ~below)

    def settle(self, placed: Placed, y: int) -> None:
        """Learn an outcome, and bring the arrays up to date."""
        super().settle(placed, y)
        key = placed.key
        i = self.place_of.setdefault(key, len(self.place_of))
        if i == len(self.knots):
            self.knots, self.near, self.far = (
                np.concatenate([a, a * 0]) for a in (self.knots, self.near, self.far)
            )
        up, down = shape_at(key)
        r = self.fields[None].residuals[key] / 2**32
        self.knots[i], self.near[i], self.far[i] = key, r * up, r * down


def game(
    draw: Callable[[np.random.Generator], np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    hints = draw(rng)
    return hints, (rng.random(ROUNDS) < hints).astype(np.uint8)


def plainly(budget: float, share: float, hints: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    guard, said = Quick(budget, share), np.empty(len(hints))
    for t, (hint, y) in enumerate(zip(hints.tolist(), outcomes.tolist(), strict=True)):
        said[t] = guard.predict(hint)
        guard.observe(y)
    return said


def table(
    first: str, play: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], seeds: int
) -> None:
    print(f"\n| {first} | " + " | ".join(STREAMS) + " |\n|---" + "|---" * len(STREAMS) + "|")
    for name, said in play.items():
        cells = []
        for draw in STREAMS.values():
            games = [game(draw, seed) for seed in range(seeds)]
            moved = [
                float(np.sum((said(hints, outcomes) - hints) ** 2)) for hints, outcomes in games
            ]
            cells.append(f"{np.mean(moved):.2f}, at most {max(moved):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def in_runs(stay: float, seed: int) -> np.ndarray:
    """Outcomes that repeat the last one with this probability; in the long run half are ones."""
    rng = np.random.default_rng(seed)
    return (np.cumsum(rng.random(ROUNDS) >= stay) % 2).astype(np.uint8)


def runs(seeds: int) -> None:
    """Print what the guard gains with a hint of 1/2, and what knowing the last outcome gains."""
    orders = ("as they come", "in random order", "one who knows the chance of a repeat")
    print(
        "\n| an outcome repeats with | "
        + " | ".join(orders)
        + " |\n|---"
        + "|---" * len(orders)
        + "|"
    )
    for stay in (0.5, 0.7, 0.9, 0.99):
        gained = np.zeros(3)
        for seed in range(seeds):
            y = in_runs(stay, seed)
            for i, outcomes in enumerate((y, np.random.default_rng(seed).permutation(y))):
                said = plainly(4.0, 0.1, np.full(ROUNDS, 0.5), outcomes)
                gained[i] += 0.25 - np.mean((said - outcomes) ** 2)
            gained[2] += 0.25 - stay * (1 - stay)
        print(
            f"| {stay:g} | " + " | ".join(f"{gain:+.4f}" for gain in gained / seeds) + " |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--share", action="store_true", help="the share of the room, with the plain guard"
    )
    parser.add_argument(
        "--runs", action="store_true", help="outcomes in runs, with the plain guard"
    )
    parser.add_argument("--seeds", type=int, help="games a cell")
    given = parser.parse_args()
    header("What the guard costs", "guard.py", "numpy")
    if given.runs:
        print(
            "\nHow much lower the Brier score is than that of the hint, a round: hint 1/2, "
            "budget 4\n"
        )
        runs(given.seeds or 4)
    elif given.share:
        plans = product((2.0, 4.0), (0.03, 0.1, 0.3, 1.0))
        plain = {f"{c:g}, {k:g}": lambda h, y, c=c, k=k: plainly(c, k, h, y) for c, k in plans}
        table("budget, share", plain, given.seeds or 8)
    else:
        budgets = (1.5, 2.0, 4.0, 8.0)
        ours = {f"{c:g}": lambda h, y, c=c: tc.Guard(budget=c).forecast_many(h, y) for c in budgets}
        table("budget", ours, given.seeds or 50)


if __name__ == "__main__":
    main()
