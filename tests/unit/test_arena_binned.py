"""Foster, FosterVohra and GuptaRamdas: their rules, and their bounds at their constants.

The expectations that the two random ones speak of are not left to luck: the growth of the potential
that the proof uses is worked out from the distribution in every round, and the worst expectation of
short games is exact.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import testing
from truecast.arena import adversaries
from truecast.arena.adversaries import Adversary
from truecast.arena.forecasters.base import RandomForecaster
from truecast.arena.forecasters.foster import Foster
from truecast.arena.forecasters.foster_vohra import FosterVohra
from truecast.arena.forecasters.gupta_ramdas import GuptaRamdas
from truecast.arena.game import play

ROUNDS = 250

OPTIONS: list[Adversary] = [
    adversaries.Constant(0),
    adversaries.Periodic((0, 0, 1, 0, 1)),
    adversaries.Coins(0.03),
    adversaries.Blocks(3),
    adversaries.EarlyStop(2.0),
    adversaries.Threshold("distribution"),
    adversaries.GreedyBias("distribution"),
    adversaries.Given(np.random.default_rng(1).integers(0, 2, 10_000)),
]
for _name in adversaries.__all__:
    _class = getattr(adversaries, _name)
    _concrete = (
        inspect.isclass(_class) and issubclass(_class, Adversary) and not inspect.isabstract(_class)
    )
    if _concrete and all(
        p.default is not p.empty for p in inspect.signature(_class).parameters.values()
    ):
        OPTIONS.append(_class())

OPTIONS = [a for a in OPTIONS if a.plays(Foster(grid=2))]  # all but those against ladders
EVERYONE = pytest.mark.parametrize("adversary", OPTIONS, ids=lambda a: repr(a)[:60])
BLIND = pytest.mark.parametrize(
    "adversary", [a for a in OPTIONS if a.sees != "forecast"], ids=lambda a: repr(a)[:60]
)

RANDOM: dict[str, Callable[..., Any]] = {
    "Foster": Foster,
    "FosterVohra": FosterVohra,
    "FosterVohra, the paper's weights": lambda **options: FosterVohra(decay=0, **options),
}


class Watched:
    """Passes a game on to a forecaster and writes down the distributions."""

    def __init__(self, forecaster: RandomForecaster) -> None:
        self._forecaster = forecaster
        self.distributions: list[Any] = []

    @property
    def distribution(self) -> Any:
        return self._forecaster.distribution

    def predict(self) -> float:
        return self._forecaster.predict()

    def observe(self, outcome: int) -> None:
        self.distributions.append(self.distribution)
        self._forecaster.observe(outcome)


def watch(
    forecaster: RandomForecaster, adversary: Adversary, rounds: int = ROUNDS
) -> list[tuple[Any, float, int]]:
    """Distribution, forecast and outcome of each round."""
    watched = Watched(forecaster)
    game = play(watched, adversary, rounds)
    return list(zip(watched.distributions, game.p.tolist(), game.y.tolist(), strict=True))


def by_value(p: Any, y: Any) -> float:
    return tc.calibration_error_by_value(y, p, total=True)


class TestAll:
    @pytest.mark.slow("plays thousands of rounds one by one")
    @pytest.mark.parametrize("make", [Foster, FosterVohra, GuptaRamdas])
    def test_keeps_the_contract(self, make: Callable[..., Any]) -> None:
        testing.check_forecaster(lambda: make(horizon=1_000))

    @pytest.mark.alike("the whole contract on eight grids")
    @pytest.mark.parametrize("make", [*RANDOM.values(), GuptaRamdas])
    @pytest.mark.parametrize("grid", [1, 2])
    def test_keeps_the_contract_on_small_grids(self, make: Callable[..., Any], grid: int) -> None:
        short = [check for check in testing.CHECKS if check is not testing.check_memory]
        testing.check_forecaster(lambda: make(grid=grid), checks=short)

    @pytest.mark.parametrize("make", [Foster, FosterVohra])
    def test_a_seed_is_a_transcript(self, make: Callable[..., Any]) -> None:
        coins = adversaries.Coins()
        said = [play(make(grid=10, seed=seed), coins, 300).p.tolist() for seed in (7, 7, 8)]
        assert said[0] == said[1] != said[2]

    @pytest.mark.parametrize("make", [Foster, FosterVohra, GuptaRamdas])
    def test_horizon_or_grid_and_their_ranges(self, make: Callable[..., Any]) -> None:
        for options in (
            {},
            {"horizon": 0},
            {"horizon": 2**40 + 1},
            {"grid": 0},
            {"grid": 2.0},
            {"grid": 2**20 + 1},
        ):
            with pytest.raises(tc.InputError, match="horizon|grid"):
                make(**options)
        assert make(horizon=2**40).grid <= 2**20
        assert make(horizon=50, grid=3).config.items() >= {"horizon": 50, "grid": 3}.items()

    def test_other_options_are_checked(self) -> None:
        for make in (Foster, FosterVohra):
            with pytest.raises(tc.InputError, match="seed"):
                make(grid=2, seed=-1)
        for decay in (-1, 17, 0.5):
            with pytest.raises(tc.InputError, match="decay"):
                FosterVohra(grid=2, decay=decay)

    @pytest.mark.parametrize("make", [*RANDOM.values(), GuptaRamdas])
    @pytest.mark.parametrize("horizon", [1, 2, 3, 10, 57, 1_000, 31_337])
    def test_a_horizon_chooses_the_grid_of_the_least_bound(
        self, make: Callable[..., Any], horizon: int
    ) -> None:
        chosen = make(horizon=horizon)
        wide = range(1, 10 + 3 * math.isqrt(horizon))
        least = min(make(grid=m)._bound(horizon) for m in wide)
        assert chosen.a_priori(horizon) == pytest.approx(least, rel=1e-12)
        assert make(grid=chosen.grid).a_priori(horizon) == chosen.a_priori(horizon)

    @pytest.mark.parametrize(("make", "rate"), [(Foster, 0.97), (FosterVohra, 1.37)])
    def test_the_rates_that_are_stated(self, make: Callable[..., Any], rate: float) -> None:
        leading = {
            Foster: 1.5 * 4 ** (-1 / 3),
            FosterVohra: 1.5 * ((1 + math.pi**2 / 6) / 4) ** (1 / 3),
        }[make]
        assert make(horizon=10**6).a_priori(10**6) <= rate * 10**4
        assert leading <= make(horizon=10**12).a_priori(10**12) / 10**8 <= leading + 0.001

    @pytest.mark.parametrize("m", [1, 2, 5, 30])
    @pytest.mark.parametrize("rounds", [0, 1, 10, 1_000, 10**6])
    def test_bounds_are_the_formulas_stated(self, m: int, rounds: int) -> None:
        def stated(coarse: float, a: float, b: float) -> float:
            """T/(2m) and the less of `coarse` and the largest root of u^2 = a + b u; never more
            than T."""
            return min(rounds / (2 * m) + min(coarse, max(np.roots([1, -b, -a]))), rounds)

        h, tilt = 1 / (2 * m), 1 - 1 / m**2
        foster = stated(
            (1 - 1 / m) * math.sqrt(m * rounds), m * rounds * ((0.5 + h) ** 2 + tilt * h), m * tilt
        )
        assert Foster(grid=m).a_priori(rounds) == pytest.approx(foster, rel=1e-9, abs=1e-9)
        for decay in (0, 1, 4):
            s2, s3, s4 = (sum(k ** (e - decay) for k in range(1, m + 1)) for e in (2, 3, 4))
            scale, slope = (m + 1) * (1 + 1 / s2), s2 + s3 / m
            fine = scale * (rounds * (s2 / 4 + s3 / (2 * m) + s4 / (4 * m**2)) + slope * rounds * h)
            vohra = stated(math.sqrt((m + 1) * (1 + s2) * rounds), fine, scale * slope)
            assert FosterVohra(grid=m, decay=decay).a_priori(rounds) == pytest.approx(
                vohra, rel=1e-9, abs=1e-9
            )
        ramdas = rounds / (2 * m) + 3 * m / 4 - 1 / 2
        assert (
            min(ramdas, rounds) - 1 / m
            < GuptaRamdas(grid=m).a_priori(rounds)
            <= min(ramdas, rounds)
        )

    @pytest.mark.parametrize("make", [Foster, GuptaRamdas])
    @pytest.mark.parametrize("interval", [(0, -1), (3, -4), (-3, 2), (-1, -1)])
    def test_states_of_no_rounds_are_refused(
        self, make: Callable[..., Any], interval: tuple[int, int]
    ) -> None:
        """Half a one, two ones or minus one in a round, or a round too many."""
        f = make(grid=2)
        f.forecast_many([1, 0])
        before = f.state()
        assert (before["excess"], before["deficit"]) == ([1, -2], [-2, 1])
        wrong = before | {"excess": [interval[0], -2], "deficit": [interval[1], 1]}
        with pytest.raises(tc.StateError, match="rounds"):
            f.load(wrong)
        assert f.state() == before
        f.load(before | {"excess": [-1, -2], "deficit": [0, 1]})  # as after [0, 0]

    @pytest.mark.parametrize(
        "wrong", [{"biases": [-1.0, 0.0]}, {"biases": [0.0, 0.5]}, {"counts": [-1.0, 1.0]}]
    )
    def test_regrets_of_no_rounds_are_refused(self, wrong: dict[str, Any]) -> None:
        f = FosterVohra(grid=1)
        f.forecast_many([1, 0, 0])
        with pytest.raises(tc.StateError, match="rounds"):
            f.load(f.state() | wrong)


class TestExpectation:
    """The worst expectation that an adversary can bring about who knows all but the draw."""

    @pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
    @pytest.mark.parametrize(("grid", "rounds"), [(1, 5), (2, 6), (3, 6), (4, 5)])
    def test_short_games_exactly(self, make: Callable[..., Any], grid: int, rounds: int) -> None:
        f = make(grid=grid)
        start = f.state()
        worst = [self.worst(f, start, {}, left) for left in range(rounds + 1)]
        assert worst[0] == 0
        for left, value in enumerate(worst):
            assert value <= f.a_priori(left) + 1e-12

    def worst(self, f: Any, state: Any, tally: dict[float, float], left: int) -> float:
        if not left:
            return sum(map(abs, tally.values()))
        f.load(state)
        mixture = f.distribution
        assert sum(weight for _, weight in mixture) == pytest.approx(1, abs=1e-15)
        values = [0.0, 0.0]
        for y, (p, weight) in product((0, 1), mixture):
            f.load(state)
            f._said = p  # this draw
            f.observe(y)
            values[y] += weight * self.worst(
                f, f.state(), tally | {p: tally.get(p, 0.0) + p - y}, left - 1
            )
        return max(values)

    def test_a_bound_that_is_met(self) -> None:
        """Two intervals, two rounds: T/(2m) + (1 - 1/m) sqrt(mT) = 3/2."""
        f = Foster(grid=2)
        assert self.worst(f, f.state(), {}, 2) == f.a_priori(2) == 1.5

    @pytest.mark.alike("45 means over many games")
    @BLIND
    @pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
    def test_means_of_games(self, make: Callable[..., Any], adversary: Adversary) -> None:
        """The mean of 10 games. By Cantelli, as the root of the mean square of what is beyond
        T/(2m) is at most
        s = sqrt((m + 1)(1 + S_2) T), it would exceed the bound with probability at most 1/(1 + 10
        a^2) if the
        expectation were a s below it; the tests above and below leave less to luck."""
        games = [
            play(make(horizon=ROUNDS, seed=seed), adversary, ROUNDS, seed=seed)
            for seed in range(10)
        ]
        assert np.mean([by_value(game.p, game.y) for game in games]) <= make(
            horizon=ROUNDS
        ).a_priori(ROUNDS)


class TestFoster:
    @pytest.mark.alike("plays 34 games in fractions")
    @EVERYONE
    @pytest.mark.parametrize("grid", [2, 7])
    def test_rule_and_potential_round_by_round(self, adversary: Adversary, grid: int) -> None:
        self.check(watch(Foster(grid=grid), adversary), grid)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, 1), max_size=80), st.integers(1, 9), st.integers(0, 5))
    def test_rule_and_potential_on_any_outcomes(
        self, outcomes: list[int], grid: int, seed: int
    ) -> None:
        self.check(
            watch(Foster(grid=grid, seed=seed), adversaries.Given(outcomes), len(outcomes)), grid
        )

    def check(self, game: list[tuple[Any, float, int]], m: int) -> None:
        ones, said = [0] * m, [0] * m

        def off(i: int, more_ones: int = 0, more: int = 0) -> Fraction:
            """How far the ones in interval i are above, or below, what it allows."""
            n, s = said[i] + more, ones[i] + more_ones
            return max(s - Fraction(n * (i + 1), m), Fraction(0)) + min(
                s - Fraction(n * i, m), Fraction(0)
            )

        potential = Fraction(0)
        for distribution, p, y in game:
            at = [round(v * m - 0.5) for v, _ in distribution]
            assert [v for v, _ in distribution] == [(2 * i + 1) / (2 * m) for i in at]
            if len(at) == 1:
                weights, end = [Fraction(1)], None
                assert off(at[0]) == 0
            else:
                excess, deficit = off(at[0]), -off(at[1])
                assert at[1] == at[0] + 1
                assert min(excess, deficit) > 0
                weights, end = (
                    [deficit / (excess + deficit), excess / (excess + deficit)],
                    Fraction(at[1], m),
                )
            assert [w for _, w in distribution] == pytest.approx(
                [float(w) for w in weights], abs=1e-15
            )
            for outcome in (0, 1):
                grows = sum(
                    w * (off(i, outcome, 1) ** 2 - off(i) ** 2)
                    for i, w in zip(at, weights, strict=True)
                )
                nearest = (
                    min(max(Fraction(at[0], m), outcome), Fraction(at[0] + 1, m))
                    if end is None
                    else end
                )
                assert grows <= (outcome - nearest) ** 2 <= (1 - Fraction(1, m)) ** 2
                bends = sum(w * self.bent(i, outcome, m) for i, w in zip(at, weights, strict=True))
                assert (outcome - nearest) ** 2 <= bends
            i = round(p * m - 0.5)
            ones[i], said[i] = ones[i] + y, said[i] + 1
        potential = sum(off(i) ** 2 for i in range(m))
        beyond = (
            by_value([p for _, p, _ in game], [y for *_, y in game]) - len(game) / (2 * m)
            if game
            else 0
        )
        assert beyond <= math.sqrt(m * potential) + 1e-9

    @staticmethod
    def bent(i: int, y: int, m: int) -> Fraction:
        """What the second bound has for (y - r)^2."""
        c, h = Fraction(2 * i + 1, 2 * m), Fraction(1, 2 * m)
        return (Fraction(1, 2) + h) ** 2 + (1 + 2 * h) * (1 - 2 * c) * (y - c)

    def test_ten_thousand_intervals_are_searched_by_bisection(self) -> None:
        f = Foster(grid=10_000)
        looks = 0
        imbalance = f._intervals.imbalance

        def counted(i: int) -> int:
            nonlocal looks
            looks += 1
            return imbalance(i)

        f._intervals.imbalance = counted  # type: ignore[method-assign]
        play(f, adversaries.Coins(0.3), 1_000)
        assert looks <= 14 * 1_000


class Regrets:
    """All regrets of a game so far, from their definition."""

    def __init__(self, grid: int, decay: int) -> None:
        self.points = np.arange(grid + 1) / grid
        self.grid = grid
        steps = abs(np.subtract.outer(np.arange(grid + 1), np.arange(grid + 1))).astype(float)
        self.weights = np.divide(1, steps**decay, out=np.zeros_like(steps), where=steps > 0)
        self.steps = steps
        self.sums = np.zeros((grid + 1, grid + 1))

    def losses(self, y: int) -> Any:
        return (self.points[:, None] - y) ** 2 - (self.points[None, :] - y) ** 2

    def vector(self, distribution: Any) -> Any:
        mu = np.zeros(self.grid + 1)
        for v, weight in distribution:
            mu[round(v * self.grid)] += weight
        return mu

    @property
    def rates(self) -> Any:
        return self.weights * np.where(self.sums > 1e-12, self.sums, 0)

    def drift(self, mu: Any, y: int) -> float:
        """Blackwell's: positive regrets times what this round adds to them."""
        return float((mu[:, None] * self.rates * self.losses(y)).sum())

    @property
    def potential(self) -> float:
        """Of the proof: R_ij = (2k/m) x_ij, and the sum is of k^2 w x^2."""
        return float((self.weights * np.maximum(self.sums, 0) ** 2).sum()) * self.grid**2 / 4

    def stationary(self) -> Any:
        """A distribution that balances the flow, as in the paper."""
        flow = self.rates.T - np.diag(self.rates.sum(axis=1))
        size = abs(flow).max()
        if size == 0:
            return np.ones(self.grid + 1) / (self.grid + 1)
        _, _, basis = np.linalg.svd(flow / size)
        mu = abs(basis[-1])
        mu /= mu.sum()
        # else several classes were mixed
        return mu if abs(flow @ mu).max() <= 1e-9 * size else None


