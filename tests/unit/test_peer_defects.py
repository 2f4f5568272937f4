"""What other packages for calibration get wrong, one by one: ours does not."""

import dataclasses
import json
import subprocess
import sys
import tracemalloc
from functools import partial
from inspect import isfunction, signature

import numpy as np
import pytest

import truecast as tc
from truecast.measures import __all__ as measure_names

RESAMPLES = 20  # of the two measures that are random
uncertainty = partial(tc.uncertainty, tc.smooth_calibration_error, resamples=RESAMPLES)
decisive = partial(
    tc.uncertainty, lambda t: tc.calibration_decision_loss(t.coarsened(99)), resamples=RESAMPLES
)


def is_plain(measure):
    """Whether it is a function of outcomes and forecasts that draws nothing at random."""
    options = signature(measure).parameters if isfunction(measure) else ()
    plain = "y_prob" in options and "random_state" not in options
    return plain and ".class" not in measure.__module__


# Every public measure, in every way that changes how it is computed. Those of the second group need
# counts.
PUBLIC = {name: getattr(tc.measures, name) for name in tc.measures.__all__}
FOR_ALL_WEIGHTS = {
    **{name: measure for name, measure in PUBLIC.items() if is_plain(measure)},
    "binned total": partial(tc.binned_calibration_error, total=True),
    "binned l2": partial(tc.binned_calibration_error, norm="l2"),
    "binned max": partial(tc.binned_calibration_error, norm="max"),
    "binned quantile": partial(tc.binned_calibration_error, strategy="quantile"),
    "bins quantile": partial(tc.reliability_bins, strategy="quantile", n_bins=7),
    "brier total": partial(tc.brier_score, total=True),
    "arc total": partial(tc.arc_energy, total=True),
    "laplace squared": partial(tc.laplace_calibration_error, scale=0.1, squared=True),
    "smooth total": partial(tc.smooth_calibration_error, total=True),
    "smooth ece bandwidth": partial(tc.smooth_ece, bandwidth=0.05),
}
FOR_COUNTS = {
    "debiased": partial(tc.binned_calibration_error, debias=True),
    "debiased l2": partial(tc.binned_calibration_error, debias=True, norm="l2"),
    "laplace unbiased": partial(tc.laplace_calibration_error, squared=True, unbiased=True),
    "band": partial(tc.reliability_band, resamples=RESAMPLES),
    "band confidence": partial(tc.reliability_band, resamples=RESAMPLES, kind="confidence"),
    "uncertainty": uncertainty,
    "uncertainty decision": decisive,
}
ALL = FOR_ALL_WEIGHTS | FOR_COUNTS
every_measure = pytest.mark.parametrize("measure", ALL.values(), ids=ALL.keys())


def figures(result):
    """Return everything in a result as one tuple of bytes and numbers, to compare bit for bit."""
    if dataclasses.is_dataclass(result):
        return tuple(figures(getattr(result, field.name)) for field in dataclasses.fields(result))
    if isinstance(result, tuple):
        return tuple(map(figures, result))
    if isinstance(result, np.ndarray):
        return (str(result.dtype), result.shape, result.tobytes())
    return result.hex() if isinstance(result, float) else result


def numbers(result):
    """Return every number in a result as one flat array."""
    if dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    if isinstance(result, tuple | list):
        return np.concatenate([numbers(part) for part in result])
    return np.empty(0) if isinstance(result, str) else np.atleast_1d(np.asarray(result, float))


