"""The dashboard for Grafana asks for metrics that there are."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path

import pytest

from served import Served, send

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana.json"


def exported(url: str) -> set[str]:
    with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310
        return set(re.findall(r"^(\w+)", answer.read().decode(), re.MULTILINE))


def asked() -> set[str]:
    panels = json.loads(GRAFANA.read_text())["panels"]
    wanted = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    return {name for each in wanted for name in re.findall(r"truecast_\w+", each)}


@pytest.mark.slow("starts a service")
def test_grafana_asks_for_what_the_service_exports(tmp_path: Path) -> None:
    assert len(asked()) >= 10
    with Served(tmp_path) as service:
        with service.client() as client:
            client.create("a")
            send(client, "a", [0.3] * 30, [0, 1, 0] * 10)
        end = time.monotonic() + 30.0  # figures of a stream are refreshed now and then
        while (missing := asked() - exported(service.url)) and time.monotonic() < end:
            time.sleep(0.1)
    assert not missing


def test_no_two_panels_lie_on_each_other() -> None:
    cells = [
        (x, y)
        for panel in json.loads(GRAFANA.read_text())["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
