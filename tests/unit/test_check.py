from __future__ import annotations

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import _check, _core
from truecast.errors import InputError

GOOD = [True, False, 0, 1, 0.0, 1.0, -0.0, np.bool_(True), np.int8(1), np.uint64(0), np.float32(1)]
BAD = [
    2,
    -1,
    0.5,
    float("nan"),
    float("inf"),
    "1",
    "",
    b"1",
    None,
    [1],
    (1,),
    np.array(1),
    np.array([1]),
    1j,
    object,
    Fraction(1),
    np.timedelta64(1, "s"),
    Decimal(1),
]
DTYPES = ["bool", "int8", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("value", GOOD, ids=repr)
def test_outcome_takes_zero_and_one_of_any_real_type(value: Any) -> None:
    assert _check.outcome(value) == int(value)
    assert type(_check.outcome(value)) is int


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_outcome_refuses_all_else_and_shows_it(value: Any) -> None:
    with pytest.raises(InputError, match="^outcome must be 0 or 1, got ") as caught:
        _check.outcome(value)
    assert caught.value.argument == "outcome"
    assert caught.value.value is value


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64"]
)
def test_outcomes_of_every_dtype(dtype: str) -> None:
    y = np.array([0, 1, 1, 0, 1])
    checked = _check.outcomes(y.astype(dtype))
    assert checked.dtype == np.uint8
    assert checked.tolist() == y.tolist()
    assert _check.outcomes(y.astype(dtype)[::2]).tolist() == [0, 1, 1]
    assert _check.outcomes(y.astype(dtype)[::-1]).flags.c_contiguous


def test_bytes_and_bools_are_not_copied() -> None:
    for y in (np.ones(4, np.uint8), np.ones(4, bool)):
        assert np.shares_memory(_check.outcomes(y), y)


def test_masked_arrays_without_a_mask_and_foreign_byte_order() -> None:
    assert _check.outcomes(np.ma.array([0, 1])).tolist() == [0, 1]
    assert _check.outcomes(np.array([0, 1, 1], ">i4")).tolist() == [0, 1, 1]


def test_sequences_and_empty_input() -> None:
    assert _check.outcomes(np.empty(0, "i4,i4")).shape == (0,)
    assert _check.outcomes([True, 0, 1.0]).tolist() == [1, 0, 1]
    assert _check.outcomes([]).shape == (0,)
    assert _check.outcomes(np.array([], dtype=object)).dtype == np.uint8
    assert _check.outcomes(np.empty((0, 3)), dimensions=2).shape == (0, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 1, 2], r"outcomes must be 0 or 1, got 2 at position 2"),
        (np.array([0, -1], np.int8), r"outcomes must be 0 or 1, got -1 at position 1"),
        (np.array([0, 2], np.uint8), r"outcomes must be 0 or 1, got 2 at position 1"),
        (np.array([0, 1, 255], np.uint8), r"outcomes must be 0 or 1, got 255 at position 2"),
        ([0.0, 0.5], r"outcomes must be 0 or 1, got 0.5 at position 1"),
        ([1.0, float("nan")], r"outcomes must be 0 or 1, got nan at position 1"),
        ([1, None], r"outcomes must be 0 or 1, got None at position 1"),
        (
            [1, "0"],
            r"outcomes must be an array of bool, integers or floats \(convert it first\), "
            r"got dtype\('<U",
        ),
        (
            ["0", "1"],
            r"outcomes must be an array of bool, integers or floats \(convert it first\), "
            r"got dtype\('<U",
        ),
        (
            np.array([0, 1], object),
            r"outcomes must be an array of bool, integers or floats \(convert it first\), "
            r"got dtype\('O'\)",
        ),
        (
            np.array([1j]),
            r"outcomes must be an array of bool, integers or floats, got dtype\('complex128'\)",
        ),
        (
            np.array(["2020-01-01"], "datetime64[D]"),
            r"outcomes must be an array of bool, integers or floats",
        ),
        (1, r"outcomes must have shape \(rounds,\), got \(\)"),
        ([[0, 1]], r"outcomes must have shape \(rounds,\), got \(1, 2\)"),
        ([[0], [0, 1]], r"outcomes must be an array of numbers, all rows of one length"),
        (None, r"outcomes must be 0 or 1, got None at position 0"),
        (
            np.ma.array([0, 1, 1], mask=[0, 0, 1]),
            r"outcomes must be 0 or 1, got masked at position 2",
        ),
        (
            [Fraction(1)],
            r"outcomes must be an array of bool, integers or floats, got dtype|0 or 1, got "
            r"Fraction",
        ),
        ([0, 10**5000], r"outcomes must be 0 or 1, got something of type int at position 1"),
        (np.array([(0, 1)], "i4,i4"), r"outcomes must be an array of bool, integers or floats"),
    ],
)
def test_bad_outcomes_are_named(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _check.outcomes(values)


def test_position_in_a_table_is_row_and_column() -> None:
    table = np.zeros((3, 4))
    table[1, 2] = 7
    with pytest.raises(InputError, match=r"got 7.0 at position \(1, 2\)") as caught:
        _check.outcomes(table, dimensions=2)
    assert caught.value.position == (1, 2)


def test_a_bad_outcome_beyond_the_first_chunk_is_found_where_it_is() -> None:
    y = np.zeros(_check._CHUNK + 10, np.int32)
    y[-3] = 3
    with pytest.raises(InputError, match=f"got 3 at position {len(y) - 3}"):
        _check.outcomes(y)


@pytest.mark.parametrize(
    "value", [0, -1, 11, 1.0, True, "3", None, float("nan"), np.float64(3), np.array([3])]
)
def test_whole_number_refuses(value: Any) -> None:
    with pytest.raises(InputError, match=r"^grid must be a whole number from 1 to 10, got "):
        _check.whole_number("grid", value, least=1, most=10)


def test_whole_number_takes_numpys() -> None:
    assert type(_check.whole_number("grid", np.int32(3), least=1, most=10)) is int


def test_choice_lists_the_options() -> None:
    assert _check.choice("cell", "walk", ("walk", "lowest")) == "walk"
    for value in ("Walk", None, 3, ["walk"]):
        with pytest.raises(InputError, match="^cell must be one of 'walk', 'lowest', got "):
            _check.choice("cell", value, ("walk", "lowest"))


@pytest.mark.parametrize(
    "value", [0, 1, 0.5, np.float32(0.25), np.float64(1), np.int64(0), 5e-324, -0.0]
)
def test_probability_takes_numbers_from_0_to_1(value: Any) -> None:
    assert _check.probability("hint", value) == value
    assert type(_check.probability("hint", value)) is float


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), -5e-324, np.nextafter(1, 2), float("nan"), "0.5", None, [0.5], 1j],
)
def test_probability_refuses_all_else(value: Any) -> None:
    with pytest.raises(InputError, match="^hint must be between 0 and 1, got "):
        _check.probability("hint", value)


