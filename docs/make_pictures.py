"""Make the pictures of the docs: SVG, for light and dark pages, the same bytes in every run.

    python docs/make_pictures.py            # all, into docs/pictures
    python docs/make_pictures.py days bins  # some

They show real flights (examples/scores.csv), or what their captions say.
`tests/unit/test_pictures.py` makes them anew.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import truecast as tc
from truecast.arena.curves import Curve, Curves, Panel
from truecast.plot.style import BLUE, COLORS, GREEN, GREY, ORANGE, PALETTE, name_ends, new_figure
from truecast.reference.arc import kernel

HERE = Path(__file__).parent
INK = "#1f2733"
#: what colours become on a light page and on a dark one, where they can be seen better
LIGHT = {GREY: "#7d7d7d", COLORS[4]: "#b07a00", COLORS[5]: "#3a8fc6"}
DARK = {INK: "#dde1e8", GREY: "#a3a3a3"} | dict(PALETTE.values())
STYLE = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "axes.facecolor": "none",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10,
    "font.size": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "truecast",
}
WIDTH = 5  # inches: to be read on a telephone, too
FONT = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


def flights() -> tuple[np.ndarray, np.ndarray, list[str], list[int]]:
    """Return outcomes, scores, airports and months of the flights."""
    with (HERE.parent / "examples" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    y, p = (np.array([float(row[name]) for row in rows]) for name in ("outcome", "score"))
    return y, p, [row["airport"] for row in rows], [int(row["date"][5:7]) for row in rows]


def recalibrated(scores: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Return what is said if outcomes come five flights later, about when they have landed."""
    return tc.Recalibrator().forecast_many(scores, outcomes, known_at=np.arange(len(scores)) + 5)


# -- the first screen
# --------------------------------------------------------------------------------


def hero() -> Any:
    """Draw the flights by tenths, before and after, beside what chance does."""
    y, p, _, _ = flights()
    figure = new_figure(7.2, 3.5)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    looks = {
        "The model": (p, ORANGE),
        "The same model behind truecast": (recalibrated(p, y), BLUE),
    }
    for axes, (title, (forecasts, color)) in zip(panels, looks.items(), strict=True):
        _tenths(axes, y, forecasts, color)
        axes.set_title(title, loc="left", weight="bold")
        score = f"Brier score {tc.brier_score(y, forecasts):.3f}"
        axes.text(0.02, 0.93, score, transform=axes.transAxes)
    ticks = [0, 0.2, 0.4, 0.6, 0.8]
    names = [_percent(tick) for tick in ticks]
    panels[0].set(xticks=ticks, xticklabels=names, yticks=ticks, yticklabels=names)
    panels[0].set(xlim=(0, 0.8), ylim=(0, 0.8), ylabel="how often it happened")
    for axes in panels:
        axes.set_xlabel("probability")
        axes.set_aspect("equal")
    return figure


def _tenths(axes: Any, y: np.ndarray, p: np.ndarray, color: str) -> None:
    """Draw a tenth of the forecasts a dot, from the lowest to the highest."""
    tenths = np.array_split(np.argsort(p, kind="stable"), 10)
    said, happened = (np.array([v[tenth].mean() for tenth in tenths]) for v in (p, y))
    rng = np.random.default_rng(0)
    worlds = [rng.random((1000, len(tenth))) < p[tenth] for tenth in tenths]
    low, high = np.array([np.quantile(world.mean(1), (0.01, 0.99)) for world in worlds]).T
    axes.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1)
    axes.fill_between(said, low, high, color=GREY, alpha=0.3, lw=0)
    axes.plot(said, happened, color=color, marker="o", ms=6, lw=2)
    words = f"says {_percent(said[-1])},\nhappens {_percent(happened[-1])}"
    place = (max(said[-1], 0.56), happened[-1] - 0.05)
    axes.annotate(words, place, ha="center", va="top", color=INK, weight="bold")


# -- explained
# ---------------------------------------------------------------------------------------


def days() -> Any:
    """Draw two made-up forecasters: 20 days at each forecast, wet ones filled."""
    figure, rng = new_figure(WIDTH, 3.9), np.random.default_rng(4)
    forecasters = {"calibrated": (2, 6, 10, 14, 18), "too sure of itself": (5, 8, 10, 12, 15)}
    for axes, (title, wet) in zip(figure.subplots(2, 1), forecasters.items(), strict=True):
        for row, (said, rained) in enumerate(zip((10, 30, 50, 70, 90), wet, strict=True)):
            filled = rng.permutation(20) < rained
            places = np.arange(20)
            axes.scatter(places[filled], np.full(rained, row), 34, color=BLUE)
            axes.scatter(
                places[~filled], np.full(20 - rained, row), 34, facecolor="none", edgecolor=GREY
            )
            axes.text(-1.2, row, f"{said} %", ha="right", va="center")
            axes.text(20.4, row, f"rained {rained} of 20", va="center")
        axes.set(title=title, xlim=(-3, 25.5), ylim=(-0.6, 4.9))
        axes.text(-1.2, 4.75, "said", ha="right", va="center", style="italic")
        axes.axis("off")
    return figure


