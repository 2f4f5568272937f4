"""The dashboard of a real service, in a real browser."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import truecast as tc
from served import Served, send
from truecast.serve.dashboard import pages

EVIL = "<img src=x onerror=\"document.body.dataset.evil='yes'\">"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LONG = 100 * "x"  # the longest name
FIGURE = "{:.4f}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a stream of each kind."""
    with Served(tmp_path_factory.mktemp("data")) as service:
        with service.client() as client:
            fill(client)
        yield service
        assert service.kill(signal.SIGTERM) == 0


def fill(client: tc.Client) -> None:
    rng = random.Random(4)  # noqa: S311
    client.create("wrong", alarm={"alpha": 0.01}, note=EVIL)
    for _ in range(3):  # the course has a point for each request
        send(client, "wrong", [0.9] * 100, [0] * 100)
    client.create("right", alarm={"alpha": 0.01})
    scores = [rng.uniform(0.1, 0.9) for _ in range(600)]
    answers = client.forecasts(
        "right", scores, groups=[["JFK", EVIL][k % 2] for k in range(len(scores))]
    )
    outcomes = [int(rng.random() < score) for score in scores]
    client.outcomes("right", [answer.id for answer in answers], outcomes)
    with pytest.raises(tc.TruecastError):
        client.outcome("right", answers[0].id, 1 - outcomes[0])
    client.create("games", classes=["home", "draw", "away"])
    rows = [[0.5, 0.25, 0.25]] * 60
    games = client.forecasts("games", rows, groups=["cup", "league"] * 30)
    came = [rng.choice(["home", "draw", "away"]) for _ in rows]
    client.outcomes("games", [game.id for game in games], came)
    client.create("young")
    send(client, "young", [0.3] * 5, [0, 1, 0, 0, 1])
    client.create("silent")
    client.forecast("silent", 0.4)
    client.create(LONG)


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; afterwards nothing was asked of others, and nothing went wrong."""
    asked: list[str] = []
    wrong: list[str] = []
    contexts = []
    allowed: list[str] = []

    def looked(url: str, *, path: str = "/", **how: Any) -> Any:
        about = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB"} | how
        context = browser.new_context(**about)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text))
        allowed.append(url)
        page.goto(url + path)
        return page

    yield looked
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith(tuple(allowed))] == []
    # a browser reports every answer that is no success: refused tokens, and a service that is gone
    assert [text for text in wrong if not text.startswith("Failed to load resource")] == []


def names(page: Any) -> list[str]:
    page.locator("table.streams tbody tr").first.wait_for()
    return page.locator("table.streams tbody th").all_inner_texts()


def test_it_is_small_and_whole() -> None:
    found = pages()
    assert sum(len(page.content) for page in found.values()) < 100_000
    text = b"".join(page.content for page in found.values()).decode()
    links = text.replace("http://www.w3.org/", "").replace("https://www.w3.org/", "")
    assert "http://" not in links
    assert "https://" not in links
    assert " style=" not in found["/"].content.decode()
    assert "innerHTML" not in text


def test_streams_are_listed_worst_first(served: Served, look: Any) -> None:
    page = look(served.url)
    listed = names(page)
    assert listed[0] == "wrong"
    assert set(listed) == {"wrong", "right", "games", "young", "silent", LONG}
    assert page.title() == "1 off · truecast"
    assert listed[-1] == "right"
    row = page.locator("tr", has_text="wrong").first
    assert "Off" in row.inner_text()
    assert "not calibrated: forecasts are too sure" in row.inner_text()
    assert page.locator("#search").is_hidden()  # few streams need none


def test_a_stream_shows_what_the_service_says(served: Served, look: Any) -> None:
    with served.client() as client:
        view = client.overview("right")
    page = look(served.url, path="/streams/right/page")
    page.locator("section.verdict.none").wait_for()
    assert view["verdict"]["headline"] in page.locator(".verdict").inner_text()
    side = view["sides"][0]
    table = page.locator("table.scores").inner_text()
    for half in ("before", "after"):
        for name in ("brier", "smooth", "smooth_by_chance", "log_loss"):
            assert FIGURE.format(side[half][name]) in table
    assert FIGURE.format(side["average_brier"]) in table
    assert FIGURE.format(side["rolling"]["brier"]) in table
    points = page.locator("svg.chart").nth(1).locator(".point").count()
    assert points == len(side["after"]["reliability"])
    groups = page.locator("section", has_text="Groups that a forecast names").last.inner_text()
    assert "JFK" in groups
    errors = page.locator("table.errors").inner_text()
    assert view["errors"][0]["detail"] in errors


def test_an_alarm_says_since_when_in_the_viewers_zone(served: Served, look: Any) -> None:
    with served.client() as client:
        alarm = client.overview("wrong")["sides"][0]["after"]["evidence"]["alarm"]
    page = look(served.url, path="/streams/wrong/page", timezone_id="Asia/Kathmandu")
    page.locator("section.verdict.off").wait_for()
    came = datetime.fromtimestamp(alarm["at"] / 1000, UTC)
    local = (came.hour * 60 + came.minute + 5 * 60 + 45) % 1440
    words = page.locator(".verdict").inner_text()
    assert ", answered forecasts: forecasts are" in words
    assert f"{local // 60:02}:{local % 60:02}" in words
    assert "{since}" not in words
    assert page.locator(".onset.after").count() == 1


def test_classes_have_pictures_of_their_own(served: Served, look: Any) -> None:
    page = look(served.url, path="/streams/games/page")
    choice = page.locator("#class")
    choice.wait_for()
    assert set(choice.locator("option").all_inner_texts()) == {"home", "draw", "away"}
    groups = page.locator("section", has_text="Groups that a forecast names").last
    assert "There is no evidence by group with several classes" in groups.inner_text()
    assert groups.locator("th").all_inner_texts()[:2] == ["group", "outcomes"]
    with served.client() as client:
        sides = {side["label"]: side for side in client.overview("games")["sides"]}
    for label, side in sides.items():
        choice.select_option(label)
        assert FIGURE.format(side["after"]["brier"]) in page.locator("table.scores").inner_text()


def test_a_stream_that_comes_into_being(served: Served, look: Any) -> None:
    page = look(served.url, path="/streams/later/page")
    page.get_by_text("There is no stream of this name.").wait_for()
    with served.client() as client:
        client.create("later")
        client.forecast("later", 0.5)
        page.get_by_text("Later, say what happened:").wait_for()
        client.delete("later", confirm="later")
    page.get_by_text("There is no stream of this name.").wait_for()


def test_what_is_sent_is_seen_at_once(served: Served, look: Any) -> None:
    listed = look(served.url)
    page = look(served.url, path="/streams/young/page")
    tile = page.locator("dl.tiles div", has_text="Outcomes learned").locator("dd").first
    tile.wait_for()
    before = int(tile.inner_text())
    names(listed)
    with served.client() as client:
        send(client, "young", [0.2, 0.7], [0, 1])
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(tile).to_have_text(str(before + 2), timeout=30_000)
    cell = listed.locator("tr", has_text="young").locator("td").nth(1)
    expect(cell).to_have_text(str(before + 2), timeout=30_000)


def test_names_of_others_are_text(served: Served, look: Any) -> None:
    page = look(served.url)
    for path in ("/streams/wrong/page", "/streams/right/page"):
        page.goto(served.url + path)
        page.get_by_text(EVIL).first.wait_for()
        assert page.evaluate("document.body.dataset.evil") is None


def test_the_policy_stops_foreign_script(served: Served, browser: Any) -> None:
    page = browser.new_page()
    page.goto(served.url)
    stopped = page.evaluate(
        """async () => {
          const found = [];
          addEventListener("securitypolicyviolation", (event) => found.push(event.violatedDirective));
          const script = document.createElement("script");
          script.textContent = "document.body.dataset.evil = 'yes'";
          document.body.append(script);
          const style = document.createElement("style");
          document.body.append(style);
          style.textContent = "body { color: red }";
          document.body.setAttribute("style", "color: red");
          await fetch("https://example.org/").catch(() => 0);
          while (found.length < 4) await new Promise((done) => setTimeout(done, 10));
          return [document.body.dataset.evil ?? null, found.map((each) => each.slice(0, 9))];
        }"""
    )
    assert stopped[0] is None
    assert set(stopped[1]) == {"script-sr", "style-src", "connect-s"}
    page.close()


def test_numbers_and_events_are_read_as_people_and_servers_write_them(
    served: Served, look: Any
) -> None:
    page = look(served.url)
    shown = page.evaluate(
        r"""async () => {
          const { duration, evidence, figure, percent, quoted } = await import("/dashboard/dom.js");
          return [
            [0.18884, 0, 0.00001234, null, 1].map(figure),
            [0.5, 0.0123, 0, 1, null].map(percent),
            [1, 0.0001, 371.2, 1e5, 2.5e131, 1e300].map(evidence),
            [3_000, 600_000, 1e8, 1e10].map(duration),
            ["a-b.c", "it's"].map(quoted),
          ].map((row) => row.map((text) => text.replaceAll("\u00a0", " ")
            .replaceAll("\u00d7", "x").replaceAll("\u2013", "-")));
        }"""
    )
    assert shown == [
        ["0.1888", "0.0000", "1.2 x 10⁻⁵", "-", "1.0000"],
        ["50 %", "1.2 %", "0 %", "100 %", "-"],
        ["1", "1.0 x 10⁻⁴", "371", "100,000", "2.5 x 10¹³¹", "certain"],
        ["3 s", "10 min", "27 h", "115 days"],
        ["a-b.c", "'it'\\''s'"],
    ]
    events = page.evaluate(
        r"""async () => {
          const { eventsOf } = await import("/dashboard/service.js");
          const text = ": still here\n\nevent: change\ndata: {\"name\": \"é\"}\n\n"
            + "event: deleted\ndata: {}\n\nevent: half";
          const bytes = new TextEncoder().encode(text);
          const body = new ReadableStream({ start(to) {
            bytes.forEach((byte) => to.enqueue(new Uint8Array([byte])));
            to.close();
          } });
          const found = [];
          for await (const { kind, data } of eventsOf(body, () => 0)) found.push([kind, data]);
          return found;
        }"""
    )
    assert events == [["change", {"name": "é"}], ["deleted", {}]]


def test_a_course_put_together_keeps_its_sums(served: Served, look: Any) -> None:
    page = look(served.url)
    found = page.evaluate(
        """async () => {
          const { blocks } = await import("/dashboard/charts.js");
          const points = Array.from({ length: 300 }, (_, k) => ({ start: k, end: k + 1,
            rounds: 1 + (k * 7) % 13, rate: (k % 5) / 5, before: 0.5, after: 0.25, noise: 0.1 }));
          const sum = (some, field) => some.reduce((all, p) => all + p.rounds * p[field], 0);
          const made = blocks(points);
          return [made.length, made[0].start, made.at(-1).end,
            ...["rate", "before", "after"].map((field) => sum(made, field) - sum(points, field))];
        }"""
    )
    assert found[:3] == [36, 0, 300]
    assert found[3:] == pytest.approx([0, 0, 0], abs=1e-9)


def test_light_and_dark(served: Served, look: Any) -> None:
    page = look(served.url)
    names(page)
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 29)")):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground


def test_a_phone_has_no_sideways(served: Served, look: Any) -> None:
    page = look(served.url, **PHONE)
    for name in (None, "wrong", "right", "games", "silent", LONG):
        page.goto(served.url + ("/" if name is None else f"/streams/{name}/page"))
        page.locator("tbody tr, .command").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name


def test_the_keyboard_is_enough(served: Served, look: Any) -> None:
    page = look(served.url)
    names(page)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "wrong":
            break
    page.keyboard.press("Enter")
    page.locator("section.verdict.off").wait_for()
    assert page.url.endswith("/streams/wrong/page")
    assert page.evaluate("document.activeElement.id") == "main"
    chart = page.locator("svg.chart").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip")
    assert "forecast on average" in tip.inner_text()
    assert "forecast on average" in page.locator("#said").inner_text()  # read aloud
    with served.client() as client:
        send(client, "wrong", [0.9], [0])
    page.get_by_text("301 outcomes").first.wait_for()
    assert page.evaluate("document.activeElement.tagName") == "svg"  # an update takes nothing away
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.go_back()
    assert names(page)[0] == "wrong"


def test_what_to_do_next_works(tmp_path: Path, look: Any) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    with Served(tmp_path) as service:
        page = look(service.url)
        page.locator(".command").first.wait_for()
        for command in page.locator(".command pre").all_inner_texts():
            subprocess.run(["bash", "-c", f"{command} -sSf"], check=True, stdout=-1)  # noqa: S607
        page.locator("tr", has_text="my-model").wait_for()  # seen without a click
        with service.client() as client:
            assert client.overview("my-model")["rounds"] == 1


def test_a_service_that_cannot_write(tmp_path: Path, look: Any) -> None:
    with Served(tmp_path) as service, tc.Client(service.url, retries=0) as client:
        client.create("a")
        page = look(service.url)
        names(page)
        database, away = tmp_path / "truecast.db", tmp_path / "away.db"
        database.rename(away)
        with pytest.raises(tc.UnavailableError):
            client.forecast("a", 0.5)
        page.get_by_text("The service takes no forecasts and outcomes for now").wait_for()
        away.rename(database)
        page.get_by_text("The service takes no forecasts").wait_for(state="hidden")
        client.forecast("a", 0.5)


def test_a_service_that_is_gone_and_back(tmp_path: Path, look: Any) -> None:
    with Served(tmp_path) as service:
        with service.client() as client:
            client.create("a")
            send(client, "a", [0.5], [1])
        page = look(service.url)
        assert names(page) == ["a"]
        service.kill()
        page.get_by_text("The service is gone").wait_for()
        assert names(page) == ["a"]  # what was seen last stays
        page.get_by_role("button", name="Try now").click()
        service.start()
        with service.client() as client:
            client.create("b")
        page.get_by_role("link", name="b", exact=True).wait_for()
        assert page.locator("#gone").is_hidden()
        assert page.locator("#said").inner_text() == "The service is back."


def test_a_token_is_asked_for_once(tmp_path: Path, look: Any) -> None:
    from truecast.serve.http.auth import add_token

    tokens = tmp_path / "tokens"
    may = add_token(tokens, "viewer", ["read"])
    may_not = add_token(tokens, "sender", ["forecast"])
    with Served(tmp_path / "data", "--token-file", str(tokens)) as service:
        page = look(service.url)
        field = page.get_by_label("Token with the scope read")
        for wrong, why in (("tc_guess", "not known"), (may_not, "lacks the scope")):
            field.fill(wrong)
            field.press("Enter")
            page.locator("#ask-why", has_text=why).wait_for()
        field.fill(may)
        field.press("Enter")
        page.locator(".command").first.wait_for()
        command = page.locator(".command pre").first.inner_text()
        assert "$TRUECAST_TOKEN" in command
        assert may not in page.content()
        page.reload()
        page.locator(".command").first.wait_for()  # not asked again
        assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
        page.get_by_role("button", name="Forget the token").click()
        page.get_by_role("dialog").wait_for()


def test_ten_thousand_streams(served: Served, look: Any) -> None:
    with served.client() as client:
        known = client.streams()
    off = next(info for info in known if info["name"] == "wrong")
    well = next(info for info in known if info["name"] == "right")
    many = [well | {"name": f"tenant-{k:05}"} for k in range(10_000)]
    many[7_777] = off | {"name": "tenant-07777"}
    page = look(served.url)
    page.route(served.url + "/streams", lambda route: route.fulfill(
        body=json.dumps({"streams": many}), content_type="application/json"))  # fmt: skip
    page.goto(served.url)
    assert names(page)[0] == "tenant-07777"
    assert page.locator("tbody tr").count() == 100
    page.get_by_role("button", name="Show 100 more").click()
    assert page.locator("tbody tr").count() == 200
    page.get_by_label("Find").fill("tenant-0912")
    assert len(names(page)) == 10
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Off 1").click()
    assert names(page) == ["tenant-07777"]
