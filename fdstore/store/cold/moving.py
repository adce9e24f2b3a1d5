"""Move out what is due: sealed contents that were not read for some time.

    1. list the object for deletion, in case this process dies
    2. upload the text; read it back and compare size and digest
    3. stage the checksums of its pages, with its index if that is of one group
    4. one script: the record names the object, the pages go, the object is off the list
    5. pack the index of a text of several groups where it is

The index is made again of the pages, and must be the one in Redis: with it alone readers find a page in the
object. What differs stays in Redis, where `doctor` finds it.

A death in between leaves the content as it was, and an object on the list. When a content was last read is
what Redis itself remembers of the key of its pages (OBJECT IDLETIME), so a read costs nothing. Moving reads
the pages too; a content whose upload failed therefore stays due in this process while nobody else reads it.

While Redis is nearly full, contents are due before their time, those first that were not read for longest.
All of it works in a Redis that has no memory left, where it is needed most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from fdstore.errors import (
    SKIPPABLE,
    DamagedRecord,
    FDStoreError,
    NotFound,
    ObjectStoreUnavailable,
    StoreFull,
    StoreLostData,
    TreeOutOfReach,
)
from fdstore.store.cold.unneeded import Runs, delete_unneeded, give_up_upload, list_upload
from fdstore.store.content_info import CONTENT, ContentInfo, descriptor_of
from fdstore.store.contents.locating import pages_in, request, window_of
from fdstore.store.contents.resolving import group_with
from fdstore.store.contents.returning import STAGED_FOR_S, bring_back, store_index
from fdstore.store.hashes import pairs
from fdstore.store.keys import TreeKeys, content_keys, in_pieces, is_content
from fdstore.store.objects import object_store
from fdstore.store.objects.checksums import encode_sum, has_index, more_bytes_of
from fdstore.store.objects.object_store import PUT_AT_ONCE_BYTES, ObjectMissing
from fdstore.store.objects.records import new_where, path_of, store_id
from fdstore.store.objects.settings import ENDED_TREE_AFTER_S, ColdSettings, read_settings
from fdstore.store.outcomes import outcome
from fdstore.store.record_format import UNREADABLE, damage, replies_or_damage, show_bytes
from fdstore.store.tree_facts import tree_names, within_reach
from fdstore.telemetry.counts import count
from fdstore.text.index import Group, IndexWriter
from fdstore.text.packed_index import pack_field, pack_page
from fdstore.text.paging import Page
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text, though_full
from fdstore.wire.server_info import NEARLY_FULL

LOST_UPLOAD_S = 3600.0
"""After so long, and four times what it should take, an upload counts as lost."""

BACKED_AT_ONCE = 100
"""Contents of a tree that are brought back in one turn."""

MAX_ATTEMPTS_KEPT = 10_000

EARLY_AFTER_S = 60.0
"""The least time without a read after which a content is due while Redis is nearly full."""

_LAYOUT = CONTENT.some("tail", "split", "index")


class Moved(msgspec.Struct):
    """What one turn did: contents and bytes that moved `out`, contents that came `back`, objects that were
    deleted, and the first problem ("" for none)."""

    contents: int = 0
    bytes: int = 0
    back: int = 0
    deleted: int = 0
    problem: str = ""

    def note(self, problem: str) -> None:
        """Keep a problem, if it is the first."""
        self.problem = self.problem or problem


class Due(msgspec.Struct, frozen=True):
    """A content that may move; `early` only while Redis is nearly full."""

    tree: TreeKeys
    content: str
    idle_s: float
    early: bool = False


class _Changed(Exception):
    """The content is not what it was when its move began."""


class Pace:
    """Bounds the bytes a second that pass the object store; `wait` sleeps, and may be cut short."""

    def __init__(self, wait: Callable[[float], object] = time.sleep) -> None:
        self._wait = wait
        self._free_at = 0.0

    def spend(self, size_bytes: int, mb_per_s: float) -> None:
        """Wait until the bytes before have had their time, and note these."""
        now = time.monotonic()
        if self._free_at > now:
            self._wait(self._free_at - now)
        self._free_at = max(now, self._free_at) + size_bytes / (mb_per_s * 1_000_000)


class Mover:
    """Moves contents, turn by turn. `go_on` is asked between contents; `wait` keeps the bound of bytes a
    second."""

    def __init__(
        self,
        store: Runs,
        *,
        go_on: Callable[[], bool] = lambda: True,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._store = store
        self._go_on = go_on
        self._pace = Pace(wait)
        self._store_id = ""
        self._touched: dict[tuple[str, str], float] = {}
        """When this mover last read the pages of a content that did not move, by `time.monotonic`."""

    def turn(self) -> Moved:
        """Move what is due now, bring back what is wanted, delete what is unneeded. A problem of the object
        store ends the turn; one of a content leaves that content where it is. Raises the errors of Redis."""
        moved = Moved()
        settings = self._store.run(read_settings(self._store.prefix))
        if settings.url is None:
            return moved
        self._store_id = self._store.run(store_id(self._store.prefix))
        try:
            for tree in self._trees(moved):
                if not self._go_on():
                    return moved
                self._tree(tree, settings, moved)
        except ObjectStoreUnavailable as error:
            moved.note(str(error))
            count("fdstore_cold_failures_total")
            return moved
        settings = self._store.run(read_settings(self._store.prefix))
        if settings.url is None:
            return moved
        deleted = delete_unneeded(self._store, settings.url)
        moved.deleted = deleted.objects
        if deleted.error is not None:
            moved.note(str(deleted.error))
            count("fdstore_cold_failures_total")
        return moved

    def _trees(self, moved: Moved) -> list[TreeKeys]:
        """Return the trees whose nodes answer; note the others."""
        prefix = self._store.prefix
        trees = [TreeKeys(prefix, name) for name in self._store.run(tree_names(prefix))]
        unreached: list[TreeOutOfReach] = []
        found = self._store.run(within_reach(trees, unreached))
        for each in unreached:
            moved.note(str(each))
        return found

    def _tree(self, tree: TreeKeys, settings: ColdSettings, moved: Moved) -> None:
        try:
            self._bring_back(tree, moved)
            for due in self._store.run(due_contents(tree, settings, self._touched_ago)):
                if not self._go_on():
                    return
                now = self._settings_for(settings.url)
                if now is None:
                    return
                if not due.early or self._store.run(_is_nearly_full(tree)):
                    self._content(due, now, moved)
        except SKIPPABLE as error:
            moved.note(str(error))

    def _settings_for(self, url: str | None) -> ColdSettings | None:
        """Return the current settings; None if contents no longer move to this place."""
        now = self._store.run(read_settings(self._store.prefix))
        return now if now.url == url and now.after_s is not None else None

    def _touched_ago(self, tree: str, content: str) -> float | None:
        touched = self._touched.get((tree, content))
        return None if touched is None else time.monotonic() - touched

    def _content(self, due: Due, settings: ColdSettings, moved: Moved) -> None:
        try:
            size_bytes = self.move(due, settings)
        except (_Changed, NotFound):
            return
        except SKIPPABLE as error:
            moved.note(str(error))
            return
        except UNREADABLE as error:
            moved.note(str(damage(content_keys(due.tree, due.content).record, error)))
            return
        moved.contents += 1
        moved.bytes += size_bytes

    def move(self, due: Due, settings: ColdSettings) -> int:
        """Move one content out. Return its bytes. Raises `ObjectStoreUnavailable`, `StoreLostData` (it is
        damaged, and stays), `NotFound`."""
        assert settings.url is not None
        info, fields = self._store.run(load_content(due.tree, due.content))
        d, tree, key = info.descriptor, due.tree, (due.tree.tree, due.content)
        if d.state != "sealed" or fields.get("tier"):
            raise _Changed
        try:
            split = _LAYOUT.decode(fields).split
        except UNREADABLE as error:
            raise damage(info.keys.record, error) from error
        where = new_where(due.content, self._store_id)
        path = path_of(tree, where)
        lost_after_s = LOST_UPLOAD_S + 4 * d.bytes / (settings.mb_per_s * 1_000_000)
        self._store.run(list_upload(tree, where, lost_after_s))
        is_out = False
        try:
            sums, digest, sent = bytearray(), object_store.new_digest(), 0

            def pieces() -> Iterator[bytes]:
                nonlocal sent
                for piece in self._pieces(info, sums):
                    digest.update(piece)
                    sent += len(piece)
                    self._pace.spend(len(piece), settings.mb_per_s)
                    self._note_touch(key)
                    yield piece
                if sent != d.bytes:
                    raise StoreLostData(info.keys.pages, f"its pages have {sent} bytes, not {d.bytes}")

            if d.bytes <= PUT_AT_ONCE_BYTES:
                object_store.put(settings.url, path, b"".join(pieces()))
            else:
                object_store.put_pieces(settings.url, path, pieces(), d.bytes)
            read_at = self._touched[key]
            self._pace.spend(d.bytes, settings.mb_per_s)
            if self._read_back(settings.url, path) != (sent, digest.hexdigest()):
                raise ObjectStoreUnavailable(
                    object_store.shown(settings.url), f"it returned another text for {path} than was sent"
                )
            sums_key = tree.staged_sums(new_op())
            if self._settings_for(settings.url) is None:
                object_store.delete(settings.url, path)  # the list of unneeded objects is for the new place
                raise _Changed
            untouched_s = max(-1, int(time.monotonic() - read_at) - 2)
            _, reply = self._store.run(
                _both(
                    though_full(("SET", sums_key, bytes(sums), "EX", STAGED_FOR_S)),
                    script("cold_out")(
                        tree=tree.record,
                        content=info.keys.record,
                        staged_sums=sums_key,
                        created_at=info.created,
                        where=where,
                        size_bytes=d.bytes,
                        page_count=d.pages,
                        field_count=d.pages + split,
                        sums_length=len(sums),
                        untouched_s=untouched_s,
                    ),
                )
            )
            is_out = outcome(reply, d.producer)[0] == b"1"
        finally:
            if not is_out:
                self._give_up(tree, where)
        if not is_out:
            raise _Changed
        if d.kind == "text" and not has_index(d):
            with suppress(FDStoreError, *UNREADABLE):  # it is read as it is, too
                self._store.run(store_index(info, where, lambda field: pack_field(field, d.page_size)))
        self._touched.pop(key, None)
        count("fdstore_cold_contents_out_total")
        count("fdstore_cold_bytes_out_total", by=d.bytes)
        return d.bytes

    def _give_up(self, tree: TreeKeys, where: str) -> None:
        try:
            self._store.run(give_up_upload(tree, where))
        except FDStoreError:
            return  # it is listed already, for later

    def _read_back(self, url: str, path: str) -> tuple[int, str]:
        try:
            return object_store.digest_of(url, path)
        except ObjectMissing as error:
            said = f"it took {path}, and does not have it"
            raise ObjectStoreUnavailable(object_store.shown(url), said) from error

    def _note_touch(self, key: tuple[str, str]) -> None:
        if len(self._touched) >= MAX_ATTEMPTS_KEPT:
            self._touched.clear()
        self._touched[key] = time.monotonic()

    def _pieces(self, info: ContentInfo, sums: bytearray) -> Iterator[bytes]:
        """Yield the pages of a content, joined, and add their checksums to `sums`, then its index if it has
        one group. Raises `StoreLostData`, `DamagedRecord` if index and totals are not those of the pages."""
        d = info.descriptor
        more_bytes, with_index, packed, index = more_bytes_of(d), has_index(d), bytearray(), IndexWriter()
        for run in in_pieces(range(1, d.pages + 1), window_of(d)):
            numbers = range(run[0], run[-1] + 1)
            replies = self._store.run(_batch(request(info, numbers)))
            pages = pages_in(info, replies)
            if pages is None:
                raise _Changed
            cut = [
                Page(data, _chars_of(info, number, data)) for number, data in zip(numbers, pages, strict=True)
            ]
            for data, chars in cut:
                sums += encode_sum(data, len(data) - chars, more_bytes)
                if with_index:
                    packed += pack_page(data, chars, d.page_size)
            if d.kind == "text":
                index.add(cut)
                self._compare(info, index.full_groups())
            yield b"".join(pages)
        if d.kind == "text":
            self._compare(info, index.fields())
            if (index.chars, index.lines, index.bytes) != (d.chars, d.lines, d.bytes):
                has = f"{index.chars} characters in {index.lines} lines"
                raise StoreLostData(info.keys.pages, f"it has other pages than its record says: {has}")
        sums += packed

    def _compare(self, info: ContentInfo, fields: dict[str, str]) -> None:
        """Raise `StoreLostData`, `DamagedRecord` if these fields of the index are others in Redis."""
        for first, value in fields.items():
            right = Group(int(first), value.encode("ascii"))
            try:
                found = self._store.run(group_with(info, right.first))
                if found.value == right.value:
                    continue
                pages = range(right.first, right.last + 1)
                number = next((page for page in pages if found.after(page) != right.after(page)), right.first)
            except UNREADABLE as error:
                raise damage(info.keys.index, error) from error
            raise StoreLostData(info.keys.pages, f"page {number} is not what its index says")

    def _bring_back(self, tree: TreeKeys, moved: Moved) -> None:
        for content in self._store.run(_take_wanted(tree)):
            if not self._go_on():
                return
            try:
                info, fields = self._store.run(load_content(tree, content))
                if fields.get("tier"):
                    moved.back += self._store.run(bring_back(info))
            except (ObjectStoreUnavailable, NotFound) as error:
                moved.note(str(error))
            except SKIPPABLE as error:
                moved.note(str(error))
            except UNREADABLE as error:
                moved.note(str(damage(content_keys(tree, content).record, error)))
            except StoreFull:
                return  # another time


def move_due(store: Runs) -> Moved:
    """Move what is due now, bring back what is wanted, delete what is unneeded: one turn of a new `Mover`."""
    return Mover(store).turn()


def _chars_of(info: ContentInfo, number: int, data: bytes) -> int:
    """Return how many characters a page has; of bytes, its length. Raises `StoreLostData` if no page of this
    content is so: it could not be found in an object, or read there."""
    d = info.descriptor
    try:
        if d.kind == "text":
            chars = len(data.decode("utf-8"))
            if chars <= d.page_size and len(data) - chars < 1 << 8 * more_bytes_of(d):
                return chars
        elif len(data) == min(d.page_size, d.bytes - (number - 1) * d.page_size):
            return len(data)
    except UnicodeDecodeError as error:
        raise StoreLostData(info.keys.pages, f"page {number} is not what its index says: {error}") from error
    raise StoreLostData(info.keys.pages, f"page {number} is not what its index says")


def _batch(batch: list[Any]) -> Operation[list[Any]]:
    replies: list[Any] = yield batch
    return replies


def _both(*commands: Any) -> Operation[list[Any]]:
    """Run commands one after the other: each needs what those before have written."""
    replies: list[Any] = []
    for each in commands:
        replies += yield [each]
    return replies


def due_contents(
    tree: TreeKeys, settings: ColdSettings, touched_ago: Callable[[str, str], float | None]
) -> Operation[list[Due]]:
    """Return the contents of a tree that may move now, those first that were not read for longest.
    `touched_ago` says how long ago the caller itself read the pages of one. A few round trips."""
    if settings.after_s is None:
        return []
    [values] = yield from replies_or_damage([("HMGET", tree.record, "bytes", "cold_bytes", "live")])
    if isinstance(values, DamagedRecord):
        raise values
    try:
        size, cold, live = (int(each or 0) for each in values)
    except ValueError as error:
        raise damage(f"the record of tree {tree.tree}", error) from error
    if size - cold < settings.min_bytes:
        return []
    after_s = settings.after_s if live > 0 else min(settings.after_s, ENDED_TREE_AFTER_S)
    early_after_s = EARLY_AFTER_S if (yield from _is_nearly_full(tree)) else math.inf
    [members] = yield from replies_or_damage([("SMEMBERS", tree.contents)])
    if isinstance(members, DamagedRecord):
        raise members
    due = []
    for piece in in_pieces([text(each) for each in members if is_content(tree, each)]):
        reads: list[Any] = []
        for content in piece:
            keys = content_keys(tree, content)
            reads += [("HMGET", keys.record, "state", "bytes", "tier"), ("OBJECT", "IDLETIME", keys.pages)]
        replies = yield from replies_or_damage(reads)
        for content, fields, idle_s in zip(piece, replies[::2], replies[1::2], strict=True):
            if not isinstance(fields, list) or not isinstance(idle_s, int):
                continue
            state, size_bytes, tier = fields
            if state != b"sealed" or tier or not show_bytes(size_bytes or b"").isdecimal():
                continue
            ago_s = touched_ago(tree.tree, content)
            is_due = idle_s >= after_s or (ago_s is not None and idle_s + 2 >= ago_s)
            if int(size_bytes) >= settings.min_bytes and (is_due or idle_s >= early_after_s):
                due.append(Due(tree, content, idle_s, early=not is_due))
    return sorted(due, key=lambda each: -each.idle_s)


def _is_nearly_full(tree: TreeKeys) -> Operation[bool]:
    """Return whether the Redis of a tree has little memory left. One round trip."""
    [reply] = yield [script("cold_room")(tree=tree.record, size_bytes=0, share=NEARLY_FULL)]
    return outcome(reply, tree.tree) == [b"0"]


def load_content(tree: TreeKeys, content: str) -> Operation[tuple[ContentInfo, dict[str, str]]]:
    """Return a content by its id, and the fields of its record. One round trip. Raises `NotFound`,
    `DamagedRecord`."""
    keys = content_keys(tree, content)
    [flat] = yield [("HGETALL", keys.record)]
    if not flat:
        raise NotFound(content)
    try:
        fields = pairs(flat)
        descriptor = descriptor_of(fields.get("fd", content), fields)
        created = fields["created_at"].encode()
        info = ContentInfo(content, keys, descriptor, created, is_split="split" in fields)
        if "index" in fields:
            info.learn(1, fields["index"].encode())
    except UNREADABLE as error:
        raise damage(keys.record, error) from error
    return info, fields


def _take_wanted(tree: TreeKeys) -> Operation[list[str]]:
    [found] = yield [("SPOP", tree.wanted, BACKED_AT_ONCE)]
    return [text(each) for each in found if is_content(tree, each)]
