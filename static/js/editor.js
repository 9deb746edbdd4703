// Plan editor: the two sides follow each other through the server; nothing typed meanwhile is replaced.
(() => {
  "use strict";
  const form = document.getElementById("editor");
  if (!form) return;
  const panes = form.querySelector(".panes");
  const side = form.querySelector('input[name="side"]');
  const mark = form.querySelector("[data-unsaved-mark]");
  const text = () => document.getElementById("plan-text");
  form.classList.add("tabbed");

  // Which side a person is in decides which side the answer may write to.
  const sideOf = (element) => element.closest(".text-side") ? "yaml" : element.closest(".form-side") ? "form" : "";
  form.addEventListener("focusin", (event) => { const found = sideOf(event.target); if (found) side.value = found; });

  // Every keystroke counts: an answer to an older state is dropped and asked for again.
  let typed = 0, sent = 0, dirty = false, timer;
  // A submit leaves the page: whatever would still be asked of the server stays here, and a second one waits its turn.
  let leaving = false;
  const stay = () => { leaving = false; };
  const ask = (delay) => { clearTimeout(timer); timer = setTimeout(() => window.htmx && window.htmx.trigger(form, "sync"), delay); };
  form.addEventListener("input", (event) => {
    const found = sideOf(event.target);
    if (!found) return;
    typed += 1; dirty = true; mark.hidden = false; side.value = found;
    if (found === "yaml") { fit(); ask(600); } else { ask(900); }
  });
  form.addEventListener("htmx:configRequest", (event) => {
    if (leaving) { event.preventDefault(); return; }
    sent = typed;
    if (event.target === form) event.detail.parameters.delete("do");  // the button clicked last is none of it
  });
  form.addEventListener("htmx:beforeSwap", (event) => {
    if (sent === typed) return;
    event.detail.shouldSwap = false;
    const by = event.detail.requestConfig && event.detail.requestConfig.elt;
    if (by instanceof HTMLButtonElement && by.isConnected) by.click(); else ask(250);
  });
  form.addEventListener("click", (event) => { if (event.target.closest('button[value^="add:"], button[value^="remove:"]')) { dirty = true; mark.hidden = false; } });

  // Places stay: scroll of both sides, cursor, folded sections.
  let kept = null;
  const places = () => {
    const area = text(), active = document.activeElement;
    return {
      text: document.getElementById("text-pane").scrollTop, form: document.getElementById("form-pane").scrollTop,
      cursor: [area.selectionStart, area.selectionEnd], id: active ? active.id : "",
      folded: [...document.querySelectorAll(".form-section:not([open])")].map((element) => element.id),
    };
  };
  document.body.addEventListener("htmx:oobBeforeSwap", () => {
    if (kept) return;
    kept = places();
    setTimeout(restore, 0);  // all parts of one answer are swapped in one task
  });
  let added = "";
  form.addEventListener("click", (event) => { const button = event.target.closest('button[value^="add:"]'); added = button ? button.value.slice(4) : ""; });
  const restore = () => {
    const was = kept; kept = null;
    for (const id of was.folded) { const found = document.getElementById(id); if (found) found.open = false; }
    document.getElementById("text-pane").scrollTop = was.text; document.getElementById("form-pane").scrollTop = was.form;
    const again = was.id && document.getElementById(was.id);
    if (again && document.activeElement !== again) again.focus({ preventScroll: true });
    if (again === text()) again.setSelectionRange(...was.cursor);
    invalid();
    const list = added && document.querySelector(`[name="n:${added}"]`); added = "";
    const last = list && [...list.parentElement.querySelectorAll(":scope > .form-item")].pop();
    const first = last && last.querySelector("input:not([type=hidden]), select, textarea");
    if (first) { first.scrollIntoView({ block: "center" }); first.focus({ preventScroll: true }); }
  };
  const invalid = () => form.querySelectorAll(".form-field").forEach((field) => {
    const input = field.querySelector("input, select, textarea");
    if (field.querySelector(".field-problem")) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
  });

  // The text field is as high as its text; its numbers grow with it.
  const fit = () => {
    const area = text(), lines = document.getElementById("text-lines"), count = area.value.split("\n").length;
    area.rows = Math.min(Math.max(count + 1, 24), 4000);
    if (!lines.children.length || count > 4000) return;
    while (lines.children.length > count) lines.lastElementChild.remove();
    while (lines.children.length < count) { const item = document.createElement("li"); item.textContent = String(lines.children.length + 1); lines.append(item); }
  };

  const show = (name) => {
    panes.dataset.show = name;
    form.querySelectorAll("[data-pane]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.pane === name)));
  };
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;
    const pane = target.closest("[data-pane]");
    if (pane) { show(pane.dataset.pane); return; }
    const line = target.closest("[data-line]");
    if (line) {
      event.preventDefault(); show("text");
      const area = text(), rows = area.value.split("\n"), at = Math.min(Number(line.dataset.line), rows.length) - 1;
      const start = rows.slice(0, at).reduce((sum, row) => sum + row.length + 1, 0);
      area.focus({ preventScroll: true }); area.setSelectionRange(start, start + rows[at].length);
      const box = document.getElementById("text-pane");
      box.scrollTop = Math.max(0, at * 18 - box.clientHeight / 3);
      if (box.scrollHeight <= box.clientHeight + 1) scrollTo({ top: area.getBoundingClientRect().top + scrollY + at * 18 - innerHeight / 3 });
      return;
    }
    const field = target.closest("[data-field]");
    if (field) {
      const found = document.getElementById(field.dataset.field);
      if (!found) return;
      event.preventDefault(); show("form");
      const section = found.closest(".form-section"); if (section) section.open = true;
      found.scrollIntoView({ block: "center" }); found.focus({ preventScroll: true });
    }
  });

  form.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); form.requestSubmit(form.querySelector('button[value="save"]')); }
    if (event.key === "Enter" && event.target.matches(".form-side input")) { event.preventDefault(); ask(0); }
  });
  form.addEventListener("submit", (event) => {
    if (leaving) { event.preventDefault(); return; }
    leaving = true; dirty = false; clearTimeout(timer);
    if (window.htmx) window.htmx.trigger(form, "htmx:abort");
    setTimeout(stay, 10000);  // a page that never left may be submitted again
  });
  addEventListener("pageshow", stay);
  addEventListener("beforeunload", (event) => { if (dirty) event.preventDefault(); });
  fit(); invalid();
})();
