// Reads and measures a file beside the page, so that the page stays alive: csv.js and core.js.

let core;
let bytes;

onmessage = async ({ data }) => {
  try {
    core ??= await coreOf(data.wasm);
    bytes = data.bytes ?? bytes;
    postMessage(measured(data.chosen));
  } catch (error) {
    if (error instanceof FileProblem) return postMessage({ problem: error.message });
    core = undefined; // what is left of it after a failure is not to be trusted
    const full = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
    postMessage({
      problem: full ? "the file is too large for a page: use truecast measure"
        : `the page failed: ${error.message}`,
    });
  }
};

// Columns alone, with null where none suggests itself, or columns and figures.
function measured(chosen) {
  const began = performance.now();
  const header = readHeader(bytes);
  const found = columnsOf(bytes, header, chosen);
  const columns = { names: header.columns, ...found };
  if (found.outcome === null || found.score === null) return { columns };
  if (found.outcome === found.score) {
    return { columns, problem: "outcome and score are the same column: choose another" };
  }
  const later = (error) => ({ columns, problem: error.message });
  try {
    const { p, y } = readRounds(bytes, header, { ...found, percent: chosen.percent });
    const figures = core.measure(p, y);
    const parts = { bins: core.bins(), curve: core.curve(), chance: core.chance() };
    return { columns, figures, ...parts, seconds: (performance.now() - began) / 1000 };
  } catch (error) {
    if (error instanceof FileProblem) return later(error);
    throw error;
  }
}
