// Comparison pages: curves of several runs, choice of runs, keys of the lineage drawing.
(() => {
  "use strict";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Curves: one line a run, over the chosen axis.
  const box = document.querySelector("[data-compare]");
  if (box) {
    const memory = new Map();
    const layout = (data) => ({
      font: { family: css("--sans"), size: 10, color: css("--ink3") }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 44, r: 8, t: 10, b: 34 }, showlegend: false, hovermode: "closest", uirevision: box.dataset.axis,
      xaxis: { title: { text: data.axis, font: { size: 10 }, standoff: 4 }, showgrid: false, zeroline: false, showline: true, linecolor: css("--rule2"), ticks: "outside", ticklen: 3, tickcolor: css("--rule2"), automargin: true },
      yaxis: { gridcolor: css("--rule"), zerolinecolor: css("--rule2"), nticks: 5, automargin: true, exponentformat: "e", rangemode: data.zero ? "tozero" : "normal" },
      hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule2"), font: { family: css("--sans"), size: 11, color: css("--ink") } },
    });
    const draw = (figure) => {
      const data = memory.get(figure), plot = figure.querySelector(".plot"), caption = figure.querySelector("[data-caption]");
      const stored = data.lines.reduce((n, line) => n + line.n_stored, 0), shown = data.lines.reduce((n, line) => n + line.n_shown, 0);
      caption.textContent = box.dataset.shown.replace("%n", shown).replace("%m", stored);
      if (!stored) { plot.textContent = box.dataset.empty; return; }
      const traces = data.lines.map((line) => ({
        x: line.x, y: line.y, name: line.name, type: "scatter", mode: line.x.length <= 40 ? "lines+markers" : "lines", marker: { size: 3.5 },
        line: { width: 1.4, dash: line.dash, color: css(`--c${line.colour}`) }, hovertemplate: `${line.name}<br>${data.axis} %{x:.6~g}<br>%{y:.5~g} ${data.unit}<extra></extra>`,
      }));
      data.lines.filter((line) => line.nonfinite.length).forEach((line) => traces.push({ x: line.nonfinite.map((p) => p[0]), y: line.nonfinite.map(() => 0), type: "scatter", mode: "markers", marker: { symbol: "x", size: 7, color: css("--bad") }, text: line.nonfinite.map((p) => p[1]), hovertemplate: `${line.name}<br>%{text}<extra></extra>` }));
      window.Plotly.react(plot, traces, layout(data), { displayModeBar: false, responsive: true });
      figure.dataset.ready = box.dataset.axis;
    };
    const load = async (figure) => {
      try {
        const answer = await fetch(`${figure.dataset.series}?${box.dataset.runs}&axis=${box.dataset.axis}`, { headers: { Accept: "application/json" } });
        const data = await answer.json();
        if (data.refused) { figure.querySelector(".plot").textContent = `${box.dataset.refused} ${data.refused}`; return; }
        memory.set(figure, data); draw(figure);
      } catch (error) { /* the figure stays as it was; the next choice of an axis tries again */ }
    };
    const figures = [...box.querySelectorAll("[data-series]")];
    const seen = new IntersectionObserver((entries) => entries.forEach((entry) => { if (entry.isIntersecting && !memory.has(entry.target)) load(entry.target); }), { rootMargin: "300px" });
    figures.forEach((figure) => seen.observe(figure));
    document.querySelectorAll("button[data-axis]").forEach((button) => button.addEventListener("click", () => {
      box.dataset.axis = button.dataset.axis;
      document.querySelectorAll("button[data-axis]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      const address = new URL(location.href); address.searchParams.set("axis", box.dataset.axis); history.replaceState(null, "", address);
      figures.filter((figure) => memory.has(figure)).forEach(load);
    }));
    document.addEventListener("themechange", () => figures.filter((figure) => memory.has(figure)).forEach(draw));
    window.addEventListener("beforeprint", () => figures.filter((figure) => !memory.has(figure)).forEach(load));
  }

  // Choice of runs: how many are chosen, and no more than the page can hold.
  const form = document.querySelector("form.chooser");
  if (form) {
    const boxes = [...form.querySelectorAll('input[type="checkbox"]')], note = form.querySelector("[data-count-note]"), most = Number(form.dataset.most);
    const count = () => {
      const n = boxes.filter((item) => item.checked).length;
      note.textContent = note.dataset.word.replace("%n", n).replace("%m", most);
      boxes.forEach((item) => { item.disabled = !item.checked && n >= most; });
      form.querySelector("button").disabled = n < 2;
    };
    form.addEventListener("change", count); count();
  }

  // Lineage: arrow keys go along a run and across runs.
  const graph = document.querySelector("[data-lineage]");
  if (graph) {
    const nodes = [...graph.querySelectorAll("a[data-row]")];
    const at = (row, column) => nodes.filter((node) => Number(node.dataset.row) === row).sort((a, b) => Math.abs(a.dataset.column - column) - Math.abs(b.dataset.column - column))[0];
    graph.addEventListener("keydown", (event) => {
      const node = event.target.closest("a[data-row]");
      if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
      const row = Number(node.dataset.row), column = Number(node.dataset.column);
      const own = nodes.filter((other) => Number(other.dataset.row) === row).sort((a, b) => a.dataset.column - b.dataset.column);
      const place = own.indexOf(node);
      const to = { ArrowRight: own[place + 1] || (row < 0 ? at(0, 0) : undefined), ArrowLeft: own[place - 1] || (row >= 0 ? at(-1, 0) : undefined), ArrowDown: at(row + 1, column), ArrowUp: at(row - 1, column), Home: own[0], End: own[own.length - 1] }[event.key];
      if (to) { event.preventDefault(); to.focus(); to.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    });
  }
})();
