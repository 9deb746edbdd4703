// Hover cards of bound values, from their own attributes; and the live check of the form that binds one.
(() => {
  "use strict";

  // --- hover cards: pointer, focus or tap; Escape closes; never over a margin note ---
  const GAP = 6, NOTES = ".margin, .sidenote, [data-margin]";
  let card = null, owner = null, timer = 0;
  const make = (name, text, parent) => {
    const node = document.createElement(name);
    if (text) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const close = () => {
    clearTimeout(timer);
    if (owner) { owner.removeAttribute("aria-describedby"); owner.removeAttribute("aria-expanded"); }
    if (card) card.remove();
    card = owner = null;
  };
  const list = (text) => { try { return JSON.parse(text || "[]"); } catch { return []; } };
  const fill = (chip) => {
    make("p", chip.dataset.title, card).className = "fig-card-title";
    const value = make("p", "", card);
    value.className = "fig-card-value tnum";
    for (const old of list(chip.dataset.earlier)) { make("s", old, value); value.append(" "); }
    value.append(chip.dataset.shown);
    const pairs = make("dl", "", card);
    for (const [label, text] of list(chip.dataset.card)) { make("dt", label, pairs); make("dd", text, pairs).className = /^[0-9a-f]{64}$/.test(text) ? "fig-hash" : ""; }
  };
  // The card stays left of every margin note whose height it shares; else it moves to the other side of the line.
  const place = (chip) => {
    const box = chip.getClientRects()[0] || chip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth, high = window.innerHeight;
    const size = card.getBoundingClientRect();
    const above = box.top - GAP - size.height;
    const top = box.bottom + GAP + size.height <= high || above < 0 ? box.bottom + GAP : above;
    let right = wide - 12;
    for (const note of document.querySelectorAll(NOTES)) {
      const found = note.getBoundingClientRect();
      const beside = found.width > 0 && found.left > box.left && found.top < top + size.height && found.bottom > top;
      if (beside) right = Math.min(right, found.left - 8);
    }
    const left = Math.max(12, Math.min(box.left, right - size.width));
    card.style.setProperty("left", `${left + window.scrollX}px`);
    card.style.setProperty("top", `${top + window.scrollY}px`);
  };
  const open = (chip) => {
    if (owner === chip) { clearTimeout(timer); return; }
    close();
    owner = chip;
    card = make("div", "");
    card.className = "fig-card"; card.id = "fig-card"; card.setAttribute("role", "tooltip");
    fill(chip);
    document.body.append(card);
    place(chip);
    chip.setAttribute("aria-describedby", "fig-card"); chip.setAttribute("aria-expanded", "true");
  };
  const chipOf = (event) => event.target instanceof Element ? event.target.closest("a.chip[data-figure]") : null;
  const inside = (event) => card && event.target instanceof Node && card.contains(event.target);
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const chip = chipOf(event);
    if (chip) { clearTimeout(timer); timer = setTimeout(() => open(chip), owner ? 0 : 120); return; }
    if (inside(event)) { clearTimeout(timer); return; }
    if (owner && document.activeElement !== owner) { clearTimeout(timer); timer = setTimeout(close, 160); }
  });
  document.addEventListener("focusin", (event) => { const chip = chipOf(event); if (chip) open(chip); else if (!inside(event)) close(); });
  document.addEventListener("focusout", (event) => { if (chipOf(event) === owner) close(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && card) { event.stopPropagation(); close(); } });
  // A tap opens the card first; a second tap on the same value follows the link.
  let touched = null;
  document.addEventListener("pointerdown", (event) => {
    const chip = chipOf(event);
    touched = event.pointerType === "touch" && chip && chip !== owner ? chip : null;
    if (event.pointerType === "touch" && !chip && !inside(event)) close();
  });
  document.addEventListener("click", (event) => {
    const chip = chipOf(event);
    if (chip && chip === touched) { event.preventDefault(); touched = null; open(chip); }
  });
  window.addEventListener("resize", close);

  // --- the form that binds: one panel at a time, and what it would bind ---
  const form = document.querySelector("[data-figure-form]");
  if (!form) return;
  document.documentElement.classList.add("scripted");
  const chosen = () => form.querySelector('input[name="type"]:checked')?.value || "";
  const panels = () => {
    for (const panel of form.querySelectorAll("[data-panel]")) panel.toggleAttribute("data-closed", panel.dataset.panel !== chosen());
  };
  const say = (name, text) => { form.querySelector(`[data-live-${name}]`).textContent = text || "—"; };
  let asked = 0, waiting = 0;
  const check = async () => {
    const number = ++asked;
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string" && value && name !== "csrfmiddlewaretoken") query.set(name, value);
    let found;
    try {
      const answer = await fetch(`${form.dataset.check}?${query}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      found = await answer.json();
    } catch { return; }
    if (number !== asked) return;
    const trouble = form.querySelector("[data-live-trouble]");
    say("shown", found.ok ? found.shown : ""); say("value", found.ok ? found.value : "");
    say("unit", found.ok ? found.unit : ""); say("state", found.ok ? found.word : "");
    trouble.textContent = found.ok ? found.trouble : found.problem;
    trouble.toggleAttribute("data-wrong", !found.ok);
  };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(check, 250); };
  form.addEventListener("input", soon);
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-reload]")) { window.location.search = `?study=${encodeURIComponent(event.target.value)}`; return; }
    panels(); soon();
  });
  panels();
  if (form.querySelector(".type-panel:not([data-closed]) input[value]:not([value=''])")) soon();
})();
