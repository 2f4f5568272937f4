"""The Open Inference Protocol: a stream looks like any other model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from truecast.testing import serving

PATH = "/v2/models/judge/infer"


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving() as url, httpx.Client(base_url=url) as client:
        client.post("/streams", json={"name": "judge"})
        client.post("/streams", json={"name": "three", "classes": 3})
        yield client


def tensor(data: Any, shape: list[int], name: str = "score", datatype: str = "FP64") -> Any:
    return {"name": name, "shape": shape, "datatype": datatype, "data": data}


def test_what_a_server_and_a_model_say(http: httpx.Client) -> None:
    assert http.get("/v2").json()["name"] == "truecast"
    assert http.get("/v2/health/live").json() == {"live": True}
    assert http.get("/v2/health/ready").json()["ready"] is True
    assert http.get("/v2/models/judge/ready").status_code == 200
    model = http.get("/v2/models/judge").json()
    assert model["inputs"][0] == {"name": "score", "datatype": "FP64", "shape": [-1]}
    assert [output["name"] for output in model["outputs"]] == ["p", "id"]
    missing = http.get("/v2/models/nobody")
    assert (missing.status_code, missing.json()["error"]) == (404, missing.json()["detail"])


def test_forecasts_are_those_of_the_other_route(http: httpx.Client) -> None:
    inputs = [
        tensor([0.2, 0.7], [2]),
        tensor(["a", "b"], [2], "id", "BYTES"),
        tensor(["x", "y"], [2], "group", "BYTES"),
    ]
    answer = http.post(PATH, json={"id": "mine", "inputs": inputs}).json()
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("judge", "1", "mine")
    p, ids = answer["outputs"]
    assert (p["shape"], p["datatype"], ids["data"]) == ([2], "FP64", ["a", "b"])
    row = {"score": 0.7, "id": "b", "groups": "y"}
    other = http.post("/streams/judge/forecasts", json=row).json()
    assert other == {"id": "b", "p": p["data"][1], "again": True}
    only = http.post(PATH, json={"inputs": inputs, "outputs": [{"name": "p"}]}).json()
    assert [output["name"] for output in only["outputs"]] == ["p"]


def test_classes_flat_and_nested(http: httpx.Client) -> None:
    ids = tensor(["a", "b"], [2], "id", "BYTES")
    flat = tensor([0.5, 0.3, 0.2, 0.1, 0.1, 0.8], [2, 3])
    nested = tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [2, 3])
    first, again = (
        http.post("/v2/models/three/infer", json={"inputs": [scores, ids]}).json()
        for scores in (flat, nested)
    )
    assert first == again
    assert first["outputs"][0]["shape"] == [2, 3]
    assert sum(first["outputs"][0]["data"]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [tensor([0.5], [1], "x")],
        [tensor([0.5], [1]), tensor([0.5], [1])],
        [tensor([0.5], [2])],
        [tensor([0.5], [0])],
        [tensor([0.5], [-1])],
        [tensor([0.5], [])],
        [tensor([0.5], [1, 1, 1])],
        [tensor([0.5], [10**15])],
        [tensor([[[0.5]]], [1])],
        [tensor([True], [1])],
        [tensor(["0.5"], [1])],
        [tensor([10**400], [1])],
        [tensor([1.5], [1])],
        [tensor([1], [1], datatype="INT64")],
        [tensor([0.5], [1]), tensor([1], [1], "id", "BYTES")],
        [tensor([0.5], [1]), tensor(["a", "b"], [2], "id", "BYTES")],
        [tensor([0.5], [1]), tensor(["a"], [1], "id", "FP64")],
    ],
)
def test_what_is_refused(http: httpx.Client, inputs: list[Any]) -> None:
    before = http.get("/streams/judge").json()["seq"]
    answer = http.post(PATH, json={"inputs": inputs})
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]
    assert http.get("/streams/judge").json()["seq"] == before


def test_outputs_that_there_are_not(http: httpx.Client) -> None:
    body = {"inputs": [tensor([0.5], [1])], "outputs": [{"name": "logit"}]}
    before = http.get("/streams/judge").json()["seq"]
    assert http.post(PATH, json=body).status_code == 422
    assert http.get("/streams/judge").json()["seq"] == before
