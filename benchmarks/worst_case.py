"""The worst case: outcomes that lead forecasters as far from calibrated as possible, beside what is proved of them.

    python benchmarks/pages.py worst-case  # into the docs; some minutes
    python benchmarks/worst_case.py  # to look at

Needs the package installed.
"""

from __future__ import annotations

import argparse
import bisect
import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from timing import header

import truecast as tc
from truecast.arena.adversaries.leave_biased import LeaveBiased
from truecast.arena.exhaustive import Worst, exhaustive
from truecast.arena.forecasters.base import LiteratureForecaster
from truecast.arena.search import Response, best_response

AOSA, RULES = tc.AlmostOneStepAhead, ("walk", "lowest", "highest")
RATES, NODES = 4_000, 9  # curves to try, and their nodes
MOST_BEAMED = 1_000  # rounds; the state of Arc grows, and a beam saves and loads it in every round
SEARCHED: dict[str, Callable[[int], Any]] = {
    "AOSA, lower end": lambda rounds: AOSA(horizon=rounds),
    "AOSA, middle": lambda rounds: AOSA(horizon=rounds, at="middle"),
    "BentGrid": lambda rounds: tc.BentGrid(horizon=rounds),
    "HorizonFree": lambda rounds: tc.HorizonFree(),
    "HorizonFree, middle": lambda rounds: tc.HorizonFree(at="middle"),
    "Arc": lambda rounds: tc.Arc(),
}
WHAT = """
CalDist, the distance to calibration in total, of `AlmostOneStepAhead` (AOSA), `BentGrid`, `HorizonFree` and `Arc`: first on
the worst of all outcomes, then on the worst that a search found. Proved bounds are `a_priori(T)`, from
theorems 5 and 7 of [the theory](theory.md), 3 to 5 of [ladders that adapt](adaptive.md), and theorem 3 of [the
arc](arc.md); the paper's is 2 √T + 1. All rows of the first part are exact, by rational arithmetic. In the second part,
`calibration_distance` proves the distances, but there may be worse outcomes.
"""
EXACT = """
## The exact worst of all outcome strings

`truecast.arena.exhaustive` goes through all pairs of state and tally that the 2^T strings can reach. Bold in this
part means that the proved bound is reached, so no smaller bound is true. A certificate is D + min(A, B), or that of `Arc`. Its
maximum may be on other outcomes.
"""
SEARCH = """
## Outcomes found by search

`truecast.arena.best_response`: constants and `LeaveBiased` with many options, a beam, and changes here and there to the
best of them. Number of strings tried:
{tries}.

`Arc` has no ladder for `LeaveBiased` to climb. The search for it starts from outcomes whose rate rises and falls with
time: {rates:,} curves with {nodes} nodes, each a small change of the best so far. Beyond {most:,} rounds that is all.
"""
LONG = """
## The constants

For AOSA at the middle the proved bound is below √T, for `BentGrid` it is √(T/2) + ¼ ln T + O(1); sections 5 and 6 of
the theory show that neither constant, 1 and 0.7071, can be improved for these forecasters. `LeaveBiased` plays such
outcomes. With the best of some options, |Σ(y - p)| / √T, which CalDist / √T is never below (lemma 1 of the theory), and
the proved bound / √T:
"""
BENT = """
## Other forecasters

`BentGrid` with other numbers of cells, {rounds:,} rounds. The worst of each is at least what was found, and at most its
proved bound: of these m, none has a worst case much below that of the m with the best bound.
"""
HALVES = """
`HorizonFree` with other thresholds for splitting a cell, {rounds:,} rounds.
"""
ROOTS = """
Two forecasters at a root of a field: `Defensive`, with Laplace's kernel, and `Arc`, with a [kernel made for the
distance](arc.md). T = {few} is exact. For more rounds the search starts from curves of rates, as above, and from what
the adversaries of [the arena](#the-arena) play. There may be worse outcomes than it found.

This is another search than that of the table above: the larger of their figures is the worst known.
All that it found for `Arc` is below √(T/2), the limit of `BentGrid`. After {rounds:,} rounds, in the table above, it is
{arc:.1f}, against {bent:.1f} of `BentGrid` and {free:.1f} of `HorizonFree`.
The *proved* bound of `Arc` is below that of `HorizonFree` at all 720 sizes compared, from 10 to 990,000,000, and below
that of `BentGrid`, which must know T, from T = {least:,} on. Before that `BentGrid` has the smaller bound.
"""
LEANING = """
A variant forecasts the middle of AOSA's cell, but once Σ(y - p) is beyond ±½, the end of the cell that reduces it.
Only T/m + (m - 1)/2 is proved for it, because it forecasts in open cells. On fine grids, the outcomes that are worst for
the others hurt it less, because it reduces Σ(y - p); on coarse grids it is worse than the middle. T =
{few} is exact. For more rounds the search has no special construction to start from, so its results say little:
whether a forecaster like this one beats √(T/2) is open.
"""


