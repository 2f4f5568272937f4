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
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import hints, state


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
    assert data[:9] == b"TRUECAST\x01"
    assert json.loads(zlib.decompress(data[9:])) == entries


def test_bytes_are_compact() -> None:
    f = tc.AlmostOneStepAhead(horizon=10**6)
    f.forecast_many([0, 1, 1] * 1_000)
    assert len(f.to_bytes()) < len(f.to_json()) / 4


def test_copies_and_pickles_go_on_from_here_and_are_separate() -> None:
    f = tc.BentGrid(horizon=100)
    f.forecast_many([1, 0, 1])
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):  # noqa: S301
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
        ({"config": {"grid": 10, "cell": "best"}}, "AlmostOneStepAhead cannot be built .*: cell must be one of"),
        ({"state": None}, "must have exactly the entries"),
        ({"state": {}}, "must have exactly the entries"),
        ({"more": 1}, "has the entries"),
    ],
)
def test_foreign_content_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.StateError, match=message):
        tc.AlmostOneStepAhead.from_json(sealed(saved() | change))


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", '"truecast"', "{}", None, 3, "[" * 100_000])
def test_foreign_text_is_refused(text: Any) -> None:
    with pytest.raises(tc.StateError, match="not a saved forecaster"):
        tc.BentGrid.from_json(text)


def test_deeply_nested_text_is_refused() -> None:
    """At every depth: reading and checking give up at different ones."""
    start = '{"format": "truecast", "version": 1, "kind": "BentGrid", "state": {}, "crc32": 0, "config": '
    for depth in (*range(1, 1_100), 5_000, 100_000):
        with pytest.raises(tc.StateError):
            tc.BentGrid.from_json(start + '{"a":' * depth + "1" + "}" * depth + "}")


NOT_SAVED = [b"", b"TRUECAST", b"TRUECAST\x01", b"TRUECAST\x00abc", b"PK\x03\x04", "text", None]


@pytest.mark.parametrize("data", [*NOT_SAVED, b"TRUECAST\x01" + zlib.compress(b"\xff")])
def test_foreign_bytes_are_refused(data: Any) -> None:
    with pytest.raises(tc.StateError):
        tc.BentGrid.from_bytes(data)


def test_bytes_that_end_late_or_unpack_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tc.BentGrid(grid=4).to_bytes()
    with pytest.raises(tc.StateError, match="too early or too late"):
        tc.BentGrid.from_bytes(data + b"more")
    monkeypatch.setattr(state, "_SMALL", 100)
    monkeypatch.setattr(state, "_RATIO", 1)
    message = (
        f"these {len(data) - 9} bytes unpack to more than {len(data) - 9} letters, which no saved forecaster does: "
        "if you trust who wrote them, unpack them by zlib and read them by from_json"
    )
    with pytest.raises(tc.StateError, match=f"^{message}$"):
        tc.BentGrid.from_bytes(data)


BOMBS = """
import resource, sys, zlib
import truecast as tc
from truecast.state import Saveable
import truecast.arena, truecast.arena.forecasters.rooted

def below(kind):
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in below(child))]

def bomb(cell, megabytes):
    packer = zlib.compressobj(9)
    start = b'{"format": "truecast", "version": 1, "kind": "X", "config": {}, "crc32": 0, "state": [0'
    part = cell * ((1 << 20) // len(cell))
    packed = b"".join([packer.compress(start), *(packer.compress(part) for _ in range(megabytes))])
    return b"TRUECAST\1" + packed + packer.compress(b"]}") + packer.flush()

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
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as Linux does it")
def test_a_megabyte_that_unpacks_to_a_gigabyte_takes_little_memory_whatever_reads_it() -> None:
    done = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("f", [tc.AlmostOneStepAhead(grid=6_000_000), tc.AlmostOneStepAhead(grid=5)])
def test_what_would_unpack_too_far_is_packed_less(f: tc.AlmostOneStepAhead) -> None:
    data = f.to_bytes()
    assert len(f.to_json()) <= max(1 << 24, 16 * len(data))
    assert state.from_bytes(data) == f.to_json()


def test_future_versions_are_told_apart() -> None:
    with pytest.raises(tc.VersionError, match="version 2 .* upgrade truecast"):
        tc.AlmostOneStepAhead.from_json(sealed(saved() | {"version": 2, "whatever": "new"}))
    with pytest.raises(tc.VersionError, match="version 7 "):
        tc.AlmostOneStepAhead.from_bytes(b"TRUECAST\x07new")


def test_a_changed_digit_is_noticed_by_the_checksum() -> None:
    entries = saved()
    for path, value in (("config", {"horizon": 91}), ("state", {"squared_error": 1.25}), ("state", {"rounds": 12})):
        with pytest.raises(tc.StateError, match="checksum"):
            tc.AlmostOneStepAhead.from_json(json.dumps(entries | {path: entries[path] | value}))


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
        assert loaded.to_json() == f.to_json()  # only the spacing, or a compression flag, was changed


@settings(max_examples=50)
@given(length=st.integers(0, 400))
def test_torn_files_are_noticed(length: int) -> None:
    f = tc.BentGrid(horizon=30)
    for whole in (f.to_bytes(), f.to_json()):
        if length < len(whole):
            with pytest.raises(tc.StateError):
                (tc.BentGrid.from_bytes if isinstance(whole, bytes) else tc.BentGrid.from_json)(whole[:length])


def walk_to_save() -> tc.HorizonFree:
    f = tc.HorizonFree()
    f.forecast_many([0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1] * 5)
    f.predict()
    return f


def guard_to_save(grid: int | None) -> tc.Guard:
    g = tc.Guard(grid=grid, slack=0.5, nudge=grid is None)
    g.guard_many([0.1, 0.5, 0.83, 0.3] * 10, [0, 1, 1, 1, 0] * 8)
    for hint in (0.2, 0.8, 0.9):
        g._issue(hint)
    g._give_up()
    g.predict(0.37)
    return g


def recalibrator_to_save() -> tc.Recalibrator:
    r = tc.Recalibrator(hint=hints.Mix([hints.Identity(), hints.Platt(20)]), max_groups=2, max_unresolved=3)
    r.recalibrate_many([0.1, 0.6, 0.83, 0.3] * 5, [0, 1, 1, 1, 0] * 4, groups=["a", None] * 10)
    for k in range(5):
        r.issue(k / 5, group="abcde"[k])
    r.resolve(3, 1)
    r.predict(0.4, group="a")
    return r


def rows_of_tickets(r: tc.Recalibrator) -> list[list[Any]]:
    """The tickets as they were saved before: number, guard, score, cell, forecast and notes of each."""
    number, guard, low, high, score, said, same, notes = (column.tolist() for column in r._desk.table())
    each, rest = len(r._hint.issue(0.5)[1]), iter(notes)
    kept = [
        r._hint.issue(x)[1] if now else [next(rest) for _ in range(each)] for x, now in zip(score, same, strict=True)
    ]
    return [list(row) for row in zip(number, guard, score, low, high, said, kept, strict=True)]


def with_rows(r: tc.Recalibrator) -> dict[str, Any]:
    """The state with its tickets row by row."""
    state = r.state()
    return state | {"tickets": {"issued": state["tickets"]["issued"], "awaited": rows_of_tickets(r)}}


NEW_KINDS: dict[str, Callable[[], Any]] = {
    "walk": walk_to_save,
    "guard": lambda: guard_to_save(None),
    "guard on a grid": lambda: guard_to_save(7),
    "recalibrator": recalibrator_to_save,
}


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to everything in a tree of dicts and lists."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
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
    """Whatever was loaded keeps what is promised of it."""
    again = type(f).from_json(f.to_json())
    assert again.to_json() == f.to_json()
    if isinstance(f, tc.HorizonFree):
        assert (f.biases[: f.open_cell + 1] <= 0).all()
        assert (f.biases[f.open_cell + 1 :] >= 0).all()
    certificate = f.certificate
    assert math.isfinite(certificate.bound)
    assert certificate.bound >= 0
    if isinstance(f, tc.Recalibrator):
        for ticket in f.awaited:
            f.resolve(ticket, 1)
        ask: list[Callable[[], float]] = [lambda: f.predict(0.3), lambda: f.predict(0.9, group="a")]
        guards = [f.others, *f.groups.values()]
    else:
        ask = [f.predict] if isinstance(f, tc.HorizonFree) else [lambda: f.predict(0.3), lambda: f.predict(1.0)]
        guards = [f] if isinstance(f, tc.Guard) else []
    for k in range(12):
        assert 0.0 <= ask[k % len(ask)]() <= 1.0
        f.observe(k % 3 == 0)
    assert all(guard.open_cells.any() for guard in guards)


@pytest.mark.parametrize("kind", NEW_KINDS)
@settings(max_examples=250)
@given(data=st.data())
def test_a_changed_entry_is_refused_or_leads_to_a_sound_state(kind: str, data: st.DataObject) -> None:
    f = NEW_KINDS[kind]()
    entries = json.loads(f.to_json())
    part = data.draw(st.sampled_from(["state", "state", "state", "config"]))
    path = data.draw(st.sampled_from(list(places(entries[part]))))
    old = entries[part]
    for key in path:
        old = old[key]
    near = [old + 1, old - 1, -old, 2 * old] if type(old) in (int, float) else []
    near += [old[:-1], old[::-1], old + old[-1:]] if isinstance(old, list) else []
    near += [dict(list(old.items())[1:]), old | {"more": 1}] if isinstance(old, dict) else []
    value = data.draw(st.sampled_from([*STRANGE, *near, *near, *near]))
    entries[part] = replaced(entries[part], path, value)
    before = f.to_json()
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
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f)), type(f).from_bytes(f.to_bytes())):  # noqa: S301
        assert other.to_json() == f.to_json()
        assert repr(other) == repr(f)
        assert_sound(other)
        assert other.to_json() != f.to_json()
    entries = json.loads(f.to_json())
    with pytest.raises(tc.VersionError, match="version 2 "):
        type(f).from_json(sealed(entries | {"version": 2}))
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
        ("guard", ("biases", 1), -(2**63), "bias of point 1 must be from"),
        ("guard", ("biases", 1), 2**43, "bias of point 1 must be from"),
        ("guard", ("biases", 0), 1, "biases of 0 and 1 must be 0"),
        ("guard", ("unknown",), 2**40, "unknown must be from"),
        ("guard", ("most_unresolved",), 1, "unresolved must be from 0 to 1"),
        ("guard", ("asked",), 1.0, "asked must lie in its cell"),
        ("guard", ("asked_cell",), [0, 5], "asked_cell must be two of the points"),
        ("guard", ("misses", 0), 1e9, "misses must be"),
        ("guard", ("variance",), 1e9, "variance must be from"),
        ("guard on a grid", ("points", 3), 5, "points must be those of the grid"),
        ("guard on a grid", ("misses", 0), 0.5, "misses must be 10 floats from 0 to 0"),
        ("recalibrator", ("groups",), ["a", "a"], "distinct names"),
        ("recalibrator", ("groups",), ["a", 0.5], "distinct names"),
        ("recalibrator", ("groups",), ["a"], "a saved guard for each of the groups"),
        ("recalibrator", ("tickets", "issued"), 4, "must be in order"),
        ("recalibrator", ("tickets", "awaited"), [], "as many as the guards await"),
        ("recalibrator", ("tickets", "awaited", 0, 1), 9, "each with a guard"),
        ("recalibrator", ("tickets", "awaited", 0, 2), 1.5, "each with a guard and a score"),
        ("recalibrator", ("tickets", "awaited", 0, 3), 5, "between two points of its guard"),
        ("recalibrator", ("tickets", "awaited", 0, 6), [], "notes of a saved ticket"),
        ("recalibrator", ("asked",), [0.4, 9], "a score that a guard has forecast"),
        ("recalibrator", ("asked",), [0.4, 2], "a score that a guard has forecast"),
        ("recalibrator", ("asked",), [1.4, 1], "a score that a guard has forecast"),
    ],
)
def test_impossible_states_of_the_new_kinds_are_refused(kind: str, path: tuple, value: Any, message: str) -> None:
    f = NEW_KINDS[kind]()
    before = f.to_json()
    with pytest.raises(tc.StateError, match=message):
        f.load(replaced(f.state() if kind != "recalibrator" else with_rows(f), path, value))
    assert f.to_json() == before


def many_tickets() -> tc.Recalibrator:
    r = tc.Recalibrator(hint=hints.Mix([hints.Identity(), hints.Platt(20)]))
    for k in range(43):
        r.issue((7 * k % 43) / 43, group=k % 3)
        if k % 5 == 4:
            r.resolve(k - 4, k % 2)
    return r


def test_tickets_saved_row_by_row_are_read() -> None:
    """As they were before they became a table."""
    r = many_tickets()
    assert (r.unresolved, r.state()["tickets"]["notes"]) == (35, 32 * 4)
    old = tc.Recalibrator(**r.config)
    old.load(json.loads(json.dumps(with_rows(r))))
    assert old.to_json() == r.to_json()
    for ticket in r.awaited:
        for each in (r, old):
            each.resolve(ticket, int(ticket) % 2)
    assert old.to_json() == r.to_json()


def test_a_state_with_tickets_in_rows_is_read() -> None:
    """Written when tickets were saved row by row: groups, five awaited outcomes, some given up, one asked."""
    text = (Path(__file__).parent / "recalibrator_rows.json").read_text()
    r = tc.Recalibrator.from_json(text)
    assert (r.rounds, r.unresolved, len(r.groups)) == (301, 5, 5)
    assert [int(ticket) for ticket in r.awaited] == [3, 5, 7, 8, 9]
    assert with_rows(r) == json.loads(text)["state"]


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("awaited", 34, "has another length"),
        ("awaited", -1, "at most 100000"),
        ("awaited", 10**9, "at most 100000"),
        ("awaited", 35.0, "at most 100000"),
        ("notes", 10**6, "notes of a saved ticket"),
        ("notes", -4, "notes of a saved ticket"),
        ("notes", 4, "has another length"),
        ("issued", 42, "must be in order"),
        ("issued", -1, "must be from 0"),
        ("table", 7, "must be a str"),
        ("table", "", "corrupted"),
        ("table", "!!!!", "corrupted"),
        ("table", "AAAA", "corrupted"),
        ("digits", None, "must be a str"),
        ("digits", "AAAA", "has another length"),
        ("digits", "A", "corrupted"),
    ],
)
def test_impossible_tables_of_tickets_are_refused(entry: str, value: Any, message: str) -> None:
    r = many_tickets()
    before = r.to_json()
    with pytest.raises(tc.StateError, match=message):
        r.load(replaced(r.state(), ("tickets", entry), value))
    assert r.to_json() == before


@settings(max_examples=200)
@given(data=st.data())
def test_a_changed_table_of_tickets_is_refused_or_leads_to_a_sound_state(data: st.DataObject) -> None:
    r = many_tickets()
    before, state = r.to_json(), r.state()
    entry = data.draw(st.sampled_from(["table", "digits"]))
    content = base64.b64decode(state["tickets"][entry])
    table = bytearray(zlib.decompress(content) if entry == "table" else content)
    at = data.draw(st.integers(0, len(table) - 1))
    table[at] ^= data.draw(st.integers(1, 255))
    packed = base64.b64encode(zlib.compress(bytes(table)) if entry == "table" else table).decode()
    try:
        r.load(replaced(state, ("tickets", entry), packed))
    except tc.StateError:
        assert r.to_json() == before
        return
    assert_sound(r)


def test_a_mix_of_mixes_of_mixes_is_refused() -> None:
    entries = json.loads(tc.Recalibrator().to_json())
    hint: dict[str, Any] = {"kind": "Identity"}
    for _ in range(400):
        hint = {"kind": "Mix", "hints": [hint]}
    entries["config"]["hint"] = hint
    with pytest.raises(tc.StateError):
        tc.Recalibrator.from_json(sealed(entries))


def test_numbers_too_long_to_print_are_refused() -> None:
    guard = tc.Guard(grid=20)
    entries = json.loads(guard.to_json())
    entries["state"]["spent"] = [int("9" * 4300)] * 20
    with pytest.raises(tc.StateError, match="spent of cell 0"):
        tc.Guard.from_json(sealed(entries))


@pytest.mark.parametrize("change", [-1, 1])
def test_tickets_count_for_what_they_are_worth(change: int) -> None:
    r = tc.Recalibrator(hint=hints.Identity(), nudge=False)
    for score in (0.9, 0.3, 0.5):
        r.issue(score, group="a")
    r.issue(0.7, group="b")
    entries = json.loads(r.to_json())
    assert tc.Recalibrator.from_json(sealed(entries)).to_json() == r.to_json()
    entries["state"]["guards"][1]["unknown"] += change
    with pytest.raises(tc.StateError, match="unknown of a guard must be that of its tickets"):
        tc.Recalibrator.from_json(sealed(entries))
    r.give_up(1)
    entries = json.loads(r.to_json())
    entries["state"]["guards"][1]["unknown"] += change * 2**40
    with pytest.raises(tc.StateError, match="unknown of a guard must be that of its tickets"):
        tc.Recalibrator.from_json(sealed(entries))


def test_what_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tc.HorizonFree()
    monkeypatch.setattr(state, "_LONGEST", len(f.to_json()))
    assert tc.HorizonFree.from_bytes(f.to_bytes()).to_json() == f.to_json()
    monkeypatch.setattr(state, "_LONGEST", len(f.to_json()) - 1)
    with pytest.raises(tc.StateError, match="save it as JSON"):
        f.to_bytes()
