"""Streams of events for tests, and their answers: a plain replay in the documented order."""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import truecast as tc

START = datetime(2026, 1, 1, tzinfo=UTC)
CHANGED = 1_767_225_600  # seconds: when the first file was changed
Row = dict[str, Any]


def story(seed: int, *, batches: int, forecasts: int, keys: int) -> list[list[Row]]:
    """Micro-batches of events: late, early, unordered, repeated, contradicted, unresolved."""
    rng = random.Random(seed)  # noqa: S311
    told: list[list[Row]] = [[] for _ in range(batches)]
    for number in range(batches * forecasts):
        batch, second = number // forecasts, rng.randrange(3600)
        time, name, key = (
            START + timedelta(hours=batch, seconds=second),
            f"e{number}",
            f"key {rng.randrange(keys)}",
        )
        score = rng.random()
        groups = rng.choice([None, "a", "b"])
        forecast = {
            "id": name,
            "key": key,
            "time": time,
            "score": score,
            "outcome": None,
            "group": groups,
        }
        y = int(rng.random() < score**2)
        outcome = {"id": name, "key": key, "time": time, "score": None, "outcome": y, "group": None}
        outcome["time"] += timedelta(seconds=rng.choice([0, 60, 5000]))
        arrives = min(batch + (rng.random() < 0.1), batches - 1)
        comes = min(batch + rng.choice([0, 0, 1, 3]), batches - 1)
        luck = rng.random()
        if luck < 0.1:  # one row is both
            told[arrives].append(forecast | {"outcome": y})
        elif luck < 0.8:
            told[arrives].append(forecast)
            told[comes].append(outcome)
        else:
            told[arrives].append(forecast)
        if rng.random() < 0.1:
            told[rng.randrange(arrives, batches)].append(forecast)
        if rng.random() < 0.1:
            told[comes].append(outcome | {"outcome": rng.choice([y, 1 - y])})
    for batch_ in told:
        rng.shuffle(batch_)
    return told


@dataclass
class Plain:
    """One key: what the page says, and nothing else."""

    r: tc.Recalibrator
    give_up: timedelta
    remember: timedelta
    known: dict[str, Row] = field(default_factory=dict)  # id: time, ticket, outcome
    counts: Counter[str] = field(default_factory=Counter)

    def expire(self, now: datetime) -> None:
        for name, it in sorted(
            self.known.items(), key=lambda item: (item[1]["time"], item[1]["ticket"] or 0)
        ):
            settled = it["ticket"] is not None and it["outcome"] is not None
            if it["time"] + (self.remember if settled else self.give_up) > now:
                continue
            del self.known[name]
            if it["ticket"] is None:
                self.counts["unmatched"] += 1
            elif not settled:
                self.counts["given_up"] += 1
                self.r.give_up(it["ticket"])

    def take(self, row: Row, now: datetime) -> list[tuple[Any, ...]]:
        it = self.known.get(row["id"])
        forecast = row["score"] is not None
        if it is None and row["time"] + (self.remember if forecast else self.give_up) <= now:
            self.counts["late"] += 1
            return [answer(row, None)] if forecast else []
        it = self.known.setdefault(
            row["id"], {"time": row["time"], "ticket": None, "outcome": None}
        )
        answers = []
        if forecast and it["ticket"] is not None:
            self.counts["duplicates"] += 1
        elif forecast:
            it["ticket"] = self.r.issue(
                row["score"], group=None if row["group"] is None else (row["group"],)
            )
            it["time"] = row["time"]
            answers = [answer(row, it["ticket"].p)]
            self.counts["forecasts"] += 1
            if it["outcome"] is not None:
                self.r.resolve(it["ticket"], it["outcome"])
                self.counts["outcomes"] += 1
        if row["outcome"] is not None:
            self.hear(it, row["outcome"])
        return answers

    def hear(self, it: Row, outcome: int) -> None:
        if it["outcome"] is not None:
            self.counts["duplicates" if it["outcome"] == outcome else "contradictions"] += 1
            return
        it["outcome"] = outcome
        if it["ticket"] is not None:
            self.r.resolve(it["ticket"], outcome)
            self.counts["outcomes"] += 1


def answer(row: Row, p: float | None) -> tuple[Any, ...]:
    return row["id"], row["key"], row["time"], row["score"], p


def in_order(row: Row) -> tuple[Any, ...]:
    """By time; outcomes before forecasts; id, outcome (none last), score, group (none last)."""
    forecast = row["score"] is not None
    y, group = row["outcome"], row["group"]
    return (
        *(row["time"], forecast, row["id"]),
        *(y is None, y or 0, row["score"] or 0.0, group is None, json.dumps([group])),
    )


def replay(
    told: list[list[Row]],
    *,
    late: timedelta,
    give_up: timedelta,
    remember: timedelta,
    **options: Any,
) -> tuple[list[tuple[Any, ...]], dict[str, Plain]]:
    """What comes out of micro-batches, and the keys."""
    keys: defaultdict[str, Plain] = defaultdict(
        lambda: Plain(tc.Recalibrator(**options), give_up, remember)
    )
    out: list[tuple[Any, ...]] = []
    now = datetime(1970, 1, 1, tzinfo=UTC)
    for batch in told:
        for key in {row["key"] for row in batch}:
            keys[key].expire(now)
        for row in sorted(batch, key=in_order):
            out += keys[row["key"]].take(row, now)
        now = max([now, *(row["time"] - late for row in batch)])
    return out, dict(keys)


def write(told: list[list[Row]], folder: Path) -> None:
    """One Parquet file a micro-batch; Spark reads them by the time of their last change."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"time": pa.timestamp("us", tz="UTC"), "score": pa.float64(), "outcome": pa.int32()}
    names = "id", "key", "time", "score", "outcome", "group"
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
    folder.mkdir(parents=True, exist_ok=True)
    for batch, rows in enumerate(told):
        file = folder / f"{batch:05}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows, schema), file)
        os.utime(file, (CHANGED + batch, CHANGED + batch))
