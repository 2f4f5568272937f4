"""The record of a game: forecasts and outcomes, measured and drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecast import _check, measures
from truecast.certificate import ArcCertificate, Certificate
from truecast.distance import Distance, calibration_distance
from truecast.measures import Report
from truecast.tally import Tally

if TYPE_CHECKING:
    from truecast.arena.adversaries.base import Adversary
    from truecast.arena.course import Course

__all__ = ["Transcript"]


@dataclass(frozen=True, eq=False)
class Transcript:
    """A game that was played.

    Attributes
    ----------
    forecaster, adversary : str
        Who played, with their options.
    seed : int
        For the adversary's randomness.
    p, y : array
        The forecast and the outcome of each round, outcomes as int64. For a forecaster of
        intervals, p is the end that is scored.
    certificate : Certificate, ArcCertificate or None
        The forecaster's own bound on the distance, if it has one. It covers all its rounds, also
        those before this game.
    """

    forecaster: str
    adversary: str
    seed: int
    p: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    certificate: Certificate | ArcCertificate | None = field(repr=False)

    def __len__(self) -> int:
        """How many rounds were played."""
        return len(self.p)

    @property
    def tally(self) -> Tally:
        """The counts of zeros and ones at each forecast."""
        return Tally.from_predictions(self.y, self.p)

    def measure(self) -> Report:
        """All measures at once, as `truecast.measure` gives them."""
        return measures.measure(self.tally)

    def distance(self, **options: Any) -> Distance:
        """The distance to calibration, by `truecast.calibration_distance` with its options.

        The certificate and the proved bounds are totals: compare them with ``distance().totals``.
        """
        return calibration_distance(self.y, self.p, **options)

    def course(self, *, points: int = 32, rtol: float = 0.01, time_limit: float = 20.0) -> Course:
        """Return the game in time, as `draw` draws it.

        Parameters
        ----------
        points
            How often to measure the distance on the way.
        rtol
            How close its bounds should be.
        time_limit
            Seconds for all points together. If it is reached, the bounds are wider, and drawn so.
        """
        from truecast.arena.course import Course

        points = _check.whole_number("points", points, least=1, most=10_000)
        return Course.of(
            self, points, rtol, _check.between("time_limit", time_limit, 0, float("inf"))
        )

    def draw(self, figure: Any = None, **options: Any) -> Any:
        """Draw the game in time: forecasts and share of ones above, distance and bounds below.

        The share of ones uses later rounds too, so a forecaster cannot follow it at once. Needs
        matplotlib.

        Parameters
        ----------
        figure
            A matplotlib figure or part of one to draw on; a new one if not given. To draw on axes
            of your own, see `Course.draw_forecasts` and `Course.draw_distance` of what `course`
            returns.
        options
            As of `course`.

        Returns
        -------
        figure
            What was drawn on.
        """
        from truecast.arena.course import blank

        # before all is measured, should matplotlib be missing
        figure = blank() if figure is None else figure
        return self.course(**options).draw(figure)


def written(
    forecaster: Any, adversary: Adversary, seed: int, p: NDArray[np.float64], y: NDArray[np.uint8]
) -> Transcript:
    """Write down a game."""
    outcomes = y.astype(np.int64)  # bytes would overflow in whatever a reader makes of them
    p.setflags(write=False)
    outcomes.setflags(write=False)
    certificate = getattr(forecaster, "certificate", None)
    return Transcript(repr(forecaster), repr(adversary), seed, p, outcomes, certificate)
