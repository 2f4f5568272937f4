"""Which columns of a file are those of several classes; what is said of files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from truecast.cli import main

GAMES = "home,0.5,0.3,0.2\naway,0.4,0.3,0.3\ndraw,0.25,0.5,0.25\n"


def run(tmp_path: Path, text: str, *words: str) -> tuple[int, str]:
    path = tmp_path / "games.csv"
    path.write_text(text)
    command, *options = words or ("measure",)
    result = CliRunner().invoke(main, [command, str(path), "--resamples", "0", *options])
    return result.exit_code, " ".join(result.stderr.replace(str(path), "FILE").split())


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (f"result,p_home,p_draw,p_away\n{GAMES}", "'p_home', 'p_draw', 'p_away'"),
        (f"Result,P_Home,P_Draw,P_Away\n{GAMES}", "'P_Home', 'P_Draw', 'P_Away'"),
        (f"result,home prob,draw prob,away prob\n{GAMES}", "'home prob', 'draw prob', 'away prob'"),
        (f"winner,home,draw,away\n{GAMES}", "'home', 'draw', 'away'"),
        ("p_b,y,p_c,p_a\n.5,a,.25,.25\n.5,b,.25,.25\n.5,b,.25,.25\n", "'p_b', 'p_c', 'p_a'"),
        # a class that has not come, or only one that has
        ("result,home,draw,away\nhome,.5,.3,.2\naway,.4,.3,.3\n", "'home', 'draw', 'away'"),
        ("result,p_home,p_draw,p_away\nhome,.5,.3,.2\n", "'p_home', 'p_draw', 'p_away'"),
        # numbers, of which 2 has not come
        ("y,p_0,p_1,p_2\n0,.5,.25,.25\n1,.25,.5,.25\n", "'p_0', 'p_1', 'p_2'"),
        # odds do not sum to 1
        (
            "result,odds_home,odds_away,p_home,p_away\nhome,2.5,1.5,.5,.5\naway,3,2,.25,.75\n",
            "'p_home', 'p_away'",
        ),
    ],
)
def test_columns_are_guessed(tmp_path: Path, text: str, columns: str) -> None:
    code, told = run(tmp_path, text)
    assert code == 0, told
    assert told.endswith(f"classes in {columns}")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("y,p_0,p_1\n0,.5,.5\n1,.25,.75\n", "p_1"),
        ("y,p,x_0,x_1,x_2\n0,.5,.25,3,1\n1,.5,.5,7,1\n", "p"),
    ],
)
def test_outcomes_0_or_1_stay_so(tmp_path: Path, text: str, score: str) -> None:
    code, told = run(tmp_path, text)
    assert code == 0, told
    assert told.endswith(f"score '{score}'")


HEAD = "result,p_home,p_draw,p_away\n"
TWO = "result,p_home,p_away,q_home,q_away\nhome,.5,.5,.5,.5\naway,.5,.5,.5,.5\n"


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (
            f"{HEAD}{GAMES}abandoned,.5,.3,.2\n",
            (),
            "FILE, line 5: result must be one of the classes home, draw, away (--classes), got "
            "'abandoned': correct the row, or use --skip-bad",
        ),
        (
            "result,p_home,p_draw\nhome,.5,.5\ndraw,.5,.5\naway,.25,.25\n",
            (),
            "a class needs a column of probabilities (--scores), and there is none for 'away'",
        ),
        (
            "result,p_home,p_away,p_total\nhome,.5,.5,1\naway,.5,.5,1\n",
            (),
            "the 3 scores (p_home, p_away, p_total) must sum to 1 within 1e-06, got 2",
        ),
        (
            f"{HEAD}home,.5,NaN,.5\n{GAMES}",
            (),
            "line 2: p_draw must be a probability from 0 to 1, got 'NaN'",
        ),
        (
            TWO,
            (),
            "has several columns for each class (p_home, p_away; q_home, q_away): name those to "
            "take with --scores",
        ),
        (
            f"{HEAD}H,.5,.3,.2\nA,.4,.3,.3\nD,.2,.4,.4\n",
            (),
            "If 'result' has several classes ('h', 'a', 'd'), name their columns with --scores "
            "and, in the same order, the classes with --classes",
        ),
        (HEAD, (), "If 'result' has several classes, name their columns with --scores"),
        ("result,home,draw\nhome,50,50\ndraw,60,40\n", (), "if these are percentages, use --perc"),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--scores", "p_home,p_draw,p_away", "--positive", "home"),
            "cannot be read with --positive and --scores",
        ),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--scores", "p_home,p_draw,p_away", "--classes", "home,Home,away"),
            "must have each class once (--classes); got 'home' twice (in any case)",
        ),
        (f"{HEAD}{GAMES}", ("measure", "--percent"), "got 1.0000000%: if these are probabilities"),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--score", "p_home"),
            "`report`, `recalibrate` and `watch` take the columns of all by --scores",
        ),
        ("y,p\n0,.5\n1,.5\n", ("measure", "--normalize"), "--normalize is for several classes"),
    ],
)
def test_wrong_files_are_explained(
    tmp_path: Path, text: str, words: tuple[str, ...], told: str
) -> None:
    code, said = run(tmp_path, text, *words)
    assert code == 2
    assert told in said


def test_other_commands_say_which_take_classes(tmp_path: Path) -> None:
    path = tmp_path / "games.csv"
    path.write_text(HEAD + GAMES)
    result = CliRunner().invoke(main, ["distance", str(path)])
    assert result.exit_code == 2
    assert "`truecast measure`, `report`, `recalibrate` and `watch` take them all" in result.stderr
