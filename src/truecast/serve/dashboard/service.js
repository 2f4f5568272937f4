// Talks to the service: JSON with a token, and its events for as long as the page is looked at.

const KEY = "truecast-token";
const SILENCE = 25_000; // ms without a sign of life, which comes every 10 s
const LONGEST = 15_000; // ms between attempts

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the service answered ${status}`);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEY);
export const setToken = (text) => sessionStorage.setItem(KEY, text);
export const forgetToken = () => sessionStorage.removeItem(KEY);

function headers(accept) {
  const kept = token();
  return kept ? { accept, authorization: `Bearer ${kept}` } : { accept };
}

async function answered(path, accept, signal) {
  const response = await fetch(path, { headers: headers(accept), cache: "no-store", signal });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(response.status, problem);
}

// What a path answers, within `SILENCE`.
export async function read(path) {
  const response = await answered(path, "application/json", AbortSignal.timeout(SILENCE));
  return response.json();
}

// Events of a stream of bytes, as the standard cuts them; a comment calls `beat`, too.
export async function* eventsOf(body, beat) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    beat();
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { kind: "message", data: "" };
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event.kind = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      if (event.data) yield { kind: event.kind, data: JSON.parse(event.data) };
    }
  }
}

// Listens for ever. hear(kind, data) gets each event; state(name, more) the connection: "live" at
// every sign of life, "gone" (more: why, and when it is tried again), "refused" (more: the error).
export class Listener {
  constructor(hear, state) {
    this.hear = hear;
    this.state = state;
    this.failures = 0;
    this.stopped = true;
  }

  start() {
    if (!this.stopped) return;
    this.stopped = false;
    this.listen();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    clearTimeout(this.timer);
  }

  again() {
    this.stop();
    this.start();
  }

  async listen() {
    const abort = new AbortController();
    this.abort = abort;
    let watchdog;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(new Error("it has gone silent")), SILENCE);
    };
    alive();
    let why = "it closed the connection";
    try {
      const response = await answered("/events", "text/event-stream", abort.signal);
      this.failures = 0;
      this.state("live");
      const beat = () => {
        alive();
        if (abort === this.abort) this.state("live");
      };
      for await (const { kind, data } of eventsOf(response.body, beat)) {
        if (abort === this.abort) this.hear(kind, data);
      }
    } catch (error) {
      if (error instanceof Refused && [401, 403].includes(error.status)) {
        clearTimeout(watchdog);
        if (this.stopped || abort !== this.abort) return;
        this.stopped = true;
        this.state("refused", error);
        return;
      }
      why = abort.signal.aborted ? abort.signal.reason.message
        : error instanceof Refused ? error.message : "it does not answer";
    }
    clearTimeout(watchdog);
    if (this.stopped || abort !== this.abort) return;
    const wait = Math.min(LONGEST, 1000 * 2 ** this.failures) * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.state("gone", { why, next: Date.now() + wait });
    this.timer = setTimeout(() => this.listen(), wait);
  }
}
