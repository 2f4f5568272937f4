// CSV and its relatives to forecasts and outcomes, by the rules of `truecast measure`
// (src/truecast/files: delimited.py, columns.py, cells.py). Errors say which line, and what to do.

const words = (text) => new Set(text.split(" "));

// What names of columns are made of: columns.py has the same lists, and a test compares them.
const SCORES = words(
  "prob probs proba probas probability probabilities yprob yproba yscore ypred yhat phat hat " +
  "score scores forecast forecasts forecasted prediction predictions predict predicted pred " +
  "preds confidence conf likelihood chance");
const OUTCOMES = words(
  "outcome outcomes label labels target targets actual actuals observed observation event " +
  "truth ytrue happened occurred won win winner result success response class");
const LETTERS = { score: words("p"), outcome: words("y") };
const BESIDE = {
  score: words("y true yes pos positive 1 model"),
  outcome: words("true test obs bin binary"),
};
const ABOUT = words(
  "id ids key uuid name names date time timestamp day month year hour at ts version type kind " +
  "text error errors loss brier std stderr se var variance low high lower upper ci min max " +
  "rank count threshold cutoff weight weights 0 neg negative no false");
const PARTS = /[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+|(?:(?![a-zA-Z])\p{L})+/gu;
const SAMPLE = 1000; // rows that are looked at to choose between columns

class FileProblem extends Error {}

const problem = (line, text) => new FileProblem(line ? `line ${line}: ${text}` : text);
const QUOTE = 34;
const NEWLINE = 10;
const RETURN = 13;
const decoder = new TextDecoder();

// The header: the columns, the separator, and where the rows begin.
function readHeader(bytes) {
  const from = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let start = from;
  let line = 1;
  while (bytes[start] === NEWLINE || bytes[start] === RETURN) line += bytes[start++] === NEWLINE;
  if (start >= bytes.length) throw problem(0, "the file is empty");
  if (bytes.subarray(0, 4).join() === "80,65,82,49") {
    throw problem(0, "this is Parquet; the page reads CSV. `truecast measure` reads both");
  }
  let end = bytes.indexOf(NEWLINE, start);
  if (end < 0) end = bytes.length;
  const header = bytes.subarray(start, end);
  if (header.includes(0)) throw problem(line, "this is no text: there is a zero byte");
  const text = decoder.decode(header).replace(/\r$/, "");
  const bare = text.replace(/"[^"]*"/g, "");
  const count = (mark) => bare.split(mark).length;
  const separator = [",", "\t", ";", "|"].reduce((a, b) => (count(b) > count(a) ? b : a));
  const columns = fieldsOf(text, separator).map((field) => field.trim());
  if (!columns.some(isName)) {
    throw problem(line, `${columns.length} columns and no header: give it one`);
  }
  if (columns.length < 2) throw problem(line, `one column, "${columns[0]}": two are needed`);
  return { columns, separator, start: end + 1, line: line + 1 };
}

function fieldsOf(text, separator) {
  const fields = [];
  let at = 0;
  while (at <= text.length) {
    if (text[at] === '"') {
      let end = at + 1;
      while (end < text.length && (text[end] !== '"' || text[end + 1] === '"')) {
        end += text[end] === '"' ? 2 : 1;
      }
      fields.push(text.slice(at + 1, end).replaceAll('""', '"'));
      at = end + 2;
    } else {
      const end = text.indexOf(separator, at);
      fields.push(text.slice(at, end < 0 ? text.length : end));
      at = end < 0 ? text.length + 1 : end + 1;
    }
  }
  return fields;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const VALUE = /^(nan|[+-]?inf(inity)?|true|false)$/i;
const isName = (field) => /\p{L}/u.test(field) && !NUMBER.test(field) && !VALUE.test(field);

// Call `visit(row, line, starts, ends)` with where the wanted fields of each row are; stop when it
// returns true. A field in quotes is given without them.
function eachRow(bytes, header, wanted, visit) {
  const mark = header.separator.charCodeAt(0);
  const width = header.columns.length;
  const slot = new Int32Array(width).fill(-1);
  wanted.forEach((column, i) => { slot[column] = i; });
  const starts = new Int32Array(wanted.length);
  const ends = new Int32Array(wanted.length);
  let at = header.start;
  let line = header.line;
  for (let row = 0; at < bytes.length; row += 1) {
    const first = line;
    let column = 0;
    for (;;) {
      let start = at;
      let end;
      if (bytes[at] === QUOTE) {
        start = at += 1;
        for (;; at += 1) {
          if (at >= bytes.length) throw problem(first, "a quote is never closed");
          if (bytes[at] === NEWLINE) line += 1;
          if (bytes[at] !== QUOTE) continue;
          if (bytes[at + 1] !== QUOTE) break;
          at += 1;
        }
        end = at;
        at += 1;
        if (bytes[at] === RETURN) at += 1;
        if (at < bytes.length && bytes[at] !== mark && bytes[at] !== NEWLINE) {
          throw problem(first, "a quote neither begins nor ends a field");
        }
      } else {
        while (at < bytes.length && bytes[at] !== mark && bytes[at] !== NEWLINE) at += 1;
        end = bytes[at] !== mark && bytes[at - 1] === RETURN ? at - 1 : at;
      }
      if (column < width && slot[column] >= 0) {
        starts[slot[column]] = start;
        ends[slot[column]] = end;
      }
      column += 1;
      if (bytes[at] !== mark) {
        if (column !== width) {
          const got = column === 1 && start === end ? "none" : column;
          throw problem(first, `a row must have ${width} fields like the header, got ${got}`);
        }
        break;
      }
      at += 1;
    }
    at += 1;
    line += 1;
    if (visit(row, first, starts, ends)) return;
  }
}

const POWERS = Array.from({ length: 23 }, (_, k) => Number(`1e${k}`));

// The number in a field, NaN if there is none. Up to 15 digits are one exact division; the rest is
// left to the browser, which rounds as well.
function numberAt(bytes, from, to) {
  let digits = 0;
  let value = 0;
  let decimals = -1;
  for (let at = from; at < to; at += 1) {
    const digit = bytes[at] - 48;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digits += 1;
      if (decimals >= 0) decimals += 1;
    } else if (bytes[at] === 46 && decimals < 0) {
      decimals = 0;
    } else {
      return slowNumber(bytes, from, to);
    }
  }
  if (digits === 0 || digits > 15) return slowNumber(bytes, from, to);
  return decimals > 0 ? value / POWERS[decimals] : value;
}

function slowNumber(bytes, from, to) {
  const text = blocks.slice(bytes, from, to).trim();
  return NUMBER.test(text) ? Number(text) : NaN;
}

// Text of fields, a letter a byte: a block is decoded at once, as fields are asked for in order.
const blocks = {
  decoder: new TextDecoder("latin1"),
  slice(bytes, from, to) {
    if (bytes !== this.bytes || from < this.start || to > this.end) {
      const end = Math.max(to, Math.min(from + (1 << 20), bytes.length));
      const text = this.decoder.decode(bytes.subarray(from, end));
      Object.assign(this, { bytes, start: from, end, text });
    }
    return this.text.slice(from - this.start, to - this.start);
  },
};

function outcomeAt(bytes, from, to) {
  const found = numberAt(bytes, from, to);
  if (found === found) return found;
  const word = decoder.decode(bytes.subarray(from, to)).trim().toLowerCase();
  return word === "true" ? 1 : word === "false" ? 0 : NaN;
}

function percentAt(bytes, from, to) {
  const text = blocks.slice(bytes, from, to).trim().replace(/%$/, "").trim();
  return NUMBER.test(text) ? Number(text) / 100 : NaN;
}

// ---- which columns ----

const meets = (some, of) => [...some].some((word) => of.has(word));

function suggests(column, kind) {
  const parts = new Set((column.match(PARTS) ?? []).map((part) => part.toLowerCase()));
  if (meets(parts, ABOUT)) return false;
  const alone = (which) =>
    meets(parts, LETTERS[which]) &&
    [...parts].every((part) => LETTERS[which].has(part) || BESIDE[which].has(part));
  const score = meets(parts, SCORES) || alone("score");
  return kind === "score" ? score : !score && (meets(parts, OUTCOMES) || alone("outcome"));
}

// What a column begins with: "decisions" are 0 or 1 throughout, "probabilities" lie between.
function contentOf(bytes, header, column) {
  let kind = "decisions";
  let seen = 0;
  eachRow(bytes, header, [column], (row, line, starts, ends) => {
    const text = decoder.decode(bytes.subarray(starts[0], ends[0])).trim();
    const value = text === "" ? 0 : outcomeAt(bytes, starts[0], ends[0]);
    seen += text !== "";
    if (!(value >= 0 && value <= 1)) kind = "other";
    else if (kind === "decisions" && value > 0 && value < 1) kind = "probabilities";
    return row >= SAMPLE || kind === "other";
  });
  return seen ? kind : "other";
}

// The one column, or the one that is likely by its name, and by what is in it.
function likely(bytes, header, kind, taken) {
  const others = header.columns.map((_, i) => i).filter((i) => i !== taken);
  if (others.length === 1) return others[0];
  let found = others.filter((i) => suggests(header.columns[i], kind));
  if (found.length > 1) {
    const kinds = found.map((i) => contentOf(bytes, header, i));
    const wanted = kind === "score" ? ["probabilities", "other"] : ["decisions"];
    for (const content of wanted) {
      const matching = found.filter((_, k) => kinds[k] === content);
      if (matching.length) {
        found = matching;
        break;
      }
    }
  }
  return found.length === 1 ? found[0] : null;
}

// Columns that were chosen, or else guessed; null where there is no telling.
function columnsOf(bytes, header, chosen) {
  const outcome = chosen.outcome ?? likely(bytes, header, "outcome", chosen.score ?? null);
  const score = chosen.score ?? (outcome === null ? null : likely(bytes, header, "score", outcome));
  return { outcome, score };
}

// ---- the rounds ----

function readRounds(bytes, header, { outcome, score, percent }) {
  let most = 1;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) most += 1;
  const p = new Float64Array(most);
  const y = new Uint8Array(most);
  const scoreAt = percent ? percentAt : numberAt;
  let rounds = 0;
  eachRow(bytes, header, [outcome, score], (row, line, starts, ends) => {
    const happened = outcomeAt(bytes, starts[0], ends[0]);
    const forecast = scoreAt(bytes, starts[1], ends[1]);
    const got = (i) => {
      const text = decoder.decode(bytes.subarray(starts[i], ends[i])).trim();
      return text === "" ? "nothing" : `'${text.slice(0, 40)}'`;
    };
    if (happened !== 0 && happened !== 1) {
      const name = header.columns[outcome];
      throw problem(line, `${name} must be an outcome, 0 or 1, got ${got(0)}`);
    }
    if (!(forecast >= 0 && forecast <= 1)) {
      const name = header.columns[score];
      const hint = forecast > 1 || got(1).endsWith("%'")
        ? percent ? "" : ": if these are percentages, tick the box" : "";
      throw problem(line, `${name} must be a probability from 0 to 1, got ${got(1)}${hint}`);
    }
    y[row] = happened;
    p[row] = forecast;
    rounds = row + 1;
  });
  if (!rounds) throw problem(0, "there is a header and no row");
  return { p: p.subarray(0, rounds), y: y.subarray(0, rounds) };
}
