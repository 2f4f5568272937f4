"""`truecast measure`, `distance` and `report`: figures as in Python, and every option."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click import Option
from click.testing import CliRunner, Result

import truecast as tc
from truecast.cli import main

RNG = np.random.default_rng(4)
TRUTH = RNG.random(3000).round(2)
FRAME = pl.DataFrame(
    {
        "old": TRUTH,
        "new": (TRUTH * 0.8 + 0.1).round(3),
        "happened": (RNG.random(3000) < TRUTH).astype(int),
        "place": RNG.choice(["Rome", "Oslo", "<b>"], 3000),
        "times": RNG.integers(0, 4, 3000),
        "part": RNG.random(3000),
    }
)
Y, OLD, NEW = (FRAME[name].to_numpy() for name in ("happened", "old", "new"))
COLUMNS = ["--outcome", "happened", "--score", "old"]


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("scores.csv")
    FRAME.write_parquet("scores.parquet")


def rows(text: str) -> dict[str, list[str]]:
    """The entries of a printed table, by the name of their line."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 1}


@pytest.mark.slow("measures several scores")
@pytest.mark.parametrize("file", ["scores.csv", "scores.parquet"])
def test_several_scores_side_by_side_with_the_figures_of_python(file: str) -> None:
    done = run("measure", file, "--outcome", "happened", "--score", "old", "--score", "new")
    assert (done.exit_code, done.stderr) == (0, "")
    found, reports = rows(done.stdout), (tc.measure(Y, OLD), tc.measure(Y, NEW))
    assert ["old", "new"] in [line.split() for line in done.stdout.splitlines()]
    assert found["rounds"] == ["3,000", "3,000"]
    assert found["mean forecast"] == [f"{report.mean_forecast:.6f}" for report in reports]
    for about, figures in reports[0].figures.items():
        for name in figures:
            assert found[name.strip()] == [
                f"{report.figures[about][name]:.6f}" for report in reports
            ], name
    sure = [tc.uncertainty(tc.smooth_calibration_error, Y, OLD, resamples=999)]
    sure.append(tc.uncertainty(tc.smooth_calibration_error, Y, NEW, resamples=999))
    # that of the verdict, which allows for all that was looked at, is said once
    assert "p-value" not in found
    assert found["if calibrated, by chance"] == [f"{each.if_calibrated:.6f}" for each in sure]
    assert found["90% interval from"] == [f"{each.lower:.6f}" for each in sure]
    assert found["miscalibration"] == [f"{report.log.miscalibration:.6f}" for report in reports]


def sentences(text: str) -> str:
    """What is printed before the table, in a line."""
    return " ".join(text.partition("\n\n")[0].split())


@pytest.mark.slow("makes a report")
def test_the_verdict_comes_first_is_that_of_the_page_and_says_where() -> None:
    bad_scores = (OLD / 2 + 0.3).round(3)
    FRAME.with_columns(bad=pl.Series(bad_scores)).write_csv("bad.csv")
    done = run("measure", "bad.csv", *COLUMNS, "--score", "bad")
    page = run("report", "bad.csv", *COLUMNS, "--score", "bad", "-o", "page.html")
    old, bad = page.stdout.splitlines()
    assert old == "old: No evidence against calibration"
    assert bad.startswith("bad: Not calibrated: ")
    said = sentences(done.stdout)
    assert said.startswith(f"{old}; p-value ")
    assert f"{bad}; p-value " in said
    html = re.sub("<[^>]*>", " ", Path("page.html").read_text())
    places = re.findall(r"Forecasts between .*? rounds\)\.", said)
    assert places
    assert all(place in html for place in places)
    data = json.loads(run("measure", "bad.csv", *COLUMNS, "--score", "bad", "--json").stdout)[
        "scores"
    ]
    assert f"bad: {data['bad']['verdict']['headline']}" == bad
    assert data["bad"]["verdict"]["sentences"] == places
    assert len(data["bad"]["verdict"]["where"]) == len(places)
    part = data["bad"]["verdict"]["where"][0]
    inside = (part["low"] <= bad_scores) & (part["high"] >= bad_scores)
    assert (part["rounds"], part["gap"]) == (
        inside.sum(),
        pytest.approx(Y[inside].mean() - bad_scores[inside].mean()),
    )
    assert data["bad"]["verdict"]["p_value"] < 0.01 < data["old"]["verdict"]["p_value"]


