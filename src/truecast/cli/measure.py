"""`truecast measure`: every measure of the scores in a file, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from truecast.cli.shared import arguments, counted, echo_json, errors, opened, progress, say

if TYPE_CHECKING:
    from truecast.files import Tallies
    from truecast.measures import Report, Uncertainty
    from truecast.plot import GroupOverview

_SMOOTH = "smooth calibration error"
_TESTED = 1000  # groups, those with the most evidence, for which chance is simulated
_LONGEST = 40


@click.command(short_help="Measure how calibrated, and how good, the scores in a file are.")
@arguments("file", "outcome", "scores", "weight", "by", "resamples", "json", "cells", "skip_bad")
def measure(
    file: str,
    outcome: str | None,
    scores: tuple[str, ...],
    weight: str | None,
    by: str | None,
    resamples: int,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Measure the probabilities in FILE against what happened.

    FILE is CSV, JSON lines or Parquet, plain or packed (.gz, .bz2, .xz, .zst), of any size; - reads standard input. It
    has a column of outcomes, 0 or 1, and one or more of probabilities. Rows are counted, not kept: memory grows with
    the number of distinct probabilities alone.

    Prints two proper scores, which judge calibration and sharpness at once, the smooth calibration error with what
    chance alone would make of it, and the other measures that people ask for. How far the forecasts are from
    calibrated ones, exactly, is `truecast distance`; a page to show to others is `truecast report`.

    \b
    Examples:
      truecast measure scores.csv --outcome late --score model
      truecast measure scores.parquet --score old --score new --by airport
      zcat scores.csv.gz | truecast measure - --json
    """  # noqa: D301 (click wants the character itself, to leave the lines of a paragraph alone)
    with errors():
        found = tallied(file, outcome=outcome, scores=scores, weight=weight, group=by, skip_bad=skip_bad, **cells)
        from truecast.measures import measure as of

        reports = {name: of(tally) for name, tally in found.scores.items()}
        chance = _chances(found, resamples)
        if as_json:
            echo_json(_as_json(found, reports, chance, resamples))
            return
        click.echo(side_by_side(reports, chance))
        for score in found.groups:
            click.echo(f"\n{_groups(found, score, resamples)}")


def tallied(file: str, *, skip_bad: int, **columns: Any) -> Tallies:
    """Count the rounds of a file; say what was skipped or pooled."""
    with opened(file, **columns) as (table, names), progress("counting") as show:
        from truecast.files import rounds, tallies

        parts = rounds(table, names, skip_bad=skip_bad)
        found = tallies(table.name, names, parts, lambda rows: show(table.fraction(), f"{rows:,} rows"))
    if found.skipped:
        say(f"{table.name}: {counted(found.skipped, 'bad row')} skipped, {found.rows:,} kept")
    if found.pooled:
        say(f"{table.name}: so many distinct scores that near ones were pooled; read nothing into the error by value")
    return found


def _chances(found: Tallies, resamples: int) -> dict[str, Uncertainty]:
    """What chance would do to the smooth calibration error; real weights cannot be resampled."""
    from truecast.measures import smooth_calibration_error, uncertainty

    return {
        score: uncertainty(smooth_calibration_error, tally, resamples=resamples)
        for score, tally in found.scores.items()
        if resamples and not tally.weighted
    }


def side_by_side(reports: dict[str, Report], chance: dict[str, Uncertainty]) -> str:
    """Return a column for every score."""
    every = list(reports.values())
    lines: list[Sequence[str]] = [["", *map(_name, reports)]]
    total = every[0].total
    lines.append(["rounds" if type(total) is int else "weight", *(f"{each.total:,}" for each in every)])
    lines.append(["distinct forecasts", *(f"{each.forecasts:,}" for each in every)])
    lines.append(["mean outcome", *_shown(each.mean_outcome for each in every)])
    lines.append(["mean forecast", *_shown(each.mean_forecast for each in every)])
    for about, figures in every[0].figures.items():
        lines.append([about])
        for name in figures:
            lines.append([f"  {name}", *_shown(each.figures[about][name] for each in every)])
            if name == _SMOOTH and chance:
                lines += _chance_lines([chance[score] for score in reports])
    for kind, name in (("brier", "Brier score"), ("log", "log loss")):
        lines.append([f"{name} = miscalibration - discrimination + uncertainty"])
        for part in ("miscalibration", "discrimination", "uncertainty"):
            lines.append([f"  {part}", *_shown(getattr(getattr(each, kind), part) for each in every)])
    return _table(lines)