def reliability() -> Any:
    """Draw the reliability diagram of the flights."""
    y, p, _, _ = flights()
    return tc.plot.reliability_diagram(y, p).draw()


def calibrated() -> tuple[np.ndarray, np.ndarray]:
    """Return 500 outcomes and the probabilities they were drawn with."""
    rng = np.random.default_rng(9)
    said = rng.beta(2, 3, 500)
    return rng.random(500) < said, said


def bins() -> Any:
    """Draw calibrated forecasts in 5 and in 50 bins, and the error for all numbers of bins."""
    y, p = calibrated()
    figure = new_figure(WIDTH, 4.6)
    panels = figure.subplot_mosaic("ab;cc", height_ratios=(1.5, 1))
    pair, curve = (panels["a"], panels["b"]), panels["c"]
    for axes, number in zip(pair, (5, 50), strict=True):
        found = tc.reliability_bins(y, p, n_bins=number)
        axes.plot([0, 1], [0, 1], color=GREY, lw=1)
        axes.scatter(
            found.forecast,
            found.rate,
            6 + 2 * found.counts**0.7,
            color=BLUE,
            alpha=0.8,
            lw=0,
            clip_on=False,
        )
        axes.set_title(f"{number} bins: ECE {found.error('l1'):.3f}")
        axes.set(
            xlabel="forecast",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xticks=[0, 0.5, 1],
            yticks=[0, 0.5, 1],
        )
    pair[0].set_ylabel("share that came true")
    numbers = np.arange(1, 101)
    errors = [tc.binned_calibration_error(y, p, n_bins=int(number)) for number in numbers]
    curve.plot(numbers, errors, color=BLUE, lw=1.4)
    curve.scatter([5, 50], [errors[4], errors[49]], 30, color=ORANGE, zorder=3)
    curve.set(
        title="the same 500 forecasts",
        xlabel="number of bins",
        ylabel="ECE",
        ylim=(0, None),
        xlim=(0, 100),
    )
    return figure


def chance() -> Any:
    """Draw the reliability diagram of the calibrated forecasts."""
    y, p = calibrated()
    return tc.plot.reliability_diagram(y, p).draw()


def moves() -> Any:
    """Draw four forecasts and how far each must move to the nearest calibrated ones."""
    y, p = [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9]
    found = tc.calibration_distance(y, p).witness.forecasts(y, p)
    axes = new_figure(WIDTH, 1.9).subplots()
    axes.plot([0, 1], [1, 1], color=GREY, lw=1, zorder=0)
    axes.plot([0, 1], [0, 0], color=INK, lw=1)
    for wet, said, moved in zip(y, p, found, strict=True):
        if moved != said:
            arrow = {"arrowstyle": "-|>", "color": ORANGE, "lw": 1.6, "shrinkA": 5, "shrinkB": 6}
            axes.annotate("", (moved, 0.0), (said, 1.0), arrowprops=arrow)
            side = 1 if moved > said else -1
            axes.text(
                (said + moved) / 2 + 0.03 * side, 0.55, f"{abs(moved - said):.1f}", ha="center"
            )
        color = BLUE if wet else GREY
        axes.scatter([said], [1.0], 60, color=color if wet else "none", edgecolor=color, zorder=3)
        axes.text(
            said, 1.2, f"{_percent(said)}\n{'wet' if wet else 'dry'}", ha="center", fontsize=9
        )
    for value, label in {0.0: "dry, alone", 0.5: "one of two wet", 1.0: "wet, alone"}.items():
        axes.plot([value, value], [-0.08, 0.08], color=INK, lw=1.5)
        axes.text(value, -0.38, f"{_percent(value)}\n{label}", ha="center", va="center", fontsize=9)
    axes.text(-0.06, 1.0, "said", ha="right", va="center", style="italic")
    axes.text(-0.06, 0.0, "calibrated", ha="right", va="center", style="italic")
    axes.set(xlim=(-0.27, 1.12), ylim=(-0.6, 1.7))
    axes.axis("off")
    return axes.figure


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NARROW NO-BREAK SPACE}%"


