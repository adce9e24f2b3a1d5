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
    if (answer.ok) showPage(text, url);
    else location.assign(url);
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
