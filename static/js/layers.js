// Layer charts: several lines a figure, fetched together, drawn when seen; live by cursor; zoom and scroll are kept.
(() => {
  "use strict";
  const root = document.querySelector("[data-layers]");
  if (!root) return;
  const say = root.dataset;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"], MARKERS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
  const MOST = 60; // lines in one request
  const config = { displayModeBar: false, responsive: true, locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en-US" };
  const base = () => ({
    font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 44, r: 8, t: 10, b: 34 }, hovermode: "closest", dragmode: "zoom", showlegend: false,
    hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
  });
  const xAxis = (title) => ({ showgrid: false, zeroline: false, linecolor: css("--rule2"), showline: true, ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), automargin: true, title: { text: title, font: { size: 10 }, standoff: 4 } });
  const yAxis = () => ({ gridcolor: css("--rule"), zerolinecolor: css("--rule2"), zeroline: true, nticks: 5, automargin: true, exponentformat: "e" });

  const figures = [...root.querySelectorAll("[data-card]")];
  const memory = new Map(); // figure -> lines as last drawn
  const zoomed = new Map(); // figure -> [low, high]
  const choice = root.ownerDocument.querySelector("[data-axis-choice]");
  let axis = choice ? choice.value : "step", cursor = "";

  const words = (figure) => JSON.parse(figure.dataset.labels || "[]");
  const uids = (figure) => figure.dataset.card.split(",");
  const axisWord = () => (choice ? choice.options[choice.selectedIndex].text : axis);

  const traceOf = (figure, line, place, many) => {
    const label = words(figure)[place] || "", colour = css(`--c${(place % 6) + 1}`);
    const custom = line.x.map((x, i) => [line.step ? line.step[i] : x, line.count && line.count[i] !== null ? `<br>n ${line.count[i]}` : "", (line.subject && line.subject[i]) || ""]);
    const behind = line.subject && line.subject.some(Boolean) ? `<br><i>${say.click}</i>` : "";
    return {
      x: line.x, y: line.y, customdata: custom, name: label || figure.dataset.title, type: "scatter", mode: line.x.length <= 60 ? "lines+markers" : "lines",
      line: { width: many ? 1.2 : 1.4, color: colour, dash: DASHES[place % DASHES.length] }, marker: { size: 4, symbol: MARKERS[place % MARKERS.length] },
      hovertemplate: `${label ? label + "<br>" : ""}${axisWord()} %{x}${axis === "step" ? "" : "<br>step %{customdata[0]}"}<br>%{y:.6~g} ${figure.dataset.unit}%{customdata[1]}${behind}<extra></extra>`,
    };
  };
  const rail = (places, word, symbol, colour) => ({ x: places.map((p) => p[0]), y: places.map(() => 1), yaxis: "y2", type: "scatter", mode: "markers", text: places.map((p) => p[1]), marker: { symbol, size: 6, color: colour }, hovertemplate: `${axisWord()} %{x}<br>${word}%{text}<extra></extra>`, showlegend: false });

  const draw = (figure) => {
    const lines = memory.get(figure);
    if (!lines) return;
    const plot = figure.querySelector(".plot"), caption = figure.querySelector("[data-caption]");
    const known = lines.filter((line) => line.x !== null);
    const stored = lines.reduce((sum, line) => sum + line.n_stored, 0), shown = lines.reduce((sum, line) => sum + line.n_shown, 0);
    const samplers = [...new Set(known.map((line) => line.sampler))].filter((name) => name !== "exact" && name !== "none");
    caption.textContent = say.shown.replace("%n", shown).replace("%m", stored) + (samplers.length ? ` · ${samplers.join(", ")}` : "");
    caption.title = `sha256 ${figure.dataset.sha || ""}`;
    if (!stored || !known.length) {
      if (window.Plotly && plot.dataset.bound) { window.Plotly.purge(plot); delete plot.dataset.bound; }
      plot.textContent = stored ? say.noaxis : say.empty; plot.classList.add("muted"); return;
    }
    if (!plot.dataset.bound) plot.textContent = "";
    plot.classList.remove("muted");
    const traces = lines.map((line, place) => (line.x === null ? null : traceOf(figure, line, place, lines.length > 2))).filter(Boolean);
    const odd = known.flatMap((line) => line.nonfinite), none = known.flatMap((line) => line.absent.map((x) => [x, ""]));
    if (odd.length) traces.push(rail(odd, `${say.nonfinite}: `, "x", css("--bad")));
    if (none.length) traces.push(rail(none, say.absent, "line-ns-open", css("--ink3")));
    const range = zoomed.get(figure);
    const layout = {
      ...base(), uirevision: axis, showlegend: lines.length > 1, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 9 }, itemwidth: 30 },
      xaxis: { ...xAxis(axisWord()), ...(range ? { range } : {}) }, yaxis: yAxis(), yaxis2: { overlaying: "y", range: [0, 1.04], visible: false, fixedrange: true },
    };
    window.Plotly.react(plot, traces, layout, config);
    if (plot.dataset.bound) return;
    plot.dataset.bound = "1";
    plot.on("plotly_relayout", async (event) => {
      const low = event["xaxis.range[0]"], high = event["xaxis.range[1]"];
      if (low !== undefined) { zoomed.set(figure, [low, high]); if (memory.get(figure).some((line) => line.sampler === "m4")) await load([figure], [low, high]); }
      else if (event["xaxis.autorange"]) { zoomed.delete(figure); await load([figure]); }
    });
    plot.on("plotly_click", (event) => {
      const uid = event.points[0].customdata && event.points[0].customdata[2];
      if (uid) location.assign(`${say.behind}${uid}/`);
    });
  };

  const ask = async (wanted, extra) => {
    const address = new URL(say.layers, location.href);
    address.searchParams.set("series", wanted.join(","));
    address.searchParams.set("axis", axis);
    Object.entries(extra || {}).forEach(([name, value]) => address.searchParams.set(name, value));
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      return answer.ok ? await answer.json() : null;
    } catch (error) { return null; } // the caption keeps the last state; the next round tries again
  };
  const place = (group, data) => {
    const found = new Map(data.series.map((line) => [line.uid, line]));
    group.forEach((figure) => { memory.set(figure, uids(figure).map((uid) => found.get(uid)).filter(Boolean)); figure.dataset.sha = data.sha256; draw(figure); });
  };
  const packs = (group) => {
    const found = [[]];
    group.forEach((figure) => {
      const last = found[found.length - 1];
      if (last.length && last.reduce((n, f) => n + uids(f).length, 0) + uids(figure).length > MOST) found.push([figure]); else last.push(figure);
    });
    return found.filter((pack) => pack.length);
  };
  const load = async (group, range) => {
    for (const pack of packs(group)) {
      const data = await ask(pack.flatMap(uids), range ? { from: Math.min(...range), to: Math.max(...range) } : {});
      if (!data) continue;
      if (!cursor) cursor = data.cursor;
      place(pack, data);
    }
  };

  // Figures that come into view within one moment are fetched together.
  let waiting = new Set(), timer = 0;
  const flush = () => { timer = 0; const group = [...waiting].filter((figure) => !memory.has(figure)); waiting = new Set(); load(group); };
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting || memory.has(entry.target)) return;
    waiting.add(entry.target);
    timer = timer || setTimeout(flush, 30);
  }), { rootMargin: "200px" });
  figures.forEach((figure) => seen.observe(figure));

  // Distributions over time.
  const heats = [...root.querySelectorAll("[data-heat]")];
  const drawHeat = (figure) => {
    const data = JSON.parse(figure.dataset.heat), middle = data.edges.slice(1).map((edge, i) => (edge + data.edges[i]) / 2);
    const z = data.z.map((row) => row.map((cell) => cell || null));
    const text = data.z.map((row, i) => row.map(() => `${+data.edges[i].toPrecision(4)} – ${+data.edges[i + 1].toPrecision(4)}`));
    window.Plotly.react(figure.querySelector(".plot"), [{ type: "heatmap", x: data.x, y: middle, z, text, xgap: 0, ygap: 1, hoverongaps: false, colorscale: [[0, css("--tint")], [1, css("--c1")]], showscale: false, hovertemplate: `${figure.dataset.axisWord} %{x}<br>%{text}<br>%{z} ${figure.dataset.countWord}<extra></extra>` }], { ...base(), xaxis: xAxis(figure.dataset.axisWord), yaxis: { ...yAxis(), zeroline: false, gridcolor: "rgba(0,0,0,0)" } }, config);
    figure.dataset.drawn = "1";
  };
  const heatSeen = new IntersectionObserver((entries) => entries.forEach((entry) => { if (entry.isIntersecting && !entry.target.dataset.drawn) drawHeat(entry.target); }), { rootMargin: "200px" });
  heats.forEach((figure) => heatSeen.observe(figure));

  // Switches.
  if (choice) choice.addEventListener("change", () => { axis = choice.value; zoomed.clear(); load([...memory.keys()]); });
  const filters = { phase: document.querySelector("[data-phase-choice]"), split: document.querySelector("[data-split-choice]") };
  const narrow = () => figures.forEach((figure) => { figure.hidden = Object.entries(filters).some(([name, box]) => box && box.value && figure.dataset[name] && figure.dataset[name] !== box.value); });
  Object.values(filters).forEach((box) => box && box.addEventListener("change", narrow));

  document.addEventListener("themechange", () => { [...memory.keys()].forEach(draw); heats.filter((figure) => figure.dataset.drawn).forEach(drawHeat); });
  window.addEventListener("beforeprint", () => { load(figures.filter((figure) => !memory.has(figure))); heats.filter((figure) => !figure.dataset.drawn).forEach(drawHeat); });

  // Live: one small question every few seconds; only when something was stored are lines fetched again, zoomed ones stay.
  const round = async () => {
    if (document.hidden || !cursor) return;
    const still = [...memory.keys()].filter((figure) => !zoomed.has(figure));
    if (!still.length) return;
    const data = await ask(packs(still)[0].flatMap(uids), { cursor });
    if (!data || data.changed === false) return;
    const before = cursor;
    cursor = data.cursor;
    place(packs(still)[0], data);
    if (before !== cursor) await load(packs(still).slice(1).flat());
    if (!data.live) clearInterval(pulse);
  };
  const pulse = say.live ? setInterval(round, 4000) : 0;
})();
