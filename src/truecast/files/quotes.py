"""Double quotes in delimited text: where rows end, and what their fields are.

A field that begins with a quote goes on to the next one that is not doubled, over separators and
ends of lines. In other fields a quote is a letter like any other, as in `5" pipe`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

__all__ = ["Quotes"]

Row = tuple[int, list[str] | None]


class Quotes:
    """The rules for one separator."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._stop = re.compile(f"[{re.escape(separator)}\n]")

    def any(self, text: bytes) -> bool:
        """Whether any field of a text that begins with a row may begin with a quote."""
        return text.startswith(b'"') or b'\n"' in text or f'{self._separator}"'.encode() in text

    def tidy(self, text: bytes) -> bool:
        """Whether each quote begins or ends a field, or is doubled in a quoted one.

        The text begins with a row.

        Then one is within quotes after an odd number of them, and every reader of CSV sees the same
        fields.
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
        # within quotes: go back to before the line of the last quote, and see again
        while odd and end:
            start = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
            odd = (odd + text.count(b'"', start, end)) % 2
            end = start
        return end

    def _scanned(self, text: bytes) -> int:
        letters = text.decode("latin-1")  # a letter for every byte
        end = 0
        while (row := self._row(letters, end)) and row[0] < len(letters):
            end = row[0] + 1
        return end

    def rows(self, text: str) -> Iterator[tuple[int, list[str] | None]]:
        """Yield each whole row, with the number of line ends before it: its fields, none if blank.

        None for the fields if there is something between a closing quote and the next separator.
        Most likely the field was not meant to begin there, and rows are within.
        """
        at = line = 0
        begins = f'{self._separator}"'
        while at < len(text):
            end = text.find("\n", at) % (len(text) + 1)
            row = text[at:end].removesuffix("\r")
            fields: list[str] | None = row.split(self._separator) if row else []
            if row.startswith('"') or begins in row:
                end, fields = self._row(text, at) or (len(text), None)
            yield line, fields
            line += text.count("\n", at, end) + 1
            at = end + 1

    def _row(self, text: str, at: int) -> Row | None:
        """Where a row ends, and its fields as in `rows`; None if a quoted field does not end."""
        fields: list[str] = []
        sound = True
        while True:
            start = at
            quoted = text.startswith('"', at)
            if quoted:
                at = _closing(text, at + 1)
                if not at:
                    return None
            stop = self._stop.search(text, at)
            end = stop.start() if stop else len(text)
            last = not stop or stop[0] == "\n"
            rest = text[at:end].removesuffix("\r" if last else "")
            sound = sound and not (quoted and rest)
            fields.append(text[start + 1 : at - 1].replace('""', '"') if quoted else rest)
            if last:
                return end, fields if sound else None
            at = end + 1


def _closing(text: str, at: int) -> int:
    """Where the quoted field that begins there ends, after its closing quote; 0 if nowhere."""
    while at := text.find('"', at) + 1:
        if not text.startswith('"', at):
            return at
        at += 1
    return 0
