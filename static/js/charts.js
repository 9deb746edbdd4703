// Plotly charts: one template for all, exact points on zoom, non-finite values on a rail at the top.
(() => {
  "use strict";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const template = () => ({
    layout: {
      font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 44, r: 8, t: 10, b: 34 }, showlegend: false, hovermode: "closest", dragmode: "zoom",
      colorway: ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(css),
      xaxis: { showgrid: false, zeroline: false, linecolor: css("--rule2"), showline: true, ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), automargin: true, title: { font: { size: 10 }, standoff: 4 } },
      yaxis: { gridcolor: css("--rule"), zerolinecolor: css("--rule2"), zeroline: true, nticks: 5, automargin: true, exponentformat: "e" },
      hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
    },
  });
  const config = { displayModeBar: false, responsive: true, locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en-US" };
  const figures = [...document.querySelectorAll("[data-chart]")];
  const memory = new WeakMap();

  // Other runs beside the own one: one trace each, never above the own line.
  const beside = new WeakMap();
  let partnerShown = false;
  const line = (name, data, style) => ({ x: data.x, y: data.y, name, type: "scatter", mode: "lines", line: style, hovertemplate: `${name}<br>${data.axis} %{x}<br>%{y:.5~g} ${data.unit}<extra></extra>` });
  const meanOf = (all) => {
    const rest = all.slice(1).map((data) => new Map(data.x.map((x, i) => [x, data.y[i]])));
    const points = all[0].x.map((x, i) => [x, all[0].y[i], ...rest.map((map) => map.get(x))]).filter((row) => row.every((v) => v !== undefined));
    return { ...all[0], x: points.map((row) => row[0]), y: points.map((row) => row.slice(1).reduce((a, b) => a + b, 0) / all.length) };
  };
  const others = (figure, own) => {
    const found = beside.get(figure);
    if (!found) return [];
    const traces = found.seeds.map(([name, data]) => line(name, data, { width: 0.9, dash: "dot", color: css("--c1") }));
    if (found.seeds.length && own.x.length) {
      const all = [own, ...found.seeds.map((item) => item[1])];
      traces.push(line(figure.dataset.mean.replace("%n", all.length), meanOf(all), { width: 1.6, color: css("--ink3") }));
    }
    if (partnerShown) found.partner.forEach(([name, data]) => traces.push(line(name, data, { width: 1.2, dash: "dashdot", color: css("--c2") })));
    return traces;
  };
  const readAll = async (text) => {
    const answers = await Promise.all(JSON.parse(text || "[]").map(async ([name, address]) => {
      try {
        const answer = await fetch(address, { headers: { Accept: "application/json" } });
        return answer.ok ? [name, await answer.json()] : null;
      } catch (error) { return null; }
    }));
    return answers.filter((item) => item && item[1].x.length);
  };
  const loadOthers = async (figure) => {
    const { seeds, partner } = figure.dataset;
    if (!seeds && !partner) return;
    const kept = beside.get(figure) || { seeds: await readAll(seeds), partner: [], asked: false };
    if (partnerShown && !kept.asked) { kept.partner = await readAll(partner); kept.asked = true; }
    beside.set(figure, kept);
    if (memory.has(figure)) draw(figure, memory.get(figure));
  };

  const draw = (figure, data, range) => {
    const plot = figure.querySelector(".plot");
    const caption = figure.querySelector("[data-caption]");
    caption.textContent = figure.dataset.shown.replace("%n", data.n_shown).replace("%m", data.n_stored) + (data.sampler === "none" ? "" : ` · ${data.sampler}`);
    caption.title = `sha256 ${data.sha256}`;
    if (!data.n_stored) { plot.textContent = figure.dataset.empty; plot.classList.add("muted"); return; }
    plot.textContent === figure.dataset.empty && (plot.textContent = "");
    plot.classList.remove("muted");
    const few = data.x.length <= 60;
    const traces = [{ x: data.x, y: data.y, type: "scatter", mode: few ? "lines+markers" : "lines", line: { width: 1.4, color: css("--c1"), dash: "solid" }, marker: { size: 4, symbol: "circle" }, hovertemplate: `${data.axis} %{x}<br>%{y:.5~g} ${data.unit}<extra></extra>` }];
    traces.unshift(...others(figure, data));
    if (data.nonfinite.length) traces.push({ x: data.nonfinite.map((p) => p[0]), y: data.nonfinite.map(() => 1), yaxis: "y2", type: "scatter", mode: "markers", marker: { symbol: "x", size: 7, color: css("--bad") }, text: data.nonfinite.map((p) => p[1]), hovertemplate: `${data.axis} %{x}<br>${figure.dataset.nonfinite}: %{text}<extra></extra>` });
    const layout = {
      template: template(), uirevision: "keep",
      xaxis: { title: { text: data.axis }, ...(range ? { range } : {}) },
      yaxis: { rangemode: data.zero ? "tozero" : "normal" },
      yaxis2: { overlaying: "y", range: [0, 1.04], visible: false, fixedrange: true },
    };
    window.Plotly.react(plot, traces, layout, config);
    memory.set(figure, data);
    if (!plot.dataset.bound) {
      plot.dataset.bound = "1";
      plot.on("plotly_relayout", async (event) => {
        const low = event["xaxis.range[0]"], high = event["xaxis.range[1]"];
        figure.dataset.zoomed = low === undefined ? "" : "1";
        if (low !== undefined && memory.get(figure).sampler !== "none") await load(figure, [low, high]);
        else if (event["xaxis.autorange"]) await load(figure);
      });
    }
  };
  const load = async (figure, range) => {
    const url = new URL(figure.dataset.chart, location.href);
    if (range) { url.searchParams.set("from", Math.min(...range)); url.searchParams.set("to", Math.max(...range)); }
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" } });
      if (answer.ok) draw(figure, await answer.json(), range);
    } catch (error) { /* the caption keeps the last state; the next round tries again */ }
  };
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (entry.isIntersecting && !memory.has(entry.target)) load(entry.target).then(() => loadOthers(entry.target));
  }), { rootMargin: "300px" });
  figures.forEach((figure) => seen.observe(figure));
  document.querySelectorAll("[data-partner-switch]").forEach((box) => box.addEventListener("change", () => {
    partnerShown = box.checked;
    figures.filter((figure) => memory.has(figure)).forEach((figure) => loadOthers(figure));
  }));
  document.addEventListener("themechange", () => figures.forEach((figure) => memory.has(figure) && draw(figure, memory.get(figure))));
  window.addEventListener("beforeprint", () => figures.forEach((figure) => memory.has(figure) || load(figure)));
  setInterval(() => {
    if (document.hidden) return;
    figures.forEach((figure) => { const data = memory.get(figure); if (data && data.live && !figure.dataset.zoomed) load(figure); });
  }, 5000);
})();