class TestFosterVohra:
    @pytest.mark.alike("plays 51 games in fractions")
    @EVERYONE
    @pytest.mark.parametrize(("grid", "decay"), [(1, 4), (6, 4), (7, 0)])
    def test_rule_and_potential_round_by_round(
        self, adversary: Adversary, grid: int, decay: int
    ) -> None:
        self.check(watch(FosterVohra(grid=grid, decay=decay), adversary), grid, decay)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, 1), max_size=60), st.integers(1, 9), st.integers(0, 6))
    def test_rule_and_potential_on_any_outcomes(
        self, outcomes: list[int], grid: int, decay: int
    ) -> None:
        self.check(
            watch(FosterVohra(grid=grid, decay=decay), adversaries.Given(outcomes), len(outcomes)),
            grid,
            decay,
        )

    def check(self, game: list[tuple[Any, float, int]], m: int, decay: int) -> None:
        """Blackwell's inequality, the potential, and the error of the means, which holds for
        anyone."""
        regrets = Regrets(m, decay)
        k = np.arange(1, m + 1)
        near = k ** (2.0 - decay)
        biases, squares = np.zeros(m + 1), 0.0
        for distribution, _, y in game:
            mu = regrets.vector(distribution)
            assert mu.sum() == pytest.approx(1, abs=1e-15)
            scale = 1 + abs(regrets.sums).max() * m
            for outcome in (0, 1):
                assert regrets.drift(mu, outcome) <= 1e-10 * scale
            if len(distribution) == 1:
                assert regrets.sums[mu > 0].max() <= 1e-10 * scale
            far = np.minimum(
                (abs(y - regrets.points)[:, None] + k / (2 * m)) ** 2 @ near, near.sum()
            )
            squares += float((mu**2 * far).sum())
            regrets.sums += mu[:, None] * regrets.losses(y)
            biases += mu * (y - regrets.points)
            assert regrets.potential <= squares * (1 + 1e-9) + 1e-9
        beyond = abs(biases).sum() - len(game) / (2 * m)
        assert beyond <= math.sqrt((m + 1) * squares) + 1e-9
        assert squares <= near.sum() * len(game) + 1e-9

    def test_against_the_stationary_distribution(self) -> None:
        """Both keep Blackwell's inequality; where two points regret only each other, both are the
        same."""
        same = compared = 0
        for grid, adversary in product(
            (2, 3, 6), (adversaries.Coins(0.4), adversaries.Threshold("distribution"))
        ):
            regrets = Regrets(grid, 0)
            for distribution, _, y in watch(FosterVohra(grid=grid, decay=0), adversary, 150):
                mu, paper = regrets.vector(distribution), regrets.stationary()
                if paper is not None:
                    compared += 1
                    scale = 1 + abs(regrets.sums).max() ** 2
                    assert max(regrets.drift(paper, outcome) for outcome in (0, 1)) <= 1e-9 * scale
                flow = mu @ regrets.rates - mu * regrets.rates.sum(axis=1)
                said = mu > 0
                if not regrets.rates[np.ix_(said, ~said)].any():
                    same += len(distribution) == 2
                    assert abs(flow).max() <= 1e-12 * (1 + regrets.rates.max())
                regrets.sums += mu[:, None] * regrets.losses(y)
        assert compared > 100
        assert same > 100

    def test_the_distribution_depends_on_the_outcomes_only(self) -> None:
        games = [watch(FosterVohra(grid=9, seed=seed), adversaries.Coins(), 300) for seed in (1, 2)]
        assert [d for d, *_ in games[0]] == [d for d, *_ in games[1]]
        assert [p for _, p, _ in games[0]] != [p for _, p, _ in games[1]]

    def test_draws_differ_from_the_means_by_little(self) -> None:
        """By Hoeffding and Azuma, but for a probability of 2e-9 for each of the six points."""
        game = watch(FosterVohra(grid=5, seed=11), adversaries.Coins(0.37), 4_000)
        off: defaultdict[float, float] = defaultdict(float)
        for distribution, p, _ in game:
            off[p] += 1
            for v, weight in distribution:
                off[v] -= weight
        assert max(map(abs, off.values())) <= math.sqrt(4_000 * math.log(1e9) / 2)


