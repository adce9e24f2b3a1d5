"""A small file system on the names of a process, for the memory tools of models.

A file is a named content, `name:/memories/plan.md`. A directory exists while a name lies below it. Each
command is an operation that returns the text for the model, in the words of the anthropic SDK's tool on local
files.

Processes are shared, so others may change a file at the same time: an edit is stored only if the file is
still the one that was read, else it is repeated on the new text, so no edit is lost. Deleting or renaming a
directory is one step for each file in it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from fdstore.errors import Conflict, NotFound, PositionOutOfRange
from fdstore.model.records import Descriptor
from fdstore.results.config import FDConfig
from fdstore.store.contents import contents, descriptors, naming, reading
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.names import NAME, name_id
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

ROOT = "/memories"

MAX_LINES = 999_999

ATTEMPTS = 100
"""The most attempts at an edit of a file that others change at the same time."""

MAX_OCCURRENCES = 100


class CommandFailed(Exception):
    """A command that the model got wrong; the message is for the model."""


def run_command(handle: ProcessHandle, command: Any) -> Operation[str]:
    """Run a command of the memory tool, an object with the fields of the Messages API. Raises
    `CommandFailed`, and `StoreUnavailable` and the like."""
    run = _COMMANDS.get(command.command)
    if run is None:
        raise CommandFailed(f"Unknown command: {command.command}")
    return (yield from run(handle, command))


def _view(handle: ProcessHandle, command: Any) -> Operation[str]:
    key = _key(command.path)
    found = yield from _find(handle, key)
    if found is None:
        below = yield from _list_below(handle, key)
        if not below and key != ROOT:
            raise CommandFailed(f"The path {command.path} does not exist. Please provide a valid path.")
        return _directory(key, below)
    first, lines = yield from _read_lines(handle, found, getattr(command, "view_range", None))
    return f"Here's the content of {command.path} with line numbers:\n{_numbered(lines, first)}"


def _create(handle: ProcessHandle, command: Any) -> Operation[str]:
    key = yield from _free_key(handle, command.path, f"File {command.path} already exists")
    try:
        yield from _put(handle, key, command.file_text, naming.ABSENT)
    except Conflict as error:
        raise CommandFailed(f"File {command.path} already exists") from error
    return f"File created successfully at: {command.path}"


def _str_replace(handle: ProcessHandle, command: Any) -> Operation[str]:
    old, new = command.old_str, command.new_str

    def replaced(text: str) -> tuple[str, str]:
        starts = _occurrences(text, old)
        if not starts:
            raise CommandFailed(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            )
        lines = [text.count("\n", 0, start) + 1 for start in starts]
        if len(lines) > 1:
            raise CommandFailed(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        edited = text[: starts[0]] + new + text[starts[0] + len(old) :]
        first = max(1, lines[0] - 2)
        snippet = _numbered(edited.split("\n")[first - 1 : lines[0] + 2], first)
        return edited, (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + snippet
        )

    return (yield from _edit(handle, command.path, replaced))


def _insert(handle: ProcessHandle, command: Any) -> Operation[str]:
    def inserted(text: str) -> tuple[str, str]:
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= command.insert_line <= len(lines):
            raise CommandFailed(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        edited = "\n".join(lines)
        edited += "" if edited.endswith("\n") else "\n"
        return edited, f"The file {command.path} has been edited."

    return (yield from _edit(handle, command.path, inserted))


def _delete(handle: ProcessHandle, command: Any) -> Operation[str]:
    key = _key(command.path)
    if key == ROOT:
        raise CommandFailed("Cannot delete the /memories directory itself")
    keys = yield from _keys_at(handle, key)
    if not (yield from _close_all(handle, keys)):
        raise CommandFailed(f"The path {command.path} does not exist")
    return f"Successfully deleted {command.path}"


def _rename(handle: ProcessHandle, command: Any) -> Operation[str]:
    old = _key(command.old_path)
    if old == ROOT:
        raise CommandFailed("Cannot rename the /memories directory itself")
    taken = f"The destination {command.new_path} already exists"
    new = yield from _free_key(handle, command.new_path, taken)
    if new.startswith(f"{old}/"):
        raise CommandFailed(f"Cannot rename {command.old_path} to a path inside it")
    renamed = 0
    for key in (yield from _keys_at(handle, old)):
        try:
            yield from naming.rename(handle, key, new + key.removeprefix(old))
            renamed += 1
        except NotFound:
            continue  # another agent deleted it
        except Conflict as error:
            raise CommandFailed(taken) from error
    if not renamed:
        raise CommandFailed(f"The path {command.old_path} does not exist")
    return f"Successfully renamed {command.old_path} to {command.new_path}"


def clear(handle: ProcessHandle) -> Operation[str]:
    """Delete every file."""
    below = yield from _list_below(handle, ROOT)
    yield from _close_all(handle, [_key_of(each) for each in below])
    return "All memory cleared"


_COMMANDS: dict[str, Callable[[ProcessHandle, Any], Operation[str]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


def _edit(handle: ProcessHandle, path: str, change: Callable[[str], tuple[str, str]]) -> Operation[str]:
    """Replace the text of a file by what `change` returns first, and return its second, the message. What was
    read is replaced, or the edit is repeated on what another agent has stored meanwhile."""
    key = _key(path)
    for _ in range(ATTEMPTS):
        found = yield from _find(handle, key)
        if found is None:
            is_directory = key == ROOT or (yield from _list_below(handle, key))
            problem = "is not a file." if is_directory else "does not exist. Please provide a valid path."
            raise CommandFailed(f"The path {path} {problem}")
        _require_text(found, path)
        try:
            text = (yield from reading.read(handle, name_id(key), None)).text
            edited, message = change(text)
            yield from _put(handle, key, edited, found)
        except (Conflict, NotFound):
            continue
        return message
    raise CommandFailed(f"The file {path} was not edited: others changed it {ATTEMPTS} times meanwhile.")


def _put(handle: ProcessHandle, key: str, text: str, expect: naming.Expected) -> Operation[Descriptor]:
    expected = naming.expectation(expect)
    return contents.create(handle, text, "memory", name=name_id(key), expected=expected)


def _find(handle: ProcessHandle, key: str) -> Operation[Descriptor | None]:
    return None if key == ROOT else (yield from naming.find(handle, key))


def _list_below(handle: ProcessHandle, key: str) -> Operation[list[Descriptor]]:
    return naming.list_names(handle, f"{key}/")


def _keys_at(handle: ProcessHandle, key: str) -> Operation[list[str]]:
    """Return the key of a file, or those of the files in a directory."""
    if (yield from _find(handle, key)) is not None:
        return [key]
    return [_key_of(each) for each in (yield from _list_below(handle, key))]


def _free_key(handle: ProcessHandle, path: str, taken: str) -> Operation[str]:
    """Return the key of a new file. Raises `CommandFailed` if it is taken, or if a file is above it."""
    key = _key(path)
    if key == ROOT or (yield from _keys_at(handle, key)):
        raise CommandFailed(taken)
    above = posixpath.dirname(key)
    while above != ROOT:
        if (yield from _find(handle, above)) is not None:
            raise CommandFailed(f"The path {above} is not a directory.")
        above = posixpath.dirname(above)
    return key


def _close_all(handle: ProcessHandle, keys: Sequence[str]) -> Operation[int]:
    """Close files and return how many of them were still there."""
    closed = 0
    for key in keys:
        try:
            yield from descriptors.close(handle, name_id(key))
            closed += 1
        except NotFound:
            continue
    return closed


def _read_lines(
    handle: ProcessHandle, found: Descriptor, view_range: Sequence[int] | None
) -> Operation[tuple[int, list[str]]]:
    """Return the number of the first line of a range, and its lines. A LF at the end begins a last, empty
    line. Raises `TooLarge` for more characters than one read of a descriptor returns."""
    path = _key_of(found)
    _require_text(found, path)
    limit = FDConfig().max_read_chars
    if view_range is None or len(view_range) != 2:
        if found.lines > MAX_LINES:
            raise CommandFailed(f"File {path} exceeds maximum line limit of 999,999 lines.")
        return 1, (yield from reading.read(handle, found.fd, None, limit)).text.split("\n")
    first, last = max(1, view_range[0]), view_range[1]
    count = (found.lines + 1 if last == -1 else last) - first + 1
    if count < 1:
        return first, []
    try:
        part = yield from reading.read(handle, found.fd, Part("line", first, count), limit)
    except PositionOutOfRange:
        if first != found.lines + 1:
            return first, []
        end = yield from reading.read(handle, found.fd, Part("char", found.chars, 1), limit)
        return first, [""] if end.text == "\n" else []
    lines = part.text.split("\n")
    return first, lines[:-1] if part.text.endswith("\n") and (not part.eof or len(lines) > count) else lines


def _require_text(found: Descriptor, path: str) -> None:
    if found.kind != "text":
        raise CommandFailed(f"Unsupported file type for {path}")


def _key(path: str) -> str:
    """Return the key of a path. Raises `CommandFailed` for one that is not below /memories."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise CommandFailed(f"Path must start with /memories, got: {path}")
    key = posixpath.normpath(path)
    if key != ROOT and not key.startswith(f"{ROOT}/"):
        raise CommandFailed(f"Path {path} would escape /memories directory")
    return key


