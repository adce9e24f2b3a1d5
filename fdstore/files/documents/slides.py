"""PPTX: the text of each slide in the order of the presentation, with its notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from fdstore.files.documents.parts import Parts
from fdstore.files.documents.word import Paragraphs
from fdstore.files.documents.writing import TextWriter


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the text of a presentation. Raises `NoText`."""
    parts = Parts(file)
    main = parts.main("ppt/presentation.xml")
    ids: list[str] = []

    def start(name: str, given: Mapping[str, str]) -> None:
        if name == "sldId":
            ids.append(given.get("relation", ""))

    parts.parse(main, start)
    targets = parts.relations(main)
    for number, relation in enumerate(ids, 1):
        slide = targets[relation].target if relation in targets else ""
        hidden = " (hidden)" if _is_hidden(parts, slide) else ""
        writer.mark(f"slide {number}{hidden}")
        _write_text(parts, slide, writer)
        related = parts.relations(slide)
        for each in related.values():
            if each.kind == "diagramData":
                _write_text(parts, each.target, writer)
        for each in related.values():
            if each.kind == "notesSlide":
                writer.mark(f"notes of slide {number}")
                _write_text(parts, each.target, writer)


def _is_hidden(parts: Parts, path: str) -> bool:
    shows: list[str] = []
    parts.parse(path, lambda name, given: shows.append(given.get("show", "1")) if name == "sld" else None)
    return shows[:1] in (["0"], ["false"])


def _write_text(parts: Parts, path: str, writer: TextWriter) -> None:
    paragraphs = Paragraphs(writer, {})
    fields = 0

    def start(name: str, given: Mapping[str, str]) -> None:
        nonlocal fields
        if fields or (name == "fld" and given.get("type") == "slidenum"):
            fields += 1
        else:
            paragraphs.start(name, given)

    def end(name: str) -> None:
        nonlocal fields
        if fields:
            fields -= 1
        else:
            paragraphs.end(name)

    parts.parse(path, start, end, lambda text: None if fields else paragraphs.text(text))
