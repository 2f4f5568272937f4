"""Probabilities you can take at their word, with a proof."""

from typing import TYPE_CHECKING

__version__ = "0.2.0"

# Public here is what these rooms list in their __all__; each room can be reached by its name, too.
# A name is looked for in this order, and rooms before its own are imported: the usual ones first.
_ROOMS = (
    "errors",
    "tally",
    "measures",
    "recalibrate",
    "certificate",
    "class_tally",
    "forecasters",
    "monitor",
    "distance",
    "report",
    "reading",
    "client",
)
_APART = ("arena", "plot")  # rooms whose names are reached through them only

if TYPE_CHECKING:
    from truecast import arena as arena
    from truecast import certificate as certificate
    from truecast import class_tally as class_tally
    from truecast import client as client
    from truecast import distance as distance
    from truecast import errors as errors
    from truecast import forecasters as forecasters
    from truecast import measures as measures
    from truecast import monitor as monitor
    from truecast import plot as plot
    from truecast import recalibrate as recalibrate
    from truecast import report as report
    from truecast import tally as tally
    from truecast.certificate import *
    from truecast.class_tally import *
    from truecast.client import *
    from truecast.distance import *
    from truecast.errors import *
    from truecast.forecasters import *
    from truecast.measures import *
    from truecast.monitor import *
    from truecast.reading import *
    from truecast.recalibrate import *
    from truecast.report import *
    from truecast.tally import *

else:  # to a type checker, a module with a __getattr__ has every name there is

    def __getattr__(name: str) -> object:
        """Import what is asked for when it is first asked for: `truecast --help` needs no numpy."""
        from importlib import import_module
        from importlib.machinery import PathFinder

        if name in (*_ROOMS, *_APART):
            return import_module(f"truecast.{name}")
        rooms = (import_module(f"truecast.{room}") for room in _ROOMS)
        if name == "__all__":
            return sorted([*_APART, *(public for room in rooms for public in room.__all__)])
        # `from truecast import state` asks here first: a module must not bring all rooms with it
        path = globals()["__path__"]
        if not name.startswith("_") and not PathFinder.find_spec(f"truecast.{name}", path):
            for room in rooms:
                if name in room.__all__:
                    value = globals()[name] = getattr(room, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        own = (name for name in globals() if name.startswith("__"))
        return sorted({*own, "__all__", *_ROOMS, *__getattr__("__all__")})
