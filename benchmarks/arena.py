"""All forecasters of the arena against all adversaries: the page docs/benchmarks-opponents.md and its pictures.

    python benchmarks/pages.py arena  # into the docs; some minutes
    python benchmarks/arena.py --curves docs/arena.json  # to look at
    python docs/make_pictures.py arena game

Continues where it was stopped if given `--resume FILE`. Needs the package installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from distance import sizes
from timing import header, picture

import truecast as tc
from truecast.arena.rows import Row

SOURCES = {
    "aosa": "Arunachaleswaran, Collina, Roth and Shi 2024; sharper constants [ours](theory.md)",
    "aosa-middle": "the same, in the middle of the cell; [ours](theory.md)",
    "bent-grid": "[ours](theory.md)",
    "horizon-free": "[ours](adaptive.md)",
    "arc": "Vovk 2005 (K29*), with [our kernel](arc.md)",
    "foster-vohra": "Foster and Vohra 1998",
    "foster": "Foster 1999",
    "gupta-ramdas": "Gupta and Ramdas 2022; scored by the end "
    "of its interval that the outcome chooses",
    "kakade-foster": "Kakade and Foster 2004; Foster and Hart 2018",
    "defensive": "Vovk, Takemura and Shafer 2005 (K29), Laplace kernel",
    "exponential-average": "everybody; bound [ours](theory.md)",
    "calibeating": "Foster and Hart 2023, over the running mean",
    "online-platt": "Platt 1999, online, over the running mean",
    "running-mean": "Krichevsky and Trofimov 1981",
    "climatology": "says 1/2",
}
WHAT = """
Here every forecaster plays against the same opponents, through one interface. The measure is always
CalDist, the distance to calibration, in total ([how it is computed](distance.md)).

```python
import truecast as tc

game = tc.arena.play(tc.AlmostOneStepAhead(horizon=1_000), tc.arena.EarlyStop(), rounds=1_000)
game.p, game.y, game.distance().totals, game.measure()  # and game.draw()
results = tc.arena.tournament(horizons=[100], seeds=2)  # all against all: print it, draw it
```

`truecast arena --rounds 100,1000,10000` plays the tournament of this page and prints its tables; `--resume FILE`
continues after Ctrl-C.

Other pages: [exact worst cases of short games, and bad outcomes of long ones](#worst-cases); [the minimax game,
solved](minimax.md); [the arc](arc.md), the theory of `Arc`.
"""
READING = """
How to read the tables:

- CalDist of a game is about that game alone. Proved bounds hold for all games; the table of promises
  has the bounds, and how close the games came. A bound on one measure says little about another. Randomised forecasters
  keep the error by value small against opponents who do not see the draw. Deterministic ones with a
  bound keep the distance, the lower distance or the smooth error small against every opponent.
- *gupta-ramdas* differs from the other forecasters: it names two neighbouring points, and the outcome
  chooses the one that is scored.
- A randomised forecaster has a new seed in each game. Adversaries that see the forecast see the draw; no promise
  holds against them.
- *greedy-bias*, if it sees the forecast, chooses what *threshold* chooses: the first outcome at a value is the
  farther one, and repeating it is always worse. Against deterministic forecasters, the four adversaries of these two kinds
  play the same game.
- The Brier score is a mean over games of very different kinds. It only shows that nobody bought calibration
  with nonsense.
- *arc* needs no horizon. Its worst game is the smallest at T = 10,000, just ahead of *exponential-average* and
  *defensive*, which are built for that horizon; at T = 100 and 1,000 *exponential-average* is ahead. A search for
  outcomes that hurt *arc* [finds worse games](#worst-cases), but still better than the worst found for *bent-grid*
  and *horizon-free*. *arc* has no ladder, so two adversaries cannot play it.
- *running-mean*, *online-platt* and *calibeating* do well while the rate is constant, worse when it drifts, and
  have no bound on the distance: early stopping shows why.
"""


def forecasters(results: Any) -> None:
    """Who plays, what is promised, and the worst that was measured of it."""
    longest = results.horizons[-1]
    kept: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in results.rows:
        if row.rounds == longest and row.bound is not None:
            kept[row.forecaster][row.adversary].append(row)
    print(f"\n## Forecasters and their promises, T = {longest:,}\n")
    print(
        "| name | built by | from | bound on | is | worst game, or mean if randomised |\n"
        "|---|---|---|---|---|---|"
    )
    for name in results.forecasters:
        built = tc.arena.FORECASTERS[name](longest, 0)
        promise = "| | "
        if name in kept:
            one = next(iter(kept[name].values()))[0]
            most = max(of_measure(rows, hasattr(built, "seed")) for rows in kept[name].values())
            promise = (
                f"{one.bounds} | {one.bound:.1f} | "
                f"{'at most ' * (one.bounds == 'lower distance')}{most:.1f}"
            )
            if most > one.bound * (1 + 1e-9):
                raise RuntimeError(
                    f"{name} breaks its promise: {most} of {one.bounds} above {one.bound}"
                )
        print(f"| {name} | `{built!r}` | {SOURCES[name]} | {promise} |")


def of_measure(rows: list[Row], draws: bool) -> float:
    """The largest of what the bound is about; the mean, if the forecaster draws."""
    fields = {
        "by value": "by_value",
        "smooth": "smooth",
        "distance": "lower",
        "lower distance": "upper",
    }
    figures = [getattr(row, fields[row.bounds or "distance"]) for row in rows]
    return fmean(figures) if draws else max(figures)


def adversaries() -> None:
    print(
        "\n## Adversaries\n\n| name | built by | sees of the current forecast | what it "
        "does |\n|---|---|---|---|"
    )
    for name, adversary in tc.arena.ADVERSARIES.items():
        what = (type(adversary).__doc__ or "").splitlines()[0]
        print(f"| {name} | `{adversary!r}` | {adversary.sees} | {what} |")


def progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} games", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=sizes, default=[100, 1_000, 10_000], help="such as 100,1000"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--curves", type=Path, help="where to keep what the picture shows, such as docs/arena.json"
    )
    parser.add_argument("--resume", type=Path, help="file to keep finished games in")
    options = parser.parse_args()
    header("The arena", "arena.py", "numpy")
    print(WHAT.rstrip())
    file = options.resume or Path(tempfile.mkdtemp()) / "games.jsonl"
    results = tc.arena.tournament(
        horizons=options.rounds, seeds=options.seeds, path=file, progress=progress
    )
    forecasters(results)
    adversaries()
    print("\n## Distances\n")
    print(results.markdown())
    if options.curves:
        options.curves.write_text(json.dumps(asdict(results.curves())) + "\n")
        picture("arena", "CalDist against T: an overview, and a panel for each forecaster")
    print(READING.rstrip())
    for rounds in options.rounds:
        print(f"\n### T = {rounds:,}: means over {options.seeds} seeds\n")
        print(results.against(rounds).markdown())
    print(
        "\n## One game\n\n`BentGrid(horizon=1000)` against `SignPreservation()`, as "
        "`game.draw()` draws it."
    )
    picture("game", "Forecasts above, distance and bounds below")


if __name__ == "__main__":
    main()
