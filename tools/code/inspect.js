// How values are printed: as Node's console does, but two levels deeper, since
// the reader cannot open a folded object. No getter is called.
const MAX_DEPTH = 4, MAX_ITEMS = 100, MAX_KEYS = 500, WIDTH = 72;

const quote = (s) => {
  const q = !s.includes("'") ? "'" : !s.includes('"') ? '"' : !s.includes("`") ? "`" : "'";
  let out = q;
  for (const c of s) {
    const n = c.codePointAt(0);
    if (c === q || c === "\\") out += "\\" + c;
    else if (c === "\n") out += "\\n";
    else if (c === "\t") out += "\\t";
    else if (c === "\r") out += "\\r";
    else if (n < 32 || n === 127) out += "\\x" + n.toString(16).toUpperCase().padStart(2, "0");
    else out += c;
  }
  return out + q;
};

const keyText = (k) =>
  typeof k === "symbol" ? `[${k.toString()}]` : /^[A-Za-z_$][\w$]*$/.test(k) ? k : quote(k);

// className is the name of the constructor that made o; null without one.
const className = (o) => {
  for (let p = o, n = 0; p !== null && n < 100; p = Object.getPrototypeOf(p), n++) {
    const d = Object.getOwnPropertyDescriptor(p, "constructor");
    if (d && typeof d.value === "function" && typeof d.value.name === "string" && d.value.name) return d.value.name;
  }
  return null;
};

const functionText = (f) => {
  if (/^class\b/.test(Function.prototype.toString.call(f))) {
    const base = Object.getPrototypeOf(f);
    const from = typeof base === "function" && base.name ? ` extends ${base.name}` : "";
    return `[class ${f.name || "(anonymous)"}${from}]`;
  }
  return `[${className(f) || "Function"}${f.name ? ": " + f.name : " (anonymous)"}]`;
};

// frames are the lines of a stack that lie in the program.
const frames = (e) =>
  typeof e.stack !== "string" ? "" : e.stack.split("\n").filter((l) => l.includes("program.js")).map((l) => l.replace("at <eval> (", "at (")).join("\n");

const errorText = (e, inner) => {
  const head = Error.prototype.toString.call(e), at = frames(e);
  return inner || !at ? (inner ? `[${head}]` : head) : head + "\n" + at;
};

const TypedArray = Object.getPrototypeOf(Uint8Array);
const tagOf = (o) => Object.prototype.toString.call(o).slice(8, -1);

