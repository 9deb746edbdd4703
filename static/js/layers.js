// Layer charts: several lines a figure, fetched together and drawn when seen; live by cursor; zoom and scroll are kept.
(() => {
  "use strict";
  const root = document.querySelector("[data-layers]");
  if (!root) return;
  const say = root.dataset;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"], MARKERS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
  const MOST = Number(say.pack); // lines in one request
  const DRAWN = 800; // points a line in a card: first, last, lowest and highest of every other pixel
  const ROWS = 200; // rows in a table of exact values
  const config = { displayModeBar: false, responsive: true, locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en-US" };

  // Looks.
  const base = () => ({
    font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 34, r: 8, t: 6, b: 18 }, hovermode: "closest", dragmode: "zoom", showlegend: false,
    hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
  });
  const axisX = () => ({ showgrid: false, zeroline: false, linecolor: css("--rule2"), showline: true, ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), nticks: 6, automargin: true });
  const axisY = () => ({ gridcolor: css("--rule"), zerolinecolor: css("--rule2"), zeroline: true, nticks: 4, automargin: true, exponentformat: "e" });
  const wholeTicks = (low, high) => (high - low <= 6 ? { dtick: 1, tickformat: "d" } : { tickformat: "~s" });
  const channel = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const blend = (share) => { const [a, b] = [channel(css("--c1")), channel(css("--bg"))]; return `rgb(${a.map((v, i) => Math.round(v * share + b[i] * (1 - share))).join(",")})`; };
  const raised = (power) => [...power.replace("+", "")].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
  const short = (value) => { // as the server writes numbers
    const size = Math.abs(value), plain = size >= 1000 && size < 1e6 ? value.toFixed(0) : size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential(2) : String(+value.toPrecision(3));
    const [digits, power] = plain.split("e");
    return (power ? `${+digits}×10${raised(power)}` : digits).replace("-", "−");
  };

  // Figures and what was fetched for them.
  const figures = [...root.querySelectorAll("[data-card]")];
  const memory = new Map(); // figure -> Map of series uid -> line as last drawn
  const cursors = new Map(); // figure -> what had been stored when its lines were read
  const zoomed = new Map(); // figure -> [low, high] of its x axis
  const choice = document.querySelector("[data-axis-choice]");
  let axis = choice ? choice.value : "step";
  const uids = (figure) => figure.dataset.card.split(",");
  const parts = (figure) => JSON.parse(figure.dataset.lines);
  const axisWord = (figure) => (axis === "step" ? figure.dataset.step : choice.options[choice.selectedIndex].text);

  const styleOf = (figure, part, place, all) => {
    if (part.rank === null) return { colour: css(`--c${(place % 6) + 1}`), dash: DASHES[place % 6], symbol: MARKERS[place % 6] };
    return { colour: blend(all.length < 2 ? 1 : 0.3 + (0.7 * place) / (all.length - 1)), dash: "solid", symbol: "circle" };
  };
  const errorsOf = (line, low, high, colour) => {
    if (!low || !high || low.x === null || high.x === null) return {};
    const at = (bound) => new Map(bound.x.map((x, i) => [x, bound.y[i]]));
    const [down, up] = [at(low), at(high)];
    const away = (bounds, sign) => line.x.map((x, i) => (bounds.has(x) ? Math.max(0, sign * (bounds.get(x) - line.y[i])) : null));
    return { error_y: { type: "data", symmetric: false, array: away(up, 1), arrayminus: away(down, -1), thickness: 1, width: 3, color: colour } };
  };
  const traceOf = (figure, part, place, all, lines) => {
    const line = lines.get(part.uid), style = styleOf(figure, part, place, all), unit = figure.dataset.unit;
    const [low, high] = [lines.get(part.low), lines.get(part.high)];
    const bounds = (i) => (low && high && low.x && high.x && low.x[i] === line.x[i] ? ` [${short(low.y[i])}, ${short(high.y[i])}]` : "");
    const custom = line.x.map((x, i) => [line.step ? line.step[i] : x, line.count && line.count[i] !== null ? `<br>n ${line.count[i]}` : "", (line.subject && line.subject[i]) || "", line.subject && line.subject[i] ? `<br><i>${say.click}</i>` : "", bounds(i)]);
    return {
      x: line.x, y: line.y, customdata: custom, name: part.label || figure.dataset.title, meta: part.uid, type: "scatter", mode: line.x.length <= 60 ? "lines+markers" : "lines",
      line: { width: all.length > 2 ? 1.2 : 1.4, color: style.colour, dash: style.dash }, marker: { size: 4, symbol: style.symbol }, ...errorsOf(line, low, high, style.colour),
      hovertemplate: `${part.label ? part.label + "<br>" : ""}${axisWord(figure)} %{x}${axis === "step" ? "" : `<br>${figure.dataset.step} %{customdata[0]}`}<br><b>%{y:.6~g}</b>%{customdata[4]} ${unit}%{customdata[1]}%{customdata[3]}<extra></extra>`,
    };
  };
  // Values of groups stand beside a shard's own, as faint marks: a line through both would zigzag.
  const tracesOf = (figure, part, place, all, lines) => {
    const trace = traceOf(figure, part, place, all, lines), line = lines.get(part.uid);
    const inner = line.x.map((x, i) => i).filter((i) => trace.customdata[i][2]);
    if (!inner.length || inner.length === line.x.length) return [trace];
    const outer = line.x.map((x, i) => i).filter((i) => !trace.customdata[i][2]);
    const only = (places) => ({ ...trace, x: places.map((i) => line.x[i]), y: places.map((i) => line.y[i]), customdata: places.map((i) => trace.customdata[i]) });
    return [{ ...only(inner), mode: "markers", marker: { ...trace.marker, color: trace.line.color, opacity: 0.35 } }, { ...only(outer), mode: outer.length <= 60 ? "lines+markers" : "lines" }];
  };
  const rail = (figure, places, word, symbol, colour) => ({ x: places.map((p) => p[0]), y: places.map(() => 1), yaxis: "y2", type: "scatter", mode: "markers", text: places.map((p) => p[1]), marker: { symbol, size: 6, color: colour }, hovertemplate: `${axisWord(figure)} %{x}<br>${word}%{text}<extra></extra>` });
  const rangeY = (values) => {
    const low = Math.min(...values), high = Math.max(...values);
    if (!values.length) return {};
    if (high > low && high - low < 0.02 * Math.abs(high)) return { range: [low - 0.04 * Math.abs(high), high + 0.04 * Math.abs(high)] }; // else noise would fill the plot
    if (low !== high) return {};
    return low >= 0 && low <= 1 ? { range: [-0.04, 1.04] } : { range: [low - Math.abs(low) * 0.2 - 0.01, low + Math.abs(low) * 0.2 + 0.01] };
  };

  const caption = (figure, lines) => {
    const spot = figure.querySelector("[data-caption]"), main = parts(figure).map((part) => lines.get(part.uid)).filter(Boolean);
    const total = (name) => main.reduce((sum, line) => sum + line[name], 0);
    const samplers = [...new Set(main.map((line) => line.sampler))].filter((name) => name !== "exact" && name !== "none");
    spot.textContent = say.shown.replace("%n", total("n_shown")).replace("%m", total("n_stored")) + (samplers.length ? ` · ${samplers.join(", ")}` : "");
    spot.title = figure.dataset.sha ? `sha256 ${figure.dataset.sha}` : "";
    return total("n_stored");
  };
  const bare = (figure, plot, words) => {
    if (plot.dataset.bound) { window.Plotly.purge(plot); delete plot.dataset.bound; }
    plot.textContent = words; plot.classList.add("muted");
  };
  // One figure at a time, so that the first is seen while others are drawn; the library may still be on its way.
  const library = window.Plotly || document.readyState === "complete" ? Promise.resolve() : new Promise((done) => document.addEventListener("DOMContentLoaded", done));
  const queue = new Set();
  let pumping = false;
  const pump = () => {
    const figure = queue.values().next().value;
    pumping = figure !== undefined;
    if (!pumping) return;
    queue.delete(figure);
    drawNow(figure);
    setTimeout(pump);
  };
  const draw = (figure) => { queue.add(figure); if (!pumping) { pumping = true; library.then(pump); } };
  const drawNow = (figure) => {
    const lines = memory.get(figure), plot = figure.querySelector(".plot");
    if (!lines || !plot) return;
    const stored = caption(figure, lines), all = parts(figure);
    const known = all.map((part) => lines.get(part.uid)).filter((line) => line && line.x !== null);
    if (!stored || !known.length) { bare(figure, plot, stored ? say.noaxis : say.empty); return; }
    if (!plot.dataset.bound) plot.textContent = "";
    plot.classList.remove("muted");
    const traces = all.flatMap((part, place) => (lines.get(part.uid) && lines.get(part.uid).x !== null ? tracesOf(figure, part, place, all, lines) : []));
    const odd = known.flatMap((line) => line.nonfinite), none = known.flatMap((line) => line.absent.map((x) => [x, ""]));
    if (odd.length) traces.push(rail(figure, odd, `${say.nonfinite}: `, "x", css("--bad")));
    if (none.length) traces.push(rail(figure, none, say.absent, "line-ns-open", css("--ink3")));
    const xs = known.flatMap((line) => (line.x.length ? [line.x[0], line.x[line.x.length - 1]] : [])), range = zoomed.get(figure);
    const layout = {
      ...base(), uirevision: axis,
      xaxis: { ...axisX(), ...wholeTicks(Math.min(...xs), Math.max(...xs)), ...(range ? { range, autorange: false } : {}) },
      yaxis: { ...axisY(), ...rangeY(known.flatMap((line) => (line.y.length <= 60 ? line.y : [0, 1, 2]))) }, yaxis2: { overlaying: "y", range: [0, 1.04], visible: false, fixedrange: true },
    };
    window.Plotly.react(plot, traces, layout, config);
    if (!plot.dataset.bound) bind(figure, plot);
  };
  const bind = (figure, plot) => {
    plot.dataset.bound = "1";
    plot.on("plotly_relayout", (event) => {
      const low = event["xaxis.range[0]"], high = event["xaxis.range[1]"];
      if (low !== undefined) {
        zoomed.set(figure, [low, high]);
        if ([...memory.get(figure).values()].some((line) => line.sampler === "m4")) load([figure], [low, high]);
      } else if (event["xaxis.autorange"]) { zoomed.delete(figure); load([figure]); }
    });
    plot.on("plotly_click", (event) => {
      const uid = event.points[0].customdata && event.points[0].customdata[2];
      if (uid) location.assign(`${say.behind}${uid}/`);
    });
  };

  // Asking: lines of several figures in one request.
  const ask = async (wanted, extra) => {
    const address = `${say.layers}?series=${wanted.join(",")}&${new URLSearchParams({ axis, limit: DRAWN, ...extra })}`;
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      return answer.ok ? await answer.json() : null;
    } catch (error) { return null; } // the figure keeps what it shows; the next round tries again
  };
  const packs = (group) => {
    const found = [[]];
    group.forEach((figure) => {
      const last = found[found.length - 1];
      if (last.length && last.reduce((n, f) => n + uids(f).length, 0) + uids(figure).length > MOST) found.push([figure]); else last.push(figure);
    });
    return found.filter((pack) => pack.length);
  };
  const place = (pack, data) => {
    const found = new Map(data.series.map((line) => [line.uid, line]));
    pack.forEach((figure) => {
      memory.set(figure, new Map(uids(figure).filter((uid) => found.has(uid)).map((uid) => [uid, found.get(uid)])));
      cursors.set(figure, data.cursor); figure.dataset.sha = data.sha256; draw(figure);
    });
  };
  const load = async (group, range) => {
    for (const pack of packs(group)) {
      const data = await ask(pack.flatMap(uids), range ? { from: Math.min(...range), to: Math.max(...range) } : {});
      if (data && data.axis === axis) place(pack, data);
    }
  };

  // Figures that come into view within one moment are fetched together; the others follow while nothing else is to do.
  let waiting = new Set(), timer = 0;
  const flush = () => { timer = 0; const group = [...waiting].filter((figure) => !memory.has(figure)); waiting = new Set(); load(group); };
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting || memory.has(entry.target) || early.has(entry.target)) return;
    waiting.add(entry.target);
    timer = timer || setTimeout(flush, 30);
  }), { rootMargin: "200px" });
  const plotted = figures.filter((figure) => figure.querySelector(".plot"));
  const near = plotted.filter((figure) => figure.offsetParent && figure.getBoundingClientRect().top < window.innerHeight);
  const early = new Set(near.slice(0, 12)); // asked for before the drawing library has been read
  load([...early]).then(() => early.clear());
  plotted.forEach((figure) => seen.observe(figure));
  if (plotted.length <= 80) setTimeout(() => load(plotted.filter((figure) => !memory.has(figure) && !figure.closest("details:not([open])"))), 2500);

  // Distributions over versions.
  const heats = [...root.querySelectorAll("[data-heat]")];
  const drawHeat = async (figure) => {
    figure.dataset.drawn = "1";
    await library;
    const data = JSON.parse(figure.dataset.heat), size = data.edges[1] - data.edges[0];
    const middle = data.edges.slice(1).map((edge, i) => (data.whole && size === 1 ? data.edges[i] : (edge + data.edges[i]) / 2));
    const cell = (i) => (data.whole && size === 1 ? `${data.edges[i]}` : data.whole ? `${data.edges[i]} – ${data.edges[i + 1] - 1}` : `${short(data.edges[i])} – ${short(data.edges[i + 1])}`);
    const text = data.z.map((row, i) => row.map(() => cell(i))), z = data.z.map((row) => row.map((n) => n || null));
    const trace = { type: "heatmap", x: data.x, y: middle, z, text, xgap: 1, ygap: 1, hoverongaps: false, zmin: 0, colorscale: [[0, blend(0.12)], [1, css("--c1")]], showscale: false, hovertemplate: `${say.version} %{x}<br>${figure.dataset.title} %{text}<br>%{z} ${say.count}<extra></extra>` };
    const edge = data.width / 2, x = [data.x[0] - edge, data.x[data.x.length - 1] + edge];
    window.Plotly.react(figure.querySelector(".plot"), [trace], { ...base(), xaxis: { ...axisX(), ...wholeTicks(x[0], x[1] - 1), range: x }, yaxis: { ...axisY(), ticks: "", zeroline: false, gridcolor: "rgba(0,0,0,0)", ...(data.whole && data.edges.length < 7 ? { dtick: 1 } : {}) } }, config);
  };
  const heatSeen = new IntersectionObserver((entries) => entries.forEach((entry) => { if (entry.isIntersecting && !entry.target.dataset.drawn) drawHeat(entry.target); }), { rootMargin: "200px" });
  heats.forEach((figure) => heatSeen.observe(figure));

  if (choice) choice.addEventListener("change", () => { axis = choice.value; zoomed.clear(); load([...memory.keys()]); });
  document.addEventListener("themechange", () => { [...memory.keys()].forEach(draw); heats.filter((figure) => figure.dataset.drawn).forEach(drawHeat); });
  window.addEventListener("beforeprint", () => heats.filter((figure) => !figure.dataset.drawn).forEach(drawHeat));

  // A table of the exact values of a card, on demand: what the pointer finds, for keys and screen readers.
  const cellOf = (row, text, link) => {
    const cell = row.insertCell();
    if (link) { const a = document.createElement("a"); a.href = `${say.behind}${link}/`; a.textContent = text; cell.append(a); } else cell.textContent = text;
    return cell;
  };
  const tabulate = (figure, data, box) => {
    const labels = new Map(parts(figure).map((part) => [part.uid, part.label || figure.dataset.title])), rows = [];
    data.series.filter((line) => labels.has(line.uid)).forEach((line) => {
      (line.x || []).forEach((x, i) => rows.push([line.step ? line.step[i] : x, labels.get(line.uid), String(line.y[i]), line.count ? line.count[i] : null, line.subject ? line.subject[i] : "", x]));
      line.nonfinite.forEach(([x, name]) => rows.push([x, labels.get(line.uid), name, null, "", x]));
      line.absent.forEach((x) => rows.push([x, labels.get(line.uid), say.absent, null, "", x]));
    });
    rows.sort((a, b) => b[5] - a[5]);
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    table.className = "data";
    [figure.dataset.step, say.line, say.value, "n"].forEach((word) => { const th = document.createElement("th"); th.textContent = word; th.scope = "col"; head.append(th); });
    const body = table.createTBody();
    rows.slice(0, ROWS).forEach((item) => { const row = body.insertRow(); cellOf(row, item[0], item[4]); cellOf(row, item[1]); cellOf(row, item[2]).className = "num"; cellOf(row, item[3] === null ? "—" : item[3]).className = "num"; });
    const note = document.createElement("p");
    note.className = "muted xs"; note.textContent = say.newest.replace("%n", Math.min(ROWS, rows.length)).replace("%m", rows.length);
    box.replaceChildren(note, table);
  };
  root.querySelectorAll("[data-exact]").forEach((details) => details.addEventListener("toggle", async () => {
    const figure = details.closest("[data-card]"), box = details.querySelector("[data-rows]"), range = zoomed.get(figure);
    if (!details.open) return;
    const data = await ask(uids(figure), { limit: 20000, ...(range ? { from: Math.min(...range), to: Math.max(...range) } : {}) });
    if (data) tabulate(figure, data, box); else box.textContent = say.unreachable;
  }));

  // Live: a small question every few seconds; the answer holds only what was stored since, and is appended.
  const COLUMNS = ["x", "y", "step", "count", "subject"];
  const append = (line, fresh) => {
    if (line.x === null || fresh.x === null) return fresh.x === null ? line : fresh;
    const known = new Set(line.x.map((x, i) => `${x} ${line.y[i]}`));
    const kept = fresh.x.map((x, i) => i).filter((i) => !known.has(`${fresh.x[i]} ${fresh.y[i]}`));
    COLUMNS.filter((name) => line[name]).forEach((name) => kept.forEach((i) => line[name].push(fresh[name] ? fresh[name][i] : null)));
    const order = line.x.map((x, i) => i).sort((a, b) => line.x[a] - line.x[b] || a - b);
    if (order.some((from, to) => from !== to)) COLUMNS.filter((name) => line[name]).forEach((name) => { line[name] = order.map((i) => line[name][i]); });
    const odd = new Set(line.nonfinite.map(String)), gone = new Set(line.absent);
    line.nonfinite.push(...fresh.nonfinite.filter((item) => !odd.has(String(item))));
    line.absent.push(...fresh.absent.filter((x) => !gone.has(x)));
    line.n_stored += kept.length + fresh.nonfinite.length + fresh.absent.length;
    line.n_shown = line.x.length + line.nonfinite.length + line.absent.length;
    return line;
  };
  const newest = (figure) => figure.querySelectorAll("[data-last]").forEach((spot) => {
    const line = memory.get(figure).get(spot.dataset.last);
    if (!line || !line.x || !line.y.length) return;
    const own = line.y.filter((y, i) => !line.subject || !line.subject[i]); // a shard's values rather than its groups'
    spot.textContent = short((own.length ? own : line.y).slice(-1)[0]);
  });
  const take = (pack, data) => {
    const found = new Map(data.series.map((line) => [line.uid, line]));
    pack.forEach((figure) => {
      cursors.set(figure, data.cursor);
      const mine = uids(figure).filter((uid) => found.has(uid)), lines = memory.get(figure);
      if (!mine.length) return;
      mine.forEach((uid) => lines.set(uid, lines.has(uid) ? append(lines.get(uid), found.get(uid)) : found.get(uid)));
      figure.dataset.sha = ""; draw(figure);
      if (!zoomed.has(figure)) newest(figure);
    });
  };
  let refreshed = 0;
  const refreshWords = async () => { // sentences, not charts; what a reader has open stays as it is
    if (Date.now() - refreshed < 15000) return;
    refreshed = Date.now();
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelectorAll("[data-sentence]").forEach((old) => { const fresh = page.getElementById(old.id); if (fresh) old.textContent = fresh.textContent; });
      const grown = page.querySelectorAll("[data-card]").length !== figures.length || page.querySelectorAll(".reading").length !== document.querySelectorAll(".reading").length;
      document.querySelector("[data-grown]").hidden = !grown;
    } catch (error) { refreshed = 0; }
  };
  const round = async () => {
    if (document.hidden) return;
    const groups = new Map();
    [...memory.keys()].forEach((figure) => { const mine = cursors.get(figure); groups.set(mine, [...(groups.get(mine) || []), figure]); });
    let changed = false;
    for (const [cursor, group] of groups) for (const pack of packs(group)) {
      const data = await ask(pack.flatMap(uids), { cursor });
      if (!data) return; // the server restarts, perhaps: cursors stand in the database, so nothing is lost
      if (data.live === false) clearInterval(pulse);
      if (data.changed === false) break; // nothing was stored, whatever the figure
      changed = true;
      if (data.append) take(pack, data); else { const still = pack.filter((figure) => !zoomed.has(figure)); place(still, data); still.forEach(newest); }
    }
    if (changed) await refreshWords();
  };
  const pulse = say.live ? setInterval(round, Number(say.live)) : 0;
})();