def test_no_verdict_without_resamples_and_none_on_chance_with_real_weights() -> None:
    assert run("measure", "scores.csv", *COLUMNS, "--resamples", "0").stdout.splitlines()[
        0
    ].split() == ["old"]
    data = json.loads(run("measure", "scores.csv", *COLUMNS, "--resamples", "0", "--json").stdout)
    assert data["scores"]["old"]["verdict"] is None
    weighted = run("measure", "scores.csv", *COLUMNS, "--weight", "part").stdout
    assert weighted.startswith("old: With real weights, chance cannot be judged.\n")


@pytest.mark.slow("runs the command many times")
def test_decisions_are_not_taken_for_probabilities_in_silence() -> None:
    frame = FRAME.with_columns(prediction=(FRAME["new"] > 0.5).cast(int), y="happened")
    frame.select("y", "prediction", y_proba="old").write_csv("both.csv")
    assert run("measure", "both.csv").stderr == "both.csv: outcome 'y', score 'y_proba'\n"
    frame.select("y", "prediction").write_csv("only.csv")
    for command in (["measure"], ["report"], ["distance", "--rtol", "0.5"]):
        assert (
            "prediction is 0 or 1 in every row"
            in run(*command[:1], "only.csv", *command[1:]).stderr
        )
    data = json.loads(run("measure", "only.csv", "--json").stdout)
    assert "All forecasts are 0 or 1" in data["scores"]["prediction"]["verdict"]["notes"][0]
    assert "in every row" not in run("measure", "both.csv").stderr


@pytest.mark.parametrize("command", main.commands)
def test_an_option_that_takes_one_value_is_refused_twice(command: str) -> None:
    words = {"recalibrate": ["scores.csv", "-o", "new.csv"], "arena": [], "serve": []}.get(
        command, ["scores.csv"]
    )
    once = [
        o
        for o in main.commands[command].params
        if isinstance(o, Option) and not (o.multiple or o.count)
    ]
    values = {"at": "lower", "cell": "walk", "forecaster": "aosa", "rounds": "20"}
    for option in (o for o in once if not o.is_flag):
        name, value = max(option.opts, key=len), values.get(option.name or "", "1")
        words_of = words if option.name != "output" else words[:1]
        done = run(command, *words_of, name, value, option.opts[0], value)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.endswith(
            f"Error: {name} must be given once, got it 2 times, last as {value!r}\n"
        )
    assert not Path("new.csv").exists()


def test_json_has_everything_and_no_words_that_are_not_json() -> None:
    # always wrong: infinite log loss
    frame = FRAME.with_columns(sure=(1 - FRAME["happened"]).cast(pl.Float64))
    frame.write_csv("sure.csv")
    done = run(
        "measure",
        "sure.csv",
        *COLUMNS,
        "--score",
        "sure",
        "--by",
        "place",
        "--resamples",
        "20",
        "--json",
    )
    data = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (data["rows"], data["skipped"], data["pooled"]) == (3000, 0, False)
    report = tc.measure(Y, OLD)
    assert data["scores"]["old"]["smooth_calibration_error"] == report.smooth_calibration_error
    assert data["scores"]["old"]["brier"]["score"] == report.brier.score
    sure = tc.uncertainty(tc.smooth_calibration_error, Y, OLD, resamples=20)
    assert data["scores"]["old"]["smooth_calibration_error_uncertainty"] == {
        name: getattr(sure, name)
        for name in ("estimate", "lower", "upper", "level", "if_calibrated")
    }
    assert data["scores"]["sure"]["log"]["score"] is None
    groups = {entry["group"]: entry["total"] for entry in data["groups"]["old"]}
    assert groups == dict(FRAME["place"].value_counts().rows())


def _places() -> dict[str, np.ndarray]:
    return {
        place: (FRAME["place"] == place).to_numpy()
        for place in FRAME["place"].unique(maintain_order=True)
    }


