"""Names, numbers and tables as text: names cut to fit, numbers with their noun, columns aligned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "aligned",
    "as_one_line",
    "counted",
    "cut_in_the_middle",
    "of_one_line",
    "rounds_or_weight",
    "short_names",
    "terminal_width",
]

_LEAST = 2  # letters that are left of a name, whatever the room


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def as_one_line(names: Iterable[str]) -> str:
    """Return names as one line of CSV: one that has a comma stands in quotes.

    Examples
    --------
    >>> as_one_line(["home", "draw, or away"])
    'home,"draw, or away"'
    """
    import csv
    import io

    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def of_one_line(line: str) -> tuple[str, ...]:
    """Return the names in a line of CSV, without blanks around them.

    Raises
    ------
    ValueError
        If a quote is neither at the beginning nor at the end of a name.

    Examples
    --------
    >>> of_one_line('home, "draw, or away"')
    ('home', 'draw, or away')
    """
    import csv

    try:
        rows = [*csv.reader([line], skipinitialspace=True, strict=True)]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    return tuple(name.strip() for name in rows[0]) if rows else ()


def rounds_or_weight(total: float) -> str:
    """Return how many rounds a tally has, or their weight if that is real.

    Examples
    --------
    >>> rounds_or_weight(1000), rounds_or_weight(2.5)
    ('1,000 rounds', 'weight 2.5')
    """
    return counted(total, "round") if isinstance(total, int) else f"weight {total:g}"


def cut_in_the_middle(name: str, fits: Callable[[str], bool]) -> str:
    """Return the name if it fits, or as much of both its ends as does.

    Examples
    --------
    >>> cut_in_the_middle("Los Angeles International Airport", lambda text: len(text) <= 13)
    'Los An…irport'
    """
    if fits(name) or len(name) <= _LEAST:
        return name
    from bisect import bisect_left

    losses = range(1, len(name) - _LEAST)
    return _without(
        name, 1 + bisect_left(losses, True, key=lambda lost: fits(_without(name, lost)))
    )


def short_names(names: Iterable[str], fits: Callable[[str], bool]) -> list[str]:
    """Return the names, each cut to fit; those that would then be the same are numbered.

    Examples
    --------
    >>> short_names(["model-a-2024", "model-b-2024", "model"], lambda text: len(text) <= 9)
    ['mode…2024', 'mod…24 #2', 'model']
    """
    taken: dict[str, None] = {}
    for name in names:
        taken[_another(name, fits, taken)] = None
    return list(taken)


def _another(name: str, fits: Callable[[str], bool], taken: dict[str, None]) -> str:
    short = cut_in_the_middle(name, fits)
    number = 1
    while short in taken:
        number += 1
        short = _marked(name, f" #{number}", fits)
    return short


def _marked(name: str, mark: str, fits: Callable[[str], bool]) -> str:
    return cut_in_the_middle(name, lambda text: fits(text + mark)) + mark


def _without(name: str, lost: int) -> str:
    """Replace letters in the middle by a sign."""
    kept = len(name) - lost
    return name[: kept - kept // 2] + "…" + name[len(name) - kept // 2 :]


def aligned(rows: Iterable[Sequence[str]], right: Sequence[bool]) -> str:
    """Return rows of cells as lines, every column as wide as its widest cell.

    Parameters
    ----------
    rows
        Of as many cells each as there are columns; a row of one cell is a heading, whose width does
        not count.
    right
        For each column, whether its cells stand to the right.

    Examples
    --------
    >>> rows = [["", "old", "new"], ["scores"], ["  Brier", "0.25", "0.1"]]
    >>> print(aligned(rows, [False, True, True]))
              old  new
    scores
      Brier  0.25  0.1
    """
    rows = list(rows)
    columns = zip(*(row for row in rows if len(row) == len(right)), strict=True)
    widths = [max(map(terminal_width, column)) for column in columns]
    lines = []
    for row in rows:
        cells = []
        for cell, width, to_the_right in zip(row, widths, right, strict=False):
            blank = " " * (width - terminal_width(cell))
            cells.append(blank + cell if to_the_right else cell + blank)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def terminal_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)
