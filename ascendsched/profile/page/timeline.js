// The timeline: host threads above streams on one canvas, with idle time by cause between them.

const GUTTER = 158, RULER = 22, OVERVIEW = 14, STREAM = 19, GAP = 7, MAX_ARROWS = 140, MANY_ROWS = 14, MAX_TICKS = 40;
const FONT = "11.5px system-ui, 'DejaVu Sans', sans-serif", SMALL_FONT = "10px system-ui, 'DejaVu Sans', sans-serif";
const KIND_COLOURS = ["", "#86aede", "#b4c6da", "#8e5bb5", "#9aa3af"];  // kernels take the theme's colour
const STAGE_COLOURS = {
  launch: "#e69f00", sync: "#cc79a7", tiling: "#f0d442", infer_shape: "#9a7500", alloc: "#009e73", compile: "#7b3294",
  queue_full: "#1d3f6e",
};

class Timeline {
  constructor(canvas, tooltip, report) {
    Object.assign(this, { canvas, tooltip, report, hovered: null, drag: null });
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.timeAt(event.offsetX)));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data) {
    this.data = data;
    this.hovered = null;
    this.lanes = [];
    if (!data) return;
    this.layOut();
    const work = this.lanes.filter((lane) => lane.kind === "device" && lane.count);
    this.deviceExtent = [data.device.start_ns[0], Math.max(...work.map((lane) => lane.ends[lane.count - 1]))];
    const starts = [data.host.start_ns[0], data.device.start_ns[0]].filter((time) => time !== undefined);
    let end = 1;
    for (const lane of this.lanes) if (lane.count) end = Math.max(end, lane.ends[lane.count - 1]);
    this.extent = [Math.min(...starts), end];
    this.fit();
  }

  // One lane per thread and depth, one for idle time, one per stream; the events of a lane do not overlap.
  layOut() {
    const { host, device, gaps, threads, streams } = this.data;
    this.threadBottom = new Map();
    let y = OVERVIEW + RULER + 4;
    const byThread = bucket(host.thread), rows = new Set(host.thread.map((thread, i) => `${thread}/${host.depth[i]}`)).size;
    const row = rows > MANY_ROWS ? 12 : 15;
    for (const thread of threads) {
      const mine = byThread.get(thread.number) || [];
      const byDepth = bucket(mine.map((i) => host.depth[i]));
      const depths = [...byDepth.keys()].sort((a, b) => a - b);
      depths.forEach((depth, place) => {
        const events = byDepth.get(depth).map((i) => mine[i]);
        this.addLane("host", place ? "" : thread.name, y, row, events, host);
        this.lanes[this.lanes.length - 1].thread = thread.number;
        y += row;
      });
      this.threadBottom.set(thread.number, y);
      y += depths.length ? GAP : 0;
    }
    this.addLane("gap", "device idle", y, STREAM, [...gaps.start_ns.keys()], gaps);
    y += STREAM + GAP;
    const byStream = bucket(device.stream);
    for (const stream of streams) {
      this.addLane("device", stream < 0 ? `collectives ${-1 - stream}` : `stream ${stream}`, y, STREAM, byStream.get(stream), device);
      y += STREAM + 3;
    }
    this.height = y + 4;
  }

  addLane(kind, label, y, height, events, table) {
    const starts = Float64Array.from(events, (i) => table.start_ns[i]);
    const ends = Float64Array.from(events, (i) => table.start_ns[i] + table.length_ns[i]);
    for (let i = 1; i < ends.length; i++) if (ends[i] < ends[i - 1]) ends[i] = ends[i - 1];  // searched by end
    const done = new Float64Array(events.length + 1);
    for (let i = 0; i < ends.length; i++) done[i + 1] = done[i] + (ends[i] - starts[i]);
    this.lanes.push({ kind, label, y, height, events, starts, ends, done, count: events.length });
  }

  fit() { this.view = [...this.extent]; this.draw(); }

  focus(start, end, margin = 1.5) {
    const pad = Math.max(1, (end - start) * margin);
    this.setView(start - pad, end + pad);
  }

  setView(from, to) {
    const whole = this.extent[1] - this.extent[0];
    const width = Math.min(Math.max(to - from, 20), whole);
    const begin = Math.min(Math.max(from + (to - from - width) / 2, this.extent[0]), this.extent[1] - width);
    this.view = [begin, begin + width];
    this.draw();
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    if (!this.data) return;
    this.setView(around + (this.view[0] - around) * factor, around + (this.view[1] - around) * factor);
  }

  pan(share) { const by = (this.view[1] - this.view[0]) * share; this.setView(this.view[0] + by, this.view[1] + by); }

  timeAt(x) { return this.view[0] + ((x - GUTTER) / (this.width - GUTTER)) * (this.view[1] - this.view[0]); }

  xOf(time) { return GUTTER + ((time - this.view[0]) / (this.view[1] - this.view[0])) * (this.width - GUTTER); }

  onWheel(event) {
    if (!this.data) return;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), this.timeAt(event.offsetX));
    } else if (event.deltaX || event.shiftKey) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.width);
    }
  }

  onDown(event) {
    if (!this.data) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, view: [...this.view], isOverview: event.offsetY < OVERVIEW };
    if (this.drag.isOverview) this.moveOverview(event.offsetX);
  }

  onMove(event) {
    if (!this.data) return;
    if (!this.drag) return this.hover(event);
    if (this.drag.isOverview) return this.moveOverview(event.offsetX);
    const { x, view } = this.drag;
    const by = ((x - event.offsetX) / (this.width - GUTTER)) * (view[1] - view[0]);
    return this.setView(view[0] + by, view[1] + by);
  }

  moveOverview(x) {
    const share = (x - GUTTER) / (this.width - GUTTER);
    const middle = this.extent[0] + share * (this.extent[1] - this.extent[0]), half = (this.view[1] - this.view[0]) / 2;
    this.setView(middle - half, middle + half);
  }

  onKey(event) {
    const actions = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.fit(),
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
    };
    if (this.data && actions[event.key]) { event.preventDefault(); actions[event.key](); }
  }

  hover(event) {
    const found = event ? this.find(event.offsetX, event.offsetY) : null;
    const changed = (found && found.key) !== (this.hovered && this.hovered.key);
    this.hovered = found;
    this.tooltip.hidden = !found;
    if (found) {
      if (changed) this.tooltip.replaceChildren(...this.describe(found));
      const box = this.tooltip.getBoundingClientRect();
      this.tooltip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
      const below = event.clientY + 18;
      this.tooltip.style.top = `${below + box.height < innerHeight ? below : event.clientY - box.height - 10}px`;
    }
    if (changed) this.draw();
  }

  find(x, y) {
    if (x < GUTTER) return null;
    const lane = this.lanes.find((one) => y >= one.y && y < one.y + one.height);
    if (!lane) return null;
    const slack = (this.view[1] - this.view[0]) / (this.width - GUTTER);
    const time = this.timeAt(x), place = firstAbove(lane.ends, time - slack);
    if (place >= lane.count || lane.starts[place] > time + slack) return null;
    return { lane, index: lane.events[place], key: `${lane.y}/${place}` };
  }

  describe({ lane, index }) {
    const { data } = this;
    const at = (table) => `${formatNs(table.length_ns[index])} at ${formatNs(table.start_ns[index])}`;
    if (lane.kind === "gap") {
      const cause = data.gaps.causes[data.gaps.cause[index]];
      return [element("b", {}, `idle: ${cause}`), CAUSE_WORDS[cause] || "", element("br"), at(data.gaps)];
    }
    if (lane.kind === "host") {
      const stage = this.report.stages[data.host.stage[index]];
      return [element("b", {}, data.names[data.host.name[index]]), `${stage}, ${at(data.host)}`];
    }
    const call = data.device.call_ns[index];
    const delay = call < 0 ? "no launch record" : `launched ${formatNs(data.device.start_ns[index] - call)} before it began`;
    const kind = this.report.kinds[data.device.kind[index]];
    return [element("b", {}, shortName(data.names[data.device.name[index]])), `${kind}, ${at(data.device)}`, element("br"), delay];
  }

  draw() {
    const { canvas } = this;
    this.width = canvas.parentElement.clientWidth;
    const height = this.data ? this.height : 40, ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const style = getComputedStyle(document.documentElement);
    this.theme = {};
    for (const name of ["panel", "ink", "soft", "line", "track", "accent", "span", "span-ink", "device"]) {
      this.theme[name] = style.getPropertyValue(`--${name}`).trim();
    }
    if (!this.data) {
      pen.fillStyle = this.theme.soft;
      pen.fillText("The profile holds no device activity.", 4, 20);
      return;
    }
    this.drawSteps(pen);
    for (const lane of this.lanes) this.drawLane(pen, lane);
    this.drawArrows(pen);
    this.drawRuler(pen);
    this.drawOverview(pen);
  }

  drawSteps(pen) {
    const edges = this.data.steps.length > 400 ? [] : this.data.steps;
    for (const [, start] of edges) {
      const x = Math.round(this.xOf(start)) + 0.5;
      if (x < GUTTER || x > this.width) continue;
      pen.strokeStyle = this.theme.line;
      pen.beginPath();
      pen.moveTo(x, OVERVIEW + RULER);
      pen.lineTo(x, this.height);
      pen.stroke();
    }
  }

  drawLane(pen, lane) {
    pen.fillStyle = this.theme.track;
    if (lane.kind !== "host") pen.fillRect(GUTTER, lane.y, this.width - GUTTER, lane.height - 1);
    if (lane.label) {
      pen.fillStyle = lane.kind === "host" ? this.theme.soft : this.theme.ink;
      pen.fillText(clip(pen, lane.label, GUTTER - 14), 2, lane.y + lane.height / 2);
    }
    const perPixel = (this.view[1] - this.view[0]) / (this.width - GUTTER);
    let i = firstAbove(lane.ends, this.view[0]);
    while (i < lane.count && lane.starts[i] < this.view[1]) {
      const left = Math.max(GUTTER, this.xOf(lane.starts[i])), right = Math.min(this.width, this.xOf(lane.ends[i]));
      const index = lane.events[i];
      if (right - left < 1) {
        // All of this pixel at once, as strong as it is covered.
        const from = this.view[0] + (Math.floor(left) - GUTTER) * perPixel;
        const next = Math.max(i + 1, firstAbove(lane.ends, from + perPixel));
        pen.globalAlpha = Math.min(1, 0.1 + covered(lane, from, from + perPixel) / perPixel);
        pen.fillStyle = this.colour(lane, index);
        pen.fillRect(Math.floor(left), lane.y, 1, lane.height - 1);
        pen.globalAlpha = 1;
        i = next;
        continue;
      }
      pen.fillStyle = this.colour(lane, index);
      const space = right - left > 3 ? 0.5 : 0;
      pen.fillRect(left, lane.y, right - left - space, lane.height - 1);
      if (this.hovered && this.hovered.lane === lane && this.hovered.index === index) {
        pen.strokeStyle = this.theme.ink;
        pen.lineWidth = 1.5;
        pen.strokeRect(left + 0.75, lane.y + 0.75, right - left - 1.5, lane.height - 2.5);
        pen.lineWidth = 1;
      }
      if (right - left > 34) this.drawName(pen, lane, index, left, right);
      i++;
    }
  }

  drawName(pen, lane, index, left, right) {
    const { data } = this;
    pen.font = lane.height < 14 ? SMALL_FONT : FONT;
    const text = lane.kind === "gap" ? data.gaps.causes[data.gaps.cause[index]]
      : data.names[(lane.kind === "host" ? data.host : data.device).name[index]];
    pen.fillStyle = contrast(pen.fillStyle);
    pen.fillText(clip(pen, shortName(text), right - left - 8), left + 4, lane.y + lane.height / 2);
    pen.font = FONT;
  }

  colour(lane, index) {
    const { data } = this;
    if (lane.kind === "gap") return causeColour(data.gaps.causes[data.gaps.cause[index]]);
    if (lane.kind === "host") return STAGE_COLOURS[this.report.stages[data.host.stage[index]]] || this.theme.span;
    return KIND_COLOURS[data.device.kind[index]] || this.theme.device;
  }

  // From the launch call on its thread to the entry on its stream; all of them only where they can be told apart.
  drawArrows(pen) {
    const visible = [];
    for (const lane of this.lanes) {
      if (lane.kind !== "device") continue;
      for (let i = firstAbove(lane.ends, this.view[0]); i < lane.count && lane.starts[i] < this.view[1]; i++) {
        visible.push([lane, lane.events[i]]);
        if (visible.length > MAX_ARROWS) break;
      }
    }
    if (visible.length <= MAX_ARROWS) for (const [lane, index] of visible) this.drawArrow(pen, lane, index, false);
    if (this.hovered && this.hovered.lane.kind === "device") this.drawArrow(pen, this.hovered.lane, this.hovered.index, true);
  }

  // Below the span of a call, or below its thread where the span is not drawn.
  bottomOfCall(thread, time) {
    let bottom = this.threadBottom.get(thread);
    for (const lane of this.lanes) {
      if (lane.kind !== "host" || lane.thread !== thread) continue;
      const place = firstAbove(lane.starts, time) - 1;
      if (place >= 0 && lane.starts[place] === time) bottom = lane.y + lane.height;
    }
    return bottom;
  }

  drawArrow(pen, lane, index, isHovered) {
    const { device } = this.data, top = this.bottomOfCall(device.call_thread[index], device.call_ns[index]);
    if (top === undefined || device.call_ns[index] < 0) return;
    const from = this.xOf(device.call_ns[index]), to = this.xOf(device.start_ns[index]);
    if (from < GUTTER - 2 && to < GUTTER - 2) return;
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, OVERVIEW + RULER, this.width - GUTTER, this.height);
    pen.clip();
    pen.strokeStyle = isHovered ? this.theme.accent : this.theme.soft;
    pen.globalAlpha = isHovered ? 1 : 0.55;
    pen.lineWidth = isHovered ? 2 : 1;
    pen.beginPath();
    pen.moveTo(from, top - 1);
    pen.bezierCurveTo(from, (top + lane.y) / 2 + 4, to, (top + lane.y) / 2 - 4, to, lane.y - 1);
    pen.stroke();
    pen.fillStyle = pen.strokeStyle;
    pen.beginPath();
    pen.moveTo(to, lane.y + 1);
    pen.lineTo(to - 3, lane.y - 5);
    pen.lineTo(to + 3, lane.y - 5);
    pen.fill();
    pen.restore();
  }

  drawRuler(pen) {
    const span = this.view[1] - this.view[0], width = this.width - GUTTER;
    const step = niceStep(span / Math.max(2, Math.floor(width / 110)));
    pen.textAlign = "left";
    const first = Math.ceil(this.view[0] / step);
    for (let i = 0; i < MAX_TICKS && (first + i) * step <= this.view[1]; i++) {
      const time = (first + i) * step, x = this.xOf(time);
      pen.fillStyle = this.theme.line;
      pen.fillRect(x, OVERVIEW + 4, 1, RULER - 4);
      const text = tick(time, step);
      if (x + 4 + pen.measureText(text).width > this.width) continue;
      pen.fillStyle = this.theme.soft;
      pen.fillText(text, x + 4, OVERVIEW + RULER / 2 + 2);
    }
  }

  drawOverview(pen) {
    const whole = this.extent[1] - this.extent[0], width = this.width - GUTTER;
    const lane = this.lanes.find((one) => one.kind === "gap");
    const x = (time) => GUTTER + ((time - this.extent[0]) / whole) * width;
    pen.fillStyle = this.theme.track;
    pen.fillRect(GUTTER, 2, width, OVERVIEW - 5);
    pen.fillStyle = this.theme.device;
    pen.fillRect(x(this.deviceExtent[0]), 2, x(this.deviceExtent[1]) - x(this.deviceExtent[0]), OVERVIEW - 5);
    for (let column = 0; column < width; column++) {
      const from = this.extent[0] + (column / width) * whole, to = from + whole / width;
      const i = firstAbove(lane.ends, from);
      if (i >= lane.count || lane.starts[i] >= to) continue;
      pen.globalAlpha = Math.min(1, covered(lane, from, to) / (to - from));
      pen.fillStyle = this.colour(lane, lane.events[i]);
      pen.fillRect(GUTTER + column, 2, 1, OVERVIEW - 5);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = this.theme.soft;
    pen.fillText("whole recording", 2, OVERVIEW / 2 + 0.5);
    if (this.view[1] - this.view[0] < whole * 0.999) {
      pen.strokeStyle = this.theme.ink;
      pen.lineWidth = 2;
      const left = x(this.view[0]), right = x(this.view[1]);
      pen.strokeRect(left, 1, Math.max(3, right - left), OVERVIEW - 3);
      pen.lineWidth = 1;
    }
  }
}