def rounds(n, seed, places=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if places is None else rng.integers(0, places + 1, n) / places
    return (rng.random(n) < 0.2 + 0.5 * p).astype(np.int64), p


def test_no_public_measure_is_missing_here():
    tested = {getattr(measure, "func", measure) for measure in ALL.values()}
    tested.add(tc.stretches)  # which says where, not how much: tests/unit/test_finder.py
    several = {
        measure for measure in PUBLIC.values() if ".class" in getattr(measure, "__module__", "")
    }  # of several classes: tests/unit/test_classes.py
    public = {getattr(tc, name) for name in measure_names if name[0].islower()}
    assert tested == public - several


# p = 1.0 falls out of the last bin, or into one more


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_certainty_is_in_the_last_bin_for_any_number_of_bins(strategy):
    p = np.array([0.0, 0.2, 0.3, 0.6, 0.7, 1.0, 1.0])
    y = np.array([0, 0, 1, 0, 1, 1, 0])
    for n_bins in range(1, 201):
        for arguments in ((y, p), (tc.Tally.from_predictions(y, p),)):
            bins = tc.reliability_bins(*arguments, n_bins=n_bins, strategy=strategy)
            assert bins.counts.sum() == 7
            assert bins.ones[-1] >= 1
            assert bins.counts[-1] >= 2
            assert len(bins.edges) == len(bins) + 1
            assert (bins.edges[0], bins.edges[-1]) == (0.0, 1.0)
            if strategy == "uniform":
                assert len(bins) == n_bins


def test_certainty_alone_is_in_the_last_bin():
    for n_bins in range(1, 201):
        bins = tc.reliability_bins([1, 0, 1], [1.0, 1.0, 1.0], n_bins=n_bins)
        assert bins.counts.tolist() == [0] * (n_bins - 1) + [3]
        assert bins.error() == pytest.approx(1 / 3, abs=1e-15)


def test_every_edge_is_in_the_bin_above_it_for_any_number_of_bins():
    for n_bins in range(2, 201):
        edges = np.array([k / n_bins for k in range(n_bins)])
        for values in (edges, np.nextafter(edges[1:], 0)):
            y = np.zeros(len(values), int)
            bins = tc.reliability_bins(y, values, n_bins=n_bins)
            assert bins.counts.tolist() == [1] * len(values) + [0] * (n_bins - len(values))
            assert figures(
                tc.reliability_bins(tc.Tally.from_predictions(y, values), n_bins=n_bins)
            ) == figures(bins)


# Tied forecasts give another answer for another order of rows

ORDERS = {
    "reversed": lambda n: np.arange(n)[::-1],
    "shuffled": lambda n: np.random.default_rng(1).permutation(n),
    "shuffled again": lambda n: np.random.default_rng(2).permutation(n),
}
INPUTS = {
    "ties": rounds(400, 3, places=20),
    "ties at certainty": rounds(300, 4, places=1),
    "no ties": rounds(150, 5),
    "one forecast": (rounds(50, 6)[0], np.full(50, 0.3)),
}


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS.keys())
@every_measure
def test_the_order_of_rows_changes_no_bit(measure, data):
    y, p = data
    expected = figures(measure(y, p))
    outcomes_within_ties = np.lexsort((y, p)), np.lexsort((1 - y, p))
    for order in (*(make(len(y)) for make in ORDERS.values()), *outcomes_within_ties):
        assert figures(measure(y[order], p[order])) == expected


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS.keys())
@every_measure
def test_the_order_of_rows_changes_no_bit_with_counts_for_weights(measure, data):
    y, p = data
    weights = np.random.default_rng(7).integers(0, 9, len(y))
    expected = figures(measure(y, p, sample_weight=weights))
    for make in ORDERS.values():
        order = make(len(y))
        assert figures(measure(y[order], p[order], sample_weight=weights[order])) == expected
    repeated = np.repeat(y, weights), np.repeat(p, weights)
    assert figures(measure(*repeated)) == expected


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("measure", FOR_ALL_WEIGHTS.values(), ids=FOR_ALL_WEIGHTS.keys())
def test_the_order_of_rows_changes_no_bit_with_real_weights(measure, data):
    y, p = data
    weights = np.random.default_rng(8).lognormal(0, 3, len(y))
    weights[::10] = 0
    expected = figures(measure(y, p, sample_weight=weights))
    for make in ORDERS.values():
        order = make(len(y))
        assert figures(measure(y[order], p[order], sample_weight=weights[order])) == expected


FAST = {
    name: measure
    for name, measure in ALL.items()
    if name not in ("lower distance", "report", "band confidence")
}


@pytest.mark.parametrize("measure", FAST.values(), ids=FAST.keys())
def test_the_order_of_many_rows_changes_no_bit(measure):
    y, p = rounds(9000, 9)  # more distinct forecasts than are counted without sorting
    p[::3] = p[0]
    order = np.random.default_rng(10).permutation(len(y))
    assert figures(measure(y, p)) == figures(measure(y[order], p[order]))


