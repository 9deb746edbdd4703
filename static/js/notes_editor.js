// Editor of the notes: `[[` searches figures and excerpts, each text is checked while it is written.
(() => {
  "use strict";
  const form = document.getElementById("notes-editor");
  if (!form) return;
  const token = form.querySelector('[name="csrfmiddlewaretoken"]').value;

  // Nothing is lost by leaving without a question.
  let dirty = form.dataset.changed === "1", sending = false;
  const mark = form.querySelector("[data-unsaved]");
  form.addEventListener("input", () => { dirty = true; mark.hidden = false; });
  form.addEventListener("submit", (event) => {
    const by = event.submitter, question = by && by.dataset.remove;
    if (question && !confirm(question)) { event.preventDefault(); return; }
    sending = !(by && by.getAttribute("formtarget"));
  });
  addEventListener("beforeunload", (event) => { if (dirty && !sending) event.preventDefault(); });
  // A structural edit comes back to where it was made.
  const place = "notes-editor-scroll";
  addEventListener("pagehide", () => { if (sending) sessionStorage.setItem(place, String(scrollY)); });
  const kept = sessionStorage.getItem(place);
  if (kept !== null) { sessionStorage.removeItem(place); if (!form.querySelector(".fault-list")) scrollTo(0, Number(kept)); }
  form.addEventListener("change", (event) => {
    const kind = event.target.closest("[data-cell-kind]");
    if (!kind) return;
    kind.closest(".cell").querySelectorAll("[data-for]").forEach((part) => { part.hidden = part.dataset.for !== kind.value; });
  });

  // What a sentence may not say, shown below it while it is written.
  const timers = new WeakMap(), asked = new WeakMap();
  const show = (area, answer) => {
    const box = area.parentElement.querySelector("[data-live-faults]");
    if (!box) return;
    box.replaceChildren();
    const line = (message, name) => { const p = document.createElement("p"); p.className = name; p.textContent = message; box.append(p); };
    answer.refused.forEach((item) => line(item.message, "refused"));
    answer.caution.forEach((item) => line(item.message, "caution"));
    area.toggleAttribute("aria-invalid", answer.refused.length > 0);
    if (answer.refused.length) area.setAttribute("aria-invalid", "true");
  };
  const check = async (area) => {
    const text = area.value; asked.set(area, text);
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", headers: { "X-CSRFToken": token }, body: new URLSearchParams({ text, language: area.dataset.language }) });
      if (answer.ok && asked.get(area) === text) show(area, await answer.json());
    } catch { /* the save checks everything again */ }
  };
  form.addEventListener("input", (event) => {
    const area = event.target.closest("textarea[data-bound]");
    if (!area) return;
    clearTimeout(timers.get(area));
    timers.set(area, setTimeout(() => check(area), 500));
  });

  // The picker: a list box below the field, moved through with the arrow keys.
  const picker = document.createElement("div");
  picker.className = "picker"; picker.id = "figure-picker"; picker.hidden = true; picker.setAttribute("role", "listbox"); picker.setAttribute("aria-label", form.dataset.figures);
  document.body.append(picker);
  let field = null, start = -1, chosen = -1, found = [], query = null, timer = 0;
  const close = () => { picker.hidden = true; if (field) { field.removeAttribute("aria-activedescendant"); field.setAttribute("aria-expanded", "false"); } field = null; chosen = -1; query = null; };
  const option = (item, at) => {
    const box = document.createElement("div");
    box.id = `figure-option-${at}`; box.setAttribute("role", "option"); box.setAttribute("aria-selected", String(at === chosen));
    const part = (name, text) => { const span = document.createElement("span"); span.className = name; span.textContent = text || ""; box.append(span); };
    part("key", item.key); part("value", item.shown || ""); part("about", [item.title, item.about].filter(Boolean).join(" · "));
    box.addEventListener("mousedown", (event) => { event.preventDefault(); take(at); });
    return box;
  };
  const draw = () => {
    picker.replaceChildren(...found.map(option));
    if (!found.length) { const none = document.createElement("p"); none.className = "none"; none.textContent = form.dataset.none; picker.append(none); }
    const at = field.getBoundingClientRect();
    picker.hidden = false;
    picker.style.left = `${Math.max(8, Math.min(at.left, innerWidth - picker.offsetWidth - 8)) + scrollX}px`;
    picker.style.top = `${at.bottom + scrollY + 2}px`;
    field.setAttribute("aria-expanded", "true"); field.setAttribute("aria-controls", picker.id);
    const active = picker.querySelector('[aria-selected="true"]');
    if (active) { field.setAttribute("aria-activedescendant", active.id); active.scrollIntoView({ block: "nearest" }); } else field.removeAttribute("aria-activedescendant");
  };
  const read = (answer) => [
    ...(answer.figures || answer.items || []).map((item) => ({ key: item.key, shown: item.shown ?? item.value, title: item.title, about: [item.word, item.source].filter(Boolean).join(", "), text: item.token || `[[${item.key}]]` })),
    ...(answer.excerpts || []).map((item) => ({ key: item.key, shown: item.reference ? `[${item.reference}]` : "", title: (item.text || "").slice(0, 120), about: item.source || "", text: item.token || "" })),
  ].filter((item) => item.text);
  const search = async (text) => {
    query = text;
    try {
      const answer = await fetch(`${form.dataset.search}?${new URLSearchParams({ study: form.dataset.study, q: text })}`);
      if (!answer.ok || query !== text || !field) return;
      found = read(await answer.json()); chosen = found.length ? 0 : -1; draw();
    } catch { close(); }
  };
  const opened = (target) => {
    if (target.dataset.keyOnly !== undefined) return { start: 0, text: target.value };
    if (target.dataset.bound === undefined) return null;
    const before = target.value.slice(0, target.selectionStart), at = before.lastIndexOf("[[");
    if (at < 0 || /[\]\n]/.test(before.slice(at))) return null;
    return { start: at, text: before.slice(at + 2) };
  };
  form.addEventListener("input", (event) => {
    const target = event.target, open = target.matches("textarea, input") ? opened(target) : null;
    if (!open) { if (field) close(); return; }
    field = target; start = open.start;
    clearTimeout(timer); timer = setTimeout(() => search(open.text), 120);
  });
  const take = (at) => {
    const item = found[at], target = field;
    if (!item || !target) return;
    if (target.dataset.keyOnly !== undefined) target.value = item.text.startsWith("[[") ? item.key : target.value;
    else {
      const end = target.value.slice(target.selectionStart).startsWith("]]") ? target.selectionStart + 2 : target.selectionStart;
      target.setRangeText(item.text, start, end, "end");
    }
    close(); target.focus();
    target.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  form.addEventListener("keydown", (event) => {
    if (!field || picker.hidden || event.target !== field) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); if (found.length) { chosen = (chosen + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length; draw(); } }
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) { event.preventDefault(); take(chosen); }
    else if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); close(); }
  });
  form.addEventListener("focusout", () => setTimeout(() => { if (field && document.activeElement !== field) close(); }, 150));
})();
