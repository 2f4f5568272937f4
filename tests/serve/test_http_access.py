"""Who may do what: tokens, scopes, rates, and where the service listens."""

from __future__ import annotations

import hashlib
import io
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import truecast as tc
from truecast.serve.http import logs, run
from truecast.serve.http.app import table
from truecast.serve.http.auth import SCOPES, Tokens, add_token
from truecast.serve.http.limits import Buckets, Limits
from truecast.testing import serving

ROUTES = [route for route in table().routes if route.scope is not None]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens") / "tokens"


@pytest.fixture(scope="module")
def tokens(file: Path) -> dict[str, str]:
    each = {scope: add_token(file, scope, [scope]) for scope in SCOPES}
    return each | {"all": add_token(file, "all", SCOPES)}


@pytest.fixture(scope="module")
def url(file: Path, tokens: dict[str, str]) -> Iterator[str]:
    with serving(tokens=file, limits=Limits(failures=50.0)) as url:
        yield url


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def test_the_file_has_hashes_only(file: Path, tokens: dict[str, str]) -> None:
    text = file.read_text()
    for name, token in tokens.items():
        assert token not in text
        assert f"{name} " in text
        assert hashlib.sha256(token.encode()).hexdigest() in text
        assert token.startswith("tc_")
        assert len(token) > 40
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.label)
def test_each_route_needs_its_scope(
    http: httpx.Client, tokens: dict[str, str], route: tc.serve.http.routes.Route
) -> None:
    path = route.path.replace("{name}", "nobody")
    missing = http.request(route.method, path)
    assert (missing.status_code, missing.json()["title"]) == (401, "token needed")
    assert missing.headers["www-authenticate"].startswith("Bearer")
    others = [scope for scope in SCOPES if scope != route.scope]
    for scope in others:
        refused = http.request(route.method, path, headers=bearer(tokens[scope]))
        assert refused.status_code == 403
        assert repr(route.scope) in refused.json()["detail"]
    if route.path != "/events":
        allowed = http.request(route.method, path, headers=bearer(tokens[str(route.scope)]))
        assert allowed.status_code not in (401, 403)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic dTpw", "Bearer wrong", "Bearer " + "x" * 500, "\xe4"]
)
def test_wrong_tokens(http: httpx.Client, header: str) -> None:
    answer = http.get("/streams", headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401


def test_what_anyone_may_read(http: httpx.Client, tokens: dict[str, str]) -> None:
    for route in table().routes:
        if route.scope is None:
            path = route.path.replace("{name}", "nobody")
            assert http.get(path).status_code == 200, path
    assert http.get("/healthz", headers=bearer("wrong")).status_code == 401


def test_with_tokens_any_name_will_do(http: httpx.Client, tokens: dict[str, str]) -> None:
    headers = bearer(tokens["read"]) | {"host": "truecast.example"}
    assert http.get("/streams", headers=headers).is_success


def test_guessing_is_slowed_down(file: Path, tokens: dict[str, str]) -> None:
    with serving(tokens=file, limits=Limits(failures=1.0)) as url, httpx.Client() as client:
        guesses = [client.get(f"{url}/streams", headers=bearer(f"{k}")) for k in range(6)]
        known = client.get(f"{url}/streams", headers=bearer(tokens["read"]))
    assert [guess.status_code for guess in guesses] == [401] * 4 + [429] * 2
    assert guesses[-1].headers["retry-after"] == "1"
    assert known.is_success  # who has a token need not wait


def test_a_rate_is_kept_for_each_token(file: Path, tokens: dict[str, str]) -> None:
    with serving(tokens=file, limits=Limits(rate=2.0)) as url, httpx.Client() as client:
        mine = [client.get(f"{url}/streams", headers=bearer(tokens["read"])) for _ in range(3)]
        other = client.get(f"{url}/streams", headers=bearer(tokens["all"]))
    assert [answer.status_code for answer in mine] == [200, 200, 429]
    assert "at most 2 a second" in mine[-1].json()["detail"]
    assert other.is_success


def test_buckets_forget_who_came_long_ago() -> None:
    buckets = Buckets(rate=1.0)
    assert [buckets.take("a", now=0.0), buckets.take("a", now=0.0)] == [0.0, 1.0]
    for number in range(20_000):
        buckets.take(str(number), now=0.0)
    assert len(buckets._levels) <= 10_000
    assert buckets.take("a", now=0.0) == 0.0


def test_tokens_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RELOAD", 0.02)
    path = tmp_path / "tokens"
    first = add_token(path, "first", ["read"])
    patient = Limits(failures=1e6)
    with serving(tokens=path, limits=patient) as url, httpx.Client(base_url=url) as client:

        def status(token: str, wanted: int) -> int:
            for _ in range(200):
                found = client.get("/streams", headers=bearer(token)).status_code
                if found == wanted:
                    break
                time.sleep(0.02)
            return found

        second = add_token(path, "second", ["read"])
        assert status(second, 200) == 200
        path.write_text("nonsense\n")  # a broken file revokes nobody, and lets nobody in
        time.sleep(0.1)
        assert status(first, 200) == 200
        path.write_text("")
        assert status(first, 401) == 401


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a read", "line 1: must be"),
        ("a read sha256:12", "line 1: must be"),
        ("a all sha256:" + "0" * 64, "no such scope: all"),
        (f"a read sha256:{'0' * 64}\n# note\na read sha256:{'1' * 64}", "line 3: there are two"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(tc.FileError, match=says):
        Tokens.read(path)


def test_tokens_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"a read sha256:{'0' * 64}")  # without the end of its line
    add_token(path, "b", ["read", "admin"])
    assert len(Tokens.read(path)) == 2
    for name, scopes in (("a", ["read"]), ("a b", ["read"]), ("c", []), ("c", ["write"])):
        with pytest.raises(tc.InputError):
            add_token(path, name, scopes)
    assert len(Tokens.read(path)) == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "truecast.example"])
def test_without_tokens_only_this_machine_is_answered(host: str) -> None:
    with pytest.raises(tc.InputError, match="--token-file"), serving(host=host):
        pass


def test_an_empty_file_is_no_protection(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# nobody\n")
    with (
        pytest.raises(tc.InputError, match="must have a token"),
        serving(host="0.0.0.0", tokens=tmp_path / "tokens"),
    ):
        pass


@pytest.mark.parametrize("kind", ["text", "json"])
def test_logs_have_no_secret_and_cannot_be_forged(
    file: Path, tokens: dict[str, str], kind: str
) -> None:
    written = io.StringIO()
    logger = logging.getLogger("truecast.serve")
    before = logger.handlers, logger.level, logger.propagate
    logs.set_up(kind, "info", written)
    try:
        with serving(tokens=file, log_requests=True) as url, httpx.Client(base_url=url) as client:
            client.post("/streams", json={"name": "a"}, headers=bearer(tokens["all"]))
            client.get("/streams", headers=bearer("tc_guess-of-a-token"))
            client.get("/x%0Aforged line%22", headers=bearer(tokens["all"]))
            private = {"score": 0.123456, "id": "name-of-a-patient"}
            client.post("/streams/a/forecasts", json=private, headers=bearer(tokens["all"]))
    finally:
        logger.handlers, logger.level, logger.propagate = before
    text = written.getvalue()
    assert tokens["all"] not in text
    assert "tc_guess" not in text
    assert "0.123456" not in text
    assert "name-of-a-patient" not in text
    assert "\nforged" not in text
    assert "created" in text
    assert len(text.splitlines()) == 8  # started, created, four requests, stopping, stopped
