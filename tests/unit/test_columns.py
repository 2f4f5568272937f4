"""Which columns are taken where nobody said so."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from truecast.errors import FileError
from truecast.files import Names, guess, open_table

SCORES = """
    p P prob proba probs y_prob y_proba y_score y_pred y_hat yhat yprob confidence p_hat phat p-hat
    pHat probability Probability PROBABILITY pred_proba predProba predicted_probability
    predicted-probability predict_proba predict_proba_1 prob_1 proba_1 p_1 p1 model_proba model_p
    xgb_prob my-model-probability win_probability event_prob score scores Score model_score
    risk_score forecast forecasts prediction predictions predicted pred likelihood
    PredictedProbability predicted.probability p_true
""".split()  # noqa: SIM905 (a table to read)
OUTCOMES = """
    y Y y_true yTrue Y_TRUE ytrue y_test label Label labels true_label target Target actual actuals
    observed event outcome outcomes Outcome truth ground_truth ground-truth won win happened result
    success is_event class
""".split()  # noqa: SIM905
NEITHER = """
    id date day airport event_id event_date forecast_date prediction_time score_id label_name
    target_date model proba_0 prob_0 p0 y_proba_0 probability_no p_value forecast_error score_std
    prob_lower prob_upper outcome_type brier log_loss weight type yes x yp py
""".split()  # noqa: SIM905
DECISIONS, CHANCES, WORDS = [0, 1, 1, 0], [0.2, 0.0, 1.0, 0.7], ["a", "b", "a", "c"]


@pytest.mark.parametrize("name", [*SCORES, "predicted probability", "Model Score"])
def test_kin_of_a_score(name: str) -> None:
    assert guess("f", ["day", "y", name, "place"]) == Names("y", (name,))


@pytest.mark.parametrize("name", [*OUTCOMES, "true label"])
def test_kin_of_an_outcome(name: str) -> None:
    assert guess("f", ["day", name, "p", "place"]) == Names(name, ("p",))


@pytest.mark.parametrize("name", NEITHER)
def test_what_is_neither(name: str) -> None:
    assert guess("f", ["y", name, "p"]) == Names("y", ("p",))
    with pytest.raises(FileError, match="no column whose name suggests the outcome"):
        guess("f", ["a", name, "p"])
    with pytest.raises(FileError, match="no column whose name suggests the score"):
        guess("f", ["a", name, "y"])


@pytest.mark.parametrize(
    ("columns", "outcome", "score"),
    [
        ({"y": DECISIONS, "prediction": DECISIONS, "proba": CHANCES}, "y", "proba"),
        ({"y": DECISIONS, "y_pred": DECISIONS, "confidence": CHANCES}, "y", "confidence"),
        ({"y": DECISIONS, "home_score": [3, 1, 0, 2], "prob": CHANCES}, "y", "prob"),
        ({"y": DECISIONS, "prediction": WORDS, "prob": CHANCES}, "y", "prob"),
        (
            {"y": DECISIONS, "prediction": DECISIONS, "probability": ["20%", "0%", "100%", "70%"]},
            "y",
            "probability",
        ),
        ({"y": DECISIONS, "prediction": [False, True, True, True], "p": CHANCES}, "y", "p"),
        ({"event": WORDS, "won": DECISIONS, "p": CHANCES}, "won", "p"),
        (
            {"target": [1.5, 2.5, 0.0, 1.0], "label": [True, False, True, True], "p": CHANCES},
            "label",
            "p",
        ),
        ({"y": DECISIONS, "prediction": DECISIONS, "p": CHANCES, "place": WORDS}, "y", "p"),
        ({"age": CHANCES, "is_fraud": DECISIONS, "p": CHANCES}, "is_fraud", "p"),
        ({"confidence": CHANCES, "n": WORDS, "is_correct": DECISIONS}, "is_correct", "confidence"),
        ({"clickedAd": DECISIONS, "click_id": DECISIONS[:1] * 4, "p": CHANCES}, "clickedAd", "p"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_is_in_the_columns_decides(
    tmp_path: Path, columns: dict[str, list[object]], outcome: str, score: str, kind: str
) -> None:
    path, frame = str(tmp_path / f"f.{kind}"), pl.DataFrame(columns)
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[kind](
        path
    )
    with open_table(path) as table:
        assert guess("f", table.columns, sample=table.sample) == Names(outcome, (score,))
        chunks = list(table.chunks([score]))  # the sample was not taken away
        assert sum(len(chunk.frame) for chunk in chunks) == len(frame)


@pytest.mark.parametrize(
    ("columns", "option", "listed"),
    [
        ({"y": DECISIONS, "prob": CHANCES, "model_proba": CHANCES}, "score", "prob, model_proba"),
        (
            {"y": DECISIONS, "prediction": DECISIONS, "prob": CHANCES, "score": CHANCES},
            "score",
            "prob, score",
        ),
        (
            {"y": DECISIONS, "prediction": DECISIONS, "y_pred": DECISIONS},
            "score",
            "prediction, y_pred",
        ),
        ({"y": DECISIONS, "label": DECISIONS, "p": CHANCES}, "outcome", "y, label"),
        ({"y": WORDS, "label": WORDS, "p": CHANCES}, "outcome", "y, label"),
    ],
)
def test_where_nothing_decides_the_candidates_are_listed(
    tmp_path: Path, columns: dict[str, list[object]], option: str, listed: str
) -> None:
    pl.DataFrame(columns).write_csv(tmp_path / "f.csv")
    with open_table(str(tmp_path / "f.csv")) as table, pytest.raises(FileError) as error:
        guess("f", table.columns, sample=table.sample)
    reason = f"has several columns that may be the {option} ({listed}): name one with --{option}"
    assert str(error.value) == f"f {reason}"


def test_columns_that_were_given_for_something_else_are_not_taken() -> None:
    assert guess("f", ["y", "p", "score"], weight="p") == Names("y", ("score",), "p")
    assert guess("f", ["y", "class", "p"], group="class") == Names("y", ("p",), None, "class")
    with pytest.raises(FileError, match="has no column left for the score"):
        guess("f", ["y", "p"], weight="p")


def test_long_names_are_cut_in_the_middle() -> None:
    with pytest.raises(
        FileError, match=f"no column '{'a' * 29}\N{HORIZONTAL ELLIPSIS}{'b' * 28}' "
    ):
        guess("f", ["y", "p"], scores=["a" * 200 + "b" * 200])


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_is_inside_objects_is_said_not_to_be_read(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"id": WORDS, "result": [{"p": p} for p in CHANCES], "y": DECISIONS})
    path = str(tmp_path / f"f.{kind}")
    (frame.write_ndjson if kind == "jsonl" else frame.write_parquet)(path)
    told = "Only fields at the top of a row are read, not those inside result$"
    for taken in ({}, {"group": "id"}):
        with open_table(path) as table, pytest.raises(FileError, match=told):
            guess("f", table.columns, sample=table.sample, **taken)


def test_two_columns_of_zeros_and_ones_are_not_told_apart_by_such_words(tmp_path: Path) -> None:
    frame = pl.DataFrame({"churned": DECISIONS, "weekend": DECISIONS, "p": CHANCES})
    frame.write_csv(tmp_path / "f.csv")
    refused = pytest.raises(FileError, match="suggests the outcome: name it with --outcome; it has")
    with open_table(str(tmp_path / "f.csv")) as table, refused:
        guess("f", table.columns, sample=table.sample)
