"""The theorems of docs/classes.md, on the compiled guard against all comers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import truecast as tc
from truecast.reference import class_guard
from truecast.reference.guard import END, EVERYONE, shape_at

PART = 2.0**-20
KNOTS = 1 << 12


def bare(classes: int, budget: float) -> tc.ClassRecalibrator:
    """The guard alone: it says the scores if it may."""
    return tc.Recalibrator(classes=classes, hint=tc.hints.Identity(), nudge=False, budget=budget)


def hints_of(kind: str, classes: int, rounds: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "sharp":
        return rng.dirichlet(np.full(classes, 0.3), rounds)
    if kind == "few":
        return rng.dirichlet(np.full(classes, 0.5), 4)[rng.integers(0, 4, rounds)]
    if kind == "sure":
        return np.eye(classes)[rng.integers(0, classes, rounds)]
    if kind == "even":
        return np.full((rounds, classes), 1 / classes)
    way = np.abs((np.arange(rounds) / rounds * 6) % 2 - 1)[:, None]  # up and down
    return np.hstack([way, np.repeat((1 - way) / (classes - 1), classes - 1, axis=1)])


def outcome_of(kind: str, tilts: np.ndarray, said: np.ndarray, rng: np.random.Generator) -> int:
    if kind == "worst":  # adds the most energy
        return int(tilts.argmax())
    if kind == "least":  # the least probable
        return int(said.argmin())
    if kind == "wild":
        return int((tilts + rng.normal(0, 0.2 * np.ptp(tilts) + 1e-9, len(tilts))).argmax())
    return int(rng.integers(len(tilts)))


KINDS = ["sharp", "few", "sure", "even", "sweep"]
OPPONENTS = ["worst", "least", "wild", "random"]
GAMES = list(itertools.product([2, 3, 6], [1.05, 4.0], KINDS, OPPONENTS))


@pytest.mark.slow("plays 120 games of 300 rounds")
@pytest.mark.parametrize("hint", KINDS)
def test_no_opponent_exceeds_the_budget(hint: str) -> None:
    """Theorem 2: all energies together stay within the budget, and nothing is spilled."""
    for classes, budget, kind, opponent in GAMES:
        if kind != hint:
            continue
        rng = np.random.default_rng([classes, KINDS.index(kind), OPPONENTS.index(opponent)])
        guard = bare(classes, budget)
        rows = hints_of(kind, classes, 300, rng)
        spilled = 0
        for row in rows / rows.sum(axis=1, keepdims=True):
            said = guard.predict(row)
            last = guard._desk.last
            assert last["energy"] * PART <= last["allowance"]
            assert abs(said.sum() - 1) < 1e-12
            assert (said >= 0).all()
            spilled += last["spill"]
            guard.observe(outcome_of(opponent, np.array(last["tilts"]), said, rng))
        assert spilled == 0
        proved = guard.certificate
        assert proved.lower_distance <= proved.a_priori <= guard.a_priori(300)


def test_where_coarse_moves_run_out_a_few_fine_ones_do() -> None:
    """Theorem 2 (b): the benchmark's opponent of twelve classes, who needs the most moves."""
    rng = np.random.default_rng(12)
    guard = bare(12, 1.05)
    moves = []
    for row in rng.dirichlet(np.full(12, 0.3), 600):
        guard.predict(row)
        last = guard._desk.last
        moves.append(last["moves"])
        assert last["energy"] * PART <= last["allowance"]
        assert last["spill"] == 0
        guard.observe(int(np.argmax(last["tilts"])))
    fine = [made - 8 * 12 for made in moves if made > 8 * 12]
    assert len(fine) > 3
    assert max(fine) <= 12


