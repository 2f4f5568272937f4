"""Old names that work for one more release, and say what to call instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar
from warnings import warn

__all__ = ["renamed"]

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def renamed(old: str, method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that warns of its old name and does what the new one does."""
    new = method.__name__

    def deprecated(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        kind = type(self).__name__
        warn(f"{kind}.{old} is now {kind}.{new}", DeprecationWarning, stacklevel=2)
        found: Any = getattr(self, new)  # a subclass may have its own
        result: R = found(*args, **options)
        return result

    deprecated.__name__ = old
    deprecated.__doc__ = f"Call `{new}`: this is its old name."
    return deprecated
