"""Double quotes in delimited text: where rows end, and what their fields are.

A field that begins with a quote goes on to the next one that is not doubled, over separators and ends of lines. In
other fields a quote is a letter like any other, as in `5" pipe`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

__all__ = ["Quotes"]

_QUOTED = r'"(?:[^"]++|"")*+"'
_CLOSED = re.compile(_QUOTED)


class Quotes:
    """The rules for one separator."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        mark = re.escape(separator)
        plain = f"[^{mark}\n]*+"
        field = f'(?:{_QUOTED}{plain}|(?!"){plain})'
        row = f"{field}(?:{mark}{field})*+"
        self._whole_row = re.compile(f"{row}\n".encode())
        self._row = re.compile(row)
        self._fields = re.compile(f"{mark}({field})")

    def any(self, text: bytes) -> bool:
        """Whether any field may begin with a quote; if not, all quotes are letters. Text begins with a row."""
        return text.startswith(b'"') or b'\n"' in text or f'{self._separator}"'.encode() in text

    def tidy(self, text: bytes) -> bool:
        """Whether each quote begins or ends a field, or is one of two in a quoted field; text begins with a row.

        Then one is within quotes after an odd number of them, and every reader of CSV sees the same fields.
        """
        letters = np.frombuffer(b"\n%b\n" % text.replace(b"\r\n", b"\n"), np.uint8)
        at = np.flatnonzero(letters == ord('"'))
        outside = np.zeros(256, np.bool_)
        outside[[ord(self._separator), ord("\n"), ord('"')]] = True
        return bool(outside[letters[at[::2] - 1]].all() and outside[letters[at[1::2] + 1]].all())

    def end(self, text: bytes) -> int:
        """Where the last whole row ends, after the end of its line; 0 if there is none."""
        end = text.rfind(b"\n") + 1
        if b'"' not in text or not self.any(text[:end]):
            return end
        return self._even(text, end) if self.tidy(text[:end]) else self._scanned(text)

    def _even(self, text: bytes, end: int) -> int:
        odd = text.count(b'"', 0, end) % 2
        while odd and end:  # within quotes: go back to before the line of the last quote, and see again
            start = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
            odd = (odd + text.count(b'"', start, end)) % 2
            end = start
        return end

    def _scanned(self, text: bytes) -> int:
        end = 0
        while row := self._whole_row.match(text, end):
            end = row.end()
        return end

    def rows(self, text: str) -> Iterator[tuple[int, list[str] | None]]:
        """Yield each row of whole ones, with the number of line ends before it: its fields, none if it is blank.

        None for the fields if there is something between a closing quote and the next separator. Most likely the field
        was not meant to begin there, and rows are within.
        """
        at = line = 0
        begins = f'{self._separator}"'
        while at < len(text):
            end = text.find("\n", at) % (len(text) + 1)
            row = text[at:end]
            if row.startswith('"') or begins in row:
                row = self._row.match(text, at)[0]  # type: ignore[index]
                end = at + len(row)
                yield line, self._split(row.removesuffix("\r"))
                line += row.count("\n")
            else:
                row = row.removesuffix("\r")
                yield line, row.split(self._separator) if row else []
            line += 1
            at = end + 1

    def _split(self, row: str) -> list[str] | None:
        fields = self._fields.findall(self._separator + row)
        if not all(_CLOSED.fullmatch(field) for field in fields if field.startswith('"')):
            return None
        return [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields]
