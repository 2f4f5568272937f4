"""The report: one self-contained page about forecasts."""

from truecast.report.course import RunningCourse as RunningCourse  # for the command
from truecast.report.entry import HtmlReport, html_report

__all__ = ["HtmlReport", "html_report"]
