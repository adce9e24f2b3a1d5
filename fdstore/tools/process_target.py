"""The process that a call names: by its id, or by a descriptor that it writes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument, NotFound
from fdstore.results.context import Context
from fdstore.store.contents.resolving import resolve
from fdstore.store.keys import check_process
from fdstore.store.processes import process_records
from fdstore.text.selection import fd_id
from fdstore.wire.operation import Operation

Target = Annotated[
    str | int,
    msgspec.Meta(
        description="A process id such as triage.1, or a descriptor that the process writes.",
        extra_json_schema={"type": "string"},
    ),
]


def process_of(context: Context, target: str | int) -> Operation[str]:
    """Return the id of the target process, a descendant of this one. Raises `NotFound`, `InvalidArgument`."""
    try:
        fd = fd_id(target)
    except InvalidArgument:
        process = check_process(target)
    else:
        info, _ = yield from resolve(context.handle, fd)
        process = info.descriptor.producer
    if not process.startswith(f"{context.handle.id}."):
        tree = yield from process_records.tree_record(context.prefix, context.handle.id.partition(".")[0])
        below = tuple(m.id for m in tree.members if m.id.startswith(f"{context.handle.id}."))
        raise NotFound(f"a process {process} below this one", below)
    return process
