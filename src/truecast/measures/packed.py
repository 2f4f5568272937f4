"""Results whose fields are made when one is asked for: of few rounds, arrays cost the most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["Packed", "packed"]


class Packed:
    """A frozen dataclass whose fields may wait as what the core returned.

    They are made together, and stay. A class says how: `_unpacked` returns them in order.
    """

    if not TYPE_CHECKING:  # a type checker knows the fields, and that there are no others

        def __getattr__(self, name: str) -> Any:
            data = self.__dict__.get("_packed")
            if data is None or name not in self.__match_args__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.__dict__.update(zip(self.__match_args__, self._unpacked(*data), strict=True))
            return self.__dict__[name]


Kind = TypeVar("Kind", bound=Packed)


def packed(kind: type[Kind], *data: Any) -> Kind:
    """Return a result whose fields are made of `data` when one of them is asked for."""
    one = kind.__new__(kind)
    one.__dict__["_packed"] = data
    return one
