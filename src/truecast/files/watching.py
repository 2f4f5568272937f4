"""Rows of a file through monitors, as they come; no row counts twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from truecast import state as saving
from truecast._atomic import replaced
from truecast._check import EPOCH
from truecast.errors import FileError, StateError, writing
from truecast.files.cells import as_option
from truecast.files.columns import Names, check_there
from truecast.files.prints import Comparison, Prints
from truecast.files.rounds import NoRowsError, Rounds, rounds
from truecast.files.source import OpenTable
from truecast.files.times import Times
from truecast.files.unfinished import lock
from truecast.monitor import ClassMonitor, Finding, Monitor
from truecast.monitor.dates import MOST_DATES, Dates

__all__ = ["Alarm", "WatchRun"]

_BEGIN = b'{"format": "truecast", '
_SLICE = 4096  # rows after which alarms are looked for
_MOST = 1 << 53

Opener = Callable[[Callable[[], bool] | None], AbstractContextManager[tuple[OpenTable, Names]]]


@dataclass(frozen=True)
class Alarm:
    """An alarm in a file.

    Attributes
    ----------
    score : str
        The column of the forecasts.
    group : str or None
        Whose forecasts they are; None for everyone's. Classes are named by the finding, and
        "confidence" is the largest probability of each row.
    row : str
        Where in the file the alarm came, at the latest.
    finding : Finding
        What it says.
    when, since : str or None
        The times of the alarm and of its beginning, if rows have times.
    count : int
        How many alarms there were in a few thousand rows; this is the last.
    """

    score: str
    group: str | None
    row: str
    finding: Finding
    when: str | None
    since: str | None
    count: int = 1


@dataclass
class WatchRun:
    """Rows through a monitor for each score, and a state that remembers them.

    With a `state`, no row counts twice: if the file begins with all rows of the last run, only
    those after them are taken; if it shares rows with it in another way, it is refused; else all
    its rows are new. See `truecast.files.Recalibration`, whose rules these are.

    Attributes
    ----------
    open : function
        Opens the file at its beginning, as a context of the table and the names of its columns;
        takes `follow`, as `open_table` does.
    new : function
        Makes a new monitor for classes of these names, or for outcomes 0 and 1 if there are none.
    state : Path or None
        The file that keeps it; for a single score.
    time : str or None
        A column of times.
    repeatable : bool
        Whether the file can be read twice.
    follow : function or None
        As for `open_table`.
    skip_bad : int
        As for `rounds`.
    on_alarm : function
        Is called with each alarm.
    """

    open: Opener
    new: Callable[[tuple[str, ...]], Monitor]
    state: Path | None = None
    time: str | None = None
    repeatable: bool = True
    follow: Callable[[], bool] | None = None
    skip_bad: int = 0
    on_alarm: Callable[[Alarm], None] = lambda alarm: None
    monitors: dict[str, Monitor] = field(default_factory=dict, init=False)
    rows: int = field(default=0, init=False)
    earlier: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)
    alarms: int = field(default=0, init=False)
    dates: Dates = field(default_factory=Dates, init=False)
    _prints: Prints = field(default_factory=Prints, init=False)

    def run(self) -> None:
        """Watch all rows, or those that are new.

        Raises
        ------
        FileError
            If the file or the state cannot be used, or a row breaks a rule. What was saved before
            stays.
        """
        with lock(self.state, "--state"):
            before = self._load()
            known = 0 if before is None else self._known_rows(before)
            with self.open(self.follow) as (table, names):
                self._check(table, names)
                self._play(table, names, known)

    def _check(self, table: OpenTable, names: Names) -> None:
        check_there(table.name, table.columns, self.time, "--time")
        if self.state is not None and len(names.scores) > 1 and not names.labels:
            raise FileError(table.name, "has several scores: --state is for one --score")
        if names.labels and names.group is not None:
            reason = "has several classes, and --by does not work with several classes yet"
            raise FileError(table.name, f"{reason}: leave it out, or watch one with --score")
        if table.records is not None:
            table.records.hold = self.state is not None
        kept = next(iter(self.monitors.values()), None)
        if kept is not None:
            self._check_options(kept, self.new(names.labels))
        scores = (names.outcome,) if names.labels else names.scores
        self.monitors = {score: kept or self.new(names.labels) for score in scores}

    def _check_options(self, kept: Monitor, new: Monitor) -> None:
        before, now = kept.config, new.config
        other = {name: value for name, value in before.items() if value != now.get(name)}
        if other or type(kept) is not type(new):
            shown = _as_options(before)
            raise FileError(
                str(self.state),
                f"has other options, which cannot change: {shown}; give the same ones, or use a "
                "new --state",
            )

    def _play(self, table: OpenTable, names: Names, known: int) -> None:
        also = () if self.time is None else (self.time,)
        times = None if self.time is None else Times(table.name, self.time, 0)
        wanted = replace(names, also=also)
        try:
            for part in rounds(table, wanted, skip_bad=self.skip_bad):
                self._prints.add(replace(part, also=()))
                self.earlier += min(known, len(part))
                new = part.after(known) if known else part
                known -= len(part) - len(new)
                self.skipped += part.skipped
                for some in _sliced(new):
                    self._watch(some, names, times)
                if self.follow is not None:
                    self.save()
        except NoRowsError:
            if not self.earlier:
                raise
        self.save()

    def _watch(self, part: Rounds, names: Names, times: Times | None) -> None:
        members = names.members(part.group)
        first = next(iter(self.monitors.values())).forecasts
        if times is not None:
            self.dates.add(first, [_moment(time) for time in times.dates(part)])
        said, came = list(part.p), part.y
        if names.labels:
            said, came = [np.column_stack(said)], np.array(names.labels)[came.astype(np.int64)]
        raised = []
        for (score, monitor), p in zip(self.monitors.items(), said, strict=True):
            seen = _alarms(monitor, members)
            monitor.update_many(p, came, groups=members)
            now = _alarms(monitor, members)
            for group, (count, finding) in now.items():
                more = count - seen.get(group, (0, None))[0]
                if more and finding is not None:
                    raised.append((score, group, finding, more))
        for score, group, finding, more in sorted(raised, key=lambda alarm: alarm[2].round):
            self._alarm(part, score, group, finding, first, more)
        self.rows += len(part)

    def _alarm(
        self, part: Rounds, score: str, group: Any, finding: Finding, first: int, count: int
    ) -> None:
        self.alarms += count
        row = part.place(min(max(finding.round - first, 0), len(part) - 1))
        when = _in_words(self.dates.at(finding.round))
        since = _in_words(self.dates.at(finding.since))
        who = group
        if isinstance(self.monitors[score], ClassMonitor):
            who = "confidence" if group is None else None
        self.on_alarm(Alarm(score, who, row, finding, when, since, count))

    # What is kept from run to run.

    def save(self) -> None:
        """Save everything, whole: a run that is killed has changed nothing since."""
        if self.state is None or not self.monitors:
            return
        monitor = next(iter(self.monitors.values()))
        run = {
            "rows": self.rows + self.earlier,
            "prints": self._prints.record(),
            "dates": self.dates.record(),
        }
        text = saving.to_json(type(monitor).__name__, monitor.config, monitor.state(), run=run)
        with writing(self.state, "--state"), replaced(self.state, _BEGIN) as part:
            part.write_text(text)

    def _load(self) -> Prints | None:
        """Take over what was saved, if anything; return what rows that has seen."""
        if self.state is None:
            return None
        try:
            text = self.state.read_text()
        except FileNotFoundError:
            return None
        except (UnicodeDecodeError, OSError) as error:
            raise FileError(str(self.state), f"is not a saved monitor ({error})") from error
        try:
            monitor = Monitor.from_json(text)
            run = json.loads(text).get("run")
            before = None if run is None else self._load_run(run)
        except StateError as error:
            reason = f"is not a saved monitor: {saving.reason(error)}; use a new --state"
            raise FileError(str(self.state), reason) from error
        self.monitors = {"": monitor}
        return before

    def _load_run(self, run: Any) -> Prints:
        found = saving.require_entries("run", run, ("rows", "prints", "dates"))
        rows, dates = found["rows"], found["dates"]
        if type(rows) is not int or not 0 <= rows <= _MOST:
            raise StateError(f"the saved rows must be a number from 0, got {rows!r:.80}")
        points = dates.get("points") if isinstance(dates, dict) else None
        step = dates.get("step") if isinstance(dates, dict) else None
        if (
            not isinstance(points, list)
            or len(points) > MOST_DATES
            or any(not isinstance(each, list) or len(each) != 2 for each in points)
            or any(type(each[0]) is not int for each in points)
            or type(step) is not int
            or step < 1
        ):
            raise StateError("the saved dates must be pairs of a number and a time")
        self.dates = Dates(points, step)
        return Prints.load(found["prints"], rows)

    def _known_rows(self, before: Prints) -> int:
        """Return how many rows the file begins with that were seen before."""
        if not self.repeatable or not before.rows:
            return 0
        comparison = Comparison(before)
        with self.open(None) as (table, names):
            if table.records is not None:
                table.records.hold = True
            try:
                for part in rounds(table, names, skip_bad=self.skip_bad):
                    comparison.add(part.first(comparison.left))
                    if not comparison.left:
                        break
            except NoRowsError:
                return 0
            if not comparison.left and all(comparison.same):
                return before.rows
            outcomes, scores, _ = comparison.same
            grouped_before, grouped_now = comparison.grouped
            if outcomes and scores and grouped_before != grouped_now:
                reason = "begins with rows that the state has seen with"
                how = "" if grouped_before else "out"
                raise FileError(table.name, f"{reason}{how} --by: it must be as it was")
            if comparison.shares or comparison.apart:
                reason = "shares rows with the last run, but does not begin with all of them"
                raise FileError(
                    table.name, f"{reason}: no row counts twice. Use a new --state for this file"
                )
        return 0


def _as_options(config: dict[str, Any]) -> str:
    """Return the options of a monitor as the command takes them."""
    classes = ",".join(map(str, config.get("classes") or ()))
    given = {name: config[name] for name in ("alpha", "mean_time")} | {"classes": classes or None}
    return " ".join(as_option(name, value) for name, value in given.items() if value is not None)


def _sliced(part: Rounds) -> Iterator[Rounds]:
    for start in range(0, len(part), _SLICE):
        yield part.at(slice(start, start + _SLICE), 0)


def _alarms(monitor: Monitor, members: Any) -> dict[Any, tuple[int, Finding | None]]:
    """Alarms so far, and the last, of everyone and of these groups; or of each class."""
    if isinstance(monitor, ClassMonitor):
        parts = [(None, monitor.confidence), *monitor.classes.items()]
        return {name: (part.alarms, part.alarm) for name, part in parts}
    found: dict[Any, tuple[int, Finding | None]] = {None: (monitor.alarms, monitor.alarm)}
    names = {
        name
        for each in members or ()
        for name in (each if isinstance(each, tuple) else (each,))
        if name is not None
    }
    for name in sorted(names, key=str):
        group = monitor.groups.get(name)
        if group is not None:
            found[name] = group.alarms, group.alarm
    return found


def _moment(time: Any) -> Any:
    """A time as it is shown and saved: a number, or a date in words."""
    if isinstance(time, np.datetime64):
        when = EPOCH + timedelta(microseconds=int(time.astype(np.int64)))
        text = when.replace(tzinfo=None).isoformat(sep=" ", timespec="minutes")
        return text.removesuffix(" 00:00")
    return time.item() if hasattr(time, "item") else time


def _in_words(time: Any) -> str | None:
    return None if time is None else str(time)
