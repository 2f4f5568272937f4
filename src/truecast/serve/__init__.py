"""A calibrated sidecar: forecasts and outcomes by HTTP, a journal, a dashboard. An extra.

``pip install "truecast[serve]"``, then ``truecast serve``; see docs/guides/serving.md.
"""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = ["Service", "open_service"]

if not TYPE_CHECKING:
    lazily(__name__, "service")
else:  # for type checkers
    from truecast.serve.service import Service, open_service
