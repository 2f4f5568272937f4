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
#: of each stream: name, type, what it says, and where it is in a `StreamInfo`, with its labels
_STREAM: tuple[tuple[str, str, str, tuple[tuple[str, dict[str, str], float], ...]], ...] = (
    ("rounds_total", "counter", "Outcomes learned.", (("rounds", {}, 1.0),)),
    ("unresolved", "gauge", "Forecasts that await outcomes.", (("unresolved", {}, 1.0),)),
    ("given_up_total", "counter", "Forecasts given up.", (("given_up", {}, 1.0),)),
    ("alarms_total", "counter", "Alarms, those of groups included.", (("alarms", {}, 1.0),)),
    (
        "certificate_per_round",
        "gauge",
        "Proved: distance to calibration a round, of the worst class.",
        (("per_round", {}, 1.0),),
    ),
    (
        "evidence",
        "gauge",
        "What the bets against the forecasts have made.",
        (
            ("evidence_before", {"which": "model"}, 1.0),
            ("evidence_after", {"which": "recalibrated"}, 1.0),
        ),
    ),
    ("evidence_threshold", "gauge", "An alarm from here on.", (("threshold", {}, 1.0),)),
    (
        "brier",
        "gauge",
        "Mean Brier score of all rounds.",
        (
            ("brier_before", {"which": "model"}, 1.0),
            ("brier_after", {"which": "recalibrated"}, 1.0),
        ),
    ),
    ("last_forecast_seconds", "gauge", "Unix time.", (("last_forecast", {}, 1e-3),)),
    ("last_outcome_seconds", "gauge", "Unix time.", (("last_outcome", {}, 1e-3),)),
)


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
        for field, labels, unit in fields:
            more = "".join(f',{label}="{text}"' for label, text in labels.items())
            for info in infos:
                value = getattr(info, field)
                if value is not None:
                    number = value if unit == 1.0 else value * unit
                    yield f'truecast_{name}{{stream="{info.name}"{more}}} {number!r}\n'
    yield _head("verdict", "gauge", "1 for the verdict on the answered forecasts.")
    for info in infos:
        for kind in _KINDS:
            held = int(info.verdict.kind == kind)
            yield f'truecast_verdict{{stream="{info.name}",kind="{kind}"}} {held}\n'
