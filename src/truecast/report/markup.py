"""Elements of a page, safe by construction: whatever is not markup already is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from truecast._names import cut_in_the_middle, short_names

__all__ = ["Markup", "different", "join", "name", "number", "shortened", "tag"]

# what HTML does not allow, and what turns the direction of the text around it
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LONGEST = 80  # characters of a name that are shown
_VOID = ("meta", "link", "br")


class Markup(str):
    """Text that is markup; every other string is text to be shown as it is."""

    __slots__ = ()


def tag(element: str, *children: object, **attributes: object) -> Markup:
    """Return an element; attributes that are None are left out.

    class_ is class, data_tip is data-tip.

    Examples
    --------
    >>> tag("p", "1 < 2 ", tag("b", "&"), class_="note")
    '<p class="note">1 &lt; 2 <b>&amp;</b></p>'
    """
    pairs = (
        (key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None
    )
    start = element + "".join(f' {key}="{_escaped(value)}"' for key, value in pairs)
    return Markup(f"<{start}>" if element in _VOID else f"<{start}>{join(children)}</{element}>")


def join(parts: object) -> Markup:
    """Return parts, one after the other; text among them is escaped, and None left out."""
    if not isinstance(parts, list | tuple):
        parts = (parts,)
    return Markup(
        "".join(
            part if isinstance(part, Markup) else _escaped(part)
            for part in parts
            if part is not None
        )
    )


def _escaped(value: object) -> str:
    from html import escape  # comes with all entities there are; the command shows no page

    return escape(_UNPRINTABLE.sub("\ufffd", str(value)))


def shortened(text: object) -> str:
    """Return a name that is not too long to be shown: both its ends are kept."""
    return cut_in_the_middle(str(text), _fits)


def different(names: Iterable[object]) -> list[str]:
    """Return names that are not too long to be shown, and no two of them the same."""
    return short_names(("(none)" if text is None else str(text) for text in names), _fits)


def _fits(text: str) -> bool:
    return len(text) <= _LONGEST


def name(text: object) -> Markup:
    """Return a name from the user's data: shortened, and unable to turn the text around it."""
    return tag("bdi", "(none)" if text is None else shortened(text), class_="name")


def number(value: float) -> str:
    """Return a coordinate, as short as a tenth of a pixel allows.

    Examples
    --------
    >>> number(12.0), number(0.349), number(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
