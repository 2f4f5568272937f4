"""What the measures cost, as ratios taken in one run against peers and against sorting.

    python benchmarks/pages.py measure  # into the docs; four minutes; --quick for a tenth
    python benchmarks/measure.py  # to look at

Needs the package with its test extra, which has the peers.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import calibration
import numpy as np
import probcal.curves
import probcal.metrics
import relplot
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss
from timing import header, seconds

import truecast as tc

PEERS = ("numpy", "scikit-learn", "relplot", "probcal", "uncertainty-calibration")


def uniform(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    return (rng.random(n) < p**1.2).astype(float), p


def tied(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    p = rng.integers(0, 101, n) / 100
    return (rng.random(n) < p**1.2).astype(float), p


def row(work: str, ours: float, other: str, theirs: float) -> None:
    print(f"| {work} | {ours:.3f} | {other} | {theirs:.3f} | **{ours / theirs:.2f}** |", flush=True)


def against_peers(n: int, data: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    y, p = data(n)
    print(
        f"\n## {n:,} rounds, {'p uniform' if data is uniform else 'p on the grid k/100'}, y "
        "~ Bern(p^1.2)\n"
    )
    print(
        "All from arrays, counting included; seconds, and ours divided by theirs. The least of five or seven runs; what takes"
    )
    print(
        "peers seconds (relplot.smECE, isotonic regression, probcal.corp_reliability) is run once.\n"
    )
    print("| work | truecast | against | seconds | ratio |\n|---|---|---|---|---|")
    sort = seconds(lambda: np.sort(p), 7)
    relplot_smooth = seconds(lambda: relplot.smECE(p, y), 1)
    row("tally", seconds(lambda: tc.Tally.from_predictions(y, p), 7), "np.sort(p)", sort)
    row(
        "Laplace kernel, all pairs",
        seconds(lambda: tc.laplace_calibration_error(y, p), 5),
        "np.sort(p)",
        sort,
    )
    row("energy on the arc, all pairs", seconds(lambda: tc.arc_energy(y, p), 5), "np.sort(p)", sort)
    row(
        "smCE, exact",
        seconds(lambda: tc.smooth_calibration_error(y, p)),
        "relplot.smECE",
        relplot_smooth,
    )
    smooth = seconds(lambda: tc.smooth_ece(y, p))
    row("SmoothECE", smooth, "relplot.smECE", relplot_smooth)
    row(
        "SmoothECE", smooth, "probcal.smooth_ece", seconds(lambda: probcal.metrics.smooth_ece(y, p))
    )
    binned = seconds(lambda: tc.binned_calibration_error(y, p), 5)
    row(
        "binned error, uniform",
        binned,
        "relplot.binnedECE",
        seconds(lambda: relplot.metrics.binnedECE(p, y), 5),
    )
    ece = partial(probcal.metrics.ece, y, p)
    row("binned error, uniform", binned, "probcal.ece", seconds(lambda: ece(strategy="width")))
    row(
        "binned error, uniform",
        binned,
        "sklearn.calibration_curve",
        seconds(lambda: calibration_curve(y, p, n_bins=15)),
    )
    quantile = seconds(lambda: tc.binned_calibration_error(y, p, strategy="quantile"))
    row("binned error, quantile", quantile, "probcal.ece", seconds(lambda: ece(strategy="mass")))
    corp = seconds(lambda: tc.reliability_curve(y, p))
    isotonic = seconds(lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p), 1)
    row(
        "CORP curve and both decompositions",
        corp,
        "sklearn.IsotonicRegression, the curve alone",
        isotonic,
    )
    theirs = seconds(lambda: probcal.curves.corp_reliability(y, p, bands=None), 1)
    row("CORP curve and both decompositions", corp, "probcal.corp_reliability", theirs)


def weighted(sizes: list[int]) -> None:
    print(
        "\n## Weights: the tally of weighted rounds to that of unweighted ones, and the "
        "Brier score\n"
    )
    print(
        "Seconds, and ours with weights divided by ours without, and by scikit-learn's "
        "`brier_score_loss` with them. The least of five runs.\n"
    )
    print(
        "| rounds | p | without | real weights | integers | Brier score | to scikit-learn |\n"
        + "|---" * 7
        + "|"
    )
    for n, data in ((n, data) for n in sizes for data in (uniform, tied)):
        rng = np.random.default_rng(n)
        rounds, real, whole = data(n), rng.random(n) + 0.1, rng.integers(1, 5, n)
        tally = partial(tc.Tally.from_predictions, *rounds)
        plain = seconds(tally)
        tallies = [seconds(partial(tally, sample_weight=weights)) for weights in (real, whole)]
        ours = seconds(partial(tc.brier_score, *rounds, sample_weight=real))
        theirs = seconds(partial(brier_score_loss, *rounds, sample_weight=real))
        ratios = " | ".join(f"{taken:.4f} (**{taken / plain:.2f}**)" for taken in tallies)
        kind = "uniform" if data is uniform else "k/100"
        print(
            f"| {n:,} | {kind} | {plain:.4f} | {ratios} | {ours:.4f} | **{ours / theirs:.2f}** |",
            flush=True,
        )


def to_sorting(sizes: list[int]) -> None:
    print(
        "\n## The tally, and the Laplace kernel from arrays, to `np.sort` of the same forecasts\n"
    )
    print(
        "Which instructions `np.sort` uses depends on the processor: on some, AVX-512 is slower than "
        "AVX2. `NPY_DISABLE_CPU_FEATURES=X86_V4` makes it use the latter. The least of nine runs.\n"
    )
    print("| rounds | np.sort | tally | real weights | integers | Laplace |\n" + "|---" * 6 + "|")
    for n in sizes:
        rng, (y, p) = np.random.default_rng(n), uniform(n)
        tally = partial(tc.Tally.from_predictions, y, p)
        work = [
            tally,
            partial(tally, sample_weight=rng.random(n) + 0.1),
            partial(tally, sample_weight=rng.integers(1, 5, n)),
            partial(tc.laplace_calibration_error, y, p),
        ]
        sort = seconds(partial(np.sort, p), 9)
        ratios = " | ".join(f"**{seconds(each, 9) / sort:.2f}**" for each in work)
        print(f"| {n:,} | {sort:.4f} | {ratios} |", flush=True)


def memory(n: int) -> None:
    """What `measure` adds to the memory of the process, by Linux's own count of its peak."""
    y, p = uniform(n)
    tc.measure(y[:5000], p[:5000])
    status = Path("/proc/self/status")
    if not status.exists():
        return

    def kilobytes(name: str) -> int:
        return next(int(line.split()[1]) for line in status.open() if line.startswith(name))

    before = kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    tc.measure(y, p)
    added = (kilobytes("VmHWM") - before) * 1024 / n
    print(
        f"\n`measure()` of {n:,} distinct forecasts takes **{added:.0f}** bytes each.", flush=True
    )


