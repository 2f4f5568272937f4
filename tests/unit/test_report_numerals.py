"""Numbers and elements of the page: what is written can be read back."""

from __future__ import annotations

import html
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast.report import markup, numerals, svg

NUMBERS = st.floats(-2, 2).filter(lambda x: abs(x) > 1e-6)
TINY = st.floats(1e-323, 1e-5) | st.floats(-1e-5, -1e-323)
SHARES = st.floats(0, 1)


@given(NUMBERS)
def test_figures_are_right_to_two_digits_and_four_decimals(value: float) -> None:
    text = numerals.figure(value)
    assert abs(float(text) - value) <= max(
        0.5e-4 if abs(value) >= 1e-3 else 0, 0.05 * abs(value)
    ) * (1 + 1e-9)
    assert abs(float(text) - value) <= 0.5e-4 * (1 + 1e-9)
    assert "e" not in text


def read(text: str) -> float:
    """A number as it was written, powers of ten included."""
    plain = text.replace("\N{MINUS SIGN}", "-").removesuffix("\xa0%")
    if "10" in plain and "\N{SUPERSCRIPT MINUS}" in plain:
        digits = str.maketrans("\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        factor, _, power = plain.rpartition("10")
        return (float(factor[:-1]) if factor[-1] == "\N{MULTIPLICATION SIGN}" else 1.0) * 10 ** int(
            power.translate(digits)
        )
    return float(plain)


@given(NUMBERS | TINY)
def test_a_number_that_is_not_0_is_never_shown_as_0(value: float) -> None:
    written = [
        numerals.figure(value),
        numerals.signed(value),
        numerals.percent(value),
        numerals.roughly(value),
    ]
    written += numerals.apart(value, value / 2)
    if 0 < value < 1:
        written += [
            numerals.probability(value),
            *numerals.between(value, 1.0),
            *numerals.between(0.0, value)[1:],
        ]
    for text in written:
        assert read(text) != 0, (value, text)
        assert abs(value) / 2 < 1e-15 or "<" not in text
        assert not re.search(r"0{8}", text)


@given(SHARES | TINY.map(abs), SHARES | TINY.map(abs), st.floats(1e-9, 1))
def test_two_ends_that_differ_are_shown_to_differ(one: float, other: float, span: float) -> None:
    low, high = sorted((one, other))
    ends = numerals.between(low, high, span)
    if low == high:
        assert ends == (numerals.probability(low),)
        return
    assert len(set(ends)) == 2
    assert read(ends[0]) <= read(ends[1]) or high < 1e-15
    said = numerals.apart(low, high)
    if high - low > 1e-12 and low > 1e-6:
        assert read(said[1]) - read(said[0]) == pytest.approx(high - low, rel=0.11)


@given(SHARES, SHARES)
def test_a_percentage_agrees_with_the_figures_beside_it(score: float, constant: float) -> None:
    if min(score, constant) < 1e-6 or abs(score - constant) < 1e-9:
        return
    shown = [float(text) for text in numerals.apart(score, constant)]
    change, said = 1 - score / constant, read(numerals.percent(1 - score / constant)) / 100
    assert 1 - shown[0] / shown[1] == pytest.approx(change, rel=0.12, abs=1e-12)
    assert said == pytest.approx(change, rel=0.051)


@given(st.integers(1, 1000).map(lambda k: k / 1000))
def test_a_p_value_and_a_share_are_rounded_alike(value: float) -> None:
    said = float(numerals.p_value(value))
    assert said == pytest.approx(value, rel=0.051)
    assert round(100 * said, 9) == round(read(numerals.percent(value)), 9)


@given(st.floats(0, 1).filter(lambda p: 1e-6 < p < 1 - 1e-9))
def test_a_forecast_is_told_from_0_and_1(p: float) -> None:
    said = float(numerals.probability(p))
    assert 0 < said < 1
    assert abs(said - p) <= 0.006 * min(p, 1 - p)


@given(NUMBERS)
def test_percentages_have_two_digits(share: float) -> None:
    said = float(numerals.percent(share).replace("\N{MINUS SIGN}", "-").removesuffix("\xa0%"))
    assert abs(said - 100 * share) <= max(
        0.05 * abs(100 * share) if abs(share) < 0.1 else 0.5, 1e-12
    )
    assert float(numerals.roughly(share)) == pytest.approx(abs(share), rel=0.051)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (numerals.figure(0.0), "0"),
        (numerals.figure(3.1e-9), "3.1\N{MULTIPLICATION SIGN}10⁻⁹"),
        (numerals.figure(1e-20), "< 10⁻¹⁵"),
        (numerals.figure(1.52e293), "1.5\N{MULTIPLICATION SIGN}10²⁹³"),
        (numerals.apart(1.52e293, 1.0), ("1.5\N{MULTIPLICATION SIGN}10²⁹³", "1.0000")),
        (numerals.p_value(0.295), "0.3"),
        (numerals.percent(0.295), "30\xa0%"),
        (numerals.between(0.0, 1e-7), ("0.000", "1\N{MULTIPLICATION SIGN}10⁻⁷")),
        (numerals.figure(math.nan), "\N{EN DASH}"),
        (numerals.figure(math.inf), "infinite"),
        (numerals.probability(0.0), "0"),
        (numerals.probability(1.0), "1"),
        (numerals.signed(-0.25), "\N{MINUS SIGN}0.2500"),
        (numerals.signed(0.25), "+0.2500"),
        (numerals.signed(0.0), "0"),
        (numerals.p_value(math.nan), "\N{EN DASH}"),
        (numerals.p_value(0.00009), "< 0.0001"),
        (numerals.p_value(0.0001), "0.0001"),
        (numerals.rounds(1), "1 round"),
        (numerals.rounds(1.0), "weight 1"),
        (markup.number(-0.04), "0"),
        (markup.shortened("x" * 80), "x" * 80),
        (markup.shortened("x" * 81), "x" * 40 + "…" + "x" * 39),
        (markup.name(None), '<bdi class="name">(none)</bdi>'),
    ],
)
def test_edges(said: str, expected: str) -> None:
    assert said == expected


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text() | st.text(st.sampled_from("<>&\"'/=script onerror\x00\u202e\ud800")))
def test_whatever_is_not_markup_is_shown_and_nothing_else(text: str) -> None:
    reader = Reader()
    reader.feed(markup.tag("p", text, title=text))
    reader.close()
    shown = re.sub(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]",
        "\ufffd",
        text,
    )
    assert reader.tags == [("p", {"title": shown})]
    assert reader.text == shown
    shown.encode()  # can be written to a file


def test_markup_is_kept_and_text_beside_it_escaped() -> None:
    inner = markup.tag("b", "<")
    assert (
        markup.tag("p", inner, "&", None, class_="x", data_tip=None)
        == '<p class="x"><b>&lt;</b>&amp;</p>'
    )
    assert markup.tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    signs = "".join(map(chr, range(32, 127)))
    assert markup.join(signs) == html.escape(signs)


@given(st.floats(0, 0.9), st.floats(1e-6, 0.1))
def test_ticks_are_round_few_and_inside(low: float, width: float) -> None:
    high = low + width
    ticks = svg.ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-6 * width <= tick <= high + 1e-6 * width for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])
    assert f"{steps[0]:.0e}"[0] in "125"


def test_points_closer_than_a_pixel_are_left_out_but_not_the_last() -> None:
    same = svg.scale(0.0, 1.0, 0.0, 1.0)
    assert svg.points([0, 0.5, 0.9, 2, 2.2], [0, 0, 0.5, 0, 0], same, same) == "0,0 2,0 2.2,0"
    assert svg.points([0, 0.2, 0.4], [0, 1, 1], same, same) == "0,0 0.2,1 0.4,1"
