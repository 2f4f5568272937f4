"""Games: who sees what, what is written down, and what the adversaries choose."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.arena.adversaries.base import Stream
from truecast.arena.adversaries.sign_preservation import after, best_move, value
from truecast.arena.forecasters.base import RandomForecaster
from truecast.arena.game import Round


class Drawing(RandomForecaster):
    """Says 0.25 or 0.75, three times as often the one away from the last outcome."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed, last=[0])

    @property
    def config(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def _mixture(self) -> tuple[tuple[float, float], ...]:
        up = 0.25 if self._memory["last"][0] else 0.75
        return ((0.75, up), (0.25, 1 - up))

    def _learn(self, p: float, y: int) -> None:
        self._memory["last"][0] = y


class Says:
    """Says what it was given."""

    def __init__(self, said: list[Any]) -> None:
        self.said = iter(said)

    def predict(self) -> Any:
        return next(self.said)

    def observe(self, outcome: int) -> None:
        pass


class Few(Stream):
    """Always the same outcomes, however many are asked for."""

    def __init__(self, kept: list[int]) -> None:
        self.kept = np.array(kept, np.uint8)

    def stream(self, rounds: int, rng: np.random.Generator) -> Any:
        return self.kept


class Looking(tc.arena.Adversary):
    """Looks where it must, and writes down what it saw."""

    def __init__(self, sees: Any, what: str) -> None:
        self.sees, self.what, self.saw = sees, what, []

    def outcomes(self, game: Round) -> Iterator[int]:
        while True:
            self.saw.append(getattr(game, self.what))
            yield len(self.saw) % 2


def adversaries() -> list[tc.arena.Adversary]:
    a = tc.arena
    return [
        *(a.Constant(bit) for bit in (0, 1)),
        *(a.Periodic(pattern) for pattern in ((0, 1), (1, 1, 0))),
        *(a.Coins(rate) for rate in (0.5, 0.1)),
        *(a.Drift(period) for period in (None, 40)),
        *(a.Blocks(length) for length in (None, 7)),
        *(
            kind(sees)
            for kind in (a.Threshold, a.GreedyBias)
            for sees in ("forecast", "distribution")
        ),
        a.GreedyCertificate(),
        *(a.EarlyStop(enough) for enough in (None, 2.5)),
        a.SignPreservation(4),
        a.Given([0, 1, 1] * 100),
    ]


@pytest.mark.parametrize("adversary", adversaries(), ids=repr)
def test_same_seed_same_game_and_every_round_is_written_down(adversary: tc.arena.Adversary) -> None:
    games = []
    for seed in (5, 5, 6):
        f = tc.BentGrid(horizon=300)
        games.append(tc.arena.play(f, adversary, 300, seed=seed))
        game = games[-1]
        assert f.rounds == len(game) == len(game.p) == len(game.y) == 300
        assert game.certificate == f.certificate
        again = tc.BentGrid(horizon=300)
        assert again.forecast_many(game.y).tolist() == game.p.tolist()
    same, other = (np.array_equal(games[0].y, game.y) for game in games[1:])
    assert same
    assert other == (not adversary.random)


@pytest.mark.parametrize("adversary", adversaries(), ids=repr)
def test_an_adversary_says_how_to_build_it_again(adversary: tc.arena.Adversary) -> None:
    again = eval(repr(adversary), vars(tc.arena))
    assert repr(again) == repr(adversary)
    assert again.sees == adversary.sees
    copied = copy.deepcopy(adversary)
    plays = [
        tc.arena.play(tc.HorizonFree(), one, 120, seed=1).y.tolist()
        for one in (adversary, again, copied)
    ]
    assert plays[0] == plays[1] == plays[2]


def test_draws_depend_on_seed_and_round_alone() -> None:
    y = np.random.default_rng(3).integers(0, 2, 3_000)
    p = Drawing(7).forecast_many(y)
    assert p.tolist() == Drawing(7).forecast_many(y).tolist()
    assert p.tolist() != Drawing(8).forecast_many(y).tolist()
    half = Drawing(7)
    half.forecast_many(y[:1_500])
    assert half.forecast_many(y[1_500:]).tolist() == p[1_500:].tolist()
    up = np.where(np.append(0, y[:-1]), 0.25, 0.75)
    # fails once in 16,000 seeds
    assert abs(np.mean(p == 0.75) - np.mean(up)) < 4 * np.sqrt(0.25 / 3_000)
    assert abs(np.corrcoef(p[1:], p[:-1])[0, 1]) < 0.3


def test_forecaster_and_adversary_toss_different_coins() -> None:
    coins = tc.arena.play(tc.HorizonFree(), tc.arena.Coins(), 2_000, seed=4).y
    said = Drawing(4).forecast_many(np.zeros(2_000, int))
    assert abs(np.corrcoef(coins, said)[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("sees", "allowed"),
    [
        ("nothing", {"said", "outcomes", "rounds", "rng"}),
        ("distribution", {"said", "outcomes", "rounds", "rng", "distribution"}),
        (
            "forecast",
            {"said", "outcomes", "rounds", "rng", "distribution", "forecast", "forecaster"},
        ),
    ],
)
def test_an_adversary_cannot_look_at_more_than_it_sees(sees: str, allowed: set[str]) -> None:
    for what in ("said", "outcomes", "rounds", "rng", "distribution", "forecast", "forecaster"):
        looking = Looking(sees, what)
        if what in allowed:
            tc.arena.play(Drawing(), looking, 4)
            assert len(looking.saw) == 4
        else:
            with pytest.raises(
                tc.InputError,
                match=f"sees must be '{what if what != 'forecaster' else 'forecast'}'",
            ):
                tc.arena.play(Drawing(), looking, 4)


def test_who_sees_the_distribution_does_not_learn_the_draw() -> None:
    looking = Looking("distribution", "distribution")
    tc.arena.play(Drawing(), looking, 3)
    assert looking.saw == [
        ((0.75, 0.75), (0.25, 0.25)),
        ((0.75, 0.25), (0.25, 0.75)),
        ((0.75, 0.75), (0.25, 0.25)),
    ]
    looking = Looking("forecast", "distribution")
    game = tc.arena.play(Drawing(), looking, 3)
    assert looking.saw == [((p, 1.0),) for p in game.p]


class Ends(Looking):
    """Stops choosing, or chooses nonsense."""

    def __init__(self, last: list[Any]) -> None:
        super().__init__("nothing", "rounds")
        self.last = last

    def outcomes(self, game: Round) -> Iterator[int]:
        yield from [1, 0, *self.last]


@pytest.mark.parametrize("last", [[], [2], [None], ["1"], [np.array([0, 1])]])
def test_an_adversary_must_choose_0_or_1(last: list[Any]) -> None:
    with pytest.raises(
        tc.InputError, match="adversary must choose 0 or 1 in every round, got .* at position 2"
    ):
        tc.arena.play(tc.HorizonFree(), Ends(last), 4)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rounds": -1}, "rounds must be a whole number"),
        ({"rounds": 2.0}, "rounds must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"adversary": "coins"}, "adversary must be an Adversary"),
        (
            {"forecaster": tc.arena.RunningMean(), "adversary": tc.arena.GreedyCertificate()},
            "forecaster must be one",
        ),
        (
            {"adversary": tc.arena.Given([1, 0]), "rounds": 3},
            "rounds must be at most the 2 outcomes given",
        ),
        ({"adversary": Few([1, 0])}, r"adversary must choose 0 or 1 in every round, got \(2,\)"),
        ({"adversary": Few([1, 0, 2, 0, 0])}, "adversary must be 0 or 1, got 2 at position 2"),
    ],
)
def test_bad_games_are_refused(changes: dict[str, Any], match: str) -> None:
    options = {
        "forecaster": tc.HorizonFree(),
        "adversary": tc.arena.Coins(),
        "rounds": 5,
        "seed": 0,
    } | changes
    with pytest.raises(tc.InputError, match=match):
        tc.arena.play(**options)
    assert options["forecaster"].rounds == 0


@pytest.mark.parametrize(
    "adversary", [tc.arena.Coins(), tc.arena.Threshold(), tc.arena.GreedyCertificate()]
)
@pytest.mark.parametrize("other", [None, 0.5, tc.HorizonFree, tc.Guard(), tc.Recalibrator()])
def test_only_who_forecasts_from_outcomes_alone_can_play(
    other: Any, adversary: tc.arena.Adversary
) -> None:
    with pytest.raises(
        tc.InputError, match=r"forecaster must have predict\(\) and observe\(outcome\)"
    ):
        tc.arena.play(other, adversary, 3)


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), None, "x"])
def test_a_forecaster_must_say_probabilities(wrong: Any) -> None:
    with pytest.raises(
        tc.InputError, match="forecaster must say a number from 0 to 1 .*, got .* at position 2"
    ):
        tc.arena.play(Says([0, Fraction(1, 3), wrong]), tc.arena.Periodic(), 3)
    assert tc.arena.play(Says([0, Fraction(1, 3), wrong]), tc.arena.Periodic(), 2).p.tolist() == [
        0,
        1 / 3,
    ]


