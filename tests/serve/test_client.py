"""The clients: typed answers, safe retries, errors that say what the service said."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

import truecast as tc
from truecast.client import calls, tries
from truecast.serve import rows
from truecast.testing import serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def client(url: str, request: pytest.FixtureRequest) -> Iterator[tc.Client]:
    with tc.Client(url, most_rows=10) as client:
        client.create(request.node.name[:90])
        yield client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name[:90])


def test_results_are_those_of_the_service() -> None:
    for ours, theirs in (
        (tc.ServedForecast, rows.Forecast),
        (tc.ServedOutcome, rows.OutcomeAnswer),
    ):
        assert {field.name for field in fields(ours)} <= set(theirs.__struct_fields__)


def test_a_day_with_a_stream(client: tc.Client, name: str) -> None:
    one = client.forecast(name, 0.8, groups="x", event="final", time="2026-01-01")
    assert isinstance(one, tc.ServedForecast)
    assert client.forecast(name, 0.8, id=one.id).p == one.p
    many = client.forecasts(name, np.linspace(0.3, 0.7, 25), groups=[["a", "b"]] * 25)
    assert [len(many), len({each.id for each in many})] == [25, 25]
    assert client.outcome(name, one.id, 1).status == "learned"
    answers = client.outcomes(name, [each.id for each in many], np.arange(25) % 2)
    assert all(answer.known for answer in answers)
    assert client.certificate(name)["rounds"] == 26
    assert client.overview(name)["rounds"] == 26
    assert client.measures(name)["sides"][0]["rounds"] == 26
    assert client.alarm(name)["alarms"] == []
    assert client.state(name)["name"] == name
    assert name in [info["name"] for info in client.streams()]
    late = client.forecast(name, 0.5)
    assert client.give_up(name, ids=[late.id]) == 1
    assert client.give_up(name, older_than=1e6) == 0
    with pytest.raises(tc.InputError, match="confirm must be the name"):
        client.delete(name, confirm="other")
    client.delete(name, confirm=name)
    with pytest.raises(tc.NotFoundError, match="there is no stream"):
        client.overview(name)


def test_errors_are_those_of_the_service(client: tc.Client, name: str) -> None:
    with pytest.raises(tc.InputError) as caught:
        client.forecasts(name, [0.5, 1.5])
    error = caught.value
    assert (error.argument, error.value, error.position) == ("score", 1.5, 1)
    assert error.rule == "must be between 0 and 1"
    with pytest.raises(tc.NotFoundError, match="no forecast with the id 'x'"):
        client.outcome(name, "x", 1)
    said = client.forecast(name, 0.5)
    client.outcome(name, said.id, 1)
    with pytest.raises(tc.ConflictError, match="another outcome"):
        client.outcome(name, said.id, 0)
    assert client.outcomes(name, [said.id, "x"], [0, 1])[0].status == "contradiction"
    with pytest.raises(tc.ConflictError, match="other options"):
        client.create(name, budget=5.0)
    with pytest.raises(tc.InputError, match="plain numbers"):
        client.forecast(name, float("nan"))
    for wrong in (
        lambda: client.forecasts(name, [0.5], ids=["a", "b"]),
        lambda: client.outcomes(name, ["a"], [1, 0]),
        lambda: client.give_up(name),
        lambda: client.overview(""),
        lambda: client.overview(".."),
    ):
        with pytest.raises(tc.InputError):
            wrong()


def test_names_stay_in_their_place(client: tc.Client) -> None:
    with pytest.raises(tc.NotFoundError):
        client.overview("a/../../streams")


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "127.0.0.1:8799"},
        {"url": "ftp://x"},
        {"token": ""},
        {"token": "ä"},
        {"timeout": 0},
        {"retries": -1},
        {"most_rows": 0},
    ],
)
def test_clients_that_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(tc.InputError):
        tc.Client(**{"url": "http://x", **arguments})


def test_the_asynchronous_twin_has_the_same_methods(url: str) -> None:
    def methods(of: type) -> set[str]:
        return {name for name in vars(of) if not name.startswith("_")}

    assert methods(tc.Client) == methods(tc.AsyncClient)

    async def day() -> None:
        async with tc.AsyncClient(url, most_rows=3) as client:
            await client.create("twin")
            one = await client.forecast("twin", 0.5)
            many = await client.forecasts("twin", [0.1] * 7)
            await client.outcome("twin", one.id, 1)
            answers = await client.outcomes("twin", [each.id for each in many], [1] * 7)
            assert {answer.status for answer in answers} == {"learned"}
            for read in (client.overview, client.certificate, client.measures, client.alarm):
                assert (await read("twin"))["name"] == "twin"
            assert (await client.state("twin"))["name"] == "twin"
            assert await client.streams()
            assert await client.give_up("twin", older_than=1e6) == 0
            with pytest.raises(tc.NotFoundError):
                await client.outcome("twin", "x", 1)
            await client.delete("twin", confirm="twin")

    asyncio.run(day())


def whole(line: socket.socket) -> bytes:
    """A request or an answer, up to the end of its body."""
    found = b""
    while more := line.recv(1 << 16):
        found += more
        head, end, body = found.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if end and len(body) >= (int(length[1]) if length else 0):
            break
    return found


@contextmanager
def unreliable(url: str, lose: Callable[[bytes], bool]) -> Iterator[str]:
    """A way to the service that passes requests on and loses the answers to some of them."""
    there = urlsplit(url)

    def carry(near: socket.socket) -> None:
        with near, socket.create_connection((there.hostname, there.port)) as far:
            while request := whole(near):
                far.sendall(request)
                answer = whole(far)
                if lose(request):
                    return
                near.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    near, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=carry, args=(near,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have waited; other threads wait as ever."""
    waits: list[float] = []
    here, sleep = threading.get_ident(), time.sleep

    def wait(seconds: float) -> None:
        (waits.append if threading.get_ident() == here else sleep)(seconds)

    monkeypatch.setattr("time.sleep", wait)
    return waits


