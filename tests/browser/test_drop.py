"""Drop a CSV: the page reads it, and measures it, as the command does."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import truecast as tc
from truecast.cli import main
from truecast.files import columns as columns_of_files

ROOT = Path(__file__).parents[2]


def dropped(page: Any, name: str, text: str | bytes) -> dict[str, Any]:
    """What the page finds in a file."""
    content = text.encode() if isinstance(text, str) else text
    page.evaluate("document.querySelector('.tc-drop').removeAttribute('data-done')")
    page.set_input_files(
        "[data-part=file]", {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    page.locator("[data-done]").wait_for()
    found: dict[str, Any] = page.evaluate("document.querySelector('.tc-drop').truecast")
    return found


def commanded(path: Path, text: str | bytes, *options: str) -> Any:
    """What the command finds in the same: its figures, or its error."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    arguments = ["measure", str(path), "--json", "--resamples", "0", *options]
    done = CliRunner().invoke(main, arguments)
    if done.exit_code:
        return done.stderr.split("Error: ")[1].replace(f"{path}, ", "").replace(f"{path}: ", "")
    return json.loads(done.stdout)


def drawn(seed: int) -> tuple[list[str], list[int]]:
    """Scores as they are written, and outcomes: few or many distinct ones, some 0 and 1."""
    rng = random.Random(seed)  # noqa: S311
    rounds = rng.choice([1, 2, 7, 100, 3000])
    digits = rng.choice([1, 2, 4, 6, 17])
    scores = [f"{rng.betavariate(0.7, 1.3):.{digits}f}" for _ in range(rounds)]
    scores[0] = rng.choice(["0", "1", "1e-3", ".5", "0.30000000000000004", "5E-324", "1.0"])
    bias = rng.choice([0.7, 1.0, 1.6])
    return scores, [int(rng.random() < float(p) ** bias) for p in scores]


def same(page: dict[str, Any], command: dict[str, Any]) -> None:
    """Compare figures: the smooth error to the last bit, others to the order of their sums."""
    assert page["rounds"] == command["total"]
    assert page["forecasts"] == command["forecasts"]
    assert page["smooth_calibration_error"] == command["smooth_calibration_error"]
    bound = command["arc_energy"]["lower_distance"]
    assert page["lower_distance_at_most"] == pytest.approx(bound, rel=1e-14)
    assert page["brier"]["score"] == command["brier"]["score"]
    for kind in ("brier", "log"):
        for part, value in page[kind].items():
            expected = command[kind][part]
            expected = math.inf if expected is None else expected
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-14), (kind, part)
    for name, value in page.items():
        if isinstance(value, float) and name in command:
            assert value == pytest.approx(command[name], rel=1e-12, abs=1e-14), name


def test_the_figures_of_a_file_are_those_of_the_command(open_page: Any, tmp_path: Path) -> None:
    page = open_page("drop")
    for seed in range(40):
        scores, outcomes = drawn(seed)
        lines = [f"{y},{p},x" for p, y in zip(scores, outcomes, strict=True)]
        text = "\n".join(["y,p,note", *lines]) + "\n" * (seed % 2)
        found = dropped(page, "some.csv", text)
        command = commanded(tmp_path / "some.csv", text)
        same(found["figures"], command["scores"]["p"])
        bins = tc.reliability_bins(outcomes, np.array(scores, float))
        counts = [[each["zeros"], each["ones"]] for each in found["bins"]]
        assert counts == np.stack((bins.zeros, bins.ones), axis=1).tolist()
        curve = tc.reliability_curve(outcomes, np.array(scores, float))
        assert [each["rate"] for each in found["curve"]] == curve.rate.tolist()
        assert [each["lower"] for each in found["curve"]] == curve.lower.tolist()


