"""`truecast recalibrate`: the scores in a file, recalibrated row by row, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecast.cli.shared import (
    Reopened,
    arguments,
    counted,
    echo_json,
    errors,
    file_type,
    opened,
    plain,
    progress,
    refuse_folder,
    refuse_twice,
    say,
)

if TYPE_CHECKING:
    from truecast.files import Names, Recalibrated


@click.command(short_help="Recalibrate the scores in a file, row by row, with a certificate.")
@arguments("file")
@click.option("-o", "--output", required=True, metavar="OUT", help="Where to write, in the format of FILE; or -.")
@arguments("outcome", "score")
@click.option("--by", metavar="NAME", help="Column of groups, each of which is to be calibrated by itself.")
@click.option(
    "--max-groups",
    type=int,
    default=1000,
    show_default=True,
    help="So many; all others share one more. For a new state.",
)
@click.option("--column", default="recalibrated", show_default=True, metavar="NAME", help="Name of the new column.")
@click.option("--state", type=file_type, help="Keep what was learned in this file, and go on from it if it is there.")
@click.option("--report", "page", type=file_type, help="Write a page about before and after, such as report.html.")
@click.option("--unknown", is_flag=True, help="Allow rows without an outcome: they are forecast, not learned from.")
@arguments("json", "skip_bad")
def recalibrate(
    file: str,
    output: str,
    outcome: str | None,
    score: str | None,
    by: str | None,
    max_groups: int,
    column: str,
    state: Path | None,
    page: Path | None,
    unknown: bool,
    as_json: bool,
    skip_bad: bool,
) -> None:
    """Write FILE with one more column: its probabilities, recalibrated.

    Goes through FILE row by row, in order. Each probability is turned into a calibrated one by what was learned from
    the rows above it, and only then is its outcome learned: what you see is what you would have had live, had each
    outcome come before the next row. Prints the certificate, a proved bound on how far the new probabilities are from
    perfectly calibrated ones.

    With --state, tomorrow's file goes on where today's has ended. If FILE begins with all the rows of the run before,
    as a log does that grows, only those after them are taken (and added to OUT if that is the same): none counts twice.
    A run that was stopped, by Ctrl-C or by a power cut, is gone on with by the same command, and OUT becomes what it
    would have been. In Python the state is `truecast.Recalibrator.from_json(text)`. Standard input is taken to be new,
    unless a run of it was stopped.

    FILE is CSV, JSON lines or Parquet, plain or packed (.gz, .bz2, .xz, .zst), of any size; - reads standard input.

    \b
    Examples:
      truecast recalibrate scores.csv -o calibrated.csv --report report.html
      truecast recalibrate monday.csv -o monday-out.csv --state model.json
      truecast recalibrate scores.parquet --by airport -o calibrated.parquet
    """  # noqa: D301
    with errors({"max_groups": "--max-groups"}):
        out = None if output == "-" else Path(output)
        _refuse(file, out, state, page)
        scores = () if score is None else (score,)
        reopened = Reopened(file, outcome=outcome, scores=scores, group=by)
        with _resumable(state), progress("recalibrating") as show:
            from truecast.files import Recalibration
            from truecast.recalibrate import Recalibrator

            done = Recalibration(
                reopened.open,
                out,
                column,
                Recalibrator(max_groups=max_groups),
                state,
                repeatable=file != "-",
                skip_bad=skip_bad,
                unknown=unknown,
                progress=lambda table, rows: show(table.fraction(), f"{rows:,} rows"),
            ).run()
        _print(done, out, as_json)
        if page is not None and out is not None:
            _write_page(page, out, reopened.names, column, done)


def _refuse(file: str, out: Path | None, state: Path | None, page: Path | None) -> None:
    """Refuse what cannot be written, before any work is done."""
    if out is None and (state is not None or page is not None):
        raise click.UsageError("--state and --report need a file to write to: -o OUT")
    files = {"-o": out, "--state": state, "--report": page}
    for option, path in files.items():
        refuse_folder(option, path)
    refuse_twice({"FILE": None if file == "-" else Path(file)} | files)


@contextmanager
def _resumable(state: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was written" if state is None else "the same command goes on from there"
        say(f"stopped; {kept}")
        raise click.exceptions.Exit(130) from None


def _print(done: Recalibrated, out: Path | None, as_json: bool) -> None:
    certificate = done.recalibrator.certificate
    counts = {name: getattr(done, name) for name in ("rows", "earlier", "skipped", "unknown")}
    if as_json:
        brier = dict(zip(("score", "recalibrated"), done.brier, strict=True))
        echo_json(counts | {"brier": brier, "certificate": plain(certificate)}, err=out is None)
        return
    to_user = partial(click.echo, err=out is None)
    if done.earlier:
        to_user(f"{counted(done.earlier, 'row')} recalibrated before; {done.rows:,} new")
    if done.skipped:
        to_user(f"{counted(done.skipped, 'bad row')} skipped")
    if done.unknown:
        to_user(f"{counted(done.unknown, 'row')} without an outcome: forecast, not learned from")
    to_user(str(certificate))
    if done.rows > done.unknown:
        rows = f"the {counted(done.rows - done.unknown, 'row')} of this run"
        to_user(f"Brier score of {rows}: {done.brier[0]:.6f} before, {done.brier[1]:.6f} recalibrated")
    if out is not None:
        click.echo(f"written to {out}")


def _write_page(page: Path, out: Path, names: Names, column: str, done: Recalibrated) -> None:
    """Write about all rows of the output, those of earlier runs included."""
    from truecast.cli.course import course_of_file
    from truecast.files import rounds, tallies
    from truecast.report import html_report

    scores = *names.scores, column
    with (
        opened(str(out), outcome=names.outcome, scores=scores, group=names.group) as (table, both),
        progress("measuring") as show,
    ):
        known = (part.known() for part in rounds(table, both, unknown=True))
        found = tallies(table.name, both, known, lambda rows: show(table.fraction(), f"{rows:,} rows"))
    score, certificate = names.scores[0], done.recalibrator.certificate
    html_report(
        {score: found.scores[score]},
        after=found.scores[column],
        groups=found.groups.get(score),
        certificate=certificate if certificate.rounds == found.rows else None,
        source=str(out),
        outcome=names.outcome,
        group=names.group or "group",
        skipped=done.skipped,
        times=course_of_file(str(out), names, column),
    ).save(page)
    say(f"report written to {page}")
