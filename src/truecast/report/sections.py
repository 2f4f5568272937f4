"""The sections of the page, a function each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from truecast._names import counted
from truecast.certificate import ArcCertificate, Certificate
from truecast.report.advice import Advice, advice
from truecast.report.charts import (
    course_chart,
    evidence_chart,
    miscalibration_chart,
    reliability_chart,
)
from truecast.report.markup import Markup, name, tag
from truecast.report.numerals import apart, count, figure, p_value, percent, probability, rounds
from truecast.report.tables import (
    before_after_table,
    figures_table,
    groups_table,
    ranges_table,
    scores_table,
)
from truecast.report.verdict import (
    colour,
    headline,
    interval,
    notes,
    off_in_parts,
    size,
    skill,
    verdict,
)
from truecast.report.words import (
    BEFORE,
    LATER,
    after_sentence,
    certificate_sentences,
    course_sentence,
    evidence_sentences,
    groups_sentence,
    groups_too_small,
    tiny,
    where_sentences,
)

if TYPE_CHECKING:
    from truecast.measures.report import Report
    from truecast.plot import GroupOverview
    from truecast.report.class_groups import ClassGroups
    from truecast.report.context import Context
    from truecast.report.course import TimeCourse
    from truecast.report.findings import Finding

__all__ = [
    "advice_list",
    "compared",
    "comparison",
    "facts_list",
    "group_blocks",
    "quiet",
    "sections_of",
    "tile",
]

_GROUPS = 40, 10  # how many are shown: of one score, and of several, to keep the page small
_CLUSTERS = (
    "This assumes independent rounds. "
    "If outcomes come in clusters, such as all those of one stormy day, "
    "chance has a larger effect than stated here, and evidence is weaker than it looks."
)
_STRETCH = "A stretch can be beyond chance even if no single range in it is."


def sections_of(finding: Finding, context: Context, heading: str, prefix: str) -> list[Markup]:
    """Return all sections about one score, with this level of headings and prefix of ids."""
    after = finding.after
    earlier = [] if after is None else [quiet(BEFORE)]
    judged = _verdict(finding) if after is None else _changed(finding, after)
    parts = [
        ("verdict", "Is it calibrated, and how sure are we?", judged),
        ("measured", "What was measured", _measured(finding, context)),
        ("where", f"Where {'is' if after is None else 'was'} it off?", earlier + _where(finding)),
    ]
    if finding.groups is not None:
        later, number = None if after is None else after.groups, _GROUPS[bool(prefix)]
        table = partial(groups_table, finding.groups, context.group or "group", number, later)
        blocks = group_blocks(finding.groups, number, table, later)
        parts.append(("groups", "Groups", earlier * (later is None) + blocks))
    if after is not None:
        parts.append(("after", "Before and after recalibration", _after(finding, after)))
    if finding.course is not None:
        parts.append(("course", "Over time", earlier + _course(finding.course)))
    if isinstance(context.certificate, Certificate | ArcCertificate):
        proved = [tag("p", words) for words in certificate_sentences(context.certificate)]
        parts.append(("certificate", "What is proved", proved))
    parts.append(("advice", "What to do", advice_list(advice(finding, context))))
    every = tag("summary", "Every measure, with what it means"), figures_table(finding.figures)
    parts.append(("figures", "All figures", [*earlier, tag("details", *every)]))
    return [
        tag("section", tag(heading, title), *inside, id=prefix + key)
        for key, title, inside in parts
    ]


def comparison(findings: Sequence[Finding]) -> list[Markup]:
    """Return what can be said of several scores at once."""
    best = min(findings, key=lambda finding: finding.figures.brier.score)
    same = len({(finding.figures.total, finding.figures.mean_outcome) for finding in findings}) == 1
    told = (
        "has the best Brier score, which counts calibration and sharpness. A small difference may "
        "be chance."
    )
    other = (
        "The scores were not measured on the same rounds: their Brier scores and log losses "
        "cannot be compared."
    )
    return [
        tag("p", name(best.label), " ", told) if same else tag("p", other),
        scores_table(findings),
    ]


def _measured(finding: Finding, context: Context) -> list[Markup]:
    figures = finding.figures
    facts: list[tuple[str, object]] = [
        ("source", None if context.source is None else name(context.source)),
        ("rounds" if isinstance(figures.total, int) else "total weight", count(figures.total)),
        (
            "rows skipped",
            f"{count(context.skipped)} (they break a rule)" if context.skipped else None,
        ),
        ("outcome", None if context.outcome is None else name(context.outcome)),
        ("forecast", name(finding.label) if context.score_known else None),
        ("distinct forecasts", _both(finding, lambda side: count(side.forecasts))),
        ("mean outcome", figure(figures.mean_outcome)),
        ("mean forecast", _both(finding, lambda side: figure(side.mean_forecast))),
    ]
    return facts_list(facts)


def _both(finding: Finding, describe: Callable[[Report], str]) -> str:
    """Return a figure; with recalibrated forecasts, before and after."""
    if finding.after is None:
        return describe(finding.figures)
    return f"{describe(finding.figures)} before, {describe(finding.after.figures)} after"


def _verdict(finding: Finding) -> list[Markup]:
    found = verdict(finding)
    figures = finding.figures
    error = finding.smooth_error
    sentences = (headline(finding), found.evidence, size(finding, found.kind))
    kind = colour(found.kind, off_in_parts(finding))
    p = f"p-value {p_value(finding.p_value)}"
    tiles = [
        tile(
            "smooth calibration error",
            figure(figures.smooth_calibration_error),
            interval(finding, error) if error else "",
        ),
        error and tile("how large by chance", figure(error.if_calibrated), p),
        compared("Brier score", figures.brier.score, figures.brier.uncertainty, "average"),
        compared("log loss", figures.log.score, figures.log.uncertainty, "average"),
    ]
    return [
        tag("div", *(tag("p", words) for words in sentences), class_=f"verdict {kind}"),
        tag("dl", *tiles, class_="tiles"),
        *([quiet(_CLUSTERS)] if error else []),
        tag("p", "Calibration is not everything:  ", skill(finding, found.kind)),
        *_list(notes(finding)),
    ]


def _changed(before: Finding, after: Finding) -> list[Markup]:
    """Return verdict and figures of both; the recalibrated forecasts are what counts."""
    was, now = verdict(before), verdict(after)
    sentences = (
        headline(before),
        after_sentence(before, after),
        f"After: {now.evidence}",
        f"Before: {was.evidence}",
    )
    kind = colour(now.kind, off_in_parts(after))
    return [
        tag("div", *(tag("p", words) for words in sentences), class_=f"verdict {kind}"),
        before_after_table(before, after),
        *([quiet(_CLUSTERS)] if before.smooth_error else []),
        tag("p", "Calibration is not everything. Before:  ", skill(before, was.kind)),
        *_list(notes(before)),
    ]


def _list(items: Sequence[str]) -> list[Markup]:
    return [tag("ul", *(tag("li", item) for item in items))] if items else []


def _where(finding: Finding) -> list[Markup]:
    """Return where it is off; with recalibrated forecasts, the diagram is in another section."""
    sentences = where_sentences(finding)
    caption = tag(
        "figcaption",
        *(
            _key("blue"),
            "forecasts too low, ",
            _key("orange"),
            "too high: outcomes minus forecasts, in percentage points of all rounds.  ",
        ),
        *(("Shaded: a stretch that is off beyond chance. ",) if finding.marked else ()),
        "Each gap times its weight below, added up, is the smooth calibration error. Where the "
        "weights are above the grey line, forecasts were too low on balance; below it, too high.",
    )
    picture_of_gaps = tag(
        "figure",
        miscalibration_chart(finding.miscalibration, "Where the error is. " + " ".join(sentences)),
        caption,
    )
    diagram = tag(
        "figure",
        reliability_chart(finding.diagram, _label(finding)),
        tag("figcaption", *_diagram_key(finding)),
    )
    pictures = (diagram, picture_of_gaps) if finding.after is None else (picture_of_gaps,)
    under = [quiet(_STRETCH)] if _shaded_only(finding) else []
    return [
        *_list(sentences),
        tag("div", *pictures, class_="figures"),
        ranges_table(finding.ranges),
        *under,
    ]


def _shaded_only(finding: Finding) -> bool:
    """Whether there is a range in a stretch that is off, and not off by itself."""
    inside = ((part, whole) for part in finding.ranges for whole in finding.marked)
    return any(
        not part.off and part.low <= whole.high and whole.low <= part.high for part, whole in inside
    )


def _diagram_key(*findings: Finding) -> list[object]:
    """Return what is what in reliability diagrams of these."""
    diagram = findings[0].diagram
    any_marked = any(part.off for finding in findings for part in finding.ranges)
    chance: list[object] = []
    if diagram.band is not None:
        share = percent(diagram.band.level)
        chance = [_key("band"), f"where it would be by chance, in {share} of all cases. "]
    return [
        "Share that came true in ranges of forecasts: ",
        *(_key("blue dot"), "too low, ", _key("orange dot"), "too high"),
        *((", ", _key("diamond"), "off beyond chance by itself") if any_marked else ()),
        "; larger points have more rounds. ",
        *(
            (f"Upright lines: {percent(diagram.level)} intervals. ",)
            if findings[0].smooth_error
            else ()
        ),
        *(_key("blue line"), "the best increasing curve; "),
        *chance,
        "Dashed: perfect calibration. Below, how often forecasts were made: ",
        *(_key("blue"), "came true, ", _key("wash"), "did not."),
    ]


def _label(finding: Finding) -> str:
    ends = dict.fromkeys((finding.ranges[0], finding.ranges[-1]))
    examples = "; ".join(
        f"forecasts around {probability(part.forecast)} came true in {percent(part.rate)}"
        for part in ends
    )
    return (
        "Reliability diagram: share that came true against forecast. "
        f"For example, {examples}. The table has more."
    )


def _key(kind: str) -> Markup:
    return tag("span", class_=f"key {kind}")


def _after(before: Finding, after: Finding) -> list[Markup]:
    pictures = [
        tag(
            "figure",
            tag("figcaption", tag("strong", when)),
            reliability_chart(finding.diagram, f"{when}: {_label(finding)}"),
        )
        for when, finding in (("Before", before), ("After", after))
    ]
    left = tag("p", "After: ", " ".join(where_sentences(after)))
    key = tag("p", *_diagram_key(before, after), class_="quiet")
    return [left, quiet(LATER), tag("div", *pictures, class_="figures"), key]


def _course(course: TimeCourse) -> list[Markup]:
    sentence = course_sentence(course)
    block = rounds(round(float(course.rounds.mean())))
    after = (_key("green line"), "recalibrated forecasts. ") if course.after is not None else ()
    key = tag(
        "figcaption",
        *(_key("blue dot"), f"share that came true, in blocks of about {block}. "),
        *(
            "Dashed: mean forecast, with ",
            _key("band"),
            "the range of chance, two standard deviations. ",
        ),
        *after,
    )
    picture = tag("figure", course_chart(course, f"Over time. {sentence}"), key)
    return [tag("p", sentence), picture, *_evidence(course)]


def _evidence(course: TimeCourse) -> list[Markup]:
    """What a monitor would have said, had it watched."""
    if course.evidence is None:
        return []
    sentence = " ".join(evidence_sentences(course))
    after: tuple[object, ...] = ()
    if course.evidence_after is not None:
        after = _key("green line"), "the same of the recalibrated forecasts. "
    key = tag(
        "figcaption",
        "Evidence, on a logarithmic scale: what a stake of 1 became in bets against the ",
        "forecasts. Dashed: the threshold of an alarm. ",
        *((_key("band"), "when it began. ") if course.evidence.alarm is not None else ()),
        *after,
    )
    return [tag("p", sentence), tag("figure", evidence_chart(course, sentence), key)]


def quiet(words: str) -> Markup:
    """Return a remark."""
    return tag("p", words, class_="quiet")


def tile(term: str, value: str, more: str) -> Markup:
    """Return a figure with what it is about, and what to compare it with."""
    return tag(
        "div", tag("dt", term), tag("dd", value), tag("dd", more, class_="more") if more else None
    )


def compared(term: str, score: float, constant: float, always: str) -> Markup:
    """Return a score beside that of always saying the same."""
    shown, other = apart(score, constant)
    return tile(term, shown, f"always saying the {always}: {other}")


def facts_list(facts: Iterable[tuple[str, object]]) -> list[Markup]:
    """Return what is known of the rounds, without what is not."""
    pairs = [
        tag("div", tag("dt", term), tag("dd", what)) for term, what in facts if what is not None
    ]
    return [tag("dl", *pairs, class_="facts")]


def group_blocks(
    groups: GroupOverview | ClassGroups,
    number: int,
    table: Callable[[], Markup],
    after: GroupOverview | ClassGroups | None = None,
) -> list[Markup]:
    """Return which groups are off, and the table of this number of them, if there is a point."""
    if tiny(groups):
        return [tag("p", groups_too_small(groups))]
    hidden = len(groups) - number
    note = "A group without evidence need not be calibrated: it may be small."
    if hidden > 0:
        more = (
            f"{counted(hidden, 'more group')}, with less evidence, {'is' if hidden == 1 else 'are'}"
        )
        note += f" {more} not shown."
    said = [tag("p", groups_sentence(groups))]
    if after is not None:
        said = [
            tag("p", "Before: ", groups_sentence(groups)),
            tag("p", "After: ", groups_sentence(after)),
        ]
    return [*said, table(), quiet(note)]


def advice_list(given: Sequence[Advice]) -> list[Markup]:
    """Return advice, the first thing to do first."""
    steps = [
        tag(
            "li",
            tag("strong", step.do),
            " ",
            step.why,
            step.line and tag("pre", tag("code", step.line)),
        )
        for step in given
    ]
    return [tag("ol", *steps)]
