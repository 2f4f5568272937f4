"""Hints of one's own: plain Python objects and subclasses, in loop and batch, late and saved."""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import truecast as tc
from truecast.columns import packed, unpacked
from truecast.recalibrate import tickets as tickets_module
from truecast.recalibrate.open import Calls, OpenHint
from truecast.testing import HINT_CHECKS, ContractError, check_hint

RNG = np.random.default_rng(3)
X = RNG.random(300)
Y = (RNG.random(300) < X**2).astype(int)


class Rate:
    """The smoothed rate of ones, whatever the score; counts late outcomes half."""

    def __init__(self) -> None:
        self.ones, self.rounds = 1.0, 2.0

    def predict(self, score: float) -> float:
        return self.ones / self.rounds

    def issue(self, score: float) -> tuple[float, list[float]]:
        return self.predict(score), [self.rounds]

    def learn(self, score: float, outcome: int, notes: list[float] | None = None) -> None:
        weight = 1.0 if notes is None or notes == [self.rounds] else 0.5
        self.ones += weight * outcome
        self.rounds += weight

    def state(self) -> dict[str, float]:
        return {"ones": self.ones, "rounds": self.rounds}

    def load(self, state: dict[str, float]) -> None:
        self.ones, self.rounds = state["ones"], state["rounds"]


class Plain:
    """The least that a hint must have."""

    def __init__(self) -> None:
        self.sum = 0.0

    def predict(self, score: float) -> float:
        return min(max(score + self.sum / 100, 0.0), 1.0)

    def learn(self, score: float, outcome: int) -> None:
        self.sum += outcome - score


class Half(tc.hints.Platt):
    """A subclass with a mind of its own: the core once answered for it in batches."""

    def predict(self, score: Any) -> float:
        return 0.5


class Odd(Rate):
    """Fails in round 5, in a chosen way."""

    def __init__(self, answer: Any = None) -> None:
        super().__init__()
        self.answer = answer

    def predict(self, score: float) -> Any:
        if self.rounds < 7:
            return super().predict(score)
        if self.answer is None:
            raise KeyError("lost")
        return self.answer


@pytest.mark.parametrize(
    "make", [Rate, Plain, Half, tc.hints.Platt, tc.hints.Mix, tc.hints.Isotonic]
)
def test_these_keep_the_contract(make: Any) -> None:
    check_hint(make)


@pytest.mark.parametrize("make", [Rate, Plain, Half])
@pytest.mark.parametrize("groups", [None, ["a", "b", 3] * 100])
def test_a_batch_is_the_loop(make: Any, groups: Any) -> None:
    loop, batch, parts = (tc.Recalibrator(hint=make()) for _ in range(3))
    said = []
    for t, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
        group = None if groups is None else groups[t]
        assert loop.predict_many([x], groups=None if groups is None else [group])[
            0
        ] == loop.predict(x, group=group)
        said.append(loop.predict(x, group=group))
        loop.observe(y)
    assert batch.forecast_many(X, Y, groups=groups).tolist() == said
    for part in (slice(0, 7), slice(7, 300)):
        some = None if groups is None else groups[part]
        assert parts.forecast_many(X[part], Y[part], groups=some).tolist() == said[part]
    assert batch.certificate == loop.certificate == parts.certificate


def test_a_subclass_is_never_ignored() -> None:
    half, never = Half(), tc.Recalibrator(hint=Half(), nudge=False, budget=1000.0)
    assert half.forecast_many([0.9] * 3, [1, 1, 1]).tolist() == [0.5] * 3
    assert never.forecast_many([0.9] * 3, [1, 1, 1]).tolist() == [0.5] * 3
    assert never.predict(0.9) == 0.5
    ticket = never.issue(0.9)  # the core's issue() would answer 0.95
    assert ticket.p == 0.5
    never.resolve(ticket, 1)
    with pytest.raises(
        tc.InputError, match=r"^hints must be hints of truecast: a mix would not use the methods"
    ):
        tc.hints.Mix([tc.hints.Identity(), half])


def test_the_given_object_is_left_alone() -> None:
    mine = Rate()
    r = tc.Recalibrator(hint=mine)
    r.forecast_many(X, Y)
    assert mine.state() == {"ones": 1.0, "rounds": 2.0}
    mine.ones = 2.0
    assert r.state()["hint"] == {"ones": 1.0 + Y.sum(), "rounds": 302.0}


