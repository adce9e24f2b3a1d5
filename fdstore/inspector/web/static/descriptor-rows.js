// What the scripts of a descriptor's page share. Rows come from the server as HTML in which every text is escaped,
// see templates/descriptor_rows.html.
"use strict";
globalThis.descriptor = {};
(() => {
  // Numbers as the server writes them: commas between groups of digits.
  const grouped = (number) => number.toLocaleString("en");

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The element of an item that the server has drawn.
  function drawn(item) {
    const made = document.createElement("template");
    made.innerHTML = item.html;
    return made.content.firstElementChild;
  }

  Object.assign(globalThis.descriptor, { element, grouped, drawn });
})();
