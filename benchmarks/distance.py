"""What the distance to calibration costs, against targets; and how far it is from other figures.

    python benchmarks/pages.py distance  # into the docs; nine minutes on a quiet machine
    python benchmarks/distance.py  # to look at; --rounds 1000 is quick, --long has more seeds
    python benchmarks/distance.py --calibrated 10000    # ten seeds of calibrated forecasts
    python benchmarks/distance.py --at-once 1000000     # the last table alone, three seeds

Each case has a process of its own, so that its peak memory can be told. Needs the package
installed, on Linux or macOS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from timing import header

import truecast as tc

Rounds = tuple[np.ndarray, np.ndarray]


def coin(rounds: int, seed: int = 0) -> tc.arena.Adversary:
    return tc.arena.Given(np.random.default_rng(rounds + seed).integers(0, 2, rounds, np.uint8))


OUTCOMES: dict[str, Callable[[int, int], tc.arena.Adversary]] = {
    "coin": coin,
    "periodic": lambda _rounds, _seed: tc.arena.Periodic((0, 1)),
    "threshold": lambda _rounds, _seed: tc.arena.Threshold(),
    "greedy": lambda _rounds, _seed: tc.arena.GreedyCertificate(),
    "all ones": lambda _rounds, _seed: tc.arena.Constant(1),
}


def play(forecaster: Any, kind: str, rounds: int, seed: int = 0) -> Rounds:
    game = tc.arena.play(forecaster, OUTCOMES[kind](rounds, seed), rounds)
    return game.y, game.p


def model(rate: Callable[[np.ndarray], Any], rounds: int, seed: int) -> Rounds:
    """Return outcomes of a rate that depends on forecasts, which are uniform."""
    rng = np.random.default_rng(rounds + seed)
    p = rng.random(rounds)
    return (rng.random(rounds) < rate(p)).astype(np.uint8), p


def constant(rounds: int, seed: int) -> Rounds:
    return np.random.default_rng(rounds + seed).integers(0, 2, rounds, np.uint8), np.full(
        rounds, 0.5
    )


def forecasters(at: Any, kind: str, rounds: int, seed: int) -> Rounds:
    return play(tc.AlmostOneStepAhead(horizon=rounds, at=at), kind, rounds, seed)


KINDS = ("coin", "periodic", "threshold", "greedy")
FAMILIES: dict[str, Callable[[int, int], Rounds]] = {
    "calibrated": partial(model, lambda p: p),
    "squared": partial(model, np.square),
    "inverted": partial(model, lambda p: 1 - p),
    "independent": partial(model, lambda _: 0.5),
    "constant": constant,
    **{f"aosa-{kind}": partial(forecasters, "lower", kind) for kind in KINDS},
    **{f"aosa-middle-{kind}": partial(forecasters, "middle", kind) for kind in KINDS},
}
DETERMINED = tuple(KINDS[1:])  # by the forecaster: another seed changes nothing
WHAT = """
| family | forecasts | outcomes |
|---|---|---|
| calibrated, squared, inverted, independent | uniform p | 1 with probability p, p^2, 1 - p, 1/2 |
| constant | 1/2 | fair coins |
| aosa-coin, aosa-periodic | `AlmostOneStepAhead(horizon=T)` | fair coins; 0, 1, 0, 1, ... |
| aosa-threshold | the same | see the forecast p: 1 if p <= 1/2 |
| aosa-greedy | the same | see the ladder: the outcome after which D + A, deviation plus biases, is larger |
| aosa-middle-... | `AlmostOneStepAhead(horizon=T, at="middle")` | the same |

