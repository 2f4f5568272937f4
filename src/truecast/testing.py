"""The contracts of forecasters and hints, as checks for your own classes; a service for tests.

A forecaster has ``predict() -> float``, ``observe(outcome)``, ``forecast_many(outcomes) -> array``,
``to_json() -> str`` and a class method ``from_json(text)``. A hint has ``predict(score) -> float``
and ``learn(score, outcome)``; to be saved, ``state()`` and ``load(state)``; optionally, for late
outcomes, ``issue(score) -> (float, notes)`` and ``learn(score, outcome, notes)``.
"""

from __future__ import annotations

import copy
import json
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecast.recalibrate import Recalibrator
from truecast.recalibrate.open import takes_notes

__all__ = [
    "CHECKS",
    "HINT_CHECKS",
    "ContractError",
    "Forecaster",
    "check_forecaster",
    "check_hint",
    "serving",
]


class Forecaster(Protocol):
    """What the checks need from a forecaster."""

    def predict(self) -> float: ...  # noqa: D102

    def observe(self, outcome: Any, /) -> None: ...  # noqa: D102

    def forecast_many(self, outcomes: ArrayLike, /) -> NDArray[np.float64]: ...  # noqa: D102

    def to_json(self) -> str: ...  # noqa: D102

    @classmethod
    def from_json(cls, text: str, /) -> Forecaster: ...  # noqa: D102


Make = Callable[[], Forecaster]


def serving(data: str | Path | None = None, **options: Any) -> AbstractContextManager[str]:
    """Run `truecast serve` in a thread of this process, for a `with` block.

    Parameters
    ----------
    data
        The folder of its journal. None for a new one that is removed at the end.
    options
        What `truecast.serve.http.run.Settings` has, such as `tokens`, the file of tokens.

    Returns
    -------
    AbstractContextManager
        Gives the address of the service, on a port that was free.

    Examples
    --------
    >>> import truecast as tc
    >>> with serving() as url, tc.Client(url) as client:
    ...     client.create("judge")["rounds"]
    0
    """
    from truecast.serve.http.background import serving as in_background

    return in_background(data, **options)


class ContractError(AssertionError):
    """A forecaster or hint breaks the contract; names the check and says how."""


def check_forecaster(make: Make, *, checks: Sequence[Callable[[Make], None]] | None = None) -> None:
    """Run every check of the contract on forecasters that `make` builds.

    Parameters
    ----------
    make
        Called without arguments; must return an identical, fresh forecaster each time.
    checks
        Which checks to run, of those in `CHECKS`; all by default.

    Raises
    ------
    ContractError
        At the first check that fails: its name, and how.

    Examples
    --------
    >>> import truecast as tc
    >>> check_forecaster(lambda: tc.AlmostOneStepAhead(horizon=1_000))
    """
    _run(CHECKS if checks is None else checks, make)


def _run(checks: Sequence[Callable[[Any], None]], make: Callable[[], Any]) -> None:
    for check in checks:
        try:
            check(make)
        except Exception as error:
            raise ContractError(f"{check.__name__}: {error}") from error


def check_methods(make: Make) -> None:
    """It has the methods of a forecaster."""
    forecaster = make()
    for name in ("predict", "observe", "forecast_many", "to_json", "from_json"):
        _require(callable(getattr(forecaster, name, None)), f"has no method {name}()")


def check_cold_start(make: Make) -> None:
    """It forecasts before it has seen anything, and two fresh ones forecast alike."""
    _require(
        make().predict() == make().predict(), "two fresh forecasters differ in their first forecast"
    )
    _require(len(make().forecast_many([])) == 0, "forecast_many([]) is not empty")


def check_probabilities(make: Make) -> None:
    """Every forecast is a float in [0, 1], also after long runs of one outcome."""
    for outcomes in _streams():
        forecaster = make()
        for t, y in enumerate(outcomes):
            p = forecaster.predict()
            _require(
                isinstance(p, float) and 0.0 <= p <= 1.0,
                f"forecast {p!r} in round {t} is not a float in [0, 1]",
            )
            forecaster.observe(y)


def check_predict_repeatable(make: Make) -> None:
    """A repeated call gives the same forecast and changes no later one."""
    for outcomes in _streams():
        once, often = make(), make()
        for t, y in enumerate(outcomes):
            p = once.predict()
            asked = {often.predict() for _ in range(3)}
            _require(
                asked == {p},
                f"predict() in round {t} gave {p!r} in one call, {sorted(asked)} in three",
            )
            once.observe(y)
            often.observe(y)


