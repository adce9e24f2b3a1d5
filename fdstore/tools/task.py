"""What a process is told when it is born: the first record of its journal.

Everything a worker needs to begin is here and in the program: the record in Redis is the truth, and
the message that wakes the worker carries an id.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.prepared import prepare
from fdstore.text.commands import IDLE_SECONDS, OUTPUT_BYTES, WALL_SECONDS


class SpawnTask(msgspec.Struct, frozen=True, kw_only=True, tag="brief", tag_field="kind"):
    """`query` is the user's text or blocks; `preload` the ids of shared descriptors, in order; an
    answer longer than `answer_limit` characters is handed over as a descriptor (None: never)."""

    query: str | list[Any]
    preload: list[str] = []
    answer_limit: int | None = None


class ForkTask(msgspec.Struct, frozen=True, kw_only=True, tag="fork", tag_field="kind"):
    """A copy of another process: its conversation is the first `records` records of that one's
    journal, then this copy's own answer to the call `call_id` that made it: that it is number `copy` of
    `copies`, and its `prompt`. Unless `may_spawn` it starts no processes of its own."""

    of: str
    records: int
    call: str
    prompt: str
    copy: int
    copies: int
    may_spawn: bool = False
    answer_limit: int | None = None


class PipeTask(msgspec.Struct, frozen=True, kw_only=True, tag="pipe", tag_field="kind"):
    """A pipeline: the words of each stage, which stages are kept as well (from 1), and what it may use."""

    commands: list[list[str]]
    page_size: int
    tee: list[int] = []
    stream_bytes: int = OUTPUT_BYTES
    stream_idle_seconds: float = IDLE_SECONDS
    wall_seconds: float = WALL_SECONDS


Task = SpawnTask | ForkTask


def encode_task(brief: Task | PipeTask) -> str:
    """The brief as a journal record."""
    return msgspec.json.encode(brief).decode("utf-8")


prepare(SpawnTask, ForkTask, PipeTask)
