"""The description as a page: no script, nothing from elsewhere."""

from __future__ import annotations

import json
import re
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
<link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/dashboard/report.css">
</head>
<body>
<main>
<h1>The interface</h1>
<p>{about} Version {version}. For programs: <a href="/openapi.json">openapi.json</a>.
The <a href="/">dashboard</a>.</p>
<pre>curl --json '{{"name": "judge"}}' HOST/streams
curl --json '{{"score": 0.83, "id": "order-17"}}' HOST/streams/judge/forecasts
curl --json '{{"id": "order-17", "outcome": 1}}' HOST/streams/judge/outcomes</pre>
<p>If the service has tokens, add <code>-H 'Authorization: Bearer ...'</code>. Each has scopes.
What is refused is answered as a <a href="#Problem">problem</a> (RFC 9457): <code>detail</code> says
what, and what to do instead; nothing was changed. Any route may answer {always}.</p>
{routes}
<h2>Types</h2>
{types}
</main>
</body>
</html>
"""
_PARTS = {
    "Streams": "/streams",
    "Open Inference Protocol": "/v2",
    "The service itself": "/",
}


def documentation(description: dict[str, Any]) -> Page:
    """Return the page."""
    left = {
        (path, method): operation
        for path, operations in description["paths"].items()
        if not path.startswith("/dashboard")
        for method, operation in operations.items()
    }
    always = set.intersection(*(set(operation["responses"]) for operation in left.values()))
    always -= {"200"}
    tables = []
    for title, prefix in _PARTS.items():
        mine = [key for key in left if key[0].startswith(prefix)]
        rows = "\n".join(_route(*key, left.pop(key), always) for key in mine)
        tables.append(f"<h2>{title}</h2>\n<ul>\n{rows}\n</ul>")
    schemas = description["components"]["schemas"]
    text = _PAGE.format(
        about=escape(description["info"]["description"]),
        version=escape(description["info"]["version"]),
        always=", ".join(sorted(always)),
        routes="\n".join(tables),
        types="\n".join(_type(name, schemas[name]) for name in sorted(schemas)),
    )
    return Page.of("docs.html", text.encode())


def _route(path: str, method: str, operation: dict[str, Any], always: set[str]) -> str:
    status, answer = next(iter(operation["responses"].items()))
    said = [f"{escape(operation['summary']).replace('`', '')}."]
    scope = operation.get("description", "").partition("`")[2].rstrip("`.")
    said.append(f"Scope: {scope}." if scope else "For anyone.")
    if "requestBody" in operation:
        said.append(f"Takes {_names(operation['requestBody']['content'])}.")
    if "content" in answer:
        said.append(f"Gives {_names(answer['content'])}.")
    if others := sorted(set(operation["responses"]) - always - {status}):
        said.append(f"Also {', '.join(others)}.")
    query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    address = escape(path) + "".join(f"?{name}=..." for name in query)
    return f"<li><code>{method.upper()} {address}</code><br>{' '.join(said)}</li>"


def _names(content: dict[str, Any]) -> str:
    (media, said), *_ = content.items()
    schema = said["schema"]
    found = [
        each["$ref"].rpartition("/")[2] for each in schema.get("oneOf", [schema]) if "$ref" in each
    ]
    links = [f'<a href="#{name}">{name}</a>' for name in found]
    return " or ".join(links) if links else f"<code>{escape(media)}</code>"


def _type(name: str, schema: dict[str, Any]) -> str:
    about = re.sub("`([^`]*)`", r"<code>\1</code>", escape(schema.get("description", "")))
    shown = {key: value for key, value in schema.items() if key not in ("title", "description")}
    text = escape(json.dumps(shown, indent=2))
    return (
        f'<h3 id="{name}">{name}</h3>\n<p>{about}</p>\n'
        f"<details><summary>JSON schema</summary><pre>{text}</pre></details>"
    )
