"""Ids as text: an id is the same in another type, as 1 and 1.0."""

from __future__ import annotations

import polars as pl

__all__ = ["as_text"]


def as_text(ids: pl.Series) -> pl.Series:
    """Return ids as text, whatever the type that they are kept in."""
    kind = ids.dtype
    if kind.is_float():
        return _floats_as_text(ids.cast(pl.Float64))
    if kind.is_decimal():
        return ids.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        return _times_as_text(ids, kind.time_zone)
    return ids.dt.to_string("%T%.f") if kind == pl.Time else ids.cast(pl.String)


def _floats_as_text(ids: pl.Series) -> pl.Series:
    whole = ids.cast(pl.Int64, strict=False)
    same = whole.cast(pl.Float64) == ids
    return pl.select(
        pl.when(same).then(whole.cast(pl.String)).otherwise(ids.cast(pl.String))
    ).to_series()


def _times_as_text(ids: pl.Series, zone: str | None) -> pl.Series:
    """Return times as text; midnight is the day, and if there is a time zone, it is made UTC."""
    if zone is None:
        return ids.dt.to_string("%F %T%.f").str.strip_suffix(" 00:00:00")
    return ids.dt.convert_time_zone("UTC").dt.to_string("%F %T%.fZ")
