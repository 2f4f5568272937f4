"""Saved forecasters: what goes out comes back, and nothing else gets in."""

from __future__ import annotations

import base64
import copy
import json
import math
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import hints, ledger, state
from truecast.columns import packed, unpacked
from truecast.recalibrate import tickets


def saved() -> dict[str, Any]:
    f = tc.AlmostOneStepAhead(grid=10, horizon=90)
    f.forecast_many([0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1])
    f.predict()
    return json.loads(f.to_json())


def sealed(entries: dict[str, Any]) -> str:
    """With the checksum made right, so that only the content can be refused."""
    rest = {name: value for name, value in entries.items() if name != "crc32"}
    return json.dumps(rest | {"crc32": state._crc32(rest)})


def test_layout_is_as_documented() -> None:
    entries = saved()
    assert list(entries) == ["format", "version", "kind", "config", "state", "crc32"]
    assert entries["config"] == {"horizon": 90, "grid": 10, "at": "lower", "cell": "walk"}
    assert entries["state"]["rounds"] == 11
    assert entries["state"]["issued"] is True
    assert sealed(entries) == json.dumps(entries)
    data = tc.AlmostOneStepAhead.from_json(sealed(entries)).to_bytes()
    assert data[:9] == b"TRUECAST\x02"
    assert json.loads(zlib.decompress(data[9:])) == entries


def test_bytes_are_compact() -> None:
    f = tc.AlmostOneStepAhead(horizon=10**6)
    f.forecast_many([0, 1, 1] * 1_000)
    assert len(f.to_bytes()) < len(f.to_json()) / 4


def test_copies_and_pickles_go_on_from_here_and_are_separate() -> None:
    f = tc.BentGrid(horizon=100)
    f.forecast_many([1, 0, 1])
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert other.to_json() == f.to_json()
        before = f.to_json()
        other.forecast_many([1])
        assert f.to_json() == before != other.to_json()


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("rounds", -1, "rounds must be from 0"),
        ("rounds", 1.0, "rounds must be of type int"),
        ("rounds", True, "rounds must be of type int"),
        ("rounds", (1 << 62) + 1, "rounds must be from 0"),
        ("rounds", 0, "deviation must be from 0 to 0"),
        ("open_cell", 10, "open_cell must be from 0 to 9"),
        ("open_cell", -1, "open_cell must be from 0 to 9"),
        ("issued", 1, "issued must be of type bool"),
        ("deviation", -1, "deviation must be from 0"),
        ("deviation", 23, "deviation must be from 0 to 22"),
        ("squared_error", float("nan"), "squared_error must be from 0"),
        ("squared_error", 12.0, "squared_error must be from 0"),
        ("squared_error", 1, "squared_error must be of type float"),
        ("biases", [0] * 10, "biases must be"),
        ("biases", [0] * 10 + [0.0], "biases must be 11 integers"),
        ("biases", {}, "biases must be of type list"),
        ("biases", [1] + [0] * 10, "bias of point 0 must be from 0 to 0"),
        ("biases", [0] * 10 + [-1], "bias of point 10 must be from 0 to 0"),
        ("biases", [0] * 9 + [10, 0], "bias of point 9 must be from 0 to 9"),
        ("biases", [0, 1] + [0] * 9, "bias of point 1 must be from -9 to 0"),
    ],
)
def test_impossible_states_are_refused(entry: str, value: Any, message: str) -> None:
    entries = saved()
    assert entries["state"]["open_cell"] == 8
    entries["state"][entry] = value
    with pytest.raises(tc.StateError, match=message):
        tc.AlmostOneStepAhead.from_json(sealed(entries))
    f = tc.AlmostOneStepAhead(grid=10)
    before = f.to_json()
    with pytest.raises(tc.StateError, match=message):
        f.load(entries["state"])
    assert f.to_json() == before


def test_states_that_only_counting_tells_impossible_are_refused() -> None:
    middle = tc.AlmostOneStepAhead(grid=10, at="middle")
    middle.forecast_many([0, 1, 1])
    with pytest.raises(tc.StateError, match="deviation must be from 3 to 3, got 2"):
        middle.load(middle.state() | {"deviation": 2})
    fresh = tc.AlmostOneStepAhead(grid=10)
    with pytest.raises(tc.StateError, match="biases must be 0 before the first round"):
        fresh.load(fresh.state() | {"biases": [0, -1] + [0] * 9})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no .format.: .truecast."),
        ({"version": 0}, "no valid version"),
        ({"version": "1"}, "no valid version"),
        ({"version": None}, "no valid version"),
        ({"kind": "BentGrid"}, "saved by BentGrid, not by AlmostOneStepAhead"),
        ({"config": []}, "config must be an object"),
        ({"config": {"grid": 0}}, "biases must be one more than the grid, got 11"),
        ({"config": {"grid": 1 << 24}}, "biases must be one more than the grid, got 11"),
        ({"config": {"grid": 10, "girth": 3}}, "AlmostOneStepAhead cannot be built"),
        (
            {"config": {"grid": 10, "cell": "best"}},
            "AlmostOneStepAhead cannot be built .*: cell must be one of",
        ),
        ({"state": None}, "must have exactly the entries"),
        ({"state": {}}, "must have exactly the entries"),
        ({"more": 1}, "has the entries"),
    ],
)
def test_foreign_content_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.StateError, match=message):
        tc.AlmostOneStepAhead.from_json(sealed(saved() | change))


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "3", '"truecast"', "{}", None, 3, "[" * 100_000]
)
def test_foreign_text_is_refused(text: Any) -> None:
    with pytest.raises(tc.StateError, match="not a saved forecaster"):
        tc.BentGrid.from_json(text)


