"""States as they were saved in version 2 of the format: they load, and are saved again as they are.

`python tests/golden/test_states.py` writes the states of the present code to `states.txt`. Do that
only with a new kind of state, or a new version of the format.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import hints

SAVED = Path(__file__).with_name("states.txt")

OUTCOMES = [0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1] * 5
SCORES = (np.arange(55) * 37 % 101 / 100).tolist()


def asked(f: Any, *score: float) -> Any:
    """After some rounds, with a forecast that awaits its outcome."""
    f.forecast_many(OUTCOMES)
    f.predict(*score)
    return f


def guarded(**options: Any) -> tc.Guard:
    g = tc.Guard(**options)
    g.forecast_many(SCORES, OUTCOMES)
    g.predict(0.37)
    return g


def learned(hint: hints.Hint) -> hints.Hint:
    hint.forecast_many(SCORES, OUTCOMES)
    return hint


def recalibrated() -> tc.Recalibrator:
    """With everything: groups, others, tickets, events, forecasts given up, and one asked for."""
    mix = hints.Mix([hints.Identity(), hints.Platt(20)])
    r = tc.Recalibrator(hint=mix, max_groups=2, max_unresolved=4)
    names: list[Any] = ["a", None, ("a", "b"), ("b", "c", "d"), 7]
    r.forecast_many(SCORES, OUTCOMES, groups=names * 11)
    for k in range(7):
        group: Any = [None, "a", "b", "e", ("a", "b"), ("b", "a", "f"), "a"][k]
        r.issue(k / 7, group=group, event=[None, "x", 7][k % 3])
    r.resolve(3, 1)
    r.resolve(5, 0)
    r.predict(0.4, group=("b", "a"))
    return r


def of_experts() -> tc.Recalibrator:
    hint = hints.Experts(2, [hints.Identity(), hints.Platt()])
    r = tc.Recalibrator(hint=hint, nudge=False, scale="logit")
    logits = np.linspace(-3, 3, 110).reshape(55, 2)
    r.forecast_many(logits, OUTCOMES, groups=[("a", 1), "b", None, "a", 1] * 11)
    for k in range(4):
        r.issue([k / 3, -k], group="a", event="game")
        r.predict([0.5, k / 7])
        r.observe(k % 2)
    r.resolve(2, 0)
    r.give_up(3)
    return r


def watched(**options: Any) -> tc.Monitor:
    """With everything: groups, others, tickets, events, forecasts given up and passed over."""
    m = tc.Monitor(max_groups=2, max_unresolved=4, **options)
    names: list[Any] = ["a", None, ("a", "b"), ("b", "c", "d"), 7]
    m.update_many(SCORES, OUTCOMES, groups=names * 11)
    for k in range(7):
        m.issue(k / 7, group=[None, "a", "e"][k % 3], event=[None, "x"][k % 2])
    m.resolve(60, 0)
    return m


def watched_classes() -> tc.ClassMonitor:
    """With tickets: one resolved that waits for another, one given up."""
    m: tc.ClassMonitor = tc.Monitor(classes=["a", "b", "c"], max_unresolved=3)
    rows = np.column_stack([SCORES, [(1 - p) / 2 for p in SCORES], [(1 - p) / 2 for p in SCORES]])
    m.update_many(rows, [["b", "a"][y] for y in OUTCOMES])
    for k in range(5):
        m.issue(rows[k])
    m.resolve(58, "c")
    return m


KINDS: dict[str, Callable[[], Any]] = {
    "AlmostOneStepAhead": lambda: asked(tc.AlmostOneStepAhead(grid=10, horizon=90, at="middle")),
    "BentGrid": lambda: asked(tc.BentGrid(horizon=100, cell="lowest")),
    "HorizonFree": lambda: asked(tc.HorizonFree()),
    "Arc": lambda: asked(tc.Arc()),
    "Guard": lambda: guarded(budget=1.5),
    "nudged Guard": lambda: guarded(nudge=True),
    "Identity": lambda: learned(hints.Identity()),
    "Platt": lambda: learned(hints.Platt(30)),
    "BinMeans": lambda: learned(hints.BinMeans(50)),
    "Isotonic": lambda: learned(hints.Isotonic(prior=0.1)),
    "Mix": lambda: learned(hints.Mix([hints.Platt(5), hints.BinMeans(), hints.Identity()])),
    "Recalibrator": recalibrated,
    "Recalibrator of experts": of_experts,
    "Monitor": lambda: watched(alpha=0.05),
    "Monitor with chains": lambda: watched(mean_time=1_000, order="chains", chains=2),
    "Monitor of classes": watched_classes,
}


def saved() -> dict[str, str]:
    texts: dict[str, str] = json.loads(zlib.decompress(base64.b64decode(SAVED.read_text())))
    return texts


def plain(value: Any) -> Any:
    """With tables unpacked, as compressors differ, and without the checksum over them."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: plain(part) for name, part in value.items() if name != "crc32"}
    if set(parts) == {"lengths", "table", "digits"}:
        parts["table"] = zlib.decompress(base64.b64decode(parts["table"])).hex()
    return parts


def entries(text: str) -> Any:
    """Everything in it, in order."""
    return json.dumps(plain(json.loads(text)))


def test_every_kind_is_there() -> None:
    assert list(saved()) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_loads_and_is_saved_as_it_was(kind: str) -> None:
    text = saved()[kind]
    made = KINDS[kind]()
    again = type(made).from_json(text)
    assert entries(again.to_json()) == entries(text)
    made.load(json.loads(text)["state"])
    assert entries(made.to_json()) == entries(text)
    assert entries(type(made).from_bytes(again.to_bytes()).to_json()) == entries(text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rounds_lead_to_the_same_entries(kind: str) -> None:
    """Their figures may differ in the last digits where exp() and log() round otherwise."""
    made, kept = (json.loads(text) for text in (KINDS[kind]().to_json(), saved()[kind]))
    assert made["config"] == kept["config"]
    assert shape(made["state"]) == shape(kept["state"])


def shape(value: Any) -> Any:
    """Names and types, in order, and how many."""
    if isinstance(value, dict):
        return [(name, shape(part)) for name, part in value.items() if name != "digits"]
    return [shape(part) for part in value] if isinstance(value, list) else type(value)


if __name__ == "__main__":
    texts = json.dumps({name: make().to_json() for name, make in KINDS.items()})
    SAVED.write_text(base64.encodebytes(zlib.compress(texts.encode(), 9)).decode())
