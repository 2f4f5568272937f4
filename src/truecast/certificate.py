"""The certificate: how far the forecasts so far can be from calibrated ones, proved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["ArcCertificate", "Certificate"]


class _Proved:
    """What follows from any certificate's bound."""

    __slots__ = ()

    rounds: int
    unresolved: int
    bound: float
    horizon: int | None

    @property
    def promised_rounds(self) -> int:
        """The number of rounds that `a_priori` is for."""
        return max(self.rounds + self.unresolved, self.horizon or 0)

    @property
    def per_round(self) -> float:
        """`bound` divided by the number of forecasts: the mean change that suffices (0 before the first outcome)."""
        return self.bound / max(self.rounds + self.unresolved, 1)

    @property
    def paper(self) -> float:
        """2 sqrt(T) + 1, the paper's theorem, for the T that `a_priori` is for: to compare with."""
        return 2.0 * math.sqrt(self.promised_rounds) + 1.0


@dataclass(frozen=True, slots=True)
class Certificate(_Proved):
    r"""What is proved about the forecasts made so far.

    The distance to calibration, CalDist, is the least total change, :math:`\sum_t |p_t - q_t|`, that turns the
    forecasts p into perfectly calibrated ones q. It is at most `deviation + min(bias, pooled)`, whatever the
    outcomes were and whoever chose them (docs/theory.md, theorem 3).

    It does not say that the forecasts are sharp: forecasting 1/2 for ever is calibrated on fair coins. Read `brier`
    beside it. Nor does it bound the calibration error by value (ECE), which no deterministic forecaster can keep
    small against an opponent who sees its forecasts.

    All sums are kept as exact integers and rounded up to a float here. They speak of the forecasts as fractions; the
    floats that `predict` returns are the nearest doubles, each within 2**-54 (and exact where the denominator is a
    power of two), so for the doubles add `rounds * 2**-54`.

    Attributes
    ----------
    rounds : int
        Outcomes observed.
    unresolved : int
        Forecasts issued whose outcomes have not come, or never will.
    deviation : float
        D, the distance from the forecasts to the points of the ladder that they were credited to: mostly what
        One-Step-Ahead would have said.
    bias : float
        A, the sum of the ladder's absolute biases: the distance of the credited points to one calibrated sequence.
    pooled : float
        B, its distance to another one, in which one round of every biased point is pooled.
    unknown : float
        What the unresolved forecasts add at worst: the sum of max(p, 1 - p) over them.
    bound : float
        D + min(A, B) + `unknown`: CalDist of the forecasts so far is at most this, whatever the missing outcomes are.
        With several groups it is the sum of theirs.
    a_priori : float
        What was proved before the first outcome, for `horizon` rounds, or for `rounds` if those are more or no
        horizon was given. Never below `bound`. Where outcomes came late, it is for as many outstanding as there ever
        were, and contains `unknown`.
    horizon : int or None
        The number of rounds the forecaster was built for.
    brier : float
        Mean squared error of the forecasts, a proper score; nan before the first outcome.
    """

    rounds: int
    deviation: float
    bias: float
    pooled: float
    bound: float
    a_priori: float
    horizon: int | None
    brier: float
    unresolved: int = 0
    unknown: float = 0.0

    def __str__(self) -> str:
        late = f" and {self.unresolved:,} without an outcome" if self.unresolved else ""
        return "\n".join(
            [
                f"after {_rounds(self.rounds)}{late}",
                f"  distance to calibration   <= {self.bound:,.4f} in total, {self.per_round:.6f} a round (proved)",
                f"    of which deviation         {self.deviation:,.4f}",
                f"    and bias                   {max(self.bound - self.deviation - self.unknown, 0.0):,.4f}",
                *([f"    and what is unresolved     {self.unknown:,.4f}"] if self.unresolved else []),
                f"  proved before the start   <= {self.a_priori:,.4f} for {_rounds(self.promised_rounds)}",
                f"  the paper, 2 sqrt(T) + 1     {self.paper:,.4f}",
                f"  Brier score                  {self.brier:.6f} (lower is better; sharpness counts)",
            ]
        )


