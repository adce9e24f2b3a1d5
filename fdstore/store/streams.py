"""Streams: contents in state `open`, which one writer appends to and many readers follow.

    open        an empty content, its writer, and how long that may be silent (a lease)
    append      last page rewritten, new pages, index, totals, lease, wake-up: one step, one round trip
    seal        EOF with its exit code, or broken with its reason
    lost_writer broken, by whoever finds that the lease ran out

A process that ends, however it does, breaks the streams that it still writes in the same step.

At any moment a stream has the pages, index and totals that its text would have if it were stored at
once (see `text.growth`), so reading one needs nothing special. The writer remembers the end of its
text; the script checks that the text still ends there, so a piece sent twice is stored once and a
writer that was replaced stores nothing. A little text goes as arguments of the script. More of it goes
beside the script, in one transaction with it, and is stored if the script accepts it (`hset_if_accepted`):
Lua makes a hash of every byte that it is given, and takes longer than all the rest together.

The writer does not know its readers; they are in `following`.
"""

from __future__ import annotations

import secrets
from collections import deque
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from fdstore.errors import (
    DamagedRecord,
    InvalidArgument,
    NotFound,
    StreamClosed,
    quoted,
)
from fdstore.records import Unreadable
from fdstore.store.ceilings import beside
from fdstore.store.content_info import ProcessHandle, lost_writer, reads_content, resolve
from fdstore.store.decoding import replies_or_damage, show_bytes, unreadable, whole_number
from fdstore.store.keys import ContentKeys, TreeKeys, content_keys, is_content
from fdstore.store.outcomes import outcome
from fdstore.store.staging import check_page_size, check_source
from fdstore.text.growth import Change, GrowingText, empty_index
from fdstore.text.index import group_of
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Batch, Operation, Receive, Send, Value, new_op
from fdstore.wire.scripts import decision_in, hset_if_accepted, script, text

LEASE_S = 30.0
"""How long the writer of a client may be silent before its stream counts as broken."""

UNLEASED_S = 9.0
"""What counts as the lease of a stream that has none, because its process has: three times in it a silent
writer looks whether anybody still holds the stream."""

PIECE_CHARS = 200_000
"""The longest piece that one append stores; more is split. Redis does nothing else meanwhile, for about
a quarter of a millisecond."""

ARGUMENT_BYTES = 4000
"""How much text goes as arguments of the script. For so little, a transaction takes longer, and more log."""


