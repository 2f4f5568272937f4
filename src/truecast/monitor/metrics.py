"""A monitor's numbers in the Prometheus text format, version 0.0.4."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truecast.errors import InputError
from truecast.monitor.finding import finite

if TYPE_CHECKING:
    from truecast.monitor.monitor import Monitor

__all__ = ["exposition", "sample"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OURS = "group", "class", "part"


def exposition(monitor: Monitor, prefix: str, labels: Mapping[str, str]) -> str:
    """Return the page that a scrape reads."""
    if not isinstance(prefix, str) or not _NAME.fullmatch(prefix):
        raise InputError("prefix", "must be letters, digits and _, no digit first", prefix)
    for name, value in labels.items():
        if not _NAME.fullmatch(name) or name.startswith("__") or name in _OURS:
            rule = f"must have names of letters, digits and _, other than {', '.join(_OURS)}"
            raise InputError("labels", rule, name)
        if not isinstance(value, str):
            raise InputError("labels", "must be strings", value)
    return "".join(_lines(monitor, prefix, labels))


def _lines(monitor: Monitor, prefix: str, labels: Mapping[str, str]) -> Iterator[str]:
    smooth = monitor.smooth_error()
    parts = [(own, part._look()) for own, part in monitor._parts()]
    everyone = monitor._look(0)
    numbers: list[tuple[str, str, str, int | None, float | None]] = [
        ("rounds_total", "counter", "Outcomes bet on.", 4, None),
        ("evidence", "gauge", "What the bets against the forecasts have made.", 0, None),
        ("evidence_threshold", "gauge", "An alarm from here on.", None, monitor.threshold),
        ("alarms_total", "counter", "Alarms so far.", 2, None),
        ("refuted_total", "counter", "Forecasts of exactly 0 or 1 that were wrong.", 3, None),
        ("unresolved", "gauge", "Forecasts that await outcomes.", None, monitor.unresolved),
        ("smooth_error_lower", "gauge", "Of its 95 % confidence sequence.", None, smooth.lower),
        ("smooth_error_upper", "gauge", "Of its 95 % confidence sequence.", None, smooth.upper),
    ]
    for name, kind, says, at, value in numbers:
        metric = f"{prefix}_{name}"
        yield f"# HELP {metric} {says}\n# TYPE {metric} {kind}\n"
        if at is None:
            yield sample(metric, labels, value)
            continue
        yield sample(metric, labels, everyone[at])
        for own, found in parts:
            yield sample(metric, {**labels, **own}, found[at])


def sample(metric: str, labels: Mapping[str, str], value: Any) -> str:
    """Return one line: a number and its labels."""
    pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{metric}{{{pairs}}} {_number(value)}\n" if pairs else f"{metric} {_number(value)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if math.isinf(finite(value)) else repr(value)
