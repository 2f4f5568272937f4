// The compiled core (core.cpp) with names: games, and measures of a file.

const PLAYERS = { arc: 0, paper: 1, mean: 2 };
const CELLS = 20; // of the paper's forecaster: its choice for 400 rounds

// In the order in which `measure` of core.cpp gives them.
const FIGURES = [
  "rounds", "forecasts", "mean_outcome", "mean_forecast", "brier", "log", "brier_recalibrated",
  "log_recalibrated", "smooth_calibration_error", "lower_distance_at_most",
  "laplace_calibration_error", "calibration_error_by_value", "binned_calibration_error",
  "largest_bin_gap", "calibration_decision_loss", "u_calibration_error",
];
const BINS = 15;
const STEPS = 64; // places at which the band of chance is computed
const RESAMPLES = 200;

async function coreOf(bytes) {
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const wasm = instance.exports;
  wasm._initialize();
  const numbers = (at, count) => Array.from(new Float64Array(wasm.memory.buffer, at, count));
  const triples = (flat, names) =>
    Array.from({ length: flat.length / 3 }, (_, k) =>
      Object.fromEntries(names.map((name, i) => [name, flat[3 * k + i]])));

  return {
    // A game. All bounds and errors are totals over the rounds so far.
    start: (player) => wasm.start(PLAYERS[player], CELLS),
    predict: () => wasm.predict(),
    observe(y) {
      const [error, certificate, promise, brier] = numbers(wasm.observe(y), 4);
      return { error, certificate, promise, brier };
    },
    promise: (rounds) => wasm.promise(rounds),
    arcPromise: (rounds) => wasm.arc_promise(rounds),
    said: () => triples(numbers(wasm.said(), 30), ["zeros", "ones", "sum"]),

    // A file: forecasts in [0, 1] and outcomes 0 or 1, checked, from one round on.
    measure(p, y) {
      const atP = wasm.room_p(p.length);
      const atY = wasm.room_y(y.length);
      new Float64Array(wasm.memory.buffer, atP, p.length).set(p);
      new Uint8Array(wasm.memory.buffer, atY, y.length).set(y);
      const found = numbers(wasm.measure(), FIGURES.length);
      const figures = Object.fromEntries(FIGURES.map((name, i) => [name, found[i]]));
      const { brier_recalibrated, log_recalibrated, ...rest } = figures;
      const rate = figures.mean_outcome;
      const entropy = (part) => (part > 0 ? -part * Math.log(part) : 0);
      return {
        ...rest,
        brier: decomposed(figures.brier, brier_recalibrated, rate * (1 - rate)),
        log: decomposed(figures.log, log_recalibrated, entropy(rate) + entropy(1 - rate)),
      };
    },
    bins: () => triples(numbers(wasm.bins(), 3 * BINS), ["zeros", "ones", "forecast"]),
    curve() {
      const at = wasm.curve();
      const [blocks] = numbers(at, 1);
      return triples(numbers(at + 8, 3 * blocks), ["lower", "upper", "rate"]);
    },
    chance() {
      const found = numbers(wasm.chance(RESAMPLES, STEPS), 2 + 2 * (STEPS + 1));
      const [if_calibrated, p_value] = found;
      const lower = found.slice(2, 3 + STEPS);
      return { if_calibrated, p_value, resamples: RESAMPLES, lower, upper: found.slice(3 + STEPS) };
    },
  };
}

// score = miscalibration - discrimination + uncertainty; what is never negative must not become so.
function decomposed(score, recalibrated, uncertainty) {
  const miscalibration = Math.max(0, score - recalibrated);
  const discrimination = Math.max(0, uncertainty - recalibrated);
  return { score, miscalibration, discrimination, uncertainty };
}
