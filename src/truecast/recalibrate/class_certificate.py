"""What is proved about forecasts of several classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truecast._names import counted
from truecast.arc import LOWER_DISTANCE, root_of
from truecast.certificate import ArcCertificate
from truecast.ledger import MOST_CLAIMED, START, certify, most_hidden, most_prices
from truecast.recalibrate.class_rows import Label
from truecast.splitting import splitting_gap

__all__ = ["ClassCertificate", "certify_classes", "promised_of_classes"]

_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class ClassCertificate:
    """What is proved about forecasts of several classes: totals, rounded up.

    `classes` is about each class by itself: the probability said for it, and whether it happened.
    `top` is about the rounds in which a class was the most probable one: its probability, and
    whether it happened then. It does not say that forecasts are calibrated given the whole vector:
    nobody could tell, as the number of rounds that this takes grows exponentially with the classes.
    Nor does it say that the forecasts are sharp: read `brier` beside it.

    Attributes
    ----------
    rounds : int
        Outcomes learned.
    classes : dict
        A certificate for each class.
    top : dict
        A certificate for the rounds in which a class was the most probable, the first of them if
        there were several. No budget is kept for these: their `a_priori` is the number of rounds.
    lower_distance : float
        The sum of the classes' lower distances to calibration, which let rounds be split, is at
        most this.
    bound : float
        The sum of the classes' distances to calibration is at most this: the sum of their bounds.
    smooth_error : float
        The sum of the classes' smooth calibration errors, in total, is at most this.
    top_distance : float
        The sum of the lower distances of `top` is at most this: calibration of the top label. It
        bounds that of the confidence, too.
    a_priori : float
        What `bound` would be for all the energy that the budget allowed, whatever the outcomes
        (docs/classes.md, theorem 3). Never below `bound`.
    brier : float
        Mean of the sum over classes of (forecast - outcome)^2, from 0 to 2; nan before the first
        outcome.
    unresolved : int
        Forecasts issued whose outcomes have not come, or never will.
    """

    rounds: int
    classes: dict[Label, ArcCertificate]
    top: dict[Label, ArcCertificate]
    lower_distance: float
    bound: float
    smooth_error: float
    top_distance: float
    a_priori: float
    brier: float
    unresolved: int = 0

    @property
    def worst(self) -> Label:
        """The class with the largest bound on its distance, the first if there are ties."""
        return max(self.classes, key=lambda name: self.classes[name].bound)

    @property
    def per_round(self) -> float:
        """`bound` divided by the number of forecasts; 0 before the first outcome."""
        return self.bound / max(self.rounds + self.unresolved, 1)

    def __str__(self) -> str:
        late = f" and {self.unresolved:,} without an outcome" if self.unresolved else ""
        worst = self.classes[self.worst]
        return "\n".join(
            [
                f"after {counted(self.rounds, 'round')}{late}, {len(self.classes)} classes",
                f"  distances of the classes, summed  <= {self.bound:,.4f} in total, "
                f"{self.per_round:.6f} a round",
                f"    the largest: {self.worst!r:<20} <= {worst.bound:,.4f}",
                f"    if rounds may be split          <= {self.lower_distance:,.4f}",
                f"      of the top label              <= {self.top_distance:,.4f}",
                f"    smooth errors, summed           <= {self.smooth_error:,.4f}",
                f"  at worst they could be            <= {self.a_priori:,.4f}",
                f"  Brier score                          {self.brier:.6f} (0 to 2)",
            ]
        )


def certify_classes(
    names: tuple[Label, ...], classes: list[tuple[Any, ...]], top: list[tuple[Any, ...]]
) -> ClassCertificate:
    """Return the certificate from the core's parts, of each class and of each as the top label."""
    each = {name: certify(parts) for name, parts in zip(names, classes, strict=True)}
    tops = {name: certify((*parts[:-1], math.inf)) for name, parts in zip(names, top, strict=True)}
    made = sum(classes[0][:3])
    rounds = classes[0][0]
    squared_error = sum(parts[3] for parts in classes)
    bound = _summed(each, "bound")
    return ClassCertificate(
        rounds=rounds,
        classes=each,
        top=tops,
        lower_distance=_summed(each, "lower_distance"),
        bound=bound,
        smooth_error=_summed(each, "smooth_error"),
        top_distance=_summed(tops, "lower_distance"),
        a_priori=max(bound, min(_allowed(classes), float(made * len(names)))),
        brier=squared_error / rounds if rounds else math.nan,
        unresolved=classes[0][1] + classes[0][2],
    )


def promised_of_classes(classes: int, rounds: int, budget: float) -> float:
    """The bound on the sum of distances after `rounds` rounds, proved before the first.

    For outcomes that come at once, without groups.

    docs/classes.md, theorem 3; section 5 for doubles.
    """
    if rounds > MOST_CLAIMED:
        return float(classes * rounds)
    prices = min(classes * most_prices(rounds), 56.2 * rounds)
    spill = 25.5 * rounds ** (1 / 3) + rounds / 2**20 + 1.01 * 2.0**-37 * rounds**2
    credit = budget * (classes * START + prices) + spill
    credit += 2.0**-41 * classes * rounds * (math.sqrt(credit) + 4) * 1.01
    rounding = (budget + 1) * rounds / 2**20 + classes * rounds * (
        budget / 2**37 + 2.0**-39 * rounds
    )
    lower = LOWER_DISTANCE * math.sqrt(classes * (credit + rounding))
    rest = classes * (most_hidden(rounds) + splitting_gap(rounds))
    return min((lower + rest) * _UP, float(classes * rounds))


def _summed(each: Mapping[Label, ArcCertificate], name: str) -> float:
    return math.fsum(getattr(one, name) for one in each.values()) * _UP


def _allowed(classes: list[tuple[Any, ...]]) -> float:
    """The bound on the sum of distances for all the energy that the budget allows."""
    rounds: int = classes[0][0]
    gross: float = sum(parts[5] for parts in classes)
    beyond: float = sum(parts[6] * 2.0**-40 + parts[7] * 2.0**-32 for parts in classes)
    root = root_of(max(classes[0][8], sum(parts[4] for parts in classes)), gross)
    lower = LOWER_DISTANCE * math.sqrt(len(classes)) * root
    rest = beyond + len(classes) * (rounds * 2.0**-33 + splitting_gap(rounds))
    return (lower + rest) * _UP
