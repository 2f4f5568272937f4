"""The constants of docs/arc.md are proved, hardly loose, and those of the kernel in the code."""

from __future__ import annotations

import importlib.util
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast import _core
from truecast.arc import LOWER_DISTANCE, SMOOTH_ERROR
from truecast.reference.arc import fall, rise

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "arc_constants.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("arc_constants", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


constants = script()
DYADIC = st.integers(0, 2**12).map(lambda k: Fraction(k, 2**12))
NUMBERS = st.floats(-1e6, 1e6)


@pytest.fixture(scope="module")
def proved():
    return constants.prove()


def within(value: Fraction, found) -> bool:
    return Fraction(float(found.low)) <= value <= Fraction(float(found.high))


def test_constants_are_proved_and_hardly_larger_than_need_be(proved) -> None:
    for claimed, (low, high) in [
        (LOWER_DISTANCE, proved.lower_distance),
        (SMOOTH_ERROR, proved.smooth_error),
    ]:
        assert high <= claimed < low + 2.5e-5
        assert high - low < 4e-6


def test_what_else_the_page_says_of_the_kernel(proved) -> None:
    assert proved.positive
    assert proved.monotone
    assert proved.greatest_at_ends
    assert 0.9999 < proved.price[0] <= proved.price[1] <= 1
    ends = Fraction(121, 123) ** 2 * Fraction(64, 49) * Fraction(400, 9)
    assert Fraction(proved.ends[0]) <= ends <= Fraction(proved.ends[1])
    assert 56.1 < ends < 56.2
    assert 165 < proved.conductance[0] <= proved.conductance[1] < 166
    assert proved.inner_conductance[1] < 30
    # what a round may add beyond 65/64, after 2^30
    assert 0 < proved.spare[0] <= proved.spare[1] < 2.0**-9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCALE", (0.9 * 121.0, 123.0)),
        ("SCALE", (122.0, 123.0)),
        ("CUBIC", (4.0, 6.0, -29.0, 45.0)),
        ("CUBIC", (4.0, 6.0, -30.0, 44.0)),
        ("POLE", 1.8125),
    ],
)
def test_another_kernel_does_not_pass(name: str, value, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the proof is of this kernel: its constants or its prices would be larger."""
    monkeypatch.setattr(constants, name, value)
    other = constants.prove(2**12)
    worse = other.lower_distance[0] > LOWER_DISTANCE or other.smooth_error[0] > SMOOTH_ERROR
    assert worse or other.price[0] > 1


def quotient(b: Fraction) -> list[Fraction]:
    """f and two derivatives, by the quotient rule in fractions."""
    x, u = 1 - b, Fraction(3, 4) + b
    top = [4 + 6 * x - 30 * x**2 + 45 * x**3, -(6 - 60 * x + 135 * x**2), -60 + 270 * x]
    first = top[1] / u**2 - 2 * top[0] / u**3
    second = top[2] / u**2 - 4 * top[1] / u**3 + 6 * top[0] / u**4
    return [Fraction(121, 123) * value for value in (top[0] / u**2, first, second)]


@given(DYADIC)
def test_shape_and_its_derivatives_are_enclosed(b: Fraction) -> None:
    at = constants.Interval(float(b))
    point = constants.OnCells(at, at, constants.Interval(0.0), 0.0)
    for exact, found in zip(quotient(b), constants.shape(point), strict=True):
        assert within(exact, found.at)
        assert float(found.at.high - found.at.low) < 1e-10


@given(st.floats(0, 1))
def test_shape_is_that_of_the_code(p: float) -> None:
    b, a = (Fraction(math.sqrt(q)) for q in (1 - p, p))
    assert rise(p) == pytest.approx(float(quotient(b)[0]), rel=2**-47)
    assert fall(p) == pytest.approx(float(quotient(a)[0]), rel=2**-47)
    kernel = float(quotient(a)[0] * quotient(b)[0])
    ones = np.array([1], dtype=np.int64)
    energy = _core.arc_energy(np.array([p]), 0 * ones, ones)[0]
    assert energy == pytest.approx((1 - p) ** 2 * kernel, rel=2**-45)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_intervals_enclose(v: float, w: float, x: float, y: float) -> None:
    one = constants.Interval(min(v, w), max(v, w))
    two = constants.Interval(min(x, y), max(x, y))
    positive = constants.Interval(1.0, 1.0) + constants.Interval(0.0, abs(x))
    for a in map(Fraction, (v, w)):
        for b in map(Fraction, (x, y)):
            assert within(a + b, one + two)
            assert within(a - b, one - two)
            assert within(a * b, one * two)
        for c in (Fraction(1), 1 + abs(Fraction(x))):
            assert within(a / c, one / positive)
    assert within(Fraction(0), one - one)


def test_not_proved_positive_is_no_divisor() -> None:
    with pytest.raises(ZeroDivisionError):
        constants.Interval(1.0) / constants.Interval(0.0, 1.0)


@pytest.mark.parametrize("cells", [1, 2, 8, 64])
def test_integral_and_range_enclose(cells: int) -> None:
    """Of 1/(1 + x^2), whose integral is pi/4, and of the greater of x^2 and 1/4."""
    x = constants.OnCells.identity(cells)
    arch = (x * x + 1.0).inverse()
    low, high = constants.total(arch.integrals())
    assert low <= math.pi / 4 <= high
    assert high - low < 1 / cells**2
    ends = np.arange(cells + 1) / cells
    value = 1 / (1 + ends**2)
    assert (arch.over.low <= value[1:]).all()
    assert (value[:-1] <= arch.over.high).all()
    greater = constants.integrals_of_greater(x * x, x * 0.0 + 0.25)
    low, high = constants.total(greater)
    assert low <= 1 / 8 + 7 / 24 <= high  # 1/4 on the left half, x^2 on the right
    assert high - low < 1 / cells


def test_dots_are_derivatives_along_the_arc() -> None:
    """Omega and the bend, by differences of the code's own rise and fall."""
    arc = constants.Arc.on(2**10)
    centres = (np.arange(2**10) + 0.5) / 2**10
    step = 1e-3
    for i in range(40, 1000, 60):
        tau = 2 * math.atan(centres[i])
        at = [math.sin(tau + k * step) ** 2 for k in (-2, -1, 0, 1, 2)]
        up, down = np.array([rise(p) for p in at]), np.array([fall(p) for p in at])
        first = np.array([1, -8, 0, 8, -1]) / 12 / step
        second = np.array([-1, 16, -30, 16, -1]) / 12 / step**2
        omega = first @ up * down[2] - up[2] * (first @ down)
        bend = (first @ up) * (second @ down) - (second @ up) * (first @ down)
        assert float(arc.omega.at.low[i]) == pytest.approx(omega, rel=1e-6)
        assert float(arc.bend.at.low[i]) == pytest.approx(bend, rel=1e-6)
        assert float(arc.rise.at.low[i]) == pytest.approx(up[2], rel=1e-12)


def test_the_script_prints_what_is_proved(capsys: pytest.CaptureFixture[str], proved) -> None:
    constants.main()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    printed = [float(end) for end in lines["lower_distance"].split()]
    assert printed == pytest.approx(proved.lower_distance, rel=1e-11)
    assert lines["positive"] == "True"
