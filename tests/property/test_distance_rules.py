"""Every rule that the distance to calibration is computed by (docs/distance.md), on small cases in
fractions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

F = Fraction
Values = list[Fraction]
Step = tuple[Fraction, int, int]  # value, zeros, ones
Cell = tuple[int, int, int, int]  # s_u, r_u, s_w, r_w: Farey neighbours s_u/r_u < s_w/r_w
RANDOM = st.integers(0, 2**32 - 1).map(Random)
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


# ----------------------------------------------------------------------------------------------
# instances and chains


def draw_values(rng: Random, n: int) -> Values:
    """n sorted forecasts: on a coarse grid or a fine one, anywhere, low or high."""
    grid = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 30, 97])
    low, high = rng.choice([(0, grid), (0, grid), (0, grid // 2), (grid // 2, grid)])
    return sorted(F(rng.randint(low, high), grid) for _ in range(n))


def draw_data(rng: Random, most: int, least: int = 0) -> tuple[Values, Values]:
    total = rng.randint(max(least, 1), most)
    zeros = rng.randint(0, total)
    return draw_values(rng, zeros), draw_values(rng, total - zeros)


def steps_within(n0: int, n1: int, primitive: bool = True) -> list[Step]:
    steps = [(F(dj, di + dj), di, dj) for di in range(n0 + 1) for dj in range(n1 + 1) if di + dj]
    return sorted(step for step in steps if not primitive or gcd(step[1], step[2]) == 1)


def random_chain(rng: Random, n0: int, n1: int) -> list[Step]:
    chain = []
    while n0 + n1:
        di, dj = rng.randint(0, min(n0, 4)), rng.randint(0, min(n1, 4))
        if di + dj:
            chain.append((F(dj, di + dj), di, dj))
            n0, n1 = n0 - di, n1 - dj
    return chain


def step_cost(a: Values, b: Values, i: int, j: int, step: Step) -> Fraction:
    v, di, dj = step
    return sum((abs(x - v) for x in a[i : i + di] + b[j : j + dj]), F(0))


def chain_cost(a: Values, b: Values, chain: list[Step]) -> Fraction:
    cost, i, j = F(0), 0, 0
    for step in chain:
        cost += step_cost(a, b, i, j, step)
        i, j = i + step[1], j + step[2]
    assert (i, j) == (len(a), len(b))
    return cost


def brute_force(a: Values, b: Values, weights: list[int] | None = None) -> Fraction:
    """CalDist by its definition, over all partitions of the rounds; a weight is never split."""
    p, y = a + b, [0] * len(a) + [1] * len(b)
    weights = weights or [1] * len(p)

    def cost(group: list[int]) -> Fraction:
        mean = F(sum(weights[t] * y[t] for t in group), sum(weights[t] for t in group))
        return sum((weights[t] * abs(p[t] - mean) for t in group), F(0))

    def partitions(n: int) -> Iterator[list[list[int]]]:
        if n == 0:
            yield []
            return
        for groups in partitions(n - 1):
            for k in range(len(groups)):
                yield [*groups[:k], [*groups[k], n - 1], *groups[k + 1 :]]
            yield [*groups, [n - 1]]

    known: dict[tuple[int, ...], Fraction] = {}
    best = None
    for groups in partitions(len(p)):
        total = F(0)
        for group in groups:
            key = tuple(group)
            if key not in known:
                known[key] = cost(group)
            total += known[key]
        best = total if best is None or total < best else best
    return best or F(0)


def relax(
    a: Values,
    b: Values,
    allowed: Callable[[int, int, Step], bool] = lambda i, j, step: True,
    bridged: Sequence[Cell] = (),
) -> Iterator[tuple[Fraction, dict[tuple[int, int], Fraction]]]:
    """The dynamic programme of theorem 1: after every value, the table of least costs up to
    there; with bridges over cells, in their order (theorem 6 (d))."""
    table = {(0, 0): F(0)}
    cells = list(bridged)
    for step in steps_within(len(a), len(b)):
        v, di, dj = step
        while cells and ends(cells[0])[1] <= v:
            bridge(a, b, cells.pop(0), table)
        of_zeros = list(accumulate((abs(x - v) for x in a), initial=F(0)))
        of_ones = list(accumulate((abs(x - v) for x in b), initial=F(0)))
        for i in range(len(a) - di + 1):
            for j in range(len(b) - dj + 1):
                if (i, j) in table and allowed(i, j, step):
                    cost = (
                        table[i, j] + of_zeros[i + di] - of_zeros[i] + of_ones[j + dj] - of_ones[j]
                    )
                    if cost < table.get((i + di, j + dj), cost + 1):
                        table[i + di, j + dj] = cost
        yield v, table


def bridge(a: Values, b: Values, cell: Cell, table: dict[tuple[int, int], Fraction]) -> None:
    """Steps of both ends of a cell in a row, for less by what its points cost; once each."""
    s1, r1, s2, r2 = cell
    u, w = ends(cell)
    for (i, j), length in list(table.items()):
        middle = i + r1 - s1, j + s1
        end = middle[0] + r2 - s2, middle[1] + s2
        if end[0] <= len(a) and end[1] <= len(b):
            cost = step_cost(a, b, i, j, (u, r1 - s1, s1))
            cost += step_cost(a, b, *middle, (w, r2 - s2, s2)) - loss_inside(cell, a + b)
            table[end] = min(table.get(end, length + cost), length + cost)


def distance(
    a: Values, b: Values, allowed: Callable[[int, int, Step], bool] = lambda i, j, step: True
) -> Fraction:
    *_, (_, table) = relax(a, b, allowed)
    return table[len(a), len(b)]


# --------------------------------------------------------------------------------------------------
# prices


class Prices:
    """Feasible prices, linear between k/n: two 1-Lipschitz functions, less the greatest (1 - v)
    A(v) + v B(v)."""

    def __init__(self, a: Values, b: Values, extra: Fraction | int = 0) -> None:
        self.n = len(a) - 1
        self.values = (a, b)
        self.extra = extra
        q = max(self._greatest(k) for k in range(self.n)) + extra
        self.values = ([x - q for x in a], [x - q for x in b])

    def _greatest(self, k: int) -> Fraction:
        (a0, a1), (b0, b1) = (side[k : k + 2] for side in self.values)
        slope_a, slope_b = (a1 - a0) * self.n, (b1 - b0) * self.n
        places = [F(k, self.n), F(k + 1, self.n)]
        if slope_b < slope_a:
            top = (a0 - slope_a * places[0] - b0 + slope_b * places[0] - slope_a) / (
                2 * (slope_b - slope_a)
            )
            if places[0] < top < places[1]:
                places.append(top)
        return max(-self.slack(v) for v in places)

    def __call__(self, side: int, v: Fraction) -> Fraction:
        k = min(int(v * self.n), self.n - 1)
        left, right = self.values[side][k : k + 2]
        return left + (right - left) * (v * self.n - k)

    def slack(self, v: Fraction) -> Fraction:
        return -((1 - v) * self(0, v) + v * self(1, v))

    def worth(self, a: Values, b: Values) -> Fraction:
        return sum((self(0, x) for x in a), F(0)) + sum((self(1, x) for x in b), F(0))


def draw_prices(rng: Random) -> Prices:
    n = rng.randint(1, 8)
    slopes = [F(-1), F(1), F(-1), F(1), F(0), F(1, 2), F(-1, 3)]
    sides = [
        list(
            accumulate((rng.choice(slopes) / n for _ in range(n)), initial=F(rng.randint(-4, 4), 8))
        )
        for _ in "AB"
    ]
    return Prices(sides[0], sides[1], F(rng.choice([0, 0, 1]), 16))


def good_prices(rng: Random, a: Values, b: Values, tries: int = 60) -> Prices:
    """Prices worth much, by trying changes of slopes."""
    n = 8
    slopes = [[F(rng.choice([-1, 1])) for _ in range(n)] for _ in "AB"]
    offset = F(0)

    def prices() -> Prices:
        zeros, ones = (list(accumulate((s / n for s in side), initial=F(0))) for side in slopes)
        return Prices(zeros, [x + offset for x in ones])

    best = prices()
    for _ in range(tries):
        side, k, old_offset = rng.randrange(2), rng.randrange(n), offset
        old = slopes[side][k]
        slopes[side][k] = F(rng.choice([-2, -1, 0, 1, 2]), 2)
        offset += F(rng.choice([0, -1, 1]), 16)
        new = prices()
        if new.worth(a, b) >= best.worth(a, b):
            best = new
        else:
            slopes[side][k], offset = old, old_offset
    return best


class Reduced:
    """Reduced costs at a value v: phi and its sums F for zeros (side 0) and ones (side 1), c, over
    and rem."""

    def __init__(self, a: Values, b: Values, prices: Prices, v: Fraction) -> None:
        self.v, self.slack = v, prices.slack(v)
        self.phi = [
            [abs(x - v) - prices(s, x) + prices(s, v) for x in side]
            for s, side in enumerate((a, b))
        ]
        self.sums = [list(accumulate(phi, initial=F(0))) for phi in self.phi]
        self.c = [bisect_right(a, v), bisect_right(b, v)]

    def step(self, i: int, j: int, di: int, dj: int) -> Fraction:
        zeros, ones = self.sums
        return zeros[i + di] - zeros[i] + ones[j + dj] - ones[j] + (di + dj) * self.slack

    def over(self, i: int, j: int) -> Fraction:
        return sum(
            (max(F(0), f[k] - f[c]) for f, k, c in zip(self.sums, (i, j), self.c, strict=True)),
            F(0),
        )

    def rem(self, i: int, j: int) -> Fraction:
        return sum(
            (max(F(0), f[c] - f[k]) for f, k, c in zip(self.sums, (i, j), self.c, strict=True)),
            F(0),
        )

    def hull(self, side: int, i: int, d: int) -> Fraction:
        f, c = self.sums[side], self.c[side]
        return max(f[i + d], f[c]) - min(f[i], f[c])


# --------------------------------------------------------------------------------------------------
# Farey cells


def draw_cell(rng: Random, depth: int) -> Cell:
    cell = (0, 1, 1, 1)
    for _ in range(rng.randint(0, depth)):
        s1, r1, s2, r2 = cell
        cell = rng.choice([(s1, r1, s1 + s2, r1 + r2), (s1 + s2, r1 + r2, s2, r2)])
    return cell


def draw_cells(rng: Random, depth: int, cell: Cell = (0, 1, 1, 1)) -> list[Cell]:
    """A partition of [0, 1] into Farey cells."""
    s1, r1, s2, r2 = cell
    if depth == 0 or rng.random() < 0.3:
        return [cell]
    left, right = (s1, r1, s1 + s2, r1 + r2), (s1 + s2, r1 + r2, s2, r2)
    return draw_cells(rng, depth - 1, left) + draw_cells(rng, depth - 1, right)


def ends(cell: Cell) -> tuple[Fraction, Fraction]:
    return F(cell[0], cell[1]), F(cell[2], cell[3])


def parents(v: Fraction) -> Cell:
    cell = (0, 1, 1, 1)
    while True:
        s1, r1, s2, r2 = cell
        middle = F(s1 + s2, r1 + r2)
        if middle == v:
            return cell
        cell = (s1, r1, s1 + s2, r1 + r2) if v < middle else (s1 + s2, r1 + r2, s2, r2)


def split_change(zeros: Values, ones: Values, cell: Cell, alpha: int, beta: int) -> Fraction:
    """What splitting the group into alpha times (r_u, s_u) and beta times (r_w, s_w) adds to its
    cost."""
    s1, r1, s2, r2 = cell
    u, w = ends(cell)
    v = F(alpha * s1 + beta * s2, alpha * r1 + beta * r2)
    k0, k1 = alpha * (r1 - s1), alpha * s1
    lower, upper = zeros[:k0] + ones[:k1], zeros[k0:] + ones[k1:]
    return sum((abs(x - u) - abs(x - v) for x in lower), F(0)) + sum(
        (abs(x - w) - abs(x - v) for x in upper), F(0)
    )


# --------------------------------------------------------------------------------------------------
# tests


@settings(quick, max_examples=60)
@given(RANDOM)
def test_primitive_steps_in_order_of_value_are_enough(rng: Random) -> None:
    a, b = draw_data(rng, 7)
    exact = brute_force(a, b)
    assert distance(a, b) == exact
    chain = random_chain(rng, len(a), len(b))
    cost = chain_cost(a, b, chain)
    in_order = chain_cost(a, b, sorted(chain))
    divided = [
        (v, di // gcd(di, dj), dj // gcd(di, dj))
        for v, di, dj in sorted(chain)
        for _ in range(gcd(di, dj))
    ]
    assert exact <= in_order <= cost
    assert chain_cost(a, b, divided) == in_order


@settings(quick, max_examples=120)
@given(RANDOM)
def test_cost_is_worth_plus_reduced_costs(rng: Random) -> None:
    a, b = draw_data(rng, 12)
    prices = draw_prices(rng)
    chain = random_chain(rng, len(a), len(b))
    worth, total, i, j = prices.worth(a, b), F(0), 0, 0
    for v, di, dj in chain:
        at_v = Reduced(a, b, prices, v)
        reduced = at_v.step(i, j, di, dj)
        assert min([at_v.slack, reduced, *at_v.phi[0], *at_v.phi[1]]) >= 0
        total, i, j = total + reduced, i + di, j + dj
    assert chain_cost(a, b, chain) == worth + total
    if len(a) + len(b) <= 8:
        assert worth <= distance(a, b)


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=120)
@given(RANDOM)
def test_bias_bounds_both_parts_of_a_chain(rng: Random) -> None:
    a, b = draw_data(rng, 12)
    prices = draw_prices(rng)
    chain = random_chain(rng, len(a), len(b))
    for k in range(len(chain) + 1):
        i, j = (sum(step[side] for step in chain[:k]) for side in (1, 2))
        for part, zeros, ones in ((chain[:k], a[:i], b[:j]), (chain[k:], a[i:], b[j:])):
            bias = abs(sum(zeros, F(0)) + sum(ones, F(0)) - len(ones))
            assert chain_cost(zeros, ones, part) >= bias
            assert reduced_cost(zeros, ones, prices, part) >= bias - prices.worth(zeros, ones)


def reduced_cost(a: Values, b: Values, prices: Prices, chain: list[Step]) -> Fraction:
    total, i, j = F(0), 0, 0
    for v, di, dj in chain:
        total += Reduced(a, b, prices, v).step(i, j, di, dj)
        i, j = i + di, j + dj
    return total


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=120)
@given(RANDOM)
def test_hull_bound_and_profile(rng: Random) -> None:
    a, b = draw_data(rng, 12)
    prices = draw_prices(rng)
    chain = sorted(random_chain(rng, len(a), len(b)))
    nodes, before = [(0, 0)], [F(0)]
    for v, di, dj in chain:
        i, j = nodes[-1]
        before.append(before[-1] + Reduced(a, b, prices, v).step(i, j, di, dj))
        nodes.append((i + di, j + dj))
    total = before[-1]
    used = sorted({v for v, _, _ in chain})
    values = sorted(
        {*used, F(0), F(1), F(rng.randint(0, 60), 60), *((x + y) / 2 for x, y in pairwise(used))}
    )
    profile = []  # (v, node, f - over) in increasing order of v, then of the node
    for v in values:
        at_v = Reduced(a, b, prices, v)
        for k, (i, j) in enumerate(nodes):
            if all(x <= v for x, _, _ in chain[:k]) and all(x >= v for x, _, _ in chain[k:]):
                assert before[k] >= at_v.over(i, j)
                assert total - before[k] >= at_v.rem(i, j)
                profile.append((v, k, before[k] - at_v.over(i, j)))
        for k, (x, di, dj) in enumerate(chain):
            if x == v:
                (i, j), (i2, j2) = nodes[k : k + 2]
                least = at_v.hull(0, i, di) + at_v.hull(1, j, dj) + (di + dj) * at_v.slack
                assert total >= least
                assert total == (before[k] - at_v.over(i, j)) + least + (
                    total - before[k + 1] - at_v.rem(i2, j2)
                )
    assert {v for v, _, _ in profile} == set(values)
    for (v, k, low), (v2, k2, high) in pairwise(profile):
        assert v <= v2
        assert k <= k2
        assert low <= high


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=80)
@given(RANDOM)
def test_mirror_reverses_chains_and_exchanges_over_and_rem(rng: Random) -> None:
    a, b = draw_data(rng, 10)
    prices = draw_prices(rng)
    a2, b2 = [1 - x for x in reversed(b)], [1 - x for x in reversed(a)]
    mirrored = Prices(prices.values[1][::-1], prices.values[0][::-1], prices.extra)
    assert mirrored.values == (prices.values[1][::-1], prices.values[0][::-1])
    chain = random_chain(rng, len(a), len(b))
    back = [(1 - v, dj, di) for v, di, dj in reversed(chain)]
    assert chain_cost(a2, b2, back) == chain_cost(a, b, chain)
    for v in {F(rng.randint(0, 12), 12), *a, *b}:
        here, there = Reduced(a, b, prices, v), Reduced(a2, b2, mirrored, 1 - v)
        assert here.slack == there.slack
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                assert here.rem(i, j) == there.over(len(b) - j, len(a) - i)
                assert here.over(i, j) == there.rem(len(b) - j, len(a) - i)


def backward(a: Values, b: Values, prices: Prices, bound: Fraction) -> tuple[Fraction | None, int]:
    """The backward programme with nodes discarded by the profile: least reduced cost, discards due
    to M alone."""
    n0, n1 = len(a), len(b)
    profile: dict[Fraction, Fraction] = {}
    running = F(0)
    for v, table in relax(a, b):
        at_v = Reduced(a, b, prices, v)
        least = bound + 1
        for (i, j), cost in table.items():
            f = cost - prices.worth(a[:i], b[:j])
            if f + at_v.rem(i, j) <= bound:
                least = min(least, f - at_v.over(i, j))
        running = max(running, least)
        profile[v] = running
    table = {(n0, n1): F(0)}
    discarded = 0
    for v, di, dj in reversed(steps_within(n0, n1)):
        at_v = Reduced(a, b, prices, v)
        for i in range(n0, di - 1, -1):
            for j in range(n1, dj - 1, -1):
                if (i, j) not in table:
                    continue
                if table[i, j] + at_v.over(i, j) + profile[v] > bound:
                    discarded += table[i, j] + at_v.over(i, j) <= bound
                    del table[i, j]
                    continue
                g = table[i, j] + at_v.step(i - di, j - dj, di, dj)
                table[i - di, j - dj] = min(g, table.get((i - di, j - dj), g))
    return table.get((0, 0)), discarded


@pytest.mark.slow("tries many examples")
def test_profile_discards_no_optimal_chain() -> None:
    rng = Random(5)  # noqa: S311
    discarded = 0
    for _ in range(25):
        a, b = draw_data(rng, 9, 4)
        prices = good_prices(rng, a, b)
        gap = distance(a, b) - prices.worth(a, b)
        found, without = backward(a, b, prices, gap)
        assert found == gap
        discarded += without
    assert discarded > 0  # the profile does something on these data


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=100)
@given(RANDOM)
def test_cell_bound_holds_for_all_values_of_the_cell(rng: Random) -> None:
    a, b = draw_data(rng, 12)
    prices = draw_prices(rng)
    u, m, v, w = sorted(F(rng.randint(0, 24), 24) for _ in range(4))
    if rng.random() < 0.5:
        m, v = v, m
    at_u, at_m, at_v, at_w = (Reduced(a, b, prices, x) for x in (u, m, v, w))
    assert at_v.slack >= at_m.slack - abs(v - m) * (1 + abs(prices(0, m) - prices(1, m)))
    for side, points in enumerate((a, b)):
        n, phi, phi_m = len(points), at_v.phi[side], at_m.phi[side]
        floor = [
            at_w.phi[side][k] if x >= w else at_u.phi[side][k] if x <= u else F(0)
            for k, x in enumerate(points)
        ]
        assert all(0 <= low <= cost for low, cost in zip(floor, phi, strict=True))
        for k, (x, y) in enumerate(pairwise(points)):
            assert y > v or phi[k] >= phi[k + 1]
            assert x < v or phi[k] <= phi[k + 1]

        def window(costs: Values, c: int, d: int, n: int = n) -> Fraction:
            return min(sum(costs[i : i + d], F(0)) for i in range(max(0, c - d), min(c, n - d) + 1))

        for d in range(1, n + 1):
            least = window(phi, at_v.c[side], d)
            assert least == sum(sorted(phi)[:d])
            assert least >= window(phi_m, at_m.c[side], d) - 2 * d * abs(v - m)
            assert least >= window(floor, at_m.c[side], d) == sum(sorted(floor)[:d])
            assert window(floor, at_m.c[side], d) >= window(phi_m, at_m.c[side], d) - 2 * d * max(
                w - m, m - u
            )
            for more in range(d, n + 1):
                for i in range(n - more + 1):
                    assert at_v.hull(side, i, more) >= sum(phi[i : i + more]) >= least


@settings(quick, max_examples=400)
@given(RANDOM)
def test_splitting_a_group_between_farey_neighbours(rng: Random) -> None:
    cell = draw_cell(rng, 4)
    s1, r1, s2, r2 = cell
    u, w = ends(cell)
    alpha, beta = rng.choice([(1, 1), (rng.randint(1, 4), rng.randint(1, 4))])
    r, s = alpha * r1 + beta * r2, alpha * s1 + beta * s2
    v = F(s, r)
    assert (v - u, w - v) == (F(beta, r * r1), F(alpha, r * r2))

    def outside(share: float) -> Fraction:
        return (
            w + (1 - w) * F(rng.randint(0, 4), 4)
            if rng.random() < share
            else u * F(rng.randint(0, 4), 4)
        )

    kind = rng.choice([(0.5, 0.5), (0.9, 0.1), (1, 0), (0.97, 0.03), (0.1, 0.9)])
    zeros = sorted(outside(kind[0]) for _ in range(r - s))
    ones = sorted(outside(kind[1]) for _ in range(s))
    change = split_change(zeros, ones, cell, alpha, beta)
    k0, k1 = alpha * (r1 - s1), alpha * s1
    low = F(sum(x <= u for x in zeros[:k0] + ones[:k1]), alpha * r1)
    high = F(sum(x >= w for x in zeros[k0:] + ones[k1:]), beta * r2)
    assert change == F(2 * alpha * beta, r) * (1 - low - high)
    assert change <= F(2 * alpha * beta, r * r1 * r2) <= F(r, 2 * (r1 * r2) ** 2)
    x, y = sum(x <= u for x in zeros), sum(x >= w for x in ones)
    sharp = 2 * (F(alpha * beta, r1 * r2) - F(beta * x, r1) - F(alpha * y, r2)) / r
    assert change <= max(F(0), sharp)
    if change > 0:
        assert change == sharp
    if alpha == beta == 1:
        assert (change > 0) == (min(zeros, default=F(1)) >= w and max(ones, default=F(0)) <= u)
    if x == y == 0:
        assert change == F(2 * alpha * beta, r * r1 * r2)


@settings(quick, max_examples=70)
@given(RANDOM)
def test_steps_that_may_be_split_are_not_needed(rng: Random) -> None:
    a, b = draw_data(rng, 11)

    def inverted(i: int, j: int, step: Step, u: Fraction, w: Fraction) -> bool:
        _, di, dj = step
        return (di == 0 or a[i] >= w) and (dj == 0 or b[j + dj - 1] <= u)

    def local(i: int, j: int, step: Step) -> bool:
        v, di, dj = step
        if v in (0, 1):
            return True
        u, w = ends(parents(v))
        return any(u < x < w for x in a[i : i + di] + b[j : j + dj]) or inverted(i, j, step, u, w)

    empty = [
        ends(cell)
        for cell in draw_cells(rng, 3)
        if not any(ends(cell)[0] < x < ends(cell)[1] for x in a + b)
    ]

    def by_cells(i: int, j: int, step: Step) -> bool:
        return all(not u < step[0] < w or inverted(i, j, step, u, w) for u, w in empty)

    exact = distance(a, b)
    assert distance(a, b, local) == exact
    assert distance(a, b, by_cells) == exact


def test_inverted_steps_are_needed() -> None:
    zero, one = [F(1)], [F(0)]
    assert distance(zero, one) == 1
    assert distance(zero, one, lambda i, j, step: step[0] in (0, 1)) == 2


@settings(quick, max_examples=70)
@given(RANDOM, st.integers(1, 8))
def test_forecasts_on_a_grid_need_no_long_steps_but_inverted_ones(rng: Random, m: int) -> None:
    a = sorted(F(rng.randint(0, m), m) for _ in range(rng.randint(0, 6)))
    b = sorted(F(rng.randint(0, m), m) for _ in range(rng.randint(1, 6)))

    def short(i: int, j: int, step: Step) -> bool:
        v, di, dj = step
        return di + dj <= m or ((di == 0 or a[i] > v) and (dj == 0 or b[j + dj - 1] < v))

    assert distance(a, b, short) == distance(a, b)


def loss_inside(cell: Cell, points: Values) -> Fraction:
    u, w = ends(cell)
    return sum((2 * (x - u) * (w - x) / (w - u) for x in points if u < x < w), F(0))


def loss_of_cuts(cells: list[Cell], a: Values, b: Values) -> Fraction:
    """The loss of theorem 6 (b): the part of the points inside, and the greatest of the rest (a
    knapsack)."""
    total, room = F(0), F(len(a) + len(b))
    for ratio, size in sorted(
        ((loss_inside(c, a + b) / (c[1] + c[3]), c[1] + c[3]) for c in cells), reverse=True
    ):
        part = min(room, size)
        total, room = total + ratio * part, room - part
    room = F(len(a) + len(b))
    for _, cell in sorted((cell[1] * cell[3], cell) for cell in cells):
        u, w = ends(cell)
        most = room
        if w < 1:
            most = min(most, sum(x > u for x in a) / (1 - w))
        if u > 0:
            most = min(most, sum(x < w for x in b) / u)
        room -= most
        total += most / (2 * (cell[1] * cell[3]) ** 2)
    return total


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=400)
@given(RANDOM)
def test_splitting_a_group_with_points_inside_the_cell(rng: Random) -> None:
    cell = draw_cell(rng, 3)
    s1, r1, s2, r2 = cell
    u, w = ends(cell)
    alpha, beta = rng.randint(1, 4), rng.randint(1, 4)
    r, s = alpha * r1 + beta * r2, alpha * s1 + beta * s2
    places = [F(0), u, w, F(1), F(s, r), *(u + (w - u) * F(k, 8) for k in range(1, 8))]
    kind = rng.choice([places, places[4:], [F(s, r)], [u, w, rng.choice(places)]])
    zeros, ones = (sorted(rng.choice(kind) for _ in range(n)) for n in (r - s, s))
    inside = loss_inside(cell, zeros + ones)
    change = split_change(zeros, ones, cell, alpha, beta)
    assert change <= inside + F(2 * alpha * beta, r * r1 * r2)
    above, below = sum(x > u for x in zeros), sum(x < w for x in ones)
    if above <= r * (1 - w) or below <= r * u:
        assert change <= inside
    assert inside <= sum((2 * min(x - u, w - x) for x in zeros + ones if u < x < w), F(0))
    at_v = split_change([F(s, r)] * (r - s), [F(s, r)] * s, cell, alpha, beta)
    assert at_v == loss_inside(cell, [F(s, r)] * r) == F(2 * alpha * beta, r)


@pytest.mark.slow("tries many examples")
@settings(quick, max_examples=70)
@given(RANDOM)
def test_cut_cells_cost_no_more_than_their_certificate(rng: Random) -> None:
    a, b = draw_data(rng, 10)
    cells = [cell for cell in draw_cells(rng, rng.randint(0, 3)) if rng.random() < 0.7]

    def outside(i: int, j: int, step: Step) -> bool:
        return not any(ends(cell)[0] < step[0] < ends(cell)[1] for cell in cells)

    for (v, free), (_, cut) in zip(relax(a, b), relax(a, b, outside), strict=True):
        below = [cell for cell in cells if ends(cell)[1] <= v]
        if outside(0, 0, (v, 0, 0)):
            for (i, j), cost in free.items():
                assert cost <= cut[i, j] <= cost + loss_of_cuts(below, a[:i], b[:j])
    largest = max((F(1, 2 * (cell[1] * cell[3]) ** 2) for cell in cells), default=F(0))
    simple = sum((loss_inside(cell, a + b) for cell in cells), F(0)) + (len(a) + len(b)) * largest
    assert loss_of_cuts(cells, a, b) <= simple
    assert distance(a, b) <= distance(a, b, outside) <= distance(a, b) + loss_of_cuts(cells, a, b)


@settings(quick, max_examples=60)
@given(RANDOM)
def test_steps_that_may_be_split_are_not_needed_with_cuts(rng: Random) -> None:
    a, b = draw_data(rng, 10)
    cells = [cell for cell in draw_cells(rng, rng.randint(1, 4)) if rng.random() < 0.6]
    exempt = set()
    for cell in draw_cells(rng, rng.randint(0, 3)):
        exempt |= set(ends(cell))  # ends of a partition: with a value, its parents

    def allowed(i: int, j: int, step: Step) -> bool:
        v, di, dj = step
        if any(ends(cell)[0] < v < ends(cell)[1] for cell in cells):
            return False
        if v in exempt:
            return True
        u, w = ends(parents(v))
        inverted = (di == 0 or a[i] >= w) and (dj == 0 or b[j + dj - 1] <= u)
        return inverted or any(u < x < w for x in a[i : i + di] + b[j : j + dj])

    for (v, free), (_, found) in zip(relax(a, b), relax(a, b, allowed), strict=True):
        if v in exempt and not any(ends(cell)[0] < v < ends(cell)[1] for cell in cells):
            below = [cell for cell in cells if ends(cell)[1] <= v]
            for (i, j), cost in free.items():
                assert found.get((i, j), cost + 99) <= cost + loss_of_cuts(below, a[:i], b[:j])
    for (v, free), (_, found) in zip(relax(a, b), relax(a, b, allowed, cells), strict=True):
        if v in exempt and not any(ends(cell)[0] < v < ends(cell)[1] for cell in cells):
            below = [cell for cell in cells if ends(cell)[1] <= v]
            steepest = max((F(1, 2 * (cell[1] * cell[3]) ** 2) for cell in below), default=F(0))
            gained = sum((loss_inside(cell, a + b) for cell in below), F(0))
            for (i, j), cost in free.items():
                assert cost - gained <= found.get((i, j), cost + 99) <= cost + (i + j) * steepest


@pytest.mark.parametrize("cell", [(0, 1, 1, 1), (1, 3, 1, 2), (2, 3, 3, 4), (1, 3, 2, 5)])
def test_bridges_make_up_for_points_inside(cell: Cell) -> None:
    s1, r1, s2, r2 = cell
    u, w = ends(cell)
    for alpha, beta in ((1, 1), (2, 1), (1, 2), (3, 2)):
        r, s = alpha * r1 + beta * r2, alpha * s1 + beta * s2
        a, b = [F(s, r)] * (r - s), [F(s, r)] * s

        def outside(i: int, j: int, step: Step) -> bool:
            return not u < step[0] < w

        assert distance(a, b, outside) == F(2 * alpha * beta, r) == loss_inside(cell, a + b)
        *_, (_, table) = relax(a, b, outside, [cell])
        assert table[r - s, s] == 0


def test_certificate_of_cut_cells_is_attained() -> None:
    def at_the_ends(i: int, j: int, step: Step) -> bool:
        return step[0] in (0, 1)

    unit = [(0, 1, 1, 1)]
    for r in range(2, 8):
        for s in range(1, r):
            a, b = [F(s, r)] * (r - s), [F(s, r)] * s
            assert distance(a, b) == 0
            assert distance(a, b, at_the_ends) == loss_inside(unit[0], a + b)
    assert distance([F(1)], [F(0)], at_the_ends) == 1 + loss_of_cuts(unit, [F(1)], [F(0)])


@settings(quick, max_examples=60)
@given(RANDOM, st.integers(0, 6))
def test_rounded_forecasts_have_nearly_the_same_distance(rng: Random, k: int) -> None:
    a, b = draw_data(rng, 9)
    rounded = [[F(round(x * 2**k), 2**k) for x in side] for side in (a, b)]
    assert abs(distance(a, b) - distance(*rounded)) <= F(len(a) + len(b), 2 ** (k + 1))


def can_be_shared(weights: tuple[int, ...], m: int, share: int) -> bool:
    """Whether the weights can be put into m heaps of the same weight."""
    heaps = {(0,) * m}
    for weight in weights:
        heaps = {
            tuple(sorted((*heap[:k], heap[k] + weight, *heap[k + 1 :])))
            for heap in heaps
            for k in range(m)
            if heap[k] + weight <= share
        }
    return bool(heaps)


def test_weights_that_cannot_be_split_solve_partition() -> None:
    rng = Random(3)  # noqa: S311
    seen = {(m, answer): 0 for m in (2, 3) for answer in (False, True)}
    while min(seen.values()) < 8:
        m = rng.choice([2, 3])
        weights = tuple(rng.randint(1, 9) for _ in range(rng.randint(m, 7 - m)))
        share, rest = divmod(sum(weights), m)
        answer = rest == 0 and can_be_shared(weights, m, share)
        if rest or seen[m, answer] >= 8:
            continue
        seen[m, answer] += 1
        ones = [F(k, k + 1) for k in range(1, m + 1)]
        least = brute_force(
            [F(1)] * len(weights), ones, [*weights, *(k * share for k in range(1, m + 1))]
        )
        target = sum(F(share, k + 1) for k in range(1, m + 1))
        assert (least == target) if answer else (least > target)
        # the prices of the proof are worth that much
        worth = F(3, 4) * sum(weights) + sum(
            k * share * (v - F(5, 4) + 1 / (4 * v)) for k, v in enumerate(ones, 1)
        )
        assert worth == target


def test_prices_of_the_reduction_are_feasible() -> None:
    def a(v: Fraction) -> Fraction:
        return v - F(1, 4)

    def b(v: Fraction) -> Fraction:
        return v - F(5, 4) + 1 / (4 * v) if v >= F(1, 2) else F(-1, 4)

    grid = [F(k, 120) for k in range(121)]
    for v in grid:
        excess = (1 - v) * a(v) + v * b(v)
        assert excess == 0 if v >= F(1, 2) else excess == -((v - F(1, 2)) ** 2) < 0
        assert all(abs(b(v) - b(u)) < abs(v - u) for u in grid if u != v)
