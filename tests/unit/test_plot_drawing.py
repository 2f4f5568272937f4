"""What is drawn: all of it is there, can be read on any ground and at small sizes, and nothing else
is touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from matplotlib.text import Text

import truecast as tc
from drawn import flaws, smallest
from truecast import arena, plot
from truecast.errors import InputError
from truecast.plot import style

SIZES = [(1.6, 1.6), (1.6, 2.4), (2.2, 1.8), (3, 2.5), (7, 5)]
GROUNDS = ["default", "dark_background"]


def rounds(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    p = {
        "twenty": lambda: rng.random(20).round(2),
        "wavy": lambda: rng.random(3000),
        "wavier": lambda: rng.random(20_000),
        "three": lambda: rng.choice([0.2, 0.5, 0.8], 1000),
        "rare": lambda: 0.02 * rng.beta(1, 3, 50_000),
        "sure": lambda: 1 - 0.03 * rng.random(5000),
        "low": lambda: 0.5 * rng.random(4000) ** 2,
        "one": lambda: np.array([0.7]),
        "certain": lambda: rng.choice([0.0, 1.0], 30),
    }[kind]()
    truth = {
        "wavy": p + 0.15 * np.sin(2 * np.pi * p),
        "wavier": p + 0.2 * np.sin(35 * p),
        "low": np.sqrt(p),
        "rare": 1.5 * p,
        "sure": p - 0.01,
    }
    return rng.random(len(p)) < truth.get(kind, p), p


def diagram(kind: str) -> plot.ReliabilityDiagram:
    return plot.reliability_diagram(*rounds(kind), resamples=50)


def where(kind: str) -> plot.Miscalibration:
    return plot.miscalibration(*rounds(kind))


def groups(number: int) -> plot.GroupOverview:
    rng = np.random.default_rng(7)
    p = rng.beta(2, 3, 200 * number)
    of = np.arange(200 * number) % number
    names = [
        f"La Guardia, {k} $x$, a long name of a place that nobody can spell" if k % 3 else k
        for k in range(number)
    ]
    y = rng.random(len(p)) < np.where(of % 20 == 2, p**2, p)
    return plot.group_overview(y, p, [names[k] for k in of], resamples=30, tested=40)


def pair(kind: str) -> plot.BeforeAfter:
    y, p = rounds(kind)
    return plot.before_after(y, p, tc.Recalibrator().forecast_many(p, y), resamples=30)


def course(forecaster: object, rounds: int = 400) -> plot.CertificateCourse:
    rng = np.random.default_rng(1)
    scores = rng.random(rounds) if isinstance(forecaster, tc.Guard | tc.Recalibrator) else None
    return plot.certificate_course(
        forecaster, rng.integers(0, 2, rounds), scores=scores, distances=4, time_limit=0.5
    )


def ladder(forecaster: object, rounds: int) -> plot.LadderState:
    y = np.random.default_rng(2).integers(0, 2, rounds)
    forecaster.forecast_many(y)
    return plot.ladder_state(forecaster)


MAKE: dict[str, Callable[[], object]] = {
    **{
        f"diagram of {kind}": lambda kind=kind: diagram(kind)
        for kind in ("twenty", "wavy", "three", "rare", "sure")
    },
    **{f"diagram of {kind}": lambda kind=kind: diagram(kind) for kind in ("low", "one", "certain")},
    **{
        f"where {kind}": lambda kind=kind: where(kind)
        for kind in ("twenty", "wavy", "wavier", "three", "rare", "certain")
    },
    **{f"{number} groups": lambda number=number: groups(number) for number in (1, 12, 200)},
    **{f"before and after {kind}": lambda kind=kind: pair(kind) for kind in ("wavy", "rare")},
    "course of the paper": lambda: course(tc.AlmostOneStepAhead(horizon=400)),
    "course of one round": lambda: course(tc.HorizonFree(), 1),
    "course of a recalibrator": lambda: course(tc.Recalibrator()),
    "ladder of the paper": lambda: ladder(tc.AlmostOneStepAhead(grid=10), 50),
    "ladder at the start": lambda: ladder(tc.HorizonFree(), 0),
    "ladder of many points": lambda: ladder(tc.HorizonFree(), 2000),
}
# one of each
KINDS = [
    "diagram of wavy",
    "where wavy",
    "12 groups",
    "before and after wavy",
    "course of the paper",
    "ladder of the paper",
]
WITH_HISTOGRAMS = ["diagram of wavy", "diagram of rare", "before and after wavy"]
_MADE: dict[str, object] = {}


def made(name: str) -> object:
    if name not in _MADE:
        _MADE[name] = MAKE[name]()
    return _MADE[name]


def draw(name: str, size: tuple[float, float]) -> Figure:
    """Draw on axes of a figure of ours, of that size."""
    figure = style.new_figure(*size)
    axes = figure.subplots(1, 2) if name.startswith("before") else figure.add_subplot()
    assert made(name).draw(axes) is figure
    figure.draw_without_rendering()
    return figure


@pytest.mark.slow("draws many pictures")
@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in MAKE for size in SIZES[:-1]]
    + [(name, (7, 5)) for name in (*KINDS, "200 groups", "diagram of rare")],
)
def test_all_that_is_written_can_be_read(name: str, size: tuple[float, float]) -> None:
    figure = draw(name, size)
    assert flaws(figure) == []
    assert smallest(figure) >= 8
    if name in WITH_HISTOGRAMS:  # both are named or none
        said = " ".join(words(figure))
        assert ("ones" in said) == ("zeros" in said)
        if size >= (3, 2.5) and name == "diagram of wavy":
            assert "zeros" in said


def test_what_cannot_be_read_is_found() -> None:
    figure = Figure((3, 2.5))
    axes = figure.add_subplot()
    axes.set_title("a title that is far too long for a picture of this size, and then some")
    axes.text(0.5, 0.5, "this")
    axes.text(0.5, 0.5, "that")
    axes.plot([0], label="a name of a line that is longer than the axes are wide, and then some")
    axes.legend()
    figure.draw_without_rendering()
    found = " ".join(flaws(figure))
    assert "clipped: 'a title" in found
    assert "'this' and 'that'" in found
    assert "a legend leaves" in found


def luminance(color: object) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in to_rgb(color)
    ]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def contrast(one: object, other: object) -> float:
    """As WCAG 2.2 has it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.slow("draws pictures")
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("name", KINDS)
def test_words_and_lines_stand_out_from_their_ground(name: str, ground: str) -> None:
    with matplotlib.style.context(ground):
        figure = draw(name, (7, 5))
        paper = figure.axes[0].get_facecolor()
        for text in figure.findobj(Text):
            if text.get_text().strip():
                assert contrast(text.get_color(), paper) > 7, text
        for axes in figure.axes:
            for line in axes.lines:
                assert contrast(line.get_color(), paper) > 2.2, line


