"""The part of suspects that are there for no reason (docs/monitor.md, theorem 4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

import truecast as tc
from truecast.monitor.groups import e_bh

Rule = Callable[[Mapping[str | int, float], float], list[str | int]]
GROUPS, FDR = 8, 0.1


def worst_part(rule: Rule, x: float) -> float:
    """The largest part that a right group with evidence x can be of those chosen.

    Of the other groups, which are wrong, some have no evidence, some as much, and some are certain.
    """
    parts = [0.0]
    for certain, alike in itertools.product(range(GROUPS), repeat=2):
        none = GROUPS - 1 - certain - alike
        if none < 0:
            continue
        others = [math.inf] * certain + [x] * alike + [0.0] * none
        chosen = rule(dict(enumerate([x, *others])), FDR)
        parts.append((0 in chosen) / max(1, len(chosen)))
    return max(parts)


def worst_mean(rule: Rule) -> float:
    """Its mean over looks at the worst times, if all stakes are on that group and none is lost.

    The most evidence that the group ever has is then x or more with probability 1/x: Ville's
    inequality, which is an equality for bets that are small enough.
    """
    x = np.geomspace(1, 2 / FDR, 300)
    part = np.array([worst_part(rule, each) for each in x])
    return math.fsum(part[1:] * (1 / x[:-1] - 1 / x[1:])) + part[-1] / x[-1]


def test_worst_of_all_looks() -> None:
    """Theorem 4(b): at most fdr (1 + ln m); the worst there is, is fdr (1 + 1/2 + ... + 1/m)."""
    mean = worst_mean(e_bh)
    assert mean <= FDR * (1 + math.log(GROUPS))
    exact = FDR * math.fsum(1 / k for k in range(1, GROUPS + 1))
    assert mean == pytest.approx(exact, rel=0.02)


def no_count(evidence: Mapping[str | int, float], fdr: float) -> list[str | int]:
    """e-BH, broken: the number chosen is left out where there are several."""
    return [name for name, each in evidence.items() if each * len(evidence) * fdr >= 1]


def too_soon(evidence: Mapping[str | int, float], fdr: float) -> list[str | int]:
    """e-BH, broken: one more than were chosen."""
    chosen = e_bh(evidence, fdr)
    rest = [name for name in evidence if name not in chosen]
    return chosen + sorted(rest, key=lambda name: -evidence[name])[: bool(chosen)]


def no_rate(evidence: Mapping[str | int, float], fdr: float) -> list[str | int]:
    """e-BH, broken: with twice the part that was asked for."""
    return e_bh(evidence, 2 * fdr)


@pytest.mark.parametrize("broken", [no_count, too_soon, no_rate])
def test_a_broken_rule_is_noticed(broken: Rule) -> None:
    assert worst_mean(broken) > FDR * (1 + math.log(GROUPS))


def test_suspects_are_chosen_by_that_rule_at_every_look() -> None:
    """Half of ten groups are off. The worst part of false ones in any look, on average."""
    worst = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 10, 1_500)
        p = rng.uniform(0.1, 0.9, 1_500)
        y = rng.random(1_500) < np.where(group < 5, p, p**2)
        m, parts = tc.Monitor(), [0.0]
        for start in range(0, 1_500, 50):
            part = slice(start, start + 50)
            m.update_many(p[part], y[part], groups=group[part].tolist())
            chosen = m.suspects(fdr=FDR)
            evidence = {name: each.evidence for name, each in m.groups.items()}
            assert chosen == e_bh(evidence, FDR)
            parts.append(sum(name < 5 for name in chosen) / max(1, len(chosen)))  # type: ignore[operator]
        worst.append(max(parts))
        assert len(chosen) >= 3
    assert np.mean(worst) <= FDR * (1 + math.log(10))


def test_a_look_is_no_stopping_time_where_outcomes_are_late():
    """Ones are known at once, zeros late: the mean evidence at this look is above 1."""
    mean = 0.0
    for outcomes in itertools.product((0, 1), repeat=8):
        m = tc.Monitor(alpha=0.01)
        for y in outcomes:
            ticket = m.issue(0.5)
            if y:
                m.resolve(ticket, 1)
        mean += m.evidence / 2**8
    assert mean == pytest.approx(1.005, abs=5e-4)  # as the page says
