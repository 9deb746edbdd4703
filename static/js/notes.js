// The notes page: which section is read, margin notes beside their citation, the storyboard, printing.
(() => {
  "use strict";
  const root = document.documentElement;
  const sections = [...document.querySelectorAll("[data-section]")];
  if (!sections.length) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const wide = matchMedia("(min-width: 1280px)");

  // Folded parts open for whoever is sent into them, and for paper.
  const unfold = (element) => { for (let fold = element && element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true; };
  const arrive = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const own = target.matches("[data-section]") && target.querySelector(":scope > .part-main > details.folded");
    if (own) own.open = true;
    unfold(target); target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", arrive);
  let folded = [];
  const open = () => { folded = [...document.querySelectorAll("details:not([open])")]; folded.forEach((item) => { item.open = true; }); };
  const close = () => { folded.forEach((item) => { item.open = false; }); folded = []; };
  addEventListener("beforeprint", open); addEventListener("afterprint", close);
  document.querySelectorAll("[data-print]").forEach((button) => { button.hidden = false; button.addEventListener("click", () => print()); });

  // The present section is the last one whose head has passed a quarter of the window.
  const links = new Map([...document.querySelectorAll("[data-contents]")].map((link) => [link.dataset.contents, link]));
  let present = -1;
  const mark = () => {
    const line = innerHeight / 4;
    let found = sections.findLastIndex((section) => section.getBoundingClientRect().top <= line);
    if (innerHeight + scrollY >= root.scrollHeight - 2) found = sections.length - 1;
    if (found === present) return;
    present = found;
    links.forEach((link) => link.removeAttribute("aria-current"));
    if (found < 0) return;
    const link = links.get(sections[found].id);
    if (link) link.setAttribute("aria-current", "true");
  };
  let waiting = false;
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; mark(); }); } }, { passive: true });

  // On wide windows a margin note stands level with the first sentence that cites it, unless another one is there.
  const place = () => document.querySelectorAll(".margin").forEach((margin) => {
    const notes = [...margin.querySelectorAll("[data-note]")];
    const part = margin.closest("[data-section]");
    const visible = (label) => [...part.querySelectorAll(`[data-cites="${CSS.escape(label)}"]`)].find((link) => link.checkVisibility());
    const cites = new Map(notes.map((note) => [note, visible(note.dataset.note)]));
    notes.forEach((note) => { note.style.marginTop = ""; note.classList.toggle("away", !cites.get(note)); });  // cited in a closed fold only
    if (!wide.matches) return;
    notes.forEach((note) => {
      const cited = cites.get(note);
      if (!cited) return;
      const gap = cited.getBoundingClientRect().top - note.getBoundingClientRect().top - 4;
      if (gap > 0) note.style.marginTop = `${Math.round(gap)}px`;
    });
  });
  const settle = () => { place(); mark(); };
  addEventListener("resize", settle); addEventListener("load", () => { settle(); arrive(); });
  document.addEventListener("toggle", (event) => { if (event.target instanceof HTMLDetailsElement) settle(); }, true);
  if (document.fonts) document.fonts.ready.then(settle);
  document.addEventListener("mouseover", (event) => {
    const cited = event.target instanceof Element && event.target.closest("[data-cites]");
    document.querySelectorAll(".margin .cited").forEach((note) => note.classList.remove("cited"));
    if (cited) { const note = cited.closest("[data-section]")?.querySelector(`[data-note="${CSS.escape(cited.dataset.cites)}"]`); if (note) note.classList.add("cited"); }
  });

  // Keys: sections here; the frame's search field does not exist on this page, so its key leads to the search page.
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
    const search = (event.ctrlKey || event.metaKey) && event.key === "k";
    if (typing || document.querySelector("dialog[open]") || (!search && (event.ctrlKey || event.metaKey || event.altKey))) return;
    if (search || event.key === "/") { event.preventDefault(); event.stopImmediatePropagation(); location.href = document.body.dataset.search; return; }
    if (event.key !== "j" && event.key !== "k") return;
    event.preventDefault();
    mark();
    const next = Math.max(0, Math.min(sections.length - 1, present + (event.key === "j" ? 1 : -1)));
    const section = sections[next];
    section.tabIndex = -1; section.focus({ preventScroll: true });
    section.scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
    history.replaceState(null, "", `#${section.id}`);
  }, true);

  // Storyboard: four stills of ten seconds. Nothing plays by itself; without motion it steps from still to still.
  const SECONDS = 10;
  document.querySelectorAll("[data-story]").forEach((story) => {
    const frames = [...story.querySelectorAll("[data-frame]")], track = [...story.querySelectorAll("[data-track] i")];
    const button = story.querySelector("[data-play]"), clock = story.querySelector("[data-clock]");
    const whole = SECONDS * frames.length;
    let at = 0, before = 0, playing = false;
    const text = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
    const draw = () => {
      const now = Math.min(frames.length - 1, Math.floor(at / SECONDS));
      frames.forEach((frame, index) => frame.classList.toggle("now", (playing || at > 0) && index === now));
      track.forEach((bar, index) => {
        const share = Math.max(0, Math.min(1, at / SECONDS - index));
        bar.style.setProperty("--done", String(still.matches ? (share > 0 ? 1 : 0) : share));
      });
      clock.textContent = `${text(at)} / ${text(whole)}`;
    };
    const step = (moment) => {
      if (!playing) return;
      at += (moment - before) / 1000; before = moment;
      if (at >= whole) { at = 0; set(false); return; }
      draw(); requestAnimationFrame(step);
    };
    const set = (value) => {
      playing = value; story.classList.toggle("playing", playing); button.setAttribute("aria-pressed", String(playing));
      draw();
      if (playing) { before = performance.now(); requestAnimationFrame(step); }
    };
    button.hidden = false; clock.hidden = false;
    button.addEventListener("click", () => set(!playing));
    document.addEventListener("visibilitychange", () => { if (document.hidden && playing) set(false); });
    addEventListener("beforeprint", () => { at = 0; set(false); });
  });
})();
