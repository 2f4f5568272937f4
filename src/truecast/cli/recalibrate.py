"""`truecast recalibrate`: the scores in a file, recalibrated row by row, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast._names import aligned, counted, cut_in_the_middle, terminal_width
from truecast.cli.opening import Reopened
from truecast.cli.options import Once, arguments, file_type
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors, interruptible
from truecast.cli.terminal import echo, echo_json, plain, progress, say
from truecast.errors import shown, writing

if TYPE_CHECKING:
    from truecast.files import Names, RecalibrationResult
    from truecast.files.rounds import Rounds

_LONGEST_GROUP = 30  # letters of its name


@click.command(cls=Once)
@arguments("file")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    help="Output file, in the format of FILE; or -.",
)
@arguments("outcome", "score", "classes")
@click.option(
    "--by",
    multiple=True,
    metavar="NAME",
    help="Column of groups to calibrate; may be repeated, and groups may overlap.",
)
@click.option(
    "--max-groups",
    type=int,
    default=1000,
    show_default=True,
    help="At most this many groups; all others share one. For a new state.",
)
@click.option(
    "--column",
    default="recalibrated",
    show_default=True,
    metavar="NAME",
    help="Name of the new column; of several classes, what their names begin with.",
)
@click.option(
    "--state",
    type=file_type,
    help="Keep what was learned in this file, and continue from it if it exists.",
)
@click.option(
    "--report",
    "page",
    type=file_type,
    help="Write a page that compares before and after, such as report.html.",
)
@click.option(
    "--title", metavar="TEXT", help="Title of that page.  [default: from the name of OUT]"
)
@click.option(
    "--unknown",
    is_flag=True,
    help="Allow rows without an outcome: they are forecast, not learned from.",
)
@click.option(
    "--id",
    "ids",
    metavar="NAME",
    help="Column of ids: outcomes may be filled in later, in any order.",
)
@click.option(
    "--event",
    metavar="NAME",
    help="With --id: column of events; all rows of an event count as one outcome.",
)
@click.option(
    "--time", metavar="NAME", help="Column of times, numbers or ISO dates; must not decrease."
)
@click.option(
    "--sort",
    is_flag=True,
    help="Sort the rows by --time first, in memory; OUT is sorted too.",
)
@click.option(
    "--complete", is_flag=True, help="With --state: also take a last line that has no line break."
)
@click.option(
    "--again",
    is_flag=True,
    help="With --state: treat all rows as new, even if they look known. Not with --id.",
)
@arguments("json", "cells", "skip_bad")
def recalibrate(
    file: str,
    output: str,
    outcome: str | None,
    score: str | None,
    classes: dict[str, Any],
    by: tuple[str, ...],
    max_groups: int,
    column: str,
    state: Path | None,
    page: Path | None,
    title: str | None,
    unknown: bool,
    ids: str | None,
    event: str | None,
    time: str | None,
    sort: bool,
    complete: bool,
    again: bool,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Write FILE with one more column: its probabilities, recalibrated.

    Goes through FILE row by row, in order. Each row uses only the rows above it, and then its
    outcome is learned: this is what you would have seen live if each outcome came before the next
    row. So rows must be in time order: --time checks that, --sort sorts them. Prints the
    certificate, a proved bound on how far the new probabilities are from perfectly calibrated ones,
    and the errors before and after.

    With --state, tomorrow's file continues where today's ended. If FILE starts with all rows of the
    last run, like a growing log, only the new rows are processed (and added to OUT if that is the
    same). If it shares rows with the last run in another way, it is refused, and the error names
    the first row that differs. Only the last run is remembered: rows of an older file would count
    twice, unless there is an --id. A last line without a line break may be incomplete, and waits
    for the next run. The same command continues a run that was stopped by Ctrl-C or a power cut;
    OUT is then the same as without the stop. In Python, `truecast.Recalibrator.from_json(text)`
    loads the state. Standard input counts as new, unless a run on it was interrupted.

    With --id, rows are recognised by their id. Each is forecast once, when it is first seen, and
    learned when its outcome appears, in any row and run. OUT is FILE with those forecasts. A row
    that contradicts an earlier one is refused.

    With several classes the outcome is the name of one, and each has a column of probabilities
    (--scores). OUT has a new column for each, such as recalibrated_home, and the certificate is
    about each class and about the most probable one. All options work as for two outcomes.

    New columns are written as FILE's are: with --percent from 0 to 100, with --decimal , with
    commas. The same options read them.

    FILE is CSV, JSON lines or Parquet, plain or compressed (.gz, .bz2, .xz, .zst), of any size; -
    reads standard input.

    \b
    Examples:
      truecast recalibrate scores.csv -o calibrated.csv --report report.html
      truecast recalibrate monday.csv -o monday-out.csv --state model.json
      truecast recalibrate log.csv --id order -o out.csv --state model.json
      truecast recalibrate scores.parquet --by airport -o calibrated.parquet
      truecast recalibrate scores.csv --by airport --by carrier -o out.csv
      truecast recalibrate games.csv --scores p_home,p_draw,p_away -o out.csv
      truecast recalibrate games.csv --id game -o out.csv --report report.html
    """  # noqa: D301
    with errors({"max_groups": "--max-groups", "groups": "--by"}):
        out = None if output == "-" else Path(output)
        if out is None and (state is not None or page is not None):
            raise click.UsageError("--state and --report need a file to write to: -o OUT")
        check_outputs({"-o": out, "--state": state, "--report": page}, file)
        for option, given in {"--complete": complete, "--again": again}.items():
            if given and state is None:
                raise click.UsageError(
                    f"{option} needs --state: without it, every run starts from scratch"
                )
        if title is not None and page is None:
            raise click.UsageError("--title is for the page, so it needs --report FILE")
        if sort and time is None:
            raise click.UsageError("--sort needs the column to sort by: --time NAME")
        if again and ids is not None:
            raise click.UsageError("--again is for runs without --id: rows are known by their ids")
        if event is not None and ids is None:
            reason = "without it, each outcome comes before the next row"
            raise click.UsageError(f"--event needs --id: {reason}")
        for column_of_groups in by:
            if by.count(column_of_groups) > 1:
                raise click.UsageError(
                    f"--by must name each column once, got {column_of_groups!r} twice"
                )
        scores = () if score is None else (score,)
        first, *others = by or (None,)
        columns = {"outcome": outcome, "scores": scores, "group": first, "overlapping": others}
        reopened = Reopened(file, **columns, **classes, **cells)
        kept = "nothing was written"
        if state is not None and ids is None:
            kept = "the same command continues from there"
        with interruptible(f"stopped; {kept}"), progress("recalibrating", rows=out is None) as show:
            from truecast.files import Recalibration
            from truecast.recalibrate import Recalibrator
            from truecast.recalibrate.tickets import MAX_UNRESOLVED

            options: dict[str, Any] = {} if ids is None else {"max_unresolved": MAX_UNRESOLVED}
            done = Recalibration(
                reopened.open,
                out,
                column,
                Recalibrator(max_groups=max_groups, **options),
                state,
                repeatable=file != "-",
                skip_bad=skip_bad,
                unknown=unknown,
                ids=ids,
                time=time,
                event=event,
                sort=sort,
                complete=complete,
                again=again,
                progress=lambda table, rows: show(table.fraction(), f"{rows:,} rows"),
            ).run()
        _print(done, out, as_json)
        _say_what_is_left(done, file)
        if page is not None and out is not None:
            _write_page(page, out, reopened.names, column, time, done, title)


