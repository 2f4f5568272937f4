// A stream's page: the verdict, why, and everything that it rests on.

import { ago, counted, duration, element, evidence, figure, moment, percent, rounds, say }
  from "./dom.js";
import { Chart, course, evidenceCourse, key, level, rates, reliability } from "./charts.js";
import { next } from "./commands.js";
import { mark } from "./list.js";

export class Stream {
  constructor(main, name, announce) {
    this.name = name;
    this.announce = announce;
    this.label = null; // the class that is shown
    this.title = element("h1", {}, element("bdi", {}, name));
    this.facts = element("p", { class: "quiet" }, "Loading …");
    this.verdict = element("section", { class: "verdict", hidden: true, "aria-label": "Verdict" });
    this.tiles = element("dl", { class: "tiles" });
    this.commands = element("div");
    this.choice = element("select", { id: "class", change: () => this.choose() });
    this.shown = element("span", { class: "quiet" });
    this.classes = element("p", { class: "tools", hidden: true },
      element("label", { for: "class" }, "Class"), this.choice, this.shown);
    this.scores = element("div", { class: "scroll", tabindex: "0", role: "region",
      "aria-label": "Scores" });
    this.groups = section("Groups", "");
    this.errors = section("Last errors", "Requests about this stream that the service refused.");
    this.charts = pictures();
    this.pictures = element("section", { hidden: true, "aria-label": "Pictures" },
      element("h2", {}, "Is it calibrated?"), this.classes,
      figures(this.charts.before, this.charts.after), element("h2", {}, "Scores"), this.scores,
      element("h2", {}, "Over time"), figures(this.charts.evidence, this.charts.proved,
        this.charts.course, this.charts.unresolved, this.charts.rates));
    const back = element("a", { class: "back", href: "/", "data-link": true }, "All streams");
    main.replaceChildren(back, this.title, this.facts, this.verdict, this.tiles, this.commands,
      this.pictures, this.groups.whole, this.errors.whole);
  }

  close() {
    for (const chart of Object.values(this.charts)) chart.hide();
  }

  set(view) {
    this.view = view;
    this.drawHead(view);
    this.drawCommands(view);
    this.drawSides(view);
    this.charts.course.figure.hidden = Boolean(view.classes);
    course(this.charts.course, view.course);
    level(this.charts.proved, view.course, "per_round", figure);
    level(this.charts.unresolved, view.course, "unresolved", counted, "curve");
    rates(this.charts.rates, view.rates, view.now);
    this.drawGroups(view);
    this.drawErrors(view);
  }

  drawHead(view) {
    const kind = view.classes ? `${counted(view.classes.length)} classes` : "yes or no";
    say(this.facts, [kind, rounds(view.rounds), `created ${moment(view.created)}`, view.note]
      .filter(Boolean).join(" · "));
    const { kind: found, headline, reason } = view.verdict;
    // whether forecasts are off now: if not, the alarm was long ago
    const now = { before: headline.startsWith("Before: not calibrated"), after: found === "off" };
    const alarms = view.sides.flatMap((side) => ["after", "before"].map((half) =>
      alarm(side, half, now[half]))).filter(Boolean).slice(0, 4);
    const why = found === "off" ? null : reason; // the alarm says it, with the viewer's time
    const words = [headline, why, ...alarms].filter(Boolean);
    if (this.words !== words.join()) {
      if (this.words && this.headline !== headline) this.announce(`${this.name}: ${headline}`);
      this.words = words.join();
      this.headline = headline;
      this.verdict.hidden = false;
      this.verdict.className = `verdict ${found}`;
      this.verdict.replaceChildren(element("p", {}, mark(found), headline),
        ...words.slice(1).map((text) => element("p", {}, text)));
    }
    this.drawTiles(view);
  }

