"""Whole lines of a stream of bytes, some megabytes at a time, and the numbers of the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truecast.errors import FileError
from truecast.files.quotes import Quotes

__all__ = ["LONGEST", "Records"]

_BLOCK = 1 << 22
_BLANK = b"\r\n "
_END = b"\n"
# bytes of the longest row; what is longer is no row, and must not fill the memory
LONGEST = 1 << 24


class Records:
    """The rows of a text, in blocks.

    A block never ends within a row: where there are `quotes`, not at the end of a line that a
    quoted field goes over. Blank lines before the first row and after the last are left out.

    Parameters
    ----------
    name
        Of the file, for messages.
    read
        Gives that many more bytes, or fewer; none at the end.

    Attributes
    ----------
    quotes : Quotes or None
        How fields are quoted, if they are.
    hold : bool
        Whether to leave out a last line that has no line break: it may be half written.
    held : str or None
        Where the line stands that was left out.
    whole : bool
        Whether the first row has a line break.
    end : bytes
        That line break.
    marked : bool
        Whether a byte order mark stood before it.
    steady : bool
        Whether all rows are there already, so that nobody waits for the next ones.
    """

    def __init__(
        self, name: str, read: Callable[[int], bytes], *, quotes: Quotes | None = None
    ) -> None:
        self.quotes = quotes
        self.hold = False
        self.whole = True
        self.end = _END
        self.marked = False
        self.steady = False
        self.held = None
        self._name = name
        self._read = read
        self._line = 1
        self._rest = b""
        self._over = False

    held: str | None

    def first(self) -> tuple[int, bytes]:
        """Take the first row: the number of its line, and its bytes without the line break.

        The bytes are empty if there is none.
        """
        while True:
            self._take(len(self._rest) - len(self._rest.lstrip(_BLANK)))
            end = self._end_of_row()
            if end or self._over:
                self.whole = bool(end)
                line, row = self._take(end or len(self._rest))
                self.end = b"\r\n" if row.endswith(b"\r\n") else _END
                return line, row.rstrip(b"\r\n")
            self._more()

    def _take(self, size: int) -> tuple[int, bytes]:
        """Take bytes off what was read; return the number of their first line, and them."""
        line = self._line
        taken = self._rest[:size]
        self._line += taken.count(b"\n")
        self._rest = self._rest[size:]
        return line, taken

    def next(self) -> tuple[int, bytes]:
        """Return the rows that come next, some of them if there are any, without taking them."""
        while not (cut := self._cut()) and not self._over:
            self._more()
        return self._line, self._rest[: cut or None]

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Take the remaining rows: the number of the first line of each block, and its bytes."""
        while True:
            cut = self._cut()
            if cut:
                yield self._take(cut)
            elif self._over:
                last = self._rest if self._rest.strip(_BLANK) else b""
                if self.holds(self._line, last):
                    return
                self._refuse_open(last)
                if last:
                    yield self._line, last
                return
            self._more()

    def holds(self, line: int, last: bytes) -> bool:
        """Whether to leave out what stands after the last line break, if that is a single line."""
        if self.hold and last and b"\n" not in last.strip(_BLANK):
            self.held = f"line {line + last.count(_END, 0, len(last) - len(last.lstrip(_BLANK)))}"
        return self.held is not None

    def _more(self) -> None:
        if len(self._rest) > LONGEST:
            size = f"{LONGEST >> 20} MiB"
            if not self._rest.strip(_BLANK):
                raise FileError(
                    self._name, f"there are blank lines for more than {size}", f"line {self._line}"
                )
            self._refuse_open(self._rest)
            blank = len(self._rest) - len(self._rest.lstrip(_BLANK))
            line = self._line + self._rest.count(b"\n", 0, blank)
            raise FileError(
                self._name, f"the row is longer than {size}: is this a text?", f"line {line}"
            )
        more = self._read(_BLOCK)
        self._rest += more
        self._over = not more

    def _refuse_open(self, text: bytes) -> None:
        """Refuse a quoted field that does not end: nobody knows which rows are within it."""
        if self.quotes is not None and b'"' in text:
            end = self.quotes.end(text + b"\n")
            if end <= len(text):
                line = self._line + text.count(b"\n", 0, end)
                raise FileError(
                    self._name, "a quoted field begins here and does not end", f"line {line}"
                )

    def _end_of_row(self) -> int:
        """The end of the first row, its line end included; 0 if that is not read yet."""
        if self.quotes is None:
            return self._rest.find(b"\n") + 1
        end = odd = 0
        while end >= 0 and (after := self._rest.find(b"\n", end) + 1):
            odd = (odd + self._rest.count(b'"', end, after)) % 2
            if not odd:
                return after
            end = self._rest.find(b'"', after)  # within quotes no line end counts
        return 0

    def _cut(self) -> int:
        """Where the last whole row ends, blank lines after it not counted; 0 if there is none."""
        data = self._rest
        end = data.rfind(b"\n") + 1 if self.quotes is None else self.quotes.end(data)
        last = end - 1
        if data[last - 1 : last].strip(_BLANK):  # as most are, and cheaper to see
            return end
        rows = data[:end].rstrip(_BLANK)
        return data.find(b"\n", len(rows)) + 1 if rows else 0
