"""The report: one self-contained page about forecasts."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

__all__ = ["HtmlReport", "html_report"]

if not TYPE_CHECKING:
    lazily(__name__, "entry", "course", also=["RunningCourse"])
else:  # for type checkers and for the reference
    from truecast.report.course import RunningCourse as RunningCourse  # for the command
    from truecast.report.entry import HtmlReport, html_report
