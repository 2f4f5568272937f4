"""The hint that believes the model."""

from __future__ import annotations

from typing import Any

from truecast.recalibrate.hints.base import Hint

__all__ = ["Identity"]


class Identity(Hint):
    """Returns the score itself and learns nothing: for a model that is already calibrated.

    Examples
    --------
    >>> Identity().predict(0.83)
    0.83
    """

    def __init__(self) -> None:
        super().__init__("Identity")

    @property
    def config(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this hint."""
        return {}
