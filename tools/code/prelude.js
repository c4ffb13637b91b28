// What a program finds beside the language: a console, timers, and a few
// functions of browsers and Node that need nothing outside.
delete globalThis.Atomics; // their lock is shared by all engines of the process
delete globalThis.SharedArrayBuffer;

const define = (o, name, value) =>
  Object.defineProperty(o, name, { value, writable: true, configurable: true, enumerable: false });

// The clock jumps forward over the time that timers wait for.
const RealDate = Date, realNow = Date.now, HOUR = 3600e3;
let skipped = 0;
const now = () => realNow() + skipped;
const started = now();
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, as) =>
    Reflect.construct(target, args.length ? args : [now()], as === globalThis.Date ? target : as),
  apply: () => new RealDate(now()).toString(),
});
define(RealDate, "now", now);
define(RealDate.prototype, "constructor", globalThis.Date);
define(globalThis, "performance", { now: () => now() - started, timeOrigin: started });

// Timers are kept in the order in which they are due.
const timers = [];
let lastTimer = 0;
const schedule = (t) => {
  let lo = 0, hi = timers.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (timers[mid].due <= t.due) lo = mid + 1;
    else hi = mid;
  }
  timers.splice(lo, 0, t);
  return t.id;
};
const timer = (repeat) => (fn, delay, ...args) => {
  if (typeof fn !== "function") throw new TypeError("the first argument of a timer must be a function");
  const wait = Math.max(1, Math.min(Number(delay) || 0, 2 ** 31));
  return schedule({ id: ++lastTimer, due: now() + wait, every: repeat ? wait : 0, fn, args });
};
const clear = (id) => {
  const i = timers.findIndex((t) => t.id === id);
  if (i >= 0) timers.splice(i, 1);
};
const once = timer(false);
define(globalThis, "setTimeout", once);
define(globalThis, "setInterval", timer(true));
define(globalThis, "setImmediate", (fn, ...args) => once(fn, 0, ...args));
for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) define(globalThis, name, clear);
const resolved = Promise.resolve();
define(globalThis, "queueMicrotask", (fn) => {
  if (typeof fn !== "function") throw new TypeError("the argument of queueMicrotask must be a function");
  resolved.then(() => fn());
});

// tick runs the timer that is due next. It returns false if there is none.
const tick = () => {
  const t = timers.shift();
  if (!t) return false;
  skipped += Math.max(0, t.due - now());
  if (skipped > HOUR) {
    throw new RangeError("timers are still set after an hour on the program's clock: clear them");
  }
  if (t.every) schedule({ ...t, due: now() + t.every });
  t.fn(...t.args);
  return true;
};

// The console. Everything goes to one output.
let indent = "";
const counts = new Map(), clocks = new Map();
const line = (s) => write((indent ? indent + s.replaceAll("\n", "\n" + indent) : s) + "\n");
const log = (...args) => line(format(args));

const table = (rows) => {
  if (typeof rows !== "object" || rows === null) return log(rows);
  const names = ["(index)"], body = [];
  const list = rows instanceof Map ? [...rows] : rows instanceof Set ? [...rows.entries()].map(([v], i) => [i, v]) : Object.entries(rows);
  let values = false;
  for (const [index, row] of list) {
    const cells = new Map([["(index)", text(index)]]);
    if (typeof row === "object" && row !== null) {
      for (const [k, v] of Object.entries(row)) {
        if (!names.includes(k)) names.push(k);
        cells.set(k, inspect(v));
      }
    } else {
      values = true;
      cells.set(names, inspect(row)); // no column can have that key
    }
    body.push(cells);
  }
  const columns = values ? [...names, names] : names;
  const title = (c) => (c === names ? "Values" : c);
  const widths = columns.map((c) => Math.max(title(c).length, ...body.map((r) => (r.get(c) ?? "").length)));
  const rule = (l, m, r) => l + widths.map((w) => "─".repeat(w + 2)).join(m) + r;
  const print = (cell) => "│ " + columns.map((c, i) => cell(c).padEnd(widths[i])).join(" │ ") + " │";
  line([rule("┌", "┬", "┐"), print(title), rule("├", "┼", "┤"), ...body.map((r) => print((c) => r.get(c) ?? "")), rule("└", "┴", "┘")].join("\n"));
};

