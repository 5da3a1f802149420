// What lanes and their drawing are searched, measured and labelled with.

function bucket(keys) {
  const found = new Map();
  keys.forEach((key, i) => { if (!found.has(key)) found.set(key, []); found.get(key).push(i); });
  return found;
}

// Index of the first of the ascending values that is above the limit.
function firstAbove(values, limit) {
  let low = 0, high = values.length;
  while (low < high) { const middle = (low + high) >> 1; if (values[middle] > limit) high = middle; else low = middle + 1; }
  return low;
}

// How much of [from, to) the events of a lane cover.
function covered(lane, from, to) {
  const until = (time) => {
    const i = firstAbove(lane.ends, time);
    return lane.done[i] + (i < lane.count ? Math.max(0, time - lane.starts[i]) : 0);
  };
  return until(to) - until(from);
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function tick(time, step) {
  const [factor, unit] = UNITS_NS.find(([limit]) => Math.max(time, step) >= limit) || UNITS_NS[3];
  const digits = Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9));
  return time === 0 ? "0" : `${(time / factor).toFixed(Math.min(digits, 9))} ${unit}`;
}

function clip(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = Math.min(text.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle; else high = middle - 1;
  }
  return low < 2 ? "" : `${text.slice(0, low)}…`;
}

function contrast(colour) {
  const value = parseInt(colour.slice(1), 16);
  const light = 0.299 * (value >> 16) + 0.587 * ((value >> 8) & 255) + 0.114 * (value & 255);
  return light > 140 ? "#10151c" : "#ffffff";
}
