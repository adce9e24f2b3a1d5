"""Streams: contents in state `open`, which one writer appends to and many readers follow.

    open        an empty content, its writer, and how long that may be silent (a lease)
    append      last page rewritten, new pages, index, totals, lease, wake-up: one script, one round trip
    seal        EOF with its exit code, or broken with its reason
    lost_writer broken, by whoever finds that the lease ran out

A process that ends, however it does, breaks the streams that it still writes in the same step.

At any moment a stream has the pages, index and totals that its text would have if it were stored at
once (see `text.growth`), so reading one needs nothing special. The writer remembers the end of its
text; the script checks that the text still ends there, so a piece sent twice is stored once and a
writer that was replaced stores nothing. The texts that change travel as arguments of the script, which
is why a piece is at most `PIECE_CHARS` long: in front of the script they could not be fenced.

Readers wait on the content's events. A wake-up is a hint: they look at the content again, so a missed
one costs time and never text. The writer does not know its readers.
"""

from __future__ import annotations

import secrets
import time
from collections import deque

import msgspec

from fdstore.errors import (
    InvalidArgument,
    NotFound,
    PositionOutOfRange,
    StreamBroken,
    StreamClosed,
    quoted,
)
from fdstore.records import Slice
from fdstore.store.keys import ContentKeys, TreeKeys, content_keys
from fdstore.store.operation import Batch, Block, Command, Operation, Value, new_op
from fdstore.store.reading import read
from fdstore.store.scripts import outcome, script, text
from fdstore.store.staging import check_page_size, check_source
from fdstore.store.stretches import WINDOW_BYTES, collect
from fdstore.store.views import Namespace, View, look, view_of
from fdstore.text.growth import Change, Growth
from fdstore.text.index import group_of
from fdstore.text.selection import MAX_NUMBER, Part

LEASE_S = 30.0
"""How long the writer of a client may be silent before its stream counts as broken."""

PIECE_CHARS = 65_536
"""The longest piece that one append stores; more is split."""

BLOCK_S = 5.0
"""How long a reader waits for a wake-up before it looks by itself."""

MAX_REASON_CHARS = 200


# --- writing