def _print(done: RecalibrationResult, out: Path | None, as_json: bool) -> None:
    certificate = done.recalibrator.certificate
    counts = {
        name: getattr(done, name)
        for name in ("rows", "earlier", "skipped", "unknown", "learned", "lost")
    }
    if as_json:
        brier, smooth = map(_before_after, (done.brier, done.smooth))
        found: dict[str, Any] = {"held": done.held, "brier": brier}
        found["smooth_calibration_error"] = smooth
        if done.groups:
            found["groups"] = _groups_as_json(done)
        echo_json(counts | found | {"certificate": plain(certificate)}, err=out is None)
        return
    to_user = partial(echo, err=out is None)
    for line in [*_counts(done), str(certificate), *_errors(done), *_by_group(done)]:
        to_user(line)
    if out is not None:
        echo(f"written to {shown(str(out))}")


def _counts(done: RecalibrationResult) -> Iterator[str]:
    if done.earlier:
        yield f"{counted(done.earlier, 'row')} recalibrated before; {done.rows:,} new"
    if done.skipped:
        yield f"{counted(done.skipped, 'bad row')} skipped"
    if done.recalibrator.unresolved:
        yield f"{counted(done.learned, 'outcome')} learned; {done.unknown:,} still to come"
    elif done.unknown:
        yield f"{counted(done.unknown, 'row')} without an outcome: forecast, not learned from"
    if done.lost:
        yield f"{counted(done.lost, 'outcome')} not learned: no longer awaited: too many were"


def _errors(done: RecalibrationResult) -> Iterator[str]:
    """Lines on how good scores were, and what was made of them."""
    from truecast.recalibrate import ClassRecalibrator

    if done.learned:
        outcomes = f"of {counted(done.learned, 'outcome')} of this run"
        yield f"{outcomes:34}{'before':>12}{'after':>12}"
        names = "Brier score", "smooth calibration error"
        if isinstance(done.recalibrator, ClassRecalibrator):
            names = "Brier score (0 to 2)", "smooth errors of classes, summed"
        for name, (before, after) in zip(names, (done.brier, done.smooth), strict=True):
            yield f"  {name:32}{before:12.6f}{after:12.6f}"