def test_the_name_of_a_file_is_told_from_its_text() -> None:
    with pytest.raises(tc.StateError, match="pass the text of the file, not its name"):
        tc.Recalibrator.from_json("state.json")


@pytest.mark.parametrize("made", [tc.Recalibrator, tc.Monitor])
def test_what_was_made_with_classes_is_loaded_by_the_same_name(made: Any) -> None:
    built = made(classes=["a", "b"])
    for again in (made.from_json(built.to_json()), made.from_bytes(built.to_bytes())):
        assert type(again) is type(built)
        assert again.to_json() == built.to_json()
    with pytest.raises(tc.StateError, match=f"saved by {made.__name__}, not by"):
        type(built).from_json(made().to_json())


@pytest.mark.slow("reads a thousand texts")
def test_deeply_nested_text_is_refused() -> None:
    """At every depth: reading and checking give up at different ones."""
    start = (
        '{"format": "truecast", "version": 1, "kind": "BentGrid", "state": {}, "crc32": 0, '
        '"config": '
    )
    for depth in (*range(1, 1_100), 5_000, 100_000):
        with pytest.raises(tc.StateError):
            tc.BentGrid.from_json(start + '{"a":' * depth + "1" + "}" * depth + "}")


NOT_SAVED = [b"", b"TRUECAST", b"TRUECAST\x01", b"TRUECAST\x00abc", b"PK\x03\x04", "text", None]


@pytest.mark.parametrize("data", [*NOT_SAVED, b"TRUECAST\x01" + zlib.compress(b"\xff")])
def test_foreign_bytes_are_refused(data: Any) -> None:
    with pytest.raises(tc.StateError):
        tc.BentGrid.from_bytes(data)


def test_bytes_that_end_late_or_unpack_without_end_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = tc.BentGrid(grid=4).to_bytes()
    with pytest.raises(tc.StateError, match="too early or too late"):
        tc.BentGrid.from_bytes(data + b"more")
    monkeypatch.setattr(state, "_SMALL", 100)
    monkeypatch.setattr(state, "_RATIO", 1)
    message = (
        f"these {len(data) - 9} bytes unpack to more than {len(data) - 9} letters, which no "
        "saved forecaster does: "
        "if you trust the source, unpack them with zlib and read them with from_json"
    )
    with pytest.raises(tc.StateError, match=f"^{message}$"):
        tc.BentGrid.from_bytes(data)


BOMBS = '''
import resource, sys, zlib
import truecast as tc
from truecast.state import Saveable
import truecast.arena, truecast.arena.forecasters.rooted

def below(kind):
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in below(child))]

def bomb(cell, megabytes):
    """Pack one megabyte and repeat it, as if all had been packed."""
    start = b'{"format": "truecast", "version": 1, "kind": "X", "config": {}, "crc32": 0,'
    start += b' "state": [0'
    part = cell * ((1 << 20) // len(cell))
    packer = zlib.compressobj(9, wbits=-15)
    first, more = (packer.compress(x) + packer.flush(zlib.Z_FULL_FLUSH) for x in (start, part))
    packed = first + more * megabytes + packer.compress(b"]}") + packer.flush()
    check = zlib.adler32(start)
    for text in [*[part] * megabytes, b"]}"]:
        check = zlib.adler32(text, check)
    return b"TRUECAST\1" + b"\\x78\\xda" + packed + check.to_bytes(4, "big")

kinds = [tc.Tally, *dict.fromkeys(below(Saveable))]
assert len(kinds) > 20, kinds
huge = bomb(b",[]", 1000)
assert 0.9e6 < len(huge) < 1.1e6, len(huge)
within = [bomb(cell, 15) for cell in (b",[]", b",{}", b",-6", b',"ab"')]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600_000_000,) * 2)
for kind in kinds:
    for data in [huge, *within] if kind in (tc.Tally, tc.BentGrid) else [huge]:
        try:
            kind.from_bytes(data)
        except tc.StateError:
            continue
        sys.exit(f"{kind} took it")
print(len(kinds))
'''


@pytest.mark.slow("unpacks gigabytes")
@pytest.mark.skipif(
    sys.platform != "linux", reason="memory is limited and measured as Linux does it"
)
def test_a_megabyte_that_unpacks_to_a_gigabyte_takes_little_memory_whatever_reads_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow("packs six million numbers")
@pytest.mark.parametrize("grid", [6_000_000, 5])
def test_what_would_unpack_too_far_is_packed_less(grid: int) -> None:
    f = tc.AlmostOneStepAhead(grid=grid)
    data = f.to_bytes()
    assert len(f.to_json()) <= max(1 << 24, 16 * len(data))
    assert state.from_bytes(data) == f.to_json()


def test_future_versions_are_told_apart() -> None:
    with pytest.raises(tc.VersionError, match="version 3 .* upgrade truecast"):
        tc.AlmostOneStepAhead.from_json(sealed(saved() | {"version": 3, "whatever": "new"}))
    with pytest.raises(tc.VersionError, match="version 7 "):
        tc.AlmostOneStepAhead.from_bytes(b"TRUECAST\x07new")


