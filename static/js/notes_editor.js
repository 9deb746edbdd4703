// Editor of the notes: each text is checked while it is written; `[[` searches, see picker.js.
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
})();