def _groups_as_json(done: RecalibrationResult) -> list[dict[str, Any]]:
    return [
        {
            "group": name,
            "learned": found.learned,
            "brier": _before_after(found.brier),
            "smooth_calibration_error": _before_after(found.smooth),
            "certificate": plain(done.recalibrator.groups[name].certificate),
        }
        for name, found in done.groups.items()
    ]


def _before_after(pair: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("score", "recalibrated"), pair, strict=True))


def _by_group(done: RecalibrationResult) -> Iterator[str]:
    """Lines on the groups: how good their scores were, and what is proved of each by itself."""
    from truecast.recalibrate import ClassRecalibrator

    if not done.groups:
        return
    lines = [["group", "rounds", "Brier", "after", "error", "after", "proved"]]
    for name, found in done.groups.items():
        proved = done.recalibrator.groups[name].certificate.per_round
        figures = (f"{figure:.4f}" for figure in (*found.brier, *found.smooth, proved))
        lines.append([_shown_group(name), f"{found.learned:,}", *figures])
    yield "by group, the largest first"
    yield aligned(lines, [False] + [True] * 6)
    several = isinstance(done.recalibrator, ClassRecalibrator)
    error = "smooth errors of classes, summed" if several else "smooth calibration error"
    yield f"error: {error}; proved so far: distance to"
    yield "calibration <= this a round, of the group by itself"


def _shown_group(name: str) -> str:
    """Return the name of a group as there is room for it in a table."""
    return cut_in_the_middle(shown(name), lambda text: terminal_width(text) <= _LONGEST_GROUP)


def _say_what_is_left(done: RecalibrationResult, file: str) -> None:
    """Say what is left for another time."""
    if done.held:
        say(f"{file}, {done.held}: no line break yet, left out (--complete takes it)")
    if done.forgotten:
        say(f"an interrupted run to {done.forgotten!r} is forgotten; its .part can be removed")


def _write_page(
    page: Path,
    out: Path,
    names: Names,
    column: str,
    time: str | None,
    done: RecalibrationResult,
    title: str | None,
) -> None:
    """Write about all rows of the output, of earlier runs too, or all that are known by ids."""
    from truecast.report import html_report

    new = tuple(f"{column}_{label}" for label in names.labels) or (column,)
    if names.overlapping:
        names = replace(names, group=None, overlapping=())
    if names.labels:
        rows, compared = _compared_classes(out, names, new, done)
    else:
        rows, compared = _compared(out, names, new, done, time)
    certificate = done.recalibrator.certificate
    made = html_report(
        **compared,
        certificate=certificate if certificate.rounds == rows else None,
        title=title,
        source=str(out),
        outcome=names.outcome,
        group=names.group or "group",
        skipped=done.skipped,
    )
    with writing(page, "--report"):
        made.save(page)
    say(f"report written to {shown(str(page))}")


@contextmanager
def _learned(out: Path, names: Names, done: RecalibrationResult) -> Iterator[Iterator[Rounds]]:
    """Give the rounds of the output whose outcomes are known, or those known by ids."""
    from truecast.files import open_table, rounds

    if done.known is not None:
        known = done.known.resolved()
        yield iter([known if names.group is not None else replace(known, group=None)])
        return
    with open_table(str(out)) as table, progress("measuring") as show:

        def shown_rounds() -> Iterator[Rounds]:
            rows = 0
            for part in rounds(table, names, unknown=True):
                rows += len(part)
                show(table.fraction(), f"{rows:,} rows")
                yield part.known()

        yield shown_rounds()


def _compared(
    out: Path, names: Names, new: tuple[str, ...], done: RecalibrationResult, time: str | None
) -> tuple[int, dict[str, Any]]:
    """Return how many rounds a page compares, and what it compares: a score, before and after."""
    from truecast.cli.course import course_of_file
    from truecast.files import tallies

    both = replace(names, scores=(*names.scores, *new))
    with _learned(out, both, done) as parts:
        found = tallies(str(out), both, parts)
    score, after = both.scores
    return found.rows, {
        "y_true": {score: found.scores[score]},
        "after": found.scores[after],
        "groups": found.groups.get(score),
        "groups_after": found.groups.get(after),
        "times": course_of_file(str(out), both, found.rows, time=time, after=True),
    }


def _compared_classes(
    out: Path, names: Names, new: tuple[str, ...], done: RecalibrationResult
) -> tuple[int, dict[str, Any]]:
    """Return the same of several classes: each side is counted by itself."""
    from truecast.files import class_tallies

    size = len(new)
    sides = [
        (names, slice(size)),
        (replace(names, scores=new, normalize=False), slice(size, None)),
    ]
    found = []
    for side, columns in sides:
        with _learned(out, side, done) as parts:
            # what is known by ids has both sides
            some = (replace(part, p=part.p[columns] if done.known else part.p) for part in parts)
            found.append(class_tallies(str(out), side, some))
    before, after = found
    return before.rows, {
        "y_true": before.tally,
        "after": after.tally,
        "groups": before.groups or None,
        "groups_after": after.groups or None,
    }
