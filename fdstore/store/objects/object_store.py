"""The object store: a directory, S3, GCS or Azure, by the package `obstore`.

Every call blocks, so an operation makes it as a `Disk` request. Time-outs and retries are those of the
library: a call that fails has been tried for up to `RETRY_S`.

A directory has a file `MARKER`, made when the operator sets the place: without it the directory counts as not
mounted. Then nothing is written below the mount point, and no object counts as missing. Only a read that does
not find its object looks for it, and each write.

The library's threads do not survive a fork: a process that was forked after its parent used them would wait
for ever. Such a process has a helper instead (see `forked`).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from fdstore.errors import MissingExtra, ObjectStoreUnavailable
from fdstore.setup.optional_packages import how_to_install

REQUEST_S, CONNECT_S, RETRY_S = 15, 5, 10
"""Seconds for one request, for a connection, and in which a request is tried again."""

PUT_AT_ONCE_BYTES = 8 << 20
"""An object up to this size is sent in one request, a larger one in parts, which are in memory one by one."""

PARTS_AT_ONCE, MAX_PARTS = 2, 9000

HTTP_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")

MARKER = ".fdstore-place"
"""The file in a directory that says that it is the place, and not an empty mount point."""

MARKER_TEXT = "fdstore keeps cold contents here. Without this file the directory counts as not mounted.\n"

NO_BUCKET = "there is no such bucket"
NO_BUCKET_CODES = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
"""What S3, Azure and GCS answer then, by the status of an object that is missing."""

MAX_SYNCED = 10_000

_synced: set[Path] = set()
"""Folders that are durable in the folders above them."""

_used_in: int | None = None
"""The process in which the library was first used."""


class ObjectMissing(Exception):
    """There is no such object."""


class StoredObject(msgspec.Struct, frozen=True):
    """One object: its path below the place, its size in bytes, and when it was written."""

    path: str
    size: int
    written_at: float


def shown(url: str) -> str:
    """Return a place as it is named in messages."""
    return url[:200]


def _library() -> Any:
    """Return the package. Raises `MissingExtra`."""
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise MissingExtra("obstore", how_to_install("cold")) from error
    return obstore


@contextmanager
def _guarded(url: str, *, writes: bool = False) -> Iterator[None]:
    """Translate the errors of the library. Nothing that is written can be missing."""
    errors = _library().exceptions
    try:
        yield
    except FileNotFoundError as error:
        check_mounted(url)
        if NO_BUCKET_CODES.search(str(error)):
            raise ObjectStoreUnavailable(shown(url), NO_BUCKET) from error
        if writes:
            raise ObjectStoreUnavailable(shown(url), _first_line(error)) from error
        raise ObjectMissing(str(error)[:200]) from error
    except (errors.UnauthenticatedError, errors.PermissionDeniedError) as error:
        said = f"it refuses the credentials of this process ({_first_line(error)})"
        raise ObjectStoreUnavailable(shown(url), said) from error
    except (errors.BaseError, OSError, ValueError) as error:
        check_mounted(url)
        raise ObjectStoreUnavailable(shown(url), _first_line(error)) from error


def directory_of(url: str) -> Path | None:
    """Return the directory that a place is, None if it is a bucket."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def is_set_up(url: str) -> bool:
    """Return whether a place is a bucket, or a directory with its `MARKER`."""
    directory = directory_of(url)
    return directory is None or os.path.exists(directory / MARKER)


def check_mounted(url: str) -> None:
    """Raise `ObjectStoreUnavailable` if a place is a directory without its `MARKER`."""
    if not is_set_up(url):
        said = f"its directory has no file {MARKER}: is it mounted? Where it is, `fdstore limits set cold`"
        raise ObjectStoreUnavailable(shown(url), f"{said} makes the file")


def set_up(url: str) -> None:
    """Make the directory that a place is, and its `MARKER`; a bucket is left as it is. Raises `OSError`."""
    directory = directory_of(url)
    if directory is None or is_set_up(url):
        return
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARKER).write_text(MARKER_TEXT)
    _sync(url, MARKER)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


