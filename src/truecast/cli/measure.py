"""`truecast measure`: every measure of the scores in a file, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from truecast._names import aligned, counted, cut_in_the_middle, terminal_width
from truecast.cli.classes import print_classes
from truecast.cli.opening import opened, uncollected
from truecast.cli.options import Once, arguments
from truecast.cli.refusals import errors
from truecast.cli.terminal import WIDTH, echo, echo_json, fitted, progress, say
from truecast.errors import shown

if TYPE_CHECKING:
    from truecast.files import ClassTallies, Tallies
    from truecast.measures import Report, Stretch, Uncertainty
    from truecast.plot import GroupOverview
    from truecast.tally import Tally

# what verdicts need, and imports late
JUDGING = (
    "numpy.random",
    "statistics",
    "truecast.measures.lower_distance",
    "truecast.report.verdict",
    "truecast.report.words",
)
_SMOOTH = "smooth calibration error"
_TESTED = 1000  # groups, those with the most evidence, for which chance is simulated
_GROUP_RESAMPLES = 200
_LONGEST = 24  # letters of a name above a column
_SHORTEST = 8  # room for the name of a group


@click.command(cls=Once)
@arguments(
    "file", "outcome", "scores", "classes", "weight", "by", "resamples", "json", "cells", "skip_bad"
)
def measure(
    file: str,
    outcome: str | None,
    scores: tuple[str, ...],
    classes: dict[str, Any],
    weight: str | None,
    by: str | None,
    resamples: int | None,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Measure the probabilities in FILE against what happened.

    FILE is CSV, JSON lines or Parquet, plain or compressed (.gz, .bz2, .xz, .zst), of any size; -
    reads standard input. It has a column of outcomes, 0 or 1, and one or more of probabilities.
    Rows are counted, not kept: memory grows only with the number of distinct probabilities.

    Starts with the verdict: are they calibrated, as far as chance lets us tell, and where are they
    off. Then come two proper scores, which judge calibration and sharpness together, the smooth
    calibration error and how large it would be by chance, and other common measures. With several
    classes the outcome is the name of one, and each has a column of probabilities (--scores); every
    class is judged, and every group (--by) by all its classes. For the exact distance to
    calibration use `truecast distance`; for a page to share, `truecast report`.

    \b
    Examples:
      truecast measure scores.csv --outcome late --score model
      truecast measure scores.parquet --score old --score new --by airport
      truecast measure games.csv --outcome result --scores p_home,p_draw,p_away
      truecast measure games.csv --by league
      zcat scores.csv.gz | truecast measure - --json
    """  # noqa: D301 (click wants the character itself, to leave the lines of a paragraph alone)
    with errors():
        columns = {"outcome": outcome, "scores": scores, "weight": weight, "group": by}
        counts = tallied_classes(
            file, skip_bad=skip_bad, needed=JUDGING, **columns, **classes, **cells
        )
        if counts.names.labels:
            print_classes(cast("ClassTallies", counts), resamples, as_json)
            return
        found = cast("Tallies", counts)
        from truecast.measures import measure as measure_all

        judged = {
            name: judge(name, tally, resamples)
            for name, tally in found.scores.items()
            if resamples != 0
        }
        reports = {
            name: judged[name].figures if judged else measure_all(tally)
            for name, tally in found.scores.items()
        }
        if as_json:
            echo_json(_as_json(found, reports, judged, resamples))
            return
        for name, one in judged.items():
            echo(one.text(name))
        echo(
            "\n" * bool(judged)
            + side_by_side(reports, {name: one.smooth_error for name, one in judged.items()})
        )
        for score in found.groups:
            echo(f"\n{_groups(found, score, resamples)}")


def tallied(file: str, *, skip_bad: int, **columns: Any) -> Tallies:
    """Count the rounds of a file with outcomes 0 or 1, as `tallied_classes` does."""
    return cast("Tallies", tallied_classes(file, skip_bad=skip_bad, **columns))


def tallied_classes(
    file: str, *, skip_bad: int, needed: Iterable[str] = (), **columns: Any
) -> Tallies | ClassTallies:
    """Count the rounds of a file; say what was skipped or pooled, or is odd.

    Modules that will be needed are imported while the file is being read.
    """
    with opened(file, **columns) as (table, names), progress("counting") as show:
        table.start(names.all)
        with uncollected("truecast.files.tallies"):
            from truecast.files import class_tallies, rounds, tallies

            for module in needed:
                import_module(module)

        parts = rounds(table, names, skip_bad=skip_bad)
        count: Callable[..., Tallies | ClassTallies] = class_tallies if names.labels else tallies
        found = count(
            table.name, names, parts, lambda rows: show(table.fraction(), f"{rows:,} rows")
        )
    if found.skipped:
        say(f"{table.name}: {counted(found.skipped, 'bad row')} skipped, {found.rows:,} kept")
    if found.pooled:
        say(
            f"{table.name}: too many distinct scores: near ones were pooled; ignore "
            "the error by value"
        )
    for score, tally in getattr(found, "scores", {}).items():
        if set(tally.p[:3].tolist()) <= {0.0, 1.0}:
            oddity = (
                "is 0 or 1 in every row: decisions, not probabilities; if there are probabilities, "
                "name their column"
            )
            say(f"{table.name}: {_name(score, 60)} {oddity} with --score")
        elif columns.get("percent") and tally.p[-1] <= 0.01:
            oddity = "is at most 1 %; if these are probabilities from 0 to 1, leave out --percent"
            say(f"{table.name}: {_name(score, 60)} {oddity}")
    return found


