// Frame behaviour: theme, phone menu, copy buttons, shortcuts, row keyboard, live fragments.
(() => {
  "use strict";
  const root = document.documentElement;
  const text = (name) => document.body.dataset[name] || "";

  // The policy forbids styles in markup, and counts a style attribute that a script writes as markup. The chart library
  // writes them on drawn text (a bold word of a hover label): the same declarations as properties are allowed.
  const setAttribute = SVGElement.prototype.setAttribute;
  SVGElement.prototype.setAttribute = function (name, value) {
    if (String(name).toLowerCase() === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };

  // Theme: the cookie is read by the server, so the first paint is already right.
  const setTheme = (value) => {
    root.dataset.theme = value;
    document.cookie = `theme=${value};path=/;max-age=31536000;samesite=lax`;
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  const currentTheme = () => root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

  // MLflow clients print /#/experiments/<id>/runs/<32 hexadecimal digits>: the part after # never reaches the server.
  const logged = location.pathname === "/" && location.hash.match(/^#\/experiments\/[^/]+(?:\/runs\/([0-9a-f]{32}))?$/);
  if (logged) {
    const uid = (logged[1] || "").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    location.replace(uid ? `/logged/${uid}/` : "/logged/");
  }

  // A short message at the foot of the window, also read out.
  let toastTimer;
  const toast = (message) => {
    const box = document.getElementById("toast");
    if (!box || !message) return;
    box.textContent = message; box.hidden = false;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { box.hidden = true; }, 1800);
  };
  const copyText = async (value) => {
    try { await navigator.clipboard.writeText(value); return true; } catch (error) {
      const area = document.createElement("textarea");
      area.value = value; area.className = "visually-hidden"; document.body.append(area); area.select();
      const done = document.execCommand("copy"); area.remove(); return done;
    }
  };

  document.addEventListener("click", async (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;
    const copy = target.closest("[data-copy]");
    if (copy) {
      event.preventDefault(); event.stopPropagation();
      if (await copyText(copy.dataset.copy)) { copy.classList.add("copied"); toast(text("copied")); setTimeout(() => copy.classList.remove("copied"), 1500); }
      return;
    }
    if (target.closest("[data-theme-switch]")) { setTheme(currentTheme() === "dark" ? "light" : "dark"); return; }
    const menu = target.closest("[data-menu]");
    if (menu) { const open = document.getElementById("rail").classList.toggle("open"); menu.setAttribute("aria-expanded", String(open)); return; }
    if (target.closest("[data-shortcuts]")) { document.getElementById("shortcuts").showModal(); return; }
    if (target.closest("[data-close]")) { target.closest("dialog").close(); return; }
    const row = target.closest("tr[data-href]");
    if (row && !target.closest("a, button, input, summary") && !String(getSelection())) location.href = row.dataset.href;
  });
  document.addEventListener("click", (event) => {
    const open = document.querySelector(".switcher[open]");
    if (open && !open.contains(event.target)) open.open = false;
  });

  // A table that is wider than its place says so below it.
  const hint = () => document.querySelectorAll(".scroll").forEach((box) => {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("more", wide);
    const next = box.nextElementSibling, stands = next && next.classList.contains("scrollhint");
    if (wide && !stands) { const line = document.createElement("p"); line.className = "scrollhint"; line.textContent = text("scroll"); box.after(line); }
    if (!wide && stands) next.remove();
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
  });
  addEventListener("load", hint); addEventListener("resize", hint); hint();

  // Rows: j and k move, Enter opens.
  const rows = () => [...document.querySelectorAll("tr[data-href]")].filter((row) => row.offsetParent);
  let index = -1;
  const moveRow = (step) => {
    const found = rows(); if (!found.length) return;
    const at = found.findIndex((row) => row.classList.contains("current"));
    index = Math.max(0, Math.min(found.length - 1, (at < 0 ? (step > 0 ? -1 : found.length) : at) + step));
    found.forEach((row) => row.classList.remove("current"));
    found[index].classList.add("current");
    found[index].tabIndex = -1; found[index].focus({ preventScroll: true });
    found[index].scrollIntoView({ block: "nearest" });
  };
  const typing = (element) => element instanceof Element && (element.closest("input, textarea, select, [contenteditable]") !== null);
  document.addEventListener("keydown", async (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") { event.preventDefault(); document.getElementById("search-field").focus(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    const jump = (name) => { const link = document.querySelector(`[data-key="${name}"]`); if (link) { event.preventDefault(); link.click(); } };
    switch (event.key) {
      case "/": event.preventDefault(); document.getElementById("search-field").focus(); break;
      case "j": moveRow(1); break;
      case "k": moveRow(-1); break;
      case "Enter": { const row = document.querySelector("tr.current[data-href]"); if (row && (event.target === row || event.target === document.body)) location.href = row.dataset.href; break; }
      case ".": if (await copyText(location.href)) toast(text("copied")); break;
      case "?": event.preventDefault(); document.getElementById("shortcuts").showModal(); break;
      case "[": if (!document.dispatchEvent(new CustomEvent("turnkey", { detail: -1, cancelable: true }))) event.preventDefault(); else jump("previous"); break;
      case "]": if (!document.dispatchEvent(new CustomEvent("turnkey", { detail: 1, cancelable: true }))) event.preventDefault(); else jump("next"); break;
      default:
    }
  });

  // Live fragments poll only while the tab is visible; a fragment that says it is done stops by itself.
  document.addEventListener("htmx:confirm", (event) => {
    if (event.detail.elt.matches("[data-live]") && document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && window.htmx) document.querySelectorAll("[data-live]").forEach((element) => window.htmx.trigger(element, "visible-again"));
  });
  document.addEventListener("htmx:responseError", () => toast(text("offline")));
  document.addEventListener("htmx:sendError", () => toast(text("offline")));
})();
