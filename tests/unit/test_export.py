"""A frozen map: as close to the recalibrator as it says, jumps included, in JSON and ONNX."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecast as tc
from truecast.recalibrate import tracing
from truecast.recalibrate.tracing import interpolated, trace

MANY = 100_000
SIZES = (1_000, 20_000)


def trained(rounds: int, *, seed: int = 0, groups: bool = False, **options: Any) -> tc.Recalibrator:
    """Scores that are too extreme, and drift; some are rare, and a few exactly 0 and 1."""
    rng = np.random.default_rng(seed)
    truth = np.where(
        rng.random(rounds) < 0.2, 10.0 ** -(1 + 5 * rng.random(rounds)), rng.random(rounds)
    )
    scores = truth**2 / (truth**2 + (1 - truth) ** 2)
    scores[::97] = np.round(scores[::97])
    y = rng.random(rounds) < 0.9 * truth + 0.1 * np.linspace(0, 1, rounds)
    if options.get("scale") == "logit":
        inside = scores.clip(1e-12, 1 - 1e-12)
        scores = 3 * np.log(inside / (1 - inside))
    names = [("a", "b", ("a", "c"), None)[k % 4] for k in range(rounds)] if groups else None
    made = tc.Recalibrator(**options)
    made.forecast_many(scores, y, groups=names)
    return made


def asked(scale: str = "probability") -> dict[str, np.ndarray]:
    """Scores to compare at, 100,000 of each kind."""
    rng = np.random.default_rng(3)
    if scale == "logit":
        return {
            "near": rng.normal(0, 4, MANY),
            "far": rng.normal(0, 1e3, MANY),
            "grid": np.arange(MANY) / 1e3 - 50,
        }
    return {
        "uniform": rng.random(MANY),
        "near 0": 10.0 ** -(300 * rng.random(MANY)),
        "near 1": 1 - 10.0 ** -(16 * rng.random(MANY)),
        "grid": np.arange(MANY + 1) / MANY,
        "float32": rng.random(MANY, np.float32).astype(np.float64),
    }


def plain(function: Any) -> Any:
    """The function, all of one piece as far as is known."""
    return lambda x: (function(x), np.zeros(len(x), int))


def farthest(found: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(found, np.float64) - expected).max())


class Stairs:
    """A hint of one's own, with one step."""

    def predict(self, score: float) -> float:
        return 0.25 if score < 1 / 3 else 0.75

    def learn(self, score: float, outcome: int) -> None:
        pass

    def state(self) -> list[float]:
        return []

    def load(self, state: object) -> None:
        pass


@pytest.fixture(scope="module", params=SIZES)
def pair(request: pytest.FixtureRequest) -> tuple[tc.Recalibrator, tc.ScoreTable]:
    recalibrator = trained(request.param)
    return recalibrator, recalibrator.to_table()


@pytest.mark.slow("makes tables of thousands of knots")
def test_the_table_is_within_1e_6_of_the_recalibrator(pair) -> None:
    recalibrator, table = pair
    assert table.tolerance == 1e-6
    assert table.error <= 1e-6
    for kind, scores in asked().items():
        assert farthest(table(scores), recalibrator.predict_many(scores)) <= 1e-6, kind
    assert table(table.scores) == pytest.approx(table.probabilities, rel=0, abs=1e-15)
    assert farthest(table.probabilities, recalibrator.predict_many(table.scores)) == 0


@pytest.mark.slow("shares tables of thousands of knots")
def test_jumps_are_neighbouring_doubles(pair) -> None:
    """The map has steps: a straight line across them would be off by more."""
    recalibrator, table = pair
    near = np.flatnonzero(np.nextafter(table.scores[:-1], 2) == table.scores[1:])
    assert len(near) > 100
    left, right = table.scores[near], table.scores[near + 1]
    steps = recalibrator.predict_many(right) - recalibrator.predict_many(left)
    assert np.abs(steps).max() > 1e-5
    assert table(left).tolist() == table.probabilities[near].tolist()


@pytest.mark.slow("runs a model over 600,000 scores")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_says_what_the_recalibrator_says(pair, dtype: str) -> None:
    onnx = pytest.importorskip("truecast.adapters.onnx", reason="needs onnx")
    runtime = pytest.importorskip("onnxruntime")
    recalibrator, table = pair
    model = onnx.to_onnx(table, dtype=dtype).SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for kind, doubles in (asked() | {"knots": table.scores}).items():
        scores = doubles.astype(dtype)
        (said,) = session.run(["probability"], {"score": scores})
        assert said.dtype == np.dtype(dtype)
        exact = scores.astype(np.float64)
        assert farthest(said, recalibrator.predict_many(exact)) <= 1e-6, kind
        assert farthest(said, table(exact)) <= (2**-25 if dtype == "float32" else 1e-15), kind
    (said,) = session.run(None, {"score": np.array([math.nan, -3, 7], dtype)})
    assert np.isnan(said[0])
    assert said[1:] == pytest.approx([table(0.0), table(1.0)], rel=1e-7)


