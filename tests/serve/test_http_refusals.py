"""What the service refuses: with a clear problem, never a failure, and nothing changes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from truecast.serve.http import exchange, protocol
from truecast.serve.http.limits import Limits
from truecast.testing import serving

JSON = {"content-type": "application/json"}
SMALL = Limits(body=20_000, rows=50)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving(limits=SMALL) as url, httpx.Client(base_url=url) as client:
        client.post("/streams", json={"name": "a"})
        client.post("/streams/a/forecasts", json={"score": 0.5, "id": "known"})
        yield client


FORECASTS = {
    "nothing": (b"", 400, "not JSON"),
    "no JSON": (b"score=0.5", 400, "not JSON"),
    "cut off": (b'{"score": 0.5', 400, "not JSON"),
    "NaN": (b'{"score": NaN}', 400, "not JSON"),
    "Infinity": (b'{"score": -Infinity}', 400, "not JSON"),
    "no UTF-8": (b'{"score": 0.5, "id": "\xff"}', 400, "not JSON"),
    "half a pair of surrogates": (b'{"score": 0.5, "id": "\\ud800"}', 400, "not JSON"),
    "too deep": (b'{"score": ' + b"[" * 9_000, 422, "score"),
    "too large a number": (b'{"score": 1e999}', 422, "out of range"),
    "an integer without end": (b'{"score": ' + b"9" * 5_000 + b"}", 422, ""),
    "a list": (b"[]", 422, "body must be an object, got 'a list'"),
    "no score": (b'{"id": "x"}', 422, "score must be given"),
    "null": (b'{"score": null}', 422, "score must be a number or a list, got 'null'"),
    "text": (b'{"score": "0.5"}', 422, "score must be a number or a list, got 'text'"),
    "true": (b'{"score": true}', 422, "score must be a number"),
    "above 1": (b'{"score": 1.5}', 422, "score must be between 0 and 1, got 1.5"),
    "rows for a stream of two": (b'{"score": [0.5, 0.5]}', 422, "score"),
    "an unknown field": (b'{"score": 0.5, "group": "x"}', 422, "at /docs, got 'group'"),
    "an empty id": (b'{"score": 0.5, "id": ""}', 422, "id must be"),
    "a long id": (b'{"score": 0.5, "id": "' + b"x" * 201 + b'"}', 422, "id must be"),
    "too many groups": (
        b'{"score": 0.5, "groups": [' + b",".join(b'"%d"' % k for k in range(101)) + b"]}",
        422,
        "group",
    ),
    "one and many": (b'{"score": 0.5, "forecasts": [{"score": 0.5}]}', 422, "not both"),
    "none": (b'{"forecasts": []}', 422, "at least one row"),
    "the second row": (b'{"forecasts": [{"score": 0.5}, {}]}', 422, "at position 1"),
    "too many rows": (b'{"forecasts": [' + b'{"score":0.5},' * 50 + b'{"score":0.5}]}', 413, "50"),
    "too many bytes": (b'{"score": 0.5, "id": "' + b"x" * 20_000 + b'"}', 413, "20,000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORECASTS)
def test_forecasts(http: httpx.Client, name: str) -> None:
    body, status, says = FORECASTS[name]
    before = http.get("/streams/a").json()["seq"]
    answer = http.post("/streams/a/forecasts", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"] == f"urn:truecast:{problem['title'].replace(' ', '-')}"
    assert says in problem["detail"]
    assert problem["request"] == answer.headers["x-request-id"]
    assert http.get("/streams/a").json()["seq"] == before


def test_a_row_of_classes_that_does_not_sum_to_1() -> None:
    """What it says can be done here: a stream has no option to divide rows by their sums."""
    rows = [{"score": [0.5, 0.3, 0.2]}, {"score": [0.5, 0.3, 0.3]}]
    with serving() as url, httpx.Client(base_url=url) as client:
        client.post("/streams", json={"name": "games", "classes": ["home", "draw", "away"]})
        problem = client.post("/streams/games/forecasts", json={"forecasts": rows}).json()
    assert [problem[name] for name in ("argument", "value", "position")] == ["score", 1.1, 1]
    assert "divide each by its sum" in problem["rule"]
    assert "normalize" not in problem["rule"]


def test_a_row_that_breaks_a_rule_is_named(http: httpx.Client) -> None:
    rows = [{"score": 0.5}, {"score": 0.2}, {"score": 2}]
    problem = http.post("/streams/a/forecasts", json={"forecasts": rows}).json()
    found = [problem[name] for name in ("argument", "rule", "value", "position")]
    assert found == ["score", "must be between 0 and 1", 2.0, 2]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"id": "known"}, 422),
        ({"outcome": 1}, 422),
        ({"id": "known", "outcome": 2}, 422),
        ({"id": "known", "outcome": True}, 422),
        ({"id": "known", "outcome": 0.5}, 422),
        ({"id": "known", "outcome": "yes"}, 422),
        ({"id": "known", "outcome": 10**30}, 422),
        ({"id": 7, "outcome": 1}, 422),
        ({"id": "known", "outcome": 1, "outcomes": []}, 422),
        ({"outcomes": [{"id": "known", "outcome": 1}] * 51}, 413),
        ({"id": "null\0", "outcome": 1}, None),  # unknown, or refused: either way no failure
    ],
)
def test_outcomes(http: httpx.Client, body: dict[str, object], status: int | None) -> None:
    answer = http.post("/streams/a/outcomes", json=body)
    assert answer.status_code == status or (status is None and answer.status_code in (404, 422))


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "../x"},
        {"name": "a b"},
        {"name": "x" * 101},
        {"name": "b", "classes": 1},
        {"name": "b", "classes": ["one", "one"]},
        {"name": "b", "classes": 10**12},
        {"name": "b", "scale": "percent"},
        {"name": "b", "budget": 0.5},
        {"name": "b", "max_groups": -1},
        {"name": "b", "max_unresolved": 10**30},
        {"name": "b", "alarm": {"alpha": 2.0}},
        {"name": "b", "alarm": {"alpha": 0.01, "mean_time": 1000.0}},
        {"name": "b", "note": "x" * 2_001},
        {"name": "b", "colour": "red"},
        {},
    ],
)
def test_streams(http: httpx.Client, body: dict[str, object]) -> None:
    answer = http.post("/streams", json=body)
    assert (answer.status_code, answer.json()["title"]) == (422, "breaks a rule"), answer.text
    assert [info["name"] for info in http.get("/streams").json()["streams"]] == ["a"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_content_types(http: httpx.Client, headers: dict[str, str]) -> None:
    answer = http.post("/streams/a/forecasts", content=b'{"score": 0.5}', headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (415, "wrong content type")


def test_json_by_its_longer_name(http: httpx.Client) -> None:
    headers = {"content-type": "Application/JSON; charset=UTF-8"}
    assert http.post("/streams/a/forecasts", content=b'{"score": 0.5}', headers=headers).is_success


def test_parameters_of_an_address(http: httpx.Client) -> None:
    answer = http.delete("/streams/a", params={"confirm": "a", "force": "1"})
    assert (answer.status_code, answer.json()["value"]) == (422, "force")
    assert http.delete("/streams/a?confirm=%ff").status_code == 400
    assert http.delete(f"/streams/a?confirm={'x' * 3_000}").status_code == 414


def test_other_names_and_other_sites(http: httpx.Client) -> None:
    rebound = http.get("/streams", headers={"host": "evil.example:8799"})
    assert (rebound.status_code, rebound.json()["title"]) == (421, "misdirected request")
    port = http.base_url.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]:1"):
        assert http.get("/streams", headers={"host": host}).is_success
    assert http.get("/streams", headers={"origin": "https://evil.example"}).status_code == 403
    assert http.get("/streams", headers={"origin": "null"}).status_code == 403
    own = {"origin": f"http://127.0.0.1:{port}"}
    assert http.get("/streams", headers=own).is_success


def raw(http: httpx.Client, *pieces: bytes) -> bytes:
    """What comes back for these bytes, until the service hangs up."""
    parts = urlsplit(str(http.base_url))
    assert parts.hostname
    assert parts.port
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as line:
        for piece in pieces:
            line.sendall(piece)
        found = b""
        while more := line.recv(65_536):
            found += more
        return found


HEAD = b"POST /streams/a/forecasts HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"


def test_bytes_that_are_no_http(http: httpx.Client) -> None:
    assert raw(http, b"\x16\x03\x01\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(http, HEAD + b"content-length: -1\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(http, HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n").startswith(
        b"HTTP/1.1 400"
    )
    assert raw(http, b"GET /\xc3\xa4 HTTP/1.1\r\nhost: localhost\r\n\r\n").startswith(
        b"HTTP/1.1 400"
    )
    assert http.get("/healthz").is_success


def test_headers_without_end(http: httpx.Client) -> None:
    head = HEAD + b"x: " + b"y" * protocol.LONGEST_HEAD
    assert raw(http, head).startswith(b"HTTP/1.1 400")
    lines = b"".join(b"x-%d: y\r\n" % k for k in range(10_000))
    assert raw(http, HEAD, lines).startswith(b"HTTP/1.1 400")


def test_a_body_in_pieces(http: httpx.Client) -> None:
    head = HEAD + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    good = raw(http, head, b"9\r\n" + b'{"score":', b"\r\n4\r\n0.5}\r\n", b"0\r\n\r\n")
    assert good.startswith(b"HTTP/1.1 200")
    piece = b"1000\r\n" + b" " * 4_096 + b"\r\n"
    assert raw(http, head, piece * 6, b"0\r\n\r\n").startswith(b"HTTP/1.1 413")


def test_who_is_refused_early_gets_the_answer(http: httpx.Client) -> None:
    """To hang up on what is not read would reset the connection before the answer is read."""
    head = HEAD + b"content-type: application/json\r\ncontent-length: 50000000\r\n\r\n"
    assert raw(http, head, b" " * 8_000_000).startswith(b"HTTP/1.1 413")
    assert raw(http, b"\x16\x03\x01\r\n\r\n", b" " * 8_000_000).startswith(b"HTTP/1.1 400")


def test_slow_clients_are_cut_off(monkeypatch: pytest.MonkeyPatch, http: httpx.Client) -> None:
    monkeypatch.setattr(exchange, "SLOWEST_BODY", 0.05)
    monkeypatch.setattr(protocol, "SLOWEST_HEAD", 0.05)
    assert raw(http) == b""
    assert raw(http, HEAD) == b""
    body = HEAD + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    assert raw(http, body).startswith(b"HTTP/1.1 408")


def test_too_many_who_wait() -> None:
    with serving(limits=Limits(waiting=0)) as url:
        answer = httpx.get(f"{url}/streams")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
