"""The dashboard for Grafana asks for metrics that there are."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

from served import Served, send

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana.json"


def test_grafana_asks_for_what_the_service_exports(tmp_path: Path) -> None:
    with Served(tmp_path) as service:
        with service.client() as client:
            client.create("a")
            send(client, "a", [0.3] * 30, [0, 1, 0] * 10)
            client.overview("a")
        with urllib.request.urlopen(f"{service.url}/metrics") as answer:  # noqa: S310
            exported = set(re.findall(r"^(\w+)", answer.read().decode(), re.MULTILINE))
    panels = json.loads(GRAFANA.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    names = {name for expression in asked for name in re.findall(r"truecast_\w+", expression)}
    assert len(names) >= 10
    assert names <= exported, names - exported
    places = [tuple(panel["gridPos"].values())[:2] for panel in panels]
    assert len(set(places)) == len(panels)