def test_groups_are_measured_each() -> None:
    done = run("measure", "scores.csv", *COLUMNS, "--by", "place")
    found = rows(done.stdout[done.stdout.index("old: by group") :])
    assert found["group"] == [
        "rounds",
        "outcome",
        "forecast",
        "Brier",
        "error",
        "chance",
        "p-value",
    ]
    for place, at in _places().items():
        figures = [Y[at].mean(), OLD[at].mean(), tc.brier_score(Y[at], OLD[at])]
        figures.append(tc.smooth_calibration_error(Y[at], OLD[at]))
        assert found[place][:5] == [f"{at.sum():,}", *(f"{figure:.4f}" for figure in figures)]
    tallies = {place: tc.Tally.from_predictions(Y[at], OLD[at]) for place, at in _places().items()}
    overview = tc.plot.group_overview(tallies, resamples=200)
    for place, adjusted in zip(overview.names, overview.adjusted, strict=True):
        assert found[place][-1] == ("<0.0001" if adjusted < 1e-4 else f"{adjusted:.3g}")
    assert (overview.adjusted != overview.p_value).any()
    assert "adjusted for 3 groups (Holm)" in done.stdout
    done = run("measure", "scores.csv", *COLUMNS, "--by", "place", "--resamples", "0")
    assert "nan" in rows(done.stdout[done.stdout.index("old: by group") :])["Rome"]


def test_groups_in_json_with_what_chance_would_do() -> None:
    data = json.loads(run("measure", "scores.csv", *COLUMNS, "--by", "place", "--json").stdout)
    tallies = {place: tc.Tally.from_predictions(Y[at], OLD[at]) for place, at in _places().items()}
    overview = tc.plot.group_overview(tallies, resamples=200, tested=1000)
    for at, entry in enumerate(data["groups"]["old"]):
        assert entry["group"] == overview.names[at]
        assert entry["smooth_calibration_error"] == overview.error[at]
        assert entry["smooth_calibration_error_uncertainty"] == {
            "if_calibrated": overview.chance[at],
            "p_value": overview.p_value[at],
            "adjusted_p_value": overview.adjusted[at],
        }
    assert len(data["groups"]["old"]) == 3
    done = run("measure", "scores.csv", *COLUMNS, "--by", "place", "--json", "--resamples", "0")
    sure = json.loads(done.stdout)["groups"]["old"][0]["smooth_calibration_error_uncertainty"]
    assert set(sure.values()) == {None}


def test_names_of_groups_and_scores_cannot_break_the_table() -> None:
    names = ["", "a\nb", "\x1b[31mred", "(none)", None, "x" * 300, " 7 ", "plain"]
    frame = pl.DataFrame({"y": [0, 1] * 8, "score\nof mine": [0.2, 0.9] * 8, "g": [*names, *names]})
    frame.write_parquet("odd.parquet")
    done = run(
        "measure",
        "odd.parquet",
        "--outcome",
        "y",
        "--score",
        "score\nof mine",
        "--by",
        "g",
        "--resamples",
        "20",
    )
    table = done.stdout[done.stdout.index("by group") :].splitlines()[2:-3]
    names = sorted(re.split(r"  +(?=\d)", line)[0] for line in table)
    (long,) = (name for name in names if name.startswith("x"))
    assert re.fullmatch("x+\u2026x+", long)
    assert names == sorted(
        ["''", "'a\\nb'", "'\\x1b[31mred'", "'(none)'", "(none)", long, "' 7 '", "plain"]
    )
    assert {len(line) for line in table} == {80}
    assert done.stdout.startswith("'score\\nof mine': ")
    assert "'score\\nof mine'" in [line.strip() for line in done.stdout.splitlines()]


def test_groups_beyond_those_for_which_chance_is_simulated_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # by its name there is the command
    monkeypatch.setattr(import_module("truecast.cli.measure"), "_TESTED", 2)
    done = run("measure", "scores.csv", *COLUMNS, "--by", "place", "--resamples", "20")
    assert done.stdout.endswith("p-value: adjusted for 3 groups (Holm); nan after the first 2\n")
    assert [line.split()[-1] == "nan" for line in done.stdout.splitlines()[-6:-3]] == [
        False,
        False,
        True,
    ]