@lru_cache(maxsize=16)
def _place(url: str, pid: int, directory: str | None) -> Any:
    """Return the library's object for a place; its credentials come from the environment. It follows symbolic
    links of a `directory` once, so it is made again where they lead elsewhere."""
    stores = _library().store
    if directory_of(url) is not None:
        return stores.from_url(url)
    endpoint = next((os.environ[name] for name in HTTP_ENDPOINTS if os.environ.get(name)), "")
    options: dict[str, Any] = {
        "timeout": timedelta(seconds=REQUEST_S),
        "connect_timeout": timedelta(seconds=CONNECT_S),
    }
    if endpoint.startswith("http://"):  # its owner said so
        options["allow_http"] = True
    retries = {"max_retries": 6, "retry_timeout": timedelta(seconds=RETRY_S)}
    return stores.from_url(url, client_options=options, retry_config=retries)


def is_forked() -> bool:
    """Return whether this process was forked from one that had used the library."""
    global _used_in
    if _used_in is None:
        _used_in = os.getpid()
    return _used_in != os.getpid()


def _open(url: str) -> Any:
    with _guarded(url):
        directory = directory_of(url)
        return _place(url, os.getpid(), None if directory is None else os.path.realpath(directory))


def get_range(url: str, path: str, start: int, end: int) -> bytes:
    """Return bytes of an object, fewer if it is shorter. One request. Raises `ObjectMissing`,
    `ObjectStoreUnavailable`."""
    if is_forked():
        from fdstore.store.objects import forked

        found: bytes = forked.call("get_range", url, path, start, end)
        return found
    place = _open(url)
    try:
        with _guarded(url):
            return bytes(_library().get_range(place, path, start=start, end=end))
    except ObjectStoreUnavailable as error:
        if error.problem == NO_BUCKET:
            raise  # the answer to HEAD has no body, so it would look as one about the object
        if (size := _size_or_none(url, path)) is not None and size <= start:
            return b""  # a range behind the end of an object is an error there
        raise


def _size_or_none(url: str, path: str) -> int | None:
    try:
        return size_of(url, path)
    except ObjectStoreUnavailable:
        return None


def size_of(url: str, path: str) -> int:
    """Return the size of an object. Raises as `get_range`."""
    if is_forked():
        from fdstore.store.objects import forked

        size: int = forked.call("size_of", url, path)
        return size
    place = _open(url)
    with _guarded(url):
        return int(_library().head(place, path)["size"])


def has(url: str, path: str) -> bool:
    """Return whether a place has an object, even a directory that is not set up yet. Raises
    `ObjectStoreUnavailable`."""
    if (directory := directory_of(url)) is not None:
        return os.path.isfile(directory / path)
    try:
        size_of(url, path)
    except ObjectMissing:
        return False
    return True


def put(url: str, path: str, data: bytes) -> None:
    """Create an object; one that is there stays. Raises `ObjectStoreUnavailable`."""
    if is_forked():
        from fdstore.store.objects import forked

        forked.call("put", url, path, data)
        return
    check_mounted(url)
    library, place = _library(), _open(url)
    with _guarded(url, writes=True):
        try:
            library.put(place, path, data, mode="create", use_multipart=False)
        except library.exceptions.AlreadyExistsError:
            pass  # its name is of this upload alone: an earlier try of it arrived, and is compared next
        except library.exceptions.NotSupportedError:
            library.put(place, path, data, use_multipart=False)
    _sync(url, path)


