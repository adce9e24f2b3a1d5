"""The blocking client: `connect`, `Store`, `Process`. `fdstore.aio` is the same, awaited.

Each method checks its arguments and runs one operation; what it costs is written there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import BinaryIO, Literal, TypeVar

from fdstore.files import Target
from fdstore.inputs import opened, source_name
from fdstore.records import (
    Descriptor,
    Export,
    Mode,
    ProcessRecord,
    SearchResult,
    Slice,
    TreeLimits,
    TreeRecord,
)
from fdstore.store import contents, following, inspection, processes, reading, searching, streams
from fdstore.store.check import check_server
from fdstore.store.cluster import make_runner
from fdstore.store.connection import Runner
from fdstore.store.operation import Operation
from fdstore.store.server import chosen
from fdstore.store.views import Namespace
from fdstore.text.paging import DecodeErrors
from fdstore.text.selection import FIRST_PAGE, fd_id, fd_ids, number, wanted
from fdstore.writer import StreamWriter

T = TypeVar("T")

FdLike = str | int
"""What names a descriptor: "fd:3", "fd-3", "3", 3, "ref:plan"; where noted, with "#L1-9"."""


def connect(url: str | None = None, prefix: str | None = None) -> Store:
    """A store on the Redis at `url`, else at `$FDSTORE_URL`, else on the embedded server, which is
    started if it is not up. The URL is of one Redis (`redis://`, `rediss://`, `unix://`), of Sentinels
    (`sentinel://HOST,HOST/MASTER`) or of a Redis Cluster (`redis+cluster://HOST,HOST`).

    Raises `StoreUnavailable` when nobody answers there, `UnsafeStore` when it is older than 6.2 or
    evicts keys, `InvalidArgument` for a URL or prefix that cannot be.

    >>> store = fdstore.connect("redis://localhost")            # doctest: +SKIP
    >>> store.process("triage").create("hello").fd              # doctest: +SKIP
    'fd:1'
    """
    url, prefix = chosen(url, prefix)
    store = Store(make_runner(url), prefix, url)
    try:
        store.reach()
        store.run(check_server(store.where))
    except BaseException:
        store.close()
        raise
    return store


class Store:
    """A connected Redis. Safe to share between threads; makes new connections after a fork."""

    def __init__(self, runner: Runner, prefix: str, url: str) -> None:
        self._runner = runner
        self.prefix = prefix
        self.url = url

    def __repr__(self) -> str:
        return f"<fdstore.Store {self.where} prefix={self.prefix!r}>"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The URL without its password."""
        return self._runner.where

    def reach(self) -> None:
        """Connects now, trying once: a wrong URL is told at once, not after the time that lost
        connections are given. Raises `StoreUnavailable`."""
        self._runner.reach()

    def close(self) -> None:
        """Closes the connections. The store can be used again."""
        self._runner.close()

    def run(self, operation: Operation[T]) -> T:
        """Runs one operation of `fdstore.store`."""
        return self._runner.run(operation)

    def process(self, name: str | None = None, *, limits: TreeLimits | None = None) -> Process:
        """Opens the root process `name`, or makes it with its tree; a child ("triage.1") must exist.
        Without a name, makes a new one. `limits` hold for a tree that is made.

        Raises `InvalidArgument` (the name, a limit), `NotFound` (a child that is not there).
        """
        space = self.run(processes.open_process(self.prefix, name, limits or TreeLimits()))
        return Process(self, space)

    def processes(self) -> list[ProcessRecord]:
        """All processes of all trees, by tree and time of birth, ended ones too. Damaged ones are passed
        over, with a warning in the log; `survey` names them."""
        return [member for tree in self.trees() for member in tree.members]

    def trees(self) -> list[TreeRecord]:
        """All trees, by name. Damaged ones are passed over as by `processes`."""
        return inspection.warned(self.survey()).trees

    def survey(self) -> inspection.Survey:
        """All trees, and beside them what cannot be read: damaged trees and processes, and trees of a newer
        format."""
        return self.run(inspection.survey(self.prefix))

    def tree(self, name: str) -> TreeRecord:
        """One tree: what it uses of its limits, and its processes. Raises `NotFound`, `NewerFormat`,
        `DamagedRecord`."""
        return self.run(inspection.tree_record(self.prefix, name))


