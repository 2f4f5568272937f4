"""The certificate: how far the forecasts so far can be from calibrated ones, proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from truecast._names import counted

__all__ = ["ArcCertificate", "Certificate"]

_SCORE = "(lower is better; sharpness counts)"


class _Proved:
    """What follows from any certificate's bound."""

    __slots__ = ()

    rounds: int
    unresolved: int
    bound: float
    a_priori: float
    horizon: int | None

    @property
    def promised_rounds(self) -> int:
        """The number of rounds that `a_priori` is for."""
        return max(self.rounds + self.unresolved, self.horizon or 0)

    @property
    def per_round(self) -> float:
        """`bound` divided by the number of forecasts; 0 before the first outcome."""
        return self.bound / max(self.rounds + self.unresolved, 1)

    @property
    def paper(self) -> float:
        """2 sqrt(T) + 1, the paper's bound for the T of `a_priori`, as a comparison."""
        return 2.0 * math.sqrt(self.promised_rounds) + 1.0

    @property
    def _distance(self) -> str:
        return f"{self.bound:,.4f} in total, {self.per_round:.6f} a round"

    @property
    def _promise(self) -> str:
        return f"{self.a_priori:,.4f} for {counted(self.promised_rounds, 'round')}"


@dataclass(frozen=True, slots=True)
class Certificate(_Proved):
    r"""What is proved about the forecasts made so far.

    The distance to calibration, CalDist, is the least total change, :math:`\sum_t |p_t - q_t|`,
    that turns the forecasts p into perfectly calibrated ones q. It is at most `deviation +
    min(bias, pooled)`, whatever the outcomes were and however they were chosen (docs/theory.md,
    theorem 3).

    It does not say that the forecasts are sharp: forecasting 1/2 for ever is calibrated on fair
    coins. Read `brier` beside it. Nor does it bound the calibration error by value (ECE), which no
    deterministic forecaster can keep small against an opponent who sees its forecasts.

    All sums are kept as exact integers and rounded up to a float here. They are about the forecasts
    as fractions. `predict` returns the nearest doubles, each within 2**-54 (exact if the
    denominator is a power of two), so for the doubles add `rounds * 2**-54`.

    Attributes
    ----------
    rounds : int
        Outcomes observed.
    deviation : float
        D, the distance from the forecasts to their credited points on the ladder: mostly what
        One-Step-Ahead would have said.
    bias : float
        A, the sum of the ladder's absolute biases: the distance of the credited points to one
        calibrated sequence.
    pooled : float
        B, the distance of the credited points to another calibrated sequence, which pools one round
        of every biased point.
    bound : float
        D + min(A, B): CalDist of the forecasts so far is at most this.
    a_priori : float
        What was proved before the first outcome, for `horizon` rounds, or for `rounds` if that is
        larger or there is no horizon. Never below `bound`.
    horizon : int or None
        The number of rounds the forecaster was built for.
    brier : float
        Mean squared error of the forecasts, a proper score; nan before the first outcome.
    unresolved : int
        0: each outcome is learned before the next forecast.
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

    def __str__(self) -> str:
        return "\n".join(
            [
                f"after {counted(self.rounds, 'round')}",
                f"  distance to calibration   <= {self._distance} (proved)",
                f"    of which deviation         {self.deviation:,.4f}",
                f"    and bias                   {max(self.bound - self.deviation, 0.0):,.4f}",
                f"  proved before the start   <= {self._promise}",
                f"  the paper, 2 sqrt(T) + 1     {self.paper:,.4f}",
                f"  Brier score                  {self.brier:.6f} {_SCORE}",
            ]
        )


@dataclass(frozen=True, slots=True)
class ArcCertificate(_Proved):
    """What is proved about the forecasts of `Arc`, `Guard` or `Recalibrator`: totals, rounded up.

    The three bounds follow from the energy of the residuals and hold for any outcomes, even an
    opponent's (docs/arc.md, theorem 2; docs/adaptive.md). Like `Certificate`, it does not say that
    the forecasts are sharp: read `brier` beside it.

    Attributes
    ----------
    rounds : int
        Outcomes observed.
    energy : float
        E, the source of all three bounds.
    smooth_error : float
        The smooth calibration error is at most this.
    lower_distance : float
        The lower distance to calibration, which lets rounds be split, is at most this.
    bound : float
        The distance to calibration, CalDist, is at most this: `lower_distance` plus
        `splitting_gap(rounds)`, or the number of forecasts if that is less.
    a_priori : float
        What `bound` would be if the whole budget of energy were used; the forecaster never exceeds
        it, whatever the outcomes. Never below `bound`. For `Arc` it was proved before the first
        round. For `Guard` and `Recalibrator` the budget depends on the forecasts made, which depend
        on the outcomes; ``Guard.a_priori(T)`` is proved before the first round. If outcomes come
        late, the budget grows with the number of open forecasts, and with what outcomes in between
        have added. Beyond 2**30 forecasts it is their number.
    brier : float
        Mean squared error of the forecasts, a proper score; nan before the first outcome.
    horizon : None
        No horizon is needed.
    unresolved : int
        Forecasts whose outcomes have not come, or never will.
    unknown : float
        What these add at worst, the sum of max(p, 1 - p); included in all bounds.
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
    unknown: float = 0.0

    def __str__(self) -> str:
        late = f" and {self.unresolved:,} without an outcome" if self.unresolved else ""
        return "\n".join(
            [
                f"after {counted(self.rounds, 'round')}{late}",
                f"  distance to calibration   <= {self._distance} (so far)",
                f"    if rounds may be split  <= {self.lower_distance:,.4f}",
                f"    smooth error            <= {self.smooth_error:,.4f}",
                *(
                    [f"    of which unresolved        {self.unknown:,.4f}"]
                    if self.unresolved
                    else []
                ),
                f"  at worst it could be      <= {self._promise}",
                f"  the paper, 2 sqrt(T) + 1     {self.paper:,.4f}",
                f"  Brier score                  {self.brier:.6f} {_SCORE}",
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

    @property
    def bound(self) -> Fraction:
        """D + min(A, B) (docs/theory.md, theorem 3)."""
        return self.deviation + min(self.bias_sums)


def certify(parts: Parts, horizon: int | None = None) -> Certificate:
    """Return the certificate of a ladder's rounds, each sum rounded up once."""
    return Certificate(
        rounds=parts.rounds,
        deviation=round_up(parts.deviation),
        bias=round_up(parts.bias_sums[0]),
        pooled=round_up(parts.bias_sums[1]),
        bound=round_up(parts.bound),
        a_priori=round_up(parts.a_priori),
        horizon=horizon,
        brier=parts.squared_error / parts.rounds if parts.rounds else math.nan,
    )


def round_up(exact: Fraction) -> float:
    """Return the least float that is not below `exact`."""
    near = exact.numerator / exact.denominator  # correctly rounded, so off by less than one float
    top, bottom = near.as_integer_ratio()
    return (
        math.nextafter(near, math.inf)
        if top * exact.denominator < exact.numerator * bottom
        else near
    )
