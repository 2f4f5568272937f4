"""`truecast measure` and `truecast report` on files of several classes."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import truecast as tc
from truecast.cli import main
from truecast.report.class_advice import class_advice
from truecast.report.class_findings import find_classes
from truecast.report.context import Context
from truecast.report.verdict import proved_kind

NAMES = ("home", "draw", "away")
TALLIES = import_module("truecast.files.tallies")  # the package has a function of that name


def games(rounds: int = 300, seed: int = 0) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), rounds)
    y = np.minimum((rng.random((rounds, 1)) > np.cumsum(rows, axis=1)).sum(axis=1), 2)
    return [NAMES[k] for k in y], rows


def frame(prefix: str = "p_", **more: object) -> pl.DataFrame:
    y, rows = games()
    columns = {prefix + name: rows[:, k] for k, name in enumerate(NAMES)}
    return pl.DataFrame({"result": y} | columns | more)


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [*words])
    return result.exit_code, result.stdout, result.stderr


def measured(path: Path, *words: str) -> dict:
    code, out, err = run("measure", str(path), "--json", *words)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--outcome", "result", "--scores", "p_home,p_draw,p_away"),
        ("--classes", "home, draw, away"),
    ],
)
def test_figures_are_those_of_python(tmp_path: Path, kind: str, words: tuple[str, ...]) -> None:
    path = tmp_path / f"games.{kind}"
    write = {"csv": "write_csv", "parquet": "write_parquet", "json": "write_ndjson"}[kind]
    getattr(frame(), write)(path)
    data = measured(path, "--resamples", "0", *words)
    y, rows = games()
    expected = tc.measure(y, rows, labels=NAMES).to_dict()
    assert data["labels"] == list(NAMES)
    for name in ("brier", "log", "classwise", "top_label", "confidence", "accuracy"):
        assert data[name] == expected[name], name
    table = tc.ClassTally.from_predictions(y, rows, labels=NAMES).confusion
    assert data["confusion"] == table.tolist()


def test_chunks_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame().write_csv(tmp_path / "games.csv")
    whole = measured(tmp_path / "games.csv", "--resamples", "20")
    monkeypatch.setattr(TALLIES, "_ROWS", 7)
    assert measured(tmp_path / "games.csv", "--resamples", "20") == whole


def test_classes_may_be_named_otherwise_and_be_numbers(tmp_path: Path) -> None:
    y, rows = games()
    numbers = [NAMES.index(one) for one in y]
    table = pl.DataFrame({"label": numbers} | {f"prob {k}": rows[:, k] for k in range(3)})
    table.write_csv(tmp_path / "f.csv")
    guessed = measured(tmp_path / "f.csv", "--resamples", "0")
    assert guessed["labels"] == ["0", "1", "2"]
    short = pl.DataFrame({"label": [one[0].upper() for one in y]}).hstack(table.drop("label"))
    short.write_csv(tmp_path / "g.csv")
    scores = "prob 0,prob 1,prob 2"
    named = measured(
        tmp_path / "g.csv", "--scores", scores, "--classes", "h,d,a", "--resamples", "0"
    )
    assert named["labels"] == ["h", "d", "a"]
    assert named["classwise"]["sum"] == guessed["classwise"]["sum"]


def test_a_class_that_comes_late_is_known_by_its_column(tmp_path: Path) -> None:
    y, _ = games()
    order = np.argsort([one == "away" for one in y], kind="stable")
    table = frame()[order.tolist()]
    table.write_csv(tmp_path / "f.csv")
    assert measured(tmp_path / "f.csv", "--resamples", "0")["labels"] == list(NAMES)


def test_weights_and_percentages(tmp_path: Path) -> None:
    y, rows = games()
    weight = np.arange(len(y)) % 3
    columns = {f"p_{name}": rows[:, k] * 100 for k, name in enumerate(NAMES)}
    pl.DataFrame({"result": y, "w": weight} | columns).write_csv(tmp_path / "f.csv")
    data = measured(tmp_path / "f.csv", "--weight", "w", "--percent", "--resamples", "0")
    expected = tc.measure(y, rows, labels=NAMES, sample_weight=weight)
    assert data["brier"]["score"] == pytest.approx(expected.brier.score)


def test_the_text_says_what_each_figure_is(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "games.csv")
    code, out, _ = run("measure", str(tmp_path / "games.csv"))
    assert code == 0
    assert out.startswith("No evidence against calibration.")
    assert "None of these says that whole vectors are calibrated" in out
    assert max(map(len, out.splitlines())) <= 80
    for name in NAMES:
        assert f"\n{name} " in out


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({"p_home": 0.9}, (), "line 2: the 3 scores (p_home, p_draw, p_away) must sum to 1"),
        ({"p_home": 1.9}, (), "line 2: p_home must be a probability from 0 to 1, got '1.9'"),
        ({"result": "abandoned"}, ("--scores", "p_home,p_draw,p_away"), "one of the classes home"),
        ({}, ("--scores", "p_home,p_gone"), "has no column 'p_gone' (--scores)"),
        (
            {},
            ("--scores", "p_home,p_draw", "--classes", "a,b,c"),
            "as many classes (--classes) as columns of scores (--scores), got 3 and 2",
        ),
        ({}, ("--scores", "p_home,p_home"), "each class once"),
        (
            {},
            ("--classes", "home,lost"),
            "has no column for each class (--classes), such as 'lost'",
        ),
        ({}, ("--scores", "p_home,p_draw", "--score", "p_away"), "must not be given together"),
    ],
)
def test_mistakes_are_explained(
    tmp_path: Path, change: dict, words: tuple[str, ...], message: str
) -> None:
    table = frame()
    for name, value in change.items():
        table[0, name] = value
    table.write_csv(tmp_path / "games.csv")
    code, _, err = run("measure", str(tmp_path / "games.csv"), *words)
    assert code == 2
    assert message in " ".join(err.split())


def test_rows_are_normalized_or_skipped_on_request(tmp_path: Path) -> None:
    table = frame()
    table[0, "p_home"] = 0.0
    table.write_csv(tmp_path / "games.csv")
    assert measured(tmp_path / "games.csv", "--normalize", "--resamples", "0")["rows"] == 300
    data = measured(tmp_path / "games.csv", "--skip-bad", "--resamples", "0")
    assert (data["rows"], data["skipped"]) == (299, 1)


@pytest.mark.slow("simulates bands for three pictures")
def test_the_page_shows_every_class(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "games.csv")
    page = tmp_path / "page.html"
    code, out, _ = run("report", str(tmp_path / "games.csv"), "-o", str(page))
    assert (code, out) == (0, "No evidence against calibration.\n")
    html = page.read_text()
    assert html.count('class="chart"') == 3
    assert all(f">{name}</bdi>" in html for name in NAMES)
    assert "What was predicted, and what came" in html
    assert "whole vectors" in html


@pytest.mark.slow("makes pages")
def test_pages_of_many_classes_and_strange_names() -> None:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(30), 200)
    labels = ["<script>", "\u202eabc", *map(str, range(28))]
    page = tc.html_report(rng.integers(0, 30, 200).astype(str), rows, labels=[*map(str, range(30))])
    assert page.html.count('class="chart"') == 12
    y = [labels[k] for k in rng.integers(0, 30, 200)]
    page = tc.html_report(y, rows, labels=labels, resamples=20)
    assert "<script>" not in page.html.split("</style>")[1].split("<script>")[0]
    assert "\u202e" not in page.html
    with pytest.raises(tc.InputError, match="times must be left out beside several classes"):
        tc.html_report(y, rows, labels=labels, times=range(200))
    weighted = tc.html_report(y, rows, labels=labels, sample_weight=rng.random(200))
    assert "No verdict" in weighted.html


# Groups: each is measured by itself, and tested with the others in mind.

GROUPS = ["a", "b", None, "<i>"] * 75


def grouped(**more: object) -> pl.DataFrame:
    return frame(place=GROUPS, **more)


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
@pytest.mark.parametrize("resamples", ["0", "20"])
def test_each_group_is_measured_as_python_measures_it(
    tmp_path: Path, kind: str, resamples: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TALLIES, "_ROWS", 7)
    path = tmp_path / f"games.{kind}"
    write = {"csv": "write_csv", "parquet": "write_parquet", "json": "write_ndjson"}[kind]
    getattr(grouped(), write)(path)
    rows = measured(path, "--by", "place", "--resamples", resamples)["groups"]
    assert {row["group"] for row in rows} == set(GROUPS)
    y, p = games()
    for row in rows:
        at = [k for k, group in enumerate(GROUPS) if group == row["group"]]
        expected = tc.measure([y[k] for k in at], p[at], labels=NAMES).to_dict()
        for name in ("total", "brier", "log", "classwise", "top_label", "confidence"):
            assert row[name] == expected[name], name
        assert (row["p_value"] is None) == (resamples == "0")
    if resamples != "0":
        assert [row["p_value"] for row in rows] == sorted(row["p_value"] for row in rows)
        assert all(row["p_value"] <= row["adjusted_p_value"] for row in rows)


def test_a_group_that_is_off_is_first_and_marked(tmp_path: Path) -> None:
    y, _ = games()
    wrong = [NAMES[(NAMES.index(one) + 1) % 3] for one in y]
    result = [w if group == "b" else one for one, w, group in zip(y, wrong, GROUPS, strict=True)]
    table = grouped().with_columns(result=pl.Series(result))
    table.write_csv(tmp_path / "games.csv")
    rows = measured(tmp_path / "games.csv", "--by", "place")["groups"]
    assert rows[0]["group"] == "b"
    assert [row["adjusted_p_value"] < 0.05 for row in rows] == [True, False, False, False]
    assert rows[0]["if_calibrated"] < rows[0]["classwise"]["sum"]
    code, out, _ = run("measure", str(tmp_path / "games.csv"), "--by", "place")
    assert code == 0
    lines = out[out.index("by place, those with the most evidence") :].splitlines()
    assert [line.split()[0] for line in lines[1:6]][:2] == ["group", "b"]
    assert max(map(len, out.splitlines())) <= 80


def test_groups_of_real_weights_are_not_tested_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    weight = [0.0 if group == "a" else 1.5 if group == "b" else 2.0 for group in GROUPS]
    grouped(w=weight).write_csv(tmp_path / "games.csv")
    rows = measured(tmp_path / "games.csv", "--by", "place", "--weight", "w")["groups"]
    assert {row["group"]: row["total"] for row in rows} == {"b": 112.5, None: 150.0, "<i>": 150.0}
    assert all(row["p_value"] is None for row in rows)
    code, out, _ = run("measure", str(tmp_path / "games.csv"), "--by", "place", "--weight", "w")
    assert code == 0
    assert "those with the largest errors for their size first" in out
    assert "weight" in out


def test_too_many_groups_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TALLIES, "_MOST_GROUPS", 9)
    grouped().write_csv(tmp_path / "games.csv")
    code, _, err = run("measure", str(tmp_path / "games.csv"), "--by", "place")
    assert code == 2
    assert "has more than 3 groups of 3 classes in column 'place'" in err


@pytest.mark.slow("makes a page")
def test_the_page_has_the_groups(tmp_path: Path) -> None:
    grouped().write_csv(tmp_path / "games.csv")
    page = tmp_path / "page.html"
    code, _, err = run("report", str(tmp_path / "games.csv"), "--by", "place", "-o", str(page))
    assert code == 0, err
    html = page.read_text()
    assert "None of 4 groups stands out" in html
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    y, p = games()
    options = {"title": "Calibration of games.csv", "source": str(tmp_path / "games.csv")}
    same = tc.html_report(
        y,
        p,
        labels=NAMES,
        groups=GROUPS,
        group="place",
        outcome="result",
        score="p_home,p_draw,p_away",
        **options,
    )
    assert same.html == html


@pytest.mark.slow("makes pages")
def test_pages_before_and_after() -> None:
    y, p = games()
    r = tc.ClassRecalibrator(classes=NAMES)
    after = r.forecast_many(p, y)
    options = {"after": after, "certificate": r.certificate, "resamples": 20}
    page = tc.html_report(y, p, labels=NAMES, **options)
    assert page.html.count('class="chart"') == 6
    (verdict,) = page.verdicts.values()
    assert verdict.startswith("Before: ")
    assert "What is proved" in page.html
    tally, later = (tc.ClassTally.from_predictions(y, some, labels=NAMES) for some in (p, after))
    same = tc.html_report(tally, after=later, certificate=r.certificate, resamples=20)
    assert same.html == page.html
    sides = [
        {
            name: tc.ClassTally.from_predictions(
                [came for came, place in zip(y, GROUPS, strict=True) if place == name],
                some[[place == name for place in GROUPS]],
                labels=NAMES,
            )
            for name in dict.fromkeys(GROUPS)
        }
        for some in (p, after)
    ]
    by_place = tc.html_report(y, p, labels=NAMES, groups=GROUPS, **options).html
    counted = {"groups": sides[0], "groups_after": sides[1]}
    del options["after"]
    assert tc.html_report(tally, after=later, **counted, **options).html == by_place
    assert "Groups before and after recalibration" in by_place
    brier = tc.measure(sides[1]["a"]).brier.score
    assert f"<td>{brier:.3f}" in by_place
    for wrong, told in (
        ({"after": after[:-1]}, "must have a row for each of the 300 outcomes"),
        ({"after": tc.ClassTally.from_predictions(y[:-1], p[:-1], labels=NAMES)}, "300 rounds"),
        ({"certificate": tc.Recalibrator().certificate}, "of a recalibrator of several classes"),
        ({"groups": ["a"]}, "groups must"),
    ):
        with pytest.raises(tc.InputError, match=told):
            tc.html_report(y, p, labels=NAMES, **wrong)
    with pytest.raises(tc.InputError, match="groups must be a mapping from groups to ClassTally"):
        tc.html_report(tally, groups=["a"] * 300)
    with pytest.raises(tc.InputError, match="certificate must be of outcomes 0 or 1"):
        tc.html_report([0, 1], [0.25, 0.5], certificate=r.certificate)


def advised(
    p: np.ndarray, y: list[str], after: np.ndarray | None = None, **given: object
) -> list[str]:
    tally = tc.ClassTally.from_predictions(y, p, labels=NAMES)
    later = None if after is None else tc.ClassTally.from_predictions(y, after, labels=NAMES)
    context = Context("", None, None, False, None, 0, None, None)
    finding = find_classes(tally, 20, after=later)
    found = class_advice(finding, replace(context, **given))
    return [f"{one.do} {one.line or one.why}" for one in found]


def test_the_page_says_what_to_do() -> None:
    y, rows = games()
    wrong = np.roll(rows, 1, axis=1)
    flat = np.full_like(rows, 1 / 3)
    assert advised(rows, y)[0].startswith("Leave the forecasts as they are. Errors of a class up")
    assert advised(wrong, y) == [
        "Recalibrate. p = tc.Recalibrator(classes=names).forecast_many(scores, outcomes)"
    ]
    line = "Recalibrate. truecast recalibrate a.csv --outcome y --scores "
    names = {"source": "a.csv", "outcome": "y"}
    of_columns = advised(wrong, y, score="p_home,p_draw,p_away", **names)
    assert of_columns == [f"{line}p_home,p_draw,p_away -o recalibrated.csv"]
    of_letters = advised(wrong, y, score="h,d,a", **names)
    assert of_letters == [f"{line}h,d,a --classes home,draw,away -o recalibrated.csv"]
    assert advised(wrong, y, rows)[0].startswith("Use the recalibrated forecasts. ")
    assert advised(rows, y, wrong)[0].startswith("Keep the forecasts as they were. ")
    certain = np.eye(3)[[NAMES.index(one) for one in y]]
    certain[0] = np.roll(certain[0], 1)
    assert "Keep forecasts away from 0 and 1." in advised(certain, y)[1]
    assert advised(rows, y, flat)[0].startswith("Keep the forecasts as they were. ")


@pytest.mark.parametrize(
    ("p", "kind", "headline"),
    [
        (0.04, "none", "No evidence against calibration"),
        (0.01, "weak", "Weak evidence against calibration"),
        (0.003, "off", "Not calibrated: home is off"),
    ],
)
def test_verdicts_are_as_sure_as_those_of_two_outcomes(p: float, kind: str, headline: str) -> None:
    y, rows = games()
    found = find_classes(tc.ClassTally.from_predictions(y, rows, labels=NAMES), 20)
    some = replace(found.sure, p_value=np.array([p / 3, 0.5, 0.5]))
    judged = replace(
        found,
        sure=some,
        sure_top=replace(some, p_value=np.array([1.0, 1.0, 1.0])),
        sure_confidence=found.sure_confidence._replace(p_value=1.0),
    )
    assert judged.p_value == pytest.approx(3 * p)
    assert (judged.kind, judged.headline) == (kind, headline)
    assert proved_kind(len(y), judged.p_value) == kind
    said = {"none": "Leave the forecasts", "weak": "Look again", "off": "Recalibrate"}[kind]
    context = Context("", None, None, False, None, 0, None, None)
    assert class_advice(judged, context)[0].do.startswith(said)


def test_a_model_that_is_a_little_too_sure_of_each_of_many_classes_is_found() -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([0.3] * 30, 1_000)
    y = (truth.cumsum(axis=1) < rng.random((1_000, 1))).sum(axis=1).clip(max=29)
    for power, kind in ((1.5, "off"), (1.0, "none")):
        rows = truth**power / (truth**power).sum(axis=1, keepdims=True)
        found = find_classes(tc.ClassTally.from_predictions(y, rows), 99)
        assert (found.kind, found.confidence_off) == (kind, kind == "off")
        if kind == "off":
            assert found.off == found.off_top == ()
            assert found.headline == "Not calibrated: too sure of the class that is predicted"


def test_a_class_that_is_off_only_where_it_is_predicted_has_a_sentence() -> None:
    """Where 2 is the most probable it comes seldom, and elsewhere more often than forecast."""
    rng = np.random.default_rng(2)
    top = rng.random(4_000) < 0.2
    rows = np.where(top[:, None], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2])
    truth = np.where(top[:, None], [0.39, 0.36, 0.25], [0.48, 0.285, 0.235])
    y = (truth.cumsum(axis=1) < rng.random((4_000, 1))).sum(axis=1)
    found = find_classes(tc.ClassTally.from_predictions(y, rows), 99)
    found = replace(found, sure=replace(found.sure, p_value=np.ones(3)))
    assert (found.off, found.off_top) == ((), (2,))
    assert found.headline == "Not calibrated: 2 is off where predicted"
    assert found.sentences[0].startswith(
        "Where 2 was predicted, with 40\xa0% on average, it came in 2"
    )
    page = tc.html_report(found.tally).html
    assert "those below 0.017, as there are 3 ways to look at the classes" in page


def test_a_class_that_is_right_on_average_is_said_to_be_off_where_it_is() -> None:
    rng = np.random.default_rng(1)
    p = rng.choice([0.2, 0.8], 4_000)
    y = (rng.random(4_000) < np.where(p > 0.5, 0.65, 0.35)).astype(int)
    found = find_classes(tc.ClassTally.from_predictions(y, np.column_stack([1 - p, p])), 99)
    assert any(
        said.startswith(
            "Where 1 was forecast with 80\xa0% or more, 80\xa0% on average, it came in 6"
        )
        for said in found.sentences
    )