def check_order(make: Make) -> None:
    """An outcome without a forecast, or a second one for it, is refused and changes nothing."""
    for rounds in (0, 1, 30):
        for what, prepare in _WITHOUT_FORECAST.items():
            forecaster = prepare(_after(make, rounds))
            before = forecaster.to_json()
            _require_refusal(forecaster.observe, 1, RuntimeError, f"observe() {what}")
            _require(
                forecaster.to_json() == before, f"a refused observe() {what} changed the state"
            )


def check_bad_outcomes(make: Make) -> None:
    """Outcomes other than 0 and 1 are refused, alone or in a batch, and change nothing."""
    numbers = 2, -1, 0.5, float("nan"), float("inf")
    bad: list[Any] = [*numbers, "1", b"1", None, [1], np.array([0, 1]), object()]
    forecaster = _after(make, 20)
    p = forecaster.predict()
    before = forecaster.to_json()
    for value in bad:
        _require_refusal(forecaster.observe, value, (ValueError, TypeError), f"observe({value!r})")
        batch = [0, 1, value, 1]
        _require_refusal(
            forecaster.forecast_many, batch, (ValueError, TypeError), f"forecast_many({batch!r})"
        )
        _require(forecaster.predict() == p, f"the refused outcome {value!r} changed the forecast")
        _require(forecaster.to_json() == before, f"the refused outcome {value!r} changed the state")
    for value in (1, np.zeros((2, 2), np.int64), np.array(["0", "1"])):
        _require_refusal(
            forecaster.forecast_many, value, (ValueError, TypeError), f"forecast_many({value!r})"
        )
        _require(forecaster.to_json() == before, f"the refused batch {value!r} changed the state")


def check_outcome_types(make: Make) -> None:
    """0 and 1 mean the same as False and True, as numpy's scalars and as floats."""
    kinds: list[Callable[[int], Any]] = [int, bool, float, np.int64, np.uint8, np.bool_, np.float64]
    outcomes = _streams()[0][:40]
    states = set()
    for kind in kinds:
        forecaster = make()
        _played(forecaster, [kind(int(y)) for y in outcomes])
        states.add(forecaster.to_json())
    _require(
        len(states) == 1, "outcomes of different types, equal in value, lead to different states"
    )


def check_batch(make: Make) -> None:
    """A batch, whole or in parts, is the loop bit for bit: its forecasts and its state."""
    for outcomes in _streams():
        loop = make()
        expected = _played(loop, outcomes)
        for cuts in ([], [0], [1, 2, 57], [len(outcomes)]):
            batch = make()
            parts = [np.asarray(batch.forecast_many(part)) for part in np.split(outcomes, cuts)]
            _require(
                np.concatenate(parts).tolist() == expected,
                f"a batch cut at {cuts} and the loop forecast differently",
            )
            _require(
                batch.to_json() == loop.to_json(),
                f"a batch cut at {cuts} and the loop end in different states",
            )


def check_save_and_load(make: Make) -> None:
    """Saved and loaded at any moment, also before an outcome, it continues identically."""
    for outcomes in _streams():
        straight, resumed = make(), make()
        _require(
            type(resumed).from_json(resumed.to_json()) is not resumed,
            "from_json() gives back the saved object",
        )
        for t, y in enumerate(outcomes):
            resumed = type(resumed).from_json(resumed.to_json())
            p = straight.predict()
            _require(
                resumed.predict() == p,
                f"saved and loaded before round {t}, it forecasts differently",
            )
            resumed = type(resumed).from_json(resumed.to_json())
            straight.observe(y)
            resumed.observe(y)
        _require(
            resumed.to_json() == straight.to_json(),
            "saved and loaded, it ends in a different state",
        )


def check_memory(make: Make) -> None:
    """Neither memory nor saved state keeps growing like the number of rounds.

    Checked up to 64,000 rounds: filling a window of a few thousand rounds, or growing like a root,
    is fine. Memory of other threads counts too, so growth must show three times to fail.
    """
    stops = (1_000, 8_000, 64_000)
    for attempt in range(3):
        grown = [
            f"{what} grew to {sizes} bytes after {stops} rounds"
            for what, sizes in _sizes(make, stops).items()
            # eight times the rounds: linear growth is eight times as large, that of a square root
            # not three times
            if sizes[2] - sizes[1] > 5 * max(sizes[1] - sizes[0], 0) + 4_096
        ]
        if not grown:
            break
        _require(attempt < 2, grown[0])