const console = {
  log, info: log, debug: log, warn: log, error: log, table,
  trace: (...args) => log("Trace:", ...args),
  dir: (v) => line(inspect(v)),
  assert: (ok, ...args) => { if (!ok) log(...(args.length ? ["Assertion failed:", ...args] : ["Assertion failed"])); },
  group: (...args) => { if (args.length) log(...args); indent += "  "; },
  groupEnd: () => { indent = indent.slice(2); },
  count: (label = "default") => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    log(`${label}: ${counts.get(label)}`);
  },
  countReset: (label = "default") => { counts.delete(label); },
  time: (label = "default") => { clocks.set(label, now()); },
  timeLog: (label = "default", ...args) => { if (clocks.has(label)) log(`${label}: ${now() - clocks.get(label)}ms`, ...args); },
  timeEnd: (label = "default") => { console.timeLog(label); clocks.delete(label); },
};
console.groupCollapsed = console.group;
define(globalThis, "console", console);
define(globalThis, "print", log);

const clone = (v, seen) => {
  if (typeof v === "function" || typeof v === "symbol") throw new TypeError(`${text(v)} could not be cloned`);
  if (typeof v !== "object" || v === null) return v;
  if (seen.has(v)) return seen.get(v);
  const keep = (o) => { seen.set(v, o); return o; };
  const tag = tagOf(v);
  if (tag === "Date") return keep(new RealDate(v.getTime()));
  if (tag === "RegExp") return keep(new RegExp(v.source, v.flags));
  if (v instanceof ArrayBuffer) return keep(v.slice(0));
  if (v instanceof TypedArray) return keep(v.slice());
  if (v instanceof Map) {
    const m = keep(new Map());
    for (const [k, x] of v) m.set(clone(k, seen), clone(x, seen));
    return m;
  }
  if (v instanceof Set) {
    const s = keep(new Set());
    for (const x of v) s.add(clone(x, seen));
    return s;
  }
  if (v instanceof Error) return keep(new v.constructor(v.message));
  const o = keep(Array.isArray(v) ? new Array(v.length) : {});
  for (const k of Object.keys(v)) o[k] = clone(v[k], seen);
  return o;
};
define(globalThis, "structuredClone", (v) => clone(v, new Map()));

// The engine has no Intl: its own toLocale functions ignore what they are asked
// for. Numbers are grouped as in en-US; what cannot be done is an error, not a
// wrong text.
const localeNumber = function (locales, options = {}) {
  const unknown = Object.keys(options).filter((k) => k !== "minimumFractionDigits" && k !== "maximumFractionDigits" && k !== "useGrouping");
  if (unknown.length && !(unknown.length === 1 && options.style === "decimal")) {
    throw new RangeError(`toLocaleString knows no ${unknown.join(", ")} here: there is no Intl; format with toFixed`);
  }
  const x = this.valueOf();
  if (typeof x === "bigint") return String(x).replace(/\B(?=(\d{3})+$)/g, ",");
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "-∞";
  const least = options.minimumFractionDigits ?? 0;
  const most = Math.max(options.maximumFractionDigits ?? 3, least);
  if (Math.abs(x) >= 1e21) return BigInt(x).toLocaleString();
  let [whole, part = ""] = x.toFixed(most).split(".");
  while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
  if (options.useGrouping !== false) whole = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part ? `${whole}.${part}` : whole;
};
define(Number.prototype, "toLocaleString", localeNumber);
define(BigInt.prototype, "toLocaleString", localeNumber);
for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) {
  const plain = RealDate.prototype[name];
  define(RealDate.prototype, name, function (locales, options) {
    if (options !== undefined && Object.keys(options).length) {
      throw new RangeError(`${name} takes no options here: there is no Intl; use toISOString and getUTCFullYear and the like`);
    }
    return plain.call(this);
  });
}

return [tick, (v) => { if (v !== undefined) line(text(v)); }, text];