def test_what_does_not_fit_is_spilled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 2 (a), with neither moves nor levels: only what is beyond the room is excess."""
    monkeypatch.setattr(class_guard, "COARSE", 0)
    monkeypatch.setattr(class_guard, "FINE", 0)
    guard = class_guard.ClassGuard(3, budget=1.05, start=200.0)
    hints = np.random.default_rng(1).dirichlet(np.full(3, 0.4), 60)
    spilled = 0
    for hint in hints:
        as_hinted = [guard.share_at((EVERYONE,), k, p, 1) for k, p in enumerate(hint.tolist())]
        monkeypatch.setattr(guard, "level", lambda *_, shares=as_hinted: shares)
        row = guard.place_row(hint.tolist())
        left = guard.room()
        beyond = row.w - 1.05 * row.price - left
        assert row.spill == pytest.approx(max(beyond, 0), abs=2 * PART)
        guard.commit_row(row)
        guard.settle_row(row, max(range(3), key=lambda k: row.shares[k].tilt))
        assert guard.potential() <= guard.allowance() + 2.05 * guard.made * PART  # rounding
        if row.spill:
            spilled += 1
            assert guard.room() < 5 * PART  # the worst outcome came, and took all of it
    assert 10 < spilled < 60


@pytest.mark.slow("plays all outcomes of six rounds with three classes")
def test_all_outcomes_of_small_worlds() -> None:
    """The worst outcome adds what was allowed for, and no other more."""
    rows = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]] * 2
    for outcomes in itertools.product(range(3), repeat=6):
        guard = bare(3, 1.05)
        for row, y in zip(rows, outcomes, strict=True):
            before = guard._desk.last["energy"]
            guard.predict(row)
            worst = guard._desk.last["worst"]
            guard.observe(y)
            assert guard._desk.last["energy"] - before <= worst + 3  # each class is rounded up


@pytest.mark.slow("plays 40 games of up to 40 moves")
@settings(max_examples=40, deadline=None)
@given(
    classes=st.integers(2, 5),
    budget=st.sampled_from([1.05, 4.0]),
    seed=st.integers(0, 10**6),
    moves=st.lists(st.sampled_from(["issue", "resolve", "give up", "play"]), max_size=40),
)
def test_late_rows_in_any_order_keep_the_budget(
    classes: int, budget: float, seed: int, moves: list[str]
) -> None:
    """Theorem 4: energies and what is reserved stay within the allowance."""
    rng = np.random.default_rng(seed)
    guard = bare(classes, budget)
    awaited: list[tc.ClassTicket] = []
    for move in moves:
        row = rng.dirichlet(np.full(classes, 0.3))
        groups = tuple(np.flatnonzero(rng.random(3) < 0.3).tolist())
        if move == "issue":
            awaited.append(guard.issue(row, group=groups))
            assert abs(sum(awaited[-1].p) - 1) < 1e-12
        elif move == "play":
            guard.predict(row, group=groups)
            guard.observe(int(rng.integers(classes)))
        elif awaited:
            ticket = awaited.pop(int(rng.integers(len(awaited))))
            if move == "resolve":
                guard.resolve(ticket, int(np.argmin(ticket.p)))
            else:
                guard.give_up(ticket)
        saved = guard._desk.saved_guard()["classes"]
        last = guard._desk.last
        assert (last["energy"] + saved["reserved"]) * PART <= last["allowance"] + len(moves) * PART
    proved = guard.certificate
    assert all(each.unresolved == proved.unresolved for each in proved.classes.values())


@pytest.mark.slow("computes distances of all classes")
def test_certificates_are_above_what_they_bound() -> None:
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([0.5, 0.5, 0.5, 0.5], 3_000)
    y = (truth.cumsum(axis=1) < rng.random((3_000, 1))).sum(axis=1).clip(max=3)
    scores = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    r = tc.Recalibrator(classes=4)
    said = r.forecast_many(scores, y)
    proved, top = r.certificate, said.argmax(axis=1)
    assert sum(each.rounds for each in proved.top.values()) == 3_000
    for k in range(4):
        mine = (y == k).astype(int)
        lower = tc.lower_calibration_distance(mine, said[:, k]).lower * len(y)
        assert lower <= proved.classes[k].lower_distance
        smooth = tc.smooth_calibration_error(mine, said[:, k]) * len(y)
        assert smooth <= proved.classes[k].smooth_error
        if (top == k).any():
            best = tc.lower_calibration_distance(mine[top == k], said[top == k, k]).lower
            assert best * (top == k).sum() <= proved.top[k].lower_distance
    confidence = tc.lower_calibration_distance((top == y).astype(int), said.max(axis=1))
    assert confidence.lower * len(y) <= proved.top_distance
    assert proved.brier == pytest.approx(((said - np.eye(4)[y]) ** 2).sum(axis=1).mean())
    assert proved.lower_distance <= proved.bound <= proved.a_priori
    assert proved.bound >= sum(each.bound for each in proved.classes.values())
    assert proved.per_round == proved.bound / 3_000


def test_two_classes_are_the_binary_guard_twice() -> None:
    """Theorem 1 (c): the same forecasts where the hint fits, energy for energy."""
    rng = np.random.default_rng(5)
    truth = rng.beta(2, 3, 2_000)
    y = (rng.random(2_000) < truth).astype(int)
    score = truth**2 / (truth**2 + (1 - truth) ** 2)
    for hint in (tc.hints.Identity(), tc.hints.Platt(), tc.hints.Mix()):
        one = tc.Recalibrator(hint=hint, budget=100.0)
        two = tc.Recalibrator(classes=2, hint=hint, budget=100.0)
        p = one.forecast_many(score, y)
        rows = two.forecast_many(np.column_stack([1 - score, score]), y)
        assert two._desk.last["moves"] == 0
        assert rows[:, 1] == pytest.approx(p, abs=1e-9)
        assert rows[:, 0] == pytest.approx(1 - p, abs=1e-9)
        proved = two.certificate
        for each in proved.classes.values():
            assert each.energy == pytest.approx(one.certificate.energy, rel=1e-6)
        assert proved.brier == pytest.approx(2 * one.certificate.brier)


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_two_classes_are_the_binary_recalibrator(scale: str) -> None:
    """As both are built by default: hints, nudge and guard, of a model that is off and drifts."""
    rng = np.random.default_rng(8)
    x = rng.normal(-0.5, 1.5, 3_000)
    y = (rng.random(3_000) < expit(x)).astype(int)
    scores = 2 * x + np.linspace(-1, 1, 3_000)
    rows = np.column_stack([0 * scores, scores])
    if scale == "probability":
        scores, rows = expit(scores), np.column_stack([1 - expit(scores), expit(scores)])
    one = tc.Recalibrator(scale=scale)
    two = tc.Recalibrator(classes=["no", "yes"], scale=scale)
    p = one.forecast_many(scores, y)
    q = two.forecast_many(rows, np.array(["no", "yes"])[y])
    assert q[:, 1] == pytest.approx(p, abs=1e-12)
    assert q[:, 0] == pytest.approx(1 - p, abs=1e-12)
    for each in two.certificate.classes.values():
        assert each.energy == pytest.approx(one.certificate.energy)
        assert each.bound == pytest.approx(one.certificate.bound)
    loaded = tc.Recalibrator.from_json(two.to_json())
    assert loaded.predict(rows[0]).tolist() == two.predict(rows[0]).tolist()


def test_two_classes_with_late_outcomes_are_the_binary_recalibrator() -> None:
    """Bursts and events have the same weights, and notes are as rough."""
    rng = np.random.default_rng(9)
    x = rng.normal(-0.5, 1.5, 3_000)
    y = (rng.random(3_000) < expit(x)).astype(int)
    p = expit(2 * x)
    rows = np.column_stack([1 - p, p])
    places = np.arange(3_000)
    lag = rng.integers(0, 60, 3_000)
    for known_at in (np.minimum(places + lag, 2_999), np.minimum(places // 50 * 50 + 60, 2_999)):
        for events in (None, (places // 3).tolist()):
            late = {"known_at": known_at, "events": events}
            one = tc.Recalibrator().forecast_many(p, y, **late)
            two = tc.Recalibrator(classes=2).forecast_many(rows, y, **late)
            assert two[:, 1] == pytest.approx(one, abs=1e-9)


def test_two_classes_with_groups_are_the_binary_recalibrator() -> None:
    """Offsets of groups included, whichever groups and outcomes."""
    rng = np.random.default_rng(6)
    score = rng.beta(2, 3, 1_500)
    names = [(int(a), "odd" if b else "even") for a, b in rng.integers(0, [6, 2], (1_500, 2))]
    drawn = np.array([name[0] for name in names]) * 0.4 - 1
    y = (rng.random(1_500) < expit(np.log(score / (1 - score)) + drawn)).astype(int)
    for options in ({"hint": tc.hints.Identity()}, {"hint": tc.hints.Mix()}, {}):
        one = tc.Recalibrator(**options)
        two = tc.Recalibrator(classes=2, **options)
        rows = np.column_stack([1 - score, score])
        p = one.forecast_many(score, y, groups=names)
        q = two.forecast_many(rows, y, groups=names)
        assert q[:, 1] == pytest.approx(p, abs=1e-9)
        for name in one.groups:
            proved = two.groups[name].certificate
            found = one.groups[name].certificate
            assert proved.brier == pytest.approx(2 * found.brier)
            for each in proved.classes.values():
                assert each.energy == pytest.approx(found.energy, rel=1e-6)
                assert each.a_priori >= each.lower_distance


def test_two_classes_with_groups_and_extreme_odds_are_the_binary_recalibrator() -> None:
    """Offsets cut odds off at e^16 for both; scores of 0 and 1 that are often wrong show it."""
    rng = np.random.default_rng(0)
    y, sure = (rng.random((2, 400)) < 0.5).astype(int)
    names = [(int(place % 3), str(place % 2)) for place in range(400)]
    for least in (1e-4, 1e-6, 0.0):
        score = np.clip(sure, least, 1 - least)
        rows = np.column_stack([1 - score, score])
        p = tc.Recalibrator().forecast_many(score, y, groups=names)
        q = tc.Recalibrator(classes=2).forecast_many(rows, y, groups=names)[:, 1]
        assert q == pytest.approx(p, abs=1e-9)


@pytest.mark.slow("plays 30 games of 150 rounds")
def test_no_opponent_exceeds_the_budget_of_groups() -> None:
    """All energies of all groups together are within the budget, and nothing is spilled."""
    for classes, budget, opponent in itertools.product([2, 3, 6], [1.05, 4.0], OPPONENTS):
        rng = np.random.default_rng([classes, OPPONENTS.index(opponent)])
        guard = bare(classes, budget)
        rows = hints_of("sharp", classes, 150, rng)
        spilled = 0
        for row in rows / rows.sum(axis=1, keepdims=True):
            said = guard.predict(row, group=tuple(np.flatnonzero(rng.random(3) < 0.5).tolist()))
            last = guard._desk.last
            assert last["energy"] * PART <= last["allowance"]
            spilled += last["spill"]
            guard.observe(outcome_of(opponent, np.array(last["tilts"]), said, rng))
        assert spilled == 0
        for record in (guard, *guard.groups.values()):
            proved = record.certificate
            assert proved.lower_distance <= proved.a_priori
            energy = sum(each.energy for each in proved.classes.values())
            assert energy <= last["allowance"]


def test_where_the_guard_moves_two_classes_are_as_close_as_the_binary_one() -> None:
    """The searches differ: both say something that fits, on the same side of the hint."""
    one = tc.Recalibrator(hint=tc.hints.Identity(), nudge=False, budget=1.05)
    two = bare(2, 1.05)
    for _ in range(1_500):
        p, row = one.predict(0.2), two.predict([0.8, 0.2])
        assert row[1] >= 0.2
        assert abs(row[1] - p) < 0.02
        one.observe(1)
        two.observe(1)


def too_sure() -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of ten classes, and a model that is too sure of itself."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.full(10, 0.5), 6_000)
    y = (truth.cumsum(axis=1) < rng.random((6_000, 1))).sum(axis=1).clip(max=9)
    return y, truth**2 / (truth**2).sum(axis=1, keepdims=True)


def nudged_energies(
    y: np.ndarray, hints: np.ndarray, *, before: float, most_excess: float, furthest: float
) -> np.ndarray:
    """The energy of each class if rows are nudged by plain NumPy, and no guard acts.

    The nudge of docs/classes.md, section 6, with a gain of 1, on 2^12 knots, with any limits.
    """
    classes = hints.shape[1]
    knots = np.arange(KNOTS + 1)
    shapes = [shape_at(int(k) * (END // KNOTS)) for k in knots]
    up, down = np.array(shapes).T
    fields = np.zeros((classes, len(knots)))
    energy, variance = np.zeros((2, classes))
    each = np.arange(classes)

    def knots_near(p: np.ndarray) -> np.ndarray:
        angle = 2 * np.arctan2(np.sqrt(p), np.sqrt(1 - p))
        return np.floor(angle * (KNOTS / np.pi) + 0.5).astype(int)

    for hint, outcome in zip(hints, y, strict=True):
        scale = before + variance
        strength = np.clip(energy / scale, 0, most_excess) / np.sqrt(scale)
        log_odds = np.log(hint / (1 - hint))
        here = fields[each, knots_near(hint)]
        first = np.clip(strength * here, -furthest, furthest)
        p = expit(log_odds + first)
        there = np.clip(strength * (here + fields[each, knots_near(p)]) / 2, -furthest, furthest)
        p = np.where(np.abs(first) < 0.125, p, expit(log_odds + there))
        p /= p.sum()
        at = knots_near(p)
        residual = (each == outcome) - p
        own = up[at] * down[at]
        energy += residual * (residual * own + 2 * fields[each, at])
        variance += p * (1 - p) * own
        below = knots <= at[:, None]
        kernel = np.where(below, up * down[at, None], up[at, None] * down)
        fields += residual[:, None] * kernel
    return energy


@pytest.mark.slow("plays 18,000 rounds of ten classes in NumPy")
def test_without_limits_one_of_ten_classes_runs_away() -> None:
    """Why the nudge is limited: where it starts early, the energy of one class explodes without.

    Plain NumPy plays it, and with our constants that is the compiled nudge. No class runs away here
    if it starts as late as ours: that alone does much of it.
    """
    y, hints = too_sure()
    ours = nudged_energies(y, hints, before=10_000.0, most_excess=2.0, furthest=2.0)
    r = tc.Recalibrator(classes=10, hint=tc.hints.Identity(), budget=1e3)
    r.forecast_many(hints, y)
    energies = [each.energy for each in r.certificate.classes.values()]
    np.testing.assert_allclose(energies, ours, rtol=1e-5)
    free = nudged_energies(y, hints, before=1000.0, most_excess=np.inf, furthest=np.inf)
    limited = nudged_energies(y, hints, before=1000.0, most_excess=2.0, furthest=2.0)
    assert free.max() > 10 * np.median(free)
    assert free.max() > 5 * limited.max()
    assert free.max() > 10 * ours.max()


def test_no_class_blows_up() -> None:
    """A nudge moves the odds of a class by a factor of e^2 at most, and energies stay small.

    `test_without_limits_one_of_ten_classes_runs_away` shows what it would do without the limits.
    """
    y, scores = too_sure()
    r = tc.Recalibrator(classes=10)
    r.forecast_many(scores, y)
    for each in r.certificate.classes.values():
        assert each.energy < 1.5 * 6_000
    # The hint is wrong for ever, all in one class.
    r = tc.Recalibrator(classes=10, hint=tc.hints.Identity(), budget=1e3)
    hint = np.full(10, 0.1)
    for _ in range(2_000):
        said = r.predict(hint)
        assert np.abs(np.log(said / (1 - said)) - np.log(1 / 9)).max() <= 4.0 + 1e-9
        r.observe(0)