def test_onnx_refuses_what_it_cannot_write() -> None:
    onnx = pytest.importorskip("truecast.adapters.onnx", reason="needs onnx")
    table = tc.Recalibrator().to_table(tolerance=0.01)
    with pytest.raises(tc.InputError, match="dtype must be one of 'float32', 'float64', got 'int'"):
        onnx.to_onnx(table, dtype="int")
    with pytest.raises(tc.InputError, match="table must be a ScoreTable"):
        onnx.to_onnx(table.to_json())
    assert len(table) == 2  # the smallest: the search has one step
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        onnx.to_onnx(table, dtype="float64").SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    scores = np.linspace(0, 1, 11)
    assert session.run(None, {"score": scores})[0].tolist() == table(scores).tolist()


@pytest.mark.slow("makes several tables")
@pytest.mark.parametrize(
    "options",
    [
        {"scale": "logit"},
        {"nudge": False},
        {"hint": tc.hints.Identity()},
        {"hint": tc.hints.Isotonic()},
        {"hint": tc.hints.BinMeans(), "budget": 1.05},
        {"hint": Stairs()},
    ],
    ids=("logit", "no nudge", "identity", "isotonic", "bin means", "stairs"),
)
def test_any_hint_and_scale(options: dict[str, Any]) -> None:
    recalibrator = trained(300, **options)
    before = recalibrator.to_json()
    table = recalibrator.to_table(tolerance=1e-5)
    assert recalibrator.to_json() == before
    assert table.scale == options.get("scale", "probability")
    for kind, scores in asked(table.scale).items():
        some = scores[:: 10 if isinstance(options.get("hint"), Stairs) else 1]
        assert farthest(table(some), recalibrator.predict_many(some)) <= 1e-5, kind


@pytest.mark.slow("makes several tables")
@pytest.mark.parametrize("group", [None, "a", ("a", "c")])
def test_a_table_is_that_of_its_group(group: Any) -> None:
    recalibrator = trained(2_000, groups=True)
    table = recalibrator.to_table(group=group, tolerance=1e-4)
    scores = asked()["uniform"][:20_000]
    said = recalibrator.predict_many(scores, groups=[group] * len(scores))
    assert farthest(table(scores), said) <= 1e-4
    assert (table.group, table.rounds) == (group, 2_000)
    assert tc.ScoreTable.from_json(table.to_json()).group == group
    assert list(recalibrator.groups) == ["a", "b", "c"]  # nobody new


@pytest.mark.slow("makes a table")
def test_a_group_that_is_not_there_is_refused() -> None:
    rounds = {"scores": [0.2, 0.4, 0.6], "outcomes": [0, 1, 1], "groups": ["JFK", "LGA", 7]}
    r = tc.Recalibrator()
    r.forecast_many(**rounds)
    with pytest.raises(tc.InputError, match=r"its 3 groups \(perhaps 'JFK'\), or None.*got 'jfk'"):
        r.to_table(group=("LGA", "jfk"))
    with pytest.raises(tc.InputError, match=r"its 3 groups, or None for rounds of no group, got 8"):
        r.to_table(group=8)
    full = tc.Recalibrator(max_groups=3)  # beyond that, groups are not told apart
    full.forecast_many(**rounds)
    assert full.to_table(group="jfk", tolerance=0.1).group == "jfk"


@pytest.mark.slow("makes a table")
def test_a_table_stays_as_it_was() -> None:
    recalibrator = trained(300)
    table = recalibrator.to_table(tolerance=1e-3)
    scores = np.linspace(0, 1, 101)
    before = table(scores).tolist()
    recalibrator.forecast_many([0.5] * 500, [1] * 500)
    assert table(scores).tolist() == before
    assert abs(recalibrator.predict(0.5) - table(0.5)) > 0.05
    with pytest.raises(ValueError, match="read-only"):
        table.scores[0] = 1.0


