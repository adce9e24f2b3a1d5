// The page of a descriptor: connects the text, the rail, the forms, the search and the live stream. Its state is
// in the URL. Everything here is done by links and forms, too, where scripts do not run.
"use strict";
(() => {
  const { element, grouped, drawn, copyLink, showReading, drawMarks, Follower, Scroller, Searcher } = globalThis.descriptor;
  const BLOCK_BYTES = 4096;
  const root = document.getElementById("reader");
  const box = root.querySelector(".text");
  const status = document.getElementById("told");
  const bare = new URL(root.dataset.url, location.href);
  const isHex = root.dataset.hex === "1";
  const now = { descriptor: JSON.parse(root.dataset.descriptor), raw: root.dataset.raw === "1", lines: null, chars: null, offset: undefined };
  let target = null; // the row that was asked for
  let told = 0;
  let awaited = null; // the epoch of the jump that has no answer yet

  // --- URLs and requests

  function url(parameters, part = "") {
    const made = new URL(bare);
    if (part) made.pathname += "/" + part;
    for (const [name, value] of Object.entries({ ...view(), ...parameters })) {
      if (value !== null && value !== undefined && value !== "") made.searchParams.set(name, value);
    }
    return made.pathname + made.search;
  }

  function view() {
    const kept = {};
    if (!box.classList.contains("wrap")) kept.wrap = 0;
    if (now.raw) kept.raw = 1;
    if (root.dataset.colours === "0") kept.colours = 0;
    if (isHex && now.descriptor.kind === "text") kept.view = "hex";
    return kept;
  }

  function tell(text, seconds = 6) {
    status.textContent = text;
    status.hidden = !text;
    clearTimeout(told);
    if (text && seconds) told = setTimeout(() => tell(""), seconds * 1000);
  }

  async function get(part, parameters, signal) {
    try {
      const answer = await fetch(url(parameters, part), { signal, headers: { Accept: "application/json" } });
      const data = await answer.json();
      if (answer.ok) return data;
      if (answer.status === 503) throw new Error(data.error.message);
      return { error: data.error.message };
    } catch (error) {
      if (error.name !== "AbortError") tell(`${error.message || "No answer"}. Scroll to try again.`, 10);
      return null;
    }
  }

  // --- the text

  // What is marked, for pages that are loaded beside the one that was asked for.
  function marked() {
    if (now.lines) return `l${now.lines.join("-")}`;
    if (now.chars) return `c${now.chars.join("-")}`;
    return now.offset === undefined ? "none" : `o${now.offset}`;
  }

  function total(descriptor) {
    return isHex ? Math.max(0, Math.ceil(descriptor.bytes / BLOCK_BYTES) - 1) : descriptor.pages;
  }

  const source = {
    least: isHex ? 0 : 1,
    draw: drawn,
    label(share) {
      const d = now.descriptor;
      if (isHex) return "0x" + Math.floor(share * d.bytes).toString(16);
      const page = Math.min(d.pages, 1 + Math.floor(share * d.pages));
      return `page ${grouped(page)} of ${grouped(d.pages)}`;
    },
    async load({ index, side, ...where }) {
      const beside = isHex ? { offset: index * BLOCK_BYTES, mark: marked() } : { page: index, mark: marked() };
      const found = await get("window.json", { ...searched(), ...(index === undefined ? where : beside), side });
      if (found?.error) tell(found.error);
      if (!found || found.error) return null;
      learn(found.descriptor);
      return found;
    },
  };

  const scroller = new Scroller(box, root.querySelector(".rail"), source, isHex ? 1 : now.descriptor.pages);

  function learn(descriptor) {
    now.descriptor = descriptor;
    scroller.total = total(descriptor);
    for (const name of ["lines", "pages", "chars", "bytes"]) {
      const value = descriptor[name];
      for (const each of document.querySelectorAll(`[data-count=${name}]`)) each.textContent = grouped(value);
    }
  }

  // --- jumps

  async function jump(where, { push = true, align = "third" } = {}) {
    follower.stop();
    const epoch = scroller.leave();
    awaited = epoch;
    const found = await source.load({ ...where, side: "around" });
    if (awaited === epoch) awaited = null;
    if (!found || epoch !== scroller.epoch) return false; // gone elsewhere since
    mark(found.position);
    scroller.show(found.items, (inside) => rowOf(found, inside), align);
    target = isHex ? `O${rowOffset(found)}` : `L${found.line}`;
    if (push) remember(positionOf(found.position), true);
    return true;
  }

  function mark(position) {
    const range = position ? [position.first, position.last] : null;
    now.lines = position?.unit === "line" ? range : null;
    now.chars = position?.unit === "char" ? range : null;
    now.offset = position?.unit === "offset" ? position.first : undefined;
  }

  function rowOffset(found) {
    return Math.floor(found.at / 16) * 16;
  }

  function rowOf(found, inside) {
    if (isHex) return inside.querySelector("#O" + rowOffset(found));
    const marked = inside.querySelector("mark")?.closest(".row");
    if (marked) return marked;
    const page = inside.querySelector(`.page[data-page="${found.page}"]`);
    if (found.position?.unit === "page") return page;
    return page?.querySelector(`[data-line="${found.line}"]`) ?? page;
  }

  function positionOf(position) {
    if (!position) return {};
    const range = position.first === position.last ? position.first : `${position.first}-${position.last}`;
    return { [{ page: "page", line: "lines", char: "chars", offset: "offset" }[position.unit]]: range };
  }

  function searched() {
    return searcher?.query ?? {};
  }

  function remember(position, push) {
    const next = url({ ...searched(), ...position });
    if (next !== location.pathname + location.search) address(next, push);
  }

  // Shows another URL. The link to the data of this page is of the same part.
  function address(next, push) {
    history[push ? "pushState" : "replaceState"](null, "", next);
    linkData();
  }
  function linkData() {
    const link = document.getElementById("json");
    if (link) link.href = `${location.pathname}.json${location.search}`;
  }

  // After scrolling, the URL names the page, unless what was asked for is still to be seen.
  let resting = 0;
  scroller.onmove = () => {
    clearTimeout(resting);
    resting = setTimeout(settle, 250);
    follower.moved();
  };
  function settle() {
    if (awaited === scroller.epoch) return; // the URL may be that of the place to come
    // the row of a line of megabytes may be on another page than the characters that were asked for
    const shown = target && (box.querySelector("mark") ?? document.getElementById(target));
    if (shown && shown.offsetTop + shown.offsetHeight > box.scrollTop && shown.offsetTop < box.scrollTop + box.clientHeight) return;
    const { page } = scroller.place();
    target = null;
    if (scroller.atEnd && now.descriptor.state === "open") remember({}, false);
    else if (isHex) remember(page ? { offset: page * BLOCK_BYTES } : {}, false);
    else remember(page > 1 || now.descriptor.state === "open" ? { page } : {}, false);
  }
  scroller.onseek = () => {
    follower.stick = scroller.atEnd && now.descriptor.state === "open";
    follower.show();
  };

  async function restore() {
    linkData();
    const asked = new URLSearchParams(location.search);
    const hash = /^#L(\d+)(?:-L?(\d+))?$/.exec(location.hash);
    for (const name of ["lines", "chars", "offset"]) {
      if (asked.get(name)) return jump({ [name]: asked.get(name) }, { push: false });
    }
    if (hash) return jump({ lines: hash[2] ? `${hash[1]}-${hash[2]}` : hash[1] }, { push: false });
    if (asked.get("page")) return jump({ page: asked.get("page") }, { push: false, align: "start" });
    return scroller.seek(0);
  }
  addEventListener("popstate", restore);

  const go = document.getElementById("go");
  go.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!go.value.trim()) return;
    if (await jump({ go: go.value.trim() })) {
      go.value = "";
      box.focus({ preventScroll: true });
    }
  });

  box.addEventListener("click", async (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey) return;
    if (link.dataset.char) {
      event.preventDefault();
      await more(link);
      return;
    }
    if (!link.classList.contains("no") || link.closest(".hex")) return;
    event.preventDefault();
    const line = Number(link.closest(".row").dataset.line);
    const from = event.shiftKey && now.lines ? now.lines[0] : line;
    now.chars = null;
    now.lines = [Math.min(from, line), Math.max(from, line)];
    for (const row of box.querySelectorAll(".row")) {
      const number = Number(row.dataset.line);
      row.classList.toggle("on", now.lines[0] <= number && number <= now.lines[1]);
    }
    target = "L" + line;
    remember({ lines: now.lines[0] === now.lines[1] ? line : now.lines.join("-") }, false);
  });

  // More of a page that is larger than what is shown of one.
  async function more(link) {
    const page = link.closest(".page");
    const found = await source.load({ chars: link.dataset.char, side: "after", mark: marked(), more: 1 });
    if (found?.items[0]?.page !== Number(page.dataset.page)) return;
    link.closest(".left").replaceWith(...drawn(found.items[0]).childNodes);
    scroller.moved();
  }

  // --- how it is shown

  function toggled(name, change) {
    const link = document.getElementById(name);
    link?.addEventListener("click", (event) => {
      event.preventDefault();
      change(link);
      address(url({ ...searched(), ...positionOfUrl() }) + location.hash, false);
    });
    return link;
  }

  const wrap = toggled("wrap", (link) => {
    scroller.keeping(() => box.classList.toggle("wrap"));
    link.setAttribute("aria-pressed", String(box.classList.contains("wrap")));
  });
  toggled("raw", async (link) => {
    now.raw = !now.raw;
    const { page, part } = scroller.place();
    const found = await source.load({ index: page, side: "around" });
    if (!found) return;
    scroller.show(found.items, null);
    link.setAttribute("aria-pressed", String(now.raw));
    const shown = scroller.pages.find((each) => Number(each.dataset.page) === page);
    if (shown) box.scrollTop = shown.offsetTop + part * shown.offsetHeight;
    follower.close(); // what it draws is raw now, too, or no more
    follower.listen();
  });

  document.getElementById("copy-link").addEventListener("click", () => copyLink(box, tell));

  // --- search

  const searchForm = document.getElementById("search")?.form;
  const searcher = searchForm && !isHex
    ? new Searcher({
        form: searchForm,
        panel: document.getElementById("hits"),
        get,
        jump: (hit) => jump(hit.chars === "0-0" ? { lines: hit.line } : { chars: hit.chars }),
        changed: ticks,
      })
    : null;
  searchForm?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (document.activeElement === searchForm.q) box.focus({ preventScroll: true });
    searcher.start().then(() => remember(positionOfUrl(), false));
  });

  function positionOfUrl() {
    const asked = new URLSearchParams(location.search);
    const kept = {};
    for (const each of ["page", "lines", "chars", "offset"]) if (asked.get(each)) kept[each] = asked.get(each);
    return kept;
  }

  // --- what the agent has read, and marks on the rail

  let read = [];
  async function loadReading() {
    const found = isHex ? null : await get("reading.json", {});
    if (!found || found.error || !found.length) return;
    read = found.pages;
    showReading(found, (page) => url({ ...searched(), page }));
    ticks();
  }
  function ticks() {
    drawMarks(root.querySelector(".rail canvas"), now.descriptor, read, searcher?.hits ?? []);
  }
  new ResizeObserver(ticks).observe(root.querySelector(".rail"));

  // --- a picture that is none

  const picture = root.querySelector(".picture img");
  function explainPicture() {
    const said = element("p", "", `These bytes are no picture that can be shown, although their type is ${now.descriptor.media_type}: they may be damaged or incomplete.`);
    picture.closest(".picture")?.replaceChildren(said);
  }
  if (picture?.complete && !picture.naturalWidth) explainPicture();
  picture?.addEventListener("error", explainPicture);

  // --- live

  const follower = new Follower({
    scroller,
    box,
    now,
    tell,
    learn,
    open: () => new EventSource(url({ mark: marked() }, "follow.live")),
    grown: (part) => [part.items, total(part.descriptor)],
  });

  // --- keys

  const line = () => 3 * parseFloat(getComputedStyle(box).lineHeight || "20");
  const KEYS = {
    j: () => { follower.pushes(); box.scrollBy(0, line()); },
    k: () => { follower.stop(); box.scrollBy(0, -line()); },
    ArrowDown: () => { follower.pushes(); box.scrollBy(0, line()); },
    ArrowUp: () => { follower.stop(); box.scrollBy(0, -line()); },
    PageDown: () => { follower.pushes(); box.scrollBy(0, box.clientHeight - line()); },
    PageUp: () => { follower.stop(); box.scrollBy(0, line() - box.clientHeight); },
    " ": () => { follower.pushes(); box.scrollBy(0, box.clientHeight - line()); },
    g: () => { follower.stop(); scroller.seek(0); },
    Home: () => { follower.stop(); scroller.seek(0); },
    G: () => scroller.seek(1),
    End: () => scroller.seek(1),
    n: () => searcher?.step(1),
    N: () => searcher?.step(-1),
    w: () => wrap?.click(),
    y: () => copyLink(box, tell),
    ":": () => { go.focus(); go.select(); },
    Escape: () => searcher?.running && searcher.stop("cancelled"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = event.target;
    if (at.closest?.("input, select, textarea")) {
      if (event.key === "Escape") box.focus({ preventScroll: true });
      return;
    }
    if ((event.key === " " || event.key === "Enter") && at.closest?.("a, button, summary")) {
      if (event.key === " " && at.matches("a[role=button]")) {
        event.preventDefault();
        at.click();
      }
      return;
    }
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // --- begin

  root.classList.add("scripted");
  learn(now.descriptor);
  for (const page of box.children) if (page.dataset.page === undefined) page.remove();
  const asked = new URLSearchParams(location.search);
  const named = ["page", "lines", "chars", "offset"].some((name) => asked.get(name));
  if (asked.get("go")) address(url(positionOf(JSON.parse(root.dataset.position))), false);
  mark(JSON.parse(root.dataset.position));
  if (!named && /^#L\d/.test(location.hash)) restore();
  else if (now.descriptor.state === "open" && !named) {
    follower.stick = true;
    box.scrollTop = box.scrollHeight;
  } else if (named) {
    const row = box.querySelector("mark")?.closest(".row") ?? box.querySelector(".on");
    target = row?.id ?? null;
    if (row) scroller.scrollTo(row);
    // with the pages around it there is room to show it where the eye looks
    const shown = row?.querySelector("mark") ?? row;
    if (shown && Math.abs(shown.offsetTop - box.scrollTop - box.clientHeight / 3) > 60) restore();
  }
  scroller.moved();
  follower.show();
  follower.listen();
  if (searcher && asked.get("q")) searcher.start(!named);
  globalThis.descriptor.scroller = scroller;
  loadReading();
})();