def _sizes(make: Make, stops: tuple[int, int, int]) -> dict[str, list[int]]:
    """Return the bytes in use, and those of the saved state, after these numbers of rounds."""
    outcomes = np.random.default_rng(5).integers(0, 2, stops[-1]).tolist()
    forecaster = make()
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        memory, saved = [], []
        for t, y in enumerate(outcomes, start=1):
            forecaster.predict()
            forecaster.observe(y)
            if t in stops:
                memory.append(tracemalloc.get_traced_memory()[0])
                saved.append(len(forecaster.to_json()))
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return {"memory": memory, "the saved state": saved}


CHECKS = (
    check_methods,
    check_cold_start,
    check_probabilities,
    check_predict_repeatable,
    check_order,
    check_bad_outcomes,
    check_outcome_types,
    check_batch,
    check_save_and_load,
    check_memory,
)


def check_hint(
    make: Callable[[], Any], *, checks: Sequence[Callable[[Callable[[], Any]], None]] | None = None
) -> None:
    """Run every check of the contract of hints on those that `make` builds.

    Parameters
    ----------
    make
        Called without arguments; must return an identical, fresh hint each time.
    checks
        Which checks to run, of those in `HINT_CHECKS`; all by default.

    Raises
    ------
    ContractError
        At the first check that fails: its name, and how.

    Examples
    --------
    >>> import truecast as tc
    >>> check_hint(tc.hints.Platt)
    """
    _run(HINT_CHECKS if checks is None else checks, make)


def check_hint_probabilities(make: Callable[[], Any]) -> None:
    """It returns a number in [0, 1] for every score, including 0 and 1, whatever it has learned."""
    for scores, outcomes in _scored_streams(make):
        hint = make()
        for t, (x, y) in enumerate(zip(scores, outcomes, strict=True)):
            p = hint.predict(x)
            _require(
                isinstance(p, float) and 0.0 <= p <= 1.0,
                f"{p!r} in round {t} is not a float in [0, 1]",
            )
            hint.learn(x, y)


def check_hint_repeatable(make: Callable[[], Any]) -> None:
    """`predict` changes nothing, and hints that learned the same say the same."""
    for scores, outcomes in _scored_streams(make):
        asked, other = make(), make()
        for t, (x, y) in enumerate(zip(scores, outcomes, strict=True)):
            asked.predict(_score(0.3, asked))
            p = asked.predict(x)
            _require(asked.predict(x) == p, f"asked twice in round {t}, it says two things")
            _require(
                other.predict(x) == p, f"in round {t} it depends on what it was asked, or on chance"
            )
            asked.learn(x, y)
            other.learn(x, y)


def check_hint_issue(make: Callable[[], Any]) -> None:
    """If it has issue(), that says what predict() does.

    Its notes are a list of finite floats, always of the same length.
    """
    hint = make()
    if not takes_notes(hint):
        return
    count = len(hint.issue(_score(0.5, hint))[1])
    for scores, outcomes in _scored_streams(make):
        for x, y in zip(scores, outcomes, strict=True):
            p, notes = hint.issue(x)
            _require(p == hint.predict(x), f"issue({x!r}) and predict({x!r}) say different things")
            numbers = isinstance(notes, list) and all(
                type(note) is float and np.isfinite(note) for note in notes
            )
            _require(numbers, f"the notes {notes!r:.80} are not a list of finite floats")
            _require(
                len(notes) == count, f"there are {len(notes)} notes, and {count} when it was new"
            )
            hint.learn(x, y, *([notes] if notes else []))


def check_hint_copy(make: Callable[[], Any]) -> None:
    """A copy by copy.deepcopy continues identically and independently."""
    scores, outcomes = _scored_streams(make)[0]
    hint = make()
    for x, y in zip(scores, outcomes, strict=True):
        hint.learn(x, y)
    _require_alike(hint, copy.deepcopy(hint), "a copy")


def check_hint_state(make: Callable[[], Any]) -> None:
    """If it has state(), that is plain data; a new hint that loads it continues identically."""
    hint = make()
    if not hasattr(hint, "state"):
        return
    scores, outcomes = _scored_streams(make)[0]
    for x, y in zip(scores, outcomes, strict=True):
        hint.learn(x, y)
    saved = hint.state()
    text = json.dumps(saved, allow_nan=False)
    _require(json.loads(text) == saved, "what state() gives is not what JSON gives back")
    other = make()
    other.load(json.loads(text))
    _require_alike(hint, other, "saved and loaded, it")
    _require(json.loads(text) == saved, "the result of state() changes when the hint learns")


