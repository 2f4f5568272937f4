"""A game of a tournament, measured; and what several say together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from statistics import fmean

from truecast.arena.adversaries.base import Sees
from truecast.arena.forecasters.base import Measure

__all__ = ["COLUMNS", "Row", "Summary"]


@dataclass(frozen=True, slots=True)
class Row:
    """A game, measured. All in total over its rounds, except the Brier score.

    Attributes
    ----------
    forecaster, adversary : str
        The names of the players.
    sees : str
        What the adversary sees of the present forecast: "nothing", its "distribution", or the
        "forecast".
    rounds : int
        How many were played.
    seed : int or None
        Of both players' coins; None if neither tosses any.
    lower, upper : float
        Proven: the distance to calibration is between them.
    by_value, smooth : float
        The calibration error by value, and the smooth one.
    brier : float
        The mean squared error of the forecasts.
    certificate : float or None
        The forecaster's own bound on the distance, if it keeps one.
    bound : float or None
        What was proved before the first round of this game; of a forecaster that draws, about the
        expectation, so nothing against who sees what it drew.
    bounds : str or None
        Of which measure that is a bound: "distance", "lower distance", "by value" or "smooth".
    """

    forecaster: str
    adversary: str
    sees: Sees
    rounds: int
    seed: int | None
    lower: float
    upper: float
    by_value: float
    smooth: float
    brier: float
    certificate: float | None
    bound: float | None
    bounds: Measure | None


COLUMNS = tuple(field.name for field in fields(Row))


@dataclass(frozen=True, slots=True)
class Summary:
    """All games of a forecaster over a number of rounds.

    Attributes
    ----------
    forecaster : str
        Its name.
    rounds, games : int
        How many rounds a game had, and how many games there were.
    worst : float
        The largest upper bound on the distance, over all adversaries and seeds.
    at_least : float
        The largest lower bound: the largest distance is between the two.
    against : str
        The adversary of the largest.
    mean : float
        The mean over adversaries of the mean over seeds of the upper bounds.
    brier : float
        The same mean of the Brier scores.
    certificate, bound, bounds
        The largest certificate; what was proved before, and of which measure.
    """

    forecaster: str
    rounds: int
    games: int
    worst: float
    at_least: float
    against: str
    mean: float
    brier: float
    certificate: float | None
    bound: float | None
    bounds: Measure | None

    @classmethod
    def of(cls, games: Collection[Collection[Row]]) -> Summary:
        """Sum up the games of a forecaster over a number of rounds, given for each adversary."""
        rows = [row for played in games for row in played]
        worst = max(rows, key=lambda row: row.upper)
        promised = next((row for row in rows if row.bound is not None), None)
        return cls(
            forecaster=worst.forecaster,
            rounds=worst.rounds,
            games=len(rows),
            worst=worst.upper,
            at_least=max(row.lower for row in rows),
            against=worst.adversary,
            mean=fmean(fmean(row.upper for row in played) for played in games),
            brier=fmean(fmean(row.brier for row in played) for played in games),
            certificate=max(
                (row.certificate for row in rows if row.certificate is not None), default=None
            ),
            bound=promised.bound if promised else None,
            bounds=promised.bounds if promised else None,
        )
