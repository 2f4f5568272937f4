"""The pictures of the docs are what their script makes, and what the pages show."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

import truecast as tc
from drawn import flaws, smallest
from drawn import texts as written

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
NUMBER = re.compile(r"-?\d+\.?\d*")
# one picture, that of the page's ground: where the code is read by <picture>, in the site by its
# own switch
SHOWN = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" '
    r'srcset="(?:\.\./)?pictures/(\w+)-dark\.svg">\n'
    r'<img alt="([^"]+)" src="(?:\.\./)?pictures/(\w+)-light\.svg">\n</picture>'
)
COLUMN = 700  # pixels: the widest that pages show a picture
PAGE = {"light": "#ffffff", "dark": "#1e2129"}  # what the site's pages are drawn on


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_pictures", ROOT / "docs" / "make_pictures.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def parts(svg: str) -> tuple[str, list[float]]:
    """What is drawn, and with which numbers, without names that are hashes."""
    plain = re.sub(r'(id="|#|url\(#)[mpCh][0-9a-f]{10}[^")]*', r"\1", svg)
    return NUMBER.sub("0", plain), [float(number) for number in NUMBER.findall(plain)]


def assert_same(made: str, kept: str) -> None:
    """The same words; and by the same matplotlib the same lines, to a quarter of a point."""
    assert texts(made) == texts(kept)
    version = re.compile("<!-- matplotlib .* -->")
    if version.findall(made) == version.findall(kept):
        (shape, numbers), (kept_shape, kept_numbers) = parts(made), parts(kept)
        assert shape == kept_shape
        assert numbers == pytest.approx(kept_numbers, abs=0.25)


@pytest.mark.slow("draws the pictures of the pages")
@pytest.mark.parametrize("name", SCRIPT.PICTURES)
def test_a_picture_is_what_its_script_makes_and_its_words_can_be_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside the picture, and large enough."""
    style = dict(mpl.rcParams)
    figures = []
    draw = SCRIPT.PICTURES[name]
    monkeypatch.setitem(SCRIPT.PICTURES, name, lambda: figures.append(draw()) or figures[0])
    for file, made in SCRIPT.drawn(name).items():
        assert_same(made, (FOLDER / file).read_text())
    assert dict(mpl.rcParams) == style
    (figure,) = figures
    with mpl.rc_context(SCRIPT.STYLE):
        figure.draw_without_rendering()
        assert [flaw for flaw in flaws(figure) if flaw.startswith("clipped")] == []
        assert smallest(figure) * min(1, COLUMN / (96 * figure.get_figwidth())) >= 8


@pytest.mark.slow("draws pictures")
def test_the_same_bytes_twice() -> None:
    assert SCRIPT.drawn("rounds") == SCRIPT.drawn("rounds")


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ('<path d="M 1.00 2.00"/><text x="1.00">ECE 0.034</text>', True),
        ('<path d="M 1.01 2.00"/><text x="1.00">ECE 0.034</text>', True),
        ('<path d="M 1.50 2.00"/><text x="1.00">ECE 0.034</text>', False),
        ('<path d="M 1.00 2.00 L 1.00 1.00"/><text x="1.00">ECE 0.034</text>', False),
        ('<path d="M 1.00 2.00"/><text x="1.00">ECE 0.035</text>', False),
    ],
)
def test_a_stale_picture_is_noticed(other: str, same: bool) -> None:
    kept = '<path d="M 1.00 2.00"/><text x="1.00">ECE 0.034</text>'
    if same:
        assert_same(other, kept)
    else:
        with pytest.raises(AssertionError):
            assert_same(other, kept)


def test_every_file_is_made_and_shown_on_light_and_dark_pages_alike() -> None:
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {f"{name}-{page}.svg" for name in SCRIPT.PICTURES for page in PAGE}
    shown: set[str] = set()
    for path in (ROOT / "docs").rglob("*.md"):
        found = SHOWN.findall(path.read_text())
        assert 2 * len(found) == path.read_text().count("pictures/")
        assert all(dark == light for dark, _, light in found)
        shown |= {f"{name}-{page}.svg" for name, _, _ in found for page in PAGE}
    assert shown == files


def test_pictures_are_small_and_load_nothing() -> None:
    for path in FOLDER.iterdir():
        assert path.stat().st_size < 200_000, path.name
        names = re.findall(r"https?://[^\"'\s<]+", path.read_text())
        assert all(name.startswith("http://www.w3.org/") for name in names)


def test_forecasts_on_the_line_of_moves_are_apart() -> None:
    with mpl.rc_context(SCRIPT.STYLE):
        figure = SCRIPT.moves()
        figure.draw_without_rendering()
    boxes = {text: box for text, box in written(figure) if text.endswith(("%\nwet", "%\ndry"))}
    assert len(boxes) == 4
    ends = sorted((box.x0, box.x1) for box in boxes.values())
    assert min(right[0] - left[1] for left, right in pairwise(ends)) > 0.03 * figure.dpi


def test_pictures_hold_no_pixels_which_could_not_be_recoloured() -> None:
    assert [path.name for path in FOLDER.iterdir() if "<image" in path.read_text()] == []


def test_no_picture_brings_a_ground_of_its_own() -> None:
    for path in FOLDER.iterdir():
        assert not re.search(r"fill: (#ffffff|white|#fff)\b(?!; opacity: 0)", path.read_text()), (
            path.name
        )
    assert not list((ROOT / "docs").glob("*.svg"))


def brightness(color: str) -> float:
    """Relative luminance, as in WCAG 2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: str, ground: str) -> float:
    low, high = sorted([brightness(color), brightness(ground)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", PAGE)
def test_words_and_lines_can_be_seen(page: str) -> None:
    """Words have a contrast of 4.5 to the page, drawings 2.8, unless see-through on purpose."""
    for path in FOLDER.glob(f"*-{page}.svg"):
        svg = path.read_text()
        words = re.findall(r"<text[^>]*fill: (#[0-9a-f]{6})", svg)
        assert len(words) == len(texts(svg)), path.name
        assert min(contrast(color, PAGE[page]) for color in words) > 4.5, path.name
        drawn = re.findall(r"stroke: (#[0-9a-f]{6})", svg)
        assert min(contrast(color, PAGE[page]) for color in drawn) > 2.8, path.name


def test_the_gallery_has_every_plot() -> None:
    """Its code runs with that of all pages."""
    page = (ROOT / "docs" / "gallery.md").read_text()
    functions = {name for name in tc.plot.__all__ if name.islower()}
    assert functions == set(re.findall(r"tc\.plot\.(\w+)\(", page))
    assert page.count("<picture>") == len(re.findall(r"\.draw\(\)$", page, re.MULTILINE))
