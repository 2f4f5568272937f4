"""A service in a process of its own, for tests: started, filled, killed and started again."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import truecast as tc

PATIENCE = 60.0  # seconds until a service must be there


class Served:
    """`truecast serve` on a folder and a port of its own; it ends with its `with`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, on the port that it had before; wait until it says where it is."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "truecast", "serve", "--data", str(self.folder)),
                *("--port", str(self.port), *self.options),
            ],
            stderr=subprocess.PIPE,
        )
        said = self._until(re.compile(rb"serves http://127\.0\.0\.1:(\d+)"))
        self.port = int(said[1])

    def _until(self, what: re.Pattern[bytes]) -> re.Match[bytes]:
        assert self.process.stderr is not None
        said, end = b"", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([self.process.stderr], [], [], 0.1)[0]:
                part = os.read(self.process.stderr.fileno(), 65536)
                said += part
                if found := what.search(said):
                    return found
                assert part, f"the service ended: {said.decode()}"
        raise AssertionError(f"the service did not start: {said.decode()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.returncode is None:
            self.kill()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = None) -> tc.Client:
        return tc.Client(self.url, token)

    def kill(self, how: int = signal.SIGKILL) -> int:
        """End it; return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code


def send(client: tc.Client, stream: str, scores: list[float], outcomes: list[int]) -> None:
    """Send scores, and then all their outcomes."""
    answers = client.forecasts(stream, scores)
    client.outcomes(stream, [answer.id for answer in answers], outcomes)
