"""The report: one self-contained page about forecasts."""

from typing import TYPE_CHECKING

from truecast._lazy import lazily

if TYPE_CHECKING:
    from truecast.report.course import RunningCourse as RunningCourse  # for the command
    from truecast.report.entry import HtmlReport, html_report

__all__ = ["HtmlReport", "html_report"]

lazily(__name__, "entry", "course", also=["RunningCourse"])
