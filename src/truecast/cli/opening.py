"""Files that are opened, and which of their columns are taken."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from truecast.cli.refusals import Refusal
from truecast.cli.terminal import say

if TYPE_CHECKING:
    from truecast.files import Names, OpenTable

__all__ = ["Reopened", "opened", "uncollected"]

_SHOWN = 20  # columns that are named where they were guessed


@contextmanager
def opened(
    file: str, *, quiet: bool = False, follow: Callable[[], bool] | None = None, **columns: Any
) -> Iterator[tuple[OpenTable, Names]]:
    """Open a file, and say which columns are taken where that was guessed.

    Parameters
    ----------
    file
        Its path, or - for standard input.
    quiet
        Say nothing.
    follow
        As for `truecast.files.open_table`.
    columns
        As for `truecast.files.guess`.
    """
    # NumPy's threads would spin for their first moments, on cores that are to read the file
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        with uncollected("polars"):
            from truecast.files import guess, open_table
            from truecast.files.columns import brief
    except ImportError as error:
        raise Refusal("reading files needs Polars: pip install 'truecast[cli]'") from error
    with open_table(file, follow=follow) as table:
        names = guess(table.name, table.columns, sample=table.sample, **columns)
        scores = columns.get("class_scores") or columns.get("scores", ())
        if (
            not quiet
            and len(table.columns) > 1
            and (columns.get("outcome") is None or scores == ())
        ):
            shown = [brief(repr(score)) for score in names.scores[:_SHOWN]]
            more = len(names.scores) - len(shown)
            taken = (
                f", classes in {', '.join(shown)}" + (f" and {more:,} more" if more else "")
                if names.labels
                else "".join(f", score {score}" for score in shown)
            )
            say(f"{table.name}: outcome {brief(repr(names.outcome))}{taken}")
        yield table, names


@contextmanager
def uncollected(module: str) -> Iterator[None]:
    """Keep the collector of cycles away from a large import, now and at the end of the process.

    It would go through all that is imported a dozen times, and find nothing to collect.
    """
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Reopened:
    """A file that may be opened several times; what was guessed is said once."""

    names: Names

    def __init__(self, file: str, **columns: Any) -> None:
        self._file = file
        self._columns = columns
        self._quiet = False

    @contextmanager
    def open(self) -> Iterator[tuple[OpenTable, Names]]:
        """Open it at its beginning."""
        with opened(self._file, quiet=self._quiet, **self._columns) as (table, self.names):
            self._quiet = True
            yield table, self.names
