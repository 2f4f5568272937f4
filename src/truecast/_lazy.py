"""Rooms whose modules are imported when one of their names is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["lazily"]


def lazily(room: str, *modules: str, also: Sequence[str] = ()) -> None:
    """Have a room look for what it lists in `__all__` in these modules when it is asked for.

    They are imported in this order until one lists the name: those that are usual or light first.
    What is there `also` can be imported from the room, too, and nowhere else.

    Type checkers must not see this: they read imports in the `else` of an `if not TYPE_CHECKING`.
    The reference leaves out what stands under an `if TYPE_CHECKING`.
    """
    here = sys.modules[room]
    here.__dict__.update(_modules=modules, _names={*here.__all__, *also})
    here.__class__ = _Room


class _Room(ModuleType):
    _modules: tuple[str, ...]
    _names: set[str]

    def __getattr__(self, name: str) -> Any:
        room = self.__name__
        if name in self._modules:
            import_module(f"{room}.{name}")  # sets it
            return self.__dict__[name]
        for module in self._modules if name in self._names else ():
            home = import_module(f"{room}.{module}")
            if name in home.__all__:
                setattr(self, name, getattr(home, name))
                return self.__dict__[name]
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        """Keep a value; a function comes before the module of its own name, which Python sets."""
        if name in self._names and isinstance(value, ModuleType):
            value = getattr(value, name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names})
