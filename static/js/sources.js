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
