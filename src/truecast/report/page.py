"""The page: findings in, one HTML file out, that asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from truecast.plot.style import PALETTE
from truecast.report.class_page import class_sections
from truecast.report.markup import Markup, name, shortened, tag
from truecast.report.numerals import rounds
from truecast.report.sections import comparison, quiet, sections_of

if TYPE_CHECKING:
    from truecast.report.class_findings import ClassFinding
    from truecast.report.context import Context
    from truecast.report.findings import Finding

__all__ = ["class_page", "page", "stylesheet"]

_DETAILED = 6  # scores with sections of their own
_SMALL_PRINT = (
    "Made with truecast. Figures are means per round unless they say otherwise. "
    "Intervals and p-values assume independent rounds; "
    "if outcomes come in clusters, intervals are too narrow and p-values too small."
)


def page(findings: Sequence[Finding], context: Context) -> str:
    """Return the whole document."""
    one = len(findings) == 1
    inside = sections_of(findings[0], context, "h2", "") if one else _several(findings, context)
    return _document(inside, findings[0].figures.total, context)


def class_page(finding: ClassFinding, context: Context) -> str:
    """Return the whole document about several classes."""
    return _document(class_sections(finding, context), finding.figures.total, context)


def _document(inside: Sequence[Markup], total: float, context: Context) -> str:
    style, script = Markup(stylesheet()), Markup(_read("page.js"))
    allowed = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=allowed),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag(
            "title",
            shortened(context.title)
            + ("" if context.source is None else f" · {shortened(context.source)}"),
        ),
        tag("style", style),
    ]
    body = [
        tag("header", tag("h1", name(context.title)), _subtitle(total, context)),
        tag("main", *inside),
        tag("footer", tag("p", _SMALL_PRINT)),
        tag("div", id="tip", role="status", hidden="hidden"),
        tag("script", script),
    ]
    whole = tag("html", tag("head", *head), "\n", tag("body", *body), lang="en")
    return f"<!doctype html>\n{whole}\n"


def stylesheet() -> str:
    """Return the style of the page; its colours of pictures are those of plots."""
    light, dark = (
        " ".join(f"--{name}: {pair[side]};" for name, pair in PALETTE.items()) for side in (0, 1)
    )
    media = {"all": light, "(prefers-color-scheme: dark)": dark, "print": light}
    colours = [f"@media {which} {{ :root {{ {rules} }} }}" for which, rules in media.items()]
    return "\n".join([*colours, _read("page.css")])


def _read(file: str) -> str:
    return files(__package__).joinpath(file).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _subtitle(total: float, context: Context) -> Markup:
    parts = context.source and name(context.source), rounds(total), context.date
    dotted = [piece for part in parts if part for piece in (" · ", part)]
    return tag("p", *dotted[1:], class_="quiet")


def _several(findings: Sequence[Finding], context: Context) -> list[Markup]:
    detailed = findings[:_DETAILED]
    links = [
        tag("li", tag("a", name(finding.label), href=f"#score-{k}"))
        for k, finding in enumerate(detailed)
    ]
    parts = [
        tag("nav", tag("ul", *links), aria_label="Scores"),
        tag("section", tag("h2", "Scores side by side"), *comparison(findings)),
    ]
    if len(detailed) < len(findings):
        parts.append(quiet(f"The first {_DETAILED} have a section of their own below."))
    for k, finding in enumerate(detailed):
        inside = sections_of(finding, context, "h3", f"{k}-")
        parts.append(
            tag("section", tag("h2", "Score ", name(finding.label), id=f"score-{k}"), *inside)
        )
    return parts
