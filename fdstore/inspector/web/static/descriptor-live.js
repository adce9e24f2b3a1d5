// Follow a stream: its totals and its end, as the server sends them. The window stays at the end while `stick` is
// set: until the person scrolls up, and again from when the person scrolls down to the end.
"use strict";
(() => {
  const PUSHED_MS = 700;

  class Follower {
    // `open()` returns the source of events; `grown(part)` the items of its end, and how many there are in all.
    constructor({ scroller, box, now, tell, learn, open, grown }) {
      Object.assign(this, { scroller, box, now, tell, learn, open, grown });
      this.stick = false;
      this.pushed = -1e9;
      this.button = document.getElementById("follow") ?? document.createElement("button");
      this.button.addEventListener("click", () => (this.stick ? this.stop() : scroller.seek(1)));
      box.addEventListener("wheel", (event) => (event.deltaY < 0 ? this.stop() : this.pushes()), { passive: true });
      box.addEventListener("touchmove", () => (scroller.atEnd ? this.pushes() : this.stop()), { passive: true });
      document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.listen()));
    }

    get isOpen() {
      return this.now.descriptor.state === "open";
    }

    show() {
      this.button.setAttribute("aria-pressed", String(this.stick));
    }

    stop() {
      if (!this.stick) return;
      this.stick = false;
      this.show();
    }

    pushes() {
      this.pushed = performance.now();
    }

    moved() {
      if (this.stick || !this.isOpen || !this.scroller.atEnd || performance.now() - this.pushed > PUSHED_MS) return;
      this.stick = true;
      this.show();
    }

    close() {
      this.events?.close();
      this.events = null;
    }

    listen() {
      if (this.events || !this.isOpen || document.hidden) return;
      const events = (this.events = this.open());
      const on = (name, act) => events.addEventListener(name, (event) => act(JSON.parse(event.data)));
      on("part", (part) => this.grow(part));
      on("end", (descriptor) => this.ended(descriptor));
      on("outage", (text) => {
        this.isAway = true;
        this.tell(text, 0);
      });
      on("gone", (text) => {
        this.tell(text, 0);
        this.close();
      });
    }

    grow(part) {
      if (this.isAway) this.tell("");
      this.isAway = false;
      this.learn(part.descriptor);
      this.scroller.grow(...this.grown(part), this.stick || this.scroller.atEnd);
    }

    ended(descriptor) {
      this.close();
      this.learn(descriptor);
      for (const state of document.querySelectorAll("[data-state] .state")) {
        state.className = `state is-${descriptor.state}`;
        state.textContent = descriptor.state;
      }
      const code = descriptor.exit_code ?? null;
      const words = [descriptor.state, code === null ? "" : `exit code ${code}`, descriptor.reason ?? ""];
      this.tell(`The stream has ended: ${words.filter(Boolean).join(", ")}.`, 0);
      this.button.hidden = true;
      this.stop();
    }
  }

  globalThis.descriptor.Follower = Follower;
})();