def test_a_stream_may_keep_its_outcomes() -> None:
    kept = Few([1, 0, 1])
    game = tc.arena.play(tc.HorizonFree(), kept, 3)
    kept.kept[0] = 0
    assert game.y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (tc.arena.Constant, {"bit": 2}),
        (tc.arena.Periodic, {"pattern": ()}),
        (tc.arena.Periodic, {"pattern": (0, 3)}),
        (tc.arena.Coins, {"rate": 1.5}),
        (tc.arena.Drift, {"period": 0}),
        (tc.arena.Blocks, {"length": 0}),
        (tc.arena.Threshold, {"sees": "nothing"}),
        (tc.arena.GreedyBias, {"sees": "nothing"}),
        (tc.arena.EarlyStop, {"enough": 0.0}),
        (tc.arena.SignPreservation, {"cells": 9}),
        (tc.arena.Given, {"outcomes": [0, 2]}),
        (tc.arena.LeaveBiased, {"stay": -1}),
        (tc.arena.LeaveBiased, {"look": 1.0}),
        (tc.arena.LeaveBiased, {"fine": 0.0}),
        (tc.arena.LeaveBiased, {"towards": 2}),
    ],
)
def test_bad_options_of_adversaries_are_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(tc.InputError, match=f"^{next(iter(options))} must be|must have an outcome"):
        kind(**options)


