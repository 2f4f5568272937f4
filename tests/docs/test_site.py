"""What builds the site: pages read alike everywhere, docstrings are rewritten, the check finds what
is wrong."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import markdown
import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference"]
PAGES = sorted([*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"])
EXTENSIONS = re.findall(
    r"^  - ([\w.]+):?$",
    (ROOT / "mkdocs.yml")
    .read_text()
    .partition("\nmarkdown_extensions:\n")[2]
    .partition("\nvalidation:")[0],
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def check() -> Any:
    return runpy.run_path(str(ROOT / "scripts" / "docs_check.py"))["main"]


@pytest.fixture(scope="module")
def docstrings() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "docs_docstrings.py"))


@pytest.fixture(scope="module")
def hook() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "docs_hook.py"))


def in_the_site(text: str) -> str:
    return markdown.markdown(
        text, extensions=[name for name in EXTENSIONS if name != "pymdownx.highlight"]
    )


def beside_the_code(text: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text)


def elements(html: str) -> Counter[str]:
    return Counter(
        re.findall(r"<(li|table|tr|td|code|em|strong|h\d|a|img|blockquote|ol|ul)[ >]", html)
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name != "reference"], ids=lambda page: page.name
)
def test_pages_are_the_same_in_the_site_as_where_the_code_is_read(page: Path) -> None:
    """The two dialects differ in lists, emphasis and tables; a page must be written so that they
    agree."""
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(), flags=re.DOTALL)
    assert elements(in_the_site(text)) == elements(beside_the_code(text))


def test_the_dialects_do_differ() -> None:
    text = "a list:\n- one\n- two\n"
    assert elements(in_the_site(text)) != elements(beside_the_code(text))


GOOD = (
    '<link rel="stylesheet" href="a.css"><h1 id="top">x</h1><a href="#top">y</a> <a '
    'href="/index.html">w</a> <a href="https://example.org">z</a>'
)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ('<a href="missing.html">x</a>', "missing"),
        ('<a href="index.html#nowhere">x</a>', "anchor"),
        ('<a href="/missing.html">x</a>', "missing"),
        ('<img src="missing.svg">', "missing"),
        ('<img src="https://example.org/a.png">', "loads"),
        ('<script src="//example.org/a.js"></script>', "loads"),
        ('<link rel="stylesheet" href="https://fonts.example.org/css">', "loads"),
        ("<style>@import 'https://example.org/a.css'</style>", "loads"),
        ('<p style="background: url(https://example.org/a.png)">x</p>', "loads"),
        ('<iframe src="https://example.org"></iframe>', "loads"),
        ('<svg><use href="https://example.org/a.svg#b"/></svg>', "loads"),
        ('<img srcset="https://example.org/a.png 2x" src="a.css">', "loads"),
    ],
)
def test_the_check_finds(check: Any, tmp_path: Path, page: str, reason: str) -> None:
    (tmp_path / "a.css").write_text("p { color: red }")
    (tmp_path / "index.html").write_text(GOOD)
    assert check(tmp_path) == []
    (tmp_path / "other.html").write_text(page)
    (wrong,) = check(tmp_path)
    assert wrong.startswith("other.html: ")
    assert reason in wrong


def test_the_check_reads_style_sheets_and_wants_pages(check: Any, tmp_path: Path) -> None:
    assert check(tmp_path)
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/font.woff2') }")
    assert check(tmp_path) == ["a.css: loads https://example.org/font.woff2"]


@pytest.mark.slow("reads all docstrings")
def test_docstrings_have_formulas_powers_and_links(docstrings: dict[str, Any]) -> None:
    rewrite = docstrings["_rewrite"]
    block = rewrite(".. math:: \\frac1T \\sum_t y_t,\n    \\qquad T > 0")
    assert block.strip().startswith("<math")
    assert "frac" in block
    assert "\\" not in block
    assert rewrite("is :math:`\\sqrt T` here").startswith("is <span><math")
    assert rewrite("up to 2**36 and T**(1/3)") == "up to 2<sup>36</sup> and T<sup>1/3</sup>"
    assert (
        rewrite("see `Tally`, `predict` and ``2**3``")
        == "see [`Tally`][truecast.Tally], `predict` and ``2**3``"
    )
    assert (
        rewrite("`Tally.from_predictions`")
        == "[`Tally.from_predictions`][truecast.Tally.from_predictions]"
    )
    assert rewrite("`Certificate.bound`") == "[`Certificate.bound`][truecast.Certificate]"
    assert (
        rewrite("(docs/theory.md, theorem 7)") == '(<a href="../theory.html">theory</a>, theorem 7)'
    )
    assert rewrite("`Calibeating`, `plot.before_after`").count("][truecast.") == 2
    assert rewrite(">>> 2**3  # `Tally`") == ">>> 2**3  # `Tally`"


def test_the_core_has_docstrings(docstrings: dict[str, Any]) -> None:
    found = docstrings["_core_docstrings"]()
    stub = (ROOT / "src" / "truecast" / "_core" / "kernels.pyi").read_text()
    public = set()
    for name, body in re.findall(r"^class (\w+).*?:\n((?:    .*\n|\n)+)", stub, re.MULTILINE):
        public |= {
            f"{name}.{member}"
            for member in re.findall(r"^    def ([a-z]\w*)\(", body, re.MULTILINE)
        }
    assert public
    assert public <= {*found}, public - {*found}


def test_links_out_of_docs_lead_to_pages_that_show_the_file(hook: dict[str, Any]) -> None:
    outside, source = hook["_outside"], hook["_source"]
    assert outside("guides/groups.md", "../../examples/flights.py") == "examples/flights.py"
    assert outside("guides/groups.md", "../theory.md") is None
    assert outside("theory.md", "../../elsewhere.py") is None
    assert source("examples/flights.py") == "source/examples/flights.py.md"
    assert source("CHANGELOG.md") == "changelog.md"
    shown = hook["_show"]("examples/make_rain.py")
    assert shown.startswith("# `examples/make_rain.py`\n")
    assert (ROOT / "examples" / "make_rain.py").read_text() in shown


def test_parameters_that_share_a_description_are_shown_each_with_its_type(
    docstrings: dict[str, Any],
) -> None:
    text = (
        "Do.\n\nParameters\n----------\na, b\n    Two.\n    Lines.\nc\n    One.\n\nReturns\n"
        "-------\nd, e\n    No.\n"
    )
    shared = docstrings["_PARAMETERS"].sub(
        lambda it: docstrings["_SHARED"].sub(docstrings["_apart"], it[0]), text
    )
    assert shared == text.replace(
        "a, b\n    Two.\n    Lines.\n", "a\n    Two.\n    Lines.\nb\n    Two.\n    Lines.\n"
    )


def test_the_site_s_switch_chooses_pictures_and_long_heads_break(hook: dict[str, Any]) -> None:
    where = '<picture>\n<source media="(prefers-color-scheme: dark)" srcset="a-dark.svg">\n'
    shown = hook["_PICTURE"].sub("found", f'{where}<img alt="A" src="a-light.svg">\n</picture>')
    assert shown == "found"
    for page in PAGES:
        assert len(hook["_PICTURE"].findall(page.read_text())) == page.read_text().count(
            "<picture>"
        ), page.name
    assert hook["on_page_content"]("<th>a_b</th><td>a_b</td>") == "<th>a_<wbr>b</th><td>a_b</td>"


def test_tables_of_docstrings_become_tables_of_pages(docstrings: dict[str, Any]) -> None:
    plain = "====  =====\na     b c\ndd    2\n====  ====="
    headed = "====  =====\nname  is\n====  =====\na     b c d\n====  ====="
    assert docstrings["_table"](plain) == "|  |  |\n| --- | --- |\n| a | b c |\n| dd | 2 |"
    assert docstrings["_table"](headed) == "| name | is |\n| --- | --- |\n| a | b c d |"
