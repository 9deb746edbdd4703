// Lists: "f" goes to the filter field.
(() => {
  "use strict";
  document.addEventListener("keydown", (event) => {
    const busy = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "f" || event.ctrlKey || event.metaKey || event.altKey || busy || document.querySelector("dialog[open]")) return;
    const field = document.getElementById("list-query");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  });
})();
