"""What each method of a client sends, and how it reads the answers.

A method is a generator: it yields calls, gets their answers, and returns the result. So the client
that waits and the one for asyncio share everything but the sending.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from truecast.client.results import ServedForecast, ServedOutcome
from truecast.errors import InputError

__all__ = ["MOST_ROWS", "Call", "Calls", "Steps"]

MOST_ROWS = 1_000  # of a request, unless the client says otherwise

Score = float | Sequence[float]
Groups = str | Sequence[str] | None
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `repeatable`: a second one, after the first, changes nothing and answers alike."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] | None = None
    repeatable: bool = True


Steps = Generator[Call, Any, Result]


class Calls:
    """The methods, as generators of calls.

    Parameters
    ----------
    most_rows
        More are split into several requests.
    """

    def __init__(self, most_rows: int) -> None:
        if isinstance(most_rows, bool) or not isinstance(most_rows, int) or most_rows < 1:
            raise InputError("most_rows", "must be a whole number, 1 or more", most_rows)
        self._most_rows = most_rows

    def create(self, stream: str, options: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """Create a stream; repeating the call changes nothing."""
        info: dict[str, Any] = yield Call("POST", "/streams", {"name": stream, **options})
        return info

    def delete(self, stream: str) -> Steps[None]:
        """Delete a stream. Not sent twice: somebody may have created another one in between."""
        yield Call("DELETE", _path(stream), query={"confirm": stream}, repeatable=False)

    def streams(self) -> Steps[list[dict[str, Any]]]:
        """List the streams."""
        found: list[dict[str, Any]] = (yield Call("GET", "/streams"))["streams"]
        return found

    def read(self, stream: str, part: str = "") -> Steps[dict[str, Any]]:
        """Read a page of a stream."""
        page: dict[str, Any] = yield Call("GET", _path(stream, part))
        return page

    def forecast(self, stream: str, row: dict[str, Any]) -> Steps[ServedForecast]:
        """Ask for one forecast. It has an id before the first try, so a second one is harmless."""
        row = {name: _plain(value) for name, value in row.items() if value is not None}
        row.setdefault("id", new_id())
        return ServedForecast.read((yield Call("POST", _path(stream, "forecasts"), row)))

    def forecasts(
        self,
        stream: str,
        scores: Iterable[Score],
        ids: Iterable[str] | None,
        groups: Iterable[Groups] | None,
    ) -> Steps[list[ServedForecast]]:
        """Ask for many, in requests of at most `most_rows`."""
        columns = {"score": list(map(_plain, scores))}
        columns["id"] = [given or new_id() for given in _column("ids", ids, columns["score"])]
        if groups is not None:
            columns["groups"] = _column("groups", groups, columns["score"])
        answers: list[ServedForecast] = []
        for rows in self._batches(columns):
            answer = yield Call("POST", _path(stream, "forecasts"), {"forecasts": rows})
            answers += map(ServedForecast.read, answer["forecasts"])
        return answers

    def outcome(self, stream: str, id_: str, outcome: Any) -> Steps[ServedOutcome]:
        """Say what happened, once or again."""
        body = {"id": id_, "outcome": _outcome(outcome)}
        return ServedOutcome.read((yield Call("POST", _path(stream, "outcomes"), body)))

    def outcomes(
        self, stream: str, ids: Iterable[str], outcomes: Iterable[Any]
    ) -> Steps[list[ServedOutcome]]:
        """Say what happened to many forecasts, in requests of at most `most_rows`."""
        columns = {"id": list(ids)}
        columns["outcome"] = list(map(_outcome, _column("outcomes", outcomes, columns["id"])))
        answers: list[ServedOutcome] = []
        for rows in self._batches(columns):
            answer = yield Call("POST", _path(stream, "outcomes"), {"outcomes": rows})
            answers += map(ServedOutcome.read, answer["outcomes"])
        return answers

    def give_up(
        self, stream: str, ids: Iterable[str] | None, older_than: float | None
    ) -> Steps[int]:
        """Give up on outcomes. Not sent twice: the second answer would count none."""
        if (ids is None) == (older_than is None):
            raise InputError("ids", "or older_than must be given, not both", ids)
        body = {"older_than": older_than} if ids is None else {"ids": list(ids)}
        answer = yield Call("POST", _path(stream, "give_up"), body, repeatable=False)
        count: int = answer["given_up"]
        return count

    def _batches(self, columns: dict[str, list[Any]]) -> Iterator[list[dict[str, Any]]]:
        """Rows of these columns, at most `most_rows` at a time; what is None is left out."""
        names = list(columns)
        rows = [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns.values(), strict=True)
        ]
        for start in range(0, len(rows), self._most_rows):
            yield rows[start : start + self._most_rows]


def new_id() -> str:
    """Return an id that sorts by time and cannot be guessed.

    Examples
    --------
    >>> len(new_id())
    32
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def _path(stream: str, part: str = "") -> str:
    if not isinstance(stream, str) or not stream:
        raise InputError("stream", "must be the name of a stream", stream)
    if stream in (".", ".."):  # a URL would lose them
        raise InputError("stream", "must begin with a letter or digit", stream)
    return f"/streams/{quote(stream, safe='')}" + (f"/{part}" if part else "")


def _column(name: str, values: Iterable[Any] | None, beside: list[Any]) -> list[Any]:
    column = [None] * len(beside) if values is None else list(values)
    if len(column) != len(beside):
        raise InputError(name, f"must have an entry for each of the {len(beside)} rows", column)
    return column


def _outcome(value: Any) -> Any:
    """Return True as 1, and 1.0 too; names of classes as they are."""
    value = _plain(value)
    return int(value) if isinstance(value, bool | float) and value in (0, 1) else value


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as Python's, for JSON."""
    return value.tolist() if hasattr(value, "tolist") else value
