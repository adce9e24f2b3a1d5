"""Streams: contents in state `open`, with one writer that appends and many readers that follow.

    open        create an empty content, with its writer and the writer's lease
    append      rewrite the last page; add pages, index, totals; renew the lease; wake readers (atomic)
    seal        end it: sealed with an exit code, or broken with a reason
    lost_writer break it, run by any client that finds the lease expired

A process that ends breaks its open streams in the same step, whatever the reason for its end.

At any moment a stream has the pages, index and totals that its text would have if stored in one piece
(see `text.growth`), so readers need no special case. The writer remembers the length of its text and the
script checks it, so a piece sent twice is stored once, and a writer that was replaced stores nothing.
Short pieces are arguments of the script. Longer ones are sent beside the script, in one transaction, and
stored only if the script accepts them (`hset_if_accepted`): Lua hashes every byte of its arguments, which
takes longer than everything else together.

A stream is opened without a kind: its first piece decides whether it holds text or bytes, for ever. Where
this module counts characters, it counts the bytes of a stream of bytes.

Writers do not know their readers; reading is in `completion` and `following`.
"""

from __future__ import annotations

import secrets
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, cast

from fdstore.errors import InvalidArgument, NotFound, NotText, StreamClosed, quoted
from fdstore.model.records import ContentKind
from fdstore.store.content_info import CONTENT
from fdstore.store.contents.resolving import reads_content, resolve
from fdstore.store.contents.staging import check_page_size, check_source
from fdstore.store.keys import ContentKeys, content_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.trees.ceilings import run_with_ceilings
from fdstore.text.byte_pages import DEFAULT_BYTE_PAGE_SIZE
from fdstore.text.growth import GrowingBytes, GrowingText, GrowthStep, empty_index
from fdstore.text.index import group_of
from fdstore.text.media_types import BYTES_TYPE, type_of_bytes
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import encode
from fdstore.text.words import joined_words
from fdstore.wire.operation import Batch, Operation, Receive, Send, Value, new_op
from fdstore.wire.script_constants import MAX_STREAM_LEASE_S
from fdstore.wire.scripts import decision_in, hset_if_accepted, script, text

LEASE_S = 30.0
"""Default lease of a client's stream: without renewal, the stream breaks after this time."""

UNLEASED_S = 9.0
"""Takes the place of the lease for a stream without one, whose process has the lease. An idle writer
checks three times within it whether any process still holds the stream."""

PIECE_CHARS = 200_000
"""The longest piece that one append stores, in bytes if it is bytes; a longer one is split. One append
blocks Redis for about a quarter of a millisecond."""

ARGUMENT_BYTES = 4000
"""Pieces of up to this many bytes are arguments of the script; a transaction would take longer and write
more log."""


class _Unstored(NamedTuple):
    """What a writer has still to store. It is replaced as a whole, so an exception at any moment, as by
    Ctrl-C, leaves it as it was before a step or after it.

    growth   what the pieces that are `ready` make of the stream, the last of them included
    waiting  the pieces behind them
    ready    the requests of the pieces that come first; the first may have been sent
    taken    the highest number of a `put`
    """

    growth: GrowingText | GrowingBytes
    kind: ContentKind | None
    waiting: tuple[str | bytes, ...] = ()
    ready: tuple[Batch, ...] = ()
    taken: int = 0


