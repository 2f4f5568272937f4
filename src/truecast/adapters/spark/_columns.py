"""Columns of Spark frames: found by name, and refused if they cannot hold what they should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as every page about Spark calls it)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from truecast.errors import InputError

Kinds = tuple[tuple[type[DataType], ...], str]
"""Types, and how a message calls them."""

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_TEXT = (StringType, CharType, VarcharType)
_CLOCK = (DateType, TimestampType, TimestampNTZType)

INTEGERS: Kinds = (_WHOLE, "integers")
NUMBERS: Kinds = (
    (BooleanType, *_WHOLE, FloatType, DoubleType, DecimalType),
    "bool, integers, floats or decimals",
)
TIMES: Kinds = ((*_WHOLE, FloatType, DoubleType, *_CLOCK), "integers, floats, dates or timestamps")
KEYS: Kinds = (
    (*_TEXT, BooleanType, *_WHOLE, DecimalType, *_CLOCK, BinaryType),
    "strings, bool, integers, decimals, dates, timestamps or binary",
)
GROUPS: Kinds = ((*_TEXT, *_WHOLE), "strings or integers")


def checked_frame(data: Any, argument: str = "df", *, streams: bool = False) -> DataFrame:
    """Return a frame of Spark, classic or by Spark Connect; refuse anything else."""
    if not isinstance(data, DataFrame):
        raise InputError(argument, "must be a DataFrame of Spark", data)
    if data.isStreaming and not streams:
        raise InputError(argument, "must not stream: see recalibrate_stream for streams", data)
    if streams and not data.isStreaming:
        raise InputError(argument, "must stream: see recalibrate for a frame that does not", data)
    return data


def column(name: str) -> Column:
    """Return the column of this very name, dots and blanks included."""
    return F.col("`" + name.replace("`", "``") + "`")


def names_of(argument: str, names: str | Sequence[str]) -> list[str]:
    """Return the names that an argument gives: one, or several in a list."""
    several = [names] if isinstance(names, str) else names
    if (
        not isinstance(several, Sequence)
        or not several
        or not all(isinstance(name, str) for name in several)
    ):
        raise InputError(argument, "must be the name of a column, or a list of names", names)
    if len(set(several)) < len(several):
        raise InputError(argument, "must name each column once", names)
    return list(several)


def check(frame: DataFrame, argument: str, name: Any, kinds: Kinds) -> DataType:
    """Return the type of a column; refuse one that is missing, there twice, or of another type."""
    found = [field.dataType for field in frame.schema.fields if field.name == name]
    if len(found) != 1:
        rule = "must be a column of the data, which has " + (
            ", ".join(map(repr, frame.columns)) or "none"
        )
        raise InputError(argument, rule if not found else "must be the name of one column", name)
    types, said = kinds
    if not isinstance(found[0], types):
        raise InputError(name, f"must be a column of {said}", found[0].simpleString())
    return found[0]


def check_free(frame: DataFrame, *names: str) -> None:
    """Refuse a frame that already has a column which will be added."""
    for name in names:
        if name.lower() in [other.lower() for other in frame.columns]:
            raise InputError(
                "df", f"must not have a column {name!r}, which is added: rename it", name
            )