@pytest.mark.slow("makes two tables")
def test_a_larger_tolerance_makes_a_smaller_table() -> None:
    recalibrator = trained(300)
    sizes = [len(recalibrator.to_table(tolerance=tolerance)) for tolerance in (1e-4, 1e-2)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_what_cannot_be_a_table_is_refused() -> None:
    both = tc.Recalibrator(hint=tc.hints.Experts(models=2))
    with pytest.raises(tc.InputError, match="hint must take one score to be a table"):
        both.to_table()
    for tolerance in (0, 1e-10, 0.2, "fine", math.nan):
        with pytest.raises(tc.InputError, match="tolerance must be a number from 1e-09 to 0.1"):
            tc.Recalibrator().to_table(tolerance=tolerance)
    with pytest.raises(tc.InputError, match="group"):
        tc.Recalibrator().to_table(group=1.5)
    table = tc.Recalibrator().to_table(tolerance=0.01)
    with pytest.raises(tc.InputError, match="scores"):
        table([0.5, 1.5])


@pytest.mark.slow("makes a table of thousands of knots")
def test_json_is_plain_and_comes_back_as_it_was() -> None:
    table = trained(300).to_table(tolerance=1e-3)
    text = table.to_json()
    plain = json.loads(text)
    assert plain["scores"] == table.scores.tolist()
    assert plain["probabilities"] == table.probabilities.tolist()
    assert plain["error"] == table.error <= 1e-3
    again = tc.ScoreTable.from_json(text)
    assert again.to_json() == text
    scores = asked()["uniform"].reshape(100, 1000)
    assert again(scores).tolist() == table(scores).tolist()
    assert repr(again).startswith(f"ScoreTable of {len(table):,} knots, within")


@pytest.fixture(scope="module")
def saved_table() -> dict[str, Any]:
    return tc.Recalibrator().to_table(tolerance=0.01).to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "else"}, "another format"),
        ({"version": 2}, "must have version 1"),
        ({"error": ...}, "all of its entries"),
        ({"scale": "percent"}, "the saved scale must be"),
        ({"scores": [0.0, "1"]}, "the saved scores must be floats"),
        ({"scores": [0.0, 1.0, 0.5]}, "the saved scores must increase"),
        ({"scores": [0.0, 2.0], "probabilities": [0.0, 1.0]}, "must be from 0 to 1"),
        ({"probabilities": [0.0, 1.5], "scores": [0.0, 1.0]}, "must be from 0 to 1"),
        ({"scores": [], "probabilities": []}, "at least two"),
    ],
)
def test_what_is_not_a_saved_table_is_refused(
    saved_table: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    saved = saved_table | change
    text = json.dumps({name: value for name, value in saved.items() if value is not ...})
    with pytest.raises(tc.StateError, match=message):
        tc.ScoreTable.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "{", None])
def test_what_is_no_json_is_refused(text: Any) -> None:
    with pytest.raises(tc.StateError, match="this is not a saved table"):
        tc.ScoreTable.from_json(text)


@pytest.mark.slow("asks 100,000 scores for each example")
@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1, exclude_min=True), st.floats(-1, 1)), min_size=1, max_size=6
    ),
    st.floats(-2, 2),
)
def test_a_line_with_steps_is_followed_on_both_sides_of_each(steps: list, slope: float) -> None:
    places = np.array([place for place, _ in steps])
    heights = np.array([height for _, height in steps])

    def stairs(x: np.ndarray) -> np.ndarray:
        return slope * x + (x[:, None] >= places) @ heights

    x, y, error = trace(plain(stairs), np.linspace(0, 1, 65), 1e-6)
    assert error <= 1e-6
    tests = np.sort(np.concatenate((places, np.nextafter(places, -1), np.linspace(0, 1, 1001))))
    tests = tests[tests >= 0]
    # steps so close that none of the 130,000 scores asked lies between them may be missed
    wide = np.diff(np.sort(places)).min(initial=1.0) > 1e-4
    assert not wide or farthest(interpolated(x, y, tests), stairs(tests)) <= 1e-6
    assert np.array_equal(y, stairs(x))


@pytest.mark.parametrize("width", [1e-3, 1e-9, 2.0**-53])
def test_pieces_tell_of_jumps_that_would_be_missed(width: float) -> None:
    """A bump that no probe meets: both sides are found, as the pieces differ."""

    def bump(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        piece = (x >= 1 / 3).astype(int) + (x >= 1 / 3 + width)
        return np.where(piece == 1, 0.75, 0.25), piece

    x, y, _ = trace(bump, np.linspace(0, 1, 65), 1e-6)
    tests = np.array([1 / 3, np.nextafter(1 / 3, 0), 1 / 3 + width / 2, 1 / 3 + width])
    assert interpolated(x, y, tests).tolist() == bump(tests)[0].tolist()


@pytest.mark.parametrize(
    "function", [np.sqrt, np.abs, lambda x: np.abs(x - 1 / 3), lambda x: x * 0.0, np.exp]
)
def test_smooth_functions_and_kinks_take_few_points(function: Any) -> None:
    x, y, error = trace(plain(function), np.linspace(0, 1, 65), 1e-6)
    tests = np.random.default_rng(0).random(50_000)
    assert farthest(interpolated(x, y, tests), function(tests)) <= 1e-6
    assert error <= 1e-6
    assert len(x) < 2_000


def test_what_is_too_jagged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_MOST", 1 << 12)

    def noise(x: np.ndarray) -> np.ndarray:
        return np.sin(1e9 * x * x)

    with pytest.raises(tc.InputError, match="tolerance must be larger"):
        trace(plain(noise), np.linspace(0, 1, 65), 1e-6)
