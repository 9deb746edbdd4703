// Token strip: draws recorded ids, shades them, docks the card of one token or of a range beside them.
// Long sequences are drawn row by row as they come near the window; the others at once.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const box = document.getElementById("tokens");
  if (!box) return;
  const AT_ONCE = 5000, CHUNK = 240;
  const strip = box.querySelector("[data-strip]");
  const words = document.getElementById("token-words").dataset;
  const card = document.getElementById("card");
  const reading = document.getElementById("reading");
  const say = (text, values) => Object.entries(values || {}).reduce((out, [key, value]) => out.replace(`%${key}`, value), text || "");
  const svg = (name, attributes, parent, text) => { const e = document.createElementNS(NS, name); Object.entries(attributes).forEach(([k, v]) => e.setAttribute(k, v)); if (text !== undefined) e.textContent = text; parent.append(e); return e; };
  const el = (name, className, text) => { const e = document.createElement(name); if (className) e.className = className; if (text !== undefined) e.textContent = text; return e; };
  const fixed = (value, digits = 4) => (typeof value === "number" ? value.toFixed(digits).replace("-", "−") : value === undefined || value === null ? words.none : String(value));
  const signed = (value, digits = 4) => (typeof value === "number" && value >= 0 ? `+${fixed(value, digits)}` : fixed(value, digits));
  const low = Number(box.dataset.clipLow || "0.2"), high = Number(box.dataset.clipHigh || "0.2");

  let data = null, facts = [], rows = [], selected = -1, anchor = -1, range = null, pinned = false, shade = "class", shadeOf = () => "", parts = new Map(), starts = new Map();

  const collect = () => {
    facts = data.ids.map((id, i) => ({ i, id, kind: data.kinds[i], text: data.texts ? data.texts[i] : null }));
    starts = new Map();
    data.segments.forEach(([start, end, kind, decision, rewritten]) => { if (kind >= 2 && !starts.has(decision)) starts.set(decision, start); for (let i = start; i < end; i += 1) { facts[i].decision = decision; facts[i].rewritten = rewritten; } });
    data.engine.forEach(([i, value]) => { facts[i].engine = value; });
    const t = data.trace;
    data.policy.forEach((i, k) => {
      facts[i].policy = true;
      if (t) Object.assign(facts[i], { old: t.old[k], new: t.new[k], ratio: t.ratio[k], clipped: t.clipped[k], entropy: t.entropy[k], credited: t.credited[k] === 1, used: t.credited[k] === 1 ? t.advantage[k] : t.credited[k] === 0 ? 0 : undefined });
      if (data.edit) Object.assign(facts[i], { edit: facts[i].decision === data.edit.selected ? data.edit.chosen : data.edit.other, advantage: data.advantage });
      else facts[i].advantage = facts[i].credited === true ? facts[i].used : t ? data.advantage : undefined;
    });
    parts = new Map(data.divergence.filter((d) => d.index !== null).map((d) => [d.index, d.slot]));
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
    [[0, "0"], [data.n, String(data.n)]].forEach(([at, text]) => svg("text", { x: `${(100 * at) / data.n}%`, y: 10, "text-anchor": at === 0 ? "start" : "end" }, texts, text));
    const tops = svg("svg", { width: "100%", height: 14 }, place);
    place.prepend(tops);
    const named = data.divergence.filter((d) => d.index !== null).map((d) => ({ at: d.index, text: say(words.partsmark, { s: d.slot, i: d.index }), cls: "dv" }));
    ["fatal_start", "fatal_confirmed"].forEach((name) => { if (data[name] !== null) named.push({ at: data[name], text: `${name} ${data[name]}`, cls: "fm" }); });
    named.sort((a, b) => (a.cls === b.cls ? a.at - b.at : a.cls === "fm" ? -1 : 1));
    const taken = [];
    named.forEach((mark) => {
      const share = mark.at / data.n, room = mark.text.length * 6.2, total = place.clientWidth || 480, start = share > 0.78 ? share * total - room : share * total;
      if (taken.some(([a, b]) => start < b + 6 && start + room > a - 6)) return;
      taken.push([start, start + room]);
      svg("text", { x: `${100 * share}%`, y: 11, class: mark.cls, "text-anchor": share > 0.78 ? "end" : "start" }, tops, mark.text);
    });
    showPlace();
  };

  // Rows: a segment, or a piece of a long one. A row is empty until it is filled.
  const classOf = (i) => {
    const f = facts[i], found = [`tok k${f.kind}`];
    if (f.text === null || f.text === undefined) found.push("raw");
    if (f.credited === true) found.push("trained");
    if (f.credited === false) found.push("cut");
    if (f.clipped && f.credited !== false) found.push("clip");
    if (parts.has(i)) found.push("part");
    const level = shadeOf(i); if (level) found.push(level);
    if (range && i >= range[0] && i <= range[1]) found.push("in");
    if (i === selected) found.push("on");
    return found.join(" ");
  };
  const cellOf = (i, make) => {
    let a = 0, b = rows.length - 1;
    while (a < b) { const middle = (a + b + 1) >> 1; if (rows[middle].start <= i) a = middle; else b = middle - 1; }
    const row = rows[a]; if (!row) return null;
    if (make) fill(row);
    return row.filled ? row.line.children[i - row.start] : null;
  };
  const fill = (row) => {
    if (row.filled) return;
    const piece = document.createDocumentFragment();
    for (let i = row.start; i < row.end; i += 1) {
      const cell = el("span", classOf(i), visible(shown(facts[i]))); cell.dataset.i = i;
      if (parts.has(i)) cell.title = say(words.partsmark, { s: parts.get(i), i });
      piece.append(cell);
    }
    row.line.append(piece); row.filled = true; row.element.style.minHeight = "";
  };
  const empty = (row) => {
    if (!row.filled || (selected >= row.start && selected < row.end)) return;
    row.element.style.minHeight = `${row.element.offsetHeight}px`; row.line.textContent = ""; row.filled = false;
  };
  const repaint = (from = 0, to = data.n - 1) => rows.forEach((row) => { if (!row.filled || row.end <= from || row.start > to) return; for (let i = Math.max(row.start, from); i < Math.min(row.end, to + 1); i += 1) row.line.children[i - row.start].className = classOf(i); });
  let near = null;

  const drawStrip = () => {
    strip.textContent = ""; rows = [];
    if (near) near.disconnect();
    const virtual = data.n > AT_ONCE;
    strip.dataset.virtual = virtual ? "1" : "";
    const rule = (name, extra) => { const row = el("p", `fatalrow ${extra}`); row.append(el("b", "", name), ` · ${say(words.token, { i: data[name], n: data.n })}`); return row; };
    data.segments.forEach(([start, end, kind, decision, rewritten]) => {
      if (data.fatal_start === start) strip.append(rule("fatal_start", ""));
      if (data.fatal_confirmed === start) strip.append(rule("fatal_confirmed", "confirmed"));
      const size = virtual ? CHUNK : end - start;
      for (let from = start; from < end; from += size) {
        const row = el("div", "tokrow"); row.setAttribute("role", "row"); row.dataset.start = from;
        if (kind >= 2) row.dataset.decision = decision;
        const line = el("div", "toks"); line.setAttribute("role", "gridcell");
        row.append(el("span", "lab", from === start ? label(kind, decision, rewritten) : ""), el("span", "at", String(from)), line);
        strip.append(row);
        rows.push({ start: from, end: Math.min(end, from + size), element: row, line, filled: false });
      }
    });
    if (virtual) {
      const width = Math.max(200, strip.clientWidth - 130), average = facts.slice(0, 2000).reduce((n, f) => n + shown(f).length, 0) / Math.min(2000, data.n);
      const byElement = new Map(rows.map((row) => [row.element, row]));
      rows.forEach((row) => { row.element.style.minHeight = `${Math.max(27, Math.ceil(((row.end - row.start) * average * 7.2) / width) * 21 + 6)}px`; });
      near = new IntersectionObserver((entries) => entries.forEach((entry) => { const row = byElement.get(entry.target); if (entry.isIntersecting) fill(row); else empty(row); }), { rootMargin: "900px" });
      rows.forEach((row) => near.observe(row.element));
    } else rows.forEach(fill);
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

  // Timeline: lanes over token index, the own trajectory first, then siblings.
  const drawTimeline = () => {
    const place = reading.querySelector("[data-lanes]"); if (!place) return;
    place.textContent = "";
    const longest = Math.max(data.n, ...data.divergence.map((d) => d.n)), scale = 1000 / Math.max(1, longest);
    const lane = (name, href) => { const row = el("div", "lane"); const head = el(href ? "a" : "span", "lanename s", name); if (href) head.href = href; row.append(head); place.append(row); return svg("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", height: 20, class: "lanebar" }, row); };
    const segments = (chart, list, test) => list.filter(test).forEach(([start, end, kind, decision]) => { const rect = svg("rect", { x: start * scale, width: Math.max(1, (end - start) * scale), y: 3, height: 14, class: `k${kind}` }, chart); svg("title", {}, rect, `${label(kind, decision)} · ${start}–${end}`); });
    const own = [];
    const mark = (chart, at, cls) => svg("line", { x1: at * scale, x2: at * scale, y1: 0, y2: 20, class: cls, "vector-effect": "non-scaling-stroke" }, chart);
    [["lanethink", (s) => s[2] === 2], ["laneaction", (s) => s[2] === 3], ["laneobservation", (s) => s[2] === 1]].forEach(([name, test]) => { const chart = lane(words[name]); segments(chart, data.segments, test); own.push(chart); });
    if (data.injected.length) { const chart = lane(words.lanefailure); data.segments.filter((s) => s[2] === 1 && data.injected.includes(s[3])).forEach(([start, end]) => svg("rect", { x: start * scale, width: Math.max(2, (end - start) * scale), y: 3, height: 14, class: "lanefail" }, chart)); own.push(chart); }
    if (data.trace) { const chart = lane(words.lanetrained); let from = -1; for (let i = 0; i <= data.n; i += 1) { const on = i < data.n && facts[i].credited === true; if (on && from < 0) from = i; if (!on && from >= 0) { svg("rect", { x: from * scale, width: (i - from) * scale, y: 7, height: 6, class: "ut" }, chart); from = -1; } } own.push(chart); }
    own.forEach((chart) => {
      ["fatal_start", "fatal_confirmed"].forEach((name) => { if (data[name] !== null) mark(chart, data[name], `fl${name === "fatal_confirmed" ? " fc" : ""}`); });
      chart.classList.add("own");
      chart.addEventListener("click", (event) => { const area = chart.getBoundingClientRect(), at = Math.floor(((event.clientX - area.left) / area.width) * longest); if (at < data.n) select(at, true, true); });
    });
    data.divergence.forEach((d) => {
      const spot = document.querySelector(`[data-parts="${d.uid}"]`);
      const chart = lane(say(words.lanesibling, { s: d.slot, r: d.reward === null ? "—" : d.reward.toFixed(3) }), spot ? spot.href : undefined);
      segments(chart, d.segments, () => true);
      if (d.index !== null) { svg("rect", { x: 0, width: d.index * scale, y: 3, height: 14, class: "laneshared" }, chart); mark(chart, d.index, "dl"); }
    });
    const axis = svg("svg", { class: "laneaxis", width: "100%", height: 14 }, place);
    [0, 0.25, 0.5, 0.75, 1].forEach((share) => svg("text", { x: `${100 * share}%`, y: 11, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, axis, String(Math.round(share * longest))));
  };
  const mode = (name) => {
    reading.dataset.mode = name;
    reading.querySelector("[data-timeline]").hidden = name !== "timeline";
    document.querySelectorAll("[data-mode-button]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.modeButton === name)));
    if (name === "timeline" && data) drawTimeline();
    if (data) drawOverview();
  };

  const scales = {
    advantage: { of: (f) => (f.credited === true ? f.used : undefined), diverging: true, centre: 0 },
    ratio: { of: (f) => f.ratio, diverging: true, centre: 1 },
    entropy: { of: (f) => f.entropy, diverging: false },
    logprob: { of: (f) => (typeof f.new === "number" ? f.new : f.engine), diverging: false, flip: true },
    mismatch: { of: (f) => (typeof f.engine === "number" && typeof f.old === "number" ? f.engine - f.old : undefined), diverging: true, centre: 0, digits: 6 },
  };
  const applyShade = (name) => {
    shade = name; strip.dataset.shade = name;
    box.querySelectorAll("[data-shade]").forEach((b) => b.tagName === "BUTTON" && b.setAttribute("aria-pressed", String(b.dataset.shade === name)));
    box.querySelector('[data-legend="class"]').hidden = name !== "class";
    const legend = box.querySelector('[data-legend="scale"]'); legend.hidden = name === "class";
    shadeOf = () => "";
    if (name !== "class") {
      const scale = scales[name], values = facts.map(scale.of).filter((v) => typeof v === "number"), centre = scale.centre || 0;
      const reach = values.reduce((most, v) => Math.max(most, Math.abs(v - centre)), 1e-9);
      shadeOf = (i) => {
        const v = scale.of(facts[i]); if (typeof v !== "number") return "";
        const step = Math.min(4, Math.ceil((Math.abs(v - centre) / reach) * 4));
        return step > 0 ? `${scale.diverging ? (v > centre ? "h" : "l") : scale.flip ? "l" : "h"}${step}` : "";
      };
      const ramp = legend.querySelector("[data-ramp]"); ramp.textContent = "";
      const order = scale.diverging ? ["l4", "l3", "l2", "l1", "z", "h1", "h2", "h3", "h4"] : scale.flip ? ["l4", "l3", "l2", "l1", "z"] : ["z", "h1", "h2", "h3", "h4"];
      order.forEach((c) => ramp.append(el("i", c)));
      const digits = scale.digits || 2;
      legend.querySelector("[data-scale-low]").textContent = values.length ? fixed(scale.diverging ? centre - reach : scale.flip ? -reach : 0, digits) : "—";
      legend.querySelector("[data-scale-high]").textContent = values.length ? fixed(scale.diverging ? centre + reach : scale.flip ? 0 : reach, digits) : "—";
      legend.querySelector("[data-scale-note]").textContent = name === "advantage" ? words.unshadedcut : words.unshaded;
    }
    repaint();
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
    card.querySelectorAll("[data-edit]").forEach((row) => { row.hidden = !data.edit || !fact.policy; });
    field("edit").textContent = data.edit && data.edit.why ? say(words.editnone, { why: data.edit.why }) : fact.edit === undefined ? words.none : signed(fact.edit);
    field("used").textContent = fact.credited === false ? words.weightcut : fact.used === undefined ? words.none : signed(fact.used);
    field("weight").textContent = fact.credited === true ? "1" : fact.credited === false ? words.weightcut : words.none;
    field("clip").textContent = fact.ratio === undefined ? "" : fact.credited === false ? words.clipnone : fact.clipped === 1 ? words.low : fact.clipped === 2 ? words.high : words.noclip;
    field("clip").className = `s ${fact.clipped && fact.credited !== false ? "warn" : "muted"}`;
    field("permalink").href = `#t${fact.i}`;
    const turn = field("turn"); turn.hidden = fact.decision === null || fact.decision === undefined; turn.href = `#d${fact.decision}`;
    drawClip(fact);
    showRange();
  };

  // A range: #t120-128, or #d2t10-18 where it lies within what decision 2 generated.
  const address = () => {
    if (!range || range[0] === range[1]) return `#t${selected}`;
    const [a, b] = range, base = starts.get(facts[a].decision);
    const inside = facts[a].kind >= 2 && facts[b].kind >= 2 && facts[a].decision === facts[b].decision && base !== undefined;
    return inside ? `#d${facts[a].decision}t${a - base}-${b - base}` : `#t${a}-${b}`;
  };
  const read = (hash) => {
    const found = hash.match(/^#(?:d(\d+))?t(\d+)(?:-(\d+))?$/); if (!found || !data) return null;
    const base = found[1] === undefined ? 0 : starts.get(Number(found[1])); if (base === undefined) return null;
    const a = base + Number(found[2]), b = found[3] === undefined ? a : base + Number(found[3]);
    return a < data.n && b >= a ? [a, Math.min(b, data.n - 1)] : null;
  };
  const mean = (values) => { const known = values.filter((v) => typeof v === "number"); return known.length ? known.reduce((x, y) => x + y, 0) / known.length : undefined; };
  const showRange = () => {
    const spot = card.querySelector("[data-range]"); spot.hidden = !range || range[0] === range[1];
    if (spot.hidden) return;
    const inside = facts.slice(range[0], range[1] + 1), text = inside.map((f) => visible(shown(f))).join(data.texts ? "" : " ");
    const logs = inside.map((f) => f.new).filter((v) => typeof v === "number");
    field("rangewhere").textContent = say(words.range, { n: inside.length, a: range[0], b: range[1] });
    field("rangetext").textContent = text.length > 300 ? `${text.slice(0, 300)} …` : text;
    field("rangefate").textContent = data.trace ? `${inside.filter((f) => f.credited === true).length} / ${inside.filter((f) => f.credited === false).length}` : words.none;
    field("rangelogprob").textContent = logs.length ? fixed(logs.reduce((x, y) => x + y, 0)) : words.none;
    field("rangeratio").textContent = fixed(mean(inside.map((f) => f.ratio))); field("rangeentropy").textContent = fixed(mean(inside.map((f) => f.entropy)), 3);
    field("rangelink").href = address();
  };
  const showPlace = () => { const here = box.querySelector(".here"); if (!here || selected < 0) return; const [a, b] = range || [selected, selected]; here.setAttribute("x", (1000 * a) / data.n - 1); here.setAttribute("width", Math.max(3, (1000 * (b - a + 1)) / data.n)); here.setAttribute("visibility", "visible"); };
  const select = (index, keep, scroll, extend) => {
    if (!data || index < 0 || index >= data.n) return;
    const before = selected >= 0 ? cellOf(selected) : null, old = range;
    const was = selected; selected = index; pinned = keep || pinned;
    if (before) before.removeAttribute("id");
    if (extend && anchor >= 0) range = [Math.min(anchor, index), Math.max(anchor, index)]; else { anchor = index; range = null; }
    if (was >= 0) repaint(was, was);
    if (old) repaint(old[0], old[1]);
    if (range) repaint(range[0], range[1]);
    const cell = cellOf(index, true); cell.className = classOf(index); cell.id = `t${index}`;
    strip.setAttribute("aria-activedescendant", cell.id);
    showPlace(); showCard(facts[index]);
    const tab = document.querySelector('[data-view="tokens"]'); if (tab) { tab.dataset.word = tab.dataset.word || tab.textContent; tab.textContent = say(words.back, { i: index }); }
    document.querySelectorAll(".turn.lit").forEach((t) => t.classList.remove("lit"));
    if (keep && facts[index].decision !== null && facts[index].kind >= 2) { const turn = document.getElementById(`d${facts[index].decision}`); if (turn) turn.classList.add("lit"); }
    if (keep) history.replaceState(null, "", address());
    if (scroll) cell.scrollIntoView({ block: "nearest" });
  };
  const selectRange = ([a, b], scroll) => { if (!data) return; anchor = a; if (a === b) { select(a, true, scroll); return; } select(a, true, scroll); anchor = a; select(b, true, false, true); };
  const release = () => {
    const was = selected, old = range;
    pinned = false; range = null; anchor = -1; selected = -1;
    card.querySelector(".card-empty").hidden = false; card.querySelector(".card-body").hidden = true; card.querySelector("[data-range]").hidden = true;
    if (was >= 0) repaint(was, was); if (old) repaint(old[0], old[1]);
    const tab = document.querySelector('[data-view="tokens"]'); if (tab && tab.dataset.word) tab.textContent = tab.dataset.word;
    history.replaceState(null, "", location.pathname + location.search);
  };
  const nextMark = () => {
    const marks = [...parts.keys(), ...["fatal_start", "fatal_confirmed"].map((name) => data[name]).filter((at) => at !== null), ...facts.filter((f) => f.clipped && f.credited !== false).map((f) => f.i)].sort((a, b) => a - b);
    const to = marks.find((at) => at > selected); if (marks.length) select(to === undefined ? marks[0] : to, true, true);
  };

  const view = (name) => { reading.dataset.show = name; document.querySelectorAll("[data-view]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.view === name))); if (name === "tokens" && data) { drawOverview(); if (selected >= 0) cellOf(selected, true).scrollIntoView({ block: "center" }); } };
  document.addEventListener("click", (event) => {
    const target = event.target;
    const button = target.closest("[data-view]"); if (button) { view(button.dataset.view); return; }
    const modeButton = target.closest("[data-mode-button]"); if (modeButton) { mode(modeButton.dataset.modeButton); return; }
    const shadeButton = target.closest("button[data-shade]"); if (shadeButton && data) { applyShade(shadeButton.dataset.shade); return; }
    const stepButton = target.closest("button[data-step]"); if (stepButton) { load(stepButton.dataset.step); return; }
    if (target.closest("[data-pin-close]")) { release(); return; }
    const jump = target.closest('a[href^="#d"], a[href^="#t"]');
    if (jump) { const spot = read(jump.getAttribute("href")); if (spot) { event.preventDefault(); view("tokens"); selectRange(spot, true); } else { mode("transcript"); view("conversation"); } }
    const cell = target.closest(".tok"); if (cell && strip.contains(cell)) { select(Number(cell.dataset.i), true, false, event.shiftKey); strip.focus({ preventScroll: true }); }
  });
  strip.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); });
  strip.addEventListener("pointerover", (event) => { const cell = event.target.closest(".tok"); if (cell && !pinned && event.pointerType !== "touch") select(Number(cell.dataset.i), false, false); });
  const rowMove = (step, extend) => { const begins = rows.map((r) => r.start); const at = begins.filter((s) => s <= Math.max(0, selected)).length - 1; select(begins[Math.max(0, Math.min(begins.length - 1, at + step))], true, true, extend); };
  strip.addEventListener("keydown", (event) => {
    const more = event.shiftKey;
    const moves = { ArrowRight: () => select(Math.min(data.n - 1, selected + 1), true, true, more), ArrowLeft: () => select(Math.max(0, selected - 1), true, true, more), ArrowDown: () => rowMove(1, more), ArrowUp: () => rowMove(-1, more), Home: () => select(0, true, true, more), End: () => select(data.n - 1, true, true, more), Escape: release };
    if (data && moves[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); moves[event.key](); }
  });
  document.addEventListener("keydown", (event) => {
    if (!data || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (event.key === "s") { const names = ["class", ...Object.keys(scales)]; applyShade(names[(names.indexOf(shade) + 1) % names.length]); }
    if (event.key === "v") mode(reading.dataset.mode === "timeline" ? "transcript" : "timeline");
    if (event.key === "n") { view("tokens"); nextMark(); strip.focus({ preventScroll: true }); }
  });
  document.addEventListener("turnkey", (event) => {
    if (!data || !strip.contains(document.activeElement)) return;
    event.preventDefault();
    const begins = [...starts.values()];
    const to = event.detail > 0 ? begins.find((s) => s > selected) : [...begins].reverse().find((s) => s < selected);
    if (to !== undefined) select(to, true, true);
  });

  const load = async (step) => {
    const url = new URL(box.dataset.url, location.href); if (step !== undefined) url.searchParams.set("step", step);
    let answer;
    try { const response = await fetch(url, { headers: { Accept: "application/json" } }); answer = await response.json(); } catch (error) { answer = { unavailable: String(error) }; }
    if (answer.unavailable) { box.querySelector("[data-count]").textContent = ""; strip.textContent = ""; strip.append(el("p", "empty", `${words.unavailable} ${answer.unavailable}`)); return; }
    const keep = selected, old = range; selected = -1; range = null;
    data = answer; collect(); drawStrip(); drawOverview(); applyShade(shade);
    if (reading.dataset.mode === "timeline") drawTimeline();
    const steps = box.querySelector("[data-steps]"); steps.hidden = data.steps.length < 2;
    const holder = box.querySelector("[data-step-buttons]"); holder.textContent = "";
    data.steps.forEach((s) => { const b = el("button", "", String(s)); b.type = "button"; b.dataset.step = s; b.setAttribute("aria-pressed", String(s === data.step)); holder.append(b); });
    if (old) selectRange(old, false); else if (keep >= 0) select(keep, true, false);
    const spot = step === undefined ? read(location.hash) : null;
    if (spot) { view("tokens"); selectRange(spot, true); }
    box.dataset.ready = "1";
  };
  window.addEventListener("hashchange", () => { const spot = read(location.hash); if (spot) { view("tokens"); selectRange(spot, true); } else if (/^#d\d+$/.test(location.hash)) { mode("transcript"); view("conversation"); } });
  load();
})();
