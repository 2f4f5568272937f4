"""Kill a service at random moments under load, and see that nothing is lost or done twice.

    python tests/serve/kills.py --kills 1000 --database sqlite:////tmp/kills.db

A child process serves; the parent sends requests in a fixed order, some at a time, and kills the
child (SIGKILL) at random moments. What was not acknowledged is sent again, with the same ids. At
the end, every forecast must be, bit for bit, that of a run that nobody disturbed.
"""

import argparse
import asyncio
import json
import os
import random
import select
import signal
import sys
import time

from truecast.serve import recent
from truecast.serve.journal import replay, verify
from truecast.serve.options import StreamOptions
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of
from truecast.serve.stream import LiveStream

AT_ONCE = 12  # requests under way
OPTIONS = StreamOptions(max_unresolved=1_000)


def requests(seed, count):
    """The same requests for the same seed: forecasts of one or more rows, outcomes in any order."""
    rng = random.Random(seed)
    awaited, made = [], 0
    for _ in range(count):
        if awaited and rng.random() < 0.5:
            chosen = [awaited.pop(rng.randrange(len(awaited))) for _ in range(min(3, len(awaited)))]
            rows = [[name, int(rng.random() < 0.3)] for name in chosen]
            if rng.random() < 0.2:
                rows.append(rows[0])
            yield {"kind": "outcomes", "rows": rows}
        else:
            size = rng.choice([1, 1, 1, 5, 20])
            rows = [[rng.random(), f"id-{made + k}"] for k in range(size)]
            made += size
            awaited += [name for _, name in rows]
            yield {"kind": "forecasts", "rows": rows}


def undisturbed(asked):
    """What would be answered without a service: the forecasts by id, and all rounds."""
    stream, said, tickets = LiveStream(OPTIONS), {}, {}
    for request in asked:
        if request["kind"] == "forecasts":
            names = [name for _, name in request["rows"]]
            first = stream.record.issued
            scores = stream.scores([score for score, _ in request["rows"]])
            answers = stream.forecast(0, scores, None, None).tolist()
            said.update(zip(names, answers, strict=True))
            tickets.update(zip(names, range(first, first + len(names)), strict=True))
        else:
            rows = dict(request["rows"])
            known = {tickets[name]: y for name, y in rows.items()}
            known = {t: y for t, y in known.items() if stream.record.awaits(t)}
            if known:
                stream.learn(0, list(known), list(known.values()))
    return said, stream.record.rounds


async def serve(url, read, write):
    """In the child: do what each line says, in order, and answer."""
    reader = asyncio.StreamReader(limit=1 << 24)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(read, "rb"))
    async with open_service(url, standby=True) as service:
        await service.create("x", OPTIONS)

        async def do(number, request):
            if request["kind"] == "forecasts":
                rows = [ForecastRow(score, name) for score, name in request["rows"]]
                answers = await service.forecasts("x", rows)
                told = {answer.id: answer.p for answer in answers}
            else:
                rows = [OutcomeRow(name, y) for name, y in request["rows"]]
                told = [answer.status for answer in await service.outcomes("x", rows)]
            os.write(write, json.dumps([number, told]).encode() + b"\n")

        tasks = set()
        while line := await reader.readline():
            number, request = json.loads(line)
            tasks.add(asyncio.create_task(do(number, request)))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)


class Child:
    """A process that serves."""

    def __init__(self, url, lag):
        read, self.to = os.pipe()
        self.out, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.to)
            os.close(self.out)
            recent.LAG = lag
            asyncio.run(serve(url, read, write))
            os._exit(0)
        os.close(read)
        os.close(write)
        self.buffer = b""

    def ask(self, number, request):
        os.write(self.to, json.dumps([number, request]).encode() + b"\n")

    def answers(self, timeout):
        """What it has answered by now; waits for something, at most that long."""
        if not select.select([self.out], [], [], timeout)[0]:
            return []
        self.buffer += os.read(self.out, 1 << 20)
        *lines, self.buffer = self.buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self, how=signal.SIGKILL):
        if how:
            os.kill(self.pid, how)
        os.close(self.to)
        _, status = os.waitpid(self.pid, 0)
        rest = [b""]
        while part := os.read(self.out, 1 << 20):
            rest.append(part)
        os.close(self.out)
        lines = (self.buffer + b"".join(rest)).split(b"\n")[:-1]  # half a line says nothing
        return status, [json.loads(line) for line in lines]


def play(url, kills, seed, per_kill):
    """Send all requests, and kill on the way; return what was acknowledged."""
    rng = random.Random(seed + 1)
    asked = list(requests(seed, kills * per_kill + per_kill))
    answered, done = {}, 0
    lags = [1, 30, recent.LAG]  # kills come before, while and after ids are indexed
    child, sent = Child(url, rng.choice(lags)), 0
    kill_at = None
    killed = 0
    moments = [(k + rng.random()) * per_kill for k in range(kills)]  # by requests answered
    while done < len(asked) or killed < kills:
        while sent < min(len(asked), done + AT_ONCE):
            child.ask(sent, asked[sent])
            sent += 1
        idle = kill_at is None and done < len(asked)
        answered.update(child.answers(30 if idle else 0.005))
        while done in answered:
            done += 1
        due = killed < kills and done >= moments[killed]
        if due and kill_at is None:
            kill_at = time.monotonic() + rng.random() * 0.01
        if kill_at is not None and time.monotonic() >= kill_at:
            answered.update(child.end()[1])
            while done in answered:
                done += 1
            killed, kill_at = killed + 1, None
            child, sent = Child(url, rng.choice(lags)), done
    status, rest = child.end(how=None)
    assert status == 0, status
    return asked, answered | dict(rest), killed


def check(url, asked, answered):
    """Compare with a run that nobody disturbed, and with the journal."""
    said, rounds = undisturbed(asked)
    for number, request in enumerate(asked):
        told = answered[number]
        if request["kind"] == "forecasts":
            assert told == {name: said[name] for _, name in request["rows"]}, number
        else:
            assert set(told) <= {"learned", "duplicate", "given_up"}, (number, told)
    store = store_of(url)
    store.read_only()
    problems = verify(store).problems
    assert not problems, problems
    (found,) = replay(store)
    store.close()
    assert found.problem is None, found.problem
    assert found.rounds == rounds, (found.rounds, rounds)
    return len(said), rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--database", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=40, help="between two kills")
    options = parser.parse_args()
    asked, answered, killed = play(options.database, options.kills, options.seed, options.requests)
    forecasts, rounds = check(options.database, asked, answered)
    sys.stdout.write(
        f"{killed} kills, {len(asked):,} requests, {forecasts:,} forecasts, {rounds:,} outcomes: "
        "nothing lost, nothing twice, all forecasts equal\n"
    )


if __name__ == "__main__":
    main()