@pytest.mark.parametrize("answer", [None, math.nan, 1.2, -0.1, math.inf, "0.5", True, [0.5]])
def test_what_a_hint_does_wrong_is_said_and_changes_nothing(answer: Any) -> None:
    r = tc.Recalibrator(hint=Odd(answer))
    r.issue(0.2, group="late")
    before = r.to_json()
    with pytest.raises(tc.InputError, match=r"^hint must .* at position 5$"):
        r.forecast_many(X, Y, groups=["new"] * 300)
    assert r.to_json() == before
    r.forecast_many(X[:5], Y[:5])
    before = r.to_json()
    for call in (r.predict, r.issue, lambda x: r.predict_many([x])):
        with pytest.raises(tc.InputError, match=r"^hint must "):
            call(0.4)
    assert r.to_json() == before


def test_a_hint_that_cannot_learn_leaves_the_round_open() -> None:
    class Forgetful(Rate):
        def learn(self, score: float, outcome: int, notes: Any = None) -> None:
            if outcome:
                raise RuntimeError("no ones")
            super().learn(score, outcome, notes)

    r = tc.Recalibrator(hint=Forgetful())
    ticket = r.issue(0.4)
    r.predict(0.3)
    before = r.to_json()
    with pytest.raises(
        tc.InputError,
        match=r"must not raise as Forgetful.learn\(\) does, got 'RuntimeError: no ones'",
    ):
        r.observe(1)
    with pytest.raises(tc.InputError, match=r"Forgetful.learn\(\)"):
        r.resolve(ticket, 1)
    assert r.to_json() == before
    r.observe(0)
    r.resolve(ticket, 0)
    assert r.rounds == 2


def test_it_is_saved_as_plain_data_and_handed_in_again() -> None:
    r = tc.Recalibrator(hint=Rate())
    r.forecast_many(X, Y)
    ticket = r.issue(0.7)
    r.predict(0.2)
    text = r.to_json()
    assert json.loads(text)["config"]["hint"] == {"kind": "yours", "name": "Rate"}
    fresh = Rate()
    others = [
        tc.Recalibrator.from_json(text, hint=fresh),
        tc.Recalibrator.from_bytes(r.to_bytes(), hint=fresh),
        pickle.loads(pickle.dumps(r)),
        copy.copy(r),
        copy.deepcopy(r),
    ]
    assert fresh.rounds == 2.0
    r.observe(1)
    r.resolve(ticket, 1)
    for other in others:
        assert other.to_json() == text
        other.observe(1)
        other.resolve(int(ticket), 1)
        assert other.to_json() == r.to_json()


def test_reading_says_what_is_missing() -> None:
    text = tc.Recalibrator(hint=Rate()).to_json()
    with pytest.raises(
        tc.StateError, match="your own hint, Rate: pass a new one as hint= to load it"
    ):
        tc.Recalibrator.from_json(text)
    with pytest.raises(tc.StateError, match="saved with the hint Rate, got Platt"):
        tc.Recalibrator.from_json(text, hint=tc.hints.Platt())
    with pytest.raises(tc.StateError, match="read without hint="):
        tc.Recalibrator.from_json(tc.Recalibrator().to_json(), hint=Rate())
    with pytest.raises(tc.StateError, match="Plain cannot be saved: it needs state"):
        tc.Recalibrator(hint=Plain()).to_json()
    r = tc.Recalibrator(hint=Rate())
    before = r.to_json()
    with pytest.raises(tc.StateError, match="Rate cannot load its saved state: KeyError"):
        r.load(r.state() | {"hint": {"ones": 3.0}})
    assert r.to_json() == before


@pytest.mark.parametrize(
    "state", [{1: 2}, (1, 2), {"x": math.nan}, {"x": {1, 2}}, {"x": np.float64}]
)
def test_states_that_are_no_plain_data_are_refused(state: Any) -> None:
    hint = Rate()
    hint.state = lambda: state  # type: ignore[method-assign]
    with pytest.raises(tc.StateError, match="Rate"):
        tc.Recalibrator(hint=hint).to_json()


