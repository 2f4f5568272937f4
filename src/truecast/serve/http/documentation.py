"""The description as a page: no script, nothing from elsewhere."""

from __future__ import annotations

import hashlib
import json
from html import escape
from typing import Any

from truecast.serve.dashboard import Page

__all__ = ["documentation"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>truecast: the interface</title>
<link rel="stylesheet" href="/dashboard/report.css">
</head>
<body>
<main>
<h1>The interface</h1>
<p>{about} Version {version}. For programs: <a href="/openapi.json">openapi.json</a>.
The <a href="/">dashboard</a>.</p>
<p>Bodies are JSON. What is refused is answered as a problem (RFC 9457): <code>detail</code> says
what, and what to do instead; nothing was changed.</p>
{routes}
<h2>Types</h2>
{types}
</main>
</body>
</html>
"""


def documentation(description: dict[str, Any]) -> Page:
    """Return the page."""
    routes = [
        _route(method, path, operation)
        for path, operations in description["paths"].items()
        if not path.startswith("/dashboard")
        for method, operation in operations.items()
    ]
    schemas = description["components"]["schemas"]
    text = _PAGE.format(
        about=escape(description["info"]["description"]),
        version=escape(description["info"]["version"]),
        routes="\n".join(routes),
        types="\n".join(_type(name, schemas[name]) for name in sorted(schemas)),
    )
    content = text.encode()
    etag = hashlib.blake2b(content, digest_size=12).hexdigest()
    return Page(content, "text/html; charset=utf-8", f'"{etag}"')


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>"]
    needs = operation.get("description", "Needs no token.").replace("`", "")
    parts.append(f"<p>{escape(operation['summary'])}. {escape(needs)}</p>")
    if body := operation.get("requestBody"):
        parts.append(f"<p>Takes {_names(body['content'])}.</p>")
    status, answer = next(iter(operation["responses"].items()))
    if "content" in answer:
        parts.append(f"<p>Gives {_names(answer['content'])} ({status}).</p>")
    others = ", ".join(code for code in operation["responses"] if code != status)
    parts.append(f"<p>Problems: {others}.</p>")
    return "\n".join(parts)


def _names(content: dict[str, Any]) -> str:
    (media, said), *_ = content.items()
    schema = said["schema"]
    found = [
        each["$ref"].rpartition("/")[2] for each in schema.get("oneOf", [schema]) if "$ref" in each
    ]
    links = [f'<a href="#{name}">{name}</a>' for name in found]
    return " or ".join(links) if links else f"<code>{escape(media)}</code>"


def _type(name: str, schema: dict[str, Any]) -> str:
    about = escape(schema.get("description", ""))
    shown = {key: value for key, value in schema.items() if key not in ("title", "description")}
    text = escape(json.dumps(shown, indent=2))
    return (
        f'<h3 id="{name}">{name}</h3>\n<p>{about}</p>\n'
        f"<details><summary>JSON schema</summary><pre>{text}</pre></details>"
    )