class StreamAppender:
    """The writing end of a stream: text that is still to be stored, and where it goes.

    `store` may be cut off at any moment (a lost connection, a cancelled task) and called again: what
    was sent last is then sent once more, and the script knows it. So a piece is not sent before the one in
    front of it is stored; but it is made ready while that one is on its way.
    """

    def __init__(
        self,
        handle: ProcessHandle,
        fd: str,
        content: str,
        growth: GrowingText,
        writer: str,
        lease_s: float | None,
    ) -> None:
        self.fd = fd
        self._handle = handle
        self._content = content
        self._keys: ContentKeys = content_keys(handle.keys.tree, content)
        self._growth = growth
        self._writer = writer
        self.lease_s = UNLEASED_S if lease_s is None else lease_s
        self._lease: str | float = "" if lease_s is None else lease_s
        self._end_op = new_op()  # asked twice how it is to end, the stream keeps the first answer
        self._waiting: deque[str] = deque()
        self._ready: deque[Batch] = deque()  # the first may have been sent

    @property
    def chars(self) -> int:
        """How many characters the stream has with all that was taken."""
        return self._growth.chars + sum(map(len, self._waiting))

    def put(self, given: str) -> None:
        """Takes text that the next `store` stores. It holds no lone surrogate."""
        self._waiting.extend(given[i : i + PIECE_CHARS] for i in range(0, len(given), PIECE_CHARS))

    def store(self) -> Operation[None]:
        """Stores what was taken: one round trip for each piece.

        Raises `StreamClosed` (it ended, broke, or nobody holds it any more), `Fenced`, `QuotaExceeded`
        (the stream is then broken), `NotFound` (the process is gone).
        """
        while self._ready or self._waiting:
            if not self._ready:
                self._make_ready()
            if self._waiting and len(self._ready) == 1:
                yield Send(self._ready[0], "append")
                self._make_ready()
                replies = yield Receive("append")
            else:
                replies = yield self._ready[0]
            self._take(replies)
            self._ready.popleft()

    def store_once(self, given: str, call_id: str | None) -> Operation[None]:
        """Stores the text of one tool call as one piece, once for that call. Raises as `store`."""
        self._take((yield self._request(self._growth.add(given), call_id)))

    def renew(self) -> Operation[None]:
        """Shows that the writer lives. Raises as `store`."""
        if self._ready:
            yield from self.store()
        else:
            self._take((yield self._request(None)))

    def seal(self, exit_code: int, chain: str = "", call_id: str | None = None) -> Operation[None]:
        """EOF, after what is stored, once for a tool call; `chain` says the exit codes of a chain of
        pipelines. Raises as `store`."""
        yield from self._end("sealed", str(exit_code), "", chain, call_id)

    def break_off(self, reason: str) -> Operation[None]:
        """Failure, after what is stored. Raises as `store`."""
        yield from self._end("broken", "", reason)

    def _request(self, change: Change | None, call_id: str | None = None) -> Batch:
        here, process = self._keys, self._handle.keys
        keys = (process.tree.record, process.record, here.record, here.pages, here.index)
        arguments: list[Value] = [call_id or "", self._handle.attempt, self._content, self.fd]
        arguments += (self._writer, self._lease)
        append = partial(script("append"), (*keys, process.calls, here.lent))
        if change is None:
            # nothing after what is there: all that is left of an append is its lease
            return [append(*arguments, self._growth.chars, self._growth.chars, 0, 0, 0, 0, 13)]
        arguments += (change.before, change.chars, change.bytes, change.lines, change.page_count)
        arguments.append(len(change.pages[-1]))
        decide = append(*arguments, 13)
        arguments += (13 + 2 * len(change.index), *chain.from_iterable(change.index.items()))
        pages: list[Value] = []
        for numbered in enumerate(change.pages, change.first_page):
            pages += numbered
        if sum(map(len, change.pages)) <= ARGUMENT_BYTES:
            return [append(*arguments, *pages)]
        return hset_if_accepted(decide, append(*arguments), here.pages, here.lent, pages)

    def _make_ready(self) -> None:
        self._ready.append(self._request(self._growth.add(self._waiting.popleft())))

    def _take(self, replies: list[Any]) -> None:
        outcome(decision_in(replies[-1]), self._handle.id)

    def _end(
        self, state: str, exit_code: str, reason: str, chain: str = "", call_id: str | None = None
    ) -> Operation[None]:
        keys = self._handle.keys
        answer_key, answer_field = self._handle.answer_slot(self._end_op, call_id)
        [reply] = yield [
            script("seal")(
                (keys.tree.record, keys.record, self._keys.record, answer_key),
                *(
                    answer_field,
                    self._handle.attempt,
                    self._content,
                    self.fd,
                    self._writer,
                    state,
                    exit_code,
                    reason,
                    chain,
                ),
            )
        ]
        outcome(reply, self._handle.id)


def open_stream(
    handle: ProcessHandle,
    source: str,
    page_size: int | None = None,
    *,
    lease_s: float | None = LEASE_S,
    call_id: str | None = None,
) -> Operation[StreamAppender]:
    """Makes an empty stream. Without a lease it is the process's own: any attempt of it may write
    (`resume`), and it breaks when the process ends. One round trip.

    Raises `InvalidArgument`, `QuotaExceeded`, `Fenced`, `NotFound`.
    """
    check_source(source)
    size = check_page_size(page_size)
    writer = secrets.token_hex(8)
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    keys = (handle.keys.tree.record, handle.keys.record, handle.keys.fds, answer_key)
    lease = "" if lease_s is None else check_lease(lease_s)
    made = script("open")(
        *(keys, answer_field, handle.attempt, handle.id, size, source, writer, lease, empty_index(size)),
        handle.highest,
    )
    [reply] = yield from beside(handle, [made])
    fd, content = map(text, outcome(reply, handle.id))
    handle.see(fd)
    return StreamAppender(handle, fd, content, GrowingText(size), writer, lease_s)


