// Play against the forecaster: the visitor, or an opponent, chooses outcomes after each forecast.

const NAMES = { arc: "Arc", paper: "the paper's", mean: "the mean" };
const MOST = 3000; // rounds of a game

const OPPONENTS = {
  coin: { name: "a fair coin", plays: () => Math.random() < 0.5 },
  contrary: { name: "a contrarian", plays: (p) => p < 0.5 },
  alternate: { name: "0, 1, 0, 1", plays: (p, t) => t % 2 === 1 },
  streaks: { name: "longer streaks", plays: (p, t) => streak(t) % 2 === 0 },
  drift: {
    name: "a drifting rate",
    plays: (p, t) => Math.random() < 0.5 + 0.45 * Math.sin(t / 40),
  },
};

// Which streak round t is in: they last 20, 30, 45, ... rounds.
function streak(t) {
  let number = 0;
  for (let end = 20, length = 20; t >= end; number += 1) end += length = Math.ceil(length * 1.5);
  return number;
}

// ---- the game ----

class Game {
  constructor(core, player) {
    Object.assign(this, { core, player, rounds: [], crossed: null });
    core.start(player);
    this.forecast = core.predict();
  }

  play(y) {
    const now = { p: this.forecast, y, ...this.core.observe(y) };
    this.rounds.push(now);
    const beaten = this.player === "mean" && now.error > this.core.arcPromise(this.rounds.length);
    if (beaten) this.crossed ??= this.rounds.length;
    this.forecast = this.core.predict();
  }

  get last() {
    return this.rounds.at(-1);
  }
}

// ---- the page ----

async function begin(root) {
  const core = await coreOf(await unpacked(window.truecastCore));
  const $ = (name) => root.querySelector(`[data-part="${name}"]`);
  let game = new Game(core, "arc");
  let before = null; // the game that this one is a replay of
  let running = null;

  const show = () => {
    showForecast($, game);
    $("race").replaceChildren(race(game, before, $("race").clientWidth));
    $("strip").replaceChildren(strip(game, $("strip").clientWidth));
    $("reliability").replaceChildren(reliability(game));
    showFigures($, game);
    showMessage($, game, replay);
    for (const button of root.querySelectorAll("button[data-player]")) {
      button.setAttribute("aria-pressed", button.dataset.player === game.player);
    }
    $("run").textContent = running ? "❚❚ Pause" : "▶ Run";
    Object.assign(root.dataset, { rounds: game.rounds.length, player: game.player });
  };
  const stop = () => {
    cancelAnimationFrame(running);
    running = null;
  };
  const play = (y) => {
    if (game.rounds.length >= MOST) return stop();
    game.play(Number(y));
  };
  const press = (y) => {
    stop();
    play(y);
    flash($(`press${y}`));
    show();
  };
  const opponent = () => {
    play(OPPONENTS[$("opponent").value].plays(game.forecast, game.rounds.length));
  };
  const frame = () => {
    for (let k = 0; k <= game.rounds.length / 60; k += 1) opponent();
    running = game.rounds.length < MOST ? requestAnimationFrame(frame) : null;
    show();
  };
  const restart = (player) => {
    stop();
    before = null;
    game = new Game(core, player);
    show();
  };
  // The same outcomes against another forecaster, which then says other things.
  const replay = (player) => {
    const other = game;
    restart(player);
    other.rounds.forEach((round) => play(round.y));
    before = other;
    show();
  };

  $("press0").addEventListener("click", () => press(0));
  $("press1").addEventListener("click", () => press(1));
  $("step").addEventListener("click", () => { stop(); opponent(); show(); });
  $("run").addEventListener("click", () => {
    if (running) stop();
    else running = requestAnimationFrame(frame);
    show();
  });
  $("restart").addEventListener("click", () => restart(game.player));
  $("opponent").append(...Object.entries(OPPONENTS).map(([key, { name }]) =>
    element("option", { value: key }, name)));
  for (const button of root.querySelectorAll("button[data-player]")) {
    button.addEventListener("click", () => restart(button.dataset.player));
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "0" || event.key === "1") press(event.key);
  });
  addEventListener("resize", show);
  // For those who like to check: what the tests read.
  root.truecast = { get game() { return game; }, restart, press, core };
  show();
  root.dataset.ready = "";
}

function flash(button) {
  button.classList.remove("pressed");
  void button.offsetWidth; // so that the animation starts anew
  button.classList.add("pressed");
}

// ---- words and figures ----

function showForecast($, { forecast, rounds, last }) {
  $("round").textContent = `Round ${counted(rounds.length + 1)}`;
  $("forecast").textContent = percent(forecast);
  $("bar").style.width = percent(forecast, 2).replace(" ", "");
  $("past").textContent = last
    ? `Before: it said ${percent(last.p)}, then came ${last.y}.`
    : "It cannot change any more. Your move.";
}

function showFigures($, { rounds, last }) {
  const figures = last
    ? [counted(rounds.length), last.error.toFixed(2),
      last.certificate < Infinity ? last.certificate.toFixed(2) : "nothing",
      (last.brier / rounds.length).toFixed(3)]
    : ["0", "0", "0", "–"];
  ["count", "error", "certificate", "brier"].forEach((part, i) => {
    $(part).textContent = figures[i];
  });
}

