"""The recalibrator for classes: what it takes, says, refuses, saves and continues from."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
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


def test_saving_between_forecast_and_outcome_changes_nothing() -> None:
    scores, y, _ = stream(5, 40)
    saved, other = tc.Recalibrator(classes=5), tc.Recalibrator(classes=5)
    for row, outcome in zip(scores, y, strict=True):
        assert (saved.predict(row) == other.predict(row)).all()
        saved.state()
        saved.observe(int(outcome))
        other.observe(int(outcome))
    assert saved.state() == other.state()


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
        rows[::3] = rng.dirichlet(np.ones(classes), 100)
        said = r.forecast_many(rows, y, groups=NAMED * 60)
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
            call(row, group="new")
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
    with pytest.raises(InputError, match="an entry for each of the 2 rounds"):
        r.forecast_many(np.full((2, 3), 1 / 3), ["home", "home"], groups=["a"])
    with pytest.raises(InputError, match="groups must.*at position 1"):
        r.forecast_many(np.full((2, 3), 1 / 3), ["home", "home"], groups=["a", 1.5])
    with pytest.raises(InputError, match="events must come with known_at"):
        r.forecast_many(np.full((2, 3), 1 / 3), ["home", "home"], events=["a", "b"])
    assert r.to_json() == before


def test_what_is_masked_or_no_array_is_refused() -> None:
    """What is behind a mask is not meant, and the imaginary part of a number is not lost."""
    rows, y = np.full((3, 3), 1 / 3), [0, 1, 2]
    hidden = np.eye(3, dtype=bool)
    partly = np.ma.array(rows, mask=hidden)
    r, m = tc.Recalibrator(classes=3), tc.Monitor(classes=3)
    before = r.to_json(), m.to_json()
    for call, match in (
        (lambda: r.predict(partly[1]), "scores .* masked .* position 1"),
        (lambda: r.predict(rows[0] + 1j), "scores must be 3 numbers"),
        (
            lambda: r.forecast_many(np.ma.array(rows, mask=hidden), y),
            r"masked .* position \(0, 0\)",
        ),
        (lambda: r.forecast_many(rows, np.ma.array(y, mask=hidden[2])), "outcomes .* position 2"),
        (lambda: r.forecast_many(rows, iter(y)), r"outcomes .* pass list\(...\) of it"),
        (lambda: r.forecast_many(rows, set(y)), "outcomes .* an entry for each round in order"),
        (lambda: m.update_many(partly, y), "rows .* masked"),
        (lambda: m.update_many(rows, np.ma.array(y, mask=hidden[2])), "labels .* masked"),
    ):
        with pytest.raises(InputError, match=match):
            call()
    assert (r.to_json(), m.to_json()) == before
    whole = r.forecast_many(np.ma.array(rows), np.ma.array(y))
    assert whole.tolist() == tc.Recalibrator(classes=3).forecast_many(rows, y).tolist()


def test_forecasts_are_not_written_over_outcomes() -> None:
    """Those that are read later would be others; rows may be overwritten, each in its place."""
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], 500)
    memory, evidence = np.zeros(1_500), np.zeros(510)
    y, labels = memory.view(np.int64)[-500:], evidence.view(np.int64)[:500]
    r, m = tc.Recalibrator(classes=3), tc.Monitor(classes=3)
    for known_at in (None, np.arange(500) + 3):
        with pytest.raises(InputError, match="out must not share memory with outcomes"):
            r.forecast_many(rows, y, known_at=known_at, out=memory.reshape(500, 3))
    with pytest.raises(InputError, match="out must not share memory with labels"):
        m.update_many(rows, labels, out=evidence[10:])
    with pytest.raises(InputError, match="out must not share memory with rows"):
        m.update_many(rows, labels, out=rows.reshape(-1)[-500:])
    assert r.rounds == m.rounds == 0
    expected = tc.Recalibrator(classes=3).forecast_many(rows, y)
    assert r.forecast_many(rows, y, out=rows).tolist() == expected.tolist()


@pytest.mark.slow("imports pandas")
def test_rows_and_outcomes_with_other_labels_are_refused() -> None:
    """They may be of different rows: as for two classes."""
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(np.full((3, 3), 1 / 3))
    y, known = (pandas.Series(some, index=[2, 1, 0]) for some in ([0, 1, 2], [2, 2, 2]))
    r, m = tc.Recalibrator(classes=3), tc.Monitor(classes=3)
    two = tc.Recalibrator()
    for call, match in (
        (lambda: r.forecast_many(rows, y), "scores must have the index of outcomes"),
        (lambda: m.update_many(rows, y), "rows must have the index of labels"),
        (lambda: r.forecast_many(rows, [0, 1, 2], known_at=known), "known_at .* index of scores"),
        (lambda: m.update_many(rows, [0, 1, 2], known_at=known), "known_at .* index of rows"),
        (lambda: two.forecast_many(rows[0], [0, 1, 1], known_at=known), "known_at .* index of"),
    ):
        with pytest.raises(InputError, match=match):
            call()
    assert r.rounds == m.rounds == two.rounds == 0
    r.forecast_many(rows, y.to_numpy(), known_at=known.to_numpy())


def test_rows_may_be_normalised() -> None:
    r = tc.Recalibrator(classes=3, normalize=True)
    assert r.predict([2.0, 1.0, 1.0]) == pytest.approx([0.5, 0.25, 0.25], abs=1e-5)
    with pytest.raises(InputError, match="positive sum"):
        r.predict([0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="a positive sum that is finite, got inf at position 1"):
        r.predict_many([[1, 2, 3], [1e308, 1e308, 1e308]])
    near = tc.Recalibrator(classes=3).predict([0.5, 0.25, 0.2500004])
    assert near.sum() == pytest.approx(1.0, abs=1e-15)


def test_names_may_be_those_of_numpy() -> None:
    for names in (["a", "b"], [3, 7]):
        r = tc.Recalibrator(classes=list(np.array(names)))
        assert r.classes == tuple(names)
        assert tc.ClassRecalibrator.from_json(r.to_json()).classes == r.classes
        assert tc.Monitor(classes=list(np.array(names))).config["classes"] == names
        assert tc.Recalibrator(classes=pl.Series(names)).classes == tuple(names)


@pytest.mark.parametrize("form", ["p_%s", "p%s", "P(%s) %%", "%s_prob", "%s"])
def test_frames_may_have_a_common_beginning_or_end(form: str) -> None:
    said = {"away": 0.2, "draw": 0.3, "home": 0.5}
    frame = pl.DataFrame({form % name: [p] for name, p in said.items()})
    rows = [[0.5, 0.3, 0.2]]
    for each in (frame, frame.to_arrow()):
        r, m = tc.Recalibrator(classes=NAMES), tc.Monitor(classes=NAMES)
        assert r.predict_many(each)[0] == pytest.approx(rows[0], abs=1e-5)
        m.update_many(each, ["home"])
        by_position = tc.Monitor(classes=NAMES)
        by_position.update_many(rows, ["home"])
        assert m.state() == by_position.state()


def test_frames_without_names_go_by_position_and_others_are_refused() -> None:
    rows = [[0.5, 0.3, 0.2]]
    r = tc.Recalibrator(classes=NAMES)
    for names in (["column_0", "column_1", "column_2"], ["0", "1", "2"], ["p1", "p2", "p3"]):
        frame = pl.DataFrame(rows, schema=names, orient="row")
        assert r.predict_many(frame)[0] == pytest.approx(rows[0], abs=1e-5)
    with pytest.raises(InputError, match=r"'home' is missing. Name .* or pass .to_numpy\(\)"):
        r.predict_many(pl.DataFrame(rows, schema=["H", "D", "A"], orient="row"))
    with pytest.raises(InputError, match="'home' is missing"):
        r.predict_many(pl.DataFrame(rows, schema=["p2", "p1", "p0"], orient="row"))


def test_names_of_classes_may_have_a_common_beginning_and_other_columns_beside_them() -> None:
    species = ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    frame = pl.DataFrame({"id": [7]} | {f"p_{species[k]}": [0.5 - 0.15 * k] for k in (1, 0, 2)})
    said = tc.Recalibrator(classes=species, normalize=True).predict_many(frame)
    with pytest.raises(InputError, match="'Iris-virginica' is missing"):
        tc.Recalibrator(classes=species).predict_many(frame[:, :3])
    assert said[0] == pytest.approx(np.array([0.5, 0.35, 0.2]) / 1.05, abs=1e-5)


@pytest.mark.slow("imports pandas")
def test_rows_with_names_go_by_them() -> None:
    pandas = pytest.importorskip("pandas")
    said = {"away": 0.2, "home": 0.5, "draw": 0.3}
    prefixed = {"id": 7} | {f"p_{name}": p for name, p in said.items()}
    frame = pandas.DataFrame([prefixed])
    for row in (said, prefixed, pandas.Series(said), frame.iloc[0], pandas.Series([0.5, 0.3, 0.2])):
        r, m = tc.Recalibrator(classes=NAMES), tc.Monitor(classes=NAMES)
        assert r.predict(row) == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)
        assert r.issue(row).p == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)
        m.update(row, "home")
        by_position = tc.Monitor(classes=NAMES)
        by_position.update([0.5, 0.3, 0.2], "home")
        assert m.state() == by_position.state()
    r = tc.Recalibrator(classes=NAMES)
    for row in ({"home": 0.5, "away": 0.5}, pandas.Series({"home": 0.5, "away": 0.5})):
        with pytest.raises(InputError, match="a score for each class: 'draw' is missing"):
            r.predict(row)
    with pytest.raises(InputError, match="must be 3 numbers, one of each class"):
        r.predict({0: 0.5, 1: 0.3, 2: 0.2})


@pytest.mark.slow("imports pandas")
def test_frames_are_read_by_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"away": [0.2], "id": [7], "home": [0.5], "draw": [0.3]})
    r = tc.Recalibrator(classes=NAMES)
    assert r.predict_many(frame)[0] == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)
    with pytest.raises(InputError, match="a column for each class: 'draw' is missing"):
        r.predict_many(frame[["away", "home"]])


@pytest.mark.parametrize(
    "classes",
    [1, 0, True, "ab", ["a"], ["a", "a"], [1.5, 2.5], 10**6, {"a", "b"}, {"a": 1, "b": 2}],
)
def test_bad_classes_are_refused(classes: Any) -> None:
    with pytest.raises(InputError, match="classes"):
        tc.Recalibrator(classes=classes)


def test_a_class_that_is_named_twice_is_named() -> None:
    names = [f"label {number}" for number in range(300)]
    names[200] = names[7]
    with pytest.raises(InputError, match="classes must name .* got 'label 7' at position 200"):
        tc.Recalibrator(classes=names)


def test_rows_without_classes_are_refused_with_what_to_do() -> None:
    """Also where outcomes are classes: what is said is not only that these must be 0 or 1."""
    rows, y = np.full((4, 3), 1 / 3), [0, 1, 2, 2]
    with pytest.raises(InputError, match=r"scores .* use truecast.Recalibrator\(classes=...\)"):
        tc.Recalibrator().forecast_many(rows, y)
    with pytest.raises(InputError, match=r"p .* use truecast.Monitor\(classes=...\)"):
        tc.Monitor().update_many(rows, y)
    with pytest.raises(InputError, match=r"p .* use truecast.Monitor\(classes=...\)"):
        tc.Monitor().update(rows[0], 1)


def test_bad_options_are_refused() -> None:
    for option in ({"hint": object()}, {"hint": tc.hints.Experts(2)}, {"budget": 1.0}):
        with pytest.raises(InputError):
            tc.Recalibrator(classes=3, **option)
    for groups in (-1, 1 << 21, True):
        with pytest.raises(InputError, match="max_groups"):
            tc.Recalibrator(classes=3, max_groups=groups)
    with pytest.raises(InputError, match="max_groups must be .* 65534"):
        tc.Recalibrator(classes=4096, max_groups=70_000)


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
    with pytest.raises(InputError, match="must be one of the 1 issued so far"):
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


NAMED: list[Any] = ["a", None, ("a", "b"), ("c", "b"), 7]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("nudge", [False, True])
def test_a_batch_with_groups_is_its_rounds(late: bool, nudge: bool) -> None:
    scores, y, _ = stream(3, 100)
    rng = np.random.default_rng(1)
    known = np.arange(100) + rng.integers(0, 12, 100) if late else None
    events = [None, "x", 7, "x"] * 25 if late else None
    options = {"classes": 3, "max_groups": 3, "max_unresolved": 8, "nudge": nudge}
    batch, single = tc.Recalibrator(**options), tc.Recalibrator(**options)
    said = batch.forecast_many(scores, y, groups=NAMED * 20, known_at=known, events=events)
    for t, row in enumerate(scores):
        group = NAMED[t % 5]
        if known is None or events is None:
            assert (single.predict(row, group=group) == said[t]).all()
            single.observe(y[t])
            continue
        assert single.issue(row, group=group, event=events[t]).p == tuple(said[t])
        for s in np.flatnonzero(known == t):
            if s in single.awaited:
                single.resolve(int(s), y[s])
    assert single.to_json() == batch.to_json()
    again = tc.ClassRecalibrator.from_json(batch.to_json())
    assert again.to_json() == batch.to_json()
    names = NAMED * 20
    p = batch.predict_many(scores, groups=names)
    assert (p == again.predict_many(scores, groups=names)).all()
    assert all((batch.predict(scores[t], group=names[t]) == p[t]).all() for t in range(10))


def test_every_group_has_a_certificate() -> None:
    scores, y, _ = stream(3, 200)
    r = tc.Recalibrator(classes=NAMES, max_groups=3)
    names = np.array(NAMES)[y]
    said = r.forecast_many(scores, names, groups=NAMED * 40)
    assert list(r.groups) == ["a", "b", "c"]
    assert (len(r.groups), "c" in r.groups, 7 in r.groups) == (3, True, False)
    with pytest.raises(KeyError):
        r.groups[7]
    for name, rows in (("a", [0, 2]), ("b", [2, 3]), ("c", [3])):
        mine = np.isin(np.arange(200) % 5, rows)
        proved = r.groups[name].certificate
        assert r.groups[name].rounds == proved.rounds == mine.sum()
        assert proved.brier == pytest.approx(brier(said[mine], y[mine]))
        assert set(proved.classes) == set(proved.top) == set(NAMES)
        assert sum(each.rounds for each in proved.top.values()) == mine.sum()
        for k, label in enumerate(NAMES):
            hit = (y[mine] == k).astype(int)
            lower = tc.lower_calibration_distance(hit, said[mine, k]).lower * mine.sum()
            assert lower <= proved.classes[label].lower_distance
    assert r.others.rounds == 40
    assert r.others.certificate.lower_distance <= r.others.certificate.a_priori
    ticket, lost = r.issue([0.2, 0.3, 0.5], group="a"), r.issue([0.2, 0.3, 0.5], group="a")
    r.give_up(lost)
    assert repr(r.groups["a"]) == "ClassGroupRecord(rounds=80, unresolved=1, given_up=1)"
    assert r.groups["a"].certificate.unresolved == 2
    r.resolve(ticket, "home")
    assert repr(r.groups) == "Groups(['a', 'b', 'c'])"


@pytest.mark.slow("plays 18,000 rounds of four classes")
def test_groups_that_differ_are_learned_and_others_lose_nothing() -> None:
    rng = np.random.default_rng(3)
    scores = rng.dirichlet(np.ones(4), 6_000)
    group = rng.integers(0, 20, 6_000)
    factors = np.exp(rng.normal(0, 0.8, (20, 4)))
    truth = scores * factors[group]
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((6_000, 1))).sum(axis=1).clip(max=3)
    names = group.tolist()
    plain = brier(tc.Recalibrator(classes=4).forecast_many(scores, y), y)
    with_groups = brier(tc.Recalibrator(classes=4).forecast_many(scores, y, groups=names), y)
    best = brier(truth, y)
    assert with_groups - best < 0.25 * (plain - best)
    # Groups that say nothing cost little.
    names = rng.integers(0, 20, 6_000).tolist()
    said = tc.Recalibrator(classes=4).forecast_many(scores, y, groups=names)
    assert brier(said, y) < plain * 1.002


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_sure_rows_of_groups_stay_probabilities(classes: int) -> None:
    # The offsets' weights may sum to 1 and a little: what they make of a one must not.
    rng = np.random.default_rng(classes)
    rows = np.eye(classes)[rng.integers(0, classes, 400)]
    rows[::2] = rng.dirichlet(np.full(classes, 0.3), 200)
    y, groups = rng.integers(0, classes, 400), rng.integers(0, 5, 400).tolist()
    r = tc.Recalibrator(classes=classes, hint=tc.hints.Identity())
    said = r.forecast_many(rows, y, groups=groups)
    assert (said >= 0).all()
    assert abs(said.sum(axis=1) - 1).max() < 1e-12


def test_an_event_is_one_observation() -> None:
    # A hundred forecasts of one event teach what one would.
    row = [0.6, 0.3, 0.1]
    shifts = []
    for count, event in ((1, None), (100, "final")):
        r = tc.Recalibrator(classes=3)
        first = r.predict(row)
        for ticket in [r.issue(row, event=event) for _ in range(count)]:
            r.resolve(ticket, 2)
        assert r.certificate.rounds == count
        shifts.append(abs(r.predict(row) - first).max())
    assert shifts[1] < 3 * shifts[0]
    r = tc.Recalibrator(classes=3)
    first = r.predict(row)
    for _ in range(100):
        r.predict(row)
        r.observe(2)
    assert abs(r.predict(row) - first).max() > 5 * shifts[1]


def test_a_group_that_is_refused_is_not_known() -> None:
    r = tc.Recalibrator(classes=3)
    before = r.to_json()
    with pytest.raises(InputError, match="group must"):
        r.predict([0.2, 0.3, 0.5], group=1.5)
    with pytest.raises(InputError, match="event must"):
        r.issue([0.2, 0.3, 0.5], group="a", event=1.5)
    with pytest.raises(InputError, match="name each group once"):
        r.issue([0.2, 0.3, 0.5], group=("a", "a"))
    r.predict_many([[0.2, 0.3, 0.5]], groups=["a"])
    assert r.to_json() == before


def test_states_from_before_there_were_groups_are_read() -> None:
    text = (Path(__file__).parents[1] / "golden" / "class_state.json").read_text()
    r = tc.ClassRecalibrator.from_json(text)
    assert (r.rounds, r.awaited, len(r.groups), r.others.rounds) == (30, [1], 0, 0)
    assert "groups" not in json.loads(text)["state"]
    r.observe("home")
    r.resolve(1, "draw")
    r.issue([0.2, 0.3, 0.5], group="a", event="x")
    again = tc.ClassRecalibrator.from_json(r.to_json())
    assert again.to_json() == r.to_json()
    assert again.groups["a"].unresolved == 1


def test_there_is_no_table_of_classes() -> None:
    with pytest.raises(InputError, match=r"classes must be None to make a table.*predict_many\(\)"):
        tc.Recalibrator(classes=3).to_table()
    with pytest.raises(InputError, match="to_json"):
        tc.Recalibrator(classes=NAMES).to_table(group="a", tolerance=1e-3)


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
        ("groups", ["a", "a"]),
        ("groups", ["a", "b", "c"]),
        ("groups", []),
    ]


@pytest.mark.slow("loads and saves 16 states")
def test_forged_states_are_refused_and_change_nothing() -> None:
    scores, y, _ = stream(3, 60)
    r = tc.Recalibrator(classes=3)
    r.forecast_many(scores[:50], y[:50], groups=["a", None] * 25)
    r.issue(scores[50], group=("a", "b"), event="x")
    r.predict(scores[51], group="b")
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
    assert tc.Recalibrator.from_json(before).to_json() == before
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