@pytest.mark.parametrize("rounds", [300, 20_000])
def test_chance_is_about_what_the_package_says(open_page: Any, rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    p = rng.beta(2, 3, rounds)
    y = (rng.random(rounds) < p).astype(int)
    lines = [f"{a!r};{b}" for a, b in zip(p.tolist(), y.tolist(), strict=True)]
    found = dropped(open_page("drop"), "some.csv", "\n".join(["score;outcome", *lines]))
    sure = tc.uncertainty(tc.smooth_calibration_error, y, p, resamples=400)
    assert found["chance"]["if_calibrated"] == pytest.approx(sure.if_calibrated, rel=0.15)
    assert found["chance"]["p_value"] == pytest.approx(sure.p_value, abs=0.12)
    band = tc.reliability_band(y, p, resamples=400)
    for k in (20, 32, 44):
        for side in ("lower", "upper"):
            expected = np.interp(k / 64, band.p, getattr(band, side))
            assert found["chance"][side][k] == pytest.approx(expected, abs=0.05)


FILES = {
    "quotes": '"a ""note""","the score",y\n"x, y",0.25,1\n"two\nlines",0.5,0\n',
    "tabs": "y_true\tmodel\tproba\n1\t3\t.25\n0\t4\t.5\n",
    "semicolons": "p;y\r\n0.25;1\r\n0.5;0\r\n",
    "words": "target|prob\nTrue|0.5\nfalse| 0.25 \n",
    "a mark of bytes": "\ufeffy,p\n1,0.5\n0,0.25\n",
    "several by content": "label,class,pred,prediction_proba\na,1,1,0.25\nb,0,0,0.5\n",
    "one column besides": "other,y\n0.25,1\n0.5,0\n",
}
BAD = {
    "nothing": "y,p\n1,0.5\n,0.25\n",
    "above 1": "y,p\n1,0.5\n0,1.25\n",
    "no number": "y,p\n1,0.5\n0,half\n",
    "no outcome": "y,p\n1,0.5\n2,0.5\n",
    "short": "y,p\n1,0.5\n0\n",
    "long": "y,p\n1,0.5\n0,0.5,1\n",
    "blank line": "y,p\n1,0.5\n\n0,0.25\n",
    "after a field of two lines": 'y,p,note\n1,0.5,"a\nb"\n3,0.5,c\n',
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_by_the_command(open_page: Any, tmp_path: Path, name: str) -> None:
    found = dropped(open_page("drop"), "some.csv", FILES[name])
    command = commanded(tmp_path / "some.csv", FILES[name])
    ((score, figures),) = command["scores"].items()
    names = found["columns"]["names"]
    assert names[found["columns"]["score"]] == score
    same(found["figures"], figures)


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_line(open_page: Any, tmp_path: Path, name: str) -> None:
    page = open_page("drop")
    found = dropped(page, "some.csv", BAD[name])
    command = commanded(tmp_path / "some.csv", BAD[name])
    assert found["problem"].startswith("line ")
    assert command.startswith(found["problem"].partition(": if")[0])
    assert found["problem"] in page.inner_text("[data-part=status]")
    assert page.locator(".tc-report").count() == 0


@pytest.mark.parametrize("text", ["", "\n", "1,0.5\n0,0.25\n", "y,p\n", "PAR1\0\0", "\0y,p\n1,2"])
def test_what_is_no_table_is_refused(open_page: Any, text: str) -> None:
    assert dropped(open_page("drop"), "some.csv", text)["problem"]


def test_percentages_and_columns_can_be_chosen(open_page: Any, tmp_path: Path) -> None:
    page = open_page("drop")
    text = "day,late,old,new\n1,1,20%,70\n2,0,35 %,12.5\n"
    assert dropped(page, "some.csv", text)["columns"]["score"] is None
    assert "Choose" in page.inner_text("[data-part=status]")

    def after(change: Callable[[], object]) -> dict[str, Any]:
        page.evaluate("document.querySelector('.tc-drop').removeAttribute('data-done')")
        change()
        page.locator("[data-done]").wait_for()
        found: dict[str, Any] = page.evaluate("document.querySelector('.tc-drop').truecast")
        return found

    after(lambda: page.select_option("[data-part=outcome]", label="late"))
    found = after(lambda: page.select_option("[data-part=score]", label="old"))
    assert found["problem"].endswith("if these are percentages, tick the box")
    for score in ("old", "new"):
        after(lambda score=score: page.select_option("[data-part=score]", label=score))
        found = after(lambda: page.set_checked("[data-part=percent]", True))
        command = commanded(
            tmp_path / "some.csv", text, "--outcome", "late", "--score", score, "--percent"
        )
        same(found["figures"], command["scores"][score])
        after(lambda: page.set_checked("[data-part=percent]", False))


def test_the_example_by_the_keyboard_and_a_file_by_dragging(open_page: Any) -> None:
    page = open_page("drop", viewport={"width": 390, "height": 844})
    page.locator("[data-part=example]").focus()
    page.keyboard.press("Enter")
    page.locator("[data-done]").wait_for()
    report = page.locator(".tc-report")
    assert "Not calibrated" in report.inner_text()
    assert page.locator(".tc-report svg path.curve").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(
        """() => {
          document.querySelector(".tc-drop").removeAttribute("data-done");
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(["y,p\\n1,0.5\\n1,0.5\\n1,0.5\\n0,0.5\\n"], "my.csv"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
        }"""
    )
    page.locator("[data-done]").wait_for()
    assert "0.250000" in report.inner_text()
    assert "truecast measure my.csv --outcome y --score p" in report.inner_text()
    with page.expect_file_chooser():
        page.locator("[data-part=file]").focus()
        page.keyboard.press("Enter")


def test_the_example_is_every_third_flight(open_page: Any) -> None:
    page = open_page("drop")
    page.click("[data-part=example]")
    page.locator("[data-done]").wait_for()
    lines = (ROOT / "examples" / "scores.csv").read_text().split("\n")[1:-1][::3]
    scores = [float(line.split(",")[2]) for line in lines]
    outcomes = [int(line.split(",")[3]) for line in lines]
    found = page.evaluate("document.querySelector('.tc-drop').truecast.figures")
    assert found["smooth_calibration_error"] == tc.smooth_calibration_error(outcomes, scores)


@pytest.fixture(scope="module")
def reader(browser: Any) -> Iterator[Any]:
    """A page with csv.js alone, whose functions can be called."""
    page = browser.new_page()
    page.add_script_tag(content=(ROOT / "docs" / "browser" / "csv.js").read_text())
    yield page
    page.close()


def test_lists_of_words_are_those_of_the_command(reader: Any) -> None:
    for name in ("SCORES", "OUTCOMES", "ABOUT"):
        assert set(reader.evaluate(f"[...{name}]")) == getattr(columns_of_files, f"_{name}")
    for name in ("LETTERS", "BESIDE"):
        for kind in ("score", "outcome"):
            found = reader.evaluate(f"[...{name}.{kind}]")
            assert set(found) == getattr(columns_of_files, f"_{name}")[kind]


def test_names_suggest_what_they_suggest_to_the_command(reader: Any) -> None:
    rng = random.Random(1)  # noqa: S311
    of = columns_of_files
    others = ["p", "y", "1", "0", "true", "model", "Ähre", "XGB", "v2"]
    words = [*sorted(of._SCORES | of._OUTCOMES | of._ABOUT), *others]
    names = []
    for _ in range(2000):
        parts = [rng.choice(words) for _ in range(rng.randint(1, 3))]
        parts = [rng.choice([str, str.upper, str.title])(part) for part in parts]
        names.append(rng.choice(["_", " ", "-", ".", ""]).join(parts))
    for kind in ("score", "outcome"):
        script = "([names, kind]) => names.map((name) => suggests(name, kind))"
        found = reader.evaluate(script, [names, kind])
        expected = [columns_of_files._suggests(name, kind) for name in names]
        wrong = [n for n, a, b in zip(names, found, expected, strict=True) if a != b]
        assert wrong == []


def test_numbers_are_rounded_as_python_does(reader: Any) -> None:
    texts = numerals(4000)
    script = """(texts) => texts.map((text) => {
      const bytes = new TextEncoder().encode(text);
      return numberAt(bytes, 0, bytes.length);
    })"""
    assert list(map(float, reader.evaluate(script, texts))) == list(map(float, texts))


def numerals(count: int) -> Sequence[str]:
    rng = random.Random(2)  # noqa: S311
    kinds = (
        lambda: repr(rng.random()),
        lambda: f"{rng.random():.{rng.randint(0, 25)}f}",
        lambda: f"{rng.random() * 10 ** rng.randint(-300, 5):.{rng.randint(0, 20)}e}",
        lambda: f" .{rng.randint(0, 10**15)} ",
        lambda: f"+{rng.randint(0, 10**18)}.",
        lambda: f"{rng.randint(0, 10**15)}",
    )
    return [rng.choice(kinds)() for _ in range(count)]
