// Search in steps: each request searches a few megabytes, and hits are shown as they come. Nothing is searched
// that nobody waits for: the next step is requested by the page that shows it, until there are enough hits. Then
// all lines that match are counted at once.
"use strict";
(() => {
  const { grouped, drawn } = globalThis.descriptor;
  const AT_A_TIME = 50;

  class Searcher {
    // `jump(hit, index)` shows a hit in the text; `get(part, parameters, signal)` requests data.
    constructor({ form, panel, get, jump, changed }) {
      Object.assign(this, { form, panel, get, jump, changed });
      this.list = panel.querySelector("ol");
      this.summary = panel.querySelector(".summary");
      this.progress = panel.querySelector("progress");
      this.cancel = panel.querySelector("button.cancel");
      this.again = panel.querySelector("a.more");
      this.hits = [];
      this.current = -1;
      this.cancel.addEventListener("click", () => this.stop("cancelled"));
      this.again.addEventListener("click", (event) => {
        event.preventDefault();
        this.run();
      });
      panel.querySelector(".close").addEventListener("click", (event) => {
        event.preventDefault();
        this.clear();
      });
      this.list.addEventListener("click", (event) => {
        const item = event.target.closest("li");
        if (!item || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.go(Number(item.dataset.index));
      });
    }

    get running() {
      return Boolean(this.abort);
    }

    values() {
      const data = new FormData(this.form);
      const named = { q: data.get("q") ?? "" };
      for (const name of ["re", "case"]) if (data.get(name)) named[name] = "1";
      if (Number(data.get("context"))) named.context = data.get("context");
      return named;
    }

    start(first = true) {
      this.stop();
      this.query = this.values();
      this.hits = [];
      this.current = -1;
      this.next = 1;
      this.seen = new Set();
      this.counted = null;
      this.list.replaceChildren();
      this.toFirst = first;
      if (!this.query.q) {
        this.clear();
        return Promise.resolve();
      }
      this.panel.hidden = false;
      this.changed();
      return this.run();
    }

    clear() {
      this.stop();
      this.hits = [];
      this.query = null;
      this.list.replaceChildren();
      this.panel.hidden = true;
      this.form.q.value = "";
      this.changed();
    }

    stop(word) {
      this.abort?.abort();
      this.abort = null;
      this.counting?.abort();
      this.progress.hidden = true;
      this.cancel.hidden = true;
      if (word) this.tell(word);
    }

    async run() {
      this.stop();
      const abort = (this.abort = new AbortController());
      const wanted = this.hits.length + AT_A_TIME;
      this.again.hidden = true;
      this.progress.hidden = false;
      this.cancel.hidden = false;
      this.tell("");
      while (this.next !== null && this.hits.length < wanted) {
        const parameters = { ...this.query, from: this.next, limit: Math.min(AT_A_TIME, wanted - this.hits.length) };
        const step = await this.get("search.json", parameters, abort.signal);
        if (abort.signal.aborted) return;
        if (!step || step.error) {
          this.stop(step?.error ?? "failed");
          this.again.hidden = Boolean(step?.error);
          return;
        }
        this.take(step);
      }
      this.stop();
      this.again.hidden = this.next === null;
      this.tell("");
      if (this.next !== null) this.count();
    }

    async count() {
      if (this.counted) return;
      const { query } = this;
      const abort = (this.counting = new AbortController());
      const counted = await this.get("count.json", query, abort.signal);
      if (!counted || counted.error || query !== this.query) return;
      this.counted = counted.lines === null ? counted.problem : `${grouped(counted.lines)} in all`;
      this.tell("");
    }

    take(step) {
      this.next = step.next_char;
      this.searched = step.searched;
      this.total = step.total;
      this.progress.max = Math.max(1, step.total);
      this.progress.value = step.searched;
      for (const hit of step.hits) {
        const known = `${hit.line}:${hit.chars}`;
        if (this.seen.has(known)) continue; // pieces of a very long line overlap
        this.seen.add(known);
        this.hits.push(hit);
        const item = drawn(hit);
        item.dataset.index = this.hits.length - 1;
        this.list.append(item);
      }
      this.tell("");
      this.changed();
      if (this.toFirst && this.hits.length) {
        this.toFirst = false;
        this.go(0);
      }
    }

    tell(word) {
      const count = this.hits.length;
      const share = this.total ? Math.floor((100 * this.searched) / this.total) : 100;
      const matches = `${grouped(count)} ${count === 1 ? "line" : "lines"}`;
      const isAll = this.next === null;
      const found = count ? `${matches}${isAll ? "" : " so far"}` : isAll && !word ? "Nothing found" : this.running ? "Searching" : "";
      const searched = isAll || !this.total ? "" : `${share} % searched`;
      this.summary.textContent = [found, searched, isAll ? "" : this.counted, word].filter(Boolean).join(" · ");
    }

    go(index) {
      if (!this.hits.length) return;
      const wrapped = (index + this.hits.length) % this.hits.length;
      this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
      this.current = wrapped;
      const item = this.list.children[wrapped];
      item.setAttribute("aria-current", "true");
      item.scrollIntoView({ block: "nearest" });
      this.jump(this.hits[wrapped]);
    }

    async step(by) {
      if (by > 0 && this.current === this.hits.length - 1 && this.next && !this.running) {
        const before = this.hits.length;
        await this.run();
        this.go(this.hits.length > before ? before : 0);
        return;
      }
      this.go(this.current + by);
    }
  }

  globalThis.descriptor.Searcher = Searcher;
})();
