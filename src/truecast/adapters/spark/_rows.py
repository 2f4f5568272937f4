"""Rows that break a rule: found by Spark, then refused with their file, or counted and left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple, NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from truecast import _check
from truecast.adapters.spark._columns import column
from truecast.errors import FileError, InputError

ON_BAD = ("fail", "count")


class Rule(NamedTuple):
    """What a row must keep: a condition, true for a good row, false or null for a bad one."""

    name: str
    rule: str
    kept: Column


def checked_on_bad(value: object) -> str:
    """Return what to do about bad rows."""
    return _check.choice("on_bad", value, ON_BAD)


def an_outcome(name: str, *, unknown: bool = False) -> Rule:
    """Return the rule of outcomes; null only if they may be unknown."""
    y = column(name).cast("double")
    kept = (y == 0.0) | (y == 1.0)
    if unknown:
        return Rule(name, "must be 0 or 1, or null while it is unknown", y.isNull() | kept)
    return Rule(name, "must be 0 or 1", kept)


def a_score(name: str, *, logit: bool = False, unknown: bool = False) -> Rule:
    """Return the rule of probabilities, or of log-odds; null only if they may be unknown."""
    p = column(name).cast("double")
    kept = F.abs(p) < float("inf") if logit else p.between(0.0, 1.0)
    rule = "must be a finite number" if logit else "must be between 0 and 1"
    return Rule(name, rule, (p.isNull() | kept) if unknown else kept)


def a_weight(name: str) -> Rule:
    """Return the rule of weights."""
    w = column(name).cast("double")
    least, most = _check.WEIGHTS
    return Rule(
        name, f"must be 0, or from {least:g} to {most:g}", (w == 0.0) | w.between(least, most)
    )


def never_null(name: str) -> Rule:
    """Return the rule of a column that must always be given."""
    return Rule(name, "must not be null", column(name).isNotNull())


def a_time(name: str) -> Rule:
    """Return the rule of times: nan has no place in an order."""
    return Rule(name, "must be a time", column(name).cast("string") != "NaN")


def not_empty(name: str, other: str) -> Rule:
    """Return the rule of a row that needs at least one of two columns."""
    kept = column(name).isNotNull() | column(other).isNotNull()
    return Rule(name, f"must not be null where {other} is", kept)


def not_early(name: str, time: str, outcome: str) -> Rule:
    """Return the rule of when an outcome is known: given if there is one, not before its row."""
    known = column(name)
    kept = F.coalesce(
        (known >= column(time)) & (known.cast("string") != "NaN"), column(outcome).isNull()
    )
    return Rule(name, f"must be given where {outcome} is, and not before {time}", kept)


def all_kept(rules: Sequence[Rule]) -> Column:
    """Return whether a row keeps all rules: true of a good one, false or null of a bad one."""
    return reduce(and_, (rule.kept for rule in rules))


def broken(condition: Column) -> Column:
    """Return whether a condition is not true: never null."""
    return ~F.coalesce(condition, F.lit(False))


def why_bad(frame: DataFrame, rules: Sequence[Rule]) -> Column:
    """Return the first rule that a row breaks, with file and value; null for a good row."""
    file = _file_of(frame)
    return F.coalesce(*(F.when(broken(rule.kept), _entry(rule, file)) for rule in rules))


def _file_of(frame: DataFrame) -> Column:
    """Return the file of a row, null where Spark does not know it."""
    file = F.input_file_name()
    try:
        _ = frame.select(file).schema  # the analysis fails here, also by Spark Connect
    except AnalysisException:  # rows of a join come from several files
        return F.lit(None).cast("string")
    return F.when(file != "", file)


def _entry(rule: Rule, file: Column) -> Column:
    return F.struct(
        file.alias("file"),
        F.lit(rule.name).alias("column"),
        F.lit(rule.rule).alias("rule"),
        column(rule.name).cast("string").alias("value"),
    )


def listed(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return the rows that break a rule, with a column `bad` that says which, and where."""
    return frame.withColumn("bad", why_bad(frame, rules)).filter(column("bad").isNotNull())


def refuse_bad(frame: DataFrame, rules: Sequence[Rule]) -> None:
    """Let Spark look at all rows once; raise the error of the first bad one in order."""
    found = (
        listed(frame, rules).agg(F.count("*").alias("rows"), F.min("bad").alias("first")).first()
    )
    if found is not None and found["rows"]:
        _refuse(found["first"], found["rows"])


def refuse_first(frame: DataFrame, rules: Sequence[Rule]) -> NoReturn:
    """Raise the error of the first bad row, of which there is one."""
    refuse_bad(frame, rules)
    raise InputError(
        "df",
        "must give the same rows each time: a bad one was not there when it was looked for",
        frame,
    )


def _refuse(first: dict[str, str | None], rows: int) -> NoReturn:
    name, rule, value, file = (first[field] for field in ("column", "rule", "value", "file"))
    many = f" (one of {rows:,} bad rows; on_bad='count' leaves them out)" if rows > 1 else ""
    if file is None:
        raise InputError(str(name), f"{rule}{many}", value)
    raise FileError(
        file, f"{name} {rule}, got {value!r}", f"one of {rows:,} bad rows" if rows > 1 else "a row"
    )
