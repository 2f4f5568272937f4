"""`truecast distance`: how far the scores in a file are from calibrated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast._atomic import replaced
from truecast.cli.measure import tallied
from truecast.cli.options import Once, arguments, file_type
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors
from truecast.cli.terminal import echo, echo_json, fitted, progress, say
from truecast.errors import shown, writing

if TYPE_CHECKING:
    from truecast.distance import Distance
    from truecast.tally import Tally


@click.command(cls=Once)
@arguments("file", "outcome", "score")
@click.option(
    "--weight",
    metavar="NAME",
    help="Column of weights, whole numbers: they count as repeated rows.",
)
@click.option(
    "--rtol",
    type=float,
    default=0.0,
    show_default=True,
    help="Stop when the bounds are relatively this close; 0 means exact.",
)
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop after that.",
)
@click.option(
    "--memory-limit",
    type=float,
    default=4e9,
    show_default=True,
    metavar="BYTES",
    help="Use no more.",
)
@click.option(
    "--witness",
    type=file_type,
    help="Write the nearest calibrated forecasts found to this CSV.",
)
@arguments("json", "cells", "skip_bad")
def distance(
    file: str,
    outcome: str | None,
    score: str | None,
    weight: str | None,
    rtol: float,
    time_limit: float,
    memory_limit: float,
    witness: Path | None,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Compute the distance to calibration of the probabilities in FILE.

    That is the least mean change that makes them perfectly calibrated, so that among all rows with
    forecast p the share of ones is p. A thousand rows take a moment, ten thousand take seconds; for
    more, use --rtol 0.01. At the time limit, or at Ctrl-C, it prints the bounds so far, which are
    always proved.

    --witness writes the nearest calibrated forecasts found: how many rows of each forecast and
    outcome move to which value. Anyone can check that they are calibrated, and how far they are.

    FILE is as for `truecast measure`.

    \b
    Examples:
      truecast distance scores.csv --outcome late --score model
      truecast distance scores.parquet --rtol 0.01 --witness nearest.csv
    """  # noqa: D301
    with errors():
        check_outputs({"--witness": witness}, file)
        scores = () if score is None else (score,)
        columns = {"outcome": outcome, "scores": scores, "weight": weight}
        found = tallied(file, skip_bad=skip_bad, **columns, **cells)
        ((name, tally),) = found.scores.items()
        if tally.weighted:
            raise click.UsageError(
                "--weight must be a column of whole numbers: the distance is NP-hard with others"
            )
        from truecast.distance import calibration_distance

        with progress("searching") as show:
            result = calibration_distance(
                tally,
                rtol=rtol,
                time_limit=time_limit,
                memory_limit=memory_limit,
                progress=lambda low, high, seconds: show(None, f"between {low:.6g} and {high:.6g}"),
            )
        if witness is not None:
            with writing(witness, "--witness"):
                _write(witness, result, tally)
        _print(result, tally, name, found.skipped, as_json)


def _print(result: Distance, tally: Tally, score: str, skipped: int, as_json: bool) -> None:
    from truecast.measures import brier_score

    brier = brier_score(tally)
    if not as_json:
        echo(fitted(f"{result}\nBrier score {brier:.6f} (lower is better; sharpness counts)"))
        return
    (low, high), totals = result.means, result.totals
    data = {
        "score": score,
        "rounds": result.rounds,
        "skipped": skipped,
        "lower": low,
        "upper": high,
        "exact": result.exact,
    }
    echo_json(
        data
        | {
            "ended": result.ended,
            "lower_total": totals[0],
            "upper_total": totals[1],
            "brier": brier,
        }
    )


def _write(path: Path, result: Distance, tally: Tally) -> None:
    """Write which forecasts become which."""
    with replaced(path) as part, part.open("w") as file:
        file.write("forecast,outcome,nearest,rounds\n")
        file.writelines(
            f"{p!r},{y},{q!r},{count}\n" for p, y, q, count in result.witness.moves(tally)
        )
    say(f"nearest calibrated forecasts written to {shown(str(path))}")
