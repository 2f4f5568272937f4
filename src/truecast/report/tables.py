"""The tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from truecast.measures.finder import SIGNIFICANT, Stretch
from truecast.report.charts import group_strip
from truecast.report.glossary import entries
from truecast.report.markup import Markup, different, name, tag
from truecast.report.numerals import NONE, apart, between, count, figure, p_value, percent, signed
from truecast.report.verdict import verdict

if TYPE_CHECKING:
    from truecast.measures.class_report import ClassReport
    from truecast.measures.report import Report
    from truecast.plot import GroupOverview
    from truecast.report.findings import Finding

__all__ = [
    "CHANGED_GROUPS",
    "before_after_table",
    "both_places",
    "changes_table",
    "figures_table",
    "flagged",
    "framed",
    "groups_table",
    "ranges_table",
    "scores_changed",
    "scores_table",
    "table_row",
]

_P_VALUE = "p\N{NON-BREAKING HYPHEN}value"
CHANGED_GROUPS = (
    "Groups before and after recalibration, those with the most evidence against their "
    "recalibrated forecasts first."
)


def ranges_table(ranges: Sequence[Stretch]) -> Markup:
    """Return what came of forecasts, range by range."""
    span = ranges[-1].high - ranges[0].low
    rows = [_range(part, span) for part in ranges]
    head = ("forecasts", "gap", _P_VALUE, "mean forecast", "came true", "rounds")
    marks = "No gap is beyond chance by itself"
    if any(part.off for part in ranges):
        marks = "An asterisk marks gaps beyond chance by themselves"
    allow = (
        "p-values account for the whole search: if forecasts are calibrated, 19 pages in 20 mark "
        "nothing."
    )
    return framed(
        f"Ranges of forecasts. {marks}; {allow}", head, [table_row(row) for row in rows], "ranges"
    )


def _range(part: Stretch, span: float) -> list[object]:
    ends = tag(
        "span", f"\u2009{NONE}\u2009".join(between(part.low, part.high, span)), class_="whole"
    )
    forecast, rate = apart(part.forecast, part.rate)
    return [
        ends,
        flagged(signed(part.gap), part.off),
        p_value(part.p_value),
        forecast,
        rate,
        count(part.rounds),
    ]


def groups_table(
    overview: GroupOverview, title: str, number: int, after: GroupOverview | None = None
) -> Markup:
    """Return this number of groups, those with the most evidence against them."""
    if after is not None:
        return _changed_groups(overview, after, title, number)
    shown = range(min(number, len(overview)))
    sizes = np.append(overview.error[: len(shown)], overview.chance_high[: len(shown)])
    most = float(np.nanmax(sizes))
    names = different(overview.names[: len(shown)])
    rows = [_group(overview, k, names[k], most) for k in shown]
    chance = f"by chance, at most ({percent(overview.level)})"
    head = (
        name(title),
        f"adjusted {_P_VALUE}",
        "smooth calib. error",
        "error (dot), chance (bar)",
        chance,
    )
    caption = (
        "Groups, those with the most evidence against calibration first. An asterisk marks those "
        "that stand out."
    )
    return _table(
        caption, (*head, "rounds", "mean forecast", "came true", "Brier score"), rows, "group"
    )


def _group(overview: GroupOverview, k: int, label: str, most: float) -> list[object]:
    error = overview.error[k].item()
    high = overview.chance_high[k].item()
    adjusted = overview.adjusted[k].item()
    words = f"error {figure(error)}, by chance {figure(high)}"
    means = (
        figure(column[k].item())
        for column in (overview.mean_forecast, overview.mean_outcome, overview.brier)
    )
    return [
        name(label),
        flagged(p_value(adjusted), adjusted < SIGNIFICANT),
        figure(error),
        tag(
            "td",
            group_strip(error, high, most, words, off=adjusted < SIGNIFICANT),
            class_="strip",
        ),
        figure(high),
        count(overview.rounds[k].item()),
        *means,
    ]


def _changed_groups(before: GroupOverview, after: GroupOverview, title: str, number: int) -> Markup:
    """Return groups before and after recalibration; those that are still off come first."""
    pairs = both_places(before.names, after.names)[:number]
    was, now = np.array(pairs).T
    sizes = (before.error[was], after.error[now], after.chance_high[now])
    most = float(np.nanmax(np.concatenate(sizes)))
    names = different(after.names[k] for k in now)
    rows = []
    for (old, new), label in zip(pairs, names, strict=True):
        errors = before.error[old].item(), after.error[new].item()
        high = after.chance_high[new].item()
        words = "error {}, after {}".format(*map(figure, errors))
        strip = group_strip(errors[0], high, most, words, after=errors[1])
        cells = [
            name(label),
            *(
                flagged(p_value(p), p < SIGNIFICANT)
                for p in (before.adjusted[old].item(), after.adjusted[new].item())
            ),
            *map(figure, errors),
            tag("td", strip, class_="strip"),
            figure(high),
            *apart(before.brier[old].item(), after.brier[new].item()),
            count(after.rounds[new].item()),
        ]
        rows.append(cells)
    head = (
        name(title),
        f"adjusted {_P_VALUE}, before",
        "after",
        "smooth calib. error, before",
        "after",
        "before (blue), after (green), chance (bar)",
        f"by chance, at most ({percent(after.level)})",
        "Brier score, before",
        "after",
        "rounds",
    )
    return _table(f"{CHANGED_GROUPS} An asterisk marks those that stand out.", head, rows, "group")


def both_places(before: Sequence[object], after: Sequence[object]) -> list[tuple[int, int]]:
    """Return where each group is before and after, in the order of after."""
    places = {name: k for k, name in enumerate(before)}
    return [(places[name], k) for k, name in enumerate(after) if name in places]


def scores_table(findings: Sequence[Finding]) -> Markup:
    """Return the scores side by side."""
    calibrated = tag("th", "calibrated?", class_="words", scope="col")
    head = (
        "score",
        calibrated,
        _P_VALUE,
        "Brier score",
        "skill",
        "log loss",
        "smooth calib. error",
        "by chance",
    )
    caption = "Skill: how much the Brier score improves on always saying the average."
    return _table(caption, head, map(_score, findings))


def _score(finding: Finding) -> list[object]:
    brier = finding.figures.brier
    error = finding.smooth_error
    return [
        name(finding.label),
        tag("td", verdict(finding).short, class_="words"),
        p_value(finding.p_value),
        figure(brier.score),
        percent(round(1 - brier.score / brier.uncertainty, 12)) if brier.uncertainty else NONE,
        figure(finding.figures.log.score),
        figure(finding.figures.smooth_calibration_error),
        NONE if error is None else figure(error.if_calibrated),
    ]


def before_after_table(before: Finding, after: Finding) -> Markup:
    """Return the figures that recalibration changes."""
    was, now = before.figures, after.figures
    errors = was.smooth_calibration_error, now.smooth_calibration_error
    rows = [*scores_changed("Brier score", was, now), ("Smooth calibration error", *errors)]
    sure: list[tuple[str, str, str]] = []
    if before.smooth_error is not None and after.smooth_error is not None:
        chance = [figure(side.if_calibrated) for side in (before.smooth_error, after.smooth_error)]
        sure.append(("\u2003how large by chance", chance[0], chance[1]))
        sure.append((f"\u2003{_P_VALUE}", p_value(before.p_value), p_value(after.p_value)))
    return changes_table(rows, *sure)


def scores_changed(
    brier: str, was: Report | ClassReport, now: Report | ClassReport
) -> list[tuple[str, float, float]]:
    """Return the proper scores before and after; the first is called `brier`."""
    return [
        (brier, was.brier.score, now.brier.score),
        ("\u2003miscalibration", was.brier.miscalibration, now.brier.miscalibration),
        ("\u2003discrimination", was.brier.discrimination, now.brier.discrimination),
        ("Log loss", was.log.score, now.log.score),
    ]


def changes_table(rows: Iterable[tuple[str, float, float]], *more: Sequence[object]) -> Markup:
    """Return figures before and after recalibration, and rows that are written already."""
    cells = [(label, *apart(was, now)) for label, was, now in rows]
    caption = "The same rounds. Lower is better, except for discrimination."
    return _table(caption, ("", "before", "after"), [*cells, *more])


def figures_table(report: Report) -> Markup:
    """Return every figure, with what it means."""
    rows = []
    for entry in entries(report):
        if entry.value is None:
            rows.append(
                tag("tr", tag("th", entry.label, scope="colgroup", colspan="3"), class_="part")
            )
            continue
        label = "\u2003" * entry.depth + entry.label
        rows.append(
            table_row([label, figure(entry.value), tag("td", entry.meaning, class_="words")])
        )
    head = (
        "figure",
        "per round",
        tag("th", "what it means, and what it does not", class_="words", scope="col"),
    )
    return framed("Every figure of truecast.measure", head, rows)


def flagged(text: str, flag: bool) -> Markup:
    """Return a cell, marked if there is something about it."""
    if flag:
        return tag("td", tag("span", text, class_="flag"), "\u2009*")
    return tag("td", text, class_="plain")


def _table(
    caption: str, head: Sequence[object], rows: Iterable[Sequence[object]], kind: str | None = None
) -> Markup:
    return framed(caption, head, [table_row(row, kind) for row in rows])


def framed(
    caption: str, head: Sequence[object], rows: Sequence[Markup], kind: str | None = None
) -> Markup:
    """Return a table that scrolls by itself where it is too wide; the page does not."""
    cells = (cell if _is_cell(cell) else tag("th", cell, scope="col") for cell in head)
    parts = (
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *cells)),
        tag("tbody", *rows),
    )
    return tag(
        "div",
        tag("table", *parts, class_=kind),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def table_row(cells: Sequence[object], kind: str | None = None) -> Markup:
    """Return a row, of which the first cell is its head."""
    first = tag("th", cells[0], scope="row", class_=kind)
    return tag("tr", first, *(cell if _is_cell(cell) else tag("td", cell) for cell in cells[1:]))


def _is_cell(cell: object) -> bool:
    return isinstance(cell, Markup) and cell.startswith(("<td", "<th"))
