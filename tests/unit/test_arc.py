"""The forecaster on the arc: what it claims, and states that are none of its own."""

from __future__ import annotations

import copy
import json
import math
import threading
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecast as tc
from company import wait_until_refused
from truecast import state as saving
from truecast.certificate import ArcCertificate
from truecast.distance import splitting_gap

TINY = 1e-9  # for distances, which are known to some digits


def played(rounds: int = 40) -> tc.Arc:
    f = tc.Arc()
    f.forecast_many(np.random.default_rng(rounds).integers(0, 2, rounds))
    f.predict()
    return f


GOOD: dict[str, Any] = played().state()
HUGE = 10**400


def changed(name: str, at: int, value: Any) -> dict[str, Any]:
    entries = list(GOOD[name])
    entries[at] = value
    return GOOD | {name: entries}


NOT_STATES: list[Any] = [None, [], (), "state", 7, True, {}, [GOOD], json.dumps(GOOD)]
WITHOUT = [{key: value for key, value in GOOD.items() if key != name} for name in GOOD]
OF_ANOTHER_TYPE = [
    GOOD | {name: bad}
    for name in ("forecasts", "zeros", "ones")
    for bad in (
        None,
        5,
        0.5,
        True,
        "0.5",
        {},
        tuple(GOOD[name]),
        np.array(GOOD[name]),
        dict.fromkeys(GOOD[name]),
    )
]
NOT_ISSUED = [GOOD | {"issued": bad} for bad in (0, 1, 1.0, None, "true", [True], np.True_)]
OF_ANOTHER_LENGTH = [
    GOOD | {name: entries}
    for name in ("forecasts", "zeros", "ones")
    for entries in ([], GOOD[name][:-1], [*GOOD[name], GOOD[name][-1]])
]
NOT_FORECASTS = [
    changed("forecasts", 3, bad)
    for bad in (
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        1.0,
        1.5,
        -0.25,
        5e-324,
        2.0**-53,
        math.nextafter(1, 0),
    )
] + [
    changed("forecasts", 3, bad)
    for bad in (0, 1, True, None, "0.5", [0.5], 0.5j, np.float64(0.5), 1 / 3 * 2.0**-9)
]
OUT_OF_ORDER = [
    GOOD | {"forecasts": GOOD["forecasts"][::-1]},
    changed("forecasts", 3, GOOD["forecasts"][2]),
    changed("forecasts", 3, GOOD["forecasts"][-1]),
]
NOT_COUNTS = [
    changed(name, 3, bad)
    for name in ("zeros", "ones")
    for bad in (
        -1,
        -HUGE,
        HUGE,
        2**53 + 1,
        2**63,
        2**64,
        1.0,
        math.nan,
        True,
        False,
        None,
        "1",
        [1],
        np.int64(1),
    )
]
NOTHING_SAID = [changed("zeros", 3, 0) | {"ones": changed("ones", 3, 0)["ones"]}]
TOO_MANY = [changed("zeros", 3, 2**53), GOOD | {"zeros": [2**52] * len(GOOD["zeros"])}]
OF_NO_ROUNDS = [
    {"forecasts": [0.5], "zeros": [0], "ones": [9], "issued": False},
    {"forecasts": [0.5], "zeros": [2**30], "ones": [0], "issued": False},
    {"forecasts": [0.25, 0.5], "zeros": [0, 10], "ones": [40, 0], "issued": True},
    GOOD | {"zeros": [0] * len(GOOD["zeros"]), "ones": [1] * len(GOOD["ones"])},
]
BAD = {
    "no state": NOT_STATES,
    "an entry missing": WITHOUT,
    "an entry too many": [GOOD | {"rounds": 40}, GOOD | {"": 0}],
    "another type": OF_ANOTHER_TYPE,
    "issued": NOT_ISSUED,
    "another length": OF_ANOTHER_LENGTH,
    "no forecasts": NOT_FORECASTS,
    "out of order": OUT_OF_ORDER,
    "no counts": NOT_COUNTS,
    "never said": NOTHING_SAID,
    "too many rounds": TOO_MANY,
    "no rounds lead there": OF_NO_ROUNDS,
}


@pytest.mark.parametrize("kind", BAD)
def test_states_of_no_arc_are_refused_and_nothing_changed(kind: str) -> None:
    f = played(30)
    before = f.to_json()
    for bad in BAD[kind]:
        with pytest.raises(tc.StateError) as refused:
            f.load(bad)
        assert len(str(refused.value)) < 300, "a message, not a copy"
        assert f.to_json() == before
    assert f.issued
    f.load(copy.deepcopy(GOOD))
    assert f.state() == GOOD


