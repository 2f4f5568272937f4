"""Numbers for Prometheus, from the state at the time of the scrape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from truecast.monitor.metrics import sample
from truecast.serve.http.traffic import BOUNDS, Traffic
from truecast.serve.view import StreamInfo

if TYPE_CHECKING:
    from truecast.serve.http.app import App

__all__ = ["exposition"]

_KINDS = ("off", "weak", "none", "waiting", "few", "empty")
#: of each stream: name, type, what it says, and where it is in a `StreamInfo`
_STREAM = (
    ("rounds_total", "counter", "Outcomes learned.", ("rounds",)),
    ("unresolved", "gauge", "Forecasts that await outcomes.", ("unresolved",)),
    ("given_up_total", "counter", "Forecasts given up.", ("given_up",)),
    ("alarms_total", "counter", "Alarms, those of groups included.", ("alarms",)),
    (
        "certificate_per_round",
        "gauge",
        "Proved: distance to calibration a round, of the worst class.",
        ("per_round",),
    ),
    (
        "evidence",
        "gauge",
        "What the bets against the forecasts have made.",
        ("evidence_before", "evidence_after"),
    ),
    ("evidence_threshold", "gauge", "An alarm from here on.", ("threshold",)),
    ("brier", "gauge", "Mean Brier score of all rounds.", ("brier_before", "brier_after")),
    ("last_forecast_seconds", "gauge", "Unix time.", ("last_forecast",)),
    ("last_outcome_seconds", "gauge", "Unix time.", ("last_outcome",)),
)
_WHICH = {"before": ',which="model"', "after": ',which="recalibrated"'}  # by the end of a field


def exposition(app: App) -> str:
    """Return the page that a scrape reads."""
    return "".join([*_service(app), *_traffic(app.traffic), *_streams(app.service.streams())])


def _head(name: str, kind: str, says: str) -> str:
    return f"# HELP truecast_{name} {says}\n# TYPE truecast_{name} {kind}\n"


def _service(app: App) -> Iterator[str]:
    health = app.health()
    for name, kind, says, value in (
        ("ready", "gauge", "Whether requests are taken.", int(health.ready)),
        ("journal_seq", "counter", "Entries of the journal.", health.seq),
        ("waiting", "gauge", "Requests that wait for the disk.", health.waiting),
        ("streams", "gauge", "Streams.", len(app.service.streams())),
    ):
        yield _head(name, kind, says)
        yield sample(f"truecast_{name}", {}, value)


def _traffic(traffic: Traffic) -> Iterator[str]:
    yield _head("requests_total", "counter", "Requests answered.")
    for (route, status), count in sorted(traffic.statuses.items()):
        labels = {"route": route, "status": str(status)}
        yield sample("truecast_requests_total", labels, count)
    name = "truecast_request_seconds"
    yield _head("request_seconds", "histogram", "From the first byte to the answer.")
    for route, counts in sorted(traffic.buckets.items()):
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), accumulate(counts), strict=True):
            yield sample(f"{name}_bucket", {"route": route, "le": bound}, count)
        yield sample(f"{name}_sum", {"route": route}, traffic.seconds[route])
        yield sample(f"{name}_count", {"route": route}, sum(counts))


def _streams(infos: list[StreamInfo]) -> Iterator[str]:
    """Lines of all streams; their names need no escapes (`options.NAME`)."""
    for name, kind, says, fields in _STREAM:
        yield _head(name, kind, says)
        for field in fields:
            which = _WHICH.get(field.rpartition("_")[2], "")
            for info in infos:
                value = getattr(info, field)
                if value is not None:
                    number = value * 1e-3 if name.endswith("_seconds") else value
                    yield f'truecast_{name}{{stream="{info.name}"{which}}} {number!r}\n'
    yield _head("verdict", "gauge", "1 for the verdict on the answered forecasts.")
    for info in infos:
        for kind in _KINDS:
            held = int(info.verdict.kind == kind)
            yield f'truecast_verdict{{stream="{info.name}",kind="{kind}"}} {held}\n'
