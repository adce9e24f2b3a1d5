"""A file as it is stored where a folder or an archive cannot be: for `[preload]`, `spawn` and `put_fd`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from io import BufferedReader
from typing import BinaryIO, NamedTuple, cast

from fdstore.errors import InvalidArgument, TimedOut, TooLarge
from fdstore.files.documents.convert import can_convert, convert, document_type
from fdstore.files.documents.kinds import DOCUMENTS
from fdstore.files.packed import OpenPacked, examine, without_suffix
from fdstore.files.source import source_name
from fdstore.files.unpacking import FORMATS, Meter, UnpackLimits
from fdstore.model.records import ContentKind
from fdstore.text.media_types import type_of_file

TEXT_SUFFIX = ".txt"
"""What the name of a document's text has behind that of the document."""


class Unwrapped(NamedTuple):
    """One content of a file, which is read once. `kind` is what it is, if all of it was read; `head` its
    first bytes."""

    file: BinaryIO
    source: str
    size: int
    kind: ContentKind | None
    head: bytes
    media_type: str | None = None

    @property
    def is_document(self) -> bool:
        """Whether it is a document itself, not its text."""
        return self.kind == "bytes" and self.media_type is not None


def unwrap(file: BufferedReader, path: str, held: ExitStack) -> Sequence[Unwrapped]:
    """Return what a compressed file holds, checked; of a document itself and its text, if it can be read; any
    other file, an archive too, as it is. `held` removes temporary files. Raises as `examine`."""
    size, head = os.fstat(file.fileno()).st_size, file.peek()
    itself = Unwrapped(file, source_name(path), size, None, head)
    if media_type := document_type(file, path):
        document = itself._replace(kind="bytes", media_type=media_type)
        text = _text_of(file, path, media_type, held) if can_convert() else None
        file.seek(0)
        return [document] if text is None else [document, text]
    if FORMATS.get(type_of_file(head) or "") is None:
        return [itself]
    contents = examine(file, path, size, Meter(UnpackLimits()))
    file.seek(0)
    if contents is None or contents.is_archive:
        return [itself]
    if contents.odd:
        raise InvalidArgument(path, contents.odd[0].problem)
    [entry] = contents.entries
    inside = OpenPacked(file, contents, path).read(entry)
    return [Unwrapped(inside, source_name(without_suffix(path)), entry.size, entry.kind, entry.head)]


def _text_of(file: BufferedReader, path: str, media_type: str, held: ExitStack) -> Unwrapped | None:
    """Return the text of a document; None if it has none that can be read: it itself is there."""
    target = cast("BinaryIO", held.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115
    try:
        size = convert(file, media_type, path, target)
    except (InvalidArgument, TooLarge, TimedOut):
        return None
    target.seek(0)
    text_type = DOCUMENTS[media_type].text_type
    return Unwrapped(target, source_name(path) + TEXT_SUFFIX, size, "text", b"", text_type)
