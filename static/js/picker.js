// `[[` in a sentence searches figures and excerpts: a list box below the field, moved through with the arrow keys.
// Of a form with data-search: fields with data-bound take a token, those with data-key-only a key.
(() => {
  "use strict";
  const form = document.querySelector("form[data-search]");
  if (!form) return;
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
