"""`truecast forecast`: forecasts of the outcomes in a file, with a certificate."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecast._atomic import replaced
from truecast._names import counted
from truecast.cli.opening import opened
from truecast.cli.options import Once, arguments
from truecast.cli.outputs import check_outputs
from truecast.cli.refusals import errors
from truecast.cli.terminal import echo, echo_json, plain, progress, say
from truecast.errors import shown, writing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    import truecast as tc

    Forecaster = tc.AlmostOneStepAhead | tc.Arc | tc.BentGrid | tc.HorizonFree

_ROWS = 1 << 16


class _Names(click.Choice[str]):
    """Names of forecasters; an old one works for one more release."""

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        if value == "bent":
            say("--forecaster bent is now --forecaster bent-grid")
            value = "bent-grid"
        return super().convert(value, param, context)


@click.command(cls=Once)
@arguments("file")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="Write the forecasts to this CSV.  [default: standard output]",
)
@arguments("outcome")
@click.option(
    "--forecaster",
    type=_Names(["aosa", "bent-grid", "horizon-free", "arc"]),
    default="aosa",
    show_default=True,
    help="aosa: the paper's Almost-One-Step-Ahead. bent-grid: about half its bound. "
    "arc: the smallest bound without a horizon. "
    "horizon-free: a larger bound, but a small certificate on easy outcomes.",
)
@click.option(
    "--horizon",
    type=int,
    help="Number of rounds that the grid is chosen for.  [default: the rows of FILE]",
)
@click.option(
    "--grid", type=int, help="Number of cells, instead of the one chosen for the horizon."
)
@click.option(
    "--at",
    type=click.Choice(["lower", "upper", "middle"]),
    help="Where in its cell aosa forecasts.  [default: lower]",
)
@click.option(
    "--cell",
    type=click.Choice(["walk", "lowest", "highest"]),
    help="Which open cell aosa and bent-grid forecast in.  [default: walk]",
)
@arguments("json", "outcome_cells", "skip_bad")
def forecast(
    file: str,
    output: str | None,
    outcome: str | None,
    forecaster: str,
    horizon: int | None,
    grid: int | None,
    at: str | None,
    cell: str | None,
    as_json: bool,
    cells: dict[str, Any],
    skip_bad: int,
) -> None:
    """Forecast each outcome of FILE from the ones before it, and certify the forecasts.

    FILE is CSV, JSON lines or Parquet with a column of outcomes, plain or compressed, or text with
    one outcome a line; - reads standard input. Outcomes are 0 and 1, or false and true.

    The forecasts go to --output, or to standard output, as a CSV with the columns outcome and
    forecast. Prints the certificate, a proved bound on their distance to calibration, beside the
    paper's 2 sqrt(T) + 1.

    If you also have a model's probabilities, use `truecast recalibrate`.

    \b
    Examples:
      truecast forecast outcomes.csv -o forecasts.csv
      truecast forecast trips.csv --outcome late --forecaster bent-grid > out.csv
      seq 1000 | awk '{print $1 % 2}' | truecast forecast - -o forecasts.csv
    """  # noqa: D301 (click wants the character itself, to leave the lines of a paragraph alone)
    out = None if output in (None, "-") else Path(output)
    options = {"horizon": horizon, "grid": grid, "at": at, "cell": cell}
    with errors():
        check_outputs({"-o": out}, file)
        y, skipped = _outcomes(file, outcome, skip_bad, cells)
        f = _built(forecaster, options, len(y))
        p = f.forecast_many(y)
        _write(out, y, p)
        if skipped:
            say(f"{counted(skipped, 'bad row')} skipped")
        _print(f, y, out, skipped, as_json)


def _outcomes(
    file: str, outcome: str | None, skip_bad: int, cells: dict[str, Any]
) -> tuple[NDArray[np.uint8], int]:
    """Return the outcomes of a file, and how many rows were left out."""
    import numpy as np

    with (
        opened(file, outcome=outcome, scores=None, **cells) as (table, names),
        progress("reading") as show,
    ):
        from truecast.errors import FileError
        from truecast.files import rounds

        found = []
        skipped = 0
        for part in rounds(table, names, skip_bad=skip_bad):
            found.append(part.y.astype(np.uint8))
            skipped += part.skipped
            show(table.fraction(), "")
        y = np.concatenate(found)
        if not len(y):
            raise FileError(table.name, f"has no good row: all {skipped:,} were skipped")
        return y, skipped


def _built(name: str, options: dict[str, Any], rounds: int) -> Forecaster:
    import truecast as tc

    if name in ("horizon-free", "arc"):
        _refuse_options(name, options)
        return tc.HorizonFree() if name == "horizon-free" else tc.Arc()
    if name == "bent-grid":
        _refuse_options(name, {"at": options["at"]})
    else:
        options |= {"at": options["at"] or "lower"}
    if options["horizon"] is None and options["grid"] is None:
        options["horizon"] = rounds
    given = {option: value for option, value in options.items() if value is not None}
    return tc.BentGrid(**given) if name == "bent-grid" else tc.AlmostOneStepAhead(**given)


def _refuse_options(name: str, options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"--{option} is not for {name}")


def _write(out: Path | None, y: NDArray[np.uint8], p: NDArray[np.float64]) -> None:
    """Write a CSV of outcomes and forecasts, each forecast in full precision."""
    import sys

    import polars as pl

    frame = pl.DataFrame({"outcome": y, "forecast": p})
    if out is None:
        for start in range(0, len(y), _ROWS):
            sys.stdout.write(frame[start : start + _ROWS].write_csv(include_header=start == 0))
            sys.stdout.flush()  # a reader who has left is noticed here
        return
    with writing(out, "-o"), replaced(out) as part, part.open("wb") as file:
        frame.write_csv(file)


def _print(
    f: Forecaster, y: NDArray[np.uint8], out: Path | None, skipped: int, as_json: bool
) -> None:
    rate = float(y.mean())
    to_user = partial(echo, err=out is None)
    if as_json:
        data = {"forecaster": repr(f), "rows": len(y), "skipped": skipped, "rate": rate}
        echo_json(data | {"certificate": plain(f.certificate)}, err=out is None)
        return
    to_user(f"{f}\n{f.certificate}")
    to_user(f"    of always saying {rate:.4f}, in hindsight: {rate * (1 - rate):.6f}")
    if out is not None:
        echo(f"forecasts written to {shown(str(out))}")