def test_weights() -> None:
    whole = run("measure", "scores.parquet", *COLUMNS, "--weight", "times")
    report = tc.measure(Y, OLD, sample_weight=FRAME["times"].to_numpy())
    assert rows(whole.stdout)["rounds"] == [f"{report.total:,}"]
    assert rows(whole.stdout)["Brier score"] == [f"{report.brier.score:.6f}"]
    real = run("measure", "scores.csv", *COLUMNS, "--weight", "part")
    report = tc.measure(Y, OLD, sample_weight=FRAME["part"].to_numpy())
    assert rows(real.stdout)["smooth calibration error"] == [
        f"{report.smooth_calibration_error:.6f}"
    ]
    assert rows(real.stdout)["weight"] == [f"{report.total:,}"]
    assert "p-value" not in rows(real.stdout)  # real weights cannot be resampled


def test_no_resamples_no_chance() -> None:
    assert "p-value" not in run("measure", "scores.csv", *COLUMNS, "--resamples", "0").stdout
    done = run("measure", "scores.csv", *COLUMNS, "--resamples", "-1")
    assert (done.exit_code, "--resamples" in done.stderr) == (2, True)


def test_columns_are_guessed_and_said() -> None:
    FRAME.select(y="happened", P="old", other="new").write_csv("guess.csv")
    done = run("measure", "guess.csv")
    assert done.stderr == "guess.csv: outcome 'y', score 'P'\n"
    assert rows(done.stdout)["Brier score"] == [f"{tc.brier_score(Y, OLD):.6f}"]
    done = run("measure", "scores.csv", "--outcome", "happened")
    assert done.exit_code == 2
    assert done.stderr == (
        "Error: scores.csv has no column whose name suggests the score: name it with --score; "
        "it has old, new, place, times, part\n"
    )


@pytest.mark.parametrize("columns", [["--outcome", "old", "--score", "old"], ["--score", "y"]])
def test_a_column_is_not_measured_against_itself(columns: list[str]) -> None:
    FRAME.select("old", y="happened").write_csv("two.csv")
    done = run("measure", "two.csv", *columns)
    said = (
        f"Error: two.csv cannot have outcome and score in one column: got {columns[-1]!r} "
        "for both\n"
    )
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", said)


def test_bad_rows_are_skipped_if_asked_for_and_counted() -> None:
    text = FRAME.select("happened", "old").write_csv() + "1,nan\n2,0.5\n,0.1\n1\n"
    refused = run("measure", "-", *COLUMNS, text=text)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert (
        refused.stderr
        == "Error: standard input, line 3002: old must be a probability from 0 to 1, got 'nan': if "
        "the value is missing, use --skip-bad to leave such rows out\n"
    )
    done = run("measure", "-", *COLUMNS, "--skip-bad", text=text)
    assert done.stderr == "standard input: 4 bad rows skipped, 3,000 kept\n"
    assert rows(done.stdout)["Brier score"] == [f"{tc.brier_score(Y, OLD):.6f}"]


def test_nothing_but_bad_rows_is_refused_in_any_case() -> None:
    for command in ("measure", "report", "distance", "forecast"):
        columns = COLUMNS[:2] if command == "forecast" else COLUMNS
        done = run(command, "-", *columns, "--skip-bad", text="happened,old\n7,7\n,\n")
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.endswith("Error: standard input has no good row: all 2 were skipped\n")


def test_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("truecast.files.tallies"), "_MOST_GROUPS", 2)
    done = run("measure", "scores.csv", *COLUMNS, "--by", "place")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: scores.csv has more than 2 groups in column 'place'\n",
    )


def test_groups_with_weights() -> None:
    data = json.loads(
        run(
            "measure", "scores.csv", *COLUMNS, "--by", "place", "--weight", "times", "--json"
        ).stdout
    )
    totals = dict(FRAME.group_by("place").agg(pl.col("times").sum()).rows())
    assert {entry["group"]: entry["total"] for entry in data["groups"]["old"]} == totals


def test_so_many_distinct_scores_that_they_are_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("truecast.files.tallies")  # by its name there is the function
    monkeypatch.setattr(module, "MOST_FORECASTS", 64)
    monkeypatch.setattr(module.GrowingTally.add, "__kwdefaults__", {"most": 64})
    done = run("measure", "scores.csv", "--outcome", "happened", "--score", "new")
    assert "near ones were pooled" in done.stderr
    assert abs(float(rows(done.stdout)["Brier score"][0]) - tc.brier_score(Y, NEW)) < 1 / 64


