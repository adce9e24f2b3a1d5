// A link to a line, to be passed on: to what is marked, or else to the first line that is seen.
"use strict";
(() => {
  const POSITIONS = { lines: "line", chars: "characters", offset: "offset" };

  // The address, and what it names.
  function linkTo(box) {
    const asked = new URLSearchParams(location.search);
    const named = Object.keys(POSITIONS).find((name) => asked.get(name));
    if (named) {
      const range = asked.get(named);
      const word = named === "lines" && range.includes("-") ? "lines" : POSITIONS[named];
      return { url: location.href, what: `${word} ${range}` };
    }
    const top = box.getBoundingClientRect().top;
    const seen = (each) => each.getBoundingClientRect().bottom > top + 4;
    const number = [...box.querySelectorAll(".row a.no")].find((each) => seen(each.closest(".row")));
    if (!number) return { url: location.href, what: "this page" };
    return { url: number.href, what: `${box.classList.contains("hex") ? "offset" : "line"} ${number.textContent}` };
  }

  // Without a clipboard, as over HTTP from another machine, a field of the page is copied.
  async function copy(text) {
    if (navigator.clipboard) {
      try {
        await navigator.clipboard.writeText(text);
        return true;
      } catch {
        // not permitted: the older way may be
      }
    }
    const field = globalThis.descriptor.element("textarea", "hidden");
    const before = document.activeElement;
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus({ preventScroll: true });
    return done;
  }

  async function copyLink(box, tell) {
    const { url, what } = linkTo(box);
    tell((await copy(url)) ? `The link to ${what} is copied` : `The link to ${what}: ${url}`);
  }

  Object.assign(globalThis.descriptor, { copyLink });
})();
