"""The file where Claude Code keeps the whole of an output that it cut.

An event names the file, and an event may be made up: a model can call the plugin's tool by itself. So only
a plain file is read, in the directory where Claude Code keeps the outputs of the session that the event
names:

    CONFIG/projects/PROJECT/SESSION/tool-results/NAME       CONFIG: ~/.claude, or $CLAUDE_CONFIG_DIR

The path is walked from CONFIG without following a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fdstore.errors import PathRefused
from fdstore.files.paths import Root
from fdstore.files.source import open_below
from fdstore.hosts.hooks.output import ToolOutput, readable, text_blocks

MAX_JSON_BYTES = 64 << 20


@contextmanager
def open_persisted(path: str, session: str, config: Path) -> Iterator[BinaryIO]:
    """Open a persisted output for reading. Raises `PathRefused`, `TargetMissing`."""
    within = os.path.relpath(path, config) if os.path.isabs(path) else ""
    names = within.split(os.sep)
    match names:
        case ["projects", project, found, "tool-results", name] if (
            found == session and os.path.normpath(path) == path
        ):
            root = Root(str(config), below=("projects", project, session, "tool-results"), kind="directory")
        case _:
            raise PathRefused(path, "it is not a kept output of this session")
    with os.fdopen(open_below(name, root), "rb") as file:
        yield file


@contextmanager
def whole_of(output: ToolOutput, config: Path) -> Iterator[Any]:
    """Yield the whole of an output: a text or blocks, or a file to be stored in parts. Raises `PathRefused`,
    `TargetMissing`."""
    if output.file is None:
        yield output.value
        return
    with open_persisted(output.file, output.session, config) as file:
        value = value_of_json(file, is_result=output.is_json)
        yield file if value is None else value


def value_of_json(file: BinaryIO, *, is_result: bool) -> str | list[Any] | None:
    """Return a kept output that may be JSON and is to be stored with lines; of the JSON of a result
    (`is_result`), the text or the blocks in it. None if it is no object or array, not UTF-8, or too large
    for the memory of a hook. The file is then at its beginning."""
    begin = file.read(1)
    data = begin + file.read(MAX_JSON_BYTES) if is_result or begin in (b"{", b"[") else b""
    file.seek(0)
    if not data or len(data) > MAX_JSON_BYTES:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text_blocks(text) or readable(text) if is_result else text