def test_within_includes_its_ends() -> None:
    assert [_check.within("budget", value, 0, 10) for value in (0, 10, np.float32(2.5))] == [
        0.0,
        10.0,
        2.5,
    ]
    for value in (-1e-300, 10.001, float("nan"), True, "1", None, 10**400):
        with pytest.raises(InputError, match="^budget must be a number from 0 to 10, got "):
            _check.within("budget", value, 0, 10)


def test_option_lists_the_numbers() -> None:
    assert _check.option("split", np.float32(0.5), (1.0, 0.5)) == 0.5
    assert type(_check.option("split", 1, (1.0, 0.5))) is float
    for value in (0.25, True, "1", None, float("nan"), [1.0]):
        with pytest.raises(InputError, match="^split must be one of 1, 0.5, got "):
            _check.option("split", value, (1.0, 0.5))


def test_flag_takes_booleans_only() -> None:
    assert _check.flag("nudge", np.bool_(True)) is True
    for value in (0, 1, "True", None, 1.0):
        with pytest.raises(InputError, match="^nudge must be True or False, got "):
            _check.flag("nudge", value)


class Name(str):
    """A str to be turned into one that JSON gives back as it is."""


@pytest.mark.parametrize("value", [None, "", "JFK", 0, -3, np.int16(7), np.str_("a"), Name("b")])
def test_group_takes_names_and_numbers(value: Any) -> None:
    assert _check.group(value) == value
    assert type(_check.group(value)) in (str, int, type(None))


@pytest.mark.parametrize("value", [(), ("a",), ["a", 1], (np.int16(7), Name("b"))])
def test_group_takes_several(value: Any) -> None:
    assert _check.group(value) == tuple(value)
    assert {type(name) for name in _check.group(value)} <= {str, int}


@pytest.mark.parametrize(
    "value", [True, np.bool_(False), 1.0, float("nan"), b"a", Fraction(1), 2**63]
)
def test_group_refuses_all_else(value: Any) -> None:
    rule = "must be a str or an int of 64 bits, or a tuple of these, or None, got "
    for wrong in (value, ("a", value)):
        with pytest.raises(InputError, match=f"^group {rule}"):
            _check.group(wrong)
        with pytest.raises(InputError, match=f"^groups {rule}.* at position 1"):
            _check.groups(["a", wrong], 2)


@pytest.mark.parametrize("value", [("a", "a"), (1, np.int8(1)), tuple(range(101))])
def test_several_groups_are_named_once_each_and_are_not_too_many(value: Any) -> None:
    with pytest.raises(InputError, match="^group must name each group once, and at most 100, got "):
        _check.group(value)
    with pytest.raises(
        InputError, match="^groups must name each group once, and at most 100, got .* at position 0"
    ):
        _check.groups([value], 1)


