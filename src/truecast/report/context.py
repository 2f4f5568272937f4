"""What the caller knows of the rounds and the figures do not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truecast.certificate import ArcCertificate, Certificate
    from truecast.recalibrate import ClassCertificate

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """Where the rounds come from, and what things are called."""

    title: str
    source: str | None
    outcome: str | None
    score_known: bool
    group: str | None
    skipped: int
    date: str | None
    certificate: Certificate | ArcCertificate | ClassCertificate | None
    score: str | None = None
    options: tuple[str, ...] = ()  # of the command, with which the file was read
