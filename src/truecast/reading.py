"""Files of rounds for Python: as arrays, as a tally, or block by block.

The command and the adapters read in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecast.tally import Tally

if TYPE_CHECKING:
    from truecast.files import Names, OpenTable

__all__ = ["RoundArrays", "RoundsFile", "read_rounds"]


class RoundArrays(NamedTuple):
    """Rounds of a file, in its order.

    Attributes
    ----------
    y : array of float64
        Outcomes, 0 or 1; nan for rows without one (`unknown`).
    p : array of float64
        Forecasts, from 0 to 1.
    weight : array or None
        int64 if all are whole numbers, else float64; None without such a column.
    group : array of object or None
        Each a string, or None for an empty cell; None without such a column.
    """

    y: NDArray[np.float64]
    p: NDArray[np.float64]
    weight: NDArray[Any] | None
    group: NDArray[np.object_] | None


@dataclass(frozen=True)
class RoundsFile:
    """A file of rounds that can be read any number of times.

    Made by `read_rounds`, which explains the fields. Its columns are known; `arrays`, `tally` and
    `blocks` read the rows, and check them.
    """

    path: str
    outcome: str
    score: str
    weight: str | None = None
    group: str | None = None
    positive: str | None = None
    percent: bool = False
    decimal: str = "."
    unknown: bool = False
    skip_bad: int = 0

    def arrays(self) -> RoundArrays:
        """Return all rounds, in memory.

        Raises
        ------
        FileError
            At the first row that breaks a rule; the error names its line.

        Examples
        --------
        >>> y, p, weight, group = read_rounds("examples/scores.csv", group="airport").arrays()
        >>> y[:3], p[:3], group[:3].tolist()
        (array([0., 0., 0.]), array([0.1121, 0.2442, 0.0788]), ['EWR', 'EWR', 'JFK'])
        """
        blocks = [*self.blocks()]
        y, p, weight, group = (
            (_joined(column) for column in zip(*blocks, strict=True)) if blocks else _none(self)
        )
        return RoundArrays(y, p, weight, group)

    def tally(self) -> Tally:
        """Return the tally of the rounds that have an outcome: all that measures need.

        Memory grows with the number of distinct forecasts, not with the file. Beyond 16,777,216
        distinct forecasts, those within 2**-24 of each other are pooled.

        Raises
        ------
        FileError
            At the first row that breaks a rule; the error names its line.

        Examples
        --------
        >>> import truecast as tc
        >>> tally = read_rounds("examples/scores.csv").tally()
        >>> tally
        Tally of 5,543 rounds at 3,064 forecasts
        >>> round(tc.brier_score(tally), 6)
        0.188764
        """
        from truecast.files import NoRowsError, rounds, tallies

        with self._opened() as (table, names):
            parts = rounds(table, names, skip_bad=self.skip_bad, unknown=self.unknown)
            try:
                return tallies(table.name, names, (part.known() for part in parts)).scores[
                    self.score
                ]
            except NoRowsError:
                return Tally()

    def blocks(self) -> Iterator[RoundArrays]:
        """Yield the rounds in order, in blocks: for files that do not fit in memory.

        Raises
        ------
        FileError
            At the first row that breaks a rule; the error names its line. Earlier blocks have
            already been yielded.

        Examples
        --------
        >>> sum(len(block.y) for block in read_rounds("examples/scores.csv").blocks())
        5543
        """
        from truecast.files import NoRowsError, rounds

        with self._opened() as (table, names):
            try:
                for part in rounds(table, names, skip_bad=self.skip_bad, unknown=self.unknown):
                    group = None if part.group is None else part.group.to_numpy()
                    yield RoundArrays(part.y, part.p[0], part.weight, group)
            except NoRowsError:
                return

    @contextmanager
    def _opened(self) -> Iterator[tuple[OpenTable, Names]]:
        cells = {"positive": self.positive, "percent": self.percent, "decimal": self.decimal}
        with _opened(
            self.path, self.outcome, self.score, self.weight, self.group, **cells
        ) as opened:
            yield opened


def read_rounds(
    path: str | os.PathLike[str],
    *,
    outcome: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    percent: bool = False,
    decimal: str = ".",
    unknown: bool = False,
    skip_bad: bool | int = False,
) -> RoundsFile:
    """Return a file of outcomes and probabilities, to read as arrays, a tally or blocks.

    CSV (with commas, semicolons, tabs or bars), JSON lines or Parquet, plain or compressed with
    gzip, bzip2, xz or zstd, of any size; the format is detected from the content. It accepts and
    refuses the same files as the command.

    Parameters
    ----------
    path
        The file.
    outcome, score
        The columns of outcomes and of probabilities. If left out, they are guessed by name; see
        `.outcome` and `.score` of the result.
    weight
        The column of weights: 0, or from 1e-100 to 1e100. Whole numbers count as repeated rows.
    group
        The column of groups.
    positive
        The outcome that counts as 1, such as "yes". One other value may occur, and counts as 0; a
        third is refused. Case and surrounding blanks do not matter. Without it, outcomes are 0 and
        1, or false and true.
    percent
        Whether probabilities are percentages, from 0 to 100, with or without a sign.
    decimal
        The decimal mark of numbers in text: "." or ",".
    unknown
        Allow rows without an outcome: nan in arrays; not counted in a tally.
    skip_bad
        Skip rows that break a rule, rather than refuse the file. If more than half do, the file is
        still refused; 2 skips any number.

    Raises
    ------
    FileError
        If the file is missing, not readable, or has no such columns.
    ImportError
        If Polars is not installed: pip install 'truecast[cli]'.

    Examples
    --------
    >>> import truecast as tc
    >>> rounds = tc.read_rounds("examples/scores.csv")
    >>> rounds.outcome, rounds.score
    ('outcome', 'score')
    >>> y, p, *_ = rounds.arrays()
    >>> tc.brier_score(y, p) == tc.brier_score(rounds.tally())
    True

    >>> tc.read_rounds("examples/scores.csv", score="p")
    Traceback (most recent call last):
    truecast.errors.FileError: examples/scores.csv has no column 'p' (score=); it has date, ...
    """
    cells = {"positive": positive, "percent": percent, "decimal": decimal}
    with _opened(os.fspath(path), outcome, score, weight, group, **cells) as (_, names):
        found = names.outcome, names.scores[0]
    return RoundsFile(
        os.fspath(path), *found, weight, group, positive, percent, decimal, unknown, int(skip_bad)
    )


@contextmanager
def _opened(
    path: str,
    outcome: str | None,
    score: str | None,
    weight: str | None,
    group: str | None,
    **cells: Any,
) -> Iterator[tuple[OpenTable, Names]]:
    try:
        from truecast.files import as_argument, guess, open_table
    except ImportError as error:
        raise ImportError("reading files needs Polars: pip install 'truecast[cli]'") from error
    scores = () if score is None else (score,)
    with open_table("./-" if path == "-" else path) as table:
        names = guess(
            table.name,
            table.columns,
            outcome=outcome,
            scores=scores,
            weight=weight,
            group=group,
            sample=table.sample,
            **cells,
            spelled=as_argument,
        )
        yield table, names


def _joined(column: tuple[Any, ...]) -> Any:
    return None if column[0] is None else np.concatenate(column)


def _none(file: RoundsFile) -> RoundArrays:
    """Return the arrays of no rounds."""
    weight = None if file.weight is None else np.empty(0, np.int64)
    return RoundArrays(
        np.empty(0), np.empty(0), weight, None if file.group is None else np.empty(0, object)
    )
