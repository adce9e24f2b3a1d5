// Scroll through a content of any size. A few pages around the window are in the document; others are loaded
// when they come near, and removed when they are far. No element is as high as the content: browsers cap
// heights. The native scroll bar, which would show the loaded pages alone, is replaced by a rail: its length is
// the whole content, by pages.
"use strict";
(() => {
  const AHEAD = 1.5; // load what is nearer to the window than this, in heights of the window
  const KEPT = 4; // remove what is farther
  const MIN_THUMB = 28;

  class Scroller {
    // `source.load(parameters)` returns the items of a part; `source.draw(item)` returns the element of one.
    constructor(box, rail, source, total) {
      this.box = box;
      this.rail = rail;
      this.thumb = rail.querySelector(".thumb");
      this.tip = rail.querySelector(".tip");
      this.source = source;
      this.total = Math.max(1, total);
      this.onmove = () => {};
      this.onseek = () => {};
      this.epoch = 0; // loads of an earlier place are dropped
      this.loading = { before: false, after: false };
      this.queued = null;
      box.addEventListener("scroll", () => this.moved(), { passive: true });
      box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      for (const name of ["touchstart", "touchmove"]) box.addEventListener(name, () => (this.touched = performance.now()), { passive: true });
      new ResizeObserver(() => this.moved()).observe(box);
      this.dragging();
      this.moved();
    }

    get pages() {
      return Array.from(this.box.querySelectorAll(":scope > .page"));
    }
    get first() {
      return Number(this.box.firstElementChild?.dataset.page ?? 1);
    }
    get last() {
      return Number(this.box.lastElementChild?.dataset.page ?? 0);
    }
    get atEnd() {
      const { scrollTop, scrollHeight, clientHeight } = this.box;
      return this.last >= this.total && scrollHeight - scrollTop - clientHeight < 24;
    }

    // Where the top of the window is: the page, and how much of it is above, from 0 to 1.
    place() {
      const top = this.box.scrollTop;
      for (const page of this.pages) {
        const height = page.offsetHeight || 1;
        if (page.offsetTop + height > top + 1) {
          return { page: Number(page.dataset.page), part: Math.max(0, (top - page.offsetTop) / height), element: page };
        }
      }
      return { page: this.last || 1, part: 0, element: this.box.lastElementChild };
    }

    // The first row in the window, and its distance from the top.
    anchor() {
      const top = this.box.scrollTop;
      const { element } = this.place();
      const rows = element ? Array.from(element.children) : [];
      const row = rows.find((each) => each.offsetTop + each.offsetHeight > top + 1) ?? rows[0];
      return row ? { row, above: row.offsetTop - top } : null;
    }

    keeping(change) {
      const kept = this.anchor();
      change();
      if (kept) this.box.scrollTop = kept.row.offsetTop - kept.above;
      this.moved();
    }

    moved() {
      this.scrolled = performance.now();
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.drawRail();
        this.fill();
        this.onmove();
      });
    }

    fill() {
      const { scrollTop, scrollHeight, clientHeight } = this.box;
      if (!this.box.firstElementChild) return;
      if (scrollTop < AHEAD * clientHeight && this.first > this.source.least) this.more("before");
      if (scrollHeight - scrollTop - clientHeight < AHEAD * clientHeight && this.last < this.total) this.more("after");
    }

    // The browser animates towards a fixed place, which would be another one after pages were put before it. So
    // wheels move at once, and while a finger's swing lasts, no page is put before the window.
    wheel(event) {
      if (event.ctrlKey || event.defaultPrevented) return;
      const { box } = this;
      const unit = [1, 20, box.clientHeight][event.deltaMode] ?? 1;
      const [x, y] = event.shiftKey && !event.deltaX ? [event.deltaY * unit, 0] : [event.deltaX * unit, event.deltaY * unit];
      const before = [box.scrollLeft, box.scrollTop];
      box.scrollBy({ left: x, top: y, behavior: "instant" });
      const isEdge = y < 0 ? this.first <= this.source.least : this.last >= this.total;
      if (box.scrollLeft !== before[0] || box.scrollTop !== before[1] || !isEdge) event.preventDefault();
    }

    calm() {
      return new Promise((done) => {
        const look = () => (performance.now() - Math.max(this.touched ?? -1e9, this.scrolled ?? -1e9) > 150 ? done() : setTimeout(look, 40));
        if (performance.now() - (this.touched ?? -1e9) > 3000) done();
        else look();
      });
    }

    async more(side) {
      if (this.loading[side]) return;
      this.loading[side] = true;
      const epoch = this.epoch;
      const index = side === "after" ? this.last + 1 : this.first - 1;
      const found = await this.source.load({ index, side });
      if (side === "before") await this.calm();
      this.loading[side] = false;
      if (!found || epoch !== this.epoch) return;
      if (side === "after") {
        const news = found.items.filter((item) => item.page > this.last);
        if (!news.length) return;
        this.box.append(...news.map(this.source.draw));
        this.trim("before");
      } else {
        const news = found.items.filter((item) => item.page < this.first);
        if (!news.length) return;
        this.keeping(() => this.box.prepend(...news.map(this.source.draw)));
        this.trim("after");
      }
      this.moved();
    }

    trim(side) {
      const { clientHeight } = this.box;
      if (side === "after") {
        const limit = () => this.box.scrollTop + (KEPT + 1) * clientHeight;
        while (this.box.childElementCount > 2 && this.box.lastElementChild.offsetTop > limit()) this.box.lastElementChild.remove();
        return;
      }
      while (this.box.childElementCount > 2) {
        const second = this.box.children[1];
        if (second.offsetTop > this.box.scrollTop - KEPT * clientHeight) return;
        // computed before: a box that becomes shorter than its place is scrolled by the browser
        const place = this.box.scrollTop - second.offsetTop + this.box.firstElementChild.offsetTop;
        this.box.firstElementChild.remove();
        this.box.scrollTop = place;
      }
    }

    // Drop what is being loaded and where the rail was to go next. Returns the number of the next place.
    leave() {
      this.queued = null;
      this.epoch += 1;
      return this.epoch;
    }

    // Show other pages. `target(box)` returns the element to scroll to, or null for the start.
    show(items, target, align = "third") {
      this.epoch += 1;
      this.loading = { before: false, after: false };
      this.box.replaceChildren(...items.map(this.source.draw));
      this.scrollTo(target ? target(this.box) : null, align);
    }

    scrollTo(element, align = "third") {
      if (!element) this.box.scrollTop = 0;
      else if (align === "end") this.box.scrollTop = this.box.scrollHeight;
      else {
        const mark = element.querySelector("mark");
        const shown = mark ?? element; // a row may be higher than the window
        const led = align === "third" ? Math.max(0, Math.min(this.box.clientHeight / 3, this.box.clientHeight - shown.offsetHeight)) : 0;
        this.box.scrollTop = shown.offsetTop - led;
        if (mark && !this.box.classList.contains("wrap")) {
          const end = mark.offsetLeft + mark.offsetWidth;
          this.box.scrollLeft = end > this.box.clientWidth ? mark.offsetLeft - this.box.clientWidth / 3 : 0;
        } else this.box.scrollLeft = 0;
      }
      this.moved();
    }

    // Go to a share of the content, from 0 to 1; one load at a time, the newest place wins.
    async seek(share) {
      this.queued = Math.max(0, Math.min(1, share));
      if (this.seeking) return;
      this.seeking = true;
      while (this.queued !== null) {
        const at = this.queued;
        this.queued = null;
        await this.seekNow(at);
      }
      this.seeking = false;
    }

    async seekNow(share) {
      const least = this.source.least;
      const count = this.total - least + 1;
      const exact = share * Math.max(count - this.visiblePages(), 0);
      const index = Math.min(this.total, least + Math.floor(exact));
      const part = share >= 1 ? 1 : exact - Math.floor(exact);
      const epoch = (this.epoch += 1); // also if nothing is loaded: the answer to an earlier jump comes too late
      let page = this.pages.find((each) => Number(each.dataset.page) === index);
      if (!page || (share >= 1 && this.last < this.total) || (share <= 0 && this.first > least)) {
        const found = await this.source.load({ index, side: share >= 1 ? "before" : "around" });
        if (!found || epoch !== this.epoch) return;
        this.show(found.items, null);
        page = this.pages.find((each) => Number(each.dataset.page) === index);
      }
      if (share >= 1) this.box.scrollTop = this.box.scrollHeight;
      else if (page) this.box.scrollTop = page.offsetTop + part * page.offsetHeight;
      this.moved();
      this.onseek();
    }

    // The end of a content that grows.
    grow(items, total, stick) {
      this.total = Math.max(1, total);
      const news = items.filter((item) => item.page > this.last || (item.page === this.last && stick));
      if (items.length && (stick || this.last >= items[0].page)) {
        if (items[0].page > this.last + 1 || !this.box.childElementCount) {
          this.epoch += 1;
          this.box.replaceChildren(...items.map(this.source.draw));
        } else {
          for (const item of items.filter((each) => each.page >= this.last)) {
            const made = this.source.draw(item);
            if (item.page === this.last) this.box.lastElementChild.replaceWith(made);
            else this.box.append(made);
          }
        }
        if (news.length) this.trim("before");
        if (stick) this.box.scrollTop = this.box.scrollHeight;
      }
      this.moved();
    }

    // --- the rail

    get room() {
      return this.rail.clientHeight - this.thumbHeight;
    }

    drawRail() {
      const least = this.source.least;
      const count = this.total - least + 1;
      const { page, part } = this.place();
      const height = this.rail.clientHeight;
      const shown = this.visiblePages();
      this.thumbHeight = Math.min(height, Math.max(MIN_THUMB, (height * shown) / count));
      const furthest = Math.max(count - shown, 1e-9);
      this.share = this.atEnd ? 1 : Math.max(0, Math.min(1, (page - least + part) / furthest));
      if (this.first <= least && this.box.scrollTop < 1) this.share = 0;
      const all = this.first <= least && this.last >= this.total && this.box.scrollHeight <= this.box.clientHeight + 1;
      this.rail.classList.toggle("idle", all);
      if (!this.grabbed) this.moveThumb(this.share);
    }

    visiblePages() {
      const { scrollTop, clientHeight } = this.box;
      let shown = 0;
      for (const page of this.pages) {
        const height = page.offsetHeight || 1;
        const inside = Math.min(page.offsetTop + height, scrollTop + clientHeight) - Math.max(page.offsetTop, scrollTop);
        if (inside > 0) shown += inside / height;
      }
      return shown || 1;
    }

    moveThumb(share) {
      this.thumb.style.height = `${this.thumbHeight}px`;
      this.thumb.style.transform = `translateY(${share * this.room}px)`;
    }

    dragging() {
      const { rail, thumb } = this;
      rail.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        rail.setPointerCapture(event.pointerId);
        const inThumb = event.clientY - thumb.getBoundingClientRect().top;
        const onThumb = inThumb >= 0 && inThumb <= this.thumbHeight;
        this.grabbed = { at: onThumb ? inThumb : this.thumbHeight / 2 };
        rail.classList.add("grabbed");
        if (!onThumb) this.drag(event);
      });
      rail.addEventListener("pointermove", (event) => this.grabbed && this.drag(event));
      const release = () => {
        this.grabbed = null;
        rail.classList.remove("grabbed");
        this.moved();
      };
      rail.addEventListener("pointerup", release);
      rail.addEventListener("pointercancel", release);
      rail.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }

    drag(event) {
      const top = event.clientY - this.rail.getBoundingClientRect().top - this.grabbed.at;
      const share = this.room > 0 ? Math.max(0, Math.min(1, top / this.room)) : 0;
      this.moveThumb(share);
      this.tip.textContent = this.source.label(share);
      this.tip.style.transform = `translateY(${share * this.room}px)`;
      this.seek(share);
    }
  }

  globalThis.descriptor.Scroller = Scroller;
})();
