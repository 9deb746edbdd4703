// Page of a source: n and N walk the quotations; an address of a folded line opens the part that holds it.
(() => {
  "use strict";
  const body = document.querySelector("[data-source]");
  if (!body) return;
  const line = /^#L(\d+)$/.exec(location.hash);
  if (line && !document.getElementById(location.hash.slice(1)) && !new URLSearchParams(location.search).has("line")) {
    location.replace(`${body.dataset.whole}${line[1]}${location.hash}`);
    return;
  }
  // What is selected in the content becomes the exact text of a quotation, unless somebody has typed one.
  const exact = document.querySelector("[data-quote-form] textarea[name=exact]");
  let filled = "";
  if (exact) {
    document.addEventListener("selectionchange", () => {
      const chosen = getSelection();
      if (!chosen || chosen.isCollapsed || exact.value !== filled) return;
      if (!body.contains(chosen.anchorNode) || !body.contains(chosen.focusNode)) return;
      const text = chosen.toString().trim();
      if (text && text.length <= exact.maxLength) exact.value = filled = text;
    });
  }
  const quotes = [...body.querySelectorAll("[data-quote]")];
  let at = -1;
  const go = (step) => {
    if (!quotes.length) return;
    if (at >= 0) quotes[at].classList.remove("current");
    at = at < 0 ? (step > 0 ? 0 : quotes.length - 1) : (at + step + quotes.length) % quotes.length;
    const mark = quotes[at];
    mark.classList.add("current");
    mark.tabIndex = -1;
    mark.focus({ preventScroll: true });
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    mark.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    const anchor = mark.querySelector(".quoteanchor");
    if (anchor) history.replaceState(null, "", `#${anchor.id}`);
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector("dialog[open]")) return;
    if (event.key === "n") { event.preventDefault(); go(1); }
    if (event.key === "N") { event.preventDefault(); go(-1); }
  });
})();
