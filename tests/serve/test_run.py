"""What runs beside the requests: HTTPS, a journal that is shortened, a failure that is said."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

import truecast as tc
from truecast.serve.http import run
from truecast.serve.service import Service
from truecast.testing import serving


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl, to make a certificate")
def test_https(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    subprocess.run(
        [  # noqa: S607
         "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    with serving(certificate=(certificate, key)) as url:
        assert url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{url}/healthz", verify=trusting).json() == {"live": True}
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http") + "/healthz")


def test_the_journal_is_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHORTEN", 0.05)
    exports = tmp_path / "exports"
    with (
        serving(keep=run.Keep(export_to=exports, max_age=0.0)) as url,
        tc.Client(url) as client,
    ):
        client.create("judge")
        said = client.forecast("judge", 0.5)
        client.outcome("judge", said.id, 1)
        end = time.monotonic() + 30
        while not list(exports.glob("*.parquet")):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert client.overview("judge")["rounds"] == 1


def test_a_failure_of_ours_is_said_without_its_details(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: Service, name: str) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Service, "overview", fail)
    with serving() as url:
        answer = httpx.get(f"{url}/streams/a")
    assert (answer.status_code, answer.json()["title"]) == (500, "failed")
    assert "secret detail" not in answer.text
    (record,) = (record for record in caplog.records if record.message == "failed")
    assert record.exc_info
    assert "secret detail" in str(record.exc_info[1])
