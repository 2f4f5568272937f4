"""The page on saved states says what the core lists of them.

`python tests/docs/test_state_format.py` writes the page anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import truecast as tc
from truecast import _core, hints, ledger
from truecast.recalibrate import class_state, tickets
from truecast.state import Entry

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "state.md"

START = """# Saved states

`to_json()` saves everything, and `from_json()` continues from exactly there; `to_bytes()` is the
same, compressed. You need this page only to read a saved state with something else.

```text
{"format": "truecast", "version": 2, "kind": "Platt", "config": {...}, "state": {...}, "crc32": ...}
```

`config` has the arguments that build the object; `state` has what rounds change: the entries
below. `crc32` is the checksum of the other entries as JSON with sorted keys and no spaces. The
bytes are `TRUECAST`, the version in one byte, and the text compressed by zlib.

Loading refuses entries that are missing, too many, of another type, out of range, or
that do not fit together.

A *table* is packed: `lengths` of its columns in order; `digits`, in base64, the lower bytes of
floats and of 16-bit numbers (6 of 8, 2 of 4, 1 of 2); `table`, in base64 and compressed by zlib,
all others. Each column has the lowest bytes of all its numbers, then the second ones, and so on.
Tables have 64-bit numbers, but for `offset` (32 bits), `aim`, `notes` (16) and `same` (8).
"""

LADDER = """
N is `grid` for `AlmostOneStepAhead` and 2^30 for `BentGrid`. The range of `open_cell` is
that of a grid of 4.
"""

GUARD = """
`aims` is a list of the numbers that the nudge and the offsets of groups have learned. `asked` is
null, or the forecast that awaits its outcome: the forecast, its key, what it can add to the
energy, the numbers of its groups, and what it was made from. Group 0 is everyone.
"""

RECALIBRATOR = """
`hint` is the state of the hint. `groups` are the names of the groups from number 2 on; group 1 is
all others. `guard` is as for `Guard`. `tickets` has `issued`, how many there were, and the table
`awaited`. `asked` are the scores that `observe` is about.
"""

CLASSES = """
`groups` has the names of groups, in the order of their numbers. `guard` is as for `Guard`, with a
group for each class: first those of everyone, then those of all groups beyond `max_groups`, then
those of each named group. `tops` likewise has one for the rounds in which a class was the most
probable. `nudges` has the first three aims for each class. `tickets` has `issued` and the table
`awaited`; `asked` is such a table with one row or none, the forecast that `observe` is about: its
number is what the budget did not allow for, over 2^20, and it keeps only the scores. `bursts` is as
for `Recalibrator`. `hint` has the entries below, and in `each` the state of the hint of each class.
With one hint for each class only the first three are there; with more than 16 classes there is no
matrix. States from before there were groups have no `groups`, only the fields of everyone, and the
first five columns of `awaited`: they are read.
"""

MONITOR = """
`book` has what concerns all rounds. `chains` is a list, a single one but for the order "chains":
each has `rounds`, and `accounts`, of everyone, of all others, and of the groups that `groups`
names. Of classes, the first chain is of the likeliest one, and there is a chain for each class.
`late` has `passed_over` and `given_up`, numbers of forecasts; `lags`, of zeros and of ones how
many, the sum of their lags and of the squares; and the `table` of forecasts that await an outcome,
or an older one's, as lists.
"""


def typed(entry: Entry) -> str:
    one = {"bool": "true or false", "<f8": "float", "<f4": "float"}.get(entry.kind, "integer")
    return one if entry.length is None else f"{one}s"


def ranged(entry: Entry) -> str:
    return "" if entry.kind == "bool" else f"{limit(entry.least)} to {limit(entry.most)}"


def limit(x: float) -> str:
    size = abs(x)
    power = math.log2(size) if size >= 1 << 16 else 0.5
    return ("-" if x < 0 else "") + (f"2^{power:.0f}" if power.is_integer() else f"{size:g}")


def table(entries: Iterable[Entry]) -> str:
    rows = [f"| `{e.name}` | {typed(e)} | {ranged(e)} | {e.meaning} |" for e in entries]
    return "\n".join(["", "| entry | type | range | |", "|---|---|---|---|", *rows, ""])


def listed(entries: Iterable[tuple]) -> str:
    return table(Entry(*each) for each in entries)


def page() -> str:
    guard = ledger.ENTRIES
    parts = [START]
    parts += ["\n## AlmostOneStepAhead, BentGrid\n", LADDER, listed(tc.BentGrid(grid=4)._entries())]
    parts += ["\n## HorizonFree\n", listed(tc.HorizonFree()._entries())]
    parts += ["\n## Arc\n", listed(tc.Arc()._entries())]
    parts += ["\n## Guard\n", GUARD, table(guard["guard"]), "\nThe aims:\n", table(guard["aims"])]
    for name in ("groups", "offsets", "knots"):
        parts += [f"\nThe table `{name}`:\n", table(guard[name])]
    parts += ["\n## Recalibrator\n", RECALIBRATOR]
    parts += ["\nThe table `awaited`:\n", table(tickets.ENTRIES)]
    parts += ["\n`bursts`, on outcomes that come together:\n", listed(_core.BURSTS)]
    parts += ["\n## ClassRecalibrator\n", CLASSES]
    parts += ["\nThe table `awaited`:\n", table(class_state.ENTRIES), "\n`hint`:\n"]
    parts += [listed(tc.ClassRecalibrator(classes=3)._desk.hint_entries())]
    parts += ["\n## Monitor\n", MONITOR, "\n`book`:\n", listed(_core.WATCH["book"])]
    parts += ["\nAn account:\n", listed(_core.WATCH["accounts"])]
    parts += ["\nThe table:\n", listed(_core.WATCH["tickets"])]
    parts += ["\n## Hints\n", "\n`Identity` has no entries.\n"]
    for hint in (hints.Platt(), hints.BinMeans(), hints.Isotonic()):
        parts += [f"\n`{type(hint).__name__}`:\n", listed(hint._entries()[0])]
    parts += ["\n`Mix` and `Experts`, besides `members`, the states of their hints:\n"]
    parts += [listed(hints.Mix()._entries()[0])]
    return "".join(parts)


def test_the_page_says_what_the_core_lists() -> None:
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
