"""Which columns of a file are those of several classes; what is said of files that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
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
        # without a separator, in brackets
        ("p0,p1,p2,y\n.2,.3,.5,0\n.1,.6,.3,1\n.5,.3,.2,0\n", "'p0', 'p1', 'p2'"),
        ("p0,p1,p2,y\n.2,.3,.5,0\n.1,.6,.3,1\n.5,.3,.2,2\n", "'p0', 'p1', 'p2'"),
        ("y,prob0,prob1,prob2\n0,.5,.25,.25\n1,.25,.5,.25\n", "'prob0', 'prob1', 'prob2'"),
        ("y,class1,class2,class3\n1,.5,.25,.25\n3,.2,.5,.3\n", "'class1', 'class2', 'class3'"),
        ("y,P(a),P(b),P(c)\na,.5,.25,.25\nb,.25,.5,.25\n", "'P(a)', 'P(b)', 'P(c)'"),
        (
            "y,pHome,pDraw,pAway,plan\nhome,.5,.3,.2,.1\ndraw,.2,.5,.3,.4\naway,.2,.5,.3,.4\n",
            "'pHome', 'pDraw', 'pAway'",
        ),
        ("y,pHome,pDraw,pAway\nhome,.5,.3,.2\ndraw,.2,.5,.3\n", "'pHome', 'pDraw', 'pAway'"),
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


def test_columns_of_very_many_classes_are_guessed(tmp_path: Path) -> None:
    names = [f"kind {k}" for k in range(120)]
    rows = "".join(f"{name}{',0' * k},1{',0' * (119 - k)}\n" for k, name in enumerate(names))
    text = f"result,{','.join(f'p_{name}' for name in names)}\n{rows}"
    code, told = run(tmp_path, text)
    assert code == 0, told
    assert told.endswith("'p_kind 19' and 100 more")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("y,p_0,p_1\n0,.5,.5\n1,.25,.75\n", "p_1"),
        ("y,p0,p1\n0,.5,.5\n1,.25,.75\n", "p1"),
        ("y,p,q\n0,.5,.5\n1,.25,.75\n", "p"),
        ("y,p,q,new\n0,.5,.5,0\n1,.25,.75,0\n", "p"),
        ("y,p,x0,x1,x2\n0,.5,.25,3,1\n1,.5,.5,7,1\n", "p"),
        ("y,p,x_0,x_1,x_2\n0,.5,.25,3,1\n1,.5,.5,7,1\n", "p"),
    ],
)
def test_outcomes_0_or_1_stay_so(tmp_path: Path, text: str, score: str) -> None:
    code, told = run(tmp_path, text)
    assert code == 0, told
    assert told.endswith(f"score '{score}'")


@pytest.mark.parametrize(
    ("columns", "outcomes"),
    [
        ("p0,p1,p2", "012"),
        ("p_0,p_1,p_2", "012"),
        ("p0,p1,p2", ["p0", "p1", "p2"]),
        ("P(a),P(b),P(c)", "abc"),
        ("P(a) %,P(b) %,P(c) %", "abc"),
        ("pa,pb,pc", "abc"),
        ("pa,pb,pc", "ABC"),
        ("p_to a,p_to b,p_to c", ["to a", "to b", "to c"]),
    ],
)
def test_names_of_classes_are_those_of_outcomes(
    tmp_path: Path, columns: str, outcomes: Sequence[str]
) -> None:
    rows = "".join(f".5,.3,.2,{outcome}\n" for outcome in outcomes)
    code, told = run(tmp_path, f"{columns},y\n{rows}", "measure", "--scores", columns)
    assert code == 0, told


def test_names_may_have_commas_in_quotes(tmp_path: Path) -> None:
    text = '"p, home",draw,y\n.5,.5,"a,b"\n.5,.5,draw\n'
    options = "--scores", '"p, home", draw', "--classes", '"a,b",draw'
    code, told = run(tmp_path, text, "measure", *options)
    assert code == 0, told
    code, told = run(tmp_path, text, "measure", "--scores", '"p, home"x,draw')
    assert code == 2
    assert "must be one line of CSV" in told


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
            "If 'result' has several classes ('H', 'A', 'D'), name their columns with --scores "
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
        (
            "result,p_1.1,p_1.10,p_2\n1.1,.5,.3,.2\n1.10,.4,.3,.3\n2,.2,.4,.4\n",
            (),
            "cannot tell the class '1.1' from '1.10' (--classes): as outcomes they are one number",
        ),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--scores", "p_home,p_draw,p_away", "--classes", "01,1,2"),
            "cannot tell the class '01' from '1' (--classes)",
        ),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--scores", "p_home,p_home,p_away"),
            "must have each class once (--scores); got 'p_home' twice",
        ),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--scores", "p_home"),
            "must have from 2 to 4096 classes (--scores); for outcomes 0 or 1, use --score",
        ),
        (f"{HEAD}{GAMES}", ("measure", "--percent"), "got 1.0000000%: if these are probabilities"),
        (
            f"{HEAD}{GAMES}",
            ("measure", "--score", "p_home"),
            "`report`, `recalibrate` and `watch` take the columns of all by --scores",
        ),
        (
            "p,q,r,y\n.2,.3,.5,0\n.1,.6,.3,1\n",
            (),
            "has 3 columns that sum to 1 (p, q, r): if they are of several classes, name them with "
            "--scores and, in the same order, the classes with --classes; if outcomes are 0 or 1, "
            "name one with --score p",
        ),
        (
            "p,y\n.2,0\n.1,1\n.2,2\n",
            (),
            "y must be an outcome, 0 or 1, got '2': if these are several classes, `truecast",
        ),
        (
            "a,b,c,y\n.2,.3,.5,0\n.1,.6,.3,1\n.1,.6,.3,2\n",
            ("measure", "--scores", "a,b,c"),
            "y must be one of the classes a, b, c (--classes), got '0': no outcome so far ('0', "
            "'1', '2') is one of them; give the classes as outcomes have them, in the order of "
            "the columns, with --classes",
        ),
        (
            "a,b,y\n.2,.8,0\n",
            ("measure", "--scores", "a", "--classes", "a,b"),
            "must have as many classes (--classes) as columns of scores (--scores), got 2 and 1",
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