Each case is run once, with one seed if the table names none. Seconds are of one call of `calibration_distance` from arrays, counting included, with the target as its `time_limit`.
Memory is the most that the process ever had, Python and numpy included, and what it had before the call. Distances are
in total, and so are the error by value (ECE) and the smooth calibration error (smCE) beside them; the Brier score is a
mean. A search that reached no target says what ended it.
"""


AT_ONCE = """
What `calibration_distance` knows before it searches, with a `time_limit` of 1e-9 s: an interval that theorem 12 of
[the distance](distance.md) bounds by 1.96 T^(1/3), with a witness. Beside it `lower_calibration_distance`, from the
same arrays in the same process: more is the difference.
"""
MORE = 5.0  # seconds that the interval may take beyond the lower distance
MODELS = ("calibrated", "squared", "inverted", "independent")


class Goal(NamedTuple):
    """How close the bounds must be, and when."""

    rtol: float
    seconds: float

    def __str__(self) -> str:
        return f"{f'to {self.rtol:g} relative' if self.rtol else 'exact'} in {self.seconds:g} s"


TARGETS = {  # for all, and for the forecasters
    1_000: (Goal(0, 0.3), Goal(0, 0.3)),
    10_000: (Goal(0, 10), Goal(0, 2)),
    100_000: (Goal(1e-4, 60), Goal(1e-6, 60)),
    1_000_000: (Goal(1e-3, 300), Goal(1e-3, 300)),
}


SEEDS = {10_000: 10, 100_000: 3}  # of calibrated forecasts, where times differ most
LONG = {10_000: 10, 100_000: 10, 1_000_000: 3}


def target(rounds: int) -> tuple[Goal, Goal]:
    """Return the targets of the next size that has some."""
    return TARGETS[min((size for size in TARGETS if size >= rounds), default=max(TARGETS))]


def goal(family: str, rounds: int) -> Goal:
    return target(rounds)[family.startswith("aosa")]


def peak() -> float:
    """Return the most memory that this process ever had, in megabytes."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def case(family: str, rounds: int, seed: int) -> dict[str, Any]:
    """Measure one case, in this process."""
    y, p = FAMILIES[family](rounds, seed)
    rtol, limit = goal(family, rounds)
    before = peak()
    processor = time.process_time()
    start = time.perf_counter()
    found = tc.calibration_distance(y, p, rtol=rtol, time_limit=limit, total=True)
    taken = time.perf_counter() - start
    processor = time.process_time() - processor
    most = peak()
    if tc.verify_witness(y, p, found.witness, total=True) > found.upper * (1 + 1e-12):
        raise RuntimeError(f"{family}, {rounds:,} rounds: the witness is not at the upper bound")
    return {
        "family": family,
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "ended": found.ended,
        "seconds": taken,
        "processor": processor,
        "before": before,
        "peak": most,
        "ece": tc.calibration_error_by_value(y, p, total=True),
        "smce": tc.smooth_calibration_error(y, p, total=True),
        "brier": tc.brier_score(y, p),
    }


@cache  # seed 0 of calibrated forecasts is in two tables
def in_a_process(family: str, rounds: int, seed: int) -> dict[str, Any]:
    command = [
        sys.executable,
        __file__,
        "--case",
        family,
        "--rounds",
        str(rounds),
        "--seeds",
        str(seed),
    ]
    row: dict[str, Any] = json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    )
    row["gap"] = (row["upper"] - row["lower"]) / row["upper"] if row["upper"] else 0.0
    rtol, limit = goal(family, rounds)
    row["met"] = row["seconds"] <= limit and (row["gap"] <= rtol if rtol else row["exact"])
    return row


def table(rounds: int, families: list[str], seeds: list[int]) -> None:
    rows = []
    for family in families:
        for seed in seeds[:1] if family.endswith(DETERMINED) else seeds:
            print(f"{family}, seed {seed}, {rounds:,} rounds", file=sys.stderr, flush=True)
            rows.append(dict(in_a_process(family, rounds, seed)))
            if len(seeds) > 1 and not family.endswith(DETERMINED):
                rows[-1]["family"] += f" (seed {seed})"
    both, theirs = target(rounds)
    missed = [row["family"] for row in rows if not row["met"]]
    print(f"\n## {rounds:,} rounds\n")
    print(f"Target: {both}" + (f"; AOSA {theirs}." if theirs != both else "."))
    besides = f"; not by {', '.join(missed)}" if missed else ""
    print(f"**Met by {len(rows) - len(missed)} of {len(rows)}**{besides}.")
    print(
        "\n| family | lower | upper | relative gap | seconds | target | peak MB | before | "
        "ECE | smCE | Brier |"
    )
    print("|---" * 11 + "|")
    for row in rows:
        gap = (
            "exact"
            if row["exact"]
            else f"{row['gap']:.1e}" + ("" if row["met"] else f", {row['ended']}")
        )
        bounds = f"{row['lower']:.6f} | {row['upper']:.6f} | {gap}"
        verdict = "met" if row["met"] else "**missed**"
        cost = f"{row['seconds']:.3f} | {verdict} | {row['peak']:.0f} | {row['before']:.0f}"
        beside = f"{row['ece']:.3f} | {row['smce']:.3f} | {row['brier']:.6f}"
        print(f"| {row['family']} | {bounds} | {cost} | {beside} |", flush=True)