class StreamAppender:
    """The writing end of a stream, with the text, or the bytes, still to be stored. `growth` is that of an
    empty text for a stream that has no kind yet; if it becomes one of bytes, its pages have
    `byte_page_size`.

    `store` may be interrupted at any moment (a lost connection, a cancelled task, Ctrl-C, a signal handler
    that calls it) and called again: it resends the last piece, which the script recognizes. So a piece is
    sent only after the previous one is stored; but its request is built while the previous one is in flight.
    """

    def __init__(
        self,
        handle: ProcessHandle,
        fd: str,
        content: str,
        growth: GrowingText | GrowingBytes,
        writer: str,
        lease_s: float | None,
        *,
        byte_page_size: int = DEFAULT_BYTE_PAGE_SIZE,
        media_type: str = BYTES_TYPE,
    ) -> None:
        self.fd = fd
        self._handle = handle
        self._content = content
        self._keys: ContentKeys = content_keys(handle.keys.tree, content)
        self._writer = writer
        self.lease_s = UNLEASED_S if lease_s is None else lease_s
        self._lease: str | float = "" if lease_s is None else lease_s
        self._end_op = new_op()  # makes ending idempotent: the first end stays
        kind: ContentKind | None = None
        if growth.chars:
            kind = "bytes" if isinstance(growth, GrowingBytes) else "text"
        self._byte_page_size = byte_page_size
        self._media_type = media_type
        self._rest = _Unstored(growth, kind)

    @property
    def chars(self) -> int:
        """The length of the stream in characters (of bytes: in bytes), with what is still to be stored."""
        return self._rest.growth.chars + sum(map(len, self._waiting))

    @property
    def process(self) -> str:
        """The id of the process that writes it."""
        return self._handle.id

    @property
    def taken(self) -> int:
        """The highest number of a `put`."""
        return self._rest.taken

    @property
    def _waiting(self) -> tuple[str | bytes, ...]:
        return self._rest.waiting

    @property
    def _ready(self) -> tuple[Batch, ...]:
        return self._rest.ready

    def admit(self, piece: str | bytes) -> None:
        """Let the first piece decide the kind of the stream. Raises `NotText` for text if it holds bytes,
        `InvalidArgument` for bytes if it holds text."""
        kind: ContentKind = "bytes" if isinstance(piece, bytes) else "text"
        rest = self._rest
        if not piece or kind == rest.kind:
            return
        if rest.kind == "bytes":
            raise NotText(self.fd, self._media_type, self.chars)
        if rest.kind == "text":
            raise InvalidArgument("text", f"{self.fd} holds text, so bytes cannot be added to it")
        growth = GrowingBytes(self._byte_page_size) if isinstance(piece, bytes) else rest.growth
        self._rest = rest._replace(kind=kind, growth=growth)

    def put(self, piece: str | bytes, number: int = 0) -> None:
        """Queue text, which must hold no lone surrogate, or bytes for the next `store`; in the same moment
        `number` becomes `taken`. One up to `taken` is queued already. Raises as `admit`."""
        self.admit(piece)
        rest = self._rest
        if 0 < number <= rest.taken:
            return
        waiting = rest.waiting
        if piece and waiting and len(waiting[-1]) + len(piece) <= ARGUMENT_BYTES:
            piece = cast("Any", waiting[-1]) + piece  # of the same kind
            waiting = waiting[:-1]
        cut = (piece[i : i + PIECE_CHARS] for i in range(0, len(piece), PIECE_CHARS))
        self._rest = rest._replace(waiting=(*waiting, *cut), taken=max(number, rest.taken))

    def store(self) -> Operation[None]:
        """Store the queued text: one round trip for each piece. Short ones that wait together are one.

        Raises `StreamClosed` (it ended or broke, or no process holds it), `Fenced`, `QuotaExceeded`
        (the stream is then broken), `NotFound` (the process is gone).
        """
        while self._ready or self._waiting:
            if not self._ready:
                self._prepare_next()
            sent = self._ready[0]
            if self._waiting and len(self._ready) == 1:
                yield Send(sent, "append")
                self._prepare_next()
                replies = yield Receive("append")
            else:
                replies = yield sent
            self._check(replies)
            rest = self._rest
            if rest.ready and rest.ready[0] is sent:  # else a signal handler has stored it too
                self._rest = rest._replace(ready=rest.ready[1:])

    def store_once(self, piece: str, call_id: str | None) -> Operation[None]:
        """Store the text of one tool call as one piece; idempotent by `call_id`. Raises as `store`, and
        `NotText` for a stream of bytes."""
        self.admit(piece)
        growth = self._rest.growth.copied()
        self._check((yield self._request(self._add(growth, piece), call_id)))
        self._rest = self._rest._replace(growth=growth)

    def renew(self) -> Operation[None]:
        """Renew the lease. Raises as `store`."""
        if self._ready:
            yield from self.store()
        else:
            self._check((yield self._request(None)))

    def seal(self, exit_code: int, chain: str = "", call_id: str | None = None) -> Operation[None]:
        """End the stream with EOF after the stored text; idempotent by `call_id`. `chain` has the exit
        codes of a chain of pipelines. Raises as `store`."""
        yield from self._end("sealed", str(exit_code), "", chain, call_id)

    def break_off(self, reason: str) -> Operation[None]:
        """End the stream as broken after the stored text. Raises as `store`."""
        yield from self._end("broken", "", reason)

    def _request(self, change: GrowthStep | None, call_id: str | None = None) -> Batch:
        here, process, is_bytes = self._keys, self._handle.keys, self._rest.kind == "bytes"
        append = partial(
            script("append"),
            tree=process.tree.record,
            process=process.record,
            content=here.record,
            page_hash=here.pages,
            index=here.index,
            calls=process.calls,
            lent=here.lent,
            call=call_id or "",
            attempt=self._handle.attempt,
            content_id=self._content,
            fd=self.fd,
            by=self._writer,
            lease_s=self._lease,
            kind="bytes" if is_bytes else "",
            page_size=self._rest.growth.page_size,
            media_type=self._media_type if is_bytes and self._media_type != BYTES_TYPE else "",
        )
        if change is None:
            # an append of no text only renews the lease
            nothing = dict.fromkeys(("bytes_now", "lines_now", "pages_now", "tail_now"), 0)
            chars = self._rest.growth.chars
            return [append(chars_before=chars, chars_now=chars, **nothing, index_values=DECIDES)]
        append = partial(
            append,
            chars_before=change.before,
            chars_now=change.chars,
            bytes_now=change.bytes,
            lines_now=change.lines,
            pages_now=change.page_count,
            tail_now=len(change.pages[-1]),
        )
        index: list[Value] = [*chain.from_iterable(change.index.items())]
        pages: list[Value] = []
        for numbered in enumerate(change.pages, change.first_page):
            pages += numbered
        if sum(map(len, change.pages)) <= ARGUMENT_BYTES:
            return [append(index_values=len(index), changes=[*index, *pages])]
        decide, tell = append(index_values=DECIDES), append(index_values=len(index), changes=index)
        return hset_if_accepted(decide, tell, here.pages, here.lent, pages)

    def _prepare_next(self) -> None:
        rest = self._rest
        growth = rest.growth.copied()
        request = self._request(self._add(growth, rest.waiting[0]))
        self._rest = rest._replace(growth=growth, waiting=rest.waiting[1:], ready=(*rest.ready, request))

    def _add(self, growth: GrowingText | GrowingBytes, piece: str | bytes) -> GrowthStep:
        # `admit` let only pieces of this kind pass, and empty ones
        if isinstance(growth, GrowingBytes):
            data = piece if isinstance(piece, bytes) else b""
            if not growth.chars:
                self._media_type = type_of_bytes(data) or BYTES_TYPE
            return growth.add(data)
        return growth.add(piece if isinstance(piece, str) else "")

    def _check(self, replies: list[Any]) -> None:
        outcome(decision_in(replies[-1]), self._handle.id)

    def _end(
        self, state: str, exit_code: str, reason: str, chain: str = "", call_id: str | None = None
    ) -> Operation[None]:
        keys = self._handle.keys
        answer_key, answer_field = self._handle.answer_slot(self._end_op, call_id)
        [reply] = yield [
            script("seal")(
                tree=keys.tree.record,
                process=keys.record,
                content=self._keys.record,
                answers=answer_key,
                op=answer_field,
                attempt=self._handle.attempt,
                content_id=self._content,
                fd=self.fd,
                by=self._writer,
                final=state,
                exit_code=exit_code,
                reason=reason,
                chain_codes=chain,
            )
        ]
        outcome(reply, self._handle.id)


