# Generated from fdstore/client/_async/process.py by `make generate`: change that one.
"""`Process`: one process and its descriptors.

Each method checks its arguments and runs one operation of `fdstore.store`, which states its cost. In the
examples `proc` is a new process, and `build.log` a file of 5000 lines in the current directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeVar

from fdstore.client._sync.byte_file import ByteFile, open_byte_file
from fdstore.client._sync.following import Following
from fdstore.client._sync.writer import StreamWriter
from fdstore.files.source import open_source, source_name
from fdstore.files.target import Target
from fdstore.model.records import Descriptor, Export, Mode, SearchResult, Slice
from fdstore.store.contents import (
    byte_reading,
    comparing,
    contents,
    descriptors,
    exporting,
    naming,
    reading,
    searching,
)
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.store.streams import completion, streams
from fdstore.store.streams.following import follow_bytes, follow_text
from fdstore.telemetry import tracing
from fdstore.text.names import name_id
from fdstore.text.selection import FIRST_PAGE, FdLike, fd_id, fd_ids, number, parse_request
from fdstore.wire.operation import Operation

if TYPE_CHECKING:
    from fdstore.client._sync.store import Store

T = TypeVar("T")


class Process:
    r"""A process and its descriptors; created by `Store.process`.

    Descriptors are named "fd:3", "fd-3", "3", 3, "ref:NAME" or "name:KEY", where KEY, a key of the process's
    own (`put`), is any text of 1-1024 bytes of UTF-8 without control characters. Every method that uses Redis
    raises `StoreUnavailable` if it cannot be reached. Methods that write also raise `Fenced` if the process
    has ended or another attempt runs it, `StoreFull`, `StoreReadOnly`, and `UnknownOutcome` if Redis becomes
    unreachable after a write was sent.

    >>> d = proc.create("one\ntwo\n")
    >>> proc.read(d.fd).text
    'one\ntwo\n'
    """

    def __init__(self, store: Store, handle: ProcessHandle) -> None:
        self.store = store
        self.handle = handle

    def __repr__(self) -> str:
        return f"<fdstore.Process {self.id}>"

    @property
    def id(self) -> str:
        """Its name: `triage`, or `triage.1` for a child.

        >>> proc.child().id
        'triage.1'
        """
        return self.handle.id

    def create(
        self,
        text: str | bytes,
        source: str | None = None,
        page_size: int | None = None,
        media_type: str | None = None,
    ) -> Descriptor:
        r"""Store a text, or bytes, under the next number and return its descriptor. `page_size` is in
        characters (default 4000), of bytes in bytes (default 65 536). `source` defaults to the kind, "text"
        or "bytes". One round trip up to about 250 kB.

        Raises `InvalidArgument` (neither str nor bytes, a lone surrogate, a page size below 1, no media
        type), `QuotaExceeded`.

        >>> d = proc.create("one\ntwo\n")
        >>> d.fd, d.lines, d.chars
        ('fd:1', 2, 8)
        """
        return self._run(contents.create(self.handle, text, source, page_size, media_type=media_type))

    def ingest(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        source: str | None = None,
        page_size: int | None = None,
        errors: contents.IngestErrors = "strict",
        progress: Callable[[int], None] | None = None,
        media_type: str | None = None,
    ) -> Descriptor:
        r"""Store a file (a path, or a file open in binary mode) of any size in bounded memory. Bytes
        that are not UTF-8 are refused, or kept as `\xNN` with `errors="backslashreplace"`; with
        `errors="bytes"` any file is stored as bytes. `media_type` defaults to that of the source's name.
        `source` defaults to the file's name. `progress` is called with the bytes read so far.

        Raises `TargetMissing`, `PathRefused`, `InvalidArgument`, `QuotaExceeded`.

        >>> d = proc.ingest("build.log")
        >>> d.source, d.lines, d.pages
        ('build.log', 5000, 29)
        """
        with open_source(file) as binary:
            name = source or source_name(file)
            operation = contents.ingest(
                self.handle, binary, name, page_size, errors, progress, media_type=media_type
            )
            return self._run(operation)

    def put(
        self,
        key: str,
        content: str | bytes,
        media_type: str | None = None,
        source: str | None = None,
        expect: naming.Expected = None,
        page_size: int | None = None,
    ) -> Descriptor:
        r"""Store a text or bytes as `name:KEY`, and replace what the name meant, in one atomic step. Others
        that hold the old content (children, copies) keep it. `media_type` defaults to that of the key's file
        name. One round trip up to about 250 kB.

        With `expect`, nothing happens unless the name still means that descriptor, or with `fdstore.ABSENT`
        is not there yet.

        Raises `Conflict` (it means something else), `InvalidArgument`, `QuotaExceeded` (counted without what
        is replaced).

        >>> plan = proc.put("notes/plan.md", "# Plan\n")
        >>> plan.fd, plan.media_type
        ('name:notes/plan.md', 'text/markdown')
        >>> plan = proc.put("notes/plan.md", "# Better plan\n", expect=plan)
        >>> proc.read("name:notes/plan.md#L1").text
        '# Better plan\n'
        """
        operation = contents.create(
            self.handle,
            content,
            source,
            page_size,
            media_type=media_type,
            name=name_id(key),
            expected=naming.expectation(expect),
        )
        return self._run(operation)

    def find(self, key: str) -> Descriptor | None:
        """Return what a name means, or None (`stat` raises `NotFound`). One round trip.

        >>> d = proc.put("call_1", "output")
        >>> proc.find("call_1").fd, proc.find("call_2")
        ('name:call_1', None)
        """
        return self._run(naming.find(self.handle, key))

    def rename(self, key: str, new_key: str, replace: bool = False) -> Descriptor:
        """Give a named content another name, in one atomic step. What had that name before is let go of with
        `replace`. One round trip.

        Raises `NotFound`, `Conflict` (the new name is taken), `InvalidArgument`.

        >>> d = proc.put("draft.txt", "text")
        >>> proc.rename("draft.txt", "final.txt").fd
        'name:final.txt'
        """
        return self._run(naming.rename(self.handle, key, new_key, replace=replace))

    def stat(self, fd: FdLike) -> Descriptor:
        r"""Return the current descriptor: its state, and its size in characters, bytes, lines and pages.

        Raises `NotFound`, which lists the existing ids.

        >>> d = proc.create("häh?\n")
        >>> found = proc.stat(d.fd)
        >>> found.state, found.chars, found.bytes
        ('sealed', 5, 6)
        """
        return self._run(descriptors.stat(self.handle, fd_id(fd)))

    def list(self, prefix: str | None = None) -> list[Descriptor]:
        """Return all descriptors: by number, then the named ones by creation; with `prefix`, those of the
        names that begin with it (all names for ""), in order, in one round trip for each 500.

        >>> d = proc.create("one")
        >>> d = proc.create("two")
        >>> [d.fd for d in proc.list()]
        ['fd:1', 'fd:2']
        >>> d = proc.put("notes/a.txt", "three")
        >>> [d.fd for d in proc.list(prefix="notes/")]
        ['name:notes/a.txt']
        """
        if prefix is not None:
            return self._run(naming.list_names(self.handle, prefix))
        return self._run(descriptors.list_fds(self.handle))

    def read(
        self,
        fd: FdLike,
        *,
        mode: Mode | None = None,
        start: int | None = None,
        count: int | None = None,
        read_all: bool = False,
        max_chars: int | None = None,
        wait: float = 0.0,
    ) -> Slice:
        r"""Read a part of a content: `count` units of `mode` ("page", "line" or "char") from `start` on
        (default: page 1), everything with `read_all`, or the part that a selector names ("fd:3#L120-180";
        not together with the other arguments). Positions are 1-based; a count past the end is clamped. One
        page of a known descriptor costs one round trip of that page's bytes.

        An open stream is read up to its current end, or first waited for, up to `wait` seconds, until the
        part is complete: later appends cannot change it. `eof` tells whether the part reaches the end of a
        stream that its writer has ended.

        Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, `InvalidArgument`, and `TooLarge` for
        more than `max_chars` characters.

        >>> d = proc.ingest("build.log")
        >>> page = proc.read(d.fd, start=2)
        >>> page.page, page.lines, page.chars
        (2, '187-367', '3985-7966')
        >>> proc.read(f"{d.fd}#L120-121").text
        'line 120 of the build\nline 121 of the build\n'
        """
        page = 1 if start is None else start
        if (
            (mode is None or mode == "page")
            and type(fd) is str
            and type(page) is int
            and (count is None or (type(count) is int and count == 1))
            and (max_chars is None or (type(max_chars) is int and max_chars >= 0))
            and not (read_all or wait)
            and type(wait) is float
            and (tracing.tracer is None or not tracing.is_in_span())  # only operations are traced
        ):
            known = self.handle.cached_page(fd, page)
            if known is not None:
                fields = self.store._runner.read_field(known[0].pages, page)
                found = reading.build_page(self.handle, fd, known, page, fields, max_chars)
                if found is not None:
                    return found
        request = parse_request(fd, mode, start, count, whole=read_all, default=FIRST_PAGE)
        limit = reading.check_limit(max_chars)
        return self._run(completion.read_whole(self.handle, request.fd, request.part, limit, wait))

    def open_stream(
        self,
        source: str = "stream",
        page_size: int | None = None,
        *,
        lease_s: float = streams.LEASE_S,
    ) -> StreamWriter:
        r"""Open a stream, which others can read while it is written, and return its writer: a context manager
        that ends the stream, or breaks it if the block raises. The library renews the writer's lease while
        it lives; `lease_s` seconds after a writer died, readers find the stream `broken` (`writer_lost`).
        The end of the process breaks its open streams.

        Raises `InvalidArgument`, `QuotaExceeded`.

        >>> with proc.open_stream(source="build") as out:
        ...     out.write("compiling\n")
        >>> proc.stat(out.fd).state
        'sealed'
        """
        appender = self._run(
            streams.open_stream(self.handle, source, page_size, lease_s=streams.check_lease(lease_s))
        )
        return StreamWriter(self.store.for_work().run, appender)

    def follow(self, fd: FdLike, start: int = 1) -> Iterator[str]:
        r"""Iterate over the text of a stream from character `start` on, as it is written, until EOF; a sealed
        content works too. To resume, pass the number of characters received plus one as `start`. Waits as
        long as the writer lives. After an error or a timeout the same iterator can go on where it was.

        Raises `StreamBroken` after the last stored character of a broken stream, `NotFound`,
        `InvalidArgument`, and `PositionOutOfRange` if the text ends before `start`.

        >>> with proc.open_stream() as out:
        ...     out.write("compiling\n")
        >>> for piece in proc.follow(out.fd):
        ...     print(piece, end="")
        compiling
        """
        return Following(self._run, follow_text(self.handle, fd_id(fd), number("start", start)))

    def extract(
        self,
        fd: FdLike,
        *,
        mode: Mode | None = None,
        start: int | None = None,
        count: int | None = None,
        page_size: int | None = None,
    ) -> Descriptor:
        """Copy a part of a content (the whole, if no part is named) to a new descriptor. Its `origin` gives
        the position in the first content it was cut from. `page_size` defaults to that of the content.
        Arguments and errors as for `read`.

        >>> d = proc.ingest("build.log")
        >>> part = proc.extract(d.fd, mode="line", start=120, count=20)
        >>> part.fd, part.lines, part.origin.fd, part.origin.lines
        ('fd:2', 20, 'fd:1', '120-139')
        """
        request = parse_request(fd, mode, start, count)
        return self._run(contents.extract(self.handle, request.fd, request.part, page_size=page_size))

    def search(
        self,
        fd: FdLike,
        pattern: str,
        *,
        context: int = 0,
        max_matches: int = searching.MAX_SHOWN,
        ignore_case: bool = False,
    ) -> SearchResult:
        """Find the lines that match `pattern` (RE2 syntax: linear time, no look-around) in a content or the
        part a selector names, in bounded memory. The first `max_matches` (1-10000) are returned with up to
        `context` lines (0-100) around each; all are counted. `^` and `$` match at line boundaries, and no
        match crosses one.

        Raises `InvalidArgument` (the pattern is invalid in RE2, empty, or longer than 1000 characters),
        `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.

        >>> d = proc.ingest("build.log")
        >>> found = proc.search(d.fd, "line 12[0-9]+ ", max_matches=2)
        >>> found.matches, [hit.text for hit in found.hits]
        (110, ['line 120 of the build', 'line 121 of the build'])
        """
        request = parse_request(fd)
        found = searching.search(
            self.handle,
            request.fd,
            request.part,
            pattern,
            context=context,
            max_matches=max_matches,
            ignore_case=ignore_case,
        )
        return self._run(found)

    def diff(self, a: FdLike, b: FdLike, context: int = 3) -> str:
        r"""Return the unified diff that makes text `a` into text `b`, with `context` lines (0-100) around
        each change; "" if they are equal. Both may be parts that selectors name; lines are numbered as in the
        whole texts. Apart from the diff itself, memory is bounded: 16 bytes for each line, of which each
        text may have 2 000 000, and 200 000 from the first to the last that differs. Of what would take
        longer than some seconds to compare, more lines than necessary are shown as replaced.

        Raises `TooLarge` beyond these limits (compare parts), `NotText`, `InvalidArgument`, `NotFound`,
        `PageOutOfRange`, `PositionOutOfRange`.

        >>> a, b = proc.create("one\ntwo\n"), proc.create("one\n2\n")
        >>> print(proc.diff(a.fd, b.fd, context=0), end="")
        --- fd:1
        +++ fd:2
        @@ -2 +2 @@
        -two
        +2
        """
        pieces: list[bytes] = []
        operation = comparing.compare(
            self.handle, parse_request(a), parse_request(b), context=context, write=pieces.append
        )
        self._run(operation)
        return b"".join(pieces).decode("utf-8")

    def export(
        self,
        fd: FdLike,
        path: str | os.PathLike[str],
        *,
        mode: Literal["write", "append"] = "write",
        create: bool = True,
        exist_ok: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Export:
        """Write a content, or the part a selector names, exactly to a file, atomically and in bounded
        memory. Any path that the user may write is accepted; only the agents' tool is confined to a root.
        `progress` is called with the bytes written so far.

        Raises `TargetExists`, `TargetMissing`, `PathRefused`, `WriteFailed`, `InvalidArgument`; the file is
        then unchanged.

        >>> d = proc.ingest("build.log")
        >>> done = proc.export(f"{d.fd}#L1-2", "part.txt")
        >>> done.char_count, open("part.txt").readlines()[1]
        (40, 'line 2 of the build\\n')
        """
        request = parse_request(fd)
        target = Target(path, mode=mode, create=create, exist_ok=exist_ok)
        return self._run(exporting.export(self.handle, request.fd, request.part, target, mode, progress))

    def close(self, fd: FdLike) -> None:
        """Close a descriptor. The content lives while any process holds it. Raises `NotFound`.

        >>> d = proc.create("one")
        >>> proc.close(d.fd)
        >>> proc.list()
        []
        """
        self._run(descriptors.close(self.handle, fd_id(fd)))

    def child(self, share: Sequence[FdLike] = ()) -> Process:
        """Create a child process that holds the shared descriptors under the same ids, by reference. One
        round trip; no content is copied. Raises `NotFound`, `SpawnLimit`, `InvalidArgument`.

        >>> d = proc.create("one")
        >>> child = proc.child(share=[d.fd])
        >>> child.read(d.fd).text
        'one'
        """
        return Process(self.store, self._run(processes.create_child(self.handle, fd_ids(share))))

    def fork(self) -> Process:
        """Create a child process with a copy of the whole descriptor table. One round trip; no content is
        copied. Raises `SpawnLimit`.

        >>> d = proc.create("one")
        >>> twin = proc.fork()
        >>> [d.fd for d in twin.list()]
        ['fd:1']
        """
        return Process(self.store, self._run(processes.create_child(self.handle, None)))

    def end(self) -> None:
        """End the process and close all its descriptors. Its record stays until the tree is collected.
        Ending it again has no effect.

        >>> proc.end()
        >>> [member.state for member in store.tree(proc.id).members]
        ['exited']
        """
        self._run(processes.end(self.handle))
        self.handle.forget_all()

    def read_bytes(self, fd: FdLike, offset: int = 0, length: int | None = None) -> bytes:
        r"""Return up to `length` bytes (None: all that follow) from `offset`, counted from 0; past the end
        b"", as of a file. At most two round trips for up to about 30 MB, whatever the size of the content,
        and little more than these bytes.

        Raises `NotFound`, `InvalidArgument`.

        >>> d = proc.create(b"\x89PNG...")
        >>> d.kind, d.media_type, proc.read_bytes(d.fd, 1, 3)
        ('bytes', 'application/octet-stream', b'PNG')
        """
        _, found = self._run(byte_reading.read_bytes(self.handle, fd_id(fd), offset, length))
        return found

    def follow_bytes(self, fd: FdLike, offset: int = 0) -> Iterator[bytes]:
        r"""Iterate over the bytes of a content from `offset`, counted from 0, and over what is appended until
        its end: of a stream of bytes as they are, of text its UTF-8. The pieces are as large as they come.

        Raises `StreamBroken` after the last stored byte of a broken stream, `PositionOutOfRange` for an
        offset beyond the end, `InvalidArgument`, `NotFound`.

        >>> with proc.open_stream() as out:
        ...     out.write(b"\x89PNG...")
        >>> for piece in proc.follow_bytes(out.fd, 1):
        ...     print(piece)
        b'PNG...'
        """
        first = byte_reading.check_count("offset", offset)
        return Following(self._run, follow_bytes(self.handle, fd_id(fd), first))

    def open_bytes(self, fd: FdLike) -> ByteFile:
        r"""Open a content as a read-only binary file: `read`, `seek`, `tell`. It reads ahead, so that small
        reads cost few round trips. It never mixes two contents of a name.

        Raises `NotFound`; reading raises `Conflict` once the name means another content.

        >>> d = proc.ingest("build.log")
        >>> with proc.open_bytes(d.fd) as file:
        ...     position = file.seek(-23, 2)
        ...     file.read()
        b'line 5000 of the build\n'
        """
        return open_byte_file(self._run, self.handle, fd_id(fd))

    def _run(self, operation: Operation[T]) -> T:
        if self.handle.must_touch():
            self.store.run(processes.touch(self.handle))
        return self.store.run(operation)