def test_groups_share_the_memory_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("truecast.files.tallies")
    monkeypatch.setattr(module, "MOST_FORECASTS", 64)
    monkeypatch.setattr(module, "_LEAST_FORECASTS", 8)
    data = json.loads(
        run("measure", "scores.csv", *COLUMNS, "--by", "place", "--resamples", "0", "--json").stdout
    )
    forecasts = {entry["group"]: entry["forecasts"] for entry in data["groups"]["old"]}
    first, second, third = _places()
    assert (forecasts[first] <= 64, forecasts[second] <= 32, forecasts[third] <= 21) == (
        True,
        True,
        True,
    )
    assert data["pooled"]


def test_distance_is_that_of_python_and_its_witness_can_be_checked() -> None:
    FRAME[:400].write_csv("few.csv")
    done = run("distance", "few.csv", *COLUMNS, "--witness", "nearest.csv")
    exact = tc.calibration_distance(Y[:400], OLD[:400])
    assert " ".join(done.stdout.split()).startswith(str(exact))
    assert f"Brier score {tc.brier_score(Y[:400], OLD[:400]):.6f}" in done.stdout
    moves = pl.read_csv("nearest.csv")
    assert moves["rounds"].sum() == 400
    far = ((moves["forecast"] - moves["nearest"]).abs() * moves["rounds"]).sum() / 400
    assert far == pytest.approx(exact.upper, abs=1e-12)
    groups = moves.group_by("nearest").agg(
        share=(pl.col("outcome") * pl.col("rounds")).sum() / pl.col("rounds").sum()
    )
    assert (groups["nearest"] == groups["share"]).all()  # calibrated
    start = (
        moves.group_by("forecast", "outcome")
        .agg(pl.col("rounds").sum())
        .sort("forecast", "outcome")
        .rows()
    )
    counted = FRAME[:400].group_by("old", "happened").len().sort("old", "happened").rows()
    assert start == counted
    data = json.loads(run("distance", "few.csv", *COLUMNS, "--json").stdout)
    assert (data["exact"], data["rounds"], data["upper"]) == (True, 400, exact.upper)


def test_distance_within_limits() -> None:
    done = run("distance", "scores.csv", *COLUMNS, "--rtol", "0.5", "--json")
    data = json.loads(done.stdout)
    assert data["upper"] - data["lower"] <= 0.5 * data["upper"]
    assert data["lower_total"] == pytest.approx(3000 * data["lower"])
    for limit, value in (("time", "0.001"), ("memory", "1")):
        done = run("distance", "scores.csv", *COLUMNS, f"--{limit}-limit", value, "--json")
        assert json.loads(done.stdout)["ended"] == limit
    weighted = json.loads(
        run(
            "distance", "scores.csv", *COLUMNS, "--weight", "times", "--rtol", "0.9", "--json"
        ).stdout
    )
    assert weighted["rounds"] == FRAME["times"].sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--rtol", "-1"],
            "--rtol must be 0, for the exact distance, or a number above 0 and below 1, got -1.0",
        ),
        (["--time-limit", "nan"], "--time-limit must be"),
        (["--weight", "part"], "--weight must be a column of whole numbers"),
        (
            ["--witness", "no/w.csv"],
            "no/w.csv cannot be written (--witness): there is no folder 'no'",
        ),
    ],
)
def test_distance_refuses(options: list[str], message: str) -> None:
    done = run("distance", "scores.csv", *COLUMNS, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.slow("makes a report")
def test_report_is_a_page_about_the_scores_and_groups() -> None:
    options = [
        "--score",
        "new",
        "--by",
        "place",
        "--title",
        "Rain & <sun>",
        "--weight",
        "times",
        "-o",
        "page.html",
    ]
    done = run("report", "scores.csv", *COLUMNS, *options)
    assert done.exit_code == 0, done.output
    assert done.stderr == "report written to page.html\n"
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["old", "new"]
    page = Path("page.html").read_text()
    assert "Rain &amp; &lt;sun&gt;" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert len(page) < 300_000
    assert run("report", "scores.csv", *COLUMNS).exit_code == 0
    assert "scores.csv" in Path("report.html").read_text()
    done = run("report", "scores.csv", *COLUMNS, "-o", "no/page.html")
    assert (done.exit_code, "no/page.html cannot be written (-o)" in done.stderr) == (2, True)


def test_one_score_by_group_and_skipped_rows_in_the_report() -> None:
    text = FRAME.write_csv() + "9,9,9,9,9,9\n"
    Path("bad.csv").write_text(text)
    done = run("report", "bad.csv", *COLUMNS, "--by", "place", "--skip-bad")
    assert done.exit_code == 0, done.output
    assert "bad.csv: 1 bad row skipped, 3,000 kept" in done.stderr
    page = re.sub("<[^>]*>", " ", Path("report.html").read_text())
    assert "Oslo" in page
    assert re.search(r"rows skipped\s+1\b", page)
    assert re.search(r"outcome\s+happened\b", page)
    assert re.search(r"\bplace\b", page)


@pytest.mark.slow("starts the command")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal that a test can read")
def test_progress_is_shown_on_a_terminal_and_nowhere_else() -> None:
    import pty

    command = [sys.executable, "-m", "truecast", "measure", "scores.csv", *COLUMNS]
    ours, theirs = pty.openpty()
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True).stdout
    os.close(theirs)
    bar = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "counting" in bar
    assert "3,000 rows" in bar
    plain = subprocess.run(command, capture_output=True, check=True)
    assert (plain.stdout, plain.stderr) == (shown, b"")


