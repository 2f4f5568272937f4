"""`truecast serve` as a process: it starts, takes over, stops, and refuses what it must."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

import truecast as tc
from served import Served
from truecast.cli import main


def refused(*words: str) -> Result:
    return CliRunner().invoke(main, ["serve", *words])


@pytest.mark.slow("starts processes")
@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_stops_in_order_and_continues(tmp_path: Path, how: int, code: int) -> None:
    with Served(tmp_path) as served:
        with served.client() as client:
            client.create("judge")
            said = client.forecast("judge", 0.7)
        with httpx.stream("GET", f"{served.url}/events") as events:  # a listener is sent home
            next(events.iter_lines())
            assert served.kill(how) == code
        served.start()
        with served.client() as client:
            assert client.forecast("judge", 0.7, id=said.id).p == said.p


@pytest.mark.slow("starts processes")
def test_one_process_writes_and_a_standby_takes_over(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        with served.client() as client:
            client.create("judge")
        words = [sys.executable, "-m", "truecast", "serve", "--data", str(tmp_path), "--port"]
        second = subprocess.run(
            [*words, "0"], capture_output=True, text=True, timeout=60, check=False
        )
        assert second.returncode == 2
        assert "Traceback" not in second.stderr
        port = _free_port()
        standby = subprocess.Popen([*words, str(port), "--standby", "--log", "json"], stderr=-1)
        try:
            url = f"http://127.0.0.1:{port}"
            _until(lambda: httpx.get(f"{url}/healthz").is_success)
            ready = httpx.get(f"{url}/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            for path in ("/streams", "/events", "/metrics"):
                waits = httpx.get(f"{url}{path}")
                assert (waits.status_code, waits.headers["retry-after"]) == (503, "1")
            served.kill()
            _until(lambda: httpx.get(f"{url}/readyz").is_success)
            with tc.Client(url) as client:
                assert [info["name"] for info in client.streams()] == ["judge"]
        finally:
            standby.send_signal(signal.SIGTERM)
            _, said = standby.communicate(timeout=60)
        assert standby.returncode == 0
        lines = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
        messages = [line["message"] for line in lines]
        assert messages[0].startswith("standby")
        assert messages[-2:] == ["stopping", "stopped"]


@pytest.mark.slow("starts processes")
def test_a_standby_that_waits_can_be_stopped(tmp_path: Path) -> None:
    with Served(tmp_path):
        port = _free_port()
        words = ["serve", "--data", str(tmp_path), "--port", str(port), "--standby"]
        standby = subprocess.Popen([sys.executable, "-m", "truecast", *words], stderr=-3)
        _until(lambda: httpx.get(f"http://127.0.0.1:{port}/healthz").is_success)
        standby.send_signal(signal.SIGTERM)
        assert standby.wait(30) == 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _until(true: object) -> None:
    assert callable(true)
    end = time.monotonic() + 60
    while True:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end
        time.sleep(0.05)


def test_tokens_are_shown_once(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    words = ["token", "alice", "--scope", "forecast", "--scope", "read", "--token-file", str(file)]
    first = refused(*words)
    assert first.exit_code == 0
    token = first.stdout.strip()
    assert token.startswith("tc_")
    assert token not in first.stderr
    assert file.read_text().startswith("alice read,forecast sha256:")
    again = refused(*words)
    assert again.exit_code == 2
    assert "must be new" in again.stderr
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--data", "a", "--database", "postgresql://x"], "choose one"),
        (["--database", "mysql://x"], "must be sqlite"),
        (["--host", "0.0.0.0"], "--host must be this machine alone"),
        (["--tls-cert", "x"], "go together"),
        (["--webhook", "http://x"], "--webhook-secret"),
        (["--webhook", "ftp://x"], "must begin with http"),
        (["--webhook-secret", "x"], "go with --webhook"),
        (["--webhook", "http://x", "--webhook-secret", "short"], "at least 16"),
        (["--webhook", "http://x", "--webhook-secret", "good", "--database", "x"], "memory"),
        (["--token-file", "missing"], "cannot be read"),
        (["--token-file", "short"], "line 1"),
        (["--port", "70000"], "70000"),
        (["--max-rows", "0"], "0"),
        (["token", "bob"], "Choose from: read, forecast, outcome, admin\n"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("short")
    Path("good").write_text("sixteen or more characters")
    done = refused(*words)
    assert done.exit_code == 2, done.output
    assert says in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = refused("--data", str(tmp_path), "--port", str(port))
    assert done.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in done.stderr


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused("--data", str(data), "--port", str(taken.getsockname()[1]))
    assert data.stat().st_mode & 0o777 == 0o700
    assert os.listdir(data) == []
