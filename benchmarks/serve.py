"""The service under load: pairs and rows a second, how long they wait, memory over a day.

    python benchmarks/pages.py serve  # into the docs; four minutes
    python benchmarks/serve.py        # to look at
    python benchmarks/serve.py --seconds 2 --quick   # shorter, SQLite only

Needs the package with its serve extra; PostgreSQL's server if that is measured, too. The client shares the machine's
cores with the service.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path

import uvloop
from load import load, post
from timing import header

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from postgres import Postgres, programs

CONNECTIONS = 16
BATCH = 1_000
TARGETS = {"SQLite": (4_000, 100_000), "PostgreSQL": (2_500, 40_000)}
CONSTANT = """
import asyncio, sys, uvicorn, uvloop
from truecast.serve.http.exchange import read_body
from truecast.serve.http.protocol import Protocol
BODY = b'{"id":"01a1ea9144f9c95b47418f52a23cb666","p":0.8299774115221962,"again":false}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]
async def app(scope, receive, send):
    await read_body(receive, dict(scope["headers"]), 2**23)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
config = uvicorn.Config(app, port=int(sys.argv[1]), http=Protocol, lifespan="off", access_log=False, log_level="error")
uvloop.run(uvicorn.Server(config).serve())
"""
LOOKING = """
import sys, time, urllib.request
while True:  # as the page of a stream does, which hears of changes twice a second
    urllib.request.urlopen(sys.argv[1]).read()
    print(flush=True)
    time.sleep(0.5)
"""
CLASSES = 30  # of the stream that is looked at
ONE_EACH = """
import sys, truecast.serve.writer as writer
writer.MOST_ROWS = 1  # a transaction for each request
from truecast.cli import main
main(sys.argv[1:])
"""


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def running(
    *words: str, code: str | None = None, path: str = "/readyz"
) -> Iterator[tuple[int, int]]:
    """A server in a process; give its port and its process id."""
    port = free_port()
    serve = ["serve", "--port", str(port), *words]
    command = (
        ["-m", "truecast", *serve]
        if code is None
        else ["-c", code, *(serve if words else [str(port)])]
    )
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, *command], stdout=said, stderr=said)
        try:
            for _ in range(600):
                try:
                    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method="GET")
                    urllib.request.urlopen(request, timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
                    if process.poll() is not None:
                        said.seek(0)
                        sys.exit(said.read().decode())
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


def create(port: int, name: str, classes: int | None = None) -> None:
    told(port, "/streams", {"name": name, "classes": classes})


def told(port: int, path: str, body: object) -> dict[str, list[dict[str, object]]]:
    """What the service answers to one request."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@contextmanager
