"""Tables to read: on a terminal, and in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truecast._names import aligned

__all__ = ["Table", "number"]

_NUMBER = re.compile(r"(<=)?[\d,.]*(e[-+]?\d+)?")
_GAP = 2  # columns of blanks between two columns of text


@dataclass(frozen=True)
class Table:
    """Cells of text under names. Columns of numbers stand to the right."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self, width: int = 120) -> str:
        """Return lines of at most `width` letters if possible.

        What is too wide goes into parts, one below the other, each with the first column. The words
        of a name stand one above the other.
        """
        parts = [[0]]
        for at in range(1, len(self.names)):
            if (
                len(parts[-1]) > 1
                and sum(self._width(one) + _GAP for one in parts[-1]) + self._width(at) > width
            ):
                parts.append([0])
            parts[-1].append(at)
        return "\n\n".join(map(self._part, parts))

    def markdown(self) -> str:
        """Return the table in Markdown."""
        marks = ["---:" if self._right(at) else "---" for at in range(len(self.names))]
        return "\n".join(
            "| " + " | ".join(cells) + " |" for cells in (self.names, marks, *self.rows)
        )

    def _right(self, at: int) -> bool:
        return all(_NUMBER.fullmatch(row[at]) for row in self.rows)

    def _width(self, at: int) -> int:
        return max(map(len, _words(self.names[at]) + [row[at] for row in self.rows]))

    def _part(self, columns: list[int]) -> str:
        """Return these columns, with the words of every name in equally many lines."""
        height = max(len(_words(self.names[at])) for at in columns)
        filled = []
        for at in columns:
            words = _words(self.names[at])
            filled.append([""] * (height - len(words)) + words + [row[at] for row in self.rows])
        return aligned(zip(*filled, strict=True), [self._right(at) for at in columns])


def _words(name: str) -> list[str]:
    return re.findall(r"[^- ]+-?", name) or [""]


def number(value: float | None, *, at_most: bool = False) -> str:
    """Return four digits of a number, marked if it is an upper bound; nothing for None."""
    if value is None:
        return ""
    return "<=" * at_most + (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}")