@pytest.mark.parametrize("hint", ["Platt", 3, Rate, object(), {"kind": "Rate"}, lambda x: x])
def test_what_is_no_hint_is_refused(hint: Any) -> None:
    with pytest.raises(
        tc.InputError, match=r"^hint must be one of truecast.hints, or an object with predict"
    ):
        tc.Recalibrator(hint=hint)


def test_it_gets_log_odds_as_they_are() -> None:
    class Seen(Rate):
        def learn(self, score: float, outcome: int, notes: Any = None) -> None:
            assert score in (-400.0, 7.0)
            super().learn(score, outcome, notes)

    r = tc.Recalibrator(hint=Seen(), scale="logit")
    r.forecast_many([-400, 7], [0, 1])
    with pytest.raises(tc.InputError, match="score must be log-odds"):
        r.predict(math.inf)
    assert tc.Recalibrator(hint=Half(), scale="logit").forecast_many([-400, 7], [0, 1])[0] == 0.5


class Aware(Rate):
    def predict(self, score: float) -> float:
        self.ones += 1e-9
        return super().predict(score)


class Lossy(Rate):
    def load(self, state: dict[str, float]) -> None:
        self.ones = state["ones"]


class Shared(Rate):
    def state(self) -> dict[str, float]:
        return self.__dict__


class Bold(Rate):
    def predict(self, score: float) -> float:
        return 2.0 * score


class Noted(Rate):
    def issue(self, score: float) -> tuple[float, Any]:
        return self.predict(score), [None]


class Growing(Rate):
    def issue(self, score: float) -> tuple[float, list[float]]:
        return self.predict(score), [0.5] * int(self.rounds)


class Uncopied(Rate):
    def __deepcopy__(self, memo: Any) -> Any:
        return Rate()


class Counting(Rate):
    asked = 0

    def predict(self, score: float) -> float:
        Counting.asked += 1
        return 1 / Counting.asked


BROKEN = [
    (Bold, "check_hint_probabilities"),
    (Aware, "check_hint_repeatable"),
    (Noted, "check_hint_issue"),
    (Growing, "check_hint_issue"),
    (Uncopied, "check_hint_copy"),
    (Lossy, "check_hint_state"),
    (Shared, "check_hint_state"),
    (Counting, "check_hint_recalibrator"),
]


@pytest.mark.parametrize(("make", "name"), BROKEN)
def test_the_contract_finds_what_is_wrong(make: Any, name: str) -> None:
    check = {check.__name__: check for check in HINT_CHECKS}[name]
    check_hint(Rate, checks=[check])
    with pytest.raises(ContractError, match=name):
        check_hint(make, checks=[check])
    with pytest.raises(ContractError):
        check_hint(make)


def test_every_check_has_a_broken_hint() -> None:
    assert {name for _, name in BROKEN} == {check.__name__ for check in HINT_CHECKS}


# -- at the desk -----------------------------------------------------------------------------------

KNOWN_AT = np.minimum(np.arange(300) + np.random.default_rng(4).integers(0, 40, 300), 310)


def replayed(make: Any, **options: Any) -> tuple[tc.Recalibrator, list[float]]:
    """What `forecast_many(known_at=)` promises to be, one call after the other."""
    r = tc.Recalibrator(hint=make(), **options)
    tickets = []
    for t, x in enumerate(X.tolist()):
        tickets.append(r.issue(x, group=t % 3))
        for s in np.flatnonzero(t == KNOWN_AT).tolist():
            if tickets[s] in r.awaited:
                r.resolve(tickets[s], int(Y[s]))
    return r, [ticket.p for ticket in tickets]


@pytest.mark.parametrize("make", [Rate, Plain, Half])
@pytest.mark.parametrize("most", [7, 1_000])
def test_a_log_is_replayed_as_it_happened(make: Any, most: int) -> None:
    loop, said = replayed(make, max_unresolved=most)
    batch = tc.Recalibrator(hint=make(), max_unresolved=most)
    assert (
        batch.forecast_many(X, Y, groups=[t % 3 for t in range(300)], known_at=KNOWN_AT).tolist()
        == said
    )
    assert batch.certificate == loop.certificate
    assert batch.awaited == loop.awaited
    if make is not Plain:
        assert batch.to_json() == loop.to_json()