def test_without_polars_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['polars'] = None; from truecast.cli import main; "
        "main(['measure', 'scores.csv'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: reading files needs Polars: pip install 'truecast[cli]'\n"


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("polars", ["recalibrate", "examples/scores.csv", "-o", "out.csv"], "cli"),
        ("polars", ["watch", "examples/scores.csv", "--once"], "cli"),
        ("msgspec", ["serve", "--data", "no-folder"], "serve"),
        ("msgspec", ["journal", "verify", "--data", "no-folder"], "serve"),
        (
            "psycopg",
            ["journal", "verify", "--database", "postgresql://nobody@localhost/x"],
            "postgres",
        ),
    ],
)
def test_without_an_extra_it_says_what_to_install(
    module: str, words: list[str], extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; from truecast.cli import main; main({words})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: this needs {module}, which is not installed: pip install 'truecast[{extra}]'\n"
    )


@pytest.mark.parametrize("times", ["7", "-1", "1000001"])
def test_too_few_simulations_are_refused_by_their_option(times: str) -> None:
    done = run("measure", "scores.csv", *COLUMNS, f"--resamples={times}")
    said = (
        f"Invalid value for '--resamples': {times} is neither 0 (no verdict) nor from 20 "
        "to 1,000,000"
    )
    assert (done.exit_code, said in done.stderr) == (2, True)


def test_percentages_that_are_none_are_remarked_on() -> None:
    Path("fractions.csv").write_text("y,p\n1,0.7\n0,0.2\n1,1\n")
    said = (
        "fractions.csv: p is at most 1 %; if these are probabilities from 0 to 1, leave "
        "out --percent\n"
    )
    done = run(
        "measure",
        "fractions.csv",
        "--outcome",
        "y",
        "--score",
        "p",
        "--percent",
        "--resamples",
        "0",
    )
    assert (done.exit_code, done.stderr) == (0, said)
    Path("fractions.csv").write_text("y,p\n1,70\n0,0.2\n")
    assert not run("measure", "fractions.csv", "--outcome", "y", "--score", "p", "--percent").stderr


def test_a_column_of_dates_is_not_taken_for_the_score() -> None:
    Path("rain.csv").write_text("day,rain\n2031-02-03,1\n2031-02-04,0\n")
    done = run("measure", "rain.csv", "--outcome", "rain")
    said = "has no column of probabilities: name one with --score; it has day, rain. For outcomes"
    assert (done.exit_code, said in done.stderr) == (2, True)
    Path("rain.csv").write_text('chances,rain\n"12,5 %",1\n')
    assert "use --decimal , --percent" in run("measure", "rain.csv", "--outcome", "rain").stderr


def test_a_title_needs_a_page() -> None:
    done = run("recalibrate", "scores.csv", "-o", "out.csv", "--title", "Mine")
    assert (
        done.exit_code,
        "--title is for the page, so it needs --report FILE" in done.stderr,
    ) == (
        2,
        True,
    )
    assert not Path("out.csv").exists()
