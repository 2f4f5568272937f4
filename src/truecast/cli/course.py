"""A course over time for the page, where a file has a column of times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truecast.cli.shared import progress
from truecast.errors import InputError

if TYPE_CHECKING:
    from truecast.files import Names
    from truecast.report import RunningCourse

_TIMES = ("time", "date", "timestamp", "ts", "datetime", "day", "when", "created_at", "issued_at")


def course_of_file(file: str, names: Names, after: str | None = None, *, skip_bad: int = 0) -> RunningCourse | None:
    """Return what happened over time; None if no column is called like a time, or what is in it cannot be read as one.

    Reads the file a second time: not for standard input, several scores or weights.
    """
    from truecast.files import open_table, rounds
    from truecast.report import RunningCourse

    if file == "-" or len(names.scores) > 1 or names.weight is not None:
        return None
    course = RunningCourse()
    with open_table(file) as table, progress("dating") as show:
        column = next((name for name in table.columns if name.lower() in _TIMES and name not in names.all), None)
        if column is None:
            return None
        scores = names.scores if after is None else (*names.scores, after)
        seen = 0
        for whole in rounds(table, replace(names, scores=scores, group=column), skip_bad=skip_bad, unknown=True):
            part = whole.known()
            try:
                course.add(part.group.to_list() if part.group is not None else [], part.y, *part.p)
            except InputError:
                return None
            seen += len(part)
            show(table.fraction(), f"{seen:,} rows")
    return course
