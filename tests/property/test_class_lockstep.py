"""The compiled guard and hints for classes, in lockstep with their plain twins."""

from __future__ import annotations

import math

import numpy as np
import pytest

import truecast as tc
from truecast import _core
from truecast.reference import class_hints
from truecast.reference.class_guard import ClassGuard, Row


def played(classes: int, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Hints that are sharp, sure or the same again, and outcomes of which a third are unlikely."""
    rng = np.random.default_rng(seed)
    hints = rng.dirichlet(np.full(classes, 0.4), rounds)
    hints[::5] = hints[0]
    hints[1::7] = np.eye(classes)[rng.integers(0, classes, len(hints[1::7]))]
    return hints, rng.integers(0, classes, rounds)


def bare(classes: int, budget: float) -> tc.ClassRecalibrator:
    """The guard alone: it says the scores if it may."""
    return tc.Recalibrator(
        classes=classes, hint=tc.hints.Identity(), nudge=False, budget=budget, normalize=True
    )


@pytest.mark.slow("the plain guard adds up all knots in every look")
@pytest.mark.parametrize(("classes", "budget"), [(2, 4.0), (3, 1.05), (4, 4.0), (5, 1.05)])
def test_the_compiled_guard_is_the_plain_one(classes: int, budget: float) -> None:
    hints, outcomes = played(classes, 60, classes)
    guard = ClassGuard(classes, budget=budget)
    compiled = bare(classes, budget)
    moved = 0
    for hint, y in zip(hints, outcomes, strict=True):
        said = compiled.predict(hint)
        row = guard.place_row(hint / hint.sum())
        moved += row.moves
        assert said == pytest.approx([share.p for share in row.shares], abs=1e-9)
        assert compiled._desk.last["keys"] == [share.key for share in row.shares]
        assert compiled._desk.last["worst"] == pytest.approx(row.w * 2**20, abs=4)
        guard.commit_row(row)
        guard.settle_row(row, int(y))
        compiled.observe(int(y))
    assert moved > (10 if budget < 2 else -1)
    energies = [parts.energy for parts in compiled.certificate.classes.values()]
    assert energies == pytest.approx([float(e) for e in guard.energies().values()], abs=1e-6)


@pytest.mark.slow("the plain guard adds up all knots in every look")
@pytest.mark.parametrize(("classes", "budget"), [(3, 1.05), (4, 1.05), (2, 4.0)])
def test_groups_are_those_of_the_plain_guard(classes: int, budget: float) -> None:
    hints, outcomes = played(classes, 50, classes + 10)
    rng = np.random.default_rng(classes)
    guard, compiled = ClassGuard(classes, budget=budget), bare(classes, budget)
    waiting: list[tuple[Row, int, int]] = []
    moved = 0
    outcomes = hints.argmin(axis=1)  # the guard must move
    for hint, y in zip(hints, outcomes, strict=True):
        groups = tuple(np.flatnonzero(rng.random(3) < 0.4).tolist())
        if rng.random() < 0.5:
            row = guard.forecast(hint / hint.sum(), int(y), groups)
            said = compiled.predict(hint, group=groups)
            compiled.observe(int(y))
        else:
            row = guard.issue_row(hint / hint.sum(), groups)
            ticket = compiled.issue(hint, group=groups)
            said = np.array(ticket.p)
            waiting.append((row, int(ticket), int(y)))
        moved += row.moves
        assert said == pytest.approx([share.p for share in row.shares], abs=1e-8)
        if len(waiting) > 4:
            row, number, y = waiting.pop(int(rng.integers(4)))
            guard.settle_row(row, y)
            compiled.resolve(number, y)
    assert moved > (2 if budget < 2 else -1)
    saved = compiled._desk.saved_guard()["classes"]
    assert saved["granted"] == pytest.approx(guard.prices * 2**20, abs=100)
    assert saved["reserved"] == pytest.approx(guard.reserved() * 2**20, abs=100)
    for name, energy in guard.energies().items():
        group, k = name
        record = compiled if group is None else compiled.groups[group]
        assert record.certificate.classes[k].energy == pytest.approx(float(energy), abs=1e-5)


@pytest.mark.parametrize("classes", [2, 4])
def test_offsets_of_groups_are_the_plain_ones(classes: int) -> None:
    rng = np.random.default_rng(classes)
    plain = class_hints.Offsets(classes)
    compiled = tc.Recalibrator(classes=classes, hint=tc.hints.Identity(), budget=1e3)
    for _ in range(300):
        hint = rng.dirichlet(np.full(classes, 0.7))
        if rng.random() < 0.4:
            hint[0] = rng.choice([0.0, 1e-12])
            hint /= hint.sum()
        groups = tuple(np.flatnonzero(rng.random(4) < 0.5).tolist())
        truth = hint * np.exp(3 * sum(np.cos(3 * g + np.arange(classes)) for g in groups))
        y = int(rng.choice(classes, p=truth / truth.sum()))
        compiled.predict(hint, group=groups)
        # The nudge comes after it: look at what it was given.
        asked = compiled._desk.saved_asked()["aim"].reshape(-1, classes)
        if groups:
            found = [hint.tolist(), *plain.rows(hint.tolist(), groups)]
            assert asked == pytest.approx(np.array(found), abs=1e-5)
        plain.learn(hint.tolist(), groups, y)
        compiled.observe(y)
    weights = compiled._desk.saved_guard()["classes"]["aims"][3:]
    assert weights == pytest.approx(plain.weights, abs=1e-4)
    assert plain.weights[0] < 0.4  # groups differ here


@pytest.mark.slow("the plain guard adds up all knots in every look")
@pytest.mark.parametrize("classes", [3, 5])
def test_moves_are_those_of_the_plain_guard(classes: int) -> None:
    # All of the outcomes are one class, which the hints call impossible: the guard must move.
    compiled = bare(classes, 1.05)
    guard = ClassGuard(classes, budget=1.05)
    hint = np.append(0.0, np.full(classes - 1, 1.0 / (classes - 1)))
    moved = 0
    for _ in range(60):
        row = guard.forecast(hint, 0)
        moved += row.moves
        assert compiled.predict(hint) == pytest.approx([s.p for s in row.shares], abs=1e-7)
        assert compiled._desk.last["moves"] == row.moves
        compiled.observe(0)
    assert moved > 5


def test_late_rows_are_those_of_the_plain_guard() -> None:
    hints, outcomes = played(3, 60, 8)
    compiled, guard = bare(3, 4.0), ClassGuard(3)
    rows = []
    for hint in hints:
        ticket = compiled.issue(hint)
        rows.append((ticket, guard.issue_row(hint / hint.sum())))
        assert ticket.p == pytest.approx([s.p for s in rows[-1][1].shares], abs=1e-9)
    for (ticket, row), y in sorted(zip(rows, outcomes, strict=True), key=lambda each: -each[0][0]):
        compiled.resolve(ticket, int(y))
        guard.settle_row(row, int(y))
    saved = compiled._desk.saved_guard()["classes"]
    assert saved["excess"] == pytest.approx(guard.excess * 2**20, abs=200)
    assert saved["reserved"] == 0
    assert saved["granted"] == pytest.approx(guard.prices * 2**20, abs=60)


class Members:
    """The plain mixture, with the compiled hint of each class."""

    def __init__(self, classes: int) -> None:
        self.each = [tc.hints.Mix() for _ in range(classes)]
        temperature = class_hints.Temperature()
        self.members: list[class_hints.Member] = [
            temperature,
            class_hints.Vector(classes, temperature),
            class_hints.Matrix(classes, 1.0, temperature),
            class_hints.Matrix(classes, 0.998, temperature),
        ]
        self.mixture = class_hints.Mixture(matrices=2)

    def say(self, p: list[float]) -> list[float]:
        self.x = class_hints.features(p)
        own = [hint.predict(score) for hint, score in zip(self.each, p, strict=True)]
        total = math.fsum(own)
        self.said = [p, *(member.say(self.x) for member in self.members)]
        self.said.append([each / total for each in own])
        return self.mixture.say(self.said)

    def learn(self, p: list[float], y: int) -> None:
        self.mixture.learn(self.said, y)
        for member, q in zip(self.members, self.said[1:], strict=False):
            member.learn(self.x, q, y)
        for k, hint in enumerate(self.each):
            hint.learn(p[k], int(k == y))


@pytest.mark.slow("the plain matrices take K^3 operations a round")
@pytest.mark.parametrize("classes", [3, 4, 6])  # two have the mix alone
def test_the_compiled_hints_are_the_plain_ones(classes: int) -> None:
    rng = np.random.default_rng(classes)
    truth = rng.dirichlet(np.full(classes, 0.5), 400)
    scores = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    scores[::9] = np.eye(classes)[rng.integers(0, classes, len(scores[::9]))]
    plain = Members(classes)
    compiled = tc.Recalibrator(classes=classes, nudge=False, budget=100.0)
    for p, right in zip(scores, truth, strict=True):
        y = int(rng.choice(classes, p=right))
        p = p / p.sum()
        assert compiled.predict(p) == pytest.approx(plain.say(p.tolist()), abs=1e-7)
        plain.learn(p.tolist(), y)
        compiled.observe(y)
    weights = compiled._desk.saved_hint()["weights"]
    assert weights == pytest.approx(plain.mixture.weights, abs=1e-6)


def test_what_forgets_does_not_wind_up() -> None:
    # The same sure row again and again teaches one direction only; the others must not grow.
    desk = _core.ClassDesk(tc.hints.Identity(), 3, True, 4.0, True, False, int, 10, 10)
    rows = np.full((20_000, 3), [0.98, 0.01, 0.01])
    said = np.empty_like(rows)
    desk.run(rows, None, np.zeros(len(rows), np.int64), said, False)
    assert said.min() >= 0
    assert said.max() <= 1
    inverse = np.reshape(desk.saved_hint()["fading_inverse"], (3, 4, 4))
    assert np.isfinite(inverse).all()
    assert (np.trace(inverse, axis1=1, axis2=2) <= 0.8 * (1 + 1e-9)).all()
    assert (np.linalg.eigvalsh(inverse) > 0).all()
