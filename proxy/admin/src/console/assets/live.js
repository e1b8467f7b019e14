// Updates the running requests every second. The page shows them without this script too.
"use strict";

(() => {
  const NAME_CHARS_MAX = 64;
  const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

  const counts = document.querySelectorAll("[data-live=open]");
  const rows = document.getElementById("live-rows");
  if (counts.length === 0) return;
  // A proxy may serve the console under a prefix of its own.
  const every = new URL("../api/v1/live/events?limit=1", document.currentScript.src);
  const address = rows ? rows.dataset.events : every.href;

  const clean = (name) => {
    const characters = Array.from(name.slice(0, 4 * NAME_CHARS_MAX));
    const cut = characters.length > NAME_CHARS_MAX || name.length > 4 * NAME_CHARS_MAX;
    return characters.slice(0, NAME_CHARS_MAX).join("").replace(INVISIBLE, "\ufffd") + (cut ? "…" : "");
  };
  const whole = (number) => number.toLocaleString("en-US");
  const seconds = (time) => {
    if (time < 0.0009995) return `${(time * 1e6).toFixed(0)} µs`;
    if (time < 0.009995) return `${(time * 1e3).toFixed(2)} ms`;
    if (time < 0.09995) return `${(time * 1e3).toFixed(1)} ms`;
    if (time < 0.9995) return `${(time * 1e3).toFixed(0)} ms`;
    if (time < 9.995) return `${time.toFixed(2)} s`;
    if (time < 99.95) return `${time.toFixed(1)} s`;
    const [hours, minutes] = [Math.floor(time / 3600), Math.floor(time / 60) % 60];
    return `${hours} h ${minutes} min ${Math.floor(time) % 60} s`;
  };
  const element = (tag, text, kind) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const named = (name) => name === null ? element("span", "none", "none") : element("bdi", clean(name));
  const tokens = (number) =>
    number === null ? element("span", "unknown", "unknown") : element("data", whole(number));
  const time = (value) => document.createTextNode(value === null ? "–" : seconds(value));

  const shown = {
    tenant: (request) => named(request.tenant),
    request_model: (request) => named(request.request_model),
    stage: (request) => document.createTextNode(request.stage),
    time_to_first_token: (request) => time(request.time_to_first_token),
    time_to_latest_token: (request) => time(request.time_to_latest_token),
    duration: (request) => time(request.duration),
    input_tokens: (request) => tokens(request.input_tokens),
    output_tokens: (request) => tokens(request.output_tokens),
  };

  const place = (piece, from, to, longest) => {
    const at = (value) => Math.round(Math.min(Math.max(value / longest, 0), 1) * 1000) || 0;
    const x = Math.min(at(from), 997);
    piece.setAttribute("x", x);
    piece.setAttribute("width", to > from ? Math.max(at(to) - x, 3) : 0);
  };

  const fill = (row, request, longest) => {
    for (const cell of row.querySelectorAll("[data-is]")) {
      cell.replaceChildren(shown[cell.dataset.is](request));
    }
    const [, wait, generating, gap] = row.querySelectorAll("rect");
    const first = request.time_to_first_token ?? request.duration;
    const latest = request.time_to_latest_token ?? first;
    place(wait, 0, first, longest);
    place(generating, first, latest, longest);
    place(gap, latest, request.duration, longest);
  };

  const show = (answer) => {
    for (const count of counts) count.textContent = whole(answer.open);
    if (!rows) return;
    const template = document.getElementById("live-row").content.firstElementChild;
    const longest = Math.max(0, ...answer.requests.map((request) => request.duration));
    while (rows.children.length > answer.requests.length) rows.lastElementChild.remove();
    answer.requests.forEach((request, index) => {
      const row = rows.children[index] ?? rows.appendChild(template.cloneNode(true));
      fill(row, request, longest);
    });
    document.getElementById("live-none").hidden = answer.requests.length > 0;
  };

  const state = document.getElementById("live-state");
  const pause = document.getElementById("live-pause");
  const say = (text) => { if (state) state.textContent = text; };
  let source = null;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    stop();
    source = new EventSource(address);
    source.addEventListener("live", (event) => {
      show(JSON.parse(event.data));
      say("updated every second");
    });
    source.addEventListener("error", () => say("not connected, trying again"));
  };

  let paused = false;
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Resume" : "Pause";
      if (paused) { stop(); say("paused"); } else start();
    });
  }
  // A hidden page sends no requests.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop(); else if (!paused) start();
  });
  start();
})();
