// What JavaScript adds to the pages: live updates by server-sent events, and keys. Nothing depends on it.
"use strict";

// Makes `now` like `next`, a tree of nodes that the server rendered; focus, scrolling and open details stay.
function merge(now, next) {
  for (const { name, value } of [...next.attributes]) {
    if (name !== "open" && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  for (const { name } of [...now.attributes]) {
    if (name !== "open" && !next.hasAttribute(name)) now.removeAttribute(name);
  }
  mergeChildren(now, next);
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id || "") === (other.id || "");
}

function mergeChildren(now, next) {
  const byId = new Map();
  for (const child of now.children) if (child.id) byId.set(child.id, child);
  let at = now.firstChild;
  for (const wanted of [...next.childNodes]) {
    let found = null;
    if (wanted.id) found = byId.get(wanted.id) || null;
    else if (at && alike(at, wanted)) found = at;
    if (!found || !alike(found, wanted)) {
      now.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else now.insertBefore(found, at);
    if (found.nodeType === Node.TEXT_NODE) {
      if (found.data !== wanted.data) found.data = wanted.data;
    } else if (found.nodeType === Node.ELEMENT_NODE && !found.isEqualNode(wanted) && found !== document.activeElement) {
      if (found.matches("[data-keep]")) continue;
      merge(found, wanted);
    }
  }
  while (at) {
    const following = at.nextSibling;
    if (!keepTyped(at)) at.remove();
    at = following;
  }
}

// A form in which something was typed stays when its question has gone, and says so.
const typedForms = new WeakSet();

function keepTyped(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return false;
  const forms = [node, ...node.querySelectorAll("form.answering")].filter((each) => typedForms.has(each));
  for (const form of forms) {
    form.querySelector(".gone").hidden = false;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }
  return forms.length > 0;
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form.answering");
  if (form && event.target.name !== "as") typedForms.add(form);
});

// Ages go on while the data do not change: `data-at` is a time by the clock of Redis, in seconds, `data-from` the
// begin of what goes on; `data-now` of the page is when it was made. The texts are those of `ago` and `duration` in
// text/quantities.py.
const AGE_UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const SHOWN_AS_AGE_S = 60 * 86400;

function lengthOf(seconds) {
  const [unit, name] = AGE_UNITS.find(([size]) => seconds >= size) || [1, "s"];
  return `${Math.max(0, Math.floor(seconds / unit))} ${name}`;
}

function ageOf(seconds) {
  return seconds < 1 ? "now" : `${lengthOf(seconds)} ago`;
}

function keepAges(main) {
  const read = () => ({ now: Number(main.dataset.now), at: performance.now() });
  let made = read();
  main.addEventListener("updated", () => { made = read(); });
  setInterval(() => {
    const now = made.now + (performance.now() - made.at) / 1000;
    for (const each of main.querySelectorAll("time[data-at]")) {
      const age = now - Number(each.dataset.at);
      if (age < SHOWN_AS_AGE_S && each.textContent !== ageOf(age)) each.textContent = ageOf(age);
    }
    for (const each of main.querySelectorAll("[data-from]")) {
      const length = lengthOf(now - Number(each.dataset.from));
      if (each.textContent !== length) each.textContent = length;
    }
  }, 1000);
}

// Times are shown in the time zone of the browser; the title of each has the time in UTC. `data-stamp` is one in
// seconds, with `data-form` if only its day or its time of day is shown.
const localTime = (at) => new Date(at * 1000).toLocaleString("sv-SE");

function localTimes(main) {
  for (const each of main.querySelectorAll("time[data-stamp]")) {
    const at = Number(each.dataset.stamp);
    const local = localTime(at);
    const milliseconds = String(Math.floor((at % 1) * 1000)).padStart(3, "0");
    const forms = { clock: `${local.slice(11)}.${milliseconds}`, day: local.slice(0, 10) };
    const text = forms[each.dataset.form] || local;
    if (each.textContent !== text) each.textContent = text;
  }
  for (const each of main.querySelectorAll("time[data-at]")) {
    const title = `${localTime(Number(each.dataset.at))} · ${each.getAttribute("datetime")}`;
    if (each.title !== title) each.title = title;
  }
}

// Shows a whole page that the server rendered, `text`, in place of this one, under its own URL.
function showPage(text, url) {
  const next = new DOMParser().parseFromString(text, "text/html");
  const made = next.getElementById("main");
  history.replaceState(null, "", url);
  mergeChildren(main, made);
  Object.assign(main.dataset, made.dataset);
  document.getElementById("json").href = next.getElementById("json").getAttribute("href");
  main.dispatchEvent(new CustomEvent("updated", { bubbles: true }));
  main.dispatchEvent(new CustomEvent("moved"));
}

function atEnd() {
  const root = document.documentElement;
  return root.scrollHeight > root.clientHeight && root.scrollTop + root.clientHeight > root.scrollHeight - 40;
}

function followLive(main) {
  const outage = document.getElementById("outage");
  const sign = document.getElementById("live");
  const warn = (text) => {
    outage.textContent = text;
    outage.hidden = !text;
    sign.classList.toggle("off", Boolean(text));
    sign.textContent = text ? "not live" : "live";
  };
  // a browser keeps few connections to a server, so pages that are not visible have none
  let events = null;
  const hush = () => {
    if (events) events.close();
    events = null;
  };
  const listen = () => {
    if (events || document.hidden) return;
    const url = new URL(main.dataset.live, location.href);
    url.searchParams.set("seen", main.dataset.seen);
    const strip = document.getElementById("strip");
    if (strip) url.searchParams.set("strip", strip.dataset.seen);
    const asked = document.querySelector("#questions .asked");
    if (asked) url.searchParams.set("asked", asked.dataset.asked);
    events = new EventSource(url);
    events.onopen = () => { sign.hidden = false; warn(""); };
    events.addEventListener("page", (message) => {
      const { seen, html } = JSON.parse(message.data);
      const follow = main.querySelector("[data-follow]") && atEnd();
      // an inert document: nothing in it runs or loads
      const next = new DOMParser().parseFromString(html, "text/html");
      const made = next.querySelector("main");
      mergeChildren(main, made);
      main.dataset.seen = seen;
      main.dataset.now = made.dataset.now;
      warn("");
      if (follow) document.documentElement.scrollTop = document.documentElement.scrollHeight;
      main.dispatchEvent(new CustomEvent("updated", { bubbles: true }));
    });
    events.addEventListener("strip", (message) => {
      const next = new DOMParser().parseFromString(JSON.parse(message.data), "text/html").getElementById("strip");
      const strip = document.getElementById("strip");
      if (strip && next) merge(strip, next);
    });
    events.addEventListener("asked", (message) => {
      if (!asked) return;
      asked.dataset.asked = message.data;
      asked.hidden = message.data === "0";
      asked.firstChild.data = Number(message.data).toLocaleString("en");
    });
    events.addEventListener("outage", (message) => warn(JSON.parse(message.data)));
    events.addEventListener("gone", (message) => { warn(JSON.parse(message.data)); hush(); });
    events.onerror = () => {
      warn("The inspector does not answer.");
      // the browser tries again by itself, except after a refusal; what is shown by then is sent along
      hush();
      setTimeout(listen, 2000);
    };
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? hush() : listen()));
  window.addEventListener("pagehide", hush);
  // another page was put into this one
  main.addEventListener("moved", () => { hush(); listen(); });
  listen();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target instanceof Element && event.target.closest("input, select, textarea");
  if (event.key === "Escape" && typing) typing.blur();
  if (event.key !== "/" || typing) return;
  const box = document.getElementById("search");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
});

