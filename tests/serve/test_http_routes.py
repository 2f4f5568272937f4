"""The routes of a real service: what each does, and what all answers carry."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import truecast as tc
from truecast.serve.http import system
from truecast.serve.http.app import table
from truecast.testing import serving


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving() as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture
def stream(http: httpx.Client, request: pytest.FixtureRequest) -> str:
    name = request.node.name.partition("[")[0][:90]
    assert http.post("/streams", json={"name": name}).status_code == 200
    return f"/streams/{name}"


def test_a_stream_is_created_once(http: httpx.Client) -> None:
    body = {"name": "once", "note": "a judge", "alarm": {"alpha": 0.01}}
    first, again = (http.post("/streams", json=body) for _ in range(2))
    assert first.json() == again.json()
    assert first.json()["note"] == "a judge"
    other = http.post("/streams", json=body | {"budget": 5.0})
    assert (other.status_code, other.json()["title"]) == (409, "contradiction")
    assert "once" in [info["name"] for info in http.get("/streams").json()["streams"]]


def test_one_forecast_and_its_outcome(http: httpx.Client, stream: str) -> None:
    said = http.post(f"{stream}/forecasts", json={"score": 0.8, "id": "a", "groups": "x"}).json()
    assert said["again"] is False
    again = http.post(f"{stream}/forecasts", json={"score": 0.8, "id": "a"}).json()
    assert again == said | {"again": True}
    assert http.post(f"{stream}/forecasts", json={"score": 0.7, "id": "a"}).status_code == 409
    learned = http.post(f"{stream}/outcomes", json={"id": "a", "outcome": 1})
    assert learned.json() == {"id": "a", "status": "learned", "p": said["p"]}
    duplicate = http.post(f"{stream}/outcomes", json={"id": "a", "outcome": 1})
    assert (duplicate.status_code, duplicate.json()["status"]) == (200, "duplicate")
    assert http.post(f"{stream}/outcomes", json={"id": "a", "outcome": 0}).status_code == 409
    assert http.post(f"{stream}/outcomes", json={"id": "b", "outcome": 0}).status_code == 404


def test_many_rows_have_an_answer_each(http: httpx.Client, stream: str) -> None:
    rows = [{"score": 0.1, "id": "a"}, {"score": 0.9}]
    said = http.post(f"{stream}/forecasts", json={"forecasts": rows}).json()["forecasts"]
    assert [row["again"] for row in said] == [False, False]
    outcomes = [
        {"id": said[1]["id"], "outcome": 1},
        {"id": "nobody", "outcome": 1},
        {"id": said[1]["id"], "outcome": 0},
    ]
    answer = http.post(f"{stream}/outcomes", json={"outcomes": outcomes})
    assert answer.status_code == 200
    found = [row["status"] for row in answer.json()["outcomes"]]
    assert found == ["learned", "unknown", "contradiction"]


def test_outcomes_are_given_up_by_id_and_by_age(http: httpx.Client, stream: str) -> None:
    for name in "abc":
        http.post(f"{stream}/forecasts", json={"score": 0.5, "id": name})
    assert http.post(f"{stream}/give_up", json={"ids": ["a", "z"]}).json() == {"given_up": 1}
    assert http.post(f"{stream}/give_up", json={"older_than": 1e6}).json() == {"given_up": 0}
    late = http.post(f"{stream}/outcomes", json={"id": "a", "outcome": 1})
    assert (late.status_code, "given up" in late.json()["detail"]) == (409, True)
    both = http.post(f"{stream}/give_up", json={"ids": ["b"], "older_than": 1.0})
    assert both.status_code == 422


def test_a_stream_is_read_in_parts(http: httpx.Client, stream: str) -> None:
    rows = [{"score": 0.9, "id": str(k)} for k in range(40)]
    http.post(f"{stream}/forecasts", json={"forecasts": rows})
    outcomes = [{"id": str(k), "outcome": k % 2} for k in range(40)]
    http.post(f"{stream}/outcomes", json={"outcomes": outcomes})
    whole = http.get(stream).json()
    assert (whole["rounds"], whole["sides"][0]["rate"]) == (40, 0.5)
    proved = http.get(f"{stream}/certificate").json()
    assert proved["classes"][0]["certificate"] == whole["sides"][0]["certificate"]
    (evidence,) = http.get(f"{stream}/alarm").json()["classes"]
    assert evidence["before"]["now"] > evidence["after"]["now"]
    assert http.get(f"{stream}/measures").json()["sides"] == whole["sides"]
    state = http.get(f"{stream}/state").json()
    taken = tc.Recalibrator()
    taken.load(state["recalibrator"])
    assert taken.certificate.rounds == 40


def test_classes(http: httpx.Client) -> None:
    body = {"name": "three", "classes": ["home", "draw", "away"]}
    assert http.post("/streams", json=body).json()["classes"] == body["classes"]
    row = {"score": [0.5, 0.3, 0.2], "id": "a"}
    said = http.post("/streams/three/forecasts", json=row).json()
    assert sum(said["p"]) == pytest.approx(1.0)
    answer = http.post("/streams/three/outcomes", json={"id": "a", "outcome": "draw"})
    assert answer.json()["status"] == "learned"
    assert http.get("/v2/models/three").json()["inputs"][0]["shape"] == [-1, 3]


def test_a_stream_is_deleted_only_by_its_name(http: httpx.Client, stream: str) -> None:
    name = stream.rpartition("/")[2]
    assert http.delete(stream).status_code == 422
    assert http.delete(stream, params={"confirm": name[:-1]}).status_code == 422
    assert http.delete(stream, params={"confirm": name}).status_code == 204
    assert http.get(stream).status_code == 404


def test_head_options_and_unknown_methods(http: httpx.Client) -> None:
    head, get = http.head("/streams"), http.get("/streams")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    options = http.options("/streams")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert "access-control-allow-origin" not in options.headers
    for method in ("PATCH", "PUT", "TRACE", "DELETE"):
        refused = http.request(method, "/streams")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")


@pytest.mark.parametrize("path", ["/nothing", "/streams/", "/streams//x", "/%2e%2e/x", "/v2/"])
def test_there_is_nothing_elsewhere(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, answer.json()["title"]) == (404, "not found")


def test_every_answer_is_safe_and_has_an_id(http: httpx.Client) -> None:
    paths = ["/healthz", "/streams", "/nothing", "/docs", "/", "/dashboard/app.js"]
    for path in paths:
        headers = http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-request-id"]
        assert "server" not in headers
    mine = http.get("/healthz", headers={"x-request-id": "order-17"})
    assert mine.headers["x-request-id"] == "order-17"
    forged = http.get("/nothing", headers={"x-request-id": 'a" b'})
    assert forged.headers["x-request-id"] == forged.json()["request"] != 'a" b'


def test_pages_come_from_the_package_alone(http: httpx.Client) -> None:
    for path in ("/", "/docs", "/streams/any/page"):
        page = http.get(path)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "http://" not in page.text.replace("http://www.w3.org", "")
        assert "https://" not in page.text
        assert '<link rel="icon" href="/dashboard/icon.svg"' in page.text  # no /favicon.ico
    page = http.get("/docs")
    again = http.get("/docs", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for route in table().routes:
        if not route.path.startswith("/dashboard"):
            assert f"{route.method} {route.path}" in page.text
    assert "see <code>truecast.Monitor</code>" in page.text


def test_metrics_are_what_prometheus_reads(http: httpx.Client, stream: str) -> None:
    http.post(f"{stream}/forecasts", json={"score": 0.5, "id": "a"})
    http.post(f"{stream}/outcomes", json={"id": "a", "outcome": 1})
    http.get(stream)
    answer = http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    ready = families["truecast_ready"].samples[0].value
    assert ready == 1
    routes = {
        (sample.labels["route"], sample.labels["status"]): sample.value
        for sample in families["truecast_requests"].samples
    }
    assert routes["POST /streams/{name}/forecasts", "200"] >= 1
    buckets = families["truecast_request_seconds"].samples
    counts = [sample.value for sample in buckets if sample.name.endswith("_count")]
    assert sum(counts) == sum(routes.values())
    named = [sample.labels.get("stream") for sample in families["truecast_unresolved"].samples]
    assert stream.rpartition("/")[2] in named


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_listeners_are_counted_and_not_too_many(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "_MOST_LISTENERS", 1)
    with http.stream("GET", "/events") as answer:
        next(answer.iter_lines())
        refused = http.get("/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
    for _ in range(200):  # the service notices that the listener has gone
        with http.stream("GET", "/events") as answer:
            if answer.is_success:
                return
        time.sleep(0.01)
    raise AssertionError


def test_changes_are_heard_as_they_come(http: httpx.Client, stream: str) -> None:
    with http.stream("GET", "/events") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        heard = events(answer.iter_lines())
        assert next(heard)[0] == "hello"
        http.post(f"{stream}/forecasts", json={"score": 0.5})
        own = stream.rpartition("/")[2]
        changes = (said for name, said in heard if (name, said["name"]) == ("change", own))
        assert any(said["unresolved"] == 1 for said in changes)
        http.delete(stream, params={"confirm": own})
        assert ("deleted", {"name": own}) in heard
