"""The page about several classes: a picture for each, and what was predicted against what came."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from truecast.measures.class_report import NOT_PROMISED
from truecast.measures.classes import NOTIONS
from truecast.measures.corp import reliability_curve
from truecast.measures.finder import SIGNIFICANT
from truecast.measures.uncertainty import reliability_band
from truecast.recalibrate import ClassCertificate
from truecast.report.charts import band_of_chance, best_curve, group_strip
from truecast.report.class_advice import class_advice
from truecast.report.class_findings import WAYS
from truecast.report.markup import Markup, different, name, tag
from truecast.report.numerals import (
    apart,
    count,
    figure,
    p_value,
    percent,
    probability,
    rounds,
)
from truecast.report.sections import (
    advice_list,
    compared,
    facts_list,
    group_blocks,
    quiet,
    tile,
)
from truecast.report.svg import bars, chart, line, rule, scale, text
from truecast.report.tables import (
    CHANGED_GROUPS,
    both_places,
    changes_table,
    flagged,
    framed,
    scores_changed,
    table_row,
)
from truecast.report.verdict import colour
from truecast.report.words import BEFORE, LATER, at_their_worst, score_sentence

if TYPE_CHECKING:
    from truecast.report.class_findings import ClassFinding
    from truecast.report.class_groups import ClassGroups
    from truecast.report.context import Context
    from truecast.tally import Tally

__all__ = ["class_sections"]

_PICTURES = 12  # classes with a picture
_ROWS = 60  # classes in the table
_CONFUSED = 20  # classes in the table of predicted and actual ones
_RESAMPLES = 100
_BINS = 20
_SHADES = 8
_GROUPS = 40  # in the table
_MARKED_GROUPS = (
    "An asterisk marks groups with a class that is off beyond chance, allowing for all classes "
    "and all groups."
)
_WIDTH, _LEFT, _TOP, _SIDE, _BELOW = 232.0, 30.0, 8.0, 196.0, 40.0


def class_sections(finding: ClassFinding, context: Context) -> list[Markup]:
    """Return all sections."""
    after = finding.after
    judged = _verdict(finding) if after is None else _changed(finding, after)
    parts = [
        ("verdict", "Is it calibrated, and how sure are we?", judged),
        ("measured", "What was measured", _measured(finding, context)),
        ("classes", "Class by class", _classes(finding)),
    ]
    if finding.groups is not None:
        later = None if after is None else after.groups
        earlier = [] if after is None or later is not None else [quiet(BEFORE)]
        table = partial(_group_table, finding.groups, context.group or "group", later)
        blocks = group_blocks(finding.groups, _GROUPS, table, later)
        parts.append(("groups", "Groups", earlier + blocks))
    parts.append(("confusion", "What was predicted, and what came", _confusion(finding)))
    if isinstance(context.certificate, ClassCertificate):
        parts.append(("certificate", "What is proved", _certificate(context.certificate)))
    parts += [
        ("advice", "What to do", advice_list(class_advice(finding, context))),
        ("notions", "What these figures mean", _notions()),
        ("figures", "All figures", _figures(finding)),
    ]
    return [tag("section", tag("h2", title), *inside, id=key) for key, title, inside in parts]


def _verdict(finding: ClassFinding) -> list[Markup]:
    figures = finding.figures
    p = finding.p_value
    tiles = [
        tile(
            "classwise smooth errors, summed",
            figure(figures.classwise.sum),
            f"worst: {figure(figures.classwise.worst)}",
        ),
        None if p is None else tile("smallest p-value", p_value(p), "adjusted for all classes"),
        compared("Brier score", figures.brier.score, figures.brier.uncertainty, "shares"),
        compared("log loss", figures.log.score, figures.log.uncertainty, "shares"),
        tile(
            "the predicted class came",
            percent(figures.accuracy),
            f"forecast: {percent(figures.mean_confidence)}",
        ),
    ]
    words = [f"{finding.headline}.", *finding.sentences]
    return [
        _said(finding, words),
        tag("dl", *tiles, class_="tiles"),
    ]


def _changed(before: ClassFinding, after: ClassFinding) -> list[Markup]:
    """Return verdict and figures of both; the recalibrated forecasts are what counts."""
    was, now = before.figures, after.figures
    errors = " to ".join(apart(was.classwise.sum, now.classwise.sum))
    words = [
        f"{before.headline}.",
        f"{score_sentence('Brier score', was.brier.score, now.brier.score)}; the classwise smooth "
        f"errors, summed, went from {errors}.",
        *(f"After: {sentence}" for sentence in after.sentences),
        *(f"Before: {sentence}" for sentence in before.sentences[:-1]),
    ]
    rows = [
        *scores_changed("Brier score, sum of classes", was, now),
        ("Classwise smooth errors, summed", was.classwise.sum, now.classwise.sum),
    ]
    if before.sure is not None and after.sure is not None:
        by_chance = float(before.sure.chance.sum()), float(after.sure.chance.sum())
        rows.append(("\u2003how large by chance", *by_chance))
    rows += [
        ("Top-label smooth errors, summed", was.top_label.sum, now.top_label.sum),
        ("The predicted class was wrong", 1 - was.accuracy, 1 - now.accuracy),
        ("Always saying the shares: Brier score", was.brier.uncertainty, now.brier.uncertainty),
    ]
    return [
        _said(after, words),
        changes_table(rows),
        quiet(LATER),
    ]


def _said(finding: ClassFinding, words: Sequence[str]) -> Markup:
    """Return a verdict in the colour of what was found."""
    kind = colour(finding.kind, finding.off_in_parts)
    return tag("div", *(tag("p", sentence) for sentence in words), class_=f"verdict {kind}")


def _measured(finding: ClassFinding, context: Context) -> list[Markup]:
    figures = finding.figures
    facts: list[tuple[str, object]] = [
        ("source", None if context.source is None else name(context.source)),
        ("rounds" if isinstance(figures.total, int) else "total weight", count(figures.total)),
        ("rows skipped", count(context.skipped) if context.skipped else None),
        ("outcome", None if context.outcome is None else name(context.outcome)),
        ("classes", count(len(figures.labels))),
    ]
    return facts_list(facts)


def _classes(finding: ClassFinding) -> list[Markup]:
    figures = finding.figures
    names = different(figures.labels)
    sides = [("", finding)]
    if finding.after is not None:
        sides = [(", before", finding), (", after", finding.after)]
    shown = _most_off(finding, _PICTURES // len(sides))
    pictures = [
        tag(
            "figure",
            tag(
                "figcaption",
                tag("b", name(names[k]), when),
                f", came in {percent(figures.rate[k])}",
            ),
            class_chart(side.tally.classes[k], f"Reliability of {names[k]}{when}"),
        )
        for k in shown
        for when, side in sides
    ]
    rest = len(figures.labels) - len(shown)
    more = f" Those with the largest errors; {count(rest)} more are not shown." if rest else ""
    caption = (
        "Blue: the share that came true, by forecast. Dashed: as forecast. Grey: where the curve "
        f"would be by chance, 90 % at each forecast. Bars: how often.{more}"
    )
    return [
        tag("div", *pictures, class_="multiples pairs" if finding.after else "multiples"),
        quiet(caption),
        *(_class_table(side, names, when) for when, side in sides),
    ]


def _most_off(finding: ClassFinding, most: int) -> list[int]:
    """Return the classes with the largest errors, in their own order."""
    each = finding.figures.classwise.each
    return sorted(np.argsort(-each, kind="stable")[:most].tolist())


def _class_table(finding: ClassFinding, names: Sequence[str], when: str) -> Markup:
    figures, sure = finding.figures, finding.sure
    shown = _most_off(finding, _ROWS)
    highs = [0.0] if sure is None else sure.chance_high[shown].tolist()
    most = max([*highs, *figures.classwise.each[shown].tolist()])
    rows = []
    for k in shown:
        error = float(figures.classwise.each[k])
        high = float("nan") if sure is None else float(sure.chance_high[k])
        p = float("nan") if sure is None else float(sure.adjusted[k])
        forecast, came = apart(figures.mean_forecast[k], figures.rate[k])
        off = figures.labels[k] in finding.off
        strip = group_strip(error, high, most, f"error {figure(error)}", off=off)
        cells = [
            name(names[k]),
            flagged(figure(error), off),
            tag("td", strip, class_="strip"),
            p_value(p),
            came,
            forecast,
            percent(float(figures.top_label.share[k])),
            figure(figures.parts.brier[k].score),
            figure(figures.parts.brier[k].miscalibration),
        ]
        rows.append(table_row(cells))
    head = (
        "class",
        "smooth calib. error",
        "error (dot), chance (bar)",
        "adjusted p\N{NON-BREAKING HYPHEN}value",
        "came",
        "mean forecast",
        "predicted",
        "Brier score",
        "of that miscal\N{SOFT HYPHEN}ibration",
    )
    caption = (
        f"Classes{when}. p-values allow for all classes (Holm). An asterisk marks errors beyond "
        f"chance: those below {SIGNIFICANT / WAYS:.2g}, as there are {WAYS} ways to look at the "
        "classes. Their Brier scores add up to the whole."
    )
    return framed(caption, head, rows)


def _group_table(groups: ClassGroups, title: str, after: ClassGroups | None) -> Markup:
    """Return the groups with the most evidence against them."""
    if after is not None:
        return _changed_groups(groups, after, title)
    shown = min(len(groups), _GROUPS)
    names = different(groups.names[:shown])
    adjusted = groups.adjusted
    rows = []
    for k in range(shown):
        figures, p = groups.figures[k], float(adjusted[k])
        worst = figures.classwise.worst_label
        cells = [
            name(names[k]),
            flagged(p_value(p), p < SIGNIFICANT),
            figure(figures.classwise.sum),
            figure(float(groups.chance[k])),
            tag("td", figure(figures.classwise.worst), " ", name(str(worst))),
            figure(figures.top_label.sum),
            figure(figures.confidence),
            figure(figures.brier.score),
            figure(figures.log.score),
            count(figures.total),
        ]
        rows.append(table_row(cells, "group"))
    head = (
        name(title),
        "adjusted p\N{NON-BREAKING HYPHEN}value",
        "classwise errors, summed",
        "how large by chance",
        "worst class",
        "top-label errors, summed",
        "confi\N{SOFT HYPHEN}dence error",
        "Brier score",
        "log loss",
        "rounds",
    )
    caption = (
        "Groups, those with the most evidence against them first. Errors are smooth calibration "
        f"errors. {_MARKED_GROUPS}"
    )
    return framed(caption, head, rows)


def _changed_groups(before: ClassGroups, after: ClassGroups, title: str) -> Markup:
    """Return groups before and after recalibration; those that are still off come first."""
    pairs = both_places(before.names, after.names)[:_GROUPS]
    names = different(after.names[new] for _, new in pairs)
    adjusted = before.adjusted, after.adjusted
    rows = []
    for (old, new), label in zip(pairs, names, strict=True):
        was, now = before.figures[old], after.figures[new]
        cells = [
            name(label),
            *(
                flagged(p_value(p), p < SIGNIFICANT)
                for p in (float(adjusted[0][old]), float(adjusted[1][new]))
            ),
            *apart(was.classwise.sum, now.classwise.sum),
            figure(float(after.chance[new])),
            *apart(was.top_label.sum, now.top_label.sum),
            *apart(was.brier.score, now.brier.score),
            count(now.total),
        ]
        rows.append(table_row(cells, "group"))
    head = (
        name(title),
        "adjusted p\N{NON-BREAKING HYPHEN}value, before",
        "after",
        "classwise errors, summed, before",
        "after",
        "how large by chance",
        "top-label errors, summed, before",
        "after",
        "Brier score, before",
        "after",
        "rounds",
    )
    return framed(f"{CHANGED_GROUPS} {_MARKED_GROUPS}", head, rows)


def _certificate(certificate: ClassCertificate) -> list[Markup]:
    """Return what is proved about each class, and what that does not tell."""
    late = certificate.unresolved
    made, worst = certificate.rounds + late, at_their_worst(late)
    sentences = [
        f"The distances of the {count(len(certificate.classes))} classes to perfect calibration "
        f"sum to at most {figure(certificate.per_round)} a round over these {rounds(made)}{worst}: "
        "proved, not estimated, whatever caused the outcomes.",
        f"At worst this could be {figure(certificate.a_priori / max(made, 1))} a round, whatever "
        "the outcomes: that is proved, too.",
        "This covers these rounds together, and each class by itself: not any single round, not "
        "future ones, and not whole rows. It does not say that the forecasts are sharp: for that, "
        f"read the Brier score, {figure(certificate.brier)}.",
    ]
    return [tag("p", sentence) for sentence in sentences]


def class_chart(tally: Tally, label: str) -> Markup:
    """Return a small reliability diagram: curve, band of chance, and how often."""
    bottom = _TOP + _SIDE
    x, y = scale(0.0, 1.0, _LEFT, _LEFT + _SIDE), scale(0.0, 1.0, bottom, _TOP)
    edges = np.arange(_BINS + 1) / _BINS
    at = np.minimum((tally.p * _BINS).astype(np.int64), _BINS - 1)
    often = np.bincount(at, tally.weights, _BINS)
    height = scale(0.0, float(often.max()), bottom + _BELOW, bottom + 12)
    band = None if tally.weighted else reliability_band(tally, resamples=_RESAMPLES)
    marks = (0.0, 0.5, 1.0)
    parts = [
        *(rule(_LEFT, y(mark), _LEFT + _SIDE, y(mark), "grid") for mark in marks),
        *(rule(x(mark), _TOP, x(mark), bottom, "grid") for mark in marks),
        *(text(_LEFT - 5, y(mark) + 4, probability(mark), "end") for mark in marks),
        None if band is None else band_of_chance(band, x, y, _SIDE),
        line([0.0, 1.0], [0.0, 1.0], x, y, "ideal"),
        best_curve(reliability_curve(tally), x, y),
        bars(edges, 0 * often, often, x, height, "zeros"),
        rule(_LEFT, bottom + _BELOW, _LEFT + _SIDE, bottom + _BELOW),
        *(text(x(mark), bottom + _BELOW + 15, probability(mark), "middle") for mark in marks),
    ]
    return chart(label, _WIDTH, bottom + _BELOW + 20, parts)


def _confusion(finding: ClassFinding) -> list[Markup]:
    """Return the table of predicted and actual classes; of recalibrated forecasts, if any."""
    if finding.after is not None:
        about = "This is about the recalibrated forecasts."
        return [quiet(about), *_confusion(finding.after)]
    table = finding.tally.confusion
    names = different(finding.figures.labels)
    both = table.sum(axis=0) + table.sum(axis=1)
    shown = sorted(np.argsort(-both, kind="stable")[:_CONFUSED].tolist())
    sums = table.sum(axis=1)
    rows = []
    for i in shown:
        share = table[i, shown] / max(float(sums[i]), 1e-300)
        cells = [
            tag(
                "td",
                count(table[i, j].item()),
                class_=f"shade-{round(float(part) * _SHADES)}",
                title=f"{percent(float(part))} of {names[i]} predicted",
            )
            for j, part in zip(shown, share, strict=True)
        ]
        right = percent(float(table[i, i] / sums[i])) if sums[i] else "\N{EN DASH}"
        rows.append(table_row([name(names[i]), *cells, right]))
    head = ("predicted \N{RIGHTWARDS ARROW} came", *(name(names[j]) for j in shown), "right")
    rest = len(names) - len(shown)
    more = f" The {_CONFUSED} most frequent; {count(rest)} more are not shown." if rest else ""
    lost = finding.figures.top_label_decision_loss
    return [
        framed(
            f"Rounds, by the most probable class (rows) and by what came (columns).{more}",
            head,
            rows,
            "confusion",
        ),
        tag(
            "p",
            "Where some class was predicted, another came more often: saying that one instead "
            f"would have been right in {percent(lost)} more of the rounds."
            if lost
            else "Where a class was predicted, no other class came more often.",
        ),
    ]


def _notions() -> list[Markup]:
    items = [
        tag("li", tag("b", f"{notion.capitalize()}: "), f"an error of 0 means that {meaning}.")
        for notion, meaning in NOTIONS.items()
    ]
    promise = f"{NOT_PROMISED[0].upper()}{NOT_PROMISED[1:]}."
    return [tag("ul", *items), tag("p", promise)]


def _figures(finding: ClassFinding) -> list[Markup]:
    after = finding.after
    sides = [finding.figures.figures] + ([] if after is None else [after.figures.figures])
    rows = []
    for about, some in sides[0].items():
        width = str(1 + len(sides))
        rows.append(tag("tr", tag("th", about, colspan=width, scope="rowgroup"), class_="part"))
        for each in some:
            values = (figure(side[about][each]) for side in sides)
            rows.append(table_row([each.strip(), *values]))
    head = ("figure", "value") if after is None else ("figure", "before", "after")
    return [framed("All figures, means per round.", head, rows)]
