"""Whole lines of a stream of bytes, some megabytes at a time, and the numbers of the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truecast.errors import FileError

__all__ = ["LONGEST", "Records"]

_BLOCK = 1 << 22
LONGEST = 1 << 24  # bytes that a row may have: what is longer is no row, and must not fill the memory


class Records:
    """The rows of a text, in blocks.

    A block never ends within a row: where `quoted`, not at the end of a line that a quoted field goes over. Blank lines
    before the first row and after the last are left out.

    Parameters
    ----------
    name
        Of the file, for messages.
    read
        Gives that many more bytes, or fewer; none at the end.
    quoted
        Whether line ends may stand within double quotes.
    """

    def __init__(self, name: str, read: Callable[[int], bytes], *, quoted: bool) -> None:
        self._name, self._read, self._quoted = name, read, quoted
        self._line, self._rest, self._over = 1, b"", False

    def first(self) -> tuple[int, bytes]:
        """Take the first row: the number of its line, and its bytes without the line's end; empty if there is none."""
        while True:
            start = len(self._rest) - len(self._rest.lstrip(b"\r\n "))
            if start < len(self._rest) or self._over:
                line = self._line + self._rest.count(b"\n", 0, start)
                end = self._end_of_row(start)
                if end or self._over:
                    end = end or len(self._rest)
                    row = self._rest[start:end]
                    self._line, self._rest = self._line + self._rest.count(b"\n", 0, end), self._rest[end:]
                    return line, row.rstrip(b"\r\n")
            self._more()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Take the remaining rows: the number of the first line of each block, and its bytes."""
        while True:
            cut = self._cut()
            if cut:
                line, block = self._line, self._rest[:cut]
                self._line, self._rest = line + block.count(b"\n"), self._rest[cut:]
                yield line, block
            elif self._over:
                last = self._rest.rstrip(b"\r\n ")
                self._rest = b""
                if last:
                    yield self._line, last
                return
            self._more()

    def _more(self) -> None:
        if len(self._rest) > LONGEST and self._rest.strip(b"\r\n "):
            why = "is there a quote that is not closed?" if b'"' in self._rest and self._quoted else "is this a text?"
            raise FileError(self._name, f"the row is longer than {LONGEST >> 20} MiB: {why}", f"line {self._line}")
        more = self._read(_BLOCK)
        self._rest += more
        self._over = not more

    def _end_of_row(self, start: int) -> int:
        """The end of the row that starts there, its line end included; 0 if that is not read yet."""
        end = start
        while end := self._rest.find(b"\n", end) + 1:
            if not self._quoted or self._rest.count(b'"', start, end) % 2 == 0:
                return end
        return 0

    def _cut(self) -> int:
        """Where the last whole row ends, blank lines after it not counted; 0 if there is none."""
        data, end = self._rest, self._rest.rfind(b"\n") + 1
        odd = data.count(b'"', 0, end) % 2 if self._quoted else 0
        while odd and end:  # within quotes: go back to before the row of the last quote, and see again
            start = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
            odd = (odd + data.count(b'"', start, end)) % 2
            end = start
        if data[max(0, end - 3) : end].strip(b"\r\n ") == b"":
            end = data.find(b"\n", len(data[:end].rstrip(b"\r\n "))) + 1 if data[:end].strip(b"\r\n ") else 0
        return end
