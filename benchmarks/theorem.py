"""The theorem, measured: distances to calibration of the forecasters, beside their certificates and bounds.

    python benchmarks/theorem.py --plot docs/theorem.svg > docs/theorem-measured.md     # some minutes

Needs the package installed, and matplotlib for the plot.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distance import OUTCOMES, play, sizes
from timing import header

import truecast as tc

FORECASTERS: dict[str, Callable[[int], Any]] = {
    "AOSA, lower end (the paper)": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds),
    "AOSA, middle": lambda rounds: tc.AlmostOneStepAhead(horizon=rounds, at="middle"),
    "BentGrid": lambda rounds: tc.BentGrid(horizon=rounds),
}
EXACTLY, RTOL = 10_000, 1e-6  # rounds up to which the distance itself is asked for, and how closely beyond
WHAT = """
How far the forecasts of `AlmostOneStepAhead` (AOSA) and `BentGrid`, built for T rounds, are from calibrated ones:
CalDist, in total, as `calibration_distance` finds it; the distance itself to {exactly:,} rounds, and to {rtol:g}
relative beyond, unless the time limit of {limit:g} s ends a search. The certificate is what the forecaster knows after
every round, the proved bound what it knows before the first (theorems 3, 5 and 7 of [the theory](theory.md));
2 sqrt(T) + 1 is the paper's.

Outcomes are fair coins; 0, 1, 0, 1, ...; the threshold, which sees the forecast p and is 1 if p <= 1/2; greedy ones,
which see the ladder and take the outcome after which D + A, deviation plus biases, is larger; and all ones.

In every row CalDist <= certificate <= proved bound <= 2 sqrt(T) + 1, and the script would have stopped if not.
"""


@dataclass(frozen=True)
class Row:
    """A forecaster and its opponent, after a number of rounds."""

    rounds: int
    forecaster: str
    outcomes: str
    lower: float
    upper: float
    exact: bool
    certificate: float
    bound: float
    paper: float


def measured(rounds: int, name: str, kind: str, limit: float) -> Row:
    """Play, measure, and insist on the theorem."""
    print(f"{name}, {kind}, {rounds:,} rounds", file=sys.stderr, flush=True)
    forecaster = FORECASTERS[name](rounds)
    y, p = play(forecaster, kind, rounds)
    rtol = 0.0 if rounds <= EXACTLY else RTOL
    found = tc.calibration_distance(y, p, rtol=rtol, time_limit=limit, total=True)
    proved = forecaster.certificate
    row = Row(rounds, name, kind, found.lower, found.upper, found.exact, proved.bound, proved.a_priori, proved.paper)
    # the certificate is of the fractions that the forecasts stand for; an upper bound that is not tight proves nothing
    least = found.upper * (1 - 1e-8) if found.exact else found.lower
    if not least <= proved.bound * (1 + 1e-12) + rounds * 2.0**-54:
        raise RuntimeError(f"the distance is above the certificate, so one of them is wrong: {row}")
    if not proved.bound <= proved.a_priori <= proved.paper:
        raise RuntimeError(f"the certificate is above what was proved before: {row}")
    return row


def table(rows: list[Row]) -> None:
    rounds = rows[0].rounds
    print(f"\n## {rounds:,} rounds\n")
    print("| forecaster | outcomes | CalDist, at least | at most | relative gap | ", end="")
    print("certificate | proved bound | 2 sqrt(T) + 1 | CalDist / sqrt(T) |\n" + "|---" * 9 + "|")
    for row in rows:
        gap = "exact" if row.exact else f"{(row.upper - row.lower) / row.upper:.1e}"
        proved = f"{row.certificate:.6f} | {row.bound:.6f} | {row.paper:.6f}"
        print(f"| {row.forecaster} | {row.outcomes} | {row.lower:.6f} | {row.upper:.6f} | {gap} | ", end="")
        print(f"{proved} | **{row.upper / math.sqrt(rounds):.3f}** |", flush=True)


# Okabe and Ito's colours, which the colour-blind can tell apart; sizes and widths show lines that coincide
STYLES = {
    "coin": {"color": "#0072B2", "marker": "o", "markersize": 4, "zorder": 5},
    "periodic": {"color": "#009E73", "marker": "^", "markersize": 6, "zorder": 4},
    "threshold": {"color": "#D55E00", "marker": "s", "markersize": 4, "zorder": 3},
    "greedy": {"color": "#CC79A7", "marker": "D", "markersize": 8, "linewidth": 3, "zorder": 2},
    "all ones": {"color": "#000000", "marker": "x", "markersize": 5, "zorder": 3},
}
GREY = "#999999"


def plot(rows: list[Row], path: Path) -> None:
    """Draw a panel for each forecaster: distances, certificates and bounds against the number of rounds."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    with mpl.rc_context({"svg.hashsalt": "truecast"}):  # names in the file are the same in every run
        figure = Figure(figsize=(9, 4), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(FORECASTERS), sharex=True, sharey=True)
        for name, axes in zip(FORECASTERS, panels, strict=True):
            mine = [row for row in rows if row.forecaster == name]
            for kind, style in STYLES.items():
                line = [row for row in mine if row.outcomes == kind]
                at = [row.rounds for row in line]
                axes.plot(at, [row.certificate for row in line], color=style["color"], ls="--", lw=0.7)
                axes.plot(at, [row.upper for row in line], label=kind, **{"linewidth": 1.2, "mfc": "none"} | style)
            axes.plot(at, [row.bound for row in line], color=GREY, lw=4, zorder=1, label="proved bound")
            axes.plot(at, [row.paper for row in line], color="black", ls=":", lw=1.5, label="2 sqrt(T) + 1")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(0.6 * min(at), 1.7 * max(at))
            axes.set_title(name, fontsize=11)
            axes.set_xlabel("T, rounds")
            axes.minorticks_off()
            axes.grid(color="#DDDDDD", lw=0.6)
            axes.set_axisbelow(True)
        panels[0].set_ylabel("distance to calibration, in total")
        handles, labels = panels[0].get_legend_handles_labels()
        handles.append(panels[0].plot([], [], color="black", ls="--", lw=0.7)[0])
        labels.append("certificates")
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=sizes, default=[100, 1_000, 10_000, 100_000], help="such as 100,1000")
    parser.add_argument("--plot", type=Path, help="where to draw, such as docs/theorem.svg")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for a distance")
    options = parser.parse_args()
    header("The theorem, measured", f"theorem.py {shlex.join(sys.argv[1:])}".strip(), "numpy")
    print(WHAT.format(exactly=EXACTLY, rtol=RTOL, limit=options.time_limit).rstrip())
    if options.plot:
        print(f"\n![CalDist against T, a panel for each forecaster]({options.plot.name})")
        print("\nCertificates are dashed, in the colours of the outcomes; where none is seen, the distance is on it.")
    rows: list[Row] = []
    for rounds in options.rounds:
        rows += [measured(rounds, name, kind, options.time_limit) for name in FORECASTERS for kind in OUTCOMES]
        table(rows[-len(FORECASTERS) * len(OUTCOMES) :])
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