@pytest.mark.parametrize("kind", [kind for kind in BAD if kind != "no state"])
def test_saved_states_of_no_arc_are_refused_with_a_good_checksum(kind: str) -> None:
    """Forging a checksum leads no further; what JSON cannot say is left out."""
    tried = 0
    for bad in BAD[kind]:
        try:
            text = saving.to_json("Arc", {}, bad)
        except TypeError:
            continue
        if json.loads(text)["state"] == GOOD:
            continue  # a tuple: a list, once it is read
        with pytest.raises(tc.StateError):
            tc.Arc.from_json(text)
        with pytest.raises(tc.StateError):
            tc.Arc.from_bytes(saving.to_bytes(text))
        tried += 1
    assert tried


def test_messages_say_what_is_wrong() -> None:
    for state, message in (
        (
            changed("forecasts", 3, math.nan),
            "forecast 3 must be a multiple of 2\\*\\*-52 inside \\(0, 1\\), got nan",
        ),
        (OUT_OF_ORDER[1], "the saved forecasts must increase"),
        (changed("ones", 3, -1), "counts of forecast 3 must be 0 or more, .* got . and -1"),
        (GOOD | {"ones": []}, f"ones must be one for each of {len(GOOD['ones'])} forecasts, got 0"),
        (GOOD | {"forecasts": None}, "forecasts must be a list of float, got None"),
        (OF_NO_ROUNDS[0], "more energy than any rounds of this forecaster can have led to"),
    ):
        with pytest.raises(tc.StateError, match=message):
            tc.Arc().load(state)


@given(st.data())
def test_truncated_and_tampered_text_is_refused(data: st.DataObject) -> None:
    text, packed = played().to_json(), played().to_bytes()
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(tc.StateError):
        tc.Arc.from_json(text[:cut])
    with pytest.raises(tc.StateError):
        tc.Arc.from_bytes(packed[: data.draw(st.integers(0, len(packed) - 1))])
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(
        st.sampled_from('0123456789.,e-[]{}:"tfn').filter(lambda letter: letter != text[at])
    )
    tampered = text[:at] + other + text[at + 1 :]
    try:
        same = json.loads(tampered) == json.loads(text)  # a blank more, or 0.50
    except ValueError:
        same = False
    if not same:
        with pytest.raises(tc.StateError):
            tc.Arc.from_json(tampered)


def test_other_kinds_and_options_are_refused() -> None:
    with pytest.raises(tc.StateError, match="saved by HorizonFree, not by Arc"):
        tc.Arc.from_json(tc.HorizonFree().to_json())
    with pytest.raises(tc.StateError):
        tc.HorizonFree.from_json(tc.Arc().to_json())
    with pytest.raises(tc.StateError):
        tc.Arc.from_json(saving.to_json("Arc", {"horizon": 10}, GOOD))
    assert zlib.decompress(tc.Arc().to_bytes()[9:]).decode() == tc.Arc().to_json()


def test_a_forecaster_of_no_rounds() -> None:
    f = tc.Arc()
    assert (repr(f), f.config, f.rounds, f.issued, f.predict()) == ("Arc()", {}, 0, False, 0.5)
    certificate = f.certificate
    assert (certificate.rounds, certificate.energy, certificate.bound, certificate.a_priori) == (
        0,
        0.0,
        0.0,
        0.0,
    )
    assert math.isnan(certificate.brier)
    assert f.forecast_many([]).tolist() == []
    assert f.tally == tc.Tally()


def test_what_is_proved_before_the_first_round() -> None:
    f = tc.Arc()
    assert isinstance(f.a_priori(10), float)
    for rounds in (2, 100, 10**4, 10**6, 10**8, 2**29):
        lower = Fraction(f.a_priori(rounds)) - Fraction(splitting_gap(rounds))
        assert 0.539 * rounds**0.5 < lower <= 0.54 * rounds**0.5
        assert f.a_priori(rounds) <= 0.54 * rounds**0.5 + 1.96 * rounds ** (1 / 3)
    assert Fraction(f.a_priori(2**30)) - Fraction(splitting_gap(2**30)) <= 0.5403 * 2**15
    assert (f.a_priori(0), f.a_priori(1)) == (0, 1)
    assert f.a_priori(2**30 + 1) == 2**30 + 1  # nothing is claimed
    for bad in (-1, 1.5, "9", None, True, 2**53 + 1):
        with pytest.raises(tc.InputError, match="^rounds must be"):
            f.a_priori(bad)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.5])
def test_certificate_is_above_what_is_measured(rate: float) -> None:
    y = (np.random.default_rng(5).random(3_000) < rate).astype(int)
    f = tc.Arc()
    p = f.forecast_many(y)
    certificate = f.certificate
    assert isinstance(certificate, ArcCertificate)
    assert tc.calibration_distance(y, p, total=True, rtol=0.01).totals[0] <= certificate.bound
    assert (
        tc.lower_calibration_distance(y, p, total=True).lower <= certificate.lower_distance + TINY
    )
    assert tc.smooth_calibration_error(y, p, total=True) <= certificate.smooth_error + TINY
    assert certificate.lower_distance <= 0.54 * 3_000**0.5
    assert certificate.bound == pytest.approx(
        certificate.lower_distance + splitting_gap(3_000), rel=1e-12
    )
    assert certificate.brier == pytest.approx(((p - y) ** 2).mean(), rel=1e-12)
    assert f.tally == tc.Tally.from_predictions(y, p)
    assert f.energy.energy == certificate.energy <= 65 / 64 * 3_000
    if rate <= 0.02:  # less is proved where events are rare
        assert certificate.lower_distance < 0.75 * 0.54 * 3_000**0.5


