"""The recalibrator for classes: what it takes, says, refuses, saves and continues from."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.errors import InputError, OrderError, StateError, TicketError

NAMES = ["home", "draw", "away"]


def stream(classes: int, rounds: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores that are the truth squared, outcomes, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.5), rounds)
    y = (truth.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1).clip(max=classes - 1)
    scores = truth**2
    return scores / scores.sum(axis=1, keepdims=True), y, truth


def brier(p: np.ndarray, y: np.ndarray) -> float:
    return float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())


def test_recalibrator_with_classes_is_one_for_classes() -> None:
    made = tc.Recalibrator(classes=NAMES, budget=2.0)
    assert isinstance(made, tc.ClassRecalibrator)
    assert made.classes == ("home", "draw", "away")
    assert isinstance(tc.Recalibrator(), tc.Recalibrator)
    assert tc.Recalibrator(classes=4).classes == (0, 1, 2, 3)


@pytest.mark.parametrize("late", [False, True])
def test_a_batch_is_its_rounds(late: bool) -> None:
    scores, y, _ = stream(4, 150)
    rng = np.random.default_rng(1)
    known = np.arange(150) + rng.integers(0, 12, 150) if late else None
    batch, single = tc.Recalibrator(classes=4), tc.Recalibrator(classes=4)
    said = batch.forecast_many(scores, y, known_at=known)
    tickets = []
    for t, row in enumerate(scores):
        if known is None:
            assert (single.predict(row) == said[t]).all()
            single.observe(y[t])
            continue
        tickets.append(single.issue(row))
        assert tickets[-1].p == tuple(said[t])
        for s in np.flatnonzero(known == t):
            single.resolve(tickets[s], y[s])
    assert single.state() == batch.state()
    assert single.unresolved == (0 if known is None else (known >= 150).sum())


def test_predict_many_is_predict_of_each() -> None:
    scores, y, _ = stream(3, 200)
    r = tc.Recalibrator(classes=3)
    r.forecast_many(scores[:150], y[:150])
    before = r.state()
    said = r.predict_many(scores[150:])
    assert r.state() == before
    assert [tuple(r.predict(row)) for row in scores[150:]] == [tuple(row) for row in said]


@pytest.mark.slow("saves and copies it 8 times")
@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("hint", [None, tc.hints.Platt()])
def test_a_saved_one_continues_from_there(scale: str, hint: Any) -> None:
    scores, y, _ = stream(3, 120)
    rows = np.log(scores) if scale == "logit" else scores
    r = tc.Recalibrator(classes=NAMES, scale=scale, hint=hint)
    r.forecast_many(rows[:100], np.array(NAMES)[y[:100]])
    ticket = r.issue(rows[100])
    given_up = r.issue(rows[101])
    r.give_up(given_up)
    r.predict(rows[102])
    for again in (
        tc.ClassRecalibrator.from_json(r.to_json()),
        tc.ClassRecalibrator.from_bytes(r.to_bytes()),
        pickle.loads(pickle.dumps(r)),
        copy.deepcopy(r),
    ):
        assert again.state() == r.state()
        assert again.awaited == [ticket]
        assert again.awaited[0].p == ticket.p
        again.observe("draw")
        again.resolve(ticket, "away")
        other = copy.deepcopy(r)
        other.observe("draw")
        other.resolve(0 if ticket == 0 else int(ticket), "away")
        assert again.to_json() == other.to_json()
        assert (again.predict(rows[103]) == other.predict(rows[103])).all()


def test_scores_as_logits_are_the_same_as_probabilities() -> None:
    scores, y, _ = stream(4, 300)
    p = tc.Recalibrator(classes=4).forecast_many(scores, y)
    q = tc.Recalibrator(classes=4, scale="logit").forecast_many(np.log(scores) + 3.0, y)
    assert q == pytest.approx(p, abs=1e-6)


def test_saturated_logits_are_told_apart() -> None:
    # As probabilities both rows are (1, 0, 0).
    rng = np.random.default_rng(2)
    strong = rng.random(4_000) < 0.5
    rows = np.where(strong[:, None], [900.0, 0.0, 0.0], [60.0, 0.0, 0.0])
    y = np.where(rng.random(4_000) < np.where(strong, 0.9, 0.5), 0, 1)
    said = tc.Recalibrator(classes=3, scale="logit").forecast_many(rows, y)[2_000:]
    gap = said[strong[2_000:], 0].mean() - said[~strong[2_000:], 0].mean()
    assert gap > 0.3


def test_it_repairs_a_model_and_keeps_one_that_is_right() -> None:
    scores, y, truth = stream(3, 4_000)
    said = tc.Recalibrator(classes=3).forecast_many(scores, y)
    raw, best = brier(scores, y), brier(truth, y)
    assert brier(said, y) < best + 0.15 * (raw - best)
    assert abs(said.sum(axis=1) - 1).max() < 1e-14
    said = tc.Recalibrator(classes=3).forecast_many(truth, y)
    assert brier(said, y) < best * 1.004


def test_a_class_that_never_happens_and_a_single_one() -> None:
    scores, y, _ = stream(4, 1_500)
    said = tc.Recalibrator(classes=4).forecast_many(scores, np.minimum(y, 2))
    assert said[-300:, 3].mean() < 0.02
    said = tc.Recalibrator(classes=4).forecast_many(scores, np.ones(1_500, int))
    assert said[-300:, 1].mean() > 0.97
    assert np.isfinite(said).all()


def test_zeros_ones_and_many_classes() -> None:
    rng = np.random.default_rng(4)
    for classes in (2, 40):
        rows = np.eye(classes)[rng.integers(0, classes, 300)]
        y = rng.integers(0, classes, 300)
        r = tc.Recalibrator(classes=classes)
        said = r.forecast_many(rows, y)
        assert np.isfinite(said).all()
        assert (said >= 0).all()
        assert abs(said.sum(axis=1) - 1).max() < 1e-12
        assert "classes" in str(r.certificate)
        assert r.certificate.worst in range(classes)
    assert "matrix" not in r._desk.saved_hint()  # of 40 classes it would cost too much


BAD_ROWS = [
    ([0.5, 0.5], "must be 3 numbers, one of each class"),
    ([0.5, 0.5, 0.1], "must have rows that sum to 1"),
    ([0.5, 0.6, -0.1], "must be numbers between 0 and 1"),
    ([0.5, float("nan"), 0.5], "must be numbers between 0 and 1"),
    (["a", "b", "c"], "must be 3 numbers"),
    (None, "must be 3 numbers"),
]


@pytest.mark.parametrize(("row", "rule"), BAD_ROWS)
def test_bad_rows_are_refused(row: Any, rule: str) -> None:
    r = tc.Recalibrator(classes=NAMES)
    before = r.to_json()
    for call in (r.predict, r.issue):
        with pytest.raises(InputError, match=rule):
            call(row)
    assert r.to_json() == before


def test_batches_name_the_row() -> None:
    r = tc.Recalibrator(classes=NAMES)
    before = r.to_json()
    rows = np.full((5, 3), 1 / 3)
    rows[3] *= 1.01
    with pytest.raises(InputError, match="sum to 1.*got 1.01 at position 3"):
        r.forecast_many(rows, ["home"] * 5)
    rows[3, 1] = 1.5
    with pytest.raises(InputError, match=r"between 0 and 1, got 1.5 at position \(3, 1\)"):
        r.forecast_many(rows, ["home"] * 5)
    with pytest.raises(InputError, match="a row for each of the 4 outcomes"):
        r.forecast_many(np.full((5, 3), 1 / 3), ["home"] * 4)
    with pytest.raises(InputError, match="classes, which are fixed at the start.*'tie' at pos"):
        r.forecast_many(np.full((2, 3), 1 / 3), ["home", "tie"])
    with pytest.raises(InputError, match=r"shape \(rounds, 3\)"):
        r.forecast_many(np.full((2, 4), 1 / 4), ["home", "home"])
    with pytest.raises(InputError, match="not supported yet"):
        r.forecast_many(np.full((2, 3), 1 / 3), ["home", "home"], groups=["a", "b"])
    assert r.to_json() == before


def test_rows_may_be_normalised() -> None:
    r = tc.Recalibrator(classes=3, normalize=True)
    assert r.predict([2.0, 1.0, 1.0]) == pytest.approx([0.5, 0.25, 0.25], abs=1e-5)
    with pytest.raises(InputError, match="positive sum"):
        r.predict([0.0, 0.0, 0.0])
    near = tc.Recalibrator(classes=3).predict([0.5, 0.25, 0.2500004])
    assert near.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.slow("imports pandas")
def test_frames_are_read_by_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"away": [0.2], "id": [7], "home": [0.5], "draw": [0.3]})
    r = tc.Recalibrator(classes=NAMES)
    assert r.predict_many(frame)[0] == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)
    with pytest.raises(InputError, match="a column for each class: 'draw' is missing"):
        r.predict_many(frame[["away", "home"]])


@pytest.mark.parametrize("classes", [1, 0, True, "ab", ["a"], ["a", "a"], [1.5, 2.5], 10**6])
def test_bad_classes_are_refused(classes: Any) -> None:
    with pytest.raises(InputError, match="classes"):
        tc.Recalibrator(classes=classes)


def test_bad_options_are_refused() -> None:
    for option in ({"hint": object()}, {"hint": tc.hints.Experts(2)}, {"budget": 1.0}):
        with pytest.raises(InputError):
            tc.Recalibrator(classes=3, **option)
    with pytest.raises(TypeError):
        tc.Recalibrator(classes=3, max_groups=3)


def test_outcomes_and_tickets_out_of_order_are_refused() -> None:
    r, other = tc.Recalibrator(classes=NAMES), tc.Recalibrator(classes=NAMES)
    with pytest.raises(OrderError):
        r.observe("home")
    ticket = r.issue([0.5, 0.3, 0.2])
    strange = other.issue([0.2, 0.3, 0.5])
    before = r.to_json()
    with pytest.raises(InputError, match="fixed at the start: 'home', 'draw', 'away'"):
        r.resolve(ticket, "nobody")
    with pytest.raises(InputError, match="fixed at the start"):
        r.resolve(ticket, ["home"])
    with pytest.raises(InputError, match="not of another"):
        r.resolve(strange, "home")
    with pytest.raises(InputError, match="must be one that was issued"):
        r.resolve(7, "home")
    assert r.to_json() == before
    r.resolve(int(ticket), "home")
    with pytest.raises(TicketError):
        r.resolve(ticket, "home")
    with pytest.raises(TicketError):
        r.give_up(ticket)


def test_the_oldest_is_given_up() -> None:
    r = tc.Recalibrator(classes=3, max_unresolved=2)
    tickets = [r.issue([0.5, 0.3, 0.2]) for _ in range(3)]
    assert r.awaited == tickets[1:]
    assert r.certificate.unresolved == 3
    with pytest.raises(TicketError):
        r.resolve(tickets[0], 1)


def forged(state: dict[str, Any]) -> list[tuple[str, Any]]:
    """Paths into a state, and what cannot be there."""
    return [
        ("hint/weights", [2.0] * 6),
        ("hint/weights", [0.5] * 6),
        ("hint/slope", "1"),
        ("hint/each", []),
        ("guard/reserved", -1),
        ("guard/most_late", 10**9),
        ("nudges", []),
        ("tickets/issued", -1),
        ("tickets/issued", 0),
        ("bursts", {}),
        ("tops", None),
        ("asked", {}),
    ]


def test_forged_states_are_refused_and_change_nothing() -> None:
    scores, y, _ = stream(3, 60)
    r = tc.Recalibrator(classes=3)
    r.forecast_many(scores[:50], y[:50])
    r.issue(scores[50])
    before = r.to_json()
    for path, value in forged(r.state()):
        state = json.loads(json.dumps(r.state()))
        *way, last = path.split("/")
        inner = state
        for step in way:
            inner = inner[step]
        inner[last] = value
        with pytest.raises(StateError):
            r.load(state)
        assert r.to_json() == before
    with pytest.raises(StateError, match="saved by ClassRecalibrator"):
        tc.Recalibrator.from_json(before)
    with pytest.raises(StateError):
        tc.Recalibrator(classes=4).load(r.state())


@pytest.mark.slow("a batch of 60,000 rounds in another thread")
def test_while_a_batch_runs_other_calls_are_refused() -> None:
    scores, y, _ = stream(3, 60_000)
    r = tc.Recalibrator(classes=3)
    batch = threading.Thread(target=r.forecast_many, args=(scores, y))
    batch.start()
    refused = 0
    while batch.is_alive():
        try:
            r.predict(scores[0])
        except OrderError:
            refused += 1
    batch.join()
    assert refused > 0
    assert r.rounds == 60_000
