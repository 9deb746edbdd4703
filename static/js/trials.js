// D over m/L with the bound of each scope's cap: which differences keep their size and which only their sign and place.
(() => {
  "use strict";
  const figure = document.querySelector("[data-cap]"), source = document.getElementById("cap-points");
  if (!figure || !source) return;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const data = JSON.parse(source.textContent), plot = figure.querySelector(".plot"), say = figure.dataset;
  const SYMBOLS = ["circle-open", "square", "diamond", "triangle-up", "cross"], DASHES = ["dot", "solid", "dash", "dashdot", "longdash"];
  const lines = data.lines.filter((line) => line.x.length);
  if (!lines.length) { figure.hidden = true; return; }
  const bounds = (line, place, seen) => { // |D| = c/lambda * m/L, both signs; one pair for equal bounds
    if (line.bound === null || seen.has(line.bound)) return [];
    seen.add(line.bound);
    const names = lines.filter((other) => other.bound === line.bound).map((other) => other.name).join(", ");
    const x = Array.from({ length: 41 }, (_, i) => 10 ** (-3 + (3 * i) / 40)).filter((value) => value * line.bound <= 2);
    return [1, -1].map((sign) => ({ x, y: x.map((value) => sign * value * line.bound), type: "scatter", mode: "lines", line: { width: 1, color: css("--ink3"), dash: "dot" }, showlegend: false, hovertemplate: `${say.bound.replace("{name}", names)}<extra></extra>` }));
  };
  const draw = () => {
    const seen = new Set();
    const traces = lines.flatMap((line, place) => bounds(line, place, seen));
    lines.forEach((line, place) => traces.push({ x: line.x, y: line.y, customdata: line.uid, name: line.name, type: "scatter", mode: "markers", showlegend: true, marker: { size: 8, symbol: SYMBOLS[place % 5], color: css(place ? `--c${((place - 1) % 6) + 1}` : "--ink"), opacity: 0.8 }, hovertemplate: `${line.name}<br>m/L %{x:.3f}<br>D %{y:+.3f}<br><i>${say.open}</i><extra></extra>` }));
    const layout = {
      font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 46, r: 10, t: 8, b: 40 }, hovermode: "closest", dragmode: "zoom", showlegend: true, legend: { orientation: "h", y: 1.12, x: 0, font: { size: 11, color: css("--ink2") } },
      hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
      xaxis: { type: "log", range: [Math.floor(Math.log10(Math.min(...lines.flatMap((line) => line.x)))), 0.05], title: { text: say.x, font: { size: 10 } }, showgrid: false, linecolor: css("--rule2"), showline: true, ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), tickvals: [0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ticktext: ["0.1 %", "1 %", "2 %", "5 %", "10 %", "20 %", "50 %", "100 %"] },
      yaxis: { range: [-2.15, 2.15], title: { text: say.y, font: { size: 10 } }, gridcolor: css("--rule"), zerolinecolor: css("--rule2"), dtick: 1 },
    };
    window.Plotly.react(plot, traces, layout, { displayModeBar: false, responsive: true });
    if (!plot.dataset.bound) {
      plot.dataset.bound = "1";
      plot.on("plotly_click", (event) => { const uid = event.points[0].customdata; if (uid) location.href = `${say.edits}${uid}/edits/`; });
    }
  };
  const start = () => new IntersectionObserver((entries, own) => entries.forEach((entry) => { if (entry.isIntersecting) { own.disconnect(); draw(); } }), { rootMargin: "300px" }).observe(figure);
  if (window.Plotly) start(); else document.addEventListener("DOMContentLoaded", start);
  document.addEventListener("themechange", () => plot.dataset.bound && draw());
  window.addEventListener("beforeprint", () => plot.dataset.bound || draw());
})();
