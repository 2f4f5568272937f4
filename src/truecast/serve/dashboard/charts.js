// The pictures, as SVG, in the report's colours. Each stays in place and is drawn anew on change,
// so that the keyboard's focus and the values under the pointer survive an update.

import { element, evidence, percent, raised, rounds, say, shape, within } from "./dom.js";

const WIDTH = 400;
const LEFT = 46;
const RIGHT = 392;
const TOP = 24;
const BELOW = 26; // the axis of time

const scale = (low, high, from, to) => (value) =>
  from + ((value - low) / (high - low || 1)) * (to - from);
const at = (value) => Number(value.toFixed(1));

// About five round numbers from `low` to `high`.
export function ticks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 5));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each * 5.5 >= high - low);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step)
    .toPrecision(12)));
}

// A figure with its caption. draw(parts, height, places, tips): a tip for each place (x, y), shown
// under the pointer, the finger or the arrow keys.
export class Chart {
  constructor(label, ...caption) {
    this.svg = shape("svg", { class: "chart", role: "img", tabindex: "0" });
    this.caption = element("figcaption", {}, ...caption);
    this.figure = element("figure", {}, element("h3", {}, label), this.svg, this.caption);
    this.label = label;
    this.places = [];
    this.shown = -1;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.hide(); // a finger that is lifted leaves the values
    });
    this.svg.addEventListener("blur", () => this.hide());
    this.svg.addEventListener("keydown", (event) => this.press(event));
  }

  draw(height, parts, places = [], tips = [], words = "") {
    this.floor = height - BELOW;
    this.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    this.svg.setAttribute("aria-label", `${this.label}. ${words}`);
    this.svg.replaceChildren(...parts.flat(Infinity).filter(Boolean));
    this.places = places;
    this.tips = tips;
    if (this.shown >= places.length) this.hide();
    else if (this.shown >= 0) this.show(this.shown);
  }

  empty(why) {
    this.draw(60, [text(LEFT, 34, why)], [], [], why);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const y = ((event.clientY - box.top) / box.width) * WIDTH;
    const far = ([a, b]) => Math.abs(a - x) + (b === null ? 0 : Math.abs(b - y));
    let best = -1;
    this.places.forEach((place, k) => {
      if (best < 0 || far(place) < far(this.places[best])) best = k;
    });
    if (best >= 0) this.show(best);
  }

  press(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.hide();
    else if (step && this.places.length) {
      const from = this.shown < 0 ? (step > 0 ? -1 : this.places.length) : this.shown;
      this.show(Math.max(0, Math.min(this.places.length - 1, from + step)), true);
    } else return;
    event.preventDefault();
  }

  show(k, aloud = false) {
    this.shown = k;
    this.mark?.remove();
    const [x, y] = this.places[k];
    this.mark = y === null ? rule(x, TOP, x, this.floor, "cursor")
      : shape("circle", { cx: at(x), cy: at(y), r: 11, class: "ring" });
    this.svg.append(this.mark);
    const tip = document.getElementById("tip");
    tip.textContent = this.tips[k];
    tip.hidden = false;
    const box = this.svg.getBoundingClientRect();
    const ratio = box.width / WIDTH;
    const wide = document.documentElement.clientWidth;
    const left = box.left + x * ratio - tip.offsetWidth / 2;
    const above = box.top + (y === null ? TOP : y - 12) * ratio - tip.offsetHeight;
    tip.style.left = `${Math.max(4, Math.min(left, wide - tip.offsetWidth - 4)) + scrollX}px`;
    tip.style.top = `${Math.max(4, above - 4) + scrollY}px`;
    if (aloud) say(document.getElementById("said"), this.tips[k].replaceAll("\n", ", "));
  }

  hide() {
    if (this.shown < 0) return;
    this.shown = -1;
    this.mark?.remove();
    document.getElementById("tip").hidden = true;
  }
}

const text = (x, y, words, anchor = null, kind = null) =>
  shape("text", { x: at(x), y: at(y), "text-anchor": anchor, class: kind }, words);
