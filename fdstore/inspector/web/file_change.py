"""What a call of `fd_to_file` that waits for approval would do to a file, as far as this machine can see it.

An agent writes on the machine of its worker. The operator who names the worker's export root to the inspector
says that it is on this machine too. Files are opened as the tool opens them: below that root, following no
link, none that is hidden; and nothing is created.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal

import msgspec

from fdstore.agents.runtime.eligibility import read_needs
from fdstore.client._async.store import Store
from fdstore.errors import FDStoreError, PathRefused, TargetMissing, TooLarge
from fdstore.files.paths import Root
from fdstore.files.permissions import Permissions
from fdstore.files.source import open_below
from fdstore.inspector.web.diff import DiffRow, DiffRows, with_changes
from fdstore.model.records import Record
from fdstore.store.contents import reading
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.line_diff import find_changes, group_hunks, hunk_heading
from fdstore.text.line_digests import LineDigests
from fdstore.text.selection import parse_request
from fdstore.tools.arguments import convert
from fdstore.tools.catalogue import BUILT_IN

WRITER = "fd_to_file"

MAX_COMPARED = 256_000
"""Characters of the text, and bytes of the file, that are compared."""

MAX_LINES = 300
"""Lines of the diff that are shown."""

WORK = 200_000
"""Comparisons of lines; beyond, lines are shown as replaced."""

CONTEXT = 3


class FileChange(Record, frozen=True, kw_only=True):
    """What would become of a file. `seen`: what is there now; "unknown" without the root that it is below,
    and then `problem` may say why. `rows` are the first lines of the diff of an overwritten text, of
    `removed` and `added` lines; None if it is not compared, as `problem` says. `is_refused`: the call would
    fail, since the file is there, or is not."""

    path: str
    mode: Literal["write", "append"]
    seen: Literal["unknown", "absent", "present"] = "unknown"
    size_bytes: int = 0
    removed: int = 0
    added: int = 0
    rows: list[DiffRow] | None = None
    is_cut: bool = False
    is_refused: bool = False
    problem: str = ""


async def file_change(
    store: Store, handle: ProcessHandle, tool: str, arguments: dict[str, Any], export_root: str | None
) -> FileChange | None:
    """Return what a call would do to a file; None if it writes none. Raises what ends a page."""
    if tool != WRITER or tool not in BUILT_IN:
        return None
    try:
        call = convert(BUILT_IN[tool].arguments, arguments)
    except FDStoreError:
        return None  # the call would be refused
    known = FileChange(path=call.file_path, mode=call.mode)
    if export_root is None:
        return known
    [needs] = await store.run(read_needs([handle.keys]))
    try:
        root = root_here(export_root, needs.export_root)
        found = await asyncio.to_thread(_look, call.file_path, root)
    except FDStoreError as error:
        return msgspec.structs.replace(known, problem=str(error))
    if found is None:
        return msgspec.structs.replace(known, seen="absent", is_refused=not call.create)
    size, data = found
    known = msgspec.structs.replace(known, seen="present", size_bytes=size, is_refused=not call.exist_ok)
    if call.mode == "append" or not call.exist_ok:
        return known
    try:
        if size > MAX_COMPARED:
            raise TooLarge("the file", size, MAX_COMPARED, "compare it where it is", "bytes")
        old = data.decode("utf-8")
        chosen = parse_request(call.fd)
        new = (await store.run(reading.read(handle, chosen.fd, chosen.part, MAX_COMPARED))).text
    except UnicodeDecodeError:
        return msgspec.structs.replace(known, problem="the file is not text, so it is not compared")
    except FDStoreError as error:
        if error.stops:
            raise
        return msgspec.structs.replace(known, problem=str(error))
    rows, removed, added = await asyncio.to_thread(diff_of, old, new)
    return msgspec.structs.replace(
        known, rows=rows[:MAX_LINES], removed=removed, added=added, is_cut=len(rows) > MAX_LINES
    )


def root_here(export_root: str, named: str | None) -> Root:
    """Return the root of an agent, of whose worker's root `export_root` is the directory on this machine;
    `named` is the `[export] root` of its program. Raises `PathRefused` for one that lies elsewhere.

    >>> root_here("/srv/out", "/srv/out/reports").below
    ('reports',)
    """
    if named is not None and os.path.isabs(named):
        inside = os.path.relpath(named, os.path.abspath(export_root))
        if inside.startswith(".."):
            raise PathRefused(named, "it is not below the directory of --export-root")
        named = None if inside == "." else inside
    root = Permissions(export_root=os.path.abspath(export_root)).resolve_export_root(named)
    assert root is not None
    return msgspec.structs.replace(root, make=False)


def _look(path: str, root: Root) -> tuple[int, bytes] | None:
    """Return the size of a file and its beginning; None if there is none. Raises `PathRefused`."""
    try:
        handle = open_below(path, root)
    except TargetMissing:
        return None
    with open(handle, "rb") as file:
        try:
            return os.fstat(handle).st_size, file.read(MAX_COMPARED)
        except OSError as error:
            raise PathRefused(path, (error.strerror or str(error)).lower()) from error


def diff_of(old: str, new: str) -> tuple[list[DiffRow], int, int]:
    r"""Return the rows of the diff that makes `old` into `new`, and how many lines are removed and added.

    >>> rows, removed, added = diff_of("one\ntwo\n", "one\nthree\n")
    >>> [(row.kind, row.text) for row in rows[1:]], removed, added
    ([('same', 'one'), ('removed', 'two'), ('added', 'three')], 1, 1)
    """
    a, b = _digests(old), _digests(new)
    changes = find_changes(a.digests, b.digests, WORK)
    rows = DiffRows()
    rows.feed(b"---\n+++\n")

    def feed(text: str, lines: LineDigests, shown: range, sign: str) -> None:
        for number in shown:
            line = text[lines.starts[number] : lines.starts[number + 1]]
            written = sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
            rows.feed(written.encode("utf-8", "backslashreplace"))

    for hunk in group_hunks(changes, len(a), len(b), CONTEXT):
        if len(rows.rows) > MAX_LINES:
            break
        rows.feed(f"{hunk_heading(hunk)}\n".encode())
        at = hunk.old.start
        for change in hunk.changes:
            feed(old, a, range(at, change.first), " ")
            feed(old, a, range(change.first, change.last)[: MAX_LINES + 1], "-")
            feed(new, b, range(change.new_first, change.new_last)[: MAX_LINES + 1], "+")
            at = change.last
        feed(old, a, range(at, hunk.old.stop), " ")
    removed = sum(each.last - each.first for each in changes)
    added = sum(each.new_last - each.new_first for each in changes)
    return with_changes(rows.rows[: MAX_LINES + 1]), removed, added


def _digests(text: str) -> LineDigests:
    lines = LineDigests()
    lines.feed(text)
    lines.finish()
    return lines
