// What to do next, as commands to copy: with this host and this stream.

import { element, quoted } from "./dom.js";
import { token } from "./service.js";

function curl(path, body) {
  const allowed = token() ? ' \\\n  -H "Authorization: Bearer $TRUECAST_TOKEN"' : "";
  return `curl ${quoted(location.origin + path)}${allowed} \\\n  --json ${quoted(
    JSON.stringify(body))}`;
}

function block(words, command) {
  const copy = element("button", { type: "button", class: "copy", click: async () => {
    await navigator.clipboard.writeText(command);
    copy.textContent = "Copied";
  } }, "Copy");
  return element("div", { class: "command" }, element("p", {}, words),
    element("pre", { tabindex: "0" }, command), navigator.clipboard ? copy : null);
}

const at = (name, what) => `/streams/${encodeURIComponent(name)}/${what}`;

export function create() {
  const name = "my-model";
  return [element("p", {}, "There is no stream yet. A stream is one model, or one judge, whose "
    + "probabilities should be calibrated."),
  block("Create one:", curl("/streams", { name })), ...next({ name, classes: null })];
}

// For a stream: what it still lacks.
export function next(view) {
  const labels = view.classes;
  const score = labels ? labels.map((_, k) => (k ? 0.4 / (labels.length - 1) : 0.6)) : 0.83;
  const forecast = block("Send it the model\u2019s probability, and act on the p that it answers:",
    curl(at(view.name, "forecasts"), { id: "order-1", score }));
  const outcome = block("Later, say what happened:", curl(at(view.name, "outcomes"),
    { id: "order-1", outcome: labels ? labels[0] : 1 }));
  return [forecast, outcome];
}