@pytest.mark.parametrize("value", [("a", ("b",)), (None,), {"a"}])
def test_groups_are_not_nested(value: Any) -> None:
    with pytest.raises(InputError, match="^group must be a str or an int of 64 bits"):
        _check.group(value)


def test_groups_of_lists_and_arrays() -> None:
    assert _check.groups(("a", 1, None), 3) == ["a", 1, None]
    assert _check.groups([("a", 1), "b"], 2) == [("a", 1), "b"]
    assert _check.groups(np.array([["a", "b"], ["c", "b"]]), 2) == [("a", "b"), ("c", "b")]
    assert _check.groups(np.array([3, 4], np.int8), 2) == [3, 4]
    assert _check.groups([2**63 - 1, -(2**63)], 2) == [2**63 - 1, -(2**63)]
    assert _check.groups(["a", "\u00e9", ["b", 1]], 3) == ["a", "\u00e9", ("b", 1)]
    assert [type(name) for name in _check.groups(np.array(["a", "b"]), 2)] == [str, str]
    for values, rounds in (
        (None, 2),
        (["a"], 2),
        ("ab", 2),
        (b"ab", 2),
        (7, 1),
        ((name for name in "ab"), 2),
    ):
        with pytest.raises(InputError, match="^groups must "):
            _check.groups(values, rounds)


def test_groups_that_have_no_order_or_another_are_refused() -> None:
    for values in ({"a", "b"}, {"a": 1, "b": 2}, np.array("ab"), np.array(7)):
        with pytest.raises(
            InputError, match="^groups must be a sequence with the group of each round"
        ):
            _check.groups(values, 2)
    pandas = pytest.importorskip("pandas")
    scores, groups = pandas.Series([0.5, 0.6]), pandas.Series(["a", "b"])
    assert _check.groups(groups, 2, scores) == ["a", "b"]
    # by position, whatever the labels
    assert _check.groups(groups.set_axis([7.5, 0.0]), 2) == ["a", "b"]
    with pytest.raises(InputError, match="^groups must have the index of scores"):
        _check.groups(groups[::-1], 2, scores)


def test_a_group_of_an_enumeration_is_its_value() -> None:
    airport = Enum("Airport", {"KENNEDY": "JFK"}, type=str)
    assert _check.group(airport.KENNEDY) == "JFK"


def test_a_number_that_turns_into_another_is_refused() -> None:
    class Liar(float):
        def __float__(self) -> float:
            return 7.0

    with pytest.raises(InputError, match="^score must be between 0 and 1"):
        _check.probability("score", Liar(0.5))


def test_output_may_be_what_is_read_but_not_overlap_it() -> None:
    buffer, y = np.full(9, 0.5), np.zeros(8, np.uint8)
    assert _check.output(buffer[1:], y, np.full(8, 0.5)).base is buffer
    assert _check.output(buffer[1:], y, buffer[1:]).base is buffer
    with pytest.raises(InputError, match="^out must not overlap"):
        _check.output(buffer[1:], y, buffer[:8])
    unaligned = np.zeros(65, np.uint8)[1:].view(np.float64)
    with pytest.raises(InputError, match="^out must be a .* aligned"):
        _check.output(unaligned, y)
    assert _check.probabilities("scores", unaligned).flags.aligned


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InputError) as caught:
        _check.outcome("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("rounds", [40, 2_000])
def test_a_bool_that_is_neither_is_refused_as_an_outcome(rounds: int) -> None:
    y = (np.arange(rounds) % 2).astype(np.uint8)
    y[9] = 2
    p = np.linspace(0, 1, rounds)
    for measure in (tc.brier_score, tc.arc_energy, tc.smooth_calibration_error):
        with pytest.raises(tc.InputError, match="y_true must be 0 or 1, got 2 at position 9"):
            measure(y.view(bool), p)


FEW = np.linspace(0, 1, 7)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, np.bool_, np.int32])
def test_a_few_scored_rounds_are_the_same_by_the_core(kind: type) -> None:
    y = np.array([0, 1, 1, 0, 1, 0, 0]).astype(kind)
    for values in (FEW, FEW.tolist(), FEW[::-1], FEW.astype(np.float32)):
        for core, python in zip(
            _core.scored("p", values, y), _check.scored("p", values, y), strict=True
        ):
            assert core.dtype == python.dtype
            assert core.tolist() == python.tolist()


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        (FEW + 0.5, np.zeros(7, np.int64)),
        (FEW, np.full(7, 2)),
        (FEW, np.zeros(6, np.int64)),
        (np.array([0.5, np.nan]), np.array([0, 1])),
        (np.array([0, 1]), np.array([0.25, 0.5])),
    ],
)
def test_a_few_scored_rounds_are_refused_alike_by_the_core(values: object, bits: object) -> None:
    with pytest.raises(InputError) as python:
        _check.scored("p", values, bits)
    with pytest.raises(InputError) as core:
        _core.scored("p", values, bits)
    assert str(core.value) == str(python.value)
