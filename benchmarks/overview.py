"""The overview of all benchmark pages: what each measures, its command, its headline.

python benchmarks/overview.py > docs/benchmarks.md     # at once; after any page was made anew
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
OURS = ("Recalibrator", "hints.", "Guard over", "the truth", "raw")  # rows that are no peers
STREAMS = ("flights", "landing", "weather", "seattle", "airports", "drift", "flip", "distorted")


def read(page: str) -> str:
    """A page's text."""
    return (DOCS / page).read_text()


def command(page: str) -> str:
    """What a page says it was made by."""
    made = re.search(r"^Made by `([^`]+)`", read(page), re.MULTILINE)
    assert made, page
    return made[1]


def rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table, by its header."""
    lines = re.split(r"\n(?!\|)", text[text.index("\n|") :].strip(), maxsplit=1)[0].splitlines()
    cells = [
        [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")] for line in lines
    ]
    return [dict(zip(cells[0], row, strict=False)) for row in cells[2:]]


def sections(page: str) -> dict[str, str]:
    """Title -> text of each section."""
    parts = re.split(r"^## (.*)$", read(page), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def span(values: list[str]) -> str:
    """The least and the largest."""
    numbers = sorted(float(value) for value in values)
    return f"{numbers[0]:.2f} to {numbers[-1]:.2f}"


def forecast() -> str:
    """Forecasters, to the chain of loads that a round is."""
    page = sections("benchmarks-forecast.md")
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
    page = sections("benchmarks-arc.md")
    growth = re.findall(r"longest / shortest \| \*\*([\d.]+)\*\*", page["Batch"])
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
    for title, text in sections("benchmarks-measure.md").items():
        for row in rows(text) if title.startswith("10,000,000 rounds") else []:
            name = row["work"].split(",")[0]
            if row["against"] != "np.sort(p)":
                found[name] = max(found.get(name, 0), float(row["ratio"]))
    said = "; ".join(f"{name} {ratio:.2f}" for name, ratio in found.items())
    return f"ten million rounds, seconds of ours to those of the fastest peer, at most: {said}"


def distance() -> str:
    """How many kinds of forecasts reach the target, for each number of rounds."""
    said = []
    for title, text in sections("benchmarks-distance.md").items():
        target = re.search(r"^Target: (.*?)(?:;.*)?\.$", text, re.MULTILINE)
        met = re.search(r"\*\*Met by (\d+ of \d+)\*\*", text)
        assert target
        assert met
        said.append(f"{title} {target[1]}: {met[1]} kinds of forecasts")
    return "; ".join(said)


def command_line() -> str:
    """The command, to what it stands on."""
    start, measured, recalibrated, page = (
        rows(text) for text in sections("benchmarks-command.md").values()
    )
    return (
        f"`truecast --help` takes {start[1]['times bare Python']} times bare Python; `measure` "
        f"{span([row['ratio'] for row in measured])} times reading and measuring the same "
        "columns; `recalibrate` from "
        f"CSV to CSV {recalibrated[2]['rows a second']} rows a second; `report` {page[0]['s']} s"
    )


def billion() -> str:
    """Seconds and memory of the adapters."""
    return "; ".join(
        f"{row['adapter']} {row['seconds']} s and {row['MB in use at most']} MB"
        for row in rows(read("benchmarks-billion.md"))
    )


def spark() -> str:
    """Spark with truecast, to Spark alone."""
    page = sections("benchmarks-spark.md")
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


def recalibration() -> list[str]:
    """For each stream: raw, the best peer by Brier score, the best by smCE, and ours."""
    lines = [
        "| stream | raw | peer, least Brier score | peer, least smCE | Recalibrator |",
        "|---|---|---|---|---|",
    ]
    for title, text in sections("benchmarks-recalibrate.md").items():
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


PAGES = [
    ("benchmarks-forecast.md", "Forecasters", forecast),
    ("benchmarks-arc.md", "The arc", arc),
    ("benchmarks-measure.md", "Measures", measure),
    ("benchmarks-distance.md", "The distance to calibration", distance),
    ("benchmarks-billion.md", "A billion rows of Parquet", billion),
    ("benchmarks-command.md", "The command", command_line),
    ("benchmarks-spark.md", "Spark", spark),
    ("benchmarks-recalibrate.md", "Recalibration", lambda: "the table below"),
    (
        "benchmarks-hard-cases.md",
        "Hard cases",
        lambda: "where recalibrating is hard, or can only cost",
    ),
    ("benchmarks-monitor.md", "Watching", lambda: "false alarms, delays and cost of alarms"),
    (
        "theorem-measured.md",
        "The theorem",
        lambda: "how far forecasters are from calibrated, beside what is proved",
    ),
    ("arena.md", "The arena", lambda: "all forecasters against all adversaries"),
    ("worst-case.md", "Worst cases", lambda: "exact for short games, searched for in long ones"),
    (
        "minimax-measured.md",
        "The minimax game",
        lambda: "what any forecaster must pay, for few rounds",
    ),
]

HEAD = """# Benchmarks

Made by `python benchmarks/overview.py` from the pages below. Each of them is printed by one run of its command, names
the machine and the versions, and compares within that run: read ratios, not seconds. No test asserts a time.

| page | made by | in short |
|---|---|---|
"""

RECALIBRATION = """
## Recalibration: Brier score and smooth calibration error

Each cell has the Brier score, then the smooth calibration error, of the forecasts in all rounds; lower is better. The
two peers are each the best of their kind on that stream, chosen in hindsight, so the comparison favours them. A low
calibration error alone is no merit: a running mean can have one. What each method is, and figures with other measures:
[the page](benchmarks-recalibrate.md).

"""


def overview() -> str:
    """The page."""
    pages = [
        f"| [{title}]({page}) | `{command(page)}` | {headline()} |"
        for page, title, headline in PAGES
        if (DOCS / page).exists()
    ]
    return HEAD + "\n".join(pages) + "\n" + RECALIBRATION + "\n".join(recalibration()) + "\n"


if __name__ == "__main__":
    print(overview(), end="")
