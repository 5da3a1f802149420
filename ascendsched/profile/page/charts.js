// The panels below the timeline: bars, tables, lists. Numbers come from the report by path.

function panel(title, isWide, ...children) {
  return element("section", { class: isWide ? "panel wide" : "panel" }, element("h2", {}, title), ...children);
}

function note(text) {
  return element("p", { class: "note" }, text);
}

function bar(share, colour, marker) {
  const width = `${Math.max(0, Math.min(100, share))}%`;
  const mark = marker === undefined ? null : element("em", { style: { left: `calc(${Math.min(100, marker)}% - 1px)` } });
  return element("span", { class: "bar" }, element("i", { style: { width, background: colour } }), mark);
}

function table(headings, rows) {
  const head = element("tr", {}, ...headings.map(([text, kind]) => element("th", { class: kind || "" }, text)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function cell(content, kind) {
  return element("td", { class: kind || "" }, content);
}

function clipped(text) {
  return element("span", { class: "clip", title: text }, shortName(text));
}

function causesPanel(report, path) {
  const shares = valueAt(report, `${path}/idle_split_pct`) || {}, rows = [];
  const largest = Math.max(1, ...Object.values(shares));
  for (const cause of Object.keys(shares)) {
    const key = element("span", { class: "key", style: { background: causeColour(cause) } });
    rows.push(
      element("span", { class: "name", title: CAUSE_WORDS[cause] || "" }, key, cause),
      bar((100 * shares[cause]) / largest, causeColour(cause)),
      element("span", { class: "right" }, number(report, `${path}/idle_split_pct/${cause}`, "pct")),
      element("span", { class: "right" }, number(report, `${path}/idle_split_ns/${cause}`, "ns")),
    );
  }
  const first = Object.keys(shares)[0];
  const missing = Object.entries(valueAt(report, `${path}/host_stages_us`) || {}).filter(([, value]) => typeof value === "string");
  return panel(
    "Why the device idled", false,
    rows.length ? element("div", { class: "bars" }, ...rows) : note("It did not idle."),
    first && CAUSE_WORDS[first] ? note(`${first}: ${CAUSE_WORDS[first]}.`) : null,
    missing.length ? note(`${missing.map(([stage]) => stage).join(", ")}: ${missing[0][1]}.`) : null,
  );
}

function whatIfPanel(report, path) {
  const found = valueAt(report, path), measured = report.experiment && report.experiment.sink_measured_us;
  if (!found) return panel("What would change", false, note("No device work with a launch record: nothing to replay."));
  const scale = Math.max(found.measured_us, ...found.predictions.map((one) => one.us), measured ? measured.value : 0);
  const unit = found.unit === "window" ? "all that was recorded" : `a ${found.unit}`;
  const row = (title, place, gain, value, colour, marker) => [
    element("span", { class: "name", title }, title), bar((100 * value) / scale, colour, marker),
    element("span", { class: "right" }, number(report, place, "us")), element("span", { class: "right" }, gain),
  ];
  const rows = row(`${unit}, as recorded`, `${path}/measured_us`, "", found.measured_us, "var(--soft)");
  found.predictions.forEach((one, i) => {
    const place = `${path}/predictions/${i}`;
    const isMeasured = measured && one.name === "sink";
    const gain = number(report, `${place}/gain_pct`, "signed_pct");
    rows.push(...row(one.title, `${place}/us`, gain, one.us, "var(--accent)", isMeasured ? (100 * measured.value) / scale : undefined));
    if (isMeasured) rows.push(...row("sink mode, measured", "experiment/sink_measured_us/value", "", measured.value, "#1f8a5f"));
  });
  const texts = [...new Set(found.predictions.flatMap((one) => one.assumptions)), ...found.notes];
  return panel(
    "What would change", false, element("div", { class: "bars" }, ...rows),
    element("details", { class: "note" }, element("summary", {}, "Time saved in percent; replayed unchanged, the time is off by ",
      number(report, `${path}/replay_error_pct`, "signed_pct"), ". Assumptions"), element("ul", {}, ...texts.map((text) => element("li", {}, text)))),
  );
}

function gapsPanel(report, path, show) {
  const gaps = valueAt(report, path) || [];
  const rows = gaps.map((gap, i) => {
    const key = element("span", { class: "key", style: { background: causeColour(gap.cause) } });
    const where = gap.call ? `behind ${gap.call}${gap.stack.length ? ` at ${gap.stack.join(" < ")}` : ", stack not recorded"}` : "";
    const row = element(
      "tr", { class: "link", tabindex: "0" },
      cell(number(report, `${path}/${i}/start_ns`, "ns"), "number"), cell(number(report, `${path}/${i}/us`, "us"), "number"),
      cell(element("span", {}, key, gap.cause), "cause"),
      cell(clipped(gap.before)), cell(element("span", {}, clipped(gap.after), where ? element("span", { class: "stack" }, where) : null)),
    );
    row.addEventListener("click", () => show(gap));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") show(gap); });
    return row;
  });
  const headings = [["at", "number"], ["length", "number"], ["main cause"], ["after"], ["before"]];
  return panel("Longest gaps", true, rows.length ? table(headings, rows) : note("None."));
}

function workPanel(report, path) {
  const rows = (valueAt(report, `${path}/top_kernels`) || []).map((one, i) => element(
    "tr", {}, cell(clipped(one.name), "name"), cell(number(report, `${path}/top_kernels/${i}/us`, "us"), "number"),
    cell(number(report, `${path}/top_kernels/${i}/share_pct`, "pct"), "number"),
    cell(number(report, `${path}/top_kernels/${i}/count`, "count"), "number"),
  ));
  return panel("Longest work", false, table([["name"], ["time", "number"], ["share", "number"], ["count", "number"]], rows));
}

function advicePanel(report, path) {
  const items = (valueAt(report, path) || []).map((one, i) => element(
    "li", {}, one.action,
    element("span", { class: "because" }, `${one.because} (at most `, number(report, `${path}/${i}/gain_pct_at_most`, "pct"),
      ` of the window; confidence ${one.confidence})`),
    ...one.details.map((text) => element("span", { class: "because" }, text)),
  ));
  return panel("What would help", false, items.length ? element("ul", {}, ...items) : note("Nothing stands out."));
}

function checksPanel(report, path) {
  const checks = valueAt(report, `${path}/checks`) || [];
  const items = checks.map((one) => element("li", {}, one.sentence));
  return items.length ? panel("What limits these figures", false, element("ul", {}, ...items)) : null;
}

function ranksPanel(report) {
  if (report.ranks.length < 2) return null;
  const rows = report.ranks.map((rank, i) => {
    const path = `ranks/${i}/diagnosis`, figures = [["idle_pct", "pct"], ["computing_us", "us"], ["communication_us", "us"], ["communication_not_overlapped_us", "us"]];
    return element("tr", {}, cell(clipped(rank.label), "name"), cell(rank.diagnosis.verdict.replaceAll("_", " ")),
      ...figures.map(([key, format]) => cell(number(report, `${path}/${key}`, format), "number")));
  });
  const skew = report.job.skew;
  return panel("Ranks", true,
    table([["rank"], ["verdict"], ["idle", "number"], ["computing", "number"], ["communication", "number"], ["of it alone", "number"]], rows),
    skew ? element("p", { class: "note" }, "Ranks waited for the last one at collectives for ", number(report, "job/skew/waited_us", "us"), ` (${skew.clock}).`) : null);
}

function comparisonPanel(report) {
  const found = report.comparison;
  if (!found) return null;
  const formats = { us: "us", "%": "pct", "": "count" };
  const rows = found.rows.map((one, i) => element("tr", {}, cell(clipped(one.title), "name"),
    ...["before", "after"].map((side) => cell(number(report, `comparison/rows/${i}/${side}`, formats[one.unit]), "number")),
    cell(one.change_pct === null ? "" : number(report, `comparison/rows/${i}/change_pct`, "signed_pct"), "number")));
  return panel("Before and after", true, element("p", {}, found.sentence),
    table([[`per ${found.unit}`], ["before", "number"], ["after", "number"], ["change", "number"]], rows), ...found.notes.map(note));
}

function experimentPanel(report) {
  const found = report.experiment;
  if (!found) return null;
  const titles = { host_us: "not recorded", host_recorded_us: "recorded", sink_predicted_us: "sink mode, predicted", sink_measured_us: "sink mode, measured" };
  const rows = Object.keys(titles).filter((key) => found[key]).map((key) => element("tr", {}, cell(titles[key]),
    ...["value", "low", "high"].map((part) => cell(number(report, `experiment/${key}/${part}`, "us"), "number"))));
  return panel("Time per run", false,
    table([[`${found.in_flight} in flight, ${found.rounds} rounds`], ["median", "number"], ["95 % from", "number"], ["to", "number"]], rows));
}

function reusePanel(report, path) {
  const reuse = valueAt(report, path);
  if (!reuse || reuse.run.length < 2) return null;
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const last = reuse.run.length - 1, x = (i) => 44 + (i / last) * 540, y = (pct) => 72 - 0.6 * pct;
  const drawing = svg("svg", { viewBox: "0 0 600 90", role: "img", preserveAspectRatio: "none" });
  for (const pct of [0, 50, 100]) {
    drawing.append(svg("line", { x1: 44, x2: 584, y1: y(pct), y2: y(pct), stroke: "var(--line)" }));
    const text = svg("text", { x: 38, y: y(pct) + 4, "text-anchor": "end" });
    text.textContent = `${pct} %`;
    drawing.append(text);
  }
  const points = reuse.pct.map((pct, i) => `${x(i).toFixed(1)},${y(pct).toFixed(1)}`).join(" ");
  drawing.append(svg("polyline", { points, fill: "none", stroke: "var(--accent)", "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
  return panel("Cache hits, run by run", false, drawing,
    element("p", { class: "note" }, "Share of a run's tasks whose shapes and tiling were known: from ", number(report, `${path}/pct/0`, "pct"),
      " in the first run to ", number(report, `${path}/pct/${last}`, "pct"), " in the last."));
}

function countersPanel(report) {
  const rows = Object.keys(report.counters || {}).filter((name) => report.counters[name]).map((name) => element(
    "tr", {}, cell(name.replaceAll("_", " ")), cell(number(report, `counters/${name}`, "count"), "number")));
  return rows.length ? panel("Counters", false, table([["while recording; bytes and entries at the end"], ["", "number"]], rows)) : null;
}