class Leaning(LiteratureForecaster):
    """AOSA's walk on a uniform grid, in integers over 2m; see above."""

    def __init__(self, *, grid: int, leans: bool = True) -> None:
        super().__init__(alpha=[0] * (grid + 1), cell=[grid // 2], off=[0])
        self.grid = self.denominator = grid
        self.leans = leans

    @property
    def config(self) -> dict[str, Any]:
        return {"grid": self.grid, "leans": self.leans}

    def _forecast(self) -> float:
        off, i = self._memory["off"][0], self._memory["cell"][0]
        lean = (off > self.grid) - (off < -self.grid) if self.leans else 0
        return (2 * i + 1 + lean) / (2 * self.grid)

    def _learn(self, p: float, y: int) -> None:
        alpha, cell, m = self._memory["alpha"], self._memory["cell"], self.grid
        self._memory["off"][0] += 2 * m * y - round(2 * m * p)
        credited = cell[0] + y
        alpha[credited] += credited - m * y
        cell[0] += int(y == 1 and alpha[credited] < 0) - int(y == 0 and alpha[credited] > 0)

    # for LeaveBiased
    cells = property(lambda self: self.grid)
    points = property(lambda self: np.arange(self.grid + 1))
    biases = property(lambda self: np.array(self._memory["alpha"]))
    open_cell = property(lambda self: self._memory["cell"][0])


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: str) -> None:
    print()
    row(*cells)
    print("|---" * len(cells) + "|")


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def shown(value: Fraction | float) -> str:
    """A fraction, if it is a short one."""
    short = isinstance(value, Fraction) and value.denominator < 10**4
    return str(value) if short else f"{float(value):.6f}"


def worst_of(make: Callable[[int], Any], rounds: int) -> tuple[Worst, Fraction | float]:
    """Go through all strings, and insist on the theorems."""
    f = make(rounds)
    found, bound = exhaustive(f, rounds), f.a_priori(rounds)
    if not found.distance <= found.certificate <= bound <= 2 * math.sqrt(rounds) + 1:
        raise RuntimeError(f"what was proved of {f!r} is wrong: {found}, {bound}")
    return found, bound


def exact_table(title: str, makes: dict[str, Callable[[int], Any]], most: int, cells: bool) -> None:
    print(f"\n### {title}")
    names = [f"CalDist, {name}".removesuffix(", ") for name in makes]
    certificates = [f"certificate, {name}".removesuffix(", ") for name in makes]
    ratios = [f"CalDist / √T, {name}".removesuffix(", ") for name in makes]
    head("T", *(["m"] if cells else []), *names, *certificates, "proved bound", "2 √T + 1", *ratios)
    for rounds in range(1, most + 1):
        say(f"{title}, {rounds} rounds")
        found = [worst_of(make, rounds) for make in makes.values()]
        far = [
            f"**{shown(w.distance)}**" if w.distance == bound else shown(w.distance)
            for w, bound in found
        ]
        certified = [shown(w.certificate or Fraction(0)) for w, _ in found]
        ratio = [f"{float(w.distance) / math.sqrt(rounds):.3f}" for w, _ in found]
        grid = [next(iter(makes.values()))(rounds).grid] if cells else []
        row(
            rounds,
            *grid,
            *far,
            *certified,
            shown(found[0][1]),
            f"{2 * math.sqrt(rounds) + 1:.3f}",
            *ratio,
        )


def exact(most: int) -> None:
    print(EXACT.rstrip())
    for at in ("lower", "upper", "middle"):
        makes = {
            cell: (lambda rounds, at=at, cell=cell: AOSA(horizon=rounds, at=at, cell=cell))
            for cell in RULES
        }
        exact_table(f'AlmostOneStepAhead(horizon=T, at="{at}"), by cell', makes, most, cells=True)
    makes = {
        cell: (lambda rounds, cell=cell: tc.BentGrid(horizon=rounds, cell=cell)) for cell in RULES
    }
    exact_table("BentGrid(horizon=T), by cell", makes, most, cells=True)
    for at in ("outer", "middle"):
        exact_table(
            f'HorizonFree(at="{at}")',
            {"": lambda rounds, at=at: tc.HorizonFree(at=at)},
            most,
            cells=False,
        )
    exact_table("Arc()", {"": lambda rounds: tc.Arc()}, most, cells=False)


def tries(rounds: int) -> int:
    return 4_000 if rounds <= 32 else 1_200 if rounds <= 256 else 80


def by_rates(make: Callable[[int], Any], rounds: int) -> np.ndarray:
    """Outcomes with a large sum of y - p, their rate a curve in time: the best of many."""
    rng = np.random.default_rng(rounds)
    best = np.linspace(-4.0, 4.0, NODES)
    outcomes = at_rates(best, rounds)
    most = off(make(rounds), outcomes)
    for k in range(RATES):
        curve = best + max(0.05, 0.85 ** (k // 200)) * rng.normal(size=NODES) * (
            rng.random(NODES) < 0.4
        )
        y = at_rates(curve, rounds)
        error = off(make(rounds), y)
        if error > most:
            most, best, outcomes = error, curve, y
    return outcomes


def at_rates(curve: np.ndarray, rounds: int) -> np.ndarray:
    """Outcomes of a rate whose log odds go straight from node to node, within half a one."""
    odds = np.interp((np.arange(rounds) + 0.5) / rounds, np.linspace(0, 1, len(curve)), curve)
    return np.diff(np.floor(np.cumsum(1 / (1 + np.exp(-odds))) + 0.5), prepend=0).astype(np.uint8)


def off(f: Any, y: np.ndarray) -> float:
    return abs(float(np.sum(y - f.forecast_many(y))))


def searched(f: Any, rounds: int, starts: Iterable[np.ndarray] = ()) -> Response:
    """Search for as long as it takes, so that every run finds the same."""
    say(f"{f!r}, {rounds:,} rounds")
    width = 64 if rounds <= 256 else 4
    found = best_response(
        f, rounds, tries=tries(rounds), width=width, time_limit=3_600.0, starts=starts
    )
    if (
        found.bound is not None
        and found.distance.totals[0] > found.bound * (1 + 1e-12) + rounds * 2.0**-54
    ):
        raise RuntimeError(f"what was proved of {f!r} is wrong: {found}")
    return found


def far(found: Response) -> str:
    lower, upper = found.distance.totals
    return f"{upper:.6f}" if found.distance.exact else f"{lower:.6f} to {upper:.6f}"


def worst_by_rates(make: Callable[[int], Any], rounds: int) -> Response:
    """The worst of the curves; of fewer rounds, what a search makes of that."""
    say(f"{make(rounds)!r}, {rounds:,} rounds, by rates")
    y = by_rates(make, rounds)
    if rounds <= MOST_BEAMED:
        return searched(make(rounds), rounds, [y])
    distance = tc.calibration_distance(
        y, make(rounds).forecast_many(y), rtol=0.001, time_limit=120.0
    )
    return Response(tuple(y.tolist()), distance, float(make(rounds).a_priori(rounds)), 1)


def search(sizes: list[int]) -> dict[tuple[str, int], float]:
    """Print what was found, and return it."""
    spent = ", ".join(f"{tries(rounds):,} of {rounds:,} rounds" for rounds in sizes)
    print(SEARCH.format(tries=spent, rates=RATES, nodes=NODES, most=MOST_BEAMED).rstrip())
    most = {}
    head(
        "forecaster",
        "T",
        "CalDist found",
        "certificate there",
        "proved bound",
        "CalDist / bound",
        "CalDist / √T",
    )
    for name, make in SEARCHED.items():
        for rounds in sizes:
            found = (
                worst_by_rates(make, rounds) if name == "Arc" else searched(make(rounds), rounds)
            )
            most[name, rounds] = found.distance.totals[0]
            f = make(rounds)
            f.forecast_many(found.outcomes)
            numbers = f"{f.certificate.bound:.6f}", f"{found.bound:.6f}", f"{found.ratio:.3f}"
            row(
                name,
                f"{rounds:,}",
                far(found),
                *numbers,
                f"**{found.distance.totals[0] / math.sqrt(rounds):.3f}**",
            )
    return most


def constants(sizes: list[int]) -> None:
    print(LONG.rstrip())
    head("T", *(f"{name}{what}" for name in list(SEARCHED)[1:4] for what in ("", ", proved")))
    for rounds in sizes:
        cells = []
        for name in list(SEARCHED)[1:4]:
            say(f"{name}, {rounds:,} rounds, constants")
            f = SEARCHED[name](rounds)
            best = max(
                error(SEARCHED[name](rounds), option, rounds) for option in options(f, name, rounds)
            )
            cells += [
                f"**{best / math.sqrt(rounds):.4f}**",
                f"{float(f.a_priori(rounds)) / math.sqrt(rounds):.4f}",
            ]
        row(f"{rounds:,}", *cells)


def options(f: Any, name: str, rounds: int) -> list[LeaveBiased]:
    if name == "HorizonFree":
        return [
            LeaveBiased(look=4, fine=x / math.sqrt(rounds), towards=0)
            for x in (0.1, 0.12, 0.14, 0.17, 0.2)
        ]
    if name == "BentGrid":
        stays = [int(x * rounds / (f.grid // 2)) for x in (0.5, 0.65, 0.8, 0.9)]
        return [
            LeaveBiased(stay=stay, look=look, towards=0) for stay in stays for look in (8, 16, 32)
        ]
    return [LeaveBiased(look=look) for look in (4, 8, 16, 32)]


def error(f: Any, adversary: LeaveBiased, rounds: int) -> float:
    game = tc.arena.play(f, adversary, rounds)
    return abs(math.fsum((game.y - game.p).tolist()))


def others(rounds: int, few: int, most: dict[tuple[str, int], float]) -> None:
    print(BENT.format(rounds=rounds).rstrip())
    best = tc.BentGrid.best_grid(rounds)
    head("m", "CalDist found", "proved bound", "CalDist / bound", "CalDist / √T")
    for grid in (best // 2 // 2 * 2, best - 6, best, best + 6, 2 * best):
        found = searched(tc.BentGrid(grid=grid), rounds)
        ratio = f"{found.ratio:.3f}", f"{found.distance.totals[0] / math.sqrt(rounds):.3f}"
        row(
            f"{grid}{' (the best bound)' if grid == best else ''}",
            far(found),
            f"{found.bound:.6f}",
            *ratio,
        )
    print(HALVES.format(rounds=rounds).rstrip())
    head("split", "CalDist found", "proved bound", "CalDist / bound", "CalDist / √T")
    for split in (1.0, 0.5, 0.25, 0.125):
        found = searched(tc.HorizonFree(split=split), rounds)
        ratio = f"{found.ratio:.3f}", f"{found.distance.totals[0] / math.sqrt(rounds):.3f}"
        row(split, far(found), f"{found.bound:.6f}", *ratio)
    roots(rounds, most)
    print(LEANING.format(few=few).rstrip())
    head("T", "m", "middle of the cell", "/ √T", "leaning", "/ √T")
    for size, grid in [(few, m) for m in range(2, 8)] + [(64, 9), (256, 16), (rounds, 32)]:
        cells: list[str] = []
        for leans in (False, True):
            f = Leaning(grid=grid, leans=leans)
            value = (
                float(exhaustive(f, size).distance)
                if size <= few
                else searched(f, size).distance.totals[0]
            )
            cells += [f"{value:.4f}", f"{value / math.sqrt(size):.3f}"]
        row(f"{size:,}", grid, *cells)


def roots(most: int, found: dict[tuple[str, int], float], few: int = 12) -> None:
    longest = max(rounds for _, rounds in found)
    arc, bent, free = (found[name, longest] for name in ("Arc", "BentGrid", "HorizonFree"))
    if not arc < min(bent, free, math.sqrt(longest / 2)):
        raise RuntimeError(f"Arc is not the least after {longest} rounds, unlike the text: {found}")
    print(
        ROOTS.format(
            few=few, rounds=longest, arc=arc, bent=bent, free=free, least=overtaken()
        ).rstrip()
    )
    kinds = {
        "Defensive": lambda rounds: tc.arena.Defensive(horizon=rounds),
        "Arc": lambda rounds: tc.Arc(),
    }
    head(
        "T",
        *(f"{name}{what}" for name in kinds for what in ("", " / √T")),
        "Arc, lower distance proved / √T",
    )
    for size in (few, 64, 256, most):
        cells: list[str] = []
        for make in kinds.values():
            f = make(size)
            value = float(exhaustive(f, size).distance) if size == few else worst_from(make, size)
            cells += [f"{value:.4f}", f"{value / math.sqrt(size):.3f}"]
        if value >= math.sqrt(size / 2):
            raise RuntimeError(
                f"Arc is beyond the root of T/2 after {size} rounds, unlike the text: {value}"
            )
        row(
            f"{size:,}",
            *cells,
            f"{(float(f.a_priori(size)) - tc.distance.splitting_gap(size)) / math.sqrt(size):.3f}",
        )


def overtaken() -> int:
    """Return the number of rounds from which on the bound of Arc is below that of BentGrid."""

    def behind(rounds: int) -> bool:
        return tc.Arc().a_priori(rounds) >= tc.BentGrid(horizon=rounds).a_priori(rounds)

    sizes = [digits * 10**k for k in range(8) for digits in range(10, 100)]
    if any(tc.Arc().a_priori(rounds) >= tc.HorizonFree().a_priori(rounds) for rounds in sizes):
        raise RuntimeError("not always is less proved of Arc than of HorizonFree, unlike the text")
    last = max(filter(behind, sizes))
    ahead = next(rounds for rounds in sizes if rounds > last)
    return bisect.bisect_left(
        range(ahead + 1), True, lo=last, key=lambda rounds: not behind(rounds)
    )


def worst_from(make: Callable[[int], Any], rounds: int) -> float:
    return searched(make(rounds), rounds, starts(make, rounds)).distance.totals[0]


def starts(make: Callable[[int], Any], rounds: int) -> list[np.ndarray]:
    """What the arena plays, and the worst curve of rates."""
    opponents = [
        adversary for adversary in tc.arena.ADVERSARIES.values() if adversary.plays(make(rounds))
    ]
    return [
        by_rates(make, rounds),
        *(tc.arena.play(make(rounds), adversary, rounds).y for adversary in opponents),
    ]


def sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--exact", type=int, default=16, help="the most rounds whose outcomes all to go through"
    )
    parser.add_argument(
        "--rounds", type=sizes, default=[16, 32, 64, 128, 256, 1_000, 10_000], help="to search"
    )
    parser.add_argument(
        "--long", type=sizes, default=[1_000, 10_000, 100_000], help="for the constants"
    )
    given = parser.parse_args()
    header("The worst case", "worst_case.py", "numpy")
    print(WHAT.rstrip())
    exact(given.exact)
    most = search(given.rounds)
    constants(given.long)
    others(1_000, given.exact, most)


if __name__ == "__main__":
    main()
