"""The public edge of the report: what is refused, what is the same, what is saved."""

from __future__ import annotations

import datetime
import html
import os
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import truecast as tc
from truecast._atomic import replaced
from truecast.report import HtmlReport, RunningCourse, html_report

Y, P = [0, 1, 1, 0, 1], [0.1, 0.4, 0.4, 0.9, 1.0]
TALLY = tc.Tally.from_predictions(Y, P)
CERTIFICATE = tc.HorizonFree().certificate


@cache
def report() -> HtmlReport:
    return html_report(Y, P, title="Five", resamples=20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(html_report, Y), "y_prob is needed unless the first argument is a Tally"),
        (partial(html_report, [], []), "y_true must have at least one round"),
        (
            partial(html_report, {"a": TALLY}, P),
            "y_prob and sample_weight must be left out beside tallies",
        ),
        (partial(html_report, {"a": P}), "y_true must be a Tally"),
        (partial(html_report, {3: TALLY}), "y_true must be a str, got 3"),
        (partial(html_report, {}), "y_prob must have at least one score"),
        (partial(html_report, Y, {}), "y_prob must have at least one score"),
        (partial(html_report, Y, {"a": [2] * 5}), "y_prob must be between 0 and 1, got 2"),
        (
            partial(html_report, Y, P, groups=["a"]),
            "groups must have an entry for each of the 5 rounds",
        ),
        (
            partial(html_report, TALLY, groups=["a"] * 5),
            "groups must be a mapping from groups to tallies beside a",
        ),
        (
            partial(html_report, TALLY, groups={"a": 3}),
            "y_true must be a mapping from groups to tallies",
        ),
        (
            partial(html_report, TALLY, groups={"a": TALLY}, groups_after={"a": TALLY}),
            "groups_after must be a mapping from groups to tallies, beside `groups` and `after`",
        ),
        (
            partial(
                html_report, TALLY, groups={"a": TALLY}, after=TALLY, groups_after={"b": TALLY}
            ),
            "groups_after must have the same groups as `groups`",
        ),
        (
            partial(html_report, {"a": TALLY, "b": TALLY}, groups={"g": TALLY}),
            "groups must have a mapping from groups to tallies for each score",
        ),
        (
            partial(html_report, {"a": TALLY, "b": TALLY}, groups={"a": {"g": TALLY}}),
            "groups must have a mapping from groups to tallies for each score",
        ),
        (
            partial(html_report, {"a": TALLY, "b": TALLY}, after=TALLY),
            "after must be left out beside several scores",
        ),
        (partial(html_report, TALLY, after=P), "after must be a Tally beside a Tally"),
        (
            partial(html_report, TALLY, after=tc.Tally([0.5], [2], [2])),
            "after must have the 5 rounds and 3 ones",
        ),
        (
            partial(html_report, TALLY, after=tc.Tally([0.5], [3], [2])),
            "after must have the 5 rounds and 3 ones",
        ),
        (
            partial(html_report, Y, P, after=P[1:]),
            "y_prob must have an entry for each of the 5 outcomes",
        ),
        (
            partial(html_report, Y, P, times=[1, 2]),
            "times must have an entry for each of the 5 rounds",
        ),
        (partial(html_report, Y, P, times=["a"] * 5), "times must be dates such as 2031-02-03"),
        (partial(html_report, Y, P, times=[[1]] * 5), "times must be a sequence"),
        (partial(html_report, Y, P, times=[1, 2, float("nan"), 4, 5]), "times[2] must be a time"),
        (partial(html_report, Y, P, times=[None] * 5), "times must be dates"),
        (partial(html_report, Y, P, times=[True] * 5), "times must be dates"),
        (
            partial(html_report, Y, P, times=P, sample_weight=P),
            "times must be left out beside sample_weight",
        ),
        (partial(html_report, TALLY, times=P), "times must be a RunningCourse beside a Tally"),
        (
            partial(html_report, {"a": TALLY, "b": TALLY}, times=RunningCourse()),
            "times must be the time of each round",
        ),
        (
            partial(html_report, Y, P, certificate=0.1),
            "certificate must be what a forecaster's or recalibrator's certificate is, got 0.1",
        ),
        (partial(html_report, Y, P, title=3), "title must be a str, got 3"),
        (partial(html_report, Y, P, source=Path("x")), "source must be a str"),
        (partial(html_report, Y, P, outcome=b"y"), "outcome must be a str"),
        (partial(html_report, Y, P, score=1), "score must be a str"),
        (partial(html_report, Y, P, group=1), "group must be a str"),
        (partial(html_report, Y, P, date=2031), "date must be a str"),
        (partial(html_report, Y, P, skipped=-1), "skipped must be a whole number from 0"),
        (partial(html_report, Y, P, level=1), "level must be a number above 0 and below 1"),
        (partial(html_report, Y, P, resamples=19), "resamples must be a whole number from 20"),
        (
            partial(html_report, Y, P, random_state=None),
            "random_state must be a whole number from 0",
        ),
    ],
)
def test_refusals(call: partial[object], message: str) -> None:
    with pytest.raises(tc.InputError, match=re.escape(message)):
        call()