def put_pieces(url: str, path: str, pieces: Iterable[bytes], size_bytes: int) -> None:
    """Create a large object from pieces, in bounded memory. It appears when all have arrived. Raises as
    `put`, and what the pieces raise."""
    if is_forked():
        from fdstore.store.objects import forked

        forked.put_pieces(url, path, pieces)
        return
    check_mounted(url)
    place = _open(url)
    part_bytes = max(PUT_AT_ONCE_BYTES, -(-size_bytes // MAX_PARTS))
    source = _Source(pieces)
    try:
        with _guarded(url, writes=True):
            _library().put(
                place, path, source, use_multipart=True, chunk_size=part_bytes, max_concurrency=PARTS_AT_ONCE
            )
    finally:
        if source.error is not None:  # the library wraps what its source raises
            raise source.error
    _sync(url, path)


class _Source:
    """An iterator that remembers what its pieces raised."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.error: BaseException | None = None

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise


def put_file(url: str, path: str, file: str) -> None:
    """Create an object from a file. Raises as `put`."""
    check_mounted(url)
    place = _open(url)
    with _guarded(url, writes=True):
        part_bytes = max(PUT_AT_ONCE_BYTES, -(-os.path.getsize(file) // MAX_PARTS))
        _library().put(place, path, Path(file), chunk_size=part_bytes, max_concurrency=PARTS_AT_ONCE)
    _sync(url, path)


def _sync(url: str, path: str) -> None:
    """Make an object of a directory durable: pages leave Redis because of it. Raises
    `ObjectStoreUnavailable` if the directory was unmounted meanwhile."""
    root = directory_of(url)
    if root is None:
        return
    file = root / path
    folders = [each for each in file.parents if each not in _synced and each.is_relative_to(root)]
    with _guarded(url, writes=True):
        for each in (file, *dict.fromkeys((file.parent, *folders))):
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    if len(_synced) > MAX_SYNCED:
        _synced.clear()
    _synced.update(folders)
    check_mounted(url)


def digest_of(url: str, path: str) -> tuple[int, str]:
    """Read an object whole. Return its size, and its digest as of `new_digest`. Raises as `get_range`."""
    if is_forked():
        from fdstore.store.objects import forked

        size, found = forked.call("digest_of", url, path)
        return size, found
    place, digest, size = _open(url), new_digest(), 0
    with _guarded(url):
        found = _library().get(place, path)
        # a stream of a file costs many small reads
        whole = found.meta["size"] <= PUT_AT_ONCE_BYTES
        for piece in (found.bytes(),) if whole else found.stream(min_chunk_size=1 << 20):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def new_digest() -> Any:
    """Return the hash that compares an object with what was sent."""
    return hashlib.blake2b(digest_size=16)


def delete(url: str, path: str) -> None:
    """Delete an object; one that is not there is deleted. Raises `ObjectStoreUnavailable`."""
    if is_forked():
        from fdstore.store.objects import forked

        forked.call("delete", url, path)
        return
    place = _open(url)
    try:
        with _guarded(url):
            _library().delete(place, path)
    except ObjectMissing:
        pass
    if (directory := directory_of(url)) is not None:
        with _guarded(url), suppress(FileNotFoundError):
            for number in itertools.count(1):  # what an upload that died has left, see `_parts_below`
                os.unlink(directory / f"{path}#{number}")


def list_below(url: str, path: str) -> Iterator[list[StoredObject]]:
    """Yield all objects below a path, some at a time. Raises `ObjectStoreUnavailable`."""
    if is_forked():
        from fdstore.store.objects import forked

        yield [StoredObject(*each) for each in forked.call("list_below", url, path)]
        return
    check_mounted(url)
    place = _open(url)
    with _guarded(url):
        for batch in _library().list(place, path, chunk_size=1000):
            yield [
                StoredObject(each["path"], int(each["size"]), each["last_modified"].timestamp())
                for each in batch
            ]
    if (directory := directory_of(url)) is not None:
        yield list(_parts_below(directory, path))


def _parts_below(directory: Path, path: str) -> Iterator[StoredObject]:
    """Yield what uploads that died left in a directory, by the names of their objects: the library writes a
    large object to a file `NAME#1`, and does not list that."""
    for folder, _, names in os.walk(directory / path):
        for name in names:
            if found := re.fullmatch(r"(.+)#[0-9]+", name):
                with suppress(OSError):  # its upload goes on, and is complete now
                    at = os.stat(os.path.join(folder, name))
                    place = Path(folder, found[1]).relative_to(directory)
                    yield StoredObject(place.as_posix(), at.st_size, at.st_mtime)