def miscalibration() -> Any:
    """Draw where the flights' error is."""
    y, p, _, _ = flights()
    return tc.plot.miscalibration(y, p).draw()


def drift() -> Any:
    """Draw month by month what was said and what happened."""
    y, p, _, month = flights()
    said = recalibrated(p, y)
    months = np.arange(4, 13)
    figure = new_figure(WIDTH, 2.8)
    axes = figure.subplots()
    looks = [
        ("happened", y, INK, "o", "-"),
        ("the model said", p, ORANGE, "s", "--"),
        ("recalibrated", said, BLUE, "^", "-"),
    ]
    ends = []
    for name, values, color, marker, dash in looks:
        means = [values[np.array(month) == m].mean() for m in months]
        axes.plot(months, means, color=color, marker=marker, ls=dash, ms=5, lw=1.6)
        ends.append((name, months[-1], means[-1], color))
    names = ["Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    axes.set(ylabel="share of flights late", ylim=(0, 0.36), xticks=months, xticklabels=names)
    name_ends(axes, ends, 9)
    return figure


def rounds() -> Any:
    """Draw four rounds of a ladder with four cells: open cell, biases, what an outcome does."""
    f = tc.AlmostOneStepAhead(grid=4)
    figure = new_figure(WIDTH, 3.9)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    points = f.points / f.denominator
    for number, (axes, y) in enumerate(zip(panels.flat, (1, 0, 0, 1), strict=True), start=1):
        cell, said, before = f.open_cell, f.predict(), f.biases / f.denominator
        f.observe(y)
        takes, after = cell + y, f.biases / f.denominator
        axes.axvspan(points[cell], points[cell + 1], color=GREEN, alpha=0.2, lw=0)
        axes.axhline(0, color=INK, lw=0.8)
        axes.vlines(points, 0, before, color=BLUE, lw=5)
        place = points[takes] + 0.06
        arrow = {"arrowstyle": "-|>", "color": ORANGE, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (place, after[takes]), (place, before[takes]), arrowprops=arrow)
        axes.scatter(points, np.zeros(5), 14, color=INK, zorder=3)
        axes.set_title(f"{number}. say {said:g}; {'rain' if y else 'dry'}")
        axes.set(
            xticks=points,
            xticklabels=["0", "¼", "½", "¾", "1"],
            ylim=(-0.4, 0.65),
            xlim=(-0.08, 1.08),
        )
    figure.supylabel("bias", fontsize=9)
    figure.supxlabel("points of the ladder", fontsize=9)
    return figure


def certificate() -> Any:
    """Draw the certificate of the flights, recalibrated, against the number of rounds."""
    y, p, _, _ = flights()
    return tc.plot.certificate_course(tc.Recalibrator(), y, scores=p).draw()


# -- guides
# ------------------------------------------------------------------------------------------


def before_after() -> Any:
    """Draw the flights before and after."""
    y, p, _, _ = flights()
    figure = new_figure(6.4, 3.7)
    pair = figure.subplots(1, 2, sharex=True, sharey=True)
    return tc.plot.before_after(y, p, recalibrated(p, y), bins=25).draw(pair)


def groups() -> Any:
    """Draw the airports beside each other."""
    y, p, airports, _ = flights()
    return tc.plot.group_overview(y, p, airports).draw()


def evidence() -> Any:
    """Draw the evidence against forecasts that are 7 points too high from the middle on."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.15, 0.95, 6_000)
    y = rng.random(6_000) < np.where(np.arange(6_000) < 3_000, p, p - 0.07)
    axes = new_figure(WIDTH, 2.9).add_subplot()
    return tc.plot.evidence_course(y, p, points=400).draw(axes)


def purses() -> Any:
    """Draw what 40 gamblers make of 1 by betting on "too low" against forecasts that are right."""
    rng = np.random.default_rng(6)
    rounds, players = 2_000, 40
    axes = new_figure(WIDTH, 2.9).add_subplot()
    for _ in range(players):
        y = rng.random(rounds) < 0.5
        purse = np.cumprod(np.where(y, 1.06, 0.94))
        color = ORANGE if purse.max() >= 20 else BLUE
        axes.plot(purse[::10], color=color, lw=0.8, alpha=0.8, zorder=2 + (color == ORANGE))
    axes.axhline(20, color=INK, ls="--", lw=1)
    axes.set_yscale("log")
    axes.set_xticks([0, 50, 100, 150, 200], ["0", "500", "1,000", "1,500", "2,000"])
    axes.set_xlabel("round")
    axes.set_ylabel("what became of 1")
    axes.minorticks_off()
    return axes.figure


def ladder() -> Any:
    """Draw a ladder after 400 flights."""
    y, _, _, _ = flights()
    f = tc.AlmostOneStepAhead(grid=12)
    f.forecast_many(y[:400])
    return tc.plot.ladder_state(f).draw()


def arc() -> Any:
    """Draw the field after 40 flights, what `Arc` says next, and what is proved of it."""
    y, _, _, _ = flights()
    f = tc.Arc()
    f.forecast_many(y[:40])
    figure = new_figure(WIDTH, 5.4)
    field, bounds = figure.subplots(2, 1)
    p = np.linspace(0.02, 0.98, 500)
    felt = [_felt(f.tally, q) for q in p]
    field.axhline(0, color=INK, lw=0.8)
    field.plot(p, felt, color=BLUE, lw=1.8)
    said = f.predict()
    field.scatter([said], [0], 45, color=ORANGE, zorder=3)
    field.annotate(f"say {said:.3f}", (said, 0), (said + 0.04, max(felt) / 6), fontsize=9)
    field.set(
        xlabel="p",
        ylabel="S(p)",
        xlim=(0, 1),
        title="the field after 40 flights; the forecast is near its zero",
    )
    many = np.geomspace(1e2, 1e9, 60).astype(int).tolist()
    others = {
        "HorizonFree": lambda _: tc.HorizonFree(),
        "BentGrid, knows T": lambda rounds: tc.BentGrid(horizon=rounds),
    }
    for (name, make), color in zip(
        (others | {"Arc": lambda _: tc.Arc()}).items(), (GREY, GREEN, BLUE), strict=True
    ):
        proved = [float(make(rounds).a_priori(rounds)) / rounds**0.5 for rounds in many]
        bounds.plot(many, proved, color=color, lw=1.8)
        place = (4, -14 if color == GREEN else 5)
        bounds.annotate(name, (many[8], proved[8]), place, textcoords="offset points", fontsize=9)
    bounds.axhline(0.54, color=BLUE, lw=0.8, ls=":")
    bounds.set(
        xscale="log",
        xlabel="T, rounds",
        ylim=(0, 2),
        title="proved bound on the distance to calibration, over √T",
    )
    return figure


def _felt(tally: tc.Tally, p: float) -> float:
    """S(p) of docs/arc.md, section 3."""
    r = tally.ones - tally.weights * tally.p
    return sum(s * kernel(p, q) for s, q in zip(r, tally.p, strict=True)) + kernel(p, p) * (0.5 - p)


# -- measured
# ----------------------------------------------------------------------------------------


def theorem() -> Any:
    """Draw the tables of benchmarks-opponents.md: distances and bounds, over sqrt(T)."""
    rows = _theorem_rows((HERE / "benchmarks-opponents.md").read_text())
    names = list(dict.fromkeys(row["forecaster"] for row in rows))
    figure = new_figure(6.4, 6.4)
    panels = figure.subplots(len(names), 1, sharex=True, sharey=True)
    for name, axes in zip(names, panels, strict=True):
        _theorem_panel(axes, [row for row in rows if row["forecaster"] == name])
        axes.set_title(name, loc="left", weight="bold")
    panels[1].set_ylabel("distance to calibration, over √T")
    panels[-1].set_xlabel("T, rounds")
    for axes in panels:
        ends = ((line, *line.get_xydata()[-1]) for line in axes.lines if line.get_gid())
        name_ends(axes, [(line.get_gid(), x, y, line.get_color()) for line, x, y in ends], 9)
    return figure


OUTCOMES = {
    "coin": BLUE,
    "periodic": GREEN,
    "threshold": ORANGE,
    "greedy": COLORS[3],
    "all ones": INK,
}


def _theorem_rows(page: str) -> list[dict[str, str]]:
    """Return the rows of all tables of the page, with the number of rounds from the title above."""
    found = []
    for rounds, section in re.findall(
        r"^### ([\d,]+) rounds\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL
    ):
        lines = [
            line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")
        ]
        found += [
            dict(zip(lines[0], cells, strict=True)) | {"T": rounds.replace(",", "")}
            for cells in lines[2:]
        ]
    return found


def _theorem_panel(axes: Any, rows: list[dict[str, str]]) -> None:
    """Draw a forecaster's distances, each with its name as gid, and what is proved of all."""

    def curve(kind: str, column: str) -> tuple[list[int], list[float]]:
        mine = [row for row in rows if row["outcomes"] == kind]
        rounds = [int(row["T"]) for row in mine]
        return rounds, [float(row[column]) / int(row["T"]) ** 0.5 for row in mine]

    for kind, color in OUTCOMES.items():
        axes.plot(*curve(kind, "at most"), color=color, lw=1.5, marker="o", ms=3, gid=kind)
    axes.plot(*curve("coin", "proved bound"), color=GREY, lw=4, zorder=1, gid="proved bound")
    axes.plot(*curve("coin", "2 sqrt(T) + 1"), color=INK, ls=":", lw=1.5, gid="the paper")
    axes.set(xscale="log", ylim=(0, 2.2), yticks=[0, 0.5, 1, 1.5, 2])
    axes.minorticks_off()
    axes.grid(color=GREY, alpha=0.35, lw=0.6)


def arena() -> Any:
    """Draw the tournament that benchmarks/arena.py has kept."""
    kept = json.loads((HERE / "arena.json").read_text())
    panels = (
        Panel(
            one["forecaster"],
            {name: _curve(curve) for name, curve in one["adversaries"].items()},
            _curve(one["worst"]),
            one["against"],
            _curve(one["bound"]) if one["bound"] else None,
        )
        for one in kept["panels"]
    )
    return Curves(tuple(panels), kept["sees"]).draw()


def _curve(kept: list[list[Any]]) -> Curve:
    return Curve(*map(tuple, kept))


def game() -> Any:
    """Draw one game of the arena."""
    return tc.arena.play(tc.BentGrid(horizon=1_000), tc.arena.SignPreservation(), 1_000).draw()


EXPLAINED = (days, reliability, bins, chance, moves, miscalibration, drift, rounds, certificate)
PICTURES = {
    make.__name__: make
    for make in (
        hero,
        *EXPLAINED,
        before_after,
        groups,
        evidence,
        purses,
        ladder,
        arc,
        theorem,
        arena,
        game,
    )
}


def drawn(name: str) -> dict[str, str]:
    """Return the SVG of a picture by what its file is called, for a light page and a dark one."""
    with mpl.rc_context(STYLE):
        figure, file = PICTURES[name](), io.StringIO()
        figure.savefig(
            file, format="svg", transparent=True, dpi=144, metadata={"Date": None, "Creator": None}
        )
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", file.getvalue(), flags=re.DOTALL)
    text = re.sub(r" ?font-family: [^;\"]*;", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)
    text = text.replace("</style>", f" text {{font-family: {FONT}}}</style>", 1)
    text = re.sub(
        r'="[^"]*"',
        lambda value: _LONG.sub(lambda number: f"{float(number[0]):.1f}", value[0]),
        text,
    )
    text = re.sub(r'(?<= d=")[^"]*', lambda path: _fewer(path[0]), text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = text.replace("<svg ", f"<!-- matplotlib {mpl.__version__} -->\n<svg ", 1)
    pages = {"light": LIGHT, "dark": DARK}
    return {f"{name}-{page}.svg": _recolored(text, colors) for page, colors in pages.items()}


def _recolored(svg: str, colors: dict[str, str]) -> str:
    new = {color.lower(): other for color, other in colors.items()}
    return re.sub("#[0-9a-f]{6}", lambda color: new.get(color[0], color[0]), svg)


_LONG = re.compile(r"-?\d+\.\d{2,}")


def _fewer(path: str) -> str:
    """Return a path without points that lie on the way, give or take a sixth of a point."""
    kept: list[list[str]] = []
    way: list[complex] = []  # left out since the last kept but one
    for step in (line.split() for line in path.splitlines()):
        if len(kept) > 1 and step[0] == kept[-1][0] == "L" and kept[-2][0] in "ML":
            start, middle, end = (
                complex(float(point[1]), float(point[2])) for point in (kept[-2], kept[-1], step)
            )
            if all(_off(point, start, end) < 1 / 6 for point in (*way, middle)):
                way.append(middle)
                kept[-1] = step
                continue
        way = []
        kept.append(step)
    return " ".join(" ".join(step) for step in kept)


def _off(point: complex, start: complex, end: complex) -> float:
    """The distance of a point from a line between two others."""
    if start == end:
        return abs(point - start)
    along = ((point - start) / (end - start)).real
    return abs(point - start - min(max(along, 0), 1) * (end - start))


def main(names: list[str], folder: Path = HERE / "pictures") -> None:
    """Write the pictures of these names, or all of them."""
    for name in names or PICTURES:
        for file, text in drawn(name).items():
            (folder / file).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
