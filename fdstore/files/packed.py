"""Packed files: one compressed file (`app.log.gz`), or an archive (`logs.tar.gz`, `logs.zip`).

Content decides what a file is, not its name. A packed file is read twice: `examine` reads it to its end,
stores nothing, and returns what is in it; then `OpenPacked` reads its members again, in order. So bombs and
damaged files are known before anything is stored. What is in an archive is never unpacked again.

    examine(file) -> Contents(entries, odd)        None: it is not packed
    OpenPacked(file, contents).read(entry)             the bytes of a member
"""

from __future__ import annotations

import tarfile
from typing import Any, BinaryIO, cast

from fdstore.errors import InvalidArgument
from fdstore.files.archive_members import Contents, Entry, left_over, survey
from fdstore.files.source import next_block
from fdstore.files.tar_archive import TAR_BLOCK, TAR_FAILURES, Headers, examine_tar, is_tar, open_tar
from fdstore.files.unpacking import FORMATS, Damaged, Decompressor, Meter, Unpacked
from fdstore.files.zip_archive import ZIP_TYPE, examine_zip, zip_member
from fdstore.text.media_types import type_of_file


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins so is packed: by a format that can be unpacked here."""
    found = FORMATS.get(type_of_file(head) or "")
    return type_of_file(head) == ZIP_TYPE or (found is not None and found.begin is not None) or is_tar(head)


def without_suffix(name: str) -> str:
    """Return the name of what a compressed file holds.

    >>> [without_suffix(name) for name in ("app.log.gz", "APP.GZ", "app.log", ".gz")]
    ['app.log', 'APP', 'app.log', '.gz']
    """
    for found in FORMATS.values():
        if name.lower().endswith(found.suffix) and len(name) > len(found.suffix):
            return name[: -len(found.suffix)]
    return name


def examine(file: BinaryIO, shown: str, size: int, meter: Meter) -> Contents | None:
    """Read a packed file of this size from its beginning to its end, and return what is in it; None if it is
    not packed, or a document. `shown` is its name in messages.

    Raises `TooLarge` for a bomb, `InvalidArgument` if it is damaged.
    """
    head = next_block(file, TAR_BLOCK)
    file.seek(0)
    if not is_packed(head):
        return None
    metered = meter.of(shown, size)
    try:
        found = type_of_file(head) or ""
        if found == ZIP_TYPE:
            return examine_zip(file, metered)
        if found not in FORMATS:
            return examine_tar(Headers(file, size), "", metered)
        unpacked = Unpacked(file, FORMATS[found].begin or _never, metered)
        if is_tar(unpacked.read(TAR_BLOCK)):
            unpacked.seek(0)
            return examine_tar(Headers(unpacked), found, metered)
        unpacked.seek(0)
        entry = survey("", unpacked, None)
        odd = left_over("", unpacked.left_over)
        return Contents(found, False, [entry], odd)
    except Damaged as error:
        raise InvalidArgument(shown, f"it is damaged and cannot be unpacked: {error}") from error


class OpenPacked:
    """A packed file that is open, from which members are read in their order. `close` closes the file."""

    def __init__(self, file: BinaryIO, contents: Contents, shown: str) -> None:
        self._file, self._contents, self._shown = file, contents, shown
        self._unpacked: Any = None
        self._tar: tarfile.TarFile | None = None

    def read(self, entry: Entry) -> BinaryIO:
        """Return a member as a file of exactly its size. Reading it raises `InvalidArgument` if it has
        changed since it was examined."""
        try:
            return cast("BinaryIO", _Exactly(self._opened(entry), entry, self._shown))
        except (Damaged, *TAR_FAILURES) as error:
            raise _changed(self._shown) from error

    def _opened(self, entry: Entry) -> Any:
        form = self._contents.form
        if form == ZIP_TYPE:
            return zip_member(self._file, entry.place)
        if self._unpacked is None:
            self._file.seek(0)
            self._unpacked = Unpacked(self._file, FORMATS[form].begin or _never) if form else self._file
        if not self._contents.is_archive:
            self._unpacked.seek(0)
            return self._unpacked
        if self._tar is None:
            headers = Headers(self._unpacked)
            headers.allow()
            self._tar = open_tar(headers)
            self._tar.fileobj = self._unpacked
        return self._tar.extractfile(entry.place)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Exactly:
    """A member of a packed file, which has as many bytes as when it was examined."""

    def __init__(self, file: Any, entry: Entry, shown: str) -> None:
        self.name = entry.path or shown
        self._file, self._left, self._shown = file, entry.size, shown

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        try:
            block: bytes = self._file.read(min(size, self._left))
        except (Damaged, tarfile.TarError, OSError) as error:
            raise _changed(self._shown) from error
        if not block and self._left:
            raise _changed(self._shown)
        self._left -= len(block)
        return block


def _changed(shown: str) -> InvalidArgument:
    return InvalidArgument(shown, "it was changed while it was read; store it again")


def _never() -> Decompressor:
    raise Damaged("this interpreter cannot unpack it")