@pytest.mark.parametrize("method", ["issue", "learn"])
def test_a_replay_that_fails_is_undone(method: str) -> None:
    class Failing(Rate):
        def issue(self, score: float) -> tuple[float, list[float]]:
            if method == "issue" and self.rounds > 30:
                raise KeyboardInterrupt
            return super().issue(score)

        def learn(self, score: float, outcome: int, notes: list[float] | None = None) -> None:
            super().learn(score, outcome, notes)  # learns first: it must forget again
            if method == "learn" and self.rounds > 30:
                raise KeyboardInterrupt

    r = tc.Recalibrator(hint=Failing(), max_unresolved=5)
    early = [r.issue(x) for x in X[:4].tolist()]
    before = r.to_json()
    with pytest.raises(KeyboardInterrupt):
        r.forecast_many(X, Y, groups=["new"] * 300, known_at=KNOWN_AT)
    assert r.to_json() == before
    for ticket in early:
        r.resolve(ticket, 1)
    assert r.rounds == 4


def test_a_hint_cannot_use_the_recalibrator_that_asks_it() -> None:
    class Meddling(Rate):
        busy: Any = None

        def predict(self, score: float) -> float:
            self.meddle()
            return super().predict(score)

        def learn(self, score: float, outcome: int, notes: list[float] | None = None) -> None:
            self.meddle()
            super().learn(score, outcome, notes)

        def meddle(self) -> None:
            if Meddling.busy is not None:
                Meddling.busy()

        def issue(self, score: float) -> tuple[float, list[float]]:
            return self.predict(score), [1.0]

    r = tc.Recalibrator(hint=Meddling())
    ticket = r.issue(0.2, group="a")
    r.predict(0.4)
    before = r.to_json()
    saved = r.state()
    calls: list[Callable[[], Any]] = [
        lambda: r.resolve(ticket, 1),
        lambda: r.observe(1),
        lambda: r.forecast_many(X, Y),
        lambda: r.forecast_many(X, Y, known_at=KNOWN_AT),
        lambda: r.predict(0.7),
        lambda: r.issue(0.7, group="b"),
    ]
    meddling: list[Callable[[], Any]] = [
        lambda: r.predict(0.1),
        lambda: r.give_up(ticket),
        lambda: r.predict_many([0.1]),
        lambda: r.load(saved),
        lambda: r.rounds,
        r.to_json,
    ]
    for call in calls:
        for Meddling.busy in meddling:
            with pytest.raises(tc.InputError, match=r"^hint must not raise as Meddling.*in use"):
                call()
    Meddling.busy = None
    assert r.to_json() == before
    r.resolve(ticket, 1)
    r.observe(1)


def test_other_threads_are_refused_while_a_hint_is_asked() -> None:
    asked, go = threading.Event(), threading.Event()

    class Slow(Plain):
        def predict(self, score: float) -> float:
            if score == 0.125:
                asked.set()
                assert go.wait(60)
            return super().predict(score)

    r = tc.Recalibrator(hint=Slow())
    with ThreadPoolExecutor(1) as pool:
        for call in (lambda: r.predict(0.125), lambda: r.forecast_many([0.5, 0.125], [0, 1])):
            asked.clear()
            go.clear()
            running = pool.submit(call)
            assert asked.wait(60)
            try:
                for other in (
                    lambda: r.predict(0.5),
                    lambda: r.forecast_many([0.5], [1]),
                    lambda: r.certificate,
                ):
                    with pytest.raises(tc.OrderError, match="in use"):
                        other()
            finally:
                go.set()
            running.result()
    assert r.rounds == 2


def test_notes_are_saved_with_their_tickets() -> None:
    class Two(Rate):
        def issue(self, score: float) -> tuple[float, list[float]]:
            return self.predict(score), [-score * 1e9, self.rounds]

        def learn(self, score: float, outcome: int, notes: list[float] | None = None) -> None:
            assert notes is None or notes[0] == -score * 1e9
            self.ones += outcome / (1 if notes is None else notes[1])
            self.rounds += 1

    r = tc.Recalibrator(hint=Two())
    tickets = [r.issue(x) for x in X[:9].tolist()]
    for ticket in tickets[:4]:
        r.resolve(ticket, 1)
    other = tc.Recalibrator.from_json(r.to_json(), hint=Two())
    assert other.awaited == r.awaited
    for ticket in tickets[4:]:
        r.resolve(ticket, 0)
        other.resolve(ticket, 0)
    assert other.to_json() == r.to_json()