def test_arrays_tallies_and_mappings_are_the_same() -> None:
    expected = html_report(Y, P, score="p", resamples=20).html
    assert html_report(TALLY, score="p", resamples=20).html == expected
    assert html_report({"p": TALLY}, resamples=20).html == expected
    assert html_report(Y, {"p": P}, resamples=20).html == expected
    weighted = html_report(Y, P, sample_weight=[2] * 5, score="p", resamples=20)
    assert weighted.html == html_report(TALLY + TALLY, score="p", resamples=20).html


def test_groups_of_labels_and_of_tallies_are_the_same() -> None:
    labels, y, p = (10 * list(column) for column in (["a", "b", "a", None, "b"], Y, P))
    rows, tally = list(zip(y, p, labels, strict=True)), tc.Tally.from_predictions(y, p)
    inside = {name: [row[:2] for row in rows if row[2] == name] for name in ("a", "b", None)}
    parts = {
        name: tc.Tally.from_predictions(*zip(*pairs, strict=True)) for name, pairs in inside.items()
    }
    expected = html_report(y, p, groups=labels, score="p", resamples=20).html
    assert "(none)" in expected
    assert html_report({"p": tally}, groups=parts, resamples=20).html == expected
    assert html_report({"p": tally}, groups={"p": parts}, resamples=20).html == expected
    two = html_report(y, {"p": p, "q": p}, groups=labels, resamples=20).html
    assert (
        html_report({"p": tally, "q": tally}, groups={"p": parts, "q": parts}, resamples=20).html
        == two
    )


def test_after_may_be_forecasts_or_their_tally() -> None:
    after = [0.3] * 5
    options = {"certificate": CERTIFICATE, "resamples": 20}
    expected = html_report(Y, P, after=after, **options).html
    assert html_report(TALLY, after=tc.Tally.from_predictions(Y, after), **options).html == expected
    assert "What is proved" in expected


def test_names_appear_only_if_they_are_given() -> None:
    assert "Five" in report().html
    assert "<dt>outcome</dt>" not in report().html
    assert "<dt>forecast</dt>" not in report().html
    assert "<dt>source</dt>" not in report().html
    assert "2031-02-03" in html_report(Y, P, date=datetime.date(2031, 2, 3), resamples=20).html
    assert html_report(Y, P, resamples=20).title == "Calibration report"
    assert html_report(Y, P, source="a/b.csv", resamples=20).title == "Calibration of b.csv"
    recalibrated = html_report(Y, P, after=P, source="a/b.csv", resamples=20)
    assert recalibrated.title == "Before and after recalibration: b.csv"
    assert html_report(Y, P, after=P, source="a/b.csv", title="Rain", resamples=20).title == "Rain"


def test_real_weights_are_fine() -> None:
    page = html_report(
        Y, P, sample_weight=[0.5, 1.5, 1.0, 2.0, 0.25], groups=list("aabba"), after=[0.5] * 5
    )
    assert "with real weights, chance cannot be judged" in page.html


def test_level_is_that_of_all_intervals() -> None:
    assert "80\xa0% interval" in html_report(Y, P, level=0.8, resamples=20).html
    assert "90\xa0% interval" not in html_report(Y, P, level=0.8, resamples=20).html


def test_a_report_is_a_value() -> None:
    assert str(report()).splitlines() == [
        "Five",
        "  forecast: Too few rounds to tell",
        f"  {len(report().html.encode()):,} bytes of HTML: save(path), or show in a notebook",
    ]
    assert "<html" not in repr(report())
    with pytest.raises(FrozenInstanceError):
        report().html = ""


def test_a_notebook_shows_it_in_a_frame() -> None:
    frame = report()._repr_html_()
    assert frame.startswith("<iframe ")
    document = re.search('srcdoc="([^"]*)"', frame)
    assert document is not None
    assert html.unescape(document[1]) == report().html
    assert 'sandbox="allow-scripts"' in frame


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            report().save(target)
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["report.html"]
    assert report().save(str(target)) == target
    assert target.read_bytes() == report().html.encode()
    assert os.listdir(tmp_path) == ["report.html"]


def test_saving_does_not_touch_a_file_of_another_name(tmp_path: Path) -> None:
    other = tmp_path / "report.html.part"
    other.write_text("mine")
    report().save(tmp_path / "report.html")
    assert other.read_text() == "mine"


KILLED = """
import os, sys
from pathlib import Path
from truecast._atomic import replaced

with replaced(Path(sys.argv[1])) as place:
    place.write_bytes(b"half a p")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such locks")
def test_what_a_killed_writer_has_left_is_removed_and_what_another_writes_is_not(
    tmp_path: Path,
) -> None:
    target = tmp_path / "report [1].html"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"half a p"
    with replaced(target) as place:
        place.write_bytes(b"the other's")
        assert not left.exists()
        report().save(target)
        assert place.read_bytes() == b"the other's"
    assert target.read_bytes() == b"the other's"
    assert list(tmp_path.iterdir()) == [target]


def test_doctest_of_the_page_holds_for_arrays_of_numpy() -> None:
    y, p = np.array([0, 0, 0, 1] * 50), np.array([0.25, 0.5, 0.5, 0.75] * 50)
    assert html_report(y, p, resamples=199).verdicts == {
        "forecast": "Not calibrated: forecasts are not extreme enough (underconfident)",
    }
