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

NUMBERS = st.floats(-2, 2).filter(lambda x: abs(x) > 1e-10)


@given(NUMBERS)
def test_figures_are_right_to_two_digits_and_four_decimals(value: float) -> None:
    text = numerals.figure(value)
    assert abs(float(text) - value) <= max(0.5e-4 if abs(value) >= 1e-3 else 0, 0.05 * abs(value)) * (1 + 1e-9)
    assert abs(float(text) - value) <= 0.5e-4 * (1 + 1e-9)
    assert "e" not in text


@given(st.floats(0, 1).filter(lambda p: 1e-9 < p < 1 - 1e-9))
def test_a_forecast_is_told_from_0_and_1(p: float) -> None:
    said = float(numerals.probability(p))
    assert 0 < said < 1
    assert abs(said - p) <= 0.006 * min(p, 1 - p)


@given(st.floats(0, 1), st.floats(1e-6, 1))
def test_places_are_right_to_a_thousandth_of_the_span(value: float, span: float) -> None:
    assert abs(float(numerals.place(value, span)) - value) <= 1.6e-3 * span + 1e-12


@given(NUMBERS)
def test_percentages_have_two_digits(share: float) -> None:
    said = float(numerals.percent(share).replace("\N{MINUS SIGN}", "-").removesuffix("\xa0%"))
    assert abs(said - 100 * share) <= max(0.05 * abs(100 * share) if abs(share) < 0.1 else 0.5, 1e-12)
    assert float(numerals.roughly(share)) == pytest.approx(abs(share), rel=0.051)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (numerals.figure(0.0), "0"),
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
        (markup.shortened("x" * 81), "x" * 79 + "…"),
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
    shown = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]", "\ufffd", text)
    assert reader.tags == [("p", {"title": shown})]
    assert reader.text == shown
    shown.encode()  # can be written to a file


def test_markup_is_kept_and_text_beside_it_escaped() -> None:
    inner = markup.tag("b", "<")
    assert markup.tag("p", inner, "&", None, class_="x", data_tip=None) == '<p class="x"><b>&lt;</b>&amp;</p>'
    assert markup.tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert markup.join("<") == html.escape("<")


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
