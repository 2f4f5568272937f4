"""Many independent streams in one call."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast import _check, _core, _threads
from truecast.certificate import ArcCertificate
from truecast.errors import InputError
from truecast.forecasters.arc import Arc
from truecast.forecasters.base import LadderForecaster

__all__ = ["ArcStreams", "Streams", "forecast_streams"]

_UP = 1.0 + 2.0**-48  # more than covers the rounding of a few operations on positive floats


@dataclass(frozen=True, eq=False)
class Streams:
    """What `forecast_streams` returns for forecasters on a ladder.

    Attributes
    ----------
    forecasts : array of shape (streams, rounds)
        Each made before its outcome was used.
    bound : array of shape (streams,)
        A proved bound on the distance to calibration of each stream, rounded up:
        `Certificate.bound`. Includes rounds that the forecaster had played before, here and below.
    deviation, bias, pooled : arrays of shape (streams,)
        Its parts D, A and B, rounded up.
    brier : array of shape (streams,)
        Mean squared error of each stream, a proper score; nan if there was no round.
    """

    forecasts: NDArray[np.float64]
    bound: NDArray[np.float64]
    deviation: NDArray[np.float64]
    bias: NDArray[np.float64]
    pooled: NDArray[np.float64]
    brier: NDArray[np.float64]
    _start: LadderForecaster
    _rounds: int
    _issued: bool
    _biases: NDArray[np.int64]
    _cells: NDArray[np.int64]
    _deviations: NDArray[np.uint64]
    _squared_errors: NDArray[np.float64]

    def __len__(self) -> int:
        """The number of streams."""
        return len(self._cells)

    def forecaster(self, stream: int) -> LadderForecaster:
        """Return a forecaster that continues this stream, with its exact certificate."""
        number = _number(stream, self)
        going_on = type(self._start)(**self._start.config)
        high, low = self._deviations[number].tolist()
        going_on.load(
            {
                "rounds": self._rounds,
                "open_cell": int(self._cells[number]),
                "issued": self._issued,
                "deviation": (high << 64) + low,
                "squared_error": float(self._squared_errors[number]),
                "biases": self._biases[number].tolist(),
            }
        )
        return going_on


@dataclass(frozen=True, eq=False)
class ArcStreams:
    """What `forecast_streams` returns for `Arc`.

    Attributes
    ----------
    forecasts : array of shape (streams, rounds)
        Each made before its outcome was used.
    bound, lower_distance, smooth_error : arrays of shape (streams,)
        Proved bounds for each stream, in total, rounded up: those of `ArcCertificate`. Includes
        rounds that the forecaster had played before, here and below.
    brier : array of shape (streams,)
        Mean squared error of each stream, a proper score; nan if there was no round.
    """

    forecasts: NDArray[np.float64]
    bound: NDArray[np.float64]
    lower_distance: NDArray[np.float64]
    smooth_error: NDArray[np.float64]
    brier: NDArray[np.float64]
    _start: Arc
    _outcomes: NDArray[np.uint8]

    def __len__(self) -> int:
        """The number of streams."""
        return len(self._outcomes)

    def forecaster(self, stream: int) -> Arc:
        """Return a forecaster that continues this stream, with its exact certificate."""
        going_on = Arc()
        going_on._take(self._start)
        going_on.forecast_many(self._outcomes[_number(stream, self)])
        return going_on


def _number(stream: int, streams: Streams | ArcStreams) -> int:
    if not len(streams):
        raise InputError("stream", "must be one of the streams, and there are none", stream)
    return _check.whole_number("stream", stream, least=0, most=len(streams) - 1)


@overload
def forecast_streams(
    forecaster: LadderForecaster, outcomes: ArrayLike, *, threads: int | None = None
) -> Streams: ...


@overload
def forecast_streams(
    forecaster: Arc, outcomes: ArrayLike, *, threads: int | None = None
) -> ArcStreams: ...


def forecast_streams(
    forecaster: LadderForecaster | Arc, outcomes: ArrayLike, *, threads: int | None = None
) -> Streams | ArcStreams:
    """Run a copy of a forecaster on every row of outcomes, independently, using all cores.

    Row k of the result is what a copy of `forecaster` gives for row k of the outcomes, bit for bit.
    The forecaster itself is not changed.

    Parameters
    ----------
    forecaster
        The state every stream starts from, usually a fresh forecaster.
    outcomes
        Array of shape (streams, rounds) of 0 and 1.
    threads
        How many threads; by default, all cores that this process may use, and no more than the
        environment variable TRUECAST_THREADS says.

    Returns
    -------
    Streams or ArcStreams
        Forecasts, bounds and Brier scores; ArcStreams for an `Arc`.

    Examples
    --------
    >>> import truecast as tc
    >>> import numpy as np
    >>> outcomes = np.random.default_rng(0).integers(0, 2, size=(1_000, 250))
    >>> streams = tc.forecast_streams(tc.BentGrid(horizon=250), outcomes)
    >>> streams.forecasts.shape, bool((streams.bound < 2 * 250**0.5 + 1).all())
    ((1000, 250), True)
    """
    if not isinstance(forecaster, LadderForecaster | Arc):
        raise InputError(
            "forecaster", "must be an AlmostOneStepAhead, a BentGrid or an Arc", forecaster
        )
    y = _check.outcomes(outcomes, dimensions=2)
    workers = (
        _threads.threads()
        if threads is None
        else _check.whole_number("threads", threads, least=1, most=1024)
    )

    if isinstance(forecaster, Arc):
        return _on_the_arc(forecaster, y, workers)
    return _on_the_ladder(forecaster, y, workers)


def _on_the_arc(start: Arc, y: NDArray[np.uint8], workers: int) -> ArcStreams:
    began, said = Arc(), np.empty(y.shape)
    began._take(start)

    def play(stream: int) -> ArcCertificate:
        player = Arc()
        player._take(began)
        player._run(y[stream], said[stream])
        return player.certificate

    proved = _threads.each(play, range(len(y)), workers)
    names = [field.name for field in fields(ArcStreams) if field.name in ArcCertificate.__slots__]
    columns = {name: np.array([getattr(one, name) for one in proved], float) for name in names}
    return ArcStreams(forecasts=said, **columns, _start=began, _outcomes=y.copy())


def _on_the_ladder(forecaster: LadderForecaster, y: NDArray[np.uint8], workers: int) -> Streams:
    count, points = len(y), len(forecaster.points)
    rounds, issued = forecaster.rounds + y.shape[1], forecaster.issued and y.shape[1] == 0
    said = np.empty(y.shape)
    biases = np.empty((count, points), np.int64)
    cells = np.empty(count, np.int64)
    words = np.empty((count, 2), np.uint64)
    squared_errors = np.empty(count)
    sums = np.empty((count, 4), np.int64)
    _core.run_streams(forecaster, y, said, biases, cells, words, squared_errors, sums, workers)

    deviation = (words[:, 0] * 2.0**64 + words[:, 1]) / (2 * forecaster.denominator) * _UP
    bias = sums[:, 0] / forecaster.denominator * _UP
    pooled = (sums[:, 1] + sums[:, 2] / sums[:, 3]) / forecaster.denominator * _UP
    return Streams(
        forecasts=said,
        bound=(deviation + np.minimum(bias, pooled)) * _UP,
        deviation=deviation,
        bias=bias,
        pooled=pooled,
        brier=squared_errors / rounds if rounds else np.full(count, np.nan),
        _start=forecaster,
        _rounds=rounds,
        _issued=issued,
        _biases=biases,
        _cells=cells,
        _deviations=words,
        _squared_errors=squared_errors,
    )
