"""The three pages of benchmarks, each with a part for every script, and a table of headlines.

    python benchmarks/pages.py                    # all headlines anew, from the parts; at once
    python benchmarks/pages.py --all              # docs/benchmarks.md anew: all that is timed; 25 to 40 minutes
    python benchmarks/pages.py forecast arc       # run these scripts; put what they print in place
    python benchmarks/pages.py arc --printed FILE # the same with what a run has printed to a file

What is timed is on one page and needs a quiet machine; the parts of the other two do not. A part is on its
page once its script has ended. One that fails leaves its part as it was; the others go on.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
OURS = ("Recalibrator", "hints.", "Guard over", "the truth", "raw")  # rows that are no peers
# modules are compiled once, as they are where packages were installed
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
STREAMS = ("flights", "landing", "weather", "seattle", "airports", "drift", "flip", "distorted")


@dataclass(frozen=True)
class Part:
    """A part of a page: the script that prints it, and what it says in short."""

    page: str
    title: str
    script: str
    headline: Callable[[], str]
    takes: str
    programs: tuple[str, ...] = ()  # that it needs, beside Python

    @property
    def anchor(self) -> str:
        """Where the part begins on its page."""
        return re.sub(r"[^a-z]+", "-", self.title.lower())


def part(name: str) -> str:
    """The text of a part, without its title."""
    return dict(parts((DOCS / PARTS[name].page).read_text()))[PARTS[name].title]


def parts(page: str) -> Iterator[tuple[str, str]]:
    """Title and text of each part of a page, in order."""
    pieces = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    return zip(pieces[1::2], pieces[2::2], strict=True)


def sections(name: str) -> dict[str, str]:
    """Title -> text of each section of a part."""
    pieces = re.split(r"^### (.*)$", part(name), flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table, by its header."""
    lines = re.split(r"\n(?!\|)", text[text.index("\n|") :].strip(), maxsplit=1)[0].splitlines()
    cells = [
        [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")] for line in lines
    ]
    return [dict(zip(cells[0], row, strict=False)) for row in cells[2:]]


def span(values: list[str]) -> str:
    """The least and the largest."""
    numbers = sorted(float(value) for value in values)
    return f"{numbers[0]:.2f} to {numbers[-1]:.2f}"


def forecast() -> str:
    """Forecasters, to the chain of loads that a round is."""
    page = sections("forecast")
    ratios = re.findall(r"\*\*([\d.]+)\*\*", page["Batch against the chain"])
    pair = re.search(r"\*\*([\d.]+)\*\*", page["predict + observe from Python"])
    plain = rows(page["Against plain Python and numpy, 1,000 cells"])[1]
    assert plain["way"].startswith("plain Python")
    assert pair
    return (
        f"a round of a batch costs {span(ratios)} times its bare chain of loads, a predict "
        "and an observe from Python "
        f"{pair[1]} times two empty methods; a plain Python loop takes "
        f"{plain['times forecast_many']} times as long"
    )


def arc() -> str:
    """The forecaster on the arc: how its cost grows, and what is proved of it."""
    page = sections("arc")
    growth = re.findall(r"100,000,000 / 1,000,000 \|[ |]*\*\*([\d.]+)", page["Batch"])
    pair = re.search(r"(\d+) ns a pair, ([\d.]+) times", page["From Python"])
    proved = {
        row["T"]: row for row in rows(page["Proved before the first round, CalDist / sqrt(T)"])
    }["1,000,000"]
    assert pair
    return (
        f"a round of a batch of 10^8 costs {span(growth)} times one of 10^6, a predict and "
        "an observe from Python "
        f"{pair[2]} times two empty methods; proved at 10^6 rounds: {proved['Arc']} "
        "sqrt(T), HorizonFree "
        f"{proved['HorizonFree']}"
    )


def measure() -> str:
    """Measures, to the fastest of their peers."""
    found: dict[str, float] = {}
    for title, text in sections("measure").items():
        for row in rows(text) if title.startswith("10,000,000 rounds") else []:
            name = row["work"].split(",")[0]
            if row["against"] != "np.sort(p)":
                found[name] = max(found.get(name, 0), float(row["ratio"]))
    said = "; ".join(f"{name} {ratio:.2f}" for name, ratio in found.items())
    return f"ten million rounds, seconds of ours to those of the fastest peer, at most: {said}"


def calls() -> str:
    """The commonest measures of a hundred rounds."""
    found = {row["call"]: row["100 rounds"] for row in rows(part("calls"))}
    names = ("both arrays checked, nothing else", "brier_score", "reliability_curve", "measure")
    return "a hundred rounds: " + "; ".join(f"{name} {found[name]}" for name in names)


def distance() -> str:
    """How many kinds of forecasts reach the target, for each number of rounds."""
    said = []
    for title, text in sections("distance").items():
        target = re.search(r"^Target: (.*?)(?:;.*|\. .*)?\.$", text, re.MULTILINE)
        met = re.search(r"\*\*Met by (\d+ of \d+)\*\*", text)
        assert target
        assert met
        counted = "kinds of forecasts" if title.endswith(" rounds") else "cases"
        said.append(f"{title} {target[1]}: {met[1]} {counted}")
    return "; ".join(said)


def command_line() -> str:
    """The command, to what it stands on."""
    page = sections("command")
    start = {row[""]: row for row in rows(page["Starting"])}
    measured = rows(page["Measure: 10,000,000 rows"])
    recalibrated = rows(page["Recalibrate: 10,000,000 rows, from CSV to CSV"])[-1]
    reports = [row["s"] for row in rows(page["Report: 10,000,000 rows of CSV"])][::2]
    return (
        f"`truecast --help` takes {start['truecast --help']['times bare Python']} times bare "
        f"Python; ten million rows: `measure` {span([row['ratio'] for row in measured])} times "
        f"Polars' count of them, `recalibrate` {recalibrated['rows a second']} rows a second, "
        f"`report` {span(reports)} s"
    )


def billion() -> str:
    """Seconds and memory of the adapters."""
    return "; ".join(
        f"{row['adapter']} {row['seconds']} s and {row['MB in use at most']} MB"
        for row in rows(part("billion"))
    )


def spark() -> str:
    """Spark with truecast, to Spark alone."""
    page = sections("spark")
    few, distinct = (row["ratio"] for row in rows(page["Tallies"]))
    batch = rows(page["A batch recalibrated"])[-1]
    streams = "; ".join(
        f"a stream with {row['keys']} keys {row['median']} events a second"
        for row in rows(page["Streams"])
    )
    return (
        f"a tally takes {few} times Spark's own count, {distinct} if all scores differ; "
        f"a batch {batch['rows/s']} rows a second; {streams}"
    )


def service() -> str:
    """The service under load, and its memory."""
    page = sections("serve")
    said = [
        f"{row['database']} {row['pairs a second']} pairs a second, {row['times as many']} times a "
        "commit for each request, "
        f"and {row['rows a second in batches of 1,000']} rows a second in batches"
        for row in rows(page["Load"])
    ]
    flat = re.search(r"\*\*([\d.]+)\*\*", page["A day"])
    assert flat
    return f"{'; '.join(said)}; memory after a day {flat[1]} times that after three quarters"


def journal() -> str:
    """The service's journal: replay, restart, many streams."""
    found = {row["what"]: row["measured"].replace("*", "") for row in rows(part("journal"))}
    memory, replayed, restarted = (
        next(said for what, said in found.items() if start in what)
        for start in ("MB with", "in requests of 1,000", "rounds behind it")
    )
    return (
        f"{memory.partition(' ')[0]} MB with 10,000 streams; replays {replayed.partition(', ')[0]} "
        f"rounds a second; back after {restarted} s"
    )


def classes() -> str:
    """Several classes, to the best of other methods in hindsight."""
    over = {
        title.partition(":")[0]: found[1]
        for title, text in sections("classes").items()
        if (found := re.search(r"\*\*(\S+ %)\*\*", text))
    }
    said = ", ".join(f"{name} {figure}" for name, figure in over.items())
    return f"Brier score over the best other method: {said}"


def watching() -> str:
    """How soon an alarm comes."""
    delays = {row["change"]: row for row in rows(sections("monitor")["Delays"])}
    return "; ".join(
        f"{change} found after {delays[change]['mean_time']} rounds, "
        f"by probcal after {delays[change]['probcal']}"
        for change in ("log-odds + 0.2", "log-odds + 0.5")
    )


def recalibrating() -> str:
    """A recalibrator, a round in a batch and from Python."""
    speed = next(text for title, text in sections("recalibrating").items() if "Speed" in title)
    ours = {row["method"]: row for row in rows(speed)}["Recalibrator"]
    return (
        f"{ours['batch, rounds/s']} rounds a second in a batch; "
        f"predict and observe {ours['predict + observe, us a round']} us"
    )


def groups() -> str:
    """A batch with many groups, and without."""
    batch = rows(sections("groups")["costs"])[0]
    return f"a batch with 100,000 groups {batch['100,000 groups']}, with none {batch['no groups']}"


def classes_cost() -> str:
    """What K classes cost."""
    cost = [row["over K rounds of two classes"] for row in rows(sections("classes-cost")["Cost"])]
    return f"K classes cost {span(cost)} times K rounds of two"


def monitor_cost() -> str:
    """A round of a monitor."""
    batch, *_, peer = rows(sections("monitor-cost")["Cost"])
    return f"a round of a batch takes {batch['ns a round']} ns, of probcal's {peer['ns a round']}"


def recalibration() -> list[str]:
    """For each stream: raw, the best peer by Brier score, the best by smCE, and ours."""
    lines = [
        "| stream | raw | peer, least Brier score | peer, least smCE | Recalibrator |",
        "|---|---|---|---|---|",
    ]
    for title, text in sections("recalibrate").items():
        if not title.startswith(STREAMS):
            continue
        table = rows(text)
        by_name = {row["method"]: row for row in table}
        peers = [row for row in table if not row["method"].startswith(OURS)]
        best = [min(peers, key=lambda row: float(row[by])) for by in ("Brier", "smCE")]
        cells = [_figures(by_name["raw"]), *(f"{row['method']}: {_figures(row)}" for row in best)]
        lines.append(f"| {title} | {' | '.join(cells)} | {_figures(by_name['Recalibrator'])} |")
    return lines


def _figures(row: dict[str, str]) -> str:
    return f"{row['Brier']}, {row['smCE']}"


SPEED, REAL, WORST = "benchmarks.md", "benchmarks-recalibration.md", "benchmarks-opponents.md"

PARTS = {
    "forecast": Part(
        SPEED,
        "Forecasters",
        "forecast.py",
        forecast,
        "two minutes",
        (os.environ.get("CXX", "c++"),),
    ),
    "arc": Part(SPEED, "The arc", "arc.py", arc, "three minutes"),
    "recalibrating": Part(
        SPEED, "Recalibrating", "recalibrate.py --markdown --speed", recalibrating, "a minute"
    ),
    "groups": Part(
        SPEED, "Groups", "hard_cases.py --markdown --cases costs", groups, "two minutes"
    ),
    "classes-cost": Part(
        SPEED, "Classes", "classes_recalibrate.py --streams --cost", classes_cost, "half a minute"
    ),
    "monitor-cost": Part(SPEED, "Monitors", "monitor.py --only cost", monitor_cost, "a minute"),
    "measure": Part(SPEED, "Measures", "measure.py", measure, "four minutes"),
    "calls": Part(SPEED, "The commonest calls", "calls.py", calls, "two minutes"),
    "distance": Part(SPEED, "The distance", "distance.py", distance, "nine minutes"),
    "command": Part(SPEED, "The command", "command.py", command_line, "three minutes"),
    "billion": Part(SPEED, "A billion rows", "billion.py", billion, "three minutes"),
    "spark": Part(SPEED, "Spark", "spark.py", spark, "six minutes", ("java",)),
    "serve": Part(SPEED, "The service", "serve.py", service, "four minutes"),
    "journal": Part(SPEED, "The journal", "journal.py", journal, "three minutes"),
    "recalibrate": Part(
        REAL,
        "Streams",
        "recalibrate.py --markdown",
        lambda: "against other methods: the table below",
        "20 minutes",
    ),
    "hard-cases": Part(
        REAL,
        "Hard cases",
        "hard_cases.py --markdown",
        lambda: "where recalibrating is hard, or can only cost",
        "ten minutes",
    ),
    "classes": Part(REAL, "Several classes", "classes_recalibrate.py", classes, "ten minutes"),
    "monitor": Part(REAL, "Watching", "monitor.py", watching, "six minutes"),
    "theorem": Part(
        WORST,
        "The theorem",
        "theorem.py",
        lambda: "how far forecasters are from calibrated, beside what is proved",
        "some minutes",
    ),
    "arena": Part(
        WORST,
        "The arena",
        "arena.py --curves docs/arena.json",
        lambda: "all forecasters against all adversaries",
        "some minutes",
    ),
    "worst-case": Part(
        WORST,
        "Worst cases",
        "worst_case.py",
        lambda: "exact for short games, searched for in long ones",
        "some minutes",
    ),
    "minimax": Part(
        WORST,
        "The minimax game",
        "minimax.py",
        lambda: "what any forecaster must pay, for few rounds",
        "ten minutes, 2 GB",
    ),
}

ABOUT = """
One run of one command prints each part below. It names the machine and the versions, and compares within that run: read
ratios, not seconds. No test asserts a time.

| part | made anew by | in short |
|---|---|---|
"""

HEADS = {
    SPEED: """# Benchmarks: how fast

The cost of forecasters, recalibrators, monitors, measures, the command, Spark and the service, beside peers or what the
machine can do at best. On a quiet machine with two cores, `python benchmarks/pages.py --all` makes this page in 25 to 40 minutes.
How good the forecasts are is on two other pages: [on real streams](benchmarks-recalibration.md) and
[against opponents](benchmarks-opponents.md).
""",
    REAL: """# Benchmarks: how good on streams

A recalibrator beside other methods, on real streams and made ones, late outcomes included; cases that are hard; several classes; and alarms.
""",
    WORST: """# Benchmarks: against opponents

How far forecasters are from calibrated when somebody chooses the outcomes, beside what is proved.
""",
}

RECALIBRATION = """
Each cell has the Brier score, then the smooth calibration error, of the forecasts in all rounds; lower is better. The
two peers are each the best of their kind on that stream, chosen in hindsight, so the comparison favours them. A low
calibration error alone is no merit: a running mean can have one. What each method is, and figures with other measures:
[below](#streams).

"""


def head(page: str) -> str:
    """What stands above the parts of a page."""
    table = [
        f"| [{it.title}](#{it.anchor}) | `python benchmarks/pages.py {name}`, {it.takes} "
        f"| {it.headline()} |"
        for name, it in PARTS.items()
        if it.page == page
    ]
    summary = RECALIBRATION + "\n".join(recalibration()) + "\n" if page == REAL else ""
    return HEADS[page] + ABOUT + "\n".join(table) + "\n" + summary


def ran(name: str) -> str:
    """Run a script from the root; what it prints, which is shown meanwhile."""
    words = [sys.executable, *f"{HERE / PARTS[name].script}".split(" ")]
    with subprocess.Popen(
        words, cwd=HERE.parent, env=COMPILED, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            sys.stderr.write(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return "".join(lines)


def lowered(printed: str) -> str:
    """What a script printed as a part of a page: without its title, sections one level lower."""
    lines, code = [], False
    for line in printed.strip().splitlines()[1:]:
        code ^= line.startswith("```")
        lines.append("#" + line if line.startswith("#") and not code else line)
    return "\n" + "\n".join(lines).strip() + "\n"


def put(name: str, text: str) -> None:
    """Put a part in its place on its page."""
    path, title = DOCS / PARTS[name].page, PARTS[name].title
    there = dict(parts(path.read_text())) if path.exists() else {}
    there[title] = text
    order = [it.title for it in PARTS.values() if it.page == path.name and it.title in there]
    path.write_text("".join(f"## {one}\n\n{there[one].strip()}\n\n" for one in order))


def heads() -> None:
    """Write what stands above the parts anew, on all pages."""
    for page in HEADS:
        below = "\n".join(
            f"## {title}\n\n{text.strip()}\n" for title, text in parts((DOCS / page).read_text())
        )
        (DOCS / page).write_text(f"{head(page)}\n{below}")


def renewed(name: str, printed: Path | None) -> str:
    """Put a part in its place; how that went."""
    if missing := [each for each in PARTS[name].programs if not shutil.which(each)]:
        return f"skipped: there is no {', '.join(missing)}"
    start = time.monotonic()
    page = DOCS / PARTS[name].page
    before = page.read_text()
    try:
        put(name, lowered(printed.read_text() if printed else ran(name)))
        heads()
    except Exception:
        traceback.print_exc()
        page.write_text(before)
        return f"FAILED after {(time.monotonic() - start) / 60:.1f} minutes: its part is as it was"
    return f"{(time.monotonic() - start) / 60:.1f} minutes"


def main() -> None:
    """Run what is asked for, one after another, and write all heads anew."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("names", nargs="*", metavar="NAME")
    asked.add_argument("--all", action="store_true", help="all parts that are timed")
    asked.add_argument("--printed", type=Path, help="what a run of the one script has printed")
    options = asked.parse_args()
    if unknown := set(options.names) - set(PARTS):
        asked.error(f"no {', '.join(unknown)}: one of {', '.join(PARTS)}")
    if options.all and options.names:
        asked.error("--all goes without names")
    if options.printed and len(options.names) != 1:
        asked.error("--printed goes with one name")
    names = (
        [name for name, it in PARTS.items() if it.page == SPEED] if options.all else options.names
    )
    went: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        print(f"\n== {number} of {len(names)}: {name}, {PARTS[name].takes}", file=sys.stderr)
        went[name] = renewed(name, options.printed)
        print(f"== {name}: {went[name]}", file=sys.stderr, flush=True)
    heads()
    for name, how in went.items():
        print(f"{name:15} {how}")
    sys.exit(int(any(how.startswith("FAILED") for how in went.values())))


if __name__ == "__main__":
    main()