DECIDES = -1
"""In place of the values of the index: this append only accepts or refuses a long piece, see append.lua."""


def open_stream(
    handle: ProcessHandle,
    source: str,
    page_size: int | None = None,
    *,
    lease_s: float | None = LEASE_S,
    call_id: str | None = None,
) -> Operation[StreamAppender]:
    """Create an empty stream; its first piece decides its kind, and by it the default page size. Without a
    lease it belongs to the process: any attempt may write it (`resume`), and it breaks when the process
    ends. One round trip.

    Raises `InvalidArgument`, `QuotaExceeded`, `Fenced`, `NotFound`.
    """
    check_source(source)
    size = check_page_size(page_size)
    writer = secrets.token_hex(8)
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    create = script("open")(
        tree=handle.keys.tree.record,
        process=handle.keys.record,
        answers=answer_key,
        op=answer_field,
        attempt=handle.attempt,
        id=handle.id,
        page_size=size,
        source=source,
        writer=writer,
        lease_s="" if lease_s is None else check_lease(lease_s),
        empty_index=empty_index(size),
        seen_fd=handle.highest,
        words=joined_words(source),
    )
    [reply] = yield from run_with_ceilings(handle, [create])
    fd, content = map(text, outcome(reply, handle.id)[:2])
    handle.see(fd)
    return StreamAppender(
        *(handle, fd, content, GrowingText(size), writer, lease_s),
        byte_page_size=check_page_size(page_size, "bytes"),
    )


