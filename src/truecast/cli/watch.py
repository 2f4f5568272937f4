"""`truecast watch`: follow a file of forecasts, and say when they stop being calibrated."""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast._names import counted
from truecast.cli.opening import opened
from truecast.cli.options import Once, arguments, file_type
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors, interruptible
from truecast.cli.terminal import echo, echo_json, finite, fitted, say

if TYPE_CHECKING:
    from truecast.files import Names, OpenTable
    from truecast.files.watching import Alarm, WatchRun
    from truecast.monitor import Finding, Monitor
    from truecast.monitor.groups import Evidence

ALARM = 3  # exit code
_SMOOTH = "smooth calibration error"


@click.command(cls=Once)
@arguments("file", "outcome", "scores", "classes")
@click.option(
    "--by",
    multiple=True,
    metavar="NAME",
    help="Column of groups, each watched by itself; may be repeated: groups may overlap. Not "
    "with several classes yet.",
)
@click.option("--alpha", type=float, help="Chance of any false alarm, ever.  [default: 0.01]")
@click.option(
    "--mean-time",
    type=float,
    metavar="N",
    help="Instead: at most one false alarm in N rows on average; starts anew after each.",
)
@click.option("--time", metavar="NAME", help="Column of times, to say since when.")
@click.option("--once", is_flag=True, help="Read what there is, and end; 3 if there is an alarm.")
@click.option(
    "--interval",
    type=click.FloatRange(0.01, 86400),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look for new rows.",
)
@click.option(
    "--state", type=file_type, help="Keep what was seen in this file, and continue from it."
)
@arguments("json", "cells", "skip_bad")
def watch(
    file: str,
    outcome: str | None,
    scores: tuple[str, ...],
    classes: dict[str, Any],
    by: tuple[str, ...],
    alpha: float | None,
    mean_time: float | None,
    time: str | None,
    once: bool,
    interval: float,
    state: Path | None,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Bet against the probabilities in FILE, row by row, and raise an alarm when bets win.

    Goes through FILE in order, then waits for rows that are added, until Ctrl-C. If the
    probabilities are right, the chance of an alarm, ever, is at most --alpha; or there is on
    average at most one in --mean-time rows. You may look as often as you like. An alarm says since
    when, where and by how much, as far as can be told.

    Rows must be in the order in which they were forecast, and have outcomes. If outcomes come late,
    see the guide on watching.

    With --state, a run continues where the last one ended, killed or not. If FILE starts with all
    rows of the last run, only the new rows are processed; if it shares rows with the last run in
    another way, it is refused. An alarm may be printed twice after a kill, but counts once.
    Standard input counts as new. In Python, `truecast.Monitor.from_json(text)` loads the state.

    With several --score, each is watched: a model's own probabilities and the recalibrated ones,
    say.

    With several classes the outcome is the name of one, and each has a column of probabilities
    (--scores). Each class is watched, and so is the largest probability; --alpha and --mean-time
    are for all of them together, and an alarm names its class.

    FILE is CSV or JSON lines; with --once also Parquet, or compressed; - reads standard input.

    \b
    Exit codes: 3 with --once, or at the end of standard input, if there was an
    alarm: in this run, or ever with --alpha and --state.

    \b
    Examples:
      truecast watch scores.csv
      truecast watch scores.csv --once --alpha 0.001 || mail -s drift me
      truecast watch log.csv --mean-time 1e6 --time when --state watch.json
      truecast watch scores.csv --by airport --by carrier --once
      truecast watch games.csv --outcome result --scores p_home,p_draw,p_away
      tail -f log.jsonl | truecast watch - --json
    """  # noqa: D301
    with errors({"alpha": "--alpha", "mean_time": "--mean-time"}):
        if alpha is not None and mean_time is not None:
            raise click.UsageError("--alpha and --mean-time are two promises: choose one")
        for column in by:
            if by.count(column) > 1:
                raise click.UsageError(f"--by must name each column once, got {column!r} twice")
        if by and (classes["class_scores"] or classes["classes"]):
            raise click.UsageError("--by does not work with several classes yet: leave it out")
        if state is not None and len(scores) > 1:
            raise click.UsageError("--state is for one --score")
        check_outputs({"--state": state}, file)
        raised: list[Alarm] = []
        run = _watched(
            file,
            _opener(file, outcome, scores, by, cells | classes),
            {"alpha": alpha, "mean_time": mean_time},
            time=time,
            state=state,
            follow=None if once else _wait(file, interval),
            skip_bad=skip_bad,
            on_alarm=raised.append if as_json and once else _json_line if as_json else _line,
        )
        with interruptible("stopped"):
            run.run()
        _print(run, as_json, raised if once else None)
        if run.alarms or any(map(_stays, run.monitors.values())):
            raise click.exceptions.Exit(ALARM)


def _stays(monitor: Monitor) -> bool:
    """Whether there was an alarm, of everyone or a group, that stays."""
    if monitor.config["alpha"] is None:
        return False
    return monitor.alarms > 0 or any(group.alarms for group in monitor.groups.values())


def _wait(file: str, interval: float) -> Callable[[], bool]:
    """Give what is called at the end of the file: there may be more after a while."""

    def wait() -> bool:
        if file == "-":
            return False
        clock.sleep(interval)
        return True

    return wait


def _opener(
    file: str,
    outcome: str | None,
    scores: tuple[str, ...],
    by: tuple[str, ...],
    cells: dict[str, Any],
) -> Any:
    """Give what opens the file; what was guessed is said once."""
    first, *others = by or (None,)
    said: list[bool] = []

    @contextmanager
    def open_file(follow: Callable[[], bool] | None) -> Iterator[tuple[OpenTable, Names]]:
        with opened(
            file,
            quiet=bool(said),
            follow=follow,
            outcome=outcome,
            scores=scores,
            group=first,
            overlapping=others,
            **cells,
        ) as found:
            said.append(True)
            yield found

    return open_file


def _watched(
    file: str,
    open_file: Any,
    promise: dict[str, Any],
    **options: Any,
) -> WatchRun:
    from truecast.files.watching import WatchRun
    from truecast.monitor import ClassMonitor, Monitor

    def new(labels: tuple[str, ...]) -> Monitor:
        if labels:
            return ClassMonitor(classes=list(labels), normalize=True, **promise)
        monitor: Monitor = Monitor(**promise)
        return monitor

    new(())  # refuse bad options before the file is read

    return WatchRun(
        open_file,
        new,
        repeatable=file != "-",
        **options,
    )


def _json_line(alarm: Alarm) -> None:
    click.echo(json.dumps(finite(_plain_alarm(alarm)), allow_nan=False))


def _line(alarm: Alarm) -> None:
    echo(_in_words(alarm))


def _in_words(alarm: Alarm) -> str:
    finding = alarm.finding
    who = f"{alarm.score}" if alarm.group is None else f"{alarm.score}, {alarm.group}"
    when = alarm.row if alarm.when is None else f"{alarm.row} ({alarm.when})"
    began = alarm.since or _row(finding)
    more = f" ({alarm.count} alarms, this is the last)" if alarm.count > 1 else ""
    return f"ALARM {who}, {when}: {finding.in_words(began)}; {_much(finding.evidence)}{more}"


def _row(finding: Finding) -> str:
    return f"row {finding.since + 1:,}"


def _much(evidence: float) -> str:
    return "for certain" if math.isinf(evidence) else f"evidence {evidence:.3g}"


def _plain(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"points": finding.points, "words": str(finding)}


def _plain_alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        "alarm": _plain(alarm.finding),
        "score": alarm.score,
        "group": alarm.group,
        "row": alarm.row,
        "when": alarm.when,
        "since": alarm.since,
        "count": alarm.count,
    }


def _print(run: WatchRun, as_json: bool, raised: list[Alarm] | None) -> None:
    """Say how it stands at the end, as JSON with the alarms that were raised, if these are given.

    Otherwise each was printed when it came.
    """
    if as_json:
        more = {} if raised is None else {"raised": [*map(_plain_alarm, raised)]}
        echo_json(_summary(run) | more)
        return
    if run.earlier:
        say(f"{counted(run.earlier, 'row')} seen before; {run.rows:,} new")
    if run.skipped:
        say(f"{counted(run.skipped, 'bad row')} skipped")
    for score, monitor in run.monitors.items():
        found = monitor.smooth_error()
        echo(
            f"{score}: {counted(monitor.rounds, 'row')}, {_much(monitor.evidence)} "
            f"(alarm at {monitor.threshold:.4g}), {_how_many(monitor)}"
        )
        stays = monitor.config["alpha"] is not None
        if monitor.alarm is not None and stays and _parts(monitor)[0] == "groups":
            _print_alarm(run, monitor.alarm)
        smooth = f"{_SMOOTH} from {found.lower:.4f} to {found.upper:.4f}, 95 %{_why(monitor)}"
        echo(fitted(smooth, indent="  "))
        for name, part in _named_parts(monitor):
            if part.alarm is not None:
                _print_alarm(run, part.alarm, name)
    _compare(run)


def _how_many(monitor: Monitor) -> str:
    """The alarms so far, in words, such as "4 alarms, 3 of them of groups"."""
    alarms = _all_alarms(monitor)
    of_groups = sum(group.alarms for group in monitor.groups.values())
    if not alarms:
        return "no alarm"
    if not of_groups:
        return counted(alarms, "alarm")
    if of_groups == alarms:
        return f"{counted(alarms, 'alarm')} of groups"
    return f"{counted(alarms, 'alarm')}, {of_groups:,} of them of groups"


def _all_alarms(monitor: Monitor) -> int:
    """The alarms so far, of groups and classes too."""
    from truecast.monitor import ClassMonitor

    if isinstance(monitor, ClassMonitor):
        parts = [monitor.confidence, *monitor.classes.values()]
        return sum(part.alarms for part in parts)
    return monitor.alarms + sum(group.alarms for group in monitor.groups.values())


def _print_alarm(run: WatchRun, alarm: Finding, name: str | int | None = None) -> None:
    whose = "" if name is None else f"{name}: "
    words = alarm.in_words(run.dates.at(alarm.since) or _row(alarm))
    echo(fitted(f"{whose}{words}", indent="  "))


def _named_parts(monitor: Monitor) -> Iterator[tuple[str | int | None, Evidence]]:
    """The parts, with names that their alarms do not say themselves."""
    from truecast.monitor import ClassMonitor

    if isinstance(monitor, ClassMonitor):
        yield "confidence", monitor.confidence
        yield from ((None, part) for part in monitor.classes.values())
    else:
        yield from monitor.groups.items()


def _why(monitor: Monitor) -> str:
    """Why the interval may begin at 0 although there is an alarm."""
    if not monitor.alarms or monitor.smooth_error().lower > 0:
        return ""
    return "; the alarm holds all the same: it can find smaller errors than this interval can show"


def _parts(monitor: Monitor) -> tuple[str, Mapping[str | int, Evidence]]:
    """The groups, or the classes, and what they are."""
    from truecast.monitor import ClassMonitor

    if isinstance(monitor, ClassMonitor):
        return "classes", monitor.classes
    return "groups", monitor.groups


def _compare(run: WatchRun) -> None:
    """Of two scores, such as a model's and the recalibrated ones, say which one holds."""
    alarmed = [score for score, monitor in run.monitors.items() if monitor.alarms]
    if len(run.monitors) == 2 and len(alarmed) == 1:
        (holds,) = set(run.monitors) - set(alarmed)
        echo(f"{alarmed[0]} drifted, {holds} holds")


def _plain_parts(monitor: Monitor) -> dict[str, Any]:
    kind, parts = _parts(monitor)
    return {
        kind: {
            str(name): {
                "rounds": part.rounds,
                "evidence": part.evidence,
                "alarms": part.alarms,
                "alarm": None if part.alarm is None else _plain(part.alarm),
            }
            for name, part in parts.items()
        }
    }


def _summary(run: WatchRun) -> dict[str, Any]:
    return {
        "rows": run.rows,
        "earlier": run.earlier,
        "skipped": run.skipped,
        "alarms": run.alarms,
        "scores": {
            score: {
                "rounds": monitor.rounds,
                "evidence": monitor.evidence,
                "certain": math.isinf(monitor.evidence),
                "threshold": monitor.threshold,
                "alarms": _all_alarms(monitor),
                "alarm": None if monitor.alarm is None else _plain(monitor.alarm),
                "since": None if monitor.alarm is None else run.dates.at(monitor.alarm.since),
                "finding": _plain(monitor.finding),
                "smooth_error": asdict(monitor.smooth_error()),
                **_plain_parts(monitor),
            }
            for score, monitor in run.monitors.items()
        },
    }
