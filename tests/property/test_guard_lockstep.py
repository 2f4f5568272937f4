"""The compiled guard and the plain one, driven together; and theorem 6 on the compiled one, against
all comers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import truecast as tc
from rounds import FORECASTS
from truecast import _core, hints
from truecast.reference.arc import kernel
from truecast.reference.guard import EVERYONE, PARTS, ArcGuard, Number, Placed, forecast_at

NAMES = ["a", "b", "c"]
SETS = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(tuple)
BUDGETS = [1.05, 1.5, 4.0]


class Watched(ArcGuard):
    """Tells how close a forecast came to being judged otherwise: there rounding may decide."""

    closest: float = math.inf

    def fits(self, p: float, key: int, names: tuple[Any, ...], more: Number) -> bool:
        apart = self.worst(p, key, names) - self.budget * self.price(p, key, names) - more
        tilt = self.slope(p, key, names)
        self.closest = min(self.closest, abs(apart), abs(tilt) if apart > 0 else math.inf)
        return super().fits(p, key, names, more)


class Pair:
    """A recalibrator that follows its scores, so that it is its guard, and the plain guard."""

    def __init__(self, budget: float) -> None:
        self.core = tc.Recalibrator(hint=hints.Identity(), nudge=False, budget=budget)
        self.plain = Watched(budget=budget)
        self.awaited: list[tuple[tc.Ticket, Placed]] = []
        self.parted = False  # at a hair's breadth: from then on they may go different ways
        self.moved = 0
        self.made = 0

    @property
    def asked(self) -> Placed | None:
        return self.plain.asked

    @property
    def blur(self) -> float:
        """What sums of rounded parts may differ by."""
        return (self.made + 1) * 32 / PARTS

    def same(self, said: float, placed: Placed, hint: float) -> None:
        self.made += 1
        self.moved += placed.p != hint
        if said == placed.p:
            return
        allowed = self.plain.budget * self.blur
        assert self.plain.closest <= allowed, (said, placed.p, self.plain.closest)
        self.parted = True

    def predict(self, hint: float, names: tuple[str, ...]) -> None:
        self.plain.closest = math.inf
        self.plain.predict(hint, names)
        self.same(self.core.predict(hint, group=names), self.plain.asked, hint)

    def observe(self, y: int) -> None:
        self.core.observe(y)
        self.plain.observe(y)

    def round(self, hint: float, names: tuple[str, ...], y: int | None) -> None:
        self.predict(hint, names)
        if not self.parted:
            self.observe(self.against() if y is None else y)

    def against(self) -> int:
        """The outcome that adds more to the energies."""
        p, key, names = self.plain.asked.p, self.plain.asked.key, self.plain.asked.fields
        return int(self.plain.slope(p, key, names) > 0)

    def issue(self, hint: float, names: tuple[str, ...]) -> None:
        self.plain.closest = math.inf
        placed = self.plain.issue(hint, names)
        ticket = self.core.issue(hint, group=names)
        self.same(ticket.p, placed, hint)
        self.awaited.append((ticket, placed))

    def resolve(self, which: int, y: int) -> None:
        ticket, placed = self.awaited.pop(which % len(self.awaited))
        self.core.resolve(ticket, y)
        self.plain.resolve(placed, y)

    def give_up(self, which: int) -> None:
        ticket, placed = self.awaited.pop(which % len(self.awaited))
        self.core.give_up(ticket)
        self.plain.give_up(placed)

    def check(self) -> None:
        if self.parted:
            return
        numbers, plain, blur = self.core._desk.saved(), self.plain, self.blur
        assert numbers["granted"] / PARTS == pytest.approx(float(plain.prices), rel=1e-12, abs=blur)
        assert numbers["reserved"] / PARTS == pytest.approx(
            float(plain.reserved()), rel=1e-12, abs=blur
        )
        assert numbers["excess"] / PARTS == pytest.approx(float(plain.excess), rel=1e-9, abs=blur)
        knots, counts = numbers["knots"], numbers["groups"]["knots"]
        ends = np.cumsum(counts)
        order = [EVERYONE, "others", *self.core.groups]
        for number, name in enumerate(order):
            part = slice(ends[number] - counts[number], ends[number])
            found = dict(
                zip(knots["key"][part].tolist(), knots["residual"][part].tolist(), strict=True)
            )
            if name not in plain.fields:
                assert found == {}
                continue
            field = plain.fields[name]
            assert found == {key: r for key, r in field.residuals.items() if r != 0}
            rounds, late, lost, squared_error, energy, gross, hidden, unknown, *_ = (
                self.core._desk.parts(number)
            )
            assert rounds == field.rounds
            assert late == sum(name in placed.fields for placed in plain.waiting)
            assert lost == sum(name in placed.fields for placed in plain.given_up)
            assert energy == pytest.approx(
                float(plain.energies()[name]), rel=1e-9, abs=1e-12 * (1 + gross)
            )
            assert 0 <= hidden * 2.0**-40 - field.hidden <= (rounds + 1) * 2.0**-25
            assert 0 <= unknown * 2.0**-32 - plain.unknown(name) <= (late + lost) * 2.0**-31 + 1e-12
            assert 0 <= squared_error <= rounds
        certificate = self.core.certificate
        assert certificate.lower_distance >= min(plain.lower_distance(), plain.made) * (1 - 1e-12)
        assert certificate.smooth_error >= min(plain.smooth_error(), plain.made) * (1 - 1e-12)
        more = (
            self.made * 2.0**-24 + 1e-9 + 0.6 * math.sqrt(1e-12 * (1 + self.core._desk.parts(0)[5]))
        )
        assert certificate.lower_distance <= plain.lower_distance() * (1 + 1e-9) + more
        assert_within_budget(self.core)
        allowed = self.core._desk.parts(0)[-1]
        assert allowed == pytest.approx(
            float(plain.allowance()), rel=1e-9, abs=(plain.budget + 3) * blur
        )


class GuardLockstep(RuleBasedStateMachine):
    @initialize(budget=st.sampled_from(BUDGETS))
    def build(self, budget: float) -> None:
        self.pair = Pair(budget)

    @rule(hint=FORECASTS, names=SETS)
    def predict(self, hint: float, names: tuple[str, ...]) -> None:
        self.pair.predict(hint, names)

    @precondition(lambda self: self.pair.asked is not None)
    @rule(y=st.integers(0, 1))
    def observe(self, y: int) -> None:
        self.pair.observe(y)

    @rule(hint=FORECASTS, names=SETS, y=st.sampled_from([None, 0, 1]), times=st.integers(1, 40))
    def play(self, hint: float, names: tuple[str, ...], y: int | None, times: int) -> None:
        """The same hint again and again, also with the outcome that does most harm: it uses the
        budget up."""
        for _ in range(times):
            if not self.pair.parted:
                self.pair.round(hint, names, y)

    @rule(hint=FORECASTS, names=SETS, times=st.integers(1, 20))
    def issue(self, hint: float, names: tuple[str, ...], times: int) -> None:
        for _ in range(times):
            if not self.pair.parted:
                self.pair.issue(hint, names)

    @precondition(lambda self: self.pair.awaited)
    @rule(which=st.integers(0, 99), y=st.integers(0, 1), times=st.integers(1, 20))
    def resolve(self, which: int, y: int, times: int) -> None:
        for _ in range(min(times, len(self.pair.awaited))):
            self.pair.resolve(which, y)

    @precondition(lambda self: self.pair.awaited)
    @rule(which=st.integers(0, 99))
    def give_up(self, which: int) -> None:
        self.pair.give_up(which)

    @rule()
    def save_and_load(self) -> None:
        text = self.pair.core.to_json()
        self.pair.core = tc.Recalibrator.from_json(text)
        assert self.pair.core.to_json() == text

    @invariant()
    def same_account(self) -> None:
        self.pair.check()

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.check()


GuardLockstep.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestGuardLockstep = pytest.mark.slow("plays many games in lockstep")(GuardLockstep.TestCase)


@pytest.mark.slow("plays long games in lockstep")
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(3))
def test_long_games_in_lockstep(budget: float, seed: int) -> None:
    """Until the budget is used up and hints are moved, with groups, in time and late."""
    rng, pair = np.random.default_rng(seed), Pair(budget)
    places = rng.choice([0.0, 1.0, 0.5, 0.03, 0.97, 1 / 3, *rng.random(3)], 3)
    for _ in range(300):
        hint = float(rng.choice(places))
        names = tuple(name for name in NAMES if rng.random() < 0.4)
        if rng.random() < 0.75:
            pair.round(hint, names, None if rng.random() < 0.9 else int(rng.integers(2)))
        elif len(pair.awaited) < 6:
            pair.issue(hint, names)
        elif rng.random() < 0.1:
            pair.give_up(int(rng.integers(99)))
        else:
            pair.resolve(int(rng.integers(99)), int(rng.integers(2)))
        if pair.parted:
            break
    pair.check()
    assert pair.parted or pair.moved > 20
    assert not pair.parted or pair.made > 100


@given(
    rows=st.lists(st.tuples(FORECASTS, SETS, st.integers(0, 1), st.integers(1, 30)), max_size=12)
)
@settings(max_examples=40, deadline=None)
def test_the_guard_alone_is_that_of_the_recalibrator(
    rows: list[tuple[float, tuple[str, ...], int, int]],
) -> None:
    """Without groups, hints or nudges there is one guard for all."""
    alone, shared = tc.Guard(), tc.Recalibrator(hint=hints.Identity(), nudge=False)
    for hint, _, y, times in rows:
        said = alone.forecast_many([hint] * times, [y] * times)
        assert said.tolist() == shared.forecast_many([hint] * times, [y] * times).tolist()
    assert alone.certificate == shared.certificate
    assert alone.state()["knots"] == shared.state()["guard"]["knots"]


# Theorems 6, 8 and 10: the energies are within the budget, for any hints and outcomes.


def energies(core: tc.Recalibrator) -> list[float]:
    return [core._desk.parts(number)[4] for number in range(len(core.groups) + 2)]


def most_energy(core: tc.Recalibrator) -> float:
    """Theorem 10 (c), from the account."""
    numbers, budget = core._desk.saved(), core._budget
    groups = numbers["groups"]
    made, *_ = each = [
        sum(counts) for counts in zip(groups["rounds"], groups["late"], groups["lost"], strict=True)
    ]
    granted, excess = numbers["granted"] / PARTS, numbers["excess"] / PARTS
    allowance = budget * (1000 * (1 + numbers["most_late"]) + granted) + excess
    return float(
        allowance + (budget + 1) * made / PARTS + sum(each) * (budget * 2.0**-37 + made * 2.0**-39)
    )


def assert_within_budget(core: tc.Recalibrator) -> None:
    """The certificate has the figure of the theorem, and energies and what is reserved are below
    it."""
    allowed = core._desk.parts(0)[-1]
    assert allowed == pytest.approx(most_energy(core), rel=1e-14)
    assert sum(energies(core)) + core._desk.saved()["reserved"] / PARTS <= allowed * (1 + 1e-12)


class Adversary:
    """Chooses hints of one of four kinds, and groups."""

    def __init__(self, rng: np.random.Generator, kind: int) -> None:
        self.rng, self.kind = rng, kind
        self.held = float(rng.random())

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in NAMES if self.rng.random() < 0.5)

    def hint(self) -> float:
        rng = self.rng
        if self.kind == 0:
            return self.held
        if self.kind == 1:
            return float(rng.choice([0.0, 1.0, 1e-9, 0.02, 0.98]))
        if self.kind == 2:
            return float(rng.random())
        return float(np.clip(self.held + 0.01 * rng.standard_normal(), 0, 1))


def harm(core: tc.Recalibrator, y: int, ticket: tc.Ticket | None) -> float:
    """What the energies are if this outcome comes: tried on a copy."""
    trial = tc.Recalibrator.from_json(core.to_json())
    if ticket is None:
        trial.observe(y)
    else:
        trial.resolve(ticket, y)
    return sum(energies(trial))


@pytest.mark.slow("plays against every adversary")
@pytest.mark.parametrize("budget", [1.05, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_adversary_exceeds_the_budget(budget: float, seed: int) -> None:
    """It tries both outcomes on copies and takes the worse one."""
    rng = np.random.default_rng([seed, int(budget)])
    core = tc.Recalibrator(hint=hints.Identity(), nudge=bool(seed % 2), budget=budget)
    # First the budget is used up, so that the copies come where it matters.
    adversary = Adversary(rng, seed)
    followed, made = 0, 0
    for t in range(400):
        hint, names = adversary.hint(), adversary.names()
        p = core.predict(hint, group=names)
        followed += p == hint
        if t < 300:
            core.observe(int(p < 0.5) if seed != 2 else int(rng.random() < 0.9))
        else:
            core.observe(int(harm(core, 1, None) > harm(core, 0, None)))
        made += 1
        assert_within_budget(core)
    numbers = core._desk.saved()
    assert numbers["excess"] <= made * 8  # rounding alone: no outcome is late
    assert followed < made or sum(energies(core)) < 900 * budget


@pytest.mark.alike("plays each budget and seed")
@pytest.mark.parametrize("budget", [1.05, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_adversary_exceeds_the_budget_with_late_outcomes(budget: float, seed: int) -> None:
    rng = np.random.default_rng([seed, int(budget), 1])
    core = tc.Recalibrator(hint=hints.Identity(), nudge=False, budget=budget, max_unresolved=30)
    adversary = Adversary(rng, seed)
    for t in range(500):
        if rng.random() < 0.55 or not core.unresolved:
            core.issue(adversary.hint(), group=adversary.names())
        else:
            ticket = core.awaited[int(rng.integers(core.unresolved))]
            if rng.random() < 0.05:
                core.give_up(ticket)
            elif t % 10 == 0:
                core.resolve(ticket, int(harm(core, 1, ticket) > harm(core, 0, ticket)))
            else:
                core.resolve(ticket, int(ticket.p < 0.5))
        if rng.random() < 0.1:
            # may be dropped, or observed much later
            core.predict(adversary.hint(), group=adversary.names())
        elif rng.random() < 0.1 and core._desk.saved()["asked"] is not None:
            core.observe(int(rng.integers(2)))
        assert_within_budget(core)


@pytest.mark.slow("saves and loads hundreds of times")
def test_a_forecast_that_may_be_dropped_leaves_no_room_to_others() -> None:
    """One that may yet count takes room from a ticket beside it; one that would bring some may
    never come to count."""
    core = tc.Recalibrator(hint=hints.Identity(), nudge=False, budget=4.0)
    rng = np.random.default_rng(0)
    compared = taken = 0
    for _ in range(400):
        core.predict(float(rng.choice([0.2, 0.21, 0.22])))
        core.observe(1)
        hint = float(rng.uniform(0.2, 0.7))
        alone = tc.Recalibrator.from_json(core.to_json()).issue(hint).p
        beside = tc.Recalibrator.from_json(core.to_json())
        beside.predict(float(rng.random()))
        p, key, worst, *_ = beside._desk.saved()["asked"]
        price = p * (1 - p) * kernel(forecast_at(key), forecast_at(key))
        if worst / PARTS <= 4.0 * price:
            compared += 1
            assert beside.issue(hint).p == alone
        else:
            taken += beside.issue(hint).p != alone
    assert compared > 50
    assert taken > 0


# Certificates are true, for everyone and each group, whatever the missing outcomes turn out to be.


def assert_true(certificate: tc.ArcCertificate, said: list[float], outcomes: list[int]) -> None:
    if not said:
        return
    lower = tc.lower_calibration_distance(outcomes, said, total=True).lower
    smooth = tc.smooth_calibration_error(outcomes, said, total=True)
    distance = tc.calibration_distance(outcomes, said, rtol=0.2, total=True)
    tiny = 1e-9
    assert certificate.lower_distance >= lower - tiny
    assert certificate.smooth_error >= float(smooth) - tiny
    assert certificate.bound >= distance.lower - tiny
    assert certificate.bound >= certificate.lower_distance - tiny


@pytest.mark.slow("tries many examples")
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    nudge=st.booleans(),
    late=st.booleans(),
    missing=st.sampled_from([None, 0, 1]),
)
def test_certificates_are_true(seed: int, nudge: bool, late: bool, missing: int | None) -> None:
    """Outcomes that are missing are completed by the worse of both, by one, or by chance."""
    rng = np.random.default_rng(seed)
    core = tc.Recalibrator(hint=hints.Identity(), nudge=nudge, max_groups=2, max_unresolved=10)
    record: dict[Any, list[list[float]]] = {
        name: [] for name in (EVERYONE, "others", "a", "b", "c")
    }
    rows: dict[int, list[Any]] = {}
    kind = int(rng.integers(4))
    for t in range(int(rng.integers(1, 120))):
        hint = float(
            [rng.random(), rng.integers(0, 5) / 4, 0.5 + 1e-4 * rng.random(), rng.beta(0.2, 0.2)][
                kind
            ]
        )
        names = tuple(name for name in ("a", "b", "c") if rng.random() < 0.4)
        y = int(rng.random() < [hint, 1 - hint, 0.3][t % 3])
        if late and rng.random() < 0.5:
            ticket = core.issue(hint, group=names)
            row = [ticket.p, -1]
            rows[int(ticket)] = row
            if rng.random() < 0.6:
                which = core.awaited[int(rng.integers(core.unresolved))]
                core.resolve(which, y)
                rows[int(which)][1] = y
        else:
            row = [core.predict(hint, group=names), y]
            core.observe(y)
        for name in (
            EVERYONE,
            *dict.fromkeys(name if name in core.groups else "others" for name in names),
        ):
            record[name].append(row)
    views = {EVERYONE: core, "others": core.others, **core.groups}
    for name, view in views.items():
        said = [row[0] for row in record[name]]
        fill = [int(p < 0.5) if missing is None else missing for p in said]
        outcomes = [int(row[1]) if row[1] >= 0 else fill[k] for k, row in enumerate(record[name])]
        certificate = view.certificate
        assert certificate.rounds == sum(row[1] >= 0 for row in record[name])
        assert certificate.unresolved == sum(row[1] < 0 for row in record[name])
        assert_true(certificate, said, outcomes)


def test_what_knots_hide_is_in_the_certificate() -> None:
    """Ones said just below a knot and zeros just above: hardly any energy, and yet not
    calibrated."""
    knot, half = 0.5, 0.45 * math.pi / 2**12
    around = [(1 - math.cos(math.pi * knot + side * half)) / 2 for side in (-1, 1)]
    guard = tc.Guard()
    said = guard.forecast_many(around * 1000, [1, 0] * 1000)
    assert said.tolist() == around * 1000
    lower = tc.lower_calibration_distance([1, 0] * 1000, said, total=True).lower
    certificate = guard.certificate
    assert (
        0.53552 * math.sqrt(certificate.energy) < 0.9 * lower < lower <= certificate.lower_distance
    )


@pytest.mark.parametrize("budget", [1.05, 4.0])
def test_what_is_promised_before_the_first_round_holds(budget: float) -> None:
    rng = np.random.default_rng(3)
    for hint in (rng.random(20_000), np.full(20_000, 0.9), rng.integers(0, 2, 20_000) * 1.0):
        guard = tc.Guard(budget=budget)
        guard.forecast_many(hint, rng.random(20_000) < 0.4)
        certificate = guard.certificate
        assert certificate.bound <= certificate.a_priori <= guard.a_priori(20_000) * (1 + 1e-9)


@pytest.mark.slow("awaits two million outcomes")
def test_what_is_granted_stays_within_an_integer() -> None:
    """A million outcomes outstanding grant a million prices a round: it stops before it
    overflows."""
    core = tc.Recalibrator(hint=hints.Identity(), nudge=False, max_unresolved=1 << 20)
    many = 1 << 20
    for _ in range(2):
        core.forecast_many(np.full(many, 0.5), np.ones(many, int), known_at=np.full(many, 1 << 60))
    granted = core._desk.saved()["granted"]
    assert granted == 2**61 // 4
    assert tc.Recalibrator.from_json(core.to_json()).to_json() == core.to_json()
    core.forecast_many([0.5] * 100, [1] * 100)
    assert core._desk.saved()["granted"] == granted
    assert core.certificate.a_priori == 2 * many + 100  # what was not granted is not proved, either
    assert _core.PARTS == PARTS


@pytest.mark.slow("plays a million rounds")
@pytest.mark.parametrize("hint", [0.5, 0.001])
def test_a_million_late_outcomes_that_all_come_out_wrong(hint: float) -> None:
    """Energies that hardly fit an integer, or do not: then there is no room, and nothing is claimed
    of the budget."""
    many = 1 << 20
    core = tc.Recalibrator(hint=hints.Identity(), nudge=False, max_unresolved=many)
    core.forecast_many(np.full(many, hint), np.ones(many, int), known_at=np.full(many, many - 1))
    numbers, certificate = core._desk.saved(), core.certificate
    assert (certificate.rounds, certificate.unresolved) == (many, 0)
    assert certificate.bound <= certificate.a_priori <= many
    full = numbers["groups"]["energy"][0] == 2**62
    assert full == (hint < 0.5)
    assert full or certificate.energy <= most_energy(core) < math.inf
    assert (core._desk.parts(0)[-1] == math.inf) == full
    assert tc.Recalibrator.from_json(core.to_json()).to_json() == core.to_json()
    assert not full or core.predict(0.001) > 0.001
