"""Saved forecasters and hints: their config; what no forecaster of the arena saved is refused."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

import truecast as tc
from truecast.arena.roster import FORECASTERS

LITERATURE = [
    name
    for name, make in FORECASTERS.items()
    if type(make(50, 0)).__module__.startswith("truecast.arena")
]


def spoiled(state: dict[str, Any]) -> list[dict[str, Any]]:
    """States with one thing wrong with each."""
    bad = [
        {},
        state | {"more": 1},
        state | {"rounds": -1},
        state | {"rounds": 2.0},
        state | {"issued": 1},
    ]
    bad += [state | {"rounds": 2**53 + 1}]
    for name, values in state.items():
        bad.append({key: value for key, value in state.items() if key != name})
        if isinstance(values, list):
            bad += [
                state | {name: [*values, values[0]]},
                state | {name: values[:-1]},
                state | {name: None},
            ]
            bad += [
                state | {name: [worse, *values[1:]]}
                for worse in (float("nan"), float("inf"), "1", None, [])
            ]
    return bad


PLANNED = {"horizon": 50, "grid": 8}
OPTIONS: dict[type[Any], dict[str, Any]] = {
    tc.AlmostOneStepAhead: PLANNED | {"at": "middle", "cell": "lowest"},
    tc.BentGrid: PLANNED | {"cell": "lowest"},
    tc.HorizonFree: {"at": "middle", "split": 0.5},
    tc.Arc: {},
    tc.Guard: {"budget": 2.0, "nudge": True},
    tc.hints.Identity: {},
    tc.hints.Platt: {"memory": 9},
    tc.hints.BinMeans: {"memory": 9, "prior": 3.0},
    tc.hints.Isotonic: {"memory": 9, "prior": 3.0},
    tc.arena.Climatology: {"rate": 0.25},
    tc.arena.Defensive: PLANNED,
    tc.arena.ExponentialAverage: {"horizon": 50},
    tc.arena.Foster: PLANNED | {"seed": 7},
    tc.arena.FosterVohra: PLANNED | {"decay": 3, "seed": 7},
    tc.arena.GuptaRamdas: PLANNED,
    tc.arena.KakadeFoster: PLANNED,
    tc.arena.Minimax: {"horizon": 3, "seed": 7},
    tc.arena.RunningMean: {},
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_config_is_all_keyword_arguments_as_they_were_given(kind: type[Any]) -> None:
    assert set(OPTIONS[kind]) == set(inspect.signature(kind).parameters)
    assert kind(**OPTIONS[kind]).config == OPTIONS[kind]


@pytest.mark.parametrize("name", LITERATURE)
def test_spoiled_states_are_refused(name: str) -> None:
    f = FORECASTERS[name](50, 3)
    f.forecast_many([1, 0, 1, 1, 0] * 6)
    f.predict()
    before = f.to_json()
    for bad in [None, [], "state", *spoiled(f.state())]:
        with pytest.raises(tc.StateError):
            f.load(bad)
        assert f.to_json() == before
    f.load(copy.deepcopy(f.state()))
    assert f.to_json() == before


def test_more_ones_than_rounds_are_refused() -> None:
    f = tc.arena.RunningMean()
    for ones in (-1, 3):
        with pytest.raises(tc.StateError, match="ones must be from 0 to the 2 rounds"):
            f.load({"rounds": 2, "issued": False, "ones": [ones]})


@pytest.mark.parametrize("name", LITERATURE)
def test_copies_go_on_alone(name: str) -> None:
    f = FORECASTERS[name](50, 3)
    f.forecast_many([1, 0, 1, 1, 0])
    twin = copy.deepcopy(f)
    assert repr(twin) == repr(f)
    assert twin.forecast_many([0] * 20).tolist() == f.forecast_many([0] * 20).tolist()
    before = f.to_json()
    twin.forecast_many([1])
    assert f.to_json() == before


def test_who_follows_one_that_draws_draws() -> None:
    """So that nobody takes one game for all: searches refuse it, tournaments play it with every
    seed."""
    drawing = tc.arena.Calibeating(tc.arena.Foster(grid=3, seed=1))
    assert drawing.seed == 1
    assert not hasattr(tc.arena.Calibeating(), "seed")
    for search in (tc.arena.exhaustive, tc.arena.best_response):
        with pytest.raises(tc.InputError, match="forecaster must not draw"):
            search(drawing, 4)