def looked_at(port: int) -> Iterator[None]:
    """Somebody has the page of a stream with many classes open, to which outcomes come."""
    rng = random.Random(0)
    name = "/streams/classes"
    create(port, "classes", CLASSES)
    scores = [[rng.random() for _ in range(CLASSES)] for _ in range(1_000)]
    rows = [{"score": [each / sum(row) for each in row]} for row in scores]
    said = told(port, f"{name}/forecasts", {"forecasts": rows})["forecasts"]
    outcomes = [{"id": each["id"], "outcome": rng.randrange(CLASSES)} for each in said]
    told(port, f"{name}/outcomes", {"outcomes": outcomes})
    process = subprocess.Popen(
        [sys.executable, "-c", LOOKING, f"http://127.0.0.1:{port}{name}"], stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait(30)


def pairs(port: int, count: int, seed: int, streams: int) -> list[Iterator[bytes]]:
    """A forecast, then its outcome, again and again, for each connection."""
    host = f"127.0.0.1:{port}"
    rng = random.Random(seed)
    work = []
    for connection in range(CONNECTIONS):
        requests = []
        path = f"/streams/s{connection % streams}"
        for number in range(count // CONNECTIONS):
            name, score = f"{seed}-{connection}-{number}", rng.random()
            outcome = int(rng.random() < score * score)
            body = f'{{"score":{score:.6f},"id":"{name}"}}'
            requests.append(post(f"{path}/forecasts", body.encode(), host))
            body = f'{{"id":"{name}","outcome":{outcome}}}'
            requests.append(post(f"{path}/outcomes", body.encode(), host))
        work.append(iter(requests))
    return work


def batches(
    port: int, count: int, seed: int, streams: int, size: int = BATCH
) -> list[Iterator[bytes]]:
    """The same rows, many to a request."""
    host = f"127.0.0.1:{port}"
    rng = random.Random(seed)
    work = []
    for connection in range(CONNECTIONS):
        requests = []
        path = f"/streams/s{connection % streams}"
        for number in range(max(1, count // CONNECTIONS // size)):
            ids = [f"{seed}-{connection}-{number}-{k}" for k in range(size)]
            scores = [round(rng.random(), 6) for _ in ids]
            rows = [{"score": score, "id": name} for score, name in zip(scores, ids, strict=True)]
            said = [
                {"id": name, "outcome": int(rng.random() < score * score)}
                for score, name in zip(scores, ids, strict=True)
            ]
            requests.append(
                post(f"{path}/forecasts", json.dumps({"forecasts": rows}).encode(), host)
            )
            requests.append(post(f"{path}/outcomes", json.dumps({"outcomes": said}).encode(), host))
        work.append(iter(requests))
    return work


def sent(port: int, work: list[Iterator[bytes]], rate: float = 0.0) -> tuple[float, list[float]]:
    return uvloop.run(load("127.0.0.1", port, work, rate))


def at(latencies: list[float], share: float) -> str:
    return f"{1e3 * latencies[int(share * (len(latencies) - 1))]:.1f}"


def constant(seconds: float) -> tuple[float, float]:
    """As `best`, of the same server, which answers the same bytes to all."""
    with running(code=CONSTANT, path="/") as (port, pid):
        request = post(
            "/streams/s0/forecasts", b'{"score":0.830000,"id":"1-2-34567"}', f"127.0.0.1:{port}"
        )
        counts = (2_000, int(8_000 * seconds), int(8_000 * seconds))
        loads = [[repeat(request, n // CONNECTIONS) for _ in range(CONNECTIONS)] for n in counts]
        return best(port, pid, loads)


def processor(pid: int) -> float:
    """Seconds of the processors that a process took (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def best(port: int, pid: int, loads: list[list[Iterator[bytes]]]) -> tuple[float, float]:
    """The most requests a second of some loads, and the least microseconds of the service's processor time for one."""
    rates, costs = [], []
    for work in loads:
        before = processor(pid)
        took, found = sent(port, work)
        rates.append(len(found) / took)
        costs.append(1e6 * (processor(pid) - before) / len(found))
    return max(rates), min(costs)


class Measured:
    """What one database does."""

    def __init__(self, name: str, words: list[str], seconds: float, streams: int) -> None:
        self.name = name
        single, batch = TARGETS[name]
        with running(*words) as (port, pid):
            for number in range(streams):
                create(port, f"s{number}")
            sent(port, pairs(port, 1_600, 0, streams))
            loads = [pairs(port, int(single * seconds), seed, streams) for seed in (1, 2, 3)]
            rate, self.each = best(port, pid, loads)
            self.pairs = rate / 2
            half = [pairs(port, int(single * seconds / 2), seed, streams) for seed in (4, 8)]
            _, self.waits = sent(port, half[0], rate=single)  # a pair is two requests
            with looked_at(port):
                _, self.waits_meanwhile = sent(port, half[1], rate=single)
            loads = [batches(port, int(batch * seconds / 2), seed, streams) for seed in (5, 6, 7)]
            rate, each = best(port, pid, loads)
            self.rows, self.row = rate * BATCH, each / BATCH


def unbatched(words: list[str], seconds: float) -> float:
    """Pairs a second if each request has a transaction of its own."""
    with running(*words, code=ONE_EACH) as (port, _):
        create(port, "s0")
        took, found = sent(port, pairs(port, int(800 * seconds), 1, 1))
        return len(found) / 2 / took


def resident(pid: int) -> float:
    """MB that a process has in memory (Linux)."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def day(words: list[str], rounds: int, streams: int) -> list[tuple[int, float]]:
    """A day of traffic as fast as it goes; memory as it goes on."""
    found = []
    with running(*words) as (port, pid):
        for number in range(streams):
            create(port, f"s{number}")
        for part in range(12):
            sent(port, batches(port, rounds // 12, part, streams, size=100))
            found.append(((part + 1) * rounds // 12, resident(pid)))
    return found


@contextmanager
def databases(quick: bool) -> Iterator[dict[str, list[list[str]]]]:
    """The options of the command for each database that there is: one for each service."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found = {"SQLite": [["--data", f"{folder}/{name}"] for name in ("many", "one")]}
        if not quick and (where := programs()):
            server = Postgres(Path(stack.enter_context(tempfile.TemporaryDirectory())), where)
            server.start()
            stack.callback(server.stop)
            for name in ("many", "one"):
                server.run("createdb", "-h", server.folder, "-U", "truecast", name)
            found["PostgreSQL"] = [["--database", server.url(name)] for name in ("many", "one")]
        yield found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=float, default=4.0, help="about how long each load lasts")
    asked.add_argument("--quick", action="store_true", help="SQLite only, no day")
    asked.add_argument("--day", type=int, default=2_400_000, help="pairs of a day")
    options = asked.parse_args()
    header("The service under load", "serve.py", "uvicorn", "msgspec")
    print(f"\n{CONNECTIONS} connections on loopback; the client shares the cores. A pair is a forecast and its outcome, each\n"
          "request answered once it is on disk. Best of three loads; waits are those of requests sent at half the target,\n"
          f"once alone and once while the page of a stream with {CLASSES} classes is open.\n")  # fmt: skip
    bare, alike = constant(options.seconds)
    print(f"The same server answering a constant: {bare:,.0f} requests a second, so {bare / 2:,.0f} pairs; {alike:.0f} µs of\n"
          "processor time each.\n")  # fmt: skip
    print("## Load\n")
    print("| database | pairs a second | target, pairs | of a constant | ms at half the target: p50 | p99 | p99.9 | longest "
          "| p99 while a page is open | rows a second in batches of 1,000 | target, rows | with a commit for each request: pairs a second | times as many "
          "| µs of processor time: a request | a row of a batch |")  # fmt: skip
    print("|" + "---|" * 15)
    with databases(options.quick) as found, tempfile.TemporaryDirectory() as folder:
        for name, (words, one_each) in found.items():
            it = Measured(name, words, options.seconds, 4)
            alone = unbatched(one_each, options.seconds / 2)
            single, batch = TARGETS[name]
            print(f"| {name} | **{it.pairs:,.0f}** | {single:,} | {2 * it.pairs / bare:.2f} | {at(it.waits, 0.5)} "
                  f"| **{at(it.waits, 0.99)}** | {at(it.waits, 0.999)} | {at(it.waits, 1.0)} "
                  f"| {at(it.waits_meanwhile, 0.99)} | **{it.rows:,.0f}** | {batch:,} | {alone:,.0f} | {it.pairs / alone:.1f} "
                  f"| {it.each:.0f} | {it.row:.1f} |", flush=True)  # fmt: skip
        for name in TARGETS.keys() - found.keys():
            print(
                f"\n{name} is left out: "
                + ("--quick." if options.quick else "its programs are not found.")
            )
        if not options.quick:
            memory = day(["--data", f"{folder}/day"], options.day, 20)
            print(f"\n## A day\n\n{options.day:,} pairs, {options.day / 86_400:.0f} a second for a day, as fast as they go,\n"
                  "in requests of 100 rows over 20 streams.\n")  # fmt: skip
            print("| pairs | MB in memory |\n|---|---|")
            for rounds, size in memory:
                print(f"| {rounds:,} | {size:.0f} |")
            print(
                "\nIt grows until SQLite's cache of 64 MB and the ids that are kept at hand are full."
            )
            print(f"\nAt the end to the third quarter: **{memory[-1][1] / memory[8][1]:.2f}**.")


if __name__ == "__main__":
    main()