@every_measure
def test_rows_and_their_tally_give_the_same_bits(measure):
    y, p = INPUTS["ties"]
    assert figures(measure(y, p)) == figures(measure(tc.Tally.from_predictions(y, p)))


# NaN, or a forecast of 1.2, is accepted

BAD_FORECASTS = [
    float("nan"),
    1.2,
    -1e-300,
    -5e-324,
    float("inf"),
    -float("inf"),
    1 + 2**-52,
    100.0,
]
BAD_WEIGHTS = [float("nan"), -1.0, -1e-300, float("inf"), -float("inf")]


@pytest.mark.parametrize("value", BAD_FORECASTS)
@every_measure
def test_forecasts_out_of_range_are_refused(measure, value):
    for n, position in ((10, 0), (10, 7), (10, 9), (5000, 4999)):
        y, p = rounds(n, 11)
        p[position] = value
        for options in ({}, {"sample_weight": np.ones(n, int)}):
            with pytest.raises(tc.InputError) as caught:
                measure(y, p, **options)
            error = caught.value
            assert (error.argument, error.position) == ("y_prob", position)
            assert error.value == value or (value != value and error.value != error.value)
            assert str(position) in str(error)
            assert repr(value) in str(error)


@every_measure
def test_the_first_of_several_bad_forecasts_is_named(measure):
    y, p = rounds(10, 12)
    p[[3, 8]] = 1.2, float("nan")
    with pytest.raises(
        tc.InputError, match=r"^y_prob must be between 0 and 1, got 1.2 at position 3$"
    ):
        measure(y, p)


@pytest.mark.parametrize("value", [2.0, 0.5, -1.0, float("nan"), float("inf")])
@every_measure
def test_outcomes_other_than_zero_and_one_are_refused(measure, value):
    for n, position in ((10, 4), (5000, 4999)):
        y, p = rounds(n, 13)
        y = y.astype(float)
        y[position] = value
        with pytest.raises(tc.InputError) as caught:
            measure(y, p)
        assert (caught.value.argument, caught.value.position) == ("y_true", position)
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", BAD_WEIGHTS)
@every_measure
def test_weights_that_are_no_weights_are_refused(measure, value):
    y, p = rounds(10, 14)
    weights = np.ones(10)
    weights[6] = value
    with pytest.raises(tc.InputError) as caught:
        measure(y, p, sample_weight=weights)
    assert (caught.value.argument, caught.value.position) == ("sample_weight", 6)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("measure", FOR_COUNTS.values(), ids=FOR_COUNTS.keys())
def test_real_weights_are_refused_where_rounds_must_be_counted(measure):
    y, p = rounds(10, 15)
    with pytest.raises(tc.InputError, match="sample_weight must be integers"):
        measure(y, p, sample_weight=np.full(10, 1.5))


# Outcomes and forecasts in the wrong order are accepted


@every_measure
def test_swapped_outcomes_and_forecasts_are_refused_with_a_hint(measure):
    for n in (10, 5000):
        y, p = rounds(n, 16)
        with pytest.raises(
            tc.InputError, match="y_prob is all 0 and 1: the order is y_true, y_prob"
        ) as caught:
            measure(p, y)
        assert (caught.value.argument, caught.value.position) == ("y_true", 0)


def test_there_is_no_hint_when_nothing_is_swapped():
    with pytest.raises(tc.InputError, match="^y_true must be 0 or 1, got 2 at position 1$"):
        tc.brier_score([0, 2], [0.5, 0.5])


# Series with different indexes are silently realigned, or silently not


@every_measure
def test_series_with_different_indexes_are_refused(measure):
    pd = pytest.importorskip("pandas")
    y, p = rounds(8, 17)
    labels = list("abcdefgh")
    outcomes, forecasts = pd.Series(y, index=labels), pd.Series(p, index=labels)
    for other in (
        forecasts[::-1],
        forecasts.reset_index(drop=True),
        pd.Series(p, index=list("abcdefgx")),
    ):
        with pytest.raises(tc.InputError, match="^y_prob must have the index of y_true"):
            measure(outcomes, other)
    with pytest.raises(tc.InputError, match="^sample_weight must have the index of y_true"):
        measure(outcomes, forecasts, sample_weight=pd.Series(1, index=labels[::-1]))