def test_the_number_of_notes_is_always_the_same() -> None:
    r = tc.Recalibrator(hint=Growing())
    r.forecast_many([0.5], [1])
    before = r.to_json()
    with pytest.raises(
        tc.InputError, match=r"^hint must always give 2 notes from Growing.issue\(\)"
    ):
        r.issue(0.5)
    assert r.to_json() == before


def test_saved_notes_must_fit() -> None:
    r = tc.Recalibrator(hint=Rate())
    r.issue(0.5)
    saved, other = r.state(), tc.Recalibrator(hint=Rate())
    kinds, tickets = tickets_module._KINDS, saved["tickets"]
    columns = unpacked("tickets", tickets["awaited"], kinds, 100)
    other.load(saved | {"tickets": tickets | {"awaited": packed(columns, kinds)}})
    assert other.to_json() == r.to_json()
    for notes in ([math.inf], [math.nan], [], [1.0, 2.0]):
        whole = np.array(notes, np.float64).view(np.int64)
        forged = packed(columns | {"notes": np.full(len(notes), 0xFFFF), "whole": whole}, kinds)
        with pytest.raises(tc.StateError, match="the notes of a saved ticket must be 1"):
            other.load(saved | {"tickets": tickets | {"awaited": forged}})
    assert other.to_json() == r.to_json()


# -- weights, and scores of several models ---------------------------------------------------------


class Told:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def predict(self, score: Any) -> float:
        return float(np.mean(score))

    def learn(self, score: Any, outcome: int) -> None:
        self.told.append((score, outcome))


class ToldWeights(Told):
    def learn(self, score: Any, outcome: int, *, weight: float = 1.0) -> None:
        self.told.append((score, outcome, weight))


class ToldAnything(Told):
    def learn(self, score: Any, outcome: int, **more: Any) -> None:
        self.told.append((score, outcome, more))


@pytest.mark.parametrize(
    ("make", "told"),
    [(Told, (0.5, 1)), (ToldWeights, (0.5, 1, 0.25)), (ToldAnything, (0.5, 1, {"weight": 0.25}))],
)
def test_weights_go_to_those_that_take_them(make: Any, told: Any) -> None:
    hint = OpenHint(Calls(make(), logit=False))
    hint.learn(0.5, 1, weight=0.25)
    assert hint.calls.own.told == [told]


def test_a_subclass_of_a_hint_of_ours_is_told_the_weight() -> None:
    class Loud(tc.hints.Platt):
        pass

    hint, alone = OpenHint(Calls(Loud(), logit=False)), tc.hints.Platt()
    hint.learn(0.3, 1, weight=0.2)
    alone.learn(0.3, 1, weight=0.2)
    assert hint.predict(0.3) == alone.predict(0.3) != tc.hints.Platt().predict(0.3)


def test_a_hint_of_your_own_may_take_several_models() -> None:
    class Several(ToldWeights):
        models = 3

    hint = OpenHint(Calls(Several(), logit=False))
    assert hint.predict((0.1, 0.2, 0.6)) == pytest.approx(0.3)
    hint.learn([0.1, 0.2, 0.6], 1)
    assert hint.calls.own.told == [([0.1, 0.2, 0.6], 1, 1.0)]
    with pytest.raises(
        tc.InputError, match=r"^score must be a sequence of 3 numbers, one of each model, got 0.5"
    ):
        hint.predict(0.5)


def test_a_subclass_of_experts_is_asked_with_all_scores() -> None:
    class Loud(tc.hints.Experts):
        pass

    hint, alone = OpenHint(Calls(Loud(2), logit=False)), tc.hints.Experts(2)
    for _ in range(5):
        hint.learn([0.3, 0.9], 1)
        alone.learn([0.3, 0.9], 1)
    assert hint.predict([0.4, 0.8]) == alone.predict([0.4, 0.8])


@pytest.mark.parametrize("models", [0, 33, "2", 1.5])
def test_a_number_of_models_that_cannot_be_is_refused(models: Any) -> None:
    hint = Told()
    hint.models = models  # type: ignore[attr-defined]
    with pytest.raises(tc.InputError, match=r"^models must be a whole number from 1 to 32"):
        Calls(hint, logit=False)
