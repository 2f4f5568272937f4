// The first page: every stream with its verdict, worst first.

import { ago, counted, element, figure, say } from "./dom.js";
import { create } from "./commands.js";

const SHOWN = 100; // rows at first, and more on request
const MANY = 12; // streams from which on there is a search field
export const KINDS = {
  off: ["Off", "off"],
  weak: ["Weak evidence", "with weak evidence against calibration"],
  waiting: ["Waiting", "waiting for an outcome"],
  few: ["Too few", "with too few outcomes to tell"],
  empty: ["No outcomes", "without outcomes"],
  none: ["No evidence against", "with no evidence against calibration"],
};
const ORDER = Object.keys(KINDS);
const rank = (info) => ORDER.indexOf(info.verdict.kind);
const worst = (a, b) => rank(a) - rank(b) || (b.last_outcome ?? 0) - (a.last_outcome ?? 0)
  || (a.name < b.name ? -1 : 1);

export const pathOf = (name) => `/streams/${encodeURIComponent(name)}/page`;

// A mark that differs in shape as well as in colour.
export function mark(kind) {
  return element("span", { class: `mark-of ${kind}`, "aria-hidden": "true" });
}

export class List {
  constructor(main) {
    this.rows = new Map();
    this.streams = new Map();
    this.kind = null;
    this.limit = SHOWN;
    this.title = element("h1", {}, "Streams");
    this.summary = element("p", { class: "quiet" }, "Loading …");
    this.search = element("input", { type: "search", id: "search", autocomplete: "off",
      spellcheck: "false", placeholder: "part of a name", input: () => this.narrow() });
    this.kinds = element("div", { class: "kinds", role: "group", "aria-label": "By verdict" });
    this.tools = element("div", { class: "tools", role: "search", hidden: true },
      element("label", { for: "search" }, "Find"), this.search, this.kinds);
    this.body = element("tbody");
    this.found = element("p", { class: "quiet", role: "status" });
    this.more = element("button", { type: "button", hidden: true,
      click: () => this.showMore() });
    this.table = element("table", { class: "streams", hidden: true },
      element("caption", { class: "unseen" }, "Streams, worst first"),
      element("thead", {}, element("tr", {}, ...["stream", "verdict", "outcomes", "outstanding",
        "proved, a round", "last outcome"].map((name, k) =>
        element("th", { scope: "col", class: k === 1 ? "words" : null }, name)))), this.body);
    this.nothing = element("div", { hidden: true });
    main.replaceChildren(this.title, this.summary, this.tools, this.table, this.found, this.more,
      this.nothing);
  }

  set(streams) {
    this.streams = new Map(streams.map((info) => [info.name, info]));
    this.draw();
  }

  change(info) {
    this.streams.set(info.name, info);
    this.later();
  }

  remove(name) {
    this.streams.delete(name);
    this.later();
  }

  close() {
    clearTimeout(this.timer);
  }

  // Many changes, one drawing.
  later() {
    this.timer ??= setTimeout(() => this.draw(), 400);
  }

  narrow() {
    this.limit = SHOWN;
    this.draw();
  }

  showMore() {
    const first = this.limit;
    this.limit += SHOWN;
    this.draw();
    this.body.children[first]?.querySelector("a").focus();
  }

  only(kind) {
    this.kind = this.kind === kind ? null : kind;
    this.narrow();
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const all = [...this.streams.values()];
    this.drawTools(all);
    const part = this.search.value.trim().toLowerCase();
    const found = all.filter((info) => (!this.kind || info.verdict.kind === this.kind)
      && info.name.toLowerCase().includes(part)).sort(worst);
    this.drawRows(found.slice(0, this.limit));
    this.drawEnd(all.length, found.length);
  }

  drawTools(all) {
    const counts = new Map(ORDER.map((kind) => [kind, 0]));
    for (const info of all) counts.set(info.verdict.kind, counts.get(info.verdict.kind) + 1);
    const some = [...counts].filter(([, count]) => count);
    if (!counts.get(this.kind)) this.kind = null;
    const off = counts.get("off");
    document.title = off ? `${counted(off)} off · truecast` : "truecast";
    this.tools.hidden = all.length < MANY;
    const parts = some.map(([kind, count]) => `${counted(count)} ${KINDS[kind][1]}`).join(", ");
    say(this.summary, all.length ? `${counted(all.length)} in all: ${parts}.` : "");
    const buttons = some.map(([kind, count]) => {
      const there = this.kinds.querySelector(`[data-kind=${kind}]`) ?? element("button",
        { type: "button", "data-kind": kind, click: () => this.only(kind) }, mark(kind),
        element("span"));
      say(there.lastChild, `${KINDS[kind][0]} ${counted(count)}`);
      there.setAttribute("aria-pressed", String(this.kind === kind));
      return there;
    });
    arrange(this.kinds, buttons);
  }

  drawRows(found) {
    const rows = found.map((info) => {
      const row = this.rows.get(info.name) ?? newRow(info.name);
      this.rows.set(info.name, row);
      fill(row, info);
      return row.line;
    });
    arrange(this.body, rows);
    if (this.rows.size > 2 * this.limit) {
      const kept = new Set(found.map((info) => info.name));
      for (const name of this.rows.keys()) if (!kept.has(name)) this.rows.delete(name);
    }
  }

  drawEnd(all, found) {
    this.table.hidden = !found;
    this.nothing.hidden = all > 0;
    if (!all) this.nothing.replaceChildren(...create());
    const shown = Math.min(found, this.limit);
    say(this.found, !all ? "" : !found ? "No stream has such a name and verdict."
      : shown < found ? `${counted(shown)} of ${counted(found)} shown.` : "");
    this.more.hidden = shown >= found;
    say(this.more, `Show ${counted(Math.min(SHOWN, found - shown))} more`);
  }
}

// Put children in this order and move only those that are elsewhere: focus stays where it is.
function arrange(parent, children) {
  const kept = new Set(children);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  const focus = document.activeElement;
  children.forEach((child, k) => {
    if (parent.children[k] !== child) parent.insertBefore(child, parent.children[k] ?? null);
  });
  if (focus !== document.activeElement && parent.contains(focus)) focus.focus();
}

function newRow(name) {
  const link = element("a", { href: pathOf(name), "data-link": true }, element("bdi", {}, name));
  const cells = { verdict: element("td", { class: "words" }), rounds: element("td"),
    unresolved: element("td"), proved: element("td"), last: element("td") };
  const line = element("tr", {}, element("th", { scope: "row" }, link), ...Object.values(cells));
  return { line, cells, shown: "" };
}

function fill(row, info) {
  const { kind, headline } = info.verdict;
  if (row.shown !== kind + headline) {
    row.shown = kind + headline;
    row.cells.verdict.replaceChildren(element("span", { class: `kind ${kind}` }, mark(kind),
      KINDS[kind][0]), element("span", { class: "headline" }, headline));
  }
  say(row.cells.rounds, counted(info.rounds));
  say(row.cells.unresolved, counted(info.unresolved));
  say(row.cells.proved, info.rounds ? figure(info.per_round) : "\u2013");
  if (row.last !== info.last_outcome) {
    row.last = info.last_outcome;
    row.cells.last.replaceChildren(ago(info.last_outcome));
  }
}
