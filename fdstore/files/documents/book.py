"""EPUB: the text of each chapter that has one, in the order of reading."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import BinaryIO

from fdstore.files.documents.parts import Parts, resolve
from fdstore.files.documents.writing import NoText, TextWriter

_BLOCKS = (
    "address article aside blockquote body br caption center dd div dl dt figcaption figure footer form",
    "h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul",
)
BLOCKS = frozenset(name for names in _BLOCKS for name in names.split())
SILENT = frozenset({"script", "style", "title", "head"})
ENCRYPTION = "META-INF/encryption.xml"
_SPACE = re.compile(r"\s+")


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the text of a book. Raises `NoText`."""
    parts = Parts(file)
    package = _package(parts)
    chapters = 0
    for path in _spine(parts, package):
        if path not in parts:
            continue
        reader = _Chapter()
        decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        try:
            for block in parts.blocks(path):
                reader.feed(decoder.decode(block))
            reader.feed(decoder.decode(b"", final=True))
        except UnicodeDecodeError as error:
            if ENCRYPTION in parts:
                raise NoText("encrypted", "it is encrypted: its seller has locked it") from error
            raise NoText("damaged", f"its chapter {path:.80} is not UTF-8") from error
        reader.close()
        if lines := reader.lines():
            chapters += 1
            writer.mark(f"chapter {chapters}")
            writer.text("\n".join(lines))


def _package(parts: Parts) -> str:
    found: list[str] = []

    def start(name: str, given: Mapping[str, str]) -> None:
        if name == "rootfile":
            found.append(given.get("full-path", ""))

    parts.parse("META-INF/container.xml", start)
    if not found:
        raise NoText("damaged", "it does not say where its chapters are listed")
    return found[0]


def _spine(parts: Parts, package: str) -> list[str]:
    """Return the paths of the chapters, in order."""
    items: dict[str, str] = {}
    order: list[str] = []

    def start(name: str, given: Mapping[str, str]) -> None:
        if name == "item" and given.get("media-type") in ("application/xhtml+xml", "text/html"):
            items[given.get("id", "")] = given.get("href", "")
        elif name == "itemref":
            order.append(given.get("idref", ""))

    parts.parse(package, start)
    folder = package.rpartition("/")[0]
    return [resolve(folder, items[each]) for each in order if each in items]


class _Chapter(HTMLParser):
    """The lines of a chapter."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._silent = self._pre = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in SILENT
        self._pre += tag == "pre"
        if tag in BLOCKS:
            self._pieces.append("\n")
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._pieces.append(f"\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self._pieces.append("- ")
        elif tag in ("td", "th"):
            self._pieces.append(" | ")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        if tag in BLOCKS:
            self._pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in SILENT))
        self._pre = max(0, self._pre - (tag == "pre"))
        if tag in BLOCKS:
            self._pieces.append("\n\n" if tag.startswith("h") and tag != "hr" else "\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._pieces.append(data if self._pre else _SPACE.sub(" ", data))

    def lines(self) -> list[str]:
        """Return the lines, without empty ones at the ends and several in a row."""
        found: list[str] = []
        for line in "".join(self._pieces).split("\n"):
            if line.strip() or (found and found[-1]):
                found.append(line.strip(" \t\r").removeprefix("| ") if line.strip() else "")
        while found and not found[-1]:
            found.pop()
        return found