class Process:
    """A process and its descriptors, as one client sees them.

    Descriptors are named "fd:3", "fd-3", "3", 3 or "ref:NAME". Every method that reads Redis raises
    `StoreUnavailable` when it is out of reach; those that write raise `Fenced` when the process has
    ended or another attempt runs it, `StoreFull` and `StoreReadOnly`, and `UnknownOutcome` when Redis
    stays out of reach after a write was sent.
    """

    def __init__(self, store: Store, space: Namespace) -> None:
        self.store = store
        self.space = space

    def __repr__(self) -> str:
        return f"<fdstore.Process {self.id}>"

    @property
    def id(self) -> str:
        """Its name: `triage`, or `triage.1` for a child."""
        return self.space.id

    def _run(self, operation: Operation[T]) -> T:
        if self.space.must_note():
            self.store.run(processes.touch(self.space))
        return self.store.run(operation)

    def create(self, text: str, source: str = "text", page_size: int | None = None) -> Descriptor:
        """Stores a text under the next number. `page_size` in characters (default 4000). One round
        trip up to about 250 kB.

        Raises `InvalidArgument` (not a str, a lone surrogate, a page size below 1), `QuotaExceeded`.

        >>> proc.create("one\\ntwo\\n").lines                    # doctest: +SKIP
        2
        """
        return self._run(contents.create(self.space, text, source, page_size))

    def ingest(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        source: str | None = None,
        page_size: int | None = None,
        errors: DecodeErrors = "strict",
        progress: Callable[[int], None] | None = None,
    ) -> Descriptor:
        """Stores a file (a path, or a file open in binary mode) of any size in bounded memory. Bytes
        that are not UTF-8 are refused, or kept as `\\xNN` with `errors="backslashreplace"`.
        `source` defaults to the file's name. `progress` is told the bytes read so far.

        Raises `TargetMissing`, `PathRefused`, `InvalidArgument`, `QuotaExceeded`.
        """
        with opened(file) as binary:
            return self._run(
                contents.ingest(self.space, binary, source or source_name(file), page_size, errors, progress)
            )

    def stat(self, fd: FdLike) -> Descriptor:
        """What a descriptor is now. Raises `NotFound`, naming what there is."""
        return self._run(contents.stat(self.space, fd_id(fd)))

    def list(self) -> list[Descriptor]:
        """All descriptors, in number order."""
        return self._run(contents.listed(self.space))

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
        """A part of a content: `count` units of `mode` ("page", "line" or "char") from `start` on, or
        everything with `read_all`, or what a selector says ("fd:3#L120-180"), and then nothing else
        may be said. Positions are 1-based; a count past the end is clamped. One page of a known
        descriptor is one round trip of that page's bytes.

        Of a stream this reads what is there now, or waits first, up to `wait` seconds, until the part
        is whole: no text that comes can change it. `eof` says whether the writer ended it there.

        Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, `InvalidArgument`, and `TooLarge`
        for more than `max_chars`.

        >>> proc.read("fd:1", mode="line", start=2).text         # doctest: +SKIP
        'two\\n'
        """
        page = 1 if start is None else start
        one_page = mode is None is count and not (read_all or wait)
        if one_page and type(fd) is str and type(page) is int and type(wait) is float:
            known = reading.known_page(self.space, fd, page, max_chars, self.store._runner.read_field)
            if known is not None:
                return known
        asked = wanted(fd, mode, start, count, whole=read_all, default=FIRST_PAGE)
        return self._run(following.read_whole(self.space, asked.fd, asked.part, max_chars, wait))

    def open_stream(
        self,
        source: str = "stream",
        page_size: int | None = None,
        *,
        lease_s: float = streams.LEASE_S,
    ) -> StreamWriter:
        """A new descriptor that is written bit by bit while others read it. The writer is a context
        manager: it ends the stream, or breaks it off when the block raises. While it lives the library
        keeps its lease; `lease_s` seconds after a writer that died, readers find the stream `broken`
        (`writer_lost`). A process that ends breaks its open streams.

        Raises `InvalidArgument`, `QuotaExceeded`.

        >>> with proc.open_stream(source="build") as out:         # doctest: +SKIP
        ...     out.write("compiling\\n")
        """
        pen = self._run(
            streams.open_stream(self.space, source, page_size, lease_s=streams.check_lease(lease_s))
        )
        return StreamWriter(self.store.run, pen)

    def follow(self, fd: FdLike, start: int = 1) -> Iterator[str]:
        """The text of a stream from its character `start` on, piece by piece as it comes, until EOF; any
        other content likewise. A follower that stopped goes on where it was: `start` is one more than
        the characters it has. Waits as long as the writer lives.

        Raises `StreamBroken` after the last stored character of a stream that broke, `NotFound`,
        `InvalidArgument`, and `PositionOutOfRange` when the end comes before `start`.

        >>> for piece in proc.follow("fd:9"):                     # doctest: +SKIP
        ...     print(piece, end="")
        """
        return self._pieces(following.Follower(self.space, fd_id(fd), number("start", start)))

    def _pieces(self, follower: following.Follower) -> Iterator[str]:
        while not follower.ended:
            if text := self._run(follower.more()):
                yield text

    def extract(
        self,
        fd: FdLike,
        *,
        mode: Mode | None = None,
        start: int | None = None,
        count: int | None = None,
        page_size: int | None = None,
    ) -> Descriptor:
        """A new descriptor of a copy of a part (all of it when no part is named). Its `origin` says
        where in the first content it was cut from. `page_size` defaults to that of the content.
        Arguments and errors as for `read`.

        >>> proc.extract("fd:1", mode="line", start=120, count=20).fd    # doctest: +SKIP
        'fd:2'
        """
        asked = wanted(fd, mode, start, count)
        return self._run(contents.extract(self.space, asked.fd, asked.part, page_size=page_size))

    def search(
        self,
        fd: FdLike,
        pattern: str,
        *,
        context: int = 0,
        max_matches: int = searching.MAX_SHOWN,
        ignore_case: bool = False,
    ) -> SearchResult:
        """The lines that match `pattern` (RE2 syntax: linear time, no look-around), in a content or the
        part a selector names; streamed, in bounded memory. The first `max_matches` (1-10000) are
        returned with up to `context` lines (0-100) around each, and all are counted. `^` and `$` are
        the borders of a line, and no match crosses one.

        Raises `InvalidArgument` (a pattern that RE2 refuses, empty, or longer than 1000 characters),
        `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.

        >>> proc.search("fd:1", "t.o").hits[0].text              # doctest: +SKIP
        'two'
        """
        asked = wanted(fd)
        found = searching.search(
            self.space,
            asked.fd,
            asked.part,
            pattern,
            context=context,
            max_matches=max_matches,
            ignore_case=ignore_case,
        )
        return self._run(found)

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
        """Writes a content, or the part a selector names, exactly to a file, atomically and in
        bounded memory. Any path you may write; the agents' tool is confined to a root. `progress` is
        told the bytes written so far.

        Raises `TargetExists`, `TargetMissing`, `PathRefused`, `WriteFailed`; the file is then as before.
        """
        asked = wanted(fd)
        target = Target(path, mode=mode, create=create, exist_ok=exist_ok)
        return self._run(contents.export(self.space, asked.fd, asked.part, target, mode, progress))

    def close(self, fd: FdLike) -> None:
        """Drops a descriptor; the content lives while any process holds it. Raises `NotFound`."""
        self._run(contents.close(self.space, fd_id(fd)))

    def child(self, share: Sequence[FdLike] = ()) -> Process:
        """A new process of this tree that holds the shared descriptors under the same ids, by
        reference. One round trip; no content is moved. Raises `NotFound`, `SpawnLimit`,
        `InvalidArgument`.

        >>> [d.fd for d in proc.child(share=["fd:1", "ref:plan"]).list()]    # doctest: +SKIP
        ['fd:1', 'ref:plan']
        """
        return Process(self.store, self._run(processes.child(self.space, fd_ids(share))))

    def fork(self) -> Process:
        """A new process of this tree with a copy of the whole table. One round trip, no content is
        moved. Raises `SpawnLimit`."""
        return Process(self.store, self._run(processes.child(self.space, None)))

    def end(self) -> None:
        """Ends the process and drops all its descriptors. Its record stays until the tree is
        collected. Ending twice is no error."""
        self._run(processes.end(self.space))
