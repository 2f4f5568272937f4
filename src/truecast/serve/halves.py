"""The figures of a record: the model's forecasts and the answered ones, side by side.

The writer copies what they are made of (`facts_of`), which is quick; any thread makes the figures
of the copy (`side_of`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from truecast import Tally, smooth_calibration_error
from truecast.measures.uncertainty import resampled_tallies
from truecast.serve.evidence import Evidence, evidence_of

if TYPE_CHECKING:
    from truecast.serve.stream import LiveStream

__all__ = ["Chances", "Facts", "Half", "Range", "Side", "Totals", "facts_of", "side_of", "tally_of"]

MOST_RANGES = 20
RESAMPLES = 40
GROWN = 1.1  # times as many rounds, from which on chance is computed anew
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
    are at most 1/128 wide. `smooth_by_chance` is about what calibrated forecasts would show, after
    `smooth_by_chance_rounds` rounds: it is computed anew when the rounds have grown by a tenth.
    """

    mean: float
    brier: float
    log_loss: float | None
    smooth: float
    smooth_by_chance: float
    smooth_by_chance_rounds: int
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


class Facts(NamedTuple):
    """What the figures of one side are made of: a copy, which nothing changes any more.

    Pairs are of the model's forecasts and of the answered ones.
    """

    label: str | None
    rounds: int
    record: dict[str, Any]
    intervals: tuple[Any, Any]  # of the smooth error; monitors of classes have none
    evidence: tuple[Evidence, Evidence]
    certificate: Totals


def facts_of(stream: LiveStream, most: int) -> list[Facts]:
    """Return one side, or one for each class: at most `most`, the worst certificates first."""
    if stream.record.rounds == 0:
        return []
    certificate = stream.certificate
    if stream.binary:
        before, after = (monitor.smooth_error() for monitor in stream.monitors)
        return [_facts(stream, 0, None, certificate, (before, after))]
    proved = [certificate.classes[label] for label in stream.labels or ()]
    worst = sorted(range(len(proved)), key=lambda k: -proved[k].per_round)[:most]
    return [_facts(stream, k, (stream.labels or ())[k], proved[k], (None, None)) for k in worst]


def _facts(
    stream: LiveStream, k: int, label: str | int | None, proved: Any, intervals: tuple[Any, Any]
) -> Facts:
    return Facts(
        None if label is None else str(label),
        stream.record.rounds,
        stream.record.side(k),
        intervals,
        (evidence_of(stream, 0, label), evidence_of(stream, 1, label)),
        Totals(*(getattr(proved, name) for name in Totals.__struct_fields__)),
    )


class Chances:
    """What the smooth error would be by chance, kept while the rounds are about as many.

    Parameters
    ----------
    most
        How many are kept; those not asked for longest go.
    """

    def __init__(self, most: int = 4_000) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Any, ...], tuple[float, int]] = OrderedDict()

    def of(self, key: tuple[Any, ...], tally: Tally, rounds: int) -> tuple[float, int]:
        """Return it, and the rounds that it was computed for."""
        found = self._kept.pop(key, None)
        if found is None or not found[1] <= rounds < GROWN * found[1]:
            found = _by_chance(tally), rounds
        self._kept[key] = found
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found


def _by_chance(tally: Tally) -> float:
    """Return the mean smooth error of outcomes drawn as forecast."""
    drawn = resampled_tallies(tally, "consistency", RESAMPLES, 0)
    return math.fsum(map(smooth_calibration_error, drawn)) / RESAMPLES


def side_of(stream: int, facts: Facts, chances: Chances) -> Side:
    """Return the figures of one side of the stream with this number."""
    rounds, record = facts.rounds, facts.record
    rate = record["ones"] / rounds
    before, after = (
        _half((stream, facts.label, half), at, facts, chances)
        for at, half in enumerate(("before", "after"))
    )
    return Side(
        facts.label,
        rounds,
        rate,
        rate * (1.0 - rate),
        Rolling(WINDOW, record["rolling"] / rounds),
        before,
        after,
        facts.certificate,
    )


def _half(key: tuple[int, str | None, str], at: int, facts: Facts, chances: Chances) -> Half:
    half, rounds, interval = facts.record[key[2]], facts.rounds, facts.intervals[at]
    tally = tally_of(half)
    by_chance, then = chances.of(key, tally, rounds)
    return Half(
        math.fsum(half["said"]) / rounds,
        half["brier"] / rounds,
        None if half["refuted"] else half["log"] / rounds,
        smooth_calibration_error(tally),
        by_chance,
        then,
        None if interval is None else interval.lower,
        None if interval is None else interval.upper,
        _ranges(half, rounds),
        facts.evidence[at],
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
