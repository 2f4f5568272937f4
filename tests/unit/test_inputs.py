"""Whatever holds the columns, the tally is the same; whatever is missing or no number is refused by
name."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import truecast as tc
from truecast.measures import __all__ as measure_names

Y = [1, 0, 1, 1, 0, 0]
P = [0.5, 0.25, 0.5, 1.0, 0.0, 0.75]  # exact in half precision too
EXPECTED = tc.Tally([0.0, 0.25, 0.5, 0.75, 1.0], [1, 1, 0, 1, 0], [0, 0, 2, 0, 1])
FUNCTIONS = [
    function
    for function in (getattr(tc, name) for name in measure_names if name[0].islower())
    if function is not tc.uncertainty and ".class" not in function.__module__
]  # those of classes alone: test_classes.py

FLOATS = ["float16", "float32", "float64", "longdouble"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def tally(y, p, **options):
    return tc.Tally.from_predictions(y, p, **options)


def refused(y, p, **options):
    with pytest.raises(tc.InputError) as caught:
        tally(y, p, **options)
    return caught.value


# The same tally from every container


@pytest.mark.parametrize("make", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_sequences(make):
    assert tally(make(Y), make(P)) == EXPECTED


def test_a_list_of_numpy_scalars():
    assert tally([np.int8(y) for y in Y], [np.float32(p) for p in P]) == EXPECTED


def test_a_list_of_bools():
    assert tally([bool(y) for y in Y], P) == EXPECTED


def test_a_range_of_outcomes():
    assert tally(range(2), [0.5, 0.5]) == tc.Tally([0.5], [1], [1])


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS, "bool"])
def test_outcomes_of_every_real_dtype(kind):
    assert tally(np.array(Y, kind), P) == EXPECTED


@pytest.mark.parametrize("kind", FLOATS)
def test_forecasts_of_every_float_dtype(kind):
    assert tally(Y, np.array(P, kind)) == EXPECTED


@pytest.mark.parametrize("kind", [*INTEGERS, "bool"])
def test_forecasts_of_certainty_may_be_integers(kind):
    assert tally([1, 0, 0], np.array([1, 0, 1], kind)) == tc.Tally([0.0, 1.0], [1, 1], [0, 1])


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_weights_of_every_real_dtype(kind):
    weighted = tally(Y, P, sample_weight=np.array([1, 2, 3, 4, 5, 6], kind))
    assert weighted.weighted == (kind in FLOATS)
    assert weighted.ones.tolist() == [0, 0, 4, 0, 4]
    assert weighted.zeros.tolist() == [5, 2, 0, 6, 0]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_either_order_of_bytes(kind, order):
    dtype = np.dtype(kind).newbyteorder(order)
    weight = np.arange(1, 7).astype(dtype)
    assert tally(np.array(Y, dtype), np.array(P, dtype)) == EXPECTED
    assert tally(Y, P, sample_weight=weight) == tally(
        Y, P, sample_weight=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    )


@pytest.mark.parametrize("kind", ["int16", "uint64"])
def test_big_endian_outcomes(kind):
    assert tally(np.array(Y, np.dtype(kind).newbyteorder(">")), P) == EXPECTED


@pytest.mark.parametrize("kind", ["uint8", "int64", "float64", "bool"])
def test_strided_and_reversed(kind):
    y, p = np.array(Y, kind), np.array(P)
    columns = np.zeros((6, 3))
    columns[:, 1] = p
    assert tally(y[::-1], p[::-1]) == EXPECTED
    assert tally(np.repeat(y, 3)[::3], columns[:, 1]) == EXPECTED
    assert tally(np.repeat(y, 2)[::-2], np.repeat(p, 5)[::-5]) == EXPECTED


def test_columns_of_a_structured_array():
    # p is not aligned
    rows = np.array(list(zip(Y, P, strict=True)), dtype=[("y", "i1"), ("p", "f8")])
    assert tally(rows["y"], rows["p"]) == EXPECTED


def test_every_entry_the_same_place_in_memory():
    assert tally(np.broadcast_to(1, 4), np.broadcast_to(0.5, 4)) == tc.Tally([0.5], [0], [4])


def test_read_only_arrays_are_read_and_stay_as_they_were():
    y, p, weight = np.array(Y), np.array(P), np.arange(1, 7)
    for column in (y, p, weight):
        column.setflags(write=False)
    assert tally(y, p) == EXPECTED
    assert tally(y, p, sample_weight=weight).total == 21
    for function in FUNCTIONS:
        function(y, p)
    assert (y.tolist(), p.tolist(), weight.tolist()) == (Y, P, [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("size", [6, 20_000])
def test_writable_arrays_stay_as_they_were(size):
    rng = np.random.default_rng(0)
    y, p, weight = rng.integers(0, 2, size), rng.random(size), rng.random(size)
    before = [column.copy() for column in (y, p, weight)]
    tally(y, p)
    tally(y, p, sample_weight=weight)
    tc.reliability_bins(y, p)
    assert all(map(np.array_equal, before, (y, p, weight)))


def test_later_changes_of_the_input_do_not_reach_the_tally():
    y, p = np.array(Y), np.array(P)
    made = tally(y, p)
    y[:], p[:] = 0, 0.125
    assert made == EXPECTED


def test_masked_arrays_without_a_masked_entry():
    assert tally(np.ma.array(Y), np.ma.array(P, mask=False)) == EXPECTED
    assert tally(np.ma.array(Y, mask=[0] * 6), np.ma.array(P)) == EXPECTED


@pytest.mark.parametrize("kind", ["float64", "Float64", "double[pyarrow]", "float32", "Float32"])
def test_pandas_forecasts(kind):
    pd = pytest.importorskip("pandas")
    assert tally(Y, pd.Series(P, dtype=kind)) == EXPECTED
    assert tally(Y, pd.Series(P, dtype=kind, index=list("abcdef"))) == EXPECTED


@pytest.mark.parametrize(
    "kind", ["int64", "Int64", "int8", "bool", "boolean", "bool[pyarrow]", "int64[pyarrow]", "f8"]
)
def test_pandas_outcomes(kind):
    pd = pytest.importorskip("pandas")
    assert tally(pd.Series(Y, dtype=kind), P) == EXPECTED
    assert tally(pd.Series(Y, dtype=kind), pd.Series(P)) == EXPECTED


def test_a_pandas_column_and_array_and_index():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": Y, "p": P, "w": [1, 2, 3, 4, 5, 6]})
    assert tally(frame["y"], frame["p"]) == EXPECTED
    assert tally(frame["y"].array, frame["p"].array) == EXPECTED
    assert tally(frame["y"], frame["p"], sample_weight=frame["w"]) == tally(
        Y, P, sample_weight=[1, 2, 3, 4, 5, 6]
    )
    assert tally(Y, pd.Index(P)) == EXPECTED


def test_polars_series():
    pl = pytest.importorskip("polars")
    for kind in (pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Float32, pl.Float64, pl.Boolean):
        assert tally(pl.Series(Y).cast(kind), pl.Series(P)) == EXPECTED
    for kind in (pl.Float32, pl.Float64):
        assert tally(pl.Series(Y), pl.Series(P, dtype=kind)) == EXPECTED
    assert (
        tally(pl.concat([pl.Series(Y[:2]), pl.Series(Y[2:])], rechunk=False), pl.Series(P))
        == EXPECTED
    )
    weights = pl.Series([1, 2, 3, 4, 5, 6])
    assert tally(Y, P, sample_weight=weights) == tally(Y, P, sample_weight=[1, 2, 3, 4, 5, 6])


def test_arrow_arrays():
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()):
        assert tally(pa.array(Y, kind), pa.array(P)) == EXPECTED
    assert tally(pa.array([bool(y) for y in Y]), pa.array(P, pa.float32())) == EXPECTED
    assert tally(pa.array([9, *Y])[1:], pa.array([9.0, *P])[1:]) == EXPECTED
    weights = pa.array([1, 2, 3, 4, 5, 6])
    assert tally(Y, P, sample_weight=weights) == tally(Y, P, sample_weight=[1, 2, 3, 4, 5, 6])


def test_arrow_chunked_arrays():
    pa = pytest.importorskip("pyarrow")
    y, p = pa.chunked_array([Y[:1], [], Y[1:]]), pa.chunked_array([P[:4], P[4:]])
    assert tally(y, p) == EXPECTED
    assert tally(pa.chunked_array([[True], [False, True, True, False, False]]), p) == EXPECTED
    table = pa.table({"y": y, "p": p})
    assert tally(table["y"], table["p"]) == EXPECTED


# Missing values


def _missing_pandas(kind):
    def make(values):
        return pytest.importorskip("pandas").Series(values, dtype=kind)

    return make


def _missing_polars(values):
    return pytest.importorskip("polars").Series(values)


def _missing_arrow(values):
    return pytest.importorskip("pyarrow").array(values)


def _missing_chunked(values):
    return pytest.importorskip("pyarrow").chunked_array([values[:1], values[1:]])


def _missing_masked(values):
    return np.ma.array(
        [0 if value is None else value for value in values], mask=[v is None for v in values]
    )


def _nan(make):
    return lambda values: make([float("nan") if value is None else value for value in values])


CONTAINERS = {
    "list of None": list,
    "list of nan": _nan(list),
    "tuple of None": tuple,
    "object array": lambda values: np.array(values, object),
    "numpy": _nan(np.array),
    "numpy float32": _nan(lambda values: np.array(values, np.float32)),
    "masked": _missing_masked,
    "pandas": _missing_pandas(None),
    "pandas object": _missing_pandas(object),
    "pandas Float64": _missing_pandas("Float64"),
    "pandas arrow": _missing_pandas("double[pyarrow]"),
    "polars": _missing_polars,
    "polars nan": _nan(_missing_polars),
    "arrow": _missing_arrow,
    "arrow nan": _nan(_missing_arrow),
    "arrow chunks": _missing_chunked,
}
BOOLEANS = {
    "list": list,
    "object array": lambda values: np.array(values, object),
    "masked": _missing_masked,
    "pandas": _missing_pandas("boolean"),
    "pandas arrow": _missing_pandas("bool[pyarrow]"),
    "polars": _missing_polars,
    "arrow": _missing_arrow,
    "arrow chunks": _missing_chunked,
}
INTEGER_CONTAINERS = {
    "pandas Int64": _missing_pandas("Int64"),
    "pandas Int8": _missing_pandas("Int8"),
    "pandas arrow": _missing_pandas("int64[pyarrow]"),
    "polars": _missing_polars,
    "arrow": _missing_arrow,
    "arrow chunks": _missing_chunked,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_missing_forecasts_are_refused(make):
    error = refused([0, 1, 0], make([0.25, None, 0.75]))
    assert (error.argument, error.position) == ("y_prob", 1)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_missing_outcomes_are_refused(make):
    error = refused(make([0.0, 1.0, None]), [0.25, 0.5, 0.75])
    assert (error.argument, error.position) == ("y_true", 2)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_missing_weights_are_refused(make):
    error = refused([0, 1, 0], [0.25, 0.5, 0.75], sample_weight=make([1.5, None, 2.5]))
    assert (error.argument, error.position) == ("sample_weight", 1)


@pytest.mark.parametrize("make", BOOLEANS.values(), ids=BOOLEANS.keys())
def test_missing_outcomes_among_booleans_are_refused(make):
    error = refused(make([True, None, False]), [0.25, 0.5, 0.75])
    assert (error.argument, error.position) == ("y_true", 1)


@pytest.mark.parametrize("make", INTEGER_CONTAINERS.values(), ids=INTEGER_CONTAINERS.keys())
def test_missing_outcomes_and_weights_among_integers_are_refused(make):
    error = refused(make([1, None, 0]), [0.25, 0.5, 0.75])
    assert (error.argument, error.position) == ("y_true", 1)
    error = refused([1, 0, 0], [0.25, 0.5, 0.75], sample_weight=make([1, 2, None]))
    assert (error.argument, error.position) == ("sample_weight", 2)


@pytest.mark.parametrize("column", ["all", "y", "p"])
def test_nothing_but_missing_values(column):
    missing = [None, None]
    error = refused([0, 1] if column == "p" else missing, [0.5, 0.5] if column == "y" else missing)
    assert error.argument == ("y_prob" if column == "p" else "y_true")
    assert error.position == 0


def test_pandas_not_a_time():
    pd = pytest.importorskip("pandas")
    assert refused([0, 1], pd.Series([0.5, pd.NaT], dtype=object)).argument == "y_prob"
    assert refused(pd.Series(pd.to_datetime(["2020-01-01", None])), [0.5, 0.5]).argument == "y_true"


def test_a_masked_entry_is_refused_even_if_what_lies_under_the_mask_is_valid():
    error = refused([0, 1, 1], np.ma.array([0.5, 0.5, 0.5], mask=[False, False, True]))
    assert (error.argument, error.position) == ("y_prob", 2)
    assert refused(np.ma.array([0, 1, 1], mask=[True, False, False]), [0.5] * 3).position == 0
    assert (
        refused([0, 1, 1], [0.5] * 3, sample_weight=np.ma.array([1, 1, 1], mask=[0, 1, 0])).position
        == 1
    )


# Not a column of numbers

NOT_A_COLUMN = {
    "two-dimensional": [[0.5, 0.5], [0.5, 0.5]],
    "one column of two dimensions": np.array([[0.0], [1.0]]),
    "three-dimensional": np.zeros((2, 1, 1)),
    "ragged": [[0.5], [0.5, 0.5]],
    "strings": ["0", "1"],
    "bytes": [b"0", b"1"],
    "numpy strings": np.array(["0", "1"]),
    "one string": "01",
    "complex": [0j, 1 + 0j],
    "complex array": np.array([0, 1], complex),
    "a number": 0.5,
    "a number with no dimension": np.array(1.0),
    "None": None,
    "dates": np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
    "durations": np.array([0, 1], "timedelta64[s]"),
    "a dict": {0: 0, 1: 1},
    "a set": {0, 1},
    "a generator": (number for number in (0, 1)),
    "fractions": [Fraction(0), Fraction(1)],
    "records": np.array([(0, 0.5), (1, 0.5)], dtype=[("y", "i1"), ("p", "f8")]),
    "arrays in a list": [np.array([0.0]), np.array([1.0])],
    "an object": object(),
}


@pytest.mark.parametrize("values", NOT_A_COLUMN.values(), ids=NOT_A_COLUMN.keys())
def test_what_is_not_a_column_of_numbers_is_refused(values):
    assert refused(values, [0.5, 0.5]).argument == "y_true"
    assert refused([0, 1], values).argument == "y_prob"
    if values is not None:  # None is the default: no weights
        assert refused([0, 1], [0.5, 0.5], sample_weight=values).argument == "sample_weight"


def test_a_frame_is_not_a_column():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"p": [0.5, 0.5]})
    assert refused([0, 1], frame).argument == "y_prob"
    assert refused(frame, [0.5, 0.5]).argument == "y_true"


def test_text_columns_of_frames():
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    for column in (
        pd.Series(["0", "1"]),
        pl.Series(["0", "1"]),
        pa.array(["0", "1"]),
        pd.Categorical([0, "x"]),
    ):
        assert refused([0, 1], column).argument == "y_prob"
        assert refused(column, [0.5, 0.5]).argument == "y_true"


@pytest.mark.parametrize(("rounds", "forecasts"), [(2, 3), (3, 2), (0, 1), (1, 0), (1, 5)])
def test_different_lengths_are_refused(rounds, forecasts):
    error = refused([0] * rounds, [0.5] * forecasts)
    assert (error.argument, error.value) == ("y_prob", (forecasts,))
    assert str(rounds) in error.rule


@pytest.mark.parametrize("weights", [[], [1], [1, 1, 1], [1.0]])
def test_weights_of_another_length_are_refused(weights):
    assert refused([0, 1], [0.5, 0.5], sample_weight=weights).argument == "sample_weight"


@pytest.mark.parametrize(
    "value", [2, -1, 0.5, 255, 1e300, float("inf"), float("nan"), np.nextafter(1, 2), 2**63]
)
def test_outcomes_other_than_zero_and_one_are_refused(value):
    error = refused([0, 1, value], [0.5, 0.5, 0.5])
    assert (error.argument, error.position) == ("y_true", 2)
    assert error.value == value or value != value


@pytest.mark.parametrize("kind", ["int8", "int16", "int64", "float32", "float64"])
def test_outcomes_minus_one_and_one_are_refused(kind):
    error = refused(np.array([1, -1, 1], kind), [0.5, 0.5, 0.5])
    assert (error.argument, error.position, error.value) == ("y_true", 1, -1)


def test_a_long_double_is_checked_before_it_is_rounded():
    long = np.longdouble
    if np.finfo(long).eps == np.finfo(float).eps:
        pytest.skip("no longer than a double here")
    above, below = np.nextafter(long(1), long(2)), -np.finfo(long).tiny
    for value in (above, below):
        assert float(value) in (0.0, 1.0)
        assert refused([0, 1], np.array([0.5, value], long)).argument == "y_prob"
        assert refused(np.array([0, value], long), [0.5, 0.5]).argument == "y_true"
        if value < 0:
            assert (
                refused([0, 1], [0.5, 0.5], sample_weight=np.array([1, value], long)).argument
                == "sample_weight"
            )


def test_a_long_double_weight_beyond_the_doubles_is_refused():
    if np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("no longer than a double here")
    assert (
        refused([0], [0.5], sample_weight=np.array([np.finfo(np.longdouble).max])).argument
        == "sample_weight"
    )


# Nothing at all


@pytest.mark.parametrize(
    "empty",
    [[], (), np.array([]), np.array([], np.int8), np.array([], object)],
    ids=["list", "tuple", "f8", "i1", "O"],
)
def test_nothing_at_all_is_an_empty_tally(empty):
    assert tally(empty, empty) == tc.Tally()
    assert tally(empty, empty).total == 0
    assert tally(empty, empty, sample_weight=empty).total == 0


def test_empty_columns_of_frames():
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    for empty in (
        pd.Series([]),
        pd.Series([], dtype="Float64"),
        pl.Series([]),
        pl.Series([], dtype=pl.Float64),
    ):
        assert tally(empty, empty) == tc.Tally()
    for empty in (pa.array([]), pa.array([], pa.float64()), pa.chunked_array([], pa.float64())):
        assert tally(empty, empty) == tc.Tally()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_measures_refuse_nothing_at_all(function):
    for arguments in (([], []), (np.array([]), np.array([])), (tc.Tally(),)):
        with pytest.raises(tc.InputError, match="y_true must have at least one round"):
            function(*arguments)
    with pytest.raises(
        tc.InputError, match="y_true must have at least one round, of positive weight"
    ):
        function([0, 1], [0.5, 0.5], sample_weight=[0, 0])


def test_uncertainty_refuses_nothing_at_all():
    with pytest.raises(tc.InputError, match="y_true must have at least one round"):
        tc.uncertainty(tc.brier_score, [], [])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_measures_take_a_tally_alone_or_both_columns(function):
    with pytest.raises(tc.InputError, match="y_prob"):
        function([0, 1])
    with pytest.raises(tc.InputError, match="y_prob"):
        function(EXPECTED, P)
    with pytest.raises(tc.InputError, match="sample_weight"):
        function(EXPECTED, sample_weight=[1] * 6)


# A mistake in what is passed: the error says what to pass instead


class NeedsGrad:
    """As much of a torch tensor as numpy sees of it."""

    requires_grad = True

    def detach(self):
        raise AssertionError("nothing is detached in silence")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )


class OnTheGpu(NeedsGrad):
    requires_grad = False

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def __repr__(self):
        return "tensor(...)"


FOR_CLASSES = "truecast.Recalibrator(classes=...)"
TWO, THREE = np.full((6, 2), 0.5), np.full((6, 3), 0.25)
FORECASTS = [
    (
        TWO,
        "must have shape (rounds,): from predict_proba, pass [:, 1], the probability of a 1, "
        "got (6, 2)",
    ),
    (
        THREE,
        "must have shape (rounds,): for several classes, pass one at a time, such as [:, "
        "1], with y == 1 as outcomes, or use truecast.measure or "
        "classwise_calibration_errors(..., error=...), got (6, 3)",
    ),
    (TWO[:, :1], "must have shape (rounds,): pass its only column, [:, 0], got (6, 1)"),
    (np.zeros((6, 2, 2)), "must have shape (rounds,), got (6, 2, 2)"),
    (
        pd.DataFrame(TWO),
        "must have shape (rounds,): from predict_proba, pass .iloc[:, 1], the probability of "
        "a 1, got (6, 2)",
    ),
    (
        pd.DataFrame(TWO[:, :1]),
        "must have shape (rounds,): pass its only column, .iloc[:, 0], got (6, 1)",
    ),
    (NeedsGrad(), f"must not need a gradient: pass .detach().cpu().numpy(), got {NeedsGrad!r}"),
    (OnTheGpu(), "must be an array: pass .detach().cpu().numpy(), got tensor(...)"),
    ({0.5: 1}, "must be an array or a list, with an entry for each round in order, got {0.5: 1}"),
    ({0.5}, "must be an array or a list, with an entry for each round in order, got {0.5}"),
]


@pytest.mark.parametrize(("p", "message"), FORECASTS)
def test_forecasts_in_another_form_are_told_what_to_pass(p, message):
    for name, call in {
        "y_prob": lambda: tally(Y, p),
        "scores": lambda: tc.Recalibrator().forecast_many(p, Y),
        "hints": lambda: tc.Guard().forecast_many(p, Y),
    }.items():
        with pytest.raises(tc.InputError) as caught:
            call()
        told = message
        if p is THREE and name == "scores":
            told = f"{message.partition('classes, ')[0]}classes, use {FOR_CLASSES}, got (6, 3)"
        assert str(caught.value) == f"{name} {told}"


def test_a_row_of_probabilities_is_no_score():
    with pytest.raises(tc.InputError, match=r"use truecast.Recalibrator\(classes=...\), got \[0.5"):
        tc.Recalibrator().predict([0.5, 0.25, 0.25])


def test_rows_are_refused_before_labels_and_a_tally_of_classes_says_what_to_pass():
    labels = ["a", "b", "c", "a", "b", "c"]
    assert "or use truecast.measure" in str(refused(labels, THREE))
    whole = tc.ClassTally.from_predictions(labels, THREE, labels=["a", "b", "c"], normalize=True)
    with pytest.raises(tc.InputError, match=r"of a ClassTally, pass one class: tally\[label\]"):
        tc.smooth_calibration_error(whole)
    assert tc.smooth_calibration_error(whole["a"]) == pytest.approx(0, abs=1e-12)


def test_a_generator_is_told_to_become_a_list():
    message = (
        "must be an array or a list, which can be read twice: pass list(...) of it, got "
        "<generator object"
    )
    assert str(refused(Y, (p for p in P))).startswith(f"y_prob {message}")
    assert str(refused((y for y in Y), P)).startswith(f"y_true {message}")


LABELS = ["ham", "spam", "ham", "spam", "ham", "ham"]
OF_LABELS = (
    "must be 0 or 1 (for labels, pass a comparison with the one that counts as 1, such as y "
    "== 'ham')"
)


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        lambda y: np.array(y, object),
        pd.Series,
        lambda y: pd.Series(y, dtype="category"),
    ],
)
def test_labels_are_told_to_be_compared(make):
    assert str(refused(make(LABELS), P)) == f"y_true {OF_LABELS}, got 'ham' at position 0"
    with pytest.raises(tc.InputError) as caught:
        tc.Recalibrator().forecast_many(P, make(LABELS))
    assert str(caught.value) == f"outcomes {OF_LABELS}, got 'ham' at position 0"
    assert tally(np.array(LABELS) == "spam", P).total == 6


@pytest.mark.parametrize("make", [tc.Recalibrator, tc.Guard, tc.hints.Platt])
def test_swapped_columns_are_told_their_order(make):
    call = make().forecast_many
    name = "hints" if make is tc.Guard else "scores"
    with pytest.raises(tc.InputError) as caught:
        call(Y, P)
    said = (
        f"outcomes must be 0 or 1 ({name} are all 0 and 1: the order is {name}, outcomes), got "
        "0.5 at position 0"
    )
    assert str(caught.value) == said
    with pytest.raises(tc.InputError) as caught:
        call(P, P)
    assert str(caught.value) == "outcomes must be 0 or 1, got 0.5 at position 0"
    assert call(P, Y).shape == (6,)
