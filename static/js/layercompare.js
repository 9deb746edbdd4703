// Comparison over layers: each card is fetched when it comes into view; bands of arms and single lines of runs.
(() => {
  "use strict";
  const root = document.querySelector("[data-layercompare]");
  if (!root) return;
  const say = root.dataset, css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const config = { displayModeBar: false, responsive: true, locale: document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en-US" };
  const faded = (colour, share) => {
    const box = document.createElement("canvas").getContext("2d");
    box.fillStyle = colour; box.fillRect(0, 0, 1, 1);
    const [r, g, b] = box.getImageData(0, 0, 1, 1).data;
    return `rgba(${r},${g},${b},${share})`;
  };

  const bandTraces = (band) => {
    const colour = css(`--c${band.colour}`), edge = { width: 0, color: colour }, base = { x: band.x, type: "scatter", mode: "lines", line: edge, hoverinfo: "skip", showlegend: false };
    return [
      { ...base, y: band.mean.map((m, i) => m - band.sd[i]) },
      { ...base, y: band.mean.map((m, i) => m + band.sd[i]), fill: "tonexty", fillcolor: faded(colour, 0.16) },
      { x: band.x, y: band.mean, type: "scatter", mode: "lines", name: band.arm, line: { width: 2.2, color: colour }, customdata: band.mean.map((_, i) => [band.sd[i], say.mean.replace("%n", band.n[i]), band.step[i]]), hovertemplate: `${band.arm}<br>%{customdata[1]}<br>%{y:.6~g} ± %{customdata[0]:.3~g} (${say.sd})<br>${say.step} %{customdata[2]}<extra></extra>` },
    ];
  };
  const lineTrace = (line, data, banded) => ({
    x: line.x, y: line.y, type: "scatter", mode: line.x.length <= 30 ? "lines+markers" : "lines", name: line.name, marker: { size: 3.5 }, opacity: banded ? 0.6 : 1,
    line: { width: banded ? 0.9 : 1.4, dash: line.dash, color: css(`--c${line.colour}`) }, customdata: line.step,
    hovertemplate: `${line.name}<br>${data.axis} %{x:.6~g}<br>${say.step} %{customdata}<br>%{y:.6~g} ${data.unit === "none" ? "" : data.unit}<extra></extra>`,
  });
  const draw = (figure) => {
    const plot = figure.querySelector("[data-drawn]");
    if (!plot) return;
    const data = JSON.parse(plot.dataset.drawn), banded = new Set(data.bands.map((band) => band.arm));
    const odd = data.lines.flatMap((line) => line.nonfinite.map((item) => [item[0], `${line.name}: ${item[1]}`]));
    const traces = [...data.bands.flatMap(bandTraces), ...data.lines.map((line) => lineTrace(line, data, banded.has(line.arm)))];
    if (odd.length) traces.push({ x: odd.map((p) => p[0]), y: odd.map(() => 1), yaxis: "y2", type: "scatter", mode: "markers", text: odd.map((p) => p[1]), marker: { symbol: "x", size: 6, color: css("--bad") }, hovertemplate: `${say.nonfinite}: %{text}<extra></extra>` });
    window.Plotly.react(plot, traces, {
      font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 48, r: 8, t: 8, b: 34 }, hovermode: "closest", showlegend: false, uirevision: "kept",
      hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
      xaxis: { title: { text: data.axis, font: { size: 10 }, standoff: 4 }, showgrid: false, zeroline: false, showline: true, linecolor: css("--rule2"), ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), automargin: true },
      yaxis: { gridcolor: css("--rule"), zerolinecolor: css("--rule2"), nticks: 5, automargin: true, exponentformat: "e" }, yaxis2: { overlaying: "y", range: [0, 1.04], visible: false, fixedrange: true },
    }, config);
  };

  // A few cards at a time: a hundred runs of two hundred quantities are asked for as they are looked at.
  const figures = [...root.querySelectorAll("[data-quantity]")], waiting = [];
  let busy = 0;
  const next = async () => {
    if (busy >= 2 || !waiting.length) return;
    busy += 1;
    const figure = waiting.shift(), body = figure.querySelector("[data-body]");
    try {
      const answer = await fetch(`${figure.dataset.quantity}?${say.query}`);
      if (!answer.ok) throw new Error(String(answer.status));
      body.innerHTML = await answer.text();
      figure.dataset.state = "there";
      draw(figure);
    } catch (error) { body.textContent = say.failed; delete figure.dataset.state; }
    busy -= 1;
    next();
  };
  const load = (figure) => { if (figure.dataset.state) return; figure.dataset.state = "asked"; waiting.push(figure); next(); };
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => { if (entry.isIntersecting) load(entry.target); }), { rootMargin: "300px" });
  figures.forEach((figure) => seen.observe(figure));
  document.addEventListener("themechange", () => figures.filter((figure) => figure.dataset.state === "there").forEach(draw));
  window.addEventListener("beforeprint", () => figures.forEach(load));
})();
