// The console's script: renews live parts, fills streams, and knows the keys. Pages work without it, except live parts.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  // --- live parts: the server makes their HTML, and everything in it is escaped there -------------------------------
  async function renew(part) {
    if (document.hidden || !part.isConnected || part.contains(document.activeElement)) return;
    try {
      const answer = await fetch(part.dataset.live, { headers: { "x-fragment": "1" }, credentials: "same-origin" });
      if (answer.status === 401) { location.reload(); return; }
      part.innerHTML = await answer.text();
      part.removeAttribute("data-stale");
    } catch {
      part.setAttribute("data-stale", "");
    }
  }
  async function keepLive(part) {
    const pause = Math.max(500, 1000 * Number(part.dataset.every || 3));
    if (!part.firstChild) await renew(part);
    while (part.isConnected) {
      await new Promise((done) => setTimeout(done, pause));
      await renew(part);
    }
  }

  // --- streams: lines of JSON, each a part of the page ---------------------------------------------------------------
  function put(line) {
    const part = JSON.parse(line);
    const place = document.getElementById(part.into);
    if (!place) return;
    if (part.append) place.insertAdjacentHTML("beforeend", part.html);
    else place.innerHTML = part.html;
  }
  async function fill(place) {
    const stopping = new AbortController();
    const stop = place.querySelector(":scope > button.stop");
    if (stop) { stop.hidden = false; stop.addEventListener("click", () => stopping.abort()); }
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(place.dataset.stream, { signal: stopping.signal, headers: { "x-fragment": "1" } });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) { place.insertAdjacentHTML("beforeend", await answer.text()); return; }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        lines.forEach(put);
      }
    } catch (error) {
      if (error.name !== "AbortError") place.setAttribute("data-stale", "");
    } finally {
      place.removeAttribute("aria-busy");
      if (stop) stop.hidden = true;
    }
  }
  document.querySelectorAll("[data-live]").forEach(keepLive);
  document.querySelectorAll("[data-stream]").forEach(fill);

  // --- light or dark, the menu of narrow screens, no form sent twice -------------------------------------------------
  document.getElementById("theme")?.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `ottla-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
  });
  const menu = document.getElementById("menu");
  menu?.addEventListener("click", () => {
    const open = document.getElementById("places").classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "post") setTimeout(() => form.querySelectorAll("button").forEach((each) => { each.disabled = true; }));
  });
  addEventListener("pageshow", () => document.querySelectorAll("form button").forEach((each) => { each.disabled = false; }));

  // --- keys ----------------------------------------------------------------------------------------------------------
  let before = "";
  function row(step) {
    const rows = [...document.querySelectorAll("main tbody tr")].filter((each) => each.querySelector("a"));
    const at = rows.findIndex((each) => each.contains(document.activeElement));
    rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.querySelector("a").focus();
  }
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = before ? `${before} ${event.key}` : event.key;
    before = event.key === "g" && !before ? "g" : "";
    if (keys === "j" || keys === "k") { row(event.key === "j" ? 1 : -1); return; }
    if (keys === "?") { document.getElementById("keys")?.showModal(); return; }
    const found = document.querySelector(`[data-key="${CSS.escape(keys)}"]`);
    if (!found) return;
    event.preventDefault();
    if (found.tagName === "A") found.click();
    else found.focus();
  });
})();