def _chance_lines(chance: Sequence[Uncertainty]) -> list[Sequence[str]]:
    return [
        [f"    {chance[0].level:.0%} interval from", *_shown(each.lower for each in chance)],
        ["      to", *_shown(each.upper for each in chance)],
        ["    if calibrated, by chance", *_shown(each.if_calibrated for each in chance)],
        ["    p-value", *(f"{each.p_value:.3g}" for each in chance)],
    ]


def _p_value(value: float) -> str:
    """Return a p-value; nobody should care for its digits where it is that small."""
    return "<0.0001" if value < 1e-4 else f"{value:.3g}"


def _overview(found: Tallies, score: str, resamples: int) -> GroupOverview:
    from truecast.plot import group_overview

    return group_overview(found.groups[score], resamples=max(resamples, 20), tested=_TESTED if resamples else 0)


def _groups(found: Tallies, score: str, resamples: int) -> str:
    overview = _overview(found, score, resamples)
    adjusted = overview.adjusted
    lines: list[Sequence[str]] = [
        ["group", "rounds", "mean outcome", "mean forecast", "Brier score", "smooth error", "by chance", "p-value"]
    ]
    for at, name in enumerate(overview.names):
        figures = (overview.mean_outcome, overview.mean_forecast, overview.brier, overview.error, overview.chance)
        entries = _shown(figure[at] for figure in figures)
        lines.append([_name(name), f"{overview.rounds[at]:,}", *entries, _p_value(adjusted[at])])
    some = f"; nan after the first {_TESTED:,}" if resamples and len(overview) > _TESTED else ""
    return (
        f"{_name(score)}, by group; those with the most evidence against them first\n{_table(lines)}\n"
        "smooth error is the smooth calibration error; by chance, what it would be if the group were calibrated;\n"
        f"p-value adjusted for {len(overview):,} groups looked at (Holm){some}"
    )


def _name(name: object) -> str:
    """A name as it can stand in a table: in a line, and not too long."""
    from truecast.files.columns import shown

    text = "(none)" if name is None else repr(name) if name == "(none)" else shown(str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _shown(figures: Iterable[float]) -> list[str]:
    return [f"{figure:.6f}" for figure in figures]


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines whose columns are as wide as their widest entry, numbers to the right; headings stand alone."""
    rows = [line for line in lines if len(line) > 1]
    widths = [max(len(line[at]) for line in rows) for at in range(len(rows[0]))]
    text = []
    for line in lines:
        rest = "".join(f"  {entry:>{width}}" for entry, width in zip(line[1:], widths[1:], strict=False))
        text.append(f"{line[0]:<{widths[0] if rest else 0}}{rest}".rstrip())
    return "\n".join(text)


def _as_json(
    found: Tallies, reports: dict[str, Report], chance: dict[str, Uncertainty], resamples: int
) -> dict[str, Any]:
    from dataclasses import asdict

    scores = {}
    for score, report in reports.items():
        sure = asdict(chance[score]) if score in chance else None
        scores[score] = report.to_dict() | {"smooth_calibration_error_uncertainty": sure}
    data: dict[str, Any] = {"rows": found.rows, "skipped": found.skipped, "pooled": found.pooled, "scores": scores}
    if found.groups:
        data["groups"] = {score: _groups_as_json(found, score, resamples) for score in found.groups}
    return data


def _groups_as_json(found: Tallies, score: str, resamples: int) -> list[dict[str, Any]]:
    from truecast.measures import measure as of

    overview = _overview(found, score, resamples)
    chances = zip(overview.chance.tolist(), overview.p_value.tolist(), overview.adjusted.tolist(), strict=True)
    entries = []
    with progress("measuring") as show:
        for done, (name, chance) in enumerate(zip(overview.names, chances, strict=True), 1):
            report = of(found.groups[score][cast("str | None", name)]).to_dict()
            sure = dict(zip(("if_calibrated", "p_value", "adjusted_p_value"), chance, strict=True))
            entries.append({"group": name} | report | {"smooth_calibration_error_uncertainty": sure})
            show(done / len(overview), f"{done:,} groups")
    return entries
