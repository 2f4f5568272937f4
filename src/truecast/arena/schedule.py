"""The games of a tournament: which there are, and how one is played and measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from truecast.arena.adversaries.base import Adversary
from truecast.arena.forecasters.base import Measure
from truecast.arena.game import Player, can_play, play
from truecast.arena.journal import Key
from truecast.arena.rows import Row
from truecast.arena.yardstick import distance
from truecast.certificate import round_up
from truecast.errors import InputError
from truecast.measures import brier_score, calibration_error_by_value, smooth_calibration_error

__all__ = ["Game", "Make", "schedule"]

Make = Callable[[int, int], Player]  # of rounds and seed


@dataclass(frozen=True)
class Game:
    """A forecaster, an adversary, rounds and a seed, which is None where nobody tosses coins."""

    key: Key
    make: Make
    adversary: Adversary
    rounds: int
    seed: int | None

    def measured(self, rtol: float, time_limit: float) -> tuple[Key, Row]:
        """Play and measure."""
        try:
            return self.key, self._measured(rtol, time_limit)
        except Exception as error:
            forecaster, adversary, *_ = self.key
            seed = "" if self.seed is None else f", seed {self.seed}"
            error.add_note(
                f"In the game of {forecaster} against {adversary}, {self.rounds:,} rounds{seed}"
            )
            raise

    def _measured(self, rtol: float, time_limit: float) -> Row:
        forecaster = self.make(self.rounds, self.seed or 0)
        game = play(forecaster, self.adversary, self.rounds, seed=self.seed or 0)
        tally = game.tally
        found = distance(tally, rtol=rtol, time_limit=time_limit)
        bound, bounds = _promise(forecaster, self.adversary, self.rounds)
        return Row(
            forecaster=self.key[0],
            adversary=self.key[1],
            sees=self.adversary.sees,
            rounds=self.rounds,
            seed=self.seed,
            lower=found.totals[0],
            upper=found.totals[1],
            by_value=float(calibration_error_by_value(tally, total=True)),
            smooth=float(smooth_calibration_error(tally, total=True)),
            brier=float(brier_score(tally)),
            certificate=None if game.certificate is None else game.certificate.bound,
            bound=bound,
            bounds=bounds,
        )


def schedule(
    forecasters: Mapping[str, Make],
    adversaries: Mapping[str, Adversary],
    horizons: Sequence[int],
    seeds: Sequence[int],
) -> Iterator[Game]:
    """Yield the games to play, in order of forecasters, adversaries, rounds and seeds."""
    for name, make in forecasters.items():
        entrants = {rounds: _entrant(name, make, rounds) for rounds in horizons}
        for against, adversary in adversaries.items():
            for rounds, built in entrants.items():
                if not adversary.plays(built):
                    continue
                key = name, against, _options(built), _options(adversary), rounds
                for seed in seeds if adversary.random or _draws(built) else [None]:
                    yield Game((*key, seed), make, adversary, rounds, seed)


def _entrant(name: str, make: Make, rounds: int) -> Player:
    """Build the forecaster of seed 0, to know it by its options."""
    try:
        built = make(rounds, 0)
    except Exception as error:
        error.add_note(f"While {name} was built for {rounds:,} rounds")
        raise
    if not can_play(built):
        raise InputError(
            "forecasters", f"must build what can predict and observe, and {name!r} does not", built
        )
    return built


def _draws(forecaster: object) -> bool:
    return hasattr(forecaster, "seed")


def _options(player: object) -> str:
    """Return the player with its options, the same in every process."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(player))


def _promise(
    forecaster: Any, adversary: Adversary, rounds: int
) -> tuple[float | None, Measure | None]:
    """Return the bound proved before the first round, and its measure: ours is the distance."""
    measure: Measure | None = getattr(forecaster, "bounds", "distance")
    seen = adversary.sees == "forecast" and _draws(forecaster)
    if measure is None or seen or not hasattr(forecaster, "a_priori"):
        return None, None
    bound = forecaster.a_priori(rounds)
    return (None, None) if bound == math.inf else (round_up(Fraction(bound)), measure)
