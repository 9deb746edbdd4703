// One item of the review queue: quotation in view, keys, what a verdict will do, the switch of halves on a phone.
(() => {
  "use strict";
  const halves = document.getElementById("halves");
  if (!halves) return;
  document.documentElement.classList.add("scripted");
  const box = document.getElementById("sourcetext");
  const marks = box ? [...box.querySelectorAll("mark[data-quote]")] : [];
  const numbers = [...new Set(marks.map((mark) => mark.dataset.quote))];
  const place = document.querySelector("[data-quote-place]");
  let at = 0;

  // Scrolls the box and not the window: the question at the top stays where it is.
  const show = (mark, focus) => {
    if (!box || !mark) return;
    const top = mark.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    if (focus) mark.focus({ preventScroll: true });
  };
  const nextQuote = () => {
    if (!numbers.length) return;
    half("source");
    at = (at + 1) % numbers.length;
    show(marks.find((mark) => mark.dataset.quote === numbers[at]), true);
    if (place) place.textContent = place.textContent.replace(/\d+/, String(at + 1));
  };

  const half = (name) => {
    halves.dataset.shown = name;
    document.querySelectorAll("[data-half]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.half === name)));
    if (name === "source") show(marks[at ? marks.findIndex((mark) => mark.dataset.quote === numbers[at]) : 0], false);
  };
  document.querySelectorAll("[data-half]").forEach((button) => button.addEventListener("click", () => half(button.dataset.half)));
  document.querySelectorAll("[data-next-quote]").forEach((button) => button.addEventListener("click", nextQuote));

  const form = document.getElementById("verdict-form");
  const record = document.querySelector("[data-record]");
  const told = document.querySelector("[data-foretold-now]");
  const chosen = () => {
    const input = form && form.querySelector("input[name=verdict]:checked");
    if (!input) return;
    record.textContent = record.dataset.recordWords.replace("%(verdict)s", input.dataset.title.toLowerCase());
    told.textContent = input.dataset.foretold ? `; ${input.dataset.foretold}` : "";
  };
  if (form) { form.addEventListener("change", chosen); chosen(); }
  if (form && form.querySelector("[role=alert]")) half("source");

  const typing = (element) => element instanceof Element && element.closest("textarea, select, [contenteditable], input:not([type=radio]):not([type=checkbox])") !== null;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    const link = document.querySelector(`[data-queue="${event.key}"]`);
    if ((event.key === "j" || event.key === "k") && link) { event.preventDefault(); location.href = link.href; return; }
    if (event.key === "n") { event.preventDefault(); nextQuote(); return; }
    if (event.key === "o") { const whole = document.querySelector("[data-whole]"); if (whole) { event.preventDefault(); location.href = whole.href; } return; }
    const choice = form && form.querySelector(`[data-key-choice="${event.key}"]`);
    if (choice) { event.preventDefault(); half("source"); choice.checked = true; chosen(); document.getElementById("reason").focus(); }
  });
  show(marks[0], false);
})();
