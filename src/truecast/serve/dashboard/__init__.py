"""The dashboard's files, as a server hands them out: no build step, no other host.

They hold no data: the page asks for that with its token. They may only load what this server has,
and run no script or style that is not one of these files (`HEADERS`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from truecast.report.page import stylesheet

__all__ = ["HEADERS", "Page", "pages"]

HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "cache-control": "no-cache",  # asks each time whether the etag is still right
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_MEDIA = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A file of the dashboard.

    Attributes
    ----------
    content : bytes
        What is in it.
    media_type : str
        Its content-type.
    etag : str
        Changes when the content does.
    """

    content: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Page:
        """Return a file of this name."""
        digest = hashlib.blake2b(content, digest_size=12).hexdigest()
        return cls(content, _MEDIA[name.rpartition(".")[2]], f'"{digest}"')


@cache
def pages() -> dict[str, Page]:
    """Return every file by its path on the server; "/" is the page itself.

    Examples
    --------
    >>> pages()["/"].media_type
    'text/html; charset=utf-8'
    """
    room = files(__name__)
    found = {
        f"/dashboard/{file.name}": Page.of(file.name, file.read_bytes())
        for file in room.iterdir()
        if file.name.rpartition(".")[2] in _MEDIA
    }
    found["/"] = found.pop("/dashboard/index.html")
    # colours, type and verdicts are the report's
    found["/dashboard/report.css"] = Page.of("report.css", stylesheet().encode())
    return found
