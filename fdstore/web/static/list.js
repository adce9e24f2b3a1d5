// What JavaScript adds to the list of trees: its filters apply while they are changed. Uses live.js.
"use strict";

const AFTER_TYPING_MS = 200;

function filterAtOnce(form) {
  let waiting = 0;
  let asked = 0;
  const show = async () => {
    const fields = [...new FormData(form)].filter(([, value]) => value);
    const url = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
    const number = ++asked;
    const answer = await fetch(url);
    const text = await answer.text();
    if (number !== asked) return; // another filter was chosen since
    if (answer.redirected) return; // what is typed is an id: Enter leads to its page
    const next = new DOMParser().parseFromString(text, "text/html");
    const made = next.getElementById("main");
    if (!answer.ok || !made) {
      location.assign(url);
      return;
    }
    mergeChildren(main, made);
    for (const name of ["live", "seen", "now"]) main.dataset[name] = made.dataset[name];
    document.getElementById("json").href = next.getElementById("json").getAttribute("href");
    history.replaceState(null, "", url);
    main.dispatchEvent(new CustomEvent("updated", { bubbles: true }));
    main.dispatchEvent(new CustomEvent("moved"));
  };
  // the field that has the focus is not brought up to date, so nothing that is typed meanwhile is lost
  const later = (milliseconds) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => show().catch(() => form.submit()), milliseconds);
  };
  main.addEventListener("input", (event) => {
    if (event.target.closest("form.filters")) later(event.target.matches("select") ? 0 : AFTER_TYPING_MS);
  });
}

document.documentElement.classList.add("scripted");
filterAtOnce(document.querySelector("form.filters"));
