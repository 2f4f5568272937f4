"""Write anew what commands print on pages: `python tests/docs/refresh.py docs/command.md ...`. Read
the difference."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from blocks import Block, alike, blocks, commands, printed_by, run_pycon, run_python, why_not_run

ROOT = Path(__file__).parents[2]


def refreshed(expected: str, got: str) -> str:
    """What the page is to say: as it does, if that is right; else the same lines with the figures
    of now.

    Lines are the same if they differ in figures only, and stay left out where the page has dots. If
    the page has a line that is not printed any more, everything that is printed takes the place of
    it all.
    """
    if alike(expected, got):
        return expected
    new, rest = [], got.rstrip().splitlines()
    dots = False
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            new.append(line)
            dots = True
            continue
        at = next((i for i, other in enumerate(rest) if _shape(other) == _shape(line)), None)
        if at is None or (at and not dots):
            return got.rstrip()
        new.append(rest[at])
        rest, dots = rest[at + 1 :], False
    return "\n".join(new) if dots or not rest else got.rstrip()


def _shape(line: str) -> str:
    return re.sub(r"[0-9][0-9.,]*", "0", " ".join(line.split()))


def rewritten(page: str, block: Block, folder: Path) -> str:
    """Return the page with what the commands of a block print now."""
    session, lines, new = commands(block), block.text.splitlines(), []
    for (_, expected), (got, _) in zip(session, printed_by(session, folder), strict=True):
        new.append(lines.pop(0))
        while lines and lines[0].startswith("> "):
            new.append(lines.pop(0))
        new += refreshed(expected, got).splitlines()
        del lines[: len(expected.splitlines())]
    return page.replace(block.text.rstrip("\n"), "\n".join(new).rstrip("\n"), 1)


def main(pages: list[str]) -> None:
    """Go through pages as their reader would, and write what has changed."""
    for name in pages:
        path = Path(name).resolve()
        page, names = path.read_text(), {"__name__": "__main__"}
        found = blocks(page)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            shutil.copytree(ROOT / "examples", "examples")
            for block in found:
                if why_not_run(block, found):
                    continue
                if block.language in ("pycon", "python"):
                    _try(block, names, name)
                else:
                    page = rewritten(page, block, Path(folder))
        path.write_text(page)


def _try(block: Block, names: dict[str, Any], page: str) -> None:
    """Run Python, whose results are not written anew: say where they are others."""
    try:
        (run_pycon if block.language == "pycon" else run_python)(block, names, page)
    except Exception as error:
        print(f"{page}, line {block.line}: {str(error)[:2000]}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    main(sys.argv[1:])
