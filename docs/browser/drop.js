// Drop a CSV, see the report: a worker reads and measures it, this page shows what it found.

const EXAMPLE = "late-flights.csv";
const MOST_BYTES = 1.5e9;

// Flights of examples/scores.csv, packed by scripts/docs_browser.py: three digits a flight.
function example() {
  const rows = FLIGHTS.match(/.../g).map((digits) => parseInt(digits, 36))
    .map((both) => `${(both >> 1) / 10000},${both & 1}`);
  return ["score,outcome", ...rows, ""].join("\n");
}

async function begin(root) {
  const $ = (name) => root.querySelector(`[data-part="${name}"]`);
  const wasm = await unpacked(window.truecastCore);
  const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
  let file = null;

  const say = (text, kind = "") => {
    $("status").textContent = text;
    $("status").className = `tc-status ${kind}`;
  };
  const ask = (message) => {
    root.removeAttribute("data-done");
    say(`Measuring ${file.name} …`, "busy");
    worker.postMessage({ wasm, ...message }, message.bytes ? [message.bytes.buffer] : []);
  };
  const chosen = () => ({
    outcome: number($("outcome").value),
    score: number($("score").value),
    percent: $("percent").checked,
  });
  const take = async (next) => {
    if (!next) return;
    file = next;
    $("report").replaceChildren();
    if (file.size > MOST_BYTES) {
      return say(`${file.name} is too large for a page: use truecast measure`, "problem");
    }
    say(`Reading ${file.name} …`, "busy");
    $("percent").checked = false;
    const bytes = new Uint8Array(await file.arrayBuffer());
    ask({ bytes, chosen: { percent: false } });
  };

  worker.onmessage = ({ data }) => {
    if (data.columns) showColumns($, file.name, data.columns);
    if (data.problem) {
      $("report").replaceChildren();
      say(`${file.name}, ${data.problem}`, "problem");
    } else if (data.figures) {
      const took = `${counted(data.figures.rounds)} rows in ${data.seconds.toFixed(2)} s, here`;
      say(`${took}.`);
      $("report").replaceChildren(report(data, file.name));
    } else {
      say(`${file.name}: which column is which? Choose above.`, "problem");
    }
    root.truecast = data;
    root.dataset.done = "";
  };
  worker.onerror = (event) => say(`the page failed: ${event.message}`, "problem");

  $("file").addEventListener("change", (event) => {
    take(event.target.files[0]);
    event.target.value = ""; // so that the same file can be chosen again
  });
  $("example").addEventListener("click", () => take(new File([example()], EXAMPLE)));
  $("columns").addEventListener("change", () => ask({ chosen: chosen() }));
  const zone = $("zone");
  // anywhere on the page: a file dropped beside the field would replace the page
  addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) zone.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  root.dataset.ready = "";
}

const number = (text) => (text === "" ? undefined : Number(text));

function showColumns($, name, { names, outcome, score }) {
  $("columns").hidden = false;
  $("name").textContent = name;
  for (const [part, at] of [["outcome", outcome], ["score", score]]) {
    $(part).replaceChildren(
      ...(at === null ? [element("option", { value: "" }, "choose …")] : []),
      ...names.map((each, i) => element("option", { value: i, selected: i === at && "" }, each)));
    $(part).value = at ?? "";
  }
}

// ---- the report ----

function report(found, name) {
  const { figures, columns } = found;
  const options = `--outcome ${quoted(columns.names[columns.outcome])} ` +
    `--score ${quoted(columns.names[columns.score])}`;
  return element("div", { class: "tc-report" },
    element("div", { class: "tc-card tc-verdict" }, ...verdict(found)),
    element("div", { class: "tc-card" },
      element("p", { class: "tc-title" }, "Said (across), came (up) ",
        element("span", { class: "tc-key curve" }, "best increasing curve"), " ",
        element("span", { class: "tc-key band" }, "chance, 90 %"), " ",
        element("span", { class: "tc-key bins" }, "15 bins")),
      diagram(found)),
    element("div", { class: "tc-card" }, ...tables(figures, found.chance)),
    element("p", { class: "tc-note tc-wide" }, "The same by the command: ",
      element("code", {}, `truecast measure ${quoted(name)} ${options}`)));
}

