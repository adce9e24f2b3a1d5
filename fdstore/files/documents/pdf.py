"""PDF: the text of each page, by PDFium."""

from __future__ import annotations

from typing import BinaryIO

import pypdfium2 as pdfium

from fdstore.files.documents.writing import NoText, TextWriter

MAX_BAD_PAGES = 100
"""A damaged file may claim any number of pages."""

HYPHEN = "\ufffe"
"""What PDFium has for a hyphen at the end of a line, in place of both."""


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the text of a PDF. Raises `NoText`."""
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise NoText("encrypted", "it is encrypted, and has a password") from error
        raise NoText("damaged", f"it is damaged: {error}") from error
    bad = 0
    pages = len(document)
    for number in range(pages):
        writer.mark(f"page {number + 1}")
        try:
            page = document[number]
            textpage = page.get_textpage()
            text = textpage.get_text_range()
            textpage.close()
            page.close()
        except pdfium.PdfiumError as error:
            bad += 1
            if bad == min(pages, MAX_BAD_PAGES):
                raise NoText("damaged", "it is damaged: its pages cannot be read") from error
            continue
        if text.strip():
            writer.text(text.replace(HYPHEN, "-\n").rstrip())
    if not writer.has_text:
        count = "its page has" if pages == 1 else f"none of its {pages} pages has"
        no = " no" if pages == 1 else ""
        raise NoText("no text", f"{count}{no} text: it is of pictures; ocrmypdf adds text to them")
