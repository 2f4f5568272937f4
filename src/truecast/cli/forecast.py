"""`truecast forecast`: forecasts of the outcomes in a file, with a certificate."""

from __future__ import annotations

import csv
import errno
import itertools
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO, cast

import click
import numpy as np
from numpy.typing import NDArray

import truecast as tc

_VALUES = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
_ROWS = 1 << 16


@click.command(short_help="Forecast outcomes from those before them, with a certificate.")
@click.argument("file", type=click.File("r", encoding="utf-8-sig"))
@click.option("--outcome", "column", metavar="NAME", help="Column with the outcomes, if the CSV has several.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    help="Write the forecasts to this file.",
)
@click.option(
    "--forecaster",
    type=click.Choice(["aosa", "bent"]),
    default="aosa",
    show_default=True,
    help="The paper's Almost-One-Step-Ahead, or the bent grid with its smaller bound.",
)
@click.option("--horizon", type=int, help="Rounds to choose the grid for.  [default: as many as there are]")
@click.option("--grid", type=int, help="Number of cells, instead of those chosen for the horizon.")
@click.option(
    "--at",
    type=click.Choice(["lower", "upper", "middle"]),
    help="Where in its cell aosa forecasts.  [default: lower]",
)
@click.option(
    "--cell",
    type=click.Choice(["walk", "lowest", "highest"]),
    default="walk",
    show_default=True,
    help="Which open cell to forecast in.",
)
def forecast(
    file: TextIO,
    column: str | None,
    output: str | None,
    forecaster: str,
    horizon: int | None,
    grid: int | None,
    at: str | None,
    cell: str,
) -> None:
    """Forecast each outcome of FILE from those before it, and certify the forecasts.

    FILE is a CSV with a column of outcomes, or text with one outcome a line; - reads standard input. Outcomes are
    0 and 1, or false and true.

    The forecasts go to --output, or to standard output, as a CSV with the columns outcome and forecast; the
    certificate, a proved bound on their distance to calibration, is printed beside the paper's 2 sqrt(T) + 1.

    \b
    Examples:
      truecast forecast outcomes.csv -o forecasts.csv
      truecast forecast trips.csv --outcome late --forecaster bent > forecasts.csv
      seq 1000 | awk '{print $1 % 2}' | truecast forecast - -o forecasts.csv
    """  # noqa: D301 (click wants the character itself, to leave the lines of a paragraph alone)
    output = None if output == "-" else output
    source = Path(getattr(file, "name", "-"))
    if output and source.exists() and Path(output).exists() and source.samefile(output):
        raise click.UsageError("--output must not be FILE itself")
    try:
        y = read_outcomes(file, column)
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.UsageError(f"{source} is neither a CSV nor text in UTF-8: {error}") from error
    if horizon is None and grid is None:
        horizon = max(1, len(y))
    f = _build(forecaster, {"horizon": horizon, "grid": grid, "cell": cell}, at)
    write_forecasts(output, y, f.forecast_many(y))
    click.echo(f"{f}\n{f.certificate}", err=output is None)
    if len(y):
        rate = float(y.mean())
        line = f"    of the rate {rate:.4f} said throughout, in hindsight: {rate * (1 - rate):.6f}"
        click.echo(line, err=output is None)
    if output:
        click.echo(f"forecasts written to {output}")


def _build(name: str, options: dict[str, Any], at: str | None) -> tc.AlmostOneStepAhead | tc.BentGrid:
    try:
        if name == "aosa":
            return tc.AlmostOneStepAhead(**options, at=cast("Any", at or "lower"))
        if at is not None:
            raise click.UsageError("--at is for aosa; the bent grid forecasts at the outer end of its cell.")
        return tc.BentGrid(**options)
    except tc.InputError as error:
        raise click.UsageError(str(error)) from error


def read_outcomes(file: Iterable[str], column: str | None) -> NDArray[np.uint8]:
    """Read the outcomes of a CSV or text file; a bad one is refused with the number of its line."""
    rows = _numbered_rows(file)
    line, first = next(rows, (1, []))
    names = [name.strip() for name in first]
    if column is not None or any(map(_is_name, names)):
        at = _find_column(names, column)
    elif len(names) > 1:
        raise click.UsageError(f"the file has {len(names)} columns and no header: give it one, and use --outcome")
    else:
        at, rows = 0, itertools.chain([(line, first)] if first else [], rows)
    return np.fromiter((_value(row, at, len(names), line) for line, row in rows), np.uint8)


def _numbered_rows(file: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows with the numbers of their lines; blank lines may stand before and after them, not between."""
    reader = csv.reader(file)
    started, blank = False, 0
    for row in reader:
        if not any(map(str.strip, row)) and len(row) <= 1:
            blank = blank or (reader.line_num if started else 0)
            continue
        if blank:
            raise click.UsageError(f"outcomes must be 0 or 1, got nothing in line {blank}")
        started = True
        yield reader.line_num, row


def _is_name(cell: str) -> bool:
    """Whether a cell of the first row names a column: it has a letter, and is neither an outcome nor a number."""
    try:
        float(cell)
    except ValueError:
        return cell.lower() not in _VALUES and any(map(str.isalpha, cell))
    return False


def _find_column(names: list[str], column: str | None) -> int:
    if column is None:
        likely = [name for name in names if name.lower() in ("y", "outcome", "outcomes", "label", "target", "y_true")]
        if len(names) > 1 and len(likely) != 1:
            raise click.UsageError(f"name the column with the outcomes by --outcome; the file has {', '.join(names)}")
        return names.index(likely[0]) if likely else 0
    if names.count(column) != 1:
        raise click.UsageError(f"there must be one column {column!r}; the file has {', '.join(names)}")
    return names.index(column)


def _value(row: list[str], at: int, columns: int, line: int) -> int:
    if len(row) != columns:
        raise click.UsageError(f"every row must have {columns} columns like the first, got {len(row)} in line {line}")
    try:
        return _VALUES[row[at].strip().lower()]
    except KeyError:
        raise click.UsageError(f"outcomes must be 0 or 1, got {row[at]!r:.80} in line {line}") from None


def write_forecasts(output: str | None, y: NDArray[np.uint8], p: NDArray[np.float64]) -> None:
    """Write a CSV of outcomes and forecasts, each forecast in full precision, to a file or to standard output."""
    try:
        with open(output, "w", encoding="utf-8", newline="") if output else nullcontext(sys.stdout) as out:
            out.write("outcome,forecast\n")
            for start in range(0, len(y), _ROWS):
                bits, values = y[start : start + _ROWS].tolist(), p[start : start + _ROWS].tolist()
                out.writelines(f"{bit},{value!r}\n" for bit, value in zip(bits, values, strict=True))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone: click ends quietly
        raise click.FileError(output or "standard output", str(error.strerror)) from error
