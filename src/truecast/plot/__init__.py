"""Pictures of forecasts: frozen objects, computed first, drawn with matplotlib on request."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = [
    "BeforeAfter",
    "CertificateCourse",
    "EvidenceCourse",
    "GroupOverview",
    "LadderState",
    "Miscalibration",
    "ReliabilityDiagram",
    "before_after",
    "certificate_course",
    "evidence_course",
    "group_overview",
    "ladder_state",
    "miscalibration",
    "reliability_diagram",
]

if not TYPE_CHECKING:
    lazily(
        __name__,
        "reliability",
        "miscalibration",
        "group_overview",
        "before_after",
        "certificate_course",
        "evidence_course",
        "ladder_state",
    )
else:  # for type checkers and for the reference
    from truecast.plot.before_after import BeforeAfter, before_after
    from truecast.plot.certificate_course import CertificateCourse, certificate_course
    from truecast.plot.evidence_course import EvidenceCourse, evidence_course
    from truecast.plot.group_overview import GroupOverview, group_overview
    from truecast.plot.ladder_state import LadderState, ladder_state
    from truecast.plot.miscalibration import Miscalibration, miscalibration
    from truecast.plot.reliability import ReliabilityDiagram, reliability_diagram
