// Elements, and numbers and times as people read them.

const SVG = "http://www.w3.org/2000/svg";

// element("p", { class: "note" }, "text", child): attributes that are functions are listeners.
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Replace the text only where it changed: a screen reader and a selection stay where they are.
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

const MINUS = "\u2212";
const NONE = "\u2013";
const known = (x) => typeof x === "number" && Number.isFinite(x);

export const counted = (n) => (known(n) ? n.toLocaleString("en") : NONE);
export const rounds = (n) => `${counted(n)} ${n === 1 ? "outcome" : "outcomes"}`;

// A score or an error: four decimals, as in the report.
export function figure(x) {
  if (!known(x)) return NONE;
  return x !== 0 && Math.abs(x) < 1e-4 ? power(x) : x.toFixed(4).replace("-", MINUS);
}

export function percent(share) {
  if (!known(share)) return NONE;
  const value = 100 * share;
  const places = value && Math.abs(value) < 10 ? 1 : 0;
  return `${value.toFixed(places).replace("-", MINUS)}\u00a0%`;
}

// Evidence runs over many powers of ten; what is certain has no more digits.
export function evidence(x) {
  if (!known(x)) return NONE;
  if (x >= 1e300) return "certain";
  if (x >= 1e7 || (x !== 0 && x < 1e-2)) return power(x);
  return x >= 100 ? counted(Math.round(x)) : String(Number(x.toPrecision(2)));
}

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷",
  8: "⁸", 9: "⁹" };
export const raised = (n) => `10${[...String(n)].map((digit) => SUPERSCRIPT[digit]).join("")}`;

function power(x) {
  const [digits, exponent] = x.toExponential(1).split("e");
  return `${digits.replace("-", MINUS)}\u00a0×\u00a0${raised(Number(exponent))}`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [[2 * MINUTE, 1000, "s"], [2 * HOUR, MINUTE, "min"], [2 * DAY, HOUR, "h"],
  [Infinity, DAY, "days"]];

export function duration(ms) {
  const [, unit, name] = STEPS.find(([below]) => ms < below);
  return `${counted(Math.max(0, Math.floor(ms / unit)))}\u00a0${name}`;
}

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const SHORT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const HOURS = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY_HOUR = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric",
  hour: "2-digit", minute: "2-digit" });

// In the viewer's zone, as exact as the span that it is part of.
export const moment = (ms) => SHORT.format(ms);
export const clock = (ms) => CLOCK.format(ms);
export function within(ms, span) {
  const kind = span < 2 * MINUTE ? CLOCK : span < 20 * HOUR ? HOURS : span < 5 * DAY
    ? DAY_HOUR : DATE;
  return kind.format(ms);
}

// A time that says how long ago it was, and shows the exact one on request; see `age`.
export function ago(ms) {
  if (!known(ms)) return element("span", {}, "never");
  const made = element("time", { datetime: new Date(ms).toISOString(), title: FULL.format(ms) });
  made.textContent = past(ms);
  return made;
}

function past(ms) {
  const since = Date.now() - skew - ms;
  return since < 2000 ? "just now" : `${duration(since)} ago`;
}

// How far this clock is ahead of the service's: ages are by the service's.
let skew = 0;
export function setClock(now) {
  skew = Date.now() - now;
}

export function age(root) {
  for (const made of root.querySelectorAll("time")) say(made, past(Date.parse(made.dateTime)));
}

// A word for a shell, quoted where it must be.
export const quoted = (word) => (/^[\w.:/@%+=-]+$/.test(word) ? word
  : `'${word.replaceAll("'", "'\\''")}'`);
