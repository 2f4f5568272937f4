"""The table of routes: it finds the handler, says who may call it, and is the OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from truecast.errors import NotFoundError
from truecast.serve.http.exchange import Answer, Flow, Request

__all__ = ["NAME", "Route", "Table"]

NAME = "{name}"  # the only parameter that an address has

Handler = Callable[[Request], Awaitable[Answer | Flow]]


@dataclass(frozen=True, slots=True)
class Route:
    """An address, what it does, and what it takes and gives.

    Attributes
    ----------
    scope : str or None
        What a token needs; None for what anyone may read.
    takes, gives
        The types of the bodies, of which schemas are made: a type, or several where the body is one
        of them. None if there is no body.
    refuses : tuple of int
        The statuses of its problems, beside those that all have.
    also : dict
        Other statuses whose answers are no problems: their types.
    query : dict
        The parameters of the address: what each is for.
    media : str
        What the answer is.
    """

    method: str
    path: str
    handler: Handler
    scope: str | None
    summary: str
    takes: Any = None
    gives: Any = None
    status: int = 200
    refuses: tuple[int, ...] = ()
    also: Mapping[int, Any] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/json"

    label: str = field(init=False)  # its name in metrics and logs

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.method} {self.path}")


class Table:
    """Routes by the parts of their addresses."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root: dict[str, Any] = {}
        for route in self.routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                node = node.setdefault(part, {})
            node.setdefault("/", {})[route.method] = route  # no part has a slash

    def find(self, path: str) -> tuple[dict[str, Route], str]:
        """Return the routes at an address by their methods, and the name in it."""
        node, name = self._root, ""
        for part in path.split("/")[1:]:
            below = node.get(part)
            if below is None:
                below = node.get(NAME) if part else None
                name = part
            if below is None:
                raise NotFoundError(f"there is nothing at {path[:200]!r}; see /docs")
            node = below
        if "/" not in node:
            raise NotFoundError(f"there is nothing at {path[:200]!r}; see /docs")
        return node["/"], name
