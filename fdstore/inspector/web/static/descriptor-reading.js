// What the process's agent has read of a text: in words beside it, and as marks on the rail, where the hits of a
// search are marked too.
"use strict";
(() => {
  const { element, grouped } = globalThis.descriptor;
  const SHOWN = 12;

  function showReading(found, pageUrl) {
    const section = document.getElementById("reading");
    const meter = section.querySelector("meter");
    const sub = section.querySelector(".sub");
    meter.max = Math.max(1, found.total);
    meter.value = found.count;
    const shown = found.pages.slice(0, SHOWN);
    const unit = found.total === 1 ? "page" : "pages";
    sub.textContent = `${grouped(found.count)} of ${grouped(found.total)} ${unit}${shown.length ? ": " : ""}`;
    shown.forEach(([first, last], i) => {
      const link = element("a", "", first === last ? String(first) : `${first}–${last}`);
      link.href = pageUrl(first);
      sub.append(i ? ", " : "", link);
    });
    if (found.pages.length > SHOWN) sub.append(" …");
    if (found.examined < found.length) sub.append(` (in its last ${grouped(found.examined)} records)`);
    if (found.made_by) {
      const made = section.querySelector(".made");
      const link = made.querySelector("a");
      link.href = section.dataset.record + found.made_by.position;
      link.textContent = found.made_by.tool;
      made.hidden = false;
    }
    section.hidden = false;
  }

  function drawMarks(canvas, descriptor, read, hits) {
    const { width, height } = canvas.getBoundingClientRect();
    if (!width) return;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const each = height / Math.max(1, descriptor.pages);
    context.fillStyle = style.getPropertyValue("--read");
    for (const [first, last] of read) context.fillRect(0, (first - 1) * each, 3, Math.max(1.5, (last - first + 1) * each));
    context.fillStyle = style.getPropertyValue("color");
    for (const hit of hits) {
      const top = (hit.line_start / Math.max(1, descriptor.chars)) * height;
      context.fillRect(2, Math.min(height - 2, top), width - 4, 2);
    }
  }

  Object.assign(globalThis.descriptor, { showReading, drawMarks });
})();
