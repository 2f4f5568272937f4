"""`truecast report`: a page about the scores in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from truecast._names import as_one_line
from truecast.cli.measure import JUDGING, tallied_classes, titled
from truecast.cli.options import Once, arguments, file_type
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors
from truecast.cli.terminal import echo, fitted, say
from truecast.errors import shown, writing

if TYPE_CHECKING:
    from truecast.files import ClassTallies, Tallies


@click.command(cls=Once)
@arguments("file")
@click.option(
    "-o",
    "--output",
    type=file_type,
    default="report.html",
    show_default=True,
    help="The page to write.",
)
@arguments("outcome", "scores", "classes", "weight", "by")
@click.option(
    "--time", metavar="NAME", help="Column of times, for a course over time.  [default: guessed]"
)
@click.option("--title", metavar="TEXT", help="Title of the page.  [default: the name of the file]")
@arguments("cells", "skip_bad")
def report(
    file: str,
    output: Path,
    outcome: str | None,
    scores: tuple[str, ...],
    classes: dict[str, Any],
    weight: str | None,
    by: str | None,
    time: str | None,
    title: str | None,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Write an HTML page about the probabilities in FILE: are they calibrated, how sure is that,
    where are they off.

    One self-contained file that you can send to anyone: it loads nothing, and reads well on a phone
    and on paper. It compares several scores; --by adds a section on groups. With several classes
    (--scores) each has a picture, beside the table of predicted and actual classes. FILE is as for
    `truecast measure`.

    \b
    Examples:
      truecast report scores.csv
      truecast report scores.csv --by airport --title "Late arrivals"
      truecast report scores.parquet --score old --score new -o late.html
      truecast report games.csv --outcome result --scores p_home,p_draw,p_away
    """  # noqa: D205, D301
    with errors():
        check_outputs({"-o": output}, file)
        columns = {"outcome": outcome, "scores": scores, "weight": weight, "group": by}
        counts = tallied_classes(
            file, skip_bad=skip_bad, needed=JUDGING, **columns, **classes, **cells
        )
        options = _reading_options(**cells, normalize=classes["normalize"], skip_bad=skip_bad)
        if time is not None and (file == "-" or weight or len(counts.names.scores) > 1):
            raise click.UsageError(
                "--time is for one score in a file, which is read twice, and without --weight"
            )
        if counts.names.labels:
            _write_classes(cast("ClassTallies", counts), output, title, options)
            return
        found = cast("Tallies", counts)
        from truecast.cli.course import course_of_file
        from truecast.report import html_report

        several = len(found.scores) > 1
        groups = found.groups if several else next(iter(found.groups.values()), None)
        page = html_report(
            found.scores,
            groups=groups or None,
            title=title,
            source=found.name,
            outcome=found.names.outcome,
            group=by or "group",
            options=options,
            skipped=found.skipped,
            times=course_of_file(file, found.names, found.rows, time=time, skip_bad=skip_bad),
        )
        with writing(output, "-o"):
            page.save(output)
        for score, verdict in page.verdicts.items():
            echo(titled(score, verdict))
        say(f"report written to {shown(str(output))}")


def _reading_options(
    *, positive: str | None, percent: bool, decimal: str, normalize: bool, skip_bad: int
) -> list[str]:
    """Return how the file was read, for the command that the page suggests."""
    options = [] if positive is None else ["--positive", positive]
    options += ["--percent"] if percent else []
    options += [] if decimal == "." else ["--decimal", decimal]
    options += ["--normalize"] if normalize else []
    return options + ["--skip-bad"] * skip_bad


def _write_classes(
    found: ClassTallies, output: Path, title: str | None, options: list[str]
) -> None:
    from truecast.report import html_report

    page = html_report(
        found.tally,
        groups=found.groups or None,
        title=title,
        source=found.name,
        outcome=found.names.outcome,
        score=as_one_line(found.names.scores),
        group=found.names.group,
        options=options,
        skipped=found.skipped,
    )
    with writing(output, "-o"):
        page.save(output)
    for verdict in page.verdicts.values():
        echo(fitted(f"{verdict}."))
    say(f"report written to {shown(str(output))}")