class Judged(NamedTuple):
    """What the page says about a score, in figures and in words."""

    figures: Report
    smooth_error: Uncertainty | None
    kind: str
    headline: str
    p_value: float | None
    sentences: Sequence[str]
    notes: Sequence[str]
    stretches: Sequence[Stretch]

    def text(self, name: str) -> str:
        """Return the verdict, then where the score is off and what is peculiar about it."""
        sentences = (
            [*self.sentences, *self.notes] if self.kind not in ("few", "none") else self.notes
        )
        return "\n".join(
            [
                titled(name, f"{self.headline}{self._sure}."),
                *(fitted(one, indent="  ") for one in sentences),
            ]
        )

    @property
    def _sure(self) -> str:
        from truecast.report.numerals import p_value

        return "" if self.p_value is None else f"; p-value {p_value(self.p_value)}"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it but the figures, as plain data."""
        from dataclasses import asdict

        where = [asdict(part) | {"gap": part.gap} for part in self.stretches]
        plain = {"kind": self.kind, "headline": self.headline, "p_value": self.p_value}
        sentences = {"sentences": list(self.sentences), "notes": list(self.notes)}
        return {"verdict": plain | sentences | {"where": where}}


def titled(score: str, verdict: str) -> str:
    """Return what is said of a score, under its name."""
    text = f"{_name(score)}: {verdict}"
    return fitted(text, WIDTH - terminal_width(text) + len(text))  # letters may be wide


def judge(name: str, tally: Tally, resamples: int | None) -> Judged:
    """Return the verdict of the page, by the same computation."""
    from truecast.report import findings
    from truecast.report.verdict import notes, verdict
    from truecast.report.words import where_sentences

    found = findings.judge(name, tally, resamples, random_state=0)
    found_verdict = verdict(found)
    return Judged(
        figures=found.figures,
        smooth_error=found.smooth_error,
        kind=found_verdict.kind,
        headline=found_verdict.headline,
        p_value=None if found.smooth_error is None else found.p_value,
        sentences=where_sentences(found),
        notes=notes(found),
        stretches=found.marked,
    )


def side_by_side(
    reports: Mapping[str, Report], smooth_errors: Mapping[str, Uncertainty | None]
) -> str:
    """Return a column for every score, as many beside each other as fit, and the others below."""
    names = list(reports)
    most = len(names)
    while (
        (text := _columns({name: reports[name] for name in names[:most]}, smooth_errors))
        and most > 1
        and not _fits(text)
    ):
        most -= 1
    rest = {name: reports[name] for name in names[most:]}
    return f"{text}\n\n{side_by_side(rest, smooth_errors)}" if rest else text


def _fits(text: str) -> bool:
    return all(terminal_width(line) <= WIDTH for line in text.split("\n"))


def _columns(reports: Mapping[str, Report], smooth_errors: Mapping[str, Uncertainty | None]) -> str:
    every = list(reports.values())
    judged = [error for error in map(smooth_errors.get, reports) if error is not None]
    lines: list[Sequence[str]] = [["", *map(_name, reports)]]
    total = every[0].total
    lines.append(
        ["rounds" if type(total) is int else "weight", *(f"{each.total:,}" for each in every)]
    )
    lines.append(["distinct forecasts", *(f"{each.forecasts:,}" for each in every)])
    lines.append(["mean outcome", *_shown(each.mean_outcome for each in every)])
    lines.append(["mean forecast", *_shown(each.mean_forecast for each in every)])
    for about, figures in every[0].figures.items():
        lines.append([about])
        for name in figures:
            lines.append([f"  {name}", *_shown(each.figures[about][name] for each in every)])
            if name == _SMOOTH and judged:  # of all of them: they share their weights
                lines += _chance_lines(judged)
    for kind, name in (("brier", "Brier score"), ("log", "log loss")):
        lines.append([f"{name} = miscalibration - discrimination + uncertainty"])
        for part in ("miscalibration", "discrimination", "uncertainty"):
            lines.append(
                [f"  {part}", *_shown(getattr(getattr(each, kind), part) for each in every)]
            )
    return _table(lines)


def _chance_lines(chance: Sequence[Uncertainty]) -> list[Sequence[str]]:
    return [
        [f"    {chance[0].level:.0%} interval from", *_shown(each.lower for each in chance)],
        ["      to", *_shown(each.upper for each in chance)],
        ["    if calibrated, by chance", *_shown(each.if_calibrated for each in chance)],
    ]


def _p_value(value: float) -> str:
    """Return a p-value; nobody should care for its digits where it is that small."""
    return "<0.0001" if value < 1e-4 else f"{value:.3g}"


def _overview(found: Tallies, score: str, resamples: int | None) -> GroupOverview:
    from truecast.plot import group_overview

    times = _GROUP_RESAMPLES if resamples is None else max(resamples, 20)
    return group_overview(
        found.groups[score], resamples=times, tested=0 if resamples == 0 else _TESTED
    )


def _groups(found: Tallies, score: str, resamples: int | None) -> str:
    overview = _overview(found, score, resamples)
    adjusted = overview.adjusted
    lines: list[Sequence[str]] = [
        ["rounds", "outcome", "forecast", "Brier", "error", "chance", "p-value"]
    ]
    for at in range(len(overview)):
        figures = (
            overview.mean_outcome,
            overview.mean_forecast,
            overview.brier,
            overview.error,
            overview.chance,
        )
        lines.append(
            [
                _count(overview.rounds[at]),
                *(_brief(figure[at]) for figure in figures),
                _p_value(adjusted[at]),
            ]
        )
    room = max(
        _SHORTEST,
        WIDTH
        - 2 * len(lines[0])
        - sum(max(map(len, column)) for column in zip(*lines, strict=True)),
    )
    names = ["group", *(_name(name, room) for name in overview.names)]
    table = _table([[name, *line] for name, line in zip(names, lines, strict=True)])
    some = (
        f"; nan after the first {_TESTED:,}" if resamples != 0 and len(overview) > _TESTED else ""
    )
    return (
        f"{titled(score, 'by group, those with the most evidence against them first')}\n{table}\n"
        "outcome, forecast: means; error: the smooth calibration error; chance: its mean\n"
        "if the group were calibrated;\n"
        f"p-value: adjusted for {len(overview):,} groups (Holm){some}"
    )


def _count(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def _brief(figure: float) -> str:
    """Return a number in at most seven characters, to fit a table of many columns."""
    return f"{figure:.4f}" if figure == 0 or not abs(figure) < 1e-3 else f"{figure:.1e}"


def _name(name: object, most: int = _LONGEST) -> str:
    """A name as it can stand in a table: in a line, and not too long."""
    text = "(none)" if name is None else repr(name) if name == "(none)" else shown(str(name))
    return cut_in_the_middle(text, lambda text: terminal_width(text) <= most)


def _shown(figures: Iterable[float]) -> list[str]:
    return [f"{figure:.6f}" for figure in figures]


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines under each other: the first column to the left, numbers to the right."""
    columns = max(map(len, lines))
    return aligned(lines, [False] + [True] * (columns - 1))


