"""A service in a process of its own, for tests: started, filled, killed and started again."""

from __future__ import annotations

import re
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
        self.folder.mkdir(parents=True, exist_ok=True)
        said = self.folder / "serve.log"  # a file: a pipe that nobody reads would stop the service
        with said.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "truecast", "serve", "--data", str(self.folder)),
                    *("--port", str(self.port), *self.options),
                ],
                stderr=log,
            )
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"serves http://127\.0\.0\.1:(\d+)", said.read_text())):
            assert self.process.poll() is None, f"the service ended: {said.read_text()}"
            assert time.monotonic() < end, f"the service did not start: {said.read_text()}"
            time.sleep(0.02)
        self.port = int(found[1])

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
        return self.process.wait(PATIENCE)


def send(client: tc.Client, stream: str, scores: list[float], outcomes: list[int]) -> None:
    """Send scores, and then all their outcomes."""
    answers = client.forecasts(stream, scores)
    client.outcomes(stream, [answer.id for answer in answers], outcomes)
