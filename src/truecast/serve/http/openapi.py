"""The description of all routes: OpenAPI 3.1, made from the table and the types."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import msgspec

import truecast
from truecast.serve import options
from truecast.serve.http.problems import Problem
from truecast.serve.http.routes import NAME, Route, Table

__all__ = ["described"]

_REFERENCE = "#/components/schemas/{name}"
_ALWAYS = (400, 401, 403, 404, 405, 421, 422, 429)  # what any route may answer
_WITH_BODY = (408, 413, 415)


def described(table: Table) -> dict[str, Any]:
    """Return the whole description, as plain data."""
    schemas, components = _schemas(table)
    paths: dict[str, dict[str, Any]] = {}
    for route in table.routes:
        operation = _operation(route, schemas)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "truecast",
            "version": truecast.__version__,
            "description": "Scores in, calibrated probabilities out, outcomes later.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(of: Any) -> tuple[Any, ...]:
    return of if isinstance(of, tuple) else (of,)


def _schemas(table: Table) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return the schema of each type that a route takes or gives, and the named ones."""
    types: dict[Any, None] = {Problem: None}
    for route in table.routes:
        for of in (route.takes, route.gives, *route.also.values()):
            types |= dict.fromkeys(_types(of)) if of is not None else {}
    made, components = msgspec.json.schema_components(list(types), ref_template=_REFERENCE)
    for schema in components.values():
        if "description" in schema:  # the first lines; the sections follow for readers of the code
            schema["description"] = re.split(r"\n\s*\n", schema["description"])[0]
    return dict(zip(types, made, strict=True)), components


def _operation(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "responses": _responses(route, schemas),
    }
    if parameters := _parameters(route):
        said["parameters"] = parameters
    if route.scope is not None:
        said["security"] = [{"token": []}]
        said["description"] = f"Needs a token with the scope `{route.scope}`."
    if route.takes is not None:
        content = {"application/json": {"schema": _one_of(route.takes, schemas)}}
        said["requestBody"] = {"required": True, "content": content}
    return said


def _responses(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    if route.gives is not None:
        success["content"] = {route.media: {"schema": _one_of(route.gives, schemas)}}
    elif route.status != 204:
        kind = route.media.partition(";")[0]
        success["content"] = {kind: {"schema": {} if "json" in kind else {"type": "string"}}}
    found = {str(route.status): success}
    for status, of in route.also.items():
        content = {route.media: {"schema": _one_of(of, schemas)}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    refuses = {*_ALWAYS, *route.refuses, *(_WITH_BODY if route.takes is not None else ())}
    for status in sorted(refuses):
        found[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/problem+json": {"schema": schemas[Problem]}},
        }
    return found


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if NAME in route.path:
        rule = {"type": "string", "pattern": f"^{options.NAME.pattern}$"}
        found.append({"name": "name", "in": "path", "required": True, "schema": rule})
    for name, says in route.query.items():
        text = {"type": "string"}
        found.append(
            {"name": name, "in": "query", "required": True, "description": says, "schema": text}
        )
    return found


def _one_of(types: Any, schemas: dict[Any, Any]) -> Any:
    found = [schemas[of] for of in _types(types)]
    return found[0] if len(found) == 1 else {"oneOf": found}


def _operation_id(route: Route) -> str:
    words = re.findall(r"[a-z0-9]+", route.path.replace(NAME, "of"), re.IGNORECASE)
    return "_".join([route.method.lower(), *words])
