"""What docs/comparison.md says of other packages, checked by running them.

    python benchmarks/comparison.py     # some seconds; prints the last table of docs/comparison.md

Needs scikit-learn, river, relplot, probcal, uncertainty-calibration, mapie, venn-abers, betacal,
pycalib and streamcal, which needs Python 3.12. A package that is not installed is said to be so; a
claim that does not hold ends the script.
"""

from __future__ import annotations

import importlib
import inspect
import io
import pkgutil
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
P = RNG.random(2_000)
Y = (RNG.random(2_000) < P**1.3).astype(int)
# three classes, like the flowers
IRIS = RNG.normal(size=(150, 4)) + np.repeat(np.arange(3), 50)[:, None]
KIND = np.repeat(np.arange(3), 50)

CLAIMS: list[tuple[str, str, Callable[[], bool]]] = []


def claim(package: str, said: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Register a check of what is said of a package."""

    def register(check: Callable[[], bool]) -> Callable[[], bool]:
        CLAIMS.append((package, said, check))
        return check

    return register


def load(module: str) -> Any:
    """Import a peer, quietly."""
    return importlib.import_module(module)


def names_of(module: str) -> list[str]:
    """What a peer has; nothing if it is not installed."""
    try:
        return dir(load(module))
    except ModuleNotFoundError:
        return []


def options(function: Any) -> set[str]:
    """The names of a function's parameters."""
    return {*inspect.signature(function).parameters}


@claim("scikit-learn", "recalibrates many classes, by sigmoid, isotonic regression or temperature")
def _() -> bool:
    model = load("sklearn.linear_model").LogisticRegression(max_iter=1_000)
    wrapped = load("sklearn.calibration").CalibratedClassifierCV
    methods = ("sigmoid", "isotonic", "temperature")
    shapes = {
        wrapped(model, method=m, cv=3).fit(IRIS, KIND).predict_proba(IRIS).shape for m in methods
    }
    return shapes == {(150, 3)}


@claim("scikit-learn", "its wrapper cannot learn on: no partial_fit")
def _() -> bool:
    return not hasattr(load("sklearn.calibration").CalibratedClassifierCV, "partial_fit")


@claim(
    "scikit-learn",
    "no calibration error among its metrics; the curve gives neither counts nor a band, "
    "and takes no weights",
)
def _() -> bool:
    calibration = load("sklearn.calibration")
    names = [name for name in dir(load("sklearn.metrics")) if "calibration" in name]
    curve = calibration.calibration_curve
    return not names and len(curve(Y, P)) == 2 and "sample_weight" not in options(curve)


@claim("river", "no recalibration: no module of that name, no class with Calibrat in its name")
def _() -> bool:
    river = load("river")
    modules = [
        module.name
        for module in pkgutil.iter_modules(river.__path__)
        if not module.name.startswith("_")
    ]
    names = {name for module in modules for name in dir(load(f"river.{module}"))}
    return "calibration" not in modules and not [
        name for name in names if "calibrat" in name.lower()
    ]


@claim("relplot", "SmoothECE, and a kernel-smoothed diagram with a bootstrapped band")
def _() -> bool:
    relplot = load("relplot")
    diagram = relplot.prepare_rel_diagram(P[:500], Y[:500])
    return 0 < relplot.smECE(P[:500], Y[:500]) < 1 and {"mu", "lower", "upper"} <= {*diagram}


@claim("probcal", "more than ten ways to recalibrate a batch, saved as JSON; for two classes")
def _() -> bool:
    probcal = load("probcal")
    found = [n for n in dir(probcal) if n.endswith("Calibrator") and n != "BaseCalibrator"]
    beta = probcal.BetaCalibrator().fit(P, Y)
    return (
        len(found) > 10
        and "{" in beta.to_json()
        and not [n for n in dir(probcal) if "multiclass" in n.lower()]
    )


@claim(
    "probcal",
    "tests of calibration, CORP with bands and decompositions, and a monitor with an alarm "
    "that is valid at any time",
)
def _() -> bool:
    metrics, monitor = load("probcal.metrics"), load("probcal.monitor")
    corp = load("probcal").corp_reliability(Y, P, n_resamples=20)
    tests = {"spiegelhalter_z", "hosmer_lemeshow", "calibration_test"} & {*dir(metrics)}
    return bool(corp) and len(tests) >= 2 and hasattr(monitor, "CalibrationMonitor")


@claim("probcal", "its kernel error takes memory that grows with the square of the rounds")
def _() -> bool:
    skce = load("probcal.metrics").skce
    small, large = (_peak(lambda n=n: skce(Y[:n], P[:n])) for n in (500, 2_000))
    return large > 10 * small


@claim(
    "uncertainty-calibration",
    "a debiased binned error by default, with an interval by resampling, for many classes too",
)
def _() -> bool:
    calibration = load("calibration")
    low, _, high = calibration.get_calibration_error_uncertainties(P, Y)
    many = calibration.get_calibration_error(RNG.dirichlet(np.ones(3), 150), KIND)
    return (
        low < high
        and many > 0
        and inspect.signature(calibration.get_calibration_error).parameters["debias"].default
    )


@claim(
    "mapie",
    "sets of classes and intervals of numbers, with a coverage asked for; Venn-Abers; "
    "tests of exchangeability",
)
def _() -> bool:
    model = (
        load("sklearn.linear_model").LogisticRegression(max_iter=1_000).fit(IRIS[::2], KIND[::2])
    )
    conformal = load("mapie.classification").SplitConformalClassifier(
        model, confidence_level=0.9, prefit=True
    )
    _, sets = conformal.conformalize(IRIS[1::2], KIND[1::2]).predict_set(IRIS)
    return (
        sets.shape[:2] == (150, 3)
        and hasattr(load("mapie.regression"), "SplitConformalRegressor")
        and hasattr(load("mapie.calibration"), "VennAbersCalibrator")
        and hasattr(load("mapie.exchangeability_testing"), "OnlineMartingaleTest")
    )


@claim(
    "venn-abers",
    "two probabilities for each case, one of them calibrated if the data are exchangeable; "
    "many classes; regression",
)
def _() -> bool:
    module = load("venn_abers")
    scores = np.stack([1 - P, P], axis=1)
    model = module.VennAbers()
    model.fit(scores[:1_000], Y[:1_000])
    _, pair = model.predict_proba(scores[1_000:])
    return bool((pair[:, 0] <= pair[:, 1]).all()) and {
        "VennAbersMultiClass",
        "VennAbersRegressor",
    } <= {*dir(module)}


@claim("betacal", "beta calibration with two or three parameters, fitted to a batch")
def _() -> bool:
    beta = load("betacal").BetaCalibration
    fitted = [beta(parameters=kind).fit(P[:, None], Y) for kind in ("abm", "am", "ab")]
    return all(((q >= 0) & (q <= 1)).all() for q in (model.predict(P[:, None]) for model in fitted))


@claim("pycalib", "errors and diagrams of many classes: by confidence, class by class, all at once")
def _() -> bool:
    metrics = load("pycalib.metrics")
    probabilities = RNG.dirichlet(np.ones(3), 150)
    errors = [
        getattr(metrics, name)(KIND, probabilities)
        for name in ("conf_ECE", "classwise_ECE", "full_ECE")
    ]
    return all(error > 0 for error in errors) and "plot_reliability_diagram" in dir(
        load("pycalib.visualisations")
    )


@claim(
    "streamcal",
    "isotonic regression over fixed bins, learned from a stream and forgetting; no bound, "
    "no group, no ticket",
)
def _() -> bool:
    calibrator = load("streamcal").StreamingIsotonicCalibrator(n_bins=20, decay=0.9)
    calibrator.update(P[:1_000], Y[:1_000])
    said = calibrator.calibrate(P[1_000:])
    members = {name for name in dir(calibrator) if not name.startswith("_")}
    return bool((np.diff(said[np.argsort(P[1_000:])]) >= -1e-12).all()) and not members & {
        "certificate",
        "groups",
        "issue",
    }


@claim(
    "truecast",
    "in none of them: a distance to calibration, a smooth calibration error by Lipschitz "
    "functions, a certificate",
)
def _() -> bool:
    modules = (
        "sklearn.metrics sklearn.calibration relplot.metrics probcal.metrics calibration "
        "mapie.metrics.calibration"
    )
    names = {
        name.lower()
        for module in (
            f"{modules} pycalib.metrics river.metrics streamcal venn_abers betacal"
        ).split()
        for name in names_of(module)
    }
    sought = (
        "caldist",
        "calibration_distance",
        "distance_to_calibration",
        "smooth_calibration",
        "smce",
        "lipschitz",
        "certif",
    )
    return not [name for name in names if any(word in name for word in sought)]


def _peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def checked() -> list[str]:
    """The table, a line each; an error if a claim does not hold."""
    lines = ["| package | version | checked |", "|---|---|---|"]
    for package, said, check in CLAIMS:
        try:
            number = version(package)
        except PackageNotFoundError:
            lines.append(f"| {package} | not installed | {said} |")
            continue
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            holds = check()
        if not holds:
            sys.exit(f"{package} {number}: it is not so that: {said}")
        lines.append(f"| {package} | {number} | {said} |")
    return lines


if __name__ == "__main__":
    print("\n".join(checked()))