def test_pictures_follow_the_users_sizes() -> None:
    with mpl.rc_context({"font.size": 14}):
        figure = draw("diagram of wavy", (7, 7))
        assert figure.axes[0].title.get_fontsize() == pytest.approx(14 * 0.833)
        assert flaws(figure) == []


@pytest.mark.slow("draws pictures")
@pytest.mark.parametrize("name", KINDS)
def test_a_new_figure_fits_and_nothing_else_is_touched(name: str) -> None:
    before = dict(mpl.rcParams)
    figure = made(name).draw()
    assert flaws_of(figure) == []
    assert dict(mpl.rcParams) == before
    assert made(name).draw() is not figure


def flaws_of(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return flaws(figure)


@pytest.mark.slow("starts Python and draws")
def test_other_axes_stay_empty_and_no_window_is_opened() -> None:
    code = (
        "import sys\n"
        "from matplotlib.figure import Figure\n"
        "from truecast import HorizonFree, plot\n"
        "y, p = [0, 1] * 20, [0.25, 0.75] * 20\n"
        "for picture in (plot.reliability_diagram(y, p), plot.miscalibration(y, p), "
        "plot.ladder_state(HorizonFree()),\n"
        "                plot.group_overview(y, p, ['a', 'b'] * 20),\n"
        "                plot.certificate_course(HorizonFree(), y, points=4, distances=2)):\n"
        "    left, right = Figure().subplots(1, 2)\n"
        "    assert picture.draw(left) is left.figure\n"
        "    assert left.has_data() and not right.has_data()\n"
        "    picture.draw()\n"
        "plot.before_after(y, p, p).draw()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_diagram_shows_curve_band_histograms_and_scores() -> None:
    shown, axes = made("diagram of wavy"), draw("diagram of wavy", (7, 5)).axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    curve = lines["best increasing curve (CORP)"]
    assert np.array_equal(curve.get_xdata()[::2], shown.curve.lower)
    assert np.array_equal(curve.get_ydata()[1::2], shown.curve.rate)
    legend = [text.get_text() for text in axes.get_legend().texts]
    assert legend == [
        "off beyond chance",
        "range of forecasts, too low",
        "range of forecasts, too high",
        "90 % if calibrated",
        "best increasing curve (CORP)",
    ]
    assert f"3,000 rounds, Brier score {shown.brier.score:.4f}" in axes.get_title()
    assert f"{shown.brier.miscalibration:.4f} miscal" in axes.get_title()
    ones, zeros = (patch.get_data() for patch in axes.patches if isinstance(patch, StepPatch))
    reach = max((ones.values - ones.baseline).max(), (zeros.baseline - zeros.values).max())
    for bars, counts, up in ((ones, shown.ones, 1), (zeros, shown.zeros, -1)):
        assert np.array_equal(bars.edges, shown.edges)
        height = up * (bars.values - bars.baseline)
        # on one scale
        assert height / reach == pytest.approx(counts / max(shown.ones.max(), shown.zeros.max()))
        assert (height >= 0).all()
    assert ones.values.max() < 0  # beneath what the curve can reach
    hides = {type(patch) is StepPatch: patch.get_zorder() for patch in axes.patches}
    # so is a curve that leaves, and they are not
    assert curve.get_zorder() < hides[False] < hides[True]
    band = next(part for part in axes.collections if part.get_label().endswith("if calibrated"))
    corners = band.get_paths()[0].vertices
    assert corners[:, 0].min() == shown.band.p[0]
    assert corners[:, 1].max() == pytest.approx(shown.band.upper.max())


def _dots(axes: Any) -> list[PathCollection]:
    """The dots that are drawn; others are there for the legend only."""
    found = [part for part in axes.collections if isinstance(part, PathCollection)]
    return [part for part in found if len(part.get_offsets())]


def test_dots_are_as_large_as_their_ranges() -> None:
    shown, axes = made("diagram of three"), draw("diagram of three", (7, 5)).axes[0]
    dots = _dots(axes)
    places = np.concatenate([np.asarray(part.get_offsets()) for part in dots])
    expected = np.array(
        [(part.forecast, part.rate, part.rounds / shown.total) for part in shown.ranges]
    )
    assert places[np.argsort(places[:, 0])] == pytest.approx(expected[:, :2])
    sizes = np.concatenate([part.get_sizes() for part in dots])
    assert sorted(sizes) == pytest.approx(sorted(12 + 160 * expected[:, 2]))
    intervals = [part for part in axes.collections if isinstance(part, LineCollection)]
    sides = intervals[0].get_segments()  # between three forecasts there is no band
    assert [side[:, 1].tolist() for side in sides] == np.stack(
        (shown.band.lower, shown.band.upper), 1
    ).tolist()
    ends = {tuple(side[:, 1].tolist()) for part in intervals[1:] for side in part.get_segments()}
    assert ends == {part.interval(0.9) for part in shown.ranges}


def test_ranges_that_are_off_look_different() -> None:
    shown, axes = made("diagram of wavy"), draw("diagram of wavy", (7, 5)).axes[0]
    found = {}
    for dots in _dots(axes):
        look = to_hex(dots.get_facecolor()[0]).upper(), len(dots.get_paths()[0].vertices) < 10
        found[look] = [tuple(place) for place in np.asarray(dots.get_offsets()).tolist()]
    expected: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for part in shown.ranges:  # as on the page: the colour is the direction, a diamond is off
        look = style.PALETTE["orange" if part.gap < 0 else "blue"][0], part.off
        expected.setdefault(look, []).append((part.forecast, part.rate))
    assert found == expected
    assert len(found) == 4
    (curve,) = (line for line in axes.lines if line.get_label() == "best increasing curve (CORP)")
    assert curve.get_linewidth() < 1


def test_forecasts_that_run_the_wrong_way_are_seen_to() -> None:
    y = np.arange(2000) % 2
    p = np.where(y, 0.2, 0.8) + 0.1 * np.random.default_rng(0).random(2000)
    axes = plot.reliability_diagram(y, p).draw().axes[0]
    dots = np.concatenate(
        [np.asarray(d.get_offsets()) for d in axes.collections if isinstance(d, PathCollection)]
    )
    dots = dots[np.argsort(dots[:, 0])]
    assert dots[0, 1] == 1.0
    assert dots[-1, 1] == 0.0
    (curve,) = (line for line in axes.lines if line.get_label() == "best increasing curve (CORP)")
    assert np.ptp(curve.get_ydata()) < 0.01  # of all increasing curves, a flat one fits best


def test_rare_events_fill_the_picture() -> None:
    axes = draw("diagram of rare", (7, 5)).axes[0]
    assert axes.get_xlim()[1] < 0.025
    assert 0.015 < axes.get_ylim()[1] < 0.06
    weighted = plot.reliability_diagram(*rounds("wavy"), sample_weight=np.full(3000, 0.5))
    axes = weighted.draw().axes[0]
    assert "weight 1500" in axes.get_title()
    assert [text.get_text() for text in axes.get_legend().texts] == [
        "range of forecasts, too low",
        "range of forecasts, too high",
        "best increasing curve (CORP)",
    ]


def test_what_is_shown_can_be_chosen() -> None:
    shown = made("diagram of wavy")
    axes = shown.draw(within=(0.0, 0.1)).axes[0]
    assert axes.get_xlim() == pytest.approx((-0.0015, 0.1015))
    assert 0.1 < axes.get_ylim()[1] < 0.4
    both = made("before and after wavy").draw(within=(0.9, 1.0)).axes
    assert both[0].get_xlim() == both[1].get_xlim() == pytest.approx((0.8985, 1.0015))
    assert both[0].get_ylim() == both[1].get_ylim()
    # nothing there
    assert made("diagram of low").draw(within=(0.7, 0.8)).axes[0].get_ylim()[1] == pytest.approx(
        0.8015
    )
    for nonsense in ((0.5, 0.5), (0.5, 1.5), (0.1,), 0.5, (0.1, float("nan"))):
        with pytest.raises(InputError, match="within"):
            shown.draw(within=nonsense)


@pytest.mark.slow("draws pictures")
def test_words_say_where_forecasts_are_off() -> None:
    shown, axes = made("where wavy"), draw("where wavy", (7, 5)).axes[0]
    low, high = shown.stretches
    said = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(said) == {f"too low\nby {low.gap:.2g}", f"too high\nby {-high.gap:.2g}"}
    assert said[f"too low\nby {low.gap:.2g}"] == pytest.approx((0.25, 0.97), abs=0.05)
    assert said[f"too high\nby {-high.gap:.2g}"] == pytest.approx((0.75, 0.03), abs=0.05)
    up, down = (patch for patch in axes.patches if isinstance(patch, StepPatch))
    assert np.array_equal(up.get_data().values + down.get_data().values, shown.gaps)
    assert up.get_data().values.min() == down.get_data().values.max() == 0
    assert (up.get_facecolor(), down.get_facecolor()) == (
        to_rgba(style.COLORS[0]),
        to_rgba(style.COLORS[2]),
    )
    line = axes.lines[0].get_ydata()
    assert np.corrcoef(line, shown.f)[0, 1] > 0.999999  # the witness, as in the page
    assert (line > 0).tolist() == (shown.f > shown.base).tolist()
    for size in SIZES[-2:]:
        many = draw("where wavier", size).axes[0]
        assert 5 < len(many.texts) <= len(made("where wavier").stretches)
        assert all(many.bbox.x0 <= text.get_window_extent().x0 for text in many.texts)
        assert all(many.bbox.x1 >= text.get_window_extent().x1 for text in many.texts)
    chance = draw("where twenty", (7, 5)).axes[0]
    assert [text.get_text() for text in chance.texts] == ["nothing stands out from chance"]


def test_groups_of_rare_events_keep_their_digits_apart() -> None:
    tallies = {
        name: tc.Tally([0.001, 0.002], [3000, 3000], [2, ones])
        for name, ones in (("a", 1), ("b", 20))
    }
    found = plot.group_overview(tallies, tested=0)
    figure = Figure(figsize=(3, 2.5), layout="constrained")
    axes = figure.add_subplot()
    found.draw(axes)
    figure.canvas.draw()
    (right,) = axes.child_axes
    assert [label.get_text() for label in right.get_yticklabels()] == [
        f"{score:.5f}" for score in found.brier
    ]
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.slow("draws pictures")
def test_groups_are_shown_with_chance_and_the_rest_is_counted() -> None:
    shown = made("200 groups")
    axes = shown.draw().axes[0]
    assert len(axes.containers[0]) == 30
    assert axes.get_xlabel().endswith("and 170 more groups")
    assert [bar.get_width() for bar in axes.containers[0]] == shown.chance_high[:30].tolist()
    filled = next(line for line in axes.lines if line.get_markerfacecolor() == style.BLUE)
    assert filled.get_xdata().tolist() == shown.error[:30][shown.adjusted[:30] < 0.05].tolist()
    assert 5 < len(filled.get_xdata()) < 15
    hollow = next(line for line in axes.lines if line.get_markerfacecolor() == "none")
    assert sorted([*filled.get_ydata(), *hollow.get_ydata()]) == list(range(30))
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert all(label.endswith("(200)") for label in labels)
    assert labels[0].startswith(str(shown.names[0])[:8])
    assert "spell" in labels[0]
    small = draw("200 groups", (3, 2.5)).axes[0]
    number = len(small.containers[0])
    assert 5 < number < 20
    assert small.get_xlabel().endswith(f"+ {200 - number} groups")
    few = shown.draw(most=3).axes[0]
    assert len(few.containers[0]) == 3
    with pytest.raises(InputError, match="most"):
        shown.draw(most=0)
    assert "more" not in made("12 groups").draw().axes[0].get_xlabel()


def test_numbers_of_rounds_are_short() -> None:
    tallies = {
        n: tc.Tally([0.5], [n - n // 2], [n // 2])
        for n in (9_999, 10_000, 1_234_567, 5 * 10**9, 2**53)
    }
    axes = plot.group_overview(tallies, tested=0).draw().axes[0]
    labels = {label.get_text().partition(" ")[2] for label in axes.get_yticklabels()}
    assert (
        plot.group_overview({"$a$": tallies[9_999]})
        .draw()
        .axes[0]
        .get_yticklabels()[0]
        .get_text()[:5]
        == r"\$a\$"
    )
    assert labels == {"(9,999)", "(10k)", "(1.23M)", "(5G)", "(9.01P)"}


def test_before_and_after_are_compared_on_one_scale() -> None:
    shown, (left, right) = made("before and after rare"), draw("before and after rare", (7, 5)).axes
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    assert left.get_title().startswith("before")
    assert right.get_title().startswith("after")
    for axes, diagram, error in (
        (left, shown.before, shown.error_before),
        (right, shown.after, shown.error_after),
    ):
        _, brier, _, off = axes.get_title().replace("\n", " ").replace(",", "").rsplit(maxsplit=3)
        assert (float(brier), float(off)) == pytest.approx((diagram.brier.score, error), rel=0.06)


def test_a_course_shows_all_bounds() -> None:
    shown, axes = made("course of the paper"), draw("course of the paper", (7, 5)).axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    expected = {
        "the paper, 2 sqrt(T) + 1": (shown.rounds, 2 * np.sqrt(shown.rounds) + 1),
        "proved before the first round": (shown.rounds, shown.a_priori),
        "certificate": (shown.rounds, shown.certificate),
        "distance to calibration": (shown.measured, shown.at_most),
    }
    assert set(lines) == set(expected)
    for name, (x, y) in expected.items():
        assert np.array_equal(lines[name].get_xdata(), x)
        assert np.array_equal(lines[name].get_ydata(), y)
    # not by colour alone
    assert len({(line.get_linestyle(), line.get_linewidth()) for line in lines.values()}) == 4
    assert f"{shown.brier:.4f}" in axes.get_title()


def words(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text) if text.get_visible()}


@pytest.mark.slow("draws pictures")
@pytest.mark.parametrize("size", [(6.4, 3.7), (8.4, 4.6)])
def test_before_and_after_share_one_legend_with_all_lines(size: tuple[float, float]) -> None:
    figure = draw("before and after wavy", size)
    assert [axes.get_legend() for axes in figure.axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == [
        "off beyond chance",
        "range of forecasts, too low",
        "range of forecasts, too high",
        "90 % if calibrated",
        "best increasing curve (CORP)",
    ]
    assert flaws(figure) == []
    others = style.new_figure(8, 8).subplots(2, 2)
    made("before and after wavy").draw(others[0])
    assert others[0, 0].figure.legends == []  # it would be far from them


@cache
def long_course() -> plot.CertificateCourse:
    return plot.certificate_course(tc.HorizonFree(), rounds("low")[0][:400].astype(int))


@pytest.mark.slow("draws pictures")
@pytest.mark.parametrize("size", SIZES)
def test_no_legend_covers_a_certificate_or_a_distance(size: tuple[float, float]) -> None:
    for shown in (long_course(), made("course of the paper"), late()):
        figure = style.new_figure(*size)
        axes = figure.add_subplot()
        shown.draw(axes)
        figure.draw_without_rendering()
        if legend := axes.get_legend():
            box = legend.get_window_extent()
            points = np.concatenate(
                [axes.transData.transform(line.get_xydata()) for line in axes.lines]
            )
            assert not box.count_contains(points)
        assert bool(legend) or size < (3, 2.5)


@pytest.mark.parametrize("size", SIZES[-2:])
def test_the_line_of_weights_is_explained(size: tuple[float, float]) -> None:
    assert "line: how much they count" in draw("where wavy", size).axes[0].get_title()


def test_names_of_groups_keep_some_letters_in_small_pictures() -> None:
    labels = [label.get_text() for label in draw("12 groups", (3, 2.5)).axes[0].get_yticklabels()]
    cut = [label.partition(" (")[0].partition(" #")[0] for label in labels if "…" in label]
    assert cut
    assert all(len(name) > 6 for name in cut), cut


def late() -> plot.CertificateCourse:
    """Made up: distances that are far apart, as the certificate grows and falls."""
    rounds = np.array([1, 10, 100, 1000])
    numbers = {"certificate": [0.4, 5, 4, 30], "a_priori": [1, 8, 25, 80]}
    found = {
        "measured": np.array([1, 10, 1000]),
        "lower": [0.4, 4.9, 20],
        "upper": [0.4, 4.9, 45.0],
    }
    values = {name: np.asarray(value) for name, value in (numbers | found).items()}
    return plot.CertificateCourse("made up", rounds, brier=0.2, **values)


@pytest.mark.parametrize(
    "shown", [late, lambda: made("course of the paper"), lambda: made("course of a recalibrator")]
)
def test_nothing_of_the_distance_is_drawn_above_the_certificate(
    shown: Callable[[], plot.CertificateCourse],
) -> None:
    """Between the rounds at which it was computed nothing is known of it: no line joins them."""
    course = shown()
    axes = course.draw().axes[0]
    (dots,) = (line for line in axes.lines if line.get_label().startswith("distance"))
    assert dots.get_linestyle() == "None"
    bars = [bar for part in axes.collections for bar in part.get_segments()]
    assert len(bars) == len(dots.get_xdata())
    bound = dict(zip(course.rounds.tolist(), course.certificate.tolist(), strict=True))
    assert all(y <= bound[x] for x, y in dots.get_xydata().tolist())
    assert all(
        start[0] == end[0] and max(start[1], end[1]) <= bound[start[0]] for start, end in bars
    )


@pytest.mark.slow("draws pictures")
def test_a_game_s_distances_are_not_joined() -> None:
    below = arena.play(tc.HorizonFree(), arena.Coins(), 60).draw(points=4).axes[1]
    (dots,) = (line for line in below.lines if line.get_label() == "distance to calibration")
    assert dots.get_linestyle() == "None"


@pytest.mark.slow("draws pictures")
def test_groups_with_long_names_keep_both_ends_and_stay_apart() -> None:
    airports = [
        "Los Angeles International Airport",
        "Los Alamos International Airport",
        "Louis Armstrong, New Orleans",
    ]
    tallies = {name: tc.Tally([0.5], [30], [30 + n]) for n, name in enumerate(airports)}
    labels = [
        label.get_text() for label in plot.group_overview(tallies).draw().axes[0].get_yticklabels()
    ]
    assert len(set(labels)) == 3
    assert all(label.startswith("Lo") and "…" in label for label in labels)
    assert sum(label.partition(" (")[0].partition(" #")[0].endswith("ort") for label in labels) == 2


def test_a_ladder_shows_its_biases_open_cells_and_invariant() -> None:
    shown, axes = made("ladder of the paper"), draw("ladder of the paper", (7, 5)).axes[0]
    tops = {
        tuple(end)
        for part in axes.collections
        if hasattr(part, "get_segments")
        for _, end in part.get_segments()
    }
    assert tops == {(x, y) for x, y in zip(shown.points, shown.biases, strict=True) if y}
    (cell,) = axes.patches
    at = int(np.argmax(shown.open_cells))
    assert (cell.get_x(), cell.get_x() + cell.get_width()) == pytest.approx(
        (shown.points[at], shown.points[at + 1])
    )
    low, high = axes.get_ylim()
    assert low < shown.low.min()
    assert high > shown.high.max()
    assert shown.name in axes.get_title()


@pytest.mark.slow("draws many pictures")
def test_small_pictures_of_the_arena_can_be_read() -> None:
    game = arena.play(tc.AlmostOneStepAhead(horizon=300), arena.Coins(), 300)
    for size in [(1.6, 2.4), (2.2, 3.0), *SIZES[-2:]]:
        figure = game.draw(style.new_figure(*size))
        assert flaws_but_legends(figure) == [], size
        assert smallest(figure) >= 8
    assert len(game.draw().axes) == 2


@pytest.mark.slow("draws pictures")
def test_a_tournament_is_drawn_so_that_it_can_be_read_or_not_at_all() -> None:
    players = dict.fromkeys(
        ("a name that is much too long for its place", "b"), arena.FORECASTERS["climatology"]
    )
    players |= {"a name that is much too long for this place": players["b"]}
    results = arena.tournament(players, {"coins": arena.Coins()}, [10, 20], 1, workers=1)
    for figure in (results.draw(), results.draw(style.new_figure(7, 5))):
        assert flaws_but_legends(figure) == []
        assert smallest(figure) >= 8
    small = style.new_figure(3, 2.5)
    with pytest.raises(InputError, match="at least 7 by 4.5 inches .*draw_overview") as caught:
        results.draw(small)
    assert caught.value.argument == "figure"
    assert small.axes == []


def flaws_but_legends(figure: Figure) -> list[str]:
    """These legends stand above their axes."""
    return [flaw for flaw in flaws_of(figure) if not flaw.startswith("a legend")]


@pytest.mark.parametrize(
    ("places", "apart"),
    [
        ([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),
        ([0.5, 0.5], [0.4, 0.6]),
        ([0.1, 0.5, 0.55, 0.6], [0.1, 0.35, 0.55, 0.75]),
        ([0.0, 0.1, 0.9], [-0.05, 0.15, 0.9]),
    ],
)
def test_names_move_apart_together_and_no_further(places: list[float], apart: list[float]) -> None:
    assert style._apart(places, 0.2) == pytest.approx(apart)


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    axes = style.new_figure(4, 3).subplots()
    for height in (1.0, 1.01, 1.02, 2.0):
        axes.plot([0, 1], [0, height])
    ends = [(f"to {line.get_ydata()[-1]}", *line.get_xydata()[-1], "red") for line in axes.lines]
    style.name_ends(axes, ends, 9)
    assert flaws_of(axes.figure) == []
    assert [text.get_text() for text in axes.texts] == ["to 1.0", "to 1.01", "to 1.02", "to 2.0"]