def test_a_changed_digit_is_noticed_by_the_checksum() -> None:
    entries = saved()
    for path, value in (
        ("config", {"horizon": 91}),
        ("state", {"squared_error": 1.25}),
        ("state", {"rounds": 12}),
    ):
        with pytest.raises(tc.StateError, match="checksum"):
            tc.AlmostOneStepAhead.from_json(json.dumps(entries | {path: entries[path] | value}))


@pytest.mark.slow("tries many examples")
@settings(max_examples=200)
@given(data=st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    f = tc.BentGrid(horizon=30)
    f.forecast_many([1, 1, 0, 1])
    for whole in (f.to_bytes(), f.to_json().encode()):
        position = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.integers(0, 255).filter(lambda b, old=whole[position]: b != old))
        spoiled = whole[:position] + bytes([byte]) + whole[position + 1 :]
        try:
            if whole.startswith(b"TRUECAST"):
                loaded = tc.BentGrid.from_bytes(spoiled)
            else:
                loaded = tc.BentGrid.from_json(spoiled.decode(errors="surrogateescape"))
        except tc.StateError:
            continue
        # only the spacing, or a compression flag, was changed
        assert loaded.to_json() == f.to_json()


@settings(max_examples=50)
@given(length=st.integers(0, 400))
def test_torn_files_are_noticed(length: int) -> None:
    f = tc.BentGrid(horizon=30)
    for whole in (f.to_bytes(), f.to_json()):
        if length < len(whole):
            with pytest.raises(tc.StateError):
                (tc.BentGrid.from_bytes if isinstance(whole, bytes) else tc.BentGrid.from_json)(
                    whole[:length]
                )


def walk_to_save() -> tc.HorizonFree:
    f = tc.HorizonFree()
    f.forecast_many([0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1] * 5)
    f.predict()
    return f


def guard_to_save(nudge: bool) -> tc.Guard:
    g = tc.Guard(budget=1.5, nudge=nudge)
    g.forecast_many([0.1, 0.5, 0.83, 0.3] * 50, [0, 1, 1, 1, 0] * 40)
    g.predict(0.37)
    return g


def recalibrator_to_save() -> tc.Recalibrator:
    """With everything: groups, others, tickets, events, forecasts given up, one that is asked
    for."""
    r = tc.Recalibrator(
        hint=hints.Mix([hints.Identity(), hints.Platt(20)]), max_groups=2, max_unresolved=4
    )
    names = ["a", None, ("a", "b"), ("b", "c", "d")] * 5
    r.forecast_many([0.1, 0.6, 0.83, 0.3] * 5, [0, 1, 1, 1, 0] * 4, groups=names)
    for k in range(7):
        r.issue(
            k / 7,
            group=[None, "a", "b", "e", ("a", "b"), ("b", "a", "f"), "a"][k],
            event=[None, "x", 7][k % 3],
        )
    r.resolve(3, 1)
    r.predict(0.4, group=("b", "a"))
    return r


def experts_to_save() -> tc.Recalibrator:
    r = tc.Recalibrator(hint=hints.Experts(3), nudge=False, scale="logit")
    rng = np.random.default_rng(1)
    r.forecast_many(rng.normal(size=(60, 3)), rng.integers(0, 2, 60), groups=[("a", 1), "b"] * 30)
    for k in range(5):
        r.issue(rng.normal(size=3), group="a", event="game")
        r.predict(rng.normal(size=3).tolist())
        r.observe(k % 2)
    r.resolve(2, 0)
    r.give_up(3)
    r.predict([0.1, -0.2, 3.0], group=("b", 1))
    return r