function showMessage($, game, replay) {
  const { player, rounds, last, crossed } = game;
  const message = $("message");
  message.classList.toggle("won", crossed !== null);
  if (crossed !== null) {
    message.replaceChildren(
      element("strong", {}, "You beat it. "),
      `In round ${crossed} the mean was further off than Arc can ever be. `,
      element("button", { type: "button", "data-part": "replay", click: () => replay("arc") },
        "Same outcomes against Arc"));
  } else if (player === "mean") {
    message.textContent = rounds.length
      ? "Nothing protects the mean. Press 1 about twenty times, then 0."
      : "It says the share of 1s so far. You can beat it: press 1 about twenty times, then 0.";
  } else if (last) {
    const used = percent(last.error / last.promise, 0);
    message.replaceChildren(
      element("strong", {}, `${used} of the way to the line. `),
      rounds.length < 25 ? "Nobody can cross it. Try."
        : "Nobody can cross it: that is a theorem, whatever you press. ",
      ...(rounds.length < 25 ? [] : [
        element("button", { type: "button", "data-part": "replay", click: () => replay("mean") },
          "Same outcomes against the mean")]));
  } else {
    message.textContent = "Choose outcomes that make its forecasts look wrong. Press 0 or 1.";
  }
}

// ---- pictures ----

// The error against rounds, and the line that it cannot cross. `before`: another game, thin.
function race(game, before, width) {
  const { rounds, player, core } = game;
  const beatable = player === "mean";
  const [height, left, bottom, top, right] = [width < 500 ? 230 : 265, 30, 24, 8, 8];
  const most = Math.max(40, rounds.length * 1.12, before ? before.rounds.length : 0);
  const proved = beatable ? core.arcPromise : core.promise;
  const errors = [...rounds, ...(before?.rounds ?? [])].map((round) => round.error);
  const room = before ? 1.25 : 1.1;
  const highest = Math.max(proved(most) * 1.25, ...errors.map((error) => error * room));
  const x = scale(0, most, left, width - right);
  const y = scale(0, highest, height - bottom, top);
  const line = (values) => path([[x(0), y(0)], ...values.map((v, i) => [x(i + 1), y(v)])]);
  const curve = Array.from({ length: 101 }, (_, k) => (k / 100) ** 2 * most)
    .map((t) => [x(t), y(proved(t))]);
  const label = `Smooth error ${(game.last?.error ?? 0).toFixed(2)} in total`;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const write = (kind, at, anchor, text) =>
    svg.append(shape("text", { class: kind, x: at[0], y: at[1], "text-anchor": anchor }, text));

  ticks(most, width < 500 ? 4 : 8).forEach((tick, i) =>
    write("tick", [x(tick), height - 6], i ? "middle" : "start", i ? counted(tick) : "0 rounds"));
  for (const tick of ticks(highest, 4)) {
    const level = { y1: y(tick), y2: y(tick) };
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, ...level }));
    write("tick", [left - 5, y(tick) + 4], "end", brief(tick));
  }
  const never = path([...curve, [x(most), top], [x(0), top]]);
  if (!beatable) svg.append(shape("path", { class: "never", d: never }));
  svg.append(shape("path", { class: beatable ? "arc-proof" : "proof", d: path(curve) }));
  if (before?.rounds.length) {
    const { error } = before.last;
    const at = x(before.rounds.length);
    svg.append(shape("path", { class: "before", d: line(before.rounds.map((r) => r.error)) }));
    write("before-word", [Math.min(at, width - 12), Math.max(y(error) - 9, 18)], "end",
      NAMES[before.player] + (width < 500 ? "" : ", same outcomes"));
  }
  if (rounds.length) {
    const certified = rounds.map((round) => round.certificate);
    if (!beatable) svg.append(shape("path", { class: "certificate", d: line(certified) }));
    svg.append(shape("path", { class: "error", d: line(rounds.map((round) => round.error)) }),
      shape("circle", { class: "now", r: 5, cx: x(rounds.length), cy: y(game.last.error) }));
  }
  if (beatable) {
    write("proof-word", [x(most) - 4, y(proved(most)) - 8], "end", "Arc's proof stops here");
  } else {
    write("never-word", [left + 12, top + 22], "start",
      width < 500 ? "Proved: never up here" : "Proved: never up here, whatever you press");
  }
  return svg;
}

// The last rounds: forecasts as a line, outcomes as dots above and below; the next one stands out.
function strip(game, width) {
  const [height, shown] = [84, width < 500 ? 30 : 60];
  const last = game.rounds.slice(-shown);
  const x = scale(0, shown, 8, width - 8);
  const y = scale(0, 1, height - 12, 12);
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The last rounds",
  });
  for (const level of [0, 1]) {
    svg.append(shape("line", { class: "grid", x1: 0, x2: width, y1: y(level), y2: y(level) }));
  }
  const points = [...last.map((round, i) => [x(i), y(round.p)]),
    [x(last.length), y(game.forecast)]];
  svg.append(shape("path", { class: "forecasts", d: path(points) }));
  last.forEach((round, i) => svg.append(
    shape("circle", { class: round.y ? "one" : "zero", r: 4, cx: x(i), cy: y(round.y) })));
  svg.append(shape("circle", { class: "next", r: 6, cx: x(last.length), cy: y(game.forecast) }));
  return svg;
}

// Ten bins: how often 1 came where it said so much. Circles grow with the number of rounds.
function reliability(game) {
  const { svg, x, y } = square(230, { left: 42, bottom: 24 }, "Forecasts and what came of them");
  for (const { zeros, ones, sum } of game.core.said()) {
    const count = zeros + ones;
    if (!count) continue;
    const radius = 3 + 11 * Math.sqrt(count / game.rounds.length);
    const at = { cx: x(sum / count), cy: y(ones / count) };
    svg.append(shape("circle", { class: "bin", r: radius, ...at }));
  }
  return svg;
}

const playground = document.querySelector(".tc-play");
begin(playground).catch((error) => {
  playground.querySelector('[data-part="message"]').textContent =
    `This page needs WebAssembly and could not start it: ${error.message}`;
});