@dataclass(frozen=True, slots=True)
class ArcCertificate(_Proved):
    """What is proved about the forecasts that `Arc` made so far: three bounds, all totals, rounded up.

    They follow from the energy of the residuals and hold for any outcomes, an opponent's too (docs/arc.md,
    theorems 2 and 3). Like `Certificate`, it does not say that the forecasts are sharp: read `brier` beside it.

    Attributes
    ----------
    rounds : int
        Outcomes observed.
    energy : float
        E, which all three come from.
    smooth_error : float
        The smooth calibration error is at most this.
    lower_distance : float
        The lower distance to calibration, which lets rounds be split, is at most this.
    bound : float
        The distance to calibration, CalDist, is at most this: `lower_distance` plus `splitting_gap(rounds)`,
        or `rounds` if that is less.
    a_priori : float
        What was proved of CalDist before the first outcome, for `rounds` rounds. Never below `bound`.
    brier : float
        Mean squared error of the forecasts, a proper score; nan before the first outcome.
    horizon, unresolved
        As in `Certificate`: None and 0, for `Arc` needs no horizon and learns each outcome before the next forecast.
    """

    rounds: int
    energy: float
    smooth_error: float
    lower_distance: float
    bound: float
    a_priori: float
    brier: float
    horizon: int | None = None
    unresolved: int = 0

    def __str__(self) -> str:
        return "\n".join(
            [
                f"after {_rounds(self.rounds)}",
                f"  distance to calibration   <= {self.bound:,.4f} in total, {self.per_round:.6f} a round (proved)",
                f"    if rounds may be split  <= {self.lower_distance:,.4f}",
                f"    smooth error            <= {self.smooth_error:,.4f}",
                f"  proved before the start   <= {self.a_priori:,.4f} for {_rounds(self.promised_rounds)}",
                f"  the paper, 2 sqrt(T) + 1     {self.paper:,.4f}",
                f"  Brier score                  {self.brier:.6f} (lower is better; sharpness counts)",
            ]
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """The exact sums that a certificate is made of, for one ladder."""

    rounds: int
    deviation: Fraction
    bias_sums: tuple[Fraction, Fraction]
    squared_error: float
    a_priori: Fraction
    unresolved: int = 0
    unknown: Fraction = Fraction(0)

    @property
    def bound(self) -> Fraction:
        """D + min(A, B), and what is unresolved (docs/theory.md, theorem 3; docs/adaptive.md, theorem 10)."""
        return self.deviation + min(self.bias_sums) + self.unknown


def certify(ladders: Sequence[Parts], horizon: int | None = None) -> Certificate:
    """Return the certificate of the rounds of all these ladders: the sum of theirs, rounded up once."""
    rounds = sum(parts.rounds for parts in ladders)
    return Certificate(
        rounds=rounds,
        deviation=round_up(_total(parts.deviation for parts in ladders)),
        bias=round_up(_total(parts.bias_sums[0] for parts in ladders)),
        pooled=round_up(_total(parts.bias_sums[1] for parts in ladders)),
        bound=round_up(_total(parts.bound for parts in ladders)),
        a_priori=round_up(_total(parts.a_priori for parts in ladders)),
        horizon=horizon,
        brier=sum(parts.squared_error for parts in ladders) / rounds if rounds else math.nan,
        unresolved=sum(parts.unresolved for parts in ladders),
        unknown=round_up(_total(parts.unknown for parts in ladders)),
    )


def _total(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def _rounds(number: int) -> str:
    return f"{number:,} round{'' if number == 1 else 's'}"


def round_up(exact: Fraction) -> float:
    """Return the least float that is not below `exact`."""
    near = exact.numerator / exact.denominator  # correctly rounded, so off by less than one float
    top, bottom = near.as_integer_ratio()
    return math.nextafter(near, math.inf) if top * exact.denominator < exact.numerator * bottom else near
