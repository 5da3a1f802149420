// How numbers and names are shown. Whatever comes from a profile becomes text, never markup.

const UNITS_NS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

function formatNs(ns) {
  const size = Math.abs(ns);
  const [factor, unit] = UNITS_NS.find(([limit]) => size >= limit) || UNITS_NS[3];
  const value = ns / factor;
  const digits = unit === "ns" ? 0 : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return `${value.toFixed(digits)} ${unit}`;
}

const FORMATS = {
  us: (value) => formatNs(value * 1e3),
  ns: formatNs,
  pct: (value) => `${value.toFixed(1)} %`,
  signed_pct: (value) => `${value > 0 ? "+" : ""}${value.toFixed(1)} %`,
  count: (value) => (Number.isInteger(value) ? value.toLocaleString("en-US") : value.toFixed(1)),
};

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") made.className = value;
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// The value at a path such as "ranks/0/diagnosis/idle_pct" of the report.
function valueAt(report, path) {
  return path.split("/").reduce((value, key) => (value === null || value === undefined ? value : value[key]), report);
}

// A number of the report as text; the path stays with it, so that anybody can look it up in the data.
function number(report, path, format) {
  const value = valueAt(report, path);
  const text = typeof value === "number" ? FORMATS[format](value) : value === null || value === undefined ? "–" : String(value);
  return element("span", { "data-path": path, "data-format": format }, text);
}

// What tells one kernel from another, without what all of them begin with.
function shortName(text) {
  return text.replaceAll("(anonymous namespace)::", "").replace(/^void /, "").replace(/^at::(native|cuda)::/, "") || text;
}

// Distinguishable with any colour vision where they are many; the rarest are greys.
const CAUSE_COLOURS = {
  "host_late.framework": "#d55e00",
  "host_late.launch": "#e69f00",
  "host_late.tiling": "#f0d442",
  "host_late.infer_shape": "#9a7500",
  "host_late.alloc": "#009e73",
  "host_late.in_flight": "#56b4e9",
  "launch_in_flight": "#0072b2",
  "queue_full": "#1d3f6e",
  "sync": "#cc79a7",
  "compile": "#7b3294",
  "dependency": "#882255",
  "graph_internal": "#44aa99",
  "queued_short": "#a3aab4",
  "no_work": "#69717d",
  "unattributed": "#c4c9d0",
};

const CAUSE_WORDS = {
  "host_late.framework": "the program's own time before a launch",
  "host_late.launch": "the launch call itself, begun too late",
  "host_late.tiling": "tiling on the launching thread",
  "host_late.infer_shape": "shape inference on the launching thread",
  "host_late.alloc": "allocating memory before a launch",
  "host_late.in_flight": "a late launch on its way to the device",
  "launch_in_flight": "the launch had begun in time, and was still going on",
  "queue_full": "the device's queue had no room",
  "sync": "the host waited for the device before it launched more",
  "compile": "kernels were compiled or loaded",
  "dependency": "queued work waited for something else",
  "graph_internal": "between entries of one captured graph or chain",
  "queued_short": "hand-over between queued entries",
  "no_work": "nothing was recorded on any host thread",
  "unattributed": "the profile holds no launch record",
};

function causeColour(cause) {
  return CAUSE_COLOURS[cause] || "#888888";
}
