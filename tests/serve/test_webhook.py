"""Alarms are delivered at least once, signed, and beside the writer."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import truecast as tc
from truecast.client.webhooks import SIGNATURE, signature
from truecast.serve.http import webhook
from truecast.testing import serving

SECRET = b"sixteen or more characters"


class Receiver:
    """Hears alarms; answers with these statuses first, then 200."""

    def __init__(self, *statuses: int) -> None:
        self.heard: list[dict[str, Any]] = []
        self.tries = 0
        receiver, left = self, list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.tries += 1
                status = left.pop(0) if left else 200
                if status == 200:
                    said = tc.verify_webhook(body, self.headers[SIGNATURE], SECRET)
                    receiver.heard.append(said)
                self.send_response(status)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alarms"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count: int) -> list[dict[str, Any]]:
        for _ in range(1_000):
            if len(self.heard) >= count:
                break
            time.sleep(0.01)
        return self.heard


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(500, 302)
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "FIRST", 0.01)


def cause_alarm(url: str, seed: int) -> None:
    """Send forecasts of a model that is far too sure, in group x; the answers trust it so far."""
    rng = random.Random(seed)
    with tc.Client(url) as client:
        client.create("judge", alarm={"alpha": 0.01})
        said = client.forecasts("judge", [0.9] * 200, groups=["x"] * 200)
        client.outcomes("judge", [each.id for each in said], [rng.random() < 0.3 for _ in said])


@pytest.mark.slow("waits for news, which come twice a second")
def test_an_alarm_is_delivered_signed_and_remembered(receiver: Receiver, tmp_path: Path) -> None:
    memory = tmp_path / "delivered.json"
    hook = (receiver.url, SECRET, memory)
    with serving(tmp_path, webhook=hook, public="https://truecast.example/") as url:
        cause_alarm(url, 1)
        heard = receiver.wait(4)
    assert receiver.tries == 6  # a failure, a redirect that is not followed, four deliveries
    found = {(said["which"], said["group"]): said for said in heard}
    assert set(found) == {(which, g) for which in ("model", "recalibrated") for g in (None, "x")}
    assert "group 'x'" in found["model", "x"]["finding"]
    said = found["model", None]
    assert (said["type"], said["stream"], said["number"]) == ("alarm", "judge", 1)
    assert said["finding"].startswith("before recalibration: forecasts are too")
    assert said["class"] is None
    assert re.search(r" since \d{4}-\d\d-\d\d \d\d:\d\d UTC", said["finding"])
    assert said["evidence"] >= 100
    assert said["link"] == "https://truecast.example/streams/judge/page"
    assert len(json.loads(memory.read_text())) == 4
    with serving(tmp_path, webhook=hook) as url, tc.Client(url) as client:
        client.forecast("judge", 0.5)  # news of the stream, but no new alarm
        time.sleep(0.3)
    assert len(receiver.heard) == 4


@pytest.mark.slow("starts two services, one after the other")
def test_an_alarm_that_came_while_nobody_told_is_told_later(
    receiver: Receiver, tmp_path: Path
) -> None:
    with serving(tmp_path) as url:
        cause_alarm(url, 2)
    with serving(tmp_path, webhook=(receiver.url, SECRET, tmp_path / "delivered.json")):
        heard = receiver.wait(4)
    assert len({said["id"] for said in heard}) == 4


def test_the_service_answers_while_nobody_listens(tmp_path: Path) -> None:
    hook = ("http://127.0.0.1:9/", SECRET, tmp_path / "delivered.json")
    with serving(webhook=hook) as url, tc.Client(url) as client:
        cause_alarm(url, 3)
        assert client.forecast("judge", 0.5).p < 0.9
    assert not (tmp_path / "delivered.json").exists()


def test_a_memory_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "delivered.json"
    path.write_text("{}")
    hook = ("http://127.0.0.1:9/", SECRET, path)
    with pytest.raises(tc.FileError, match="not a file of delivered alarms"), serving(webhook=hook):
        pass
    assert path.read_text() == "{}"


def test_only_the_secret_signs() -> None:
    body, now = b'{"stream": "judge"}', int(time.time())
    good = signature(body, SECRET, now)
    assert tc.verify_webhook(body, good, SECRET.decode() + "\n") == {"stream": "judge"}
    for changed, header, secret in (
        (body + b" ", good, SECRET),
        (body, good, b"another one of 26 letters."),
        (body, good.replace(f"t={now}", f"t={now + 1}"), SECRET),
        (body, signature(body, SECRET, now - 400), SECRET),
        (body, signature(body, SECRET, now + 400), SECRET),
        (body, "nonsense", SECRET),
    ):
        with pytest.raises(tc.AccessError):
            tc.verify_webhook(changed, header, secret)
