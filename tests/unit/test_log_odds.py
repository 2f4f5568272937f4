"""Scores as log-odds: loop, batch, late outcomes and saved states alike."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast import state

Z = np.concatenate(
    [np.random.default_rng(1).normal(0, 300, 400), [0.0, -0.0, 1e308, -1e308, 37.0, 36.5, -745.0]]
)
Y = np.random.default_rng(2).random(len(Z)) < 1 / (1 + np.exp(-np.clip(Z / 200, -9, 9)))


@pytest.mark.slow("plays many rounds one by one")
def test_the_batch_is_the_loop_and_saving_changes_nothing() -> None:
    loop, batch = tc.Recalibrator(scale="logit"), tc.Recalibrator(scale="logit")
    said = []
    for z, y in zip(Z.tolist(), Y.tolist(), strict=True):
        asked = loop.predict_many([z])[0]
        said.append(loop.predict(z))
        assert said[-1] == asked
        loop = tc.Recalibrator.from_json(loop.to_json())
        loop.observe(y)
    assert batch.forecast_many(Z, Y).tolist() == said
    assert batch.to_json() == loop.to_json()
    assert batch.config["scale"] == "logit"


def test_late_outcomes_are_saved_with_their_log_odds() -> None:
    r = tc.Recalibrator(scale="logit")
    r.forecast_many(Z, Y)
    tickets = [r.issue(z) for z in (-900.0, 3.5, 1e300)]
    other = tc.Recalibrator.from_bytes(r.to_bytes())
    for ticket, y in zip(tickets, (0, 1, 1), strict=True):
        r.resolve(ticket, y)
        other.resolve(int(ticket), y)
    assert r.to_json() == other.to_json()


def test_a_log_is_replayed_as_it_happened() -> None:
    known_at = np.minimum(
        np.arange(len(Z)) + np.random.default_rng(5).integers(0, 30, len(Z)), len(Z) + 5
    )
    loop, batch = (tc.Recalibrator(scale="logit", max_unresolved=20) for _ in range(2))
    tickets = []
    for t, z in enumerate(Z.tolist()):
        tickets.append(loop.issue(z))
        for s in np.flatnonzero(t == known_at).tolist():
            if tickets[s] in loop.awaited:
                loop.resolve(tickets[s], Y[s])
    assert batch.forecast_many(Z, Y, known_at=known_at).tolist() == [ticket.p for ticket in tickets]
    assert batch.unresolved > 0
    assert batch.to_json() == loop.to_json()
    assert tc.Recalibrator.from_json(batch.to_json()).to_json() == loop.to_json()


def test_moderate_log_odds_are_the_same_as_probabilities() -> None:
    z = np.random.default_rng(3).normal(0, 2, 500)
    y = np.random.default_rng(4).random(500) < 0.4
    by_odds = tc.Recalibrator(scale="logit").forecast_many(z, y)
    assert by_odds == pytest.approx(
        tc.Recalibrator().forecast_many(1 / (1 + np.exp(-z)), y), abs=1e-9
    )


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, "1", None, [0.5], 10**400])
def test_what_is_no_log_odds_is_refused(score: Any) -> None:
    r = tc.Recalibrator(scale="logit")
    before = r.to_json()
    for call in (
        r.predict,
        r.issue,
        lambda z: r.predict_many([0.5, z]),
        lambda z: r.forecast_many([0.5, z], [0, 1]),
    ):
        with pytest.raises(tc.InputError, match=r"^scores? must "):
            call(score)
    assert r.to_json() == before


def test_saved_scores_must_fit_the_scale() -> None:
    r = tc.Recalibrator(scale="logit")
    r.issue(7.0)
    r.predict(8.0)
    saved = json.loads(r.to_json())
    saved.pop("crc32")
    saved["config"]["scale"] = "probability"
    with pytest.raises(tc.StateError, match="score"):
        tc.Recalibrator.from_json(json.dumps(saved | {"crc32": state._crc32(saved)}))


def test_states_from_before_there_was_a_scale_are_read() -> None:
    r = tc.Recalibrator()
    r.forecast_many([0.2, 0.9], [0, 1])
    saved = json.loads(r.to_json())
    saved.pop("crc32")
    del saved["config"]["scale"]
    again = tc.Recalibrator.from_json(json.dumps(saved | {"crc32": state._crc32(saved)}))
    assert again.to_json() == r.to_json()


def test_another_scale_is_refused() -> None:
    with pytest.raises(tc.InputError, match="scale must be"):
        tc.Recalibrator(scale="odds")