def check_hint_recalibrator(make: Callable[[], Any]) -> None:
    """In a recalibrator, a batch gives the loop's forecasts bit for bit."""
    for scores, outcomes in _scored_streams(make):
        loop, batch = Recalibrator(hint=make()), Recalibrator(hint=make())
        expected = []
        for x, y in zip(scores, outcomes, strict=True):
            expected.append(loop.predict(x))
            loop.observe(y)
        _require(
            batch.forecast_many(scores, outcomes).tolist() == expected,
            "batch and loop forecast differently",
        )


HINT_CHECKS = (
    check_hint_probabilities,
    check_hint_repeatable,
    check_hint_issue,
    check_hint_copy,
    check_hint_state,
    check_hint_recalibrator,
)


def _score(p: float, hint: Any) -> Any:
    """A score: a number, or a list if the hint takes those of several models."""
    models = getattr(hint, "models", 1)
    return p if models == 1 else [p, *[1 - p / (k + 2) for k in range(models - 1)]]


def _scored_streams(make: Callable[[], Any]) -> list[tuple[list[Any], list[int]]]:
    """Scores and outcomes to try hints on: all sizes, 0 and 1 among them, right and wrong."""
    rng = np.random.default_rng(20250917)
    extreme = 0.0, 1.0, 0.5, 1e-300, 1 - 2**-53
    p = [*extreme, *rng.random(60).tolist(), *rng.beta(0.05, 0.05, 35).tolist()]
    hint = make()
    scores = [_score(x, hint) for x in p]
    return [
        (scores, (rng.random(len(p)) < chance).astype(int).tolist())
        for chance in (p, 0.5, 0.0, 1.0)
    ]


def _require_alike(hint: Any, other: Any, what: str) -> None:
    scores, outcomes = _scored_streams(lambda: hint)[1]
    said = []
    for x, y in zip(scores, outcomes, strict=True):
        said.append(hint.predict(x))
        hint.learn(x, y)
    for t, (x, y) in enumerate(zip(scores, outcomes, strict=True)):
        _require(other.predict(x) == said[t], f"{what} says something else {t} rounds later")
        other.learn(x, y)


def _played(forecaster: Forecaster, outcomes: Iterable[Any]) -> list[float]:
    """Play a round for each outcome; return the forecasts."""
    said = []
    for y in outcomes:
        said.append(forecaster.predict())
        forecaster.observe(y)
    return said


def _observed(forecaster: Forecaster) -> Forecaster:
    _played(forecaster, [0])
    return forecaster


def _batched(forecaster: Forecaster) -> Forecaster:
    forecaster.predict()
    forecaster.forecast_many([0, 1])
    return forecaster


_WITHOUT_FORECAST: dict[str, Callable[[Forecaster], Forecaster]] = {
    "without predict()": lambda forecaster: forecaster,
    "twice after one predict()": _observed,
    "after predict() and a batch": _batched,
    "without predict(), saved and loaded": lambda forecaster: type(forecaster).from_json(
        forecaster.to_json()
    ),
    "twice after one predict(), saved and loaded": lambda f: type(f).from_json(
        _observed(f).to_json()
    ),
}


def _streams() -> list[NDArray[np.int64]]:
    """Outcomes to try everything on: coins, rare ones, alternating, and long runs."""
    rng = np.random.default_rng(20240213)
    coins = rng.integers(0, 2, 120)
    rare = (rng.random(120) < 0.05).astype(np.int64)
    alternating = np.arange(120) % 2
    runs = np.repeat([0, 1, 0, 1], 30)
    return [coins, rare, alternating, runs, np.ones(60, np.int64), np.zeros(60, np.int64)]


def _after(make: Make, rounds: int) -> Forecaster:
    forecaster = make()
    forecaster.forecast_many(_streams()[0][:rounds])
    return forecaster


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _require_refusal(
    call: Callable[[Any], Any],
    argument: Any,
    error: type[Exception] | tuple[type[Exception], ...],
    what: str,
) -> None:
    try:
        call(argument)
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{what} raises {other!r}, of a class that does not tell what is wrong"
        ) from other
    raise AssertionError(f"{what} is accepted")
