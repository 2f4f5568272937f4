"""The figures of a record: the model's forecasts and the answered ones, side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from truecast import Tally, smooth_calibration_error, uncertainty
from truecast.serve.evidence import Evidence, evidence_of

if TYPE_CHECKING:
    from truecast.serve.stream import LiveStream

__all__ = ["Half", "Range", "Side", "Totals", "sides_of", "tally_of"]

MOST_RANGES = 20
RESAMPLES = 40
WINDOW = 200


class Range(msgspec.Struct, frozen=True):
    """Forecasts from `low` to `high`, and how often the outcome was 1.

    By chance alone, the rate of calibrated forecasts lies from `lower` to `upper` in about 95 % of
    cases: the normal approximation.
    """

    low: float
    high: float
    rounds: int
    forecast: float
    rate: float
    lower: float
    upper: float


class Half(msgspec.Struct, frozen=True):
    """The figures of one kind of forecast.

    `smooth` is the smooth calibration error, of forecasts rounded to the mean of their cell: cells
    are at most 1/128 wide. `smooth_by_chance` is about what calibrated forecasts would show.
    """

    mean: float
    brier: float
    log_loss: float | None
    smooth: float
    smooth_by_chance: float
    smooth_lower: float | None
    smooth_upper: float | None
    reliability: list[Range]
    evidence: Evidence


class Totals(msgspec.Struct, frozen=True):
    """The certificate, in numbers."""

    bound: float
    per_round: float
    a_priori: float
    rounds: int
    unresolved: int


class Rolling(msgspec.Struct, frozen=True):
    """The simplest forecast: the average of the last outcomes that were known."""

    window: int
    brier: float


class Side(msgspec.Struct, frozen=True):
    """One outcome, or one class of several."""

    label: str | None
    rounds: int
    rate: float
    average_brier: float
    rolling: Rolling
    before: Half
    after: Half
    certificate: Totals


def sides_of(stream: LiveStream) -> list[Side]:
    """Return the figures: one side, or one for each class, the worst certificate first."""
    rounds = stream.record.rounds
    if rounds == 0:
        return []
    certificate = stream.recalibrator.certificate
    if stream.binary:
        return [_side(stream, 0, None, certificate)]
    sides = [
        _side(stream, k, str(label), certificate.classes[label])
        for k, label in enumerate(stream.labels or ())
    ]
    return sorted(sides, key=lambda side: -side.certificate.per_round)


def _side(stream: LiveStream, k: int, label: str | None, certificate: Any) -> Side:
    side, rounds = stream.record.side(k), stream.record.rounds
    rate = side["ones"] / rounds
    own = None if label is None else (stream.labels or ())[k]
    intervals: list[Any] = [None, None]  # monitors of classes have only one, of the likeliest
    if stream.binary:
        intervals = [monitor.smooth_error() for monitor in stream.monitors]
    return Side(
        label,
        rounds,
        rate,
        rate * (1.0 - rate),
        Rolling(WINDOW, side["rolling"] / rounds),
        _half(side["before"], rounds, intervals[0], evidence_of(stream, 0, own)),
        _half(side["after"], rounds, intervals[1], evidence_of(stream, 1, own)),
        Totals(
            certificate.bound,
            certificate.per_round,
            certificate.a_priori,
            certificate.rounds,
            certificate.unresolved,
        ),
    )


def _half(half: Any, rounds: int, interval: Any, evidence: Evidence) -> Half:
    tally = tally_of(half)
    chance = uncertainty(smooth_calibration_error, tally, resamples=RESAMPLES)
    return Half(
        math.fsum(half["said"]) / rounds,
        half["brier"] / rounds,
        None if half["refuted"] else half["log"] / rounds,
        chance.estimate,
        chance.if_calibrated,
        None if interval is None else interval.lower,
        None if interval is None else interval.upper,
        _ranges(half, rounds),
        evidence,
    )


def edges(cells: int) -> NDArray[np.float64]:
    """Return where the cells of a record begin and end."""
    u = np.arange(cells + 1) / cells
    return np.where(u <= 0.5, 2.0 * u * u, 1.0 - 2.0 * (1.0 - u) ** 2)


def tally_of(half: Any) -> Tally:
    """Return the tally of forecasts rounded to the mean of their cell."""
    zeros, ones = half["zeros"], half["ones"]
    used = zeros + ones > 0
    ends = edges(len(zeros))
    p = half["said"][used] / (zeros + ones)[used]
    p = np.clip(p, ends[:-1][used], np.nextafter(ends[1:][used], 0.0))
    if used[-1]:  # the last cell has its upper end
        p[-1] = min(float(half["said"][-1] / (zeros + ones)[-1]), 1.0)
    return Tally(p, zeros[used], ones[used])


def _ranges(half: Any, rounds: int) -> list[Range]:
    """Put neighbouring cells together, until each range has a twentieth of the rounds."""
    ends = edges(len(half["zeros"]))
    found: list[Range] = []
    zeros = ones = 0
    said, low = 0.0, 0.0
    done = 0
    for k in range(len(half["zeros"])):
        zeros, ones = zeros + int(half["zeros"][k]), ones + int(half["ones"][k])
        said += float(half["said"][k])
        count = zeros + ones
        last = k + 1 == len(half["zeros"])
        if count and (last or (done + count) * MOST_RANGES >= (len(found) + 1) * rounds):
            found.append(_range(low, float(ends[k + 1]), count, said / count, ones / count))
            done, low = done + count, float(ends[k + 1])
            zeros, ones, said = 0, 0, 0.0
    return found


def _range(low: float, high: float, count: int, forecast: float, rate: float) -> Range:
    spread = 1.96 * math.sqrt(max(forecast * (1.0 - forecast), 0.0) / count)
    lower, upper = max(forecast - spread, 0.0), min(forecast + spread, 1.0)
    return Range(low, high, count, forecast, rate, lower, upper)
