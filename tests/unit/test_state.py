"""Saved forecasters: what goes out comes back, and nothing else gets in."""

from __future__ import annotations

import copy
import json
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast import state


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
    monkeypatch.setattr(state, "_LONGEST", 100)
    with pytest.raises(tc.StateError, match="too early or too late"):
        tc.BentGrid.from_bytes(data)


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
