// Token strip: draws recorded ids, shades them, docks the card of one token beside them.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const box = document.getElementById("tokens");
  if (!box) return;
  const strip = box.querySelector("[data-strip]");
  const words = document.getElementById("token-words").dataset;
  const card = document.getElementById("card");
  const say = (text, values) => Object.entries(values || {}).reduce((out, [key, value]) => out.replace(`%${key}`, value), text || "");
  const svg = (name, attributes, parent, text) => { const e = document.createElementNS(NS, name); Object.entries(attributes).forEach(([k, v]) => e.setAttribute(k, v)); if (text !== undefined) e.textContent = text; parent.append(e); return e; };
  const el = (name, className, text) => { const e = document.createElement(name); if (className) e.className = className; if (text !== undefined) e.textContent = text; return e; };
  const fixed = (value, digits = 4) => (typeof value === "number" ? value.toFixed(digits).replace("-", "−") : value === undefined || value === null ? words.none : String(value));
  const signed = (value, digits = 4) => (typeof value === "number" && value >= 0 ? `+${fixed(value, digits)}` : fixed(value, digits));
  const low = Number(box.dataset.clipLow || "0.2"), high = Number(box.dataset.clipHigh || "0.2");

  let data = null, facts = [], cells = [], selected = -1, pinned = false, shade = "class";

  const collect = () => {
    facts = data.ids.map((id, i) => ({ i, id, kind: data.kinds[i], text: data.texts ? data.texts[i] : null }));
    data.segments.forEach(([start, end, , decision, rewritten]) => { for (let i = start; i < end; i += 1) { facts[i].decision = decision; facts[i].rewritten = rewritten; } });
    data.engine.forEach(([i, value]) => { facts[i].engine = value; });
    const t = data.trace;
    data.policy.forEach((i, k) => {
      facts[i].policy = true;
      if (t) Object.assign(facts[i], { old: t.old[k], new: t.new[k], ratio: t.ratio[k], clipped: t.clipped[k], entropy: t.entropy[k], credited: t.credited[k] === 1, advantage: t.credited[k] === 1 ? t.advantage[k] : data.advantage });
    });
  };
  const label = (kind, decision, rewritten) => (kind === 0 ? (rewritten ? words.rewritten : words.prompt) : kind === 1 ? words.observation : say(kind === 2 ? words.think : words.action, { d: decision }));
  const shown = (fact) => (fact.text === null || fact.text === undefined ? String(fact.id) : fact.text);
  const visible = (text) => text.replace(/\n/g, "⏎").replace(/\t/g, "⇥");

  const drawOverview = () => {
    const place = box.querySelector("[data-overview]");
    place.textContent = "";
    const width = 1000, scale = width / Math.max(1, data.n), chart = svg("svg", { viewBox: `0 0 ${width} 62`, preserveAspectRatio: "none", height: 62, role: "img", "aria-label": say(words.tokens, { n: data.n }) }, place);
    data.segments.forEach(([start, end, kind]) => svg("rect", { x: start * scale, width: (end - start) * scale, y: 18, height: 22, class: `k${kind}` }, chart));
    const runs = (test, draw) => { let from = -1; for (let i = 0; i <= facts.length; i += 1) { const on = i < facts.length && test(facts[i]); if (on && from < 0) from = i; if (!on && from >= 0) { draw(from, i); from = -1; } } };
    runs((f) => f.credited === false, (a, b) => svg("rect", { x: a * scale, width: (b - a) * scale, y: 18, height: 22, class: "hc" }, chart));
    runs((f) => f.credited === true, (a, b) => svg("rect", { x: a * scale, width: (b - a) * scale, y: 42, height: 3, class: "ut" }, chart));
    data.divergence.forEach((d) => { if (d.index !== null) svg("line", { x1: d.index * scale, x2: d.index * scale, y1: 14, y2: 44, class: "dl", "vector-effect": "non-scaling-stroke" }, chart); });
    [["fatal_start", ""], ["fatal_confirmed", "fc"]].forEach(([name, extra]) => { if (data[name] !== null) svg("line", { x1: data[name] * scale, x2: data[name] * scale, y1: 10, y2: 46, class: `fl ${extra}`, "vector-effect": "non-scaling-stroke" }, chart); });
    svg("rect", { class: "here", x: 0, y: 15, width: 3, height: 28, visibility: "hidden" }, chart);
    chart.addEventListener("click", (event) => { const area = chart.getBoundingClientRect(); select(Math.min(data.n - 1, Math.floor(((event.clientX - area.left) / area.width) * data.n)), true, true); });
    const texts = svg("svg", { class: "overview-text", width: "100%", height: 14 }, place);
    const marks = [[0, "0"], [data.n, String(data.n)]];
    marks.forEach(([at, text]) => svg("text", { x: `${(100 * at) / data.n}%`, y: 10, "text-anchor": at === 0 ? "start" : "end" }, texts, text));
    const tops = svg("svg", { width: "100%", height: 14 }, place);
    place.prepend(tops);
    let lastEnd = -1;
    const named = data.divergence.filter((d) => d.index !== null).map((d) => ({ at: d.index, text: say(words.partsmark, { s: d.slot, i: d.index }), cls: "dv" }));
    ["fatal_start", "fatal_confirmed"].forEach((name) => { if (data[name] !== null) named.push({ at: data[name], text: `${name} ${data[name]}`, cls: "fm" }); });
    named.sort((a, b) => (a.cls === b.cls ? a.at - b.at : a.cls === "fm" ? -1 : 1));
    const taken = [];
    named.forEach((mark) => {
      const share = mark.at / data.n, room = mark.text.length * 6.2, total = place.clientWidth || 480, start = share > 0.78 ? share * total - room : share * total;
      if (taken.some(([a, b]) => start < b + 6 && start + room > a - 6)) return;
      taken.push([start, start + room]); lastEnd = Math.max(lastEnd, start);
      svg("text", { x: `${100 * share}%`, y: 11, class: mark.cls, "text-anchor": share > 0.78 ? "end" : "start" }, tops, mark.text);
    });
  };

  const drawStrip = () => {
    strip.textContent = ""; cells = new Array(data.n);
    const parts = new Map(data.divergence.filter((d) => d.index !== null).map((d) => [d.index, d.slot]));
    const rule = (name, extra) => { const row = el("p", `fatalrow ${extra}`); row.append(el("b", "", name), ` · ${say(words.token, { i: data[name], n: data.n })}`); return row; };
    data.segments.forEach(([start, end, kind, decision, rewritten]) => {
      if (data.fatal_start === start) strip.append(rule("fatal_start", ""));
      if (data.fatal_confirmed === start) strip.append(rule("fatal_confirmed", "confirmed"));
      const row = el("div", "tokrow"); row.setAttribute("role", "row"); row.dataset.start = start;
      if (kind >= 2) row.dataset.decision = decision;
      row.append(el("span", "lab", label(kind, decision, rewritten)), el("span", "at", String(start)));
      const line = el("div", "toks"); line.setAttribute("role", "gridcell");
      for (let i = start; i < end; i += 1) {
        const fact = facts[i], cell = el("span", `tok k${kind}`, visible(shown(fact)));
        cell.dataset.i = i;
        if (fact.text === null || fact.text === undefined) cell.classList.add("raw");
        if (fact.credited === true) cell.classList.add("trained");
        if (fact.credited === false) cell.classList.add("cut");
        if (fact.clipped && fact.credited !== false) cell.classList.add("clip");
        if (parts.has(i)) { cell.classList.add("part"); cell.title = say(words.partsmark, { s: parts.get(i), i }); }
        cells[i] = cell; line.append(cell);
      }
      row.append(line); strip.append(row);
    });
    const trained = facts.filter((f) => f.credited === true).length, cut = facts.filter((f) => f.credited === false).length;
    box.querySelector("[data-trained]").textContent = data.trace ? trained : "—";
    box.querySelector("[data-cut]").textContent = data.trace ? cut : "—";
    box.querySelector("[data-count]").textContent = say(words.tokens, { n: data.n }) + (data.texts ? "" : ` · ${words.novocabulary}`) + (data.trace ? "" : ` · ${data.trace_missing}`);
    const prompt = document.querySelector("[data-prompt-text]");
    const first = data.segments.find((s) => s[2] === 0);
    if (prompt && first) prompt.textContent = facts.slice(first[0], first[1]).map((f) => (data.texts ? shown(f) : `${f.id} `)).join("");
    data.divergence.forEach((d) => { const spot = document.querySelector(`[data-parts="${d.uid}"]`); if (spot) spot.textContent = d.index === null ? words.same : say(words.parts, { i: d.index }); });
    strip.tabIndex = 0;
  };

  const scales = {
    advantage: { of: (f) => (f.credited === true ? f.advantage : undefined), diverging: true, centre: 0 },
    ratio: { of: (f) => f.ratio, diverging: true, centre: 1 },
    entropy: { of: (f) => f.entropy, diverging: false },
    logprob: { of: (f) => (typeof f.new === "number" ? f.new : f.engine), diverging: false, flip: true },
  };
  const applyShade = (name) => {
    shade = name; strip.dataset.shade = name;
    box.querySelectorAll("[data-shade]").forEach((b) => b.tagName === "BUTTON" && b.setAttribute("aria-pressed", String(b.dataset.shade === name)));
    box.querySelector('[data-legend="class"]').hidden = name !== "class";
    const legend = box.querySelector('[data-legend="scale"]'); legend.hidden = name === "class";
    cells.forEach((c) => c.classList.remove("h1", "h2", "h3", "h4", "l1", "l2", "l3", "l4"));
    if (name === "class") return;
    const scale = scales[name], values = facts.map(scale.of).filter((v) => typeof v === "number");
    const centre = scale.centre || 0;
    const reach = Math.max(1e-9, ...values.map((v) => Math.abs(v - centre)));
    facts.forEach((f, i) => {
      const v = scale.of(f); if (typeof v !== "number") return;
      const step = Math.min(4, Math.ceil((Math.abs(v - centre) / reach) * 4));
      if (step > 0) cells[i].classList.add(`${scale.diverging ? (v > centre ? "h" : "l") : scale.flip ? "l" : "h"}${step}`);
    });
    const ramp = legend.querySelector("[data-ramp]"); ramp.textContent = "";
    const order = scale.diverging ? ["l4", "l3", "l2", "l1", "z", "h1", "h2", "h3", "h4"] : scale.flip ? ["l4", "l3", "l2", "l1", "z"] : ["z", "h1", "h2", "h3", "h4"];
    order.forEach((c) => ramp.append(el("i", c)));
    legend.querySelector("[data-scale-low]").textContent = values.length ? fixed(scale.diverging ? centre - reach : scale.flip ? -reach : 0, 2) : "—";
    legend.querySelector("[data-scale-high]").textContent = values.length ? fixed(scale.diverging ? centre + reach : scale.flip ? 0 : reach, 2) : "—";
    legend.querySelector("[data-scale-note]").textContent = name === "advantage" ? words.unshadedcut : words.unshaded;
  };

  const field = (name) => card.querySelector(`[data-f="${name}"]`);
  const drawClip = (fact) => {
    const chart = card.querySelector("[data-clip]"); chart.textContent = "";
    if (typeof fact.ratio !== "number" || fact.credited === false) return;
    const min = Math.min(0.6, fact.ratio - 0.05), max = Math.max(1.4, fact.ratio + 0.05), x = (v) => 8 + (204 * (v - min)) / (max - min);
    svg("line", { x1: 4, x2: 216, y1: 14, y2: 14, class: "axis" }, chart);
    svg("rect", { x: x(1 - low), width: x(1 + high) - x(1 - low), y: 9, height: 10, class: "rng" }, chart);
    svg("line", { x1: x(1), x2: x(1), y1: 8, y2: 20, class: "axis" }, chart);
    svg("circle", { cx: x(fact.ratio), cy: 14, r: 4, class: fact.clipped ? "dot2" : "dot" }, chart);
    [1 - low, 1, 1 + high].forEach((v) => svg("text", { x: x(v), y: 34, class: "tick", "text-anchor": "middle" }, chart, v.toFixed(v === 1 ? 0 : 2).replace(/0$/, "")));
  };
  const showCard = (fact) => {
    card.querySelector(".card-empty").hidden = true; card.querySelector(".card-body").hidden = false;
    field("text").textContent = `“${visible(shown(fact))}”`;
    field("where").textContent = `${say(words.token, { i: fact.i, n: data.n })} · ${label(fact.kind, fact.decision, fact.rewritten)}`;
    field("fate").textContent = fact.kind < 2 ? words.read : !fact.policy ? words.forced : fact.credited === true ? words.trained : fact.credited === false ? words.cutword : words.sampled;
    field("id").textContent = fact.id;
    field("old").textContent = fixed(fact.old); field("new").textContent = fixed(fact.new); field("engine").textContent = fixed(fact.engine);
    field("ratio").textContent = fixed(fact.ratio); field("entropy").textContent = fixed(fact.entropy, 3); field("advantage").textContent = fact.advantage === undefined || fact.advantage === null ? words.none : signed(fact.advantage);
    field("weight").textContent = fact.credited === true ? "1" : fact.credited === false ? words.weightcut : words.none;
    field("clip").textContent = fact.ratio === undefined ? "" : fact.credited === false ? words.clipnone : fact.clipped === 1 ? words.low : fact.clipped === 2 ? words.high : words.noclip;
    field("clip").className = `s ${fact.clipped && fact.credited !== false ? "warn" : "muted"}`;
    field("permalink").href = `#t${fact.i}`;
    const turn = field("turn"); turn.hidden = fact.decision === null || fact.decision === undefined; turn.href = `#d${fact.decision}`;
    drawClip(fact);
  };
  const select = (index, keep, scroll) => {
    if (!data || index < 0 || index >= data.n) return;
    if (selected >= 0 && cells[selected]) { cells[selected].classList.remove("on"); cells[selected].removeAttribute("id"); }
    selected = index; pinned = keep || pinned;
    const cell = cells[index]; cell.classList.add("on"); cell.id = `t${index}`;
    strip.setAttribute("aria-activedescendant", cell.id);
    const here = box.querySelector(".here"); if (here) { here.setAttribute("x", (1000 * index) / data.n - 1); here.setAttribute("visibility", "visible"); }
    showCard(facts[index]);
    const tab = document.querySelector('[data-view="tokens"]'); if (tab) { tab.dataset.word = tab.dataset.word || tab.textContent; tab.textContent = say(words.back, { i: index }); }
    document.querySelectorAll(".turn.lit").forEach((t) => t.classList.remove("lit"));
    if (keep && facts[index].decision !== null && facts[index].kind >= 2) { const turn = document.getElementById(`d${facts[index].decision}`); if (turn) turn.classList.add("lit"); }
    if (keep) history.replaceState(null, "", `#t${index}`);
    if (scroll) cell.scrollIntoView({ block: "nearest" });
  };
  const release = () => { pinned = false; card.querySelector(".card-empty").hidden = false; card.querySelector(".card-body").hidden = true; if (selected >= 0) cells[selected].classList.remove("on"); selected = -1; const tab = document.querySelector('[data-view="tokens"]'); if (tab && tab.dataset.word) tab.textContent = tab.dataset.word; history.replaceState(null, "", location.pathname + location.search); };

  const view = (name) => { document.getElementById("reading").dataset.show = name; document.querySelectorAll("[data-view]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.view === name))); if (name === "tokens" && data) { drawOverview(); if (selected >= 0) cells[selected].scrollIntoView({ block: "center" }); } };
  document.addEventListener("click", (event) => {
    const target = event.target;
    const button = target.closest("[data-view]"); if (button) { view(button.dataset.view); return; }
    const shadeButton = target.closest("button[data-shade]"); if (shadeButton && data) { applyShade(shadeButton.dataset.shade); return; }
    const stepButton = target.closest("button[data-step]"); if (stepButton) { load(stepButton.dataset.step); return; }
    if (target.closest("[data-pin-close]")) { release(); return; }
    const jump = target.closest('a[href^="#d"], a[href^="#t"]');
    if (jump) { const to = jump.getAttribute("href"); if (to.startsWith("#d")) { view("conversation"); } else { event.preventDefault(); view("tokens"); select(Number(to.slice(2)), true, true); } }
    const cell = target.closest(".tok"); if (cell) { select(Number(cell.dataset.i), true, false); strip.focus({ preventScroll: true }); }
  });
  strip.addEventListener("pointerover", (event) => { const cell = event.target.closest(".tok"); if (cell && !pinned && event.pointerType !== "touch") select(Number(cell.dataset.i), false, false); });
  const rowMove = (step) => { const rows = [...strip.querySelectorAll(".tokrow")].map((r) => Number(r.dataset.start)); const at = rows.filter((s) => s <= Math.max(0, selected)).length - 1; const to = rows[Math.max(0, Math.min(rows.length - 1, at + step))]; select(to, true, true); };
  strip.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: () => select(Math.min(data.n - 1, selected + 1), true, true), ArrowLeft: () => select(Math.max(0, selected - 1), true, true), ArrowDown: () => rowMove(1), ArrowUp: () => rowMove(-1), Home: () => select(0, true, true), End: () => select(data.n - 1, true, true), Escape: release };
    if (data && moves[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); moves[event.key](); }
  });
  document.addEventListener("turnkey", (event) => {
    if (!data || !strip.contains(document.activeElement)) return;
    event.preventDefault();
    const starts = [...strip.querySelectorAll(".tokrow[data-decision]")].filter((r, i, all) => all.findIndex((o) => o.dataset.decision === r.dataset.decision) === i).map((r) => Number(r.dataset.start));
    const to = event.detail > 0 ? starts.find((s) => s > selected) : [...starts].reverse().find((s) => s < selected);
    if (to !== undefined) select(to, true, true);
  });

  const load = async (step) => {
    const url = new URL(box.dataset.url, location.href); if (step !== undefined) url.searchParams.set("step", step);
    let answer;
    try { const response = await fetch(url, { headers: { Accept: "application/json" } }); answer = await response.json(); } catch (error) { answer = { unavailable: String(error) }; }
    if (answer.unavailable) { box.querySelector("[data-count]").textContent = ""; strip.textContent = ""; strip.append(el("p", "empty", `${words.unavailable} ${answer.unavailable}`)); return; }
    data = answer; collect(); drawStrip(); drawOverview(); applyShade(shade);
    const steps = box.querySelector("[data-steps]"); steps.hidden = data.steps.length < 2;
    const holder = box.querySelector("[data-step-buttons]"); holder.textContent = "";
    data.steps.forEach((s) => { const b = el("button", "", String(s)); b.type = "button"; b.dataset.step = s; b.setAttribute("aria-pressed", String(s === data.step)); holder.append(b); });
    const keep = selected; selected = -1;
    if (keep >= 0) select(keep, true, false);
    const mark = location.hash.match(/^#t(\d+)$/);
    if (mark && step === undefined) { view("tokens"); select(Number(mark[1]), true, true); }
    box.dataset.ready = "1";
  };
  window.addEventListener("hashchange", () => { const mark = location.hash.match(/^#t(\d+)$/); if (mark) { view("tokens"); select(Number(mark[1]), true, true); } else if (/^#d\d+$/.test(location.hash)) view("conversation"); });
  load();
})();
