"use strict";
// What the server sends is a view's whole inside, escaped as the first one; each section that differs is replaced.
const main = document.getElementById("main"), live = document.getElementById("live"), seen = new Map();

function say(text, trouble) {
  live.textContent = text;
  live.classList.toggle("trouble", Boolean(trouble));
}

function replace(html) {
  const told = new DOMParser().parseFromString(html, "text/html");
  for (const section of told.querySelectorAll("section[id]")) {
    const old = document.getElementById(section.id);
    if (!old || (seen.get(section.id) ?? old.innerHTML) === section.innerHTML) continue;
    seen.set(section.id, section.innerHTML);
    const focus = document.activeElement, open = new Set([...old.querySelectorAll("details[open]")].map((one) => one.id));
    const at = focus && old.contains(focus) ? [...old.querySelectorAll("a, button, summary, [tabindex]")].indexOf(focus) : -1;
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    old.innerHTML = section.innerHTML;
    for (const one of old.querySelectorAll("details")) one.open ||= open.has(one.id);
    old.querySelectorAll(".scroll").forEach((one, index) => { if (scrolled[index]) one.scrollTo(...scrolled[index]); });
    if (at >= 0) old.querySelectorAll("a, button, summary, [tabindex]")[at]?.focus({ preventScroll: true });
  }
}

// A browser has few connections to one host: a page that nobody sees gives its own back.
let changes, ended = !main.dataset.changes;
function follow() {
  changes = new EventSource(main.dataset.changes);
  changes.onopen = () => say("live");
  changes.onerror = () => say("not connected: is the command still running?", true);
  changes.addEventListener("change", (event) => { replace(JSON.parse(event.data)); say("live"); });
  changes.addEventListener("trouble", (event) => say(JSON.parse(event.data), true));
  changes.addEventListener("end", () => { changes.close(); ended = true; say("ended"); });
}

if (ended) say("ended");
else follow();
document.addEventListener("visibilitychange", () => {
  if (ended) return;
  changes.close();
  if (!document.hidden) follow();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "copied";
});
