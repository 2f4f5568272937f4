// The dashboard: which page is shown, what the service says, and whether it is there.

import { age, clock, element, say, setClock } from "./dom.js";
import { List } from "./list.js";
import { forgetToken, Listener, read, Refused, setToken, token } from "./service.js";
import { Stream } from "./stream.js";

const main = document.getElementById("main");
const place = (id) => document.getElementById(id);
const announce = (text) => say(place("said"), text);
const HIDDEN = 60_000; // ms after which a tab that nobody looks at lets go of its connection
const BETWEEN = 1000; // ms, at least, between two readings of a stream,
const SHARE = 20; // and this many times as long as a reading takes: looking must not slow serving;
const LATEST = 10_000; // ms, at most

let page = null; // List or Stream
let missing = false; // whether there is no stream of this name
let fresh = Date.now(); // when what is shown was true

// ---- which page

function nameInAddress() {
  const found = /^\/streams\/([^/]+)\/page$/.exec(location.pathname);
  return found ? decodeURIComponent(found[1]) : null;
}

async function open({ focus = false } = {}) {
  const name = nameInAddress();
  page?.close();
  page = name === null ? new List(main) : new Stream(main, name, announce);
  document.title = name === null ? "truecast" : `${name} · truecast`;
  missing = false;
  if (focus) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  await load();
}

function follow(event) {
  const link = event.target.closest?.("a[data-link]");
  const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
  if (!link || !plain) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  open({ focus: true });
}

// ---- what the service says

let reading = false;
let took = 0; // ms, the last reading
let again = null;

// Read what is shown; while that goes on or was just done, once more later.
async function load() {
  if (reading) {
    soon();
    return;
  }
  reading = true;
  const shown = page;
  const began = performance.now();
  try {
    if (shown instanceof List) shown.set((await read("/streams")).streams);
    else await loadStream(shown);
    refusal = null;
    seen();
  } catch (error) {
    failed(shown, error);
  }
  reading = false;
  took = performance.now() - began;
  if (shown !== page) load();
}

async function loadStream(shown) {
  const view = await read(`/streams/${encodeURIComponent(shown.name)}`);
  if (shown !== page) return;
  setClock(view.now);
  shown.set(view);
}

function failed(shown, error) {
  if (!(error instanceof Refused) || shown !== page) return; // the listener says that it is gone
  if ([401, 403].includes(error.status)) ask(error);
  else if (error.status === 404) gone(shown.name);
  else {
    refusal = error.message;
    showConnection();
  }
}

function gone(name) {
  missing = true;
  main.replaceChildren(element("h1", {}, element("bdi", {}, name)),
    element("p", {}, "There is no stream of this name."),
    element("p", {}, element("a", { href: "/", "data-link": true }, "All streams")));
}

function hear(kind, data) {
  seen();
  if (kind === "hello" || kind === "health") health(data);
  if (kind === "deleted" && page instanceof List) page.remove(data.name);
  if (kind === "deleted" && page instanceof Stream && page.name === data.name) gone(data.name);
  if (kind !== "change") return;
  if (page instanceof List) hearInList(data);
  else if (page.name === data.name) {
    if (missing) open();
    else soon();
  }
}

function hearInList(info) {
  const before = page.streams.get(info.name)?.verdict.kind;
  if (info.verdict.kind === "off" && before !== "off") {
    announce(`${info.name}: ${info.verdict.headline}`);
  }
  page.change(info);
}

function soon() {
  const wait = Math.min(LATEST, Math.max(BETWEEN, SHARE * took));
  again ??= setTimeout(() => { again = null; load(); }, wait);
}

// ---- whether it is there

const listener = new Listener(hear, connected);
let lost = null; // why and until when, if the service is gone

function connected(state, more) {
  if (state === "refused") {
    ask(more);
    return;
  }
  if (state === "live") seen();
  if (state === "gone") lost = more;
  else if (lost) {
    lost = null;
    announce("The service is back.");
    load();
  }
  showConnection();
}

function seen() {
  fresh = Date.now();
  showConnection();
}

let unready = null; // why the service takes nothing
let refusal = null; // why it did not show what was asked for

function health({ ready, reason }) {
  unready = ready ? null : reason;
  showConnection();
}

function showConnection() {
  const bar = place("gone");
  bar.hidden = !lost && !unready && !refusal;
  document.body.classList.toggle("stale", Boolean(lost));
  say(place("connection"), lost ? "not connected" : `live · ${clock(fresh)}`);
  if (lost) {
    const wait = Math.max(0, Math.ceil((lost.next - Date.now()) / 1000));
    // only the sentence is read aloud: the seconds change too often
    say(bar.firstElementChild, `The service is gone: ${lost.why}. This is how it was at `
      + `${clock(fresh)}.`);
    say(place("connection"), `not connected, next attempt in ${wait} s`);
  } else if (unready) {
    say(bar.firstElementChild, `The service takes no forecasts and outcomes for now: ${unready}.`);
  } else if (refusal) say(bar.firstElementChild, `The service did not show this: ${refusal}.`);
  bar.lastElementChild.hidden = !lost;
}

// ---- the token

function ask(error) {
  listener.stop();
  const dialog = place("ask");
  if (dialog.open) return;
  say(place("ask-why"), token() ? `The last one was refused: ${error.message}` : "");
  place("token").value = "";
  dialog.showModal();
}

function tokenGiven(event) {
  event.preventDefault();
  const text = place("token").value.trim();
  if (!text) return;
  setToken(text);
  place("ask").close();
  start();
}

function start() {
  place("forget").hidden = !token();
  listener.start();
  load();
}

// ---- begin

document.addEventListener("click", follow);
addEventListener("popstate", () => open({ focus: true }));
addEventListener("online", () => lost && listener.again());
place("gone").lastElementChild.addEventListener("click", () => listener.again());
place("ask").firstElementChild.addEventListener("submit", tokenGiven);
place("ask").addEventListener("cancel", (event) => event.preventDefault());
place("forget").addEventListener("click", () => { forgetToken(); location.reload(); });

let hidden = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(() => listener.stop(), HIDDEN);
  else if (listener.stopped && !place("ask").open) start();
});
setInterval(() => {
  age(main);
  if (lost) showConnection();
}, 1000);

place("forget").hidden = !token();
listener.start();
open();
