"""Every code block of every page runs, or says why not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from blocks import Block, alike, blocks, commands, run_console, run_pycon, run_python, why_not_run
from refresh import refreshed, rewritten

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
needs_a_shell = pytest.mark.skipif(
    sys.platform == "win32", reason="pages show commands as bash takes them"
)
WITH_CODE = [page for page in PAGES if blocks(page.read_text())]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_runs_or_says_why_not(page: Path) -> None:
    found = blocks(page.read_text())
    for block in found:
        why_not_run(block, found)


@pytest.mark.slow("runs all code of a page")
@needs_a_shell
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_blocks_do_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in one folder and with the same names, as a reader would try them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page.read_text())
    if "local_session" in page.read_text() and shutil.which("java") is None:
        pytest.skip("needs Java 17 for Spark: apt install default-jre-headless")
    try:
        for block in found:
            if not why_not_run(block, found):
                run(block, names, tmp_path, name_of(page))
    finally:
        stop_service(tmp_path / "serve.pid")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def stop_service(started: Path) -> None:
    """End what a page has left running, should one of its blocks have failed."""
    if started.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(started.read_text()), signal.SIGKILL)


def run(block: Block, names: dict[str, Any], folder: Path, page: str) -> None:
    if block.language == "pycon":
        run_pycon(block, names, page)
    elif block.language == "python":
        run_python(block, names, page)
    else:
        run_console(block, folder, page)


def one(markdown: str) -> Block:
    (block,) = blocks(markdown)
    return block


@pytest.mark.parametrize(
    "markdown",
    [
        "```\nx\n```",  # no language
        "text\n\n    x = 1\n",  # indented
        "```rust\nx\n```",
        "```sh\npip install .\ntruecast measure scores.csv\n```",  # a command hidden among others
        "```sh\nrm -r .\n```",
        "```text\n>>> 1 + 1\n3\n```",
        "```text\n$ truecast measure scores.csv\n```",
        "<!-- not run: slow -->\n```\nx\n```",  # no reason
    ],
)
def test_an_untested_block_is_found(markdown: str) -> None:
    block = one(markdown)
    with pytest.raises(AssertionError):
        why_not_run(block, [block])


@pytest.mark.parametrize(
    "markdown",
    [
        "```sh\n# set up\npython3 -m venv .venv && .venv/bin/pip install . &&\n  pip "
        "install \\\n  x\n```",
        "```text\na table of figures\n```",
        "<!-- not run: needs a day and a cluster -->\n\n```python\nx\n```",
    ],
)
def test_what_need_not_run(markdown: str) -> None:
    block = one(markdown)
    assert why_not_run(block, [block])


def test_a_command_in_a_block_for_reading_may_run_elsewhere_on_its_page() -> None:
    found = blocks(
        "```sh\n.venv/bin/truecast --version\n```\n\n```console\n$ truecast --version\n```\n"
    )
    assert why_not_run(found[0], found)
    assert why_not_run(found[1], found) is None


def test_lists_boxes_and_entries_are_no_blocks() -> None:
    text = (
        "- item\n\n    more of it\n\n    ```python\n    x = 1\n    ```\n\n!!! note\n\n    "
        "text\n\n::: a.b\n    c:\n"
    )
    assert [(block.language, block.text, block.line) for block in blocks(text)] == [
        ("python", "x = 1\n", 5)
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("pycon", ">>> 1 + 1\n3\n"),
        ("pycon", "1 + 1\n"),
        ("pycon", ">>> 1 / 0\n"),
        ("python", "1 / 0\n"),
    ],
)
def test_wrong_python_fails(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run(Block(1, language, text), {}, tmp_path, "page")


@needs_a_shell
@pytest.mark.parametrize(
    "text",
    [
        "$ echo a\nb\n",
        "$ echo a\n",
        "$ true\na\n",
        "$ false\n",
        "$ truecast --no-such-option\n...Error...\n",
        "$ echo a\n...\n",
        "$ echo a; false\na\n$ echo $?\n0\n",
        "a\n$ true\n",
        "no command\n",
    ],
)
def test_wrong_console_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(Block(1, "console", text), {}, tmp_path, "page")


@needs_a_shell
def test_a_console_is_one_shell_and_shows_both_streams(tmp_path: Path) -> None:
    text = (
        "$ x=1; echo a >&2\na\n$ echo $x\n1\n$ (exit 3)\n$ echo $?\n3\n$ echo b \\\n>   c\nb "
        "c\n$ true\n"
    )
    run(Block(1, "console", text), {}, tmp_path, "page")
    assert [command for command, _ in commands(Block(1, "console", text))][4].split() == [
        "echo",
        "b",
        "c",
    ]


def test_names_are_shared_by_the_blocks_of_a_page(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    run(Block(1, "pycon", ">>> x = 1\n"), names, tmp_path, "page")
    run(Block(4, "python", "y = x + 1\n"), names, tmp_path, "page")
    run(Block(7, "pycon", ">>> x + y\n3\n"), names, tmp_path, "page")


def test_dots_stand_for_parts_of_lines_and_for_lines() -> None:
    assert alike("a ... c\n...\nd", "a b c\nx\ny\nd\n")
    assert alike("a\n...\nd", "a\nd\n")
    assert alike("", "\n")
    assert not alike("a ... c", "a b\n c\n")
    assert not alike("a\n...", "b\nc\n")
    assert not alike("a", "a\nb\n")
    assert not alike("", "a\n")


@pytest.mark.parametrize(
    ("expected", "got", "new"),
    [
        # right as it is
        ("Brier 0.5\n...\ndone", "Brier 0.5\nerror 1\ndone\n", "Brier 0.5\n...\ndone"),
        (
            "Brier 0.5\n...\n12 rows",
            "Brier  0.25\nerror 1\n1,300 rows\n",
            "Brier  0.25\n...\n1,300 rows",
        ),
        ("Brier 0.5\n...", "Brier 0.25\nerror 1\nerror 2\n", "Brier 0.25\n..."),
        # a new line
        ("Brier 0.5\ndone", "Brier 0.25\nerror 1\ndone\n", "Brier 0.25\nerror 1\ndone"),
        ("Brier 0.5\n...\ndone", "Brier 0.25\nerror 1\n", "Brier 0.25\nerror 1"),  # a line is gone
        ("Brier 0.5", "Brier 0.25\nerror 1\n", "Brier 0.25\nerror 1"),
    ],
)
def test_pages_are_refreshed(expected: str, got: str, new: str) -> None:
    assert refreshed(expected, got) == new
    assert alike(new, got)


@needs_a_shell
def test_a_page_is_refreshed_where_it_is_wrong_and_nowhere_else(tmp_path: Path) -> None:
    page = (
        "Text 1\n\n```console\n$ echo 2 and \\\n>   3\n2 and 4\n$ echo 4\n4\n$ echo 2 and 5\n2 "
        "and 7\n```\n\n2 and 4\n"
    )
    new = page.replace("2 and 4\n$", "2 and 3\n$").replace("2 and 7", "2 and 5")
    assert rewritten(page, one(page), tmp_path) == new
    assert rewritten(new, one(new), tmp_path) == new
