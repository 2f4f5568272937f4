// Small helpers to draw: elements, scales, numbers as people read them.

const SVG = "http://www.w3.org/2000/svg";

// element("p", { class: "note" }, "text", child): properties that are functions are listeners.
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const scale = (from, to, low, high) => (x) => low + ((x - from) / (to - from)) * (high - low);
const path = (points) => points.map(([x, y], i) =>
  `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// 1, 2 or 5 times a power of ten: steps between ticks, about `count` of them.
function ticks(most, count) {
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= 0.8 * rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, k) => k * step);
}

const percent = (p, digits = 1) => `${(100 * p).toFixed(digits)} %`;
const counted = (n) => n.toLocaleString("en");
const brief = (x) => (Number.isInteger(x) ? String(x) : String(Number(x.toPrecision(6))));

// The square of a reliability diagram: axes from 0 to 1 and the diagonal; returns svg and places.
function square(size, { left, bottom, top = 8, right = 10 }, label) {
  const x = scale(0, 1, left, size - right);
  const y = scale(0, 1, size - bottom, top);
  const svg = shape("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label });
  for (const tick of [0, 0.5, 1]) {
    svg.append(
      shape("line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) }),
      shape("text", { class: "tick", x: x(tick), y: y(0) + 15,
        "text-anchor": tick < 1 ? "middle" : "end" }, percent(tick, 0)),
      shape("text", { class: "tick", x: x(0) - 5, y: y(tick) + 4, "text-anchor": "end" },
        percent(tick, 0)));
  }
  svg.append(shape("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  return { svg, x, y };
}