const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// First what matters: is the error more than chance, and are the forecasts better than the average?
function verdict({ figures, chance }) {
  const { smooth_calibration_error: error, brier, mean_outcome, mean_forecast } = figures;
  const sure = chance.p_value < 0.05;
  const p = chance.p_value <= 1 / (chance.resamples + 1)
    ? `p < ${1 / chance.resamples}` : `p = ${chance.p_value.toPrecision(2)}`;
  const gap = mean_forecast - mean_outcome;
  const best = brier.score - brier.miscalibration;
  const gain = 1 - brier.score / brier.uncertainty;
  return [
    element("p", { class: sure ? "tc-off" : "tc-fine" },
      sure ? "Not calibrated: more than chance explains."
        : "Calibrated, as far as chance lets us tell."),
    element("p", {}, "The smooth calibration error is ", element("b", {}, error.toFixed(4)),
      `; chance alone would make about ${chance.if_calibrated.toFixed(4)} (${p}). `,
      `On average it says ${percent(mean_forecast)} where ${percent(mean_outcome)} came` +
      (sure && Math.abs(gap) > 0.5 * error ? `: too ${gap > 0 ? "high" : "low"}.` : ".")),
    element("p", {}, "Brier score ", element("b", {}, brier.score.toFixed(4)), ": ",
      gain > 0 ? `${percent(gain)} better than always saying the average.`
        : "worse than always saying the average.",
      ` In hindsight, recalibrated by the curve: ${best.toFixed(4)}.`),
  ];
}

const ROWS = [
  ["Proper scores (lower is better)", [
    ["Brier score", (f) => f.brier.score],
    ["log loss", (f) => f.log.score]]],
  ["Calibration", [
    ["smooth calibration error", (f) => f.smooth_calibration_error],
    ["… by chance, if calibrated", (f, chance) => chance.if_calibrated, 3],
    ["lower distance, by arc, at most", (f) => f.lower_distance_at_most],
    ["ECE, 15 bins of equal width", (f) => f.binned_calibration_error],
    ["… largest gap", (f) => f.largest_bin_gap],
    ["Laplace kernel", (f) => f.laplace_calibration_error],
    ["by value", (f) => f.calibration_error_by_value]]],
  ["What miscalibration can cost", [
    ["calibration decision loss", (f) => f.calibration_decision_loss],
    ["U-calibration error", (f) => f.u_calibration_error]]],
  ["Brier = miscalibration − discrimination + uncertainty", [
    ["miscalibration", (f) => f.brier.miscalibration],
    ["discrimination", (f) => f.brier.discrimination],
    ["uncertainty", (f) => f.brier.uncertainty]]],
];

function tables(figures, chance) {
  const head = element("p", { class: "tc-title" },
    `${counted(figures.rounds)} rounds, ${counted(figures.forecasts)} distinct probabilities`);
  const rows = ROWS.flatMap(([about, each]) => [
    element("tr", {}, element("th", { colspan: 2, scope: "colgroup" }, about)),
    ...each.map(([name, of, digits = 6]) => element("tr", {},
      element("td", {}, name),
      element("td", {}, shown(of(figures, chance), digits)))),
  ]);
  return [head, element("table", { class: "tc-table" }, element("tbody", {}, ...rows))];
}

const shown = (figure, digits) => (figure === Infinity ? "infinite"
  : digits === 3 ? `about ${figure.toPrecision(2)}` : figure.toFixed(digits));

// The curve over the band of chance, the bins as circles, and how often each was said below.
function diagram({ figures, bins, curve, chance }) {
  const size = 420;
  const label = "Forecasts and what came of them";
  const { svg, x, y } = square(size, { left: 46, bottom: 74 }, label);
  const [first, last] = [curve[0].lower, curve.at(-1).upper];
  const steps = chance.lower.length - 1;
  const places = [...Array(steps + 1).keys()].filter((k) => k / steps >= first - 1 / steps
    && k / steps <= last + 1 / steps);
  const within = (p) => Math.min(Math.max(p, first), last);
  const side = (rates) => places.map((k) => [x(within(k / steps)), y(rates[k])]);
  svg.append(shape("path", { class: "band",
    d: `${path([...side(chance.lower), ...side(chance.upper).reverse()])}Z` }));
  const most = Math.max(...bins.map(({ zeros, ones }) => zeros + ones));
  bins.forEach(({ zeros, ones, forecast }, k) => {
    const count = zeros + ones;
    if (!count) return;
    const tall = Math.max(1, 30 * (count / most));
    const wide = x(1 / bins.length) - x(0) - 2;
    const text = `${percent(k / 15)} to ${percent((k + 1) / 15)}: ${counted(count)} rounds, said ` +
      `${percent(forecast, 2)}, came ${percent(ones / count, 2)}`;
    svg.append(
      shape("rect", { class: "count", x: x(k / bins.length) + 1, y: size - 6 - tall, width: wide,
        height: tall }),
      shape("circle", { class: "bin", r: 3 + 9 * Math.sqrt(count / figures.rounds),
        cx: x(forecast), cy: y(ones / count) }, shape("title", {}, text)));
  });
  const corners = curve.flatMap(({ lower, upper, rate }) =>
    [[x(lower), y(rate)], [x(upper), y(rate)]]);
  svg.append(
    shape("path", { class: "curve", d: path(corners) }),
    shape("text", { class: "tick", x: 40, y: size - 8, "text-anchor": "end" }, "rounds"));
  return svg;
}

const page = document.querySelector(".tc-drop");
begin(page).catch((error) => {
  page.querySelector('[data-part="status"]').textContent =
    `This page needs WebAssembly and could not start it: ${error.message}`;
});
