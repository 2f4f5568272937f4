"""Replay: many entries at a time give what one by one gives, bit for bit; damage is named."""

import pytest

import journals
from journals import run
from truecast.errors import StateError
from truecast.serve import course, replay
from truecast.serve.events import Head, Kind, decode, encode
from truecast.serve.options import StreamOptions
from truecast.serve.replay import Replay
from truecast.serve.rows import ForecastRow, OutcomeRow
from truecast.serve.service import open_service, store_of
from truecast.serve.snapshots import state_of
from truecast.serve.stream import LiveStream

OPTIONS = {
    "groups, events, late": StreamOptions(max_unresolved=60),
    "logits": StreamOptions(scale="logit"),
    "classes": StreamOptions(classes=3),
}


async def _play(service, kind):
    if kind == "groups, events, late":
        await journals.play(service, "x", 60)
        return
    for turn in range(60):
        score = [0.2, 0.3, 0.5] if kind == "classes" else 0.01 * turn
        count = (1, 1, 12)[turn % 3]
        answers = await service.forecasts("x", [ForecastRow(score)] * count)
        if turn % 6 == 5:
            await service.give_up("x", ids=[answers.pop().id])
        await service.outcomes("x", [OutcomeRow(answer.id, turn % 2) for answer in answers])


@pytest.fixture(autouse=True)
def _marks_go_often(monkeypatch):
    monkeypatch.setattr(course, "MOST", 8)


@pytest.fixture(params=OPTIONS, scope="module")
def journal(request, tmp_path_factory):
    """What a stream is made with, and its entries."""
    folder = tmp_path_factory.mktemp("journal")
    url, options = f"sqlite:///{folder}/a.db", OPTIONS[request.param]

    async def write():
        async with open_service(url) as service:
            await service.create("x", options)
            await _play(service, request.param)

    run(write())
    store = store_of(url)
    store.read_only()
    entries = list(store.entries(0))
    store.close()
    return options, entries


def _one_by_one(options, entries):
    stream = LiveStream(options)
    for entry in entries:
        stream.apply(entry.seq, entry.at, decode(entry))
    return stream


def _sized(monkeypatch, read, window, part):
    monkeypatch.setattr(replay, "FEWEST", read)
    monkeypatch.setattr(replay, "MOST", read)
    monkeypatch.setattr(replay, "_WINDOW", window)
    monkeypatch.setattr(replay, "_PART", part)


SIZES = [(1, (1, 1), 1), (2, (5, 1_000), 7), (7, (20, 60), 16), (64, (8_192, 10**6), 8_192)]


@pytest.mark.alike("plays a journal from several places on")
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_windows_of_any_size_give_what_one_by_one_gives(journal, monkeypatch, sizes, threads):
    options, entries = journal
    whole = state_of(_one_by_one(options, entries))
    assert len(whole["course"]["marks"]) > 4
    assert whole["course"]["step"] > 2 * course.FIRST_STEP
    _sized(monkeypatch, *sizes)
    for cut in (0, 1, len(entries) // 3, len(entries)):
        playing = Replay(LiveStream(options), "x", check=True, threads=threads)
        playing.entries(entries[:cut])
        assert state_of(playing.stream) == state_of(_one_by_one(options, entries[:cut]))
        assert state_of(playing.entries(entries[cut:])) == whole


def test_marks_that_go_again_are_not_made(journal, monkeypatch):
    options, entries = journal
    made = []
    mark_of = replay.mark_of
    monkeypatch.setattr(replay, "mark_of", lambda *of: made.append(of) or mark_of(*of))
    together = [entry for entry in entries if entry.kind in (Kind.FORECASTS, Kind.OUTCOMES)]
    stream = Replay(LiveStream(options), "x").entries(together)
    assert len(made) == (len(stream.course.marks) if stream.binary else 0)


def _changed(entry, **columns):
    body = decode(entry)
    values = {name: getattr(body, name) for name in body.__struct_fields__} | columns
    return encode(Head(entry.seq - 1, entry.at), 1, entry.at, type(body)(**values))[0]


@pytest.mark.parametrize("sizes", SIZES[1:])
@pytest.mark.parametrize("damage", ["erased", "cut", "another kind", "another answer"])
def test_what_is_wrong_is_found_at_its_entry(journal, monkeypatch, sizes, damage):
    options, entries = journal
    _sized(monkeypatch, *sizes)
    wrong = [k for k, entry in enumerate(entries) if entry.kind == Kind.FORECASTS][20]
    bad = entries[wrong]
    if damage == "another answer":
        said = bytearray(decode(bad).said)
        said[0] ^= 1
        bad = _changed(bad, said=bytes(said))
    else:
        body = {"erased": None, "cut": bad.body[:-1], "another kind": bad.body}[damage]
        bad = bad._replace(body=body, kind=9 if damage == "another kind" else bad.kind)
    playing = Replay(LiveStream(options), "x", check=True)
    with pytest.raises(StateError, match=f"entry {bad.seq} "):
        playing.entries([*entries[:wrong], bad, *entries[wrong + 1 :]])
    if damage != "another answer":
        before = _one_by_one(options, entries[:wrong])
        assert state_of(playing.stream) == state_of(before)


def test_the_first_of_two_wrong_entries_is_named(journal):
    options, entries = journal
    made = [k for k, entry in enumerate(entries) if entry.kind == Kind.FORECASTS]
    first, second = made[5], made[9]
    answer = _changed(entries[first], said=bytes(len(decode(entries[first]).said)))
    lost = entries[second]._replace(body=None)
    wrong = {first: answer, second: lost}
    playing = Replay(LiveStream(options), "x", check=True)
    with pytest.raises(StateError, match=f"entry {answer.seq} "):
        playing.entries([wrong.get(k, entry) for k, entry in enumerate(entries)])