def slow_peers() -> None:
    n = 20_000
    y, p = uniform(n)
    print(f"\n## {n:,} rounds: peers that cannot be asked for more\n")
    print("| work | truecast | against | seconds | ratio |\n|---|---|---|---|---|")
    few_y, few_p = uniform(5_000)
    kernel = partial(probcal.metrics.skce, few_y, few_p, bandwidth=1.0)
    ours = seconds(lambda: tc.laplace_calibration_error(few_y, few_p, squared=True, unbiased=True))
    row("Laplace kernel, 5,000 rounds", ours, "probcal.skce", seconds(kernel, 1))
    bits = y.astype(int)
    ours = seconds(lambda: tc.binned_calibration_error(y, p))
    row(
        "binned error",
        ours,
        "calibration.get_ece",
        seconds(lambda: calibration.get_ece(p, bits), 1),
    )


def patterns(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    p = np.sort(rng.random(n))
    place = np.arange(n)
    ends = np.sort(np.where(place % 2, 1e-3 * p, 1 - 1e-3 * p))
    return {
        "random, y ~ Bern(p^1.2)": (rng.random(n) < p**1.2, p),
        "calibrated": (rng.random(n) < p, p),
        "inverted": (rng.random(n) < 1 - p, p),
        "independent": (rng.random(n) < 0.5, p),
        "all ones": (np.ones(n), p),
        "alternating": (place % 2, p),
        "blocks of sqrt(n)": (place // int(n**0.5) % 2, p),
        "blocks of n/32": (place // (n // 32) % 2, p),
        "growing blocks": (np.floor(np.sqrt(place)) % 2, p),
        "at both ends": (rng.random(n) < 0.5, ends),
    }


def worst_cases(n: int) -> None:
    print(f"\n## Exact smCE on {n:,} sorted rounds of many patterns\n\nThe least of two runs.\n")
    print("| pattern | seconds | to random |\n|---|---|---|")
    first = None
    for name, (y, p) in patterns(n).items():
        tally = tc.Tally.from_predictions(y, p)
        taken = seconds(lambda tally=tally: tc.smooth_calibration_error(tally), 2)
        first = first or taken
        print(f"| {name} | {taken:.3f} | **{taken / first:.2f}** |", flush=True)


def growth(sizes: list[int]) -> None:
    print(
        "\n## Growth: nanoseconds by n log2(n), from arrays, p uniform\n\nThe least of three runs.\n"
    )
    measures = [
        tc.Tally.from_predictions,
        tc.smooth_calibration_error,
        tc.laplace_calibration_error,
        tc.smooth_ece,
    ]
    measures += [
        tc.arc_energy,
        tc.reliability_curve,
        tc.calibration_decision_loss,
        tc.u_calibration_error,
        tc.binned_calibration_error,
    ]
    print(
        "| n | "
        + " | ".join(f.__name__ for f in measures)
        + " |\n"
        + "|---" * (len(measures) + 1)
        + "|"
    )
    for n in sizes:
        y, p = uniform(n)
        times = [seconds(partial(f, y, p), 3) / (n * np.log2(n)) * 1e9 for f in measures]
        print(f"| {n:,} | " + " | ".join(f"{x:.2f}" for x in times) + " |", flush=True)


def calibrated(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    return (rng.random(n) < p).astype(float), p


def all_together(n: int, data: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    tally = tc.Tally.from_predictions(*data(n))
    single = {
        f.__name__: seconds(lambda f=f: f(tally), 2)
        for f in (
            tc.smooth_calibration_error,
            tc.lower_calibration_distance,
            tc.calibration_decision_loss,
            tc.u_calibration_error,
            tc.reliability_curve,
            tc.log_loss,
            tc.laplace_calibration_error,
            tc.arc_energy,
            tc.smooth_ece,
            tc.reliability_bins,
        )
    }
    slowest = max(single, key=single.__getitem__)
    print(f"\n## All measures of {n:,} distinct forecasts, {data.__name__}, once counted\n")
    print("The least of two runs.\n\n| measure | seconds |\n|---|---|")
    for name, taken in sorted(single.items(), key=lambda item: -item[1]):
        print(f"| {name} | {taken:.3f} |")
    together = seconds(lambda: tc.measure(tally), 2)
    print(f"\n`measure()`: {together:.3f} s, **{together / single[slowest]:.2f}** times {slowest}")


def resampling(n: int) -> None:
    tally = tc.Tally.from_predictions(*uniform(n))
    print(f"\n## 1,000 resamples of {n:,} rounds\n")
    print("Asked of 2,000 draws for the smooth calibration error: at most 0.7 s. One run.\n")
    print("| work | seconds |\n|---|---|")
    for kind in ("consistency", "confidence"):
        print(
            f"| reliability_band, {kind} | "
            f"{seconds(lambda kind=kind: tc.reliability_band(tally, kind=kind), 1):.2f} |"
        )
    for f in (tc.smooth_calibration_error, tc.brier_score, tc.binned_calibration_error):
        taken = seconds(lambda f=f: tc.uncertainty(f, tally), 1)
        print(f"| uncertainty of {f.__name__} (2,000 draws) | {taken:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    scale = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore")  # the peers'
    header("Benchmarks: measures", "measure.py", *PEERS)
    against_peers(10**7 // scale, uniform)
    against_peers(10**7 // scale, tied)
    weighted([10**k for k in ((5, 6, 7) if scale == 1 else (5, 6))])
    to_sorting([10**k for k in ((5, 6, 7) if scale == 1 else (5, 6))])
    memory(10**7)
    slow_peers()
    worst_cases(10**7 // scale)
    growth([10**k for k in (4, 5, 6, 7)] if scale == 1 else [10**4, 10**5, 10**6])
    all_together(10**7 // scale, uniform)
    all_together(10**6, calibrated)
    resampling(10**6)


if __name__ == "__main__":
    main()