  drawTiles(view) {
    const side = view.sides[0];
    const { count, most, oldest } = view.outstanding;
    const waiting = oldest === null ? "none" : `the oldest for ${duration(view.now - oldest)}`;
    const full = count >= 0.9 * most;
    const given = view.given_up ? `; ${counted(view.given_up)} given up` : "";
    const scored = view.rounds > 0;
    const tiles = [
      ["Outcomes learned", counted(view.rounds), view.last_outcome === null
        ? ["none yet"] : ["last ", ago(view.last_outcome)]],
      ["Outcomes outstanding", counted(count), [full
        ? element("span", { class: "flag" }, `nearly full: room for ${counted(most)}, then the `
          + "oldest are given up") : `${waiting}; room for ${counted(most)}${given}`]],
      scored && !view.classes && ["Brier score", figure(side.after.brier),
        [`the model: ${figure(side.before.brier)}`]],
      scored && !view.classes && ["Smooth calibration error", figure(side.after.smooth),
        [`the model: ${figure(side.before.smooth)}`]],
      scored && ["Proved distance, a round", `\u2264 ${figure(view.per_round)}`,
        [view.classes ? "of the worst class" : "for any outcomes"]],
    ].filter(Boolean);
    this.tiles.replaceChildren(...tiles.map(([name, value, more]) => element("div", {},
      element("dt", {}, name), element("dd", {}, value),
      element("dd", { class: "more" }, ...more))));
  }

  drawCommands(view) {
    const missing = !view.rounds;
    this.pictures.hidden = missing;
    if (missing && !this.commands.firstChild) this.commands.replaceChildren(...next(view));
    if (!missing) this.commands.replaceChildren();
  }

  choose() {
    this.label = this.choice.value;
    this.drawSides(this.view);
  }

  drawSides(view) {
    if (!view.rounds) return;
    this.classes.hidden = !view.classes;
    say(this.shown, view.sides_total > view.sides.length
      ? `the ${counted(view.sides.length)} worst of ${counted(view.sides_total)}` : "worst first");
    const labels = view.sides.map((side) => side.label);
    if (view.classes && this.labels !== labels.join()) {
      this.labels = labels.join();
      if (!labels.includes(this.label)) this.label = labels[0];
      this.choice.replaceChildren(...labels.map((label) => element("option", { value: label,
        selected: label === this.label }, label)));
    }
    const side = view.sides.find((each) => each.label === this.label) ?? view.sides[0];
    reliability(this.charts.before, side.before);
    reliability(this.charts.after, side.after);
    this.drawEvidence(view, side);
    this.scores.replaceChildren(scores(side));
  }

  drawEvidence(view, side) {
    evidenceCourse(this.charts.evidence, view.course, side);
    const whole = view.classes ? "Lines: all classes together. " : "";
    const words = this.charts.evidence.caption.querySelector(".promise");
    say(words, whole + promise(side.after.evidence));
  }

  drawGroups(view) {
    const total = view.groups_total ?? view.groups.length;
    this.groups.whole.hidden = !view.groups.length;
    if (!view.groups.length) return;
    const more = total > view.groups.length
      ? ` The first ${counted(view.groups.length)} of ${counted(total)}.` : "";
    const order = view.classes
      ? "There is no evidence by group with several classes; rates are of the class said to be"
        + " likeliest."
      : "Most evidence first.";
    say(this.groups.words, `Groups that a forecast names. ${order}${more}`);
    const means = view.groups.some((group) => group.rate !== null);
    const lines = view.groups.map((group) => [
      element("bdi", { class: "name" }, String(group.name)),
      ...(view.classes ? [] : [element("span", { class: group.alarm ? "flag" : null },
        `${group.alarm ? "alarm, " : ""}${evidence(group.evidence)}`)]), counted(group.rounds),
      ...(means ? [group.rate, group.before, group.after].map(percent) : [])]);
    this.groups.body.replaceChildren(table(["group", ...(view.classes ? [] : ["evidence"]),
      "outcomes", ...(means ? ["came true", "model", "answered"] : [])], lines));
  }

  drawErrors(view) {
    this.errors.whole.hidden = !view.errors.length;
    const lines = view.errors.map((error) => [ago(error.at), String(error.status),
      element("span", {}, `${error.title}${error.count > 1 ? ` (${counted(error.count)} times)` : ""}`,
        element("span", { class: "headline" }, error.detail))]);
    this.errors.body.replaceChildren(table(["when", "status", "what"], lines, "errors"));
  }
}

function section(title, words) {
  const said = element("p", { class: "quiet" }, words);
  const body = element("div", { class: "scroll", tabindex: "0", role: "region",
    "aria-label": title });
  return { words: said, body, whole: element("section", { hidden: true },
    element("h2", {}, title), said, body) };
}

