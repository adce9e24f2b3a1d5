r"""Descriptors as files, for every library that takes the URLs of fsspec: `fdstore://PROCESS/FD`.

    fdstore://triage/fd:3              descriptor 3 of the process triage
    fdstore://triage/fd:3.csv          the same; the extension is for readers that guess the format by it
    fdstore://triage/notes/plan.md     what the process calls notes/plan.md (`name:notes/plan.md`)

Reading fetches only the bytes that are asked for. Writing makes or replaces a name in one atomic step when
the file is closed: as text if it is UTF-8, so that a model can read it, else as bytes. Names with a slash
look like directories, which exist as long as something is in them. The store is that of `fdstore.connect()`,
or named by `storage_options={"url": ..., "prefix": ...}`.

    >>> import fsspec
    >>> with fsspec.open("fdstore://triage/notes/plan.md", "w") as file:
    ...     written = file.write("# Plan\n")
    >>> proc.read("name:notes/plan.md").text
    '# Plan\n'
    >>> fsspec.filesystem("fdstore").cat_file("triage/notes/plan.md", start=2)
    b'Plan\n'

Raises `FileNotFoundError`, `FileExistsError` and `IsADirectoryError`, and otherwise the errors of fdstore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, ClassVar, NamedTuple, cast

from fdstore.client import Process, Store, connect
from fdstore.errors import Conflict, MissingExtra, NotEncoded, NotFound
from fdstore.model.records import Descriptor
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.contents import contents, naming
from fdstore.store.processes.processes import open_child
from fdstore.text.names import NAME, name_id

try:
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
except ImportError as error:
    raise MissingExtra("fsspec", how_to_install("fsspec")) from error

MEMORY_BYTES = 8_000_000
"""The bytes of an unfinished file kept in memory; a longer one goes to a temporary file."""

SOURCE = "fsspec"

_NUMBERED = re.compile(r"(fd:[1-9][0-9]{0,15})(\.\w+)?")


class Place(NamedTuple):
    """A path taken apart: the process, and what of it is meant ("" for the process itself)."""

    process: str
    rest: str

    @property
    def fd(self) -> str:
        """The descriptor that the path names, if it is a file."""
        numbered = _NUMBERED.fullmatch(self.rest)
        return numbered[1] if numbered else name_id(self.rest)

    @property
    def is_numbered(self) -> bool:
        return _NUMBERED.fullmatch(self.rest) is not None


class FdstoreFileSystem(AbstractFileSystem):
    """The filesystem `fdstore`. `url` and `prefix` as in `fdstore.connect`."""

    protocol: ClassVar[str] = "fdstore"
    root_marker: ClassVar[str] = ""

    def __init__(self, url: str | None = None, prefix: str | None = None, **options: Any) -> None:
        super().__init__(url=url, prefix=prefix, **options)
        self._place = (url, prefix)

    @cached_property
    def _store(self) -> Store:
        return connect(*self._place)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        opened: Store | None = self.__dict__.pop("_store", None)
        if opened is not None:
            opened.close()

    def place(self, path: str) -> Place:
        """Take a path apart."""
        process, _, rest = self._strip_protocol(path).partition("/")
        return Place(process, rest)

    @contextmanager
    def reading(self, path: str) -> Iterator[tuple[Process, Place]]:
        """Open the process of a path, which a path alone does not create. Raises `FileNotFoundError`, also
        for what the block does not find."""
        place = self.place(path)
        try:
            handle = self._store.run(open_child(self._store.prefix, place.process))
            yield Process(self._store, handle), place
        except NotFound as error:
            raise FileNotFoundError(path) from error

    def writing(self, path: str) -> tuple[Process, Place]:
        """Open or create the process of a file that is to be written. Raises `IsADirectoryError`, and
        `FileExistsError` for a number: a numbered content never changes."""
        place = self.place(path)
        if not place.rest:
            raise IsADirectoryError(path)
        if place.is_numbered:
            raise FileExistsError(f"{path}: a numbered descriptor is not replaced; write to a name")
        return self._store.process(place.process), place

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Return `name`, `type`, `size` in bytes, and of files `fd`, `kind`, `media_type`, `created`."""
        path = self._strip_protocol(path)
        if not path:
            return _directory(path)
        with self.reading(path) as (process, place):
            if not place.rest:
                return _directory(path)
            try:
                return _file(path, process.stat(place.fd))
            except NotFound:
                if process.list(prefix=f"{place.rest}/"):
                    return _directory(path)
                raise

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """List the processes of the store, the descriptors of a process, or the names that begin so."""
        path = self._strip_protocol(path)
        found = self._entries(path)
        return found if detail else sorted(entry["name"] for entry in found)

    def _entries(self, path: str) -> list[dict[str, Any]]:
        if not path:
            return [_directory(tree.id) for tree in self._store.trees()]
        with self.reading(path) as (process, place):
            below = f"{place.rest}/" if place.rest else ""
            entries = {}
            for descriptor in process.list(prefix=below) if below else process.list():
                rest = descriptor.fd.removeprefix(NAME)[len(below) :]
                first, slash, _ = rest.partition("/")
                name = f"{place.process}/{below}{first}"
                entries[name] = _directory(name) if slash else _file(name, descriptor)
            if not entries and below:
                return [_file(path, process.stat(place.fd))]
            return list(entries.values())

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Return the bytes from `start` to `end`; negative ones count from the end."""
        with self.reading(path) as (process, place):
            if not place.rest:
                raise IsADirectoryError(path)
            if (start or 0) < 0 or (end or 0) < 0:
                size = process.stat(place.fd).bytes
                start, end = (at if at is None or at >= 0 else max(size + at, 0) for at in (start, end))
            first = start or 0
            return process.read_bytes(place.fd, first, None if end is None else max(end - first, 0))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        """Store bytes under a name; with `mode="create"` only if the name is not there yet."""
        with self.open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)

    def touch(self, path: str, truncate: bool = True, **options: Any) -> None:
        """Make an empty file."""
        if truncate or not self.exists(path):
            self.pipe_file(path, b"")

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copy one content to a name."""
        if self.isdir(path1):
            return  # directories are only parts of names
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            while block := source.read(self.blocksize):
                target.write(block)

    def mv_file(self, path1: str, path2: str) -> None:
        """Rename a content: in one atomic step between two names of a process."""
        old, new = self.place(path1), self.place(path2)
        if old.process == new.process and not (old.is_numbered or new.is_numbered):
            process, _ = self.writing(path2)
            try:
                process.rename(old.rest, new.rest, replace=True)
            except NotFound as error:
                raise FileNotFoundError(path1) from error
        else:
            self.cp_file(path1, path2)
            self.rm_file(path1)

    def mv(
        self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **options: Any
    ) -> None:
        """Rename a content, or with `recursive` copy a directory and remove it."""
        if recursive or self.isdir(path1) or self.isdir(path2):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)
        else:
            self.mv_file(path1, path2)

    def rm_file(self, path: str) -> None:
        """Close a descriptor. The content lives on while another process holds it."""
        with self.reading(path) as (process, place):
            process.close(place.fd)

    _rm = rm_file

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Do nothing: a directory is a part of names."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing, as `mkdir`."""

    def rmdir(self, path: str) -> None:
        """Do nothing: a directory goes with its last file."""

    def rm(self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        """Close descriptors; those of directories with `recursive`. A process itself is left."""
        for one in self.expand_path(path, recursive=recursive, maxdepth=maxdepth):
            if not self.isdir(one):
                self.rm_file(one)

    def created(self, path: str) -> datetime:
        """Return when a content was stored."""
        return cast("datetime", self.info(path)["created"])

    modified = created

    def _open(self, path: str, mode: str = "rb", **options: Any) -> FdstoreFile:
        options = {name: value for name, value in options.items() if value is not None}
        return FdstoreFile(self, path, mode, **options)


class FdstoreFile(AbstractBufferedFile):
    """A descriptor as a file in mode rb, wb, ab or xb. What is written is stored when the file is closed."""

    DEFAULT_BLOCK_SIZE = 1 << 18
    """As fast as larger ones within a fifth; that of fsspec is meant for stores of HTTP, and reads 5 MB."""

    def __init__(self, fs: FdstoreFileSystem, path: str, mode: str = "rb", **options: Any) -> None:
        if mode != "rb":
            self._process, self._target = fs.writing(path)
            self._kept = SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115, it lives until `close`
            if mode == "xb" and self._process.find(self._target.rest) is not None:
                raise FileExistsError(path)  # before much is written; storing it checks again
        elif fs.isdir(path):
            raise IsADirectoryError(path)
        else:
            with fs.reading(path) as (process, place):
                self._source = process.open_bytes(place.fd).detach()  # it reads ahead itself
        super().__init__(fs, path, mode, **options)
        if mode == "ab" and fs.exists(path):
            with fs.open(path, "rb") as old:
                while block := old.read(self.blocksize):
                    self._kept.write(block)
            self.loc = self._kept.tell()

    def _fetch_range(self, start: int, end: int) -> bytes:
        self._source.seek(start)
        found = bytearray(end - start)
        return bytes(found[: self._source.readinto(found)])

    def _upload_chunk(self, final: bool = False) -> bool:
        self._kept.write(self.buffer.getbuffer())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Store what was written."""
        only_new = naming.expectation(naming.ABSENT if "x" in self.mode else None)
        try:
            store(self._process, self._target.rest, self._kept, only_new)
        except Conflict as error:
            raise FileExistsError(self.path) from error
        finally:
            self._kept.close()

    def discard(self) -> None:
        """Forget what was written."""
        self._kept.close()


def store(process: Process, key: str, file: Any, expected: str = "") -> Descriptor:
    """Store a file under a name: as text if it is UTF-8, else as bytes."""

    def ingest(errors: contents.IngestErrors) -> Descriptor:
        file.seek(0)
        operation = contents.ingest(
            process.handle,
            cast("BinaryIO", file),
            SOURCE,
            errors=errors,
            name=name_id(key),
            expected=expected,
        )
        return process.store.run(operation)

    try:
        return ingest("strict")
    except NotEncoded:
        return ingest("bytes")


def _directory(path: str) -> dict[str, Any]:
    return {"name": path, "type": "directory", "size": 0}


def _file(path: str, descriptor: Descriptor) -> dict[str, Any]:
    return {
        "name": path,
        "type": "file",
        "size": descriptor.bytes,
        "fd": descriptor.fd,
        "kind": descriptor.kind,
        "media_type": descriptor.media_type,
        "created": datetime.fromtimestamp(descriptor.created_at, UTC),
    }
