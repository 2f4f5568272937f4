"""Watch forecasts, round by round: evidence that may be looked at whenever you like."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = ["ClassMonitor", "Finding", "Monitor", "SmoothInterval", "combined_evidence"]

if not TYPE_CHECKING:
    lazily(__name__, "monitor", "finding", "smooth", "combined", "class_monitor")
else:  # for type checkers and for the reference
    from truecast.monitor.class_monitor import ClassMonitor
    from truecast.monitor.combined import combined_evidence
    from truecast.monitor.finding import Finding
    from truecast.monitor.monitor import Monitor
    from truecast.monitor.smooth import SmoothInterval
