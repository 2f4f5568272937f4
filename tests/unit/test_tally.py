"""Tally as a value: what it refuses, shows and never changes."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import truecast as tc
from truecast import _core, state
from truecast.tally import distinct


def test_shows_what_it_holds() -> None:
    assert repr(tc.Tally()) == "Tally of 0 rounds at 0 forecasts"
    assert repr(tc.Tally([0.5], [1], [0])) == "Tally of 1 round at 1 forecast"
    assert repr(tc.Tally([0.1, 0.5], [1000, 0], [0, 234])) == "Tally of 1,234 rounds at 2 forecasts"
    assert repr(tc.Tally([0.5], [0.25], [0.5])) == "Tally of weight 0.75 at 1 forecast"


def test_counts_by_hand() -> None:
    tally = tc.Tally([0.0, 0.25, 1.0], [2, 0, 1], [0, 0, 3])
    assert tally.p.tolist() == [0.0, 1.0]  # a forecast with no rounds is not there
    assert tally.weights.tolist() == [2, 4]
    assert (tally.total, tally.rate) == (6, 0.5)
    assert np.isnan(tc.Tally().rate)
    assert tc.Tally([0.5], [1], [0.5]) == tc.Tally([0.5], [1.0], [0.5])
    assert tally.mirrored() == tc.Tally([0.0, 1.0], [3, 0], [1, 2])
    assert tc.Tally().mirrored() == tc.Tally()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([0.2, 0.1], [1, 1], [1, 1]),
            "p must increase from entry to entry, got 0.1 at position 1",
        ),
        (
            ([0.2, 0.2], [1, 1], [1, 1]),
            "p must increase from entry to entry, got 0.2 at position 1",
        ),
        (([0.2, 1.2], [1, 1], [1, 1]), "p must be between 0 and 1, got 1.2 at position 1"),
        (([0.2], [-1], [1]), f"zeros must be from 0 to {2**53}, got -1 at position 0"),
        (
            ([0.2], [1], [-0.5]),
            r"ones must be 0, or from 1e-100 to 1e\+100, got -0.5 at position 0",
        ),
        (([0.2], [1, 2], [1]), r"zeros must have 1 entries, got \(2,\)"),
        (([0.2], [2**53], [1]), f"the number of rounds must be at most {2**53} in total, got "),
    ],
)
def test_refuses_what_is_no_tally(arguments: tuple, message: str) -> None:
    with pytest.raises(tc.InputError, match="^" + message):
        tc.Tally(*arguments)


def test_never_changes() -> None:
    zeros = np.array([1])
    tally = tc.Tally([0.5], zeros, [2])
    zeros[0] = 9
    assert tally.zeros.tolist() == [1]
    for column in (tally.p, tally.zeros, tally.ones):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    with pytest.raises(AttributeError, match="does not change"):
        tally.p = zeros  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="does not change"):
        del tally.p
    p = np.full(5000, 0.5) + np.arange(5000) * 1e-6
    tc.Tally.from_predictions(np.ones(5000), p)
    assert p[0] == 0.5  # the arrays that came in stay theirs


def test_no_way_in_by_the_base_of_a_column() -> None:
    rng = np.random.default_rng(0)
    tally = tc.Tally.from_predictions(rng.integers(0, 2, 10_000), rng.random(10_000))
    for column in (tally.p, tally.zeros, tally.ones):
        assert column.base is None or not column.base.flags.writeable


def test_equal_tallies_have_equal_hashes() -> None:
    one, other = tc.Tally([0.5], [-0.0], [1.0]), tc.Tally([0.5], [0.0], [1.0])
    assert one == other
    assert hash(one) == hash(other)


def test_forecasts_that_share_a_slot_are_counted_all_the_same() -> None:
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    bits = np.array([inverse * j % 2**64 for j in range(1, 200_000)], np.uint64)
    p = bits.view(np.float64)
    p = np.repeat(p[(p > 0) & (p < 1)][:300], 3)
    assert len(p) > 300
    tally = tc.Tally.from_predictions(np.arange(len(p)) % 3 == 0, p)
    assert tally.p.tolist() == sorted(set(p.tolist()))
    assert set(tally.ones.tolist()) == {1}


def test_pooled_forecasts_stay_between_those_they_come_from() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):  # neighbours, so that a mean that is rounded may miss them
        first = rng.random()
        tally = tc.Tally([first, np.nextafter(first, 1)], *rng.integers(1, 2**40, (2, 2)))
        assert tally.p[0] <= tally.coarsened(1).p[0] <= tally.p[-1]


def test_adds_counts_and_weights() -> None:
    counted, weighted = tc.Tally([0.5], [1], [2]), tc.Tally([0.25, 0.5], [0.5, 0], [0.5, 1])
    both = counted + weighted
    assert both.weighted
    assert both == tc.Tally([0.25, 0.5], [0.5, 1], [0.5, 3])
    assert counted + tc.Tally() is counted
    assert tc.Tally() + counted is counted
    assert tc.Tally.merge([]) == tc.Tally()
    assert counted != "a tally"
    with pytest.raises(TypeError):
        counted + 1
    with pytest.raises(tc.InputError, match="^tallies must be of type Tally, got 3"):
        tc.Tally.merge([counted, 3])  # type: ignore[list-item]
    with pytest.raises(
        tc.InputError, match="^tallies must be several of type Tally, got Tally of 3"
    ):
        tc.Tally.merge(counted)  # type: ignore[arg-type]
    with pytest.raises(tc.InputError, match="^other must be a Tally or a RunningTally, got 3"):
        tc.RunningTally().merge(3)  # type: ignore[arg-type]


def test_too_many_rounds_are_refused_when_adding() -> None:
    half = tc.Tally([0.5], [2**52], [1])
    with pytest.raises(tc.InputError, match="^the number of rounds must be"):
        half + half
    with pytest.raises(tc.InputError, match="^sample_weight must sum to"):
        tc.Tally.from_predictions([0, 1], [0.5, 0.5], sample_weight=[2**53, 2**53])


def test_integers_stay_exact_up_to_the_limit() -> None:
    tally = tc.Tally.from_predictions(
        [0, 1, 1], [0.5, 0.5, 0.5], sample_weight=[1, 2**52, 2**52 - 1]
    )
    assert tally.ones.tolist() == [2**53 - 1]
    assert tally.total == 2**53


def test_running_tally_keeps_few_parts() -> None:
    running, rng = tc.RunningTally(), np.random.default_rng(0)
    for _ in range(300):
        running.update(rng.integers(0, 2, 3), rng.random(3))
        assert len(running._parts) <= 12
    assert running.compute().total == 900


@pytest.mark.parametrize(
    "columns",
    [
        {"p": "AAAA", "zeros": "", "ones": ""},
        {"p": "not base64", "zeros": "", "ones": ""},
        {"p": "", "zeros": ""},
        {"p": 3, "zeros": "", "ones": ""},
        [],
        None,
        {
            "p": base64.b64encode(np.array([0.5, 0.25]).tobytes()).decode(),
            "zeros": base64.b64encode(np.array([1, 1]).tobytes()).decode(),
            "ones": base64.b64encode(np.array([1, 1]).tobytes()).decode(),
        },
    ],
)
def test_a_saved_tally_that_is_none_is_refused(columns: object) -> None:
    text = state.to_json("Tally", {"weighted": False}, columns)  # type: ignore[arg-type]
    with pytest.raises(tc.StateError):
        tc.Tally.from_json(text)


def test_a_saved_forecaster_is_no_tally() -> None:
    with pytest.raises(tc.StateError, match="this was saved by AlmostOneStepAhead, not by Tally"):
        tc.Tally.from_json(tc.AlmostOneStepAhead(grid=4).to_json())
    saved = json.loads(tc.Tally([0.5], [1], [2]).to_json())
    saved["state"]["ones"] = saved["state"]["zeros"]
    with pytest.raises(tc.StateError, match="checksum"):
        tc.Tally.from_json(json.dumps(saved))


class _Kind(np.ndarray):
    """A subclass, which may mean anything."""


@pytest.mark.parametrize("kind", ["?", "u1", "i1", "i4", "i8", "f4", "f8", ">i8", ">f8"])
@pytest.mark.parametrize("n", [1, 23, 100, 1023, 1024])
def test_few_rounds_in_any_arrays_are_counted_alike(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    p = np.round(rng.random(n), 2) * rng.choice([1.0, -0.0], n)
    y = rng.integers(0, 2, n)
    wanted = tc.Tally.from_predictions(y.tolist(), p.tolist())
    spaced = np.repeat(p, 2)[::2]
    shifted = np.frombuffer(b"." + p.tobytes(), np.uint8)[1:].view(np.float64)
    for forecasts in (p, spaced, shifted, p.astype(">f8"), p.view(_Kind), p.tolist()):
        assert tc.Tally.from_predictions(y.astype(kind), forecasts) == wanted
        for measure in (tc.brier_score, tc.log_loss, tc.smooth_calibration_error):
            assert measure(y.astype(kind), forecasts) == measure(wanted)


def _drawn(kind: str, n: int) -> np.ndarray:
    """Forecasts, spread in a way that is hard for one step or another of the sorting."""
    rng = np.random.default_rng(n)
    return {
        "even": rng.random(n),
        "decimals": rng.random(n).round(2),
        "some twice": np.where(rng.random(n) < 0.01, 0.5, rng.random(n)),
        "close together": 0.3 + rng.random(n) * 1e-15,
        "of all sizes": 10.0 ** -rng.uniform(0, 320, n),
        "one far off": np.append(rng.random(n - 1) * 1e-9, 1.0),
        "ends": rng.choice([0.0, -0.0, 5e-324, 1.0], n),
        "pairs": np.repeat(rng.random(n), 2)[1 : n + 1],
        "one alone": np.full(n, 0.25),
        "falling": np.linspace(1, 0, n),
        "twice where blocks meet": np.maximum(np.arange(n), (np.arange(n) == 255) * 256) / 5000,
    }[kind]


KINDS = (
    *("even", "decimals", "some twice", "close together", "of all sizes"),
    *("one far off", "ends", "pairs", "one alone", "falling"),
    "twice where blocks meet",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 24, 25, 64, 100, 255, 256, 257, 513, 1023, 2047, 2048, 5000])
def test_rounds_are_counted_as_one_by_one(kind: str, n: int) -> None:
    p = _drawn(kind, n)
    y = (np.random.default_rng(n + 1).random(n) < p).astype(np.int64)
    wanted: dict[float, list[int]] = {}
    for forecast, outcome in zip(p.tolist(), y.tolist(), strict=True):
        wanted.setdefault(forecast, [0, 0])[outcome] += 1  # -0.0 and 0.0 are one key
    memory = np.empty(3 * n)
    distinct = _core.count_rounds(p, y, 1, memory)
    columns = memory[: 3 * distinct].reshape(3, distinct)
    assert columns[0].tolist() == sorted(wanted)
    assert columns[1:].view(np.int64).T.tolist() == [wanted[q] for q in sorted(wanted)]


def test_the_columns_of_a_few_rounds_are_made_once() -> None:
    tally = tc.Tally.from_predictions(np.array([1, 0, 1]), np.array([0.5, 0.25, 0.5]))
    assert (tally.total, tally.weighted) == (3, False)
    assert tally.p is tally.p
    assert [tally.p.tolist(), tally.zeros.tolist(), tally.ones.tolist()] == [
        [0.25, 0.5],
        [1, 0],
        [0, 2],
    ]
    for column in (tally.p, tally.zeros, tally.ones):
        assert not column.flags.writeable
    with pytest.raises(AttributeError, match="'Tally' object has no attribute 'twos'"):
        tally.twos  # noqa: B018


def test_few_rounds_have_a_tally_of_their_own() -> None:
    y, p = np.array([1, 0, 1, 1]), np.array([0.5, 0.25, 0.5, 0.0])
    few = _core.few_rounds(y, p)
    assert few is not None
    memory = np.frombuffer(few._columns())
    assert (few.total, len(few), few.weighted) == (4, 3, False)
    assert memory[:3].tolist() == [0.0, 0.25, 0.5]
    assert memory[3:].view(np.int64).tolist() == [0, 1, 0, 1, 0, 2]


@pytest.mark.parametrize(("y", "p"), [(np.ones(3), None), (None, None), (np.ones(3), np.ones(2))])
@pytest.mark.parametrize("n", [0, 1024])
def test_what_is_not_a_few_rounds_is_left_to_the_checks(y: object, p: object, n: int) -> None:
    assert _core.few_rounds(y, p) is None
    assert _core.few_rounds(np.ones(n), np.ones(n)) is None
    assert _core.few_rounds(np.ones((2, 2)), np.ones((2, 2))) is None
    assert _core.few_rounds(np.ones(2), np.ones(2, np.complex128)) is None


def test_few_rounds_that_are_not_valid_are_refused_by_name() -> None:
    good, bad = np.array([0, 1]), np.array([0.5, np.nan])
    for call in (tc.Tally.from_predictions, tc.brier_score, tc.binned_calibration_error):
        with pytest.raises(tc.InputError, match="y_prob must be between 0 and 1.*position 1"):
            call(good, bad)
        with pytest.raises(tc.InputError, match="y_true must be 0 or 1.*position 0"):
            call(np.array([2, 1]), np.array([0.5, 0.5]))
    with pytest.raises(tc.InputError, match="y_prob must be between 0 and 1"):
        tc.reliability_bins(good, bad)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 400])
def test_distinct_values_are_those_of_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (rng.integers(0, 50, size), rng.random(size).round(2)):
        found = distinct(values)
        assert (found.tolist(), found.dtype) == (np.unique(values).tolist(), values.dtype)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 2), (2, 5), (40, 40), (40, 0)])
def test_tallies_are_merged_alike_by_any_number_of_threads(
    sizes: tuple[int, int], kind: type
) -> None:
    rng = np.random.default_rng(sizes)
    for _ in range(20):
        given = [np.sort(rng.choice(50, size, replace=False)) / 50 for size in sizes]
        counts = [rng.integers(0, 9, (2, size)).astype(kind) for size in sizes]
        expected: dict[float, list[float]] = {}
        for p, (zeros, ones) in zip(given, counts, strict=True):
            for q, zero, one in zip(p.tolist(), zeros.tolist(), ones.tolist(), strict=True):
                there = expected.get(q, [0, 0])
                expected[q] = [there[0] + zero, there[1] + one]
        for threads in range(1, min(7, max(sizes)) + 1):
            room = sum(sizes)
            out = np.empty(room), np.empty(room, kind), np.empty(room, kind)
            columns = [each for p, some in zip(given, counts, strict=True) for each in (p, *some)]
            distinct = _core.merge_tallies(*columns, *out, threads)
            p, zeros, ones = (column[:distinct].tolist() for column in out)
            assert p == sorted(expected)
            assert [[zero, one] for zero, one in zip(zeros, ones, strict=True)] == [
                expected[q] for q in p
            ]
