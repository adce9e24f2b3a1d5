// Keys of the pane of a process page: j and k go to the next and the previous step, e and E to the next and the
// previous error. Each takes the link of a row, so it shows what a click shows, but the history of the browser has
// one entry for all. Uses live.js.
"use strict";

const STEP_KEYS = { j: [1, false], k: [-1, false], e: [1, true], E: [-1, true] };

// the row to which a key has gone, while its page is not here yet, and the request for that
let aim = null;
let request = null;

function rowBeside(rows, step, errors) {
  let at = rows.findIndex((each) => (aim ? each.dataset.step === aim : each.hasAttribute("aria-current")));
  if (at < 0 && step < 0) return undefined;
  do at += step;
  while (rows[at] && errors && !("error" in rows[at].dataset));
  return rows[at];
}

// The row of the chosen step is in sight within the list; the page stays where it is.
function showRow(row) {
  const list = document.getElementById("rows");
  if (!row) return;
  const fold = row.closest("details");
  if (fold) fold.open = true;
  const [inner, outer] = [row.getBoundingClientRect(), list.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - outer.height / 3;
}

async function goTo(row) {
  aim = row.dataset.step;
  if (request) request.abort();
  request = new AbortController();
  const { signal } = request;
  for (const each of document.querySelectorAll("#rows [aria-current]")) each.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  showRow(row);
  // what has the focus is not replaced, but what the pane shows is
  if (document.activeElement.closest("#pane")) document.activeElement.blur();
  let response, text;
  try {
    response = await fetch(row.href, { signal });
    text = await response.text();
  } catch {
    // a later key was pressed, or the inspector is away, which the live updates say
    if (!signal.aborted) aim = null;
    return;
  }
  if (!response.ok) {
    location.replace(row.href);
    return;
  }
  aim = null;
  showPage(text, row.href);
  document.getElementById("detail").scrollIntoView({ block: "nearest" });
}

// An entry that is linked to may be in a fold.
function openFolds() {
  const target = document.getElementById(location.hash.slice(1));
  const folds = [];
  for (let each = target; each; each = each.parentElement) if (each.matches("details:not([open])")) folds.push(each);
  for (const each of folds) each.open = true;
  if (folds.length) target.scrollIntoView();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(STEP_KEYS, event.key)) return;
  if (event.target instanceof Element && event.target.closest("input, select, textarea, [contenteditable]")) return;
  const row = rowBeside([...document.querySelectorAll("#rows a[data-step]")], ...STEP_KEYS[event.key]);
  if (!row) return;
  event.preventDefault();
  goTo(row);
});

window.addEventListener("hashchange", openFolds);
openFolds();
showRow(document.querySelector("#rows [aria-current]"));