@reads_content
def resume(handle: ProcessHandle, fd: str) -> Operation[StreamAppender]:
    """Return an appender for a stream that the process itself writes, positioned at its end. Two round
    trips. Raises `NotFound`, `StreamClosed`; the first append checks that the process may write it."""
    info, _ = yield from resolve(handle, fd)
    d = info.descriptor
    if info.last_page is None or d.state != "open":
        raise StreamClosed(fd, d.state)
    growth: GrowingText | GrowingBytes
    if d.kind == "bytes":
        growth = GrowingBytes.resumed(d.page_size, d.pages, info.last_page, d.bytes)
    else:
        [group] = yield [("HGET", info.keys.index, group_of(d.pages))]
        if group is None:
            raise NotFound(fd)
        growth = GrowingText.resumed(d.page_size, d.pages, info.last_page, d.bytes, group)
    writer = secrets.token_hex(8)
    return StreamAppender(handle, fd, info.content, growth, writer, None, media_type=d.media_type)


_OUTPUT = CONTENT.some("state", "page_size", "pages", "bytes", "tail")


@reads_content
def resume_output(handle: ProcessHandle, fd: str) -> Operation[StreamAppender | None]:
    """Return an appender for a text that this process was created to write, positioned at its end; None
    if it has ended or no process holds it. Two round trips."""
    content = _output(handle, fd)
    keys = content_keys(handle.keys.tree, content)
    [stored] = yield [_OUTPUT.read(keys.record)]
    if stored[0] != b"open":
        return None
    # this process is the only writer, so the stream is unchanged since the last reply, or gone
    d = _OUTPUT.decode_values(stored)
    (last, beyond), group = yield [
        ("HMGET", keys.pages, d.pages, d.pages + 1),
        ("HGET", keys.index, group_of(d.pages)),
    ]
    if last is None or group is None:
        return None
    if d.tail:
        # bytes after it were left by a torn log, see lua/common.lua
        last = (last + (beyond or b""))[: d.tail]
    growth = GrowingText.resumed(d.page_size, d.pages, last, d.bytes, group)
    return StreamAppender(handle, fd, content, growth, secrets.token_hex(8), None)


def appender_for_output(handle: ProcessHandle, fd: str, page_size: int) -> StreamAppender:
    """Return an appender for a still empty stream that this process was created to write. `page_size` is
    for text; bytes have the default."""
    return StreamAppender(handle, fd, _output(handle, fd), GrowingText(page_size), secrets.token_hex(8), None)


def _output(handle: ProcessHandle, fd: str) -> str:
    """Return the id of a content that the process writes but does not hold; its parent holds it under the
    same number."""
    return f"{handle.id}/{fd.removeprefix('fd:')}"


def check_lease(lease_s: object) -> float:
    """Return a valid lease in seconds. Raises `InvalidArgument`."""
    if (
        isinstance(lease_s, bool)
        or not isinstance(lease_s, (int, float))
        or not 0.1 <= lease_s <= MAX_STREAM_LEASE_S
    ):
        raise InvalidArgument("lease_s", f"a number of seconds from 0.1 to {MAX_STREAM_LEASE_S} is needed")
    return float(lease_s)


def check_chain(chain: object) -> str:
    """Return valid exit codes of a chain of pipelines. Raises `InvalidArgument`."""
    if not isinstance(chain, str):
        raise InvalidArgument("chain", f"a text is needed, not {quoted(chain)}")
    encode(chain)
    return chain


def check_exit_code(exit_code: object) -> int:
    """Return a valid exit code. Raises `InvalidArgument`."""
    if isinstance(exit_code, bool) or not isinstance(exit_code, int) or abs(exit_code) > MAX_INTEGER:
        raise InvalidArgument("exit_code", f"a whole number is needed, not {quoted(exit_code)}")
    return exit_code
