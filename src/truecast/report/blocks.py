"""What the sections of both pages are made of: of one score, and of several classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from truecast._names import counted
from truecast.report.markup import Markup, tag
from truecast.report.numerals import apart
from truecast.report.words import groups_sentence, groups_too_small, tiny

if TYPE_CHECKING:
    from truecast.plot import GroupOverview
    from truecast.report.advice import Advice
    from truecast.report.class_groups import ClassGroups

__all__ = [
    "advice_list",
    "compared",
    "facts_list",
    "group_blocks",
    "in_sections",
    "quiet",
    "tile",
    "verdict_box",
]


def in_sections(
    parts: Iterable[tuple[str, str, Sequence[Markup]]], heading: str = "h2", prefix: str = ""
) -> list[Markup]:
    """Return sections of their ids, titles and blocks, with this level of headings."""
    return [
        tag("section", tag(heading, title), *inside, id=prefix + key)
        for key, title, inside in parts
    ]


def quiet(words: str) -> Markup:
    """Return a remark."""
    return tag("p", words, class_="quiet")


def verdict_box(kind: str, sentences: Iterable[str]) -> Markup:
    """Return a verdict, in the colour of its kind."""
    return tag("div", *(tag("p", words) for words in sentences), class_=f"verdict {kind}")


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
    groups: GroupOverview | ClassGroups, number: int, table: Callable[[], Markup]
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
    return [tag("p", groups_sentence(groups)), table(), quiet(note)]


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
