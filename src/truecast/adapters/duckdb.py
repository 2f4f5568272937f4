"""Tallies of anything DuckDB can query, of any size: relations, SQL, tables, frames, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from truecast.adapters import _grouped
from truecast.errors import InputError
from truecast.tally import Tally

__all__ = ["tally"]

_FILE = re.compile(
    r"\.(parquet|pq|csv|tsv|txt|json|ndjson|jsonl)(\.(gz|bz2|xz|zst))?$", re.IGNORECASE
)
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)
_INTEGERS = {
    sign + size
    for sign in ("", "u")
    for size in ("tinyint", "smallint", "integer", "bigint", "hugeint")
}
_NUMBERS = _INTEGERS | {"boolean", "float", "double", "decimal"}


def tally(
    data: Any,
    *,
    outcome: str,
    score: str,
    weight: str | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> Tally:
    """Return the tally of two columns, without ever holding the rounds in memory.

    The result equals `Tally.from_predictions` of the same columns; only the sums of real weights
    may be rounded differently, even from run to run.

    Parameters
    ----------
    data
        A relation; a query (a string that begins with SELECT, FROM or WITH); the name of a table or
        view; anything DuckDB can scan, such as an Arrow table or a frame; or the path of files (`*`
        and `?` match names): a `Path`, or a string that ends in .parquet, .pq, .csv, .tsv, .txt,
        .json, .jsonl or .ndjson, also compressed.
    outcome
        The column of outcomes, 0 or 1: BOOLEAN, integers, FLOAT, DOUBLE or DECIMAL.
    score
        The column of forecasts, between 0 and 1.
    weight
        The column of weights: integers count as repeated rounds, others make a weighted tally.
    connection
        The connection that has the table, and that counts Parquet. By default DuckDB's default
        connection for tables, and a new one for Parquet.

    Raises
    ------
    InputError
        If a column is missing or not numeric (strings are not converted), a value is missing, not a
        number or out of range, a table does not exist or a query is wrong.
    FileError
        The same for a file, with its name and the line or row.

    Examples
    --------
    >>> import duckdb
    >>> from truecast.adapters.duckdb import tally
    >>> values = "VALUES (true, 0.9), (false, 0.2), (true, 0.9)"
    >>> rounds = duckdb.sql(f"SELECT * FROM ({values}) AS t(rain, forecast)")
    >>> tally(rounds, outcome="rain", score="forecast")
    Tally of 3 rounds at 2 forecasts

    Notes
    -----
    One query; memory grows with the number of distinct forecasts only. DECIMAL is read as the
    nearest double.

    A file gives the same tally as the command and `truecast.read_rounds`: DuckDB counts Parquet,
    everything else goes through that reader, which needs Polars (pip install 'truecast[cli]'). For
    percentages, decimal commas, words as outcomes or to skip bad rows, call `truecast.read_rounds`
    yourself.
    """
    columns = _grouped.Columns(outcome, score, weight)
    if _is_path(data):
        return _grouped.of_files(
            data, columns, lambda: _counted(data, columns, connection, whole=True)
        )
    return _counted(data, columns, connection)


def _is_path(data: object) -> bool:
    return isinstance(data, Path) or (isinstance(data, str) and bool(_FILE.search(data)))


def _counted(
    data: Any,
    columns: _grouped.Columns,
    connection: duckdb.DuckDBPyConnection | None,
    *,
    whole: bool = False,
) -> Tally:
    """Return the tally of what DuckDB can query.

    In a file `whole` weights are counts, whatever their type.
    """
    with _grouped.refusing(data, duckdb.Error):
        relation = _relation(data, connection)
        columns.check(relation.columns)
        types = dict(zip(relation.columns, relation.types, strict=True))
        for name in columns.given.values():
            if types[name].id not in _NUMBERS:
                if not relation.limit(1).fetchall():
                    return Tally()
                _grouped.refuse_type(name, types[name])
        weight = columns.weight
        counts = weight is not None and (whole or types[weight].id in _INTEGERS | {"boolean"})
        groups = _grouping(relation, columns, counts).fetchnumpy()
    return _grouped.tally(
        columns, {name: np.ma.masked_array(values) for name, values in groups.items()}
    )


def _relation(data: Any, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    if isinstance(data, duckdb.DuckDBPyRelation):
        return data
    if _is_path(data):
        return (connection or _connection()).read_parquet(str(data), union_by_name=True)
    if isinstance(data, str):
        return _table(data, connection or duckdb.default_connection())
    own = _connection()
    try:
        own.register("rounds", data)
    except (duckdb.Error, TypeError) as error:
        raise InputError("data", "must be something that DuckDB can scan", data) from error
    return own.view("rounds")


def _connection() -> duckdb.DuckDBPyConnection:
    """Return a connection of our own: it draws no progress over the caller's standard output."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def _table(text: str, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Return what a query gives, or a table of this name."""
    if _QUERY.match(text):
        return connection.sql(text)
    try:
        return connection.table(text)
    except duckdb.Error as error:
        rule = (
            "must be a table or view of the connection, "
            "a query that begins with SELECT, FROM or WITH, or a file"
        )
        raise InputError("data", f"{rule} such as rounds.parquet or rounds.csv", text) from error


def _grouping(
    relation: duckdb.DuckDBPyRelation, columns: _grouped.Columns, counts: bool
) -> duckdb.DuckDBPyRelation:
    columns_as_doubles = (
        f"CAST({_quoted(name)} AS DOUBLE) AS {letter}" for letter, name in columns.letters.items()
    )
    doubles = relation.project(", ".join(columns_as_doubles))
    of_weights = f""",
        count(*) - count(w) AS missing, min(nullif(w, 0)) AS low, max(w) AS high, sum(w) AS total,
        {"bool_and(w = floor(w))" if counts else "false"} AS whole"""
    # sums of doubles: fetchnumpy would make doubles of HUGEINT sums anyway
    return doubles.aggregate(
        "y, p, count(*) AS rows" + (of_weights if columns.weight is not None else ""), "y, p"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