def _as_json(
    found: Tallies,
    reports: Mapping[str, Report],
    judged: Mapping[str, Judged],
    resamples: int | None,
) -> dict[str, Any]:
    from dataclasses import asdict

    scores = {}
    for score, report in reports.items():
        one = judged.get(score)
        judgement = {"verdict": None} if one is None else one.to_dict()
        interval = None if one is None or one.smooth_error is None else asdict(one.smooth_error)
        if interval is not None:
            # that of the verdict allows for all that was looked at: one is enough
            del interval["p_value"]
        scores[score] = (
            judgement | report.to_dict() | {"smooth_calibration_error_uncertainty": interval}
        )
    data: dict[str, Any] = {
        "rows": found.rows,
        "skipped": found.skipped,
        "pooled": found.pooled,
        "scores": scores,
    }
    if found.groups:
        data["groups"] = {score: _groups_as_json(found, score, resamples) for score in found.groups}
    return data


def _groups_as_json(found: Tallies, score: str, resamples: int | None) -> list[dict[str, Any]]:
    from truecast.measures import measure as measure_all

    overview = _overview(found, score, resamples)
    chances = zip(
        overview.chance.tolist(), overview.p_value.tolist(), overview.adjusted.tolist(), strict=True
    )
    entries = []
    with progress("measuring") as show:
        for done, (name, chance) in enumerate(zip(overview.names, chances, strict=True), 1):
            report = measure_all(found.groups[score][cast("str | None", name)]).to_dict()
            sure = dict(zip(("if_calibrated", "p_value", "adjusted_p_value"), chance, strict=True))
            entries.append(
                {"group": name} | report | {"smooth_calibration_error_uncertainty": sure}
            )
            show(done / len(overview), f"{done:,} groups")
    return entries