const rule = (x1, y1, x2, y2, kind = "axis") =>
  shape("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), class: kind });
const dot = (x, y, r, kind = "dot") =>
  shape("circle", { cx: at(x), cy: at(y), r: at(r), class: kind });
const box = (left, top, right, bottom, kind) => shape("rect", { x: at(left), y: at(top),
  width: at(Math.max(0, right - left)), height: at(Math.max(0, bottom - top)), class: kind });
const known = (value) => value !== null && value !== undefined;

// A line through points; it is broken where a value is not known.
function line(xs, ys, kind) {
  let way = "";
  xs.forEach((x, k) => {
    if (!known(ys[k])) return;
    way += `${way && known(ys[k - 1]) ? "L" : "M"}${at(x)} ${at(ys[k])}`;
  });
  return shape("path", { d: way, class: kind });
}

export const key = (kind, words) => element("span", { class: "keyed" },
  element("span", { class: `key ${kind}` }), words);

// Ranges of forecasts, as large as their share of the rounds, over what chance gives.
export function reliability(chart, half) {
  const ranges = half.reliability;
  if (!ranges.length) {
    chart.empty("No outcomes yet.");
    return;
  }
  const bottom = TOP + RIGHT - LEFT;
  const ends = ranges.flatMap((each) => [each.forecast, each.rate, each.upper]);
  const most = Math.min(1, Math.max(0.05, 1.08 * Math.max(...ends)));
  const x = scale(0, most, LEFT, RIGHT);
  const y = scale(0, most, bottom, TOP);
  const total = ranges.reduce((sum, each) => sum + each.rounds, 0);
  const grid = ticks(0, most).map((tick) => [
    rule(x(tick), TOP, x(tick), bottom, "grid"),
    rule(LEFT, y(tick), RIGHT, y(tick), "grid"),
    text(x(tick), bottom + 17, percent(tick), x(tick) > RIGHT - 12 ? "end" : "middle"),
    text(LEFT - 6, y(tick) + 4, percent(tick), "end")]);
  const chance = ranges.map((each) => rule(x(each.forecast), y(each.lower), x(each.forecast),
    y(Math.min(most, each.upper)), "bandline"));
  const points = ranges.map((each) => range(each, x(each.forecast), y(each.rate), total));
  const off = ranges.filter(outside).length;
  chart.draw(bottom + 40, [
    text(0, 12, "share that came true", null, "label"),
    grid, chance, rule(x(0), y(0), x(most), y(most), "ideal"), points,
    text((LEFT + RIGHT) / 2, bottom + 36, "forecast", "middle", "label"),
  ], ranges.map((each) => [x(each.forecast), y(each.rate)]), ranges.map(rangeTip),
  `${ranges.length} ranges of forecasts, ${off} outside what chance gives.`);
}

const outside = (each) => each.rate < each.lower || each.rate > each.upper;

function range(each, x, y, total) {
  const kind = `point ${each.rate >= each.forecast ? "low" : "high"}`;
  const r = 2.5 + 7 * Math.sqrt(each.rounds / total);
  if (!outside(each)) return dot(x, y, r, kind);
  const reach = 1.25 * r;
  return shape("path", { class: `${kind} off`,
    d: `M${at(x - reach)} ${at(y)}L${at(x)} ${at(y - reach)} ${at(x + reach)} ${at(y)} ${at(x)} `
      + `${at(y + reach)}z` });
}

function rangeTip(each) {
  const way = each.rate > each.forecast ? "low" : "high";
  const verdict = outside(each) ? `too ${way}, beyond chance`
    : `by chance ${percent(each.lower)} to ${percent(each.upper)}`;
  return `${rounds(each.rounds)}\n${percent(each.forecast)} forecast on average, `
    + `${percent(each.rate)} came true\n${verdict}`;
}

function tooFew(chart, points) {
  if (points.length < 2) chart.empty("Drawn once outcomes came at different times.");
  return points.length < 2;
}

// What the charts against time share: the axis below, and a place for each point.
function timed(course, bottom) {
  const first = course[0].start;
  const last = course[course.length - 1].end;
  const x = scale(first, last, LEFT, RIGHT);
  const xs = course.map((each) => at(x((each.start + each.end) / 2)));
  const axis = [rule(LEFT, bottom, RIGHT, bottom),
    text(LEFT, bottom + 18, within(first, last - first)),
    text(RIGHT, bottom + 18, within(last, last - first), "end")];
  const when = (each) => within(each.end, last - first);
  return { x, xs, axis, when, places: xs.map((each) => [each, null]) };
}

const levels = (y, marks, words) => marks.map((mark) => [
  rule(LEFT, y(mark), RIGHT, y(mark), "grid"), text(LEFT - 6, y(mark) + 4, words(mark), "end")]);

const BLOCKS = 36;
const FEWEST = 25; // outcomes of a block, about: fewer show nothing but chance

// Neighbours put together, so that blocks have about as many outcomes each.
export function blocks(points) {
  const total = points.reduce((sum, each) => sum + each.rounds, 0);
  const size = total / Math.max(2, Math.min(BLOCKS, Math.floor(total / FEWEST)));
  const made = [];
  let part = [];
  let seen = 0;
  for (const each of points) {
    part.push(each);
    seen += each.rounds;
    if (seen >= size * (made.length + 1) - 1e-6) {
      made.push(together(part));
      part = [];
    }
  }
  return part.length ? [...made, together(part)] : made;
}

function together(part) {
  const n = part.reduce((sum, each) => sum + each.rounds, 0);
  const mean = (field) => part.reduce((sum, each) => sum + each.rounds * each[field], 0) / n;
  const noise = Math.sqrt(part.reduce((sum, each) => sum + (each.rounds * each.noise) ** 2, 0)) / n;
  return { start: part[0].start, end: part.at(-1).end, rounds: n, rate: mean("rate"),
    before: mean("before"), after: mean("after"), noise };
}

// Outcomes and forecasts, in blocks: what the model said, what was answered, what came.
export function course(chart, all) {
  const points = blocks(all.filter((each) => each.rounds && known(each.before)));
  if (tooFew(chart, points)) return;
  const bottom = 184;
  const { xs, axis, when, places } = timed(points, bottom);
  const ends = points.flatMap((each) => [each.rate, each.before + 2 * each.noise, each.after]);
  const most = Math.min(1, 1.1 * Math.max(...ends.filter(known))) || 1;
  const y = scale(0, most, bottom, TOP);
  const edge = (each, sign) => y(Math.min(most, Math.max(0, each.before + sign * 2 * each.noise)));
  const around = [...points.map((each, k) => `${xs[k]},${at(edge(each, 1))}`),
    ...points.map((each, k) => `${xs[k]},${at(edge(each, -1))}`).reverse()].join(" ");
  chart.draw(bottom + BELOW, [
    text(0, 12, "share that came true, and forecasts", null, "label"),
    levels(y, ticks(0, most), percent),
    shape("polygon", { points: around, class: "band" }),
    line(xs, points.map((each) => y(each.before)), "ideal"),
    line(xs, points.map((each) => y(each.after)), "afterline"),
    points.map((each, k) => dot(xs[k], y(each.rate), 3)), axis,
  ], places, points.map((each) => `${when(each)}\n${rounds(each.rounds)}\n${percent(each.rate)} came `
    + `true\n${percent(each.before)} said by the model\n${percent(each.after)} answered`),
  `Last: ${percent(points.at(-1).rate)} came true, ${percent(points.at(-1).after)} answered.`);
}

const FLOOR = -2; // the power of ten at the bottom: losing bets look alike below
const CEILING = 30;
const logged = (value) => Math.max(FLOOR, Math.min(CEILING, Math.log10(Math.max(value, 1e-300))));

// Evidence against the model's and against the answered forecasts, on a logarithmic scale.
export function evidenceCourse(chart, points, side) {
  if (tooFew(chart, points)) return;
  const bottom = 184;
  const { x, xs, axis, when, places } = timed(points, bottom);
  const before = points.map((each) => each.evidence_before);
  const after = points.map((each) => each.evidence_after);
  const { threshold } = side.after.evidence;
  const most = Math.max(10 * threshold, ...before, ...after);
  const high = Math.ceil(logged(most));
  const y = scale(FLOOR, high, bottom, TOP);
  const step = Math.max(2, 2 * Math.floor(high / 8));
  const marks = Array.from({ length: Math.floor(high / step) + 1 }, (_, k) => k * step);
  const height = (value) => y(logged(value));
  chart.draw(bottom + BELOW, [
    text(0, 12, "evidence, logarithmic", null, "label"),
    levels(y, marks, (mark) => (mark ? raised(mark) : "1")),
    onset(side.before.evidence.alarm, "before", { x, y, bottom }),
    onset(side.after.evidence.alarm, "after", { x, y, bottom }),
    rule(LEFT, y(logged(threshold)), RIGHT, y(logged(threshold)), "ideal"),
    text(RIGHT, y(logged(threshold)) - 4, `alarm from ${evidence(threshold)}`, "end"),
    line(xs, before.map(height), "curve"), line(xs, after.map(height), "afterline"), axis,
  ], places, points.map((each) => `${when(each)}\nmodel ${evidence(each.evidence_before)}\n`
    + `answered ${evidence(each.evidence_after)}`),
  `Now: model ${evidence(side.before.evidence.now)}, answered ${evidence(side.after.evidence.now)}.`);
}

// The band in which the change began, as far as can be told, and a dot where the alarm came.
function onset(alarm, kind, { x, y, bottom }) {
  if (!alarm || !known(alarm.at)) return null;
  const inside = (ms) => Math.max(LEFT, Math.min(RIGHT, x(ms)));
  const left = inside(alarm.earliest ?? alarm.since ?? alarm.at);
  const right = inside(alarm.latest ?? alarm.since ?? alarm.at);
  return [box(left, TOP, Math.max(right, left + 2), bottom, `onset ${kind}`),
    dot(inside(alarm.at), y(logged(alarm.evidence)), 4, `dot ${kind}`)];
}

// One number against time, from 0 up.
export function level(chart, points, field, words, kind = "afterline") {
  const seen = points.filter((each) => known(each[field]));
  if (tooFew(chart, seen)) return;
  const bottom = 144;
  const { xs, axis, when, places } = timed(seen, bottom);
  const values = seen.map((each) => each[field]);
  const most = Math.max(...values) * 1.08 || 1;
  const y = scale(0, most, bottom, TOP);
  const whole = values.every(Number.isInteger); // counts have no halves
  const marks = ticks(0, most).filter((mark) => !whole || Number.isInteger(mark));
  chart.draw(bottom + BELOW, [
    levels(y, marks, (mark) => mark.toLocaleString("en")),
    line(xs, values.map(y), kind), axis,
  ], places, seen.map((each) => `${when(each)}\n${words(each[field])}`),
  `Now ${words(values.at(-1))}, at most ${words(Math.max(...values))}.`);
}

const MINUTE = 60_000;

// The last hour, with zeros where nothing came.
function lastHour(some, now) {
  const last = Math.floor(now / MINUTE) * MINUTE;
  const found = new Map(some.map((each) => [each.at, each]));
  return Array.from({ length: 60 }, (_, k) => last - (59 - k) * MINUTE).map((minute) =>
    found.get(minute) ?? { at: minute, forecasts: 0, outcomes: 0 });
}

// Forecasts up and outcomes down, minute by minute.
export function rates(chart, some, now) {
  const minutes = lastHour(some, now);
  const most = Math.max(0, ...minutes.flatMap((each) => [each.forecasts, each.outcomes]));
  if (!most) {
    chart.empty("Nothing in the last hour.");
    return;
  }
  const middle = 84;
  const reach = 60;
  const wide = (RIGHT - LEFT) / minutes.length;
  const left = (k) => LEFT + k * wide + 0.5;
  const last = minutes.at(-1).at;
  chart.draw(middle + reach + BELOW, [
    text(0, 12, "a minute", null, "label"),
    minutes.map((each, k) => [
      box(left(k), middle - (reach * each.forecasts) / most, left(k + 1) - 1, middle, "ones"),
      box(left(k), middle, left(k + 1) - 1, middle + (reach * each.outcomes) / most, "afterbar")]),
    rule(LEFT, middle, RIGHT, middle),
    text(LEFT - 6, middle - reach + 4, most.toLocaleString("en"), "end"),
    text(LEFT - 6, middle + reach + 4, most.toLocaleString("en"), "end"),
    text(LEFT, middle + reach + 18, within(minutes[0].at, 3_600_000)),
    text(RIGHT, middle + reach + 18, within(last, 3_600_000), "end"),
  ], minutes.map((_, k) => [left(k) + wide / 2, null]),
  minutes.map((each) => `${within(each.at, 3_600_000)}\n${each.forecasts.toLocaleString("en")} `
    + `forecasts\n${each.outcomes.toLocaleString("en")} outcomes`),
  `At most ${most.toLocaleString("en")} a minute in the last hour.`);
}

