"""Where a file first differs from what the last run read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from truecast.errors import shown
from truecast.files.columns import Names
from truecast.files.prints import Comparison
from truecast.files.rounds import Rounds

__all__ = ["differing_block", "first_difference"]

_SHOWN = 8  # scores of a row


def first_difference(
    now: Iterator[Rounds], was: Iterator[Rounds], names: Names, before: int
) -> tuple[str | None, str] | None:
    """Return where rows first differ from those before, and how; None if they begin with those."""
    rows = 0
    new = next(now, None)
    old = next(was, None)
    while new is not None and old is not None:
        count = min(len(new), len(old))
        for row in np.flatnonzero(_differ(new.first(count), old.first(count)))[:1].tolist():
            here, there = _described(new, row, names), _described(old, row, names)
            later = np.isnan(old.y[row]) and not names.labels
            late = " (--id is for outcomes that come later)" if later else ""
            return new.place(row), f"here is {here} where the last run read {there}{late}"
        rows += count
        new = new.after(count) if len(new) > count else next(now, None)
        old = old.after(count) if len(old) > count else next(was, None)
    return None if old is None else (None, _shorter(rows, before))


def _shorter(rows: int, before: int) -> str:
    return f"has only {rows:,} of the {before:,} rows that the last run read"


def _differ(new: Rounds, old: Rounds) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = (new.y != old.y) & ~(np.isnan(new.y) & np.isnan(old.y))
    for p, q in zip(new.p, old.p, strict=True):
        differ |= p != q
    if new.group is not None and old.group is not None:
        differ |= new.group.ne_missing(old.group).to_numpy()
    return differ


def _described(part: Rounds, row: int, names: Names) -> str:
    outcome = "nothing" if np.isnan(part.y[row]) else f"{part.y[row]:g}"
    if names.labels and outcome != "nothing":
        outcome = shown(names.labels[int(part.y[row])])
    group = "" if part.group is None else f", {shown(names.group or '')} {part.group[row]!r:.40}"
    pairs = list(zip(names.scores, part.p, strict=True))[:_SHOWN]
    scores = ", ".join(f"{shown(name)} {p[row].item()!r}" for name, p in pairs)
    return f"{shown(names.outcome)} {outcome}, {scores}{group}"


def differing_block(
    parts: Iterator[Rounds], comparison: Comparison, before: int
) -> tuple[str | None, str]:
    """Return between which rows, or at which one, a file first differs from the last run."""
    start = comparison.first
    rows = 0
    places = list[str]()
    for part in parts:
        ends = start - rows, min(start + comparison.step, before) - 1 - rows
        places.extend(part.place(row) for row in ends if 0 <= row < len(part))
        rows += len(part)
    if not places:
        return None, _shorter(rows, before)
    if len(set(places)) == 1:
        return places[0], "the row here is not what the last run read"
    return None, f"differs from what the last run read, first between {places[0]} and {places[-1]}"