def test_streams_are_what_they_are_called() -> None:
    def stream(adversary: Stream, rounds: int = 12) -> str:
        return "".join(map(str, adversary.stream(rounds, np.random.default_rng(0)).tolist()))

    a = tc.arena
    assert stream(a.Constant(0)) == "0" * 12
    assert stream(a.Periodic((0, 0, 1))) == "001" * 4
    assert stream(a.Blocks(4)) == "000011110000"
    assert stream(a.Blocks(), 9) == "000111000"
    assert stream(a.Given([1, 0, 0]), 2) == "10"
    assert abs(stream(a.Coins(0.1), 10_000).count("1") - 1_000) < 120
    drift = np.array([*stream(a.Drift(), 30_000)], int).reshape(3, 10, -1).mean(axis=2)
    expected = np.mean(
        [[0.5 - 0.5 * np.cos(2 * np.pi * (i + j) / 10) for j in (0, 0.5, 1)] for i in range(10)],
        axis=1,
    )
    np.testing.assert_allclose(drift, np.tile(expected, (3, 1)), atol=0.07)


def test_threshold_and_greedy_contradict_a_constant() -> None:
    for rate, y in ((0.3, 1), (0.5, 1), (0.8, 0)):
        game = tc.arena.play(tc.arena.Climatology(rate=rate), tc.arena.Threshold(), 6)
        assert game.y.tolist() == [y] * 6
        game = tc.arena.play(tc.arena.Climatology(rate=rate), tc.arena.GreedyBias(), 6)
        assert game.y.tolist() == [y] * 6
        assert tc.calibration_error_by_value(game.y, game.p, total=True) == pytest.approx(
            6 * max(rate, 1 - rate)
        )


def test_greed_that_sees_the_forecast_contradicts() -> None:
    for f in (tc.AlmostOneStepAhead(grid=5), tc.HorizonFree(), Drawing(), tc.arena.RunningMean()):
        games = [
            tc.arena.play(copy.deepcopy(f), a, 200)
            for a in (tc.arena.GreedyBias(), tc.arena.Threshold())
        ]
        assert games[0].y.tolist() == games[1].y.tolist()


def test_greed_remembers_the_errors_so_far() -> None:
    mixtures = [((0.9, 1.0),), ((0.9, 0.5), (0.05, 0.5))]

    class Mixing(Says):
        @property
        def distribution(self) -> Any:
            return mixtures.pop(0)

    game = tc.arena.play(Mixing([0.9, 0.9]), tc.arena.GreedyBias("distribution"), 2)
    # 0.925 and not 0.875; a one, were it for the second round alone
    assert game.y.tolist() == [0, 0]


def test_seen_by_its_mean_a_mixture_is_contradicted() -> None:
    game = tc.arena.play(Drawing(1), tc.arena.Threshold("distribution"), 40)
    assert game.y.tolist() == [0, 0] * 20  # 0.625 on average after every zero


@pytest.mark.parametrize(
    "make", [lambda: tc.AlmostOneStepAhead(grid=9), tc.HorizonFree, lambda: tc.BentGrid(grid=8)]
)
def test_greedy_on_the_certificate_takes_the_larger(make: Any) -> None:
    """Against a copy that tries both outcomes."""
    f = make()
    game = tc.arena.play(f, tc.arena.GreedyCertificate(), 200)
    again = make()
    for y in game.y.tolist():
        sums = []
        for tried in (0, 1):
            ahead = copy.copy(again)
            ahead.predict()
            ahead.observe(tried)
            sums.append(ahead.deviation + ahead.bias_sums[0])
        assert y == int(sums[1] >= sums[0])
        again.predict()
        again.observe(y)