const figures = (...charts) => element("div", { class: "figures" },
  ...charts.map((chart) => chart.figure));

function pictures() {
  const chance = key("band", "what chance gives");
  const ranges = () => [key("blue dot", "came more often than said"),
    key("orange dot", "less often"), chance.cloneNode(true), "A diamond is beyond chance."];
  return {
    before: new Chart("Before: what the model said", ...ranges()),
    after: new Chart("After: what was answered", ...ranges()),
    evidence: new Chart("Evidence against calibration", key("blue line", "the model"),
      key("green line", "answered"), key("band", "when it began, as far as can be told"),
      element("span", { class: "promise" })),
    proved: new Chart("Proved distance to calibration, a round",
      "The forecasts answered so far are at most this far from calibrated ones, for any outcomes; "
      + "those still awaited count at their worst."),
    course: new Chart("What came true", key("blue dot", "came true"),
      key("band", "chance, around what the model said"), key("green line", "answered")),
    unresolved: new Chart("Outcomes outstanding", "Forecasts that await their outcome."),
    rates: new Chart("The last hour", key("blue", "forecasts"), key("green", "outcomes")),
  };
}

// What the dashed line stands for.
function promise(watched) {
  if (watched.alpha !== null) {
    return `If forecasts are right, the chance that it ever reaches the dashed line is at most `
      + `${percent(watched.alpha)}.`;
  }
  return `If forecasts are right, it reaches the dashed line at most once in `
    + `${counted(watched.mean_time)} of them, on average. After an alarm it starts anew.`;
}

// What an alarm found, with its time in the viewer's zone.
function alarm(side, half, still) {
  const { alarm: found, alarms } = side[half].evidence;
  if (!found) return null;
  const whose = half === "after" ? "answered forecasts" : "the model";
  const which = alarms > 1 ? `The last of ${counted(alarms)} alarms` : "Alarm";
  const came = found.at === null ? "" : `, ${moment(found.at)}`;
  const what = found.since === null ? found.words
    : found.words.replace(found.since_words, moment(found.since));
  const past = still ? "" : " That is long ago, and there was none since.";
  return `${which}${came}, ${whose}: ${what}.${past}`;
}

// After how many outcomes that was, if they have grown since.
function then(side) {
  const known = side.after.smooth_by_chance_rounds;
  return known === side.rounds ? "" : `, after ${rounds(known)}`;
}

function scores(side) {
  const { before, after, rolling } = side;
  const interval = (half) => `${figure(half.smooth_lower)} to ${figure(half.smooth_upper)}`;
  const lines = [
    ["Brier score (lower is better)", figure(before.brier), figure(after.brier)],
    ["\u2003always saying the average", figure(side.average_brier), figure(side.average_brier)],
    rolling && [`\u2003the average of the last ${rolling.window} outcomes`, figure(rolling.brier),
      figure(rolling.brier)],
    before.log_loss !== null && ["Log loss", figure(before.log_loss), figure(after.log_loss)],
    ["Smooth calibration error", figure(before.smooth), figure(after.smooth)],
    before.smooth_by_chance !== null && [`\u2003the same by chance${then(side)}`,
      figure(before.smooth_by_chance), figure(after.smooth_by_chance)],
    before.smooth_lower !== null && ["\u200395 % interval, at all times", interval(before),
      interval(after)],
    ["Mean forecast", percent(before.mean), percent(after.mean)],
    ["Mean outcome", percent(side.rate), percent(side.rate)],
    ...betting(before.evidence, after.evidence),
  ].filter(Boolean);
  return table(["of the same outcomes", "before", "after"], lines, "scores");
}

const betting = (before, after) => [
  ["Evidence against", evidence(before.now), evidence(after.now)],
  ["\u2003the most so far", evidence(before.peak), evidence(after.peak)],
  ["\u2003alarm from", evidence(before.threshold), evidence(after.threshold)],
  ["\u2003alarms", counted(before.alarms), counted(after.alarms)],
];

function table(names, lines, kind = null) {
  return element("table", { class: kind },
    element("thead", {}, element("tr", {}, ...names.map((name) =>
      element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...lines.map(([first, ...others]) => element("tr", {},
      element("th", { scope: "row" }, first),
      ...others.map((other) => element("td", {}, other))))));
}