NEW_KINDS: dict[str, Callable[[], Any]] = {
    "walk": walk_to_save,
    "guard": lambda: guard_to_save(False),
    "nudged guard": lambda: guard_to_save(True),
    "recalibrator": recalibrator_to_save,
    "recalibrator of experts": experts_to_save,
}


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to everything in a tree of dicts and lists."""
    yield path
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in inside:
        yield from places(part, (*path, key))


def replaced(tree: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(tree)
    changed[path[0]] = replaced(tree[path[0]], path[1:], value)
    return changed


STRANGE: list[Any] = [None, True, False, "1", "Mix", [], [0], [0.5, 0.5], {}, {"kind": "Mix"}]
STRANGE += [0, 1, -1, 7, 2**40, 2**62, 2**63, 2**64, -(2**63) - 1, 10**30]
STRANGE += [0.0, 0.5, -0.5, 1.5, 2.0**60, float("nan"), float("inf")]


def assert_sound(f: Any) -> None:
    """Whatever was loaded keeps what is promised of it, goes on, and can be saved and loaded
    again."""
    saved = f.to_json()
    assert type(f).from_json(saved).to_json() == saved
    if isinstance(f, tc.HorizonFree):
        assert (f.biases[: f.open_cell + 1] <= 0).all()
        assert (f.biases[f.open_cell + 1 :] >= 0).all()
        assert 0 <= f.certificate.bound < math.inf
        ask: list[Callable[[], float]] = [f.predict]
    elif isinstance(f, tc.Guard):
        assert_certified(f.certificate)
        ask = [lambda: f.predict(0.3), lambda: f.predict(1.0)]
    else:
        for ticket in f.awaited[1:]:
            f.resolve(ticket, 1)
        for each in (f, f.others, *f.groups.values()):
            assert_certified(each.certificate)
        one = [0.3] * f._hint._models if f._hint._models > 1 else 0.3
        ask = [lambda: f.predict(one), lambda: f.predict(one, group=("a", "z"))]
    rounds = f.rounds
    for k in range(12):
        assert 0.0 <= ask[k % len(ask)]() <= 1.0
        f.observe(k % 3 == 0)
    if rounds < 1 << 50:  # beyond 2^52 nothing is loaded
        saved = f.to_json()
        assert type(f).from_json(saved).to_json() == saved


def assert_certified(certificate: tc.ArcCertificate) -> None:
    assert 0 <= certificate.lower_distance <= certificate.bound <= certificate.a_priori < math.inf
    assert 0 <= certificate.smooth_error < math.inf
    assert math.isnan(certificate.brier) == (certificate.rounds == 0)


@cache
def places_of(kind: str, part: str) -> list[tuple]:
    """Where an entry can be changed: the same whenever such an object is made."""
    return list(places(json.loads(NEW_KINDS[kind]().to_json())[part]))


@pytest.mark.slow("tries many examples")
@pytest.mark.parametrize("kind", NEW_KINDS)
@settings(max_examples=250)
@given(data=st.data())
def test_a_changed_entry_is_refused_or_leads_to_a_sound_state(
    kind: str, data: st.DataObject
) -> None:
    f = NEW_KINDS[kind]()
    before = f.to_json()
    entries = json.loads(before)
    part = data.draw(st.sampled_from(["state", "state", "state", "config"]))
    path = data.draw(st.sampled_from(places_of(kind, part)))
    old = entries[part]
    for key in path:
        old = old[key]
    near = [old + 1, old - 1, -old, 2 * old] if type(old) in (int, float) else []
    near += [old[:-1], old[::-1], old + old[-1:]] if isinstance(old, list) else []
    near += [dict(list(old.items())[1:]), old | {"more": 1}] if isinstance(old, dict) else []
    value = data.draw(st.sampled_from([*STRANGE, *near, *near, *near]))
    entries[part] = replaced(entries[part], path, value)
    if part == "state":
        try:
            f.load(entries["state"])
        except tc.StateError:
            assert f.to_json() == before
    try:
        loaded = type(f).from_json(sealed(entries))
    except tc.StateError:
        return
    if part == "state":
        assert f.to_json() == loaded.to_json()
    assert_sound(loaded)


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_new_kinds_save_and_load_and_are_told_apart(kind: str) -> None:
    f = NEW_KINDS[kind]()
    for other in (
        copy.copy(f),
        copy.deepcopy(f),
        pickle.loads(pickle.dumps(f)),
        type(f).from_bytes(f.to_bytes()),
    ):
        assert other.to_json() == f.to_json()
        assert repr(other) == repr(f)
        assert_sound(other)
        assert other.to_json() != f.to_json()
    entries = json.loads(f.to_json())
    with pytest.raises(tc.VersionError, match="version 3 "):
        type(f).from_json(sealed(entries | {"version": 3}))
    with pytest.raises(tc.StateError, match="saved by BentGrid, not by"):
        type(f).from_json(sealed(entries | {"kind": "BentGrid"}))
    with pytest.raises(tc.StateError, match="must have exactly the entries"):
        type(f).from_json(sealed(entries | {"state": {}}))


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("walk", ("open_cell",), 10**6, "open_cell must be from 0 to"),
        ("walk", ("points", 1), 3, "points must be ends of split cells"),
        ("walk", ("points",), [0, 2**40, 2**41], "points must go from 0 to"),
        ("walk", ("biases", 1), 2**63, "bias of point 1 must be from"),
        ("walk", ("biases", 1), 1, "bias of point 1 must be from .* to 0, got 1"),
        ("walk", ("biases", 1), -(2**40), "bias of point 1 must be from .* to 0, got"),
        ("walk", ("spent", 0), 2**39, "spent of cell 0 must be below the threshold"),
        ("walk", ("deviation",), 0, "deviation must be from"),
        ("guard", ("granted",), -1, "granted must be an integer from 0"),
        ("guard", ("granted",), 1.0, "granted must be an integer from 0"),
        ("guard", ("reserved",), 2**62 + 1, "reserved must be an integer from 0"),
        ("guard", ("reserved",), 5, "must await no late outcomes"),
        ("guard", ("excess",), True, "excess must be an integer from 0"),
        ("guard", ("most_late",), -1, "most_late must be an integer from 0"),
        ("guard", ("most_late",), 10**6, "most_late must be at most"),
        ("guard", ("aims", 0), -1.0, "nudge has learned must be within its limits"),
        ("guard", ("aims", 0), math.nan, "aims must be a list of finite floats"),
        ("guard", ("aims", 0), 0, "aims must be a list of finite floats"),
        ("guard", ("aims",), [0.0], "nudge has learned must"),
        ("guard", ("asked", 4), [0.5], "asked must be made from a hint"),
        ("guard", ("asked", 4, 0), 1.5, "asked must be made from a hint"),
        ("guard", ("asked",), [0.5], "asked must be a forecast, its key"),
        ("guard", ("asked", 0), 1.5, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 0), math.nan, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 0), 0.9, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 1), 2**41, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 1), 0, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 2), -1, "asked must be a forecast from 0 to 1 and its key"),
        ("guard", ("asked", 3), [], "asked must be of everyone"),
        ("guard", ("asked", 3), [0, 1], "asked must be of everyone"),
        ("guard", ("asked", 3), [0, 0], "asked must be of everyone"),
        ("guard", ("asked", 3), [False], "asked must be of everyone"),
        ("guard", ("groups",), {}, "groups must have exactly the entries"),
        ("guard", ("groups", "lengths", 0), 2, "groups must be at most 1"),
        ("guard", ("knots", "lengths"), [10**9] * 2, "knots must be at most"),
        ("guard", ("knots", "table"), "AAAA", "corrupted"),
        ("recalibrator", ("groups",), ["a", "a"], "distinct names"),
        ("recalibrator", ("groups",), ["a", 0.5], "distinct names"),
        ("recalibrator", ("groups",), ["a", ["b"]], "distinct names"),
        ("recalibrator", ("groups",), ["a", None], "distinct names"),
        ("recalibrator", ("groups",), ["a"], "at most 3, got 4"),
        ("recalibrator", ("groups",), ["a", "b", "c"], "at most 2"),
        (
            "recalibrator",
            ("guard", "reserved"),
            5,
            "reserve of the guard must be that of its tickets",
        ),
        ("recalibrator", ("guard", "asked", 3), [0, 3, 2], "asked must be of everyone"),
        ("recalibrator", ("guard", "asked", 3), [0, 2, 9], "asked must be of everyone"),
        ("recalibrator", ("guard", "asked", 3), [2, 3], "asked must be of everyone"),
        ("recalibrator", ("tickets", "issued"), 4, "must be in order"),
        ("recalibrator", ("tickets", "issued"), -1, "number of tickets must be from 0"),
        ("recalibrator", ("asked",), [], "asked must be 1 scores"),
        ("recalibrator", ("asked",), [0.4, 0.4], "asked must be 1 scores"),
        ("recalibrator", ("asked",), [1.4], "asked must be scores"),
        ("recalibrator", ("asked",), [1], "asked must be scores"),
        ("recalibrator", ("guard", "asked"), None, "asked must be 0 scores"),
        ("recalibrator", ("bursts", "doubt"), 0.0, "bursts must be floats that fit together"),
        ("recalibrator", ("bursts", "size"), 0.5, "bursts must be floats that fit together"),
        ("recalibrator", ("bursts", "sum"), math.nan, "bursts must be floats that fit together"),
        ("recalibrator", ("bursts", "waiting"), 1, "bursts must be floats that fit together"),
        ("recalibrator", ("bursts",), {}, "bursts must have exactly the entries"),
        ("recalibrator of experts", ("asked",), [0.1, math.inf, 0.2], "asked must be scores"),
        ("recalibrator of experts", ("asked",), [0.1], "asked must be 3 scores"),
    ],
)
def test_impossible_states_of_the_new_kinds_are_refused(
    kind: str, path: tuple, value: Any, message: str
) -> None:
    f = NEW_KINDS[kind]()
    before = f.to_json()
    with pytest.raises(tc.StateError, match=message):
        f.load(replaced(f.state(), path, value))
    assert f.to_json() == before


# Tables: every number in them can be forged, each by itself or in company.

TABLES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    **{table: (("guard", table), kinds) for table, kinds in ledger._KINDS.items()},
    "tickets": (("tickets", "awaited"), tickets._KINDS),
}


def columns_of(state: Any, table: str) -> dict[str, Any]:
    path, kinds = TABLES[table]
    for key in path:
        state = state[key]
    return unpacked(table, state, kinds, 1 << 28)


def with_columns(state: Any, table: str, columns: dict[str, Any]) -> Any:
    path, kinds = TABLES[table]
    return replaced(state, path, packed(columns, kinds))


def forged(state: Any, table: str, column: str, row: int, value: Any) -> Any:
    columns = columns_of(state, table)
    columns[column] = columns[column].copy()
    columns[column][row] = value
    return with_columns(state, table, columns)


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "message"),
    [
        ("groups", "rounds", 0, -1, "rounds of group 0 must fit"),
        ("groups", "rounds", 0, 1 << 60, "rounds of group 0 must fit"),
        ("groups", "rounds", 2, 22, "rounds of group 2 must fit"),
        ("groups", "late", 0, 5, "fit its rounds|must be what the guard awaits"),
        ("groups", "late", 2, 1, "fit its rounds|must be what the guard awaits"),
        ("groups", "late", 1, -1, "late of group 1 must fit"),
        ("groups", "lost", 0, 1, "fit its rounds|unknown of a guard"),
        ("groups", "lost", 0, 1 << 62, "fit its rounds|unknown of a guard"),
        ("groups", "hidden", 0, 1 << 63, "hidden of group 0 must fit"),
        ("groups", "hidden", 2, 1 << 35, "hidden of group 2 must fit"),
        ("groups", "unknown", 0, 0, "unknown of group 0 must fit"),
        ("groups", "squared_error", 0, np.nan, "squared_error of group 0 must fit"),
        ("groups", "squared_error", 0, -1.0, "squared_error of group 0 must fit"),
        ("groups", "squared_error", 1, np.inf, "squared_error of group 1 must fit"),
        ("groups", "energy", 0, -(1 << 40), "energy must be that of the knots"),
        ("groups", "energy", 3, 1 << 61, "energy must be that of the knots"),
        ("offsets", "offset", 0, np.nan, "offset of a group must be within its limits"),
        ("offsets", "offset", 3, 0.0, "offset of a group must be within its limits"),
        ("groups", "knots", 0, -1, "knots of group 0 must fit"),
        ("groups", "knots", 0, 1, "must match the groups"),
        ("groups", "knots", 0, 1 << 62, "knots of group 0 must fit"),
        ("knots", "key", 0, -1, "knots must increase"),
        ("knots", "key", 0, (1 << 40) + 1, "knots must increase"),
        ("knots", "key", 0, 1 << 40, "knots must increase"),
        ("knots", "residual", 0, 1 << 40, "knots must increase"),
        ("knots", "residual", 0, -(1 << 63), "knots must increase"),
        ("tickets", "number", 0, -1, "must be in order"),
        ("tickets", "number", 0, 99, "must be in order"),
        ("tickets", "number", 1, 0, "must be in order"),
        ("tickets", "key", 0, -1, "a forecast and its key"),
        ("tickets", "key", 0, 0, "a forecast and its key"),
        ("tickets", "forecast", 0, np.nan, "a forecast and its key"),
        ("tickets", "forecast", 0, 1.5, "a forecast and its key"),
        ("tickets", "forecast", 0, 0.999, "a forecast and its key"),
        ("tickets", "worst", 0, -1, "a forecast and its key"),
        ("tickets", "worst", 0, 1 << 61, "reserve of the guard"),
        ("tickets", "event", 0, -3, "events must be those of the tickets"),
        ("tickets", "event", 0, 12345, "events must be those of the tickets"),
        ("tickets", "about", 0, 12345, "events must be those of the tickets"),
        ("tickets", "made", 0, 0, "events must be those of the tickets"),
        ("tickets", "members", 0, -1, "the number of groups that they say"),
        ("tickets", "members", 0, 1 << 62, "the number of groups that they say"),
        ("tickets", "group", 0, 0, "of groups that are known"),
        ("tickets", "group", 0, 4, "of groups that are known"),
        ("tickets", "group", 0, -5, "of groups that are known"),
        ("tickets", "score", 0, np.nan, "must have a score each"),
        ("tickets", "score", 0, -0.5, "must have a score each"),
        ("tickets", "same", 0, 2, "notes of a saved ticket"),
        ("tickets", "whole", 0, np.float64(1.5).view(np.int64), "notes of a saved ticket"),
        ("tickets", "whole", 0, np.float64(np.nan).view(np.int64), "notes of a saved ticket"),
        ("tickets", "notes", 0, 0xFFFF, "must have the number of notes that it says"),
    ],
)
def test_forged_numbers_are_refused(
    table: str, column: str, row: int, value: Any, message: str
) -> None:
    r = recalibrator_to_save()
    before = r.to_json()
    with pytest.raises(tc.StateError, match=message):
        r.load(forged(r.state(), table, column, row, value))
    assert r.to_json() == before


def test_knots_that_are_as_many_by_overflow_alone_are_refused() -> None:
    """4096 times 2^52 is 0 in 64 bits: what is written by such counts would be beyond all
    memory."""
    r = tc.Recalibrator(hint=hints.Identity(), max_groups=5000)
    r.forecast_many(np.full(4200, 0.5), np.arange(4200) % 2, groups=np.arange(4200))
    state = r.state()
    columns = columns_of(state, "groups")
    columns["rounds"] = np.full(4202, 1 << 52)
    columns["knots"] = columns["knots"].copy()
    columns["knots"][2 : 2 + 4096] += 1 << 52
    with pytest.raises(tc.StateError, match="must fit its rounds"):
        r.load(with_columns(state, "groups", columns))


def test_a_reserve_that_fits_by_overflow_alone_is_refused() -> None:
    r = tc.Recalibrator(hint=hints.Identity())
    for k in range(4):
        r.issue(k / 4)
    state = r.state()
    columns = columns_of(state, "tickets")
    columns["worst"] = columns["worst"] + (1 << 61) * np.array([2, 2, 2, 2])
    columns["worst"] = np.where(columns["worst"] > 1 << 62, 1 << 62, columns["worst"])
    state = replaced(with_columns(state, "tickets", columns), ("guard", "reserved"), 0)
    with pytest.raises(tc.StateError, match="reserve of the guard"):
        r.load(state)


@pytest.mark.parametrize(("counted", "column"), [("rounds", "hidden"), ("lost", "unknown")])
def test_sums_that_the_next_forecast_would_take_past_64_bits_are_refused(
    counted: str, column: str
) -> None:
    """From there the certificate would fall from millions to nearly nothing."""
    r = recalibrator_to_save()
    many = forged(r.state(), "groups", counted, 0, 1 << 40 if counted == "rounds" else 1 << 32)
    state = forged(many, "groups", column, 0, 2**64 - 1)
    with pytest.raises(tc.StateError, match=f"{column} of group 0 must fit"):
        r.load(state)


def test_energy_and_reserve_that_pass_64_bits_together_leave_no_room() -> None:
    r = tc.Recalibrator(hint=hints.Identity(), nudge=False)
    r.forecast_many([0.3, 0.7], [1, 0])  # misses of both signs, which cancel in the middle
    r.issue(0.5)
    state = r.state()
    times = math.isqrt((1 << 62) // int(columns_of(state, "groups")["energy"][0]))
    for table, column, row, value in [
        ("knots", "residual", 0, times * columns_of(state, "knots")["residual"][0]),
        ("knots", "residual", 1, times * columns_of(state, "knots")["residual"][1]),
        ("groups", "rounds", 0, 2 * times),
        ("groups", "energy", 0, (1 << 62) - 1),
        ("tickets", "worst", 0, 1 << 62),
    ]:
        state = forged(state, table, column, row, value)
    r.load(replaced(state, ("guard", "reserved"), 1 << 62))
    assert [round(r.issue(score).p, 3) for score in (0.5, 0.1)] == [0.5, 0.5]


def test_a_ticket_that_is_of_a_group_twice_is_refused() -> None:
    r = tc.Recalibrator(hint=hints.Identity())
    r.issue(0.5, group=("a", "b"))
    state = r.state()
    tables = columns_of(state, "tickets"), columns_of(state, "groups")
    tables[0]["group"] = np.array([2, 2])
    for name in ("late", "unknown"):
        tables[1][name] = tables[1][name] * np.array([2, 0, 2, 0], tables[1][name].dtype)
    with pytest.raises(tc.StateError, match="each once and in order|must fit its rounds"):
        r.load(with_columns(with_columns(state, "tickets", tables[0]), "groups", tables[1]))


NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    1 << 20,
    1 << 31,
    1 << 32,
    1 << 39,
    1 << 40,
    1 << 52,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 5e-324, 1e-9, 1e9, 1e300, math.inf, -math.inf, math.nan]


@pytest.mark.slow("tries many examples")
@pytest.mark.parametrize("kind", ["recalibrator", "recalibrator of experts"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_forged_number_is_refused_or_leads_to_a_sound_state(
    kind: str, data: st.DataObject
) -> None:
    r = NEW_KINDS[kind]()
    before, state = r.to_json(), r.state()
    for _ in range(data.draw(st.integers(1, 2))):
        table = data.draw(st.sampled_from(list(TABLES)))
        columns = columns_of(state, table)
        column = data.draw(
            st.sampled_from([name for name, values in columns.items() if len(values)])
        )
        values = columns[column].copy()
        row = data.draw(st.integers(0, len(values) - 1))
        if values.dtype.kind == "f":
            near = [values[row] * (1 + 1e-9), np.nextafter(values[row], 9), values[row] / 2]
            with np.errstate(over="ignore"):  # 1e300 is infinite for floats of 32 bits
                values[row] = data.draw(st.sampled_from([*FLOATS, *near]))
        else:
            least, most = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
            old = int(values[row])
            value = data.draw(
                st.sampled_from([*NUMBERS, old + 1, old - 1, 2 * old, -old, old ^ 256])
            )
            values[row] = min(max(value, least), most)
        state = with_columns(state, table, columns | {column: values})
    try:
        r.load(state)
    except tc.StateError:
        assert r.to_json() == before
        return
    assert_sound(r)


def many_tickets() -> tc.Recalibrator:
    r = tc.Recalibrator(hint=hints.Mix([hints.Identity(), hints.Platt(20)]))
    for k in range(43):
        r.issue((7 * k % 43) / 43, group=k % 3)
        if k % 5 == 4:
            r.resolve(k - 4, k % 2)
    return r


def test_states_of_the_guard_before_are_refused_with_what_to_do() -> None:
    """Written by truecast 0.1, whose guard was another one."""
    text = (Path(__file__).parent / "recalibrator_rows.json").read_text()
    guard = {
        "format": "truecast",
        "version": 1,
        "kind": "Guard",
        "config": {"slack": 1.0},
        "state": {},
    }
    for kind, saved_before in ((tc.Recalibrator, text), (tc.Guard, sealed(guard))):
        with pytest.raises(
            tc.VersionError, match="saved in version 1 .* start a new one and replay your log"
        ):
            kind.from_json(saved_before)
        with pytest.raises(tc.VersionError, match="or continue with truecast 0.1"):
            kind.from_bytes(b"TRUECAST\x01" + zlib.compress(saved_before.encode()))
        with pytest.raises(tc.StateError, match="must have exactly the entries"):
            kind().load(json.loads(saved_before)["state"])


def test_states_of_version_1_of_all_others_are_read() -> None:
    made: list[Any] = [
        tc.AlmostOneStepAhead(grid=10),
        tc.BentGrid(horizon=30),
        tc.HorizonFree(),
        tc.Arc(),
    ]
    for f in made:
        f.forecast_many([0, 1, 1, 0, 1])
        old = sealed(json.loads(f.to_json()) | {"version": 1})
        again = type(f).from_json(old)
        assert again.to_json() == f.to_json()
        packed_before = b"TRUECAST\x01" + zlib.compress(old.encode())
        assert type(f).from_bytes(packed_before).to_json() == f.to_json()


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        (("lengths", 0), 34, "an entry in each column|has another length"),
        (("lengths", 0), -1, "at most"),
        (("lengths", 0), 10**9, "at most"),
        (("lengths", 0), 35.0, "must be 14 integers"),
        (("lengths",), [35], "must be 14 integers"),
        (("lengths",), None, "must be 14 integers"),
        (("table",), 7, "must be a str"),
        (("table",), "", "corrupted"),
        (("table",), "!!!!", "corrupted"),
        (("table",), "AAAA", "corrupted"),
        (("digits",), None, "must be a str"),
        (("digits",), "AAAA", "has another length"),
        (("digits",), "A", "corrupted"),
    ],
)
def test_impossible_tables_of_tickets_are_refused(entry: tuple, value: Any, message: str) -> None:
    r = many_tickets()
    before = r.to_json()
    with pytest.raises(tc.StateError, match=message):
        r.load(replaced(r.state(), ("tickets", "awaited", *entry), value))
    assert r.to_json() == before


@pytest.mark.slow("tries many examples")
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_changed_table_of_tickets_is_refused_or_leads_to_a_sound_state(
    data: st.DataObject,
) -> None:
    r = many_tickets()
    before, state = r.to_json(), r.state()
    entry = data.draw(st.sampled_from(["table", "digits"]))
    content = base64.b64decode(state["tickets"]["awaited"][entry])
    table = bytearray(zlib.decompress(content) if entry == "table" else content)
    at = data.draw(st.integers(0, len(table) - 1))
    table[at] ^= data.draw(st.integers(1, 255))
    spoiled = base64.b64encode(zlib.compress(bytes(table)) if entry == "table" else table).decode()
    try:
        r.load(replaced(state, ("tickets", "awaited", entry), spoiled))
    except tc.StateError:
        assert r.to_json() == before
        return
    assert_sound(r)


@pytest.mark.slow("makes 100,000 groups")
def test_a_hundred_thousand_groups_are_saved_in_few_bytes() -> None:
    """Ten rounds a group; and what is asked of one group does not go through all of them."""
    groups, rng = 100_000, np.random.default_rng(2)
    r = tc.Recalibrator(hint=hints.Identity(), max_groups=groups)
    names = np.tile(np.arange(groups), 10)
    x = rng.integers(1, 100, len(names)) / 100
    r.forecast_many(x, rng.random(len(names)) < x, groups=names)
    text = r.to_json()
    assert len(text) < 15_000_000
    again = tc.Recalibrator.from_json(text)
    assert again.to_json() == text
    assert len(again.groups) == groups
    assert again.groups[groups - 1].certificate == r.groups[groups - 1].certificate
    assert again.certificate == r.certificate
    names = rng.integers(0, groups, 100)
    for each in (r, again):
        each.forecast_many(x[:100], x[:100] < 0.4, groups=names, known_at=np.arange(100) + 3)
    assert again.to_json() == r.to_json()


@pytest.mark.parametrize("grouped", [False, True])
def test_a_ticket_is_saved_in_few_bytes(grouped: bool) -> None:
    """Each was issued at another state of the hint, and resolves as if it had not been saved."""
    count, rng = 2_000, np.random.default_rng(3)
    r = tc.Recalibrator()
    for t, score in enumerate(rng.random(count).tolist()):
        r.issue(score, group="a" if grouped else None)
        r.predict(score)
        r.observe(t % 2)
    text = r.to_json()
    again = tc.Recalibrator.from_json(text)
    assert again.to_json() == text
    for ticket in r.awaited:
        r.resolve(ticket, ticket % 3 == 0)
        again.resolve(ticket, ticket % 3 == 0)
    assert again.to_json() == r.to_json()
    assert len(text) - len(r.to_json()) < (60 if grouped else 50) * count


def test_a_mix_of_mixes_of_mixes_is_refused() -> None:
    entries = json.loads(tc.Recalibrator().to_json())
    hint: dict[str, Any] = {"kind": "Identity"}
    for _ in range(400):
        hint = {"kind": "Mix", "hints": [hint]}
    entries["config"]["hint"] = hint
    with pytest.raises(tc.StateError):
        tc.Recalibrator.from_json(sealed(entries))


def test_numbers_too_long_to_print_are_refused() -> None:
    entries = json.loads(tc.Guard().to_json())
    entries["state"]["granted"] = int("9" * 4300)
    with pytest.raises(tc.StateError, match="granted must be an integer"):
        tc.Guard.from_json(sealed(entries))


@pytest.mark.parametrize("change", [-1, 1])
def test_tickets_count_for_what_they_are_worth(change: int) -> None:
    r = tc.Recalibrator(hint=hints.Identity(), nudge=False)
    for score in (0.9, 0.3, 0.5):
        r.issue(score, group="a")
    r.issue(0.7, group="b")
    state = r.state()
    unknown = columns_of(state, "groups")["unknown"].tolist()
    tc.Recalibrator(hint=hints.Identity()).load(state)
    with pytest.raises(tc.StateError, match="unknown of a guard must be that of its tickets"):
        r.load(forged(state, "groups", "unknown", 2, unknown[2] + change))
    r.give_up(1)
    state = r.state()
    with pytest.raises(
        tc.StateError, match="unknown of a guard must be|unknown of group 2 must fit"
    ):
        r.load(forged(state, "groups", "unknown", 2, unknown[2] + change * 2**31))


def test_what_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tc.HorizonFree()
    monkeypatch.setattr(state, "_LONGEST", len(f.to_json()))
    assert tc.HorizonFree.from_bytes(f.to_bytes()).to_json() == f.to_json()
    monkeypatch.setattr(state, "_LONGEST", len(f.to_json()) - 1)
    with pytest.raises(tc.StateError, match="save it as JSON"):
        f.to_bytes()
