"""Find phrases that are hard to read, in every text of the repository; part of `bash scripts/test`.

    python scripts/words.py           # all files that git knows
    python scripts/words.py FILE ...  # some

Each line of `TICS` is a phrase, as a regular expression, and what to write instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TICS = {
    r"some (?:[1-9]|0\.)[0-9.,]*": "about 120 ns",
    r"(is|are|was|were) told(?! apart)": "learns, hears, or say who tells it",
    r"so many": "name the number: n rounds, this many",
    r"(is|are|was|were) to be": "must be, will be; or an active verb",
    r"gone on with": "continued",
    r"go(?:es)? on (?:with|from)": "continues",
    r"at the most": "at most",
    r"by so much": "by this much",
    r"in the midst of": "during",
    r"to and fro": "back and forth",
    r"shall": "should, must, will",
    r"nothing is changed then": "nothing changes",
    r"said throughout": "always saying",
    r"stands? by itself": "is self-contained",
    r"takes? rounds to be": "assumes",
    r"whoever": "anyone who",
    r"as that has left it": "unchanged since then",
    r"which must be as": "must be unchanged since",
    r"is seen from": "follows from, is detected from",
}
READ = {".py", ".md", ".hpp", ".cpp", ".yml", ".toml", ".svg", ".html", ".css", ".js"}
_PHRASES = re.compile("|".join(rf"\b(?:{tic})\b" for tic in TICS), re.IGNORECASE)


def files() -> list[Path]:
    """The texts that git knows, but for this one and its test, which name the phrases."""
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(name) for name in listed.stdout.splitlines()]
    return [
        p
        for p in paths
        if p.suffix in READ and p.name not in ("words.py", "test_words.py") and p.exists()
    ]


def found(path: Path) -> Iterator[str]:
    """Each phrase with its place, also one that is broken by the end of a line."""
    text = path.read_text()
    joined = re.sub(r"\s*\n\s*(?:#|//|\.\.\.)?\s*", lambda gap: " " * len(gap[0]), text)
    for match in re.finditer(_PHRASES.pattern.replace(" ", r"\s+"), joined, re.IGNORECASE):
        phrase = " ".join(match[0].split())
        advice = next(a for tic, a in TICS.items() if re.fullmatch(tic, phrase, re.IGNORECASE))
        yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {phrase!r}: {advice}"


def main(names: list[str]) -> int:
    """Print what is found; 1 if there is anything."""
    lines = [line for path in (list(map(Path, names)) or files()) for line in found(path)]
    print("\n".join(lines) or "no hard phrases")  # noqa: T201
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