class Pen:
    """The writing end of a stream: text that is still to be stored, and where it goes.

    `store` may be cut off at any moment (a lost connection, a cancelled task) and called again: what
    was sent last is then sent once more, and the script knows it.
    """

    def __init__(
        self, space: Namespace, fd: str, content: str, growth: Growth, writer: str, lease_s: float | None
    ) -> None:
        self.fd = fd
        self._space = space
        self._content = content
        self._keys: ContentKeys = content_keys(space.keys.tree, content)
        self._growth = growth
        self._writer = writer
        self.lease_s = LEASE_S if lease_s is None else lease_s
        self._lease: str | float = "" if lease_s is None else lease_s
        self._end_op = new_op()  # asked twice how it is to end, the stream keeps the first answer
        self._waiting: deque[str] = deque()
        self._sent: Command | None = None

    def put(self, given: str) -> None:
        """Takes text that the next `store` stores. It holds no lone surrogate."""
        self._waiting.extend(given[i : i + PIECE_CHARS] for i in range(0, len(given), PIECE_CHARS))

    def store(self) -> Operation[None]:
        """Stores what was taken: one round trip for each piece.

        Raises `StreamClosed` (it ended, broke, or nobody holds it any more), `Fenced`, `QuotaExceeded`
        (the stream is then broken), `NotFound` (the process is gone).
        """
        while self._sent is not None or self._waiting:
            if self._sent is None:
                self._sent = self._command(self._growth.add(self._waiting.popleft()))
            yield from self._append(self._sent)
            self._sent = None

    def store_once(self, given: str, call: str | None) -> Operation[None]:
        """Stores the text of one tool call as one piece, once for that call. Raises as `store`."""
        yield from self._append(self._command(self._growth.add(given), call))

    def renew(self) -> Operation[None]:
        """Shows that the writer lives. Raises as `store`."""
        if self._sent is None:
            yield from self._append(self._command(None))
        else:
            yield from self.store()

    def seal(self, exit_code: int, chain: str = "", call: str | None = None) -> Operation[None]:
        """EOF, after what is stored, once for a tool call; `chain` says the exit codes of a chain of
        pipelines. Raises as `store`."""
        yield from self._end("sealed", str(exit_code), "", chain, call)

    def break_off(self, reason: str) -> Operation[None]:
        """Failure, after what is stored. Raises as `store`."""
        yield from self._end("broken", "", reason)

    def _command(self, change: Change | None, call: str | None = None) -> Command:
        here, process = self._keys, self._space.keys
        keys = (process.tree.record, process.record, here.record, here.pages, here.index, here.events)
        arguments: list[Value] = [call or "", self._space.attempt, self._content, self.fd]
        arguments += (self._writer, self._lease)
        if change is None:
            # nothing after what is there: all that is left of an append is its lease
            arguments += (self._growth.chars, self._growth.chars, 0, 0, 0, 0, 0)
        else:
            arguments += (change.before, change.chars, change.bytes, change.lines, change.page_count)
            arguments += (change.first_page, len(change.pages), *change.pages)
            arguments += [part for entry in change.index.items() for part in entry]
        return script("append")((*keys, process.calls), *arguments)

    def _append(self, command: Command) -> Operation[None]:
        [reply] = yield [command]
        outcome(reply, self._space.id)

    def _end(
        self, state: str, exit_code: str, reason: str, chain: str = "", call: str | None = None
    ) -> Operation[None]:
        keys = self._space.keys
        answer_key, answer_field = self._space.answer_slot(self._end_op, call)
        [reply] = yield [
            script("seal")(
                (keys.tree.record, keys.record, self._keys.record, answer_key),
                *(
                    answer_field,
                    self._space.attempt,
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
        outcome(reply, self._space.id)


def open_stream(
    space: Namespace,
    source: str,
    page_size: int | None = None,
    *,
    lease_s: float | None = LEASE_S,
    call: str | None = None,
) -> Operation[Pen]:
    """Makes an empty stream. Without a lease it is the process's own: any attempt of it may write
    (`resume`), and it breaks when the process ends. One round trip.

    Raises `InvalidArgument`, `QuotaExceeded`, `Fenced`, `NotFound`.
    """
    check_source(source)
    size = check_page_size(page_size)
    growth = Growth(size)
    empty = growth.add("").index[str(group_of(1))]
    writer = secrets.token_hex(8)
    answer_key, answer_field = space.answer_slot(new_op(), call)
    keys = (space.keys.tree.record, space.keys.record, space.keys.fds, answer_key)
    lease = "" if lease_s is None else check_lease(lease_s)
    [reply] = yield [
        script("open")(keys, answer_field, space.attempt, space.id, size, source, writer, lease, empty)
    ]
    fd, content = map(text, outcome(reply, space.id))
    return Pen(space, fd, content, growth, writer, lease_s)


def resume(space: Namespace, fd: str) -> Operation[Pen]:
    """The writing end of a stream that the process itself writes, where its text ends now. Two round
    trips. Raises `NotFound`, `StreamClosed`; whether the process may write it shows when it does."""
    view, _ = yield from look(space, fd)
    d = view.descriptor
    if view.last_page is None:
        raise StreamClosed(fd, d.state)
    [group] = yield [("HGET", view.index_key, group_of(d.pages))]
    if group is None:
        raise NotFound(fd)
    growth = Growth.resumed(d.page_size, d.pages, view.last_page, d.bytes, group)
    return Pen(space, fd, view.content, growth, secrets.token_hex(8), None)


def own_pen(space: Namespace, fd: str, page_size: int) -> Pen:
    """The writing end of a stream that this process was made with, and has not written yet."""
    content = f"{space.id}/{fd.removeprefix('fd:')}"
    return Pen(space, fd, content, Growth(page_size), secrets.token_hex(8), None)


def check_lease(lease_s: object) -> float:
    """A lease in seconds that can be kept. Raises `InvalidArgument`."""
    if isinstance(lease_s, bool) or not isinstance(lease_s, (int, float)) or not 0.1 <= lease_s <= 86_400:
        raise InvalidArgument("lease_s", "a number of seconds from 0.1 to 86400 is needed")
    return float(lease_s)


def check_exit_code(exit_code: object) -> int:
    """An exit code. Raises `InvalidArgument`."""
    if isinstance(exit_code, bool) or not isinstance(exit_code, int) or abs(exit_code) > MAX_NUMBER:
        raise InvalidArgument("exit_code", f"a whole number is needed, not {quoted(exit_code)}")
    return exit_code


# --- reading what grows


def wait_for_more(view: View, seconds: float) -> Operation[None]:
    """Waits until an open content is longer than in this view, or ended, or somebody should look
    whether its writer lives; for at most so long."""
    pause = max(0.01, min(seconds, BLOCK_S, view.writer_left_s))
    seen = f"{view.descriptor.chars}-1"
    events = view.keys.events
    yield Block(("XREAD", "BLOCK", max(1, int(pause * 1000)), "STREAMS", events, seen), pause)


def read_whole(
    space: Namespace, fd: str, part: Part | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    """As `reading.read`, after up to `wait_s` seconds for the part to be whole: no later text can
    change it. None, for everything, waits for the end."""
    if not check_wait(wait_s):
        return read(space, fd, part, limit)
    return _read_when_whole(space, fd, part, limit, wait_s)


def _read_when_whole(
    space: Namespace, fd: str, part: Part | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    yield from until_whole(space, fd, part, wait_s)
    return (yield from read(space, fd, part, limit))


def until_whole(space: Namespace, fd: str, part: Part | None, wait_s: float) -> Operation[None]:
    """Waits for a part to be whole, for up to `wait_s` seconds. For 0 it does nothing."""
    if not check_wait(wait_s):
        return
    until = time.monotonic() + wait_s
    while True:
        view = yield from view_of(space, fd)
        left = until - time.monotonic()
        if left <= 0 or _is_whole(view, part):
            return
        yield from wait_for_more(view, left)


def check_wait(wait_s: object) -> float:
    """Seconds to wait. Raises `InvalidArgument`."""
    if isinstance(wait_s, bool) or not isinstance(wait_s, (int, float)) or not 0 <= wait_s <= MAX_NUMBER:
        raise InvalidArgument("wait", "a number of seconds, 0 or more, is needed")
    return float(wait_s)


def _is_whole(view: View, part: Part | None) -> bool:
    d = view.descriptor
    if d.state != "open":
        return True
    if part is None:
        return False
    if part.mode == "page":
        return d.pages > part.last
    if part.mode == "char":
        return d.chars >= part.last
    ended = d.lines if (view.last_page or b"").endswith(b"\n") else d.lines - 1
    return ended >= part.last


class Position(msgspec.Struct, frozen=True):
    """How far a follower is: `chars` characters are behind it, and `page`, which holds the next one or
    ends before it, begins after `page_chars`. Page 0: not looked up yet."""

    chars: int
    page: int = 0
    page_chars: int = 0


class Piece(msgspec.Struct, frozen=True):
    """What a follower gets at a time: text (none if the wait was in vain), and whether it was the last."""

    text: str
    position: Position
    ended: bool


def follow(space: Namespace, fd: str, position: Position, wait_s: float = BLOCK_S) -> Operation[Piece]:
    """The text after a position: what is there (at most about `WINDOW_BYTES`), else what comes within
    `wait_s`. Two round trips for what was just appended.

    Raises `StreamBroken` when nothing is left of a broken stream, `PositionOutOfRange` for a position
    beyond the end of an ended one, `NotFound`.
    """
    until = time.monotonic() + wait_s
    next_char = position.chars + 1
    while True:
        if position.page:
            view = yield from view_of(space, fd)
        else:
            view, _ = yield from look(space, fd, unit="chars", first=next_char, last=next_char)
        d = view.descriptor
        if next_char <= d.chars:
            return (yield from _piece(view, position if position.page else _place_of(view, next_char)))
        if d.state != "open" and position.chars > d.chars:
            raise PositionOutOfRange(fd, "character", next_char, d.chars)
        if d.state == "broken":
            raise StreamBroken(fd, d.reason or "unknown")
        left = until - time.monotonic()
        if d.state == "sealed" or left <= 0:
            return Piece("", position, d.state == "sealed")
        yield from wait_for_more(view, left)


def _place_of(view: View, char: int) -> Position:
    group = view.group_at("chars", char)
    if group is None:
        raise NotFound(view.descriptor.fd)
    place = group.before(group.page_of_char(char))
    return Position(char - 1, place.page, place.chars)


def _piece(view: View, position: Position) -> Operation[Piece]:
    d = view.descriptor
    # two at least: of the first, all may be known
    window = max(2, WINDOW_BYTES * d.pages // max(d.bytes, 1))
    last = min(d.pages, position.page + window - 1)
    pages = yield from collect(view, range(position.page, last + 1))
    tail = pages.pop().decode("utf-8")
    head = b"".join(pages).decode("utf-8")
    new = (head + tail)[position.chars - position.page_chars :]
    reached = position.chars + len(new)
    # the last page may still grow, so the next piece begins by looking at it again
    now = Position(reached, last, position.page_chars + len(head))
    return Piece(new, now, d.state == "sealed" and reached >= d.chars)


# --- looking after streams that nobody reads


def due(prefix: str, trees: list[str], now_s: float) -> Operation[list[tuple[TreeKeys, str]]]:
    """The streams of these trees whose writer somebody must look for. One round trip."""
    if not trees:
        return []
    keys = [TreeKeys(prefix, tree) for tree in trees]
    requests: Batch = [("ZRANGEBYSCORE", each.writers, "-inf", f"{now_s:.3f}") for each in keys]
    replies = yield requests
    return [(each, text(content)) for each, found in zip(keys, replies, strict=True) for content in found]


def look_after(tree: TreeKeys, content: str) -> Operation[None]:
    """Breaks a stream if its writer is gone; else notes when to look again."""
    yield [script("lost_writer")((tree.record, tree.writers, content_keys(tree, content).record), content)]
