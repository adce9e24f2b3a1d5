"""Launch a root agent: create its process, store its preload files and query, and make it ready to run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from io import BufferedReader
from typing import Any

from fdstore.agents.loop.program_loader import Bundle
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.files.source import open_below
from fdstore.files.unwrapping import unwrap
from fdstore.results.wrapping import is_blank
from fdstore.store import tree_limits
from fdstore.store.processes import processes
from fdstore.text.media_types import is_binary
from fdstore.tools.process_task import SpawnTask, encode_task, title_of


def launch_root(
    store: Store, bundle: Bundle, query: str | Sequence[Any] | None, name: str | None = None
) -> Process:
    """Create a root process of the bundle's root program, ready to run.

    The program's preload files are read here and passed as descriptors: images, archives and the like as
    bytes, any other file as text; of a compressed file, what it holds; a document and its text as two.
    `query` defaults to the program's own prompt.

    Raises `InvalidArgument` (no query, or an invalid or existing name), `TargetMissing`, `PathRefused`
    (a preload is not a regular file), `TooLarge` (a compressed one unpacks to too much).
    """
    program = bundle.programs[bundle.root]
    prompt = query if query else program.user
    if not prompt or (isinstance(prompt, str) and is_blank(prompt)):
        raise InvalidArgument("query", "say what the agent is to do: -p TEXT, -f FILE, or [prompt] user")
    stored_program = processes.StoredProgram(bundle.root, bundle.digest, bundle.json, program.price)
    page_size = program.file_descriptor.default_page_size
    preload = []
    with ExitStack() as held:
        # look at the files first: a damaged one must not leave a process behind
        given = [
            each for path in program.preload for each in unwrap(held.enter_context(_open(path)), path, held)
        ]
        handle = store.run(
            processes.open_root(
                store.prefix,
                tree_limits.fresh_name(program.name) if name is None else name,
                program.tree_limits,
                fresh=True,
                exact=name is not None,
                program=stored_program,
            )
        )
        root = Process(store, handle)
        for each in given:
            if each.is_document or is_binary(each.head):
                made = root.ingest(each.file, each.source, errors="bytes", media_type=each.media_type)
                preload.append(made.fd)
            else:
                preload.append(
                    root.ingest(
                        each.file, each.source, page_size, "backslashreplace", media_type=each.media_type
                    ).fd
                )
    task = SpawnTask(query=prompt if isinstance(prompt, str) else list(prompt), preload=preload)
    store.run(processes.launch(handle, encode_task(task), title_of(task)))
    return root


def _open(path: str) -> BufferedReader:
    return os.fdopen(open_below(path, None), "rb")
