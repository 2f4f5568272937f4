"""Recalibration: hints from a model's scores, and a guard over them."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = [
    "ClassCertificate",
    "ClassRecalibrator",
    "ClassTicket",
    "Recalibrator",
    "ScoreTable",
    "Ticket",
    "Tickets",
    "hints",
]

if not TYPE_CHECKING:
    lazily(
        __name__,
        "hints",
        "recalibrator",
        "tickets",
        "table",
        "class_certificate",
        "class_recalibrator",
    )
else:  # for type checkers and for the reference
    from truecast.recalibrate import hints
    from truecast.recalibrate.class_certificate import ClassCertificate
    from truecast.recalibrate.class_recalibrator import ClassRecalibrator, ClassTicket
    from truecast.recalibrate.recalibrator import Recalibrator
    from truecast.recalibrate.table import ScoreTable
    from truecast.recalibrate.tickets import Ticket, Tickets