// The bars and names of a timeline are one stop of Tab; the arrow keys go from bar to bar and from row to row, and
// from the first bar of a row to its name; z zooms to the process of the row.
function barBeside(bar, key) {
  const bars = [...bar.closest(".chart").querySelectorAll("a[data-row]")];
  const rowOf = (each) => Number(each.dataset.row);
  const leftOf = (each) => each.getBoundingClientRect().left;
  const row = bars.filter((each) => rowOf(each) === rowOf(bar)).sort((one, other) => leftOf(one) - leftOf(other));
  if (key === "ArrowLeft") return row[row.indexOf(bar) - 1];
  if (key === "ArrowRight") return row[row.indexOf(bar) + 1];
  if (key === "Home") return row[0];
  if (key === "End") return row[row.length - 1];
  const step = key === "ArrowUp" ? -1 : key === "ArrowDown" ? 1 : 0;
  const rows = bars.filter((each) => step * (rowOf(each) - rowOf(bar)) > 0);
  const next = step * Math.min(...rows.map((each) => step * rowOf(each)));
  const isName = (each) => each.closest(".names") !== null;
  const far = (each) => Math.abs(leftOf(each) - leftOf(bar)) + (isName(each) === isName(bar) ? 0 : 1e6);
  return rows.filter((each) => rowOf(each) === next).sort((one, other) => far(one) - far(other))[0];
}

function stopAt(chart, stop) {
  for (const each of chart.querySelectorAll("a[data-row]")) each.setAttribute("tabindex", each === stop ? "0" : "-1");
}

document.addEventListener("keydown", (event) => {
  const bar = event.target instanceof Element && event.target.closest(".chart a[data-row]");
  if (!bar || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "z") bar.closest(".chart").querySelector(`a[data-zoom="${bar.dataset.row}"]`)?.click();
  const next = barBeside(bar, event.key);
  if (!next) return;
  event.preventDefault();
  stopAt(bar.closest(".chart"), next);
  next.focus();
});

// A page that is sent again says that the first bar is the stop, while another one may have the focus.
document.addEventListener("updated", () => {
  const bar = document.activeElement?.closest(".chart a[data-row]");
  if (bar) stopAt(bar.closest(".chart"), bar);
});

// A form that only looks leaves empty fields out of the URL.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "get") return;
  const empty = [...form.elements].filter((field) => field.name && !field.value);
  for (const field of empty) field.disabled = true;
  setTimeout(() => { for (const field of empty) field.disabled = false; });
});

const main = document.getElementById("main");
if (main.dataset.now) {
  keepAges(main);
  localTimes(main);
  main.addEventListener("updated", () => localTimes(main));
  const zone = document.getElementById("zone");
  if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || "local";
}
if (main.dataset.live) followLive(main);
