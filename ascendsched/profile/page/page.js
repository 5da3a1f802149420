// Puts the page together, and again whenever another rank or step is chosen.

const report = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const timeline = new Timeline(get("timeline"), get("tooltip"), report);
const chosen = { rank: report.main, step: -1 };

const TILES = [
  ["window_us", "us", "time"], ["busy_pct", "pct", "device busy"], ["idle_pct", "pct", "device idle"],
  ["device_activities", "count", "device activities"], ["launch_calls", "count", "launch calls"],
  ["median_kernel_us", "us", "median kernel"], ["exposed_communication_pct", "pct", "communication alone"],
];

function pathOfDiagnosis() {
  return chosen.step < 0 ? `ranks/${chosen.rank}/diagnosis` : `ranks/${chosen.rank}/by_step/${chosen.step}`;
}

function isOwn(index) {
  return report.ranks[index].diagnosis.system === "ascendsched";
}

function showHead(path) {
  const diagnosis = valueAt(report, path), badge = get("verdict");
  badge.dataset.verdict = diagnosis.verdict;
  const words = diagnosis.verdict.replaceAll("_", " ");
  badge.replaceChildren(words[0].toUpperCase() + words.slice(1), element("small", {}, `confidence ${diagnosis.confidence}`));
  const parts = diagnosis.sentence.split(": ");
  const text = parts.length > 1 ? parts.slice(1).join(": ") : diagnosis.sentence;
  get("sentence").textContent = text[0].toUpperCase() + text.slice(1);
  const step = chosen.step < 0 ? "" : `, ${isOwn(chosen.rank) ? "run" : "step"} ${diagnosis.step}`;
  get("source").textContent = `${diagnosis.source} · ${diagnosis.system}${step}`;
  const skew = report.job.skew && report.job.skew.sentence;
  get("skew").hidden = !skew;
  get("skew").textContent = skew || "";
  const tiles = TILES.filter(([key]) => diagnosis[key] || (diagnosis[key] === 0 && key !== "exposed_communication_pct"));
  get("tiles").replaceChildren(...tiles.map(([key, format, label]) => element(
    "div", { class: "tile" }, element("b", {}, number(report, `${path}/${key}`, format)), element("span", { class: "label" }, label))));
}

function showLegend(path) {
  const shares = valueAt(report, `${path}/idle_split_pct`) || {}, data = report.ranks[chosen.rank].timeline;
  const key = (colour, text) => element("span", {}, element("span", { class: "key", style: { background: colour } }), text);
  const causes = data ? data.gaps.causes : [];
  const ordered = [...causes].sort((a, b) => (shares[b] || 0) - (shares[a] || 0));
  const items = ordered.map((cause) => key(causeColour(cause), `idle: ${cause}`));
  items.push(key("var(--device)", "kernel"));
  const kinds = new Set(data ? data.device.kind : []);
  report.kinds.forEach((kind, i) => { if (i && kinds.has(i)) items.push(key(KIND_COLOURS[i], kind)); });
  get("legend").replaceChildren(...items);
  if (data && data.left_out) get("legend").append(element("span", {}, `${data.left_out.toLocaleString("en-US")} short or deeply nested events are not drawn`));
}

function showGap(gap) {
  timeline.focus(gap.start_ns, gap.start_ns + gap.us * 1e3);
  get("timeline-panel").scrollIntoView({ block: "nearest" });
}

function showPanels(path) {
  const rank = `ranks/${chosen.rank}`, gaps = chosen.step < 0 ? `${rank}/top_gaps` : `${path}/top_gaps`;
  const panels = [
    causesPanel(report, path), whatIfPanel(report, `${rank}/what_if`), gapsPanel(report, gaps, showGap), comparisonPanel(report),
    ranksPanel(report), advicePanel(report, `${rank}/advice`), workPanel(report, path), experimentPanel(report),
    reusePanel(report, `${rank}/reuse`), checksPanel(report, path), countersPanel(report),
  ];
  get("panels").replaceChildren(...panels.filter(Boolean));
}

function show() {
  const path = pathOfDiagnosis();
  showHead(path);
  showLegend(path);
  showPanels(path);
}

function chooseRank(index) {
  chosen.rank = index;
  const { by_step: steps, steps_left_out: more, timeline: data } = report.ranks[index];
  get("step-control").hidden = !steps.length;
  get("step-word").textContent = isOwn(index) ? "Run" : "Step";
  const options = steps.map((step, i) => element("option", { value: i }, `${step.step}`));
  get("step").replaceChildren(element("option", { value: -1 }, more ? `all (${more} not listed)` : "all"), ...options);
  timeline.show(data);
  chooseStep(-1);
}

function chooseStep(index) {
  chosen.step = index;
  show();
  const { by_step: steps, timeline: data } = report.ranks[chosen.rank];
  if (!data) return;
  const found = index < 0 ? null : data.steps.find(([number]) => number === steps[index].step);
  if (found) timeline.focus(found[1], found[2], 0.03);
  else timeline.fit();
}

get("rank-control").hidden = report.ranks.length < 2;
get("rank").replaceChildren(...report.ranks.map((rank, i) => element("option", { value: i }, rank.label)));
get("rank").value = report.main;
get("rank").addEventListener("change", (event) => chooseRank(Number(event.target.value)));
get("step").addEventListener("change", (event) => chooseStep(Number(event.target.value)));
get("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
get("zoom-out").addEventListener("click", () => timeline.zoom(2));
get("zoom-fit").addEventListener("click", () => timeline.data && timeline.fit());
get("footer").textContent = `ascendsched ${report.version} · this page needs no network and sends nothing anywhere`;
chooseRank(report.main);
