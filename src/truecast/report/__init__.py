"""The report: a page about forecasts that stands by itself."""

from truecast.report.course import RunningCourse
from truecast.report.entry import HtmlReport, html_report

__all__ = ["HtmlReport", "RunningCourse", "html_report"]
