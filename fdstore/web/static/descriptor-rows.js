// Rows of text and of hex dumps as elements. What a screen would hide or obey is made visible, as in
// fdstore/web/descriptor_rows.py. Content enters the document as text alone, never as markup.
"use strict";
globalThis.descriptor = {};
(() => {
  // eslint-disable-next-line no-control-regex
  const HIDDEN = /(\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|\x1b[ -/]?[0-Z\\-~])|([\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+)|([\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+)|([\u00ad\u034f\u115f\u1160\u180e\u200b\u2060-\u2064\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]+)/gu;
  const ONE = new RegExp(HIDDEN.source, "u");
  const KINDS = ["ansi", "ctl", "bidi", "wide"];
  const NAMES = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");
  const ROW_BYTES = 16;

  function visible(char) {
    const code = char.codePointAt(0);
    if (code < 0x20) return NAMES[code];
    if (code === 0x7f) return "DEL";
    if (code < 0x7f) return char;
    return ONE.test(char) ? "U+" + code.toString(16).toUpperCase().padStart(4, "0") : char;
  }

  function segments(text, raw) {
    if (raw) return text ? [["", text]] : [];
    const found = [];
    let at = 0;
    for (const hit of text.matchAll(HIDDEN)) {
      if (hit.index > at) found.push(["", text.slice(at, hit.index)]);
      const kind = KINDS[hit.slice(1).findIndex((group) => group !== undefined)];
      found.push([kind, Array.from(hit[0], visible).join("")]);
      at = hit.index + hit[0].length;
    }
    if (at < text.length) found.push(["", text.slice(at)]);
    return found;
  }

  // Numbers as the server writes them: thin spaces between groups of digits.
  const spaced = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function append(into, text, raw, more) {
    for (const [kind, shown] of segments(text, raw)) {
      const name = [kind, more].filter(Boolean).join(" ");
      into.append(name ? element(more ? "mark" : "i", name, shown) : shown);
    }
  }

  const SURROGATE = /[\ud800-\udfff]/;

  // Characters of the store are code points, those of scripts are UTF-16 units.
  function length(text) {
    return SURROGATE.test(text) ? Array.from(text).length : text.length;
  }

  function cut(text, first, last) {
    if (!SURROGATE.test(text)) return [text.slice(0, first), text.slice(first, last), text.slice(last)];
    const all = Array.from(text);
    return [all.slice(0, first).join(""), all.slice(first, last).join(""), all.slice(last).join("")];
  }

  function fill(into, text, char, options) {
    const range = options.chars;
    if (!range || range[1] < char || range[0] > char + text.length) {
      append(into, text, options.raw, "");
      return;
    }
    const first = Math.max(range[0] - char, 0);
    const [before, marked, after] = cut(text, first, Math.max(range[1] - char + 1, first));
    append(into, before, options.raw, "");
    append(into, marked, options.raw, "mark");
    append(into, after, options.raw, "");
  }

  function textRow(number, line, text, char, options) {
    const on = options.lines && options.lines[0] <= line && line <= options.lines[1];
    const row = element("div", on ? "row on" : "row");
    row.dataset.line = line;
    if (number === null) {
      row.append(element("span", "no more", "↳"));
    } else {
      const link = element("a", "no", String(number));
      link.href = options.base + number + "#L" + number;
      row.id = "L" + number;
      row.append(link);
    }
    const shown = element("span", "tx");
    fill(shown, text, char, options);
    row.append(shown);
    return row;
  }

  function fillText(into, page, options) {
    const lines = page.text.split("\n");
    if (page.text.endsWith("\n")) lines.pop();
    let char = page.first_char;
    lines.forEach((text, i) => {
      const line = page.first_line + i;
      into.append(textRow(i === 0 && page.continued ? null : line, line, text, char, options));
      char += length(text) + 1;
    });
  }

  function left(into, count, char, options, isAfter) {
    if (!count) return;
    const row = element("p", "left");
    row.append(spaced(count) + " more characters of this page. ");
    const link = element("a", "", "Show more");
    link.href = options.url({ chars: char });
    if (isAfter) link.dataset.char = char; // before it: another place, not more of this one
    row.append(link);
    into.append(row);
  }

  function drawText(page, shown) {
    // the URL of a line ends in its number
    const options = { url: shown.url, raw: shown.raw, lines: shown.lines, chars: shown.chars, base: shown.url({ lines: 0 }).slice(0, -1) };
    const block = element("div", "page");
    block.dataset.page = page.page;
    left(block, page.left_before, Math.max(1, page.first_char - Math.min(page.left_before, 60000)), options, false);
    fillText(block, page, options);
    left(block, page.left_after, page.first_char + length(page.text), options, true);
    return block;
  }

  function drawBytes(block, options) {
    const made = element("div", "page");
    made.dataset.page = block.page;
    for (let at = 0; at < block.hex.length; at += 2 * ROW_BYTES) {
      const pairs = block.hex.slice(at, at + 2 * ROW_BYTES).match(/../g);
      const offset = block.offset + at / 2;
      const on = options.offset !== undefined && offset <= options.offset && options.offset < offset + ROW_BYTES;
      const row = element("div", on ? "row on" : "row");
      row.id = "O" + offset;
      const link = element("a", "no", offset.toString(16).padStart(8, "0"));
      link.href = options.url({ offset }) + "#O" + offset;
      const codes = pairs.map((pair) => parseInt(pair, 16));
      const ascii = codes.map((code) => (code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ".")).join("");
      row.append(link, element("span", "tx", pairs.slice(0, 8).join(" ") + "  " + pairs.slice(8).join(" ")), element("span", "asc", ascii));
      made.append(row);
    }
    return made;
  }

  Object.assign(globalThis.descriptor, { element, spaced, segments, append, cut, length, fillText, drawText, drawBytes });
})();
