"""The kinds of documents, and how to tell one by its first bytes and its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fdstore.model.records import TEXT_TYPE
from fdstore.text.media_types import PDF_TYPE, media_type_of, type_of_bytes

_OFFICE = "application/vnd.openxmlformats-officedocument."
CSV_TYPE = "text/csv"
EPUB_TYPE = "application/epub+zip"
ODS_TYPE = "application/vnd.oasis.opendocument.spreadsheet"


class DocumentKind(NamedTuple):
    """The module here that reads a kind of documents, the folder of its parts in a zip archive, and the media
    type of its text: lines of a sheet are a table for SQL. `other_reader`: what reads a document that the
    first cannot read, as for lack of memory."""

    reader: str
    folder: str = ""
    text_type: str = TEXT_TYPE
    other_reader: str = ""


DOCUMENTS: dict[str, DocumentKind] = {
    PDF_TYPE: DocumentKind("pdf"),
    f"{_OFFICE}wordprocessingml.document": DocumentKind("word", "word/"),
    f"{_OFFICE}spreadsheetml.sheet": DocumentKind("sheets", "xl/", CSV_TYPE, "sparse_sheets"),
    f"{_OFFICE}presentationml.presentation": DocumentKind("slides", "ppt/"),
    ODS_TYPE: DocumentKind("sheets", "", CSV_TYPE, "sparse_sheets"),
    EPUB_TYPE: DocumentKind("book"),
}
"""Media type -> the kind."""

PACKAGES = ("pypdfium2", "python_calamine")
EXTRA = "documents"

CONTENT_TYPES, MIMETYPE = "[Content_Types].xml", "mimetype"
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of files of older programs, and of documents of newer ones that have a password."""


def type_by_head(head: bytes, name: str) -> str | None:
    """Return the media type of a document that is no zip archive; None for any other file. One of Office with
    a password is told by its name.

    >>> type_by_head(b"%PDF-1.7", "x"), type_by_head(b"PK...", "x.docx")
    ('application/pdf', None)
    """
    if type_of_bytes(head) == PDF_TYPE:
        return PDF_TYPE
    named = media_type_of("bytes", name)
    return named if head.startswith(OLD_OFFICE) and DOCUMENTS.get(named, DOCUMENTS[PDF_TYPE]).folder else None


def type_by_members(names: Sequence[str], mimetype: str) -> str | None:
    """Return the media type of a document by the names of its members, in their order, and what its member
    `mimetype` says; "" for one of an unknown kind, None for an archive.

    >>> type_by_members(["mimetype", "content.xml"], "application/epub+zip")
    'application/epub+zip'
    >>> type_by_members(["a", "b"], "") is None
    True
    """
    if names and names[0] == MIMETYPE:
        return mimetype if mimetype in DOCUMENTS else ""
    if CONTENT_TYPES not in names:
        return None
    for media_type, kind in DOCUMENTS.items():
        if kind.folder and any(name.startswith(kind.folder) for name in names):
            return media_type
    return ""