def test_weights_with_another_index_than_the_forecasts_are_refused_when_outcomes_have_none():
    pd = pytest.importorskip("pandas")
    with pytest.raises(tc.InputError, match="^sample_weight must have the index of y_prob"):
        tc.brier_score(
            [0, 1],
            pd.Series([0.2, 0.7], index=["a", "b"]),
            sample_weight=pd.Series([1, 2], index=["b", "a"]),
        )


@every_measure
def test_series_with_the_same_index_are_fine(measure):
    pd = pytest.importorskip("pandas")
    y, p = rounds(8, 17)
    labels = [3, 1, 2, 2, 0, 9, 7, 5]  # neither sorted nor unique
    series = pd.Series(y, index=labels), pd.Series(p, index=labels)
    expected = figures(measure(y, p))
    assert figures(measure(*series)) == expected
    assert figures(measure(*series, sample_weight=pd.Series(1, index=labels))) == expected
    # one has no labels
    assert figures(measure(series[0], p)) == figures(measure(y, series[1])) == expected


# A stream of one class is rejected


def assert_no_line(result, outcome):
    """Outcomes that are all alike fit no line, and any shift the better the larger it is."""
    if isinstance(result, tc.CalibrationSlope):
        assert np.isnan([result.slope.estimate, result.intercept.estimate]).all()
        assert result.why == "all outcomes are alike"
    else:
        assert result.estimate == (float("inf") if outcome else float("-inf"))


def without_a_line(report, outcome):
    """The report without the two figures that outcomes all alike do not have."""
    assert_no_line(report.calibration_slope, outcome)
    assert_no_line(report.calibration_in_the_large, outcome)
    return dataclasses.replace(report, calibration_slope="", calibration_in_the_large="")


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 60])
@every_measure
def test_one_class_gives_finite_numbers(measure, outcome, n):
    unbiased = getattr(measure, "keywords", {}).get("unbiased")
    p = np.random.default_rng(n).uniform(0.01, 0.99, n)
    y = np.full(n, outcome)
    if unbiased and n == 1:
        with pytest.raises(tc.InputError, match="y_true must have two rounds or more"):
            measure(y, p)
        return
    result = measure(y, p)
    if measure in (tc.calibration_slope, tc.calibration_in_the_large):
        assert_no_line(measure(y, p), outcome)
        return
    if isinstance(result, tc.Report):
        result = without_a_line(result, outcome)
    found = numbers(result)
    if isinstance(result, tc.Bins):  # nan in an empty bin, as documented
        seen = result.counts > 0
        assert np.isfinite(result.forecast[seen]).all()
        assert np.isfinite(result.rate[seen]).all()
        assert np.isnan(result.forecast[~seen]).all()
        found = np.concatenate((result.edges, result.counts))
    assert np.isfinite(found).all()


def test_a_band_is_finite_even_where_a_resample_has_no_rounds():
    for seed in range(5):
        band = tc.reliability_band(
            [0, 0, 0], [0.2, 0.5, 0.7], kind="confidence", resamples=1, random_state=seed
        )
        assert np.isfinite(numbers((band.lower, band.upper))).all()


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_certain_of_the_other_gives_what_is_documented(outcome):
    y, p = np.full(3, outcome), np.full(3, 1.0 - outcome)
    curve = tc.reliability_curve(y, p)
    assert tc.log_loss(y, p) == float("inf")
    assert (curve.log.score, curve.log.miscalibration) == (float("inf"), float("inf"))
    assert (curve.log.discrimination, curve.log.uncertainty) == (0.0, 0.0)
    report = tc.measure(y, p)
    assert report.log == curve.log
    assert np.isnan(report.calibration_slope.slope.estimate)
    assert np.isnan(report.calibration_in_the_large.estimate)
    assert report.observed_expected_ratio.estimate == (float("inf") if outcome else 0.0)
    clinical = ("calibration_slope", "calibration_in_the_large", "observed_expected_ratio")
    rest = dataclasses.replace(report, log=report.brier, **dict.fromkeys(clinical, ""))
    assert np.isfinite(numbers(rest)).all()
    for measure in (
        tc.brier_score,
        tc.calibration_error_by_value,
        tc.smooth_calibration_error,
        tc.u_calibration_error,
    ):
        assert measure(y, p) == 1.0


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_foretold_is_calibrated(outcome):
    y, p = np.full(5, outcome), np.full(5, float(outcome))
    report = tc.measure(y, p)
    assert numbers((report.brier, report.log)).tolist() == [0.0] * 8
    assert report.lower_distance[0] == 0.0
    assert report.lower_distance[1] < 1e-9
    for name in (
        "smooth_calibration_error",
        "smooth_ece",
        "laplace_calibration_error",
        "calibration_error_by_value",
    ):
        assert getattr(report, name) == 0.0
    for name in (
        "binned_calibration_error",
        "largest_bin_gap",
        "calibration_decision_loss",
        "u_calibration_error",
    ):
        assert getattr(report, name) == 0.0


