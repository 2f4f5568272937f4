"""Code blocks of Markdown pages: found, told apart, and run."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = doctest.ELLIPSIS
TIMEOUT = 300  # seconds; a block that takes longer hangs

#: what a block for reading may say, line by line: setting up, and scripts that take minutes
SETUP = re.compile(
    r"#|\S*python3? -m venv |\S*pip install |git clone |cd |source |bash scripts/|python "
    r"benchmarks/"
)
_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_MARK = re.compile(r"<!-- not run: (.{10,}) -->")
_CODE = re.compile(
    r"^(>>> |\$ |import |from \w+ import |(\S*/)?(truecast|python|pip) )", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A fenced block, or an indented one, whose language is then None."""

    line: int
    language: str | None
    text: str
    reason: str | None = None  # why it is not run


def blocks(markdown: str) -> list[Block]:
    """Every block of code, in order."""
    found, lines = [], markdown.splitlines()
    number, owner, before = 0, "", ""
    while number < len(lines):
        line, start = lines[number], number
        number += 1
        if fence := _FENCE.match(line):
            body, number = _fenced(lines, number, fence)
            mark = _MARK.search(before)
            found.append(
                Block(start + 1, fence["info"].strip() or None, body, mark[1] if mark else None)
            )
        elif (
            line.startswith("    ")
            and not (start and lines[start - 1].strip())
            and not _holds_more(owner)
        ):
            while number < len(lines) and (
                lines[number].startswith("    ") or not lines[number].strip()
            ):
                number += 1
            found.append(Block(start + 1, None, "\n".join(lines[start:number])))
        elif line.strip():
            before = line
            owner = owner if line.startswith(" ") else line
    return found


def _fenced(lines: list[str], number: int, fence: re.Match[str]) -> tuple[str, int]:
    """The lines up to the closing fence, without the indent of the opening one, and where to read
    on."""
    body = []
    while number < len(lines) and not re.match(
        rf"^ *{fence['marks'][0]}{{{len(fence['marks'])},}} *$", lines[number]
    ):
        body.append(lines[number].removeprefix(fence["indent"]))
        number += 1
    return "\n".join(body) + "\n", number + 1


def _holds_more(line: str) -> bool:
    """Whether indented lines after this one belong to it: an item, a box, a tab, an entry of the
    reference."""
    return bool(re.match(r"[-*+] |\d+\. |!!! |\?\?\?|=== |::: ", line))


def why_not_run(block: Block, page: list[Block]) -> str | None:
    """The reason why a block need not run, or None if it must; an AssertionError if it cannot be
    told."""
    if block.reason:
        return block.reason
    assert block.language, (
        f"line {block.line}: a block without a language: pycon, python, console, sh, text ..."
    )
    if block.language == "sh":
        ran = [
            command
            for other in page
            if other.language == "console"
            for command, _ in commands(other)
        ]
        for command in re.split(r"\n|&&", block.text.replace("\\\n", " ").replace("&&\n", "&&")):
            said = re.sub(r"^\S*/(?=truecast )", "", command.strip())
            assert not said or SETUP.match(said) or said in ran, (
                f"line {block.line}: {said!r} is in a block that is not run"
            )
        return "sets up, or takes minutes"
    if block.language == "text":
        assert not _CODE.search(block.text), f"line {block.line}: text that looks like code"
        return "no code"
    assert block.language in {"pycon", "python", "console"}, (
        f"line {block.line}: nothing runs {block.language!r}"
    )
    return None


def run_pycon(block: Block, names: dict[str, Any], page: str) -> None:
    """Run a session as a doctest."""
    test = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line)
    assert test.examples, f"{page}, line {block.line}: no >>> in a pycon block"
    test.globs = names  # get_doctest makes a copy, and blocks of a page share their names
    told = io.StringIO()
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.write, clear_globs=False)
    assert not result.failed, told.getvalue()


def run_python(block: Block, names: dict[str, Any], page: str) -> str:
    """Run a script, with its line numbers in the page; return what it printed."""
    code = compile("\n" * block.line + block.text, page, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)  # noqa: S102
    return printed.getvalue()


def commands(block: Block) -> list[tuple[str, str]]:
    """What follows each $ in a console block, with what it prints; > continues a command."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            assert found or not line.strip(), f"line {block.line}: output before any command"
            found[-1][1].append(line)
    assert found, f"line {block.line}: no $ in a console block"
    return [(command.replace("\\\n", " "), "\n".join(lines)) for command, lines in found]


def run_console(block: Block, folder: Path, page: str) -> None:
    """Run commands in one shell and compare what they print, to stdout and stderr as on a terminal.

    A command may fail if the next one asks for its exit code, by `echo $?`.
    """
    session = commands(block)
    printed = printed_by(session, folder)
    for number, ((command, expected), (got, code)) in enumerate(zip(session, printed, strict=True)):
        assert expected.strip() != "...", (
            f"{page}, line {block.line}: dots alone would let anything pass"
        )
        where = f"{page}, line {block.line}: $ {command}\n"
        assert alike(expected, got), f"{where}--- the page:\n{expected}\n--- the command:\n{got}"
        asked = number + 1 < len(session) and session[number + 1][0] == "echo $?"
        assert code == 0 or asked, f"{where}exit code {code}"


def printed_by(session: list[tuple[str, str]], folder: Path) -> list[tuple[str, int]]:
    """What each command prints, run in one shell, and its exit code."""
    script = "".join(
        f"{command}\n_code=$?; printf '\\036%d\\036' $_code; (exit $_code)\n"
        for command, _ in session
    )
    done = subprocess.run(
        ["bash", "-c", script],  # noqa: S607
        cwd=folder,
        env=os.environ
        | {"PATH": f"{shims(folder)}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    printed = done.stdout.split("\x1e")
    assert len(printed) == 2 * len(session) + 1, done.stdout
    return [(printed[2 * number], int(printed[2 * number + 1])) for number in range(len(session))]


def alike(expected: str, got: str) -> bool:
    """Whether the output is as the page says, where ... may stand for a part of a line, or alone
    for lines."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r" *\n"
    return re.fullmatch(pattern, got.rstrip() + "\n" if got.strip() else "") is not None


def shims(folder: Path) -> Path:
    """A folder with the commands of this very Python, for PATH."""
    bin_folder = folder / ".bin"
    if not bin_folder.exists():
        bin_folder.mkdir()
        main = "import sys; from truecast.cli import main; main(prog_name='truecast')"
        for name, words in {"truecast": f'-c "{main}"', "python": ""}.items():
            (bin_folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (bin_folder / name).chmod(0o755)
    return bin_folder
