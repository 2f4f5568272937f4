"""Tallies of what DuckDB can query, of any size: relations, tables, files, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from truecast.adapters import _grouped
from truecast.errors import InputError
from truecast.tally import Tally

__all__ = ["tally"]

_ENDINGS = (".parquet", ".csv", ".json", ".ndjson", ".jsonl")
_INTEGERS = {sign + size for sign in ("", "u") for size in ("tinyint", "smallint", "integer", "bigint", "hugeint")}
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

    It is the tally that `Tally.from_predictions` makes of the same columns; only the sums of real weights may differ,
    in their rounding, also from run to run.

    Parameters
    ----------
    data
        A relation; the path of files (`*` and `?` match names): .parquet, .csv, .json, .ndjson or .jsonl, the last
        four also as .gz; any other string is the name of a table or view; or whatever DuckDB can scan, such as an
        Arrow table or a frame.
    outcome
        The column of outcomes, 0 or 1: BOOLEAN, integers, FLOAT, DOUBLE or DECIMAL.
    score
        The column of what was forecast for each, between 0 and 1.
    weight
        The column of weights: integers count as repeated rounds, others make a weighted tally.
    connection
        Where the table is, and what reads the files; DuckDB's default connection and a new one if left out.

    Raises
    ------
    InputError
        If a column is not there or not of numbers (strings are not converted), a value is missing, not a number or
        out of range, or a table or files are not there or not readable.

    Examples
    --------
    >>> import duckdb
    >>> from truecast.adapters.duckdb import tally
    >>> rounds = duckdb.sql("SELECT * FROM (VALUES (true, 0.9), (false, 0.2), (true, 0.9)) AS t(rain, forecast)")
    >>> tally(rounds, outcome="rain", score="forecast")
    Tally of 3 rounds at 2 forecasts

    Notes
    -----
    One query; memory grows with the number of distinct forecasts only. DECIMAL is read as the nearest double. In text
    files the first rows say what type a column has; numbers there are read as doubles, so that 0, 1 may be followed by
    0.5.
    """
    columns = _grouped.Columns(outcome, score, weight)
    with _grouped.refusing(data, duckdb.Error):
        relation = _relation(data, connection)
        columns.check(relation.columns)
        types = dict(zip(relation.columns, relation.types, strict=True))
        for name in columns.given.values():
            if types[name].id not in _NUMBERS:
                if not relation.limit(1).fetchall():
                    return Tally()
                _grouped.refuse_type(name, types[name])
        if _grouped.is_path(data, _ENDINGS):
            relation = _files(data, connection, {name: types[name].id for name in columns.given.values()})
        counts = weight is not None and types[weight].id in _INTEGERS | {"boolean"}
        groups = _grouping(relation, columns, counts).fetchnumpy()
    return _grouped.tally(columns, {name: np.ma.masked_array(values) for name, values in groups.items()})


def _relation(data: Any, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    if isinstance(data, duckdb.DuckDBPyRelation):
        return data
    if _grouped.is_path(data, _ENDINGS):
        return _files(data, connection)
    if isinstance(data, str):
        return _table(data, connection)
    own = _connection()
    try:
        own.register("rounds", data)
    except (duckdb.Error, TypeError) as error:
        raise InputError("data", "must be something that DuckDB can scan", data) from error
    return own.view("rounds")


def _connection() -> duckdb.DuckDBPyConnection:
    """Return a connection of our own, which does not draw progress over the caller's standard output."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def _table(name: str, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    try:
        return (connection or duckdb.default_connection()).table(name)
    except duckdb.Error as error:
        rule = "must be a table or view of the connection, or files ending in " + ", ".join(_ENDINGS)
        raise InputError("data", rule, name) from error


def _files(
    data: str | Path, connection: duckdb.DuckDBPyConnection | None, types: dict[str, str] | None = None
) -> duckdb.DuckDBPyRelation:
    """Return the rows of files; numbers in the columns of `types`, once these are known, as doubles.

    DuckDB would go by the first rows or the first file, and round what comes later to integers without a word.
    """
    reader, path = connection or _connection(), str(data)
    if path.lower().endswith(".parquet"):
        return reader.read_parquet(path, union_by_name=True)
    if ".csv" in path.lower()[-len(".csv.gz") :]:
        numbers = {name: "DOUBLE" for name, kind in (types or {}).items() if kind != "boolean"}
        return reader.read_csv(path, header=True, dtype=numbers or None)
    return reader.read_json(path, columns=dict.fromkeys(types, "DOUBLE") if types else None)


def _grouping(relation: duckdb.DuckDBPyRelation, columns: _grouped.Columns, counts: bool) -> duckdb.DuckDBPyRelation:
    wanted = {"y": columns.outcome, "p": columns.score} | ({"w": columns.weight} if columns.weight is not None else {})
    doubles = relation.project(
        ", ".join(f"CAST({_quoted(name)} AS DOUBLE) AS {letter}" for letter, name in wanted.items())
    )
    of_weights = f""", count(*) - count(w) AS missing, min(w) AS low, max(w) AS high, sum(w) AS total,
        {"bool_and(w = floor(w))" if counts else "false"} AS whole"""
    return doubles.aggregate(
        "y, p, count(*) AS rows" + (of_weights if columns.weight is not None else ""), "y, p"
    )  # sums of doubles: fetchnumpy would make doubles of HUGEINT sums anyway


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
