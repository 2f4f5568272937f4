"""A calibrated sidecar: forecasts and outcomes by HTTP, a journal, a dashboard. An extra.

``pip install "truecast[serve]"``, then ``truecast serve``; see docs/guides/serving.md.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Service", "open_service"]

if TYPE_CHECKING:
    from truecast.serve.service import Service, open_service
else:

    def __getattr__(name: str) -> Any:
        """Import what is asked for when it is first asked for."""
        if name in __all__:
            from truecast.serve import service

            return getattr(service, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
