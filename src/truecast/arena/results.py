"""The results of a tournament: a row for every game, and ways to read them."""

from __future__ import annotations

import csv
import math
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from truecast.arena.rows import COLUMNS, Row, Summary
from truecast.arena.tables import Table, number
from truecast.errors import InputError

if TYPE_CHECKING:
    from truecast.arena.curves import Curves

__all__ = ["Results", "Row", "Summary"]


@dataclass(frozen=True, eq=True, repr=False)
class Results:
    """The games of a tournament, in order of forecasters, adversaries, rounds and seeds.

    It prints as a table of each forecaster's worst distance for each number of rounds.

    Attributes
    ----------
    rows : tuple of Row
        A row for every game.
    rtol : float
        The requested closeness of the bounds on the distance.
    """

    rows: tuple[Row, ...]
    rtol: float

    def __len__(self) -> int:
        """How many games there are."""
        return len(self.rows)

    @cached_property
    def forecasters(self) -> tuple[str, ...]:
        """The names of the forecasters that played."""
        return tuple(dict.fromkeys(row.forecaster for row in self.rows))

    @cached_property
    def adversaries(self) -> tuple[str, ...]:
        """The names of the adversaries that played."""
        return tuple(dict.fromkeys(row.adversary for row in self.rows))

    @cached_property
    def horizons(self) -> tuple[int, ...]:
        """The numbers of rounds that were played, in increasing order."""
        return tuple(sorted({row.rounds for row in self.rows}))

    @cached_property
    def _games(self) -> dict[tuple[str, int], dict[str, list[Row]]]:
        games: dict[tuple[str, int], dict[str, list[Row]]] = {}
        for row in self.rows:
            games.setdefault((row.forecaster, row.rounds), {}).setdefault(row.adversary, []).append(
                row
            )
        return games

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns, for a data frame: ``polars.DataFrame(results.columns())``."""
        return {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a file, numbers in full precision, nothing for None."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(COLUMNS)
            out.writerows([getattr(row, name) for name in COLUMNS] for row in self.rows)

    def summary(self) -> tuple[Summary, ...]:
        """Return the worst and the mean of each forecaster for each number of rounds."""
        return tuple(Summary.of(games.values()) for games in self._games.values())

    def table(self) -> Table:
        """Return each forecaster's worst distance by number of rounds, and more of the longest.

        The exponent is that of the power of T through the last two columns.
        """
        found = {(one.forecaster, one.rounds): one for one in self.summary()}
        names = ["forecaster", *(f"T={rounds:,}" for rounds in self.horizons)]
        names += ["exponent", "against", "mean", "Brier", "certificate", "proved bound", "on"]
        rows = []
        for name in self.forecasters:
            line = [found[name, rounds] for rounds in self.horizons if (name, rounds) in found]
            cells = [self._worst(found.get((name, rounds))) for rounds in self.horizons]
            last = line[-1]
            more = [last.against, number(last.mean), f"{last.brier:.3f}", number(last.certificate)]
            rows.append(
                (name, *cells, _exponent(line), *more, number(last.bound), last.bounds or "")
            )
        return Table(tuple(names), tuple(rows))

    def against(self, rounds: int) -> Table:
        """Return every forecaster's distance against every adversary: means over seeds."""
        if rounds not in self.horizons:
            raise InputError(
                "rounds", f"must be one of {', '.join(map(str, self.horizons))}", rounds
            )
        rows = []
        for name in self.forecasters:
            games = self._games.get((name, rounds), {})
            cells = (
                self._mean(games[adversary]) if adversary in games else ""
                for adversary in self.adversaries
            )
            rows.append((name, *cells))
        return Table(("forecaster", *self.adversaries), tuple(rows))

    def curves(self) -> Curves:
        """Return what `draw` draws: distances against the number of rounds, and the bounds."""
        from truecast.arena.curves import Curves

        return Curves.of(self)

    def draw(self, figure: Any = None) -> Any:
        """Draw distances by number of rounds: a panel for all forecasters, and one for each.

        Parameters
        ----------
        figure
            A matplotlib figure or part of one to draw on; a new one if not given. In less than 7
            inches by 1.5 for each line of panels nothing could be read, and it is refused:
            `Curves.draw_overview` draws on axes of any size.

        Returns
        -------
        figure
            What was drawn on.

        Raises
        ------
        InputError
            If the figure is too small. Nothing is drawn.
        """
        return self.curves().draw(figure)

    def markdown(self) -> str:
        """Return what is printed, in Markdown."""
        return f"{self._caption()}\n\n{self.table().markdown()}" if self.rows else "no games"

    def _caption(self) -> str:
        return (
            "CalDist, the distance to calibration in total, of each forecaster's worst game, "
            f"of {len(self):,} in all: an upper bound,\n"
            f"known to {self.rtol:.2g} relative; <= if less closely. "
            f"From the exponent of T on, columns are of T={self.horizons[-1]:,}."
        )

    def text(self, width: int = 120) -> str:
        """Return what is printed, in lines of at most `width` letters if possible."""
        if not self.rows:
            return "no games"
        caption = self._caption()
        if max(map(len, caption.split("\n"))) > width:
            caption = textwrap.fill(caption, width)
        return f"{caption}\n\n{self.table().text(width)}"

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _worst(self, one: Summary | None) -> str:
        return "" if one is None else number(one.worst, at_most=self._wide(one.at_least, one.worst))

    def _mean(self, games: list[Row]) -> str:
        lower = fmean(row.lower for row in games)
        upper = fmean(row.upper for row in games)
        return number(upper, at_most=self._wide(lower, upper))

    def _wide(self, lower: float, upper: float) -> bool:
        return upper - lower > max(self.rtol, 1e-6) * upper + 1e-9


def _exponent(line: list[Summary]) -> str:
    if len(line) < 2 or min(line[-1].worst, line[-2].worst) <= 0:
        return ""
    grown = math.log(line[-1].worst / line[-2].worst) / math.log(line[-1].rounds / line[-2].rounds)
    return f"{grown:.2f}"