class TestGuptaRamdas:
    @EVERYONE
    @pytest.mark.parametrize(
        "options", [{"grid": 1}, {"grid": 2}, {"grid": 9}, {"grid": 40}, {"horizon": ROUNDS}]
    )
    def test_error_of_the_scored_points(
        self, adversary: Adversary, options: dict[str, int]
    ) -> None:
        f = GuptaRamdas(**options)
        game = play(f, adversary, ROUNDS)
        m = f.grid
        error = by_value(game.p, game.y)
        assert error <= f.a_priori(ROUNDS) + 1e-9
        assert error <= ROUNDS / (2 * m) + m + 1e-9  # the paper's theorem 1
        assert f.bounds == "by value"

    @pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
    def test_all_outcomes(self, m: int) -> None:
        """Every excess is below 1 - upper end, every deficit below the lower end; the bound on
        every string."""
        closest = 1.0
        for outcomes in product((0, 1), repeat=8):
            f = GuptaRamdas(grid=m)
            biases: defaultdict[float, Fraction] = defaultdict(Fraction)
            for t, y in enumerate(outcomes, start=1):
                low, high = f.interval
                assert f.predict() == pytest.approx((low + high) / 2, abs=1e-15)
                assert round(m * (high - low), 9) in (0, 1)
                assert f.scored(y) == (low, high)[y]
                biases[f.scored(y)] += Fraction(f.scored(y)).limit_denominator(2 * m) - y
                f.observe(y)
                error = sum(map(abs, biases.values()))
                assert error <= Fraction(t, 2 * m) + sum(
                    Fraction(max(m - 1 - i, i), m) for i in range(m)
                )
                closest = min(closest, f.a_priori(t) - error)
            memory = f.state()
            for i, (excess, deficit) in enumerate(
                zip(memory["excess"], memory["deficit"], strict=True)
            ):
                assert excess <= m - i - 1
                assert deficit <= i
        assert closest >= -1e-12
        assert GuptaRamdas(grid=m)._bound(10**6) == pytest.approx(
            10**6 / (2 * m) + sum(max(m - 1 - i, i) / m for i in range(m)), rel=1e-12
        )

    def test_rule_from_its_definition(self) -> None:
        """At rest, alone; else an interval whose mean is above it, and its upper neighbour, whose
        mean is below it."""
        m, f = 6, GuptaRamdas(grid=6)
        means: dict[float, list[int]] = defaultdict(list)
        kinds = set()
        for y in np.random.default_rng(4).integers(0, 2, 500).tolist():
            low, high = f.interval
            over = [
                sum(means[v]) * 2 * m - len(means[v]) * (round(2 * m * v) + 1) for v in (low, high)
            ]
            under = [
                len(means[v]) * (round(2 * m * v) - 1) - sum(means[v]) * 2 * m for v in (low, high)
            ]
            if low == high:
                assert max(over + under) <= 0
            else:
                assert over[0] > 0 < under[1]
            kinds.add(low == high)
            means[(low, high)[y]].append(y)
            f.observe(y)
        assert kinds == {True, False}

    @pytest.mark.parametrize(
        "adversary", [adversaries.Coins(0.4), adversaries.Drift(), adversaries.Blocks()]
    )
    def test_transcripts_have_the_scored_points(self, adversary: Adversary) -> None:
        game = play(GuptaRamdas(grid=12), adversary, 300, seed=5)
        f = GuptaRamdas(grid=12)
        middles = []
        for p, y in zip(game.p.tolist(), game.y.tolist(), strict=True):
            assert p == f.interval[y]
            middles.append(f.predict())
            f.observe(y)
        assert middles != game.p.tolist()
        assert GuptaRamdas(grid=12).forecast_many(game.y).tolist() == middles
        bound = GuptaRamdas(grid=12).a_priori(300) + 300 / 24
        assert tc.calibration_distance(game.y, middles, total=True).upper <= bound

    def test_scored_wants_an_outcome(self) -> None:
        with pytest.raises(tc.InputError, match="outcome"):
            GuptaRamdas(grid=3).scored(2)
