"""What a service answers, by names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ServedForecast", "ServedOutcome"]


@dataclass(frozen=True, slots=True)
class ServedForecast:
    """A calibrated probability, as a service answered it.

    Attributes
    ----------
    id : str
        The name of the forecast: its outcome is sent under it.
    p : float or list of float
        The probability to act on; one for each class if the stream has classes.
    again : bool
        Whether the service had answered this id before. `p` is then what it said the first time.
    """

    id: str
    p: float | list[float]
    again: bool

    @classmethod
    def read(cls, row: dict[str, Any]) -> ServedForecast:
        """Take what is known here; a newer service may say more."""
        return cls(row["id"], row["p"], row.get("again", False))


@dataclass(frozen=True, slots=True)
class ServedOutcome:
    """What became of an outcome.

    Attributes
    ----------
    id : str
        The forecast that it belongs to.
    status : str
        "learned"; "duplicate": the service knew it, and after a retry that may be from the first
        try; "contradiction": it had learned another outcome, and keeps that; "unknown": there is
        no such forecast; "given_up": the outcome came too late.
    """

    id: str
    status: str

    @classmethod
    def read(cls, row: dict[str, Any]) -> ServedOutcome:
        """Take what is known here; a newer service may say more."""
        return cls(row["id"], row["status"])

    @property
    def known(self) -> bool:
        """Whether the service has learned this outcome, now or before."""
        return self.status in ("learned", "duplicate")