def calibrated(rounds: int, seeds: list[int]) -> None:
    """Print how close the bounds of calibrated forecasts get, seed by seed: times differ much."""
    print(f"\n## {rounds:,} calibrated forecasts\n\nTarget: {goal('calibrated', rounds)}.\n")
    print("| seed | lower | upper | relative gap | ended by | seconds | of processor | peak MB |")
    print("|---" * 8 + "|")
    met = 0
    for seed in seeds:
        print(f"calibrated, seed {seed}, {rounds:,} rounds", file=sys.stderr, flush=True)
        row = in_a_process("calibrated", rounds, seed)
        met += row["met"]
        bounds = f"{row['lower']:.6f} | {row['upper']:.6f} | {row['gap']:.1e} | {row['ended']}"
        print(
            f"| {seed} | {bounds} | {row['seconds']:.1f} | {row['processor']:.1f} | "
            f"{row['peak']:.0f} |",
            flush=True,
        )
    print(f"\n**Met by {met} of {len(seeds)}**.", flush=True)


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def at_once(rounds: int, seeds: list[int]) -> None:
    """Print what the interval costs beyond the lower distance, for distinct forecasts."""
    rows, met = [], 0
    unit = rounds ** (1 / 3)
    for family in MODELS:
        for seed in seeds:
            print(f"{family}, seed {seed}, {rounds:,} rounds at once", file=sys.stderr, flush=True)
            y, p = FAMILIES[family](rounds, seed)
            alone, lower = clocked(partial(tc.lower_calibration_distance, y, p, total=True))
            both, found = clocked(
                partial(tc.calibration_distance, y, p, total=True, time_limit=1e-9)
            )
            width = found.upper - found.lower
            if found.upper > lower.upper + 1.96 * unit:
                raise RuntimeError(
                    f"{family}, seed {seed}: the interval is wider than the theorem says"
                )
            met += both - alone <= MORE
            bounds = f"{found.lower:.3f} | {found.upper:.3f} | {width:.3f} | {width / unit:.3f}"
            rows.append(
                f"| {family} (seed {seed}) | {bounds} | {alone:.2f} | {both:.2f} | "
                f"{both - alone:.2f} |"
            )
    print(f"\n## {rounds:,} rounds, without a search")
    print(AT_ONCE)
    print(f"Target: at most {MORE:g} s more. **Met by {met} of {len(rows)}**.")
    print(
        "\n| family | lower | upper | width | / T^(1/3) | lower distance, s | interval, s "
        "| more, s |"
    )
    print("|---" * 8 + "|")
    print("\n".join(rows), flush=True)


def sizes(text: str) -> list[int]:
    """Read numbers, such as 1000,10000."""
    return [int(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    chosen = text.split(",")
    unknown = sorted(set(chosen) - set(FAMILIES))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}"
        )
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=sizes, help="numbers of rounds: 1000,10000")
    parser.add_argument(
        "--at-once",
        type=sizes,
        help="numbers of rounds for the interval that needs no search: 1000000",
    )
    parser.add_argument(
        "--calibrated",
        type=sizes,
        help="numbers of rounds of calibrated forecasts, ten seeds unless given: 10000,100000",
    )
    parser.add_argument("--families", type=names, default=list(FAMILIES), help=", ".join(FAMILIES))
    parser.add_argument("--seeds", type=sizes, help="one or more, as times differ much: 0,1,2")
    parser.add_argument("--long", action="store_true", help="more seeds of calibrated forecasts")
    parser.add_argument("--case", choices=FAMILIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(case(options.case, options.rounds[0], options.seeds[0])))
        return
    header("Benchmarks: the distance to calibration", "distance.py", "numpy")
    print(WHAT.rstrip())
    everything = not (options.rounds or options.at_once or options.calibrated)
    for rounds in list(TARGETS) if everything else options.rounds or []:
        table(rounds, options.families, options.seeds or [0])
    seeds = LONG if options.long else SEEDS
    for rounds in list(seeds) if everything else options.calibrated or []:
        count = seeds[rounds] if everything else 10
        calibrated(rounds, options.seeds or list(range(count)))
    for rounds in [1_000_000] if everything else options.at_once or []:
        at_once(rounds, options.seeds or list(range(1 if everything else 3)))


if __name__ == "__main__":
    main()