def test_lost_answers_are_asked_for_again_and_count_once(
    url: str, client: tc.Client, name: str, at_once: list[float]
) -> None:
    seen: list[bytes] = []

    def every_other(request: bytes) -> bool:
        seen.append(request)
        return len(seen) % 2 == 1

    with unreliable(url, every_other) as way, tc.Client(way) as far:
        said = far.forecast(name, 0.7)
        assert said.again is True  # the first try has happened
        assert far.outcome(name, said.id, 1).status == "duplicate"
        many = far.forecasts(name, [0.1, 0.2])
        assert far.outcomes(name, [each.id for each in many], [1, 0])[0].known
    assert len(seen) == 8
    info = client.overview(name)
    assert (info["rounds"], info["unresolved"]) == (3, 0)


def test_what_is_not_safe_is_not_sent_again(
    url: str, client: tc.Client, name: str, at_once: list[float]
) -> None:
    seen: list[bytes] = []

    def first(request: bytes) -> bool:
        seen.append(request)
        return len(seen) == 1

    client.forecast(name, 0.5)
    with (
        unreliable(url, first) as way,
        tc.Client(way) as far,
        pytest.raises(tc.UnavailableError, match="it may have been done"),
    ):
        far.give_up(name, older_than=0.0)
    assert len(seen) == 1
    assert at_once == []


def answering(*answers: httpx.Response | Exception) -> tuple[tc.Client, list[httpx.Request]]:
    """A client whose requests get these answers, one after the other."""
    asked: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    client = tc.Client("http://service", "tc_secret")
    client._http._transport = httpx.MockTransport(answer)
    client._http._mounts = {}
    return client, asked


GOOD = httpx.Response(200, json={"given_up": 3})


def test_the_service_may_ask_for_patience(at_once: list[float]) -> None:
    busy = httpx.Response(429, headers={"retry-after": "7"})
    client, asked = answering(busy, httpx.ConnectError("no"), GOOD)
    assert client.give_up("a", older_than=1.0) == 3  # neither of the two can have done it
    assert len(asked) == 3
    assert 7 <= at_once[0] <= 7 + tries.FIRST
    assert 0 <= at_once[1] <= 2 * tries.FIRST
    assert asked[0].headers["authorization"] == "Bearer tc_secret"


def test_waits_double_and_end(at_once: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    client, asked = answering(*[httpx.ReadTimeout("late")] * 5)
    with pytest.raises(tc.UnavailableError, match="gave no answer: late"):
        client.streams()
    assert (len(asked), at_once) == (5, [0.1, 0.2, 0.4, 0.8])


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(401, json={"detail": "no token"}), tc.AccessError),
        (httpx.Response(403), tc.AccessError),
        (httpx.Response(413), tc.TooLargeError),
        (httpx.Response(500, text="<html>"), tc.ServiceError),
        (httpx.Response(302, headers={"location": "http://evil"}), tc.ServiceError),
        (httpx.Response(422, json=[1]), tc.ServiceError),
        (httpx.Response(503, headers={"retry-after": "3600"}), tc.UnavailableError),
    ],
)
def test_other_answers_are_raised_at_once(
    answer: httpx.Response, error: type[Exception], at_once: list[float]
) -> None:
    client, asked = answering(answer)
    with pytest.raises(error) as caught:
        client.streams()
    assert type(caught.value) is error
    assert caught.value.status == answer.status_code  # type: ignore[attr-defined]
    assert len(asked) == 1


def test_a_token_goes_to_the_service_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:1")
    with tc.Client("http://127.0.0.1:1", "tc_secret", retries=0) as client:
        assert client._http.trust_env is False
        with pytest.raises(
            tc.UnavailableError, match="at http://127.0.0.1:1 cannot be reached"
        ) as caught:
            client.streams()
    assert caught.value.status == 0
    assert "tc_secret" not in repr(caught.value)


def test_ids_are_new_each_time() -> None:
    assert len({calls.new_id() for _ in range(1_000)}) == 1_000