def _key_of(found: Descriptor) -> str:
    return found.fd.removeprefix(NAME)


def _occurrences(text: str, part: str) -> list[int]:
    """Return where `part` first occurs in `text`, up to `MAX_OCCURRENCES` times."""
    starts: list[int] = []
    start = text.find(part) if part else -1
    while start >= 0 and len(starts) < MAX_OCCURRENCES:
        starts.append(start)
        start = text.find(part, start + 1)
    return starts


def _directory(key: str, below: Sequence[Descriptor]) -> str:
    """Return the listing of a directory, two levels deep."""
    sizes: dict[tuple[str, ...], int] = {}
    files = {}
    for each in below:
        parts = tuple(_key_of(each).removeprefix(f"{key}/").split("/"))
        files[parts] = each.bytes
        for depth in range(1, len(parts)):
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + each.bytes
    entries = {parts: f"{_size(size)}\t{key}/{'/'.join(parts)}" for parts, size in files.items()}
    entries |= {parts: f"{_size(size)}\t{key}/{'/'.join(parts)}/" for parts, size in sizes.items()}
    shown = [
        entries[parts]
        for parts in sorted(entries)
        if len(parts) <= 2 and not any(part.startswith(".") for part in parts)
    ]
    total = f"{_size(sum(files.values()))}\t{key}"
    header = f"Here're the files and directories up to 2 levels deep in {key}, excluding hidden items:"
    return "\n".join([header, total, *shown])


def _size(size_bytes: int) -> str:
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < 3:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f}{'BKMG'[unit]}" if size == int(size) else f"{size:.1f}{'BKMG'[unit]}"


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))
