"""DOCX: paragraphs, one a line; headings as in Markdown, lists with dashes, rows of tables with bars, notes
at the end.

Deleted text of tracked changes is left out, inserted text is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import BinaryIO

from fdstore.files.documents.parts import Parts
from fdstore.files.documents.writing import TextWriter

SKIPPED = frozenset({"Fallback", "moveFrom", "pPrChange", "rPrChange", "instrText", "delText"})
"""Elements whose text is there a second time, or is none that people see."""

NOTES = ("footnotes", "endnotes")
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the text of a document. Raises `NoText`."""
    parts = Parts(file)
    main = parts.main("word/document.xml")
    related = {each.kind: each.target for each in parts.relations(main).values()}
    levels = _heading_levels(parts, related.get("styles", ""))
    _write_paragraphs(parts, main, writer, levels)
    for kind in NOTES:
        if related.get(kind, "") in parts:
            _write_paragraphs(parts, related[kind], writer, levels)


def _heading_levels(parts: Parts, path: str) -> dict[str, int]:
    """Return the levels of the styles of headings. Their ids are in the language of the program, their names
    are not."""
    levels: dict[str, int] = {}
    style = ""

    def start(name: str, given: Mapping[str, str]) -> None:
        nonlocal style
        if name == "style":
            style = given.get("styleId", "")
        elif name == "name" and style:
            if heading := _HEADING.fullmatch(given.get("val", "")):
                levels[style] = int(heading[1])
            elif given.get("val", "").lower() == "title":
                levels[style] = 1
            style = ""

    if path in parts:
        parts.parse(path, start)
    return levels


class Paragraphs:
    """Text of paragraphs and tables from events of XML, as Word and PowerPoint have them. `note`: what stands
    before the next paragraph."""

    def __init__(self, writer: TextWriter, levels: Mapping[str, int]) -> None:
        self._writer, self._levels = writer, levels
        self._open: list[list[str]] = []  # paragraphs, one may hold others
        self._prefixes: list[str] = []
        self._rows: list[list[str]] = []  # rows of tables, with their cells
        self._skipped = self._properties = 0
        self._is_text = False
        self.note = ""

    def start(self, name: str, given: Mapping[str, str]) -> None:
        """Begin an element."""
        if name in SKIPPED or self._skipped:
            self._skipped += 1
        elif self._properties or name in ("pPr", "rPr", "tblPr", "sectPr"):
            self._properties += 1
            self._property(name, given)
        elif name == "p":
            self._open.append([])
            self._prefixes.append("")
        elif name == "tr":
            self._rows.append([])
        elif name == "tc" and self._rows:
            self._rows[-1].append("")
        elif self._open:
            self._in_paragraph(name, given)

    def _property(self, name: str, given: Mapping[str, str]) -> None:
        if not self._prefixes:
            return
        if name == "pStyle" and (level := self._levels.get(given.get("val", ""))):
            self._prefixes[-1] = "#" * level + " "
        elif name == "numPr" and not self._prefixes[-1]:
            self._prefixes[-1] = "- "

    def _in_paragraph(self, name: str, given: Mapping[str, str]) -> None:
        match name:
            case "t":
                self._is_text = True
            case "tab" | "ptab":
                self._open[-1].append("\t")
            case "br" | "cr":
                self._open[-1].append("\n")
            case "noBreakHyphen":
                self._open[-1].append("-")
            case "footnoteReference" | "endnoteReference":
                self._open[-1].append(f"[^{name[0]}{given.get('id', '')}]")

    def text(self, text: str) -> None:
        """Take text of the element that is open."""
        if self._is_text and self._open and not self._skipped:
            self._open[-1].append(text)

    def end(self, name: str) -> None:
        """End an element."""
        if self._skipped:
            self._skipped -= 1
        elif self._properties:
            self._properties -= 1
        elif name == "t":
            self._is_text = False
        elif name == "p" and self._open:
            self._take("".join(self._open.pop()), self._prefixes.pop())
        elif name == "tr" and self._rows:
            row = " | ".join(self._rows.pop())
            self._take(row if row.strip(" |") else "", "")

    def _take(self, text: str, prefix: str) -> None:
        """Take a paragraph or a row: into the cell that it is in, else as a line."""
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] = " ".join(filter(None, [self._rows[-1][-1], *text.split()]))
        elif text.strip():
            if prefix.startswith("#"):
                self._writer.blank()
                self._writer.text(prefix + " ".join(text.split()))
                self._writer.blank()
            else:
                self._writer.text(f"{prefix}{self.note}{text}")
            self.note = ""


def _write_paragraphs(parts: Parts, path: str, writer: TextWriter, levels: Mapping[str, int]) -> None:
    paragraphs = Paragraphs(writer, levels)
    depth = 0

    def start(name: str, given: Mapping[str, str]) -> None:
        nonlocal depth
        if name in ("footnote", "endnote"):  # those with a type are the lines above the notes
            depth = 1 if "type" in given else 0
            paragraphs.note = f"[^{name[0]}{given.get('id', '')}]: "
        if not depth:
            paragraphs.start(name, given)

    def end(name: str) -> None:
        nonlocal depth
        if not depth:
            paragraphs.end(name)
        elif name in ("footnote", "endnote"):
            depth = 0

    parts.parse(path, start, end, lambda text: None if depth else paragraphs.text(text))