@reads_content
def resume(handle: ProcessHandle, fd: str) -> Operation[StreamAppender]:
    """The writing end of a stream that the process itself writes, where its text ends now. Two round
    trips. Raises `NotFound`, `StreamClosed`; whether the process may write it shows when it does."""
    view, _ = yield from resolve(handle, fd)
    d = view.descriptor
    if view.last_page is None or d.state != "open":
        raise StreamClosed(fd, d.state)
    [group] = yield [("HGET", view.keys.index, group_of(d.pages))]
    if group is None:
        raise NotFound(fd)
    growth = GrowingText.resumed(d.page_size, d.pages, view.last_page, d.bytes, group)
    return StreamAppender(handle, fd, view.content, growth, secrets.token_hex(8), None)


@reads_content
def resume_output(handle: ProcessHandle, fd: str) -> Operation[StreamAppender | None]:
    """The writing end of a stream that this process was made to write, where its text ends now; None
    if it has ended, or nobody holds it any more. Two round trips."""
    content = _output(handle, fd)
    keys = content_keys(handle.keys.tree, content)
    [(state, page_size, pages, size_bytes, tail)] = yield [
        ("HMGET", keys.record, "state", "page_size", "pages", "bytes", "tail")
    ]
    if state != b"open":
        return None
    # nobody else writes it, so it is still as it was a moment ago, or gone
    size, count, written = (
        whole_number(page_size or b"", 1),
        whole_number(pages or b"", 1),
        whole_number(size_bytes or b""),
    )
    (last, beyond), group = yield [
        ("HMGET", keys.pages, count, count + 1),
        ("HGET", keys.index, group_of(count)),
    ]
    if last is None or group is None:
        return None
    if tail:
        # what comes after was left by a torn log, see lua/common.lua
        last = (last + (beyond or b""))[: whole_number(tail)]
    growth = GrowingText.resumed(size, count, last, written, group)
    return StreamAppender(handle, fd, content, growth, secrets.token_hex(8), None)


def own_appender(handle: ProcessHandle, fd: str, page_size: int) -> StreamAppender:
    """The writing end of a stream that this process was made with, and has not written yet."""
    return StreamAppender(handle, fd, _output(handle, fd), GrowingText(page_size), secrets.token_hex(8), None)


def _output(handle: ProcessHandle, fd: str) -> str:
    """The content that a process writes and does not hold; its parent has it under the same number."""
    return f"{handle.id}/{fd.removeprefix('fd:')}"


def check_lease(lease_s: object) -> float:
    """A lease in seconds that can be kept. Raises `InvalidArgument`."""
    if isinstance(lease_s, bool) or not isinstance(lease_s, (int, float)) or not 0.1 <= lease_s <= 86_400:
        raise InvalidArgument("lease_s", "a number of seconds from 0.1 to 86400 is needed")
    return float(lease_s)


def check_exit_code(exit_code: object) -> int:
    """An exit code. Raises `InvalidArgument`."""
    if isinstance(exit_code, bool) or not isinstance(exit_code, int) or abs(exit_code) > MAX_INTEGER:
        raise InvalidArgument("exit_code", f"a whole number is needed, not {quoted(exit_code)}")
    return exit_code


class Due(msgspec.Struct, frozen=True):
    """The streams whose writer somebody must look for, and what could not be read: the tree, and what."""

    streams: list[tuple[TreeKeys, str]]
    unreadable: list[tuple[str, Unreadable]]


def due(prefix: str, trees: list[str], now_s: float) -> Operation[Due]:
    """The streams of these trees whose writer somebody must look for. One round trip, if no tree is
    damaged."""
    keys = [TreeKeys(prefix, tree) for tree in trees]
    requests: Batch = [("ZRANGEBYSCORE", each.writers, "-inf", f"{now_s:.3f}") for each in keys]
    found = Due([], [])
    for each, reply in zip(keys, (yield from replies_or_damage(requests)), strict=True):
        if isinstance(reply, DamagedRecord):
            found.unreadable.append((each.tree, unreadable(reply)))
            continue
        for content in reply:
            if is_content(each, content):
                found.streams.append((each, text(content)))
            else:
                problem = f"{show_bytes(content)} is no content of it"
                found.unreadable.append((each.tree, Unreadable(what=each.writers, problem=problem)))
    return found


def look_after(tree: TreeKeys, content: str) -> Operation[None]:
    """Breaks a stream if its writer is gone; else notes when to look again."""
    yield [lost_writer(tree, content)]
