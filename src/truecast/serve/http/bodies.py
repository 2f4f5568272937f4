"""Bodies of requests: read once, straight into their types."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from truecast.errors import InputError, ServiceError, TooLargeError
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow

__all__ = [
    "ForecastBody",
    "Forecasts",
    "GiveUp",
    "NewStream",
    "OutcomeBody",
    "Outcomes",
    "decoded",
    "rows_of",
]

Body = TypeVar("Body")


class NewStream(StreamOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name, and options that have defaults."""

    name: str

    def options(self) -> StreamOptions:
        """Return all but the name."""
        names = StreamOptions.__struct_fields__
        return StreamOptions(**{name: getattr(self, name) for name in names})


class Forecasts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Many scores."""

    forecasts: list[ForecastRow]


class Outcomes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Many outcomes."""

    outcomes: list[OutcomeRow]


class ForecastBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `ForecastRow`, or `Forecasts`: both in one, so that a body is read once."""

    score: float | list[float] | UnsetType = UNSET
    id: str | None = None
    groups: str | list[str] | None = None
    event: str | None = None
    time: str | None = None
    forecasts: list[ForecastRow] | UnsetType = UNSET


class OutcomeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An `OutcomeRow`, or `Outcomes`."""

    id: str | UnsetType = UNSET
    outcome: int | str | UnsetType = UNSET
    outcomes: list[OutcomeRow] | UnsetType = UNSET


class GiveUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which outcomes are awaited no longer: those of `ids`, or all older than some seconds."""

    ids: list[str] | None = None
    older_than: float | None = None


def decoded(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    """Return a body as its type, or raise what says where it breaks which rule."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _broken(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(f"the body is not JSON: {error}", 400) from error
    except RecursionError as error:
        raise ServiceError("the body is nested too deeply", 400) from error


def rows_of(argument: str, rows: list[Any], most: int) -> list[Any]:
    """Return the rows of a request, if there are some and not too many."""
    if not rows:
        raise InputError(argument, "must have at least one row", rows)
    if len(rows) > most:
        rule = f"a request has at most {most:,} rows, got {len(rows):,}; send several"
        raise TooLargeError(rule)
    return rows


_TYPE = re.compile(r"Expected `(?P<rule>[^`]*)`, got `(?P<got>[^`]*)`")
_FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>[^`]*)`")
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_NAMES = {
    "float": "a number", "int": "a whole number", "str": "text", "array": "a list",
    "object": "an object", "null": "null", "bool": "true or false",
}  # fmt: skip


def _broken(message: str) -> Exception:
    """Return msgspec's words in ours."""
    place = _PLACE.search(message)
    path = place["path"] if place else ""
    names = re.findall(r"\.(\w+)", path)
    numbers = [int(number) for number in re.findall(r"\[(\d+)\]", path)]
    position = None if not numbers else numbers[0] if len(numbers) == 1 else tuple(numbers)
    argument = names[-1] if names else "body"
    if field := _FIELD.match(message):
        if field["what"] == "missing required":
            return InputError(field["name"], "must be given", None, position)
        return InputError(
            argument, "must have only fields listed at /docs", field["name"], position
        )
    if kind := _TYPE.match(message):
        rule = " or ".join(_NAMES.get(name, name) for name in kind["rule"].split(" | "))
        got = _NAMES.get(kind["got"], kind["got"])
        quotes = ", in quotes" if "text" in rule and got.endswith("number") else ""
        return InputError(argument, f"must be {rule}{quotes}", got, position)
    return ServiceError(f"{argument}: {message}", 422)
