"""A course over time for the page, where a file has a column of times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truecast.cli.terminal import progress, say
from truecast.errors import FileError

if TYPE_CHECKING:
    from truecast.files import Names
    from truecast.report import RunningCourse

_TIMES = ("time", "date", "timestamp", "ts", "datetime", "day", "when", "created_at", "issued_at")


def course_of_file(
    file: str,
    names: Names,
    rows: int,
    *,
    time: str | None = None,
    after: bool = False,
    skip_bad: int = 0,
) -> RunningCourse | None:
    """Return what happened over time in a file, for its page.

    Reads the file a second time: not for standard input, several scores or weights. None, too, if
    no column is called like a time, or a row that has an outcome has no score; and if the cells of
    a column that was only called so cannot be read as times, which is said.

    Parameters
    ----------
    file, names, skip_bad
        What the page is about.
    rows
        That the page counts. If the file does not have as many, as it may with ids, it is not what
        the page shows.
    time
        The column of times, if it is known.
    after
        Whether the second score is the first one, recalibrated.
    """
    import numpy as np

    from truecast.files import open_table, rounds
    from truecast.files.columns import check_there
    from truecast.files.times import Times
    from truecast.report import RunningCourse

    if file == "-" or len(names.scores) > 1 + after or names.weight is not None:
        return None
    course = RunningCourse()
    seen = 0
    with open_table(file) as table, progress("dating") as show:
        called = (
            name for name in table.columns if name.lower() in _TIMES and name not in names.all
        )
        check_there(table.name, table.columns, time, "--time")
        column = time or next(called, None)
        if column is None:
            return None
        times = Times(table.name, column, 0)
        read = replace(names, group=None, also=(column,), repeated=after)
        for part in rounds(table, read, skip_bad=skip_bad, unknown=True):
            some = part.known()
            if any(np.isnan(p).any() for p in some.p):
                return None
            try:
                course.add(times.dates(some), some.y, *some.p)
            except FileError as error:
                if time is not None:
                    raise
                say(f"{error}: the page shows no course over time")
                return None
            seen += len(some)
            show(table.fraction(), f"{seen:,} rows")
    return course if seen == rows else None