def test_rounds_far_beyond_what_is_claimed() -> None:
    """2**40 rounds: no count overflows, forecasts stay inside, the certificate stays finite and
    true."""
    half = 2**39
    f = tc.Arc()
    f.load(
        {
            "forecasts": [0.25, 0.5, 0.75],
            "zeros": [0, half, 1],
            "ones": [1, half - 2, 0],
            "issued": True,
        }
    )
    assert f.rounds == 2**40
    p = f.forecast_many([0, 1, 1, 1, 0, 0, 0, 0] * 50)
    assert f.rounds == 2**40 + 400
    assert ((p > 0) & (p < 1)).all()
    certificate = f.certificate
    assert all(map(math.isfinite, (certificate.energy, certificate.bound, certificate.brier)))
    assert certificate.a_priori == 2**40 + 400
    assert certificate.brier == pytest.approx(0.25)
    lower = tc.lower_calibration_distance(f.tally, total=True).lower
    assert lower <= certificate.lower_distance
    again = tc.Arc.from_json(f.to_json())
    assert again.forecast_many([1, 0]).tolist() == f.forecast_many([1, 0]).tolist()


def test_the_most_rounds_of_all() -> None:
    f = tc.Arc()
    f.load({"forecasts": [0.5], "zeros": [2**51], "ones": [2**51], "issued": False})
    assert f.rounds == 2**52
    assert f.certificate.energy == 0.0
    assert f.certificate.lower_distance >= 0.0
    assert 0 < f.forecast_many([1])[0] < 1
    with pytest.raises(tc.StateError, match="must be at most 4503599627370496 in total"):
        f.load({"forecasts": [0.25, 0.5], "zeros": [2**51, 1], "ones": [2**51, 0], "issued": False})
    assert f.rounds == 2**52 + 1
    assert f.tally.total == 2**52 + 1


@pytest.mark.slow("waits for threads")
def test_a_batch_in_another_thread_refuses_company() -> None:
    f = tc.Arc()
    y = np.tile(np.array([0, 1], np.uint8), 1_000_000)
    worker = threading.Thread(target=f.forecast_many, args=(y,))
    worker.start()
    wait_until_refused(worker, f.predict)
    for call in (
        f.predict,
        lambda: f.observe(1),
        lambda: f.forecast_many([1]),
        lambda: f.load(GOOD),
        lambda: f.rounds,
        lambda: f.certificate,
        f.state,
        f.to_json,
    ):
        with pytest.raises(tc.OrderError, match="in another thread"):
            call()
    worker.join()
    assert f.rounds == len(y)
    alone = tc.Arc()
    alone.forecast_many(y)
    assert f.to_json() == alone.to_json()


def test_forecasts_go_where_they_are_told() -> None:
    y = np.array([1, 0, 1, 1])
    out = np.empty(4)
    assert tc.Arc().forecast_many(y, out=out) is out
    assert out.tolist() == tc.Arc().forecast_many(y).tolist()
    with pytest.raises(tc.InputError):
        tc.Arc().forecast_many(y, out=np.empty(3))
    with pytest.raises(TypeError):
        tc.Arc(1)  # type: ignore[call-arg]


def test_the_arena_knows_it() -> None:
    """A bound on the distance, a certificate, no draws; who climbs ladders does not play against
    it."""
    results = tc.arena.tournament(
        {"arc": tc.arena.FORECASTERS["arc"]}, None, [60, 200], seeds=2, workers=1
    )
    opponents = {
        name for name, adversary in tc.arena.ADVERSARIES.items() if adversary.plays(tc.Arc())
    }
    assert (
        set(results.adversaries)
        == opponents
        == set(tc.arena.ADVERSARIES) - {"greedy-certificate", "leave-biased"}
    )
    for row in results.rows:
        assert row.bounds == "distance"
        assert Fraction(row.bound) >= tc.Arc().a_priori(row.rounds)
        assert row.lower <= row.certificate <= row.bound
        assert (row.seed is None) == (not tc.arena.ADVERSARIES[row.adversary].random)
    assert [one.bounds for one in results.summary()] == ["distance"] * 2


def test_a_search_for_bad_outcomes_starts_where_it_is_and_leaves_it_alone() -> None:
    f = played(20)
    before = f.to_json()
    found = tc.arena.best_response(f, 60, width=8, tries=40)
    assert f.to_json() == before
    assert found.bound == float(f.a_priori(60))
    assert 0 < found.ratio < 1
    game = tc.arena.play(tc.Arc.from_json(before), tc.arena.Given(found.outcomes), 60)
    assert game.distance().totals[1] == found.distance.totals[1]
