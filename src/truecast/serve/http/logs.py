"""Lines about what the service does: for people, or JSON for machines. No secret is among them."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

__all__ = ["log", "set_up"]

_LOGGER = logging.getLogger("truecast.serve")
_encoder = msgspec.json.Encoder()


def log(level: int, message: str, error: Exception | None = None, **fields: Any) -> None:
    """Write a line with named fields. Callers pass no bodies and no headers."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, message, exc_info=error, extra={"fields": fields})


def set_up(kind: str, level: str, stream: TextIO | None = None) -> None:
    """Write to standard error: "text" or "json"."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if kind == "json" else _Text())
    _LOGGER.handlers = [handler]
    _LOGGER.setLevel(level.upper())
    _LOGGER.propagate = False
    server = logging.getLogger("uvicorn")
    server.handlers = [handler]
    server.setLevel(logging.WARNING)
    server.propagate = False


class _Json(logging.Formatter):
    """A line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


class _Text(logging.Formatter):
    """A line to read: what is not printable is escaped, so that nobody can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        said = " ".join(f"{name}={_shown(value)}" for name, value in fields.items())
        line = f"{_time(record)} {record.levelname.lower():7} {record.getMessage()} {said}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and " " not in text and '"' not in text and text
    return text if plain else repr(text)