const inspect = (value) => {
  const path = [], cycles = new Map();

  const primitive = (v) => {
    switch (typeof v) {
      case "string": return quote(v);
      case "bigint": return `${v}n`;
      case "symbol": return v.toString();
      case "number": return Object.is(v, -0) ? "-0" : String(v);
      default: return String(v);
    }
  };

  const property = (o, k) => {
    const d = Object.getOwnPropertyDescriptor(o, k);
    if (!d) return "undefined";
    if (d.get) return d.set ? "[Getter/Setter]" : "[Getter]";
    return d.set ? "[Setter]" : show(d.value);
  };

  // items lists the elements of something like an array, holes as holes.
  const items = (a) => {
    const out = [];
    let i = 0, known = null;
    for (; i < a.length && out.length < MAX_ITEMS; ) {
      if (i in a) {
        out.push(property(a, i++));
        continue;
      }
      let j = i + 1;
      while (j < a.length && j - i < 1000 && !(j in a)) j++;
      if (j < a.length && !(j in a)) { // a wide hole: its end is among the keys
        known ??= Object.keys(a).filter((k) => String(k >>> 0) === k).map(Number);
        j = known.find((k) => k > i) ?? a.length;
      }
      out.push(`<${j - i} empty item${j - i > 1 ? "s" : ""}>`);
      i = j;
    }
    if (i < a.length) out.push(`... ${a.length - i} more item${a.length - i > 1 ? "s" : ""}`);
    return out;
  };

  const entries = (iterator, size, each) => {
    const out = [];
    for (const e of iterator) {
      if (out.length === MAX_ITEMS) {
        out.push(`... ${size - MAX_ITEMS} more item${size - MAX_ITEMS > 1 ? "s" : ""}`);
        break;
      }
      out.push(each(e));
    }
    return out;
  };

  const layout = (prefix, parts, [open, close], packed) => {
    if (parts.length === 0) return `${prefix}${open}${close}`;
    const total = parts.reduce((n, p) => n + p.length + 2, prefix.length + 2);
    const flat = !parts.some((p) => p.includes("\n"));
    if (flat && total <= WIDTH) return `${prefix}${open} ${parts.join(", ")} ${close}`;
    let lines = parts;
    if (packed && flat && parts.length > 6) { // many short elements: several to a line
      lines = [];
      for (const p of parts) {
        const last = lines.length - 1;
        if (last >= 0 && lines[last].length + p.length + 2 <= WIDTH) lines[last] += ", " + p;
        else lines.push(p);
      }
    }
    return `${prefix}${open}\n${lines.map((l) => "  " + l.replaceAll("\n", "\n  ")).join(",\n")}\n${close}`;
  };

  const object = (o) => {
    const name = className(o), tag = tagOf(o);
    let prefix = name === null ? "[Object: null prototype] " : name === "Object" ? "" : name + " ";
    let parts = [], ends = ["{", "}"], packed = false, skip = () => false;
    const counted = (n, plain) => { prefix = name === plain ? (plain === "Array" ? "" : `${plain}(${n}) `) : `${name}(${n}) `; };
    if (Array.isArray(o)) {
      counted(o.length, "Array");
      parts = items(o);
      ends = ["[", "]"];
      packed = true;
      skip = (k) => typeof k === "string" && String(k >>> 0) === k;
    } else if (o instanceof TypedArray) {
      counted(o.length, name);
      parts = items(o);
      ends = ["[", "]"];
      packed = true;
      skip = (k) => typeof k === "string" && String(k >>> 0) === k;
    } else if (o instanceof Map) {
      counted(o.size, "Map");
      parts = entries(Map.prototype.entries.call(o), o.size, ([k, v]) => `${show(k)} => ${show(v)}`);
    } else if (o instanceof Set) {
      counted(o.size, "Set");
      parts = entries(Set.prototype.values.call(o), o.size, show);
    } else if (o instanceof Error) {
      prefix = errorText(o, path.length > 1) + " ";
      skip = (k) => k === "stack" || k === "message";
    } else if (tag === "Date") {
      prefix = (isNaN(o) ? "Invalid Date" : Date.prototype.toISOString.call(o)) + " ";
    } else if (tag === "RegExp") {
      prefix = RegExp.prototype.toString.call(o) + " ";
    } else if (typeof o === "function") {
      prefix = functionText(o) + " ";
    } else if (tag === "Number" || tag === "String" || tag === "Boolean" || tag === "BigInt" || tag === "Symbol") {
      prefix = `[${tag}: ${primitive(o.valueOf())}] `;
      skip = (k) => typeof k === "string" && String(k >>> 0) === k;
    } else if (tag === "Generator" || tag === "AsyncGenerator") {
      prefix = `Object [${tag}] `;
    }
    const bare = prefix !== "" && ends[0] === "{" && !(name === "Object" || name === null) &&
      (o instanceof Error || tag === "Date" || tag === "RegExp" || typeof o === "function" || prefix[0] === "[");
    const keys = Reflect.ownKeys(o).filter((k) => {
      if (skip(k)) return false;
      const d = Object.getOwnPropertyDescriptor(o, k);
      return d && d.enumerable;
    });
    for (const k of keys.slice(0, MAX_KEYS)) parts.push(`${keyText(k)}: ${property(o, k)}`);
    if (keys.length > MAX_KEYS) parts.push(`... ${keys.length - MAX_KEYS} more`);
    return bare && parts.length === 0 ? prefix.trimEnd() : layout(prefix, parts, ends, packed);
  };

  const show = (v) => {
    if ((typeof v !== "object" && typeof v !== "function") || v === null) return primitive(v);
    if (path.includes(v)) {
      if (!cycles.has(v)) cycles.set(v, cycles.size + 1);
      return `[Circular *${cycles.get(v)}]`;
    }
    if (path.length > MAX_DEPTH && typeof v !== "function" && tagOf(v) !== "Date") {
      return Array.isArray(v) ? "[Array]" : `[${className(v) || "Object: null prototype"}]`;
    }
    path.push(v);
    const text = object(v);
    path.pop();
    return cycles.has(v) ? `<ref *${cycles.get(v)}> ${text}` : text;
  };

  return show(value);
};

const text = (v) => (typeof v === "string" ? v : inspect(v));

// format fills the %-verbs of the first argument and joins the others to it.
const format = (args) => {
  if (typeof args[0] !== "string" || args.length === 1) return args.map(text).join(" ");
  let next = 1;
  const head = args[0].replace(/%[sdifjoOc%]/g, (verb) => {
    if (verb === "%%") return "%";
    if (next >= args.length) return verb;
    const v = args[next++];
    switch (verb) {
      case "%s": return typeof v === "bigint" ? `${v}n` : text(v);
      case "%d": return typeof v === "bigint" ? `${v}n` : String(Number(v));
      case "%i": return typeof v === "bigint" ? `${v}n` : String(parseInt(v));
      case "%f": return String(parseFloat(v));
      case "%j": return JSON.stringify(v);
      case "%c": return "";
      default: return inspect(v);
    }
  });
  return [head, ...args.slice(next).map(text)].join(" ");
};