@pytest.mark.parametrize(("given", "enough"), [(6.0, 6.0), (None, 500 ** (1 / 3))])
def test_early_stop_freezes_the_error(given: float | None, enough: float) -> None:
    for seed in range(10):
        game = tc.arena.play(tc.arena.RunningMean(), tc.arena.EarlyStop(given), 500, seed=seed)
        off = np.cumsum(game.p - game.y)
        stop = int(np.argmax(abs(off) >= enough))
        if abs(off[stop]) < enough:
            continue
        assert set(game.y[stop + 1 :].tolist()) <= {int(off[stop] < 0)}
        assert abs(off[-1]) >= enough
        assert len(set(game.y[: stop + 1].tolist())) == 2 or stop < 12


def test_early_stop_is_worth_the_cube_root() -> None:
    """The lower bound's adversary costs our own forecasters more than half of T^(1/3), on
    average."""
    for f in (tc.BentGrid(horizon=1_000), tc.HorizonFree()):
        found = [
            tc.arena.play(copy.copy(f), tc.arena.EarlyStop(), 1_000, seed=s).distance(rtol=0.1)
            for s in range(5)
        ]
        assert np.mean([d.totals[0] for d in found]) > 5


def test_sign_preservation_is_played_by_its_rules() -> None:
    assert after((1, -1, 0, 1, -1), 2, 1) == (1, 0, 1, 0, -1)
    # by hand: the middle cell, then the half that keeps it
    for cells, signs in ((1, 1), (2, 1), (3, 2), (5, 3)):
        assert value((0,) * cells, cells) == signs
    for board in itertools.product((-1, 0, 1), repeat=4):
        move = best_move(board, 5)
        assert (move is None) == (value(board, 5) == sum(map(abs, board)))
        if move is not None:
            assert board[move] == 0
            assert value(board, 5) == min(value(after(board, move, sign), 4) for sign in (1, -1))


def test_an_epoch_of_sign_preservation_ends_with_its_sign() -> None:
    """Against who is off by half and more in every round, after some times the root of the epoch's
    length."""
    game = tc.arena.play(tc.arena.Climatology(rate=0.0), tc.arena.SignPreservation(), 4_800)
    assert set(game.y[:100].tolist()) == {0, 1}
    assert set(game.y[1_500:].tolist()) == {1}  # 12 epochs of up to 360 rounds else


def test_sign_preservation_leaves_errors_behind() -> None:
    """More than coins leave, in the error by value of the forecaster whose bound on it is
    proved."""

    def error(adversary: tc.arena.Adversary, seed: int) -> float:
        game = tc.arena.play(tc.arena.Foster(horizon=3_000, seed=seed), adversary, 3_000, seed=seed)
        return tc.calibration_error_by_value(game.y, game.p, total=True)

    signs, coins = (
        np.mean([error(a, s) for s in range(6)])
        for a in (tc.arena.SignPreservation(), tc.arena.Coins())
    )
    assert signs > 1.5 * coins


def test_transcript_measures_the_game() -> None:
    game = tc.arena.play(tc.HorizonFree(), tc.arena.Coins(0.3), 150, seed=2)
    assert game.tally == tc.Tally.from_predictions(game.y, game.p)
    assert game.measure() == tc.measure(game.y, game.p)
    assert game.distance().upper == tc.calibration_distance(game.y, game.p).upper
    assert (
        game.distance(total=True).upper
        == game.distance().totals[1]
        == pytest.approx(game.distance().upper * 150)
    )
    assert game.y.dtype == np.int64
    # bytes would overflow
    assert (game.y * 300 - 299).tolist() == [300 * y - 299 for y in game.y.tolist()]
    assert "HorizonFree" in repr(game)
    assert "Coins(rate=0.3)" in repr(game)
    for array in (game.p, game.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    empty = tc.arena.play(tc.HorizonFree(), tc.arena.Threshold(), 0)
    assert len(empty) == 0


def test_a_forecaster_of_ones_own_can_play() -> None:
    class Mine:
        def predict(self) -> float:
            return 0.4

        def observe(self, outcome: int) -> None:
            pass

    game = tc.arena.play(Mine(), tc.arena.Periodic((1, 0, 0, 1, 0)), 50)
    assert game.certificate is None
    assert game.distance().upper == pytest.approx(0, abs=1e-9)
    assert tc.arena.play(Mine(), tc.arena.GreedyBias("distribution"), 5).y.tolist() == [1] * 5