# The global random state is used, or changed


def global_state():
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that peers change
    return kind, keys.tobytes(), *rest


@every_measure
def test_the_global_random_state_is_left_alone_and_not_used(measure):
    y, p = rounds(60, 18)
    before = global_state()
    first = figures(measure(y, p))
    assert global_state() == before
    np.random.random(5)  # noqa: NPY002 - as another library would
    assert figures(measure(y, p)) == first


@pytest.mark.parametrize("measure", [tc.reliability_band, uncertainty], ids=["band", "uncertainty"])
def test_the_same_seed_gives_the_same_answer(measure):
    y, p = rounds(200, 19)
    call = partial(measure, y, p, resamples=RESAMPLES)
    assert figures(call(random_state=5)) == figures(call(random_state=5))
    assert figures(call(random_state=5)) != figures(call(random_state=6))
    assert figures(call(random_state=np.random.default_rng(5))) == figures(call(random_state=5))


@pytest.mark.parametrize("measure", [tc.reliability_band, uncertainty], ids=["band", "uncertainty"])
@pytest.mark.parametrize("state", [-1, 1.5, True, "seed", np.random.RandomState(0)])
def test_what_is_no_random_state_is_refused(measure, state):
    with pytest.raises(tc.InputError, match="random_state"):
        measure([0, 1], [0.5, 0.5], resamples=20, random_state=state)


# Something is set, or loaded, at import

PROBE = """
import json, locale, random, sys, warnings
import numpy as np

def settings():
    return [repr(part) for part in (
        np.get_printoptions(), np.geterr(), np.random.get_state()[1][:4].tolist(),
        np.random.get_state()[2:],
        random.getstate()[1][:4], random.getstate()[1][-1], warnings.filters,
        locale.setlocale(locale.LC_ALL),
        sys.getrecursionlimit(), sys.excepthook, sys.float_repr_style,
    )]

np.random.seed(0)
before = settings()
import truecast
truecast.brier_score([0, 1], [0.2, 0.7])
changed = [pair for pair in zip(before, settings()) if pair[0] != pair[1]]
optional = ["matplotlib", "seaborn", "pandas", "polars", "pyarrow", "scipy", "sklearn"]
optional += ["highspy", "click", "duckdb"]
print(json.dumps([changed, [name for name in optional if name in sys.modules]]))
"""


def test_nothing_is_set_and_nothing_optional_loaded_at_import():
    found = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout) == [[], []]
    assert found.stderr == ""


# Memory grows with the square of the rounds

MANY = 100_000
MOST = 150 * 8 * MANY  # 150 numbers for each round; the square would be 100,000


def memory_of(measure, data):
    tracemalloc.start()
    try:
        measure(*data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("measure", FAST.values(), ids=FAST.keys())  # the others: below
def test_many_rounds_need_little_memory(measure):
    if "resamples" in getattr(measure, "keywords", {}):
        measure = partial(measure, resamples=20)
    assert memory_of(measure, rounds(MANY, 20)) < MOST


PEAK = """
import resource, sys
import numpy as np
import truecast as tc

rng = np.random.default_rng(0)
p = rng.random(100_000)
y = rng.random(100_000) < p
unit = 1 if sys.platform == "darwin" else 1024

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

tc.measure(y[:100], p[:100])
before = peak()
tc.measure(y, p)
tc.smooth_calibration_witness(y, p)
tc.laplace_calibration_error(y, p, squared=True, unbiased=True)
tc.reliability_band(y, p, resamples=2)
print(peak() - before)
"""


def test_many_rounds_need_little_memory_outside_python_too():
    pytest.importorskip("resource")  # not on Windows
    found = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 3 * MOST
