"""Other threads beside a batch."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import truecast as tc


def wait_until_refused(worker: threading.Thread, call: Any) -> None:
    """Call until the batch refuses company."""
    while worker.is_alive():
        try:
            call()
        except tc.OrderError:
            return
    pytest.fail("nothing was refused while the batch ran")
