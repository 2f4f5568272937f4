"""The description is true: whatever is sent, the answer is one that it allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import booleans
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from truecast.serve.http.app import table
from truecast.serve.http.limits import Limits
from truecast.serve.http.openapi import described
from truecast.testing import serving

CHECKS = [
    schemathesis.checks.not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]
DESCRIPTION = described(table())
OPERATIONS = [
    pytest.param(route.method, route.path, id=route.label)
    for route in table().routes
    if route.path != "/events" and not route.path.startswith("/dashboard")
]

EXAMPLES = 10
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(limits=Limits(body=100_000)) as url:
        for name, classes in (("a", None), ("0", 3)):  # names that generators like to send
            httpx.post(f"{url}/streams", json={"name": name, "classes": classes})
        yield url


def test_every_route_is_described_once() -> None:
    ids = [
        operation["operationId"]
        for operations in DESCRIPTION["paths"].values()
        for operation in operations.values()
    ]
    assert len(ids) == len(set(ids)) == len(table().routes)


@pytest.mark.slow("sends generated requests to every route")
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_answers_are_as_described(url: str, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_dict(DESCRIPTION)
    schema.config.update(base_url=url)
    operation = schema[path][method]
    found: Counter[int] = Counter()

    for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:

        @SETTINGS
        @given(operation.as_strategy(generation_mode=mode), booleans())
        def send(case: Any, there: bool) -> None:
            if there and "name" in case.path_parameters:
                case.path_parameters["name"] = "a"
            found[case.call_and_validate(checks=CHECKS).status_code] += 1

        with suppress(*[Unsatisfiable] if mode is GenerationMode.NEGATIVE else []):
            send()  # there may be nothing that could be wrong
    assert found
    assert not any(status >= 500 for status in found)
