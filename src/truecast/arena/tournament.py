"""A tournament: every forecaster against every adversary, with the same measure."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

from truecast import _check
from truecast._threads import threads
from truecast.arena.adversaries.base import Adversary
from truecast.arena.game import MAX_ROUNDS
from truecast.arena.journal import Journal, Key
from truecast.arena.results import Results
from truecast.arena.rows import Row
from truecast.arena.schedule import Game, Make, schedule
from truecast.arena.workers import in_processes
from truecast.errors import InputError

__all__ = ["Make", "tournament"]

_MOST_SEED = 2**63
_MOST_SEEDS = 10**6


def tournament(
    forecasters: Mapping[str, Make] | None = None,
    adversaries: Mapping[str, Adversary] | None = None,
    horizons: Sequence[int] = (100, 1_000, 10_000),
    seeds: int | Sequence[int] = 10,
    *,
    path: str | Path | None = None,
    workers: int | None = None,
    rtol: float = 0.01,
    time_limit: float = 10.0,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Let every forecaster play against every adversary, and measure the games.

    With a `path`, every finished game is saved at once. Whatever stops a tournament, Ctrl-C or
    worse, the same call plays the missing games.

    A game is played for every seed if the adversary or the forecaster is randomised; otherwise
    once. A randomised forecaster has an attribute `seed`. Pairs that cannot play
    (`Adversary.plays`) are left out.

    The same call gives the same table, except for the bounds on the distance: these are proved, but
    may differ from run to run by `rtol`, or by more if a search reached its `time_limit`.

    Parameters
    ----------
    forecasters
        Names, and functions that build a forecaster for a number of rounds and a seed;
        `roster.FORECASTERS` if not given. To play in other processes, they must be defined at the
        top of a file.
    adversaries
        Names and adversaries; `roster.ADVERSARIES` if not given.
    horizons
        How many rounds to play: a game for each.
    seeds
        How many seeds, counted from 0; or which.
    path
        A file to keep the games in; it may have games of other players, rounds or seeds. Players
        are recognised by their names here and by their `repr`: if you change a player, change one
        of these, or use another file.
    workers
        How many processes play; 1 plays in this one. By default the number of processors.
    rtol, time_limit
        How close the bounds on each distance should be, and how many seconds that may take, as in
        `truecast.calibration_distance`.
    progress
        Called with the numbers of games done and of all games, at the start and after each game.

    Returns
    -------
    Results
        A row for every game: print it, draw it, or make a data frame of it.

    Raises
    ------
    InputError
        If an argument breaks a rule, or the file at `path` is something else or was made by another
        version or with another `rtol` or `time_limit`. Nothing changes. Errors of players are
        raised unchanged, with a note about the game.

    Examples
    --------
    >>> import truecast as tc
    >>> def aosa(rounds, seed):
    ...     return tc.AlmostOneStepAhead(horizon=rounds)
    >>> adversaries = {"coins": tc.arena.Coins(), "threshold": tc.arena.Threshold()}
    >>> results = tournament({"AOSA": aosa}, adversaries, [400], seeds=2, workers=1)
    >>> [(row.forecaster, row.adversary, row.rounds, row.seed) for row in results.rows]
    [('AOSA', 'coins', 400, 0), ('AOSA', 'coins', 400, 1), ('AOSA', 'threshold', 400, None)]
    >>> all(row.lower <= row.certificate <= row.bound for row in results.rows)
    True
    >>> all(row.bound <= 2 * row.rounds**0.5 + 1 for row in results.rows)
    True
    """
    if forecasters is None or adversaries is None:
        from truecast.arena import roster

        forecasters = roster.FORECASTERS if forecasters is None else forecasters
        adversaries = roster.ADVERSARIES if adversaries is None else adversaries
    _named("forecasters", forecasters, callable, "functions of rounds and seed")
    _named(
        "adversaries",
        adversaries,
        lambda one: isinstance(one, Adversary),
        "adversaries of truecast.arena",
    )
    horizons = _distinct("horizons", horizons, least=1, most=MAX_ROUNDS)
    seeds = _distinct("seeds", _counted(seeds), least=0, most=_MOST_SEED)
    if workers is None:
        workers = threads()
    else:
        workers = _check.whole_number("workers", workers, least=1, most=1024)
    rtol = 0.0 if rtol == 0 else _check.between("rtol", rtol, 0, 1)
    time_limit = _check.between("time_limit", time_limit, 0, math.inf)
    if progress is not None and not callable(progress):
        raise InputError(
            "progress", "must be a function of the numbers of games done and of all games", progress
        )
    if workers > 1:
        _refuse_what_cannot_travel("forecasters", forecasters)
        _refuse_what_cannot_travel("adversaries", adversaries)
    games = list(schedule(forecasters, adversaries, horizons, seeds))
    work = partial(Game.measured, rtol=rtol, time_limit=time_limit)
    with nullcontext() if path is None else closing(_journal(path, rtol, time_limit)) as journal:
        played = _played(games, work, workers, journal, progress)
    return Results(tuple(played[game.key] for game in games), rtol)


def _played(
    games: list[Game],
    work: Callable[[Game], tuple[Key, Row]],
    workers: int,
    journal: Journal | None,
    progress: Callable[[int, int], None] | None,
) -> dict[Key, Row]:
    """Play what is not in the journal, long games first so that none is left for the end."""
    tell = progress or (lambda done, total: None)
    played = {} if journal is None else journal.played
    missing = sorted(
        (game for game in games if game.key not in played), key=lambda game: -game.rounds
    )
    before = len(games) - len(missing)
    tell(before, len(games))
    with closing(_at_work(work, missing, min(workers, len(missing)))) as finished:
        for done, (key, row) in enumerate(finished, before + 1):
            played[key] = row
            if journal is not None:
                journal.add(key, row)
            tell(done, len(games))
    return played


def _at_work(
    work: Callable[[Game], tuple[Key, Row]], games: list[Game], workers: int
) -> Generator[tuple[Key, Row], None, None]:
    if workers > 1:
        yield from in_processes(work, games, workers)
    else:
        yield from map(work, games)


def _journal(path: str | Path, rtol: float, time_limit: float) -> Journal:
    from truecast import __version__

    return Journal.open(path, {"version": __version__, "rtol": rtol, "time_limit": time_limit})


def _named(argument: str, players: object, good: Callable[[Any], bool], what: str) -> None:
    if not isinstance(players, Mapping) or not all(
        isinstance(name, str) and name for name in players
    ):
        raise InputError(argument, f"must map names to {what}", players)
    for name, player in players.items():
        if not good(player):
            raise InputError(argument, f"must map names to {what}, and {name!r} is none", player)


def _counted(seeds: Any) -> Any:
    if isinstance(seeds, Integral):
        return range(_check.whole_number("seeds", seeds, least=1, most=_MOST_SEEDS))
    return seeds


def _distinct(argument: str, values: Any, *, least: int, most: int) -> tuple[int, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise InputError(argument, "must be whole numbers, one after the other", values)
    numbers = tuple(
        _check.whole_number(argument, value, least=least, most=most) for value in values
    )
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(argument, "must be one number or more, none of them twice", numbers)
    return numbers


def _refuse_what_cannot_travel(argument: str, players: Mapping[str, object]) -> None:
    for name, player in players.items():
        try:
            pickle.dumps(player)
        except Exception as error:
            rule = (
                "must be defined at the top of a file to play in other processes "
                f"(or pass workers=1); {name!r} is not"
            )
            raise InputError(argument, rule, player) from error
